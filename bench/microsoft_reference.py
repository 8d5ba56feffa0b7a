#!/usr/bin/env python3
"""Compares operators of com.microsoft that have no CPU kernel elsewhere with references in NumPy, on random models:
  microsoft_reference.py ONX [COUNT [SEED [OPERATOR...]]]

Results agree if they differ by at most 2e-2 of the largest element (float16: sums are rounded in other places), caches by one step of their type.
bfloat16 is not drawn: NumPy lacks it."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T

import microsoft as m
from microsoft_draw import *

F = np.float32


def softmax(x):
    top = np.max(x, -1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    return e / np.sum(e, -1, keepdims=True)


# ---- DecoderAttention ----
def decoder_attention():
    t = draw(np.float32, np.float16)
    s_, k_, b, n, size = int(draw(1, 2, 5)), int(draw(1, 3, 6)), int(draw(1, 2, 3)), int(draw(1, 2, 4)), int(draw(1, 4, 8))
    h = n * size
    x, key, w, kvw, bias = f(s_, b, h, t=t), f(k_, b, h, t=t), f(h, h, t=t), f(h, 2 * h, t=t), f(3 * h, t=t)
    static, past, state, has_mask = [bool(chance()) for _ in range(4)]
    length = int(draw(1, 4))
    caches = [f(b, n, length, size, t=t), f(b, n, length, size, t=t)] if past and state or chance(0.3) else [None, None]
    if past and state:
        own = 0 if static else s_
        total = length + own
    else:
        total = k_ if static else s_
    mask = None
    if has_mask or chance(0.3):
        mask = R.random((b, total)) < 0.4
        mask[:, int(R.integers(total))] = False
        if not has_mask and chance():
            mask = np.ones((b, int(draw(1, 7))), bool)
    has_mask = has_mask and mask is not None

    def heads(y, count):
        return y.reshape(y.shape[0], b, count, n, size).transpose(2, 1, 3, 0, 4)

    q = heads(x.astype(F) @ w.astype(F) + bias[:h].astype(F), 1)[0]
    new = lambda source: heads(source.astype(F) @ kvw.astype(F) + bias[h:].astype(F), 2)
    if past and state:
        k, v = [c.astype(F) for c in caches]
        if not static:
            k, v = [np.concatenate(p, 2) for p in zip((k, v), new(x))]
    else:
        k, v = new(key if static else x)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(F(size))
    if has_mask:
        scores = np.where(mask[:, None, None], -np.inf, scores)
    y = (softmax(scores) @ v).transpose(2, 0, 1, 3).reshape(s_, b, h)
    flag = lambda on: m.s(on if chance() else [on], np.bool_)
    return [x, key, w, kvw, bias, mask] + caches + [flag(static), flag(past), flag(state), flag(has_mask)], [y.astype(t), k.astype(t), v.astype(t)], dict(num_heads=n)


# ---- PagedAttention ----
FLOAT8 = np.array([np.nan if code & 127 == 127 else (-1) ** (code >> 7) * ((code & 7) / 512 if not code >> 3 & 15 else (1 + (code & 7) / 8) * 2.0 ** ((code >> 3 & 15) - 7)) for code in range(256)])
FLOAT4 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def nearest(table, x):
    """Codes of the nearest entries of a table, ties to even codes; beyond it, the last one."""
    codes = np.flatnonzero(np.isfinite(table))
    d = np.abs(x[..., None].astype(np.float64) - table[codes])
    best = d.min(-1, keepdims=True)
    even = np.where((d == best) & (codes % 2 == 0), 0, np.where(d == best, 1, 2)) * 2.0
    sign = (np.signbit(table[codes]) != np.signbit(x)[..., None]) * 0.5
    return codes[np.argmin(even + sign, -1)].astype(np.uint8)


class Cache:
    """Codes of a cache: float16, int8, float8e4m3fn, or int4 and float4e2m1 in bytes."""

    def __init__(self, kind, shape, channels, kv):
        self.kind, blocks = kind, shape
        self.size = channels
        self.scale = None
        if kind == "float16":
            self.data = f(*blocks, kv, channels, t=np.float16)
            return
        self.per_channel = chance()
        self.scale = R.uniform(0.01, 0.3, (kv, 1, channels) if self.per_channel else (1,)).astype(F)
        width = (channels + 1) // 2 if kind in ("int4", "float4e2m1") else channels
        self.data = ints(np.uint8, 0, 255, *blocks, kv, width)
        if kind == "float8e4m3fn":
            self.data[(self.data & 127) == 127] = 1
        if kind == "int8":
            self.data = self.data.view(np.int8)

    def put(self, block, slot, x, head):
        """Stores a vector of float32, rounded."""
        if self.kind == "float16":
            self.data[block, slot, head] = x.astype(np.float16)
            return
        y = x.astype(F) * (F(1) / (self.scale[head, 0] if self.per_channel else self.scale))
        if self.kind == "int8":
            self.data[block, slot, head] = np.clip(np.rint(y), -128, 127)
        elif self.kind == "float8e4m3fn":
            self.data[block, slot, head] = nearest(FLOAT8, np.clip(y, -448, 448))
        else:
            codes = np.clip(np.rint(y), -8, 7).astype(np.int8).view(np.uint8) & 15 if self.kind == "int4" else nearest(FLOAT4, np.clip(y, -6, 6))
            codes = np.append(codes, np.zeros(len(codes) % 2, np.uint8))
            self.data[block, slot, head] = codes[::2] | codes[1::2] << 4

    def get(self, block, slot, head):
        x = self.data[block, slot, head]
        if self.kind == "float16":
            return x.astype(F)
        scale = self.scale[head, 0] if self.per_channel else self.scale
        if self.kind in ("int4", "float4e2m1"):
            codes = np.stack([x & 15, x >> 4], -1).ravel()[:self.size]
            x = (codes ^ 8).astype(F) - 8 if self.kind == "int4" else FLOAT4[codes]
        elif self.kind == "float8e4m3fn":
            x = FLOAT8[x]
        return (x.astype(F) * scale).astype(np.float16).astype(F)

    def attributes(self, letter):
        named = {"%s_cache_dtype" % letter: self.kind} if self.kind in ("int4", "float4e2m1") or chance(0.2) else {}
        return dict(named, **({"%s_quant_type" % letter: "PER_CHANNEL" if self.per_channel else "PER_TENSOR"} if self.scale is not None else {}))

    def tensor(self):
        if self.kind != "float8e4m3fn":
            return self.data
        return onnx.helper.make_tensor("", T.FLOAT8E4M3FN, self.data.shape, self.data.tobytes(), raw=True)


def paged_attention():
    t = np.float16
    kv, group, size, page = int(draw(1, 2)), int(draw(1, 2, 3)), int(draw(4, 16, 32)), int(draw(1, 2, 4))
    latent = chance(0.2)
    kv = 1 if latent else kv
    n, sequences = kv * group, int(draw(1, 2, 3))
    v_size = int(draw(size, size // 2)) if latent else size
    new = [int(draw(0, 1, 1, 3, 5)) for _ in range(sequences)]
    past = [int(draw(0, 0, 1, 4, 6)) for _ in range(sequences)]
    pages = max(1, max(-(-(a + b) // page) for a, b in zip(new, past)))
    blocks = pages * sequences + 1
    table = R.permutation(blocks)[:pages * sequences].reshape(sequences, pages).astype(np.int32)
    for i in range(sequences):
        table[i, -(-(new[i] + past[i]) // page):] = -1
    tokens = sum(new)
    kinds = ["float16"] * 4 + ["int8", "float8e4m3fn", "int4", "float4e2m1"]
    keys = Cache(draw(*kinds), (blocks, page), size, kv)
    values = keys if latent else Cache(draw(*[k for k in kinds if (k == "float16") == (keys.kind == "float16") and (k in ("int4", "float4e2m1")) == (keys.kind in ("int4", "float4e2m1"))
                                              and (k == keys.kind or k in ("int4", "float4e2m1"))]), (blocks, page), size, kv)
    query = f(tokens, n * size, t=t)
    key = f(tokens, kv * size, t=t)
    value = None if latent else f(tokens, kv * size, t=t)
    rotary = chance(0.4) and size >= 16
    interleaved, offset = chance(), 8 if size >= 32 and chance(0.3) else 0
    pairs = int(draw(4, 8)) if size >= 32 else size // 2 if not offset else 4
    angles = R.uniform(0, 6, (max(a + b for a, b in zip(new, past)) + 1, pairs))
    cos, sin = np.cos(angles).astype(t), np.sin(angles).astype(t)
    norms = [f(size, lo=0.5, hi=1.5, t=t), f(size, lo=0.5, hi=1.5, t=t)] if chance(0.3) else [None, None]
    sink = maybe(f(n, t=t), 0.2)
    epsilon = float(draw(1e-6, 1e-2))
    scale = float(R.uniform(0.1, 0.5)) if latent or chance(0.3) else 0
    causal = chance(0.8)
    window = int(draw(-1, -1, 1, 2, 4))
    softcap = float(draw(0, 0, 2))
    slots = None
    if chance(0.25):
        slots = np.array([table[i, p // page] * page + p % page if chance(0.8) else -1 for i in range(sequences) for p in range(past[i], past[i] + new[i])], np.int32)

    def prepare(x, weight, position):
        x = x.astype(F)
        if weight is not None:
            x = x / np.sqrt(np.mean(x * x) + F(epsilon)) * weight.astype(F)
        if rotary:
            c, s_ = cos[position].astype(F), sin[position].astype(F)
            y = x.copy()
            at = [np.arange(pairs) * 2 + offset, np.arange(pairs) * 2 + 1 + offset] if interleaved else [np.arange(pairs) + offset, np.arange(pairs) + pairs + offset]
            y[at[0]], y[at[1]] = x[at[0]] * c - x[at[1]] * s_, x[at[1]] * c + x[at[0]] * s_
            x = y
        return x.astype(np.float16).astype(F)

    inputs = [query, key, value, keys.tensor() if keys.kind != "float8e4m3fn" else keys.tensor(), None, None, None, None]
    before = keys.data.copy(), values.data.copy()
    borders = np.cumsum([0] + new).astype(np.int32)
    token = 0
    for i in range(sequences):
        for p in range(past[i], past[i] + new[i]):
            slot = int(slots[token]) if slots is not None else int(table[i, p // page]) * page + p % page
            for g in range(kv):
                if slot >= 0:
                    keys.put(slot // page, slot % page, prepare(key[token, g * size:(g + 1) * size], norms[1], p), g)
                    if not latent:
                        values.put(slot // page, slot % page, value[token, g * size:(g + 1) * size], g)
            token += 1
    y = np.zeros((tokens, n, v_size), F)
    for i in range(sequences):
        total = past[i] + new[i]
        for a in range(new[i]):
            place = past[i] + a
            for head in range(n):
                q = prepare(query[borders[i] + a, head * size:(head + 1) * size], norms[0], place)
                scores, rows = [], []
                for c in range(total):
                    if (causal and c > place) or (window > 0 and c <= place - window) or table[i, c // page] < 0:
                        continue
                    score = float(q @ keys.get(table[i, c // page], c % page, head // group)) * (scale or 1 / np.sqrt(F(size)))
                    scores.append(softcap * np.tanh(score / softcap) if softcap else score)
                    rows.append(values.get(table[i, c // page], c % page, head // group)[:v_size])
                if sink is not None:
                    scores.append(float(sink[head]))
                    rows.append(np.zeros(v_size, F))
                y[borders[i] + a, head] = softmax(np.array(scores)) @ np.array(rows)
    after = keys.data.copy(), values.data.copy()
    keys.data, values.data = before
    feeds = [query, key, value]
    if not latent and chance(0.3):
        feeds = [np.concatenate(feeds, 1), None, None]
    attributes = dict(num_heads=n, kv_num_heads=kv, **keys.attributes("k"), **({} if latent else values.attributes("v")))
    if latent:
        attributes.update(kv_cache_layout="LATENT", **(dict(v_head_size=v_size) if v_size != size else {}))
    for name, given, default in (("scale", scale, 0), ("is_causal", int(causal), 1), ("local_window_size", window, -1), ("softcap", softcap, 0.0), ("do_rotary", int(rotary), 0),
                                 ("rotary_interleaved", int(rotary and interleaved), 0), ("rotary_offset", offset if rotary else 0, 0), ("qk_norm_epsilon", epsilon, 1e-6)):
        if given != default:
            attributes[name] = given
    feeds += [keys.tensor(), None if latent else values.tensor(), borders, np.array(past, np.int32), table] + ([cos, sin] if rotary else [None, None]) + [slots, sink] + norms
    feeds += [keys.scale, None if latent else values.scale, maybe(np.array([0, 0], np.int32), 0.1)]
    return feeds, [y.reshape(tokens, n * v_size).astype(t), after[0]] + ([] if latent else [after[1]]), attributes, keys


OPERATORS = {"DecoderAttention": decoder_attention, "PagedAttention": paged_attention}


def types_of(arrays, cache):
    return [T.FLOAT8E4M3FN if cache and i and cache.kind == "float8e4m3fn" else code(a.dtype) for i, a in enumerate(arrays)]


def differs(got, want):
    """Says how an output differs; '' if it does not."""
    if got.dtype == F and want.dtype == np.uint8:  # files of NumPy have no 8-bit floats
        want = FLOAT8[want].astype(F)
    if got.shape != want.shape:
        return "has shape %s, expected %s" % (got.shape, want.shape)
    if want.dtype.kind != "f":
        return "" if (got.view(want.dtype) == want).all() else "has other elements: %s" % np.argwhere(got.view(want.dtype) != want)[:5].tolist()
    a, b = got.astype(np.float64), want.astype(np.float64)
    far = ~((np.abs(a - b) <= (2e-2 if want.dtype == np.float16 else 1e-4) * max(1, np.abs(b[np.isfinite(b)]).max(initial=0))) | (np.isnan(a) & np.isnan(b)))
    return "differs in %d of %d, first at %s: %r, expected %r" % (far.sum(), far.size, np.argwhere(far)[0], a[far][0], b[far][0]) if far.any() else ""


def main():
    program, count, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    names, bad = sys.argv[4:] or list(OPERATORS), 0
    for number in range(first, first + count):
        seed(number)
        op = draw(*names)
        feeds, wanted, attributes, *cache = OPERATORS[op]()
        cache = cache[0] if cache else None
        while feeds[-1] is None:
            feeds.pop()
        del m.MODELS[:]
        m.case("model", op, feeds, types_of(wanted, cache), **attributes)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(m.MODELS[0][1], path)
            made = subprocess.run([program, "run", path, "--output-dir", folder, "--npy"], capture_output=True, text=True)
            why = made.stderr.strip() if made.returncode else ""
            for i, want in enumerate(wanted):
                why = why or (lambda d: d and "output %d %s" % (i, d))(differs(np.load(os.path.join(folder, "output_%d.npy" % i)), want))
            if why:
                bad += 1
                print("%s %d %s: %s" % (op, number, attributes, why[:300]))
                if "KEEP" in os.environ:
                    onnx.save(m.MODELS[0][1], os.path.join(os.environ["KEEP"], "%s_%d.onnx" % (op, number)))
    print("%d of %d differ" % (bad, count))
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
