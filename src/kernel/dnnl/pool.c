/* pool.c - pooling and Concat by oneDNN, in any layout of the inputs. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

static const int kind_max = dnnl_pooling_max, kind_average = dnnl_pooling_avg_exclude_padding;

static bool global_window(const onx_value *x, onxi_dnnl_pool *q)
{
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        q->strides[i] = 1;
        q->kernel[i] = x->dims[i + 2];
        q->pad[i] = q->pad_end[i] = 0;
    }
    return true;
}

static bool given_window(onx_prepare *p, onxi_dnnl_pool *q)
{
    onxi_window w;
    if (onxi_window_make(p, NULL, &w) != ONX_OK)
        return false;
    bool exact = true;
    for (uint32_t i = 0; i < w.spatial; i++) {
        int64_t behind = (w.out[i] - 1) * w.stride[i] + w.kernel[i] - w.in[i] - w.pad[i];
        if (w.dilation[i] != 1 || w.pad[i] < 0 || w.pad[i] >= w.kernel[i] || behind >= w.kernel[i] || w.out[i] <= 0)
            return false;
        exact &= behind <= w.pad_end[i];
        q->strides[i] = w.stride[i];
        q->kernel[i] = w.kernel[i];
        q->pad[i] = w.pad[i];
        q->pad_end[i] = behind > 0 ? behind : 0;
        if (behind < 0) /* the windows do not reach the end of the input: described as padding that they do not reach */
            q->pad_end[i] = w.pad_end[i] > 0 ? w.pad_end[i] : 0;
        if ((w.in[i] + q->pad[i] + q->pad_end[i] - w.kernel[i]) / w.stride[i] + 1 != w.out[i])
            return false;
    }
    if (q->kind == dnnl_pooling_avg_exclude_padding && onx_prepare_is_set(p, "count_include_pad")) {
        if (!exact)
            return false;
        q->kind = dnnl_pooling_avg_include_padding;
    }
    return true;
}

static bool describe(const onxi_dnnl *d, const onxi_dnnl_pool *q, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    if (!q->x || !q->y || !onxi_dnnl_attr(d, &attr))
        return false;
    bool good = onxi_dnnl_describe_pool(d, q, attr, out);
    d->lib->dnnl_primitive_attr_destroy(attr);
    return good;
}

/* Divides by images, by channels of one image, or by rows if channels are last. */
static bool cut_pool(const onx_prepare *p, onxi_dnnl *d, onxi_dnnl_pool q[2], uint64_t *x_step, uint64_t *y_step)
{
    enum { BLOCK = 16 };
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    uint32_t axis = x->dims[0] == 1 ? 1 : 0;
    onxi_dnnl_cut cut = onxi_dnnl_cut_of(d, x->dims[axis], axis ? BLOCK : 1);
    onxi_dnnl_rows rows = { .x = { q[0].x, NULL },
                            .y = { q[0].y, NULL },
                            .stride = q[0].strides[0],
                            .window = q[0].kernel[0],
                            .above = q[0].pad[0],
                            .below = q[0].pad_end[0] };
    dnnl_primitive_desc_t desc[2] = { NULL, NULL };
    onxi_dnnl_pool part[2] = { q[0], q[0] };
    if (cut.parts >= 2 && onxi_dnnl_cut_md(d, &cut, q[0].x, x, axis, 1, &rows.x, x_step) &&
        onxi_dnnl_cut_md(d, &cut, q[0].y, y, axis, 1, &rows.y, y_step)) {
        rows.halo = false;
    } else {
        rows.x.each = q[0].x;
        if (!onxi_dnnl_cut_rows(d, x, y, &rows))
            return false;
        cut = rows.cut;
        *x_step = rows.x_step;
        *y_step = rows.y_step;
    }
    if (rows.halo) {
        part[0].pad_end[0] = part[1].pad[0] = 0;
        part[1].pad_end[0] = rows.below;
    }
    part[0].x = rows.x.each;
    part[0].y = rows.y.each;
    part[1].x = rows.x.last;
    part[1].y = rows.y.last;
    if (!describe(d, &part[0], &desc[0]))
        return false;
    if ((cut.last != cut.each || rows.halo) && !describe(d, &part[1], &desc[1])) {
        d->lib->dnnl_primitive_desc_destroy(desc[0]);
        return false;
    }
    d->lib->dnnl_primitive_desc_destroy(d->desc[0]);
    memcpy(d->desc, desc, sizeof desc);
    memcpy(q, part, sizeof part);
    d->cut = cut;
    return true;
}

static onx_status pool_prepare_kind(onx_prepare *p, bool global)
{
    const onx_value *x = p->inputs[0];
    const onx_value *y = p->outputs[0];
    onxi_dnnl_pool q[2] = { { .kind = (dnnl_alg_kind_t) * (const int *)p->kernel->body } };
    const bool max = q[0].kind == dnnl_pooling_max;
    if ((p->nonfinite && max) || !p->want || p->output_count != 1 || x->rank < 3 || x->rank > 5 || !y->count ||
        !x->count || !(global ? global_window(x, &q[0]) : given_window(p, &q[0])))
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, 4, x->count);
    const onx_layout *layout;
    uint64_t x_step = 0, y_step = 0;
    if (!d)
        return ONX_E_UNSUPPORTED;
    d->loses_nan = d->loses_infinity = max;
    q[0].x = onxi_dnnl_md_of(d, x);
    q[0].y = onxi_dnnl_md_any(d, y->rank, y->dims);
    if (!describe(d, &q[0], &d->desc[0]))
        return onxi_dnnl_decline(d);
    q[0].y = onxi_dnnl_md_keep(d, d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_dst_md, 0));
    q[1] = q[0];
    if (!q[0].y || !onxi_dnnl_layout(p, d, y, q[0].y, &layout))
        return onxi_dnnl_decline(d);
    if (!cut_pool(p, d, q, &x_step, &y_step))
        x_step = y_step = 0;
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, (onxi_dnnl_pair){ q[0].x, q[1].x }, x_step);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, (onxi_dnnl_pair){ q[0].y, q[1].y }, y_step);
    ONX_TRY(onxi_dnnl_finish(p, d));
    p->outputs[0]->layout = layout;
    return ONX_OK;
}

static onx_status pool_prepare(onx_prepare *p)
{
    return pool_prepare_kind(p, false);
}
static onx_status global_prepare(onx_prepare *p)
{
    return pool_prepare_kind(p, true);
}

/* ---- Concat ---- */

enum { CONCAT_MAX = 64 };

static onx_status concat_prepare(onx_prepare *p)
{
    onx_value *y = p->outputs[0];
    onxi_dnnl_md sources[CONCAT_MAX];
    uint32_t axis;
    bool blocked = false;
    if (!p->want || p->input_count < 2 || p->input_count > CONCAT_MAX || !y->count || !y->rank ||
        onx_prepare_axis(p, onx_prepare_int(p, "axis"), y->rank, &axis) != ONX_OK)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < p->input_count; i++) {
        if (!p->inputs[i] || !p->inputs[i]->count)
            return ONX_E_UNSUPPORTED;
        blocked |= p->inputs[i]->layout != NULL;
    }
    if (!blocked) /* the plain kernel copies row-major rows as fast */
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, p->input_count + 2, 0);
    dnnl_primitive_attr_t attr;
    const onx_layout *layout;
    if (!d || !onxi_dnnl_attr(d, &attr))
        return onxi_dnnl_decline(d);
    bool good = true;
    for (uint32_t i = 0; i < p->input_count && good; i++)
        good = (sources[i] = onxi_dnnl_md_of(d, p->inputs[i])) != NULL;
    good = good && onxi_dnnl_describe_concat(d, sources, p->input_count, axis, attr, &d->desc[0]);
    d->lib->dnnl_primitive_attr_destroy(attr);
    if (!good)
        return onxi_dnnl_decline(d);
    onxi_dnnl_md md = d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_dst_md, 0);
    if (!onxi_dnnl_layout(p, d, y, md, &layout))
        return onxi_dnnl_decline(d);
    for (uint32_t i = 0; i < p->input_count; i++)
        onxi_dnnl_add(d, DNNL_ARG_MULTIPLE_SRC + (int)i, ONXI_DNNL_INPUT, i, onxi_dnnl_both(sources[i]), 0);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, onxi_dnnl_both(md), 0);
    ONX_TRY(onxi_dnnl_finish(p, d));
    y->layout = layout;
    return ONX_OK;
}

#define POOL_ROW(name, kind, prepare_)                                                                                 \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 10, .flags = ONX_KERNEL_LAYOUTS, .variant = "dnnl",  \
        .body = &kind, .prepare = prepare_, .run = onxi_dnnl_run, .bind = onxi_dnnl_bind, .unbind = onxi_dnnl_unbind,  \
        .release = onxi_dnnl_release                                                                                   \
    }

const onx_kernel onxi_kernels_dnnl_pool[] = {
    POOL_ROW("MaxPool", kind_max, pool_prepare),         POOL_ROW("AveragePool", kind_average, pool_prepare),
    POOL_ROW("GlobalMaxPool", kind_max, global_prepare), POOL_ROW("GlobalAveragePool", kind_average, global_prepare),
    ONXI_DNNL_ROW("Concat", 1, 0, 0, concat_prepare),    { 0 }
};
#endif
