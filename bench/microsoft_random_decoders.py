"""Random models for microsoft_random.py: attention, low-bit weights, mixtures of experts."""
import numpy as np
import onnx
from onnx import TensorProto as T

from microsoft_draw import *

# As numbers, since old versions of onnx do not have the names.
FLOAT8, FLOAT4 = (17, 18, 19, 20), 23


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
    turns = dict(do_rotary=1, **some(("rotary_embedding_dim", hs // 2))) if chance(0.05) else {}
    put("Attention", [In(b, sq, D), f(D, 2 * h + vs), f(2 * h + vs), mask, f(2, b, nh, past, hs) if past else None, bias],
        2 if past else draw(1, 2) if vs == h else 1, num_heads=nh, **some(("unidirectional", 1), ("scale", 0.3), ("mask_filter_value", -50.0)), **turns, **(dict(qkv_hidden_sizes=[h, h, vs]) if vs != h else {}))

# As numbers: old versions of onnx do not have the names.
FLOAT8, FLOAT4 = (17, 18, 19, 20), 23


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
        ([T.FLOAT] * (3 if past else draw(1, 1, 3)) + [0, 0])[:3] + [T.FLOAT if chance(0.3) else 0], num_heads=nh, **some(("scale", 0.4), ("unidirectional", int(chance())), ("mask_filter_value", -30.0)))


def decoder():
    b, nh, hs = int(draw(1, 2)), int(draw(1, 2, 4)), int(draw(1, 4, 8))
    h, past = nh * hs, int(draw(1, 3, 5))
    if chance(0.25):
        kv = int(draw(1, 4))
        qk = chance(0.3)
        put("DecoderMaskedMultiHeadAttention", [In(b, 1, h), f(b, nh, kv, hs), f(b, nh, kv, hs), maybe(ints(np.int32, 0, 1, b, kv)), maybe(f(draw(1, b), nh, 1, kv), 0.3)],
            [T.FLOAT, 0, 0, T.FLOAT] if qk else 1, num_heads=nh, **(dict(output_qk=1) if qk else {}), **some(("scale", 0.4)))
        return
    share = chance()
    qk = chance(0.3)
    beams = int(draw(1, 2)) if share and chance(0.4) else 0
    b *= beams or 1
    room = past + int(draw(1, 3)) if share else past
    put("DecoderMaskedMultiHeadAttention", [In(b, 1, h), f(b, 1, h), f(b, 1, h), maybe(ints(np.int32, 0, 1, b, past + 1)), maybe(f(1, nh, 1, past + 1), 0.3), f(b, nh, room, hs), f(b, nh, room, hs),
        s([past], np.int32) if share else None, s([beams], np.int32) if beams else None, ints(np.int32, 0, beams - 1, b // beams, beams, room) if beams else None, maybe(f(3 * h), 0.4)],
        [T.FLOAT] * (4 if qk else 3), num_heads=nh, past_present_share_buffer=int(share), **(dict(output_qk=1) if qk else {}), **some(("scale", 0.4), ("mask_filter_value", -50.0)))


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
        f(12, (rot if attrs.get("rotary_embedding_dim") else hs) // 2, t=t)], [code(t)], **attrs, **some(("interleaved", 1)), **(some(("is_packed_batching", 1), ("scale", float(draw(1.0, 0.5)))) if chance(0.2) else {}))


# ---- weights ----
def nbits():
    t = draw(np.float32, np.float32, np.float16)
    bits, block = int(draw(2, 4, 4, 8)), int(draw(16, 32, 64, 128))
    K, N_ = int(draw(1, 8, 16, 31, 32, 40, 64, 96, 130, 256)), int(draw(1, 3, 9, 16, 17, 40))
    kb = -(-K // block)
    z = draw(None, bytes_of(np.uint8, N_ * -(-kb * bits // 8)), f(N_ * kb, lo=0, hi=2 ** bits, t=t))
    lead = draw([], [1], [2], [5], [2, 3], [1, 1])
    put("MatMulNBits", [f(*lead, K, t=t) if lead else f(1, K, t=t), bytes_of(np.uint8, N_, kb, block * bits // 8), f(*draw([N_ * kb], [N_, kb]), lo=0.01, hi=0.1, t=t), z, s(R.permutation(K) // block, np.int32) if chance(0.15) and bits != 2 and (z is None or z.dtype != np.uint8) else None, maybe(f(N_, t=t), 0.3)], [code(t)],
        K=K, N=N_, bits=bits, block_size=block, **some(("accuracy_level", int(draw(0, 1, 2, 3, 4)))), **(dict(weight_prepacked=0) if chance(0.1) else {}))


def bnb4():
    K, N_, block = int(draw(16, 31, 48, 64)), int(draw(1, 7, 9, 16)), int(draw(16, 32, 64))
    put("MatMulBnb4", [f(*draw([2], [1], [2, 3]), K), bytes_of(np.uint8, (K * N_ + 1) // 2), f(-(-K * N_ // block))], K=K, N=N_, block_size=block, quant_type=int(draw(0, 1)), **(some(("training_mode", int(draw(0, 1))), ("transB", 1)) if chance(0.3) else {}))


def gatherq():
    bits, block = int(draw(4, 8)), int(draw(16, 32))
    cols, rows = int(draw(16, 32, 40, 64)), int(draw(2, 6))
    kb = -(-cols // block)
    t = draw(np.float32, np.float32, np.float16)
    it = draw(np.int32, np.int64)
    if chance(0.4):  # 4-bit elements, which may be gathered along any axis
        d = [int(draw(2, 3)), int(draw(2, 5)), 2 * int(draw(4, 8, 20))]
        q, g = int(R.integers(3)), int(R.integers(3))
        blocks = list(d)
        blocks[q] = -(-d[q] // block)
        kind = draw(21, 22)  # UINT4 and INT4; older versions of the package onnx have no names for them

        def few(shape):
            n = int(np.prod(shape))
            return T(data_type=kind, dims=shape, raw_data=bytes_of(np.uint8, (n + 1) // 2).tobytes())

        put("GatherBlockQuantized", [few(d), ints(it, -d[g] - 1, d[g], *draw([], [1], [2, 2])), f(*blocks, t=t), few(blocks) if chance() else None], [code(t)],
            block_size=block, quantize_axis=q - draw(0, 3), gather_axis=g - draw(0, 3), **some(("bits", 4)))
        return
    put("GatherBlockQuantized", [bytes_of(np.uint8, rows, cols * bits // 8), ints(it, -rows - 1, rows, *draw([], [1], [3], [2, 2])), f(rows, kb, t=t),
        maybe(bytes_of(np.uint8, rows, -(-kb * bits // 8)))], [code(t)], block_size=block, quantize_axis=draw(1, -1), bits=bits)


def gather_floats():
    kind = draw(*FLOAT8, FLOAT4)
    rank = int(draw(1, 2, 2, 3))
    d = [int(draw(1, 3, 5, 16, 32, 40)) for _ in range(rank)]
    axis, along = int(R.integers(rank)), int(R.integers(rank))
    block = int(draw(0, 16, 16, 32))
    many = int(np.prod(d))
    codes = ints(np.uint8, 0, 255, (many + 1) // 2 if kind == FLOAT4 else many)
    if kind == FLOAT4:
        codes[-1] &= 15 if many % 2 else 255
    else:
        codes &= 0x7b  # no NaN
    data = T(data_type=kind, dims=d, raw_data=codes.tobytes())
    t = draw(np.float32, np.float16)
    scales = [-(-x // block) if block and i == along else 1 if i == along or chance(0.3) else x for i, x in enumerate(d)]
    ids = ints(draw(np.int32, np.int64), -d[axis] - 1, d[axis], *shape(0, 2))
    put("GatherBlockQuantized", [data, ids, f(*scales, t=t)], [code(t)], gather_axis=axis, quantize_axis=along, block_size=block)


def moe():
    t, D, I, E = int(draw(1, 2, 5)), int(draw(4, 8)), int(draw(4, 12)), int(draw(2, 4))
    a = draw("relu", "gelu", "silu", "identity", "swiglu")
    k = int(draw(1, 2))
    two = 2 if a == "swiglu" else 1
    x = In(t, D) if chance() else In(1, t, D)
    more = dict(swiglu_fusion=1, **some(("activation_alpha", 1.702), ("activation_beta", 1.0), ("swiglu_limit", 2.0))) if two == 2 else {}
    put("MoE", [x, f(t, E), f(E, two * I, D), maybe(f(E, two * I)), f(E, D, I), maybe(f(E, D))] + ([f(E, I, D), maybe(f(E, I))] if chance(0.05) else []), activation_type=a, k=k, **some(("normalize_routing_weights", 1)), **more)


def qmoe():
    t, D, I, E, bits = int(draw(1, 2, 5)), int(draw(32, 64)), int(draw(32, 64)), int(draw(2, 4)), int(draw(4, 8))
    a = draw("silu", "gelu", "relu", "swiglu", "identity")
    two = 2 if a == "swiglu" else 1
    block = int(draw(0, 0, 16, 32))
    sc = lambda n, m_: f(E, n, m_ // block, lo=0.001, hi=0.01) if block else f(E, n, lo=0.001, hi=0.01)
    more = dict(swiglu_fusion=1, **some(("activation_alpha", 1.702), ("activation_beta", 1.0), ("swiglu_limit", 2.0))) if two == 2 else {}
    zeros = lambda n, m_: bytes_of(np.uint8, E, n, -(-(m_ // block) * bits // 8)) if block and m_ > block else bytes_of(np.uint8, E, -(-n * bits // 8))
    third = [bytes_of(np.uint8, E, I, D * bits // 8), sc(I, D), f(E, I)] if chance(0.05) else [None] * 3
    z1, z2 = (zeros(two * I, D), zeros(D, I)) if chance(0.4) else (None, None)
    put("QMoE", [In(t, D), f(t, E), bytes_of(np.uint8, E, two * I, D * bits // 8), sc(two * I, D), maybe(f(E, two * I)), bytes_of(np.uint8, E, D, I * bits // 8), sc(D, I), maybe(f(E, D))]
        + third + [z1, z2, zeros(I, D) if third[0] is not None and z1 is not None else None, maybe(f(t, E, lo=0), 0.2)],
        activation_type=a, k=int(draw(1, 2)), expert_weight_bits=bits, normalize_routing_weights=1, **some(("quant_type", "int"), ("weights_prepacked", int(draw(-1, 0)))), **(dict(block_size=block) if block else {}), **more)


def fpq4():
    """Blocks of 32 elements (kind 2: 64, kind 3: 128) as MlasQ4 packs them: each has a scale and its quantized elements."""
    kind = int(draw(0, 1, 2, 3))
    block, zero = {0: (32, 1), 1: (32, 0), 2: (64, 0), 3: (128, 0)}[kind]
    K, N_ = int(draw(32, 64, 96, 128)), int(draw(1, 3, 8, 16))
    blocks = -(-K // block)
    b = np.concatenate([np.concatenate([np.frombuffer(np.float32(R.uniform(0.01, 0.1)).tobytes(), np.uint8), bytes_of(np.uint8, zero + block // 2)]) for _ in range(N_ * blocks)])
    put("MatMulFpQ4", [f(*draw([2], [1], [2, 3]), K), b, s([K, N_], np.int64)], blk_quant_type=kind)
