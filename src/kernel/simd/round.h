/* round.h - vectorized quantization of floats and of integer sums, with the same bits as the plain rows. */
#ifndef ONXI_KERNEL_SIMD_ROUND_H
#define ONXI_KERNEL_SIMD_ROUND_H

#include "kernel/simd/simd.h"

#include <math.h>

typedef uint8_t byte_line __attribute__((vector_size(ONXI_LANES)));

/* Converts bytes to floats, with intrinsics because compilers convert a vector of bytes element by element. */
static inline onxi_vf floats_of(const uint8_t *x, uint64_t n, uint8_t flip)
{
    byte_line v = { 0 };
    if (n == ONXI_LANES)
        memcpy(&v, x, sizeof v);
    else
        memcpy(&v, x, (size_t)n);
    v ^= flip;
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32((__m128i)v));
#elif ONXI_LANES == 8 && defined(__AVX2__)
    __m128i low = _mm_setzero_si128();
    memcpy(&low, &v, sizeof v);
    return (onxi_vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low));
#else
    return __builtin_convertvector(__builtin_convertvector(v, onxi_vi), onxi_vf);
#endif
}

/* The low byte of each integer. */
static inline byte_line bytes_of(onxi_vi x)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (byte_line)_mm512_cvtepi32_epi8((__m512i)x);
#else
    return __builtin_convertvector(x, byte_line);
#endif
}

/* a * b + c, rounded once. Without an FMA instruction it is computed in double, which gives the same bits unless the
 * magnitudes of a * b and c are very different. */
static inline onxi_vf fused(onxi_vf a, onxi_vf b, onxi_vf c)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif ONXI_LANES == 8 && defined(__FMA__)
    return (onxi_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    const onxi_vd sum =
        __builtin_convertvector(a, onxi_vd) * __builtin_convertvector(b, onxi_vd) + __builtin_convertvector(c, onxi_vd);
    return __builtin_convertvector(sum, onxi_vf);
#endif
}

/* Rounds to the nearest integer, ties to even. |x| must be below 2^22. */
static inline onxi_vi rounded(onxi_vf x)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vi)_mm512_cvtps_epi32((__m512)x);
#else
    const onxi_vf magic = vf_all(12582912.0f); /* 1.5 * 2^23 */
    return (onxi_vi)(x + magic) - (onxi_vi)magic;
#endif
}

/* Clamps to `low` .. `high`, rounds, and adds the zero point. */
static inline onxi_vi rounded_within(onxi_vf q, float low, float high, int32_t zero)
{
    q = vf_min(vf_max(q, vf_all(low)), vf_all(high)); /* NaN: low */
    return rounded(q) + zero;
}

/* How far x * (1 / scale) may be from the nearest integer and still round like x / scale. The reciprocal, the product
 * and the quotient are all rounded, so product and quotient differ by at most 2^-22 of the larger bound. */
static inline float beside_half(float low, float high)
{
    return 0.5f - (-low > high ? -low : high) * 0x1p-21f;
}

/* x / scale, clamped, rounded, plus the zero point. The product with the reciprocal rounds the same way unless it is
 * close to a tie. If it is, or if scale or its reciprocal is too large or too small, the quotient is computed; a
 * division takes as long as all the rest. */
static inline onxi_vi quantized(onxi_vf x, onxi_vf scale, float low, float high, int32_t zero)
{
    const onxi_vi fits = (vf_abs(scale) > 0x1p-120f) & (vf_abs(scale) < 0x1p120f);
#if ONXI_LANES == 16 && defined(__AVX512F__)
    const onxi_vf beside = vf_select(fits, vf_all(beside_half(low, high)), vf_all(-1));
    const onxi_vf q = vf_min(vf_max(x * (1.0f / scale), vf_all(low)), vf_all(high)); /* NaN: low */
    const __m512 off = _mm512_abs_ps(_mm512_reduce_ps((__m512)q, _MM_FROUND_TO_NEAREST_INT));
    if (__builtin_expect(_mm512_cmp_ps_mask(off, (__m512)beside, _CMP_GE_OQ) != 0, 0))
        return rounded_within(x / scale, low, high, zero);
    return (onxi_vi)_mm512_cvtps_epi32((__m512)q) + zero;
#else
    const onxi_vf magic = vf_all(12582912.0f), q = x * vf_select(fits, 1.0f / scale, vf_all(NAN));
    const onxi_vf off = vf_abs(q - ((q + magic) - magic));
    if (__builtin_expect(vi_any(~(onxi_vi)(off < beside_half(low, high))), 0))
        return rounded_within(x / scale, low, high, zero);
    return rounded_within(q, low, high, zero);
#endif
}

/* The same for ranges of 16 bits, where many products are close to a tie: the product is corrected by the remainder,
 * which FMA computes exactly. The first correction leaves at most the neighbour of the rounded quotient, the second one
 * gives the rounded quotient itself, because the reciprocal is rounded correctly (Markstein's theorem). */
static inline onxi_vi quantized_wide(onxi_vf x, onxi_vf scale, float low, float high, int32_t zero)
{
#ifdef __FMA__
    const onxi_vf least = vf_all(low), most = vf_all(high), by = 1.0f / scale;
    if (vi_any((vf_abs(scale) <= 0x1p-60f) | (vf_abs(scale) >= 0x1p60f) | (scale != scale)))
        return rounded_within(x / scale, low, high, zero);
    onxi_vf q = vf_min(vf_max(x * by, least), most);
    q = vf_min(vf_max(fused(fused(-scale, q, x), by, q), least), most); /* infinity must not meet another one */
    return rounded_within(fused(fused(-scale, q, x), by, q), low, high, zero);
#else
    return quantized(x, scale, low, high, zero);
#endif
}

/* sums * scale in float, rounded like onxi_requantized, plus the zero point. */
static inline onxi_vi requantized(onxi_vi sums, onxi_vf scale, float low, float high, int32_t zero)
{
    return rounded_within(__builtin_convertvector(sums, onxi_vf) * scale, low, high, zero);
}

#endif
