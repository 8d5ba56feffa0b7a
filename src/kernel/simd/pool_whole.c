/* pool_whole.c - means, sums and maxima over all pixels of an image whose channels are contiguous for a pixel (channels
 * last, or blocks of channels): global pools, pools whose only window covers the image, and reductions over the axes of
 * space. The result is the same in every layout. Each channel is reduced in one fixed order, whatever the number of
 * threads. */
#include "kernel/core/blocked.h"
#include "kernel/core/reduce.h"
#include "kernel/simd/doubles.h"
#include "kernel/simd/window.h"

#if !ONXI_PLATFORM_ROOMY /* browsers reduce planes */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_pool_whole)[] = { { 0 } };
#else

#include <math.h>

/* Vectors of channels that are reduced at once, and independent results of each of them; or one vector, and more of
 * them, where there are fewer channels: all channels of an image are added in the same order. Sums are accumulated in
 * float over some PIXELS, and in double over these. A unit of work has at most MOST channels, all but the last one some
 * times GROUP of them. */
enum { VECTORS = 4, WAYS = 2, WAYS_ALONE = 8, GROUP = VECTORS * ONXI_LANES, PIXELS = 256, MOST = 512 };

typedef struct whole_params {
    onxi_reduce_kind kind;
    uint64_t block, pixels; /* channels that are contiguous for a pixel; pixels of an image */
    uint64_t each, units;   /* channels of a unit of work; units of a block */
    double by;              /* the factor of sums */
} whole_params;

static inline onxi_vf narrow(const double *total, double by)
{
    float floats[ONXI_LANES];
    for (int i = 0; i < ONXI_LANES; i += DOUBLES) {
        doubles sum;
        memcpy(&sum, total + i, sizeof sum);
        const half_floats half = __builtin_convertvector(sum * by, half_floats);
        memcpy(floats + i, &half, sizeof half);
    }
    return vf_load(floats);
}

/* Reduces pixels `step` apart, for some vectors of channels, and adds the results to `total`. */
__attribute__((always_inline)) static inline void group(const bool sum, const float *x, uint64_t pixels, uint64_t step,
                                                        bool begins, double *total, const int vectors, const int ways)
{
    onxi_vf part[VECTORS * WAYS];
    uint64_t p = 0;
    for (int i = 0; i < vectors * ways; i++)
        part[i] = vf_all(sum ? 0 : -INFINITY);
    for (; p + (uint64_t)ways <= pixels; p += (uint64_t)ways)
        for (int w = 0; w < ways; w++, x += step)
            for (int v = 0; v < vectors; v++)
                part[w * vectors + v] = window_both(sum, part[w * vectors + v], vf_load(x + v * ONXI_LANES));
    for (; p < pixels; p++, x += step)
        for (int v = 0; v < vectors; v++)
            part[v] = window_both(sum, part[v], vf_load(x + v * ONXI_LANES));
    for (int v = 0; v < vectors; v++) {
        for (int w = 1; w < ways; w++)
            part[v] = window_both(sum, part[v], part[w * vectors + v]);
        doubles_add(part[v], begins, total + v * ONXI_LANES);
    }
}

/* Reduces `width` channels, a vector at least. If they are not whole vectors, the last vector repeats some.
 * Returns whether all results are finite. */
__attribute__((always_inline)) static inline bool unit(const whole_params *q, const bool sum, const float *x,
                                                       uint64_t width, float *y, onxi_pace *pace)
{
    const uint64_t most = sum ? PIXELS : q->pixels;
    double total[MOST + ONXI_LANES]; /* not cleared, which would take as long */
    for (uint64_t p = 0; p < q->pixels; p += most, x += most * q->block) {
        const uint64_t count = q->pixels - p < most ? q->pixels - p : most;
        uint64_t c = 0;
        for (; c + GROUP <= width && !onxi_pace_stops(pace, VECTORS * count); c += GROUP)
            group(sum, x + c, count, q->block, p == 0, total + c, VECTORS, WAYS);
        for (; c < width && !onxi_pace_stops(pace, count); c += ONXI_LANES) {
            const float *from = x + (c + ONXI_LANES <= width ? c : width - ONXI_LANES);
            if (q->block >= GROUP)
                group(sum, from, count, q->block, p == 0, total + c, 1, WAYS);
            else
                group(sum, from, count, q->block, p == 0, total + c, 1, WAYS_ALONE);
        }
    }
    onxi_vi off = { 0 };
    for (uint64_t c = 0; c < width; c += ONXI_LANES) {
        const onxi_vf v = narrow(total + c, q->by);
        off |= ~(vf_abs(v) < INFINITY);
        vf_store(y + (c + ONXI_LANES <= width ? c : width - ONXI_LANES), v);
    }
    return !vi_any(off);
}

/* Sums channels again whose float sums may have overflowed. */
static void sum_wide(const whole_params *q, const float *x, uint64_t width, float *y, onxi_pace *pace)
{
    for (uint64_t c = 0; c < width && !onxi_pace_stops(pace, q->pixels); c++) {
        double sum = 0;
        for (uint64_t p = 0; !isfinite(y[c]) && p < q->pixels; p++)
            sum += (double)x[p * q->block + c];
        y[c] = isfinite(y[c]) ? y[c] : (float)(sum * q->by);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const whole_params *q = work->params;
    onxi_pace pace = { .work = work };
    for (uint64_t i = first; i < last; i++) {
        const uint64_t image = i / q->units, c = i % q->units * q->each;
        const uint64_t width = (i + 1) % q->units ? q->each : q->block - c;
        const float *x = (const float *)work->inputs[0]->data + image * q->block * q->pixels + c;
        float *y = (float *)work->outputs[0]->data + image * q->block + c;
        if (q->kind == ONXI_REDUCE_MAX)
            unit(q, false, x, width, y, &pace);
        else if (!unit(q, true, x, width, y, &pace))
            sum_wide(q, x, width, y, &pace);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* How the operator says what is reduced. */
typedef enum whole_form { WHOLE_ALWAYS, WHOLE_WINDOW, WHOLE_AXES } whole_form;

typedef struct whole_body {
    onxi_reduce_kind kind; /* comes first, as onxi_reduce_prepare expects */
    whole_form form;
} whole_body;

/* Does the only window cover the image? */
static bool window_covers(onx_prepare *p, whole_params *q)
{
    onxi_window from;
    simd_window win;
    const float *divisor[WINDOW_DIMS];
    if (onxi_window_make(p, NULL, &from) != ONX_OK || !window_take(&from, &win))
        return false;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        int64_t first, last;
        window_taps(&win, d, -win.pad[d], &first, &last);
        if (win.out[d] != 1 || last - first != win.in[d])
            return false;
    }
    if (q->kind != ONXI_REDUCE_MEAN)
        return true;
    if (window_divisors(p, &from, &win, true, divisor) != ONX_OK)
        return false;
    q->by = 1 / ((double)divisor[0][0] * (double)divisor[1][0] * (double)divisor[2][0]);
    return true;
}

/* Are all axes but images and channels reduced? */
static bool axes_cover(onx_prepare *p)
{
    if (onxi_reduce_prepare(p) != ONX_OK)
        return false;
    const onxi_reduce_params *plain = p->params;
    bool covers = !plain->kept_prepare;
    for (uint32_t d = 0; d < p->inputs[0]->rank; d++)
        covers &= plain->is_reduced[d] == (d > 1);
    return covers;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const whole_body *body = p->kernel->body;
    whole_params *q = ONXI_NEW(p->arena, whole_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || x->rank < 3 || p->output_count != 1 || !y || !x->count || !y->count ||
        (q->block = onxi_blocked_of(x)) < ONXI_LANES)
        return ONX_E_UNSUPPORTED;
    q->kind = body->kind;
    q->pixels = onxi_product(x->dims, 2, x->rank);
    q->by = q->kind == ONXI_REDUCE_MEAN ? 1 / (double)q->pixels : 1;
    if ((body->form == WHOLE_WINDOW && !window_covers(p, q)) || (body->form == WHOLE_AXES && !axes_cover(p)))
        return ONX_E_UNSUPPORTED;
    const uint64_t share = q->block / (2 * (uint64_t)p->threads) / GROUP * GROUP;
    q->each = p->threads == 1 || share > MOST / 2 ? MOST / 2 : share < GROUP ? GROUP : share;
    q->units = q->block < q->each ? 1 : q->block / q->each;
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * ((uint64_t)x->dims[1] / q->block) * q->units;
    p->grain = onxi_worth_a_thread(x->count / p->rows * ONXI_COST_READING);
    return ONX_OK;
}

/* Pools before oneDNN's rows and those of pool_channels.c; reductions before those of planes. */
#define ROW(name, kind_, form_, preference_)                                                                           \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL,                      \
        .flags = ONX_KERNEL_LAYOUTS, .variant = ONXI_VARIANT, .body = &(const whole_body){ kind_, form_ },             \
        .prepare = prepare, .run = run                                                                                 \
    }
const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_pool_whole)[] = { ROW("GlobalAveragePool", ONXI_REDUCE_MEAN, WHOLE_ALWAYS, 12),
                                                     ROW("GlobalMaxPool", ONXI_REDUCE_MAX, WHOLE_ALWAYS, 12),
                                                     ROW("AveragePool", ONXI_REDUCE_MEAN, WHOLE_WINDOW, 12),
                                                     ROW("MaxPool", ONXI_REDUCE_MAX, WHOLE_WINDOW, 12),
                                                     ROW("ReduceMean", ONXI_REDUCE_MEAN, WHOLE_AXES, 3),
                                                     ROW("ReduceSum", ONXI_REDUCE_SUM, WHOLE_AXES, 3),
                                                     ROW("ReduceMax", ONXI_REDUCE_MAX, WHOLE_AXES, 3),
                                                     { 0 } };
#endif
