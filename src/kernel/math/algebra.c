/* algebra.c - LpNormalization and Det. */
#include "kernel/core/loops.h"

#include <math.h>

/* ---- LpNormalization ---- */

enum { WIDE = 128 }; /* neighbouring columns that are processed together */

/* Normalizes `count` columns of `length` elements with stride `step`; p is 1 or 2. A column of zeros stays zero. */
typedef void (*norm_loop)(const void *x, void *y, uint64_t count, uint64_t length, uint64_t step, bool squares);
#define NORM(op, d, T, C, M, L, S)                                                                                     \
    static void op##_##d(const void *px, void *py, uint64_t count, uint64_t length, uint64_t step, bool squares)       \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        double norm[WIDE] = { 0 };                                                                                     \
        for (uint64_t k = 0; k < length; k++)                                                                          \
            for (uint64_t i = 0; i < count; i++) {                                                                     \
                double v = (double)L(x[k * step + i]);                                                                 \
                norm[i] += squares ? v * v : fabs(v);                                                                  \
            }                                                                                                          \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            norm[i] = norm[i] == 0 ? 1 : squares ? sqrt(norm[i]) : norm[i];                                            \
        for (uint64_t k = 0; k < length; k++)                                                                          \
            for (uint64_t i = 0; i < count; i++)                                                                       \
                y[k * step + i] = (T)S((C)((double)L(x[k * step + i]) / norm[i]));                                     \
    }
ONXI_EACH_FLOAT(NORM, norm)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const norm_loop norm_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, norm) };

typedef struct norm_params {
    uint64_t length, inner;
    bool squares;
} norm_params;

static onx_status norm_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    norm_params *q = ONXI_NEW(p->arena, norm_params);
    uint32_t axis;
    int64_t power = onx_prepare_int(p, "p");
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &axis));
    if (power != 1 && power != 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "p is %lld, expected 1 or 2", (long long)power);
    q->squares = power == 2;
    q->length = (uint64_t)x->dims[axis];
    q->inner = onxi_product(x->dims, axis + 1, x->rank);
    p->params = q;
    p->rows = x->count ? onxi_product(x->dims, 0, axis) : 0;
    p->grain = x->count ? ONXI_BLOCK / (q->length * q->inner) + 1 : 1;
    return ONX_OK;
}

static onx_status norm_run(onx_work *work, uint64_t first, uint64_t last)
{
    const norm_params *q = work->params;
    const onx_value *x = work->inputs[0];
    uint64_t size = onxi_element_size(x->dtype);
    for (uint64_t row = first; row < last; row++)
        for (uint64_t i = 0; i < q->inner; i += WIDE) {
            uint64_t at = (row * q->length * q->inner + i) * size;
            norm_loops[x->dtype]((const char *)x->data + at, (char *)work->outputs[0]->data + at,
                                 q->inner - i < WIDE ? q->inner - i : WIDE, q->length, q->inner, q->squares);
        }
    return ONX_OK;
}

/* ---- Det ---- */

static onx_status det_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    uint64_t elements;
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return onx_prepare_fail(p, ONX_E_INVALID, "the input of rank %u is not made of square matrices", x->rank);
    uint64_t n = (uint64_t)x->dims[x->rank - 1];
    p->rows = p->outputs[0]->count;
    if (!onxi_mul_u64(n, n, &elements) || !onxi_mul_u64(elements, sizeof(double), &p->thread_workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "matrices of %llu by %llu are too large", (unsigned long long)n,
                                (unsigned long long)n);
    return ONX_OK;
}

/* Gaussian elimination with partial pivoting; overwrites `m`. */
static double determinant(double *m, uint64_t n, onxi_pace *pace)
{
    double product = 1;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t pivot = k;
        for (uint64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        double value = m[pivot * n + k];
        if (value == 0)
            return 0;
        product *= pivot == k ? value : -value;
        for (uint64_t j = k; j < n && pivot != k; j++) {
            double swap = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = swap;
        }
        for (uint64_t i = k + 1; i < n && !onxi_pace_stops(pace, n - k); i++) {
            double by = m[i * n + k] / value;
            for (uint64_t j = k + 1; j < n && by != 0; j++)
                m[i * n + j] -= by * m[k * n + j];
        }
    }
    return product;
}

static onx_status det_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0];
    uint64_t n = (uint64_t)x->dims[x->rank - 1];
    double *matrix = work->thread_workspace;
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        if (n)
            onxi_value_numbers(x, row * n * n, n * n, matrix);
        onxi_value_set_number(work->outputs[0], row, determinant(matrix, n, &pace));
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_algebra[] = {
    { .op = "LpNormalization", .since = 1, .dtypes = ONXI_FLOATS, .prepare = norm_prepare, .run = norm_run },
    { .op = "Det", .since = 11, .dtypes = ONXI_FLOATS, .prepare = det_prepare, .run = det_run },
    { 0 }
};
