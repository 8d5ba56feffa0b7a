/* softmax.c - Softmax, LogSoftmax and Hardmax: over one axis from version 13 on, before that over all axes from the
 * given one on. */
#include "kernel/core/loops.h"

#include <math.h>

#define LOOP(op, d, T, C, M, L, S)                                                                                     \
    static void op##_##d(const onxi_softmax_params *q, const void *px, void *py, int kind)                             \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        C best = (C)L(x[0]), sum = 0;                                                                                  \
        uint64_t at = 0;                                                                                               \
        for (uint64_t i = 1; i < q->count; i++) {                                                                      \
            C v = (C)L(x[i * q->inner]);                                                                               \
            if (v > best || (v != v && best == best)) {                                                                \
                best = v;                                                                                              \
                at = i;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        if (kind == ONXI_HARDMAX) {                                                                                    \
            for (uint64_t i = 0; i < q->count; i++)                                                                    \
                y[i * q->inner] = (T)S((C)(i == at));                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        for (uint64_t i = 0; i < q->count; i++)                                                                        \
            sum += exp##M((C)L(x[i * q->inner]) - best);                                                               \
        C log_sum = log##M(sum);                                                                                       \
        for (uint64_t i = 0; i < q->count; i++) {                                                                      \
            C v = (C)L(x[i * q->inner]) - best;                                                                        \
            y[i * q->inner] = (T)S(kind == ONXI_SOFTMAX ? exp##M(v) / sum : v - log_sum);                              \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(LOOP, softmax)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static void (*const loops[ONX_DTYPE_COUNT])(const onxi_softmax_params *, const void *, void *,
                                            int) = { ONXI_EACH_FLOAT(ENTRY, softmax) };

onx_status onxi_softmax_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    onxi_softmax_params *q = ONXI_NEW(p->arena, onxi_softmax_params);
    uint32_t axis = 0;
    if (!q)
        return ONX_E_MEMORY;
    int64_t given = onx_prepare_int(p, "axis");
    bool past = p->since < 13 && given == (int64_t)x->rank; /* axis == rank: a matrix of one column */
    if (past)
        axis = x->rank;
    else if (x->rank || (given != 0 && given != -1))
        ONX_TRY(onx_prepare_axis(p, given, x->rank, &axis));
    q->outer = onxi_product(x->dims, 0, axis);
    q->count = p->since >= 13 ? (x->rank ? (uint64_t)x->dims[axis] : 1) : onxi_product(x->dims, axis, x->rank);
    q->inner = p->since >= 13 && x->rank ? onxi_product(x->dims, axis + 1, x->rank) : 1;
    q->loop = loops[x->dtype];
    q->kind = *(const int *)p->kernel->body;
    q->width = onx_dtype_bits(x->dtype) / 8;
    q->lines.count = q->inner == 1 ? q->count : 0;
    p->params = q;
    p->rows = q->count ? q->outer * q->inner : 0;
    p->grain = q->count ? 4096 / q->count + 1 : 1;
    return ONX_OK;
}

void onxi_softmax_use(onx_prepare *p, void (*loop)(const onxi_softmax_params *q, const void *x, void *y, int kind),
                      void (*block)(const onxi_softmax_params *q, const void *x, void *y, uint64_t n), uint64_t columns)
{
    onxi_softmax_params *q = p->params;
    q->loop = loop;
    if (q->inner == 1 || !p->rows)
        return;
    q->block = block;
    q->columns = columns;
    p->rows = q->outer * ((q->inner + columns - 1) / columns);
    p->grain = 4096 / (q->count * (q->inner < columns ? q->inner : columns)) + 1;
}

onx_status onxi_softmax_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_softmax_params *q = work->params;
    const uint64_t columns = q->block ? q->columns : 1, blocks = (q->inner + columns - 1) / columns;
    for (uint64_t row = first; row < last; row++) {
        const uint64_t from = row % blocks * columns, left = q->inner - from;
        const uint64_t at = (row / blocks * q->count * q->inner + from) * q->width;
        const char *x = (const char *)work->inputs[0]->data + at;
        char *y = (char *)work->outputs[0]->data + at;
        if (q->block)
            q->block(q, x, y, left < columns ? left : columns);
        else
            q->loop(q, x, y, q->kind);
    }
    return ONX_OK;
}

static const int soft = ONXI_SOFTMAX, log_soft = ONXI_LOG_SOFTMAX, hard = ONXI_HARDMAX;
#define ROW(name, kind)                                                                                                \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_FLOATS, .flags = ONX_KERNEL_IN_PLACE | ONXI_KERNEL_LINES,               \
        .body = &kind, .prepare = onxi_softmax_prepare, .run = onxi_softmax_run                                        \
    }

const onx_kernel onxi_kernels_softmax[] = {
    ROW("Softmax", soft), ROW("LogSoftmax", log_soft), ROW("Hardmax", hard), { 0 }
};
