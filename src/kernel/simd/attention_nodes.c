/* attention_nodes.c - attention that is written as separate nodes and combined by rewrite rules (rewrite_rules.def): y
 * = q * k, times scale, changed by Where and Add (the second one in a view with other dims), softmax over the last
 * axis, times v. q is [batch.., queries, size], k [batch.., size, keys], v [batch.., keys, v_size], each after the
 * transposition by its perm, and y is transposed by y_perm. The transpositions are done through strides; no element is
 * copied. */
#include "kernel/simd/attention.h"

#include <math.h>

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_KEEP, IN_HIDE, IN_MORE, IN_SHAPE };

typedef struct operand {
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX], steps[ONX_RANK_MAX];
} operand;

typedef struct nodes_params {
    uint32_t rank; /* rank of the batch dims */
    int64_t dims[ONX_RANK_MAX];
    operand q, k, v, y;           /* strides are 0 where the batch is broadcast */
    operand changes[CHANGES_MAX]; /* likewise; the batch may be divided into other dims */
    change_kind kinds[CHANGES_MAX];
    float numbers[CHANGES_MAX];
    uint8_t from[CHANGES_MAX]; /* input indices */
    uint32_t change_count;
    uint64_t batch, tiles, queries, keys, size, v_size;
    float scale;
} nodes_params;

/* The perm attribute; NULL: there is none. */
static const onxi_attr_value *perm_of(const onx_prepare *p, const char *name)
{
    return onxi_attrs_get(p->attrs, name, ONX_ATTR_INTS);
}

/* Describes the value as transposed by the attribute. */
static bool transposed(const onx_prepare *p, const onx_value *v, const char *perm, operand *out)
{
    const onxi_attr_value *a = perm_of(p, perm);
    int64_t steps[ONX_RANK_MAX];
    uint64_t seen = 0;
    if (!v || v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT || v->rank < 2 || (a && a->count != v->rank))
        return false;
    onxi_strides(v, steps);
    out->rank = v->rank;
    for (uint32_t d = 0; d < v->rank; d++) {
        const int64_t from = a ? ((const int64_t *)a->list)[d] : d;
        if (from < 0 || from >= v->rank || seen & UINT64_C(1) << from)
            return false;
        seen |= UINT64_C(1) << from;
        out->dims[d] = v->dims[from];
        out->steps[d] = steps[from];
    }
    return true;
}

/* Broadcasts over the batch where dims are 1. */
static bool repeats(operand *o, uint32_t rank, const int64_t *dims)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (o->dims[d] != 1 && o->dims[d] != dims[d])
            return false;
        if (o->dims[d] == 1)
            o->steps[d] = 0;
    }
    return true;
}

/* The dims of the scores in the view for the second change. */
static bool read_shape(const onx_value *v, const nodes_params *q, const int64_t *scores, uint32_t *rank, int64_t *full)
{
    uint64_t known = 1, total = q->batch * q->queries * q->keys;
    int open = -1;
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_INT64 || !v->data || v->rank != 1 || v->count < 2 ||
        v->count > ONX_RANK_MAX)
        return false;
    *rank = (uint32_t)v->count;
    for (uint32_t d = 0; d < *rank; d++) {
        full[d] = ((const int64_t *)v->data)[d];
        if (full[d] == 0 && d < q->rank + 2)
            full[d] = scores[d];
        if (full[d] == -1 && open < 0)
            open = (int)d;
        else if (full[d] < 1 || !onxi_mul_u64(known, (uint64_t)full[d], &known))
            return false;
    }
    if (open >= 0)
        full[open] = (int64_t)(total / known);
    return (open >= 0 ? total % known == 0 : total == known) && full[*rank - 1] == (int64_t)q->keys &&
           full[*rank - 2] == (int64_t)q->queries;
}

/* The dims are broadcast to [batch.., queries, keys] from the last on. */
static bool add_change(const onx_prepare *p, nodes_params *q, uint32_t input, change_kind kind, float number)
{
    const onx_value *v = onxi_operand(p->input_count, p->inputs, input);
    const onx_value *shape = input == IN_MORE ? onxi_operand(p->input_count, p->inputs, IN_SHAPE) : NULL;
    operand *o = &q->changes[q->change_count];
    int64_t full[ONX_RANK_MAX], steps[ONX_RANK_MAX];
    if (!v)
        return true;
    o->rank = q->rank + 2;
    onxi_copy_dims(full, q->dims, q->rank);
    full[q->rank] = (int64_t)q->queries;
    full[q->rank + 1] = (int64_t)q->keys;
    if (shape) {
        int64_t scores[ONX_RANK_MAX];
        onxi_copy_dims(scores, full, o->rank);
        if (!read_shape(shape, q, scores, &o->rank, full))
            return false;
    }
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != (kind == CHANGE_ADD ? ONX_FLOAT : ONX_BOOL) || v->rank > o->rank)
        return false;
    onxi_strides(v, steps);
    for (uint32_t d = 0; d < o->rank; d++) {
        const bool there = d + v->rank >= o->rank;
        const int64_t dim = there ? v->dims[d + v->rank - o->rank] : 1;
        if (dim != 1 && dim != full[d])
            return false;
        o->dims[d] = full[d];
        o->steps[d] = dim == 1 ? 0 : steps[d + v->rank - o->rank];
    }
    q->kinds[q->change_count] = kind;
    q->numbers[q->change_count] = number;
    q->from[q->change_count++] = (uint8_t)input;
    return true;
}

/* Describes all operands but y. */
static bool read_nodes(const onx_prepare *p, nodes_params *q)
{
    if (p->input_count < IN_MASK || !transposed(p, p->inputs[IN_Q], "q_perm", &q->q) ||
        !transposed(p, p->inputs[IN_K], "k_perm", &q->k) || !transposed(p, p->inputs[IN_V], "v_perm", &q->v) ||
        q->q.rank != q->k.rank || q->q.rank != q->v.rank)
        return false;
    q->rank = q->q.rank - 2;
    q->queries = (uint64_t)q->q.dims[q->rank];
    q->size = (uint64_t)q->q.dims[q->rank + 1];
    q->keys = (uint64_t)q->k.dims[q->rank + 1];
    q->v_size = (uint64_t)q->v.dims[q->rank + 1];
    if (q->k.dims[q->rank] != (int64_t)q->size || q->v.dims[q->rank] != (int64_t)q->keys || !q->keys || !q->size)
        return false;
    q->batch = 1;
    for (uint32_t d = 0; d < q->rank; d++) {
        const int64_t k = q->k.dims[d];
        q->dims[d] = q->q.dims[d] != 1 ? q->q.dims[d] : k; /* v must add no batch dims */
        if (!onxi_mul_u64(q->batch, (uint64_t)q->dims[d], &q->batch))
            return false;
    }
    q->scale = onxi_attrs_float(p->attrs, "scale");
    return repeats(&q->q, q->rank, q->dims) && repeats(&q->k, q->rank, q->dims) && repeats(&q->v, q->rank, q->dims) &&
           add_change(p, q, IN_KEEP, CHANGE_KEEP, onxi_attrs_float(p->attrs, "keep_number")) &&
           add_change(p, q, IN_HIDE, CHANGE_HIDE, onxi_attrs_float(p->attrs, "hide_number")) &&
           add_change(p, q, IN_MASK, CHANGE_ADD, 0) && add_change(p, q, IN_MORE, CHANGE_ADD, 0);
}

static onx_status nodes_types(onx_prepare *p)
{
    const onxi_attr_value *perm = perm_of(p, "y_perm");
    nodes_params q = { 0 };
    int64_t dims[ONX_RANK_MAX], out[ONX_RANK_MAX];
    if (!read_nodes(p, &q) || (perm && perm->count != q.rank + 2))
        return ONX_OK; /* no type: the op cannot replace the nodes */
    onxi_copy_dims(dims, q.dims, q.rank);
    dims[q.rank] = (int64_t)q.queries;
    dims[q.rank + 1] = (int64_t)q.v_size;
    for (uint32_t d = 0; d < q.rank + 2; d++) {
        const int64_t from = perm ? ((const int64_t *)perm->list)[d] : d;
        if (from < 0 || from >= q.rank + 2)
            return ONX_OK;
        out[d] = dims[from];
    }
    return onx_prepare_output(p, 0, ONX_FLOAT, q.rank + 2, out);
}

static onx_status nodes_prepare(onx_prepare *p)
{
    const onxi_attr_value *perm = perm_of(p, "y_perm");
    nodes_params *q = ONXI_NEW(p->arena, nodes_params);
    const onx_value *y = p->outputs[0];
    int64_t steps[ONX_RANK_MAX];
    if (!q)
        return ONX_E_MEMORY;
    if (!y || !read_nodes(p, q))
        return ONX_E_UNSUPPORTED;
    onxi_strides(y, steps);
    for (uint32_t d = 0; d < y->rank; d++)
        q->y.steps[perm ? ((const int64_t *)perm->list)[d] : d] = steps[d];
    q->tiles = (q->queries + QUERIES_PIECE - 1) / QUERIES_PIECE;
    p->rows = q->batch * q->tiles;
    p->params = q;
    return job_settle(p, q->size, q->v_size, q->keys);
}

static const float *batch_of(const operand *o, const nodes_params *q, const onx_value *v, const uint64_t *at)
{
    const float *from = v->data;
    for (uint32_t d = 0; d < q->rank; d++)
        from += (int64_t)at[d] * o->steps[d];
    return from;
}

static void run_nodes_tile(onx_work *work, const nodes_params *q, uint64_t batch, uint64_t tile)
{
    uint64_t at[ONX_RANK_MAX] = { 0 }, rest = batch;
    for (uint32_t d = q->rank; d-- > 0; rest /= (uint64_t)q->dims[d])
        at[d] = rest % (uint64_t)q->dims[d];
    const uint64_t first = tile * QUERIES_PIECE;
    const int64_t row = (int64_t)first;
    const uint32_t r = q->rank;
    attention_job j = { .q = batch_of(&q->q, q, work->inputs[IN_Q], at) + row * q->q.steps[r],
                        .q_row = q->q.steps[r],
                        .q_col = q->q.steps[r + 1],
                        .y_row = q->y.steps[r],
                        .y_col = q->y.steps[r + 1],
                        .first = first,
                        .rows = q->queries - first < QUERIES_PIECE ? q->queries - first : QUERIES_PIECE,
                        .size = q->size,
                        .v_size = q->v_size,
                        .query_scale = 1,
                        .scale = q->scale,
                        .as_nodes = true,
                        .to = q->keys,
                        .memory = work->thread_workspace };
    j.y = (float *)(uintptr_t)batch_of(&q->y, q, work->outputs[0], at) + row * j.y_row;
    j.keys[1] = (attention_keys){ batch_of(&q->k, q, work->inputs[IN_K], at),
                                  batch_of(&q->v, q, work->inputs[IN_V], at),
                                  q->k.steps[r + 1],
                                  q->k.steps[r],
                                  q->v.steps[r],
                                  q->v.steps[r + 1],
                                  q->keys,
                                  0 };
    for (; j.change_count < q->change_count; j.change_count++) {
        const operand *o = &q->changes[j.change_count];
        const onx_value *v = work->inputs[q->from[j.change_count]];
        const uint32_t last = o->rank - 2;
        int64_t offset = 0;
        uint64_t left = batch;
        for (uint32_t d = last; d-- > 0; left /= (uint64_t)o->dims[d])
            offset += (int64_t)(left % (uint64_t)o->dims[d]) * o->steps[d];
        j.changes[j.change_count] = (change){ .kind = q->kinds[j.change_count],
                                              .data = (const char *)v->data + offset * (v->dtype == ONX_BOOL ? 1 : 4),
                                              .row = o->steps[last],
                                              .col = o->steps[last + 1],
                                              .columns = q->keys,
                                              .number = q->numbers[j.change_count] };
    }
    ONXI_LEVELED(onxi_attention_job)(&j);
}

static onx_status nodes_run(onx_work *work, uint64_t first, uint64_t last)
{
    const nodes_params *q = work->params;
    for (uint64_t i = first; i < last; i++)
        run_nodes_tile(work, q, i / q->tiles, i % q->tiles);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_attention_nodes)[] = {
    { .op = "Attention",
      .domain = "onx",
      .since = 1,
      .dtypes = ONXI_F32,
      .isa = ONXI_LEVEL,
      .variant = ONXI_VARIANT,
      .prepare = nodes_prepare,
      .run = nodes_run,
      .types = nodes_types },
    { 0 },
};
