/* Rounding, packing, scales and ranges of onx_quantize, and weights converted in pieces. */
#include "transform/transform_quantize.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- numbers ---- */

static void test_transform_quantize__packs_the_first_element_low(void **state)
{
    (void)state;
    const int four[] = { 1, -2, 7, -8, 3 };
    uint8_t out[8] = { 0 };
    onxi_pack(ONX_INT4, four, 5, out);
    assert_int_equal(out[0], 0xe1);
    assert_int_equal(out[1], 0x87);
    assert_int_equal(out[2], 0x03);
    const int eight[] = { -1, 200 };
    onxi_pack(ONX_UINT8, eight, 2, out);
    assert_int_equal(out[0], 255);
    assert_int_equal(out[1], 200);
}

static void test_transform_quantize__rounds_to_even_and_saturates(void **state)
{
    (void)state;
    static const struct {
        onx_dtype type;
        double x, scale;
        int zero, q;
    } rows[] = {
        { ONX_INT8, 0.5, 1, 0, 0 },    { ONX_INT8, 1.5, 1, 0, 2 },      { ONX_INT8, -2.5, 1, 0, -2 },
        { ONX_INT8, 1e30, 1, 0, 127 }, { ONX_INT8, -1e30, 1, 0, -128 }, { ONX_UINT8, -1, 1, 10, 9 },
        { ONX_UINT8, -11, 1, 10, 0 },  { ONX_UINT8, 300, 1, 10, 255 },  { ONX_INT4, 100, 1, 0, 7 },
        { ONX_INT4, -100, 1, 0, -8 },  { ONX_UINT4, 100, 1, 3, 15 },    { ONX_UINT4, 2.4, 0.8, 3, 6 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int q = onxi_quantize_one(rows[i].type, rows[i].x, rows[i].scale, rows[i].zero);
        assert_int_equal(q, rows[i].q);
        const double back = onxi_dequantize_one(rows[i].type, q, rows[i].scale, rows[i].zero);
        if (fabs(rows[i].x) < 10 && q > onxi_integer_least(rows[i].type))
            assert_true(fabs(back - rows[i].x) <= rows[i].scale / 2 + 1e-12);
    }
    const onx_dtype small[] = { ONX_FLOAT8E4M3FN, ONX_FLOAT8E5M2, ONX_FLOAT4E2M1 };
    for (size_t i = 0; i < 3; i++) {
        const double most = onxi_float_largest(small[i]);
        assert_true(onxi_dequantize_one(small[i], onxi_quantize_one(small[i], 1e9, 2, 0), 2, 0) >= 2 * most);
        assert_true(onxi_dequantize_one(small[i], onxi_quantize_one(small[i], 1e9, 2, 0), 2, 0) <= 2 * most);
    }
}

static void test_transform_quantize__has_scales_that_can_be_divided_by(void **state)
{
    (void)state;
    float scale;
    int zero;
    onxi_scale_of(ONX_INT8, false, -254, 100, &scale, &zero);
    assert_true(scale >= 2 && scale <= 2 && zero == 0);
    onxi_scale_of(ONX_UINT8, true, -1, 254, &scale, &zero);
    assert_true(scale >= 1 && scale <= 1 && zero == 1);
    onxi_scale_of(ONX_UINT8, true, 10, 510, &scale, &zero); /* 0 is always in the range */
    assert_true(scale >= 2 && scale <= 2 && zero == 0);
    onxi_scale_of(ONX_UINT8, true, -510, -10, &scale, &zero);
    assert_true(zero == 255);
    onxi_scale_of(ONX_UINT8, false, -127, 127, &scale, &zero);
    assert_true(scale >= 1 && scale <= 1 && zero == 128);
    for (int type = ONX_UINT8; type <= ONX_INT8; type++) {
        onxi_scale_of((onx_dtype)type, type == ONX_UINT8, 0, 0, &scale, &zero);
        assert_true(scale >= 1 && scale <= 1);
        onxi_scale_of((onx_dtype)type, type == ONX_UINT8, -1e-44f, 1e-45f, &scale, &zero);
        assert_true(scale >= FLT_MIN && scale <= FLT_MIN);
        onxi_scale_of((onx_dtype)type, type == ONX_UINT8, -FLT_MAX, FLT_MAX, &scale, &zero);
        assert_true(isfinite(scale));
    }
}

/* ---- ranges ---- */

static onx_observer *observe(onx_ctx *cx, onx_observe_method method, double part, int (*number)(int), int count)
{
    onx_observer *o;
    assert_int_equal(onx_observer_new(cx, method, part, &o), ONX_OK);
    for (int i = 0; i < count; i++) {
        const float x = (float)number(i);
        assert_int_equal(onx_observer_add(o, &x, 1), ONX_OK);
    }
    return o;
}

static int upwards(int i)
{
    return i;
}

static int with_outlier(int i)
{
    return i == 77 ? 1000000 : i * 7919 % 2001 - 1000;
}

static int with_small_outlier(int i)
{
    return i == 77 ? 10000 : with_outlier(i);
}

static void test_transform_quantize__takes_ranges(void **state)
{
    (void)state;
    float low, high;
    uint64_t bad;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_observer *o = observe(cx, ONX_OBSERVE_MINMAX, 0, upwards, 100);
    const float odd[] = { NAN, INFINITY, -INFINITY, -3 };
    assert_int_equal(onx_observer_add(o, odd, 4), ONX_OK);
    assert_int_equal(onx_observer_range(o, &low, &high, &bad), ONX_OK);
    assert_true(low >= -3 && low <= -3 && high >= 99 && high <= 99 && bad == 3);
    onx_observer_free(o);

    /* The histogram doubles on the way from 1 to 9999; nothing is lost by that. */
    o = observe(cx, ONX_OBSERVE_PERCENTILE, 0.9, upwards, 10000);
    assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_OK);
    assert_true(fabsf(low - 1000) < 20 && fabsf(high - 9000) < 20);
    onx_observer_free(o);
    o = observe(cx, ONX_OBSERVE_PERCENTILE, 1, upwards, 1000);
    assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_OK);
    assert_true(low >= 0 && low <= 0 && high >= 998 && high <= 999);
    onx_observer_free(o);

    o = observe(cx, ONX_OBSERVE_ENTROPY, 0, with_outlier, 100000);
    assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_OK);
    assert_true(low >= -1000 && high < 600000 && high >= 900);
    onx_observer_free(o);

    /* Cutting off one number of 100 costs 900 times what it saves the others; one of 100,000 is worth it, in part. */
    o = observe(cx, ONX_OBSERVE_MSE, 0, with_outlier, 100);
    assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_OK);
    assert_true(high > 950000);
    onx_observer_free(o);
    o = observe(cx, ONX_OBSERVE_MSE, 0, with_small_outlier, 100000);
    assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_OK);
    assert_true(low >= -1000 && low < -990 && high >= 990 && high < 10000);
    onx_observer_free(o);

    const float zeros[100] = { 0 };
    for (int method = ONX_OBSERVE_MINMAX; method <= (int)ONX_OBSERVE_MSE; method++) {
        assert_int_equal(onx_observer_new(cx, (onx_observe_method)method, 0.99, &o), ONX_OK);
        assert_int_equal(onx_observer_add(o, odd, 3), ONX_OK);
        assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_E_INVALID);
        assert_int_equal(onx_observer_add(o, zeros, 100), ONX_OK);
        assert_int_equal(onx_observer_range(o, &low, &high, NULL), ONX_OK);
        assert_true(low >= 0 && high <= 0);
        onx_observer_free(o);
    }
    onx_ctx_free(cx);
}

/* ---- patterns ---- */

static void test_transform_quantize__knows_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = { { "", "", true },         { "*", "", true },
                 { "a*", "abc", true },    { "*c", "abc", true },
                 { "a*c", "abcbc", true }, { "a?c", "abc", true },
                 { "a?c", "ac", false },   { "*b*", "abc", true },
                 { "a", "ab", false },     { "layer.*/q", "layer.3/q", true },
                 { "**", "x", true },      { "?", "", false } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(onxi_glob(onx_str_of(rows[i].pattern), onx_str_of(rows[i].text)), rows[i].fits);
}

/* ---- weights ---- */

static void test_transform_quantize__spills_weights(void **state)
{
    (void)state;
    enum { COUNT = 1 << 20 };
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_arena *scratch;
    assert_int_equal(onx_model_new(cx, "g", 21, &doc), ONX_OK);
    assert_int_equal(onx_arena_new(cx, &scratch), ONX_OK);
    float *x = onx_arena_alloc(scratch, COUNT * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 1000 == 0 ? 1e6f : i < COUNT / 2 ? (float)(i % 512) : 0;
    const int64_t dims[] = { COUNT };
    onx_tensor *from = onx_tensor_new(scratch, ONX_FLOAT, dims, 1, x, "w"), *to[2];
    for (int spilled = 0; spilled < 2; spilled++) {
        onxi_weights w;
        onxi_weight_loss loss;
        onxi_weights_open(&w, doc, scratch, spilled ? "." : NULL);
        assert_int_equal(onxi_weight_convert(&w, from, ONX_FLOAT16, &to[spilled], &loss), ONX_OK);
        assert_int_equal(onxi_weights_finish(&w), ONX_OK);
        onxi_weights_close(&w);
        assert_int_equal(loss.clamped, (COUNT + 999) / 1000);
    }
    const onx_str a = onx_view(to[0]->raw_data), b = onx_view(to[1]->raw_data);
    assert_int_equal(a.len, COUNT * 2);
    assert_true(onx_str_equal(a, b));
    onx_arena_free(scratch);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transform_quantize__packs_the_first_element_low),
        cmocka_unit_test(test_transform_quantize__rounds_to_even_and_saturates),
        cmocka_unit_test(test_transform_quantize__has_scales_that_can_be_divided_by),
        cmocka_unit_test(test_transform_quantize__takes_ranges),
        cmocka_unit_test(test_transform_quantize__knows_patterns),
        cmocka_unit_test(test_transform_quantize__spills_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
