/* inverse.h - the inverse of each matrix of a tensor. */
#ifndef ONXI_KERNEL_INVERSE_H
#define ONXI_KERNEL_INVERSE_H

#include "kernel/kernel.h"

/* A kernel with one input and one output, the last two axes of which are matrices; its rows are these. */
onx_status onxi_inverse_prepare(onx_prepare *p);
onx_status onxi_inverse_run(onx_work *work, uint64_t first, uint64_t last);

#endif
