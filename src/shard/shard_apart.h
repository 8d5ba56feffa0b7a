/* shard_apart.h - what the files share that change a model before it is annotated: what is known of its names, and
 * nodes that take the place of others. */
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
    onxi_dict names;   /* how many places have each */
    onxi_dict tensors; /* initializers by name */
    /* while columns are made apart */
    onxi_dict reads, makers, gone; /* how often each is read, which node makes it, what is not there any more */
    onxi_dict ranks;               /* of values whose type is declared */
    onxi_apart_list *instead;      /* per node; empty: it stays */
    uint32_t named;
};

/* The node takes the place of another one, after those that do. */
onx_status onxi_apart_put(onxi_unfolder *u, uint32_t at, onx_node *node);
onx_status onxi_apart_open(onxi_unfolder *u);
/* Nodes take the place of others. */
onx_status onxi_apart_close(onxi_unfolder *u);

#endif
