#!/usr/bin/env python3
"""Compares verdicts on random mutations of the models of the backend tests of the package onnx (types, ranks, sizes, attributes,
operands, operators, versions): onnx.checker.check_model with strict inference, and onx check --full. upstream_checker.py [--onx build/onx]
[--seed S] [--n N]. Exit status 1 if a verdict differs without a reason in the table below, 77 if onnx is not installed."""
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

from upstream_cases import start

# Differences with their reasons: (who accepts, message of the other one, reason).
EXPLAINED = [
    ("onx", r"No Op registered for (Affine|Crop|DynamicSlice|ImageScaler|LayerNormalization|MeanVarianceNormalization|ParametricSoftplus|"
     r"Scale|ScaledTanh|SimplifiedLayerNormalization|ThresholdedRelu) ", "operators of before 1.0, which onx knows"),
    ("onx", r"op_type:MeanVarianceNormalization.*op_type:Constant.*One and only one of", "the reference loses an attribute of its own function body"),
    ("onx", r"op_type:(Attention.*differ in dimension \d+: |Resize.*of input '\w+' )\(0\)", "the reference takes a size that is not known as 0"),
    ("onx", r"op_type:Attention.*Inferred shape and existing shape differ", "past_key without past_value, in versions before 25: the standard leaves the sizes open"),
    ("onx", r"op_type:(Max|Average|Lp)Pool.*Inferred shape and existing shape differ",
     "before version 22 the reference infers a last window with ceil_mode that begins in the padding"),
    ("onx", r"op_type:(Adam|Adagrad|Momentum)\): Output \d+ is out of bounds", "trailing outputs may be left out"),
    ("onx", r"op_type:Loop.*Inferred shape and existing shape differ in rank", "what a body declares of its outputs may be wrong, and only its nodes are believed"),
    ("onnx", r"\[G-20\]$", "declared types contradict the inferred ones: the reference does not compare those of all values"),
    ("onnx", r"\[ND-20\]$", "sizes, ranks or values that the operator refuses, and that the reference does not look at"),
    ("onnx", r"\[N-08\]$", "a symbol that has two sizes: the reference does not compare them"),
    ("onnx", r"variadic input .* has no name .*\[ND-14\]$", "the operands of a variadic input are not optional"),
    ("onnx", r"ai.onnx.preview(\.training)? has no operator .*\[ND-04\]$", "preview domains are known"),
    ("onnx", r"LayerNormalization-17 has no attribute of that name .*\[ND-17\]$", "the reference does not look at the attributes of LayerNormalization"),
]

OPERATORS = ["Relu", "Add", "Mod", "Cast", "Reshape", "Gather", "Softmax", "ReduceSum", "Transpose", "Concat", "Conv", "MatMul", "Identity", "Not", "And",
             "Where", "Clip", "Slice", "Pad", "TopK", "Unsqueeze", "Split", "Einsum", "BitShift", "Pow"]


def tensor_type(value):
    t = value.type
    while True:
        kind = t.WhichOneof("value")
        if kind == "tensor_type":
            return t.tensor_type
        if kind not in ("sequence_type", "optional_type"):
            return None
        t = getattr(t, kind).elem_type


def change_type(onnx, m, n, r):
    t = tensor_type(r.choice(list(m.graph.input) + list(m.graph.output)))
    what = r.choice(["type", "type", "rank", "size", "no shape", "symbol"])
    if t is None:
        return False
    if what == "type":
        t.elem_type = r.choice([x for x in onnx.TensorProto.DataType.values() if x])
    elif what == "no shape":
        t.ClearField("shape")
    elif what == "rank" and (r.random() < .5 or not t.shape.dim):
        t.shape.dim.add().dim_value = r.choice([1, 2, 3])
    elif not t.shape.dim:
        return False
    elif what == "rank":
        del t.shape.dim[r.randrange(len(t.shape.dim))]
    elif what == "size":
        r.choice(t.shape.dim).dim_value = r.choice([0, 1, 2, 3, 5, 7])
    else:
        r.choice(t.shape.dim).dim_param = r.choice("NM")
    return True


VALUES = {1: ("f", 1.5), 2: ("i", 1), 3: ("s", b"x"), 6: ("floats", [1.0]), 7: ("ints", [1, 0]), 8: ("strings", [b"x"])}


def change_attribute(onnx, m, n, r):
    what = r.choice(["drop", "value", "value", "type", "add"])
    if what == "add":
        n.attribute.append(onnx.helper.make_attribute(r.choice(["axis", "alpha", "foo", "axes", "keepdims"]), r.choice([1, 0.5, "s", [1]])))
        return True
    if not n.attribute:
        return False
    at = r.randrange(len(n.attribute))
    a = n.attribute[at]
    if what == "drop":
        del n.attribute[at]
    elif what == "type":
        name = a.name
        a.Clear()
        a.name, a.type = name, r.choice(list(VALUES))
        field, value = VALUES[a.type]
        getattr(a, field).extend(value) if isinstance(value, list) else setattr(a, field, value)
    elif a.type == 1:
        a.f = r.choice([-1.0, 0.0, 2.0, float("nan")])
    elif a.type == 2:
        a.i = r.choice([-9, -4, -3, -2, -1, 0, 1, 2, 3, 4, 10, 27])
    elif a.type == 3:
        a.s = r.choice([b"", b"x", b"SAME_UPPER", b"VALID", b"linear", b"none"])
    elif a.type == 7:
        if a.ints and r.random() < .5:
            a.ints[r.randrange(len(a.ints))] = r.choice([-3, -1, 0, 1, 2, 4])
        elif a.ints and r.random() < .5:
            del a.ints[-1]
        else:
            a.ints.append(r.choice([-1, 0, 1]))
    else:
        return False
    return True


def change_operands(onnx, m, n, r):
    what = r.choice(["drop", "empty", "swap", "extra", "drop output", "extra output"])
    if what == "extra output":
        n.output.append("extra_out")
    elif what == "drop output":
        if len(n.output) < 2:
            return False
        name = n.output.pop()
        kept = [o for o in m.graph.output if o.name != name]
        del m.graph.output[:]
        m.graph.output.extend(kept)
    elif not n.input or (what == "swap" and len(n.input) < 2):
        return False
    elif what == "drop":
        del n.input[-1]
    elif what == "empty":
        n.input[r.randrange(len(n.input))] = ""
    elif what == "extra":
        n.input.append(r.choice(list(n.input)) or n.input[0])
    else:
        i, j = r.sample(range(len(n.input)), 2)
        n.input[i], n.input[j] = n.input[j], n.input[i]
    return True


def change_operator(onnx, m, n, r):
    if r.random() < .3:
        n.op_type = r.choice(OPERATORS)
        return True
    for o in m.opset_import:
        if not o.domain:
            o.version = r.randrange(1, onnx.defs.onnx_opset_version() + 1)
    return True


def first_line(text):
    lines = [line for line in text.strip().split("\n") if line.strip() and not line.startswith("==>")]
    return lines[0].replace("\n", " ") if lines else "?"


def by_reference(onnx, paths):
    """The message of the reference for each model, "" if it is valid, None if it crashed: it runs in a process of its own."""
    out = []
    while len(out) < len(paths):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(write, "w") as to:
                for path in paths[len(out):]:
                    line = ""
                    try:
                        with open(path, "rb") as f:
                            onnx.checker.check_model(f.read(), full_check=True)
                    except Exception as e:  # of several classes
                        line = first_line(str(e))
                    to.write(line + "\n")
                    to.flush()
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as of:
            out += [line.rstrip("\n") for line in of]
        if os.waitpid(child, 0)[1]:
            out.append(None)
    return out


def by_onx(program, paths):
    """The first error of onx for each model, "" if it is valid."""
    verdict, error = {}, {}
    for i in range(0, len(paths), 200):
        out = subprocess.run([program, "check", "--full"] + paths[i:i + 200], capture_output=True, text=True).stdout
        for line in out.split("\n"):
            found = re.match(r"(/[^:]*\.onnx): (valid|invalid)\b", line)
            if found:
                verdict[found.group(1)] = found.group(2) == "valid"
            found = re.match(r"(/[^:]*\.onnx): .*error: (.*\])$", line)
            if found:
                error.setdefault(found.group(1), found.group(2))
    return ["" if verdict.get(p) else error.get(p, "no verdict") for p in paths]


def main():
    args, onnx, base = start(__doc__, 5000, "models")
    r = random.Random(args.seed)
    changes = [change_type, change_type, change_attribute, change_attribute, change_operands, change_operands, change_operator]
    unexplained, explained, crashes, same = 0, collections.Counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        while len(paths) < args.n:
            m = onnx.ModelProto()
            m.CopyFrom(r.choice(base))
            if not any([r.choice(changes)(onnx, m, r.choice(m.graph.node), r) for _ in range(r.choice([1, 1, 1, 2]))]):
                continue
            paths.append(os.path.join(folder, "%d.onnx" % len(paths)))
            with open(paths[-1], "wb") as f:
                f.write(m.SerializeToString())
        for path, theirs, ours in zip(paths, by_reference(onnx, paths), by_onx(args.onx, paths)):
            if theirs is None:
                crashes += 1
            elif bool(theirs) == bool(ours):
                same += 1
            else:
                who, message = ("onx", theirs) if theirs else ("onnx", ours)
                reason = next((e[2] for e in EXPLAINED if e[0] == who and re.search(e[1], message)), None)
                if reason:
                    explained[(who, reason)] += 1
                    continue
                unexplained += 1
                with open(path, "rb") as f:
                    m = onnx.ModelProto.FromString(f.read())
                print("only %s accepts a model of %s: %s" % (who, ", ".join(sorted({n.op_type for n in m.graph.node})[:5]), message[:300]))
                print("    " + onnx.printer.to_text(m).replace("\n", " ")[:500])
    for (who, reason), count in explained.most_common():
        print("%5d accepted by %s only: %s" % (count, who, reason))
    print("%d of %d verdicts agree, %d differ for the reasons above, %d without a reason; the reference crashed %d times" %
          (same, len(paths), sum(explained.values()), unexplained, crashes))
    return unexplained != 0


if __name__ == "__main__":
    sys.exit(main())
