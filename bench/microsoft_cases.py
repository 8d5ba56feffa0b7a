#!/usr/bin/env python3
"""Writes the results of onnxruntime-node (microsoft_agree.js) as cases for tests/cases/op:  microsoft_cases.py ONX DIR FILE [PREFIX] [--longest N]

Models that onnxruntime refuses and models named in OTHER are left out. PREFIX selects the models for FILE by name.
onnxruntime lets 8-bit products overflow on CPUs without VNNI, so compute quantized operators on a CPU with VNNI."""
import glob
import json
import os
import re
import subprocess
import sys

import numpy as np

OTHER = ("qlinearaveragepool_nhwc", "wordconv_in")  # rounds a tie the other way; reads uninitialized memory
TYPES = {"float32": "float", "float64": "double", "bool": "bool", "string": "string"}


def number(x):
    if isinstance(x, str):
        return {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}.get(x, x)
    return repr(x) if isinstance(x, int) else "%.9g" % x


def value(v):
    t = TYPES.get(v["type"], v["type"])
    dims = "[%s]" % ",".join(str(d) for d in v["dims"]) if v["dims"] else ""
    if t == "float16":
        v = dict(v, data=np.array(v["data"], np.uint16).view(np.float16).astype(float).tolist())
    items = [json.dumps(x, ensure_ascii=False).replace("\\u0002", "\x02").replace("\\u0003", "\x03") if t == "string" else number(x) for x in v["data"]]
    return t + dims, "{%s}" % ", ".join(items)


LONGEST = 5000  # characters of a case
args = sys.argv[1:]
if "--longest" in args:
    at = args.index("--longest")
    LONGEST = int(args[at + 1])
    del args[at:at + 2]
onx, folder, to = args[:3]
prefix = "".join(args[3:])
cases = []
out = ["# needs: com.microsoft" + (" pcre2" if prefix == "cut_" else ""), "# Operators of com.microsoft. A case: === title, a model whose inputs carry values, ---, outputs, which onnxruntime-node",
       "# 1.30 computed; bench/microsoft.py made the models.", ""]
for path in sorted(glob.glob(folder + "/" + prefix + "*.json")):
    name = os.path.basename(path)[:-5]
    answer = json.load(open(path))
    if "refused" in answer or name in OTHER:
        continue
    text = subprocess.run([onx, "convert", folder + "/" + name + ".onnx", "-", "--to", "onnxtxt"], stdout=subprocess.PIPE, text=True).stdout
    for k, v in answer["inputs"].items():
        shape, items = value(v)
        text = re.sub(r"%s\[[^\]]*\]\s+%s(?=\s*[,)])" % (shape.split("[")[0], k), lambda m: "%s %s = %s" % (shape, k, items), text, count=1)
    for y in answer["outputs"]:
        text = re.sub(r"\w+(\[[^\]]*\])?\s+%s(?=\s*[,)])" % y["name"], lambda m: "%s %s" % (value(y)[0], y["name"]), text, count=1) if y["dims"] else text
    ulps = 2 if any(y["type"] == "float16" for y in answer["outputs"]) else 64
    case = ["=== %s" % name, text.strip(), "--- within %d ulps or %s" % (ulps, "5e-3" if "lstm" in name else "2e-4")]  # onnxruntime quantizes the states
    case += ["%s: %s %s" % ((y["name"],) + value(y)) for y in answer["outputs"]] + [""]
    cases.append((sum(map(len, case)), re.search(r"= (\S+?) *[<(]", text.split("=> (")[1]).group(1), case))
shown = {operator for size, operator, case in cases if size <= LONGEST}
for size, operator, case in cases:  # also the shortest longer case of an operator that has no other
    least = min(s for s, o, c in cases if o == operator)
    if size <= LONGEST or (operator not in shown and size == least):
        out += case
open(to, "w").write("\n".join(out))
