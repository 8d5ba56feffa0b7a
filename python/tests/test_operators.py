"""Custom operators in all functions that examine or change models."""
import gc
import inspect
import threading
import unittest

import models
import numpy as np
import onx

DOCUMENT = """
magic: "ONNXOPSET" ir_version: 10 domain: "com.example" opset_version: 2
operator { op_type: "Square" since_version: 2 status: EXPERIMENTAL }
functions { name: "Square" domain: "com.example" input: "a" output: "b"
  node { op_type: "Mul" input: "a" input: "a" output: "b" } opset_import { domain: "" version: 21 } }
"""
MODEL = """<ir_version: 10, producer_name: "hand", opset_import: ["" : 21, "com.example" : 2]>
g (float[2, 3] x) => (float[2, 3] y) <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
  a = com.example.Square(x)
  s = Shape(a)
  b = Reshape(a, s)
  y = MatMul(b, w)
}"""

# What each function is called with beside the model, or the two that it takes.
CALLS = {
    "check": (), "check_update": None, "infer": (), "simplify": (), "retarget": (22,), "inline": (), "outline": (), "sort": (),
    "compress": (), "convert": ("float16",), "quantize": (), "grad": ("y", "w"), "extract": (), "split": (1,), "merge": None,
    "edit": (("metadata", "key", "value"),),
}
# What looks at no operator: it reads, writes, shows or compares what is there.
WITHOUT = {"load", "save", "parse", "from_bytes", "to_bytes", "to_text", "diff", "tensor", "type_of", "value_info", "attribute",
           "node", "graph", "model", "from_proto", "to_proto"}


def square():
    operators = onx.Operators()
    operators.document(onx.from_bytes(DOCUMENT.encode(), onx.OperatorSetProto, format="textproto"))
    return operators


def call(name, operators):
    model = onx.parse(MODEL)
    if name == "check_update":
        return onx.check_update(model, onx.parse(MODEL), operators=operators)
    if name == "merge":
        return onx.merge([model, onx.parse(models.model("(float[2, 3] y) => (float[2, 3] z)", "z = Neg(y)"))], operators=operators)
    return getattr(onx, name)(model, *CALLS[name], operators=operators)


class TestOperators(unittest.TestCase):
    def test_every_function(self):
        functions = {name for name, f in vars(onx).items() if inspect.isfunction(f) and not name.startswith("_")}
        taking = {name for name in functions if "operators" in inspect.signature(getattr(onx, name)).parameters}
        self.assertEqual(taking, set(CALLS))
        self.assertEqual(functions - taking, WITHOUT)
        for name in sorted(CALLS):
            with self.subTest(name):
                call(name, square())
                with self.assertRaisesRegex(TypeError, "Operators are needed"):
                    call(name, [])
                gc.collect()

    def test_what_is_known(self):
        model, operators = onx.parse(MODEL), square()
        self.assertEqual({f.rule for f in onx.check(model)}, {"ND-06"})
        self.assertEqual(onx.check(model, operators=operators), [])
        known = {v.name: v for v in onx.infer(model, operators=operators).graph.value_info}
        self.assertEqual([d.dim_value for d in known["a"].type.tensor_type.shape.dim], [2, 3])
        self.assertNotIn("a", {v.name for v in onx.infer(model).graph.value_info if v.type and v.type.tensor_type.shape})
        self.assertIn("Reshape", [n.op_type for n in onx.simplify(model).graph.node])
        self.assertNotIn("Reshape", [n.op_type for n in model.simplify(operators=operators).graph.node])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        w = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
        np.testing.assert_allclose(onx.Session(model, operators=operators, threads=1)(x), (x * x) @ w)

    def test_they_are_forgotten(self):
        operators = square()
        for _ in range(40):  # more often than contexts are kept
            self.assertEqual(onx.check(onx.parse(MODEL), operators=operators), [])
            self.assertEqual(len(onx.check(onx.parse(MODEL))), 1)
        del operators
        gc.collect()
        self.assertEqual(len(onx.check(onx.parse(MODEL))), 1)

    def test_documents(self):
        operators = onx.Operators()
        with self.assertRaises(onx.InvalidError):
            operators.document(onx.from_bytes(b'magic: "ONNXOPSET" ir_version: 10', onx.OperatorSetProto, format="textproto"))
        with self.assertRaises(TypeError):
            operators.document(onx.parse(MODEL))
        document = onx.from_bytes(DOCUMENT.encode(), onx.OperatorSetProto, format="textproto")
        operators.document(document)
        document.functions = []
        del document
        gc.collect()
        self.assertEqual(onx.check(onx.parse(MODEL), operators=operators), [])

    def test_gradients_go_through_functions(self):
        operators = onx.Operators()
        nested = DOCUMENT.replace("operator {", """operator { op_type: "Fourth" since_version: 2 status: EXPERIMENTAL }
operator {""", 1) + """
functions { name: "Fourth" domain: "com.example" input: "a" output: "c"
  node { op_type: "Square" domain: "com.example" input: "a" output: "b" }
  node { op_type: "Square" domain: "com.example" input: "b" output: "c" }
  opset_import { domain: "" version: 21 } opset_import { domain: "com.example" version: 2 } }"""
        operators.document(onx.from_bytes(nested.encode(), onx.OperatorSetProto, format="textproto"))
        for opset in (18, 25):
            model = onx.parse('<ir_version: 8, opset_import: ["" : %d, "com.example" : 2]> g (float[3] x) => (float y) '
                              "{ f = com.example.Fourth(x) y = ReduceSum <keepdims = 0> (f) }" % opset)
            gradient = onx.grad(model, "y", "x", operators=operators)
            self.assertEqual({n.domain for n in gradient.graph.node} | {f.domain for f in gradient.functions}, {""})
            x = np.float32([1, -2, 3])
            y, dx = onx.Session(gradient, threads=1)(x)
            np.testing.assert_allclose(y, np.sum(x**4))
            np.testing.assert_allclose(dx, 4 * x**3)

    def test_nobody_changes_them_meanwhile(self):
        operators, refused = square(), []

        def tell():
            while not refused and thread.is_alive():
                try:
                    operators.add("com.example.more", "Op%d" % len(added), lambda x: x)
                    added.append(1)
                except RuntimeError as error:
                    refused.append(str(error))

        added = []
        body = "\n".join("v%d = com.example.Square(v%d)" % (i + 1, i) for i in range(4000))
        model = onx.parse('<ir_version: 10, opset_import: ["" : 21, "com.example" : 2]> g (float[2] v0) => (float[2] v4000) {%s}' % body)
        thread = threading.Thread(target=lambda: [onx.simplify(model, operators=operators) for _ in range(3)])
        thread.start()
        tell()
        thread.join()
        self.assertTrue(refused and "at work with these operators" in refused[0])
        operators.add("com.example.more", "Last", lambda x: x)

    def test_nobody_changes_them_while_a_session_runs(self):
        operators, refused = square(), []

        def twice(x):
            for change in (lambda: operators.add("com.example.more", "Later", twice),
                           lambda: operators.document(onx.from_bytes(DOCUMENT.encode(), onx.OperatorSetProto, format="textproto"))):
                with self.assertRaisesRegex(RuntimeError, "at work with these operators"):
                    change()
                refused.append(change)
            return np.asarray(x) * 2

        operators.add("com.example.more", "Twice", twice)
        session = onx.Session(onx.parse('<ir_version: 10, opset_import: ["" : 21, "com.example.more" : 1]> '
                                        "g (float[2] x) => (float[2] y) { y = com.example.more.Twice (x) }"), operators=operators)
        x = np.float32([1, 2])
        np.testing.assert_array_equal(session(x), x * 2)
        self.assertEqual(len(refused), 2)
        operators.add("com.example.more", "Later", twice)
        with self.assertRaises(onx.Error):
            onx.Session(onx.parse(models.model("(float[2] x) => (float[2] y)", "y = Nowhere(x)")), operators=operators)
        operators.add("com.example.more", "Last", twice)


if __name__ == "__main__":
    unittest.main()
