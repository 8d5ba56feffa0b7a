/* masks.h - windows of a line that end where a mask is 0, for each level of the architecture (kernel/simd/masks.c). */
#ifndef ONXI_KERNEL_CORE_MASKS_H
#define ONXI_KERNEL_CORE_MASKS_H

#include "kernel/kernel.h"

typedef struct onxi_mask_loops {
    /* The windows of `size` elements that begin at each of the `length` > 0 elements of x, and end before the first
     * element whose mask is 0, except, if `first_counts`, the very first one. merged[i] becomes the maximum of itself
     * and of window i; NaN does not count. */
    void (*windows)(const float *x, const int32_t *mask, bool first_counts, int64_t length, int64_t size,
                    float *merged);
} onxi_mask_loops;
extern const onxi_mask_loops onxi_mask_loops_base, onxi_mask_loops_v3, onxi_mask_loops_v4;

/* Those of the widest vectors there are, which all give the same bits. */
static inline const onxi_mask_loops *onxi_mask_loops_best(void)
{
    return ONXI_BEST_LEVEL(onxi_mask_loops);
}

#endif
