/* transform_observe.c - ranges of values from samples: minimum and maximum, and a histogram whose range grows, from
 * which entropy, percentiles and errors are computed. */
#include "transform/transform_precision.h"

#include <float.h>
#include <math.h>

enum { HALF = 2048, BINS = 2 * HALF, LEVELS = 128 /* of a side */ };

struct onx_observer {
    onx_ctx *cx;
    size_t size; /* size of this struct including the bins */
    onx_observe_method method;
    double part;
    uint64_t count, nonfinite;
    float low, high;
    double most;    /* the histogram covers -most to most; 0: all elements were 0 */
    uint64_t zeros; /* in no bin: zeros are exact for every range */
    uint64_t bin[]; /* BINS; none if only minimum and maximum are needed */
};

onx_status onx_observer_new(onx_ctx *cx, onx_observe_method method, double part, onx_observer **out)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, (int)method >= (int)ONX_OBSERVE_MINMAX && (int)method <= (int)ONX_OBSERVE_MSE);
    ONXI_NEED(cx, method != ONX_OBSERVE_PERCENTILE || (part > 0.5 && part <= 1));
    onx_observer *o;
    const size_t size = sizeof *o + (method == ONX_OBSERVE_MINMAX ? 0 : BINS * sizeof o->bin[0]);
    o = onxi_resize(cx, NULL, 0, size);
    if (!o)
        return ONX_E_MEMORY;
    memset(o, 0, size);
    o->cx = cx;
    o->size = size;
    o->method = method;
    o->part = part;
    *out = o;
    return ONX_OK;
}

void onx_observer_free(onx_observer *observer)
{
    if (observer)
        onxi_release(observer->cx, observer, observer->size);
}

/* Doubles the range with the same number of bins. */
static void widen(onx_observer *o)
{
    for (int i = 0; i < HALF / 2; i++) { /* from the middle outwards, so that nothing is overwritten before it is
                                          * read */
        o->bin[HALF + i] = o->bin[HALF + 2 * i] + o->bin[HALF + 2 * i + 1];
        o->bin[HALF - 1 - i] = o->bin[HALF - 1 - 2 * i] + o->bin[HALF - 2 - 2 * i];
    }
    for (int i = HALF / 2; i < HALF; i++)
        o->bin[HALF + i] = o->bin[HALF - 1 - i] = 0;
    o->most *= 2;
}

static void count_one(onx_observer *o, double x)
{
    if (!(fabs(x) > 0)) {
        o->zeros++;
        return;
    }
    if (o->most <= 0)
        o->most = exp2(ceil(log2(fabs(x))));
    while (fabs(x) > o->most)
        widen(o);
    const double at = floor((x / o->most + 1) * HALF);
    o->bin[at < 0 ? 0 : at > BINS - 1 ? BINS - 1 : (int)at]++;
}

onx_status onx_observer_add(onx_observer *o, const float *x, uint64_t count)
{
    ONXI_NEED(NULL, o);
    ONXI_NEED(o->cx, x || !count);
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) {
            o->nonfinite++;
            continue;
        }
        if (!o->count++)
            o->low = o->high = x[i];
        o->low = x[i] < o->low ? x[i] : o->low;
        o->high = x[i] > o->high ? x[i] : o->high;
        if (o->method != ONX_OBSERVE_MINMAX)
            count_one(o, (double)x[i]);
    }
    return ONX_OK;
}

/* ---- ranges ---- */

/* The value below which `wanted` elements lie. */
static double quantile(const onx_observer *o, double wanted)
{
    double seen = 0;
    for (int i = 0; i < BINS; i++) {
        const double here = (double)(o->bin[i] + (i == HALF ? o->zeros : 0));
        if (here > 0 && seen + here >= wanted)
            return ((i + (wanted - seen) / here) / HALF - 1) * o->most;
        seen += here;
    }
    return o->most;
}

/* The information lost if magnitudes up to bin `end` are quantized to `levels`, and larger ones are clipped to the last
 * level. */
static double divergence(const double *sizes, int end, int levels, double beyond, double all)
{
    double lost = 0;
    for (int level = 0; level < levels; level++) {
        const int from = (int)((int64_t)level * end / levels), to = (int)((int64_t)(level + 1) * end / levels);
        double sum = 0;
        int used = 0;
        for (int i = from; i < to; i++) {
            sum += sizes[i];
            used += sizes[i] > 0;
        }
        for (int i = from; i < to; i++) {
            const double p = (sizes[i] + (i == end - 1 ? beyond : 0)) / all;
            const double q = sizes[i] > 0 ? sum / used / (all - beyond) : 0;
            if (p > 0)
                lost += p * log(p / (q > 0 ? q : 1e-9));
        }
    }
    return lost;
}

static double entropy_threshold(const onx_observer *o)
{
    double sizes[HALF], all = 0, best = DBL_MAX, beyond = 0, threshold = o->most;
    for (int i = 0; i < HALF; i++) {
        sizes[i] = (double)(o->bin[HALF + i] + o->bin[HALF - 1 - i]);
        all += sizes[i];
    }
    const int levels = o->low >= 0 || o->high <= 0 ? 2 * LEVELS : LEVELS; /* 8-bit levels on one side of 0 */
    for (int end = HALF; end >= levels; end -= 8) {
        for (int i = end; end < HALF && i < end + 8; i++)
            beyond += sizes[i];
        if (beyond >= all)
            break;
        const double lost = divergence(sizes, end, levels, beyond, all);
        if (lost < best) {
            best = lost;
            threshold = o->most * end / HALF;
        }
    }
    return threshold;
}

/* The sum of squared errors of 8-bit quantization if magnitudes are clipped at `most`: rounding errors inside of the
 * range, and clipping errors outside. A bin counts as its midpoint. */
static double square_error(const onx_observer *o, double most)
{
    const double from = fmax((double)o->low, -most), to = fmin((double)o->high, most);
    const double step = (fmax(to, 0) - fmin(from, 0)) / (2 * LEVELS - 1), rounding = step * step / 12;
    double error = 0;
    for (int i = 0; i < BINS; i++) {
        const double beyond = fabs((i + 0.5) / HALF - 1) * o->most - most;
        if (o->bin[i])
            error += (double)o->bin[i] * (beyond > 0 ? beyond * beyond + rounding : rounding);
    }
    return error;
}

static double least_error_threshold(const onx_observer *o)
{
    double best = DBL_MAX, threshold = o->most;
    for (int end = HALF; end >= LEVELS / 4; end -= 8) {
        const double error = square_error(o, o->most * end / HALF);
        if (error < best) {
            best = error;
            threshold = o->most * end / HALF;
        }
    }
    return threshold;
}

onx_status onx_observer_range(const onx_observer *o, float *low, float *high, uint64_t *nonfinite)
{
    ONXI_NEED(NULL, o);
    ONXI_NEED(o->cx, low);
    ONXI_NEED(o->cx, high);
    *low = *high = 0;
    if (nonfinite)
        *nonfinite = o->nonfinite;
    if (!o->count)
        return onxi_fail(o->cx, ONX_E_INVALID, ONXI_NOWHERE, "there was no finite number to take a range from");
    double from = (double)o->low, to = (double)o->high;
    if (o->method == ONX_OBSERVE_PERCENTILE && o->most > 0) {
        from = fmax(from, quantile(o, (1 - o->part) * (double)o->count));
        to = fmin(to, quantile(o, o->part * (double)o->count));
    } else if (o->method != ONX_OBSERVE_MINMAX && o->most > 0) {
        const double t = o->method == ONX_OBSERVE_ENTROPY ? entropy_threshold(o) : least_error_threshold(o);
        from = fmax(from, -t);
        to = fmin(to, t);
    }
    *low = (float)from;
    *high = (float)fmax(from, to);
    return ONX_OK;
}
