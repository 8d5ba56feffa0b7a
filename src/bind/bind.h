/* bind.h - what a node means: the versions that a model or function imports, the operator or function that a node
 * names. Checker, inference and runner take it from here. docs/notes/bind.md */
#ifndef ONXI_BIND_H
#define ONXI_BIND_H

#include "base/base.h"
#include "ir/ir.h"
#include "op/op.h"

/* ---- imports (bind_imports.c) ---- */

/* A domain that an opset_import list names. Of several entries for one domain the highest version counts (rule O-07);
 * "" and "ai.onnx" are one domain (O-06). */
typedef struct onxi_import {
    onx_str domain; /* "" for ai.onnx */
    int64_t version;
    uint32_t first, best; /* entries of the list: the first of the domain, the one with this version; both
                           * ONXI_IMPORT_IMPLIED for what IR versions below 3 import without saying so */
} onxi_import;
#define ONXI_IMPORT_IMPLIED UINT32_MAX
#define ONXI_UNBOUND        UINT32_MAX

typedef struct onxi_imports {
    onxi_import *items;
    uint32_t count;
    onxi_dict by_domain; /* indexes of items */
} onxi_imports;

/* The list of a model or a function. `legacy`: of a model with an IR version below 3, which imports version 1 of the
 * default domain unless it says otherwise (O-02). Functions import what they say and nothing else (F-05). */
onx_status onxi_imports_open(onxi_imports *imports, onx_arena *arena, onx_operator_set_id *const *list, uint32_t count,
                             bool legacy);
bool onxi_model_is_legacy(const onx_model *model);
/* Index into items, in constant time; ONXI_UNBOUND: the domain is not imported. */
uint32_t onxi_imports_find(const onxi_imports *imports, onx_str domain);
/* The version of a domain, -1 when it is not imported. */
int64_t onxi_imports_version(const onxi_imports *imports, onx_str domain);
/* The newest IR version that is known. */
#define ONXI_IR_VERSION 14
/* The IR version that came with a version of a standard operator set, 0 where that is not known. */
int64_t onxi_import_ir_version(onx_str domain, int64_t version);

/* ---- how large a model may grow when its functions are put in place of their calls ---- */

/* Most nodes: a constant, and a number for each node of the main graph. */
#define ONXI_CALLS_MAX      1000000
#define ONXI_CALLS_PER_NODE 20
static inline uint64_t onxi_calls_limit(const onx_model *model)
{
    return ONXI_CALLS_MAX + ONXI_CALLS_PER_NODE * (uint64_t)(model->graph ? model->graph->node_count : 0);
}

/* ---- nodes (bind_node.c) ---- */

typedef enum onxi_bound_kind {
    ONXI_BOUND_NOTHING,  /* no operator and no function of that name is known */
    ONXI_BOUND_OPERATOR, /* `schema`: of the registry */
    ONXI_BOUND_FUNCTION  /* `function`: of the model; it takes the place of an operator of that name (ND-05) */
} onxi_bound_kind;

/* What a (domain, op_type, overload) means under a list of imports. */
typedef struct onxi_bound {
    onx_str domain, name, overload; /* domain "" for ai.onnx */
    onxi_bound_kind kind;
    onxi_op_id op;             /* of built-in operators */
    uint32_t import;           /* index into imports.items; ONXI_UNBOUND: the domain is not imported */
    int64_t opset;             /* the imported version, -1: none */
    const onxi_schema *schema; /* the row in force; set as well where a function takes its place */
    const onx_function *function;
    uint32_t function_index;   /* in the list of the model */
    onxi_attr_value *defaults; /* of operators, in the order of the row's attributes: what a node without any has */
    uint32_t attr_count, required;
    void *more; /* what the owner of the binder notes */
} onxi_bound;

/* The parameters of a function, by name; those without default first. */
typedef struct onxi_parameters {
    const onx_function *function;
    onxi_dict by_name;             /* indexes of presets */
    const onx_attribute **presets; /* per parameter: its default or NULL */
    uint32_t count;
} onxi_parameters;

enum { ONXI_BIND_RECENT = 32 };

/* Binds the nodes of one model's graphs or of one function body; every name is resolved once. */
typedef struct onxi_binder {
    onx_arena *arena;
    const onx_registry *registry;    /* NULL: that of the context, until it is opened */
    const onxi_functions *functions; /* of the model; NULL: none */
    onxi_imports imports;
    onxi_parameters parameters; /* of the function whose body it is for */
    onxi_bound **bound;         /* in order of first mention */
    uint32_t count, room;
    onxi_table table;                     /* of bound */
    onxi_bound *recent[ONXI_BIND_RECENT]; /* of the default domain, by a glance at the name */
} onxi_binder;

/* `binder` is filled in but for `imports`, which this opens (see onxi_imports_open). */
onx_status onxi_binder_open(onxi_binder *binder, onx_operator_set_id *const *list, uint32_t count, bool legacy);
/* The same for the graphs of a model. */
onx_status onxi_binder_open_model(onxi_binder *binder, const onx_model *model);
/* The same for the body of a function, with its parameters. */
onx_status onxi_binder_open_body(onxi_binder *binder, const onx_function *function);
/* Amortized constant time; NULL when out of memory. */
onxi_bound *onxi_bind(onxi_binder *binder, const onx_node *node);

/* ---- attributes (bind_attr.c) ---- */

onx_status onxi_parameters_open(onxi_parameters *parameters, onx_arena *arena, const onx_function *function);

/* What a call gives for them: nothing in it refers any further. */
typedef struct onxi_arguments {
    const onxi_parameters *parameters;
    const onx_attribute **values; /* per parameter; NULL: the references to it are dropped (F-18) */
} onxi_arguments;
/* From the attributes of the calling node; `outer`: of the function that this one is in, NULL for a graph of the model.
 */
onx_status onxi_arguments_make(onxi_arguments *arguments, const onxi_parameters *parameters, onx_arena *arena,
                               const onx_attribute *const *list, uint32_t count, const onxi_arguments *outer);
/* The attribute itself, or what its reference refers to: NULL when that is nothing. */
const onx_attribute *onxi_arguments_resolve(const onxi_arguments *arguments, const onx_attribute *attribute);

/* Why the attributes of a node cannot be what its operator asks for. */
typedef struct onxi_attr_fault {
    const char *rule; /* "ND-18", as the checker reports it */
    char text[160];
} onxi_attr_fault;

/* The values of a node's attributes. What is given without its value field, as proto3 producers do, is 0, 0.0, an empty
 * text or list; of an attribute that is given twice the first counts. Without a type, as before IR version 2, it
 * is of the type of its value. The values are written to `room` where that is large enough, else to the arena,
 * and a node without attributes has those of `bound`. ONX_E_INVALID, with the fault: one that is required is missing
 * (ND-18), or has the wrong type (ND-19) or none of the values that cannot be left out. */
onx_status onxi_bind_attributes(const onxi_bound *bound, const onx_node *node, const onxi_arguments *arguments,
                                onx_arena *arena, onxi_attr_value *room, uint32_t room_count, onxi_attrs *out,
                                onxi_attr_fault *fault);

/* One attribute as onxi_bind_attributes gives it, for who looks at one or two of a node and may meet nodes with faults:
 * of type ONX_ATTR_UNDEFINED where the node gives none and its version has no default, or it is at fault, or it is what
 * the caller of the function around gives. `bound` may be NULL: nothing is known of the operator. */
onxi_attr_value onxi_bind_attribute(const onxi_bound *bound, const onx_node *node, const char *name);
/* The number of such an attribute; 0 where there is none. */
int64_t onxi_bind_int(const onxi_bound *bound, const onx_node *node, const char *name);
float onxi_bind_float(const onxi_bound *bound, const onx_node *node, const char *name);
/* The list; NULL and no elements where it is empty, or there is none. */
const int64_t *onxi_bind_ints(const onxi_bound *bound, const onx_node *node, const char *name, uint32_t *count);

#endif
