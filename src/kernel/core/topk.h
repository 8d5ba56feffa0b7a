/* topk.h - what the rows of TopK share. */
#ifndef ONXI_KERNEL_TOPK_H
#define ONXI_KERNEL_TOPK_H

#include "kernel/kernel.h"

/* Finds the first k of a line of contiguous elements, in order, and writes their indices to `indices`. False: too many
 * are equal. A row with this body takes lines of at most this length, for at most this k. */
typedef bool (*onxi_topk_few)(int dtype, const void *line, uint64_t length, uint64_t k, bool largest,
                              uint64_t *indices);
typedef struct onxi_topk_body {
    onxi_topk_few few;
} onxi_topk_body;
enum { ONXI_TOPK_LINE = 256, ONXI_TOPK_FEW = 64 };

onx_status onxi_topk_prepare(onx_prepare *p);
onx_status onxi_topk_run(onx_work *work, uint64_t first, uint64_t last);

#endif
