"""Memory of inputs: every protocol by which an object shows its elements, with memory reused between making a value and its use."""
import array
import ctypes
import gc
import tempfile
import unittest

import models
import numpy as np
import onx
import onx.backend
import onx.compat.onnxruntime


def churn():
    """Reuses what has been freed, with other contents."""
    gc.collect()
    return [np.full(n, 77, t) for n in (1, 2, 4, 8, 16, 64) for t in (np.int8, np.float32, np.float64) for _ in range(50)] + [
        bytes([n]) * n for n in range(1, 200)]


class Temporary:
    """Shows an array that nothing but the answer keeps alive."""

    def __init__(self, numbers, how):
        self.numbers, self.how = numbers, how

    def __getattr__(self, name):
        if name != self.how:
            raise AttributeError(name)
        made = np.array(self.numbers, np.float32)
        if name == "__array__":
            return lambda dtype=None, copy=None: made
        if name == "__dlpack__":
            return lambda **options: made.__dlpack__()
        if name == "__dlpack_device__":
            return lambda: (1, 0)
        return getattr(made, name)


class Interface:
    """Shows memory of its own by __array_interface__."""

    def __init__(self, numbers):
        self.memory = (ctypes.c_float * len(numbers))(*numbers)
        self.__array_interface__ = {"version": 3, "shape": (len(numbers),), "typestr": "<f4", "data": (ctypes.addressof(self.memory), True)}


def makers():
    """Functions that make an object with the numbers, and the shape that it has."""
    yield "scalar", lambda k: np.float32(k[0]), ()
    yield "array of rank 0", lambda k: np.array(k[0], np.float32), ()
    yield "array", lambda k: np.array(k, np.float32), None
    yield "part of an array", lambda k: np.array([[v, 0] for v in k], np.float32)[:, 0], None
    yield "other byte order", lambda k: np.array(k, ">f4"), None
    yield "memoryview", lambda k: memoryview(np.array(k, np.float32)), None
    yield "array.array", lambda k: array.array("f", k), None
    yield "ctypes", lambda k: (ctypes.c_float * len(k))(*k), None
    yield "list", list, None
    yield "__array_interface__", Interface, None
    yield "value", lambda k: onx.Value(np.array(k, np.float32)), None
    yield "value of a temporary", lambda k: onx.Value(Temporary(k, "__array_struct__")), None
    for how in ("__array_struct__", "__array__"):
        yield "temporary " + how, lambda k, how=how: Temporary(k, how), None


class TestMemory(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def session(self, kind):
        text = models.model("(float%s x, float%s z) => (float%s y)" % ((kind,) * 3), "y = Sub (x, z)")
        return models.write(self.folder.name, text, "m%d.onnxtxt" % len(kind))

    def test_values(self):
        for name, make, shape in makers():
            numbers = [[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]]
            values = [onx.Value(make(k)) for k in numbers]
            kept = churn()
            for value, k in zip(values, numbers):
                want = k[0] if shape == () else k
                self.assertEqual(np.asarray(value.numpy(), np.float32).tolist(), want, name)
            del kept

    def test_runs(self):
        for name, make, shape in makers():
            path = self.session("" if shape == () else "[2]")
            feeds = {"x": make([9, 8]), "z": make([2, 4])}
            kept = churn()
            want = 7 if shape == () else [7, 4]
            for session in (onx.Session(path, threads=1), onx.compat.onnxruntime.InferenceSession(path)):
                for _ in range(3):
                    if name == "array.array" or not isinstance(session, onx.Session) and name in ("ctypes",):
                        continue
                    self.assertEqual(np.asarray(session.run(None, feeds)[0]).tolist(), want, name)
            self.assertEqual(np.asarray(onx.backend.prepare(path).run(list(feeds.values()))[0]).tolist(), want, name)
            del kept

    def test_scalars_of_every_type(self):
        for dtype in (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
                      np.float64, np.complex64, np.complex128):
            values = [onx.Value(dtype(i)) for i in range(2)]
            kept = churn()
            self.assertEqual([v.numpy().item() for v in values], [dtype(0).item(), dtype(1).item()], dtype)
            del kept

    def test_clip(self):
        x = np.array([-1, 0, 1], np.float32)
        for _ in range(20):
            y = onx.backend.run_node(onx.node("Clip", ["x", "lo", "hi"], "y"), [x, np.float32(-5), np.float32(5)])[0]
            self.assertEqual(y.tolist(), [-1, 0, 1])

    def test_items_of_lists(self):
        value = onx.Value([np.float32(k) for k in range(5)])
        kept = churn()
        self.assertEqual([np.asarray(v).item() for v in value.numpy()], list(range(5)))
        del kept


if __name__ == "__main__":
    unittest.main()
