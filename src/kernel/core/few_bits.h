/* few_bits.h - products of floats with weights of 4 or 8 bits in blocks with a scale each, by vectors: what the rows
 * that have such weights give to the loops of an instruction set (kernel/simd/few_bits.c). */
#ifndef ONXI_KERNEL_FEW_BITS_H
#define ONXI_KERNEL_FEW_BITS_H

#include "kernel/kernel.h"

/* A column of the result has a row of `k` weights, in `blocks` whole blocks; numbers are in bytes, the lowest bits
 * first. */
typedef struct onxi_few_bits {
    uint64_t m, n, k;
    uint64_t block, blocks, row_bytes, zero_bytes; /* the latter of a row */
    unsigned bits;
    bool rounded; /* the left side is converted to 8 bits, each block with a scale */
    const float *a;
    const uint8_t *weights;
    const float *scales, *real_zeros; /* a number per block; NULL: none */
    const uint8_t *zeros;             /* packed like the numbers; NULL: none, half of what the bits hold */
    const float *bias;                /* a number per column; NULL: none */
    float *y;
} onxi_few_bits;

typedef struct onxi_few_bits_ops {
    /* Whether blocks are whole vectors. */
    bool (*fits)(const onxi_few_bits *q);
    /* Floats of a thread's memory; false when they cannot be counted. */
    bool (*memory)(const onxi_few_bits *q, uint64_t *out);
    /* Columns first .. last - 1, which begin with a multiple of 16. */
    void (*columns)(const onxi_few_bits *q, uint64_t first, uint64_t last, float *memory);
} onxi_few_bits_ops;

extern const onxi_few_bits_ops onxi_few_bits_base, onxi_few_bits_v3, onxi_few_bits_v4;

#endif
