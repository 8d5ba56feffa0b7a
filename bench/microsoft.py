#!/usr/bin/env python3
"""Small models over the operators of com.microsoft, made with the Python package onnx:  microsoft.py DIR [NAME...]

Each has one node. Operands given as values are constants of the model, operands given as a shape are its inputs. microsoft_agree.py
compares the results of onnxruntime-node and of onx for the same inputs."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as H, numpy_helper as N

R = np.random.default_rng(7)
MODELS = []


class In:  # an input of the model
    def __init__(self, *shape, t=T.FLOAT):
        self.shape, self.t = shape, t


def f(*shape, lo=-1.0, hi=1.0):
    return R.uniform(lo, hi, shape).astype(np.float32)


def ints(dtype, lo, hi, *shape):
    return R.integers(lo, hi, shape, endpoint=True).astype(dtype)


def u8(*shape):
    return ints(np.uint8, 0, 255, *shape)


def i8(*shape):
    return ints(np.int8, -128, 127, *shape)


def s(x, dtype=np.float32):
    return np.array(x, dtype)


def case(name, op, inputs, outputs=1, domain="com.microsoft", opset=17, **attrs):
    """`outputs`: their number, or their element types, where None omits an output. `opset`: version of the default domain."""
    graph_inputs, initializers, names = [], [], []
    if op == "QLinearSoftmax":
        attrs["opset"] = opset
    for i, x in enumerate(inputs):
        if x is None:
            names.append("")
            continue
        names.append("x%d" % i)
        if isinstance(x, In):
            graph_inputs.append(H.make_tensor_value_info("x%d" % i, x.t, x.shape))
        else:
            initializers.append(x if isinstance(x, T) else N.from_array(np.asarray(x), "x%d" % i))
            if isinstance(x, T):
                initializers[-1].name = "x%d" % i
    types = outputs if isinstance(outputs, (list, tuple)) else [T.FLOAT] * outputs
    outs = ["y%d" % i if t else "" for i, t in enumerate(types)]
    node = H.make_node(op, names, outs, domain=domain, **attrs)
    values = [H.make_tensor_value_info("y%d" % i, t, None) for i, t in enumerate(types) if t]
    for v in values:
        v.type.tensor_type.ClearField("shape")
    graph = H.make_graph([node], name, graph_inputs, values, initializers)
    MODELS.append((name, H.make_model(graph, opset_imports=[H.make_opsetid("", opset), H.make_opsetid("com.microsoft", 1)],
                                      ir_version=9)))


# ---- fused ----
for n in ("Gelu", "FastGelu", "QuickGelu"):
    case(n.lower(), n, [In(2, 3, 5)])
    case(n.lower() + "_wide", n, [f(4, 33, lo=-6, hi=6)])
case("fastgelu_bias", "FastGelu", [In(2, 3, 5), f(5)])
case("quickgelu_alpha", "QuickGelu", [In(7)], alpha=1.0)
case("biasgelu", "BiasGelu", [In(2, 3, 5), f(5)])
case("biasgelu_2d", "BiasGelu", [f(9, 8, lo=-4, hi=4), In(8)])
for ta in (0, 1):
    for tb in (0, 1):
        case("fusedmatmul_%d%d" % (ta, tb), "FusedMatMul", [In(2, 4, 3) if ta else In(2, 3, 4), f(2, 5, 4) if tb else f(2, 4, 5)],
             transA=ta, transB=tb, alpha=0.5)
case("fusedmatmul_batch", "FusedMatMul", [In(3, 2, 4), f(4, 2, 5)], transBatchA=1, transBatchB=1)
case("fusedmatmul_batch_turned", "FusedMatMul", [In(4, 2, 3), f(5, 2, 4)], transBatchA=1, transA=1, transBatchB=1, transB=1)
case("fusedmatmul_broadcast", "FusedMatMul", [In(2, 2, 3, 4), f(5, 4)], transB=1)
case("transposematmul", "TransposeMatMul", [In(4, 3), f(4, 5)], transA=1, alpha=2.0)
case("transposematmul_b", "TransposeMatMul", [In(2, 3, 4), f(5, 4)], transB=1)
case("fusedgemm", "FusedGemm", [In(3, 4), f(4, 5), f(5)], activation="Relu")
case("fusedgemm_leaky", "FusedGemm", [In(4, 3), f(5, 4), f(3, 1)], activation="LeakyRelu", activation_alpha=0.1, transA=1, transB=1, alpha=0.7, beta=0.3)
case("fusedgemm_tanh", "FusedGemm", [In(3, 4), f(4, 5)], activation="Tanh")
case("fusedgemm_sigmoid", "FusedGemm", [In(3, 4), f(4, 5)], activation="Sigmoid")
case("fusedconv", "FusedConv", [In(1, 2, 6, 6), f(4, 2, 3, 3), f(4)], activation="Relu", pads=[1, 1, 1, 1])
case("fusedconv_leaky", "FusedConv", [In(1, 2, 6, 6), f(4, 2, 3, 3)], activation="LeakyRelu", activation_params=[0.2], strides=[2, 2])
case("fusedconv_clip", "FusedConv", [In(1, 2, 6, 6), f(4, 1, 3, 3), f(4)], activation="Clip", activation_params=[-0.5, 0.5], group=2)
case("fusedconv_hardsigmoid", "FusedConv", [In(1, 2, 6, 6), f(4, 2, 3, 3), f(4)], activation="HardSigmoid", activation_params=[0.2, 0.5])
case("fusedconv_sum", "FusedConv", [In(1, 2, 5, 5), f(4, 2, 3, 3), f(4), f(1, 4, 5, 5)], activation="Tanh", pads=[1, 1, 1, 1])
case("fusedconv_none", "FusedConv", [In(2, 2, 7), f(3, 2, 3), f(3)], activation="Sigmoid", dilations=[2])
case("skiplayernorm", "SkipLayerNormalization", [In(2, 3, 8), f(2, 3, 8), f(8), f(8)])
case("skiplayernorm_bias", "SkipLayerNormalization", [In(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], [T.FLOAT, 0, 0, T.FLOAT], epsilon=1e-3)
case("skiplayernorm_2d", "SkipLayerNormalization", [In(2, 3, 8), f(3, 8), f(8)])
case("skipsimplified", "SkipSimplifiedLayerNormalization", [In(2, 3, 8), f(2, 3, 8), f(8)])
case("skipsimplified_bias", "SkipSimplifiedLayerNormalization", [In(2, 3, 8), f(2, 3, 8), f(8), f(8)], [T.FLOAT, 0, 0, T.FLOAT])
case("skipsimplified_one", "SkipSimplifiedLayerNormalization", [In(2, 3, 8), f(1, 3, 8), f(8)], epsilon=1e-2)
case("simplified", "SimplifiedLayerNormalization", [In(2, 3, 8), f(8)], domain="", epsilon=1e-6)
case("simplified_axis", "SimplifiedLayerNormalization", [In(2, 3, 4), f(3, 4)], [T.FLOAT, T.FLOAT], domain="", axis=1)
case("embed", "EmbedLayerNormalization", [In(2, 3, t=T.INT32), In(2, 3, t=T.INT32), f(5, 8), f(6, 8), f(4, 8), f(8), f(8), ints(np.int32, 0, 1, 2, 3)], [T.FLOAT, T.INT32])
case("embed_plain", "EmbedLayerNormalization", [In(2, 3, t=T.INT32), None, f(5, 8), f(6, 8), None, f(8), f(8)], [T.FLOAT, T.INT32], epsilon=1e-5)
case("embed_positions", "EmbedLayerNormalization", [In(2, 3, t=T.INT32), None, f(5, 8), f(6, 8), None, f(8), f(8), None, ints(np.int32, 0, 5, 2, 3)], [T.FLOAT, T.INT32, T.FLOAT])

# ---- quantized ----
for n in ("QLinearAdd", "QLinearMul"):
    case(n.lower() + "_u8", n, [In(3, 4, t=T.UINT8), s(0.5), s(1, np.uint8), u8(4), s(0.02), s(128, np.uint8), s(0.03), s(7, np.uint8)], [T.UINT8])
    case(n.lower() + "_i8", n, [i8(3, 4), s(0.05), s(3, np.int8), i8(3, 1), s(0.02), s(-4, np.int8), s(0.05), s(-7, np.int8)], [T.INT8])
    case(n.lower() + "_nozero", n, [i8(3, 4), s(0.05), None, i8(3, 4), s(0.02), None, s(0.05)], [T.INT8])
case("qlinearsigmoid", "QLinearSigmoid", [u8(3, 20), s(0.04), s(128, np.uint8), s(1 / 256), s(0, np.uint8)], [T.UINT8])
case("qlinearsigmoid_i8", "QLinearSigmoid", [i8(3, 20), s(0.04), s(3, np.int8), s(1 / 256), s(-128, np.int8)], [T.INT8])
case("qlinearleakyrelu", "QLinearLeakyRelu", [u8(3, 20), s(0.04), s(128, np.uint8), s(0.05), s(100, np.uint8)], [T.UINT8], alpha=0.2)
case("qlinearleakyrelu_i8", "QLinearLeakyRelu", [i8(3, 20), s(0.04), s(2, np.int8), s(0.05), s(-3, np.int8)], [T.INT8])
case("qlinearsoftmax", "QLinearSoftmax", [u8(3, 20), s(0.04), s(128, np.uint8), s(1 / 256), s(0, np.uint8)], [T.UINT8], opset=13, axis=-1)
case("qlinearsoftmax_old", "QLinearSoftmax", [i8(3, 2, 5), s(0.04), s(0, np.int8), s(1 / 256), s(-128, np.int8)], [T.INT8], opset=11, axis=1)
case("qlinearsoftmax_axis", "QLinearSoftmax", [u8(3, 4, 5), s(0.04), s(128, np.uint8), s(1 / 256), s(0, np.uint8)], [T.UINT8], opset=13, axis=1)
case("qlinearwhere", "QLinearWhere", [In(3, 4, t=T.BOOL), u8(3, 4), s(0.05), s(3, np.uint8), u8(4), s(0.02), s(9, np.uint8), s(0.04), s(5, np.uint8)], [T.UINT8])
case("qlinearwhere_i8", "QLinearWhere", [In(3, 4, t=T.BOOL), i8(3, 4), s(0.05), s(3, np.int8), i8(1, 4), s(0.05), s(9, np.int8), s(0.05), s(5, np.int8)], [T.INT8])
case("qlinearaveragepool", "QLinearAveragePool", [u8(1, 2, 6, 6), s(0.05), s(3, np.uint8), s(0.04), s(5, np.uint8)], [T.UINT8], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("qlinearaveragepool_nhwc", "QLinearAveragePool", [i8(1, 6, 6, 3), s(0.05), s(3, np.int8), s(0.04), s(5, np.int8)], [T.INT8], kernel_shape=[2, 2], channels_last=1, count_include_pad=1, pads=[1, 1, 0, 0])
case("qlinearglobalaveragepool", "QLinearGlobalAveragePool", [u8(2, 3, 5, 5), s(0.05), s(3, np.uint8), s(0.04), s(5, np.uint8)], [T.UINT8])
case("qlinearglobalaveragepool_nhwc", "QLinearGlobalAveragePool", [u8(2, 5, 5, 3), s(0.05), s(3, np.uint8), s(0.04), s(5, np.uint8)], [T.UINT8], channels_last=1)
case("qlinearconcat", "QLinearConcat", [s(0.05), s(4, np.uint8), u8(2, 3), s(0.04), s(3, np.uint8), u8(2, 2), s(0.05), s(4, np.uint8)], [T.UINT8], axis=1)
case("qlinearconcat_i8", "QLinearConcat", [s(0.05), s(4, np.int8), i8(2, 3), s(0.04), s(3, np.int8), i8(1, 3), s(0.1), s(4, np.int8), i8(2, 3), s(0.01), s(-4, np.int8)], [T.INT8], axis=0)
case("qlinearconv_nhwc", "QLinearConv", [u8(1, 6, 6, 2), s(0.05), s(3, np.uint8), i8(4, 2, 3, 3), s(0.02), s(0, np.int8), s(0.5), s(120, np.uint8), ints(np.int32, -99, 99, 4)], [T.UINT8], channels_last=1, pads=[1, 1, 1, 1])
case("qlinearconv_nchw", "QLinearConv", [u8(1, 2, 6, 6), s(0.05), s(3, np.uint8), i8(4, 2, 3, 3), f(4, lo=0.01, hi=0.02), np.zeros(4, np.int8), s(0.5), s(120, np.uint8)], [T.UINT8], strides=[2, 2])
case("qlinearconv_group", "QLinearConv", [u8(1, 6, 6, 4), s(0.05), s(3, np.uint8), i8(4, 1, 3, 3), s(0.02), s(0, np.int8), s(0.5), s(120, np.uint8)], [T.UINT8], channels_last=1, group=4)
case("nhwcmaxpool", "NhwcMaxPool", [u8(1, 6, 6, 3)], [T.UINT8], kernel_shape=[2, 2], strides=[2, 2])
case("nhwcmaxpool_i8", "NhwcMaxPool", [i8(1, 5, 5, 2)], [T.INT8], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
case("nhwcmaxpool_1d", "NhwcMaxPool", [i8(2, 9, 2)], [T.INT8], kernel_shape=[3], dilations=[2], ceil_mode=1)
for t, n in ((np.uint8, "u8"), (np.int8, "i8"), (np.uint16, "u16"), (np.int16, "i16")):
    tt = N.from_array(np.zeros(1, t)).data_type
    case("quantizelinear_" + n, "QuantizeLinear", [f(3, 9), s(0.01), s(5, t)], [tt])
    case("dequantizelinear_" + n, "DequantizeLinear", [ints(t, 0, 100, 3, 9), s(0.01), s(5, t)])
case("quantizelinear_axis", "QuantizeLinear", [In(3, 4), f(4, lo=0.01, hi=0.02), ints(np.uint8, 0, 9, 4)], [T.UINT8], axis=1)
case("quantizelinear_nozero", "QuantizeLinear", [In(3, 4), s(0.01)], [T.UINT8])
case("dequantizelinear_axis", "DequantizeLinear", [i8(3, 4), f(3, lo=0.01, hi=0.02), i8(3)], axis=0)
case("dequantizelinear_i32", "DequantizeLinear", [ints(np.int32, -999, 999, 3, 4), s(0.01)])
for tb in (0, 1):
    case("qgemm_float_%d" % tb, "QGemm", [u8(3, 4), s(0.02), s(9, np.uint8), i8(5, 4) if tb else i8(4, 5), s(0.03), s(2, np.int8), ints(np.int32, -999, 999, 5)], transB=tb)
case("qgemm_u8", "QGemm", [u8(4, 3), s(0.02), s(9, np.uint8), i8(4, 5), f(5, lo=0.01, hi=0.03), i8(5), None, s(0.3), s(100, np.uint8)], [T.UINT8], transA=1, alpha=0.5)
case("qgemm_i8", "QGemm", [i8(3, 4), s(0.02), s(9, np.int8), i8(4, 5), s(0.01), s(0, np.int8), ints(np.int32, -999, 999, 3, 5), s(0.3), s(-7, np.int8)], [T.INT8])
case("matmulintegertofloat", "MatMulIntegerToFloat", [u8(3, 4), u8(4, 5), s(0.02), s(0.01), s(7, np.uint8), s(9, np.uint8), f(5)])
case("matmulintegertofloat_column", "MatMulIntegerToFloat", [In(2, 3, 4, t=T.UINT8), i8(4, 5), s(0.02), f(5, lo=0.01, hi=0.02), s(7, np.uint8), i8(5)])
case("matmulintegertofloat_i8", "MatMulIntegerToFloat", [i8(3, 4), i8(4, 5), s([0.02]), s([0.01])])
case("matmulinteger16", "MatMulInteger16", [ints(np.int16, -3000, 3000, 2, 3, 4), ints(np.int16, -3000, 3000, 4, 5)], [T.INT32])
case("matmulinteger16_in", "MatMulInteger16", [In(3, 4, t=T.INT16), ints(np.int16, -3000, 3000, 4, 5)], [T.INT32])
case("dynamicquantizematmul", "DynamicQuantizeMatMul", [In(3, 4), u8(4, 5), s(0.02), s(9, np.uint8), f(5)])
case("dynamicquantizematmul_i8", "DynamicQuantizeMatMul", [f(2, 3, 4), i8(4, 5), f(5, lo=0.01, hi=0.02), i8(5)])
case("dynamicquantizematmul_plain", "DynamicQuantizeMatMul", [f(3, 4), i8(4, 5), s(0.02)])
for d, n in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
    case("dynamicquantizelstm_" + n, "DynamicQuantizeLSTM", [In(4, 2, 3), i8(d, 3, 20), i8(d, 5, 20), f(d, 40), None, None, None, None,
         f(d, lo=0.004, hi=0.005), np.zeros(d, np.int8), f(d, 20, lo=0.002, hi=0.004), np.zeros((d, 20), np.int8)], 3, hidden_size=5, direction=n)
case("qembed", "QEmbedLayerNormalization", [In(2, 3, t=T.INT32), In(2, 3, t=T.INT32), u8(5, 8), u8(6, 8), u8(4, 8), u8(8), u8(8), ints(np.int32, 0, 1, 2, 3),
     s(0.02), s(0.03), s(0.01), s(0.02), s(0.01), s(7, np.uint8), s(100, np.uint8), s(128, np.uint8), s(9, np.uint8), s(99, np.uint8)], [T.FLOAT, T.INT32])
case("qembed_plain", "QEmbedLayerNormalization", [In(2, 3, t=T.INT32), None, i8(5, 8), i8(6, 8), None, i8(8), i8(8), None,
     s(0.02), s(0.03), None, s(0.02), s(0.01), s(7, np.int8), s(10, np.int8), None, s(9, np.int8), s(9, np.int8)], [T.FLOAT, T.INT32])

# ---- tensors ----
case("expanddims", "ExpandDims", [In(2, 3), s(1, np.int32)])
case("expanddims_last", "ExpandDims", [In(2, 3), s(-1, np.int32)])
case("gathernd", "GatherND", [In(2, 3, 4), ints(np.int64, 0, 1, 5, 2)])
case("gathernd_i32", "GatherND", [In(2, 3), s([[0, 1], [1, 2]], np.int32)])
for m in ("bilinear", "nearest", "bicubic"):
    case("gridsample_" + m, "GridSample", [In(1, 2, 4, 5), f(1, 3, 3, 2)], mode=m, padding_mode="zeros" if m != "nearest" else "border")
case("gridsample_corners", "GridSample", [In(1, 2, 4, 5), f(1, 3, 3, 2, lo=-1.5, hi=1.5)], align_corners=1, padding_mode="reflection")
case("pad", "Pad", [In(2, 3), s([0, 2, 0, 1], np.int64), s(1.5)])
case("pad_reflect", "Pad", [In(3, 3), s([[1, 2, 0, 1]], np.int64)], mode="reflect")
case("pad_edge", "Pad", [In(3, 3), s([1, 0, 0, 2], np.int64)], mode="edge")
case("range", "Range", [s(1.0), s(7.5), s(1.5)])
case("range_i64", "Range", [s([3], np.int64), s([9], np.int64)], [T.INT64])
case("range_down", "Range", [s(9, np.int32), s(1, np.int32), s(-3, np.int32)], [T.INT32])
case("trilu", "Trilu", [In(2, 4, 5)])
case("trilu_lower", "Trilu", [In(4, 5), s(1, np.int64)], upper=0)
case("trilu_i64", "Trilu", [In(4, 5, t=T.INT64), s(-1, np.int64)], [T.INT64])
case("unique", "Unique", [s([2, 1, 1, 3, 4, 3])], [T.FLOAT, T.INT64, T.INT64])
case("unique_i64", "Unique", [In(9)], [T.FLOAT, T.INT64, T.INT64])
case("torchembedding", "TorchEmbedding", [f(5, 3), In(2, 2, t=T.INT64)])
case("cdist", "CDist", [In(3, 4), f(5, 4)], metric="euclidean")
case("cdist_sq", "CDist", [In(3, 4), f(5, 4)], metric="sqeuclidean")
case("cdist_f64", "CDist", [f(3, 4).astype(np.float64), f(5, 4).astype(np.float64)], [T.DOUBLE], metric="euclidean")
case("sampleop", "SampleOp", [In(3, 4)])
case("convtransposedynamic", "ConvTransposeWithDynamicPads", [In(1, 2, 4, 4), f(2, 3, 3, 3), s([1, 1, 1, 1], np.int64)], strides=[2, 2])
case("convtransposedynamic_bias", "ConvTransposeWithDynamicPads", [In(1, 2, 4, 4), f(2, 3, 3, 3), s([0, 1, 1, 0], np.int64), f(3)], strides=[2, 2], output_padding=[1, 1], kernel_shape=[3, 3])
# ---- attention ----
def norm(*shape): return f(*shape, lo=-0.5, hi=0.5)
B, S, D, NH = 2, 3, 8, 2
for n, kw, extra in (("plain", {}, []), ("uni", dict(unidirectional=1), []), ("mask2d", {}, [ints(np.int32, 0, 1, B, S)]), ("mask3d", {}, [ints(np.int32, 0, 1, B, S, S)]),
                     ("lengths", {}, [s([2, 3], np.int32)]), ("ranges", {}, [s([2, 3, 1, 0], np.int32)]), ("scale", dict(scale=0.3), [])):
    case("attention_" + n, "Attention", [In(B, S, D), norm(D, 24), norm(24)] + extra, num_heads=NH, **kw)
case("attention_past", "Attention", [In(B, S, D), norm(D, 24), norm(24), None, norm(2, B, NH, 3, 4)], 2, num_heads=NH, unidirectional=1)
case("attention_past_mask", "Attention", [In(B, S, D), norm(D, 24), norm(24), ints(np.int32, 0, 1, B, S + 3), norm(2, B, NH, 3, 4)], 2, num_heads=NH)
case("attention_bias", "Attention", [In(B, S, D), norm(D, 24), norm(24), None, None, norm(1, NH, S, S)], num_heads=NH)
case("attention_sizes", "Attention", [In(B, S, D), norm(D, 8 + 8 + 12), norm(28)], num_heads=NH, qkv_hidden_sizes=[8, 8, 12])
case("attention_present", "Attention", [In(B, S, D), norm(D, 24), norm(24)], 2, num_heads=NH, mask_filter_value=-5.0)
for n, kw, extra in (("plain", {}, []), ("uni", dict(unidirectional=1), []), ("mask", {}, [s([2, 3], np.int32)])):
    case("qattention_" + n, "QAttention", [u8(B, S, D), i8(D, 24), norm(24), s(0.01), s(0.005)] + (extra or [None]) + [s(7, np.uint8), s(3, np.int8)], num_heads=NH, **kw)
case("qattention_columns", "QAttention", [u8(B, S, D), i8(D, 24), norm(24), s(0.01), f(24, lo=0.004, hi=0.006), None, s(7, np.uint8), i8(24) // 16], num_heads=NH)
case("qattention_past", "QAttention", [u8(B, S, D), i8(D, 24), norm(24), s(0.01), s(0.005), None, s(7, np.uint8), s(3, np.int8), norm(2, B, NH, 3, 4)], 2, num_heads=NH, unidirectional=1)
case("mha_plain", "MultiHeadAttention", [In(B, S, D), norm(B, 5, D), norm(B, 5, D)], num_heads=NH)
case("mha_bias", "MultiHeadAttention", [In(B, S, D), norm(B, 5, D), norm(B, 5, D), norm(24)], num_heads=NH)
case("mha_mask", "MultiHeadAttention", [In(B, S, D), norm(B, 5, D), norm(B, 5, D), None, ints(np.int32, 0, 1, B, 5)], num_heads=NH)
case("mha_lengths", "MultiHeadAttention", [In(B, S, D), norm(B, 5, D), norm(B, 5, D), None, s([3, 5], np.int32)], num_heads=NH)
case("mha_added", "MultiHeadAttention", [In(B, S, D), norm(B, 5, D), norm(B, 5, D), None, None, norm(B, 1, S, 5)], num_heads=NH, scale=0.25)
case("mha_packed_kv", "MultiHeadAttention", [In(B, S, D), norm(B, 5, NH, 2, 4)], num_heads=NH)
case("mha_packed", "MultiHeadAttention", [In(B, S, NH, 3, 4)], num_heads=NH)
case("mha_heads", "MultiHeadAttention", [In(B, S, D), norm(B, NH, 5, 4), norm(B, NH, 5, 4)], num_heads=NH)
case("mha_values", "MultiHeadAttention", [In(B, S, D), norm(B, 5, D), norm(B, 5, 12)], num_heads=NH)
case("mha_past", "MultiHeadAttention", [In(B, S, D), norm(B, S, D), norm(B, S, D), norm(24), None, None, norm(B, NH, 3, 4), norm(B, NH, 3, 4)], 3, num_heads=NH)
case("mha_uni", "MultiHeadAttention", [In(B, S, D), norm(B, S, D), norm(B, S, D)], num_heads=NH, unidirectional=1)
case("decoder_plain", "DecoderMaskedMultiHeadAttention", [In(B, 1, D), norm(B, 1, D), norm(B, 1, D), None, None, norm(B, NH, 3, 4), norm(B, NH, 3, 4)], 3, num_heads=NH)
case("decoder_shared", "DecoderMaskedMultiHeadAttention", [In(B, 1, D), norm(B, 1, D), norm(B, 1, D), None, None, norm(B, NH, 6, 4), norm(B, NH, 6, 4), s([3], np.int32)], 3, num_heads=NH, past_present_share_buffer=1)
case("decoder_cross", "DecoderMaskedMultiHeadAttention", [In(B, 1, D), norm(B, NH, 5, 4), norm(B, NH, 5, 4), ints(np.int32, 0, 1, B, 5)], num_heads=NH)
case("decoder_beams", "DecoderMaskedMultiHeadAttention", [In(4, 1, D), norm(4, 1, D), norm(4, 1, D), None, None, norm(4, NH, 6, 4), norm(4, NH, 6, 4), s([3], np.int32), s([2], np.int32), ints(np.int32, 0, 1, 2, 2, 6), norm(24)], 3, num_heads=NH, past_present_share_buffer=1)
case("decoder_bias", "DecoderMaskedMultiHeadAttention", [In(B, 1, D), norm(B, 1, D), norm(B, 1, D), ints(np.int32, 0, 1, B, 4), norm(1, NH, 1, 4), norm(B, NH, 3, 4), norm(B, NH, 3, 4), None, None, None, norm(24)], 3, num_heads=NH)
def gqa(name, x, past=None, lens=(2,), total=3, outs=3, rot=None, extra=[], nh=4, kv=2, **kw):
    case("gqa_" + name, "GroupQueryAttention", x + (past or [None, None]) + [s(lens, np.int32), s(total, np.int32)] + (rot or []) + extra, outs, num_heads=nh, kv_num_heads=kv, **kw)
HS = 16
B, S = 1, 3
qkv = [In(B, S, 4 * HS), norm(B, S, 2 * HS), norm(B, S, 2 * HS)]
rot = [f(16, HS // 2), f(16, HS // 2)]
gqa("prompt", qkv)
gqa("packed", [In(B, S, 8 * HS), None, None])
B, S = 2, 4
qkv2 = [In(B, S, 4 * HS), norm(B, S, 2 * HS), norm(B, S, 2 * HS)]
gqa("batch", qkv2, lens=(3, 1), total=4)
B, S = 1, 3
gqa("rotary", qkv, rot=rot, do_rotary=1)
gqa("rotary_interleaved", qkv, rot=rot, do_rotary=1, rotary_interleaved=1)
gqa("right", qkv, lens=(1,), rot=rot, do_rotary=1)
one = [In(B, 1, 4 * HS), norm(B, 1, 2 * HS), norm(B, 1, 2 * HS)]
gqa("step", one, past=[norm(B, 2, 5, HS), norm(B, 2, 5, HS)], lens=(5,), total=6, rot=rot, do_rotary=1)
gqa("step_room", one, past=[norm(B, 2, 9, HS), norm(B, 2, 9, HS)], lens=(5,), total=6)
gqa("window", one, past=[norm(B, 2, 5, HS), norm(B, 2, 5, HS)], lens=(5,), total=6, local_window_size=3)
gqa("window_prompt", qkv, local_window_size=2)
gqa("softcap", qkv, softcap=0.5, scale=0.7)
gqa("smooth", qkv, smooth_softmax=1)
gqa("sink", qkv, extra=[None, None, None, None, norm(4)])
gqa("bias", qkv, extra=[None, None, None, norm(1, 4, S, S)])
gqa("bias_step", one, past=[norm(B, 2, 5, HS), norm(B, 2, 5, HS)], lens=(5,), total=6, extra=[None, None, None, norm(B, 1, 1, 6)])
gqa("positions", qkv, rot=rot, extra=[s(np.tile(np.arange(S), (B, 1)), np.int64)], do_rotary=1)
gqa("chunk", [In(1, 3, 4 * HS), norm(1, 3, 2 * HS), norm(1, 3, 2 * HS)], past=[norm(1, 2, 5, HS), norm(1, 2, 5, HS)], lens=(7,), total=8, rot=rot, do_rotary=1)
gqa("mean", qkv, causal=0)
case("rotary_3d", "RotaryEmbedding", [In(B, S, 16), s([0], np.int64), f(16, 4), f(16, 4)])
case("rotary_ids", "RotaryEmbedding", [In(B, S, 16), ints(np.int64, 0, 15, B, S), f(16, 4), f(16, 4)], interleaved=1)
case("rotary_4d", "RotaryEmbedding", [In(B, 2, S, 8), s([3], np.int64), f(16, 4), f(16, 4)])
case("rotary_partial", "RotaryEmbedding", [In(B, S, 16), ints(np.int64, 0, 15, B, S), f(16, 2), f(16, 2)], rotary_embedding_dim=4, num_heads=2)
# ---- weights ----
def nbits(name, bits, block, K=40, N=9, zero=None, t=np.float32, lead=(2, 3), gidx=False, bias=False, **kw):
    kb = -(-K // block); z = None
    if zero == "packed": z = u8(N * -(-kb * bits // 8))
    if zero == "float": z = f(N * kb, lo=0, hi=2 ** bits).astype(t)
    case("nbits_" + name, "MatMulNBits", [In(*lead, K) if t == np.float32 else f(*lead, K).astype(t), u8(N, kb, block * bits // 8), f(N * kb, lo=0.01, hi=0.1).astype(t), z,
         s(np.arange(K) // block, np.int32) if gidx else None, f(N).astype(t) if bias else None], [T.FLOAT if t == np.float32 else T.FLOAT16], K=K, N=N, bits=bits, block_size=block, **kw)
for b in (2, 4, 8):
    nbits("%d" % b, b, 16)
    nbits("%d_zero" % b, b, 32, zero="packed")
nbits("4_float", 4, 32, zero="float")
nbits("4_128", 4, 128, K=256, zero="packed", bias=True)
nbits("4_bias", 4, 16, bias=True)
nbits("4_gidx", 4, 16, gidx=True, K=48)
nbits("4_level", 4, 32, K=64, accuracy_level=4)
nbits("8_level", 8, 32, K=64, accuracy_level=4, zero="packed")
for q in (0, 1):
    case("bnb4_%d" % q, "MatMulBnb4", [In(2, 48), u8(48 * 9 // 2), f(48 * 9 // 16)], K=48, N=9, block_size=16, quant_type=q)
case("bnb4_32", "MatMulBnb4", [In(2, 3, 40), u8(40 * 7 // 2), f(-(-40 * 7 // 32))], K=40, N=7, block_size=32, quant_type=1)
case("gatherq_u8", "GatherBlockQuantized", [u8(6, 16), In(2, 2, t=T.INT64), f(6, 2), u8(6, 1)], block_size=16, quantize_axis=1, bits=4)
case("gatherq_u8_8", "GatherBlockQuantized", [u8(6, 32), In(3, t=T.INT32), f(6, 2)], block_size=16, quantize_axis=1, bits=8)
case("gatherq_u8_plain", "GatherBlockQuantized", [u8(6, 16), s([1, -1], np.int64), f(6, 1)], block_size=32, quantize_axis=-1, bits=4)
for a in ("relu", "gelu", "silu", "identity"):
    case("moe_" + a, "MoE", [In(5, 8), norm(5, 4), norm(4, 12, 8), norm(4, 12), norm(4, 8, 12), norm(4, 8)], activation_type=a, k=2)
case("moe_normalized", "MoE", [In(1, 5, 8), f(5, 4), norm(4, 12, 8), None, norm(4, 8, 12)], activation_type="relu", k=2, normalize_routing_weights=1)
case("moe_swiglu", "MoE", [In(5, 8), norm(5, 4), norm(4, 24, 8), norm(4, 24), norm(4, 8, 12), norm(4, 8)], activation_type="swiglu", k=2, swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
for b in (4, 8):
    case("qmoe_%d" % b, "QMoE", [In(2, 32), norm(2, 4), u8(4, 64, 32 * b // 8), f(4, 64, lo=0.001, hi=0.01), None, u8(4, 32, 64 * b // 8), f(4, 32, lo=0.001, hi=0.01)], activation_type="silu", k=2, expert_weight_bits=b, normalize_routing_weights=1)
case("qmoe_swiglu", "QMoE", [In(2, 32), norm(2, 4), u8(4, 128, 16), f(4, 128, lo=0.001, hi=0.01), norm(4, 128), u8(4, 32, 32), f(4, 32, lo=0.001, hi=0.01), norm(4, 32)], activation_type="swiglu", swiglu_fusion=1, k=2, expert_weight_bits=4)
case("qmoe_block", "QMoE", [In(2, 32), norm(2, 4), u8(4, 64, 16), f(4, 64, 2, lo=0.001, hi=0.01), None, u8(4, 32, 32), f(4, 32, 4, lo=0.001, hi=0.01)], activation_type="silu", k=1, expert_weight_bits=4, block_size=16)
# ---- others ----
case("inverse", "Inverse", [f(3, 4, 4)])
case("inverse_f64", "Inverse", [f(5, 5).astype(np.float64)], [T.DOUBLE])
case("inverse_one", "Inverse", [In(2, 2)])
case("unfold", "UnfoldTensor", [In(2, 9)], size=3, step=2)
case("unfold_dim", "UnfoldTensor", [In(2, 6, 3)], dim=1, size=2)
case("unfold_i64", "UnfoldTensor", [In(8, t=T.INT64)], [T.INT64], dim=0, size=8)
for m in ("bilinear", "nearest"):
    case("crop_" + m, "CropAndResize", [In(2, 3, 6, 5), f(3, 4, lo=0, hi=1), s([0, 1, 1], np.int32), s([3, 4], np.int32)], mode=m)
case("crop_outside", "CropAndResize", [In(1, 2, 6, 5), s([[-0.5, 0.1, 1.2, 0.9]]), s([0], np.int32), s([4, 1], np.int32)], extrapolation_value=9.0)
case("warping", "DynamicTimeWarping", [f(4, 6, lo=0)], [T.INT32])
case("warping_3d", "DynamicTimeWarping", [In(1, 7, 3)], [T.INT32])
case("warping_square", "DynamicTimeWarping", [f(5, 5, lo=0)], [T.INT32])
case("murmur_i32", "MurmurHash3", [In(5, t=T.INT32)], [T.UINT32])
case("murmur_i64", "MurmurHash3", [s([1, -5, 1 << 40], np.int64)], [T.INT32], positive=0, seed=7)
case("murmur_text", "MurmurHash3", [np.array(["a", "", "four", "longer text"], object)], [T.UINT32], seed=1)
case("maxpoolmask", "MaxpoolWithMask", [In(1, 2, 6, 6), ints(np.int32, 0, 3, 1, 2, 6, 6)], kernel_shape=[2, 2], strides=[2, 2])
case("maxpoolmask_pad", "MaxpoolWithMask", [In(1, 2, 5, 5), np.ones((1, 2, 5, 5), np.int32)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
case("maxpoolmask_1d", "MaxpoolWithMask", [In(1, 2, 8), ints(np.int32, 0, 3, 1, 2, 8)], kernel_shape=[3])
case("wordconv", "WordConvEmbedding", [s([[1, 2, 3, 0], [4, 1, 0, 0], [2, 2, 2, 2]], np.int32), f(5, 1, 2, 3), f(5), f(6, 3)])
case("wordconv_in", "WordConvEmbedding", [In(1, 4, t=T.INT32), f(5, 1, 3, 2), f(5), f(6, 2)], embedding_size=5, conv_window_size=3, char_embedding_size=2)
case("ngram", "NGramRepeatBlock", [s([[1, 2, 3, 1, 2], [0, 1, 0, 1, 0]], np.int64), In(2, 6)], ngram_size=3)
case("ngram_one", "NGramRepeatBlock", [s([[1, 2]], np.int64), In(1, 5)], ngram_size=1)
case("bifurcation", "BifurcationDetector", [s([1, 5, 3, 4, 2, 7, 8], np.int64), s([2], np.int64), s([2], np.int64), s([3, 4, 9, 1, 1, 6], np.int64)], [T.INT64, T.INT64])
case("bifurcation_none", "BifurcationDetector", [s([1, 5, 3, 4, 2], np.int64), s([9, 3, 4], np.int64), s([0], np.int64)], [T.INT64, T.INT64])
texts = np.array(["Hello World", "I love computer science !", ""], object)
case("tokenizer", "Tokenizer", [texts], [T.STRING], mark=0, mincharnum=1, pad_value="#", separators=[" "])
case("tokenizer_mark", "Tokenizer", [texts], [T.STRING], mark=1, mincharnum=2, pad_value="#", separators=[" ", "e"])
case("tokenizer_chars", "Tokenizer", [texts.reshape(1, 3)], [T.STRING], mark=1, mincharnum=1, pad_value="#", separators=[""])
case("tokenizer_exp", "Tokenizer", [texts], [T.STRING], mark=0, mincharnum=1, pad_value="#", tokenexp=".")

# ---- states along a sequence ----
def linear(name, q, kv, dk, dv, rule, state=False, decay=None, beta=None, b=2, t=3, **attrs):
    case("state_linear_" + name, "LinearAttention",
         [In(b, t, q * dk), f(b, t, kv * dk), f(b, t, kv * dv), f(b, kv, dk, dv) if state else None,
          f(b, t, decay, lo=-2, hi=0) if decay else None, f(b, t, beta, lo=0) if beta else None], 2,
         q_num_heads=q, kv_num_heads=kv, update_rule=rule, **attrs)


linear("plain", 2, 2, 4, 4, "linear")
linear("gated", 4, 2, 4, 3, "gated", state=True, decay=2)
linear("gated_wide", 2, 2, 4, 3, "gated", decay=8, scale=0.3)
linear("delta", 2, 1, 3, 4, "delta", beta=1, b=1, t=5)
linear("gated_delta", 2, 2, 4, 4, "gated_delta", state=True, decay=2, beta=2)
linear("more_keys", 2, 4, 4, 3, "gated_delta", state=True, decay=4, beta=4)
linear("more_keys_scale", 1, 3, 2, 2, "linear", scale=1.0, t=1)


def causal(name, shape, k, last=0, dilation=1, state=False, bias=False, **attrs):
    c = int(np.prod(shape[2:])) if last else shape[1]
    length = (k - 1) * dilation
    past = (shape[0], length) + tuple(shape[2:]) if last else (shape[0], c, length)
    attrs.update(dict(channels_last=1) if last else {}, **(dict(dilation=dilation) if dilation != 1 else {}))
    case("state_conv_" + name, "CausalConvWithState", [In(*shape), f(c, 1, k), f(c) if bias else None, f(*past) if state else None], 2, **attrs)


causal("plain", (2, 3, 5), 3)
causal("silu", (1, 4, 1), 4, state=True, bias=True, activation="silu")
causal("swish", (2, 2, 6), 2, bias=True, activation="swish", ndim=1)
causal("dilated", (1, 3, 7), 3, dilation=2, state=True)
causal("last", (2, 5, 4), 3, last=1, bias=True)
causal("last_axes", (1, 4, 2, 3), 3, last=1, dilation=3, state=True, activation="silu")
causal("one", (1, 3, 4), 1)


def mrope(name, x, b, t, rotary, section, **attrs):
    half = sum(section)
    case("state_mrope_" + name, "MRotaryEmbedding", [x, ints(np.int64, 0, 8, 3, b, t), f(9, half), f(9, half)], mrope_section=section, **attrs)


mrope("chunks", In(2, 2, 3, 8), 2, 3, 0, [2, 1, 1])
mrope("turns", In(1, 2, 3, 16), 1, 3, 0, [4, 2, 2], mrope_layout=1)
mrope("turns_odd", In(1, 1, 4, 12), 1, 4, 0, [3, 2, 1], mrope_layout=1, interleaved=1)
mrope("packed", In(1, 4, 16), 1, 4, 0, [1, 1, 2], num_heads=2)
mrope("partly", In(2, 2, 1, 10), 2, 1, 6, [1, 1, 1], num_heads=2, rotary_embedding_dim=6)
mrope("packed_partly", In(1, 2, 20), 1, 2, 4, [0, 2, 0], num_heads=2, rotary_embedding_dim=4)
for b, s_, m, h in ((1, 3, 2, 8), (2, 1, 1, 5), (2, 2, 4, 3)):
    case("state_engram_%d" % m, "EngramGate", [In(b, s_, m, h), f(b, s_, m, h), f(b, s_, h), f(m, h), f(m, h)], **(dict(epsilon=0.01) if m == 1 else {}))
case("state_hash", "NGramHashMapping", [s([[5, 1, 7, 3], [2, 2, 9, 0]], np.int64), s([1000003, 999983, -7], np.int64), s([101, 103, 107, 109], np.int64)], [T.INT64], max_ngram_size=3, n_head_per_ngram=2, pad_id=2)
case("state_hash_past", "NGramHashMapping", [s([[5, 1]], np.int64), s([1000003, 999983, 77, 13], np.int64), s([11, 13, 17], np.int64), s([[4, 6, 8]], np.int64)], [T.INT64, T.INT64], max_ngram_size=4, n_head_per_ngram=1, pad_id=0)
case("state_hash_i32", "NGramHashMapping", [In(2, 5, t=T.INT32), s([2000000011, -1999999973], np.int32), s([1009, 7], np.int32), s([[100000], [-3]], np.int32)], [T.INT32, T.INT32], max_ngram_size=2, n_head_per_ngram=2, pad_id=-1)

# ---- names in the default domain ----
def former(name, op, inputs, outputs=1, opset=9, **attrs):
    case("former_" + name, op, inputs, outputs, domain="", opset=opset, **attrs)


former("layernorm", "LayerNormalization", [In(2, 3, 8), f(8), f(8)], opset=11)
former("layernorm_saved", "LayerNormalization", [In(2, 3, 8), f(8)], [T.FLOAT, T.FLOAT, T.FLOAT], opset=12, epsilon=0.01)
former("layernorm_axis", "LayerNormalization", [In(2, 3, 4), f(3, 4), f(3, 4)], [T.FLOAT, None, T.FLOAT], opset=16, axis=1)
former("layernorm_f64", "LayerNormalization", [In(4, 5, t=T.DOUBLE), f(5).astype(np.float64)], [T.DOUBLE], opset=14)
former("mvn", "MeanVarianceNormalization", [In(2, 3, 4, 4)], opset=8)
former("mvn_across", "MeanVarianceNormalization", [In(2, 3, 4, 4)], opset=7, across_channels=1)
former("mvn_mean", "MeanVarianceNormalization", [In(1, 3, 4, 2)], opset=8, normalize_variance=0)
former("thresholded", "ThresholdedRelu", [f(3, 5, lo=-3, hi=3)])
former("thresholded_in", "ThresholdedRelu", [In(9)], alpha=0.5)
former("thresholded_below", "ThresholdedRelu", [f(2, 2, 3)], opset=7, alpha=-0.25)
former("affine", "Affine", [In(2, 3)], alpha=2.0, beta=-0.5)
former("affine_plain", "Affine", [In(4)])
former("affine_alpha", "Affine", [f(3, 1, 2)], alpha=-3.0)
former("scale", "Scale", [In(2, 3)], scale=2.5)
former("scale_plain", "Scale", [In(4)])
former("scale_scalar", "Scale", [In(1)], scale=-1.0)
former("scaledtanh", "ScaledTanh", [In(2, 3)], alpha=2.0, beta=0.5)
former("scaledtanh_wide", "ScaledTanh", [f(3, 4, lo=-9, hi=9)], alpha=-1.0, beta=1.0)
former("scaledtanh_zero", "ScaledTanh", [In(3)], alpha=0.5, beta=0.0)
former("softplus", "ParametricSoftplus", [In(2, 3)], alpha=2.0, beta=0.5)
former("softplus_wide", "ParametricSoftplus", [f(3, 4, lo=-40, hi=40)], alpha=1.0, beta=1.0)
former("softplus_turned", "ParametricSoftplus", [In(5)], alpha=-1.5, beta=-2.0)
former("imagescaler", "ImageScaler", [In(2, 3, 2, 4)], bias=[1.0, -2.0, 0.5], scale=0.25)
former("imagescaler_grey", "ImageScaler", [In(1, 1, 3, 3)], bias=[-1.0])
former("imagescaler_later", "ImageScaler", [f(1, 2, 3, 2)], bias=[0.0, 4.0], scale=2.0)
former("crop", "Crop", [In(1, 2, 5, 6)], border=[1, 0, 2, 1])
former("crop_size", "Crop", [In(2, 1, 6, 5)], border=[1, 2, 0, 0], scale=[3, 2])
former("crop_none", "Crop", [In(1, 1, 2, 3)], border=[0, 0, 0, 0])
former("slice", "DynamicSlice", [In(4, 5), s([1, 0], np.int64), s([3, -1], np.int64)])
former("slice_axes", "DynamicSlice", [In(4, 5), s([-2], np.int64), s([100], np.int64), s([1], np.int64)])
former("slice_i32", "DynamicSlice", [In(3, 2, 4, t=T.INT64), s([1, 1], np.int32), s([2, 3], np.int32), s([0, 2], np.int32)], [T.INT64])

# ---- searches: a decoder is a subgraph
def decoder(vocab=7, hidden=4, heads=2, seed=4):
    r = np.random.default_rng(seed)
    weights = []

    def weight(name, *shape):
        weights.append(N.from_array((r.standard_normal(shape) * 1.2).round(1).astype(np.float32), name))
        return name

    def value(name, t, *shape):
        return H.make_tensor_value_info(name, t, shape)

    nodes = [
        H.make_node("Gather", [weight("emb", vocab, hidden), "input_ids"], ["e"]),
        H.make_node("Gather", [weight("pos", 16, hidden), "position_ids"], ["p"]),
        H.make_node("Add", ["e", "p"], ["h"]),
        H.make_node("Attention", ["h", weight("qkv", hidden, 3 * hidden), weight("qkv_bias", 3 * hidden), "attention_mask", "past_0"],
                    ["a", "present_0"], domain="com.microsoft", num_heads=heads, unidirectional=1),
        H.make_node("Add", ["h", "a"], ["g"]),
        H.make_node("MatMul", ["g", weight("head", hidden, vocab)], ["logits"]),
    ]
    past = (heads, "l", hidden // heads)
    inputs = [value(n, T.INT32, "b", m) for n, m in (("input_ids", "s"), ("position_ids", "s"), ("attention_mask", "m"))]
    return H.make_graph(nodes, "decoder", inputs + [value("past_0", T.FLOAT, 2, "b", *past)],
                        [value("logits", T.FLOAT, "b", "s", vocab), value("present_0", T.FLOAT, 2, "b", heads, "n", hidden // heads)], weights)


def search(name, op, inputs, outputs, **attrs):
    case("search_" + name, op, inputs, outputs, decoder=decoder(), **{"pad_token_id": 0, **attrs})


PROMPT = s([[3, 4, 5], [0, 6, 2]], np.int32)
HALVES = s([[1, 0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1]], np.int32)


def i32(*x):
    return s(x, np.int32)


for end in (1, 5):
    search("greedy_%d" % end, "GreedySearch", [PROMPT, i32(12)], [T.INT32], eos_token_id=end)
search("greedy_masks", "GreedySearch", [PROMPT, i32(14), i32(9), s([1.4]), i32(1, 1, 1, 1, 1, 1, 0), HALVES, i32(1, 1, 1, 0, 1, 1).reshape(2, 3)],
       [T.INT32], eos_token_id=1, no_repeat_ngram_size=3)
for end, early in ((1, 0), (5, 1), (4, 0)):
    search("beam_%d" % end, "BeamSearch", [PROMPT, i32(11), i32(0), i32(3), i32(2), s([1.0]), s([1.0])], [T.INT32, T.FLOAT], eos_token_id=end,
           early_stopping=early)
search("beam_masks", "BeamSearch", [PROMPT, i32(9), i32(6), i32(2), i32(1), s([0.6]), s([1.3]), i32(1, 1, 1, 1, 1, 1, 0), HALVES],
       [T.INT32, T.FLOAT, T.FLOAT], eos_token_id=4, no_repeat_ngram_size=3)
TOP = dict(top_p=1e-6, min_tokens_to_keep=1, filter_value=-1e20)  # leaves one token to sample from
search("sample_top", "Sampling", [PROMPT, i32(10), i32(0), s([1.0])], [T.INT32], eos_token_id=1, **TOP)
search("sample_warm", "Sampling", [PROMPT, i32(12), i32(8), s([1.2])], [T.INT32], eos_token_id=5, temperature=0.7, **TOP)
search("sample_custom", "Sampling", [PROMPT, i32(10), i32(0), s([1.0])], [T.INT32], eos_token_id=4, top_p=1e-6, custom=1)


def network(seed):
    """Returns the nodes and weights of a new graph, and functions that append to them."""
    r = np.random.default_rng(seed)
    weights, nodes = [], []

    def weight(name, *shape):
        weights.append(N.from_array((r.standard_normal(shape) * 1.2).round(1).astype(np.float32), name))
        return name

    def node(op, inputs, *outputs, domain="", **attrs):
        nodes.append(H.make_node(op, inputs, list(outputs), domain=domain, **attrs))
        return outputs[0]

    return weights, nodes, weight, node


def ported(name, t, *shape):
    return H.make_tensor_value_info(name, t, shape)


def heads_of(node, x, name, count=2, size=2):
    shape = node("Constant", [], name + "_sizes", value_ints=[0, -1, count, size])
    return node("Transpose", [node("Reshape", [x, shape], name + "_parts")], name, perm=[0, 2, 1, 3])


def attend(node, query, key, value, name, mask=None, hidden=4):
    """Attention of several heads with an optional additive mask; concatenates the heads."""
    scores = node("MatMul", [query, node("Transpose", [key], name + "_t", perm=[0, 1, 3, 2])], name + "_qk")
    shares = node("Softmax", [node("Add", [scores, mask], name + "_masked") if mask else scores], name + "_shares", axis=-1)
    back = node("Transpose", [node("MatMul", [shares, value], name + "_sum")], name + "_back", perm=[0, 2, 1, 3])
    return node("Reshape", [back, node("Constant", [], name + "_shape", value_ints=[0, -1, hidden])], name)


def decode(node, weight, ids, past, cross, mask, vocab, whole=False, hidden=4):
    """A decoder layer. With `whole` the decoder gets all tokens in each step, and computes only the last one."""
    if whole:
        last, end, axis = (node("Constant", [], n, value_ints=[v]) for n, v in (("last", -1), ("end", 1 << 30), ("axis", 1)))
        ids = node("Slice", [ids, last, end, axis], "last_ids")
    h = node("Gather", [weight("words", vocab, hidden), ids], "h")
    q, k, v = (heads_of(node, node("MatMul", [h, weight("w_" + n, hidden, hidden)], n + "_flat"), n) for n in "qkv")
    if past:
        k, v = node("Concat", [past[0], k], "present_key_self_0", axis=2), node("Concat", [past[1], v], "present_value_self_0", axis=2)
    else:
        k, v = node("Identity", [k], "present_key_self_0"), node("Identity", [v], "present_value_self_0")
    g = node("Add", [h, attend(node, q, k, v, "own")], "g")
    c = attend(node, heads_of(node, node("MatMul", [g, weight("w_c", hidden, hidden)], "c_flat"), "c"), cross[0], cross[1], "seen", mask)
    node("MatMul", [node("Add", [g, c], "m"), weight("head", hidden, vocab)], "logits")


def text_mask(node):
    one = node("Constant", [], "one", value_float=1.0)
    far = node("Constant", [], "far", value_float=1e4)
    lacks = node("Sub", [node("Cast", ["encoder_attention_mask"], "marks", to=T.FLOAT), one], "lacks")
    return node("Unsqueeze", [node("Mul", [lacks, far], "low"), node("Constant", [], "middle", value_ints=[1, 2])], "low_wide")

def shared_decoder(vocab=7, hidden=4, heads=2, seed=4):
    """decoder() in standard operators; past and present share one buffer with room for all tokens."""
    weights, nodes, weight, node = network(seed)
    size = hidden // heads

    def number(name, **value):
        return node("Constant", [], name, **value)

    def vector(x, axis, name):
        return node("Unsqueeze", [x, axis], name)

    zero, one, first, second = number("zero", value_int=0), number("one", value_int=1), number("first", value_ints=[0]), number("second", value_ints=[1])
    h = node("Add", [node("Gather", [weight("emb", vocab, hidden), "input_ids"], "e"), node("Gather", [weight("pos", 16, hidden), "position_ids"], "p")], "h")
    node("Add", [node("MatMul", [h, weight("qkv", hidden, 3 * hidden)], "product"), weight("qkv_bias", 3 * hidden)], "flat")
    node("Split", ["flat"], "qf", "kf", "vf", axis=2)
    q, k, v = (heads_of(node, x, x[0], heads, size) for x in ("qf", "kf", "vf"))
    made = node("Concat", [vector(k, first, "k5"), vector(v, first, "v5")], "made", axis=0)
    count = node("Gather", [node("Shape", ["input_ids"], "ids_shape"), one], "count")
    room = node("Gather", [node("Shape", ["past_0"], "past_shape"), number("fourth", value_int=3)], "room")
    past = node("Cast", [node("Squeeze", ["past_sequence_length"], "past_number")], "past", to=T.INT64)
    at = node("Add", [node("Range", [zero, count, one], "steps"), past], "at")
    places = node("Range", [zero, room, one], "places")
    hot = node("Cast", [node("Equal", [vector(places, second, "place_column"), vector(at, first, "at_row")], "hit")], "hot", to=T.FLOAT)
    kept = node("Sub", [number("whole", value_float=1.0), node("ReduceSum", [hot, second], "new", keepdims=1)], "kept")
    node("Add", [node("Mul", ["past_0", kept], "old"), node("MatMul", [hot, made], "spread")], "present_0")
    node("Split", ["present_0"], "keys5", "values5", axis=0)
    keys, values = node("Squeeze", ["keys5", first], "keys"), node("Squeeze", ["values5", first], "values")
    scores = node("Mul", [node("MatMul", [q, node("Transpose", [keys], "turned", perm=[0, 1, 3, 2])], "qk"), number("scale", value_float=size ** -0.5)], "scores")
    seen = node("LessOrEqual", [vector(places, first, "place_row"), vector(at, second, "at_column")], "seen")
    lack = vector(node("Sub", [room, node("Add", [past, count], "total")], "lack"), first, "lacks")
    counts = node("Pad", ["attention_mask", node("Concat", [number("none", value_ints=[0, 0, 0]), lack], "pads", axis=0)], "padded")
    counts = node("Cast", [vector(counts, number("middle", value_ints=[1, 2]), "wide")], "counts", to=T.BOOL)
    low = node("Where", [counts, scores, node("Add", [scores, number("far", value_float=-10000.0)], "lowered")], "low")
    shares = node("Softmax", [node("Where", [seen, low, number("never", value_float=-3e38)], "bounded")], "shares", axis=-1)
    back = node("Transpose", [node("MatMul", [shares, values], "sum")], "back", perm=[0, 2, 1, 3])
    node("MatMul", [node("Add", [h, node("Reshape", [back, number("as_flat", value_ints=[0, -1, hidden])], "a")], "g"), weight("head", hidden, vocab)], "logits")
    inputs = [ported(n, T.INT32, "b", m) for n, m in (("input_ids", "s"), ("position_ids", "s"), ("attention_mask", "m"))]
    return H.make_graph(nodes, "decoder", inputs + [ported("past_0", T.FLOAT, 2, "b", heads, "l", size), ported("past_sequence_length", T.INT32, 1)],
                        [ported("logits", T.FLOAT, "b", "s", vocab), ported("present_0", T.FLOAT, 2, "b", heads, "l", size)], weights)


# No beam search with such a buffer: on CPUs onnxruntime does not copy it when a beam continues another beam.
for end in (1, 5):
    case("search_shared_%d" % end, "GreedySearch", [PROMPT, i32(12)], [T.INT32], decoder=shared_decoder(), pad_token_id=0, eos_token_id=end)


def encoder_decoder(sound=False, fresh=False, whole=False, takes_hidden=False, vocab=7, hidden=4, seed=4):
    """Encoder and decoder with the signatures of T5 (old and new) and Whisper: one layer, two heads."""
    past_shape, cross = ("b", 2, "l", 2), ("b", 2, "e", 2)
    own = [ported(n, T.FLOAT, *past_shape) for n in ("past_key_self_0", "past_value_self_0")]
    seen = [ported(n, T.FLOAT, *cross) for n in ("past_key_cross_0", "past_value_cross_0")]
    presents = [ported(n, T.FLOAT, *past_shape) for n in ("present_key_self_0", "present_value_self_0")]
    logits, states = ported("logits", T.FLOAT, "b", 1, vocab), ported("encoder_hidden_states", T.FLOAT, "b", "e", hidden)
    text = [ported("encoder_attention_mask", T.INT32, "b", "e")]

    weights, nodes, weight, node = network(seed)
    if sound:
        h = node("MatMul", [node("Transpose", ["encoder_input_ids"], "frames", perm=[0, 2, 1]), weight("ears", 3, hidden)], "heard")
    else:
        h = node("Gather", [weight("emb", 9, hidden), "encoder_input_ids"], "heard")
    node("Tanh", [h], "encoder_hidden_states")
    for n in ("key", "value"):
        flat = node("MatMul", ["encoder_hidden_states", weight("x_" + n, hidden, hidden)], n + "_x")
        heads_of(node, flat, "present_%s_cross_0" % n)
    if not fresh:
        mask = None if sound else text_mask(node)
        decode(node, weight, "decoder_input_ids", None, ["present_key_cross_0", "present_value_cross_0"], mask, vocab, whole=True)
    inputs = [ported("encoder_input_ids", *((T.FLOAT, "b", 3, "e") if sound else (T.INT32, "b", "e")))] + ([] if sound else text)
    made = [ported(n, T.FLOAT, *cross) for n in ("present_key_cross_0", "present_value_cross_0")]
    encoder = H.make_graph(nodes, "encoder", inputs + ([] if fresh else [ported("decoder_input_ids", T.INT32, "b", "s")]),
                           made if fresh else [logits, states] + presents + made, weights)

    weights, nodes, weight, node = network(seed + 1)
    mask = None if sound else text_mask(node)
    decode(node, weight, "input_ids", ["past_key_self_0", "past_value_self_0"], ["past_key_cross_0", "past_value_cross_0"], mask, vocab, whole)
    inputs = [ported("input_ids", T.INT32, "b", "s" if whole else 1)] + ([] if sound else text) + ([states] if takes_hidden else [])
    decoder = H.make_graph(nodes, "decoder", inputs + own + seen, [logits] + presents, weights)
    return dict(encoder=encoder, decoder=decoder, model_type=2 if sound else 1, pad_token_id=0)


def encoded(name, op, inputs, outputs, sound=False, form={}, **attrs):
    case("encoded_" + name, op, inputs, outputs, **{"decoder_start_token_id": 2, **encoder_decoder(sound=sound, **form), **attrs})


TEXTS = s([[3, 4, 5, 8], [0, 0, 6, 2]], np.int32)
for n, form in (("old", {}), ("hidden", dict(takes_hidden=True)), ("whole", dict(whole=True)), ("new", dict(fresh=True)), ("new_whole", dict(fresh=True, whole=True))):
    encoded("t5_" + n, "BeamSearch", [TEXTS, i32(9), i32(0), i32(3), i32(2), s([1.0]), s([1.0])], [T.INT32, T.FLOAT], form=form, eos_token_id=1)
encoded("t5_masks", "BeamSearch", [TEXTS, i32(8), i32(5), i32(2), i32(1), s([0.7]), s([1.3]), i32(1, 1, 1, 1, 1, 1, 0), HALVES, i32(1, 1, 0, 1, 1, 1, 1, 1).reshape(2, 4)],
        [T.INT32, T.FLOAT, T.FLOAT], eos_token_id=4, no_repeat_ngram_size=2)
encoded("t5_one", "BeamSearch", [TEXTS, i32(7), i32(0), i32(1), i32(1), s([1.0]), s([1.1])], [T.INT32, T.FLOAT], eos_token_id=6, early_stopping=1)
SOUND = f(2, 3, 5, lo=-2, hi=2)
GIVEN = i32(2, 5, 2, 3).reshape(2, 2)
for n, form in (("plain", {}), ("hidden", dict(takes_hidden=True))):
    encoded("whisper_" + n, "WhisperBeamSearch", [SOUND, i32(9), i32(0), i32(3), i32(2), s([1.0]), s([1.0])], [T.INT32, T.FLOAT], sound=True, form=form, eos_token_id=1)
encoded("whisper_old", "BeamSearch", [SOUND, i32(9), i32(0), i32(2), i32(2), s([1.0]), s([1.0]), None, None, None, GIVEN], [T.INT32, T.FLOAT], sound=True, eos_token_id=1)
encoded("whisper_given", "WhisperBeamSearch", [SOUND, i32(10), i32(0), i32(3), i32(1), s([0.8]), s([1.2]), None, HALVES, None, GIVEN], [T.INT32, T.FLOAT, T.FLOAT], sound=True, eos_token_id=6)
TIMES = dict(beginning_timestamp_token_id=12, no_timestamps_token_id=11, start_of_lm_token_id=10, translate_token_id=8, transcribe_token_id=9, eos_token_id=7)
for seed in (4, 5, 6):
    encoded("whisper_times_%d" % seed, "WhisperBeamSearch", [SOUND, i32(14), i32(0), i32(3), i32(2), s([1.0]), s([1.0]), None, None, None, None, i32(1)], [T.INT32, T.FLOAT],
            sound=True, form=dict(vocab=20, seed=seed), **TIMES)
encoded("whisper_warm", "WhisperBeamSearch", [SOUND, i32(9), i32(0), i32(3), i32(2), s([1.0]), s([1.0])] + [None] * 7 + [s([1.7])], [T.INT32, T.FLOAT], sound=True, eos_token_id=1)
encoded("whisper_silence", "WhisperBeamSearch", [SOUND, i32(9), i32(0), i32(3), i32(2), s([1.0]), s([1.0])], [T.INT32, T.FLOAT, 0, 0, T.FLOAT], sound=True, eos_token_id=1, no_speech_token_id=3)

# ---- differences that random models found ----
case("found_skiplayernorm", "SkipLayerNormalization", [s([[[1e-3, -2e-3]]]), s([[[0, 1e-3]]]), s([1, 2])])
case("found_skipsimplified", "SkipSimplifiedLayerNormalization", [s([[[1e-3, -2e-3]]]), s([[[0, 1e-3]]]), s([1, 2])])
case("found_vector_product", "FusedMatMul", [In(4), f(4, 3)], transA=1)
for n, kw in (("2_level", dict(bits=2, block=16)), ("2_level_32", dict(bits=2, block=32)), ("4_level_zero", dict(bits=4, block=16, zero="float"))):
    nbits("found_" + n, accuracy_level=4, **kw)
    MODELS[-1] = ("found_nbits_" + n, MODELS[-1][1])
case("found_vector_transposed", "TransposeMatMul", [f(4), f(2, 4, 3)], transA=1)

# ---- long short-term memory ----
def attending(name, sq=4, b=2, x=3, h=5, m=4, md=3, am=2, layer=0, lens=False, more=False, directions=1, **attrs):
    a = layer or md
    ins = [In(sq, b, x), norm(directions, 4 * h, x + a), norm(directions, 4 * h, h), norm(directions, 8 * h), s(R.integers(1, sq, b, endpoint=True), np.int32) if lens else None,
           norm(directions, b, h) if more else None, norm(directions, b, h) if more else None, norm(directions, 3 * h) if more else None,
           norm(directions, h, am), norm(directions, md, am), norm(directions, am), f(b, m, md), s(R.integers(1, m, b, endpoint=True), np.int32) if lens else None,
           norm(directions, md + h, layer) if layer else None]
    case("lstm_attn_" + name, "AttnLSTM", ins, 3, hidden_size=h, **attrs)


attending("plain")
attending("layer", layer=6, lens=True)
attending("reverse", direction="reverse", more=True, layer=2)
attending("both", direction="bidirectional", directions=2, lens=True, more=True)
attending("forget", input_forget=1, clip=0.6, b=1, am=5)
for n, t, d, kw in (("wide", np.uint8, 1, dict(direction="reverse")), ("both", np.int8, 2, dict(direction="bidirectional", clip=0.9))):
    case("lstm_quantized_" + n, "DynamicQuantizeLSTM", [In(5, 3, 4), ints(t, 0, 120, d, 4, 24), ints(t, 0, 120, d, 6, 24), f(d, 48), i32(5, 2, 3), f(d, 3, 6, hi=3), f(d, 3, 6), f(d, 18),
         f(d, 24, lo=0.004, hi=0.008), np.full((d, 24), 55 if t == np.uint8 else 0, t), f(d, lo=0.01, hi=0.03), np.full(d, 61 if t == np.uint8 else 0, t)], 3, hidden_size=6, **kw)

# ---- attention scores as outputs, masks of one column, quantized caches, sliding caches
X = In(2, 3, 4)
case("kept_column", "Attention", [X, f(4, 12), f(12), i32(0, 1).reshape(2, 1)], num_heads=2)
case("kept_one", "Attention", [X, f(4, 12), f(12), i32(0).reshape(1, 1), f(2, 2, 2, 3, 2), None, i32(3)], 2, num_heads=2)
case("kept_products", "MultiHeadAttention", [X, In(2, 3, 4), In(2, 3, 4), f(12), s([[1, 1, 0], [1, 0, 1]], np.int32), f(1, 2, 3, 3)],
     [T.FLOAT, 0, 0, T.FLOAT], num_heads=2, unidirectional=1)
case("kept_last", "MultiHeadAttention", [In(1, 3, 4), f(1, 5, 4), f(1, 5, 4)], [T.FLOAT, 0, 0, T.FLOAT], num_heads=1, unidirectional=1)
case("kept_products_past", "MultiHeadAttention", [X, In(2, 3, 4), In(2, 3, 4)] + [None] * 3 + [f(2, 2, 2, 2), f(2, 2, 2, 2)], 4, num_heads=2)
case("kept_products_single", "DecoderMaskedMultiHeadAttention", [In(2, 1, 4), In(2, 1, 4), In(2, 1, 4), s([[1, 0, 1, 1], [0, 0, 1, 0]], np.int32), f(1, 2, 1, 4),
     f(2, 2, 6, 2), f(2, 2, 6, 2), i32(3)], 4, num_heads=2, past_present_share_buffer=1, output_qk=1)
case("kept_products_seen", "DecoderMaskedMultiHeadAttention", [In(2, 1, 4), f(2, 2, 5, 2), f(2, 2, 5, 2)], [T.FLOAT, 0, 0, T.FLOAT], num_heads=2, output_qk=1)


def kept(name, length=1, room=6, lens=(4, 3), total=5, bits=0, kind="PER_CHANNEL", t=np.float32, extra={}, products=0, keys=None, **attrs):
    b, h, kv, d = len(lens), 2, 1, 16 if attrs.get("do_rotary") or attrs.get("sliding_window_cache") else 8
    keys = length if keys is None else keys
    real = {np.float32: T.FLOAT, np.float16: T.FLOAT16}[t]
    cache = {0: lambda: f(b, kv, room, d).astype(t), 8: lambda: i8(b, kv, room, d), 4: lambda: u8(b, kv, room, d // 2)}[bits]
    x = [f(b, length, h * d).astype(t)] + [f(b, keys, kv * d).astype(t) for _ in "kv"] + [cache(), cache(), i32(*lens), s(total, np.int32)] + [None] * 7
    if bits:
        shape = (1,) if kind == "PER_TENSOR" else (kv, 1, d)
        x[12:] = [f(*shape, lo=0.005, hi=0.01) * (1 if bits == 8 else 16) for _ in "kv"]
        attrs.update(k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits)
    for i, v in extra.items():
        x[i] = v
    outs = [real] + [{0: real, 8: T.INT8, 4: T.UINT8}[bits]] * 2 + [real] * (products > 0)
    case("kept_" + name, "GroupQueryAttention", x, outs, num_heads=h, kv_num_heads=kv, **attrs, **({"qk_output": products} if products else {}))


TURNS = {7: f(16, 8), 8: f(16, 8)}
for n in (8, 4):
    kept("byte_%d_first" % n, 3, 4, (2, 2), 3, n, do_rotary=1, extra=TURNS)
    kept("byte_%d_one" % n, bits=n, kind="PER_TENSOR", extra={11: f(2)}, softcap=0.7)
    kept("byte_%d_more" % n, 2, 6, (5,), 6, n, extra={10: f(1, 2, 2, 6)}, local_window_size=3)
    kept("byte_%d_half" % n, bits=n, t=np.float16)
kept("before", products=1, lens=(4, 4), softcap=2.0, local_window_size=3)
kept("after", products=2, lens=(4, 4), extra={10: f(1, 2, 1, 5), 11: f(2)})
kept("before_byte", products=1, lens=(4, 4), bits=8)
kept("slides", 1, 4, (4, 9), 10, sliding_window_cache=1, local_window_size=4)
kept("slides_all", 8, 6, (14,), 15, sliding_window_cache=1, local_window_size=4)
kept("slides_byte", 1, 4, (4, 6), 7, 8, sliding_window_cache=1, local_window_size=4)
kept("shared", 2, 6, (4,), 5, keys=0, extra=TURNS, do_rotary=1)
kept("shared_byte", 1, 6, (4, 2), 5, 8, keys=0)
for n, t in (("", np.uint8), ("_real", np.float16)):
    case("kept_halves%s" % n, "MatMulNBits", [f(2, 40).astype(np.float16), u8(9, 2, 16), f(9, 2, lo=0.01, hi=0.1).astype(np.float16), f(9, 2, lo=0, hi=9).astype(np.float16) if n else u8(9, 1)],
         [T.FLOAT16], K=40, N=9, bits=4, block_size=32, accuracy_level=4)

# ---- texts split by regular expressions
TEXTS_TO_CUT = s(["ab1 cd", "x22 aab, bb", "", "zz z\u00e9 \u00e91", "abab"], object)
for i, e in enumerate(["[a-z]+", "a|ab", "a*", "b*|1", "\u00e9", "ab|bab", "[^ ]+"]):
    case("cut_token_%d" % i, "Tokenizer", [TEXTS_TO_CUT], [T.STRING], mark=i % 2, mincharnum=3 if "bab" in e else 1 + i % 2, pad_value="#", tokenexp=e)
for i, e in enumerate([["[ ,]+", "b"], ["1|2"], ["a*"], ["(a|aa)", " "]]):
    case("cut_separator_%d" % i, "Tokenizer", [TEXTS_TO_CUT], [T.STRING], mark=i % 2, mincharnum=1 + i % 2, pad_value="#", separators=e)

# ---- further differences that random models found
def slides(name, window, room, lens, total, length=1, bits=0):
    cache = (lambda: i8(len(lens), 1, room, 16)) if bits else (lambda: f(len(lens), 1, room, 16))
    x = [f(len(lens), length, 32), f(len(lens), length, 16), f(len(lens), length, 16), cache(), cache(), i32(*lens) - 1, s(total, np.int32)] + [None] * 3
    x += [f(1, 2, length, total, lo=-3, hi=3)] + ([None, s([0.01]), s([0.01])] if bits else [])
    case("drawn_slides_" + name, "GroupQueryAttention", x, [T.FLOAT] + [T.INT8 if bits else T.FLOAT] * 2, num_heads=2, kv_num_heads=1, local_window_size=window, sliding_window_cache=1,
         **(dict(k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR", kv_cache_bit_width=bits) if bits else {}))


slides("bias", 2, 2, (3, 4), 4)
slides("bias_room", 3, 5, (9,), 9)
slides("bias_more", 3, 4, (9,), 9, length=2)
slides("bias_byte", 3, 3, (8, 5), 9, bits=8)
for n in (0, 8):  # queries after the end of a text
    keys = i8(2, 1, 4, 16) if n else f(2, 1, 4, 16)
    case("drawn_behind_%d" % n, "GroupQueryAttention", [f(2, 4, 32), f(2, 4, 16), f(2, 4, 16), keys, keys, i32(0, 3), s(4, np.int32)] + [None] * 5 + ([s([0.01]), s([0.01])] if n else []),
         [T.FLOAT] + [T.INT8 if n else T.FLOAT] * 2, num_heads=2, kv_num_heads=1, local_window_size=2, **(dict(k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR", kv_cache_bit_width=8) if n else {}))
for i, e in enumerate([[" ", ""], ["", ""], ["", "b"]]):
    case("drawn_separators_%d" % i, "Tokenizer", [TEXTS_TO_CUT], [T.STRING], mark=1 - i % 2, mincharnum=1, pad_value="#", separators=e)
for n, k in ((4, dict()), (4, dict(block_size=32)), (8, dict(block_size=16, normalize_routing_weights=1)), (4, dict(normalize_routing_weights=1, block_size=16))):
    size = k.get("block_size", 0)
    sides = [(32, 32), (32, 32)]
    steps = [f(2, r, c // size, lo=0.001, hi=0.01) if size else f(2, r, lo=0.001, hi=0.01) for r, c in sides]
    holes = [u8(2, r, -(-(c // size) * n // 8)) if size and c > size else u8(2, r * n // 8) for r, c in sides]
    case("drawn_experts_%d_%d" % (n, size), "QMoE", [In(3, 32), f(3, 2), u8(2, 32, 32 * n // 8), steps[0], None, u8(2, 32, 32 * n // 8), steps[1], None, None, None, None] + holes
         + [None, f(3, 2, lo=0)], activation_type="silu", k=2, expert_weight_bits=n, **k)
for n, op, more, tail in (("greedy", "GreedySearch", [], {}), ("beams", "BeamSearch", [i32(2), i32(1), s([1.0]), s([1.0])], {}), ("sample", "Sampling", [s([1.0])], TOP)):
    case("drawn_least_" + n, op, [PROMPT, i32(6), i32(9)] + more, [T.INT32], decoder=decoder(), pad_token_id=0, eos_token_id=1, **tail)

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, model in MODELS:
        if not sys.argv[2:] or name in sys.argv[2:]:
            onnx.save(model, os.path.join(sys.argv[1], name + ".onnx"))
