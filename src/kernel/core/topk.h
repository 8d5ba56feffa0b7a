/* topk.h - shared by the kernel rows of TopK. */
#ifndef ONXI_KERNEL_TOPK_H
#define ONXI_KERNEL_TOPK_H

#include "kernel/kernel.h"

/* Writes the indices of the first k elements of a contiguous line, in order, to `indices`. False: too many elements are
 * equal, or the run has to end. Kernels use the function for lines of at least ONXI_TOPK_LINE elements and for k up to
 * ONXI_TOPK_FEW. */
typedef bool (*onxi_topk_few)(int dtype, const void *line, uint64_t length, uint64_t k, bool largest, uint64_t *indices,
                              onxi_pace *pace);
/* Up to ONXI_TOPK_ABREAST adjacent lines: element i of line c is x[i * inner + c]. The length is below 2^32 for types
 * of up to 32 bits, k at most ONXI_TOPK_FEW. */
typedef struct onxi_topk_lines {
    int dtype;
    const void *x;
    uint64_t inner, length, k, count;
    bool largest;
    onxi_pace *pace;
} onxi_topk_lines;
enum { ONXI_TOPK_LINE = 256, ONXI_TOPK_FEW = 64, ONXI_TOPK_ABREAST = 32 };
/* The index of the r-th element of line c in order goes to indices[r * count + c]. `room` has space for
 * 2 * k * ONXI_TOPK_ABREAST integers of 64 bits. Incomplete if the run has to end. */
typedef void (*onxi_topk_abreast)(const onxi_topk_lines *q, void *room, uint64_t *indices);
typedef struct onxi_topk_body {
    onxi_topk_few few;
    onxi_topk_abreast abreast;
} onxi_topk_body;

onx_status onxi_topk_prepare(onx_prepare *p);
onx_status onxi_topk_run(onx_work *work, uint64_t first, uint64_t last);

#endif
