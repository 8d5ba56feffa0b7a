// panel.js - the panel beside the drawing: about the model, a node, a scope, a finding. Text of a model becomes text nodes
// only, never markup.

function el(tag, set, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(set || {}))
        if (k === "data")
            Object.assign(e.dataset, v);
        else
            e[k] = v;
    e.append(...children.filter(c => c !== null && c !== undefined && c !== ""));
    return e;
}

function thousands(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, ","); }
function bytesText(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let u = 0;
    while (n >= 1024 && u < 4) {
        n /= 1024;
        u++;
    }
    return (u ? n.toFixed(n < 10 ? 2 : 1) : n) + " " + units[u];
}
function numberText(v) {
    return typeof v !== "number" ? String(v) : Number.isInteger(v) && Math.abs(v) < 1e9 ? String(v) : Number(v.toPrecision(6)).toString();
}
function timeText(ms) { return ms >= 1000 ? (ms / 1000).toFixed(2) + " s" : ms >= 1 ? ms.toFixed(2) + " ms" : (ms * 1000).toFixed(1) + " µs"; }
function domainText(d) { return d || "ai.onnx"; }

class Panel {
    constructor(app, holder) {
        this.app = app;
        this.holder = holder;
    }
    fill(...parts) {
        this.holder.replaceChildren(...parts.filter(p => p));
        this.holder.scrollTop = 0;
    }
    section(title, ...content) {
        const parts = content.flat().filter(c => c);
        return parts.length ? el("section", {}, el("h3", {}, title), ...parts) : null;
    }
    rows(list) {
        const table = el("dl", { className: "rows" });
        for (const [key, value] of list)
            if (value !== "" && value !== null && value !== undefined)
                table.append(el("dt", {}, key), el("dd", {}, value instanceof Node ? value : String(value)));
        return table.childElementCount ? table : null;
    }
    prose(text) { return text ? el("p", { className: "prose" }, text) : null; }
    // A link to a box.
    link(pane, scope, box, text) {
        const b = el("button", { className: "link", type: "button" }, text || "(no name)");
        b.addEventListener("click", () => pane.go(scope, box));
        return b;
    }
    // ---- findings ----
    finding(pane, f) {
        const where = f.scope >= 0 ? pane.model.scopes[f.scope] : null;
        const item = el("li", { className: "finding " + f.severity },
            el("span", { className: "word" }, f.severity), f.rule ? el("span", { className: "rule" }, f.rule) : "",
            el("span", { className: "message" }, f.message),
            f.value ? el("div", { className: "more" }, "found: " + f.value) : "",
            f.expected ? el("div", { className: "more" }, "expected: " + f.expected) : "",
            f.hint ? el("div", { className: "more" }, "hint: " + f.hint) : "");
        if (f.line)
            item.append(el("div", { className: "more" }, `line ${f.line}, column ${f.column}`), f.excerpt ? el("pre", {}, f.excerpt) : "");
        else if (f.byte !== undefined)
            item.append(el("div", { className: "more" }, "byte " + f.byte));
        if (f.path)
            item.append(where && f.box >= 0 ? this.link(pane, where, f.box, f.path) : el("div", { className: "more path" }, f.path));
        return item;
    }
    findings(pane, list, title) {
        if (!list.length)
            return null;
        const MOST = 500, items = el("ul", { className: "findings" });
        for (const f of list.slice(0, MOST))
            items.append(this.finding(pane, f));
        return this.section(`${title} (${thousands(list.length)})`, items, list.length > MOST ? this.prose("and more") : null);
    }
    // ---- tensors ----
    histogram(t) {
        const W = 260, H = 64, most = Math.max(...t.histogram, 1), ns = "http://www.w3.org/2000/svg";
        const svg = document.createElementNS(ns, "svg");
        svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
        svg.setAttribute("class", "histogram");
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", `histogram from ${numberText(t.min)} to ${numberText(t.max)}`);
        t.histogram.forEach((n, i) => {
            const w = W / t.histogram.length, h = n ? Math.max(1, (H - 2) * n / most) : 0, r = document.createElementNS(ns, "rect");
            for (const [k, v] of Object.entries({ x: i * w + 0.5, y: H - h, width: w - 1, height: h }))
                r.setAttribute(k, v);
            svg.append(r);
        });
        return el("figure", {}, svg, el("figcaption", {}, el("span", {}, numberText(t.min)), el("span", {}, numberText(t.max))));
    }
    tensor(t) {
        const parts = [this.rows([
            ["type", t.type], ["elements", t.elements === undefined ? "" : thousands(t.elements)],
            ["size", t.bytes === undefined ? "" : bytesText(t.bytes)], ["file", t.location || ""],
        ])];
        if (t.unreadable)
            parts.push(this.prose("Its elements cannot be read."));
        if (t.read !== undefined)
            parts.push(this.rows([
                ["range", t.min === undefined ? "" : t.min === t.max ? "all " + numberText(t.min) : `${numberText(t.min)} to ${numberText(t.max)}`],
                ["mean", t.mean === undefined || t.elements < 2 ? "" : numberText(t.mean)],
                ["deviation", t.std === undefined || t.elements < 2 ? "" : numberText(t.std)],
                ["zeros", t.zero ? `${thousands(t.zero)} (${(100 * t.zero / t.read).toFixed(1)} %)` : ""],
                ["NaN", t.nan ? thousands(t.nan) : ""], ["infinite", t.infinite ? thousands(t.infinite) : ""],
                ["of a part", t.read < t.elements ? `${thousands(t.read)} elements were read` : ""],
            ]));
        if (t.histogram)
            parts.push(this.histogram(t));
        if (t.first && t.first.length)
            parts.push(el("div", { className: "elements" }, "[" + t.first.map(numberText).join(", ") + (t.elements > t.first.length ? ", …" : "") + "]"));
        return el("div", { className: "tensor" }, ...parts.filter(p => p));
    }
    // ---- values of a node ----
    value(pane, scope, v, port, others) {
        if (!v)
            return el("li", { className: "value" }, el("span", { className: "port" }, port ? port.name : ""), el("span", { className: "soft" }, "left out"));
        const item = el("li", { className: "value" }, el("span", { className: "port" }, port ? port.name : ""));
        item.append(el("span", { className: "name" }, v.name));
        item.append(el("span", { className: "type" }, v.type || "type unknown"));
        if (port && port.meaning)
            item.append(el("div", { className: "meaning" }, port.meaning));
        if (v.doc)
            item.append(el("div", { className: "more" }, v.doc));
        if (others.length) {
            const line = el("div", { className: "ways" });
            others.slice(0, 12).forEach(b => line.append(this.link(pane, scope, b, scope.title(b))));
            if (others.length > 12)
                line.append(`and ${others.length - 12} more`);
            item.append(line);
        }
        if (v.tensor) {
            const d = el("details", { open: (v.tensor.elements || 0) > 1 }, el("summary", {}, "weight"), this.tensor(v.tensor));
            item.append(d);
        }
        return item;
    }
    values(pane, scope, box, what, ports) {
        const list = scope.list(what, box), a = scope.arrows(), items = el("ul", { className: "values" });
        list.forEach((number, i) => {
            const v = scope.value(number);
            const others = !v ? [] : what === "input" ? (v.box >= 0 ? [v.box] : [])
                : [...a.out(box)].filter(e => scope.raw.edges.value[e] === number).map(e => scope.to[e]);
            items.append(this.value(pane, scope, v, ports ? ports[Math.min(i, ports.length - 1)] : null, others));
        });
        return this.section(what === "input" ? "Inputs" : "Outputs", list.length ? items : null);
    }
    // ---- a box ----
    operator(op) {
        if (!op)
            return null;
        const parts = [this.prose(op.summary), el("code", { className: "signature" }, op.signature)];
        if (op.deprecated)
            parts.push(this.prose("The operator is deprecated."));
        parts.push(this.rows([["domain", domainText(op.domain)], ["version", op.since_version], ["changed", op.change], ["family", op.family]]));
        for (const a of op.attributes)
            parts.push(el("div", { className: "word" }, el("b", {}, a.name), ` ${a.type.toLowerCase()}${a.required ? ", required" : a.default !== undefined ? " = " + a.default : ""}`,
                a.meaning ? el("div", { className: "meaning" }, a.meaning) : ""));
        return el("details", { open: true, className: "operator" }, el("summary", {}, "What " + op.name + " does"), ...parts.filter(p => p));
    }
    attributes(op, list) {
        if (!list.length)
            return null;
        const table = el("dl", { className: "rows" });
        for (const a of list) {
            const known = op && op.attributes.find(o => o.name === a.name);
            table.append(el("dt", { title: a.type.toLowerCase() }, a.name), el("dd", {}, a.tensor ? this.tensor(a.tensor) : a.type === "STRING" ? `"${a.text}"` : a.text,
                known && known.meaning ? el("div", { className: "meaning" }, known.meaning) : ""));
        }
        return this.section("Attributes", table);
    }
    node(pane, scope, box) {
        const op = scope.operator(box), n = scope.raw.nodes, findings = pane.model.findings.filter(f => f.scope === scope.index && f.box === box);
        const meta = scope.raw.node_metadata.find(m => m.box === box), time = scope.times && scope.times[box];
        const inner = scope.inner(box).map(i => {
            const b = el("button", { type: "button", className: "link" }, (i.name || "graph") + ": " + i.scope.label() + ", " + thousands(i.scope.raw.node_count) + " nodes");
            b.addEventListener("click", () => pane.go(scope, box) || pane.toggle(pane.selected.area, box));
            return b;
        });
        this.fill(
            el("h2", {}, scope.title(box) || "(no operator)"),
            el("div", { className: "sub" }, scope.name(box) || "no name"),
            this.difference(scope, box),
            this.findings(pane, findings, "Findings"),
            this.rows([["domain", scope.domain(box)], ["time", time ? `${timeText(time.ms)} (${(100 * time.share).toFixed(1)} %)` : ""], ["kernel", time && time.kernel ? time.kernel + (time.fused ? `, with ${time.fused} node${time.fused === 1 ? "" : "s"} behind it` : "") : ""], ["in", scope.raw.kind === "graph" ? "" : scope.label()]]),
            this.prose(scope.text(n.doc[box])),
            this.section("Opens", inner),
            this.attributes(op, scope.attributes(box)),
            this.values(pane, scope, box, "input", op && op.inputs),
            this.values(pane, scope, box, "output", op && op.outputs),
            meta ? this.section("Metadata", this.rows(meta.metadata)) : null,
            op ? this.operator(op) : scope.hasInner(box) ? null : this.prose("The operator is not known in the operator sets that are imported."));
    }
    difference(scope, box) {
        const list = scope.differences && scope.differences.get(box);
        if (!list)
            return null;
        const items = el("ul", { className: "differences" });
        for (const d of list)
            items.append(el("li", { className: d.what }, this.differenceText(d)));
        return this.section("Differences", items);
    }
    differenceText(d) {
        const words = { added: "only in the second", removed: "only in the first", changed: "changed" };
        return [d.name || words[d.what], d.a ? d.a : "", d.b ? (d.a ? "→ " : "") + d.b : ""].filter(t => t).join("  ");
    }
    port(pane, scope, box) {
        const words = ["", "input", "output", "from the graph around", "weight that is an output", "made by nothing"];
        const v = scope.value(scope.raw.nodes.value[box]), a = scope.arrows();
        const ends = [...new Set([...[...a.out(box)].map(e => scope.to[e]), ...[...a.into(box)].map(e => scope.from[e])])];
        const ways = el("div", { className: "ways" });
        ends.slice(0, 50).forEach(b => ways.append(this.link(pane, scope, b, scope.title(b))));
        this.fill(el("h2", {}, v.name || "(no name)"), el("div", { className: "sub" }, words[scope.kind[box]]), this.difference(scope, box),
            this.findings(pane, pane.model.findings.filter(f => f.scope === scope.index && f.box === box), "Findings"),
            this.rows([["type", v.type || "unknown"]]), this.prose(v.doc),
            ends.length ? this.section(scope.kind[box] === OUTPUT ? "Made by" : "Used by", ways) : null,
            v.tensor ? this.section("Weight", this.tensor(v.tensor)) : null);
    }
    // ---- the model ----
    model(pane) {
        const m = pane.model, r = m.raw, scope = pane.root ? pane.root.scope : null;
        if (!m.scopes.length) {
            this.fill(el("h2", {}, r.file), this.prose(r.scopes ? "The model has no graph." : "The file cannot be read as a model."), this.findings(pane, m.findings, "Findings"));
            return;
        }
        const counts = new Map();
        let nodes = 0;
        for (const s of m.scopes)
            for (let b = s.raw.first_node; b < s.raw.first_node + s.raw.node_count; b++, nodes++)
                counts.set(s.raw.nodes.title[b], (counts.get(s.raw.nodes.title[b]) || 0) + 1);
        const ops = [...counts].sort((a, b) => b[1] - a[1]), bytes = m.tensors.reduce((n, t) => n + (t.bytes || 0), 0);
        const list = el("ul", { className: "counts" });
        for (const [id, n] of ops.slice(0, 60)) {
            const b = el("button", { type: "button", className: "link" }, m.strings[id]);
            b.addEventListener("click", () => this.app.find(m.strings[id]));
            list.append(el("li", {}, b, el("span", {}, thousands(n))));
        }
        const ports = kind => {
            const items = el("ul", { className: "values" });
            let n = 0;
            for (let b = 0; scope && b < scope.count && n < 100; b++)
                if (scope.kind[b] === kind && ++n) {
                    const v = scope.value(scope.raw.nodes.value[b]);
                    items.append(el("li", { className: "value" }, this.link(pane, scope, b, v.name), el("span", { className: "type" }, v.type || "type unknown")));
                }
            return n ? items : null;
        };
        const sum = m.findings.filter(f => f.severity !== "note").length;
        this.fill(
            el("h2", {}, r.file), el("div", { className: "sub" }, scope ? scope.label() : ""),
            this.prose(r.doc), this.prose(scope && scope.raw.doc),
            this.app.differences ? this.allDifferences(pane) : null,
            sum ? this.findings(pane, m.findings.filter(f => f.severity !== "note"), "Findings") : null,
            this.rows([
                ["nodes", thousands(nodes)], ["weights", m.tensors.length ? `${thousands(m.tensors.length)}, ${bytesText(bytes)}` : ""],
                ["IR version", r.ir_version], ["operator sets", r.opset_import.map(o => domainText(o.domain) + " " + o.version).join(", ")],
                ["producer", [r.producer_name, r.producer_version].filter(t => t).join(" ")], ["domain", r.domain], ["version", r.model_version || ""],
                ["functions", m.scopes.filter(s => s.raw.kind === "function").length || ""],
                ["run", m.profile ? timeText(m.profile.run) : ""],
            ]),
            m.profile ? this.section("Time", this.rows(m.profile.operators.map(o => [o.op, `${timeText(o.ms)} (${(100 * o.ms / m.profile.total).toFixed(1)} %), ${o.steps} step${o.steps === 1 ? "" : "s"}`]))) : null,
            this.section("Inputs", ports(INPUT)), this.section("Outputs", ports(OUTPUT)),
            r.metadata.length ? this.section("Metadata", this.rows(r.metadata)) : null,
            this.section("Operators", list),
            m.findings.length > sum ? this.findings(pane, m.findings.filter(f => f.severity === "note"), "Notes") : null);
    }
    allDifferences() {
        const d = this.app.differences, items = el("ul", { className: "differences" }), MOST = 500;
        for (const one of d.slice(0, MOST)) {
            const item = el("li", { className: one.what });
            const pane = one.b_box >= 0 ? this.app.panes[1] : this.app.panes[0], side = one.b_box >= 0 ? "b" : "a";
            const text = `${one.where} ${this.differenceText(one)}`;
            item.append(one[side + "_box"] >= 0 ? this.link(pane, pane.model.scopes[one[side + "_scope"]], one[side + "_box"], text) : text);
            items.append(item);
        }
        return this.section(`Differences (${thousands(d.length)})`, d.length ? items : this.prose("none"), d.length > MOST ? this.prose("and more") : null);
    }
    show(pane) {
        const s = pane.selected;
        if (!s || s.box < 0)
            this.model(pane);
        else if (s.area.scope.kind[s.box] === NODE)
            this.node(pane, s.area.scope, s.box);
        else
            this.port(pane, s.area.scope, s.box);
    }
}
