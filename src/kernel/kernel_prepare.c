/* kernel_prepare.c - what kernels share while preparing: attributes, failures, outputs. */
#include "kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- attributes ---- */

const onx_attribute *onx_prepare_attribute(const onx_prepare *p, const char *name)
{
    return p->ops->attribute(p, name);
}

static bool default_number(const onx_prepare *p, const char *name, double *out)
{
    const char *text = p->ops->otherwise(p, name);
    bool overflow;
    return text && *text != '[' && *text != '"' && onxi_parse_f64(onx_str_of(text), out, &overflow);
}

int64_t onx_prepare_int(const onx_prepare *p, const char *name, int64_t otherwise)
{
    const onx_attribute *a = onx_prepare_attribute(p, name);
    uint32_t count;
    const int64_t *value = a ? onx_attribute_value(a, ONX_SLOT_I, &count) : NULL;
    double number;
    if (value)
        return *value;
    return default_number(p, name, &number) ? (int64_t)number : otherwise;
}

float onx_prepare_float(const onx_prepare *p, const char *name, float otherwise)
{
    const onx_attribute *a = onx_prepare_attribute(p, name);
    uint32_t count;
    const float *value = a ? onx_attribute_value(a, ONX_SLOT_F, &count) : NULL;
    double number;
    if (value)
        return *value;
    return default_number(p, name, &number) ? (float)number : otherwise;
}

onx_str onx_prepare_text(const onx_prepare *p, const char *name, const char *otherwise)
{
    const onx_attribute *a = onx_prepare_attribute(p, name);
    uint32_t count;
    const onx_bytes *value = a ? onx_attribute_value(a, ONX_SLOT_S, &count) : NULL;
    if (value)
        return onx_view(*value);
    const char *text = p->ops->otherwise(p, name);
    if (!text || *text != '"')
        return onx_str_of(otherwise);
    return onx_str_make(text + 1, strlen(text) - 2);
}

/* Elements of "[1, 2]"; NULL when the text is no list. */
static uint32_t default_list(const onx_prepare *p, const char *name, double *out, uint32_t room)
{
    const char *text = p->ops->otherwise(p, name);
    uint32_t count = 0;
    if (!text || *text != '[')
        return 0;
    for (text++; *text && *text != ']' && count < room;) {
        size_t len = strcspn(text, ",]");
        const char *start = text;
        while (len && *start == ' ') {
            start++;
            len--;
        }
        bool overflow;
        if (!onxi_parse_f64(onx_str_make(start, len), &out[count], &overflow))
            return 0;
        count++;
        text = start + len;
        if (*text == ',')
            text++;
    }
    return count;
}

#define DEFAULT_LIST_MAX 16

const int64_t *onx_prepare_ints(const onx_prepare *p, const char *name, uint32_t *count)
{
    const onx_attribute *a = onx_prepare_attribute(p, name);
    const int64_t *value = a ? onx_attribute_value(a, ONX_SLOT_INTS, count) : NULL;
    if (value)
        return value;
    double numbers[DEFAULT_LIST_MAX];
    *count = default_list(p, name, numbers, DEFAULT_LIST_MAX);
    int64_t *made = *count ? ONXI_ARRAY(p->arena, int64_t, *count) : NULL;
    if (!made)
        *count = 0;
    for (uint32_t i = 0; i < *count; i++)
        made[i] = (int64_t)numbers[i];
    return made;
}

const float *onx_prepare_floats(const onx_prepare *p, const char *name, uint32_t *count)
{
    const onx_attribute *a = onx_prepare_attribute(p, name);
    const float *value = a ? onx_attribute_value(a, ONX_SLOT_FLOATS, count) : NULL;
    if (value)
        return value;
    double numbers[DEFAULT_LIST_MAX];
    *count = default_list(p, name, numbers, DEFAULT_LIST_MAX);
    float *made = *count ? ONXI_ARRAY(p->arena, float, *count) : NULL;
    if (!made)
        *count = 0;
    for (uint32_t i = 0; i < *count; i++)
        made[i] = (float)numbers[i];
    return made;
}

const onx_graph *onx_prepare_graph(const onx_prepare *p, const char *name)
{
    const onx_attribute *a = onx_prepare_attribute(p, name);
    uint32_t count;
    onx_graph *const *g = a ? onx_attribute_value(a, ONX_SLOT_G, &count) : NULL;
    return g ? *g : NULL;
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
    if (find_axis(axis, rank, out))
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID, OUTSIDE, (long long)axis, rank);
}

onx_status onx_work_axis(onx_work *work, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (find_axis(axis, rank, out))
        return ONX_OK;
    return onx_work_fail(work, ONX_E_INVALID, OUTSIDE, (long long)axis, rank);
}

/* ---- failures ---- */

static onx_status fail(onx_ctx *cx, onx_str path, onx_status status, const char *format, va_list args)
{
    onx_diag diag = { .severity = ONX_ERROR, .status = status, .where = ONXI_AT_PATH(path) };
    onxi_vreport(cx, &diag, format, args);
    return status;
}

onx_status onx_prepare_fail(const onx_prepare *p, onx_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(p->cx, p->path, status, format, args);
    va_end(args);
    return status;
}

onx_status onx_work_fail(onx_work *work, onx_status status, const char *format, ...)
{
    if (!work->cx)
        return status;
    va_list args;
    va_start(args, format);
    fail(work->cx, work->prepared->path, status, format, args);
    va_end(args);
    return status;
}

onx_status onx_prepare_output(onx_prepare *p, uint32_t output, onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    onx_value *v = output < p->output_count ? p->outputs[output] : NULL;
    if (!v)
        return ONX_OK;
    if (rank > ONX_RANK_MAX || !onxi_dims_count(rank, dims, &v->count) ||
        !onxi_tensor_room((int)dtype, v->count, &v->size))
        return onx_prepare_fail(p, ONX_E_LIMIT, "output %u has impossible dims", output);
    v->dims = ONXI_ARRAY(p->arena, int64_t, rank ? rank : 1u);
    if (!v->dims)
        return ONX_E_MEMORY;
    if (rank)
        memcpy(v->dims, dims, rank * sizeof *dims);
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
