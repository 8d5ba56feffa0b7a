/* base_number.c - conversion between floating point and decimal text, correctly rounded and independent of the locale.
 * Short decimals take exact arithmetic in double; the rest uses the C library without relying on its decimal point. */
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A double represents integers up to 2^53 and these powers of ten exactly, so one multiplication or division of the two
 * is correctly rounded. */
enum { POWER_MAX = 22 };
static const double powers[POWER_MAX + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/* Rounds a rounded double again to float. The result is correct unless the double is exactly halfway between two
 * floats, because the first rounding may have moved it there. */
static bool rounds_once_more(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value >= 0x1p-126 && value < 0x1p127 && (bits & 0x1fffffffu) != 0x10000000u;
}

/* ---- parsing ---- */

enum { MANTISSA_DIGITS = 18 };

typedef struct number {
    bool negative;
    bool cut;   /* nonzero digits follow those in the mantissa */
    int digits; /* number of digits in the mantissa, without leading zeros */
    uint64_t mantissa;
    int64_t scale;            /* value = mantissa * 10^scale, unless cut */
    int64_t exponent;         /* as written after the e */
    const char *first, *last; /* digits and decimal point */
} number;

/* [ ( "e" | "E" ) [ "+" | "-" ] digits ] up to `end` */
static bool scan_exponent(const char *p, const char *end, int64_t *out)
{
    *out = 0;
    if (p == end)
        return true;
    if (*p++ != 'e' && p[-1] != 'E')
        return false;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '+' || *p == '-'))
        p++;
    if (p == end)
        return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (*out < INT64_MAX / 100)
            *out = *out * 10 + (*p - '0');
    if (negative)
        *out = -*out;
    return p == end;
}

/* [ "+" | "-" ] digits with at most one point among them, exponent */
static bool scan_number(onx_str text, number *n)
{
    const char *p = text.ptr, *end = onxi_str_end(text);
    bool point = false, any = false;
    memset(n, 0, sizeof *n);
    if (p < end && (*p == '+' || *p == '-'))
        n->negative = *p++ == '-';
    n->first = p;
    for (; p < end; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        any = true;
        if (n->digits < MANTISSA_DIGITS) {
            n->mantissa = n->mantissa * 10 + (uint64_t)(*p - '0');
            n->digits += n->mantissa != 0;
            n->scale -= point;
        } else {
            n->cut |= *p != '0';
            n->scale += !point;
        }
    }
    n->last = p;
    if (!any || !scan_exponent(p, end, &n->exponent))
        return false;
    n->scale += n->exponent;
    return true;
}

static bool word_is(onx_str text, const char *word)
{
    if (text.len != strlen(word))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((text.ptr[i] | 0x20) != word[i])
            return false;
    return true;
}

/* [ "+" | "-" ] ( "inf" | "infinity" | "nan" ) in any case */
static bool parse_word(onx_str text, double *out)
{
    bool negative = text.len && text.ptr[0] == '-';
    if (text.len && (text.ptr[0] == '+' || text.ptr[0] == '-'))
        text = onx_str_make(text.ptr + 1, text.len - 1);
    if (word_is(text, "inf") || word_is(text, "infinity"))
        *out = (double)INFINITY;
    else if (word_is(text, "nan"))
        *out = (double)NAN;
    else
        return false;
    if (negative)
        *out = -*out;
    return true;
}

/* The midpoint between two doubles has at most 767 significant digits; of longer numbers, only whether a nonzero digit
 * follows matters. */
enum { DIGITS_MAX = 780 };

/* Writes the digits without a point, then e and the exponent: this form is independent of the locale. */
static double parse_slow(const number *n, bool to_float)
{
    char buf[DIGITS_MAX + 32];
    size_t used = 0;
    int64_t exponent = n->exponent;
    bool point = false, sticky = false;
    for (const char *p = n->first; p < n->last; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (used == DIGITS_MAX) {
            sticky |= *p != '0';
            exponent += !point;
            continue;
        }
        exponent -= point;
        if (used || *p != '0')
            buf[used++] = *p;
    }
    if (used == 0)
        return 0;
    if (sticky) {
        buf[used++] = '1';
        exponent--;
    }
    int e = exponent > 100000 ? 100000 : exponent < -100000 ? -100000 : (int)exponent;
    snprintf(buf + used, sizeof buf - used, "e%d", e);
    return to_float ? (double)strtof(buf, NULL) : strtod(buf, NULL);
}

/* Computes the magnitude if one exact operation suffices; false otherwise. */
static bool parse_fast(const number *n, double *out)
{
    if (n->cut || n->mantissa >> 53 || n->scale > POWER_MAX || n->scale < -POWER_MAX)
        return false;
    double m = (double)n->mantissa;
    *out = n->scale < 0 ? m / powers[-n->scale] : m * powers[n->scale];
    return true;
}

bool onxi_parse_f64(onx_str text, double *out, bool *overflow)
{
    number n;
    *overflow = false;
    if (!scan_number(text, &n))
        return parse_word(text, out);
    double value;
    if (!parse_fast(&n, &value))
        value = parse_slow(&n, false);
    *overflow = isinf(value);
    *out = n.negative ? -value : value;
    return true;
}

bool onxi_parse_f32(onx_str text, float *out, bool *overflow)
{
    number n;
    double value;
    *overflow = false;
    if (!scan_number(text, &n)) {
        bool word = parse_word(text, &value);
        if (word)
            *out = (float)value;
        return word;
    }
    if (!parse_fast(&n, &value) || !(value == 0 || rounds_once_more(value)))
        value = parse_slow(&n, true);
    float narrow = (float)value;
    *overflow = isinf(narrow);
    *out = n.negative ? -narrow : narrow;
    return true;
}

/* ---- printing ---- */

typedef struct decimal {
    char digits[24];
    int count;
    int exponent; /* of the first digit: d.ddd * 10^exponent */
} decimal;

/* Like %g: exponents outside of -4 .. 15 are written in scientific notation. Trailing zeros of `d` have been
 * dropped. */
static size_t format_decimal(char *buf, bool negative, const decimal *d)
{
    char *p = buf;
    if (negative)
        *p++ = '-';
    if (d->exponent < -4 || d->exponent > 15) {
        *p++ = d->digits[0];
        if (d->count > 1) {
            *p++ = '.';
            memcpy(p, d->digits + 1, (size_t)d->count - 1);
            p += d->count - 1;
        }
        int e = d->exponent < 0 ? -d->exponent : d->exponent;
        *p++ = 'e';
        *p++ = d->exponent < 0 ? '-' : '+';
        if (e >= 100)
            *p++ = (char)('0' + e / 100);
        *p++ = (char)('0' + e / 10 % 10);
        *p++ = (char)('0' + e % 10);
    } else if (d->exponent < 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = -1; i > d->exponent; i--)
            *p++ = '0';
        memcpy(p, d->digits, (size_t)d->count);
        p += d->count;
    } else {
        for (int i = 0; i < d->count || i <= d->exponent; i++) {
            if (i == d->exponent + 1)
                *p++ = '.';
            *p++ = i < d->count ? d->digits[i] : '0';
        }
    }
    *p = 0;
    return (size_t)(p - buf);
}

static void drop_zeros(decimal *d)
{
    while (d->count > 1 && d->digits[d->count - 1] == '0')
        d->count--;
}

/* The digits of m * 10^-scale, without trailing zeros. */
static void set_digits(decimal *d, uint64_t m, int scale)
{
    char reversed[24];
    int count = 0;
    do
        reversed[count++] = (char)('0' + m % 10);
    while (m /= 10);
    for (int i = 0; i < count; i++)
        d->digits[i] = reversed[count - 1 - i];
    d->count = count;
    d->exponent = count - 1 - scale;
    drop_zeros(d);
}

static void shortest_float(float value, decimal *d)
{
    uint32_t bits;
    int exponent;
    memcpy(&bits, &value, sizeof bits);
    uint32_t digits = onxi_shortest_f32(bits, &exponent);
    set_digits(d, digits, -exponent);
}

/* Does m * 10^-scale, with an integer m below 2^53, round to the value? */
static bool reads_as(double m, int scale, double value)
{
    return (scale >= 0 ? m / powers[scale] : m * powers[-scale]) == value;
}

static double scaled(double value, int scale)
{
    return rint(scale >= 0 ? value * powers[scale] : value / powers[-scale]);
}

/* The shortest decimal, if exact powers of ten suffice to find it; false otherwise. `value` is above 0. */
static bool shortest_fast(double value, decimal *d)
{
    int exponent = (int)floor(log10(value)), most = 15, least = 1;
    if (exponent < -POWER_MAX + 16 || exponent > POWER_MAX)
        return false;
    /* one probe in the middle avoids searching the short lengths for long values */
    if (!reads_as(scaled(value, most - 1 - exponent), most - 1 - exponent, value))
        return false;
    if (!reads_as(scaled(value, most / 2 - exponent), most / 2 - exponent, value))
        least = most / 2 + 2;
    for (int n = least; n <= most; n++) {
        int scale = n - 1 - exponent;
        double m = scaled(value, scale);
        if (!reads_as(m, scale, value))
            continue;
        set_digits(d, (uint64_t)m, scale);
        return true;
    }
    return false;
}

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 wide;

/* The nearest m * 10^-scale, computed exactly, for value = mantissa * 2^-shift; true if it rounds to the value. */
static bool round_exactly(uint64_t mantissa, int shift, int scale, uint64_t *out)
{
    wide unit = 1, half = (wide)1 << (shift - 1), rest;
    for (int i = 0; i < scale; i++)
        unit *= 10; /* one unit in the last place of the value, in 10^-scale * 2^-shift */
    wide scaled_up = mantissa * unit;
    wide m = (scaled_up + half) >> shift;
    *out = (uint64_t)m;
    wide back = m << shift;
    rest = back > scaled_up ? back - scaled_up : scaled_up - back;
    if (mantissa == (uint64_t)1 << 52)
        return rest * 4 < unit; /* at a power of two, the neighbour below is only half as far away */
    return rest * 2 < unit || (rest * 2 == unit && (mantissa & 1) == 0);
}

/* 16 or 17 digits of a double between 1e-3 and 1e15 that has no shorter form. */
static bool shortest_exact(double value, decimal *d)
{
    int exponent2, exponent = (int)floor(log10(value));
    uint64_t mantissa = (uint64_t)ldexp(frexp(value, &exponent2), 53), m;
    int shift = 53 - exponent2, scale = 15 - exponent; /* of 16 digits */
    if (shift < 1 || shift > 64 || scale < 0 || scale > 18)
        return false;
    while (!round_exactly(mantissa, shift, scale, &m))
        if (++scale > 19)
            return false;
    set_digits(d, m, scale);
    return true;
}

#else

static bool shortest_exact(double value, decimal *d)
{
    (void)value;
    (void)d;
    return false; /* the C library takes longer, but gives the same result */
}

#endif

/* `count` digits from the C library; its decimal point is skipped, whatever it is. */
static void library_digits(double value, int count, decimal *d)
{
    char buf[64];
    snprintf(buf, sizeof buf, "%.*e", count - 1, value);
    const char *p = buf;
    d->count = 0;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && d->count < count)
            d->digits[d->count++] = *p;
    d->exponent = *p ? atoi(p + 1) : 0;
}

static bool library_reads_as(const decimal *d, double value)
{
    char buf[64];
    snprintf(buf, sizeof buf, "%.*se%d", d->count, d->digits, d->exponent - (d->count - 1));
    return strtod(buf, NULL) == value;
}

static void shortest_slow(double value, decimal *d)
{
    int low = 1, high = 17; /* 17 digits always suffice, and one digit more is never less accurate */
    while (low < high) {
        int middle = (low + high) / 2;
        library_digits(value, middle, d);
        if (library_reads_as(d, value))
            high = middle;
        else
            low = middle + 1;
    }
    library_digits(value, low, d);
    drop_zeros(d);
}

static size_t print_number(char *buf, double value, bool is_float)
{
    bool negative = signbit(value) != 0;
    const char *word = isnan(value) ? "nan" : isinf(value) ? "inf" : value == 0 ? "0" : NULL;
    if (word) {
        negative &= !isnan(value);
        memcpy(buf + negative, word, strlen(word) + 1);
        if (negative)
            buf[0] = '-';
        return strlen(word) + negative;
    }
    decimal d;
    value = fabs(value);
    if (is_float)
        shortest_float((float)value, &d);
    else if (!shortest_fast(value, &d) && !shortest_exact(value, &d))
        shortest_slow(value, &d);
    return format_decimal(buf, negative, &d);
}

size_t onxi_print_f32(char buf[32], float value)
{
    return print_number(buf, (double)value, true);
}
size_t onxi_print_f64(char buf[32], double value)
{
    return print_number(buf, value, false);
}
