/* round.h - vectors of floats and of sums made quantized numbers, to the bit as the plain rows have it. */
#ifndef ONXI_KERNEL_SIMD_ROUND_H
#define ONXI_KERNEL_SIMD_ROUND_H

#include "kernel/simd/simd.h"

/* The nearest integers, halves to even, of numbers that are below 2^22. */
static inline onxi_vi rounded(onxi_vf x)
{
    const onxi_vf magic = vf_all(12582912.0f); /* 1.5 * 2^23 */
    return (onxi_vi)(x + magic) - (onxi_vi)magic;
}

static inline onxi_vi quantized(onxi_vf x, onxi_vf scale, float low, float high, int32_t zero)
{
    onxi_vf q = x / scale;
    q = vf_select(q > low, q, vf_all(low)); /* NaN: low */
    q = vf_select(q < high, q, vf_all(high));
    return rounded(q) + zero;
}

/* The same of sums, in double as the plain rows have it. Compilers take vectors of doubles that are wider than those of
 * the processor apart, number by number. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
static inline __m256i requantized_half(__m256i sums, __m256 scale, double low, double high)
{
    const __m512d v = _mm512_mul_pd(_mm512_cvtepi32_pd(sums), _mm512_cvtps_pd(scale));
    const __m512d least = _mm512_set1_pd(low), most = _mm512_set1_pd(high);
    return _mm512_cvtpd_epi32(_mm512_min_pd(_mm512_max_pd(v, least), most)); /* NaN: low; halves to even */
}

static inline onxi_vi requantized(onxi_vi sums, onxi_vf scale, double low, double high, int32_t zero)
{
    const __m512i x = (__m512i)sums;
    const __m512d by = _mm512_castps_pd((__m512)scale);
    const __m256i a = requantized_half(_mm512_castsi512_si256(x), _mm512_castps512_ps256((__m512)scale), low, high);
    const __m256i b =
        requantized_half(_mm512_extracti64x4_epi64(x, 1), _mm256_castpd_ps(_mm512_extractf64x4_pd(by, 1)), low, high);
    return (onxi_vi)_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1) + zero;
}
#elif ONXI_LANES == 8 && defined(__AVX2__)
static inline __m128i requantized_half(__m128i sums, __m128 scale, double low, double high)
{
    const __m256d v = _mm256_mul_pd(_mm256_cvtepi32_pd(sums), _mm256_cvtps_pd(scale));
    const __m256d least = _mm256_set1_pd(low), most = _mm256_set1_pd(high);
    return _mm256_cvtpd_epi32(_mm256_min_pd(_mm256_max_pd(v, least), most));
}

static inline onxi_vi requantized(onxi_vi sums, onxi_vf scale, double low, double high, int32_t zero)
{
    const __m256i x = (__m256i)sums;
    const __m128i a = requantized_half(_mm256_castsi256_si128(x), _mm256_castps256_ps128((__m256)scale), low, high);
    const __m128i b =
        requantized_half(_mm256_extracti128_si256(x, 1), _mm256_extractf128_ps((__m256)scale, 1), low, high);
    return (onxi_vi)_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1) + zero;
}
#else
static inline onxi_vi requantized(onxi_vi sums, onxi_vf scale, double low, double high, int32_t zero)
{
    onxi_vd v = __builtin_convertvector(sums, onxi_vd) * __builtin_convertvector(scale, onxi_vd);
    const onxi_vd magic = (onxi_vd){ 0 } + 6755399441055744.0, least = (onxi_vd){ 0 } + low,
                  most = (onxi_vd){ 0 } + high; /* 1.5 * 2^52 */
    onxi_vl above = v > least;
    v = (onxi_vd)((above & (onxi_vl)v) | (~above & (onxi_vl)least));
    onxi_vl below = v < most;
    v = (onxi_vd)((below & (onxi_vl)v) | (~below & (onxi_vl)most));
    const onxi_vf whole = __builtin_convertvector((v + magic) - magic, onxi_vf); /* exact: there are 17 bits at most */
    return __builtin_convertvector(whole, onxi_vi) + zero;
}
#endif

#endif
