// data.js - the data of the page as models and scopes, and areas: scopes as drawn on the screen, with the boxes that are open
// in them. The format is explained in docs/notes/view.md.

const NODE = 0, INPUT = 1, OUTPUT = 2, OUTER = 3, INITIALIZER = 4, MISSING = 5;
const BACK = 1, FAR = 2;
const HEADER = 24, PADDING = 14, GAP = 28, LABEL = 18;

// JSON of a page. Direction marks, with which a name can look like another one, become what they are called; the program
// writes them so on a terminal, too.
const MARKS = /[\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
function parsed(json) {
    const shown = text => text.replace(MARKS, c => `\\u${c.charCodeAt(0).toString(16)}`);
    return json.search(MARKS) < 0 ? JSON.parse(json) : JSON.parse(json, (key, v) => typeof v === "string" ? shown(v) : v);
}

function starts(counts) {
    const out = new Int32Array(counts.length + 1);
    for (let i = 0; i < counts.length; i++)
        out[i + 1] = out[i] + counts[i];
    return out;
}

class Scope {
    constructor(model, raw, index) {
        const b = raw.boxes, e = raw.edges;
        this.model = model;
        this.raw = raw;
        this.index = index;
        this.kind = Uint8Array.from(b.kind);
        this.count = b.kind.length;
        for (const k of ["x", "y", "w", "h"])
            this[k] = Int32Array.from(b[k]);
        this.rowStart = starts(b.row_count);
        this.inputStart = starts(b.input_count);
        this.outputStart = starts(b.output_count);
        this.attributeStart = starts(b.attribute_count);
        this.innerStart = starts(b.inner_count);
        this.from = Int32Array.from(e.from);
        this.to = Int32Array.from(e.to);
        this.flags = Uint8Array.from(e.flags);
        this.pointStart = starts(e.points);
        this.at = Int32Array.from(e.at);
        this.width = raw.width;
        this.height = raw.height;
        // Arrays of numbers that have been replaced by typed copies.
        b.x = b.y = b.w = b.h = b.kind = e.at = e.points = e.from = e.to = e.flags = null;
        this.worst = new Uint8Array(this.count); // worst finding: 1 note, 2 warning, 3 error
        this.below = new Uint8Array(this.count); // the same for the contents of the box
        this.heat = null;                        // time per box from 0 to 1, if there is a profile
        this.mark = null;                        // difference per box: 0, "-", "+" or "~"
    }
    text(id) { return this.model.strings[id]; }
    title(box) { return this.text(this.raw.nodes.title[box]); }
    name(box) { return this.text(this.raw.nodes.name[box]); }
    domain(box) { return this.text(this.raw.nodes.domain[box]); }
    list(what, box) {
        const s = this[what + "Start"];
        return this.raw.boxes[what + "s"].slice(s[box], s[box + 1]);
    }
    rows(box) { return this.list("row", box).map(id => this.text(id)); }
    hasInner(box) { return this.innerStart[box + 1] > this.innerStart[box]; }
    inner(box) {
        const out = [];
        for (let i = this.innerStart[box]; i < this.innerStart[box + 1]; i++)
            out.push({ name: this.text(this.raw.boxes.inner[2 * i]), scope: this.model.scopes[this.raw.boxes.inner[2 * i + 1]] });
        return out;
    }
    operator(box) {
        const op = this.raw.boxes.op[box];
        return op < 0 ? null : this.model.operators[op];
    }
    attributes(box) {
        const a = this.model.raw.attributes;
        return this.list("attribute", box).map(i => ({
            name: this.text(a.name[i]), text: this.text(a.text[i]), type: this.text(a.type[i]),
            tensor: a.tensor[i] < 0 ? null : this.model.tensors[a.tensor[i]],
        }));
    }
    value(v) {
        if (v < 0)
            return null;
        const raw = this.raw.values;
        return {
            number: v, name: this.text(raw.name[v]), type: this.text(raw.type[v]), box: raw.box[v], doc: this.text(raw.doc[v]),
            tensor: raw.tensor[v] < 0 ? null : this.model.tensors[raw.tensor[v]],
        };
    }
    // Arrows at each box, computed on first use.
    arrows() {
        if (!this.arrowLists) {
            const make = ends => {
                const count = new Int32Array(this.count + 1);
                for (const b of ends)
                    count[b + 1]++;
                for (let i = 0; i < this.count; i++)
                    count[i + 1] += count[i];
                const list = new Int32Array(ends.length), next = count.slice();
                for (let i = 0; i < ends.length; i++)
                    list[next[ends[i]]++] = i;
                return box => list.subarray(count[box], count[box + 1]);
            };
            this.arrowLists = { into: make(this.to), out: make(this.from) };
        }
        return this.arrowLists;
    }
    label() {
        const name = this.raw.name || "";
        const words = { graph: "main graph", function: "function", training: "training", initialization: "initialization of training", subgraph: "subgraph" };
        return this.raw.kind === "graph" ? words.graph + (name ? " " + name : "") : words[this.raw.kind] + " " + name;
    }
}

class Model {
    constructor(raw) {
        this.raw = raw;
        this.strings = raw.strings || [];
        this.operators = raw.operators || [];
        this.tensors = raw.tensors || [];
        this.findings = raw.findings || [];
        this.scopes = [];
        (raw.scopes || []).forEach((s, i) => this.scopes.push(new Scope(this, s, i)));
        for (const t of this.tensors) {
            t.name = this.strings[t.name];
            t.type = this.strings[t.type];
        }
        this.main = this.scopes.find(s => s.raw.kind === "graph") || this.scopes[0] || null;
        this.roots = this.scopes.filter(s => s.raw.kind !== "subgraph");
        this.findCallers();
        this.pin();
    }
    // The location of each scope, for the search. A function is located where it is called first.
    findCallers() {
        for (const s of this.scopes)
            for (let b = 0; b < s.count && s.innerStart[s.count]; b++)
                for (let i = s.innerStart[b]; i < s.innerStart[b + 1]; i++) {
                    const inner = this.scopes[s.raw.boxes.inner[2 * i + 1]];
                    if (!inner.caller || (inner.caller.scope.raw.kind === "function" && s.raw.kind !== "function"))
                        inner.caller = { scope: s, box: b, which: i - s.innerStart[b] };
                }
    }
    pin() {
        const rank = { note: 1, warning: 2, error: 3 };
        for (const f of this.findings) {
            let s = this.scopes[f.scope], box = f.box;
            if (s && box >= 0)
                s.worst[box] = Math.max(s.worst[box], rank[f.severity]);
            for (let depth = 0; s && s.caller && depth < 100; depth++) {
                const c = s.caller;
                c.scope.below[c.box] = Math.max(c.scope.below[c.box], rank[f.severity]);
                s = c.scope;
            }
        }
    }
    // The boxes to open, beginning at a root, to show the scope.
    pathTo(scope) {
        const path = [], seen = new Set();
        while (scope && scope.caller && scope !== this.main && !seen.has(scope)) {
            seen.add(scope);
            path.unshift(scope.caller);
            scope = scope.caller.scope;
        }
        return { root: scope, path };
    }
}

// Maps positions along one axis so that order and distances are kept, but each interval [from, to, length] gets the room that
// it needs.
function stretch(intervals) {
    const ends = [...new Set(intervals.flatMap(i => [i[0], i[1]]))].sort((a, b) => a - b);
    const place = new Map(ends.map((v, k) => [v, k]));
    const until = ends.map(() => []);
    for (const i of intervals)
        until[place.get(i[1])].push(i);
    const f = [];
    ends.forEach((v, k) => {
        f[k] = k ? f[k - 1] + v - ends[k - 1] : v;
        for (const [from, , length] of until[k])
            f[k] = Math.max(f[k], f[place.get(from)] + length);
    });
    return v => {
        let low = 0, high = ends.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (ends[middle] <= v)
                low = middle + 1;
            else
                high = middle;
        }
        return low ? f[low - 1] + v - ends[low - 1] : v;
    };
}

// The name of an open box is above its contents.
function partWidth(part) {
    return Math.max(60, part.area.width, Math.min(200, 7.5 * part.name.length + 8));
}

class Area {
    constructor(scope, up, box) {
        this.scope = scope;
        this.up = up || null; // the enclosing area, and the box in it
        this.box = box;
        this.open = new Map(); // box: [{name, area, x, y}]
        this.dx = this.dy = 0; // position in the enclosing area
        this.place();
    }
    opened(box) { return this.open.get(box) || null; }
    openBox(box) {
        if (this.open.has(box) || !this.scope.hasInner(box))
            return;
        this.open.set(box, this.scope.inner(box).map(i => ({ name: i.name, area: new Area(i.scope, this, box) })));
        this.placeUp();
    }
    closeBox(box) {
        if (this.open.delete(box))
            this.placeUp();
    }
    placeUp() {
        for (let a = this; a; a = a.up)
            a.place();
    }
    // Without open boxes, the positions of the scope; otherwise a copy of them with room for the open boxes.
    place() {
        const s = this.scope;
        this.tree = null;
        if (!this.open.size) {
            this.x = s.x; this.y = s.y; this.w = s.w; this.h = s.h; this.at = s.at;
            this.width = s.width; this.height = s.height;
            return;
        }
        const across = [], down = [];
        const w = Int32Array.from(s.w), h = Int32Array.from(s.h);
        for (const [b, parts] of this.open) {
            let right = PADDING, low = 0;
            for (const p of parts) {
                p.x = right;
                p.y = HEADER + PADDING + LABEL;
                right += partWidth(p) + GAP;
                low = Math.max(low, p.area.height);
            }
            w[b] = Math.max(s.w[b], right - GAP + PADDING);
            h[b] = HEADER + 2 * PADDING + LABEL + low;
            across.push([s.x[b], s.x[b] + s.w[b], w[b]]);
            down.push([s.y[b], s.y[b] + s.h[b], h[b]]);
        }
        const fx = stretch(across), fy = stretch(down);
        const x = new Int32Array(s.count), y = new Int32Array(s.count);
        for (let i = 0; i < s.count; i++) {
            const left = fx(s.x[i]), right = fx(s.x[i] + s.w[i]);
            x[i] = left + ((right - left - w[i]) >> 1);
            y[i] = fy(s.y[i]);
        }
        const at = new Int32Array(s.at.length);
        const end = (p, b) => {
            const px = s.at[p] - s.x[b], py = s.at[p + 1] - s.y[b];
            if (px < 0 || py < 0 || px > s.w[b] || py > s.h[b])
                return;
            at[p] = x[b] + Math.round(px * w[b] / s.w[b]);
            at[p + 1] = y[b] + Math.round(py * h[b] / s.h[b]);
        };
        for (let e = 0; e < s.from.length; e++) {
            const first = 2 * s.pointStart[e], last = 2 * s.pointStart[e + 1] - 2;
            for (let p = first; p <= last; p += 2) {
                at[p] = fx(s.at[p]);
                at[p + 1] = fy(s.at[p + 1]);
            }
            if (last >= first) {
                end(first, s.from[e]);
                end(last, s.to[e]);
            }
        }
        for (const [b, parts] of this.open)
            for (const p of parts) {
                p.area.dx = x[b] + p.x;
                p.area.dy = y[b] + p.y;
            }
        this.x = x; this.y = y; this.w = w; this.h = h; this.at = at;
        this.width = fx(s.width);
        this.height = fy(s.height);
        for (let i = 0; i < s.count; i++)
            this.width = Math.max(this.width, x[i] + w[i]);
    }
    // Items below scope.count are boxes, the others are arrows.
    items() {
        if (this.tree)
            return this.tree;
        if (this.x === this.scope.x && this.scope.tree)
            return this.tree = this.scope.tree;
        const s = this.scope, n = s.count, total = n + s.from.length, r = new Float64Array(4 * total);
        for (let i = 0; i < n; i++) {
            r[4 * i] = this.x[i]; r[4 * i + 1] = this.y[i];
            r[4 * i + 2] = this.x[i] + this.w[i]; r[4 * i + 3] = this.y[i] + this.h[i];
        }
        for (let e = 0; e < s.from.length; e++) {
            let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
            for (let p = 2 * s.pointStart[e]; p < 2 * s.pointStart[e + 1]; p += 2) {
                x0 = Math.min(x0, this.at[p]); x1 = Math.max(x1, this.at[p]);
                y0 = Math.min(y0, this.at[p + 1]); y1 = Math.max(y1, this.at[p + 1]);
            }
            const at = 4 * (n + e);
            r[at] = x0; r[at + 1] = y0; r[at + 2] = x1; r[at + 3] = y1;
        }
        this.tree = new Tree(r, this.width, this.height);
        if (this.x === s.x)
            s.tree = this.tree;
        return this.tree;
    }
    // The origin of the area in the outermost area.
    origin() {
        let x = 0, y = 0;
        for (let a = this; a.up; a = a.up) {
            x += a.dx;
            y += a.dy;
        }
        return [x, y];
    }
}
