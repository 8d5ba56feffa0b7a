/* norm.c - normalizations of floats, a vector at a time. */
#include "kernel/core/norm.h"
#include "kernel/core/blocked.h"
#include "kernel/simd/halves.h"
#include "kernel/simd/post.h"
#include "kernel/simd/turned.h"

#include <math.h>

/* Sums are accumulated in float over blocks that are short enough, and in double over the blocks. */
enum { BLOCK = 64 * ONXI_LANES };

typedef struct sums {
    double first, second; /* sums of deviations from a number, and of their squares */
} sums;

/* Factors of (x * before - about * before) * after: a factor that makes elements smaller has to come before the
 * subtraction, one that makes them larger after it, or large elements overflow. */
__attribute__((always_inline)) static inline sums sums_of(const float *x, uint64_t n, float about, float before,
                                                          float after, bool squares_only)
{
    sums all = { 0, 0 };
    const float zero = about * before;
    for (uint64_t start = 0; start < n; start += BLOCK) {
        uint64_t end = n - start < BLOCK ? n : start + BLOCK, i = start;
        onxi_vf s = vf_all(0), t = vf_all(0), ss = vf_all(0), tt = vf_all(0);
        for (; i + 2 * ONXI_LANES <= end; i += 2 * ONXI_LANES) {
            onxi_vf u = (vf_load(x + i) * before - zero) * after;
            onxi_vf v = (vf_load(x + i + ONXI_LANES) * before - zero) * after;
            s += squares_only ? vf_all(0) : u;
            t += squares_only ? vf_all(0) : v;
            ss += u * u;
            tt += v * v;
        }
        for (; i < end; i += ONXI_LANES) {
            onxi_vf u =
                (vf_load_part(x + i, end - i < ONXI_LANES ? end - i : ONXI_LANES, about) * before - zero) * after;
            s += squares_only ? vf_all(0) : u;
            ss += u * u;
        }
        all.first += (double)vf_sum(s + t);
        all.second += (double)vf_sum(ss + tt);
    }
    return all;
}

/* The same if squares, or their sums, leave the range of float: elements are scaled by a power of two. Results that are
 * not finite stay so. */
static sums sums_scaled(const float *x, uint64_t n, float about, bool smaller)
{
    const double scale = smaller ? 0x1p-72 : 0x1p100;
    sums all = smaller ? sums_of(x, n, about, (float)scale, 1, false) : sums_of(x, n, about, 1, (float)scale, false);
    all.first /= scale;
    all.second /= scale * scale;
    return all;
}

static sums sums_about(const float *x, uint64_t n, float about, bool squares_only)
{
    sums all = squares_only ? sums_of(x, n, 0, 1, 1, true) : sums_of(x, n, about, 1, 1, false);
    if (isfinite(all.first) && isfinite(all.second) && all.second >= 0x1p-90)
        return all;
    return sums_scaled(x, n, about, !(all.second < 1));
}

static double sum_of(const float *x, uint64_t n)
{
    double sum = 0;
    for (uint64_t start = 0; start < n; start += BLOCK) {
        uint64_t end = n - start < BLOCK ? n : start + BLOCK, i = start;
        onxi_vf s = vf_all(0), t = vf_all(0);
        for (; i + 2 * ONXI_LANES <= end; i += 2 * ONXI_LANES) {
            s += vf_load(x + i);
            t += vf_load(x + i + ONXI_LANES);
        }
        for (; i < end; i += ONXI_LANES)
            s += vf_load_part(x + i, end - i < ONXI_LANES ? end - i : ONXI_LANES, 0);
        sum += (double)vf_sum(s + t);
    }
    return isfinite(sum) ? sum : sums_scaled(x, n, 0, true).first;
}

/* Computes mean and second moment of n elements from sums of deviations. */
static void settle(sums all, double n, float about, bool about_zero, double *mean, double *second)
{
    const double off = about_zero ? 0 : all.first / n;
    *mean = about_zero ? 0 : (double)about + off;
    *second = all.second / n - off * off;
}

/* Deviations are taken from a float near the mean; their sum corrects for the difference to the mean. */
static void moments(const void *x, uint64_t n, bool about_zero, double *mean, double *second)
{
    const double count = (double)n;
    const float near = about_zero ? 0 : (float)(sum_of(x, n) / count);
    if (!isfinite(near)) {
        *mean = (double)near;
        *second = NAN;
        return;
    }
    settle(sums_about(x, n, near, about_zero), count, near, about_zero, mean, second);
}

/* Adding -0 changes no number; adding 0 would make -0 to 0. */
#define NOTHING (-0.0f)

/* y = (x * before - mean) * scale * a + b, with the mean as the sum of two floats. */
static inline void affine_of(const float *x, float *y, uint64_t n, float before, float mean, float rest, float scale,
                             const float *a, int64_t sa, const float *b, int64_t sb)
{
    uint64_t i = 0;
    if (sa == 1 && (!b || sb == 1)) {
        for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
            onxi_vf v = (vf_load(x + i) * before - mean - rest) * scale * vf_load(a + i);
            vf_store(y + i, b ? v + vf_load(b + i) : v);
        }
    } else if (sa == 0 && (!b || sb == 0)) {
        const onxi_vf factor = vf_all(*a), shift = vf_all(b ? *b : NOTHING);
        for (; i + ONXI_LANES <= n; i += ONXI_LANES)
            vf_store(y + i, (vf_load(x + i) * before - mean - rest) * scale * factor + shift);
    }
    for (; i < n; i++)
        y[i] = (x[i] * before - mean - rest) * scale * a[(int64_t)i * sa] + (b ? b[(int64_t)i * sb] : NOTHING);
}

static void affine(const void *x, void *y, uint64_t n, double mean, double scale, const void *a, int64_t sa,
                   const void *b, int64_t sb)
{
    if (onxi_norm_fits_float(mean, scale)) {
        const float m = (float)mean;
        affine_of(x, y, n, 1, m, (float)(mean - (double)m), (float)scale, a, sa, b, sb);
        return;
    }
    const double before = fabs(scale) > 1 && fabs(mean) < 0x1p60 ? 0x1p60 : 0x1p-60;
    const float m = (float)(mean * before);
    affine_of(x, y, n, (float)before, m, (float)(mean * before - (double)m), (float)(scale / before), a, sa, b, sb);
}

#if !ONXI_PLATFORM_ROOMY /* a browser's module has no room for what follows */
#define HALVES 0
static const onxi_norm_loops loops[ONX_DTYPE_COUNT] = { [ONX_FLOAT] = { moments, affine, NULL } };
#else
#define HALVES (ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))

/* ---- lines of few elements ---- */

_Static_assert((int)ONXI_NORM_SHORT <= (int)TURNED_MOST, "short lines are turned");

/* Mean (the sum of two floats) and factor of a line in each lane. */
typedef struct line_scales {
    float mean[ONXI_LANES], rest[ONXI_LANES], factor[ONXI_LANES];
    int32_t fits[ONXI_LANES]; /* whether sums and squares stayed in the range of float */
    bool all_fit;
} line_scales;

/* Turns a line per lane, of which each is about its own mean. */
static inline void scales_of_lines(const onxi_norm_short *q, const float *x, line_scales *to)
{
    float columns[TURNED_MOST * ONXI_LANES];
    const float n = (float)q->n;
    onxi_vf sum = vf_all(0), total[2] = { sum, sum }, squares[2] = { sum, sum }, near = sum, off = sum;
    for (uint64_t k = 0; k < q->n; k += ONXI_LANES)
        vf_turn((const char *)(x + k), q->n * sizeof *x, columns + k * ONXI_LANES, ONXI_LANES);
    for (uint64_t k = 0; k < q->n; k++)
        total[k % 2] += vf_load(columns + k * ONXI_LANES);
    near = q->about_zero ? vf_all(0) : (total[0] + total[1]) / n;
    for (uint64_t k = 0; k < q->n; k++) {
        const onxi_vf v = vf_load(columns + k * ONXI_LANES) - near;
        sum += v;
        squares[k % 2] += v * v;
    }
    off = q->about_zero ? vf_all(0) : sum / n;
    const onxi_vf moment = (squares[0] + squares[1]) / n - off * off + (float)q->epsilon;
    const onxi_vi fits = (onxi_vi)((moment >= 0x1p-80f) & (moment < 0x1p100f) & (vf_abs(near) < 0x1p100f));
    vf_store(to->mean, near);
    vf_store(to->rest, off);
    for (int i = 0; i < ONXI_LANES; i++)
        to->factor[i] = 1 / sqrtf(moment[i]);
    memcpy(to->fits, &fits, sizeof fits);
    to->all_fit = !vi_any(~fits);
}

static void norm_line(const onxi_norm_short *q, const float *x, float *y)
{
    double mean, second;
    moments(x, q->n, q->about_zero, &mean, &second);
    affine(x, y, q->n, mean, 1 / sqrt(second + q->epsilon), q->a, q->step_a, q->b, q->step_b);
}

/* Elements k to k + left - 1 of the lines; left: that of a whole vector, or fewer. */
__attribute__((always_inline)) static inline void scale_lines(const onxi_norm_short *q, const line_scales *line,
                                                              const float *x, float *y, uint64_t count, uint64_t k,
                                                              uint64_t left)
{
    const bool whole = left == ONXI_LANES;
    const float *a = q->a, *b = q->b;
    const vf_lanes some = vf_lanes_of(left);
    const onxi_vf factor = q->step_a ? vf_load_lanes(a + k, some) : vf_all(*a);
    const onxi_vf shift = !b ? vf_all(NOTHING) : q->step_b ? vf_load_lanes(b + k, some) : vf_all(*b);
    for (uint64_t r = 0; r < count; r++) {
        const uint64_t at = r * q->n + k;
        const onxi_vf in = whole ? vf_load(x + at) : vf_load_lanes(x + at, some);
        const onxi_vf v = (in - line->mean[r] - line->rest[r]) * line->factor[r] * factor + shift;
        if (!line->all_fit && !line->fits[r])
            continue;
        if (whole)
            vf_store(y + at, v);
        else
            vf_store_lanes(y + at, v, some);
    }
}

/* Up to a line per lane (turned_run). */
static void norm_turned(const void *params, const float *x, uint64_t first, uint64_t count, void *py)
{
    const onxi_norm_short *q = params;
    const uint64_t n = q->n, whole = n - n % ONXI_LANES;
    float *y = (float *)py + first * n;
    line_scales line;
    scales_of_lines(q, x, &line);
    for (uint64_t k = 0; k < whole; k += ONXI_LANES)
        scale_lines(q, &line, x, y, count, k, ONXI_LANES);
    if (whole < n)
        scale_lines(q, &line, x, y, count, whole, n - whole);
    for (uint64_t r = 0; r < count && !line.all_fit; r++)
        if (!line.fits[r])
            norm_line(q, x + r * n, y + r * n);
}

/* Narrower vectors that long lines fill are faster as they lie. */
static void short_lines(const onxi_norm_short *q, const void *x, void *y, uint64_t count)
{
    if (ONXI_LANES == 16 || q->n <= 48 || q->n % ONXI_LANES) {
        turned_lines(norm_turned, q, x, q->n, count, y);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        norm_line(q, (const float *)x + i * q->n, (float *)y + i * q->n);
}

/* ---- 16-bit floats, in stretches ---- */

static void half_moments(half_kind kind, const uint16_t *x, uint64_t n, bool about_zero, double *mean, double *second)
{
    float t[ONXI_HALVES], near = 0;
    double sum = 0;
    sums all = { 0, 0 };
    for (uint64_t i = 0, count; !about_zero && i < n; i += count) {
        count = half_stretch(n - i);
        half_widen(kind, x + i, t, count);
        sum += sum_of(t, count);
    }
    if (!about_zero)
        near = (float)(sum / (double)n);
    if (!isfinite(near)) {
        *mean = (double)near;
        *second = NAN;
        return;
    }
    for (uint64_t i = 0, count; i < n; i += count) {
        count = half_stretch(n - i);
        half_widen(kind, x + i, t, count);
        const sums some = sums_about(t, count, near, about_zero);
        all.first += some.first;
        all.second += some.second;
    }
    settle(all, (double)n, near, about_zero, mean, second);
}

/* Converts elements with a stride, or one element if the stride is 0. */
static void half_take(half_kind kind, const uint16_t *x, int64_t step, float *y, uint64_t n)
{
    uint16_t apart[ONXI_HALVES];
    if (step == 0 || step == 1) {
        half_widen(kind, x, y, step ? n : 1);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        apart[i] = x[(int64_t)i * step];
    half_widen(kind, apart, y, n);
}

static void half_affine(half_kind kind, const uint16_t *x, uint16_t *y, uint64_t n, double mean, double scale,
                        const uint16_t *a, int64_t sa, const uint16_t *b, int64_t sb)
{
    float t[ONXI_HALVES], ta[ONXI_HALVES], tb[ONXI_HALVES];
    for (uint64_t i = 0, count; i < n; i += count) {
        count = half_stretch(n - i);
        half_widen(kind, x + i, t, count);
        half_take(kind, a + (int64_t)i * sa, sa, ta, count);
        if (b)
            half_take(kind, b + (int64_t)i * sb, sb, tb, count);
        affine(t, t, count, mean, scale, ta, sa != 0, b ? tb : NULL, sb != 0);
        half_narrow(kind, t, y + i, count);
    }
}

static void half_short(half_kind kind, const onxi_norm_short *q, const uint16_t *x, uint16_t *y, uint64_t count)
{
    float a[ONXI_NORM_SHORT], b[ONXI_NORM_SHORT], out[ONXI_LANES * ONXI_NORM_SHORT];
    float in[ONXI_LANES * (ONXI_NORM_SHORT + 1)] = { 0 }; /* whole vectors are read of each line */
    onxi_norm_short wide = *q;
    half_widen(kind, q->a, a, q->step_a ? q->n : 1);
    if (q->b)
        half_widen(kind, q->b, b, q->step_b ? q->n : 1);
    wide.a = a;
    wide.b = q->b ? b : NULL;
    for (uint64_t i = 0, lines; i < count; i += lines) {
        lines = count - i < ONXI_LANES ? count - i : ONXI_LANES;
        half_widen(kind, x + i * q->n, in, lines * q->n);
        norm_turned(&wide, in, 0, lines, out);
        half_narrow(kind, out, y + i * q->n, lines * q->n);
    }
}

#define OF_HALVES(kind)                                                                                                \
    static void moments_##kind(const void *x, uint64_t n, bool about_zero, double *mean, double *second)               \
    {                                                                                                                  \
        half_moments(HALF_##kind, x, n, about_zero, mean, second);                                                     \
    }                                                                                                                  \
    static void affine_##kind(const void *x, void *y, uint64_t n, double mean, double scale, const void *a,            \
                              int64_t sa, const void *b, int64_t sb)                                                   \
    {                                                                                                                  \
        half_affine(HALF_##kind, x, y, n, mean, scale, a, sa, b, sb);                                                  \
    }                                                                                                                  \
    static void short_lines_##kind(const onxi_norm_short *q, const void *x, void *y, uint64_t count)                   \
    {                                                                                                                  \
        half_short(HALF_##kind, q, x, y, count);                                                                       \
    }
OF_HALVES(FLOAT16)
OF_HALVES(BFLOAT16)

static const onxi_norm_loops loops[ONX_DTYPE_COUNT] = {
    [ONX_FLOAT] = { moments, affine, short_lines },
    [ONX_FLOAT16] = { moments_FLOAT16, affine_FLOAT16, short_lines_FLOAT16 },
    [ONX_BFLOAT16] = { moments_BFLOAT16, affine_BFLOAT16, short_lines_BFLOAT16 }
};
#endif

/* ---- BatchNormalization of images in channel-blocked layout, and of rows of features ---- */

enum {
    PIECE = 1 << 14,
    AT_ONCE = 1 << 11
}; /* elements of a piece of work, so that post-operations find them in the first-level cache */

typedef struct scaling {
    uint64_t channels, block, pixels;
    uint64_t each, pieces; /* pixels of a piece of work, pieces of a block of channels */
    const float *mean, *factor, *shift;
    simd_posts posts;
} scaling;

/* Normalizes some pixels of the block that begins with channel c. */
static void scale_pixels(const scaling *q, uint64_t c, const float *x, float *y, uint64_t pixels)
{
    const uint64_t whole = q->block / ONXI_LANES * ONXI_LANES, left = q->block - whole;
    for (uint64_t p = 0; p < pixels; p++, x += q->block, y += q->block) {
        for (uint64_t i = 0; i < whole; i += ONXI_LANES)
            vf_store(y + i, (vf_load(x + i) - vf_load(q->mean + c + i)) * vf_load(q->factor + c + i) +
                                vf_load(q->shift + c + i));
        const uint64_t at = c + whole; /* the arrays have room for a vector after the last channel */
        if (left)
            vf_store_part(y + whole,
                          (vf_load_part(x + whole, left, 0) - vf_load(q->mean + at)) * vf_load(q->factor + at) +
                              vf_load(q->shift + at),
                          left);
    }
}

static onx_status scaling_run(onx_work *work, uint64_t first, uint64_t last)
{
    const scaling *q = work->params;
    const uint64_t step = AT_ONCE / q->block + 1, blocks = q->channels / q->block;
    for (uint64_t r = first; r < last; r++) {
        const uint64_t block = r / q->pieces, from = r % q->pieces * q->each;
        const uint64_t end = q->pixels - from < q->each ? q->pixels : from + q->each;
        const float *x = (const float *)work->inputs[0]->data + block * q->pixels * q->block;
        float *y = (float *)work->outputs[0]->data + block * q->pixels * q->block;
        for (uint64_t p = from; p < end; p += step) {
            const uint64_t count = end - p < step ? end - p : step;
            scale_pixels(q, block % blocks * q->block, x + p * q->block, y + p * q->block, count);
            for (uint32_t i = 0; i < q->posts.count; i++)
                post_apply(&q->posts.list[i], y + p * q->block, q->block, count, q->block / ONXI_LANES, NULL, NULL, 0);
        }
    }
    return ONX_OK;
}

/* Reads the constants and pads each array. */
static bool read_numbers(const onx_prepare *p, scaling *q)
{
    const double epsilon = (double)onx_prepare_float(p, "epsilon");
    const float *in[5];
    const uint64_t room = q->channels + ONXI_LANES;
    float *numbers = onxi_arena_array(p->arena, 3 * room, sizeof *numbers);
    for (uint32_t i = 1; i < 5; i++) {
        const onx_value *v = p->inputs[i];
        if (!v || !v->data || v->dtype != ONX_FLOAT || v->rank != 1 || v->count != q->channels)
            return false;
        in[i] = v->data;
    }
    if (!numbers)
        return false;
    memset(numbers, 0, 3 * room * sizeof *numbers);
    for (uint64_t c = 0; c < q->channels; c++) {
        numbers[c] = in[3][c];
        numbers[room + c] = (float)((double)in[1][c] / sqrt((double)in[4][c] + epsilon));
        numbers[2 * room + c] = in[2][c];
        if (!onxi_norm_fits_float((double)in[3][c], (double)numbers[room + c]))
            return false;
    }
    q->mean = numbers;
    q->factor = numbers + room;
    q->shift = numbers + 2 * room;
    return true;
}

static onx_status scaling_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const bool rows = x->rank == 2 && !x->layout && x->dims[1] > 0 && x->dims[1] < INT32_MAX;
    const uint32_t block = rows ? (uint32_t)x->dims[1] : onxi_blocked_of(x);
    const bool training = p->since >= 14 ? onx_prepare_is_set(p, "training_mode") : p->node->output_count > 1;
    if (!p->want || !x->count || p->since < 9 || training || block < ONXI_LANES || !y || p->output_count != 1)
        return ONX_E_UNSUPPORTED;
    scaling *q = ONXI_NEW(p->arena, scaling);
    const onx_layout *layout = rows ? NULL : onxi_blocked_layout(p->arena, y, block);
    if (!q || (!layout && !rows))
        return ONX_E_MEMORY;
    q->channels = (uint64_t)x->dims[1];
    q->block = block;
    q->pixels = rows ? (uint64_t)x->dims[0] : onxi_product(x->dims, 2, x->rank);
    if (!read_numbers(p, q))
        return ONX_E_UNSUPPORTED;
    q->each = PIECE / q->block + 1;
    q->pieces = (q->pixels + q->each - 1) / q->each;
    for (uint32_t i = 0; i < p->post_op_count && q->posts.count < POST_MAX && block % ONXI_LANES == 0; i++) {
        if (!post_take_function(&p->post_ops[i], &q->posts.list[q->posts.count]))
            break;
        q->posts.count++;
        p->post_ops_done++;
    }
    y->layout = layout;
    p->params = q;
    p->rows = x->count / (q->pixels * q->block) * q->pieces;
    p->grain = onxi_worth_a_thread(q->each * q->block * ONXI_COST_ELEMENT);
    return ONX_OK;
}

/* ---- GroupNormalization and InstanceNormalization with their post-operations, of planes ---- */

typedef struct grouping {
    uint64_t channels, pixels, each; /* channels of a group */
    double epsilon;
    simd_posts posts;
} grouping;

/* Processes a contiguous group. */
static void group_of_planes(const grouping *q, const float *x, float *y, const float *a, const float *b)
{
    double mean, second;
    moments(x, q->each * q->pixels, false, &mean, &second);
    for (uint64_t c = 0; c < q->each; c++)
        for (uint64_t at = 0; at < q->pixels; at += AT_ONCE) {
            const uint64_t n = q->pixels - at < AT_ONCE ? q->pixels - at : AT_ONCE, from = c * q->pixels + at;
            affine(x + from, y + from, n, mean, 1 / sqrt(second + q->epsilon), &a[c], 0, &b[c], 0);
            post_apply_line(&q->posts, y + from, n);
        }
}

static onx_status grouping_run(onx_work *work, uint64_t first, uint64_t last)
{
    const grouping *q = work->params;
    const float *a = work->inputs[1]->data, *b = work->inputs[2]->data;
    for (uint64_t r = first; r < last; r++) {
        const uint64_t channel = r % (q->channels / q->each) * q->each, at = r * q->each * q->pixels;
        group_of_planes(q, (const float *)work->inputs[0]->data + at, (float *)work->outputs[0]->data + at, a + channel,
                        b + channel);
    }
    return ONX_OK;
}

static onx_status grouping_types(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    return x && x->kind == ONX_VALUE_TENSOR && x->dtype == ONX_FLOAT
               ? onx_prepare_output(p, 0, ONX_FLOAT, x->rank, x->dims)
               : ONX_OK; /* no type: the op cannot replace the nodes */
}

static onx_status grouping_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    grouping *q = ONXI_NEW(p->arena, grouping);
    if (!q)
        return ONX_E_MEMORY;
    if (!(q->each = onxi_group_norm_each(p)))
        return ONX_E_UNSUPPORTED; /* the plain row reports errors */
    q->channels = (uint64_t)x->dims[1];
    q->pixels = onxi_product(x->dims, 2, x->rank);
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    post_take_functions(p, &q->posts);
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * (q->channels / q->each);
    p->grain = onxi_worth_a_thread(q->pixels * q->each * ONXI_COST_ELEMENT);
    return ONX_OK;
}

#define ROW(name, version, kind, more)                                                                                 \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_F32 | HALVES, .preference = 1, .isa = ONXI_LEVEL,                 \
        .flags = ONX_KERNEL_IN_PLACE | (more), .variant = ONXI_VARIANT, .body = loops,                                 \
        .prepare = onxi_##kind##_norm_prepare, .run = onxi_##kind##_norm_run                                           \
    }
#define GROUPING(name, version)                                                                                        \
    .op = name, .since = version, .dtypes = ONXI_F32, .preference = 2, .isa = ONXI_LEVEL,                              \
    .flags = ONX_KERNEL_IN_PLACE | ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .prepare = grouping_prepare,          \
    .run = grouping_run
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_norm)[] = {
    { .op = "BatchNormalization",
      .since = 1,
      .dtypes = ONXI_F32,
      .preference = 1,
      .isa = ONXI_LEVEL,
      .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_IN_PLACE | ONX_KERNEL_POST_OPS,
      .variant = ONXI_VARIANT,
      .prepare = scaling_prepare,
      .run = scaling_run },
    ROW("LayerNormalization", 17, layer, ONXI_KERNEL_LINES),
    ROW("RMSNormalization", 23, layer, ONXI_KERNEL_LINES),
    { GROUPING("GroupNormalization", 18) },
    { GROUPING("InstanceNormalization", 1) },
    { GROUPING("GroupNorm", 1), .domain = "onx", .types = grouping_types },
    ROW("GroupNormalization", 18, group, 0),
    ROW("InstanceNormalization", 1, group, 0),
    { 0 }
};
