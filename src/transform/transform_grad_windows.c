/* transform_grad_windows.c - conditions of gradient rules of window operators: convolution, pooling, resizing; and the
 * attributes of the nodes that compute their gradients. */
#include "transform/transform_grad.h"

#define WHEN(name) bool onxi_grad_when_##name(onxi_grad_node *n)

enum { AXES = ONX_RANK_MAX };

const onx_type *onxi_grad_output_type(onxi_grad_node *n, uint32_t i)
{
    return i < n->s.node->output_count && onx_view(n->s.node->output[i]).len
               ? onxi_values_type(n->s.values, n->s.scope, onx_view(n->s.node->output[i]))
               : NULL;
}

static bool set_all(onxi_grad_node *n, const char *name, int64_t value, uint32_t count)
{
    int64_t list[AXES];
    for (uint32_t i = 0; i < count && i < AXES; i++)
        list[i] = value;
    return count <= AXES && onxi_grad_set_ints(n, name, list, count);
}

typedef struct window {
    uint32_t count;
    bool sizes, kernel, pads; /* which of them are known */
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

/* Where SAME_UPPER and SAME_LOWER put the padding. */
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
    w->sizes = in && read_sizes(onxi_grad_output_type(n, 0), w->count, w->out);
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
    return onxi_grad_set_ints(n, "pads", pads, 2 * w->count) && onxi_grad_set_ints(n, "strides", w->s, w->count) &&
           onxi_grad_set_ints(n, "dilations", w->d, w->count) && onxi_grad_set_ints(n, "begin", w->begin, w->count) &&
           onxi_grad_set_ints(n, "but_channels", others, w->count + 1) && onxi_grad_set_range(n, "axes", 2, w->count) &&
           set_all(n, "starts", 0, w->count);
}

/* For the gradient of the weights, input elements that no window covers need no padding. */
static bool set_weight_pads(onxi_grad_node *n, const window *w, const int64_t *more)
{
    int64_t pads[2 * AXES];
    for (uint32_t i = 0; i < w->count; i++) {
        pads[i] = w->begin[i];
        pads[w->count + i] = w->end[i] - (more && more[i] <= w->end[i] ? more[i] : 0);
    }
    return onxi_grad_set_ints(n, "weight_pads", pads, 2 * w->count);
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
    return set_window(n, &w) && set_weight_pads(n, &w, more) && onxi_grad_set_ints(n, "output_padding", more, w.count);
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

/* A list attribute of the node in the text that calls the macro. */
static const int64_t *given_ints(const onxi_grad_node *n, const char *name, uint32_t *count)
{
    return onxi_bind_ints(NULL, n->s.node, name, count);
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
    return onxi_grad_set_ints(n, "swap", swap, count + 2) && onxi_grad_set_ints(n, "turn", turn, count + 3) &&
           onxi_grad_set_ints(n, "groups", &group, 1) && onxi_grad_set_range(n, "axes", 2, count) &&
           set_all(n, "starts", 0, count);
}

static int64_t group_of(const onxi_grad_node *n)
{
    return onxi_bind_int(NULL, n->s.node, "group"); /* which the rows of the operators have a default for */
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
    return given_ints(n, "begin", &count) && onxi_grad_set_range(n, "axes", 2, count);
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
    return set_window(n, &w) && onxi_grad_set_ints(n, "both_pads", pads, 2 * w.count) &&
           onxi_grad_set_ints(n, "reach", reach, w.count) && onxi_grad_set_ints(n, "window", ones, w.count + 2) &&
           onxi_grad_set_ints(n, "stride_list", w.s, w.count) && set_all(n, "no_begin", 0, w.count) &&
           onxi_grad_set_range(n, "spatial", 2, w.count);
}
WHEN(pool_counts_pads)
{
    return onxi_grad_int_is(n, "count_include_pad", 1) && onxi_grad_when_pool_ready(n);
}
WHEN(pool_counts_none)
{
    return !onxi_grad_int_is(n, "count_include_pad", 1) && onxi_grad_when_pool_ready(n);
}
WHEN(rows_first)
{
    return !onxi_grad_int_is(n, "storage_order", 1);
}
WHEN(columns_first)
{
    return onxi_grad_int_is(n, "storage_order", 1);
}
WHEN(col_ready)
{
    uint32_t count;
    const onx_tensor_shape *blocks = onxi_grad_shape_of(onxi_subject_type(&n->s, 2));
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
    if (!onxi_grad_set_ints(n, "strides", list, count))
        return false;
    read_list(n, "dilations", 1, list, count);
    read_list(n, "pads", 0, pads, 2 * count);
    return onxi_grad_set_ints(n, "dilations", list, count) && onxi_grad_set_ints(n, "pads", pads, 2 * count);
}
WHEN(resize_nearest)
{
    return onxi_subject_text_is(&n->s, "mode", "nearest");
}
WHEN(resize_linear)
{
    return !onxi_subject_text_is(&n->s, "mode", "nearest");
}
