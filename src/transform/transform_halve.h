/* transform_halve.h - the insides of onx_precision: values with the types that they have and get, what uses them, and
 * types that have to be the same. */
#ifndef ONXI_TRANSFORM_HALVE_H
#define ONXI_TRANSFORM_HALVE_H

#include "transform/transform_precision.h"

#define ONXI_HALVE_NONE UINT32_MAX

/* Types that are changed together, as a set of a union-find forest. */
typedef struct onxi_halve_term {
    uint32_t parent;
    bool stays; /* of a root: keeps the type that it has */
} onxi_halve_term;

typedef enum onxi_halve_kind {
    ONXI_HALVE_INPUT,    /* of a graph; with an initializer, `tensor` is that */
    ONXI_HALVE_CONSTANT, /* initializer: its type is what its users want */
    ONXI_HALVE_MADE      /* by a node */
} onxi_halve_kind;

typedef struct onxi_halve_value {
    onx_bytes name;
    onx_bytes now;      /* what users call it in the result */
    onx_bytes cast;     /* the value in its other type; empty: unused */
    onx_tensor *tensor; /* of an initializer */
    onx_sparse_tensor *sparse;
    uint32_t term;     /* NONE: not of a type that changes */
    uint8_t kind;      /* onxi_halve_kind */
    uint8_t from;      /* the type that it has, where that changes; else ONX_UNDEFINED */
    bool tensor_typed; /* no sequence or optional */
    bool changes;
    bool wanted_new, wanted_old; /* of constants: by users */
    bool pinned;                 /* a constant that has to stay */
    bool size;                   /* computed from sizes alone */
    bool integers;               /* computed from integers and constants alone */
    bool dropped;                /* a Cast that does nothing any more */
} onxi_halve_value;

typedef struct onxi_halve_scope {
    onxi_scope scope; /* first */
    const struct onxi_halve_scope *parent;
    onx_graph *graph;
    onxi_dict values;               /* indexes */
    uint32_t first_node, last_node; /* of onxi_halver.node, linked; NONE: there are none */
    bool main;
    struct onxi_halve_scope *next;
} onxi_halve_scope;

typedef enum onxi_halve_want {
    ONXI_HALVE_TERM, /* the type of a term */
    ONXI_HALVE_ANY,  /* whatever the value has */
    ONXI_HALVE_OLD,  /* the type that the value has now */
    ONXI_HALVE_NEW
} onxi_halve_want;

typedef struct onxi_halve_use {
    uint32_t value; /* NONE: nothing to do */
    uint32_t term;
    uint8_t want;
} onxi_halve_use;

typedef struct onxi_halve_node {
    onx_node *node;
    onxi_halve_scope *scope;
    const onxi_bound *bound;
    const onxi_schema *schema;
    onxi_op_id op;
    uint32_t index;    /* in its graph */
    uint32_t next;     /* of the same graph; NONE: the last */
    uint32_t use;      /* the first of its inputs' uses */
    uint32_t made;     /* the first of its outputs' values: NONE entries are in a list */
    uint32_t term;     /* that its attribute for the type of the output follows; NONE: none */
    uint8_t attribute; /* row + 1 of the table of such attributes */
    bool chosen;
    bool exact; /* stays, as it works out places, ranks or angles */
    bool kept;  /* with all that is inside of it */
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
    onxi_dict keep, trained;
    onxi_binder binder;
    onxi_values values;
    onxi_names names;
    onxi_weights weights;
    uint32_t sources;     /* types that change, a bit each */
    uint32_t untyped;     /* operands whose types are not known, so that their nodes stay */
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
    onxi_map tensors;      /* converted already, by address */
    onxi_weight_loss loss; /* of all of them */
    uint32_t depth, limit;
    uint32_t kept; /* enclosing nodes that are to be kept */
} onxi_halver;

/* transform_halve.c: what there is, and what has to have one type. */
onx_status onxi_halve_model(onxi_halver *h);
uint32_t onxi_halve_root(onxi_halver *h, uint32_t term);
static inline bool onxi_halve_stays(onxi_halver *h, uint32_t term)
{
    return term == ONXI_HALVE_NONE || h->term[onxi_halve_root(h, term)].stays;
}
onx_status onxi_halve_term_new(onxi_halver *h, bool stays, uint32_t *out);
void onxi_halve_unite(onxi_halver *h, uint32_t a, uint32_t b);
uint32_t onxi_halve_find(onxi_halver *h, const onxi_halve_scope *scope, onx_str name);
/* The type to change that a value of this type has, ONX_UNDEFINED: none. */
int onxi_halve_source(const onxi_halver *h, const onx_type *type);
bool onxi_halve_is_tensor(const onx_type *type);

/* transform_halve_types.c: the terms of a node's operands. */
/* Does the port take values of that kind with elements of the new type? */
bool onxi_halve_takes(const onxi_halver *h, const onxi_halve_node *n, const onxi_port *port, const onx_type *type);
onx_status onxi_halve_operands(onxi_halver *h, onxi_halve_node *n, uint32_t *outputs);
/* Does the output's type come from this attribute? Row + 1, 0: none. */
typedef struct onxi_halve_attribute {
    const char *op, *name;
    int implied; /* the type where it is absent; ONX_UNDEFINED: that of input 0 */
} onxi_halve_attribute;
extern const onxi_halve_attribute onxi_halve_attributes[];

/* transform_halve_decide.c: which values change, and where Casts are needed. */
onx_status onxi_halve_decide(onxi_halver *h);
bool onxi_halve_wants_new(onxi_halver *h, const onxi_halve_use *use);
/* Its operands keep their types. */
void onxi_halve_keep(onxi_halver *h, const onxi_halve_node *n);
/* Does it only pass on elements of its inputs? */
bool onxi_halve_passes_on(onxi_op_id op);

/* transform_halve_exact.c: what works out places, ranks and angles keeps its type. */
onx_status onxi_halve_keep_exact(onxi_halver *h);

/* transform_halve_write.c: the result. */
/* A Constant whose value is in the node itself. */
bool onxi_halve_can_rewrite(const onx_node *constant);
onx_status onxi_halve_write(onxi_halver *h);

#endif
