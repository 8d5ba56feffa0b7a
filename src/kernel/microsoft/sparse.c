/* sparse.c - SparseToDenseMatMul. A sparse matrix is stored as a dense value here. Its zeros are skipped, so they
 * contribute nothing even if the other operand is infinite or NaN. */
#include "kernel/microsoft/microsoft.h"

typedef struct params {
    uint64_t m, n, k;
    uint64_t a_row, a_col, b_row, b_col; /* strides */
    float alpha;
} params;

/* Computes a row of the product. Integer sums wrap, as in MatMul; the factor applies to floats only. */
typedef void (*row_loop)(const params *q, const void *a, const void *b, void *y);
#define ROW(name, T, by)                                                                                               \
    static void name(const params *q, const void *pa, const void *pb, void *py)                                        \
    {                                                                                                                  \
        const T *a = pa, *b = pb;                                                                                      \
        T *y = py;                                                                                                     \
        memset(y, 0, q->n * sizeof *y);                                                                                \
        for (uint64_t k = 0; k < q->k; k++) {                                                                          \
            const T left = a[k * q->a_col];                                                                            \
            const T *right = b + k * q->b_row;                                                                         \
            for (uint64_t n = 0; left != 0 && n < q->n; n++)                                                           \
                y[n] += (by)*right[n * q->b_col];                                                                      \
        }                                                                                                              \
    }
ROW(row_float, float, left * q->alpha)
ROW(row_double, double, left)
ROW(row_32, uint32_t, left)
ROW(row_64, uint64_t, left)

static row_loop loop_of(int dtype)
{
    return dtype == ONX_FLOAT    ? row_float
           : dtype == ONX_DOUBLE ? row_double
                                 : (onxi_element_size(dtype) == 4 ? row_32 : row_64);
}

static onx_status sparse_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1];
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    const bool turns_a = onx_prepare_is_set(p, "transA"), turns_b = onx_prepare_is_set(p, "transB");
    if (a->rank != 2 || b->rank != 2 || a->dims[!turns_a] != b->dims[turns_b] || a->dtype != b->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "A of rank %u and B of rank %u cannot be multiplied", a->rank,
                                b->rank);
    const uint64_t a_width = (uint64_t)a->dims[1], b_width = (uint64_t)b->dims[1];
    *q = (params){ .m = (uint64_t)a->dims[turns_a],
                   .n = (uint64_t)b->dims[!turns_b],
                   .k = (uint64_t)a->dims[!turns_a],
                   .a_row = turns_a ? 1 : a_width,
                   .a_col = turns_a ? a_width : 1,
                   .b_row = turns_b ? 1 : b_width,
                   .b_col = turns_b ? b_width : 1,
                   .alpha = onx_prepare_float(p, "alpha") };
    p->params = q;
    p->rows = p->outputs[0]->count ? q->m : 0;
    return ONX_OK;
}

static onx_status sparse_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    const onx_value *a = work->inputs[0];
    const uint64_t size = onxi_element_size(a->dtype);
    const row_loop loop = loop_of(a->dtype);
    for (uint64_t row = first; row < last; row++)
        loop(q, (const char *)a->data + row * q->a_row * size, work->inputs[1]->data,
             (char *)work->outputs[0]->data + row * q->n * size);
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_sparse[] = {
    MS_KERNEL("SparseToDenseMatMul", .prepare = sparse_prepare, .run = sparse_run),
    { 0 },
};
