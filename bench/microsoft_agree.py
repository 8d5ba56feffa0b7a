#!/usr/bin/env python3
"""Compares onx with the results of onnxruntime-node that microsoft_agree.js has written:  microsoft_agree.py ONX DIR [NAME...]

Results agree if they differ by at most 1e-3 of the largest element; --strict: 2e-5; float16: 5e-3. Elements that onnxruntime leaves
uninitialized are not compared: unused rows of a cache, results of padded queries, scores after the end, and outputs of a search after all sequences have ended."""
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

strict = "--strict" in sys.argv
args = [a for a in sys.argv[1:] if a != "--strict"]


def written(name, place, got):
    """A mask of the elements that onnxruntime has written, as far as the result of onx shows it."""
    if (name.startswith("groupqueryattention") and place < 3) or (name.startswith(("beamsearch", "whisper")) and place == 2):
        return np.broadcast_to(got.any(-1, keepdims=True), got.shape)
    if name.startswith(("greedysearch", "sampling")) and got.size:
        same = (got == got[0, -1]).all(0)  # columns of padding tokens
        return np.broadcast_to(np.arange(got.shape[1]) < got.shape[1] - np.argmin(np.append(same[::-1], False)), got.shape)
    return np.ones(got.shape, bool)


TYPES = {"float32": np.float32, "float64": np.float64, "bool": np.bool_}
good = refused = 0
for path in sorted(glob.glob(args[1] + "/*.json")):
    name = os.path.basename(path)[:-5]
    if args[2:] and name not in args[2:]:
        continue
    want = json.load(open(path))
    if "refused" in want:
        refused += 1
        print("%s: onnxruntime refuses: %s" % (name, want["refused"][:150]))
        continue
    with tempfile.TemporaryDirectory() as t:
        command = [args[0], "run", args[1] + "/" + name + ".onnx", "--output-dir", t, "--npy"]
        for i, (k, v) in enumerate(want["inputs"].items()):
            if v["type"] == "string":
                a = np.array(v["data"])
            else:
                a = np.array([int(x) if isinstance(x, str) else x for x in v["data"]], TYPES.get(v["type"], v["type"]))
            np.save("%s/in%d.npy" % (t, i), a.reshape(v["dims"]))
            command += ["--input", "%s=%s/in%d.npy" % (k, t, i)]
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        why = "" if not p.returncode else "exit %d: %s" % (p.returncode, p.stderr.strip()[:300])
        for i, y in enumerate(want["outputs"]):
            if why:
                break
            got = np.load("%s/output_%d.npy" % (t, i))
            if list(got.shape) != list(y["dims"]):
                why = "%s has shape %s, not %s" % (y["name"], list(got.shape), y["dims"])
            elif y["type"] == "string":
                why = "" if [str(x) for x in got.ravel()] == y["data"] else "%s differs: %s %s" % (y["name"], got, y["data"])
            else:
                w = np.array([float(x) for x in y["data"]], np.float64)
                if y["type"] == "float16":  # as bits
                    w = w.astype(np.uint16).view(np.float16).astype(np.float64)
                w = w.reshape(got.shape)
                g = got.astype(np.float64)
                finite = np.isfinite(w)
                top = max([1.0] + list(np.abs(w[finite & (np.abs(w) < 1e30)]).ravel()[:100000])) if w.size else 1.0
                near = 5e-3 if y["type"] == "float16" else 2e-5 if strict else 1e-3
                with np.errstate(invalid="ignore"):
                    far = ~((np.abs(g - w) <= near * top) | (g == w) | (np.isnan(g) & np.isnan(w)))
                far &= written(name, int(y["name"][1:]) if y["name"][1:].isdigit() else i, g)
                if far.any():
                    at = np.argwhere(far)[0]
                    why = "%s differs in %d of %d, first at %s: %r, not %r" % (y["name"], far.sum(), w.size, at, g[tuple(at)], w[tuple(at)])
    good += not why
    if why:
        print("%s: %s" % (name, why))
print("%d agree, %d are refused by onnxruntime" % (good, refused))
