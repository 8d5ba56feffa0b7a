"""Random models for microsoft_random.py: quantized and sliding caches, recurrent states, searches."""
import numpy as np
from onnx import TensorProto as T

from microsoft_draw import *


def i32(*x):
    return s(x, np.int32)


# ---- caches ----
def kept():
    """GroupQueryAttention over a cache that is quantized, slides, or already holds all keys; scores as an output."""
    bits, slides = int(draw(0, 8, 8, 4)), chance(0.3)
    kvh = int(draw(1, 2))
    nh, hs, b = kvh * int(draw(1, 2, 4)), int(draw(16, 32) if slides and bits != 4 else 32 if slides else draw(8, 16, 32)), int(draw(1, 2, 3))
    turns = hs % 16 == 0 and chance(0.3)
    t = np.float32 if turns and bits else draw(np.float32, np.float32, np.float16)  # rounding twice may change a result by one unit
    window = int(draw(2, 3, 5)) if slides or chance(0.3) else 0
    sq = int(draw(1, 1, 2, 4))
    if slides:
        room, past = window + int(draw(0, 2)) + sq - 1, int(draw(1, 3, 9))
    else:
        past = int(draw(0, 2, 5))
        room = past + sq + int(draw(0, 3))
    if sq > 1 and past:
        b = 1
    total = past + sq
    lens = np.full(b, total, np.int32) if past and sq > 1 else ints(np.int32, max(1, sq if past else 1), total, b)
    lens[int(R.integers(b))] = total
    sink, soft = maybe(f(nh, t=t), 0.2), draw({}, {}, dict(softcap=0.7), dict(smooth_softmax=1))
    if window and (sink is not None or "smooth_softmax" in soft):  # in onnxruntime queries after the end of a text see other keys
        lens[:] = total
    kind = draw("PER_TENSOR", "PER_CHANNEL")
    cache = {0: lambda: f(b, kvh, room, hs, t=t), 8: lambda: bytes_of(np.int8, b, kvh, room, hs), 4: lambda: bytes_of(np.uint8, b, kvh, room, hs // 2)}[bits]
    given = sq if slides or not past or chance(0.8) else 0  # 0: the cache holds all keys already
    rows = [f(b, given, kvh * hs, t=t) for _ in "kv"]
    scales = [f(*((1,) if kind == "PER_TENSOR" else (kvh, 1, hs)), lo=0.003, hi=0.01) * (1 if bits == 8 else 16) for _ in "kv"] if bits else [None, None]
    norms = [f(hs, t=t), f(hs, t=t)] if chance(0.05) else [None, None]
    x = [f(b, sq, nh * hs, t=t)] + rows + [cache(), cache(), lens - 1, s(total, np.int32)] + ([f(64, hs // 2, t=t) for _ in "cs"] if turns else [None, None])
    x += [None, maybe(f(1, draw(1, nh), sq, total, t=t), 0.2), sink] + scales + norms
    products = int(draw(0, 0, 1, 2)) if (lens == total).all() and not slides else 0
    attrs = dict(num_heads=nh, kv_num_heads=kvh, do_rotary=int(turns), **some(("scale", 0.3)))
    attrs.update(dict(qk_output=products) if products else {}, **(dict(k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits) if bits else {}),
                 **(dict(local_window_size=window) if window else {}), **(dict(sliding_window_cache=1) if slides else {}),
                 **soft, **(dict(qk_norm_epsilon=1e-3) if norms[0] is not None else {}),
                 **(dict(causal=0) if chance(0.1) and not window else {}))
    put("GroupQueryAttention", x, [code(t)] + [{0: code(t), 8: T.INT8, 4: T.UINT8}[bits]] * 2 + [code(t)] * (products > 0), **attrs)


def padded():
    """GroupQueryAttention with padded chunks of queries (onnxruntime 1.32)."""
    kvh, hs, b, sq = int(draw(1, 2)), 16, int(draw(1, 2, 3)), int(draw(1, 3, 5))
    nh, turns, window = kvh * int(draw(1, 2)), chance(), int(draw(0, 0, 3))
    valid, past = ints(np.int32, 1, sq, b), ints(np.int32, 0, 4, b)
    room = 4 + sq + int(draw(0, 2))
    x = [f(b, sq, nh * hs)] + [f(b, sq, kvh * hs) for _ in "kv"] + [f(b, kvh, room, hs) for _ in "kv"] + [past + valid - 1, s(room, np.int32)]
    x += ([f(64, hs // 2) for _ in "cs"] if turns else [None, None]) + [None] * 7 + [valid]
    put("GroupQueryAttention", x, 3, num_heads=nh, kv_num_heads=kvh, do_rotary=int(turns), **(dict(local_window_size=window) if window else {}), **some(("scale", 0.3)))


def sparse():
    b, kvh, sq = int(draw(1, 2)), int(draw(1, 2)), int(draw(1, 1, 3, 16, 20))
    nh, hs, block = kvh * int(draw(1, 2)), int(draw(16, 32)), int(draw(16, 32))
    past = int(draw(3, 17)) if sq == 1 else 0
    total = past + sq
    most = block * -(-(total + int(draw(0, 5))) // block)
    n, layouts = most // block, int(draw(1, nh))
    rows, columns = [], []
    for _ in range(layouts):
        picked = [[j for j in range(i + 1) if j == i or chance()] for i in range(n)]
        rows.append(np.cumsum([0] + [len(p) for p in picked]))
        columns.append(sum(picked, []))
    width = max(map(len, columns))
    columns = [c + [-1] * (width - len(c)) for c in columns]
    packed, turns = chance(0.3), chance()
    q = f(b, sq, (nh + 2 * kvh) * hs if packed else nh * hs)
    kv = [None, None] if packed else [f(b, sq, kvh * hs), f(b, sq, kvh * hs)]
    lens = np.full(b, total, np.int32)
    put("SparseAttention", [q] + kv + [In(b, kvh, most, hs), In(b, kvh, most, hs), s(rows, np.int32), s(columns, np.int32), i32(total), lens] + ([f(most, hs // 2), f(most, hs // 2)] if turns else []),
        3, num_heads=nh, kv_num_heads=kvh, sparse_block_size=block, **(dict(do_rotary=1, **some(("rotary_interleaved", 1))) if turns else {}), **some(("scale", 0.3)))


# ---- states ----
def linear():
    q = int(draw(1, 2, 4))
    kv = int(draw(q, 1, q * 2) if chance(0.8) else 2)
    b, sq, dk, dv, rule = int(draw(1, 2)), int(draw(1, 2, 5, 9)), int(draw(1, 2, 4, 8)), int(draw(1, 3, 4)), draw("linear", "gated", "delta", "gated_delta")
    t = draw(np.float32, np.float32, np.float16)
    decays, updates = "gated" in rule, "delta" in rule
    put("LinearAttention", [f(b, sq, q * dk, t=t), f(b, sq, kv * dk, t=t), f(b, sq, kv * dv, t=t), maybe(f(b, kv, dk, dv, t=t)),
        f(b, sq, draw(kv, kv * dk), lo=-2, hi=0, t=t) if decays else None, f(b, sq, draw(1, kv), lo=0, t=t) if updates else None], [code(t)] * 2,
        q_num_heads=q, kv_num_heads=kv, update_rule=rule, **some(("scale", 0.3), ("chunk_size", int(draw(1, 2, 64)))), **(dict(state_window=2) if chance(0.05) else {}))


def causal():
    last, k, dilation = chance(0.4), int(draw(1, 2, 3, 4)), int(draw(1, 1, 2, 3))
    b, c, sq, axes = int(draw(1, 2)), int(draw(1, 3, 5)), int(draw(1, 2, 6)), [int(draw(1, 2, 3)) for _ in range(draw(0, 0, 1))]
    t = draw(np.float32, np.float32, np.float16)
    n = (k - 1) * dilation
    axes = axes if last else []
    all_ = c * int(np.prod(axes)) if axes else c
    shape, past = ([b, sq, c] + axes, [b, n, c] + axes) if last else ([b, c, sq], [b, c, n])
    put("CausalConvWithState", [f(*shape, t=t), f(all_, 1, k, t=t), maybe(f(all_, t=t)), maybe(f(*past, t=t))], [code(t)] * 2, **some(("activation", draw("silu", "swish", "none")), ("ndim", 1)),
        **(dict(channels_last=1) if last else {}), **(dict(dilation=dilation) if dilation != 1 else {}), **(dict(state_window=2) if chance(0.05) else {}))


def mrope():
    t = draw(np.float32, np.float32, np.float16)
    section = [int(draw(0, 1, 2)) for _ in range(3)]
    section[0] += sum(section) == 0
    half, b, sq, nh = sum(section), int(draw(1, 2)), int(draw(1, 3)), int(draw(1, 2))
    rest = int(draw(0, 0, 2, 4))
    hs = 2 * half + rest
    packed = chance()
    more = dict(num_heads=nh) if packed or rest else {}
    put("MRotaryEmbedding", [f(*([b, sq, nh * hs] if packed else [b, nh, sq, hs]), t=t), ints(np.int64, 0, 8, 3, b, sq), f(9, half, t=t), f(9, half, t=t)], [code(t)],
        mrope_section=section, **more, **(dict(rotary_embedding_dim=2 * half) if rest else {}), **some(("interleaved", 1), ("mrope_layout", 1)))


def engram():
    b, sq, g, h = int(draw(1, 2)), int(draw(1, 3)), int(draw(1, 2, 4)), int(draw(1, 3, 8, 16))
    t = draw(np.float32, np.float32, np.float16)
    put("EngramGate", [f(b, sq, g, h, t=t), f(b, sq, g, h, t=t), f(b, sq, h, t=t), f(g, h, t=t), f(g, h, t=t)], [code(t)], **some(("epsilon", 0.01)))


def hashes():
    t, n, heads = draw(np.int32, np.int64), int(draw(2, 3, 4)), int(draw(1, 2))
    past = chance()
    b, sq = int(draw(1, 2)), int(draw(1, 3, 6))
    put("NGramHashMapping", [ints(t, 0, 99, b, sq), ints(t, -99999, 2000000011, n), ints(t, 2, 999, (n - 1) * heads), ints(t, 0, 99, b, n - 1) if past else None],
        [code(t)] * draw(1, 2), max_ngram_size=n, n_head_per_ngram=heads, pad_id=int(draw(0, 2, -1)))


ACTIVATIONS = [("Sigmoid", 0, 0), ("Tanh", 0, 0), ("Relu", 0, 0), ("HardSigmoid", 0.3, 0.4), ("LeakyRelu", 0.1, 0), ("Elu", 0.7, 0), ("Softsign", 0, 0), ("ThresholdedRelu", 0.1, 0), ("ScaledTanh", 0.9, 0.8)]


def activations(n):
    """Three activations per direction, and alpha and beta for those that take them."""
    picked = [ACTIVATIONS[R.integers(len(ACTIVATIONS))] for _ in range(3 * n)]
    attrs = dict(activations=[p[0] for p in picked])
    for name, at in (("activation_alpha", 1), ("activation_beta", 2)):
        numbers = [float(p[at]) for p in picked if p[at]]
        if numbers:
            attrs[name] = numbers
    return attrs


def attending():
    n = draw(1, 1, 2)
    sq, b, x, h, m_, md, am = (int(draw(*of)) for of in ((1, 2, 4), (1, 2), (1, 3), (1, 3, 5), (1, 4), (1, 3), (1, 2, 5)))
    layer = int(draw(0, 2, 6))
    a = layer or md
    ins = [f(sq, b, x), f(n, 4 * h, x + a), f(n, 4 * h, h), maybe(f(n, 8 * h)), maybe(ints(np.int32, 1, sq, b)), maybe(f(n, b, h)), maybe(f(n, b, h)), maybe(f(n, 3 * h)),
           f(n, h, am), f(n, md, am), f(n, am), f(b, m_, md), maybe(ints(np.int32, 1, m_, b)), f(n, md + h, layer) if layer else None]
    put("AttnLSTM", ins, 3, hidden_size=h, **(dict(direction="bidirectional") if n == 2 else some(("direction", "reverse"))), **some(("clip", 0.7), ("input_forget", 1)), **(activations(n) if chance(0.3) else {}))


# ---- searches ----
def prompts(vocab):
    b, n = int(draw(1, 2, 3)), int(draw(1, 2, 4))
    return ints(np.int32, 0, vocab - 1, b, n)


def scores_of(vocab, b):
    """A vocabulary mask for all steps, and one for the first token of each text."""
    whole = np.ones(vocab, np.int32)
    whole[R.integers(1, vocab)] = 0
    first = ints(np.int32, 0, 1, b, vocab)
    first[:, R.integers(1, vocab)] = 1
    return maybe(whole, 0.3), maybe(first, 0.3)


# Batches use early_stopping: without it onnxruntime compares scores of different texts to decide whether a search can still improve.
def searched(kind=None):
    vocab, seed = int(draw(5, 7, 12)), int(R.integers(1, 1000))
    op = kind or draw("GreedySearch", "GreedySearch", "BeamSearch", "BeamSearch", "Sampling")
    ids = prompts(vocab)
    b, n = ids.shape
    longest = n + int(draw(1, 3, 7))
    whole, first = scores_of(vocab, b)
    mask = ids * 0 + 1
    mask[int(R.integers(b)), :int(R.integers(n))] = 0
    mask = maybe(mask, 0.3)
    least, penalty = maybe(i32(int(draw(0, 2, longest - 1)))), maybe(s([draw(1.0, 1.3, 0.8)]))
    if op == "BeamSearch":  # these inputs are required
        least, penalty = i32(int(draw(0, 2, longest - 1))), s([draw(1.0, 1.3, 0.8)])
    shared = op == "GreedySearch" and chance(0.3)
    attrs = dict(decoder=(m.shared_decoder if shared else m.decoder)(vocab=vocab, seed=seed), eos_token_id=int(draw(1, 2, 4)), pad_token_id=int(draw(0, 0, 3)),
                 **some(("no_repeat_ngram_size", int(draw(1, 2, 3))), ("model_type", 0), ("decoder_start_token_id", -1), ("vocab_size", vocab)))
    if op == "Sampling" and first is not None:  # with all tokens masked, the choice would be random
        attrs.pop("no_repeat_ngram_size", None)
    if not shared and chance(0.2):  # a different decoder for the first step
        attrs.update(init_decoder=m.decoder(vocab=vocab, seed=seed + int(draw(0, 1))))
    if op == "BeamSearch":
        beams = int(draw(1, 2, 3, 4))
        back = int(R.integers(1, beams + 1))
        put(op, [ids, i32(longest), least, i32(beams), i32(back), s([draw(1.0, 0.6, 2.0)]), penalty, whole, first, mask, None, i32(0) if chance(0.2) else None],
            [T.INT32, T.FLOAT, T.FLOAT][:draw(1, 2, 3) if b == 1 else draw(1, 2)], **attrs, **(some(("early_stopping", 1)) if b == 1 else dict(early_stopping=1)))
    elif op == "GreedySearch":
        put(op, [ids, i32(longest), least, penalty, whole, first, mask], [T.INT32], **attrs)
    else:
        present = maybe(ints(np.int32, 0, 1, b, vocab), 0.3)
        put(op, [ids, i32(longest), least, penalty, whole, first, mask, present, maybe(i32(7), 0.5)], [T.INT32],
            **attrs, top_p=1e-6, **draw(dict(custom=1), dict(min_tokens_to_keep=1)), **some(("filter_value", -1e20), ("temperature", 0.7)),
            **({} if present is not None else some(("presence_penalty", 0.4))))  # with both, onnxruntime penalizes only the first token


def encoded():
    vocab, seed = int(draw(7, 20)), int(R.integers(1, 1000))
    sound = chance()
    b, e = int(draw(1, 2)), int(draw(1, 3, 5))
    form = dict(takes_hidden=chance()) if sound else draw({}, dict(takes_hidden=True), dict(whole=True), dict(fresh=True), dict(fresh=True, whole=True))
    op = draw("WhisperBeamSearch", "BeamSearch") if sound else "BeamSearch"
    x = f(b, 3, e, lo=-2, hi=2) if sound else ints(np.int32, 0, 8, b, e)
    given = maybe(ints(np.int32, 0, 6, b, int(draw(1, 2)))) if sound else None
    beams = int(draw(1, 2, 3))
    longest = int(draw(4, 8, 12))
    whole, first = scores_of(vocab, b)
    mask = None if sound or chance() else ints(np.int32, 0, 1, b, e) | (np.arange(e) == 0).astype(np.int32)
    ins = [x, i32(longest), i32(int(draw(0, 3))), i32(beams), i32(int(R.integers(1, beams + 1))), s([draw(1.0, 0.6, 2.0)]), s([draw(1.0, 1.3)]),
           whole if op == "BeamSearch" else maybe(whole, 0.1), first, mask if op == "BeamSearch" else maybe(ints(np.int32, 1, 1, b, e), 0.1), given]
    outs = [T.INT32, T.FLOAT, T.FLOAT][:draw(1, 2, 3) if b == 1 else draw(1, 2)]
    attrs = dict(m.encoder_decoder(sound=sound, vocab=vocab, seed=seed, **form), eos_token_id=int(draw(1, 4, 6)), decoder_start_token_id=2,
                 **some(("no_repeat_ngram_size", int(draw(1, 2, 3))), ("vocab_size", vocab)), **(some(("early_stopping", 1)) if b == 1 else dict(early_stopping=1)))
    if op == "BeamSearch":
        ins.append(i32(0) if chance(0.2) else None)
    else:
        times = vocab == 20 and chance(0.6)
        if times:
            attrs.update(beginning_timestamp_token_id=12, no_timestamps_token_id=11, start_of_lm_token_id=10, translate_token_id=8, transcribe_token_id=9, eos_token_id=7)
        warm = maybe(s([1.7]), 0.3)
        silent = chance(0.5) and not times and warm is None and first is None and "no_repeat_ngram_size" not in attrs
        if silent:
            attrs.update(no_speech_token_id=3)
            ins[2], ins[6], ins[7] = i32(0), s([1.0]), None  # score processors would leave that output unwritten
        attends = chance(0.1)  # only other devices compute these outputs
        ins += [i32(1) if times else None, s([[0, 1]], np.int32) if attends else None, i32(0, 1).reshape(1, 2) if attends and b == 1 else None, warm]
        if attends:
            attrs.update(decoder_output_cross_qk=1)
        outs = (outs + [0, 0, 0])[:3] + [T.FLOAT if attends else 0, T.FLOAT if silent else 0]
    put(op, ins, outs, **attrs)
