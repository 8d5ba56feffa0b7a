/* transform_conditions.c - the conditions of steps in transform_steps.def, and the values that they compute for the
 * texts. */
#include "transform/transform_retarget.h"

#include <math.h>

#define WHEN(name) bool onxi_when_##name(onxi_subject *s)

WHEN(always)
{
    return s != NULL;
}

/* ---- helpers ---- */

enum { LIST_MAX = 2 * ONX_RANK_MAX };

static bool both_known(int a, int b)
{
    return a >= 0 && b >= 0;
}

/* Sizes that are certainly equal: equal numbers, or the same symbol of the model. */
static bool same_dim(const onx_type *a, uint32_t i, const onx_type *b, uint32_t k)
{
    if (!a || !b || i >= a->tensor_type->shape->dim_count || k >= b->tensor_type->shape->dim_count)
        return false;
    const onx_dimension *x = a->tensor_type->shape->dim[i], *y = b->tensor_type->shape->dim[k];
    if (ONX_HAS(dimension, x, dim_value) && ONX_HAS(dimension, y, dim_value))
        return x->dim_value == y->dim_value;
    return ONX_HAS(dimension, x, dim_param) && ONX_HAS(dimension, y, dim_param) && onx_view(x->dim_param).len &&
           onx_str_equal(onx_view(x->dim_param), onx_view(y->dim_param));
}

/* ---- axes ---- */

WHEN(axis_from_front)
{
    int64_t axis;
    if (!onxi_subject_attribute(s, "axis"))
        return true;
    if (!onxi_subject_int(s, "axis", &axis))
        return false;
    const int rank = axis < 0 ? onxi_subject_rank(s, 0) : 0;
    return axis >= 0 || (rank > 0 && axis + rank >= 0 && onxi_prepare_int(s, "axis", axis + rank));
}

static bool front_axes(onxi_subject *s, uint32_t more)
{
    uint32_t count;
    int64_t axes[LIST_MAX];
    const int64_t *given = onxi_subject_ints(s, "axes", &count);
    bool any = false;
    if (!onxi_subject_given(s, "axes"))
        return true;
    if (!given || count > LIST_MAX)
        return !count && given;
    for (uint32_t i = 0; i < count; i++)
        any |= given[i] < 0;
    const int rank = any ? onxi_subject_rank(s, 0) : 0;
    if (!any)
        return true;
    for (uint32_t i = 0; i < count; i++)
        axes[i] = given[i] < 0 ? given[i] + rank + (int64_t)(more ? count : 0) : given[i];
    for (uint32_t i = 0; i < count; i++)
        if (axes[i] < 0)
            return false;
    return rank >= 0 && onxi_prepare_ints(s, "axes", axes, count);
}

WHEN(axes_from_front)
{
    return front_axes(s, 0);
}
WHEN(new_axes_from_front)
{
    return front_axes(s, 1);
}
WHEN(one_output)
{
    return onxi_subject_outputs(s) <= 1;
}
WHEN(two_outputs)
{
    return onxi_subject_outputs(s) == 2;
}
WHEN(three_outputs)
{
    return onxi_subject_outputs(s) <= 3;
}
WHEN(has_input_1)
{
    return onxi_subject_has(s, 1);
}
WHEN(no_input_1)
{
    return !onxi_subject_has(s, 1);
}
WHEN(no_input_2)
{
    return !onxi_subject_has(s, 2);
}
WHEN(no_input_3)
{
    return !onxi_subject_has(s, 3);
}
WHEN(no_input_6)
{
    return !onxi_subject_has(s, 6);
}
WHEN(attention_has_heads)
{
    return onxi_subject_rank(s, 0) == 4;
}
WHEN(attention_sees_all)
{
    int64_t left, right;
    return onxi_subject_int(s, "left_window_size", &left) && onxi_subject_int(s, "right_window_size", &right) &&
           left < 0 && right < 0;
}

WHEN(same_shapes)
{
    const onx_type *first = onxi_subject_type(s, 0);
    const int rank = onxi_type_rank(first);
    for (uint32_t i = 1; i < s->node->input_count; i++) {
        if (onx_str_equal(onx_view(s->node->input[0]), onx_view(s->node->input[i])))
            continue;
        const onx_type *other = onxi_subject_type(s, i);
        if (rank < 0 || onxi_type_rank(other) != rank)
            return false;
        for (int k = 0; k < rank; k++)
            if (!same_dim(first, (uint32_t)k, other, (uint32_t)k))
                return false;
    }
    return true;
}

static bool without_axes(onxi_subject *s, int64_t keep)
{
    uint32_t count = 0;
    int64_t noop;
    if (onxi_subject_has(s, 1) && (!onxi_subject_input_ints(s, 1, &count) || count))
        return false;
    return onxi_subject_int(s, "noop_with_empty_axes", &noop) && (noop != 0) == keep;
}

WHEN(keeps_all)
{
    return without_axes(s, 1);
}
WHEN(no_axes)
{
    return without_axes(s, 0);
}

/* ---- broadcasting ---- */

static bool broadcasts(onxi_subject *s, int64_t *axis, bool *has_axis)
{
    int64_t on = 0;
    *has_axis = onxi_subject_int(s, "axis", axis);
    return onxi_subject_int(s, "broadcast", &on) && on;
}

WHEN(broadcast_aligned)
{
    int64_t axis = 0;
    bool has_axis;
    if (!broadcasts(s, &axis, &has_axis) || !has_axis)
        return true;
    const int a = onxi_subject_rank(s, 0), b = onxi_subject_rank(s, 1);
    return b == 0 || (both_known(a, b) && (axis < 0 ? axis + a : axis) + b == a);
}

WHEN(broadcast_at_axis)
{
    int64_t axis = 0, axes[ONX_RANK_MAX];
    bool has_axis;
    const int a = onxi_subject_rank(s, 0), b = onxi_subject_rank(s, 1);
    if (!broadcasts(s, &axis, &has_axis) || !both_known(a, b))
        return false;
    const int64_t more = a - b - (axis < 0 ? axis + a : axis);
    if (more <= 0 || more > a - b)
        return false;
    for (int64_t i = 0; i < more; i++)
        axes[i] = b + i;
    return onxi_prepare_ints(s, "b_axes", axes, (uint32_t)more);
}

/* Is the shape of `part` a contiguous part of that of `whole`, with `squeeze` after removing axes of size 1 at its
 * ends? */
static bool is_part(onxi_subject *s, uint32_t whole, uint32_t part, bool squeeze)
{
    const onx_type *w = onxi_subject_type(s, whole), *p = onxi_subject_type(s, part);
    int64_t gone[ONX_RANK_MAX];
    uint32_t gone_count = 0;
    const int wide = onxi_type_rank(w);
    int rank = onxi_type_rank(p), first = 0;
    if (!both_known(wide, rank) || rank > wide) /* the result has the rank of the whole */
        return false;
    const int all = rank;
    while (squeeze && first < all && onxi_type_dim(p, (uint32_t)first) == 1)
        gone[gone_count++] = first++;
    int last = all;
    while (squeeze && last > first && onxi_type_dim(p, (uint32_t)last - 1) == 1)
        gone[gone_count++] = --last;
    rank = last - first;
    /* counted from the end, the remaining axes keep their indexes */
    const int at = rank ? wide - (all - first) : 0;
    if (at < 0 || at + rank > wide || (squeeze && !gone_count))
        return false;
    for (int i = 0; i < rank; i++)
        if (!same_dim(p, (uint32_t)(first + i), w, (uint32_t)(at + i)))
            return false;
    return onxi_prepare_int(s, "axis", at) && (!squeeze || onxi_prepare_ints(s, "b_axes", gone, gone_count));
}

WHEN(broadcast_b)
{
    return is_part(s, 0, 1, false);
}
WHEN(broadcast_b_squeezed)
{
    return is_part(s, 0, 1, true);
}
WHEN(broadcast_a)
{
    return is_part(s, 1, 0, false);
}
WHEN(broadcast_a_squeezed)
{
    return is_part(s, 1, 0, true);
}

WHEN(slope_aligned)
{
    const onx_type *slope = onxi_subject_type(s, 1);
    const int rank = onxi_type_rank(slope), x = onxi_subject_rank(s, 0);
    if (rank == 0 || (rank == 1 && onxi_type_dim(slope, 0) == 1) || (rank > 1 && s->up))
        return true;
    return rank == 1 && x == 2;
}

WHEN(slope_at_channels)
{
    const int rank = onxi_subject_rank(s, 1), x = onxi_subject_rank(s, 0);
    int64_t axes[ONX_RANK_MAX];
    if (rank != 1 || x < 2)
        return false;
    for (int i = 0; i < x - 2; i++)
        axes[i] = 1 + i;
    return onxi_prepare_ints(s, "axes", axes, (uint32_t)(x - 2));
}

WHEN(slope_is_channels)
{
    const onx_type *slope = onxi_subject_type(s, 1), *x = onxi_subject_type(s, 0);
    const int rank = onxi_type_rank(slope), wide = onxi_type_rank(x);
    int64_t axes[ONX_RANK_MAX];
    uint32_t count = 0;
    if (wide < 2 || rank < wide - 1)
        return false;
    const int channels = rank - (wide - 1);
    for (int i = 0; i < rank; i++)
        if (i != channels && onxi_type_dim(slope, (uint32_t)i) != 1)
            return false;
        else if (i != channels)
            axes[count++] = i;
    return count && onxi_prepare_ints(s, "axes", axes, count);
}

/* ---- normalisation ---- */

/* Between versions 7 and 13, it trains if it has more outputs than one, even if they are omitted. */
WHEN(batch_norm_one_output)
{
    return s->node->output_count <= 1;
}
WHEN(batch_norm_infers)
{
    int64_t test;
    return (onxi_subject_int(s, "is_test", &test) && test) || s->node->output_count > 1;
}
/* If is_test is omitted, the model is meant for inference, whatever the default is: all converters assume this. */
WHEN(batch_norm_is_silent)
{
    return !onxi_subject_given(s, "is_test");
}
WHEN(batch_norm_trains)
{
    return onxi_prepare_int(s, "is_test", s->node->output_count <= 1);
}
WHEN(batch_norm_spatial)
{
    int64_t spatial;
    return onxi_subject_int(s, "spatial", &spatial) && spatial;
}
WHEN(batch_norm_elementwise)
{
    return s->node->output_count <= 1;
}
WHEN(batch_norm_not_training)
{
    int64_t training;
    return onxi_subject_int(s, "training_mode", &training) && !training;
}

WHEN(power_is_whole)
{
    float value;
    if (!onxi_subject_given(s, "p"))
        return true;
    return onxi_subject_float(s, "p", &value) && value >= 0 && value < 1e9f && floorf(value) == value &&
           onxi_prepare_int(s, "p", (int64_t)value);
}
WHEN(power_is_real)
{
    int64_t p;
    const float value = onxi_subject_int(s, "p", &p) && p > -1000000 && p < 1000000 ? (float)p : 0;
    return value != 0 && onxi_prepare_float(s, "p", value);
}

/* ---- types ---- */

WHEN(cast_to_number)
{
    const onx_attribute *to = onxi_subject_given(s, "to");
    char name[16];
    const onx_str text = to ? onxi_attribute_text(to) : (onx_str){ 0 };
    if (!text.len || text.len >= sizeof name)
        return false;
    for (size_t i = 0; i < text.len; i++)
        name[i] = (char)(text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? text.ptr[i] - 'A' + 'a' : text.ptr[i]);
    const onx_dtype dtype = onx_dtype_find(onx_str_make(name, text.len));
    return dtype != ONX_UNDEFINED && onxi_prepare_int(s, "to", dtype);
}

WHEN(cast_to_text)
{
    int64_t to;
    char text[32] = "";
    const char *name = onxi_subject_int(s, "to", &to) ? onx_dtype_name(to) : NULL;
    if (!name || strlen(name) >= sizeof text)
        return false;
    for (size_t i = 0; name[i]; i++)
        text[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    return onxi_prepare_text(s, "to", text);
}

WHEN(cast_like)
{
    const int dtype = onxi_subject_dtype(s, 1);
    return dtype > 0 && onxi_prepare_int(s, "to", dtype);
}

WHEN(per_tensor)
{
    int64_t axis;
    return onxi_subject_rank(s, 1) == 0 || (!onxi_subject_given(s, "axis") && onxi_subject_int(s, "axis", &axis) &&
                                            onxi_type_dim(onxi_subject_type(s, 1), 0) == 1);
}

WHEN(dequantized_type)
{
    int64_t dtype;
    return onxi_subject_int(s, "output_dtype", &dtype) && (!dtype || dtype == onxi_subject_dtype(s, 1));
}

WHEN(quantized_type_is_known)
{
    int64_t dtype;
    return onxi_subject_int(s, "output_dtype", &dtype) && (!dtype || onxi_subject_has(s, 2) || dtype == ONX_UINT8);
}

WHEN(quantized_type)
{
    int64_t dtype, dims[ONX_RANK_MAX];
    uint64_t count = 1, bytes;
    const onx_type *scale = onxi_subject_type(s, 1);
    const int rank = onxi_type_rank(scale);
    if (!onxi_subject_int(s, "output_dtype", &dtype) || rank < 0 || !onx_dtype_name(dtype))
        return false;
    for (int i = 0; i < rank; i++)
        if ((dims[i] = onxi_type_dim(scale, (uint32_t)i)) < 0 || !onxi_mul_u64(count, (uint64_t)dims[i], &count) ||
            count > 65536)
            return false;
    if (!onx_dtype_size(dtype, count, &bytes))
        return false;
    void *zeros = onx_arena_alloc(s->arena, (size_t)bytes + 1);
    return zeros && onxi_prepare_tensor(s, "zero",
                                        onx_tensor_new(s->arena, (onx_dtype)dtype, dims, (uint32_t)rank, zeros, NULL));
}

/* ---- Clip, Dropout ---- */

/* A limit that is not given is the greatest or lowest float, which makes infinities finite; in half precision it makes
 * no difference. */
static bool clip_limit(onxi_subject *s, const char *attribute, const char *name)
{
    const int dtype = onxi_subject_dtype(s, 0);
    float limit;
    if (onxi_subject_given(s, attribute))
        return onxi_prepare_number(s, attribute, name);
    return (dtype == ONX_FLOAT || dtype == ONX_DOUBLE) && onxi_subject_float(s, attribute, &limit) &&
           onxi_prepare_tensor(s, name, onxi_subject_number(s, dtype, false, (double)limit));
}
WHEN(clip_both)
{
    return clip_limit(s, "min", "lo") && clip_limit(s, "max", "hi");
}
WHEN(clip_min)
{
    return clip_limit(s, "min", "lo");
}
WHEN(clip_max)
{
    return clip_limit(s, "max", "hi");
}
WHEN(celu_is_flat)
{
    float alpha;
    return onxi_subject_float(s, "alpha", &alpha) && (alpha == 0 || !isfinite(alpha));
}

WHEN(dropout_sets_test)
{
    return onxi_prepare_int(s, "is_test", 1);
}
WHEN(dropout_tests)
{
    int64_t test;
    return onxi_subject_int(s, "is_test", &test) && test;
}
WHEN(dropout_infers)
{
    uint32_t count;
    const int64_t *training = onxi_subject_has(s, 2) ? onxi_subject_input_ints(s, 2, &count) : NULL;
    return !onxi_subject_has(s, 2) || (training && count == 1 && !training[0]);
}
WHEN(dropout_mask_type)
{
    const int dtype = onxi_subject_dtype(s, 0);
    return dtype > 0 && onxi_prepare_int(s, "to", dtype);
}

/* ---- constants ---- */

WHEN(concat_axis)
{
    int64_t axis;
    return onxi_subject_given(s, "axis") || (onxi_subject_int(s, "axis", &axis) && onxi_prepare_int(s, "axis", axis));
}

static bool settle_texts(onxi_subject *s, const onx_attribute *a, bool list)
{
    const int64_t dims[1] = { a->count };
    onx_tensor *tensor = onx_message_new(s->arena, ONX_KIND_TENSOR);
    if (!tensor)
        return false;
    ONX_SET(tensor, tensor, data_type, ONX_STRING);
    if (list && !(tensor->dims = ONXI_ARRAY(s->arena, int64_t, 1)))
        return false;
    if (list) {
        tensor->dims[0] = dims[0];
        tensor->dims_count = 1;
    }
    tensor->string_data = ONXI_ARRAY(s->arena, onx_bytes, (size_t)onxi_list_room(list ? a->count : 1) + 1);
    if (!tensor->string_data)
        return false;
    tensor->string_data_count = list ? a->count : 1;
    for (uint32_t i = 0; i < tensor->string_data_count; i++)
        tensor->string_data[i] = list ? a->strings[i] : a->s;
    return onxi_prepare_tensor(s, "settled", tensor);
}

WHEN(constant_value)
{
    const onx_attribute *a = s->node->attribute_count == 1 ? s->node->attribute[0] : NULL;
    if (!a || onx_view(onx_attribute_more(a)->ref_attr_name).len)
        return false;
    const onx_attribute_type type = onx_attribute_type_of(a);
    const bool real = type == ONX_ATTR_FLOAT || type == ONX_ATTR_FLOATS;
    const bool list = type == ONX_ATTR_FLOATS || type == ONX_ATTR_INTS || type == ONX_ATTR_STRINGS;
    if (type == ONX_ATTR_STRING || type == ONX_ATTR_STRINGS)
        return settle_texts(s, a, list);
    if (!real && type != ONX_ATTR_INT && type != ONX_ATTR_INTS)
        return false;
    const int64_t dims[1] = { a->count };
    const void *data = type == ONX_ATTR_FLOAT ? &a->f
                       : type == ONX_ATTR_INT ? (const void *)&a->i
                       : real                 ? (const void *)a->floats
                                              : (const void *)a->ints;
    return onxi_prepare_tensor(
        s, "settled", onx_tensor_new(s->arena, real ? ONX_FLOAT : ONX_INT64, dims, list, data ? data : "", NULL));
}

WHEN(constant_of_shape)
{
    const onx_attribute *value = onxi_subject_given(s, "value");
    if (onxi_type_dim(onxi_subject_type(s, 0), 0) == 0)
        return false;
    if (!value)
        return onxi_prepare_tensor(s, "fill", onxi_subject_number(s, ONX_FLOAT, true, 0));
    return value->slot == ONX_SLOT_T && onxi_prepare_tensor(s, "fill", value->t);
}

static const onx_tensor *tensor_value(onxi_subject *s)
{
    const onx_attribute *a = onxi_subject_given(s, "value");
    return a && a->slot == ONX_SLOT_T ? a->t : NULL;
}

WHEN(constant_is_real)
{
    const onx_tensor *tensor = tensor_value(s);
    return tensor &&
           (tensor->data_type == ONX_FLOAT || tensor->data_type == ONX_DOUBLE || tensor->data_type == ONX_FLOAT16);
}

/* For integers that a double can represent, from which Cast then converts. */
WHEN(constant_as_real)
{
    const onx_tensor *tensor = tensor_value(s);
    uint64_t count;
    if (!tensor || tensor->dims_count > ONX_RANK_MAX || !onx_tensor_count(tensor, &count) || count > 65536)
        return false;
    const onx_dtype_class class = onx_dtype_class_of(tensor->data_type);
    if ((class != ONX_CLASS_SIGNED && class != ONX_CLASS_UNSIGNED && class != ONX_CLASS_BOOLEAN) ||
        onx_dtype_bits(tensor->data_type) < 8)
        return false;
    double *real = ONXI_ARRAY(s->arena, double, (size_t)count + 1);
    if (!real || onx_tensor_get_f64(s->values->doc, tensor, 0, count, real) != ONX_OK)
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs(real[i]) < 9007199254740992.0))
            return false;
    return onxi_prepare_int(s, "to", tensor->data_type) &&
           onxi_prepare_tensor(s, "real",
                               onx_tensor_new(s->arena, ONX_DOUBLE, tensor->dims, tensor->dims_count, real, NULL));
}

/* ---- Scan ---- */

/* "(i0, i1) => (o0) { x0 = OP (i0)  ...  y0 = Scan (x0, x1)  ...  o0 = OP (y0) }" */
static bool write_scan(onxi_subject *s, bool lens, const char *before, const char *after, const char *attributes)
{
    const uint32_t first = s->up, inputs = s->node->input_count, outputs = s->node->output_count;
    onx_str head = onx_str_of(s->up ? "(len" : "("), body = { 0 }, call = onx_str_of(lens ? "\"\"" : ""), made = { 0 },
            tail = { 0 }, out = { 0 };
    for (uint32_t i = first; i < inputs; i++) {
        head = onxi_arena_printf(s->arena, "%.*s%si%u", ONX_ARG(head), i ? ", " : "", i);
        body = onxi_arena_printf(s->arena, "%.*s x%u = %s <axes = [0]> (i%u)", ONX_ARG(body), i, before, i);
        call = onxi_arena_printf(s->arena, "%.*s%sx%u", ONX_ARG(call), call.len ? ", " : "", i);
    }
    for (uint32_t i = 0; i < outputs; i++) {
        out = onxi_arena_printf(s->arena, "%.*s%so%u", ONX_ARG(out), i ? ", " : "", i);
        made = onxi_arena_printf(s->arena, "%.*s%sy%u", ONX_ARG(made), i ? ", " : "", i);
        tail = onxi_arena_printf(s->arena, "%.*s o%u = %s <axes = [0]> (y%u)", ONX_ARG(tail), i, after, i);
    }
    s->text =
        onxi_arena_printf(s->arena, "<%s> %.*s) => (%.*s) {%.*s %.*s = Scan (%.*s)%.*s }", attributes, ONX_ARG(head),
                          ONX_ARG(out), ONX_ARG(body), ONX_ARG(made), ONX_ARG(call), ONX_ARG(tail));
    return s->text.len != 0;
}

enum { SCAN_OPERANDS = 64 };

WHEN(scan_without_batch)
{
    if (onxi_subject_has(s, 0) || s->node->input_count > SCAN_OPERANDS || s->node->output_count > SCAN_OPERANDS ||
        onxi_subject_given(s, "directions"))
        return false;
    for (uint32_t i = 1; i < s->node->input_count; i++)
        if (onxi_type_dim(onxi_subject_type(s, i), 0) != 1)
            return false;
    return write_scan(s, false, "Squeeze", "Unsqueeze", "directions");
}

WHEN(scan_with_batch)
{
    static const char *const lists[] = { "scan_input_axes", "scan_input_directions", "scan_output_axes",
                                         "scan_output_directions" };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        uint32_t count;
        const int64_t *list = onxi_subject_ints(s, lists[i], &count);
        if (onxi_subject_given(s, lists[i]) && !list)
            return false;
        for (uint32_t k = 0; k < count; k++)
            if (list[k])
                return false;
    }
    return s->node->input_count <= SCAN_OPERANDS && s->node->output_count <= SCAN_OPERANDS &&
           write_scan(s, true, "Unsqueeze", "Squeeze",
                      "scan_input_axes, scan_input_directions, scan_output_axes, scan_output_directions");
}

/* ---- Gemm, DFT, GridSample, recurrent nets ---- */

WHEN(gemm_broadcasts)
{
    return onxi_prepare_int(s, "broadcast", 1);
}
WHEN(gemm_has_no_c)
{
    return !onxi_subject_has(s, 2) && onxi_subject_dtype(s, 0) > 0 &&
           onxi_prepare_tensor(s, "zero", onxi_subject_number(s, onxi_subject_dtype(s, 0), true, 0));
}
WHEN(dft_axis)
{
    return !onxi_subject_has(s, 2) && onxi_prepare_int(s, "axis", -2);
}
WHEN(grid_names_20)
{
    return !onxi_subject_attribute(s, "mode") ||
           (onxi_subject_text_is(s, "mode", "bilinear") && onxi_prepare_text(s, "mode", "linear")) ||
           (onxi_subject_text_is(s, "mode", "bicubic") && onxi_prepare_text(s, "mode", "cubic")) ||
           onxi_subject_text_is(s, "mode", "nearest");
}
WHEN(grid_names_16)
{
    const int rank = onxi_subject_rank(s, 0);
    if (rank >= 0 && rank != 4)
        return false;
    return (onxi_subject_text_is(s, "mode", "linear") && onxi_prepare_text(s, "mode", "bilinear")) ||
           (onxi_subject_text_is(s, "mode", "cubic") && onxi_prepare_text(s, "mode", "bicubic")) ||
           onxi_subject_text_is(s, "mode", "nearest");
}
WHEN(rnn_direction)
{
    return onxi_subject_given(s, "direction") || onxi_prepare_text(s, "direction", "forward");
}
WHEN(rnn_output)
{
    return onxi_prepare_int(s, "output_sequence", onxi_subject_outputs(s) && onx_view(s->node->output[0]).len);
}
WHEN(layout_0)
{
    int64_t layout;
    return onxi_subject_int(s, "layout", &layout) && layout == 0;
}
WHEN(layout_1)
{
    int64_t layout;
    return onxi_subject_int(s, "layout", &layout) && layout == 1;
}

/* ---- ai.onnx.ml ---- */

static bool prepare_numbers(onxi_subject *s, const char *list)
{
    const onx_attribute *classes = onxi_subject_given(s, list);
    const uint32_t count = classes && classes->slot == ONX_SLOT_STRINGS ? classes->count : 0;
    int64_t *numbers = ONXI_ARRAY(s->arena, int64_t, (size_t)count + 1);
    for (uint32_t i = 0; numbers && i < count; i++)
        numbers[i] = i;
    return numbers && count && onxi_prepare_ints(s, "numbers", numbers, count);
}
WHEN(label_texts)
{
    return onxi_subject_dtype(s, 0) == ONX_STRING && prepare_numbers(s, "classes_strings");
}
WHEN(label_numbers)
{
    return onxi_subject_dtype(s, 0) == ONX_INT64 && prepare_numbers(s, "classes_strings");
}
static bool counts_up(onxi_subject *s, const char *list)
{
    uint32_t count;
    const int64_t *numbers = onxi_subject_ints(s, list, &count);
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] != (int64_t)i)
            return false;
    return numbers != NULL;
}
WHEN(label_classes)
{
    return counts_up(s, "values_int64s");
}
WHEN(label_names)
{
    return counts_up(s, "keys_int64s");
}

/* ---- softmax ---- */

static bool is_last(onxi_subject *s, int64_t *axis, int *rank)
{
    *rank = onxi_subject_rank(s, 0);
    return onxi_subject_int(s, "axis", axis) && (*axis == -1 || (*rank > 0 && *axis == *rank - 1));
}
WHEN(softmax_last)
{
    int64_t axis;
    int rank;
    return is_last(s, &axis, &rank) && onxi_prepare_int(s, "axis", -1);
}
/* Reshape copies the size of its input where the shape has 0: that of [sizes before axis, sizes from axis on] is 0 as
 * well only at the first axis, and at the second one where the row begins. */
WHEN(softmax_reshapes)
{
    int64_t axis;
    int rank;
    (void)is_last(s, &axis, &rank);
    if (rank < 0 || !onxi_subject_int(s, "axis", &axis))
        return false;
    axis += axis < 0 ? rank : 0;
    for (int i = 0; i < rank; i++)
        if (!(onxi_type_dim(onxi_subject_type(s, 0), (uint32_t)i) > 0 || (i == 0 && axis > 0) || (i == 1 && axis == 1)))
            return false;
    return true;
}
WHEN(softmax_last_axis)
{
    int64_t axis;
    int rank;
    return is_last(s, &axis, &rank) && onxi_prepare_int(s, "axis", rank > 0 ? rank - 1 : -1);
}
WHEN(softmax_moved)
{
    int64_t axis, perm[ONX_RANK_MAX];
    int rank;
    if (is_last(s, &axis, &rank) || rank < 1 || !onxi_subject_int(s, "axis", &axis))
        return false;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        return false;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
    return onxi_prepare_ints(s, "perm", perm, (uint32_t)rank) && onxi_prepare_int(s, "last", rank - 1);
}
