/* transform_retarget.h - the interface between the traversal of a model, the table of steps, and the conditions of its
 * rows. */
#ifndef ONXI_TRANSFORM_RETARGET_H
#define ONXI_TRANSFORM_RETARGET_H

#include "transform/transform.h"

/* The domains whose versions differ in meaning. */
typedef enum onxi_versioned { ONXI_DEFAULT, ONXI_ML, ONXI_VERSIONED_COUNT = ONXI_RETARGET_DOMAINS } onxi_versioned;
/* ONXI_VERSIONED_COUNT for other domains. */
onxi_versioned onxi_versioned_of(onx_str domain);

typedef struct onxi_retarget onxi_retarget;
extern const char *const onxi_versioned_names[ONXI_VERSIONED_COUNT]; /* "ai.onnx" */

/* ---- a node before a step between two versions of its operator ---- */

enum { ONXI_PREPARED_MAX = 24 };

typedef struct onxi_subject {
    onxi_retarget *r;
    onxi_values *values;
    onx_arena *arena; /* for results */
    onxi_scope *scope;
    const onx_node *node;
    const onxi_schema *row; /* in effect at the node's current version */
    bool up;
    /* Values that a condition has computed, for the text of its row. */
    const onx_attribute *prepared[ONXI_PREPARED_MAX];
    const char *prepared_names[ONXI_PREPARED_MAX];
    uint32_t prepared_count;
    onx_str text; /* for a row whose text the condition generates */
} onxi_subject;

bool onxi_subject_has(const onxi_subject *s, uint32_t input);       /* not omitted */
uint32_t onxi_subject_outputs(const onxi_subject *s);               /* up to the last one that is not omitted */
const onx_type *onxi_subject_type(onxi_subject *s, uint32_t input); /* NULL: unknown */
int onxi_subject_rank(onxi_subject *s, uint32_t input);             /* -1: unknown */
int onxi_subject_dtype(onxi_subject *s, uint32_t input);
const onx_attribute *onxi_subject_given(const onxi_subject *s, const char *name); /* given by the node, or NULL */
/* Given, else the default of the row; NULL if there is neither. */
const onx_attribute *onxi_subject_attribute(onxi_subject *s, const char *name);
/* False if there is no value, or if it is an argument of the enclosing function. */
bool onxi_subject_int(onxi_subject *s, const char *name, int64_t *out);
bool onxi_subject_float(onxi_subject *s, const char *name, float *out);
bool onxi_subject_text_is(onxi_subject *s, const char *name, const char *text);
/* A given list; NULL if it is absent or unknown. */
const int64_t *onxi_subject_ints(onxi_subject *s, const char *name, uint32_t *count);
/* The elements of a constant input; NULL if it is not constant. */
const int64_t *onxi_subject_input_ints(onxi_subject *s, uint32_t input, uint32_t *count);
const float *onxi_subject_input_floats(onxi_subject *s, uint32_t input, uint32_t *count);
/* Defines a value for the text of the row: false when out of memory. */
bool onxi_prepare_int(onxi_subject *s, const char *name, int64_t value);
bool onxi_prepare_float(onxi_subject *s, const char *name, float value);
bool onxi_prepare_ints(onxi_subject *s, const char *name, const int64_t *values, uint32_t count);
bool onxi_prepare_floats(onxi_subject *s, const char *name, const float *values, uint32_t count);
bool onxi_prepare_text(onxi_subject *s, const char *name, const char *text);
/* A tensor of one element, of rank 1 or 0; float32 if the type is unknown. */
onx_tensor *onxi_subject_number(onxi_subject *s, int dtype, bool list, double value);
/* The value of an attribute as a tensor of the type of input 0. */
bool onxi_prepare_number(onxi_subject *s, const char *attribute, const char *name);
bool onxi_prepare_tensor(onxi_subject *s, const char *name, onx_tensor *tensor);
/* The value of that name for the text of a row; NULL if there is none. *input_out (may be NULL): the input whose
 * constant value it is, else ONXI_NO_INPUT. */
const onx_attribute *onxi_subject_argument(onxi_subject *s, const onx_function *text, onx_str name, int32_t type,
                                           uint32_t *input_out);

/* ---- the table of steps (transform_steps.def) ---- */

typedef enum onxi_step_kind {
    ONXI_STEP_SAME, /* nothing changes except types, and attributes and operands that have defaults */
    ONXI_STEP_DROP, /* the same, without the attributes in `text` */
    ONXI_STEP_TEXT, /* the nodes of `text`, a function over the node's inputs and attributes */
    ONXI_STEP_BODY, /* the function body of the operator */
    ONXI_STEP_WIDE, /* goes a better way with casts around it to a wider type; `text` says why */
    ONXI_STEP_FAIL  /* cannot be expressed; `text` tells why */
} onxi_step_kind;

typedef struct onxi_step {
    uint16_t op;   /* an onxi_op_id */
    int16_t since; /* the newer of the two versions */
    bool up;
    uint8_t kind;
    bool (*when)(onxi_subject *s); /* NULL: always */
    const char *text;
    const char *assumes; /* what makes the results of a run differ, for a warning; NULL: they are the same */
} onxi_step;

/* In no particular order, but rows of the same operator, version and direction are tried in order. Ends with op 0. */
extern const onxi_step onxi_steps[];
extern const uint32_t onxi_step_count;

/* Conditions of rows, defined in transform_conditions.c. */
#define ONXI_CONDITION(name) bool onxi_when_##name(onxi_subject *s);
#include "transform/transform_conditions.def"

/* ---- the pass ---- */

typedef struct onxi_versions {
    int64_t of[ONXI_VERSIONED_COUNT]; /* 0: not imported */
} onxi_versions;

/* New nodes of a graph or function, which are stored in it at the end. */
typedef struct onxi_pending {
    struct onxi_pending *next;
    onx_graph *graph; /* either a graph or a function */
    onx_function *function;
    onx_node **nodes;
    uint32_t count;
} onxi_pending;

/* An output of a subgraph that is renamed. */
typedef struct onxi_handed {
    struct onxi_handed *next;
    onx_value_info *output;
    onx_bytes name;
} onxi_handed;

/* The nodes that took a step which assumes something. */
typedef struct onxi_assumed {
    uint32_t count;
    const char *op;
    onx_str first; /* path */
} onxi_assumed;

struct onxi_retarget {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch; /* of the document; for temporary data */
    const onx_retarget_options *options;
    onxi_versions wanted;         /* 0: not requested */
    onxi_versions source, target; /* for the current graph or function */
    onxi_versions newer;          /* its version if it is newer than the newest known, which `source` then is; else 0 */
    onxi_binder *binder;          /* for the current one */
    onxi_functions functions;
    onxi_names names;
    onxi_values values;
    onxi_binder *binders[ONXI_VERSIONED_COUNT]; /* one per version, created on demand */
    const onx_function **texts;                 /* of the steps, parsed on demand */
    uint16_t *first, *next; /* 1 + index of the first step of an operator, of its next step; 0: none */
    onxi_assumed *assumed;  /* per step */
    onxi_dict captured;     /* constants that became attributes, and may have become unused */
    onxi_map bodies;        /* of operators, by row and parts */
    onxi_pending *pending;
    onxi_handed *handed;
    onxi_map done; /* visited graphs: the replacement of a node may contain them as well */
    uint32_t failed, depth, limit;
    uint64_t changes;
    bool imports_ml;
    bool left_newer;    /* the model had a version newer than the newest known, and gets a known one */
    bool bodies_only;   /* only replace operators that have a body by it: */
    bool bodies_schema; /* those of the standard */
    onx_str bodies_of;  /* those of this domain; empty: none */
    onx_str path;       /* of the current node; built on demand */
    onx_str prefix;
    const onx_node *at;
    uint32_t at_index;
};

/* A type that does not exist after the step, at operands that share a constraint. */
typedef struct onxi_lost_type {
    const char *constraint; /* of the old row; NULL: none */
    int dtype;
    uint32_t allowed;
} onxi_lost_type;

/* ---- creating nodes (transform_node.c) ---- */

/* The path of the current node. */
onx_str onxi_retarget_path(onxi_retarget *r);
/* Reports that the current node cannot be expressed: an error, or a warning with best_effort. `hint` may be NULL. */
onx_status onxi_retarget_fail(onxi_retarget *r, const onx_node *node, const char *hint, const char *format, ...)
    ONX_PRINTF(4, 5);
/* Reports a step. */
void onxi_retarget_tell(onxi_retarget *r, const onx_node *node, int64_t from, int64_t to, const char *what);
/* A copy whose lists are shared; a copy of a list. */
onx_node *onxi_own_node(onxi_retarget *r, const onx_node *node);
onx_bytes *onxi_own_names(onxi_retarget *r, const onx_bytes *from, uint32_t count);
/* Sets an attribute of a node that is a copy, in a list that is a copy. */
onx_status onxi_set_attribute(onxi_retarget *r, onx_node *node, const onx_attribute *a);
onx_status onxi_own_attributes(onxi_retarget *r, onx_node *node);
/* With one input and one output. */
onx_node *onxi_make_node(onxi_retarget *r, const char *op, onx_bytes from, onx_bytes to);
onx_node *onxi_make_cast(onxi_retarget *r, onx_bytes from, onx_bytes to, int dtype);

/* ---- crossing a version (transform_adjust.c) ---- */

/* Is the value an argument of the enclosing function? */
bool onxi_is_reference(const onx_attribute *a);
/* Does the attribute have its default value? */
bool onxi_retarget_is_default(onxi_retarget *r, const onxi_schema *row, const onx_attribute *a);
/* Moves the node, which is a copy, from the row of the subject to another row of the same operator. False, after a
 * report, if that is not possible. */
onx_status onxi_retarget_adjust(onxi_retarget *r, onxi_subject *s, const onxi_schema *to, const char *drop,
                                onx_node *node, bool *good);
/* The first operand type that `from` supports and `to` does not. */
onxi_lost_type onxi_retarget_lost(onxi_retarget *r, onxi_scope *scope, const onx_node *node, const onxi_schema *from,
                                  const onxi_schema *to);
/* Adds casts around the operands of a constraint; casts of outputs go to `after`. False: the type cannot be
 * replaced. */
onx_status onxi_retarget_cast(onxi_retarget *r, onxi_scope *scope, onxi_op_id op, onx_node *node,
                              const onxi_schema *row, onxi_lost_type what, onxi_versions at, onxi_node_list *out,
                              onxi_node_list *after, bool *good);
/* An operand type that a wider one of the same row can replace, without another result except for rounding. */
onxi_lost_type onxi_retarget_wide(onxi_retarget *r, onxi_scope *scope, onxi_op_id op, const onx_node *node,
                                  const onxi_schema *row);

/* ---- replacing a node by others (transform_text.c) ---- */

/* The text of the step, parsed once. */
onx_status onxi_retarget_text(onxi_retarget *r, const onxi_step *step, const onxi_subject *s, const onx_function **out);
/* Does the node have everything that the text refers to, and does the text accept its operands? */
bool onxi_retarget_fits(onxi_subject *s, const onx_function *text);
/* The nodes of a text; NULL entries are omitted. `wrong`: why they do not accept the types of the operands, by the type
 * rules of their version; empty: they do. */
typedef struct onxi_made_nodes {
    onx_node **nodes;
    uint32_t count;
    onx_str wrong;
} onxi_made_nodes;

/* Creates the nodes of the text, which are valid at version `at`. */
onx_status onxi_retarget_make(onxi_retarget *r, onxi_subject *s, const onx_function *text, onxi_versions at,
                              bool attributes, onxi_versioned domain, onxi_made_nodes *made);
/* Why a node, whose operands have been given other types, does not have the outputs of the old one; empty: it has. */
onx_status onxi_retarget_recheck(onxi_retarget *r, onxi_subject *s, onx_node *node, onxi_versions at,
                                 onxi_versioned domain, onx_str *wrong);
/* Converts them to the target. */
onx_status onxi_retarget_put(onxi_retarget *r, onxi_subject *s, const onxi_made_nodes *made, onxi_versions at,
                             onxi_node_list *out);
/* Is the operator one of those that are replaced by their bodies? */
bool onxi_retarget_takes_body(const onxi_retarget *r, onxi_op_id op, const onxi_schema *row);
/* Is it a third-party operator in a domain of the standard whose name the standard uses at the target version? */
bool onxi_retarget_succeeded(const onxi_retarget *r, onxi_op_id op, onx_str name, onxi_versioned domain);
/* NULL: it has none, or the choice depends on the caller of the enclosing function. */
onx_status onxi_retarget_body(onxi_retarget *r, onxi_subject *s, onxi_versioned domain, int64_t version,
                              const onx_function **out);

/* ---- converting a node (transform_convert.c) ---- */

/* The next step on the way to the target, or 0 if there is none. */
int32_t onxi_retarget_next(const onxi_operator *operator_, const onxi_schema *row, int64_t at, int64_t target,
                           const onxi_schema **to);
/* Adds the converted node to `out`. */
onx_status onxi_retarget_convert(onxi_retarget *r, onxi_scope *scope, onx_node *node, onxi_versions at,
                                 onxi_node_list *out);

/* ---- graphs (transform_retarget.c) ---- */

/* Converts the graphs in the attributes of a node. */
onx_status onxi_retarget_graphs(onxi_retarget *r, onxi_scope *scope, const onx_node *node, onxi_versions at);

/* ---- cleaning up (transform_finish.c) ---- */

onx_status onxi_retarget_check_ir(onxi_retarget *r, const onx_model *model);
onx_status onxi_retarget_apply(onxi_retarget *r, onx_model *model);

#endif
