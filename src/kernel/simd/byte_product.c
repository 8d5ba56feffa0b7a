/* byte_product.c - 8-bit integer products with constant matrices: MatMulInteger, QLinearMatMul, and MatMul and Gemm
 * between DequantizeLinear and QuantizeLinear. */
#include "kernel/simd/byte_columns.h"

typedef struct product_params {
    drive drive;
    int32_t a_zero; /* its input index; -1: none */
} product_params;

static const uint8_t *rows(const void *params, const onx_work *work, uint64_t group, uint64_t first, uint64_t count,
                           uint8_t *space, uint64_t *lda)
{
    const drive *d = &((const product_params *)params)->drive;
    (void)group;
    return drive_gather(d, (const uint8_t *)work->inputs[0]->data + first * d->k, count, space, lda);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const product_params *q = work->params;
    const onx_value *zero = q->a_zero >= 0 ? work->inputs[q->a_zero] : NULL;
    const drive_run r = { &q->drive, work, left_zero(zero, q->drive.a_is_signed), rows, q };
    drive_pieces(&r, first, last);
    return ONX_OK;
}

/* Is the matrix stored as n rows of k elements instead of k rows of n? */
static bool is_turned(const onx_prepare *p)
{
    return onxi_attrs_int(p->attrs, "transB") != 0;
}

static onx_status prepare(onx_prepare *p)
{
    const byte_operands *at = p->kernel->body;
    const onx_value *a = p->inputs[0], *b = byte_operand(p, at->b), *y = p->outputs[0];
    const bool turned = is_turned(p);
    product_params *q = ONXI_NEW(p->arena, product_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!y || !y->count || !a->count || !b || !b->data || b->rank != 2 || a->rank < 1 ||
        a->dims[a->rank - 1] != b->dims[turned] || b->dims[!turned] < 1 ||
        !byte_operands_fit(p, at, (uint64_t)b->dims[!turned], y->dtype))
        return ONX_E_UNSUPPORTED;
    drive *d = &q->drive;
    q->a_zero = byte_operand(p, at->a_zero) ? at->a_zero : -1;
    d->a_is_signed = a->dtype == ONX_INT8;
    d->k = (uint64_t)b->dims[turned];
    d->m = a->count / d->k;
    d->groups = 1;
    d->finish.n = d->finish.y_step = (uint64_t)b->dims[!turned];
    if (y->count / d->finish.n != d->m || y->count % d->finish.n)
        return ONX_E_UNSUPPORTED;
    const byte_packing packing = { .n = d->finish.n,
                                   .taps = 1,
                                   .c = d->k,
                                   .n_step = turned ? d->k : 1,
                                   .c_step = turned ? 1 : d->finish.n,
                                   .groups = 1,
                                   .is_unsigned = b->dtype == ONX_UINT8 };
    ONX_TRY(byte_finish(p, at, d));
    if (!drive_cut(p, d))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(drive_pack(p, (uint32_t)at->b, &packing, d));
    if (d->finish.kind == AS_FLOATS)
        post_take_rows(p, &d->finish.posts, d->finish.n, COLUMNS);
    p->params = q;
    return ONX_OK;
}

static const byte_operands linear = { AGAIN, 1, 2, 3, 4, 5, 6, 7, -1 };
static const byte_operands integer = { AS_SUMS, -1, 2, 1, -1, 3, -1, -1, -1 };
static const byte_operands by_rule = { AS_FLOATS, 1, 2, 3, 4, 5, 7, 8, 6 };

/* The type of a product made by a rewrite rule: float, or 8-bit if it has an output scale; none if it cannot replace
 * the nodes. */
static onx_status types(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = byte_operand(p, by_rule.b);
    const int type = byte_rule_type(p, &by_rule);
    const bool turned = is_turned(p);
    int64_t dims[ONX_RANK_MAX];
    if (!b || !b->data || b->rank != 2 || a->rank < 1 || !a->count || a->dims[a->rank - 1] != b->dims[turned] ||
        b->dims[!turned] < 1 || !byte_operands_fit(p, &by_rule, (uint64_t)b->dims[!turned], type) ||
        !byte_rule_axis(p, &by_rule, !turned))
        return ONX_OK;
    onxi_copy_dims(dims, a->dims, a->rank);
    dims[a->rank - 1] = b->dims[!turned];
    return onx_prepare_output(p, 0, (onx_dtype)type, a->rank, dims);
}

#define ROW(name, since_, flags_, body_, weights)                                                                      \
    .op = name, .since = since_, .dtypes = BYTES, .preference = 2, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,         \
    .packs = 1 << weights, .flags = flags_, .body = &body_, .prepare = prepare, .run = run
const onx_kernel ONXI_LEVELED(onxi_kernels_byte_product)[] = {
    { ROW("QLinearMatMul", 10, 0, linear, 3) },
    { ROW("MatMulInteger", 10, 0, integer, 1) },
    { ROW("QProduct", 1, ONX_KERNEL_POST_OPS, by_rule, 3), .domain = "onx", .types = types },
    { 0 },
};
