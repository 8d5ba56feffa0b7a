/* kernel_prepare.c - what kernels share while preparing: attributes, failures, broadcasting, windows. */
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

/* ---- shapes ---- */

uint64_t onxi_product(const int64_t *dims, uint32_t first, uint32_t last)
{
    uint64_t product = 1;
    for (uint32_t i = first; i < last; i++)
        product *= (uint64_t)dims[i];
    return product;
}

void onxi_strides(const onx_value *v, int64_t *out)
{
    uint64_t stride = 1; /* dims of an empty tensor may be of any size */
    for (uint32_t d = v->rank; d-- > 0;) {
        out[d] = (int64_t)stride;
        stride *= (uint64_t)v->dims[d];
    }
}

bool onxi_broadcast_make(onxi_broadcast *b, const onx_value *const *inputs, uint32_t count, const onx_value *output,
                         const int32_t *shift)
{
    memset(b, 0, sizeof *b);
    b->inputs = count;
    uint32_t rank = output->rank;
    int64_t full[ONXI_BROADCAST_MAX][ONX_RANK_MAX];
    if (count > ONXI_BROADCAST_MAX || rank > ONX_RANK_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const onx_value *v = inputs[i];
        if (v->rank > rank)
            return false;
        uint32_t first = shift && shift[i] >= 0 ? (uint32_t)shift[i] : rank - v->rank;
        if (first + v->rank > rank)
            return false;
        int64_t step = 1;
        for (uint32_t d = rank; d-- > 0;) {
            bool inside = d >= first && d < first + v->rank;
            int64_t dim = inside ? v->dims[d - first] : 1;
            if (dim != output->dims[d] && dim != 1)
                return false;
            full[i][d] = dim == 1 ? 0 : step;
            step *= dim;
        }
    }
    /* merge dims: d joins d+1 when every input runs through both in one stride */
    for (uint32_t d = rank; d-- > 0;) {
        if (output->dims[d] == 1 && b->rank)
            continue;
        uint32_t last = b->rank;
        bool joins = last > 0;
        for (uint32_t i = 0; joins && i < count; i++)
            joins = full[i][d] == b->step[i][last - 1] * b->dims[last - 1] &&
                    (full[i][d] != 0 || b->step[i][last - 1] == 0);
        if (joins && output->dims[d] != 1) {
            b->dims[last - 1] *= output->dims[d];
            continue;
        }
        b->dims[last] = output->dims[d];
        for (uint32_t i = 0; i < count; i++)
            b->step[i][last] = full[i][d];
        b->rank++;
    }
    if (!b->rank) {
        b->rank = 1;
        b->dims[0] = 1;
    }
    /* innermost first so far: turn round */
    for (uint32_t l = 0, r = b->rank - 1; l < r; l++, r--) {
        int64_t t = b->dims[l];
        b->dims[l] = b->dims[r];
        b->dims[r] = t;
        for (uint32_t i = 0; i < count; i++) {
            t = b->step[i][l];
            b->step[i][l] = b->step[i][r];
            b->step[i][r] = t;
        }
    }
    b->inner = b->dims[b->rank - 1];
    b->outer = onxi_product(b->dims, 0, b->rank - 1);
    return true;
}

void onxi_broadcast_offsets(const onxi_broadcast *b, uint64_t row, int64_t *offsets)
{
    for (uint32_t i = 0; i < b->inputs; i++)
        offsets[i] = 0;
    for (uint32_t d = b->rank - 1; d-- > 0;) {
        int64_t at = (int64_t)(row % (uint64_t)b->dims[d]);
        row /= (uint64_t)b->dims[d];
        for (uint32_t i = 0; i < b->inputs; i++)
            offsets[i] += at * b->step[i][d];
    }
}

/* ---- windows ---- */

/* A list attribute of `count` numbers with a default for all of them. */
static onx_status spatial_list(const onx_prepare *p, const char *name, uint32_t count, int64_t otherwise, int64_t least,
                               int64_t *out)
{
    uint32_t n;
    const int64_t *list = onx_prepare_ints(p, name, &n);
    if (list && n != count)
        return onx_prepare_fail(p, ONX_E_INVALID, "%s has %u values, expected %u", name, n, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = list ? list[i] : otherwise;
        if (out[i] < least || out[i] > INT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s has the impossible value %lld", name, (long long)out[i]);
    }
    return ONX_OK;
}

onx_status onxi_window_make(const onx_prepare *p, const int64_t *kernel_dims, onxi_window *w)
{
    /* of MaxPool the indexes alone may be asked for */
    const onx_value *x = p->inputs[0], *y = p->outputs[0] || p->output_count < 2 ? p->outputs[0] : p->outputs[1];
    if (!y)
        return ONX_E_UNSUPPORTED;
    if (x->rank < 2 || y->rank != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u, expected at least 2", x->rank);
    memset(w, 0, sizeof *w);
    w->spatial = x->rank - 2;
    w->batch = (uint64_t)x->dims[0];
    w->channels = (uint64_t)x->dims[1];
    uint32_t n = w->spatial;
    if (kernel_dims && n)
        memcpy(w->kernel, kernel_dims, n * sizeof *kernel_dims);
    else
        ONX_TRY(spatial_list(p, "kernel_shape", n, 1, 1, w->kernel));
    ONX_TRY(spatial_list(p, "strides", n, 1, 1, w->stride));
    ONX_TRY(spatial_list(p, "dilations", n, 1, 1, w->dilation));
    int64_t pads[2 * ONX_RANK_MAX];
    ONX_TRY(spatial_list(p, "pads", 2 * n, 0, INT32_MIN, pads));
    onx_str mode = onx_prepare_text(p, "auto_pad", "NOTSET");
    bool upper = onx_str_is(mode, "SAME_UPPER"), lower = onx_str_is(mode, "SAME_LOWER"),
         valid = onx_str_is(mode, "VALID");
    if (!upper && !lower && !valid && mode.len && !onx_str_is(mode, "NOTSET"))
        return onx_prepare_fail(p, ONX_E_INVALID, "auto_pad is \"%.*s\"", ONX_ARG(mode));
    w->in_size = w->out_size = w->kernel_size = 1;
    for (uint32_t i = 0; i < n; i++) {
        w->in[i] = x->dims[i + 2];
        w->out[i] = y->dims[i + 2];
        int64_t reach, extent;
        if (!onxi_mul_i64(w->out[i] > 0 ? w->out[i] - 1 : 0, w->stride[i], &reach) ||
            !onxi_mul_i64(w->kernel[i] > 0 ? w->kernel[i] - 1 : 0, w->dilation[i], &extent) || reach > INT64_MAX / 8 ||
            extent > INT64_MAX / 8)
            return onx_prepare_fail(p, ONX_E_LIMIT, "the window reaches too far in dimension %u", i + 2);
        w->pad[i] = valid || upper || lower ? 0 : pads[i];
        w->pad_end[i] = valid || upper || lower ? 0 : pads[n + i];
        if (upper || lower) {
            int64_t total = reach + extent + 1 - w->in[i];
            total = total > 0 ? total : 0;
            w->pad[i] = upper ? total / 2 : total - total / 2;
            w->pad_end[i] = total - w->pad[i];
        }
        w->in_size *= (uint64_t)w->in[i];
        w->out_size *= (uint64_t)w->out[i];
        if (!onxi_mul_u64(w->kernel_size, (uint64_t)w->kernel[i], &w->kernel_size))
            return onx_prepare_fail(p, ONX_E_LIMIT, "the window is too large");
    }
    return ONX_OK;
}
