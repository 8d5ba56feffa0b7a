/* Conversion between element types: packing, truncation, wrapping, single rounding. */
#include "base/base.h"
#include <onx/tensor.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_base_convert__packs_low_bits_first(void **state)
{
    (void)state;
    const int8_t in[5] = { 1, -2, 7, -8, 3 };
    unsigned char out[4];
    memset(out, 0xee, sizeof out);
    assert_int_equal(onx_convert(ONX_INT4, out, ONX_INT8, in, 5, true), ONX_OK);
    assert_int_equal(out[0], 0xe1);
    assert_int_equal(out[1], 0x87);
    assert_int_equal(out[2], 0x03);
    assert_int_equal(out[3], 0xee);
    int8_t back[5];
    assert_int_equal(onx_convert(ONX_INT8, back, ONX_INT4, out, 5, true), ONX_OK);
    assert_memory_equal(back, in, 5);

    const uint8_t two[5] = { 0, 1, 2, 3, 2 };
    assert_int_equal(onx_convert(ONX_UINT2, out, ONX_UINT8, two, 5, true), ONX_OK);
    assert_int_equal(out[0], 0xe4);
    assert_int_equal(out[1], 0x02);
    float f[5];
    assert_int_equal(onx_convert(ONX_FLOAT, f, ONX_INT2, out, 5, true), ONX_OK);
    const float want[5] = { 0, 1, -2, -1, -2 };
    for (int i = 0; i < 5; i++)
        assert_true(f[i] == want[i]);
    unsigned char copy[2] = { 0, 0 };
    out[1] = 0xfe;
    assert_int_equal(onx_convert(ONX_INT2, copy, ONX_INT2, out, 5, true), ONX_OK);
    assert_int_equal(copy[1], 0x02);
}

/* Codes 0, 1, 2, ... of `bits` bits are a stream of bits, the first in the lowest. */
static void expect_stream(onx_dtype dtype, const void *packed, uint64_t count)
{
    const unsigned bits = onx_dtype_bits((int64_t)dtype);
    for (uint64_t at = 0; at < count * bits; at++) {
        const unsigned code = (unsigned)(at / bits) & ((1u << bits) - 1);
        assert_int_equal(((const uint8_t *)packed)[at / 8] >> at % 8 & 1, code >> at % bits & 1);
    }
}

static void test_base_convert__codes_of_all_packed_types(void **state)
{
    enum { N = 67 };
    (void)state;
    for (int dtype = 1; dtype < ONX_DTYPE_COUNT; dtype++) {
        const unsigned bits = onx_dtype_bits(dtype);
        const bool is_signed = onx_dtype_class_of(dtype) == ONX_CLASS_SIGNED;
        uint8_t codes[N], packed[N + 1], back[N];
        uint64_t size;
        if (bits == 0 || bits > 8) {
            assert_int_equal(onx_codes_pack((onx_dtype)dtype, packed, codes, 0), ONX_E_UNSUPPORTED);
            assert_int_equal(onx_codes_unpack((onx_dtype)dtype, codes, packed, 0), ONX_E_UNSUPPORTED);
            continue;
        }
        for (uint64_t count = 0; count <= N; count++) {
            assert_true(onx_dtype_size(dtype, count, &size));
            assert_int_equal(size, (count * bits + 7) / 8);
            memset(packed, 0xee, sizeof packed);
            for (unsigned i = 0; i < N; i++)
                codes[i] = (uint8_t)i;
            assert_int_equal(onx_codes_pack((onx_dtype)dtype, packed, codes, count), ONX_OK);
            assert_int_equal(packed[size], 0xee);
            expect_stream((onx_dtype)dtype, packed, count);
            if (count * bits % 8)
                assert_int_equal(packed[size - 1] >> count * bits % 8, 0);
            assert_int_equal(onx_codes_unpack((onx_dtype)dtype, back, packed, count), ONX_OK);
            for (uint64_t i = 0; i < count; i++) {
                const unsigned low = (unsigned)i & ((1u << bits) - 1), sign = is_signed ? 1u << (bits - 1) : 0;
                assert_int_equal(back[i], (uint8_t)((low ^ sign) - sign));
            }
        }
    }
}

/* Each float between two neighbours rounds to the nearer one, and to the even code from their middle. */
static void test_base_convert__small_floats_round_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        onx_dtype dtype;
        double most, least;
    } rows[] = { { ONX_FLOAT4E2M1, 6, 0.5 }, { ONX_FLOAT6E2M3, 7.5, 0.125 }, { ONX_FLOAT6E3M2, 28, 0.0625 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const onx_dtype t = rows[r].dtype;
        const unsigned half = 1u << (onx_dtype_bits((int64_t)t) - 1);
        assert_true((double)onx_small_float_to_f32(t, (uint8_t)(half - 1)) == rows[r].most);
        assert_true((double)onx_small_float_to_f32(t, 1) == rows[r].least);
        for (unsigned code = 0; code < half; code++) {
            const float x = onx_small_float_to_f32(t, (uint8_t)code);
            assert_int_equal(onx_f32_to_small_float(t, x, false), code);
            assert_int_equal(onx_f32_to_small_float(t, -x, false), code | half);
            if (code + 1 == half)
                break;
            const float next = onx_small_float_to_f32(t, (uint8_t)(code + 1)), middle = (x + next) / 2;
            assert_int_equal(onx_f32_to_small_float(t, middle, true), code + (code & 1));
            assert_int_equal(onx_f32_to_small_float(t, nextafterf(middle, x), true), code);
            assert_int_equal(onx_f32_to_small_float(t, nextafterf(middle, next), true), code + 1);
        }
        for (int saturate = 0; saturate < 2; saturate++) {
            assert_int_equal(onx_f32_to_small_float(t, INFINITY, saturate), half - 1);
            assert_int_equal(onx_f32_to_small_float(t, -INFINITY, saturate), 2 * half - 1);
            assert_int_equal(onx_f32_to_small_float(t, 1e30f, saturate), half - 1);
            assert_int_equal(onx_f32_to_small_float(t, NAN, saturate), half);
            assert_int_equal(onx_f32_to_small_float(t, -0.0f, saturate), half);
        }
    }
}

static void test_base_convert__floats_to_integers(void **state)
{
    (void)state;
    const double in[] = { 2.9, -2.9, (double)NAN, 300, -9, 1e30, -1e30, 0.5, -0.0 };
    enum { N = sizeof in / sizeof *in };
    int64_t wide[N];
    assert_int_equal(onx_convert(ONX_INT64, wide, ONX_DOUBLE, in, N, true), ONX_OK);
    const int64_t want[N] = { 2, -2, 0, 300, -9, INT64_MAX, INT64_MIN, 0, 0 };
    assert_memory_equal(wide, want, sizeof want);
    uint8_t narrow[N];
    assert_int_equal(onx_convert(ONX_UINT8, narrow, ONX_DOUBLE, in, N, true), ONX_OK);
    assert_int_equal(narrow[3], 44);
    assert_int_equal(narrow[4], 247);
    uint8_t boolean[N];
    assert_int_equal(onx_convert(ONX_BOOL, boolean, ONX_DOUBLE, in, N, true), ONX_OK);
    const uint8_t truth[N] = { 1, 1, 1, 1, 1, 1, 1, 1, 0 };
    assert_memory_equal(boolean, truth, sizeof truth);
    const float big[] = { 0x1p63f, 0x1.8p63f, 0x1p64f };
    uint64_t u[3];
    assert_int_equal(onx_convert(ONX_UINT64, u, ONX_FLOAT, big, 3, true), ONX_OK);
    assert_true(u[0] == (uint64_t)1 << 63 && u[1] == (uint64_t)3 << 62 && u[2] == UINT64_MAX);
}

static void test_base_convert__integers_keep_their_low_bits(void **state)
{
    (void)state;
    const int16_t in[] = { 200, -200, 256, -1 };
    int8_t out[4];
    assert_int_equal(onx_convert(ONX_INT8, out, ONX_INT16, in, 4, true), ONX_OK);
    const int8_t want[] = { -56, 56, 0, -1 };
    assert_memory_equal(out, want, 4);
    uint8_t boolean[4];
    assert_int_equal(onx_convert(ONX_BOOL, boolean, ONX_INT16, in, 4, true), ONX_OK);
    const uint8_t truth[] = { 1, 1, 1, 1 };
    assert_memory_equal(boolean, truth, 4);
    const uint8_t odd[] = { 0, 1, 2, 255 };
    int32_t ones[4];
    assert_int_equal(onx_convert(ONX_INT32, ones, ONX_BOOL, odd, 4, true), ONX_OK);
    assert_true(ones[0] == 0 && ones[1] == 1 && ones[2] == 1 && ones[3] == 1);
}

/* What would go wrong by way of float or double. */
static void test_base_convert__rounds_once(void **state)
{
    (void)state;
    const double d = 1 + 0x1p-11 + 0x1p-40; /* above the middle of two float16; as a float it is the middle */
    uint16_t h;
    assert_int_equal(onx_convert(ONX_FLOAT16, &h, ONX_DOUBLE, &d, 1, true), ONX_OK);
    assert_int_equal(h, 0x3c01);
    const int64_t whole = ((int64_t)1 << 62) + ((int64_t)1 << 54) + 1; /* the same for bfloat16 */
    uint16_t b;
    assert_int_equal(onx_convert(ONX_BFLOAT16, &b, ONX_INT64, &whole, 1, true), ONX_OK);
    assert_int_equal(b, 0x5e81);
    const int64_t tie = ((int64_t)1 << 62) + ((int64_t)1 << 54);
    assert_int_equal(onx_convert(ONX_BFLOAT16, &b, ONX_INT64, &tie, 1, true), ONX_OK);
    assert_int_equal(b, 0x5e80);
    const int64_t minus = -whole;
    assert_int_equal(onx_convert(ONX_BFLOAT16, &b, ONX_INT64, &minus, 1, true), ONX_OK);
    assert_int_equal(b, 0xde81);
    const double up[] = { 2 + 0x1p-40, -2 - 0x1p-40, 2, -1e-320, 1e300 };
    uint8_t e[5];
    assert_int_equal(onx_convert(ONX_FLOAT8E8M0, e, ONX_DOUBLE, up, 5, true), ONX_OK);
    assert_true(e[0] == 129 && e[1] == 129 && e[2] == 128 && e[3] == 0 && e[4] == 0xfe);
}

/* Every pair: a value that all types hold comes through, in a count that crosses block and byte borders. */
static void test_base_convert__every_pair(void **state)
{
    (void)state;
    enum { N = 1027 };
    static unsigned char a[N * 8], b[N * 8 + 2];
    static uint8_t ones[N], back[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    for (int from = 1; from < ONX_DTYPE_COUNT; from++)
        for (int to = 1; to < ONX_DTYPE_COUNT; to++) {
            bool possible = onx_dtype_bits(from) && onx_dtype_bits(to) &&
                            onx_dtype_class_of(from) != ONX_CLASS_COMPLEX &&
                            onx_dtype_class_of(to) != ONX_CLASS_COMPLEX;
            if (!possible) {
                assert_int_equal(onx_convert((onx_dtype)to, b, (onx_dtype)from, a, 1, true), ONX_E_UNSUPPORTED);
                continue;
            }
            uint64_t bytes;
            assert_true(onx_dtype_size(to, N, &bytes));
            assert_int_equal(onx_convert((onx_dtype)from, a, ONX_UINT8, ones, N, true), ONX_OK);
            b[bytes + 1] = 0x5a;
            assert_int_equal(onx_convert((onx_dtype)to, b + 1, (onx_dtype)from, a, N, true), ONX_OK); /* unaligned */
            assert_int_equal(b[bytes + 1], 0x5a);
            assert_int_equal(onx_convert(ONX_UINT8, back, (onx_dtype)to, b + 1, N, true), ONX_OK);
            assert_memory_equal(back, ones, N);
        }
    assert_int_equal(onx_convert((onx_dtype)99, b, ONX_FLOAT, a, 1, true), ONX_E_UNSUPPORTED);
    assert_int_equal(onx_convert(ONX_DOUBLE, b, ONX_FLOAT, a, UINT64_MAX / 2, true), ONX_E_LIMIT);
    assert_int_equal(onx_convert(ONX_DOUBLE, NULL, ONX_FLOAT, NULL, 0, true), ONX_OK);
}

static void test_base_dtype__sizes_and_names(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_true(onx_dtype_size(ONX_INT4, 3, &bytes) && bytes == 2);
    assert_true(onx_dtype_size(ONX_UINT2, 5, &bytes) && bytes == 2);
    assert_true(onx_dtype_size(ONX_INT2, UINT64_MAX, &bytes) && bytes == (uint64_t)1 << 62);
    assert_true(onx_dtype_size(ONX_COMPLEX128, 3, &bytes) && bytes == 48);
    assert_false(onx_dtype_size(ONX_DOUBLE, UINT64_MAX / 8 + 1, &bytes));
    assert_false(onx_dtype_size(ONX_STRING, 1, &bytes));
    assert_false(onx_dtype_size(-1, 1, &bytes));
    for (int64_t i = 1; i < ONX_DTYPE_COUNT; i++)
        assert_int_equal(onx_dtype_find(onx_str_of(onx_dtype_name(i))), i);
    assert_null(onx_dtype_name(0));
    assert_null(onx_dtype_name(INT64_MIN));
    assert_null(onx_dtype_name(ONX_DTYPE_COUNT));
    assert_int_equal(onx_dtype_find(onx_str_of("float17")), ONX_UNDEFINED);
    assert_int_equal(onx_dtype_ir_version(ONX_INT2), 13);
    assert_int_equal(onx_dtype_class_of(ONX_FLOAT4E2M1), ONX_CLASS_FLOATING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_convert__codes_of_all_packed_types),
        cmocka_unit_test(test_base_convert__small_floats_round_to_nearest_even),
        cmocka_unit_test(test_base_convert__packs_low_bits_first),
        cmocka_unit_test(test_base_convert__floats_to_integers),
        cmocka_unit_test(test_base_convert__integers_keep_their_low_bits),
        cmocka_unit_test(test_base_convert__rounds_once),
        cmocka_unit_test(test_base_convert__every_pair),
        cmocka_unit_test(test_base_dtype__sizes_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
