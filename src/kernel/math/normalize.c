/* normalize.c - BatchNormalization and LRN. */
#include "kernel/core/loops.h"
#include "kernel/core/norm.h"

#include <math.h>

/* Per element type: sums of a plane, and y = (x - mean) * scale + shift. Several
 * sums are accumulated independently, so that an addition need not wait for the one before it. */
enum { SUMS_AT_ONCE = 8 };
#define SUMS(op, d, T, C, M, L, S)                                                                                     \
    static void op##_##d(const void *px, uint64_t n, double mean, double *sum, double *squares)                        \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        double s[SUMS_AT_ONCE] = { 0 }, q[SUMS_AT_ONCE] = { 0 };                                                       \
        for (; n >= SUMS_AT_ONCE; n -= SUMS_AT_ONCE, x += SUMS_AT_ONCE)                                                \
            for (int k = 0; k < SUMS_AT_ONCE; k++) {                                                                   \
                const double v = (double)L(x[k]) - mean;                                                               \
                s[k] += v;                                                                                             \
                q[k] += v * v;                                                                                         \
            }                                                                                                          \
        for (uint64_t k = 0; k < n; k++) {                                                                             \
            const double v = (double)L(x[k]) - mean;                                                                   \
            s[k] += v;                                                                                                 \
            q[k] += v * v;                                                                                             \
        }                                                                                                              \
        for (int k = 0; k < SUMS_AT_ONCE; k++) {                                                                       \
            *sum += s[k];                                                                                              \
            *squares += q[k];                                                                                          \
        }                                                                                                              \
    }
#define AFFINE(op, d, T, C, M, L, S)                                                                                   \
    static void op##_##d(const void *px, void *py, uint64_t n, double mean, double scale, double shift)                \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        const C m = (C)mean, rest = (C)(mean - (double)m), a = (C)scale, b = (C)shift;                                 \
        const bool wide = sizeof(C) < sizeof(double) && !onxi_norm_fits_float(mean, scale);                            \
        for (uint64_t i = 0; i < n && !wide; i++)                                                                      \
            y[i] = (T)S((((C)L(x[i]) - m) - rest) * a + b);                                                            \
        for (uint64_t i = 0; i < n && wide; i++)                                                                       \
            y[i] = (T)S((C)(((double)L(x[i]) - mean) * scale + shift));                                                \
    }
ONXI_EACH_FLOAT(SUMS, sums)
ONXI_EACH_FLOAT(AFFINE, affine)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static void (*const sums[ONX_DTYPE_COUNT])(const void *, uint64_t, double, double *,
                                           double *) = { ONXI_EACH_FLOAT(ENTRY, sums) };
static void (*const affines[ONX_DTYPE_COUNT])(const void *, void *, uint64_t, double, double,
                                              double) = { ONXI_EACH_FLOAT(ENTRY, affine) };

typedef struct norm_params {
    uint64_t batch, channels, plane;
    double epsilon, momentum;
    bool training;
    uint32_t width;
} norm_params;

static onx_status norm_shape(onx_prepare *p, norm_params **out)
{
    const onx_value *x = p->inputs[0];
    norm_params *q = ONXI_NEW(p->arena, norm_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is a scalar");
    q->batch = (uint64_t)x->dims[0];
    q->channels = x->rank > 1 ? (uint64_t)x->dims[1] : 1;
    q->plane = x->rank > 2 ? onxi_product(x->dims, 2, x->rank) : 1;
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    q->width = onx_dtype_bits(x->dtype) / 8;
    p->params = *out = q;
    return ONX_OK;
}

/* Test mode is an attribute before version 7, one output in 7 to 13, training_mode from 14 on. */
static onx_status batch_prepare(onx_prepare *p)
{
    norm_params *q = NULL;
    ONX_TRY(norm_shape(p, &q));
    q->momentum = (double)onx_prepare_float(p, "momentum");
    q->training = p->since >= 14  ? onx_prepare_is_set(p, "training_mode")
                  : p->since >= 7 ? p->node->output_count > 1
                                  : onx_prepare_int(p, "is_test") == 0;
    if (p->since < 9 && onx_prepare_int(p, "spatial") == 0) { /* statistics per feature, not per channel */
        q->channels *= q->plane;
        q->plane = 1;
    }
    for (uint32_t i = 1; i < 5; i++)
        if (!p->inputs[i] || p->inputs[i]->count != q->channels || !(ONXI_FLOATS & ONX_DTYPE_BIT(p->inputs[i]->dtype)))
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not have an element for each of %llu channels", i,
                                    (unsigned long long)q->channels);
    p->rows = q->channels;
    p->grain = onxi_worth_a_thread(q->channels ? p->inputs[0]->count / q->channels * ONXI_COST_ELEMENT : 0);
    return ONX_OK;
}

static void channel_moments(const norm_params *q, const onx_value *x, uint64_t c, double *mean, double *variance)
{
    double sum = 0, squares = 0, count = (double)(q->batch * q->plane), zero = 0;
    for (uint64_t n = 0; n < q->batch; n++)
        sums[x->dtype]((const char *)x->data + (n * q->channels + c) * q->plane * q->width, q->plane, 0, &sum, &zero);
    *mean = sum / count;
    for (uint64_t n = 0; n < q->batch; n++)
        sums[x->dtype]((const char *)x->data + (n * q->channels + c) * q->plane * q->width, q->plane, *mean, &zero,
                       &squares);
    *variance = squares / count;
}

static onx_status batch_run(onx_work *work, uint64_t first, uint64_t last)
{
    const norm_params *q = work->params;
    const onx_value *const *in = work->inputs;
    const onx_value *x = in[0];
    for (uint64_t c = first; c < last; c++) {
        double mean = onxi_value_number(in[3], c), variance = onxi_value_number(in[4], c);
        if (q->training) {
            double m = mean, v = variance;
            channel_moments(q, x, c, &mean, &variance);
            const double values[] = { m * q->momentum + mean * (1 - q->momentum),
                                      v * q->momentum + variance * (1 - q->momentum), mean, variance };
            for (uint32_t i = 1; i < work->prepared->output_count && i < 5; i++)
                if (work->outputs[i])
                    onxi_value_set_number(work->outputs[i], c, values[i - 1]);
        }
        double scale = onxi_value_number(in[1], c) / sqrt(variance + q->epsilon), shift = onxi_value_number(in[2], c);
        for (uint64_t n = 0; n < q->batch && work->outputs[0]; n++) {
            uint64_t at = (n * q->channels + c) * q->plane * q->width;
            affines[x->dtype]((const char *)x->data + at, (char *)work->outputs[0]->data + at, q->plane, mean, scale,
                              shift);
        }
    }
    return ONX_OK;
}

/* ---- LRN ---- */

typedef struct lrn_params {
    uint64_t batch, channels, plane, before, after; /* before, after: number of neighbouring channels on each side */
    double alpha, beta, bias;
    void (*loop)(const struct lrn_params *q, const void *x, void *y, uint64_t c, onxi_pace *pace);
    uint32_t width;
} lrn_params;

#define LRN(op, d, T, C, M, L, S)                                                                                      \
    static void op##_##d(const lrn_params *q, const void *px, void *py, uint64_t c, onxi_pace *pace)                   \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py + c * q->plane;                                                                                 \
        uint64_t lo = c > q->before ? c - q->before : 0;                                                               \
        uint64_t hi = q->channels - 1 - c > q->after ? c + q->after : q->channels - 1;                                 \
        for (uint64_t i = 0; i < q->plane && !onxi_pace_stops(pace, 4 * (hi - lo) + 16); i++) {                        \
            C sum = 0;                                                                                                 \
            for (uint64_t k = lo; k <= hi; k++) {                                                                      \
                C v = (C)L(x[k * q->plane + i]);                                                                       \
                sum += v * v;                                                                                          \
            }                                                                                                          \
            C base = (C)q->bias + (C)q->alpha * sum;                                                                   \
            C power = q->beta == 0.75 ? sqrt##M(base) * sqrt##M(sqrt##M(base)) : pow##M(base, (C)q->beta);             \
            y[i] = (T)S((C)L(x[c * q->plane + i]) / power);                                                            \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(LRN, lrn)
static void (*const lrns[ONX_DTYPE_COUNT])(const lrn_params *, const void *, void *, uint64_t,
                                           onxi_pace *) = { ONXI_EACH_FLOAT(ENTRY, lrn) };

static onx_status lrn_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    lrn_params *q = ONXI_NEW(p->arena, lrn_params);
    if (!q)
        return ONX_E_MEMORY;
    int64_t size = onx_prepare_int(p, "size");
    if (x->rank < 2 || size < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "rank %u or size %lld is too small", x->rank, (long long)size);
    q->batch = (uint64_t)x->dims[0];
    q->channels = (uint64_t)x->dims[1];
    q->plane = onxi_product(x->dims, 2, x->rank);
    q->before = (uint64_t)(size - 1) / 2;
    q->after = (uint64_t)size / 2;
    q->alpha = (double)onx_prepare_float(p, "alpha") / (double)size;
    q->beta = (double)onx_prepare_float(p, "beta");
    q->bias = (double)onx_prepare_float(p, "bias");
    q->loop = lrns[x->dtype];
    q->width = onx_dtype_bits(x->dtype) / 8;
    p->params = q;
    p->rows = q->plane ? q->batch * q->channels : 0;
    p->grain = onxi_worth_a_thread(q->plane * ONXI_COST_ELEMENT);
    return ONX_OK;
}

static onx_status lrn_run(onx_work *work, uint64_t first, uint64_t last)
{
    const lrn_params *q = work->params;
    uint64_t image = q->channels * q->plane * q->width;
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        uint64_t n = row / q->channels;
        q->loop(q, (const char *)work->inputs[0]->data + n * image, (char *)work->outputs[0]->data + n * image,
                row % q->channels, &pace);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_normalize[] = {
    { .op = "BatchNormalization", .since = 1, .dtypes = ONXI_FLOATS, .prepare = batch_prepare, .run = batch_run },
    { .op = "LRN", .since = 1, .dtypes = ONXI_FLOATS, .prepare = lrn_prepare, .run = lrn_run },
    { 0 }
};
