/* run_constant.c - constants of the document in place. What is not aligned, or is scaled on the way, is made when
 * something reads it; what is only packed never is. */
#include "run/run.h"

#include <math.h>

enum { LAZY_MIN = 4096 /* bytes that are worth not copying */ };

/* ---- loading ---- */

/* Rules look into integers, and into nothing large. */
static bool may_wait(const onx_tensor *t, uint64_t size)
{
    const onx_dtype_class class = onx_dtype_class_of(t->data_type);
    return class == ONX_CLASS_FLOATING && size >= LAZY_MIN && t->dims_count >= 2;
}

static onx_status refer(onxi_run_session *s, const onx_tensor *t, onx_str bytes, uint64_t count, bool aligned,
                        onxi_run_source **out)
{
    onx_value *v = ONXI_NEW(s->arena, onx_value);
    onxi_run_source *source = ONXI_NEW(s->arena, onxi_run_source);
    if (!v || !source)
        return ONX_E_MEMORY;
    *v = (onx_value){ .kind = ONX_VALUE_TENSOR,
                      .dtype = (uint8_t)t->data_type,
                      .flags = ONXI_VALUE_BORROWED,
                      .rank = t->dims_count,
                      .dims = t->dims,
                      .count = count,
                      .data = (void *)(uintptr_t)bytes.ptr,
                      .size = bytes.len,
                      .refs = 1 };
    *source = (onxi_run_source){ .value = v, .raw = bytes.ptr, .origin = t, .made = aligned };
    *out = source;
    return ONX_OK;
}

onx_status onxi_run_constant_load(onxi_run_session *s, const onx_tensor *t, const onx_value **out,
                                  onxi_run_source **source_out)
{
    uint64_t count, size;
    onx_str bytes;
    unsigned width = onx_dtype_bits(t->data_type) / 8;
    bool plain = t->data_type != ONX_STRING && onx_dtype_name(t->data_type) && t->dims_count <= ONX_RANK_MAX;
    *source_out = NULL;
    const onxi_tensor_part *part = onxi_doc_part(&s->reader, t);
    plain = plain && onx_tensor_count(t, &count) && onx_dtype_size(t->data_type, count, &size);
    if (plain && part && may_wait(t, size)) {
        ONX_TRY(refer(s, t, onx_str_make(part->span.ptr, (size_t)size), count, false, source_out));
        (*source_out)->part = part;
        *out = (*source_out)->value;
        return ONX_OK;
    }
    if (plain && !part) {
        ONX_TRY(onx_tensor_bytes(&s->reader, t, &bytes));
        const bool aligned = width < 2 || (uintptr_t)bytes.ptr % (width > 8 ? 8 : width) == 0;
        if (size && bytes.len == size && (aligned || may_wait(t, size))) {
            ONX_TRY(refer(s, t, bytes, count, aligned, source_out));
            *out = (*source_out)->value;
            return ONX_OK;
        }
    }
    onx_value *copy;
    ONX_TRY(onx_value_from_message(s->cx, &s->reader, ONX_KIND_TENSOR, t, &copy));
    *out = copy;
    return onxi_run_session_keep(s, copy);
}

/* ---- scaling ---- */

/* The floats of one index of the first dim. */
static bool write_scaled(const char *raw, double factor, uint64_t count, float *out)
{
    bool finite = true;
    for (uint64_t i = 0; i < count; i++) {
        float x;
        memcpy(&x, raw + i * sizeof x, sizeof x);
        x = (float)((double)x * factor);
        finite &= isfinite(x) != 0;
        if (out)
            out[i] = x;
    }
    return finite;
}

static bool scale_all(const onxi_run_source *source, float *out)
{
    const onx_value *v = source->value;
    const uint64_t rows = (uint64_t)v->dims[0], each = rows ? v->count / rows : 0;
    bool finite = true;
    for (uint64_t i = 0; i < rows; i++)
        finite &=
            write_scaled(source->raw + i * each * sizeof *out, source->scale[i], each, out ? out + i * each : NULL);
    return finite;
}

static void forget(onxi_run_session *s, const onxi_run_source *source, onx_str bytes)
{
    if (source->origin && s->reader.forget)
        s->reader.forget(&s->reader, bytes);
}

onx_status onxi_run_constant_scaled(onxi_run_session *s, const onxi_run_graph_slot *slot, const double *scale,
                                    onxi_run_source **out)
{
    const onxi_run_source *from = slot->source;
    *out = NULL;
    if (from && from->part && !from->made)
        return ONX_OK; /* what is a part of the inputs of a sum is not what is scaled */
    onx_value *v = ONXI_NEW(s->arena, onx_value);
    onxi_run_source *source = ONXI_NEW(s->arena, onxi_run_source);
    if (!v || !source)
        return ONX_E_MEMORY;
    if (from && from->scale && !from->made)
        return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE, "a constant is scaled twice");
    *v = *slot->constant;
    v->flags = ONXI_VALUE_BORROWED;
    *source = (onxi_run_source){ .value = v, .raw = v->data, .scale = scale, .origin = from ? from->origin : NULL };
    if (from && !from->made)
        v->data = (void *)(uintptr_t)(source->raw = from->raw);
    if (scale_all(source, NULL))
        *out = source;
    forget(s, source, onx_str_make(source->raw, v->size));
    return ONX_OK;
}

/* ---- making ---- */

/* The whole tensor that a part is of may be many times as large: some of it is read at a time. */
static void gather(onxi_run_session *s, const onxi_run_source *source, char *out)
{
    enum { AT_ONCE = 32 << 20 }; /* bytes that are read and skipped */
    const onxi_tensor_part *part = source->part;
    const uint64_t at_once = 1 + AT_ONCE / (part->span.len / part->runs + 1);
    for (uint64_t first = 0; first < part->runs; first += at_once) {
        const uint64_t left = part->runs - first, n = left < at_once ? left : at_once;
        const char *from = onxi_part_run(part, first), *to = onxi_part_run(part, first + n - 1) + part->run;
        onxi_part_copy(part, first * part->run, n * part->run, out + first * part->run);
        forget(s, source, onx_str_make(from, (size_t)(to - from)));
    }
}

void onxi_run_source_write(onxi_run_session *s, const onxi_run_source *source, void *out)
{
    if (!source->scale && source->part) {
        gather(s, source, out);
        return;
    }
    if (source->scale)
        scale_all(source, out);
    else
        memcpy(out, source->raw, source->value->size);
    forget(s, source, onx_str_make(source->raw, source->value->size));
}

void onxi_run_source_forget(onxi_run_session *s, const onxi_run_source *source, uint64_t from, uint64_t size)
{
    if (!source->part)
        forget(s, source, onx_str_make(source->raw + from, size));
}

onx_status onxi_run_constant_make(onxi_run_graph *g, uint32_t slot)
{
    onxi_run_source *source = g->slots[slot].source;
    onxi_run_session *s = g->slots[slot].shared ? g->session->root : g->session;
    onx_value *made;
    if (!source || source->made)
        return ONX_OK;
    const onx_value *v = source->value;
    ONX_TRY(onx_value_new_tensor(s->cx, (onx_dtype)v->dtype, v->rank, v->dims, &made));
    onxi_run_source_write(s, source, made->data);
    source->value->data = made->data;
    source->made = true;
    return onxi_run_session_keep(s, made);
}
