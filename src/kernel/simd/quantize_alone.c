/* quantize_alone.c - QLinearConv of channels that are groups of their own, channels last: a vector of neighbouring
 * channels at a time. Sums are floats, which hold them to the bit, and are quantized again as the plain rows do it. */
#include "kernel/core/blocked.h"
#include "kernel/simd/round.h"

enum { DIMS = 2, VECTORS = 4, TAPS_MAX = 256 /* of numbers up to 255 times 255 each, below 2^24 */ };

typedef struct alone_params {
    uint64_t channels, padded; /* padded to whole vectors */
    int64_t in[DIMS], out[DIMS], kernel[DIMS], stride[DIMS], dilation[DIMS], pad[DIMS];
    uint8_t flip; /* signed bytes are read as unsigned ones, with their zero point */
    float x_zero; /* as they are read */
    int32_t y_zero;
    bool y_is_signed;
    const float *w; /* per tap, per channel; without its zero point */
    const int32_t *bias;
    const float *factor;
} alone_params;

/* Which taps of a dim lie within the input, for a window that begins at `from`. */
static inline void taps_within(const alone_params *q, int d, int64_t from, int64_t *first, int64_t *end)
{
    const int64_t step = q->dilation[d], left = q->in[d] - from;
    *first = from < 0 ? (-from + step - 1) / step : 0;
    *end = left <= 0 ? 0 : (left + step - 1) / step;
    *end = *end < q->kernel[d] ? *end : q->kernel[d];
}

/* Sums quantized again: of some channels, n of them. */
static inline void finish(const alone_params *q, onxi_vf sum, uint64_t c, uint64_t n, uint8_t *y)
{
    onxi_vu shift, sums = (onxi_vu) __builtin_convertvector(sum, onxi_vi);
    memcpy(&shift, q->bias + c, sizeof shift);
    sums += shift; /* which wraps, as sums of the plain rows do */
    const int32_t least = q->y_is_signed ? -128 : 0;
    const onxi_vi whole = requantized((onxi_vi)sums, vf_load(q->factor + c), (double)(least - q->y_zero),
                                      (double)(least + 255 - q->y_zero), q->y_zero);
    const byte_line bytes = bytes_of(whole);
    memcpy(y + c, &bytes, n == ONXI_LANES ? sizeof bytes : (size_t)n);
}

/* Some vectors of channels of a number of the result, for the taps from `first` to `end`; n: how many channels the last
 * vector has. */
__attribute__((always_inline)) static inline void some(const alone_params *q, const uint8_t *image,
                                                       const int64_t from[DIMS], const int64_t first[DIMS],
                                                       const int64_t end[DIMS], uint64_t c, uint64_t n, uint8_t *y,
                                                       const int vectors)
{
    onxi_vf sum[VECTORS];
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_all(0);
    for (int64_t i = first[0]; i < end[0]; i++) {
        const int64_t line = (from[0] + i * q->dilation[0]) * q->in[1] + from[1];
        const uint8_t *x = image + (line + first[1] * q->dilation[1]) * (int64_t)q->channels + c;
        const float *w = q->w + (uint64_t)(i * q->kernel[1] + first[1]) * q->padded + c;
        for (int64_t j = first[1]; j < end[1]; j++, x += (uint64_t)q->dilation[1] * q->channels, w += q->padded)
            for (int v = 0; v < vectors; v++)
                sum[v] += (floats_of(x + v * ONXI_LANES, vectors > 1 ? ONXI_LANES : n, q->flip) - q->x_zero) *
                          vf_load(w + v * ONXI_LANES);
    }
    for (int v = 0; v < vectors; v++)
        finish(q, sum[v], c + (uint64_t)v * ONXI_LANES, vectors > 1 ? ONXI_LANES : n, y);
}

/* A row is a line of an image of the result. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const alone_params *q = work->params;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t n = row / (uint64_t)q->out[0], line = row % (uint64_t)q->out[0];
        const uint8_t *image =
            (const uint8_t *)work->inputs[0]->data + n * (uint64_t)(q->in[0] * q->in[1]) * q->channels;
        uint8_t *y = (uint8_t *)work->outputs[0]->data + row * (uint64_t)q->out[1] * q->channels;
        for (int64_t x = 0; x < q->out[1]; x++, y += q->channels) {
            const int64_t from[DIMS] = { (int64_t)line * q->stride[0] - q->pad[0], x * q->stride[1] - q->pad[1] };
            int64_t tap[DIMS], end[DIMS];
            for (int d = 0; d < DIMS; d++)
                taps_within(q, d, from[d], &tap[d], &end[d]);
            uint64_t c = 0;
            for (; c + VECTORS * ONXI_LANES <= q->channels; c += VECTORS * ONXI_LANES)
                some(q, image, from, tap, end, c, ONXI_LANES, y, VECTORS);
            for (; c < q->channels; c += ONXI_LANES)
                some(q, image, from, tap, end, c, q->channels - c < ONXI_LANES ? q->channels - c : ONXI_LANES, y, 1);
        }
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* An operand of one number, or of one for each channel; all of them constants. */
static bool is_known(const onx_prepare *p, uint32_t input, uint64_t channels)
{
    const onx_value *v = onxi_operand(p->input_count, p->inputs, input);
    return v && v->data && (v->count == 1 || (channels && v->rank == 1 && v->count == channels));
}

static onx_status take_numbers(onx_prepare *p, alone_params *q, uint64_t taps)
{
    const onx_value *w = p->inputs[3], *w_scale = p->inputs[4], *w_zero = p->inputs[5];
    const onx_value *b = onxi_operand(p->input_count, p->inputs, 8);
    float *weights = onxi_arena_array(p->arena, taps * q->padded, sizeof *weights);
    float *factor = onxi_arena_array(p->arena, q->padded, sizeof *factor);
    int32_t *bias = onxi_arena_array(p->arena, q->padded, sizeof *bias);
    if (!weights || !factor || !bias)
        return ONX_E_MEMORY;
    memset(weights, 0, taps * q->padded * sizeof *weights);
    for (uint64_t c = 0; c < q->padded; c++) {
        const bool there = c < q->channels;
        const float scale = there ? ((const float *)w_scale->data)[w_scale->count > 1 ? c : 0] : 0;
        factor[c] = *(const float *)p->inputs[1]->data * scale;
        factor[c] /= *(const float *)p->inputs[6]->data;
        bias[c] = b && there ? ((const int32_t *)b->data)[c] : 0;
        for (uint64_t t = 0; there && t < taps; t++)
            weights[t * q->padded + c] =
                (float)(onxi_value_number(w, c * taps + t) - onxi_value_number(w_zero, w_zero->count > 1 ? c : 0));
    }
    q->w = weights;
    q->factor = factor;
    q->bias = bias;
    return ONX_OK;
}

/* The sizes of a window, as lines of images where there is one dim. */
static bool take_sizes(const onxi_window *win, alone_params *q)
{
    for (int d = 0; d < DIMS; d++) {
        const int from = d - (DIMS - (int)win->spatial);
        q->in[d] = from < 0 ? 1 : win->in[from];
        q->out[d] = from < 0 ? 1 : win->out[from];
        q->kernel[d] = from < 0 ? 1 : win->kernel[from];
        q->stride[d] = from < 0 ? 1 : win->stride[from];
        q->dilation[d] = from < 0 ? 1 : win->dilation[from];
        q->pad[d] = from < 0 ? 0 : win->pad[from];
        if (q->in[d] < 1 || q->in[d] > INT32_MAX || q->out[d] < 1 || q->out[d] > INT32_MAX || q->kernel[d] < 1 ||
            q->kernel[d] > TAPS_MAX || q->stride[d] > INT32_MAX || q->dilation[d] > INT32_MAX || q->pad[d] < 0 ||
            q->pad[d] > INT32_MAX)
            return false;
    }
    return q->kernel[0] * q->kernel[1] <= TAPS_MAX;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[3], *y = p->outputs[0];
    const onx_value *b = onxi_operand(p->input_count, p->inputs, 8);
    const onx_layout *in, *out;
    onxi_window win;
    if (!p->want || !y || !x->count || !y->count || x->rank < 3 || x->rank > 4 || w->rank != x->rank ||
        y->rank != x->rank || x->dims[1] != onx_prepare_int(p, "group") || w->dims[0] != x->dims[1] ||
        w->dims[1] != 1 || y->dims[1] != x->dims[1] || y->dims[0] != x->dims[0])
        return ONX_E_UNSUPPORTED;
    const uint64_t channels = (uint64_t)x->dims[1];
    if (!w->data || !is_known(p, 1, 0) || !is_known(p, 2, 0) || !is_known(p, 4, channels) ||
        !is_known(p, 5, channels) || !is_known(p, 6, 0) || !is_known(p, 7, 0) || p->inputs[1]->dtype != ONX_FLOAT ||
        p->inputs[4]->dtype != ONX_FLOAT || p->inputs[6]->dtype != ONX_FLOAT || p->inputs[2]->dtype != x->dtype ||
        p->inputs[5]->dtype != w->dtype || p->inputs[7]->dtype != y->dtype ||
        (b && (!b->data || b->dtype != ONX_INT32 || b->count != channels)))
        return ONX_E_UNSUPPORTED;
    alone_params *q = ONXI_NEW(p->arena, alone_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    if (!take_sizes(&win, q) || !onxi_channels_last(p, x, &in) || !onxi_channels_last(p, y, &out))
        return ONX_E_UNSUPPORTED;
    q->channels = channels;
    q->padded = (channels + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    q->flip = x->dtype == ONX_INT8 ? 0x80 : 0;
    q->x_zero = (float)(onxi_value_number(p->inputs[2], 0) + (x->dtype == ONX_INT8 ? 128 : 0));
    q->y_is_signed = y->dtype == ONX_INT8;
    q->y_zero = (int32_t)onxi_value_number(p->inputs[7], 0);
    const uint64_t taps = (uint64_t)(q->kernel[0] * q->kernel[1]);
    ONX_TRY(take_numbers(p, q, taps));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->want[0] = in;
    p->outputs[0]->layout = out;
    p->params = q;
    p->rows = win.batch * (uint64_t)q->out[0];
    p->grain = onxi_worth_a_thread(ONXI_COST_ALONE * (uint64_t)q->out[1] * channels * taps);
    return ONX_OK;
}

#define BYTES (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8))
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize_alone)[] = { { .op = "QLinearConv",
                                                                        .since = 10,
                                                                        .dtypes = BYTES,
                                                                        .preference = 3,
                                                                        .isa = ONXI_LEVEL,
                                                                        .variant = ONXI_VARIANT,
                                                                        .flags = ONX_KERNEL_LAYOUTS,
                                                                        .prepare = prepare,
                                                                        .run = run },
                                                                      { 0 } };
