/* inverse.c - matrix inversion, for operators of several domains. */
#include "kernel/core/inverse.h"

#include <math.h>

typedef struct inverse {
    uint64_t n;
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
    p->thread_workspace = (total + 2 * q->n) * sizeof(double); /* the matrix, a row, the order of rows */
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

/* Column order[c] of the inverse is in column c. */
static void order_columns(double *m, uint64_t n, const uint64_t *order, double *row)
{
    for (uint64_t r = 0; r < n; r++) {
        for (uint64_t c = 0; c < n; c++)
            row[order[c]] = m[r * n + c];
        memcpy(m + r * n, row, (size_t)n * sizeof *row);
    }
}

/* Gauss-Jordan elimination with partial pivoting, in place: column c becomes column c of the inverse, whose columns are
 * in the order of the swapped rows, once it has been eliminated. A singular matrix gives infinities and NaN. */
static void invert(double *a, uint64_t n, uint64_t *order, double *space, onxi_pace *pace)
{
    const onxi_inverse_loops *loops = ONXI_BEST_LEVEL(onxi_inverse_loops);
    for (uint64_t i = 0; i < n; i++)
        order[i] = i;
    for (uint64_t c = 0; c < n && !onxi_pace_stops(pace, n * n / 2); c++) {
        uint64_t best = c;
        for (uint64_t r = c + 1; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[best * n + c]))
                best = r;
        swap_rows(a, n, c, best);
        const uint64_t row = order[c];
        order[c] = order[best];
        order[best] = row;
        const double pivot = a[c * n + c];
        a[c * n + c] = 1;
        for (uint64_t k = 0; k < n; k++)
            a[c * n + k] /= pivot;
        loops->eliminate(a, n, c);
    }
    order_columns(a, n, order, space);
}

onx_status onxi_inverse_run(onx_work *work, uint64_t first, uint64_t last)
{
    const inverse *q = work->params;
    const uint64_t size = q->n * q->n, width = onxi_element_size(work->inputs[0]->dtype);
    double *a = work->thread_workspace, *space = a + size;
    uint64_t *order = (uint64_t *)(space + q->n);
    onxi_pace pace = { .work = work };
    for (uint64_t m = first; m < last; m++) {
        onx_convert(ONX_DOUBLE, a, (onx_dtype)work->inputs[0]->dtype,
                    (const char *)work->inputs[0]->data + m * size * width, size, true);
        invert(a, q->n, order, space, &pace);
        onx_convert((onx_dtype)work->outputs[0]->dtype, (char *)work->outputs[0]->data + m * size * width, ONX_DOUBLE,
                    a, size, true);
    }
    return ONX_OK;
}
