/* groups.c - Conv with one channel per group (depthwise), or a few of them that are a part of a vector, in the layouts
 * in which the channels of a pixel are contiguous: channels last, and blocks of channels. A strip of adjacent output
 * pixels is summed in registers, for a vector of channels at a time. Lines in the padding are skipped. Sums run in one
 * fixed order: tap by tap. */
#include "kernel/core/blocked.h"
#include "kernel/simd/post.h"
#include "kernel/simd/window.h"

/* Pixels of a strip: most networks halve 224 pixels some times, so 7 divides their sizes; engines of WebAssembly have
 * few registers. Channels that are computed line by line before the next ones; elements of an image whose inputs are
 * fetched ahead. */
#ifdef __wasm__
enum { STRIP = 4 };
#else
enum { STRIP = 7 };
#endif
enum { SET = 64, FETCH_LEAST = 128 << 10 };

struct groups_params;

/* Distances in an image: its layout has all channels in one block, or blocks of a vector. */
typedef struct side {
    uint64_t image;   /* elements */
    uint64_t pixel;   /* from a pixel to the next */
    uint64_t channel; /* times a channel at which a vector begins: the elements from that of channel 0 */
} side;

/* The place of a strip: its channels, and the first element of input and result that belong to them. */
typedef struct strip {
    const onx_work *work;
    const float *x, *weights, *bias; /* bias NULL: none */
    float *y;
    uint64_t at;       /* of y in the result */
    uint64_t channels; /* at least a vector */
    /* Where the windows of the first pixel begin, and the taps that are in the image, down. */
    int64_t origin[WINDOW_DIMS], first[2], last[2];
    uint64_t pixels; /* that are stored */
    bool inside;     /* the windows of all pixels of a strip are in the image horizontally */
} strip;

typedef void strip_run(const struct groups_params *q, const strip *s);

typedef struct groups_params {
    simd_window win;
    uint64_t channels;
    uint64_t group; /* channels of one */
    int64_t pixels; /* of a strip */
    side x, y;      /* input, result */
    window_units units;
    uint64_t each; /* channels of a set */
    uint64_t taps; /* of a window */
    strip_run *run;
    const float *weights, *bias; /* weights: a vector of channels after the other, by tap */
    bool fetch;                  /* the image is too large for the caches near the processor */
    simd_posts posts;
} groups_params;

/* ---- strips ---- */

/* Adds one line of the window, whose kernel has `taps` taps: goes over the inputs, and adds each one to the pixels that
 * it belongs to. `x`: the first input of the first pixel, which may be in the padding. */
__attribute__((always_inline)) static inline void add_line(const groups_params *q, const strip *s, const float *x,
                                                           const float *w, onxi_vf sum[STRIP], const int taps,
                                                           const int stride, const int dilation, const bool inside)
{
    const int64_t from = -s->origin[2], end = q->win.in[2] + from;
    onxi_vf by[7];
    WINDOW_UNROLL
    for (int k = 0; k < taps; k++)
        by[k] = vf_load(w + k * ONXI_LANES);
    WINDOW_UNROLL
    for (int i = 0; i <= (STRIP - 1) * stride + (taps - 1) * dilation; i++, x = window_onward(x, q->x.pixel)) {
        if (!inside && (i < from || i >= end))
            continue;
        const onxi_vf v = vf_load(x);
        WINDOW_UNROLL
        for (int j = 0; j < STRIP; j++) {
            const int k = i - j * stride;
            if (k >= 0 && k % dilation == 0 && k / dilation < taps)
                sum[j] += by[k / dilation] * v;
        }
    }
}

/* The same for any window, one tap after the other. */
__attribute__((always_inline)) static inline void add_taps(const groups_params *q, const strip *s, const float *x,
                                                           const float *w, onxi_vf sum[STRIP], const bool inside)
{
    const int64_t stride = q->win.stride[2], step = (int64_t)q->x.pixel, next = stride * step;
    for (int64_t k = 0; k < q->win.kernel[2]; k++, w += ONXI_LANES) {
        const int64_t tap = k * q->win.dilation[2], at = s->origin[2] + tap;
        const float *from = x + tap * step;
        const onxi_vf by = vf_load(w);
        WINDOW_UNROLL
        for (int j = 0; j < STRIP; j++)
            if (inside || (at + j * stride >= 0 && at + j * stride < q->win.in[2]))
                sum[j] += by * vf_load(from + j * next);
    }
}

/* Applies the post-operations to sums that are in registers, as far as the frequent cheap ones come first; returns how
 * many. */
__attribute__((always_inline)) static inline uint32_t post_early(const simd_posts *posts, onxi_vf sum[STRIP],
                                                                 const int count)
{
    if (!ONXI_PLATFORM_ROOMY || !posts->count)
        return 0;
    const simd_post *f = posts->list;
    const onxi_vf a = vf_all(f->a), b = vf_all(f->b), zero = vf_all(0);
    if (f->kind == ONX_POST_CLIP) {
        WINDOW_UNROLL
        for (int j = 0; j < count; j++)
            sum[j] = post_clip(sum[j], a, b);
    } else if (f->kind == ONX_POST_RELU) {
        WINDOW_UNROLL
        for (int j = 0; j < count; j++)
            sum[j] = post_relu(sum[j], zero);
    } else if (f->kind == ONX_POST_HARD_SWISH) {
        WINDOW_UNROLL
        for (int j = 0; j < count; j++)
            sum[j] = post_hard_swish(sum[j]);
    } else {
        return 0;
    }
    return 1;
}

/* Applies the post-operations from `first` on to `pixels` sums, and stores them at channel `c` of the strip. */
static void post_late(const groups_params *q, const strip *s, uint64_t c, float *sums, uint64_t pixels, uint32_t first)
{
    for (uint32_t p = first; p < q->posts.count; p++) {
        const simd_post *f = &q->posts.list[p];
        const float *same =
            f->operand >= 0 ? (const float *)s->work->inputs[f->operand]->data + s->at + c * q->y.channel : NULL;
        post_apply(f, sums, ONXI_LANES, pixels, 1, NULL, same, q->y.pixel);
    }
    for (uint64_t j = 0; j < pixels; j++)
        vf_store(s->y + c * q->y.channel + j * q->y.pixel, vf_load(sums + j * ONXI_LANES));
}

/* Stores the sums of a vector of channels: `count`, of which as many as the strip has pixels. */
__attribute__((always_inline)) static inline void finish(const groups_params *q, const strip *s, uint64_t c,
                                                         onxi_vf sum[STRIP], const int count)
{
    const uint32_t done = post_early(&q->posts, sum, count);
    if (done == q->posts.count) {
        float *y = s->y + c * q->y.channel;
        WINDOW_UNROLL
        for (int j = 0; j < count; j++)
            if ((uint64_t)j < s->pixels)
                vf_store(y + (uint64_t)j * q->y.pixel, sum[j]);
        return;
    }
    float sums[STRIP * ONXI_LANES];
    WINDOW_UNROLL
    for (int j = 0; j < count; j++)
        vf_store(sums + j * ONXI_LANES, sum[j]);
    post_late(q, s, c, sums, s->pixels, done);
}

/* Where a line of the window of the strip's first pixel begins, for channel `c`; it may be in the padding. */
static inline const float *line_at(const groups_params *q, const strip *s, uint64_t c, int64_t z, int64_t y)
{
    const simd_window *win = &q->win;
    const int64_t plane = (s->origin[0] + z * win->dilation[0]) * win->in[1];
    const int64_t line = (plane + s->origin[1] + y * win->dilation[1]) * win->in[2] + s->origin[2];
    return s->x + c * q->x.channel + line * (int64_t)q->x.pixel;
}

/* Its weights. */
static inline const float *weights_at(const groups_params *q, const strip *s, uint64_t channel, int64_t z, int64_t y)
{
    const simd_window *win = &q->win;
    return s->weights +
           (channel * q->taps + (uint64_t)((z * win->kernel[1] + y) * win->kernel[2]) * ONXI_LANES) * q->group;
}

/* Computes a strip of groups of one channel. taps: 0 for any window. If the channels are not whole vectors, the last
 * vector repeats some. */
__attribute__((always_inline)) static inline void strip_of(const groups_params *q, const strip *s, const int taps,
                                                           const int stride, const int dilation, const bool inside)
{
    const uint64_t last = s->channels - ONXI_LANES;
    for (uint64_t i = 0; i < s->channels; i += ONXI_LANES) {
        const uint64_t c = i < last ? i : last;
        onxi_vf sum[STRIP];
        const onxi_vf start = s->bias ? vf_load(s->bias + c) : vf_all(0);
        WINDOW_UNROLL
        for (int j = 0; j < STRIP; j++)
            sum[j] = start;
        for (int64_t z = s->first[0]; z < s->last[0]; z++)
            for (int64_t y = s->first[1]; y < s->last[1]; y++) {
                const float *x = line_at(q, s, c, z, y), *w = weights_at(q, s, i, z, y);
                if (taps)
                    add_line(q, s, x, w, sum, taps, stride, dilation, inside);
                else
                    add_taps(q, s, x, w, sum, inside);
            }
        finish(q, s, c, sum, STRIP);
    }
}

#define STRIP_RUN(name, taps, stride, dilation)                                                                        \
    static void name(const groups_params *q, const strip *s)                                                           \
    {                                                                                                                  \
        if (s->inside)                                                                                                 \
            strip_of(q, s, taps, stride, dilation, true);                                                              \
        else                                                                                                           \
            strip_of(q, s, taps, stride, dilation, false);                                                             \
    }

STRIP_RUN(any_strip, 0, 0, 0)
STRIP_RUN(strip_of_3, 3, 1, 1)
STRIP_RUN(strip_of_3_by_2, 3, 2, 1)
#if ONXI_PLATFORM_ROOMY /* browsers have no room for these */
STRIP_RUN(strip_of_5, 5, 1, 1)
STRIP_RUN(strip_of_5_by_2, 5, 2, 1)
STRIP_RUN(strip_of_7, 7, 1, 1)
STRIP_RUN(strip_of_3_apart, 3, 1, 2)
STRIP_RUN(strip_of_5_apart, 5, 1, 2)
#endif

#if ONXI_PLATFORM_ROOMY
/* ---- groups of a few channels ---- */

/* Sums of a strip that registers hold: for groups of m channels, m per pixel. */
enum { SUMS = ONXI_LANES == 16 ? 24 : 12 };
#define PIXELS_OF(m) (SUMS / (m) < STRIP ? SUMS / (m) : STRIP)

#if ONXI_LANES == 16
#define EACH_LANE(f, m)                                                                                                \
    f(0, m), f(1, m), f(2, m), f(3, m), f(4, m), f(5, m), f(6, m), f(7, m), f(8, m), f(9, m), f(10, m), f(11, m),      \
        f(12, m), f(13, m), f(14, m), f(15, m)
#elif ONXI_LANES == 8
#define EACH_LANE(f, m) f(0, m), f(1, m), f(2, m), f(3, m), f(4, m), f(5, m), f(6, m), f(7, m)
#else
#define EACH_LANE(f, m) f(0, m), f(1, m), f(2, m), f(3, m)
#endif
#define LANE_BEFORE(lane, m) ((lane) / (m) * (m) + ((lane) + (m)-1) % (m))

/* Moves each lane to the next one of its group, the last one to the first. */
__attribute__((always_inline)) static inline onxi_vf turn_groups(onxi_vf v, const int m)
{
    switch (m) {
    case 2:
        return __builtin_shufflevector(v, v, EACH_LANE(LANE_BEFORE, 2));
    case 4:
        return __builtin_shufflevector(v, v, EACH_LANE(LANE_BEFORE, 4));
    default:
        return __builtin_shufflevector(v, v, EACH_LANE(LANE_BEFORE, 8));
    }
}

/* Adds one line of the window. Sum r of a pixel has in each lane the products of that input channel for the output
 * channel that is r lanes after it in the group, so that inputs are multiplied as they lie. */
__attribute__((always_inline)) static inline void add_groups(const groups_params *q, const strip *s, const float *x,
                                                             const float *w, onxi_vf sum[SUMS], const int m,
                                                             const int pixels, const bool inside)
{
    const int64_t stride = q->win.stride[2], step = (int64_t)q->x.pixel;
    for (int64_t k = 0; k < q->win.kernel[2]; k++) {
        const int64_t tap = k * q->win.dilation[2], at = s->origin[2] + tap;
        onxi_vf v[STRIP];
        WINDOW_UNROLL
        for (int j = 0; j < pixels; j++) {
            const bool is_there = inside || (at + j * stride >= 0 && at + j * stride < q->win.in[2]);
            v[j] = is_there ? vf_load(x + (tap + j * stride) * step) : vf_all(0);
        }
        WINDOW_UNROLL
        for (int r = 0; r < m; r++, w += ONXI_LANES) {
            const onxi_vf by = vf_load(w);
            WINDOW_UNROLL
            for (int j = 0; j < pixels; j++)
                sum[j * m + r] += by * v[j];
        }
    }
}

/* Computes a strip of groups of m channels. */
__attribute__((always_inline)) static inline void groups_of(const groups_params *q, const strip *s, const int m,
                                                            const int pixels, const bool inside)
{
    const uint64_t last = s->channels - ONXI_LANES;
    for (uint64_t i = 0; i < s->channels; i += ONXI_LANES) {
        const uint64_t c = i < last ? i : last;
        onxi_vf sum[SUMS];
        WINDOW_UNROLL
        for (int j = 0; j < pixels * m; j++)
            sum[j] = vf_all(0);
        for (int64_t z = s->first[0]; z < s->last[0]; z++)
            for (int64_t y = s->first[1]; y < s->last[1]; y++)
                add_groups(q, s, line_at(q, s, c, z, y), weights_at(q, s, i, z, y), sum, m, pixels, inside);
        const onxi_vf start = s->bias ? vf_load(s->bias + c) : vf_all(0);
        onxi_vf total[STRIP];
        WINDOW_UNROLL
        for (int j = 0; j < pixels; j++) {
            total[j] = sum[j * m + m - 1];
            WINDOW_UNROLL
            for (int r = m - 2; r >= 0; r--)
                total[j] = turn_groups(total[j], m) + sum[j * m + r];
            total[j] += start;
        }
        finish(q, s, c, total, pixels);
    }
}

#define GROUPS_RUN(name, m)                                                                                            \
    static void name(const groups_params *q, const strip *s)                                                           \
    {                                                                                                                  \
        if (s->inside)                                                                                                 \
            groups_of(q, s, m, PIXELS_OF(m), true);                                                                    \
        else                                                                                                           \
            groups_of(q, s, m, PIXELS_OF(m), false);                                                                   \
    }

GROUPS_RUN(groups_of_2, 2)
GROUPS_RUN(groups_of_4, 4)
#if ONXI_LANES == 16
GROUPS_RUN(groups_of_8, 8)
#endif
#endif

/* ---- which code there is ---- */

/* Windows along a line that have code of their own; taps 0: all others. */
static const struct strip_kind {
    uint64_t group; /* channels */
    int64_t taps, stride, dilation, pixels;
    strip_run *run;
} strip_kinds[] = {
    { 1, 3, 1, 1, STRIP, strip_of_3 },         { 1, 3, 2, 1, STRIP, strip_of_3_by_2 },
#if ONXI_PLATFORM_ROOMY
    { 1, 5, 1, 1, STRIP, strip_of_5 },         { 1, 5, 2, 1, STRIP, strip_of_5_by_2 },
    { 1, 7, 1, 1, STRIP, strip_of_7 },         { 1, 3, 1, 2, STRIP, strip_of_3_apart },
    { 1, 5, 1, 2, STRIP, strip_of_5_apart },   { 2, 0, 0, 0, PIXELS_OF(2), groups_of_2 },
    { 4, 0, 0, 0, PIXELS_OF(4), groups_of_4 },
#if ONXI_LANES == 16
    { 8, 0, 0, 0, PIXELS_OF(8), groups_of_8 },
#endif
#endif
    { 1, 0, 0, 0, STRIP, any_strip },
};

/* False: there is no code for groups of so many channels. */
static bool take_kind(groups_params *q)
{
    const simd_window *win = &q->win;
    for (size_t i = 0; i < sizeof strip_kinds / sizeof *strip_kinds; i++) {
        const struct strip_kind *k = &strip_kinds[i];
        const bool any = !k->taps, same = k->taps == win->kernel[2] && k->stride == win->stride[2];
        if (k->group == q->group && (any || (same && k->dilation == win->dilation[2]))) {
            q->pixels = k->pixels;
            q->run = k->run;
            return true;
        }
    }
    return false;
}

/* ---- lines ---- */

/* Fetches the inputs below a strip that the next line of the result reads first. */
static void fetch_below(const groups_params *q, const strip *s)
{
    enum { CACHE_LINE = 16 };
    const simd_window *win = &q->win;
    const int64_t from = s->origin[1] + (win->kernel[1] - 1) * win->dilation[1] + 1, to = from + win->stride[1];
    const int64_t left = s->origin[2] < 0 ? 0 : s->origin[2], right = s->origin[2] + q->pixels * win->stride[2];
    for (int64_t y = from; y < to && y < win->in[1]; y++)
        for (int64_t i = left; i < right && i < win->in[2]; i++) {
            const float *x = s->x + (uint64_t)(y * win->in[2] + i) * q->x.pixel;
            for (uint64_t c = 0; c < s->channels; c += CACHE_LINE)
                __builtin_prefetch(x + c * q->x.channel, 0, 2);
        }
}

/* Computes line `line` of an image for some channels, from `channel` on. */
static void line_of(const groups_params *q, const onx_work *work, uint64_t image, uint64_t line, uint64_t channel,
                    uint64_t channels)
{
    const simd_window *win = &q->win;
    const int64_t at[] = { (int64_t)line / win->out[1], (int64_t)line % win->out[1] };
    const int64_t reach = (q->pixels - 1) * win->stride[2] + (win->kernel[2] - 1) * win->dilation[2];
    const uint64_t first = image * q->y.image + line * (uint64_t)win->out[2] * q->y.pixel + channel * q->y.channel;
    strip s = { .work = work,
                .x = (const float *)work->inputs[0]->data + image * q->x.image + channel * q->x.channel,
                .weights = q->weights + channel * q->taps * q->group,
                .bias = q->bias ? q->bias + channel : NULL,
                .channels = channels };
    for (int d = 0; d < 2; d++) {
        s.origin[d] = at[d] * win->stride[d] - win->pad[d];
        window_taps(win, d, s.origin[d], &s.first[d], &s.last[d]);
    }
    for (int64_t ox = 0; ox < win->out[2]; ox += q->pixels) {
        s.at = first + (uint64_t)ox * q->y.pixel;
        s.y = (float *)work->outputs[0]->data + s.at;
        s.origin[2] = ox * win->stride[2] - win->pad[2];
        s.inside = s.origin[2] >= 0 && s.origin[2] + reach < win->in[2];
        s.pixels = (uint64_t)(win->out[2] - ox < q->pixels ? win->out[2] - ox : q->pixels);
        if (ONXI_PLATFORM_ROOMY && q->fetch)
            fetch_below(q, &s);
        q->run(q, &s);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const groups_params *q = work->params;
    for (uint64_t i = first; i < last; i++) {
        window_unit u;
        if (!window_unit_at(&q->units, i, &u))
            continue;
        const uint64_t channel = u.set * q->each, left = q->channels - channel;
        line_of(q, work, u.image, u.line, channel, left < q->each ? left : q->each);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

typedef struct packing {
    uint64_t channels, group, taps;
} packing;

/* Packs weights: a vector of channels after the other, by tap, by distance from the input channel of a lane to the
 * output channel in its group. The last vector ends with the last channel. */
static onx_status pack_vector(void *user, const void *elements, uint64_t vector, void *out)
{
    const packing *q = user;
    const uint64_t first = vector * ONXI_LANES, most = q->channels - ONXI_LANES, m = q->group;
    const uint64_t channel = first < most ? first : most;
    const float *from = elements;
    float *to = (float *)out + first * m * q->taps;
    for (uint64_t t = 0; t < q->taps; t++)
        for (uint64_t r = 0; r < m; r++)
            for (uint64_t i = 0; i < ONXI_LANES; i++) {
                const uint64_t in = i % m, output = channel + i - in + (in + r) % m;
                *to++ = from[(output * m + in) * q->taps + t];
            }
    return ONX_OK;
}

static onx_status take_weights(onx_prepare *p, groups_params *q)
{
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    packing from = { q->channels, q->group, q->taps };
    const uint64_t vectors = (q->channels + ONXI_LANES - 1) / ONXI_LANES;
    const struct {
        char what[8];
        uint64_t channels, group, taps, lanes;
    } key = { "groups", from.channels, from.group, from.taps, ONXI_LANES };
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = vectors * ONXI_LANES * q->group * q->taps * sizeof(float),
                              .pieces = vectors,
                              .in_order = true,
                              .make = pack_vector,
                              .user = &from };
    const void *weights;
    ONX_TRY(p->ops->packed(p, &job, &weights)); /* weights that are not constant are not packed */
    q->weights = weights;
    q->bias = b ? b->data : NULL;
    return ONX_OK;
}

static bool shape_of(onx_prepare *p, groups_params *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank < 3 || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT || !y || y->rank != x->rank ||
        !y->count || !x->count || !w->count || x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1] ||
        w->dims[0] != y->dims[1] || w->dims[1] > ONXI_LANES || onx_prepare_int(p, "group") * w->dims[1] != x->dims[1])
        return false;
    q->channels = (uint64_t)x->dims[1];
    q->group = (uint64_t)w->dims[1];
    q->taps = w->count / (q->channels * q->group);
    return q->channels >= ONXI_LANES && (ONXI_PLATFORM_ROOMY || q->channels % ONXI_LANES == 0) &&
           (!b || (b->data && b->dtype == ONX_FLOAT && b->count == q->channels)) &&
           onxi_window_make(p, w->dims + 2, &win) == ONX_OK && window_take(&win, &q->win) && take_kind(q);
}

/* Channels of a set: at least SET, so that hardware prefetches the parts of pixels, but no more than necessary, so that
 * a set's lines of the window are in the L1 cache while the lines of the result are computed. A last set is no less
 * than a vector. */
static uint64_t set_of(uint64_t channels)
{
    const uint64_t sets = channels < 2 * SET ? 1 : channels / SET;
    uint64_t each = ((channels + sets - 1) / sets + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    while (channels % each && channels % each < ONXI_LANES) /* ends, since there is at least a vector of channels */
        each += ONXI_LANES;
    return each;
}

static void take_side(uint64_t channels, const int64_t size[WINDOW_DIMS], bool blocks, side *q)
{
    q->image = (uint64_t)(size[0] * size[1] * size[2]) * channels;
    q->pixel = blocks ? ONXI_LANES : channels;
    q->channel = blocks ? q->image / channels : 1;
}

/* Blocks of a vector are read as they lie. The result has channels last, but blocks if vectors have 8 floats, since
 * oneDNN's convolutions have, too. */
static bool take_layouts(onx_prepare *p, groups_params *q)
{
    enum { KEEPS = ONXI_LANES == 8 };
    const bool blocks = ONXI_PLATFORM_ROOMY && q->channels > ONXI_LANES && onxi_blocked_of(p->inputs[0]) == ONXI_LANES;
    const onx_layout *in = p->inputs[0]->layout, *out;
    if (!blocks && !onxi_channels_last(p, p->inputs[0], &in))
        return false;
    if (blocks && KEEPS ? !(out = onxi_blocked_layout(p->arena, p->outputs[0], ONXI_LANES))
                        : !onxi_channels_last(p, p->outputs[0], &out))
        return false;
    take_side(q->channels, q->win.in, blocks, &q->x);
    take_side(q->channels, q->win.out, blocks && KEEPS, &q->y);
    post_take_image(p, &q->posts, out);
    onxi_image_layouts(p, in, out);
    return true;
}

/* What a row for inputs with channels next to each other asks for, unless groups have several: so many taps at least,
 * or so many elements of an image at most. */
typedef struct early_body {
    uint64_t taps, image;
} early_body;

static bool suits(const onx_prepare *p, const groups_params *q)
{
    const early_body *body = p->kernel->body;
    const onx_value *x = p->inputs[0];
    return !body ||
           (x->layout && (q->group > 1 || q->taps >= body->taps || x->count / (uint64_t)x->dims[0] <= body->image));
}

static onx_status prepare(onx_prepare *p)
{
    groups_params *q = ONXI_NEW(p->arena, groups_params);
    if (!q)
        return ONX_E_MEMORY;
    /* Padding is skipped: its zeros would have to be multiplied with weights that are NaN or infinite. */
    if (!p->want || !shape_of(p, q) || !suits(p, q) || !onxi_weights_are_finite(p, 1) || !take_layouts(p, q))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_weights(p, q));
    q->each = set_of(q->channels);
    q->units =
        window_units_of((uint64_t)(q->win.out[0] * q->win.out[1]), (q->channels + q->each - 1) / q->each, p->threads);
    q->fetch = q->x.pixel == q->channels && q->x.image >= FETCH_LEAST; /* lines of blocks are prefetched anyway */
    p->params = q;
    p->rows = (uint64_t)p->inputs[0]->dims[0] * window_units_count(&q->units);
    p->grain = onxi_worth_a_thread((uint64_t)q->win.out[2] * q->taps * q->group * q->each);
    return ONX_OK;
}

/* Before other rows if the input has channels next to each other already; after those that read planes otherwise. With
 * vectors of 8 floats, oneDNN's are faster for images that do not fit a second-level cache; where it is missing, these
 * come before rows that read planes. */
static const early_body laid_out = { .taps = ONXI_LANES == 8 ? 49 : 1, .image = FETCH_LEAST };
#if ONXI_LANES == 8
static const early_body larger = { .taps = 1 };
#define LARGER_ROW ROW(9, &larger),
#else
#define LARGER_ROW
#endif

#define ROW(preference_, body_)                                                                                        \
    {                                                                                                                  \
        .op = "Conv", .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .packs = 1 << 1,   \
        .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = body_, .prepare = prepare, \
        .run = run                                                                                                     \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_groups)[] = { ROW(11, &laid_out), LARGER_ROW ROW(4, NULL), { 0 } };
