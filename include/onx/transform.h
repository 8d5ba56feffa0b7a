/* transform.h - transforms of models. A pass is a row that says what it does and what it may change. */
#ifndef ONX_TRANSFORM_H
#define ONX_TRANSFORM_H

#include <onx/infer.h>
#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls that change a model, or make one of another, check the result (onx/check.h): a model that was valid stays
 * valid, or the call fails with ONX_E_UNSUPPORTED and the place and the reason; the model may then be changed. A model
 * that is invalid before the call is reported as a warning, and its result is not checked. */

/* ---- passes ---- */

typedef enum onx_pass_effect {
    ONX_PASS_EXACT,    /* the results stay bit-identical */
    ONX_PASS_ROUNDING, /* the results stay the same within rounding */
    ONX_PASS_PRECISION /* the results are those of another numeric precision */
} onx_pass_effect;

typedef struct onx_pass {
    const char *name;    /* "retarget" */
    const char *summary; /* description, one line, lower case */
    const char *options; /* options of the program, separated by spaces */
    onx_pass_effect effect;
    bool simplifies; /* one of the passes of onx_simplify */
} onx_pass;

/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_pass *onx_pass_get(uint32_t index);

/* One change that a pass made; its texts are valid during the call of `changed`. */
typedef struct onx_change {
    const char *pass; /* name of the pass */
    onx_str rule;     /* the rule that applied: "Squeeze 11 to 13" */
    onx_str path;     /* path of what is changed, as in diagnostics */
    onx_str text;     /* what was done, one sentence without full stop */
} onx_change;

/* ---- retarget ---- */

typedef struct onx_opset_version {
    onx_str domain; /* "" and "ai.onnx" are the same */
    int64_t version;
} onx_opset_version;

typedef struct onx_retarget_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool dry_run;                                          /* report what would be done without changing the model */
    bool best_effort;                                      /* skip what cannot be converted, with a warning */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    const onx_opset_version *opset; /* target versions; other domains keep theirs */
    uint32_t opset_count;
    int64_t ir_version; /* 0: that of the model, or a higher one if the operator sets need it */
} onx_retarget_options;

/* Rewrites the nodes of graphs, subgraphs, functions and training information for other versions of the standard
 * operator sets with the same meaning. A set newer than the newest known counts as that, with a warning. Nodes that
 * cannot be expressed in the target version are reported with the reason and the nearest version that can express them;
 * the status is then ONX_E_UNSUPPORTED and the model is unchanged. */
ONX_API ONX_OWN_THREAD onx_status onx_retarget(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options);

/* ---- inline ---- */

typedef struct onx_function_name {
    onx_str domain, name; /* matches any overload */
} onx_function_name;

typedef struct onx_inline_options {
    uint32_t struct_size;              /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_function_name *function; /* inline only these functions, of the model or of operator-set documents; none:
                                        * all of the model */
    uint32_t function_count;
    bool exclude; /* all but these */
    bool schema;  /* also replace operators that the standard or an operator-set document defines as functions */
    /* Also replace the operators of this domain that have a decomposition, such as com.microsoft, and the names of that
     * domain in the default domain; empty: none. */
    onx_str domain;
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_inline_options;

/* Replaces calls of functions by the bodies of the functions, in graphs, subgraphs, training information and the
 * remaining functions, and removes the inlined functions. Values of a body get unique names. A function that imports
 * other versions of the standard operator sets than the model is converted first. ONX_E_INVALID for a function that
 * calls itself, ONX_E_NOT_FOUND for a name that is neither a function of the model nor a called one of an operator-set
 * document; the model may be partly changed after a failure. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_inline(onx_ctx *cx, onx_doc *doc, const onx_inline_options *options);

/* ---- simplify ---- */

typedef struct onx_input_shape {
    onx_str name;        /* name of an input of the graph */
    const int64_t *dims; /* `rank` dims; one below 0 stays unchanged */
    uint32_t rank;
} onx_input_shape;

typedef struct onx_simplify_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool exact;                                            /* only passes that keep the results bit-identical */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    const onx_str *pass; /* names of simplifying passes; none: all */
    uint32_t pass_count;
    const onx_infer_fixed *fixed; /* symbolic dimensions to replace by numbers first */
    uint32_t fixed_count;
    const onx_input_shape *shape; /* inputs to give these shapes first */
    uint32_t shape_count;
    const onx_str *keep; /* values that are kept, with their names */
    uint32_t keep_count;
    uint64_t fold_limit; /* maximum bytes of a computed constant that makes the model larger; 0: 1024 */
    /* Inputs with a default become constants, which callers cannot set any more; a note names them. Otherwise a default
     * is not a constant. */
    bool freeze_defaults;
} onx_simplify_options;

/* Removes what the results do not need from graphs, subgraphs, functions and training information, and replaces nodes
 * by simpler ones. The passes repeat, a bounded number of times, until nothing changes. Names of inputs and outputs
 * stay. Weights are shared, and new ones are made only where something is folded into them. A graph that breaks the
 * standard (values that are defined twice, or read before they are defined) stays as it is, with a warning.
 * ONX_E_NOT_FOUND for a pass or an input that does not exist. The model may be partly changed after a failure.
 * `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_simplify(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options);
/* ---- precision ---- */

/* Patterns over names of nodes: * matches any text, ? one byte. The name of a node without a name is that of its first
 * output. A pattern without a match is ONX_E_NOT_FOUND. */
typedef struct onx_precision_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    bool dry_run;         /* report what would be done; functions are inlined all the same */
    bool keep_io;         /* inputs and outputs of the model keep their types */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    int32_t to;          /* ONX_FLOAT16, ONX_BFLOAT16, ONX_FLOAT or ONX_DOUBLE */
    const onx_str *only; /* only these nodes; none: all */
    uint32_t only_count;
    const onx_str *except; /* not these */
    uint32_t except_count;
    const onx_str *block_op; /* exclude these operators: "Softmax", "ai.onnx.ml.Scaler"; patterns are allowed */
    uint32_t block_op_count;
    /* A folder for an unnamed temporary file that holds large weights instead of memory; NULL: memory. */
    const char *spill_dir;
    const onx_str *keep_node; /* names of nodes (no patterns) that stay unchanged, with their subgraphs; names of no
                               * node are ignored */
    uint32_t keep_node_count;
    bool convert_exact;        /* also convert the nodes that FLOAT16 and BFLOAT16 change most (see onx_precision) */
    const onx_str *keep_value; /* names of values that keep their types, in all graphs, where they are computed and
                                * where they are read; names of no value are ignored */
    uint32_t keep_value_count;
} onx_precision_options;

/* Changes the floating-point type of values, weights, inputs and outputs. The target FLOAT16 or BFLOAT16 converts FLOAT
 * and the other one of the two; the target FLOAT or DOUBLE converts all others of the four. Some nodes keep their type:
 * nodes whose operator does not accept the target type in the imported version, nodes that options exclude, sizes that
 * are computed in floating point, and weights that training information refers to. Casts are inserted in between, one
 * for each value and type. For FLOAT16 and BFLOAT16, cheap nodes that compute positions, ranks or angles also keep
 * their type: those between products, pools and inputs and the boxes of NonMaxSuppression and RoiAlign, the grid of
 * GridSample and the input of TopK, and those between integers and Sin or Cos. Functions of the model are inlined
 * first. Weights beyond the range of the type become its largest finite number, with a warning; single constants that
 * would become zero become its smallest number. ONX_E_UNSUPPORTED if the operator set has no Cast to the type. */
ONX_API ONX_OWN_THREAD onx_status onx_precision(onx_ctx *cx, onx_doc *doc, const onx_precision_options *options);

/* ---- quantize ---- */

typedef enum onx_quantize_mode {
    ONX_QUANTIZE_WEIGHTS, /* low-bit weights, read by DequantizeLinear; everything else stays unchanged */
    ONX_QUANTIZE_DYNAMIC, /* 8-bit products whose inputs are quantised at run time */
    ONX_QUANTIZE_QDQ,     /* 8-bit inputs with known ranges, as QuantizeLinear and DequantizeLinear */
    ONX_QUANTIZE_QLINEAR  /* the same with QLinearConv and QLinearMatMul */
} onx_quantize_mode;

/* The range of a value's elements; elements beyond it are clipped. */
typedef struct onx_value_range {
    onx_str name;
    float low, high;
} onx_value_range;

/* X^T X, size x size, over all rows X of a value in sample data; error feedback weights errors with it. */
typedef struct onx_value_moments {
    onx_str name;
    uint32_t size;
    const float *data;
} onx_value_moments;

typedef struct onx_quantize_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    onx_quantize_mode mode;
    bool per_channel; /* one scale per output channel of a weight; otherwise one per weight, except with blocks */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    int32_t weight_type; /* WEIGHTS: an integer of at most 8 bits, FLOAT8E4M3FN, FLOAT8E5M2 or a smaller float; 0:
                          * INT8 */
    uint32_t block_size; /* WEIGHTS: number of elements along the reduction axis that share a scale; 0: one scale per
                          * channel */
    const onx_str *only; /* patterns as in onx_precision_options */
    uint32_t only_count;
    const onx_str *except;
    uint32_t except_count;
    const onx_str *block_op;
    uint32_t block_op_count;
    const onx_str *keep_node; /* as in onx_precision_options */
    uint32_t keep_node_count;
    const char *spill_dir;        /* as in onx_precision_options */
    const onx_value_range *range; /* QDQ and QLINEAR: ranges of the inputs (and outputs) of quantised nodes; nodes
                                   * without a range stay unchanged */
    uint32_t range_count;
    const onx_value_moments *moments; /* WEIGHTS: use error feedback for products with these values; other weights are
                                       * rounded */
    uint32_t moments_count;
    /* Called for the moments of a value that `moments` does not contain, once for each matrix that it is multiplied by.
     * The result is read before the next call. *out is initially empty and may stay so: there are none. May be NULL. */
    onx_status (*moments_of)(void *user, onx_str name, onx_value_moments *out);
    void *moments_user;
} onx_quantize_options;

/* Quantises Conv, MatMul (by a matrix) and Gemm with constant weights of type FLOAT. Nodes that are not quantised are
 * reported, with the reason, as a change of the rule "skip". A weight that other nodes use as well is kept for them.
 * For weights in blocks, and for types that older versions lack, the model is converted to the first version
 * of the operator set that has them, and at least 21 for blocks. NaN in weights becomes 0 and infinities the largest
 * finite number, with a warning. ONX_E_INVALID for a range that is not finite or whose bounds are reversed. */
ONX_API ONX_OWN_THREAD onx_status onx_quantize(onx_ctx *cx, onx_doc *doc, const onx_quantize_options *options);

/* ---- observers: ranges of values from samples ---- */

typedef enum onx_observe_method {
    ONX_OBSERVE_MINMAX,
    ONX_OBSERVE_ENTROPY,    /* the range whose 128 levels per side lose the least information */
    ONX_OBSERVE_PERCENTILE, /* the range that contains this fraction of all elements */
    ONX_OBSERVE_MSE /* the range with the least mean square error in 8 bits: rounding error inside, clipping error
                     * outside */
} onx_observe_method;

typedef struct onx_observer onx_observer;

/* `part` is the fraction for ONX_OBSERVE_PERCENTILE, above 0.5 and at most 1 (for example 0.9999). */
ONX_API ONX_OWN_THREAD onx_status onx_observer_new(onx_ctx *cx, onx_observe_method method, double part,
                                                   onx_observer **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_observer_free(onx_observer *observer);
/* Adds `count` elements; NaN and infinities are counted and skipped. */
ONX_API ONX_OWN_THREAD onx_status onx_observer_add(onx_observer *observer, const float *x, uint64_t count);
/* The range of the elements so far; ONX_E_INVALID if none was finite. *nonfinite is the number of skipped elements;
 * `nonfinite` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_observer_range(const onx_observer *observer, float *low, float *high,
                                                     uint64_t *nonfinite);

/* ---- compress ---- */

typedef struct onx_compress_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
    bool sparse;           /* use sparse initializers (IR version 6) for weights that take at least twice as many
                            * bytes when dense */
    const char *spill_dir; /* as in onx_precision_options */
} onx_compress_options;

/* Makes the model smaller without changing what it computes: weights of the main graph with the same type, shape and
 * bytes are stored once, and with `sparse`, weights that are mostly zeros become sparse initializers. Weights that are
 * inputs or outputs of a graph, or that training information refers to, stay. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_compress(onx_ctx *cx, onx_doc *doc, const onx_compress_options *options);

/* ---- extract and split ---- */

typedef struct onx_extract_options {
    uint32_t struct_size;                 /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_str *input, *output, *node; /* see onx_extract */
    uint32_t input_count, output_count, node_count;
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_extract_options;

/* Makes a model of a part of the main graph. Either the part that computes the values `output` (none: the outputs of
 * the model) from the values `input` (none: those inputs of the model that are needed). Or the nodes that match one of
 * the patterns `node` (* and ?) by their name, or by their first output if they have no name; the values that they read
 * and those that other nodes read of them become inputs and outputs. Initializers, constants, functions, types and
 * annotations are included; training information is not. The part shares its messages with `doc`, which must outlive
 * it: a change of one may change the other. ONX_E_NOT_FOUND for a name that does not exist. */
ONX_API ONX_OWN_THREAD onx_status onx_extract(onx_ctx *cx, onx_doc *doc, const onx_extract_options *options,
                                              onx_doc **out);

typedef struct onx_split_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t at_count;
    const onx_str *at;                                     /* see onx_split */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_split_options;

/* Cuts the main graph into `count` parts. Each part needs only inputs of the model and outputs of earlier parts;
 * onx_merge by name restores the whole. With `at` (count - 1 names of values or nodes), a part is what the named value
 * or node needs and earlier parts do not contain. Otherwise the cuts are where the least data crosses, within a quarter
 * of a part's even share of nodes. Initializers and constants that several parts need are in each of them. The parts
 * share their messages with `doc`, which must outlive them, and with each other, as in onx_extract. On failure all of
 * out[0 .. count-1] are NULL. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_split(onx_ctx *cx, onx_doc *doc, const onx_split_options *options, uint32_t count,
                                            onx_doc **out);

/* ---- merge ---- */

typedef enum onx_merge_how {
    ONX_MERGE_BY_NAME,      /* inputs of a model are connected to outputs of that name of the models before it;
                             * remaining inputs of the same name and type become one */
    ONX_MERGE_BY_MAP,       /* as `map` says */
    ONX_MERGE_IN_SEQUENCE,  /* the inputs of a model are connected to the outputs of the one before it, in order */
    ONX_MERGE_SIDE_BY_SIDE, /* nothing is connected */
    ONX_MERGE_HOW_COUNT
} onx_merge_how;

typedef struct onx_io_pair {
    onx_str output, input; /* an output of an earlier model, an input of a later one; without prefix */
} onx_io_pair;

typedef struct onx_merge_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    int how;              /* onx_merge_how */
    const onx_io_pair *map;
    const onx_str *input, *output; /* inputs and outputs of the result, with prefix; none: all that are not connected */
    uint32_t map_count, input_count, output_count;
    onx_str prefix1, prefix2;                              /* prefix for the names of the first model, and for those
                                                            * of the later ones */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_merge_options;

/* Appends the models `other` to that of `doc`, in order. Operator sets of different versions are converted to the
 * higher one (onx_retarget). Internal names that clash are renamed. It is an error if inputs, outputs or functions
 * clash, if metadata have the same key and different values, or if device configurations have the same name. Identical
 * initializers, constants and functions of the same name are stored once. `doc` shares the messages of the others,
 * which must outlive it and may be changed. External data of another folder is referenced if it is below the folder of
 * `doc`, and otherwise becomes part of the model (it stays mapped). Models that share messages, such as parts of one
 * document, are merged by name. ONX_E_NOT_FOUND for a name that does not exist. The models may be partly changed after
 * a failure. `options` may be NULL: by name. */
ONX_API ONX_OWN_THREAD onx_status onx_merge(onx_ctx *cx, onx_doc *doc, onx_doc *const *other, uint32_t count,
                                            const onx_merge_options *options);

/* ---- outline ---- */

typedef struct onx_outline_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t min_nodes;                                    /* minimum number of nodes of a function; 0: 4 */
    uint32_t min_calls;                                    /* minimum number of calls of each function; 0: 2 */
    onx_str domain;                                        /* domain of the functions; empty: "outlined" */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_outline_options;

/* The opposite of onx_inline: sequences of nodes of the main graph that repeat, adjacent or not, and differ only in the
 * names of values, become calls of functions. Whatever differs between the calls, weights included, becomes an input of
 * the function. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_outline(onx_ctx *cx, onx_doc *doc, const onx_outline_options *options);

/* ---- edit ---- */

/* Meaning of the texts `a` and `b` of an edit (a, b). A pattern has one * in `a` and one in `b`. */
typedef enum onx_edit_kind {
    ONX_EDIT_RENAME_VALUE,    /* old name or pattern, new one: values of the main graph and its subgraphs */
    ONX_EDIT_RENAME_NODE,     /* the same for nodes */
    ONX_EDIT_RENAME_DIM,      /* the same for symbols of dimensions; the new one may be a number */
    ONX_EDIT_RENAME_DOMAIN,   /* the same for domains of nodes, functions and imports */
    ONX_EDIT_RENAME_FUNCTION, /* the same for names of functions, whatever their domain */
    ONX_EDIT_TYPE,            /* value; declares `type` for it */
    ONX_EDIT_SET_INPUTS,      /* values, separated by commas, that become the inputs of the model */
    ONX_EDIT_SET_OUTPUTS,     /* values, separated by commas, that become the outputs of the model */
    ONX_EDIT_ADD_OUTPUT,      /* value */
    ONX_EDIT_DROP_OUTPUT,     /* output */
    ONX_EDIT_DROP_INPUT,      /* input, which nothing may read; it is removed */
    ONX_EDIT_INITIALIZER,     /* initializer; its elements are replaced by those of `tensor` */
    ONX_EDIT_METADATA,        /* key, value; without a value the key is removed */
    ONX_EDIT_FIELD,     /* producer_name, producer_version, model_version, domain, doc_string, graph_name; value */
    ONX_EDIT_STRIP,     /* doc, metadata, types, training or unused */
    ONX_EDIT_BATCH,     /* number or symbol for the first dimension of the inputs, and for the dimensions that follow
                         * from it */
    ONX_EDIT_NHWC,      /* input of rank 4 that changes to channels-last layout */
    ONX_EDIT_NORMALIZE, /* input; MEAN,...:DEVIATION,... of its channels: subtracts the means and divides by the
                         * deviations */
    ONX_EDIT_RESIZE,    /* input of rank 4 that becomes variable in size */
    ONX_EDIT_ARGMAX,    /* output; axis: replaces the output by its ArgMax and removes the axis */
    ONX_EDIT_SOFTMAX,   /* output; axis */
    ONX_EDIT_COUNT
} onx_edit_kind;

typedef struct onx_edit {
    int kind; /* onx_edit_kind */
    onx_str a, b;
    const onx_type *type;     /* copied */
    const onx_tensor *tensor; /* its data must outlive the document */
} onx_edit;

typedef struct onx_edit_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t count;
    const onx_edit *edit;                                  /* carried out one after the other */
    void (*changed)(void *user, const onx_change *change); /* may be NULL */
    void *user;
} onx_edit_options;

/* Changes names, inputs, outputs, declared types, weights and metadata of a model, also in subgraphs and training
 * information, and adds pre- and post-processing. New pre-processing of an input runs before the pre-processing that is
 * there already. ONX_E_NOT_FOUND for a name that does not exist, ONX_E_INVALID if a new name is in use; the model may
 * be partly changed after a failure. */
ONX_API ONX_OWN_THREAD onx_status onx_edit_model(onx_ctx *cx, onx_doc *doc, const onx_edit_options *options);

#ifdef __cplusplus
}
#endif
#endif
