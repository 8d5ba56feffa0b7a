/* window.c - the windows of convolutions and poolings: sizes, strides, dilations and pads of a node. */
#include "kernel/kernel.h"

onx_status onxi_window_list(const onx_prepare *p, const char *name, uint32_t count, int64_t least, int64_t *out)
{
    uint32_t n;
    const int64_t *list = onx_prepare_ints(p, name, &n);
    if (list && n != count)
        return onx_prepare_fail(p, ONX_E_INVALID, "%s has %u values, expected %u", name, n, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = list ? list[i] : onxi_attr_implied(name);
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
        onxi_copy_dims(w->kernel, kernel_dims, n);
    else
        ONX_TRY(onxi_window_list(p, "kernel_shape", n, 1, w->kernel));
    ONX_TRY(onxi_window_list(p, "strides", n, 1, w->stride));
    ONX_TRY(onxi_window_list(p, "dilations", n, 1, w->dilation));
    int64_t pads[2 * ONX_RANK_MAX];
    ONX_TRY(onxi_window_list(p, "pads", 2 * n, INT32_MIN, pads));
    const onxi_attr_value *auto_pad = onxi_attrs_get(p->attrs, "auto_pad", ONX_ATTR_STRING); /* DeformConv has none */
    const onx_str mode = auto_pad ? auto_pad->s : (onx_str){ 0 };
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

onx_status onxi_window_dims(const onx_prepare *p, const onx_value *x, const int64_t *kernel, int64_t *dims, bool *fits)
{
    int64_t stride[ONX_RANK_MAX], dilation[ONX_RANK_MAX], pads[2 * ONX_RANK_MAX];
    const uint32_t n = x->rank - 2;
    const onxi_attr_value *auto_pad = onxi_attrs_get(p->attrs, "auto_pad", ONX_ATTR_STRING);
    const bool valid = auto_pad && onx_str_is(auto_pad->s, "VALID");
    *fits = !auto_pad || valid || !auto_pad->s.len || onx_str_is(auto_pad->s, "NOTSET");
    ONX_TRY(onxi_window_list(p, "strides", n, 1, stride));
    ONX_TRY(onxi_window_list(p, "dilations", n, 1, dilation));
    ONX_TRY(onxi_window_list(p, "pads", 2 * n, 0, pads));
    dims[0] = x->dims[0];
    for (uint32_t i = 0; i < n; i++) {
        const int64_t around = valid ? 0 : pads[i] + pads[n + i], size = kernel[i];
        *fits = *fits && size >= 1 && size <= INT32_MAX && x->dims[i + 2] <= INT32_MAX &&
                x->dims[i + 2] + around > (size - 1) * dilation[i];
        dims[i + 2] = *fits ? (x->dims[i + 2] + around - (size - 1) * dilation[i] - 1) / stride[i] + 1 : 0;
    }
    return ONX_OK;
}
