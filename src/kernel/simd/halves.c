/* halves.c - conversion of float16 and bfloat16 to float and back, for kernels that compute in float. */
#include "kernel/core/halves.h"
#include "kernel/simd/halves.h"

#ifndef __wasm__ /* browsers use the general conversion in these kernels */

static void widen(int dtype, const uint16_t *x, float *y, uint64_t n)
{
    half_widen(dtype == ONX_FLOAT16 ? HALF_FLOAT16 : HALF_BFLOAT16, x, y, n);
}

static void narrow(int dtype, const float *x, uint16_t *y, uint64_t n)
{
    half_narrow(dtype == ONX_FLOAT16 ? HALF_FLOAT16 : HALF_BFLOAT16, x, y, n);
}

const onxi_half_loops ONXI_LEVELED(onxi_half_loops) = { widen, narrow };
#endif
