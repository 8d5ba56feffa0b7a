/* attention.c - Attention. For each tile of queries: the scores with all keys that any of the queries can see, the
 * mask, softmax, and the weighted sum of the values. Past keys and values are read in place. */
#include "kernel/core/attention.h"

#include <math.h>

enum { SCORES_RAW, SCORES_CAPPED, SCORES_MASKED, SCORES_SOFTMAX };

static onx_value *result(const onx_work *work, uint32_t i)
{
    return i < work->prepared->output_count ? work->outputs[i] : NULL;
}

/* ---- preparing ---- */

static onx_status past_heads(const onx_prepare *p, uint32_t input, const onxi_heads *now, onxi_heads *out)
{
    const onx_value *v = onxi_operand(p->input_count, p->inputs, input);
    *out = (onxi_heads){ .dtype = now->dtype, .heads = now->heads, .size = now->size };
    if (!v)
        return ONX_OK;
    ONX_TRY(onxi_heads_make(p, v, input == ONXI_ATTENTION_PAST_K ? "past_key" : "past_value", 0, out));
    if (v->rank != 4 || out->dtype != now->dtype || out->heads != now->heads || out->size != now->size ||
        v->dims[0] != p->inputs[ONXI_ATTENTION_Q]->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the keys or values that are appended to it",
                                input);
    return ONX_OK;
}

/* The integer attribute, or 0 if it is not given. */
static int64_t given_int(const onx_prepare *p, const char *name)
{
    return onx_prepare_given(p, name) ? onx_prepare_int(p, name) : 0;
}

static onx_status prepare_heads(const onx_prepare *p, onxi_attention *a)
{
    const onx_value *q = p->inputs[ONXI_ATTENTION_Q], *k = p->inputs[ONXI_ATTENTION_K],
                    *v = p->inputs[ONXI_ATTENTION_V];
    int64_t kv_heads = given_int(p, "kv_num_heads");
    if (q->rank != k->rank || q->rank != v->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "query, key and value have the ranks %u, %u and %u", q->rank, k->rank,
                                v->rank);
    ONX_TRY(onxi_heads_make(p, q, "the query", given_int(p, "q_num_heads"), &a->q));
    ONX_TRY(onxi_heads_make(p, k, "the key", kv_heads, &a->k));
    ONX_TRY(onxi_heads_make(p, v, "the value", kv_heads, &a->v));
    ONX_TRY(past_heads(p, ONXI_ATTENTION_PAST_K, &a->k, &a->past_k));
    ONX_TRY(past_heads(p, ONXI_ATTENTION_PAST_V, &a->v, &a->past_v));
    if (q->dims[0] != k->dims[0] || q->dims[0] != v->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "query, key and value have the batch sizes %lld, %lld and %lld",
                                (long long)q->dims[0], (long long)k->dims[0], (long long)v->dims[0]);
    if (!onxi_operand(p->input_count, p->inputs, ONXI_ATTENTION_PAST_K) !=
            !onxi_operand(p->input_count, p->inputs, ONXI_ATTENTION_PAST_V) ||
        a->past_k.length != a->past_v.length)
        return onx_prepare_fail(p, ONX_E_INVALID, "past_key and past_value do not belong together");
    a->batch = (uint64_t)q->dims[0];
    a->y = a->v;
    a->y.dtype = a->q.dtype;
    a->y.heads = a->q.heads;
    a->y.length = a->q.length;
    bool packed = q->rank == 3;
    a->y.row_step = (int64_t)(packed ? a->q.heads * a->v.size : a->v.size);
    a->y.head_step = (int64_t)(packed ? a->v.size : a->q.length * a->v.size);
    a->y.batch_step = (int64_t)(a->q.heads * a->q.length * a->v.size);
    return ONX_OK;
}

static onx_status prepare_precision(const onx_prepare *p, onxi_attention *a)
{
    int64_t precision = given_int(p, "softmax_precision");
    if (precision && (precision < 0 || precision >= 32 || !(ONXI_FLOATS & ONX_DTYPE_BIT(precision))))
        return onx_prepare_fail(p, ONX_E_INVALID, "softmax_precision is %lld, which is not a floating-point type",
                                (long long)precision);
    bool wide = a->q.dtype == ONX_DOUBLE || a->v.dtype == ONX_DOUBLE || precision == ONX_DOUBLE;
    a->dtype = wide ? ONX_DOUBLE : ONX_FLOAT;
    a->precision = precision ? (int)precision : a->dtype;
    a->scale = onx_prepare_given(p, "scale") ? (double)onx_prepare_float(p, "scale")
                                             : 1 / sqrt((double)(a->q.size ? a->q.size : 1));
    return ONX_OK;
}

/* A mask is broadcast to [batch, heads, queries, keys] from the last axis on. */
static onx_status prepare_mask(const onx_prepare *p, onxi_attention_params *q)
{
    const onx_value *m = onxi_operand(p->input_count, p->inputs, ONXI_ATTENTION_MASK);
    const onxi_attention *a = &q->a;
    const uint64_t full[] = { a->batch, a->q.heads, a->q.length };
    int64_t *steps[] = { &q->mask_batch, &q->mask_head, &q->mask_row };
    if (!m)
        return ONX_OK;
    bool number = m->kind == ONX_VALUE_TENSOR && ((ONXI_NUMBERS | ONX_DTYPE_BIT(ONX_BOOL)) & ONX_DTYPE_BIT(m->dtype));
    if (!number || m->rank > 4)
        return onx_prepare_fail(p, ONX_E_INVALID, "the mask is not a numeric tensor of rank up to 4");
    q->mask_columns = m->rank ? (uint64_t)m->dims[m->rank - 1] : 1;
    /* From version 24 on, a single column is padded like any other. */
    q->mask_repeat = !m->rank || (p->since < 24 && q->mask_columns == 1);
    bool fits = q->mask_repeat || q->mask_columns <= a->total;
    uint64_t step = q->mask_columns;
    for (uint32_t d = m->rank ? m->rank - 1 : 0, at = 3; d-- > 0;) {
        at--;
        fits = fits && (m->dims[d] == 1 || (uint64_t)m->dims[d] == full[at]);
        *steps[at] = m->dims[d] == 1 ? 0 : (int64_t)step;
        step *= (uint64_t)m->dims[d];
    }
    return fits ? ONX_OK
                : onx_prepare_fail(p, ONX_E_INVALID, "the mask does not broadcast to [%llu, %llu, %llu, %llu]",
                                   (unsigned long long)full[0], (unsigned long long)full[1],
                                   (unsigned long long)full[2], (unsigned long long)a->total);
}

static int64_t window(const onx_prepare *p, const char *name)
{
    int64_t size = p->since >= 25 ? onx_prepare_int(p, name) : -1;
    return size > INT64_MAX / 4 ? INT64_MAX / 4 : size; /* avoids overflow in positions */
}

static void run_tile(onx_work *work, onxi_attention_tile *t, int64_t length);

void onxi_attention_cut(onx_prepare *p, onxi_attention_params *q, uint64_t tile_rows)
{
    q->tile_rows = tile_rows;
    q->tiles = (q->a.q.length + tile_rows - 1) / tile_rows;
    if (!q->tiles)
        q->tiles = 1; /* without queries, the present is still copied */
    p->rows = q->a.batch * q->a.q.heads * q->tiles;
}

onx_status onxi_attention_prepare(onx_prepare *p)
{
    onxi_attention_params *q = ONXI_NEW(p->arena, onxi_attention_params);
    if (!q)
        return ONX_E_MEMORY;
    onxi_attention *a = &q->a;
    ONX_TRY(prepare_heads(p, a));
    ONX_TRY(prepare_precision(p, a));
    uint64_t total, bias;
    if (!onxi_add_u64(a->past_k.length, a->k.length, &total) ||
        !onxi_mul_u64(total, onxi_element_size(a->dtype), &bias))
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many keys");
    ONX_TRY(onxi_attention_make(p, a, bias));
    ONX_TRY(prepare_mask(p, q));
    const onx_value *lengths = onxi_operand(p->input_count, p->inputs, ONXI_ATTENTION_LENGTHS);
    if (lengths && (lengths->dtype != ONX_INT64 || lengths->rank != 1 || lengths->count != a->batch))
        return onx_prepare_fail(p, ONX_E_INVALID, "nonpad_kv_seqlen is not [%llu]", (unsigned long long)a->batch);
    q->causal = onx_prepare_int(p, "is_causal") != 0;
    q->softcap = (double)onx_prepare_float(p, "softcap");
    q->left = window(p, "left_window_size");
    q->right = window(p, "right_window_size");
    q->mode = onx_prepare_int(p, "qk_matmul_output_mode");
    if (q->mode < SCORES_RAW || q->mode > SCORES_SOFTMAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "qk_matmul_output_mode is %lld", (long long)q->mode);
    q->run_tile = run_tile;
    onxi_attention_cut(p, q, ONXI_ATTENTION_ROWS);
    p->params = q;
    p->thread_workspace = a->bytes;
    return ONX_OK;
}

/* ---- the mask ---- */

void onxi_attention_visible(const onxi_attention_params *q, int64_t length, uint64_t query, uint64_t *first,
                            uint64_t *last)
{
    int64_t total = (int64_t)q->a.total, past = (int64_t)q->a.past_k.length, from = 0, to = total;
    int64_t offset = past || length < 0 ? past : length - (int64_t)q->a.q.length, at = (int64_t)query + offset;
    if (length >= 0 && to > length)
        to = length;
    if (q->causal && to > at + 1)
        to = at + 1;
    if (q->right >= 0 && to > at + q->right + 1)
        to = at + q->right + 1;
    if (q->left >= 0 && from < at - q->left)
        from = at - q->left;
    to = to < 0 ? 0 : to;
    *first = (uint64_t)(from < to ? from : to);
    *last = (uint64_t)to;
}

/* Applies softcap and the mask of one query to keys from .. to - 1, of which first .. last - 1 are visible. */
#define MASK(T, sfx, m, type)                                                                                          \
    static void cap_##sfx(T *x, uint64_t n, T cap)                                                                     \
    {                                                                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            x[i] = cap * tanh##m(x[i] / cap);                                                                          \
    }                                                                                                                  \
    static void hide_##sfx(T *x, uint64_t n)                                                                           \
    {                                                                                                                  \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            x[i] = -(T)INFINITY;                                                                                       \
    }                                                                                                                  \
    static bool mask_##sfx(const onxi_attention_params *q, const onx_value *mask, int64_t at, T *x, T *bias,           \
                           uint64_t first, uint64_t last)                                                              \
    {                                                                                                                  \
        bool sees = false;                                                                                             \
        uint64_t count = q->mask_repeat ? 1 : last < q->mask_columns ? last : q->mask_columns;                         \
        uint64_t start = q->mask_repeat ? 0 : first;                                                                   \
        if (start < count)                                                                                             \
            onx_convert(type, bias + start, (onx_dtype)mask->dtype,                                                    \
                        (const char *)mask->data + (at + (int64_t)start) * onxi_element_size(mask->dtype),             \
                        count - start, true);                                                                          \
        for (uint64_t i = first; i < last; i++) {                                                                      \
            T b = q->mask_repeat ? bias[0] : i < count ? bias[i] : -(T)INFINITY;                                       \
            if (mask->dtype == ONX_BOOL)                                                                               \
                b = b > 0 ? 0 : -(T)INFINITY;                                                                          \
            sees = sees || b != -(T)INFINITY;                                                                          \
            x[i] = b == -(T)INFINITY ? b : x[i] + b; /* even if the score is NaN */                                    \
        }                                                                                                              \
        return sees;                                                                                                   \
    }
MASK(float, f32, f, ONX_FLOAT)
MASK(double, f64, , ONX_DOUBLE)

static void cap(const onxi_attention_params *q, void *row, uint64_t from, uint64_t to)
{
    if (q->a.dtype == ONX_DOUBLE)
        cap_f64((double *)row + from, to - from, q->softcap);
    else
        cap_f32((float *)row + from, to - from, (float)q->softcap);
}

static void hide(const onxi_attention_params *q, void *row, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    if (q->a.dtype == ONX_DOUBLE)
        hide_f64((double *)row + from, to - from);
    else
        hide_f32((float *)row + from, to - from);
}

/* Does the mask leave the query a key? */
static bool apply_mask(const onxi_attention_params *q, const onx_value *mask, const onxi_attention_tile *t,
                       uint64_t query, void *row, uint64_t first, uint64_t last)
{
    int64_t at = (int64_t)t->batch * q->mask_batch + (int64_t)t->head * q->mask_head + (int64_t)query * q->mask_row;
    void *bias = t->memory + q->a.extra_at;
    if (q->a.dtype == ONX_DOUBLE)
        return mask_f64(q, mask, at, row, bias, first, last);
    return mask_f32(q, mask, at, row, bias, first, last);
}

/* ---- running ---- */

static void give_scores(const onxi_attention_params *q, const onxi_attention_tile *t, uint64_t query, const void *row,
                        onx_value *out, int mode)
{
    const onxi_attention *a = &q->a;
    if (!out || q->mode != mode)
        return;
    uint64_t at = ((t->batch * a->q.heads + t->head) * a->q.length + query) * a->total;
    onx_convert((onx_dtype)out->dtype, (char *)out->data + at * onxi_element_size(out->dtype), (onx_dtype)a->dtype, row,
                a->total, true);
}

/* The keys that any query of the tile can see; all keys if the scores are an output. */
static void tile_range(const onxi_attention_params *q, int64_t length, bool all, onxi_attention_tile *t)
{
    uint64_t first, last;
    t->from = 0;
    t->to = q->a.total;
    if (all)
        return;
    onxi_attention_visible(q, length, t->first, &t->from, &last);
    onxi_attention_visible(q, length, t->first + t->rows - 1, &first, &t->to);
    if (t->from > t->to)
        t->from = t->to;
}

static void run_tile(onx_work *work, onxi_attention_tile *t, int64_t length)
{
    const onxi_attention_params *q = work->params;
    const onx_value *const *in = work->inputs,
                           *mask = onxi_operand(work->prepared->input_count, in, ONXI_ATTENTION_MASK);
    const onx_value *past_k = onxi_operand(work->prepared->input_count, in, ONXI_ATTENTION_PAST_K),
                    *past_v = onxi_operand(work->prepared->input_count, in, ONXI_ATTENTION_PAST_V);
    onx_value *scores = result(work, ONXI_ATTENTION_SCORES);
    tile_range(q, length, scores != NULL, t);
    onxi_attention_scores(&q->a, t, in[ONXI_ATTENTION_Q], past_k, in[ONXI_ATTENTION_K]);
    for (uint64_t i = 0; i < t->rows; i++) {
        uint64_t query = t->first + i, first, last;
        char *row = onxi_attention_row(&q->a, t, i);
        onxi_attention_visible(q, length, query, &first, &last);
        give_scores(q, t, query, row, scores, SCORES_RAW);
        if (q->softcap > 0)
            cap(q, row, t->from, t->to);
        give_scores(q, t, query, row, scores, SCORES_CAPPED);
        hide(q, row, t->from, first);
        hide(q, row, last, t->to);
        const bool sees = mask ? apply_mask(q, mask, t, query, row, first, last) : first < last;
        give_scores(q, t, query, row, scores, SCORES_MASKED);
        onxi_attention_softmax(&q->a, row + t->from * onxi_element_size(q->a.dtype), t->to - t->from, !sees);
        give_scores(q, t, query, row, scores, SCORES_SOFTMAX);
    }
    if (work->outputs[ONXI_ATTENTION_Y])
        onxi_attention_mix(&q->a, t, past_v, in[ONXI_ATTENTION_V], work->outputs[ONXI_ATTENTION_Y]);
}

/* Copies the past and then the new rows of one head. */
static void give_present(const onxi_attention *a, const onxi_heads *past, const onx_value *before,
                         const onxi_heads *now, const onx_value *v, uint64_t batch, uint64_t head, onx_value *out)
{
    uint64_t width = onxi_element_size(now->dtype), bytes = now->size * width;
    if (!out || !bytes)
        return;
    char *to = (char *)out->data + (batch * now->heads + head) * a->total * bytes;
    if (past->length)
        memcpy(to,
               (const char *)before->data +
                   ((int64_t)batch * past->batch_step + (int64_t)head * past->head_step) * (int64_t)width,
               past->length * bytes);
    to += past->length * bytes;
    for (uint64_t i = 0; i < now->length; i++) {
        int64_t at = (int64_t)batch * now->batch_step + (int64_t)head * now->head_step + (int64_t)i * now->row_step;
        memcpy(to + i * bytes, (const char *)v->data + at * (int64_t)width, bytes);
    }
}

onx_status onxi_attention_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_attention_params *q = work->params;
    const onxi_attention *a = &q->a;
    const onx_value *const *in = work->inputs,
                           *lengths = onxi_operand(work->prepared->input_count, in, ONXI_ATTENTION_LENGTHS);
    for (uint64_t row = first; row < last; row++) {
        uint64_t tile = row % q->tiles, head = row / q->tiles % a->q.heads, batch = row / q->tiles / a->q.heads;
        int64_t length = lengths ? ((const int64_t *)lengths->data)[batch] : -1;
        if (lengths && (length < 0 || (uint64_t)length > a->total))
            return onx_work_fail(work, ONX_E_INVALID, "nonpad_kv_seqlen has the length %lld of %llu keys",
                                 (long long)length, (unsigned long long)a->total);
        if (!tile && head % a->group == 0) {
            give_present(a, &a->past_k, onxi_operand(work->prepared->input_count, in, ONXI_ATTENTION_PAST_K), &a->k,
                         in[ONXI_ATTENTION_K], batch, head / a->group, result(work, ONXI_ATTENTION_PRESENT_K));
            give_present(a, &a->past_v, onxi_operand(work->prepared->input_count, in, ONXI_ATTENTION_PAST_V), &a->v,
                         in[ONXI_ATTENTION_V], batch, head / a->group, result(work, ONXI_ATTENTION_PRESENT_V));
        }
        uint64_t start = tile * q->tile_rows, left = a->q.length - start;
        onxi_attention_tile t = { .work = work,
                                  .batch = batch,
                                  .head = head,
                                  .first = start,
                                  .rows = left < q->tile_rows ? left : q->tile_rows,
                                  .memory = work->thread_workspace };
        if (t.rows)
            q->run_tile(work, &t, length);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_attention[] = {
    { .op = "Attention",
      .since = 23,
      .dtypes = ONXI_FLOATS,
      .prepare = onxi_attention_prepare,
      .run = onxi_attention_run },
    { 0 },
};
