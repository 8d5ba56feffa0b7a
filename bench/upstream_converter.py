#!/usr/bin/env python3
"""Compares onx retarget with onnx.version_converter on the models of one node of the backend tests of the package onnx, to random
versions: what the converter can convert, onx can; results are valid for onnx.checker and give the same outputs as the model and as
the result of the converter. upstream_converter.py [--onx build/onx] [--seed S] [--n N]. Exit status 1 if something differs without a
reason in the table below, 77 if onnx is not installed."""
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

from upstream_cases import start

# What differs for a reason: (kind of difference: from the model or from the result of the converter, name of the operator and message,
# reason).
EXPLAINED = [
    ("model|converter", r"^(Bernoulli|Dropout|Multinomial|RandomNormal|RandomUniform)", "random numbers"),
    ("converter", r"^(Hardmax|LogSoftmax|Softmax) ", "the converter keeps the axis, whose meaning changes at version 13"),
    ("converter", r"^Scan .*the model wants", "the converter takes the batch from the inputs of the model, or adds none"),
    ("converter", r"^ConvTranspose .*autopad_same", "before version 11 auto_pad pads the other side, and the converter keeps it"),
    ("converter only", r"^AveragePool .*a last window reaches past the padding", "older versions count other elements there"),
    ("model|converter", r"^Attention.*_(bf|fp|bfloat|float)16", "the expanded operator rounds between its nodes"),
    ("reference", r"^MaxPool.*ceil", "before version 22 the reference infers a last window that begins in the padding"),
]


def by_reference(onnx, model, path, target):
    """The converted and valid model, b"" if the converter or the checker fails; in a process of its own, which may crash."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        data = b""
        try:
            made = onnx.version_converter.convert_version(model, target)
            onnx.checker.check_model(made, full_check=True)
            data = made.SerializeToString()
        except Exception:  # of several classes
            pass
        with os.fdopen(write, "wb") as to:
            to.write(data)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as of:
        data = of.read()
    os.waitpid(child, 0)
    with open(path, "wb") as f:
        f.write(data)
    return bool(data)


def main():
    args, onnx, base = start(__doc__, 300, "conversions")
    base = [m for m in base if len(m.graph.node) == 1 and all(not o.domain for o in m.opset_import)]
    r = random.Random(args.seed)
    count, unexplained = collections.Counter(), 0
    run = lambda *a: subprocess.run([args.onx] + list(a), capture_output=True, text=True)

    with tempfile.TemporaryDirectory() as folder:
        given, ours, theirs = (os.path.join(folder, name + ".onnx") for name in ("given", "ours", "theirs"))
        for _ in range(args.n):
            m = r.choice(base)
            version, target = m.opset_import[0].version, r.randrange(7, onnx.defs.onnx_opset_version() + 1)
            what = "%s %d to %d, %s" % (m.graph.node[0].op_type, version, target, m.graph.name)
            with open(given, "wb") as f:
                f.write(m.SerializeToString())
            made = run("retarget", given, "-o", ours, "--opset", str(target))
            there = by_reference(onnx, m, theirs, target)
            differences = []
            count["both" if there and not made.returncode else "onx only" if not made.returncode else "converter only" if there else "neither"] += 1
            if made.returncode and there:
                differences.append(("converter only", made.stderr.strip()))
            if not made.returncode:
                checked = run("check", "--full", ours)
                if checked.returncode:
                    differences.append(("onx", checked.stdout))
                try:
                    onnx.checker.check_model(ours, full_check=True)
                except Exception as e:  # of several classes
                    differences.append(("reference", str(e)))
                for kind, other in [("model", given)] + [("converter", theirs)] * there:
                    compared = run("compare", other, ours, "--rtol", "1e-3", "--atol", "1e-5")
                    if compared.returncode:
                        differences.append((kind, compared.stdout + compared.stderr))
            for kind, text in differences:
                text = what + ": " + text.strip().replace("\n", " ")
                reason = next((e[2] for e in EXPLAINED if re.fullmatch(e[0], kind) and re.search(e[1], text)), None)
                if reason:
                    count["explained: " + reason] += 1
                else:
                    unexplained += 1
                    print("%s: %s" % (kind, text[:500]))
    print("\n".join("%5d %s" % (n, what) for what, n in count.most_common()))
    print("%d differences without a reason" % unexplained)
    return unexplained != 0


if __name__ == "__main__":
    sys.exit(main())
