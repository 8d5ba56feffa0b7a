/* pool.c - MaxPool and AveragePool on planar channels, which oneDNN vectorizes with 512-bit vectors only. A window is
 * reduced vertically first, a vector of columns at a time, then horizontally, a vector of output positions at
 * a time. */
#include "kernel/simd/window.h"

#include <math.h>

enum { DIMS = WINDOW_DIMS, ROOM_MAX = WINDOW_SIDE_MAX /* most floats of a line */, TOGETHER = 4 /* lines */ };

typedef struct pool_params {
    bool where; /* MaxPool outputs the indices of the maxima, too */
    simd_window win;
    uint64_t span, line;        /* input columns that windows cover; floats of a line with padding */
    const float *divisor[DIMS]; /* for averages: the number of taps that count, per output position */
} pool_params;

typedef struct pool_body {
    bool average, global;
    bool planes; /* takes no input in another layout */
} pool_body;

/* Lines that are reduced together; the result of some is one of the next ones. */
typedef struct pool_terms {
    const float *x[16];
    uint64_t count;
    onxi_pace *pace;
} pool_terms;

/* y = the sum, or the maximum, of lines of n floats, of which y may be the first. */
__attribute__((always_inline)) static inline void reduce(const pool_terms *t, const bool average, uint64_t n, float *y)
{
    if (onxi_pace_stops(t->pace, t->count * (n / ONXI_LANES + 1)))
        return;
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const bool whole = i + ONXI_LANES <= n;
        onxi_vf v = whole ? vf_load(t->x[0] + i) : vf_load_part(t->x[0] + i, n - i, 0);
        for (uint64_t k = 1; k < t->count; k++)
            v = window_both(average, v, whole ? vf_load(t->x[k] + i) : vf_load_part(t->x[k] + i, n - i, 0));
        if (whole)
            vf_store(y + i, v);
        else
            vf_store_part(y + i, v, n - i);
    }
}

/* Reduces the lines of a window column by column; returns false if all of them are padding. */
__attribute__((always_inline)) static inline bool go_down(const pool_params *q, const bool average, const float *x,
                                                          const int64_t *place, float *line, onxi_pace *pace)
{
    int64_t origin[2], first[2], last[2];
    pool_terms t = { .count = 0, .pace = pace };
    for (int d = 0; d < 2; d++) {
        origin[d] = place[d] * q->win.stride[d] - q->win.pad[d];
        window_taps(&q->win, d, origin[d], &first[d], &last[d]);
    }
    for (int64_t k = first[0]; k < last[0]; k++)
        for (int64_t j = first[1]; j < last[1]; j++) {
            const int64_t row =
                (origin[0] + k * q->win.dilation[0]) * q->win.in[1] + origin[1] + j * q->win.dilation[1];
            if (t.count == sizeof t.x / sizeof *t.x) {
                reduce(&t, average, (uint64_t)q->win.in[2], line);
                t.x[0] = line;
                t.count = 1;
            }
            t.x[t.count++] = x + row * q->win.in[2];
        }
    if (t.count)
        reduce(&t, average, (uint64_t)q->win.in[2], line);
    return t.count != 0;
}

/* Reduces horizontally: computes a line of the output from the reduced columns. */
__attribute__((always_inline)) static inline void go_across(const pool_params *q, const bool average, const float *line,
                                                            float *spare, float *y, onxi_pace *pace)
{
    const int64_t taps = q->win.kernel[2], by = q->win.dilation[2], stride = q->win.stride[2], n = q->win.out[2];
    if (stride > ONXI_LANES) { /* few positions are needed */
        for (int64_t o = 0; o < n && !onxi_pace_stops(pace, 4 * (uint64_t)taps); o++) {
            const float *at = line + o * stride;
            float sum = *at;
            for (int64_t j = 1; j < taps; j++)
                sum = window_both(average, vf_all(sum), vf_all(at[j * by]))[0];
            y[o] = sum;
        }
        return;
    }
    const uint64_t turns = onxi_pace_turns((uint64_t)taps) * ONXI_LANES;
    for (uint64_t from = 0, end; from < q->span && !onxi_pace_stops(pace, turns * (uint64_t)taps / ONXI_LANES);
         from = end) {
        end = q->span - from < turns ? q->span : from + turns;
        for (uint64_t i = from; i < end; i += ONXI_LANES) {
            onxi_vf sum = vf_load(line + i);
            for (int64_t j = 1; j < taps; j++)
                sum = window_both(average, sum, vf_load(line + i + j * by));
            vf_store(spare + i, sum);
        }
    }
    if (stride == 1)
        memcpy(y, spare, (uint64_t)n * sizeof *y);
    else if (stride == 2) /* by a known step whole vectors are shuffled */
        for (int64_t o = 0; o < n; o++)
            y[o] = spare[2 * o];
    else
        for (int64_t o = 0; o < n; o++)
            y[o] = spare[o * stride];
}

/* Some lines are reduced vertically before the first one is read again, since a vector that spans two that have just
 * been stored waits for them. */
__attribute__((always_inline)) static inline void plane(const pool_params *q, const bool average, const float *x,
                                                        float *line, float *spare, float *y, onxi_pace *pace)
{
    const float neutral = average ? 0 : -INFINITY;
    const int64_t lines = q->win.out[0] * q->win.out[1];
    for (uint64_t i = 0; i < TOGETHER * q->line; i++)
        line[i] = neutral;
    for (int64_t from = 0, end; from < lines && !onxi_pace_stops(pace, 64 + q->span); from = end) {
        end = from + TOGETHER < lines ? from + TOGETHER : lines;
        float *inside = line + q->win.pad[2];
        for (int64_t i = from; i < end; i++, inside += q->line) {
            const int64_t place[] = { i / q->win.out[1], i % q->win.out[1] };
            if (!go_down(q, average, x, place, inside, pace))
                for (int64_t k = 0; k < q->win.in[2]; k++)
                    inside[k] = neutral;
        }
        for (int64_t i = from; i < end; i++, y += q->win.out[2]) {
            go_across(q, average, line + (uint64_t)(i - from) * q->line, spare, y, pace);
            const float down = average ? q->divisor[0][i / q->win.out[1]] * q->divisor[1][i % q->win.out[1]] : 1;
            for (int64_t k = 0; average && k < q->win.out[2]; k++)
                y[k] /= down * q->divisor[2][k];
        }
    }
}

/* ---- MaxPool with indices ---- */

/* Row and column numbers accompany the elements, as bits of floats. Of equal elements, and of several NaN, the first
 * counts: the one in the first row, because columns are visited from the left. */
static inline onxi_vi goes_before(onxi_vf v, onxi_vi row, onxi_vf best, onxi_vi best_row)
{
    const onxi_vi nan = v != v, best_nan = best != best;
    return (v > best) | (nan & ~best_nan) | (((v == best) | (nan & best_nan)) & (row < best_row));
}

/* The maximum of each column of a window's lines, and its row; INT32_MAX if all lines are padding. */
static void go_down_where(const pool_params *q, const float *x, const int64_t *place, float *line, float *rows,
                          onxi_pace *pace)
{
    int64_t origin[2], first[2], last[2];
    const uint64_t n = (uint64_t)q->win.in[2];
    for (int d = 0; d < 2; d++) {
        origin[d] = place[d] * q->win.stride[d] - q->win.pad[d];
        window_taps(&q->win, d, origin[d], &first[d], &last[d]);
    }
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const uint64_t left = n - i;
        onxi_vf best = vf_all(-INFINITY);
        onxi_vi best_row = vi_all(INT32_MAX);
        for (int64_t k = first[0]; k < last[0] && !onxi_pace_stops(pace, 8 * (uint64_t)q->win.kernel[1]); k++)
            for (int64_t j = first[1]; j < last[1]; j++) {
                const int64_t row =
                    (origin[0] + k * q->win.dilation[0]) * q->win.in[1] + origin[1] + j * q->win.dilation[1];
                const float *at = x + row * q->win.in[2] + i;
                const onxi_vf v = left < ONXI_LANES ? vf_load_part(at, left, -INFINITY) : vf_load(at);
                const onxi_vi take = goes_before(v, vi_all((int32_t)row), best, best_row);
                best = vf_select(take, v, best);
                best_row = (onxi_vi)vf_select(take, (onxi_vf)vi_all((int32_t)row), (onxi_vf)best_row);
            }
        vf_store_part(line + i, best, left < ONXI_LANES ? left : ONXI_LANES);
        vf_store_part(rows + i, (onxi_vf)best_row, left < ONXI_LANES ? left : ONXI_LANES);
    }
}

/* `found` gets three lists: for windows that begin at each position, the maxima, their rows and their columns. */
static void go_across_where(const pool_params *q, const float *line, const float *rows, float *found, onxi_pace *pace)
{
    onxi_vi lanes = { 0 };
    for (int i = 0; i < ONXI_LANES; i++)
        lanes[i] = i - (int32_t)q->win.pad[2];
    for (uint64_t i = 0; i < q->span && !onxi_pace_stops(pace, 4 * (uint64_t)q->win.kernel[2]); i += ONXI_LANES) {
        const onxi_vi at = lanes + (int32_t)i;
        onxi_vf best = vf_load(line + i);
        onxi_vi row = (onxi_vi)vf_load(rows + i), column = at;
        for (int64_t j = 1; j < q->win.kernel[2]; j++) {
            const int64_t by = j * q->win.dilation[2];
            const onxi_vf v = vf_load(line + i + by), its_row = vf_load(rows + i + by);
            const onxi_vi take = goes_before(v, (onxi_vi)its_row, best, row);
            best = vf_select(take, v, best);
            row = (onxi_vi)vf_select(take, its_row, (onxi_vf)row);
            column = (onxi_vi)vf_select(take, (onxi_vf)(at + (int32_t)by), (onxi_vf)column);
        }
        vf_store(found + i, best);
        vf_store(found + q->span + i, (onxi_vf)row);
        vf_store(found + 2 * q->span + i, (onxi_vf)column);
    }
}

static void plane_where(const pool_params *q, const float *x, float *line, float *y, int64_t *index, int64_t base,
                        onxi_pace *pace)
{
    float *rows = line + q->line, *found = rows + q->line;
    const int32_t nowhere = INT32_MAX;
    for (uint64_t i = 0; i < q->line; i++) {
        line[i] = -INFINITY;
        memcpy(&rows[i], &nowhere, sizeof nowhere);
    }
    for (int64_t k = 0; k < q->win.out[0]; k++)
        for (int64_t j = 0; j < q->win.out[1]; j++) {
            const int64_t place[] = { k, j };
            go_down_where(q, x, place, line + q->win.pad[2], rows + q->win.pad[2], pace);
            go_across_where(q, line, rows, found, pace);
            if (onxi_pace_stops(pace, 2 * (uint64_t)q->win.out[2])) /* what was found may be incomplete */
                return;
            for (int64_t o = 0; o < q->win.out[2]; o++, y++, index++) {
                int32_t row, column;
                memcpy(&row, &found[q->span + (uint64_t)(o * q->win.stride[2])], sizeof row);
                memcpy(&column, &found[2 * q->span + (uint64_t)(o * q->win.stride[2])], sizeof column);
                *y = found[o * q->win.stride[2]];
                *index = base + (row == nowhere ? 0 : row * q->win.in[2] + column);
            }
        }
}

static onx_status run_where(const onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    const uint64_t in = (uint64_t)(q->win.in[0] * q->win.in[1] * q->win.in[2]),
                   out = (uint64_t)(q->win.out[0] * q->win.out[1] * q->win.out[2]);
    onxi_pace pace = { .work = work };
    for (uint64_t i = first; i < last && !onxi_pace_stops(&pace, q->line); i++)
        plane_where(q, (const float *)work->inputs[0]->data + i * in, work->thread_workspace,
                    (float *)work->outputs[0]->data + i * out, (int64_t *)work->outputs[1]->data + i * out,
                    (int64_t)(i * in), &pace);
    return ONX_OK;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    if (q->where)
        return run_where(work, first, last);
    const bool average = ((const pool_body *)work->prepared->kernel->body)->average;
    const uint64_t in = (uint64_t)(q->win.in[0] * q->win.in[1] * q->win.in[2]),
                   out = (uint64_t)(q->win.out[0] * q->win.out[1] * q->win.out[2]);
    const float *x = work->inputs[0]->data;
    float *y = work->outputs[0]->data, *line = work->thread_workspace;
    onxi_pace pace = { .work = work };
    for (uint64_t i = first; i < last && !onxi_pace_stops(&pace, q->line); i++) {
        if (average)
            plane(q, true, x + i * in, line, line + TOGETHER * q->line, y + i * out, &pace);
        else
            plane(q, false, x + i * in, line, line + TOGETHER * q->line, y + i * out, &pace);
    }
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    const pool_body *body = p->kernel->body;
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    onxi_window w;
    const bool where = !body->average && !body->global && p->output_count == 2 && p->outputs[1];
    if (x->rank < 3 || x->rank > 5 || (p->output_count != 1 && !where) || !x->count || !y || !y->count ||
        (where && onx_prepare_is_set(p, "storage_order")) || (body->planes && x->layout))
        return ONX_E_UNSUPPORTED;
    if (body->global)
        w = window_whole(x);
    else
        ONX_TRY(onxi_window_make(p, NULL, &w));
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (pool_params){ .where = where };
    if (!window_take(&w, &q->win))
        return ONX_E_UNSUPPORTED;
    if (body->average)
        ONX_TRY(window_divisors(p, &w, &q->win, !body->global, q->divisor));
    if (where && q->win.in[0] * q->win.in[1] >= INT32_MAX)
        return ONX_E_UNSUPPORTED;
    const uint64_t span = (uint64_t)((q->win.out[2] - 1) * q->win.stride[2] + 1);
    const uint64_t reach = (uint64_t)((q->win.kernel[2] - 1) * q->win.dilation[2]),
                   least = (uint64_t)(q->win.pad[2] + q->win.in[2]);
    q->span = (span + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    q->line = q->span + reach > least ? q->span + reach : least;
    if (q->line > ROOM_MAX)
        return ONX_E_UNSUPPORTED;
    p->thread_workspace = (where ? 2 * q->line + 3 * q->span : TOGETHER * q->line + q->span) * sizeof(float);
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * (uint64_t)x->dims[1];
    p->grain = 65536 / (x->count / p->rows + 1) + 1;
    return ONX_OK;
}

static const pool_body max_body = { .average = false }, average_body = { .average = true };
#if ONXI_PLATFORM_ROOMY
static const pool_body max_planes = { .planes = true }, average_planes = { .average = true, .planes = true };
#endif
static const pool_body global_max = { .global = true }, global_average = { .average = true, .global = true };

#define POOL(name, body_, preference_, flags_)                                                                         \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = preference_, .flags = flags_, .isa = ONXI_LEVEL,     \
        .variant = ONXI_VARIANT, .body = &body_, .prepare = prepare, .run = run                                        \
    }
#define ROW(name, body_) POOL(name, body_, 1, 0)
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_pool)[] = {
#if ONXI_PLATFORM_ROOMY /* before oneDNN's rows, if the input is planes already */
    POOL("MaxPool", max_planes, 11, ONX_KERNEL_LAYOUTS),
    POOL("AveragePool", average_planes, 11, ONX_KERNEL_LAYOUTS),
#endif
    ROW("MaxPool", max_body),
    ROW("AveragePool", average_body),
    ROW("GlobalMaxPool", global_max),
    ROW("GlobalAveragePool", global_average),
    { 0 }
};
