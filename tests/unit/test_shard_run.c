/* test_shard_run.c - models annotated by hand, one for each way to divide a value, run by ranks that are threads: the
 * results are those of the whole model, for any number of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <onx/shard.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <string.h>

#include "context.h"
#include "counts.h"
#include "shard_cases.h"

static void check_case(const test_case *c, uint32_t count)
{
    onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
    rank ranks[RANKS_MAX] = { 0 };
    uint64_t received = 0;
    onx_doc *doc = make(c, count);
    make_inputs(doc, inputs);
    run_whole(doc, inputs, outputs);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] =
            (rank){ .doc = doc, .inputs = inputs, .options = { .configuration = "c", .timeout_ns = 10000000000 } };
    run_ranks(ranks, count);
    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i].status != ONX_OK)
            fail_msg("%s: rank %u of %u: %s", c->name, i, count, ranks[i].error);
        received += ranks[i].summary.receive_bytes;
    }
    for (uint32_t k = 0; k < onx_doc_model(doc)->graph->output_count; k++) {
        onx_value_difference d;
        assert_non_null(ranks[0].outputs[k]);
        if (!onx_value_close(ranks[0].outputs[k], outputs[k], 1e-5, 1e-5, &d))
            fail_msg("%s: %u ranks, output %u: %s %s", c->name, count, k, d.what, d.text);
    }
    if (count > 1 && c->communicates != (received > 0))
        fail_msg("%s: %u ranks: %llu bytes are received", c->name, count, (unsigned long long)received);
    free_ranks(ranks, count);
    for (uint32_t k = 0; k < VALUES_MAX; k++) {
        onx_value_free(inputs[k]);
        onx_value_free(outputs[k]);
    }
    onx_doc_free(doc);
}

/* ---- the ways to split ---- */

/* How long the sequences are, less one, and the longest one. */
#define GROUP_LENGTHS "len = Constant <value = int32[2] {4,3}> () all = Constant <value = int32 {5}> () "
static const test_case cases[] = {
    { "columns of a product", "g (float[4,16] x) => (float[4,24] y) { y = MatMul(x, w) }", "w 16 24", "w 1/N@* y 1/N@*",
      0, true },
    { "rows of a product", "g (float[4,16] x) => (float[4,24] y) { y = MatMul(x, w) }", "w 16 24", "x 1/N@* w 0/N@*", 0,
      true },
    { "two products of a layer",
      "g (float[4,16] x) => (float[4,16] z) { h = MatMul(x, w) a = Add(h, b) r = Relu(a) y = MatMul(r, v) z = Add(y, x) }",
      "w 16 24;b 24;v 24 16", "w 1/N@*;;;v 0/N@*", 0, true },
    { "rows and columns", "g (float[4,16] x) => (float[4,24] y) { y = MatMul(x, w) }", "w 16 24",
      "x 0/2@{0+1},{2+3} w 1/2@{0+2},{1+3} y 0/2,1/2@0,1,2,3", 4, true },
    { "columns and inner rows", "g (float[4,16] x) => (float[4,24] y) { y = MatMul(x, w) }", "w 16 24",
      "x 1/2@{0+1},{2+3} w 0/2,1/2@0,1,2,3", 4, true },
    { "parts on groups of unequal size", "g (float[4,16] x) => (float[4,24] y) { y = MatMul(x, w) }", "w 16 24",
      "x 1/2@{0+1},2 w 0/2@{0+1},2", 3, true },
    { "batches", "g (float[B,16] x) => (float[B,24] y) { h = MatMul(x, w) y = Relu(h) }", "w 16 24", "x 0/N@*", 0,
      true },
    { "partial results that stay apart", "g (float[8,16] x) => (float[8,24] z) { y = MatMul(x, w) z = Relu(y) }",
      "w 16 24", "x 1/N@* w 0/N@* y 0/N@*", 0, true },
    { "Gemm with a bias", "g (float[4,16] x) => (float[4,9] y) { y = Gemm <transB = 1, beta = 0.5> (x, w, b) }",
      "w 9 16;b 9", "x 1/N@* w 1/N@*", 0, true },
    { "columns of Gemm", "g (float[4,16] x) => (float[4,9] y) { y = Gemm <transB = 1> (x, w, b) }", "w 9 16;b 9",
      "w 0/N@*", 0, true },
    { "products of batches", "g (float[8,3,16] x, float[8,16,5] u) => (float[8,3,5] y) { y = MatMul(x, u) }", "",
      "x 0/N@* u 0/N@*", 0, true },
    { "a vector of products", "g (float[16] x) => (float[24] y) { y = MatMul(x, w) }", "w 16 24", "w 1/N@*", 0, true },
    { "output channels", "g (float[2,8,9,9] x) => (float[2,12,9,9] y) { y = Conv <pads = [1,1,1,1]> (x, w, b) }",
      "w 12 8 3 3;b 12", "w 0/N@*", 0, true },
    { "input channels", "g (float[2,8,9,9] x) => (float[2,12,9,9] y) { y = Conv <pads = [1,1,1,1]> (x, w, b) }",
      "w 12 8 3 3;b 12", "x 1/N@* w 1/N@*", 0, true },
    { "channels in groups", "g (float[2,8,9,9] x) => (float[2,8,7,7] y) { h = Conv <group = 8> (x, w, b) y = Relu(h) }",
      "w 8 1 3 3;b 8", "x 1/2@0,1", 2, true },
    { "a network of convolutions",
      "g (float[2,8,9,9] x) => (float[2,5] z) { a = Conv <pads = [1,1,1,1]> (x, w, b) c = BatchNormalization(a, s, o, m, v) "
      "d = Relu(c) e = MaxPool <kernel_shape = [3,3], strides = [2,2]> (d) f = GlobalAveragePool(e) h = Flatten(f) "
      "z = MatMul(h, u) }",
      "w 16 8 3 3;b 16;s 16;o 16;m 16;v 16;u 16 5", "w 0/N@*", 0, true },
    { "axes of size 1", "g (float[8,1] x, float[1,6] u) => (float[8,6] y) { y = Add(x, u) }", "", "x 0/N@* u @{0}", 0,
      true },
    { "two stretched axes", "g (float[4,1] x, float[1,6] u) => (float[4,6] y) { y = Add(x, u) }", "",
      "x 0/2@{0+1},{2+3} u 1/2@{0+2},{1+3}", 4, true },
    { "axes that do not divide", "g (float[5,7] x) => (float[5,7] z) { y = Mul(x, w) z = Exp(y) }", "w 7",
      "x 1/3@0,1,2", 3, true },
    { "axes shorter than the shards", "g (float[2,7] x) => (float[2,7] z) { y = Mul(x, w) z = Exp(y) }", "w 7",
      "x 0/4@0,1,2,3", 4, false },
    { "an operand split otherwise", "g (float[8,8] x, float[8,8] u) => (float[8,8] y) { y = Add(x, u) }", "",
      "x 0/2@0,1 u 1/2@0,1", 2, true },
    { "sums over a split axis",
      "g (float[6,16] x) => (float[6] s, float[6,1] m, float[16] p) { s = ReduceSum <keepdims = 0> (x, one) "
      "m = ReduceMean(x, one) p = ReduceMax <keepdims = 0> (x, zero) one = Constant <value = int64[1] {1}> () zero = Constant "
      "<value = int64[1] {0}> () }",
      "", "x 1/N@*;x 1/N@*;x 1/N@*", 0, true },
    { "all axes reduced", "g (float[6,16] x) => (float s) { s = ReduceMean <keepdims = 0> (x) }", "",
      "x 0/2,1/2@0,1,2,3", 4, true },
    { "the position of the largest", "g (float[8,16] x) => (int64[8] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }",
      "", "x 1/N@*", 0, false },
    { "Softmax over a split axis", "g (float[6,16] x) => (float[6,16] y) { h = Mul(x, x) y = Softmax(h) }", "",
      "x 1/N@*;h 1/N@*", 0, true },
    { "Softmax beside a split axis", "g (float[8,16] x) => (float[8,16] y) { h = Mul(x, x) y = Softmax(h) }", "",
      "x 0/N@*", 0, true },
    { "rows of an embedding", "g (int64[2,5] i) => (float[2,5,6] z) { y = Gather(t, i) z = Relu(y) }", "t 8 6",
      "t 0/N@*", 0, true },
    { "columns of an embedding", "g (int64[2,5] i) => (float[2,5,8] z) { y = Gather(t, i) z = Relu(y) }", "t 8 8",
      "t 1/N@*", 0, true },
    { "heads",
      "g (float[2,4,16] x) => (float[2,4,16] z) { q = MatMul(x, w) r = Reshape(q, s) t = Transpose <perm = [0,2,1,3]> (r) "
      "k = Transpose <perm = [0,1,3,2]> (t) a = MatMul(t, k) p = Softmax(a) o = MatMul(p, t) "
      "u = Transpose <perm = [0,2,1,3]> (o) f = Reshape(u, c) z = MatMul(f, v) s = Constant <value = int64[4] {0,0,8,4}> () "
      "c = Constant <value = int64[3] {2,4,32}> () }",
      "w 16 32;v 32 16", "w 1/2@0,1;;;;;;;;;v 0/2@0,1", 2, true },
    { "heads with angles, and a mask for each",
      "g (float[2,4,3,8] x, int64[2,3] at, float[2,4,3,3] mask) => (float[2,4,3,8] z) { r = RotaryEmbedding(x, cos, sin, at) "
      "z = Attention(r, x, x, mask) }",
      "cos 8 4;sin 8 4", "x 1/N@*;", 4, true },
    { "batches with angles and masks",
      "g (float[4,3,8] x, float[4,3,2] cos, float[4,3,2] sin, float[4,1,3,3] mask) => (float[4,3,8] z) { "
      "r = RotaryEmbedding <num_heads = 2> (x, cos, sin) z = Attention <q_num_heads = 2, kv_num_heads = 2> (r, x, x, mask) }",
      "", "x 0/N@*;", 4, true },
    { "heads in one axis",
      "g (float[2,3,16] x, float[4,3,3] mask) => (float[2,3,16] z) { r = RotaryEmbedding <num_heads = 4> (x, cos, sin) "
      "z = Attention <q_num_heads = 4, kv_num_heads = 4> (r, x, x, mask) }",
      "cos 2 3 2;sin 2 3 2", "x 2/N@*;", 2, true },
    { "the shape of what is split",
      "g (float[8,16] x) => (int64[2] s, float[16,8] y) { h = Exp(x) s = Shape(h) t = Shape <start = -1> (h) "
      "u = Shape <end = -1> (h) c = Concat <axis = 0> (t, u) y = Reshape(h, c) }",
      "", "x 0/N@*", 0, true },
    { "weights that are made", "g (float[4,16] x) => (float[4,24] y) { t = Transpose(w) y = MatMul(x, t) }", "w 24 16",
      ";t 1/N@*", 0, true },
    { "pieces joined and cut",
      "g (float[8,6] x) => (float[8,6] z) { a = Neg(x) c = Concat <axis = 1> (a, x) l, r = Split <axis = 1, num_outputs = 2> (c) "
      "z = Sub(l, r) }",
      "", "x 0/N@*", 0, true },
    { "stages of a pipeline",
      "g (float[4,16] x) => (float[4,5] z) { a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) d = Add(c, x) z = MatMul(d, u) }",
      "w 16 16;v 16 16;u 16 5", "stage 1;stage 1;stage 2;stage 2;stage 7", 0, true },
    { "stages that are split, too",
      "g (float[4,16] x) => (float[4,5] z) { a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) z = MatMul(c, u) }",
      "w 16 16;v 16 16;u 16 5", "stage 0 w 1/2@0,1;;stage 1 v 1/2@2,3;stage 1 u 0/2@2,3", 4, true },
    { "a result somewhere else", "g (float[4,16] x) => (float[4,16] y) { a = Exp(x) y = Neg(a) }", "", "x @1;a @2", 3,
      true },
    { "control flow",
      "g (float[4,16] x, float[4,16] u) => (float[4,16] y) { a = Exp(x) s = ReduceSum <keepdims = 0> (u) "
      "c = Less(s, z) z = Constant <value = float {0.0}> () y = If (c) <then_branch = t () => (float[4,16] p) { p = Neg(a) }, "
      "else_branch = e () => (float[4,16] q) { q = Abs(a) }> }",
      "", "x 1/N@*", 0, true },
    { "shapes that depend on data",
      "g (float[4,16] x) => (float[n] y) { a = Exp(x) b = Greater(a, o) o = Constant <value = float {1.0}> () "
      "y = Compress(a, d) f = Constant <value = int64[1] {-1}> () d = Reshape(b, f) }",
      "", "x 1/N@*", 0, true },
    { "heads with a cache",
      "g (float[2,1,16] q, float[2,1,8] k, float[2,1,8] v, float[2,2,5,4] pk, float[2,2,5,4] pv) => (float[2,1,16] y, "
      "float[2,2,6,4] nk, float[2,2,6,4] nv) { y, nk, nv = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v, , pk, pv) }",
      "", "k 2/2@0,1", 2, true },
    { "heads in an axis with a cache",
      "g (float[2,4,3,4] q, float[2,4,1,4] k, float[2,4,1,4] v, float[2,4,5,4] pk, float[2,4,5,4] pv) => (float[2,4,3,4] y, "
      "float[2,4,6,4] nk, float[2,4,6,4] nv, float[2,4,3,6] qk) { y, nk, nv, qk = Attention (q, k, v, , pk, pv) }",
      "", "q 1/N@*", 4, true },
    { "groups of heads with a cache and angles",
      "g (float[2,1,16] q, float[2,1,8] k, float[2,1,8] v, float[2,2,5,4] pk, float[2,2,5,4] pv, float[2,4,1,5] bias) => "
      "(float[2,1,16] y, float[2,2,5,4] nk, float[2,2,5,4] nv) { y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, "
      "kv_num_heads = 2, do_rotary = 1> (q, k, v, pk, pv, len, all, cos, sin, , bias, sink) " GROUP_LENGTHS "}",
      "cos 8 2;sin 8 2;sink 4", "k 2/2@0,1", 2, true },
    { "batches of groups of heads",
      "g (float[2,1,16] q, float[2,1,8] k, float[2,1,8] v, float[2,2,5,4] pk, float[2,2,5,4] pv, int64[2,1] at) => "
      "(float[2,1,16] y, float[2,2,5,4] nk, float[2,2,5,4] nv) { y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, "
      "kv_num_heads = 2, do_rotary = 1> (q, k, v, pk, pv, len, all, cos, sin, place) place = Abs(at) " GROUP_LENGTHS
      "}",
      "cos 9 2;sin 9 2", "q 0/2@0,1", 2, true },
    { "batches of groups of heads that are packed",
      "g (float[4,1,32] q, float[4,2,5,4] pk, float[4,2,5,4] pv) => "
      "(float[4,1,16] y, float[4,2,5,4] nk, float[4,2,5,4] nv) { y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, "
      "kv_num_heads = 2, do_rotary = 1> (q, , , pk, pv, len, all, cos, sin) "
      "len = Constant <value = int32[4] {4,3,4,2}> () all = Constant <value = int32 {5}> () }",
      "cos 8 2;sin 8 2", "q 0/N@*", 4, true },
    { "heads with layouts of blocks",
      "g (float[2,1,16] q, float[2,1,8] k, float[2,1,8] v, float[2,2,6,4] pk, float[2,2,6,4] pv) => "
      "(float[2,1,16] y, float[2,2,6,4] nk, float[2,2,6,4] nv) { y, nk, nv = com.microsoft.SparseAttention <num_heads = 4, "
      "kv_num_heads = 2, sparse_block_size = 2, do_rotary = 1> (q, k, v, pk, pv, row, col, all, len, cos, sin) "
      "row = Constant <value = int32[2,4] {0,1,2,4,0,1,3,6}> () col = Constant <value = int32[2,6] "
      "{0,1,0,2,-1,-1,0,0,1,0,1,2}> () len = Constant <value = int32[2] {5,4}> () all = Constant <value = int32 {5}> () }",
      "cos 8 2;sin 8 2", "q 2/2@0,1", 2, true },
    { "batches with layouts of blocks",
      "g (float[2,1,16] q, float[2,1,8] k, float[2,1,8] v, float[2,2,6,4] pk, float[2,2,6,4] pv) => "
      "(float[2,1,16] y, float[2,2,6,4] nk, float[2,2,6,4] nv) { y, nk, nv = com.microsoft.SparseAttention <num_heads = 4, "
      "kv_num_heads = 2, sparse_block_size = 2> (q, k, v, pk, pv, row, col, all, len) "
      "row = Constant <value = int32[1,4] {0,1,2,4}> () col = Constant <value = int32[1,4] {0,1,0,2}> () "
      "len = Constant <value = int32[2] {5,4}> () all = Constant <value = int32 {5}> () }",
      "", "q 0/2@0,1", 2, true },
    { "batches of attention with a projection",
      "g (float[8,3,12] x, float[2,8,2,2,4] past, float[8,1,3,5] s) => (float[8,3,8] z, float[2,8,2,5,4] present) { "
      "y, present = com.microsoft.Attention <num_heads = 2, unidirectional = 1> (x, w, b, mask, past, s) z = Exp(y) "
      "mask = Constant <value = int32[8] {5,4,5,3,5,5,2,5}> () }",
      "w 12 24;b 24", "x 0/N@*", 0, true },
    { "lengths and starts of attention",
      "g (float[4,3,12] x) => (float[4,3,8] y) { h = Abs(x) y = com.microsoft.Attention <num_heads = 2> (h, w, b, mask) "
      "mask = Constant <value = int32[8] {3,2,3,1,0,0,1,0}> () }",
      "w 12 24;b 24", "x 0/N@*;h 0/N@*", 2, true },
    { "columns of a fused product",
      "g (float[2,4,16] x) => (float[2,4,24] z) { y = com.microsoft.FusedMatMul <transB = 1, alpha = 0.5> (x, w) z = Relu(y) }",
      "w 24 16", "w 0/N@*;", 0, true },
    { "inner rows of a fused product",
      "g (float[2,16,4] x) => (float[2,4,24] y) { y = com.microsoft.FusedMatMul <transA = 1, transB = 1, alpha = 0.5> (x, w) }",
      "w 24 16", "x 1/N@* w 1/N@*", 0, true },
    { "rows of a turned product",
      "g (float[2,16,8] x) => (float[2,8,24] y) { y = com.microsoft.TransposeMatMul <transA = 1> (x, w) }", "w 16 24",
      "x 2/N@*", 0, true },
    { "a fused product whose batch is turned",
      "g (float[4,3,16] x) => (float[3,4,24] y) { h = Abs(x) y = com.microsoft.FusedMatMul <transBatchA = 1> (h, w) }",
      "w 16 24", "x 0/N@*;h 0/N@*", 2, true },
    { "many heads with a cache and scores",
      "g (float[2,3,16] q, float[2,3,16] k, float[2,3,16] v, float[2,4,5,4] pk, float[2,4,5,4] pv, float[1,4,3,8] s) => "
      "(float[2,3,16] y, float[2,4,8,4] nk, float[2,4,8,4] nv) { y, nk, nv = com.microsoft.MultiHeadAttention <num_heads = 4> "
      "(q, k, v, , , s, pk, pv) }",
      "", "q 2/N@*", 4, true },
    { "many heads packed",
      "g (float[2,3,4,3,4] q) => (float[2,3,16] y) { y = com.microsoft.MultiHeadAttention <num_heads = 4> (q) }", "",
      "q 2/N@*", 2, true },
    { "batches of many heads with a bias",
      "g (float[8,3,16] q, float[8,5,16] k, float[8,5,16] v) => (float[8,3,16] y) { y = com.microsoft.MultiHeadAttention "
      "<num_heads = 4> (q, k, v, b) }",
      "b 48", "q 0/N@*", 0, true },
    { "angles of com.microsoft",
      "g (float[2,3,16] x, int64[2,3] at) => (float[2,3,16] z) { y = com.microsoft.RotaryEmbedding (x, place, cos, sin) "
      "z = Exp(y) place = Abs(at) }",
      "cos 9 2;sin 9 2", "x 2/N@*", 4, true },
    { "columns of few bits",
      "g (float[2,3,64] x) => (float[2,3,8] y) { y = com.microsoft.MatMulNBits <K = 64, N = 8, block_size = 16> "
      "(x, bytes, scales, , , bias) }",
      "bytes 8 4 8b;scales 32;bias 8", "y 2/N@*", 4, true },
    { "columns that do not divide of few bits",
      "g (float[2,3,64] x) => (float[2,3,7] y) { y = com.microsoft.MatMulNBits <K = 64, N = 7, block_size = 16> "
      "(x, bytes, scales) }",
      "bytes 7 4 8b;scales 7 4", "y 2/N@*", 3, true },
    { "rows of few bits",
      "g (float[2,3,64] x) => (float[2,3,8] y) { y = com.microsoft.MatMulNBits <K = 64, N = 8, block_size = 16> "
      "(x, bytes, scales, zeros, , bias) }",
      "bytes 8 4 8b;scales 8 4;bias 8;zeros 8 2b", "x 2/N@* bytes 1/N@*", 2, true },
    { "rows of eight bits",
      "g (float[2,3,64] x) => (float[2,3,8] y) { y = com.microsoft.MatMulNBits <K = 64, N = 8, block_size = 16, bits = 8> "
      "(x, bytes, scales) }",
      "bytes 8 4 16b;scales 8 4", "x 2/N@* bytes 1/N@*", 4, true },
    { "what is skipped and normalized",
      "g (float[8,3,16] x, float[8,3,16] r) => (float[8,3,16] y, float[8,3,16] s) { "
      "y, , , s = com.microsoft.SkipSimplifiedLayerNormalization (x, r, g) }",
      "g 16", "x 0/N@*", 0, true },
    { "a bias before Gelu",
      "g (float[4,16] x) => (float[4,24] z) { y = MatMul(x, w) z = com.microsoft.BiasGelu (y, b) }", "w 16 24;b 24",
      "w 1/N@*;", 0, true },
    { "directions of a recurrent layer",
      "g (float[3,4,5] x) => (float[3,2,4,6] y, float[2,4,6] h, float[2,4,6] c) { y, h, c = LSTM <hidden_size = 6, direction = "
      "\"bidirectional\"> (x, w, r, b) }",
      "w 2 24 5;r 2 24 6;b 2 48", "w 0/N@*", 2, true },
    { "batches of a recurrent layer",
      "g (float[3,8,5] x, float[1,8,6] s) => (float[3,1,8,6] y, float[1,8,6] h) { y, h = GRU <hidden_size = 6> "
      "(x, w, r, b, , s) }",
      "w 1 18 5;r 1 18 6;b 1 36", "x 1/N@*", 0, true },
    { "both of a recurrent layer, the batch first",
      "g (float[4,3,5] x, float[4,2,6] s) => (float[4,3,2,6] y, float[4,2,6] h) { y, h = RNN <hidden_size = 6, layout = 1, "
      "direction = \"bidirectional\"> (x, w, r, , , s) }",
      "w 2 6 5;r 2 6 6", "x 0/2@{0+1},{2+3} w 0/2@{0+2},{1+3}", 4, true },
    { "nothing said", "g (float[4,16] x) => (float[4,24] y) { y = MatMul(x, w) }", "w 16 24", "", 0, false },
};

static void test_shard_run__ways(void **state)
{
    static const uint32_t numbers[] = { 1, 2, 3, 4, 8 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (has_operators(cases[i].graph) && (!cases[i].ranks || cases[i].ranks == numbers[k]))
                check_case(&cases[i], cases[i].ranks ? cases[i].ranks : numbers[k]);
}

/* ---- what goes wrong, and what is chosen ---- */

static const test_case simple = { "",        "g (float[4,16] x) => (float[4,24] y) { h = MatMul(x, w) y = Relu(h) }",
                                  "w 16 24", "x 1/2@0,1 w 0/2@0,1",
                                  2,         true };

/* Two ranks fail, one of them of this. */
static void fails(rank *ranks, onx_status status, const char *why)
{
    const char *said = "";
    run_ranks(ranks, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_not_equal(ranks[i].status, ONX_OK);
        if (ranks[i].status == status)
            said = ranks[i].error;
    }
    if (!strstr(said, why))
        fail_msg("\"%s\" is not \"%s\"", said, why);
    free_ranks(ranks, 2);
}

static void test_shard_run__faults(void **state)
{
    (void)state;
    onx_value *inputs[VALUES_MAX] = { NULL }, *longer[VALUES_MAX] = { NULL };
    onx_doc *doc = make(&simple, 2), *other;
    const int64_t dims[] = { 5, 16 };
    make_inputs(doc, inputs);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &longer[0]), ONX_OK);
    const rank good = { .doc = doc, .inputs = inputs, .options = { .timeout_ns = 20000000000 } };
    rank ranks[2] = { good, good };
    other = make(&simple, 2); /* has other weights */
    ranks[1].doc = other;
    fails(ranks, ONX_E_INVALID, "rank 1 has other weights than rank 0");
    ranks[0] = ranks[1] = good;
    ranks[1].inputs = longer;
    fails(ranks, ONX_E_INVALID, "rank 1 has inputs of other shapes than rank 0");
    ranks[0] = ranks[1] = good;
    ranks[1].options.configuration = "z";
    fails(ranks, ONX_E_NOT_FOUND, "no device configuration \"z\"");
    ranks[0] = ranks[1] = good;
    ranks[0].options.timeout_ns = 100000000; /* it goes on to a second run, and the other one does not */
    ranks[1].runs = 1;
    run_ranks(ranks, 2);
    assert_int_equal(ranks[0].status, ONX_E_LIMIT);
    assert_non_null(strstr(ranks[0].error, "rank 1 was waited for longer than 0.1 s"));
    free_ranks(ranks, 2);
    onx_doc_model(doc)->configuration[0]->num_devices = 3;
    ranks[0] = ranks[1] = good;
    fails(ranks, ONX_E_MISUSE, "is for 3 devices, and there are 2 ranks");
    onx_value_free(inputs[0]);
    onx_value_free(longer[0]);
    onx_doc_free(doc);
    onx_doc_free(other);
}

/* Outputs that are declared with fewer axes than they have: whatever comes of it, all ranks end, and say why. */
static void test_shard_run__declared(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!has_operators(cases[i].graph))
            continue;
        const uint32_t count = cases[i].ranks ? cases[i].ranks : 2;
        onx_value *inputs[VALUES_MAX] = { NULL };
        rank ranks[RANKS_MAX] = { 0 };
        onx_doc *doc = make(&cases[i], count);
        onx_tensor_shape *shape = onx_doc_model(doc)->graph->output[0]->type->tensor_type->shape;
        make_inputs(doc, inputs);
        while (shape->dim_count) {
            shape->dim_count--;
            for (uint32_t k = 0; k < count; k++)
                ranks[k] = (rank){ .doc = doc,
                                   .inputs = inputs,
                                   .options = { .configuration = "c", .timeout_ns = 10000000000 } };
            run_ranks(ranks, count);
            for (uint32_t k = 0; k < count; k++)
                assert_true(ranks[k].status == ONX_OK || ranks[k].error[0]);
            free_ranks(ranks, count);
        }
        for (uint32_t k = 0; k < VALUES_MAX; k++)
            onx_value_free(inputs[k]);
        onx_doc_free(doc);
    }
}

/* Models that differ from that of rank 0 in one thing that names and weights do not tell. */
/* A rank of another version of the library says so first. */
static void *say_another_version(void *user)
{
    rank *r = user;
    uint64_t facts[4] = { 1 }, verdict[2] = { 0 };
    uint32_t from;
    enum { TAG = 0x7ffffff0 };
    const onx_comm_part up = { 0, facts, sizeof facts }, down = { 0, verdict, sizeof verdict };
    r->status = r->comm.exchange(r->comm.user, TAG, &up, 1, NULL, 0, r->options.timeout_ns, &from);
    if (r->status == ONX_OK)
        r->status = r->comm.exchange(r->comm.user, TAG + 1, NULL, 0, &down, 1, r->options.timeout_ns, &from);
    return NULL;
}

static void test_shard_run__version(void **state)
{
    (void)state;
    onx_value *inputs[VALUES_MAX] = { NULL };
    onx_doc *doc = make(&simple, 2);
    make_inputs(doc, inputs);
    const rank good = { .doc = doc, .inputs = inputs, .options = { .timeout_ns = 10000000000 } };
    rank ranks[2] = { good, good };
    ranks[1].instead = say_another_version;
    run_ranks(ranks, 2);
    assert_int_equal(ranks[0].status, ONX_E_INVALID);
    assert_string_equal(ranks[0].error, "rank 1 has another version of the library than rank 0");
    free_ranks(ranks, 2);
    onx_value_free(inputs[0]);
    onx_doc_free(doc);
}

/* One byte of large weights is another one, wherever it is. */
static void test_shard_run__weights(void **state)
{
    (void)state;
    static const size_t places[] = { 0, 64, 123457, 200000 * 4 - 1 };
    const test_case c = { "",          "g (float[4,400] x) => (float[4,500] y) { y = MatMul(x, w) }",
                          "w 400 500", "w 1/2@0,1",
                          2,           true };
    onx_value *inputs[VALUES_MAX] = { NULL };
    onx_doc *doc = make(&c, 2);
    make_inputs(doc, inputs);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        onx_doc *other = make(&c, 2);
        onx_str bytes;
        assert_int_equal(onx_tensor_bytes(doc, onx_doc_model(doc)->graph->initializer[0], &bytes), ONX_OK);
        char *copy = malloc(bytes.len);
        assert_non_null(copy);
        memcpy(copy, bytes.ptr, bytes.len);
        copy[places[i]] = (char)(copy[places[i]] ^ 1);
        onx_doc_model(other)->graph->initializer[0] =
            onx_tensor_new(onx_doc_arena(other), ONX_FLOAT, (const int64_t[]){ 400, 500 }, 2, copy, "w");
        const rank good = { .doc = doc, .inputs = inputs, .options = { .timeout_ns = 10000000000 } };
        rank ranks[2] = { good, good };
        ranks[1].doc = other;
        fails(ranks, ONX_E_INVALID, "rank 1 has other weights than rank 0");
        free(copy);
        onx_doc_free(other);
    }
    onx_value_free(inputs[0]);
    onx_doc_free(doc);
}

static void test_shard_run__agree(void **state)
{
    (void)state;
    static const char graph[] =
        "g (float[4,16] x) => (float[4,16] y) { h = Softmax <axis = 1> (x) c = Constant <value = float "
        "{0.0}> () b = Less(s, c) s = ReduceSum <keepdims = 0> (h) y = If (b) <then_branch = t () => "
        "(float[4,16] p) { p = Neg(h) }, else_branch = e () => (float[4,16] q) { q = Abs(h) }> }";
    static const struct {
        const char *from, *to, *annotations;
        int64_t opset;
    } rows[] = { { "axis = 1", "axis = 0", "x 0/2@0,1", 23 },
                 { "{0.0}", "{1.0}", "x 0/2@0,1", 23 },
                 { "Neg(h)", "Exp(h)", "x 0/2@0,1", 23 },
                 { "float[4,16] x", "float[n,16] x", "x 0/2@0,1", 23 },
                 { "g", "g", "x 0/2@1,0", 23 },
                 { "g", "g", "x 0/2@0,1;;;;", 22 } };
    onx_value *inputs[VALUES_MAX] = { NULL };
    test_case one = { "", graph, "", "x 0/2@0,1", 2, true };
    onx_doc *doc = make(&one, 2);
    make_inputs(doc, inputs);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char changed[1024];
        const char *at = strstr(graph, rows[i].from);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - graph), graph, rows[i].to, at + strlen(rows[i].from));
        one.graph = changed;
        one.annotations = rows[i].annotations;
        onx_doc *other = make(&one, 2);
        ONX_SET(operator_set_id, onx_doc_model(other)->opset_import[0], version, rows[i].opset);
        rank ranks[2] = { { .doc = doc, .inputs = inputs }, { .doc = other, .inputs = inputs } };
        fails(ranks, ONX_E_INVALID, "rank 1 has another model than rank 0");
        onx_doc_free(other);
    }
    onx_value_free(inputs[0]);
    onx_doc_free(doc);
}

static void test_shard_run__configurations(void **state)
{
    (void)state;
    onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
    onx_doc *doc = make(&simple, 2);
    onx_value_difference d;
    uint64_t weights[2];
    configure(doc, "rows of x", "x 0/2@1,0", 2);
    make_inputs(doc, inputs);
    run_whole(doc, inputs, outputs);
    for (uint32_t k = 0; k < 2; k++) {
        rank ranks[2] = { { .doc = doc, .inputs = inputs }, { .doc = doc, .inputs = inputs } };
        ranks[0].options.configuration = ranks[1].options.configuration = k ? "rows of x" : "c";
        run_ranks(ranks, 2);
        assert_int_equal(ranks[0].status, ONX_OK);
        assert_true(onx_value_close(ranks[0].outputs[0], outputs[0], 1e-5, 1e-5, &d));
        weights[k] = ranks[0].summary.weight_bytes;
        assert_int_equal(ranks[0].summary.whole_bytes, 16 * 24 * 4);
        free_ranks(ranks, 2);
    }
    assert_int_equal(weights[0], 16 * 24 * 4 / 2);
    assert_int_equal(weights[1], 16 * 24 * 4);
    rank ranks[2] = { { .doc = doc, .inputs = inputs }, { .doc = doc, .inputs = inputs } };
    fails(ranks, ONX_E_MISUSE, "2 device configurations, one has to be chosen");
    onx_value_free(inputs[0]);
    onx_value_free(outputs[0]);
    onx_doc_free(doc);
}

static void test_shard_run__strict(void **state)
{
    (void)state;
    onx_value *inputs[VALUES_MAX] = { NULL };
    static const test_case odd = { "",  "g (float[4,16] x) => (float[4,16] y) { y = Softmax(x) }", "", "x 1/2@0,1", 2,
                                   true };
    onx_doc *doc = make(&odd, 2);
    make_inputs(doc, inputs);
    rank ranks[2] = { { .doc = doc, .inputs = inputs, .options = { .strict = true } },
                      { .doc = doc, .inputs = inputs, .options = { .strict = true } } };
    fails(ranks, ONX_E_UNSUPPORTED, "the node cannot be split like it");
    onx_value_free(inputs[0]);
    onx_doc_free(doc);
}

/* Columns of weights do not lie in one piece: they are put together where they are packed, and not held twice. */
static void test_shard_run__memory(void **state)
{
    (void)state;
    enum { WEIGHTS = 8 };
    static const long long slices = WEIGHTS * 256 * 256 * 4 / 2;
    test_case columns = { .name = "memory", .weights = "", .ranks = 2 };
    char graph[2048], weights[512] = "", annotations[512] = "";
    size_t at = 0;
    at += (size_t)snprintf(graph, sizeof graph, "g (float[4,256] x) => (float[4,256] y) {");
    for (int i = 0; i < WEIGHTS; i++) {
        char in[16] = "x", out[16] = "y";
        if (i)
            snprintf(in, sizeof in, "h%d", i);
        if (i + 1 < WEIGHTS)
            snprintf(out, sizeof out, "h%d", i + 1);
        at += (size_t)snprintf(graph + at, sizeof graph - at, "%s = MatMul(%s, w%d) ", out, in, i);
        snprintf(weights + strlen(weights), sizeof weights - strlen(weights), "%sw%d 256 256", i ? ";" : "", i);
        snprintf(annotations + strlen(annotations), sizeof annotations - strlen(annotations), "%sw%d 1/2@0,1",
                 i ? ";" : "", i);
    }
    snprintf(graph + at, sizeof graph - at, "}");
    columns.graph = graph;
    columns.weights = weights;
    columns.annotations = annotations;
    onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
    onx_value_difference d;
    onx_doc *doc = make(&columns, 2);
    counts taken[2] = { 0 };
    onx_allocator allocators[2];
    rank ranks[2];
    make_inputs(doc, inputs);
    run_whole(doc, inputs, outputs);
    for (uint32_t i = 0; i < 2; i++) {
        allocators[i] = (onx_allocator){ counted_resize, &taken[i] };
        ranks[i] = (rank){ .doc = doc, .inputs = inputs, .allocator = &allocators[i] };
    }
    run_ranks(ranks, 2);
    assert_int_equal(ranks[0].status, ONX_OK);
    assert_true(onx_value_close(ranks[0].outputs[0], outputs[0], 1e-4, 1e-4, &d));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(ranks[i].summary.weight_bytes, slices);
        assert_in_range(atomic_load(&taken[i].most), slices / 2, slices * 3 / 2);
    }
    free_ranks(ranks, 2);
    onx_value_free(inputs[0]);
    onx_value_free(outputs[0]);
    onx_doc_free(doc);
}

/* Once all is planned a rank takes no memory from its context for a run, however many there are. */
static void count_steps(const test_case *c, uint32_t count)
{
    onx_value *inputs[VALUES_MAX] = { NULL };
    onx_allocator allocators[RANKS_MAX];
    onx_doc *doc = make(c, count);
    unsigned long long calls[2][RANKS_MAX];
    make_inputs(doc, inputs);
    for (uint32_t pass = 0; pass < 2; pass++) {
        counts taken[RANKS_MAX] = { 0 };
        rank ranks[RANKS_MAX] = { 0 };
        for (uint32_t i = 0; i < count; i++) {
            allocators[i] = (onx_allocator){ counted_resize, &taken[i] };
            ranks[i] = (rank){ .doc = doc,
                               .inputs = inputs,
                               .allocator = &allocators[i],
                               .runs = pass ? 12 : 3,
                               .options = { .configuration = "c", .timeout_ns = 10000000000 } };
        }
        run_ranks(ranks, count);
        for (uint32_t i = 0; i < count; i++) {
            if (ranks[i].status != ONX_OK)
                fail_msg("%s: rank %u of %u: %s", c->name, i, count, ranks[i].error);
            calls[pass][i] = atomic_load(&taken[i].calls);
        }
        free_ranks(ranks, count);
    }
    for (uint32_t i = 0; i < count; i++)
        if (calls[0][i] != calls[1][i])
            fail_msg("%s: rank %u of %u takes memory %llu times in 3 runs, and %llu times in 12", c->name, i, count,
                     calls[0][i], calls[1][i]);
    for (uint32_t k = 0; k < VALUES_MAX; k++)
        onx_value_free(inputs[k]);
    onx_doc_free(doc);
}

static void test_shard_run__steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (has_operators(cases[i].graph) && !strstr(cases[i].graph, "If (") && !strstr(cases[i].graph, "Compress"))
            count_steps(&cases[i], cases[i].ranks ? cases[i].ranks : 2);
}

/* ---- computing while values are on their way ---- */

#define BRANCH(n) "a" n " = MatMul(x, w) b" n " = Relu(a" n ") c" n " = MatMul(b" n ", v) "
static const test_case overlaps[] = {
    { "sums of branches",
      "g (float[8,16] x) => (float[8,16] y) { " BRANCH("0") BRANCH("1") BRANCH("2") "y = Sum(c0, c1, c2) }",
      "w 16 24;v 24 16", "w 1/N@*;;v 0/N@*;w 1/N@*;;v 0/N@*;w 1/N@*;;v 0/N@*", 0, true },
    { "sums that go in halves", "g (float[7,256] x) => (float[7,256] y) { " BRANCH("0") BRANCH("1") "y = Sub(c0, c1) }",
      "w 256 16;v 16 256", "w 1/N@*;;v 0/N@*;w 1/N@*;;v 0/N@*", 0, true },
    { "large sums of branches",
      "g (float[256,512] x) => (float[256,512] y) { " BRANCH("0") BRANCH("1") "y = Sub(c0, c1) }", "w 512 16;v 16 512",
      "w 1/N@*;;v 0/N@*;w 1/N@*;;v 0/N@*", 0, true },
    { "shards that are gathered later",
      "g (float[8,16] x) => (float[8,16] y) { a = Exp(x) b = Tanh(x) c = Sin(b) d = Softmax <axis = 0> (a) y = Mul(c, d) }",
      "", "x 0/N@*;x 0/N@*", 0, true },
    { "sums of unequal groups that are needed later",
      "g (float[8,16] x) => (float[8,16] z) { y = MatMul(x, w) t = Tanh(x) s = Sin(t) z = Add(y, s) }", "w 16 16",
      "x 1/2@{0+1},2 w 0/2@{0+1},2", 3, true },
    { "stages with a way around",
      "g (float[4,16] x) => (float[4,16] z) { a = MatMul(x, w) b = Relu(a) c = Exp(b) d = Tanh(c) z = Add(b, d) }",
      "w 16 16", "stage 0;stage 0;stage 0;stage 0;stage 1", 2, true },
};

static void run_both_ways(const test_case *c, uint32_t count)
{
    onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
    rank ranks[2][RANKS_MAX] = { 0 };
    onx_value_difference d;
    uint32_t begun = 0, ended = 0;
    onx_doc *doc = make(c, count);
    make_inputs(doc, inputs);
    run_whole(doc, inputs, outputs);
    for (uint32_t apart = 0; apart < 2; apart++) {
        rank *r = ranks[apart];
        for (uint32_t i = 0; i < count; i++)
            r[i] = (rank){ .doc = doc,
                           .inputs = inputs,
                           .runs = 5,
                           .apart = apart,
                           .options = { .timeout_ns = 10000000000, .everywhere = true } };
        run_ranks(r, count);
        for (uint32_t i = 0; i < count; i++) {
            if (r[i].status != ONX_OK)
                fail_msg("%s: rank %u of %u: %s", c->name, i, count, r[i].error);
            if (!onx_value_close(r[i].outputs[0], outputs[0], 1e-4, 1e-4, &d))
                fail_msg("%s: rank %u of %u: %s %s", c->name, i, count, d.what, d.text);
            if (r[i].begun != r[i].ended || (apart && r[i].begun))
                fail_msg("%s: rank %u of %u begins %u and ends %u", c->name, i, count, r[i].begun, r[i].ended);
            begun += r[i].begun;
            ended += r[i].ended;
        }
    }
    if (!begun || begun != ended)
        fail_msg("%s: %u ranks: nothing overlaps", c->name, count);
    for (uint32_t i = 0; i < count; i++) {
        const onx_value *a = ranks[0][i].outputs[0], *b = ranks[1][i].outputs[0];
        assert_int_equal(ranks[0][i].summary.collectives, ranks[1][i].summary.collectives);
        assert_memory_equal(a->data, b->data, a->size);
        assert_memory_equal(a->data, ranks[0][0].outputs[0]->data, a->size);
    }
    free_ranks(ranks[0], count);
    free_ranks(ranks[1], count);
    onx_value_free(inputs[0]);
    onx_value_free(outputs[0]);
    onx_doc_free(doc);
}

/* The same bits as with one thing at a time, and no memory for a step. */
static void test_shard_run__overlap(void **state)
{
    static const uint32_t numbers[] = { 2, 3, 4, 8 };
    (void)state;
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (!overlaps[i].ranks || overlaps[i].ranks == numbers[k]) {
                run_both_ways(&overlaps[i], numbers[k]);
                count_steps(&overlaps[i], numbers[k]);
            }
}

/* A rank fails while values are on their way: nobody waits for long, and no memory is written that was given back. */
static void test_shard_run__overlap_fails(void **state)
{
    (void)state;
    const test_case c = {
        "an index in no table",
        "g (float[64,16] x, int64[2] at) => (float[64,16] y) { a = MatMul(x, w) b = Relu(a) c = MatMul(b, v) "
        "t = Exp(x) n = Gather(t, at) s = ReduceSum <keepdims = 0> (n) y = Add(c, s) }",
        "w 16 24;v 24 16",
        "w 1/2@0,1;;v 0/2@0,1",
        2,
        true
    };
    onx_value *inputs[2][VALUES_MAX] = { { NULL } };
    onx_doc *doc = make(&c, 2);
    rank ranks[2];
    for (uint32_t i = 0; i < 2; i++) {
        make_inputs(doc, inputs[i]);
        ((int64_t *)inputs[i][1]->data)[0] = i ? 64 : 0;
        ((int64_t *)inputs[i][1]->data)[1] = 0;
        ranks[i] =
            (rank){ .doc = doc, .inputs = inputs[i], .options = { .everywhere = true, .timeout_ns = 10000000000 } };
    }
    run_ranks(ranks, 2);
    assert_int_not_equal(ranks[1].status, ONX_OK);
    assert_true(ranks[1].begun > 0);
    free_ranks(ranks, 2);
    for (uint32_t i = 0; i < 4; i++)
        onx_value_free(inputs[i / 2][i % 2]);
    onx_doc_free(doc);
}

/* Nodes and functions of the domain that sharding writes are refused, wherever a model has them: kernels of these nodes
 * believe their attributes, and End... nodes what they are given. */
static void test_shard_run__nodes_of_its_own(void **state)
{
    static const char *const models[] = {
        "g (float[64] a, uint8[64] b) => (float[64] y) { y = onx.shard.EndSend <dtype: int = 1, from: ints = [64], "
        "to: ints = [64], tag: int = 5> (a, b) }",
        "g (float[64] a, bool c) => (float[64] y) { y = If (c) <then_branch = t () => (float[64] z) "
        "{ z = onx.shard.Slice <dtype: int = 1, from: ints = [64], to: ints = [1000], pieces: ints = [0]> (a) }, "
        "else_branch = e () => (float[64] z) { z = Identity (a) }> }",
        "g (float[64] a) => (float[64] y) { y = Neg (a) } "
        "<domain: \"onx.shard\", opset_import: [\"\": 23]> Slice (x) => (y) { y = Neg (x) }",
    };
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char text[1024];
        onx_doc *doc;
        rank ranks[2];
        snprintf(text, sizeof text, "<ir_version: 11, opset_import: [\"\": 23, \"onx.shard\": 1]> %s", models[i]);
        if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK)
            fail_msg("%zu: %.*s", i, ONX_ARG(onx_diag_get(cx, 0)->message));
        configure(doc, "c", "", 2);
        for (uint32_t k = 0; k < 2; k++)
            ranks[k] = (rank){ .doc = doc, .options = { .timeout_ns = 10000000000 } };
        run_ranks(ranks, 2);
        for (uint32_t k = 0; k < 2; k++)
            assert_int_equal(ranks[k].status, ONX_E_INVALID);
        free_ranks(ranks, 2);
        onx_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_run__nodes_of_its_own),
        cmocka_unit_test(test_shard_run__ways),
        cmocka_unit_test(test_shard_run__faults),
        cmocka_unit_test(test_shard_run__agree),
        cmocka_unit_test(test_shard_run__version),
        cmocka_unit_test(test_shard_run__weights),
        cmocka_unit_test(test_shard_run__configurations),
        cmocka_unit_test(test_shard_run__strict),
        cmocka_unit_test(test_shard_run__declared),
        cmocka_unit_test(test_shard_run__memory),
        cmocka_unit_test(test_shard_run__steps),
        cmocka_unit_test(test_shard_run__overlap),
        cmocka_unit_test(test_shard_run__overlap_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
