/* matmul.c - Gemm and MatMul by oneDNN, where simd/product.c does not take them: with constant weights as an inner
 * product with packed weights, otherwise as a matrix product. */
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

typedef struct product {
    int64_t m, n, k;
    bool trans_b;    /* the weights are stored as n x k */
    uint32_t bias;   /* input index, 0: none */
    const void *row; /* a constant row that the first post-operation adds to each row of the result; NULL: none */
} product;

typedef struct product_part {
    onxi_dnnl_md x, w, w_plain, b, y;
} product_part;

/* Describes a part: `extent` rows of the result, or columns if it has one row. */
static bool describe(const product *q, onxi_dnnl *d, int64_t extent, product_part *s)
{
    bool columns = q->m == 1;
    int64_t m = columns ? 1 : extent, n = columns ? extent : q->n;
    const int64_t x[] = { m, q->k }, w[] = { n, q->k }, y[] = { m, n };
    const int64_t steps[] = { q->trans_b ? q->k : 1, q->trans_b ? 1 : q->n };
    *s = (product_part){ .x = onxi_dnnl_md_plain(d, 2, x),
                         .w = onxi_dnnl_md_any(d, 2, w),
                         .w_plain = onxi_dnnl_md_strides(d, 2, w, steps),
                         .b = onxi_dnnl_md_plain(d, 1, w),
                         .y = onxi_dnnl_md_plain(d, 2, y) };
    return s->x && s->w && s->w_plain && s->b && s->y;
}

static bool describe_product(const onx_prepare *p, const product *q, const onxi_dnnl *d, const product_part *s,
                             onxi_dnnl_post *post, dnnl_primitive_desc_t *out)
{
    if (!onxi_dnnl_post_make(p, d, s->y, q->row != NULL, post))
        return false;
    bool good = onxi_dnnl_describe_inner_product(d, s->x, s->w, q->bias || q->row ? s->b : NULL, s->y, post->attr, out);
    d->lib->dnnl_primitive_attr_destroy(post->attr);
    return good;
}

/* Divides the rows or columns of a product by its shape alone. With AVX2 oneDNN sums a matrix of fewer rows in another
 * order, so with parts that depend on the number of threads the bits would depend on it, too. */
enum { ROWS_LEAST = 32, COLUMNS_LEAST = 256 };
static onxi_dnnl_cut cut_evenly(int64_t extent, int64_t least)
{
    enum { PARTS = 8, UNIT = 16 };
    int64_t each = ((extent + PARTS - 1) / PARTS + UNIT - 1) / UNIT * UNIT;
    each = each < least ? least : each;
    if (extent <= each)
        return (onxi_dnnl_cut){ 1, extent, extent };
    const int64_t parts = (extent + each - 1) / each;
    return (onxi_dnnl_cut){ (uint32_t)parts, each, extent - each * (parts - 1) };
}

/* Makes both descriptions of `d`, and those of the weights. */
static bool describe_parts(const onx_prepare *p, const product *q, onxi_dnnl *d, product_part s[2],
                           onxi_dnnl_post *post)
{
    d->cut = q->m == 1 ? cut_evenly(q->n, COLUMNS_LEAST) : cut_evenly(q->m, ROWS_LEAST);
    if (!describe(q, d, d->cut.each, &s[0]) || !describe_product(p, q, d, &s[0], post, &d->desc[0]))
        return false;
    s[0].w = d->lib->dnnl_primitive_desc_query_md(d->desc[0], dnnl_query_weights_md, 0);
    s[1] = s[0];
    if (d->cut.last == d->cut.each)
        return true;
    if (!describe(q, d, d->cut.last, &s[1]))
        return false;
    if (q->m != 1) /* all parts use the same weights */
        s[1].w = s[0].w;
    if (!describe_product(p, q, d, &s[1], post, &d->desc[1]))
        return false;
    s[1].w = d->lib->dnnl_primitive_desc_query_md(d->desc[1], dnnl_query_weights_md, 0);
    return true;
}

static onx_status inner_product(onx_prepare *p, product *q)
{
    onxi_dnnl *d = onxi_dnnl_new(p, 8, (uint64_t)q->m * (uint64_t)q->n * (uint64_t)q->k);
    product_part s[2];
    onxi_dnnl_post post;
    if (!d || !describe_parts(p, q, d, s, &post))
        return onxi_dnnl_decline(d);
    uint64_t each = (uint64_t)d->cut.each * sizeof(float), n = (uint64_t)q->n, k = (uint64_t)q->k;
    bool columns = q->m == 1;
    onxi_dnnl_pair y = { s[0].y, s[1].y };
    uint64_t y_step = columns ? each : each * n;
    if (!onxi_dnnl_add_constant(p, d, DNNL_ARG_WEIGHTS, 1, (onxi_dnnl_pair){ s[0].w_plain, s[1].w_plain },
                                !columns     ? 0
                                : q->trans_b ? each * k
                                             : each,
                                (onxi_dnnl_pair){ s[0].w, s[1].w }))
        return onxi_dnnl_decline(d);
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, (onxi_dnnl_pair){ s[0].x, s[1].x }, columns ? 0 : each * k);
    if (q->bias)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, q->bias, (onxi_dnnl_pair){ s[0].b, s[1].b },
                      columns ? each : 0);
    if (q->row) {
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_CONSTANT, 0, (onxi_dnnl_pair){ s[0].b, s[1].b }, columns ? each : 0);
        d->operands[d->count - 1].data = q->row;
    }
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, y, y_step);
    ONX_TRY(onxi_dnnl_finish(p, d));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    onxi_dnnl_post_apply(p, d, &post, NULL, y, y_step);
    return ONX_OK;
}

/* The constant row that the next node adds, as a bias; NULL: none. */
static const void *row_behind(const onx_prepare *p, int64_t n)
{
    const onx_post_op *f = p->post_ops;
    if (!p->post_op_count || f->operand >= 0 || f->prepare->kernel->post_op != ONX_POST_ADD ||
        f->prepare->input_count != 2)
        return NULL;
    const onx_value *v = f->prepare->inputs[1 - f->port];
    return v && v->data && v->dtype == ONX_FLOAT && v->rank && v->dims[v->rank - 1] == n && v->count == (uint64_t)n
               ? v->data
               : NULL;
}

/* ---- two operands that are not constant; leading dims are batch dims ---- */

typedef struct batch {
    uint32_t rank, axis; /* axis: the dim that is divided */
    int64_t a[ONX_RANK_MAX], b[ONX_RANK_MAX], y[ONX_RANK_MAX];
    /* The operand is divided, too; an operand that is broadcast along the dim is used by all parts. */
    bool a_cut, b_cut;
    bool turn_a, turn_b; /* rank 2 only: the matrix is transposed */
    uint32_t bias;       /* input that is added to each row, 0: none */
} batch;

/* Divides the first dim greater than 1: a batch dim, or the rows of a single product. */
static void cut_batch(batch *q)
{
    while (q->axis + 2 < q->rank && q->y[q->axis] == 1)
        q->axis++;
    q->a_cut = q->a[q->axis] > 1;
    q->b_cut = q->b[q->axis] > 1 && q->axis + 2 < q->rank;
}

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
    cut_batch(q);
    return true;
}

typedef struct batch_part {
    onxi_dnnl_md a, b, bias, y;
} batch_part;

static onxi_dnnl_md matrix_md(onxi_dnnl *d, uint32_t rank, const int64_t *dims, bool turned, int64_t rows)
{
    return turned ? onxi_dnnl_md_strides(d, rank, dims, (const int64_t[]){ 1, rows })
                  : onxi_dnnl_md_plain(d, rank, dims);
}

static bool describe_batch(const onx_prepare *p, onxi_dnnl *d, const batch *whole, int64_t extent, batch_part *s,
                           onxi_dnnl_post *post, dnnl_primitive_desc_t *out)
{
    batch q = *whole;
    q.y[q.axis] = extent;
    if (q.a_cut)
        q.a[q.axis] = extent;
    if (q.b_cut)
        q.b[q.axis] = extent;
    *s = (batch_part){ .a = matrix_md(d, q.rank, q.a, q.turn_a, whole->a[0]),
                       .b = matrix_md(d, q.rank, q.b, q.turn_b, q.b[0]),
                       .bias = q.bias ? onxi_dnnl_md_plain(d, 2, (const int64_t[]){ 1, q.y[1] }) : NULL,
                       .y = onxi_dnnl_md_plain(d, q.rank, q.y) };
    if (!s->a || !s->b || (q.bias && !s->bias) || !s->y || !onxi_dnnl_post_make(p, d, s->y, 0, post))
        return false;
    bool good = onxi_dnnl_describe_matmul(d, s->a, s->b, s->bias, s->y, post->attr, out);
    d->lib->dnnl_primitive_attr_destroy(post->attr);
    return good;
}

static uint64_t step_of(const int64_t *dims, const batch *q, int64_t each, bool cut)
{
    return cut ? (uint64_t)each * onxi_product(dims, q->axis + 1, q->rank) * sizeof(float) : 0;
}

static onx_status general_product(onx_prepare *p, const batch *of)
{
    const batch q = *of;
    onxi_dnnl *d = onxi_dnnl_new(p, 8, p->outputs[0]->count * (uint64_t)q.a[q.rank - 1]);
    batch_part s[2];
    onxi_dnnl_post post;
    if (!d)
        return ONX_E_UNSUPPORTED;
    /* A division by products of a batch changes no order of summation. */
    d->cut = q.axis + 2 < q.rank ? onxi_dnnl_cut_of(d, q.y[q.axis], 1) : cut_evenly(q.y[q.axis], ROWS_LEAST);
    if (!describe_batch(p, d, &q, d->cut.each, &s[0], &post, &d->desc[0]))
        return onxi_dnnl_decline(d);
    s[1] = s[0];
    if (d->cut.last != d->cut.each && !describe_batch(p, d, &q, d->cut.last, &s[1], &post, &d->desc[1]))
        return onxi_dnnl_decline(d);
    onxi_dnnl_pair y = { s[0].y, s[1].y };
    uint64_t y_step = step_of(q.y, &q, d->cut.each, true);
    onxi_dnnl_add(d, DNNL_ARG_SRC, ONXI_DNNL_INPUT, 0, (onxi_dnnl_pair){ s[0].a, s[1].a },
                  q.turn_a ? (uint64_t)d->cut.each * sizeof(float) : step_of(q.a, &q, d->cut.each, q.a_cut));
    onxi_dnnl_add(d, DNNL_ARG_WEIGHTS, ONXI_DNNL_INPUT, 1, (onxi_dnnl_pair){ s[0].b, s[1].b },
                  step_of(q.b, &q, d->cut.each, q.b_cut));
    if (q.bias)
        onxi_dnnl_add(d, DNNL_ARG_BIAS, ONXI_DNNL_INPUT, q.bias, (onxi_dnnl_pair){ s[0].bias, s[1].bias }, 0);
    onxi_dnnl_add(d, DNNL_ARG_DST, ONXI_DNNL_OUTPUT, 0, y, y_step);
    ONX_TRY(onxi_dnnl_finish(p, d));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    onxi_dnnl_post_apply(p, d, &post, NULL, y, y_step);
    return ONX_OK;
}

static onx_status gemm_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *c = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    if (!p->want || a->rank != 2 || b->rank != 2 || !y || !y->count || b->dtype != ONX_FLOAT ||
        onx_prepare_float(p, "alpha") != 1)
        return ONX_E_UNSUPPORTED;
    const bool trans_a = onx_prepare_int(p, "transA") != 0;
    product q = {
        .m = y->dims[0], .n = y->dims[1], .k = a->dims[trans_a ? 0 : 1], .trans_b = onx_prepare_int(p, "transB") != 0
    };
    if (q.k <= 0 || a->dims[trans_a ? 1 : 0] != q.m || b->dims[q.trans_b ? 1 : 0] != q.k ||
        b->dims[q.trans_b ? 0 : 1] != q.n)
        return ONX_E_UNSUPPORTED;
    if (c) {
        bool row = c->rank > 0 && c->rank <= 2 && c->dims[c->rank - 1] == q.n && c->count == (uint64_t)q.n &&
                   c->dtype == ONX_FLOAT;
        if (!row || onx_prepare_float(p, "beta") != 1)
            return ONX_E_UNSUPPORTED;
        q.bias = 2;
    }
    if (b->data && !trans_a)
        return inner_product(p, &q);
    batch values = { .rank = 2,
                     .a = { q.m, q.k },
                     .b = { q.k, q.n },
                     .y = { q.m, q.n },
                     .turn_a = trans_a,
                     .turn_b = q.trans_b,
                     .bias = q.bias };
    cut_batch(&values);
    return general_product(p, &values);
}

static onx_status matmul_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1];
    const onx_value *y = p->outputs[0];
    if (!p->want || !y || !y->count || b->dtype != ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    batch values = { .rank = 0 };
    if (!b->data || b->rank != 2 || a->rank < 1)
        return batch_of(p, &values) ? general_product(p, &values) : ONX_E_UNSUPPORTED;
    product q = { .n = b->dims[1], .k = b->dims[0] };
    if (q.k <= 0 || q.n <= 0 || a->dims[a->rank - 1] != q.k)
        return ONX_E_UNSUPPORTED;
    q.m = (int64_t)(a->count / (uint64_t)q.k);
    q.row = row_behind(p, q.n);
    return inner_product(p, &q);
}

const onx_kernel onxi_kernels_dnnl_matmul[] = {
    ONXI_DNNL_ROW("Gemm", 1, ONX_KERNEL_POST_OPS, ONXI_DNNL_WEIGHTS, gemm_prepare),
    ONXI_DNNL_ROW("MatMul", 1, ONX_KERNEL_POST_OPS, ONXI_DNNL_WEIGHTS, matmul_prepare),
    { 0 }
};
#endif
