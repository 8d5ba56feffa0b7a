/* sample.c - GridSample: samples the input at the coordinates that the grid gives for each output position. The
 * neighbours of a position and their weights are computed once for all channels. */
#include "kernel/core/sample.h"
#include "kernel/core/loops.h"

#include <math.h>

enum { TAPS_MAX = 4096 }; /* neighbours of a position: 4 along each of 6 axes */

/* Weighted sum of the neighbours, for one channel. */
typedef double (*sample_loop)(const void *x, const uint64_t *at, const double *weight, uint32_t count, uint64_t step,
                              uint64_t part);
#define SAMPLE(op, d, T, C, M, L, S)                                                                                   \
    static double op##_##d(const void *px, const uint64_t *at, const double *weight, uint32_t count, uint64_t step,    \
                           uint64_t part)                                                                              \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        double sum = 0;                                                                                                \
        for (uint32_t i = 0; i < count; i++)                                                                           \
            sum += weight[i] * (double)L(x[at[i] * step + part]);                                                      \
        return sum;                                                                                                    \
    }
ONXI_EACH_FLOAT(SAMPLE, sample)
ONXI_EACH_SIGNED(SAMPLE, sample)
ONXI_EACH_UNSIGNED(SAMPLE, sample)
ONXI_EACH_BOOL(SAMPLE, sample)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const sample_loop loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, sample) ONXI_EACH_SIGNED(ENTRY, sample)
                                                        ONXI_EACH_UNSIGNED(ENTRY, sample)
                                                            ONXI_EACH_BOOL(ENTRY, sample)[ONX_COMPLEX64] = sample_FLOAT,
                                                    [ONX_COMPLEX128] = sample_DOUBLE };

typedef struct sample_params {
    onxi_sample at;
    sample_loop loop;
} sample_params;

static onx_status read_modes(const onx_prepare *p, onxi_sample *q)
{
    static const onxi_word words[] = {
        { "nearest", 1, 0 }, { "linear", 20, 0 }, { "cubic", 20, 0 }, { "bilinear", 16, 19 }, { "bicubic", 16, 19 }
    };
    static const onxi_sample_mode modes[] = { ONXI_SAMPLE_NEAREST, ONXI_SAMPLE_LINEAR, ONXI_SAMPLE_CUBIC,
                                              ONXI_SAMPLE_LINEAR, ONXI_SAMPLE_CUBIC };
    onx_str padding = onx_prepare_text(p, "padding_mode");
    const int word = onxi_prepare_word(p, "mode", words, 5);
    if (word < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "mode is \"%.*s\"", ONX_ARG(onx_prepare_text(p, "mode")));
    q->mode = modes[word];
    if (onx_str_is(padding, "border"))
        q->padding = ONXI_SAMPLE_BORDER;
    else if (onx_str_is(padding, "reflection"))
        q->padding = ONXI_SAMPLE_REFLECTION;
    else if (!onx_str_is(padding, "zeros"))
        return onx_prepare_fail(p, ONX_E_INVALID, "padding_mode is \"%.*s\"", ONX_ARG(padding));
    return ONX_OK;
}

onx_status onxi_sample_make(onx_prepare *p, onxi_sample *q)
{
    const onx_value *x = p->inputs[0], *grid = p->inputs[1], *y = p->outputs[0];
    if (x->rank < 3 || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[grid->rank - 1] != (int64_t)x->rank - 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "a grid of rank %u does not fit an input of rank %u", grid->rank,
                                x->rank);
    ONX_TRY(onxi_whole_bytes(p));
    ONX_TRY(read_modes(p, q));
    q->align = onx_prepare_int(p, "align_corners") != 0;
    q->rank = x->rank - 2;
    q->taps = 1;
    for (uint32_t i = 0; q->mode != ONXI_SAMPLE_NEAREST && i < q->rank; i++) {
        q->taps *= q->mode == ONXI_SAMPLE_LINEAR ? 2 : 4;
        if (q->taps > TAPS_MAX)
            return onx_prepare_fail(p, ONX_E_LIMIT, "interpolation over %u axes is not supported", q->rank);
    }
    if (!x->count && y->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has no elements to sample");
    q->channels = (uint64_t)x->dims[1];
    q->in_size = onxi_product(x->dims, 2, x->rank);
    q->places = onxi_product(y->dims, 2, y->rank);
    p->rows = y->count ? (uint64_t)x->dims[0] * q->places : 0;
    p->grain = ONXI_BLOCK / (q->channels * q->taps + 1) + 1;
    return ONX_OK;
}

static onx_status sample_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    sample_params *q = ONXI_NEW(p->arena, sample_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_sample_make(p, &q->at));
    q->loop = x->dtype < ONX_DTYPE_COUNT ? loops[x->dtype] : NULL;
    if (!q->loop && q->at.mode != ONXI_SAMPLE_NEAREST)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "elements of %s cannot be interpolated",
                                onx_dtype_name(x->dtype));
    p->params = q;
    p->thread_workspace = q->at.taps * (sizeof(uint64_t) + sizeof(double));
    return ONX_OK;
}

/* ---- coordinates ---- */

/* Reflects x between the bounds. */
static double reflect(double x, double low, double high)
{
    double range = high - low, over = x < low ? low - x : x - high;
    if (x >= low && x <= high)
        return x;
    if (!(range > 0) || isinf(over))
        return low;
    double rest = fmod(over, range);
    bool even = fmod(floor(over / range), 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

static double place_of(const onxi_sample *q, double g, int64_t size)
{
    float n = (float)g, length = (float)size; /* in float, as the reference computes it */
    double x = (double)(q->align ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2);
    double low = q->align ? 0 : -0.5, high = q->align ? (double)size - 1 : (double)size - 0.5;
    if (q->mode == ONXI_SAMPLE_NEAREST)
        x = rint(x);
    if (isnan(x))
        return -8; /* far outside of the image */
    if (q->padding == ONXI_SAMPLE_BORDER && (x < low || x > high))
        return x < 0 ? 0 : x > (double)size - 1 ? (double)size - 1 : x;
    if (q->padding == ONXI_SAMPLE_REFLECTION)
        return reflect(x, low, high);
    return x < -8 ? -8 : x > (double)size + 8 ? (double)size + 8 : x;
}

/* The index that replaces one outside of the image; -1: the element counts as zero. */
static int64_t index_of(const onxi_sample *q, int64_t i, int64_t size)
{
    if (i >= 0 && i < size)
        return i;
    if (q->padding == ONXI_SAMPLE_ZEROS)
        return -1;
    if (q->padding == ONXI_SAMPLE_REFLECTION)
        i = (int64_t)reflect((double)i, q->align ? 0 : -0.5, q->align ? (double)size - 1 : (double)size - 0.5);
    return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* The number of neighbours along an axis, from `first` on, and their weights. */
static uint32_t weigh(const onxi_sample *q, double x, int64_t *first, double *weight)
{
    const double a = -0.75;
    double f = x - floor(x), n = 1 - f;
    *first = (int64_t)floor(x);
    if (q->mode == ONXI_SAMPLE_NEAREST) {
        weight[0] = 1;
        return 1;
    }
    if (q->mode == ONXI_SAMPLE_LINEAR) {
        weight[0] = n;
        weight[1] = f;
        return 2;
    }
    *first -= 1;
    weight[0] = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a;
    weight[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
    weight[2] = ((a + 2) * n - (a + 3)) * n * n + 1;
    weight[3] = ((a * (n + 1) - 5 * a) * (n + 1) + 8 * a) * (n + 1) - 4 * a;
    return 4;
}

/* Finds all neighbours of a position that exist: axis by axis, each one combined with all those of the axes before. */
static uint32_t find_taps(const onxi_sample *q, const onx_value *x, const onx_value *grid, uint64_t place, uint64_t *at,
                          double *weight)
{
    uint32_t count = 1;
    at[0] = 0;
    weight[0] = 1;
    for (uint32_t d = 0; d < q->rank; d++) {
        int64_t size = x->dims[d + 2], first;
        double along[4];
        uint32_t n = weigh(q, place_of(q, onxi_value_number(grid, (place + 1) * q->rank - 1 - d), size), &first, along);
        uint32_t kept = 0;
        int64_t index[4];
        double part[4];
        for (uint32_t k = 0; k < n; k++) {
            index[kept] = index_of(q, first + k, size);
            part[kept] = along[k];
            kept += index[kept] >= 0;
        }
        for (uint32_t i = count; i-- > 0;) /* from the end, so that no entry is overwritten before it is read */
            for (uint32_t k = kept; k-- > 0;) {
                at[i * kept + k] = at[i] * (uint64_t)size + (uint64_t)index[k];
                weight[i * kept + k] = weight[i] * part[k];
            }
        count *= kept;
    }
    return count;
}

/* ---- a block of positions ---- */

/* The neighbours of a block of positions along one axis. */
typedef struct sample_line {
    int32_t at[4][ONXI_SAMPLE_BLOCK];
    float weight[4][ONXI_SAMPLE_BLOCK];
    uint32_t count;
} sample_line;

static void find_line(const onxi_sample *q, int64_t size, const float *grid, uint64_t count, sample_line *out)
{
    out->count = q->mode == ONXI_SAMPLE_NEAREST ? 1 : q->mode == ONXI_SAMPLE_LINEAR ? 2 : 4;
    for (uint64_t i = 0; i < count; i++) {
        double weight[4];
        int64_t first;
        weigh(q, place_of(q, (double)grid[i * q->rank], size), &first, weight);
        for (uint32_t k = 0; k < out->count; k++) {
            out->at[k][i] = (int32_t)index_of(q, first + k, size);
            out->weight[k][i] = (float)weight[k];
        }
    }
}

/* Axis by axis, each neighbour is combined with all those of the axes before. The grid lists coordinates with the last
 * axis first. */
void onxi_sample_find(const onxi_sample *q, const int64_t *dims, const float *grid, uint64_t count, onxi_sample_taps *t)
{
    sample_line along;
    uint32_t before = 1;
    int32_t least = 0;
    memset(t->at[0], 0, sizeof t->at[0]);
    for (uint64_t i = 0; i < ONXI_SAMPLE_BLOCK; i++)
        t->weight[0][i] = 1;
    for (uint32_t d = 0; d < q->rank; d++, before *= along.count) {
        const int32_t size = (int32_t)dims[d];
        find_line(q, size, grid + (q->rank - 1 - d), count, &along);
        for (uint32_t j = before; j-- > 0;) /* from the end, so that no entry is overwritten before it is read */
            for (uint32_t k = along.count; k-- > 0;)
                for (uint64_t i = 0; i < count; i++) {
                    const int32_t a = t->at[j][i], b = along.at[k][i];
                    t->at[j * along.count + k][i] = (a | b) < 0 ? -1 : a * size + b;
                    t->weight[j * along.count + k][i] = t->weight[j][i] * along.weight[k][i];
                    least |= a | b;
                }
    }
    t->whole = least >= 0;
}

/* ---- running ---- */

static void store(const sample_params *q, const onx_value *x, uint64_t from, onx_value *y, uint64_t to,
                  const uint64_t *at, const double *weight, uint32_t count)
{
    uint32_t size = onxi_element_size(x->dtype);
    const char *channel = (const char *)x->data + from * size;
    char *out = (char *)y->data + to * size;
    onx_dtype_class class = onx_dtype_class_of(x->dtype);
    if (q->at.mode == ONXI_SAMPLE_NEAREST) {
        if (count)
            memcpy(out, channel + at[0] * size, size);
        else
            memset(out, 0, size);
        return;
    }
    uint32_t parts = class == ONX_CLASS_COMPLEX ? 2 : 1;
    for (uint32_t k = 0; k < parts; k++) {
        double sum = q->loop(channel, at, weight, count, parts, k);
        if (class == ONX_CLASS_COMPLEX)
            onx_convert(x->dtype == ONX_COMPLEX64 ? ONX_FLOAT : ONX_DOUBLE, out + k * (size / 2), ONX_DOUBLE, &sum, 1,
                        true);
        else if (class == ONX_CLASS_FLOATING)
            onx_convert((onx_dtype)x->dtype, out, ONX_DOUBLE, &sum, 1, true);
        else
            onxi_round_to(x->dtype, out, &sum, 1);
    }
}

static onx_status sample_run(onx_work *work, uint64_t first, uint64_t last)
{
    const sample_params *params = work->params;
    const onxi_sample *q = &params->at;
    const onx_value *x = work->inputs[0], *grid = work->inputs[1];
    uint64_t *at = work->thread_workspace;
    double *weight = (double *)(at + q->taps);
    for (uint64_t row = first; row < last; row++) {
        uint64_t n = row / q->places, place = row % q->places;
        uint32_t count = find_taps(q, x, grid, row, at, weight);
        for (uint64_t c = 0; c < q->channels; c++)
            store(params, x, (n * q->channels + c) * q->in_size, work->outputs[0],
                  (n * q->channels + c) * q->places + place, at, weight, count);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_sample[] = {
    { .op = "GridSample", .since = 16, .prepare = sample_prepare, .run = sample_run }, { 0 }
};
