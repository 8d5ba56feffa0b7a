#!/usr/bin/env python3
"""Random models over the operators of com.microsoft, one node each:  microsoft_random.py DIR GROUP COUNT [SEED]

Attributes, optional inputs, element types, ranks and sizes (0 and 1 too) are drawn; microsoft_agree.js answers them and
microsoft_agree.py compares. Groups: fused norm quantized attention grouped weights tensor text."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T

import microsoft as m
from microsoft import In, case, s

R = np.random.default_rng(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
SIZES = [1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]


def draw(*of):
    return of[R.integers(len(of))]


def chance(p=0.5):
    return bool(R.random() < p)


def size():
    return 0 if chance(0.02) else int(draw(*SIZES))


def some(*of):  # of attributes, about half
    return {k: v for k, v in of if chance()}


def f(*shape, lo=-1.0, hi=1.0, t=np.float32):
    return R.uniform(lo, hi, shape).astype(t)


def ints(t, lo, hi, *shape):
    return R.integers(lo, hi, shape, endpoint=True).astype(t)


def code(a):
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(a)) if hasattr(onnx.helper, "np_dtype_to_tensor_dtype") else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(a)]


def byte():
    t = draw(np.uint8, np.int8)
    return t, code(t), np.iinfo(t)


def bytes_of(t, *shape):
    i = np.iinfo(t)
    return ints(t, i.min, i.max, *shape)


def scale(lo=0.002, hi=0.1):
    return s(R.uniform(lo, hi)) if chance(0.8) else s([R.uniform(lo, hi)])


def zero(t, like=None):
    i = np.iinfo(t)
    return s(int(R.integers(i.min, i.max, endpoint=True)), t)


def shape(least=1, most=4):
    return [size() for _ in range(R.integers(least, most, endpoint=True))]


def broadcast(d):  # a shape that broadcasts to d
    d = [1 if chance(0.2) else x for x in d]
    return d[R.integers(len(d), endpoint=True):] if chance(0.3) else d


N = [0]


def put(op, inputs, outputs=1, **attrs):
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    N[0] += 1
    case("%s_%d" % (op.lower(), N[0]), op, inputs, outputs, **attrs)


def maybe(x, p=0.5):
    return x if chance(p) else None


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


ACTIVATIONS = [("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", dict(activation_alpha=0.2)), ("", {})]


def fused_gemm():
    M, K, N_ = size(), size(), size()
    ta, tb = chance(), chance()
    a, more = draw(*ACTIVATIONS)
    if not a:
        more = {}
    c = maybe(f(*draw([N_], [1, N_], [M, 1], [M, N_], [])))
    put("FusedGemm", [f(*([K, M] if ta else [M, K])), f(*([N_, K] if tb else [K, N_])), c], transA=int(ta), transB=int(tb),
        **(dict(activation=a) if a else {}), **more, **some(("alpha", float(R.uniform(-2, 2))), ("beta", float(R.uniform(-2, 2)))))


def window(rank, attrs, kernel):
    attrs.update(some(("strides", [int(draw(1, 2, 3)) for _ in range(rank)]), ("dilations", [int(draw(1, 2)) for _ in range(rank)])))
    if chance():
        attrs.update(pads=[int(R.integers(0, k)) for k in kernel + kernel])
    elif chance(0.3):
        attrs.update(auto_pad=draw("SAME_UPPER", "SAME_LOWER", "VALID"))
    return attrs


def fused_conv():
    rank = draw(1, 2, 2, 3)
    g = draw(1, 1, 2, 3)
    ci, co = g * int(draw(1, 2, 3)), g * int(draw(1, 2, 4))
    k = [int(draw(1, 2, 3)) for _ in range(rank)]
    d = [int(draw(5, 6, 8)) for _ in range(rank)]
    a, p = draw(("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.1]), ("Clip", [-0.3, 0.4]), ("HardSigmoid", [0.2, 0.5]))
    attrs = window(rank, dict(activation=a, group=g, **(dict(activation_params=p) if p else {})), k)
    put("FusedConv", [In(int(draw(1, 2)), ci, *d), f(co, ci // g, *k), maybe(f(co))], **attrs)


def group(*makers):
    def run(count):
        while len(m.MODELS) < count:
            draw(*makers)()
    return run


# ---- norms ----
def skip_norm():
    op = draw("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
    simple = "Simplified" in op
    b, sq, h = size(), size(), int(draw(1, 2, 4, 8, 16, 33))
    t = draw(np.float32, np.float32, np.float16, np.float64)
    x = [b, sq, h] if chance(0.7) else [sq, h]
    skip = draw(x, x, [1, sq, h] if len(x) == 3 else x, [sq, h])
    ins = [f(*x, t=t), f(*skip, t=t), f(h, t=t)] + ([] if simple else [maybe(f(h, t=t))]) + [maybe(f(h, t=t))]
    put(op, ins, draw([code(t)], [code(t), 0, 0, code(t)]), **some(("epsilon", float(draw(1e-3, 1e-5, 0.1)))))


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
    put(op, [bytes_of(t, *shape()), scale(), maybe(zero(t), 0.8), scale(), maybe(zero(t), 0.8)], [c], **(some(("alpha", 0.3)) if "Leaky" in op else {}))


def q_softmax():
    t, c, i = byte()
    d = shape(1, 4)
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
                        maybe(ints(np.int32, -99, 99, co))], [c], channels_last=int(last), **window(len(k), dict(group=g), k))


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
    put("DynamicQuantizeLSTM", ins, draw(1, 3), hidden_size=h, direction="bidirectional" if bi else draw("forward", "reverse"), **some(("input_forget", 1), ("clip", 0.7)))


def q_attention():
    b, sq, nh, hs, D = int(draw(1, 2)), int(draw(1, 2, 5)), int(draw(1, 2, 4)), int(draw(1, 4, 8)), int(draw(4, 8))
    t, c, i = byte()
    w = draw(np.int8, np.uint8) if t == np.uint8 else np.int8
    h = nh * hs
    past = int(draw(0, 0, 1, 3))
    per = chance(0.3)
    mask = draw(None, ints(np.int32, 0, 1, b, sq + past), ints(np.int32, 1, sq + past, b))
    put("QAttention", [bytes_of(t, b, sq, D), bytes_of(w, D, 3 * h), f(3 * h), s(0.01), f(3 * h, lo=0.002, hi=0.006) if per else s(0.004), mask, maybe(zero(t)),
                       maybe(bytes_of(w, 3 * h) if per else zero(w)), f(2, b, nh, past, hs) if past else None], 2 if past else draw(1, 2), num_heads=nh, **some(("unidirectional", 1), ("scale", 0.3)))


def q_embed():
    b, sq, h = int(draw(1, 2)), int(draw(1, 3)), int(draw(4, 8))
    t = np.uint8
    seg = chance()
    put("QEmbedLayerNormalization", [In(b, sq, t=T.INT32), In(b, sq, t=T.INT32) if seg else None, bytes_of(t, 5, h), bytes_of(t, 6, h), bytes_of(t, 4, h) if seg else None,
        bytes_of(t, h), bytes_of(t, h), maybe(ints(np.int32, 0, 1, b, sq)), scale(), scale(), scale() if seg else None, scale(), scale(), zero(t), zero(t), zero(t) if seg else None, zero(t), zero(t)],
        [T.FLOAT, T.INT32], **some(("epsilon", 1e-3)))


# ---- attention ----
def attention():
    b, sq, nh, hs, D = int(draw(1, 2, 3)), int(draw(1, 2, 5)), int(draw(1, 2, 4)), int(draw(1, 4, 8)), int(draw(4, 8))
    h = nh * hs
    past = int(draw(0, 0, 1, 3))
    vs = nh * int(draw(1, 3, hs)) if not past and chance(0.3) else h
    total = sq + past
    mask = draw(None, None, ints(np.int32, 0, 1, b, total), ints(np.int32, 0, 1, b, sq, total), ints(np.int32, 1, total, b),
                np.concatenate([ints(np.int32, 1, total, b), np.zeros(b, np.int32)]))
    bias = maybe(f(draw(1, b), draw(1, nh), sq, total), 0.3)
    put("Attention", [In(b, sq, D), f(D, 2 * h + vs), maybe(f(2 * h + vs), 0.8), mask, f(2, b, nh, past, hs) if past else None, bias],
        2 if past else draw(1, 2) if vs == h else 1, num_heads=nh, **some(("unidirectional", 1), ("scale", 0.3), ("mask_filter_value", -50.0)), **(dict(qkv_hidden_sizes=[h, h, vs]) if vs != h else {}))


def mha():
    b, sq, nh, hs = int(draw(1, 2, 3)), int(draw(1, 2, 5)), int(draw(1, 2, 4)), int(draw(1, 4, 8))
    h = nh * hs
    past = int(draw(0, 0, 0, 1, 3))
    form = draw("apart", "apart", "kv", "heads", "one")
    kv = sq if past or chance() else int(draw(1, 3, 6))
    total = kv + past
    vs = nh * int(draw(1, 3)) if form == "apart" and not past and chance(0.2) else h
    q = In(b, sq, h)
    if form == "apart":
        k, v = f(b, kv, h), f(b, kv, vs)
    elif form == "kv":
        k, v, past, total = f(b, kv, nh, 2, hs), None, 0, kv
    elif form == "heads":
        k, v, past, total = f(b, nh, kv, hs), f(b, nh, kv, hs), 0, kv
    else:
        q, k, v, past, total, kv = In(b, sq, nh, 3, hs), None, None, 0, sq, sq
    mask = draw(None, None, ints(np.int32, 0, 1, b, total), ints(np.int32, 1, total, b), ints(np.int32, 0, 1, b, sq, total))
    pk = [f(b, nh, past, hs), f(b, nh, past, hs)] if past else [None, None]
    put("MultiHeadAttention", [q, k, v, maybe(f(2 * h + vs), 0.4), mask, maybe(f(draw(1, b), draw(1, nh), sq, total), 0.4)] + pk,
        3 if past else draw(1, 1, 3), num_heads=nh, **some(("scale", 0.4), ("unidirectional", int(chance())), ("mask_filter_value", -30.0)))


def decoder():
    b, nh, hs = int(draw(1, 2)), int(draw(1, 2, 4)), int(draw(1, 4, 8))
    h, past = nh * hs, int(draw(1, 3, 5))
    if chance(0.25):
        kv = int(draw(1, 4))
        put("DecoderMaskedMultiHeadAttention", [In(b, 1, h), f(b, nh, kv, hs), f(b, nh, kv, hs), maybe(ints(np.int32, 0, 1, b, kv)), maybe(f(draw(1, b), nh, 1, kv), 0.3)], num_heads=nh, **some(("scale", 0.4)))
        return
    share = chance()
    room = past + int(draw(1, 3)) if share else past
    put("DecoderMaskedMultiHeadAttention", [In(b, 1, h), f(b, 1, h), f(b, 1, h), maybe(ints(np.int32, 0, 1, b, past + 1)), maybe(f(1, nh, 1, past + 1), 0.3), f(b, nh, room, hs), f(b, nh, room, hs),
        s([past], np.int32) if share else None, None, None, maybe(f(3 * h), 0.4)], 3, num_heads=nh, past_present_share_buffer=int(share), **some(("scale", 0.4), ("mask_filter_value", -50.0)))


def grouped():
    t = draw(np.float32, np.float32, np.float16)
    b, kvh = int(draw(1, 1, 2, 3)), int(draw(1, 2, 3))
    nh, hs = kvh * int(draw(1, 2, 4)), int(draw(8, 16, 32))
    first = chance()
    sq = int(draw(1, 2, 5, 9)) if first or chance(0.3) else 1
    past = 0 if first else int(draw(1, 4, 9))
    packed = chance(0.3)
    rotary = chance()
    room = past + int(draw(0, 0, 3)) if past else 0
    if b > 1 and sq > 1 and not first:
        b = 1
    total = past + sq
    lens = ints(np.int32, 1, total, b) if first else (np.full(b, total, np.int32) if sq > 1 else ints(np.int32, sq, total, b))
    lens[int(R.integers(b))] = total
    q = f(b, sq, (nh + 2 * kvh) * hs if packed else nh * hs, t=t)
    kv = [None, None] if packed else [f(b, sq, kvh * hs, t=t), f(b, sq, kvh * hs, t=t)]
    pk = [f(b, kvh, room, hs, t=t), f(b, kvh, room, hs, t=t)] if past else draw([None, None], [f(b, kvh, 0, hs, t=t), f(b, kvh, 0, hs, t=t)])
    rot = hs if hs % 16 else int(draw(hs, hs // 2 if hs >= 32 else hs))
    cache = [f(32, rot // 2, t=t), f(32, rot // 2, t=t)] if rotary else [None, None]
    pos = maybe(np.tile(np.arange(past, past + sq), (b, 1)).astype(np.int64), 0.2) if rotary else None
    bias = maybe(f(draw(1, b), draw(1, nh), sq, total, t=t), 0.2)
    sink = maybe(f(nh, t=t), 0.15)
    put("GroupQueryAttention", [q] + kv + pk + [lens - 1, s(total, np.int32)] + cache + [pos, bias, sink],
        [code(t)] * 3, num_heads=nh, kv_num_heads=kvh, do_rotary=int(rotary), **some(("scale", 0.3), ("rotary_interleaved", int(chance()))),
        **draw({}, {}, {}, dict(softcap=0.7), dict(smooth_softmax=1), *([dict(local_window_size=int(draw(1, 2, 3, 7)))] if (lens == total).all() else [])))


def rotary():
    t = draw(np.float32, np.float32, np.float16)
    b, sq, nh, hs = int(draw(1, 2)), int(draw(1, 3, 7)), int(draw(1, 2, 4)), int(draw(4, 8, 16))
    rot = int(draw(hs, hs // 2))
    d = [b, sq, nh * hs] if chance() else [b, nh, sq, hs]
    attrs = dict(num_heads=nh, rotary_embedding_dim=rot) if rot != hs else draw({}, dict(num_heads=nh))
    put("RotaryEmbedding", [f(*d, t=t), draw(s([int(draw(0, 2))], np.int64), ints(np.int64, 0, 11, b, sq)), f(12, (rot if attrs.get("rotary_embedding_dim") else hs) // 2, t=t),
        f(12, (rot if attrs.get("rotary_embedding_dim") else hs) // 2, t=t)], [code(t)], **attrs, **some(("interleaved", 1)))


# ---- weights ----
def nbits():
    t = draw(np.float32, np.float32, np.float16)
    bits, block = int(draw(2, 4, 4, 8)), int(draw(16, 32, 64, 128))
    K, N_ = int(draw(1, 8, 16, 31, 32, 40, 64, 96, 130, 256)), int(draw(1, 3, 9, 16, 17, 40))
    kb = -(-K // block)
    z = draw(None, bytes_of(np.uint8, N_ * -(-kb * bits // 8)), f(N_ * kb, lo=0, hi=2 ** bits, t=t))
    lead = draw([], [1], [2], [5], [2, 3], [1, 1])
    put("MatMulNBits", [f(*lead, K, t=t) if lead else f(1, K, t=t), bytes_of(np.uint8, N_, kb, block * bits // 8), f(*draw([N_ * kb], [N_, kb]), lo=0.01, hi=0.1, t=t), z, None, maybe(f(N_, t=t), 0.3)], [code(t)],
        K=K, N=N_, bits=bits, block_size=block, **some(("accuracy_level", int(draw(0, 1, 2, 3, 4)))))


def bnb4():
    K, N_, block = int(draw(16, 31, 48, 64)), int(draw(1, 7, 9, 16)), int(draw(16, 32, 64))
    put("MatMulBnb4", [f(*draw([2], [1], [2, 3]), K), bytes_of(np.uint8, (K * N_ + 1) // 2), f(-(-K * N_ // block))], K=K, N=N_, block_size=block, quant_type=int(draw(0, 1)))


def gatherq():
    bits, block = int(draw(4, 8)), int(draw(16, 32))
    cols, rows = int(draw(16, 32, 40, 64)), int(draw(2, 6))
    kb = -(-cols // block)
    t = draw(np.float32, np.float32, np.float16)
    it = draw(np.int32, np.int64)
    put("GatherBlockQuantized", [bytes_of(np.uint8, rows, cols * bits // 8), ints(it, -rows, rows - 1, *draw([], [1], [3], [2, 2])), f(rows, kb, t=t),
        maybe(bytes_of(np.uint8, rows, -(-kb * bits // 8)))], [code(t)], block_size=block, quantize_axis=draw(1, -1), bits=bits)


def moe():
    t, D, I, E = int(draw(1, 2, 5)), int(draw(4, 8)), int(draw(4, 12)), int(draw(2, 4))
    a = draw("relu", "gelu", "silu", "identity", "swiglu")
    k = int(draw(1, 2))
    two = 2 if a == "swiglu" else 1
    x = In(t, D) if chance() else In(1, t, D)
    more = dict(swiglu_fusion=1, **some(("activation_alpha", 1.702), ("activation_beta", 1.0), ("swiglu_limit", 2.0))) if two == 2 else {}
    put("MoE", [x, f(t, E), f(E, two * I, D), maybe(f(E, two * I)), f(E, D, I), maybe(f(E, D))], activation_type=a, k=k, **some(("normalize_routing_weights", 1)), **more)


def qmoe():
    t, D, I, E, bits = int(draw(1, 2, 5)), int(draw(32, 64)), int(draw(32, 64)), int(draw(2, 4)), int(draw(4, 8))
    a = draw("silu", "gelu", "relu", "swiglu", "identity")
    two = 2 if a == "swiglu" else 1
    block = int(draw(0, 0, 16, 32))
    sc = lambda n, m_: f(E, n, m_ // block, lo=0.001, hi=0.01) if block else f(E, n, lo=0.001, hi=0.01)
    more = dict(swiglu_fusion=1, **some(("activation_alpha", 1.702), ("activation_beta", 1.0))) if two == 2 else {}
    put("QMoE", [In(t, D), f(t, E), bytes_of(np.uint8, E, two * I, D * bits // 8), sc(two * I, D), maybe(f(E, two * I)), bytes_of(np.uint8, E, D, I * bits // 8), sc(D, I), maybe(f(E, D))],
        activation_type=a, k=int(draw(1, 2)), expert_weight_bits=bits, normalize_routing_weights=1, **(dict(block_size=block) if block else {}), **more)


# ---- tensors, texts ----
def tensors():
    d = shape(1, 4)
    t = draw(np.float32, np.float64, np.int32, np.int64)
    x = f(*d, t=t) if t in (np.float32, np.float64) else ints(t, -9, 9, *d)
    pick = draw("expand", "gathernd", "pad", "range", "trilu", "unique", "cdist", "inverse", "unfold", "crop", "grid", "murmur", "convt", "dtw", "maxmask")
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
        ci, co, k = int(draw(1, 2)), int(draw(1, 3)), int(draw(1, 2, 3))
        put("ConvTransposeWithDynamicPads", [In(1, ci, 4, 4), f(ci, co, k, k), ints(np.int64, 0, k - 1, 4), maybe(f(co))], **some(("strides", [2, 2])))
    elif pick == "dtw":
        put("DynamicTimeWarping", [f(*draw([], [1]), int(draw(1, 3, 5)), int(draw(1, 4, 6)), lo=0)], [T.INT32])
    else:
        put("MaxpoolWithMask", [In(1, 1, 6, 6), ints(np.int32, 0, 3, 1, 1, 6, 6)], kernel_shape=[int(draw(1, 2, 3))] * 2, **some(("strides", [2, 2])))


WORDS = ["Hello", "World", "a", "", "naïve", "日本", "x1", "I'm"]


def texts():
    n = int(draw(1, 2, 3))
    x = np.array([" ".join(draw(*WORDS) for _ in range(R.integers(0, 5))) for _ in range(n)], object)
    pick = draw("tokenizer", "tokenizer", "ngram", "wordconv", "bifurcation", "murmur")
    if pick == "tokenizer":
        put("Tokenizer", [x if chance() else x.reshape(1, n)], [T.STRING], mark=int(draw(0, 1)), mincharnum=int(draw(1, 2)), pad_value="#",
            separators=draw([" "], [" ", "o"], [""], ["o", " "], ["l", "r"]))
    elif pick == "ngram":
        put("NGramRepeatBlock", [ints(np.int64, 0, 2, 2, int(draw(1, 4, 9))), In(2, 4)], ngram_size=int(draw(1, 2, 3)))
    elif pick == "wordconv":
        k, ce, e = int(draw(1, 2, 3)), int(draw(1, 2, 3)), int(draw(1, 5))
        put("WordConvEmbedding", [ints(np.int32, 1, 5, 2, 4), f(e, 1, k, ce), f(e), f(6, ce)])
    elif pick == "bifurcation":
        put("BifurcationDetector", [ints(np.int64, 0, 5, int(draw(3, 6, 9))), ints(np.int64, 0, 5, int(draw(1, 3))), s([0], np.int64), maybe(ints(np.int64, 0, 5, 4))], [T.INT64, T.INT64],
            **some(("min_ngram_size", 1), ("max_ngram_size", int(draw(2, 3)))))
    else:
        put("MurmurHash3", [x], [T.UINT32], **some(("seed", 5)))


GROUPS = {
    "fused": group(gelus, fused_matmul, fused_gemm, fused_conv),
    "norm": group(skip_norm, embed, simplified, bias_softmax),
    "lstm": group(q_lstm),
    "quantized": group(q_pair, q_unary, q_softmax, q_where, q_pool, q_concat, q_conv, q_gemm, q_matmul, q_linear, q_integer16, q_lstm, q_attention, q_embed),
    "attention": group(attention, mha, decoder, rotary),
    "grouped": group(grouped),
    "weights": group(nbits, nbits, bnb4, gatherq, moe, qmoe),
    "tensor": group(tensors),
    "text": group(texts),
}

if __name__ == "__main__":
    del m.MODELS[:]
    GROUPS[sys.argv[2]](int(sys.argv[3]))
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, model in m.MODELS:
        onnx.save(model, os.path.join(sys.argv[1], name + ".onnx"))
