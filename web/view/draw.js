// draw.js - draws an area on a canvas: only the visible part, with as much detail as the scale allows.

// Boxes are coloured by the family of their operator: hues in degrees, -1 for grey. The families are in the data.
let HUES = {};

function readTheme() {
    const style = getComputedStyle(document.documentElement), dark = document.documentElement.dataset.theme === "dark";
    const v = name => style.getPropertyValue("--" + name).trim();
    const theme = { dark, families: {} };
    for (const k of ["back", "card", "ink", "soft", "line", "edge", "far", "accent", "error", "warning", "note", "added", "removed", "changed", "frame"])
        theme[k] = v(k);
    for (const [family, hue] of Object.entries({ ...HUES, custom: -1 })) {
        const grey = hue < 0, h = grey ? 222 : hue;
        theme.families[family] = dark
            ? { head: `hsl(${h}, ${grey ? 12 : 42}%, ${grey ? 32 : 29}%)`, dot: `hsl(${h}, ${grey ? 12 : 50}%, ${grey ? 52 : 56}%)` }
            : { head: `hsl(${h}, ${grey ? 22 : 70}%, ${grey ? 90 : 88}%)`, dot: `hsl(${h}, ${grey ? 16 : 55}%, ${grey ? 62 : 55}%)` };
    }
    theme.port = dark ? { head: "hsl(220, 10%, 24%)", dot: "hsl(220, 10%, 62%)" } : { head: "hsl(220, 18%, 96%)", dot: "hsl(220, 10%, 45%)" };
    return theme;
}

// A colour from cool to hot, for a fraction of the largest time.
function heatColor(theme, t) {
    const h = 210 - 210 * t;
    return theme.dark ? `hsl(${h}, ${30 + 50 * t}%, ${24 + 18 * t}%)` : `hsl(${h}, ${50 + 40 * t}%, ${92 - 27 * t}%)`;
}

class Painter {
    constructor(pane) {
        this.pane = pane;
        this.widths = new Map();
    }
    // The text, shortened to the width.
    fit(c, text, width) {
        const key = width + c.font + text;
        let out = this.widths.get(key);
        if (out !== undefined)
            return out;
        out = text.length > 400 ? text.slice(0, 400) : text;
        if (c.measureText(out).width > width) {
            let low = 0, high = out.length;
            while (low < high) {
                const middle = (low + high + 1) >> 1;
                if (c.measureText(out.slice(0, middle) + "…").width <= width)
                    low = middle;
                else
                    high = middle - 1;
            }
            out = out.slice(0, low) + "…";
        }
        if (this.widths.size > 20000)
            this.widths.clear();
        this.widths.set(key, out);
        return out;
    }
    paint() {
        const p = this.pane, c = p.context, t = p.theme, r = p.ratio;
        c.setTransform(1, 0, 0, 1, 0, 0);
        c.fillStyle = t.back;
        c.fillRect(0, 0, p.canvas.width, p.canvas.height);
        this.painted = 0;
        if (p.root)
            this.area(p.root, 0, 0);
        c.setTransform(r, 0, 0, r, 0, 0);
    }
    // The visible part of the area, in its own units.
    visible(ox, oy) {
        const p = this.pane, k = p.scale;
        return [-p.x / k - ox - 8, -p.y / k - oy - 8, (p.width - p.x) / k - ox + 8, (p.height - p.y) / k - oy + 8];
    }
    area(area, ox, oy) {
        const p = this.pane, c = p.context, k = p.scale * p.ratio, s = area.scope;
        const [x0, y0, x1, y1] = this.visible(ox, oy);
        if (x1 < 0 || y1 < 0 || x0 > area.width || y0 > area.height)
            return;
        c.setTransform(k, 0, 0, k, (p.x + ox * p.scale) * p.ratio, (p.y + oy * p.scale) * p.ratio);
        const all = x0 <= 0 && y0 <= 0 && x1 >= area.width && y1 >= area.height;
        // Too small for text and too many for single shapes: dots.
        if (p.scale < 0.09 && (all ? s.count : this.guess(area, x0, y0, x1, y1)) > 4000) {
            this.dots(area, x0, y0, x1, y1, all);
            return;
        }
        const items = area.items().query(x0, y0, x1, y1), boxes = [], arrows = [];
        for (const i of items)
            (i < s.count ? boxes : arrows).push(i < s.count ? i : i - s.count);
        this.painted += boxes.length;
        this.arrows(area, arrows, [x0, y0, x1, y1]);
        const opened = [];
        for (const b of boxes)
            if (area.open.has(b))
                opened.push(b);
        for (const b of opened)
            this.frame(area, b, ox, oy);
        c.setTransform(k, 0, 0, k, (p.x + ox * p.scale) * p.ratio, (p.y + oy * p.scale) * p.ratio);
        this.boxes(area, boxes);
    }
    // The approximate number of boxes in a part of the area.
    guess(area, x0, y0, x1, y1) {
        const w = Math.min(x1, area.width) - Math.max(x0, 0), h = Math.min(y1, area.height) - Math.max(y0, 0);
        return area.scope.count * w * h / Math.max(1, area.width * area.height);
    }
    dots(area, x0, y0, x1, y1, all) {
        const p = this.pane, c = p.context, s = area.scope, t = p.theme, k = p.scale;
        const MOST = 8000;
        let items = null, n = s.count, arrows = s.from.length;
        if (!all) {
            items = area.items().query(x0, y0, x1, y1);
            n = items.length;
        }
        // Arrows: a sample of them.
        c.beginPath();
        const step = Math.max(1, Math.ceil((all ? arrows : n) / MOST));
        for (let i = 0; i < (all ? arrows : n); i += step) {
            const e = all ? i : items[i] - s.count;
            if (e < 0)
                continue;
            const from = 2 * s.pointStart[e], to = 2 * s.pointStart[e + 1] - 2;
            if (to > from)
                this.way(c, area, e, false, [x0, y0, x1, y1]);
        }
        c.strokeStyle = t.far;
        c.lineWidth = 0.8 / k;
        c.stroke();
        // Boxes: at least one pixel each, grouped by colour; of several at one pixel, only the first is drawn.
        const groups = new Map(), w = p.width, seen = new Uint8Array(Math.ceil(w) * Math.ceil(p.height));
        const ox = c.getTransform().e / p.ratio, oy = c.getTransform().f / p.ratio;
        const columns = Math.ceil(w);
        for (let i = 0; i < n; i++) {
            const b = all ? i : items[i];
            if (b >= s.count)
                continue;
            const cx = Math.floor((area.x[b] + area.w[b] / 2) * k + ox), cy = Math.floor((area.y[b] + area.h[b] / 2) * k + oy);
            if (area.w[b] * k < 3 && cx >= 0 && cy >= 0 && cx < w && cy < p.height) {
                const at = cy * columns + cx;
                if (seen[at] && !s.worst[b])
                    continue;
                seen[at] = 1;
            }
            const color = this.dotColor(s, b);
            let list = groups.get(color);
            if (!list)
                groups.set(color, list = []);
            list.push(b);
        }
        const least = 1.5 / k;
        for (const [color, list] of groups) {
            c.fillStyle = color;
            for (const b of list)
                c.fillRect(area.x[b], area.y[b], Math.max(least, area.w[b]), Math.max(least, area.h[b]));
        }
        this.painted += n;
        this.marks(area);
    }
    // The selection and search results, when boxes are dots.
    marks(area) {
        const p = this.pane, c = p.context;
        if (p.selected && p.selected.area === area && p.selected.box >= 0) {
            const b = p.selected.box, d = 6 / p.scale;
            c.strokeStyle = p.theme.accent;
            c.lineWidth = 2.5 / p.scale;
            c.strokeRect(area.x[b] - d, area.y[b] - d, area.w[b] + 2 * d, area.h[b] + 2 * d);
        }
    }
    family(s, b) {
        const t = this.pane.theme;
        if (s.kind[b] !== NODE)
            return t.port;
        const op = s.operator(b);
        return t.families[op ? op.family : "custom"] || t.families.custom;
    }
    headColor(s, b) {
        const t = this.pane.theme;
        if (this.pane.app.colors === "profile" && s.heat)
            return s.kind[b] === NODE ? heatColor(t, s.heat[b]) : t.port.head;
        return this.family(s, b).head;
    }
    dotColor(s, b) {
        const t = this.pane.theme;
        if (s.worst[b] > 1)
            return s.worst[b] === 3 ? t.error : t.warning;
        if (s.mark && s.mark[b])
            return s.mark[b] === "+" ? t.added : s.mark[b] === "-" ? t.removed : t.changed;
        if (this.pane.app.colors === "profile" && s.heat)
            return heatColor(t, s.heat[b]);
        return this.family(s, b).dot;
    }
    // Only the visible segments of an arrow are drawn: a segment may be a million pixels long.
    way(c, area, e, fine, [left, top, right, bottom]) {
        const s = area.scope, at = area.at, from = 2 * s.pointStart[e], to = 2 * s.pointStart[e + 1] - 2;
        let pen = false;
        for (let q = from + 2; q <= to; q += 2) {
            const x0 = at[q - 2], y0 = at[q - 1], x1 = at[q], y1 = at[q + 1];
            if ((x0 < left && x1 < left) || (x0 > right && x1 > right) || (y0 < top && y1 < top) || (y0 > bottom && y1 > bottom)) {
                pen = false;
                continue;
            }
            if (!pen)
                c.moveTo(x0, y0);
            pen = true;
            // Round corners: each curve ends at the middle of a segment.
            const bend = (y1 - y0) / 2;
            if (!fine || x0 === x1)
                c.lineTo(x1, y1);
            else
                c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
        }
    }
    // If there are too many arrows, those that only pass through are thinned out first.
    thin(area, list, view) {
        const MOST = 1500, s = area.scope, at = area.at, near = [], passing = [];
        if (list.length <= MOST)
            return list;
        const inside = p => at[p] >= view[0] && at[p] <= view[2] && at[p + 1] >= view[1] && at[p + 1] <= view[3];
        for (const e of list)
            (inside(2 * s.pointStart[e]) || inside(2 * s.pointStart[e + 1] - 2) ? near : passing).push(e);
        const some = (from, count) => {
            const step = Math.max(1, Math.ceil(from.length / Math.max(1, count)));
            return step === 1 ? from : from.filter((_, i) => i % step === 0);
        };
        const kept = some(near, MOST);
        return kept.concat(some(passing, Math.max(MOST / 4, MOST - kept.length)));
    }
    arrows(area, all, view) {
        const p = this.pane, c = p.context, t = p.theme, s = area.scope, fine = p.scale > 0.25;
        const chosen = p.chosenArrows(area), list = this.thin(area, all, view);
        for (const far of [true, false]) {
            c.beginPath();
            for (const e of list)
                if (((s.flags[e] & FAR) !== 0) === far && !(chosen && chosen.has(e)))
                    this.way(c, area, e, fine, view);
            c.strokeStyle = far ? t.far : t.edge;
            c.lineWidth = Math.max(1.1, 0.7 / p.scale);
            c.stroke();
        }
        if (chosen) {
            c.beginPath();
            for (const e of all)
                if (chosen.has(e))
                    this.way(c, area, e, fine, view);
            c.strokeStyle = t.accent;
            c.lineWidth = Math.max(2, 1.6 / p.scale);
            c.stroke();
        }
        if (p.scale > 0.45)
            this.heads(area, list, chosen, view);
    }
    heads(area, list, chosen, view) {
        const p = this.pane, c = p.context, s = area.scope, at = area.at;
        c.font = "10px system-ui, sans-serif";
        c.textAlign = "left";
        c.textBaseline = "middle";
        const said = new Set(); // arrows of one value that begin at one point: its shape is written there once
        for (const e of list) {
            const from = 2 * s.pointStart[e], to = 2 * s.pointStart[e + 1] - 2;
            if (to <= from)
                continue;
            const up = (s.flags[e] & BACK) !== 0 ? -1 : 1, x = at[to], y = at[to + 1];
            if (at[from] < view[0] - 130 && x < view[0] || at[from] > view[2] && x > view[2] || y < view[1] && at[from + 1] < view[1])
                continue;
            c.fillStyle = chosen && chosen.has(e) ? p.theme.accent : p.theme.edge;
            c.beginPath();
            c.moveTo(x, y);
            c.lineTo(x - 3.5, y - 7 * up);
            c.lineTo(x + 3.5, y - 7 * up);
            c.fill();
            if (p.scale < 0.75 || (s.flags[e] & (FAR | BACK)) || s.raw.edges.trunk[e] >= 0)
                continue;
            const text = shapeText(s.text(s.raw.values.type[s.raw.edges.value[e]])), key = `${at[from]} ${at[from + 1]} ${text}`;
            if (!text || said.has(key))
                continue;
            said.add(key);
            const room = this.room(area, at[from] + 5, at[from + 1] + 9);
            if (room >= 20) {
                c.fillStyle = p.theme.soft;
                c.fillText(this.fit(c, text, room), at[from] + 5, at[from + 1] + 9);
            }
        }
    }
    // The maximum length of a text that begins there, up to the next box.
    room(area, x, y) {
        let room = 120;
        for (const b of area.items().query(x, y - 6, x + room, y + 6))
            if (b < area.scope.count)
                room = Math.min(room, Math.floor(area.x[b]) - x - 3);
        return room;
    }
    round(c, x, y, w, h, r) {
        c.beginPath();
        c.roundRect(x, y, w, h, r);
    }
    frame(area, b, ox, oy) {
        const p = this.pane, c = p.context, t = p.theme, k = p.scale * p.ratio;
        c.setTransform(k, 0, 0, k, (p.x + ox * p.scale) * p.ratio, (p.y + oy * p.scale) * p.ratio);
        const x = area.x[b], y = area.y[b], w = area.w[b], h = area.h[b];
        c.fillStyle = t.frame;
        this.round(c, x, y, w, h, 7);
        c.fill();
        for (const part of area.open.get(b)) {
            c.setTransform(k, 0, 0, k, (p.x + ox * p.scale) * p.ratio, (p.y + oy * p.scale) * p.ratio);
            if (p.scale > 0.3) {
                c.font = "600 11px system-ui, sans-serif";
                c.fillStyle = t.soft;
                c.textAlign = "left";
                c.textBaseline = "middle";
                c.fillText(this.fit(c, part.name, partWidth(part)), x + part.x, y + HEADER + PADDING / 2 + LABEL / 2);
            }
            this.area(part.area, ox + part.area.dx, oy + part.area.dy);
        }
    }
    boxes(area, list) {
        const p = this.pane, c = p.context, s = area.scope, t = p.theme, letters = p.scale > 0.32;
        const simple = p.scale < 0.18;
        for (const b of list) {
            const x = area.x[b], y = area.y[b], w = area.w[b], h = area.h[b], opened = area.open.has(b), port = s.kind[b] !== NODE;
            const mark = s.mark && s.mark[b];
            if (simple && !opened) {
                c.fillStyle = this.dotColor(s, b);
                c.fillRect(x, y, w, h);
            } else {
                const radius = port ? h / 2 : 6;
                if (!opened) {
                    c.fillStyle = port ? t.port.head : t.card;
                    this.round(c, x, y, w, h, radius);
                    c.fill();
                }
                if (!port) {
                    c.fillStyle = this.headColor(s, b);
                    this.round(c, x, y, w, opened || s.rowStart[b + 1] > s.rowStart[b] ? HEADER : h, opened || s.rowStart[b + 1] > s.rowStart[b] ? [6, 6, 0, 0] : 6);
                    c.fill();
                }
                c.lineWidth = mark ? 2.5 : 1;
                c.strokeStyle = mark ? (mark === "+" ? t.added : mark === "-" ? t.removed : t.changed) : s.kind[b] === MISSING ? t.error : t.line;
                c.setLineDash(s.kind[b] === OUTER || s.kind[b] === MISSING ? [4, 3] : []);
                this.round(c, x, y, w, h, radius);
                c.stroke();
                c.setLineDash([]);
            }
            if (letters)
                this.letters(area, b, x, y, w, h, opened, port);
            this.badge(s, b, x, y, w);
        }
        if (p.hover && p.hover.area === area && p.hover.box >= 0)
            this.outline(area, p.hover.box, t.soft, 1.2);
        if (p.selected && p.selected.area === area && p.selected.box >= 0)
            this.outline(area, p.selected.box, t.accent, 2.2);
    }
    outline(area, b, color, width) {
        const p = this.pane, c = p.context, d = Math.max(2.5, 2 / p.scale);
        c.strokeStyle = color;
        c.lineWidth = Math.max(width, width / p.scale);
        this.round(c, area.x[b] - d, area.y[b] - d, area.w[b] + 2 * d, area.h[b] + 2 * d, area.scope.kind[b] === NODE ? 8 : area.h[b]);
        c.stroke();
    }
    letters(area, b, x, y, w, h, opened, port) {
        const p = this.pane, c = p.context, s = area.scope, t = p.theme, inner = s.hasInner(b);
        c.fillStyle = t.ink;
        c.textBaseline = "middle";
        c.textAlign = "center";
        c.font = port ? "12px system-ui, sans-serif" : "600 12px system-ui, sans-serif";
        const head = port ? h : s.rowStart[b + 1] > s.rowStart[b] || opened ? HEADER : h;
        const text = this.fit(c, s.title(b) || "(no name)", w - 12 - (inner ? 16 : 0));
        c.fillText(text, x + w / 2 + (inner ? 7 : 0), y + head / 2 + 0.5);
        if (inner) {
            c.fillStyle = t.soft;
            c.font = "11px system-ui, sans-serif";
            c.fillText(opened ? "▾" : "▸", x + 11, y + head / 2 + 0.5);
        }
        if (opened || p.scale < 0.45)
            return;
        c.textAlign = "left";
        c.font = "11px system-ui, sans-serif";
        c.fillStyle = t.soft;
        for (let i = s.rowStart[b]; i < s.rowStart[b + 1]; i++)
            c.fillText(this.fit(c, s.text(s.raw.boxes.rows[i]), w - 16), x + 8, y + HEADER + 10 + 15 * (i - s.rowStart[b]));
    }
    badge(s, b, x, y, w) {
        const worst = s.worst[b], below = s.below[b], t = this.pane.theme, c = this.pane.context;
        if (worst < 2 && below < 2)
            return;
        const r = Math.max(5, 3.5 / this.pane.scale);
        c.fillStyle = Math.max(worst, below) === 3 ? t.error : t.warning;
        c.beginPath();
        c.arc(x + w - 1, y + 1, r, 0, 7);
        c.fill();
        if (worst < 2 || this.pane.scale < 0.4)
            return;
        c.fillStyle = t.back;
        c.font = "bold 9px system-ui, sans-serif";
        c.textAlign = "center";
        c.textBaseline = "middle";
        c.fillText("!", x + w - 1, y + 1.5);
    }
}

// Formats float[N,3,224,224] as N×3×224×224.
function shapeText(type) {
    const m = /^[a-z0-9]+\[(.*)\]$/.exec(type);
    return m ? m[1].replace(/,/g, "×") : "";
}
