/* quantize_alone.c - ConvInteger and QLinearConv of channels that are groups of their own, channels last: a vector of
 * neighbouring channels at a time. Sums are floats, which hold them to the bit; QLinearConv quantizes them again as the
 * plain rows do it. */
#include "kernel/core/blocked.h"
#include "kernel/simd/round.h"

enum { DIMS = 2, VECTORS = 4, TAPS_MAX = 256 /* of numbers up to 255 times 255 each, below 2^24 */ };

/* Which inputs there are; -1: none. */
typedef struct alone_inputs {
    int x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} alone_inputs;

typedef struct alone_params {
    uint64_t channels, padded; /* padded to whole vectors */
    int64_t in[DIMS], out[DIMS], kernel[DIMS], stride[DIMS], dilation[DIMS], pad[DIMS];
    uint8_t flip; /* signed bytes are read as unsigned ones, with their zero point */
    int32_t y_zero;
    bool y_is_signed;
    bool gives_sums;
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

/* A pixel of the result: where it lies, where its window begins, and which taps of that lie within the image. */
typedef struct alone_pixel {
    const uint8_t *image;
    void *y;
    float x_zero; /* as bytes are read */
    int64_t from[DIMS], first[DIMS], end[DIMS];
} alone_pixel;

/* Sums, or those quantized again: of some channels, n of them. */
static inline void finish(const alone_params *q, onxi_vf sum, uint64_t c, uint64_t n, void *to)
{
    onxi_vu shift, sums = (onxi_vu) __builtin_convertvector(sum, onxi_vi);
    uint8_t *y = to;
    if (q->gives_sums) {
        memcpy((int32_t *)to + c, &sums, n == ONXI_LANES ? sizeof sums : (size_t)n * sizeof(int32_t));
        return;
    }
    memcpy(&shift, q->bias + c, sizeof shift);
    sums += shift; /* which wraps, as sums of the plain rows do */
    const int32_t least = q->y_is_signed ? -128 : 0;
    const onxi_vi whole = requantized((onxi_vi)sums, vf_load(q->factor + c), (double)(least - q->y_zero),
                                      (double)(least + 255 - q->y_zero), q->y_zero);
    const byte_line bytes = bytes_of(whole);
    memcpy(y + c, &bytes, n == ONXI_LANES ? sizeof bytes : (size_t)n);
}

/* Some vectors of channels of a pixel; n: how many channels the last vector has. */
__attribute__((always_inline)) static inline void some(const alone_params *q, const alone_pixel *at, uint64_t c,
                                                       uint64_t n, const int vectors)
{
    onxi_vf sum[VECTORS];
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_all(0);
    for (int64_t i = at->first[0]; i < at->end[0]; i++) {
        const int64_t line = (at->from[0] + i * q->dilation[0]) * q->in[1] + at->from[1];
        const uint8_t *x = at->image + (line + at->first[1] * q->dilation[1]) * (int64_t)q->channels + c;
        const float *w = q->w + (uint64_t)(i * q->kernel[1] + at->first[1]) * q->padded + c;
        for (int64_t j = at->first[1]; j < at->end[1]; j++, x += (uint64_t)q->dilation[1] * q->channels, w += q->padded)
            for (int v = 0; v < vectors; v++)
                sum[v] += (floats_of(x + v * ONXI_LANES, vectors > 1 ? ONXI_LANES : n, q->flip) - at->x_zero) *
                          vf_load(w + v * ONXI_LANES);
    }
    for (int v = 0; v < vectors; v++)
        finish(q, sum[v], c + (uint64_t)v * ONXI_LANES, vectors > 1 ? ONXI_LANES : n, at->y);
}

/* A row is a line of an image of the result. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const alone_params *q = work->params;
    const alone_inputs *in = work->prepared->kernel->body;
    const onx_value *zero = onxi_operand(work->prepared->input_count, work->inputs, (uint32_t)in->x_zero);
    const uint64_t width = q->gives_sums ? sizeof(int32_t) : 1;
    alone_pixel at = { .x_zero = (float)((zero ? onxi_value_number(zero, 0) : 0) + (q->flip ? 128 : 0)) };
    for (uint64_t row = first; row < last; row++) {
        const uint64_t n = row / (uint64_t)q->out[0], line = row % (uint64_t)q->out[0];
        char *y = (char *)work->outputs[0]->data + row * (uint64_t)q->out[1] * q->channels * width;
        at.image = (const uint8_t *)work->inputs[0]->data + n * (uint64_t)(q->in[0] * q->in[1]) * q->channels;
        for (int64_t x = 0; x < q->out[1]; x++, y += q->channels * width) {
            at.y = y;
            at.from[0] = (int64_t)line * q->stride[0] - q->pad[0];
            at.from[1] = x * q->stride[1] - q->pad[1];
            for (int d = 0; d < DIMS; d++)
                taps_within(q, d, at.from[d], &at.first[d], &at.end[d]);
            uint64_t c = 0;
            for (; c + VECTORS * ONXI_LANES <= q->channels; c += VECTORS * ONXI_LANES)
                some(q, &at, c, ONXI_LANES, VECTORS);
            for (; c < q->channels; c += ONXI_LANES)
                some(q, &at, c, q->channels - c < ONXI_LANES ? q->channels - c : ONXI_LANES, 1);
        }
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static const onx_value *operand(const onx_prepare *p, int input)
{
    return input < 0 ? NULL : onxi_operand(p->input_count, p->inputs, (uint32_t)input);
}

/* A constant operand of such a type, of one number or of one for each channel. */
static bool is_known(const onx_value *v, int dtype, uint64_t channels)
{
    return v && v->data && v->dtype == dtype && (v->count == 1 || (v->rank == 1 && v->count == channels));
}

/* What sums are quantized by. */
static onx_status take_factors(onx_prepare *p, const alone_inputs *in, alone_params *q)
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

static onx_status take_weights(onx_prepare *p, const alone_inputs *in, alone_params *q)
{
    const onx_value *w = operand(p, in->w), *zero = operand(p, in->w_zero);
    const uint64_t taps = (uint64_t)(q->kernel[0] * q->kernel[1]);
    float *weights = onxi_arena_array(p->arena, taps * q->padded, sizeof *weights);
    if (!weights)
        return ONX_E_MEMORY;
    memset(weights, 0, taps * q->padded * sizeof *weights);
    for (uint64_t c = 0; c < q->channels; c++) {
        const double less = zero ? onxi_value_number(zero, zero->count > 1 ? c : 0) : 0;
        for (uint64_t k = 0; k < taps; k++)
            weights[k * q->padded + c] = (float)(onxi_value_number(w, c * taps + k) - less);
    }
    q->w = weights;
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

/* Are all operands but the input, and its zero point where nothing is quantized again, constants of the usual types? */
static bool operands_fit(const onx_prepare *p, const alone_inputs *in)
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

static onx_status prepare(onx_prepare *p)
{
    const alone_inputs *at = p->kernel->body;
    const onx_value *x = p->inputs[0], *w = operand(p, at->w), *y = p->outputs[0];
    const onx_layout *in, *out;
    onxi_window win;
    if (!p->want || !y || !w || !x->count || !y->count || x->rank < 3 || x->rank > 4 || w->rank != x->rank ||
        y->rank != x->rank || x->dims[1] != onx_prepare_int(p, "group") || w->dims[0] != x->dims[1] ||
        w->dims[1] != 1 || y->dims[1] != x->dims[1] || y->dims[0] != x->dims[0] || !operands_fit(p, at))
        return ONX_E_UNSUPPORTED;
    const uint64_t channels = (uint64_t)x->dims[1];
    alone_params *q = ONXI_NEW(p->arena, alone_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    if (!take_sizes(&win, q) || !onxi_channels_last(p, x, &in) || !onxi_channels_last(p, y, &out))
        return ONX_E_UNSUPPORTED;
    q->channels = channels;
    q->padded = (channels + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    q->flip = x->dtype == ONX_INT8 ? 0x80 : 0;
    q->gives_sums = at->y_scale < 0;
    ONX_TRY(take_weights(p, at, q));
    if (!q->gives_sums)
        ONX_TRY(take_factors(p, at, q));
    const uint64_t taps = (uint64_t)(q->kernel[0] * q->kernel[1]);
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->want[0] = in;
    p->outputs[0]->layout = out;
    p->params = q;
    p->rows = win.batch * (uint64_t)q->out[0];
    p->grain = onxi_worth_a_thread(ONXI_COST_ALONE * (uint64_t)q->out[1] * channels * taps);
    return ONX_OK;
}

static const alone_inputs linear = { 1, 2, 3, 4, 5, 6, 7, 8 }, integer = { -1, 2, 1, -1, 3, -1, -1, -1 };
#define ROW(name, inputs)                                                                                              \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8), .preference = 3,        \
        .isa = ONXI_LEVEL, .variant = ONXI_VARIANT, .flags = ONX_KERNEL_LAYOUTS, .body = &inputs, .prepare = prepare,  \
        .run = run                                                                                                     \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize_alone)[] = { ROW("QLinearConv", linear),
                                                                      ROW("ConvInteger", integer),
                                                                      { 0 } };
