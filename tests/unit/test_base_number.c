/* Numbers as text: shortest form, exact in both directions, and independent of a locale with a decimal comma. */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect_f64(const char *text, double want)
{
    double got = 0;
    bool overflow;
    assert_true(onxi_parse_f64(onx_str_of(text), &got, &overflow));
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s: %a, wanted %a", text, got, want);
    assert_int_equal(overflow, isinf(got) && text[0] != 'i' && text[0] != 'I' && text[1] != 'i' && text[1] != 'I');
}

static void test_base_number__reads(void **state)
{
    (void)state;
    expect_f64("0", 0);
    expect_f64("-0.0", -0.0);
    expect_f64("1.", 1);
    expect_f64(".5", 0.5);
    expect_f64("+12e2", 1200);
    expect_f64("1e23", 1e23);
    expect_f64("1e22", 1e22);
    expect_f64("0.1", 0.1);
    expect_f64("9007199254740993", 9007199254740992.0);
    expect_f64("9007199254740993.00000000000000000000000000001", 9007199254740994.0);
    expect_f64("2.2250738585072011e-308", 0x0.fffffffffffffp-1022);
    expect_f64("4.9e-324", 0x1p-1074);
    expect_f64("2.4703282292062327208e-324", 0);
    expect_f64("1e-999999999999999999999", 0);
    expect_f64("1e999999999999999999999", (double)INFINITY);
    expect_f64("-1e309", (double)-INFINITY);
    expect_f64("123456789012345678901234567890e-10", 12345678901234567890.123456789);
    expect_f64("inf", (double)INFINITY);
    expect_f64("-Infinity", (double)-INFINITY);
    static const char *const wrong[] = { "",     "-",  ".",  "e5",   "1e",   "1e+", "1,5",  "1.2.3",
                                         "0x10", "1 ", " 1", "infi", "nanx", "--1", "1e5.0" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double d;
        float f;
        bool overflow;
        assert_false(onxi_parse_f64(onx_str_of(wrong[i]), &d, &overflow));
        assert_false(onxi_parse_f32(onx_str_of(wrong[i]), &f, &overflow));
    }
    double d;
    bool overflow;
    assert_true(onxi_parse_f64(onx_str_of("NaN"), &d, &overflow) && isnan(d) && !overflow);
    /* Not terminated by zero, and only as long as it says. */
    assert_true(onxi_parse_f64(onx_str_make("12345", 2), &d, &overflow) && d == 12);
}

/* The middle between 1 and the next double, written out, and one digit far behind it. */
static void test_base_number__long_texts_round_correctly(void **state)
{
    (void)state;
    const char *middle = "1.00000000000000011102230246251565404236316680908203125";
    char text[2000];
    snprintf(text, sizeof text, "%s", middle);
    expect_f64(text, 1);
    size_t n = strlen(text);
    memset(text + n, '0', 1000);
    text[n + 1000] = 0;
    expect_f64(text, 1);
    text[n + 999] = '1';
    expect_f64(text, 0x1.0000000000001p0);
    memset(text, '0', 1500);
    memcpy(text + 1500, "7", 2);
    expect_f64(text, 7);
    memset(text, '1', 400);
    strcpy(text + 400, "e-399");
    expect_f64(text, 1.1111111111111111);
}

static void test_base_number__f32_rounds_once(void **state)
{
    (void)state;
    float f;
    bool overflow;
    /* Just above the middle of two floats; as a double it is the middle, which would go down to even. */
    assert_true(onxi_parse_f32(onx_str_of("1.00000005960464477540"), &f, &overflow));
    assert_true(f == 0x1.000002p0f);
    assert_true(onxi_parse_f32(onx_str_of("1.00000005960464477539"), &f, &overflow));
    assert_true(f == 1.0f);
    assert_true(onxi_parse_f32(onx_str_of("3.40282356e38"), &f, &overflow) && f == 0x1.fffffep127f && !overflow);
    assert_true(onxi_parse_f32(onx_str_of("3.5e38"), &f, &overflow) && isinf(f) && overflow);
    assert_true(onxi_parse_f32(onx_str_of("1e-45"), &f, &overflow) && f == 0x1p-149f);
    assert_true(onxi_parse_f32(onx_str_of("7e-46"), &f, &overflow) && f == 0);
}

static void expect_text(double value, const char *want)
{
    char buf[32];
    size_t n = onxi_print_f64(buf, value);
    assert_string_equal(buf, want);
    assert_int_equal(n, strlen(want));
}

static void test_base_number__prints_the_shortest(void **state)
{
    (void)state;
    expect_text(0, "0");
    expect_text(-0.0, "-0");
    expect_text(1, "1");
    expect_text(-1.5, "-1.5");
    expect_text(0.1, "0.1");
    expect_text(0.0001, "0.0001");
    expect_text(0.00001, "1e-05");
    expect_text(123456789, "123456789");
    expect_text(1e15, "1000000000000000");
    expect_text(1e16, "1e+16");
    expect_text(1e30, "1e+30");
    expect_text(1e300, "1e+300");
    expect_text(0.1 + 0.2, "0.30000000000000004");
    expect_text(5e-324, "5e-324");
    expect_text(1.7976931348623157e308, "1.7976931348623157e+308");
    expect_text((double)INFINITY, "inf");
    expect_text((double)-INFINITY, "-inf");
    expect_text((double)NAN, "nan");
    expect_text((double)-NAN, "nan");
    static const struct {
        float value;
        const char *text;
    } floats[] = { { 0.1f, "0.1" },       { 16777216, "16777216" },
                   { 1e30f, "1e+30" },    { 3.1415927f, "3.1415927" },
                   { 1e-45f, "1e-45" },   { 3.4028235e38f, "3.4028235e+38" },
                   { 0.3f, "0.3" },       { 1.0f / 3, "0.33333334" },
                   { 9999999, "9999999" } };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        char buf[32];
        onxi_print_f32(buf, floats[i].value);
        assert_string_equal(buf, floats[i].text);
    }
}

static uint64_t next(uint64_t *seed) /* splitmix64 */
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Significant digits of a printed number, zeros at its end not counted when it is whole. */
static int digits_of(const char *text)
{
    int digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (digits == 0 && *text == '0'))
            continue;
        digits++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

/* It reads back, and the nearest decimal of one digit less does not. */
static void expect_shortest(double d, bool is_float)
{
    char buf[32], shorter[64];
    bool overflow;
    float f = 0;
    double back = 0;
    size_t n = is_float ? onxi_print_f32(buf, (float)d) : onxi_print_f64(buf, d);
    assert_int_equal(n, strlen(buf));
    assert_true(is_float ? onxi_parse_f32(onx_str_make(buf, n), &f, &overflow)
                         : onxi_parse_f64(onx_str_make(buf, n), &back, &overflow));
    back = is_float ? (double)f : back;
    if (memcmp(&back, &d, sizeof d) != 0)
        fail_msg("%s reads as %a, not %a", buf, back, d);
    int digits = digits_of(buf);
    if (d == 0 || digits < 2)
        return;
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, d);
    shorter[strcspn(shorter, ",")] = shorter[strcspn(shorter, ",")] ? '.' : 0;
    assert_true(is_float ? onxi_parse_f32(onx_str_of(shorter), &f, &overflow)
                         : onxi_parse_f64(onx_str_of(shorter), &back, &overflow));
    if ((is_float ? (double)f : back) == d)
        fail_msg("%s is longer than %s", buf, shorter);
}

/* Random patterns, short decimals, full-length values of ordinary size, powers of two and their neighbours. */
static void round_trip(unsigned count, uint64_t seed)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t bits = next(&seed);
        double d, e = ldexp((double)(bits >> 11), (int)(bits % 60) - 60);
        memcpy(&d, &bits, sizeof d);
        if (isfinite(d))
            expect_shortest(d, false);
        expect_shortest(e, false);
        expect_shortest((double)(bits % 100000000) / 1000, false);
        float f;
        uint32_t low = (uint32_t)(bits >> 7);
        memcpy(&f, &low, sizeof f);
        if (isfinite(f))
            expect_shortest((double)f, true);
        expect_shortest((double)(float)e, true);
        expect_shortest((double)((float)(low % 100000) / 100), true);
    }
    for (int e = -1074; e < 1024; e++) {
        double d = ldexp(1, e);
        expect_shortest(d, false);
        expect_shortest(nextafter(d, 0), false);
        expect_shortest(-nextafter(d, 2 * d), false);
    }
}

static void test_base_number__round_trips(void **state)
{
    (void)state;
    round_trip(100000, 1);
}

/* A locale with a decimal comma is made where none is installed but the means to make one are. */
static void test_base_number__knows_no_locale(void **state)
{
    (void)state;
    char dir[] = "/tmp/onx_test_XXXXXX", command[256];
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", dir, dir);
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && system(command) == 0)
        setenv("LOCPATH", dir, 1);
    bool any = setlocale(LC_ALL, "de_DE.UTF-8") && strcmp(localeconv()->decimal_point, ",") == 0;
    if (any) {
        expect_text(0.1 + 0.2, "0.30000000000000004");
        expect_text(5e-324, "5e-324");
        expect_f64("2.2250738585072011e-308", 0x0.fffffffffffffp-1022);
        expect_f64("0.1234567890123456789", 0.1234567890123456789);
        round_trip(2000, 2);
    }
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    if (!any) {
        print_message("no locale with a decimal comma can be had here\n");
        skip();
    }
}

static void test_base_utf8__valid(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len, valid;
    } cases[] = {
        { "", 0, 0 },
        { "abcdefghij", 10, 10 },
        { "abcdefgh\x80", 9, 8 },
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, 9 },
        { "a\xc0\x80", 3, 1 },    /* overlong zero */
        { "\xe0\x9f\xbf", 3, 0 }, /* overlong */
        { "\xe0\xa0\x80", 3, 3 },
        { "\xed\x9f\xbf", 3, 3 },
        { "\xed\xa0\x80", 3, 0 },     /* surrogate */
        { "\xf0\x8f\xbf\xbf", 4, 0 }, /* overlong */
        { "\xf4\x8f\xbf\xbf", 4, 4 },
        { "\xf4\x90\x80\x80", 4, 0 }, /* past U+10FFFF */
        { "\xf5\x80\x80\x80", 4, 0 },
        { "ab\xe2\x82", 4, 2 }, /* cut off */
        { "a\0b", 3, 3 },
        { "\x80", 1, 0 },
        { "\xc3(", 2, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(onxi_utf8_valid(onx_str_make(cases[i].bytes, cases[i].len)), cases[i].valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_number__reads),
        cmocka_unit_test(test_base_number__long_texts_round_correctly),
        cmocka_unit_test(test_base_number__f32_rounds_once),
        cmocka_unit_test(test_base_number__prints_the_shortest),
        cmocka_unit_test(test_base_number__round_trips),
        cmocka_unit_test(test_base_number__knows_no_locale),
        cmocka_unit_test(test_base_utf8__valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
