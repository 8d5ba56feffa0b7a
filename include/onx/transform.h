/* transform.h - models made into other models: a pass is a row that says what it does and what it may change. */
#ifndef ONX_TRANSFORM_H
#define ONX_TRANSFORM_H

#include <onx/infer.h>
#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- passes ---- */

typedef enum onx_pass_effect {
    ONX_PASS_EXACT,    /* the results stay the same, bit by bit */
    ONX_PASS_ROUNDING, /* the results stay the same within rounding */
    ONX_PASS_PRECISION /* the results are those of numbers with fewer or more bits */
} onx_pass_effect;

typedef struct onx_pass {
    const char *name;    /* "retarget" */
    const char *summary; /* what it does, one line, lower case */
    const char *options; /* of the program, separated by spaces */
    onx_pass_effect effect;
    bool simplifies; /* one of those that onx_simplify is made of */
} onx_pass;

/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_pass *onx_pass_get(uint32_t index);

/* One thing that a pass did; texts live as long as the call of `changed`. */
typedef struct onx_change {
    const char *pass; /* name of its row */
    onx_str rule;     /* which of its rules: "Squeeze 11 to 13" */
    onx_str path;     /* of what is changed, as in diagnostics */
    onx_str text;     /* what was done, one sentence without full stop */
} onx_change;

/* ---- retarget ---- */

typedef struct onx_opset_version {
    onx_str domain; /* "" and "ai.onnx" are one */
    int64_t version;
} onx_opset_version;

typedef struct onx_retarget_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool dry_run;                                          /* say what would be done, and leave the model as it is */
    bool best_effort;                                      /* skip what cannot be done, which becomes a warning */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    const onx_opset_version *opset; /* what to go to; other domains stay as they are */
    uint32_t opset_count;
    int64_t ir_version; /* 0: that of the model, or what the operator sets need where that is more */
} onx_retarget_options;

/* Rewrites the nodes of graphs, subgraphs, functions and training information for other versions of the standard
 * operator sets, up or down, so that they mean the same. Weights are not touched. What cannot be expressed there is
 * reported, all of it, each with node, reason and the nearest version that can, as ONX_E_UNSUPPORTED, and the model is
 * as it was. */
ONX_API ONX_OWN_THREAD onx_status onx_retarget(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options);

/* ---- inline ---- */

typedef struct onx_function_name {
    onx_str domain, name; /* of any overload */
} onx_function_name;

typedef struct onx_inline_options {
    uint32_t struct_size;              /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_function_name *function; /* these alone; none: all of the model */
    uint32_t function_count;
    bool exclude; /* all but these */
    bool schema;  /* operators of the standard that are functions are replaced by their bodies, too */
    /* So are those of this domain that other operators make up, such as com.microsoft, and the names that come with it
     * in the default domain; empty: none. */
    onx_str domain;
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_inline_options;

/* Puts the bodies of functions in place of their calls, in graphs, subgraphs, training information and the functions
 * that stay, and removes them. Values that a body makes get names of their own. Functions that import other versions of
 * the standard operator sets than the model are taken to those first. ONX_E_INVALID for a function that calls itself,
 * ONX_E_NOT_FOUND for a name that the model has no function of; the model may be partly changed then. `options` may be
 * NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_inline(onx_ctx *cx, onx_doc *doc, const onx_inline_options *options);

/* ---- simplify ---- */

typedef struct onx_input_shape {
    onx_str name;        /* of an input of the graph */
    const int64_t *dims; /* `rank` of them; one below 0 stays as it is */
    uint32_t rank;
} onx_input_shape;

typedef struct onx_simplify_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool exact;                                            /* only what leaves the results the same, bit by bit */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    const onx_str *pass; /* names of rows that simplify; none: all */
    uint32_t pass_count;
    const onx_infer_fixed *fixed; /* symbolic dimensions that become numbers first */
    uint32_t fixed_count;
    const onx_input_shape *shape; /* inputs that get these sizes first */
    uint32_t shape_count;
    const onx_str *keep; /* values that stay, under their names */
    uint32_t keep_count;
    uint64_t fold_limit; /* bytes of a constant that is computed even where the model grows by it; 0: 1024 */
} onx_simplify_options;

/* Removes from graphs, subgraphs, functions and training information what is not needed for the results, and puts
 * simpler nodes in place of others, by passes that repeat, a bounded number of times, as long as there is something to
 * do. Names of inputs and outputs stay. Weights are shared, and made again only where something is computed into them.
 * A graph that is not understood (values that are made twice, or read before they are made) stays as it is, with a
 * warning. ONX_E_NOT_FOUND for a pass or an input that there is not. The model may be partly changed when the call
 * fails. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_simplify(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options);
/* ---- precision ---- */

/* Patterns over names of nodes: * stands for any text, ? for one byte. A node without a name goes by that of its first
 * output. A pattern that fits nothing is ONX_E_NOT_FOUND. */
typedef struct onx_precision_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    bool dry_run;         /* say what would be done; functions are inlined all the same */
    bool keep_io;         /* inputs and outputs of the model keep their types */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    int32_t to;          /* ONX_FLOAT16, ONX_BFLOAT16, ONX_FLOAT or ONX_DOUBLE */
    const onx_str *only; /* these nodes; none: all */
    uint32_t only_count;
    const onx_str *except; /* not these */
    uint32_t except_count;
    const onx_str *block_op; /* nor those of these operators: "Softmax", "ai.onnx.ml.Scaler"; patterns, too */
    uint32_t block_op_count;
    /* A folder for a file without a name that holds large weights, which then take no memory; NULL: memory. */
    const char *spill_dir;
    const onx_str *keep_node; /* names of nodes (no patterns) that stay, with the graphs that they hold; those of no
                                 node are ignored */
    uint32_t keep_node_count;
    bool convert_exact; /* also what FLOAT16 and BFLOAT16 change most (see onx_precision) */
} onx_precision_options;

/* Changes the floating-point type of values, weights, and inputs and outputs: to FLOAT16 and BFLOAT16 from FLOAT and
 * the other one of the two, to FLOAT and DOUBLE from all others of the four. Nodes whose operator does not take the
 * type in the version that is in force keep theirs, and so do nodes that options name, sizes that are computed in
 * floating point, and weights that training information refers to; Casts come between, one for each value and type.
 * For FLOAT16 and BFLOAT16 so do cheap nodes that work out places, ranks or angles: what leads from products, pools and
 * inputs to the boxes of NonMaxSuppression and RoiAlign, the grid of GridSample, what TopK ranks, and what leads from
 * integers to Sin and Cos.
 * Calls of the model's functions are replaced by their bodies first. Weights beyond the range of the type become its
 * largest finite numbers, which is a warning, and single constants that would become zero its smallest.
 * ONX_E_UNSUPPORTED where the operator set has no Cast to the type. */
ONX_API ONX_OWN_THREAD onx_status onx_precision(onx_ctx *cx, onx_doc *doc, const onx_precision_options *options);

/* ---- quantise ---- */

typedef enum onx_quantize_mode {
    ONX_QUANTIZE_WEIGHTS, /* weights in few bits, read by DequantizeLinear; all else stays as it is */
    ONX_QUANTIZE_DYNAMIC, /* 8-bit products whose inputs are scaled while the model runs */
    ONX_QUANTIZE_QDQ,     /* 8-bit inputs by ranges that are known, as QuantizeLinear and DequantizeLinear */
    ONX_QUANTIZE_QLINEAR  /* the same by QLinearConv and QLinearMatMul */
} onx_quantize_mode;

/* From where to where the numbers of a value go; what is beyond is cut off. */
typedef struct onx_value_range {
    onx_str name;
    float low, high;
} onx_value_range;

/* X^T X, size x size, of all rows X of sample data that a value has: what error feedback weighs errors by. */
typedef struct onx_value_moments {
    onx_str name;
    uint32_t size;
    const float *data;
} onx_value_moments;

typedef struct onx_quantize_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_quantize_mode mode;
    bool per_channel; /* a scale for each output channel of a weight; else one for all, but for blocks */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    int32_t weight_type; /* of WEIGHTS: ONX_INT8, UINT8, INT4, UINT4, FLOAT8E4M3FN, FLOAT8E5M2 or FLOAT4E2M1; 0: INT8 */
    uint32_t block_size; /* of WEIGHTS: elements along the summed axis that share a scale; 0: a scale per channel */
    const onx_str *only; /* patterns as those of onx_precision_options */
    uint32_t only_count;
    const onx_str *except;
    uint32_t except_count;
    const onx_str *block_op;
    uint32_t block_op_count;
    const onx_str *keep_node; /* as in onx_precision_options */
    uint32_t keep_node_count;
    const char *spill_dir;        /* as in onx_precision_options */
    const onx_value_range *range; /* of QDQ and QLINEAR: inputs (and outputs) of what is quantised; others stay */
    uint32_t range_count;
    const onx_value_moments *moments; /* of WEIGHTS: error feedback for products of these values; others are rounded */
    uint32_t moments_count;
    /* Asked for the moments of a value that `moments` does not have, once for each matrix that it is multiplied by;
     * they are read before the next call. *out is empty, and may stay so: there are none. May be NULL. */
    onx_status (*moments_of)(void *user, onx_str name, onx_value_moments *out);
    void *moments_user;
} onx_quantize_options;

/* Quantises Conv, MatMul (by a matrix) and Gemm with constant weights of type FLOAT; what is not done, and why, is told
 * as a change with the rule "skip". A weight that others use as well stays for them. Weights in blocks, and types that
 * older versions do not have, take the model to version 21 (23 for FLOAT4E2M1) of the operator set first. NaN in
 * weights becomes 0 and infinities the largest finite number, with a warning. ONX_E_INVALID for a range that is not
 * finite or not in order. */
ONX_API ONX_OWN_THREAD onx_status onx_quantize(onx_ctx *cx, onx_doc *doc, const onx_quantize_options *options);

/* ---- ranges of values from samples ---- */

typedef enum onx_observe_method {
    ONX_OBSERVE_MINMAX,
    ONX_OBSERVE_ENTROPY,    /* the range whose 128 levels a side lose the least information */
    ONX_OBSERVE_PERCENTILE, /* the range that holds this part of all numbers */
    ONX_OBSERVE_MSE /* the range with the least mean square error in 8 bits: of rounding within, of what is cut off */
} onx_observe_method;

typedef struct onx_observer onx_observer;

/* `part` is that of ONX_OBSERVE_PERCENTILE, above 0.5 and at most 1 (0.9999, say). */
ONX_API ONX_OWN_THREAD onx_status onx_observer_new(onx_ctx *cx, onx_observe_method method, double part,
                                                   onx_observer **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_observer_free(onx_observer *observer);
/* `count` more numbers; NaN and infinities are counted and skipped. */
ONX_API ONX_OWN_THREAD onx_status onx_observer_add(onx_observer *observer, const float *x, uint64_t count);
/* The range so far; ONX_E_INVALID when there was no finite number. `nonfinite`, how many were skipped, may be NULL.
 */
ONX_API ONX_OWN_THREAD onx_status onx_observer_range(const onx_observer *observer, float *low, float *high,
                                                     uint64_t *nonfinite);

/* ---- compress ---- */

typedef struct onx_compress_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    bool sparse;           /* sparse initializers (IR version 6) in place of weights that take twice as many bytes */
    const char *spill_dir; /* as in onx_precision_options */
} onx_compress_options;

/* Makes the model smaller without any change of what it computes: weights of the main graph with the same type, shape
 * and bytes are stored once, and those that are mostly zeros as sparse ones if `sparse` says so. Weights that are
 * inputs or outputs of a graph, or that training refers to, stay. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_compress(onx_ctx *cx, onx_doc *doc, const onx_compress_options *options);

/* ---- extract and split ---- */

typedef struct onx_extract_options {
    uint32_t struct_size;                 /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_str *input, *output, *node; /* see onx_extract */
    uint32_t input_count, output_count, node_count;
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_extract_options;

/* A part of the main graph as a model: what the values `output` (none: the outputs of the model) need, up to the values
 * `input` (none: the inputs of the model that they need); or the nodes whose name, or where they have none, first
 * output, matches one of the patterns `node` (* and ?): then what they read and what others read of them become inputs
 * and outputs. Initializers, constants, functions, types and annotations come along; training information is left out.
 * The part shares its messages with `doc`, which outlives it: what changes the one may change the other.
 * ONX_E_NOT_FOUND for a name that is not there. */
ONX_API ONX_OWN_THREAD onx_status onx_extract(onx_ctx *cx, onx_doc *doc, const onx_extract_options *options,
                                              onx_doc **out);

typedef struct onx_split_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t at_count;
    const onx_str *at;                                     /* see onx_split */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_split_options;

/* Cuts the main graph into `count` parts, each of which needs what the model is given and what earlier parts make:
 * onx_merge by name makes the whole of them again. With `at`, count - 1 names of values or nodes, a part is what each
 * needs and earlier parts do not have; else cuts are where the least data crosses, within a quarter of a part's even
 * share of nodes. Initializers and constants that several parts need are in all of them. The parts share their messages
 * with `doc`, which outlives them, and with each other, as onx_extract says. On failure all of out[0 .. count-1] are
 * NULL. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_split(onx_ctx *cx, onx_doc *doc, const onx_split_options *options, uint32_t count,
                                            onx_doc **out);

/* ---- merge ---- */

typedef enum onx_merge_how {
    ONX_MERGE_BY_NAME,      /* inputs of a model are outputs of that name of the models before it; those of the same
                             * name and type that are left are one */
    ONX_MERGE_BY_MAP,       /* as `map` says */
    ONX_MERGE_IN_SEQUENCE,  /* the inputs of a model are the outputs of the one before it, in their order */
    ONX_MERGE_SIDE_BY_SIDE, /* nothing is connected */
    ONX_MERGE_HOW_COUNT
} onx_merge_how;

typedef struct onx_io_pair {
    onx_str output, input; /* of an earlier model, of a later one; without prefix */
} onx_io_pair;

typedef struct onx_merge_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    int how;              /* onx_merge_how */
    const onx_io_pair *map;
    const onx_str *input, *output; /* of the result, prefix included; none: all that are not connected */
    uint32_t map_count, input_count, output_count;
    onx_str prefix1, prefix2;                              /* for the names of the first model, and of those after it */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_merge_options;

/* Puts the models `other` after that of `doc`, in their order. Operator sets of different versions are converted to the
 * higher one (onx_retarget). Names inside that clash get new ones; inputs, outputs and functions that clash are an
 * error, as are metadata of the same key and another value, and device configurations of one name. Identical
 * initializers, constants and functions of the same name are there once. `doc` shares the messages of the others, which
 * outlive it and may be changed. External data of another folder is found from that of `doc` where it is below it, and
 * comes into the model otherwise (it stays mapped). Models that share messages, as parts of one document do, are merged
 * by name. ONX_E_NOT_FOUND: a name that is not there. After a failure the models may be partly changed. `options` may
 * be NULL: by name. */
ONX_API ONX_OWN_THREAD onx_status onx_merge(onx_ctx *cx, onx_doc *doc, onx_doc *const *other, uint32_t count,
                                            const onx_merge_options *options);

/* ---- outline ---- */

typedef struct onx_outline_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t min_nodes;                                    /* of a function; 0: 4 */
    uint32_t min_calls;                                    /* of each function; 0: 2 */
    onx_str domain;                                        /* of the functions; empty: "outlined" */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_outline_options;

/* The opposite of onx_inline: runs of nodes of the main graph that are repeated one after the other or apart, and
 * differ in the names of values only, become calls of functions; what differs from call to call, weights as well, is
 * input of the function. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_outline(onx_ctx *cx, onx_doc *doc, const onx_outline_options *options);

/* ---- edit ---- */

/* What the texts `a` and `b` of an edit are. A pattern has one * in `a`, and `b` as well. */
typedef enum onx_edit_kind {
    ONX_EDIT_RENAME_VALUE,    /* name or pattern, new one: of values of the main graph and its subgraphs */
    ONX_EDIT_RENAME_NODE,     /* the same for nodes */
    ONX_EDIT_RENAME_DIM,      /* the same for symbols of dimensions; a number may be the new one */
    ONX_EDIT_RENAME_DOMAIN,   /* the same for domains of nodes, functions and imports */
    ONX_EDIT_RENAME_FUNCTION, /* the same for names of functions, whatever their domain */
    ONX_EDIT_TYPE,            /* value; `type` is declared for it */
    ONX_EDIT_SET_INPUTS,      /* values, separated by commas, that the model is given */
    ONX_EDIT_SET_OUTPUTS,     /* values, separated by commas, that the model gives */
    ONX_EDIT_ADD_OUTPUT,      /* value */
    ONX_EDIT_DROP_OUTPUT,     /* output */
    ONX_EDIT_DROP_INPUT,      /* input, which nothing may read */
    ONX_EDIT_INITIALIZER,     /* initializer; gets the elements of `tensor` */
    ONX_EDIT_METADATA,        /* key, value; without a value the key is removed */
    ONX_EDIT_FIELD,     /* producer_name, producer_version, model_version, domain, doc_string, graph_name; value */
    ONX_EDIT_STRIP,     /* doc, metadata, types, training or unused */
    ONX_EDIT_BATCH,     /* number or symbol: the first dimension of inputs, and what follows from it */
    ONX_EDIT_NHWC,      /* input of rank 4 whose layout becomes channels last */
    ONX_EDIT_NORMALIZE, /* input; MEAN,...:DEVIATION,... of its channels, which are subtracted and divided by */
    ONX_EDIT_RESIZE,    /* input of rank 4 whose size becomes variable */
    ONX_EDIT_ARGMAX,    /* output; axis, which goes */
    ONX_EDIT_SOFTMAX,   /* output; axis */
    ONX_EDIT_COUNT
} onx_edit_kind;

typedef struct onx_edit {
    int kind; /* onx_edit_kind */
    onx_str a, b;
    const onx_type *type;     /* copied */
    const onx_tensor *tensor; /* its data outlives the document */
} onx_edit;

typedef struct onx_edit_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t count;
    const onx_edit *edit;                                  /* done one after the other */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_edit_options;

/* Changes names, inputs, outputs, declared types, weights and metadata of a model, in subgraphs and training
 * information as well, and puts pre- and post-processing around it. What is around an input is done before what was
 * there already. ONX_E_NOT_FOUND for a name that is not there, ONX_E_INVALID where a new one is taken; the model may be
 * partly changed then. */
ONX_API ONX_OWN_THREAD onx_status onx_edit_model(onx_ctx *cx, onx_doc *doc, const onx_edit_options *options);

#ifdef __cplusplus
}
#endif
#endif
