/* reduce.c - sums, means, extremes and norms over axes, and the indices of extremes. Each output element is accumulated
 * serially, in double for floats, so the bits do not depend on the number of threads. */
#include "kernel/core/reduce.h"
#include "kernel/core/blocked.h"
#include "kernel/core/loops.h"

#include <math.h>

/* Visits the elements that go into one output; BODY sees v and i. */
#define VISIT(T, LOAD, V, BODY)                                                                                        \
    int64_t pos[ONX_RANK_MAX] = { 0 };                                                                                 \
    const T *at = x;                                                                                                   \
    for (uint64_t i = 0; i < q->count; i++) {                                                                          \
        V v = (V)LOAD(*at);                                                                                            \
        BODY for (uint32_t d = q->reduced; d-- > 0;)                                                                   \
        {                                                                                                              \
            at += q->steps[d];                                                                                         \
            if (++pos[d] < q->dims[d])                                                                                 \
                break;                                                                                                 \
            at -= q->steps[d] * q->dims[d];                                                                            \
            pos[d] = 0;                                                                                                \
        }                                                                                                              \
    }

static double start_of(onxi_reduce_kind kind)
{
    return kind == ONXI_REDUCE_PROD  ? 1
           : kind == ONXI_REDUCE_MAX ? -(double)INFINITY
           : kind == ONXI_REDUCE_MIN ? (double)INFINITY
                                     : 0;
}

static double finish(onxi_reduce_kind kind, double acc, double best, uint64_t count)
{
    switch (kind) {
    case ONXI_REDUCE_MEAN:
        return acc / (double)count;
    case ONXI_REDUCE_L2:
        return sqrt(acc);
    case ONXI_REDUCE_LOG_SUM:
        return log(acc);
    case ONXI_REDUCE_LOG_SUM_EXP:
        return isinf(best) ? best : log(acc) + best;
    default:
        return acc;
    }
}

#define REDUCE_F(op, d, T, C, M, LOAD, STORE)                                                                          \
    static void op##_##d(const onxi_reduce_params *q, const void *px, void *py)                                        \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        double acc = start_of(q->kind), best = -(double)INFINITY;                                                      \
        if (q->kind == ONXI_REDUCE_LOG_SUM_EXP) { /* scaled by the largest element */                                  \
            VISIT(T, LOAD, double, { best = v > best || v != v ? v : best; })                                          \
        }                                                                                                              \
        VISIT(T, LOAD, double, {                                                                                       \
            switch (q->kind) {                                                                                         \
            case ONXI_REDUCE_PROD:                                                                                     \
                acc *= v;                                                                                              \
                break;                                                                                                 \
            case ONXI_REDUCE_MAX:                                                                                      \
                acc = v > acc || v != v ? v : acc;                                                                     \
                break;                                                                                                 \
            case ONXI_REDUCE_MIN:                                                                                      \
                acc = v < acc || v != v ? v : acc;                                                                     \
                break;                                                                                                 \
            case ONXI_REDUCE_L1:                                                                                       \
                acc += fabs(v);                                                                                        \
                break;                                                                                                 \
            case ONXI_REDUCE_L2:                                                                                       \
            case ONXI_REDUCE_SUM_SQUARE:                                                                               \
                acc += v * v;                                                                                          \
                break;                                                                                                 \
            case ONXI_REDUCE_LOG_SUM_EXP:                                                                              \
                acc += exp(v - best);                                                                                  \
                break;                                                                                                 \
            default:                                                                                                   \
                acc += v;                                                                                              \
                break;                                                                                                 \
            }                                                                                                          \
        })                                                                                                             \
        *(T *)py = (T)STORE((C)finish(q->kind, acc, best, q->count));                                                  \
    }

/* The least (or greatest) value of an integer type: the result of a maximum (or minimum) over no elements. */
static uint64_t end_of_range(int dtype, bool least)
{
    const unsigned bits = onx_dtype_bits(dtype);
    const uint64_t all = dtype == ONX_BOOL ? 1 : bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    if (onx_dtype_class_of(dtype) != ONX_CLASS_SIGNED)
        return least ? 0 : all;
    return least ? ~(all >> 1) : all >> 1;
}

/* Integers: sums and products wrap. Roots and logarithms are computed in double and truncated. */
#define REDUCE_I(op, dt, T, C, M, LOAD, STORE)                                                                         \
    static void op##_##dt(const onxi_reduce_params *q, const void *px, void *py)                                       \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        uint64_t acc = q->kind == ONXI_REDUCE_PROD ? 1 : 0;                                                            \
        double real = 0, most = 0; /* of a sum of powers, whose largest exponent is `most` */                          \
        C best = 0;                                                                                                    \
        VISIT(T, LOAD, C, {                                                                                            \
            uint64_t u = (uint64_t)v;                                                                                  \
            switch (q->kind) {                                                                                         \
            case ONXI_REDUCE_PROD:                                                                                     \
                acc *= u;                                                                                              \
                break;                                                                                                 \
            case ONXI_REDUCE_MAX:                                                                                      \
                best = !i || v > best ? v : best;                                                                      \
                break;                                                                                                 \
            case ONXI_REDUCE_MIN:                                                                                      \
                best = !i || v < best ? v : best;                                                                      \
                break;                                                                                                 \
            case ONXI_REDUCE_L1:                                                                                       \
                acc += v < (C)1 ? 0 - u : u;                                                                           \
                break;                                                                                                 \
            case ONXI_REDUCE_L2:                                                                                       \
            case ONXI_REDUCE_SUM_SQUARE:                                                                               \
                acc += u * u;                                                                                          \
                real += (double)v * (double)v;                                                                         \
                break;                                                                                                 \
            case ONXI_REDUCE_LOG_SUM_EXP:                                                                              \
                real = !i ? 1 : (double)v > most ? real * exp(most - (double)v) + 1 : real + exp((double)v - most);    \
                most = !i || (double)v > most ? (double)v : most;                                                      \
                break;                                                                                                 \
            default:                                                                                                   \
                acc += u;                                                                                              \
                real += (double)v;                                                                                     \
                break;                                                                                                 \
            }                                                                                                          \
        })                                                                                                             \
        if (q->kind == ONXI_REDUCE_MAX || q->kind == ONXI_REDUCE_MIN) {                                                \
            const bool max = q->kind == ONXI_REDUCE_MAX;                                                               \
            *(T *)py = q->count ? (T)best : (T)end_of_range(ONX_##dt, max);                                            \
            return;                                                                                                    \
        }                                                                                                              \
        if (q->kind == ONXI_REDUCE_MEAN || q->kind == ONXI_REDUCE_L2 || q->kind == ONXI_REDUCE_LOG_SUM ||              \
            q->kind == ONXI_REDUCE_LOG_SUM_EXP) {                                                                      \
            double out = q->kind == ONXI_REDUCE_LOG_SUM_EXP ? log(real) + most : finish(q->kind, real, 0, q->count);   \
            onx_convert(ONX_##dt, py, ONX_DOUBLE, &out, 1, true);                                                      \
            return;                                                                                                    \
        }                                                                                                              \
        *(T *)py = (T)acc;                                                                                             \
    }
ONXI_EACH_FLOAT(REDUCE_F, reduce)
ONXI_EACH_SIGNED(REDUCE_I, reduce)
ONXI_EACH_UNSIGNED(REDUCE_I, reduce)
REDUCE_I(reduce, BOOL, uint8_t, uint64_t, , ONXI_SAME, ONXI_SAME)

/* NaN counts as the extreme, as in NumPy. */
#define ARG(op, d, T, C, M, LOAD, STORE)                                                                               \
    static void op##_##d(const onxi_reduce_params *q, const void *px, void *py)                                        \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        C best = 0;                                                                                                    \
        uint64_t where = 0;                                                                                            \
        VISIT(T, LOAD, C, {                                                                                            \
            bool better = (q->arg_max ? v > best : v < best) || (v != v && best == best);                              \
            bool same = v == best || (v != v && best != best);                                                         \
            if (!i || better || (q->last_index && same)) {                                                             \
                best = v;                                                                                              \
                where = i;                                                                                             \
            }                                                                                                          \
        })                                                                                                             \
        *(int64_t *)py = (int64_t)where;                                                                               \
    }
ONXI_EACH_FLOAT(ARG, arg)
ONXI_EACH_SIGNED(ARG, arg)
ONXI_EACH_UNSIGNED(ARG, arg)

#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
typedef void (*reduce_loop)(const onxi_reduce_params *, const void *, void *);
static const reduce_loop reduce_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, reduce)
                                                               ONXI_EACH_SIGNED(ENTRY, reduce)
                                                                   ONXI_EACH_UNSIGNED(ENTRY, reduce)[ONX_BOOL] =
                                                                       reduce_BOOL };
static const reduce_loop arg_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, arg) ONXI_EACH_SIGNED(ENTRY, arg)
                                                            ONXI_EACH_UNSIGNED(ENTRY, arg) };

static void split_dims(onxi_reduce_params *q, const onx_value *x, const bool *is_reduced)
{
    int64_t step = 1, steps[ONX_RANK_MAX];
    for (uint32_t d = x->rank; d-- > 0;) {
        steps[d] = step;
        step *= x->dims[d];
    }
    q->count = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (is_reduced[d]) {
            q->count *= (uint64_t)x->dims[d];
            q->dims[q->reduced] = x->dims[d];
            q->steps[q->reduced++] = steps[d];
        } else {
            q->kept_dims[q->kept] = x->dims[d];
            q->kept_steps[q->kept++] = steps[d];
        }
    }
}

/* The same for an image with blocked channels, whose memory has one more dim. False: the result has no such layout. */
static bool split_blocks(const onx_prepare *p, onxi_reduce_params *q, uint32_t block, const bool *is_reduced)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    bool reduced[ONX_RANK_MAX];
    int64_t dims[ONX_RANK_MAX];
    onx_value view;
    if (x->rank >= ONX_RANK_MAX || !onxi_blocked_view(x, x->rank, block, dims, &view))
        return false;
    memcpy(reduced, is_reduced, x->rank * sizeof *reduced);
    reduced[x->rank] = is_reduced[1];
    split_dims(q, &view, reduced);
    const uint64_t per_pixel = (uint64_t)x->dims[1] * (is_reduced[0] ? 1 : (uint64_t)x->dims[0]);
    if (is_reduced[1] || y->count == per_pixel) /* no channels, or one pixel: the result is row-major */
        return true;
    q->block = block;
    return y->rank == x->rank || !is_reduced[0]; /* channels must stay axis 1 */
}

/* Selects the loop for the type of the input. A row of work is an element of the output. */
static onx_status take_loop(onx_prepare *p, onxi_reduce_params *q, const reduce_loop *loops)
{
    const onx_dtype dtype = p->inputs[0]->dtype;
    q->loop = loops[dtype];
    q->width = onx_dtype_bits((int32_t)dtype) / 8;
    if (!q->loop)
        return ONX_E_UNSUPPORTED;
    p->params = q;
    p->rows = p->outputs[0]->count;
    p->grain = q->count ? 8192 / q->count + 1 : 1;
    return ONX_OK;
}

/* Reads the axes from input 1 (ReduceSum from version 13 on, the others from 18), else from the attribute; without
 * either, all axes. */
static onx_status read_axes(const onx_prepare *p, bool *is_reduced)
{
    const onx_value *x = p->inputs[0], *axes_in = onxi_operand(p->input_count, p->inputs, 1);
    uint32_t count = 0;
    const int64_t *axes = onx_prepare_ints(p, "axes", &count);
    if (axes_in) {
        if (axes_in->dtype != ONX_INT64 || axes_in->count > ONX_RANK_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "axes is not a list of int64 that is known in advance");
        axes = axes_in->data;
        count = (uint32_t)axes_in->count;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        ONX_TRY(onx_prepare_axis(p, axes[i], x->rank, &axis));
        if (is_reduced[axis])
            return onx_prepare_fail(p, ONX_E_INVALID, "axis %u is given twice", axis);
        is_reduced[axis] = true;
    }
    bool all = !count && !onx_prepare_is_set(p, "noop_with_empty_axes");
    for (uint32_t d = 0; d < x->rank; d++)
        is_reduced[d] |= all;
    return ONX_OK;
}

/* Global pools reduce the axes of space. */
static onx_status take_axes(const onx_prepare *p, onxi_reduce_params *q)
{
    const onx_value *x = p->inputs[0];
    bool *is_reduced = q->is_reduced;
    if (p->op != ONXI_ID_GlobalMaxPool && p->op != ONXI_ID_GlobalAveragePool)
        ONX_TRY(read_axes(p, is_reduced));
    else
        for (uint32_t d = 2; d < x->rank; d++)
            is_reduced[d] = true;
    const uint32_t block = onxi_blocked_of(x);
    if (!block)
        split_dims(q, x, is_reduced);
    return !block || split_blocks(p, q, block, is_reduced) ? ONX_OK : ONX_E_UNSUPPORTED;
}

onx_status onxi_reduce_prepare(onx_prepare *p)
{
    const onx_value *axes = onxi_operand(p->input_count, p->inputs, 1);
    onxi_reduce_params *q = ONXI_NEW(p->arena, onxi_reduce_params);
    if (!q)
        return ONX_E_MEMORY;
    q->kind = *(const onxi_reduce_kind *)p->kernel->body;
    if (axes && axes->count && !axes->data) { /* as many as the input has: the shape is known without them */
        q->kept_prepare = onxi_prepare_keep(p);
        if (!q->kept_prepare)
            return ONX_E_MEMORY;
    } else {
        ONX_TRY(take_axes(p, q));
    }
    return take_loop(p, q, reduce_loops);
}

onx_status onxi_arg_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onxi_reduce_params *q = ONXI_NEW(p->arena, onxi_reduce_params);
    uint32_t axis;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &axis));
    q->is_reduced[axis] = true;
    split_dims(q, x, q->is_reduced);
    q->arg_max = *(const bool *)p->kernel->body;
    q->last_index = onx_prepare_is_set(p, "select_last_index");
    return take_loop(p, q, arg_loops);
}

/* Determines the axes during the run, where they were not known while preparing. */
static onx_status axes_of_run(onx_work *work, const onxi_reduce_params *q, onxi_reduce_params *own)
{
    const onx_prepare here = onxi_prepare_again(q->kept_prepare, work);
    const uint64_t outputs = work->outputs[0]->count;
    uint64_t count;
    own->kind = q->kind;
    own->loop = q->loop;
    own->width = q->width;
    ONX_TRY(take_axes(&here, own));
    if (!onxi_dims_count(own->kept, own->kept_dims, &count) || count != outputs)
        return onx_work_fail(work, ONX_E_INVALID, "reducing the axes gives %llu elements, the output has %llu",
                             (unsigned long long)count, (unsigned long long)outputs);
    return ONX_OK;
}

onx_status onxi_reduce_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_reduce_params *q = work->params;
    onxi_reduce_params own = { 0 };
    if (q->kept_prepare) {
        ONX_TRY(axes_of_run(work, q, &own));
        q = &own;
    }
    uint32_t out_width = onx_dtype_bits(work->outputs[0]->dtype) / 8;
    for (uint64_t row = first; row < last; row++) {
        uint64_t rest = row;
        int64_t at = 0;
        for (uint32_t d = q->kept; d-- > 0;) {
            at += (int64_t)(rest % (uint64_t)q->kept_dims[d]) * q->kept_steps[d];
            rest /= (uint64_t)q->kept_dims[d];
        }
        q->loop(q, (const char *)work->inputs[0]->data + at * q->width,
                (char *)work->outputs[0]->data + row * out_width);
    }
    return ONX_OK;
}

#define ROW(name, kind)                                                                                                \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_NUMBERS | ONX_DTYPE_BIT(ONX_BOOL),                                      \
        .body = &(const onxi_reduce_kind){ kind }, .prepare = onxi_reduce_prepare, .run = onxi_reduce_run              \
    }
#define ARG_ROW(name, max)                                                                                             \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_NUMBERS, .body = &(const bool){ max }, .prepare = onxi_arg_prepare,     \
        .run = onxi_reduce_run                                                                                         \
    }

const onx_kernel onxi_kernels_reduce[] = { ROW("ReduceSum", ONXI_REDUCE_SUM),
                                           ROW("ReduceMean", ONXI_REDUCE_MEAN),
                                           ROW("ReduceProd", ONXI_REDUCE_PROD),
                                           ROW("ReduceMax", ONXI_REDUCE_MAX),
                                           ROW("ReduceMin", ONXI_REDUCE_MIN),
                                           ROW("ReduceL1", ONXI_REDUCE_L1),
                                           ROW("ReduceL2", ONXI_REDUCE_L2),
                                           ROW("ReduceLogSum", ONXI_REDUCE_LOG_SUM),
                                           ROW("ReduceLogSumExp", ONXI_REDUCE_LOG_SUM_EXP),
                                           ROW("ReduceSumSquare", ONXI_REDUCE_SUM_SQUARE),
                                           ARG_ROW("ArgMax", true),
                                           ARG_ROW("ArgMin", false),
                                           { 0 } };
