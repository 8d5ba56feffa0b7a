/* dots.c - Conv to a few output channels, as in the last layer of networks that make images or sound. Vectors run along
 * the input channels, which lie next to each other, since there are not enough output channels to fill one: each input
 * is loaded once for all output channels, each weight once for a strip of adjacent pixels, and the lanes are added up
 * at the end. The result is written in planes. Lines in the padding are skipped. Sums run in one fixed order. */
#include "kernel/kernel.h"

#if ONXI_PLATFORM_ROOMY /* browsers use conv.c */

#include "kernel/core/blocked.h"
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"
#include "kernel/simd/steps.h"
#include "kernel/simd/window.h"

/* Sums that registers hold; output channels that are computed together. With vectors of 4 floats, more than 3 output
 * channels fill a vector. */
#if ONXI_LANES == 16
enum { SUMS = 24, TOGETHER = 6 };
#define EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif ONXI_LANES == 8
enum { SUMS = 12, TOGETHER = 4 };
#define EACH(X) X(1) X(2) X(3) X(4)
#else
enum { SUMS = 12, TOGETHER = 3 };
#define EACH(X) X(1) X(2) X(3)
#endif
/* Most output channels, and fewest input channels; pixels per unit of work, and floats from a row of results to the
 * next, since they are stored by whole vectors. */
enum { MOST = 12, LEAST = 8, PIXELS = 256, ROW_STEP = PIXELS + ONXI_LANES, CHANNELS_MOST = 1 << 20 };

/* Pixels of a strip for so many output channels. */
#define STRIP_OF(m) (SUMS / (m) < ONXI_LANES ? SUMS / (m) : ONXI_LANES)

struct dots_params;

/* The place of a strip. */
typedef struct strip {
    const float *x, *w; /* the image; weights of the first output channel */
    float *to;          /* results of the first one */
    /* Where the windows of the first pixel begin, and the taps that are in the image, down. */
    int64_t origin[WINDOW_DIMS], first[2], last[2];
    int64_t pixels; /* that the image has */
} strip;

typedef void strip_run(const struct dots_params *q, const strip *s);

typedef struct dots_params {
    simd_window win;
    uint64_t c, m;                     /* channels of the input and of the output */
    uint64_t block, blocks, block_gap; /* input channels that lie next to each other; elements between two blocks */
    uint64_t depth, taps;              /* elements and taps of a window */
    uint64_t pieces;                   /* of a line */
    uint64_t lines, plane;             /* of an image: lines and pixels of the output */
    const float *weights, *bias;       /* bias NULL: none */
    bool adds;                         /* a post-operation has another operand */
    simd_posts posts;
} dots_params;

/* ---- sums ---- */

enum { BASES = (ONXI_LANES + ROW_SHARE - 1) / ROW_SHARE };

/* Rows that are read along: pixels, or output channels. */
typedef struct rows {
    const char *at[BASES];
    row_steps steps;
} rows;

__attribute__((always_inline)) static inline rows rows_from(const float *first, uint64_t step, const int count)
{
    rows r = { .steps = row_steps_of(step) };
    row_bases(r.at, first, &r.steps, count);
    return r;
}

__attribute__((always_inline)) static inline onxi_vf load_from(const rows *r, int i, bool whole, vf_lanes mask)
{
    const float *from = ROW_AT(r->at, i, &r->steps);
    return whole ? vf_load(from) : vf_load_lanes(from, mask);
}

/* Adds a vector of inputs of each pixel that `there` has a bit for. */
__attribute__((always_inline)) static inline void add_vector(const rows *x, const rows *w, onxi_vf *sum,
                                                             const int pixels, const int outputs, bool whole,
                                                             vf_lanes mask, const bool all, uint32_t there)
{
    onxi_vf by[TOGETHER], v[ONXI_LANES];
    /* What there is less of is kept in registers. */
    if (outputs <= pixels) {
        UNROLL
        for (int i = 0; i < outputs; i++)
            by[i] = load_from(w, i, whole, mask);
        UNROLL
        for (int j = 0; j < pixels; j++) {
            if (!all && !(there >> j & 1))
                continue;
            const onxi_vf of = load_from(x, j, whole, mask);
            UNROLL
            for (int i = 0; i < outputs; i++)
                sum[i * pixels + j] += by[i] * of;
        }
        return;
    }
    UNROLL
    for (int j = 0; j < pixels; j++)
        v[j] = all || there >> j & 1 ? load_from(x, j, whole, mask) : vf_all(0);
    UNROLL
    for (int i = 0; i < outputs; i++) {
        const onxi_vf of = load_from(w, i, whole, mask);
        UNROLL
        for (int j = 0; j < pixels; j++)
            sum[i * pixels + j] += of * v[j];
    }
}

__attribute__((always_inline)) static inline void go_on(rows *r, const int count, uint64_t elements)
{
    UNROLL
    for (int i = 0; i < count; i += ROW_SHARE) {
        r->at[i / ROW_SHARE] += elements * sizeof(float);
        ROW_OPAQUE(r->at[i / ROW_SHARE]);
    }
    ROW_OPAQUE(r->steps.one);
    ROW_OPAQUE(r->steps.three);
    ROW_OPAQUE(r->steps.five);
    ROW_OPAQUE(r->steps.seven);
}

/* Adds `taps` adjacent taps of a line of each pixel, multiplied with the weights from `w` on, for all blocks of
 * channels. */
__attribute__((always_inline)) static inline void add_run(const dots_params *q, const float *x, const float *w,
                                                          uint64_t taps, onxi_vf *sum, const int pixels,
                                                          const int outputs, const bool all, uint32_t there)
{
    const uint64_t vectors = taps * q->block / ONXI_LANES, whole = vectors * ONXI_LANES, rest = taps * q->block - whole;
    const vf_lanes mask = vf_lanes_of(rest);
    rows from = rows_from(x, (uint64_t)q->win.stride[2] * q->block, pixels), by = rows_from(w, q->depth, outputs);
    for (uint64_t b = q->blocks; b; b--) {
        for (uint64_t left = vectors; left; left--) {
            add_vector(&from, &by, sum, pixels, outputs, true, mask, all, there);
            go_on(&from, pixels, ONXI_LANES);
            go_on(&by, outputs, ONXI_LANES);
        }
        if (rest)
            add_vector(&from, &by, sum, pixels, outputs, false, mask, all, there);
        go_on(&from, pixels, q->block_gap - whole);
        go_on(&by, outputs, (uint64_t)q->win.kernel[2] * q->block - whole);
    }
}

/* The pixels of a strip that a tap of the first one, which is at `at` of a line, is in the image for. */
static inline uint32_t pixels_at(const dots_params *q, const strip *s, int64_t at)
{
    uint32_t there = 0;
    for (int j = 0; j < (int)s->pixels; j++, at += q->win.stride[2])
        there |= (uint32_t)(at >= 0 && at < q->win.in[2]) << j;
    return there;
}

/* Adds one line of a window. `x`: the first input of the first pixel, which may be in the padding. */
__attribute__((always_inline)) static inline void add_line(const dots_params *q, const strip *s, const float *x,
                                                           const float *w, onxi_vf *sum, const int pixels,
                                                           const int outputs)
{
    const int64_t step = q->win.dilation[2], kernel = q->win.kernel[2];
    const int64_t end = q->win.in[2] - (pixels - 1) * q->win.stride[2]; /* of the taps that are there for all pixels */
    for (int64_t k = 0, count; k < kernel; k += count) {
        const int64_t at = s->origin[2] + k * step;
        const float *from = x + k * step * (int64_t)q->block, *by = w + (uint64_t)k * q->block;
        count = 1;
        if (s->pixels == pixels && at >= 0 && at < end) {
            if (step == 1)
                count = end - at < kernel - k ? end - at : kernel - k;
            add_run(q, from, by, (uint64_t)count, sum, pixels, outputs, true, 0);
            continue;
        }
        const uint32_t there = pixels_at(q, s, at);
        if (there)
            add_run(q, from, by, 1, sum, pixels, outputs, false, there);
    }
}

#if ONXI_LANES == 16
#define UPPER_8 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7
#define UPPER_4 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3
#elif ONXI_LANES == 8
#define UPPER_4 4, 5, 6, 7, 0, 1, 2, 3
#endif

/* Adds up the lanes of each of `count` vectors, more than two: lane i of the result is the sum of the i-th. */
__attribute__((always_inline)) static inline onxi_vf sum_lanes(const onxi_vf *of, const int count)
{
    onxi_vf v[ONXI_LANES];
    const int size = count > 8 ? 16 : count > 4 ? 8 : 4;
    UNROLL
    for (int i = 0; i < size; i++)
        v[i] = i < count ? of[i] : vf_all(0);
    UNROLL
    for (int half = size / 2; half; half /= 2)
        UNROLL
    for (int i = 0; i < half; i++)
        v[i] = __builtin_shufflevector(v[i], v[i + half], ONXI_LOW) +
               __builtin_shufflevector(v[i], v[i + half], ONXI_HIGH);
#if ONXI_LANES == 16
    if (size < 16)
        v[0] += __builtin_shufflevector(v[0], v[0], UPPER_8);
#endif
#if ONXI_LANES > 4
    if (size < 8)
        v[0] += __builtin_shufflevector(v[0], v[0], UPPER_4);
#endif
    return v[0];
}

/* Computes a strip of some output channels. */
__attribute__((always_inline)) static inline void strip_of(const dots_params *q, const strip *s, const int pixels,
                                                           const int outputs)
{
    const simd_window *win = &q->win;
    onxi_vf sum[SUMS];
    UNROLL
    for (int i = 0; i < pixels * outputs; i++)
        sum[i] = vf_all(0);
    for (int64_t z = s->first[0]; z < s->last[0]; z++)
        for (int64_t y = s->first[1]; y < s->last[1]; y++) {
            const int64_t plane = (s->origin[0] + z * win->dilation[0]) * win->in[1];
            const int64_t line = (plane + s->origin[1] + y * win->dilation[1]) * win->in[2] + s->origin[2];
            const uint64_t tap = (uint64_t)((z * win->kernel[1] + y) * win->kernel[2]);
            add_line(q, s, s->x + line * (int64_t)q->block, s->w + tap * q->c, sum, pixels, outputs);
        }
    UNROLL
    for (int i = 0; i < outputs; i++)
        vf_store(s->to + i * ROW_STEP, sum_lanes(sum + i * pixels, pixels));
}

#define STRIP(m)                                                                                                       \
    static void strip_##m(const dots_params *q, const strip *s)                                                        \
    {                                                                                                                  \
        strip_of(q, s, STRIP_OF(m), m);                                                                                \
    }
EACH(STRIP)
#undef STRIP

/* By output channels, from 1 on. */
static const struct strip_kind {
    int64_t pixels;
    strip_run *run;
} strip_kinds[TOGETHER] = {
#define KIND(m) { STRIP_OF(m), strip_##m },
    EACH(KIND)
#undef KIND
};

/* ---- units of work ---- */

/* Computes some pixels of a line, from `column` on, for some output channels. */
static void strips_of(const dots_params *q, strip *s, int64_t column, int64_t pixels, uint64_t outputs)
{
    const struct strip_kind *kind = &strip_kinds[outputs - 1];
    float *to = s->to;
    for (int64_t i = 0; i < pixels; i += kind->pixels) { /* the last strip is a whole one if possible */
        const int64_t at = i + kind->pixels <= pixels || pixels < kind->pixels ? i : pixels - kind->pixels;
        s->origin[2] = (column + at) * q->win.stride[2] - q->win.pad[2];
        s->pixels = pixels < kind->pixels ? pixels : kind->pixels;
        s->to = to + at;
        kind->run(q, s);
    }
}

/* Adds the bias to the sums of some pixels, applies the post-operations, and stores them at `at` of the result. */
static void finish(const dots_params *q, const onx_work *work, float *sums, uint64_t pixels, uint64_t at)
{
    const uint64_t vectors = (pixels + ONXI_LANES - 1) / ONXI_LANES;
    float *others = sums + q->m * ROW_STEP, *y = (float *)work->outputs[0]->data + at;
    const float *bias = q->bias;
    for (uint64_t i = 0; bias && i < q->m; i++)
        for (uint64_t v = 0; v < vectors; v++) {
            float *to = sums + i * ROW_STEP + v * ONXI_LANES;
            vf_store(to, vf_load(to) + bias[i]);
        }
    for (uint32_t p = 0; p < q->posts.count; p++) {
        const simd_post *f = &q->posts.list[p];
        const float *other = f->operand >= 0 ? (const float *)work->inputs[f->operand]->data + at : NULL;
        for (uint64_t i = 0; other && i < q->m; i++) {
            vf_store(others + i * ROW_STEP + pixels, vf_all(0));
            memcpy(others + i * ROW_STEP, other + i * q->plane, pixels * sizeof *others);
        }
        post_apply(f, sums, ROW_STEP, q->m, vectors, NULL, other ? others : NULL, ROW_STEP);
    }
    for (uint64_t i = 0; i < q->m; i++)
        memcpy(y + i * q->plane, sums + i * ROW_STEP, pixels * sizeof *y);
}

/* A unit of work is a line of the result, or a piece of it. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const dots_params *q = work->params;
    const simd_window *win = &q->win;
    const uint64_t image_size = q->c * (uint64_t)(win->in[0] * win->in[1] * win->in[2]);
    float *sums = work->thread_workspace;
    for (uint64_t unit = first; unit < last; unit++) {
        const uint64_t line = unit / q->pieces % q->lines, image = unit / q->pieces / q->lines;
        const uint64_t column = unit % q->pieces * PIXELS, left = (uint64_t)win->out[2] - column;
        const uint64_t pixels = left < PIXELS ? left : PIXELS, groups = (q->m + TOGETHER - 1) / TOGETHER;
        const int64_t at[] = { (int64_t)line / win->out[1], (int64_t)line % win->out[1] };
        strip s = { .x = (const float *)work->inputs[0]->data + image * image_size };
        for (int d = 0; d < 2; d++) {
            s.origin[d] = at[d] * win->stride[d] - win->pad[d];
            window_taps(win, d, s.origin[d], &s.first[d], &s.last[d]);
        }
        for (uint64_t i = 0; i < q->m; i++)
            vf_store(sums + i * ROW_STEP + pixels, vf_all(0));
        for (uint64_t g = 0; g < groups; g++) {
            const uint64_t from = g * q->m / groups;
            s.w = q->weights + from * q->depth;
            s.to = sums + from * ROW_STEP;
            strips_of(q, &s, (int64_t)column, (int64_t)pixels, (g + 1) * q->m / groups - from);
        }
        finish(q, work, sums, pixels, image * q->m * q->plane + line * (uint64_t)win->out[2] + column);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

typedef struct packing {
    uint64_t c, block, taps, across; /* across: taps of a line */
} packing;

/* Packs the weights of an output channel: by line of taps, by block of input channels, by tap, by channel. */
static onx_status pack_output(void *user, const void *elements, uint64_t output, void *out)
{
    const packing *q = user;
    const float *from = (const float *)elements + output * q->c * q->taps;
    float *to = (float *)out + output * q->c * q->taps;
    for (uint64_t line = 0; line < q->taps; line += q->across)
        for (uint64_t b = 0; b < q->c; b += q->block)
            for (uint64_t t = line; t < line + q->across; t++)
                for (uint64_t c = b; c < b + q->block; c++)
                    *to++ = from[c * q->taps + t];
    return ONX_OK;
}

static onx_status take_weights(onx_prepare *p, dots_params *q)
{
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    packing from = { q->c, q->block, q->taps, (uint64_t)q->win.kernel[2] };
    const struct {
        char what[8];
        packing how;
    } key = { "dots", from };
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = p->inputs[1]->count * sizeof(float),
                              .pieces = q->m,
                              .in_order = true,
                              .make = pack_output,
                              .user = &from };
    const void *weights;
    ONX_TRY(p->ops->packed(p, &job, &weights)); /* weights that are not constant are not packed */
    q->weights = weights;
    q->bias = b ? b->data : NULL;
    return ONX_OK;
}

static bool shape_of(onx_prepare *p, dots_params *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank < 3 || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT || !y || y->rank != x->rank ||
        !y->count || !x->count || !w->count || onx_prepare_int(p, "group") != 1 || x->dims[0] != y->dims[0] ||
        w->dims[1] != x->dims[1] || w->dims[0] != y->dims[1] || y->dims[1] > MOST || x->dims[1] < LEAST ||
        x->dims[1] > CHANNELS_MOST || (b && (!b->data || b->dtype != ONX_FLOAT || b->count != (uint64_t)w->dims[0])) ||
        onxi_window_make(p, w->dims + 2, &win) != ONX_OK || (!x->layout && onxi_window_is_pixel(&win)))
        return false; /* few.c reads planes, if windows are pixels */
    q->c = (uint64_t)x->dims[1];
    q->m = (uint64_t)y->dims[1];
    q->depth = w->count / q->m;
    q->taps = q->depth / q->c;
    return window_take(&win, &q->win);
}

/* Strips lie along the last axis: makes a vertical line a horizontal one, and all lines one if windows are pixels. */
static void turn_lines(simd_window *w)
{
    bool joins = true;
    for (int d = 0; d < WINDOW_DIMS; d++)
        joins = joins && w->kernel[d] == 1 && w->stride[d] == 1 && !w->pad[d] && w->out[d] == w->in[d];
    for (int d = 0; joins && d < 2; d++) {
        w->in[2] *= w->in[d];
        w->out[2] = w->in[2];
        w->in[d] = w->out[d] = 1;
    }
    if (w->in[2] != 1 || w->out[2] != 1 || w->kernel[2] != 1 || w->pad[2])
        return;
#define SWAP(of)                                                                                                       \
    {                                                                                                                  \
        const int64_t down = w->of[1];                                                                                 \
        w->of[1] = w->of[2];                                                                                           \
        w->of[2] = down;                                                                                               \
    }
    SWAP(in)
    SWAP(out)
    SWAP(kernel)
    SWAP(stride)
    SWAP(dilation)
    SWAP(pad)
#undef SWAP
}

/* Blocks of channels are read as they lie. */
static bool take_layout(onx_prepare *p, dots_params *q)
{
    const onx_value *x = p->inputs[0];
    const uint32_t block = onxi_blocked_of(x);
    const onx_layout *in = x->layout;
    if (!block && !onxi_channels_last(p, x, &in))
        return false;
    q->block = block ? block : q->c;
    q->blocks = q->c / q->block;
    q->block_gap = q->block * (uint64_t)(q->win.in[0] * q->win.in[1] * q->win.in[2]);
    p->want[0] = in;
    for (uint32_t i = 1; i < p->operand_count; i++)
        p->want[i] = NULL;
    return true;
}

/* Is it faster than vectors of output channels, which take as long for a few as for all of them? Adding up the lanes of
 * a sum takes as long as some products. */
static bool pays(const dots_params *q)
{
    /* by the number of lanes: 4, 8, 16 */
    enum { WIDTH = ONXI_LANES / 8 };
    static const uint64_t full[] = { 4, 9, 12 }, adding_up[] = { 40, 100, 80 };
    const uint64_t run = q->win.dilation[2] == 1 ? (uint64_t)q->win.kernel[2] * q->block : q->block;
    const uint64_t padded = (run + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    return q->m * (q->depth / run * padded + adding_up[WIDTH]) <= full[WIDTH] * q->depth;
}

static onx_status prepare(onx_prepare *p)
{
    dots_params *q = ONXI_NEW(p->arena, dots_params);
    if (!q)
        return ONX_E_MEMORY;
    /* Padding is skipped: its zeros would have to be multiplied with weights that are NaN or infinite. */
    if (!p->want || !shape_of(p, q) || !onxi_weights_are_finite(p, 1) || !take_layout(p, q))
        return ONX_E_UNSUPPORTED;
    turn_lines(&q->win);
    if (!pays(q))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_weights(p, q));
    post_take_image(p, &q->posts, NULL);
    for (uint32_t i = 0; i < q->posts.count; i++)
        q->adds = q->adds || q->posts.list[i].operand >= 0;
    q->lines = (uint64_t)(q->win.out[0] * q->win.out[1]);
    q->plane = q->lines * (uint64_t)q->win.out[2];
    q->pieces = ((uint64_t)q->win.out[2] + PIXELS - 1) / PIXELS;
    p->params = q;
    p->rows = (uint64_t)p->inputs[0]->dims[0] * q->lines * q->pieces;
    p->grain = onxi_worth_a_thread(q->plane / q->lines / q->pieces * q->depth * q->m);
    p->thread_workspace = (q->adds ? 2 : 1) * q->m * ROW_STEP * sizeof(float);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_dots)[] = { { .op = "Conv",
                                                              .since = 1,
                                                              .dtypes = ONXI_F32,
                                                              .preference = 12,
                                                              .isa = ONXI_LEVEL,
                                                              .packs = 1 << 1,
                                                              .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                              .variant = ONXI_VARIANT,
                                                              .prepare = prepare,
                                                              .run = run },
                                                            { 0 } };
#endif
