/* base_convert.c - converts elements from one type to another. Common pairs have their own loops; all others go through
 * small blocks of doubles or 64-bit integers, which represent every value of their class exactly. */
#include <onx/tensor.h>

#include "base/base.h"

#include <math.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is little-endian and used in place");

enum { BLOCK = 256 }; /* elements; a multiple of 8, so that blocks of packed types begin at a byte */

static bool is_integer(onx_dtype dtype)
{
    onx_dtype_class class = onx_dtype_class_of(dtype);
    return class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED || class == ONX_CLASS_BOOLEAN;
}

/* ---- loading blocks: elements first .. first+n-1 ---- */

#define LOAD(type, expression)                                                                                         \
    do {                                                                                                               \
        const char *p = (const char *)in + first * sizeof(type);                                                       \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type x;                                                                                                    \
            memcpy(&x, p + i * sizeof x, sizeof x);                                                                    \
            out[i] = (expression);                                                                                     \
        }                                                                                                              \
    } while (0)

/* Sign-extends the low `bits` bits. */
static int64_t extend(unsigned value, unsigned bits)
{
    unsigned sign = 1u << (bits - 1);
    return (int64_t)(value ^ sign) - (int64_t)sign;
}

static void load_i64(onx_dtype from, const void *in, uint64_t first, size_t n, int64_t *out)
{
    switch (from) {
    case ONX_INT8:
        LOAD(int8_t, x);
        break;
    case ONX_UINT8:
        LOAD(uint8_t, x);
        break;
    case ONX_BOOL:
        LOAD(uint8_t, x != 0);
        break;
    case ONX_INT16:
        LOAD(int16_t, x);
        break;
    case ONX_UINT16:
        LOAD(uint16_t, x);
        break;
    case ONX_INT32:
        LOAD(int32_t, x);
        break;
    case ONX_UINT32:
        LOAD(uint32_t, x);
        break;
    case ONX_INT64:
        LOAD(int64_t, x);
        break;
    case ONX_UINT64:
        LOAD(uint64_t, (int64_t)x);
        break;
    default: { /* packed */
        unsigned bits = onx_dtype_bits(from);
        bool is_signed = onx_dtype_class_of(from) == ONX_CLASS_SIGNED;
        for (size_t i = 0; i < n; i++) {
            unsigned x = onxi_packed_get(in, bits, first + i);
            out[i] = is_signed ? extend(x, bits) : (int64_t)x;
        }
    }
    }
}

/* Converts to double, rounding to odd: if the result is inexact, its last bit is set. Rounding again to a narrower type
 * then gives the same result as rounding once. */
static double odd_f64(uint64_t magnitude, bool negative)
{
    double value;
    if (magnitude >> 53 == 0) {
        value = (double)magnitude;
    } else {
        unsigned shift = 11u - (unsigned)__builtin_clzll(magnitude);
        uint64_t kept = magnitude >> shift;
        if (kept << shift != magnitude)
            kept |= 1;
        value = (double)kept * (double)((uint64_t)1 << shift);
    }
    return negative ? -value : value;
}

static void load_f64(onx_dtype from, const void *in, uint64_t first, size_t n, double *out)
{
    switch (from) {
    case ONX_FLOAT:
        LOAD(float, (double)x);
        break;
    case ONX_DOUBLE:
        LOAD(double, x);
        break;
    case ONX_FLOAT16:
        LOAD(uint16_t, (double)onx_float16_to_f32(x));
        break;
    case ONX_BFLOAT16:
        LOAD(uint16_t, (double)onx_bfloat16_to_f32(x));
        break;
    case ONX_COMPLEX64:
        for (size_t i = 0; i < n; i++) {
            float x;
            memcpy(&x, (const char *)in + (first + i) * 8, sizeof x);
            out[i] = (double)x;
        }
        break;
    case ONX_COMPLEX128:
        for (size_t i = 0; i < n; i++)
            memcpy(&out[i], (const char *)in + (first + i) * 16, sizeof *out);
        break;
    case ONX_UINT64:
        LOAD(uint64_t, odd_f64(x, false));
        break;
    case ONX_INT64:
        LOAD(int64_t, odd_f64(x < 0 ? 0 - (uint64_t)x : (uint64_t)x, x < 0));
        break;
    default: { /* small floats, and integers that a double represents exactly */
        int64_t whole[BLOCK];
        const unsigned bits = onx_dtype_bits(from);
        if (onx_dtype_class_of(from) == ONX_CLASS_FLOATING) {
            for (size_t i = 0; i < n; i++)
                out[i] = (double)onx_small_float_to_f32(
                    from, bits == 8 ? ((const uint8_t *)in)[first + i] : (uint8_t)onxi_packed_get(in, bits, first + i));
            break;
        }
        load_i64(from, in, first, n, whole);
        for (size_t i = 0; i < n; i++)
            out[i] = (double)whole[i];
    }
    }
}

/* ---- storing blocks ---- */

#define STORE(type, expression)                                                                                        \
    do {                                                                                                               \
        char *p = (char *)out + first * sizeof(type);                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type x = (type)(expression);                                                                               \
            memcpy(p + i * sizeof x, &x, sizeof x);                                                                    \
        }                                                                                                              \
    } while (0)

/* `first` is at a byte boundary; unused bits of the last byte become zero. */
static void store_packed(unsigned bits, const uint8_t *in, size_t n, uint64_t first, void *out)
{
    unsigned char *p = (unsigned char *)out + first / 8 * bits + first % 8 * bits / 8;
    unsigned held = 0, have = 0; /* bits that are not written yet */
    for (size_t i = 0; i < n; i++) {
        held |= (in[i] & ((1u << bits) - 1)) << have;
        have += bits;
        if (have >= 8) {
            *p++ = (unsigned char)held;
            held >>= 8;
            have -= 8;
        }
    }
    if (have)
        *p = (unsigned char)held;
}

/* Keeps the low bits, as Cast does. */
static void store_i64(onx_dtype to, const int64_t *in, size_t n, uint64_t first, void *out)
{
    switch (to) {
    case ONX_INT8:
    case ONX_UINT8:
        STORE(uint8_t, in[i]);
        break;
    case ONX_BOOL:
        STORE(uint8_t, in[i] != 0);
        break;
    case ONX_INT16:
    case ONX_UINT16:
        STORE(uint16_t, in[i]);
        break;
    case ONX_INT32:
    case ONX_UINT32:
        STORE(uint32_t, in[i]);
        break;
    case ONX_INT64:
    case ONX_UINT64:
        STORE(uint64_t, in[i]);
        break;
    default: {
        uint8_t low[BLOCK];
        for (size_t i = 0; i < n; i++)
            low[i] = (uint8_t)in[i];
        store_packed(onx_dtype_bits(to), low, n, first, out);
    }
    }
}

/* Truncates towards zero; NaN becomes 0, values outside of the 64-bit range saturate. */
static int64_t whole_of(double value, bool to_u64)
{
    if (value != value)
        return 0;
    if (to_u64 && value >= 0x1p63)
        return value >= 0x1p64 ? -1 : (int64_t)(uint64_t)value;
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value <= -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

/* Converts to float, rounding to odd (see odd_f64), so that rounding up to a power of two is exact. */
static float odd_f32(double value)
{
    float y = (float)value;
    if (value != value || (double)y == value)
        return y;
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    if (fabs((double)y) > fabs(value))
        bits--; /* was rounded away from zero: step back */
    bits |= 1;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static void store_f64(onx_dtype to, const double *in, size_t n, uint64_t first, void *out, bool saturate)
{
    switch (to) {
    case ONX_FLOAT:
        STORE(float, in[i]);
        break;
    case ONX_DOUBLE:
        STORE(double, in[i]);
        break;
    case ONX_FLOAT16:
    case ONX_BFLOAT16:
        STORE(uint16_t, onxi_f64_to_float(to, in[i], false));
        break;
    case ONX_FLOAT8E8M0:
        STORE(uint8_t, onx_f32_to_float8e8m0(odd_f32(in[i]), ONX_ROUND_UP, saturate));
        break;
    case ONX_BOOL:
        STORE(uint8_t, in[i] != 0);
        break; /* NaN converts to true */
    default: {
        int64_t whole[BLOCK];
        uint8_t low[BLOCK];
        const unsigned bits = onx_dtype_bits(to);
        if (onx_dtype_class_of(to) == ONX_CLASS_FLOATING) {
            for (size_t i = 0; i < n; i++)
                low[i] = (uint8_t)onxi_f64_to_float(to, in[i], saturate);
            if (bits == 8)
                memcpy((char *)out + first, low, n);
            else
                store_packed(bits, low, n, first, out);
            break;
        }
        for (size_t i = 0; i < n; i++)
            whole[i] = whole_of(in[i], to == ONX_UINT64);
        store_i64(to, whole, n, first, out);
    }
    }
}

/* ---- loops of the common pairs ---- */

#define EACH(from_type, to_type, expression)                                                                           \
    do {                                                                                                               \
        const char *p = in;                                                                                            \
        char *q = out;                                                                                                 \
        for (uint64_t i = 0; i < count; i++) {                                                                         \
            from_type x;                                                                                               \
            memcpy(&x, p + i * sizeof x, sizeof x);                                                                    \
            to_type y = (to_type)(expression);                                                                         \
            memcpy(q + i * sizeof y, &y, sizeof y);                                                                    \
        }                                                                                                              \
    } while (0)

#define PAIR(from, to) ((int)(from)*ONX_DTYPE_COUNT + (int)(to))

static bool convert_pair(onx_dtype to, void *out, onx_dtype from, const void *in, uint64_t count)
{
    switch (PAIR(from, to)) {
    case PAIR(ONX_FLOAT16, ONX_FLOAT):
        EACH(uint16_t, float, onx_float16_to_f32(x));
        return true;
    case PAIR(ONX_BFLOAT16, ONX_FLOAT):
        EACH(uint16_t, float, onx_bfloat16_to_f32(x));
        return true;
    case PAIR(ONX_FLOAT, ONX_FLOAT16):
        EACH(float, uint16_t, onx_f32_to_float16(x));
        return true;
    case PAIR(ONX_FLOAT, ONX_BFLOAT16):
        EACH(float, uint16_t, onx_f32_to_bfloat16(x));
        return true;
    case PAIR(ONX_FLOAT, ONX_DOUBLE):
        EACH(float, double, x);
        return true;
    case PAIR(ONX_DOUBLE, ONX_FLOAT):
        EACH(double, float, x);
        return true;
    case PAIR(ONX_UINT8, ONX_FLOAT):
        EACH(uint8_t, float, x);
        return true;
    case PAIR(ONX_INT8, ONX_FLOAT):
        EACH(int8_t, float, x);
        return true;
    case PAIR(ONX_INT32, ONX_FLOAT):
        EACH(int32_t, float, x);
        return true;
    case PAIR(ONX_UINT32, ONX_FLOAT):
        EACH(uint32_t, float, x);
        return true;
    case PAIR(ONX_INT64, ONX_FLOAT):
        EACH(int64_t, float, x);
        return true;
    case PAIR(ONX_UINT64, ONX_FLOAT):
        EACH(uint64_t, float, x);
        return true;
    case PAIR(ONX_BOOL, ONX_FLOAT):
        EACH(uint8_t, float, x != 0);
        return true;
    case PAIR(ONX_FLOAT, ONX_BOOL):
        EACH(float, uint8_t, x != 0); /* NaN converts to true */
        return true;
    case PAIR(ONX_INT32, ONX_DOUBLE):
        EACH(int32_t, double, x);
        return true;
    case PAIR(ONX_INT64, ONX_DOUBLE):
        EACH(int64_t, double, x);
        return true;
    case PAIR(ONX_UINT64, ONX_DOUBLE):
        EACH(uint64_t, double, x);
        return true;
    case PAIR(ONX_INT32, ONX_INT64):
        EACH(int32_t, int64_t, x);
        return true;
    case PAIR(ONX_INT64, ONX_INT32):
        EACH(int64_t, uint32_t, x);
        return true;
    default:
        return false;
    }
}

static bool known(int64_t dtype)
{
    return onx_dtype_bits(dtype) != 0;
}

void onxi_convert(onx_dtype to, void *out, onx_dtype from, const void *in, uint64_t first, uint64_t count,
                  bool saturate)
{
    if (first == 0 && convert_pair(to, out, from, in, count))
        return;
    bool whole = is_integer(from) && is_integer(to);
    for (uint64_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? (size_t)(count - at) : BLOCK;
        if (whole) {
            int64_t block[BLOCK];
            load_i64(from, in, first + at, n, block);
            store_i64(to, block, n, at, out);
        } else {
            double block[BLOCK];
            load_f64(from, in, first + at, n, block);
            store_f64(to, block, n, at, out, saturate);
        }
    }
}

onx_status onx_convert(onx_dtype to, void *out, onx_dtype from, const void *in, uint64_t count, bool saturate)
{
    ONXI_NEED(NULL, out || !count);
    ONXI_NEED(NULL, in || !count);
    uint64_t bytes;
    if (!known(to) || !known(from) || onx_dtype_class_of(to) == ONX_CLASS_COMPLEX ||
        onx_dtype_class_of(from) == ONX_CLASS_COMPLEX)
        return ONX_E_UNSUPPORTED;
    if (!onx_dtype_size(to, count, &bytes) || !onx_dtype_size(from, count, &bytes))
        return ONX_E_LIMIT;
    if (count == 0)
        return ONX_OK;
    if (to != from) {
        onxi_convert(to, out, from, in, 0, count, saturate);
        return ONX_OK;
    }
    memmove(out, in, (size_t)bytes);
    /* Copies elements of the same type; unused bits of the last byte become zero. */
    unsigned bits = onx_dtype_bits(to), used = onxi_packed_used(bits, count);
    if (bits < 8 && used)
        ((unsigned char *)out)[bytes - 1] &= (unsigned char)((1u << used) - 1);
    return ONX_OK;
}

onx_status onx_codes_pack(onx_dtype dtype, void *out, const uint8_t *codes, uint64_t count)
{
    const unsigned bits = onx_dtype_bits((int64_t)dtype);
    ONXI_NEED(NULL, out || !count);
    ONXI_NEED(NULL, codes || !count);
    if (!bits || bits > 8)
        return ONX_E_UNSUPPORTED;
    if (bits == 8 && count)
        memcpy(out, codes, (size_t)count);
    else if (count)
        store_packed(bits, codes, (size_t)count, 0, out);
    return ONX_OK;
}

onx_status onx_codes_unpack(onx_dtype dtype, uint8_t *codes_out, const void *in, uint64_t count)
{
    const unsigned bits = onx_dtype_bits((int64_t)dtype);
    const bool is_signed = onx_dtype_class_of((int64_t)dtype) == ONX_CLASS_SIGNED;
    ONXI_NEED(NULL, codes_out || !count);
    ONXI_NEED(NULL, in || !count);
    if (!bits || bits > 8)
        return ONX_E_UNSUPPORTED;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned code = bits == 8 ? ((const uint8_t *)in)[i] : onxi_packed_get(in, bits, i);
        codes_out[i] = (uint8_t)(is_signed ? extend(code, bits) : (int64_t)code);
    }
    return ONX_OK;
}
