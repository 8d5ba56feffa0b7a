/* ml_lanes.h - linear models and support vector machines for several interleaved rows of features at a time: loops for
 * each ISA level (kernel/simd/ml_lanes.c). The results of a row do not depend on the other rows. */
#ifndef ONXI_KERNEL_CORE_ML_LANES_H
#define ONXI_KERNEL_CORE_ML_LANES_H

#include "kernel/core/ml.h"

/* The number of interleaved rows. Element i of row r is at index i * ONXI_ML_LANES + r. */
enum { ONXI_ML_LANES = 16 };

/* The kernel functions of a support vector machine, which map a dot product or a squared distance of two vectors. */
typedef enum onxi_ml_curve_kind {
    ONXI_ML_LINEAR,
    ONXI_ML_POLY,
    ONXI_ML_RBF,
    ONXI_ML_SIGMOID,
    ONXI_ML_CURVE_COUNT
} onxi_ml_curve_kind;
typedef struct onxi_ml_curve {
    onxi_ml_curve_kind kind;
    double gamma, coef0, degree;
} onxi_ml_curve;

typedef struct onxi_ml_loops {
    /* Converts up to ONXI_ML_LANES contiguous rows of floats to interleaved doubles; lanes beyond row_count are 0. */
    void (*turn)(const float *rows, uint64_t row_count, uint64_t columns, double *out);
    /* out[i] of each row += the dot product (`distances`: the squared distance) of its n elements of `x` and vector i.
     * `lists` holds `count` contiguous vectors of n elements; x and out are interleaved. */
    void (*products)(const double *x, const double *lists, uint64_t n, uint64_t count, double *out);
    void (*distances)(const double *x, const double *lists, uint64_t n, uint64_t count, double *out);
    /* Applies the kernel function in place to n values of each row: dot products (ONXI_ML_RBF: squared distances). */
    void (*curve)(const onxi_ml_curve *curve, double *x, uint64_t n);
    /* The same from dot products of floats, for kernels other than ONXI_ML_RBF. */
    void (*curve_narrow)(const onxi_ml_curve *curve, const float *x, uint64_t n, double *out);
    void (*softmax)(double *scores, uint64_t n);
    void (*softmax_narrow)(float *scores, uint64_t n);
    void (*logistic)(double *scores, uint64_t n);
    /* out[r] = onxi_ml_argmax of the n scores of row r. */
    void (*argmax)(const double *scores, uint64_t n, uint64_t *out);
    /* The same in float; products_narrow returns a bit for each row with a sum that is not finite. */
    void (*turn_narrow)(const float *rows, uint64_t row_count, uint64_t columns, float *out);
    uint32_t (*products_narrow)(const float *x, const float *lists, uint64_t n, uint64_t count, float *out);
    /* The same for `count` contiguous rows, without adding to out: the sums begin with `begin`. Groups of ONXI_ML_LANES
     * lists are packed: element i of list j is at i * ONXI_ML_LANES + j of its group. In the last group some may be 0,
     * as their `begin` is; out has room for them. */
    uint32_t (*panels_narrow)(const float *rows, uint64_t row_count, const float *packed, const float *begin,
                              uint64_t n, uint64_t count, float *out);
    void (*argmax_narrow)(const float *scores, uint64_t n, uint64_t *out);
    /* Writes the n scores of each row contiguously. Both arrays have room for ONXI_ML_LANES scores of a row, and `rows`
     * for ONXI_ML_LANES more. */
    void (*rows_narrow)(const float *scores, uint64_t n, float *rows);
} onxi_ml_loops;
extern const onxi_ml_loops onxi_ml_loops_base, onxi_ml_loops_v3, onxi_ml_loops_v4;

/* Interleaves rows first .. first + count - 1 of x; `row` is scratch memory for one row of doubles. */
void onxi_ml_lanes_load(const onxi_ml_loops *loops, const onx_value *x, uint64_t first, uint64_t count,
                        uint64_t columns, double *row, double *out);
/* Applies the transform to all rows as onxi_ml_finish does, and writes each row's `count` scores contiguously to
 * `rows`. `best`: receives the index of the greatest score of each row; may be NULL. `scores` is overwritten. */
void onxi_ml_lanes_finish(const onxi_ml_loops *loops, onxi_ml_transform transform, double *scores, uint64_t count,
                          double *rows, uint64_t *best);

#endif
