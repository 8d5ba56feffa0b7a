/* bytes.h - loops over bytes that stand for numbers, for each level of the architecture (kernel/simd/bytes.c). */
#ifndef ONXI_KERNEL_CORE_BYTES_H
#define ONXI_KERNEL_CORE_BYTES_H

#include "kernel/kernel.h"

/* How bytes stand for numbers: (byte - zero) * scale. A byte of either kind is read as an unsigned one, `flip`ped, with
 * a zero point to match. */
typedef struct onxi_byte_meaning {
    float scale;
    int32_t zero;
    uint8_t flip;
} onxi_byte_meaning;

/* `count` results of bytes that are neighbours, or (no step) of one byte for all of them. */
typedef struct onxi_byte_pair {
    const uint8_t *a, *b;
    uint8_t *y;
    uint64_t count;
    bool a_step, b_step, times; /* times: products, else sums */
    onxi_byte_meaning of[3];    /* a, b, the result */
} onxi_byte_pair;

/* y[i] = table[x[i]], eight bytes at a time, which are read and written as one number. */
static inline void onxi_byte_look_up(const uint8_t *restrict table, const uint8_t *restrict x, uint64_t n,
                                     uint8_t *restrict y)
{
    enum { TOGETHER = 8 };
    uint64_t i = 0;
    for (; i + TOGETHER <= n; i += TOGETHER) {
        uint64_t in, out = 0;
        memcpy(&in, x + i, sizeof in);
        for (unsigned k = 0; k < TOGETHER; k++)
            out |= (uint64_t)table[in >> (8 * k) & 255] << (8 * k);
        memcpy(y + i, &out, sizeof out);
    }
    for (; i < n; i++)
        y[i] = table[x[i]];
}

typedef struct onxi_byte_loops {
    void (*pair)(const onxi_byte_pair *t);
    /* y[i]: the greatest of x[k][i]; 0, flipped, where there is no x. */
    void (*greatest)(const uint8_t *const *x, uint64_t count, uint8_t flip, uint64_t n, uint8_t *y);
    /* sums[i] += x[i], flipped */
    void (*total)(const uint8_t *x, uint8_t flip, uint64_t n, uint32_t *sums);
    uint32_t (*sum)(const uint8_t *x, uint8_t flip, uint64_t n);
} onxi_byte_loops;
extern const onxi_byte_loops onxi_byte_loops_base, onxi_byte_loops_v3, onxi_byte_loops_v4;

/* Those of the widest vectors there are. All give the same bits but for halves of a sum. */
static inline const onxi_byte_loops *onxi_byte_loops_best(void)
{
    return ONXI_BEST_LEVEL(onxi_byte_loops);
}

#endif
