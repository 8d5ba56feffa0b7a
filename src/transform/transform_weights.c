/* transform_weights.c - weights derived from other weights, in blocks: small ones are kept in the memory of the
 * document, large ones in an unnamed file that the document maps. */
#include "transform/transform_precision.h"

#include <float.h>
#include <math.h>

enum { PIECE = 1 << 14, SPILL_FROM = 1 << 20 };

typedef struct onxi_spilled_weight {
    struct onxi_spilled_weight *next;
    onx_tensor *tensor;
    uint64_t offset, size;
} onxi_spilled_weight;

void onxi_weights_open(onxi_weights *w, onx_doc *doc, onx_arena *scratch, const char *spill_dir)
{
    *w = (onxi_weights){ .doc = doc, .spill_dir = spill_dir, .spill = { .fd = -1 }, .scratch = scratch };
}

void onxi_weights_close(onxi_weights *w)
{
    onxi_spill_close(&w->spill);
}

/* ---- writing ---- */

static onx_status begin_spilled(onxi_weights *w, onxi_weight_sink *sink)
{
    onxi_spilled_weight *p = ONXI_NEW(w->scratch, onxi_spilled_weight);
    if (!p)
        return ONX_E_MEMORY;
    if (w->spill.fd < 0)
        ONX_TRY(onxi_spill_open(w->doc->cx, w->spill_dir, &w->spill));
    static const char zeros[8];
    ONX_TRY(onxi_spill_write(w->doc->cx, &w->spill, onx_str_make(zeros, (8 - w->spill.size % 8) % 8)));
    *p = (onxi_spilled_weight){ w->pending, sink->tensor, w->spill.size, sink->size };
    w->pending = p;
    return ONX_OK;
}

onx_status onxi_weight_begin(onxi_weights *w, onx_dtype dtype, const int64_t *dims, uint32_t rank, onx_tensor **out,
                             onxi_weight_sink *sink)
{
    onx_arena *arena = w->doc->arena;
    uint64_t count, size;
    onx_tensor *t = onx_message_new(arena, ONX_KIND_TENSOR);
    *sink = (onxi_weight_sink){ .weights = w, .tensor = t };
    if (!t || !(t->dims = onxi_arena_array(arena, (size_t)onxi_list_room(rank), sizeof *t->dims)))
        return ONX_E_MEMORY;
    onxi_copy_dims(t->dims, dims, rank);
    t->dims_count = rank;
    ONX_SET(tensor, t, data_type, (int32_t)dtype);
    if (!onx_tensor_count(t, &count) || !onx_dtype_size((int64_t)dtype, count, &size) || size > SIZE_MAX)
        return onxi_fail(w->doc->cx, ONX_E_INVALID, ONXI_NOWHERE,
                         "the size of a weight does not follow from its shape");
    t->has |= onx_tensor_has_raw_data;
    sink->size = size;
    *out = t;
    if (size >= SPILL_FROM && w->spill_dir)
        return begin_spilled(w, sink);
    sink->memory = onxi_arena_get(arena, size ? (size_t)size : 1);
    return sink->memory ? onx_arena_refer(arena, onx_str_make(sink->memory, (size_t)size), &t->raw_data) : ONX_E_MEMORY;
}

onx_status onxi_weight_put(onxi_weight_sink *sink, const void *bytes, uint64_t size)
{
    if (size > sink->size - sink->at)
        return onxi_fail(sink->weights->doc->cx, ONX_E_INVALID, ONXI_NOWHERE, "a weight got more bytes than it has");
    if (sink->memory && size)
        memcpy(sink->memory + sink->at, bytes, (size_t)size);
    else if (size)
        ONX_TRY(onxi_spill_write(sink->weights->doc->cx, &sink->weights->spill, onx_str_make(bytes, (size_t)size)));
    sink->at += size;
    return ONX_OK;
}

onx_status onxi_weights_finish(onxi_weights *w)
{
    onxi_file file;
    if (!w->pending)
        return ONX_OK;
    ONX_TRY(onxi_spill_map(w->doc->cx, &w->spill, &file));
    const char *base = file.bytes.ptr;
    ONX_TRY(onxi_doc_spill(w->doc, &file));
    for (const onxi_spilled_weight *p = w->pending; p; p = p->next)
        ONX_TRY(onx_arena_refer(w->doc->arena, onx_str_make(base + p->offset, (size_t)p->size), &p->tensor->raw_data));
    w->pending = NULL;
    return ONX_OK;
}

/* ---- elements of a type ---- */

double onxi_float_largest(onx_dtype dtype)
{
    const onxi_dtype_row *row = onxi_dtype_row_of((int64_t)dtype);
    if (dtype == ONX_FLOAT)
        return (double)FLT_MAX;
    if (!row->max)
        return DBL_MAX;
    const int mantissa = row->max & ((1 << row->mantissa) - 1), exponent = row->max >> row->mantissa;
    return ldexp((1 << row->mantissa) + mantissa, exponent - row->bias - row->mantissa);
}

double onxi_float_smallest(onx_dtype dtype)
{
    const onxi_dtype_row *row = onxi_dtype_row_of((int64_t)dtype);
    return row->values ? ldexp(1, 1 - row->bias - row->mantissa) : 0x1p-1074;
}

/* ---- converting elements to another type ---- */

/* For 2-byte types, whose subnormal numbers occur in practice. */
static double smallest_normal(onx_dtype dtype)
{
    return dtype == ONX_FLOAT16 ? 0x1p-14 : dtype == ONX_BFLOAT16 ? 0x1p-126 : 0;
}

/* Keeps finite elements finite, and a nonzero scalar constant nonzero: it may protect a division from a zero
 * denominator. */
static void fit(double *x, uint64_t n, onx_dtype to, bool single, onxi_weight_loss *loss)
{
    const double most = onxi_float_largest(to), least = onxi_float_smallest(to), normal = smallest_normal(to);
    for (uint64_t i = 0; i < n; i++) {
        const double size = fabs(x[i]);
        loss->coarse += size > least / 2 && size < normal;
        if (size > most && size <= DBL_MAX) {
            x[i] = copysign(most, x[i]);
            loss->clamped++;
        } else if (size > 0 && size <= least / 2) {
            if (single)
                x[i] = copysign(least, x[i]);
            loss->raised += single;
            loss->zeroed += !single;
        }
    }
}

static onx_status convert_pieces(onxi_weights *w, const onx_tensor *from, onx_dtype to, uint64_t count,
                                 onxi_weight_sink *sink, onxi_weight_loss *loss)
{
    const onx_dtype dtype = (onx_dtype)from->data_type;
    onx_str bytes;
    ONX_TRY(onx_tensor_bytes(w->doc, from, &bytes));
    if (!w->numbers &&
        (!(w->numbers = ONXI_ARRAY(w->scratch, double, PIECE)) || !(w->made = ONXI_ARRAY(w->scratch, double, PIECE))))
        return ONX_E_MEMORY;
    for (uint64_t at = 0; at < count; at += PIECE) {
        const uint64_t n = count - at < PIECE ? count - at : PIECE;
        const uint64_t start = at / 8 * onx_dtype_bits((int64_t)dtype); /* PIECE is a multiple of 8 */
        uint64_t read, made;
        if (!onx_dtype_size((int64_t)dtype, n, &read) || !onx_dtype_size((int64_t)to, n, &made))
            return ONX_E_UNSUPPORTED;
        onxi_convert(ONX_DOUBLE, w->numbers, dtype, bytes.ptr, at, n, true);
        fit(w->numbers, n, to, count == 1, loss);
        onxi_convert(to, w->made, ONX_DOUBLE, w->numbers, 0, n, true);
        ONX_TRY(onxi_weight_put(sink, w->made, made));
        onxi_weights_forget(w, bytes.ptr + start, read);
    }
    return ONX_OK;
}

onx_status onxi_weight_convert(onxi_weights *w, const onx_tensor *from, onx_dtype to, onx_tensor **out,
                               onxi_weight_loss *loss)
{
    onxi_weight_sink sink;
    uint64_t count;
    *loss = (onxi_weight_loss){ 0 };
    if (!onx_tensor_count(from, &count))
        return onxi_fail(w->doc->cx, ONX_E_INVALID, ONXI_NOWHERE, "tensor %.*s has impossible dims",
                         ONX_ARG(onx_view(from->name)));
    loss->count = count;
    ONX_TRY(onxi_weight_begin(w, to, from->dims, from->dims_count, out, &sink));
    ONX_TRY(convert_pieces(w, from, to, count, &sink, loss));
    onx_tensor *t = *out;
    if (ONX_HAS(tensor, from, name))
        ONX_SET(tensor, t, name, from->name);
    if (ONX_HAS(tensor, from, doc_string))
        ONX_SET(tensor, t, doc_string, from->doc_string);
    t->metadata_props = from->metadata_props;
    t->metadata_props_count = from->metadata_props_count;
    t->extra = from->extra;
    return ONX_OK;
}
