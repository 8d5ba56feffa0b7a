/* blur.c - GaussianBlur: filters images of [n, height, width, channels] with a Gaussian window, as OpenCV does. */
#include "kernel/contrib/contrib.h"

#include <math.h>

enum { ROWS, COLUMNS };
enum { LONGEST = 65535, ACCURATE = 4 }; /* longest window; standard deviations on each side, for floats */

typedef struct params {
    uint64_t height, width, channels, row_at;
} params;

static onx_status blur_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    params *q = ONXI_NEW(p->arena, params);
    uint64_t total = 0;
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank != 4 || p->inputs[1]->count != 2 || p->inputs[2]->count != 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "the images have rank %u, and there are %llu sizes and %llu sigmas",
                                x->rank, (unsigned long long)p->inputs[1]->count,
                                (unsigned long long)p->inputs[2]->count);
    *q = (params){ (uint64_t)x->dims[1], (uint64_t)x->dims[2], (uint64_t)x->dims[3], 0 };
    if (!onxi_mul_u64(q->width * sizeof(float), q->channels, &total) || total > SIZE_MAX / 2)
        return onx_prepare_fail(p, ONX_E_LIMIT, "a row of an image is too long");
    p->thread_workspace = total;
    p->params = q;
    p->rows = x->count ? (uint64_t)x->dims[0] * q->height : 0;
    return ONX_OK;
}

/* Computes half of a window, its center first. Short windows without a given deviation have (nearly) the numbers of
 * Pascal's triangle. */
static onx_status make_window(onx_work *work, onx_arena *arena, int64_t size, double sigma, float **out)
{
    static const float known[][5] = { { 1 },
                                      { 0.5F, 0.25F },
                                      { 0.375F, 0.25F, 0.0625F },
                                      { 0.28125F, 0.21875F, 0.109375F, 0.03125F },
                                      { 60 / 256.F, 51 / 256.F, 30 / 256.F, 13 / 256.F, 4 / 256.F } };
    const uint64_t half = (uint64_t)size / 2;
    float *window = onxi_arena_array(arena, half + 1, sizeof *window);
    double sum = 1;
    *out = window;
    if (!window)
        return ONX_E_MEMORY;
    if (!(sigma > 0) && half < sizeof known / sizeof *known) {
        memcpy(window, known[half], (half + 1) * sizeof *window);
        return ONX_OK;
    }
    const double wide = sigma > 0 ? sigma : 0.15 * (double)size + 0.35, scale = -0.5 / (wide * wide);
    for (uint64_t i = 1; i <= half; i++)
        sum += 2 * exp(scale * (double)i * (double)i);
    for (uint64_t i = 0; i <= half; i++)
        window[i] = (float)(exp(scale * (double)i * (double)i) / sum);
    if (isfinite(sum) && window[0] > 0)
        return ONX_OK;
    return onx_work_fail(work, ONX_E_INVALID, "a window of %lld with a deviation of %g is impossible", (long long)size,
                         sigma);
}

/* Indices outside are reflected at the edges; the element on the edge is not repeated. */
static uint64_t reflect(int64_t at, uint64_t size)
{
    const int64_t period = 2 * ((int64_t)size - 1);
    if (period == 0)
        return 0;
    at %= period;
    at = at < 0 ? at + period : at;
    return (uint64_t)(at < (int64_t)size ? at : period - at);
}

typedef struct windows {
    int64_t size[2];
    float *half[2];
} windows;

static onx_status read_windows(onx_work *work, onx_arena *arena, windows *w)
{
    const int64_t *sizes = work->inputs[1]->data;
    const double *sigmas = work->inputs[2]->data;
    const params *q = work->params;
    const uint64_t sides[2] = { q->height, q->width };
    /* The input gives the deviation along columns first. */
    const double sigma[2] = { sigmas[1] > 0 ? sigmas[1] : sigmas[0], sigmas[0] };
    for (int i = 0; i < 2; i++) {
        w->size[i] = sides[i] == 1 ? 1 : sizes[i]; /* an image of one row or column is not filtered along that axis */
        if (w->size[i] <= 0 && sigma[i] > 0 && sigma[i] <= LONGEST)
            w->size[i] = llrint(sigma[i] * ACCURATE * 2 + 1) | 1;
        if (w->size[i] < 1 || w->size[i] > LONGEST || w->size[i] % 2 == 0 || !isfinite(sigma[i]))
            return onx_work_fail(work, ONX_E_INVALID, "ksize %lld with sigma %g gives no odd window of 1 to %d",
                                 (long long)sizes[i], sigma[i], LONGEST);
        ONX_TRY(make_window(work, arena, w->size[i], sigma[i], &w->half[i]));
    }
    return ONX_OK;
}

static void blur_row(const params *q, const windows *w, const float *image, uint64_t row, float *middle, float *y)
{
    const int64_t high = w->size[ROWS] / 2, wide = w->size[COLUMNS] / 2;
    const uint64_t step = q->width * q->channels;
    memset(middle, 0, step * sizeof *middle);
    for (int64_t k = -high; k <= high; k++) {
        const float *from = image + reflect((int64_t)row + k, q->height) * step, by = w->half[ROWS][k < 0 ? -k : k];
        for (uint64_t i = 0; i < step; i++)
            middle[i] += by * from[i];
    }
    memset(y, 0, step * sizeof *y);
    for (uint64_t c = 0; c < q->width; c++)
        for (int64_t k = -wide; k <= wide; k++) {
            const float *from = middle + reflect((int64_t)c + k, q->width) * q->channels,
                        by = w->half[COLUMNS][k < 0 ? -k : k];
            for (uint64_t i = 0; i < q->channels; i++)
                y[c * q->channels + i] += by * from[i];
        }
}

/* A row of work is a row of pixels of all images. */
static onx_status blur_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    const uint64_t step = q->width * q->channels, image = q->height * step;
    onx_arena *arena;
    windows w;
    ONX_TRY(onx_arena_new(work->cx, &arena));
    const onx_status status = read_windows(work, arena, &w);
    for (uint64_t row = first; status == ONX_OK && row < last; row++)
        blur_row(q, &w, (const float *)work->inputs[0]->data + row / q->height * image, row % q->height,
                 work->thread_workspace, (float *)work->outputs[0]->data + row * step);
    onx_arena_free(arena);
    return status;
}

const onx_kernel onxi_kernels_contrib_blur[] = {
    CONTRIB_KERNEL("GaussianBlur", .prepare = blur_prepare, .run = blur_run),
    { 0 },
};
