/* matmul.c - Gemm and MatMul on oneDNN: by constant weights as an inner product with packed weights, else
 * as a matrix product. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

typedef struct product {
    int64_t m, n, k;
    bool trans_b;  /* the weights are n x k already */
    uint32_t bias; /* input, 0: none */
    dnnl_memory_desc_t x, w, w_plain, b, y;
} product;

static bool make_desc(const product *q, dnnl_engine_t engine, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    dnnl_inner_product_desc_t desc;
    return dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, &q->x, &q->w, q->bias ? &q->b : NULL,
                                                &q->y) == dnnl_success &&
           dnnl_primitive_desc_create(out, &desc, attr, engine, NULL) == dnnl_success;
}

static onx_status inner_product(onx_prepare *p, product *q)
{
    int64_t x[] = { q->m, q->k }, w[] = { q->n, q->k }, y[] = { q->m, q->n };
    dnnl_dims_t wd = { q->n, q->k }, steps = { q->trans_b ? q->k : 1, q->trans_b ? 1 : q->n };
    if (!onxi_dnnl_md_plain(2, x, &q->x) || !onxi_dnnl_md_plain(2, y, &q->y) || !onxi_dnnl_md_any(2, w, &q->w) ||
        !onxi_dnnl_md_plain(1, w, &q->b) ||
        dnnl_memory_desc_init_by_strides(&q->w_plain, 2, wd, dnnl_f32, steps) != dnnl_success)
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, 8);
    onxi_dnnl_post post;
    dnnl_primitive_desc_t desc = NULL;
    if (!d || !onxi_dnnl_post_make(p, &q->y, &post))
        return onxi_dnnl_decline(d);
    bool good = make_desc(q, d->engine, post.attr, &desc);
    dnnl_primitive_attr_destroy(post.attr);
    const void *weights;
    const dnnl_memory_desc_t *md = good ? dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0) : NULL;
    if (!good || onxi_dnnl_pack(p, 1, &q->w_plain, md, &weights) != ONX_OK) {
        if (desc)
            dnnl_primitive_desc_destroy(desc);
        return onxi_dnnl_decline(d);
    }
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, NULL, &q->x);
    onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_CONSTANT, 1, weights, md);
    if (q->bias)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, q->bias, NULL, &q->b);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, NULL, &q->y);
    ONX_TRY(onxi_dnnl_finish(p, d, desc));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    onxi_dnnl_post_apply(p, d, &post, NULL, &q->y);
    return ONX_OK;
}

static onx_status gemm_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *c = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    if (!p->want || !b->data || a->rank != 2 || b->rank != 2 || !y || !y->count || b->dtype != ONX_FLOAT ||
        onx_prepare_float(p, "alpha", 1) != 1 || onx_prepare_int(p, "transA", 0) != 0)
        return ONX_E_UNSUPPORTED;
    product q = { .m = y->dims[0], .n = y->dims[1], .k = a->dims[1], .trans_b = onx_prepare_int(p, "transB", 0) != 0 };
    if (q.k <= 0 || b->dims[q.trans_b ? 1 : 0] != q.k || b->dims[q.trans_b ? 0 : 1] != q.n)
        return ONX_E_UNSUPPORTED;
    if (c) {
        bool row = c->rank > 0 && c->dims[c->rank - 1] == q.n && c->count == (uint64_t)q.n && c->dtype == ONX_FLOAT;
        if (!row || onx_prepare_float(p, "beta", 1) != 1)
            return ONX_E_UNSUPPORTED;
        q.bias = 2;
    }
    return inner_product(p, &q);
}

/* Two values of the run: leading dims as batch. */
static onx_status general_product(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1];
    onx_value *y = p->outputs[0];
    uint32_t rank = y->rank;
    int64_t da[ONX_RANK_MAX], db[ONX_RANK_MAX];
    if (a->rank < 2 || b->rank < 2 || rank < 2 || rank > 6 || !y->count || b->dtype != ONX_FLOAT || !a->count)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < rank; i++) {
        da[i] = i + a->rank >= rank ? a->dims[i + a->rank - rank] : 1;
        db[i] = i + b->rank >= rank ? b->dims[i + b->rank - rank] : 1;
    }
    dnnl_memory_desc_t ma, mb, my;
    onxi_dnnl *d = onxi_dnnl_new(p, 8);
    onxi_dnnl_post post;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    if (!d || !onxi_dnnl_md_plain(rank, da, &ma) || !onxi_dnnl_md_plain(rank, db, &mb) ||
        !onxi_dnnl_md_plain(rank, y->dims, &my) || !onxi_dnnl_post_make(p, &my, &post))
        return onxi_dnnl_decline(d);
    bool good = dnnl_matmul_desc_init(&desc, &ma, &mb, NULL, &my) == dnnl_success &&
                dnnl_primitive_desc_create(&pd, &desc, post.attr, d->engine, NULL) == dnnl_success;
    dnnl_primitive_attr_destroy(post.attr);
    if (!good)
        return onxi_dnnl_decline(d);
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, NULL, &ma);
    onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_INPUT, 1, NULL, &mb);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, NULL, &my);
    ONX_TRY(onxi_dnnl_finish(p, d, pd));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    onxi_dnnl_post_apply(p, d, &post, NULL, &my);
    return ONX_OK;
}

static onx_status matmul_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1];
    const onx_value *y = p->outputs[0];
    if (!p->want || !y || !y->count || b->dtype != ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    if (!b->data || b->rank != 2 || a->rank < 1)
        return general_product(p);
    product q = { .n = b->dims[1], .k = b->dims[0] };
    if (q.k <= 0 || q.n <= 0 || a->dims[a->rank - 1] != q.k)
        return ONX_E_UNSUPPORTED;
    q.m = (int64_t)(a->count / (uint64_t)q.k);
    for (uint32_t i = 0; i < p->post_op_count; i++) /* bias and result are described as matrices */
        if (p->post_ops[i].operand >= 0 && y->rank != 2)
            p->post_op_count = i;
    return inner_product(p, &q);
}

const onx_kernel onxi_kernels_dnnl_matmul[] = { ONXI_DNNL_ROW("Gemm", 1, ONX_KERNEL_POST_OPS, gemm_prepare),
                                                ONXI_DNNL_ROW("MatMul", 1, ONX_KERNEL_POST_OPS, matmul_prepare),
                                                { 0 } };
#endif
