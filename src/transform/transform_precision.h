/* transform_precision.h - shared by conversions of precision and quantisation: selecting nodes, and writing derived
 * weights without keeping all of them in memory. */
#ifndef ONXI_TRANSFORM_PRECISION_H
#define ONXI_TRANSFORM_PRECISION_H

#include "transform/transform.h"

/* ---- selecting nodes (transform_select.c) ---- */

/* Patterns over names of nodes, where * matches any text and ? one byte; a node without a name is matched by the name
 * of its first output. */
typedef struct onxi_selection {
    const onx_str *only, *except, *block_op; /* no `only`: all nodes */
    uint32_t only_count, except_count, block_op_count;
    bool *used; /* per pattern, in that order: it matched a node */
} onxi_selection;

onx_status onxi_selection_open(onxi_selection *s, onx_arena *scratch);
/* The options of a call that select nodes. Every pattern is tried, so that unused ones can be reported. */
#define ONXI_NEED_SELECTION(cx, own)                                                                                   \
    ONXI_NEED(cx, (own).only || !(own).only_count);                                                                    \
    ONXI_NEED(cx, (own).except || !(own).except_count);                                                                \
    ONXI_NEED(cx, (own).block_op || !(own).block_op_count);                                                            \
    ONXI_NEED(cx, (own).keep_node || !(own).keep_node_count)
bool onxi_selects(onxi_selection *s, const onx_node *node);
/* ONX_E_NOT_FOUND, naming all patterns that matched no node. */
onx_status onxi_selection_close(const onxi_selection *s, onx_ctx *cx);
/* Does the text match the pattern? At worst the time is proportional to the product of both lengths. */
bool onxi_glob(onx_str pattern, onx_str text);
onx_str onxi_node_called(const onx_node *node);

/* ---- derived weights (transform_weights.c) ---- */

/* What happened to the elements of weights. */
typedef struct onxi_weight_loss {
    uint64_t count;
    uint64_t clamped; /* beyond the range of the type: replaced by the largest finite value of that sign */
    uint64_t zeroed;  /* too small for the type */
    uint64_t coarse;  /* subnormal in the type, with reduced precision (float16, bfloat16) */
    uint64_t raised;  /* scalar constants that would underflow to zero, and became the smallest value of the type */
} onxi_weight_loss;

typedef struct onxi_weights {
    onx_doc *doc;
    const char *spill_dir; /* folder for large ones, which are written to files; NULL: kept in memory */
    onxi_spill spill;
    struct onxi_spilled_weight *pending; /* weights whose addresses are only known at the end */
    double *numbers, *made;              /* a block of elements, read and converted */
    onx_arena *scratch;
} onxi_weights;

void onxi_weights_open(onxi_weights *w, onx_doc *doc, onx_arena *scratch, const char *spill_dir);
/* The destination of a new tensor's bytes: either `memory` or the spill file. */
typedef struct onxi_weight_sink {
    onxi_weights *weights;
    onx_tensor *tensor;
    char *memory;
    uint64_t at, size;
} onxi_weight_sink;
/* A tensor of that type and shape, without a name; its bytes have to be written in order. */
onx_status onxi_weight_begin(onxi_weights *w, onx_dtype dtype, const int64_t *dims, uint32_t rank, onx_tensor **out,
                             onxi_weight_sink *sink);
onx_status onxi_weight_put(onxi_weight_sink *sink, const void *bytes, uint64_t size);
/* Converts the elements to another floating-point type. Name, description and metadata are kept. */
onx_status onxi_weight_convert(onxi_weights *w, const onx_tensor *from, onx_dtype to, onx_tensor **out,
                               onxi_weight_loss *loss);
/* Sets the addresses of all tensors' bytes; no other function may be called afterwards. */
onx_status onxi_weights_finish(onxi_weights *w);
void onxi_weights_close(onxi_weights *w);
/* Advises the system that these bytes of the document's files need not stay in memory. */
static inline void onxi_weights_forget(const onxi_weights *w, const void *ptr, uint64_t size)
{
    if (w->doc->forget && size)
        w->doc->forget(w->doc, onx_str_make(ptr, (size_t)size));
}

/* The largest finite and smallest positive value of FLOAT16, BFLOAT16, FLOAT, DOUBLE and the smaller floats. */
double onxi_float_largest(onx_dtype dtype);
double onxi_float_smallest(onx_dtype dtype);

#endif
