/* linear.h - steps of linear attention over a state of rows, for each level of the architecture (kernel/simd/linear.c).
 */
#ifndef ONXI_KERNEL_CORE_LINEAR_H
#define ONXI_KERNEL_CORE_LINEAR_H

#include "kernel/kernel.h"

/* A state of `rows` rows of `columns` floats, and a number for each row. */
typedef struct onxi_linear_loops {
    /* Multiplies rows by `keep` (NULL: they stay); out = the sum of rows times `key` (NULL: none). */
    void (*forget)(float *state, uint64_t rows, uint64_t columns, const float *keep, const float *key, float *out);
    /* Adds `value` times `key` to rows; out = the sum of rows times `query` (NULL: none). */
    void (*learn)(float *state, uint64_t rows, uint64_t columns, const float *key, const float *value,
                  const float *query, float *out);
} onxi_linear_loops;
extern const onxi_linear_loops onxi_linear_loops_base, onxi_linear_loops_v3, onxi_linear_loops_v4;

#endif
