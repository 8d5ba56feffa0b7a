"""Scripts as they are written for onnxruntime, with the import changed, and what they expect."""
import os
import tempfile
import threading
import unittest

import models
import numpy as np
import onx
import onx.compat.onnxruntime as ort


class TestScripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def save(self, signature, body, **more):
        path = os.path.join(self.folder.name, "model.onnx")
        m = onx.parse(models.model(signature, body))
        for key, value in more.items():
            setattr(m, key, value)
        onx.save(m, path)
        return path

    def test_classify(self):
        """As in tutorials: options, names from the model, a batch, the best class."""
        so = ort.SessionOptions()
        so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        so.intra_op_num_threads = 1
        so.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        so.add_session_config_entry("session.set_denormal_as_zero", "1")
        sess = ort.InferenceSession(models.STRIPES, so, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
        input_name, output_name = sess.get_inputs()[0].name, sess.get_outputs()[0].name
        self.assertEqual((sess.get_inputs()[0].shape, sess.get_inputs()[0].type), (["N", 1, "H", "W"], "tensor(float)"))
        image = np.zeros((3, 1, 8, 8), np.float32)
        image[..., 1::3] = 1
        pred = sess.run([output_name], {input_name: image})[0]
        self.assertEqual(np.argmax(pred, axis=1).tolist(), [1, 1, 1])
        self.assertEqual(sess.get_providers(), ["CPUExecutionProvider"])
        self.assertEqual(ort.get_available_providers(), ["CPUExecutionProvider"])
        self.assertEqual(ort.get_device(), "CPU")
        with self.assertRaises(ValueError):
            ort.InferenceSession(models.STRIPES, providers=["NoExecutionProvider"])

    def test_metadata(self):
        path = self.save("(float[2] x) => (float[2] y)", "y = Neg(x)", producer_name="p", model_version=3, domain="d", doc_string="s",
                         metadata_props=[onx.StringStringEntryProto(key="a", value="b")])
        meta = ort.InferenceSession(path).get_modelmeta()
        self.assertEqual((meta.producer_name, meta.version, meta.domain, meta.description, meta.custom_metadata_map), ("p", 3, "d", "s", {"a": "b"}))
        with open(path, "rb") as f:
            self.assertEqual(ort.InferenceSession(f.read()).run(None, {"x": np.ones(2, np.float32)})[0].tolist(), [-1, -1])

    def test_binding(self):
        path = self.save("(float[N] x) => (float[N] y, float[N] z)", "y = Neg(x)\nz = Exp(y)")
        sess = ort.InferenceSession(path)
        x = np.arange(4, dtype=np.float32)
        binding = sess.io_binding()
        binding.bind_cpu_input("x", x)
        y = ort.OrtValue.ortvalue_from_shape_and_type([4], np.float32, "cpu", 0)
        binding.bind_ortvalue_output("y", y)
        binding.bind_output("z")
        for _ in range(2):
            sess.run_with_iobinding(binding)
            np.testing.assert_array_equal(y.numpy(), -x)
            np.testing.assert_allclose(binding.copy_outputs_to_cpu()[1], np.exp(-x), rtol=1e-5)
            x += 1  # bound, not copied
        out = np.empty(4, np.float32)
        binding = sess.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
        sess.run_with_iobinding(binding)
        np.testing.assert_array_equal(out, -x)
        self.assertEqual(binding.get_outputs()[0].data_ptr(), out.ctypes.data)
        binding.clear_binding_inputs()
        with self.assertRaises(ValueError):
            sess.run_with_iobinding(binding)

    def test_ortvalues(self):
        path = self.save("(float[N] x) => (float[N] y)", "y = Neg(x)")
        x = np.arange(4, dtype=np.float32)
        value = ort.OrtValue.ortvalue_from_numpy(x, "cpu", 0)
        self.assertEqual((value.shape(), value.data_type(), value.element_type(), value.device_name(), value.is_tensor(), value.data_ptr(), value.has_value()),
                         ([4], "tensor(float)", 1, "cpu", True, x.ctypes.data, True))
        y, = ort.InferenceSession(path).run_with_ort_values(["y"], {"x": value})
        np.testing.assert_array_equal(y.numpy(), -x)
        value.update_inplace(np.ones(4, np.float32))
        self.assertEqual(value.numpy().tolist(), [1] * 4)
        with self.assertRaises(ort.InvalidArgument):
            value.update_inplace(np.ones(3, np.float32))
        self.assertEqual(np.from_dlpack(y).tolist(), [0, -1, -2, -3])
        with self.assertRaises(NotImplementedError):
            ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)

    def test_failures(self):
        state = ort.capi.onnxruntime_pybind11_state
        with self.assertRaises(state.NoSuchFile):
            ort.InferenceSession("no_such.onnx")
        with self.assertRaises(state.InvalidProtobuf):
            ort.InferenceSession(b"\xff\xff")
        sess = ort.InferenceSession(self.save("(float[2] x) => (float[2] y)", "y = Neg(x)"))
        with self.assertRaisesRegex(ValueError, r"Required inputs \(\['x'\]\) are missing"):
            sess.run(None, {})
        for feeds in ({"x": np.ones(3, np.float32)}, {"x": np.ones(2)}, {"x": np.ones(2, np.float32), "z": np.ones(1)}):
            with self.assertRaises(state.InvalidArgument):
                sess.run(None, feeds)
        with self.assertRaises(state.InvalidArgument):
            sess.run(["nothing"], {"x": np.ones(2, np.float32)})
        options = ort.RunOptions()
        options.terminate = True
        with self.assertRaises(state.Fail):
            sess.run(None, {"x": np.ones(2, np.float32)}, options)
        with self.assertRaises(state.InvalidGraph):
            ort.InferenceSession(self.save("(float[2] x) => (float[2] y)", "y = Neg(z)"))
        with self.assertRaises(NotImplementedError):
            ort.SessionOptions().enable_profiling = True

    def test_rest(self):
        path = self.save("(float[N] x) => (float[N] y)", "y = Neg(x)")
        so = ort.SessionOptions()
        so.add_free_dimension_override_by_name("N", 3)
        so.optimized_model_filepath = os.path.join(self.folder.name, "o.onnx")
        sess = ort.InferenceSession(path, so)
        self.assertEqual(sess.get_inputs()[0].shape, [3])
        self.assertTrue(os.path.exists(so.optimized_model_filepath))
        done, results = threading.Event(), []
        sess.run_async(None, {"x": np.ones(3, np.float32)}, lambda out, data, error: (results.extend([out, data, error]), done.set()), "data")
        self.assertTrue(done.wait(60))
        self.assertEqual((results[0][0].tolist(), results[1:]), ([-1] * 3, ["data", ""]))


class TestOperators(unittest.TestCase):
    TEXT = ('<ir_version: 10, opset_import: ["" : 21, "my" : 1]> g (float[N] x) => (float[M] y, float[N] z) '
            '{ y, z = my.Both<factor = 3.0, axes = [1, 2], mode = "up"> (x, , x) }')

    def session(self, function, text=TEXT, **options):
        operators = onx.Operators()
        self.assertIs(operators.add("my", "Both", function), function)
        return onx.Session(onx.parse(text), operators=operators, threads=2, **options)

    def test_function(self):
        seen = []

        def both(x, none, again, factor, axes, mode):
            seen.append((none, factor, axes, mode))
            np.testing.assert_array_equal(x, again)
            return x[:1] * factor, -x

        s = self.session(both)
        for n in (1, 2, 3):
            x = np.arange(n, dtype=np.float32)
            y, z = s(x)
            self.assertEqual((y.tolist(), z.tolist()), ([0], (-x).tolist()))
        self.assertEqual(seen[0], (None, 3.0, [1, 2], "up"))

    def test_failures(self):
        def broken(*args, **attributes):
            raise KeyError("oops")

        with self.assertRaises(onx.InvalidError) as caught:
            self.session(broken)([1])
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        for result in (None, 1, (), np.ones(1, "M8[s]"), object()):
            with self.assertRaises(onx.InvalidError):
                self.session(lambda *a, **k: result)([1])

        def interrupted(*args, **attributes):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.session(interrupted)([1])
        operators = onx.Operators()
        with self.assertRaises(TypeError):
            operators.add("my", "Both", 3)
        with self.assertRaises(onx.Error):
            operators.add("", "Relu", lambda x: x)
        with self.assertRaises(onx.FileError):
            operators.load("no_such.so")
        with self.assertRaises(TypeError):
            onx.Session(onx.parse(self.TEXT), operators=3)
        with self.assertRaises(onx.Error):
            onx.Session(onx.parse(self.TEXT))

    def test_threads(self):
        s = self.session(lambda x, none, again, **attributes: (x, x + 1))
        failed = []

        def work(k):
            for i in range(50):
                if s([k + i])[1].tolist() != [k + i + 1]:
                    failed.append((k, i))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failed, [])


if __name__ == "__main__":
    unittest.main()
