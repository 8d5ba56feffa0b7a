// export.js - the drawing as SVG, including the contents of open boxes, for files and for printing.

function svgText(s) {
    // Characters that XML does not allow, and unpaired surrogates, are replaced.
    return s.slice(0, 2000).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd")
        .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

class Drawing {
    constructor(pane, theme) {
        this.pane = pane;
        this.theme = theme;
        this.out = [];
        this.measure = document.createElement("canvas").getContext("2d");
    }
    put(s) { this.out.push(s); }
    text(s, x, y, width, { size = 11, bold = false, middle = false, color = this.theme.soft } = {}) {
        this.measure.font = `${bold ? "600 " : ""}${size}px system-ui, sans-serif`;
        const fitted = this.pane.painter.fit(this.measure, s, width);
        this.put(`<text x="${x}" y="${y}" font-size="${size}"${bold ? ' font-weight="600"' : ""}${middle ? ' text-anchor="middle"' : ""} fill="${color}">${svgText(fitted)}</text>`);
    }
    arrow(area, e) {
        const s = area.scope, at = area.at, from = 2 * s.pointStart[e], to = 2 * s.pointStart[e + 1] - 2, far = s.flags[e] & FAR;
        if (to <= from)
            return;
        let d = `M${at[from]} ${at[from + 1]}`;
        for (let q = from + 2; q <= to; q += 2) {
            const bend = (at[q + 1] - at[q - 1]) / 2;
            d += at[q] === at[q - 2] ? `L${at[q]} ${at[q + 1]}` : `C${at[q - 2]} ${at[q - 1] + bend} ${at[q]} ${at[q + 1] - bend} ${at[q]} ${at[q + 1]}`;
        }
        this.put(`<path d="${d}" fill="none" stroke="${far ? this.theme.far : this.theme.edge}" stroke-width="1.2"${far ? ' stroke-dasharray="6 5"' : ""}/>`);
        const up = s.flags[e] & BACK ? -1 : 1, x = at[to], y = at[to + 1];
        this.put(`<path d="M${x} ${y}L${x - 3.5} ${y - 7 * up}L${x + 3.5} ${y - 7 * up}Z" fill="${this.theme.edge}"/>`);
        const shape = shapeText(s.text(s.raw.values.type[s.raw.edges.value[e]]));
        if (shape && !(s.flags[e] & (FAR | BACK)) && s.raw.edges.trunk[e] < 0)
            this.text(shape, at[from] + 5, at[from + 1] + 12, 120, { size: 10 });
    }
    box(area, b) {
        const s = area.scope, t = this.theme, x = area.x[b], y = area.y[b], w = area.w[b], h = area.h[b];
        const port = s.kind[b] !== NODE, opened = area.open.get(b), rows = s.rowStart[b + 1] - s.rowStart[b], head = port || (!rows && !opened) ? h : HEADER;
        const family = port ? t.port : t.families[(s.operator(b) || { family: "custom" }).family] || t.families.custom;
        const fill = !port && s.heat && this.pane.app.colors === "profile" ? heatColor(t, s.heat[b]) : family.head;
        const dash = s.kind[b] === OUTER || s.kind[b] === MISSING ? ' stroke-dasharray="4 3"' : "", mark = s.mark && s.mark[b];
        const line = mark ? (mark === "+" ? t.added : mark === "-" ? t.removed : t.changed) : s.kind[b] === MISSING ? t.error : t.line;
        this.put(`<g><title>${svgText(s.name(b) || s.title(b))}</title>`);
        this.put(`<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="${port ? h / 2 : 6}" fill="${opened ? t.frame : port ? fill : t.card}" stroke="${line}"${mark ? ' stroke-width="2.5"' : ""}${dash}/>`);
        if (!port)
            this.put(`<path d="M${x} ${y + 6}a6 6 0 0 1 6 -6h${w - 12}a6 6 0 0 1 6 6v${head - (head === h ? 12 : 6)}${head === h ? `a6 6 0 0 1 -6 6h${12 - w}a6 6 0 0 1 -6 -6` : `h${-w}`}z" fill="${fill}"/>`);
        this.text(s.title(b) || "(no name)", x + w / 2, y + head / 2 + 4, w - 12, { size: 12, bold: !port, middle: true, color: t.ink });
        for (let i = 0; i < rows && !opened; i++)
            this.text(s.text(s.raw.boxes.rows[s.rowStart[b] + i]), x + 8, y + HEADER + 14 + 15 * i, w - 16);
        if (s.worst[b] > 1)
            this.put(`<circle cx="${x + w - 1}" cy="${y + 1}" r="5" fill="${s.worst[b] === 3 ? t.error : t.warning}"/>`);
        for (const part of opened || []) {
            this.text(part.name, x + part.x, y + HEADER + PADDING / 2 + 13, partWidth(part), { bold: true });
            this.put(`<g transform="translate(${part.area.dx} ${part.area.dy})">`);
            this.area(part.area);
            this.put("</g>");
        }
        this.put("</g>");
    }
    area(area) {
        const s = area.scope;
        for (let e = 0; e < s.from.length; e++)
            this.arrow(area, e);
        for (let b = 0; b < s.count; b++)
            this.box(area, b);
    }
    svg() {
        const a = this.pane.root, m = 16;
        this.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="${-m} ${-m} ${a.width + 2 * m} ${a.height + 2 * m}" width="${a.width + 2 * m}" height="${a.height + 2 * m}" font-family="system-ui, sans-serif">`);
        this.put(`<title>${svgText(this.pane.model.raw.file)}</title><rect x="${-m}" y="${-m}" width="${a.width + 2 * m}" height="${a.height + 2 * m}" fill="${this.theme.back}"/>`);
        this.area(a);
        this.put("</svg>");
        return this.out.join("\n") + "\n";
    }
}

const SVG_MOST = 20000; // most boxes; viewers of SVG are slow with more

function countBoxes(area) {
    let n = area.scope.count;
    for (const parts of area.open.values())
        for (const p of parts)
            n += countBoxes(p.area);
    return n;
}

function svgOf(pane, theme) {
    return pane.root && countBoxes(pane.root) <= SVG_MOST ? new Drawing(pane, theme || pane.theme).svg() : null;
}

function saveSvg(pane) {
    const text = svgOf(pane);
    if (!text)
        return false;
    const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    const link = el("a", { href: url, download: pane.model.raw.file.replace(/\.[^.]*$/, "") + ".svg" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    return true;
}

// Prints the drawing as vector graphics in light colours; a drawing that is too large is printed as on the screen.
function preparePrint(app) {
    const root = document.documentElement, before = root.dataset.theme, place = document.getElementById("paper");
    root.dataset.theme = "light";
    const theme = readTheme();
    root.dataset.theme = before;
    const text = countBoxes(app.active.root) <= 5000 ? svgOf(app.active, theme) : null;
    place.replaceChildren();
    if (!text) {
        place.append(el("img", { src: app.active.canvas.toDataURL() }));
        return;
    }
    const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    place.append(svg);
}
