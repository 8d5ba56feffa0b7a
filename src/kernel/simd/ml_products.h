/* ml_products.h - sums of products, or of squared differences, of interleaved rows of features and contiguous lists,
 * the greatest of such sums, and their softmax. ml_lanes.c includes this file once per element type, with REAL (the
 * element), VECTOR (its vector type), MASK (the type of a comparison), EXP (a function) and OF_TYPE(name), which makes
 * names distinct. */
#include "kernel/core/ml_lanes.h"
#include "kernel/simd/simd.h"

#include <math.h>

#ifdef REAL

enum {
    OF_TYPE(WIDTH) = sizeof(VECTOR) / sizeof(REAL),
    OF_TYPE(PARTS) = ONXI_ML_LANES / OF_TYPE(WIDTH), /* registers for one element of all rows */
    /* Lists per tile, whose sums stay in registers. */
    OF_TYPE(LISTS) = ONXI_LANES == 16 ? 8 : 8 / OF_TYPE(PARTS),
    OF_TYPE(CHAINS) = 8,    /* sums that are needed so that none waits for its previous addition */
    OF_TYPE(STRETCH) = 128, /* elements per sum: float sums are of few terms, and their features stay in the cache */
};

static inline VECTOR OF_TYPE(load)(const REAL *p)
{
    VECTOR v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void OF_TYPE(store)(REAL *p, VECTOR v)
{
    memcpy(p, &v, sizeof v);
}

static inline VECTOR OF_TYPE(all)(REAL x)
{
    return x - (VECTOR){ 0 }; /* unlike x + 0, x - 0 keeps -0, so the compiler needs no instruction for it */
}

static inline VECTOR OF_TYPE(choose)(MASK mask, VECTOR yes, VECTOR no)
{
    return (VECTOR)((mask & (MASK)yes) | (~mask & (MASK)no));
}

/* Accumulates one product (or squared difference) per row and per list, for `count` lists. */
__attribute__((always_inline)) static inline void OF_TYPE(add)(const REAL *x, const REAL *lists, uint64_t n,
                                                               const unsigned count, const bool distance,
                                                               VECTOR sum[OF_TYPE(LISTS)][OF_TYPE(PARTS)])
{
    for (unsigned i = 0; i < count; i++) {
        const VECTOR factor = OF_TYPE(all)(lists[i * n]);
        for (unsigned v = 0; v < OF_TYPE(PARTS); v++) {
            const VECTOR a = OF_TYPE(load)(x + v * OF_TYPE(WIDTH)), apart = a - factor;
            sum[i][v] += distance ? apart * apart : a * factor;
        }
    }
}

/* `count` and `distance` are constants at each call, so the compiler specializes the loop. If there are few sums,
 * consecutive elements use different sets of them. `step`: elements from one list to the next. */
__attribute__((always_inline)) static inline void OF_TYPE(tile)(const REAL *x, const REAL *lists, uint64_t n,
                                                                uint64_t step, const unsigned count,
                                                                const bool distance, REAL *out)
{
    enum { SETS = OF_TYPE(CHAINS) };
    const unsigned used = count * OF_TYPE(PARTS), sets = used < SETS ? SETS / used : 1;
    VECTOR sum[SETS][OF_TYPE(LISTS)][OF_TYPE(PARTS)];
    for (unsigned s = 0; s < sets; s++)
        for (unsigned i = 0; i < count; i++)
            for (unsigned v = 0; v < OF_TYPE(PARTS); v++)
                sum[s][i][v] = OF_TYPE(all)(0);
    uint64_t k = 0;
    for (; sets > 1 && k + sets <= n; k += sets) {
        UNROLL
        for (unsigned s = 0; s < sets; s++)
            OF_TYPE(add)(x + (k + s) * ONXI_ML_LANES, lists + k + s, step, count, distance, sum[s]);
    }
    for (; k < n; k++)
        OF_TYPE(add)(x + k * ONXI_ML_LANES, lists + k, step, count, distance, sum[0]);
    for (unsigned half = sets / 2; half; half /= 2)
        for (unsigned s = 0; s < half; s++)
            for (unsigned i = 0; i < count; i++)
                for (unsigned v = 0; v < OF_TYPE(PARTS); v++)
                    sum[s][i][v] += sum[s + half][i][v];
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < OF_TYPE(PARTS); v++) {
            REAL *to = out + i * ONXI_ML_LANES + v * OF_TYPE(WIDTH);
            OF_TYPE(store)(to, OF_TYPE(load)(to) + sum[0][i][v]);
        }
}

/* A stretch of n elements of all lists. */
__attribute__((always_inline)) static inline void OF_TYPE(stretch)(const REAL *x, const REAL *lists, uint64_t n,
                                                                   uint64_t step, uint64_t count, const bool distance,
                                                                   REAL *out)
{
    enum { LISTS = OF_TYPE(LISTS), FOUR = LISTS > 4 ? 4 : 1, TWO = LISTS > 2 ? 2 : 1 };
    for (; count >= LISTS; count -= LISTS, lists += LISTS * step, out += LISTS * ONXI_ML_LANES)
        OF_TYPE(tile)(x, lists, n, step, LISTS, distance, out);
    for (; FOUR > 1 && count >= FOUR; count -= FOUR, lists += FOUR * step, out += FOUR * ONXI_ML_LANES)
        OF_TYPE(tile)(x, lists, n, step, FOUR, distance, out);
    for (; TWO > 1 && count >= TWO; count -= TWO, lists += TWO * step, out += TWO * ONXI_ML_LANES)
        OF_TYPE(tile)(x, lists, n, step, TWO, distance, out);
    for (; count; count--, lists += step, out += ONXI_ML_LANES)
        OF_TYPE(tile)(x, lists, n, step, 1, distance, out);
}

__attribute__((always_inline)) static inline void OF_TYPE(sums)(const REAL *x, const REAL *lists, uint64_t n,
                                                                uint64_t count, const bool distance, REAL *out)
{
    for (uint64_t k = 0, some; k < n; k += some) {
        some = n - k < OF_TYPE(STRETCH) ? n - k : OF_TYPE(STRETCH);
        OF_TYPE(stretch)(x + k * ONXI_ML_LANES, lists + k, some, n, count, distance, out);
    }
}

/* The index of the greatest of the n scores of each row, as onxi_ml_argmax; n is at most the maximum of MASK. */
static inline void OF_TYPE(argmax)(const REAL *scores, uint64_t n, uint64_t *out)
{
    for (unsigned v = 0; v < ONXI_ML_LANES; v += OF_TYPE(WIDTH)) {
        VECTOR most = OF_TYPE(load)(scores + v);
        MASK best = { 0 }, at = { 0 };
        for (uint64_t i = 1; i < n; i++) {
            const VECTOR x = OF_TYPE(load)(scores + i * ONXI_ML_LANES + v);
            const MASK more = (x > most) | ((x != x) & (most == most));
            most = OF_TYPE(choose)(more, x, most);
            at += 1;
            best = (more & at) | (~more & best);
        }
        for (unsigned r = 0; r < OF_TYPE(WIDTH); r++)
            out[v + r] = (uint64_t)best[r];
    }
}

static inline void OF_TYPE(softmax)(REAL *scores, uint64_t n)
{
    for (unsigned v = 0; v < ONXI_ML_LANES; v += OF_TYPE(WIDTH)) {
        VECTOR most = OF_TYPE(all)(-(REAL)INFINITY), sum = OF_TYPE(all)(0);
        for (uint64_t i = 0; i < n; i++) {
            const VECTOR x = OF_TYPE(load)(scores + i * ONXI_ML_LANES + v);
            most = OF_TYPE(choose)((x > most) | (x != x), x, most);
        }
        for (uint64_t i = 0; i < n; i++) {
            REAL *at = scores + i * ONXI_ML_LANES + v;
            const VECTOR e = EXP(OF_TYPE(load)(at) - most);
            OF_TYPE(store)(at, e);
            sum += e;
        }
        for (uint64_t i = 0; i < n; i++) {
            REAL *at = scores + i * ONXI_ML_LANES + v;
            OF_TYPE(store)(at, OF_TYPE(load)(at) / sum);
        }
    }
}

#endif
