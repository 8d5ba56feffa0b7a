/* direct.h - the inner kernel of convolutions that read images in place: accumulates a tile, some pixels of some
 * vectors of channels, over the inputs that a table tells, and applies bias and simple post-operations before it stores
 * the tile. The sum runs in one fixed order. */
#ifndef ONXI_KERNEL_SIMD_DIRECT_H
#define ONXI_KERNEL_SIMD_DIRECT_H

#include "kernel/simd/post.h"
#include "kernel/simd/steps.h"

/* Most vectors of a panel (panels_of). Most pixels of a tile, which is one of one vector; all tiles have as many sums.
 * Floats from one row of partial sums to the next. Elements that tiles of one vector, which are limited by loads, find
 * together: AVX2 has too few registers. */
enum {
    DIRECT_V = 3,
    DIRECT_M = 2 * TILE_M,
    DIRECT_ROW = DIRECT_V * ONXI_LANES,
    DIRECT_TOGETHER = ONXI_LANES == 16 ? 4 : 1
};

typedef struct direct_tile {
    const float *a;            /* what the first pixel covers */
    const int32_t *at;         /* where each element of the sum is, from `a` on */
    uint64_t k;                /* number of these */
    bool adjacent;             /* they are multiples of DIRECT_TOGETHER inputs that lie next to each other */
    uint64_t step;             /* elements from a pixel to the next */
    const float *b;            /* weights: for each element, the channels of the panel */
    const float *start;        /* what the sums begin with, */
    uint64_t start_step;       /* from a pixel to the next; 0: the same for all */
    float *c;                  /* results */
    uint64_t c_step, c_vector; /* elements from a pixel to the next, and from a vector of channels to the next */
    const simd_posts *posts;
    uint32_t applied;           /* the first of these that are applied here */
    const float *const *others; /* for each post-operation: the other operand of ONX_POST_ADD, */
    uint64_t place;             /* where the tile begins in these, and the elements between as in results: */
    uint64_t other_step, other_vector;
    uint64_t last;      /* channels of the last vector that are loaded from these and stored */
    const float *fetch; /* prefetched, `fetch_step` elements for each element of the sum */
    uint64_t fetch_step;
} direct_tile;

/* Is it one of the post-operations that a tile applies? */
static inline bool direct_applies(const simd_post *f)
{
    return (f->kind == ONX_POST_ADD && f->operand >= 0) || f->kind == ONX_POST_RELU || f->kind == ONX_POST_CLIP ||
           f->kind == ONX_POST_HARD_SWISH;
}

/* From a vector of channels to the next, if results may be in blocks. */
static inline uint64_t direct_vector(uint64_t elements)
{
    return ONXI_LANES == 8 ? elements : ONXI_LANES;
}

/* A vector of another operand. */
static inline onxi_vf direct_load(const direct_tile *t, const float *at, bool is_last)
{
    return is_last && t->last < ONXI_LANES ? vf_load_part(at, t->last, 0) : vf_load(at);
}

enum { DIRECT_BASES = (DIRECT_M + ROW_SHARE - 1) / ROW_SHARE };

/* Applies one post-operation to the sums of a tile. NaN passes through all of them. */
__attribute__((always_inline)) static inline void
direct_post(const direct_tile *t, uint32_t index, onxi_vf sum[DIRECT_M][DIRECT_V], const int rows, const int vectors)
{
#define EACH(EXPR)                                                                                                     \
    UNROLL                                                                                                             \
    for (int i = 0; i < rows; i++)                                                                                     \
        UNROLL                                                                                                         \
    for (int v = 0; v < vectors; v++) {                                                                                \
        const onxi_vf x = sum[i][v];                                                                                   \
        sum[i][v] = EXPR;                                                                                              \
    }
    const simd_post *f = &t->posts->list[index];
    const onxi_vf zero = vf_all(0), low = vf_all(f->a), high = vf_all(f->b);
    switch (f->kind) {
    case ONX_POST_ADD: {
        const char *other[DIRECT_BASES];
        const uint64_t vector = direct_vector(t->other_vector);
        const row_steps step = row_steps_of(t->other_step);
        row_bases(other, t->others[index] + t->place, &step, rows);
        if (t->last < ONXI_LANES) {
            EACH(x + direct_load(t, ROW_AT(other, i, &step) + (uint64_t)v * vector, v + 1 == vectors))
        } else {
            EACH(x + vf_load(ROW_AT(other, i, &step) + (uint64_t)v * vector))
        }
        break;
    }
    case ONX_POST_RELU:
        EACH(post_relu(x, zero))
        break;
    case ONX_POST_CLIP:
        EACH(post_clip(x, low, high))
        break;
    default: /* ONX_POST_HARD_SWISH */
        EACH(post_hard_swish(x))
        break;
    }
#undef EACH
}

__attribute__((always_inline)) static inline void direct_store(const direct_tile *t, onxi_vf sum[DIRECT_M][DIRECT_V],
                                                               const int rows, const int vectors)
{
    const char *c[DIRECT_BASES];
    const row_steps step = row_steps_of(t->c_step);
    const uint64_t vector = direct_vector(t->c_vector);
    const int end = vectors - 1;
    row_bases(c, t->c, &step, rows);
#define TO(i, v) ((float *)ROW_AT(c, i, &step) + (uint64_t)(v)*vector)
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < end; v++)
        vf_store(TO(i, v), sum[i][v]);
    if (t->last < ONXI_LANES) {
        UNROLL
        for (int i = 0; i < rows; i++)
            vf_store_part(TO(i, end), sum[i][end], t->last);
        return;
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        vf_store(TO(i, end), sum[i][end]);
#undef TO
}

/* Adds t->k elements to the sums of a tile. together: elements that lie next to each other wherever the first one is.
 */
__attribute__((always_inline)) static inline void direct_add(const direct_tile *t, onxi_vf sum[DIRECT_M][DIRECT_V],
                                                             const int rows, const int vectors, const int together)
{
    const float *restrict b = t->b, *fetch = t->fetch;
    const char *a[DIRECT_BASES];
    const int32_t *at = t->at;
    row_steps step = row_steps_of(t->step);
    row_bases(a, t->a, &step, rows);
    for (uint64_t k = t->k; k; k -= (uint64_t)together, at += together) {
        const char *from[DIRECT_BASES];
        ROW_OPAQUE(step.one);
        ROW_OPAQUE(step.three);
        ROW_OPAQUE(step.five);
        ROW_OPAQUE(step.seven);
        UNROLL
        for (int i = 0; i < rows; i += ROW_SHARE) {
            from[i / ROW_SHARE] = a[i / ROW_SHARE] + (int64_t)sizeof(float) * *at;
            ROW_OPAQUE(from[i / ROW_SHARE]);
        }
        UNROLL
        for (int j = 0; j < together; j++) {
            onxi_vf x[DIRECT_V];
            UNROLL
            for (int v = 0; v < vectors; v++)
                x[v] = vf_load(b + (j * vectors + v) * ONXI_LANES);
            if (vectors > 1) { /* tiles of one vector have no load to spare */
                __builtin_prefetch(fetch);
                fetch += t->fetch_step;
            }
            UNROLL
            for (int i = 0; i < rows; i++)
                UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] += ROW_AT(from, i, &step)[j] * x[v];
        }
        b += together * vectors * ONXI_LANES;
    }
}

__attribute__((always_inline)) static inline void direct_of(const direct_tile *t, const int rows, const int vectors)
{
    const char *start[DIRECT_BASES];
    const row_steps step = row_steps_of(t->start_step);
    onxi_vf sum[DIRECT_M][DIRECT_V];
    row_bases(start, t->start, &step, rows);
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = vf_load(ROW_AT(start, i, &step) + v * ONXI_LANES);
    if (DIRECT_TOGETHER > 1 && vectors == 1 && t->adjacent)
        direct_add(t, sum, rows, vectors, DIRECT_TOGETHER);
    else
        direct_add(t, sum, rows, vectors, 1);
    for (uint32_t p = 0; p < t->applied; p++)
        direct_post(t, p, sum, rows, vectors);
    direct_store(t, sum, rows, vectors);
}

/* X(pixels, vectors) for all tiles of so many vectors. */
#if ONXI_ROWS == 12
#define DIRECT_EACH_1(X)                                                                                               \
    DIRECT_EACH_2(X, 1)                                                                                                \
    X(13, 1) X(14, 1) X(15, 1) X(16, 1) X(17, 1) X(18, 1) X(19, 1) X(20, 1) X(21, 1) X(22, 1) X(23, 1) X(24, 1)
#define DIRECT_EACH_2(X, v) DIRECT_EACH_3(X, v) X(9, v) X(10, v) X(11, v) X(12, v)
#define DIRECT_EACH_3(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v)
#else
#define DIRECT_EACH_1(X)    DIRECT_EACH_2(X, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1)
#define DIRECT_EACH_2(X, v) DIRECT_EACH_3(X, v) X(5, v) X(6, v)
#define DIRECT_EACH_3(X, v) X(1, v) X(2, v) X(3, v) X(4, v)
#endif
#define DIRECT_TILE(n, v)                                                                                              \
    static void direct_##n##_##v(const direct_tile *t)                                                                 \
    {                                                                                                                  \
        direct_of(t, n, v);                                                                                            \
    }
DIRECT_EACH_1(DIRECT_TILE)
DIRECT_EACH_2(DIRECT_TILE, 2)
DIRECT_EACH_3(DIRECT_TILE, 3)
#undef DIRECT_TILE

/* By vectors, then by pixels, both from 1 on; and the most pixels. */
#define DIRECT_NAME(n, v) direct_##n##_##v,
static void (*const direct_tiles[DIRECT_V][DIRECT_M])(const direct_tile *) = { { DIRECT_EACH_1(DIRECT_NAME) },
                                                                               { DIRECT_EACH_2(DIRECT_NAME, 2) },
                                                                               { DIRECT_EACH_3(DIRECT_NAME, 3) } };
#undef DIRECT_NAME
static inline uint64_t direct_most(uint64_t vectors)
{
    return DIRECT_M / vectors;
}

/* ---- weights ---- */

static inline uint64_t vectors_of(uint64_t m)
{
    return (m + ONXI_LANES - 1) / ONXI_LANES;
}

/* Panels of a group. They have two vectors of channels; one has three where two would leave one, whose tiles would be
 * limited by loads. With AVX2 they have three, or some of them two: tiles of 4 by 3 load less than those of 6 by 2, and
 * divide more lines evenly. The vectors are divided among the panels as evenly as possible. */
static inline uint64_t panels_of(uint64_t m)
{
    const uint64_t vectors = vectors_of(m);
    return ONXI_LANES == 8 ? (vectors + 2) / 3 : vectors < 2 ? 1 : vectors / 2;
}

/* The first channel of a panel of `panels`. */
static inline uint64_t panel_first(uint64_t m, uint64_t panels, uint64_t panel)
{
    return panel * vectors_of(m) / panels * ONXI_LANES;
}

static inline uint64_t panel_vectors(uint64_t m, uint64_t panels, uint64_t panel)
{
    return (panel_first(m, panels, panel + 1) - panel_first(m, panels, panel)) / ONXI_LANES;
}

typedef struct direct_packing {
    uint64_t c, m, taps, panels; /* panels: of a group */
    bool planes;
} direct_packing;

/* Gathers a vector of channels, `width` of which exist, from element k on: `count` rows. */
static inline void direct_turn(const float *from, uint64_t depth, uint64_t width, uint64_t count, float *rows)
{
    if (width == ONXI_LANES && count == ONXI_LANES) {
        vf_turn((const char *)from, depth * sizeof *from, rows, ONXI_LANES);
        return;
    }
    for (uint64_t k = 0; k < count; k++)
        for (uint64_t i = 0; i < ONXI_LANES; i++)
            rows[k * ONXI_LANES + i] = i < width ? from[i * depth + k] : 0;
}

/* A panel of output channels: by tap and input channel, or, for planes, by input channel and tap. */
static inline onx_status direct_pack(void *user, const void *elements, uint64_t piece, void *out)
{
    const direct_packing *q = user;
    const uint64_t group = piece / q->panels, panel = piece % q->panels;
    const uint64_t depth = q->c * q->taps, vectors = panel_vectors(q->m, q->panels, panel);
    const uint64_t first = panel_first(q->m, q->panels, panel);
    const float *from = (const float *)elements + (group * q->m + first) * depth;
    float *to = (float *)out + (group * vectors_of(q->m) * ONXI_LANES + first) * depth, rows[ONXI_LANES * ONXI_LANES];
    for (uint64_t v = 0; v < vectors; v++, from += ONXI_LANES * depth) {
        const uint64_t left = q->m - first - v * ONXI_LANES, width = left < ONXI_LANES ? left : ONXI_LANES;
        for (uint64_t k = 0, count; k < depth; k += count) {
            count = depth - k < ONXI_LANES ? depth - k : ONXI_LANES;
            direct_turn(from + k, depth, width, count, rows);
            for (uint64_t i = k; i < k + count; i++) {
                const uint64_t at = q->planes ? i : i % q->taps * q->c + i / q->taps;
                vf_store(to + (at * vectors + v) * ONXI_LANES, vf_load(rows + (i - k) * ONXI_LANES));
            }
        }
    }
    return ONX_OK;
}

#endif
