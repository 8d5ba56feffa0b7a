"""analysis_peer.py FILE: prints "CHECK INFER", CPU time in ms of the reference implementation on serialized bytes, minimum of three
rounds: checking including decoding, and inference including decoding and encoding."""
import sys
import time

import onnx

model = onnx.load(sys.argv[1])
model.ir_version = min(model.ir_version, onnx.IR_VERSION)  # the file may be newer than the installed onnx supports
data = model.SerializeToString()
del model


def best(work):
    figures = []
    for _ in range(3):
        start = time.process_time()
        work(data)
        figures.append(1e3 * (time.process_time() - start))
    return min(figures)


# The binding below onnx.shape_inference.infer_shapes, which would add a round through Python's messages.
infer = onnx.onnx_cpp2py_export.shape_inference.infer_shapes
print("%.3f %.3f" % (best(onnx.checker.check_model), best(lambda bytes: infer(bytes, False, False, False))))
