/* matmul.c - MatMul and Gemm by the shared matrix product. Fast variants are in kernel/dnnl/matmul.c. */
#include "kernel/core/loops.h"

#define MATMUL_TYPES                                                                                                   \
    (ONXI_FLOATS | ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_INT64) | ONX_DTYPE_BIT(ONX_UINT32) |                   \
     ONX_DTYPE_BIT(ONX_UINT64))

enum { ROWS_EACH = 96 }; /* rows of the output in a unit of work */

typedef struct matmul_params {
    onxi_broadcast batch; /* of the leading dims; its elements are matrices */
    uint64_t m, n, k, chunks;
    uint32_t width;
} matmul_params;

static onx_status matmul_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1];
    onx_value *c = p->outputs[0];
    matmul_params *q = ONXI_NEW(p->arena, matmul_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!a->rank || !b->rank || a->dtype != b->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs must have at least one dimension and the same type");
    uint32_t la = a->rank > 1 ? a->rank - 2 : 0, lb = b->rank > 1 ? b->rank - 2 : 0, lc = la > lb ? la : lb;
    q->m = a->rank > 1 ? (uint64_t)a->dims[a->rank - 2] : 1;
    q->k = (uint64_t)a->dims[a->rank - 1];
    q->n = b->rank > 1 ? (uint64_t)b->dims[b->rank - 1] : 1;
    if ((uint64_t)b->dims[b->rank > 1 ? b->rank - 2 : 0] != q->k)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inner dimensions differ");
    onx_value batch_a = { .rank = la, .dims = a->dims }, batch_b = { .rank = lb, .dims = b->dims },
              batch_c = { .rank = lc, .dims = c->dims };
    const onx_value *leading[] = { &batch_a, &batch_b };
    if (!onxi_broadcast_make(&q->batch, leading, 2, &batch_c, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the leading dimensions do not broadcast");
    q->width = onx_dtype_bits(a->dtype) / 8;
    q->chunks = (q->m + ROWS_EACH - 1) / ROWS_EACH;
    p->params = q;
    p->rows = c->count ? q->batch.outer * (uint64_t)q->batch.inner * q->chunks : 0;
    p->grain = onxi_worth_a_thread((q->m < ROWS_EACH ? q->m : ROWS_EACH) * q->n * q->k);
    p->thread_workspace = onxi_gemm_workspace(a->dtype, ROWS_EACH, q->n, q->k);
    return ONX_OK;
}

static onx_status matmul_run(onx_work *work, uint64_t first, uint64_t last)
{
    const matmul_params *q = work->params;
    const onxi_broadcast *b = &q->batch;
    for (uint64_t row = first; row < last; row++) {
        uint64_t chunk = row % q->chunks, matrix = row / q->chunks, inner = matrix % (uint64_t)b->inner;
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, matrix / (uint64_t)b->inner, at);
        uint64_t ma = (uint64_t)(at[0] + (int64_t)inner * b->step[0][b->rank - 1]),
                 mb = (uint64_t)(at[1] + (int64_t)inner * b->step[1][b->rank - 1]);
        uint64_t r0 = chunk * ROWS_EACH;
        onxi_gemm g = { .dtype = work->inputs[0]->dtype,
                        .m = q->m - r0 < ROWS_EACH ? q->m - r0 : ROWS_EACH,
                        .n = q->n,
                        .k = q->k,
                        .a = (const char *)work->inputs[0]->data + (ma * q->m + r0) * q->k * q->width,
                        .b = (const char *)work->inputs[1]->data + mb * q->k * q->n * q->width,
                        .c = (char *)work->outputs[0]->data + (matrix * q->m + r0) * q->n * q->width,
                        .a_row = (int64_t)q->k,
                        .a_col = 1,
                        .b_row = (int64_t)q->n,
                        .b_col = 1,
                        .c_row = (int64_t)q->n,
                        .work = work };
        onxi_gemm_run(&g, work->thread_workspace);
    }
    return ONX_OK;
}

/* ---- Gemm: alpha * A' * B' + beta * C ---- */

typedef struct gemm_params {
    onxi_broadcast bias; /* of C to the output */
    uint64_t m, n, k, chunks;
    float alpha, beta;
    bool trans_a, trans_b;
    uint32_t width;
} gemm_params;

static onx_status gemm_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *c = p->input_count > 2 ? p->inputs[2] : NULL;
    onx_value *y = p->outputs[0];
    gemm_params *q = ONXI_NEW(p->arena, gemm_params);
    if (!q)
        return ONX_E_MEMORY;
    if (a->rank != 2 || b->rank != 2 || y->rank != 2 || a->dtype != b->dtype || (c && c->dtype != a->dtype))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs must be matrices of the same type");
    q->alpha = onx_prepare_float(p, "alpha");
    q->beta = onx_prepare_float(p, "beta");
    q->trans_a = onx_prepare_int(p, "transA") != 0;
    q->trans_b = onx_prepare_int(p, "transB") != 0;
    q->m = (uint64_t)a->dims[q->trans_a ? 1 : 0];
    q->k = (uint64_t)a->dims[q->trans_a ? 0 : 1];
    q->n = (uint64_t)b->dims[q->trans_b ? 0 : 1];
    if ((uint64_t)b->dims[q->trans_b ? 1 : 0] != q->k)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inner dimensions differ");
    if (c && !onxi_broadcast_make(&q->bias, &c, 1, y, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "C does not broadcast to the output");
    q->width = onx_dtype_bits(a->dtype) / 8;
    q->chunks = (q->m + ROWS_EACH - 1) / ROWS_EACH;
    p->params = q;
    p->rows = y->count ? q->chunks : 0;
    p->grain = onxi_worth_a_thread(ROWS_EACH * q->n * q->k);
    p->thread_workspace = onxi_gemm_workspace(a->dtype, ROWS_EACH, q->n, q->k);
    return ONX_OK;
}

/* y = alpha * y + beta * c for n elements. */
#define BLEND(op, d, T, C, M, L, S)                                                                                    \
    static void op##_##d(void *py, const void *pc, int64_t step, uint64_t n, float alpha, float beta)                  \
    {                                                                                                                  \
        T *y = (T *)py;                                                                                                \
        const T *c = (const T *)pc;                                                                                    \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i] = (T)S((C)((C)alpha * (C)L(y[i]) + (c ? (C)beta * (C)L(c[(int64_t)i * step]) : (C)0)));               \
    }
/* Integers: computed in integers if alpha and beta are integers, as they are by default. */
#define BLEND_I(op, d, T, C, M, L, S)                                                                                  \
    static void op##_##d(void *py, const void *pc, int64_t step, uint64_t n, float alpha, float beta)                  \
    {                                                                                                                  \
        T *y = (T *)py;                                                                                                \
        const T *c = (const T *)pc;                                                                                    \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            if (alpha == 1 && beta == 1) {                                                                             \
                y[i] = (T)((uint64_t)y[i] + (c ? (uint64_t)c[(int64_t)i * step] : 0));                                 \
                continue;                                                                                              \
            }                                                                                                          \
            double v = (double)alpha * (double)y[i] + (c ? (double)beta * (double)c[(int64_t)i * step] : 0);           \
            onx_convert(ONX_##d, &y[i], ONX_DOUBLE, &v, 1, true);                                                      \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(BLEND, blend)
ONXI_EACH_SIGNED(BLEND_I, blend)
ONXI_EACH_UNSIGNED(BLEND_I, blend)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static void (*const blends[ONX_DTYPE_COUNT])(void *, const void *, int64_t, uint64_t, float,
                                             float) = { ONXI_EACH_FLOAT(ENTRY, blend) ONXI_EACH_SIGNED(ENTRY, blend)
                                                            ONXI_EACH_UNSIGNED(ENTRY, blend) };

static void add_bias(const gemm_params *q, const onx_value *c, onx_value *y, uint64_t start, uint64_t end)
{
    const onxi_broadcast *b = &q->bias;
    for (uint64_t at = start; at < end;) {
        uint64_t inner = c ? (uint64_t)b->inner : end - start, col = c ? at % inner : 0;
        uint64_t n = inner - col < end - at ? inner - col : end - at;
        int64_t off[ONXI_BROADCAST_MAX] = { 0 }, step = c ? b->step[0][b->rank - 1] : 0;
        if (c)
            onxi_broadcast_offsets(b, at / inner, off);
        blends[y->dtype]((char *)y->data + at * q->width,
                         c ? (const char *)c->data + (off[0] + (int64_t)col * step) * q->width : NULL, step, n,
                         q->alpha, q->beta);
        at += n;
    }
}

static onx_status gemm_run(onx_work *work, uint64_t first, uint64_t last)
{
    const gemm_params *q = work->params;
    const onx_value *c = work->prepared->input_count > 2 ? work->inputs[2] : NULL;
    int64_t a_row = q->trans_a ? 1 : (int64_t)q->k;
    for (uint64_t row = first; row < last; row++) {
        uint64_t r0 = row * ROWS_EACH, m = q->m - r0 < ROWS_EACH ? q->m - r0 : ROWS_EACH;
        onxi_gemm g = { .dtype = work->inputs[0]->dtype,
                        .m = m,
                        .n = q->n,
                        .k = q->k,
                        .a = (const char *)work->inputs[0]->data + (int64_t)r0 * a_row * q->width,
                        .b = work->inputs[1]->data,
                        .c = (char *)work->outputs[0]->data + r0 * q->n * q->width,
                        .a_row = a_row,
                        .a_col = q->trans_a ? (int64_t)q->m : 1,
                        .b_row = q->trans_b ? 1 : (int64_t)q->n,
                        .b_col = q->trans_b ? (int64_t)q->k : 1,
                        .c_row = (int64_t)q->n,
                        .work = work };
        onxi_gemm_run(&g, work->thread_workspace);
        if (c || q->alpha != 1)
            add_bias(q, c, work->outputs[0], r0 * q->n, (r0 + m) * q->n);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_matmul[] = {
    { .op = "MatMul", .since = 1, .dtypes = MATMUL_TYPES, .prepare = matmul_prepare, .run = matmul_run },
    { .op = "Gemm", .since = 1, .dtypes = MATMUL_TYPES, .prepare = gemm_prepare, .run = gemm_run },
    { 0 }
};
