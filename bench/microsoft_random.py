#!/usr/bin/env python3
"""Random models over the operators of com.microsoft, one node each:  microsoft_random.py DIR GROUP COUNT [SEED]
  microsoft_random.py --missing ONX [COUNT]   lists attributes, inputs and outputs that no group draws

Attributes, optional inputs, element types, ranks and sizes (including 0 and 1) are random; microsoft_agree.js computes the expected
results and microsoft_agree.py compares. Groups: fused norm quantized attention grouped weights tensor text."""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T

from microsoft_draw import *
import microsoft_random_decoders as decoders
import microsoft_random_packed as packed
import microsoft_random_states as states


# ---- fused ----
def gelus():
    d = shape()
    op = draw("Gelu", "FastGelu", "QuickGelu", "BiasGelu")
    t = draw(np.float32, np.float32, np.float16, np.float64)
    x = [f(*d, lo=-5, hi=5, t=t)]
    if op == "BiasGelu" or (op == "FastGelu" and chance()):
        x.append(f(d[-1], t=t))
    put(op, x, [code(t)], **(some(("alpha", float(R.uniform(0.5, 3)))) if op == "QuickGelu" else {}))


def fused_matmul():
    op = draw("FusedMatMul", "FusedMatMul", "TransposeMatMul")
    b = shape(0, 2)
    M, K, N_ = size(), size(), size()
    ta, tb = chance(), chance()
    t = draw(np.float32, np.float32, np.float64)
    attrs = dict(transA=int(ta), transB=int(tb), **some(("alpha", float(R.uniform(-2, 2)))))
    la, lb = list(b), list(broadcast(b))
    if op == "FusedMatMul" and b and chance(0.3):
        attrs.update(transBatchA=1)
        A = ([M] + b + [K]) if ta is False else None
        A = (b[:0] + [M] + la + [K]) if not ta else ([K] + la + [M])
        attrs.update(transBatchB=1) if chance() else None
        Bm = [K] + la + [N_] if not tb else [N_] + la + [K]
        if "transBatchB" not in attrs:
            Bm = la + ([N_, K] if tb else [K, N_])
    else:
        A = la + ([K, M] if ta else [M, K])
        Bm = lb + ([N_, K] if tb else [K, N_])
        if chance(0.1):
            A = [K]
    put(op, [f(*A, t=t), f(*Bm, t=t)], [code(t)], **attrs)


ACTIVATIONS = [("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", dict(activation_alpha=0.2)), ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4)),
               ("Clip", dict(activation_alpha=-0.3, activation_beta=0.4)), ("", {})]


def fused_gemm():
    M, K, N_ = size(), size(), size()
    ta, tb = chance(), chance()
    a, more = draw(*ACTIVATIONS)
    if not a:
        more = {}
    c = maybe(f(*draw([N_], [1, N_], [M, 1], [M, N_], [])))
    put("FusedGemm", [f(*([K, M] if ta else [M, K])), f(*([N_, K] if tb else [K, N_])), c], transA=int(ta), transB=int(tb),
        **(dict(activation=a) if a else {}), **more, **(dict(activation_gamma=1.5) if chance(0.05) else {}), **some(("alpha", float(R.uniform(-2, 2))), ("beta", float(R.uniform(-2, 2)))))


def window(rank, attrs, kernel):
    attrs.update(some(("strides", [int(draw(1, 2, 3)) for _ in range(rank)]), ("dilations", [int(draw(1, 2)) for _ in range(rank)])))
    if chance():
        attrs.update(pads=[int(R.integers(0, k)) for k in kernel + kernel])
    elif chance(0.3):
        attrs.update(auto_pad=draw("SAME_UPPER", "SAME_LOWER", "VALID"), dilations=[1] * rank)  # onnxruntime computes this padding without dilation
        if "strides" in attrs:
            attrs["strides"] = [min(x, k) for x, k in zip(attrs["strides"], kernel)]  # larger strides lead to negative padding there
    return attrs


def fused_conv():
    rank = draw(1, 2, 2, 3)
    g = draw(1, 1, 2, 3)
    ci, co = g * int(draw(1, 2, 3)), g * int(draw(1, 2, 4))
    k = [int(draw(1, 2, 3)) for _ in range(rank)]
    d = [int(draw(5, 6, 8)) for _ in range(rank)]
    a, p = draw(("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.1]), ("Clip", [-0.3, 0.4]), ("HardSigmoid", [0.2, 0.5]))
    attrs = window(rank, dict(activation=a, group=g, **(dict(activation_params=p) if p else {}), **some(("kernel_shape", k))), k)
    n, w, b = int(draw(1, 2)), f(co, ci // g, *k), maybe(f(co))
    if chance(0.15):  # channels last
        if chance():
            put("NhwcFusedConv", [f(n, *d, ci), w, b], **attrs)
        elif chance() and all(x % 2 for x in k):
            put("NhwcFusedConv", [f(n, *d, ci), w, f(co) if b is None else b, f(n, *d, co)], activation="Relu", group=g, pads=[x // 2 for x in k + k])
        else:
            put("NhwcConv", [f(n, *d, ci), w, b], **{k_: v for k_, v in attrs.items() if not k_.startswith("activation")})
    elif chance(0.3) and all(x % 2 for x in k):  # with the input that is added to the result
        attrs = dict(activation=a, group=g, pads=[x // 2 for x in k + k], **(dict(activation_params=p) if p else {}))
        put("FusedConv", [In(n, ci, *d), w, f(co) if b is None else b, f(n, co, *d)], **attrs)
    else:
        put("FusedConv", [In(n, ci, *d), w, b], **attrs)


def gemm_gelu():
    K, N_ = size(), size()
    put("GemmFastGelu", [f(*shape(1, 2), K), f(K, N_), maybe(f(N_))])


# ---- norms ----
def skip_norm():
    op = draw("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
    simple = "Simplified" in op
    b, sq, h = size(), size(), int(draw(1, 2, 4, 8, 16, 33))
    t = draw(np.float32, np.float32, np.float16, np.float64)
    x = [b, sq, h] if chance(0.7) else [sq, h]
    skip = draw(x, x, [1, sq, h] if len(x) == 3 else x, [sq, h])
    ins = [f(*x, t=t), f(*skip, t=t), f(h, t=t)] + ([] if simple else [maybe(f(h, t=t))]) + [maybe(f(h, t=t))]
    put(op, ins, draw([code(t)], [code(t), 0, 0, code(t)], *([[code(t), T.FLOAT, T.FLOAT]] if chance(0.1) and not simple else [])), **some(("epsilon", float(draw(1e-3, 1e-5, 0.1)))))


def embed():
    b, sq, h = size(), size(), int(draw(1, 4, 8))
    seg = chance()
    ins = [In(b, sq, t=T.INT32), In(b, sq, t=T.INT32) if seg else None, f(5, h), f(34, h), f(4, h) if seg else None, f(h), f(h),
           maybe(ints(np.int32, 0, 1, b, sq)), maybe(ints(np.int32, 0, 33, b, sq))]
    put("EmbedLayerNormalization", ins, draw([T.FLOAT, T.INT32], [T.FLOAT, T.INT32, T.FLOAT]), **some(("epsilon", 1e-3), ("mask_index_type", 0)))


def simplified():
    d = shape(2, 4)
    axis = int(R.integers(-len(d), len(d)))
    t = draw(np.float32, np.float32, np.float16, np.float64)
    put(draw("SimplifiedLayerNormalization", "LayerNormalization"), [f(*d, t=t), f(*d[axis:] if axis < 0 else d[axis:], t=t)], [code(t)], domain="", opset=16,
        axis=axis, **some(("epsilon", 1e-2)))


def bias_softmax():
    d = shape(2, 4)
    axis = int(R.integers(1, len(d)))
    put("BiasSoftmax", [f(*d), f(*d)], axis=axis, is_inner_broadcast=int(chance()))


def half():
    """Operators that take float16 only."""
    t, n, c = np.float16, int(draw(1, 2)), int(draw(2, 4, 8))
    pick = draw("biasadd", "split", "mul", "gemma")
    if pick == "biasadd":
        put("BiasAdd", [f(n, 3, c, t=t), f(c, t=t), f(n, 3, c, t=t)], [T.FLOAT16])
    elif pick == "split":
        put("BiasSplitGelu", [f(n, 3, c, t=t), f(c, t=t)], [T.FLOAT16])
    elif pick == "mul":
        put(draw("ComplexMul", "ComplexMulConj"), [f(n, 3, c, 2, t=t), f(*draw([n, 3, c, 2], [1, 3, c, 2]), t=t)], [T.FLOAT16])
    else:
        put("GemmaRotaryEmbedding", [f(n, 3, c)] + [f(n, 2, 3, c, t=t) for _ in range(4)], [T.FLOAT16, T.FLOAT16])


def gates():
    """Operators that onnxruntime's optimizer fuses for devices other than CPUs."""
    d, t = shape(2, 3), draw(np.float32, np.float16)
    pick = draw("add", "norm", "gate", "group", "skip", "dropout")
    n, c, hw, g = int(draw(1, 2)), int(draw(2, 4)), int(draw(1, 3)), int(draw(1, 2))
    if pick == "add":
        put("GatedAdd", [f(*d, t=t), f(*d, t=t), f(*(d[:-1] + [1]), t=t)], [code(t)])
    elif pick == "norm":
        put("GatedRMSNorm", [f(*d, t=t), f(d[-1], t=t), f(*d, t=t)], [code(t)], **some(("epsilon", 0.01)))
    elif pick == "gate":
        b = chance()
        put("LinearAttentionGate", [f(*d, t=t), f(d[-1]), f(d[-1]), f(*d, t=t) if b else None], [code(t)] * (1 + b))
    elif pick == "dropout":
        put("BiasDropout", [f(*d), f(d[-1]), maybe(f(*d)), maybe(s(0.5)), maybe(s(False, bool))], draw([T.FLOAT], [T.FLOAT, T.BOOL]), **some(("seed", 3)))
    else:
        last = chance()
        x = [n, hw, hw, c] if last else [n, c, hw, hw]
        attrs = dict(groups=g, activation=int(chance()), **some(("epsilon", 0.01)), **(dict(channels_last=1) if last else dict(channels_last=0)))
        if pick == "group":
            put("GroupNorm", [f(*x), f(c), f(c)], **attrs)
        else:
            put("SkipGroupNorm", [f(*x), f(c), f(c), f(*x), maybe(f(c))], draw(1, 2), **attrs)


# ---- quantized ----
def q_pair():
    t, c, i = byte()
    d = shape()
    e = broadcast(d)
    a, b = (d, e) if chance() else (e, d)
    put(draw("QLinearAdd", "QLinearMul"), [bytes_of(t, *a), scale(), maybe(zero(t), 0.8), bytes_of(t, *b), scale(), maybe(zero(t), 0.8), scale(), maybe(zero(t), 0.8)], [c])


def q_unary():
    t, c, i = byte()
    op = draw("QLinearSigmoid", "QLinearLeakyRelu")
    put(op, [bytes_of(t, *shape()), scale(), zero(t), scale(), zero(t)], [c], **(some(("alpha", 0.3)) if "Leaky" in op else {}))


def q_softmax():
    t, c, i = byte()
    d = [x + (x == 1) for x in shape(1, 4)]  # onnxruntime gives 0 for one element
    put("QLinearSoftmax", [bytes_of(t, *d), scale(), zero(t), s(1 / 256), s(i.min, t)], [c], opset=13, axis=int(R.integers(-len(d), len(d))))


def q_where():
    t, c, i = byte()
    d = shape()
    put("QLinearWhere", [In(*broadcast(d), t=T.BOOL), bytes_of(t, *d), scale(), zero(t), bytes_of(t, *broadcast(d)), scale(), zero(t), scale(), zero(t)], [c])


def q_pool():
    t, c, i = byte()
    last = chance()
    if chance(0.4):
        d = [int(draw(3, 5, 6)) for _ in range(draw(1, 2, 3))]
        n, ch = int(draw(1, 2)), int(draw(1, 2, 3, 17))
        put("QLinearGlobalAveragePool", [bytes_of(t, *([n] + d + [ch] if last else [n, ch] + d)), scale(), zero(t), scale(), zero(t)], [c], channels_last=int(last))
        return
    k = [int(draw(1, 2, 3)) for _ in range(draw(1, 2, 2, 3))]
    d = [int(draw(5, 6, 7)) for _ in k]
    n, ch = int(draw(1, 2)), int(draw(1, 2, 3, 17))
    x = bytes_of(t, *([n] + d + [ch] if last else [n, ch] + d))
    attrs = window(len(k), dict(kernel_shape=k, **some(("ceil_mode", 1))), k)
    if chance() and last:
        put("NhwcMaxPool", [x], [c], **attrs)
    else:
        attrs.pop("dilations", None)
        put("QLinearAveragePool", [x, scale(), maybe(zero(t), 0.8), scale(), maybe(zero(t), 0.8)], [c], channels_last=int(last), **attrs, **some(("count_include_pad", 1)))


def q_concat():
    t, c, i = byte()
    d = shape(1, 4)
    axis = int(R.integers(-len(d), len(d)))
    ins = [scale(), zero(t)]
    for _ in range(R.integers(1, 5)):
        e = list(d)
        e[axis] = size()
        ins += [bytes_of(t, *e), scale(), zero(t)]
    put("QLinearConcat", ins, [c], axis=axis)


def q_conv():
    t, c, i = byte()
    w = np.int8 if t == np.int8 else draw(np.int8, np.uint8)
    last, g = chance(), draw(1, 1, 2, 4)
    ci, co = g * int(draw(1, 2, 3)), g * int(draw(1, 2, 4))
    k = [int(draw(1, 2, 3)) for _ in range(draw(1, 2, 2, 3))]
    d = [int(draw(5, 6, 8)) for _ in k]
    n = int(draw(1, 2))
    per = chance()
    ws = f(co, lo=0.002, hi=0.02) if per else scale(0.002, 0.02)
    wz = (np.zeros(co, w) if w == np.int8 else ints(w, 100, 150, co)[:1].repeat(co)) if per else zero(w) if w == np.uint8 else s(0, w)
    put("QLinearConv", [bytes_of(t, *([n] + d + [ci] if last else [n, ci] + d)), s(0.02), zero(t), bytes_of(w, co, ci // g, *k), ws, wz, s(R.uniform(0.1, 0.6)), zero(t),
                        maybe(ints(np.int32, -99, 99, co))], [c], channels_last=int(last), **window(len(k), dict(group=g, **some(("kernel_shape", k))), k))


def q_mean():
    t, c, i = byte()
    d = shape(1, 4)
    put("QLinearReduceMean", [bytes_of(t, *d), scale(), maybe(zero(t)), scale(), maybe(zero(t))], [c], axes=[int(R.integers(-len(d), len(d)))], keepdims=int(chance()))


def q_integer():
    t, c, i = byte()
    d = shape()
    put("MulInteger", [bytes_of(t, *d), maybe(zero(t)), bytes_of(t, *broadcast(d)), maybe(zero(t))], [T.INT32])


def q_gemm():
    t, c, i = byte()
    w = draw(np.int8, np.uint8) if t == np.uint8 else np.int8
    M, K, N_ = size(), size(), size()
    ta, tb = chance(), chance()
    per = chance(0.3)
    ws = f(N_, lo=0.002, hi=0.02) if per else scale(0.002, 0.02)
    wz = bytes_of(w, N_) if per else zero(w)
    out = chance()
    put("QGemm", [bytes_of(t, *([K, M] if ta else [M, K])), scale(), zero(t), bytes_of(w, *([N_, K] if tb else [K, N_])), ws, wz,
                  maybe(ints(np.int32, -999, 999, *draw([N_], [1, N_], [M, N_], [M, 1]))), scale(0.1, 0.9) if out else None, zero(t) if out else None],
        [c if out else T.FLOAT], transA=int(ta), transB=int(tb), **some(("alpha", float(R.uniform(0.1, 2)))))


def q_matmul():
    t, c, i = byte()
    w = draw(np.int8, np.uint8) if t == np.uint8 else np.int8
    lead = shape(0, 2)
    M, K, N_ = size(), size(), size()
    per = chance(0.3)
    ws = f(N_, lo=0.002, hi=0.02) if per else scale(0.002, 0.02)
    wz = maybe(bytes_of(w, N_) if per else zero(w))
    if chance():
        put("DynamicQuantizeMatMul", [f(*lead, M, K), bytes_of(w, K, N_), ws, wz, maybe(f(N_))])
    else:
        put("MatMulIntegerToFloat", [bytes_of(t, *lead, M, K), bytes_of(w, K, N_), scale(), ws, maybe(zero(t)), wz, maybe(f(N_))])


def q_linear():
    t = draw(np.uint8, np.int8, np.uint16, np.int16)
    d = shape(1, 4)
    per = chance(0.3)
    axis = int(R.integers(-len(d), len(d)))
    sc = f(d[axis], lo=0.01, hi=0.1) if per else s(0.02)
    z = maybe(bytes_of(t, d[axis]) if per else zero(t)) if t in (np.uint8,) or chance(0.9) else None
    attrs = dict(axis=axis) if per else {}
    if chance():
        if z is None:
            t = np.uint8
        put("QuantizeLinear", [f(*d, lo=-3, hi=3), sc, z], [code(t)], **attrs)
    else:
        t = t if z is not None or chance() else np.int32
        put("DequantizeLinear", [ints(t, -99 if np.iinfo(t).min else 0, 99, *d), sc, z], **attrs)


def q_integer16():
    lead = shape(0, 2)
    M, K, N_ = size(), size(), size()
    put("MatMulInteger16", [ints(np.int16, -3000, 3000, *lead, M, K), ints(np.int16, -3000, 3000, *broadcast(lead), K, N_)], [T.INT32])


def q_lstm():
    bi = chance(0.4)
    n = 2 if bi else 1
    sq, b, x, h = int(draw(1, 2, 4)), int(draw(1, 2, 3)), int(draw(1, 3, 8)), int(draw(1, 2, 5))
    w = draw(np.int8, np.uint8)
    z = lambda *d: np.zeros(d, w) if w == np.int8 else np.full(d, 128, w)
    per = chance()
    ins = [f(sq, b, x), bytes_of(w, n, x, 4 * h), bytes_of(w, n, h, 4 * h), maybe(f(n, 8 * h)), maybe(ints(np.int32, 1, sq, b)), maybe(f(n, b, h)), maybe(f(n, b, h)), maybe(f(n, 3 * h))]
    ins += [f(*([n, 4 * h] if per else [n]), lo=0.002, hi=0.006), z(*([n, 4 * h] if per else [n])), f(*([n, 4 * h] if per else [n]), lo=0.002, hi=0.004), z(*([n, 4 * h] if per else [n]))]
    put("DynamicQuantizeLSTM", ins, draw(1, 3), hidden_size=h, direction="bidirectional" if bi else draw("forward", "reverse"), **some(("input_forget", 1), ("clip", 0.7)),
        **(states.activations(n) if chance(0.3) else {}))


def q_attention():
    b, sq, nh, hs, D = int(draw(1, 2)), int(draw(1, 2, 5)), int(draw(1, 2, 4)), int(draw(1, 4, 8)), int(draw(4, 8))
    t, c, i = byte()
    w = draw(np.int8, np.uint8) if t == np.uint8 else np.int8
    h = nh * hs
    past = int(draw(0, 0, 1, 3))
    per = chance(0.3)
    mask = draw(None, ints(np.int32, 0, 1, b, sq + past), ints(np.int32, 1, sq + past, b))
    put("QAttention", [bytes_of(t, b, sq, D), bytes_of(w, D, 3 * h), f(3 * h), s(0.01), f(3 * h, lo=0.002, hi=0.006) if per else s(0.004), mask, maybe(zero(t)),
                       maybe(bytes_of(w, 3 * h) if per else zero(w)), f(2, b, nh, past, hs) if past else None], 2 if past else draw(1, 2), num_heads=nh, **some(("unidirectional", 1), ("scale", 0.3), ("mask_filter_value", -50.0)), **(dict(past_present_share_buffer=1) if chance(0.1) else {}))


def q_embed():
    b, sq, h = int(draw(1, 2)), int(draw(1, 3)), int(draw(4, 8))
    t = np.uint8
    seg = chance()
    put("QEmbedLayerNormalization", [In(b, sq, t=T.INT32), In(b, sq, t=T.INT32) if seg else None, bytes_of(t, 5, h), bytes_of(t, 6, h), bytes_of(t, 4, h) if seg else None,
        bytes_of(t, h), bytes_of(t, h), maybe(ints(np.int32, 0, 1, b, sq)), scale(), scale(), scale() if seg else None, scale(), scale(), zero(t), zero(t), zero(t) if seg else None, zero(t), zero(t)],
        [T.FLOAT, T.INT32], **some(("epsilon", 1e-3)))


# ---- tensors, texts ----
def tensors():
    d = shape(1, 4)
    t = draw(np.float32, np.float64, np.int32, np.int64)
    x = f(*d, t=t) if t in (np.float32, np.float64) else ints(t, -9, 9, *d)
    pick = draw("expand", "gathernd", "pad", "range", "trilu", "unique", "cdist", "inverse", "unfold", "crop", "grid", "murmur", "convt", "dtw", "maxmask", "embedding", "same", "sparse")
    if pick == "expand":
        put("ExpandDims", [x, s(int(R.integers(-len(d) - 1, len(d) + 1)), np.int32)], [code(t)])
    elif pick == "gathernd":
        d = [int(draw(1, 2, 3)) for _ in d]
        last = int(R.integers(1, len(d) + 1))
        i = np.stack([ints(draw(np.int64), -d[j], d[j] - 1, *[3, 2][:draw(1, 2)]) if False else ints(np.int64, -d[j], d[j] - 1, 4) for j in range(last)], -1)
        put("GatherND", [f(*d), i.astype(draw(np.int32, np.int64))])
    elif pick == "pad":
        mode = draw("constant", "reflect", "edge")
        d = [int(draw(2, 3, 4)) for _ in d]
        p = [int(draw(0, 1, -1 if mode == "constant" else 1)) for _ in d + d]
        put("Pad", [f(*d), s(p, np.int64) if chance() else s([p], np.int64), maybe(draw(s(0.5), s([0.5]))) if mode == "constant" else None], mode=mode)
    elif pick == "range":
        a, b, c = (draw(s, lambda v, q: s([v], q))(v, t) for v in (int(draw(0, 3, -2)), int(draw(5, 9, -4)), int(draw(1, 2, -1))))
        put("Range", [a, b, maybe(c)], [code(t)])
    elif pick == "trilu":
        d = shape(2, 4)
        x = f(*d, t=t) if t in (np.float32, np.float64) else ints(t, -9, 9, *d)
        put("Trilu", [x, maybe(s(int(draw(-2, 0, 1, 5)), np.int64))], [code(t)], **some(("upper", int(draw(0, 1)))))
    elif pick == "unique":
        put("Unique", [ints(np.int64, 0, 3, int(draw(1, 5, 9))).astype(np.float32)], [T.FLOAT, T.INT64, T.INT64])
    elif pick == "cdist":
        t, k = draw(np.float32, np.float64), int(draw(1, 3, 8))
        put("CDist", [f(int(draw(1, 3, 5)), k, t=t), f(int(draw(1, 2, 5)), k, t=t)], [code(t)], **some(("metric", draw("euclidean", "sqeuclidean"))))
    elif pick == "inverse":
        n, t = int(draw(1, 2, 3, 5)), draw(np.float32, np.float64, np.float16)
        put("Inverse", [(f(*shape(0, 2), n, n) + 3 * np.eye(n)).astype(t)], [code(t)])
    elif pick == "unfold":
        d = [int(draw(3, 4, 6)) for _ in d]
        x = f(*d, t=t) if t in (np.float32, np.float64) else ints(t, -9, 9, *d)
        put("UnfoldTensor", [x], [code(t)], size=int(draw(1, 2, 3)), **some(("dim", int(R.integers(-len(d), len(d)))), ("step", int(draw(1, 2)))))
    elif pick == "crop":
        n = int(draw(1, 2, 3))
        put("CropAndResize", [In(2, 3, 6, 5), f(n, 4, lo=-0.2, hi=1.2), ints(np.int32, 0, 1, n), ints(np.int32, 1, 5, 2)], **some(("mode", draw("bilinear", "nearest")), ("extrapolation_value", 2.0)))
    elif pick == "grid":
        put("GridSample", [In(1, 2, int(draw(1, 4)), int(draw(1, 5))), f(1, int(draw(1, 3)), int(draw(1, 3)), 2, lo=-1.6, hi=1.6)],
            **some(("mode", draw("bilinear", "nearest", "bicubic")), ("padding_mode", draw("zeros", "border", "reflection")), ("align_corners", 1)))
    elif pick == "murmur":
        x = draw(ints(np.int32, -99, 99, *d), ints(np.int64, -99, 99, *d), ints(np.uint32, 0, 99, *d), f(*d), f(*d, t=np.float64))
        pos = chance()
        put("MurmurHash3", [x], [T.UINT32 if pos else T.INT32], positive=int(pos), **some(("seed", int(draw(0, 3, 77)))))
    elif pick == "convt":
        g = int(draw(1, 1, 2))
        ci, co, k = g * int(draw(1, 2)), int(draw(1, 3)), int(draw(1, 2, 3))
        more = dict(strides=[2, 2], **some(("output_padding", [int(draw(0, 1)), 1]))) if chance() else {}
        more.update(some(("group", g)) if g == 1 else dict(group=g), **some(("kernel_shape", [k, k]), ("dilations", [int(draw(1, 2)), 1])), **(dict(auto_pad=draw("NOTSET", "VALID")) if chance(0.2) else {}))
        put("ConvTransposeWithDynamicPads", [In(1, ci, 4, 4), f(ci, co, k, k), ints(np.int64, 0, k - 1, 4), maybe(f(co * g))], **more)
    elif pick == "embedding":
        put("TorchEmbedding", [f(5, 3), ints(np.int64, 0, 4, *d), maybe(s(1, np.int64), 0.3), maybe(s(False, bool), 0.3)])
    elif pick == "same":
        put("SampleOp", [f(*d)])
    elif pick == "sparse":
        M, K, N_, ta, tb = size(), size(), size(), int(chance()), int(chance())
        a = f(*([K, M] if ta else [M, K]))
        a[R.random(a.shape) < 0.6] = 0
        put("SparseToDenseMatMul", [a, f(*([N_, K] if tb else [K, N_]))], **some(("alpha", float(draw(0.5, 2)))), transA=ta, transB=tb)
    elif pick == "dtw":
        put("DynamicTimeWarping", [f(*draw([], [1]), int(draw(1, 3, 5)), int(draw(1, 4, 6)), lo=0)], [T.INT32])
    else:
        put("MaxpoolWithMask", [In(1, 1, 6, 6), ints(np.int32, 0, 3, 1, 1, 6, 6)], kernel_shape=[3, int(draw(2, 3))], **some(("strides", [2, 2])),
            **draw({}, dict(pads=[int(draw(0, 1)) for _ in range(4)]), dict(auto_pad=draw("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))), **some(("storage_order", 0)))


WORDS = ["Hello", "World", "a", "", "naïve", "日本", "x1", "I'm"]


def texts():
    n = int(draw(1, 2, 3))
    x = np.array([" ".join(draw(*WORDS) for _ in range(R.integers(0, 5))) for _ in range(n)], object)
    pick = draw("tokenizer", "tokenizer", "ngram", "wordconv", "bifurcation", "murmur")
    if pick == "tokenizer" and chance():
        words = np.array([" ".join(draw("ab1", "x22", "aab,", "zz", "z\u00e9", "abab", "\u65e51", "") for _ in range(R.integers(0, 5))) for _ in range(n)], object)
        cut = dict(tokenexp=draw("[a-z]+", "a|ab", "a*", "b*|1", "\u00e9", "ab|bab", "[^ ]+", "(a|b)+", "[0-9]{2}", "\\\\w+", ".", "a.?b", "[[:alpha:]]+")) if chance() else \
            dict(separators=draw(["[ ,]+", "b"], ["1|2"], ["a*"], ["(a|aa)", " "], ["b+", "a"], [" ", "", "1"], ["[^a-z]"], [".b"]))
        put("Tokenizer", [words if chance() else words.reshape(1, n)], [T.STRING], mark=int(draw(0, 1)), mincharnum=int(draw(1, 1, 2, 3)), pad_value="#", **cut)
    elif pick == "tokenizer":
        put("Tokenizer", [x if chance() else x.reshape(1, n)], [T.STRING], mark=int(draw(0, 1)), mincharnum=int(draw(1, 2)), pad_value="#",
            separators=draw([" "], [" ", "o"], [""], ["o", " "], ["l", "r"]))
    elif pick == "ngram":
        put("NGramRepeatBlock", [ints(np.int64, 0, 2, 2, int(draw(1, 4, 9))), In(2, 4)], ngram_size=int(draw(1, 2, 3)))
    elif pick == "wordconv":
        k, ce, e = int(draw(1, 2, 3)), int(draw(1, 2, 3)), int(draw(1, 5))
        put("WordConvEmbedding", [ints(np.int32, 1, 5, 2, 4), f(e, 1, k, ce), f(e), f(6, ce)], **some(("embedding_size", e), ("conv_window_size", k), ("char_embedding_size", ce)))
    elif pick == "bifurcation":
        put("BifurcationDetector", [ints(np.int64, 0, 5, int(draw(3, 6, 9))), ints(np.int64, 0, 5, int(draw(1, 3))), s([0], np.int64), maybe(ints(np.int64, 0, 5, 4))], [T.INT64, T.INT64],
            **some(("min_ngram_size", 1), ("max_ngram_size", int(draw(2, 3)))))
    else:
        put("MurmurHash3", [x], [T.UINT32], **some(("seed", 5)))


# Parts that onnxruntime refuses on CPUs or does not read from a node, and parts with other results there (docs/notes/microsoft.md).
LEFT_OUT = {
    ("GreedySearch", "encoder"): "takes decoder-only models",
    ("Sampling", "encoder"): "takes decoder-only models",
    ("WhisperBeamSearch", "init_decoder"): "has an encoder, which computes the first scores",
    ("Sampling", "filtered_logits"): "onnxruntime aborts the process",
    ("Attention", "past_present_share_buffer"): "onnxruntime aborts the process",
    ("Attention", "past_sequence_length"): "onnxruntime aborts the process",
    ("QAttention", "do_rotary"): "onnxruntime ignores it",
    ("MoE", "use_sparse_mixer"): "onnxruntime ignores it",
    ("QMoE", "use_sparse_mixer"): "onnxruntime ignores it",
    ("SkipSimplifiedLayerNormalization", "mean"): "onnxruntime does not write it",
    ("SkipSimplifiedLayerNormalization", "inv_std_var"): "onnxruntime does not write it",
    ("MultiHeadAttention", "past_sequence_length"): "onnxruntime attends to positions of the buffer that are not filled yet",
    ("MultiHeadAttention", "cache_indirection"): "onnxruntime attends to positions of the buffer that are not filled yet",
    ("GroupQueryAttention", "q_norm_epsilon"): "onnxruntime does not normalize on CPUs",
    ("GroupQueryAttention", "k_norm_epsilon"): "onnxruntime does not normalize on CPUs",
    ("CausalConvWithState", "input_channel_offset"): "for accelerators only",
    ("CausalConvWithState", "input_channels"): "for accelerators only",
    ("CausalConvWithState", "state_channels_last"): "for accelerators only",
    ("CausalConvWithState", "state_length"): "for accelerators only",
    ("CausalConvWithState", "state_update"): "for accelerators only",
    ("CausalConvWithState", "state_update_capacity"): "for accelerators only",
    ("GatedAdd", "gate_weight"): "for accelerators only",
    ("MRotaryEmbedding", "is_packed_batching"): "onnxruntime ignores it",
    ("MRotaryEmbedding", "scale"): "onnxruntime ignores it",
    ("MoE", "swiglu_limit_after_activation"): "for accelerators only",
    ("QMoE", "swiglu_limit_after_activation"): "for accelerators only",
    ("QMoE", "fc1_expert_weight_bits"): "newer than the onnxruntime that computes the results",
    ("QMoE", "fc2_expert_weight_bits"): "newer than the onnxruntime that computes the results",
    ("QMoE", "fc3_expert_weight_bits"): "newer than the onnxruntime that computes the results",
    **{("QMoE", name): "for accelerators only" for name in ("fc1_global_scale", "fc2_global_scale", "fc1_act_scale", "fc2_act_scale", "fc1_act_block_scale",
                                                            "fc2_act_block_scale")},
    ("VarlenCausalConvWithState", "delta_offset"): "for accelerators only",
    ("VarlenCausalConvWithState", "group_size"): "for accelerators only",
    ("VarlenCausalConvWithState", "kernel_delta"): "for accelerators only",
    ("VarlenCausalConvWithState", "previous_mask"): "for accelerators only",
    ("QMoE", "accuracy_level"): "newer than the onnxruntime that computes the results",
}


# Operators that onnxruntime has for accelerators only; microsoft_reference.py has references of some.
NOT_ON_CPUS = """BitmaskBiasDropout BitmaskDropout ConvStateReplay DecoderAttention DecoderMaskedSelfAttention DequantizeBFP DequantizeWithOrder
    DynamicSparseAttention EPContext FusedMatMulActivation GatedDeltaNetStateReplay GatedRelativePositionBias GemmFloat8 HyperConnectionLowRankMix Irfft IsAllFinite
    LongformerAttention Mamba2Verify MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulNBitsMlp MatMulNBitsQLoRA MatMulNBitsQkv MatMulPacked
    MoEPacked PackedAttention PackedMultiHeadAttention PackedSparseAttentionIndexer PackedSparseAttentionIndexerMerge PagedAttention QOrderedAttention
    QOrderedGelu QOrderedLayerNormalization QOrderedLongformerAttention QOrderedMatMul QuantizeBFP QuantizeWithOrder RMSNormRotary ReduceSumInteger
    RelativePositionBias RemovePadding RestorePadding Rfft RouterGateUpProj Snpe SparseAttentionIndexer SparsePagedAttention SpeculativePrefixCommit SwiGLU""".split()


GROUPS = {
    "fused": group(gelus, fused_matmul, fused_gemm, fused_conv, gemm_gelu),
    "norm": group(skip_norm, embed, simplified, bias_softmax),
    "other": group(half, gates),
    "lstm": group(q_lstm, states.attending),
    "quantized": group(q_pair, q_unary, q_softmax, q_where, q_pool, q_concat, q_conv, q_mean, q_integer, q_gemm, q_matmul, q_linear, q_integer16, q_lstm, q_attention, q_embed),
    "attention": group(decoders.attention, decoders.mha, decoders.decoder, decoders.rotary),
    "grouped": group(decoders.grouped),
    "kept": group(states.kept, states.kept, states.sparse),
    "weights": group(decoders.nbits, decoders.nbits, decoders.bnb4, decoders.gatherq, decoders.gather_floats, decoders.moe, decoders.qmoe, decoders.fpq4),
    "state": group(states.linear, states.causal, states.mrope, states.engram, states.hashes),
    "packed": group(packed.silu, packed.branchwise, packed.premix, packed.postmix, packed.router, packed.conv, packed.delta, packed.delta, packed.hashes, packed.norms, packed.gather_packed, states.padded),
    "search": group(states.searched, states.encoded),
    "tensor": group(tensors),
    "text": group(texts),
}


def parts(rows):
    """Attributes, inputs and outputs of operators: (operator, kind, name or index), and the name."""
    for row in rows:
        if row["name"] in NOT_ON_CPUS:
            continue
        for kind, names in (("attribute", row["attributes"]), ("input", row["inputs"]), ("output", row["outputs"])):
            for i, x in enumerate(names):
                yield (row["name"], kind, x["name"] if kind == "attribute" else i), x["name"]


def missing(onx, count):
    """Prints the attributes, inputs and outputs in onx's table of operators that no group draws."""
    rows = json.loads(subprocess.run([onx, "ops", "--domain", "com.microsoft", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    drawn = set()
    for make in GROUPS.values():
        del m.MODELS[:]
        make(count)
        for node in (n for _, model in m.MODELS for n in model.graph.node):
            drawn.update((node.op_type, "attribute", a.name) for a in node.attribute)
            drawn.update((node.op_type, kind, i) for kind, names in (("input", node.input), ("output", node.output)) for i, x in enumerate(names) if x)
    lacks = ["%s: %s %s" % (key[0], key[1], name) for key, name in parts(rows) if key not in drawn and (key[0], name) not in LEFT_OUT]
    known = {(key[0], name) for key, name in parts(rows)}
    lacks += ["%s: %s is in LEFT_OUT, but the operator does not have it" % key for key in LEFT_OUT if key not in known]
    print("\n".join(lacks) or "all attributes, inputs and outputs of %d operators are drawn" % len(rows))
    return 1 if lacks else 0


if __name__ == "__main__":
    if sys.argv[1] == "--missing":
        sys.exit(missing(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 600))
    if len(sys.argv) > 4:
        seed(int(sys.argv[4]))
    del m.MODELS[:]
    GROUPS[sys.argv[2]](int(sys.argv[3]))
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, model in m.MODELS:
        onnx.save(model, os.path.join(sys.argv[1], name + ".onnx"))
