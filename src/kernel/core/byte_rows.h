/* byte_rows.h - products of a few rows of floats, each quantized to bytes by its own range, and constant 8-bit weights,
 * for each ISA level (kernel/simd/rows.c). */
#ifndef ONXI_KERNEL_CORE_BYTE_ROWS_H
#define ONXI_KERNEL_CORE_BYTE_ROWS_H

#include "kernel/kernel.h"

/* Rows of bytes, `pitch` bytes apart, times packed columns of weights: out = scale * scales * (sum of (a - zero) * (w -
 * zeros)). The sum is exact in 32-bit integers and is then converted to float. `k` is at most ONXI_BYTE_ROWS_MOST. */
typedef struct onxi_byte_rows {
    const uint8_t *a;
    const int32_t *totals; /* per row: the sum of its bytes */
    uint64_t rows, pitch, k, n;
    const void *packed;
    int32_t zero;
    const int32_t *zeros; /* per column; minus 128 if the weights are unsigned */
    float scale;
    const float *scales; /* per column */
    float *out;          /* rows x n */
} onxi_byte_rows;

enum { ONXI_BYTE_ROWS_MOST = 32768 }; /* the largest k: the sum of so many products fits in 32 bits */

typedef struct onxi_byte_rows_ops {
    uint64_t tile; /* columns per tile */
    /* *out = bytes that k x n packed weights need; false: too many. */
    bool (*size)(uint64_t k, uint64_t n, uint64_t *out);
    void (*pack)(const uint8_t *w, uint64_t k, uint64_t n, bool is_unsigned, void *out);
    void (*product)(const onxi_byte_rows *p, uint64_t first, uint64_t last); /* computes tiles first .. last - 1 */
    /* Extends the range *least .. *most to include all elements; NaN is ignored. */
    void (*range)(const float *x, uint64_t n, float *least, float *most);
    /* Quantizes n floats and pads with zeros to a multiple of four bytes; returns the sum of the bytes. */
    int32_t (*quantize)(const float *x, uint64_t n, float scale, int32_t zero, uint8_t *out);
} onxi_byte_rows_ops;
extern const onxi_byte_rows_ops onxi_byte_rows_base, onxi_byte_rows_v3, onxi_byte_rows_v4, onxi_byte_rows_vnni;

#endif
