/* pool_bytes.c - MaxPool of 8-bit elements with channels last: processes all channels of a pixel together. */
#include "kernel/core/blocked.h"
#include "kernel/core/bytes.h"

#if ONXI_PLATFORM_ROOMY
enum { TAPS = 64 }; /* most taps of a window */

typedef struct pool_params {
    onxi_window window;
    uint64_t lines;     /* output rows per image */
    int64_t taps[TAPS]; /* byte offset of each tap from the first tap of the window */
} pool_params;

static void place_taps(pool_params *q)
{
    const onxi_window *w = &q->window;
    for (uint64_t t = 0; t < w->kernel_size; t++) {
        uint64_t rest = t, step = w->channels;
        q->taps[t] = 0;
        for (uint32_t d = w->spatial; d-- > 0; rest /= (uint64_t)w->kernel[d]) {
            q->taps[t] += (int64_t)(rest % (uint64_t)w->kernel[d] * (uint64_t)w->dilation[d] * step);
            step *= (uint64_t)w->in[d];
        }
    }
}

static onx_status pool_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const onx_layout *in, *out;
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || !y || (p->output_count > 1 && p->outputs[1]) || x->rank < 3 || y->rank != x->rank || !y->count ||
        !x->count || !onxi_channels_last(p, x, &in) || !onxi_channels_last(p, y, &out))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, NULL, &q->window));
    const onxi_window *w = &q->window;
    if (w->kernel_size > TAPS)
        return ONX_E_UNSUPPORTED;
    place_taps(q);
    q->lines = w->out_size / (uint64_t)w->out[w->spatial - 1];
    p->want[0] = in;
    y->layout = out;
    p->params = q;
    p->rows = w->batch * q->lines;
    p->grain = onxi_worth_a_thread(y->count / p->rows * w->kernel_size);
    return ONX_OK;
}

/* Finds the taps of a window that are inside the image; returns how many. */
static uint64_t find_taps(const pool_params *q, const uint8_t *image, const int64_t *origin, const uint8_t **taps)
{
    const onxi_window *w = &q->window;
    int64_t tap[ONX_RANK_MAX] = { 0 }, first = 0;
    uint64_t count = 0;
    bool whole = true;
    for (uint32_t d = 0; d < w->spatial; d++) {
        whole &= origin[d] >= 0 && origin[d] + (w->kernel[d] - 1) * w->dilation[d] < w->in[d];
        first = first * w->in[d] + origin[d];
    }
    first *= (int64_t)w->channels;
    for (uint64_t t = 0; whole && t < w->kernel_size; t++)
        taps[t] = image + first + q->taps[t];
    if (whole)
        return w->kernel_size;
    for (uint64_t t = 0; t < w->kernel_size; t++) {
        bool inside = true;
        for (uint32_t d = 0; d < w->spatial; d++) {
            const int64_t i = origin[d] + tap[d] * w->dilation[d];
            inside &= i >= 0 && i < w->in[d];
        }
        if (inside)
            taps[count++] = image + first + q->taps[t];
        for (uint32_t d = w->spatial; d-- > 0 && ++tap[d] == w->kernel[d];)
            tap[d] = 0;
    }
    return count;
}

/* A row of work is a row of output pixels. */
static onx_status pool_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    const onxi_window *w = &q->window;
    const onxi_byte_loops *l = onxi_byte_loops_best();
    const uint8_t *taps[TAPS];
    const uint8_t flip = work->inputs[0]->dtype == ONX_INT8 ? 0x80 : 0;
    const uint32_t across = w->spatial - 1;
    for (uint64_t row = first; row < last; row++) {
        const uint8_t *image = (const uint8_t *)work->inputs[0]->data + row / q->lines * w->in_size * w->channels;
        uint8_t *y = (uint8_t *)work->outputs[0]->data + row * (uint64_t)w->out[across] * w->channels;
        int64_t origin[ONX_RANK_MAX];
        uint64_t rest = row % q->lines;
        for (uint32_t d = across; d-- > 0; rest /= (uint64_t)w->out[d])
            origin[d] = (int64_t)(rest % (uint64_t)w->out[d]) * w->stride[d] - w->pad[d];
        for (int64_t x = 0; x < w->out[across]; x++, y += w->channels) {
            origin[across] = x * w->stride[across] - w->pad[across];
            l->greatest(taps, find_taps(q, image, origin, taps), flip, w->channels, y);
        }
    }
    return ONX_OK;
}
#endif

#define ROW(version)                                                                                                   \
    {                                                                                                                  \
        .op = "MaxPool", .since = version, .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8),               \
        .preference = 5, .flags = ONX_KERNEL_LAYOUTS, .variant = "channels", .prepare = pool_prepare, .run = pool_run  \
    }
const onx_kernel onxi_kernels_pool_bytes[] = {
#if ONXI_PLATFORM_ROOMY
    ROW(1),
#endif
    { 0 },
};
