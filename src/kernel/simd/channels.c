/* channels.c - reductions per channel for images with channel blocks: sums over all images and pixels, and
 * BatchNormalization in training, which computes mean and variance of the batch. A unit of work is some adjacent
 * channels of a block. Each channel is summed separately, so the bits do not depend on the number of channels in a
 * unit. */
#include "kernel/core/blocked.h"
#include "kernel/core/norm.h"
#include "kernel/core/reduce.h"
#include "kernel/simd/math.h"
#include "op/op.h"

/* Fewest and most channels per unit of work: whole cache lines where the block has them. Sums are accumulated in float
 * over BLOCK pixels, and in double over the blocks. */
enum { LEAST = 16, MOST = 64, BLOCK = 512 };

typedef struct images {
    uint64_t count, channels, pixels, block;
    uint64_t unit, pieces; /* channels per unit of work, units per channel block */
} images;

/* Returns false if the value has no such layout. */
static bool cut_images(const onx_prepare *p, const onx_value *x, images *q)
{
    q->block = onxi_blocked_of(x);
    if (!p->want || q->block < ONXI_LANES || !x->count)
        return false;
    q->count = (uint64_t)x->dims[0];
    q->channels = (uint64_t)x->dims[1];
    q->pixels = onxi_product(x->dims, 2, x->rank);
    const uint64_t share = q->channels / (2 * (uint64_t)p->threads) / LEAST * LEAST;
    q->unit = share < LEAST ? LEAST : share > MOST ? MOST : share;
    q->pieces = (q->block + q->unit - 1) / q->unit;
    return true;
}

static uint64_t piece_count(const images *q)
{
    return q->channels / q->block * q->pieces;
}

/* The offset in the first image where a unit of work begins, its first channel, and its number of channels. */
static uint64_t piece_at(const images *q, uint64_t piece, uint64_t *channel, uint64_t *width)
{
    const uint64_t block = piece / q->pieces, from = piece % q->pieces * q->unit;
    *channel = block * q->block + from;
    *width = q->block - from < q->unit ? q->block - from : q->unit;
    return block * q->block * q->pixels + from;
}

/* ---- sums ---- */

/* Sums x - about and its square over adjacent pixels, for the first `lanes` channels of a vector. */
static void add_pixels(const float *x, uint64_t pixels, uint64_t step, onxi_vf about, uint64_t lanes, double *first,
                       double *second)
{
    onxi_vf s = vf_all(0), ss = vf_all(0);
    for (uint64_t p = 0; p < pixels; p++) {
        const onxi_vf u = (lanes == ONXI_LANES ? vf_load(x + p * step) : vf_load_part(x + p * step, lanes, 0)) - about;
        s += u;
        ss += u * u;
    }
    float parts[2][ONXI_LANES];
    vf_store(parts[0], s);
    vf_store(parts[1], ss);
    for (uint64_t i = 0; i < lanes; i++) {
        first[i] += (double)parts[0][i];
        second[i] += (double)parts[1][i];
    }
}

/* The same over all images; `about` has an element per channel of the unit and room for a vector after them. */
static void add_images(const images *q, const float *x, uint64_t width, const float *about, double *first,
                       double *second)
{
    for (uint64_t c = 0; c < width; c++)
        first[c] = second[c] = 0;
    for (uint64_t n = 0; n < q->count; n++)
        for (uint64_t p = 0; p < q->pixels; p += BLOCK)
            for (uint64_t c = 0; c < width; c += ONXI_LANES)
                add_pixels(x + n * q->channels * q->pixels + p * q->block + c,
                           q->pixels - p < BLOCK ? q->pixels - p : BLOCK, q->block, vf_load(about + c),
                           width - c < ONXI_LANES ? width - c : ONXI_LANES, first + c, second + c);
}

/* The sum of one channel in double, where float sums would overflow or lose too much. */
static double wide_sum(const images *q, const float *x, double about, bool squares)
{
    double sum = 0;
    for (uint64_t n = 0; n < q->count; n++)
        for (uint64_t p = 0; p < q->pixels; p++) {
            const double u = (double)x[n * q->channels * q->pixels + p * q->block] - about;
            sum += squares ? u * u : u;
        }
    return sum;
}

/* ---- reductions over all axes but the channels ---- */

typedef struct reduction {
    images images;
    onxi_reduce_kind kind;
} reduction;

static onx_status reduce_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    reduction *q = ONXI_NEW(p->arena, reduction);
    if (!q)
        return ONX_E_MEMORY;
    if (!cut_images(p, x, &q->images))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_reduce_prepare(p));
    const onxi_reduce_params *plain = p->params;
    q->kind = plain->kind;
    bool others = !plain->kept_prepare;
    for (uint32_t d = 0; d < x->rank; d++)
        others &= plain->is_reduced[d] == (d != 1);
    if (!others)
        return ONX_E_UNSUPPORTED;
    p->params = q;
    p->rows = piece_count(&q->images);
    p->grain = 1;
    return ONX_OK;
}

static onx_status reduce_run(onx_work *work, uint64_t first, uint64_t last)
{
    static const float none[MOST + ONXI_LANES] = { 0 };
    const reduction *q = work->params;
    const double count = (double)(q->images.count * q->images.pixels);
    const bool squares = q->kind == ONXI_REDUCE_SUM_SQUARE;
    double sums[2][MOST + ONXI_LANES];
    for (uint64_t r = first; r < last; r++) {
        uint64_t channel, width;
        const float *x = (const float *)work->inputs[0]->data + piece_at(&q->images, r, &channel, &width);
        float *y = (float *)work->outputs[0]->data + channel;
        add_images(&q->images, x, width, none, sums[0], sums[1]);
        for (uint64_t c = 0; c < width; c++) {
            const double sum = sums[squares][c], all = isfinite(sum) ? sum : wide_sum(&q->images, x + c, 0, squares);
            y[c] = (float)(q->kind == ONXI_REDUCE_MEAN ? all / count : all);
        }
    }
    return ONX_OK;
}

/* ---- BatchNormalization in training ---- */

typedef struct training {
    images images;
    double epsilon, momentum;
} training;

static bool has_numbers(const onx_value *v, uint64_t count)
{
    return v && v->kind == ONX_VALUE_TENSOR && v->dtype == ONX_FLOAT && v->count == count;
}

static onx_status training_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    training *q = ONXI_NEW(p->arena, training);
    if (!q)
        return ONX_E_MEMORY;
    if (p->since < 9 || !y || !(p->since >= 14 ? onx_prepare_is_set(p, "training_mode") : p->node->output_count > 1) ||
        !cut_images(p, x, &q->images))
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 1; i < 5; i++)
        if (!has_numbers(p->inputs[i], q->images.channels))
            return ONX_E_UNSUPPORTED; /* the plain row reports errors */
    for (uint32_t i = 1; i < p->output_count; i++)
        if (p->outputs[i] && !has_numbers(p->outputs[i], q->images.channels))
            return ONX_E_UNSUPPORTED;
    if (!(y->layout = onxi_blocked_layout(p->arena, y, (uint32_t)q->images.block)))
        return ONX_E_MEMORY;
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    q->momentum = (double)onx_prepare_float(p, "momentum");
    p->params = q;
    p->rows = piece_count(&q->images);
    return ONX_OK;
}

/* Statistics, factors and shifts of a unit's channels. */
typedef struct moved {
    double mean[MOST + ONXI_LANES], variance[MOST + ONXI_LANES];
    float near[MOST + ONXI_LANES], factor[MOST + ONXI_LANES], shift[MOST + ONXI_LANES];
} moved;

static void find_moments(const images *q, const float *x, uint64_t width, moved *m)
{
    const double count = (double)(q->count * q->pixels);
    double squares[MOST + ONXI_LANES];
    memset(m->near, 0, sizeof m->near);
    add_images(q, x, width, m->near, m->mean, squares);
    for (uint64_t c = 0; c < width; c++)
        m->near[c] = (float)(m->mean[c] / count);
    add_images(q, x, width, m->near, m->mean, squares);
    for (uint64_t c = 0; c < width; c++) {
        const double off = m->mean[c] / count;
        m->mean[c] = (double)m->near[c] + off;
        m->variance[c] = squares[c] / count - off * off;
        if (!isfinite(m->mean[c]) || !isfinite(m->variance[c]) || !(squares[c] >= 0x1p-90)) {
            m->mean[c] = wide_sum(q, x + c, 0, false) / count;
            m->variance[c] = wide_sum(q, x + c, m->mean[c], true) / count;
        }
    }
}

static void scale_images(const images *q, const float *x, float *y, uint64_t width, const moved *m)
{
    for (uint64_t n = 0; n < q->count; n++) {
        const uint64_t image = n * q->channels * q->pixels;
        for (uint64_t p = 0; p < q->pixels; p++) {
            const uint64_t at = image + p * q->block;
            uint64_t c = 0;
            for (; c + ONXI_LANES <= width; c += ONXI_LANES)
                vf_store(y + at + c,
                         (vf_load(x + at + c) - vf_load(m->near + c)) * vf_load(m->factor + c) + vf_load(m->shift + c));
            if (c < width)
                vf_store_part(y + at + c,
                              (vf_load_part(x + at + c, width - c, 0) - vf_load(m->near + c)) * vf_load(m->factor + c) +
                                  vf_load(m->shift + c),
                              width - c);
        }
    }
}

/* Normalizes one channel in double. */
static void scale_far(const images *q, const float *x, float *y, double mean, double factor, double shift)
{
    for (uint64_t n = 0; n < q->count; n++)
        for (uint64_t p = 0; p < q->pixels; p++) {
            const uint64_t at = n * q->channels * q->pixels + p * q->block;
            y[at] = (float)(((double)x[at] - mean) * factor + shift);
        }
}

static onx_status training_run(onx_work *work, uint64_t first, uint64_t last)
{
    const training *q = work->params;
    const images *g = &q->images;
    moved m;
    memset(&m, 0, sizeof m); /* vectors reach beyond the last channel */
    for (uint64_t r = first; r < last; r++) {
        uint64_t channel, width;
        const uint64_t at = piece_at(g, r, &channel, &width);
        const float *x = (const float *)work->inputs[0]->data + at, *in[5];
        float *y = (float *)work->outputs[0]->data + at;
        for (uint32_t i = 1; i < 5; i++)
            in[i] = (const float *)work->inputs[i]->data + channel;
        find_moments(g, x, width, &m);
        for (uint64_t c = 0; c < width; c++) {
            const double factor = (double)in[1][c] / sqrt(m.variance[c] + q->epsilon);
            const double values[] = { (double)in[3][c] * q->momentum + m.mean[c] * (1 - q->momentum),
                                      (double)in[4][c] * q->momentum + m.variance[c] * (1 - q->momentum), m.mean[c],
                                      m.variance[c] };
            for (uint32_t i = 1; i < work->prepared->output_count && i < 5; i++)
                if (work->outputs[i])
                    ((float *)work->outputs[i]->data)[channel + c] = (float)values[i - 1];
            /* The rounding error of the mean goes into the shift. */
            m.near[c] = (float)m.mean[c];
            m.factor[c] = (float)factor;
            m.shift[c] = (float)((double)in[2][c] - (m.mean[c] - (double)m.near[c]) * factor);
        }
        scale_images(g, x, y, width, &m);
        for (uint64_t c = 0; c < width; c++) {
            const double factor = (double)in[1][c] / sqrt(m.variance[c] + q->epsilon);
            if (!onxi_norm_fits_float(m.mean[c], factor)) /* does not affect the other channels of the unit */
                scale_far(g, x + c, y + c, m.mean[c], factor, (double)in[2][c]);
        }
    }
    return ONX_OK;
}

/* ---- rows ---- */

#define ROW(name)                                                                                                      \
    .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 2, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,           \
    .flags = ONX_KERNEL_LAYOUTS
#define REDUCTION(name, which)                                                                                         \
    {                                                                                                                  \
        ROW(name), .body = &(const onxi_reduce_kind){ ONXI_REDUCE_##which }, .prepare = reduce_prepare,                \
                   .run = reduce_run                                                                                   \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_channels)[] = { REDUCTION("ReduceSum", SUM),
                                                                REDUCTION("ReduceMean", MEAN),
                                                                REDUCTION("ReduceSumSquare", SUM_SQUARE),
                                                                { ROW("BatchNormalization"),
                                                                  .prepare = training_prepare, .run = training_run },
                                                                { 0 } };
