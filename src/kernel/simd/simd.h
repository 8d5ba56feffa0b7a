/* simd.h - float vectors in portable C, as wide as the instruction set that a file is compiled for. Files of this
 * folder are compiled once per level (CMakeLists.txt), so everything that they share is static. */
#ifndef ONXI_KERNEL_SIMD_H
#define ONXI_KERNEL_SIMD_H

#include "kernel/core/loops.h"

#ifdef __AVX__
#include <immintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

/* ONXI_LEVEL is an ONX_ISA_* that the build defines; the base level is what the compiler targets without further
 * options. */
#ifndef ONXI_LEVEL
#define ONXI_LEVEL 1
#endif
#if ONXI_LEVEL == 6 /* ONX_ISA_AMX */
#define ONXI_LANES      16
#define ONXI_LEVELED(x) x##_amx
#define ONXI_VARIANT    "amx"
#elif ONXI_LEVEL == 5 /* ONX_ISA_BF16 */
#define ONXI_LANES      16
#define ONXI_LEVELED(x) x##_bf16
#define ONXI_VARIANT    "bf16"
#elif ONXI_LEVEL == 4 /* ONX_ISA_VNNI */
#define ONXI_LANES      16
#define ONXI_LEVELED(x) x##_vnni
#define ONXI_VARIANT    "vnni"
#elif ONXI_LEVEL == 3 /* ONX_ISA_V4 */
#define ONXI_LANES      16
#define ONXI_LEVELED(x) x##_v4
#define ONXI_VARIANT    "avx512"
#elif ONXI_LEVEL == 2 /* ONX_ISA_V3 */
#define ONXI_LANES      8
#define ONXI_LEVELED(x) x##_v3
#define ONXI_VARIANT    "avx2"
#else
#define ONXI_LANES      4
#define ONXI_LEVELED(x) x##_base
#define ONXI_VARIANT    "simd"
#endif

/* Number of rows, of two vectors each, that products keep in registers. WebAssembly engines have 15 registers on
 * x86-64, and need more of them for products, factors and addresses than a compiler: with 6 rows they spill, and take
 * half as long again. Small functions spill less; functions marked ONXI_ALONE are therefore not inlined there. */
#if ONXI_LANES == 16
#define ONXI_ROWS 12
#elif defined(__wasm__)
#define ONXI_ROWS 4
#else
#define ONXI_ROWS 6
#endif
#ifdef __wasm__
#define ONXI_ALONE __attribute__((noinline))
#else
#define ONXI_ALONE
#endif

typedef float onxi_vf __attribute__((vector_size(ONXI_LANES * 4)));
typedef int32_t onxi_vi __attribute__((vector_size(ONXI_LANES * 4)));
typedef uint32_t onxi_vu __attribute__((vector_size(ONXI_LANES * 4))); /* wraps where onxi_vi must not overflow */
typedef double onxi_vd __attribute__((vector_size(ONXI_LANES * 8)));
typedef int64_t onxi_vl __attribute__((vector_size(ONXI_LANES * 8)));
typedef uint64_t onxi_vul __attribute__((vector_size(ONXI_LANES * 8)));

static inline onxi_vf vf_load(const float *p)
{
    onxi_vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vf_store(float *p, onxi_vf v)
{
    memcpy(p, &v, sizeof v);
}

static inline onxi_vf vf_all(float x)
{
    return x - (onxi_vf){ 0 };
}

/* The first n lanes; the others are `rest`. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
static inline onxi_vf vf_load_part(const float *p, uint64_t n, float rest)
{
    return (onxi_vf)_mm512_mask_loadu_ps((__m512)vf_all(rest), (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffffu), p);
}

static inline void vf_store_part(float *p, onxi_vf v, uint64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffffu), (__m512)v);
}
#else
static inline onxi_vf vf_load_part(const float *p, uint64_t n, float rest)
{
    float t[ONXI_LANES];
    for (uint64_t i = 0; i < ONXI_LANES; i++)
        t[i] = i < n ? p[i] : rest;
    return vf_load(t);
}

static inline void vf_store_part(float *p, onxi_vf v, uint64_t n)
{
    float t[ONXI_LANES];
    vf_store(t, v);
    memcpy(p, t, (size_t)n * sizeof *p);
}
#endif

#if ONXI_LANES == 16
#define ONXI_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ONXI_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif ONXI_LANES == 8
#define ONXI_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define ONXI_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define ONXI_LOW  0, 4, 1, 5
#define ONXI_HIGH 2, 6, 3, 7
#endif

/* Transposes: a vector of each of ONXI_LANES rows, `step` bytes apart, becomes a column of as many rows, `to_step`
 * floats apart. Always inlined, because all of it is in registers. */
__attribute__((always_inline)) static inline void vf_turn(const char *from, uint64_t step, float *to, uint64_t to_step)
{
    onxi_vf rows[ONXI_LANES], next[ONXI_LANES];
    for (uint64_t i = 0; i < ONXI_LANES; i++)
        memcpy(&rows[i], from + i * step, sizeof rows[i]);
    for (int round = 1; round < ONXI_LANES; round *= 2) {
        for (int i = 0; i < ONXI_LANES / 2; i++) {
            next[2 * i] = __builtin_shufflevector(rows[i], rows[i + ONXI_LANES / 2], ONXI_LOW);
            next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + ONXI_LANES / 2], ONXI_HIGH);
        }
        memcpy(rows, next, sizeof rows);
    }
    for (uint64_t i = 0; i < ONXI_LANES; i++)
        vf_store(to + i * to_step, rows[i]);
}

/* A mask of lanes `first` to end - 1 (possibly none), as the instructions take it; lanes outside of it are not read
 * (they give 0) and not written. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
#define VF_MASKS
typedef __mmask16 vf_mask;

static inline vf_mask vf_mask_of(int64_t first, int64_t end)
{
    const uint32_t below = first <= 0 ? 0 : first < 16 ? (1u << first) - 1 : 0xffffu;
    return (vf_mask)((end <= 0 ? 0 : end < 16 ? (1u << end) - 1 : 0xffffu) & ~below);
}

static inline onxi_vf vf_load_some(const float *p, vf_mask mask)
{
    return (onxi_vf)_mm512_maskz_loadu_ps(mask, p);
}

static inline void vf_store_some(float *p, onxi_vf v, vf_mask mask)
{
    _mm512_mask_storeu_ps(p, mask, (__m512)v);
}
#elif ONXI_LANES == 8 && defined(__AVX2__)
#define VF_MASKS
typedef __m256i vf_mask;

static inline vf_mask vf_mask_of(int64_t first, int64_t end)
{
    onxi_vi mask;
    for (int i = 0; i < ONXI_LANES; i++)
        mask[i] = i >= first && i < end ? -1 : 0;
    return (__m256i)mask;
}

static inline onxi_vf vf_load_some(const float *p, vf_mask mask)
{
    return (onxi_vf)_mm256_maskload_ps(p, mask);
}

static inline void vf_store_some(float *p, onxi_vf v, vf_mask mask)
{
    _mm256_maskstore_ps(p, mask, (__m256)v);
}
#endif

/* The first n lanes, for loops that load or store as many each time: a mask where instructions take one. */
#ifdef VF_MASKS
typedef vf_mask vf_lanes;

static inline vf_lanes vf_lanes_of(uint64_t n)
{
    return vf_mask_of(0, (int64_t)n);
}

static inline onxi_vf vf_load_lanes(const float *p, vf_lanes n)
{
    return vf_load_some(p, n);
}

static inline void vf_store_lanes(float *p, onxi_vf v, vf_lanes n)
{
    vf_store_some(p, v, n);
}
#else
typedef uint64_t vf_lanes;

static inline vf_lanes vf_lanes_of(uint64_t n)
{
    return n;
}

static inline onxi_vf vf_load_lanes(const float *p, vf_lanes n)
{
    return vf_load_part(p, n, 0);
}

static inline void vf_store_lanes(float *p, onxi_vf v, vf_lanes n)
{
    vf_store_part(p, v, n);
}
#endif

static inline onxi_vi vi_all(int32_t x)
{
    return x - (onxi_vi){ 0 };
}

/* Lanes of a where the mask is all ones, of b where it is zero. */
#if ONXI_LANES == 16 && defined(__AVX512DQ__)
static inline onxi_vf vf_select(onxi_vi mask, onxi_vf a, onxi_vf b)
{
    return (onxi_vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)b, (__m512)a);
}
#elif ONXI_LANES == 8 && defined(__AVX__)
static inline onxi_vf vf_select(onxi_vi mask, onxi_vf a, onxi_vf b)
{
    return (onxi_vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
}
#elif defined(__wasm_simd128__)
static inline onxi_vf vf_select(onxi_vi mask, onxi_vf a, onxi_vf b)
{
    return (onxi_vf)wasm_v128_bitselect((v128_t)a, (v128_t)b, (v128_t)mask);
}
#else
static inline onxi_vf vf_select(onxi_vi mask, onxi_vf a, onxi_vf b)
{
    return (onxi_vf)((mask & (onxi_vi)a) | (~mask & (onxi_vi)b));
}
#endif

/* Gives b where a comparison with NaN fails, and for zeros of different signs, as the instruction does. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
static inline onxi_vf vf_max(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline onxi_vf vf_min(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)_mm512_min_ps((__m512)a, (__m512)b);
}
#elif ONXI_LANES == 8 && defined(__AVX__)
static inline onxi_vf vf_max(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline onxi_vf vf_min(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)_mm256_min_ps((__m256)a, (__m256)b);
}
#elif defined(__wasm_simd128__)
static inline onxi_vf vf_max(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)wasm_f32x4_pmax((v128_t)b, (v128_t)a);
}

static inline onxi_vf vf_min(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)wasm_f32x4_pmin((v128_t)b, (v128_t)a);
}
#else
static inline onxi_vf vf_max(onxi_vf a, onxi_vf b)
{
    return vf_select(a > b, a, b);
}

static inline onxi_vf vf_min(onxi_vf a, onxi_vf b)
{
    return vf_select(a < b, a, b);
}
#endif

/* The greater one; NaN if either is NaN. */
static inline onxi_vf vf_max_or_nan(onxi_vf a, onxi_vf b)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vf)_mm512_mask_max_ps((__m512)a, _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q), (__m512)a,
                                       (__m512)b);
#elif ONXI_LANES == 8 && defined(__AVX__)
    return vf_select(a != a, a, vf_max(a, b));
#else
    return vf_select((a > b) | (a != a), a, b);
#endif
}

static inline onxi_vf vf_abs(onxi_vf a)
{
#ifdef __wasm_simd128__
    return (onxi_vf)wasm_f32x4_abs((v128_t)a);
#else
    return (onxi_vf)((onxi_vi)a & INT32_MAX);
#endif
}

/* The size of a with the sign of b. */
static inline onxi_vf vf_sign_of(onxi_vf a, onxi_vf b)
{
    return (onxi_vf)(((onxi_vi)a & INT32_MAX) | ((onxi_vi)b & INT32_MIN));
}

/* Whether a comparison is true of any lane. */
#if ONXI_LANES == 16 && defined(__AVX512DQ__)
static inline bool vi_any(onxi_vi mask)
{
    return _mm512_movepi32_mask((__m512i)mask) != 0;
}
#elif ONXI_LANES == 8 && defined(__AVX__)
static inline bool vi_any(onxi_vi mask)
{
    return _mm256_movemask_ps((__m256)mask) != 0;
}
#elif defined(__wasm_simd128__)
static inline bool vi_any(onxi_vi mask)
{
    return wasm_v128_any_true((v128_t)mask);
}
#else
static inline bool vi_any(onxi_vi mask)
{
    int32_t any = 0;
    for (int i = 0; i < ONXI_LANES; i++)
        any |= mask[i];
    return any != 0;
}
#endif

/* Lanes are added in a fixed order, halves first. */
static inline float vf_sum(onxi_vf v)
{
    float t[ONXI_LANES];
    vf_store(t, v);
    for (int n = ONXI_LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++)
            t[i] += t[i + n];
    return t[0];
}

typedef float onxi_vf4 __attribute__((vector_size(16)));

/* The greater or lesser elements; NaN where either is NaN. */
static inline onxi_vf4 vf4_extreme(onxi_vf4 a, onxi_vf4 v, bool least)
{
    typedef int32_t masks __attribute__((vector_size(16)));
    const masks take = (least ? v < a : v > a) | (v != v);
    return (onxi_vf4)((take & (masks)v) | (~take & (masks)a));
}

/* The greatest or least lane, NaN if there is one; without branches, as lines may be short. */
static inline float vf_extreme_lane(onxi_vf v, bool least)
{
    float t[ONXI_LANES];
    onxi_vf4 best, next;
    vf_store(t, v);
    memcpy(&best, t, sizeof best);
    for (int i = 4; i < ONXI_LANES; i += 4) {
        memcpy(&next, t + i, sizeof next);
        best = vf4_extreme(best, next, least);
    }
    best = vf4_extreme(best, __builtin_shufflevector(best, best, 2, 3, 0, 1), least);
    return vf4_extreme(best, __builtin_shufflevector(best, best, 1, 0, 3, 2), least)[0];
}

/* The greatest lane; NaN if there is one. */
static inline float vf_greatest(onxi_vf v)
{
    return vf_extreme_lane(v, false);
}

#endif
