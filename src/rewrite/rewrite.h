/* rewrite.h - rules that replace several nodes by one operator, and the matcher that finds these nodes. The matcher
 * accesses a graph through a view, so that sessions and `simplify` use the same rules (rewrite_rules.def) for the graph
 * of a session and for a document. */
#ifndef ONXI_REWRITE_H
#define ONXI_REWRITE_H

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

#define ONXI_REWRITE_NONE UINT32_MAX /* no value; for an optional node: the graph does not have it */

/* ---- rows (rewrite_rules.def) ---- */

typedef enum onxi_rewrite_by { /* who uses a rule */
                               ONXI_REWRITE_BY_SESSION = 1,
                               ONXI_REWRITE_BY_MODEL =
                                   2, /* the replacement is a standard operator, and easier to read than the nodes */
                               ONXI_REWRITE_BY_BOTH = 3
} onxi_rewrite_by;
typedef enum onxi_rewrite_effect { ONXI_REWRITE_EXACT, ONXI_REWRITE_ROUNDING } onxi_rewrite_effect;

/* Both sides are functions in ONNX text. */
typedef struct onxi_rewrite_row {
    const char *name; /* NULL ends the table */
    onxi_op_id root, needs;
    int32_t since; /* the version of the default domain that has the replacement; 0: it is in a private domain */
    onxi_rewrite_effect effect;
    onxi_rewrite_by by;
    const char *where; /* conditions on types: "last AXIS VALUE; same VALUE VALUE" */
    const char *pattern, *replacement;
} onxi_rewrite_row;
extern const onxi_rewrite_row onxi_rewrite_rows[];

/* ---- parsed rules (rewrite_rule.c) ---- */

enum {
    ONXI_REWRITE_NAMES = 48,
    ONXI_REWRITE_NODES = 24,
    ONXI_REWRITE_INPUTS = 8,
    ONXI_REWRITE_TAKEN = 16,
    ONXI_REWRITE_CONDITIONS = 20,
    ONXI_REWRITE_INTS = 8,       /* maximum number of elements of a captured constant list */
    ONXI_REWRITE_UNIFORM = 1024, /* maximum size of a constant that is searched for a common value of all elements */
    ONXI_REWRITE_NAME = 32,
    ONXI_REWRITE_SKIPPED = 16,
    ONXI_REWRITE_OPS = ONXI_REWRITE_NODES + ONXI_REWRITE_SKIPPED
};

typedef enum onxi_rewrite_condition_kind {
    ONXI_REWRITE_LAST_AXIS, /* a captured number is the last axis of the value */
    ONXI_REWRITE_SAME_DIMS, /* two values have the same dims */
    ONXI_REWRITE_RANK,      /* the value has this rank */
    ONXI_REWRITE_BATCH,     /* two values have the same dims except the last two */
    ONXI_REWRITE_CONSTANTS, /* two values are constants, or omitted; checked for a match, not for a plan */
    ONXI_REWRITE_SAME_SIZE, /* two values have the same size along an axis, which may count from the end */
    ONXI_REWRITE_SIZE,      /* a value has a given size along an axis, written or captured */
    ONXI_REWRITE_ALONG,     /* a value is a vector along an axis of the other one: its other dims are 1 */
    ONXI_REWRITE_SLICE,     /* a Slice takes a given part of the last axis */
    ONXI_REWRITE_ONTO,      /* a value broadcasts to the dims of the other one */
    ONXI_REWRITE_BOTH,      /* two values broadcast to common dims, by the operator as by the nodes; not checked */
    ONXI_REWRITE_MULTIPLE,  /* the size along an axis is a multiple of a number, written or captured */
    ONXI_REWRITE_BOUNDED,   /* no element of the value is -inf */
    ONXI_REWRITE_NUMBER     /* a constant, all elements of which are the same number and not NaN; checked for a match */
} onxi_rewrite_condition_kind;

/* The start or end of a Slice: a number, or a fraction of the dimension. */
typedef struct onxi_rewrite_bound {
    bool of_dim;
    int64_t number; /* or the divisor of the dimension */
} onxi_rewrite_bound;

typedef struct onxi_rewrite_node { /* a node of a pattern */
    const onx_node *node;
    onxi_op_id id;
    onxi_attrs attrs;
    uint8_t inputs[ONXI_REWRITE_INPUTS], input_count, output; /* indexes of names */
    bool optional;                                            /* it may be missing */
    bool shared;                                              /* it may have other readers, and is not removed */
    bool list;                                                /* a constant list of integers */
} onxi_rewrite_node;

typedef struct onxi_rewrite_rule {
    const onxi_rewrite_row *row;
    onx_doc *pattern_doc, *replacement_doc;
    const onx_function *pattern, *replacement;
    onxi_binder *binder; /* for the replacement */
    onx_str names[ONXI_REWRITE_NAMES];
    uint8_t maker[ONXI_REWRITE_NAMES]; /* 1 + index of the node that produces it, 0: an input */
    onxi_rewrite_node nodes[ONXI_REWRITE_NODES];
    uint32_t name_count, node_count, input_count;
    struct {
        onxi_rewrite_condition_kind kind;
        uint8_t value, other; /* indexes of names */
        uint8_t bounds[4];    /* of a Slice: starts, ends, axes, steps */
        uint8_t bound_count;
        int64_t rank, axis;
        char number[ONXI_REWRITE_NAME]; /* a captured parameter */
        onxi_rewrite_bound from, to;
    } conditions[ONXI_REWRITE_CONDITIONS];
    uint32_t condition_count;
    bool too_large;
} onxi_rewrite_rule;

/* The rules requested so far; each is parsed once. */
typedef struct onxi_rewrites {
    onx_ctx *cx;
    onx_arena *arena; /* of the rules, which are valid until onxi_rewrites_close or until the arena is freed */
    onxi_rewrite_rule **rules;
    uint32_t count;
} onxi_rewrites;
onx_status onxi_rewrites_open(onxi_rewrites *rewrites, onx_ctx *cx, onx_arena *arena);
/* Closing a zeroed struct is allowed. */
void onxi_rewrites_close(onxi_rewrites *rewrites);
onx_status onxi_rewrites_get(onxi_rewrites *rewrites, const onxi_rewrite_row *row, const onxi_rewrite_rule **out);

/* ---- the matcher's view of a graph ---- */

typedef struct onxi_rewrite_op {
    onxi_op_id id;
    int32_t since;
    onxi_attrs attrs;
    const uint32_t *inputs, *outputs; /* values; from ONXI_REWRITE_NONE - 1 on: omitted */
    uint32_t input_count, output_count;
} onxi_rewrite_op;

typedef struct onxi_rewrite_value {
    uint32_t maker; /* 1 + the op that produces it, 0: no op that a pattern may contain */
    uint32_t uses;  /* number of readers: ops, subgraphs and outputs */
    bool is_output; /* a graph output, or has to be kept for another reason */
    bool is_constant;
} onxi_rewrite_value;

/* The common value of all elements of a constant tensor of rank 0 or 1. */
typedef struct onxi_rewrite_number {
    int dtype;
    double number;
    uint64_t count; /* number of elements */
} onxi_rewrite_number;

typedef struct onxi_rewrite_view {
    void *graph;
    /* False for an op that no pattern may contain. */
    bool (*op)(void *graph, uint32_t op, onxi_rewrite_op *out);
    void (*value)(void *graph, uint32_t value, onxi_rewrite_value *out);
    bool (*number)(void *graph, uint32_t value, onxi_rewrite_number *out);
    /* The elements of a constant list of int64, at most ONXI_REWRITE_INTS. */
    bool (*ints)(void *graph, uint32_t value, int64_t *out, uint32_t *count);
} onxi_rewrite_view;

/* ---- matching (rewrite_match.c) ---- */

typedef struct onxi_rewrite_taken { /* captured as an attribute of the replacement */
    onx_str name;
    onxi_attr_value value;
    uint32_t element; /* index into a captured list (parameter NAME_ELEMENT); ONXI_REWRITE_NONE: not a list */
} onxi_rewrite_taken;

typedef struct onxi_rewrite_match {
    uint32_t values[ONXI_REWRITE_NAMES]; /* ONXI_REWRITE_NONE: not bound */
    uint32_t ops[ONXI_REWRITE_NODES];    /* the matched ops, per node of the pattern */
    onxi_rewrite_taken taken[ONXI_REWRITE_TAKEN];
    uint32_t taken_count;
    uint32_t skipped[ONXI_REWRITE_SKIPPED], skipped_count; /* intermediate ops that change nothing */
} onxi_rewrite_match;

/* Does the pattern match with this op as its last node, and are its inner values only used inside? The time is bounded
 * by the size of the pattern. */
bool onxi_rewrite_find(const onxi_rewrite_view *view, const onxi_rewrite_rule *rule, uint32_t op,
                       onxi_rewrite_match *match);
/* The ops to replace, in a topological order; returns their number. */
uint32_t onxi_rewrite_parts(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match,
                            uint32_t out[ONXI_REWRITE_OPS]);
/* The parameters of the replacement: captured values under their names, or numbers computed from them. */
onx_status onxi_rewrite_arguments(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match, onx_arena *arena,
                                  onxi_arguments *out);
/* The value for an input of the replacement, given as a name of the pattern; ONXI_REWRITE_NONE if it is omitted. */
uint32_t onxi_rewrite_input(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match, onx_bytes name);

/* A condition of the rule, resolved for a match. False if it requires nothing, for example because an optional node is
 * missing. */
typedef struct onxi_rewrite_condition {
    onxi_rewrite_condition_kind kind;
    uint32_t value, other;
    uint32_t bounds[4]; /* for a Slice: starts, ends, axes, steps */
    int64_t number;     /* the axis, rank, size or step */
    int64_t axis;
    onxi_rewrite_bound from, to;
} onxi_rewrite_condition;
bool onxi_rewrite_condition_of(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match, uint32_t index,
                               onxi_rewrite_condition *out);

/* ---- conditions on shapes (rewrite_condition.c) ---- */

/* The type of a tensor. Symbolic dims are equal if they are known to be equal, and never equal to a number; INT64_MIN
 * is unknown, and never equal to anything. */
typedef struct onxi_rewrite_shape {
    int dtype;
    uint32_t rank;
    const int64_t *dims;
} onxi_rewrite_shape;

typedef struct onxi_rewrite_shapes {
    void *graph;
    bool (*shape)(void *graph, uint32_t value, onxi_rewrite_shape *out);
    /* Elements of a known list of integers, at most `most`. */
    bool (*ints)(void *graph, uint32_t value, int64_t *out, uint32_t most, uint32_t *count);
    /* Is no element known to be, or possibly, -inf? NULL: not known for any value. */
    bool (*bounded)(void *graph, uint32_t value);
} onxi_rewrite_shapes;
/* Does the condition hold? Sessions and models evaluate all conditions here, so that a rule has one meaning. */
bool onxi_rewrite_holds(const onxi_rewrite_shapes *shapes, const onxi_rewrite_condition *condition);

#endif
