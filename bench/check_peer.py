"""check_peer.py FILE: best of three rounds in ms of the reference checker on serialized bytes, decoding included."""
import sys
import time

import onnx

model = onnx.load(sys.argv[1])
model.ir_version = min(model.ir_version, onnx.IR_VERSION)  # a newer file than the peer knows
data = model.SerializeToString()
del model
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    onnx.checker.check_model(data)
    best = min(best, 1e3 * (time.perf_counter() - start))
print("%.3f" % best)
