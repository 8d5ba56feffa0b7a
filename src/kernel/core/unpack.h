/* unpack.h - numbers of a few bits as floats, for each level of the architecture (kernel/simd/unpack.c). */
#ifndef ONXI_KERNEL_CORE_UNPACK_H
#define ONXI_KERNEL_CORE_UNPACK_H

#include "kernel/kernel.h"

typedef struct onxi_unpack_loops {
    /* `n` numbers of 4 bits, two in a byte, from a whole byte on, by a table of 16 floats; `high`: the upper bits come
     * first. */
    void (*look_up)(const uint8_t *bytes, uint64_t n, bool high, const float *table, float *out);
    /* (x - zero) * scale of bytes, or of numbers of 4 bits, the lower ones first, that count from `raised` once their
     * bits are exchanged by it: 8 for two's complement, 0. */
    void (*bytes)(const uint8_t *x, uint64_t n, float zero, float scale, float *out);
    void (*nibbles)(const uint8_t *x, uint64_t n, int raised, float zero, float scale, float *out);
    /* x = (x - zeros[of]) * scales[of], where `of` says for each number of which block it is. */
    void (*scale)(float *x, uint64_t n, const int32_t *of, const float *zeros, const float *scales);
} onxi_unpack_loops;
extern const onxi_unpack_loops onxi_unpack_loops_base, onxi_unpack_loops_v3, onxi_unpack_loops_v4;

/* Those of the widest vectors there are, which all give the same bits. */
static inline const onxi_unpack_loops *onxi_unpack_loops_best(void)
{
    return ONXI_BEST_LEVEL(onxi_unpack_loops);
}

#endif
