/* byte_alone.c - ConvInteger and QLinearConv of channels that are groups of their own, channels last: 64 neighbouring
 * channels at a time, whose bytes of four taps are put side by side and multiplied by one instruction. Taps outside of
 * the image are its zero point, so that what zero points add is the same for all pixels. */
#include "kernel/simd/alone.h"

enum { WIDE = 64, TAPS = 4, PARTS = WIDE / ONXI_LANES };

typedef struct byte_params {
    alone_params q;
    uint64_t blocks, groups; /* of channels, of taps */
    uint64_t together;       /* neighbouring pixels whose channels make one block */
    const int8_t *w;         /* per block, group and part: per channel, its taps */
    const int32_t *sums;     /* of the weights, per block and part; so are these: */
    const int32_t *bias;
    const float *factor;
    const int64_t *offset; /* per tap: bytes from where a window begins */
} byte_params;

/* Of a block, the channel whose sum is in a lane of a part: as bytes come to lie that are interleaved twice, within 16
 * bytes each. */
static inline uint64_t channel_of(uint64_t part, uint64_t lane)
{
    return lane / 4 * 16 + part * 4 + lane % 4;
}

/* Where the taps of a window are; a mask of 0: in `outside`, for all channels. */
typedef struct byte_window {
    const uint8_t *at[TAPS_MAX + TAPS];
    uint64_t moves[TAPS_MAX + TAPS];
    uint8_t outside[WIDE];
} byte_window;

static inline __m512i load_tap(const byte_window *win, uint64_t tap, uint64_t c, __mmask64 there, __m512i flip)
{
    return _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, win->at[tap] + (win->moves[tap] & c)), flip);
}

/* The bytes of numbers whose low ones are asked for, from lanes to channels. */
static inline __m512i bytes_in_order(const __m512i v[PARTS])
{
    const __m512i low = _mm512_set1_epi32(0xff);
    const __m512i a = _mm512_packus_epi32(_mm512_and_si512(v[0], low), _mm512_and_si512(v[1], low));
    const __m512i b = _mm512_packus_epi32(_mm512_and_si512(v[2], low), _mm512_and_si512(v[3], low));
    return _mm512_packus_epi16(a, b);
}

static inline void store_sums(const __m512i v[PARTS], uint64_t n, int32_t *y)
{
    int32_t lanes[PARTS][ONXI_LANES], line[WIDE];
    memcpy(lanes, v, sizeof lanes);
    for (uint64_t part = 0; part < PARTS; part++)
        for (uint64_t lane = 0; lane < ONXI_LANES; lane += 4)
            memcpy(line + channel_of(part, lane), &lanes[part][lane], 4 * sizeof *line);
    memcpy(y, line, n * sizeof *line);
}

/* The `n` channels of a block, of a pixel or of neighbouring ones. */
static inline void block_of(const byte_params *d, const byte_window *win, uint64_t block, uint64_t n,
                            const int32_t *begin, void *pixel)
{
    const alone_params *q = &d->q;
    const uint64_t c = block * WIDE;
    const __mmask64 there = n < WIDE ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
    const __m512i flip = _mm512_set1_epi8((char)q->flip);
    const int8_t *w = d->w + block * d->groups * WIDE * TAPS;
    __m512i sum[PARTS];
    for (int i = 0; i < PARTS; i++)
        sum[i] = _mm512_loadu_si512(begin + c + (uint64_t)i * ONXI_LANES);
    for (uint64_t g = 0; g < d->groups; g++, w += WIDE * TAPS) {
        const __m512i t0 = load_tap(win, g * TAPS, c, there, flip), t1 = load_tap(win, g * TAPS + 1, c, there, flip);
        const __m512i t2 = load_tap(win, g * TAPS + 2, c, there, flip),
                      t3 = load_tap(win, g * TAPS + 3, c, there, flip);
        const __m512i a = _mm512_unpacklo_epi8(t0, t1), b = _mm512_unpacklo_epi8(t2, t3);
        const __m512i e = _mm512_unpackhi_epi8(t0, t1), f = _mm512_unpackhi_epi8(t2, t3);
        sum[0] = _mm512_dpbusd_epi32(sum[0], _mm512_unpacklo_epi16(a, b), _mm512_loadu_si512(w));
        sum[1] = _mm512_dpbusd_epi32(sum[1], _mm512_unpackhi_epi16(a, b), _mm512_loadu_si512(w + WIDE));
        sum[2] = _mm512_dpbusd_epi32(sum[2], _mm512_unpacklo_epi16(e, f), _mm512_loadu_si512(w + 2 * WIDE));
        sum[3] = _mm512_dpbusd_epi32(sum[3], _mm512_unpackhi_epi16(e, f), _mm512_loadu_si512(w + 3 * WIDE));
    }
    if (q->gives_sums) {
        store_sums(sum, n, (int32_t *)pixel + c);
        return;
    }
    const int32_t least = (q->y_is_signed ? -128 : 0) - q->y_zero;
    for (int i = 0; i < PARTS; i++)
        sum[i] = (__m512i)requantized((onxi_vi)sum[i], vf_load(d->factor + c + (uint64_t)i * ONXI_LANES), least,
                                      least + 255, q->y_zero);
    _mm512_mask_storeu_epi8((char *)pixel + c, there, bytes_in_order(sum));
}

/* ---- running ---- */

/* The windows of `pixels` neighbours, the first of which begins at line `y` and column `x`, either of which may lie
 * outside; false: not all are inside, and the first one alone is found. */
static inline bool find_taps(const byte_params *d, const uint8_t *image, int64_t y, int64_t x, uint64_t pixels,
                             byte_window *win)
{
    const alone_params *q = &d->q;
    const int64_t from = (y * q->in[1] + x) * (int64_t)q->channels;
    const int64_t reach = (q->kernel[1] - 1) * q->dilation[1] + (int64_t)pixels - 1;
    if (y >= 0 && x >= 0 && y + (q->kernel[0] - 1) * q->dilation[0] < q->in[0] && x + reach < q->in[1]) {
        for (uint64_t k = 0; k < q->taps; k++) {
            win->at[k] = image + (from + d->offset[k]);
            win->moves[k] = UINT64_MAX;
        }
        return true;
    }
    for (int64_t i = 0; i < q->kernel[0]; i++)
        for (int64_t j = 0; j < q->kernel[1]; j++) {
            const int64_t k = i * q->kernel[1] + j, line = y + i * q->dilation[0], column = x + j * q->dilation[1];
            const bool inside = line >= 0 && line < q->in[0] && column >= 0 && column < q->in[1];
            win->at[k] = inside ? image + (from + d->offset[k]) : win->outside;
            win->moves[k] = inside ? UINT64_MAX : 0;
        }
    return false;
}

/* A row is a line of an image of the result. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const byte_params *d = work->params;
    const alone_params *q = &d->q;
    const alone_inputs *in = work->prepared->kernel->body;
    const onx_value *zero =
        in->x_zero < 0 ? NULL : onxi_operand(work->prepared->input_count, work->inputs, (uint32_t)in->x_zero);
    const uint8_t outside = zero ? *(const uint8_t *)zero->data : 0;
    const int32_t x_zero = outside ^ q->flip;
    const uint64_t width = q->gives_sums ? sizeof(int32_t) : 1;
    int32_t *begin = work->thread_workspace;
    byte_window win;
    memset(win.outside, outside, sizeof win.outside);
    for (uint64_t k = q->taps; k < d->groups * TAPS; k++) {
        win.at[k] = win.outside;
        win.moves[k] = 0;
    }
    for (uint64_t i = 0; i < d->blocks * WIDE; i++) /* which wraps, as sums of the plain rows do */
        begin[i] = (int32_t)((uint32_t)d->bias[i] - (uint32_t)x_zero * (uint32_t)d->sums[i]);
    for (uint64_t row = first; row < last; row++) {
        const uint64_t n = row / (uint64_t)q->out[0], line = row % (uint64_t)q->out[0];
        char *y = (char *)work->outputs[0]->data + row * (uint64_t)q->out[1] * q->channels * width;
        const uint8_t *image =
            (const uint8_t *)work->inputs[0]->data + n * (uint64_t)(q->in[0] * q->in[1]) * q->channels;
        for (uint64_t x = 0, pixels; x < (uint64_t)q->out[1]; x += pixels, y += pixels * q->channels * width) {
            pixels = (uint64_t)q->out[1] - x < d->together ? (uint64_t)q->out[1] - x : d->together;
            if (!find_taps(d, image, (int64_t)line * q->stride[0] - q->pad[0], (int64_t)x * q->stride[1] - q->pad[1],
                           pixels, &win))
                pixels = 1;
            const uint64_t bytes = pixels * q->channels;
            for (uint64_t block = 0; block < d->blocks; block++)
                block_of(d, &win, block, bytes - block * WIDE < WIDE ? bytes - block * WIDE : WIDE, begin, y);
        }
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* The numbers of channels in the order of lanes. */
static void in_lanes(const byte_params *d, int8_t *w, int32_t *sums, int32_t *bias, float *factor,
                     const onx_value *from, const onx_value *zero, bool *fits)
{
    const alone_params *q = &d->q;
    for (uint64_t i = 0; i < d->blocks * WIDE; i++) {
        const uint64_t block = i / WIDE, part = i % WIDE / ONXI_LANES, lane = i % ONXI_LANES;
        const uint64_t at = block * WIDE + channel_of(part, lane), c = at % q->channels;
        if (at >= q->channels * d->together)
            continue;
        if (!q->gives_sums) {
            bias[i] = q->bias[c];
            factor[i] = q->factor[c];
        }
        for (uint64_t k = 0; k < q->taps; k++) {
            const double v = weight_at(from, zero, q->taps, c, k);
            *fits &= v >= INT8_MIN && v <= INT8_MAX;
            if (!*fits)
                return;
            w[((block * d->groups + k / TAPS) * PARTS + part) * WIDE + lane * TAPS + k % TAPS] = (int8_t)v;
            sums[i] += (int32_t)v;
        }
    }
}

/* Places in an image, and of windows that begin before it or end behind it, are numbers of 62 bits. */
static bool places_fit(const alone_params *q)
{
    uint64_t size = q->channels;
    for (int d = DIMS - 1; d >= 0; d--) {
        const uint64_t reach = (uint64_t)q->pad[d] + (uint64_t)(q->kernel[d] * q->dilation[d]) +
                               (uint64_t)(q->out[d] * q->stride[d]) + (uint64_t)q->in[d];
        if (!onxi_mul_u64(size, reach, &size) || size > INT64_MAX / 2)
            return false;
    }
    return true;
}

static onx_status prepare(onx_prepare *p)
{
    const alone_inputs *in = p->kernel->body;
    byte_params *d = ONXI_NEW(p->arena, byte_params);
    bool fits = true;
    if (!d)
        return ONX_E_MEMORY;
    alone_params *q = &d->q;
    ONX_TRY(alone_prepare(p, q));
    if (!places_fit(q))
        return ONX_E_UNSUPPORTED;
    d->blocks = (q->channels + WIDE - 1) / WIDE;
    d->groups = (q->taps + TAPS - 1) / TAPS;
    d->together = q->channels < WIDE && q->stride[1] == 1 ? WIDE / q->channels : 1;
    const uint64_t lanes = d->blocks * WIDE;
    int8_t *w = onxi_arena_array(p->arena, lanes, d->groups * TAPS);
    int32_t *sums = onxi_arena_array(p->arena, lanes, sizeof *sums),
            *bias = onxi_arena_array(p->arena, lanes, sizeof *bias);
    float *factor = onxi_arena_array(p->arena, lanes, sizeof *factor);
    int64_t *offset = onxi_arena_array(p->arena, q->taps, sizeof *offset);
    if (!w || !sums || !bias || !factor || !offset)
        return ONX_E_MEMORY;
    memset(w, 0, lanes * d->groups * TAPS);
    memset(sums, 0, lanes * sizeof *sums);
    memset(bias, 0, lanes * sizeof *bias);
    memset(factor, 0, lanes * sizeof *factor);
    in_lanes(d, w, sums, bias, factor, operand(p, in->w), operand(p, in->w_zero), &fits);
    if (!fits)
        return ONX_E_UNSUPPORTED;
    for (int64_t k = 0; k < (int64_t)q->taps; k++)
        offset[k] =
            (k / q->kernel[1] * q->dilation[0] * q->in[1] + k % q->kernel[1] * q->dilation[1]) * (int64_t)q->channels;
    d->w = w;
    d->sums = sums;
    d->bias = bias;
    d->factor = factor;
    d->offset = offset;
    p->thread_workspace = lanes * sizeof(int32_t);
    p->params = d;
    return alone_settle(p, q);
}

const onx_kernel ONXI_LEVELED(onxi_kernels_byte_alone)[] = { ALONE_ROW("QLinearConv", alone_linear, 4),
                                                             ALONE_ROW("ConvInteger", alone_integer, 4),
                                                             { 0 } };
