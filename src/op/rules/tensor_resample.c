/* tensor_resample.c - rules of padding, cropping, resizing and sampling. */
#include "op/op_rules.h"

#include <math.h>

/* The floating-point elements of a constant input, in the call's arena; NULL if not known. */
static const float *constant_floats(onxi_call *call, uint32_t input, uint32_t *count)
{
    const onx_tensor *tensor = onxi_call_has_input(call, input) ? call->ops->constant(call, input) : NULL;
    uint64_t n;
    *count = 0;
    if (!tensor || !onx_tensor_count(tensor, &n) || n > ONXI_KNOWN_INTS_LIMIT ||
        onx_dtype_class_of(tensor->data_type) != ONX_CLASS_FLOATING)
        return NULL;
    float *out = onxi_arena_get(call->arena, ((size_t)n + 1) * sizeof *out);
    if (!out || onx_tensor_get_f32(call->doc, tensor, 0, n, out) != ONX_OK)
        return NULL;
    *count = (uint32_t)n;
    return out;
}

/* floor(size * scale). Symbolic sizes need a scale that is a fraction with a small power-of-two denominator. */
onxi_dim onxi_scaled(onxi_call *call, onxi_dim size, float scale)
{
    if (scale == 1.0f)
        return size;
    if (onxi_dim_is_const(size)) {
        double out = floor((double)size * (double)scale);
        return out >= 0 && out < 9e15 ? (int64_t)out : ONXI_DIM_UNKNOWN;
    }
    for (int64_t below = 1; below <= 4096; below *= 2) {
        double above = (double)scale * (double)below;
        if (above == floor(above) && above < 1e9)
            return onxi_dim_div(call->dims, onxi_dim_mul(call->dims, size, (int64_t)above), below);
    }
    double inverse = 1.0 / (double)scale; /* for example 1/3, which is not a binary fraction */
    if (inverse < 1e6 && fabs(inverse - round(inverse)) < 1e-6 * inverse)
        return onxi_dim_is_known(size) ? onxi_dim_div(call->dims, size, (int64_t)round(inverse)) : size;
    return ONXI_DIM_UNKNOWN;
}

onxi_dim onxi_scaled_in_float(onxi_call *call, onxi_dim size, float scale)
{
    enum { SIZES = 4096 };
    const onxi_dim exact = onxi_scaled(call, size, scale);
    if (!onxi_dim_is_known(exact) || scale == 1.0f)
        return exact;
    for (int i = 0; i < SIZES; i++) {
        const onxi_dim part = onxi_scaled(call, i, scale);
        if (part != (int64_t)floorf((float)i * scale))
            return ONXI_DIM_UNKNOWN;
    }
    return exact;
}

static onx_status scale_all(onxi_call *call, const onxi_type *x, const float *scales, uint32_t count,
                            const int64_t *axes, uint32_t axis_count)
{
    uint32_t want = axes ? axis_count : x->rank;
    onxi_dim *dims;
    if (count != want)
        return onxi_call_fail(call, "scales has %u elements, expected %u", count, want);
    for (uint32_t i = 0; i < count; i++)
        if (!(scales[i] > 0.0f) || isinf(scales[i]))
            return onxi_call_fail(call, "scale %u is %g", i, (double)scales[i]);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = i;
        if (axes)
            ONX_TRY(onxi_call_axis(call, axes[i], x->rank, &axis));
        dims[axis] = onxi_scaled(call, x->dims[axis], scales[i]);
    }
    return ONX_OK;
}

/* The same with computed scales: integers, and unknown ones. */
static onx_status scale_by_value(onxi_call *call, const onxi_type *x, const onxi_known_ints *scales,
                                 const int64_t *axes, uint32_t axis_count)
{
    uint32_t want = axes ? axis_count : x->rank;
    onxi_dim *dims;
    if (scales->count != want)
        return onxi_call_fail(call, "scales has %u elements, expected %u", scales->count, want);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < want; i++) {
        uint32_t axis = i;
        if (onxi_dim_is_const(scales->elements[i]) && scales->elements[i] < 1)
            return onxi_call_fail(call, "scale %u is %lld", i, (long long)scales->elements[i]);
        if (axes)
            ONX_TRY(onxi_call_axis(call, axes[i], x->rank, &axis));
        ONX_TRY(onxi_call_times(call, x->dims[axis], scales->elements[i], "a dimension of the output", &dims[axis]));
    }
    return ONX_OK;
}

/* Upsample, and Resize of version 10: scales are the second input or an attribute. */
onx_status onxi_rule_upsample(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t count = 0;
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    if (call->schema->since >= 9) {
        const float *scales = constant_floats(call, 1, &count);
        const onxi_known_ints *computed = scales ? NULL : onxi_call_value(call, 1);
        if (computed)
            return scale_by_value(call, x, computed, NULL, 0);
        ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
        return scales ? scale_all(call, x, scales, count, NULL, 0) : ONX_OK;
    }
    if (call->schema->since < 7) { /* the last two axes of an image */
        float pair[2] = { onxi_call_float(call, "height_scale"), onxi_call_float(call, "width_scale") };
        static const int64_t axes[2] = { -2, -1 };
        return x->rank < 2 ? ONX_OK : scale_all(call, x, pair, 2, axes, 2);
    }
    const float *scales = onxi_call_floats(call, "scales", &count);
    if (!scales)
        return onxi_call_fail(call, "attribute scales is empty");
    return scale_all(call, x, scales, count, NULL, 0);
}

static onx_str aspect_policy(onxi_call *call)
{
    return call->schema->since >= 18 ? onxi_call_text(call, "keep_aspect_ratio_policy") : onx_str_of("stretch");
}

/* Sizes that keep the aspect ratio: the scale is the smallest (or largest) of all axes. */
static void keep_proportions(onxi_call *call, const onxi_type *x, const onxi_dim *sizes, const uint32_t *axes,
                             uint32_t count, bool larger, onxi_dim *dims)
{
    double scale = 0;
    (void)call;
    for (uint32_t i = 0; i < count; i++) {
        onxi_dim in = x->dims[axes[i]];
        if (!onxi_dim_is_const(in) || !onxi_dim_is_const(sizes[i]) || in <= 0)
            return;
        double s = (double)sizes[i] / (double)in;
        scale = i == 0 || (larger ? s > scale : s < scale) ? s : scale;
    }
    for (uint32_t i = 0; i < count; i++) {
        double out = round(scale * (double)x->dims[axes[i]]);
        dims[axes[i]] = out >= 0 && out < 9e15 ? (int64_t)out : ONXI_DIM_UNKNOWN;
    }
}

static onx_status resize_to(onxi_call *call, const onxi_type *x, const onxi_known_ints *sizes, const int64_t *axes,
                            uint32_t axis_count)
{
    uint32_t want = axes ? axis_count : x->rank;
    onx_str policy = aspect_policy(call);
    onxi_dim *dims;
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    uint32_t *places = ONXI_ARRAY(call->arena, uint32_t, want + 1);
    if (!places)
        return ONX_E_MEMORY;
    if (sizes && sizes->count != want)
        return onxi_call_fail(call, "sizes has %u elements, expected %u", sizes->count, want);
    ONX_TRY(onxi_call_want_vector(call, 3, want));
    for (uint32_t i = 0; i < want; i++) {
        places[i] = i;
        if (axes)
            ONX_TRY(onxi_call_axis(call, axes[i], x->rank, &places[i]));
        dims[places[i]] = ONXI_DIM_UNKNOWN;
    }
    if (!sizes)
        return ONX_OK;
    for (uint32_t i = 0; i < want; i++)
        if (onxi_dim_is_const(sizes->elements[i]) && sizes->elements[i] < 0)
            return onxi_call_fail(call, "size %u is %lld", i, (long long)sizes->elements[i]);
    if (!onx_str_is(policy, "stretch")) {
        keep_proportions(call, x, sizes->elements, places, want, onx_str_is(policy, "not_smaller"), dims);
        return ONX_OK;
    }
    for (uint32_t i = 0; i < want; i++)
        dims[places[i]] = sizes->elements[i];
    return ONX_OK;
}

/* Is the input given, and not known to be empty? */
static bool is_given(onxi_call *call, uint32_t input)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    return onxi_call_has_input(call, input) && !(type && type->rank == 1 && type->dims[0] == 0);
}

onx_status onxi_rule_resize(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis_count, count = 0;
    bool *seen;
    onxi_dim *dims;
    if (call->schema->since < 11)
        return onxi_rule_upsample(call);
    if (!x)
        return ONX_OK;
    bool by_scale = is_given(call, 2), by_size = is_given(call, 3);
    if (call->schema->since >= 13 && by_scale == by_size)
        return onxi_call_fail(call, by_scale ? "scales and sizes are both given" : "neither scales nor sizes is given");
    onx_str policy = aspect_policy(call);
    if (!onx_str_is(policy, "stretch") && !onx_str_is(policy, "not_larger") && !onx_str_is(policy, "not_smaller"))
        return onxi_call_fail(call, "attribute keep_aspect_ratio_policy is \"%.*s\"", ONX_ARG(policy));
    if (by_scale && !onx_str_is(policy, "stretch"))
        return onxi_call_fail(call, "keep_aspect_ratio_policy \"%.*s\" needs sizes, scales are given", ONX_ARG(policy));
    const int64_t *axes = onxi_call_ints(call, "axes", &axis_count);
    if (axes && !axis_count)
        axes = NULL;
    ONX_TRY(onxi_call_mark_axes(call, axes, axis_count, x->rank, true, &seen));
    if (by_size)
        return resize_to(call, x, onxi_call_value(call, 3), axes, axis_count);
    const float *scales = constant_floats(call, 2, &count);
    if (scales && count)
        return scale_all(call, x, scales, count, axes, axis_count);
    const onxi_known_ints *computed = scales ? NULL : onxi_call_value(call, 2);
    if (computed && computed->count)
        return scale_by_value(call, x, computed, axes, axis_count);
    if (by_scale)
        ONX_TRY(onxi_call_want_vector(call, 2, axes ? axis_count : x->rank));
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    for (uint32_t i = 0; axes && i < x->rank; i++)
        dims[i] = seen[i] ? ONXI_DIM_UNKNOWN : x->dims[i];
    return ONX_OK;
}

/* ---- Pad, CenterCropPad ---- */

onx_status onxi_rule_pad(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t count = 0, axis_count = 0;
    bool *seen;
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    bool by_input = call->schema->since >= 11;
    const onxi_known_ints *input = by_input ? onxi_call_value(call, 1) : NULL;
    const onxi_dim *pads = input ? input->elements : NULL;
    if (!by_input)
        pads = onxi_call_dims(call, call->schema->since < 2 ? "paddings" : "pads", &count);
    count = input ? input->count : count;
    bool some = by_input && onxi_call_has_input(call, 3);
    const int64_t *axes = some ? onxi_call_const_ints(call, 3, &axis_count) : NULL;
    if (some && axes)
        ONX_TRY(onxi_call_mark_axes(call, axes, axis_count, x->rank, true, &seen));
    uint32_t half = some ? axis_count : x->rank;
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    if (some && !axes)
        return ONX_OK;
    for (uint32_t i = 0; some && i < x->rank; i++)
        dims[i] = seen[i] ? ONXI_DIM_UNKNOWN : x->dims[i];
    if (!pads)
        return ONX_OK;
    if (count != 2 * (uint64_t)half)
        return onxi_call_fail(call, "pads has %u elements, expected %llu", count, 2 * (unsigned long long)half);
    for (uint32_t i = 0; i < half; i++) {
        uint32_t axis = i;
        if (some)
            ONX_TRY(onxi_call_axis(call, axes[i], x->rank, &axis));
        onxi_dim both = onxi_dim_add(call->dims, pads[i], pads[half + i]);
        if (!onxi_dim_is_known(both) && onxi_dim_is_const(pads[i]) && onxi_dim_is_const(pads[half + i]))
            return onxi_call_fail(call, "pads %lld and %lld of axis %u overflow", (long long)pads[i],
                                  (long long)pads[half + i], axis);
        onxi_dim out = onxi_dim_add(call->dims, x->dims[axis], both);
        if (!onxi_dim_is_known(out) && onxi_dim_is_const(both) && onxi_dim_is_const(x->dims[axis]))
            return onxi_call_fail(call, "axis %u of size %lld overflows with pads of %lld", axis,
                                  (long long)x->dims[axis], (long long)both);
        if (onxi_dim_is_const(out) && out < 0)
            return onxi_call_fail(call, "axis %u of size %lld would have size %lld", axis, (long long)x->dims[axis],
                                  (long long)out);
        dims[axis] = out;
    }
    return ONX_OK;
}

onx_status onxi_rule_center_crop_pad(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const onxi_known_ints *shape = onxi_call_value(call, 1);
    uint32_t count;
    bool *seen;
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    const int64_t *axes = onxi_call_ints(call, "axes", &count);
    ONX_TRY(onxi_call_mark_axes(call, axes, count, x->rank, true, &seen));
    uint32_t want = axes ? count : x->rank;
    if (shape && shape->count != want)
        return onxi_call_fail(call, "shape has %u elements, expected %u", shape->count, want);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < want; i++) {
        uint32_t axis = i;
        if (axes)
            ONX_TRY(onxi_call_axis(call, axes[i], x->rank, &axis));
        dims[axis] = shape ? shape->elements[i] : ONXI_DIM_UNKNOWN;
    }
    return ONX_OK;
}

/* ---- GridSample, AffineGrid ---- */

onx_status onxi_rule_grid_sample(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *grid = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    if (call->schema->since < 20) {
        ONX_TRY(onxi_call_want_rank(call, 0, 4));
        ONX_TRY(onxi_call_want_rank(call, 1, 4));
    }
    ONX_TRY(onxi_call_want_least_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_least_rank(call, 1, 3));
    if (!x && !grid)
        return ONX_OK;
    if (x && grid && x->rank != grid->rank)
        return onxi_call_fail(call, "the input has rank %u and the grid %u", x->rank, grid->rank);
    uint32_t rank = x ? x->rank : grid->rank;
    if (grid && onxi_dim_is_const(grid->dims[rank - 1]) && grid->dims[rank - 1] != (int64_t)rank - 2)
        return onxi_call_fail(call, "the grid has %lld coordinates, expected %u", (long long)grid->dims[rank - 1],
                              rank - 2);
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    onxi_dim batch = x ? x->dims[0] : ONXI_DIM_UNKNOWN;
    if (grid)
        ONX_TRY(onxi_call_unify(call, batch, grid->dims[0], "the batch size", &batch));
    dims[0] = batch;
    if (x)
        dims[1] = x->dims[1];
    for (uint32_t i = 2; grid && i < rank; i++)
        dims[i] = grid->dims[i - 1];
    return ONX_OK;
}

onx_status onxi_rule_affine_grid(onxi_call *call)
{
    const onxi_known_ints *size = onxi_call_shape_value(call, 1);
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 1, 1));
    if (!size)
        return ONX_OK;
    if (size->count != 4 && size->count != 5)
        return onxi_call_fail(call, "size has %u elements, expected 4 or 5", size->count);
    ONX_TRY(onxi_call_want_dims(call, 0, 3, (onxi_dim[]){ size->elements[0], size->count - 2, size->count - 1 }));
    ONX_TRY(onxi_call_shape(call, 0, size->count, &dims));
    dims[0] = size->elements[0];
    for (uint32_t i = 2; i < size->count; i++)
        dims[i - 1] = size->elements[i];
    dims[size->count - 1] = size->count - 2;
    return ONX_OK;
}
