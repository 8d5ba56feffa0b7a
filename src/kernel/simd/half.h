/* half.h - products of bfloat16, with AVX512_BF16 or AMX tiles. Both sides are held in pairs of elements that are
 * adjacent along k; an instruction multiplies two pairs and accumulates in float. A pair has the size of a float and
 * the position that a float has in float products (tile.h). The instructions treat subnormal numbers as 0, round sums
 * to nearest even and raise no flags. */
#ifndef ONXI_KERNEL_SIMD_HALF_H
#define ONXI_KERNEL_SIMD_HALF_H

#include "kernel/simd/amx.h"

#if ONXI_LEVEL >= 5 /* ONX_ISA_BF16; files of lower levels do not have it */
#ifdef ONXI_KERNEL_SIMD_TILE_H
#error "half.h comes before tile.h, which it says the numbers of"
#endif
#define ONXI_TILE_OF_PAIRS
#endif
#include "kernel/simd/tile.h"

#if ONXI_LEVEL >= 5

/* k is padded with zeros to a multiple of this: in elements (the length of a line of an AMX tile), and in pairs. */
enum { HALF_DEPTH = 32, HALF_PAIRS = HALF_DEPTH / 2 };

_Static_assert((int)HALF_PAIRS == (int)WHOLE_K, "a stretch of pairs ends where a tile does");

static inline uint64_t half_pairs(uint64_t k)
{
    return (k + HALF_DEPTH - 1) / HALF_DEPTH * HALF_PAIRS;
}

/* ---- the left side ---- */

/* Rounds to bfloat16. A finite number stays finite: what would round to infinity becomes the largest finite number. NaN
 * stays NaN. */
static inline onxi_vf half_bound(onxi_vf x)
{
    const __m512i size = _mm512_and_si512((__m512i)x, _mm512_set1_epi32(INT32_MAX));
    const __m512i over = _mm512_sub_epi32(size, _mm512_set1_epi32(0x7f7f0001));
    const __mmask16 far = _mm512_cmplt_epu32_mask(over, _mm512_set1_epi32(0x7f800000 - 0x7f7f0001));
    return (onxi_vf)_mm512_mask_and_epi32((__m512i)x, far, (__m512i)x, _mm512_set1_epi32(-0x10000));
}

/* Two vectors, one after the other. */
static inline __m512i half_of(onxi_vf low, onxi_vf high)
{
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

/* A vector of numbers in pairs. */
static inline void half_vector(const float *from, float *to)
{
    const __m256i half = (__m256i)_mm512_cvtneps_pbh((__m512)half_bound(vf_load(from)));
    _mm256_storeu_si256((__m256i *)(void *)to, half);
}

/* Packs a row into pairs, rounded to nearest even, padded with zeros to a multiple of HALF_DEPTH. */
static inline void half_line(const float *from, uint64_t n, float *to)
{
    uint64_t i = 0;
    for (; i + HALF_DEPTH <= n; i += HALF_DEPTH)
        _mm512_storeu_si512(to + i / 2, half_of(half_bound(vf_load(from + i)), half_bound(vf_load(from + i + 16))));
    if (i < n) {
        const uint64_t left = n - i;
        const onxi_vf low = vf_load_part(from + i, left, 0);
        const onxi_vf high = left > 16 ? vf_load_part(from + i + 16, left - 16, 0) : vf_all(0);
        _mm512_storeu_si512(to + i / 2, half_of(half_bound(low), half_bound(high)));
    }
}

/* ---- weights ---- */

/* Packs rows of a panel, `step` floats apart, into pairs; the number of rows is even. False if an element does not fit
 * the type. Subnormal numbers, which the instructions would treat as 0, become the smallest normal number, so that
 * their product with infinity is not NaN. */
static inline bool half_pack(const float *rows, uint64_t step, uint64_t count, char *out)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const onxi_vf most = vf_all(0x1.fep127f), least = vf_all(0x1p-126f), zero = vf_all(0);
    __mmask16 fit = 0xffff;
    for (uint64_t k = 0; k < count; k += 2)
        for (int v = 0; v < TILE_V; v++) {
            onxi_vf x[2];
            for (uint64_t i = 0; i < 2; i++) {
                x[i] = vf_load(rows + (k + i) * step + (uint64_t)v * ONXI_LANES);
                const __m512 size = (__m512)vf_abs(x[i]);
                fit &= _mm512_cmp_ps_mask(size, (__m512)most, _CMP_LE_OQ);
                const __mmask16 small = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(size, (__m512)zero, _CMP_GT_OQ),
                                                                size, (__m512)least, _CMP_LT_OQ);
                x[i] = (onxi_vf)_mm512_mask_blend_ps(small, (__m512)x[i], (__m512)vf_sign_of(least, x[i]));
            }
            _mm512_storeu_si512(out + (k / 2 * PANEL + (uint64_t)v * ONXI_LANES) * sizeof *rows,
                                _mm512_permutexvar_epi16(order, half_of(x[0], x[1])));
        }
    return fit == 0xffff;
}

/* ---- one row, limited by memory bandwidth: a row of floats, which keeps full precision ---- */

/* A row of k floats times two panels. */
static inline void half_row(const float *restrict a, const float *const panel[2], uint64_t k, float *restrict c)
{
    const onxi_vf zero = vf_all(0);
    const float *b[2] = { panel[0], panel[1] };
    onxi_vf sum[2][2][TILE_V];
    UNROLL
    for (int i = 0; i < 4 * TILE_V; i++)
        sum[i / (2 * TILE_V)][i / TILE_V % 2][i % TILE_V] = zero;
    for (; k; k -= k < 2 ? 1 : 2, a += 2) {
        const float second = k < 2 ? 0 : a[1];
        UNROLL
        for (int p = 0; p < 2; p++) {
            UNROLL
            for (int v = 0; v < TILE_V; v++) {
                const onxi_vu pair = (onxi_vu)vf_load(b[p] + v * ONXI_LANES);
                sum[p][0][v] += a[0] * (onxi_vf)(pair << 16);
                sum[p][1][v] += second * (onxi_vf)(pair & 0xffff0000u);
            }
            b[p] += PANEL;
        }
    }
    for (int p = 0; p < 2; p++)
        for (int v = 0; v < TILE_V; v++)
            vf_store(c + p * PANEL + v * ONXI_LANES, sum[p][0][v] + sum[p][1][v]);
}

/* ---- blocks of the result ---- */

#if ONXI_LEVEL >= 6
enum {
    HALF_ROWS = 32,
    HALF_LINES = 16
}; /* rows of a block; it may read as many rows of the left side as whole tiles have */

static inline void half_begin(void)
{
    amx_begin();
}

static inline void half_end(void)
{
    amx_end();
}

static inline uint64_t half_height(uint64_t left)
{
    return left < HALF_ROWS ? left : HALF_ROWS;
}

static inline void half_block(const tile_operands *t, uint64_t rows)
{
    float sums[HALF_ROWS * PANEL];
    const uint64_t lda = t->lda * sizeof *sums, ldb = t->ldb * sizeof *sums, ldc = PANEL * sizeof *sums;
    const float *a = t->a, *b = t->b;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (uint64_t k = 0; k < t->k; k += HALF_PAIRS, a += HALF_PAIRS, b += HALF_PAIRS * t->ldb) {
        _tile_loadd(4, a, lda);
        _tile_loadd(6, b, ldb);
        _tile_loadd(7, b + ONXI_LANES, ldb);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (rows > HALF_LINES) {
            _tile_loadd(5, a + HALF_LINES * t->lda, lda);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, sums, ldc);
    _tile_stored(1, sums + ONXI_LANES, ldc);
    _tile_stored(2, sums + HALF_LINES * PANEL, ldc);
    _tile_stored(3, sums + HALF_LINES * PANEL + ONXI_LANES, ldc);
    amx_put(sums, t->c, t->ldc, rows, t->more);
}
#else
enum { HALF_ROWS = TILE_M, HALF_LINES = 1 };

static inline void half_begin(void) {}

static inline void half_end(void) {}

static inline uint64_t half_height(uint64_t left)
{
    return tile_height(left);
}

static inline void half_block(const tile_operands *t, uint64_t rows)
{
    tile_run(t, rows);
}
#endif

#endif
#endif
