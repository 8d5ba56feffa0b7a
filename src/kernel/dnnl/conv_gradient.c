/* conv_gradient.c - gradients of convolutions by oneDNN: a ConvTranspose is the gradient of the input, and a Conv whose
 * windows are larger than its output is the gradient of the weights. */
#include "kernel/core/blocked.h"
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

/* Describes the window of the convolution x * w = y that the gradient belongs to; false: there is none. */
static bool fit_window(const int64_t *x, const int64_t *w, const int64_t *y, const onxi_window *win, bool turned,
                       onxi_dnnl_conv *c)
{
    for (uint32_t i = 0; i < win->spatial; i++) {
        const int64_t stride = turned ? win->dilation[i] : win->stride[i];
        const int64_t dilation = turned ? win->stride[i] : win->dilation[i];
        const int64_t room = x[i] + win->pad[i] + win->pad_end[i] - ((w[i] - 1) * dilation + 1);
        if (win->pad[i] < 0 || win->pad_end[i] < 0 || room < 0 || room / stride + 1 != y[i])
            return false;
        c->strides[i] = stride;
        c->dilations[i] = dilation - 1;
        c->pad[i] = win->pad[i];
        c->pad_end[i] = win->pad_end[i];
    }
    return true;
}

typedef bool describe_fn(const onxi_dnnl *d, const onxi_dnnl_conv *c, dnnl_primitive_attr_t attr,
                         dnnl_primitive_desc_t *out);

static bool is_float(const onx_value *v, uint32_t rank)
{
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype == ONX_FLOAT && v->rank == rank && v->count;
}

/* Describes a gradient with the layouts of x and y: channels last if the operands have that layout already, as an
 * earlier convolution left it; else the layouts that oneDNN prefers. */
static bool describe_as(onxi_dnnl *d, onxi_dnnl_conv *c, const onx_value *x, const onx_value *y, bool channels_last,
                        describe_fn *describe, dnnl_primitive_attr_t attr)
{
    static const dnnl_format_tag_t last[] = { dnnl_acb, dnnl_acdb, dnnl_acdeb };
    const dnnl_format_tag_t tag = channels_last ? last[x->rank - 3] : dnnl_format_tag_any;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dims[i] <= 0 || y->dims[i] <= 0)
            return false;
    c->x = onxi_dnnl_md_tag(d, x->rank, x->dims, tag);
    c->y = onxi_dnnl_md_tag(d, y->rank, y->dims, tag);
    return c->x && c->y && c->w && describe(d, c, attr, &d->desc[0]);
}

static bool is_channels_last(const onx_value *v)
{
    return v->dims[1] > 1 && onxi_blocked_of(v) == v->dims[1];
}

/* ---- parts of the batch ---- */

/* Divides a convolution, x and y, into parts of the batch, which all use the same weights. On success, the descriptions
 * of a part and of the last part replace those of the whole. */
static bool cut_batch(onxi_dnnl *d, const onxi_dnnl_cut *cut, const onx_value *x, const onx_value *y,
                      describe_fn *describe, onxi_dnnl_conv part[2], dnnl_primitive_attr_t attr, uint64_t *x_step,
                      uint64_t *y_step)
{
    onxi_dnnl_pair px, py;
    dnnl_primitive_desc_t desc[2] = { NULL, NULL };
    if (cut->parts < 2 || !onxi_dnnl_cut_md(d, cut, part[0].x, x, 0, 1, &px, x_step) ||
        !onxi_dnnl_cut_md(d, cut, part[0].y, y, 0, 1, &py, y_step))
        return false;
    onxi_dnnl_conv q[2] = { part[0], part[0] };
    q[0].x = px.each, q[0].y = py.each;
    q[1].x = px.last, q[1].y = py.last;
    bool good = describe(d, &q[0], attr, &desc[0]);
    if (good && cut->last != cut->each)
        good = describe(d, &q[1], attr, &desc[1]);
    if (!good) {
        if (desc[0])
            d->lib->dnnl_primitive_desc_destroy(desc[0]);
        return false;
    }
    d->lib->dnnl_primitive_desc_destroy(d->desc[0]);
    memcpy(d->desc, desc, sizeof desc);
    memcpy(part, q, sizeof q);
    d->cut = *cut;
    return true;
}

/* ---- ConvTranspose ---- */

/* The dims of the weights with a dim for groups; returns their rank. */
static uint32_t grouped(const onx_value *w, int64_t group, int64_t dims[ONX_RANK_MAX])
{
    uint32_t at = 0;
    if (group > 1)
        dims[at++] = group;
    dims[at++] = w->dims[0] / group;
    for (uint32_t i = 1; i < w->rank; i++)
        dims[at++] = w->dims[i];
    return at;
}

static bool read_transpose(onx_prepare *p, onxi_dnnl_conv *c, int64_t *group)
{
    const onx_value *y = p->inputs[0], *w = p->inputs[1], *x = p->outputs[0];
    onxi_window win;
    uint32_t count;
    *group = onx_prepare_int(p, "group");
    if (y->rank < 3 || y->rank > 5 || !is_float(y, y->rank) || !is_float(w, y->rank) || !is_float(x, y->rank) ||
        (p->input_count > 2 && p->inputs[2]) || onx_prepare_ints(p, "output_shape", &count) ||
        !onx_str_is(onx_prepare_text(p, "auto_pad"), "NOTSET") || *group < 1 || w->dims[0] % *group ||
        (*group > 1 && !w->data) || y->dims[1] != w->dims[0] || x->dims[1] != w->dims[1] * *group ||
        x->dims[0] != y->dims[0] || onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    return fit_window(x->dims + 2, w->dims + 2, y->dims + 2, &win, false, c);
}

static onx_status transpose_kind(onx_prepare *p, bool direct)
{
    onxi_dnnl_conv c = { .b = NULL };
    int64_t group, dims[ONX_RANK_MAX];
    dnnl_primitive_attr_t attr;
    if (!p->want || !read_transpose(p, &c, &group))
        return ONX_E_UNSUPPORTED;
    const onx_value *y = p->inputs[0], *w = p->inputs[1], *x = p->outputs[0];
    const onx_layout *x_layout, *y_layout, *w_layout = NULL;
    onxi_dnnl *d = onxi_dnnl_new(p, 4, x->count * (w->count / (uint64_t)w->dims[1]));
    if (!d)
        return ONX_E_UNSUPPORTED;
    d->direct = direct;
    const uint32_t rank = grouped(w, group, dims);
    onxi_dnnl_md w_plain = onxi_dnnl_md_plain(d, rank, dims);
    c.w = onxi_dnnl_md_any(d, rank, dims);
    if (!w_plain || !onxi_dnnl_attr(d, &attr))
        return onxi_dnnl_decline(d);
    bool good = (is_channels_last(y) && describe_as(d, &c, x, y, true, onxi_dnnl_describe_conv_x, attr)) ||
                describe_as(d, &c, x, y, false, onxi_dnnl_describe_conv_x, attr);
    uint64_t x_step = 0, y_step = 0;
    onxi_dnnl_conv part[2];
    if (good) {
        c.x = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_diff_src_md, 0));
        c.y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_diff_dst_md, 0));
        c.w = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_weights_md, 0));
        part[0] = part[1] = c;
        good = c.x && c.y && c.w && onxi_dnnl_layout(p, d, x, c.x, &x_layout) &&
               onxi_dnnl_layout(p, d, y, c.y, &y_layout) && (w->data || onxi_dnnl_layout(p, d, w, c.w, &w_layout));
    }
    const onxi_dnnl_cut cut = onxi_dnnl_cut_of(d, y->dims[0], 1);
    if (good && !cut_batch(d, &cut, x, y, onxi_dnnl_describe_conv_x, part, attr, &x_step, &y_step))
        x_step = y_step = 0;
    d->lib->dnnl_primitive_attr_destroy(attr);
    if (good && w->data)
        good = onxi_dnnl_add_constant(p, d, DNNL_ARG_WEIGHTS, 1, onxi_dnnl_both(w_plain), 0, onxi_dnnl_both(c.w));
    else if (good)
        onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_INPUT, 1, onxi_dnnl_both(c.w), 0);
    if (!good)
        return onxi_dnnl_decline(d);
    onxi_dnnl_add(d, DNNL_ARG_DIFF_DST, ONXI_DNNL_INPUT, 0, (onxi_dnnl_pair){ part[0].y, part[1].y }, y_step);
    onxi_dnnl_add(d, DNNL_ARG_DIFF_SRC, ONXI_DNNL_OUTPUT, 0, (onxi_dnnl_pair){ part[0].x, part[1].x }, x_step);
    ONX_TRY(onxi_dnnl_finish(p, d));
    p->want[0] = y_layout;
    p->want[1] = w_layout;
    p->outputs[0]->layout = x_layout;
    return ONX_OK;
}

static onx_status direct_prepare(onx_prepare *p)
{
    return transpose_kind(p, true);
}

static onx_status transpose_prepare(onx_prepare *p)
{
    return transpose_kind(p, false);
}

/* ---- Conv ---- */

/* The gradient is summed over a fixed number of parts of the batch, so that the bits do not depend on the number of
 * threads. */
enum { PARTS = 4 };

static bool describe_parts(onxi_dnnl *d, onxi_dnnl_conv part[2], const onx_value *x, const onx_value *y,
                           dnnl_primitive_attr_t attr, uint64_t *x_step, uint64_t *y_step)
{
    const int64_t parts = x->dims[0] < PARTS ? x->dims[0] : PARTS, each = (x->dims[0] + parts - 1) / parts;
    const int64_t count = (x->dims[0] + each - 1) / each;
    const onxi_dnnl_cut cut = { (uint32_t)count, each, x->dims[0] - each * (count - 1) };
    return cut_batch(d, &cut, x, y, onxi_dnnl_describe_conv_w, part, attr, x_step, y_step);
}

/* Recognizes the gradient of weights: the weights are not constant and the windows are larger than the output.
 * Describes the convolution whose operands x, y and weights w are the operands of the node with the first two axes
 * (batch and channels) exchanged. */
static bool read_weights(onx_prepare *p, onxi_dnnl_turned *x, onxi_dnnl_turned *y, onxi_dnnl_turned *w,
                         onxi_dnnl_conv *c, bool *padded)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *o = p->outputs[0];
    onxi_window win;
    if (!p->want || a->rank < 3 || a->rank > 5 || !is_float(a, a->rank) || !is_float(b, a->rank) || b->data ||
        !is_float(o, a->rank) || (p->input_count > 2 && p->inputs[2]) || onx_prepare_int(p, "group") != 1 ||
        a->dims[1] != b->dims[1] || onxi_product(b->dims, 2, b->rank) <= onxi_product(o->dims, 2, o->rank) ||
        onxi_window_make(p, b->dims + 2, &win) != ONX_OK)
        return false;
    *padded = false;
    for (uint32_t i = 0; i < win.spatial; i++)
        *padded |= win.pad[i] || win.pad_end[i];
    return onxi_dnnl_turn(p->arena, a, x) && onxi_dnnl_turn(p->arena, b, y) && onxi_dnnl_turn(p->arena, o, w) &&
           !(*padded && p->nonfinite) && fit_window(x->dims + 2, w->dims + 2, y->dims + 2, &win, true, c);
}

/* The layout of a value, from the description of that value with its first two axes exchanged. */
static bool turned_layout(onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_turned *t, const onx_value *v, onxi_dnnl_md md,
                          const onx_layout **out)
{
    const onx_layout *inner;
    return onxi_dnnl_layout(p, d, &t->v, md, &inner) && onxi_dnnl_swapped(p->arena, v, inner, out);
}

static onx_status weights_prepare(onx_prepare *p)
{
    onxi_dnnl_conv c = { .b = NULL }, part[2];
    onxi_dnnl_turned x, y, w;
    dnnl_primitive_attr_t attr;
    bool padded;
    if (!read_weights(p, &x, &y, &w, &c, &padded))
        return ONX_E_UNSUPPORTED;
    const onx_layout *layouts[3];
    onxi_dnnl *d = onxi_dnnl_new(p, 4, y.v.count * (w.v.count / (uint64_t)w.dims[0]));
    if (!d)
        return ONX_E_UNSUPPORTED;
    c.w = onxi_dnnl_md_any(d, w.v.rank, w.dims);
    if (!onxi_dnnl_attr(d, &attr))
        return onxi_dnnl_decline(d);
    bool good = (is_channels_last(&x.v) && is_channels_last(&y.v) &&
                 describe_as(d, &c, &x.v, &y.v, true, onxi_dnnl_describe_conv_w, attr)) ||
                describe_as(d, &c, &x.v, &y.v, false, onxi_dnnl_describe_conv_w, attr);
    uint64_t x_step = 0, y_step = 0, size = 0;
    if (good) {
        c.x = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_src_md, 0));
        c.y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_diff_dst_md, 0));
        c.w = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_diff_weights_md, 0));
        part[0] = part[1] = c;
        good = c.x && c.y && c.w && turned_layout(p, d, &x, p->inputs[0], c.x, &layouts[0]) &&
               turned_layout(p, d, &y, p->inputs[1], c.y, &layouts[1]) &&
               turned_layout(p, d, &w, p->outputs[0], c.w, &layouts[2]);
    }
    if (good && !describe_parts(d, part, &x.v, &y.v, attr, &x_step, &y_step))
        x_step = y_step = 0;
    d->lib->dnnl_primitive_attr_destroy(attr);
    if (!good)
        return onxi_dnnl_decline(d);
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, (onxi_dnnl_pair){ part[0].x, part[1].x }, x_step);
    onxi_dnnl_add(d, DNNL_ARG_DIFF_DST, ONXI_DNNL_INPUT, 1, (onxi_dnnl_pair){ part[0].y, part[1].y }, y_step);
    size = (d->lib->dnnl_memory_desc_get_size(c.w) + 63u) & ~(uint64_t)63u;
    onxi_dnnl_add(d, DNNL_ARG_DIFF_WEIGHTS, d->cut.parts > 1 ? ONXI_DNNL_PARTIAL : ONXI_DNNL_OUTPUT, 0,
                  onxi_dnnl_both(c.w), d->cut.parts > 1 ? size : 0);
    if (d->cut.parts > 1 && !onxi_mul_u64(size, d->cut.parts, &p->workspace))
        return onxi_dnnl_decline(d);
    d->finite = padded ? 2 : 0; /* oneDNN skips padding */
    ONX_TRY(onxi_dnnl_finish(p, d));
    p->want[0] = layouts[0];
    p->want[1] = layouts[1];
    p->outputs[0]->layout = layouts[2];
    return ONX_OK;
}

/* Cases that oneDNN computes by a matrix product are offered to our own rows between these two (simd/unfold.c,
 * simd/spread.c): the first such product of a process takes 40 to 100 ms, because oneDNN generates code. */
const onx_kernel onxi_kernels_dnnl_conv_gradient[] = {
    ONXI_DNNL_ROW("ConvTranspose", 1, 0, ONXI_DNNL_WEIGHTS, direct_prepare),
    ONXI_DNNL_ROW_AT(5, "ConvTranspose", 1, 0, ONXI_DNNL_WEIGHTS, transpose_prepare),
    ONXI_DNNL_ROW("Conv", 1, 0, ONXI_DNNL_WEIGHTS, weights_prepare),
    { 0 }
};
#endif
