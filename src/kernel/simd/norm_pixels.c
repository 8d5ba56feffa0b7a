/* norm_pixels.c - normalization of each pixel of an image over its channels, as LayerNormalization of images whose
 * channels are not last: planes, channels last, or blocks of channels. A vector of pixels is processed at a time; a
 * lane has the sums of one pixel. */
#include "kernel/core/blocked.h"
#include "kernel/core/norm.h"
#include "kernel/simd/math.h"
#include "kernel/simd/post.h"

#if ONXI_PLATFORM_ROOMY

#include <float.h>
#include <math.h>

/* VECTORS: of pixels that are adjacent in planes and are processed at once, so that a plane is read in pieces of some
 * cache lines. SOME: pixels of blocks of which the sums are in registers at once. */
enum { VECTORS = 4, TILE = VECTORS * ONXI_LANES, SOME = ONXI_LANES / 2 };

typedef struct pixel_params {
    uint64_t channels, pixels;
    uint64_t block; /* channels that are contiguous for a pixel, 0: planes */
    uint64_t tile;  /* pixels that are processed at once */
    double epsilon;
    simd_posts posts;
} pixel_params;

/* Of each pixel of a tile: the result is (x - about - rest) * factor * scale + shift. */
typedef struct moments {
    float about[TILE], rest[TILE], factor[TILE];
} moments;

/* An image from the first pixel of a tile on. */
typedef struct tile {
    const float *x;
    float *y;
    const float *scale, *shift; /* of each channel; NULL: 1 and -0 */
    uint64_t count;             /* pixels */
} tile;

/* ---- factors ---- */

/* From the sums of a vector of pixels: of deviations from `about` and of their squares. Returns whether a sum left the
 * range of float; an underflow matters only next to a small epsilon. */
static bool factors_of(const pixel_params *q, onxi_vf about, onxi_vf sum, onxi_vf squares, moments *m, uint64_t at)
{
    const onxi_vf n = vf_all((float)q->channels), rest = sum / n, variance = squares / n - rest * rest;
    const onxi_vf factor = vf_all(1) / vf_sqrt(vf_max(vf_all(0), variance) + vf_all((float)q->epsilon));
    onxi_vi near = (vf_abs(about) < 0x1p60f) & (squares < 0x1p100f);
    if (q->epsilon < 0x1p-60)
        near &= squares >= 0x1p-90f;
    vf_store(m->about + at, about);
    vf_store(m->rest + at, rest);
    vf_store(m->factor + at, factor);
    return vi_any(~near);
}

/* Offset of a channel of the first pixel. */
static uint64_t channel_at(const pixel_params *q, uint64_t c)
{
    return q->block ? c / q->block * q->block * q->pixels + c % q->block : c * q->pixels;
}

/* A pixel in double. */
static void far_pixel(const pixel_params *q, const tile *t, uint64_t pixel)
{
    const uint64_t at = pixel * (q->block ? q->block : 1);
    double mean = 0, second = 0;
    for (uint64_t c = 0; c < q->channels; c++)
        mean += (double)t->x[channel_at(q, c) + at];
    mean /= (double)q->channels;
    for (uint64_t c = 0; c < q->channels; c++) {
        const double u = (double)t->x[channel_at(q, c) + at] - mean;
        second += u * u;
    }
    const double factor = 1 / sqrt(second / (double)q->channels + q->epsilon);
    for (uint64_t c = 0; c < q->channels; c++) {
        const double u = ((double)t->x[channel_at(q, c) + at] - mean) * factor;
        t->y[channel_at(q, c) + at] =
            (float)(u * (t->scale ? (double)t->scale[c] : 1) + (t->shift ? (double)t->shift[c] : -0.0));
    }
}

/* ---- planes ---- */

/* Sums of some vectors of adjacent pixels: of deviations from `about` and, if asked for, of their squares. */
__attribute__((always_inline)) static inline void plane_sums(const pixel_params *q, const float *x,
                                                             const onxi_vf *about, onxi_vf *sum, onxi_vf *squares,
                                                             const int vectors, const bool whole, vf_lanes last)
{
    for (int v = 0; v < vectors; v++)
        sum[v] = squares[v] = vf_all(0);
    for (uint64_t c = 0; c < q->channels; c++, x += q->pixels)
        for (int v = 0; v < vectors; v++) {
            const float *at = x + v * ONXI_LANES;
            const onxi_vf u = (whole ? vf_load(at) : vf_load_lanes(at, last)) - about[v];
            sum[v] += u;
            squares[v] += u * u;
        }
}

/* Lanes of pixels that are not there have the sums of zeros. */
__attribute__((always_inline)) static inline bool plane_moments(const pixel_params *q, const float *x, moments *m,
                                                                uint64_t at, const int vectors, const bool whole,
                                                                vf_lanes last)
{
    onxi_vf about[VECTORS], sum[VECTORS], squares[VECTORS];
    bool far = false;
    for (int v = 0; v < vectors; v++)
        about[v] = vf_all(0);
    plane_sums(q, x + at, about, sum, squares, vectors, whole, last);
    for (int v = 0; v < vectors; v++)
        about[v] = sum[v] / (float)q->channels;
    plane_sums(q, x + at, about, sum, squares, vectors, whole, last);
    for (int v = 0; v < vectors; v++)
        far |= factors_of(q, about[v], sum[v], squares[v], m, at + (uint64_t)v * ONXI_LANES);
    return far;
}

static onxi_vf scaled(onxi_vf x, const moments *m, uint64_t at)
{
    return (x - vf_load(m->about + at) - vf_load(m->rest + at)) * vf_load(m->factor + at);
}

static void scale_planes(const pixel_params *q, const tile *t, const moments *m)
{
    const uint64_t whole = t->count / ONXI_LANES * ONXI_LANES;
    const vf_lanes last = vf_lanes_of(t->count - whole);
    for (uint64_t c = 0; c < q->channels; c++) {
        const onxi_vf scale = vf_all(t->scale ? t->scale[c] : 1), shift = vf_all(t->shift ? t->shift[c] : -0.0f);
        const float *x = t->x + c * q->pixels;
        float *y = t->y + c * q->pixels;
        for (uint64_t p = 0; p < whole; p += ONXI_LANES)
            vf_store(y + p, scaled(vf_load(x + p), m, p) * scale + shift);
        if (whole < t->count)
            vf_store_lanes(y + whole, scaled(vf_load_lanes(x + whole, last), m, whole) * scale + shift, last);
        post_apply_line(&q->posts, y, t->count);
    }
}

static bool moments_of_planes(const pixel_params *q, const tile *t, moments *m)
{
    if (t->count == TILE)
        return plane_moments(q, t->x, m, 0, VECTORS, true, vf_lanes_of(0));
    bool far = false;
    uint64_t p = 0;
    for (; p + ONXI_LANES <= t->count; p += ONXI_LANES)
        far |= plane_moments(q, t->x, m, p, 1, true, vf_lanes_of(0));
    if (p < t->count)
        far |= plane_moments(q, t->x, m, p, 1, false, vf_lanes_of(t->count - p));
    return far;
}

/* ---- blocks of channels ---- */

/* The lanes of each of some vectors, added up: the sums of a vector of pixels. */
static onxi_vf lane_sums(float (*list)[ONXI_LANES])
{
    float turned[ONXI_LANES][ONXI_LANES];
    onxi_vf sum = vf_all(0);
    vf_turn((const char *)list, sizeof *list, *turned, ONXI_LANES);
    for (int i = 0; i < ONXI_LANES; i++)
        sum += vf_load(turned[i]);
    return sum;
}

/* Sums of some pixels, by lanes: of deviations from `about` and of their squares. */
__attribute__((always_inline)) static inline void block_sums(const pixel_params *q, const float *x, const float *about,
                                                             float (*sum)[ONXI_LANES], float (*squares)[ONXI_LANES],
                                                             const int pixels)
{
    onxi_vf s[SOME], ss[SOME];
    for (int p = 0; p < pixels; p++)
        s[p] = ss[p] = vf_all(0);
    for (uint64_t b = 0; b < q->channels; b += q->block, x += q->block * q->pixels) {
        uint64_t c = 0;
#define ADD(load)                                                                                                      \
    for (int p = 0; p < pixels; p++) {                                                                                 \
        const float *at = x + (uint64_t)p * q->block + c;                                                              \
        const onxi_vf u = (load)-vf_all(about[p]);                                                                     \
        s[p] += u;                                                                                                     \
        ss[p] += u * u;                                                                                                \
    }
        for (; c + ONXI_LANES <= q->block; c += ONXI_LANES)
            ADD(vf_load(at))
        if (c < q->block)
            ADD(vf_load_part(at, q->block - c, about[p]))
#undef ADD
    }
    for (int p = 0; p < pixels; p++) {
        vf_store(sum[p], s[p]);
        vf_store(squares[p], ss[p]);
    }
}

/* Of at most ONXI_LANES pixels. */
static bool moments_of_blocks(const pixel_params *q, const tile *t, moments *m)
{
    float sum[ONXI_LANES][ONXI_LANES] = { { 0 } }, squares[ONXI_LANES][ONXI_LANES] = { { 0 } };
    onxi_vf about = vf_all(0), all = vf_all(0);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t p = 0;
        vf_store(m->about, about);
        for (; p + SOME <= t->count; p += SOME)
            block_sums(q, t->x + p * q->block, m->about + p, sum + p, squares + p, SOME);
        for (; p < t->count; p++)
            block_sums(q, t->x + p * q->block, m->about + p, sum + p, squares + p, 1);
        all = lane_sums(sum);
        if (!pass)
            about = all / (float)q->channels;
    }
    return factors_of(q, about, all, lane_sums(squares), m, 0);
}

/* A vector of channels of the pixels of a tile. */
__attribute__((always_inline)) static inline void scale_vector(const pixel_params *q, const tile *t, const moments *m,
                                                               uint64_t at, uint64_t c, const bool whole,
                                                               vf_lanes lanes)
{
#define LOAD(list, none) (!t->list ? vf_all(none) : whole ? vf_load(t->list + c) : vf_load_lanes(t->list + c, lanes))
    const onxi_vf scale = LOAD(scale, 1), shift = LOAD(shift, -0.0f);
#undef LOAD
    for (uint64_t p = 0; p < t->count; p++, at += q->block) {
        const onxi_vf x = whole ? vf_load(t->x + at) : vf_load_lanes(t->x + at, lanes);
        const onxi_vf y = (x - m->about[p] - m->rest[p]) * m->factor[p] * scale + shift;
        if (whole)
            vf_store(t->y + at, y);
        else
            vf_store_lanes(t->y + at, y, lanes);
    }
}

static void scale_blocks(const pixel_params *q, const tile *t, const moments *m)
{
    for (uint64_t b = 0; b < q->channels; b += q->block) {
        uint64_t c = 0;
        for (; c + ONXI_LANES <= q->block; c += ONXI_LANES)
            scale_vector(q, t, m, b * q->pixels + c, b + c, true, vf_lanes_of(0));
        if (c < q->block)
            scale_vector(q, t, m, b * q->pixels + c, b + c, false, vf_lanes_of(q->block - c));
        post_apply_line(&q->posts, t->y + b * q->pixels, t->count * q->block);
    }
}

/* ---- running ---- */

/* In double, with the functions that follow. */
static void far_tile(const pixel_params *q, const tile *t)
{
    const uint64_t width = q->block ? q->block : 1;
    for (uint64_t p = 0; p < t->count; p++)
        far_pixel(q, t, p);
    for (uint64_t c = 0; c < q->channels; c += width)
        post_apply_line(&q->posts, t->y + channel_at(q, c), t->count * width);
}

static void run_tile(const pixel_params *q, const tile *t)
{
    moments m;
    if (q->block ? moments_of_blocks(q, t, &m) : moments_of_planes(q, t, &m))
        far_tile(q, t);
    else if (q->block)
        scale_blocks(q, t, &m);
    else
        scale_planes(q, t, &m);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const pixel_params *q = work->params;
    const uint64_t tiles = (q->pixels + q->tile - 1) / q->tile, width = q->block ? q->block : 1;
    const uint32_t inputs = work->prepared->input_count;
    const onx_value *scale = onxi_operand(inputs, work->inputs, 1), *shift = onxi_operand(inputs, work->inputs, 2);
    for (uint64_t r = first; r < last; r++) {
        const uint64_t from = r % tiles * q->tile, at = r / tiles * q->channels * q->pixels + from * width;
        const tile t = { .x = (const float *)work->inputs[0]->data + at,
                         .y = (float *)work->outputs[0]->data + at,
                         .scale = scale ? scale->data : NULL,
                         .shift = shift ? shift->data : NULL,
                         .count = q->pixels - from < q->tile ? q->pixels - from : q->tile };
        run_tile(q, &t);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static bool is_image(const onx_value *x)
{
    return x && x->kind == ONX_VALUE_TENSOR && x->dtype == ONX_FLOAT && x->rank > 1;
}

static onx_status types(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    return is_image(x) ? onx_prepare_output(p, 0, ONX_FLOAT, x->rank, x->dims)
                       : ONX_OK; /* no type: the op cannot replace the nodes */
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    pixel_params *q = ONXI_NEW(p->arena, pixel_params);
    if (!q)
        return ONX_E_MEMORY;
    q->channels = is_image(x) ? (uint64_t)x->dims[1] : 0;
    uint64_t images = q->channels ? (uint64_t)x->dims[0] : 0;
    for (uint32_t i = 1; i < 3; i++) {
        const onx_value *v = onxi_operand(p->input_count, p->inputs, i);
        if (v && (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT || v->count != q->channels))
            return ONX_E_UNSUPPORTED;
    }
    if (!q->channels || !y)
        return ONX_E_UNSUPPORTED;
    const uint32_t block = p->want ? onxi_blocked_of(x) : 0;
    q->block = block;
    q->pixels = onxi_product(x->dims, 2, x->rank);
    if (q->pixels == 1 && !q->block) { /* images of one pixel are as pixels of one image, channels last */
        q->block = q->channels;
        q->pixels = (uint64_t)x->dims[0];
        images = 1;
    }
    q->tile = q->block ? ONXI_LANES : TILE;
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    post_take_functions(p, &q->posts);
    const onx_layout *out = block ? onxi_blocked_layout(p->arena, y, block) : NULL;
    if (block && !out)
        return ONX_E_MEMORY;
    if (p->want)
        onxi_image_layouts(p, block ? x->layout : NULL, out);
    p->params = q;
    p->rows = images * ((q->pixels + q->tile - 1) / q->tile);
    p->grain = onxi_worth_a_thread(q->tile * q->channels * ONXI_COST_ELEMENT);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_norm_pixels)[] = { { .op = "ChannelNorm",
                                                                     .domain = "onx",
                                                                     .since = 1,
                                                                     .dtypes = ONXI_F32,
                                                                     .preference = 2,
                                                                     .isa = ONXI_LEVEL,
                                                                     .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_IN_PLACE |
                                                                              ONX_KERNEL_POST_OPS,
                                                                     .variant = ONXI_VARIANT,
                                                                     .types = types,
                                                                     .prepare = prepare,
                                                                     .run = run },
                                                                   { 0 } };
#endif
