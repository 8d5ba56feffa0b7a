/* shard_spread.h - shared by the files that decide how a model is distributed, before annotations are written: which
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
    onxi_shard_plan *plan; /* values and nodes without placements */
    const onx_shard_annotate_options *options;
    uint32_t stages, parts[ONXI_SHARD_WAYS];
    int8_t *dim[ONXI_SHARD_WAYS];  /* per node: the split dimension, -1: none */
    int8_t *axis[ONXI_SHARD_WAYS]; /* per value: the split axis, -1: none */
    uint32_t *stage;               /* per node */
    uint32_t *first;               /* per value: its uses are use[first[v]] .. use[first[v + 1] - 1] */
    onxi_shard_use *use;
    bool *output, *captured; /* per value: graph output, captured by a subgraph */
    bool *tied;              /* per node: it has to be in the stage of the previous node */
    uint64_t steps;          /* remaining steps of the search for regions */
} onxi_spread;

/* Replaces symbolic sizes of inputs: by the fixed sizes, by `batch` (0 means 1) for the first axis of inputs, and by 1
 * for others. */
onx_status onxi_spread_fix(onx_doc *doc, onx_arena *arena, const onx_infer_fixed *fixed, uint32_t fixed_count,
                           uint32_t batch);
/* Converts weights to forms with axes that can be split, if their operators accept them; `weights`: weights are to be
 * split, so packed columns are separated as well (shard_unfold.c). */
onx_status onxi_spread_unfold(onx_ctx *cx, onx_doc *doc, bool weights, onx_arena *arena);
/* Builds the tables. */
onx_status onxi_spread_open(onxi_spread *s);
/* Splits inputs along their first axis, and propagates this. ONX_E_UNSUPPORTED if nothing can be split. */
onx_status onxi_spread_batch(onxi_spread *s);
/* Splits weights: regions of nodes that begin with a product split by columns and end with one split by rows,
 * embeddings by rows, and columns only elsewhere. ONX_E_UNSUPPORTED if nothing can be split. */
onx_status onxi_spread_weights(onxi_spread *s);
/* Cuts the list of nodes into stages of equal work. ONX_E_UNSUPPORTED if there are not enough nodes. */
onx_status onxi_spread_stages(onxi_spread *s);
/* Reports a decision about a node to the caller. */
void onxi_spread_tell(const onxi_spread *s, const char *rule, uint32_t node, const char *format, ...) ONX_PRINTF(4, 5);

#endif
