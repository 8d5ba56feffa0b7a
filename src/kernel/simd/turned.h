/* turned.h - short lines, turned in registers: as many as a vector has lanes are processed at once, an element of each
 * line after the other. */
#ifndef ONXI_KERNEL_SIMD_TURNED_H
#define ONXI_KERNEL_SIMD_TURNED_H

#include "kernel/simd/simd.h"

enum { TURNED_MOST = 64 }; /* elements of a line */

/* Processes n lines, at most one per lane, from number `first` on, into results at `y`. It reads a line for each lane,
 * in whole vectors (vf_turn): what is read behind the n lines does not count. */
typedef void turned_run(const void *params, const float *x, uint64_t first, uint64_t n, void *y);

/* Calls `run` for `count` lines of `length` elements, none of which is read behind the last line. */
static inline void turned_lines(turned_run *run, const void *params, const float *x, uint64_t length, uint64_t count,
                                void *y)
{
    float copy[ONXI_LANES * (TURNED_MOST + 1)];
    uint64_t i = 0;
    for (; i + 2 * ONXI_LANES <= count; i += ONXI_LANES) /* there are at least as many elements behind as lines */
        run(params, x + i * length, i, ONXI_LANES, y);
    for (uint64_t n; i < count; i += n) {
        n = count - i < ONXI_LANES ? count - i : ONXI_LANES;
        memcpy(copy, x + i * length, n * length * sizeof *copy);
        memset(copy + n * length, 0, (ONXI_LANES * (length + 1) - n * length) * sizeof *copy);
        run(params, copy, i, n, y);
    }
}

#endif
