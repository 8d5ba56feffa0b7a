// overlay.js - overlays of the drawing: the times of nodes, and the differences between two models.

// Steps of a run are identified by name and operator; steps without names by their order, if that is the order of the nodes.
function layProfile(model) {
    const profile = model.raw.profile;
    if (!profile)
        return;
    const named = new Map(), bare = new Map();
    for (const s of profile.steps) {
        const list = s.name ? named : bare, key = s.name ? s.op + "\n" + s.name : s.op;
        list.has(key) ? list.get(key).push(s) : list.set(key, [s]);
    }
    const total = profile.steps.reduce((n, s) => n + s.ms, 0), most = Math.max(...profile.steps.map(s => s.ms), 1e-9);
    for (const s of model.scopes) {
        s.heat = new Float32Array(s.count);
        s.times = [];
        const unnamed = new Map();
        for (let b = s.raw.first_node; b < s.raw.first_node + s.raw.node_count; b++) {
            const op = s.title(b), name = s.name(b);
            let steps = name ? named.get(op + "\n" + name) : null;
            if (!name && s === model.main && bare.has(op)) {
                const n = unnamed.get(op) || 0;
                unnamed.set(op, n + 1);
                steps = bare.get(op)[n] ? [bare.get(op)[n]] : null;
            }
            if (!steps)
                continue;
            const ms = steps.reduce((n, t) => n + t.ms, 0);
            s.heat[b] = Math.min(1, Math.sqrt(ms / most));
            s.times[b] = { ms, share: ms / total, kernel: steps[0].kernel, fused: steps[0].post_ops };
        }
    }
    model.profile = { total, run: profile.run_ms, operators: profile.operators };
}

function layDifferences(models, differences) {
    const note = (model, scope, box, d) => {
        const s = model.scopes[scope];
        if (!s || box < 0)
            return;
        s.mark = s.mark || [];
        s.differences = s.differences || new Map();
        s.mark[box] = { removed: "-", added: "+", changed: "~" }[d.a_box >= 0 && d.b_box >= 0 ? "changed" : d.what];
        s.differences.has(box) ? s.differences.get(box).push(d) : s.differences.set(box, [d]);
    };
    const weights = new Map();
    for (const d of differences) {
        note(models[0], d.a_scope, d.a_box, d);
        note(models[1], d.b_scope, d.b_box, d);
        if (/(^|\.)initializer$/.test(d.where))
            weights.set(d.name, d);
        // Inputs and outputs are boxes, too.
        const port = d.where === "graph.input" ? INPUT : d.where === "graph.output" ? OUTPUT : 0;
        if (port)
            models.forEach((m, i) => {
                for (let b = 0; m.main && b < m.main.count; b++)
                    if (m.main.kind[b] === port && m.main.title(b) === d.name)
                        note(m, m.main.index, b, { ...d, a_box: i ? -1 : b, b_box: i ? b : -1 });
            });
    }
    // A weight that differs marks the nodes that use it.
    if (weights.size)
        models.forEach((m, i) => {
            const s = m.main;
            for (let b = 0; s && b < s.count; b++)
                for (const v of s.list("input", b)) {
                    const name = v >= 0 && s.raw.values.tensor[v] >= 0 ? s.text(s.raw.values.name[v]) : null;
                    if (name !== null && weights.has(name)) {
                        const d = weights.get(name);
                        note(m, s.index, b, { ...d, name: "weight " + d.name, what: "changed" });
                        if (!i && d.a_box < 0 && d.b_box < 0) {
                            d.a_scope = s.index;
                            d.a_box = b;
                        }
                    }
                }
        });
}

// The corresponding box of the other model: by name, else by its outputs.
function counterpart(scope, box, other) {
    if (!other.counterparts) {
        other.counterparts = new Map();
        for (const s of other.scopes)
            for (let b = 0; b < s.count; b++)
                for (const key of counterpartKeys(s, b))
                    if (!other.counterparts.has(key))
                        other.counterparts.set(key, { scope: s, box: b });
    }
    for (const key of counterpartKeys(scope, box))
        if (other.counterparts.has(key))
            return other.counterparts.get(key);
    return null;
}

function counterpartKeys(s, b) {
    const where = s.kind[b] + " " + s.raw.kind + "\n", keys = [];
    if (s.name(b))
        keys.push("name " + where + s.name(b));
    for (const v of s.list("output", b).slice(0, 1))
        if (v >= 0)
            keys.push("output " + where + s.text(s.raw.values.name[v]));
    return keys;
}
