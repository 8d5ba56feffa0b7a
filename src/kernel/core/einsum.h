/* einsum.h - Einsum, whose products of floats fast rows have loops of their own for. */
#ifndef ONXI_KERNEL_EINSUM_H
#define ONXI_KERNEL_EINSUM_H

#include "kernel/kernel.h"

/* c = a * b of dense row-major floats; `pack` is room as onxi_gemm_run has it. */
typedef void (*onxi_einsum_product)(const onxi_gemm *g, void *pack);

/* The row's body is a pointer to such a function; NULL: onxi_gemm_run. */
onx_status onxi_einsum_prepare(onx_prepare *p);
/* Does it only change the order of the axes of one operand? Axis d of the result is axis perm[d] then. */
onx_status onxi_einsum_permutation(onx_prepare *p, bool *is_one, int64_t *perm);
onx_status onxi_einsum_run(onx_work *work, uint64_t first, uint64_t last);

#endif
