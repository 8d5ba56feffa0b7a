/* ml_lanes.h - linear models and support vector machines for some rows of features at a time, which lie side by side:
 * loops for each level of the architecture (kernel/simd/ml_lanes.c). What becomes of a row depends on no other one. */
#ifndef ONXI_KERNEL_CORE_ML_LANES_H
#define ONXI_KERNEL_CORE_ML_LANES_H

#include "kernel/core/ml.h"

/* Rows at a time. Number i of row r is at i * ONXI_ML_LANES + r. */
enum { ONXI_ML_LANES = 16 };

/* What a support vector machine makes of the product or the distance of two lists. */
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
    /* Up to ONXI_ML_LANES rows of floats, one behind the other, side by side; lanes beyond are 0. */
    void (*turn)(const float *rows, uint64_t row_count, uint64_t columns, double *out);
    /* Adds to number i of each row the product (the squared distance) of its n numbers `x` with list i of `count` lists
     * of n numbers, one behind the other. */
    void (*products)(const double *x, const double *lists, uint64_t n, uint64_t count, double *out);
    void (*distances)(const double *x, const double *lists, uint64_t n, uint64_t count, double *out);
    /* Of n numbers of each row, products or distances for ONXI_ML_RBF. */
    void (*curve)(const onxi_ml_curve *curve, double *x, uint64_t n);
    void (*softmax)(double *scores, uint64_t n);
    void (*logistic)(double *scores, uint64_t n);
    /* onxi_ml_argmax of the n scores of each row. */
    void (*argmax)(const double *scores, uint64_t n, uint64_t *out);
} onxi_ml_loops;
extern const onxi_ml_loops onxi_ml_loops_base, onxi_ml_loops_v3, onxi_ml_loops_v4;

/* Rows first to first + count - 1 of x side by side; `row` has room for one. */
void onxi_ml_lanes_load(const onxi_ml_loops *loops, const onx_value *x, uint64_t first, uint64_t count,
                        uint64_t columns, double *row, double *out);
/* onxi_ml_finish for all rows; then rows of `count` scores, one behind the other, to `rows`. In `best`, unless it is
 * NULL, there is the greatest of each row then. */
void onxi_ml_lanes_finish(const onxi_ml_loops *loops, onxi_ml_transform transform, double *scores, uint64_t count,
                          double *rows, uint64_t *best);

#endif
