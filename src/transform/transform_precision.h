/* transform_precision.h - what conversions of precision and quantisation share: which nodes are meant, and weights made
 * from others without keeping all of them in memory. */
#ifndef ONXI_TRANSFORM_PRECISION_H
#define ONXI_TRANSFORM_PRECISION_H

#include "transform/transform.h"

/* ---- which nodes (transform_select.c) ---- */

/* Patterns over names of nodes, where * stands for any text and ? for one byte; a node without a name goes by that of
 * its first output. */
typedef struct onxi_selection {
    const onx_str *only, *except, *block_op; /* no `only`: all */
    uint32_t only_count, except_count, block_op_count;
    bool *used; /* per pattern, in that order: it fitted a node */
} onxi_selection;

onx_status onxi_selection_open(onxi_selection *s, onx_arena *scratch);
/* Every pattern is looked at, so that one that fits nothing can be reported. */
/* The options of a call that choose nodes. */
#define ONXI_NEED_SELECTION(cx, own)                                                                                   \
    ONXI_NEED(cx, (own).only || !(own).only_count);                                                                    \
    ONXI_NEED(cx, (own).except || !(own).except_count);                                                                \
    ONXI_NEED(cx, (own).block_op || !(own).block_op_count);                                                            \
    ONXI_NEED(cx, (own).keep_node || !(own).keep_node_count)
bool onxi_selects(onxi_selection *s, const onx_node *node);
/* ONX_E_NOT_FOUND, with all of them named, for patterns that fitted no node. */
onx_status onxi_selection_close(const onxi_selection *s, onx_ctx *cx);
/* Does the text fit the pattern? Linear in the product of both lengths at worst. */
bool onxi_glob(onx_str pattern, onx_str text);
onx_str onxi_node_called(const onx_node *node);

/* ---- weights made from others (transform_weights.c) ---- */

/* What becomes of the elements of a weight. */
typedef struct onxi_weight_loss {
    uint64_t count;
    uint64_t clamped; /* beyond the range of the type: the largest finite number of that sign */
    uint64_t zeroed;  /* too small for the type */
    uint64_t coarse;  /* below its normal range, where it has fewer digits (float16, bfloat16) */
    uint64_t raised;  /* single constants that would be zero and became the smallest number of the type */
} onxi_weight_loss;

typedef struct onxi_weights {
    onx_doc *doc;
    const char *spill_dir; /* large ones go to a file there; NULL: memory */
    onxi_spill spill;
    struct onxi_spilled_weight *pending; /* whose address is known at the end */
    double *numbers, *made;              /* a piece, read and converted */
    onx_arena *scratch;
} onxi_weights;

void onxi_weights_open(onxi_weights *w, onx_doc *doc, onx_arena *scratch, const char *spill_dir);
/* Where the bytes of a new tensor go. Either `memory` or the spill. */
typedef struct onxi_weight_sink {
    onxi_weights *weights;
    onx_tensor *tensor;
    char *memory;
    uint64_t at, size;
} onxi_weight_sink;
/* A tensor of that type and shape, without name, whose bytes are to be written in order. */
onx_status onxi_weight_begin(onxi_weights *w, onx_dtype dtype, const int64_t *dims, uint32_t rank, onx_tensor **out,
                             onxi_weight_sink *sink);
onx_status onxi_weight_put(onxi_weight_sink *sink, const void *bytes, uint64_t size);
/* The same elements in another floating type. Name, description and metadata stay. */
onx_status onxi_weight_convert(onxi_weights *w, const onx_tensor *from, onx_dtype to, onx_tensor **out,
                               onxi_weight_loss *loss);
/* Tensors get their bytes; nothing else may be asked for afterwards. */
onx_status onxi_weights_finish(onxi_weights *w);
void onxi_weights_close(onxi_weights *w);
/* Tells the system that these bytes of the document's files need not stay in memory. */
static inline void onxi_weights_forget(const onxi_weights *w, const void *ptr, uint64_t size)
{
    if (w->doc->forget && size)
        w->doc->forget(w->doc, onx_str_make(ptr, (size_t)size));
}

/* Largest finite and smallest positive number of FLOAT16, BFLOAT16, FLOAT, DOUBLE and the smaller floats. */
double onxi_float_largest(onx_dtype dtype);
double onxi_float_smallest(onx_dtype dtype);

#endif
