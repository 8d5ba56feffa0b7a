/* softmax_wide.c - Softmax and LogSoftmax of doubles: contiguous lines a vector at a time, others a vector of
 * neighbouring lines at a time. NaN anywhere in a line gives NaN everywhere, as in the sum. */
#include "kernel/simd/wide.h"

#if !ONXI_PLATFORM_ROOMY
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_softmax_wide)[] = { { 0 } };
#else

enum { COLUMNS = 8 * VD_LANES };

/* The first n lanes; the others are -infinity, which changes neither a maximum nor a sum of exponentials. */
static inline vd load_part(const double *x, uint64_t n)
{
    vd v = vd_all(-(double)INFINITY);
    memcpy(&v, x, (size_t)(n < VD_LANES ? n : VD_LANES) * sizeof *x);
    return v;
}

static inline vd load(const double *x)
{
    vd v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline vd greater(vd a, vd b)
{
    return vd_select((a > b) | (a != a), a, b);
}

static inline vd weight(vd x, vd most)
{
    return vd_exp(x - most);
}

static void soft_line(const onxi_softmax_params *q, const void *px, void *py, int kind)
{
    const double *x = px;
    double *y = py, top = -(double)INFINITY, sum = 0;
    const uint64_t n = q->count, whole = n - n % VD_LANES;
    vd best = load_part(x + whole, n - whole), total = vd_all(0);
    for (uint64_t i = 0; i < whole; i += VD_LANES)
        best = greater(load(x + i), best);
    for (int i = 0; i < VD_LANES; i++)
        top = best[i] > top || best[i] != best[i] ? best[i] : top;
    const vd most = vd_all(top);
    for (uint64_t i = 0; i < whole; i += VD_LANES) {
        const vd e = weight(load(x + i), most);
        if (kind == ONXI_SOFTMAX)
            memcpy(y + i, &e, sizeof e);
        total += e;
    }
    const vd rest = weight(load_part(x + whole, n - whole), most);
    if (kind == ONXI_SOFTMAX)
        memcpy(y + whole, &rest, (size_t)(n - whole) * sizeof *y);
    total += n > whole ? rest : vd_all(0);
    for (int i = 0; i < VD_LANES; i++)
        sum += total[i];
    const double log_sum = log(sum), scale = 1 / sum;
    if (kind == ONXI_SOFTMAX)
        for (uint64_t i = 0; i < n; i++)
            y[i] *= scale;
    else
        for (uint64_t i = 0; i < n; i++)
            y[i] = (x[i] - top) - log_sum;
}

/* `width` lines whose elements are `inner` apart. */
static void soft_columns(const onxi_softmax_params *q, const void *px, void *py, uint64_t width)
{
    const double *x = px;
    double *y = py;
    const bool logs = q->kind == ONXI_LOG_SOFTMAX;
    double top[COLUMNS], sum[COLUMNS] = { 0 };
    for (uint64_t i = 0; i < COLUMNS; i++)
        top[i] = -(double)INFINITY;
#define EACH_VECTOR(BODY)                                                                                              \
    for (uint64_t k = 0; k < q->count; k++)                                                                            \
        for (uint64_t i = 0; i < width; i += VD_LANES) {                                                               \
            const uint64_t at = k * q->inner + i, n = width - i < VD_LANES ? width - i : VD_LANES;                     \
            const vd v = n == VD_LANES ? load(x + at) : load_part(x + at, n), t = load(top + i), s = load(sum + i);    \
            vd r;                                                                                                      \
            BODY                                                                                                       \
        }
    EACH_VECTOR({
        (void)s;
        r = greater(v, t);
        memcpy(top + i, &r, sizeof r);
    })
    EACH_VECTOR({
        const vd e = weight(v, t);
        r = s + e;
        memcpy(sum + i, &r, sizeof r);
        if (!logs)
            memcpy(y + at, &e, (size_t)n * sizeof *y);
    })
    for (uint64_t i = 0; i < width; i++)
        sum[i] = logs ? log(sum[i]) : 1 / sum[i];
    if (!logs)
        x = y;
    EACH_VECTOR({
        r = logs ? (v - t) - s : v * s;
        memcpy(y + at, &r, (size_t)n * sizeof *y);
    })
#undef EACH_VECTOR
}

static onx_status soft_prepare(onx_prepare *p)
{
    ONX_TRY(onxi_softmax_prepare(p));
    onxi_softmax_use(p, soft_line, soft_columns, COLUMNS);
    return ONX_OK;
}

#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONX_DTYPE_BIT(ONX_DOUBLE), .preference = 1, .isa = ONXI_LEVEL,               \
        .flags = ONX_KERNEL_IN_PLACE | ONXI_KERNEL_LINES, .variant = ONXI_VARIANT, .body = &body_,                     \
        .prepare = soft_prepare, .run = onxi_softmax_run                                                               \
    }

static const int soft = ONXI_SOFTMAX, log_soft = ONXI_LOG_SOFTMAX;
const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_softmax_wide)[] = { ROW("Softmax", soft), ROW("LogSoftmax", log_soft), { 0 } };
#endif
