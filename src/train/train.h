/* train.h - the interface between the trainer and the reduction of its steps over ranks. */
#ifndef ONXI_TRAIN_H
#define ONXI_TRAIN_H

#include <onx/kernel.h>
#include <onx/train.h>

#include "base/base.h"

#define ONXI_TRAIN_DOMAIN "onx.train"

/* Adds nodes to the graph of a step that pass the reduced values on: after each node Gradient for its gradients, and at
 * the end for outputs that depend on inputs in other ways. These outputs get new names: `outputs` are indexes into
 * `names`. `own` are the names of the variables. */
typedef struct onxi_train_reduced {
    onxi_dict outputs;
    onx_str *names;
    uint32_t room;
} onxi_train_reduced;
onx_status onxi_train_reduce_graph(onx_ctx *cx, onx_arena *arena, onx_graph *graph, const onxi_dict *own,
                                   onxi_train_reduced *out);
/* The kernel row for these nodes; the reduction must outlive it. */
onx_kernel onxi_train_reduce_kernel(const onx_train_reduction *reduction);

/* ---- ranks (train_ranks.c) ---- */

typedef struct onxi_train_ranks {
    onx_ctx *cx;
    onx_comm comm;
    uint64_t timeout_ns;
    double weight;
    void *buffer;
    uint64_t size; /* in bytes */
} onxi_train_ranks;
/* The reduction over ranks: the weighted mean. `user` is the ranks. */
onx_status onxi_train_ranks_reduce(void *user, onx_ctx *cx, onx_value *const *values, uint32_t count);
/* All ranks get the value of rank 0. */
onx_status onxi_train_ranks_share(onxi_train_ranks *ranks, onx_value *value);
void onxi_train_ranks_close(onxi_train_ranks *ranks);

#endif
