/* cumulate.c - CumSum and CumProd along an axis, which is an input. Floats accumulate in double. */
#include "kernel/core/loops.h"

enum { WIDE = 128, PART = 8192 }; /* neighbouring columns that are processed together; elements of one column */

typedef struct cumulate_params {
    /* Known: the axis is a constant, so each index of the dims before it is a row of work. */
    bool exclusive, reverse, known;
} cumulate_params;

/* Accumulates `count` columns of `length` elements with stride `step`. */
typedef void (*cumulate_loop)(const void *x, void *y, int64_t count, int64_t length, int64_t step, bool product,
                              bool exclusive, onxi_pace *pace);

/* Sums of one column stay in a register; browsers keep them in memory, as their module has no room for more loops. */
#if ONXI_PLATFORM_ROOMY
#define ALONE(T, C, A, L, S, TAKE, SIGN)                                                                               \
    for (int64_t k = 0, at = 0, end; k < length && !onxi_pace_stops(pace, PART);) {                                    \
        end = length - k < PART ? length : k + PART;                                                                   \
        for (; k < end; k++, at += step) {                                                                             \
            const A before = sum[0];                                                                                   \
            sum[0] = TAKE(before, SIGN, (A)L(x[at]));                                                                  \
            y[at] = (T)S((C)(exclusive ? before : sum[0]));                                                            \
        }                                                                                                              \
    }
#define ONE_COLUMN(T, C, A, L, S, TAKE)                                                                                \
    if (count == 1 && product) {                                                                                       \
        ALONE(T, C, A, L, S, TAKE, *)                                                                                  \
        return;                                                                                                        \
    }                                                                                                                  \
    if (count == 1) {                                                                                                  \
        ALONE(T, C, A, L, S, TAKE, +)                                                                                  \
        return;                                                                                                        \
    }
#else
#define ONE_COLUMN(T, C, A, L, S, TAKE)
#endif
#define CUMULATE(op, d, T, C, A, L, S, TAKE)                                                                           \
    static void op##_##d(const void *px, void *py, int64_t count, int64_t length, int64_t step, bool product,          \
                         bool exclusive, onxi_pace *pace)                                                              \
    {                                                                                                                  \
        A sum[WIDE];                                                                                                   \
        const T *x = px;                                                                                               \
        T *y = py;                                                                                                     \
        for (int64_t i = 0; i < count; i++)                                                                            \
            sum[i] = (A)(product ? 1 : 0);                                                                             \
        ONE_COLUMN(T, C, A, L, S, TAKE)                                                                                \
        for (int64_t k = 0, at = 0; k < length && !onxi_pace_stops(pace, (uint64_t)count); k++, at += step)            \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                A before = sum[i];                                                                                     \
                sum[i] = product ? TAKE(before, *, (A)L(x[at + i])) : TAKE(before, +, (A)L(x[at + i]));                \
                y[at + i] = (T)S((C)(exclusive ? before : sum[i]));                                                    \
            }                                                                                                          \
    }
#define TAKE_FLOAT(a, sign, b)                 ((a)sign(b))
#define TAKE_WRAP(a, sign, b)                  ONXI_WRAP(uint64_t, a, sign, b)
#define CUMULATE_FLOAT(op, d, T, C, M, L, S)   CUMULATE(op, d, T, C, double, L, S, TAKE_FLOAT)
#define CUMULATE_INTEGER(op, d, T, C, M, L, S) CUMULATE(op, d, T, C, uint64_t, L, S, TAKE_WRAP)
ONXI_EACH_FLOAT(CUMULATE_FLOAT, cumulate)
ONXI_EACH_SIGNED(CUMULATE_INTEGER, cumulate)
ONXI_EACH_UNSIGNED(CUMULATE_INTEGER, cumulate)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const cumulate_loop loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, cumulate) ONXI_EACH_SIGNED(ENTRY, cumulate)
                                                          ONXI_EACH_UNSIGNED(ENTRY, cumulate) };

static onx_status cumulate_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *axis = p->inputs[1];
    cumulate_params *q = ONXI_NEW(p->arena, cumulate_params);
    uint32_t at = 0;
    if (!q)
        return ONX_E_MEMORY;
    if (axis->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "axis has %llu elements, expected one",
                                (unsigned long long)axis->count);
    q->exclusive = onx_prepare_int(p, "exclusive") != 0;
    q->reverse = onx_prepare_int(p, "reverse") != 0;
    q->known = axis->data != NULL;
    p->params = q;
    if (q->known) {
        ONX_TRY(onx_prepare_axis(p, onxi_index(axis, 0), x->rank, &at));
        uint64_t rows = onxi_product(x->dims, 0, at);
        p->rows = x->count ? rows : 0;
        p->grain = x->count ? ONXI_BLOCK / (x->count / rows) + 1 : 1;
    }
    return ONX_OK;
}

static onx_status cumulate_run(onx_work *work, uint64_t first, uint64_t last)
{
    const cumulate_params *q = work->params;
    const onx_value *x = work->inputs[0];
    uint32_t axis, size = onxi_element_size(x->dtype);
    bool product = work->prepared->kernel->body != NULL;
    ONX_TRY(onx_work_axis(work, onxi_index(work->inputs[1], 0), x->rank, &axis));
    if (!x->count)
        return ONX_OK;
    int64_t length = x->dims[axis], inner = (int64_t)onxi_product(x->dims, axis + 1, x->rank);
    if (!q->known) {
        first = 0;
        last = onxi_product(x->dims, 0, axis);
    }
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last && !onxi_pace_stops(&pace, 16); row++)
        for (int64_t i = 0; i < inner; i += WIDE) {
            int64_t at = (int64_t)row * length * inner + i + (q->reverse ? (length - 1) * inner : 0);
            loops[x->dtype]((const char *)x->data + at * size, (char *)work->outputs[0]->data + at * size,
                            inner - i < WIDE ? inner - i : WIDE, length, q->reverse ? -inner : inner, product,
                            q->exclusive, &pace);
        }
    return ONX_OK;
}

static const char is_product = 1;

const onx_kernel onxi_kernels_cumulate[] = {
    { .op = "CumSum", .since = 11, .dtypes = ONXI_NUMBERS, .prepare = cumulate_prepare, .run = cumulate_run },
    { .op = "CumProd",
      .since = 26,
      .dtypes = ONXI_NUMBERS,
      .body = &is_product,
      .prepare = cumulate_prepare,
      .run = cumulate_run },
    { 0 }
};
