/* einsum.h - Einsum; vectorized rows provide their own loop for products of floats. */
#ifndef ONXI_KERNEL_EINSUM_H
#define ONXI_KERNEL_EINSUM_H

#include "kernel/kernel.h"

/* c = a * b of dense row-major floats; `pack` is workspace as for onxi_gemm_run. */
typedef void (*onxi_einsum_product)(const onxi_gemm *g, void *pack);

/* The body of the row is a pointer to such a function; NULL: onxi_gemm_run. */
onx_status onxi_einsum_prepare(onx_prepare *p);
/* Whether it only permutes the axes of one operand. Axis d of the result is then axis perm[d] of the operand. */
onx_status onxi_einsum_permutation(onx_prepare *p, bool *is_one, int64_t *perm);
onx_status onxi_einsum_run(onx_work *work, uint64_t first, uint64_t last);

#endif
