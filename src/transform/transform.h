/* transform.h - what the passes share: names that nothing else has, function bodies put in place of calls, and what is
 * known of values while nodes are replaced. See docs/notes/transform.md. */
#ifndef ONXI_TRANSFORM_H
#define ONXI_TRANSFORM_H

#include <onx/infer.h>
#include <onx/tensor.h>
#include <onx/transform.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

/* ---- names (transform_names.c) ---- */

/* The names of all values and nodes of a model, subgraphs and functions included; one that is made is like none of
 * them. They are collected when the first one is asked for. */
typedef struct onxi_names {
    onx_arena *scratch; /* of the table */
    onx_arena *arena;   /* of the names that are made */
    onx_model *model;
    onxi_dict taken; /* value: the next number to try after this text */
    bool open;
} onxi_names;

/* base + "_" + part, with a number after it where that is taken. Empty, recorded, when out of memory. */
onx_status onxi_names_make(onxi_names *names, onx_str base, onx_str part, onx_bytes *out);
/* The names of another message are taken as well. */
onx_status onxi_names_take(onxi_names *names, onx_kind kind, void *message);
/* Calls `visit` for each place in the message that holds the name of a value, and `visit_node` for those of nodes;
 * NULL: they are skipped. Values that bindings of training information are about count. */
onx_status onxi_each_name(onx_ctx *cx, onx_kind kind, void *message, onx_status (*visit)(void *user, onx_bytes *name),
                          onx_status (*visit_node)(void *user, onx_bytes *name), void *user);
/* Does the node name values in its attributes, which it is about without reading them (Gradient)? */
bool onxi_node_names_values(const onx_node *node);
/* Calls `visit` for each place in the attributes of such a node; others have none. */
onx_status onxi_node_each_named(const onx_node *node, onx_status (*visit)(void *user, onx_bytes *name), void *user);
/* The same for all nodes of a message. */
onx_status onxi_each_named(onx_ctx *cx, onx_kind kind, void *message, onx_status (*visit)(void *user, onx_bytes *name),
                           void *user);
/* Calls `visit` for each place that holds the name of a value or node in a graph and its subgraphs, the captured ones
 * included. */
onx_status onxi_graph_each_name(onx_ctx *cx, onx_graph *graph, onx_status (*visit)(void *user, onx_bytes *name),
                                void *user);

/* ---- function bodies in place of calls (transform_expand.c) ---- */

typedef struct onxi_expansion {
    onx_arena *arena;   /* of what is made */
    onx_arena *scratch; /* of tables */
    onxi_names *names;
    const onx_function *function;
    const onx_bytes *inputs, *outputs; /* of the call */
    uint32_t input_count, output_count;
    onx_str base; /* what the body makes is named after it */
    /* The value of a parameter, wanted as that type (onx_attribute_type, UNDEFINED: any); NULL: what refers to it is
     * left out. */
    const onx_attribute *(*argument)(void *user, onx_str name, int32_t type);
    void *user;
    /* A node of the body whose first input the call omits is left out, and what it makes is omitted, too. */
    bool omit;
    /* How many more nodes may be made, subgraphs included; a node with many operands counts as several. NULL: any
     * number. */
    uint64_t *left;
    onx_node **nodes; /* out: those of the body, in their order; NULL: left out */
} onxi_expansion;

/* The body of `function` for that call, to be completed with `argument` and what follows. */
onxi_expansion onxi_expansion_of(onxi_names *names, const onx_function *function, const onx_node *call, onx_str base);
/* Makes x->nodes, function->node_count of them. ONX_E_INVALID: the body refers to what is not there. ONX_E_LIMIT: more
 * nodes than are left. */
onx_status onxi_expand(onxi_expansion *x);

/* ---- what is known of values (transform_values.c) ---- */

/* The graphs and functions that enclose a node, innermost first. */
typedef struct onxi_scope {
    const struct onxi_scope *parent;
    const onx_graph *graph; /* NULL: the body of a function */
    onx_node *const *nodes;
    uint32_t node_count;
    onxi_dict *constants; /* made when something is asked for; indexes of onxi_values.constant */
    uint32_t from;
} onxi_scope;

typedef struct onxi_constant { /* an initializer, or the attribute of a node Constant */
    const onx_tensor *tensor;
    const onx_attribute *attribute;
    bool is_input; /* the caller may give another value */
} onxi_constant;

typedef struct onxi_values {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *scratch;
    onx_infer *infer;
    bool inferred; /* it was tried */
    /* Other than ONX_OK once something was not found because memory was short or a limit was met. Callers continue as
     * if nothing were known, so a pass looks here before it keeps what it made. */
    onx_status status;
    onxi_dict made; /* values that a pass has made: indexes of made_types and made_constant */
    const onx_type **made_types;
    onxi_constant *made_constants;
    uint32_t made_type_room, made_constant_room;
    onxi_dict **tables; /* of the scopes */
    onxi_constant *constant;
    uint32_t constant_count, constant_room;
} onxi_values;

/* ---- declared types (transform_types.c) ---- */

/* Takes the shapes away that are declared of values inside of the graph, and in its subgraphs. What is written is new,
 * in the arena. */
onx_status onxi_types_forget(onx_ctx *cx, onx_arena *arena, onx_graph *graph);
/* Gives such values the shapes that are inferred, as far as they are known. `graph` is that of the document. */
onx_status onxi_types_recall(onx_doc *doc, onx_arena *arena, onx_graph *graph);

onx_status onxi_values_open(onxi_values *values, onx_doc *doc, onx_arena *scratch);
void onxi_values_close(onxi_values *values);
/* NULL when nothing is known. The model is inferred when the first type is asked for. */
const onx_type *onxi_values_type(onxi_values *values, const onxi_scope *scope, onx_str name);
/* NULL when it is no constant. */
const onxi_constant *onxi_values_constant(onxi_values *values, onxi_scope *scope, onx_str name);
/* Notes what a value is that the pass has made. */
onx_status onxi_values_note(onxi_values *values, onx_str name, const onx_type *type, const onxi_constant *constant);
/* The element type of a tensor, or of the tensors of a sequence or optional; ONX_UNDEFINED when not known. */
int onxi_type_dtype(const onx_type *type);
/* The element types that a set has for values of the kind of `type`, one bit each. */
uint32_t onxi_element_types(const onxi_type_set *set, const onx_type *type);
/* The rank of a tensor, -1 when not known. */
int onxi_type_rank(const onx_type *type);
/* A size that is a number, -1 for others. */
int64_t onxi_type_dim(const onx_type *type, uint32_t axis);
/* The constant as an attribute of that type, NULL when it cannot be one. At most 4096 elements but for tensors. */
const onx_attribute *onxi_constant_attribute(onxi_values *values, onx_arena *arena, const onxi_constant *constant,
                                             int32_t type);

/* ---- lists of nodes, and attributes, that are made (transform_list.c) ---- */

typedef struct onxi_node_list {
    onx_node **items;
    uint32_t count, room;
} onxi_node_list;

onx_status onxi_node_list_add(onx_arena *scratch, onxi_node_list *list, onx_node *node);
onx_status onxi_node_list_add_all(onx_arena *scratch, onxi_node_list *list, onx_node *const *nodes, uint32_t count);
/* A graph or function gets what is on the list as its nodes, in the arena of the document. */
onx_status onxi_node_list_keep(onx_arena *arena, const onxi_node_list *list, onx_node ***nodes, uint32_t *count);

onx_attribute *onxi_attribute_new(onx_arena *arena, const char *name, onx_attribute_type type);
/* A copy of `from` under another name; what it holds is shared. */
onx_attribute *onxi_attribute_named(onx_arena *arena, const onx_attribute *from, onx_bytes name);

/* ---- from pass to pass ---- */

/* The domains that onx_retarget knows the versions of. */
#define ONXI_RETARGET_DOMAINS 2
extern const char *const onxi_versioned_domains[ONXI_RETARGET_DOMAINS]; /* "" */
/* Function bodies in place of the operators that have one, as schema and domain of `wanted` say (ONXI_EVERY_DOMAIN: all
 * but the standard's); the versions of the operator sets stay. */
#define ONXI_EVERY_DOMAIN "*"
onx_status onxi_retarget_bodies(onx_ctx *cx, onx_doc *doc, const onx_inline_options *wanted);
/* To that version of the default domain, where the model is of an older one. */
onx_status onxi_retarget_at_least(onx_ctx *cx, onx_doc *doc, int64_t opset);

#endif
