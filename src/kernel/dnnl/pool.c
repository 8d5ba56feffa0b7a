/* pool.c - poolings and Concat on oneDNN, in whatever layout their inputs lie. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

static const int kind_max = dnnl_pooling_max, kind_average = dnnl_pooling_avg_exclude_padding;

typedef struct pool_dims {
    dnnl_dims_t strides, kernel, pad, pad_end;
} pool_dims;

static bool global_window(const onx_value *x, pool_dims *q)
{
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        q->strides[i] = 1;
        q->kernel[i] = x->dims[i + 2];
        q->pad[i] = q->pad_end[i] = 0;
    }
    return true;
}

static bool given_window(onx_prepare *p, pool_dims *q, dnnl_alg_kind_t *kind)
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
        if (behind < 0) /* what the windows leave out at the end: described as padding that is there but not reached */
            q->pad_end[i] = w.pad_end[i] > 0 ? w.pad_end[i] : 0;
        if ((w.in[i] + q->pad[i] + q->pad_end[i] - w.kernel[i]) / w.stride[i] + 1 != w.out[i])
            return false;
    }
    if (*kind == dnnl_pooling_avg_exclude_padding && onx_prepare_int(p, "count_include_pad", 0) != 0) {
        if (!exact)
            return false;
        *kind = dnnl_pooling_avg_include_padding;
    }
    return true;
}

static onx_status pool_prepare_kind(onx_prepare *p, bool global)
{
    const onx_value *x = p->inputs[0];
    const onx_value *y = p->outputs[0];
    dnnl_memory_desc_t mx, my;
    pool_dims q = { 0 };
    dnnl_alg_kind_t kind = (dnnl_alg_kind_t) * (const int *)p->kernel->body;
    if (!p->want || p->output_count != 1 || x->rank < 3 || x->rank > 5 || !y->count || !x->count ||
        !onxi_dnnl_md_of(x, &mx) || !onxi_dnnl_md_any(y->rank, y->dims, &my) ||
        !(global ? global_window(x, &q) : given_window(p, &q, &kind)))
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, 4);
    dnnl_pooling_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_attr_t attr = NULL;
    bool good = d && dnnl_primitive_attr_create(&attr) == dnnl_success &&
                dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
                dnnl_pooling_forward_desc_init(&desc, dnnl_forward_inference, kind, &mx, &my, q.strides, q.kernel,
                                               q.pad, q.pad_end) == dnnl_success &&
                dnnl_primitive_desc_create(&pd, &desc, attr, d->engine, NULL) == dnnl_success;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    if (!good)
        return onxi_dnnl_decline(d);
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
    const onx_layout *layout;
    if (!onxi_dnnl_layout(p, md, &layout)) {
        dnnl_primitive_desc_destroy(pd);
        return onxi_dnnl_decline(d);
    }
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, NULL, &mx);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, NULL, md);
    ONX_TRY(onxi_dnnl_finish(p, d, pd));
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
    dnnl_memory_desc_t sources[CONCAT_MAX];
    uint32_t axis;
    bool blocked = false;
    if (!p->want || p->input_count < 2 || p->input_count > CONCAT_MAX || !y->count || !y->rank ||
        onx_prepare_axis(p, onx_prepare_int(p, "axis", 1), y->rank, &axis) != ONX_OK)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < p->input_count; i++) {
        if (!p->inputs[i] || !p->inputs[i]->count || !onxi_dnnl_md_of(p->inputs[i], &sources[i]))
            return ONX_E_UNSUPPORTED;
        blocked |= p->inputs[i]->layout != NULL;
    }
    if (!blocked) /* rows as they are: the plain kernel copies them no slower */
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, p->input_count + 2);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_attr_t attr = NULL;
    bool good = d && dnnl_primitive_attr_create(&attr) == dnnl_success &&
                dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
                dnnl_concat_primitive_desc_create(&pd, NULL, (int)p->input_count, (int)axis, sources, attr,
                                                  d->engine) == dnnl_success;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    if (!good)
        return onxi_dnnl_decline(d);
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
    const onx_layout *layout;
    if (!onxi_dnnl_layout(p, md, &layout)) {
        dnnl_primitive_desc_destroy(pd);
        return onxi_dnnl_decline(d);
    }
    for (uint32_t i = 0; i < p->input_count; i++)
        onxi_dnnl_add(d, DNNL_ARG_MULTIPLE_SRC + (int)i, ONXI_DNNL_INPUT, i, NULL, &sources[i]);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, NULL, md);
    ONX_TRY(onxi_dnnl_finish(p, d, pd));
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
    ONXI_DNNL_ROW("Concat", 1, 0, concat_prepare),       { 0 }
};
#endif
