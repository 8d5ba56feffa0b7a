/* heads.c - MultiHeadAttention and DecoderMaskedMultiHeadAttention. Queries, keys, and values are concatenated, packed
 * into one tensor, or separate heads; the past grows or is a buffer with room for more keys. */
#include "kernel/core/attention.h"
#include "kernel/microsoft/microsoft.h"

#include <float.h>
#include <math.h>

/* Kinds of operands. */
enum { QUERY, KEY, VALUE, BIAS, MASK, ADDED, PAST_KEY, PAST_VALUE, PAST_LENGTH, BEAM_WIDTH, CACHE, OPERANDS };
enum { NONE = 99 };
static const uint8_t several[OPERANDS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, NONE, 9 };
static const uint8_t single[OPERANDS] = { 0, 1, 2, 10, 3, 4, 5, 6, 7, 8, 9 };

/* Describes a kernel row: the input index of each operand, and the vectorized implementation for float queries (NULL:
 * none). */
typedef struct body {
    const uint8_t *input;
    const onxi_queries_ops *ops;
} body;

/* The vectors of one operand: the input, the offset of the first vector, and the strides. */
typedef struct part {
    uint32_t input;
    uint64_t at, batch, head, row, size;
    bool has_bias;
    uint64_t bias_at;
} part;

typedef struct params {
    const uint8_t *input;
    /* Room: capacity of a buffer that past and present share; 0: not shared. */
    uint64_t batch, heads, length, keys, past, room;
    part part[3];
    onxi_ms_scores scores;
    bool causal;
    onxi_ms_products products;
    uint64_t key_at, value_at, query_at, sum_at, space_at, shown_at; /* offsets in a thread's workspace */
    uint64_t tiles_at, mask_at;                                      /* offsets for the vectorized implementation */
} params;

static const onx_value *given(const onx_prepare *p, const params *q, int which)
{
    return onxi_operand(p->input_count, p->inputs, q->input[which]);
}

static const onx_value *in(const onx_work *work, const params *q, int which)
{
    return onxi_operand(work->prepared->input_count, work->inputs, q->input[which]);
}

static onx_status wrong(const onx_prepare *p, const char *name, const onx_value *v)
{
    return onx_prepare_fail(p, ONX_E_INVALID, "%s of rank %u does not fit the query and the heads", name,
                            v ? v->rank : 0);
}

/* Concatenated vectors [batch, length, heads * size], in a tensor that may have more columns. */
static void side_by_side(part *t, uint32_t input, const onx_value *v, uint64_t first, uint64_t size)
{
    const uint64_t row = (uint64_t)v->dims[2];
    *t = (part){ .input = input, .at = first, .row = row, .head = size, .size = size };
    t->batch = row * (uint64_t)v->dims[1];
}

/* Packed vectors [batch, length, heads, kinds, size]. */
static void packed(part *t, uint32_t input, const onx_value *v, uint64_t which)
{
    const uint64_t size = (uint64_t)v->dims[4], all = (uint64_t)v->dims[3] * size;
    *t = (part){ .input = input, .at = which * size, .row = (uint64_t)v->dims[2] * all, .head = all, .size = size };
    t->batch = t->row * (uint64_t)v->dims[1];
}

static bool is_batch(const params *q, const onx_value *v)
{
    return v && v->rank && (uint64_t)v->dims[0] == q->batch;
}

static onx_status read_packed_query(const onx_prepare *p, params *q)
{
    const onx_value *x = p->inputs[0];
    if (x->rank == 5 && x->dims[3] == 3 && (uint64_t)x->dims[2] == q->heads) {
        for (uint32_t i = 0; i < 3; i++)
            packed(&q->part[i], 0, x, i);
        return ONX_OK;
    }
    if (x->rank != 3 || (uint64_t)x->dims[2] % (3 * q->heads))
        return wrong(p, "a query without keys", x);
    const uint64_t size = (uint64_t)x->dims[2] / 3 / q->heads;
    for (uint32_t i = 0; i < 3; i++)
        side_by_side(&q->part[i], 0, x, i * size * q->heads, size);
    return ONX_OK;
}

/* Reads keys or values, which are concatenated or separate heads. */
static onx_status read_operand(const onx_prepare *p, params *q, uint32_t which)
{
    const onx_value *v = p->inputs[which];
    const char *name = which == 1 ? "key" : "value";
    if (!is_batch(q, v) || (v->rank != 3 && v->rank != 4))
        return wrong(p, name, v);
    if (v->rank == 3) {
        if ((uint64_t)v->dims[2] % q->heads || (which == 2 && (uint64_t)v->dims[1] != q->keys))
            return wrong(p, name, v);
        side_by_side(&q->part[which], which, v, 0, (uint64_t)v->dims[2] / q->heads);
        q->keys = (uint64_t)v->dims[1];
        return ONX_OK;
    }
    if ((uint64_t)v->dims[1] != q->heads || (which == 2 && (uint64_t)v->dims[2] != q->keys))
        return wrong(p, name, v);
    q->keys = (uint64_t)v->dims[2];
    const uint64_t size = (uint64_t)v->dims[3];
    q->part[which] =
        (part){ .input = which, .row = size, .head = q->keys * size, .batch = q->heads * q->keys * size, .size = size };
    return ONX_OK;
}

static onx_status read_parts(const onx_prepare *p, params *q)
{
    const onx_value *x = p->inputs[0], *k = given(p, q, KEY), *v = given(p, q, VALUE);
    const int64_t heads = onx_prepare_int(p, "num_heads");
    if (heads < 1 || heads > INT32_MAX || (x->rank != 3 && x->rank != 5))
        return wrong(p, "query", x);
    q->heads = (uint64_t)heads;
    q->batch = (uint64_t)x->dims[0];
    q->length = q->keys = (uint64_t)x->dims[1];
    if (!k)
        return v ? wrong(p, "a value without keys", v) : read_packed_query(p, q);
    if (x->rank != 3 || (uint64_t)x->dims[2] % q->heads)
        return wrong(p, "query", x);
    side_by_side(&q->part[0], 0, x, 0, (uint64_t)x->dims[2] / q->heads);
    if (!v) {
        if (!is_batch(q, k) || k->rank != 5 || (uint64_t)k->dims[2] != q->heads || k->dims[3] != 2)
            return wrong(p, "a key without values", k);
        q->keys = (uint64_t)k->dims[1];
        packed(&q->part[1], 1, k, 0);
        packed(&q->part[2], 1, k, 1);
    } else {
        ONX_TRY(read_operand(p, q, 1));
        ONX_TRY(read_operand(p, q, 2));
    }
    return q->part[1].size == q->part[0].size
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "a query has %llu elements, a key %llu",
                                  (unsigned long long)q->part[0].size, (unsigned long long)q->part[1].size);
}

static onx_status read_bias(const onx_prepare *p, params *q)
{
    const onx_value *bias = given(p, q, BIAS);
    const uint64_t hidden = q->heads * q->part[0].size, all = 2 * hidden + q->heads * q->part[2].size;
    for (uint32_t i = 0; i < 3; i++) {
        q->part[i].has_bias = bias && (i == 0 || p->inputs[q->part[i].input]->rank != 4);
        q->part[i].bias_at = i * hidden;
    }
    return !bias || (bias->rank == 1 && (uint64_t)bias->dims[0] == all)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "the bias does not have %llu elements", (unsigned long long)all);
}

static onx_status read_past(const onx_prepare *p, params *q)
{
    const bool as_heads = given(p, q, KEY) && given(p, q, KEY)->rank == 4;
    for (int i = 0; i < 2; i++) {
        const onx_value *v = given(p, q, PAST_KEY + i);
        if (!v != !given(p, q, PAST_KEY) || (v && as_heads))
            return wrong(p, "the past", v);
        if (!v)
            continue;
        if (!is_batch(q, v) || v->rank != 4 || (uint64_t)v->dims[1] != q->heads ||
            (uint64_t)v->dims[3] != q->part[1 + i].size || (i && (uint64_t)v->dims[2] != q->past))
            return wrong(p, "the past", v);
        q->past = (uint64_t)v->dims[2];
    }
    const onx_value *length = given(p, q, PAST_LENGTH);
    const bool shares = q->input == single ? onx_prepare_is_set(p, "past_present_share_buffer") && !as_heads
                                           : length && given(p, q, PAST_KEY);
    if (shares && (!given(p, q, PAST_KEY) || !length || length->count != 1 || (q->input == single && q->length != 1)))
        return onx_prepare_fail(p, ONX_E_INVALID, "a shared buffer needs a past, its length, and %s",
                                q->input == single ? "one query" : "queries");
    q->room = shares ? q->past : 0;
    return ONX_OK;
}

static onx_status read_cache(const onx_prepare *p, const params *q)
{
    const onx_value *cache = given(p, q, CACHE), *width = given(p, q, BEAM_WIDTH);
    if (width && width->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "beam_width has %llu elements, not 1",
                                (unsigned long long)width->count);
    if (!cache)
        return ONX_OK;
    if (cache->rank != 3 || (uint64_t)cache->dims[0] * (uint64_t)cache->dims[1] != q->batch || cache->dims[1] < 1 ||
        (uint64_t)cache->dims[2] < (q->room ? q->room : q->past))
        return onx_prepare_fail(p, ONX_E_INVALID, "cache_indirection is not for %llu beams and %llu keys",
                                (unsigned long long)q->batch, (unsigned long long)(q->room ? q->room : q->past));
    return ONX_OK;
}

/* Can the vectorized implementation run? Queries must see all keys, or be causal with as many keys as queries. */
static bool is_plain(const onx_prepare *p, const params *q)
{
    const onx_value *added = given(p, q, ADDED);
    for (uint32_t i = 0; i < p->input_count; i++)
        if (p->inputs[i] && p->inputs[i]->dtype != ONX_FLOAT && p->inputs[i]->dtype != ONX_INT32)
            return false;
    return !q->products && !given(p, q, CACHE) && (!q->causal || q->keys == q->length) &&
           (!added || added->dtype == ONX_FLOAT);
}

static bool reserve_vectors(const onxi_queries_ops *ops, const params *q, uint64_t *total, params *out)
{
    uint64_t queries, keys;
    return onxi_mul_u64(q->length, q->part[0].size, &queries) && onxi_add_u64(q->past, q->keys, &keys) &&
           q->part[0].size <= UINT32_MAX && q->part[2].size <= UINT32_MAX &&
           onxi_ms_reserve(total, ops->memory(q->part[0].size, q->part[2].size), &out->tiles_at) &&
           onxi_ms_reserve(total, queries, &out->query_at) && onxi_ms_reserve(total, keys, &out->mask_at);
}

static bool reserve(onx_prepare *p, params *q)
{
    const onxi_queries_ops *ops = ((const body *)p->kernel->body)->ops;
    uint64_t total = 0, keys, values;
    const uint64_t wide = q->part[0].size > q->part[2].size ? q->part[0].size : q->part[2].size;
    const bool fits = onxi_mul_u64(q->keys, q->part[1].size, &keys) &&
                      onxi_mul_u64(q->keys, q->part[2].size, &values) && onxi_ms_reserve(&total, keys, &q->key_at) &&
                      onxi_ms_reserve(&total, values, &q->value_at) &&
                      (ops ? reserve_vectors(ops, q, &total, q) : onxi_ms_reserve(&total, wide, &q->query_at)) &&
                      onxi_ms_reserve(&total, wide, &q->sum_at) && onxi_ms_reserve(&total, wide, &q->space_at) &&
                      onxi_ms_reserve_shown(&total, q->products, q->past + q->keys, &q->shown_at);
    p->thread_workspace = total;
    return fits;
}

static onx_status heads_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    const body *row = p->kernel->body;
    q->input = row->input;
    q->products = p->output_count > 3 && p->outputs[3] ? ONXI_MS_SCORES : ONXI_MS_NO_PRODUCTS;
    ONX_TRY(read_parts(p, q));
    ONX_TRY(read_bias(p, q));
    ONX_TRY(read_past(p, q));
    ONX_TRY(read_cache(p, q));
    q->causal = q->input == several && onx_prepare_is_set(p, "unidirectional");
    q->scores.scale = onxi_ms_scale(p, q->part[0].size);
    q->scores.filter = onx_prepare_float(p, "mask_filter_value");
    q->scores.batch = q->batch;
    const uint64_t total = q->room ? UINT64_MAX : q->past + q->keys;
    if (q->products || !onxi_ms_mask_is_even(given(p, q, MASK), q->batch))
        ONX_TRY(onxi_ms_mask(p, given(p, q, MASK), q->batch, q->length, total, &q->scores));
    ONX_TRY(onxi_ms_bias(p, given(p, q, ADDED), q->batch, q->heads, q->length, total, &q->scores));
    if (row->ops && !is_plain(p, q))
        return ONX_E_UNSUPPORTED;
    if (!reserve(p, q))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the operands are too large");
    p->params = q;
    p->rows = q->batch * q->heads;
    return ONX_OK;
}

/* The offset of a head's vectors in their operand. */
static uint64_t place_of(const params *q, int which, uint64_t row)
{
    const part *t = &q->part[which];
    return t->at + row / q->heads * t->batch + row % q->heads * t->head;
}

/* Reads a vector and adds its part of the bias. */
static void take(const onx_work *work, const params *q, const part *t, uint64_t row, uint64_t index, float *out)
{
    const uint64_t head = row % q->heads;
    const uint64_t at = place_of(q, (int)(t - q->part), row) + index * t->row;
    const onx_value *v = work->inputs[t->input], *bias = t->has_bias ? in(work, q, BIAS) : NULL;
    if (v->dtype == ONX_FLOAT && (!bias || bias->dtype == ONX_FLOAT)) {
        const float *x = (const float *)v->data + at;
        const float *b = bias ? (const float *)bias->data + t->bias_at + head * t->size : NULL;
        for (uint64_t i = 0; i < t->size; i++)
            out[i] = b ? x[i] + b[i] : x[i];
        return;
    }
    onxi_ms_floats(v, at, t->size, out);
    for (uint64_t i = 0; bias && i < t->size; i++)
        out[i] += onxi_ms_float(bias, t->bias_at + head * t->size + i);
}

/* Writes the past followed by new keys or values; with a shared buffer, writes only the new ones. */
static void hand_on(const onx_work *work, const params *q, uint64_t row, int which, uint64_t past, const float *now)
{
    onx_value *present = work->prepared->output_count > (uint32_t)which ? work->outputs[which] : NULL;
    const onx_value *before = in(work, q, which == 1 ? PAST_KEY : PAST_VALUE);
    const uint64_t size = q->part[which].size, length = q->room ? q->room : past + q->keys,
                   copied = q->room ? q->room : past;
    if (!present)
        return;
    const uint64_t width = onxi_element_size(present->dtype);
    if (before && copied)
        memcpy((char *)present->data + row * length * size * width,
               (const char *)before->data + row * copied * size * width, copied * size * width);
    onxi_ms_store(present, (row * length + past) * size, q->keys * size, now);
}

static onxi_ms_rows rows_of(const onx_work *work, const params *q, uint64_t row, int which, uint64_t past,
                            const onx_value *now)
{
    const uint64_t size = q->part[which].size, length = q->room ? q->room : q->past, head = row % q->heads;
    const onx_value *cache = in(work, q, CACHE);
    onxi_ms_rows r = { .in = { in(work, q, which == 1 ? PAST_KEY : PAST_VALUE), now },
                       .at = { row * length * size, 0 },
                       .step = { size, size },
                       .split = past,
                       .size = size };
    if (!now) { /* new keys are read in place */
        r.in[1] = work->inputs[q->part[which].input];
        r.at[1] = place_of(q, which, row);
        r.step[1] = q->part[which].row;
    }
    if (cache && past) { /* the beams of a batch entry are adjacent */
        const uint64_t width = (uint64_t)cache->dims[1], entry = row / q->heads;
        r.beams = (const int32_t *)cache->data + entry * (uint64_t)cache->dims[2];
        r.beam_count = width;
        r.beam_step = q->heads * length * size;
        r.at[0] = (entry / width * width * q->heads + head) * length * size;
    }
    return r;
}

static onx_status check_run(onx_work *work, const params *q, uint64_t *past)
{
    const onx_value *products = q->products ? work->outputs[3] : NULL;
    *past = q->past;
    if (!q->room)
        return ONX_OK;
    ONX_TRY(onxi_ms_shared_past(work, in(work, q, PAST_LENGTH), in(work, q, MASK), in(work, q, ADDED), q->room, q->keys,
                                past));
    if (products && (uint64_t)products->dims[3] != *past + q->keys)
        return onx_work_fail(work, ONX_E_INVALID, "output 3 has room for the scores of %lld keys, and there are %llu",
                             (long long)products->dims[3], (unsigned long long)(*past + q->keys));
    return ONX_OK;
}

/* Expands a mask that gives the number of keys to one addend per key. */
static void spread_mask(const params *q, const int32_t *mask, uint64_t batch, uint64_t keys, float *out)
{
    const int64_t end = mask[batch], start = q->scores.mask_kind == ONXI_MS_RANGE ? mask[q->batch + batch] : 0;
    for (uint64_t i = 0; i < keys; i++)
        out[i] = (int64_t)i < end && (int64_t)i >= start ? 0 : q->scores.filter;
}

/* Sets what is added to the scores of a head. */
static void take_added(const onx_work *work, const params *q, uint64_t row, onxi_queries *all)
{
    const onx_value *mask = in(work, q, MASK), *bias = in(work, q, ADDED);
    const onxi_ms_scores *s = &q->scores;
    const uint64_t batch = row / q->heads;
    if (bias) {
        all->added[all->added_count].numbers =
            (const float *)bias->data + batch * s->bias_batch + row % q->heads * s->bias_head;
        all->added[all->added_count++].row = s->bias_row;
    }
    if (s->mask_kind == ONXI_MS_KEYS) {
        all->added[all->added_count].mask = (const int32_t *)mask->data + batch * s->mask_batch;
        all->added[all->added_count].filter = s->filter;
        all->added[all->added_count++].row = s->mask_row;
    } else if (s->mask_kind != ONXI_MS_NO_MASK) {
        float *numbers = (float *)(void *)((char *)work->thread_workspace + q->mask_at);
        spread_mask(q, mask->data, batch, all->length, numbers);
        all->added[all->added_count++].numbers = numbers;
    }
}

/* Computes all queries of a head by the vectorized implementation. Returns false if a result is not finite, which
 * infinite scores may cause; the queries are then computed again one by one. */
static bool attend_together(const onx_work *work, const params *q, uint64_t row, uint64_t past, const onxi_ms_rows *k,
                            const onxi_ms_rows *v)
{
    const onxi_queries_ops *ops = ((const body *)work->prepared->kernel->body)->ops;
    char *memory = work->thread_workspace;
    const uint64_t size = q->part[0].size, v_size = q->part[2].size, columns = q->heads * v_size;
    float *query = (float *)(void *)(memory + q->query_at);
    if (!ops || !q->length)
        return false;
    onxi_queries all = { .work = work,
                         .q = query,
                         .y = (float *)work->outputs[0]->data + row / q->heads * q->length * columns +
                              row % q->heads * v_size,
                         .q_row = size,
                         .y_row = columns,
                         .rows = q->length,
                         .size = size,
                         .v_size = v_size,
                         .length = past + q->keys,
                         .before = past,
                         .causal = q->causal,
                         .scale = q->scores.scale };
    if (!q->part[0].has_bias) {
        all.q = (const float *)work->inputs[q->part[0].input]->data + place_of(q, 0, row);
        all.q_row = q->part[0].row;
    }
    for (uint64_t i = 0; q->part[0].has_bias && i < q->length; i++)
        take(work, q, &q->part[0], row, i, query + i * size);
    for (int i = 0; i < 2; i++) {
        all.keys[i].k = k->in[i] ? (const float *)k->in[i]->data + k->at[i] : NULL;
        all.keys[i].v = v->in[i] ? (const float *)v->in[i]->data + v->at[i] : NULL;
        all.keys[i].k_row = k->step[i];
        all.keys[i].v_row = v->step[i];
        all.keys[i].count = i ? q->keys : past;
    }
    take_added(work, q, row, &all);
    ops->run(&all, (float *)(void *)(memory + q->tiles_at));
    bool finite = true;
    for (uint64_t i = 0; i < q->length; i++)
        finite &= onxi_value_is_finite(&(onx_value){ .data = all.y + i * columns, .count = v_size });
    return finite;
}

/* A row of work is a head. */
static onx_status heads_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    char *memory = work->thread_workspace;
    float *keys = (float *)(void *)(memory + q->key_at), *values = (float *)(void *)(memory + q->value_at),
          *query = (float *)(void *)(memory + q->query_at);
    const onx_value new_keys = { .dtype = ONX_FLOAT, .data = keys },
                    new_values = { .dtype = ONX_FLOAT, .data = values };
    const uint64_t v_size = q->part[2].size;
    bool copies[2]; /* keys or values are copied, to add a bias or to output them */
    uint64_t past;
    for (uint32_t i = 0; i < 2; i++)
        copies[i] = q->part[1 + i].has_bias || (work->prepared->output_count > 1 + i && work->outputs[1 + i]);
    ONX_TRY(check_run(work, q, &past));
    for (uint64_t row = first; row < last; row++) {
        for (uint64_t i = 0; copies[0] && i < q->keys; i++)
            take(work, q, &q->part[1], row, i, keys + i * q->part[1].size);
        for (uint64_t i = 0; copies[1] && i < q->keys; i++)
            take(work, q, &q->part[2], row, i, values + i * v_size);
        const onxi_ms_rows k = rows_of(work, q, row, 1, past, copies[0] ? &new_keys : NULL),
                           v = rows_of(work, q, row, 2, past, copies[1] ? &new_values : NULL);
        onxi_ms_query one = { .scores = &q->scores,
                              .mask = in(work, q, MASK),
                              .bias = in(work, q, ADDED),
                              .batch = row / q->heads,
                              .head = row % q->heads,
                              .query = query,
                              .sum = (float *)(void *)(memory + q->sum_at),
                              .space = (float *)(void *)(memory + q->space_at),
                              .shown = q->products ? (float *)(void *)(memory + q->shown_at) : NULL };
        const bool done = attend_together(work, q, row, past, &k, &v);
        for (one.row = 0; !done && one.row < q->length && !onx_work_stops(work); one.row++) {
            /* The last query sees all keys, even if there are more keys than queries. */
            const uint64_t all = past + q->keys, here = past + one.row + 1,
                           seen = q->causal && one.row + 1 < q->length && here < all ? here : all;
            take(work, q, &q->part[0], row, one.row, query);
            onxi_ms_begin(&one, v_size);
            onxi_ms_keys(&one, &k, &v, 0, seen);
            onxi_ms_end(&one, v_size, -INFINITY);
            if (q->products)
                onxi_ms_show(&one, q->products, 0, seen, -FLT_MAX, q->heads, q->length, work->outputs[3]);
            onxi_ms_store(work->outputs[0], ((one.batch * q->length + one.row) * q->heads + one.head) * v_size, v_size,
                          one.sum);
        }
        hand_on(work, q, row, 1, past, keys);
        hand_on(work, q, row, 2, past, values);
    }
    return ONX_OK;
}

#define HEADS(name, from, ops, ...)                                                                                    \
    MS_KERNEL(name, .prepare = heads_prepare, .run = heads_run, .body = &(const body){ from, ops }, __VA_ARGS__)
#define FAST(isa_, variant_, ops)                                                                                      \
    HEADS("MultiHeadAttention", several, &(ops), .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .preference = 11, .isa = (isa_),  \
          .variant = (variant_)),                                                                                      \
        HEADS("DecoderMaskedMultiHeadAttention", single, &(ops), .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .preference = 11, \
              .isa = (isa_), .variant = (variant_))

const onx_kernel onxi_kernels_microsoft_heads[] = {
#ifdef ONX_WITH_X86_LEVELS
    FAST(ONX_ISA_V4, "avx512", onxi_queries_v4),
    FAST(ONX_ISA_V3, "avx2", onxi_queries_v3),
#endif
    FAST(ONX_ISA_BASE, "simd", onxi_queries_base),
    HEADS("MultiHeadAttention", several, NULL, .preference = 0),
    HEADS("DecoderMaskedMultiHeadAttention", single, NULL, .preference = 0),
    { 0 },
};
