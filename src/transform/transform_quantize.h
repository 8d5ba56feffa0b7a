/* transform_quantize.h - the internals of onx_quantize: low-bit weights, and the nodes that compute with them. */
#ifndef ONXI_TRANSFORM_QUANTIZE_H
#define ONXI_TRANSFORM_QUANTIZE_H

#include "transform/transform_precision.h"

/* ---- quantizing elements (transform_quantize_numbers.c) ---- */

/* How the elements of a weight share scales. */
typedef struct onxi_grid {
    onx_dtype type;
    bool asymmetric;               /* one zero point per scale; unsigned types */
    int32_t axis;                  /* -1: a single scale */
    uint32_t block;                /* 0: one scale for each index of the axis */
    uint64_t groups;               /* number of scales */
    uint64_t outer, length, inner; /* the shape around the axis */
} onxi_grid;

typedef struct onxi_quantized {
    onx_tensor *q, *scale, *zero; /* without names; zero: NULL for symmetric types without one */
    float *scales;                /* one per group; NULL for blocks */
    double error;                 /* root of sum (w - q)^2 / sum w^2 */
    uint64_t nonfinite;
} onxi_quantized;

/* The smallest and largest integer of a type; symmetric quantization uses -most to most. */
int onxi_integer_least(onx_dtype type);
int onxi_integer_most(onx_dtype type);
bool onxi_grid_open(onxi_grid *g, const onx_tensor *weight);
/* The scale for a range, and the zero point; the scale is finite and at least the smallest normal float. */
void onxi_scale_of(onx_dtype type, bool asymmetric, float low, float high, float *scale, int *zero);
/* Quantizes x to an integer of `type`, or to the bits of a small float. Rounds to nearest even and saturates. */
int onxi_quantize_one(onx_dtype type, double x, double scale, int zero);
double onxi_dequantize_one(onx_dtype type, int q, double scale, int zero);
/* Packs elements below 8 bits: the first is in the low bits. */
void onxi_pack(onx_dtype type, const int *q, uint64_t count, uint8_t *out);
/* `transpose`: transposes a matrix while it is quantised; scales are those of the result. `moments`: NULL, or the
 * second moments of the product's input, length x length, for a matrix. */
onx_status onxi_quantize_weight(onxi_weights *w, const onx_tensor *from, const onxi_grid *grid, bool transpose,
                                const onx_value_moments *moments, onxi_quantized *out);

/* ---- creating nodes (transform_quantize_forms.c) ---- */

typedef struct onxi_quant_names {
    onx_bytes q, scale, zero;
    float at_scale; /* of static quantization */
    int at_zero;
} onxi_quant_names;

/* A low-bit weight and its initializers in the graph: all layers that read it in the same way share them. */
typedef struct onxi_quant_weight {
    onxi_quantized data;
    onx_bytes q, scale, zero, dequantized; /* empty: not created yet */
} onxi_quant_weight;

typedef struct onxi_quant_scope {
    onxi_scope scope; /* must be the first member */
    onx_graph *graph;
    onx_node **out;
    uint32_t out_count, out_room;
    onxi_dict identities; /* indexes of nodes, by output */
    onxi_dict values;     /* quantised values: indexes of names */
    onxi_quant_names *names;
    uint32_t name_room;
    onxi_dict casts; /* values that were cast to FLOAT: indexes into `cast` */
    onx_bytes *cast;
    uint32_t cast_room;
    onxi_dict weights; /* indexes into `weight`, by origin and parameters */
    onxi_quant_weight **weight;
    uint32_t weight_room;
} onxi_quant_scope;

typedef struct onxi_quantizer {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch;
    onx_model *model;
    const onx_quantize_options *options;
    onxi_selection selection;
    onxi_dict keep, ranges, moments;
    onxi_binder binder;
    onxi_values values;
    onxi_names new_names;
    onxi_weights weights;
    int64_t opset;
    uint32_t depth, limit;
    uint32_t kept; /* enclosing nodes that are not quantised, with all nodes in them */
    uint64_t done;
    onx_str path;
} onxi_quantizer;

/* A node that can be quantised. */
typedef struct onxi_layer {
    onx_node *node;
    onxi_op_id op;
    onx_bytes x, y, bias;
    const onx_tensor *weight, *bias_tensor; /* bias_tensor: constant, NULL otherwise */
    onx_dtype dtype; /* of the weight, and so of the input and output of the node: FLOAT, FLOAT16 or BFLOAT16 */
    uint32_t channels;
    bool transposed; /* for Gemm: the weight is [N, K] */
} onxi_layer;

/* Records and returns ONX_E_MISUSE if the caller's moments for the value are invalid. */
onx_status onxi_moments_check(const onxi_quantizer *z, onx_str name, const onx_value_moments *m);
/* Adds the replacement of the layer to scope->out. *skipped: why it is not replaced, NULL if it was. */
onx_status onxi_layer_write(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *layer, const char **skipped);
onx_status onxi_quant_push(onxi_quantizer *z, onxi_quant_scope *s, onx_node *node);

#endif
