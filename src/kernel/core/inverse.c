/* inverse.c - matrix inversion, for operators of several domains. */
#include "kernel/core/inverse.h"

#include <math.h>

typedef struct inverse {
    uint64_t n, left, right;
} inverse;

onx_status onxi_inverse_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    inverse *q = ONXI_NEW(p->arena, inverse);
    uint64_t total;
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return onx_prepare_fail(p, ONX_E_INVALID, "the input does not hold square matrices");
    q->n = (uint64_t)x->dims[x->rank - 1];
    if (!onxi_mul_u64(q->n, q->n, &total) || total > UINT64_MAX / 32)
        return onx_prepare_fail(p, ONX_E_LIMIT, "a matrix of %llu by %llu is too large", (unsigned long long)q->n,
                                (unsigned long long)q->n);
    p->thread_workspace = 2 * total * sizeof(double);
    p->params = q;
    p->rows = x->count ? x->count / total : 0;
    return ONX_OK;
}

static void swap_rows(double *m, uint64_t n, uint64_t a, uint64_t b)
{
    for (uint64_t i = 0; a != b && i < n; i++) {
        const double t = m[a * n + i];
        m[a * n + i] = m[b * n + i];
        m[b * n + i] = t;
    }
}

/* x -= by * row */
static void take_out(double *restrict x, const double *restrict row, uint64_t n, double by)
{
    for (uint64_t k = 0; k < n; k++)
        x[k] -= by * row[k];
}

/* Gauss-Jordan elimination with partial pivoting; a singular matrix gives infinities and NaN. Columns of `a` to the
 * left of the pivot are not updated, since nothing reads them again. */
static void invert(double *a, double *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < n; k++)
            b[i * n + k] = i == k;
    for (uint64_t c = 0; c < n; c++) {
        uint64_t best = c;
        for (uint64_t r = c + 1; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[best * n + c]))
                best = r;
        swap_rows(a, n, c, best);
        swap_rows(b, n, c, best);
        const double pivot = a[c * n + c];
        for (uint64_t k = c; k < n; k++)
            a[c * n + k] /= pivot;
        for (uint64_t k = 0; k < n; k++)
            b[c * n + k] /= pivot;
        for (uint64_t r = 0; r < n; r++) {
            const double by = a[r * n + c];
            if (r == c)
                continue;
            take_out(a + r * n + c, a + c * n + c, n - c, by);
            take_out(b + r * n, b + c * n, n, by);
        }
    }
}

onx_status onxi_inverse_run(onx_work *work, uint64_t first, uint64_t last)
{
    const inverse *q = work->params;
    const uint64_t size = q->n * q->n, width = onxi_element_size(work->inputs[0]->dtype);
    double *a = work->thread_workspace, *b = a + size;
    for (uint64_t m = first; m < last; m++) {
        onx_convert(ONX_DOUBLE, a, (onx_dtype)work->inputs[0]->dtype,
                    (const char *)work->inputs[0]->data + m * size * width, size, true);
        invert(a, b, q->n);
        onx_convert((onx_dtype)work->outputs[0]->dtype, (char *)work->outputs[0]->data + m * size * width, ONX_DOUBLE,
                    b, size, true);
    }
    return ONX_OK;
}
