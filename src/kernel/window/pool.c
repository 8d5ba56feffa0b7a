/* pool.c - MaxPool, AveragePool, LpPool and their global forms: one window at a time, clipped to the input. */
#include "kernel/core/pool.h"
#include "kernel/core/loops.h"

#include <math.h>

enum { POOL_MAX, POOL_AVERAGE, POOL_LP, TAPS = 64 /* between two questions whether to stop */ };

typedef struct pool_body {
    int kind;
    bool global;
} pool_body;

typedef struct pool_params {
    onxi_window window;
    const pool_body *body;
    void (*loop)(const struct pool_params *q, const void *x, void *y, int64_t *index, uint64_t plane, onxi_pace *pace);
    bool count_pads, count_beyond, column_major;
    double power;
    uint32_t width;
} pool_params;

/* A window: first tap inside the input and end of the taps inside, per axis, and the divisor of an average. */
typedef struct pool_place {
    int64_t first[ONX_RANK_MAX], last[ONX_RANK_MAX], origin[ONX_RANK_MAX];
    int64_t taps; /* number of taps inside the input */
    double divisor;
} pool_place;

static int64_t div_ceil(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

static void place_window(const pool_params *q, const int64_t *pos, pool_place *at)
{
    const onxi_window *w = &q->window;
    at->taps = 1;
    at->divisor = 1;
    for (uint32_t d = 0; d < w->spatial; d++) {
        int64_t origin = pos[d] * w->stride[d] - w->pad[d];
        at->origin[d] = origin;
        at->first[d] = div_ceil(-origin, w->dilation[d]);
        int64_t room = w->in[d] - origin; /* taps k with k * dilation < room are inside */
        int64_t last = div_ceil(room, w->dilation[d]);
        at->last[d] = last < w->kernel[d] ? last : w->kernel[d];
        int64_t inside = at->last[d] > at->first[d] ? at->last[d] - at->first[d] : 0;
        at->taps *= inside;
        /* Pads count, but not the positions that ceil_mode adds after them. */
        int64_t padded = div_ceil(w->in[d] + w->pad_end[d] - origin, w->dilation[d]);
        if (q->count_beyond)
            padded = w->kernel[d];
        at->divisor *= (double)(q->count_pads ? (padded < w->kernel[d] ? padded : w->kernel[d]) : inside);
    }
}

/* Visits the taps of a window; BODY uses the element v and its index `at` in the plane. */
#define WALK(T, C, LOAD, BODY)                                                                                         \
    if (place.taps) {                                                                                                  \
        int64_t tap[ONX_RANK_MAX];                                                                                     \
        for (uint32_t d = 0; d < w->spatial; d++)                                                                      \
            tap[d] = place.first[d];                                                                                   \
        for (int64_t t = 0; t < place.taps; t++) {                                                                     \
            if (t % TAPS == 0 && onxi_pace_stops(pace, 4 * TAPS))                                                      \
                return;                                                                                                \
            int64_t at = 0;                                                                                            \
            for (uint32_t d = 0; d < w->spatial; d++)                                                                  \
                at = at * w->in[d] + place.origin[d] + tap[d] * w->dilation[d];                                        \
            C v = (C)LOAD(x[at]);                                                                                      \
            BODY for (uint32_t d = w->spatial; d-- > 0;)                                                               \
            {                                                                                                          \
                if (++tap[d] < place.last[d])                                                                          \
                    break;                                                                                             \
                tap[d] = place.first[d];                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

#define EACH_OUTPUT(BODY)                                                                                              \
    int64_t pos[ONX_RANK_MAX] = { 0 };                                                                                 \
    for (uint64_t o = 0; o < w->out_size && !onxi_pace_stops(pace, 32); o++) {                                         \
        pool_place place;                                                                                              \
        place_window(q, pos, &place);                                                                                  \
        BODY for (uint32_t d = w->spatial; d-- > 0;)                                                                   \
        {                                                                                                              \
            if (++pos[d] < w->out[d])                                                                                  \
                break;                                                                                                 \
            pos[d] = 0;                                                                                                \
        }                                                                                                              \
    }

static int64_t column_major(const onxi_window *w, int64_t at)
{
    int64_t out = 0, coords[ONX_RANK_MAX];
    for (uint32_t d = w->spatial; d-- > 0;) {
        coords[d] = at % w->in[d];
        at /= w->in[d];
    }
    for (uint32_t d = w->spatial; d-- > 0;)
        out = out * w->in[d] + coords[d];
    return out;
}

#define MAX_LOOP(op, dt, T, C, M, L, S)                                                                                \
    static void op##_##dt(const pool_params *q, const void *px, void *py, int64_t *index, uint64_t plane,              \
                          onxi_pace *pace)                                                                             \
    {                                                                                                                  \
        const onxi_window *w = &q->window;                                                                             \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        EACH_OUTPUT({                                                                                                  \
            bool any = false;                                                                                          \
            C best = 0;                                                                                                \
            int64_t where = 0;                                                                                         \
            WALK(T, C, L, {                                                                                            \
                if (!any || v > best || (v != v && best == best)) {                                                    \
                    best = v;                                                                                          \
                    where = at;                                                                                        \
                    any = true;                                                                                        \
                }                                                                                                      \
            })                                                                                                         \
            if (y)                                                                                                     \
                y[o] = any ? (T)S(best) : lowest_##dt;                                                                 \
            if (index)                                                                                                 \
                index[o] = (int64_t)(plane * w->in_size) + (q->column_major ? column_major(w, where) : where);         \
        })                                                                                                             \
    }
static const float lowest_FLOAT = -INFINITY;
static const double lowest_DOUBLE = -(double)INFINITY;
static const uint16_t lowest_FLOAT16 = 0xfc00, lowest_BFLOAT16 = 0xff80;
static const int8_t lowest_INT8 = INT8_MIN;
static const uint8_t lowest_UINT8 = 0;
ONXI_EACH_FLOAT(MAX_LOOP, max)
MAX_LOOP(max, INT8, int8_t, int64_t, , ONXI_SAME, ONXI_SAME)
MAX_LOOP(max, UINT8, uint8_t, uint64_t, , ONXI_SAME, ONXI_SAME)

/* `step` adds v to `sum`, of type A; `result` computes the output from it. */
#define SUM_LOOP(op, dt, T, C, L, A, step, result)                                                                     \
    static void op##_##dt(const pool_params *q, const void *px, void *py, int64_t *index, uint64_t plane,              \
                          onxi_pace *pace)                                                                             \
    {                                                                                                                  \
        const onxi_window *w = &q->window;                                                                             \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        (void)index, (void)plane;                                                                                      \
        EACH_OUTPUT({                                                                                                  \
            A sum = 0;                                                                                                 \
            WALK(T, C, L, { step; })                                                                                   \
            y[o] = (T)(result);                                                                                        \
        })                                                                                                             \
    }
#define AVERAGE_LOOP(op, dt, T, C, M, L, S) SUM_LOOP(op, dt, T, C, L, C, sum += v, S(sum / (C)place.divisor))
/* The usual power of 2 needs no pow; the square of a float is exact in double. */
static double powered(const pool_params *q, double v)
{
    return q->power == 2 ? v * v : pow(fabs(v), q->power);
}

static double rooted(const pool_params *q, double sum)
{
    return q->power == 2 ? sqrt(sum) : pow(sum, 1.0 / q->power);
}

#define LP_LOOP(op, dt, T, C, M, L, S)                                                                                 \
    SUM_LOOP(op, dt, T, C, L, double, sum += powered(q, (double)v), S((C)rooted(q, sum)))
ONXI_EACH_FLOAT(AVERAGE_LOOP, average)
ONXI_EACH_FLOAT(LP_LOOP, lp)

typedef void (*pool_loop)(const pool_params *, const void *, void *, int64_t *, uint64_t, onxi_pace *);
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const pool_loop loops[][ONX_DTYPE_COUNT] = {
    [POOL_MAX] = { ONXI_EACH_FLOAT(ENTRY, max)[ONX_INT8] = max_INT8, [ONX_UINT8] = max_UINT8 },
    [POOL_AVERAGE] = { ONXI_EACH_FLOAT(ENTRY, average) },
    [POOL_LP] = { ONXI_EACH_FLOAT(ENTRY, lp) },
};

static onx_status pool_prepare(onx_prepare *p)
{
    const pool_body *body = p->kernel->body;
    const onx_value *x = p->inputs[0];
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    q->body = body;
    q->loop = loops[body->kind][x->dtype];
    if (!q->loop)
        return ONX_E_UNSUPPORTED;
    if (body->global) {
        if (x->rank < 2)
            return onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u, expected at least 2", x->rank);
        q->window = (onxi_window){
            .spatial = x->rank - 2, .batch = (uint64_t)x->dims[0], .channels = (uint64_t)x->dims[1], .out_size = 1
        };
        q->window.in_size = onxi_product(x->dims, 2, x->rank);
        for (uint32_t d = 0; d + 2 < x->rank; d++) {
            q->window.in[d] = q->window.kernel[d] = x->dims[d + 2];
            q->window.out[d] = q->window.stride[d] = q->window.dilation[d] = 1;
        }
    } else {
        ONX_TRY(onxi_window_make(p, NULL, &q->window));
    }
    q->count_pads = body->kind == POOL_AVERAGE && !body->global && onx_prepare_is_set(p, "count_include_pad");
    q->count_beyond = q->count_pads && onxi_pool_counts_beyond(p);
    q->column_major = body->kind == POOL_MAX && !body->global && onx_prepare_is_set(p, "storage_order");
    if (body->kind == POOL_LP)
        q->power = p->since < 2 ? (double)onx_prepare_float(p, "p") : (double)onx_prepare_int(p, "p");
    q->width = onx_dtype_bits(x->dtype) / 8;
    p->params = q;
    p->rows = q->window.batch * q->window.channels;
    p->grain = onxi_worth_a_thread(q->window.out_size * q->window.kernel_size * ONXI_COST_ELEMENT);
    return ONX_OK;
}

static onx_status pool_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    const onxi_window *w = &q->window;
    const char *x = work->inputs[0]->data;
    char *y = work->outputs[0] ? work->outputs[0]->data : NULL;
    onx_value *indices = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    onxi_pace pace = { .work = work };
    for (uint64_t plane = first; plane < last; plane++)
        q->loop(q, x + plane * w->in_size * q->width, y ? y + plane * w->out_size * q->width : NULL,
                indices ? (int64_t *)indices->data + plane * w->out_size : NULL, plane, &pace);
    return ONX_OK;
}

static const pool_body max_body = { POOL_MAX, false }, average_body = { POOL_AVERAGE, false },
                       lp_body = { POOL_LP, false };
static const pool_body global_max = { POOL_MAX, true }, global_average = { POOL_AVERAGE, true },
                       global_lp = { POOL_LP, true };

#define ROW(name, types, body_)                                                                                        \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = types, .body = &body_, .prepare = pool_prepare, .run = pool_run              \
    }

const onx_kernel onxi_kernels_pool[] = {
    ROW("MaxPool", ONXI_FLOATS | ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8), max_body),
    ROW("AveragePool", ONXI_FLOATS, average_body),
    ROW("LpPool", ONXI_FLOATS, lp_body),
    ROW("GlobalMaxPool", ONXI_FLOATS, global_max),
    ROW("GlobalAveragePool", ONXI_FLOATS, global_average),
    ROW("GlobalLpPool", ONXI_FLOATS, global_lp),
    { 0 }
};
