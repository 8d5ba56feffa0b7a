/* nn_window.c - shape rules of operators with a sliding window over spatial axes: convolution, pooling and their
 * inverses. */
#include "op/op_rules.h"

/* The attributes of a window over `rank` spatial axes. Lists that are not given are NULL; `kernel` is in dims. */
typedef struct window {
    uint32_t rank;
    const int64_t *strides, *dilations, *pads;
    const onxi_dim *kernel;
    bool same; /* auto_pad SAME_UPPER or SAME_LOWER */
    bool pools, round_up;
} window;

static onx_status window_list(onxi_call *call, const char *name, uint32_t want, int64_t least, const int64_t **out)
{
    uint32_t count;
    *out = onxi_call_ints(call, name, &count);
    if (!*out)
        return ONX_OK;
    if (count != want)
        return onxi_call_fail(call, "attribute %s has %u values, expected %u", name, count, want);
    for (uint32_t i = 0; i < count; i++)
        if ((*out)[i] < least)
            return onxi_call_fail(call, "attribute %s has the value %lld, the least allowed is %lld", name,
                                  (long long)(*out)[i], (long long)least);
    return ONX_OK;
}

static int64_t stride_of(const window *w, uint32_t i)
{
    return w->strides ? w->strides[i] : onxi_attr_implied("strides");
}
static int64_t pad_begin(const window *w, uint32_t i)
{
    return w->pads ? w->pads[i] : onxi_attr_implied("pads");
}
static int64_t pad_end(const window *w, uint32_t i)
{
    return w->pads ? w->pads[w->rank + i] : onxi_attr_implied("pads");
}

/* Reads strides, dilations, pads and kernel_shape; if the latter is absent, the kernel size comes from dims 2... of
 * `weight`. w->kernel is NULL if it is not known. */
static onx_status window_read(onxi_call *call, const onxi_type *x, const onxi_type *weight, bool dilated, window *w)
{
    *w = (window){ .rank = 0 };
    if (x->rank < 3)
        return onxi_call_fail(call, "the input has rank %u, expected at least 3", x->rank);
    w->rank = x->rank - 2;
    ONX_TRY(window_list(call, "strides", w->rank, 1, &w->strides));
    if (dilated)
        ONX_TRY(window_list(call, "dilations", w->rank, 1, &w->dilations));
    if (w->rank > UINT32_MAX / 2)
        return onxi_call_fail(call, "the input has rank %u", x->rank);
    ONX_TRY(window_list(call, "pads", 2 * w->rank, 0, &w->pads));
    const onxi_attr_value *pad = onxi_attrs_get(call->attrs, "auto_pad", ONX_ATTR_STRING); /* DeformConv has none */
    w->same = pad && (onx_str_is(pad->s, "SAME_UPPER") || onx_str_is(pad->s, "SAME_LOWER"));
    if (w->same || (pad && onx_str_is(pad->s, "VALID"))) /* a run pads as auto_pad says, and so does onnxruntime */
        w->pads = NULL;
    w->pools = !weight;
    w->round_up = !weight && onxi_call_is_set(call, "ceil_mode"); /* of poolings */
    const int64_t *kernel;
    ONX_TRY(window_list(call, "kernel_shape", w->rank, 1, &kernel));
    w->kernel = kernel;
    if (weight && weight->rank != x->rank)
        return onxi_call_fail(call, "the weight has rank %u and the input rank %u", weight->rank, x->rank);
    if (!weight && !kernel)
        return onxi_call_fail(call, "attribute kernel_shape is missing");
    if (!kernel)
        w->kernel = weight->dims + 2;
    for (uint32_t i = 0; i < w->rank; i++) {
        onxi_dim size = weight ? weight->dims[2 + i] : w->kernel[i];
        if (onxi_dim_is_const(size) && onxi_dim_is_const(w->kernel[i]) && size != w->kernel[i])
            return onxi_call_fail(call, "kernel_shape is %lld at axis %u and the weight has %lld there",
                                  (long long)w->kernel[i], i, (long long)size);
        if (onxi_dim_is_const(w->kernel[i]) && w->kernel[i] < 1)
            return onxi_call_fail(call, "the kernel has size %lld at axis %u", (long long)w->kernel[i], i);
    }
    return ONX_OK;
}

/* (kernel - 1) * dilation + 1 */
static onxi_dim window_extent(onxi_call *call, const window *w, uint32_t i)
{
    int64_t dilation = w->dilations ? w->dilations[i] : onxi_attr_implied("dilations");
    onxi_dim reach = onxi_dim_mul(call->dims, onxi_dim_sub(call->dims, w->kernel[i], 1), dilation);
    return onxi_dim_add(call->dims, reach, 1);
}

/* The number of positions of a pool's window, where `room` is what the padded input, of size `in` without the pads, has
 * beyond one window. The quotient is truncated, not rounded down: a window that is larger than the padded input has one
 * position, or none if it is larger by the stride or more. An empty axis has none if the window does not fit in the
 * pads. */
static onxi_dim pool_places(onxi_dims *d, onxi_dim in, onxi_dim room, int64_t stride)
{
    onxi_dim places = onxi_dim_add(d, onxi_dim_div(d, room, stride), 1), beyond = onxi_dim_sub(d, room, in);
    if (stride == 1 || (onxi_dim_is_const(beyond) && beyond >= -1))
        return places;
    onxi_dim one = onxi_dim_min(d, in, onxi_dim_add(d, room, stride)); /* at least 1: there is a position */
    return onxi_dim_max(d, places, onxi_dim_min(d, onxi_dim_max(d, one, 0), 1));
}

/* The number of window positions along axis i of size `in`. */
static onx_status window_places(onxi_call *call, const window *w, uint32_t i, onxi_dim in, onxi_dim *out)
{
    onxi_dims *d = call->dims;
    int64_t stride = stride_of(w, i);
    if (w->same) {
        *out = onxi_dim_div_ceil(d, in, stride);
        return ONX_OK;
    }
    onxi_dim padded = onxi_dim_add(d, onxi_dim_add(d, in, pad_begin(w, i)), pad_end(w, i));
    onxi_dim room = onxi_dim_sub(d, padded, window_extent(call, w, i));
    *out = ONXI_DIM_UNKNOWN;
    bool all_known = onxi_dim_is_const(in) && onxi_dim_is_const(w->kernel[i]);
    if (all_known && !onxi_dim_is_known(room))
        return onxi_call_fail(call, "input %lld, pads %lld and %lld and kernel %lld overflow at spatial axis %u",
                              (long long)in, (long long)pad_begin(w, i), (long long)pad_end(w, i),
                              (long long)w->kernel[i], i);
    if (onxi_dim_is_const(room) && room < 0 && !(w->pools && room / stride >= -1))
        return onxi_call_fail(call,
                              "the window of size %lld is larger than the padded input of size %lld at spatial axis %u",
                              (long long)window_extent(call, w, i), (long long)padded, i);
    if (w->round_up)
        *out = onxi_dim_add(d, onxi_dim_div_ceil(d, room, stride), 1);
    else if (w->pools)
        *out = pool_places(d, in, room, stride);
    else
        *out = onxi_dim_add(d, onxi_dim_div(d, room, stride), 1);
    int32_t clips_since = call->op == ONXI_ID_MaxPool ? 12 : 19;
    if (w->round_up && call->schema->since >= clips_since) /* a window that would start in the end padding is omitted */
        *out = onxi_dim_min(d, *out, onxi_dim_div_ceil(d, onxi_dim_add(d, in, pad_begin(w, i)), stride));
    return ONX_OK;
}

static onx_status window_output(onxi_call *call, const onxi_type *x, onxi_dim channels, const window *w)
{
    onxi_dim *dims, *again;
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    dims[0] = x->dims[0];
    dims[1] = channels;
    onx_status status = ONX_OK;
    for (uint32_t i = 0; i < w->rank && status == ONX_OK; i++)
        status = window_places(call, w, i, x->dims[2 + i], &dims[2 + i]);
    if (call->output_count > 1) { /* the indices of MaxPool */
        ONX_TRY(onxi_call_shape(call, 1, x->rank, &again));
        memcpy(again, dims, x->rank * sizeof *dims);
    }
    return status;
}

/* AveragePool, LpPool, MaxPool. */
onx_status onxi_rule_pool(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    window w;
    if (!x)
        return ONX_OK;
    ONX_TRY(window_read(call, x, NULL, true, &w));
    return window_output(call, x, x->dims[1], &w);
}

/* Channels per group, and a bias per output channel. */
static onx_status conv_operands(onxi_call *call, uint32_t weight_input, uint32_t bias)
{
    const onxi_type *weight = onxi_call_ranked(call, weight_input);
    int64_t group = onxi_call_int(call, "group");
    onxi_dim channels;
    if (group < 1)
        return onxi_call_fail(call, "attribute group is %lld", (long long)group);
    ONX_TRY(onxi_call_times(call, weight->dims[1], group, "the number of input channels", &channels));
    ONX_TRY(onxi_call_want_dim(call, 0, 1, channels));
    if (call->running && weight->dims[0] % group != 0)
        return onxi_call_fail(call, "%lld output channels are not divisible by group %lld", (long long)weight->dims[0],
                              (long long)group);
    return onxi_call_want_vector(call, bias, weight->dims[0]);
}

static onx_status conv(onxi_call *call, uint32_t weight_input, uint32_t bias)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *weight = onxi_call_ranked(call, weight_input);
    window w;
    if (x && x->rank < 3)
        return onxi_call_fail(call, "the input has rank %u, expected at least 3", x->rank);
    if (!x || !weight)
        return ONX_OK;
    ONX_TRY(window_read(call, x, weight, true, &w));
    ONX_TRY(conv_operands(call, weight_input, bias));
    return window_output(call, x, weight->dims[0], &w);
}

onx_status onxi_rule_conv(onxi_call *call)
{
    return conv(call, 1, 2);
}
onx_status onxi_rule_deform_conv(onxi_call *call)
{
    return conv(call, 1, 3);
}

/* One zero point per tensor. */
static onx_status want_single(onxi_call *call, uint32_t input)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    if (!type || !call->running || onxi_call_product(call, type->dims, 0, type->rank) == 1)
        return ONX_OK;
    return onxi_call_fail(call, "input %u has %lld elements, expected one", input,
                          (long long)onxi_call_product(call, type->dims, 0, type->rank));
}

/* One per tensor, or one per output channel. */
static onx_status want_per_channel(onxi_call *call, uint32_t input, onxi_dim channels)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    if (!type || (type->rank == 1 && onxi_dim_is_const(channels) && type->dims[0] == channels))
        return ONX_OK;
    return want_single(call, input);
}

onx_status onxi_rule_conv_integer(onxi_call *call)
{
    const onxi_type *weight = onxi_call_ranked(call, 1);
    ONX_TRY(want_single(call, 2));
    if (weight && weight->rank)
        ONX_TRY(want_per_channel(call, 3, weight->dims[0]));
    return conv(call, 1, ONXI_NO_INPUT);
}

static onx_status same_dtype(onxi_call *call, uint32_t a, uint32_t b)
{
    int one = onxi_call_dtype(call, a), other = onxi_call_dtype(call, b);
    if (onxi_call_has_input(call, a) && onxi_call_has_input(call, b) && one && other && one != other)
        return onxi_call_fail(call, "inputs %u and %u differ in element type: %s and %s", a, b, onx_dtype_name(one),
                              onx_dtype_name(other));
    return ONX_OK;
}

onx_status onxi_rule_qlinear_conv(onxi_call *call)
{
    ONX_TRY(same_dtype(call, 0, 2));
    ONX_TRY(same_dtype(call, 3, 5));
    const onxi_type *weight = onxi_call_ranked(call, 3);
    for (uint32_t i = 1; i < 8; i++)
        if (i != 3 && i != 4 && i != 5)
            ONX_TRY(want_single(call, i));
    for (uint32_t i = 4; i < 6 && weight && weight->rank; i++)
        ONX_TRY(want_per_channel(call, i, weight->dims[0]));
    onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 7));
    return conv(call, 3, 8);
}

/* All spatial sizes become 1. */
onx_status onxi_rule_global_pool(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    if (!x || x->rank < 2)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (uint32_t i = 2; i < x->rank; i++)
        dims[i] = 1;
    return ONX_OK;
}

/* Output channels are ordered by group, so a bias has weight[1] * group elements. */
static onx_status conv_transpose_operands(onxi_call *call, const onxi_type *weight, onxi_dim channels)
{
    ONX_TRY(onxi_call_want_dim(call, 0, 1, weight->dims[0]));
    return onxi_call_want_vector(call, 2, channels);
}

/* stride * (in - 1) + output_padding + extent - pads, or the value of output_shape */
onx_status onxi_rule_conv_transpose(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *weight = onxi_call_ranked(call, 1);
    const int64_t *shape, *extra;
    onxi_dims *d = call->dims;
    onxi_dim *dims;
    window w;
    if (!x || !weight)
        return ONX_OK;
    int64_t group = onxi_call_int(call, "group");
    if (group < 1)
        return onxi_call_fail(call, "attribute group is %lld", (long long)group);
    ONX_TRY(onxi_call_want_least_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_least_rank(call, 1, 3));
    if (onxi_dim_is_const(x->dims[1]) && x->dims[1] % group != 0)
        return onxi_call_fail(call, "%lld input channels are not divisible by group %lld", (long long)x->dims[1],
                              (long long)group);
    ONX_TRY(window_read(call, x, weight, true, &w));
    uint32_t pads;
    if (call->schema->since >= 22 && onxi_call_ints(call, "pads", &pads) &&
        !onxi_call_text_is(call, "auto_pad", "NOTSET"))
        return onxi_call_fail(call, "pads and auto_pad are both given");
    ONX_TRY(window_list(call, "output_shape", w.rank, 0, &shape));
    ONX_TRY(window_list(call, "output_padding", w.rank, 0, &extra));
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    dims[0] = x->dims[0];
    ONX_TRY(onxi_call_times(call, weight->dims[1], group, "the number of output channels", &dims[1]));
    ONX_TRY(conv_transpose_operands(call, weight, dims[1]));
    for (uint32_t i = 0; i < w.rank; i++) {
        onxi_dim in = x->dims[2 + i], extent = window_extent(call, &w, i);
        if (shape) {
            dims[2 + i] = shape[i];
            continue;
        }
        onxi_dim out;
        ONX_TRY(onxi_call_times(call, onxi_dim_sub(d, in, 1), stride_of(&w, i), "the size of the output", &out));
        extent = onxi_dim_add(d, extent, extra ? extra[i] : 0);
        out = onxi_dim_add(d, out, extent);
        if (w.same) /* stride * in, unless the window is smaller than the stride */
            out = onxi_dim_sub(d, out, onxi_dim_max(d, onxi_dim_sub(d, extent, stride_of(&w, i)), 0));
        else
            out = onxi_dim_sub(d, onxi_dim_sub(d, out, pad_begin(&w, i)), pad_end(&w, i));
        if (onxi_dim_is_const(out) && out < 0)
            return onxi_call_fail(call, "the output would have size %lld at spatial axis %u", (long long)out, i);
        dims[2 + i] = out;
    }
    return ONX_OK;
}

onx_status onxi_rule_max_unpool(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *indices = onxi_call_ranked(call, 1);
    const int64_t *kernel, *strides, *pads;
    onxi_dims *d = call->dims;
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_least_rank(call, 1, 2));
    uint32_t rank = x->rank - 2;
    ONX_TRY(window_list(call, "kernel_shape", rank, 1, &kernel));
    ONX_TRY(window_list(call, "strides", rank, 1, &strides));
    ONX_TRY(window_list(call, "pads", 2 * rank, 0, &pads));
    if (!kernel)
        return onxi_call_fail(call, "attribute kernel_shape is missing");
    if (onxi_call_has_input(call, 2)) {
        const onxi_known_ints *size = onxi_call_value(call, 2);
        const onxi_type *shape = onxi_call_ranked(call, 2);
        ONX_TRY(onxi_call_want_rank(call, 2, 1));
        if (shape && onxi_dim_is_const(shape->dims[0]) && shape->dims[0] != (int64_t)x->rank)
            return onxi_call_fail(call, "output_shape has %lld elements, expected %u", (long long)shape->dims[0],
                                  x->rank);
        ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
        if (size && size->count == x->rank)
            memcpy(dims, size->elements, x->rank * sizeof *dims);
        return ONX_OK;
    }
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    dims[0] = x->dims[0];
    dims[1] = indices ? indices->dims[1] : x->dims[1];
    for (uint32_t i = 0; i < rank; i++) {
        onxi_dim out = onxi_dim_mul(d, onxi_dim_sub(d, x->dims[2 + i], 1), strides ? strides[i] : 1);
        out = onxi_dim_add(d, out, kernel[i]);
        dims[2 + i] = pads ? onxi_dim_sub(d, onxi_dim_sub(d, out, pads[i]), pads[rank + i]) : out;
    }
    return ONX_OK;
}

/* MaxRoiPool, whose output size is the attribute pooled_shape. */
onx_status onxi_rule_max_roi_pool(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *rois = onxi_call_ranked(call, 1);
    const int64_t *pooled;
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    ONX_TRY(window_list(call, "pooled_shape", 2, 1, &pooled));
    if (!pooled)
        return onxi_call_fail(call, "attribute pooled_shape is missing");
    if (rois && onxi_dim_is_const(rois->dims[1]) && rois->dims[1] != 5)
        return onxi_call_fail(call, "rois have %lld numbers each, expected 5", (long long)rois->dims[1]);
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    if (rois)
        dims[0] = rois->dims[0];
    if (x)
        dims[1] = x->dims[1];
    dims[2] = pooled[0];
    dims[3] = pooled[1];
    return ONX_OK;
}

/* Col2Im: blocks of columns back to an image. */
onx_status onxi_rule_col2im(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const onxi_known_ints *image = onxi_call_value(call, 1), *block = onxi_call_value(call, 2);
    const int64_t *pads, *dilations, *strides;
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 1, 1));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    uint32_t rank = image ? image->count : block ? block->count : 0;
    for (uint32_t i = 1; i < 3; i++) { /* the number of spatial axes may follow from the shapes only */
        const onxi_type *size = onxi_call_ranked(call, i);
        if (!rank && size && onxi_dim_is_const(size->dims[0]) && size->dims[0] > 0 && size->dims[0] < 1000)
            rank = (uint32_t)size->dims[0];
    }
    const char *const lists[] = { "dilations", "strides" };
    for (size_t i = 0; i < 2 && !rank; i++)
        (void)onxi_call_ints(call, lists[i], &rank);
    if (!rank || rank > UINT32_MAX / 4)
        return ONX_OK;
    ONX_TRY(onxi_call_want_vector(call, 1, rank));
    ONX_TRY(onxi_call_want_vector(call, 2, rank));
    ONX_TRY(window_list(call, "pads", 2 * rank, INT64_MIN, &pads));
    ONX_TRY(window_list(call, "dilations", rank, 1, &dilations));
    ONX_TRY(window_list(call, "strides", rank, 1, &strides));
    ONX_TRY(onxi_call_shape(call, 0, rank + 2, &dims));
    if (x)
        dims[0] = x->dims[0];
    onxi_dim size = 1;
    for (uint32_t i = 0; block && i < block->count; i++)
        ONX_TRY(onxi_call_times(call, size, block->elements[i], "the size of a block", &size));
    if (x && block)
        dims[1] = onxi_dim_div(call->dims, x->dims[1], size);
    for (uint32_t i = 0; image && i < rank; i++)
        dims[2 + i] = image->elements[i];
    return ONX_OK;
}
