/* topk.h - shared by the kernel rows of TopK. */
#ifndef ONXI_KERNEL_TOPK_H
#define ONXI_KERNEL_TOPK_H

#include "kernel/kernel.h"

/* Writes the indices of the first k elements of a contiguous line, in order, to `indices`. False: too many elements are
 * equal. Kernels use the function for lines of at least ONXI_TOPK_LINE elements and for k up to ONXI_TOPK_FEW. */
typedef bool (*onxi_topk_few)(int dtype, const void *line, uint64_t length, uint64_t k, bool largest,
                              uint64_t *indices);
typedef struct onxi_topk_body {
    onxi_topk_few few;
} onxi_topk_body;
enum { ONXI_TOPK_LINE = 256, ONXI_TOPK_FEW = 64 };

onx_status onxi_topk_prepare(onx_prepare *p);
onx_status onxi_topk_run(onx_work *work, uint64_t first, uint64_t last);

#endif
