#!/usr/bin/env python3
"""operators.py FOLDER [PART...]: models of one node each, for many shapes of many operators, for networks.sh.

One slow operator makes a network slow, and operators that occur in no measured network go unnoticed: this finds
those that take longer than onnxruntime's. With PART only models whose names contain one of them are written. It needs onnx and NumPy.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

random = np.random.RandomState(0)
WIDE = [64, 2000]  # the shape for elementwise operators
TYPES = {T.INT64: np.int64, T.INT32: np.int32, T.DOUBLE: np.float64, T.FLOAT16: np.float16}
MODELS = {}  # model by name


def numbers(*shape):
    return (random.rand(*shape).astype(np.float32) - 0.5) * 0.2


def indices(end, *shape):
    return random.randint(0, end, shape).astype(np.int64)


def add(name, op, inputs, constants=(), outputs=1, opset=17, domain="", types=T.FLOAT, **attributes):
    """Inputs are shapes, or (shape, type); constants follow them. None is an omitted input."""
    given, names, initializers = [], [], []
    for i, shape in enumerate(inputs):
        shape, dtype = shape if isinstance(shape, tuple) else (shape, types)
        given.append(helper.make_tensor_value_info(f"x{i}", dtype, shape))
        names.append(f"x{i}")
    for i, constant in enumerate(constants):
        names.append("" if constant is None else f"c{i}")
        if constant is not None:
            initializers.append(numpy_helper.from_array(np.asarray(constant), f"c{i}"))
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, made, domain=domain, **attributes)
    results = [onnx.ValueInfoProto(name=m) for m in made]
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 3)] if domain else [])
    model = helper.make_model(helper.make_graph([node], op, given, results, initializers), opset_imports=imports)
    model.ir_version = 8
    MODELS[name] = onnx.shape_inference.infer_shapes(model)


def windows():
    for c, m, k, size, s, g, d in [
        (3, 16, 3, 224, 2, 1, 1), (3, 64, 7, 224, 2, 1, 1), (1, 8, 5, 256, 1, 1, 1), (16, 3, 3, 256, 1, 1, 1),
        (64, 1, 1, 128, 1, 1, 1), (64, 3, 1, 128, 1, 1, 1), (64, 1, 3, 128, 1, 1, 1), (24, 24, 3, 56, 1, 1, 1),
        (40, 80, 1, 28, 1, 1, 1), (30, 50, 3, 40, 1, 1, 1), (256, 512, 3, 14, 2, 1, 1), (64, 64, 3, 112, 1, 1, 1),
        (2, 2, 3, 512, 1, 1, 1), (12, 12, 7, 96, 1, 1, 1), (64, 64, 3, 64, 1, 1, 2), (32, 32, 3, 64, 1, 1, 4),
        (64, 128, 3, 32, 1, 4, 1), (256, 256, 3, 28, 1, 32, 1), (96, 96, 3, 56, 1, 96, 1), (192, 192, 7, 28, 1, 192, 1),
        (64, 64, 31, 32, 1, 64, 1), (32, 64, 3, 56, 1, 32, 1)]:
        p = k // 2 * d
        add(f"conv_{c}_{m}_{k}_{size}_{s}_{g}_{d}", "Conv", [[1, c, size, size]], [numbers(m, c // g, k, k)],
            strides=[s, s], pads=[p] * 4, group=g, dilations=[d, d])
    for c, m, k, size, s in [(64, 128, 3, 1000, 1), (1, 32, 11, 16000, 4), (512, 512, 3, 200, 1), (80, 256, 5, 300, 1)]:
        add(f"conv1d_{c}_{m}", "Conv", [[1, c, size]], [numbers(m, c, k)], strides=[s], pads=[k // 2] * 2)
    for c, m, k, s, p, size, dims in [
        (64, 3, 4, 2, 1, 64, 2), (32, 1, 4, 2, 1, 64, 2), (64, 2, 16, 8, 4, 500, 1), (256, 128, 4, 2, 1, 16, 2),
        (16, 8, 2, 2, 0, 16, 3), (100, 512, 4, 1, 0, 1, 2), (512, 256, 2, 2, 0, 16, 2), (48, 24, 3, 2, 1, 48, 2),
        (56, 1, 9, 4, 4, 64, 2), (64, 16, 4, 2, 1, 64, 2), (512, 256, 16, 8, 4, 32, 1), (32, 21, 16, 8, 4, 32, 2)]:
        add(f"transposed_{c}_{m}_{k}_{dims}d", "ConvTranspose", [[1, c] + [size] * dims], [numbers(c, m, *[k] * dims)],
            strides=[s] * dims, pads=[p] * 2 * dims)
    for op, k, s, p in [("MaxPool", 3, 2, 1), ("MaxPool", 2, 2, 0), ("AveragePool", 3, 1, 1), ("LpPool", 2, 2, 0)]:
        add(f"{op}_{k}_{s}", op, [[1, 64, 112, 112]], kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        add(op, op, [[1, 512, 14, 14]])


def products():
    for a, b in [([1, 64], [64, 10]), ([1, 512], [512, 512]), ([64, 64], [64, 64]), ([512, 300], [300, 7]),
                 ([2048, 16], [16, 64]), ([5000, 3], [3, 3]), ([10000, 1], [1, 8])]:
        add(f"product_{a[0]}_{b[0]}_{b[1]}", "MatMul", [a], [numbers(*b)])
    for a, b in [([1, 8, 128, 64], [1, 8, 64, 128]), ([4, 12, 50, 50], [4, 12, 50, 64]), ([32, 1, 64], [32, 64, 100]),
                 ([16, 7, 7], [16, 7, 7]), ([1, 16, 1, 64], [1, 16, 64, 512]), ([1, 700], [700, 1])]:
        add("product_of_two_" + "_".join(map(str, a + b[-1:])), "MatMul", [a, b])
    for gates, op, size, hidden, steps, batch in [(4, "LSTM", 64, 128, 50, 1), (4, "LSTM", 128, 256, 30, 8),
                                                  (3, "GRU", 64, 128, 50, 1), (1, "RNN", 64, 128, 50, 1)]:
        add(f"{op}_{hidden}_{batch}", op, [[steps, batch, size]],
            [numbers(1, gates * hidden, size), numbers(1, gates * hidden, hidden)], 2, hidden_size=hidden)


def elements():
    for op in ("Abs Acosh Asin Atan Ceil Celu Cos Elu Erf Exp Floor HardSigmoid HardSwish Log Neg Reciprocal Round "
               "Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tanh ThresholdedRelu").split():
        add(op, op, [WIDE], opset=18)
    for op in "Add Div Max Min Mul Pow Sub".split():
        for form, other in (("", WIDE), ("_row", [2000]), ("_column", [64, 1])):
            add(op + form, op, [WIDE, other])
    for dtype, name in ((T.INT64, "int64"), (T.INT32, "int32"), (T.DOUBLE, "double"), (T.FLOAT16, "float16")):
        for op in "Add Mul Sub Max Equal Less".split():
            add(f"{op}_{name}", op, [WIDE, WIDE], types=dtype)
        add(f"Clip_{name}", "Clip", [WIDE], [np.array(n, TYPES[dtype]) for n in (-1, 1)], types=dtype)
        add(f"Where_{name}", "Where", [(WIDE, T.BOOL), WIDE, WIDE], types=dtype)
    for op in "Relu Sigmoid Tanh Floor Sign".split():
        add(f"{op}_float16", op, [WIDE], types=T.FLOAT16)
    for of, to in [(T.INT64, T.FLOAT), (T.BOOL, T.FLOAT), (T.UINT8, T.FLOAT), (T.FLOAT, T.FLOAT16), (T.FLOAT, T.INT64),
                   (T.FLOAT, T.UINT8), (T.INT64, T.INT32), (T.INT64, T.BOOL), (T.DOUBLE, T.INT64), (T.FLOAT16, T.INT64)]:
        add(f"Cast_{of}_{to}", "Cast", [(WIDE, of)], to=to)
    add("Where", "Where", [(WIDE, T.BOOL), WIDE, WIDE])


def sums():
    for i, (shape, axes) in enumerate([([1, 64, 56, 56], [2, 3]), ([32, 100, 64], [1]), ([32, 100, 64], [0]),
                                       ([8, 1024], [1]), ([1000000], [0]), ([16, 3, 3, 64], [1, 2])]):
        for op in ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd"):
            add(f"{op}_{i}", op, [shape], axes=axes)
    for i, (shape, axis) in enumerate([([32, 1000], -1), ([1, 8, 128, 128], -1), ([1, 21, 128, 128], 1)]):
        add(f"Softmax_{i}", "Softmax", [shape], axis=axis)
        add(f"ArgMax_{i}", "ArgMax", [shape], axis=axis)
    add("ReduceSum_short", "ReduceSum", [[20000, 4]], [np.array([1])])
    for dtype in (T.INT64, T.INT32, T.DOUBLE, T.FLOAT16):
        for op in "ReduceMax ReduceMean".split():
            add(f"{op}_type_{dtype}", op, [(WIDE, dtype)], axes=[1])
        add(f"ArgMax_type_{dtype}", "ArgMax", [(WIDE, dtype)], axis=1)
        add(f"TopK_type_{dtype}", "TopK", [([100, 1000], dtype)], [np.array([10])], 2)
    add("LayerNormalization", "LayerNormalization", [[128, 768]], [numbers(768), numbers(768)])
    add("InstanceNormalization", "InstanceNormalization", [[1, 64, 64, 64]], [numbers(64), numbers(64)])
    add("CumSum", "CumSum", [[64, 1000]], [np.array(1)])
    add("TopK", "TopK", [[100, 1000]], [np.array([10])], 2)


def moves():
    for i, (shape, perm) in enumerate([([1, 64, 56, 56], [0, 2, 3, 1]), ([8, 12, 128, 64], [0, 2, 1, 3]),
                                       ([1000, 1000], [1, 0]), ([16, 16, 16, 16], [3, 2, 1, 0])]):
        add(f"Transpose_{i}", "Transpose", [shape], perm=perm)
    for mode, how, scale in [("nearest", "asymmetric", 2), ("linear", "half_pixel", 2), ("cubic", "half_pixel", 2)]:
        scales = np.array([1, 1, scale, scale], np.float32)
        add("Resize_" + mode, "Resize", [[1, 32, 40, 40]], [np.zeros(0, np.float32), scales], mode=mode,
            coordinate_transformation_mode=how)
    add("Gather_rows", "Gather", [[1000, 64]], [indices(1000, 500)])
    add("Gather_columns", "Gather", [[64, 1000]], [indices(1000, 500)], axis=1)
    add("GatherElements", "GatherElements", [[100, 1000]], [indices(1000, 100, 500)], axis=1)
    add("ScatterElements", "ScatterElements", [[100, 1000]], [indices(1000, 100, 500), numbers(100, 500)], axis=1)
    add("Concat", "Concat", [[1000, 3], [1000, 5], [1000, 8]], axis=1)
    add("Pad", "Pad", [[1, 32, 64, 64]], [np.array([0, 0, 3, 3, 0, 0, 3, 3])], mode="reflect")
    add("Tile", "Tile", [[1, 64, 1, 32]], [np.array([1, 1, 50, 1])])
    add("Unique", "Unique", [([10000], T.INT64)], (), 4)


def quantized():
    scale, zero = np.float32(0.02), np.uint8(128)
    add("QuantizeLinear", "QuantizeLinear", [WIDE], [scale, zero])
    add("DequantizeLinear", "DequantizeLinear", [(WIDE, T.UINT8)], [scale, zero])
    add("DynamicQuantizeLinear", "DynamicQuantizeLinear", [WIDE], (), 3)
    for m, c, k, group in ((64, 64, 3, 1), (128, 64, 1, 1), (64, 1, 3, 64)):
        weights = random.randint(-127, 127, (m, c, k, k)).astype(np.int8)
        add(f"QLinearConv_{m}_{c}_{k}", "QLinearConv", [([1, 64, 28, 28], T.UINT8)],
            [scale, zero, weights, scale, np.int8(0), scale, zero], pads=[k // 2] * 4, group=group)
    weights = random.randint(-127, 127, (256, 128)).astype(np.int8)
    add("MatMulInteger", "MatMulInteger", [([128, 256], T.UINT8)], [weights, zero])


def main():
    folder, parts = sys.argv[1], sys.argv[2:]
    for family in (windows, products, elements, sums, moves, quantized):
        family()
    os.makedirs(folder, exist_ok=True)
    for name, model in MODELS.items():
        if not parts or any(part in name for part in parts):
            onnx.save(model, os.path.join(folder, name + ".onnx"))


main()
