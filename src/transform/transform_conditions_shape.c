/* transform_conditions_shape.c - conditions of operators that change shapes: padding, slicing, splitting,
 * resampling. */
#include "transform/transform_retarget.h"

#include <math.h>

#define WHEN(name) bool onxi_when_##name(onxi_subject *s)

/* ---- Pad ---- */

WHEN(pad_zero)
{
    float value;
    return !onxi_subject_given(s, "value") || (onxi_subject_float(s, "value", &value) && value == 0 && !signbit(value));
}
WHEN(pad_value)
{
    return onxi_prepare_number(s, "value", "fill");
}
WHEN(pad_axes)
{
    uint32_t axes, pads;
    int64_t all[2 * ONX_RANK_MAX] = { 0 };
    const int rank = onxi_subject_rank(s, 0);
    const int64_t *axis = onxi_subject_input_ints(s, 3, &axes), *pad = onxi_subject_input_ints(s, 1, &pads);
    if (rank < 0 || !axis || !pad || pads != 2 * axes || axes > (uint32_t)rank)
        return false;
    for (uint32_t i = 0; i < axes; i++) {
        const int64_t at = axis[i] < 0 ? axis[i] + rank : axis[i];
        if (at < 0 || at >= rank)
            return false;
        all[at] = pad[i];
        all[at + rank] = pad[axes + i];
    }
    return onxi_prepare_ints(s, "all", all, 2 * (uint32_t)rank);
}
WHEN(pad_not_wrapped)
{
    return !onxi_subject_text_is(s, "mode", "wrap");
}

/* An entry of a window attribute list that may be omitted. */
static int64_t window_entry(onxi_subject *s, const char *name, uint32_t at)
{
    uint32_t count;
    const int64_t *list = onxi_subject_ints(s, name, &count);
    return list && at < count ? list[at] : onxi_attr_implied(name);
}

/* The window along one axis of an input: `room` for its steps, and the distance from the start of the first window to
 * the end of the data. */
typedef struct windows {
    int64_t room, stride, end;
} windows;

static bool windows_along(onxi_subject *s, uint32_t axis, uint32_t axes, int64_t kernel, windows *out)
{
    const int64_t most = INT32_MAX, size = onxi_type_dim(onxi_subject_type(s, 0), axis + 2);
    const int64_t before = window_entry(s, "pads", axis), behind = window_entry(s, "pads", axis + axes);
    const int64_t stride = window_entry(s, "strides", axis), dilation = window_entry(s, "dilations", axis);
    if (size < 0 || size > most || before < 0 || before > most || behind < 0 || behind > most || stride < 1 ||
        stride > most || dilation < 1 || dilation > most || kernel < 1 || kernel > most)
        return false;
    *out = (windows){ size + before + behind - ((kernel - 1) * dilation + 1), stride, size + before };
    return true;
}

/* Is the number of windows along one axis, rounded up, unchanged if windows that start after the data are omitted? */
static bool windows_fit(onxi_subject *s, uint32_t axis, uint32_t axes, int64_t kernel)
{
    windows w;
    return windows_along(s, axis, axes, kernel, &w) &&
           (w.room < 0 || (w.room + w.stride - 1) / w.stride + 1 <= (w.end + w.stride - 1) / w.stride);
}

/* Is the attribute nonzero, or possibly so? */
static bool may_be_set(onxi_subject *s, const char *name)
{
    int64_t value;
    return onxi_subject_given(s, name) && !(onxi_subject_int(s, name, &value) && value == 0);
}

WHEN(windows_inside)
{
    uint32_t axes, pads;
    const int64_t *kernel = onxi_subject_ints(s, "kernel_shape", &axes), *pad = onxi_subject_ints(s, "pads", &pads);
    bool padded = !onxi_subject_text_is(s, "auto_pad", "NOTSET") && onxi_subject_given(s, "auto_pad");
    if (!may_be_set(s, "ceil_mode"))
        return true;
    for (uint32_t i = 0; i < pads; i++)
        padded |= pad[i] != 0;
    for (uint32_t i = 0; kernel && i < axes; i++) {
        uint32_t strides;
        const int64_t *stride = onxi_subject_ints(s, "strides", &strides);
        const bool wide = stride && i < strides && stride[i] > kernel[i];
        if ((padded || wide) && !windows_fit(s, i, axes, kernel[i]))
            return false;
    }
    return kernel != NULL;
}

/* ---- the side of an odd cell of ConvTranspose ---- */

static bool has_mode(onxi_subject *s, const char *mode)
{
    return onxi_subject_text_is(s, "auto_pad", mode);
}
WHEN(pads_given)
{
    return !onxi_subject_given(s, "output_shape") && (has_mode(s, "NOTSET") || has_mode(s, "VALID"));
}
WHEN(pads_twice)
{
    return onxi_subject_given(s, "pads") && !has_mode(s, "NOTSET");
}
WHEN(pads_other_side)
{
    if (has_mode(s, "SAME_UPPER"))
        return onxi_prepare_text(s, "auto_pad", "SAME_LOWER");
    return (has_mode(s, "SAME_LOWER") || has_mode(s, "NOTSET") || has_mode(s, "VALID")) &&
           onxi_prepare_text(s, "auto_pad", "SAME_UPPER");
}

WHEN(windows_counted)
{
    uint32_t axes;
    const int64_t *kernel = onxi_subject_ints(s, "kernel_shape", &axes);
    if (!may_be_set(s, "ceil_mode") || !may_be_set(s, "count_include_pad"))
        return true;
    if (onxi_subject_given(s, "auto_pad") && !onxi_subject_text_is(s, "auto_pad", "NOTSET"))
        return false;
    for (uint32_t i = 0; kernel && i < axes; i++) {
        windows w;
        if (!windows_along(s, i, axes, kernel[i], &w) || w.room < 0 || w.room % w.stride)
            return false;
    }
    return kernel != NULL;
}

/* ---- Reshape, Shape, Slice, Split, Tile, TopK ---- */

/* In older versions a size of 0 in the shape means that the size is copied from the input. Only empty tensors have it,
 * and a computed shape with a 0 comes from such a tensor. */
WHEN(reshape_plain)
{
    uint32_t count;
    int64_t allow;
    const int64_t *shape = onxi_subject_input_ints(s, 1, &count);
    if (!onxi_subject_int(s, "allowzero", &allow))
        return false;
    for (uint32_t i = 0; allow && i < count; i++)
        if (shape && shape[i] == 0)
            return false;
    const onx_type *data = onxi_subject_type(s, 0);
    for (int i = 0; allow && i < onxi_type_rank(data); i++)
        if (onxi_type_dim(data, (uint32_t)i) == 0)
            return false;
    return true;
}
WHEN(shape_whole)
{
    int64_t start;
    return onxi_subject_int(s, "start", &start) && start == 0 && !onxi_subject_given(s, "end");
}
WHEN(shape_part)
{
    int64_t start, end = INT64_MAX;
    if (!onxi_subject_int(s, "start", &start) || (onxi_subject_given(s, "end") && !onxi_subject_int(s, "end", &end)))
        return false;
    return onxi_prepare_ints(s, "first", &start, 1) && onxi_prepare_ints(s, "last", &end, 1);
}
WHEN(slice_has_axes)
{
    const onx_attribute *axes = onxi_subject_given(s, "axes");
    return axes && (axes->count || axes->slot != ONX_SLOT_INTS);
}
WHEN(slice_by_ones)
{
    uint32_t count;
    const int64_t *steps = onxi_subject_has(s, 4) ? onxi_subject_input_ints(s, 4, &count) : NULL;
    if (onxi_subject_has(s, 4) && !steps)
        return false;
    for (uint32_t i = 0; steps && i < count; i++)
        if (steps[i] != 1)
            return false;
    return true;
}
WHEN(slice_axes_at_front)
{
    uint32_t count;
    const int64_t *axes = onxi_subject_has(s, 3) ? onxi_subject_input_ints(s, 3, &count) : NULL;
    if (!onxi_subject_has(s, 3))
        return true;
    for (uint32_t i = 0; axes && i < count; i++)
        if (axes[i] < 0)
            return false;
    return axes != NULL;
}
WHEN(slice_axes_moved)
{
    uint32_t count;
    int64_t front[ONX_RANK_MAX];
    const int rank = onxi_subject_rank(s, 0);
    const int64_t *axes = onxi_subject_input_ints(s, 3, &count);
    if (rank < 0 || !axes || count > ONX_RANK_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++)
        front[i] = axes[i] < 0 ? axes[i] + rank : axes[i];
    return onxi_prepare_ints(s, "front", front, count);
}
WHEN(split_counts)
{
    return onxi_prepare_int(s, "num_outputs", s->node->output_count);
}
/* The size of the axis that is split, -1: unknown. */
static int64_t split_size(onxi_subject *s)
{
    int64_t axis;
    const int rank = onxi_subject_rank(s, 0);
    if (!onxi_subject_int(s, "axis", &axis) || rank < 0)
        return -1;
    axis += axis < 0 ? rank : 0;
    return axis < 0 || axis >= rank ? -1 : onxi_type_dim(onxi_subject_type(s, 0), (uint32_t)axis);
}
/* The number of parts if each has an output, as older versions require; 0: some have none, or the number is unknown. */
static int64_t split_parts(onxi_subject *s)
{
    int64_t count;
    return onxi_subject_int(s, "num_outputs", &count) && count == s->node->output_count ? count : 0;
}
WHEN(split_evenly)
{
    const int64_t size = split_size(s), count = split_parts(s);
    return onxi_subject_has(s, 1) || (size >= 0 && count && size % count == 0);
}
WHEN(split_in_parts)
{
    const int64_t size = split_size(s), count = split_parts(s);
    int64_t *parts = count ? ONXI_ARRAY(s->arena, int64_t, (size_t)count) : NULL;
    if (size < 0 || !parts)
        return false;
    const int64_t each = size / count + (size % count != 0);
    int64_t left = size;
    for (int64_t i = 0; i < count; i++) {
        parts[i] = left < each ? left : each;
        left -= parts[i];
    }
    return onxi_prepare_ints(s, "parts", parts, (uint32_t)count);
}
WHEN(tile_repeats)
{
    uint32_t count;
    int64_t repeats[ONX_RANK_MAX], tile;
    const int rank = onxi_subject_rank(s, 0);
    const int64_t *tiles = onxi_subject_input_ints(s, 1, &count);
    if (rank < 0 || !tiles || count != 1)
        return false;
    tile = tiles[0];
    const int64_t *axis = onxi_subject_input_ints(s, 2, &count);
    if (!axis || count != 1 || axis[0] < 0 || axis[0] >= rank)
        return false;
    for (int i = 0; i < rank; i++)
        repeats[i] = i == axis[0] ? tile : 1;
    return onxi_prepare_ints(s, "repeats", repeats, (uint32_t)rank);
}
WHEN(top_k)
{
    int64_t k;
    return onxi_subject_int(s, "k", &k) && onxi_prepare_ints(s, "k_list", &k, 1);
}
WHEN(top_largest)
{
    int64_t largest;
    return onxi_subject_int(s, "largest", &largest) && largest;
}
WHEN(scatter_narrow)
{
    const int dtype = onxi_subject_dtype(s, 0);
    const bool has = dtype == ONX_FLOAT || dtype == ONX_DOUBLE || dtype == ONX_INT32 || dtype == ONX_INT64 ||
                     dtype == ONX_UINT32 || dtype == ONX_UINT64 || dtype == ONX_FLOAT16;
    return !has && !onxi_subject_text_is(s, "reduction", "none");
}
WHEN(scatter_add)
{
    return onxi_subject_text_is(s, "reduction", "add");
}
WHEN(scatter_mul)
{
    return onxi_subject_text_is(s, "reduction", "mul");
}
WHEN(scatter_max)
{
    return onxi_subject_text_is(s, "reduction", "max");
}
WHEN(scatter_min)
{
    return onxi_subject_text_is(s, "reduction", "min");
}

/* ---- triangles ---- */

/* Elements outside of the triangle are zeros of the type, which Where of version 13 has to support. */
WHEN(trilu_middle)
{
    int64_t upper;
    const int dtype = onxi_subject_dtype(s, 0);
    return dtype > 0 && dtype != ONX_BFLOAT16 && onxi_subject_int(s, "upper", &upper) &&
           onxi_prepare_int(s, "sign", upper ? 1 : -1) &&
           onxi_prepare_tensor(s, "none", onxi_subject_number(s, dtype, false, 0));
}
WHEN(trilu_offset)
{
    return onxi_subject_has(s, 1) && onxi_when_trilu_middle(s);
}

/* ---- resampling ---- */

WHEN(upsample_scales)
{
    float scales[4] = { 1, 1 };
    if (!onxi_subject_float(s, "height_scale", &scales[2]) || !onxi_subject_float(s, "width_scale", &scales[3]))
        return false;
    return onxi_prepare_floats(s, "scales", scales, 4);
}
/* Are all scales on one side of 1? */
static bool scales_are(onxi_subject *s, uint32_t input, bool least_one)
{
    uint32_t count;
    const float *scales = onxi_subject_input_floats(s, input, &count);
    for (uint32_t i = 0; scales && i < count; i++)
        if (least_one ? !(scales[i] >= 1) : !(scales[i] <= 1))
            return false;
    return scales != NULL;
}
WHEN(scales_grow)
{
    return scales_are(s, 1, true);
}
static bool is_empty(onxi_subject *s, uint32_t input)
{
    uint32_t count = 0;
    return !onxi_subject_has(s, input) || (onxi_subject_input_floats(s, input, &count) && !count);
}
WHEN(grid_is_empty)
{
    uint32_t count;
    const int64_t *sizes = onxi_subject_input_ints(s, 1, &count);
    bool empty = false;
    for (uint32_t i = 0; sizes && i < count; i++)
        empty |= sizes[i] < 1;
    return empty;
}
WHEN(resize_only_grows)
{
    return onxi_subject_text_is(s, "mode", "linear") || scales_are(s, 1, true);
}
WHEN(resize_only_shrinks)
{
    return scales_are(s, 1, false);
}
WHEN(resize_asymmetric)
{
    int64_t exclude;
    const bool nearest = onxi_subject_text_is(s, "mode", "nearest");
    return onxi_subject_text_is(s, "coordinate_transformation_mode", "asymmetric") && !is_empty(s, 2) &&
           !onxi_subject_has(s, 3) && onxi_subject_int(s, "exclude_outside", &exclude) && !exclude &&
           (onxi_subject_text_is(s, "mode", "linear") ||
            (nearest && onxi_subject_text_is(s, "nearest_mode", "floor") && scales_are(s, 2, true)) ||
            (nearest && onxi_subject_text_is(s, "nearest_mode", "ceil") && scales_are(s, 2, false)));
}
WHEN(resize_scales_only)
{
    return !onxi_subject_has(s, 1) && onxi_subject_has(s, 2) && !onxi_subject_has(s, 3);
}
WHEN(resize_no_axes)
{
    return !onxi_subject_given(s, "axes");
}
WHEN(resize_axes)
{
    uint32_t axes, count;
    float all[ONX_RANK_MAX];
    const int rank = onxi_subject_rank(s, 0);
    const int64_t *axis = onxi_subject_ints(s, "axes", &axes);
    const float *scales = onxi_subject_input_floats(s, 2, &count);
    if (rank < 0 || !axis || !scales || count != axes || onxi_subject_has(s, 3) ||
        onxi_subject_text_is(s, "coordinate_transformation_mode", "tf_crop_and_resize"))
        return false;
    for (int i = 0; i < rank; i++)
        all[i] = 1;
    for (uint32_t i = 0; i < axes; i++) {
        const int64_t at = axis[i] < 0 ? axis[i] + rank : axis[i];
        if (at < 0 || at >= rank)
            return false;
        all[at] = scales[i];
    }
    return onxi_prepare_floats(s, "scales_all", all, (uint32_t)rank);
}
WHEN(resize_known_mode)
{
    return !onxi_subject_text_is(s, "coordinate_transformation_mode", "half_pixel_symmetric");
}
/* The sizes are exact multiples, so the result does not have to be centred. */
WHEN(resize_symmetric_sizes)
{
    return onxi_subject_has(s, 3) && onxi_subject_text_is(s, "keep_aspect_ratio_policy", "stretch") &&
           onxi_prepare_text(s, "coordinate_transformation_mode", "half_pixel");
}
/* The weights depend on the position only. For mode nearest, positions in the middle between two elements may round
 * either way. */
static bool blends(onxi_subject *s)
{
    int64_t exclude, antialias;
    return onxi_subject_has(s, 2) && !onxi_subject_has(s, 3) && !onxi_subject_text_is(s, "mode", "nearest") &&
           onxi_subject_int(s, "exclude_outside", &exclude) && !exclude &&
           onxi_subject_int(s, "antialias", &antialias) && !antialias;
}
WHEN(resize_symmetric)
{
    return blends(s) && !onxi_subject_given(s, "axes");
}
WHEN(resize_symmetric_axes)
{
    return blends(s);
}
WHEN(roi_sets_mode)
{
    return onxi_prepare_text(s, "coordinate_transformation_mode", "output_half_pixel");
}
WHEN(roi_output_half_pixel)
{
    return onxi_subject_text_is(s, "coordinate_transformation_mode", "output_half_pixel");
}
/* The sample positions of each element as fractions of the region: [elements, samples]. */
static bool prepare_parts(onxi_subject *s, const char *name, const char *elements, int64_t samples)
{
    enum { MOST = 1 << 16 };
    int64_t count;
    if (!onxi_subject_int(s, elements, &count) || count < 1 || count > MOST || samples > MOST / count)
        return false;
    const int64_t dims[2] = { count, samples };
    float *parts = onxi_arena_array(s->arena, (size_t)(count * samples), sizeof *parts);
    for (int64_t i = 0; parts && i < count * samples; i++)
        parts[i] = ((float)i + 0.5F) / (float)(count * samples);
    return parts && onxi_prepare_tensor(s, name, onx_tensor_new(s->arena, ONX_FLOAT, dims, 2, parts, NULL));
}
WHEN(roi_half_pixel)
{
    int64_t samples;
    return onxi_subject_text_is(s, "mode", "avg") && onxi_subject_int(s, "sampling_ratio", &samples) && samples > 0 &&
           prepare_parts(s, "x_parts", "output_width", samples) &&
           prepare_parts(s, "y_parts", "output_height", samples);
}

/* ---- SpaceToDepth ---- */

WHEN(depth_first)
{
    return onxi_subject_text_is(s, "mode", "DCR");
}
