"""Sessions: inputs and outputs without copies, threads and forks, and errors."""
import ctypes
import gc
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
import weakref

import models
import numpy as np
import onx


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def session(self, signature, body, opset=21, **options):
        options.setdefault("threads", 1)
        return onx.Session(models.write(self.folder.name, models.model(signature, body, opset)), **options)


class TestInOut(Case):
    def test_steps_and_stop(self):
        steps = []
        s = onx.Session(models.STRIPES, threads=1, optimize=False)
        s.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)}, profile=steps)
        self.assertEqual([step.op_type for step in steps if step.op_type != "Reorder"][0], "Conv")
        self.assertTrue(all(step.seconds >= 0 and step.start >= 0 and step.kernel for step in steps))
        asked = []
        with self.assertRaises(onx.Error):
            s.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)}, stop=lambda: asked.append(1) or True)
        self.assertEqual(asked, [1])

        def broken():
            raise KeyError("oops")

        with self.assertRaises(KeyError):
            s.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)}, stop=broken)
        for wrong in ({"stop": 3}, {"profile": ()}):
            with self.assertRaises(TypeError):
                s.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)}, **wrong)

    def test_cache(self):
        folder = pathlib.Path(self.folder.name) / "kept"
        w = "Constant <value_ints = [256, 256]> () w = ConstantOfShape <value = float[1] {0.5}> (s)"
        x = np.ones((1, 256), np.float32)
        for _ in range(2):
            s = self.session("(float[1, 256] x) => (float[1, 256] y)", "s = " + w + " y = MatMul (x, w)", cache=folder)
            self.assertEqual(s(x).tolist(), [[128.0] * 256])
        self.assertTrue((folder / "secret").exists())
        with self.assertRaises(onx.Error):
            self.session("(float[1] x) => (float[1] y)", "y = Neg (x)", cache=folder / "secret")

    def test_measure(self):
        folder = pathlib.Path(self.folder.name) / "measured"
        w = "s = Constant <value_ints = [8, 8, 3, 3]> () w = ConstantOfShape <value = float[1] {0.5}> (s)"
        x = np.ones((1, 8, 9, 9), np.float32)
        for _ in range(2):
            s = self.session("(float[1, 8, 9, 9] x) => (float[1, 8, 7, 7] y)", w + " y = Conv (x, w)", cache=folder, measure=True)
            self.assertEqual(s(x).tolist(), np.full((1, 8, 7, 7), 36.0).tolist())
        self.assertEqual(len(list(folder.glob("*.pack"))), 1)

    def test_lean_memory(self):
        s = "s = Constant <value_ints = [2500, 2500]> () w = ConstantOfShape <value = float[1] {0.5}> (s) y = MatMul (x, w)"
        x = np.ones((1, 2500), np.float32)
        for lean in (False, True):
            session = self.session("(float[1, 2500] x) => (float[1, 2500] y)", s, lean_memory=lean)
            self.assertEqual(session(x).tolist(), [[1250.0] * 2500])

    def test_call_and_run(self):
        s = self.session("(float[N] x, float[N] y) => (float[N] sum, float[N] diff)", "sum = Add(x, y)\ndiff = Sub(x, y)")
        x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
        for result in (s(x, y), s(x=x, y=y), s(x, y=y), s.run(None, {"x": x, "y": y}), s.run(["sum", "diff"], {"x": x, "y": y})):
            np.testing.assert_array_equal(result[0], x + y)
            np.testing.assert_array_equal(result[1], x - y)
        d, d2 = s.run(["diff", "diff"], dict(x=x, y=y))
        np.testing.assert_array_equal(d, x - y)
        np.testing.assert_array_equal(d2, x - y)

    def test_sources(self):
        text = models.model("(float[2] x) => (float[2] y)", "y = Neg(x)")
        path = models.write(self.folder.name, text)
        binary = os.path.join(self.folder.name, "m.onnx")
        subprocess.run([os.environ["ONX"], "convert", path, "-o", binary], check=True)
        x = np.array([1, 2], np.float32)
        data = pathlib.Path(binary).read_bytes()
        for source in (path, pathlib.Path(path), binary, data, bytearray(data), memoryview(data)):
            np.testing.assert_array_equal(onx.Session(source, threads=1)(x), -x)
        with self.assertRaises(TypeError):
            onx.Session(3)
        with self.assertRaises(onx.MalformedError) as caught:
            onx.Session(b"\xff\xff\xff")
        self.assertTrue(caught.exception.diagnostics)
        with self.assertRaises(onx.FileError):
            onx.Session("no_such.onnx")
        with self.assertRaises(ValueError):
            onx.Session("a\0b")

    def test_ports(self):
        s = self.session("(float[N,3,?] x, seq(int64[2]) q) => (int64 n)", "n = SequenceLength(q)")
        x, q = s.inputs
        self.assertEqual((x.name, x.type, x.shape, x.dtype, x.required), ("x", "tensor(float)", ["N", 3, None], "float", True))
        self.assertEqual(x.numpy_dtype, np.float32)
        self.assertEqual((q.type, q.shape, q.dtype, q.numpy_dtype), ("seq(tensor(int64))", None, None, None))
        self.assertEqual([p.name for p in s.outputs], ["n"])
        s.inputs.clear()
        self.assertEqual(len(s.inputs), 2)

    def test_all_dtypes(self):
        for name in ("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128").split():
            onnx = {"float32": "float", "float64": "double"}.get(name, name)
            s = self.session("(%s[N] x) => (%s[N] y)" % (onnx, onnx), "y = Identity(x)")
            x = np.array([0, 1, 1], name)
            y = s(x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(x, y)
            self.assertFalse(np.shares_memory(x, y))
            self.assertEqual(s(np.zeros(0, name)).shape, (0,))

    def test_types_that_numpy_lacks(self):
        for name, stands_for in (("bfloat16", "float32"), ("float8e4m3fn", "float32"), ("int4", "int8"), ("uint4", "uint8")):
            s = self.session("(%s[N] x) => (%s[N] y)" % (name, name), "y = Identity(x)")
            x = np.array([0, 1, 2, 3, 4], stands_for)
            y = s(x)
            self.assertEqual(y.dtype, np.dtype(stands_for))
            np.testing.assert_array_equal(x, y)
            value, = s.run(None, {"x": x}, values=True)
            self.assertEqual((value.dtype, value.shape, value.kind), (name, (5,), "tensor"))
            np.testing.assert_array_equal(s(value), x)

    def test_strings(self):
        s = self.session("(string[N,2] x) => (string[N,2] y)", "y = Identity(x)")
        want = np.array([["a", "größer"], ["", "b" * 100]], object)
        for x in (want, want.astype(str), want.tolist(), np.array([["a".encode(), "größer".encode()], [b"", b"b" * 100]], object)):
            np.testing.assert_array_equal(s(x), want)
        with self.assertRaises(TypeError):
            s(np.array([["a", 3]], object))

    def test_scalars_and_lists(self):
        s = self.session("(float x, int64[N] n) => (float y, int64[N] m)", "y = Neg(x)\nm = Neg(n)")
        y, m = s(2, [1, 2, 3])
        self.assertEqual((float(y), y.shape, m.tolist(), m.dtype), (-2.0, (), [-1, -2, -3], np.int64))
        self.assertEqual(float(s(np.float32(3), [1])[0]), -3.0)

    def test_sequences_maps_optionals(self):
        s = self.session("(seq(float[?]) q, int64 i) => (float[?] y, seq(float[?]) r)", "y = SequenceAt(q, i)\nr = SequenceErase(q, i)")
        q = [np.array([1], np.float32), np.array([2, 3], np.float32)]
        y, r = s(q, 1)
        np.testing.assert_array_equal(y, q[1])
        self.assertEqual([a.tolist() for a in r], [[1.0]])
        value = s.run(["r"], {"q": q, "i": 1}, values=True)[0]
        self.assertEqual((value.kind, len(value)), ("sequence", 1))
        item = value[0]
        del value
        self.assertEqual(item.numpy().tolist(), [1.0])
        y, r = s(onx.Value(q), 0)
        self.assertEqual(y.tolist(), [1.0])
        s = self.session("(optional(float[N]) o) => (bool has)", "has = OptionalHasElement(o)")
        self.assertEqual((bool(s(None)), bool(s(q[0]))), (False, True))
        text = ('<ir_version: 10, opset_import: ["ai.onnx.ml" : 3, "" : 21]>\nagraph (map(string, float) m) => (float[1,C] y)\n'
                '{\ny = ai.onnx.ml.DictVectorizer <string_vocabulary = ["a", "b"]> (m)\n}')
        s = onx.Session(models.write(self.folder.name, text), threads=1)
        self.assertEqual(s({"b": 2.0, "a": 1.0}).ravel().tolist(), [1.0, 2.0])

    def test_out(self):
        s = self.session("(float[N] x) => (float[N] y, float[N] z)", "y = Neg(x)\nz = Abs(y)")
        x = np.arange(16, dtype=np.float32)
        y = np.zeros(16, np.float32)
        results = s.run(["z", "y"], {"x": x}, out={"y": y})
        self.assertIs(results[1], y)
        np.testing.assert_array_equal(y, -x)
        np.testing.assert_array_equal(results[0], x)
        read_only = np.zeros(16, np.float32)
        read_only.flags.writeable = False
        for wrong in (read_only, np.zeros(32, np.float32)[::2], [0.0] * 16):
            with self.assertRaises(TypeError):
                s.run(None, {"x": x}, out={"y": wrong})
        for wrong in (np.zeros(15, np.float32), np.zeros(16)):
            with self.assertRaises(onx.MisuseError):
                s.run(None, {"x": x}, out={"y": wrong})
        with self.assertRaises(onx.NotFoundError):
            s.run(None, {"x": x}, out={"w": y})


class TestMemory(Case):
    def test_no_copies(self):
        """What comes in is not copied: a run on 256 MB takes no more memory than its result; and results outlive all else."""
        s = self.session("(float[N] x) => (float[1] y)", "y = ReduceMax<keepdims = 1>(x)")
        x = np.zeros(1 << 26, np.float32)
        before = peak()
        s(x)
        self.assertLess(peak() - before, 1 << 27)
        s = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)")
        y = s(np.ones(1000, np.float32))
        part = y[10:20]
        del s, y
        gc.collect()
        np.testing.assert_array_equal(part, -np.ones(10))
        part[:] = 3  # results are their owner's to write

    def test_shapes_of_memory(self):
        s = self.session("(float[?,?] x) => (float[?,?] y)", "y = Identity(x)", threads=1)
        base = np.arange(24, dtype=np.float32).reshape(4, 6)
        unaligned = np.frombuffer(b"\0" + base.tobytes(), np.float32, offset=1).reshape(4, 6)
        for x in (base[::2], base[:, ::3], base[::-1], base[:, ::-1], base.T, np.broadcast_to(base[0], (5, 6)), unaligned,
                  base.astype(">f4"), base[:0], np.asfortranarray(base), base.view(type("Sub", (np.ndarray,), {}))):
            np.testing.assert_array_equal(s(x), x)
        frozen = base.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(s(frozen), base)
        np.testing.assert_array_equal(s(memoryview(base)), base)
        np.testing.assert_array_equal(s((ctypes.c_float * 6 * 4)(*[tuple(r) for r in base])), base)
        import array
        with self.assertRaises(onx.InvalidError):  # of rank 1
            s(array.array("f", [1, 2, 3]))

    def test_dlpack(self):
        s = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)")

        class Tensor:  # as tensors of other libraries are: DLPack and nothing else
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **kwargs):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x = np.arange(5, dtype=np.float32)
        there = weakref.ref(x)
        np.testing.assert_array_equal(s(Tensor(x)), -x)
        value = onx.Value(Tensor(x))
        self.assertEqual(value.address, x.ctypes.data)
        back = np.from_dlpack(value)
        self.assertTrue(np.shares_memory(back, x))
        del x
        gc.collect()
        self.assertIsNotNone(there())
        del value
        self.assertEqual(back.tolist(), [0, 1, 2, 3, 4])
        del back
        gc.collect()
        self.assertIsNone(there())
        capsule = onx.Value(np.ones(2, np.float32)).__dlpack__()
        del capsule  # that nobody took
        with self.assertRaises(BufferError):
            onx.Value(["a"]).numpy() and onx.Value([np.ones(1)]).__dlpack__()

        class Broken(Tensor):
            def __dlpack__(self, **kwargs):
                raise RuntimeError("on another device")

        with self.assertRaisesRegex(RuntimeError, "another device"):
            s(Broken(np.ones(1)))

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no torch here")
        s = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)")
        x = torch.arange(5, dtype=torch.float32)
        self.assertTrue(torch.equal(torch.from_numpy(s(x)), -x))

    def test_values(self):
        x = np.arange(6, dtype=np.int64).reshape(2, 3)
        value = onx.Value(x)
        self.assertEqual((value.kind, value.dtype, value.shape, value.nbytes, len(value)), ("tensor", "int64", (2, 3), 48, 2))
        self.assertTrue(np.shares_memory(np.asarray(value), x))
        self.assertIs(onx.Value(value), value)
        self.assertEqual(onx.Value({"a": 1.0}).numpy(), {"a": 1.0})
        self.assertEqual(onx.Value({3: 1.0}).numpy(), {3: 1.0})
        self.assertEqual([a.tolist() for a in onx.Value([[1, 2], [3]]).numpy()], [[1, 2], [3]])
        with self.assertRaises(IndexError):
            value[0]
        with self.assertRaises(TypeError):
            onx.Value()
        with self.assertRaises(TypeError):
            object.__new__(onx.Value)
        with self.assertRaises(TypeError):
            onx.Value(object())
        with self.assertRaises(TypeError):
            onx.Value(np.zeros(3, "M8[s]"))

    def test_references(self):
        """Nothing stays: objects are counted, also on the ways of failure."""
        s = self.session("(float[N] x, string[N] t) => (float[N] y, string[N] u)", "y = Neg(x)\nu = Identity(t)")
        x = np.ones(4, np.float32)
        feeds = {"x": x, "t": ["a", "b", "c", "d"]}

        def once():
            s.run(None, feeds)
            s(x, feeds["t"])
            s.run(None, {"x": x[::-1], "t": np.array(feeds["t"])})
            for wrong in ({"x": x}, {"x": x, "q": x}, {"x": x.astype(int), "t": feeds["t"]}, {"x": object(), "t": []}):
                with self.assertRaises((onx.Error, TypeError)):
                    s.run(None, wrong)
            with self.assertRaises(onx.NotFoundError):
                s.run(["nothing"], feeds)
            onx.Value({"a": 1.0}).numpy()
            onx.Value([x, x]).numpy()
            with self.assertRaises(onx.FileError):
                onx.Session("no_such.onnx")
            s.inputs, s.outputs

        for _ in range(300):
            once()
        gc.collect()
        counts = sys.getrefcount(x), sys.getrefcount(feeds), sys.getrefcount(None), len(gc.get_objects()), sys.getallocatedblocks()
        for _ in range(1000):
            once()
        gc.collect()
        after = sys.getrefcount(x), sys.getrefcount(feeds), sys.getrefcount(None), len(gc.get_objects()), sys.getallocatedblocks()
        self.assertEqual(counts[:2], after[:2])
        for a, b in zip(counts[2:], after[2:]):
            self.assertLess(abs(a - b), 600, (counts, after))  # a leak would be 1000 at least

    def test_dealloc_without_init(self):
        s = onx.Session.__new__(onx.Session)
        with self.assertRaises(ValueError):
            s()
        self.assertEqual(s.inputs, [])

    def test_subclass(self):
        class Twice(onx.Session):
            def __call__(self, *args, **kwargs):
                return 2 * super().__call__(*args, **kwargs)

        path = models.write(self.folder.name, models.model("(float[N] x) => (float[N] y)", "y = Neg(x)"))
        s = Twice(path, threads=1)
        s.note = "has a dict"
        self.assertEqual(s([1.0]).tolist(), [-2.0])
        with self.assertRaises(TypeError):
            s.__init__(path)
        there = weakref.ref(s)
        del s
        gc.collect()
        self.assertIsNone(there())


def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


LOOP = ("(int64 n, float[N,N] x) => (float[N,N] y)",
        "yes = Constant <value = bool {1}> ()\n"
        "y = Loop (n, yes, x) <body = b (int64 i, bool c, float[N,N] a) => (bool d, float[N,N] o)\n"
        "{ d = Identity(c)\n m = MatMul(a, a)\n o = Tanh(m) }>")


class TestWrong(Case):
    def test_inputs(self):
        s = self.session("(float[N,2] x, int64[N] n) => (float[N,2] y)", "y = Neg(x)")
        x, n = np.ones((1, 2), np.float32), np.zeros(1, np.int64)
        for wrong in (dict(x=x), dict(x=x.astype(np.float64), n=n), dict(x=np.ones((1, 3), np.float32), n=n), dict(x=x[0], n=n),
                      dict(x=x, n=None), dict(x=x, n=np.zeros((1, 1), np.int64))):
            with self.assertRaises((onx.InvalidError, onx.MisuseError)) as caught:
                s.run(None, wrong)
            self.assertEqual(caught.exception.diagnostics[0].severity, "error")
        with self.assertRaisesRegex(onx.NotFoundError, "no input 'X'"):
            s(X=x, x=x, n=n)
        with self.assertRaises(TypeError):
            s(x, n, n)
        with self.assertRaises(TypeError):
            s(x, n, x=x)
        with self.assertRaises(TypeError):
            s.run(None, [x, n])
        with self.assertRaises(onx.NotFoundError):
            s.run(None, {"x": x, "n": n, 3: n})
        with self.assertRaises(TypeError):
            s.run(7, {"x": x, "n": n})
        self.assertEqual(s(x, n).tolist(), [[-1, -1]])

    def test_options(self):
        path = models.STRIPES
        for wrong in (dict(threads=-1), dict(isa="z80"), dict(precision="f1"), dict(timeout=-1), dict(timeout=float("nan"))):
            with self.assertRaises(ValueError):
                onx.Session(path, **wrong)
        for right in (dict(threads=2), dict(isa="base"), dict(precision="bf16"), dict(plain=True), dict(optimize=False), dict(strict=True)):
            self.assertEqual(onx.Session(path, **right)(np.zeros((2, 1, 8, 8), np.float32)).shape, (2, 4))

    def test_warnings(self):
        text = models.model("(float[N] x) => (float[N] y)", "y = Neg(z)\nz = Abs(x)")
        path = models.write(self.folder.name, text)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            self.assertEqual(onx.Session(path, threads=1)([-2.0]).tolist(), [-2.0])
        self.assertTrue(any(w.category is onx.Warning for w in found))
        with self.assertRaises(onx.InvalidError):
            onx.Session(path, strict=True)

    def test_limits(self):
        s = self.session(*LOOP)
        x = np.eye(64, dtype=np.float32)
        with self.assertRaises(onx.LimitError):
            s.run(None, {"n": 1 << 40, "x": x}, timeout=0.05)
        with self.assertRaises(onx.LimitError):
            s.run(None, {"n": 1 << 40, "x": x}, iterations=10)
        self.assertEqual(s(1, x).shape, x.shape)


class TestThreads(Case):
    def test_other_threads_go_on(self):
        s = self.session(*LOOP)
        x = np.eye(64, dtype=np.float32)
        failed = []

        def work():
            try:
                with self.assertRaises(onx.LimitError):
                    s.run(None, {"n": 1 << 40, "x": x}, timeout=1)
            except BaseException as e:
                failed.append(e)

        thread = threading.Thread(target=work)
        thread.start()
        turns = 0
        while thread.is_alive():
            time.sleep(0.01)
            turns += 1
        thread.join()
        self.assertFalse(failed)
        self.assertGreater(turns, 2)

    def test_one_session_many_threads(self):
        s = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)", threads=2)
        failed = []

        def work(k):
            kept = []
            for i in range(300):
                x = np.full(50 + i % 7, k + i, np.float32)
                y = s(x)
                kept.append(y)  # freed while others run
                if not (y == -x).all():
                    failed.append((k, i))
                if i % 10 == 0:
                    kept.clear()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertFalse(failed)

    def test_interrupt(self):
        s = self.session(*LOOP, threads=2)
        x = np.eye(64, dtype=np.float32)
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            s(1 << 40, x)
        self.assertLess(time.monotonic() - began, 10)
        timer.join()
        self.assertEqual(s(1, x).shape, x.shape)

    def test_fork(self):
        one = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)", threads=1)
        many = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)", threads=2)
        x = np.ones(8, np.float32)
        one(x), many(x)
        pid = os.fork()
        if pid == 0:
            try:
                good = (one(x) == -x).all()
                try:
                    many(x)
                    good = False
                except RuntimeError:
                    pass
                new = self.session("(float[N] x) => (float[N] y)", "y = Neg(x)", threads=2)
                good = good and (new(x) == -x).all()
                del many
                gc.collect()
                os._exit(0 if good else 1)
            except BaseException:
                os._exit(2)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertTrue((many(x) == -x).all())


if __name__ == "__main__":
    unittest.main()
