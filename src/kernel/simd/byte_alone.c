/* byte_alone.c - ConvInteger and QLinearConv of channels that are groups of their own, channels last: 64 neighbouring
 * bytes at a time, whichever pixels they are of, whose four taps are put side by side and multiplied by one
 * instruction. Taps outside of the image are its zero point, so that what zero points add is the same for all pixels.
 */
#include "kernel/simd/alone.h"

enum { WIDE = 64, TAPS = 4, PARTS = WIDE / ONXI_LANES };

typedef struct byte_params {
    alone_params q;
    uint64_t blocks, groups; /* of bytes, of taps */
    uint64_t together;       /* neighbouring pixels whose channels are whole blocks; 1: there need be no such */
    bool in_runs;            /* those after them go on with the first block */
    uint64_t outside;        /* bytes of what taps outside of the image read */
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

static inline __m512i load_tap(const uint8_t *at, __mmask64 there, const bool flips)
{
    const __m512i v = _mm512_maskz_loadu_epi8(there, at);
    return flips ? _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80)) : v;
}

/* sum += products of the bytes behind the taps `at`, from `i` on, by the weights of a block. */
__attribute__((always_inline)) static inline void multiply(const uint8_t *const *at, uint64_t i, __mmask64 there,
                                                           const int8_t *w, const uint64_t groups, const bool flips,
                                                           __m512i sum[PARTS])
{
    for (uint64_t g = 0; g < groups; g++, at += TAPS, w += WIDE * TAPS) {
        const __m512i t0 = load_tap(at[0] + i, there, flips), t1 = load_tap(at[1] + i, there, flips);
        const __m512i t2 = load_tap(at[2] + i, there, flips), t3 = load_tap(at[3] + i, there, flips);
        const __m512i a = _mm512_unpacklo_epi8(t0, t1), b = _mm512_unpacklo_epi8(t2, t3);
        const __m512i e = _mm512_unpackhi_epi8(t0, t1), f = _mm512_unpackhi_epi8(t2, t3);
        sum[0] = _mm512_dpbusd_epi32(sum[0], _mm512_unpacklo_epi16(a, b), _mm512_loadu_si512(w));
        sum[1] = _mm512_dpbusd_epi32(sum[1], _mm512_unpackhi_epi16(a, b), _mm512_loadu_si512(w + WIDE));
        sum[2] = _mm512_dpbusd_epi32(sum[2], _mm512_unpacklo_epi16(e, f), _mm512_loadu_si512(w + 2 * WIDE));
        sum[3] = _mm512_dpbusd_epi32(sum[3], _mm512_unpackhi_epi16(e, f), _mm512_loadu_si512(w + 3 * WIDE));
    }
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

/* The bytes of neighbouring pixels, block by block. `begin`: what the sums begin with. */
__attribute__((always_inline)) static inline void run_of(const byte_params *d, const uint8_t *const *at, uint64_t bytes,
                                                         const int32_t *begin, const uint64_t groups, const bool flips,
                                                         void *to)
{
    const alone_params *q = &d->q;
    const int32_t least = (q->y_is_signed ? -128 : 0) - q->y_zero;
    for (uint64_t i = 0, block = 0; i < bytes; i += WIDE, block = block + 1 < d->blocks ? block + 1 : 0) {
        const __mmask64 there = bytes - i < WIDE ? (UINT64_C(1) << (bytes - i)) - 1 : UINT64_MAX;
        __m512i sum[PARTS];
        for (uint64_t k = 0; k < PARTS; k++)
            sum[k] = _mm512_loadu_si512(begin + block * WIDE + k * ONXI_LANES);
        multiply(at, i, there, d->w + block * groups * WIDE * TAPS, groups, flips, sum);
        if (q->gives_sums) {
            store_sums(sum, bytes - i < WIDE ? bytes - i : WIDE, (int32_t *)to + i);
            continue;
        }
        for (uint64_t k = 0; k < PARTS; k++)
            sum[k] = (__m512i)requantized((onxi_vi)sum[k], vf_load(d->factor + block * WIDE + k * ONXI_LANES), least,
                                          least + 255, q->y_zero);
        _mm512_mask_storeu_epi8((char *)to + i, there, bytes_in_order(sum));
    }
}

/* Windows of nine taps are the most usual ones. */
static void any_run(const byte_params *d, const uint8_t *const *at, uint64_t bytes, const int32_t *begin, void *to)
{
    if (d->q.flip)
        run_of(d, at, bytes, begin, d->groups, true, to);
    else if (d->groups == 3)
        run_of(d, at, bytes, begin, 3, false, to);
    else
        run_of(d, at, bytes, begin, d->groups, false, to);
}

/* ---- running ---- */

/* Where the taps of neighbouring windows are, the first of which begins at line `y` and column `x`; returns how many
 * of the `pixels` these are: one where not all of its columns are inside. */
static inline uint64_t find_taps(const byte_params *d, const uint8_t *image, int64_t y, int64_t x, uint64_t pixels,
                                 const uint8_t *outside, const uint8_t **at)
{
    const alone_params *q = &d->q;
    const int64_t from = (y * q->in[1] + x) * (int64_t)q->channels, reach = (q->kernel[1] - 1) * q->dilation[1];
    const bool within = x >= 0 && x + reach < q->in[1];
    if (within && y >= 0 && y + (q->kernel[0] - 1) * q->dilation[0] < q->in[0]) {
        for (uint64_t k = 0; k < q->taps; k++)
            at[k] = image + (from + d->offset[k]);
    } else {
        for (int64_t i = 0; i < q->kernel[0]; i++)
            for (int64_t j = 0; j < q->kernel[1]; j++) {
                const int64_t k = i * q->kernel[1] + j, line = y + i * q->dilation[0], column = x + j * q->dilation[1];
                const bool inside = line >= 0 && line < q->in[0] && column >= 0 && column < q->in[1];
                at[k] = inside ? image + (from + d->offset[k]) : outside;
            }
    }
    if (!within || !d->in_runs)
        return 1;
    return (uint64_t)(q->in[1] - reach - x) < pixels ? (uint64_t)(q->in[1] - reach - x) : pixels;
}

/* A row is a line of an image of the result. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const byte_params *d = work->params;
    const alone_params *q = &d->q;
    const alone_inputs *in = work->prepared->kernel->body;
    const onx_value *zero =
        in->x_zero < 0 ? NULL : onxi_operand(work->prepared->input_count, work->inputs, (uint32_t)in->x_zero);
    const uint8_t none = zero ? *(const uint8_t *)zero->data : 0;
    const int32_t x_zero = none ^ q->flip;
    const uint64_t width = q->gives_sums ? sizeof(int32_t) : 1;
    int32_t *begin = work->thread_workspace;
    uint8_t *outside = (uint8_t *)(begin + d->blocks * WIDE);
    const uint8_t *at[TAPS_MAX + TAPS];
    memset(outside, none, d->outside);
    for (uint64_t k = q->taps; k < d->groups * TAPS; k++)
        at[k] = outside;
    for (uint64_t i = 0; i < d->blocks * WIDE; i++) /* which wraps, as sums of the plain rows do */
        begin[i] = (int32_t)((uint32_t)d->bias[i] - (uint32_t)x_zero * (uint32_t)d->sums[i]);
    for (uint64_t row = first; row < last; row++) {
        const uint64_t n = row / (uint64_t)q->out[0], line = row % (uint64_t)q->out[0];
        char *y = (char *)work->outputs[0]->data + row * (uint64_t)q->out[1] * q->channels * width;
        const uint8_t *image =
            (const uint8_t *)work->inputs[0]->data + n * (uint64_t)(q->in[0] * q->in[1]) * q->channels;
        for (uint64_t x = 0, pixels; x < (uint64_t)q->out[1]; x += pixels, y += pixels * q->channels * width) {
            pixels = find_taps(d, image, (int64_t)line * q->stride[0] - q->pad[0],
                               (int64_t)x * q->stride[1] - q->pad[1], (uint64_t)q->out[1] - x, outside, at);
            any_run(d, at, pixels * q->channels, begin, y);
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

/* Neighbouring pixels go in one run where their windows are a step of one apart, and the weights of as many of them as
 * make whole blocks are few enough. */
static void cut_runs(byte_params *d)
{
    enum { MOST = 64 << 10 }; /* bytes of weights */
    const alone_params *q = &d->q;
    uint64_t together = WIDE;
    while (together > 1 && q->channels * (together / 2) % WIDE == 0)
        together /= 2;
    d->in_runs = q->stride[1] == 1 && (together == 1 || q->channels * together * d->groups * TAPS <= MOST);
    d->together = d->in_runs ? together : 1;
    d->blocks = (q->channels * d->together + WIDE - 1) / WIDE;
    d->outside = (d->in_runs ? (uint64_t)q->out[1] : 1) * q->channels;
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
    d->groups = (q->taps + TAPS - 1) / TAPS;
    cut_runs(d);
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
    p->thread_workspace = lanes * sizeof(int32_t) + d->outside;
    p->params = d;
    return alone_settle(p, q);
}

const onx_kernel ONXI_LEVELED(onxi_kernels_byte_alone)[] = { ALONE_ROW("QLinearConv", alone_linear, 4),
                                                             ALONE_ROW("ConvInteger", alone_integer, 4),
                                                             { 0 } };
