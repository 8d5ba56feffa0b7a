/* op.h - the operator registry: one row per operator version, with its type and shape inference rule. See
 * docs/notes/operators.md. */
#ifndef ONXI_OP_H
#define ONXI_OP_H

#include <onx/ir.h>
#include <onx/op.h>
#include <onx/value.h>

#include "base/base.h"
#include "dim/dim.h"
#include "ir/ir.h"

/* ---- the built-in operators ---- */

/* Numbers of operators: ONXI_ID_Conv and so on; ONXI_ID_NONE: not built in. After a node is bound, its op_type string
 * is not compared any more. The operators of the standard come first, then those of each domain with a folder of its
 * own. */
typedef enum onxi_op_id {
    ONXI_ID_NONE,
#define OPERATOR(domain, name, family, traits, summary)            ONXI_ID_##name,
#define OPERATOR_AS(symbol, domain, name, family, traits, summary) ONXI_ID_##symbol,
#include "op/operators.def"
    ONXI_ID_END
} onxi_op_id;

/* Properties of an operator in all its versions, so that code for many operators needs no lists: flags of the rows of
 * operators.def. A test verifies them. */
enum {
    ONXI_TRAIT_ELEMENTWISE = 1,   /* an output element is computed from the input elements at the same position, with
                                   * broadcasting: since version 7 aligned at the last axis */
    ONXI_TRAIT_KEEPS_AXES = 2,    /* axis i of output 0 corresponds to axis i of input 0 */
    ONXI_TRAIT_REDUCTION = 4,     /* with keepdims, axis i of the output corresponds to axis i of input 0, or has size
                                   * 1 */
    ONXI_TRAIT_WINDOW = 8,        /* an output element is computed from a window of the spatial axes of input 0 */
    ONXI_TRAIT_CHANNELS = 16,     /* the axes of input 0 are batch, channels, then spatial axes */
    ONXI_TRAIT_NAMES_VALUES = 32, /* its string attributes are names of values in the graph around the node */
    ONXI_TRAIT_PLACES = 64,       /* input 1 gives positions in input 0: boxes, a grid */
    ONXI_TRAIT_SHAPE = 128,       /* the output depends on the size of the input only, not on its elements */
    ONXI_TRAIT_BITS = 256,   /* the output depends on the type of numbers or on their bits, not only on the numbers */
    ONXI_TRAIT_DEVICE = 512, /* other runtimes have it for accelerators; there is no kernel */
    ONXI_TRAIT_COMPILED = 1024, /* it holds a program that was compiled for a device */
    ONXI_TRAIT_PARTLY = 2048    /* calls that its body does not cover are for accelerators */
};

/* ---- types, as inference rules use them ---- */

typedef enum onxi_type_kind {
    ONXI_TYPE_NONE, /* nothing is known */
    ONXI_TYPE_TENSOR,
    ONXI_TYPE_SPARSE_TENSOR,
    ONXI_TYPE_SEQUENCE,
    ONXI_TYPE_OPTIONAL,
    ONXI_TYPE_MAP,
    ONXI_TYPE_OPAQUE
} onxi_type_kind;

typedef struct onxi_opaque {
    onx_str domain, name;
} onxi_opaque;

typedef struct onxi_type {
    uint8_t kind;  /* onxi_type_kind */
    uint8_t dtype; /* element type of tensors, key type of maps; ONX_UNDEFINED: unknown */
    bool ranked;   /* tensors: rank and dims are known */
    uint32_t rank;
    onxi_dim *dims;                   /* `rank` dims; in the arena of the call */
    const struct onxi_type *inner;    /* element type of sequences and optionals, value type of maps */
    const struct onxi_opaque *opaque; /* domain and name of an opaque type */
} onxi_type;

/* A value known during inference: the elements of an integer tensor as dimensions. For rank above 1 they are in
 * row-major order, and the type has the sizes. */
typedef struct onxi_known_ints {
    uint32_t rank;
    uint32_t count;
    bool floored; /* the elements are the floors of floating-point values, such as H/2, which are rounded down next */
    const onxi_dim *elements;
} onxi_known_ints;

/* ---- values of attributes ---- */

/* The value of an attribute for a node: from the node (or the caller of the enclosing function), else the default of
 * the schema row. docs/notes/bind.md */
typedef struct onxi_attr_value {
    onx_str name;
    uint8_t type;   /* an onx_attribute_type; ONX_ATTR_UNDEFINED: neither given nor defaulted */
    bool given;     /* by the node */
    uint32_t count; /* elements of a list */
    union {
        int64_t i;
        float f;
        onx_str s;
        const onx_tensor *t;
        const onx_sparse_tensor *sparse;
        const onx_graph *g;
        const onx_type *tp;
        const void *list; /* int64_t, float, onx_bytes and so on; NULL if empty */
    };
    const onx_attribute *source; /* the attribute it comes from; NULL: a default */
} onxi_attr_value;

/* The attribute values of one node: those of its schema row in the order of the row; if there is no row, or the row is
 * open, those that the node gives. */
typedef struct onxi_attrs {
    const onxi_attr_value *values;
    uint32_t count;
} onxi_attrs;
/* The attribute of that name; NULL if neither the row nor the node has it. */
const onxi_attr_value *onxi_attrs_find(const onxi_attrs *attrs, const char *name);
/* The same; also NULL if its value is of another type. */
const onxi_attr_value *onxi_attrs_get(const onxi_attrs *attrs, const char *name, onx_attribute_type type);
/* The integer value, 0 if there is none. Defaults come from the row, so callers do not repeat them. */
int64_t onxi_attrs_int(const onxi_attrs *attrs, const char *name);
float onxi_attrs_float(const onxi_attrs *attrs, const char *name);
bool onxi_attrs_given(const onxi_attrs *attrs, const char *name); /* given by the node */
/* The default of list entries of window operators if the list is omitted: 1 for strides and dilations, 0 for pads and
 * output_padding. */
int64_t onxi_attr_implied(const char *name);
/* ---- a node being inferred: everything that a rule may read or set ---- */

typedef struct onxi_call {
    const struct onxi_schema *schema;
    onxi_op_id op; /* for built-in operators */
    const onx_node *node;
    const onxi_attrs *attrs;
    const char *misread; /* a rule has read this attribute, which has no value */
    int64_t opset;       /* the imported version of the node's domain */
    onxi_dims *dims;     /* NULL in a session in which all shapes are concrete */
    onx_arena *arena;    /* for data that the rule allocates */
    uint32_t input_count, output_count;
    const onxi_type *const *inputs; /* NULL entries: omitted; kind NONE: unknown */
    onxi_type *outputs;             /* of kind NONE initially; the rule sets what can be known */
    onxi_known_ints *output_values; /* elements are NULL initially; set by data propagation. NULL: not needed */
    const struct onxi_call_ops *ops;
    void *engine; /* for ops */
    onx_doc *doc; /* the document that external data belongs to; NULL: none */
    /* Set by a rule for the next subgraph that it infers: whether it is never executed, and storage for the values of
     * its outputs, or NULL. */
    bool unreachable;
    onxi_known_ints *subgraph_values;
    /* The node is about to run, and its kernels rely on the rule. Problems that inference tolerates, because the
     * reference implementation does, are then errors. All types are known in this case. */
    bool running;
    uint32_t value_limit; /* maximum number of elements of propagated values; 0: ONXI_KNOWN_INTS_LIMIT */
} onxi_call;

/* Services of the engine that calls a rule. */
typedef struct onxi_call_ops {
    /* The known elements of an integer input, or NULL. */
    const onxi_known_ints *(*value)(onxi_call *call, uint32_t input);
    /* The constant tensor of an input (initializer, Constant, or the actual tensor at run time), or NULL. */
    const onx_tensor *(*constant)(onxi_call *call, uint32_t input);
    /* Infers a subgraph of the node for the given input types; the types of its outputs are stored in `outputs`. */
    onx_status (*subgraph)(onxi_call *call, const onx_graph *graph, const onxi_type *inputs, uint32_t input_count,
                           onxi_type *outputs, uint32_t output_count);
    /* The type in a type attribute, with dimensions of this call. */
    onx_status (*type)(onxi_call *call, const onx_type *type, onxi_type *out);
    /* The built-in operator that a node in one of its subgraphs names. */
    onxi_op_id (*which)(onxi_call *call, const onx_node *node);
    /* Records why the node cannot be inferred; returns ONX_E_INVALID, so that rules `return onxi_call_fail(...)`. */
    onx_status (*fail)(onxi_call *call, const char *format, va_list args);
} onxi_call_ops;

/* A rule returns ONX_OK even if it cannot set anything; an invalid node is reported with onxi_call_fail. */
typedef onx_status (*onxi_rule_fn)(onxi_call *call);

/* ---- helper functions for rules (op_call.c) ---- */

/* Infers the node: sets the output types that follow from the schema (from a constraint that an input binds, or a fixed
 * type), then calls the rule of the row. Engines call rules through this function. */
onx_status onxi_call_run(onxi_call *call);
/* Only the first part, for a node whose attributes leave nothing to infer for the rule. */
void onxi_call_preset(onxi_call *call);

onx_status onxi_call_fail(onxi_call *call, const char *format, ...) ONX_PRINTF(2, 3);

/* Attributes: the node's value, else the schema's default. If there may be neither, or the version may lack the
 * attribute, the rule has to check first: reading it is a bug of the rule, and fails. */
bool onxi_call_given(onxi_call *call, const char *name); /* by the node */
int64_t onxi_call_int(onxi_call *call, const char *name);
/* The integer is present and not 0: for flags that a version may lack, or that have no default. */
bool onxi_call_is_set(onxi_call *call, const char *name);
float onxi_call_float(onxi_call *call, const char *name);
onx_str onxi_call_text(onxi_call *call, const char *name);
bool onxi_call_text_is(onxi_call *call, const char *name, const char *text);
/* The following return NULL, with *count 0, if there is no value, and for empty lists. */
const int64_t *onxi_call_ints(onxi_call *call, const char *name, uint32_t *count);
const float *onxi_call_floats(onxi_call *call, const char *name, uint32_t *count);
/* Integers as dimensions. */
const onxi_dim *onxi_call_dims(onxi_call *call, const char *name, uint32_t *count);
/* The number of elements of a list attribute of any type; 0 if absent. */
uint32_t onxi_call_list_count(onxi_call *call, const char *name);
const onx_graph *onxi_call_graph(onxi_call *call, const char *name);
const onx_tensor *onxi_call_attr_tensor(onxi_call *call, const char *name);
/* An attribute of any type; NULL if there is no value. */
const onxi_attr_value *onxi_call_attr(onxi_call *call, const char *name);

/* Inputs. */
#define ONXI_NO_INPUT UINT32_MAX /* for functions with the index of an input that not all operators have */
bool onxi_call_has_input(const onxi_call *call, uint32_t input);    /* not omitted */
const onxi_type *onxi_call_tensor(onxi_call *call, uint32_t input); /* its type if it is a tensor, else NULL */
/* ... of known rank up to ONX_RANK_MAX, else NULL, so that the work of rules is bounded */
const onxi_type *onxi_call_ranked(onxi_call *call, uint32_t input);
int onxi_call_dtype(const onxi_call *call, uint32_t input); /* its element type or ONX_UNDEFINED */
/* Fails if the input is known to have another rank. */
onx_status onxi_call_want_rank(onxi_call *call, uint32_t input, uint32_t rank);
onx_status onxi_call_want_least_rank(onxi_call *call, uint32_t input, uint32_t rank);
/* Fails if the input is known to have another rank or other sizes; ONXI_DIM_UNKNOWN matches any size. An omitted input
 * matches. */
onx_status onxi_call_want_dims(onxi_call *call, uint32_t input, uint32_t rank, const onxi_dim *dims);
/* The same for rank 1. */
onx_status onxi_call_want_vector(onxi_call *call, uint32_t input, onxi_dim length);
/* Fails if axis `axis` of the input is known to have another size; the axis has to exist. */
onx_status onxi_call_want_dim(onxi_call *call, uint32_t input, uint32_t axis, onxi_dim dim);
/* Fails if the input cannot be broadcast to `shape` without changing `shape`. */
onx_status onxi_call_want_one_way(onxi_call *call, uint32_t input, uint32_t rank, const onxi_dim *shape);
/* The elements of an integer input of rank 0 or 1, or NULL if nothing is known. */
const onxi_known_ints *onxi_call_value(onxi_call *call, uint32_t input);
/* The same if only the floors are known, which are not below 0. The functions above do not return such values. */
const onxi_known_ints *onxi_call_floored_value(onxi_call *call, uint32_t input);
/* The same of any rank. */
const onxi_known_ints *onxi_call_any_value(onxi_call *call, uint32_t input);
/* Like onxi_call_value for an input that is a shape: if only its length is known, returns that many unknown
 * elements. */
const onxi_known_ints *onxi_call_shape_value(onxi_call *call, uint32_t input);
/* The single constant integer in an input; false if it is not known. */
bool onxi_call_const_int(onxi_call *call, uint32_t input, int64_t *out);
/* A list of constant integers from an input or, in versions that had it there, from the attribute; NULL if not
 * known. */
const int64_t *onxi_call_const_ints(onxi_call *call, uint32_t input, uint32_t *count);

/* Outputs. Those beyond output_count may be set as well, and are ignored. */
bool onxi_call_wants_output(const onxi_call *call, uint32_t i); /* the node names it */
/* A tensor of `rank` unknown dims, returned in *dims_out to be set; the element type comes from the schema. */
onx_status onxi_call_shape(onxi_call *call, uint32_t i, uint32_t rank, onxi_dim **dims_out);
/* The same with an element type. Fails above ONX_RANK_MAX, the limit of the runner. */
onx_status onxi_call_output(onxi_call *call, uint32_t i, int dtype, uint32_t rank, onxi_dim **dims_out);
void onxi_call_output_unranked(onxi_call *call, uint32_t i, int dtype);
/* A tensor of this shape (NULL or unranked: unknown); the element type comes from the schema. */
void onxi_call_shape_of(onxi_call *call, uint32_t i, const onxi_type *shape);
/* Gives output `i` the same type as input `input`. */
void onxi_call_same(onxi_call *call, uint32_t i, uint32_t input);
/* Allocates the propagated value of output `i`, with all elements unknown; NULL when out of memory or too large. */
onxi_dim *onxi_call_set_value(onxi_call *call, uint32_t i, uint32_t rank, uint32_t count);
/* Output `i` has this propagated value, whose elements live as long as the call's arena. */
void onxi_call_carry(onxi_call *call, uint32_t i, onxi_known_ints value);

/* Dimensions. */
/* Makes an axis in -rank <= axis < rank non-negative; fails, with the numbers, otherwise. */
onx_status onxi_call_axis(onxi_call *call, int64_t axis, uint32_t rank, uint32_t *out);
/* Broadcasts two dims; fails if they are different constants other than 1. */
onx_status onxi_call_broadcast(onxi_call *call, onxi_dim a, onxi_dim b, onxi_dim *out);
/* Unifies two dims that have to be equal: returns the more specific one; fails if they are different constants. `what`
 * names them in messages. */
onx_status onxi_call_unify(onxi_call *call, onxi_dim a, onxi_dim b, const char *what, onxi_dim *out);
/* The product of two dims; fails if both are constant and it overflows. `what` names it in messages. */
onx_status onxi_call_times(onxi_call *call, onxi_dim a, onxi_dim b, const char *what, onxi_dim *out);
/* The product of dims[first..last-1]. */
onxi_dim onxi_call_product(onxi_call *call, const onxi_dim *dims, uint32_t first, uint32_t last);

/* The maximum number of elements of a propagated integer tensor. */
enum { ONXI_KNOWN_INTS_LIMIT = 4096 };
/* The elements of a constant integer tensor in `arena`; false if it is not constant, too long or unreadable. Rank 0 or
 * 1 may also be floating point with integral elements; for higher ranks only the types of sizes and indices are
 * read. */
bool onxi_known_ints_of_tensor(onx_doc *doc, onx_arena *arena, const onx_tensor *tensor, onxi_known_ints *out);

/* ---- schema rows ---- */

/* A set of types: the allowed element types per structure. Bit n is onx_dtype n. */
typedef struct onxi_type_set {
    uint32_t tensor, sparse_tensor, seq, optional,
        optional_seq; /* tensor(T), sparse_tensor(T), seq(tensor(T)), optional(tensor(T)), optional(seq(tensor(T))) */
    const char
        *other; /* further types as text, separated by spaces: "map(string,tensor(float)) seq(map(...))"; NULL: none */
} onxi_type_set;

typedef struct onxi_type_constraint {
    const char *name; /* "T"; NULL ends the list */
    onxi_type_set set;
} onxi_type_constraint;

typedef onx_op_port onxi_port;      /* a list ends with a NULL name */
typedef onx_op_attribute onxi_attr; /* the same */

enum {
    ONXI_PORT_OPTIONAL = ONX_PORT_OPTIONAL,
    ONXI_PORT_VARIADIC = ONX_PORT_VARIADIC,
    ONXI_PORT_HETEROGENEOUS = ONX_PORT_HETEROGENEOUS,
    ONXI_PORT_DIFF = ONX_PORT_DIFF,
    ONXI_PORT_NONDIFF = ONX_PORT_NONDIFF,
    ONXI_PORT_ARITY_0 = ONX_PORT_ARITY_0
};

enum {
    ONXI_OP_EXPERIMENTAL = ONX_OP_EXPERIMENTAL,
    ONXI_OP_DEPRECATED = ONX_OP_DEPRECATED,
    ONXI_OP_FUNCTION = ONX_OP_FUNCTION,
    ONXI_OP_CONTEXT_FUNCTION = ONX_OP_CONTEXT_FUNCTION,
    ONXI_OP_INFERS = ONX_OP_INFERS,
    ONXI_OP_PROPAGATES = ONX_OP_PROPAGATES,
    ONXI_OP_NONDETERMINISTIC = ONX_OP_NONDETERMINISTIC,
    ONXI_OP_DETERMINISM_UNKNOWN = ONX_OP_DETERMINISM_UNKNOWN,
    ONXI_OP_OPEN = ONX_OP_OPEN
};

#define ONXI_MANY ONX_OP_MANY /* for max_input, max_output: unlimited */
static inline bool onxi_arity_fits(uint32_t count, uint32_t least, uint32_t most)
{
    return count >= least && (most == ONXI_MANY || count <= most);
}

/* A part of an operator's function body: nodes in ONNX text, in which the names of the row's inputs, outputs and
 * attributes are used. The body consists of the parts whose conditions hold. */
typedef struct onxi_body_part {
    bool (*when)(onxi_call *call); /* may read attributes and which inputs are present; NULL: always */
    const char *nodes;             /* NULL ends the list */
} onxi_body_part;

/* Data that only operators of a registry have. */
typedef struct onxi_schema_own {
    const char *summary;
    const onx_function *body;         /* from a document; NULL: none */
    const struct onxi_custom *custom; /* registered from C; NULL: none */
} onxi_schema_own;

/* Pointers in rows cost relocations at program start, so short texts are stored in place. */
typedef struct onxi_schema {
    const char *domain; /* NULL: the default domain, ai.onnx */
    const char *name;   /* NULL ends a table */
    int32_t since;
    uint32_t flags; /* ONXI_OP_* */
    const onxi_port *inputs, *outputs;
    const onxi_attr *attrs;
    const onxi_type_constraint *types;
    onxi_rule_fn infer;
    const onxi_body_part *body_parts; /* how the operator runs if it has no kernel; NULL: none */
    int32_t body_opset;               /* version of the default domain that their nodes use */
    bool body_first; /* there is a kernel, but calls with matching parts run faster as parts; for sessions only */
    uint16_t min_input, max_input, min_output,
        max_output; /* follow from the ports (a test verifies it); stored for speed */
    char function_opsets[6],
        context_function_opsets[6]; /* versions that function bodies exist for: "13 18"; "": none */
    const onxi_schema_own *own;     /* NULL: built in */
} onxi_schema;

/* Can a model or plugin define this operator? */
static inline bool onxi_schema_is_composed(const onxi_schema *s)
{
    return s->body_parts && !s->body_first;
}

/* The family of an operator: ONNX's folders of definitions. */
typedef enum onxi_family {
#define FAMILY(name, title, work) ONXI_FAMILY_##name,
#include "op/families.def"
    ONXI_FAMILY_COUNT
} onxi_family;

typedef struct onxi_family_row {
    const char *name;  /* "math" */
    const char *title; /* "mathematics" */
    const char *work;  /* as in onx_op_work */
} onxi_family_row;
extern const onxi_family_row onxi_families[ONXI_FAMILY_COUNT];

/* An operator with all its versions. */
typedef struct onxi_operator {
    const char *domain, *name;
    uint8_t domain_length, name_length;
    onxi_family family;
    uint16_t traits;         /* ONXI_TRAIT_* */
    const char *summary;     /* one sentence */
    const onxi_schema *rows; /* newest version first; ends with a NULL name */
} onxi_operator;

/* The operator with number `id` is at index id - 1. */
extern const onxi_operator onxi_operators[];
extern const uint32_t onxi_operator_count;
static inline onxi_op_id onxi_operator_id(const onxi_operator *operator_)
{
    return operator_ ? (onxi_op_id)(operator_ - onxi_operators + 1) : ONXI_ID_NONE;
}
/* NULL for ONXI_ID_NONE. */
static inline const onxi_operator *onxi_operator_of(onxi_op_id id)
{
    return id > ONXI_ID_NONE && id < ONXI_ID_END ? &onxi_operators[id - 1] : NULL;
}
/* Is it an operator of the standard? Others come from the folder of a domain. */
static inline bool onxi_operator_is_standard(onxi_op_id id)
{
    return id > ONXI_ID_NONE && id <= ONXI_ID_Momentum; /* the last one of operators.def */
}
/* Does the operator have one of the traits? */
static inline bool onxi_operator_is(onxi_op_id id, unsigned traits)
{
    return id > ONXI_ID_NONE && id < ONXI_ID_END && (onxi_operators[id - 1].traits & traits);
}
/* Does the node name that operator, in any version? Operators of other domains with the same name do not count. For
 * code that reads unbound nodes. */
bool onxi_node_is(const onx_node *node, onxi_op_id id);
/* Does the node have all inputs and outputs that the row requires, each with a name, and no more than it allows? Code
 * that reads operands by index from an unchecked node calls this first. */
bool onxi_node_has_operands(const onx_node *node, const onxi_schema *row);
/* "" and "ai.onnx" are the same; NULL when there is none. */
const onxi_operator *onxi_operator_find(onx_str domain, onx_str name);
/* The operator in effect at a version of the domain, or NULL. Third-party operators in the default domain may have had
 * the name before the standard, with another meaning. */
const onxi_operator *onxi_operator_at(onx_str domain, onx_str name, int64_t opset);

/* The row in force for an operator at a version of its domain ("" and "ai.onnx" are the same), O(1); NULL when
 * the domain has no such operator at that version. */
const onxi_schema *onxi_schema_find(onx_str domain, onx_str name, int64_t opset);
/* The first row (newest version) of the operator, or NULL; further versions follow until a row with a NULL name. */
const onxi_schema *onxi_schema_newest(onx_str domain, onx_str name);
/* Walks the types of a set as text ("tensor(float)", "seq(tensor(int64))", ...): start with *at 0; false at the end. */
#define ONXI_TYPE_TEXT ONX_OP_TYPE_TEXT
bool onxi_type_set_next(const onxi_type_set *set, uint32_t *at, char text[ONXI_TYPE_TEXT]);
/* Adds a type given as text; false if the bits of a set cannot represent it. */
bool onxi_type_set_add(onxi_type_set *set, onx_str type);
/* The port of an operand index; NULL beyond the last one. */
const onxi_port *onxi_port_at(const onxi_port *ports, uint32_t index);
/* The constraint of that name, or NULL. */
const onxi_type_constraint *onxi_schema_type(const onxi_schema *schema, const char *name);
/* The attribute of that name, or NULL. */
const onxi_attr *onxi_schema_attr(const onxi_schema *schema, onx_str name);
/* Does any version of the row's operator have the attribute? True for open rows. */
bool onxi_schema_has_attr(const onxi_schema *schema, const char *name);
/* The default value, lists in the arena; of type UNDEFINED if there is none. ONX_E_INVALID if the text does not match
 * the attribute's type. */
onx_status onxi_attr_default(const onxi_attr *attr, onx_arena *arena, onxi_attr_value *out);
/* The same; if the row has no default, the value that the specification of that version describes in words. */
onx_status onxi_schema_default(const onxi_schema *row, const onxi_attr *attr, onx_arena *arena, onxi_attr_value *out);

/* ---- function bodies of built-in operators (op_body.c) ---- */

/* The parts that make up the body for a call, as a bit mask; 0: the row has none. Only schema, inputs and attributes of
 * the call are used. */
uint64_t onxi_body_choose(onxi_call *call);
/* The body of these parts as a document of kind function. */
/* A document with the function in a text, for layers that work with functions and not with their texts. */
onx_status onxi_function_of_text(onx_ctx *cx, onx_str text, onx_doc **out);
onx_status onxi_body_function(onx_ctx *cx, const onxi_schema *schema, uint64_t parts, onx_doc **out);

/* The body that a document gives the operator; NULL: none. */
static inline const onx_function *onxi_schema_body(const onxi_schema *schema)
{
    return schema->own ? schema->own->body : NULL;
}
/* The definition registered from C; NULL: none. */
static inline const struct onxi_custom *onxi_schema_custom(const onxi_schema *schema)
{
    return schema->own ? schema->own->custom : NULL;
}
static inline const char *onxi_schema_domain(const onxi_schema *schema)
{
    return schema->domain ? schema->domain : "";
}
/* The newest version of a domain that the registry knows, 0 for an unknown domain. */
int64_t onxi_domain_newest(onx_str domain);

/* ---- Loop, as it is run, unrolled, inferred, simplified, differentiated and checked (op/rules/controlflow.c) ---- */

/* The rank in which a body receives the iteration number (input 0) or the condition (input 1): that of its declared
 * type, if all dims may be 1, else 0; -1 if it declares none. Exporters declare them as [1], too. */
int onxi_loop_rank(const onx_graph *body, uint32_t input);
/* Is the condition that the body returns always true? Exporters write counted loops like this: the condition is passed
 * through, or is a constant. `is` says whether a node is of an operator. */
bool onxi_loop_goes_on(onx_doc *doc, onx_arena *arena, const onx_graph *body,
                       bool (*is)(void *data, const onx_node *node, onxi_op_id id), void *data);

#endif
