/* transform_halve.h - the internals of onx_precision: values with their current and new types, their uses, and sets of
 * values that must have the same type. */
#ifndef ONXI_TRANSFORM_HALVE_H
#define ONXI_TRANSFORM_HALVE_H

#include "transform/transform_precision.h"

#define ONXI_HALVE_NONE UINT32_MAX

/* Values whose types are changed together, as a set in a union-find forest. */
typedef struct onxi_halve_term {
    uint32_t parent;
    bool stays; /* of a root: keeps its current type */
} onxi_halve_term;

typedef enum onxi_halve_kind {
    ONXI_HALVE_INPUT,    /* a graph input; if it has an initializer, `tensor` is that */
    ONXI_HALVE_CONSTANT, /* an initializer: gets the type that its readers need */
    ONXI_HALVE_MADE      /* the output of a node */
} onxi_halve_kind;

typedef struct onxi_halve_value {
    onx_bytes name;
    onx_bytes now;      /* its name for readers in the result */
    onx_bytes cast;     /* the value converted to its other type; empty: unused */
    onx_tensor *tensor; /* of an initializer */
    onx_sparse_tensor *sparse;
    uint32_t term;     /* NONE: its type is not converted */
    uint8_t kind;      /* an onxi_halve_kind */
    uint8_t from;      /* its type, if that is to be converted; else ONX_UNDEFINED */
    bool tensor_typed; /* not a sequence or optional */
    bool changes;
    bool wanted_new, wanted_old; /* for constants: by readers */
    bool pinned;                 /* a constant that has to be kept */
    bool kept;                   /* named by the caller */
    bool size;                   /* computed from sizes only */
    bool integers;               /* computed from integers and constants only */
    bool dropped;                /* a Cast that has become redundant */
} onxi_halve_value;

typedef struct onxi_halve_scope {
    onxi_scope scope; /* must be the first member */
    const struct onxi_halve_scope *parent;
    onx_graph *graph;
    onxi_dict values;               /* name to index */
    uint32_t first_node, last_node; /* linked list of onxi_halver.node; NONE: empty */
    bool main;
    struct onxi_halve_scope *next;
} onxi_halve_scope;

typedef enum onxi_halve_want {
    ONXI_HALVE_TERM, /* the type of a term */
    ONXI_HALVE_ANY,  /* any type */
    ONXI_HALVE_OLD,  /* the original type of the value */
    ONXI_HALVE_NEW
} onxi_halve_want;

typedef struct onxi_halve_use {
    uint32_t value; /* NONE: no conversion */
    uint32_t term;
    uint8_t want;
} onxi_halve_use;

typedef struct onxi_halve_node {
    onx_node *node;
    onxi_halve_scope *scope;
    const onxi_bound *bound;
    const onxi_schema *schema;
    onxi_op_id op;
    uint32_t index;     /* in its graph */
    uint32_t next;      /* next node of the same graph; NONE: the last */
    uint32_t use;       /* index of the first use by its inputs */
    uint32_t made;      /* index of the first of its output values in a list with NONE entries */
    uint32_t term;      /* the term that its output-type attribute follows; NONE: none */
    uint32_t attribute; /* the index of this attribute in the row */
    bool chosen;
    bool asked; /* it may be converted, as far as its rule agrees */
    bool exact; /* keeps its type, because it computes positions, ranks or angles */
    bool kept;  /* so do all nodes inside of it */
} onxi_halve_node;

typedef struct onxi_halve_result { /* an output of a graph */
    onxi_halve_scope *scope;
    uint32_t index;
    onxi_halve_use use;
} onxi_halve_result;

typedef struct onxi_halver {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch;
    const onx_precision_options *options;
    onx_model *model;
    onxi_selection selection;
    onxi_dict keep, keep_value, trained;
    onxi_binder binder;
    onxi_values values;
    onxi_names names;
    onxi_weights weights;
    uint32_t sources;     /* types that are converted, as a bit mask */
    uint32_t untyped;     /* number of operands of unknown type, whose nodes are not converted */
    onx_str untyped_name; /* the first of them */
    onx_dtype to;
    int64_t opset;

    onxi_halve_term *term;
    onxi_halve_value *value;
    onxi_halve_use *use;
    uint32_t *made; /* values of outputs, NONE: omitted */
    onxi_halve_node *node;
    onxi_halve_result *result;
    uint32_t term_count, value_count, use_count, made_count, node_count, result_count;
    uint32_t term_room, value_room, use_room, made_room, node_room, result_room;
    onxi_halve_scope *scopes, **last_scope;
    onxi_map tensors;      /* converted tensors, by address */
    onxi_weight_loss loss; /* over all weights */
    uint32_t clamped;      /* number of weights with elements beyond the range */
    onx_arena *asked;      /* for what rules allocate */
    onxi_dims *dims;       /* for rules; NULL: none yet */
    uint32_t questions;
    uint32_t depth, limit;
    uint32_t kept; /* number of enclosing nodes that are not converted */
} onxi_halver;

/* transform_halve.c: collecting values, and sets that must have one type. */
onx_status onxi_halve_model(onxi_halver *h);
uint32_t onxi_halve_root(onxi_halver *h, uint32_t term);
static inline bool onxi_halve_stays(onxi_halver *h, uint32_t term)
{
    return term == ONXI_HALVE_NONE || h->term[onxi_halve_root(h, term)].stays;
}
onx_status onxi_halve_term_new(onxi_halver *h, bool stays, uint32_t *out);
void onxi_halve_unite(onxi_halver *h, uint32_t a, uint32_t b);
uint32_t onxi_halve_find(onxi_halver *h, const onxi_halve_scope *scope, onx_str name);
/* The type to convert that a value of this type has, ONX_UNDEFINED: none. */
int onxi_halve_source(const onxi_halver *h, const onx_type *type);
bool onxi_halve_is_tensor(const onx_type *type);

/* transform_halve_types.c: the terms of a node's operands. */
/* Does the port accept values of that kind with elements of the new type? */
bool onxi_halve_takes(const onxi_halver *h, const onxi_halve_node *n, const onxi_port *port, const onx_type *type);
onx_status onxi_halve_operands(onxi_halver *h, onxi_halve_node *n, uint32_t *outputs);

/* transform_halve_rules.c: asks the rules of operators. */
/* The element types of the outputs for inputs with elements of these types (UNDEFINED: their own); `changed`: with
 * attribute n->attribute giving the new type. UNDEFINED: the rule does not say. False if the operator does not take
 * them. */
bool onxi_halve_ask(onxi_halver *h, const onxi_halve_node *n, const uint8_t *in, bool changed, uint8_t *out);
const onx_type *onxi_halve_type(onxi_halver *h, const onxi_halve_node *n, onx_str name);
/* Nodes that would not be what the pass takes them for keep their types; *settled: there is none. */
onx_status onxi_halve_verify(onxi_halver *h, bool *settled);

/* transform_halve_decide.c: decides which values are converted, and where Casts are needed. */
onx_status onxi_halve_decide(onxi_halver *h);
bool onxi_halve_wants_new(onxi_halver *h, const onxi_halve_use *use);
/* Its operands keep their types. */
void onxi_halve_keep(onxi_halver *h, const onxi_halve_node *n);
/* Does it only move elements of its inputs? */
bool onxi_halve_passes_on(onxi_op_id op);

/* transform_halve_exact.c: nodes that compute positions, ranks and angles keep their type. */
onx_status onxi_halve_keep_exact(onxi_halver *h);

/* transform_halve_write.c: writes the result. */
/* A Constant node that contains its value. */
bool onxi_halve_can_rewrite(const onx_node *constant);
onx_status onxi_halve_write(onxi_halver *h);

#endif
