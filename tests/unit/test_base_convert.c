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
        cmocka_unit_test(test_base_convert__packs_low_bits_first),
        cmocka_unit_test(test_base_convert__floats_to_integers),
        cmocka_unit_test(test_base_convert__integers_keep_their_low_bits),
        cmocka_unit_test(test_base_convert__rounds_once),
        cmocka_unit_test(test_base_convert__every_pair),
        cmocka_unit_test(test_base_dtype__sizes_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
