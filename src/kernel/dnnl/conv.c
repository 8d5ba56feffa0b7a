/* conv.c - convolution by oneDNN, with packed weights and with bias, activation and addition as post-operations. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

/* How the work is divided into parts: by images, by rows of an image, by groups, or by output channels. */
typedef enum conv_cut { WHOLE, IMAGES, ROWS, GROUPS, CHANNELS } conv_cut;

/* Most channels in a block of a layout (blocks are not divided); what a multiplication costs where there is one. */
enum { BLOCK = 16, LONE_CHANNEL = 16 };

typedef struct conv_shape {
    int64_t group;
    bool padded;
    dnnl_dims_t strides, dilations, pad, pad_end;
    uint64_t cost; /* number of multiplications, as oneDNN needs time for them */
} conv_shape;

/* Is some output position, along one dimension, computed from padding only? oneDNN 2.6 crashes there if its convolution
 * by batched products (AVX-512) applies an activation. */
static bool has_window_of_padding(const onxi_window *win, uint32_t i)
{
    for (int64_t o = 0; o < win->out[i]; o++) {
        const int64_t start = o * win->stride[i] - win->pad[i];
        const int64_t tap = start < 0 ? (-start - 1) / win->dilation[i] + 1 : 0; /* first tap not before the input */
        if (tap >= win->kernel[i] || start + tap * win->dilation[i] >= win->in[i])
            return true;
    }
    return false;
}

static bool shape_of(onx_prepare *p, conv_shape *s)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || w->dtype != ONX_FLOAT || !y || y->rank != x->rank ||
        (b && b->dtype != ONX_FLOAT) || onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    s->padded = false;
    s->group = onx_prepare_int(p, "group");
    if (!w->data && s->group > 1)
        return false; /* grouped weights as a value have no such layout */
    if (s->group < 1 || x->dims[1] % s->group || w->dims[0] % s->group || w->dims[1] != x->dims[1] / s->group ||
        w->dims[0] != y->dims[1])
        return false;
    for (uint32_t i = 0; i < win.spatial; i++) {
        int64_t extent = (win.kernel[i] - 1) * win.dilation[i] + 1;
        if (win.pad[i] < 0 || win.pad_end[i] < 0 ||
            (win.in[i] + win.pad[i] + win.pad_end[i] - extent) / win.stride[i] + 1 != win.out[i] ||
            has_window_of_padding(&win, i))
            return false;
        s->strides[i] = win.stride[i];
        s->dilations[i] = win.dilation[i] - 1;
        s->pad[i] = win.pad[i];
        s->pad_end[i] = win.pad_end[i];
        s->padded |= win.pad[i] || win.pad_end[i];
    }
    s->cost = y->count;
    for (uint32_t i = 1; i < w->rank; i++)
        s->cost *= (uint64_t)w->dims[i];
    if (x->dims[1] == 1 && w->dims[0] == 1) /* lanes hold channels */
        s->cost = s->cost < UINT64_MAX / LONE_CHANNEL ? s->cost * LONE_CHANNEL : s->cost;
    return true;
}

/* oneDNN skips padding instead of multiplying its zeros with the weights. The result is the same unless weights are NaN
 * or infinite. Weights that are not constant are checked by each run. */
static bool padding_is_harmless(const onx_prepare *p, const conv_shape *s)
{
    return !s->padded || (p->inputs[1]->data ? onxi_weights_are_finite(p, 1) : !p->nonfinite);
}

/* One part of the convolution. */
typedef struct conv_part {
    onxi_dnnl_conv c;
    onxi_dnnl_md w_plain;
} conv_part;

/* Strides between parts in bytes. */
typedef struct conv_steps {
    uint64_t x, w, b, y;
} conv_steps;

/* Describes the weights and the bias of a part with `extent` groups or channels; the caller describes x and y. */
static bool describe_weights(const onx_prepare *p, onxi_dnnl *d, const conv_shape *s, conv_cut cut, int64_t extent,
                             conv_part *q)
{
    const onx_value *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    int64_t dims[ONX_RANK_MAX], groups = cut == GROUPS ? extent : s->group, channels = w->dims[0] / s->group;
    uint32_t at = 0;
    if (cut == CHANNELS)
        channels = extent;
    if (s->group > 1)
        dims[at++] = groups;
    dims[at++] = channels;
    for (uint32_t i = 1; i < w->rank; i++)
        dims[at++] = w->dims[i];
    int64_t outputs = groups * channels;
    q->c.w = onxi_dnnl_md_any(d, at, dims);
    q->w_plain = onxi_dnnl_md_plain(d, at, dims);
    q->c.b = b ? onxi_dnnl_md_plain(d, 1, &outputs) : NULL;
    memcpy(q->c.strides, s->strides, sizeof s->strides);
    memcpy(q->c.dilations, s->dilations, sizeof s->dilations);
    memcpy(q->c.pad, s->pad, sizeof s->pad);
    memcpy(q->c.pad_end, s->pad_end, sizeof s->pad_end);
    return q->c.x && q->c.y && q->c.w && q->w_plain && (!b || q->c.b);
}

/* Describes the whole convolution with the post-operations that oneDNN can apply. If one of them has an operand, which
 * must have the layout of the result, a first description determines that layout. */
static bool choose_desc(const onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_conv *c, onxi_dnnl_post *post,
                        dnnl_primitive_desc_t *out)
{
    if (!onxi_dnnl_post_make(p, d, NULL, 0, post))
        return false;
    bool good = onxi_dnnl_describe_conv(d, c, post->attr, out);
    d->lib->dnnl_primitive_attr_destroy(post->attr);
    if (!good || post->post_ops_done == p->post_op_count)
        return good;
    onxi_dnnl_conv fixed = *c;
    onxi_dnnl_post more;
    fixed.y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(*out, dnnl_query_dst_md, 0));
    if (!fixed.y || !onxi_dnnl_post_make(p, d, fixed.y, 0, &more))
        return true;
    dnnl_primitive_desc_t better;
    if (more.post_ops_done > post->post_ops_done && onxi_dnnl_describe_conv(d, &fixed, more.attr, &better)) {
        d->lib->dnnl_primitive_desc_destroy(*out);
        *out = better;
        *post = more;
    }
    d->lib->dnnl_primitive_attr_destroy(more.attr);
    return true;
}

static bool describe_part(const onx_prepare *p, const onxi_dnnl *d, const onxi_dnnl_post *post, const onxi_dnnl_conv *c,
                          dnnl_primitive_desc_t *out)
{
    onxi_dnnl_post same;
    if (!onxi_dnnl_post_make(p, d, post->binary >= 0 ? c->y : NULL, 0, &same))
        return false;
    bool good = same.post_ops_done == post->post_ops_done && onxi_dnnl_describe_conv(d, c, same.attr, out);
    d->lib->dnnl_primitive_attr_destroy(same.attr);
    return good;
}

/* The number of groups that together have whole blocks of channels. */
static int64_t group_unit(const onx_value *w, int64_t group)
{
    int64_t unit = 1;
    while (unit < BLOCK && (unit * w->dims[1] % BLOCK || unit * (w->dims[0] / group) % BLOCK))
        unit *= 2;
    return unit;
}

static onxi_dnnl_cut choose_cut(const onx_prepare *p, const onxi_dnnl *d, const conv_shape *s, conv_cut *kind)
{
    const onx_value *x = p->inputs[0];
    *kind = x->dims[0] > 1 ? IMAGES : s->group > 1 ? GROUPS : CHANNELS;
    if (*kind == IMAGES)
        return onxi_dnnl_cut_of(d, x->dims[0], 1);
    if (*kind == GROUPS)
        return onxi_dnnl_cut_of(d, s->group, group_unit(p->inputs[1], s->group));
    return onxi_dnnl_cut_of(d, p->outputs[0]->dims[1], BLOCK);
}

/* Divides the convolution into parts for several threads, in the layouts of the whole. */
static bool cut_conv(const onx_prepare *p, onxi_dnnl *d, const conv_shape *s, const onxi_dnnl_post *post,
                     conv_part part[2], conv_steps *step)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0], *w = p->inputs[1];
    onxi_dnnl_pair px = onxi_dnnl_both(part[0].c.x), py;
    dnnl_primitive_desc_t desc[2] = { NULL, NULL };
    conv_cut kind;
    onxi_dnnl_cut cut = choose_cut(p, d, s, &kind);
    uint32_t axis = kind == IMAGES ? 0 : 1;
    onxi_dnnl_rows rows = { .x = { part[0].c.x, NULL },
                            .y = { part[0].c.y, NULL },
                            .stride = s->strides[0],
                            .window = (w->dims[2] - 1) * (s->dilations[0] + 1) + 1,
                            .above = s->pad[0],
                            .below = s->pad_end[0] };
    if (kind != IMAGES && onxi_dnnl_cut_rows(d, x, y, &rows)) {
        kind = ROWS;
        cut = rows.cut;
        px = rows.x;
        py = rows.y;
        step->x = rows.x_step;
        step->y = rows.y_step;
    } else if (cut.parts < 2 ||
               (kind != CHANNELS &&
                !onxi_dnnl_cut_md(d, &cut, px.each, x, axis, kind == GROUPS ? w->dims[1] : 1, &px, &step->x)) ||
               !onxi_dnnl_cut_md(d, &cut, part[0].c.y, y, axis, kind == GROUPS ? w->dims[0] / s->group : 1, &py,
                                 &step->y)) {
        return false;
    }
    if (!w->data && kind != IMAGES && kind != ROWS)
        return false; /* Parts by groups or channels would need parts of the weights, which are one value of the run. */
    conv_part q[2] = { { .c = { .x = px.each, .y = py.each } }, { .c = { .x = px.last, .y = py.last } } };
    const bool halo = kind == ROWS && rows.halo;
    bool good = describe_weights(p, d, s, kind, cut.each, &q[0]);
    if (halo)
        q[0].c.pad_end[0] = 0;
    good = good && describe_part(p, d, post, &q[0].c, &desc[0]);
    if (good && (cut.last != cut.each || halo)) {
        good = describe_weights(p, d, s, kind, cut.last, &q[1]);
        if (halo) {
            q[1].c.pad[0] = 0;
            q[1].c.pad_end[0] = rows.below;
        }
        if (kind == IMAGES || kind == ROWS) /* all parts use the same weights */
            q[1].c.w = d->lib->dnnl_primitive_desc_query_md(desc[0], dnnl_query_weights_md, 0);
        good = good && describe_part(p, d, post, &q[1].c, &desc[1]);
    } else {
        q[1] = q[0];
    }
    /* Another order of summation would make the bits depend on the number of threads. A division by images changes no
     * order. */
    for (int i = 0; good && kind != IMAGES && i < 2 && desc[i]; i++)
        good = onxi_dnnl_same_sums(d, desc[i], d->desc[0]);
    if (!good) {
        for (int i = 0; i < 2 && desc[i]; i++)
            d->lib->dnnl_primitive_desc_destroy(desc[i]);
        return false;
    }
    if (kind == GROUPS || kind == CHANNELS) {
        uint64_t channels = (uint64_t)cut.each * (kind == GROUPS ? (uint64_t)(w->dims[0] / s->group) : 1);
        step->w = channels * (w->count / (uint64_t)w->dims[0]) * sizeof(float);
        step->b = channels * sizeof(float);
    }
    d->lib->dnnl_primitive_desc_destroy(d->desc[0]);
    memcpy(d->desc, desc, sizeof desc);
    memcpy(part, q, sizeof q);
    d->cut = cut;
    return true;
}

static onxi_dnnl_pair pair(onxi_dnnl_md each, onxi_dnnl_md last)
{
    return (onxi_dnnl_pair){ each, last };
}

/* Adds the operands; *w_layout is the layout of weights that are not constant. */
static bool add_operands(onx_prepare *p, onxi_dnnl *d, const conv_part q[2], const conv_steps *step,
                         const onx_layout **w_layout)
{
    onxi_dnnl_md w = d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_weights_md, 0), w_last = w;
    if (d->desc[1])
        w_last = d->lib->dnnl_primitive_desc_query_md(d->desc[1], dnnl_query_weights_md, 0);
    *w_layout = NULL;
    if (!p->inputs[1]->data) {
        if (!(w = onxi_dnnl_md_keep(d, w)) || !onxi_dnnl_layout(p, d, p->inputs[1], w, w_layout))
            return false;
        onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_INPUT, 1, onxi_dnnl_both(w), 0);
    } else if (!onxi_dnnl_add_constant(p, d, DNNL_ARG_WEIGHTS, 1, pair(q[0].w_plain, q[1].w_plain), step->w,
                                       pair(w, w_last))) {
        return false;
    }
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, pair(q[0].c.x, q[1].c.x), step->x);
    if (q[0].c.b)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, 2, pair(q[0].c.b, q[1].c.b), step->b);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, pair(q[0].c.y, q[1].c.y), step->y);
    return true;
}

static onx_status prepare_kind(onx_prepare *p, bool direct)
{
    conv_shape s;
    if (!p->want || !shape_of(p, &s) || !padding_is_harmless(p, &s))
        return ONX_E_UNSUPPORTED;
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const onx_layout *x_layout, *y_layout, *w_layout;
    onxi_dnnl *d = onxi_dnnl_new(p, 8, s.cost);
    if (!d)
        return ONX_E_UNSUPPORTED;
    d->direct = direct;
    conv_part q[2] = { { .c = { .x = onxi_dnnl_md_any(d, x->rank, x->dims),
                                .y = onxi_dnnl_md_any(d, y->rank, y->dims) } } };
    conv_steps step = { .x = 0 };
    onxi_dnnl_post post;
    if (!describe_weights(p, d, &s, WHOLE, 0, &q[0]) || !choose_desc(p, d, &q[0].c, &post, &d->desc[0]))
        return onxi_dnnl_decline(d);
    q[0].c.x = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_src_md, 0));
    q[0].c.y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_dst_md, 0));
    q[1] = q[0];
    if (!q[0].c.x || !q[0].c.y || !onxi_dnnl_layout(p, d, x, q[0].c.x, &x_layout) ||
        !onxi_dnnl_layout(p, d, y, q[0].c.y, &y_layout))
        return onxi_dnnl_decline(d);
    if (!cut_conv(p, d, &s, &post, q, &step))
        step = (conv_steps){ .x = 0 };
    if (!add_operands(p, d, q, &step, &w_layout))
        return onxi_dnnl_decline(d);
    d->finite = p->inputs[1]->data || !s.padded ? 0 : 2;
    ONX_TRY(onxi_dnnl_finish(p, d));
    p->want[0] = x_layout;
    p->want[1] = w_layout;
    p->outputs[0]->layout = y_layout;
    onxi_dnnl_post_apply(p, d, &post, y_layout, pair(q[0].c.y, q[1].c.y), step.y);
    return ONX_OK;
}

static onx_status direct_prepare(onx_prepare *p)
{
    return prepare_kind(p, true);
}

static onx_status any_prepare(onx_prepare *p)
{
    return prepare_kind(p, false);
}

/* Convolutions that oneDNN would unfold are offered to our own rows between these two (simd/unfold.c, simd/lines.c). */
const onx_kernel onxi_kernels_dnnl_conv[] = {
    ONXI_DNNL_ROW("Conv", 1, ONX_KERNEL_POST_OPS, ONXI_DNNL_WEIGHTS, direct_prepare),
    ONXI_DNNL_ROW_AT(5, "Conv", 1, ONX_KERNEL_POST_OPS, ONXI_DNNL_WEIGHTS, any_prepare),
    { 0 }
};
#endif
