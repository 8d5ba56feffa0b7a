/* tile.h - the innermost part of products and convolutions: a tile of the result in registers, some rows of some
 * vectors, over a stretch of k. The sum over k runs in one fixed order, so the bits depend on neither blocks nor
 * threads. */
#ifndef ONXI_KERNEL_SIMD_TILE_H
#define ONXI_KERNEL_SIMD_TILE_H

#include "kernel/simd/simd.h"

/* Rows of a tile at most, vectors across it; columns of a panel; how much of k is gone through at a time: that much of
 * a panel stays in the first cache. */
enum { TILE_M = ONXI_LANES == 16 ? 12 : 6, TILE_V = 2, PANEL = TILE_V * ONXI_LANES, BLOCK_K = 256 };

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Rows of a tile: `left` rows in tiles that are nearly alike, as few as can be, since a tile of few rows takes as long
 * as a larger one. */
static inline uint64_t tile_height(uint64_t left)
{
    const uint64_t tiles = (left + TILE_M - 1) / TILE_M;
    return (left + tiles - 1) / tiles;
}

typedef struct tile_operands {
    const float *a, *b; /* a: rows, `lda` apart, k side by side; b: PANEL columns, `ldb` from one k to the next */
    float *c;           /* rows of PANEL columns, `ldc` apart */
    uint64_t lda, ldb, ldc, k;
    bool more; /* adds to what is in c */
} tile_operands;

__attribute__((always_inline)) static inline void tile_of(const tile_operands *t, const int rows)
{
    enum { TOGETHER = 3 }; /* rows that have a register for their place */
    const float *restrict b = t->b, *a[(TILE_M + TOGETHER - 1) / TOGETHER];
    float *restrict c = t->c;
    const uint64_t lda = t->lda, ldb = t->ldb;
    onxi_vf sum[TILE_M][TILE_V];
    UNROLL
    for (int i = 0; i < rows; i += TOGETHER) {
        a[i / TOGETHER] = t->a + (uint64_t)i * lda;
        __asm__(""
                : "+r"(a[i / TOGETHER])); /* else the compiler keeps an index for each row, for which registers lack */
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + (uint64_t)i * t->ldc, 1);
        UNROLL
        for (int v = 0; v < TILE_V; v++)
            sum[i][v] = vf_all(0);
    }
    for (uint64_t k = t->k; k; k--) {
        onxi_vf x[TILE_V];
        UNROLL
        for (int v = 0; v < TILE_V; v++)
            x[v] = vf_load(b + v * ONXI_LANES);
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
        for (int v = 0; v < TILE_V; v++)
            sum[i][v] += a[i / TOGETHER][(uint64_t)(i % TOGETHER) * lda] * x[v];
        UNROLL
        for (int i = 0; i < rows; i += TOGETHER)
            a[i / TOGETHER]++;
        b += ldb;
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < TILE_V; v++) {
        float *at = c + (uint64_t)i * t->ldc + v * ONXI_LANES;
        vf_store(at, t->more ? vf_load(at) + sum[i][v] : sum[i][v]);
    }
}

/* c = a * b, or c += a * b, for 1 to TILE_M rows. */
static inline void tile_run(const tile_operands *t, uint64_t rows)
{
    switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        tile_of(t, n);                                                                                                 \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
#if ONXI_LANES == 16
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
#endif
    default:
        tile_of(t, TILE_M);
        break;
#undef CASE
    }
}

/* Asks for the piece of the next stretch of a packed panel that falls to this tile, so that it is there in time;
 * `lines` of 16 floats a tile. */
static inline void tile_fetch(const float *next, uint64_t tile, uint64_t lines)
{
    next += tile * lines * 16;
    for (uint64_t i = 0; i < lines; i++)
        __builtin_prefetch(next + i * 16);
}

static inline uint64_t tile_lines(uint64_t kc, uint64_t tiles)
{
    return (kc * PANEL / 16 + tiles - 1) / tiles;
}

#endif
