/* transform_part.h - a part of a model's main graph as a model of its own, for extract, split and merge. */
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
    uint32_t *first;    /* of each node in `reads`, and the end */
    onx_name_id *reads; /* what nodes read and what their attributes name, their subgraphs included */
    bool names_values;  /* some node names values in its attributes */
    onxi_functions functions;
    onxi_binder binder; /* of the model */
    uint32_t *order;    /* of the nodes; NULL: as they are */
    onxi_cycle cycle;   /* of nodes that need one another */
    bool *constant;     /* per node: what it makes follows from initializers and constants alone */
    uint32_t *stack;    /* of nodes */
} onxi_cutter;

onx_status onxi_cutter_open(onxi_cutter *c, onx_doc *doc, onx_arena *scratch);
void onxi_cutter_close(onxi_cutter *c);
/* ONX_E_INVALID with the cycle, where there is one among these nodes; NULL: all. */
onx_status onxi_cutter_refuse_cycle(onxi_cutter *c, const bool *node);
/* Made by a node from initializers and constants alone: every part that needs it has what makes it. */
bool onxi_cutter_is_constant(const onxi_cutter *c, onx_name_id id);
/* Does a node of that operator make the same of the same, each time it runs? */
bool onxi_is_repeatable(const onxi_bound *bound);
/* Marks the nodes that make a constant. */
void onxi_cutter_take_constant(onxi_cutter *c, onx_name_id id, bool *node);

typedef struct onxi_part {
    const bool *node; /* of the graph: which are in it */
    const onx_name_id *input, *output;
    uint32_t input_count, output_count;
} onxi_part;

/* A model in the arena that has those nodes and what they need: initializers, functions, what is declared of their
 * values. What need not change is shared with the document. */
onx_status onxi_part_make(onxi_cutter *c, onx_arena *arena, const onxi_part *part, onx_model **out);
/* The same as a document that `doc` outlives. */
onx_status onxi_part_doc(onxi_cutter *c, const onxi_part *part, onx_doc **out);

/* Marks the nodes that the values in `wanted` need, up to those with `given`; what is marked already stays. A value
 * that nothing makes is ONX_E_INVALID. `given` and `needed` are per name: needed gets true for each value met. */
onx_status onxi_cutter_need(onxi_cutter *c, const onx_name_id *wanted, uint32_t count, const bool *given, bool *node,
                            bool *needed);
/* The number of a value of the main graph, ONX_E_NOT_FOUND with a message where there is none. */
onx_status onxi_cutter_find(const onxi_cutter *c, onx_str name, onx_name_id *out);

/* Keeps of the current model what is between those values: the work of extract and of merge with inputs and outputs. */
onx_status onxi_extract_between(onxi_cutter *c, onx_arena *arena, const onx_extract_options *options, onx_model **out);

/* Does the text match a pattern with * (any bytes) and ? (one byte)? */
bool onxi_pattern_match(onx_str pattern, onx_str text);
/* Calls `changed`, if it is not NULL. */
void onxi_tell_change(void (*changed)(void *user, const onx_change *change), void *user, const char *pass,
                      const char *rule, onx_str path, const char *format, ...) ONX_PRINTF(6, 7);

#endif
