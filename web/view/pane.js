// pane.js - a model on a canvas: position and scale, selection, mouse, touch and keys.

class Pane {
    constructor(app, model, holder) {
        this.app = app;
        this.model = model;
        this.holder = holder;
        this.canvas = el("canvas", { tabIndex: 0, role: "application", ariaLabel: "The graph of " + model.raw.file + ". Arrow keys go from node to node." });
        this.caption = el("div", { className: "caption" });
        holder.append(this.canvas, this.caption);
        this.context = this.canvas.getContext("2d", { alpha: false });
        this.painter = new Painter(this);
        this.x = this.y = 0;
        this.scale = 1;
        this.selected = this.hover = null;
        this.theme = readTheme();
        this.roots = new Map();
        this.listen();
        this.resize();
        new ResizeObserver(() => this.resize()).observe(holder);
        if (model.main)
            this.show(model.main);
    }
    // ---- view ----
    show(scope) {
        if (!this.roots.has(scope))
            this.roots.set(scope, new Area(scope, null, -1));
        this.root = this.roots.get(scope);
        this.selected = this.hover = null;
        this.fit();
        this.app.changed(this);
    }
    resize() {
        const r = this.holder.getBoundingClientRect();
        this.ratio = Math.min(3, window.devicePixelRatio || 1);
        this.width = Math.max(1, r.width);
        this.height = Math.max(1, r.height);
        this.canvas.width = Math.round(this.width * this.ratio);
        this.canvas.height = Math.round(this.height * this.ratio);
        this.draw();
    }
    draw() {
        if (this.pending)
            return;
        this.pending = requestAnimationFrame(() => {
            this.pending = 0;
            const begin = performance.now();
            this.painter.paint();
            this.paintTime = performance.now() - begin;
        });
    }
    paintNow() {
        if (this.pending)
            cancelAnimationFrame(this.pending);
        this.pending = 0;
        this.painter.paint();
    }
    leastScale() {
        if (!this.root)
            return 0.01;
        return Math.min(1, 0.8 * Math.min(this.width / Math.max(1, this.root.width), this.height / Math.max(1, this.root.height)));
    }
    // Shows all of it or, if text would be too small, its top.
    fit(whole) {
        if (!this.root)
            return;
        const a = this.root, k = Math.min((this.width - 40) / Math.max(1, a.width), (this.height - 40) / Math.max(1, a.height), 1.2);
        this.scale = whole ? k : Math.max(k, Math.min(0.75, (this.width - 40) / Math.max(1, a.width)), 0.6);
        if (!whole && this.scale > k) {
            // The top of a wide graph may be far from its middle.
            const s = a.scope;
            let x = a.width / 2;
            for (let b = 0; b < s.count; b++)
                if (a.y[b] < 40) {
                    x = a.x[b] + a.w[b] / 2;
                    break;
                }
            this.x = a.width * this.scale < this.width ? (this.width - a.width * this.scale) / 2 : this.width / 2 - x * this.scale;
            this.y = 20;
        } else {
            this.x = (this.width - a.width * this.scale) / 2;
            this.y = Math.max(20, (this.height - a.height * this.scale) / 2);
        }
        this.draw();
    }
    zoom(factor, x, y) {
        const scale = Math.min(4, Math.max(this.leastScale(), this.scale * factor));
        const cx = x === undefined ? this.width / 2 : x, cy = y === undefined ? this.height / 2 : y;
        this.x = cx - (cx - this.x) * scale / this.scale;
        this.y = cy - (cy - this.y) * scale / this.scale;
        this.scale = scale;
        this.draw();
    }
    pan(dx, dy) {
        this.x += dx;
        this.y += dy;
        this.draw();
    }
    // Centers a box that is not fully in view.
    reveal(area, box, always) {
        const [ox, oy] = area.origin();
        if (always && this.scale < 0.5)
            this.scale = 0.85;
        const k = this.scale, x = this.x + (ox + area.x[box]) * k, y = this.y + (oy + area.y[box]) * k;
        const w = area.w[box] * k, h = area.h[box] * k, m = 40;
        if (always || x < m || y < m || x + w > this.width - m || y + h > this.height - m) {
            this.x += this.width / 2 - x - Math.min(w, this.width - 2 * m) / 2;
            this.y += this.height / 2 - y - Math.min(h, this.height - 2 * m) / 2;
        }
        this.draw();
    }
    select(area, box, from) {
        this.selected = area ? { area, box } : null;
        this.chosen = null;
        this.app.changed(this, from);
        this.draw();
    }
    // For a box of any scope: opens the boxes around it.
    go(scope, box) {
        const way = this.model.pathTo(scope);
        if (!way.root)
            return;
        if (!this.root || this.root.scope !== way.root)
            this.show(way.root);
        let area = this.root;
        for (const step of way.path) {
            area.openBox(step.box);
            const parts = area.opened(step.box);
            if (!parts || !parts[step.which])
                return;
            area = parts[step.which].area;
        }
        if (box < 0) {
            this.select(null);
            return;
        }
        this.select(area, box);
        this.reveal(area, box, true);
    }
    toggle(area, box) {
        if (!area.scope.hasInner(box))
            return;
        const [ox, oy] = area.origin(), k = this.scale, before = [(ox + area.x[box]) * k + this.x, (oy + area.y[box]) * k + this.y];
        if (area.open.has(box))
            area.closeBox(box);
        else
            area.openBox(box);
        // Keeps its corner in place.
        const [nx, ny] = area.origin();
        this.x = before[0] - (nx + area.x[box]) * k;
        this.y = before[1] - (ny + area.y[box]) * k;
        if (this.selected && this.selected.area !== area)
            this.select(area, box);
        this.app.changed(this);
        this.draw();
    }
    // The arrows of the selected box, in its own area.
    chosenArrows(area) {
        if (!this.selected || this.selected.area !== area || this.selected.box < 0)
            return null;
        if (!this.chosen) {
            const a = area.scope.arrows(), b = this.selected.box, trunk = area.scope.raw.edges.trunk;
            this.chosen = new Set();
            for (const list of [a.into(b), a.out(b)])
                for (let e of list)
                    for (; e >= 0 && !this.chosen.has(e); e = trunk[e])
                        this.chosen.add(e);
        }
        return this.chosen;
    }
    // ---- hit testing ----
    hit(px, py) {
        const x = (px - this.x) / this.scale, y = (py - this.y) / this.scale, near = 2 / this.scale;
        const look = (area, lx, ly) => {
            let best = -1;
            for (const i of area.items().query(lx - near, ly - near, lx + near, ly + near))
                if (i < area.scope.count && (best < 0 || area.x[i] <= lx))
                    best = i;
            if (best < 0)
                return null;
            for (const part of area.open.get(best) || []) {
                const found = look(part.area, lx - part.area.dx, ly - part.area.dy);
                if (found)
                    return found;
            }
            return { area, box: best, opener: area.scope.hasInner(best) && lx - area.x[best] < 20 && ly - area.y[best] < HEADER };
        };
        return this.root ? look(this.root, x, y) : null;
    }
    // ---- mouse, touch ----
    listen() {
        const c = this.canvas, fingers = new Map();
        let moved = 0, spread = 0;
        const place = e => {
            const r = c.getBoundingClientRect();
            return [e.clientX - r.left, e.clientY - r.top];
        };
        c.addEventListener("pointerdown", e => {
            this.app.activate(this);
            c.setPointerCapture(e.pointerId);
            fingers.set(e.pointerId, place(e));
            moved = 0;
            spread = 0;
        });
        c.addEventListener("pointermove", e => {
            const now = place(e), before = fingers.get(e.pointerId);
            if (!before) {
                this.point(now);
                return;
            }
            moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
            fingers.set(e.pointerId, now);
            if (fingers.size === 2) {
                const [a, b] = [...fingers.values()], d = Math.hypot(a[0] - b[0], a[1] - b[1]);
                if (spread)
                    this.zoom(d / spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
                spread = d;
            } else if (moved > 3) {
                this.pan(now[0] - before[0], now[1] - before[1]);
                c.classList.add("moving");
            }
        });
        const end = e => {
            const at = fingers.get(e.pointerId);
            fingers.delete(e.pointerId);
            c.classList.remove("moving");
            if (at && e.type === "pointerup" && moved <= 3 && !fingers.size)
                this.click(at);
        };
        c.addEventListener("pointerup", end);
        c.addEventListener("pointercancel", end);
        c.addEventListener("pointerleave", () => this.point(null));
        c.addEventListener("dblclick", e => {
            const found = this.hit(...place(e));
            if (found && !found.opener)
                this.toggle(found.area, found.box);
        });
        c.addEventListener("wheel", e => {
            e.preventDefault();
            const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 200 : 1;
            if (e.shiftKey && !e.ctrlKey)
                this.pan(-(e.deltaX || e.deltaY) * unit, 0);
            else
                this.zoom(Math.exp(-Math.max(-240, Math.min(240, e.deltaY * unit)) * (e.ctrlKey ? 0.01 : 0.002)), ...place(e));
        }, { passive: false });
        c.addEventListener("keydown", e => this.app.key(e, this));
        c.addEventListener("focus", () => this.app.activate(this));
    }
    point(at) {
        const found = at ? this.hit(...at) : null, before = this.hover;
        if ((found && before && found.area === before.area && found.box === before.box) || (!found && !before))
            return;
        this.hover = found;
        this.canvas.style.cursor = found ? "pointer" : "";
        this.app.tip(this, found);
        this.draw();
    }
    click(at) {
        const found = this.hit(...at);
        if (!found)
            this.select(null);
        else if (found.opener)
            this.toggle(found.area, found.box);
        else
            this.select(found.area, found.box);
        this.canvas.focus();
    }
    // ---- keyboard navigation ----
    walk(key) {
        const here = this.selected;
        if (!here) {
            if (this.root && this.root.scope.count)
                this.selectAndReveal(this.root, 0);
            return;
        }
        const { area, box } = here, s = area.scope, arrows = s.arrows();
        if (key === "ArrowDown" || key === "ArrowUp") {
            const list = key === "ArrowDown" ? arrows.out(box) : arrows.into(box);
            if (list.length)
                this.selectAndReveal(area, key === "ArrowDown" ? s.to[list[0]] : s.from[list[0]]);
            return;
        }
        // The nearest box on that side at about the same height.
        const side = key === "ArrowRight" ? 1 : -1, cx = area.x[box] + area.w[box] / 2, cy = area.y[box] + area.h[box] / 2;
        let best = -1, least = Infinity;
        const reach = 1e4;
        for (const i of area.items().query(side > 0 ? cx : cx - reach, cy - 60, side > 0 ? cx + reach : cx, cy + 60)) {
            if (i >= s.count || i === box)
                continue;
            const dx = (area.x[i] + area.w[i] / 2 - cx) * side, dy = Math.abs(area.y[i] + area.h[i] / 2 - cy);
            if (dx > 0 && dx + 3 * dy < least) {
                least = dx + 3 * dy;
                best = i;
            }
        }
        if (best >= 0)
            this.selectAndReveal(area, best);
    }
    selectAndReveal(area, box) {
        this.select(area, box);
        this.reveal(area, box, false);
    }
}
