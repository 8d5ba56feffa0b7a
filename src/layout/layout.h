/* layout.h - what the steps of a layout share: one connected part of one area, from edges to places. */
#ifndef ONXI_LAYOUT_H
#define ONXI_LAYOUT_H

#include "base/base.h"

#include <onx/layout.h>

/* The boxes of one connected part are numbers from 0 on, `vertices` are these, followed by the places where edges
 * pass a layer. All arrays live in `arena`, which is emptied between parts. */
typedef struct onxi_drawn {
    onx_arena *arena;
    uint64_t steps;
    uint32_t gap_x, gap_y, sweeps;

    uint32_t node_count, edge_count, vertex_count, layer_count;
    uint32_t *from, *to; /* of edges; onxi_drawn_layers reverses those of cycles */
    bool *back;          /* ... which is marked here */
    int64_t *width, *height;
    uint32_t *layer; /* of vertices */

    /* The way of an edge: the vertex one layer above its end (`from` itself for short ones); ONX_LAYOUT_NONE: far. */
    uint32_t *last;
    uint32_t *chain;       /* of nodes: their first passing vertex; the others follow it one by one */
    uint32_t *chain_count; /* of nodes */
    uint32_t *trunk;       /* of nodes: the edge that has the whole chain */

    /* Links between vertices of neighbouring layers, and the same as lists per vertex: links down[down_at[v]] and so
     * on. */
    uint32_t link_count;
    uint32_t *upper, *lower;
    uint32_t *down_at, *down, *up_at, *up;

    /* Vertices of layer i from left to right: order[order_at[i]] ..; position is the index in its layer. */
    uint32_t *order_at, *order, *position;

    int64_t *x;       /* middle of each vertex */
    int64_t *layer_y; /* middle of each layer */
    int64_t *layer_height;
    int64_t total_width, total_height;
} onxi_drawn;

/* Edges that go up are reversed, every node gets a layer, long edges get vertices in the layers that they pass. */
onx_status onxi_drawn_layers(onxi_drawn *p);
/* Links and the order in each layer, with few crossings. */
onx_status onxi_drawn_order(onxi_drawn *p);
/* Coordinates. */
onx_status onxi_drawn_place(onxi_drawn *p);

/* Lists per node: at[v] .. at[v + 1] are the indices i with key[i] == v, in ascending order; `at` has count + 1. */
onx_status onxi_drawn_lists(onxi_drawn *p, const uint32_t *key, uint32_t key_count, uint32_t count, uint32_t **at,
                            uint32_t **list);

/* An array in the arena of the part that has at least one element, so that it has an address. */
#define ONXI_DRAWN_ARRAY(p, type, count) ONXI_ARRAY((p)->arena, type, (size_t)(count) + 1)

#endif
