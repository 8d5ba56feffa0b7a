/* transform_grad.h - the interface between the pass that differentiates graphs, the table of gradient rules, and their
 * conditions. See docs/notes/gradients.md. */
#ifndef ONXI_TRANSFORM_GRAD_H
#define ONXI_TRANSFORM_GRAD_H

#include "transform/transform_retarget.h"

/* The version of the default domain in which rules are written; models of older versions are converted to it first. The
 * rules have the same meaning in all later versions (test_transform_grad verifies it). */
enum { ONXI_GRAD_OPSET = 18 };

typedef struct onxi_grad {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    onx_arena *arena, *scratch; /* of the document; for temporary data */
    onxi_names names;
    onxi_values values;
    onxi_binder binder;
    onxi_dict texts; /* of rules: indexes of functions */
    const onx_function **functions;
    uint32_t function_room, depth, limit;
    onxi_dict fresh;    /* values created since types were inferred */
    uint64_t left;      /* remaining steps (onxi_grad_spend) */
    uint16_t *first;    /* 1 + index of the first rule of an operator; 0: none */
    int32_t checkpoint; /* as in onx_grad_options */
} onxi_grad;

/* A metadata property of the model: "sqrt" or a number, the value of onx_grad_options.checkpoint for its Gradient
 * nodes. */
#define ONXI_GRAD_PROPERTY "onx.checkpoint"

/* A list of nodes to which gradient nodes are added. */
typedef struct onxi_grad_out {
    onxi_node_list nodes;
    onxi_dict aliases; /* outputs of Identity nodes: indexes of `same` */
    onx_bytes *same;
    uint32_t same_room;
    onxi_dict constants; /* "11:[]:0.5": indexes of constant_names */
    onx_bytes *constant_names;
    uint32_t constant_room;
    onxi_dict made; /* constants by name: indexes of constant_attributes */
    const onx_attribute **constant_attributes;
    uint32_t made_room;
} onxi_grad_out;

/* A node to differentiate, or a node in the text of a rule that is itself a rule. */
typedef struct onxi_grad_node {
    onxi_subject s;
    onxi_grad *g;
    onxi_grad_out *out;
    const onx_bytes *dy; /* per output of the node: the gradient with respect to it; empty: none */
    uint32_t dy_count;
    onx_bytes *dx; /* per input: the name for its gradient; empty: not needed, or no gradient flows to it */
    /* For operators with subgraphs: the captured values, and, to be set, their gradients. */
    const onx_bytes *captured;
    onx_bytes *captured_dx;
    uint32_t captured_count;
    onx_str head;             /* for a text that a rule has generated */
    const onx_bytes *lowered; /* names for the outputs, if nodes compute them in place of the node */
} onxi_grad_node;

typedef enum onxi_grad_kind {
    ONXI_GRAD_PART,  /* nodes that compute gradients of inputs */
    ONXI_GRAD_LOWER, /* nodes that are equivalent to the operator, and are differentiated in its place */
    ONXI_GRAD_MACRO, /* a node `grad.<name>` in texts */
    ONXI_GRAD_AGAIN, /* nodes that recompute output 0 from the other outputs */
    ONXI_GRAD_CODE,  /* a function creates the nodes: operators with subgraphs */
    ONXI_GRAD_STOP,  /* the derivative is zero, or the function is not real-valued: gradients end here */
    ONXI_GRAD_NONE   /* no rule; `text` tells why */
} onxi_grad_kind;

typedef struct onxi_grad_rule {
    uint16_t op; /* an onxi_op_id; NONE: a macro */
    uint8_t kind;
    const char *head; /* "X W => Y", or the name and ports of a macro; NULL: the names of the row in effect */
    bool (*when)(onxi_grad_node *n);                       /* NULL: always */
    const char *text;                                      /* nodes */
    onx_status (*write)(onxi_grad_node *n, onx_str *text); /* instead of `text`; also sets n->head */
    onx_status (*make)(onxi_grad_node *n);                 /* CODE; LOWER */
} onxi_grad_rule;

/* Rows of one operator are consecutive; the table ends with kind NONE and op 0. */
extern const onxi_grad_rule onxi_grad_rules[];
extern const uint32_t onxi_grad_rule_count;
const onxi_grad_rule *onxi_grad_rule_of(const onxi_grad *g, onxi_op_id op);

/* Conditions (transform_grad_when.c, transform_grad_windows.c), generated texts of rules (transform_grad_text.c), and
 * functions (transform_grad_control.c). */
#define GRAD_WHEN(name)  bool onxi_grad_when_##name(onxi_grad_node *n);
#define GRAD_WRITE(name) onx_status onxi_grad_write_##name(onxi_grad_node *n, onx_str *text);
#define GRAD_MAKE(name)  onx_status onxi_grad_make_##name(onxi_grad_node *n);
#include "transform/transform_grad_names.def"

/* For conditions (transform_grad_when.c): does an attribute have this value? Attributes for the text; an existing one
 * is kept. */
bool onxi_grad_int_is(onxi_grad_node *n, const char *name, int64_t value);
bool onxi_grad_set_ints(onxi_grad_node *n, const char *name, const int64_t *values, uint32_t count);
bool onxi_grad_set_range(onxi_grad_node *n, const char *name, int64_t from, uint32_t count);
const onx_tensor_shape *onxi_grad_shape_of(const onx_type *type);
const onx_type *onxi_grad_output_type(onxi_grad_node *n, uint32_t output); /* NULL: unknown */

/* A growing text (transform_grad_text.c). */
typedef struct onxi_grad_writer {
    onx_arena *arena;
    char *text;
    uint32_t room, size;
    bool failed; /* out of memory */
} onxi_grad_writer;
void onxi_grad_say(onxi_grad_writer *w, const char *format, ...) ONX_PRINTF(2, 3);
/* Appends a text in which ~ stands for one name, and # for another. */
void onxi_grad_say_for(onxi_grad_writer *w, const char *one, const char *other, const char *text);

/* ---- creating nodes (transform_grad_emit.c) ---- */

/* Adds the nodes of the applicable rules to n->out. made[i]: they compute the gradient of input i. */
onx_status onxi_grad_apply(onxi_grad_node *n, const onxi_grad_rule *rule, bool *made);
/* The same for nodes that are equivalent to the operator: `nodes` receives them. */
onx_status onxi_grad_lower(onxi_grad_node *n, const onxi_grad_rule *rule, onxi_node_list *nodes);
/* Adds the nodes of a text, a function body over `inputs` => `outputs` (its own names, separated by spaces). */
onx_status onxi_grad_put(onxi_grad_node *n, const char *inputs, const char *outputs, const char *text,
                         const onx_bytes *in, uint32_t in_count, const onx_bytes *out, uint32_t out_count);
/* Higher-order gradients grow with each round: ONX_E_LIMIT if a model takes more steps than onxi_grad_limit. A step is
 * a node that is created, copied or inferred again. */
enum { ONXI_GRAD_STEPS_MAX = 250000, ONXI_GRAD_STEPS_PER_NODE = 20 };
static inline uint64_t onxi_grad_limit(const onx_model *model)
{
    return ONXI_GRAD_STEPS_MAX + ONXI_GRAD_STEPS_PER_NODE * (uint64_t)(model->graph ? model->graph->node_count : 0);
}
onx_status onxi_grad_spend(onxi_grad *g, uint64_t steps);
/* A copy of a node with its subgraphs. */
onx_status onxi_grad_copy(onxi_grad *g, const onx_node *node, onx_node **out);
/* Adds a node unchanged. */
onx_status onxi_grad_push(onxi_grad *g, onxi_grad_out *out, onx_node *node);
onx_bytes onxi_grad_resolve(const onxi_grad_out *out, onx_bytes name);
onx_status onxi_grad_out_open(onxi_grad *g, onxi_grad_out *out);
/* A unique name that begins with `base`. */
onx_status onxi_grad_name(onxi_grad *g, onx_bytes base, const char *part, onx_bytes *name);
/* A node of the default domain with these operands. */
onx_node *onxi_grad_node_new(onxi_grad *g, const char *op, const onx_bytes *in, uint32_t in_count, const onx_bytes *out,
                             uint32_t out_count);
/* The same, added to `out`. */
onx_status onxi_grad_add(onxi_grad *g, onxi_grad_out *out, const char *op, onx_bytes from, onx_bytes to);
/* Removes the nodes of a list that are not needed, directly or indirectly, for any of the names. */
onx_status onxi_grad_prune(onxi_grad *g, onx_node **nodes, uint32_t *count, const onx_bytes *needed,
                           uint32_t needed_count);

/* ---- differentiating a graph (transform_grad_walk.c) ---- */

typedef struct onxi_grad_task {
    onxi_scope *scope;
    onx_node **nodes; /* of the graph; nodes may get further outputs that a rule needs */
    uint32_t count;
    const onx_bytes *ys, *dys; /* the differentiated values, and the gradients with respect to them; empty: none */
    uint32_t y_count;
    const onx_bytes *xs;
    onx_bytes *dxs; /* out: empty if no y depends on it */
    uint32_t x_count;
} onxi_grad_task;

/* Adds nodes to `out` that compute the gradients of xs from the gradients of ys. */
onx_status onxi_grad_walk(onxi_grad *g, const onxi_grad_task *task, onxi_grad_out *out);
/* The nodes of a list that ys need, back to xs, in order. Visiting one costs less than a step. */
onx_status onxi_grad_needed(onxi_grad *g, onx_node *const *nodes, uint32_t count, const onx_bytes *ys, uint32_t y_count,
                            const onx_bytes *xs, uint32_t x_count, onxi_node_list *out);
/* Replaces operators whose only rule is an equivalent subgraph by that, in a graph and its subgraphs, between xs and
 * ys. Sets *changed. */
onx_status onxi_grad_lower_graph(onxi_grad *g, onxi_scope *scope, onx_graph *graph, const onx_bytes *ys,
                                 uint32_t y_count, const onx_bytes *xs, uint32_t x_count, bool *changed);
/* Is the element type differentiable? An unknown type counts as such. */
bool onxi_grad_is_real(onxi_grad *g, const onxi_scope *scope, onx_str name);
/* The names that the subgraphs of a node capture. */
onx_status onxi_grad_captured(onxi_grad *g, const onx_node *node, onxi_dict *names);
onx_status onxi_grad_fail(onxi_grad *g, const onx_node *node, const char *format, ...) ONX_PRINTF(3, 4);

/* ---- copies of nodes that recompute values (transform_grad_again.c) ---- */

typedef struct onxi_grad_again {
    onxi_grad *g;
    onxi_dict to; /* names: indexes of names */
    onx_bytes *names;
    uint32_t room;
} onxi_grad_again;
onx_status onxi_grad_again_set(onxi_grad_again *a, onx_str name, onx_bytes to);
/* Replaces a name by that of the copy; also used with onxi_graph_each_name. */
onx_status onxi_grad_again_rename(void *again, onx_bytes *name);
/* A copy that reads the copied values, and whose outputs get new names. */
onx_status onxi_grad_again_node(onxi_grad_again *a, const onx_node *from, onx_node **out);
/* Replaces the inputs of a node, and the names in its subgraphs, by those of the copies. */
onx_status onxi_grad_again_inputs(onxi_grad_again *a, onx_node *node);
/* Is the result of a node random? (transform_grad_control.c) */
bool onxi_grad_draws(onxi_grad *g, const onx_node *node);

/* ---- values that are kept for the backward pass ---- */

/* Does the node only return the shape of its input, or of each tensor in it? */
bool onxi_grad_is_about_shape(const onx_node *node);
/* Nodes of `back` that only compute shapes are moved to directly after the producer of the value, in either list, and
 * out of subgraphs, so that the value itself need not be kept (transform_grad_shapes.c). */
onx_status onxi_grad_shapes_early(onxi_grad *g, onxi_node_list *forward, onxi_node_list *back);
/* Values of a task that `back` reads are recomputed, segment by segment, except those that cross segment borders
 * (transform_grad_segments.c). The types of the values that `back` computes are known. */
onx_status onxi_grad_checkpoint(onxi_grad *g, const onxi_grad_task *task, onxi_node_list *back);

/* Initialises everything except the document; types are inferred on demand. `checkpoint` is that of
 * onx_grad_options. */
onx_status onxi_grad_open(onxi_grad *g, onx_ctx *cx, onx_doc *doc, onx_arena *scratch, int32_t checkpoint);
/* Converts older models to the version of the rules, and replaces function calls by the bodies. */
onx_status onxi_grad_bring_up(onx_ctx *cx, onx_doc *doc, onx_arena *scratch);
/* The status, or ONX_E_MEMORY if a query failed for lack of memory. */
onx_status onxi_grad_close(onxi_grad *g, onx_status status);
/* Discards the inferred types if one of the values, or an output of one of the nodes, was created after inference. */
onx_status onxi_grad_refresh(onxi_grad *g, const onx_bytes *values, uint32_t count, const onxi_node_list *nodes);
/* Records that the outputs of the node were created. */
onx_status onxi_grad_note(onxi_grad *g, const onx_node *node);

#endif
