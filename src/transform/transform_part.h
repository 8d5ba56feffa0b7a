/* transform_part.h - extracting a part of a model's main graph as a separate model, for extract, split and merge. */
#ifndef ONXI_TRANSFORM_PART_H
#define ONXI_TRANSFORM_PART_H

#include "transform/transform.h"

/* The main graph of a document with its names resolved, for any number of parts. */
typedef struct onxi_cutter {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *scratch;
    const onx_model *model;
    const onx_graph *graph;
    onx_index *index;
    onxi_values values;
    onxi_dict declared; /* values: indexes of value_info; from value_info.count on, of the outputs */
    uint32_t *first;    /* the first of each node in `reads`, and the end */
    onx_name_id *reads; /* values that nodes read or name in attributes, including their subgraphs */
    bool names_values;  /* a node names values in its attributes */
    onxi_functions functions;
    onxi_binder binder; /* for the model */
    uint32_t *order;    /* of the nodes; NULL: unchanged */
    onxi_cycle cycle;   /* a cycle of nodes */
    bool *constant;     /* per node: its outputs depend on initializers and constants only */
    uint32_t *stack;    /* for nodes */
} onxi_cutter;

onx_status onxi_cutter_open(onxi_cutter *c, onx_doc *doc, onx_arena *scratch);
void onxi_cutter_close(onxi_cutter *c);
/* ONX_E_INVALID, with the cycle, if these nodes contain one; NULL: all nodes. */
onx_status onxi_cutter_refuse_cycle(onxi_cutter *c, const bool *node);
/* Does a node compute it from initializers and constants only? Then every part that needs it contains these nodes. */
bool onxi_cutter_is_constant(const onxi_cutter *c, onx_name_id id);
/* Is the operator deterministic? */
bool onxi_is_repeatable(const onxi_bound *bound);
/* Marks the nodes that compute constants. */
void onxi_cutter_take_constant(onxi_cutter *c, onx_name_id id, bool *node);

typedef struct onxi_part {
    const bool *node; /* per node of the graph: it is in the part */
    const onx_name_id *input, *output;
    uint32_t input_count, output_count;
} onxi_part;

/* A model in the arena with those nodes and all that they need: initializers, functions, declared types. Unchanged
 * messages are shared with the document. */
onx_status onxi_part_make(onxi_cutter *c, onx_arena *arena, const onxi_part *part, onx_model **out);
/* The same as a document, which `doc` must outlive. */
onx_status onxi_part_doc(onxi_cutter *c, const onxi_part *part, onx_doc **out);

/* Marks the nodes that the values in `wanted` need, up to those in `given`; existing marks are kept. An undefined value
 * is ONX_E_INVALID. `given` and `needed` are per name: needed is set to true for each visited value. */
onx_status onxi_cutter_need(onxi_cutter *c, const onx_name_id *wanted, uint32_t count, const bool *given, bool *node,
                            bool *needed);
/* The id of a value of the main graph, ONX_E_NOT_FOUND, with a message, if there is none. */
onx_status onxi_cutter_find(const onxi_cutter *c, onx_str name, onx_name_id *out);

/* Reduces the current model to the part between those values; used by extract, and by merge with inputs and outputs. */
onx_status onxi_extract_between(onxi_cutter *c, onx_arena *arena, const onx_extract_options *options, onx_model **out);

/* Does the text match a pattern with * (any bytes) and ? (one byte)? */
bool onxi_pattern_match(onx_str pattern, onx_str text);
/* Calls `changed`, unless it is NULL. */
void onxi_tell_change(void (*changed)(void *user, const onx_change *change), void *user, const char *pass,
                      const char *rule, onx_str path, const char *format, ...) ONX_PRINTF(6, 7);

#endif
