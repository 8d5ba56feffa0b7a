/* flex_attention.c - FlexAttention: attention with optional graphs that modify scores and probabilities. Without
 * graphs, tiles of queries are processed one by one as in Attention; with a graph, all scores are computed before it
 * runs. */
#include "kernel/core/attention.h"

#include <math.h>

enum { SCORE_MOD, PROB_MOD, MODS };

typedef struct flex_params {
    onxi_attention a;
    uint64_t tiles; /* tiles of queries per head */
    bool has[MODS];
    uint32_t graph[MODS];
    const onx_prepare *kept; /* for sizes known only while running */
} flex_params;

typedef struct flex_state {
    onx_ctx *cx;
    onx_value *scores, *changed; /* input and output of a graph */
    onx_value *memory;           /* workspace of a tile */
} flex_state;

/* ---- preparing ---- */

static onx_status flex_sizes(const onx_prepare *p, const onx_value *const *in, flex_params *q)
{
    onxi_attention *a = &q->a;
    ONX_TRY(onxi_heads_make(p, in[0], "the query", 0, &a->q));
    ONX_TRY(onxi_heads_make(p, in[1], "the key", 0, &a->k));
    ONX_TRY(onxi_heads_make(p, in[2], "the value", 0, &a->v));
    if (in[0]->rank != 4 || in[1]->rank != 4 || in[2]->rank != 4 || in[1]->dims[0] != in[0]->dims[0] ||
        in[2]->dims[0] != in[0]->dims[0] || a->v.dtype != a->q.dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "query, key and value are not of rank 4, of one batch and one type");
    int64_t precision = onx_prepare_given(p, "softmax_precision") ? onx_prepare_int(p, "softmax_precision")
                        : a->q.dtype == ONX_DOUBLE                ? ONX_DOUBLE
                                                                  : ONX_FLOAT;
    if (precision < 0 || precision >= 32 || !(ONXI_FLOATS & ONX_DTYPE_BIT(precision)))
        return onx_prepare_fail(p, ONX_E_INVALID, "softmax_precision is %lld, which is not a floating-point type",
                                (long long)precision);
    a->precision = (int)precision;
    a->dtype = a->q.dtype == ONX_DOUBLE || precision == ONX_DOUBLE ? ONX_DOUBLE : ONX_FLOAT;
    a->scale = onx_prepare_given(p, "scale") ? (double)onx_prepare_float(p, "scale")
                                             : 1 / sqrt((double)(a->q.size ? a->q.size : 1));
    a->batch = (uint64_t)in[0]->dims[0];
    a->past_k = (onxi_heads){ .dtype = a->k.dtype };
    a->past_v = (onxi_heads){ .dtype = a->v.dtype };
    a->y = a->v;
    a->y.heads = a->q.heads;
    a->y.length = a->q.length;
    a->y.head_step = (int64_t)(a->q.length * a->v.size);
    a->y.batch_step = (int64_t)(a->q.heads * a->q.length * a->v.size);
    q->tiles = (a->q.length + ONXI_ATTENTION_ROWS - 1) / ONXI_ATTENTION_ROWS;
    return onxi_attention_make(p, a, 0);
}

static onx_status flex_prepare(onx_prepare *p)
{
    static const char *const names[] = { "score_mod", "prob_mod" };
    flex_params *q = ONXI_NEW(p->arena, flex_params);
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    for (int i = 0; i < MODS; i++) {
        const onx_graph *g = onx_prepare_graph(p, names[i]);
        q->has[i] = g != NULL;
        if (!g)
            continue;
        if (g->input_count != 1 || g->output_count != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s has %u inputs and %u outputs, expected one of each", names[i],
                                    g->input_count, g->output_count);
        ONX_TRY(p->ops->graph(p, names[i], &q->graph[i]));
    }
    if (q->has[SCORE_MOD] || q->has[PROB_MOD])
        return (q->kept = onxi_prepare_keep(p)) ? ONX_OK : ONX_E_MEMORY; /* types are known only while running */
    ONX_TRY(flex_sizes(p, p->inputs, q));
    p->rows = q->a.batch * q->a.q.heads * q->tiles;
    p->thread_workspace = q->a.bytes;
    return ONX_OK;
}

static void flex_unbind(void *state)
{
    flex_state *s = state;
    onx_value_free(s->scores);
    onx_value_free(s->changed);
    onx_value_free(s->memory);
    onxi_release(s->cx, s, sizeof *s);
}

static onx_status flex_bind(onx_work *work)
{
    const flex_params *q = work->params;
    if (!q->has[SCORE_MOD] && !q->has[PROB_MOD])
        return ONX_OK;
    flex_state *s = onxi_resize(work->cx, NULL, 0, sizeof *s);
    if (!s)
        return ONX_E_MEMORY;
    *s = (flex_state){ .cx = work->cx };
    work->state = s;
    ONX_TRY(onx_value_new(work->cx, &s->scores));
    ONX_TRY(onx_value_new(work->cx, &s->changed));
    return onx_value_new(work->cx, &s->memory);
}

/* ---- running ---- */

static onxi_attention_tile tile_of(const onx_work *work, const flex_params *q, uint64_t row, void *memory)
{
    uint64_t first = row % q->tiles * ONXI_ATTENTION_ROWS, left = q->a.q.length - first;
    return (onxi_attention_tile){ .work = work,
                                  .batch = row / q->tiles / q->a.q.heads,
                                  .head = row / q->tiles % q->a.q.heads,
                                  .first = first,
                                  .rows = left < ONXI_ATTENTION_ROWS ? left : ONXI_ATTENTION_ROWS,
                                  .to = q->a.total,
                                  .memory = memory };
}

static void softmax_tile(const flex_params *q, const onxi_attention_tile *t)
{
    for (uint64_t i = 0; i < t->rows; i++)
        onxi_attention_softmax(&q->a, onxi_attention_row(&q->a, t, i), q->a.total, false);
}

/* Copies the rows of a tile to (`out`) or from the tensor of all scores. */
static void exchange(const flex_params *q, const onxi_attention_tile *t, const onx_value *all, bool out)
{
    uint64_t at = ((t->batch * q->a.q.heads + t->head) * q->a.q.length + t->first) * q->a.total;
    char *there = (char *)all->data + at * onxi_element_size(all->dtype), *here = onxi_attention_row(&q->a, t, 0);
    if (out)
        onx_convert((onx_dtype)all->dtype, there, (onx_dtype)q->a.dtype, here, t->rows * q->a.total, true);
    else
        onx_convert((onx_dtype)q->a.dtype, here, (onx_dtype)all->dtype, there, t->rows * q->a.total, true);
}

/* Runs a graph on the scores; its output replaces them. */
static onx_status modify(onx_work *work, const flex_params *q, int mod)
{
    flex_state *s = work->state;
    const onx_value *in[] = { s->scores };
    onx_value *out[] = { s->changed };
    if (!q->has[mod])
        return ONX_OK;
    ONX_TRY(work->ops->graph(work, q->graph[mod], in, 1, out, 1));
    const onx_value *y = s->changed;
    bool fits = y->kind == ONX_VALUE_TENSOR && y->dtype == s->scores->dtype && y->rank == 4 &&
                onxi_same_dims(y->dims, s->scores->dims, 4);
    if (!fits)
        return onx_work_fail(work, ONX_E_INVALID, "%s does not give scores of the type and shape of its input",
                             mod == SCORE_MOD ? "score_mod" : "prob_mod");
    onxi_value_swap(s->scores, s->changed);
    return ONX_OK;
}

static onx_status flex_graphs(onx_work *work, flex_params *q)
{
    flex_state *s = work->state;
    const onx_value *const *in = work->inputs;
    const onx_prepare here = onxi_prepare_again(q->kept, work);
    ONX_TRY(flex_sizes(&here, in, q));
    const onxi_attention *a = &q->a;
    const int64_t dims[] = { (int64_t)a->batch, (int64_t)a->q.heads, (int64_t)a->q.length, (int64_t)a->total };
    const int64_t out_dims[] = { dims[0], dims[1], dims[2], (int64_t)a->v.size }, bytes = (int64_t)a->bytes + 64;
    uint64_t rows = a->batch * a->q.heads * q->tiles;
    ONX_TRY(onx_value_reset(s->scores, (onx_dtype)a->precision, 4, dims));
    ONX_TRY(onx_value_reset(s->memory, ONX_UINT8, 1, &bytes));
    if (work->outputs[0])
        ONX_TRY(onxi_value_size(work->outputs[0], in[2]->dtype, 4, out_dims));
    char *memory = (char *)(((uintptr_t)s->memory->data + 63u) & ~(uintptr_t)63u);
    for (uint64_t row = 0; row < rows && !onx_work_stops(work); row++) {
        onxi_attention_tile t = tile_of(work, q, row, memory);
        onxi_attention_scores(a, &t, in[0], NULL, in[1]);
        exchange(q, &t, s->scores, true);
    }
    ONX_TRY(modify(work, q, SCORE_MOD));
    for (uint64_t row = 0; row < rows && !onx_work_stops(work); row++) {
        onxi_attention_tile t = tile_of(work, q, row, memory);
        exchange(q, &t, s->scores, false);
        softmax_tile(q, &t);
        exchange(q, &t, s->scores, true);
    }
    ONX_TRY(modify(work, q, PROB_MOD));
    for (uint64_t row = 0; row < rows && work->outputs[0] && !onx_work_stops(work); row++) {
        onxi_attention_tile t = tile_of(work, q, row, memory);
        exchange(q, &t, s->scores, false);
        onxi_attention_mix(a, &t, NULL, in[2], work->outputs[0]);
    }
    return ONX_OK;
}

static onx_status flex_run(onx_work *work, uint64_t first, uint64_t last)
{
    const flex_params *q = work->params;
    if (work->state) {
        flex_params settled = *q;
        return flex_graphs(work, &settled);
    }
    for (uint64_t row = first; row < last; row++) {
        onxi_attention_tile t = tile_of(work, q, row, work->thread_workspace);
        onxi_attention_scores(&q->a, &t, work->inputs[0], NULL, work->inputs[1]);
        softmax_tile(q, &t);
        onxi_attention_mix(&q->a, &t, NULL, work->inputs[2], work->outputs[0]);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_flex_attention[] = {
    { .op = "FlexAttention",
      .domain = "ai.onnx.preview",
      .since = 1,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = flex_prepare,
      .run = flex_run,
      .bind = flex_bind,
      .unbind = flex_unbind },
    { 0 },
};
