"""Models in memory: fields, lists, weights without copies, files, and transformations."""
import copy
import gc
import os
import pickle
import random
import sys
import tempfile
import threading
import time
import unittest
import warnings

import models
import numpy as np
import onx


def stripes():
    return onx.load(models.STRIPES)


class TestFields(unittest.TestCase):
    def test_read(self):
        m = stripes()
        self.assertIsInstance(m, onx.ModelProto)
        self.assertEqual((m.ir_version, m.producer_name, m.opset_import[0].version), (8, "written by hand", 17))
        self.assertEqual(m.graph.node[0].op_type, "Conv")
        self.assertEqual(m.graph.node[-1].output, ["probability"])
        self.assertEqual(m.graph.input[0].type.tensor_type.shape.dim[1].dim_value, 1)
        self.assertEqual(m.graph.input[0].type.tensor_type.shape.dim[0].dim_param, "N")
        self.assertIsNone(m.graph.input[0].type.sequence_type)
        self.assertTrue(m.has("graph") and m.HasField("ir_version") and not m.has("domain"))
        with self.assertRaises(ValueError):
            m.has("grap")
        with self.assertRaises(AttributeError):
            m.grap
        self.assertIs(type(m.graph.input[0].type.tensor_type), onx.TypeProto.Tensor)
        self.assertIn("op_type", dir(onx.NodeProto))
        self.assertEqual(onx.TensorProto.FLOAT, 1)

    def test_write(self):
        m = stripes()
        before = m.copy()
        n = m.graph.node[0]
        n.name, n.domain = "größer\0x", "d"
        self.assertEqual(m.graph.node[0].name, "größer\0x")
        n.name = b"\xff\xfe"
        self.assertEqual(n.name.encode("utf-8", "surrogateescape"), b"\xff\xfe")
        n.name = n.name
        self.assertEqual(n.name.encode("utf-8", "surrogateescape"), b"\xff\xfe")
        n.domain = None
        self.assertFalse(n.has("domain"))
        del n.name
        self.assertEqual((n.name, n.has("name")), ("", False))
        m.ir_version = -1 << 63
        self.assertEqual(m.ir_version, -1 << 63)
        for wrong in (1 << 63, 1.5, "3", None.__class__):
            with self.assertRaises((TypeError, OverflowError)):
                m.ir_version = wrong
        with self.assertRaises(TypeError):
            n.name = 3
        with self.assertRaises(TypeError):
            m.graph = n
        m.graph.input[0].type.tensor_type.elem_type = 7
        with self.assertRaises((OverflowError, onx.Error)):
            m.graph.input[0].type.tensor_type.elem_type = 1 << 40
        dim = m.graph.input[0].type.tensor_type.shape.dim[0]
        dim.dim_value = 3  # of a oneof
        self.assertFalse(dim.has("dim_param"))
        self.assertEqual(before, stripes())
        self.assertNotEqual(m, before)

    def test_made(self):
        n = onx.NodeProto(op_type="Relu", input=["x"], output=["y"])
        self.assertEqual(n, onx.node("Relu", "x", "y"))
        a = onx.attribute("a", [1, 2.5])
        self.assertEqual((a.type, list(a.floats)), (6, [1, 2.5]))
        for value, kind in ((1, 2), (1.5, 1), ("x", 3), ([1], 7), (["x"], 8), (n and onx.tensor([1.0]), 4), (onx.GraphProto(), 5),
                            (onx.type_of("float"), 13), ([onx.tensor(1)], 9), (np.float32(2), 1), (np.arange(2), 4), ([onx.type_of("float")], 14)):
            self.assertEqual(onx.attribute("a", value).type, kind, value)
        with self.assertRaises(TypeError):
            onx.NodeProto(1)
        with self.assertRaises(AttributeError):
            onx.NodeProto(opp=1)
        with self.assertRaises(TypeError):
            onx.Message()
        with self.assertRaises(TypeError):
            object.__new__(onx.NodeProto)
        g = onx.graph([onx.node("MatMul", ["x", "w"], "y")], "g", [onx.value_info("x", "float", ["N", 2])],
                      [onx.value_info("y", np.float32, ["N", 3])], [onx.tensor(np.ones((2, 3), np.float32), "w")])
        m = onx.model(g, 17)
        self.assertEqual(onx.check(m, full=True), [])
        self.assertEqual(onx.Session(m, threads=1)([[1, 2]]).tolist(), [[3, 3, 3]])

    def test_subclass_and_hash(self):
        with self.assertRaises(TypeError):
            type("Mine", (onx.NodeProto,), {})
        with self.assertRaises(TypeError):
            hash(onx.NodeProto())
        self.assertNotEqual(onx.NodeProto(), 3)
        self.assertNotEqual(onx.NodeProto(), onx.GraphProto())

    def test_unknown_fields(self):
        data = onx.NodeProto(op_type="Relu").to_bytes() + b"\xfa\x3f\x03abc"  # field 1023
        n = onx.from_bytes(data, onx.NodeProto)
        n.name = "n"
        n.input.append("x")
        self.assertIn(b"\xfa\x3f\x03abc", n.to_bytes())
        g = onx.GraphProto(node=[n, n])
        self.assertEqual(g.to_bytes().count(b"\xfa\x3f\x03abc"), 2)
        self.assertIn(b"\xfa\x3f\x03abc", pickle.loads(pickle.dumps(n)).to_bytes())
        self.assertIn(b"\xfa\x3f\x03abc", copy.copy(g.node[0]).to_bytes())


class TestLists(unittest.TestCase):
    def same(self, make, items, wrong):
        """Does to a field and to a list of Python's what lists can have done to them."""
        rng = random.Random(1)
        field, twin = make(), []
        for step in range(400):
            n = len(twin)
            i, j = rng.randint(-n - 2, n + 2), rng.randint(-n - 2, n + 2)
            some = [rng.choice(items) for _ in range(rng.randint(0, 4))]
            what, step_of = rng.randint(0, 9), rng.choice([2, -1, -2])
            for l in (field, twin):
                try:
                    if what == 0:
                        l.append(some[0])
                    elif what == 1:
                        l.insert(i, some[0])
                    elif what == 2:
                        l[i:j] = some
                    elif what == 3:
                        del l[i:j]
                    elif what == 4:
                        l[i] = some[0]
                    elif what == 5:
                        del l[i]
                    elif what == 6:
                        l.extend(some)
                    elif what == 7:
                        l[i:j:step_of] = (some * 12)[:len(twin[i:j:step_of])] if some else []
                    elif what == 8:
                        l.reverse()
                    else:
                        l += some
                    failed = None
                except (IndexError, ValueError) as e:
                    failed = type(e)
                if l is field:
                    first = failed
            self.assertEqual(first, failed, (what, i, j, some))
            self.assertEqual(list(field), twin, (what, i, j, some))
            self.assertEqual(field[i:j], twin[i:j])
            self.assertEqual(field[i:j:-2], twin[i:j:-2])
            self.assertEqual(len(field), len(twin))
            if len(twin) > 12:
                del field[5:], twin[5:]
        before = list(field)
        for value in wrong:
            with self.assertRaises((TypeError, OverflowError)):
                field.append(value)
            with self.assertRaises((TypeError, OverflowError)):
                field[0:1] = [items[0], value]
        self.assertEqual(list(field), before)

    def test_texts(self):
        self.same(lambda: onx.NodeProto().input, ["a", "b", "größer", ""], [1, None])

    def test_ints(self):
        self.same(lambda: onx.AttributeProto().ints, [0, -1, 1 << 62], ["a", 1.5, 1 << 63, None])
        self.same(lambda: onx.TensorProto().int32_data, [0, -1], ["a", 1 << 31])
        self.same(lambda: onx.TensorProto().uint64_data, [0, (1 << 64) - 1], [-1])

    def test_floats(self):
        self.same(lambda: onx.AttributeProto().floats, [0.5, -1.0, 3], ["a", None])
        self.same(lambda: onx.TensorProto().double_data, [0.1, -1.0], ["a"])
        self.same(lambda: onx.TensorProto().float_data, [0.5], ["a"])

    def test_messages(self):
        items = [onx.node("Relu", "x", "y"), onx.node("Neg", "y", "z"), onx.node("Abs", "z", "w")]
        self.same(lambda: onx.GraphProto().node, items, [1, "a", onx.GraphProto()])

    def test_moves(self):
        """What an assignment takes out and puts back stays the same message; what is there twice does not."""
        m = stripes()
        first, last = m.graph.node[0], m.graph.node[-1]
        m.graph.node.sort(key=lambda n: n.output[0])
        first.name = "moved"
        self.assertEqual(m["moved"].op_type, "Conv")
        m.graph.node[:] = [first, first]
        first.name = "one"
        self.assertEqual(sorted(n.name for n in m.graph.node), ["moved", "one"])
        last.name = "not in the model any more"
        self.assertEqual(len(m.graph.node), 2)

    def test_more(self):
        m = stripes()
        added = m.graph.node.add(op_type="Neg", input=["probability"], output=["n"])
        self.assertEqual(added, m.graph.node[-1])
        added.name = "added"
        self.assertEqual(m["added"].op_type, "Neg")
        self.assertIs(type(m.graph.node.pop()), onx.NodeProto)
        m.graph.node.remove(m.graph.node[0])
        self.assertEqual(len(m.graph.node), 5)
        self.assertEqual(m.graph.node.index(m.graph.node[2]), 2)
        self.assertIn(m.graph.node[1], m.graph.node)
        self.assertNotIn(added, m.graph.node)
        m.graph.node.clear()
        self.assertEqual((len(m.graph.node), bool(m.graph.node), m.graph.has("node")), (0, False, False))
        with self.assertRaises(TypeError):
            m.graph.node.add(3)
        with self.assertRaises(TypeError):
            onx.NodeProto().input.add()
        with self.assertRaises(TypeError):
            type(m.graph.node)()
        g = onx.GraphProto()
        g.node.add().attribute.add(name="body", g=g)  # a copy of itself
        self.assertEqual(len(g.node[0].attribute[0].g.node), 1)


class TestWeights(unittest.TestCase):
    def test_views(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            w = np.arange(1 << 20, dtype=np.float32)
            g = onx.graph([onx.node("Add", ["x", "w"], "y")], "g", [onx.value_info("x", "float", [1 << 20])],
                          [onx.value_info("y", "float", None)], [onx.tensor(w, "w")])
            onx.save(onx.model(g), path)
            for external in (None, "w.bin"):
                onx.save(onx.load(path), path, external=external)
                m = onx.load(path)
                before = allocated(m)
                array = m.graph.initializer[0].numpy()
                np.testing.assert_array_equal(np.asarray(m["w"]), w)
                self.assertLess(allocated(m) - before, 1 << 16)
                self.assertFalse(array.flags.writeable)
                with self.assertRaises(ValueError):
                    array[0] = 1
                with self.assertRaises(ValueError):
                    array.flags.writeable = True
                part = array[5:8]
                del m, array
                gc.collect()
                self.assertEqual(part.tolist(), [5, 6, 7])  # keeps the file mapped

    def test_all_kinds(self):
        for dtype in "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128".split():
            x = np.array([[0, 1, 2]], dtype)
            np.testing.assert_array_equal(onx.tensor(x).numpy(), x)
        for dtype in ("bfloat16", "int4", "uint4", "float8e4m3fn", "float4e2m1", "uint2"):
            t = onx.tensor([0, 1, 2, 3], "t", dtype)
            self.assertEqual(t.numpy().tolist(), [0, 1, 2, 3], dtype)
        self.assertEqual(onx.tensor(["a", "größer"]).numpy().tolist(), ["a", "größer"])
        self.assertEqual(onx.tensor(np.array("a")).numpy().shape, ())
        t = onx.TensorProto(dims=[2], data_type=onx.TensorProto.FLOAT, float_data=[1, 2])
        views = [t.numpy() for _ in range(100)]
        self.assertEqual(views[99].tolist(), [1, 2])
        t = onx.TensorProto(dims=[2], data_type=onx.TensorProto.FLOAT16, int32_data=[0x3c00, 0])
        self.assertEqual(t.numpy().tolist(), [1, 0])
        for wrong in (onx.TensorProto(dims=[2], data_type=1, float_data=[1]), onx.TensorProto(dims=[-1], data_type=1, float_data=[1]),
                      onx.TensorProto(dims=[2], raw_data=b"1234"), onx.TensorProto(dims=[1 << 40, 1 << 40], data_type=1, raw_data=b""),
                      onx.TensorProto(dims=[2], data_type=99, raw_data=b"12")):
            with self.assertRaises((onx.Error, ValueError)):
                wrong.numpy()
        with self.assertRaises(TypeError):
            onx.NodeProto()._numpy()
        with self.assertRaises(TypeError):
            onx.tensor(np.zeros(1, "M8[s]"))
        outside = onx.from_bytes(onx.TensorProto(dims=[1], data_type=1, data_location=1,
                                                 external_data=[onx.StringStringEntryProto(key="location", value="../x")]).to_bytes(),
                                 onx.TensorProto, base_dir="/tmp")
        with self.assertRaises(onx.Error):
            outside.numpy()

    def test_shared(self):
        """Weights that go from one model to another are not copied, and live as long as either."""
        a, b = stripes(), onx.model(onx.GraphProto(name="g"))
        big = onx.tensor(np.zeros(1 << 22, np.uint8), "big")
        a.graph.initializer.append(big)
        b.graph.initializer.extend(a.graph.initializer)
        b.graph.initializer.extend(b.graph.initializer[:1])
        a.graph.initializer.append(b.graph.initializer[0])  # and back
        self.assertEqual(big.numpy().ctypes.data, b["big"].numpy().ctypes.data)
        text = str(a)
        del b, big
        gc.collect()
        self.assertEqual(str(a), text)
        self.assertEqual(a["big"].numpy().sum(), 0)

    def test_bytes_are_kept(self):
        data = bytearray(stripes().to_bytes())
        m = onx.from_bytes(bytes(data))
        data[:] = b"\0" * len(data)
        gc.collect()
        self.assertEqual(m, stripes())

    def test_references(self):
        m = stripes()
        data = m.to_bytes()

        def once():
            n = onx.from_bytes(data)
            n.graph.node[0].input[0] = "x"
            n.graph.node[:] = n.graph.node[::-1]
            n.graph.initializer.append(m.graph.initializer[0])
            n["lines"].numpy(), n.walk(None, paths=True), str(n), n.copy(), pickle.dumps(n)
            onx.check(n), onx.sort(m), onx.extract(m, outputs="mean"), onx.split(m, 2), onx.merge([m, onx.model(onx.GraphProto(name="g"), 17)])
            onx.simplify(m, changes=[]), onx.edit(m, ("batch", 2)), onx.infer(m)
            for wrong in (lambda: n["nothing"], lambda: onx.parse("x"), lambda: n.graph.node.append(1), lambda: onx.extract(m, outputs="no"),
                          lambda: setattr(n, "graph", 3), lambda: onx.load("no_such.onnx"), lambda: onx.retarget(m, 99)):
                try:
                    wrong()
                except (onx.Error, KeyError, TypeError):
                    continue
                self.fail()

        def counts():
            gc.collect()
            return sys.getrefcount(data), sys.getrefcount(None), len(gc.get_objects()), sys.getallocatedblocks()

        for _ in range(10):
            once()
        before = counts()
        for _ in range(100):
            once()
        after = counts()
        self.assertEqual(before[0], after[0])
        for a, b in zip(before, after):
            self.assertLess(abs(a - b), 90, (before, after))

    def test_freed(self):
        m = stripes()
        n, l = m.graph.node[0], m.graph.node
        del m
        gc.collect()
        self.assertEqual((n.op_type, len(l)), ("Conv", 6))


def allocated(m):
    with open("/proc/self/statm") as f:
        return int(f.read().split()[5]) * os.sysconf("SC_PAGESIZE")


class TestFiles(unittest.TestCase):
    def test_formats(self):
        m = stripes()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.onnx", "a.onnxtxt", "a.textproto", "a.json"):
                path = os.path.join(folder, name)
                m.save(path)
                self.assertEqual(onx.load(path), m)
                kind = {"onnx": "binary"}.get(name[2:], name[2:])
                with open(path, "rb") as f:
                    data = f.read()
                self.assertEqual(onx.to_bytes(m, kind), data)
                self.assertEqual(onx.from_bytes(data, format=kind), m)
            with self.assertRaises(onx.FileError):
                onx.save(m, os.path.join(folder, "no", "a.onnx"))
            with self.assertRaises(onx.FileError):
                onx.load(folder)
            with self.assertRaises(ValueError):
                onx.load(path, format="xml")
            with self.assertRaises(TypeError):
                onx.load(path, int)
        with self.assertRaises(onx.MalformedError) as caught:
            onx.parse("g (float x) => (float y)\n{ y = }")
        self.assertTrue(caught.exception.diagnostics[0].line)
        self.assertEqual(onx.parse(str(m["probability"]), onx.NodeProto), m["probability"])

    def test_large(self):
        """Ten gigabytes are mapped, not read."""
        def number(x):
            out = b""
            while x > 127:
                out += bytes([x & 127 | 128])
                x >>= 7
            return out + bytes([x])

        size = 10 << 30
        head = b"\x08" + number(size // 4) + b"\x10\x01\x42\x01w\x4a" + number(size)  # dims, FLOAT, name, raw_data
        head = b"\x2a" + number(len(head) + size) + head  # initializer
        head = b"\x3a" + number(len(head) + size) + head  # graph
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "large.onnx")
            with open(path, "wb") as f:
                f.write(head)
                try:
                    f.truncate(len(head) + size)
                except OSError as e:
                    self.skipTest(str(e))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that other readers refuse it
                begin = time.process_time()
                array = onx.load(path)["w"].numpy()
                self.assertLess(time.process_time() - begin, 1)
            self.assertEqual((array.shape, array[-1]), ((size // 4,), 0))

    def test_pickle_and_copy(self):
        m = stripes()
        for again in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m), m.copy()):
            self.assertEqual(again, m)
            again.graph.node[0].name = "other"
            self.assertNotEqual(again, m)
        self.assertEqual(copy.copy(m.graph.node[0]), m.graph.node[0])
        error = None
        try:
            onx.load("no_such.onnx")
        except onx.Error as e:
            error = pickle.loads(pickle.dumps(e))
        self.assertIsInstance(error, onx.FileError)
        self.assertTrue(error.diagnostics[0].message)


class TestWork(unittest.TestCase):
    def test_functions(self):
        m = stripes()
        before = m.to_bytes()
        self.assertEqual(m.infer().graph.value_info[0].name, "edges")
        changes = []
        self.assertEqual(onx.Session(m.simplify(dims={"N": 1}, shapes={"image": [1, 1, 8, 8]}, changes=changes), threads=1).inputs[0].shape, [1, 1, 8, 8])
        self.assertEqual(m.retarget(21).opset_import[0].version, 21)
        self.assertEqual(m.retarget({"": 13}).opset_import[0].version, 13)
        a, b = m.split(at="pooled")
        self.assertEqual(len(a.graph.node) + len(b.graph.node), 6)
        whole = onx.merge([a, b])
        del a, b
        gc.collect()
        x = np.random.RandomState(0).rand(1, 1, 8, 8).astype(np.float32)
        want = onx.Session(m, threads=1)(x)
        np.testing.assert_array_equal(onx.Session(whole, threads=1)(x), want)
        self.assertEqual([n.op_type for n in m.extract(inputs="pooled", outputs="score").graph.node], ["GlobalAveragePool", "Reshape"])
        half = onx.convert(m, "float16", keep_io=True)
        np.testing.assert_allclose(onx.Session(half, threads=1)(x), want, atol=1e-2)
        changes = []
        self.assertEqual(len(onx.inline(onx.parse(models.model("(float[2] x) => (float[2] y)", "y = Gelu(x)")), schema=True, changes=changes).graph.node) > 1, True)
        self.assertEqual([(c.by, c.text) for c in changes], [("inline", "replaced by its function body")])
        turned = onx.parse(models.model("(int64[1, 2] position) => (float[1, 2] y)", "p = Cast<to = 1>(position) y = Sin(p)"))
        self.assertEqual([n.op_type for n in onx.convert(turned, "float16", keep_io=True).graph.node], ["Cast", "Sin"])
        self.assertEqual([n.op_type for n in onx.convert(turned, "float16", keep_io=True, exact=True).graph.node], ["Cast", "Sin", "Cast"])
        np.testing.assert_allclose(onx.Session(onx.quantize(m), threads=1)(x), want, atol=1e-1)
        self.assertEqual(onx.compress(m), m)
        w = ", ".join("3" if i == 7 else "0" for i in range(800))
        pruned = onx.parse(models.model("(float[2, 800] x) => (float[2, 1] y) <float[800, 1] w = {%s}>" % w, "y = MatMul(x, w)"))
        changes = []
        sparse = onx.compress(pruned, sparse=True, changes=changes)
        self.assertEqual([(c.rule, c.path) for c in changes], [("sparse", "w")])
        self.assertEqual(list(sparse.graph.sparse_initializer[0].dims), [800, 1])
        x = np.arange(1600, dtype=np.float32).reshape(2, 800)
        self.assertEqual(onx.Session(sparse, threads=1)(x).tolist(), [[21], [2421]])
        self.assertEqual(onx.sort(m), m)
        m2 = onx.grad(onx.parse(models.model("(float[2] x) => (float[2] y)", "y = Mul(x, x)")), "y", "x")
        self.assertEqual(onx.Session(m2, threads=1)([3, 4])[1].tolist(), [6, 8])
        f = onx.parse(models.model("(float[2] x) => (float[2] y)", "y = d.twice(x)", extra=', "d" : 1',
                                   functions='<domain: "d", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }'))
        self.assertEqual([n.op_type for n in f.inline().graph.node], ["Add"])
        chain = onx.parse(models.model("(float[2] x) => (float[2] y)", "\n".join(
            "a%d = Neg(%s)\nb%d = Abs(a%d)\nc%d = Exp(b%d)\n%s = Neg(c%d)" % (i, "x" if i == 0 else "d%d" % (i - 1), i, i, i, i, "d%d" % i if i < 3 else "y", i) for i in range(4))))
        self.assertEqual(len(onx.outline(chain).functions), 1)
        typed = onx.edit(m, ("rename_value", "image", "x"), ("metadata", "k", "v"), ("initializer", "threshold", np.zeros(4, np.float32)),
                         ("type", "x", "float[2,1,8,8]"), ("set_outputs", ["score", "mean"]))
        self.assertEqual((typed.graph.input[0].name, typed.metadata_props[0].value, typed["threshold"].numpy().tolist(), len(typed.graph.output)),
                         ("x", "v", [0] * 4, 2))
        self.assertEqual(m.to_bytes(), before)  # nothing has touched it
        self.assertIsInstance(onx.simplify(onx.parse(models.model("(float[2] x) => (float[2] y)", "a = Identity(x)\ny = Neg(a)")), changes=changes), onx.ModelProto)
        self.assertTrue(changes[0].path)
        self.assertEqual(onx.diff(m, m.copy()), [])
        self.assertIn("graph.node[0].name: absent, and 'n'", onx.diff(m, changed(m)))

    def test_wrong(self):
        m = stripes()
        for call, error in ((lambda: onx.extract(m, outputs="nothing"), onx.NotFoundError), (lambda: onx.retarget(m, 999), onx.Error),
                            (lambda: onx.merge([]), ValueError), (lambda: onx.merge([m, 3]), TypeError), (lambda: onx.check(3), TypeError),
                            (lambda: onx.simplify(m, passes=["nothing"]), onx.NotFoundError), (lambda: onx.infer(m.graph), TypeError),
                            (lambda: onx.edit(m, ("nothing", "a")), ValueError), (lambda: onx.split(m, 0), ValueError),
                            (lambda: onx.simplify(m, dims={"N": "x"}), TypeError), (lambda: onx.simplify(m, changes=3), TypeError),
                            (lambda: onx.convert(m, "int32"), onx.Error), (lambda: onx.quantize(m, "nothing"), ValueError),
                            (lambda: onx.grad(m, "nothing", "image"), onx.NotFoundError), (lambda: onx.split(m, 1 << 31), (onx.Error, MemoryError, ValueError, OverflowError))):
            with self.assertRaises(error):
                call()

    def test_check(self):
        m = stripes()
        self.assertEqual([f for f in m.check(full=True) if f.severity == "error"], [])
        m.graph.node[0].input[0] = "nothing"
        findings = m.check()
        self.assertIn("G-07", [f.rule for f in findings])
        self.assertEqual([f.rule for f in m.check(only="G-07")], ["G-07"])
        self.assertEqual(m.check(ignore=["G", "M"]), m.check(only="T"))
        with self.assertRaises(onx.InvalidError) as caught:
            m.check(raise_errors=True)
        self.assertEqual(len(caught.exception.diagnostics), len(findings))
        self.assertEqual(onx.check(onx.node("Relu", "x", "y")), [])
        self.assertTrue(onx.check(onx.node("Relu", ["x", "y"], "y")))

    def test_walk(self):
        m = onx.parse(models.model("(bool c, float x) => (float y)", "y = If (c) <then_branch = t () => (float a) { a = Neg(x) }, "
                                   "else_branch = e () => (float b) { b = Abs(x) }>"))
        self.assertEqual([n.op_type for n in m.walk()], ["If", "Neg", "Abs"])
        self.assertEqual(m.walk(onx.GraphProto, paths=True)[1][0].split(".attribute")[0], "graph.node[0] (If)")
        self.assertGreater(len(m.walk(None)), 10)
        with self.assertRaises(TypeError):
            m.walk(int)
        self.assertEqual(m["y"].op_type, "If")
        with self.assertRaises(KeyError):
            m["nothing"]

    def test_session_of_a_changing_model(self):
        m = stripes()
        s = onx.Session(m, threads=1)
        x = np.ones((1, 1, 8, 8), np.float32)
        want = s(x)
        m.graph.node.clear()
        m.graph.initializer.clear()
        del m
        gc.collect()
        np.testing.assert_array_equal(s(x), want)

    def test_threads(self):
        """While one thread reads a model, others may as well; nobody may change it."""
        m = onx.model(onx.graph([onx.node("Neg", "v%d" % i, "v%d" % (i + 1)) for i in range(3000)], "g",
                                [onx.value_info("v0", "float", [2])], [onx.value_info("v3000", "float", [2])]))
        want = m.to_bytes()
        failed = []

        def read():
            for _ in range(10):
                try:
                    if m.to_bytes() != want or onx.check(m) or len(onx.infer(m).graph.value_info) != 2999 or len(m.walk()) != 3000:
                        failed.append("other")
                except BaseException as e:
                    failed.append(e)

        refused = 0
        threads = [threading.Thread(target=read) for _ in range(3)]
        for t in threads:
            t.start()
        while any(t.is_alive() for t in threads):
            try:
                m.graph.name = "g"
                m.graph.node[0].op_type = "Neg"
            except RuntimeError:
                refused += 1
        self.assertEqual(failed, [])


def changed(m):
    m = m.copy()
    m.graph.node[0].name = "n"
    return m


if __name__ == "__main__":
    unittest.main()
