/* Small float types: every bit pattern is compared with the definition by powers of two. */
#include "base/base.h"
#include <onx/tensor.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct definition {
    onx_dtype dtype;
    int bits, mantissa, bias;
    bool infinity, fnuz, nan;
} definition;

static const definition definitions[] = {
    { ONX_FLOAT16, 16, 10, 15, true, false, true },    { ONX_BFLOAT16, 16, 7, 127, true, false, true },
    { ONX_FLOAT8E4M3FN, 8, 3, 7, false, false, true }, { ONX_FLOAT8E4M3FNUZ, 8, 3, 8, false, true, true },
    { ONX_FLOAT8E5M2, 8, 2, 15, true, false, true },   { ONX_FLOAT8E5M2FNUZ, 8, 2, 16, false, true, true },
    { ONX_FLOAT4E2M1, 4, 1, 1, false, false, false },
};

/* The value of a pattern, by the formulas of the format. */
static double define(const definition *d, unsigned bits)
{
    unsigned top = 1u << (d->bits - 1), rest = bits & (top - 1);
    int exponent = (int)(rest >> d->mantissa);
    unsigned mantissa = rest & ((1u << d->mantissa) - 1), all = top - 1;
    double sign = (bits & top) ? -1 : 1;
    if (d->fnuz && bits == top)
        return (double)NAN;
    if (d->infinity && exponent == (int)(all >> d->mantissa))
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    if (d->nan && !d->infinity && !d->fnuz && rest == all)
        return (double)NAN;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - d->bias - d->mantissa);
    return sign * ldexp((1u << d->mantissa) + mantissa, exponent - d->bias - d->mantissa);
}

static float decode(onx_dtype dtype, unsigned bits)
{
    if (dtype == ONX_FLOAT16)
        return onx_float16_to_f32((uint16_t)bits);
    if (dtype == ONX_BFLOAT16)
        return onx_bfloat16_to_f32((uint16_t)bits);
    return onx_small_float_to_f32(dtype, (uint8_t)bits);
}

static unsigned encode(onx_dtype dtype, float value, bool saturate)
{
    if (dtype == ONX_FLOAT16)
        return onx_f32_to_float16(value);
    if (dtype == ONX_BFLOAT16)
        return onx_f32_to_bfloat16(value);
    return onx_f32_to_small_float(dtype, value, saturate);
}

static unsigned largest(const definition *d)
{
    unsigned bits = (1u << (d->bits - 1)) - 1;
    while (!isfinite(define(d, bits)))
        bits--;
    return bits;
}

static void test_base_float__every_pattern_decodes_and_returns(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++) {
        const definition *d = &definitions[k];
        for (unsigned bits = 0; bits < 1u << d->bits; bits++) {
            double want = define(d, bits);
            float got = decode(d->dtype, bits);
            if (isnan(want)) {
                assert_true(isnan(got));
                assert_true(isnan(decode(d->dtype, encode(d->dtype, got, true))));
                assert_true(isnan(decode(d->dtype, onxi_f64_to_float(d->dtype, (double)got, false))));
                continue;
            }
            if ((double)got != want || !signbit(got) != !signbit(want))
                fail_msg("%s %x: %a, wanted %a", onx_dtype_name(d->dtype), bits, (double)got, want);
            assert_int_equal(onxi_f64_to_float(d->dtype, want, false), bits);
            assert_int_equal(encode(d->dtype, got, false), bits);
        }
    }
}

/* Between each two neighbours: below, on and above the middle. */
static void test_base_float__rounds_to_nearest_even(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof definitions / sizeof *definitions; k++) {
        const definition *d = &definitions[k];
        unsigned top = 1u << (d->bits - 1), max = largest(d);
        for (unsigned bits = 0; bits < max; bits++) {
            double low = define(d, bits), high = define(d, bits + 1), middle = (low + high) / 2;
            unsigned even = bits & 1 ? bits + 1 : bits;
            for (int negative = 0; negative < 2; negative++) {
                double s = negative ? -1 : 1;
                unsigned sign = negative ? top : 0;
                unsigned below = !bits && d->fnuz ? 0 : sign | bits, tie = !even && d->fnuz ? 0 : sign | even;
                assert_int_equal(onxi_f64_to_float(d->dtype, s * middle, false), tie);
                assert_int_equal(onxi_f64_to_float(d->dtype, s * nextafter(middle, 0), false), below);
                assert_int_equal(onxi_f64_to_float(d->dtype, s * nextafter(middle, 1e300), false), sign | (bits + 1));
                if ((double)(float)middle != middle)
                    continue;
                float m = (float)(s * middle);
                assert_int_equal(encode(d->dtype, m, false), tie);
                assert_int_equal(encode(d->dtype, nextafterf(m, 0), false), below);
                assert_int_equal(encode(d->dtype, nextafterf(m, (float)(s * (double)INFINITY)), false),
                                 sign | (bits + 1));
            }
        }
    }
}

/* Both ways from float agree, on patterns all over the range. */
static void test_base_float__fast_way_agrees(void **state)
{
    (void)state;
    for (uint64_t x = 0; x <= UINT32_MAX; x += 997) {
        uint32_t bits = (uint32_t)x;
        float f;
        memcpy(&f, &bits, sizeof f);
        if (isnan(f))
            continue;
        assert_int_equal(onx_f32_to_float16(f), onxi_f64_to_float(ONX_FLOAT16, (double)f, false));
        assert_int_equal(onx_f32_to_bfloat16(f), onxi_f64_to_float(ONX_BFLOAT16, (double)f, false));
    }
}

static void test_base_float__saturation_table(void **state)
{
    (void)state;
    static const struct {
        onx_dtype dtype;
        unsigned max, inf, over; /* saturating: max for all; else infinity and overflow become these */
        unsigned nan;
    } rows[] = {
        { ONX_FLOAT8E4M3FN, 0x7e, 0x7f, 0x7f, 0x7f }, { ONX_FLOAT8E4M3FNUZ, 0x7f, 0x80, 0x80, 0x80 },
        { ONX_FLOAT8E5M2, 0x7b, 0x7c, 0x7c, 0x7e },   { ONX_FLOAT8E5M2FNUZ, 0x7f, 0x80, 0x80, 0x80 },
        { ONX_FLOAT4E2M1, 0x7, 0x7, 0x7, 0x8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onx_dtype t = rows[i].dtype;
        unsigned top = 1u << (onx_dtype_bits(t) - 1);
        unsigned minus_inf = rows[i].inf == 0x80 ? 0x80 : rows[i].inf | top;
        unsigned minus_over = rows[i].over == 0x80 ? 0x80 : rows[i].over | top;
        assert_int_equal(encode(t, INFINITY, true), rows[i].max);
        assert_int_equal(encode(t, -INFINITY, true), rows[i].max | top);
        assert_int_equal(encode(t, 1e6f, true), rows[i].max);
        assert_int_equal(encode(t, -1e6f, true), rows[i].max | top);
        assert_int_equal(encode(t, INFINITY, false), rows[i].inf);
        assert_int_equal(encode(t, -INFINITY, false), minus_inf);
        assert_int_equal(encode(t, 1e6f, false), rows[i].over);
        assert_int_equal(encode(t, -1e6f, false), minus_over);
        assert_int_equal(encode(t, NAN, true), rows[i].nan);
        assert_int_equal(encode(t, NAN, false), rows[i].nan);
        assert_int_equal(encode(t, 1e-30f, false), 0);
    }
    assert_int_equal(encode(ONX_FLOAT16, 65519, false), 0x7bff);
    assert_int_equal(encode(ONX_FLOAT16, 65520, false), 0x7c00);
    assert_int_equal(encode(ONX_BFLOAT16, 3.4e38f, false), 0x7f80);
}

static void test_base_float__e8m0(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 255; bits++) {
        float f = onx_small_float_to_f32(ONX_FLOAT8E8M0, (uint8_t)bits);
        assert_true((double)f == ldexp(1, (int)bits - 127));
        for (int mode = ONX_ROUND_UP; mode <= ONX_ROUND_NEAREST; mode++)
            assert_int_equal(onx_f32_to_float8e8m0(f, (onx_round_mode)mode, true), bits);
        if (bits == 254)
            continue;
        float more = nextafterf(f, INFINITY), half = f + f / 2, less = nextafterf(half, 0);
        assert_int_equal(onx_f32_to_float8e8m0(more, ONX_ROUND_UP, true), bits + 1);
        assert_int_equal(onx_f32_to_float8e8m0(more, ONX_ROUND_DOWN, true), bits);
        assert_int_equal(onx_f32_to_float8e8m0(half, ONX_ROUND_DOWN, true), bits);
        assert_int_equal(onx_f32_to_float8e8m0(half, ONX_ROUND_NEAREST, true), bits + 1);
        assert_int_equal(onx_f32_to_float8e8m0(less, ONX_ROUND_NEAREST, true), bits);
    }
    assert_true(isnan(onx_small_float_to_f32(ONX_FLOAT8E8M0, 0xff)));
    assert_int_equal(onx_f32_to_float8e8m0(0, ONX_ROUND_UP, true), 0);
    assert_int_equal(onx_f32_to_float8e8m0(-2, ONX_ROUND_UP, true), 128);
    assert_int_equal(onx_f32_to_float8e8m0(3e38f, ONX_ROUND_UP, true), 0xfe);
    assert_int_equal(onx_f32_to_float8e8m0(3e38f, ONX_ROUND_UP, false), 0xff);
    assert_int_equal(onx_f32_to_float8e8m0(INFINITY, ONX_ROUND_DOWN, true), 0xff);
    assert_int_equal(onx_f32_to_float8e8m0(NAN, ONX_ROUND_UP, true), 0xff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_float__every_pattern_decodes_and_returns),
        cmocka_unit_test(test_base_float__rounds_to_nearest_even),
        cmocka_unit_test(test_base_float__fast_way_agrees),
        cmocka_unit_test(test_base_float__saturation_table),
        cmocka_unit_test(test_base_float__e8m0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
