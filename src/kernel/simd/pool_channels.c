/* pool_channels.c - MaxPool and AveragePool in the layouts in which the channels of a pixel are contiguous: channels
 * last, and blocks of channels. A strip of adjacent output pixels is reduced in registers, for a vector of channels at
 * a time: each column of the lines that a window covers is reduced once, for all windows that it belongs to. Taps in
 * the padding are skipped. */
#include "kernel/core/blocked.h"
#include "kernel/simd/window.h"

#if !ONXI_PLATFORM_ROOMY /* browsers pool planes */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_pool_channels)[] = { { 0 } };
#else

#include <math.h>

/* Pixels of a strip: 7 divides the sizes of most networks, which halve 224 pixels some times. Vectors of a pixel that
 * are reduced at once. */
enum { STRIP = 7, ROOM = 8, VECTORS = 4 };

struct pool_params;

/* The place of a strip. */
typedef struct strip {
    const float *x; /* the first input of the first pixel; its column may be in the padding */
    float *y;
    int64_t column;     /* of x in the image */
    int64_t pixels, at; /* of the strip; the first one in its line */
    uint64_t lines[2];  /* that windows cover: planes, and lines of each */
    float by[ROOM];     /* for averages: the factors of pixels */
    bool inside;        /* the windows of a whole strip are in the image horizontally */
    onxi_pace *pace;
} strip;

/* clang unrolls these loops by itself, and complains if it has removed one before it is to be unrolled. */
#if defined(__clang__)
#define POOL_UNROLL
#else
#define POOL_UNROLL WINDOW_UNROLL
#endif

typedef void strip_run(const struct pool_params *q, const strip *s);

typedef struct pool_params {
    simd_window win;
    uint64_t block;            /* channels that are contiguous for a pixel: a set */
    uint64_t x_image, y_image; /* elements of one that have these channels */
    uint64_t step[2];          /* elements from a tap to the next: across planes, across lines */
    window_units units;
    strip_run *run;
    const float *divisor[WINDOW_DIMS];
} pool_params;

/* Reduces a column of the lines. lines: their number if it is known, as they are in one plane. */
__attribute__((always_inline)) static inline onxi_vf column(const pool_params *q, const strip *s, const float *x,
                                                            const bool average, const int lines)
{
    onxi_vf v = lines ? vf_load(x) : vf_all(average ? 0 : -INFINITY);
    if (lines) {
        POOL_UNROLL
        for (int l = 1; l < lines; l++)
            v = window_both(average, v, vf_load(x + (uint64_t)l * q->step[1]));
        return v;
    }
    if (onxi_pace_stops(s->pace, s->lines[0] * s->lines[1]))
        return v;
    for (uint64_t z = 0; z < s->lines[0]; z++)
        for (uint64_t l = 0; l < s->lines[1]; l++)
            v = window_both(average, v, vf_load(x + z * q->step[0] + l * q->step[1]));
    return v;
}

/* Stores a pixel's vector at `y`; j: which pixel of the strip. */
__attribute__((always_inline)) static inline void finish(const strip *s, const bool average, int64_t j, onxi_vf v,
                                                         float *y)
{
    vf_store(y, average ? v * vf_all(s->by[j]) : v);
}

/* Reduces a strip. If the channels are not whole vectors, the last vector repeats some. */
__attribute__((always_inline)) static inline void strip_of(const pool_params *q, const strip *s, const bool average,
                                                           const int taps, const int stride, const int lines,
                                                           const bool inside)
{
    const uint64_t last = q->block - ONXI_LANES;
    const int64_t from = -s->column, end = q->win.in[2] - s->column;
    for (uint64_t i = 0; i < q->block; i += ONXI_LANES) {
        const uint64_t c = i < last ? i : last;
        const float *x = s->x + c;
        float *y = s->y + c;
        onxi_vf sum[STRIP];
        POOL_UNROLL
        for (int j = 0; j < STRIP; j++) /* the first column replaces it, if it is inside */
            sum[j] = vf_all(average ? 0 : -INFINITY);
        POOL_UNROLL
        for (int k = 0; k < (STRIP - 1) * stride + taps; k++, x = window_onward(x, q->block)) {
            if (!inside && (k < from || k >= end))
                continue;
            const onxi_vf v = column(q, s, x, average, lines);
            POOL_UNROLL
            for (int j = 0; j < STRIP; j++)
                if (k >= j * stride && k < j * stride + taps)
                    sum[j] = inside && k == j * stride ? v : window_both(average, sum[j], v);
        }
        POOL_UNROLL
        for (int j = 0; j < STRIP; j++)
            if (j < s->pixels)
                finish(s, average, j, sum[j], y + (uint64_t)j * q->block);
    }
}

/* Some vectors of a pixel, for any window: taps `first` to last-1 of each line are in the image. */
__attribute__((always_inline)) static inline void pixel_of(const pool_params *q, const strip *s, const bool average,
                                                           int64_t j, uint64_t c, int64_t first, int64_t last,
                                                           const int vectors)
{
    const uint64_t step = (uint64_t)q->win.dilation[2] * q->block;
    const float *x = s->x + c + (j * q->win.stride[2] + first * q->win.dilation[2]) * (int64_t)q->block;
    onxi_vf sum[VECTORS];
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_all(average ? 0 : -INFINITY);
    for (uint64_t z = 0; z < s->lines[0]; z++)
        for (uint64_t l = 0; l < s->lines[1] && !onxi_pace_stops(s->pace, (uint64_t)q->win.kernel[2]); l++) {
            const float *at = x + z * q->step[0] + l * q->step[1];
            for (int64_t k = first; k < last; k++, at += step)
                for (int v = 0; v < vectors; v++)
                    sum[v] = window_both(average, sum[v], vf_load(at + v * ONXI_LANES));
        }
    for (int v = 0; v < vectors; v++)
        finish(s, average, j, sum[v], s->y + (uint64_t)j * q->block + c + v * ONXI_LANES);
}

__attribute__((always_inline)) static inline void strip_of_any(const pool_params *q, const strip *s, const bool average)
{
    for (int64_t j = 0; j < s->pixels; j++) {
        int64_t first, last;
        uint64_t c = 0;
        window_taps(&q->win, 2, s->column + j * q->win.stride[2], &first, &last);
        for (; c + VECTORS * ONXI_LANES <= q->block; c += VECTORS * ONXI_LANES)
            pixel_of(q, s, average, j, c, first, last, VECTORS);
        for (; c < q->block; c += ONXI_LANES)
            pixel_of(q, s, average, j, c + ONXI_LANES <= q->block ? c : q->block - ONXI_LANES, first, last, 1);
    }
}

#define STRIP_RUN(name, average, taps, stride)                                                                         \
    static void name(const pool_params *q, const strip *s)                                                             \
    {                                                                                                                  \
        if (s->lines[0] != 1 || s->lines[1] != taps)                                                                   \
            strip_of(q, s, average, taps, stride, 0, false);                                                           \
        else if (s->inside)                                                                                            \
            strip_of(q, s, average, taps, stride, taps, true);                                                         \
        else                                                                                                           \
            strip_of(q, s, average, taps, stride, taps, false);                                                        \
    }
#define STRIP_RUNS(name, taps, stride)                                                                                 \
    STRIP_RUN(max_##name, false, taps, stride)                                                                         \
    STRIP_RUN(average_##name, true, taps, stride)
STRIP_RUNS(of_2_by_2, 2, 2)
STRIP_RUNS(of_3, 3, 1)
STRIP_RUNS(of_3_by_2, 3, 2)

static void max_of_any(const pool_params *q, const strip *s)
{
    strip_of_any(q, s, false);
}

static void average_of_any(const pool_params *q, const strip *s)
{
    strip_of_any(q, s, true);
}

/* Windows along a line that have code of their own; the last row is for all others. */
static const struct strip_kind {
    int64_t taps, stride;
    strip_run *run[2]; /* of maxima, of averages */
} strip_kinds[] = {
    { 2, 2, { max_of_2_by_2, average_of_2_by_2 } },
    { 3, 1, { max_of_3, average_of_3 } },
    { 3, 2, { max_of_3_by_2, average_of_3_by_2 } },
    { 0, 0, { max_of_any, average_of_any } },
};

static strip_run *run_of(const simd_window *win, bool average)
{
    const struct strip_kind *k = strip_kinds;
    while (k->taps && (k->taps != win->kernel[2] || k->stride != win->stride[2] || win->dilation[2] != 1))
        k++;
    return k->run[average];
}

/* ---- lines ---- */

/* Averages are multiplied by the inverse of their divisor, since divisions take as long as reducing a small window. */
static void take_factors(const pool_params *q, strip *s, float down)
{
    for (int64_t j = 0; j < ROOM; j++)
        s->by[j] = 1 / (down * q->divisor[2][j < s->pixels ? s->at + j : s->at]);
}

/* Computes line `line` of the result from the image `x`. The last strip repeats some pixels of the one before. */
static void line_of(const pool_params *q, const float *x, float *y, uint64_t line, onxi_pace *pace)
{
    const simd_window *win = &q->win;
    const int64_t at[] = { (int64_t)line / win->out[1], (int64_t)line % win->out[1] };
    const int64_t reach = (STRIP - 1) * win->stride[2] + (win->kernel[2] - 1) * win->dilation[2];
    int64_t first[2], last[2], lines[2];
    strip s = { .pixels = win->out[2] < STRIP ? win->out[2] : STRIP, .pace = pace };
    float down = 1;
    for (int d = 0; d < 2; d++) {
        const int64_t origin = at[d] * win->stride[d] - win->pad[d];
        window_taps(win, d, origin, &first[d], &last[d]);
        s.lines[d] = last[d] > first[d] ? (uint64_t)(last[d] - first[d]) : 0;
        lines[d] = s.lines[d] ? origin + first[d] * win->dilation[d] : 0;
        down *= q->divisor[d] ? q->divisor[d][at[d]] : 1;
    }
    x += (uint64_t)((lines[0] * win->in[1] + lines[1]) * win->in[2]) * q->block;
    y += line * (uint64_t)win->out[2] * q->block;
    for (int64_t ox = 0; ox < win->out[2] && !onxi_pace_stops(pace, q->block); ox += STRIP) {
        s.at = ox + s.pixels <= win->out[2] ? ox : win->out[2] - s.pixels;
        s.column = s.at * win->stride[2] - win->pad[2];
        s.inside = s.column >= 0 && s.column + reach < win->in[2];
        s.x = x + s.column * (int64_t)q->block;
        s.y = y + (uint64_t)s.at * q->block;
        if (q->divisor[2])
            take_factors(q, &s, down);
        q->run(q, &s);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    onxi_pace pace = { .work = work };
    for (uint64_t i = first; i < last; i++) {
        window_unit u;
        if (!window_unit_at(&q->units, i, &u))
            continue;
        const uint64_t set = u.image * q->units.sets + u.set;
        line_of(q, (const float *)work->inputs[0]->data + set * q->x_image,
                (float *)work->outputs[0]->data + set * q->y_image, u.line, &pace);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* The result has the layout of the input. */
static bool take_layouts(onx_prepare *p, pool_params *q)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    q->block = onxi_blocked_of(x);
    if (!p->want || q->block < ONXI_LANES)
        return false;
    if (onxi_product(y->dims, 2, y->rank) == 1)
        return true; /* all layouts are equal */
    return (y->layout = onxi_blocked_layout(p->arena, y, (uint32_t)q->block)) != NULL;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const bool average = *(const bool *)p->kernel->body;
    onxi_window from;
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 3 || p->output_count != 1 || !y || !x->count || !y->count || !take_layouts(p, q))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, NULL, &from));
    if (!window_take(&from, &q->win))
        return ONX_E_UNSUPPORTED;
    if (average)
        ONX_TRY(window_divisors(p, &from, &q->win, true, q->divisor));
    const simd_window *win = &q->win;
    const uint64_t lines = (uint64_t)(win->out[0] * win->out[1]), sets = (uint64_t)x->dims[1] / q->block;
    const uint64_t images = (uint64_t)x->dims[0] * sets;
    q->x_image = x->count / images;
    q->y_image = y->count / images;
    q->step[1] = (uint64_t)(win->dilation[1] * win->in[2]) * q->block;
    q->step[0] = (uint64_t)(win->dilation[0] * win->in[1] * win->in[2]) * q->block;
    q->run = run_of(win, average);
    q->units = window_units_of(lines, sets, p->threads);
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * window_units_count(&q->units);
    p->grain = onxi_worth_a_thread((x->count + y->count) / (images * lines) * ONXI_COST_ELEMENT);
    return ONX_OK;
}

static const bool maximum = false, average = true;

/* Before oneDNN's rows, if the input has channels next to each other already. */
#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 11, .isa = ONXI_LEVEL, .flags = ONX_KERNEL_LAYOUTS,  \
        .variant = ONXI_VARIANT, .body = &body_, .prepare = prepare, .run = run                                        \
    }
const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_pool_channels)[] = { ROW("MaxPool", maximum), ROW("AveragePool", average), { 0 } };
#endif
