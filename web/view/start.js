// start.js - the whole page.

const KEYS = [
    ["arrow keys", "from node to node"], ["Enter", "open or close what stands in a node"], ["+ and -", "zoom"], ["0", "all of it"], ["1", "the top, in readable size"],
    ["/", "search"], ["n and p", "next and previous finding"], ["i", "show or hide the side panel"], ["t", "dark or light"], ["c", "colours by time or by kind of operator, where times are known"], ["s", "save the drawing as SVG"], ["Esc", "select nothing"], ["?", "this list"],
];

class App {
    constructor(data) {
        const by = id => document.getElementById(id);
        this.parts = { graph: by("graph"), panel: by("panel"), scopes: by("scopes"), status: by("status"), tip: by("tip"), help: by("help"), found: by("found") };
        this.theme(this.stored("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"), true);
        this.panel = new Panel(this, this.parts.panel);
        this.search = new Search(this, by("search"), this.parts.found);
        const click = (id, f) => by(id).addEventListener("click", f);
        click("zoom-in", () => this.active.zoom(1.4));
        click("zoom-out", () => this.active.zoom(1 / 1.4));
        click("fit", () => this.active.fit(true));
        click("theme", () => this.toggleTheme());
        click("info", () => this.togglePanel());
        click("keys", () => this.help());
        click("save", () => this.save());
        click("colors", () => this.toggleColors());
        addEventListener("beforeprint", () => this.active.root && preparePrint(this));
        this.parts.scopes.addEventListener("change", () => this.active.show(this.active.model.roots[this.parts.scopes.value]));
        document.addEventListener("keydown", e => this.globalKey(e));
        const list = el("dl", { className: "rows" });
        for (const [key, what] of KEYS)
            list.append(el("dt", {}, key), el("dd", {}, what));
        this.parts.help.append(el("h2", {}, "Keys"), list, this.closer());
        this.open(data);
    }
    // Shows these models instead of the current ones.
    open(data) {
        HUES = data.hues;
        this.models = data.models.map(m => new Model(m));
        this.models.forEach(layProfile);
        this.differences = data.differences || null;
        if (this.differences)
            layDifferences(this.models, this.differences);
        this.colors = this.models.some(m => m.profile) ? "profile" : "family";
        document.getElementById("colors").hidden = this.colors !== "profile";
        this.findingAt = undefined;
        this.search.input.value = "";
        this.tip(null, null);
        const holders = this.models.map(() => el("div", { className: "pane" }));
        this.parts.graph.replaceChildren(...holders);
        this.panes = null;
        this.panes = this.models.map((m, i) => {
            const pane = new Pane(this, m, holders[i]);
            if (data.models.length > 1)
                pane.caption.textContent = m.raw.file;
            return pane;
        });
        this.active = this.panes[0];
        document.title = this.models.map(m => m.raw.file).join(" and ") + " - onx view";
        this.fillScopes();
        this.changed(this.active);
    }
    closer() {
        const b = el("button", { type: "button" }, "Close");
        b.addEventListener("click", () => this.parts.help.close());
        return b;
    }
    // Pages opened as files may have no storage; then nothing is stored.
    stored(key) {
        try {
            return localStorage.getItem("onx-view-" + key);
        } catch {
            return null;
        }
    }
    theme(name, first) {
        document.documentElement.dataset.theme = name;
        if (first)
            return;
        try {
            localStorage.setItem("onx-view-theme", name);
        } catch { /* as above */ }
        for (const p of this.panes) {
            p.theme = readTheme();
            p.draw();
        }
    }
    toggleTheme() { this.theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); }
    toggleColors() {
        if (!this.models.some(m => m.profile))
            return;
        this.colors = this.colors === "profile" ? "family" : "profile";
        this.panes.forEach(p => p.draw());
    }
    togglePanel() { document.body.classList.toggle("bare"); }
    save() {
        if (this.active.root && !saveSvg(this.active))
            this.parts.status.replaceChildren(el("span", { className: "warning" }, `More than ${thousands(SVG_MOST)} boxes are too many for SVG`));
    }
    help() { this.parts.help.showModal(); }
    activate(pane) {
        if (this.active === pane)
            return;
        this.active = pane;
        this.fillScopes();
        this.changed(pane);
    }
    fillScopes() {
        const m = this.active.model, s = this.parts.scopes;
        s.replaceChildren(...m.roots.map((r, i) => el("option", { value: i }, r.label())));
        s.hidden = m.roots.length < 2;
    }
    // The selection or view has changed.
    changed(pane) {
        if (!this.panel || pane !== this.active || !this.panes)
            return;
        this.panel.show(pane);
        this.follow(pane);
        const m = pane.model, s = pane.selected;
        if (pane.root)
            this.parts.scopes.value = m.roots.indexOf(pane.root.scope);
        const errors = m.findings.filter(f => f.severity === "error").length, warnings = m.findings.filter(f => f.severity === "warning").length;
        this.parts.status.replaceChildren(el("span", {}, s && s.box >= 0 ? `${s.area.scope.title(s.box)} ${s.area.scope.name(s.box)}` : pane.root ? `${thousands(pane.root.scope.raw.node_count)} node${pane.root.scope.raw.node_count === 1 ? "" : "s"}` : ""),
            errors ? el("span", { className: "error" }, `${thousands(errors)} error${errors === 1 ? "" : "s"}`) : "",
            warnings ? el("span", { className: "warning" }, `${thousands(warnings)} warning${warnings === 1 ? "" : "s"}`) : "");
    }
    // The other model shows the parts that correspond to the selection.
    follow(pane) {
        const other = this.panes.length === 2 ? this.panes[pane === this.panes[0] ? 1 : 0] : null, s = pane.selected;
        if (!other || !s || s.box < 0)
            return;
        const found = counterpart(s.area.scope, s.box, other.model);
        if (!found)
            other.select(null);
        else if (!other.selected || other.selected.area.scope !== found.scope || other.selected.box !== found.box)
            other.go(found.scope, found.box);
    }
    tip(pane, found) {
        const t = this.parts.tip;
        t.hidden = !found;
        if (!found)
            return;
        const s = found.area.scope, b = found.box;
        const v = s.kind[b] === NODE ? null : s.value(s.raw.nodes.value[b]);
        t.replaceChildren(el("b", {}, s.title(b)), " ", v ? v.type : s.name(b));
        const r = pane.holder.getBoundingClientRect(), [ox, oy] = found.area.origin();
        const x = (ox + found.area.x[b]) * pane.scale + pane.x, y = (oy + found.area.y[b]) * pane.scale + pane.y;
        t.style.left = Math.max(r.left + 4, Math.min(r.left + x, r.right - 200)) + "px";
        t.style.top = Math.max(r.top + 4, r.top + y - 30) + "px";
    }
    find(text) {
        const s = this.search.input;
        s.value = text;
        s.focus();
        this.search.run();
    }
    nextFinding(step) {
        const pane = this.active, list = pane.model.findings.filter(f => f.scope >= 0 && f.box >= 0);
        if (!list.length)
            return;
        this.findingAt = ((this.findingAt === undefined ? (step > 0 ? -1 : 0) : this.findingAt) + step + list.length) % list.length;
        const f = list[this.findingAt];
        pane.go(pane.model.scopes[f.scope], f.box);
    }
    // Keys while the drawing has the focus.
    key(e, pane) {
        if (e.ctrlKey || e.metaKey || e.altKey)
            return;
        const s = pane.selected;
        if (e.key.startsWith("Arrow"))
            e.shiftKey ? pane.pan({ ArrowLeft: 80, ArrowRight: -80 }[e.key] || 0, { ArrowUp: 80, ArrowDown: -80 }[e.key] || 0) : pane.walk(e.key);
        else if ((e.key === "Enter" || e.key === " ") && s && s.box >= 0)
            pane.toggle(s.area, s.box);
        else
            return;
        e.preventDefault();
    }
    globalKey(e) {
        if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || this.parts.help.open)
            return;
        const pane = this.active, does = {
            "+": () => pane.zoom(1.4), "=": () => pane.zoom(1.4), "-": () => pane.zoom(1 / 1.4), "0": () => pane.fit(true), "1": () => pane.fit(false),
            "/": () => this.search.input.select() || this.search.input.focus(), n: () => this.nextFinding(1), p: () => this.nextFinding(-1), i: () => this.togglePanel(),
            s: () => this.save(), c: () => this.toggleColors(), t: () => this.toggleTheme(), "?": () => this.help(), Escape: () => pane.select(null),
        }[e.key];
        if (!does)
            return;
        does();
        e.preventDefault();
    }
}

const holder = document.getElementById("data");
const begin = performance.now();
const data = parsed(holder.textContent);
const app = new App(data);
holder.remove();
app.startTime = performance.now() - begin;
// For tests, for pages that embed this page, and for additions to it (web/app).
app.el = el;
app.parsed = parsed;
window.onxView = app;
