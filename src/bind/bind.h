/* bind.h - resolves nodes: the versions that a model or function imports, and the operator or function that a node
 * names. Used by checker, inference and runner. docs/notes/bind.md
 * names. Checker, inference and runner take it from here. docs/notes/bind.md */
#ifndef ONXI_BIND_H
#define ONXI_BIND_H

#include "base/base.h"
#include "ir/ir.h"
#include "op/op.h"

/* ---- imports (bind_imports.c) ---- */

/* A domain in an opset_import list. If several entries name the same domain, the highest version counts (rule O-07); ""
 * and "ai.onnx" are the same domain (O-06). */
typedef struct onxi_import {
    onx_str domain; /* "" for ai.onnx */
    int64_t version;
    uint32_t first, best; /* indexes into the list: the first entry of the domain, and the entry with this version; both
                           * ONXI_IMPORT_IMPLIED for the implicit import of IR versions below 3 */
} onxi_import;
#define ONXI_IMPORT_IMPLIED UINT32_MAX
#define ONXI_UNBOUND        UINT32_MAX

typedef struct onxi_imports {
    onxi_import *items;
    uint32_t count;
    onxi_dict by_domain; /* indexes of items */
} onxi_imports;

/* Opens the imports of a model or function. `legacy`: the model has an IR version below 3, so version 1 of the default
 * domain is imported unless the list says otherwise (O-02). Functions import only what they list (F-05). */
onx_status onxi_imports_open(onxi_imports *imports, onx_arena *arena, onx_operator_set_id *const *list, uint32_t count,
                             bool legacy);
bool onxi_model_is_legacy(const onx_model *model);
/* The index into items, in constant time; ONXI_UNBOUND if the domain is not imported. */
uint32_t onxi_imports_find(const onxi_imports *imports, onx_str domain);
/* The version of a domain, -1 when it is not imported. */
int64_t onxi_imports_version(const onxi_imports *imports, onx_str domain);
/* The newest known IR version. */
#define ONXI_IR_VERSION 14
/* The IR version that was current when a version of a standard operator set was released, 0 if unknown. */
int64_t onxi_import_ir_version(onx_str domain, int64_t version);

/* ---- limit on the size of a model after inlining ---- */

/* The maximum number of nodes: a constant, plus a number per node of the main graph. */
#define ONXI_CALLS_MAX      1000000
#define ONXI_CALLS_PER_NODE 20
static inline uint64_t onxi_calls_limit(const onx_model *model)
{
    return ONXI_CALLS_MAX + ONXI_CALLS_PER_NODE * (uint64_t)(model->graph ? model->graph->node_count : 0);
}

/* ---- nodes (bind_node.c) ---- */

typedef enum onxi_bound_kind {
    ONXI_BOUND_NOTHING,  /* no operator or function of that name is known */
    ONXI_BOUND_OPERATOR, /* an operator of the registry: `schema` */
    ONXI_BOUND_FUNCTION  /* a function of the model: `function`; it overrides an operator of that name (ND-05) */
} onxi_bound_kind;

/* The meaning of (domain, op_type, overload) under a list of imports. */
typedef struct onxi_bound {
    onx_str domain, name, overload; /* domain "" for ai.onnx */
    onxi_bound_kind kind;
    onxi_op_id op;             /* set for built-in operators */
    uint32_t import;           /* index into imports.items; ONXI_UNBOUND: the domain is not imported */
    int64_t opset;             /* the imported version, -1: none */
    bool implied;              /* the domain is not imported; it is taken to have version 1 */
    bool reported;             /* see onxi_bound_report */
    const onxi_schema *schema; /* the row in effect; also set if a function overrides it */
    const onx_function *function;
    uint32_t function_index;   /* in the list of the model */
    onxi_attr_value *defaults; /* values for a node without attributes, in the order of the row's attributes */
    uint32_t attr_count, required;
    void *more; /* data of the owner of the binder */
} onxi_bound;

/* Do the same inputs give the same outputs, as far as the operator's row says (true without a row)? The standard leaves
 * this open where a function body depends on the call; none of these bodies draws random numbers. */
static inline bool onxi_bound_repeats(const onxi_bound *bound)
{
    const onxi_schema *row = bound->schema;
    return !row || (!(row->flags & ONXI_OP_NONDETERMINISTIC) &&
                    (!(row->flags & ONXI_OP_DETERMINISM_UNKNOWN) || row->context_function_opsets[0]));
}

/* The parameters of a function, by name; those without a default come first. */
typedef struct onxi_parameters {
    const onx_function *function;
    onxi_dict by_name;             /* indexes of presets */
    const onx_attribute **presets; /* per parameter: its default or NULL */
    uint32_t count;
} onxi_parameters;

enum { ONXI_BIND_RECENT = 32 };

/* Resolves the nodes of a model's graphs or of one function body; every name is resolved only once. */
typedef struct onxi_binder {
    onx_arena *arena;
    const onx_registry *registry;    /* NULL: the context's, set by the open function */
    const onxi_functions *functions; /* of the model; NULL: none */
    onxi_imports imports;
    onxi_parameters parameters; /* of the function that the body belongs to */
    onxi_bound **bound;         /* in order of first occurrence */
    uint32_t count, room;
    onxi_table table;                     /* of bound */
    onxi_bound *recent[ONXI_BIND_RECENT]; /* a small cache of names in the default domain */
} onxi_binder;

/* Opens a binder; the caller has filled in all members except `imports` (see onxi_imports_open). */
onx_status onxi_binder_open(onxi_binder *binder, onx_operator_set_id *const *list, uint32_t count, bool legacy);
/* The same for the graphs of a model. */
onx_status onxi_binder_open_model(onxi_binder *binder, const onx_model *model);
/* The same for the body of a function, with its parameters. */
onx_status onxi_binder_open_body(onxi_binder *binder, const onx_function *function);
/* Amortized constant time; NULL when out of memory. A registered domain other than those of the standard that is not
 * imported has version 1, as in other runtimes: writers of com.microsoft forget it. */
onxi_bound *onxi_bind(onxi_binder *binder, const onx_node *node);
/* Is the domain's missing import to be reported now? Yes once per domain. */
bool onxi_bound_report(onxi_binder *binder, onxi_bound *bound);

/* ---- attributes (bind_attr.c) ---- */

onx_status onxi_parameters_open(onxi_parameters *parameters, onx_arena *arena, const onx_function *function);

/* The argument values of a call; they contain no references themselves. */
typedef struct onxi_arguments {
    const onxi_parameters *parameters;
    const onx_attribute **values; /* per parameter; NULL: attributes that refer to it are omitted (F-18) */
} onxi_arguments;
/* Takes the values from the attributes of the calling node. `outer`: the arguments of the enclosing function, NULL for
 * a graph of the model. */
onx_status onxi_arguments_make(onxi_arguments *arguments, const onxi_parameters *parameters, onx_arena *arena,
                               const onx_attribute *const *list, uint32_t count, const onxi_arguments *outer);
/* The attribute itself, or the attribute that it refers to; NULL if that has no value. */
const onx_attribute *onxi_arguments_resolve(const onxi_arguments *arguments, const onx_attribute *attribute);

/* Why the attributes of a node do not match its operator. */
typedef struct onxi_attr_fault {
    const char *rule; /* "ND-18", as the checker reports it */
    char text[160];
} onxi_attr_fault;

/* The values of a node's attributes. A value field that is missing, as proto3 producers write it, is 0, 0.0 or an empty
 * string or list; of an attribute that is given twice, the first one counts. Without a type, as before IR
 * version 2, the type follows from the value. The values are stored in `room` if that is large enough, otherwise
 * in the arena; a node without attributes gets those of `bound`. ONX_E_INVALID, with *fault set, if a required
 * attribute is missing (ND-18), has the wrong type (ND-19), or lacks a value that cannot be omitted. */
onx_status onxi_bind_attributes(const onxi_bound *bound, const onx_node *node, const onxi_arguments *arguments,
                                onx_arena *arena, onxi_attr_value *room, uint32_t room_count, onxi_attrs *out,
                                onxi_attr_fault *fault);

/* A single attribute as onxi_bind_attributes returns it, for callers that need only one or two attributes of a node
 * that may be invalid. The type is ONX_ATTR_UNDEFINED if the node does not give the attribute and its version has no
 * default, if it is invalid, or if its value is an argument of the enclosing function. `bound` may be NULL: the
 * operator is unknown. */
onxi_attr_value onxi_bind_attribute(const onxi_bound *bound, const onx_node *node, const char *name);
/* The integer value of such an attribute; 0 if there is none. */
int64_t onxi_bind_int(const onxi_bound *bound, const onx_node *node, const char *name);
float onxi_bind_float(const onxi_bound *bound, const onx_node *node, const char *name);
/* The list value; NULL and no elements if it is empty or missing. */
const int64_t *onxi_bind_ints(const onxi_bound *bound, const onx_node *node, const char *name, uint32_t *count);

/* Do two nodes of the same operator version have the same attributes? Those that a node omits differ from those that
 * it gives, even if the default is the same. Used to find nodes that compute the same. */
bool onxi_attrs_equal(const onxi_attrs *a, const onxi_attrs *b);
/* A hash of what onxi_attrs_equal compares, in time linear in its bytes. */
uint64_t onxi_attrs_hash(onxi_secret secret, const onxi_attrs *attrs);

#endif
