/* transform_grad_when.c - conditions of gradient rules: what is known of a node, and attributes made for the text. */
#include "transform/transform_grad.h"

#define WHEN(name) bool onxi_grad_when_##name(onxi_grad_node *n)

enum { AXES = ONX_RANK_MAX };

static const onx_type *out_type(onxi_grad_node *n, uint32_t i)
{
    return i < n->s.node->output_count && onx_view(n->s.node->output[i]).len
               ? onxi_values_type(n->s.values, n->s.scope, onx_view(n->s.node->output[i]))
               : NULL;
}

static bool has(const onxi_grad_node *n, uint32_t input)
{
    return onxi_subject_has(&n->s, input);
}

static bool has_dy(const onxi_grad_node *n, uint32_t output)
{
    return output < n->s.node->output_count && onx_view(n->dy[output]).len;
}

static bool int_is(onxi_grad_node *n, const char *name, int64_t value)
{
    int64_t is;
    return onxi_subject_int(&n->s, name, &is) && is == value;
}

static bool set_ints(onxi_grad_node *n, const char *name, const int64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < n->s.prepared_count; i++)
        if (onx_str_equal(onx_str_of(n->s.prepared_names[i]), onx_str_of(name)))
            return true;
    return onxi_prepare_ints(&n->s, name, values, count);
}

static bool set_range(onxi_grad_node *n, const char *name, int64_t from, uint32_t count)
{
    int64_t list[AXES];
    for (uint32_t i = 0; i < count && i < AXES; i++)
        list[i] = from + (int64_t)i;
    return count <= AXES && set_ints(n, name, list, count);
}

static bool set_all(onxi_grad_node *n, const char *name, int64_t value, uint32_t count)
{
    int64_t list[AXES];
    for (uint32_t i = 0; i < count && i < AXES; i++)
        list[i] = value;
    return count <= AXES && set_ints(n, name, list, count);
}

/* ---- sizes ---- */

static const onx_tensor_shape *shape_of(const onx_type *type)
{
    return type && ONX_HAS(type, type, tensor_type) && type->tensor_type ? type->tensor_type->shape : NULL;
}

/* Known to be the same: the same number or the same symbol. */
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

/* The axes that broadcasting `like` to `whole` has stretched: which, how many of them stand before the axes of `like`.
 * False when that cannot be told. */
static bool stretched(onxi_grad_node *n, int64_t axes[AXES], uint32_t *count, uint32_t *leading)
{
    const onx_tensor_shape *like = shape_of(onxi_subject_type(&n->s, 1)),
                           *whole = shape_of(onxi_subject_type(&n->s, 2));
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
    return stretched(n, axes, &count, &leading) && count == leading && set_ints(n, "axes", axes, count);
}

WHEN(fit_axes)
{
    int64_t axes[AXES];
    uint32_t count, leading;
    return stretched(n, axes, &count, &leading) && set_ints(n, "axes", axes, count);
}

WHEN(scalar)
{
    return onxi_subject_rank(&n->s, 0) == 0;
}

WHEN(back_kept)
{
    const onx_attribute *a = onx_node_attribute(n->s.node, "keepdims");
    return !has(n, 1) || !a || a->slot != ONX_SLOT_I || a->i;
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
    return power && count == 1 && power[0] == 2.0f && c && !c->is_input && onxi_subject_rank(&n->s, 1) == 0 &&
           !onx_view(n->dx[1]).len;
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
    return set_ints(n, name, perm, (uint32_t)rank);
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
    return int_is(n, "transA", 0) && gemm_ready(n);
}
WHEN(gemm_at)
{
    return !int_is(n, "transA", 0);
}
WHEN(gemm_b)
{
    return int_is(n, "transB", 0) && gemm_ready(n);
}
WHEN(gemm_bt)
{
    return !int_is(n, "transB", 0);
}
static bool beta_is_one(onxi_grad_node *n)
{
    const onx_attribute *a = onxi_subject_attribute(&n->s, "beta");
    return a && a->slot == ONX_SLOT_F && a->f == 1.0f;
}
WHEN(gemm_c)
{
    return beta_is_one(n);
}
WHEN(gemm_c_scaled)
{
    return !beta_is_one(n);
}
/* [..., n, n-1, n, n-1] with the third axis from behind brought forward. */
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
    return set_ints(n, "minors", perm, (uint32_t)rank + 2);
}

/* ---- reductions and layers ---- */

WHEN(axis_list)
{
    int64_t axis;
    return onxi_subject_int(&n->s, "axis", &axis) && set_ints(n, "axis_list", &axis, 1);
}
WHEN(cumulative)
{
    int64_t reverse;
    return onxi_subject_int(&n->s, "reverse", &reverse) && onxi_prepare_int(&n->s, "backwards", !reverse);
}
WHEN(norm_1)
{
    return int_is(n, "p", 1) && onxi_grad_when_axis_list(n);
}
WHEN(norm_2)
{
    return int_is(n, "p", 2) && onxi_grad_when_axis_list(n);
}
WHEN(batch_inference)
{
    int64_t shape[AXES];
    const int rank = onxi_subject_rank(&n->s, 0);
    if (!int_is(n, "training_mode", 0) || rank < 2 || rank > AXES)
        return false;
    for (int i = 0; i < rank; i++)
        shape[i] = 1;
    shape[0] = -1;
    return set_ints(n, "column", shape, (uint32_t)rank - 1);
}
WHEN(batch_training)
{
    return int_is(n, "training_mode", 1);
}
/* The axes from `axis` on, counted from behind. */
WHEN(layer_axes)
{
    int64_t axis;
    const int rank = onxi_subject_rank(&n->s, 0);
    if (!onxi_subject_int(&n->s, "axis", &axis) || (axis >= 0 && rank < 0))
        return false;
    if (axis >= 0)
        axis -= rank;
    return axis < 0 && -axis <= AXES && set_range(n, "axes", axis, (uint32_t)-axis);
}
WHEN(layer_saved)
{
    return onxi_subject_dtype(&n->s, 0) == ONX_FLOAT && onxi_grad_when_layer_axes(n);
}
WHEN(layer_anew)
{
    return onxi_subject_dtype(&n->s, 0) != ONX_FLOAT && onxi_grad_when_layer_axes(n);
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
    const onx_attribute *alpha = onxi_subject_attribute(&n->s, "alpha");
    if (!onxi_subject_int(&n->s, "size", &size) || size < 1 || !alpha || alpha->slot != ONX_SLOT_F)
        return false;
    const int64_t window[4] = { 1, 1, size, 1 }, before = (size - 1) / 2, after = size / 2;
    const int64_t pads[4] = { before, 0, after, 0 }, back[4] = { after, 0, before, 0 };
    return set_ints(n, "window", window, 4) && set_ints(n, "pads", pads, 4) && set_ints(n, "pads_back", back, 4) &&
           onxi_prepare_float(&n->s, "alpha_share", (float)((double)alpha->f / (double)size));
}
WHEN(spatial_axes)
{
    const int rank = onxi_subject_rank(&n->s, 0);
    return rank >= 2 && rank <= AXES && set_range(n, "axes", 2, (uint32_t)rank - 2);
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

/* ---- windows ---- */

typedef struct window {
    uint32_t count;
    bool sizes, kernel, pads; /* known */
    int64_t in[AXES], out[AXES], k[AXES], s[AXES], d[AXES], begin[AXES], end[AXES], output_padding[AXES];
} window;

static void read_list(onxi_grad_node *n, const char *name, int64_t other, int64_t *to, uint32_t count)
{
    uint32_t given;
    const int64_t *list = onxi_subject_ints(&n->s, name, &given);
    for (uint32_t i = 0; i < count; i++)
        to[i] = list && i < given ? list[i] : other;
}

static bool read_sizes(const onx_type *type, uint32_t count, int64_t *to)
{
    bool known = onxi_type_rank(type) == (int)count + 2;
    for (uint32_t i = 0; known && i < count; i++)
        known = (to[i] = onxi_type_dim(type, i + 2)) > 0;
    return known;
}

/* Where SAME_UPPER and SAME_LOWER put what is missing. */
static void same_pads(window *w, uint32_t i, int64_t missing, bool upper)
{
    missing = missing < 0 ? 0 : missing;
    w->begin[i] = upper ? missing / 2 : missing - missing / 2;
    w->end[i] = missing - w->begin[i];
}

static bool read_window(onxi_grad_node *n, window *w)
{
    int64_t pads[2 * AXES];
    uint32_t given;
    int rank = onxi_subject_rank(&n->s, 0);
    if (rank < 0)
        rank = onxi_subject_rank(&n->s, 1);
    if (rank < 3 || rank > AXES)
        return false;
    *w = (window){ .count = (uint32_t)rank - 2 };
    const int64_t *kernel = onxi_subject_ints(&n->s, "kernel_shape", &given);
    w->kernel = kernel != NULL;
    for (uint32_t i = 0; kernel && i < w->count; i++)
        w->k[i] = i < given ? kernel[i] : 1;
    if (!kernel && onxi_schema_attr(n->s.row, onx_str_of("group")))
        w->kernel = read_sizes(onxi_subject_type(&n->s, 1), w->count, w->k);
    read_list(n, "strides", 1, w->s, w->count);
    read_list(n, "dilations", 1, w->d, w->count);
    read_list(n, "output_padding", 0, w->output_padding, w->count);
    read_list(n, "pads", 0, pads, 2 * w->count);
    const bool in = read_sizes(onxi_subject_type(&n->s, 0), w->count, w->in);
    w->sizes = in && read_sizes(out_type(n, 0), w->count, w->out);
    const bool upper = onxi_subject_text_is(&n->s, "auto_pad", "SAME_UPPER");
    const bool same = upper || onxi_subject_text_is(&n->s, "auto_pad", "SAME_LOWER");
    const bool valid = onxi_subject_text_is(&n->s, "auto_pad", "VALID");
    w->pads = true;
    for (uint32_t i = 0; i < w->count; i++) {
        if (same && (!in || !w->kernel))
            w->pads = false;
        else if (same)
            same_pads(w, i, ((w->in[i] - 1) / w->s[i]) * w->s[i] + w->d[i] * (w->k[i] - 1) + 1 - w->in[i], upper);
        else {
            w->begin[i] = valid ? 0 : pads[i];
            w->end[i] = valid ? 0 : pads[w->count + i];
        }
    }
    return w->pads;
}

static bool set_window(onxi_grad_node *n, const window *w)
{
    int64_t pads[2 * AXES], others[AXES];
    for (uint32_t i = 0; i < w->count; i++) {
        pads[i] = w->begin[i];
        pads[w->count + i] = w->end[i];
        others[i + 1] = i + 2;
    }
    others[0] = 0;
    return set_ints(n, "pads", pads, 2 * w->count) && set_ints(n, "strides", w->s, w->count) &&
           set_ints(n, "dilations", w->d, w->count) && set_ints(n, "begin", w->begin, w->count) &&
           set_ints(n, "but_channels", others, w->count + 1) && set_range(n, "axes", 2, w->count) &&
           set_all(n, "starts", 0, w->count);
}

/* The rest of the input that no window reaches need not be padded for the weights. */
static bool set_weight_pads(onxi_grad_node *n, const window *w, const int64_t *more)
{
    int64_t pads[2 * AXES];
    for (uint32_t i = 0; i < w->count; i++) {
        pads[i] = w->begin[i];
        pads[w->count + i] = w->end[i] - (more && more[i] <= w->end[i] ? more[i] : 0);
    }
    return set_ints(n, "weight_pads", pads, 2 * w->count);
}

WHEN(conv_exact)
{
    window w;
    int64_t more[AXES];
    if (!read_window(n, &w) || !w.sizes || !w.kernel)
        return false;
    for (uint32_t i = 0; i < w.count; i++) {
        more[i] = w.in[i] + w.begin[i] + w.end[i] - ((w.out[i] - 1) * w.s[i] + w.d[i] * (w.k[i] - 1) + 1);
        if (more[i] < 0 || more[i] >= w.s[i])
            return false;
    }
    return set_window(n, &w) && set_weight_pads(n, &w, more) && set_ints(n, "output_padding", more, w.count);
}

WHEN(conv_open)
{
    window w;
    return !onxi_grad_when_conv_exact(n) && read_window(n, &w) && set_window(n, &w) && set_weight_pads(n, &w, NULL);
}

WHEN(deconv)
{
    window w;
    uint32_t given;
    if (!read_window(n, &w))
        return false;
    const int64_t *shape = onxi_subject_ints(&n->s, "output_shape", &given);
    const bool upper = onxi_subject_text_is(&n->s, "auto_pad", "SAME_UPPER");
    const bool same = upper || onxi_subject_text_is(&n->s, "auto_pad", "SAME_LOWER");
    if ((shape || same) && (!w.sizes || !w.kernel))
        return false;
    for (uint32_t i = 0; (shape || same) && i < w.count; i++)
        same_pads(&w, i,
                  w.s[i] * (w.in[i] - 1) + w.output_padding[i] + (w.k[i] - 1) * w.d[i] + 1 -
                      (shape && i < given ? shape[i] : w.in[i] * w.s[i]),
                  upper);
    return set_window(n, &w);
}

/* A list that the node of a macro has been given. */
static const int64_t *given_ints(const onxi_grad_node *n, const char *name, uint32_t *count)
{
    const onx_attribute *a = onx_node_attribute(n->s.node, name);
    *count = a && a->slot == ONX_SLOT_INTS ? a->count : 0;
    return *count ? a->ints : NULL;
}

static bool correlate(onxi_grad_node *n, int64_t group)
{
    uint32_t count;
    int64_t swap[AXES], turn[AXES + 1];
    if (!given_ints(n, "strides", &count) || count + 3 > AXES)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        swap[i + 2] = i + 2;
        turn[i + 3] = i + 3;
    }
    swap[0] = turn[1] = 1;
    swap[1] = turn[2] = 0;
    turn[0] = 2;
    return set_ints(n, "swap", swap, count + 2) && set_ints(n, "turn", turn, count + 3) &&
           set_ints(n, "groups", &group, 1) && set_range(n, "axes", 2, count) && set_all(n, "starts", 0, count);
}

static int64_t group_of(const onxi_grad_node *n)
{
    const onx_attribute *a = onx_node_attribute(n->s.node, "group");
    return a && a->slot == ONX_SLOT_I ? a->i : 1;
}

WHEN(correlate_one)
{
    return group_of(n) == 1 && correlate(n, 1);
}
WHEN(correlate_groups)
{
    return correlate(n, group_of(n));
}
WHEN(crop)
{
    uint32_t count;
    return given_ints(n, "begin", &count) && set_range(n, "axes", 2, count);
}
WHEN(unpool)
{
    uint32_t count;
    return given_ints(n, "begin", &count) != NULL;
}

WHEN(pool_ready)
{
    window w;
    int64_t pads[2 * AXES], reach[AXES], ones[AXES];
    if (!read_window(n, &w) || !w.kernel)
        return false;
    for (uint32_t i = 0; i < w.count; i++) {
        pads[i] = w.begin[i];
        pads[w.count + i] = w.end[i];
        reach[i] = w.d[i] * (w.k[i] - 1) + 1;
        ones[i + 2] = w.k[i];
    }
    ones[0] = ones[1] = 1;
    return set_window(n, &w) && set_ints(n, "both_pads", pads, 2 * w.count) && set_ints(n, "reach", reach, w.count) &&
           set_ints(n, "window", ones, w.count + 2) && set_ints(n, "stride_list", w.s, w.count) &&
           set_all(n, "no_begin", 0, w.count) && set_range(n, "spatial", 2, w.count);
}
WHEN(pool_counts_pads)
{
    return int_is(n, "count_include_pad", 1) && onxi_grad_when_pool_ready(n);
}
WHEN(pool_counts_none)
{
    return !int_is(n, "count_include_pad", 1) && onxi_grad_when_pool_ready(n);
}
WHEN(rows_first)
{
    return !int_is(n, "storage_order", 1);
}
WHEN(columns_first)
{
    return int_is(n, "storage_order", 1);
}
WHEN(col_ready)
{
    uint32_t count;
    const onx_tensor_shape *blocks = shape_of(onxi_subject_type(&n->s, 2));
    const int64_t *strides = onxi_subject_ints(&n->s, "strides", &count);
    int64_t list[AXES], pads[2 * AXES];
    if (!strides)
        count = blocks && blocks->dim_count == 1 && ONX_HAS(dimension, blocks->dim[0], dim_value) &&
                        blocks->dim[0]->dim_value > 0 && blocks->dim[0]->dim_value <= AXES
                    ? (uint32_t)blocks->dim[0]->dim_value
                    : 0;
    if (!count || count > AXES)
        return false;
    read_list(n, "strides", 1, list, count);
    if (!set_ints(n, "strides", list, count))
        return false;
    read_list(n, "dilations", 1, list, count);
    read_list(n, "pads", 0, pads, 2 * count);
    return set_ints(n, "dilations", list, count) && set_ints(n, "pads", pads, 2 * count);
}
WHEN(resize_nearest)
{
    return onxi_subject_text_is(&n->s, "mode", "nearest");
}
WHEN(resize_linear)
{
    return !onxi_subject_text_is(&n->s, "mode", "nearest");
}

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
    return set_ints(n, "turn", back, count);
}
WHEN(not_turned)
{
    return !onxi_subject_given(&n->s, "perm");
}

/* What Slice with steps of one has left out, where that is known: pads of the gradient. */
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
    for (uint32_t i = 1; i < 5; i++) {
        const onxi_constant *c =
            has(n, i) ? onxi_values_constant(n->s.values, n->s.scope, onx_view(n->s.node->input[i])) : NULL;
        if (c && c->is_input)
            return false;
    }
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
    return set_ints(n, "left_out", pads, 2 * count) && set_ints(n, "cut_axes", list, count);
}
WHEN(slice_any)
{
    return !onxi_grad_when_slice_pads(n);
}
WHEN(gather_rows)
{
    return int_is(n, "axis", 0);
}
WHEN(gather_any)
{
    return !int_is(n, "axis", 0);
}
WHEN(gather_nd)
{
    return int_is(n, "batch_dims", 0);
}
WHEN(gather_nd_batch)
{
    return !int_is(n, "batch_dims", 0);
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
    return axes ? set_ints(n, "axes", axes, count)
                : rank > 0 && rank <= AXES && set_range(n, "axes", 0, (uint32_t)rank);
}
WHEN(depth_first)
{
    return !onxi_subject_text_is(&n->s, "mode", "CRD");
}
WHEN(columns_first_depth)
{
    return onxi_subject_text_is(&n->s, "mode", "CRD");
}
WHEN(rotary)
{
    return onxi_schema_attr(n->s.row, onx_str_of("interleaved")) != NULL;
}

/* ---- sequences ---- */

WHEN(joins_along)
{
    return int_is(n, "new_axis", 0);
}
WHEN(joins_anew)
{
    return int_is(n, "new_axis", 1);
}
/* Without sizes, `keepdims` says whether the axis goes. */
WHEN(splits_along)
{
    return has(n, 1) || int_is(n, "keepdims", 1);
}
WHEN(splits_off)
{
    return !onxi_grad_when_splits_along(n);
}
