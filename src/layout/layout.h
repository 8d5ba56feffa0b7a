/* layout.h - shared by the steps of a layout: one connected component of one area, from edges to coordinates. */
#ifndef ONXI_LAYOUT_H
#define ONXI_LAYOUT_H

#include "base/base.h"

#include <onx/layout.h>

/* The boxes of a component are numbered from 0; `vertices` are these, followed by dummy vertices where edges cross a
 * layer. All arrays are in `arena`, which is emptied between components. */
typedef struct onxi_drawn {
    onx_arena *arena;
    uint64_t steps;
    uint32_t gap_x, gap_y, sweeps;

    uint32_t node_count, edge_count, vertex_count, layer_count;
    uint32_t *from, *to; /* ends of edges; onxi_drawn_layers reverses edges that close cycles */
    bool *back;          /* marks the reversed edges */
    int64_t *width, *height;
    uint32_t *layer; /* of vertices */

    /* The path of an edge: the vertex one layer above its end (`from` itself for short edges); ONX_LAYOUT_NONE: it has
     * no dummy vertices. */
    uint32_t *last;
    uint32_t *chain;       /* per node: its first dummy vertex; the others follow it consecutively */
    uint32_t *chain_count; /* of nodes */
    uint32_t *trunk;       /* per node: the edge that has the whole chain */

    /* Links between vertices of adjacent layers, and the same as lists per vertex: links down[down_at[v]] and so on. */
    uint32_t link_count;
    uint32_t *upper, *lower;
    uint32_t *down_at, *down, *up_at, *up;

    /* The vertices of layer i from left to right: order[order_at[i]] ..; `position` is the index in the layer. */
    uint32_t *order_at, *order, *position;

    int64_t *x;       /* centre of each vertex */
    int64_t *layer_y; /* centre of each layer */
    int64_t *layer_height;
    int64_t total_width, total_height;
} onxi_drawn;

/* Reverses edges that go up, assigns a layer to every node, and gives long edges dummy vertices in the layers that they
 * cross. */
onx_status onxi_drawn_layers(onxi_drawn *p);
/* Creates the links, and orders each layer so that few of them cross. */
onx_status onxi_drawn_order(onxi_drawn *p);
/* Assigns coordinates. */
onx_status onxi_drawn_place(onxi_drawn *p);

/* Builds lists per node: at[v] .. at[v + 1] are the indices i with key[i] == v, in ascending order; `at` has count + 1
 * elements. */
onx_status onxi_drawn_lists(onxi_drawn *p, const uint32_t *key, uint32_t key_count, uint32_t count, uint32_t **at,
                            uint32_t **list);

/* An array of at least one element in the arena of the component, so that its address is never NULL. */
#define ONXI_DRAWN_ARRAY(p, type, count) ONXI_ARRAY((p)->arena, type, (size_t)(count) + 1)

#endif
