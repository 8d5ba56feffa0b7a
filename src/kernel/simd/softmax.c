/* softmax.c - Softmax and LogSoftmax of floats: lines that lie together a vector at a time, others a vector of
 * neighbouring lines at a time. */
#include "kernel/simd/math.h"

/* One line: its greatest element, then the exponentials and their sum, then a division. NaN anywhere gives NaN
 * everywhere, as the sum has it. */
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

static onx_status soft_prepare(onx_prepare *p)
{
    ONX_TRY(onxi_softmax_prepare(p));
    onxi_softmax_params *q = p->params;
    if (q->inner != 1)
        return ONX_E_UNSUPPORTED;
    q->loop = soft_line;
    return ONX_OK;
}

#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 1, .isa = ONXI_LEVEL, .flags = ONX_KERNEL_IN_PLACE,  \
        .variant = ONXI_VARIANT, .body = &body_, .prepare = soft_prepare, .run = onxi_softmax_run                      \
    }

static const int soft = ONXI_SOFTMAX, log_soft = ONXI_LOG_SOFTMAX;
const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_softmax)[] = { ROW("Softmax", soft), ROW("LogSoftmax", log_soft), { 0 } };
