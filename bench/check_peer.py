"""check_peer.py FILE: best of three rounds in ms of processor time of the reference checker on serialized bytes, decoding included."""
import sys
import time

import onnx

model = onnx.load(sys.argv[1])
model.ir_version = min(model.ir_version, onnx.IR_VERSION)  # a newer file than the peer knows
data = model.SerializeToString()
del model
best = 1e9
for _ in range(3):
    start = time.process_time()
    onnx.checker.check_model(data)
    best = min(best, 1e3 * (time.process_time() - start))
print("%.3f" % best)
