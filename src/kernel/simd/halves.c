/* halves.c - float16 and bfloat16 as floats and back, for kernels that compute in floats. */
#include "kernel/core/halves.h"
#include "kernel/simd/halves.h"

#ifndef __wasm__ /* browsers run these kernels by the conversions of all types */

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
