/* byte_rows.h - a few rows of floats as bytes, each time by their own range, times constant weights of bytes: for each
 * level of the architecture (kernel/simd/rows.c). */
#ifndef ONXI_KERNEL_CORE_BYTE_ROWS_H
#define ONXI_KERNEL_CORE_BYTE_ROWS_H

#include "kernel/kernel.h"

/* Rows of bytes, `pitch` apart, times columns of weights that are packed: out = (the sum of (a - zero) * (w - zeros)) *
 * scale * scales, exact but for that it is a float then. `k` is at most ONXI_BYTE_ROWS_MOST. */
typedef struct onxi_byte_rows {
    const uint8_t *a;
    const int32_t *totals; /* of the bytes of a row */
    uint64_t rows, pitch, k, n;
    const void *packed;
    int32_t zero;
    const int32_t *zeros; /* of columns, 128 less where weights are unsigned */
    float scale;
    const float *scales; /* of columns */
    float *out;          /* rows of n */
} onxi_byte_rows;

enum { ONXI_BYTE_ROWS_MOST = 32768 }; /* as many products have a sum in 32 bits */

typedef struct onxi_byte_rows_ops {
    uint64_t tile; /* columns of one */
    /* Bytes of packed weights, k rows of n; false: too many. */
    bool (*size)(uint64_t k, uint64_t n, uint64_t *out);
    void (*pack)(const uint8_t *w, uint64_t k, uint64_t n, bool is_unsigned, void *out);
    void (*product)(const onxi_byte_rows *p, uint64_t first, uint64_t last); /* of tiles first .. last - 1 */
    /* The least and the greatest of numbers and of what is there; NaN counts for neither. */
    void (*range)(const float *x, uint64_t n, float *least, float *most);
    /* Bytes by scale and zero point, and zeros up to the next multiple of four; returns the sum. */
    int32_t (*quantize)(const float *x, uint64_t n, float scale, int32_t zero, uint8_t *out);
} onxi_byte_rows_ops;
extern const onxi_byte_rows_ops onxi_byte_rows_base, onxi_byte_rows_v3, onxi_byte_rows_v4, onxi_byte_rows_vnni;

#endif
