/* ml_lanes.c - linear models and support vector machines, with a row of features in each SIMD lane. Elements are
 * doubles, as in the plain rows, because sums over hundreds of vectors would lose precision in float; linear models of
 * floats, which have one sum only, also have loops for floats. */
#include "kernel/core/ml_lanes.h"
#include "kernel/simd/math.h"
#include "kernel/simd/tile.h"
#include "kernel/simd/wide.h"

#ifndef __wasm__ /* browsers run the plain rows */

enum { WIDTH = VD_LANES };

#define REAL          double
#define VECTOR        vd
#define MASK          vl
#define OF_TYPE(name) wide_##name
#define EXP           vd_exp
#include "kernel/simd/ml_products.h"
#undef REAL
#undef VECTOR
#undef MASK
#undef OF_TYPE
#undef EXP
#define REAL          float
#define VECTOR        onxi_vf
#define MASK          onxi_vi
#define OF_TYPE(name) narrow_##name
#define EXP           vf_exp
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
    float space[ONXI_LANES * ONXI_ML_LANES], short_rows[ONXI_LANES * ONXI_ML_LANES];
    const bool full = row_count == ONXI_ML_LANES && columns >= ONXI_LANES / 2;
    uint64_t step = columns;
    if (full && columns < ONXI_LANES) {
        for (uint64_t r = 0; r < ONXI_ML_LANES; r++)
            vf_store(short_rows + r * ONXI_LANES, vf_load_part(rows + r * columns, columns, 0));
        rows = short_rows;
        step = ONXI_LANES;
    }
    for (uint64_t next = 0; full && next < columns; next += ONXI_LANES) {
        const bool is_short = columns < ONXI_LANES; /* the last block may overlap the one before */
        const uint64_t c = is_short ? 0 : columns - next < ONXI_LANES ? columns - ONXI_LANES : next;
        const uint64_t count = (is_short ? columns : ONXI_LANES) * ONXI_ML_LANES;
        float *block = narrow && !is_short ? narrow + c * ONXI_ML_LANES : space;
        for (uint64_t r = 0; r < ONXI_ML_LANES; r += ONXI_LANES)
            vf_turn((const char *)(rows + r * step + c), step * sizeof *rows, block + r, ONXI_ML_LANES);
        for (uint64_t i = 0; wide && i < count; i++)
            wide[c * ONXI_ML_LANES + i] = (double)block[i];
        if (narrow && is_short)
            memcpy(narrow, block, count * sizeof *narrow);
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

/* A bit for each row that has a sum which is not finite. */
static uint32_t not_finite(const float *sums, uint64_t count)
{
    uint32_t odd = 0;
    for (unsigned r = 0; r < ONXI_ML_LANES; r += ONXI_LANES) {
        onxi_vi none = { 0 };
        for (uint64_t i = 0; i < count; i++) {
            const onxi_vf v = vf_load(sums + i * ONXI_ML_LANES + r);
            none |= v - v != 0.0f; /* infinity and NaN give NaN */
        }
        for (unsigned lane = 0; lane < ONXI_LANES && vi_any(none); lane++)
            odd |= (none[lane] ? 1u : 0) << (r + lane);
    }
    return odd;
}

static uint32_t products_narrow(const float *x, const float *lists, uint64_t n, uint64_t count, float *out)
{
    narrow_sums(x, lists, n, count, false, out);
    return not_finite(out, count);
}

/* Vectors of a group of lists, and rows whose sums stay in registers. */
enum { GROUP = ONXI_ML_LANES / ONXI_LANES, TILE_ROWS = 16 / GROUP / (ONXI_LANES < 16 ? 2 : 1) };

/* Adds the products of a stretch of n elements, `step` of which lie from a row to the next, to the sums of rows. */
__attribute__((always_inline)) static inline void group_tile(const float *x, uint64_t step, const float *packed,
                                                             uint64_t n, const unsigned rows, float *out)
{
    onxi_vf sum[TILE_ROWS][GROUP];
    for (unsigned r = 0; r < rows; r++)
        for (unsigned v = 0; v < GROUP; v++)
            sum[r][v] = vf_all(0);
    for (uint64_t k = 0; k < n; k++, packed += ONXI_ML_LANES) {
        UNROLL
        for (unsigned r = 0; r < rows; r++)
            for (unsigned v = 0; v < GROUP; v++)
                sum[r][v] += vf_load(packed + v * ONXI_LANES) * x[r * step + k];
    }
    for (unsigned r = 0; r < rows; r++)
        for (unsigned v = 0; v < GROUP; v++) {
            float *to = out + r * ONXI_ML_LANES + v * ONXI_LANES;
            vf_store(to, vf_load(to) + sum[r][v]);
        }
}

/* The lanes are lists, so that rows need not be interleaved: each element of a row is a factor of a vector. */
static uint32_t panels_narrow(const float *rows, uint64_t row_count, const float *packed, const float *begin,
                              uint64_t n, uint64_t count, float *out)
{
    enum { STRETCH = narrow_STRETCH };
    for (uint64_t g = 0; g < count; g += ONXI_ML_LANES, packed += n * ONXI_ML_LANES) {
        float sums[ONXI_ML_LANES * ONXI_ML_LANES];
        for (uint64_t r = 0; r < ONXI_ML_LANES; r++)
            memcpy(sums + r * ONXI_ML_LANES, begin + g, ONXI_ML_LANES * sizeof *sums);
        for (uint64_t k = 0, some; k < n; k += some) {
            some = n - k < STRETCH ? n - k : STRETCH;
            uint64_t r = 0;
            for (; r + TILE_ROWS <= row_count; r += TILE_ROWS)
                group_tile(rows + r * n + k, n, packed + k * ONXI_ML_LANES, some, TILE_ROWS, sums + r * ONXI_ML_LANES);
            for (; r < row_count; r++)
                group_tile(rows + r * n + k, n, packed + k * ONXI_ML_LANES, some, 1, sums + r * ONXI_ML_LANES);
        }
        for (uint64_t i = 0; i < ONXI_ML_LANES; i += ONXI_LANES)
            for (uint64_t r = 0; r < ONXI_ML_LANES; r += ONXI_LANES)
                vf_turn((const char *)(sums + r * ONXI_ML_LANES + i), ONXI_ML_LANES * sizeof *sums,
                        out + (g + i) * ONXI_ML_LANES + r, ONXI_ML_LANES);
    }
    return not_finite(out, count);
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

static void curve_narrow(const onxi_ml_curve *c, const float *x, uint64_t n, double *out)
{
    for (uint64_t i = 0; i < n * ONXI_ML_LANES; i += ONXI_LANES) {
        float values[ONXI_LANES];
        const onxi_vf v = vf_load(x + i);
        vf_store(values, c->kind == ONXI_ML_SIGMOID ? vf_tanh(v * (float)c->gamma + (float)c->coef0) : v);
        for (unsigned k = 0; k < ONXI_LANES; k++)
            out[i + k] = (double)values[k];
    }
    if (c->kind != ONXI_ML_SIGMOID)
        curve(c, out, n);
}

static void softmax(double *scores, uint64_t n)
{
    wide_softmax(scores, n);
}

static void softmax_narrow(float *scores, uint64_t n)
{
    narrow_softmax(scores, n);
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

const onxi_ml_loops ONXI_LEVELED(onxi_ml_loops) = {
    .turn = turn,
    .products = products,
    .distances = distances,
    .curve = curve,
    .curve_narrow = curve_narrow,
    .softmax = softmax,
    .softmax_narrow = softmax_narrow,
    .logistic = logistic,
    .argmax = argmax,
    .turn_narrow = turn_narrow,
    .products_narrow = products_narrow,
    .panels_narrow = panels_narrow,
    .argmax_narrow = argmax_narrow,
    .rows_narrow = rows_narrow,
};
#endif
