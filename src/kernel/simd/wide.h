/* wide.h - vectors of doubles, each in one register, and functions of them. The error bounds of functions are in units
 * in the last place (ulp), tested against libm in long double (tests/unit/test_kernel_math.c). */
#ifndef ONXI_KERNEL_SIMD_WIDE_H
#define ONXI_KERNEL_SIMD_WIDE_H

#include "kernel/simd/simd.h"

#include <math.h>

enum { VD_LANES = ONXI_LANES / 2 };
typedef double vd __attribute__((vector_size(VD_LANES * 8)));
typedef int64_t vl __attribute__((vector_size(VD_LANES * 8)));
typedef uint64_t vul __attribute__((vector_size(VD_LANES * 8)));

static inline vd vd_all(double x)
{
    return x - (vd){ 0 }; /* unlike x + 0, x - 0 keeps -0, so the compiler needs no instruction for it */
}

/* Lanes of `yes` where the mask is all ones, of `no` where it is zero. */
static inline vd vd_select(vl mask, vd yes, vd no)
{
    return (vd)((mask & (vl)yes) | (~mask & (vl)no));
}

/* Whether a comparison is true of any lane. */
#if ONXI_LANES == 16 && defined(__AVX512DQ__)
static inline bool vl_any(vl mask)
{
    return _mm512_movepi64_mask((__m512i)mask) != 0;
}
#elif ONXI_LANES == 8 && defined(__AVX__)
static inline bool vl_any(vl mask)
{
    return _mm256_movemask_pd((__m256d)mask) != 0;
}
#else
static inline bool vl_any(vl mask)
{
    int64_t any = 0;
    for (int i = 0; i < VD_LANES; i++)
        any |= mask[i];
    return any != 0;
}
#endif

static inline vl vl_select(vl mask, vl yes, vl no)
{
    return (mask & yes) | (~mask & no);
}

#if ONXI_LANES == 16 && defined(__AVX512F__)
static inline vl vl_least(vl a, vl b)
{
    return (vl)_mm512_min_epi64((__m512i)a, (__m512i)b);
}

static inline vl vl_most(vl a, vl b)
{
    return (vl)_mm512_max_epi64((__m512i)a, (__m512i)b);
}
#else
static inline vl vl_least(vl a, vl b)
{
    return vl_select(a < b, a, b);
}

static inline vl vl_most(vl a, vl b)
{
    return vl_select(a < b, b, a);
}
#endif

static inline vd vd_abs(vd x)
{
    return (vd)((vl)x & INT64_MAX);
}

/* x = k * ln(2) + r with an integer k and |r| <= ln(2) / 2, for |x| < 710. Returns r; adding `bits` to those of a
 * normal number multiplies it by 2^k. */
static inline vd vd_reduce(vd x, vul *bits)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    const vd k = x * 1.4426950408889634 + magic, n = k - magic;
    *bits = ((vul)k - (vul)vd_all(magic)) << 52;
    return (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
}

/* 1/2 + r/6 + r^2/24 + ...: (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2 */
static inline vd vd_exp_rest(vd r)
{
    static const double factors[] = {
        1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
        1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5
    };
    vd p = vd_all(1.0 / 6227020800);
    for (unsigned i = 0; i < sizeof factors / sizeof *factors; i++)
        p = p * r + factors[i];
    return p;
}

/* e^x, 2 ulp; results that would be denormal may be 0. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
/* Where the bounds are reached, scaling overflows or gives 0; the second operand of a comparison is kept if it is NaN.
 */
static inline vd vd_exp(vd x)
{
    const __m512d in = _mm512_max_pd(_mm512_set1_pd(-760), _mm512_min_pd(_mm512_set1_pd(760), (__m512d)x));
    const double magic = 6755399441055744.0; /* as in vd_reduce */
    const vd n = ((vd)in * 1.4426950408889634 + magic) - magic;
    const vd r = ((vd)in - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    return (vd)_mm512_scalef_pd((__m512d)((vd_exp_rest(r) * r + 1.0) * r + 1.0), (__m512d)n);
}
#else
static inline vd vd_exp(vd x)
{
    const vl low = x<-708.0, high = x> 709.78, none = x != x;
    vul bits;
    const vd r = vd_reduce(vd_select(low | high | none, vd_all(0), x), &bits);
    const vd whole = (vd)((vul)((vd_exp_rest(r) * r + 1.0) * r + 1.0) + bits);
    return vd_select(none, x, vd_select(low, vd_all(0), vd_select(high, vd_all((double)INFINITY), whole)));
}
#endif

/* 4 ulp: with e = e^2|x| - 1 it is e / (e + 2). From 22 on the result is 1. */
static inline vd vd_tanh(vd x)
{
    const vd a = vd_abs(x);
    vul bits;
    const vd r = vd_reduce(vd_select(a < 22.0, a + a, vd_all(44)), &bits); /* NaN gives NaN below */
    const vd power = (vd)((vul)vd_all(1) + bits);
    const vd e = power * (vd_exp_rest(r) * r * r + r) + (power - 1.0);
    const vd y = (vd)((vl)(e / (e + 2.0)) | ((vl)x & INT64_MIN));
    return vd_select((x == 0.0) | (x != x), x, y);
}

/* sin(x), or cos(x) if `cosine`, 3 ulp. */
static inline vd vd_sine(vd x, const bool cosine)
{
    const double magic = 6755399441055744.0;
    const vd k = x * 0.63661977236758134308 + magic, n = k - magic;
    if (vl_any(~(vd_abs(x) < 1e5))) { /* the first two parts of pi/2 have 33 bits: up to 2^20 products are exact */
        for (int i = 0; i < VD_LANES; i++)
            x[i] = cosine ? cos(x[i]) : sin(x[i]);
        return x;
    }
    const vd r = ((x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    const vd z = r * r, low = 1.0 - 0.5 * z;
    const vd s =
        ((((1.58969099521155010221e-10 * z - 2.50507602534068634195e-08) * z + 2.75573137070700676789e-06) * z -
          1.98412698298579493134e-04) *
             z +
         8.33333333332248946124e-03) *
            z -
        1.66666666666666324348e-01;
    const vd c =
        ((((-1.13596475577881948265e-11 * z + 2.08757232129817482790e-09) * z - 2.75573143513506633035e-07) * z +
          2.48015872894767294178e-05) *
             z -
         1.38888888888741095749e-03) *
            z +
        4.16666666666666019037e-02;
    const vd of_sine = s * z * r + r, of_cosine = low + (((1.0 - low) - 0.5 * z) + z * z * c);
    const vl quarter = (vl)((vul)k - (vul)vd_all(magic)) + (int64_t)cosine;
    const vd y = vd_select((quarter & 1) == 1, of_cosine, of_sine);
    const vd sign = (vd)((vul)(quarter & 2) << 62);
    return cosine ? (vd)((vl)y ^ (vl)sign) : vd_select(x == 0.0, x, (vd)((vl)y ^ (vl)sign));
}

#endif
