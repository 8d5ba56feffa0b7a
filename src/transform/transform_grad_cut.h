/* transform_grad_cut.h - where the forward pass is cut into segments of which only what crosses is kept. */
#ifndef ONXI_TRANSFORM_GRAD_CUT_H
#define ONXI_TRANSFORM_GRAD_CUT_H

#include "base/base.h"

typedef struct onxi_grad_cut_value { /* what a node of the forward pass makes */
    uint32_t made, last;             /* the node that makes it, and the last that reads it; `made`: none does */
    double size;
    bool needed; /* the backward pass itself reads it */
} onxi_grad_cut_value;

typedef struct onxi_grad_cut_task {
    const onxi_grad_cut_value *values;
    /* Per node: what the backward pass has beside values of the forward pass, at most, while this node is the last one
     * of which it needs something. */
    const double *beside;
    uint32_t value_count, node_count;
    uint32_t from; /* nodes before this one are not computed again */
    uint32_t most; /* segments; 0: any number */
} onxi_grad_cut_task;

typedef struct onxi_grad_cuts {
    uint32_t *starts; /* of the segments, the first node of each; room for one per node */
    uint32_t count;
    double memory; /* the most that is there at a time */
} onxi_grad_cuts;

/* The memory of the backward pass when it comes to some node is what was kept of the segments before its own, what that
 * segment has made up to it, and what stands beside that. Finds cuts where the most of this is about as little as can
 * be. Takes time in proportion to nodes and values. */
onx_status onxi_grad_cut(onx_arena *scratch, const onxi_grad_cut_task *task, onxi_grad_cuts *cuts);

#endif
