"""python.py MODEL: times the package onx and the packages onnx and onnxruntime, if installed, alternating. Used by python.sh."""
import gc
import importlib
import statistics
import sys
import time

import numpy as np
import onx


def peer(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def times(function, count, rounds):
    out = []
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        for _ in range(count):
            function()
        out.append((time.process_time() - begin) / count)
    return statistics.median(out)


def line(what, unit, scale, ours, theirs, count=1, rounds=5):
    """Prints the CPU time of both: the median over alternating rounds."""
    pairs = [(times(ours, count, 1), times(theirs, count, 1)) for _ in range(rounds)] if theirs else [(times(ours, count, rounds), None)]
    mine = statistics.median(p[0] for p in pairs) * scale
    if theirs:
        other = statistics.median(p[1] for p in pairs) * scale
        print("  %-44s %10.2f %s %12.2f %s %8.1f x" % (what, mine, unit, other, unit, other / mine))
    else:
        print("  %-44s %10.2f %s   (not measured)" % (what, mine, unit))


path = sys.argv[1]
onnx, ort = peer("onnx"), peer("onnxruntime")
print("onx and the package onnx" + ("" if onnx else " (which is not installed)"))
model = onx.load(path)
other = onnx.load(path) if onnx else None
line("load", "ms", 1e3, lambda: onx.load(path), onnx and (lambda: onnx.load(path)))
line("to bytes", "ms", 1e3, lambda: model.to_bytes(), onnx and (lambda: other.SerializeToString()))
line("operators of all nodes", "ms", 1e3, lambda: [n.op_type for n in model.graph.node], onnx and (lambda: [n.op_type for n in other.graph.node]))
old = model.retarget(17, ir_version=8)  # older versions of the package onnx support these
other = onnx.load_from_string(old.to_bytes()) if onnx else None
line("check", "ms", 1e3, lambda: onx.check(old), onnx and (lambda: onnx.checker.check_model(other)))
print("calls of a model with one node" + ("" if ort else " (onnxruntime is not installed)"))
small = onx.parse('<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Neg(x) }')
session, x = onx.Session(small, threads=1), np.ones(4, np.float32)
theirs = None
if ort:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    theirs = ort.InferenceSession(small.to_bytes(), options, providers=["CPUExecutionProvider"])
line("session.run(None, {'x': x})", "us", 1e6, lambda: session.run(None, {"x": x}), theirs and (lambda: theirs.run(None, {"x": x})), 20000)
line("session(x)", "us", 1e6, lambda: session(x), theirs and (lambda: theirs.run(None, {"x": x})), 20000)
