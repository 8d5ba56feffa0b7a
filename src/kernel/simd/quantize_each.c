/* quantize_each.c - vectorized QuantizeLinear and DequantizeLinear of elements with scales and zero points of their
 * own, of 16-bit floats, and of integers of 4 and 32 bits, by the drivers of the plain rows and with their bits. */
#include "kernel/core/quantize.h"
#include "kernel/simd/halves.h"
#include "kernel/simd/round.h"

#if !ONXI_PLATFORM_ROOMY
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize_each)[] = { { 0 } };
#else

static half_kind kind_of(int dtype)
{
    return dtype == ONX_FLOAT16 ? HALF_FLOAT16 : HALF_BFLOAT16;
}

static void floats(int dtype, const void *data, uint64_t first, uint64_t n, float *restrict out)
{
    const int32_t *restrict wholes = (const int32_t *)data + first;
    if (dtype == ONX_FLOAT)
        memcpy(out, (const float *)data + first, (size_t)n * sizeof *out);
    else if (dtype != ONX_INT32)
        half_widen(kind_of(dtype), (const uint16_t *)data + first, out, n);
    else
        for (uint64_t i = 0; i < n; i++)
            out[i] = (float)wholes[i];
}

/* ---- quantized types to int32 and back; values fit the type ---- */

#define TYPE(T, name)                                                                                                  \
    static void from_##name(const T *restrict x, uint64_t n, int32_t *restrict y)                                      \
    {                                                                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i] = x[i];                                                                                               \
    }                                                                                                                  \
    static void to_##name(const int32_t *restrict x, uint64_t n, T *restrict y)                                        \
    {                                                                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i] = (T)x[i];                                                                                            \
    }
TYPE(int8_t, i8)
TYPE(uint8_t, u8)
TYPE(int16_t, i16)
TYPE(uint16_t, u16)

/* Two elements in a byte, the lower half first; the sign is bit `sign`, or it is 0. */
static void from_nibbles(const uint8_t *restrict x, uint64_t first, uint64_t n, int32_t sign, int32_t *restrict y)
{
    if (first % 2 && n) {
        *y++ = ((x[first / 2] >> 4) ^ sign) - sign;
        first++, n--;
    }
    x += first / 2;
    for (uint64_t i = 0; i < n / 2; i++) {
        y[2 * i] = ((x[i] & 15) ^ sign) - sign;
        y[2 * i + 1] = ((x[i] >> 4) ^ sign) - sign;
    }
    if (n % 2)
        y[n - 1] = ((x[n / 2] & 15) ^ sign) - sign;
}

static void to_nibbles(const int32_t *restrict x, uint64_t n, uint8_t *restrict y)
{
    for (uint64_t i = 0; i < n / 2; i++)
        y[i] = (uint8_t)((x[2 * i] & 15) | (x[2 * i + 1] & 15) << 4);
    if (n % 2)
        y[n / 2] = (uint8_t)(x[n - 1] & 15);
}

static void wholes(int dtype, const void *data, uint64_t first, uint64_t n, int32_t *out)
{
    switch (dtype) {
    case ONX_INT8:
        from_i8((const int8_t *)data + first, n, out);
        break;
    case ONX_UINT8:
        from_u8((const uint8_t *)data + first, n, out);
        break;
    case ONX_INT16:
        from_i16((const int16_t *)data + first, n, out);
        break;
    case ONX_UINT16:
        from_u16((const uint16_t *)data + first, n, out);
        break;
    case ONX_INT32:
        memcpy(out, (const int32_t *)data + first, (size_t)n * sizeof *out);
        break;
    default:
        from_nibbles(data, first, n, dtype == ONX_INT4 ? 8 : 0, out);
    }
}

static void store(int dtype, const int32_t *x, uint64_t n, void *y)
{
    switch (dtype) {
    case ONX_INT8:
        to_i8(x, n, y);
        break;
    case ONX_UINT8:
        to_u8(x, n, y);
        break;
    case ONX_INT16:
        to_i16(x, n, y);
        break;
    case ONX_UINT16:
        to_u16(x, n, y);
        break;
    default:
        to_nibbles(x, n, y);
    }
}

/* ---- stretches ---- */

static inline onxi_vi load_wholes(const int32_t *x)
{
    onxi_vi v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* The quotients of whole vectors, rounded as in the precision and within low .. high. */
__attribute__((always_inline)) static inline void quotients(const int precision, const float *x, const float *scale,
                                                            const int32_t *zero, uint64_t n, int32_t low, int32_t high,
                                                            int32_t *out)
{
    const half_kind kind = kind_of(precision);
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const onxi_vi shift = load_wholes(zero + i);
        onxi_vf a = vf_load(x + i), b = vf_load(scale + i), q;
        if (precision != ONX_FLOAT) {
            a = half_wide(kind, half_round(kind, a));
            b = half_wide(kind, half_round(kind, b));
            q = half_wide(kind, half_round(kind, a / b));
        } else {
            q = a / b;
        }
        const onxi_vf least = __builtin_convertvector(low - shift, onxi_vf);
        const onxi_vf most = __builtin_convertvector(high - shift, onxi_vf);
        const onxi_vi whole = rounded(vf_min(vf_max(q, least), most)) + shift; /* NaN: low */
        memcpy(out + i, &whole, sizeof whole);
    }
}

static void quantize(int dtype, int precision, float *x, const float *scale, const int32_t *zero, uint64_t n, void *y)
{
    const bool is_signed = dtype == ONX_INT4 || dtype == ONX_INT8 || dtype == ONX_INT16;
    const int32_t values = 1 << onx_dtype_bits(dtype), low = is_signed ? -values / 2 : 0, high = low + values - 1;
    int32_t whole[ONXI_QUANTIZE_STRETCH];
    if (precision == ONX_FLOAT)
        quotients(ONX_FLOAT, x, scale, zero, n, low, high, whole);
    else if (precision == ONX_FLOAT16)
        quotients(ONX_FLOAT16, x, scale, zero, n, low, high, whole);
    else
        quotients(ONX_BFLOAT16, x, scale, zero, n, low, high, whole);
    store(dtype, whole, n, y);
}

static void dequantize(int dtype, bool wide, const int32_t *restrict x, const float *restrict scale,
                       const int32_t *restrict zero, uint64_t n, void *y)
{
    float t[ONXI_QUANTIZE_STRETCH], *out = dtype == ONX_FLOAT ? y : t;
    for (uint64_t i = 0; wide && i < n; i++) /* differences of int32 are exact in double */
        out[i] = (float)((double)x[i] - (double)zero[i]) * scale[i];
    for (uint64_t i = 0; !wide && i < n; i++)
        out[i] = (float)(x[i] - zero[i]) * scale[i];
    if (dtype != ONX_FLOAT)
        half_narrow(kind_of(dtype), t, y, n);
}

static const onxi_quantize_each loops = { floats, wholes, quantize, dequantize };
static const onxi_quantize_body there = { .each = &loops }, back = { .back = true, .each = &loops };

#define REALS (ONXI_F32 | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))
#define SMALL                                                                                                          \
    (ONX_DTYPE_BIT(ONX_INT4) | ONX_DTYPE_BIT(ONX_UINT4) | ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8) |         \
     ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_UINT16))
#define WIDE ONX_DTYPE_BIT(ONX_INT32)
#define ROW(name, types, how, body_)                                                                                   \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = types, .preference = 1, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,         \
        .body = &body_, .prepare = how, .run = onxi_quantize_run                                                       \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize_each)[] = {
    ROW("QuantizeLinear", REALS | WIDE, onxi_quantize_prepare, there),
    ROW("DequantizeLinear", SMALL | WIDE, onxi_dequantize_prepare, back),
    { 0 },
};
#endif
