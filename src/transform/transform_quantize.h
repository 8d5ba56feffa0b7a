/* transform_quantize.h - the insides of onx_quantize: weights in few bits, and the nodes that compute with them. */
#ifndef ONXI_TRANSFORM_QUANTIZE_H
#define ONXI_TRANSFORM_QUANTIZE_H

#include "transform/transform_precision.h"

/* ---- numbers (transform_quantize_numbers.c) ---- */

/* How the elements of a weight share scales. */
typedef struct onxi_grid {
    onx_dtype type;
    bool asymmetric;               /* a zero point per scale; unsigned types */
    int32_t axis;                  /* -1: one scale for all */
    uint32_t block;                /* 0: a scale for each index of the axis */
    uint64_t groups;               /* scales */
    uint64_t outer, length, inner; /* the shape around the axis */
} onxi_grid;

typedef struct onxi_quantized {
    onx_tensor *q, *scale, *zero; /* without names; zero: NULL for symmetric types without one */
    float *scales;                /* groups of them; NULL where they are blocks */
    double error;                 /* root of sum (w - q)^2 / sum w^2 */
    uint64_t nonfinite;
} onxi_quantized;

/* Least and greatest integer of a type, which symmetric scales use from -most to most. */
int onxi_integer_least(onx_dtype type);
int onxi_integer_most(onx_dtype type);
bool onxi_grid_open(onxi_grid *g, const onx_tensor *weight);
/* The scale that a range takes, and the zero point: never 0, not finite, or less than the smallest normal number. */
void onxi_scale_of(onx_dtype type, bool asymmetric, float low, float high, float *scale, int *zero);
/* An integer of `type` for x, or the bits of a small float. Rounds to nearest even and saturates. */
int onxi_quantize_one(onx_dtype type, double x, double scale, int zero);
double onxi_dequantize_one(onx_dtype type, int q, double scale, int zero);
/* Elements below 8 bits: the first is in the low bits. */
void onxi_pack(onx_dtype type, const int *q, uint64_t count, uint8_t *out);
/* `transpose`: of a matrix, while it is quantised; scales are those of the result. `moments`: NULL, or of the input of
 * the product, length x length, for a matrix. */
onx_status onxi_quantize_weight(onxi_weights *w, const onx_tensor *from, const onxi_grid *grid, bool transpose,
                                const onx_value_moments *moments, onxi_quantized *out);

/* ---- nodes (transform_quantize_forms.c) ---- */

typedef struct onxi_quant_names {
    onx_bytes q, scale, zero;
    float at_scale; /* of static ones */
    int at_zero;
} onxi_quant_names;

/* A weight in few bits, and the initializers of the graph that hold it: all layers that read it one way share them. */
typedef struct onxi_quant_weight {
    onxi_quantized data;
    onx_bytes q, scale, zero, dequantized; /* empty: not there yet */
} onxi_quant_weight;

typedef struct onxi_quant_scope {
    onxi_scope scope; /* first */
    onx_graph *graph;
    bool main;
    onx_node **out;
    uint32_t out_count, out_room;
    onxi_dict identities; /* indexes of nodes, by what they make */
    onxi_dict values;     /* quantised already: indexes of names */
    onxi_quant_names *names;
    uint32_t name_room;
    onxi_dict weights; /* indexes into `weight`, by what they are made of and how */
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
    uint32_t kept; /* enclosing nodes that are to be kept, and all in them */
    uint64_t done;
    onx_str path;
} onxi_quantizer;

/* A node that can be quantised. */
typedef struct onxi_layer {
    onx_node *node;
    onxi_op_id op;
    onx_bytes x, y, bias;
    const onx_tensor *weight, *bias_tensor; /* the latter: constant, of type FLOAT, NULL otherwise */
    uint32_t channels;
    bool transposed; /* of Gemm: the weight is [N, K] */
} onxi_layer;

/* ONX_E_MISUSE, recorded, for moments of the value that cannot be. */
onx_status onxi_moments_check(const onxi_quantizer *z, onx_str name, const onx_value_moments *m);
/* Puts what takes the place of the layer on scope->out. *skipped: why it stays as it is, NULL when it was done. */
onx_status onxi_layer_write(onxi_quantizer *z, onxi_quant_scope *s, const onxi_layer *layer, const char **skipped);
onx_status onxi_quant_push(onxi_quantizer *z, onxi_quant_scope *s, onx_node *node);

#endif
