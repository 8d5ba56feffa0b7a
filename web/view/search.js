// search.js - searches nodes and values by name or operator.

class Search {
    constructor(app, input, list) {
        this.app = app;
        this.input = input;
        this.list = list;
        this.at = -1;
        input.addEventListener("input", () => this.run());
        input.addEventListener("keydown", e => this.key(e));
        input.addEventListener("blur", () => setTimeout(() => { list.hidden = true; }, 150));
        input.addEventListener("focus", () => { if (input.value) this.run(); });
    }
    // Exact matches first, then prefixes, then substrings; at most MOST results.
    find(model, words) {
        const MOST = 200, lower = words.toLowerCase(), hits = new Map();
        model.strings.forEach((s, i) => {
            if (!s || s.length > 2000)
                return;
            const t = s.toLowerCase(), at = t.indexOf(lower);
            if (at >= 0)
                hits.set(i, t.length === lower.length ? 0 : at === 0 ? 1 : 2);
        });
        const found = [[], [], []];
        let count = 0;
        for (const s of model.scopes)
            for (let b = 0; b < s.count; b++) {
                const n = s.raw.nodes;
                let rank = hits.get(n.title[b]), by = "";
                const name = hits.get(n.name[b]);
                if (name !== undefined && (rank === undefined || name < rank))
                    rank = name;
                for (let i = s.outputStart[b]; i < s.outputStart[b + 1]; i++) {
                    const v = s.raw.boxes.outputs[i], r = v < 0 ? undefined : hits.get(s.raw.values.name[v]);
                    if (r !== undefined && (rank === undefined || r < rank)) {
                        rank = r;
                        by = s.text(s.raw.values.name[v]);
                    }
                }
                if (rank === undefined)
                    for (let i = s.inputStart[b]; i < s.inputStart[b + 1]; i++) {
                        const v = s.raw.boxes.inputs[i];
                        if (v >= 0 && s.raw.values.tensor[v] >= 0 && hits.has(s.raw.values.name[v])) {
                            rank = 2;
                            by = s.text(s.raw.values.name[v]);
                        }
                    }
                if (rank === undefined)
                    continue;
                count++;
                if (found[rank].length < MOST)
                    found[rank].push({ scope: s, box: b, by });
            }
        return { list: found.flat().slice(0, MOST), count };
    }
    run() {
        const words = this.input.value.trim(), pane = this.app.active;
        this.list.replaceChildren();
        this.hits = [];
        this.at = -1;
        this.list.hidden = !words;
        if (!words || !pane)
            return;
        const { list, count } = this.find(pane.model, words);
        this.hits = list;
        list.forEach((hit, i) => {
            const item = el("li", { role: "option" }, el("b", {}, hit.scope.title(hit.box) || "(no name)"), el("span", {}, hit.by || hit.scope.name(hit.box)),
                hit.scope === pane.model.main ? "" : el("i", {}, hit.scope.label()));
            item.addEventListener("pointerdown", e => {
                e.preventDefault();
                this.go(i);
            });
            this.list.append(item);
        });
        this.list.append(el("li", { className: "count" }, count ? thousands(count) + (count === 1 ? " place" : " places") : "nothing is called so"));
    }
    go(i) {
        if (!this.hits[i])
            return;
        this.at = i;
        [...this.list.children].forEach((c, k) => c.classList.toggle("chosen", k === i));
        this.list.children[i].scrollIntoView({ block: "nearest" });
        this.app.active.go(this.hits[i].scope, this.hits[i].box);
    }
    key(e) {
        if (e.key === "Enter" && this.hits && this.hits.length)
            this.go((this.at + (e.shiftKey ? this.hits.length - 1 : 1)) % this.hits.length);
        else if (e.key === "ArrowDown" && this.hits)
            this.go(Math.min(this.at + 1, this.hits.length - 1));
        else if (e.key === "ArrowUp" && this.hits)
            this.go(Math.max(this.at - 1, 0));
        else if (e.key === "Escape") {
            this.list.hidden = true;
            this.app.active.canvas.focus();
        } else
            return;
        e.preventDefault();
    }
}
