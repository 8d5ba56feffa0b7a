/* byte_alone.c - depthwise convolutions of 8-bit integers with channels last. The loop takes 64 contiguous bytes at a
 * time, which may belong to several pixels. It interleaves four taps of each byte, and one instruction multiplies and
 * accumulates them. Taps outside of the image read the zero point of the input, so the correction for zero points is
 * the same for all pixels. */
#include "kernel/simd/alone.h"
#include "kernel/simd/byte_columns.h"

enum { WIDE = 64, TAPS = 4, PARTS = WIDE / ONXI_LANES };

typedef struct byte_params {
    alone_params q;
    finish_kind kind;
    float low, high;  /* AGAIN: as in `finish`; else bounds of the floats before quantization */
    simd_posts posts; /* other post-ops on these floats */
    float y_scale;
    int32_t x_zero_at;       /* input index of the zero point; -1: none */
    uint64_t blocks, groups; /* blocks of 64 bytes; groups of four taps */
    uint64_t together;       /* number of neighbouring pixels whose channels fill whole blocks; 1: not used */
    bool in_runs;            /* neighbouring pixels form runs: after `together` pixels, the blocks repeat */
    uint64_t outside;        /* size in bytes of the buffer that taps outside of the image read */
    const int8_t *w;         /* per block, group and part: four taps for each channel */
    const int32_t *sums;     /* per block and part: sums of the weights; the next three have the same order */
    const int32_t *bias;
    const float *factor;
    const float *shift;    /* only for floats */
    const int64_t *offset; /* per tap: byte offset from the beginning of a window */
} byte_params;

/* The channel, relative to its block, whose sum is in this lane of this part. The order results from interleaving
 * twice, within each 16 bytes. */
static inline uint64_t channel_of(uint64_t part, uint64_t lane)
{
    return lane / 4 * 16 + part * 4 + lane % 4;
}

static inline __m512i load_tap(const uint8_t *at, __mmask64 there, const bool flips)
{
    const __m512i v = _mm512_maskz_loadu_epi8(there, at);
    return flips ? _mm512_xor_si512(v, _mm512_set1_epi8((char)0x80)) : v;
}

/* sum += products of the bytes at[tap] + i .. and the weights of a block. */
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

/* Takes the low byte of each lane, and restores the order of channels. */
static inline __m512i bytes_in_order(const __m512i v[PARTS])
{
    const __m512i low = _mm512_set1_epi32(0xff);
    const __m512i a = _mm512_packus_epi32(_mm512_and_si512(v[0], low), _mm512_and_si512(v[1], low));
    const __m512i b = _mm512_packus_epi32(_mm512_and_si512(v[2], low), _mm512_and_si512(v[3], low));
    return _mm512_packus_epi16(a, b);
}

/* Restores the order of channels, and stores the first n 32-bit elements. */
static inline void store_numbers(const __m512i v[PARTS], uint64_t n, int32_t *y)
{
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x88), b = _mm512_shuffle_i32x4(v[2], v[3], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xdd), d = _mm512_shuffle_i32x4(v[2], v[3], 0xdd);
    const __m512i lines[PARTS] = { _mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(c, d, 0x88),
                                   _mm512_shuffle_i32x4(a, b, 0xdd), _mm512_shuffle_i32x4(c, d, 0xdd) };
    for (uint64_t k = 0; k < PARTS && k * ONXI_LANES < n; k++) {
        const uint64_t left = n - k * ONXI_LANES;
        _mm512_mask_storeu_epi32(y + k * ONXI_LANES, (__mmask16)(left < ONXI_LANES ? (1u << left) - 1 : 0xffffu),
                                 lines[k]);
    }
}

/* Converts the sums of a block to float, applies post-ops, and stores floats or quantized bytes. */
static inline void finish_floats_of(const byte_params *d, uint64_t block, const __m512i sum[PARTS], uint64_t n,
                                    void *to)
{
    const float least = (float)((d->q.y_is_signed ? -128 : 0) - d->q.y_zero);
    onxi_vf x[PARTS];
    __m512i v[PARTS];
    for (uint64_t k = 0; k < PARTS; k++) {
        const uint64_t c = block * WIDE + k * ONXI_LANES;
        x[k] = __builtin_convertvector((onxi_vi)sum[k], onxi_vf) * vf_load(d->factor + c) + vf_load(d->shift + c);
        x[k] = bounded(x[k], vf_all(d->low), vf_all(d->high));
    }
    if (d->posts.count) {
        float all[WIDE];
        memcpy(all, x, sizeof all);
        for (uint32_t i = 0; i < d->posts.count; i++)
            post_apply(&d->posts.list[i], all, WIDE, 1, PARTS, NULL, all, 0); /* these post-ops have no operands */
        memcpy(x, all, sizeof all);
    }
    if (d->kind == AS_FLOATS) {
        memcpy(v, x, sizeof v);
        store_numbers(v, n, to);
        return;
    }
    for (uint64_t k = 0; k < PARTS; k++)
        v[k] = (__m512i)quantized(x[k], vf_all(d->y_scale), least, least + 255, d->q.y_zero);
    _mm512_mask_storeu_epi8(to, n < WIDE ? (UINT64_C(1) << n) - 1 : UINT64_MAX, bytes_in_order(v));
}

/* Computes the results of neighbouring pixels, block by block. `begin`: the initial values of the sums. */
__attribute__((always_inline)) static inline void run_of(const byte_params *d, const uint8_t *const *at, uint64_t bytes,
                                                         const int32_t *begin, const uint64_t groups, const bool flips,
                                                         void *to)
{
    const alone_params *q = &d->q;
    for (uint64_t i = 0, block = 0; i < bytes; i += WIDE, block = block + 1 < d->blocks ? block + 1 : 0) {
        const __mmask64 there = bytes - i < WIDE ? (UINT64_C(1) << (bytes - i)) - 1 : UINT64_MAX;
        __m512i sum[PARTS];
        for (uint64_t k = 0; k < PARTS; k++)
            sum[k] = _mm512_loadu_si512(begin + block * WIDE + k * ONXI_LANES);
        multiply(at, i, there, d->w + block * groups * WIDE * TAPS, groups, flips, sum);
        if (d->kind != AGAIN) {
            const uint64_t n = bytes - i < WIDE ? bytes - i : WIDE;
            if (d->kind == AS_SUMS)
                store_numbers(sum, n, (int32_t *)to + i);
            else
                finish_floats_of(d, block, sum, n, (char *)to + i * (d->kind == AS_FLOATS ? sizeof(float) : 1));
            continue;
        }
        for (uint64_t k = 0; k < PARTS; k++)
            sum[k] = (__m512i)requantized((onxi_vi)sum[k], vf_load(d->factor + block * WIDE + k * ONXI_LANES), d->low,
                                          d->high, q->y_zero);
        _mm512_mask_storeu_epi8((char *)to + i, there, bytes_in_order(sum));
    }
}

/* Windows of nine taps, the most common ones, have a loop of their own. */
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

/* Sets at[tap] for the window that begins at line `y` and column `x`. Returns for how many neighbouring windows, at
 * most `pixels`, these pointers are valid: 1 if some columns of the window are outside of the image. */
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
    const onx_value *zero = d->x_zero_at < 0 ? NULL : work->inputs[d->x_zero_at];
    const uint8_t none = zero ? *(const uint8_t *)zero->data : 0;
    const int32_t x_zero = none ^ q->flip;
    const uint64_t width = d->kind == AS_SUMS || d->kind == AS_FLOATS ? 4 : 1;
    int32_t *begin = work->thread_workspace;
    uint8_t *outside = (uint8_t *)(begin + d->blocks * WIDE);
    const uint8_t *at[TAPS_MAX + TAPS];
    memset(outside, none, d->outside);
    for (uint64_t k = q->taps; k < d->groups * TAPS; k++)
        at[k] = outside;
    for (uint64_t i = 0; i < d->blocks * WIDE; i++) /* wraps, like the sums of the plain rows */
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

/* Per-channel arrays, in the order of lanes. */
typedef struct lane_arrays {
    int8_t *w;
    int32_t *sums, *bias;
    float *factor, *shift;
} lane_arrays;

static void in_lanes(const byte_params *d, const lane_arrays *to, const float *shift, const onx_value *w,
                     const onx_value *zero)
{
    const alone_params *q = &d->q;
    for (uint64_t i = 0; i < d->blocks * WIDE; i++) {
        const uint64_t block = i / WIDE, part = i % WIDE / ONXI_LANES, lane = i % ONXI_LANES;
        const uint64_t at = block * WIDE + channel_of(part, lane), c = at % q->channels;
        if (at >= q->channels * d->together)
            continue;
        to->bias[i] = q->bias ? q->bias[c] : 0;
        to->factor[i] = q->factor ? q->factor[c] : 0;
        to->shift[i] = shift ? shift[c] : 0;
        for (uint64_t k = 0; k < q->taps; k++) {
            const int8_t v = (int8_t)weight_at(w, zero, q->taps, c, k);
            to->w[((block * d->groups + k / TAPS) * PARTS + part) * WIDE + lane * TAPS + k % TAPS] = v;
            to->sums[i] += v;
        }
    }
}

/* Do all offsets fit in 62 bits, in an image and in windows that begin before it or end behind it? */
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

/* Chooses the runs of pixels. Neighbouring pixels are computed in one run if the stride along a line is 1, and if the
 * weights, repeated for as many pixels as fill whole blocks, are small enough. */
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

static bool make_arrays(onx_arena *arena, const byte_params *d, lane_arrays *out)
{
    const uint64_t lanes = d->blocks * WIDE;
    *out = (lane_arrays){ .w = onxi_arena_array(arena, lanes, d->groups * TAPS),
                          .sums = onxi_arena_array(arena, lanes, sizeof *out->sums),
                          .bias = onxi_arena_array(arena, lanes, sizeof *out->bias),
                          .factor = onxi_arena_array(arena, lanes, sizeof *out->factor),
                          .shift = onxi_arena_array(arena, lanes, sizeof *out->shift) };
    if (!out->w || !out->sums || !out->bias || !out->factor || !out->shift)
        return false;
    memset(out->w, 0, lanes * d->groups * TAPS);
    memset(out->sums, 0, lanes * sizeof *out->sums);
    memset(out->bias, 0, lanes * sizeof *out->bias);
    memset(out->factor, 0, lanes * sizeof *out->factor);
    memset(out->shift, 0, lanes * sizeof *out->shift);
    return true;
}

/* Packs the weights. The sizes, factors and biases of d->q are already set; `shift`: one per channel, or NULL. */
static onx_status take_weights(onx_prepare *p, byte_params *d, const float *shift, const onx_value *w,
                               const onx_value *zero)
{
    alone_params *q = &d->q;
    lane_arrays a;
    if (!places_fit(q) || !alone_weights_fit(w, zero, q->channels, q->taps))
        return ONX_E_UNSUPPORTED;
    d->groups = (q->taps + TAPS - 1) / TAPS;
    cut_runs(d);
    int64_t *offset = onxi_arena_array(p->arena, q->taps, sizeof *offset);
    if (!offset || !make_arrays(p->arena, d, &a))
        return ONX_E_MEMORY;
    in_lanes(d, &a, shift, w, zero);
    for (int64_t k = 0; k < (int64_t)q->taps; k++)
        offset[k] =
            (k / q->kernel[1] * q->dilation[0] * q->in[1] + k % q->kernel[1] * q->dilation[1]) * (int64_t)q->channels;
    d->w = a.w;
    d->sums = a.sums;
    d->bias = a.bias;
    d->factor = a.factor;
    d->shift = a.shift;
    d->offset = offset;
    p->thread_workspace = d->blocks * WIDE * sizeof(int32_t) + d->outside;
    p->params = d;
    return alone_settle(p, q);
}

static onx_status prepare(onx_prepare *p)
{
    const alone_inputs *in = p->kernel->body;
    byte_params *d = ONXI_NEW(p->arena, byte_params);
    if (!d)
        return ONX_E_MEMORY;
    ONX_TRY(alone_prepare(p, &d->q));
    d->kind = d->q.gives_sums ? AS_SUMS : AGAIN;
    d->low = (float)((d->q.y_is_signed ? -128 : 0) - d->q.y_zero);
    d->high = d->low + 255;
    d->x_zero_at = operand(p, in->x_zero) ? in->x_zero : -1;
    return take_weights(p, d, NULL, operand(p, in->w), operand(p, in->w_zero));
}

/* For a convolution that a rewrite rule created. */
static onx_status prepare_by_rule(onx_prepare *p)
{
    const byte_operands *at = &byte_by_rule;
    const onx_value *w = byte_operand(p, at->b), *y = p->outputs[0];
    byte_params *d = ONXI_NEW(p->arena, byte_params);
    if (!d)
        return ONX_E_MEMORY;
    alone_params *q = &d->q;
    ONX_TRY(alone_sizes(p, w, q));
    drive all = { .groups = 1, .k = q->taps, .finish = { .n = q->channels } };
    const finish *f = &all.finish;
    if (!w->data || !byte_operands_fit(p, at, q->channels, y->dtype))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(byte_finish(p, at, &all));
    d->kind = f->kind;
    if (f->kind == AGAIN) {
        d->low = f->low;
        d->high = f->high;
    } else if (f->kind != AS_BYTES || !posts_are_bounds(&f->posts, &d->low, &d->high)) {
        d->posts = f->posts;
        d->low = -INFINITY;
        d->high = INFINITY;
    }
    d->y_scale = f->y_scale;
    d->x_zero_at = byte_operand(p, at->a_zero) ? at->a_zero : -1;
    q->factor = f->factor;
    q->bias = f->bias;
    q->y_zero = f->y_zero;
    q->y_is_signed = f->y_is_signed;
    ONX_TRY(take_weights(p, d, f->shift, w, byte_operand(p, at->b_zero)));
    if (d->kind == AS_FLOATS)
        post_take_functions(p, &d->posts);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_byte_alone)[] = { ALONE_ROW("QLinearConv", alone_linear, 4),
                                                             ALONE_ROW("ConvInteger", alone_integer, 4),
                                                             { .op = "QConv",
                                                               .domain = "onx",
                                                               .since = 1,
                                                               .dtypes = BYTES,
                                                               .preference = 4,
                                                               .isa = ONXI_LEVEL,
                                                               .variant = ONXI_VARIANT,
                                                               .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                               .prepare = prepare_by_rule,
                                                               .run = run },
                                                             { 0 } };
