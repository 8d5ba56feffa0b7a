/* proto_text_float.c - prints floating point like protobuf's text format: with 6 (double: 15) significant digits if
 * they read back as the same value, else 9 (17), both formatted like printf's %g. Exact 128-bit integer arithmetic
 * handles magnitudes from about 1e-6 to 1e30; other values use the C library, which is ten times slower. */
#include "proto/proto_text.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

typedef struct binary { /* mantissa * 2^exponent */
    uint64_t mantissa;
    int exponent;
    bool lowest; /* the smallest mantissa of its exponent: the next smaller value is half as far away as the next larger
                  * one */
} binary;

typedef struct decimal { /* digits * 10^(exponent - count + 1) */
    uint64_t digits;
    int count, exponent;
} decimal;

static const uint64_t powers[] = { 1,
                                   10,
                                   100,
                                   1000,
                                   10000,
                                   100000,
                                   1000000,
                                   10000000,
                                   100000000,
                                   1000000000,
                                   10000000000,
                                   100000000000,
                                   1000000000000,
                                   10000000000000,
                                   100000000000000,
                                   1000000000000000,
                                   10000000000000000,
                                   100000000000000000,
                                   1000000000000000000,
                                   10000000000000000000u };

static int bits_of(uint64_t x)
{
    return 64 - __builtin_clzll(x);
}

/* x * 10^power * 2^shift; false if the result exceeds 124 bits; 4 bits are left to compare multiples. */
static bool scale(uint64_t x, int power, int shift, wide *out)
{
    /* 10^3 < 2^10 */
    if (bits_of(x) + power * 10 / 3 + 1 + shift > 124)
        return false;
    *out = (wide)x * powers[power < 19 ? power : 19];
    if (power > 19)
        *out *= powers[power - 19];
    *out <<= shift;
    return true;
}

/* `count` digits of b, rounded to nearest, ties to even; *exact_out: they read back as b. False if 128 bits do not
 * suffice. */
static bool round_to(const binary *b, int count, decimal *out, bool *exact_out)
{
    /* The decimal exponent, or one less: 1233 / 4096 is slightly below the decimal logarithm of 2. */
    int magnitude = b->exponent + bits_of(b->mantissa) - 1;
    int ten = magnitude >= 0 ? magnitude * 1233 / 4096 : -((-magnitude * 1234 + 4095) / 4096);
    for (;; ten++) {
        int power = count - 1 - ten;
        int up = power > 0 ? power : 0, down = power < 0 ? -power : 0;
        int left = b->exponent > 0 ? b->exponent : 0, right = b->exponent < 0 ? -b->exponent : 0;
        wide number, unit, divisor;
        if (up > 38 || down > 38 || !scale(b->mantissa, up, left, &number) || !scale(1, up, left, &unit) ||
            !scale(1, down, right, &divisor))
            return false;
        wide whole = down ? number / divisor : number >> right, rest = number - whole * divisor;
        if (whole >= powers[count])
            continue;
        bool above = 2 * rest > divisor || (2 * rest == divisor && (whole & 1));
        wide error = above ? divisor - rest : rest, room = b->lowest && !above ? unit : 2 * unit;
        *exact_out = 4 * error < room || (4 * error == room && !(b->mantissa & 1));
        *out = (decimal){ (uint64_t)whole + above, count, ten };
        if (out->digits == powers[count])
            *out = (decimal){ powers[count - 1], count, ten + 1 };
        return true;
    }
}

/* Like %g: fixed notation if the exponent is from -4 to below the number of digits; no trailing zeros. */
static size_t print(char buf[32], decimal d)
{
    char digits[20], *p = buf;
    int n = d.count;
    for (int i = n - 1; i >= 0; i--, d.digits /= 10)
        digits[i] = (char)('0' + d.digits % 10);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    bool fixed = d.exponent >= -4 && d.exponent < d.count;
    int before = !fixed ? 1 : d.exponent >= 0 ? d.exponent + 1 : 0; /* digits before the point */
    if (!before) {
        memcpy(p, "0.0000", (size_t)(1 - d.exponent));
        p += 1 - d.exponent;
    }
    for (int i = 0; i < n || i < before; i++) {
        if (i == before && before)
            *p++ = '.';
        *p++ = i < n ? digits[i] : '0';
    }
    if (!fixed) {
        unsigned e = (unsigned)(d.exponent < 0 ? -d.exponent : d.exponent);
        *p++ = 'e';
        *p++ = d.exponent < 0 ? '-' : '+';
        if (e >= 100)
            *p++ = (char)('0' + e / 100);
        *p++ = (char)('0' + e / 10 % 10);
        *p++ = (char)('0' + e % 10);
    }
    return (size_t)(p - buf);
}

/* Replaces the decimal point of the locale, of any length, by a dot. */
static size_t without_locale(char *text, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool usual = (c >= '0' && c <= '9') || c == 'e' || c == '-' || c == '+';
        if (usual)
            text[to++] = c;
        else if (to && text[to - 1] != '.')
            text[to++] = '.';
    }
    return to;
}

static size_t print_slowly(char buf[32], double value, bool is_double, bool subnormal)
{
    /* For subnormal floats strtof reports a range error, which protobuf treats as a difference. */
    int digits = is_double ? DBL_DIG : FLT_DIG;
    int len = snprintf(buf, 32, "%.*g", digits, value);
    if (is_double ? strtod(buf, NULL) != value : subnormal || strtof(buf, NULL) != (float)value)
        len = snprintf(buf, 32, "%.*g", is_double ? DBL_DIG + 2 : FLT_DIG + 3, value);
    return without_locale(buf, (size_t)len);
}

size_t onxi_text_print_float(char buf[32], double value, bool is_double)
{
    binary b;
    uint64_t bits;
    bool exact;
    decimal d;
    if (is_double) {
        memcpy(&bits, &value, sizeof bits);
        b = (binary){ bits & (((uint64_t)1 << 52) - 1), (int)(bits >> 52 & 0x7ff) - 1075, false };
        bits = bits >> 52 & 0x7ff;
    } else {
        float f = (float)value;
        uint32_t word;
        memcpy(&word, &f, sizeof word);
        b = (binary){ word & 0x7fffff, (int)(word >> 23 & 0xff) - 150, false };
        bits = word >> 23 & 0xff;
    }
    if (bits == (is_double ? 0x7ff : 0xff)) {
        const char *text = b.mantissa ? "nan" : value < 0 ? "-inf" : "inf";
        size_t len = strlen(text);
        memcpy(buf, text, len);
        return len;
    }
    bool negative = __builtin_signbit(value) != 0;
    buf[0] = '-';
    if (value == 0) {
        buf[negative] = '0';
        return 1u + negative;
    }
    b.lowest = b.mantissa == 0;
    b.mantissa |= (uint64_t)1 << (is_double ? 52 : 23);
    if (bits && round_to(&b, is_double ? DBL_DIG : FLT_DIG, &d, &exact) &&
        (exact || round_to(&b, is_double ? DBL_DIG + 2 : FLT_DIG + 3, &d, &exact)))
        return negative + print(buf + negative, d);
    return print_slowly(buf, value, is_double, bits == 0);
}
