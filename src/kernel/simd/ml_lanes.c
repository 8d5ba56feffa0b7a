/* ml_lanes.c - linear models and support vector machines, with a row of features in each SIMD lane. Elements are
 * doubles, as in the plain rows, because sums over hundreds of vectors would lose precision in float; linear models of
 * floats, which have one sum only, also have loops for floats. */
#include "kernel/core/ml_lanes.h"
#include "kernel/simd/tile.h"

#include <math.h>

#ifndef __wasm__ /* browsers run the plain rows */

enum { WIDTH = ONXI_LANES / 2 }; /* doubles per vector register */
typedef double vd __attribute__((vector_size(WIDTH * 8)));
typedef int64_t vl __attribute__((vector_size(WIDTH * 8)));
typedef uint64_t vul __attribute__((vector_size(WIDTH * 8)));

#define REAL          double
#define VECTOR        vd
#define MASK          vl
#define OF_TYPE(name) wide_##name
#include "kernel/simd/ml_products.h"
#undef REAL
#undef VECTOR
#undef MASK
#undef OF_TYPE
#define REAL          float
#define VECTOR        onxi_vf
#define MASK          onxi_vi
#define OF_TYPE(name) narrow_##name
#include "kernel/simd/ml_products.h"

static inline vd load(const double *p)
{
    return wide_load(p);
}

static inline void store(double *p, vd v)
{
    wide_store(p, v);
}

static inline vd all(double x)
{
    return wide_all(x);
}

static inline vd choose(vl mask, vd yes, vd no)
{
    return wide_choose(mask, yes, no);
}

/* ---- features ---- */

/* Interleaves rows, as floats (`narrow`) or as doubles (`wide`); the other one is NULL. */
__attribute__((always_inline)) static inline void turn_rows(const float *rows, uint64_t row_count, uint64_t columns,
                                                            float *narrow, double *wide)
{
    float space[ONXI_LANES * ONXI_ML_LANES];
    const bool full = row_count == ONXI_ML_LANES && columns >= ONXI_LANES;
    for (uint64_t next = 0; full && next < columns; next += ONXI_LANES) {
        const uint64_t c = columns - next < ONXI_LANES ? columns - ONXI_LANES : next; /* the last block may overlap */
        float *block = narrow ? narrow + c * ONXI_ML_LANES : space;
        for (uint64_t r = 0; r < ONXI_ML_LANES; r += ONXI_LANES)
            vf_turn((const char *)(rows + r * columns + c), columns * sizeof *rows, block + r, ONXI_ML_LANES);
        for (uint64_t i = 0; wide && i < ONXI_LANES * ONXI_ML_LANES; i++)
            wide[c * ONXI_ML_LANES + i] = (double)block[i];
    }
    for (uint64_t c = 0; !full && c < columns; c++)
        for (uint64_t r = 0; r < ONXI_ML_LANES; r++) {
            const float x = r < row_count ? rows[r * columns + c] : 0;
            if (narrow)
                narrow[c * ONXI_ML_LANES + r] = x;
            else
                wide[c * ONXI_ML_LANES + r] = (double)x;
        }
}

static void turn(const float *rows, uint64_t row_count, uint64_t columns, double *out)
{
    turn_rows(rows, row_count, columns, NULL, out);
}

static void turn_narrow(const float *rows, uint64_t row_count, uint64_t columns, float *out)
{
    turn_rows(rows, row_count, columns, out, NULL);
}

/* ---- products ---- */

static void products(const double *x, const double *lists, uint64_t n, uint64_t count, double *out)
{
    wide_sums(x, lists, n, count, false, out);
}

static void distances(const double *x, const double *lists, uint64_t n, uint64_t count, double *out)
{
    wide_sums(x, lists, n, count, true, out);
}

static uint32_t products_narrow(const float *x, const float *lists, uint64_t n, uint64_t count, float *out)
{
    narrow_sums(x, lists, n, count, false, out);
    uint32_t odd = 0;
    for (unsigned r = 0; r < ONXI_ML_LANES; r += ONXI_LANES) {
        onxi_vi none = { 0 };
        for (uint64_t i = 0; i < count; i++) {
            const onxi_vf v = vf_load(out + i * ONXI_ML_LANES + r);
            none |= v - v != 0.0f; /* infinity and NaN give NaN */
        }
        for (unsigned lane = 0; lane < ONXI_LANES && vi_any(none); lane++)
            odd |= (none[lane] ? 1u : 0) << (r + lane);
    }
    return odd;
}

static void rows_narrow(const float *scores, uint64_t n, float *rows)
{
    if (n == 1)
        memcpy(rows, scores, ONXI_ML_LANES * sizeof *rows);
    for (uint64_t next = 0; n > 1 && next < n; next += ONXI_LANES) {
        /* A vector that is longer than a row is partly overwritten by the next row. */
        const uint64_t i = n >= ONXI_LANES && n - next < ONXI_LANES ? n - ONXI_LANES : next;
        for (uint64_t r = 0; r < ONXI_ML_LANES; r += ONXI_LANES)
            vf_turn((const char *)(scores + i * ONXI_ML_LANES + r), ONXI_ML_LANES * sizeof *scores, rows + r * n + i,
                    n);
    }
}

/* ---- functions ---- */

/* e^x by a polynomial around the nearest multiple of ln 2; the error is at most 2 ulp. Results that would be denormal
 * are 0. */
static inline vd exp_of(vd x)
{
    static const double factors[] = { 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                      1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0,        1.0 };
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    const vl low = x<-708.0, high = x> 709.78, none = x != x;
    const vd u = choose(low | high | none, all(0), x), k = u * 1.4426950408889634 + magic;
    const vd n = k - magic, r = (u - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    vd y = all(1.0 / 479001600);
    for (unsigned i = 0; i < sizeof factors / sizeof *factors; i++)
        y = y * r + factors[i];
    const vd whole = (vd)((vul)y + (((vul)k - (vul)all(magic)) << 52));
    return choose(none, x, choose(low, all(0), choose(high, all((double)INFINITY), whole)));
}

static inline vd magnitude(vd x)
{
    return (vd)((vl)x & 0x7fffffffffffffff);
}

/* 1 / (1 + e^-x), without overflow. */
static inline vd logistic_of(vd x)
{
    const vd v = 1.0 / (1.0 + exp_of(-magnitude(x)));
    return choose(x < 0.0, 1.0 - v, v);
}

static inline vd tanh_of(vd x)
{
    const vd e = exp_of(magnitude(x) * -2.0), y = (1.0 - e) / (1.0 + e);
    return (vd)((vl)y | ((vl)x & INT64_MIN));
}

/* x^degree. The degree is an integer, usually a small one. */
static inline vd power_of(vd x, double degree)
{
    vd result = x;
    if (degree >= 1 && degree <= 8) {
        for (int i = 1; i < (int)degree; i++)
            result *= x;
        return result;
    }
    for (unsigned i = 0; i < WIDTH; i++)
        result[i] = pow(x[i], degree);
    return result;
}

static void curve(const onxi_ml_curve *c, double *x, uint64_t n)
{
    for (uint64_t i = 0; i < n * ONXI_ML_LANES && c->kind != ONXI_ML_LINEAR; i += WIDTH) {
        const vd v = load(x + i);
        store(x + i, c->kind == ONXI_ML_RBF    ? exp_of(v * -c->gamma)
                     : c->kind == ONXI_ML_POLY ? power_of(v * c->gamma + c->coef0, c->degree)
                                               : tanh_of(v * c->gamma + c->coef0));
    }
}

static void softmax(double *scores, uint64_t n)
{
    for (unsigned v = 0; v < ONXI_ML_LANES; v += WIDTH) {
        vd most = all(-(double)INFINITY), sum = all(0);
        for (uint64_t i = 0; i < n; i++) {
            const vd x = load(scores + i * ONXI_ML_LANES + v);
            most = choose((x > most) | (x != x), x, most);
        }
        for (uint64_t i = 0; i < n; i++) {
            const vd e = exp_of(load(scores + i * ONXI_ML_LANES + v) - most);
            store(scores + i * ONXI_ML_LANES + v, e);
            sum += e;
        }
        for (uint64_t i = 0; i < n; i++)
            store(scores + i * ONXI_ML_LANES + v, load(scores + i * ONXI_ML_LANES + v) / sum);
    }
}

static void argmax(const double *scores, uint64_t n, uint64_t *out)
{
    wide_argmax(scores, n, out);
}

static void argmax_narrow(const float *scores, uint64_t n, uint64_t *out)
{
    narrow_argmax(scores, n, out);
}

static void logistic(double *scores, uint64_t n)
{
    for (uint64_t i = 0; i < n * ONXI_ML_LANES; i += WIDTH)
        store(scores + i, logistic_of(load(scores + i)));
}

const onxi_ml_loops ONXI_LEVELED(onxi_ml_loops) = { turn,       products, distances,   curve,           softmax,
                                                    logistic,   argmax,   turn_narrow, products_narrow, argmax_narrow,
                                                    rows_narrow };
#endif
