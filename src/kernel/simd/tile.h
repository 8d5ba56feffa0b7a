/* tile.h - the inner kernel of matrix products and convolutions: accumulates a tile of the result in registers, some
 * rows of some vectors, over a range of k. The sum over k runs in one fixed order, so the bits depend neither on
 * blocking nor on threads. */
#ifndef ONXI_KERNEL_SIMD_TILE_H
#define ONXI_KERNEL_SIMD_TILE_H

#include "kernel/simd/simd.h"

/* Maximum rows of a tile and vectors per row; columns of a panel; maximum block of k; distance in k between two
 * prefetches; multiple for blocks of k that are copied in blocks of channels. */
enum { TILE_M = ONXI_ROWS, TILE_V = 2, PANEL = TILE_V * ONXI_LANES, BLOCK_K = 384, STEP_K = 8, WHOLE_K = 16 };

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 24")
#endif

/* Rows of the next tile: `left` rows are divided into as few tiles as possible, of nearly equal height, because a tile
 * of few rows takes as long as a larger one. */
static inline uint64_t tile_height(uint64_t left)
{
    const uint64_t tiles = (left + TILE_M - 1) / TILE_M;
    return (left + tiles - 1) / tiles;
}

/* Size of the next block of the `left` remaining ones: blocks have nearly equal sizes, and all but the last one are
 * multiples of the unit. */
static inline uint64_t tile_depth(uint64_t left)
{
    const uint64_t stretches = (left + BLOCK_K - 1) / BLOCK_K;
    const uint64_t depth = ((left + stretches - 1) / stretches + WHOLE_K - 1) / WHOLE_K * WHOLE_K;
    return depth < left ? depth : left;
}

/* Gathers `count` rows of a panel from its columns: column i begins at `from + i * step` bytes, at any address; columns
 * from `width` on are 0. */
static inline void tile_turn(const char *from, uint64_t step, uint64_t width, uint64_t count, float *out)
{
    enum { WIDE = ONXI_LANES > 4 };
    for (uint64_t i = 0; i < PANEL; i += ONXI_LANES) {
        const uint64_t whole = WIDE && width >= i + ONXI_LANES ? count / ONXI_LANES * ONXI_LANES : 0;
        for (uint64_t k = 0; k < whole; k += ONXI_LANES)
            vf_turn(from + i * step + k * sizeof *out, step, out + k * PANEL + i, PANEL);
        for (uint64_t k = whole; k < count; k++)
            for (uint64_t at = i; at < i + ONXI_LANES; at++) {
                out[k * PANEL + at] = 0;
                if (at < width)
                    memcpy(&out[k * PANEL + at], from + at * step + k * sizeof *out, sizeof *out);
            }
    }
}

/* Accumulates the product of one element and a vector. In files that multiply pairs of bfloat16 (half.h), a pair takes
 * the place of a float on both sides, and k counts pairs. */
#ifdef ONXI_TILE_OF_PAIRS
static inline onxi_vf tile_add(onxi_vf sum, float a, onxi_vf b)
{
    return (onxi_vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_ps(a), (__m512bh)b);
}
#else
static inline onxi_vf tile_add(onxi_vf sum, float a, onxi_vf b)
{
    return sum + a * b;
}
#endif

typedef struct tile_operands {
    const float *a, *b; /* a: rows, `lda` apart, contiguous along k; b: PANEL columns, `ldb` from one k to the next */
    float *c;           /* rows of PANEL columns, `ldc` apart */
    uint64_t lda, ldb, ldc, k;
    const float *fetch;         /* data to prefetch during the tile: `lines` cache lines of 16 floats */
    uint64_t lines, lines_each; /* of these, `lines_each` a step */
    bool more;                  /* adds to what is in c */
} tile_operands;

/* Options of a tile: k consists of `runs` runs of t->k elements each in a, with `gap` elements between them; and sums
 * begin with an element per column, or with 0 if that is NULL. */
typedef struct tile_walk {
    uint64_t runs, gap;
    const float *start;
} tile_walk;

/* Computes a tile, with a walk or without (NULL). */
__attribute__((always_inline)) static inline void tile_of(const tile_operands *t, const tile_walk *walk, const int rows,
                                                          const int vectors)
{
    enum { TOGETHER = 3 }; /* rows that share an address register */
    const float *restrict b = t->b, *a[(TILE_M + TOGETHER - 1) / TOGETHER];
    float *restrict c = t->c;
    const uint64_t lda = t->lda, ldb = t->ldb;
    const float *fetch = t->fetch;
    uint64_t lines = t->lines;
    onxi_vf sum[TILE_M][TILE_V], first[TILE_V];
    UNROLL
    for (int v = 0; v < vectors; v++)
        first[v] = walk && walk->start ? vf_load(walk->start + v * ONXI_LANES) : vf_all(0);
    UNROLL
    for (int i = 0; i < rows; i += TOGETHER) {
        a[i / TOGETHER] = t->a + (uint64_t)i * lda;
        __asm__(""
                : "+r"(a[i / TOGETHER])); /* otherwise the compiler keeps an index for each row, and registers run
                                           * out */
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + (uint64_t)i * t->ldc, 1);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = first[v];
    }
    for (uint64_t run = walk ? walk->runs : 1; run; run--) {
        for (uint64_t left = t->k; left; left -= left < STEP_K ? left : STEP_K) {
            for (uint64_t i = 0; i < t->lines_each && lines; i++, lines--, fetch += 16)
                __builtin_prefetch(fetch);
            for (uint64_t k = left < STEP_K ? left : STEP_K; k; k--) {
                onxi_vf x[TILE_V];
                UNROLL
                for (int v = 0; v < vectors; v++)
                    x[v] = vf_load(b + v * ONXI_LANES);
                UNROLL
                for (int i = 0; i < rows; i++)
                    UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[i][v] = tile_add(sum[i][v], a[i / TOGETHER][(uint64_t)(i % TOGETHER) * lda], x[v]);
                UNROLL
                for (int i = 0; i < rows; i += TOGETHER)
                    a[i / TOGETHER]++;
                b += ldb;
            }
        }
        if (walk) {
            UNROLL
            for (int i = 0; i < rows; i += TOGETHER)
                a[i / TOGETHER] += walk->gap;
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++) {
        float *at = c + (uint64_t)i * t->ldc + v * ONXI_LANES;
        vf_store(at, t->more ? vf_load(at) + sum[i][v] : sum[i][v]);
    }
}

#if ONXI_ROWS == 4
#define TILE_EACH(X) X(1) X(2) X(3) X(4)
#elif ONXI_ROWS == 6
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#endif
#define TILE(n)                                                                                                        \
    static inline ONXI_ALONE void tile_##n(const tile_operands *t)                                                     \
    {                                                                                                                  \
        tile_of(t, NULL, n, TILE_V);                                                                                   \
    }                                                                                                                  \
    static inline ONXI_ALONE void tile_half_##n(const tile_operands *t)                                                \
    {                                                                                                                  \
        tile_of(t, NULL, n, 1);                                                                                        \
    }                                                                                                                  \
    static inline ONXI_ALONE void tile_walk_##n(const tile_operands *t, const tile_walk *walk, bool half)              \
    {                                                                                                                  \
        if (half)                                                                                                      \
            tile_of(t, walk, n, 1);                                                                                    \
        else                                                                                                           \
            tile_of(t, walk, n, TILE_V);                                                                               \
    }
TILE_EACH(TILE)
#undef TILE

/* c = a * b, or c += a * b, for 1 to TILE_M rows, which are stored in ascending order. */
static inline void tile_run(const tile_operands *t, uint64_t rows)
{
    switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        tile_##n(t);                                                                                                   \
        break;
        TILE_EACH(CASE)
#undef CASE
    default:
        break;
    }
}

/* The same for the first vector of the columns. */
static inline void tile_run_half(const tile_operands *t, uint64_t rows)
{
    switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        tile_half_##n(t);                                                                                              \
        break;
        TILE_EACH(CASE)
#undef CASE
    default:
        break;
    }
}

/* The same with a walk, of all columns or of the first vector of them. */
static inline void tile_run_walk(const tile_operands *t, const tile_walk *walk, uint64_t rows, bool half)
{
    switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        tile_walk_##n(t, walk, half);                                                                                  \
        break;
        TILE_EACH(CASE)
#undef CASE
    default:
        break;
    }
}

/* The part of the next block of a packed panel that this tile of `tiles` prefetches. Prefetched all at once, the parts
 * would wait for each other, and products for them. */
static inline void tile_fetch(tile_operands *t, const float *next, uint64_t tile, uint64_t tiles)
{
    if (!next)
        return;
    t->lines = (t->k * PANEL / 16 + tiles - 1) / tiles;
    t->lines_each = (STEP_K * PANEL / 16 + tiles - 1) / tiles;
    t->fetch = next + tile * t->lines * 16;
}

#endif
