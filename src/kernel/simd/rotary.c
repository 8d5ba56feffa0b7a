/* rotary.c - rotary embedding found by rewrite rules: y = x * cos + rotated x * sin. Rotated x has the halves of each
 * line, or the elements of each pair, exchanged, with the sign of the second ones changed. */
#include "kernel/core/loops.h"
#include "kernel/simd/simd.h"

enum { IN_X, IN_COS, IN_SIN };

typedef struct table { /* of cosines, or of sines */
    int64_t steps[ONX_RANK_MAX];
    bool half; /* one element per pair of a line */
} table;

typedef struct rotary {
    uint32_t rank; /* number of axes of lines */
    int64_t dims[ONX_RANK_MAX], steps[ONX_RANK_MAX];
    uint64_t half; /* half of a line */
    table tables[2];
    bool pairs;
} rotary;

/* Describes how each line of the result finds its elements in a table broadcast to it. */
static bool read_table(const onx_value *v, const rotary *q, table *out)
{
    if (!v || v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT || !v->rank || v->rank > q->rank + 1)
        return false;
    const int64_t width = v->dims[v->rank - 1];
    int64_t step = width;
    out->half = width == (int64_t)q->half;
    if (!out->half && width != 2 * (int64_t)q->half)
        return false;
    for (uint32_t d = 0; d < q->rank; d++)
        out->steps[d] = 0;
    for (uint32_t i = v->rank - 1; i-- > 0;) {
        const uint32_t d = q->rank - (v->rank - 1) + i;
        if (v->dims[i] != 1 && v->dims[i] != q->dims[d])
            return false;
        out->steps[d] = v->dims[i] == 1 ? 0 : step;
        step *= v->dims[i];
    }
    return true;
}

/* Describes the lines of x in the order of the result; `perm` keeps the last axis. */
static bool read_lines(const onx_prepare *p, const onx_value *x, rotary *q)
{
    const onxi_attr_value *perm = onxi_attrs_get(p->attrs, "perm", ONX_ATTR_INTS);
    int64_t steps[ONX_RANK_MAX];
    uint64_t seen = 0;
    if (!x || x->kind != ONX_VALUE_TENSOR || x->dtype != ONX_FLOAT || !x->rank || x->dims[x->rank - 1] < 2 ||
        x->dims[x->rank - 1] % 2 || (perm && perm->count != x->rank))
        return false;
    onxi_strides(x, steps);
    q->rank = x->rank - 1;
    q->half = (uint64_t)x->dims[x->rank - 1] / 2;
    for (uint32_t d = 0; d < q->rank; d++) {
        const int64_t from = perm ? ((const int64_t *)perm->list)[d] : d;
        if (from < 0 || from >= q->rank || seen & UINT64_C(1) << from)
            return false;
        seen |= UINT64_C(1) << from;
        q->dims[d] = x->dims[from];
        q->steps[d] = steps[from];
    }
    return !perm || ((const int64_t *)perm->list)[q->rank] == q->rank;
}

static bool read_operands(const onx_prepare *p, rotary *q)
{
    q->pairs = onx_prepare_is_set(p, "interleaved");
    return p->input_count == 3 && read_lines(p, p->inputs[IN_X], q) &&
           read_table(p->inputs[IN_COS], q, &q->tables[0]) && read_table(p->inputs[IN_SIN], q, &q->tables[1]) &&
           q->tables[0].half == q->tables[1].half;
}

static onx_status types(onx_prepare *p)
{
    rotary q;
    int64_t dims[ONX_RANK_MAX];
    if (!read_operands(p, &q))
        return ONX_OK; /* no type: the op cannot replace the nodes */
    onxi_copy_dims(dims, q.dims, q.rank);
    dims[q.rank] = 2 * (int64_t)q.half;
    return onx_prepare_output(p, 0, ONX_FLOAT, q.rank + 1, dims);
}

static onx_status prepare(onx_prepare *p)
{
    rotary *q = ONXI_NEW(p->arena, rotary);
    if (!q)
        return ONX_E_MEMORY;
    if (!p->outputs[0] || !read_operands(p, q))
        return ONX_E_UNSUPPORTED;
    p->params = q;
    p->rows = p->outputs[0]->count / (2 * q->half);
    p->grain = 2048 / q->half + 1;
    return ONX_OK;
}

/* ---- lines ---- */

static void turn_halves(const float *restrict x, const float *restrict c, const float *restrict s, float *restrict y,
                        uint64_t half, uint64_t second)
{
    for (uint64_t i = 0; i < half; i++) {
        y[i] = x[i] * c[i] - x[half + i] * s[i];
        y[half + i] = x[half + i] * c[second + i] + x[i] * s[second + i];
    }
}

static void turn_pairs(const float *restrict x, const float *restrict c, const float *restrict s, float *restrict y,
                       uint64_t half, bool each)
{
    for (uint64_t i = 0; i < half && each; i++) {
        y[2 * i] = x[2 * i] * c[i] - x[2 * i + 1] * s[i];
        y[2 * i + 1] = x[2 * i + 1] * c[i] + x[2 * i] * s[i];
    }
    for (uint64_t i = 0; i < half && !each; i++) {
        y[2 * i] = x[2 * i] * c[2 * i] - x[2 * i + 1] * s[2 * i];
        y[2 * i + 1] = x[2 * i + 1] * c[2 * i + 1] + x[2 * i] * s[2 * i + 1];
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const rotary *q = work->params;
    const float *x = work->inputs[IN_X]->data, *c = work->inputs[IN_COS]->data, *s = work->inputs[IN_SIN]->data;
    float *y = (float *)work->outputs[0]->data + first * 2 * q->half;
    int64_t at[ONX_RANK_MAX];
    uint64_t rest = first;
    for (uint32_t d = q->rank; d-- > 0; rest /= (uint64_t)q->dims[d])
        at[d] = (int64_t)(rest % (uint64_t)q->dims[d]);
    for (uint64_t row = first; row < last; row++, y += 2 * q->half) {
        int64_t from = 0, of[2] = { 0, 0 };
        for (uint32_t d = 0; d < q->rank; d++) {
            from += at[d] * q->steps[d];
            of[0] += at[d] * q->tables[0].steps[d];
            of[1] += at[d] * q->tables[1].steps[d];
        }
        if (q->pairs)
            turn_pairs(x + from, c + of[0], s + of[1], y, q->half, q->tables[0].half);
        else
            turn_halves(x + from, c + of[0], s + of[1], y, q->half, q->tables[0].half ? 0 : q->half);
        for (uint32_t d = q->rank; d-- > 0 && ++at[d] == q->dims[d];)
            at[d] = 0;
    }
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_rotary)[] = { { .op = "Rotary",
                                                                .domain = "onx",
                                                                .since = 1,
                                                                .dtypes = ONXI_F32,
                                                                .isa = ONXI_LEVEL,
                                                                .variant = ONXI_VARIANT,
                                                                .prepare = prepare,
                                                                .run = run,
                                                                .types = types },
                                                              { 0 } };
