/* transform_grad_cut.h - cuts the forward pass into segments, of which only the values that cross a border are kept. */
#ifndef ONXI_TRANSFORM_GRAD_CUT_H
#define ONXI_TRANSFORM_GRAD_CUT_H

#include "base/base.h"

typedef struct onxi_grad_cut_value { /* an output of a node in the forward pass */
    uint32_t made, last;             /* the node that computes it, and the last that reads it; `made`: no node computes
                                      * it */
    double size;
    bool needed; /* the backward pass itself reads it */
} onxi_grad_cut_value;

typedef struct onxi_grad_cut_task {
    const onxi_grad_cut_value *values;
    /* Per node: the maximum memory of the backward pass, in addition to values of the forward pass, while this node is
     * the last one whose values it needs. */
    const double *beside;
    uint32_t value_count, node_count;
    uint32_t from; /* earlier nodes are not recomputed */
    uint32_t most; /* maximum number of segments; 0: unlimited */
} onxi_grad_cut_task;

typedef struct onxi_grad_cuts {
    uint32_t *starts; /* first node of each segment; room for one per node */
    uint32_t count;
    double memory; /* peak memory */
} onxi_grad_cuts;

/* When the backward pass reaches a node, its memory consists of the values kept from earlier segments, the recomputed
 * values of the node's segment up to the node, and its additional memory. Finds cuts for which the peak is
 * approximately minimal, in time linear in nodes and values. */
onx_status onxi_grad_cut(onx_arena *scratch, const onxi_grad_cut_task *task, onxi_grad_cuts *cuts);

#endif
