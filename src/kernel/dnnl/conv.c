/* conv.c - convolution on oneDNN: weights packed once, bias, activation and addition in passing. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

/* By what the work is cut into parts: whole images, groups of channels, or channels of the result. */
typedef enum conv_cut { WHOLE, IMAGES, GROUPS, CHANNELS } conv_cut;

typedef struct conv_shape {
    int64_t group;
    dnnl_dims_t strides, dilations, pad, pad_end;
    uint64_t cost; /* multiplications */
} conv_shape;

static bool shape_of(onx_prepare *p, conv_shape *s)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT || !y ||
        y->rank != x->rank || (b && b->dtype != ONX_FLOAT) || onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    s->group = onx_prepare_int(p, "group", 1);
    if (s->group < 1 || x->dims[1] % s->group || w->dims[0] % s->group || w->dims[1] != x->dims[1] / s->group ||
        w->dims[0] != y->dims[1])
        return false;
    for (uint32_t i = 0; i < win.spatial; i++) {
        int64_t extent = (win.kernel[i] - 1) * win.dilation[i] + 1;
        if (win.pad[i] < 0 || win.pad_end[i] < 0 ||
            (win.in[i] + win.pad[i] + win.pad_end[i] - extent) / win.stride[i] + 1 != win.out[i])
            return false;
        s->strides[i] = win.stride[i];
        s->dilations[i] = win.dilation[i] - 1;
        s->pad[i] = win.pad[i];
        s->pad_end[i] = win.pad_end[i];
    }
    s->cost = y->count;
    for (uint32_t i = 1; i < w->rank; i++)
        s->cost *= (uint64_t)w->dims[i];
    return true;
}

/* One part of the convolution: its operands, and how far it is from one to the next. */
typedef struct conv_part {
    onxi_dnnl_conv c;
    onxi_dnnl_md w_plain;
    uint64_t x_step, w_step, b_step, y_step;
} conv_part;

/* The weights and the bias of a part; x and y are the caller's. */
static bool describe_weights(const onx_prepare *p, onxi_dnnl *d, const conv_shape *s, conv_cut cut, uint32_t parts,
                             conv_part *q)
{
    const onx_value *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    int64_t dims[ONX_RANK_MAX], channels = w->dims[0] / s->group;
    uint32_t at = 0;
    bool shared = cut == WHOLE || cut == IMAGES;
    if (s->group > 1)
        dims[at++] = cut == GROUPS ? s->group / parts : s->group;
    dims[at++] = cut == CHANNELS ? channels / parts : channels;
    for (uint32_t i = 1; i < w->rank; i++)
        dims[at++] = w->dims[i];
    int64_t outputs = shared ? w->dims[0] : w->dims[0] / parts;
    q->w_step = shared ? 0 : w->count / parts * sizeof(float);
    q->b_step = shared ? 0 : (uint64_t)outputs * sizeof(float);
    q->c.w = onxi_dnnl_md_any(d, at, dims);
    q->w_plain = onxi_dnnl_md_plain(d, at, dims);
    q->c.b = b ? onxi_dnnl_md_plain(d, 1, &outputs) : NULL;
    memcpy(q->c.strides, s->strides, sizeof s->strides);
    memcpy(q->c.dilations, s->dilations, sizeof s->dilations);
    memcpy(q->c.pad, s->pad, sizeof s->pad);
    memcpy(q->c.pad_end, s->pad_end, sizeof s->pad_end);
    return q->c.x && q->c.y && q->c.w && q->w_plain && (!b || q->c.b);
}

/* The whole, with the post-operations that can be taken. With an operand that must stay whole the layout of the result
 * has to be known first: a first description tells it. */
static bool choose_desc(const onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_conv *c, onxi_dnnl_post *post,
                        dnnl_primitive_desc_t *out)
{
    if (!onxi_dnnl_post_make(p, d, NULL, post))
        return false;
    bool good = onxi_dnnl_describe_conv(d, c, post->attr, out);
    d->lib->dnnl_primitive_attr_destroy(post->attr);
    if (!good || post->post_ops_done == p->post_op_count)
        return good;
    onxi_dnnl_conv fixed = *c;
    onxi_dnnl_post more;
    fixed.y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(*out, dnnl_query_dst_md, 0));
    if (!fixed.y || !onxi_dnnl_post_make(p, d, fixed.y, &more))
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

/* The same in parts for several threads, with the layouts of the whole. */
static bool cut_conv(const onx_prepare *p, onxi_dnnl *d, const conv_shape *s, const onxi_dnnl_post *post, conv_part *q,
                     dnnl_primitive_desc_t *desc)
{
    enum { BLOCK = 16 }; /* channels of a layout that are not to be cut */
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    conv_cut cut = x->dims[0] > 1 ? IMAGES : s->group > 1 ? GROUPS : CHANNELS;
    int64_t extent = cut == IMAGES ? x->dims[0] : cut == GROUPS ? s->group : y->dims[1];
    uint32_t parts = onxi_dnnl_parts(d, extent, cut == CHANNELS ? BLOCK : 1), axis = cut == IMAGES ? 0 : 1;
    unsigned threads = d->threads;
    conv_part part = { .x_step = 0 };
    onxi_dnnl_post same;
    dnnl_primitive_desc_t better;
    if (parts < 2)
        return false;
    part.c.x = cut == CHANNELS ? q->c.x : onxi_dnnl_md_part(d, q->c.x, x->rank, x->dims, axis, parts, &part.x_step);
    part.c.y = onxi_dnnl_md_part(d, q->c.y, y->rank, y->dims, axis, parts, &part.y_step);
    if (!describe_weights(p, d, s, cut, parts, &part) ||
        !onxi_dnnl_post_make(p, d, post->binary >= 0 ? part.c.y : NULL, &same))
        return false;
    onxi_dnnl_use_threads(d, 1);
    bool good = same.post_ops_done == post->post_ops_done && onxi_dnnl_describe_conv(d, &part.c, same.attr, &better);
    d->lib->dnnl_primitive_attr_destroy(same.attr);
    if (!good) {
        onxi_dnnl_use_threads(d, threads);
        return false;
    }
    d->lib->dnnl_primitive_desc_destroy(*desc);
    *desc = better;
    *q = part;
    d->parts = parts;
    return true;
}

static onx_status conv_prepare(onx_prepare *p)
{
    conv_shape s;
    if (!p->want || !shape_of(p, &s))
        return ONX_E_UNSUPPORTED;
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const onx_layout *x_layout, *y_layout;
    onxi_dnnl *d = onxi_dnnl_new(p, 8, s.cost);
    if (!d)
        return ONX_E_UNSUPPORTED;
    conv_part q = { .c = { .x = onxi_dnnl_md_any(d, x->rank, x->dims), .y = onxi_dnnl_md_any(d, y->rank, y->dims) } };
    onxi_dnnl_post post;
    dnnl_primitive_desc_t desc;
    if (!describe_weights(p, d, &s, WHOLE, 1, &q) || !choose_desc(p, d, &q.c, &post, &desc))
        return onxi_dnnl_decline(d);
    q.c.x = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0));
    q.c.y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0));
    bool good =
        q.c.x && q.c.y && onxi_dnnl_layout(p, d, x, q.c.x, &x_layout) && onxi_dnnl_layout(p, d, y, q.c.y, &y_layout);
    if (good)
        cut_conv(p, d, &s, &post, &q, &desc);
    onxi_dnnl_md w = d->lib->dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    if (!good || !onxi_dnnl_add_constant(p, d, DNNL_ARG_WEIGHTS, 1, q.w_plain, q.w_step, w)) {
        d->lib->dnnl_primitive_desc_destroy(desc);
        return onxi_dnnl_decline(d);
    }
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, q.c.x, q.x_step);
    if (q.c.b)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, 2, q.c.b, q.b_step);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, q.c.y, q.y_step);
    ONX_TRY(onxi_dnnl_finish(p, d, desc));
    p->want[0] = x_layout;
    p->want[1] = NULL;
    p->outputs[0]->layout = y_layout;
    onxi_dnnl_post_apply(p, d, &post, y_layout, q.c.y, q.y_step);
    return ONX_OK;
}

const onx_kernel onxi_kernels_dnnl_conv[] = { ONXI_DNNL_ROW("Conv", 1, ONX_KERNEL_POST_OPS, conv_prepare), { 0 } };
#endif
