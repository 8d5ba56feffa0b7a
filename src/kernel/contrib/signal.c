/* signal.c - StftNorm: the amount of each frequency in windows of a sound; SplitSignalSegments and MergeSignalSegments:
 * the loud parts of a sound; and Inverse. */
#include "kernel/contrib/contrib.h"
#include "kernel/core/fft.h"
#include "kernel/core/inverse.h"
#include "kernel/core/sort.h"

#include <math.h>

/* ---- frames of a sound ---- */

typedef struct frames {
    const float *x;
    uint64_t count; /* number of samples */
    uint64_t fft, hop, window, total, bins;
    const float *weights;
    onxi_fft tables;
    onxi_complex *line;
    onxi_pace pace;
} frames;

/* A sound is [1, n]. There are n / hop + 1 windows; the first one is centered on the first sample, with zeros outside
 * of the sound. */
static onx_status open_frames(onx_work *work, int64_t fft, int64_t hop, uint64_t window, bool onesided, frames *f)
{
    const onx_value *x = work->inputs[0];
    uint64_t tables, line;
    if (x->rank != 2 || x->dims[0] != 1)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the audio signal has rank %u and %llu elements, and its shape is not [1,n]", x->rank,
                             (unsigned long long)x->count);
    if (fft < 1 || hop < 1 || window < 1 || window > (uint64_t)fft)
        return onx_work_fail(work, ONX_E_INVALID, "windows of %llu samples in %lld samples, %lld apart, are impossible",
                             (unsigned long long)window, (long long)fft, (long long)hop);
    if (!onxi_fft_room((uint64_t)fft, &tables, &line))
        return onx_work_fail(work, ONX_E_LIMIT, "a transform of %lld samples is too long", (long long)fft);
    onxi_complex *room = onxi_arena_array(work->text, tables + line, sizeof *room);
    if (!room)
        return ONX_E_MEMORY;
    f->pace = (onxi_pace){ .work = work };
    onxi_fft_make(&f->tables, (uint64_t)fft, room, &f->pace);
    f->line = room + tables;
    f->x = x->data;
    f->count = x->count;
    f->fft = (uint64_t)fft;
    f->hop = (uint64_t)hop;
    f->window = window;
    f->total = x->count / (uint64_t)hop + 1;
    f->bins = onesided ? f->fft / 2 + 1 : f->fft;
    return ONX_OK;
}

/* The squared magnitudes of one frame. */
static void transform(frames *f, uint64_t frame)
{
    /* The window begins `left` samples before the center. */
    const uint64_t begin = frame * f->hop, left = f->window / 2;
    for (uint64_t i = 0; i < f->fft; i++) {
        const bool inside = i < f->window && begin + i >= left && begin + i - left < f->count;
        f->line[i] = (onxi_complex){ inside ? (double)(f->x[begin + i - left] * f->weights[i]) : 0, 0 };
    }
    onxi_fft_run(&f->tables, f->line, false, &f->pace);
}

static double power(const frames *f, uint64_t bin)
{
    return f->line[bin].re * f->line[bin].re + f->line[bin].im * f->line[bin].im;
}

static onx_status norm_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    frames f = { 0 };
    int64_t fft, hop, length;
    const onx_value *window = work->inputs[3];
    ONX_TRY(onxi_contrib_int(work, 1, &fft));
    ONX_TRY(onxi_contrib_int(work, 2, &hop));
    ONX_TRY(onxi_contrib_int(work, 4, &length));
    if (length != fft)
        return onx_work_fail(work, ONX_E_INVALID, "frames of %lld samples do not fit transforms of %lld",
                             (long long)length, (long long)fft);
    ONX_TRY(open_frames(work, fft, hop, window->count, *(const bool *)work->params, &f));
    f.weights = window->data;
    const int64_t dims[] = { 1, (int64_t)f.bins, (int64_t)f.total };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_FLOAT, 3, dims));
    float *y = work->outputs[0]->data;
    for (uint64_t t = 0; t < f.total; t++) {
        if (onx_work_stops(work))
            return ONX_E_CANCELLED;
        ONX_TRY(onxi_ctx_go_on(work->cx));
        transform(&f, t);
        for (uint64_t k = 0; k < f.bins; k++)
            y[k * f.total + t] = (float)power(&f, k);
    }
    return ONX_OK;
}

static onx_status norm_prepare(onx_prepare *p)
{
    bool *onesided = ONXI_NEW(p->arena, bool);
    if (!onesided)
        return ONX_E_MEMORY;
    *onesided = onx_prepare_is_set(p, "onesided");
    p->params = onesided;
    return ONX_OK;
}

/* ---- loud parts of a sound ---- */

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The threshold: frames must be louder than the loudest frame minus `below` dB, and than the median frame. */
static onx_status threshold(onx_work *work, const float *level, uint64_t count, float below, float *out)
{
    onxi_pace pace = { .work = work };
    float *sorted = onxi_arena_array(work->text, count, 2 * sizeof *sorted);
    if (!sorted)
        return ONX_E_MEMORY;
    memcpy(sorted, level, count * sizeof *sorted);
    if (!onxi_sort(&pace, sorted, sorted + count, count, sizeof *sorted, by_size))
        return ONX_E_CANCELLED;
    *out = fmaxf(sorted[count - 1] + below, sorted[count / 2]);
    return ONX_OK;
}

static onx_status levels(onx_work *work, frames *f, float **out)
{
    const double pi = 3.14159265358979323846;
    float *weights = onxi_arena_array(work->text, f->fft, sizeof *weights);
    float *level = *out = onxi_arena_array(work->text, f->total, sizeof *level);
    if (!weights || !level)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < f->fft; i++) { /* Hann window */
        const double s = sin(pi * (double)i / (double)f->fft);
        weights[i] = (float)(s * s);
    }
    f->weights = weights;
    for (uint64_t t = 0; t < f->total; t++) {
        double sum = 0;
        if (onx_work_stops(work))
            return ONX_E_CANCELLED;
        ONX_TRY(onxi_ctx_go_on(work->cx));
        transform(f, t);
        for (uint64_t k = 0; k < f->bins; k++)
            sum += power(f, k);
        if (!isfinite(sum))
            return onx_work_fail(work, ONX_E_INVALID, "the audio signal is not finite near sample %llu",
                                 (unsigned long long)(t * f->hop));
        level[t] = 10.0f * log10f((float)sum + 1e-10f);
    }
    return ONX_OK;
}

/* Milliseconds, rounded as in float arithmetic. */
static int64_t milliseconds(uint64_t frame, uint64_t hop, int64_t rate)
{
    return (int64_t)((float)(frame * hop) / (float)rate * 1000.0f);
}

/* Counts runs of frames above the threshold, and writes them unless `to` is NULL. */
static int64_t loud(const frames *f, const float *level, float least, int64_t rate, int64_t *to)
{
    int64_t count = 0;
    for (uint64_t t = 0; t < f->total; t++) {
        if (!(level[t] > least))
            continue;
        const uint64_t begin = t;
        while (t < f->total && level[t] > least)
            t++;
        if (to) {
            to[2 * count] = milliseconds(begin, f->hop, rate);
            to[2 * count + 1] = milliseconds(t, f->hop, rate);
        }
        count++;
    }
    return count;
}

static onx_status split_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    int64_t rate, length, hop;
    frames f = { 0 };
    float *level, least;
    ONX_TRY(onxi_contrib_int(work, 1, &rate));
    ONX_TRY(onxi_contrib_int(work, 2, &length));
    ONX_TRY(onxi_contrib_int(work, 3, &hop));
    if (work->inputs[4]->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "input 4 has %llu elements, expected 1",
                             (unsigned long long)work->inputs[4]->count);
    if (rate < 1 || rate > INT32_MAX || length < 1 || length > INT32_MAX || hop < 1 || hop > INT32_MAX)
        return onx_work_fail(work, ONX_E_INVALID,
                             "%lld samples per second with frames of %lld ms, %lld ms apart, are impossible",
                             (long long)rate, (long long)length, (long long)hop);
    const int64_t samples = length * rate / 1000;
    ONX_TRY(open_frames(work, samples, hop * rate / 1000, samples < 1 ? 0 : (uint64_t)samples, true, &f));
    ONX_TRY(levels(work, &f, &level));
    ONX_TRY(threshold(work, level, f.total, *(const float *)work->inputs[4]->data, &least));
    const int64_t dims[] = { loud(&f, level, least, rate, NULL), 2 };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, dims));
    (void)loud(&f, level, least, rate, dims[0] ? work->outputs[0]->data : NULL);
    return ONX_OK;
}

/* ---- MergeSignalSegments ---- */

/* Joins a segment to the previous one if it begins at most `gap` after its end. Differences may overflow 64 bits, so
 * they are not computed. */
static int64_t merge(const int64_t *from, int64_t count, int64_t gap, int64_t *to)
{
    int64_t made = 0, begin = 0, end = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t apart;
        const bool joins = i && (__builtin_sub_overflow(from[2 * i], end, &apart) ? from[2 * i] < end : apart <= gap);
        if (!joins && i && to) {
            to[2 * made] = begin;
            to[2 * made + 1] = end;
        }
        made += !joins && i;
        begin = joins ? begin : from[2 * i];
        end = joins && end > from[2 * i + 1] ? end : from[2 * i + 1];
    }
    if (count && to) {
        to[2 * made] = begin;
        to[2 * made + 1] = end;
    }
    return made + (count != 0);
}

static onx_status merge_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    int64_t gap;
    ONX_TRY(onxi_contrib_int(work, 1, &gap));
    if (x->rank != 2 || x->dims[1] != 2)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the segments have rank %u and %llu elements, and their shape is not [n,2]", x->rank,
                             (unsigned long long)x->count);
    const int64_t dims[] = { merge(x->data, x->dims[0], gap, NULL), 2 };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, dims));
    if (dims[0])
        (void)merge(x->data, x->dims[0], gap, work->outputs[0]->data);
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_signal[] = {
    CONTRIB_KERNEL("Inverse", .prepare = onxi_inverse_prepare, .run = onxi_inverse_run),
    CONTRIB_KERNEL("StftNorm", .prepare = norm_prepare, .run = norm_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("SplitSignalSegments", .run = split_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("MergeSignalSegments", .run = merge_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
