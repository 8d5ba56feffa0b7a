/* transform_grad_when.c - conditions of gradient rules: properties of a node, and attributes prepared for the text. */
#include "transform/transform_grad.h"

#define WHEN(name) bool onxi_grad_when_##name(onxi_grad_node *n)

enum { AXES = ONX_RANK_MAX };

static bool has(const onxi_grad_node *n, uint32_t input)
{
    return onxi_subject_has(&n->s, input);
}

static bool has_dy(const onxi_grad_node *n, uint32_t output)
{
    return output < n->s.node->output_count && onx_view(n->dy[output]).len;
}

bool onxi_grad_int_is(onxi_grad_node *n, const char *name, int64_t value)
{
    int64_t is;
    return onxi_subject_int(&n->s, name, &is) && is == value;
}

bool onxi_grad_set_ints(onxi_grad_node *n, const char *name, const int64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < n->s.prepared_count; i++)
        if (onx_str_equal(onx_str_of(n->s.prepared_names[i]), onx_str_of(name)))
            return true;
    return onxi_prepare_ints(&n->s, name, values, count);
}

bool onxi_grad_set_range(onxi_grad_node *n, const char *name, int64_t from, uint32_t count)
{
    int64_t list[AXES];
    for (uint32_t i = 0; i < count && i < AXES; i++)
        list[i] = from + (int64_t)i;
    return count <= AXES && onxi_grad_set_ints(n, name, list, count);
}

/* ---- sizes ---- */

const onx_tensor_shape *onxi_grad_shape_of(const onx_type *type)
{
    return type && ONX_HAS(type, type, tensor_type) && type->tensor_type ? type->tensor_type->shape : NULL;
}

/* Certainly equal: the same number or the same symbol. */
static bool same_size(const onx_dimension *a, const onx_dimension *b)
{
    if (ONX_HAS(dimension, a, dim_value))
        return ONX_HAS(dimension, b, dim_value) && a->dim_value == b->dim_value;
    return ONX_HAS(dimension, a, dim_param) && ONX_HAS(dimension, b, dim_param) && onx_view(a->dim_param).len &&
           onx_str_equal(onx_view(a->dim_param), onx_view(b->dim_param));
}

WHEN(always)
{
    (void)n;
    return true;
}

/* The axes along which `like` is broadcast to `whole`: a list, and how many of them precede the axes of `like`. False
 * if unknown. */
static bool stretched(onxi_grad_node *n, int64_t axes[AXES], uint32_t *count, uint32_t *leading)
{
    const onx_tensor_shape *like = onxi_grad_shape_of(onxi_subject_type(&n->s, 1)),
                           *whole = onxi_grad_shape_of(onxi_subject_type(&n->s, 2));
    *count = 0;
    if (!like || !whole || like->dim_count > whole->dim_count || whole->dim_count > AXES)
        return false;
    *leading = whole->dim_count - like->dim_count;
    for (uint32_t i = 0; i < whole->dim_count; i++) {
        const onx_dimension *w = whole->dim[i], *l = i < *leading ? NULL : like->dim[i - *leading];
        if (l && same_size(l, w))
            continue;
        if (l && !ONX_HAS(dimension, l, dim_value))
            return false;
        if (!l || l->dim_value == 1)
            axes[(*count)++] = i;
    }
    return true;
}

WHEN(fit_same)
{
    int64_t axes[AXES];
    uint32_t count, leading;
    return stretched(n, axes, &count, &leading) && !count;
}

WHEN(fit_leading)
{
    int64_t axes[AXES];
    uint32_t count, leading;
    return stretched(n, axes, &count, &leading) && count == leading && onxi_grad_set_ints(n, "axes", axes, count);
}

WHEN(fit_axes)
{
    int64_t axes[AXES];
    uint32_t count, leading;
    return stretched(n, axes, &count, &leading) && onxi_grad_set_ints(n, "axes", axes, count);
}

WHEN(scalar)
{
    return onxi_subject_rank(&n->s, 0) == 0;
}

WHEN(back_kept)
{
    return !has(n, 1) || !onxi_grad_int_is(n, "keepdims", 0);
}

/* ---- operands ---- */

WHEN(has_1)
{
    return has(n, 1);
}
WHEN(has_no_1)
{
    return !has(n, 1);
}
WHEN(has_2)
{
    return has(n, 2);
}
WHEN(has_no_2)
{
    return !has(n, 2);
}
WHEN(has_1_2)
{
    return has(n, 1) && has(n, 2);
}
WHEN(has_1_only)
{
    return has(n, 1) && !has(n, 2);
}
WHEN(has_2_only)
{
    return !has(n, 1) && has(n, 2);
}
WHEN(has_no_1_2)
{
    return !has(n, 1) && !has(n, 2);
}
WHEN(drops_floats)
{
    return onxi_grad_when_has_1_2(n) && onxi_subject_dtype(&n->s, 0) == ONX_FLOAT;
}
WHEN(drops_half_of_floats)
{
    return onxi_grad_when_has_2_only(n) && onxi_subject_dtype(&n->s, 0) == ONX_FLOAT;
}
WHEN(has_axis)
{
    return onxi_subject_given(&n->s, "axis") != NULL;
}
WHEN(has_no_axis)
{
    return !onxi_subject_given(&n->s, "axis");
}

/* ---- elementwise ---- */

WHEN(gelu_exact)
{
    return !onxi_subject_text_is(&n->s, "approximate", "tanh");
}
WHEN(gelu_tanh)
{
    return onxi_subject_text_is(&n->s, "approximate", "tanh");
}
WHEN(power_of_two)
{
    uint32_t count;
    const float *power = onxi_subject_input_floats(&n->s, 1, &count);
    const onxi_constant *c = onxi_values_constant(n->s.values, n->s.scope, onx_view(n->s.node->input[1]));
    return power && count == 1 && power[0] == 2.0f && c && onxi_subject_rank(&n->s, 1) == 0 && !onx_view(n->dx[1]).len;
}
WHEN(power_of_any)
{
    return !onxi_grad_when_power_of_two(n);
}

/* ---- products ---- */

static bool swap_last(onxi_grad_node *n, const char *name, int rank)
{
    int64_t perm[AXES];
    if (rank < 2 || rank > AXES)
        return false;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return onxi_grad_set_ints(n, name, perm, (uint32_t)rank);
}

WHEN(matmul_plain)
{
    return onxi_subject_rank(&n->s, 0) == 2 && onxi_subject_rank(&n->s, 1) == 2;
}
WHEN(matmul_weights)
{
    return onxi_subject_rank(&n->s, 0) > 2 && onxi_subject_rank(&n->s, 1) == 2 && swap_last(n, "b_turn", 2);
}
WHEN(matmul_batch)
{
    const int a = onxi_subject_rank(&n->s, 0), b = onxi_subject_rank(&n->s, 1);
    return a >= 2 && b > 2 && swap_last(n, "a_turn", a) && swap_last(n, "b_turn", b);
}
WHEN(matmul_vectors)
{
    return onxi_subject_rank(&n->s, 0) == 1 || onxi_subject_rank(&n->s, 1) == 1;
}

static bool gemm_ready(onxi_grad_node *n)
{
    int64_t a = 0, b = 0;
    return onxi_subject_int(&n->s, "transA", &a) && onxi_subject_int(&n->s, "transB", &b) &&
           onxi_prepare_int(&n->s, "not_a", !a) && onxi_prepare_int(&n->s, "not_b", !b);
}
WHEN(gemm_a)
{
    return onxi_grad_int_is(n, "transA", 0) && gemm_ready(n);
}
WHEN(gemm_at)
{
    return !onxi_grad_int_is(n, "transA", 0);
}
WHEN(gemm_b)
{
    return onxi_grad_int_is(n, "transB", 0) && gemm_ready(n);
}
WHEN(gemm_bt)
{
    return !onxi_grad_int_is(n, "transB", 0);
}
static bool beta_is_one(onxi_grad_node *n)
{
    float beta;
    return onxi_subject_float(&n->s, "beta", &beta) && beta == 1.0f;
}
WHEN(gemm_c)
{
    return beta_is_one(n);
}
WHEN(gemm_c_scaled)
{
    return !beta_is_one(n);
}
/* [..., n, n-1, n, n-1] with the third axis from the end moved forward. */
WHEN(det_ready)
{
    const int rank = onxi_subject_rank(&n->s, 0);
    int64_t perm[AXES];
    if (rank < 2 || rank + 2 > AXES)
        return false;
    for (int i = 0; i < rank + 2; i++)
        perm[i] = i;
    perm[rank - 1] = rank;
    perm[rank] = rank - 1;
    return onxi_grad_set_ints(n, "minors", perm, (uint32_t)rank + 2);
}

/* ---- reductions and layers ---- */

WHEN(axis_list)
{
    int64_t axis;
    return onxi_subject_int(&n->s, "axis", &axis) && onxi_grad_set_ints(n, "axis_list", &axis, 1);
}
WHEN(cumulative)
{
    int64_t reverse;
    return onxi_subject_int(&n->s, "reverse", &reverse) && onxi_prepare_int(&n->s, "backwards", !reverse);
}
WHEN(norm_1)
{
    return onxi_grad_int_is(n, "p", 1) && onxi_grad_when_axis_list(n);
}
WHEN(norm_2)
{
    return onxi_grad_int_is(n, "p", 2) && onxi_grad_when_axis_list(n);
}
/* The shape of per-channel numbers that are broadcast to images of that rank. */
static bool set_column(onxi_grad_node *n, int rank)
{
    int64_t shape[AXES];
    if (rank < 2 || rank > AXES)
        return false;
    for (int i = 0; i < rank; i++)
        shape[i] = 1;
    shape[0] = -1;
    return onxi_grad_set_ints(n, "column", shape, (uint32_t)rank - 1);
}
WHEN(batch_inference)
{
    return onxi_grad_int_is(n, "training_mode", 0) && set_column(n, onxi_subject_rank(&n->s, 0));
}
WHEN(batch_training_ranked)
{
    int64_t others[AXES];
    const int rank = onxi_subject_rank(&n->s, 0);
    if (!onxi_grad_int_is(n, "training_mode", 1) || rank < 3 || !set_column(n, rank))
        return false;
    others[0] = 0;
    for (int i = 2; i < rank; i++)
        others[i - 1] = i;
    return onxi_grad_set_ints(n, "others", others, (uint32_t)rank - 1);
}
WHEN(batch_training)
{
    const int rank = onxi_subject_rank(&n->s, 0);
    return onxi_grad_int_is(n, "training_mode", 1) && (rank < 3 || rank > AXES);
}
/* The axes from `axis` on, counted from the end. */
WHEN(layer_axes)
{
    int64_t axis;
    const int rank = onxi_subject_rank(&n->s, 0);
    if (!onxi_subject_int(&n->s, "axis", &axis) || (axis >= 0 && rank < 0))
        return false;
    if (axis >= 0)
        axis -= rank;
    return axis < 0 && -axis <= AXES && onxi_grad_set_range(n, "axes", axis, (uint32_t)-axis);
}
WHEN(layer_saved)
{
    return onxi_subject_dtype(&n->s, 0) == ONX_FLOAT && onxi_grad_when_layer_axes(n);
}
WHEN(layer_anew)
{
    return onxi_subject_dtype(&n->s, 0) != ONX_FLOAT && onxi_grad_when_layer_axes(n);
}
WHEN(layer_mean)
{
    return has_dy(n, 1);
}
WHEN(layer_inverse)
{
    return has_dy(n, 2) && onxi_grad_when_layer_axes(n);
}
WHEN(group_channels)
{
    return n->s.row->since >= 21;
}
WHEN(group_groups)
{
    return n->s.row->since < 21;
}
WHEN(lrn_ready)
{
    int64_t size;
    float alpha;
    if (!onxi_subject_int(&n->s, "size", &size) || size < 1 || !onxi_subject_float(&n->s, "alpha", &alpha))
        return false;
    const int64_t window[4] = { 1, 1, size, 1 }, before = (size - 1) / 2, after = size / 2;
    const int64_t pads[4] = { before, 0, after, 0 }, back[4] = { after, 0, before, 0 };
    return onxi_grad_set_ints(n, "window", window, 4) && onxi_grad_set_ints(n, "pads", pads, 4) &&
           onxi_grad_set_ints(n, "pads_back", back, 4) &&
           onxi_prepare_float(&n->s, "alpha_share", (float)((double)alpha / (double)size));
}
WHEN(spatial_axes)
{
    const int rank = onxi_subject_rank(&n->s, 0);
    return rank >= 2 && rank <= AXES && onxi_grad_set_range(n, "axes", 2, (uint32_t)rank - 2);
}

/* ---- losses ---- */

WHEN(ignores)
{
    return onxi_subject_given(&n->s, "ignore_index") != NULL;
}
WHEN(ignores_nothing)
{
    return !onxi_subject_given(&n->s, "ignore_index");
}
WHEN(reduces_none)
{
    return onxi_subject_text_is(&n->s, "reduction", "none");
}
WHEN(reduces_sum)
{
    return onxi_subject_text_is(&n->s, "reduction", "sum");
}
WHEN(reduces_mean)
{
    return onxi_subject_text_is(&n->s, "reduction", "mean");
}
WHEN(loss_given)
{
    return has_dy(n, 0);
}
WHEN(log_given)
{
    return has_dy(n, 1);
}
WHEN(loss_and_log)
{
    return has_dy(n, 0) && has_dy(n, 1);
}
WHEN(loss_alone)
{
    return has_dy(n, 0) && !has_dy(n, 1);
}
WHEN(log_alone)
{
    return !has_dy(n, 0) && has_dy(n, 1);
}
#define WITH_LOSS(name, condition)                                                                                     \
    WHEN(loss_##name)                                                                                                  \
    {                                                                                                                  \
        return has_dy(n, 0) && onxi_grad_when_##condition(n);                                                          \
    }
WITH_LOSS(ignores, ignores)
WITH_LOSS(ignores_nothing, ignores_nothing)
WITH_LOSS(has_2, has_2)
WITH_LOSS(has_no_2, has_no_2)
WITH_LOSS(reduces_none, reduces_none)
WITH_LOSS(reduces_sum, reduces_sum)
WITH_LOSS(reduces_mean, reduces_mean)

/* ---- shapes and places ---- */

WHEN(turned)
{
    uint32_t count;
    int64_t back[AXES];
    const int64_t *perm = onxi_subject_ints(&n->s, "perm", &count);
    if (!perm || count > AXES)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (perm[i] < 0 || perm[i] >= count)
            return false;
        back[perm[i]] = i;
    }
    return onxi_grad_set_ints(n, "turn", back, count);
}
WHEN(not_turned)
{
    return !onxi_subject_given(&n->s, "perm");
}

/* The elements that a Slice with steps of 1 has removed, if that is known: pads of the gradient. */
WHEN(slice_pads)
{
    uint32_t count, end_count, axis_count = 0, step_count = 0;
    int64_t pads[2 * AXES], list[AXES];
    const int64_t *starts = onxi_subject_input_ints(&n->s, 1, &count),
                  *ends = onxi_subject_input_ints(&n->s, 2, &end_count);
    const int64_t *axes = has(n, 3) ? onxi_subject_input_ints(&n->s, 3, &axis_count) : NULL;
    const int64_t *steps = has(n, 4) ? onxi_subject_input_ints(&n->s, 4, &step_count) : NULL;
    const onx_type *type = onxi_subject_type(&n->s, 0);
    const int rank = onxi_type_rank(type);
    if (!starts || !ends || count != end_count || count > AXES || !count || rank < 1 ||
        (has(n, 3) && axis_count != count) || (has(n, 4) && step_count != count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t axis = axes ? (axes[i] < 0 ? axes[i] + rank : axes[i]) : i;
        const int64_t size = axis >= 0 && axis < rank ? onxi_type_dim(type, (uint32_t)axis) : -1;
        if (size < 0 || (steps && steps[i] != 1))
            return false;
        int64_t from = starts[i] < 0 ? (starts[i] < -size ? 0 : starts[i] + size) : starts[i];
        int64_t to = ends[i] < 0 ? (ends[i] < -size ? 0 : ends[i] + size) : ends[i];
        from = from > size ? size : from;
        to = to > size ? size : to;
        if (to < from)
            return false;
        list[i] = axis;
        pads[i] = from;
        pads[count + i] = size - to;
    }
    return onxi_grad_set_ints(n, "left_out", pads, 2 * count) && onxi_grad_set_ints(n, "cut_axes", list, count);
}
/* The same if sizes or positions are only known at run time. */
static bool slices_by_one(onxi_grad_node *n)
{
    uint32_t count = 0;
    const int64_t *steps = has(n, 4) ? onxi_subject_input_ints(&n->s, 4, &count) : NULL;
    for (uint32_t i = 0; i < count; i++)
        if (steps[i] != 1)
            return false;
    return !has(n, 4) || steps;
}
WHEN(slice_of_axes)
{
    return !onxi_grad_when_slice_pads(n) && slices_by_one(n) && has(n, 3);
}
WHEN(slice_of_first)
{
    return !onxi_grad_when_slice_pads(n) && slices_by_one(n) && !has(n, 3);
}
WHEN(slice_any)
{
    return !onxi_grad_when_slice_pads(n) && !slices_by_one(n);
}
WHEN(gather_rows)
{
    return onxi_grad_int_is(n, "axis", 0);
}
WHEN(gather_any)
{
    return !onxi_grad_int_is(n, "axis", 0);
}
WHEN(gather_nd)
{
    return onxi_grad_int_is(n, "batch_dims", 0);
}
WHEN(gather_nd_batch)
{
    return !onxi_grad_int_is(n, "batch_dims", 0);
}
WHEN(scatter_none)
{
    return !onxi_schema_attr(n->s.row, onx_str_of("reduction")) || onxi_subject_text_is(&n->s, "reduction", "none");
}
WHEN(scatter_add)
{
    return onxi_subject_text_is(&n->s, "reduction", "add");
}
WHEN(scatter_mul)
{
    return onxi_subject_text_is(&n->s, "reduction", "mul");
}
WHEN(scatter_extreme)
{
    return onxi_subject_text_is(&n->s, "reduction", "max") || onxi_subject_text_is(&n->s, "reduction", "min");
}
WHEN(pad_constant)
{
    return onxi_subject_text_is(&n->s, "mode", "constant");
}
WHEN(pad_others)
{
    return !onxi_grad_when_pad_constant(n);
}
WHEN(crop_any)
{
    uint32_t count;
    const int64_t *axes = onxi_subject_ints(&n->s, "axes", &count);
    const int rank = onxi_subject_rank(&n->s, 0);
    return axes ? onxi_grad_set_ints(n, "axes", axes, count)
                : rank > 0 && rank <= AXES && onxi_grad_set_range(n, "axes", 0, (uint32_t)rank);
}
WHEN(depth_first)
{
    return !onxi_subject_text_is(&n->s, "mode", "CRD");
}
WHEN(columns_first_depth)
{
    int64_t block;
    return onxi_subject_text_is(&n->s, "mode", "CRD") && onxi_subject_int(&n->s, "blocksize", &block) &&
           onxi_grad_set_ints(n, "block", &block, 1);
}
WHEN(rotary)
{
    return onxi_schema_attr(n->s.row, onx_str_of("interleaved")) != NULL;
}

/* The gradient of the tables is needed. */
WHEN(rotary_tables)
{
    return onx_view(n->dx[1]).len || onx_view(n->dx[2]).len;
}
/* The identity matrix [1, 2, 3] or [1, 3, 4], and the points as rows. */
WHEN(affine)
{
    const onx_type *grid = onxi_grad_output_type(n, 0);
    uint32_t count;
    const int64_t *size = onxi_subject_input_ints(&n->s, 1, &count);
    const int rank = size ? (int)count : onxi_type_rank(grid), axes = rank - 2;
    int64_t eye[12] = { 0 };
    if (axes != 2 && axes != 3)
        return false;
    for (int i = 0; i < axes; i++)
        eye[i * (axes + 1) + i] = 1;
    return onxi_grad_set_ints(n, "eye", eye, (uint32_t)(axes * (axes + 1))) &&
           onxi_grad_set_ints(n, "eye_shape", (const int64_t[]){ 1, axes, axes + 1 }, 3) &&
           onxi_grad_set_ints(n, "points_shape", (const int64_t[]){ 0, -1, axes }, 3);
}

/* ---- scales ---- */

static int64_t block_of(onxi_grad_node *n)
{
    int64_t block = 0;
    return n->s.row->since >= 21 && onxi_subject_int(&n->s, "block_size", &block) ? block : 0;
}
static bool single_scale(onxi_grad_node *n)
{
    const onx_type *scale = onxi_subject_type(&n->s, 1);
    const int rank = onxi_type_rank(scale);
    return rank == 0 || (rank == 1 && onxi_type_dim(scale, 0) == 1);
}
/* The axis counted from the front; -1: unknown. */
static int scaled_axis(onxi_grad_node *n)
{
    int64_t axis;
    const int rank = onxi_subject_rank(&n->s, 0);
    if (rank < 1 || rank >= AXES || !onxi_subject_int(&n->s, "axis", &axis) || axis < -rank || axis >= rank)
        return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}
WHEN(dequantize_plain)
{
    return block_of(n) <= 0;
}
WHEN(dequantize_blocks)
{
    return block_of(n) > 0;
}
WHEN(scale_single)
{
    return single_scale(n);
}
WHEN(scale_axis)
{
    int64_t others[AXES];
    const int rank = onxi_subject_rank(&n->s, 0), axis = scaled_axis(n);
    if (block_of(n) > 0 || single_scale(n) || onxi_subject_rank(&n->s, 1) != 1 || axis < 0)
        return false;
    for (int i = 0, k = 0; i < rank; i++)
        if (i != axis)
            others[k++] = i;
    return onxi_grad_set_ints(n, "others", others, (uint32_t)rank - 1);
}
WHEN(scale_blocks)
{
    const int64_t block = block_of(n), axis = scaled_axis(n), rank = onxi_subject_rank(&n->s, 0);
    return block > 0 && !single_scale(n) && axis >= 0 && onxi_grad_set_range(n, "along", axis, 1) &&
           onxi_grad_set_range(n, "block_list", block, 1) && onxi_grad_set_range(n, "within", axis + 1, 1) &&
           onxi_grad_set_range(n, "after", axis + 1, 1) && onxi_grad_set_range(n, "rank_list", rank, 1);
}

/* ---- sequences ---- */

WHEN(sequence_typed)
{
    return onxi_type_dtype(onxi_subject_type(&n->s, 0)) != ONX_UNDEFINED;
}
WHEN(joins_along)
{
    return onxi_grad_int_is(n, "new_axis", 0);
}
WHEN(joins_anew)
{
    return onxi_grad_int_is(n, "new_axis", 1);
}
/* If sizes are unknown, `keepdims` tells whether the axis is removed. */
WHEN(splits_along)
{
    return has(n, 1) || onxi_grad_int_is(n, "keepdims", 1);
}
WHEN(splits_off)
{
    return !onxi_grad_when_splits_along(n);
}
