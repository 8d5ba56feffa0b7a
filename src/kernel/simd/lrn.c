/* lrn.c - LRN on channels stored as planes, a vector of neighbouring pixels at a time. */
#include "kernel/simd/math.h"

typedef struct lrn_params {
    uint64_t channels, plane, before, after; /* neighbours on each side */
    float alpha, beta, bias;
} lrn_params;

static inline onxi_vf scaled(const lrn_params *q, onxi_vf x, onxi_vf squares)
{
    const onxi_vf base = squares * q->alpha + q->bias;
    if (q->beta == 0.75f) {
        const onxi_vf root = vf_sqrt(base);
        return x / (root * vf_sqrt(root));
    }
    return x / vf_pow(base, vf_all(q->beta));
}

static void channel(const lrn_params *q, const float *x, float *y, uint64_t c)
{
    const uint64_t low = c > q->before ? c - q->before : 0, last = q->channels - 1;
    const uint64_t high = last - c > q->after ? c + q->after : last;
    const float *from = x + low * q->plane;
    x += c * q->plane;
    y += c * q->plane;
    for (uint64_t i = 0; i < q->plane; i += ONXI_LANES) {
        const uint64_t left = q->plane - i;
        onxi_vf sum = vf_all(0);
        if (left >= ONXI_LANES) {
            for (uint64_t k = 0; k <= high - low; k++) {
                const onxi_vf v = vf_load(from + k * q->plane + i);
                sum += v * v;
            }
            vf_store(y + i, scaled(q, vf_load(x + i), sum));
        } else {
            for (uint64_t k = 0; k <= high - low; k++) {
                const onxi_vf v = vf_load_part(from + k * q->plane + i, left, 0);
                sum += v * v;
            }
            vf_store_part(y + i, scaled(q, vf_load_part(x + i, left, 0), sum), left);
        }
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const lrn_params *q = work->params;
    const uint64_t image = q->channels * q->plane;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t at = row / q->channels * image;
        channel(q, (const float *)work->inputs[0]->data + at, (float *)work->outputs[0]->data + at, row % q->channels);
    }
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const int64_t size = onx_prepare_int(p, "size");
    lrn_params *q = ONXI_NEW(p->arena, lrn_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 2 || size < 1 || !x->count)
        return ONX_E_UNSUPPORTED;
    *q = (lrn_params){ .channels = (uint64_t)x->dims[1],
                       .plane = onxi_product(x->dims, 2, x->rank),
                       .before = (uint64_t)(size - 1) / 2,
                       .after = (uint64_t)size / 2,
                       .alpha = (float)((double)onx_prepare_float(p, "alpha") / (double)size),
                       .beta = onx_prepare_float(p, "beta"),
                       .bias = onx_prepare_float(p, "bias") };
    p->params = q;
    p->rows = x->count / q->plane;
    p->grain = 16384 / q->plane + 1;
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_lrn)[] = { { .op = "LRN",
                                                             .since = 1,
                                                             .dtypes = ONXI_F32,
                                                             .preference = 1,
                                                             .isa = ONXI_LEVEL,
                                                             .variant = ONXI_VARIANT,
                                                             .prepare = prepare,
                                                             .run = run },
                                                           { 0 } };
