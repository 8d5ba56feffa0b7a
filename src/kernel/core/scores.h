/* scores.h - what searches do with the scores of all tokens, for each level of the architecture (kernel/simd/scores.c).
 */
#ifndef ONXI_KERNEL_CORE_SCORES_H
#define ONXI_KERNEL_CORE_SCORES_H

#include "kernel/kernel.h"

typedef struct onxi_score_loops {
    /* Logarithms of what a softmax makes of n > 0 numbers. */
    void (*log_softmax)(float *x, uint64_t n);
    /* The first of the numbers from `from` on that is above the limit; n: none. */
    uint64_t (*above)(const float *x, uint64_t from, uint64_t n, float limit);
} onxi_score_loops;
extern const onxi_score_loops onxi_score_loops_base, onxi_score_loops_v3, onxi_score_loops_v4;

/* Those of the widest vectors there are. */
static inline const onxi_score_loops *onxi_score_loops_best(void)
{
    return ONXI_BEST_LEVEL(onxi_score_loops);
}

#endif
