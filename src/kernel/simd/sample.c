/* sample.c - GridSample of floats: the neighbours of a block of positions and their weights are computed once, then all
 * channels are sampled. */
#include "kernel/core/sample.h"
#include "kernel/simd/simd.h"

#if !ONXI_PLATFORM_ROOMY
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_sample)[] = { { 0 } };
#else

enum { TOGETHER = 4 }; /* channels processed together */

/* Without a branch: which positions are outside is unpredictable. */
static inline float there(const float *x, int32_t at)
{
    const int32_t outside = at >> 31;
    int32_t bits;
    float value;
    memcpy(&bits, x + (at & ~outside), sizeof bits);
    bits &= ~outside;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Samples some channels at once, so that positions and weights are read once for all. `channels`, `n` (the number of
 * neighbours) and `whole` are constants at each call. */
static inline __attribute__((always_inline)) void channels_of(const onxi_sample_taps *t, uint32_t channels, uint32_t n,
                                                              bool whole, const onxi_sample *q, const float *x,
                                                              float *y, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        float sum[TOGETHER] = { 0 };
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t c = 0; c < channels; c++) {
                const float *from = x + c * q->in_size;
                sum[c] += t->weight[k][i] * (whole ? from[t->at[k][i]] : there(from, t->at[k][i]));
            }
        for (uint32_t c = 0; c < channels; c++)
            y[c * q->places + i] = sum[c];
    }
}

static void together(const onxi_sample_taps *t, const onxi_sample *q, const float *x, float *y, uint64_t count)
{
    if (q->taps == 4 && t->whole)
        channels_of(t, TOGETHER, 4, true, q, x, y, count);
    else if (q->taps == 4)
        channels_of(t, TOGETHER, 4, false, q, x, y, count);
    else
        channels_of(t, TOGETHER, q->taps, false, q, x, y, count);
}

static void alone(const onxi_sample_taps *t, const onxi_sample *q, const float *x, float *y, uint64_t count)
{
    channels_of(t, 1, q->taps, false, q, x, y, count);
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    if (x->rank > ONXI_SAMPLE_AXES + 2 || p->inputs[1]->dtype != ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    onxi_sample *q = ONXI_NEW(p->arena, onxi_sample);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_sample_make(p, q));
    if (q->taps > ONXI_SAMPLE_TAPS || q->in_size > INT32_MAX)
        return ONX_E_UNSUPPORTED;
    p->params = q;
    p->thread_workspace = sizeof(onxi_sample_taps);
    return ONX_OK;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_sample *q = work->params;
    const onx_value *x = work->inputs[0];
    const float *data = x->data, *grid = work->inputs[1]->data;
    float *out = work->outputs[0]->data;
    onxi_sample_taps *t = work->thread_workspace;
    for (uint64_t row = first, count; row < last; row += count) {
        const uint64_t image = row / q->places, place = row % q->places, left = q->places - place;
        count = last - row < ONXI_SAMPLE_BLOCK ? last - row : ONXI_SAMPLE_BLOCK;
        count = count < left ? count : left;
        onxi_sample_find(q, x->dims + 2, grid + row * q->rank, count, t);
        const float *from = data + image * q->channels * q->in_size;
        float *to = out + image * q->channels * q->places + place;
        uint64_t c = 0;
        for (; c + TOGETHER <= q->channels; c += TOGETHER)
            together(t, q, from + c * q->in_size, to + c * q->places, count);
        for (; c < q->channels; c++)
            alone(t, q, from + c * q->in_size, to + c * q->places, count);
    }
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_sample)[] = { { .op = "GridSample",
                                                                .since = 16,
                                                                .dtypes = ONXI_F32,
                                                                .preference = 1,
                                                                .isa = ONXI_LEVEL,
                                                                .variant = ONXI_VARIANT,
                                                                .prepare = prepare,
                                                                .run = run },
                                                              { 0 } };
#endif
