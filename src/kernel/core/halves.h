/* halves.h - conversion between 16-bit floats (float16, bfloat16) and float, per ISA level (kernel/simd/halves.c). */
#ifndef ONXI_KERNEL_CORE_HALVES_H
#define ONXI_KERNEL_CORE_HALVES_H

#include "kernel/kernel.h"

/* Both convert `n` elements; `dtype` is ONX_FLOAT16 or ONX_BFLOAT16. `widen` converts to float and may make a signaling
 * NaN quiet; `narrow` converts from float and rounds to nearest, ties to even. */
typedef struct onxi_half_loops {
    void (*widen)(int dtype, const uint16_t *x, float *y, uint64_t n);
    void (*narrow)(int dtype, const float *x, uint16_t *y, uint64_t n);
} onxi_half_loops;
extern const onxi_half_loops onxi_half_loops_base, onxi_half_loops_v3, onxi_half_loops_v4;

/* The loops for the widest vectors of the CPU; all levels give the same bits. NULL in builds that leave them out to
 * save space (wasm). */
static inline const onxi_half_loops *onxi_half_loops_best(void)
{
#if ONXI_PLATFORM_ROOMY
    return ONXI_BEST_LEVEL(onxi_half_loops);
#else
    return NULL;
#endif
}

#endif
