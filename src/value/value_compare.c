/* value_compare.c - compares two values and reports the first difference. */
#include "value/value.h"

#include <math.h>
#include <stdio.h>

static bool differ(onx_value_difference *d, const char *what, const char *format, ...) ONX_PRINTF(3, 4);
static bool differ(onx_value_difference *d, const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    d->what = what;
    vsnprintf(d->text, sizeof d->text, format, args);
    va_end(args);
    return false;
}

static const char *kind_name(const onx_value *v)
{
    static const char *const names[] = { "nothing", "a tensor", "a sequence", "an optional value", "a map" };
    return v && v->kind < sizeof names / sizeof *names ? names[v->kind] : "nothing";
}

static size_t print_dims(const onx_value *v, char *buf, size_t size)
{
    size_t at = 0;
    int n = snprintf(buf, size, "[");
    at = (size_t)n;
    for (uint32_t i = 0; i < v->rank && at < size; i++) {
        n = snprintf(buf + at, size - at, "%s%lld", i ? "," : "", (long long)v->dims[i]);
        at += (size_t)n;
    }
    if (at + 1 < size) {
        buf[at++] = ']';
        buf[at] = 0;
    }
    return at;
}

bool onx_value_same_type(const onx_value *got, const onx_value *want, onx_value_difference *out)
{
    onx_value_difference unread;
    out = out ? out : &unread;
    memset(out, 0, sizeof *out);
    if (!got || !want || got->kind != want->kind)
        return differ(out, "kind", "got %s, want %s", kind_name(got), kind_name(want));
    if (got->kind == ONX_VALUE_TENSOR) {
        if (got->dtype != want->dtype)
            return differ(out, "element type", "got %s, want %s",
                          onx_dtype_name(got->dtype) ? onx_dtype_name(got->dtype) : "none",
                          onx_dtype_name(want->dtype) ? onx_dtype_name(want->dtype) : "none");
        if (got->rank != want->rank || !onxi_same_dims(got->dims, want->dims, got->rank)) {
            char a[70], b[70];
            print_dims(got, a, sizeof a);
            print_dims(want, b, sizeof b);
            return differ(out, "shape", "got %s, want %s", a, b);
        }
        return true;
    }
    if (got->count != want->count)
        return differ(out, "item count", "got %llu, want %llu", (unsigned long long)got->count,
                      (unsigned long long)want->count);
    return true;
}

/* An element as a double, which is exact for all types but 64-bit integers; these are compared by their bits. */
static double number(int dtype, const void *data, uint64_t index)
{
    double out = 0;
    unsigned bits = onx_dtype_bits(dtype);
    if (bits >= 8) {
        onx_convert(ONX_DOUBLE, &out, (onx_dtype)dtype, (const char *)data + index * (bits / 8), 1, true);
        return out;
    }
    if (!bits)
        return out;
    const uint8_t one = (uint8_t)onxi_packed_get(data, bits, index);
    onx_convert(ONX_DOUBLE, &out, (onx_dtype)dtype, &one, 1, true);
    return out;
}

static bool close_numbers(double got, double want, double rtol, double atol)
{
    if (got == want || (isnan(got) && isnan(want)))
        return true;
    if (isinf(got) || isinf(want)) /* NaN falls through: its comparison below is false */
        return false;
    return fabs(got - want) <= atol + rtol * fabs(want);
}

static bool tensor_close(const onx_value *got, const onx_value *want, double rtol, double atol,
                         onx_value_difference *out)
{
    onx_dtype_class class = onx_dtype_class_of(got->dtype);
    bool complex_ = class == ONX_CLASS_COMPLEX;
    int dtype = got->dtype == ONX_COMPLEX64 ? ONX_FLOAT : got->dtype == ONX_COMPLEX128 ? ONX_DOUBLE : got->dtype;
    uint64_t count = complex_ ? got->count * 2 : got->count;
    unsigned width = onx_dtype_bits(dtype) / 8;
    bool exact = class != ONX_CLASS_FLOATING && !complex_;
    uint64_t bad = 0, first = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool same;
        if (class == ONX_CLASS_TEXT) {
            same = onx_str_equal(((const onx_str *)got->data)[i], ((const onx_str *)want->data)[i]);
        } else if (exact && width) {
            same = memcmp((const char *)got->data + i * width, (const char *)want->data + i * width, width) == 0;
        } else if (dtype == ONX_FLOAT) {
            same = close_numbers((double)((const float *)got->data)[i], (double)((const float *)want->data)[i], rtol,
                                 atol);
        } else {
            same = close_numbers(number(dtype, got->data, i), number(dtype, want->data, i), exact ? 0 : rtol,
                                 exact ? 0 : atol);
        }
        if (!same && bad++ == 0)
            first = i;
    }
    if (!bad)
        return true;
    out->different = bad;
    out->index = complex_ ? first / 2 : first;
    if (class == ONX_CLASS_TEXT) {
        onx_str a = ((const onx_str *)got->data)[first], b = ((const onx_str *)want->data)[first];
        return differ(out, "element", "got \"%.*s\", want \"%.*s\"", (int)(a.len < 50 ? a.len : 50), a.ptr ? a.ptr : "",
                      (int)(b.len < 50 ? b.len : 50), b.ptr ? b.ptr : "");
    }
    out->got = number(dtype, got->data, first);
    out->want = number(dtype, want->data, first);
    return differ(out, "element", "got %.9g, want %.9g", out->got, out->want);
}

static bool keys_equal(const onx_value *got, const onx_value *want, uint64_t i, uint64_t j)
{
    if (got->dtype == ONX_STRING)
        return onx_str_equal(((const onx_str *)got->data)[i], ((const onx_str *)want->data)[j]);
    return ((const int64_t *)got->data)[i] == ((const int64_t *)want->data)[j];
}

static bool close_any(const onx_value *got, const onx_value *want, double rtol, double atol, onx_value_difference *out,
                      unsigned depth)
{
    if (!onx_value_same_type(got, want, out))
        return false;
    if (got->kind == ONX_VALUE_TENSOR)
        return tensor_close(got, want, rtol, atol, out);
    if (got->kind == ONX_VALUE_MAP && got->dtype != want->dtype)
        return differ(out, "key type", "got %d, want %d", got->dtype, want->dtype);
    if (depth > ONX_DEPTH_MAX)
        return differ(out, "depth", "values are nested too deep to compare");
    for (uint64_t i = 0; i < got->count; i++) {
        uint64_t j = i;
        if (got->kind == ONX_VALUE_MAP) { /* items may be in any order, but mostly it is the same */
            for (uint64_t tries = 0; tries < want->count && !keys_equal(got, want, i, j); tries++)
                j = (j + 1) % want->count;
            if (!keys_equal(got, want, i, j))
                return differ(out, "key", "a key is not expected");
        }
        if (!close_any(got->items[i], want->items[j], rtol, atol, out, depth + 1)) {
            out->item = i;
            return false;
        }
    }
    return true;
}

bool onx_value_close(const onx_value *got, const onx_value *want, double rtol, double atol, onx_value_difference *out)
{
    onx_value_difference unread;
    return close_any(got, want, rtol, atol, out ? out : &unread, 0);
}
