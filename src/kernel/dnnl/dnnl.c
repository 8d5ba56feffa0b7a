/* dnnl.c - primitives of oneDNN as kernels: binding operands, running, changes of layout, post_ops. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL
#include <math.h>
#include <stdlib.h>

/* ---- making ---- */

onxi_dnnl *onxi_dnnl_new(onx_prepare *p, uint32_t operands)
{
    onxi_dnnl *d = ONXI_NEW(p->arena, onxi_dnnl);
    if (!d || !(d->operands = ONXI_ARRAY(p->arena, onxi_dnnl_operand, operands + 1u)))
        return NULL;
    d->room = operands + 1u;
    if (dnnl_engine_create(&d->engine, dnnl_cpu, 0) != dnnl_success)
        return NULL;
    return d;
}

void onxi_dnnl_release(void *params)
{
    onxi_dnnl *d = params;
    if (d->primitive)
        dnnl_primitive_destroy(d->primitive);
    if (d->desc)
        dnnl_primitive_desc_destroy(d->desc);
    if (d->engine)
        dnnl_engine_destroy(d->engine);
    d->primitive = NULL;
    d->desc = NULL;
    d->engine = NULL;
}

onx_status onxi_dnnl_decline(onxi_dnnl *d)
{
    if (d)
        onxi_dnnl_release(d);
    return ONX_E_UNSUPPORTED;
}

void onxi_dnnl_add(onxi_dnnl *d, int arg, onxi_dnnl_source source, uint32_t index, const void *data,
                   const dnnl_memory_desc_t *md)
{
    if (d->count < d->room)
        d->operands[d->count++] = (onxi_dnnl_operand){ arg, source, index, data, *md };
}

onx_status onxi_dnnl_finish(onx_prepare *p, onxi_dnnl *d, dnnl_primitive_desc_t desc)
{
    d->desc = desc;
    if (dnnl_primitive_create(&d->primitive, desc) != dnnl_success)
        return onxi_dnnl_decline(d);
    const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    size_t size = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    if (size) {
        p->workspace = size;
        onxi_dnnl_add(d, DNNL_ARG_SCRATCHPAD, ONXI_DNNL_WORKSPACE, 0, NULL, scratch);
    }
    p->params = d;
    p->rows = 1; /* the primitive brings its own threads */
    return ONX_OK;
}

/* ---- layouts ---- */

typedef struct dnnl_layout {
    onx_layout layout;
    dnnl_memory_desc_t md;
} dnnl_layout;

static bool layouts_equal(const onx_layout *a, const onx_layout *b)
{
    return dnnl_memory_desc_equal(&((const dnnl_layout *)(const void *)a)->md,
                                  &((const dnnl_layout *)(const void *)b)->md);
}

static onx_status reorder_prepare(onx_prepare *p);
static const onx_kernel reorder = { .op = "Reorder",
                                    .variant = "dnnl",
                                    .prepare = reorder_prepare,
                                    .run = onxi_dnnl_run,
                                    .bind = onxi_dnnl_bind,
                                    .unbind = onxi_dnnl_unbind,
                                    .release = onxi_dnnl_release };
static const onx_layout_ops layout_ops = { layouts_equal, &reorder };

bool onxi_dnnl_md_plain(uint32_t rank, const int64_t *dims, dnnl_memory_desc_t *md)
{
    dnnl_dims_t d, strides;
    int64_t step = 1;
    if (!rank || rank > DNNL_MAX_NDIMS)
        return false;
    for (uint32_t i = rank; i-- > 0;) {
        d[i] = dims[i];
        strides[i] = step;
        step *= dims[i];
    }
    return step > 0 && dnnl_memory_desc_init_by_strides(md, (int)rank, d, dnnl_f32, strides) == dnnl_success;
}

bool onxi_dnnl_md_any(uint32_t rank, const int64_t *dims, dnnl_memory_desc_t *md)
{
    dnnl_dims_t d;
    if (!rank || rank > DNNL_MAX_NDIMS)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        d[i] = dims[i];
        if (dims[i] <= 0)
            return false;
    }
    return dnnl_memory_desc_init_by_tag(md, (int)rank, d, dnnl_f32, dnnl_format_tag_any) == dnnl_success;
}

bool onxi_dnnl_md_of(const onx_value *v, dnnl_memory_desc_t *md)
{
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT)
        return false;
    if (!v->layout)
        return onxi_dnnl_md_plain(v->rank, v->dims, md);
    if (v->layout->ops != &layout_ops)
        return false;
    *md = ((const dnnl_layout *)(const void *)v->layout)->md;
    return true;
}

bool onxi_dnnl_layout(onx_prepare *p, const dnnl_memory_desc_t *md, const onx_layout **out)
{
    dnnl_memory_desc_t plain;
    *out = NULL;
    if (onxi_dnnl_md_plain((uint32_t)md->ndims, md->dims, &plain) && dnnl_memory_desc_equal(&plain, md))
        return true;
    dnnl_layout *l = ONXI_NEW(p->arena, dnnl_layout);
    if (!l)
        return false;
    l->layout = (onx_layout){ &layout_ops, dnnl_memory_desc_get_size(md) };
    l->md = *md;
    *out = &l->layout;
    return true;
}

static bool reorder_desc(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, dnnl_engine_t engine,
                         dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success)
        return false;
    bool good = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
                dnnl_reorder_primitive_desc_create(out, from, engine, to, engine, attr) == dnnl_success;
    dnnl_primitive_attr_destroy(attr);
    return good;
}

static onx_status reorder_prepare(onx_prepare *p)
{
    dnnl_memory_desc_t from, to;
    dnnl_primitive_desc_t desc;
    onxi_dnnl *d = onxi_dnnl_new(p, 3);
    if (!d || !onxi_dnnl_md_of(p->inputs[0], &from) || !onxi_dnnl_md_of(p->outputs[0], &to) ||
        !reorder_desc(&from, &to, d->engine, &desc)) {
        onxi_dnnl_decline(d);
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a layout cannot be changed");
    }
    onxi_dnnl_add(d, DNNL_ARG_FROM, ONXI_DNNL_INPUT, 0, NULL, &from);
    onxi_dnnl_add(d, DNNL_ARG_TO, ONXI_DNNL_OUTPUT, 0, NULL, &to);
    return onxi_dnnl_finish(p, d, desc);
}

/* ---- running ---- */

typedef struct dnnl_state {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint32_t count;
    void **data; /* where each operand was last */
    dnnl_exec_arg_t args[];
} dnnl_state;

static void *operand_data(const onx_work *work, const onxi_dnnl_operand *o)
{
    switch (o->source) {
    case ONXI_DNNL_INPUT:
        return work->inputs[o->index]->data;
    case ONXI_DNNL_OUTPUT:
        return work->outputs[o->index]->data;
    case ONXI_DNNL_CONSTANT:
        return (void *)(uintptr_t)o->data;
    default:
        return work->workspace;
    }
}

void onxi_dnnl_unbind(void *state)
{
    dnnl_state *s = state;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->args[i].memory)
            dnnl_memory_destroy(s->args[i].memory);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    free(s->data);
    free(s);
}

onx_status onxi_dnnl_bind(onx_work *work)
{
    const onxi_dnnl *d = work->params;
    dnnl_state *s = calloc(1, sizeof *s + d->count * sizeof *s->args);
    if (!s || !(s->data = calloc(d->count + 1u, sizeof *s->data))) {
        free(s);
        return ONX_E_MEMORY;
    }
    work->state = s;
    s->count = d->count;
    bool good = dnnl_stream_create(&s->stream, d->engine, dnnl_stream_default_flags) == dnnl_success;
    for (uint32_t i = 0; i < d->count && good; i++) {
        s->args[i].arg = d->operands[i].arg;
        s->data[i] = operand_data(work, &d->operands[i]);
        good = dnnl_memory_create(&s->args[i].memory, &d->operands[i].md, d->engine, s->data[i]) == dnnl_success;
    }
    return good ? ONX_OK : onx_work_fail(work, ONX_E_MEMORY, "oneDNN cannot bind an operand");
}

onx_status onxi_dnnl_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onxi_dnnl *d = work->params;
    dnnl_state *s = work->state;
    for (uint32_t i = 0; i < d->count; i++) { /* only inputs of the caller move */
        void *data = operand_data(work, &d->operands[i]);
        if (data == s->data[i])
            continue;
        if (dnnl_memory_set_data_handle(s->args[i].memory, data) != dnnl_success)
            return onx_work_fail(work, ONX_E_INVALID, "oneDNN cannot bind an operand");
        s->data[i] = data;
    }
    if (dnnl_primitive_execute(d->primitive, s->stream, (int)s->count, s->args) != dnnl_success ||
        dnnl_stream_wait(s->stream) != dnnl_success)
        return onx_work_fail(work, ONX_E_INVALID, "oneDNN cannot run the primitive");
    return ONX_OK;
}

/* ---- packing ---- */

typedef struct packing {
    const void *from;
    const dnnl_memory_desc_t *from_md, *to_md;
} packing;

static onx_status pack(void *user, void *out)
{
    const packing *q = user;
    dnnl_engine_t engine = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    bool good = dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success &&
                dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success &&
                dnnl_memory_create(&from, q->from_md, engine, (void *)(uintptr_t)q->from) == dnnl_success &&
                dnnl_memory_create(&to, q->to_md, engine, out) == dnnl_success &&
                dnnl_reorder_primitive_desc_create(&desc, q->from_md, engine, q->to_md, engine, NULL) == dnnl_success &&
                dnnl_primitive_create(&primitive, desc) == dnnl_success;
    if (good) {
        dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
        good = dnnl_primitive_execute(primitive, stream, 2, args) == dnnl_success &&
               dnnl_stream_wait(stream) == dnnl_success;
    }
    if (primitive)
        dnnl_primitive_destroy(primitive);
    if (desc)
        dnnl_primitive_desc_destroy(desc);
    if (to)
        dnnl_memory_destroy(to);
    if (from)
        dnnl_memory_destroy(from);
    if (stream)
        dnnl_stream_destroy(stream);
    if (engine)
        dnnl_engine_destroy(engine);
    return good ? ONX_OK : ONX_E_UNSUPPORTED;
}

onx_status onxi_dnnl_pack(onx_prepare *p, uint32_t input, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                          const void **out)
{
    packing q = { p->inputs[input]->data, from, to };
    if (dnnl_memory_desc_equal(from, to)) {
        *out = q.from;
        return ONX_OK;
    }
    return p->ops->packed(p, input, to, sizeof *to, dnnl_memory_desc_get_size(to), pack, &q, out);
}

/* ---- post-operations ---- */

static bool same_dims(const onx_value *a, const onx_value *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static bool bound_of(const onx_prepare *as, const char *name, uint32_t input, float otherwise, float *out)
{
    *out = otherwise;
    if (as->since < 11) {
        *out = onx_prepare_float(as, name, otherwise);
        return true;
    }
    const onx_value *v = input < as->input_count ? as->inputs[input] : NULL;
    if (v && (!v->data || v->dtype != ONX_FLOAT || v->count != 1))
        return false;
    if (v)
        *out = *(const float *)v->data;
    return true;
}

/* y = f(x) as oneDNN knows it. */
static bool eltwise_of(const onx_prepare *as, dnnl_alg_kind_t *kind, float *alpha, float *beta)
{
    onx_str op = onx_view(as->node->op_type);
    *alpha = *beta = 0;
    if (onx_str_is(op, "Relu")) {
        *kind = dnnl_eltwise_relu;
    } else if (onx_str_is(op, "LeakyRelu")) {
        *kind = dnnl_eltwise_relu;
        *alpha = onx_prepare_float(as, "alpha", 0.01f);
    } else if (onx_str_is(op, "Sigmoid")) {
        *kind = dnnl_eltwise_logistic;
    } else if (onx_str_is(op, "Tanh")) {
        *kind = dnnl_eltwise_tanh;
    } else if (onx_str_is(op, "HardSwish")) {
        *kind = dnnl_eltwise_hardswish;
    } else if (onx_str_is(op, "Clip")) {
        *kind = dnnl_eltwise_clip;
        return bound_of(as, "min", 1, -INFINITY, alpha) && bound_of(as, "max", 2, INFINITY, beta) && *alpha <= *beta;
    } else {
        return false;
    }
    return true;
}

static bool take_post_op(onx_prepare *p, const onx_post_op *f, const dnnl_memory_desc_t *dst, onxi_dnnl_post *post,
                         dnnl_post_ops_t ops)
{
    onx_str op = onx_view(f->prepare->node->op_type);
    dnnl_alg_kind_t kind;
    float alpha, beta;
    if (onx_view(f->prepare->node->domain).len)
        return false;
    if (eltwise_of(f->prepare, &kind, &alpha, &beta))
        return f->operand < 0 && dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, beta) == dnnl_success;
    bool adds = onx_str_is(op, "Add") || onx_str_is(op, "Sum");
    if (!adds || f->prepare->input_count != 2 || f->operand < 0 || !same_dims(p->inputs[f->operand], p->outputs[0]))
        return false;
    if (p->last_use[f->operand] && post->sum < 0 && post->binary < 0) {
        post->sum = f->operand;
        return dnnl_post_ops_append_sum(ops, 1) == dnnl_success;
    }
    if (!dst || post->binary >= 0)
        return false;
    post->binary = f->operand;
    post->binary_at = (uint32_t)dnnl_post_ops_len(ops);
    return dnnl_post_ops_append_binary(ops, dnnl_binary_add, dst) == dnnl_success;
}

bool onxi_dnnl_post_make(onx_prepare *p, const dnnl_memory_desc_t *dst, onxi_dnnl_post *post)
{
    dnnl_post_ops_t ops = NULL;
    *post = (onxi_dnnl_post){ .sum = -1, .binary = -1 };
    if (dnnl_primitive_attr_create(&post->attr) != dnnl_success)
        return false;
    bool good = dnnl_primitive_attr_set_scratchpad_mode(post->attr, dnnl_scratchpad_mode_user) == dnnl_success &&
                dnnl_post_ops_create(&ops) == dnnl_success;
    while (good && post->post_ops_done < p->post_op_count &&
           take_post_op(p, &p->post_ops[post->post_ops_done], dst, post, ops))
        post->post_ops_done++;
    good = good && dnnl_primitive_attr_set_post_ops(post->attr, ops) == dnnl_success;
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (!good)
        dnnl_primitive_attr_destroy(post->attr);
    return good;
}

void onxi_dnnl_post_apply(onx_prepare *p, onxi_dnnl *d, const onxi_dnnl_post *post, const onx_layout *layout,
                          const dnnl_memory_desc_t *dst)
{
    p->post_ops_done = post->post_ops_done;
    if (post->sum >= 0) {
        p->overwrite = post->sum;
        p->want[post->sum] = layout;
    }
    if (post->binary >= 0) {
        p->want[post->binary] = layout;
        onxi_dnnl_add(d, (int)DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)post->binary_at) | DNNL_ARG_SRC_1, ONXI_DNNL_INPUT,
                      (uint32_t)post->binary, NULL, dst);
    }
}
#endif
