#!/usr/bin/env python3
"""Compares the tree operators of ai.onnx.ml with onnxruntime, over drawn ensembles:  trees.py ONX [COUNT [SEED]]

For each ensemble, the results are also computed here, by the formulas below; onx has to give those always, and onnxruntime
has to give them too except where it contradicts the standard (`excuse`). It needs NumPy; without onnxruntime, only onx is
compared with the formulas, and a message says so."""
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

try:
    import onnxruntime
except ImportError:
    onnxruntime = None
    print("onnxruntime is not installed: onx is compared with the formulas only")

MODES = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"]
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
AGGREGATES = ["AVERAGE", "SUM", "MIN", "MAX"]
TEST = [lambda x, s: x <= s, lambda x, s: x < s, lambda x, s: x >= s, lambda x, s: x > s, lambda x, s: x == s,
        lambda x, s: x != s, lambda x, s: x in s]


# ---- ensembles ----

class Leaf:
    def __init__(self, votes):
        self.votes = votes  # (target, weight) pairs


class Node:
    def __init__(self, mode, feature, split, missing, yes, no):
        self.mode, self.feature, self.split, self.missing, self.yes, self.no = mode, feature, split, missing, yes, no


def draw_tree(r, depth, modes, columns, missing, vote):
    if depth == 0 or r.random() < 0.2:
        return Leaf(vote())
    mode = r.choice(modes)
    split = r.randint(-2, 3) / 2
    if mode == 6:
        split = sorted({float(r.randint(-1, 3)) for _ in range(r.randint(1, 4))})
    yes, no = (draw_tree(r, depth - 1, modes, columns, missing, vote) for _ in range(2))
    return Node(mode, r.randrange(columns), split, missing and r.random() < 0.5, yes, no)


def leaf_of(s, tree, row):
    while isinstance(tree, Node):
        x = row[tree.feature]
        missing = tree.missing or (s.op == "TreeEnsemble" and tree.mode == 5)
        tree = tree.yes if (missing if np.isnan(x) else TEST[tree.mode](x, tree.split)) else tree.no
    return tree


def draw(r):
    s = collections.namedtuple("Ensemble", [])  # a place for fields
    s.op = r.choice(["TreeEnsembleClassifier", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"])
    s.columns, s.rows = r.randint(1, 3), r.choice([1, 2, 5, 9, 21])
    s.transform = r.choice(TRANSFORMS + ["NONE"] * 3)
    s.how = 1 if s.op == "TreeEnsembleClassifier" else r.randrange(4)
    s.dtype = r.choice(["float", "float", "double"] + (["int64", "int32"] if s.op != "TreeEnsemble" else []))
    s.tensors = s.dtype == "double" and r.random() < 0.5
    s.targets = r.choice([1, 1, 2, 2, 2, 3, 7])
    s.strings = r.random() < 0.4
    s.labels = r.sample(range(-3, 12), s.targets)
    if s.targets == 1:  # onnxruntime ends the process for strings, and gives 1 whatever the label
        s.labels, s.strings = [1], False
    ids = list(range(s.targets))
    use = r.choice(["all", "all", "first", "last", "some"])
    s.ids = ids if use == "all" else ids[:1] if use == "first" else ids[-1:] if use == "last" else r.sample(ids, (s.targets + 1) // 2)
    low, high = r.choice([(-8, 8), (-8, 8), (0, 8), (-8, -1)])
    weight = lambda: r.randint(low, high) / 16
    sparse = r.random() < 0.4 and s.op != "TreeEnsemble"

    def vote():
        if s.op == "TreeEnsemble":
            return [(r.choice(s.ids), weight())]
        chosen = [i for i in s.ids if not sparse or r.random() < 0.5] or [r.choice(s.ids)]
        r.shuffle(chosen)
        return [(i, weight()) for i in chosen]

    modes = r.choice([[0], [r.randrange(6)], list(range(6))]) if s.op != "TreeEnsemble" else r.choice([[0], [6], list(range(7))])
    s.unequal = 5 in modes
    missing = r.random() < 0.5 and s.dtype in ("float", "double")
    s.trees = []
    for _ in range(r.choice([1, 1, 2, 5, 9])):
        tree = draw_tree(r, r.randint(0, 3), modes, s.columns, missing, vote)
        if s.op == "TreeEnsemble" and isinstance(tree, Leaf):  # the root is a node there
            tree = Node(0, 0, 0.5, False, tree, Leaf(vote()))
        s.trees.append(tree)
    s.base = None
    if s.op != "TreeEnsemble" and r.random() < 0.4:
        s.base = [r.randint(-8, 8) / 16 for _ in range(r.choice([1, s.targets]))]
        if len(s.base) == 1 < s.targets and not (s.op == "TreeEnsembleClassifier" and s.targets == 2 and s.ids == [0]):
            s.base = [s.base[0]] * s.targets
    s.x = np.array([[r.randint(-3, 4) / 2 for _ in range(s.columns)] for _ in range(s.rows)])
    if "int" in s.dtype or 6 in modes:  # onnxruntime looks for truncated numbers in sets
        s.x = np.round(s.x)
    if missing:
        s.x[np.array([[r.random() < 0.2 for _ in range(s.columns)] for _ in range(s.rows)])] = np.nan
    return s


# ---- the formulas ----

def transformed(name, a):
    a = np.array(a, np.float64)
    if len(a) == 1 and name != "PROBIT":
        return a
    with np.errstate(all="ignore"):
        if name == "LOGISTIC":
            return 1 / (1 + np.exp(-a))
        if name in ("SOFTMAX", "SOFTMAX_ZERO"):
            none = (np.abs(a) <= 1e-7) & (name == "SOFTMAX_ZERO")
            e = np.where(none, a * np.exp(-a.max()), np.exp(a - a.max()))
            return e / e.sum() if e.sum() else np.full(len(a), 0.5)
        if name == "PROBIT":  # Winitzki's approximation
            x = 2 * a - 1
            log = np.log((1 - x) * (1 + x))
            v = 2 / (np.pi * 0.147) + 0.5 * log
            y = 1.41421356 * np.where(x < 0, -1, 1) * np.sqrt(-v + np.sqrt(v * v - log / 0.147))
            return np.where((1 - x) * (1 + x) == 0, 0, y)
    return a


def sums_of(s, row):
    votes = [[] for _ in range(s.targets)]
    for tree in s.trees:
        for target, weight in leaf_of(s, tree, row).votes:
            votes[target].append(weight)
    if s.how < 2:
        sums = [sum(v) / (len(s.trees) if s.how == 0 else 1) for v in votes]
    else:
        sums = [min(v, default=0) if s.how == 2 else max(v, default=0) for v in votes]
    base = (s.base or [0] * s.targets) * (s.targets if s.base and len(s.base) == 1 else 1)
    return [a + b for a, b in zip(sums, base)], [bool(v) or s.base is not None for v in votes]


def all_votes(s):
    found, left = [], list(s.trees)
    while left:
        t = left.pop()
        if isinstance(t, Leaf):
            found += t.votes
        else:
            left += [t.yes, t.no]
    return found


def classified(s, row):
    """The label's index, None for no label, and the scores."""
    sums, voted = sums_of(s, row)
    votes = all_votes(s)
    positive = all(w >= 0 for _, w in votes)
    used = {i for i, _ in votes}
    if s.targets == 1:
        return 0 if sums[0] > 0 else None, transformed(s.transform, sums)
    if s.targets == 2 and used == {0}:
        odds = s.transform == "PROBIT" or (s.transform == "NONE" and positive)
        scores = transformed(s.transform, [(1 if odds else 0) - sums[0], sums[0]])
        best = 1 if np.isnan(scores[1]) and not np.isnan(scores[0]) or scores[1] > scores[0] else 0
        return best, scores
    scores = transformed(s.transform, sums)
    if s.targets == 2 and used == {1} and s.transform == "NONE" and positive and s.base is None:
        return int(sums[1] > 0.5), scores
    candidates = [i for i in range(s.targets) if voted[i] or s.targets == 2] or [0]
    return max(candidates, key=lambda i: (sums[i], -i)), scores


def expected(s):
    if s.op != "TreeEnsembleClassifier":
        return [np.array([transformed(s.transform, sums_of(s, row)[0]) for row in s.x])]
    labels, scores = zip(*[classified(s, row) for row in s.x])
    names = ["l%d" % n for n in s.labels] if s.strings else s.labels
    return [np.array([("" if s.strings else 0) if i is None else names[i] for i in labels]), np.array(scores)]


def excuse(s):
    """Why onnxruntime may give something else; None: it must not."""
    used = {i for i, _ in all_votes(s)}
    if s.op != "TreeEnsemble" and s.unequal and np.isnan(s.x).any():
        return "a NaN is not equal: it takes the other branch of BRANCH_NEQ than the attribute says"
    if s.op == "TreeEnsembleRegressor" and s.base and s.targets > 1:
        return "it adds no base value where there is no vote"
    if s.op == "TreeEnsemble" and s.targets > 1 and s.transform != "NONE":
        return "it does not transform scores without votes"
    if s.transform == "PROBIT":
        return "it does not clamp, and transforms only one of two scores"
    if s.op == "TreeEnsembleClassifier":
        if s.targets == 2 and used == {0} and s.transform != "NONE":
            return "two classes: it applies no softmax, and the label contradicts the probabilities if no vote is negative"
        if s.targets == 2 and used == {1} and (s.base or s.transform != "NONE"):
            return "two classes: it ignores base values or votes for the second class, or the label contradicts the probabilities"
        if s.targets == 2 and used == {0} and s.base and len(s.base) == 2:
            return "two classes: it ignores base values of the second class"
        if s.targets == 2 and len(used) == 2:
            return "two classes with votes: the label is 0 or 1, and 1 whenever the second score is positive"
        return None
    return None


# ---- models ----

class Lists(dict):
    def add(self, **items):
        for k, v in items.items():
            self.setdefault(k, []).append(v)


def written(values, kind, tensor=False):
    if kind == "string":
        return "[" + ", ".join(json.dumps(v) for v in values) + "]"
    if kind == "int":
        return "[" + ", ".join("%d" % v for v in values) + "]"
    if kind == "float" and not tensor:
        return "[" + ", ".join(repr(float(v)) for v in values) + "]"
    if kind == "uint8":
        return "uint8[%d] {%s}" % (len(values), ", ".join("%d" % v for v in values))
    return "%s[%d] {%s}" % (kind, len(values), ", ".join("nan" if v != v else repr(float(v)) for v in values))


def by_ids(s, votes):
    lists = Lists()
    for t, tree in enumerate(s.trees):
        order, i = [tree], 0
        while i < len(order):  # breadth first; the number of a node is its place
            n = order[i]
            i += 1
            if isinstance(n, Node):
                n.places = len(order), len(order) + 1
                order += [n.yes, n.no]
        for i, n in enumerate(order):
            inner = isinstance(n, Node)
            lists.add(nodes_treeids=t, nodes_nodeids=i, nodes_featureids=n.feature if inner else 0, nodes_values=n.split if inner else 0,
                      nodes_modes="BRANCH_" + MODES[n.mode] if inner else "LEAF", nodes_truenodeids=n.places[0] if inner else 0,
                      nodes_falsenodeids=n.places[1] if inner else 0, nodes_missing_value_tracks_true=int(inner and n.missing))
            for target, weight in [] if inner else n.votes:
                lists.add(**{votes + "_treeids": t, votes + "_nodeids": i, votes + "_ids": target, votes + "_weights": weight})
    if s.base:
        lists["base_values"] = s.base
    kinds = {k: "float" for k in ("nodes_values", votes + "_weights", "base_values")}
    kinds["nodes_modes"] = "string"
    attributes = []
    for k, v in lists.items():
        kind = kinds.get(k, "int")
        if kind == "float" and s.tensors:
            k, kind = k + "_as_tensor", "double"
        attributes.append("%s = %s" % (k, written(v, kind)))
    attributes.append('post_transform = "%s"' % s.transform)
    return attributes


def by_places(s):
    lists, members, leaves, roots = Lists(), [], [], []

    def leaf(n):
        leaves.append(n.votes[0])
        return len(leaves) - 1

    for tree in s.trees:
        order, first, i = [tree], len(lists.get("nodes_modes", [])), 0
        roots.append(first)
        while i < len(order):
            n = order[i]
            i += 1
            lists.add(nodes_modes=n.mode, nodes_featureids=n.feature, nodes_splits=0.0 if n.mode == 6 else n.split,
                      nodes_missing_value_tracks_true=int(n.missing))
            if n.mode == 6:
                members += n.split + [float("nan")]
            for side, name in (n.yes, "true"), (n.no, "false"):
                inner = isinstance(side, Node)
                lists.add(**{"nodes_%sleafs" % name: int(not inner), "nodes_%snodeids" % name: first + len(order) if inner else leaf(side)})
                if inner:
                    order.append(side)
    kinds = {"nodes_modes": "uint8", "nodes_splits": s.dtype}
    attributes = ["%s = %s" % (k, written(v, kinds.get(k, "int"), k == "nodes_splits")) for k, v in lists.items()]
    if members:
        attributes.append("membership_values = " + written(members, s.dtype, True))
    attributes.append("leaf_targetids = " + written([t for t, _ in leaves], "int"))
    attributes.append("leaf_weights = " + written([w for _, w in leaves], s.dtype, True))
    attributes.append("tree_roots = " + written(roots, "int"))
    return attributes + ["n_targets = %d" % s.targets, "aggregate_function = %d" % s.how, "post_transform = %d" % TRANSFORMS.index(s.transform)]


def model(s):
    outputs = "float[?, ?] y"
    if s.op == "TreeEnsemble":
        attributes, outputs = by_places(s), s.dtype + "[?, ?] y"
    elif s.op == "TreeEnsembleRegressor":
        attributes = by_ids(s, "target") + ["n_targets = %d" % s.targets, 'aggregate_function = "%s"' % AGGREGATES[s.how]]
    else:
        labels = 'classlabels_strings = ' + written(["l%d" % n for n in s.labels], "string") if s.strings else \
            "classlabels_int64s = " + written(s.labels, "int")
        attributes, outputs = by_ids(s, "class") + [labels], ("string" if s.strings else "int64") + "[?] z, float[?, ?] y"
    names = "z, y" if "z" in outputs else "y"
    version = 5 if s.op == "TreeEnsemble" else 3
    return '<ir_version: 9, opset_import: ["": 19, "ai.onnx.ml": %d]>\ng (%s[?, %d] x) => (%s) {\n  %s = ai.onnx.ml.%s <\n    %s> (x)\n}\n' % (
        version, s.dtype, s.columns, outputs, names, s.op, ",\n    ".join(attributes))


# ---- comparing ----

TYPES = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32}


def differs(got, want):
    for g, w in zip(got, want):
        if g.shape != w.shape:
            return "shape %s, expected %s" % (g.shape, w.shape)
        if w.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                near = (np.abs(g - w) <= 1e-5 * np.maximum(1, np.abs(w))) | (g == w) | (np.isnan(g) & np.isnan(w))
        else:
            near = g.astype(str) == w.astype(str)
        if not near.all():
            at = tuple(np.argwhere(~near)[0])
            return "%s at %s, expected %s" % (g[at], [int(i) for i in at], w[at])
    return ""


def run_onx(onx, folder, outputs):
    p = subprocess.run([onx, "run", "--threads", "1", folder + "/m.onnxtxt", "-i", "x=" + folder + "/x.npy", "--output-dir", folder + "/out", "--npy"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        return None, p.stderr.strip()
    return [np.load("%s/out/output_%d.npy" % (folder, i)) for i in range(outputs)], ""


def run_other(onx, folder, x):
    subprocess.run([onx, "convert", folder + "/m.onnxtxt", folder + "/m.onnx"], check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(folder + "/m.onnx", options, providers=["CPUExecutionProvider"]).run(None, {"x": x}), ""
    except Exception as e:
        return None, str(e).splitlines()[0][:150]


def main():
    onx, count, seed = sys.argv[1], int((sys.argv + ["200"])[2] if len(sys.argv) > 2 else 200), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    bad = 0
    notes = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(seed, seed + count):
            s = draw(random.Random(i))
            want, x = expected(s), s.x.astype(TYPES[s.dtype])
            with open(folder + "/m.onnxtxt", "w") as f:
                f.write(model(s))
            np.save(folder + "/x.npy", x)
            results = [("onx",) + run_onx(onx, folder, len(want))]
            if onnxruntime:
                results.append(("onnxruntime",) + run_other(onx, folder, x))
            for who, got, why in results:
                why = why or differs(got, want)
                excused = who == "onnxruntime" and excuse(s)
                if why and excused:
                    notes["onnxruntime: " + excused] += 1
                elif why and who == "onnxruntime" and got is None:
                    notes["onnxruntime refuses: " + why] += 1
                elif why:
                    bad += 1
                    print("seed %d, %s, %s, %s, targets %d, votes for %s, base %s, %s: %s" % (
                        i, who, s.op, s.transform, s.targets, sorted({t for t, _ in all_votes(s)}), s.base, s.dtype, why))
                else:
                    notes[who + " agrees"] += 1
    for k, n in sorted(notes.items()):
        print("%5d %s" % (n, k))
    print("%d differences" % bad)
    sys.exit(bad > 0)


main()
