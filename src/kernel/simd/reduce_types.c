/* reduce_types.c - reductions, ArgMax and ArgMin of all plain types. A row of adjacent elements is accumulated to a row
 * of accumulators by loops that compilers vectorize at each level. The elements belong to adjacent outputs, to lanes of
 * one line, or to several short lines at a stride. Floats are summed in double; 16-bit floats are converted to float.
 * Floats have rows of their own (reduce.c, arg.c), except for lines of a few elements. */
#include "kernel/core/reduce.h"
#include "kernel/simd/halves.h"
#include "kernel/simd/wide.h"

#ifdef __wasm__
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_reduce_types)[] = { { 0 } };
#else

/* Bytes of a row of accumulators; lanes for lines shorter than two such rows; most elements of short lines, and of
 * those whose sum, or best element, the rows of floats are slower at. */
enum { ROW_BYTES = 512, LANES = 8, SHORT = 64, SHORT_FLOATS = 8, SHORT_ARG = ONXI_LANES == 8 ? 32 : 0 };

/* Accumulates count x width elements: x[k * step + i * apart] into accumulator i. */
typedef void (*fold_rows)(const void *x, uint64_t step, uint64_t apart, uint64_t count, void *acc, uint64_t width);
/* Finds the index k of the best element per accumulator: the first, or the last, of equal ones. */
typedef void (*find_rows)(const void *x, uint64_t step, uint64_t apart, uint64_t count, const void *best, bool last,
                          int64_t *at, uint64_t width);
/* The index of the best element of a line; n if it is not there. */
typedef uint64_t (*find_line)(const void *x, uint64_t n, const void *best, bool last);

typedef struct fold {
    fold_rows rows;
    void (*start)(void *acc, uint64_t n);
    void (*combine)(void *acc, uint64_t lanes); /* combines a power of two of accumulators into the first */
    uint32_t width;                             /* bytes of an accumulator */
    bool real;                                  /* the accumulator is a double, whatever the type */
    find_rows find;                             /* for extremes */
    find_line find_in_line;
} fold;

#define EACH_ROW(T, A, WIDTH, APART, EXPR)                                                                             \
    for (uint64_t k = 0; k < count; k++, x += step)                                                                    \
        for (uint64_t i = 0; i < (WIDTH); i++) {                                                                       \
            const A v = (A)x[i * (APART)], a = acc[i];                                                                 \
            acc[i] = (A)(EXPR);                                                                                        \
        }
/* EXPR accumulates the element v into a; WITH combines two accumulators, a and v. */
#define FOLD_LOOPS(name, T, A, START, EXPR, WITH)                                                                      \
    static void name##_rows(const void *px, uint64_t step, uint64_t apart, uint64_t count, void *pacc, uint64_t width) \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        A *restrict acc = (A *)pacc;                                                                                   \
        if (apart != 1)                                                                                                \
            EACH_ROW(T, A, width, apart, EXPR)                                                                         \
        else if (width == ROW_BYTES / sizeof(A))                                                                       \
            EACH_ROW(T, A, ROW_BYTES / sizeof(A), 1, EXPR)                                                             \
        else if (width == LANES)                                                                                       \
            EACH_ROW(T, A, LANES, 1, EXPR)                                                                             \
        else                                                                                                           \
            EACH_ROW(T, A, width, 1, EXPR)                                                                             \
    }                                                                                                                  \
    static void name##_start(void *pacc, uint64_t n)                                                                   \
    {                                                                                                                  \
        A *acc = (A *)pacc;                                                                                            \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            acc[i] = (A)(START);                                                                                       \
    }                                                                                                                  \
    static void name##_combine(void *pacc, uint64_t lanes)                                                             \
    {                                                                                                                  \
        A *acc = (A *)pacc;                                                                                            \
        for (uint64_t n = lanes / 2; n; n /= 2)                                                                        \
            for (uint64_t i = 0; i < n; i++) {                                                                         \
                const A a = acc[i], v = acc[i + n];                                                                    \
                acc[i] = (A)(WITH);                                                                                    \
            }                                                                                                          \
    }
#define FOLD(name, T, A, is_real, START, EXPR, WITH)                                                                   \
    FOLD_LOOPS(name, T, A, START, EXPR, WITH)                                                                          \
    static const fold name = { name##_rows, name##_start, name##_combine, sizeof(A), is_real, NULL, NULL };

/* I: an integer as wide as T, and no less than 32 bits. */
#define SAME (v == b || (v != v && b != b))
#define FIND(name, T, I)                                                                                               \
    static void name##_find(const void *px, uint64_t step, uint64_t apart, uint64_t count, const void *best,           \
                            bool last, int64_t *at, uint64_t width)                                                    \
    {                                                                                                                  \
        const T *x = (const T *)px, *restrict most = (const T *)best;                                                  \
        I where[ROW_BYTES / sizeof(T)] = { 0 };                                                                        \
        for (uint64_t n = 0; n < count; n++) {                                                                         \
            const uint64_t k = last ? n : count - 1 - n;                                                               \
            for (uint64_t i = 0; apart == 1 && i < width; i++) {                                                       \
                const T v = x[k * step + i], b = most[i];                                                              \
                where[i] = SAME ? (I)k : where[i];                                                                     \
            }                                                                                                          \
            for (uint64_t i = 0; apart != 1 && i < width; i++) {                                                       \
                const T v = x[k * step + i * apart], b = most[i];                                                      \
                where[i] = SAME ? (I)k : where[i];                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        for (uint64_t i = 0; i < width; i++)                                                                           \
            at[i] = (int64_t)where[i];                                                                                 \
    }                                                                                                                  \
    static uint64_t name##_find_in_line(const void *px, uint64_t n, const void *best, bool last)                       \
    {                                                                                                                  \
        enum { STRETCH = 256 };                                                                                        \
        const T *x = (const T *)px, b = *(const T *)best;                                                              \
        if (n <= STRETCH) { /* the first or last of all indices, which needs no branches */                            \
            I where = last ? -1 : (I)n;                                                                                \
            for (I i = 0; last && i < (I)n; i++) {                                                                     \
                const T v = x[i];                                                                                      \
                const I at = SAME ? i : -1;                                                                            \
                where = at > where ? at : where;                                                                       \
            }                                                                                                          \
            for (I i = 0; !last && i < (I)n; i++) {                                                                    \
                const T v = x[i];                                                                                      \
                const I at = SAME ? i : (I)n;                                                                          \
                where = at < where ? at : where;                                                                       \
            }                                                                                                          \
            return where < 0 ? n : (uint64_t)where;                                                                    \
        }                                                                                                              \
        for (uint64_t done = 0, m; done < n; done += m) {                                                              \
            m = n - done < STRETCH ? n - done : STRETCH;                                                               \
            const uint64_t first = last ? n - done - m : done;                                                         \
            int hit = 0;                                                                                               \
            for (uint64_t i = 0; i < m; i++) {                                                                         \
                const T v = x[first + i];                                                                              \
                hit |= SAME;                                                                                           \
            }                                                                                                          \
            for (uint64_t i = 0; hit && i < m; i++) {                                                                  \
                const uint64_t at = last ? first + m - 1 - i : first + i;                                              \
                const T v = x[at];                                                                                     \
                if (SAME)                                                                                              \
                    return at;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        return n;                                                                                                      \
    }
#define EXTREME(name, T, I, START, EXPR)                                                                               \
    FOLD_LOOPS(name, T, T, START, EXPR, EXPR)                                                                          \
    FIND(name, T, I)                                                                                                   \
    static const fold name = { name##_rows, name##_start, name##_combine,     sizeof(T),                               \
                               false,       name##_find,  name##_find_in_line };

#define REALS(d, T)                                                                                                    \
    FOLD(add_##d, T, double, true, 0, a + v, a + v)                                                                    \
    FOLD(abs_##d, T, double, true, 0, a + fabs(v), a + v)                                                              \
    FOLD(square_##d, T, double, true, 0, a + v * v, a + v)                                                             \
    FOLD(mul_##d, T, double, true, 1, a *v, a *v)
#define FLOATS(d, T, I)                                                                                                \
    REALS(d, T)                                                                                                        \
    EXTREME(max_##d, T, I, -INFINITY, v > a || v != v ? v : a) /* NaN is kept */                                       \
    EXTREME(min_##d, T, I, INFINITY, v < a || v != v ? v : a)
FLOATS(FLOAT, float, int32_t)
FLOATS(DOUBLE, double, int64_t)
#define EXTREMES(d, T, I, LEAST, MOST)                                                                                 \
    EXTREME(max_##d, T, I, LEAST, v > a ? v : a)                                                                       \
    EXTREME(min_##d, T, I, MOST, v < a ? v : a)
EXTREMES(INT8, int8_t, int32_t, INT8_MIN, INT8_MAX)
EXTREMES(INT16, int16_t, int32_t, INT16_MIN, INT16_MAX)
EXTREMES(INT32, int32_t, int32_t, INT32_MIN, INT32_MAX)
EXTREMES(INT64, int64_t, int64_t, INT64_MIN, INT64_MAX)
EXTREMES(UINT8, uint8_t, int32_t, 0, UINT8_MAX)
EXTREMES(UINT16, uint16_t, int32_t, 0, UINT16_MAX)
EXTREMES(UINT32, uint32_t, int32_t, 0, UINT32_MAX)
EXTREMES(UINT64, uint64_t, int64_t, 0, UINT64_MAX)
/* Integer sums and products wrap, so signedness does not matter; means are computed in double. */
#define WRAPPING(bits)                                                                                                 \
    FOLD(add_##bits, uint##bits##_t, uint##bits##_t, false, 0, a + v, a + v)                                           \
    FOLD(square_##bits, uint##bits##_t, uint##bits##_t, false, 0, a + v * v, a + v)                                    \
    FOLD(mul_##bits, uint##bits##_t, uint##bits##_t, false, 1, a *v, a *v)
WRAPPING(32)
WRAPPING(64)
FOLD(abs_INT32, int32_t, uint32_t, false, 0, a + (v >> 31 ? 0 - v : v), a + v)
FOLD(abs_INT64, int64_t, uint64_t, false, 0, a + (v >> 63 ? 0 - v : v), a + v)
/* In double, for means, roots and logarithms. */
#define IN_DOUBLE(d, T)                                                                                                \
    FOLD(mean_##d, T, double, true, 0, a + v, a + v)                                                                   \
    FOLD(norm_##d, T, double, true, 0, a + v * v, a + v)
IN_DOUBLE(INT32, int32_t)
IN_DOUBLE(INT64, int64_t)
IN_DOUBLE(UINT32, uint32_t)
IN_DOUBLE(UINT64, uint64_t)

#define OF_FLOATS(op)                                                                                                  \
    [ONX_FLOAT] = &op##_FLOAT, [ONX_DOUBLE] = &op##_DOUBLE, [ONX_FLOAT16] = &op##_FLOAT, [ONX_BFLOAT16] = &op##_FLOAT
#define OF_WRAPPING(op) [ONX_INT32] = &op##_32, [ONX_UINT32] = &op##_32, [ONX_INT64] = &op##_64, [ONX_UINT64] = &op##_64
#define OF_WIDE(op)                                                                                                    \
    [ONX_INT32] = &op##_INT32, [ONX_UINT32] = &op##_UINT32, [ONX_INT64] = &op##_INT64, [ONX_UINT64] = &op##_UINT64
#define OF_INTEGERS(op)                                                                                                \
    [ONX_INT8] = &op##_INT8, [ONX_INT16] = &op##_INT16, [ONX_INT32] = &op##_INT32, [ONX_INT64] = &op##_INT64,          \
    [ONX_UINT8] = &op##_UINT8, [ONX_UINT16] = &op##_UINT16, [ONX_UINT32] = &op##_UINT32, [ONX_UINT64] = &op##_UINT64
static const fold *const folds[][ONX_DTYPE_COUNT] = {
    [ONXI_REDUCE_SUM] = { OF_FLOATS(add), OF_WRAPPING(add) },
    [ONXI_REDUCE_MEAN] = { OF_FLOATS(add), OF_WIDE(mean) },
    [ONXI_REDUCE_PROD] = { OF_FLOATS(mul), OF_WRAPPING(mul) },
    [ONXI_REDUCE_MAX] = { OF_FLOATS(max), OF_INTEGERS(max) },
    [ONXI_REDUCE_MIN] = { OF_FLOATS(min), OF_INTEGERS(min) },
    [ONXI_REDUCE_L1] = { OF_FLOATS(abs), [ONX_INT32] = &abs_INT32, [ONX_UINT32] = &add_32, [ONX_INT64] = &abs_INT64,
                         [ONX_UINT64] = &add_64 },
    [ONXI_REDUCE_L2] = { OF_FLOATS(square), OF_WIDE(norm) },
    [ONXI_REDUCE_LOG_SUM] = { OF_FLOATS(add), OF_WIDE(mean) },
    [ONXI_REDUCE_LOG_SUM_EXP] = { [ONX_DOUBLE] = &max_DOUBLE, OF_WIDE(max) }, /* which the sums are relative to */
    [ONXI_REDUCE_SUM_SQUARE] = { OF_FLOATS(square), OF_WRAPPING(square) },
};

/* ---- sums of exponentials ---- */

enum { EXPS = ROW_BYTES / sizeof(double) }; /* that are summed together */

static void to_doubles(int dtype, const void *px, uint64_t apart, uint64_t n, double *restrict out)
{
#define TAKE(d, T)                                                                                                     \
    case ONX_##d: {                                                                                                    \
        const T *x = px;                                                                                               \
        for (uint64_t i = 0; apart == 1 && i < n; i++)                                                                 \
            out[i] = (double)x[i];                                                                                     \
        for (uint64_t i = 0; apart != 1 && i < n; i++)                                                                 \
            out[i] = (double)x[i * apart];                                                                             \
        break;                                                                                                         \
    }
    switch (dtype) {
        TAKE(INT32, int32_t)
        TAKE(UINT32, uint32_t)
        TAKE(INT64, int64_t)
        TAKE(UINT64, uint64_t)
        TAKE(DOUBLE, double)
    default:
        break;
    }
#undef TAKE
}

/* sum[i] += e^(x[i] - most[i]) for EXPS elements */
static void add_exps(const double *x, const double *most, double *sum)
{
    for (uint64_t i = 0; i < EXPS; i += VD_LANES) {
        vd v, m, s;
        memcpy(&v, x + i, sizeof v);
        memcpy(&m, most + i, sizeof m);
        memcpy(&s, sum + i, sizeof s);
        s += vd_exp(v - m);
        memcpy(sum + i, &s, sizeof s);
    }
}

static double log_of_exps(double sum, double most)
{
    return isinf(most) ? most : log(sum) + most;
}

/* ---- preparing ---- */

typedef struct types_params {
    onxi_lines lines;
    const onxi_reduce_params *q; /* with merged reduced dims */
    const fold *fold;
    bool is_half, is_arg;
    half_kind half;
    uint32_t width;        /* bytes of a stored element */
    uint64_t inner, count; /* adjacent outputs; elements with stride `inner` in a run of an output */
    uint64_t row;          /* accumulators per row */
    uint64_t lanes;        /* lanes of a line; 0: accumulators belong to adjacent outputs */
    uint64_t apart;        /* elements between adjacent outputs: more than 1 for short lines */
    bool block;            /* an output has several lines, which are accumulated element by element */
} types_params;

/* Merges adjacent reduced dims and drops those of size 1. */
static void merge(onxi_reduce_params *q)
{
    uint32_t r = 0;
    for (uint32_t d = 0; d < q->reduced; d++) {
        if (q->dims[d] == 1)
            continue;
        if (r && q->steps[r - 1] == q->steps[d] * q->dims[d]) {
            q->dims[r - 1] *= q->dims[d];
            q->steps[r - 1] = q->steps[d];
        } else {
            q->dims[r] = q->dims[d];
            q->steps[r++] = q->steps[d];
        }
    }
    q->reduced = r;
}

/* Is it a reduction of floats that the rows of floats do not support, or for which they are slower? They sum long
 * lines. */
static bool takes_floats(const types_params *t)
{
    const onxi_reduce_kind kind = t->q->kind;
    if (t->q->reduced > 1)
        return t->block || t->inner > 1 || t->fold->find || kind == ONXI_REDUCE_LOG_SUM;
    return kind == ONXI_REDUCE_LOG_SUM || (t->inner == 1 && t->count <= (t->is_arg ? SHORT_ARG : SHORT_FLOATS));
}

static onx_status prepare_with(onx_prepare *p, const fold *f, bool is_arg)
{
    onxi_reduce_params *q = p->params;
    const onx_value *x = p->inputs[0];
    if (!f || !q->count || !p->outputs[0]->count || x->layout)
        return ONX_E_UNSUPPORTED;
    merge(q);
    if (!q->reduced)
        return ONX_E_UNSUPPORTED;
    types_params *t = ONXI_NEW(p->arena, types_params);
    if (!t)
        return ONX_E_MEMORY;
    *t = (types_params){ .q = q, .fold = f, .width = q->width, .is_arg = is_arg };
    t->is_half = x->dtype == ONX_FLOAT16 || x->dtype == ONX_BFLOAT16;
    t->half = x->dtype == ONX_BFLOAT16 ? HALF_BFLOAT16 : HALF_FLOAT16;
    t->inner = (uint64_t)q->steps[q->reduced - 1];
    t->count = (uint64_t)q->dims[q->reduced - 1];
    t->row = q->kind == ONXI_REDUCE_LOG_SUM_EXP ? EXPS : ROW_BYTES / f->width;
    const bool short_lines = t->inner == 1 && q->reduced == 1 && t->count <= SHORT;
    t->block = t->inner == 1 && q->reduced > 1 && t->count <= t->row;
    if (t->inner == 1 && !short_lines)
        t->lanes = t->count >= 2 * t->row ? t->row : LANES;
    if (t->block)
        for (t->lanes = 1; t->lanes < t->count;)
            t->lanes *= 2;
    if (x->dtype == ONX_FLOAT && !takes_floats(t))
        return ONX_E_UNSUPPORTED;
    t->apart = short_lines ? t->count : 1;
    if (t->is_half && short_lines && t->row > ONXI_HALVES / t->count)
        t->row = ONXI_HALVES / t->count; /* so that they fit into one stretch */
    if (t->inner == 1 && q->reduced == 1)
        t->lines.count = t->count;
    const uint64_t width = t->inner < t->row ? t->inner : t->row;
    p->rows = p->outputs[0]->count / t->inner * ((t->inner + t->row - 1) / t->row);
    p->grain = onxi_worth_a_thread(q->count * width);
    p->params = t;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    ONX_TRY(onxi_reduce_prepare(p));
    const onxi_reduce_kind kind = ((const onxi_reduce_params *)p->params)->kind;
    const bool known = (size_t)kind < sizeof folds / sizeof *folds;
    return prepare_with(p, known ? folds[kind][p->inputs[0]->dtype] : NULL, false);
}

static onx_status prepare_arg(onx_prepare *p)
{
    ONX_TRY(onxi_arg_prepare(p));
    const onxi_reduce_params *q = p->params;
    if (q->count > INT32_MAX)
        return ONX_E_UNSUPPORTED;
    return prepare_with(p, folds[q->arg_max ? ONXI_REDUCE_MAX : ONXI_REDUCE_MIN][p->inputs[0]->dtype], true);
}

/* ---- running ---- */

/* The offset of output `index`, counted without the adjacent outputs. */
static int64_t outer_at(const types_params *t, uint64_t index)
{
    int64_t at = 0;
    for (uint32_t d = t->q->kept; d-- > 0;)
        if (t->q->kept_steps[d] >= (int64_t)t->inner) {
            at += (int64_t)(index % (uint64_t)t->q->kept_dims[d]) * t->q->kept_steps[d];
            index /= (uint64_t)t->q->kept_dims[d];
        }
    return at;
}

/* The offset of number `index` along the reduced dims before `d`. */
static int64_t reduced_at(const types_params *t, uint32_t d, uint64_t index)
{
    int64_t at = 0;
    while (d-- > 0) {
        at += (int64_t)(index % (uint64_t)t->q->dims[d]) * t->q->steps[d];
        index /= (uint64_t)t->q->dims[d];
    }
    return at;
}

/* The offset of run `index` of an output. */
static int64_t run_at(const types_params *t, uint64_t index)
{
    return reduced_at(t, t->q->reduced - 1, index);
}

/* Accumulates a run for each of `width` adjacent outputs. */
static void take_beside(const types_params *t, const char *x, void *acc, uint64_t width)
{
    const uint64_t apart = t->apart, step = apart == 1 ? t->inner : 1;
    float wide[ONXI_HALVES];
    if (!t->is_half) {
        t->fold->rows(x, step, apart, t->count, acc, width);
    } else if (apart != 1) { /* short lines: all of them fit into one stretch */
        half_widen(t->half, (const uint16_t *)(const void *)x, wide, width * apart);
        t->fold->rows(wide, step, apart, t->count, acc, width);
    } else {
        for (uint64_t k = 0; k < t->count; k++) {
            half_widen(t->half, (const uint16_t *)(const void *)x + k * step, wide, width);
            t->fold->rows(wide, 0, 1, 1, acc, width);
        }
    }
}

static void take_lanes(const types_params *t, const char *x, uint64_t width, uint64_t n, void *acc)
{
    t->fold->rows(x, t->lanes, 1, n / t->lanes, acc, t->lanes);
    if (n % t->lanes)
        t->fold->rows(x + n / t->lanes * t->lanes * width, 0, 1, 1, acc, n % t->lanes);
}

/* Accumulates a line for an output. */
static void take_line(const types_params *t, const char *x, void *acc)
{
    float wide[ONXI_HALVES];
    if (!t->is_half) {
        take_lanes(t, x, t->width, t->count, acc);
        return;
    }
    for (uint64_t i = 0, m; i < t->count; i += m) {
        m = half_stretch(t->count - i);
        half_widen(t->half, (const uint16_t *)(const void *)x + i, wide, m);
        take_lanes(t, (const char *)wide, sizeof *wide, m, acc);
    }
}

/* Accumulates all lines of an output: one accumulator for each of their elements. */
static void take_block(const types_params *t, const char *x, void *acc)
{
    const uint32_t d = t->q->reduced - 2;
    const uint64_t beside = (uint64_t)t->q->dims[d], step = (uint64_t)t->q->steps[d];
    const uint64_t blocks = t->q->count / (t->count * beside);
    float wide[ONXI_HALVES];
    for (uint64_t i = 0; i < blocks; i++) {
        const char *from = x + reduced_at(t, d, i) * (int64_t)t->width;
        if (!t->is_half)
            t->fold->rows(from, step, 1, beside, acc, t->count);
        for (uint64_t k = 0; t->is_half && k < beside; k++) {
            half_widen(t->half, (const uint16_t *)(const void *)from + k * step, wide, t->count);
            t->fold->rows(wide, 0, 1, 1, acc, t->count);
        }
    }
}

static void find_beside(const types_params *t, const char *x, const void *best, int64_t *at, uint64_t width)
{
    const uint64_t apart = t->apart, step = apart == 1 ? t->inner : 1;
    const bool last = t->q->last_index;
    float wide[ONXI_HALVES];
    if (!t->is_half) {
        t->fold->find(x, step, apart, t->count, best, last, at, width);
    } else if (apart != 1) {
        half_widen(t->half, (const uint16_t *)(const void *)x, wide, width * apart);
        t->fold->find(wide, step, apart, t->count, best, last, at, width);
    } else {
        const float *most = best;
        for (uint64_t n = 0; n < t->count; n++) {
            const uint64_t k = last ? n : t->count - 1 - n;
            half_widen(t->half, (const uint16_t *)(const void *)x + k * step, wide, width);
            for (uint64_t i = 0; i < width; i++)
                if (wide[i] == most[i] || (wide[i] != wide[i] && most[i] != most[i]))
                    at[i] = (int64_t)k;
        }
    }
}

static int64_t find_along(const types_params *t, const char *x, const void *best)
{
    const bool last = t->q->last_index;
    const uint64_t n = t->count, stretches = (n + ONXI_HALVES - 1) / ONXI_HALVES;
    float wide[ONXI_HALVES];
    if (!t->is_half)
        return (int64_t)t->fold->find_in_line(x, n, best, last);
    for (uint64_t i = 0; i < stretches; i++) {
        const uint64_t from = (last ? stretches - 1 - i : i) * ONXI_HALVES, m = half_stretch(n - from);
        half_widen(t->half, (const uint16_t *)(const void *)x + from, wide, m);
        const uint64_t at = t->fold->find_in_line(wide, m, best, last);
        if (at < m)
            return (int64_t)(from + at);
    }
    return 0;
}

static double finish(onxi_reduce_kind kind, double sum, uint64_t count)
{
    return kind == ONXI_REDUCE_MEAN      ? sum / (double)count
           : kind == ONXI_REDUCE_L2      ? sqrt(sum)
           : kind == ONXI_REDUCE_LOG_SUM ? log(sum)
                                         : sum;
}

/* Converts the accumulators of adjacent outputs to results. */
static void put(const types_params *t, const onx_value *y, char *to, void *acc, uint64_t n)
{
    float rounded[ROW_BYTES / sizeof(float)], *floats = acc;
    double *sums = acc;
    const onxi_reduce_kind kind = t->q->kind;
    if (!t->fold->real && !t->is_half) {
        memcpy(to, acc, n * t->fold->width);
        return;
    }
    if (t->fold->real) {
        if (kind == ONXI_REDUCE_MEAN || kind == ONXI_REDUCE_L2 || kind == ONXI_REDUCE_LOG_SUM)
            for (uint64_t i = 0; i < n; i++)
                sums[i] = finish(kind, sums[i], t->q->count);
        if (!t->is_half) {
            onx_convert((onx_dtype)y->dtype, to, ONX_DOUBLE, sums, n, true);
            return;
        }
        floats = rounded;
        half_odd(sums, floats, n);
    }
    half_narrow(t->half, floats, (uint16_t *)(void *)to, n);
}

/* Logarithms of sums for `width` adjacent outputs, whose maxima are at `best`. */
static void put_exps_beside(const types_params *t, const onx_value *y, const char *data, char *to, const void *best,
                            uint64_t width)
{
    const uint64_t step = t->apart == 1 ? t->inner : 1, runs = t->q->count / t->count;
    double most[EXPS] = { 0 }, x[EXPS] = { 0 }, sum[EXPS] = { 0 };
    to_doubles(y->dtype, best, 1, width, most);
    for (uint64_t r = 0; r < runs; r++) {
        const char *from = data + run_at(t, r) * (int64_t)t->width;
        for (uint64_t k = 0; k < t->count; k++) {
            to_doubles(y->dtype, from + k * step * t->width, t->apart, width, x);
            add_exps(x, most, sum);
        }
    }
    for (uint64_t i = 0; i < width; i++)
        sum[i] = log_of_exps(sum[i], most[i]);
    onx_convert((onx_dtype)y->dtype, to, ONX_DOUBLE, sum, width, true);
}

/* The same for an output that is a line. */
static void put_exps_of_line(const types_params *t, const onx_value *y, const char *data, char *to, const void *best)
{
    const uint64_t runs = t->q->count / t->count;
    double most[EXPS], x[EXPS], sum[EXPS] = { 0 };
    to_doubles(y->dtype, best, 1, 1, most);
    for (uint64_t i = 1; i < EXPS; i++)
        most[i] = most[0];
    for (uint64_t r = 0; r < runs; r++) {
        const char *from = data + run_at(t, r) * (int64_t)t->width;
        for (uint64_t k = 0, n; k < t->count; k += n) {
            n = t->count - k < EXPS ? t->count - k : EXPS;
            to_doubles(y->dtype, from + k * t->width, 1, n, x);
            for (uint64_t i = n; i < EXPS; i++)
                x[i] = -(double)INFINITY;
            add_exps(x, most, sum);
        }
    }
    for (uint64_t n = EXPS / 2; n; n /= 2)
        for (uint64_t i = 0; i < n; i++)
            sum[i] += sum[i + n];
    sum[0] = log_of_exps(sum[0], most[0]);
    onx_convert((onx_dtype)y->dtype, to, ONX_DOUBLE, sum, 1, true);
}

/* Computes outputs out .. out+width-1, the first of which begins at element `at`, one run of them after the other. */
static void run_beside(const types_params *t, const onx_value *x, const onx_value *y, uint64_t out, int64_t at,
                       uint64_t width)
{
    _Alignas(64) char acc[ROW_BYTES];
    const char *data = (const char *)x->data + at * (int64_t)t->width;
    const uint64_t runs = t->q->count / t->count;
    t->fold->start(acc, width);
    for (uint64_t r = 0; r < runs; r++)
        take_beside(t, data + run_at(t, r) * (int64_t)t->width, acc, width);
    if (t->is_arg)
        find_beside(t, data, acc, (int64_t *)y->data + out, width);
    else if (t->q->kind == ONXI_REDUCE_LOG_SUM_EXP)
        put_exps_beside(t, y, data, (char *)y->data + out * t->width, acc, width);
    else
        put(t, y, (char *)y->data + out * t->width, acc, width);
}

static void run_line(const types_params *t, const onx_value *x, const onx_value *y, uint64_t row)
{
    _Alignas(64) char acc[ROW_BYTES];
    const char *data = (const char *)x->data + outer_at(t, row) * (int64_t)t->width;
    const uint64_t runs = t->q->count / t->count;
    t->fold->start(acc, t->lanes);
    if (t->block)
        take_block(t, data, acc);
    for (uint64_t r = 0; !t->block && r < runs; r++)
        take_line(t, data + run_at(t, r) * (int64_t)t->width, acc);
    t->fold->combine(acc, t->lanes);
    if (t->is_arg)
        ((int64_t *)y->data)[row] = find_along(t, data, acc);
    else if (t->q->kind == ONXI_REDUCE_LOG_SUM_EXP)
        put_exps_of_line(t, y, data, (char *)y->data + row * t->width, acc);
    else
        put(t, y, (char *)y->data + row * t->width, acc, 1);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const types_params *t = work->params;
    const onx_value *x = work->inputs[0], *y = work->outputs[0];
    const uint64_t blocks = (t->inner + t->row - 1) / t->row;
    for (uint64_t row = first, n = 1; row < last; row += n) {
        if (t->lanes) {
            run_line(t, x, y, row);
        } else if (t->apart > 1) {
            n = last - row < t->row ? last - row : t->row;
            run_beside(t, x, y, row, (int64_t)(row * t->apart), n);
        } else {
            const uint64_t from = row % blocks * t->row, left = t->inner - from;
            run_beside(t, x, y, row / blocks * t->inner + from, outer_at(t, row / blocks) + (int64_t)from,
                       left < t->row ? left : t->row);
        }
    }
    return ONX_OK;
}

#define WRAPS                                                                                                          \
    (ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_UINT32) | ONX_DTYPE_BIT(ONX_INT64) | ONX_DTYPE_BIT(ONX_UINT64))
#define ROW_OF(name, types, body_, prepare_, how)                                                                      \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = types, .preference = 2, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,          \
        .flags = how, .body = body_, .prepare = prepare_, .run = run                                                   \
    }
#define ROW(name, types, kind)                                                                                         \
    ROW_OF(name, types, &(const onxi_reduce_kind){ ONXI_REDUCE_##kind }, prepare, ONXI_KERNEL_LINES)
#define ARG(name, max)                                                                                                 \
    ROW_OF(name, SHORT_ARG ? ONXI_NUMBERS : ONXI_NUMBERS & ~ONXI_F32, &(const bool){ max }, prepare_arg, 0)
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_reduce_types)[] = {
    ROW("ReduceSum", ONXI_FLOATS | WRAPS, SUM),
    ROW("ReduceMean", ONXI_FLOATS | WRAPS, MEAN),
    ROW("ReduceProd", ONXI_FLOATS | WRAPS, PROD),
    ROW("ReduceMax", ONXI_NUMBERS, MAX),
    ROW("ReduceMin", ONXI_NUMBERS, MIN),
    ROW("ReduceL1", ONXI_FLOATS | WRAPS, L1),
    ROW("ReduceL2", ONXI_FLOATS | WRAPS, L2),
    ROW("ReduceLogSum", ONXI_FLOATS | WRAPS, LOG_SUM),
    ROW("ReduceLogSumExp", WRAPS | ONX_DTYPE_BIT(ONX_DOUBLE), LOG_SUM_EXP),
    ROW("ReduceSumSquare", ONXI_FLOATS | WRAPS, SUM_SQUARE),
    ARG("ArgMax", true),
    ARG("ArgMin", false),
    { 0 }
};
#endif
