/* test_kernel_ml_lanes.c - linear models and support vector machines, row by row and with rows side by side: more and
 * fewer rows, features, classes and vectors than are computed at a time, and every way to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/variants.h"

enum { ULPS = 64 }; /* sums have another order, and those of floats are floats */

static const char *const ends[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
static const char *const curves[] = { "LINEAR", "POLY", "RBF", "SIGMOID" };
static const onx_dtype types[] = { ONX_FLOAT, ONX_DOUBLE, ONX_INT64, ONX_INT32 };
static const char *const type_names[] = { "float", "double", "int64", "int32" };
static const int64_t batches[] = { 1, 15, 16, 17, 700 };
static const int64_t widths[] = { 1, 4, 10, 16, 21, 40, 131, 300 };
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Multiples of 1/8 from -2 to 2, and few of them that are not finite. */
static onx_value *rows_of(source *s, unsigned type, int64_t rows, int64_t columns, bool odd)
{
    onx_value *x = tensor(types[type], 2, (int64_t[]){ rows, columns });
    for (uint64_t i = 0; i < x->count; i++) {
        double v = (double)below(s, 33) / 8 - 2;
        if (odd && type < 2 && below(s, 50) == 0)
            v = below(s, 2) ? NAN : INFINITY;
        onx_convert(types[type], (char *)x->data + i * (onx_dtype_bits(types[type]) / 8), ONX_DOUBLE, &v, 1, true);
    }
    return x;
}

static void begin(writer *w, unsigned type, int64_t columns, const char *outputs)
{
    w->len = 0;
    add(w, "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 1]>\ng (%s[N, %lld] x) => (%s) {\n ",
        type_names[type], (long long)columns, outputs);
}

static void add_numbers(writer *w, source *s, const char *name, uint32_t count, unsigned range)
{
    LIST(w, name, count, "%.4f", ((double)below(s, 2 * range + 1) - (double)range) / 16);
}

static void check(const writer *w, const char *op, onx_value *x)
{
    assert_string_not_equal(compare_any(w, op, (const onx_value *const[]){ x }, ULPS), "plain");
    onx_value_free(x);
}

static void test_kernel_ml_lanes__linear_models_are_the_same(void **state)
{
    static writer w;
    source s = { 1 };
    (void)state;
    for (unsigned turn = 0; turn < 80; turn++) {
        const unsigned type = turn % 4;
        const int64_t columns = widths[below(&s, WIDTHS)];
        const uint32_t scores = 1 + below(&s, 36);
        begin(&w, type, columns, "float[N, T] y");
        add(&w, "y = ai.onnx.ml.LinearRegressor <targets = %u, ", scores);
        if (below(&s, 2))
            add_numbers(&w, &s, "intercepts", scores, 16);
        add_numbers(&w, &s, "coefficients", scores * (uint32_t)columns, 16);
        add(&w, "post_transform = \"%s\"> (x)\n}\n", ends[below(&s, 4)]);
        check(&w, "LinearRegressor", rows_of(&s, type, batches[turn % 5], columns, turn % 3 == 0));
        begin(&w, type, columns, "int64[N] l, float[N, T] y");
        add(&w, "l, y = ai.onnx.ml.LinearClassifier <");
        LIST(&w, "classlabels_ints", scores == 1 ? 2 : scores, "%u", 10 + i);
        add_numbers(&w, &s, "intercepts", scores, 16);
        add_numbers(&w, &s, "coefficients", scores * (uint32_t)columns, 16);
        add(&w, "post_transform = \"%s\"> (x)\n}\n", ends[below(&s, 4)]);
        check(&w, "LinearClassifier", rows_of(&s, type, batches[turn % 5], columns, false));
    }
}

/* Sums of many floats that have to be rounded, none of which cancel. */
static void test_kernel_ml_lanes__long_sums_are_accurate(void **state)
{
    static writer w;
    source s = { 4 };
    (void)state;
    for (unsigned turn = 0; turn < 12; turn++) {
        const int64_t columns = 100 + below(&s, 900), rows = batches[turn % 5];
        const uint32_t scores = 1 + below(&s, 20);
        onx_value *x = tensor(ONX_FLOAT, 2, (int64_t[]){ rows, columns });
        for (uint64_t i = 0; i < x->count; i++)
            ((float *)x->data)[i] = between(&s, 0.1f, 1);
        begin(&w, 0, columns, "float[N, T] y");
        add(&w, "y = ai.onnx.ml.LinearRegressor <targets = %u, ", scores);
        LIST(&w, "coefficients", scores * (uint32_t)columns, "%.7f", (double)between(&s, 0.1f, 1));
        add(&w, "post_transform = \"NONE\"> (x)\n}\n");
        check(&w, "LinearRegressor", x);
    }
}

/* A sum whose parts exceed the range of floats is finite, and the sums of other rows are the same as without it. */
static void test_kernel_ml_lanes__parts_of_sums_may_be_large(void **state)
{
    static writer w;
    (void)state;
    for (unsigned end = 0; end < 2; end++) {
        onx_value *x = tensor(ONX_FLOAT, 2, (int64_t[]){ 20, 3 });
        for (uint64_t i = 0; i < x->count; i++)
            ((float *)x->data)[i] = i / 3 % 7 == 4 ? 3e38f : 1.0f / (float)(i + 3);
        begin(&w, 0, 3, "float[N, T] y");
        add(&w, "y = ai.onnx.ml.LinearRegressor <targets = 2, coefficients = [2.0, -1.0, 0.0, 1.0, 1.0, 1.0], ");
        add(&w, "post_transform = \"%s\"> (x)\n}\n", ends[2 * end]);
        check(&w, "LinearRegressor", x);
    }
}

static void test_kernel_ml_lanes__support_vectors_are_the_same(void **state)
{
    static writer w;
    static const uint32_t counts[] = { 0, 1, 7, 64, 70 };
    source s = { 2 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const unsigned type = turn % 4;
        const int64_t columns = widths[below(&s, 5)];
        const uint32_t vectors = counts[turn % 5];
        begin(&w, type, columns, "float[N, T] y");
        add(&w, "y = ai.onnx.ml.SVMRegressor <n_supports = %u, rho = [0.25], kernel_type = \"%s\", ", vectors,
            curves[below(&s, 4)]);
        add(&w, "kernel_params = [0.0625, 0.5, %u.0], ", 1 + below(&s, 3));
        if (vectors)
            add_numbers(&w, &s, "support_vectors", vectors * (uint32_t)columns, 8);
        add_numbers(&w, &s, "coefficients", vectors ? vectors : (uint32_t)columns, 8);
        add(&w, "one_class = %u, post_transform = \"%s\"> (x)\n}\n", turn % 7 == 0, ends[below(&s, 4)]);
        check(&w, "SVMRegressor", rows_of(&s, type, batches[below(&s, 5)], columns, turn % 3 == 0));
    }
}

static void test_kernel_ml_lanes__votes_are_the_same(void **state)
{
    static writer w;
    source s = { 3 };
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const unsigned type = turn % 4;
        const int64_t columns = widths[below(&s, 5)];
        const uint32_t classes = 2 + below(&s, 4), each = turn % 5 ? 1 + below(&s, 80) : 0;
        const uint32_t pairs = classes * (classes - 1) / 2, vectors = classes * each;
        begin(&w, type, columns, "int64[N] l, float[N, T] y");
        add(&w, "l, y = ai.onnx.ml.SVMClassifier <kernel_type = \"%s\", kernel_params = [0.0625, 0.5, 2.0], ",
            curves[below(&s, 4)]);
        LIST(&w, "classlabels_ints", classes, "%u", 10 + i);
        if (each) {
            LIST(&w, "vectors_per_class", classes, "%u", each + 0 * i);
            add_numbers(&w, &s, "support_vectors", vectors * (uint32_t)columns, 8);
        }
        add_numbers(&w, &s, "coefficients", each ? vectors * (classes - 1) : classes * (uint32_t)columns, 8);
        add_numbers(&w, &s, "rho", pairs, 16);
        if (each && turn % 2) {
            add_numbers(&w, &s, "prob_a", pairs, 16);
            add_numbers(&w, &s, "prob_b", pairs, 16);
        }
        add(&w, "post_transform = \"%s\"> (x)\n}\n", ends[below(&s, 4)]);
        check(&w, "SVMClassifier", rows_of(&s, type, batches[below(&s, 5)], columns, false));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_ml_lanes__linear_models_are_the_same),
        cmocka_unit_test(test_kernel_ml_lanes__long_sums_are_accurate),
        cmocka_unit_test(test_kernel_ml_lanes__parts_of_sums_may_be_large),
        cmocka_unit_test(test_kernel_ml_lanes__support_vectors_are_the_same),
        cmocka_unit_test(test_kernel_ml_lanes__votes_are_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
