/* run_values.h - elements of tensors as written in the cases of operators: integers exactly, floats by their shortest
 * digits; and the comparison of results with the written values. Include after cmocka.h. */
#ifndef TESTS_RUN_VALUES_H
#define TESTS_RUN_VALUES_H

#include <onx/tensor.h>
#include <onx/value.h>

#include "base/base.h"
#include "unit/cases.h"

#include <ctype.h>
#include <math.h>

/* How far a floating-point number may be from the one that is written. Both 0: it has to be that number, with that
 * sign of zero. */
typedef struct run_tolerance {
    double ulps;     /* steps of the element type */
    double absolute; /* or so much */
} run_tolerance;

/* One element: bits as raw_data has them, those of the imaginary part in the second word. */
typedef struct run_element {
    uint64_t bits[2];
} run_element;

static inline bool run_is_whole(onx_dtype dtype)
{
    onx_dtype_class class = onx_dtype_class_of(dtype);
    return class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED;
}

/* The type of one of the two parts of a complex number, any other type itself. */
static inline onx_dtype run_part_type(onx_dtype dtype)
{
    return dtype == ONX_COMPLEX64 ? ONX_FLOAT : dtype == ONX_COMPLEX128 ? ONX_DOUBLE : (onx_dtype)dtype;
}

/* Number `index` of the elements: complex ones count as two. */
static inline uint64_t run_bits(const onx_value *v, uint64_t index)
{
    unsigned bits = onx_dtype_bits(run_part_type((onx_dtype)v->dtype));
    uint64_t out = 0;
    if (bits < 8)
        return onxi_packed_get(v->data, bits, index);
    memcpy(&out, (const char *)v->data + index * (bits / 8), bits / 8);
    return out;
}

static inline double run_number(onx_dtype dtype, uint64_t bits)
{
    double x = 0;
    onxi_convert(ONX_DOUBLE, &x, dtype, &bits, 0, 1, true);
    return x;
}

static inline int64_t run_integer(onx_dtype dtype, uint64_t bits)
{
    int64_t x = 0;
    onxi_convert(ONX_INT64, &x, dtype, &bits, 0, 1, true);
    return x;
}

static inline uint64_t run_round(onx_dtype dtype, double x)
{
    uint64_t bits = 0;
    onxi_convert(dtype, &bits, ONX_DOUBLE, &x, 0, 1, false);
    return bits;
}

/* What is written for an element, where a type can hold it: NaN, infinities, decimal numbers. False: not at all, or
 * not this integer. Floats are rounded to nearest. */
static inline bool run_parse(onx_dtype dtype, const char *text, size_t len, uint64_t *out)
{
    char copy[64], *end;
    if (len == 0 || len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    *out = 0;
    if (dtype == ONX_BOOL) {
        *out = strtod(copy, &end) != 0;
    } else if (dtype == ONX_UINT64) {
        *out = strtoull(copy, &end, 10);
        return !*end && copy[0] != '-';
    } else if (run_is_whole(dtype)) {
        int64_t x = strtoll(copy, &end, 10);
        onxi_convert(dtype, out, ONX_INT64, &x, 0, 1, true);
        return !*end && run_integer(dtype, *out) == x;
    } else if (dtype == ONX_FLOAT) {
        float x = strtof(copy, &end);
        memcpy(out, &x, sizeof x);
    } else {
        *out = run_round(dtype, strtod(copy, &end));
    }
    return !*end;
}

/* The fewest digits that are read back as the same element. */
static inline void run_print(onx_dtype dtype, uint64_t bits, char text[32])
{
    double x = run_number(dtype, bits);
    uint64_t back;
    if (dtype == ONX_UINT64)
        snprintf(text, 32, "%llu", (unsigned long long)bits);
    else if (run_is_whole(dtype) || dtype == ONX_BOOL)
        snprintf(text, 32, "%lld", (long long)run_integer(dtype, bits));
    else if (x != x)
        snprintf(text, 32, "nan");
    else
        for (int digits = fabs(x) >= 1 && fabs(x) < 1e9 ? (int)log10(fabs(x)) + 1 : 1; digits <= 17; digits++) {
            snprintf(text, 32, "%.*g", digits, x); /* 100, not 1e+02 */
            if (isinf(x) || (run_parse(dtype, text, strlen(text), &back) && back == bits))
                break;
        }
}

/* Steps of the type from one number to the other. */
static inline double run_distance(onx_dtype dtype, uint64_t a, uint64_t b)
{
    uint64_t sign = dtype == ONX_FLOAT8E8M0 ? 0 : (uint64_t)1 << (onx_dtype_bits(dtype) - 1);
    double x = (double)(a & ~sign), y = (double)(b & ~sign);
    if (onx_dtype_bits(dtype) == 64 && !((a ^ b) & sign)) /* doubles have more steps than a double can count */
        return (double)(a > b ? a - b : b - a);
    return fabs((a & sign ? -x : x) - (b & sign ? -y : y));
}

static inline bool run_same_number(onx_dtype dtype, uint64_t got, uint64_t want, const run_tolerance *t)
{
    if (got == want)
        return true;
    if (run_is_whole(dtype) || dtype == ONX_BOOL)
        return false;
    double x = run_number(dtype, got), y = run_number(dtype, want);
    if (x != x || y != y)
        return x != x && y != y;
    return run_distance(dtype, got, want) <= t->ulps || fabs(x - y) <= t->absolute;
}

static inline void run_add_text(cases_buffer *b, onx_str s)
{
    cases_add_text(b, "\"");
    cases_add(b, s.ptr ? s.ptr : "", s.len);
    cases_add_text(b, "\"");
}

/* name: float[2,3] {1, 2, 3, 4, 5, 6} */
static inline void run_add_value(cases_buffer *b, onx_str name, const onx_value *v)
{
    char text[48];
    cases_add(b, name.ptr, name.len);
    assert_int_equal(v->kind, ONX_VALUE_TENSOR);
    snprintf(text, sizeof text, ": %s[", onx_dtype_name(v->dtype));
    cases_add_text(b, text);
    for (uint32_t i = 0; i < v->rank; i++) {
        snprintf(text, sizeof text, "%s%lld", i ? "," : "", (long long)v->dims[i]);
        cases_add_text(b, text);
    }
    cases_add_text(b, "] {");
    onx_dtype part = run_part_type((onx_dtype)v->dtype);
    uint64_t count = v->count * (part != v->dtype ? 2 : 1);
    for (uint64_t i = 0; i < count; i++) {
        cases_add_text(b, i ? ", " : "");
        if (part == ONX_STRING) {
            run_add_text(b, ((const onx_str *)v->data)[i]);
        } else {
            run_print(part, run_bits(v, i), text);
            cases_add_text(b, text);
        }
    }
    cases_add_text(b, "}\n");
}

/* ---- what is written, read along what came out ---- */

static inline bool run_take(onx_str *rest, const char *text, size_t len)
{
    while (rest->len && (*rest->ptr == ' ' || *rest->ptr == '\n'))
        rest->ptr++, rest->len--;
    if (rest->len < len || memcmp(rest->ptr, text, len) != 0)
        return false;
    rest->ptr += len;
    rest->len -= len;
    return true;
}

static inline onx_str run_take_token(onx_str *rest)
{
    run_take(rest, "", 0);
    size_t n = 0;
    while (n < rest->len && !strchr(",}] \n", rest->ptr[n]))
        n++;
    onx_str token = onx_str_make(rest->ptr, n);
    rest->ptr += n;
    rest->len -= n;
    return token;
}

/* A text in a typed case may be written as a number, since the other types have numbers there. */
static inline bool run_take_text(onx_str *rest, onx_str got)
{
    bool quoted = run_take(rest, "\"", 1);
    if (!quoted)
        return onx_str_equal(run_take_token(rest), got);
    if (rest->len < got.len || memcmp(rest->ptr, got.ptr ? got.ptr : "", got.len) != 0)
        return false;
    rest->ptr += got.len;
    rest->len -= got.len;
    return rest->len && *rest->ptr == '"' && run_take(rest, "\"", 1);
}

/* Whether `rest` goes on with the value as run_add_value writes it, where `type_name` may stand for its type. */
static inline bool run_take_value(onx_str *rest, onx_str name, const onx_value *v, onx_str type_name,
                                  const run_tolerance *t)
{
    char text[48];
    if (v->kind != ONX_VALUE_TENSOR || !run_take(rest, name.ptr, name.len) || !run_take(rest, ":", 1))
        return false;
    const char *own = onx_dtype_name(v->dtype);
    bool typed = type_name.len && run_take(rest, type_name.ptr, type_name.len);
    if (!typed && !run_take(rest, own, strlen(own)))
        return false;
    if (!run_take(rest, "[", 1))
        return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        int n = snprintf(text, sizeof text, "%s%lld", i ? "," : "", (long long)v->dims[i]);
        if (!run_take(rest, text, (size_t)n))
            return false;
    }
    if (!run_take(rest, "]", 1) || !run_take(rest, "{", 1))
        return false;
    onx_dtype part = run_part_type((onx_dtype)v->dtype);
    uint64_t count = v->count * (part != v->dtype ? 2 : 1), want;
    for (uint64_t i = 0; i < count; i++) {
        if (typed && part != v->dtype && i % 2) { /* the same list serves all types: no imaginary parts */
            if (run_number(part, run_bits(v, i)) != 0)
                return false;
            continue;
        }
        if (i && !run_take(rest, ",", 1))
            return false;
        if (part == ONX_STRING) {
            if (!run_take_text(rest, ((const onx_str *)v->data)[i]))
                return false;
            continue;
        }
        onx_str token = run_take_token(rest);
        if (!run_parse(part, token.ptr, token.len, &want) || !run_same_number(part, run_bits(v, i), want, t))
            return false;
    }
    return run_take(rest, "}", 1);
}

#endif
