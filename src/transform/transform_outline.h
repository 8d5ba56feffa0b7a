/* transform_outline.h - between how repeated runs of nodes are found and how they become functions. */
#ifndef ONXI_TRANSFORM_OUTLINE_H
#define ONXI_TRANSFORM_OUTLINE_H

#include "transform/transform_part.h"

/* A run of nodes in several places, all of the same length. */
typedef struct onxi_repeat {
    const uint32_t *start; /* positions in the sequence, ascending, that do not overlap */
    uint32_t count, length;
} onxi_repeat;

typedef struct onxi_outliner {
    onxi_cutter *c;
    onx_arena *arena; /* of the document */
    onx_model *model;
    const onx_outline_options *options;
    uint32_t min_nodes, min_calls;
    onx_str domain;
    /* The nodes that may go into a function, in their order; constants are not among them. */
    uint32_t *sequence, *symbol; /* indexes of nodes; equal for nodes that do the same */
    uint32_t length;
    bool *used;      /* per position: it is in a function already */
    uint32_t *place; /* per node: its position, ONXI_NO_PLACE for constants */
    onxi_secret secret;
    double *narrow;   /* per position: how much crosses the cut before it */
    bool *visible;    /* per name: read by what is no node of the main graph */
    onx_node **call;  /* per node: what replaces it; the node itself at first, NULL: nothing */
    onxi_dict taken;  /* names of functions in the domain */
    onxi_names names; /* of nodes */
    uint32_t made;    /* functions */
    uint64_t left;    /* steps that looking at runs may still take, so that all of it is linear */
} onxi_outliner;

#define ONXI_NO_PLACE UINT32_MAX

/* Makes a function of the places of the repeat that are the same, if there are enough of them. */
onx_status onxi_outline_repeat(onxi_outliner *o, const onxi_repeat *repeat);

#endif
