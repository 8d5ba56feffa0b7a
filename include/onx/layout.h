/* layout.h - where the boxes of a graph go so that people can read it: in layers from top to bottom, boxes inside
 * boxes. Knows nothing of ONNX. See docs/notes/layout.md. */
#ifndef ONX_LAYOUT_H
#define ONX_LAYOUT_H

#include <onx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No box, no edge. */
#define ONX_LAYOUT_NONE UINT32_MAX
/* Width and height of a box, and gaps, are at most this. */
#define ONX_LAYOUT_SIDE_MAX 65536u

/* A box. All lengths are in one unit of the caller's choice, pixels say; y grows downwards. */
typedef struct onx_layout_node {
    uint32_t width, height; /* while it is closed; 1 to ONX_LAYOUT_SIDE_MAX */
    uint32_t parent;        /* the box that it is in, which has a smaller index; ONX_LAYOUT_NONE: in none */
    bool open;              /* it shows what is in it, and is as large as that needs */
} onx_layout_node;

/* An arrow. One between boxes of different parents is drawn between the boxes around them that are side by side;
 * one from a box to itself, or to a box inside of it, is not drawn. */
typedef struct onx_layout_edge {
    uint32_t from, to; /* indices of nodes */
} onx_layout_edge;

typedef struct onx_layout_options {
    uint32_t struct_size;  /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t gap_x, gap_y; /* between neighbours of a layer, and between layers; 0: 24 and 40 */
    uint32_t padding;      /* around what is in an open box; 0: 16 */
    uint32_t header;       /* height of the title of an open box, above what is in it; 0: 24 */
    uint32_t sweeps;       /* how often all layers are sorted for few crossings, at most 64; 0: 12 */
} onx_layout_options;

typedef struct onx_layout_box {
    int64_t x, y;                      /* upper left corner, from that of the area that it is in */
    int64_t width, height;             /* as it is drawn */
    int64_t inner_width, inner_height; /* of the area in it, open or not; 0: nothing is in it. In an open box the
                                        * area begins `padding` from the left and `header` + `padding` from the top */
    uint32_t layer;                    /* among the boxes that it is connected with; 0 is the top one */
} onx_layout_box;

enum {
    ONX_LAYOUT_BACK = 1, /* part of a cycle: it goes up */
    ONX_LAYOUT_FAR = 2,  /* goes past so many layers that no way was looked for: two points, whatever is between */
    ONX_LAYOUT_LOOP = 4  /* not drawn: it begins and ends at one box */
};

typedef struct onx_layout_point {
    int64_t x, y;
} onx_layout_point;

/* The way of an edge: from the lower side of a box to the upper side of one below; y never decreases (ONX_LAYOUT_BACK:
 * never increases). Edges at one box share a way as long as they go together: `trunk` is the edge that has that part,
 * and this way then begins where it branches off (of ONX_LAYOUT_BACK: ends there); ONX_LAYOUT_NONE: the whole way is
 * here. */
typedef struct onx_layout_route {
    const onx_layout_point *point; /* in the area of `parent` */
    uint32_t point_count;          /* 0: not drawn */
    uint32_t parent;               /* ONX_LAYOUT_NONE: outside of all boxes */
    uint32_t trunk;
    uint32_t flags; /* ONX_LAYOUT_BACK ... */
} onx_layout_route;

typedef struct onx_placement onx_placement;

/* Boxes of one area never overlap, and what is connected goes downwards but for cycles. Time and memory are linear in
 * nodes and edges but for sorting, whatever the graph; equal input gives equal output on every machine. Boxes inside
 * boxes as deep as the context's limit allows, else ONX_E_LIMIT. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_layout_new(onx_ctx *cx, const onx_layout_node *nodes, uint32_t node_count,
                                                 const onx_layout_edge *edges, uint32_t edge_count,
                                                 const onx_layout_options *options, onx_placement **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_layout_free(onx_placement *layout);
/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_layout_box *onx_layout_box_at(const onx_placement *layout, uint32_t node);
/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_layout_route *onx_layout_route_at(const onx_placement *layout, uint32_t edge);
/* Width and height of all of it. */
ONX_API ONX_ANY_THREAD onx_layout_point onx_layout_size(const onx_placement *layout);
/* How much work it was: visits of a box, an edge, or a layer that an edge passes. For tests of what time it takes. */
ONX_API ONX_ANY_THREAD uint64_t onx_layout_steps(const onx_placement *layout);

#ifdef __cplusplus
}
#endif
#endif
