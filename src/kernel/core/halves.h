/* halves.h - float16 and bfloat16 as floats and back, for each level of the architecture (kernel/simd/halves.c). */
#ifndef ONXI_KERNEL_CORE_HALVES_H
#define ONXI_KERNEL_CORE_HALVES_H

#include "kernel/kernel.h"

/* `n` numbers of ONX_FLOAT16 or ONX_BFLOAT16 as floats, where a NaN that signals may become one that does not; and
 * back, rounded to the nearest, ties to even. */
typedef struct onxi_half_loops {
    void (*widen)(int dtype, const uint16_t *x, float *y, uint64_t n);
    void (*narrow)(int dtype, const float *x, uint16_t *y, uint64_t n);
} onxi_half_loops;
extern const onxi_half_loops onxi_half_loops_base, onxi_half_loops_v3, onxi_half_loops_v4;

/* Those of the widest vectors there are, which all give the same bits; NULL where modules have no room for them. */
static inline const onxi_half_loops *onxi_half_loops_best(void)
{
#if ONXI_PLATFORM_ROOMY
    return ONXI_BEST_LEVEL(onxi_half_loops);
#else
    return NULL;
#endif
}

#endif
