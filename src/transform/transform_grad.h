/* transform_grad.h - between the walk that derives graphs, the table of gradient rules, and their conditions. See
 * docs/notes/gradients.md. */
#ifndef ONXI_TRANSFORM_GRAD_H
#define ONXI_TRANSFORM_GRAD_H

#include "transform/transform_retarget.h"

/* The version of the default domain that the texts of rules are of; models of older ones are taken there first. What
 * the texts say means the same in all versions since (test_transform_grad proves it). */
enum { ONXI_GRAD_OPSET = 18 };

typedef struct onxi_grad {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    onx_arena *arena, *scratch; /* of the document; of what is needed while it works */
    onxi_names names;
    onxi_values values;
    onxi_binder binder;
    onxi_dict texts; /* of rules: indexes of functions */
    const onx_function **functions;
    uint32_t function_room, depth, limit;
    onxi_dict fresh;    /* values that have come since types were inferred */
    uint64_t left;      /* steps that may still be taken (onxi_grad_spend) */
    uint16_t *first;    /* 1 + index of the first rule of an operator; 0: none */
    int32_t checkpoint; /* as in onx_grad_options */
} onxi_grad;

/* A property of a model: "sqrt" or a number, onx_grad_options.checkpoint for the nodes Gradient of the model. */
#define ONXI_GRAD_PROPERTY "onx.checkpoint"

/* A list of nodes to which derived ones are added. */
typedef struct onxi_grad_out {
    onxi_node_list nodes;
    onxi_dict aliases; /* names that Identity would give: indexes of `same` */
    onx_bytes *same;
    uint32_t same_room;
    onxi_dict constants; /* "11:[]:0.5": indexes of constant_names */
    onx_bytes *constant_names;
    uint32_t constant_room;
    onxi_dict made; /* constants by name: indexes of constant_attributes */
    const onx_attribute **constant_attributes;
    uint32_t made_room;
} onxi_grad_out;

/* One node whose gradient is wanted, or a node of a text that is itself a rule. */
typedef struct onxi_grad_node {
    onxi_subject s;
    onxi_grad *g;
    onxi_grad_out *out;
    const onx_bytes *dy; /* per output that the node had: the gradient that arrives there; empty: none */
    uint32_t dy_count;
    onx_bytes *dx; /* per input: the name for its gradient; empty: not wanted, or nothing arrives that makes it */
    /* Operators with subgraphs: what those capture, and, to be set, the gradients of that. */
    const onx_bytes *captured;
    onx_bytes *captured_dx;
    uint32_t captured_count;
    onx_str head;             /* of a text that a rule has written */
    const onx_bytes *lowered; /* names for the outputs, where nodes do in its place what it does */
} onxi_grad_node;

typedef enum onxi_grad_kind {
    ONXI_GRAD_PART,  /* nodes that make gradients of inputs */
    ONXI_GRAD_LOWER, /* nodes that do what the operator does, to be derived in its place */
    ONXI_GRAD_MACRO, /* a node `grad.<name>` of texts */
    ONXI_GRAD_AGAIN, /* nodes that make output 0 once more from the others */
    ONXI_GRAD_CODE,  /* a function makes the nodes: operators with subgraphs */
    ONXI_GRAD_STOP,  /* derivative zero, or not a function of real numbers: gradients end here */
    ONXI_GRAD_NONE   /* no rule, because of `text` */
} onxi_grad_kind;

typedef struct onxi_grad_rule {
    uint16_t op; /* onxi_op_id; NONE: a macro */
    uint8_t kind;
    const char *head; /* "X W => Y", or the name and ports of a macro; NULL: the names of the row in force */
    bool (*when)(onxi_grad_node *n);                       /* NULL: always */
    const char *text;                                      /* nodes */
    onx_status (*write)(onxi_grad_node *n, onx_str *text); /* instead of `text`, sets n->head as well */
    onx_status (*make)(onxi_grad_node *n);                 /* CODE; LOWER */
} onxi_grad_rule;

/* Those of one operator are consecutive; ends with kind NONE and op 0. */
extern const onxi_grad_rule onxi_grad_rules[];
extern const uint32_t onxi_grad_rule_count;
const onxi_grad_rule *onxi_grad_rule_of(const onxi_grad *g, onxi_op_id op);

/* Conditions (transform_grad_when.c, transform_grad_windows.c) and texts of rules (transform_grad_text.c), functions
 * (transform_grad_control.c). */
#define GRAD_WHEN(name)  bool onxi_grad_when_##name(onxi_grad_node *n);
#define GRAD_WRITE(name) onx_status onxi_grad_write_##name(onxi_grad_node *n, onx_str *text);
#define GRAD_MAKE(name)  onx_status onxi_grad_make_##name(onxi_grad_node *n);
#include "transform/transform_grad_names.def"

/* For conditions (transform_grad_when.c): is an attribute this number? Attributes for the text; one that is there
 * stays. */
bool onxi_grad_int_is(onxi_grad_node *n, const char *name, int64_t value);
bool onxi_grad_set_ints(onxi_grad_node *n, const char *name, const int64_t *values, uint32_t count);
bool onxi_grad_set_range(onxi_grad_node *n, const char *name, int64_t from, uint32_t count);
const onx_tensor_shape *onxi_grad_shape_of(const onx_type *type);
const onx_type *onxi_grad_output_type(onxi_grad_node *n, uint32_t output); /* NULL: not known */

/* A text that grows (transform_grad_text.c). */
typedef struct onxi_grad_writer {
    onx_arena *arena;
    char *text;
    uint32_t room, size;
    bool failed; /* memory was short */
} onxi_grad_writer;
void onxi_grad_say(onxi_grad_writer *w, const char *format, ...) ONX_PRINTF(2, 3);
/* A text in which ~ stands for one name, and # for another. */
void onxi_grad_say_for(onxi_grad_writer *w, const char *one, const char *other, const char *text);

/* ---- making nodes (transform_grad_emit.c) ---- */

/* The nodes of the rules that suit the node are added to n->out. made[i]: whether they make the gradient of input i. */
onx_status onxi_grad_apply(onxi_grad_node *n, const onxi_grad_rule *rule, bool *made);
/* The same for what the operator does: `nodes` gets them. */
onx_status onxi_grad_lower(onxi_grad_node *n, const onxi_grad_rule *rule, onxi_node_list *nodes);
/* Adds the nodes of a text, a function body over `inputs` => `outputs` (names of its own, separated by spaces). */
onx_status onxi_grad_put(onxi_grad_node *n, const char *inputs, const char *outputs, const char *text,
                         const onx_bytes *in, uint32_t in_count, const onx_bytes *out, uint32_t out_count);
/* Gradients of gradients grow with each round: ONX_E_LIMIT when a model takes more steps than onxi_grad_limit. A step
 * is a node that is made, copied or inferred anew. */
enum { ONXI_GRAD_STEPS_MAX = 250000, ONXI_GRAD_STEPS_PER_NODE = 20 };
static inline uint64_t onxi_grad_limit(const onx_model *model)
{
    return ONXI_GRAD_STEPS_MAX + ONXI_GRAD_STEPS_PER_NODE * (uint64_t)(model->graph ? model->graph->node_count : 0);
}
onx_status onxi_grad_spend(onxi_grad *g, uint64_t steps);
/* A copy of a node with its subgraphs. */
onx_status onxi_grad_copy(onxi_grad *g, const onx_node *node, onx_node **out);
/* Adds a node as it is. */
onx_status onxi_grad_push(onxi_grad *g, onxi_grad_out *out, onx_node *node);
onx_bytes onxi_grad_resolve(const onxi_grad_out *out, onx_bytes name);
onx_status onxi_grad_out_open(onxi_grad *g, onxi_grad_out *out);
/* A new name that begins with `base`. */
onx_status onxi_grad_name(onxi_grad *g, onx_bytes base, const char *part, onx_bytes *name);
/* A node of the default domain, with these names. */
onx_node *onxi_grad_node_new(onxi_grad *g, const char *op, const onx_bytes *in, uint32_t in_count, const onx_bytes *out,
                             uint32_t out_count);
/* The same, added to `out`. */
onx_status onxi_grad_add(onxi_grad *g, onxi_grad_out *out, const char *op, onx_bytes from, onx_bytes to);
/* Removes the nodes of a list that none of the names needs; what they need in turn stays. */
onx_status onxi_grad_prune(onxi_grad *g, onx_node **nodes, uint32_t *count, const onx_bytes *needed,
                           uint32_t needed_count);

/* ---- the walk (transform_grad_walk.c) ---- */

typedef struct onxi_grad_task {
    onxi_scope *scope;
    onx_node **nodes; /* of the graph; those that need a further output for a rule get it */
    uint32_t count;
    const onx_bytes *ys, *dys; /* what is derived, and the gradients that arrive there; empty: none */
    uint32_t y_count;
    const onx_bytes *xs;
    onx_bytes *dxs; /* out: empty where no y depends on it */
    uint32_t x_count;
} onxi_grad_task;

/* Adds nodes to `out` that make the gradients of xs, from the gradients of ys. */
onx_status onxi_grad_walk(onxi_grad *g, const onxi_grad_task *task, onxi_grad_out *out);
/* The nodes of a list that ys need, up to xs, in their order. What is looked at costs less than a step each. */
onx_status onxi_grad_needed(onxi_grad *g, onx_node *const *nodes, uint32_t count, const onx_bytes *ys, uint32_t y_count,
                            const onx_bytes *xs, uint32_t x_count, onxi_node_list *out);
/* Puts what operators do in the place of those that have no rule but that, in a graph and its subgraphs, as far as they
 * are between xs and ys. Sets *changed. */
onx_status onxi_grad_lower_graph(onxi_grad *g, onxi_scope *scope, onx_graph *graph, const onx_bytes *ys,
                                 uint32_t y_count, const onx_bytes *xs, uint32_t x_count, bool *changed);
/* Is the element type one that has derivatives? Not known counts as such. */
bool onxi_grad_is_real(onxi_grad *g, const onxi_scope *scope, onx_str name);
/* The names that the subgraphs of a node capture. */
onx_status onxi_grad_captured(onxi_grad *g, const onx_node *node, onxi_dict *names);
onx_status onxi_grad_fail(onxi_grad *g, const onx_node *node, const char *format, ...) ONX_PRINTF(3, 4);

/* ---- nodes once more (transform_grad_again.c) ---- */

typedef struct onxi_grad_again {
    onxi_grad *g;
    onxi_dict to; /* names: indexes of names */
    onx_bytes *names;
    uint32_t room;
} onxi_grad_again;
onx_status onxi_grad_again_set(onxi_grad_again *a, onx_str name, onx_bytes to);
/* Puts the other name in the place of one; for onxi_graph_each_name, too. */
onx_status onxi_grad_again_rename(void *again, onx_bytes *name);
/* A copy that reads the other names, and whose results get some. */
onx_status onxi_grad_again_node(onxi_grad_again *a, const onx_node *from, onx_node **out);
/* The inputs of a node, and what its subgraphs name, get their other names. */
onx_status onxi_grad_again_inputs(onxi_grad_again *a, onx_node *node);
/* Does a node give something else each time? (transform_grad_control.c) */
bool onxi_grad_draws(onxi_grad *g, const onx_node *node);

/* ---- what is kept for the backward pass ---- */

/* Does the node give nothing but the shape of its input, or of each tensor of it? */
bool onxi_grad_is_about_shape(const onx_node *node);
/* Where `back` asks what shape something has, it is asked as soon as that is made: such nodes are moved to where they
 * belong in either list, out of subgraphs too (transform_grad_shapes.c). */
onx_status onxi_grad_shapes_early(onxi_grad *g, onxi_node_list *forward, onxi_node_list *back);
/* What `back` reads of the nodes of a task is computed again, segment by segment, but for what crosses from one to
 * another (transform_grad_segments.c). The types of what `back` makes are known. */
onx_status onxi_grad_checkpoint(onxi_grad *g, const onxi_grad_task *task, onxi_node_list *back);

/* Fills in everything but the document; infers when types are asked for. `checkpoint` is that of onx_grad_options. */
onx_status onxi_grad_open(onxi_grad *g, onx_ctx *cx, onx_doc *doc, onx_arena *scratch, int32_t checkpoint);
/* The texts of rules are of a version, which older models are taken to; functions are put in place of their calls. */
onx_status onxi_grad_bring_up(onx_ctx *cx, onx_doc *doc, onx_arena *scratch);
/* The status, or ONX_E_MEMORY when something was not found for want of memory. */
onx_status onxi_grad_close(onxi_grad *g, onx_status status);
/* Types are looked up anew when one of the values, or what one of the nodes makes, has come since they were. */
onx_status onxi_grad_refresh(onxi_grad *g, const onx_bytes *values, uint32_t count, const onxi_node_list *nodes);
/* What the node makes has come. */
onx_status onxi_grad_note(onxi_grad *g, const onx_node *node);

#endif
