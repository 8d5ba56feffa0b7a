/* norm_channels.c - GroupNormalization and InstanceNormalization, with their post-operations, of images whose channels
 * are contiguous for a pixel: channels last, or blocks of channels. Each channel is summed in one fixed order, and the
 * channels of a group are added up afterwards, so a group need not be whole vectors. */
#include "kernel/core/blocked.h"
#include "kernel/core/norm.h"
#include "kernel/simd/doubles.h"
#include "kernel/simd/post.h"

#include <math.h>

/* Vectors of channels that are summed at once, and independent sums of each of them, the same number wherever a vector
 * is. Sums are accumulated in float over some PIXELS, and in double over these. AT_ONCE: elements that post-operations
 * find in the first-level cache. */
enum { VECTORS = ONXI_LANES == 16 ? 4 : 2, WAYS = 2, PIXELS = 256, SAMPLES = 16, AT_ONCE = 1 << 12 };

typedef struct norm_params {
    uint64_t channels, pixels;
    uint64_t block;       /* channels that are contiguous for a pixel */
    uint64_t each;        /* channels of a group */
    uint64_t unit, units; /* channels of a unit of work, which are whole groups; units of an image */
    double epsilon;
    simd_posts posts;
} norm_params;

/* Of each channel of a unit, with room for a vector after the last one: sums of deviations from `about`, and of their
 * squares; the result is (x * before - about - rest) * scale * factor + shift. */
typedef struct norm_room {
    double *first, *second;
    float *about, *before, *rest, *scale, *factor, *shift;
} norm_room;

static norm_room room_at(void *at, uint64_t unit)
{
    const uint64_t n = unit + ONXI_LANES;
    double *d = at;
    float *f = (float *)(void *)(d + 2 * n);
    return (norm_room){ d, d + n, f, f + n, f + 2 * n, f + 3 * n, f + 4 * n, f + 5 * n };
}

static uint64_t room_size(uint64_t unit)
{
    return (unit + ONXI_LANES) * (2 * sizeof(double) + 6 * sizeof(float));
}

/* The channels of a unit that are in one block. */
typedef struct span {
    uint64_t c, width; /* the first one, counted from that of the unit */
    uint64_t at;       /* offset of its first element in the image */
} span;

/* Of channel `first` + c and those after it, up to `count` of the unit. */
static span span_at(const norm_params *q, uint64_t first, uint64_t c, uint64_t count)
{
    const uint64_t from = first + c, in = from % q->block, left = count - c;
    return (span){ c, q->block - in < left ? q->block - in : left, (from - in) * q->pixels + in };
}

/* ---- sums ---- */

/* Adds the deviations of some vectors of channels, and their squares, over pixels that are `step` elements apart. */
__attribute__((always_inline)) static inline void sums_of(const float *x, uint64_t pixels, uint64_t step,
                                                          const float *about, double *first, double *second,
                                                          const bool whole, vf_lanes last, const int vectors)
{
    onxi_vf near[VECTORS], s[VECTORS * WAYS], ss[VECTORS * WAYS];
    uint64_t p = 0;
    for (int i = 0; i < vectors * WAYS; i++)
        s[i] = ss[i] = vf_all(0);
    for (int v = 0; v < vectors; v++)
        near[v] = whole ? vf_load(about + v * ONXI_LANES) : vf_load_lanes(about, last);
#define ADD(way)                                                                                                       \
    for (int v = 0; v < vectors; v++) {                                                                                \
        const float *at = x + v * ONXI_LANES;                                                                          \
        const onxi_vf u = (whole ? vf_load(at) : vf_load_lanes(at, last)) - near[v];                                   \
        s[(way)*vectors + v] += u;                                                                                     \
        ss[(way)*vectors + v] += u * u;                                                                                \
    }
    for (; p + WAYS <= pixels; p += WAYS)
        for (int w = 0; w < WAYS; w++, x += step)
            ADD(w)
    for (; p < pixels; p++, x += step)
        ADD(0)
#undef ADD
    for (int v = 0; v < vectors; v++) {
        for (int w = 1; w < WAYS; w++) {
            s[v] += s[w * vectors + v];
            ss[v] += ss[w * vectors + v];
        }
        doubles_add(s[v], false, first + v * ONXI_LANES);
        doubles_add(ss[v], false, second + v * ONXI_LANES);
    }
}

/* The same for adjacent channels. */
static void sums_of_channels(const float *x, uint64_t pixels, uint64_t step, uint64_t width, const norm_room *m,
                             uint64_t c)
{
    const float *about = m->about + c;
    double *first = m->first + c, *second = m->second + c;
    for (uint64_t start = 0; start < pixels; start += PIXELS, x += PIXELS * step) {
        const uint64_t count = pixels - start < PIXELS ? pixels - start : PIXELS;
        uint64_t i = 0;
        for (; i + VECTORS * ONXI_LANES <= width; i += VECTORS * ONXI_LANES)
            sums_of(x + i, count, step, about + i, first + i, second + i, true, vf_lanes_of(0), VECTORS);
        for (; i + ONXI_LANES <= width; i += ONXI_LANES)
            sums_of(x + i, count, step, about + i, first + i, second + i, true, vf_lanes_of(0), 1);
        if (i < width)
            sums_of(x + i, count, step, about + i, first + i, second + i, false, vf_lanes_of(width - i), 1);
    }
}

/* Sums the channels from `first` on: `pixels` pixels, `step` apart, from pixel `start` on. */
static void sums_of_unit(const norm_params *q, const float *x, uint64_t first, uint64_t count, uint64_t start,
                         uint64_t pixels, uint64_t step, const norm_room *m)
{
    memset(m->first, 0, (count + ONXI_LANES) * sizeof *m->first);
    memset(m->second, 0, (count + ONXI_LANES) * sizeof *m->second);
    for (uint64_t c = 0; c < count;) {
        const span s = span_at(q, first, c, count);
        sums_of_channels(x + s.at + start * q->block, pixels, step * q->block, s.width, m, c);
        c += s.width;
    }
}

static double sum_of_group(const norm_params *q, const double *list)
{
    double sum = 0;
    for (uint64_t i = 0; i < q->each; i++)
        sum += list[i];
    return sum;
}

static void set_about(const norm_params *q, const norm_room *m, uint64_t g, double mean)
{
    for (uint64_t c = g; c < g + q->each; c++)
        m->about[c] = (float)mean;
}

/* Sums deviations from a number near the mean of each group, which some pixels give. The difference to the mean costs
 * digits of the second moment where it exceeds the standard deviation: then they are summed once more, about the mean.
 * Whether they are does not depend on the other groups of the unit, whose sums stay the same. */
static void sums_near_means(const norm_params *q, const float *x, uint64_t first, uint64_t count, const norm_room *m)
{
    const uint64_t samples = q->pixels < SAMPLES ? q->pixels : SAMPLES, apart = q->pixels / samples;
    const double elements = (double)(q->each * q->pixels);
    memset(m->about, 0, (count + ONXI_LANES) * sizeof *m->about);
    sums_of_unit(q, x, first, count, apart / 2, samples, apart, m);
    for (uint64_t g = 0; g < count; g += q->each)
        set_about(q, m, g, sum_of_group(q, m->first + g) / (double)(q->each * samples));
    sums_of_unit(q, x, first, count, 0, q->pixels, 1, m);
    bool again = false;
    for (uint64_t g = 0; g < count; g += q->each) {
        const double off = sum_of_group(q, m->first + g) / elements, mean = (double)m->about[g] + off;
        const double moment = sum_of_group(q, m->second + g) / elements - off * off;
        if (!(off * off > moment + q->epsilon) || !isfinite(mean) || (float)mean == m->about[g])
            continue;
        set_about(q, m, g, mean);
        again = true;
    }
    if (again)
        sums_of_unit(q, x, first, count, 0, q->pixels, 1, m);
}

/* ---- factors ---- */

/* For one group in double, if sums leave the range of float. */
static void moments_of_far(const norm_params *q, const float *x, uint64_t first, double *mean, double *second)
{
    const double elements = (double)(q->each * q->pixels);
    double added[2] = { 0, 0 };
    *mean = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t c = first; c < first + q->each; c++) {
            const float *at = x + span_at(q, c, 0, 1).at;
            for (uint64_t p = 0; p < q->pixels; p++) {
                const double u = (double)at[p * q->block] - *mean * pass;
                added[pass] += pass ? u * u : u;
            }
        }
        if (!pass)
            *mean = added[0] / elements;
    }
    *second = added[1] / elements;
}

/* A factor that makes elements smaller has to come before the subtraction, one that makes them larger after it, or
 * large elements overflow. */
static void set_factors(const norm_params *q, const norm_room *m, uint64_t g, double mean, double scale)
{
    const double before = onxi_norm_fits_float(mean, scale)        ? 1
                          : fabs(scale) > 1 && fabs(mean) < 0x1p60 ? 0x1p60
                                                                   : 0x1p-60;
    for (uint64_t c = g; c < g + q->each; c++) {
        m->before[c] = (float)before;
        m->about[c] = (float)(mean * before);
        m->rest[c] = (float)(mean * before - (double)m->about[c]);
        m->scale[c] = (float)(scale / before);
    }
}

static void factors_of_unit(const norm_params *q, const float *x, uint64_t first, uint64_t count, const norm_room *m)
{
    const double elements = (double)(q->each * q->pixels);
    sums_near_means(q, x, first, count, m);
    for (uint64_t g = 0; g < count; g += q->each) {
        const double off = sum_of_group(q, m->first + g) / elements, squares = sum_of_group(q, m->second + g);
        double mean = (double)m->about[g] + off, moment = squares / elements - off * off;
        /* squares of small deviations underflow, which matters only next to a small epsilon */
        if (!isfinite(mean) || !isfinite(moment) || !(squares >= 0x1p-90 || q->epsilon >= 0x1p-60))
            moments_of_far(q, x, first + g, &mean, &moment);
        set_factors(q, m, g, mean, 1 / sqrt(moment + q->epsilon));
    }
}

/* ---- results ---- */

/* Normalizes one vector of channels of some pixels. */
__attribute__((always_inline)) static inline void scale_vector(const norm_params *q, const norm_room *m, uint64_t c,
                                                               const float *x, float *y, uint64_t pixels,
                                                               const bool whole, vf_lanes last)
{
    const onxi_vf before = vf_load(m->before + c), about = vf_load(m->about + c), rest = vf_load(m->rest + c);
    const onxi_vf scale = vf_load(m->scale + c), factor = vf_load(m->factor + c), shift = vf_load(m->shift + c);
    for (uint64_t p = 0; p < pixels; p++, x += q->block, y += q->block) {
        const onxi_vf u = whole ? vf_load(x) : vf_load_lanes(x, last);
        const onxi_vf v = (u * before - about - rest) * scale * factor + shift;
        if (whole)
            vf_store(y, v);
        else
            vf_store_lanes(y, v, last);
    }
}

static void post_pixels(const norm_params *q, float *y, uint64_t pixels, uint64_t width)
{
    if (width == q->block) {
        post_apply_line(&q->posts, y, pixels * width);
        return;
    }
    for (uint64_t p = 0; p < pixels && q->posts.count; p++)
        post_apply_line(&q->posts, y + p * q->block, width);
}

/* The pixels that were read last come first, since they may still be in a cache, and those that the next node reads
 * first come last. */
static void scale_span(const norm_params *q, const norm_room *m, const span *s, const float *x, float *y)
{
    const uint64_t step = AT_ONCE / s->width + 1;
    for (uint64_t end = q->pixels, pixels; end; end -= pixels) {
        pixels = end % step ? end % step : step;
        const float *from = x + (end - pixels) * q->block;
        float *to = y + (end - pixels) * q->block;
        uint64_t i = 0;
        for (; i + ONXI_LANES <= s->width; i += ONXI_LANES)
            scale_vector(q, m, s->c + i, from + i, to + i, pixels, true, vf_lanes_of(0));
        if (i < s->width)
            scale_vector(q, m, s->c + i, from + i, to + i, pixels, false, vf_lanes_of(s->width - i));
        post_pixels(q, to, pixels, s->width);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const norm_params *q = work->params;
    const norm_room m = room_at(work->thread_workspace, q->unit);
    for (uint64_t r = first; r < last; r++) {
        const uint64_t image = r / q->units * q->channels * q->pixels, from = r % q->units * q->unit;
        const uint64_t count = q->channels - from < q->unit ? q->channels - from : q->unit;
        const float *x = (const float *)work->inputs[0]->data + image;
        float *y = (float *)work->outputs[0]->data + image;
        factors_of_unit(q, x, from, count, &m);
        memcpy(m.factor, (const float *)work->inputs[1]->data + from, count * sizeof *m.factor);
        memcpy(m.shift, (const float *)work->inputs[2]->data + from, count * sizeof *m.shift);
        for (uint64_t c = 0; c < count;) {
            const span s = span_at(q, from, c, count);
            scale_span(q, &m, &s, x + s.at, y + s.at);
            c += s.width;
        }
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static uint64_t rounded_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Units are about a block, or the share of a thread, in whole groups and, if that is possible, whole vectors. */
static void cut(norm_params *q, uint64_t images, uint64_t threads)
{
    uint64_t grain = q->each;
    while (grain % ONXI_LANES && grain < q->channels)
        grain += q->each;
    const uint64_t share =
        q->block < q->channels || images >= threads ? q->block : (q->channels * images + threads - 1) / threads;
    q->unit = rounded_up(share, grain) < q->channels ? rounded_up(share, grain) : q->channels;
    q->units = (q->channels + q->unit - 1) / q->unit;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    norm_params *q = ONXI_NEW(p->arena, norm_params);
    if (!q)
        return ONX_E_MEMORY;
    q->block = onxi_blocked_of(x);
    if (!p->want || q->block < ONXI_LANES / 2 || !(q->each = onxi_group_norm_each(p)))
        return ONX_E_UNSUPPORTED;
    q->channels = (uint64_t)x->dims[1];
    q->pixels = onxi_product(x->dims, 2, x->rank);
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    cut(q, (uint64_t)x->dims[0], p->threads);
    post_take_functions(p, &q->posts);
    onxi_image_layouts(p, x->layout, onxi_blocked_layout(p->arena, y, (uint32_t)q->block));
    if (!y->layout)
        return ONX_E_MEMORY;
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * q->units;
    p->grain = onxi_worth_a_thread(q->pixels * q->unit * ONXI_COST_ELEMENT);
    p->thread_workspace = room_size(q->unit);
    return ONX_OK;
}

/* Before the rows of planes (norm.c). */
#define ROW(name, version)                                                                                             \
    .op = name, .since = version, .dtypes = ONXI_F32, .preference = 3, .isa = ONXI_LEVEL,                              \
    .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_IN_PLACE | ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT,                  \
    .prepare = prepare, .run = run
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_norm_channels)[] = { { ROW("GroupNormalization", 18) },
                                                                     { ROW("GroupNorm", 1), .domain = "onx" },
                                                                     { ROW("InstanceNormalization", 1) },
                                                                     { 0 } };
