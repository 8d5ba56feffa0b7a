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

/* The same of sums, in double as the plain rows have it. */
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
