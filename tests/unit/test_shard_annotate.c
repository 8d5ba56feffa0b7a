/* test_shard_annotate.c - models annotated by the library: every method and mesh gives the results of the whole model,
 * weights are divided as they should be, and the checker finds nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/shard.h>
#include <onx/text.h>

#include "context.h"
#include "shard_ranks.h"

/* ---- models ---- */

typedef struct subject {
    const char *name;
    const char *graph;   /* as text, without weights */
    const char *weights; /* "w 4 6;b 6" */
    uint32_t tensor;     /* how many parts weights may have */
    double share;        /* of the weights that each of two devices has, at most */
    uint32_t sums;       /* collectives of each of two ranks that split weights, at most */
    uint32_t notes;      /* that operators have no sharding in the standard */
    uint32_t outputs;    /* each of which is put together */
} subject;

#define HEADS(x, y) "r" x " = Reshape(" x ", hs) t" x " = Transpose <perm = [0,2," y "]> (r" x ") "
/* Attention as exporters write it out, and a perceptron, both with what goes around them. */
#define LAYER(x, y, n)                                                                                                 \
    "a" n " = LayerNormalization(" x ", g, e) q0" n " = MatMul(a" n ", wq" n ") q" n " = Add(q0" n ", bq) k" n         \
    " = MatMul(a" n ", wk" n ") v" n " = MatMul(a" n ", wv" n ") " HEADS("q" n, "1,3") HEADS("k" n, "3,1")             \
        HEADS("v" n, "1,3") "s" n " = MatMul(tq" n ", tk" n ") d" n " = Mul(s" n ", half) m" n " = Add(d" n            \
                            ", mask) p" n " = Softmax(m" n ") o" n " = MatMul(p" n ", tv" n ") u" n                    \
                            " = Transpose <perm = [0,2,1,3]> (o" n ") f" n " = Reshape(u" n ", fs) z" n                \
                            " = MatMul(f" n ", wo" n ") h" n " = Add(z" n ", " x ") c" n " = LayerNormalization(h" n   \
                            ", g, e) i" n " = MatMul(c" n ", wi" n ") j" n " = Add(i" n ", bi) l" n " = Gelu(j" n      \
                            ") y" n " = MatMul(l" n ", wu" n ") w" n " = Add(y" n ", be) " y " = Add(w" n ", h" n ") "
#define LAYER_WEIGHTS(n) ";wq" n " 16 16;wk" n " 16 16;wv" n " 16 16;wo" n " 16 16;wi" n " 16 64;wu" n " 64 16"

static const subject subjects[] = {
    { "an encoder, written out",
      "g (int64[B,3] ids, float[B,1,1,3] mask) => (float[B,3,40] logits) { x0 = Gather(table, ids) " LAYER("x0", "x1",
                                                                                                           "0")
          LAYER("x1", "x2",
                "1") "n = LayerNormalization(x2, g, e) logits = MatMul(n, head) "
                     "hs = Constant <value = int64[4] {0,0,4,4}> () fs = Constant <value = int64[3] {0,0,16}> () "
                     "half = Constant <value = float {0.5}> () }",
      "table 40 16;head 16 40;g 16;e 16;bq 16;bi 64;be 16" LAYER_WEIGHTS("0") LAYER_WEIGHTS("1"), 4, 0.54, 6, 0, 1 },
    { "a decoder with caches, groups of heads and angles",
      "g (float[B,2,16] x, float[B,2,P,4] pk, float[B,2,P,4] pv, int64[B,2] at) => (float[B,2,16] y, float[B,2,Q,4] nk, "
      "float[B,2,Q,4] nv) { n = RMSNormalization(x, g) q = MatMul(n, wq) k = MatMul(n, wk) v = MatMul(n, wv) "
      "rq = RotaryEmbedding <num_heads = 4> (q, cos, sin, at) rk = RotaryEmbedding <num_heads = 2> (k, cos, sin, at) "
      "o, nk, nv = Attention <q_num_heads = 4, kv_num_heads = 2> (rq, rk, v, , pk, pv) z = MatMul(o, wo) h = Add(z, x) "
      "c = RMSNormalization(h, g) gate = MatMul(c, w1) s = Sigmoid(gate) t = Mul(gate, s) up = MatMul(c, w3) "
      "m = Mul(t, up) d = MatMul(m, w2) y = Add(d, h) }",
      "g 16;wq 16 16;wk 16 8;wv 16 8;wo 16 16;w1 16 48;w3 16 48;w2 48 16;cos 16 2;sin 16 2", 2, 0.52, 4, 0, 3 },
    { "shapes taken from values",
      "g (float[B,4,16] x) => (float[B,4,16] z) { q = MatMul(x, w) s = Shape(q) b = Gather(s, zero) n = Gather(s, one) "
      "c = Concat <axis = 0> (b, n, four, four) r = Reshape(q, c) t = Transpose <perm = [0,2,1,3]> (r) "
      "k = Transpose <perm = [0,1,3,2]> (t) a = MatMul(t, k) p = Softmax(a) o = MatMul(p, t) "
      "u = Transpose <perm = [0,2,1,3]> (o) f = Concat <axis = 0> (b, n, minus) y = Reshape(u, f) z = MatMul(y, v) "
      "zero = Constant <value = int64[1] {0}> () one = Constant <value = int64[1] {1}> () "
      "four = Constant <value = int64[1] {4}> () minus = Constant <value = int64[1] {-1}> () }",
      "w 16 16;v 16 16", 4, 0.54, 1, 0, 1 },
    { "a perceptron",
      "g (float[B,16] x) => (float[B,10] y) { a = Gemm(x, w, b) r = Relu(a) c = Gemm <transB = 1> (r, v, d) "
      "s = Tanh(c) e = Gemm(s, u) y = Softmax(e) }",
      "w 16 32;b 32;v 24 32;d 24;u 24 10", 4, 0.6, 3, 0, 1 },
    { "convolutions with a way around",
      "g (float[B,3,8,8] x) => (float[B,10] z) { a = Conv <pads = [1,1,1,1]> (x, w0, b0) b = BatchNormalization(a, s, o, m, v) "
      "c = Relu(b) d = MaxPool <kernel_shape = [2,2], strides = [2,2]> (c) e = Conv <pads = [1,1,1,1]> (d, w1) f = Relu(e) "
      "g = Conv <pads = [1,1,1,1]> (f, w2) h = Add(g, d) i = Relu(h) j = Conv <group = 8, pads = [1,1,1,1]> (i, w3) "
      "k = GlobalAveragePool(j) l = Flatten(k) z = MatMul(l, u) }",
      "w0 8 3 3 3;b0 8;s 8;o 8;m 8;v 8;w1 12 8 3 3;w2 8 12 3 3;w3 8 1 3 3;u 8 10", 4, 0.52, 4, 8, 1 },
    { "a decoder of com.microsoft with weights of few bits",
      "g (float[B,2,32] x, float[B,2,P,8] pk, float[B,2,P,8] pv) => (float[B,2,32] y, float[B,2,P,8] nk, float[B,2,P,8] nv) "
      "{ n = SimplifiedLayerNormalization(x, g) q = com.microsoft.MatMulNBits <K = 32, N = 32, block_size = 16> (n, aq, sq) "
      "k = com.microsoft.MatMulNBits <K = 32, N = 16, block_size = 16> (n, ak, sk) "
      "v = com.microsoft.MatMulNBits <K = 32, N = 16, block_size = 16> (n, av, sv) "
      "o, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, do_rotary = 1> "
      "(q, k, v, pk, pv, len, all, cos, sin) z = com.microsoft.MatMulNBits <K = 32, N = 32, block_size = 16> (o, ao, so) "
      "c, , , h = com.microsoft.SkipSimplifiedLayerNormalization(z, x, g) "
      "up = com.microsoft.MatMulNBits <K = 32, N = 64, block_size = 16> (c, au, su) r = com.microsoft.QuickGelu(up) "
      "d = com.microsoft.MatMulNBits <K = 64, N = 32, block_size = 16> (r, ad, sd) y = Add(d, h) "
      "len = Constant <value = int32[8] {7,7,7,7,7,7,7,7}> () all = Constant <value = int32 {8}> () }",
      "g 32;sq 64;sk 32;sv 32;so 64;su 128;sd 128;cos 16 4;sin 16 4;aq 32 2 8b;ak 16 2 8b;av 16 2 8b;ao 32 2 8b;"
      "au 64 2 8b;ad 32 4 8b",
      2, 0.56, 4, 40, 3 },
};

static onx_doc *make(const subject *c)
{
    random_state = 1; /* the same numbers, whichever models come before */
    return make_model(c->name, 10, c->graph, c->weights);
}

/* ---- what is checked ---- */

static void check_rules(onx_doc *doc, const subject *c)
{
    static const char *const only[] = { "D", "V", "G" };
    const onx_check_options options = { .flags = ONX_CHECK_FULL, .only = only, .only_count = 3 };
    onx_check_summary found;
    onx_diag_clear(cx);
    assert_int_equal(onx_check(cx, doc, &options, &found), ONX_OK);
    for (size_t i = 0; i < onx_diag_count(cx); i++)
        if (!onx_str_is(onx_str_of(onx_diag_get(cx, i)->rule), "D-21"))
            fail_msg("%s: %s: %.*s", c->name, onx_diag_get(cx, i)->rule, ONX_ARG(onx_diag_get(cx, i)->message));
    assert_true(found.notes <= c->notes);
    onx_diag_clear(cx);
}

/* What is predicted of memory and messages is what ranks then have and get. */
static void check_forecast(const subject *c, const onx_doc *doc, const rank *ranks, uint32_t count)
{
    static const onx_infer_fixed fixed[] = { { "B", 8 }, { "P", 8 } };
    const onx_shard_predict_options o = { .count = count,
                                          .configuration = onx_view(onx_doc_model(doc)->configuration[0]->name),
                                          .fixed = fixed,
                                          .fixed_count = 2 };
    onx_shard_forecast f[RANKS_MAX];
    uint64_t told = 0, got = 0;
    assert_int_equal(onx_shard_predict(cx, doc, &o, f), ONX_OK);
    for (uint32_t i = 0; i < count; i++) {
        const onx_shard_summary *s = &ranks[i].summary;
        told += f[i].receive_bytes;
        got += s->receive_bytes;
        if (f[i].weight_bytes > s->weight_bytes + 512 || s->weight_bytes > f[i].weight_bytes + 512)
            fail_msg("%s: rank %u of %u has %llu bytes of weights, not %llu", c->name, i, count,
                     (unsigned long long)s->weight_bytes, (unsigned long long)f[i].weight_bytes);
        assert_true(f[i].seconds > 0 && f[i].compute_seconds > 0 && f[i].nodes > 0);
        assert_true(f[i].compute_seconds + f[i].wait_seconds <= f[i].seconds * 1.001);
    }
    if (told * 4 > got * 5 || got * 4 > told * 5)
        fail_msg("%s: %u ranks get %llu bytes, not %llu", c->name, count, (unsigned long long)got,
                 (unsigned long long)told);
}

static void compare(const subject *c, const onx_shard_annotate_options *o, uint32_t count, onx_shard_summary *summary)
{
    onx_value *inputs[VALUES_MAX] = { NULL }, *outputs[VALUES_MAX] = { NULL };
    rank ranks[RANKS_MAX] = { 0 };
    onx_doc *doc = make(c);
    make_inputs(doc, inputs);
    run_whole(doc, inputs, outputs);
    if (onx_shard_annotate(cx, doc, o) != ONX_OK)
        fail_msg("%s: %.*s", c->name, ONX_ARG(onx_diag_get(cx, onx_diag_count(cx) - 1)->message));
    check_rules(doc, c);
    for (uint32_t i = 0; i < count; i++)
        ranks[i] = (rank){ .doc = doc, .inputs = inputs, .options = { .strict = true, .timeout_ns = 20000000000 } };
    run_ranks(ranks, count);
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i].status != ONX_OK)
            fail_msg("%s: rank %u of %u: %s", c->name, i, count, ranks[i].error);
    for (uint32_t k = 0; k < onx_doc_model(doc)->graph->output_count; k++) {
        onx_value_difference d;
        if (!onx_value_close(ranks[0].outputs[k], outputs[k], 1e-4, 1e-5, &d))
            fail_msg("%s: %u ranks, output %u: %s %s", c->name, count, k, d.what, d.text);
    }
    check_forecast(c, doc, ranks, count);
    for (uint32_t i = 0; i < count; i++)
        summary[i] = ranks[i].summary;
    free_ranks(ranks, count);
    for (uint32_t k = 0; k < VALUES_MAX; k++) {
        onx_value_free(inputs[k]);
        onx_value_free(outputs[k]);
    }
    onx_doc_free(doc);
}

static void test_shard_annotate__weights(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (!has_operators(subjects[i].graph))
            continue;
        for (uint32_t n = 2; n <= subjects[i].tensor; n *= 2) {
            const onx_shard_annotate_options o = { .tensor = n };
            onx_shard_summary s[RANKS_MAX];
            compare(&subjects[i], &o, n, s);
            for (uint32_t r = 0; r < n; r++)
                if ((double)s[r].weight_bytes >
                    (double)s[r].whole_bytes * (subjects[i].share * 2 - 1 + (2 - subjects[i].share * 2) / n))
                    fail_msg("%s: rank %u of %u has %llu bytes of %llu", subjects[i].name, r, n,
                             (unsigned long long)s[r].weight_bytes, (unsigned long long)s[r].whole_bytes);
            if (n == 2 && s[0].collectives > subjects[i].sums)
                fail_msg("%s: %u collectives", subjects[i].name, s[0].collectives);
        }
    }
}

/* Queries, keys and values that are one product: it is made apart, so that each device has its heads. */
#define PACKED_TYPES                                                                                                   \
    "g (float[2,2,32] x, float[2,24,6,16] pk, float[2,24,6,16] pv) => (float[2,2,32] y, float[2,24,6,16] nk, "         \
    "float[2,24,6,16] nv) { "
#define PACKED_LENGTHS " len = Constant <value = int32[2] {5,3}> () all = Constant <value = int32 {6}> () "
#define PACKED_ATTENTION                                                                                               \
    "o, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 24, kv_num_heads = 24, do_rotary = 1> "                \
    "(p, , , pk, pv, len, all, cos, sin) "
static const subject packed[] = {
    { "few bits",
      PACKED_TYPES
      "p = com.microsoft.MatMulNBits <K = 32, N = 1152, block_size = 16> (x, aq, sq, zq, , bq) " PACKED_ATTENTION
      "z = com.microsoft.MatMulNBits <K = 384, N = 32, block_size = 16> (o, ao, so) "
      "y = Mul(z, tenth) tenth = Constant <value = float {0.1}> ()" PACKED_LENGTHS "}",
      "aq 1152 2 8b;sq 2304;zq 1152b;bq 1152;ao 32 24 8b;so 768;cos 16 8;sin 16 8", 8, 0.54, 3, 0, 3 },
    { "a product and what is added",
      PACKED_TYPES "t = MatMul(x, w) p = Add(b, t) " PACKED_ATTENTION "y = MatMul(o, wo)" PACKED_LENGTHS "}",
      "w 32 1152;b 1152;wo 384 32;cos 16 8;sin 16 8", 8, 0.52, 3, 0, 3 },
    { "a projection and attention of many heads",
      "g (float[2,3,32] x, float[2,1,3,3] scores) => (float[2,3,32] y) { a = com.microsoft.Attention <num_heads = 24, "
      "unidirectional = 1> (x, w, b, , , scores) y = MatMul(a, wo) }",
      "w 32 1152;b 1152;wo 384 32", 8, 0.52, 1, 0, 1 },
    { "a projection with sizes, and a mask",
      "g (float[2,3,32] x, int64[2,3] given) => (float[2,3,32] y) <int32[2,3] mask> { mask = Cast <to = 6> (given) "
      "a = com.microsoft.Attention <num_heads = 24, scale = 0.3, qkv_hidden_sizes = [384,384,192]> (x, w, , mask) "
      "y = MatMul(a, wo) }",
      "w 32 960;wo 192 32", 8, 0.52, 1, 0, 1 },
    { "a bias of many heads",
      "g (float[2,3,32] x) => (float[2,3,32] y) { q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) "
      "a = com.microsoft.MultiHeadAttention <num_heads = 24> (q, k, v, b) y = MatMul(a, wo) }",
      "wq 32 384;wk 32 384;wv 32 384;b 1152;wo 384 32", 8, 0.52, 1, 0, 1 },
    { "more queries than keys",
      "g (float[2,2,32] x, float[2,8,6,16] pk, float[2,8,6,16] pv) => (float[2,2,32] y, float[2,8,6,16] nk, "
      "float[2,8,6,16] nv) { p = MatMul(x, w) o, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 24, "
      "kv_num_heads = 8> (p, , , pk, pv, len, all) y = MatMul(o, wo)" PACKED_LENGTHS "}",
      "w 32 640;wo 384 32", 8, 0.52, 3, 0, 3 },
};

static void test_shard_annotate__packed(void **state)
{
    static const uint32_t numbers[] = { 2, 3, 4, 8 };
    (void)state;
    for (size_t i = 0; i < sizeof packed / sizeof *packed && has_operators(packed[i].graph); i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            const uint32_t n = numbers[k];
            const onx_shard_annotate_options o = { .tensor = n };
            onx_shard_summary s[RANKS_MAX];
            if (n == 3 && strstr(packed[i].graph, "kv_num_heads = 8"))
                continue;
            compare(&packed[i], &o, n, s);
            for (uint32_t r = 0; r < n; r++)
                if ((double)s[r].weight_bytes > (double)s[r].whole_bytes * (packed[i].share - 0.5 + 1.0 / n))
                    fail_msg("%s: rank %u of %u has %llu bytes of %llu", packed[i].name, r, n,
                             (unsigned long long)s[r].weight_bytes, (unsigned long long)s[r].whole_bytes);
            if (s[0].collectives > packed[i].sums)
                fail_msg("%s: %u collectives", packed[i].name, s[0].collectives);
        }
}

/* Columns that others read, too, stay together, and so do those that are of no use by themselves. */
static void test_shard_annotate__packed_stay(void **state)
{
    static const subject stay = {
        "packed columns that are an output",
        "g (float[2,2,32] x, float[2,8,6,16] pk, float[2,8,6,16] pv) => (float[2,2,32] y, float[2,2,640] p) { p = MatMul(x, w) "
        "o, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 24, kv_num_heads = 8> (p, , , pk, pv, len, all) "
        "y = MatMul(o, wo)" PACKED_LENGTHS "}",
        "w 32 640;wo 384 32",
        2,
        1,
        4,
        0,
        2
    };
    const onx_shard_annotate_options split = { .tensor = 2 }, whole = { .data = 2 };
    onx_shard_summary s[RANKS_MAX];
    (void)state;
    if (!has_operators(stay.graph))
        return;
    compare(&stay, &split, 2, s);
    onx_doc *doc = make(&packed[1]);
    const uint32_t nodes = onx_doc_model(doc)->graph->node_count;
    assert_int_equal(onx_shard_annotate(cx, doc, &whole), ONX_OK);
    assert_int_equal(onx_doc_model(doc)->graph->node_count, nodes);
    onx_doc_free(doc);
}

static void test_shard_annotate__batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (!has_operators(subjects[i].graph))
            continue;
        for (uint32_t n = 2; n <= 4; n++) {
            const onx_shard_annotate_options o = { .data = n };
            onx_shard_summary s[RANKS_MAX];
            compare(&subjects[i], &o, n, s);
            /* Outputs alone are put together. */
            if (s[0].collectives > subjects[i].outputs)
                fail_msg("%s: %u collectives", subjects[i].name, s[0].collectives);
        }
    }
}

static void test_shard_annotate__stages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (!has_operators(subjects[i].graph))
            continue;
        for (uint32_t n = 2; n <= 4; n++) {
            const onx_shard_annotate_options o = { .pipeline = n };
            onx_shard_summary s[RANKS_MAX];
            uint64_t all = 0;
            compare(&subjects[i], &o, n, s);
            for (uint32_t r = 0; r < n; r++) {
                all += s[r].weight_bytes;
                if (!s[r].nodes || (n == 2 && s[r].weight_bytes * 10 > s[r].whole_bytes * 9))
                    fail_msg("%s: stage %u of %u has %u nodes, %llu bytes", subjects[i].name, r, n, s[r].nodes,
                             (unsigned long long)s[r].weight_bytes);
            }
            if (all * 10 > s[0].whole_bytes * 13)
                fail_msg("%s: %u stages have %llu bytes of %llu", subjects[i].name, n, (unsigned long long)all,
                         (unsigned long long)s[0].whole_bytes);
        }
    }
}

static void test_shard_annotate__meshes(void **state)
{
    (void)state;
    static const onx_shard_annotate_options meshes[] = { { .data = 2, .tensor = 2 },
                                                         { .pipeline = 2, .tensor = 2 },
                                                         { .pipeline = 2, .data = 2 },
                                                         { .pipeline = 2, .data = 2, .tensor = 2 } };
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (!has_operators(subjects[i].graph))
            continue;
        for (size_t k = 0; k < sizeof meshes / sizeof *meshes; k++) {
            const onx_shard_annotate_options *o = &meshes[k];
            onx_shard_summary s[RANKS_MAX];
            if ((i == 2 || i == 4) && o->pipeline && o->tensor)
                continue; /* one region from the beginning to the end */
            compare(&subjects[i], o, (o->pipeline ? 2u : 1u) * (o->data ? 2u : 1u) * (o->tensor ? 2u : 1u), s);
        }
    }
}

/* ---- the choice ---- */

typedef struct seen {
    uint32_t count, pipelines;
    double best;
} seen;

static void note_trial(void *user, const onx_shard_trial *t)
{
    seen *s = user;
    s->count++;
    s->pipelines += t->pipeline == 4;
    s->best = t->fits && (s->best == 0 || t->seconds < s->best) ? t->seconds : s->best;
    assert_int_equal(t->pipeline * t->data * t->tensor, 4);
}

static void test_shard_annotate__choice(void **state)
{
    (void)state;
    static const onx_infer_fixed fixed[] = { { "B", 8 } };
    onx_doc *doc = make(&subjects[0]);
    seen s = { 0 };
    onx_shard_trial best, other;
    onx_shard_choose_options o = { .devices = 4, .fixed = fixed, .fixed_count = 1, .tried = note_trial, .user = &s };
    assert_int_equal(onx_shard_choose(cx, doc, &o, &best), ONX_OK);
    assert_int_equal(s.count, 6);
    assert_int_equal(s.pipelines, 1);
    assert_true(best.seconds == s.best && best.fits);
    assert_int_equal(best.data, 4); /* nothing has to be sent but outputs */
    assert_int_equal(onx_doc_model(doc)->configuration_count, 0);
    /* With memory for no more than a part of the weights these are split. */
    o.memory = best.memory_bytes * 3 / 5;
    assert_int_equal(onx_shard_choose(cx, doc, &o, &other), ONX_OK);
    assert_true(other.data < 4 && other.memory_bytes <= o.memory && other.seconds >= best.seconds);
    o.memory = 64;
    assert_int_equal(onx_shard_choose(cx, doc, &o, &other), ONX_E_UNSUPPORTED);
    o.devices = 1;
    assert_int_equal(onx_shard_choose(cx, doc, &o, &other), ONX_E_MISUSE);
    onx_diag_clear(cx);
    onx_doc_free(doc);
}

static void test_shard_annotate__machine(void **state)
{
    (void)state;
    onx_doc *doc = make(&subjects[0]);
    onx_shard_machine m;
    onx_shard_forecast slow[2], fast[2], alone;
    const onx_shard_annotate_options two = { .tensor = 2 };
    assert_int_equal(onx_shard_measure(cx, NULL, &m), ONX_OK);
    assert_true(m.cache > 1e6 && m.operations > 1e6 && m.bandwidth > 1e6 && m.link > 1e6 && m.latency > 0 &&
                m.latency < 1 && m.passes > 0 && m.shared > 1e6);
    assert_int_equal(onx_shard_annotate(cx, doc, &two), ONX_OK);
    onx_shard_predict_options o = { .count = 2,
                                    .configuration = onx_str_of("tensor2"),
                                    .machine = { .latency = 1e-3 } };
    assert_int_equal(onx_shard_predict(cx, doc, &o, slow), ONX_OK);
    o.machine.latency = 1e-6;
    assert_int_equal(onx_shard_predict(cx, doc, &o, fast), ONX_OK);
    assert_true(slow[0].wait_seconds > 100 * fast[0].wait_seconds);
    assert_true(slow[0].compute_seconds == fast[0].compute_seconds);
    o.count = 1;
    assert_int_equal(onx_shard_predict(cx, doc, &o, fast), ONX_E_MISUSE);
    o.configuration = onx_str_of("");
    assert_int_equal(onx_shard_predict(cx, doc, &o, &alone), ONX_OK);
    assert_int_equal(alone.collectives, 0);
    assert_true(alone.weight_bytes > slow[0].weight_bytes && alone.compute_seconds > slow[0].compute_seconds);
    o.configuration = onx_str_of("none");
    assert_int_equal(onx_shard_predict(cx, doc, &o, &alone), ONX_E_NOT_FOUND);
    onx_diag_clear(cx);
    onx_doc_free(doc);
}

/* Weights are read by each device that has them, whatever it does of the rows; for many rows as often as the machine
 * says. */
static void test_shard_annotate__weights_take_time(void **state)
{
    (void)state;
    static const struct {
        const char *graph;
        onx_shard_annotate_options how;
        const char *name;
        double seconds, passes, shared; /* of the machine; 0: not measured */
    } rows[] = {
        { "g (float[1,256] x) => (float[1,512] y) { y = MatMul(x, w) }", { 0 }, "", 1, 0, 0 },
        { "g (float[4,256] x) => (float[4,512] y) { y = MatMul(x, w) }", { 0 }, "", 1.75, 0, 0 },
        { "g (float[8,256] x) => (float[8,512] y) { y = MatMul(x, w) }", { .data = 2 }, "data2", 1.875, 0, 0 },
        { "g (float[8,256] x) => (float[8,512] y) { y = MatMul(x, w) }", { .tensor = 2 }, "tensor2", 1.875 / 2, 0, 0 },
        { "g (float[8,256] x) => (float[8,512] y) { y = MatMul(x, w) }",
          { .tensor = 2 },
          "tensor2",
          1.875,
          0,
          256 * 256 * sizeof(float) },
        { "g (float[4,256] x) => (float[4,512] y) { y = MatMul(x, w) }", { 0 }, "", 0.625, 0.5, 0 },
        { "g (float[1,256] x) => (float[1,512] y) { y = MatMul(x, w) }", { 0 }, "", 1, 0.5, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const subject one = { .name = "weights", .graph = rows[i].graph, .weights = "w 256 512" };
        onx_doc *doc = make(&one);
        onx_shard_forecast f[2];
        if (*rows[i].name)
            assert_int_equal(onx_shard_annotate(cx, doc, &rows[i].how), ONX_OK);
        const onx_shard_predict_options o = { .count = 2,
                                              .configuration = onx_str_of(rows[i].name),
                                              .machine = { .operations = 1e20,
                                                           .bandwidth = 256 * 512 * sizeof(float),
                                                           .cache = 1e20,
                                                           .passes = rows[i].passes,
                                                           .shared = rows[i].shared } };
        assert_int_equal(onx_shard_predict(cx, doc, &o, f), ONX_OK);
        assert_true(f[0].compute_seconds > 0.999 * rows[i].seconds && f[0].compute_seconds < 1.001 * rows[i].seconds);
        onx_doc_free(doc);
    }
}

/* What no device can hold is the largest number, not a small one. */
static void test_shard_annotate__huge(void **state)
{
    (void)state;
    enum { VALUES = 8400, ROOM = 64 * VALUES };
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t at = (size_t)snprintf(
        text, ROOM,
        "<ir_version: 10, opset_import: [\"\": 23]> g (double[16777216,16777215] x) => (double[16777216,16777215] y) {");
    for (int i = 0; i < VALUES; i++)
        at += (size_t)snprintf(text + at, ROOM - at, "h%d = Abs(x) ", i);
    at += (size_t)snprintf(text + at, ROOM - at, "y = Sum(h0");
    for (int i = 1; i < VALUES; i++)
        at += (size_t)snprintf(text + at, ROOM - at, ",h%d", i);
    snprintf(text + at, ROOM - at, ") }");
    onx_doc *doc;
    onx_shard_forecast f;
    assert_int_equal(onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    assert_int_equal(onx_shard_predict(cx, doc, &(onx_shard_predict_options){ .count = 1 }, &f), ONX_OK);
    assert_true(f.value_bytes == UINT64_MAX);
    onx_doc_free(doc);
    free(text);
}

static void refuse(const subject *c, const onx_shard_annotate_options *o, onx_status status, const char *why)
{
    onx_doc *doc = make(c);
    onx_diag_clear(cx);
    assert_int_equal(onx_shard_annotate(cx, doc, o), status);
    if (!memmem(onx_diag_get(cx, 0)->message.ptr, onx_diag_get(cx, 0)->message.len, why, strlen(why)))
        fail_msg("\"%.*s\" is not \"%s\"", ONX_ARG(onx_diag_get(cx, 0)->message), why);
    onx_diag_clear(cx);
    onx_doc_free(doc);
}

static void test_shard_annotate__refused(void **state)
{
    (void)state;
    static const subject plain = { "", "g (float[3] x) => (float[3] y) { y = Exp(x) }", "", 1, 1, 0, 0, 1 };
    refuse(&plain, &(onx_shard_annotate_options){ .tensor = 1 }, ONX_E_MISUSE, "2 to 4096 devices");
    refuse(&plain, &(onx_shard_annotate_options){ .tensor = 65536, .data = 65536 }, ONX_E_MISUSE, "2 to 4096 devices");
    refuse(&plain, &(onx_shard_annotate_options){ .tensor = 2 }, ONX_E_UNSUPPORTED,
           "no weights that 2 devices can share");
    refuse(&plain, &(onx_shard_annotate_options){ .data = 4 }, ONX_E_UNSUPPORTED, "no first axis of an input");
    refuse(&plain, &(onx_shard_annotate_options){ .pipeline = 2 }, ONX_E_UNSUPPORTED, "cannot be cut into 2 stages");
    onx_doc *doc = make(&subjects[3]);
    const onx_shard_annotate_options o = { .tensor = 2 };
    assert_int_equal(onx_shard_annotate(cx, doc, &o), ONX_OK);
    assert_int_equal(onx_doc_model(doc)->ir_version, 11);
    assert_true(onx_str_is(onx_view(onx_doc_model(doc)->configuration[0]->name), "tensor2"));
    assert_int_equal(onx_shard_annotate(cx, doc, &o), ONX_E_INVALID);
    /* A second one beside it. */
    const onx_shard_annotate_options other = { .data = 3, .configuration = onx_str_of("other") };
    assert_int_equal(onx_shard_annotate(cx, doc, &other), ONX_OK);
    check_rules(doc, &subjects[3]);
    onx_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_annotate__weights),
        cmocka_unit_test(test_shard_annotate__packed),
        cmocka_unit_test(test_shard_annotate__packed_stay),
        cmocka_unit_test(test_shard_annotate__batch),
        cmocka_unit_test(test_shard_annotate__stages),
        cmocka_unit_test(test_shard_annotate__meshes),
        cmocka_unit_test(test_shard_annotate__refused),
        cmocka_unit_test(test_shard_annotate__choice),
        cmocka_unit_test(test_shard_annotate__huge),
        cmocka_unit_test(test_shard_annotate__machine),
        cmocka_unit_test(test_shard_annotate__weights_take_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
