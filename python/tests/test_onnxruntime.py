"""Scripts written for onnxruntime, with the import changed, and their expected results."""
import json
import os
import tempfile
import threading
import time
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
        so.add_session_config_entry("session.disable_prepacking", "1")
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
        with self.assertRaises(AttributeError):
            ort.SessionOptions().intra_op_threads = 1  # no such option

    def test_imports(self):
        """Where scripts look for names; also those that have the package under the name of the other."""
        from onx.compat.onnxruntime import InferenceSession, SessionOptions, get_version_string
        from onx.compat.onnxruntime.capi import _pybind_state as C
        from onx.compat.onnxruntime.capi.onnxruntime_inference_collection import OrtValue
        from onx.compat.onnxruntime.capi.onnxruntime_pybind11_state import EPFail, InvalidArgument, SessionOptions as FromC

        self.assertIs(InferenceSession, ort.InferenceSession)
        self.assertTrue(FromC is C.SessionOptions is SessionOptions and OrtValue is ort.OrtValue and InvalidArgument is ort.InvalidArgument)
        self.assertTrue(issubclass(EPFail, ort.OnnxRuntimeException))
        self.assertEqual(get_version_string(), ort.__version__)
        with self.assertRaises(ImportError):
            from onx.compat.onnxruntime.capi.onnxruntime_pybind11_state import nothing
        ort.disable_telemetry_events()
        ort.preload_dlls()
        info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
        ort.create_and_register_allocator(info, ort.OrtArenaCfg(0, -1, -1, -1))
        self.assertEqual(ort.OrtDevice.make("cpu", 0).device_type(), "cpu")

    def test_profile(self):
        so = ort.SessionOptions()
        so.enable_profiling = True
        so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        so.profile_file_prefix = os.path.join(self.folder.name, "p")
        path = self.save("(float[N] x) => (float[N] y)", "[first] z = Sin(x)\n[second] y = Relu(z)")
        for runs in (0, 2):
            sess = ort.InferenceSession(path, so)
            for _ in range(runs):
                sess.run(None, {"x": np.ones(2, np.float32)})
            name = sess.end_profiling()
            self.assertEqual(sess.end_profiling(), name)
            with open(name) as f:
                events = json.load(f)
            os.remove(name)
            self.assertEqual([e["name"] for e in events if e["cat"] == "Session"], ["session_initialization"] + ["model_run"] * runs)
            self.assertEqual("Sin" in [e["args"]["op_name"] for e in events if e["cat"] == "Node"] or not runs, True)
            self.assertTrue(all(e["dur"] >= 0 and e["ts"] >= 0 for e in events))
        sess.run(None, {"x": np.ones(2, np.float32)})
        sess = ort.InferenceSession(path, so)  # nobody ends it: the file is written all the same
        name = sess._profile.path
        del sess
        self.assertTrue(os.path.exists(name))
        self.assertEqual(ort.InferenceSession(path).end_profiling(), "")

    def test_terminate(self):
        """A run in one thread, which another ends."""
        path = self.save("(int64 n) => (float y)", """one = Constant<value = float {1.0}>()
yes = Constant<value = bool {1}>()
y = Loop<body = b (int64 i, bool c, float v) => (bool d, float w) { d = Identity(c) w = Sin(v) }>(n, yes, one)""")
        sess, options, failed = ort.InferenceSession(path), ort.RunOptions(), []

        def work():
            try:
                sess.run(None, {"n": np.array(10**9)}, options)
            except ort.Fail as e:
                failed.append(e)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.1)
        options.terminate = True
        thread.join(60)
        self.assertEqual((thread.is_alive(), len(failed)), (False, 1))

    def test_initializers(self):
        path = self.save("(float[N] x) => (float[N] y) <float[1] w = {3}>", "y = Mul(x, w)")
        so = ort.SessionOptions()
        x = {"x": np.ones(2, np.float32)}
        so.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.full(1, 5, np.float32)))
        self.assertEqual(ort.InferenceSession(path, so).run(None, x)[0].tolist(), [5, 5])
        self.assertEqual(ort.InferenceSession(path).run(None, x)[0].tolist(), [3, 3])
        so.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(np.full(1, 7, np.float32))])
        self.assertEqual(ort.InferenceSession(path, so).run(None, x)[0].tolist(), [7, 7])
        with self.assertRaises(ort.InvalidArgument):
            so.add_external_initializers(["w"], [])
        so.add_initializer("v", np.zeros(1, np.float32))
        with self.assertRaises(ort.InvalidArgument):
            ort.InferenceSession(path, so)

    def test_seed(self):
        path = self.save("() => (float[4] y)", "y = RandomUniform<shape = [4]>()")
        self.addCleanup(setattr, ort, "_seed", None)
        results = []
        for seed in (1, 1, 2):
            ort.set_seed(seed)
            results.append(ort.InferenceSession(path).run(None, {})[0].tolist())
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0], results[2])

    def test_dlpack(self):
        x = np.arange(4, dtype=np.float32)
        value = ort.OrtValue.from_dlpack(ort.OrtValue.ortvalue_from_numpy(x)._ortvalue.to_dlpack())
        self.assertEqual((value.data_ptr(), value.numpy().tolist()), (x.ctypes.data, x.tolist()))
        self.assertEqual(ort.OrtValue.from_dlpack(np.ones(2, np.uint8), True).data_type(), "tensor(bool)")
        ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(x + 1)], [value])
        self.assertEqual(x.tolist(), [1, 2, 3, 4])

    def test_torch(self):
        """Tensors of torch, by their addresses, as in its documentation."""
        try:
            import torch
        except ImportError:
            self.skipTest("no torch here")
        sess = ort.InferenceSession(self.save("(float[N] x) => (float[N] y)", "y = Neg(x)"))
        x, y = torch.arange(4, dtype=torch.float32), torch.empty(4)
        binding = sess.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, tuple(x.shape), x.data_ptr())
        binding.bind_output("y", "cpu", 0, np.float32, tuple(y.shape), y.data_ptr())
        sess.run_with_iobinding(binding)
        self.assertEqual(y.tolist(), (-x).tolist())
        value = ort.OrtValue.from_dlpack(torch.utils.dlpack.to_dlpack(x))
        self.assertEqual(value.data_ptr(), x.data_ptr())
        made = sess.run_with_ort_values(None, {"x": value})[0]
        tensor = torch.utils.dlpack.from_dlpack(made.to_dlpack())
        self.assertEqual((tensor.tolist(), tensor.data_ptr()), ((-x).tolist(), made.data_ptr()))
        self.assertEqual(onx.Session(sess._model)(x).tolist(), (-x).tolist())

    def test_quantization(self):
        from onx.compat.onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

        rng = np.random.default_rng(1)
        path, made = self.save("(float[N, 16] x) => (float[N, 8] y)", "z = MatMul(x, w)\ny = Relu(z)"), os.path.join(self.folder.name, "q.onnx")
        model = onx.load(path)
        model.graph.initializer.append(onx.tensor(rng.standard_normal((16, 8)).astype("f"), "w"))
        onx.save(model, path)
        batches = [{"x": rng.standard_normal((4, 16)).astype("f")} for _ in range(3)]
        wanted = ort.InferenceSession(path).run(None, batches[0])[0]

        class Reader(CalibrationDataReader):
            def __init__(self):
                self.left = iter(batches)

            def get_next(self):
                return next(self.left, None)

        quantize_dynamic(path, made, weight_type=QuantType.QInt8)
        self.assertIn("DynamicQuantizeLinear", [n.op_type for n in onx.load(made).graph.node])
        np.testing.assert_allclose(ort.InferenceSession(made).run(None, batches[0])[0], wanted, atol=0.2)
        for form, op_type in ((QuantFormat.QDQ, "QuantizeLinear"), (QuantFormat.QOperator, "QLinearMatMul")):
            quantize_static(path, made, Reader(), quant_format=form, per_channel=False)
            self.assertIn(op_type, [n.op_type for n in onx.load(made).graph.node])
            np.testing.assert_allclose(ort.InferenceSession(made).run(None, batches[0])[0], wanted, atol=0.3)
        quantize_static(path, made, Reader(), op_types_to_quantize=["Conv"])
        self.assertEqual([n.op_type for n in onx.load(made).graph.node], ["MatMul", "Relu"])

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
