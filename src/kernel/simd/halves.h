/* halves.h - vectorized float16 and bfloat16: conversion to and from float, and loops over floats that process them in
 * stretches. Results are rounded once, as in the plain rows. */
#ifndef ONXI_KERNEL_SIMD_HALVES_H
#define ONXI_KERNEL_SIMD_HALVES_H

#include "kernel/simd/simd.h"

typedef uint16_t halves __attribute__((vector_size(ONXI_LANES * 2)));

static inline onxi_vu choose(onxi_vi mask, onxi_vu a, onxi_vu b)
{
    return (onxi_vu)vf_select(mask, (onxi_vf)a, (onxi_vf)b);
}

/* ---- float16 ---- */

#if ONXI_LANES == 16 && defined(__AVX512F__)
static inline halves float16_of(onxi_vf x)
{
    return (halves)_mm512_maskz_cvtps_ph(0xffff, (__m512)x, _MM_FROUND_TO_NEAREST_INT);
}
#elif ONXI_LANES == 8 && defined(__F16C__)
static inline halves float16_of(onxi_vf x)
{
    return (halves)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
}
#else
/* Below 2^-14, the sum with 0.5 has the unit of the result; otherwise rounding may carry into infinity, as it
 * should. */
static inline halves float16_of(onxi_vf x)
{
    const onxi_vu sign = ((onxi_vu)x >> 16) & 0x8000u, bits = (onxi_vu)x & 0x7fffffffu;
    const onxi_vf size = (onxi_vf)bits;
    const onxi_vu small = (onxi_vu)(size + 0.5f) - 0x3f000000u;
    const onxi_vu usual = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
    onxi_vu y = choose(size < 0x1p-14f, small, usual);
    y = choose(size >= 65536.0f, (onxi_vu){ 0 } + 0x7c00u, y);
    y = choose(size != size, 0x7e00u | ((bits >> 13) & 0x1ffu), y);
    return __builtin_convertvector(sign | y, halves);
}
#endif

/* The exponent of a float has three more bits and another bias. The conversion instruction is not used, because it
 * changes signaling NaN; nor is a multiplication, because subnormal floats are slow on some CPUs. */
static inline onxi_vf of_float16(halves x)
{
    const onxi_vu wide = __builtin_convertvector(x, onxi_vu), bits = (wide & 0x7fffu) << 13;
    const onxi_vu usual = bits + (112u << 23), special = bits + (224u << 23);
    const onxi_vu small = (onxi_vu)((onxi_vf)(bits + (113u << 23)) - 0x1p-14f);
    onxi_vu y = choose((onxi_vi)bits < 1 << 23, small, usual);
    y = choose((onxi_vi)bits >= 31 << 23, special, y);
    return (onxi_vf)(y | (wide & 0x8000u) << 16);
}

/* ---- bfloat16 is the upper half of a float ---- */

static inline halves bfloat16_of(onxi_vf x)
{
    const onxi_vu bits = (onxi_vu)x, near = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return __builtin_convertvector(choose(x != x, bits >> 16 | 0x40u, near), halves);
}

static inline onxi_vf of_bfloat16(halves x)
{
    return (onxi_vf)(__builtin_convertvector(x, onxi_vu) << 16);
}

/* ---- loops in stretches ---- */

enum { ONXI_HALVES = 512 }; /* elements of a stretch: as floats they stay in the L1 cache */
typedef enum half_kind { HALF_FLOAT16, HALF_BFLOAT16 } half_kind;

/* Converts to float for computations, which may change signaling NaN to quiet NaN, as the instruction does. */
static inline onxi_vf half_wide(half_kind kind, halves x)
{
    if (kind == HALF_BFLOAT16)
        return of_bfloat16(x);
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vf)_mm512_cvtph_ps((__m256i)x);
#elif ONXI_LANES == 8 && defined(__F16C__)
    return (onxi_vf)_mm256_cvtph_ps((__m128i)x);
#else
    return of_float16(x);
#endif
}

static inline halves half_round(half_kind kind, onxi_vf x)
{
    return kind == HALF_FLOAT16 ? float16_of(x) : bfloat16_of(x);
}

__attribute__((always_inline)) static inline void half_widen_as(const half_kind kind, const uint16_t *x, float *y,
                                                                uint64_t n)
{
    uint64_t i = 0;
    halves t = { 0 };
    for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
        memcpy(&t, x + i, sizeof t);
        vf_store(y + i, half_wide(kind, t));
    }
    if (i < n) {
        memcpy(&t, x + i, (size_t)(n - i) * sizeof *x);
        vf_store_part(y + i, half_wide(kind, t), n - i);
    }
}

__attribute__((always_inline)) static inline void half_narrow_as(const half_kind kind, const float *x, uint16_t *y,
                                                                 uint64_t n)
{
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
        const halves t = half_round(kind, vf_load(x + i));
        memcpy(y + i, &t, sizeof t);
    }
    if (i < n) {
        const halves t = half_round(kind, vf_load_part(x + i, n - i, 0));
        memcpy(y + i, &t, (size_t)(n - i) * sizeof *y);
    }
}

static inline void half_widen(half_kind kind, const uint16_t *x, float *y, uint64_t n)
{
    if (kind == HALF_FLOAT16)
        half_widen_as(HALF_FLOAT16, x, y, n);
    else
        half_widen_as(HALF_BFLOAT16, x, y, n);
}

static inline void half_narrow(half_kind kind, const float *x, uint16_t *y, uint64_t n)
{
    if (kind == HALF_FLOAT16)
        half_narrow_as(HALF_FLOAT16, x, y, n);
    else
        half_narrow_as(HALF_BFLOAT16, x, y, n);
}

/* Rounds to odd: the last bit is set if the conversion is inexact, so that a second rounding gives the right result. */
static inline void half_odd(const double *x, float *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const float near = (float)x[i];
        const double wide = (double)near, size = wide < 0 ? -wide : wide, given = x[i] < 0 ? -x[i] : x[i];
        uint32_t bits;
        memcpy(&bits, &near, sizeof bits);
        bits -= size > given; /* rounded away from zero: reverted */
        bits |= size != given;
        bits = x[i] != x[i] ? (bits & 0x80000000u) | 0x7fc00000u : bits; /* one NaN per sign */
        memcpy(y + i, &bits, sizeof bits);
    }
}

static inline uint64_t half_stretch(uint64_t left)
{
    return left < ONXI_HALVES ? left : ONXI_HALVES;
}

#endif
