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
    uint32_t function_index; /* in the list of the model */
    void *more;              /* what the owner of the binder notes */
} onxi_bound;

/* Binds the nodes of one model's graphs or of one function body; every name is resolved once. */
typedef struct onxi_binder {
    onx_arena *arena;
    const onx_registry *registry;    /* NULL: built-in operators */
    const onxi_functions *functions; /* of the model; NULL: none */
    onxi_imports imports;
    onxi_bound **bound; /* in order of first mention */
    uint32_t count, room;
    onxi_table table; /* of bound */
} onxi_binder;

/* `binder` is filled in but for `imports`, which this opens (see onxi_imports_open). */
onx_status onxi_binder_open(onxi_binder *binder, onx_operator_set_id *const *list, uint32_t count, bool legacy);
/* Amortized constant time; NULL when out of memory. */
onxi_bound *onxi_bind(onxi_binder *binder, const onx_node *node);

#endif
