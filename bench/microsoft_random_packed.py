"""Random models for microsoft_random.py: streams, routers, and states of packed sequences (onnxruntime 1.32)."""
import numpy as np
from onnx import TensorProto as T

from microsoft_draw import *


def real():
    return draw(np.float32, np.float32, np.float16)


def silu():
    t = real()
    put("ScaledSiLU", [f(*shape(1, 3), lo=-4, hi=4, t=t), maybe(s(R.uniform(-2, 2), draw(t, np.float32)))], [code(t)], **some(("alpha", 1.5)))


def streams():
    """(lead, branches, width), and whether they are flat."""
    return [int(draw(1, 2, 3)) for _ in range(R.integers(1, 3))], int(draw(1, 2, 4)), int(draw(1, 3, 8, 17)), chance()


def branchwise():
    lead, c, h, flat = streams()
    t, t2 = real(), real()
    scale = maybe(draw(f(c * h, t=t2), f(c, h, t=t2), f(h, t=t2)))
    put("BranchwiseRMSNorm", [f(*lead, *([c * h] if flat else [c, h]), t=t), scale], [code(t)], **(dict(num_branches=c) if flat else {}), **some(("epsilon", 1e-3)))


def premix():
    lead, c, h, flat = streams()
    t, t2 = real(), real()
    mix = draw([c], [c, 1], [c, h], *([[c * h]] if flat else []))
    put("HyperConnectionPreMix", [f(*lead, *([c * h] if flat else [c, h]), t=t), f(*lead, *mix, t=t2)], [code(t)], **(dict(num_branches=c) if flat else {}),
        **some(("reduction_scale", 0.25)))


def postmix():
    lead, c, h, flat = streams()
    t, t2 = real(), real()
    mix = draw([c], [c, 1], [c, h])
    put("HyperConnectionPostMix", [f(*lead, *([c * h] if flat else [c, h]), t=t), f(*lead, h, t=t), f(*lead, *mix, t=t2), maybe(f(*lead, c, c, t=t2))], [code(t)],
        **(dict(num_branches=c) if flat else {}))


def router():
    t, groups, per = real(), int(draw(1, 2, 4)), int(draw(2, 3, 4))
    tokens, experts = int(draw(1, 3, 7)), groups * per
    if chance(0.4):
        width = draw(0, 256)
        put("MoEGroupRouter", [f(tokens, width or experts, lo=-3, hi=3, t=t), f(experts), f(experts, width, lo=-0.1, hi=0.1, t=t) if width else None],
            [0, T.FLOAT, T.FLOAT], top_k=1)
        return
    opened = int(R.integers(1, groups + 1))
    put("MoEGroupRouter", [f(*([tokens] if chance() else [1, tokens]), experts, lo=-3, hi=3, t=t), f(experts)], [code(t)], top_k=int(R.integers(1, opened * per + 1)), n_group=groups,
        topk_group=opened, **some(("group_topk", int(draw(1, 2, 9))), ("router_sentinel", -5.0)))


def borders(n):
    lengths = [int(draw(1, 2, 5)) for _ in range(n)]
    return lengths, np.cumsum([0] + lengths).astype(np.int32)


def captures(n):
    capacity = int(draw(0, 0, 1, 3))
    return capacity, ints(np.int32, 0, 4, n) if capacity else None


def conv():
    t, n, c, k, d = real(), int(draw(1, 2, 3)), int(draw(1, 3, 8)), int(draw(1, 2, 4)), int(draw(1, 1, 2))
    lengths, at = borders(n)
    capacity, counts = captures(n)
    put("VarlenCausalConvWithState", [f(sum(lengths), c, t=t), f(c, 1, k, t=t), at, maybe(f(c, t=t)), f(n, c, (k - 1) * d, t=t), counts],
        [code(t)] * (3 if capacity else 2), dilation=d, **(dict(state_update_capacity=capacity) if capacity else {}), **some(("activation", draw("silu", "swish", "none"))))


def delta():
    t, n, h, k, v, group = real(), int(draw(1, 2, 3)), int(draw(1, 2)), int(draw(2, 4, 8)), int(draw(1, 3, 4)), int(draw(1, 2))
    rule, gate, per_key = draw("linear", "gated", "delta", "gated_delta"), draw("none", "softplus", "sigmoid", "kda", "qwen"), chance(0.3)
    lengths, at = borders(n)
    uniform = chance(0.4)
    if uniform:
        lengths = [lengths[0]] * n
    tokens, hv, tg = sum(lengths), h * group, draw(t, np.float32)
    decay = f(tokens, hv, *([k] if per_key else []), lo=-1, hi=0, t=tg) if "gated" in rule else None
    beta = f(tokens, hv, lo=0, hi=1, t=tg) if "delta" in rule else None
    if decay is None:
        gate = "none"
    packed = chance(0.3)
    state = f(n, hv, v, k) if uniform or packed or chance() else None
    x = [f(tokens, 2 * h * k + hv * v, t=t), None, None] if packed else [f(tokens, h, k, t=t), f(tokens, h, k, t=t), f(tokens, hv, v, t=t)]
    capacity, counts = captures(n)
    gates = [f(hv), f(hv, k) if per_key and chance() else f(hv)] if gate != "none" else [None, None]
    put("GatedDeltaNet", x + [None if uniform else at, decay, beta, state] + gates + [counts, s([int(draw(0, 1))], np.int32) if capacity and chance(0.3) else None],
        draw([code(t)], [code(t), T.FLOAT]) if not capacity else [code(t), T.FLOAT, T.FLOAT], update_rule=rule, qk_l2_norm=int("delta" in rule or chance()),
        **(dict(gate_activation=gate) if gate != "none" else {}), **(dict(state_update_capacity=capacity) if capacity else {}),
        **(dict(beta_activation="sigmoid") if beta is not None and chance() else {}), **some(("scale", 0.3), ("gate_lower_bound", -3.0), ("chunk_size", 32)))


def hashes():
    t, n, size, heads = draw(np.int32, np.int64), int(draw(1, 2, 3)), int(draw(2, 3, 4)), int(draw(1, 2))
    packed = chance(0.6)
    lengths, at = borders(n)
    if not packed:
        lengths = [lengths[0]] * n
    total = [sum(lengths)] if packed else [n, lengths[0]]
    many = (size - 1) * heads
    capacity, counts = captures(n) if packed else (0, None)
    x = [ints(t, 0, 6, *total), ints(t, 1, 1 << 20, size), ints(t, 5, 99, many)] + ([at] if packed else [])
    x += [maybe(ints(t, 0, 6, n, size - 1)), maybe(ints(t, 0, 1000, many)), maybe(s(2, t)), maybe(np.sort(ints(np.int32, 0, 2, *total)))]
    if packed:
        x += [ints(np.int32, 0, 2, n, size - 1) if x[7] is not None and x[4] is not None and chance() else None, counts]
    outs = [code(t)] + [code(t)] * chance() if not packed else [code(t), code(t), T.INT32 if x[7] is not None else 0, code(t) if capacity else 0]
    put("VarlenNGramHashMapping" if packed else "NGramHashMapping", x, outs, max_ngram_size=size, n_head_per_ngram=heads, pad_id=int(draw(0, 3)),
        **some(("reset_on_eos", 1)), **(dict(state_update_capacity=capacity) if capacity else {}))


def norms():
    t = real()
    lead, c, h, _ = streams()
    if chance():
        put("GatedRMSNorm", [f(*lead, c * h, t=t), f(h, t=t), f(*lead, c * h, t=t)], [code(t)], activation=draw("silu", "swish", "sigmoid"))
    else:
        b, sq = lead[0], int(draw(1, 3))
        put("EngramGate", [f(b, sq, c, h, t=t), f(b, sq, c, h, t=t), f(b, sq, h, t=t), f(c, h, t=t), f(c, h, t=t), f(c, h, t=t)], [code(t)] * 2)


# Format: elements and bytes of a block, and where it has numbers of float16.
BLOCKS = {2: (32, 18, [0]), 6: (32, 22, [0]), 8: (32, 34, [0]), 13: (256, 176, [0, 2]), 14: (256, 210, [208]), 16: (256, 66, [0]), 17: (256, 74, [0]), 18: (256, 98, [0]),
          20: (32, 18, [0]), 22: (256, 82, [0]), 23: (256, 136, [0]), 42: (64, 18, [0])}


def blocks(rows):
    """Random weights in one of the packed formats: attributes, and bytes."""
    kind = int(draw(0, 1, 30, *BLOCKS, *BLOCKS))
    if kind in (0, 1, 30):
        k = int(draw(1, 8, 31))
        x = f(rows, k, t=np.float16 if kind == 1 else np.float32)
        data = x.view(np.uint8).reshape(rows, -1) if kind != 30 else np.ascontiguousarray(x.view(np.uint16)[:, 1::2]).view(np.uint8)
        return dict(packed_type=kind, K=k), data
    elements, size, halves = BLOCKS[kind]
    n = int(draw(1, 2, 3))
    data = ints(np.uint8, 0, 255, rows, n, size)
    for at in halves:
        data[:, :, at:at + 2] = f(rows, n, lo=-0.1, hi=0.1, t=np.float16)[..., None].view(np.uint8)
    return dict(packed_type=kind, K=n * elements), data.reshape(rows, -1)


def gather_packed():
    rows = int(draw(1, 3, 9))
    attributes, data = blocks(rows)
    to = draw(T.FLOAT, T.FLOAT16)
    put("GatherPacked", [data, ints(draw(np.int32, np.int64), -1, rows, *shape(0, 3))], [to], output_dtype=to, **attributes)
