/* test_run_session.c - sessions: fast kernels agree with plain ones on random shapes, bits do not depend on threads,
 * plans follow the shapes of inputs, several threads share a session, failures are told and leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/check.h>
#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/text.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static onx_doc *parse(onx_ctx *cx, const char *text)
{
    onx_doc *doc;
    if (onx_text_parse(cx, ONX_KIND_MODEL, onx_str_of(text), 0, &doc) != ONX_OK) {
        char line[500];
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
        fail_msg("%s\n%s", line, text);
    }
    return doc;
}

static uint32_t seed_state = 1;
static uint32_t pick(uint32_t least, uint32_t most)
{
    seed_state = seed_state * 1664525u + 1013904223u;
    return least + (seed_state >> 8) % (most - least + 1);
}

static onx_value *random_floats(onx_ctx *cx, uint32_t rank, const int64_t *dims)
{
    onx_value *v;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, rank, dims, &v), ONX_OK);
    for (uint64_t i = 0; i < v->count; i++)
        ((float *)v->data)[i] = (float)pick(0, 2000) / 1000.0f - 1.0f;
    return v;
}

/* A model text with random initializers of the given dims: "float[2,3] w = {...}". */
static size_t add_initializer(char *at, size_t room, const char *name, uint32_t rank, const int64_t *dims)
{
    size_t n = (size_t)snprintf(at, room, "float[");
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        n += (size_t)snprintf(at + n, room - n, "%s%lld", i ? "," : "", (long long)dims[i]);
        count *= (uint64_t)dims[i];
    }
    n += (size_t)snprintf(at + n, room - n, "] %s = {", name);
    for (uint64_t i = 0; i < count; i++)
        n += (size_t)snprintf(at + n, room - n, "%s%.3f", i ? "," : "", (double)pick(0, 2000) / 1000.0 - 1.0);
    n += (size_t)snprintf(at + n, room - n, "}");
    assert_true(n < room);
    return n;
}

static onx_value *run_model(onx_ctx *cx, onx_doc *doc, const onx_value *const *inputs, bool plain, unsigned threads)
{
    onx_session *s;
    onx_value *out = NULL;
    onx_session_options options = { .threads = threads, .plain = plain };
    onx_status status = onx_session_new(cx, doc, &options, &s);
    if (status == ONX_OK)
        status = onx_session_run(s, cx, inputs, &out);
    if (status != ONX_OK) {
        char line[500];
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
        fail_msg("%s", line);
    }
    onx_session_free(s);
    return out;
}

static void agree(onx_ctx *cx, const char *text, const onx_value *const *inputs)
{
    onx_doc *doc = parse(cx, text);
    onx_value *fast = run_model(cx, doc, inputs, false, 1), *plain = run_model(cx, doc, inputs, true, 1);
    onx_value *fast3 = run_model(cx, doc, inputs, false, 3), *plain3 = run_model(cx, doc, inputs, true, 3);
    onx_value_difference d;
    if (!onx_value_close(fast, plain, 1e-3, 1e-4, &d))
        fail_msg("fast and plain differ at %llu: %s\n%.300s", (unsigned long long)d.index, d.text, text);
    if (!onx_value_close(plain3, plain, 0, 0, &d))
        fail_msg("three threads and one differ at %llu: %s\n%.300s", (unsigned long long)d.index, d.text, text);
    if (!onx_value_close(fast3, fast, 1e-5, 1e-6, &d))
        fail_msg("three threads and one differ, fast, at %llu: %s\n%.300s", (unsigned long long)d.index, d.text, text);
    onx_value_free(fast);
    onx_value_free(plain);
    onx_value_free(fast3);
    onx_value_free(plain3);
    onx_doc_free(doc);
}

static char text[400000];

static void test_run_session__convolutions(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    for (int round = 0; round < 40; round++) {
        uint32_t group = pick(1, 3), in = group * pick(1, 6), out = group * pick(1, 9), kh = pick(1, 3),
                 kw = pick(1, 3);
        int64_t x[] = { pick(1, 2), in, pick(5, 12), pick(5, 12) }, w[] = { out, in / group, kh, kw }, b[] = { out };
        int64_t w2[] = { pick(1, 20), out, 1, 1 };
        uint32_t sh = pick(1, 2), sw = pick(1, 2), dh = pick(1, 2), pads[4];
        for (int i = 0; i < 4; i++)
            pads[i] = pick(0, 1);
        int64_t oh = (x[2] + pads[0] + pads[2] - (kh - 1) * dh - 1) / sh + 1,
                ow = (x[3] + pads[1] + pads[3] - kw) / sw + 1;
        int64_t r[] = { x[0], out, oh, ow };
        size_t n = (size_t)snprintf(
            text, sizeof text,
            "<ir_version: 8, opset_import: [\"\" : 15]>\ng (float[%lld,%lld,%lld,%lld] x, float[%lld,%lld,%lld,%lld] r)"
            " => (float[A,B,C,D] y)\n<",
            (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3], (long long)r[0], (long long)r[1],
            (long long)r[2], (long long)r[3]);
        n += add_initializer(text + n, sizeof text - n, "w", 4, w);
        n += (size_t)snprintf(text + n, sizeof text - n, ", ");
        n += add_initializer(text + n, sizeof text - n, "b", 1, b);
        n += (size_t)snprintf(text + n, sizeof text - n, ", ");
        n += add_initializer(text + n, sizeof text - n, "w2", 4, w2);
        static const char *const bodies[] = {
            "a = Add (r, c) d = Relu (a) e = Conv (d, w2) y = MaxPool <kernel_shape = [1, 1]> (e)",
            "a = Relu (c) d = Relu (r) m = Sum (d, a) e = Conv (m, w2) y = Add (e, e)",
            "a = Relu (r) d = Add (c, a) f = Relu (d) e = Conv (f, w2) g = Conv (a, w2) y = Concat <axis = 1> (e, g)",
            "a = Sigmoid (c) d = GlobalAveragePool (a) e = Conv (d, w2) y = LeakyRelu <alpha = 0.1> (e)",
        };
        snprintf(
            text + n, sizeof text - n,
            ">\n{ c = Conv <group = %u, strides = [%u, %u], dilations = [%u, 1], pads = [%u, %u, %u, %u]> (x, w%s) %s }",
            group, sh, sw, dh, pads[0], pads[1], pads[2], pads[3], round % 3 ? ", b" : "", bodies[round % 4]);
        onx_value *inputs[] = { random_floats(cx, 4, x), random_floats(cx, 4, r) };
        agree(cx, text, (const onx_value *const *)inputs);
        onx_value_free(inputs[0]);
        onx_value_free(inputs[1]);
    }
    onx_ctx_free(cx);
}

static void test_run_session__pools(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    static const char *const kinds[] = { "MaxPool", "AveragePool", "AveragePool" };
    for (int round = 0; round < 60; round++) {
        int64_t x[] = { pick(1, 2), pick(1, 20), pick(4, 11), pick(4, 11) }, w[] = { x[1], x[1], 1, 1 };
        uint32_t k = pick(2, 4), pads[4];
        for (int i = 0; i < 4; i++)
            pads[i] = pick(0, 1);
        size_t n = (size_t)snprintf(
            text, sizeof text,
            "<ir_version: 8, opset_import: [\"\" : %u]>\ng (float[%lld,%lld,%lld,%lld] x) => (float[A,B,C,D] y)\n<",
            round % 2 ? 12 : 22, (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3]);
        n += add_initializer(text + n, sizeof text - n, "w", 4, w);
        snprintf(
            text + n, sizeof text - n,
            ">\n{ c = Conv (x, w) y = %s <kernel_shape = [%u, %u], strides = [%u, %u], pads = [%u, %u, %u, %u], ceil_mode = %u%s> (c) }",
            kinds[round % 3], k, pick(2, 4), pick(1, 3), pick(1, 3), pads[0], pads[1], pads[2], pads[3], pick(0, 1),
            round % 3 == 2 ? ", count_include_pad = 1" : "");
        onx_value *input = random_floats(cx, 4, x);
        agree(cx, text, (const onx_value *const[]){ input });
        onx_value_free(input);
    }
    onx_ctx_free(cx);
}

static void test_run_session__products(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    for (int round = 0; round < 40; round++) {
        int64_t m = pick(1, 9), k = pick(1, 40), n_ = pick(1, 40), batch = pick(1, 3);
        int64_t w[] = { k, n_ }, wt[] = { n_, k }, b[] = { n_ };
        bool gemm = round % 2, trans = round % 4 == 1;
        size_t n =
            gemm ? (size_t)snprintf(text, sizeof text,
                                    "<ir_version: 8, opset_import: [\"\" : 13]>\ng (float[M,K] x) => (float[A,B] y)\n<")
                 : (size_t)snprintf(
                       text, sizeof text,
                       "<ir_version: 8, opset_import: [\"\" : 13]>\ng (float[N,M,K] x) => (float[A,B,C] y)\n<");
        n += add_initializer(text + n, sizeof text - n, "w", 2, trans ? wt : w);
        n += (size_t)snprintf(text + n, sizeof text - n, ", ");
        n += add_initializer(text + n, sizeof text - n, "b", 1, b);
        if (gemm)
            snprintf(text + n, sizeof text - n, ">\n{ c = Gemm <transB = %d> (x, w, b) y = Relu (c) }", trans);
        else
            snprintf(text + n, sizeof text - n,
                     ">\n{ c = MatMul (x, w) d = Add (c, b) t = Transpose <perm = [0, 2, 1]> (d) y = MatMul (d, t) }");
        int64_t x[] = { batch, m, k };
        onx_value *input = gemm ? random_floats(cx, 2, x + 1) : random_floats(cx, 3, x);
        agree(cx, text, (const onx_value *const[]){ input });
        onx_value_free(input);
    }
    onx_ctx_free(cx);
}

/* Work that is worth several threads: fast kernels cut it into parts, by images, groups, channels, rows, columns. */
static void test_run_session__parts_of_convolutions(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    static const char *const bodies[] = { "y = Relu (c)", "y = Add (c, r)",
                                          "a = Add (r, c) d = Relu (a) y = Add (d, c)",
                                          "y = MaxPool <kernel_shape = [2, 2]> (c)" };
    static const int64_t shapes[][4] = { /* images, channels, results, groups */
                                         { 1, 16, 96, 1 },  { 1, 3, 48, 1 },   { 2, 16, 32, 1 }, { 3, 5, 7, 1 },
                                         { 1, 96, 96, 96 }, { 1, 32, 64, 32 }, { 1, 30, 30, 3 }, { 1, 12, 50, 1 }
    };
    for (uint32_t round = 0; round < sizeof shapes / sizeof *shapes * 4; round++) {
        const int64_t *s = shapes[round / 4];
        int64_t x[] = { s[0], s[1], 20, 24 }, r[] = { s[0], s[2], 20, 24 }, w[] = { s[2], s[1] / s[3], 3, 3 };
        size_t n = (size_t)snprintf(text, sizeof text,
                                    "<ir_version: 8, opset_import: [\"\" : 15]>\n"
                                    "g (float[A,B,C,D] x, float[E,F,G,H] r) => (float[I,J,K,L] y)\n<");
        n += add_initializer(text + n, sizeof text - n, "w", 4, w);
        n += (size_t)snprintf(text + n, sizeof text - n, ", ");
        n += add_initializer(text + n, sizeof text - n, "b", 1, &s[2]);
        snprintf(text + n, sizeof text - n, ">\n{ c = Conv <group = %lld, pads = [1, 1, 1, 1]> (x, w%s) %s }",
                 (long long)s[3], round % 3 ? ", b" : "", bodies[round % 4]);
        onx_value *inputs[] = { random_floats(cx, 4, x), random_floats(cx, 4, r) };
        agree(cx, text, (const onx_value *const *)inputs);
        onx_value_free(inputs[0]);
        onx_value_free(inputs[1]);
    }
    onx_ctx_free(cx);
}

static void test_run_session__parts_of_products(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    /* The same square weights are read in both directions. */
    static const char *const bodies[] = { "y = Gemm (x, w, b)", "y = Gemm <transB = 1> (x, w, b)",
                                          "a = Gemm <transB = 1> (x, w, b) c = MatMul (x, w) y = Add (a, c)",
                                          "c = MatMul (x, w) d = Add (c, x) y = Relu (d)" };
    static const int64_t rows[] = { 1, 2, 7, 48, 90 }, size[] = { 96, 96 };
    for (uint32_t round = 0; round < sizeof rows / sizeof *rows * 4; round++) {
        size_t n = (size_t)snprintf(
            text, sizeof text, "<ir_version: 8, opset_import: [\"\" : 15]>\ng (float[M,K] x) => (float[A,B] y)\n<");
        const int64_t x[] = { rows[round / 4], 96 };
        n += add_initializer(text + n, sizeof text - n, "w", 2, size);
        n += (size_t)snprintf(text + n, sizeof text - n, ", ");
        n += add_initializer(text + n, sizeof text - n, "b", 1, size);
        snprintf(text + n, sizeof text - n, ">\n{ %s }", bodies[round % 4]);
        onx_value *input = random_floats(cx, 2, x);
        agree(cx, text, (const onx_value *const[]){ input });
        onx_value_free(input);
    }
    static const int64_t shapes[][8] = {
        /* two values of the run: dims of the one, dims of the other */
        { 6, 8, 40, 48, 6, 8, 48, 40 }, { 1, 6, 40, 48, 1, 6, 48, 40 }, { 1, 1, 96, 64, 1, 1, 64, 96 },
        { 6, 1, 40, 48, 1, 8, 48, 40 }, { 1, 8, 40, 48, 6, 1, 48, 40 }, { 1, 6, 40, 48, 1, 1, 48, 40 },
        { 1, 1, 40, 48, 1, 6, 48, 40 },
    };
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        onx_value *inputs[] = { random_floats(cx, 4, shapes[i]), random_floats(cx, 4, shapes[i] + 4) };
        agree(cx,
              "<ir_version: 8, opset_import: [\"\" : 15]>\n"
              "g (float[A,B,C,D] a, float[E,F,G,H] b) => (float[I,J,K,L] y) { y = MatMul (a, b) }",
              (const onx_value *const *)inputs);
        onx_value_free(inputs[0]);
        onx_value_free(inputs[1]);
    }
    onx_ctx_free(cx);
}

/* ---- shapes, overrides, sharing ---- */

static const char chain[] =
    "<ir_version: 8, opset_import: [\"\" : 15]>\n"
    "g (float[N,M] x, float[1] bias = {1}) => (float[N,M] y, float[P] flat) {\n"
    "  a = Add (x, bias) b = Mul (a, a) y = Neg (b) s = Size (x)\n"
    "  zero = Constant <value_ints = [0]> () one = Unsqueeze (s, zero) flat = Reshape (b, one) }";

static void check_chain(onx_session *s, onx_ctx *cx, int64_t n, int64_t m, float bias)
{
    onx_value *x, *b = NULL, *out[2] = { NULL };
    int64_t dims[] = { n, m }, one = 1;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &x), ONX_OK);
    for (uint64_t i = 0; i < x->count; i++)
        ((float *)x->data)[i] = (float)i;
    if (bias != 1) {
        assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, &one, &b), ONX_OK);
        *(float *)b->data = bias;
    }
    for (int again = 0; again < 2; again++) { /* outputs are reused the second time */
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x, b }, out), ONX_OK);
        assert_int_equal(out[0]->rank, 2);
        assert_int_equal(out[0]->dims[0], n);
        assert_int_equal(out[1]->rank, 1);
        assert_int_equal(out[1]->dims[0], n * m);
        for (uint64_t i = 0; i < x->count; i++) {
            assert_true(((float *)out[0]->data)[i] == -((float)i + bias) * ((float)i + bias));
            assert_true(((float *)out[1]->data)[i] == ((float)i + bias) * ((float)i + bias));
        }
    }
    onx_value_free(out[0]);
    onx_value_free(out[1]);
    onx_value_free(x);
    onx_value_free(b);
}

static void test_run_session__shapes_and_overrides(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, chain);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    assert_true(onx_session_input(s, 0).required);
    assert_false(onx_session_input(s, 1).required);
    for (int round = 0; round < 3; round++)
        for (int64_t n = 0; n < 12; n++) /* more shapes than plans are kept for */
            check_chain(s, cx, n, 3, n % 3 ? 1.0f : 2.0f);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void *worker(void *session)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    for (int64_t i = 0; i < 60; i++)
        check_chain(session, cx, 1 + i % 11, 5, i % 2 ? 1.0f : 3.0f);
    onx_ctx_free(cx);
    return NULL;
}

static void test_run_session__many_threads(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, chain);
    onx_session *s;
    pthread_t threads[4];
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s), ONX_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- NaN ---- */

static void count_event(void *user, const onx_run_event *event)
{
    (void)event;
    ++*(unsigned *)user;
}

/* Nodes that run for this input, all starts counted. */
static unsigned count_nodes(onx_session *s, onx_ctx *cx, const onx_value *x, onx_value **y)
{
    unsigned count = 0;
    assert_int_equal(onx_session_run_with(s, cx, (const onx_value *const[]){ x }, y,
                                          &(onx_run_options){ .event = count_event, .user = &count }),
                     ONX_OK);
    return count;
}

/* What fast kernels would lose makes the run start over, also from inside of a loop, and again and again; finite data
 * never do. */
static void test_run_session__nan_starts_over(void **state)
{
    (void)state;
    static const char *const models[] = {
        "<ir_version: 8, opset_import: [\"\" : 15]>\n"
        "g (float[1,1,4,4] x) => (float[A,B,C,D] y) <float[1,1,1,1] w = {2}> {\n"
        "  c = Conv (x, w) y = Relu (c) }",
        "<ir_version: 8, opset_import: [\"\" : 15]>\n"
        "g (float[1,1,4,4] x) => (float[A,B,C,D] y) <float[1,1,1,1] w = {2}, float[1,1,1,1] v = {1}> {\n"
        "  a = Conv (x, v) b = Neg (a) c = Conv (x, w) d = Add (c, b) e = Relu (d)\n"
        "  y = MaxPool <kernel_shape = [2, 2]> (e) }",
        "<ir_version: 8, opset_import: [\"\" : 15]>\n"
        "g (float[1,1,4,4] x) => (float[A,B,C,D] y) <int64 n = {3}, bool go = {1}, float[4,4] w = "
        "{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}> {\n"
        "  y = Loop <body = step (int64 i, bool on, float[1,1,4,4] a) => (bool more, float[1,1,4,4] b) {\n"
        "    more = Identity (on) c = MatMul (a, w) b = Relu (c) }> (n, go, x) }",
    };
    const int64_t dims[] = { 1, 1, 4, 4 };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (unsigned threads = 1; threads < 3; threads++) {
            onx_doc *doc = parse(cx, models[i]);
            onx_session *fast, *plain;
            onx_value *x = random_floats(cx, 4, dims), *y = NULL, *want = NULL;
            onx_value_difference d;
            assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = threads }, &fast), ONX_OK);
            assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .plain = true }, &plain), ONX_OK);
            const unsigned once = count_nodes(fast, cx, x, &y);
            assert_int_equal(count_nodes(fast, cx, x, &y), once);
            ((float *)x->data)[6] = NAN;
            count_nodes(plain, cx, x, &want);
            for (int again = 0; again < 2; again++) {
                (void)count_nodes(fast, cx, x, &y);
                if (!onx_value_close(y, want, 1e-5, 1e-6, &d))
                    fail_msg("model %zu: fast and plain differ at %llu: %s", i, (unsigned long long)d.index, d.text);
            }
            ((float *)x->data)[6] = 1;
            assert_int_equal(count_nodes(fast, cx, x, &y), once);
            onx_value_free(x);
            onx_value_free(y);
            onx_value_free(want);
            onx_session_free(fast);
            onx_session_free(plain);
            onx_doc_free(doc);
        }
    onx_ctx_free(cx);
}

/* ---- custom kernels, failures ---- */

static onx_status twice_types(onx_prepare *p)
{
    return onx_prepare_output(p, 0, ONX_FLOAT, p->inputs[0]->rank, p->inputs[0]->dims);
}

static onx_status twice_prepare(onx_prepare *p)
{
    float *by = onx_arena_alloc(p->arena, sizeof *by);
    if (!by)
        return ONX_E_MEMORY;
    *by = onx_prepare_float(p, "by");
    p->params = by;
    return ONX_OK;
}

static onx_status twice_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    float by = *(const float *)work->params;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++)
        ((float *)work->outputs[0]->data)[i] = by * ((const float *)work->inputs[0]->data)[i];
    return ONX_OK;
}

static void test_run_session__own_kernel(void **state)
{
    (void)state;
    static const onx_kernel own[] = { { .op = "Times",
                                        .domain = "own",
                                        .since = 1,
                                        .dtypes = ONX_DTYPE_BIT(ONX_FLOAT),
                                        .prepare = twice_prepare,
                                        .run = twice_run,
                                        .types = twice_types },
                                      { 0 } };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(
        cx,
        "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 1]> g (float[2] x) => (float[2] y) { y = own.Times <by = 3.0> (x) }");
    onx_session *s;
    int64_t two = 2;
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_E_UNSUPPORTED);
    assert_null(s);
    onx_diag_clear(cx);
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .kernels = own }, &s), ONX_OK);
    onx_value *x = random_floats(cx, 1, &two), *y = NULL;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_true(((float *)y->data)[1] == 3 * ((float *)x->data)[1]);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static onx_status double_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    for (uint64_t i = 0; i < work->inputs[0]->count; i++)
        ((float *)work->outputs[0]->data)[i] = 2 * ((const float *)work->inputs[0]->data)[i];
    return ONX_OK;
}

/* ---- which rows are asked, and in which order ---- */

static onx_status fill(onx_work *work, float value)
{
    for (uint64_t i = 0; i < work->outputs[0]->count; i++)
        ((float *)work->outputs[0]->data)[i] = value;
    return ONX_OK;
}
/* A kernel that keeps a copy of its weight, as packing does. */
static onx_status copy_weight(void *user, const void *elements, uint64_t piece, void *out)
{
    const onx_value *w = user;
    assert_int_equal(piece, 0);
    memcpy(out, elements, w->size);
    return ONX_OK;
}

static onx_status weighted_prepare(onx_prepare *p)
{
    onx_value *w = (onx_value *)(uintptr_t)(const void *)p->inputs[1];
    const void *packed;
    const onx_packing job = {
        .input = 1, .key = "copy", .key_size = 4, .size = w->size, .make = copy_weight, .user = w
    };
    ONX_TRY(p->ops->packed(p, &job, &packed));
    p->params = (void *)(uintptr_t)packed;
    return ONX_OK;
}

static onx_status weighted_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return fill(work, *(const float *)work->params);
}

/* A weight that follows from the shape of the input is computed while planning and goes with the plan; what a kernel
 * made of it must not be taken for that of the next one, which may lie at the same place. */
static void test_run_session__weights_that_follow_from_shapes(void **state)
{
    (void)state;
    static const onx_kernel own[] = { { .op = "MatMul", .since = 1, .prepare = weighted_prepare, .run = weighted_run },
                                      { 0 } };
    enum { SIZES = 40 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15]>\n"
                             "g (float[N,64] x) => (float[N,64] y) <int64 zero = {0}, int64[2] square = {64, 64}> {\n"
                             "  s = Shape (x) n = Gather (s, zero) f = Cast <to = 1> (n) w = Expand (f, square)\n"
                             "  y = MatMul (x, w) }");
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .kernels = own }, &s), ONX_OK);
    for (int64_t n = 1; n <= SIZES; n++) {
        const int64_t dims[] = { n, 64 };
        onx_value *x = random_floats(cx, 2, dims), *y = NULL;
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        assert_true(*(const float *)y->data == (float)n);
        onx_value_free(x);
        onx_value_free(y);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static onx_status seven_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return fill(work, 7);
}
static onx_status eight_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return fill(work, 8);
}
static onx_status decline(onx_prepare *p)
{
    (void)p;
    return ONX_E_UNSUPPORTED;
}

/* What Relu-14 (or the operator of `registry`) makes of 3. */
static float answer(const onx_kernel *own, const onx_registry *registry, const char *domain)
{
    static const int64_t one = 1;
    char model[200];
    snprintf(model, sizeof model,
             "<ir_version: 8, opset_import: [\"\" : 15, \"own\" : 2]> g (float[1] x) => (float[1] y) { "
             "y = %s (x) }",
             domain);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_session *s;
    const onx_session_options options = { .kernels = own, .registry = registry };
    assert_int_equal(onx_session_new(cx, doc, &options, &s), ONX_OK);
    onx_value *x, *y = NULL;
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 1, &one, &x), ONX_OK);
    *(float *)x->data = 3;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    const float got = *(float *)y->data;
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return got;
}

static void test_run_session__own_kernels_are_asked_first(void **state)
{
    (void)state;
    /* without any preference, and of an older version than the built-in row */
    static const onx_kernel old[] = { { .op = "Relu", .since = 1, .preference = -5, .run = seven_run }, { 0 } };
    static const onx_kernel none[] = { { .op = "Relu", .since = 15, .run = seven_run }, { 0 } };
    static const onx_kernel refuses[] = { { .op = "Relu", .since = 1, .prepare = decline, .run = seven_run }, { 0 } };
    /* of two alike the first; neither memory nor qsort decides */
    static const onx_kernel twins[] = { { .op = "Relu", .since = 6, .run = eight_run },
                                        { .op = "Relu", .since = 6, .run = seven_run },
                                        { 0 } };
    static const onx_kernel better[] = { { .op = "Relu", .since = 6, .run = eight_run },
                                         { .op = "Relu", .since = 6, .preference = 1, .run = seven_run },
                                         { 0 } };
    static const onx_kernel newer[] = { { .op = "Relu", .since = 6, .run = eight_run, .preference = 9 },
                                        { .op = "Relu", .since = 14, .run = seven_run },
                                        { 0 } };
    assert_true(answer(old, NULL, "Relu") == 7);
    assert_true(answer(none, NULL, "Relu") == 3);
    assert_true(answer(refuses, NULL, "Relu") == 3);
    assert_true(answer(twins, NULL, "Relu") == 8);
    assert_true(answer(better, NULL, "Relu") == 7);
    assert_true(answer(newer, NULL, "Relu") == 7);
}

static onx_status same_type(void *user, onx_op_call *call)
{
    (void)user;
    const int64_t one = 1;
    return onx_op_call_set(call, 0, ONX_FLOAT, &one, 1);
}

static void test_run_session__own_kernels_are_asked_before_registered_ones(void **state)
{
    (void)state;
    static const onx_op_port ports[] = { { "X", "tensor(float)", 0 }, { 0 } };
    static const onx_kernel registered[] = { { .op = "F", .domain = "own", .since = 1, .run = eight_run }, { 0 } };
    static const onx_kernel own[] = { { .op = "F", .domain = "own", .since = 1, .run = seven_run }, { 0 } };
    static const onx_kernel others[] = { { .op = "G", .domain = "own", .since = 1, .run = seven_run },
                                         { .op = "F", .since = 1, .run = seven_run },
                                         { 0 } };
    const onx_op_def def = { .name = "F",
                             .domain = "own",
                             .since = 1,
                             .inputs = ports,
                             .outputs = ports,
                             .infer = same_type,
                             .kernel = registered };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_registry *registry;
    assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
    assert_int_equal(onx_op_register(registry, &def), ONX_OK);
    assert_true(answer(NULL, registry, "own.F") == 8);
    assert_true(answer(own, registry, "own.F") == 7);
    assert_true(answer(others, registry, "own.F") == 8);
    onx_registry_free(registry);
    onx_ctx_free(cx);
}

/* A kernel of one's own for an operator is run also where a fast kernel could do the built-in one in passing; what
 * takes a result as a bound is not done on the result. */
static void test_run_session__post_operations_are_those_of_the_row(void **state)
{
    (void)state;
    static const onx_kernel own[] = {
        { .op = "Relu", .since = 1, .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .preference = 1, .run = double_run }, { 0 }
    };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 15]>\n"
                             "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 0, 0, 1}> {\n"
                             "  c = MatMul (x, w) y = Relu (c) }");
    onx_session *s;
    const int64_t dims[] = { 2, 2 };
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .kernels = own }, &s), ONX_OK);
    onx_value *x = random_floats(cx, 2, dims), *y = NULL;
    ((float *)x->data)[1] = -1.5f;
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
    assert_true(((float *)y->data)[1] == -3.0f);
    onx_value_free(x);
    onx_value_free(y);
    onx_session_free(s);
    onx_doc_free(doc);

    onx_value *v[] = { random_floats(cx, 1, dims), random_floats(cx, 1, dims) };
    agree(cx,
          "<ir_version: 8, opset_import: [\"\" : 15]>\n"
          "g (float[N] a, float[N] b) => (float y) <float k = {-9}> { m = MatMul (a, b) y = Clip (k, m) }",
          (const onx_value *const *)v);
    onx_value_free(v[0]);
    onx_value_free(v[1]);
    onx_ctx_free(cx);
}

static void refuse(const char *model, onx_status want, uint64_t memory)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, model);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .memory = memory, .strict = true }, &s), want);
    assert_null(s);
    assert_true(onx_diag_total(cx, ONX_ERROR) > 0);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_session__refusals(void **state)
{
    (void)state;
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Add (x, z) z = Neg (x) }",
           ONX_E_INVALID, 0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Neg (y) }", ONX_E_INVALID,
           0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { z = Neg (x) }", ONX_E_INVALID,
           0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = NoSuchOperator (x) }",
           ONX_E_INVALID, 0);
    refuse("<ir_version: 8, opset_import: [\"\" : 15]> g (float[2] x) => (float[2] y) { y = Add (x) }", ONX_E_INVALID,
           0);
    refuse(
        "<ir_version: 8, opset_import: [\"\" : 15]> g (int64[2] x = {1000000, 1000000}) => (float[A,B] y) { y = ConstantOfShape (x) }",
        ONX_E_LIMIT, 1 << 20);
    refuse(
        "<ir_version: 8, opset_import: [\"\" : 15]> g (int64[2] x = {4611686018427387904, 4}) => (float[A,B] y) { y = ConstantOfShape (x) }",
        ONX_E_LIMIT, 0);
    refuse(
        "<ir_version: 8, opset_import: [\"\" : 15]> g (float[1000,1000] x) => (float[A,B] y) { a = Exp (x) b = Exp (a) y = MatMul (a, b) }",
        ONX_E_LIMIT, 1 << 20);
    refuse("<ir_version: 8, opset_import: [\"\" : 15, \"f\" : 1]> g (float[2] x) => (float[2] y) { y = f.f (x) }"
           "<domain: \"f\", opset_import: [\"f\" : 1]> f (a) => (b) { b = f.f (a) }",
           ONX_E_INVALID, 0);
}

/* The checker wants shapes of a model's inputs; a run needs none, because values bring theirs. */
static void test_run_session__no_declared_shape(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, "<ir_version: 8, opset_import: [\"\" : 17]> g (float x) => (float y) { y = Neg (x) }");
    onx_graph *g = onx_doc_model(doc)->graph;
    g->input[0]->type->tensor_type->shape = NULL;
    g->output[0]->type->tensor_type->shape = NULL;
    onx_check_options check = { .only = (const char *const[]){ "G-09" }, .only_count = 1 };
    assert_int_equal(onx_check(cx, doc, &check, NULL), ONX_E_INVALID);
    onx_diag_clear(cx);
    onx_session *s;
    assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s), ONX_OK);
    for (int64_t n = 1; n < 4; n++) {
        onx_value *x = random_floats(cx, 1, &n), *y = NULL;
        assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x }, &y), ONX_OK);
        assert_true(y->rank == 1 && y->dims[0] == n);
        onx_value_free(x);
        onx_value_free(y);
    }
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

static void test_run_session__wrong_inputs(void **state)
{
    (void)state;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = parse(cx, chain);
    onx_session *s;
    int64_t dims[] = { 2, 2, 2 };
    onx_value *out[2] = { NULL }, *x = random_floats(cx, 3, dims), *i;
    assert_int_equal(onx_value_new_tensor(cx, ONX_INT64, 2, dims, &i), ONX_OK);
    assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_OK);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ NULL, NULL }, out), ONX_E_MISUSE);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ x, NULL }, out), ONX_E_INVALID);
    assert_int_equal(onx_session_run(s, cx, (const onx_value *const[]){ i, NULL }, out), ONX_E_INVALID);
    check_chain(s, cx, 2, 2, 1);
    onx_value_free(x);
    onx_value_free(i);
    onx_session_free(s);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* ---- every allocation fails in turn ---- */

static long left;
static void *failing(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user, (void)old_size;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return left-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void test_run_session__out_of_memory(void **state)
{
    (void)state;
    onx_ctx *good = onx_ctx_new(NULL);
    onx_doc *doc = parse(good, chain);
    int64_t dims[] = { 2, 2 };
    onx_value *x = random_floats(good, 2, dims);
    bool done = false;
    for (long n = 0; n < 400 && !done; n++) {
        left = n;
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ failing, NULL });
        if (!cx)
            continue;
        onx_session *s;
        onx_value *out[2] = { NULL };
        onx_status status = onx_session_new(cx, doc, &(onx_session_options){ .threads = 1 }, &s);
        if (status == ONX_OK)
            status = onx_session_run(s, cx, (const onx_value *const[]){ x, NULL }, out);
        assert_true(status == ONX_OK || status == ONX_E_MEMORY);
        done = status == ONX_OK;
        onx_value_free(out[0]);
        onx_value_free(out[1]);
        onx_session_free(s);
        onx_ctx_free(cx);
    }
    assert_true(done);
    onx_value_free(x);
    onx_doc_free(doc);
    onx_ctx_free(good);
}

/* Also where the shape of the output depends on data, so that the kernel is prepared by every run anew. */
static void test_run_session__attributes_are_checked_while_planning(void **state)
{
    (void)state;
    static const char *const models[] = {
        "<ir_version: 8, opset_import: [\"\" : 17]> g (string[1] x) => (string[?] y) {"
        " y = StringNormalizer <case_change_action = \"TITLE\"> (x) }",
        "<ir_version: 8, opset_import: [\"ai.onnx.ml\" : 1]> g (float[1,3] x) => (seq(map(int64, float)) y) {"
        " y = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2]> (x) }",
        "<ir_version: 8, opset_import: [\"ai.onnx.ml\" : 1]> g (float[1,1] x) => (int64[1] a, float[1,?] b) {"
        " a, b = ai.onnx.ml.SVMClassifier <classlabels_ints = [5, 6], coefficients = [1.0], rho = [0.1]> (x) }",
    };
    onx_ctx *cx = onx_ctx_new(NULL);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        onx_doc *doc = parse(cx, models[i]);
        onx_session *s;
        assert_int_equal(onx_session_new(cx, doc, NULL, &s), ONX_E_INVALID);
        onx_session_free(s);
        onx_doc_free(doc);
        onx_diag_clear(cx);
    }
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_session__convolutions),
        cmocka_unit_test(test_run_session__pools),
        cmocka_unit_test(test_run_session__products),
        cmocka_unit_test(test_run_session__parts_of_convolutions),
        cmocka_unit_test(test_run_session__parts_of_products),
        cmocka_unit_test(test_run_session__shapes_and_overrides),
        cmocka_unit_test(test_run_session__many_threads),
        cmocka_unit_test(test_run_session__nan_starts_over),
        cmocka_unit_test(test_run_session__own_kernel),
        cmocka_unit_test(test_run_session__weights_that_follow_from_shapes),
        cmocka_unit_test(test_run_session__own_kernels_are_asked_first),
        cmocka_unit_test(test_run_session__own_kernels_are_asked_before_registered_ones),
        cmocka_unit_test(test_run_session__post_operations_are_those_of_the_row),
        cmocka_unit_test(test_run_session__refusals),
        cmocka_unit_test(test_run_session__wrong_inputs),
        cmocka_unit_test(test_run_session__out_of_memory),
        cmocka_unit_test(test_run_session__no_declared_shape),
        cmocka_unit_test(test_run_session__attributes_are_checked_while_planning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
