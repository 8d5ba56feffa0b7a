/* run_build.h - how a graph is resolved (run_graph.c): scopes of names, and what replaces nodes on the way, such as a
 * Loop by its turns (run_unroll.c) and the tensor that SequenceAt takes by the one that was inserted (run_list.c). */
#ifndef ONXI_RUN_BUILD_H
#define ONXI_RUN_BUILD_H

#include "run/run.h"

enum { ONXI_RUN_RECENT = 4, ONXI_RUN_UNROLLED = 1 << 14 /* nodes that take the place of others, in a session */ };

/* Resolves a name at a node: names of this graph (or function body) first, then those of the enclosing graph. */
typedef struct onxi_run_builder {
    onxi_run_session *session;
    onxi_run_graph *g;
    struct onxi_run_builder
        *outer; /* the graph that this subgraph is in; NULL for the main graph and in function bodies
                 */
    /* The scope whose names hold here as well, where a subgraph was moved into the graph that it was in; NULL: none. */
    struct onxi_run_builder *around;
    onxi_run_op *holder; /* the op of `outer` that holds this graph */
    const onxi_run_frame *frame;
    onxi_binder *binder;              /* resolves names of the current graph or body */
    onxi_dict names;                  /* slots by name */
    uint32_t recent[ONXI_RUN_RECENT]; /* ring of the entries of `names` added last: most inputs are among them */
    uint32_t made;
    onx_arena *arena; /* scratch */
    onxi_map *lists;  /* of the graph: the tensors of a sequence (run_list.c), by the slot of the sequence */
    uint32_t depth;
} onxi_run_builder;

/* The slot of a name; ONXI_NO_SLOT: there is none. */
onx_status onxi_run_build_use(onxi_run_builder *b, onx_str name, uint32_t *out);
/* A new slot of that name. */
onx_status onxi_run_build_define(onxi_run_builder *b, onx_str name, uint32_t *out);
/* A name for a slot that exists. */
onx_status onxi_run_build_name(onxi_run_builder *b, onx_str name, uint32_t slot);
onx_status onxi_run_build_node(onxi_run_builder *b, const onx_node *node, uint32_t index);
/* Makes the node's results constants if its inputs are constants; else adds it to the graph. */
onx_status onxi_run_build_add(onxi_run_builder *b, const onxi_run_op *op);

/* Replaces an If with a constant condition by its branch, and a Loop that takes a few turns by these turns. The inputs
 * of the op are bound, its outputs are not defined. *done is false where the op has to stay. */
onx_status onxi_run_build_unroll(onxi_run_builder *b, const onxi_run_op *op, bool *done);
/* The same for an op that reads a sequence whose tensors are known: by what it reads. */
onx_status onxi_run_build_read_list(onxi_run_builder *b, const onxi_run_op *op, bool *done);
/* Notes the tensors of the sequence that an op makes; its outputs are defined. */
onx_status onxi_run_build_note_list(onxi_run_builder *b, const onxi_run_op *op);

#endif
