/* test_run_random.c - fast and plain kernels agree on models of random shapes, bits do not depend on threads, and NaN
 * or infinities that fast kernels would lose make a run start again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/run_random.h"

#include <math.h>

static char text[400000];

static void test_run_random__convolutions(void **state)
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

static void test_run_random__pools(void **state)
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

static void test_run_random__products(void **state)
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
static void test_run_random__parts_of_convolutions(void **state)
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

static void test_run_random__parts_of_products(void **state)
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
static void test_run_random__nan_starts_over(void **state)
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
            assert_int_equal(
                onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .threads = threads }, &fast), ONX_OK);
            assert_int_equal(onx_session_new(cx, doc, &(onx_session_options){ .verify = true, .plain = true }, &plain),
                             ONX_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_random__convolutions),      cmocka_unit_test(test_run_random__pools),
        cmocka_unit_test(test_run_random__products),          cmocka_unit_test(test_run_random__parts_of_convolutions),
        cmocka_unit_test(test_run_random__parts_of_products), cmocka_unit_test(test_run_random__nan_starts_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
