/* few_bits.h - vectorized products of floats with 2-, 4- or 8-bit weights that have a scale per block: the interface
 * between rows with such weights and the loops of an instruction set (kernel/simd/few_bits.c, byte_few_bits.c), and the
 * layout of the weights. */
#ifndef ONXI_KERNEL_FEW_BITS_H
#define ONXI_KERNEL_FEW_BITS_H

#include "kernel/kernel.h"

/* Each column of the result has a row of `k` weights, in `blocks` whole blocks, packed into `row_bytes` bytes, lowest
 * bits first. Loops work on strips of `lanes` columns: 32-bit words, one per column, with the next 32 / bits weights of
 * that column. Byte j of a word holds weights j, 4 + j, .., the first one in its lowest bits: one shift and one mask
 * extract four consecutive weights, and other shifts any single one. A partial strip is padded with zeros. */
typedef struct onxi_few_bits {
    uint64_t m, n, k;
    uint64_t block, blocks, row_bytes, zero_bytes; /* zero_bytes: bytes of zero points per row */
    uint64_t lanes, rows_each, columns_each;       /* rows_each, columns_each: size of a unit of work */
    unsigned bits;
    bool rounded;            /* the left operand is quantized to 8 bits, with a scale per block */
    bool has_zeros, is_real; /* are there zero points, and are they floats? none: half of the bits' range */
    const float *a, *bias;   /* bias: an element per column; NULL: none */
    const uint8_t *weights;  /* strips of weights; scales and zero points have a line of `lanes` elements per block */
    const float *scales;
    const void *zeros;
    float *y;
} onxi_few_bits;

typedef struct onxi_few_bits_ops {
    uint64_t lanes;
    /* Divides the work (rows_each; columns_each, a multiple of 64) and gives the bytes of workspace per thread. False:
     * declines. */
    bool (*plan)(onxi_few_bits *q, unsigned threads, uint64_t *memory_out);
    /* Computes rows m0 .. m1 - 1 of columns n0 .. n1 - 1; strips and lines begin with column n0. Returns whether all
     * results are finite: zero points are subtracted from sums, where infinities would give NaN. */
    bool (*piece)(const onxi_few_bits *q, uint64_t m0, uint64_t m1, uint64_t n0, uint64_t n1, void *memory);
} onxi_few_bits_ops;

extern const onxi_few_bits_ops onxi_few_bits_base, onxi_few_bits_v3, onxi_few_bits_v4, onxi_few_bits_vnni;

/* Packs a strip, and its lines, from the operator's layout of all columns. */
void onxi_few_bits_strip(const onxi_few_bits *q, const uint8_t *weights, uint64_t strip, uint8_t *out);
void onxi_few_bits_lines(const onxi_few_bits *q, const float *numbers, uint64_t strip, float *out);
void onxi_few_bits_zeros(const onxi_few_bits *q, const uint8_t *zeros, uint64_t strip, uint8_t *out);

/* Bytes of a block's line of zero points. */
static inline uint64_t onxi_few_bits_zero_line(const onxi_few_bits *q)
{
    return q->has_zeros ? q->lanes * (q->is_real ? sizeof(float) : 1) : 0;
}

#endif
