/* test_proto_text_float.c - floats as protobuf prints them, compared with its rule implemented by printf and strtod. */
#include "text_formats.h"

#include "proto/proto_text.h"

#include <float.h>

static uint64_t state_of_random = 88172645463325252u;
static uint64_t random_bits(void)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random;
}

static void assert_prints(double value, bool is_double)
{
    char got[33], want[64];
    size_t len = onxi_text_print_float(got, value, is_double);
    assert_true(len <= 32);
    got[len] = 0;
    if (value != value) {
        strcpy(want, "nan");
    } else if (is_double) {
        snprintf(want, sizeof want, "%.15g", value);
        if (strtod(want, NULL) != value)
            snprintf(want, sizeof want, "%.17g", value);
    } else {
        snprintf(want, sizeof want, "%.6g", value);
        if (strtof(want, NULL) != (float)value || (value != 0 && value > -(double)FLT_MIN && value < (double)FLT_MIN))
            snprintf(want, sizeof want, "%.9g", value);
    }
    assert_string_equal(got, want);
}

static void assert_prints_float_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    assert_prints((double)f, false);
}

static void assert_prints_double_bits(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    assert_prints(d, true);
}

static void test_proto_text_float__any_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        assert_prints_float_bits((uint32_t)random_bits());
        assert_prints_double_bits(random_bits());
    }
}

/* Powers of two, where the gap below is half of that above, and their neighbours. */
static void test_proto_text_float__around_powers_of_two(void **state)
{
    (void)state;
    for (uint32_t e = 0; e < 256; e++)
        for (int k = -2; k <= 2; k++)
            assert_prints_float_bits((e << 23) + (uint32_t)k);
    for (uint64_t e = 0; e < 2048; e++)
        for (int k = -2; k <= 2; k++)
            assert_prints_double_bits((e << 52) + (uint64_t)(int64_t)k);
}

/* Short decimals, ties between two decimals, and usual magnitudes. */
static void test_proto_text_float__usual_values(void **state)
{
    (void)state;
    static const double tens[] = { 1,    10,   100,  1e3,  1e4,  1e5,  1e6,  1e-1, 1e-2, 1e-3,
                                   1e-4, 1e-5, 1e-6, 1e-7, 1e10, 1e15, 1e16, 1e17, 1e20 };
    for (size_t t = 0; t < sizeof tens / sizeof *tens; t++) {
        for (int i = -3000; i <= 3000; i++) {
            assert_prints(i * tens[t], true);
            assert_prints((double)(float)(i * tens[t]), false);
            assert_prints(i / 64.0 * tens[t], true);
            assert_prints((double)(float)(i / 64.0 * tens[t]), false);
        }
    }
    for (int i = 0; i < 60000; i++) {
        double d = (double)(int64_t)random_bits() * 1e-19;
        assert_prints(d, true);
        assert_prints((double)(float)d, false);
        uint64_t n = random_bits() >> (random_bits() % 64);
        assert_prints((double)n, true);
        assert_prints((double)(float)n, false);
        assert_prints((double)(n >> 20) / 1024, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proto_text_float__any_bits),
        cmocka_unit_test(test_proto_text_float__around_powers_of_two),
        cmocka_unit_test(test_proto_text_float__usual_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
