/* conv.c - convolution on oneDNN: weights packed once, bias, activation and addition in passing. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

typedef struct conv_descs {
    dnnl_memory_desc_t x, w, b, y;
    dnnl_memory_desc_t w_plain;
    dnnl_dims_t strides, dilations, pad, pad_end;
    bool bias;
} conv_descs;

static bool describe(onx_prepare *p, conv_descs *c)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank < 3 || x->rank > 5 || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT || !y ||
        y->rank != x->rank || onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    int64_t group = onx_prepare_int(p, "group", 1);
    if (group < 1 || x->dims[1] % group || w->dims[0] % group || w->dims[1] != x->dims[1] / group)
        return false;
    for (uint32_t i = 0; i < win.spatial; i++) {
        int64_t extent = (win.kernel[i] - 1) * win.dilation[i] + 1;
        if (win.pad[i] < 0 || win.pad_end[i] < 0 ||
            (win.in[i] + win.pad[i] + win.pad_end[i] - extent) / win.stride[i] + 1 != win.out[i])
            return false;
        c->strides[i] = win.stride[i];
        c->dilations[i] = win.dilation[i] - 1;
        c->pad[i] = win.pad[i];
        c->pad_end[i] = win.pad_end[i];
    }
    int64_t dims[ONX_RANK_MAX];
    uint32_t rank = w->rank, at = 0;
    if (group > 1) {
        dims[at++] = group;
        rank++;
    }
    dims[at++] = w->dims[0] / group;
    for (uint32_t i = 1; i < w->rank; i++)
        dims[at++] = w->dims[i];
    c->bias = b != NULL;
    return onxi_dnnl_md_any(x->rank, x->dims, &c->x) && onxi_dnnl_md_any(rank, dims, &c->w) &&
           onxi_dnnl_md_plain(rank, dims, &c->w_plain) && onxi_dnnl_md_any(y->rank, y->dims, &c->y) &&
           (!b || (b->dtype == ONX_FLOAT && onxi_dnnl_md_plain(1, w->dims, &c->b)));
}

static bool make_desc(const conv_descs *c, dnnl_engine_t engine, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t desc;
    return dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, &c->x,
                                                      &c->w, c->bias ? &c->b : NULL, &c->y, c->strides, c->dilations,
                                                      c->pad, c->pad_end) == dnnl_success &&
           dnnl_primitive_desc_create(out, &desc, attr, engine, NULL) == dnnl_success;
}

/* With an operand that must stay whole the layout of the result has to be known first: a first description tells it. */
static bool choose_desc(onx_prepare *p, const conv_descs *c, dnnl_engine_t engine, onxi_dnnl_post *post,
                        dnnl_primitive_desc_t *out)
{
    if (!onxi_dnnl_post_make(p, NULL, post))
        return false;
    bool good = make_desc(c, engine, post->attr, out);
    dnnl_primitive_attr_destroy(post->attr);
    if (!good || post->post_ops_done == p->post_op_count)
        return good;
    dnnl_memory_desc_t dst = *dnnl_primitive_desc_query_md(*out, dnnl_query_dst_md, 0);
    onxi_dnnl_post more;
    if (!onxi_dnnl_post_make(p, &dst, &more))
        return true;
    conv_descs fixed = *c;
    dnnl_primitive_desc_t better;
    fixed.y = dst;
    if (more.post_ops_done > post->post_ops_done && make_desc(&fixed, engine, more.attr, &better)) {
        dnnl_primitive_desc_destroy(*out);
        *out = better;
        *post = more;
    }
    dnnl_primitive_attr_destroy(more.attr);
    return true;
}

static onx_status conv_prepare(onx_prepare *p)
{
    conv_descs c = { .bias = false };
    dnnl_primitive_desc_t desc;
    onxi_dnnl_post post;
    if (!p->want || !describe(p, &c))
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, 8);
    if (!d || !choose_desc(p, &c, d->engine, &post, &desc))
        return onxi_dnnl_decline(d);
    const dnnl_memory_desc_t *x = dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0),
                             *y = dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0);
    const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    const onx_layout *x_layout, *y_layout;
    const void *weights;
    if (!onxi_dnnl_layout(p, x, &x_layout) || !onxi_dnnl_layout(p, y, &y_layout) ||
        onxi_dnnl_pack(p, 1, &c.w_plain, w, &weights) != ONX_OK) {
        dnnl_primitive_desc_destroy(desc);
        return onxi_dnnl_decline(d);
    }
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, NULL, x);
    onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_CONSTANT, 1, weights, w);
    if (c.bias)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, 2, NULL, &c.b);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, NULL, y);
    dnnl_memory_desc_t dst = *y;
    ONX_TRY(onxi_dnnl_finish(p, d, desc));
    p->want[0] = x_layout;
    p->want[1] = NULL;
    p->outputs[0]->layout = y_layout;
    onxi_dnnl_post_apply(p, d, &post, y_layout, &dst);
    return ONX_OK;
}

const onx_kernel onxi_kernels_dnnl_conv[] = { ONXI_DNNL_ROW("Conv", 1, ONX_KERNEL_POST_OPS, conv_prepare), { 0 } };
#endif
