/* softmax.c - Softmax and LogSoftmax of floats: contiguous lines a vector at a time, others a vector of
 * neighbouring lines at a time. */
#include "kernel/simd/math.h"
#include "kernel/simd/turned.h"

/* One line: its maximum, then the exponentials and their sum, then a division. NaN anywhere gives NaN everywhere, as in
 * the sum. */
static void soft_line(const onxi_softmax_params *q, const void *px, void *py, int kind)
{
    const float *x = px;
    float *y = py;
    const uint64_t n = q->count, whole = n - n % ONXI_LANES, left = n - whole;
    onxi_vf best = vf_all(-INFINITY), total = vf_all(0);
    for (uint64_t i = 0; i < whole; i += ONXI_LANES)
        best = vf_max(vf_load(x + i), best);
    if (left)
        best = vf_max(vf_load_part(x + whole, left, -INFINITY), best);
    const float top = vf_greatest(best);
    if (kind == ONXI_LOG_SOFTMAX) {
        for (uint64_t i = 0; i < whole; i += ONXI_LANES)
            total += vf_exp_weight(vf_load(x + i) - top);
        if (left)
            total += vf_exp_weight(vf_load_part(x + whole, left, -INFINITY) - top);
        const float log_sum = logf(vf_sum(total));
        for (uint64_t i = 0; i < n; i++)
            y[i] = (x[i] - top) - log_sum;
        return;
    }
    for (uint64_t i = 0; i < whole; i += ONXI_LANES) {
        onxi_vf e = vf_exp_weight(vf_load(x + i) - top);
        vf_store(y + i, e);
        total += e;
    }
    if (left) {
        onxi_vf e = vf_exp_weight(vf_load_part(x + whole, left, -INFINITY) - top);
        vf_store_part(y + whole, e, left);
        total += e;
    }
    const float scale = 1.0f / vf_sum(total);
    for (uint64_t i = 0; i < n; i++)
        y[i] *= scale;
}

/* ---- adjacent lines ---- */

enum { COLUMNS = 4 * ONXI_LANES };

/* `width` lines whose elements are `inner` apart. */
static void soft_columns(const onxi_softmax_params *q, const void *px, void *py, uint64_t width)
{
    const float *x = px;
    float *y = py;
    const bool logs = q->kind == ONXI_LOG_SOFTMAX;
    float top[COLUMNS], sum[COLUMNS] = { 0 };
    for (uint64_t i = 0; i < COLUMNS; i++)
        top[i] = -INFINITY;
#define EACH_VECTOR(BODY)                                                                                              \
    for (uint64_t k = 0; k < q->count; k++)                                                                            \
        for (uint64_t i = 0; i < width; i += ONXI_LANES) {                                                             \
            const uint64_t at = k * q->inner + i, n = width - i < ONXI_LANES ? width - i : ONXI_LANES;                 \
            const onxi_vf v = n == ONXI_LANES ? vf_load(x + at) : vf_load_part(x + at, n, 0);                          \
            BODY                                                                                                       \
        }
    EACH_VECTOR({
        const onxi_vf best = vf_load(top + i);
        vf_store(top + i, vf_select((v > best) | (v != v), v, best));
    })
    EACH_VECTOR({
        const onxi_vf e = vf_exp_weight(v - vf_load(top + i));
        vf_store(sum + i, vf_load(sum + i) + e);
        if (!logs)
            vf_store_part(y + at, e, n);
    })
    for (uint64_t i = 0; i < width; i++)
        sum[i] = logs ? logf(sum[i]) : 1.0f / sum[i];
    if (!logs)
        x = y;
    EACH_VECTOR({ vf_store_part(y + at, logs ? (v - vf_load(top + i)) - vf_load(sum + i) : v * vf_load(sum + i), n); })
#undef EACH_VECTOR
}

/* ---- short lines ---- */

#if ONXI_PLATFORM_ROOMY
/* Lines that are faster turned, so that each lane has one of them to itself. Narrow vectors that a line fills are
 * faster as they lie. */
static bool suits_turned(const onxi_softmax_params *q)
{
    if (q->block || q->count > TURNED_MOST)
        return false;
    return ONXI_LANES == 16 || (q->count < 2 * ONXI_LANES && q->count % ONXI_LANES);
}

static void soft_turned(const void *params, const float *x, uint64_t first, uint64_t n, void *y)
{
    const onxi_softmax_params *q = params;
    float columns[TURNED_MOST * ONXI_LANES], line[ONXI_LANES * ONXI_LANES];
    float *to = (float *)y + first * q->count;
    onxi_vf top = vf_all(-INFINITY), sum = vf_all(0);
    for (uint64_t k = 0; k < q->count; k += ONXI_LANES)
        vf_turn((const char *)(x + k), q->count * sizeof *x, columns + k * ONXI_LANES, ONXI_LANES);
    for (uint64_t k = 0; k < q->count; k++)
        top = vf_max(vf_load(columns + k * ONXI_LANES), top);
    for (uint64_t k = 0; k < q->count; k++) {
        const onxi_vf below = vf_load(columns + k * ONXI_LANES) - top, e = vf_exp_weight(below);
        vf_store(columns + k * ONXI_LANES, q->kind == ONXI_LOG_SOFTMAX ? below : e);
        sum += e;
    }
    const onxi_vf last = q->kind == ONXI_LOG_SOFTMAX ? vf_log(sum) : 1.0f / sum;
    for (uint64_t k = 0; k < q->count; k++) {
        const onxi_vf v = vf_load(columns + k * ONXI_LANES);
        vf_store(columns + k * ONXI_LANES, q->kind == ONXI_LOG_SOFTMAX ? v - last : v * last);
    }
    for (uint64_t k = 0; k < q->count; k += ONXI_LANES) {
        const uint64_t some = q->count - k < ONXI_LANES ? q->count - k : ONXI_LANES;
        vf_turn((const char *)(columns + k * ONXI_LANES), ONXI_LANES * sizeof *columns, line, ONXI_LANES);
        for (uint64_t i = 0; i < n; i++)
            vf_store_part(to + i * q->count + k, vf_load(line + i * ONXI_LANES), some);
    }
}

static onx_status soft_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_softmax_params *q = work->params;
    const float *x = work->inputs[0]->data;
    float *y = work->outputs[0]->data;
    if (!suits_turned(q))
        return onxi_softmax_run(work, first, last);
    turned_lines(soft_turned, q, x + first * q->count, q->count, last - first, y + first * q->count);
    return ONX_OK;
}
#else
#define soft_run onxi_softmax_run
#endif

static onx_status soft_prepare(onx_prepare *p)
{
    ONX_TRY(onxi_softmax_prepare(p));
    onxi_softmax_use(p, soft_line, soft_columns, COLUMNS);
    return ONX_OK;
}

#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 1, .isa = ONXI_LEVEL,                                \
        .flags = ONX_KERNEL_IN_PLACE | ONXI_KERNEL_LINES, .variant = ONXI_VARIANT, .body = &body_,                     \
        .prepare = soft_prepare, .run = soft_run                                                                       \
    }

static const int soft = ONXI_SOFTMAX, log_soft = ONXI_LOG_SOFTMAX;
const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_softmax)[] = { ROW("Softmax", soft), ROW("LogSoftmax", log_soft), { 0 } };
