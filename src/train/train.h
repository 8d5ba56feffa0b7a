/* train.h - between the trainer and what puts its steps together with those of others. */
#ifndef ONXI_TRAIN_H
#define ONXI_TRAIN_H

#include <onx/kernel.h>
#include <onx/train.h>

#include "base/base.h"

#define ONXI_TRAIN_DOMAIN "onx.train"

/* The graph of a step gets nodes that pass on what is reduced: the gradients after each node Gradient, and at the end
 * the outputs that depend on inputs in another way. These outputs get other names: `outputs` are indexes of `names`.
 * `own` are the names of variables. */
typedef struct onxi_train_reduced {
    onxi_dict outputs;
    onx_str *names;
    uint32_t room;
} onxi_train_reduced;
onx_status onxi_train_reduce_graph(onx_ctx *cx, onx_arena *arena, onx_graph *graph, const onxi_dict *own,
                                   onxi_train_reduced *out);
/* The row that runs these nodes; the reduction outlives it. */
onx_kernel onxi_train_reduce_kernel(const onx_train_reduction *reduction);

/* ---- ranks (train_ranks.c) ---- */

typedef struct onxi_train_ranks {
    onx_ctx *cx;
    onx_comm comm;
    uint64_t timeout_ns;
    double weight;
    void *buffer;
    uint64_t size; /* of it, in bytes */
} onxi_train_ranks;
/* The reduction over ranks: means by their weights. `user` is the ranks. */
onx_status onxi_train_ranks_reduce(void *user, onx_ctx *cx, onx_value *const *values, uint32_t count);
/* All take the value of rank 0. */
onx_status onxi_train_ranks_share(onxi_train_ranks *ranks, onx_value *value);
void onxi_train_ranks_close(onxi_train_ranks *ranks);

#endif
