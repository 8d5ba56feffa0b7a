/* alone.h - shared by the kernels of depthwise ConvInteger and QLinearConv with channels last: operands, sizes and
 * weights. */
#ifndef ONXI_KERNEL_SIMD_ALONE_H
#define ONXI_KERNEL_SIMD_ALONE_H

#include "kernel/core/blocked.h"
#include "kernel/simd/round.h"

enum { DIMS = 2, TAPS_MAX = 256 /* their sum of products of 8-bit integers is below 2^24 */ };

/* Input indices; -1: the operator has no such input. */
typedef struct alone_inputs {
    int x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} alone_inputs;

typedef struct alone_params {
    uint64_t channels, padded; /* padded to whole vectors */
    uint64_t taps, lines;      /* taps per window; output rows of all images, which are the rows of work */
    int64_t in[DIMS], out[DIMS], kernel[DIMS], stride[DIMS], dilation[DIMS], pad[DIMS];
    const onx_layout *x_layout, *y_layout;
    uint8_t flip; /* signed elements are read as unsigned ones, and so is their zero point */
    int32_t y_zero;
    bool y_is_signed;
    bool gives_sums;
    const float *w; /* for kernels that multiply floats: per tap, per channel, minus its zero point */
    const int32_t *bias;
    const float *factor;
} alone_params;

/* The taps along a dim that are inside the input, for a window that begins at `from`. */
static inline void taps_within(const alone_params *q, int d, int64_t from, int64_t *first, int64_t *end)
{
    const int64_t step = q->dilation[d], left = q->in[d] - from;
    *first = from < 0 ? (-from + step - 1) / step : 0;
    *end = left <= 0 ? 0 : (left + step - 1) / step;
    *end = *end < q->kernel[d] ? *end : q->kernel[d];
}

static inline const onx_value *operand(const onx_prepare *p, int input)
{
    return input < 0 ? NULL : onxi_operand(p->input_count, p->inputs, (uint32_t)input);
}

/* Is it a constant of that type with one element, or one per channel? */
static inline bool is_known(const onx_value *v, int dtype, uint64_t channels)
{
    return v && v->data && v->dtype == dtype && (v->count == 1 || (v->rank == 1 && v->count == channels));
}

/* Computes the factors and biases for requantizing sums. */
static inline onx_status take_factors(onx_prepare *p, const alone_inputs *in, alone_params *q)
{
    const onx_value *scale = operand(p, in->w_scale), *b = operand(p, in->bias);
    float *factor = onxi_arena_array(p->arena, q->padded, sizeof *factor);
    int32_t *bias = onxi_arena_array(p->arena, q->padded, sizeof *bias);
    if (!factor || !bias)
        return ONX_E_MEMORY;
    for (uint64_t c = 0; c < q->padded; c++) {
        const bool there = c < q->channels;
        factor[c] = *(const float *)operand(p, in->x_scale)->data *
                    (there ? ((const float *)scale->data)[scale->count > 1 ? c : 0] : 0);
        factor[c] /= *(const float *)operand(p, in->y_scale)->data;
        bias[c] = b && there ? ((const int32_t *)b->data)[c] : 0;
    }
    q->factor = factor;
    q->bias = bias;
    q->y_is_signed = p->outputs[0]->dtype == ONX_INT8;
    q->y_zero = (int32_t)onxi_value_number(operand(p, in->y_zero), 0);
    return ONX_OK;
}

/* Reads the sizes of a window; with one spatial dim, images are one row. */
static inline bool take_sizes(const onxi_window *win, alone_params *q)
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

/* Are all operands constants of the usual types, except the input and, if sums are not requantized, its zero point? */
static inline bool operands_fit(const onx_prepare *p, const alone_inputs *in)
{
    const onx_value *x = p->inputs[0], *w = operand(p, in->w), *y = p->outputs[0];
    const onx_value *x_zero = operand(p, in->x_zero), *w_zero = operand(p, in->w_zero), *b = operand(p, in->bias);
    const uint64_t channels = (uint64_t)x->dims[1];
    if (!w->data || (w_zero && !is_known(w_zero, w->dtype, channels)) ||
        (x_zero && (x_zero->dtype != x->dtype || x_zero->count != 1)))
        return false;
    if (in->y_scale < 0)
        return y->dtype == ONX_INT32;
    return is_known(operand(p, in->x_scale), ONX_FLOAT, 0) && is_known(operand(p, in->w_scale), ONX_FLOAT, channels) &&
           is_known(operand(p, in->y_scale), ONX_FLOAT, 0) && is_known(operand(p, in->y_zero), y->dtype, 0) &&
           (!b || (is_known(b, ONX_INT32, channels) && b->count == channels));
}

/* Is the convolution depthwise, by the dims of both operands? */
static inline bool are_alone(const onx_prepare *p, const onx_value *x, const onx_value *w)
{
    return x->rank >= 3 && x->rank <= 4 && w->rank == x->rank && x->dims[1] == onx_prepare_int(p, "group") &&
           w->dims[0] == x->dims[1] && w->dims[1] == 1;
}

/* Reads sizes and layouts, which need no operands. */
static inline onx_status alone_sizes(onx_prepare *p, const onx_value *w, alone_params *q)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    onxi_window win;
    if (!p->want || !y || !w || !x->count || !y->count || !are_alone(p, x, w) || y->rank != x->rank ||
        y->dims[1] != x->dims[1] || y->dims[0] != x->dims[0])
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    if (!take_sizes(&win, q) || !onxi_channels_last(p, x, &q->x_layout) || !onxi_channels_last(p, y, &q->y_layout))
        return ONX_E_UNSUPPORTED;
    q->channels = (uint64_t)x->dims[1];
    q->padded = (q->channels + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    q->flip = x->dtype == ONX_INT8 ? 0x80 : 0;
    q->taps = (uint64_t)(q->kernel[0] * q->kernel[1]);
    q->lines = win.batch * (uint64_t)q->out[0];
    return ONX_OK;
}

/* Prepares everything but the weights; the node's outputs are not changed yet. */
static inline onx_status alone_prepare(onx_prepare *p, alone_params *q)
{
    const alone_inputs *at = p->kernel->body;
    ONX_TRY(alone_sizes(p, operand(p, at->w), q));
    if (!operands_fit(p, at))
        return ONX_E_UNSUPPORTED;
    q->gives_sums = at->y_scale < 0;
    return q->gives_sums ? ONX_OK : take_factors(p, at, q);
}

/* Sets layouts and sizes of the work, after the kernel has accepted the node. */
static inline onx_status alone_settle(onx_prepare *p, const alone_params *q)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->want[0] = q->x_layout;
    p->outputs[0]->layout = q->y_layout;
    p->rows = q->lines;
    p->grain = onxi_worth_a_thread(ONXI_COST_ALONE * (uint64_t)q->out[1] * q->channels * q->taps);
    return ONX_OK;
}

/* A weight minus its zero point. */
static inline double weight_at(const onx_value *w, const onx_value *zero, uint64_t taps, uint64_t c, uint64_t tap)
{
    return onxi_value_number(w, c * taps + tap) - (zero ? onxi_value_number(zero, zero->count > 1 ? c : 0) : 0);
}

/* Do all weights, minus their zero points, fit into signed 8-bit integers? */
static inline bool alone_weights_fit(const onx_value *w, const onx_value *zero, uint64_t channels, uint64_t taps)
{
    for (uint64_t i = 0; i < channels * taps; i++) {
        const double v = weight_at(w, zero, taps, i / taps, i % taps);
        if (v < INT8_MIN || v > INT8_MAX)
            return false;
    }
    return true;
}

static const alone_inputs alone_linear = { 1, 2, 3, 4, 5, 6, 7, 8 }, alone_integer = { -1, 2, 1, -1, 3, -1, -1, -1 };
#define ALONE_ROW(name, inputs, preference_)                                                                           \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8),                         \
        .preference = preference_, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT, .flags = ONX_KERNEL_LAYOUTS,            \
        .body = &inputs, .prepare = prepare, .run = run                                                                \
    }

#endif
