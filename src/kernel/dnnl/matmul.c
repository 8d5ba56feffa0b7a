/* matmul.c - Gemm and MatMul on oneDNN: by constant weights as an inner product with packed weights, else
 * as a matrix product. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

typedef struct product {
    int64_t m, n, k;
    bool trans_b;  /* the weights are n x k already */
    uint32_t bias; /* input, 0: none */
} product;

typedef struct product_part {
    onxi_dnnl_md x, w, w_plain, b, y;
    uint64_t x_step, w_step, b_step, y_step;
} product_part;

/* Parts are rows of the result; of a single row, columns. */
static bool describe(const product *q, onxi_dnnl *d, product_part *s)
{
    bool columns = q->m == 1;
    int64_t parts = d->parts, m = columns ? 1 : q->m / parts, n = columns ? q->n / parts : q->n;
    const int64_t x[] = { m, q->k }, w[] = { n, q->k }, y[] = { m, n };
    const int64_t steps[] = { q->trans_b ? q->k : 1, q->trans_b ? 1 : q->n };
    *s = (product_part){ .x = onxi_dnnl_md_plain(d, 2, x),
                         .w = onxi_dnnl_md_any(d, 2, w),
                         .w_plain = onxi_dnnl_md_strides(d, 2, w, steps),
                         .b = onxi_dnnl_md_plain(d, 1, w),
                         .y = onxi_dnnl_md_plain(d, 2, y),
                         .y_step = (uint64_t)(m * n) * sizeof(float) };
    if (columns) {
        s->w_step = (uint64_t)(n * steps[0]) * sizeof(float);
        s->b_step = (uint64_t)n * sizeof(float);
    } else {
        s->x_step = (uint64_t)(m * q->k) * sizeof(float);
    }
    return s->x && s->w && s->w_plain && s->b && s->y;
}

static onx_status inner_product(onx_prepare *p, product *q)
{
    onxi_dnnl *d = onxi_dnnl_new(p, 8, (uint64_t)q->m * (uint64_t)q->n * (uint64_t)q->k);
    product_part s;
    onxi_dnnl_post post;
    dnnl_primitive_desc_t desc = NULL;
    if (!d)
        return ONX_E_UNSUPPORTED;
    d->parts = q->m == 1 ? onxi_dnnl_parts(d, q->n, 16) : onxi_dnnl_parts(d, q->m, 1);
    if (d->parts > 1)
        onxi_dnnl_use_threads(d, 1);
    if (!describe(q, d, &s) || !onxi_dnnl_post_make(p, d, s.y, &post))
        return onxi_dnnl_decline(d);
    bool good = onxi_dnnl_describe_inner_product(d, s.x, s.w, q->bias ? s.b : NULL, s.y, post.attr, &desc);
    d->lib->dnnl_primitive_attr_destroy(post.attr);
    onxi_dnnl_md w = good ? d->lib->dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0) : NULL;
    if (!good || !onxi_dnnl_add_constant(p, d, DNNL_ARG_WEIGHTS, 1, s.w_plain, s.w_step, w)) {
        if (desc)
            d->lib->dnnl_primitive_desc_destroy(desc);
        return onxi_dnnl_decline(d);
    }
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, s.x, s.x_step);
    if (q->bias)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, q->bias, s.b, s.b_step);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, s.y, s.y_step);
    ONX_TRY(onxi_dnnl_finish(p, d, desc));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    onxi_dnnl_post_apply(p, d, &post, NULL, s.y, s.y_step);
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

/* ---- two values of the run: leading dims as batch ---- */

typedef struct batch {
    uint32_t rank;
    int64_t a[ONX_RANK_MAX], b[ONX_RANK_MAX], y[ONX_RANK_MAX];
    uint64_t a_step, b_step, y_step; /* bytes from one part to the next */
} batch;

static bool batch_of(const onx_prepare *p, batch *q)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *y = p->outputs[0];
    q->rank = y->rank;
    if (a->rank < 2 || b->rank < 2 || y->rank < 2 || y->rank > 6 || a->rank > y->rank || b->rank > y->rank ||
        !y->count || b->dtype != ONX_FLOAT || !a->count)
        return false;
    for (uint32_t i = 0; i < q->rank; i++) {
        q->a[i] = i + a->rank >= q->rank ? a->dims[i + a->rank - q->rank] : 1;
        q->b[i] = i + b->rank >= q->rank ? b->dims[i + b->rank - q->rank] : 1;
        q->y[i] = y->dims[i];
    }
    return true;
}

/* Cuts the first dim that has an extent, which is one of the batch or the rows of one product. */
static void cut_batch(onxi_dnnl *d, batch *q)
{
    uint32_t axis = 0;
    while (axis + 2 < q->rank && q->y[axis] == 1)
        axis++;
    uint32_t parts = axis + 1 < q->rank ? onxi_dnnl_parts(d, q->y[axis], 1) : 1;
    if (parts < 2)
        return;
    d->parts = parts;
    onxi_dnnl_use_threads(d, 1);
    /* What is broadcast along the dim is needed by each part, and so is all of b where rows are cut. */
    bool rows = axis + 2 == q->rank, a_cut = q->a[axis] > 1, b_cut = !rows && q->b[axis] > 1;
    q->y[axis] /= parts;
    q->a[axis] /= a_cut ? parts : 1;
    q->b[axis] /= b_cut ? parts : 1;
    q->y_step = onxi_product(q->y, axis, q->rank) * sizeof(float);
    q->a_step = a_cut ? onxi_product(q->a, axis, q->rank) * sizeof(float) : 0;
    q->b_step = b_cut ? onxi_product(q->b, axis, q->rank) * sizeof(float) : 0;
}

static onx_status general_product(onx_prepare *p)
{
    batch q = { .rank = 0 };
    if (!batch_of(p, &q))
        return ONX_E_UNSUPPORTED;
    onxi_dnnl *d = onxi_dnnl_new(p, 8, p->outputs[0]->count * (uint64_t)q.a[q.rank - 1]);
    if (!d)
        return ONX_E_UNSUPPORTED;
    cut_batch(d, &q);
    onxi_dnnl_md a = onxi_dnnl_md_plain(d, q.rank, q.a), b = onxi_dnnl_md_plain(d, q.rank, q.b),
                 y = onxi_dnnl_md_plain(d, q.rank, q.y);
    onxi_dnnl_post post;
    dnnl_primitive_desc_t desc;
    if (!a || !b || !y || !onxi_dnnl_post_make(p, d, y, &post))
        return onxi_dnnl_decline(d);
    bool good = onxi_dnnl_describe_matmul(d, a, b, y, post.attr, &desc);
    d->lib->dnnl_primitive_attr_destroy(post.attr);
    if (!good)
        return onxi_dnnl_decline(d);
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, a, q.a_step);
    onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_INPUT, 1, b, q.b_step);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, y, q.y_step);
    ONX_TRY(onxi_dnnl_finish(p, d, desc));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    onxi_dnnl_post_apply(p, d, &post, NULL, y, q.y_step);
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
    return inner_product(p, &q);
}

const onx_kernel onxi_kernels_dnnl_matmul[] = { ONXI_DNNL_ROW("Gemm", 1, ONX_KERNEL_POST_OPS, gemm_prepare),
                                                ONXI_DNNL_ROW("MatMul", 1, ONX_KERNEL_POST_OPS, matmul_prepare),
                                                { 0 } };
#endif
