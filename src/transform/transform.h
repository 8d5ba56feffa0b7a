/* transform.h - shared by the passes: unique names, expanding function bodies, and properties of values while nodes are
 * replaced. See docs/notes/transform.md. */
#ifndef ONXI_TRANSFORM_H
#define ONXI_TRANSFORM_H

#include <onx/infer.h>
#include <onx/tensor.h>
#include <onx/transform.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

/* ---- declared types that a model does not prove (transform_claims.c) ---- */

typedef struct onxi_claims onxi_claims;

onx_status onxi_claims_new(onx_ctx *cx, onxi_claims **out);
void onxi_claims_free(onxi_claims *c); /* may be NULL */
/* Notes which of its declarations the model does not prove. *sound: strict inference without declarations finds no
 * error in it. */
onx_status onxi_claims_note(onxi_claims *c, onx_doc *doc, bool *sound);
/* Leaves out these declarations, as far as the model (that one, or one made of it) still has them, and the names of
 * sizes, until onxi_claims_show. That follows in any case. */
onx_status onxi_claims_hide(onxi_claims *c, onx_doc *doc);
void onxi_claims_show(onxi_claims *c);

/* ---- checking what a call has made (transform_checked.c) ---- */

typedef struct onxi_checked {
    onx_ctx *cx;
    uint32_t level;      /* of the rules that the model followed before */
    bool on;             /* the result is checked */
    bool claims_told;    /* a warning has said that declared types are wrong */
    onxi_claims *claims; /* of the models before */
} onxi_checked;

/* How many public calls have begun and not ended: 1 in the outermost one (base_ctx.c). */
uint32_t onxi_call_depth(const onx_ctx *cx);
/* Checks the model, unless the call is part of another one; a warning if it is invalid. */
onx_status onxi_checked_begin(onxi_checked *c, onx_ctx *cx, onx_doc *doc);
/* The same for another model that the result is made of. */
onx_status onxi_checked_also(onxi_checked *c, onx_doc *doc);
/* Checks the results (NULL: none) by the rules that the model followed before, if `status` is ONX_OK. An error is
 * ONX_E_UNSUPPORTED, or a warning with `may_fail`. Returns the final status. */
onx_status onxi_checked_end(onxi_checked *c, onx_doc *const *docs, uint32_t count, bool may_fail, onx_status status);
/* The last statement of a public function that changes `doc` by `call`, in place of ONXI_CALL. */
#define ONXI_TRANSFORM(cx, doc, call) ONXI_TRANSFORM_TO(cx, doc, &(doc), 1, false, call)
/* The same for a function whose results are other documents, and for one that may be asked for an invalid result. */
#define ONXI_TRANSFORM_TO(cx, doc, docs, count, may_fail, call)                                                        \
    do {                                                                                                               \
        onxi_checked onxi_checked_;                                                                                    \
        const size_t onxi_errors_ = onxi_call_begin((cx));                                                             \
        onx_status onxi_status_ = onxi_checked_begin(&onxi_checked_, (cx), (doc));                                     \
        if (onxi_status_ == ONX_OK)                                                                                    \
            onxi_status_ = (call);                                                                                     \
        onxi_status_ = onxi_checked_end(&onxi_checked_, (docs), (count), (may_fail), onxi_status_);                    \
        return onxi_tell((cx), onxi_errors_, onxi_status_);                                                            \
    } while (0)

/* ---- the IR version (transform_ir.c) ---- */

/* From this IR version on an initializer of an input is a default that callers may replace; before, every initializer
 * had to be an input, and was a constant. */
enum { ONXI_IR_DEFAULTS = 4 };
/* Raises the IR version of the model to `least`, if it is lower: inputs that were constants are inputs no longer, so
 * that the meaning stays. No pass raises it otherwise. */
onx_status onxi_model_raise_ir(onx_arena *scratch, onx_model *model, int64_t least);
/* Before that version: initializers that are not inputs become inputs of the main graph. */
onx_status onxi_model_complete_inputs(onx_arena *arena, onx_arena *scratch, onx_model *model);

/* ---- names (transform_names.c) ---- */

/* The names of all values and nodes of a model, including subgraphs and functions; generated names differ from all of
 * them. They are collected when the first name is requested. */
typedef struct onxi_names {
    onx_arena *scratch; /* for the table */
    onx_arena *arena;   /* for generated names */
    onx_model *model;
    onxi_dict taken; /* value: the next number to try for this base */
    bool open;
} onxi_names;

/* base + "_" + part, with a number appended if that is taken. Empty, with a diagnostic, when out of memory. */
onx_status onxi_names_make(onxi_names *names, onx_str base, onx_str part, onx_bytes *out);
/* Adds the names of another message. */
onx_status onxi_names_take(onxi_names *names, onx_kind kind, void *message);
/* Calls `visit` for each place in the message that holds the name of a value, and `visit_node` for names of nodes;
 * NULL: they are skipped. Bindings of training information count as names of values. */
onx_status onxi_each_name(onx_ctx *cx, onx_kind kind, void *message, onx_status (*visit)(void *user, onx_bytes *name),
                          onx_status (*visit_node)(void *user, onx_bytes *name), void *user);
/* Do attributes of the node name values that it refers to without reading them (Gradient)? */
bool onxi_node_names_values(const onx_node *node);
/* Calls `visit` for each such name in the attributes of a node; most nodes have none. */
onx_status onxi_node_each_named(const onx_node *node, onx_status (*visit)(void *user, onx_bytes *name), void *user);
/* The same for all nodes of a message. */
onx_status onxi_each_named(onx_ctx *cx, onx_kind kind, void *message, onx_status (*visit)(void *user, onx_bytes *name),
                           void *user);
/* Calls `visit` for each place that holds the name of a value or node in a graph and its subgraphs, including captured
 * values. */
onx_status onxi_graph_each_name(onx_ctx *cx, onx_graph *graph, onx_status (*visit)(void *user, onx_bytes *name),
                                void *user);

/* ---- replacing calls by function bodies (transform_expand.c) ---- */

typedef struct onxi_expansion {
    onx_arena *arena;   /* for results */
    onx_arena *scratch; /* for tables */
    onxi_names *names;
    const onx_function *function;
    const onx_bytes *inputs, *outputs; /* of the call */
    uint32_t input_count, output_count;
    onx_str base; /* inner values of the body are named after it */
    /* The value of a parameter of the given type (onx_attribute_type, UNDEFINED: any); NULL: attributes that refer to
     * it are omitted. */
    const onx_attribute *(*argument)(void *user, onx_str name, int32_t type);
    void *user;
    /* If the call omits the first input of a body node, the node is omitted, and so are its outputs. */
    bool omit;
    /* How many more nodes may be created, including subgraphs; a node with many operands counts as several. NULL:
     * unlimited. */
    uint64_t *left;
    onx_node **nodes; /* out: the body's nodes, in order; NULL: omitted */
} onxi_expansion;

/* Prepares the expansion of `function` for a call; the caller sets `argument` and the members after it. */
onxi_expansion onxi_expansion_of(onxi_names *names, const onx_function *function, const onx_node *call, onx_str base);
/* Creates x->nodes, function->node_count of them. ONX_E_INVALID: the body refers to something undefined. ONX_E_LIMIT:
 * the limit on nodes is exceeded. */
onx_status onxi_expand(onxi_expansion *x);

/* ---- properties of values (transform_values.c) ---- */

/* The graphs and functions around a node, innermost first. */
typedef struct onxi_scope {
    const struct onxi_scope *parent;
    const onx_graph *graph; /* NULL: the body of a function */
    onx_node *const *nodes;
    uint32_t node_count;
    onxi_dict *constants; /* built on demand; indexes of onxi_values.constant */
    uint32_t from;
} onxi_scope;

typedef struct onxi_constant { /* an initializer, or the value of a Constant node */
    const onx_tensor *tensor;
    const onx_attribute *attribute;
    bool is_default; /* of an input, which callers may override; only with onxi_values.takes_defaults */
} onxi_constant;

typedef struct onxi_values {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *scratch;
    onx_infer *infer;
    onx_str same;        /* a name of sizes that the caller vouches for (onxi_facts_new); set before the first query */
    bool takes_defaults; /* the pass warns where it makes the default of an input constant; set likewise */
    bool inferred;       /* inference was attempted */
    /* Not ONX_OK once a query failed because of memory or a limit. Callers continue as if the property were unknown, so
     * a pass checks this before it keeps its result. */
    onx_status status;
    onxi_dict made; /* values that a pass has created: indexes of made_types and made_constant */
    const onx_type **made_types;
    onxi_constant *made_constants;
    uint32_t made_type_room, made_constant_room;
    onxi_dict **tables; /* of the scopes */
    onxi_constant *constant;
    uint32_t constant_count, constant_room;
} onxi_values;

/* ---- declared types (transform_types.c) ---- */

/* Removes the declared shapes of inner values of the graph and its subgraphs. Changed messages are new, in the
 * arena. */
onx_status onxi_types_forget(onx_ctx *cx, onx_arena *arena, onx_graph *graph);
/* Sets the declared shapes of such values to the inferred ones, as far as they are known. `graph` belongs to the
 * document. */
onx_status onxi_types_recall(onx_doc *doc, onx_arena *arena, onx_graph *graph);

onx_status onxi_values_open(onxi_values *values, onx_doc *doc, onx_arena *scratch);
void onxi_values_close(onxi_values *values);
/* The type of a value, NULL if unknown. The model is inferred on the first query. */
const onx_type *onxi_values_type(onxi_values *values, const onxi_scope *scope, onx_str name);
/* NULL if it is not constant, or (without takes_defaults) the default of an input, which callers may override. */
const onxi_constant *onxi_values_constant(onxi_values *values, onxi_scope *scope, onx_str name);
/* Records the properties of a value that the pass has created. */
onx_status onxi_values_note(onxi_values *values, onx_str name, const onx_type *type, const onxi_constant *constant);
/* The element type of a tensor, or of the tensors in a sequence or optional; ONX_UNDEFINED if unknown. */
int onxi_type_dtype(const onx_type *type);
/* The element types that a set allows for values of the kind of `type`, as a bit mask. */
uint32_t onxi_element_types(const onxi_type_set *set, const onx_type *type);
/* The rank of a tensor, -1 if unknown. */
int onxi_type_rank(const onx_type *type);
/* A size that is a number, -1 for others. */
int64_t onxi_type_dim(const onx_type *type, uint32_t axis);
/* The constant as an attribute of that type, NULL if that is not possible. At most 4096 elements, except for
 * tensors. */
const onx_attribute *onxi_constant_attribute(onxi_values *values, onx_arena *arena, const onxi_constant *constant,
                                             int32_t type);

/* ---- creating lists of nodes and attributes (transform_list.c) ---- */

typedef struct onxi_node_list {
    onx_node **items;
    uint32_t count, room;
} onxi_node_list;

onx_status onxi_node_list_add(onx_arena *scratch, onxi_node_list *list, onx_node *node);
onx_status onxi_node_list_add_all(onx_arena *scratch, onxi_node_list *list, onx_node *const *nodes, uint32_t count);
/* Makes the nodes of the list the nodes of a graph or function, in the arena of the document. */
onx_status onxi_node_list_keep(onx_arena *arena, const onxi_node_list *list, onx_node ***nodes, uint32_t *count);

onx_attribute *onxi_attribute_new(onx_arena *arena, const char *name, onx_attribute_type type);
/* A copy of `from` under another name; its contents are shared. */
onx_attribute *onxi_attribute_named(onx_arena *arena, const onx_attribute *from, onx_bytes name);

/* ---- passes that other passes use ---- */

/* The domains whose versions onx_retarget converts. */
#define ONXI_RETARGET_DOMAINS 2
extern const char *const onxi_versioned_domains[ONXI_RETARGET_DOMAINS]; /* "" */
/* Replaces operators that have function bodies by these, as `schema` and `domain` of `wanted` select
 * (ONXI_EVERY_DOMAIN: all domains except the standard's); operator-set versions do not change. */
#define ONXI_EVERY_DOMAIN "*"
onx_status onxi_retarget_bodies(onx_ctx *cx, onx_doc *doc, const onx_inline_options *wanted);
/* Converts a model of an older version of the default domain to this version. */
onx_status onxi_retarget_at_least(onx_ctx *cx, onx_doc *doc, int64_t opset);
/* Adds functions to those of the model: the bodies that operator-set documents give the operators that nodes name, and
 * those that these name. `newest` is the newest version of the default domain that an added one imports; 0: none. */
onx_status onxi_adopt_functions(onx_ctx *cx, onx_doc *doc, onx_arena *scratch, int64_t *newest);

#endif
