/* direct.h - the inner kernel of convolutions that read images in place: accumulates a tile, some pixels of some
 * vectors of channels, over the inputs that a table tells, and applies bias and simple post-operations before it stores
 * the tile. The sum runs in one fixed order. */
#ifndef ONXI_KERNEL_SIMD_DIRECT_H
#define ONXI_KERNEL_SIMD_DIRECT_H

#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

/* Most vectors of a panel: the last panel has three where two would leave one, which would be limited by loads. Most
 * pixels of a tile, which is one of one vector; all tiles have as many sums. Floats from one row of partial sums to the
 * next. */
enum { DIRECT_V = 3, DIRECT_M = 2 * TILE_M, DIRECT_ROW = DIRECT_V * ONXI_LANES };

typedef struct direct_tile {
    const float *a;      /* what the first pixel covers */
    const int32_t *at;   /* where each element of the sum is, from `a` on */
    uint64_t k;          /* number of these */
    uint64_t step;       /* elements from a pixel to the next */
    const float *b;      /* weights: for each element, the channels of the panel */
    const float *start;  /* what the sums begin with, */
    uint64_t start_step; /* from a pixel to the next; 0: the same for all */
    float *c;            /* results */
    uint64_t c_step;
    const simd_posts *posts;
    uint32_t applied;           /* the first of these that are applied here */
    const float *const *others; /* for each post-operation: the other operand of ONX_POST_ADD, */
    uint64_t place, other_step; /* where the tile begins in these, and elements from a pixel to the next */
    uint64_t last;              /* channels of the last vector that are loaded from these and stored */
    const float *fetch;         /* prefetched, `fetch_step` elements for each element of the sum */
    uint64_t fetch_step;
} direct_tile;

/* Is it one of the post-operations that a tile applies? */
static inline bool direct_applies(const simd_post *f)
{
    return (f->kind == ONX_POST_ADD && f->operand >= 0) || f->kind == ONX_POST_RELU || f->kind == ONX_POST_CLIP ||
           f->kind == ONX_POST_HARD_SWISH;
}

/* A vector of another operand. */
static inline onxi_vf direct_load(const direct_tile *t, const float *at, bool is_last)
{
    return is_last && t->last < ONXI_LANES ? vf_load_part(at, t->last, 0) : vf_load(at);
}

/* Addresses of the rows of a tile: nine share a base. The multiples of the distance are opaque to the compiler, which
 * otherwise keeps an address for each row, and registers run out. */
enum { DIRECT_SHARE = 9, DIRECT_BASES = (DIRECT_M + DIRECT_SHARE - 1) / DIRECT_SHARE };
typedef struct direct_steps {
    uint64_t one, three, five, seven; /* times the distance in bytes */
} direct_steps;
#define DIRECT_OPAQUE(x) __asm__("" : "+r"(x))

__attribute__((always_inline)) static inline direct_steps direct_steps_of(uint64_t elements)
{
    direct_steps s = { .one = elements * sizeof(float) };
    s.three = 3 * s.one;
    s.five = 5 * s.one;
    s.seven = 7 * s.one;
    return s;
}

/* A row of the nine that share a base. */
__attribute__((always_inline)) static inline const float *direct_row(const char *base, const direct_steps *s, int i)
{
    const uint64_t times[DIRECT_SHARE] = { 0,       s->one,       2 * s->one, s->three,  4 * s->one,
                                           s->five, 2 * s->three, s->seven,   8 * s->one };
    return (const float *)(base + times[i]);
}

/* Sets the bases of the rows, `offset` elements from others that are nine rows apart. */
__attribute__((always_inline)) static inline void direct_bases(const char **to, const float *from,
                                                               const direct_steps *s, const int rows)
{
    UNROLL
    for (int i = 0; i < rows; i += DIRECT_SHARE)
        to[i / DIRECT_SHARE] = (const char *)from + (uint64_t)i * s->one;
}

#define DIRECT_AT(bases, i, steps) direct_row(bases[(i) / DIRECT_SHARE], steps, (i) % DIRECT_SHARE)

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
        const direct_steps step = direct_steps_of(t->other_step);
        direct_bases(other, t->others[index] + t->place, &step, rows);
        if (t->last < ONXI_LANES) {
            EACH(x + direct_load(t, DIRECT_AT(other, i, &step) + v * ONXI_LANES, v + 1 == vectors))
        } else {
            EACH(x + vf_load(DIRECT_AT(other, i, &step) + v * ONXI_LANES))
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
    const direct_steps step = direct_steps_of(t->c_step);
    const int end = vectors - 1;
    direct_bases(c, t->c, &step, rows);
#define TO(i, v) ((float *)DIRECT_AT(c, i, &step) + (v)*ONXI_LANES)
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

__attribute__((always_inline)) static inline void direct_of(const direct_tile *t, const int rows, const int vectors)
{
    const float *restrict b = t->b, *fetch = t->fetch;
    const char *a[DIRECT_BASES], *start[DIRECT_BASES];
    const int32_t *at = t->at;
    direct_steps step = direct_steps_of(t->start_step);
    onxi_vf sum[DIRECT_M][DIRECT_V];
    direct_bases(start, t->start, &step, rows);
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = vf_load(DIRECT_AT(start, i, &step) + v * ONXI_LANES);
    step = direct_steps_of(t->step);
    direct_bases(a, t->a, &step, rows);
    for (uint64_t k = t->k; k; k--, at++) {
        const char *from[DIRECT_BASES];
        onxi_vf x[DIRECT_V];
        DIRECT_OPAQUE(step.one);
        DIRECT_OPAQUE(step.three);
        DIRECT_OPAQUE(step.five);
        DIRECT_OPAQUE(step.seven);
        UNROLL
        for (int i = 0; i < rows; i += DIRECT_SHARE) {
            from[i / DIRECT_SHARE] = a[i / DIRECT_SHARE] + (int64_t)sizeof(float) * *at;
            DIRECT_OPAQUE(from[i / DIRECT_SHARE]);
        }
        UNROLL
        for (int v = 0; v < vectors; v++)
            x[v] = vf_load(b + v * ONXI_LANES);
        if (vectors > 1) { /* tiles of one vector have no load to spare */
            __builtin_prefetch(fetch);
            fetch += t->fetch_step;
        }
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] += *DIRECT_AT(from, i, &step) * x[v];
        b += vectors * ONXI_LANES;
    }
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

#endif
