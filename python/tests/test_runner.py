"""The backend cases of the package onnx, run by its own runner over onx.backend, with its rules of comparison."""
import sys
import unittest

reason = None
try:
    import ml_dtypes  # noqa: F401
    import numpy  # noqa: F401
    import onnx.backend.test
except ImportError as missing:
    reason = str(missing)
if reason:
    print("skipped: " + reason)
    sys.exit(77)

import onx.backend

runner = onnx.backend.test.BackendTest(onx.backend.Backend, __name__)
runner.exclude("Real|cuda")  # Real: models that are downloaded
# Cases without one right answer: random numbers, and the noise of transforms around zero.
runner.exclude("bernoulli|test_dft_inverse")
runner.exclude("test_loop16_seq_none")  # the runner takes the length of the scalars in a sequence
globals().update(runner.test_cases)

if __name__ == "__main__":
    unittest.main()
