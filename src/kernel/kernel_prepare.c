/* kernel_prepare.c - preparation functions shared by kernels: attributes, failures, outputs. */
#include <onx/ffi.h>

#include "kernel/kernel.h"

/* ---- attributes ---- */

/* Reports a kernel that asks for an attribute that its operator does not have, or reads one without a value. The node
 * then fails. */
static void misread(const onx_prepare *p, const char *name)
{
    (void)onx_prepare_fail(p, ONX_E_INVALID, "the kernel asks for attribute %s, which has no value", name);
}

static const onxi_attr_value *find(const onx_prepare *p, const char *name)
{
    const onxi_attr_value *value = onxi_attrs_find(p->attrs, name);
    if (!value && !onxi_schema_has_attr(p->schema, name))
        misread(p, name);
    return value;
}

/* Reads an attribute that must have a value. */
static const onxi_attr_value *read(const onx_prepare *p, const char *name, onx_attribute_type type)
{
    static const onxi_attr_value nothing = { .count = 0 };
    const onxi_attr_value *value = onxi_attrs_get(p->attrs, name, type);
    if (!value)
        misread(p, name);
    return value ? value : &nothing;
}

bool onx_prepare_given(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return false;
    const onxi_attr_value *value = find(p, name);
    return value && value->given;
}

int64_t onx_prepare_int(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return 0;
    return read(p, name, ONX_ATTR_INT)->i;
}

bool onx_prepare_is_set(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return false;
    const onxi_attr_value *value = find(p, name);
    return value && value->type == ONX_ATTR_INT && value->i != 0;
}

float onx_prepare_float(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return 0;
    return read(p, name, ONX_ATTR_FLOAT)->f;
}

onx_str onx_prepare_text(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return onx_str_make("", 0);
    return read(p, name, ONX_ATTR_STRING)->s;
}

int onxi_prepare_word(const onx_prepare *p, const char *name, const onxi_word *words, uint32_t count)
{
    const onx_str text = onx_prepare_text(p, name);
    for (uint32_t i = 0; i < count; i++)
        if (onx_str_is(text, words[i].text) && p->since >= words[i].since &&
            (!words[i].until || p->since <= words[i].until))
            return (int)i;
    return -1;
}

static const void *list(const onx_prepare *p, const char *name, onx_attribute_type type, uint32_t *count)
{
    const onxi_attr_value *value = find(p, name);
    const bool there = value && value->type == type && value->count;
    *count = there ? value->count : 0;
    return there ? value->list : NULL;
}

const int64_t *onx_prepare_ints(const onx_prepare *p, const char *name, uint32_t *count)
{
    if (!p || !name || !count)
        return NULL;
    return list(p, name, ONX_ATTR_INTS, count);
}

const float *onx_prepare_floats(const onx_prepare *p, const char *name, uint32_t *count)
{
    if (!p || !name || !count)
        return NULL;
    return list(p, name, ONX_ATTR_FLOATS, count);
}

const onx_bytes *onx_prepare_strings(const onx_prepare *p, const char *name, uint32_t *count)
{
    if (!p || !name || !count)
        return NULL;
    return list(p, name, ONX_ATTR_STRINGS, count);
}

const onx_tensor *onx_prepare_tensor(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return NULL;
    const onxi_attr_value *value = find(p, name);
    return value && value->type == ONX_ATTR_TENSOR ? value->t : NULL;
}

const onx_sparse_tensor *onx_prepare_sparse_tensor(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return NULL;
    const onxi_attr_value *value = find(p, name);
    return value && value->type == ONX_ATTR_SPARSE_TENSOR ? value->sparse : NULL;
}

const onx_graph *onx_prepare_graph(const onx_prepare *p, const char *name)
{
    if (!p || !name)
        return NULL;
    const onxi_attr_value *value = find(p, name);
    return value && value->type == ONX_ATTR_GRAPH ? value->g : NULL;
}

#define OUTSIDE "axis %lld is outside of rank %u"

static bool find_axis(int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return false;
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

onx_status onx_prepare_axis(const onx_prepare *p, int64_t axis, uint32_t rank, uint32_t *out)
{
    ONXI_NEED(NULL, p);
    ONXI_NEED(p->cx, out);
    if (find_axis(axis, rank, out))
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID, OUTSIDE, (long long)axis, rank);
}

onx_status onx_work_axis(onx_work *work, int64_t axis, uint32_t rank, uint32_t *out)
{
    ONXI_NEED(NULL, work);
    ONXI_NEED(work->cx, out);
    if (find_axis(axis, rank, out))
        return ONX_OK;
    return onx_work_fail(work, ONX_E_INVALID, OUTSIDE, (long long)axis, rank);
}

/* ---- failures ---- */

onx_where onxi_kernel_place(const onx_prepare_ops *ops, const void *place, onx_arena *arena)
{
    return place ? ONXI_AT_PATH(ops->path(place, arena)) : ONXI_NOWHERE;
}

static void fail(onx_ctx *cx, const onx_prepare_ops *ops, const void *place, onx_status status, const char *format,
                 va_list args)
{
    onx_arena *arena = NULL;
    onx_diag diag = { .severity = ONX_ERROR, .status = status, .where = ONXI_NOWHERE };
    if (place && onx_arena_new(cx, &arena) == ONX_OK)
        diag.where = onxi_kernel_place(ops, place, arena);
    onxi_vreport(cx, &diag, format, args);
    onx_arena_free(arena);
}

onx_status onx_prepare_fail(const onx_prepare *p, onx_status status, const char *format, ...)
{
    ONXI_NEED(NULL, p);
    ONXI_NEED(p->cx, format);
    if (!p->cx)
        return status;
    va_list args;
    va_start(args, format);
    fail(p->cx, p->ops, p->place, status, format, args);
    va_end(args);
    return status;
}

bool onxi_prepare_stops(const onx_prepare *p)
{
    return p->ops && p->ops->stops && p->ops->stops(p);
}

bool onx_work_stops(const onx_work *work)
{
    const onxi_work_watch *watch = work ? work->watch : NULL;
    return watch && watch->stops && watch->stops(watch);
}

onx_status onx_work_fail(onx_work *work, onx_status status, const char *format, ...)
{
    ONXI_NEED(NULL, work);
    ONXI_NEED(work->cx, format);
    if (!work->cx)
        return status;
    va_list args;
    va_start(args, format);
    fail(work->cx, work->prepared->ops, work->prepared->place, status, format, args);
    va_end(args);
    return status;
}

onx_status onx_prepare_fail_text(const onx_prepare *p, onx_status status, onx_str text)
{
    ONXI_NEED(NULL, p);
    ONXI_NEED(p->cx, text.ptr || !text.len);
    return onx_prepare_fail(p, status, "%.*s", ONX_ARG(text));
}

onx_status onx_work_fail_text(onx_work *work, onx_status status, onx_str text)
{
    ONXI_NEED(NULL, work);
    ONXI_NEED(work->cx, text.ptr || !text.len);
    return onx_work_fail(work, status, "%.*s", ONX_ARG(text));
}

/* ---- preparing during a run ---- */

const onx_prepare *onxi_prepare_keep(const onx_prepare *p)
{
    onx_prepare *kept = ONXI_NEW(p->arena, onx_prepare);
    if (kept)
        *kept = *p;
    return kept;
}

onx_prepare onxi_prepare_again(const onx_prepare *kept, const onx_work *work)
{
    onx_prepare again = *kept;
    again.cx = work->cx;
    again.doc = NULL;
    again.inputs = work->inputs;
    again.outputs = work->outputs;
    return again;
}

/* ---- outputs ---- */

onx_status onx_prepare_output(onx_prepare *p, uint32_t output, onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    ONXI_NEED(NULL, p);
    ONXI_NEED(p->cx, dims || !rank);
    onx_value *v = output < p->output_count ? p->outputs[output] : NULL;
    if (!v)
        return ONX_OK;
    if (rank > ONX_RANK_MAX || !onxi_dims_count(rank, dims, &v->count) ||
        !onxi_tensor_room((int)dtype, v->count, &v->size))
        return onx_prepare_fail(p, ONX_E_LIMIT, "output %u has impossible dims", output);
    v->dims = ONXI_ARRAY(p->arena, int64_t, rank ? rank : 1u);
    if (!v->dims)
        return ONX_E_MEMORY;
    onxi_copy_dims(v->dims, dims, rank);
    v->kind = ONX_VALUE_TENSOR;
    v->dtype = (uint8_t)dtype;
    v->rank = rank;
    return ONX_OK;
}

onx_status onxi_whole_bytes(onx_prepare *p)
{
    for (uint32_t i = 0; i < p->input_count; i++)
        if (p->inputs[i] && !onxi_element_size(p->inputs[i]->dtype))
            return ONX_E_UNSUPPORTED;
    return ONX_OK;
}

/* ---- weights ---- */

static onx_status note_finite(void *user, const void *elements, uint64_t piece, void *out)
{
    onx_value w = *(const onx_value *)user;
    (void)piece;
    w.data = (void *)(uintptr_t)elements;
    *(bool *)out = onxi_value_is_finite(&w);
    return ONX_OK;
}

bool onxi_weights_are_finite(const onx_prepare *p, uint32_t input)
{
    static const char key[] = "finite";
    const onx_packing packing = { .input = input,
                                  .key = key,
                                  .key_size = sizeof key,
                                  .size = sizeof(bool),
                                  .unaligned = true,
                                  .make = note_finite,
                                  .user = (void *)(uintptr_t)(const void *)p->inputs[input],
                                  .note = true };
    const void *note;
    return p->ops->packed(p, &packing, &note) == ONX_OK && *(const bool *)note;
}

/* ---- views ---- */

onx_status onxi_view_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_work_fail(work, ONX_E_INVALID, "a view has nothing to run");
}
