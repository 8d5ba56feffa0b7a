#!/usr/bin/env python3
"""microsoft_speed.py FOLDER [PART...]: models of one operator of com.microsoft each, in realistic sizes, for networks.sh.

Data that change from run to run are inputs; weights and parameters are constants of the model. With PART only models
whose names contain one of them are written. It needs onnx and NumPy."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T

import microsoft as m
from microsoft import In, case, decoder, f, i8, ints, s, u8

HALF = (("", np.float32, T.FLOAT), ("_half", np.float16, T.FLOAT16))
BYTES = (("u8", T.UINT8, np.uint8, 128), ("i8", T.INT8, np.int8, 3))


def i32(*x):
    return s(x, np.int32)


def real(*shape, t=np.float32, lo=-0.1, hi=0.1):
    return f(*shape, lo=lo, hi=hi).astype(t)


def scale(*shape):
    return f(*shape, lo=0.002, hi=0.02)


def fused():
    for name, t, k in HALF:
        for op in ("Gelu", "FastGelu", "QuickGelu"):
            case(op + name, op, [In(128, 3072, t=k)], [k])
        case("BiasGelu" + name, "BiasGelu", [In(128, 3072, t=k), real(3072, t=t)], [k])
        case("FastGelu_bias" + name, "FastGelu", [In(128, 3072, t=k), real(3072, t=t)], [k])
    for ta in (0, 1):
        for tb in (0, 1):
            case(f"FusedMatMul_{ta}{tb}", "FusedMatMul", [In(8, 64, 128) if ta else In(8, 128, 64), In(8, 128, 64) if tb else In(8, 64, 128)], transA=ta, transB=tb, alpha=0.125)
    case("FusedMatMul_weights", "FusedMatMul", [In(128, 512), real(1024, 512)], transB=1)
    case("FusedMatMul_batch", "FusedMatMul", [In(128, 8, 64), In(128, 8, 64)], transBatchA=1, transBatchB=1, transB=1)
    case("TransposeMatMul", "TransposeMatMul", [In(8, 64, 128), In(8, 64, 128)], transA=1)
    case("FusedGemm", "FusedGemm", [In(128, 512), real(512, 512), real(512)], activation="Relu")
    case("FusedGemm_leaky", "FusedGemm", [In(128, 512), real(512, 512), real(512)], activation="LeakyRelu", activation_alpha=0.1, transB=1)
    for a, p in (("Relu", []), ("LeakyRelu", [0.1]), ("Clip", [0.0, 6.0]), ("HardSigmoid", [0.2, 0.5]), ("Tanh", [])):
        more = dict(activation_params=p) if p else {}
        case("FusedConv_" + a, "FusedConv", [In(1, 64, 56, 56), real(64, 64, 3, 3), real(64)], activation=a, pads=[1] * 4, **more)
    case("FusedConv_sum", "FusedConv", [In(1, 64, 56, 56), real(64, 64, 3, 3), real(64), In(1, 64, 56, 56)], activation="Relu", pads=[1] * 4)
    case("FusedConv_alone", "FusedConv", [In(1, 64, 56, 56), real(64, 1, 3, 3), real(64)], activation="Relu", pads=[1] * 4, group=64)
    case("FusedConv_pixel", "FusedConv", [In(1, 64, 56, 56), real(128, 64, 1, 1), real(128)], activation="Relu")
    case("NhwcFusedConv", "NhwcFusedConv", [In(1, 56, 56, 64), real(64, 64, 3, 3), real(64)], activation="Relu", pads=[1] * 4)
    case("NhwcFusedConv_sum", "NhwcFusedConv", [In(1, 56, 56, 64), real(64, 64, 3, 3), real(64), In(1, 56, 56, 64)], activation="Relu", pads=[1] * 4)
    case("NhwcConv", "NhwcConv", [In(1, 56, 56, 64), real(64, 64, 3, 3), real(64)], pads=[1] * 4)
    case("GemmFastGelu", "GemmFastGelu", [In(128, 512), real(512, 512), real(512)])
    case("BiasSoftmax", "BiasSoftmax", [In(8, 128, 128), In(8, 128, 128)], axis=2, is_inner_broadcast=0)
    case("BiasSoftmax_inner", "BiasSoftmax", [In(8, 12, 128, 128), In(8, 1, 1, 128)], axis=3, is_inner_broadcast=1)


def norms():
    for name, t, k in HALF:
        for op, bias in (("SkipLayerNormalization", [real(768, t=t)]), ("SkipSimplifiedLayerNormalization", [])):
            short = op.replace("LayerNormalization", "")
            case(short + name, op, [In(1, 128, 768, t=k), In(1, 128, 768, t=k), real(768, t=t)] + bias, [k])
            case(short + "_sum" + name, op, [In(1, 128, 768, t=k), In(1, 128, 768, t=k), real(768, t=t)] + bias + [real(768, t=t)], [k, 0, 0, k])
            case(short + "_broadcast" + name, op, [In(4, 128, 768, t=k), In(128, 768, t=k), real(768, t=t)] + bias, [k])
            case(short + "_one" + name, op, [In(1, 1, 768, t=k), In(1, 1, 768, t=k), real(768, t=t)] + bias, [k, 0, 0, k])
        case("SimplifiedLayerNormalization" + name, "SimplifiedLayerNormalization", [In(1, 128, 768, t=k), real(768, t=t)], [k], domain="", epsilon=1e-6)
    ids = lambda: ints(np.int32, 0, 511, 1, 128)
    case("EmbedLayerNormalization", "EmbedLayerNormalization", [In(1, 128, t=T.INT32), In(1, 128, t=T.INT32), real(30000, 768), real(512, 768), real(2, 768), real(768), real(768), ints(np.int32, 0, 1, 1, 128)], [T.FLOAT, T.INT32])
    case("EmbedLayerNormalization_sum", "EmbedLayerNormalization", [In(1, 128, t=T.INT32), None, real(30000, 768), real(512, 768), None, real(768), real(768), None, ids()], [T.FLOAT, T.INT32, T.FLOAT])
    case("QEmbedLayerNormalization", "QEmbedLayerNormalization", [In(1, 128, t=T.INT32), In(1, 128, t=T.INT32), u8(30000, 768), u8(512, 768), u8(2, 768), u8(768), u8(768), ints(np.int32, 0, 1, 1, 128)]
         + [s(0.02)] * 5 + [s(128, np.uint8)] * 5, [T.FLOAT, T.INT32])


def linear():
    """Operators on quantized tensors."""
    for n, k, t, z in BYTES:
        zero, image = s(z, t), lambda c=64, size=56: In(1, c, size, size, t=k)
        last = lambda c=64, size=56: In(1, size, size, c, t=k)
        for op in ("QLinearAdd", "QLinearMul"):
            case(f"{op}_{n}", op, [image(), s(0.05), zero, image(), s(0.02), zero, s(0.06), zero], [k])
            case(f"{op}_row_{n}", op, [In(128, 768, t=k), s(0.05), zero, ints(t, 0, 100, 768), s(0.02), zero, s(0.06), zero], [k])
            case(f"{op}_channel_{n}", op, [image(), s(0.05), zero, In(1, 64, 1, 1, t=k), s(0.02), zero, s(0.06), zero], [k])
            case(f"{op}_one_{n}", op, [image(), s(0.05), zero, s(7, t), s(0.02), zero, s(0.06), zero], [k])
        case(f"QLinearSigmoid_{n}", "QLinearSigmoid", [image(), s(0.04), zero, s(1 / 256), s(np.iinfo(t).min, t)], [k])
        case(f"QLinearLeakyRelu_{n}", "QLinearLeakyRelu", [image(), s(0.04), zero, s(0.05), zero], [k], alpha=0.2)
        for axis in (1, 3):
            case(f"QLinearSoftmax_{axis}_{n}", "QLinearSoftmax", [In(1, 8, 128, 128, t=k), s(0.04), zero, s(1 / 256), s(np.iinfo(t).min, t)], [k], opset=13, axis=axis)
        case(f"QLinearSoftmax_old_{n}", "QLinearSoftmax", [In(128, 1000, t=k), s(0.04), zero, s(1 / 256), s(np.iinfo(t).min, t)], [k], opset=11, axis=1)
        case(f"QLinearWhere_{n}", "QLinearWhere", [In(1, 8, 128, 128, t=T.BOOL), In(1, 8, 128, 128, t=k), s(0.05), zero, s(1, t), s(0.02), zero, s(0.04), zero], [k])
        for c, make in ((0, image), (1, last)):
            where = "last" if c else "first"
            case(f"QLinearAveragePool_{where}_{n}", "QLinearAveragePool", [make(), s(0.05), zero, s(0.04), zero], [k], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, channels_last=c)
            case(f"QLinearGlobalAveragePool_{where}_{n}", "QLinearGlobalAveragePool", [make(512, 14), s(0.05), zero, s(0.04), zero], [k], channels_last=c)
            for ch, o, kernel, size, step, group in ((64, 64, 3, 28, 1, 1), (64, 128, 1, 28, 1, 1), (64, 64, 3, 56, 1, 64), (3, 32, 3, 224, 2, 1), (96, 96, 5, 28, 2, 96), (64, 64, 3, 28, 1, 4), (16, 96, 1, 112, 1, 1), (320, 1280, 1, 7, 1, 1)):
                for per in (0, 1):
                    w, ws = i8(o, ch // group, kernel, kernel), scale(o) if per else s(0.01)
                    case(f"QLinearConv_{where}_{ch}_{o}_{kernel}_{size}_{group}_{'per_' if per else ''}{n}", "QLinearConv",
                         [make(ch, size), s(0.02), zero, w, ws, np.zeros(o, np.int8) if per else s(0, np.int8), s(0.5), zero, ints(np.int32, -999, 999, o)], [k],
                         pads=[kernel // 2] * 4, strides=[step] * 2, group=group, channels_last=c, **({} if c else dict(domain="")))
        case(f"NhwcMaxPool_{n}", "NhwcMaxPool", [last(64, 112)], [k], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        case(f"QLinearConcat_channel_{n}", "QLinearConcat", [s(0.05), zero] + [image(64, 28), s(0.05), zero, image(64, 28), s(0.04), zero], [k], axis=1)
        case(f"QLinearConcat_last_{n}", "QLinearConcat", [s(0.05), zero] + [last(64, 28), s(0.05), zero, last(32, 28), s(0.04), zero], [k], axis=3)
        case(f"QLinearReduceMean_{n}", "QLinearReduceMean", [image(512, 14), s(0.05), zero, s(0.04), zero], [k], axes=[2, 3], keepdims=1)
        case(f"MulInteger_{n}", "MulInteger", [In(128, 768, t=k), zero, In(128, 768, t=k), zero], [T.INT32])
        case(f"QuantizeLinear_{n}", "QuantizeLinear", [In(128, 768), s(0.01), zero], [k])
        case(f"QuantizeLinear_axis_{n}", "QuantizeLinear", [In(128, 768), scale(768), ints(t, 0, 9, 768)], [k], axis=1)
        case(f"DequantizeLinear_{n}", "DequantizeLinear", [In(128, 768, t=k), s(0.01), zero])
        case(f"DequantizeLinear_axis_{n}", "DequantizeLinear", [In(128, 768, t=k), scale(128), ints(t, 0, 9, 128)], axis=0)


def products():
    """Matrix products of quantized tensors."""
    for n, k, t, z in BYTES:
        zero = s(z, t)
        for w, of in (("u8", u8), ("i8", i8)):
            if (n, w) == ("i8", "u8"):
                continue
            for rows in (1, 128):
                for a, b in ((512, 512), (768, 3072)):
                    size = f"{rows}_{a}_{b}_{n}{w}"
                    wz = s(128 if w == "u8" else 0, np.uint8 if w == "u8" else np.int8)
                    case("QGemm_" + size, "QGemm", [In(rows, a, t=k), s(0.02), zero, of(b, a), s(0.01), wz, ints(np.int32, -999, 999, b), s(0.9), zero], [k], transB=1)
                    case("QGemm_float_" + size, "QGemm", [In(rows, a, t=k), s(0.02), zero, of(a, b), scale(b), np.full(b, wz)])
                    case("MatMulIntegerToFloat_" + size, "MatMulIntegerToFloat", [In(rows, a, t=k), of(a, b), s(0.02), scale(b), zero, np.full(b, wz), real(b)])
                    case("QLinearMatMul_" + size, "QLinearMatMul", [In(rows, a, t=k), s(0.02), zero, of(a, b), s(0.01), wz, s(0.9), zero], [k], domain="")
                    case("MatMulInteger_" + size, "MatMulInteger", [In(rows, a, t=k), of(a, b), zero, wz], [T.INT32], domain="")
                    if n == "u8":
                        case("DynamicQuantizeMatMul_" + size, "DynamicQuantizeMatMul", [In(rows, a), of(a, b), scale(b), np.full(b, wz), real(b)])
            case(f"MatMulIntegerToFloat_inputs_{n}{w}", "MatMulIntegerToFloat", [In(8, 128, 64, t=k), In(8, 64, 128, t=T.UINT8 if w == "u8" else T.INT8), s(0.02), s(0.03), zero, wz])
            case(f"QLinearMatMul_inputs_{n}{w}", "QLinearMatMul", [In(8, 128, 64, t=k), s(0.02), zero, In(8, 64, 128, t=T.UINT8 if w == "u8" else T.INT8), s(0.01), wz, s(0.9), zero], [k], domain="")
            for sq in (1, 128):
                past = 0 if sq > 1 else 128
                case(f"QAttention_{sq}_{n}{w}", "QAttention", [In(1, sq, 768, t=k), of(768, 2304), real(2304), s(0.01), s(0.005), None, zero, wz] + ([In(2, 1, 12, past, 64)] if past else []), 2 if past else 1, num_heads=12, unidirectional=int(past > 0))
    case("MatMulInteger16", "MatMulInteger16", [In(128, 512, t=T.INT16), ints(np.int16, -3000, 3000, 512, 512)], [T.INT32])
    case("DynamicQuantizeLinear", "DynamicQuantizeLinear", [In(128, 768)], [T.UINT8, T.FLOAT, T.UINT8], domain="", opset=17)
    case("DynamicQuantizeLinear_one", "DynamicQuantizeLinear", [In(1, 768)], [T.UINT8, T.FLOAT, T.UINT8], domain="", opset=17)
    case("ConvInteger", "ConvInteger", [In(1, 64, 28, 28, t=T.UINT8), i8(64, 64, 3, 3), s(128, np.uint8)], [T.INT32], pads=[1] * 4, domain="")
    case("ConvInteger_pixel", "ConvInteger", [In(1, 64, 28, 28, t=T.UINT8), i8(128, 64, 1, 1), s(128, np.uint8)], [T.INT32], domain="")
    case("ConvInteger_alone", "ConvInteger", [In(1, 64, 56, 56, t=T.UINT8), i8(64, 1, 3, 3), s(128, np.uint8)], [T.INT32], pads=[1] * 4, group=64, domain="")
    for d, n in ((1, "forward"), (2, "bidirectional")):
        for steps, batch in ((50, 1), (20, 8)):
            case(f"DynamicQuantizeLSTM_{n}_{batch}", "DynamicQuantizeLSTM", [In(steps, batch, 256), i8(d, 256, 1024), i8(d, 256, 1024), real(d, 2048), None, None, None, None,
                 f(d, lo=0.002, hi=0.003), np.zeros(d, np.int8), f(d, lo=0.002, hi=0.003), np.zeros(d, np.int8)], 3, hidden_size=256, direction=n)
    case("AttnLSTM", "AttnLSTM", [In(20, 1, 128), real(1, 1024, 256), real(1, 1024, 256), real(1, 2048), None, None, None, None, real(1, 256, 128), real(1, 128, 128), real(1, 128), In(1, 50, 128)], 3, hidden_size=256)


def attention():
    for sq in (128, 512):
        mask = ints(np.int32, 1, 1, 1, sq)
        mask[0, -7:] = 0
        for n, kw, more in (("", {}, []), ("_mask", {}, [mask]), ("_causal", dict(unidirectional=1), []), ("_bias", {}, [None, None, In(1, 12, sq, sq)])):
            case(f"Attention_{sq}{n}", "Attention", [In(1, sq, 768), real(768, 2304), real(2304)] + more, num_heads=12, **kw)
        for n, kw, more in (("", {}, []), ("_bias", {}, [real(2304)]), ("_mask", {}, [None, mask]), ("_causal", dict(unidirectional=1), []), ("_scores", {}, [None, None, In(1, 1, sq, sq)])):
            case(f"MultiHeadAttention_{sq}{n}", "MultiHeadAttention", [In(1, sq, 768) for _ in "qkv"] + more, num_heads=12, **kw)
    case("Attention_step", "Attention", [In(1, 1, 768), real(768, 2304), real(2304), None, In(2, 1, 12, 256, 64)], 2, num_heads=12, unidirectional=1)
    case("MultiHeadAttention_cross", "MultiHeadAttention", [In(1, 32, 768), In(1, 12, 256, 64), In(1, 12, 256, 64)], num_heads=12)
    case("MultiHeadAttention_step", "MultiHeadAttention", [In(1, 1, 768) for _ in "qkv"] + [None] * 3 + [In(1, 12, 256, 64) for _ in "kv"], 3, num_heads=12)
    case("MultiHeadAttention_small", "MultiHeadAttention", [In(4, 77, 512) for _ in "qkv"], num_heads=8)
    case("DecoderMaskedMultiHeadAttention", "DecoderMaskedMultiHeadAttention", [In(1, 1, 768) for _ in "qkv"] + [None, None] + [In(1, 12, 512, 64) for _ in "kv"] + [i32(300)], 3, num_heads=12, past_present_share_buffer=1)
    for name, t, k in HALF:
        for sq, past in ((128, 0), (512, 0), (1, 256), (1, 1024)):
            for turns in (0, 1):
                x = [In(1, sq, 1024, t=k)] + [In(1, sq, 256, t=k) for _ in "kv"] + ([In(1, 4, past, 64, t=k) for _ in "kv"] if past else [None, None])
                x += [i32(sq + past - 1), s(sq + past, np.int32)] + ([real(2048, 32, t=t) for _ in "cs"] if turns else [])
                case(f"GroupQueryAttention_{sq}_{past}{'_rotary' if turns else ''}{name}", "GroupQueryAttention", x, [k] * 3, num_heads=16, kv_num_heads=4, do_rotary=turns)
        case("GroupQueryAttention_window" + name, "GroupQueryAttention", [In(1, 256, 1024, t=k)] + [In(1, 256, 256, t=k) for _ in "kv"] + [None, None, i32(255), s(256, np.int32)], [k] * 3,
             num_heads=16, kv_num_heads=4, local_window_size=64)
        case("GroupQueryAttention_packed" + name, "GroupQueryAttention", [In(1, 128, 1536, t=k), None, None, None, None, i32(127), s(128, np.int32), real(2048, 32, t=t), real(2048, 32, t=t)], [k] * 3,
             num_heads=16, kv_num_heads=4, do_rotary=1)
        for sq in (1, 128):
            for lies in (0, 1):
                case(f"RotaryEmbedding_{sq}_{lies}{name}", "RotaryEmbedding", [In(1, sq, 1024, t=k), np.arange(sq)[None], real(2048, 32, t=t), real(2048, 32, t=t)], [k], interleaved=lies, num_heads=16, rotary_embedding_dim=0)
        case("RotaryEmbedding_heads" + name, "RotaryEmbedding", [In(1, 16, 128, 64, t=k), s([0], np.int64), real(2048, 32, t=t), real(2048, 32, t=t)], [k])
    for sq, past in ((1, 255), (64, 0)):
        x = [In(1, sq, 512)] + [In(1, sq, 256) for _ in "kv"] + [In(1, 4, 256, 64) for _ in "kv"]
        n, rows = 256 // 32, [[j for j in range(i + 1) if j == i or j % 2] for i in range(256 // 32)]
        case(f"SparseAttention_{sq}", "SparseAttention", x + [s([np.cumsum([0] + [len(r) for r in rows])], np.int32), s([sum(rows, [])], np.int32), i32(sq + past), i32(sq + past)], 3,
             num_heads=8, kv_num_heads=4, sparse_block_size=32)
    for rule, more in (("gated", 1), ("gated_delta", 2)):
        for sq in (1, 64):
            case(f"LinearAttention_{rule}_{sq}", "LinearAttention", [In(1, sq, 512) for _ in "qkv"] + [In(1, 8, 64, 64), real(1, sq, 8, lo=-1, hi=0)] + [real(1, sq, 8, lo=0)] * (more > 1), 2,
                 q_num_heads=8, kv_num_heads=8, update_rule=rule)
    case("CausalConvWithState", "CausalConvWithState", [In(1, 512, 128), real(512, 1, 4), real(512), In(1, 512, 3)], 2, activation="silu")
    case("MRotaryEmbedding", "MRotaryEmbedding", [In(1, 16, 128, 64), ints(np.int64, 0, 99, 3, 1, 128), real(2048, 32), real(2048, 32)], mrope_section=[16, 8, 8])


def weights():
    for name, t, k in HALF:
        for bits in (2, 4, 8):
            for rows in (1, 128):
                for level in (0, 4):
                    for z in ("", "_zero"):
                        if name and (bits == 2 or z):
                            continue
                        a, b, block = 1024, 1024, 32
                        case(f"MatMulNBits_{bits}_{rows}{'_level' if level else ''}{z}{name}", "MatMulNBits",
                             [In(rows, a, t=k), u8(b, a // block, block * bits // 8), real(b * a // block, t=t), u8(b * a // block * bits // 8) if z else None], [k], K=a, N=b, bits=bits, block_size=block, accuracy_level=level)
    for block in (16, 128):
        case(f"MatMulNBits_4_128_block_{block}", "MatMulNBits", [In(128, 1024), u8(1024, 1024 // block, block // 2), real(1024 * 1024 // block)], K=1024, N=1024, bits=4, block_size=block)
    for rows in (1, 128):
        case(f"MatMulNBits_4_{rows}_order", "MatMulNBits", [In(rows, 1024), u8(1024, 32, 16), real(1024 * 32), None, s(m.R.permutation(1024) // 32, np.int32)], K=1024, N=1024, bits=4, block_size=32)
        case(f"MatMulNBits_4_{rows}_real_zero", "MatMulNBits", [In(rows, 1024), u8(1024, 32, 16), real(1024 * 32), real(1024 * 32, lo=0, hi=15)], K=1024, N=1024, bits=4, block_size=32)
        case(f"MatMulNBits_4_{rows}_bias", "MatMulNBits", [In(rows, 1024), u8(1024, 32, 16), real(1024 * 32), None, None, real(1024)], K=1024, N=1024, bits=4, block_size=32)
        for kind in (0, 1):
            case(f"MatMulBnb4_{kind}_{rows}", "MatMulBnb4", [In(rows, 1024), u8(1024 * 512), real(1024 * 1024 // 64)], K=1024, N=1024, block_size=64, quant_type=kind)
        for bits in (4, 8):
            case(f"GatherBlockQuantized_{bits}_{rows}", "GatherBlockQuantized", [u8(30000, 768 * bits // 8), In(1, rows, t=T.INT64), real(30000, 24), u8(30000, 24 * bits // 8)], block_size=32, quantize_axis=1, bits=bits)
        for act, two in (("silu", 1), ("swiglu", 2)):
            more = dict(swiglu_fusion=1) if two > 1 else {}
            case(f"MoE_{act}_{rows}", "MoE", [In(rows, 256), real(rows, 8, lo=-1, hi=1), real(8, 512 * two, 256), real(8, 512 * two), real(8, 256, 512), real(8, 256)], activation_type=act, k=2, **more)
            for bits in (4, 8):
                case(f"QMoE_{act}_{bits}_{rows}", "QMoE", [In(rows, 256), real(rows, 8, lo=-1, hi=1), u8(8, 512 * two, 256 * bits // 8), scale(8, 512 * two), real(8, 512 * two), u8(8, 256, 512 * bits // 8), scale(8, 256), real(8, 256)],
                     activation_type=act, k=2, expert_weight_bits=bits, normalize_routing_weights=1, **more)
                case(f"QMoE_block_{act}_{bits}_{rows}", "QMoE", [In(rows, 256), real(rows, 8, lo=-1, hi=1), u8(8, 512 * two, 256 * bits // 8), scale(8, 512 * two, 8), real(8, 512 * two), u8(8, 256, 512 * bits // 8), scale(8, 256, 16), real(8, 256)],
                     activation_type=act, k=2, expert_weight_bits=bits, normalize_routing_weights=1, block_size=32, **more)


def tensors():
    case("NGramRepeatBlock", "NGramRepeatBlock", [ints(np.int64, 0, 50, 4, 200), In(4, 50000)], ngram_size=3)
    case("CDist", "CDist", [In(500, 64), In(500, 64)], metric="euclidean")
    case("CDist_square", "CDist", [In(500, 64), In(500, 64)], metric="sqeuclidean")
    case("CropAndResize", "CropAndResize", [In(1, 64, 56, 56), real(100, 4, lo=0, hi=1), np.zeros(100, np.int32), i32(7, 7)], mode="bilinear")
    case("CropAndResize_nearest", "CropAndResize", [In(1, 64, 56, 56), real(100, 4, lo=0, hi=1), np.zeros(100, np.int32), i32(7, 7)], mode="nearest")
    case("WordConvEmbedding", "WordConvEmbedding", [ints(np.int32, 1, 99, 50, 20), In(64, 1, 3, 16), real(64), real(100, 16)], embedding_size=64, conv_window_size=3, char_embedding_size=16)
    for mode in ("bilinear", "nearest", "bicubic"):
        case("GridSample_" + mode, "GridSample", [In(1, 64, 56, 56), real(1, 56, 56, 2, lo=-1, hi=1)], mode=mode)
    case("GatherND", "GatherND", [In(100, 100, 64), ints(np.int64, 0, 99, 1000, 2)])
    case("ExpandDims", "ExpandDims", [In(128, 768), s(1, np.int32)])
    case("Pad", "Pad", [In(1, 64, 56, 56), s([0, 0, 1, 1, 0, 0, 1, 1], np.int64)])
    case("Trilu", "Trilu", [In(8, 512, 512)])
    case("Inverse", "Inverse", [In(16, 32, 32)])
    case("Unique", "Unique", [In(10000)], [T.FLOAT, T.INT64, T.INT64])
    case("UnfoldTensor", "UnfoldTensor", [In(64, 1000)], dim=1, size=16, step=4)
    case("MurmurHash3", "MurmurHash3", [In(10000, t=T.INT64)], [T.INT32], positive=0)
    case("MurmurHash3_32", "MurmurHash3", [In(10000, t=T.INT32)], [T.INT32], positive=0)
    case("ConvTransposeWithDynamicPads", "ConvTransposeWithDynamicPads", [In(1, 64, 28, 28), real(64, 32, 4, 4), s([1, 1, 1, 1], np.int64)], strides=[2, 2])
    case("DynamicTimeWarping", "DynamicTimeWarping", [In(200, 300)], [T.INT32])
    case("MaxpoolWithMask", "MaxpoolWithMask", [In(1, 64, 56, 56), ints(np.int32, 1, 1, 1, 64, 56, 56)], kernel_shape=[3, 3], strides=[2, 2])
    case("BifurcationDetector", "BifurcationDetector", [ints(np.int64, 0, 9, 200), In(50, t=T.INT64), s([0], np.int64)], [T.INT64, T.INT64])
    text = np.array([" ".join("word%d, and more" % i for i in range(20))] * 50, object)
    for n, cut in (("separators", dict(separators=[" ", ","])), ("expression", dict(tokenexp="[a-z0-9]+"))):
        case("Tokenizer_" + n, "Tokenizer", [In(50, t=T.STRING)], [T.STRING], mark=1, mincharnum=1, pad_value="#", **cut)
        m.MODELS[-1][1].graph.node.insert(0, onnx.helper.make_node("Where", ["flag", "text", "text"], ["x0"]))
        graph = m.MODELS[-1][1].graph
        del graph.input[:]
        graph.input.append(onnx.helper.make_tensor_value_info("flag", T.BOOL, [50]))
        graph.initializer.append(onnx.numpy_helper.from_array(text, "text"))
    big = dict(decoder=decoder(vocab=1000, hidden=64, heads=4), pad_token_id=0, eos_token_id=1)
    case("GreedySearch", "GreedySearch", [In(1, 4, t=T.INT32), i32(16), i32(16)], [T.INT32], **big)
    case("BeamSearch", "BeamSearch", [In(1, 4, t=T.INT32), i32(16), i32(15), i32(4), i32(1), s([1.0]), s([1.0])], [T.INT32], **big)


FAMILIES = (fused, norms, linear, products, attention, weights, tensors)


def main():
    folder, parts = sys.argv[1], sys.argv[2:]
    del m.MODELS[:]
    for family in FAMILIES:
        family()
    os.makedirs(folder, exist_ok=True)
    for name, model in m.MODELS:
        if not parts or any(part in name for part in parts):
            onnx.save(model, os.path.join(folder, name + ".onnx"))


if __name__ == "__main__":
    main()
