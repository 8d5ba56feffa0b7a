/* simplify.h - a model while it is simplified: the values and nodes of its graphs by number, so that a value takes the
 * place of another one in constant time, and what the passes share. See docs/notes/transform.md. */
#ifndef ONXI_SIMPLIFY_H
#define ONXI_SIMPLIFY_H

#include "infer/infer.h"
#include "rewrite/rewrite.h"
#include "transform/transform.h"

#define ONXI_S_NONE ONXI_REWRITE_NONE /* no value, no op, no scope */

/* The passes of `onx simplify`, in the order of their rows; bits of onxi_simplify.passes. */
typedef enum onxi_simplify_pass {
#define PASS(id, name, summary, effect) ONXI_SIMPLIFY_##id,
#include "simplify/simplify_passes.def"
    ONXI_SIMPLIFY_COUNT
} onxi_simplify_pass;
extern const char *const onxi_simplify_names[ONXI_SIMPLIFY_COUNT];

typedef struct onxi_svalue {
    onx_bytes name, was;      /* now, and in the document */
    uint32_t maker;           /* 1 + op, 0: an input, an initializer, or of the graph that encloses a function */
    uint32_t scope;           /* that binds it */
    uint32_t uses;            /* as inputs and graph outputs */
    uint32_t is_output;       /* of how many graphs */
    uint32_t alias;           /* the value that took its place; NONE: itself */
    const onx_tensor *tensor; /* what it always is; NULL: not known, or not constant */
    const onxi_infer_fact *fact;
    bool pinned;      /* keeps its name, and is always there */
    bool initializer; /* in the list of its graph */
    bool made;        /* `tensor` is to be written as an initializer or node Constant */
    bool shares_name; /* something before it has the same one, in another graph */
    bool defined;     /* by its scope; false: it has a reader that does not know where it comes from */
} onxi_svalue;

typedef struct onxi_sop {
    onx_node *node;
    const onxi_bound *bound;
    onxi_attrs attrs;
    uint32_t *inputs, *outputs; /* values; NONE: omitted */
    uint32_t input_count, output_count;
    uint32_t scope, next;                      /* next op of the scope in order; NONE */
    uint32_t first_scope;                      /* of its subgraphs; NONE */
    uint32_t index;                            /* in the list of its graph */
    bool dead, rewritten, opaque, bound_attrs; /* rewritten: its inputs are not those of the node any more;
                                                  opaque: only what holds of every node is known of it */
} onxi_sop;

typedef struct onxi_sscope {
    onx_graph *graph;                /* NULL: of a function */
    onx_function *function;          /* NULL: a graph */
    uint32_t parent, holder;         /* op of the parent; NONE */
    uint32_t sibling;                /* another scope of the holder; NONE */
    uint32_t first, last;            /* ops */
    uint32_t first_value, end_value; /* that were there when it was read, those of its subgraphs included */
    uint32_t *inputs, *outputs;
    uint32_t input_count, output_count;
    onxi_infer_result *types; /* NULL: nothing is known */
    onx_str prefix;           /* of paths */
    bool gone;                /* its nodes are in the enclosing graph now, or nowhere */
} onxi_sscope;

/* One graph of the model with its subgraphs, or the body of a function. */
typedef struct onxi_simplify {
    onx_ctx *cx;
    onx_doc *doc;
    onx_model *model;
    onx_arena *arena;   /* of the document */
    onx_arena *scratch; /* of this round */
    const onx_simplify_options *options;
    uint32_t passes; /* bit per pass */
    uint64_t limit;  /* bytes of a constant that is folded */
    onxi_names *names;
    onxi_rewrites *rules;
    onx_infer *infer;   /* NULL: nothing is known of types */
    onxi_dict *keep;    /* names that must stay */
    onxi_binder binder; /* of this body */
    int64_t opset;      /* of the default domain */
    bool nodes_only;    /* constants are nodes: of functions */
    onxi_svalue *values;
    onxi_sop *ops;
    onxi_sscope *scopes;
    uint32_t value_count, value_room, op_count, op_room, scope_count, scope_room;
    uint32_t *stack; /* ops to look at (onxi_simplify_drop) */
    uint32_t stack_room;
    uint32_t depth;
    onxi_dict bound; /* what each name is where the graph is read */
    struct {
        uint32_t entry, value;
    } * undo; /* what names were in the enclosing graphs */
    uint32_t undo_count, undo_room;
    const char *broken; /* why the graph is left as it is; NULL: it is understood */
    onx_str broken_name;
    uint32_t previous; /* the op before the one that is looked at, in its scope; NONE */
    uint64_t pool;     /* bytes that constants may take because others went before */
    uint64_t held;     /* bytes of constants that are not computed, as the model would grow */
    uint32_t held_count;
    uint64_t computed; /* bytes of weights that were made beside those that stay, in files or for others */
    bool changed;
} onxi_simplify;

/* ---- body.c: reading ---- */

onx_status onxi_simplify_read_graph(onxi_simplify *s, onx_graph *graph, onx_str prefix);
onx_status onxi_simplify_read_function(onxi_simplify *s, onx_function *function, onx_str prefix);

/* ---- change.c ---- */

/* The value that replaces it now. */
uint32_t onxi_simplify_value(onxi_simplify *s, uint32_t value);
static inline uint32_t onxi_simplify_input(onxi_simplify *s, const onxi_sop *op, uint32_t i)
{
    return i < op->input_count && op->inputs[i] != ONXI_S_NONE ? onxi_simplify_value(s, op->inputs[i]) : ONXI_S_NONE;
}
/* Is the op of that operator, known with its attributes, and alive? */
bool onxi_simplify_is(onxi_simplify *s, const onxi_sop *op, onxi_op_id id);
/* Its attributes are read on request; false: they are not understood. */
bool onxi_simplify_attrs(onxi_simplify *s, onxi_sop *op);
/* The op that makes the value, alive, in the graph of `near`, of that operator; NULL: none. */
onxi_sop *onxi_simplify_maker(onxi_simplify *s, const onxi_sop *near, uint32_t value, onxi_op_id id);
/* Is it an intermediate value, with no other reader? */
bool onxi_simplify_is_private(const onxi_simplify *s, uint32_t value);
/* Value `y` of the op is `x` from now on. False: it has to stay, because its name does. */
bool onxi_simplify_hand_on(onxi_simplify *s, uint32_t op, uint32_t y, uint32_t x);
/* Can it? */
bool onxi_simplify_can_hand_on(onxi_simplify *s, uint32_t y, uint32_t x);
/* The op is removed if its outputs are unused, and then what it needed. */
onx_status onxi_simplify_drop(onxi_simplify *s, uint32_t op);
/* Input i of the op is another value. */
onx_status onxi_simplify_set_input(onxi_simplify *s, uint32_t op, uint32_t i, uint32_t value);
/* The op has these inputs. */
onx_status onxi_simplify_set_inputs(onxi_simplify *s, uint32_t op, const uint32_t *inputs, uint32_t count);
/* The op becomes another operator of the default domain with these attributes, which are shared; they may be NULL. */
onx_status onxi_simplify_become(onxi_simplify *s, uint32_t op, const char *op_type, onx_attribute **attributes,
                                uint32_t count);
/* A new op before `at` in its scope, of the default domain; NONE: out of memory. */
uint32_t onxi_simplify_add(onxi_simplify *s, uint32_t at, const char *op_type, uint32_t input, uint32_t output);
/* A constant, named after a value; the tensor lives in the arena of the document. NONE: out of memory. */
uint32_t onxi_simplify_constant(onxi_simplify *s, uint32_t scope, onx_str base, const char *part, onx_tensor *tensor);
uint32_t onxi_simplify_ints(onxi_simplify *s, uint32_t scope, onx_str base, const char *part, const int64_t *list,
                            uint32_t rank, uint32_t count);
/* What the op makes is this constant. */
onx_status onxi_simplify_settle(onxi_simplify *s, uint32_t op, uint32_t value, const onx_tensor *tensor);
/* Reports what was done. */
void onxi_simplify_note(onxi_simplify *s, onxi_simplify_pass pass, const char *rule, uint32_t op, const char *format,
                        ...) ONX_PRINTF(5, 6);
static inline bool onxi_simplify_wants(const onxi_simplify *s, onxi_simplify_pass pass)
{
    return s->passes >> pass & 1;
}

/* ---- look.c: what is known of values ---- */

/* The type of a tensor of known rank. */
bool onxi_simplify_type(onxi_simplify *s, uint32_t value, onxi_type *out);
bool onxi_simplify_same_type(onxi_simplify *s, uint32_t a, uint32_t b);
int onxi_simplify_dtype(onxi_simplify *s, uint32_t value);
/* Elements of a constant; false where it is none, or has more than `most`, or they cannot be read. */
bool onxi_simplify_get_ints(onxi_simplify *s, uint32_t value, int64_t *out, uint32_t most, uint32_t *count);
bool onxi_simplify_get_numbers(onxi_simplify *s, uint32_t value, double *out, uint64_t most, uint64_t *count);
/* The elements as far as they are known as dimensions, or NULL. */
const onxi_known_ints *onxi_simplify_known(onxi_simplify *s, uint32_t value);
/* The list that is an attribute, or in later versions an input; false: it is not known. *count 0 where there is none.
 */
bool onxi_simplify_list(onxi_simplify *s, onxi_sop *op, const char *name, uint32_t input, int64_t *out, uint32_t most,
                        uint32_t *count);
bool onxi_simplify_elements(const onx_tensor *tensor, uint64_t *bytes);
/* Bytes of the model that its constants and nodes take, about. */
uint64_t onxi_simplify_bytes(onxi_simplify *s);

/* ---- the passes; each looks at one op ---- */

onx_status onxi_simplify_shape(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_identity(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_merge(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_control(onxi_simplify *s, uint32_t op);
onx_status onxi_simplify_affine(onxi_simplify *s, uint32_t op);
/* ---- and those that look at all ---- */
onx_status onxi_simplify_repeats(onxi_simplify *s);
onx_status onxi_simplify_fuse(onxi_simplify *s);
onx_status onxi_simplify_fold(onxi_simplify *s);

/* ---- model.c: of the whole model ---- */

/* Shapes and dimensions that the caller fixes. */
onx_status onxi_simplify_fix(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options);
/* Functions that nothing calls, and imports that no node needs. */
onx_status onxi_simplify_unused(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options);

/* ---- write.c ---- */

onx_status onxi_simplify_write(onxi_simplify *s);

#endif
