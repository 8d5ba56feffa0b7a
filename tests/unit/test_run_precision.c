/* test_run_precision.c - low-precision weights of matrix products: the error of results is explained by the rounding
 * of the weights, and is the same for every number of threads; memory shrinks; weights that do not fit the type are
 * kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/kernel.h>
#include <onx/run.h>
#include <onx/tensor.h>
#include <onx/text.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/kernel.h"

#include "context.h"

static atomic_llong held;

static void *counted_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    atomic_fetch_add(&held, (long long)new_size - (ptr ? (long long)old_size : 0));
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static uint32_t seed = 1;
static float number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 9) / (float)(1 << 22) - 1;
}

typedef struct product {
    int64_t m, n, k;
    bool turned;
    float *a, *b, *c; /* c: a number per column */
    onx_doc *doc;
} product;

static onx_doc *model_of(onx_ctx *own, const product *q)
{
    char text[400];
    onx_doc *doc;
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 15]> g (float[M,%lld] a) => (float[M,%lld] z)\n"
             "<float[1] b = {0}, float[1] c = {0}> { y = %s }",
             (long long)q->k, (long long)q->n,
             q->turned ? "Gemm <transB = 1> (a, b, c) z = Relu (y)" : "MatMul (a, b) z = Add (y, c)");
    assert_int_equal(onx_text_parse(own, ONX_KIND_MODEL, onx_str_of(text), 0, &doc), ONX_OK);
    const struct {
        float *data;
        uint32_t rank;
        int64_t dims[2];
    } weights[] = { { q->b, 2, { q->turned ? q->n : q->k, q->turned ? q->k : q->n } }, { q->c, 1, { q->n, 1 } } };
    for (int i = 0; i < 2; i++) {
        onx_tensor *t = onx_doc_model(doc)->graph->initializer[i];
        const uint64_t count = (uint64_t)(weights[i].dims[0] * weights[i].dims[1]);
        t->dims = onx_arena_alloc(onx_doc_arena(doc), sizeof weights[i].dims);
        memcpy(t->dims, weights[i].dims, sizeof weights[i].dims);
        t->dims_count = weights[i].rank;
        t->float_data_count = 0;
        t->has |= onx_tensor_has_raw_data;
        assert_int_equal(
            onx_arena_refer(onx_doc_arena(doc), onx_str_make((const char *)weights[i].data, count * 4), &t->raw_data),
            ONX_OK);
    }
    return doc;
}

static product make(int64_t m, int64_t n, int64_t k, bool turned)
{
    product q = { .m = m, .n = n, .k = k, .turned = turned };
    q.a = calloc((size_t)(m * k), sizeof *q.a);
    q.b = calloc((size_t)(n * k), sizeof *q.b);
    q.c = calloc((size_t)n, sizeof *q.c);
    for (int64_t i = 0; i < m * k; i++)
        q.a[i] = number();
    for (int64_t i = 0; i < n * k; i++)
        q.b[i] = number() * (i % 7 ? 1 : 1e-6f);
    for (int64_t i = 0; i < n; i++)
        q.c[i] = number();
    q.doc = model_of(cx, &q);
    return q;
}

static void drop(product *q)
{
    onx_doc_free(q->doc);
    free(q->a);
    free(q->b);
    free(q->c);
}

static unsigned isa; /* ONX_ISA_* of all sessions: what a processor lacks is a lower one */

/* Are both sides of a product of several rows in bfloat16? */
static bool has_halves(void)
{
    return onxi_isa_best() >= (unsigned)ONX_ISA_BF16 && (isa == ONX_ISA_ANY || isa >= (unsigned)ONX_ISA_BF16);
}

static float half_of(float x)
{
    uint16_t half;
    assert_int_equal(onx_convert(ONX_BFLOAT16, &half, ONX_FLOAT, &x, 1, true), ONX_OK);
    assert_int_equal(onx_convert(ONX_FLOAT, &x, ONX_BFLOAT16, &half, 1, true), ONX_OK);
    return x;
}

static const char *variant; /* of the row that ran the product last */

static void note(void *user, const onx_run_event *event)
{
    (void)user;
    if (onx_str_is(event->op_type, "MatMul") || onx_str_is(event->op_type, "Gemm"))
        variant = event->variant;
}

static onx_value *run(const product *q, unsigned precision, unsigned threads)
{
    onx_session *s;
    onx_value *a, *z = NULL;
    const int64_t dims[] = { q->m, q->k };
    const onx_session_options options = { .verify = true, .precision = precision, .threads = threads, .isa = isa };
    assert_int_equal(onx_session_new(cx, q->doc, &options, &s), ONX_OK);
    assert_int_equal(onx_value_new_tensor(cx, ONX_FLOAT, 2, dims, &a), ONX_OK);
    memcpy(a->data, q->a, a->size);
    assert_int_equal(
        onx_session_run_with(s, cx, (const onx_value *const[]){ a }, &z, &(onx_run_options){ .event = note }), ONX_OK);
    onx_value_free(a);
    onx_session_free(s);
    return z;
}

/* What a weight loses at most; `most` is the largest of its column. Nothing in bfloat16, which is rounded to here. */
static double loss(unsigned precision, double weight, double most)
{
    switch (precision) {
    case ONX_PRECISION_F16:
        return fabs(weight) / 2048 + 0x1p-25;
    case ONX_PRECISION_INT8:
        return most / 254;
    default:
        return 0;
    }
}

static void check(const product *q, unsigned precision, const onx_value *z)
{
    const int64_t row = q->turned ? 1 : q->n, column = q->turned ? q->k : 1;
    for (int64_t j = 0; j < q->n; j++) {
        double most = 0;
        for (int64_t k = 0; k < q->k; k++)
            most = fmax(most, fabs((double)q->b[k * row + j * column]));
        for (int64_t i = 0; i < q->m; i++) {
            double sum = q->c[j], bound = 1e-6;
            for (int64_t k = 0; k < q->k; k++) {
                const bool is_half = precision == ONX_PRECISION_BF16;
                const float x = q->a[i * q->k + k], y = q->b[k * row + j * column];
                const double a = is_half && has_halves() && q->m > 1 ? half_of(x) : x, b = is_half ? half_of(y) : y;
                sum += a * b;
                bound += fabs(a) * (loss(precision, b, most) * 1.0001 + fabs(b) * 1e-6);
            }
            if (q->turned && sum < 0)
                sum = 0;
            assert_true(fabs((double)((const float *)z->data)[i * q->n + j] - sum) <= bound);
        }
    }
}

static void test_run_precision__products(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = { { 1, 64, 64 },  { 1, 1, 5 },    { 1, 33, 257 },  { 1, 100, 1 },
                                        { 2, 17, 300 }, { 7, 40, 512 }, { 13, 65, 3 },   { 40, 31, 31 },
                                        { 250, 16, 2 }, { 12, 32, 32 }, { 25, 96, 770 }, { 217, 33, 65 },
                                        { 3, 5, 1601 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int turned = 0; turned < 2; turned++) {
            product q = make(sizes[i][0], sizes[i][1], sizes[i][2], turned != 0);
            for (unsigned precision = 0; precision < ONX_PRECISION_END; precision++) {
                onx_value *one = run(&q, precision, 1), *three = run(&q, precision, 3);
                check(&q, precision, one);
                assert_memory_equal(one->data, three->data, one->size);
                onx_value_free(one);
                onx_value_free(three);
            }
            drop(&q);
        }
}

/* Rows for products of bfloat16 run where the processor has them, for nothing but that precision. */
static void test_run_precision__fast_rows_run(void **state)
{
    (void)state;
    if (!has_halves())
        skip();
    for (int i = 0; i < 4; i++) {
        product q = make(i % 2 ? 20 : 1, 50, 40, i > 1);
        for (unsigned precision = 0; precision < ONX_PRECISION_END; precision++) {
            onx_value_free(run(&q, precision, 1));
            const bool is_half = strcmp(variant, "bf16") == 0 || strcmp(variant, "amx") == 0;
            if (is_half != (precision == ONX_PRECISION_BF16)) /* too few rows for floats in parts */
                fail_msg("precision %u runs as %s", precision, variant);
        }
        drop(&q);
    }
}

/* Weights below the least normal number may become that or 0, which the largest number makes 4 of. */
static bool is_near(float x, float y)
{
    return isfinite(y) ? fabsf(x - y) <= fabsf(y) / 64 + 4.5f : isnan(y) ? isnan(x) : x == y;
}

/* NaN and infinities come out as in float, also by weights that are nearly 0, and what is finite stays so, however
 * large it is. */
static void test_run_precision__left_sides_that_are_not_finite(void **state)
{
    (void)state;
    static const float special[] = { NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 0x1.fffffep127f };
    enum { COUNT = sizeof special / sizeof *special };
    for (int turned = 0; turned < 2; turned++) {
        product q = make(2 * COUNT, 40, 70, turned != 0);
        for (int64_t i = 0; i < q.n * q.k; i++)
            q.b[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 1e-40f : -0.25f;
        memset(q.a, 0, sizeof *q.a * (size_t)(q.m * q.k));
        for (int64_t i = 0; i < q.m; i++) {
            q.a[i * q.k + i] = special[i % COUNT];
            if (i >= COUNT) /* NaN, or of the same sign */
                q.a[i * q.k + 68] = i % COUNT < 3 ? special[(i + 1) % COUNT] : 1;
        }
        onx_value *half = run(&q, ONX_PRECISION_BF16, 1), *full = run(&q, ONX_PRECISION_FULL, 1);
        unsigned infinite = 0, large = 0;
        for (uint64_t i = 0; i < half->count; i++) {
            const float x = ((const float *)half->data)[i], y = ((const float *)full->data)[i];
            infinite += isinf(y) != 0;
            large += isfinite(y) && fabsf(y) > 1e37f;
            if (!is_near(x, y))
                fail_msg("element %llu is %g, in float %g", (unsigned long long)i, (double)x, (double)y);
        }
        assert_true(infinite > 20 && large > 20);
        onx_value_free(half);
        onx_value_free(full);
        drop(&q);
    }
}

/* A number that a type cannot hold leaves the weights as they are. */
static void test_run_precision__what_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        float weight;
        unsigned precision;
    } cases[] = { { 65536, ONX_PRECISION_F16 },     { -70000, ONX_PRECISION_F16 },     { 3.4e38f, ONX_PRECISION_BF16 },
                  { INFINITY, ONX_PRECISION_BF16 }, { NAN, ONX_PRECISION_BF16 },       { NAN, ONX_PRECISION_F16 },
                  { INFINITY, ONX_PRECISION_F16 },  { -INFINITY, ONX_PRECISION_INT8 }, { NAN, ONX_PRECISION_INT8 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        product q = make(3, 50, 40, i % 2 != 0);
        q.b[777] = cases[i].weight;
        onx_value *narrow = run(&q, cases[i].precision, 1), *full = run(&q, ONX_PRECISION_FULL, 1);
        assert_memory_equal(narrow->data, full->data, full->size);
        onx_value_free(narrow);
        onx_value_free(full);
        drop(&q);
    }
}

static void test_run_precision__memory(void **state)
{
    (void)state;
    enum { SIZE = 512 };
    static const long long weights = (long long)SIZE * SIZE * 4;
    static const int parts[] = {
        [ONX_PRECISION_FULL] = 1, [ONX_PRECISION_BF16] = 2, [ONX_PRECISION_F16] = 2, [ONX_PRECISION_INT8] = 4
    };
    product q = make(1, SIZE, SIZE, false);
    onx_value *full = run(&q, ONX_PRECISION_FULL, 1), *int8 = run(&q, ONX_PRECISION_INT8, 1);
    const bool is_held = memcmp(full->data, int8->data, full->size) != 0; /* else there are but plain kernels */
    for (unsigned precision = 1; is_held && precision < ONX_PRECISION_END; precision++) {
        onx_ctx *own = onx_ctx_new(&(onx_allocator){ counted_resize, NULL });
        onx_session *s;
        onx_value *a, *z = NULL;
        const int64_t dims[] = { 1, SIZE };
        assert_int_equal(onx_value_new_tensor(own, ONX_FLOAT, 2, dims, &a), ONX_OK);
        memset(a->data, 0, a->size);
        const long long before = atomic_load(&held);
        assert_int_equal(
            onx_session_new(own, q.doc,
                            &(onx_session_options){ .verify = true, .precision = precision, .threads = 1, .isa = isa },
                            &s),
            ONX_OK);
        assert_int_equal(onx_session_run(s, own, (const onx_value *const[]){ a }, &z), ONX_OK);
        assert_true(atomic_load(&held) - before < weights / parts[precision] + weights / 4);
        onx_value_free(a);
        onx_value_free(z);
        onx_session_free(s);
        onx_ctx_free(own);
    }
    onx_value_free(full);
    onx_value_free(int8);
    drop(&q);
}

static void test_run_precision__unknown(void **state)
{
    (void)state;
    product q = make(1, 2, 3, false);
    onx_session *s;
    for (unsigned i = 0; i < 32; i++) {
        const unsigned precision = i ? UINT32_C(1) << i | ONX_PRECISION_END : ONX_PRECISION_END;
        assert_int_equal(
            onx_session_new(cx, q.doc, &(onx_session_options){ .verify = true, .precision = precision }, &s),
            ONX_E_MISUSE);
        assert_null(s);
    }
    drop(&q);
}

/* ---- floats in three parts of bfloat16, which tiles multiply (parts.h) ---- */

static bool has_parts(void)
{
    return onxi_isa_best() >= (unsigned)ONX_ISA_AMX && isa == ONX_ISA_AMX;
}

/* The root of the mean square of errors, for products whose terms are of one size. */
static double error_of(const product *q, const onx_value *z)
{
    const int64_t row = q->turned ? 1 : q->n, column = q->turned ? q->k : 1;
    double squares = 0, most = 0;
    for (int64_t i = 0; i < q->m; i++)
        for (int64_t j = 0; j < q->n; j++) {
            double sum = q->c[j];
            for (int64_t k = 0; k < q->k; k++)
                sum += (double)q->a[i * q->k + k] * (double)q->b[k * row + j * column];
            if (q->turned && sum < 0)
                sum = 0;
            const double error = (double)((const float *)z->data)[i * q->n + j] - sum;
            squares += error * error;
            most += sum * sum;
        }
    return sqrt(squares / most);
}

/* They are no less exact than products of floats; rows of fewer than a tile and of several blocks among them. */
static void test_run_precision__parts_are_exact(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = { { 32, 32, 64 }, { 47, 40, 800 }, { 70, 290, 96 }, { 230, 65, 131 } };
    if (!has_parts())
        skip();
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const int64_t *size = sizes[i / 2];
        product q = make(size[0], size[1], size[2], i % 2 != 0);
        for (int64_t k = 0; k < q.n * q.k; k++)
            q.b[k] = number();
        onx_value *parts = run(&q, ONX_PRECISION_FULL, 1);
        assert_string_equal(variant, "amx");
        onx_value *three = run(&q, ONX_PRECISION_FULL, 3);
        assert_memory_equal(parts->data, three->data, parts->size);
        isa = ONX_ISA_V4;
        onx_value *floats = run(&q, ONX_PRECISION_FULL, 1);
        isa = ONX_ISA_AMX;
        assert_string_equal(variant, "avx512");
        const double error = error_of(&q, parts), peer = error_of(&q, floats);
        if (error > 1.05 * peer || error > 3e-7)
            fail_msg("error %g, of floats %g", error, peer);
        onx_value_free(parts);
        onx_value_free(three);
        onx_value_free(floats);
        drop(&q);
    }
}

/* Numbers that parts would lose, or make something else of, on either side: results are those of floats. */
static void test_run_precision__what_parts_do_not_hold(void **state)
{
    (void)state;
    static const float special[] = { NAN,      INFINITY, -INFINITY, 3.4e38f, 0x1.fffffep127f, 0x1.234566p100f,
                                     0x1p-50f, 1e-30f,   -1e-37f,   1e-40f,  0x1p-149f,       0x1.fffffep-51f };
    enum { COUNT = sizeof special / sizeof *special };
    if (!has_parts())
        skip();
    for (int i = 0; i < 2 * COUNT; i++) {
        product q = make(70, 70, 90, false);
        for (int64_t k = 0; k < q.n * q.k; k++)
            q.b[k] = (float)(k % 13 - 6) / 4; /* with zeros, which infinities make NaN of */
        for (int64_t k = 0; k < q.m * q.k; k++)
            q.a[k] = (float)(k % 11 - 5) / 4;
        memset(q.c, 0, (size_t)q.n * sizeof *q.c);
        /* Where nothing else is in the row, or column, the number decides of all that comes out. */
        const int64_t row = 37, column = 66;
        for (int64_t k = 0; k < q.k; k++)
            *(i % 2 ? &q.a[row * q.k + k] : &q.b[k * q.n + column]) = k % 7 == 3 ? special[i / 2] : 0;
        onx_value *parts = run(&q, ONX_PRECISION_FULL, 1);
        assert_string_equal(variant, "amx");
        isa = ONX_ISA_V4;
        onx_value *floats = run(&q, ONX_PRECISION_FULL, 1);
        isa = ONX_ISA_AMX;
        for (uint64_t k = 0; k < parts->count; k++) {
            const float x = ((const float *)parts->data)[k], y = ((const float *)floats->data)[k];
            if (isfinite(y) ? fabsf(x - y) > fabsf(y) * 1e-6f : isnan(y) ? !isnan(x) : x != y)
                fail_msg("%g in %s: element %llu is %g, of floats %g", (double)special[i / 2], i % 2 ? "a" : "b",
                         (unsigned long long)k, (double)x, (double)y);
        }
        onx_value_free(parts);
        onx_value_free(floats);
        drop(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_precision__parts_are_exact),
        cmocka_unit_test(test_run_precision__what_parts_do_not_hold),
        cmocka_unit_test(test_run_precision__products),
        cmocka_unit_test(test_run_precision__fast_rows_run),
        cmocka_unit_test(test_run_precision__left_sides_that_are_not_finite),
        cmocka_unit_test(test_run_precision__what_does_not_fit),
        cmocka_unit_test(test_run_precision__memory),
        cmocka_unit_test(test_run_precision__unknown),
    };
    int failed = 0;
    for (isa = ONX_ISA_ANY; isa < ONX_ISA_END; isa++)
        failed += cmocka_run_group_tests(tests, set_up, tear_down);
    return failed;
}
