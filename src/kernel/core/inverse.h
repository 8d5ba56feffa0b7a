/* inverse.h - the inverse of each matrix of a tensor. */
#ifndef ONXI_KERNEL_INVERSE_H
#define ONXI_KERNEL_INVERSE_H

#include "kernel/kernel.h"

/* The rows of a kernel with one input and one output, whose last two axes are matrices. */
onx_status onxi_inverse_prepare(onx_prepare *p);
onx_status onxi_inverse_run(onx_work *work, uint64_t first, uint64_t last);

/* Loops for each ISA level (kernel/simd/eliminate.c). */
typedef struct onxi_inverse_loops {
    /* Takes row c of a square matrix, times their element of column c, out of all other rows, in which this element is
     * taken for 0. */
    void (*eliminate)(double *a, uint64_t n, uint64_t c);
} onxi_inverse_loops;
extern const onxi_inverse_loops onxi_inverse_loops_base, onxi_inverse_loops_v3, onxi_inverse_loops_v4;

#endif
