/* layout.h - readable layouts of graphs: positions of boxes in layers from top to bottom, with boxes inside boxes.
 * Independent of ONNX. See docs/notes/layout.md. */
#ifndef ONX_LAYOUT_H
#define ONX_LAYOUT_H

#include <onx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No box, no edge. */
#define ONX_LAYOUT_NONE UINT32_MAX
/* Maximum width and height of a box, and maximum gap. */
#define ONX_LAYOUT_SIDE_MAX 65536u

/* A box. All lengths are in one unit that the caller chooses, for example pixels; y grows downwards. */
typedef struct onx_layout_node {
    uint32_t width, height; /* size while the box is closed; 1 to ONX_LAYOUT_SIDE_MAX */
    uint32_t parent;        /* the enclosing box, which has a smaller index; ONX_LAYOUT_NONE: none */
    bool open;              /* the box shows its contents and is as large as they need */
} onx_layout_node;

/* An arrow. An arrow between boxes with different parents is drawn between those of their ancestors that are siblings.
 * An arrow from a box to itself, or to a box inside of it, is not drawn. */
typedef struct onx_layout_edge {
    uint32_t from, to; /* indices of nodes */
} onx_layout_edge;

typedef struct onx_layout_options {
    uint32_t struct_size;  /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t gap_x, gap_y; /* gaps between neighbours in a layer, and between layers; 0: 24 and 40 */
    uint32_t padding;      /* space around the contents of an open box; 0: 16 */
    uint32_t header;       /* height of the title of an open box, above its contents; 0: 24 */
    uint32_t sweeps;       /* how often all layers are sorted to reduce crossings, at most 64; 0: 12 */
} onx_layout_options;

typedef struct onx_layout_box {
    int64_t x, y;                      /* upper left corner, relative to the area that contains the box */
    int64_t width, height;             /* size as drawn */
    int64_t inner_width, inner_height; /* size of the contents, whether the box is open or not; 0: it has none. In an
                                        * open box the area of the contents begins `padding` from the left and
                                        * `header` + `padding` from the top */
    uint32_t layer;                    /* layer among the boxes that it is connected with; 0 is the top one */
} onx_layout_box;

enum {
    ONX_LAYOUT_BACK = 1, /* part of a cycle: the edge goes up */
    ONX_LAYOUT_FAR = 2,  /* spans so many layers that no route was searched: two points, whatever is between them */
    ONX_LAYOUT_LOOP = 4  /* not drawn: it begins and ends at the same box */
};

typedef struct onx_layout_point {
    int64_t x, y;
} onx_layout_point;

/* The route of an edge, from the lower side of a box to the upper side of one below; y never decreases
 * (ONX_LAYOUT_BACK: never increases). Edges of one box share the common part of their routes: `trunk` is the edge that
 * contains that part, and this route begins where it branches off (with ONX_LAYOUT_BACK: ends there). ONX_LAYOUT_NONE:
 * this is the whole route. */
typedef struct onx_layout_route {
    const onx_layout_point *point; /* relative to the area of `parent` */
    uint32_t point_count;          /* 0: not drawn */
    uint32_t parent;               /* ONX_LAYOUT_NONE: outside of all boxes */
    uint32_t trunk;
    uint32_t flags; /* ONX_LAYOUT_BACK ... */
} onx_layout_route;

typedef struct onx_placement onx_placement;

/* Boxes in one area never overlap, and edges go downwards except in cycles. Time and memory are linear in nodes and
 * edges, apart from sorting, for every graph. The same input gives the same output on every machine. Nesting may be as
 * deep as the limit of the context, otherwise ONX_E_LIMIT. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_layout_new(onx_ctx *cx, const onx_layout_node *nodes, uint32_t node_count,
                                                 const onx_layout_edge *edges, uint32_t edge_count,
                                                 const onx_layout_options *options, onx_placement **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_layout_free(onx_placement *layout);
/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_layout_box *onx_layout_box_at(const onx_placement *layout, uint32_t node);
/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_layout_route *onx_layout_route_at(const onx_placement *layout, uint32_t edge);
/* Total width and height. */
ONX_API ONX_ANY_THREAD onx_layout_point onx_layout_size(const onx_placement *layout);
/* Amount of work: visits of a box, an edge, or a layer that an edge passes. For tests of the running time. */
ONX_API ONX_ANY_THREAD uint64_t onx_layout_steps(const onx_placement *layout);

#ifdef __cplusplus
}
#endif
#endif
