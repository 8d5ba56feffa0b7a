/* inverse.h - the inverse of each matrix of a tensor. */
#ifndef ONXI_KERNEL_INVERSE_H
#define ONXI_KERNEL_INVERSE_H

#include "kernel/kernel.h"

/* The rows of a kernel with one input and one output, whose last two axes are matrices. */
onx_status onxi_inverse_prepare(onx_prepare *p);
onx_status onxi_inverse_run(onx_work *work, uint64_t first, uint64_t last);

#endif
