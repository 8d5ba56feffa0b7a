/* reorder.c - changes of layout between planes and channel blocks, by squares of as many rows as a vector has lanes
 * that are turned in registers. */
#include "kernel/core/blocked.h"
#include "kernel/simd/simd.h"

#if ONXI_PLATFORM_ROOMY &&                                                                                             \
    ONXI_LANES == 16 /* narrower ones gain nothing over squares of four (kernel/core/blocked.c) */

/* The last square of a line or column begins earlier, and some of its elements are moved once more. */
static uint64_t square_at(uint64_t i, uint64_t count)
{
    return i + ONXI_LANES <= count ? i : count - ONXI_LANES;
}

static bool turn(const float *from, uint64_t lines, uint64_t length, uint64_t in, float *to, uint64_t out)
{
    if (lines < ONXI_LANES || length < ONXI_LANES)
        return false;
    for (uint64_t i = 0; i < length; i += ONXI_LANES)
        for (uint64_t l = 0, at = square_at(i, length); l < lines; l += ONXI_LANES) {
            const uint64_t line = square_at(l, lines);
            vf_turn((const char *)(from + line * in + at), in * sizeof *from, to + at * out + line, out);
        }
    return true;
}

static const onxi_reorder_body body = { turn };
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_reorder)[] = { { .op = "Reorder",
                                                                 .domain = "onx",
                                                                 .since = 1,
                                                                 .dtypes = ONXI_F32 | ONX_DTYPE_BIT(ONX_INT32),
                                                                 .preference = 1,
                                                                 .isa = ONXI_LEVEL,
                                                                 .variant = ONXI_VARIANT,
                                                                 .body = &body,
                                                                 .prepare = onxi_reorder_prepare,
                                                                 .run = onxi_reorder_run },
                                                               { 0 } };
#elif ONXI_PLATFORM_ROOMY
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_reorder)[] = { { 0 } };
#endif
