/* pool_bytes.c - average pooling of 8-bit elements with channels last: processes all channels of a pixel
 * together. */
#include "kernel/core/blocked.h"
#include "kernel/core/bytes.h"

#if ONXI_PLATFORM_ROOMY
enum { TAPS = 64 }; /* most taps of a window */

typedef struct pool_params {
    onxi_window window;
    uint64_t lines; /* output rows per image */
    bool count_pads;
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

static onx_status prepare(onx_prepare *p, pool_params *q)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const onx_layout *in, *out;
    if (!p->want || !y || (p->output_count > 1 && p->outputs[1]) || x->rank < 3 || y->rank != x->rank || !y->count ||
        !x->count || !onxi_channels_last(p, x, &in) || !onxi_channels_last(p, y, &out))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, NULL, &q->window));
    const onxi_window *w = &q->window;
    if (w->kernel_size > TAPS)
        return ONX_E_UNSUPPORTED;
    place_taps(q);
    q->lines = w->out_size / (uint64_t)w->out[w->spatial - 1];
    for (uint32_t i = 1; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->want[0] = in;
    y->layout = out;
    p->params = q;
    p->rows = w->batch * q->lines;
    p->grain = onxi_worth_a_thread(y->count / p->rows * w->kernel_size);
    return ONX_OK;
}

/* ---- preparing; inputs: x with its scale and zero point, then scale and zero point of the result ---- */

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

/* Are the operands supported? */
static bool suits_average(const onx_prepare *p)
{
    const onx_value *x = p->inputs[X];
    return onxi_is_byte(x) && x->rank >= 3 && onxi_byte_has_meaning(p, X_SCALE, X_ZERO, x->dtype) &&
           onxi_byte_result_has_meaning(p, Y_SCALE, Y_ZERO, x->dtype);
}

static onx_status average_prepare(onx_prepare *p)
{
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!suits_average(p) || !p->outputs[0] || p->outputs[0]->dtype != p->inputs[X]->dtype)
        return ONX_E_UNSUPPORTED;
    q->count_pads = onxi_attrs_int(p->attrs, "count_include_pad");
    return prepare(p, q);
}

/* The output type for a rewrite rule; no output if this operator cannot replace the nodes. */
static onx_status average_types(onx_prepare *p)
{
    const onx_value *x = p->inputs[X];
    const uint32_t n = x->rank > 2 ? x->rank - 2 : 0;
    int64_t kernel[ONX_RANK_MAX], dims[ONX_RANK_MAX];
    bool fits;
    if (!suits_average(p))
        return ONX_OK;
    ONX_TRY(onxi_window_list(p, "kernel_shape", n, 1, kernel));
    ONX_TRY(onxi_window_dims(p, x, kernel, dims, &fits));
    dims[1] = x->dims[1];
    return fits ? onx_prepare_output(p, 0, (onx_dtype)x->dtype, x->rank, dims) : ONX_OK;
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

static const onx_value *operand(const onx_work *work, uint32_t i)
{
    return onxi_operand(work->prepared->input_count, work->inputs, i);
}

/* A row of work is a line of the result. */
static onx_status pool_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    const onxi_window *w = &q->window;
    const onxi_byte_loops *l = onxi_byte_loops_best();
    const uint8_t *taps[TAPS];
    const uint32_t across = w->spatial - 1;
    const int dtype = work->inputs[0]->dtype;
    onxi_byte_mean mean = { .x = taps,
                            .count = w->channels,
                            .of = { onxi_byte_meaning_of(operand(work, X_SCALE), operand(work, X_ZERO), dtype),
                                    onxi_byte_meaning_of(operand(work, Y_SCALE), operand(work, Y_ZERO), dtype) } };
    for (uint64_t row = first; row < last; row++) {
        const uint8_t *image = (const uint8_t *)work->inputs[0]->data + row / q->lines * w->in_size * w->channels;
        uint8_t *y = (uint8_t *)work->outputs[0]->data + row * (uint64_t)w->out[across] * w->channels;
        int64_t origin[ONX_RANK_MAX];
        uint64_t rest = row % q->lines;
        for (uint32_t d = across; d-- > 0; rest /= (uint64_t)w->out[d])
            origin[d] = (int64_t)(rest % (uint64_t)w->out[d]) * w->stride[d] - w->pad[d];
        for (int64_t x = 0; x < w->out[across]; x++, y += w->channels) {
            origin[across] = x * w->stride[across] - w->pad[across];
            const uint64_t count = find_taps(q, image, origin, taps);
            mean.taps = count;
            mean.divisor = (float)(q->count_pads ? w->kernel_size : count);
            mean.y = y;
            l->mean(&mean);
        }
    }
    return ONX_OK;
}
#endif

#define ROW(name, how, ...)                                                                                            \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8), .preference = 5,         \
        .flags = ONX_KERNEL_LAYOUTS, .variant = "channels", .prepare = how, .run = pool_run, __VA_ARGS__               \
    }
const onx_kernel onxi_kernels_pool_bytes[] = {
#if ONXI_PLATFORM_ROOMY
    ROW("QAveragePool", average_prepare, .domain = "onx", .types = average_types),
#endif
    { 0 },
};
