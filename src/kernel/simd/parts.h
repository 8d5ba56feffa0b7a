/* parts.h - float products on AMX tiles, which multiply only bfloat16, but 16 times as fast. A float is split into a
 * sum of three bfloat16 parts; of the nine products of parts the six largest are accumulated in float. The omitted
 * products are below 2^-24 of a product, so the error is no larger than that of a float sum. After Henry, Tang and
 * Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations" (2019).
 *
 * Tiles treat subnormal numbers as 0, and the parts of infinity are NaN. Within certain bounds no more than that is
 * lost and nothing overflows. If a block of either side has a nonzero element outside of these bounds, the block is
 * multiplied in float (tile.h); both sides are kept in float for that.
 *
 * Layout: both sides are stored in steps of 32 along k, a step in tiles of 1024 bytes. On the left, each part has a
 * tile of 16 rows, then one of the next 16 rows; on the right, a tile of 16 pairs of rows for 16 columns, then one for
 * the next 16 columns. */
#ifndef ONXI_KERNEL_SIMD_PARTS_H
#define ONXI_KERNEL_SIMD_PARTS_H

#include "kernel/simd/amx.h"
#include "kernel/simd/tile.h"

#if ONXI_LEVEL >= 6 /* ONX_ISA_AMX */

enum {
    PARTS = 3,
    PARTS_DEPTH = 32, /* of k in a step */
    PARTS_LINES = 16, /* rows of a tile */
    PARTS_ROWS = 2 * PARTS_LINES,
    PARTS_TILE = 512,                                   /* numbers */
    PARTS_STEP = 2 * PARTS * PARTS_TILE,                /* numbers, on either side */
    PARTS_STRETCH = BLOCK_K / PARTS_DEPTH * PARTS_STEP, /* numbers of what k may be at most */
    PARTS_GROUPS = 8                                    /* of PARTS_ROWS rows, at most */
};

_Static_assert((int)PANEL == (int)PARTS_ROWS && BLOCK_K % PARTS_DEPTH == 0, "a panel is two tiles wide");

/* Size of the next block of the `left` remaining ones: blocks have nearly equal sizes, and all but the last one are
 * whole steps. */
static inline uint64_t parts_depth(uint64_t left)
{
    const uint64_t stretches = (left + BLOCK_K - 1) / BLOCK_K;
    const uint64_t depth = ((left + stretches - 1) / stretches + PARTS_DEPTH - 1) / PARTS_DEPTH * PARTS_DEPTH;
    return depth < left ? depth : left;
}

static inline uint64_t parts_steps(uint64_t k)
{
    return (k + PARTS_DEPTH - 1) / PARTS_DEPTH;
}

/* ---- bounds ---- */

/* For magnitudes, as twice their bits: the minimum, less one, so that 0 becomes the largest value, and the maximum. */
typedef struct parts_range {
    __m512i least, most;
} parts_range;

static inline parts_range parts_range_begin(void)
{
    return (parts_range){ _mm512_set1_epi32(-1), _mm512_setzero_si512() };
}

static inline void parts_range_add(parts_range *r, onxi_vf x)
{
    const __m512i twice = _mm512_add_epi32((__m512i)x, (__m512i)x);
    r->most = _mm512_max_epu32(r->most, twice);
    r->least = _mm512_min_epu32(r->least, _mm512_sub_epi32(twice, _mm512_set1_epi32(1)));
}

/* Within these bounds the loss is below 2^-24 of a product of two elements, and no sum of less than 2^27 products
 * overflows. */
static inline bool parts_range_suits(const parts_range *r)
{
    enum { EXPONENT = 24, BIAS = 127, BOUND = 50 }; /* from 2^-BOUND to 2^BOUND */
    return _mm512_reduce_min_epu32(r->least) >= ((uint32_t)(BIAS - BOUND) << EXPONENT) - 1 &&
           _mm512_reduce_max_epu32(r->most) <= (uint32_t)(BIAS + BOUND) << EXPONENT;
}

/* ---- parts ---- */

/* Part i of the elements, as floats; it is subtracted from `left`, the remainder. Each part is rounded to nearest, so
 * that the next one begins at least eight bits below, and the last one is the whole remainder. */
static inline __m512i parts_next(int i, onxi_vf *left)
{
    if (i == PARTS - 1)
        return (__m512i)*left;
    const __m512i rounded = _mm512_add_epi32((__m512i)*left, _mm512_set1_epi32(0x8000));
    const __m512i part = _mm512_and_si512(rounded, _mm512_set1_epi32(-0x10000));
    *left -= (onxi_vf)part;
    return part;
}

/* One step of a row of the left side; `left` elements of it exist, zeros follow. */
static inline void parts_line(const float *from, uint64_t left, uint16_t *to, parts_range *range)
{
    const __m512i halves = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                                            25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    onxi_vf low, high = vf_all(0);
    if (left >= PARTS_DEPTH) {
        low = vf_load(from);
        high = vf_load(from + ONXI_LANES);
    } else {
        low = vf_load_part(from, left, 0);
        if (left > ONXI_LANES)
            high = vf_load_part(from + ONXI_LANES, left - ONXI_LANES, 0);
    }
    parts_range_add(range, low);
    parts_range_add(range, high);
    UNROLL
    for (int i = 0; i < PARTS; i++, to += 2 * PARTS_TILE) {
        const __m512i a = parts_next(i, &low), b = parts_next(i, &high);
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, halves, b));
    }
}

/* Splits a block of up to PARTS_ROWS rows of the left side, `lda` apart, and tells whether its elements are within the
 * bounds. Missing rows are zeros. */
static inline bool parts_rows(const float *from, uint64_t lda, uint64_t rows, uint64_t k, uint16_t *to)
{
    parts_range range = parts_range_begin();
    for (uint64_t s = 0; s < parts_steps(k); s++, to += PARTS_STEP)
        for (uint64_t i = 0; i < PARTS_ROWS; i++) {
            uint16_t *line = to + i / PARTS_LINES * PARTS_TILE + i % PARTS_LINES * PARTS_DEPTH;
            if (i < rows)
                parts_line(from + i * lda + s * PARTS_DEPTH, k - s * PARTS_DEPTH, line, &range);
            else
                for (int part = 0; part < PARTS; part++)
                    memset(line + part * 2 * PARTS_TILE, 0, PARTS_DEPTH * sizeof *line);
        }
    return parts_range_suits(&range);
}

/* A panel that is being split into parts, some pairs of its rows at a time, between the tiles of the previous panel,
 * whose products take the processor long enough to hide this work. */
typedef struct parts_panel {
    const float *from; /* k rows of PANEL columns; NULL: there is none */
    uint16_t *to;
    uint64_t k, pairs, done; /* pairs: with those of zeros behind k */
    parts_range range;
} parts_panel;

static inline parts_panel parts_panel_begin(const float *from, uint64_t k, uint16_t *to)
{
    return (parts_panel){
        .from = from, .to = to, .k = k, .pairs = from ? parts_steps(k) * PARTS_LINES : 0, .range = parts_range_begin()
    };
}

static inline void parts_panel_pair(parts_panel *p)
{
    enum { AHEAD = 24 }; /* rows that are asked for before they are needed */
    const uint64_t k = 2 * p->done, step = p->done / PARTS_LINES, line = p->done % PARTS_LINES;
    const float *from = p->from + k * PANEL;
    uint16_t *to = p->to + step * PARTS_STEP + line * PARTS_DEPTH;
    for (int v = 0; v < TILE_V; v++, from += ONXI_LANES, to += PARTS_TILE) {
        onxi_vf even = k < p->k ? vf_load(from) : vf_all(0), odd = k + 1 < p->k ? vf_load(from + PANEL) : vf_all(0);
        __builtin_prefetch(from + AHEAD * PANEL);
        __builtin_prefetch(from + (AHEAD + 1) * PANEL);
        parts_range_add(&p->range, even);
        parts_range_add(&p->range, odd);
        UNROLL
        for (int i = 0; i < PARTS; i++) {
            const __m512i a = parts_next(i, &even), b = parts_next(i, &odd);
            _mm512_storeu_si512(to + i * 2 * PARTS_TILE, _mm512_or_si512(_mm512_srli_epi32(a, 16), b));
        }
    }
    p->done++;
}

static inline void parts_panel_until(parts_panel *p, uint64_t pairs)
{
    for (pairs = pairs < p->pairs ? pairs : p->pairs; p->done < pairs;)
        parts_panel_pair(p);
}

/* ---- a block of the result ---- */

/* Each part of the right side is loaded once for all of its products, and the small products are accumulated first. */
#define PARTS_LEFT(i)                                                                                                  \
    _tile_loadd(4, a + (i)*2 * PARTS_TILE, 64);                                                                        \
    if (both)                                                                                                          \
        _tile_loadd(5, a + ((i)*2 + 1) * PARTS_TILE, 64);
#define PARTS_RIGHT(i)                                                                                                 \
    _tile_loadd(6, b + (i)*2 * PARTS_TILE, 64);                                                                        \
    _tile_loadd(7, b + ((i)*2 + 1) * PARTS_TILE, 64);
#define PARTS_MULTIPLY                                                                                                 \
    _tile_dpbf16ps(0, 4, 6);                                                                                           \
    _tile_dpbf16ps(1, 4, 7);                                                                                           \
    if (both) {                                                                                                        \
        _tile_dpbf16ps(2, 5, 6);                                                                                       \
        _tile_dpbf16ps(3, 5, 7);                                                                                       \
    }

/* The next panel is carried on to `pairs` at the end. */
__attribute__((always_inline)) static inline void parts_multiply(const uint16_t *a, const uint16_t *b, uint64_t steps,
                                                                 const bool both, parts_panel *next, uint64_t pairs)
{
    const uint64_t from = next->done, more = pairs > from ? pairs - from : 0;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (uint64_t s = 0; s < steps; s++, a += PARTS_STEP, b += PARTS_STEP) {
        PARTS_LEFT(0)
        PARTS_RIGHT(2)
        PARTS_MULTIPLY
        PARTS_RIGHT(1)
        PARTS_MULTIPLY
        PARTS_RIGHT(0)
        PARTS_MULTIPLY
        PARTS_LEFT(2)
        PARTS_MULTIPLY
        PARTS_LEFT(1)
        PARTS_MULTIPLY
        PARTS_RIGHT(1)
        PARTS_MULTIPLY
        parts_panel_until(next, from + more * (s + 1) / steps);
    }
}
#undef PARTS_LEFT
#undef PARTS_RIGHT
#undef PARTS_MULTIPLY

/* ---- a stretch of k ---- */

/* Rows of the left side times panels p0 .. p1-1 of the right side. */
typedef struct parts_product {
    const float *a; /* `rows` rows of k, `lda` apart: at most PARTS_GROUPS groups of them */
    uint64_t lda, rows;
    const float *b; /* k rows of PANEL columns; `panel` floats from one panel to the next */
    uint64_t panel, p0, p1;
    uint64_t k;      /* BLOCK_K at most */
    uint16_t *space; /* parts_space() bytes, aligned to 64 */
    /* Receives sums of the product: `rows` rows of PANEL columns, from row `row` of a on. */
    void (*put)(void *user, uint64_t row, uint64_t rows, uint64_t panel, const float *sums);
    void *user;
} parts_product;

/* Of so many rows and two panels. */
static inline uint64_t parts_groups(uint64_t rows)
{
    return (rows + PARTS_ROWS - 1) / PARTS_ROWS;
}

static inline uint64_t parts_space(uint64_t rows)
{
    return (parts_groups(rows) + 2) * PARTS_STRETCH * sizeof(uint16_t);
}

/* Some rows times a panel. */
static inline void parts_group(const parts_product *q, uint64_t first, uint64_t rows, uint64_t panel, const uint16_t *a,
                               const uint16_t *b, parts_panel *next, uint64_t pairs)
{
    enum { LINE = PANEL * sizeof(float) };
    float sums[PARTS_ROWS * PANEL];
    if (rows > PARTS_LINES) {
        parts_multiply(a, b, parts_steps(q->k), true, next, pairs);
        _tile_stored(2, sums + PARTS_LINES * PANEL, LINE);
        _tile_stored(3, sums + PARTS_LINES * PANEL + ONXI_LANES, LINE);
    } else {
        parts_multiply(a, b, parts_steps(q->k), false, next, pairs);
    }
    _tile_stored(0, sums, LINE);
    _tile_stored(1, sums + ONXI_LANES, LINE);
    q->put(q->user, first, rows, panel, sums);
}

/* The same where parts would not do. */
static inline void parts_group_of_floats(const parts_product *q, uint64_t first, uint64_t rows, uint64_t panel)
{
    float sums[PARTS_ROWS * PANEL];
    for (uint64_t i = 0, height; i < rows; i += height) {
        height = tile_height(rows - i);
        const tile_operands t = { .a = q->a + (first + i) * q->lda,
                                  .lda = q->lda,
                                  .b = q->b + panel * q->panel,
                                  .ldb = PANEL,
                                  .c = sums + i * PANEL,
                                  .ldc = PANEL,
                                  .k = q->k };
        tile_run(&t, height);
    }
    q->put(q->user, first, rows, panel, sums);
}

/* The whole product. Rows are split once, and each panel while the previous one is multiplied. */
static inline void parts_stretch(const parts_product *q)
{
    const uint64_t groups = parts_groups(q->rows);
    uint16_t *const panels = q->space + groups * PARTS_STRETCH;
    bool suits[PARTS_GROUPS];
    for (uint64_t g = 0; g < groups; g++) {
        const uint64_t first = g * PARTS_ROWS, rows = q->rows - first < PARTS_ROWS ? q->rows - first : PARTS_ROWS;
        suits[g] = parts_rows(q->a + first * q->lda, q->lda, rows, q->k, q->space + g * PARTS_STRETCH);
    }
    parts_panel at = parts_panel_begin(q->b + q->p0 * q->panel, q->k, panels), next;
    parts_panel_until(&at, at.pairs);
    for (uint64_t p = q->p0; p < q->p1; p++, at = next) {
        const float *following = p + 1 < q->p1 ? q->b + (p + 1) * q->panel : NULL;
        next = parts_panel_begin(following, q->k, panels + (p + 1 - q->p0) % 2 * PARTS_STRETCH);
        const bool suit = parts_range_suits(&at.range);
        for (uint64_t g = 0; g < groups; g++) {
            const uint64_t first = g * PARTS_ROWS, rows = q->rows - first < PARTS_ROWS ? q->rows - first : PARTS_ROWS;
            const uint64_t pairs = next.pairs * (g + 1) / groups;
            if (suit && suits[g])
                parts_group(q, first, rows, p, q->space + g * PARTS_STRETCH, at.to, &next, pairs);
            else
                parts_group_of_floats(q, first, rows, p);
            parts_panel_until(&next, pairs);
        }
    }
}

#endif
#endif
