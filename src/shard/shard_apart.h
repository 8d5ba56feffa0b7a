/* shard_apart.h - shared by the files that change a model before it is annotated: its names, and replacing nodes. */
#ifndef ONXI_SHARD_APART_H
#define ONXI_SHARD_APART_H

#include "shard/shard_rules.h"
#include "shard/shard_spread.h"

typedef struct onxi_apart_node {
    struct onxi_apart_node *next;
    onx_node *node;
} onxi_apart_node;

typedef struct onxi_apart_list {
    onxi_apart_node *first, *last;
} onxi_apart_list;

struct onxi_unfolder {
    onx_ctx *cx;
    onx_doc *doc;
    onx_graph *graph;
    onx_arena *scratch;
    onxi_binder *binder;
    onxi_dict names;   /* number of places that use each name */
    onxi_dict tensors; /* initializers by name */
    /* while packed columns are split */
    onxi_dict reads, makers, gone; /* number of readers; the producing node; removed values */
    onxi_dict ranks;               /* of values with a declared type */
    onxi_apart_list *instead;      /* replacements per node; empty: it stays */
    uint32_t named;
};

/* Adds the node to the replacements of another one, after existing ones. */
onx_status onxi_apart_put(onxi_unfolder *u, uint32_t at, onx_node *node);
onx_status onxi_apart_open(onxi_unfolder *u);
/* Performs the replacements. */
onx_status onxi_apart_close(onxi_unfolder *u);

#endif
