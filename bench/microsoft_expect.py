#!/usr/bin/env python3
"""Runs each model of a folder with the Python package onnxruntime, which has newer releases than that for Node:  microsoft_expect.py DIR

Writes DIR/NAME.json with inputs, made from a fixed seed, and outputs, or with the error, as microsoft_agree.js does; microsoft_agree.py
compares. Models that have a result are skipped. A crash ends a child process only."""
import glob
import json
import multiprocessing
import os
import sys

import numpy as np
import onnxruntime as ort

TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}


def plain(a):
    if a.dtype == np.float16:
        return [int(x) for x in a.view(np.uint16).ravel()]  # as bits
    if a.dtype.kind == "f":
        return [float(x) if np.isfinite(x) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(x), "NaN") for x in a.ravel()]
    return [str(x) if a.dtype.itemsize == 8 else x.item() for x in a.ravel()]


def answer(path, to):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        random, feeds, out = np.random.default_rng(12345), {}, {"inputs": {}, "outputs": []}
        for x in session.get_inputs():
            dims = [d if isinstance(d, int) and d >= 0 else 1 for d in x.shape]
            name = x.type[7:-1]
            a = random.random(dims) if name in ("float", "double", "float16") else random.integers(0, 2 if name == "bool" else 4, dims)
            feeds[x.name] = np.asarray(a).astype(TYPES.get(name, name))
            out["inputs"][x.name] = {"type": str(feeds[x.name].dtype), "dims": dims, "data": plain(feeds[x.name])}
        for x, y in zip(session.get_outputs(), session.run(None, feeds)):
            out["outputs"].append({"name": x.name, "type": str(y.dtype), "dims": list(y.shape), "data": plain(y)})
    except Exception as e:
        out = {"refused": str(e)}
    json.dump(out, open(to, "w"))


if __name__ == "__main__":
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx"))):
        to = path[:-4] + "json"
        if os.path.exists(to):
            continue
        json.dump({"refused": "it ended the process"}, open(to, "w"))
        child = multiprocessing.Process(target=answer, args=(path, to))
        child.start()
        child.join()
