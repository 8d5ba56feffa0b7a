/* rewrite.h - rules by which one operator takes the place of several nodes, and the matcher that finds them. It sees a
 * graph through a view, so that a session rewrites what it runs and `simplify` a document by the same rows
 * (rewrite_rules.def). */
#ifndef ONXI_REWRITE_H
#define ONXI_REWRITE_H

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

#define ONXI_REWRITE_NONE UINT32_MAX /* no value; of an optional node: the graph does not have it */

/* ---- rows (rewrite_rules.def) ---- */

typedef enum onxi_rewrite_by { /* who uses a rule */
                               ONXI_REWRITE_BY_SESSION = 1,
                               ONXI_REWRITE_BY_MODEL =
                                   2, /* the replacement is of the standard, and reads better than the nodes */
                               ONXI_REWRITE_BY_BOTH = 3
} onxi_rewrite_by;
typedef enum onxi_rewrite_effect { ONXI_REWRITE_EXACT, ONXI_REWRITE_ROUNDING } onxi_rewrite_effect;

/* Both sides are functions in ONNX text. */
typedef struct onxi_rewrite_row {
    const char *name; /* NULL ends the list */
    onxi_op_id root, needs;
    int32_t since; /* version of the default domain that has the replacement; 0: it is of a private domain */
    onxi_rewrite_effect effect;
    onxi_rewrite_by by;
    const char *where; /* what has to hold of the types: "last AXIS VALUE; same VALUE VALUE" */
    const char *pattern, *replacement;
} onxi_rewrite_row;
extern const onxi_rewrite_row onxi_rewrite_rows[];

/* ---- rules, read (rewrite_rule.c) ---- */

enum {
    ONXI_REWRITE_NAMES = 48,
    ONXI_REWRITE_NODES = 24,
    ONXI_REWRITE_INPUTS = 8,
    ONXI_REWRITE_TAKEN = 16,
    ONXI_REWRITE_CONDITIONS = 20,
    ONXI_REWRITE_INTS = 8,       /* elements of a constant list that is taken, at most */
    ONXI_REWRITE_UNIFORM = 1024, /* elements of a constant that are looked at to find them all the same */
    ONXI_REWRITE_NAME = 32,
    ONXI_REWRITE_SKIPPED = 16,
    ONXI_REWRITE_OPS = ONXI_REWRITE_NODES + ONXI_REWRITE_SKIPPED
};

typedef enum onxi_rewrite_condition_kind {
    ONXI_REWRITE_LAST_AXIS, /* a number that was taken is the last axis of the value */
    ONXI_REWRITE_SAME_DIMS, /* two values have the same dims */
    ONXI_REWRITE_RANK,      /* the value has this number of dims */
    ONXI_REWRITE_BATCH,     /* two values have the same dims but for the last two */
    ONXI_REWRITE_CONSTANTS, /* two values are constants, or omitted; this holds of a match, not of a plan */
    ONXI_REWRITE_SAME_SIZE, /* two values have as many indices at an axis, which may count from the end */
    ONXI_REWRITE_SIZE,      /* a value has a size at an axis, a number that is written or was taken */
    ONXI_REWRITE_ALONG,     /* a value is a list along an axis of the other one: its other dims are 1 */
    ONXI_REWRITE_SLICE      /* a Slice takes that of the last axis, by a part of what is there */
} onxi_rewrite_condition_kind;

/* Where a Slice begins or ends: a number, or a part of the dimension. */
typedef struct onxi_rewrite_bound {
    bool of_dim;
    int64_t number; /* or what the dimension is divided by */
} onxi_rewrite_bound;

typedef struct onxi_rewrite_node { /* of a pattern */
    const onx_node *node;
    onxi_op_id id;
    onxi_attrs attrs;
    uint8_t inputs[ONXI_REWRITE_INPUTS], input_count, output; /* names */
    bool optional;                                            /* it may be missing */
    bool shared;                                              /* others may use it, too: it stays */
    bool list;                                                /* a constant that is a list of integers */
} onxi_rewrite_node;

typedef struct onxi_rewrite_rule {
    const onxi_rewrite_row *row;
    onx_doc *pattern_doc, *replacement_doc;
    const onx_function *pattern, *replacement;
    onxi_binder *binder; /* of the replacement */
    onx_str names[ONXI_REWRITE_NAMES];
    uint8_t maker[ONXI_REWRITE_NAMES]; /* 1 + index of the node that makes it, 0: an input */
    onxi_rewrite_node nodes[ONXI_REWRITE_NODES];
    uint32_t name_count, node_count, input_count;
    struct {
        onxi_rewrite_condition_kind kind;
        uint8_t value, other; /* names */
        uint8_t bounds[4];    /* of a Slice: starts, ends, axes, steps */
        uint8_t bound_count;
        int64_t rank, axis;
        char number[ONXI_REWRITE_NAME]; /* a parameter that was taken */
        onxi_rewrite_bound from, to;
    } conditions[ONXI_REWRITE_CONDITIONS];
    uint32_t condition_count;
    bool too_large;
} onxi_rewrite_rule;

/* The rules requested so far; each is read once. */
typedef struct onxi_rewrites {
    onx_ctx *cx;
    onx_arena *arena; /* of the rules, which live as long as it and until onxi_rewrites_close */
    onxi_rewrite_rule **rules;
    uint32_t count;
} onxi_rewrites;
onx_status onxi_rewrites_open(onxi_rewrites *rewrites, onx_ctx *cx, onx_arena *arena);
/* One that was never opened is closed. */
void onxi_rewrites_close(onxi_rewrites *rewrites);
onx_status onxi_rewrites_get(onxi_rewrites *rewrites, const onxi_rewrite_row *row, const onxi_rewrite_rule **out);

/* ---- what the matcher sees of a graph ---- */

typedef struct onxi_rewrite_op {
    onxi_op_id id;
    int32_t since;
    onxi_attrs attrs;
    const uint32_t *inputs, *outputs; /* values; from ONXI_REWRITE_NONE - 1 on: omitted */
    uint32_t input_count, output_count;
} onxi_rewrite_op;

typedef struct onxi_rewrite_value {
    uint32_t maker; /* 1 + the op that makes it, 0: none that a pattern may have */
    uint32_t uses;  /* by ops, subgraphs and outputs */
    bool is_output; /* or must stay for another reason */
    bool is_constant;
} onxi_rewrite_value;

/* The number that all elements of a constant tensor of rank 0 or 1 are. */
typedef struct onxi_rewrite_number {
    int dtype;
    double number;
    uint64_t count; /* elements */
} onxi_rewrite_number;

typedef struct onxi_rewrite_view {
    void *graph;
    /* False for an op that no pattern may have. */
    bool (*op)(void *graph, uint32_t op, onxi_rewrite_op *out);
    void (*value)(void *graph, uint32_t value, onxi_rewrite_value *out);
    bool (*number)(void *graph, uint32_t value, onxi_rewrite_number *out);
    /* The elements of a constant list of int64, ONXI_REWRITE_INTS at most. */
    bool (*ints)(void *graph, uint32_t value, int64_t *out, uint32_t *count);
} onxi_rewrite_view;

/* ---- matching (rewrite_match.c) ---- */

typedef struct onxi_rewrite_taken { /* what becomes an attribute of the replacement */
    onx_str name;
    onxi_attr_value value;
    uint32_t element; /* of a list that was taken from a constant: parameter NAME_ELEMENT; ONXI_REWRITE_NONE: no list */
} onxi_rewrite_taken;

typedef struct onxi_rewrite_match {
    uint32_t values[ONXI_REWRITE_NAMES]; /* ONXI_REWRITE_NONE: not bound */
    uint32_t ops[ONXI_REWRITE_NODES];    /* of the graph, per node of the pattern */
    onxi_rewrite_taken taken[ONXI_REWRITE_TAKEN];
    uint32_t taken_count;
    uint32_t skipped[ONXI_REWRITE_SKIPPED], skipped_count; /* intermediate ops that do nothing */
} onxi_rewrite_match;

/* Does the pattern end at this op, and is what it makes inside used inside only? The time is bounded by the pattern. */
bool onxi_rewrite_find(const onxi_rewrite_view *view, const onxi_rewrite_rule *rule, uint32_t op,
                       onxi_rewrite_match *match);
/* The ops that are replaced, in their order, which is one that runs; how many there are. */
uint32_t onxi_rewrite_parts(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match,
                            uint32_t out[ONXI_REWRITE_OPS]);
/* The parameters of the replacement: what was taken under their names, or numbers made from that. */
onx_status onxi_rewrite_arguments(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match, onx_arena *arena,
                                  onxi_arguments *out);
/* The value that takes the place of an input of the replacement, a name of the pattern; ONXI_REWRITE_NONE: it is
 * omitted. */
uint32_t onxi_rewrite_input(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match, onx_bytes name);

/* A condition of the rule as it is for a match. False where it asks nothing, as of an optional node that is missing. */
typedef struct onxi_rewrite_condition {
    onxi_rewrite_condition_kind kind;
    uint32_t value, other;
    uint32_t bounds[4]; /* of a Slice: starts, ends, axes, steps */
    int64_t number;     /* the axis, the rank, the size, or the step */
    int64_t axis;
    onxi_rewrite_bound from, to;
} onxi_rewrite_condition;
bool onxi_rewrite_condition_of(const onxi_rewrite_rule *rule, const onxi_rewrite_match *match, uint32_t index,
                               onxi_rewrite_condition *out);

/* ---- conditions that ask for shapes (rewrite_condition.c) ---- */

/* The dims of a value. Those that are no numbers are equal where they are known to be, and no number that is asked for.
 */
typedef struct onxi_rewrite_shape {
    uint32_t rank;
    const int64_t *dims;
} onxi_rewrite_shape;

typedef struct onxi_rewrite_shapes {
    void *graph;
    bool (*shape)(void *graph, uint32_t value, onxi_rewrite_shape *out);
    /* Elements of a list of integers that is known, of at most `most`. */
    bool (*ints)(void *graph, uint32_t value, int64_t *out, uint32_t most, uint32_t *count);
} onxi_rewrite_shapes;
/* The kinds from ONXI_REWRITE_SAME_SIZE on. */
bool onxi_rewrite_holds(const onxi_rewrite_shapes *shapes, const onxi_rewrite_condition *condition);

#endif
