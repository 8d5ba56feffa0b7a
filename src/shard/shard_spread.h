/* shard_spread.h - what the files share that decide how a model is to be spread, before annotations say so: which
 * dimension of a node is split in which way, and which stage it belongs to. */
#ifndef ONXI_SHARD_SPREAD_H
#define ONXI_SHARD_SPREAD_H

#include "shard/shard.h"

typedef enum onxi_shard_way {
    ONXI_SHARD_DATA,   /* parts of the batch */
    ONXI_SHARD_TENSOR, /* parts of the weights */
    ONXI_SHARD_WAYS
} onxi_shard_way;

typedef struct onxi_shard_use {
    uint32_t node, operand;
} onxi_shard_use;

typedef struct onxi_spread {
    onxi_shard_plan *plan; /* read, without placements */
    const onx_shard_annotate_options *options;
    uint32_t stages, parts[ONXI_SHARD_WAYS];
    int8_t *dim[ONXI_SHARD_WAYS];  /* per node: the dimension that is split, -1: none */
    int8_t *axis[ONXI_SHARD_WAYS]; /* per value: the axis that is split, -1: none */
    uint32_t *stage;               /* per node */
    uint32_t *first;               /* per value: its uses are use[first[v]] .. use[first[v + 1] - 1] */
    onxi_shard_use *use;
    bool *output, *captured; /* per value: of the graph, by a subgraph */
    bool *tied;              /* per node: it belongs to the same stage as the node before it */
    uint64_t steps;          /* that looking for regions may take, all together */
} onxi_spread;

/* Gives the inputs of a model sizes in place of symbols: those that are fixed, `batch` (0 as 1) for the first axis of
 * inputs, 1 for others. */
onx_status onxi_spread_fix(onx_doc *doc, onx_arena *arena, const onx_infer_fixed *fixed, uint32_t fixed_count,
                           uint32_t batch);
/* Weights get axes by which they can be split, as far as operators take them so; `weights`: they are to be split, so
 * what lies one after the other is made apart (shard_unfold.c). */
onx_status onxi_spread_unfold(onx_ctx *cx, onx_doc *doc, bool weights, onx_arena *arena);
/* Makes the tables. */
onx_status onxi_spread_open(onxi_spread *s);
/* Splits inputs along their first axis, and what follows from them, as far as that goes. ONX_E_UNSUPPORTED where there
 * is nothing to split. */
onx_status onxi_spread_batch(onxi_spread *s);
/* Splits weights: regions of nodes that begin with columns of products and end with rows, embeddings by rows, columns
 * alone elsewhere. ONX_E_UNSUPPORTED where there is nothing to split. */
onx_status onxi_spread_weights(onxi_spread *s);
/* Cuts the order of nodes into stages of equal work. ONX_E_UNSUPPORTED where there are not that many. */
onx_status onxi_spread_stages(onxi_spread *s);
/* Reports to the caller what is done, about a node. */
void onxi_spread_tell(const onxi_spread *s, const char *rule, uint32_t node, const char *format, ...) ONX_PRINTF(4, 5);

#endif
