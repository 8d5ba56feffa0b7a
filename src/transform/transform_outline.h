/* transform_outline.h - the interface between finding repeated sequences of nodes and turning them into functions. */
#ifndef ONXI_TRANSFORM_OUTLINE_H
#define ONXI_TRANSFORM_OUTLINE_H

#include "transform/transform_part.h"

/* A sequence of nodes that occurs at several places with the same length. */
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
    /* The nodes that can be moved to a function, in order, without constants. */
    uint32_t *sequence, *symbol; /* indexes of nodes; equal for equivalent nodes */
    uint32_t length;
    bool *used;      /* per position: it is in a function already */
    uint32_t *place; /* per node: its position, ONXI_NO_PLACE for constants */
    onxi_secret secret;
    double *narrow;   /* per position: the amount of data that crosses the cut before it */
    bool *visible;    /* per name: read outside of the main graph's nodes */
    onx_node **call;  /* per node: its replacement; initially the node itself, NULL: removed */
    onxi_dict taken;  /* names of functions in the domain */
    onxi_names names; /* of nodes */
    uint32_t made;    /* number of functions */
    uint64_t left;    /* remaining steps for comparing sequences, so that the total time is linear */
} onxi_outliner;

#define ONXI_NO_PLACE UINT32_MAX

/* Creates a function from the equivalent places of the repeat, if there are enough. */
onx_status onxi_outline_repeat(onxi_outliner *o, const onxi_repeat *repeat);

#endif
