/* halves.c - widens 16-bit floats (float16, bfloat16) for callers outside of the kernels. */
#include "kernel/core/halves.h"

void onxi_halves_widen(int dtype, const void *x, float *y, uint64_t n)
{
    const onxi_half_loops *loops = onxi_half_loops_best();
    if (loops)
        loops->widen(dtype, x, y, n);
    else
        (void)onx_convert(ONX_FLOAT, y, (onx_dtype)dtype, x, n, false);
}
