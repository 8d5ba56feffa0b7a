#!/usr/bin/env python3
"""Lists the differences of operator schemas and element types between onx and the installed packages onnx and onnxruntime:
upstream.py [--onx build/onx]. Exit status 1 if there are any, 77 if onnx is not installed. docs/notes/upstream.md says
how it is used after a release."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

MICROSOFT = ("com.microsoft", "com.microsoft.nchwc")

# Differences that are meant: (domain, operator), what differs ("" for the operator itself), which is the beginning of a line's name, and why. An entry that explains
# nothing is reported.
MEANT = [
    ("com.microsoft", "AttnLSTM", "", "double: onnxruntime's own kernel refuses it when it runs"),
    ("com.microsoft", "ExpandDims", "", "bfloat16, too: copies of elements take any type"),
    ("com.microsoft", "GatherND", "", "bfloat16, too: copies of elements take any type"),
    ("com.microsoft", "FusedGemm", "", "unsigned integers: no runtime has a kernel, and Relu does not take them"),
    ("com.microsoft", "GridSample", "", "integers, texts and complex numbers as images and grids: the only kernel of onnxruntime is for float, and no text gives them a meaning"),
    ("com.microsoft", "SkipLayerNormalization", "", "double, too: onnxruntime has kernels for it, which its schema does not list"),
    ("com.microsoft", "SkipSimplifiedLayerNormalization", "", "double, too: onnxruntime has kernels for it, which its schema does not list"),
    ("com.microsoft", "SparseToDenseMatMul", "inputs 0", "dense tensors, too: they replace sparse ones where a model is stored dense"),
    ("com.microsoft.nchwc", "BlockSize", "", "onx's own: how many channels a block has on this processor"),
]


def of_onx(program, domains):
    """Every version of every operator of onx, by (domain, name, version)."""
    found = {}
    for domain in domains:
        for opset in range(1, 64 if domain == "" else 8):
            made = subprocess.run([program, "ops", "--json", "--domain", domain or "ai.onnx", "--opset", str(opset)], capture_output=True, text=True)
            if made.returncode:
                continue
            before = len(found)
            for op in json.loads(made.stdout):
                found.setdefault((op["domain"], op["name"], op["since_version"]), op)
            if opset > 30 and len(found) == before:
                break
    return found


def plain(text):
    return re.sub(r"\s+", "", text)


def kind(attribute):
    return str(attribute.type).split(".")[-1]


def facts_of_onx(op):
    types = {name: {plain(t) for t in allowed} for name, allowed in op["type_constraints"].items()}
    facts = {"deprecated": bool(op["deprecated"]), "arity": tuple(op[k] for k in ("min_input", "max_input", "min_output", "max_output"))}
    for side in ("inputs", "outputs"):
        for i, p in enumerate(op[side]):
            facts["%s %d" % (side, i)] = (p["name"], plain(p["type"]), p.get("option", "single"), frozenset(types.get(p["type"], {plain(p["type"])})))
    for a in op["attributes"]:
        facts["attribute %s" % a["name"]] = (a["type"], bool(a["required"]))
    return facts


def facts_of_schema(s):
    types = {t.type_param_str: {plain(x) for x in t.allowed_type_strs} for t in s.type_constraints}
    facts = {"deprecated": bool(s.deprecated), "arity": tuple(None if n >= 0x7fffffff else n for n in (s.min_input, s.max_input, s.min_output, s.max_output))}
    for side in ("inputs", "outputs"):
        for i, p in enumerate(getattr(s, side)):
            type_text = getattr(p, "type_str", None) or p.typeStr
            option = str(p.option).split(".")[-1].lower()
            facts["%s %d" % (side, i)] = (p.name, plain(type_text), option, frozenset(types.get(type_text, {plain(type_text)})))
    for name, a in s.attributes.items():
        facts["attribute %s" % name] = (kind(a), bool(a.required))
    return facts


def say(fact):
    return " ".join("{" + ", ".join(sorted(x)) + "}" if isinstance(x, frozenset) else str(x) for x in fact) if isinstance(fact, tuple) else str(fact)


def describe(a, b):
    """Says how two facts differ; of sets of types, only the types that one side lacks."""
    if isinstance(a, tuple) and isinstance(b, tuple) and isinstance(a[-1], frozenset) and a[:3] == b[:3]:
        return "+{%s} -{%s}" % (", ".join(sorted(b[3] - a[3])), ", ".join(sorted(a[3] - b[3])))
    return "%s, upstream %s" % (say(a), say(b))


def is_meant(key, fact, used):
    for row in MEANT:
        if row[:2] == key[:2] and fact.startswith(row[2]):
            used.add(row)
            return True
    return False


def compare(title, mine, schemas, out):
    used = set()
    theirs = {(s.domain, s.name, s.since_version): s for s in schemas}
    name = lambda key: "%s %s-%d" % (key[0] or "ai.onnx", key[1], key[2])
    out.append("%s: %d schemas; onx has %d in these domains" % (title, len(theirs), len(mine)))
    count = len(theirs.keys() - mine.keys())
    out += ["MISSING in onx: " + name(k) for k in sorted(theirs.keys() - mine.keys())]
    out += ["EXTRA in onx: " + name(k) for k in sorted(mine.keys() - theirs.keys()) if not is_meant(k, "", used)]
    for key in sorted(mine.keys() & theirs.keys()):
        a, b = facts_of_onx(mine[key]), facts_of_schema(theirs[key])
        lines = ["    %s: %s" % (f, describe(a.get(f, "none"), b.get(f, "none"))) for f in sorted(a.keys() | b.keys())
                 if a.get(f) != b.get(f) and not is_meant(key, f, used)]
        if lines:
            count += 1
            out += ["DIFF " + name(key)] + lines
    idle = [row for row in MEANT if row not in used and any(s.domain == row[0] for s in schemas)]
    out += ["MEANT, but there is no difference: %s %s %s" % row[:3] for row in idle]
    out += ["meant: %s %s %s: %s" % row for row in MEANT if row in used]
    return count + len(idle)


def compare_types(program, onnx, out):
    """Element types of the package that onx does not know: it refuses an empty tensor of the type."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.textproto")
        for name, number in onnx.TensorProto.DataType.items():
            with open(path, "w") as f:
                f.write("dims: 0 data_type: %d" % number)
            if number and subprocess.run([program, "check", "--as", "tensor", path], capture_output=True).returncode:
                out.append("TYPE missing in onx: %s (%d)" % (name, number))
                count += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onx", default="build/onx", help="the program")
    args = parser.parse_args()
    out, count = [], 0
    try:
        import onnx
        import onnx.defs
    except ImportError:
        print("skipped: the package onnx is not installed")
        return 77
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain not in MICROSOFT]
    count += compare("onnx " + onnx.__version__, of_onx(args.onx, sorted({s.domain for s in schemas})), schemas, out)
    count += compare_types(args.onx, onnx, out)
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state
        schemas = [s for s in state.get_all_operator_schema() if s.domain in MICROSOFT]
        count += compare("onnxruntime " + onnxruntime.__version__, of_onx(args.onx, MICROSOFT), schemas, out)
    except ImportError:
        out.append("onnxruntime is not installed: its operators were not compared")
    print("\n".join(out))
    print("%d schemas or types are missing or differ" % count)
    return count != 0


if __name__ == "__main__":
    sys.exit(main())
