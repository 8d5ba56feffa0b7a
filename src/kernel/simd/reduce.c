/* reduce.c - reductions of floats: along contiguous lines a vector at a time (an output may have several lines), or
 * across lines a vector of neighbouring outputs at a time, to which short lines are turned; the axes must be
 * contiguous. Images with channels next to each other are read as they lie. ReduceProd accumulates in double, as the
 * plain row does: a float product could leave its range in between although the result does not. */
#include "kernel/core/reduce.h"
#include "kernel/core/blocked.h"
#include "kernel/simd/doubles.h"
#include "kernel/simd/halves.h"
#include "kernel/simd/math.h"
#include "kernel/simd/turned.h"

/* Sums are accumulated in float over blocks that are short enough, and in double over the blocks. */
enum { BLOCK = 64 * ONXI_LANES, COLUMNS = 8 * ONXI_LANES, FEW = 32, FEW_BEST = 16 };

static inline onxi_vf term(onxi_reduce_kind kind, onxi_vf v)
{
    return kind == ONXI_REDUCE_SUM_SQUARE || kind == ONXI_REDUCE_L2 ? v * v : kind == ONXI_REDUCE_L1 ? vf_abs(v) : v;
}

/* The greater or lesser element; NaN if either is NaN. */
static inline onxi_vf extreme(onxi_vf a, onxi_vf v, bool least)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    const __mmask16 number = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q); /* of NaN and a number v counts */
    return (onxi_vf)(least ? _mm512_mask_min_ps((__m512)a, number, (__m512)a, (__m512)v)
                           : _mm512_mask_max_ps((__m512)a, number, (__m512)a, (__m512)v));
#else
    onxi_vi take = least ? v < a : v > a;
    return vf_select(take | (v != v), v, a);
#endif
}

static inline float finish(onxi_reduce_kind kind, double sum, uint64_t count)
{
    return (float)(kind == ONXI_REDUCE_MEAN ? sum / (double)count : kind == ONXI_REDUCE_L2 ? sqrt(sum) : sum);
}

/* The sum in double, for lines whose sum, or terms, leave the range of float; elements are `step` apart. */
static double wide_sum(onxi_reduce_kind kind, const float *x, uint64_t n, uint64_t step)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        const double v = (double)x[i * step];
        sum += kind == ONXI_REDUCE_SUM_SQUARE || kind == ONXI_REDUCE_L2 ? v * v : kind == ONXI_REDUCE_L1 ? fabs(v) : v;
    }
    return sum;
}

/* Squares of small elements underflow to 0, which changes norms. */
static inline bool fits(onxi_reduce_kind kind, double sum)
{
    return isfinite(sum) && (kind != ONXI_REDUCE_L2 || sum >= 0x1p-90);
}

/* Sums of n elements, at most a block, by lane. */
static inline onxi_vf block_sum(onxi_reduce_kind kind, const float *x, uint64_t n)
{
    onxi_vf s = vf_all(0), t = vf_all(0);
    uint64_t i = 0;
    for (; i + 2 * ONXI_LANES <= n; i += 2 * ONXI_LANES) {
        s += term(kind, vf_load(x + i));
        t += term(kind, vf_load(x + i + ONXI_LANES));
    }
    for (; i < n; i += ONXI_LANES)
        s += term(kind, vf_load_part(x + i, n - i < ONXI_LANES ? n - i : ONXI_LANES, 0));
    return s + t;
}

static inline double sum_of(onxi_reduce_kind kind, const float *x, uint64_t n)
{
    double sum = 0;
    for (uint64_t start = 0; start < n; start += BLOCK)
        sum += (double)vf_sum(block_sum(kind, x + start, n - start < BLOCK ? n - start : BLOCK));
    return sum;
}

static inline void line_sum(onxi_reduce_kind kind, const float *x, uint64_t n, float *y)
{
    const double sum = sum_of(kind, x, n);
    *y = finish(kind, fits(kind, sum) ? sum : wide_sum(kind, x, n, 1), n);
}

/* The offset of line i of an output. */
static inline int64_t line_at(const onxi_reduce_params *q, uint64_t i)
{
    int64_t at = 0;
    for (uint32_t d = q->reduced; d-- > 0;) {
        at += (int64_t)(i % (uint64_t)q->dims[d]) * q->steps[d];
        i /= (uint64_t)q->dims[d];
    }
    return at;
}

/* The same for an output with several lines. */
static inline void lines_sum(onxi_reduce_kind kind, const onxi_reduce_params *q, const float *x, float *y)
{
    const uint64_t count = q->count / q->line;
    double sum = 0, wide = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += sum_of(kind, x + line_at(q, i), q->line);
    for (uint64_t i = 0; i < count && !fits(kind, sum); i++)
        wide += wide_sum(kind, x + line_at(q, i), q->line, 1);
    *y = finish(kind, fits(kind, sum) ? sum : wide, q->count);
}

/* The extremes of a line by lane. */
static inline onxi_vf lanes_extreme(bool least, const float *x, uint64_t n)
{
    enum { WAYS = 4 }; /* independent accumulators */
    if (n < ONXI_LANES)
        return vf_load_part(x, n, x[0]);
    uint64_t i = 0;
    onxi_vf best = vf_load(x), more[WAYS] = { best, best, best, best };
    for (; i + WAYS * ONXI_LANES <= n; i += WAYS * ONXI_LANES)
        for (int k = 0; k < WAYS; k++)
            more[k] = extreme(more[k], vf_load(x + i + (uint64_t)k * ONXI_LANES), least);
    for (int k = 0; i && k < WAYS; k++)
        best = extreme(best, more[k], least);
    for (; i + ONXI_LANES <= n; i += ONXI_LANES)
        best = extreme(best, vf_load(x + i), least);
    return i < n ? extreme(best, vf_load(x + n - ONXI_LANES), least) : best;
}

static inline void line_extreme(bool least, const float *x, uint64_t n, float *y)
{
    *y = vf_extreme_lane(lanes_extreme(least, x, n), least);
}

static double product_of(const float *x, uint64_t n, uint64_t step)
{
    enum { WAYS = 4 };
    doubles part[WAYS];
    double product = 1;
    uint64_t i = 0;
    for (int k = 0; k < WAYS; k++)
        part[k] = (doubles){ 0 } + 1;
    for (; step == 1 && i + WAYS * DOUBLES <= n; i += WAYS * DOUBLES)
        for (int k = 0; k < WAYS; k++)
            part[k] *= doubles_at(x + i + (uint64_t)k * DOUBLES);
    for (; i < n; i++)
        product *= (double)x[i * step];
    for (int k = 0; k < WAYS * DOUBLES; k++)
        product *= part[k / DOUBLES][k % DOUBLES];
    return product;
}

/* The logarithm of the sum of exponentials, which are computed relative to the largest element. */
static void line_log_sum_exp(const float *x, uint64_t n, float *y)
{
    float most;
    double sum = 0;
    line_extreme(false, x, n, &most);
    for (uint64_t start = 0; isfinite(most) && start < n; start += BLOCK) {
        const uint64_t end = n - start < BLOCK ? n : start + BLOCK;
        onxi_vf part = vf_all(0);
        uint64_t i = start;
        for (; i + ONXI_LANES <= end; i += ONXI_LANES)
            part += vf_exp(vf_load(x + i) - most);
        if (i < end)
            part += vf_exp(vf_load_part(x + i, end - i, -INFINITY) - most);
        sum += (double)vf_sum(part);
    }
    *y = isfinite(most) ? (float)(log(sum) + (double)most) : most;
}

#define LINE(kind, CALL)                                                                                               \
    static void line_##kind(const onxi_reduce_params *q, const void *x, void *y)                                       \
    {                                                                                                                  \
        CALL;                                                                                                          \
    }
LINE(SUM, line_sum(ONXI_REDUCE_SUM, x, q->count, y))
LINE(MEAN, line_sum(ONXI_REDUCE_MEAN, x, q->count, y))
LINE(L1, line_sum(ONXI_REDUCE_L1, x, q->count, y))
LINE(L2, line_sum(ONXI_REDUCE_L2, x, q->count, y))
LINE(SUM_SQUARE, line_sum(ONXI_REDUCE_SUM_SQUARE, x, q->count, y))
LINE(MAX, line_extreme(false, x, q->count, y))
LINE(MIN, line_extreme(true, x, q->count, y))
LINE(PROD, *(float *)y = (float)product_of(x, q->count, 1))
LINE(LOG_SUM_EXP, line_log_sum_exp(x, q->count, y))

static void (*const lines[])(const onxi_reduce_params *, const void *, void *) = {
    [ONXI_REDUCE_SUM] = line_SUM,
    [ONXI_REDUCE_MEAN] = line_MEAN,
    [ONXI_REDUCE_MAX] = line_MAX,
    [ONXI_REDUCE_MIN] = line_MIN,
    [ONXI_REDUCE_L1] = line_L1,
    [ONXI_REDUCE_L2] = line_L2,
    [ONXI_REDUCE_SUM_SQUARE] = line_SUM_SQUARE,
    [ONXI_REDUCE_PROD] = line_PROD,
    [ONXI_REDUCE_LOG_SUM_EXP] = line_LOG_SUM_EXP,
};

/* Accumulators of neighbouring columns, carried from line to line. */
typedef struct column_work {
    onxi_reduce_kind kind; /* for LOG_SUM_EXP, the sum */
    uint64_t step;
    const float *most; /* for LOG_SUM_EXP: the maximum of each column */
} column_work;

/* Accumulates `count` lines into `part`, some vectors wide; n: elements of the last vector. */
__attribute__((always_inline)) static inline void strip(const column_work *w, const float *x, uint64_t count,
                                                        float *part, const float *most, uint64_t n, const int vectors)
{
    enum { MOST = 4 };
    const bool best = w->kind == ONXI_REDUCE_MAX || w->kind == ONXI_REDUCE_MIN, least = w->kind == ONXI_REDUCE_MIN;
    onxi_vf a[MOST];
    for (int v = 0; v < vectors; v++)
        a[v] = vf_load(part + v * ONXI_LANES);
    for (; count; count--, x += w->step)
        for (int v = 0; v < vectors; v++) {
            const float *at = x + v * ONXI_LANES;
            const onxi_vf t = vectors > 1 || n == ONXI_LANES ? vf_load(at) : vf_load_part(at, n, 0);
            a[v] = best   ? extreme(a[v], t, least)
                   : most ? a[v] + vf_exp(t - vf_load(most + v * ONXI_LANES))
                          : a[v] + term(w->kind, t);
        }
    for (int v = 0; v < vectors; v++)
        vf_store(part + v * ONXI_LANES, a[v]);
}

static void strips(const column_work *w, const float *x, uint64_t count, float *part, uint64_t width)
{
    uint64_t i = 0;
    for (; i + 4 * ONXI_LANES <= width; i += 4 * ONXI_LANES)
        strip(w, x + i, count, part + i, w->most ? w->most + i : NULL, ONXI_LANES, 4);
    for (; i < width; i += ONXI_LANES)
        strip(w, x + i, count, part + i, w->most ? w->most + i : NULL, width - i < ONXI_LANES ? width - i : ONXI_LANES,
              1);
}

/* The maximum or minimum of each column. */
static void column_extremes(onxi_reduce_kind kind, const float *x, uint64_t count, uint64_t step, float *best,
                            uint64_t width)
{
    const column_work w = { .kind = kind, .step = step };
    const uint64_t wide = (width + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    for (uint64_t i = 0; i < wide; i++)
        best[i] = x[i < width ? i : 0];
    strips(&w, x, count, best, width);
}

static void column_products(const float *x, uint64_t count, uint64_t step, float *y, uint64_t width)
{
    uint64_t i = 0;
    for (; i + DOUBLES <= width; i += DOUBLES) {
        doubles product = doubles_at(x + i);
        for (uint64_t k = 1; k < count; k++)
            product *= doubles_at(x + i + k * step);
        for (int k = 0; k < DOUBLES; k++)
            y[i + (uint64_t)k] = (float)product[k];
    }
    for (; i < width; i++)
        y[i] = (float)product_of(x + i, count, step);
}

/* `width` neighbouring outputs, each of `count` elements that are `step` apart. Sums are accumulated in float for BLOCK
 * lines, then in double. */
static void columns(const onxi_reduce_params *q, const float *x, uint64_t step, float *y, uint64_t width)
{
    const onxi_reduce_kind kind = q->kind;
    const uint64_t wide = (width + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    float part[COLUMNS], most[COLUMNS];
    double total[COLUMNS];
    column_work w = { .kind = kind, .step = step };
    if (kind == ONXI_REDUCE_PROD) {
        column_products(x, q->count, step, y, width);
        return;
    }
    if (kind == ONXI_REDUCE_MAX || kind == ONXI_REDUCE_MIN) {
        column_extremes(kind, x, q->count, step, part, width);
        memcpy(y, part, width * sizeof *y);
        return;
    }
    if (kind == ONXI_REDUCE_LOG_SUM_EXP) {
        column_extremes(ONXI_REDUCE_MAX, x, q->count, step, most, width);
        w.most = most;
    }
    memset(total, 0, width * sizeof *total);
    for (uint64_t start = 0; start < q->count; start += BLOCK) {
        memset(part, 0, wide * sizeof *part);
        strips(&w, x + start * step, q->count - start < BLOCK ? q->count - start : BLOCK, part, width);
        for (uint64_t i = 0; i < width; i++)
            total[i] += (double)part[i];
    }
    for (uint64_t i = 0; i < width; i++)
        if (w.most)
            y[i] = isfinite(most[i]) ? (float)(log(total[i]) + (double)most[i]) : most[i];
        else
            y[i] = finish(kind, fits(kind, total[i]) ? total[i] : wide_sum(kind, x + i, q->count, step), q->count);
}

/* For few elements per output, float accumulation is accurate enough; squares may leave its range. */
static bool is_few(const onxi_reduce_params *q)
{
    return q->count <= FEW && q->kind != ONXI_REDUCE_L2 && q->kind != ONXI_REDUCE_PROD &&
           q->kind != ONXI_REDUCE_LOG_SUM_EXP;
}

static inline onxi_vf few_next(onxi_reduce_kind kind, onxi_vf a, onxi_vf v)
{
    return kind == ONXI_REDUCE_MAX || kind == ONXI_REDUCE_MIN ? extreme(a, v, kind == ONXI_REDUCE_MIN)
                                                              : a + term(kind, v);
}

static inline onxi_vf few_first(onxi_reduce_kind kind, onxi_vf v)
{
    return kind == ONXI_REDUCE_MAX || kind == ONXI_REDUCE_MIN ? v : term(kind, v);
}

/* Stores n outputs. Their first elements, from `x` on, are `apart` apart, the elements of one `step`. */
static inline void few_store(const onxi_reduce_params *q, onxi_vf a, const float *x, uint64_t apart, uint64_t step,
                             float *y, uint64_t n)
{
    const bool best = q->kind == ONXI_REDUCE_MAX || q->kind == ONXI_REDUCE_MIN;
    if (q->kind == ONXI_REDUCE_MEAN)
        a = a / vf_all((float)q->count);
    if (n == ONXI_LANES)
        vf_store(y, a);
    else
        vf_store_part(y, a, n);
    for (uint64_t k = 0; !best && vi_any((onxi_vi) ~(vf_abs(a) < INFINITY)) && k < n; k++)
        if (!isfinite(y[k]))
            y[k] = finish(q->kind, wide_sum(q->kind, x + k * apart, q->count, step), q->count);
}

/* Columns of few elements. */
static void few_columns(const onxi_reduce_params *q, const float *x, uint64_t step, float *y, uint64_t width)
{
    for (uint64_t i = 0; i < width; i += ONXI_LANES) {
        const uint64_t n = width - i < ONXI_LANES ? width - i : ONXI_LANES;
        const float *at = x + i;
        onxi_vf a = few_first(q->kind, n == ONXI_LANES ? vf_load(at) : vf_load_part(at, n, 0));
        for (uint64_t k = 1; k < q->count; k++)
            a = few_next(q->kind, a, n == ONXI_LANES ? vf_load(at + k * step) : vf_load_part(at + k * step, n, 0));
        few_store(q, a, at, 1, step, y + i, n);
    }
}

#if ONXI_PLATFORM_ROOMY
/* Lines of few elements. */
static void few_lines(const void *params, const float *x, uint64_t first, uint64_t n, void *y)
{
    const onxi_reduce_params *q = params;
    float turned[ONXI_LANES * ONXI_LANES];
    onxi_vf a = vf_all(0);
    for (uint64_t start = 0; start < q->count; start += ONXI_LANES) {
        const uint64_t left = q->count - start, count = left < ONXI_LANES ? left : ONXI_LANES;
        vf_turn((const char *)(x + start), q->count * sizeof *x, turned, ONXI_LANES);
        if (!start)
            a = few_first(q->kind, vf_load(turned));
        for (uint64_t k = start ? 0 : 1; k < count; k++)
            a = few_next(q->kind, a, vf_load(turned + k * ONXI_LANES));
    }
    few_store(q, a, x, q->count, 1, (float *)y + first, n);
}

/* Lines that are faster turned. Extremes, for which floats are always accurate enough, take longer along a line with
 * more lanes; narrower vectors that a line fills are reduced faster as they lie. */
static bool suits_few_lines(const onxi_reduce_params *q)
{
    if (ONXI_LANES < 16 && q->count % (2 * ONXI_LANES) == 0)
        return false;
    return q->kind == ONXI_REDUCE_MAX || q->kind == ONXI_REDUCE_MIN ? q->count <= FEW_BEST : is_few(q);
}
#endif

#define LINES(kind)                                                                                                    \
    static void lines_##kind(const onxi_reduce_params *q, const void *x, void *y)                                      \
    {                                                                                                                  \
        lines_sum(ONXI_REDUCE_##kind, q, x, y);                                                                        \
    }
LINES(SUM)
LINES(MEAN)
LINES(L1)
LINES(L2)
LINES(SUM_SQUARE)

static void (*const apart[])(const onxi_reduce_params *, const void *, void *) = {
    [ONXI_REDUCE_SUM] = lines_SUM,
    [ONXI_REDUCE_MEAN] = lines_MEAN,
    [ONXI_REDUCE_L1] = lines_L1,
    [ONXI_REDUCE_L2] = lines_L2,
    [ONXI_REDUCE_SUM_SQUARE] = lines_SUM_SQUARE,
};

/* Axes that are not adjacent, with contiguous innermost ones: several lines per output, long enough for vectors. */
static onx_status prepare_lines(onxi_reduce_params *q)
{
    uint32_t outer = q->reduced;
    uint64_t line = 1;
    while (outer && (uint64_t)q->steps[outer - 1] == line)
        line *= (uint64_t)q->dims[--outer];
    if (line < 2 * ONXI_LANES || (size_t)q->kind >= sizeof apart / sizeof *apart || !apart[q->kind])
        return ONX_E_UNSUPPORTED;
    q->reduced = outer;
    q->line = line;
    q->loop = apart[q->kind];
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    ONX_TRY(onxi_reduce_prepare(p));
    onxi_reduce_params *q = p->params;
    if (q->kept_prepare || (size_t)q->kind >= sizeof lines / sizeof *lines || !lines[q->kind] || !q->count)
        return ONX_E_UNSUPPORTED;
    uint32_t r = 0; /* reduced dims of more than one element must be adjacent */
    for (uint32_t d = 0; d < q->reduced; d++)
        if (q->dims[d] != 1) {
            q->dims[r] = q->dims[d];
            q->steps[r++] = q->steps[d];
        }
    q->reduced = r;
    for (uint32_t d = 1; d < r; d++)
        if (q->steps[d - 1] != q->steps[d] * q->dims[d])
            return prepare_lines(q);
    uint64_t step = r ? (uint64_t)q->steps[r - 1] : 1;
    q->loop = lines[q->kind];
    if (step > 1) {
        q->inner = step;
        p->rows = p->outputs[0]->count / step * ((step + COLUMNS - 1) / COLUMNS);
        p->grain = 8192 / (q->count * (step < COLUMNS ? step : COLUMNS)) + 1;
    } else if (q->count > 1) {
        q->lines.count = q->count;
    }
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY /* browsers reduce planes */
/* Global pools of images that are planes already. */
static onx_status prepare_planes(onx_prepare *p)
{
    return p->want && !p->inputs[0]->layout && p->inputs[0]->rank > 2 ? prepare(p) : ONX_E_UNSUPPORTED;
}

/* Images whose channels are next to each other and fill vectors, as they lie. */
static onx_status prepare_blocks(onx_prepare *p)
{
    if (!p->want || onxi_blocked_of(p->inputs[0]) < ONXI_LANES)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(prepare(p));
    onxi_reduce_params *q = p->params;
    onx_value *y = p->outputs[0];
    q->lines.count = 0;
    if (q->block && !(y->layout = onxi_blocked_layout(p->arena, y, q->block)))
        return ONX_E_MEMORY;
    return ONX_OK;
}

/* Are lines so short that combining the lanes of each would take longer than its elements? */
static bool goes_together(const onxi_reduce_params *q)
{
    return q->count <= BLOCK && q->kind != ONXI_REDUCE_PROD && q->kind != ONXI_REDUCE_LOG_SUM_EXP;
}

/* Lines next to each other, of floats or of 16-bit floats. */
typedef struct line_list {
    const void *x;
    uint64_t n; /* elements of a line, at most a block */
    bool halves;
    half_kind half;
} line_list;

/* Line r, which is at `wide` if it had to be converted. */
static inline const float *line_of(const line_list *list, uint64_t r, float *wide)
{
    if (!list->halves)
        return (const float *)list->x + r * list->n;
    half_widen(list->half, (const uint16_t *)list->x + r * list->n, wide, list->n);
    return wide;
}

/* Reduces up to ONXI_LANES lines by lane, then turns these lanes, so that all lines are combined at once. The result of
 * a line does not depend on the others. */
__attribute__((always_inline)) static inline void lines_together(const line_list *list, const onxi_reduce_kind kind,
                                                                 float *y, uint64_t count)
{
    const bool best = kind == ONXI_REDUCE_MAX || kind == ONXI_REDUCE_MIN, least = kind == ONXI_REDUCE_MIN;
    const uint64_t n = list->n;
    float lanes[ONXI_LANES * ONXI_LANES], sums[ONXI_LANES], wide[BLOCK];
    onxi_vf v[ONXI_LANES];
    for (uint64_t r = 0; r < ONXI_LANES; r++) {
        const float *x = r < count ? line_of(list, r, wide) : NULL;
        vf_store(lanes + r * ONXI_LANES, !x ? vf_all(0) : best ? lanes_extreme(least, x, n) : block_sum(kind, x, n));
    }
    vf_turn((const char *)lanes, ONXI_LANES * sizeof *lanes, lanes, ONXI_LANES);
    for (int i = 0; i < ONXI_LANES; i++)
        v[i] = vf_load(lanes + i * ONXI_LANES);
    for (int half = ONXI_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            v[i] = best ? extreme(v[i], v[i + half], least) : v[i] + v[i + half];
    vf_store(sums, v[0]);
    for (uint64_t r = 0; r < count; r++) {
        const double sum = (double)sums[r];
        y[r] = best ? sums[r] : finish(kind, fits(kind, sum) ? sum : wide_sum(kind, line_of(list, r, wide), n, 1), n);
    }
}

static void all_together(onxi_reduce_kind kind, const line_list *list, float *y, uint64_t count)
{
#define KIND(name)                                                                                                     \
    case ONXI_REDUCE_##name:                                                                                           \
        lines_together(list, ONXI_REDUCE_##name, y, count);                                                            \
        break;
    switch (kind) {
        KIND(SUM)
        KIND(MEAN)
        KIND(L1)
        KIND(L2)
        KIND(MAX)
        KIND(MIN)
    default:
        lines_together(list, ONXI_REDUCE_SUM_SQUARE, y, count);
        break;
    }
#undef KIND
}

/* ---- lines of 16-bit floats, as many as a vector has lanes at once ---- */

static onx_status prepare_halves(onx_prepare *p)
{
    enum { LEAST = 9 }; /* elements of a line; fewer are faster in reduce_types.c */
    ONX_TRY(prepare(p));
    const onxi_reduce_params *q = p->params;
    return q->line || q->inner || q->count < LEAST || !goes_together(q) ? ONX_E_UNSUPPORTED : ONX_OK;
}

/* Lines that are not too long are converted all at once: ends of vectors that were just written are slow to read. */
static onx_status run_halves(onx_work *work, uint64_t first, uint64_t last)
{
    enum { WIDE = 4096 };
    const onxi_reduce_params *q = work->params;
    const half_kind half = work->inputs[0]->dtype == ONX_FLOAT16 ? HALF_FLOAT16 : HALF_BFLOAT16;
    const bool few = suits_few_lines(q), at_once = q->count <= WIDE / ONXI_LANES;
    float in[WIDE], out[ONXI_LANES];
    if (few) /* whole vectors are read of each line */
        memset(in, 0, ONXI_LANES * (FEW + 1) * sizeof *in);
    for (uint64_t n; first < last; first += n) {
        const uint16_t *x = (const uint16_t *)work->inputs[0]->data + first * q->count;
        line_list list = { x, q->count, true, half };
        n = last - first < ONXI_LANES ? last - first : ONXI_LANES;
        if (at_once) {
            half_widen(half, x, in, n * q->count);
            list = (line_list){ .x = in, .n = q->count };
        }
        if (few)
            few_lines(q, in, 0, n, out);
        else
            all_together(q->kind, &list, out, n);
        half_narrow(half, out, (uint16_t *)work->outputs[0]->data + first, n);
    }
    return ONX_OK;
}
#endif

/* Reductions of one element each, as in gradients of broadcasting where nothing was broadcast. */
static void run_alone(onxi_reduce_kind kind, const float *x, float *y, uint64_t n)
{
    if (kind == ONXI_REDUCE_SUM_SQUARE)
        for (uint64_t i = 0; i < n; i++)
            y[i] = x[i] * x[i];
    else if (kind == ONXI_REDUCE_L1 || kind == ONXI_REDUCE_L2)
        for (uint64_t i = 0; i < n; i++)
            y[i] = fabsf(x[i]);
    else if (n)
        memcpy(y, x, n * sizeof *y);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_reduce_params *q = work->params;
    if (q->line)
        return onxi_reduce_run(work, first, last);
    if (q->count == 1) {
        run_alone(q->kind, (const float *)work->inputs[0]->data + first, (float *)work->outputs[0]->data + first,
                  last - first);
        return ONX_OK;
    }
    if (!q->inner) { /* lines are contiguous */
        const float *x = work->inputs[0]->data;
        float *y = work->outputs[0]->data;
#if ONXI_PLATFORM_ROOMY
        if (suits_few_lines(q)) {
            turned_lines(few_lines, q, x + first * q->count, q->count, last - first, y + first);
            return ONX_OK;
        }
        for (; first < last && goes_together(q); first += last - first < ONXI_LANES ? last - first : ONXI_LANES)
            all_together(q->kind, &(line_list){ .x = x + first * q->count, .n = q->count }, y + first,
                         last - first < ONXI_LANES ? last - first : ONXI_LANES);
#endif
        for (uint64_t row = first; row < last; row++)
            q->loop(q, x + row * q->count, y + row);
        return ONX_OK;
    }
    const uint64_t blocks = (q->inner + COLUMNS - 1) / COLUMNS;
    const bool few = is_few(q);
    for (uint64_t row = first; row < last; row++) {
        uint64_t at = row % blocks * COLUMNS, left = q->inner - at;
        (few ? few_columns : columns)(q, (const float *)work->inputs[0]->data + row / blocks * q->count * q->inner + at,
                                      q->inner, (float *)work->outputs[0]->data + row / blocks * q->inner + at,
                                      left < COLUMNS ? left : COLUMNS);
    }
    return ONX_OK;
}

#define ROW(name, kind, types, preference_, flags_, prepare_, run_)                                                    \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = types, .preference = preference_, .isa = ONXI_LEVEL,                         \
        .variant = ONXI_VARIANT, .flags = flags_, .body = &(const onxi_reduce_kind){ ONXI_REDUCE_##kind },             \
        .prepare = prepare_, .run = run_                                                                               \
    }
#if ONXI_PLATFORM_ROOMY
#define HALVES (ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))
#define ROWS(name, kind)                                                                                               \
    ROW(name, kind, ONXI_F32, 2, ONX_KERNEL_LAYOUTS, prepare_blocks, run),                                             \
        ROW(name, kind, ONXI_F32, 1, ONXI_KERNEL_LINES, prepare, run)
#define ALL_ROWS(name, kind) ROWS(name, kind), ROW(name, kind, HALVES, 3, ONXI_KERNEL_LINES, prepare_halves, run_halves)
#define POOL_ROW(name, kind) ROW(name, kind, ONXI_F32, 11, ONX_KERNEL_LAYOUTS, prepare_planes, run)
#else
#define ROWS(name, kind)     ROW(name, kind, ONXI_F32, 1, ONXI_KERNEL_LINES, prepare, run)
#define ALL_ROWS(name, kind) ROWS(name, kind)
#endif
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_reduce)[] = { ALL_ROWS("ReduceSum", SUM),
                                                              ALL_ROWS("ReduceMean", MEAN),
                                                              ALL_ROWS("ReduceMax", MAX),
                                                              ALL_ROWS("ReduceMin", MIN),
                                                              ALL_ROWS("ReduceL1", L1),
                                                              ALL_ROWS("ReduceL2", L2),
                                                              ALL_ROWS("ReduceSumSquare", SUM_SQUARE),
                                                              ROWS("ReduceProd", PROD),
                                                              ROWS("ReduceLogSumExp", LOG_SUM_EXP),
#if ONXI_PLATFORM_ROOMY
                                                              POOL_ROW("GlobalMaxPool", MAX),
                                                              POOL_ROW("GlobalAveragePool", MEAN),
#endif
                                                              { 0 } };
