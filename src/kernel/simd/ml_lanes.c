/* ml_lanes.c - linear models and support vector machines, with a row of features in each SIMD lane. Elements are
 * doubles, as in the plain rows, because sums over hundreds of vectors would lose precision in float; linear models of
 * floats, which have one sum only, also have loops for floats. */
#include "kernel/core/ml_lanes.h"
#include "kernel/simd/tile.h"
#include "kernel/simd/wide.h"

#ifndef __wasm__ /* browsers run the plain rows */

enum { WIDTH = VD_LANES };

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

/* 1 / (1 + e^-x), without overflow. */
static inline vd logistic_of(vd x)
{
    const vd v = 1.0 / (1.0 + vd_exp(-vd_abs(x)));
    return vd_select(x < 0.0, 1.0 - v, v);
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
        store(x + i, c->kind == ONXI_ML_RBF    ? vd_exp(v * -c->gamma)
                     : c->kind == ONXI_ML_POLY ? power_of(v * c->gamma + c->coef0, c->degree)
                                               : vd_tanh(v * c->gamma + c->coef0));
    }
}

static void softmax(double *scores, uint64_t n)
{
    for (unsigned v = 0; v < ONXI_ML_LANES; v += WIDTH) {
        vd most = vd_all(-(double)INFINITY), sum = vd_all(0);
        for (uint64_t i = 0; i < n; i++) {
            const vd x = load(scores + i * ONXI_ML_LANES + v);
            most = vd_select((x > most) | (x != x), x, most);
        }
        for (uint64_t i = 0; i < n; i++) {
            const vd e = vd_exp(load(scores + i * ONXI_ML_LANES + v) - most);
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
