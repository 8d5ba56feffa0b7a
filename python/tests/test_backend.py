"""Runs the ONNX project's own test runner for backends (Debian's python3-onnx) on onx.backend."""
import builtins
import unittest
import warnings

import models

warnings.simplefilter("ignore")  # those of the runner and the versions that it works with
try:
    import onnx
    import onnx.backend.test
    import onnx.helper
except ImportError:
    models.skip("no package onnx here")

import numpy as np
import onx
import onx.backend

warnings.simplefilter("ignore")
for name in ("bool", "int", "float", "object"):  # the runner is older than the NumPy beside it
    if name not in vars(np):
        setattr(np, name, getattr(builtins, name))
# Cases that no backend, or none like this one, can pass, and why.
RANDOM = "the numbers are random"
BITS = "the runner has bfloat16 as the bits, of uint16; here it is widened to float32"
SHAPE = "the runner loses the shape of an input of bfloat16"
NOT_RUN = {
    "test_bernoulli_cpu": RANDOM,
    "test_bernoulli_double_cpu": RANDOM,
    "test_bernoulli_double_expanded_cpu": RANDOM,
    "test_bernoulli_expanded_cpu": RANDOM,
    "test_bernoulli_seed_cpu": RANDOM,
    "test_bernoulli_seed_expanded_cpu": RANDOM,
    "test_cast_FLOAT_to_BFLOAT16_cpu": BITS,
    "test_castlike_FLOAT_to_BFLOAT16_cpu": BITS,
    "test_castlike_FLOAT_to_BFLOAT16_expanded_cpu": BITS,
    "test_castlike_BFLOAT16_to_FLOAT_cpu": SHAPE,
    "test_castlike_BFLOAT16_to_FLOAT_expanded_cpu": SHAPE,
    "test_adam_multiple_cpu": "the numbers were made with an epsilon of 0.01, which the node leaves out",
    "test_loop16_seq_none_cpu": "the runner cannot compare a sequence of scalars",
}


def load_tests(loader, tests, pattern):
    runner = onnx.backend.test.BackendTest(onx.backend.Backend, __name__)
    for name in NOT_RUN:
        runner.exclude("^%s$" % name)
    for name, case in runner.test_cases.items():
        if "Real" not in name:  # models that would have to be fetched
            tests.addTests(loader.loadTestsFromTestCase(case))
    return tests


class TestOurs(unittest.TestCase):
    def test_list_of_inputs(self):
        """A list belongs to the inputs without an initializer, if it has as many items, else to all in their order."""
        model = onx.parse("""<ir_version: 3, opset_import: ["" : 9]>
g (float[2] w, float[2] x, float[2] b) => (float[2] y) <float[2] w = {10, 20}, float[2] b = {1, 2}> { d = Sub(x, w) y = Add (d, b) }""")
        rep = onx.backend.prepare(model)
        x, w, b = (np.full(2, k, np.float32) for k in (1, 5, 7))
        self.assertEqual(rep.run([x])[0].tolist(), [-8, -17])
        self.assertEqual(rep.run(x)[0].tolist(), [-8, -17])
        self.assertEqual(rep.run([w, x])[0].tolist(), [-3, -2])
        self.assertEqual(rep.run([w, x, b])[0].tolist(), [3, 3])
        with self.assertRaises(ValueError):
            rep.run([w, x, b, b])

    def test_protos(self):
        node = onnx.helper.make_node("Relu", ["x"], ["y"], name="n")
        mine = onx.from_proto(node)
        self.assertEqual((mine.op_type, list(mine.input)), ("Relu", ["x"]))
        self.assertEqual(onx.to_proto(mine), node)
        self.assertEqual(onx.from_proto(onx.to_proto(onx.load(models.STRIPES))), onx.load(models.STRIPES))
        self.assertEqual(onx.to_proto(onx.TypeProto.Tensor(elem_type=1)), onnx.TypeProto.Tensor(elem_type=1))
        with self.assertRaises(TypeError):
            onx.from_proto(mine)

    def test_run_node(self):
        x = np.array([-1, 2], np.float32)
        for node in (onnx.helper.make_node("Relu", ["x"], ["y"]), onx.node("Relu", "x", "y")):
            for inputs in ([x], x, {"x": x}):
                self.assertEqual(onx.backend.run_node(node, inputs).y.tolist(), [0, 2])
        self.assertEqual(onx.backend.run_node(onx.node("Clip", ["x", "", "max"], "y"), [x, None, np.float32(1)])[0].tolist(), [-1, 1])
        with self.assertRaises(onx.UnsupportedError):
            onx.backend.run_node(node, [x], "CUDA")
        self.assertEqual(onx.backend.run_model(onx.load(models.STRIPES), np.ones((1, 1, 8, 8), "f")).probability.shape, (1, 4))
        self.assertFalse(onx.backend.is_compatible(onx.ModelProto()))


if __name__ == "__main__":
    unittest.main()
