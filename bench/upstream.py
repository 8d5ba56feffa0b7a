#!/usr/bin/env python3
"""Lists the differences of operator schemas and element types between onx and the installed packages onnx and onnxruntime:
upstream.py [--onx build/onx]. Exit status 1 if there are any without a reason in the table below, 77 if onnx is not
installed. docs/notes/upstream.md says how it is used after a release."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

MICROSOFT = ("com.microsoft", "com.microsoft.nchwc")

# Differences that are meant: the operator version, what of it differs (a regular expression for all of its lines), the reason.
BEFORE_1 = "an operator of before 1.0, in files of old exporters"
EXPLAINED = {
    **{"ai.onnx %s-1" % name: ("EXTRA", BEFORE_1)
       for name in ("Affine Crop DynamicSlice ImageScaler LayerNormalization MeanVarianceNormalization ParametricSoftplus Scale ScaledTanh "
                    "SimplifiedLayerNormalization ThresholdedRelu").split()},
    "com.microsoft.nchwc BlockSize-1": ("EXTRA", "an operator of onx's own, for the layout of channels in blocks"),
    "com.microsoft AttnLSTM-1": (r"\+\{tensor\(double\)\} -\{\}", "onnxruntime's own kernel refuses double when it runs"),
    "com.microsoft FusedGemm-1": (r"\+\{tensor\(uint32\), tensor\(uint64\)\} -\{\}", "no runtime has a kernel of unsigned integers, and Relu does not take them"),
    "com.microsoft GridSample-1": (r"(inputs [01]): \+\{tensor\(bool\).*\} -\{\}", "no kernel of onnxruntime takes types other than floating-point ones"),
    "com.microsoft ExpandDims-1": (r"\+\{\} -\{tensor\(bfloat16\)\}", "onx takes more, as kernels of onnxruntime do"),
    "com.microsoft GatherND-1": (r"\+\{\} -\{tensor\(bfloat16\)\}", "onx takes more, as kernels of onnxruntime do"),
    "com.microsoft SkipLayerNormalization-1": (r"\+\{\} -\{tensor\(double\)\}", "onx takes more, as kernels of onnxruntime do"),
    "com.microsoft SkipSimplifiedLayerNormalization-1": (r"\+\{\} -\{tensor\(double\)\}", "onx takes more, as kernels of onnxruntime do"),
    "com.microsoft SparseToDenseMatMul-1": (r"\+\{\} -\{tensor", "onx takes dense operands, too"),
    "com.microsoft NGramHashMapping-1": (r"(inputs|outputs) \d: (\w+) T (\w+ \{.*\}), upstream \2 M \3$", "the constraint has another name"),
    "com.microsoft.nchwc Upsample-1": (r"attribute scales: INTS True, upstream INTS False", "its kernel fails without scales"),
}


def reason_of(key, lines):
    """Why the operator version differs in these lines; None if there is no reason for all of them."""
    pattern, reason = EXPLAINED.get(key, (None, None))
    return reason if pattern and all(re.search(pattern, line) for line in lines) else None


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
        facts["default of %s" % a["name"]] = shorten(a.get("default"))
    return facts


def shorten(value):
    """A default as a text that does not depend on how numbers are written."""
    if isinstance(value, str) and value.startswith("["):
        value = json.loads(value)
    if isinstance(value, (list, tuple)):
        return " ".join(shorten(v) for v in value) or "none"
    if isinstance(value, bytes):
        value = value.decode()
    try:
        return "none" if value is None else "%.6g" % float(value)
    except ValueError:
        return str(value).strip('"') or "none"


def default_of(attribute):
    value = getattr(attribute, "default_value", None)
    if value is None:  # of onnxruntime, as bytes
        import onnx
        value = onnx.AttributeProto.FromString(attribute._default_value)
    field = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}.get(value.type)
    found = getattr(value, field) if field else None
    return list(found) if field and value.type > 5 else found


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
        facts["default of %s" % name] = shorten(default_of(a))
    return facts


def say(fact):
    return " ".join("{" + ", ".join(sorted(x)) + "}" if isinstance(x, frozenset) else str(x) for x in fact) if isinstance(fact, tuple) else str(fact)


def describe(a, b):
    """Says how two facts differ; of sets of types, only the types that one side lacks."""
    if isinstance(a, tuple) and isinstance(b, tuple) and isinstance(a[-1], frozenset) and a[:3] == b[:3]:
        return "+{%s} -{%s}" % (", ".join(sorted(b[3] - a[3])), ", ".join(sorted(a[3] - b[3])))
    return "%s, upstream %s" % (say(a), say(b))


def compare(title, mine, schemas, out):
    theirs = {(s.domain, s.name, s.since_version): s for s in schemas}
    name = lambda key: "%s %s-%d" % (key[0] or "ai.onnx", key[1], key[2])
    out.append("%s: %d schemas; onx has %d in these domains" % (title, len(theirs), len(mine)))
    count = len(theirs.keys() - mine.keys())
    meant = []
    out += ["MISSING in onx: " + name(k) for k in sorted(theirs.keys() - mine.keys())]
    for key in sorted(mine.keys() - theirs.keys()):
        reason = reason_of(name(key), ["EXTRA"])
        count += not reason
        meant += [(name(key), reason)] if reason else []
        out += [] if reason else ["EXTRA in onx: " + name(key)]
    for key in sorted(mine.keys() & theirs.keys()):
        a, b = facts_of_onx(mine[key]), facts_of_schema(theirs[key])
        for fact in [f for f in a if f.startswith("default of ") and key[0] in MICROSOFT and b.get(f) == "none"]:
            del a[fact], b[fact]  # it is in the text of the schema only
        lines = ["    %s: %s" % (f, describe(a.get(f, "none"), b.get(f, "none"))) for f in sorted(a.keys() | b.keys()) if a.get(f) != b.get(f)]
        reason = reason_of(name(key), lines) if lines else None
        if reason:
            meant.append((name(key), reason))
        elif lines:
            count += 1
            out += ["DIFF " + name(key)] + lines
    out += ["meant: %s: %s" % m for m in meant]
    return count


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
    print("%d schemas or types are missing or differ without a reason" % count)
    return count != 0


if __name__ == "__main__":
    sys.exit(main())
