/* quantize_alone.c - depthwise ConvInteger and QLinearConv with channels last: a vector of neighbouring channels at a
 * time. Sums are floats, which represent them exactly; QLinearConv requantizes them like the plain rows. */
#include "kernel/simd/alone.h"

#if !ONXI_PLATFORM_ROOMY
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize_alone)[] = { { 0 } };
#else

enum { VECTORS = 4 };

/* A pixel of the result: its address, the beginning of its window, and the taps that are inside the image. */
typedef struct alone_pixel {
    const uint8_t *image;
    void *y;
    float x_zero; /* for bytes that are read as unsigned */
    int64_t from[DIMS], first[DIMS], end[DIMS];
} alone_pixel;

/* Stores the sums of n channels from c on, or requantizes them. */
static inline void finish(const alone_params *q, onxi_vf sum, uint64_t c, uint64_t n, void *to)
{
    onxi_vu shift, sums = (onxi_vu) __builtin_convertvector(sum, onxi_vi);
    uint8_t *y = to;
    if (q->gives_sums) {
        memcpy((int32_t *)to + c, &sums, n == ONXI_LANES ? sizeof sums : (size_t)n * sizeof(int32_t));
        return;
    }
    memcpy(&shift, q->bias + c, sizeof shift);
    sums += shift; /* wraps, like the sums of the plain rows */
    const int32_t least = q->y_is_signed ? -128 : 0;
    const onxi_vi whole = requantized((onxi_vi)sums, vf_load(q->factor + c), (float)(least - q->y_zero),
                                      (float)(least + 255 - q->y_zero), q->y_zero);
    const byte_line bytes = bytes_of(whole);
    memcpy(y + c, &bytes, n == ONXI_LANES ? sizeof bytes : (size_t)n);
}

/* Computes `vectors` vectors of channels of a pixel; n: the number of channels of the last vector. */
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

static onx_status prepare(onx_prepare *p)
{
    const alone_inputs *in = p->kernel->body;
    alone_params *q = ONXI_NEW(p->arena, alone_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(alone_prepare(p, q));
    const onx_value *w = operand(p, in->w), *zero = operand(p, in->w_zero);
    float *weights = onxi_arena_array(p->arena, q->taps * q->padded, sizeof *weights);
    if (!weights)
        return ONX_E_MEMORY;
    memset(weights, 0, q->taps * q->padded * sizeof *weights);
    for (uint64_t c = 0; c < q->channels; c++)
        for (uint64_t k = 0; k < q->taps; k++)
            weights[k * q->padded + c] = (float)weight_at(w, zero, q->taps, c, k);
    q->w = weights;
    p->params = q;
    return alone_settle(p, q);
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize_alone)[] = { ALONE_ROW("QLinearConv", alone_linear, 3),
                                                                      ALONE_ROW("ConvInteger", alone_integer, 3),
                                                                      { 0 } };
#endif
