#!/usr/bin/env python3
"""Decoders with random weights in the forms that exporters write, made with the Python package onnx:
    generate.py DIR [--large] [FORM...]
generate_agree.js compares the tokens that onnxruntime and `onx generate` produce with them."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as H, numpy_helper as N

FORMS = ["gqa_int4", "gqa_int8", "gqa_f32", "gqa_f16", "gqa_packed", "attention23", "attention24", "plain", "plain_f16", "blocks", "bare"]
NUMPY = {T.FLOAT: np.float32, T.FLOAT16: np.float16}


class Decoder:
    def __init__(self, form, layers=2, hidden=64, heads=4, kv_heads=2, inner=128, vocab=97, room=128, seed=3):
        self.form, self.layers, self.hidden, self.heads, self.kv_heads = form, layers, hidden, heads, kv_heads
        self.size, self.inner, self.vocab, self.room = hidden // heads, inner, vocab, room
        self.t = T.FLOAT16 if form.endswith("f16") else T.FLOAT
        self.r = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs, self.count = [], [], [], [], 0
        self.growing = form in ("attention23", "plain", "plain_f16", "blocks")

    # ---- parts
    def op(self, kind, inputs, outputs=1, domain="", **attrs):
        self.count += 1
        names = outputs if isinstance(outputs, list) else ["%s_%d_%d" % (kind, self.count, i) for i in range(outputs)]
        self.nodes.append(H.make_node(kind, inputs, names, domain=domain, name="%s_%d" % (kind, self.count), **attrs))
        return names[0] if len(names) == 1 else names

    def const(self, array, name=None):
        self.count += 1
        name = name or "w%d" % self.count
        self.weights.append(N.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def random(self, *shape, by=1.0):
        return (self.r.standard_normal(shape, np.float32) * by).astype(NUMPY[self.t])

    def matmul(self, x, k, n, by=None):
        w = self.r.standard_normal((n, k), np.float32) * (by * 8 if by else 1.3) / np.float32(np.sqrt(k))  # larger weights would make the tokens depend on rounding
        if self.form == "gqa_int4" or self.form == "gqa_int8":
            bits, block = (4, 32) if self.form == "gqa_int4" else (8, 32)
            half = 1 << (bits - 1)
            rows = w.reshape(n, k // block, block)
            scale = np.abs(rows).max(2) / (half - 1)
            q = np.clip(np.rint(rows / scale[..., None]) + half, 0, 2 * half - 1).astype(np.uint8)
            if bits == 4:
                q = q[..., 0::2] | q[..., 1::2] << 4
            return self.op("MatMulNBits", [x, self.const(q), self.const(scale.astype(np.float32).reshape(n, -1))],
                           domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
        if self.form == "blocks":
            block = 32
            rows = w.T.reshape(k // block, block, n)
            scale = np.abs(rows).max(1) / 7
            q = np.clip(np.rint(rows / scale[:, None, :]), -8, 7).astype(np.int8).reshape(-1)
            t = T(name="q%d" % self.count, data_type=22, dims=[k, n], raw_data=((q[0::2] & 15) | (q[1::2] & 15) << 4).astype(np.uint8).tobytes())
            self.count += 1
            self.weights.append(t)
            return self.op("MatMul", [x, self.op("DequantizeLinear", [t.name, self.const(scale.astype(np.float32))], axis=0, block_size=block)])
        return self.op("MatMul", [x, self.const(w.T.astype(NUMPY[self.t]))])

    def norm(self, x, scale=None):
        w = self.const((1 + 0.1 * self.r.standard_normal(self.hidden)).astype(NUMPY[self.t]))
        if self.form.startswith("gqa"):
            return self.op("SimplifiedLayerNormalization", [x, w], axis=-1, epsilon=1e-5)
        if self.form in ("attention23", "attention24"):
            return self.op("RMSNormalization", [x, w], axis=-1, epsilon=1e-5)
        x32 = self.op("Cast", [x], to=T.FLOAT)
        mean = self.op("ReduceMean", [self.op("Pow", [x32, self.const(np.float32(2))]), self.ints(-1)])
        y = self.op("Div", [x32, self.op("Sqrt", [self.op("Add", [mean, self.const(np.float32(1e-5))])])])
        return self.op("Mul", [self.op("Cast", [y], to=self.t), w])

    def tables(self):
        pos = np.arange(self.room * 8)[:, None] / 10000 ** (np.arange(0, self.size, 2) / self.size)
        return np.cos(pos).astype(NUMPY[self.t]), np.sin(pos).astype(NUMPY[self.t])

    def cache(self, layer, which):
        name = "past_key_values.%d.%s" % (layer, which)
        dims = ["batch_size", self.kv_heads, self.room if self.form == "attention24" else "past_sequence_length", self.size]
        self.inputs.append(H.make_tensor_value_info(name, self.t, dims))
        out = "present.%d.%s" % (layer, which)
        self.outputs.append(H.make_tensor_value_info(out, self.t, dims[:2] + ["total_sequence_length" if dims[2] != self.room else self.room] + dims[3:]))
        return name, out

    def heads_of(self, x, count):  # [b, s, count * size] -> [b, count, s, size]
        return self.op("Transpose", [self.op("Reshape", [x, self.ints(0, 0, count, self.size)])], perm=[0, 2, 1, 3])

    # ---- attention in each form
    def gqa(self, layer, x):
        (pk, k_out), (pv, v_out) = self.cache(layer, "key"), self.cache(layer, "value")
        all_heads = self.heads + 2 * self.kv_heads
        if self.form == "gqa_packed":
            q, k, v = self.matmul(x, self.hidden, all_heads * self.size, 0.4), "", ""
        else:
            q, k, v = (self.matmul(x, self.hidden, n * self.size, by) for n, by in ((self.heads, 0.4), (self.kv_heads, 0.4), (self.kv_heads, 0.3)))
        y = "attn_%d" % layer
        self.op("GroupQueryAttention", [q, k, v, pk, pv, self.lengths, self.total, self.cos, self.sin], [y, k_out, v_out], domain="com.microsoft",
                num_heads=self.heads, kv_num_heads=self.kv_heads, do_rotary=1)
        return y

    def turned(self, x, count, ids):
        if self.form in ("attention23", "attention24"):
            return self.op("RotaryEmbedding", [x, self.cos, self.sin, ids])
        half = self.size // 2
        c, s = (self.op("Unsqueeze", [self.op("Gather", [t, ids]), self.ints(1)]) for t in (self.cos, self.sin))
        c, s = (self.op("Concat", [t, t], axis=-1) for t in (c, s))
        a = self.op("Slice", [x, self.ints(0), self.ints(half), self.ints(-1)])
        b = self.op("Slice", [x, self.ints(half), self.ints(1 << 62), self.ints(-1)])
        rotated = self.op("Concat", [self.op("Neg", [b]), a], axis=-1)
        return self.op("Add", [self.op("Mul", [x, c]), self.op("Mul", [rotated, s])])

    def attention(self, layer, x):
        (pk, k_out), (pv, v_out) = self.cache(layer, "key"), self.cache(layer, "value")
        q, k, v = (self.heads_of(self.matmul(x, self.hidden, n * self.size, by), n)
                   for n, by in ((self.heads, 0.4), (self.kv_heads, 0.4), (self.kv_heads, 0.3)))
        q, k = self.turned(q, self.heads, "position_ids"), self.turned(k, self.kv_heads, "position_ids")
        if self.form == "attention23":
            y = self.op("Attention", [q, k, v, "", pk, pv], ["attn_%d" % layer, k_out, v_out], is_causal=1)[0]
        elif self.form == "attention24":
            k = self.op("TensorScatter", [pk, k, "write_indices"], [k_out], axis=2)
            v = self.op("TensorScatter", [pv, v, "write_indices"], [v_out], axis=2)
            y = self.op("Attention", [q, k, v, self.bias])
        else:
            k = self.op("Concat", [pk, k], [k_out], axis=2)
            v = self.op("Concat", [pv, v], [v_out], axis=2)
            y = self.written_out(q, k, v)
        y = self.op("Transpose", [y], perm=[0, 2, 1, 3])
        return self.op("Reshape", [y, self.ints(0, 0, self.hidden)])

    def written_out(self, q, k, v):
        group = self.heads // self.kv_heads
        def repeated(x):
            if group == 1:
                return x
            shape = self.op("Shape", [x])
            b, s = (self.op("Gather", [shape, self.ints(i)]) for i in (0, 2))
            wide = self.op("Concat", [b, self.ints(self.kv_heads, group), s, self.ints(self.size)], axis=0)
            x = self.op("Expand", [self.op("Unsqueeze", [x, self.ints(2)]), wide])
            return self.op("Reshape", [x, self.op("Concat", [b, self.ints(self.heads), s, self.ints(self.size)], axis=0)])
        scores = self.op("MatMul", [q, self.op("Transpose", [repeated(k)], perm=[0, 1, 3, 2])])
        scores = self.op("Mul", [scores, self.const(np.array(1 / np.sqrt(self.size), NUMPY[self.t]))])
        return self.op("MatMul", [self.op("Softmax", [self.op("Add", [scores, self.bias])], axis=-1), repeated(v)])

    # ---- the whole model
    def mask_bias(self):  # [b, 1, s, total] from attention_mask and position_ids: masks later tokens and padding
        keys = self.op("Range", [self.const(np.int64(0)), self.op("Squeeze", [self.op("Gather", [self.op("Shape", ["attention_mask"]), self.ints(1)])]), self.const(np.int64(1))])
        later = self.op("Greater", [self.op("Unsqueeze", [keys, self.ints(0, 1, 2)]), self.op("Unsqueeze", ["position_ids", self.ints(1, 3)])])
        masked = self.op("Unsqueeze", [self.op("Equal", ["attention_mask", self.const(np.int64(0))]), self.ints(1, 2)])
        low = self.const(np.array(-10000, NUMPY[self.t]))
        return self.op("Where", [self.op("Or", [later, masked]), low, self.const(np.array(0, NUMPY[self.t]))])

    def begin(self):
        ids = H.make_tensor_value_info("input_ids", T.INT64, ["batch_size", "sequence_length"])
        self.inputs = [ids]
        if self.form != "bare":
            self.inputs.append(H.make_tensor_value_info("attention_mask", T.INT64, ["batch_size", "total_sequence_length" if self.form != "attention24" else self.room]))
        if not self.form.startswith("gqa") and self.form != "bare":
            self.inputs.append(H.make_tensor_value_info("position_ids", T.INT64, ["batch_size", "sequence_length"]))
        cos, sin = self.tables()
        if self.form != "bare":
            self.cos, self.sin = self.const(cos), self.const(sin)
        if self.form.startswith("gqa"):
            self.lengths = self.op("Cast", [self.op("Sub", [self.op("ReduceSum", ["attention_mask", self.ints(1)], keepdims=0), self.ints(1)])], to=T.INT32)
            self.total = self.op("Cast", [self.op("Gather", [self.op("Shape", ["attention_mask"]), self.const(np.int64(1))])], to=T.INT32)
        elif self.form == "attention24":
            self.inputs.append(H.make_tensor_value_info("write_indices", T.INT64, ["batch_size"]))
            self.bias = self.mask_bias()
        elif self.form in ("plain", "plain_f16", "blocks"):
            self.bias = self.mask_bias()

    def mixed(self, layer, x):  # without a cache: the mean over this token and earlier ones
        s = self.op("CumSum", [self.matmul(x, self.hidden, self.hidden), self.const(np.int64(1))])
        return self.op("Tanh", [s])

    def model(self):
        self.begin()
        x = self.op("Gather", [self.const(self.random(self.vocab, self.hidden)), "input_ids"])
        for layer in range(self.layers):
            h = self.norm(x)
            y = self.gqa(layer, h) if self.form.startswith("gqa") else self.mixed(layer, h) if self.form == "bare" else self.attention(layer, h)
            x = self.op("Add", [x, self.matmul(y, self.hidden, self.hidden)])
            h = self.norm(x)
            gate, up = self.matmul(h, self.hidden, self.inner), self.matmul(h, self.hidden, self.inner)
            gate = self.op("Mul", [gate, self.op("Sigmoid", [gate])])
            x = self.op("Add", [x, self.matmul(self.op("Mul", [gate, up]), self.inner, self.hidden)])
        h = self.norm(x)
        logits = self.op("MatMul", [h, self.const(self.random(self.hidden, self.vocab, by=0.5))], ["logits"])
        self.outputs.insert(0, H.make_tensor_value_info(logits, self.t, ["batch_size", "sequence_length", self.vocab]))
        graph = H.make_graph(self.nodes, self.form, self.inputs, self.outputs, self.weights)
        opset = 24 if self.form == "attention24" else 23 if self.form == "attention23" else 21 if self.form == "blocks" else 18
        m = H.make_model(graph, opset_imports=[H.make_opsetid("", opset), H.make_opsetid("com.microsoft", 1)])
        m.ir_version = 11 if opset > 23 else 10
        return m


def main(args):
    large = "--large" in args
    args = [a for a in args if a != "--large"]
    os.makedirs(args[0], exist_ok=True)
    sizes = dict(layers=12, hidden=768, heads=12, kv_heads=12, inner=2048, vocab=16384, room=1024) if large else {}
    for form in args[1:] or FORMS:
        onnx.save(Decoder(form, **sizes).model(), os.path.join(args[0], form + ".onnx"))


if __name__ == "__main__":
    main(sys.argv[1:])
