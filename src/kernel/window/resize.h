/* resize.h - where Resize and Upsample read: a table per axis, made while preparing where all numbers are
 * constants, else by every run. */
#ifndef ONXI_KERNEL_RESIZE_H
#define ONXI_KERNEL_RESIZE_H

#include "kernel/core/move.h"

/* Index o of the output along an axis is made from count[o] neighbours of the input, from start[o] on, each with its
 * weight; from nothing when it is extrapolated. */
typedef struct onxi_taps {
    uint32_t axis;
    int64_t in, out;
    int64_t *start, *count;
    double *weight; /* `most` for each o; NULL: nearest, which takes one neighbour as it is */
    int64_t most;
} onxi_taps;

typedef struct onxi_taps_list {
    uint32_t count; /* axes that are resized, in the order in which they should be */
    bool nearest;
    double extrapolation;
    onxi_taps axis[ONX_RANK_MAX];
} onxi_taps_list;

/* Does everything that the tables depend on have data? */
bool onxi_taps_known(const onx_prepare *p);
onx_status onxi_taps_make(const onxi_move_call *call, onx_arena *arena, onxi_taps_list *out);

#endif
