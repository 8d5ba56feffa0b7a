/* few_bits.h - products of floats with weights of 2, 4 or 8 bits in blocks with a scale each, by vectors: what the rows
 * that have such weights give to the loops of an instruction set (kernel/simd/few_bits.c, byte_few_bits.c), and how
 * weights are laid out for them. */
#ifndef ONXI_KERNEL_FEW_BITS_H
#define ONXI_KERNEL_FEW_BITS_H

#include "kernel/kernel.h"

/* A column of the result has a row of `k` weights, in `blocks` whole blocks, packed into `row_bytes` bytes, the lowest
 * bits first. Loops have strips of `lanes` columns: words of 32 bits, one of each column, that hold the next 32 / bits
 * numbers of that column. Byte j of a word holds numbers j, 4 + j, .., the first in its lowest bits: so a shift and a
 * mask give four numbers that follow one another, and other shifts any single one. What a strip has more columns than
 * there are is zeros. */
typedef struct onxi_few_bits {
    uint64_t m, n, k;
    uint64_t block, blocks, row_bytes, zero_bytes; /* the latter of a row */
    uint64_t lanes, rows_each, columns_each;       /* the latter two: of a piece of work */
    unsigned bits;
    bool rounded;            /* the left side is converted to 8 bits, each block with a scale */
    bool has_zeros, is_real; /* zero points: bytes, or floats; none: half of what the bits hold */
    const float *a, *bias;   /* a number per column; NULL: none */
    const uint8_t *weights;  /* strips; of scales and zero points there is a line of `lanes` numbers for each block */
    const float *scales;
    const void *zeros;
    float *y;
} onxi_few_bits;

typedef struct onxi_few_bits_ops {
    uint64_t lanes;
    /* How work is cut (rows_each; columns_each, a multiple of 64), and bytes of a thread's memory. False: declines. */
    bool (*plan)(onxi_few_bits *q, unsigned threads, uint64_t *memory_out);
    /* Rows m0 .. m1 - 1 of columns n0 .. n1 - 1, with which strips and lines begin. Whether all of it is finite: zero
     * points are taken out of sums, where infinities would be left as NaN. */
    bool (*piece)(const onxi_few_bits *q, uint64_t m0, uint64_t m1, uint64_t n0, uint64_t n1, void *memory);
} onxi_few_bits_ops;

extern const onxi_few_bits_ops onxi_few_bits_base, onxi_few_bits_v3, onxi_few_bits_v4, onxi_few_bits_vnni;

/* A strip, and its lines: from the numbers of all columns as the operator has them. */
void onxi_few_bits_strip(const onxi_few_bits *q, const uint8_t *weights, uint64_t strip, uint8_t *out);
void onxi_few_bits_lines(const onxi_few_bits *q, const float *numbers, uint64_t strip, float *out);
void onxi_few_bits_zeros(const onxi_few_bits *q, const uint8_t *zeros, uint64_t strip, uint8_t *out);

/* Bytes of a block's line of zero points. */
static inline uint64_t onxi_few_bits_zero_line(const onxi_few_bits *q)
{
    return q->has_zeros ? q->lanes * (q->is_real ? sizeof(float) : 1) : 0;
}

#endif
