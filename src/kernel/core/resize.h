/* resize.h - the input positions that Resize and Upsample read: a table per axis, made while preparing if all inputs
 * are constant, otherwise in every run. */
#ifndef ONXI_KERNEL_RESIZE_H
#define ONXI_KERNEL_RESIZE_H

#include "kernel/core/move.h"

/* For an axis where each output has at most two neighbours: their indices and weights. A single neighbour appears
 * twice, with half of its weight. */
typedef struct onxi_taps_pair {
    int32_t *at[2]; /* NULL: there are more, or none */
    float *weight[2];
} onxi_taps_pair;

/* Index o of the output along an axis is the weighted sum of count[o] neighbouring inputs, from start[o] on; count is 0
 * when it is extrapolated. */
typedef struct onxi_taps {
    uint32_t axis;
    int64_t in, out;
    int64_t *start, *count;
    double *weight; /* `most` weights for each o; NULL: nearest, which copies one input */
    int64_t most;
    onxi_taps_pair pair;
} onxi_taps;

typedef struct onxi_taps_list {
    uint32_t count; /* axes that are resized, in the order in which they should be */
    bool nearest;
    double extrapolation;
    onxi_taps axis[ONX_RANK_MAX];
} onxi_taps_list;

/* Loops over floats for outputs with two neighbours. */
typedef struct onxi_resize_loops {
    /* y[i] = wa * a[i] + wb * b[i] */
    void (*line)(const float *a, float wa, const float *b, float wb, float *y, uint64_t count);
    /* y[i] = the pair i of x */
    void (*points)(const onxi_taps_pair *pair, const float *x, float *y, uint64_t count);
#if ONXI_PLATFORM_ROOMY
    /* From and to elements of 16-bit floats, which are computed in float, and integers of up to 32 bits, which are
     * computed in double, rounded to nearest and saturated. NULL: the general conversions. */
    void (*widen)(int dtype, const void *x, uint64_t count, void *out);
    void (*narrow)(int dtype, const void *x, uint64_t count, void *out);
#endif
} onxi_resize_loops;
/* The rows of Resize; the body is an onxi_resize_loops, NULL: the plain ones. */
onx_status onxi_resize_prepare(onx_prepare *p);
onx_status onxi_resize_run(onx_work *work, uint64_t first, uint64_t last);

/* Does everything that the tables depend on have data? */
bool onxi_taps_known(const onx_prepare *p);
onx_status onxi_taps_make(const onxi_move_call *call, onx_arena *arena, onxi_taps_list *out);

#endif
