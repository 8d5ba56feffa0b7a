/* simplify.h - a model while it is simplified: values and nodes of its graphs are numbered, so that replacing a value
 * takes constant time; and helpers that the passes share. See docs/notes/transform.md. */
#ifndef ONXI_SIMPLIFY_H
#define ONXI_SIMPLIFY_H

#include "infer/infer.h"
#include "rewrite/rewrite.h"
#include "transform/transform.h"

#define ONXI_S_NONE ONXI_REWRITE_NONE /* no value, no op, no scope */

/* The passes of `onx simplify`, in the order of their rows; bit numbers of onxi_simplify.passes. */
typedef enum onxi_simplify_pass {
#define PASS(id, name, summary, effect) ONXI_SIMPLIFY_##id,
#include "simplify/simplify_passes.def"
    ONXI_SIMPLIFY_COUNT
} onxi_simplify_pass;
extern const char *const onxi_simplify_names[ONXI_SIMPLIFY_COUNT];

typedef struct onxi_svalue {
    onx_bytes name, was;      /* current name, and name in the document */
    uint32_t maker;           /* 1 + op, 0: an input, an initializer, or a value of the graph around a function call */
    uint32_t scope;           /* the scope that defines it */
    uint32_t uses;            /* number of uses as node input and graph output */
    uint32_t is_output;       /* number of graphs that have it as an output */
    uint32_t alias;           /* the value that replaced it; NONE: not replaced */
    const onx_tensor *tensor; /* its constant value; NULL: not known, or not constant */
    const onxi_infer_fact *fact;
    bool pinned;      /* keeps its name, and must exist */
    bool initializer; /* in the initializer list of its graph */
    bool made;        /* `tensor` has to be written as an initializer or Constant node */
    bool shares_name; /* an earlier value in another graph has the same name */
    bool defined;     /* defined in its scope; false: it is only read, and its definition is unknown */
    bool ranged;      /* low and high are set: the bounds of the elements of the constant that are not NaN */
    double low, high;
} onxi_svalue;

typedef struct onxi_sop {
    onx_node *node;
    const onxi_bound *bound;
    onxi_attrs attrs;
    uint32_t *inputs, *outputs; /* values; NONE: omitted */
    uint32_t input_count, output_count;
    uint32_t scope, next;                      /* next op of the scope in order; NONE */
    uint32_t first_scope;                      /* first of its subgraphs; NONE */
    uint32_t index;                            /* index in the node list of its graph */
    bool dead, rewritten, opaque, bound_attrs; /* rewritten: its inputs differ from those of the node;
                                                  opaque: the operator is unknown or its attributes are invalid */
} onxi_sop;

typedef struct onxi_sscope {
    onx_graph *graph;                /* NULL: the body of a function */
    onx_function *function;          /* NULL: a graph */
    uint32_t parent, holder;         /* holder: the op of the parent that contains it; NONE */
    uint32_t sibling;                /* the next scope of the same op; NONE */
    uint32_t first, last;            /* first and last op */
    uint32_t first_value, end_value; /* range of values that existed after reading, including those of its subgraphs */
    uint32_t *inputs, *outputs;
    uint32_t input_count, output_count;
    onxi_infer_result *types; /* NULL: types are unknown */
    onx_str prefix;           /* prefix of its paths */
    bool gone;                /* its nodes were moved to the enclosing graph, or removed */
} onxi_sscope;

/* One graph of the model with its subgraphs, or the body of a function. */
typedef struct onxi_simplify {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    onx_arena *arena;   /* of the document */
    onx_arena *scratch; /* of the current round */
    const onx_simplify_options *options;
    uint32_t passes; /* bit per pass */
    uint64_t limit;  /* maximum size in bytes of a folded constant */
    onxi_names *names;
    onxi_rewrites *rules;
    onx_infer *infer;   /* NULL: types are unknown */
    onxi_dict *keep;    /* names that must be kept */
    onxi_binder binder; /* for this body */
    int64_t opset;      /* version of the default domain */
    bool nodes_only;    /* a function: constants have to be Constant nodes */
    onxi_svalue *values;
    onxi_sop *ops;
    onxi_sscope *scopes;
    uint32_t value_count, value_room, op_count, op_room, scope_count, scope_room;
    uint32_t *stack; /* ops to visit (onxi_simplify_drop) */
    uint32_t stack_room;
    uint32_t depth;
    onxi_dict bound; /* name to value in the graph that is being read */
    struct {
        uint32_t entry, value;
    } * undo; /* bindings of names in the enclosing graphs */
    uint32_t undo_count, undo_room;
    const char *broken; /* why the graph cannot be changed; NULL: it can */
    onx_str broken_name;
    uint32_t previous; /* the op before the current one in its scope; NONE */
    uint64_t pool;     /* bytes of removed constants, which new constants may use */
    uint64_t held;     /* bytes of constants that were not computed because the model would grow */
    uint32_t held_count;
    uint64_t computed; /* bytes of new weights whose old version stays, in files or for other readers */
    bool changed;
} onxi_simplify;

/* ---- body.c: reading ---- */

onx_status onxi_simplify_read_graph(onxi_simplify *s, onx_graph *graph, onx_str prefix);
onx_status onxi_simplify_read_function(onxi_simplify *s, onx_function *function, onx_str prefix);

/* ---- change.c ---- */

/* The value that currently replaces it. */
uint32_t onxi_simplify_value(onxi_simplify *s, uint32_t value);
static inline uint32_t onxi_simplify_input(onxi_simplify *s, const onxi_sop *op, uint32_t i)
{
    return i < op->input_count && op->inputs[i] != ONXI_S_NONE ? onxi_simplify_value(s, op->inputs[i]) : ONXI_S_NONE;
}
/* Is the op alive, and an instance of that operator with known attributes? */
bool onxi_simplify_is(onxi_simplify *s, const onxi_sop *op, onxi_op_id id);
/* Attributes are bound on request; false if they are invalid. */
bool onxi_simplify_attrs(onxi_simplify *s, onxi_sop *op);
/* The live op that produces the value in the graph of `near`, if it is an instance of that operator; NULL: none. */
onxi_sop *onxi_simplify_maker(onxi_simplify *s, const onxi_sop *near, uint32_t value, onxi_op_id id);
/* Is it an inner value with only one reader? */
bool onxi_simplify_is_private(const onxi_simplify *s, uint32_t value);
/* Replaces value `y` of the op by `x`. False if it has to stay because its name has to. */
bool onxi_simplify_hand_on(onxi_simplify *s, uint32_t op, uint32_t y, uint32_t x);
/* Can it be replaced? */
bool onxi_simplify_can_hand_on(onxi_simplify *s, uint32_t y, uint32_t x);
/* Removes the op if its outputs are unused, and then the ops that only it needed. */
onx_status onxi_simplify_drop(onxi_simplify *s, uint32_t op);
/* Replaces input i of the op. */
onx_status onxi_simplify_set_input(onxi_simplify *s, uint32_t op, uint32_t i, uint32_t value);
/* Replaces all inputs of the op. */
onx_status onxi_simplify_set_inputs(onxi_simplify *s, uint32_t op, const uint32_t *inputs, uint32_t count);
/* Turns the op into another operator of the default domain with these attributes, which are shared and may be NULL. */
onx_status onxi_simplify_become(onxi_simplify *s, uint32_t op, const char *op_type, onx_attribute **attributes,
                                uint32_t count);
/* Inserts an op of the default domain before `at` in its scope; NONE: out of memory. */
uint32_t onxi_simplify_add(onxi_simplify *s, uint32_t at, const char *op_type, uint32_t input, uint32_t output);
/* A new constant with a name derived from a value; the tensor is in the document's arena. NONE: out of memory. */
uint32_t onxi_simplify_constant(onxi_simplify *s, uint32_t scope, onx_str base, const char *part, onx_tensor *tensor);
uint32_t onxi_simplify_ints(onxi_simplify *s, uint32_t scope, onx_str base, const char *part, const int64_t *list,
                            uint32_t rank, uint32_t count);
/* Replaces the output of the op by this constant. */
onx_status onxi_simplify_settle(onxi_simplify *s, uint32_t op, uint32_t value, const onx_tensor *tensor);
/* Reports a change. */
void onxi_simplify_note(onxi_simplify *s, onxi_simplify_pass pass, const char *rule, uint32_t op, const char *format,
                        ...) ONX_PRINTF(5, 6);
static inline bool onxi_simplify_wants(const onxi_simplify *s, onxi_simplify_pass pass)
{
    return s->passes >> pass & 1;
}

/* ---- look.c: known properties of values ---- */

/* The type of a tensor of known rank. */
bool onxi_simplify_type(onxi_simplify *s, uint32_t value, onxi_type *out);
bool onxi_simplify_same_type(onxi_simplify *s, uint32_t a, uint32_t b);
int onxi_simplify_dtype(onxi_simplify *s, uint32_t value);
/* Elements of a constant; false if it is not constant, has more than `most`, or cannot be read. */
bool onxi_simplify_get_ints(onxi_simplify *s, uint32_t value, int64_t *out, uint32_t most, uint32_t *count);
bool onxi_simplify_get_numbers(onxi_simplify *s, uint32_t value, double *out, uint64_t most, uint64_t *count);
/* The elements that inference knows, as dimensions, or NULL. */
const onxi_known_ints *onxi_simplify_known(onxi_simplify *s, uint32_t value);
/* A list that is an attribute or, in later versions, an input; false if it is unknown. *count is 0 if it is absent. */
bool onxi_simplify_list(onxi_simplify *s, onxi_sop *op, const char *name, uint32_t input, int64_t *out, uint32_t most,
                        uint32_t *count);
bool onxi_simplify_elements(const onx_tensor *tensor, uint64_t *bytes);
/* The approximate size in bytes of the model's constants and nodes. */
uint64_t onxi_simplify_bytes(onxi_simplify *s);

/* ---- range.c ---- */

/* Is it known that no element is -inf? Looks at a bounded number of nodes. */
bool onxi_simplify_is_bounded(onxi_simplify *s, uint32_t value);

/* ---- passes that visit one op at a time ---- */

onx_status onxi_simplify_shape(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_identity(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_merge(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_control(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_affine(onxi_simplify *s, uint32_t op);
/* ---- passes that visit all ops ---- */
onx_status onxi_simplify_repeats(onxi_simplify *s);
onx_status onxi_simplify_fuse(onxi_simplify *s);
onx_status onxi_simplify_fold(onxi_simplify *s);

/* ---- model.c: passes over the whole model ---- */

/* Sets the shapes and dimensions that the caller fixes. */
onx_status onxi_simplify_fix(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options);
/* Makes inputs with a default constants. */
onx_status onxi_simplify_freeze(onx_ctx *cx, onx_doc *doc);
/* Removes functions that are never called, and imports that no node needs. */
onx_status onxi_simplify_unused(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options);

/* ---- write.c ---- */

onx_status onxi_simplify_write(onxi_simplify *s);

#endif
