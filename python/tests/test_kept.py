"""Applies every pass to a model that uses all kinds of information: docs, metadata, types, annotations, devices, training.

After each pass, the remaining model is valid, and its remaining parts keep their information."""
import itertools
import unittest
import warnings

import onx

NET = """<ir_version: 12, opset_import: ["" : %(opset)d, "f.own" : 1]>
g (float[1, 2, 8, 8] x, bool c) => (float[1, 4] y, float[1, 4] z, int64[4] shape)
<float[2, 2, 3, 3] w1 = {%(w1)s}, float[2] one = {1, 2}, float[2] shift = {0.5, 0.25}, float[2] mean = {0, 0.1},
 float[2] variance = {1, 2}, float[2, 2, 3, 3] w2 = {%(w2)s}, float[32, 4] m = {%(m)s}, float[4] b = {1, 2, 3, 4},
 float[4, 4] s1 = {%(s1)s}, float[4, 4] s2 = {%(s2)s}, float[4] gain = {1, 1, 1, 2}, float[4] zero = {0, 0, 0, 0},
 int64[2] flat = {1, -1}, float scale = {0.1}, int8 point = {0}>
{
  c1 = Conv<pads = [1, 1, 1, 1]>(x, w1)
  n1 = BatchNormalization(c1, one, shift, mean, variance)
  r1 = Relu(n1)
  c2 = Conv<pads = [1, 1, 1, 1]>(r1, w2)
  n2 = BatchNormalization(c2, one, shift, mean, variance)
  r2 = Relu(n2)
  same = Identity(r2)
  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(same)
  two = Constant<value = int64[1] {2}>()
  more = Add(two, two)
  f = Reshape(p, flat)
  d = MatMul(f, m)
  e = Add(d, b)
  l1 = LayerNormalization<axis = -1>(e, gain, zero)
  t1 = f.own.Twice<scale = 3.0>(l1)
  a1 = MatMul(t1, s1)
  g1 = Tanh(a1)
  h1 = Add(g1, t1)
  l2 = LayerNormalization<axis = -1>(h1, gain, zero)
  t2 = f.own.Twice<scale = 3.0>(l2)
  a2 = MatMul(t2, s2)
  g2 = Tanh(a2)
  h2 = Add(g2, t2)
  q = If(c)<then_branch = then () => (u) { u1 = Mul(h2, h2)  u = Identity(u1) },
            else_branch = other () => (v) { v1 = Neg(h2)  v = Abs(v1) }>
  y = Softmax<axis = -1>(q)
  k = Mul(h2, b)
  z = Transpose<perm = [0, 1]>(k)
  sh = Shape(x)
  shape = Identity(sh)
}
<opset_import: ["" : %(opset)d], domain: "f.own">
Twice <scale> (xx) => (yy) { kk = Constant<value_float: float = @scale>() hh = Mul(xx, kk) yy = Add(hh, hh) }
"""
LEARN = "a () => (float[4] b_new) { step = Constant<value_float = 0.1>()  b_new = Sub(b, step) }"


def numbers(count, start):
    return ", ".join("%.3f" % (((i * 37 + start * 11) % 41 - 20) / 40) for i in range(count))


def entry(key, value):
    return onx.StringStringEntryProto(key=key, value=value)


def subgraphs(node):
    return [a.g for a in node.attribute if a.type == 5]


class Writer:
    """Says something of everything."""

    def __init__(self, devices):
        self.devices, self.named = devices, 0

    def note(self, message, what):
        message.doc_string = "doc of " + what
        message.metadata_props.append(entry("key", what))

    def node(self, node, main):
        self.named += 1
        node.name = "node_%d" % self.named
        self.note(node, node.name)
        for a in node.attribute:
            a.doc_string = "doc of attribute " + a.name
        if main and self.devices:
            configuration = onx.NodeDeviceConfigurationProto(configuration_id="two", pipeline_stage=0)
            for name in dict.fromkeys(n for n in [*node.output, *node.input] if n):
                configuration.sharding_spec.append(onx.ShardingSpecProto(tensor_name=name, device=[0]))
            node.device_configurations.append(configuration)
        for graph in subgraphs(node):
            self.graph(graph, False)

    def graph(self, graph, main):
        self.note(graph, "graph " + graph.name)
        for info in [*graph.input, *graph.output, *graph.value_info]:
            self.note(info, "value " + info.name)
        for tensor in graph.initializer:
            self.note(tensor, "tensor " + tensor.name)
        for node in graph.node:
            self.node(node, main)

    def function(self, function):
        self.note(function, "function " + function.name)
        for info in function.value_info:
            self.note(info, "value " + info.name)
        for node in function.node:
            self.node(node, False)


def rich_model(opset, training, annotations, devices):
    text = {"opset": opset, "w1": numbers(36, 1), "w2": numbers(36, 2), "m": numbers(128, 3), "s1": numbers(16, 4), "s2": numbers(16, 5)}
    m = onx.infer(onx.parse(NET % text))
    w = Writer(devices)
    w.note(m, "model")
    m.producer_name, m.producer_version, m.domain, m.model_version = "maker", "v", "org.domain", 7
    if devices:
        m.configuration.append(onx.DeviceConfigurationProto(name="two", num_devices=2, device=["a", "b"]))
    w.graph(m.graph, True)
    for f in m.functions:
        w.function(f)
    weights = [t.name for t in m.graph.initializer if t.data_type == 1 and t.name != "scale"]
    for name in [n.output[0] for n in m.graph.node if n.output[0] not in ("two", "more", "sh", "shape")] + weights + ["x"] if annotations else []:
        named = [entry("SCALE_TENSOR", "scale"), entry("ZERO_POINT_TENSOR", "point")]
        m.graph.quantization_annotation.append(onx.TensorAnnotation(tensor_name=name, quant_parameter_tensor_names=named))
    if training:
        info = onx.TrainingInfoProto(algorithm=onx.parse(LEARN, onx.GraphProto), update_binding=[entry("b", "b_new")])
        w.graph(info.algorithm, False)
        m.training_info.append(info)
        m.opset_import.append(onx.OperatorSetIdProto(domain="ai.onnx.preview.training", version=1))
    return m


class Reader:
    """All that a model says, by what it is said of, and the names of values of each graph."""

    def __init__(self, m):
        self.said, self.values = {}, {}
        self.graph(m.graph, "main")
        self.said["model"] = (self.notes(m), m.producer_name, m.producer_version, m.domain, m.model_version,
                              [(c.name, list(c.device)) for c in m.configuration])
        for f in m.functions:
            where = "function " + f.name
            self.said["function", f.name] = self.notes(f)
            self.values[where] = {*f.input, *f.output}
            self.body(f, where)
        for i, info in enumerate(m.training_info):
            self.graph(info.algorithm, "algorithm %d" % i)
            self.said["training", i] = [(e.key, e.value) for e in info.update_binding]

    @staticmethod
    def notes(message):
        return message.doc_string, [(e.key, e.value) for e in message.metadata_props]

    def body(self, owner, where):
        for info in owner.value_info:
            self.said["value", where, info.name] = self.notes(info)
        for node in owner.node:
            self.values[where].update(node.output)
            if node.name:
                self.said["node", where, node.name] = self.notes(node), [c.pipeline_stage for c in node.device_configurations]
            for a in node.attribute:
                self.said["attribute", where, node.name, node.op_type, a.name] = a.doc_string
            for graph in subgraphs(node):
                self.graph(graph, where + "/" + graph.name)

    def graph(self, graph, where):
        self.values[where] = {v.name for v in [*graph.input, *graph.initializer]}
        self.said["graph", where] = self.notes(graph)
        for info in [*graph.input, *graph.output]:
            self.said["value", where, info.name] = self.notes(info)
        for tensor in graph.initializer:
            self.said["tensor", where, tensor.name] = self.notes(tensor)
        for a in graph.quantization_annotation:
            self.said["annotation", where, a.tensor_name] = [(e.key, e.value) for e in a.quant_parameter_tensor_names]
        self.body(graph, where)


# A part has no training information, and says so.
PASSES = {
    "simplify": onx.simplify,
    **{"retarget %d" % v: lambda m, v=v: onx.retarget(m, v) for v in (13, 17, 18, 20, 22, 28)},
    "inline": onx.inline,
    "inline schema": lambda m: onx.inline(m, schema=True),
    "outline": lambda m: onx.outline(m, min_nodes=2),
    "sort": onx.sort,
    "infer": onx.infer,
    "compress": onx.compress,
    "sparse": lambda m: onx.compress(m, sparse=True),
    **{t + " " + str(keep): lambda m, t=t, keep=keep: onx.convert(m, t, keep_io=keep)
       for t in ("float16", "bfloat16", "float64") for keep in (False, True)},
    "dynamic": lambda m: onx.quantize(m, mode="dynamic"),
    "weights": lambda m: onx.quantize(m, mode="weights"),
    **{form: lambda m, form=form: onx.quantize(m, mode=form, ranges={name: (-4, 4) for name in ("x", "r1", "c1", "c2", "f", "d", "t1", "t2", "a1", "a2")})
       for form in ("qdq", "qlinear")},
    "batch": lambda m: onx.edit(m, ("batch", 4)),
    "normalize": lambda m: onx.edit(m, ("normalize", "x", "0.5,0.5:0.2,0.2")),
    "nhwc": lambda m: onx.edit(m, ("nhwc", "x")),
    "argmax": lambda m: onx.edit(m, ("argmax", "y", 1)),
    "extract": lambda m: onx.extract(m, outputs="z"),
    "split": lambda m: onx.split(m, 2),
    "merge": lambda m: onx.merge(list(onx.split(m, 2))),
}
PARTS = ("extract", "split", "merge")


class TestKept(unittest.TestCase):
    def check_pass(self, name, before, after):
        old, new = Reader(before), Reader(after)
        for key, what in old.said.items():
            kind = key if isinstance(key, str) else key[0]
            if key in new.said:
                self.assertEqual(new.said[key], what, key)
            elif kind in ("value", "annotation"):
                self.assertNotIn(key[2], new.values.get(key[1], ()), key)
            elif kind == "training":
                self.assertIn(name, PARTS)
            self.assertTrue(key in new.said or kind != "model")
        for a in after.graph.quantization_annotation:
            for value in [a.tensor_name] + [e.value for e in a.quant_parameter_tensor_names]:
                self.assertIn(value, new.values["main"])
        wrong = [str(d) for d in onx.check(after, full=True) if d.severity != "note"]
        self.assertEqual(wrong, [])

    def test_passes(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", onx.Warning)
            for opset, training, annotations, devices in itertools.product((17, 21), *[(False, True)] * 3):
                m = rich_model(opset, training, annotations, devices)
                self.check_pass("", m, m)
                for name, change in PASSES.items():
                    with self.subTest(opset=opset, training=training, annotations=annotations, devices=devices, by=name):
                        made = change(m)
                        for part in made if isinstance(made, (list, tuple)) else [made]:
                            self.check_pass(name, m, part)

    def test_what_is_said_of_a_layer_goes_to_what_takes_its_place(self):
        m = rich_model(17, False, False, True)
        for mode, op, names in (("dynamic", "ConvInteger", ["c1_sums", "x_quantized", "w1_quantized"]), ("qlinear", "QLinearConv", ["c1_quantized", "x_quantized", "w1_quantized"])):
            made = onx.quantize(m, mode=mode, ranges={name: (-4, 4) for name in ("x", "c1")} if mode == "qlinear" else None, only="node_1")
            node = next(n for n in made.graph.node if n.op_type == op)
            self.assertEqual((node.name, node.doc_string), ("node_1", "doc of node_1"))
            self.assertEqual([s.tensor_name for s in node.device_configurations[0].sharding_spec], names)
        half = onx.convert(m, "float16", keep_io=True)
        node = next(n for n in half.graph.node if n.op_type == "Softmax")
        self.assertEqual([s.tensor_name for s in node.device_configurations[0].sharding_spec], [node.output[0], "q"])
        self.assertNotEqual(node.output[0], "y")

    def test_shapes_of_values_inside_follow(self):
        m = rich_model(17, False, False, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", onx.Warning)
            made = onx.edit(m, ("batch", 4))
        info = {v.name: v for v in made.graph.value_info}
        self.assertEqual([d.dim_value for d in info["c1"].type.tensor_type.shape.dim], [4, 2, 8, 8])
        self.assertEqual(info["c1"].doc_string, "doc of value c1")
        info = {v.name: v for v in subgraphs(next(n for n in made.graph.node if n.op_type == "If"))[0].value_info}
        self.assertEqual([d.dim_value for d in info["u1"].type.tensor_type.shape.dim], [4, 4])
        m = onx.infer(onx.parse('<ir_version: 10, opset_import: ["" : 21]> g (float[1, 4] x) => (float[1, 4] y) { a = Exp(x)  y = Neg(a) }'))
        m.graph.value_info[0].doc_string = "said of a"
        wide = onx.simplify(m, shapes={"x": [3, 4]})
        self.assertEqual(wide.graph.value_info[0].doc_string, "said of a")
        self.assertEqual([d.dim_value for d in wide.graph.value_info[0].type.tensor_type.shape.dim], [3, 4])

    def test_what_models_say_of_themselves_is_merged(self):
        def model(name, **said):
            m = onx.parse('<ir_version: 11, opset_import: ["" : 21]> %s (float[2] %s_x) => (float[2] %s_y) { %s_y = Neg(%s_x) }' % ((name,) * 5))
            for key, value in said.items():
                m.graph.metadata_props.append(entry(key, value))
            return m

        m = onx.merge([model("a", k="v", own="1"), model("b", k="v")], how="side")
        self.assertEqual([(e.key, e.value) for e in m.graph.metadata_props], [("k", "v"), ("own", "1")])
        self.assertRaisesRegex(onx.InvalidError, 'metadata k is "v" in one model and "w" in another', onx.merge, [model("a", k="v"), model("b", k="w")], how="side")
        a, b = model("a"), model("b")
        a.configuration.append(onx.DeviceConfigurationProto(name="two", num_devices=2, device=["a", "b"]))
        b.configuration.append(onx.DeviceConfigurationProto(name="two", num_devices=3, device=["a", "b", "c"]))
        self.assertRaisesRegex(onx.InvalidError, "device configuration two is not the same in both models", onx.merge, [a, b], how="side")


if __name__ == "__main__":
    unittest.main()
