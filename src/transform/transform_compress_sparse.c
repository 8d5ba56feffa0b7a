/* transform_compress_sparse.c - stores weights that are mostly zeros as their nonzero elements and indices. */
#include "transform/transform_compress.h"

enum {
    PIECE = 1 << 16,      /* bytes scanned between two calls that drop pages; a multiple of every element size */
    BATCH = 512,          /* elements written at once */
    LEAST = 1024,         /* minimum size of a weight, in bytes, for which sparse storage pays off */
    WIDEST = 16,          /* maximum element size in bytes: complex128 */
    SPARSE_IR_VERSION = 6 /* the first IR version with sparse initializers */
};

/* Negative zeros have bits set, so they are kept. */
static bool is_zero(const char *element, size_t size)
{
    static const char zeros[WIDEST];
    return memcmp(element, zeros, size) == 0;
}

typedef struct sparse_weight {
    const onx_tensor *from;
    onx_str bytes;
    size_t width; /* element size in bytes */
    uint64_t nonzero;
} sparse_weight;

typedef struct sparse_sink {
    onxi_weight_sink values, indices;
    bool wants_indices; /* write indices instead of nonzero elements */
    int64_t index[BATCH];
    char value[BATCH * WIDEST];
    uint32_t held;
} sparse_sink;

static onx_status flush(sparse_sink *sink, size_t width)
{
    const onx_status status = sink->wants_indices
                                  ? onxi_weight_put(&sink->indices, sink->index, sink->held * sizeof *sink->index)
                                  : onxi_weight_put(&sink->values, sink->value, sink->held * width);
    sink->held = 0;
    return status;
}

/* Visits all nonzero elements; counts them if there is no sink. */
static onx_status each_nonzero(const onxi_weights *weights, sparse_weight *w, sparse_sink *sink)
{
    w->nonzero = 0;
    for (size_t at = 0; at < w->bytes.len; at += PIECE) {
        const size_t end = w->bytes.len - at < PIECE ? w->bytes.len : at + PIECE;
        for (size_t i = at; i < end; i += w->width) {
            if (is_zero(w->bytes.ptr + i, w->width))
                continue;
            w->nonzero++;
            if (!sink)
                continue;
            memcpy(sink->value + sink->held * w->width, w->bytes.ptr + i, w->width);
            sink->index[sink->held++] = (int64_t)(i / w->width);
            if (sink->held == BATCH)
                ONX_TRY(flush(sink, w->width));
        }
        onxi_weights_forget(weights, w->bytes.ptr + at, end - at);
    }
    return sink ? flush(sink, w->width) : ONX_OK;
}

/* Sparse storage has to take at most half of the bytes, because a dense weight is used directly from the mapped file,
 * and a sparse one has to be expanded. */
static bool pays(const sparse_weight *w)
{
    return w->nonzero <= w->bytes.len / 2 / (w->width + sizeof(int64_t));
}

static onx_status make_sparse(onxi_weights *weights, sparse_weight *w, onx_sparse_tensor **out)
{
    onx_arena *arena = weights->doc->arena;
    sparse_sink sink = { .wants_indices = false };
    onx_tensor *values, *indices;
    onx_sparse_tensor *s = onx_message_new(arena, ONX_KIND_SPARSE_TENSOR);
    if (!s || !(s->dims = onxi_arena_array(arena, (size_t)onxi_list_room(w->from->dims_count), sizeof *s->dims)))
        return ONX_E_MEMORY;
    onxi_copy_dims(s->dims, w->from->dims, w->from->dims_count);
    s->dims_count = w->from->dims_count;
    const int64_t dims[] = { (int64_t)w->nonzero };
    ONX_TRY(onxi_weight_begin(weights, (onx_dtype)w->from->data_type, dims, 1, &values, &sink.values));
    ONX_TRY(each_nonzero(weights, w, &sink));
    sink.wants_indices = true;
    ONX_TRY(onxi_weight_begin(weights, ONX_INT64, dims, 1, &indices, &sink.indices));
    ONX_TRY(each_nonzero(weights, w, &sink));
    ONX_SET(tensor, values, name, w->from->name);
    if (ONX_HAS(tensor, w->from, doc_string))
        ONX_SET(tensor, values, doc_string, w->from->doc_string);
    values->metadata_props = w->from->metadata_props;
    values->metadata_props_count = w->from->metadata_props_count;
    ONX_SET(sparse_tensor, s, values, values);
    ONX_SET(sparse_tensor, s, indices, indices);
    *out = s;
    return ONX_OK;
}

/* Elements of whole bytes, in a shape that sparse tensors can have. */
static bool can_be_sparse(const onx_tensor *t, onx_str bytes, size_t *width)
{
    const unsigned bits = onx_dtype_bits(t->data_type);
    *width = bits / 8;
    return bits >= 8 && *width <= WIDEST && t->dims_count && bytes.len >= LEAST;
}

/* `*out` is NULL if the weight is not changed. */
static onx_status try_sparse(const onxi_compressor *c, onxi_weights *weights, const onx_tensor *t,
                             onx_sparse_tensor **out)
{
    sparse_weight w = { .from = t };
    *out = NULL;
    if (!onxi_compress_may_change(c, t))
        return ONX_OK;
    ONX_TRY(onx_tensor_bytes(c->doc, t, &w.bytes));
    if (!can_be_sparse(t, w.bytes, &w.width))
        return ONX_OK;
    ONX_TRY(each_nonzero(weights, &w, NULL));
    return pays(&w) ? make_sparse(weights, &w, out) : ONX_OK;
}

static onx_status make_all(onxi_compressor *c, onxi_weights *weights, onx_graph *g)
{
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        onx_tensor *t = g->initializer[i];
        onx_sparse_tensor *made;
        ONX_TRY(try_sparse(c, weights, t, &made));
        if (!made)
            continue;
        onx_sparse_tensor **at = onx_list_insert(c->arena, (void **)&g->sparse_initializer,
                                                 &g->sparse_initializer_count, g->sparse_initializer_count, sizeof *at);
        if (!at)
            return ONX_E_MEMORY;
        *at = made;
        g->initializer[i] = NULL;
        onxi_compress_tell(c, "sparse", onx_view(t->name), "is stored as nonzero elements and their indices");
    }
    return onxi_weights_finish(weights);
}

onx_status onxi_compress_sparse(onxi_compressor *c, onx_graph *g)
{
    onxi_weights weights;
    uint32_t kept = 0;
    onxi_weights_open(&weights, c->doc, c->scratch, c->options->spill_dir);
    const onx_status status = make_all(c, &weights, g);
    onxi_weights_close(&weights);
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (g->initializer[i])
            g->initializer[kept++] = g->initializer[i];
    g->initializer_count = kept;
    if (g->sparse_initializer_count && status == ONX_OK)
        return onxi_model_raise_ir(c->scratch, c->model, SPARSE_IR_VERSION);
    return status;
}
