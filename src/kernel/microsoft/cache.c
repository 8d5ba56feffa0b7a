/* cache.c - GroupQueryAttention and SparseAttention: several query heads share the keys in a cache, which is an output
 * together with the new keys; and RotaryEmbedding, which both can apply to queries and keys. */
#include "kernel/core/attention.h"
#include "kernel/microsoft/rotary.h"

#include <math.h>

/* ---- rotary embedding ---- */

typedef struct rotary {
    uint64_t batch, heads, length, size, pairs;
    uint64_t batch_step, head_step, row_step;
    uint64_t together; /* adjacent heads that are converted together */
    uint64_t heads_at, angles_at;
    bool interleaved, offset;
} rotary;

static onx_status rotary_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *ids = p->inputs[1], *cosines = p->inputs[2];
    rotary *q = ONXI_NEW(p->arena, rotary);
    if (!q)
        return ONX_E_MEMORY;
    if ((x->rank != 3 && x->rank != 4) || cosines->rank != 2 || cosines->dims[1] < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u and the tables %u", x->rank, cosines->rank);
    const int64_t heads = onx_prepare_int(p, "num_heads"), turned = onx_prepare_int(p, "rotary_embedding_dim");
    q->batch = (uint64_t)x->dims[0];
    q->pairs = (uint64_t)cosines->dims[1];
    if (x->rank == 4) {
        q->heads = (uint64_t)x->dims[1];
        q->length = (uint64_t)x->dims[2];
        q->size = q->row_step = (uint64_t)x->dims[3];
        q->head_step = q->length * q->size;
        q->batch_step = q->heads * q->head_step;
    } else {
        q->length = (uint64_t)x->dims[1];
        q->size = turned > 0 && heads > 0 ? (uint64_t)(x->dims[2] / heads) : q->pairs * 2;
        q->heads = q->size ? (uint64_t)x->dims[2] / q->size : 0;
        q->head_step = q->size;
        q->row_step = (uint64_t)x->dims[2];
        q->batch_step = q->length * q->row_step;
        if (q->heads * q->size != q->row_step)
            return onx_prepare_fail(p, ONX_E_INVALID, "%lld elements are not heads of %llu", (long long)x->dims[2],
                                    (unsigned long long)q->size);
    }
    if (turned < 0 || (turned && (uint64_t)turned != 2 * q->pairs))
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld elements cannot be rotated by tables of %llu columns",
                                (long long)turned, (unsigned long long)q->pairs);
    ONX_TRY(onxi_ms_check_tables(p, cosines, p->inputs[3], q->size));
    q->offset = ids->rank < 2;
    if (q->offset ? ids->count != 1
                  : ids->rank != 2 || (uint64_t)ids->dims[0] != q->batch || (uint64_t)ids->dims[1] != q->length)
        return onx_prepare_fail(p, ONX_E_INVALID, "position_ids is neither one number nor [%llu, %llu]",
                                (unsigned long long)q->batch, (unsigned long long)q->length);
    q->interleaved = onx_prepare_is_set(p, "interleaved");
    p->params = q;
    p->rows = x->count ? q->batch * q->length : 0;
    p->grain = x->count ? 4096 / (q->heads * q->size) + 1 : 1;
    q->together = q->head_step == q->size ? q->heads : 1;
    uint64_t total = 0;
    if (!onxi_ms_reserve(&total, 2 * q->together * q->size, &q->heads_at) ||
        !onxi_ms_reserve(&total, 2 * q->pairs, &q->angles_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the heads are too large");
    p->thread_workspace = total;
    return ONX_OK;
}

/* A row of work is a position. */
static onx_status rotary_run(onx_work *work, uint64_t first, uint64_t last)
{
    const rotary *q = work->params;
    const onx_value *ids = work->inputs[1], *cosines = work->inputs[2];
    char *memory = work->thread_workspace;
    float *x = (float *)(void *)(memory + q->heads_at), *y = x + q->together * q->size,
          *space = (float *)(void *)(memory + q->angles_at);
    for (uint64_t row = first; row < last; row++) {
        const int64_t place = ((const int64_t *)ids->data)[q->offset ? 0 : row];
        uint64_t position = (uint64_t)place + (q->offset ? row % q->length : 0);
        if (place < 0 || place > INT32_MAX || position >= (uint64_t)cosines->dims[0])
            return onx_work_fail(work, ONX_E_INVALID, "position %lld is outside of the %lld in the tables",
                                 (long long)position, (long long)cosines->dims[0]);
        const onxi_ms_angles by = onxi_ms_angles_of(cosines, work->inputs[3], position, q->pairs, space);
        const uint64_t count = q->together * q->size;
        for (uint64_t h = 0; h < q->heads; h += q->together) {
            const uint64_t at = row / q->length * q->batch_step + h * q->head_step + row % q->length * q->row_step;
            const bool direct = work->inputs[0]->dtype == ONX_FLOAT && work->outputs[0]->dtype == ONX_FLOAT &&
                                work->outputs[0]->data != work->inputs[0]->data;
            const float *from = direct ? (const float *)work->inputs[0]->data + at : x;
            float *to = direct ? (float *)work->outputs[0]->data + at : y;
            if (!direct)
                onxi_ms_floats(work->inputs[0], at, count, x);
            for (uint64_t i = 0; i < count; i += q->size)
                onxi_ms_turn(from + i, to + i, q->size, q->pairs, q->interleaved, &by);
            if (!direct)
                onxi_ms_store(work->outputs[0], at, count, y);
        }
    }
    return ONX_OK;
}

/* ---- attention with a cache ---- */

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE };

/* Describes a kernel row: the operator, and the vectorized implementation for float queries (NULL: none). */
typedef struct body {
    bool sparse;
    const onxi_queries_ops *ops;
} body;

typedef struct params {
    bool sparse, packed, causal, interleaved;
    uint64_t batch, length, heads, kv_heads, size, pairs; /* pairs 0: no rotation */
    uint64_t keys;                                        /* number of new keys */
    /* Capacity of the given cache; elements of one of its vectors. */
    uint64_t room, row;
    unsigned bits; /* bits per element of a quantized cache, else 0 */
    /* One scale per channel; the cache slides: it keeps no more than the window needs. */
    bool per_channel, slides;
    bool normalizes;  /* normalizes queries and keys before rotation */
    float epsilon[2]; /* for queries and for keys */
    int64_t window;   /* keys that a query can see, -1: all */
    uint64_t block;
    bool has_sink;
    onxi_ms_scores scores;
    uint32_t lengths, total, cosines, positions, bias, sink;
    onxi_ms_products products;
    bool narrows; /* the vectorized implementation writes floats, which are then converted */
    uint64_t key_at, value_at, query_at, result_at, sum_at, space_at, tiles_at, shown_at;
} params;

enum { K_SCALE = 12, Q_NORM = 14, K_NORM = 15, QUERY_LENGTHS = 16 };

static const onx_value *operand(const onx_prepare *p, uint32_t i)
{
    return i ? onxi_operand(p->input_count, p->inputs, i) : NULL;
}

static const onx_value *in(const onx_work *work, uint32_t i)
{
    return i ? onxi_operand(work->prepared->input_count, work->inputs, i) : NULL;
}

static onx_status read_query(const onx_prepare *p, params *q)
{
    const onx_value *x = p->inputs[0], *k = operand(p, KEY), *v = operand(p, VALUE);
    const int64_t heads = onx_prepare_int(p, "num_heads"), kv_heads = onx_prepare_int(p, "kv_num_heads");
    if (x->rank != 3 || heads < 1 || kv_heads < 1 || heads % kv_heads || heads > INT32_MAX || !k != !v)
        return onx_prepare_fail(p, ONX_E_INVALID, "a query of rank %u, %lld heads and %lld of keys do not fit", x->rank,
                                (long long)heads, (long long)kv_heads);
    q->batch = (uint64_t)x->dims[0];
    q->length = q->keys = (uint64_t)x->dims[1];
    q->heads = (uint64_t)heads;
    q->kv_heads = (uint64_t)kv_heads;
    q->packed = !k;
    const uint64_t all = q->packed ? q->heads + 2 * q->kv_heads : q->heads;
    q->size = (uint64_t)x->dims[2] / all;
    if (q->size * all != (uint64_t)x->dims[2])
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld elements are not %llu heads", (long long)x->dims[2],
                                (unsigned long long)all);
    for (uint32_t i = KEY; !q->packed && i <= VALUE; i++) {
        const onx_value *o = p->inputs[i];
        const bool none = !q->sparse && o->rank == 3 && !o->dims[1] && !p->inputs[KEY]->dims[1];
        if (o->rank != 3 || o->dims[0] != x->dims[0] || (o->dims[1] != x->dims[1] && !none) ||
            o->dims[1] != p->inputs[KEY]->dims[1] || (uint64_t)o->dims[2] != q->kv_heads * q->size ||
            o->dtype != x->dtype)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s is not [%llu, %llu, %llu]", i == KEY ? "key" : "value",
                                    (unsigned long long)q->batch, (unsigned long long)(i == KEY ? q->length : q->keys),
                                    (unsigned long long)(q->kv_heads * q->size));
        q->keys = (uint64_t)o->dims[1];
    }
    return ONX_OK;
}

/* Reads how the cache is quantized: to 8 bits, or to 4 bits with two elements per byte; with one scale or one per
 * channel. */
static onx_status read_quantization(const onx_prepare *p, params *q)
{
    static const onxi_word kinds[] = { { "NONE", 1, 0 }, { "PER_TENSOR", 1, 0 }, { "PER_CHANNEL", 1, 0 } };
    const int kind = onxi_prepare_word(p, "k_quant_type", kinds, 3),
              other = onxi_prepare_word(p, "v_quant_type", kinds, 3);
    const int64_t bits = onx_prepare_int(p, "kv_cache_bit_width");
    if (kind < 0 || kind != other)
        return onx_prepare_fail(p, kind < 0 || other < 0 ? ONX_E_INVALID : ONX_E_UNSUPPORTED,
                                "keys are quantized as \"%.*s\" and values as \"%.*s\"",
                                ONX_ARG(onx_prepare_text(p, "k_quant_type")),
                                ONX_ARG(onx_prepare_text(p, "v_quant_type")));
    if (!kind)
        return ONX_OK;
    if (bits != 4 && bits != 8)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute kv_cache_bit_width is %lld, neither 4 nor 8",
                                (long long)bits);
    q->bits = (unsigned)bits;
    q->per_channel = kind == 2;
    const uint64_t scales = q->per_channel ? q->kv_heads * q->size : 1;
    for (uint32_t i = K_SCALE; i < K_SCALE + 2; i++) {
        const onx_value *scale = operand(p, i);
        if (!scale || scale->count != scales)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s has %llu elements, not %llu",
                                    i == K_SCALE ? "k_scale" : "v_scale",
                                    (unsigned long long)(scale ? scale->count : 0), (unsigned long long)scales);
    }
    return ONX_OK;
}

static bool is_real(const onx_value *v)
{
    return v->dtype == ONX_FLOAT || v->dtype == ONX_FLOAT16 || v->dtype == ONX_BFLOAT16;
}

static onx_status read_cache(const onx_prepare *p, params *q)
{
    q->row = q->bits == 4 ? (q->size + 1) / 2 : q->size;
    const onx_value *lengths = p->inputs[q->lengths], *total = p->inputs[q->total];
    for (uint32_t i = PAST_KEY; i <= PAST_VALUE; i++) {
        const onx_value *v = operand(p, i);
        if (!v && !operand(p, PAST_KEY))
            continue;
        if (!v || v->rank != 4 || (uint64_t)v->dims[0] != q->batch || (uint64_t)v->dims[1] != q->kv_heads ||
            (uint64_t)v->dims[3] != q->row || (i == PAST_VALUE && (uint64_t)v->dims[2] != q->room))
            return onx_prepare_fail(p, ONX_E_INVALID, "the cache is not [%llu, %llu, any, %llu] for both",
                                    (unsigned long long)q->batch, (unsigned long long)q->kv_heads,
                                    (unsigned long long)q->row);
        if (q->bits ? v->dtype != (q->bits == 8 ? ONX_INT8 : ONX_UINT8) : !is_real(v))
            return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a cache of %s, quantized to %u bits, is not supported",
                                    onx_dtype_name(v->dtype), q->bits);
        q->room = (uint64_t)v->dims[2];
    }
    if (lengths->count != q->batch || total->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu lengths for a batch of %llu, and %llu totals",
                                (unsigned long long)lengths->count, (unsigned long long)q->batch,
                                (unsigned long long)total->count);
    return ONX_OK;
}

static onx_status read_turning(const onx_prepare *p, params *q)
{
    const onx_value *ids = operand(p, q->positions);
    if (!onx_prepare_is_set(p, "do_rotary"))
        return ONX_OK;
    ONX_TRY(onxi_ms_check_tables(p, operand(p, q->cosines), operand(p, q->cosines + 1), q->size));
    q->pairs = (uint64_t)operand(p, q->cosines)->dims[1];
    q->interleaved = onx_prepare_is_set(p, "rotary_interleaved");
    if (ids && (ids->rank != 2 || (uint64_t)ids->dims[0] != q->batch || (uint64_t)ids->dims[1] != q->length))
        return onx_prepare_fail(p, ONX_E_INVALID, "position_ids is not [%llu, %llu]", (unsigned long long)q->batch,
                                (unsigned long long)q->length);
    return ONX_OK;
}

static onx_status read_products(const onx_prepare *p, params *q)
{
    const int64_t kind = onx_prepare_int(p, "qk_output");
    if (kind < 0 || kind > 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute qk_output is %lld, none of 0 to 2", (long long)kind);
    if (p->output_count < 4 || !p->outputs[3])
        return ONX_OK;
    q->products = kind == 1 ? ONXI_MS_SCORES : ONXI_MS_SHARES;
    return kind ? ONX_OK
                : onx_prepare_fail(p, ONX_E_INVALID,
                                   "output_qk is requested, but attribute qk_output does not select scores");
}

static onx_status read_group(const onx_prepare *p, params *q)
{
    const onx_value *past = operand(p, PAST_KEY), *norms[] = { operand(p, Q_NORM), operand(p, K_NORM) };
    q->causal = onx_prepare_is_set(p, "causal");
    q->window = onx_prepare_int(p, "local_window_size");
    q->scores.softcap = onx_prepare_float(p, "softcap");
    const onx_value *sink = operand(p, q->sink);
    if (sink && (sink->rank != 1 || (uint64_t)sink->dims[0] != q->heads))
        return onx_prepare_fail(p, ONX_E_INVALID, "head_sink does not have %llu elements",
                                (unsigned long long)q->heads);
    q->normalizes = norms[0] || norms[1];
    for (uint32_t i = 0; i < 2; i++) {
        const char *own = i ? "k_norm_epsilon" : "q_norm_epsilon";
        const bool given = onx_prepare_given(p, own);
        q->epsilon[i] = onx_prepare_float(p, given ? own : "qk_norm_epsilon");
        if (given && !(q->epsilon[i] > 0 && q->epsilon[i] < INFINITY))
            return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is %g, expected a positive number", own,
                                    (double)q->epsilon[i]);
    }
    const onx_value *valid = operand(p, QUERY_LENGTHS);
    if (valid && (!q->causal || q->keys != q->length || !past || valid->count != q->batch))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "query_seqlens needs causal attention, as many new keys as queries, a cache, and %llu "
                                "elements",
                                (unsigned long long)q->batch);
    for (uint32_t i = 0; q->normalizes && i < 2; i++)
        if (!norms[i] || norms[i]->rank != 1 || (uint64_t)norms[i]->dims[0] != q->size)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s_norm_weight does not have %llu elements", i ? "k" : "q",
                                    (unsigned long long)q->size);
    if (!q->keys && q->length && !past)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are neither keys nor a key cache");
    ONX_TRY(read_products(p, q));
    q->slides = onx_prepare_is_set(p, "sliding_window_cache");
    if (q->slides && (q->window < 1 || !past || q->room < (uint64_t)q->window || q->products || !q->keys))
        return onx_prepare_fail(p, q->products ? ONX_E_UNSUPPORTED : ONX_E_INVALID,
                                "a cache of %llu keys does not slide with a window of %lld and %llu new ones%s",
                                (unsigned long long)q->room, (long long)q->window, (unsigned long long)q->keys,
                                q->products ? ", and attention scores as an output" : "");
    q->has_sink = sink || onx_prepare_int(p, "smooth_softmax") == 1;
    return onxi_ms_bias(p, operand(p, q->bias), q->batch, q->heads, q->length, UINT64_MAX, &q->scores);
}

static onx_status read_blocks(const onx_prepare *p, params *q)
{
    const onx_value *rows = p->inputs[5], *columns = p->inputs[6];
    const int64_t block = onx_prepare_int(p, "sparse_block_size");
    if (block < 1 || block > INT32_MAX || rows->rank != 2 || columns->rank != 2 || rows->dims[0] != columns->dims[0] ||
        rows->dims[0] < 1 || rows->dims[1] < 1)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "block_row_indices, block_col_indices and sparse_block_size %lld do not fit",
                                (long long)block);
    q->block = (uint64_t)block;
    q->causal = true;
    q->window = -1;
    return ONX_OK;
}

/* With larger scales, the scores depend on the order of additions. */
#define SCALE_MOST 1e15f

/* Can the vectorized implementation run? The cache is not quantized, and scores are only scaled and capped. */
static bool is_plain(const onx_prepare *p, const params *q, const onxi_queries_ops *ops)
{
    const onx_value *past = operand(p, PAST_KEY);
    const bool wide = p->inputs[QUERY]->dtype == ONX_FLOAT && (!past || past->dtype == ONX_FLOAT);
    return (wide || ops->takes_narrow) && !q->bits && !q->products && !q->has_sink && !operand(p, q->bias) &&
           q->size <= UINT32_MAX && fabsf(q->scores.scale) <= SCALE_MOST;
}

static onx_status cache_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    const body *row = p->kernel->body;
    q->sparse = row->sparse;
    q->lengths = q->sparse ? 8 : 5;
    q->total = q->sparse ? 7 : 6;
    q->cosines = q->sparse ? 9 : 7;
    q->positions = q->sparse ? 0 : 9;
    q->bias = q->sparse ? 0 : 10;
    q->sink = q->sparse ? 0 : 11;
    ONX_TRY(read_query(p, q));
    if (!q->sparse)
        ONX_TRY(read_quantization(p, q));
    ONX_TRY(read_cache(p, q));
    ONX_TRY(read_turning(p, q));
    ONX_TRY(q->sparse ? read_blocks(p, q) : read_group(p, q));
    q->scores.scale = onxi_ms_scale(p, q->size);
    if (row->ops && !is_plain(p, q, row->ops))
        return ONX_E_UNSUPPORTED;
    uint64_t total = 0, keys, queries;
    q->narrows = row->ops && p->inputs[QUERY]->dtype != ONX_FLOAT;
    if (!onxi_mul_u64(q->keys, q->size, &keys) || !onxi_mul_u64(row->ops ? q->length : 1, q->size, &queries) ||
        (row->ops && !onxi_ms_reserve(&total, row->ops->memory(q->size, q->size), &q->tiles_at)) ||
        !onxi_ms_reserve(&total, keys, &q->key_at) || !onxi_ms_reserve(&total, keys, &q->value_at) ||
        !onxi_ms_reserve(&total, queries, &q->query_at) ||
        !onxi_ms_reserve(&total, q->narrows ? queries : 0, &q->result_at) ||
        !onxi_ms_reserve(&total, q->size, &q->sum_at) || !onxi_ms_reserve(&total, 2 * q->size, &q->space_at) ||
        !onxi_ms_reserve_shown(&total, q->products, q->products ? (uint64_t)p->outputs[3]->dims[3] : 0, &q->shown_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the operands are too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = q->batch * q->kv_heads; /* needed without queries, too, to update the caches */
    return ONX_OK;
}

/* The offset of a head's vector among the queries, or among the new keys or values. */
static uint64_t place(const params *q, uint64_t batch, uint64_t row, uint32_t which, uint64_t head)
{
    const uint64_t all = q->packed ? q->heads + 2 * q->kv_heads
                         : which   ? q->kv_heads
                                   : q->heads,
                   first = !q->packed || !which ? 0 : q->heads + (which - 1) * q->kv_heads;
    return ((batch * (which ? q->keys : q->length) + row) * all + first + head) * q->size;
}

/* The scale of channel `i` of a head's new key or value in a quantized cache. */
static float scale_at(const onx_work *work, const params *q, uint32_t which, uint64_t head, uint64_t i)
{
    const float *scales = work->inputs[K_SCALE + which - KEY]->data;
    return q->per_channel ? scales[head * q->size + i] : scales[0];
}

static int code_of(const params *q, float x, float scale)
{
    const float most = q->bits == 8 ? 127 : 7, code = scale != 0 ? rintf(x / scale) : 0;
    return (int)(code > most ? most : code >= -most - 1 ? code : -most - 1); /* NaN becomes the least value */
}

/* Computes a vector of a head: normalized, rotated by its position, and rounded to what the cache holds. */
static onx_status take(onx_work *work, const params *q, uint64_t batch, uint64_t row, uint32_t which, uint64_t head,
                       uint64_t first, float *out)
{
    const onx_value *ids = in(work, q->positions), *cosines = in(work, q->cosines);
    float *space = (float *)(void *)((char *)work->thread_workspace + q->space_at);
    const bool turns = q->pairs && which != VALUE;
    onxi_ms_floats(work->inputs[q->packed ? 0 : which], place(q, batch, row, which, head), q->size,
                   turns ? space + q->size : out);
    if (q->normalizes && which != VALUE)
        onxi_ms_normalize(turns ? space + q->size : out, q->size, q->epsilon[which == KEY],
                          work->inputs[which == QUERY ? Q_NORM : K_NORM]);
    if (turns) {
        const int64_t position = ids ? ((const int64_t *)ids->data)[batch * q->length + row] : (int64_t)(first + row);
        if (position < 0 || position >= cosines->dims[0])
            return onx_work_fail(work, ONX_E_INVALID, "position %lld is outside of the %lld in the tables",
                                 (long long)position, (long long)cosines->dims[0]);
        const onxi_ms_angles by =
            onxi_ms_angles_of(cosines, in(work, q->cosines + 1), (uint64_t)position, q->pairs, space);
        onxi_ms_turn(space + q->size, out, q->size, q->pairs, q->interleaved, &by);
    }
    for (uint64_t i = 0; q->bits && which != QUERY && i < q->size; i++) {
        const float scale = scale_at(work, q, which, head, i);
        out[i] = (float)code_of(q, out[i], scale) * scale;
    }
    return ONX_OK;
}

/* Processes the keys that a query sees by a block mask: block by block, as its row lists them. */
static void sparse_keys(const onx_work *work, const params *q, onxi_ms_query *one, const onxi_ms_rows *k,
                        const onxi_ms_rows *v, uint64_t seen)
{
    const onx_value *rows = work->inputs[5], *columns = work->inputs[6];
    const uint64_t layout = one->head % (uint64_t)rows->dims[0], blocks = (uint64_t)rows->dims[1] - 1,
                   row = (seen - 1) / q->block, most = (uint64_t)columns->dims[1];
    const int32_t *starts = (const int32_t *)rows->data + layout * (blocks + 1),
                  *list = (const int32_t *)columns->data + layout * most;
    if (row >= blocks)
        return;
    for (int64_t i = starts[row] > 0 ? starts[row] : 0; i < starts[row + 1] && (uint64_t)i < most; i++) {
        const uint64_t block = list[i] < 0 ? row + 1 : (uint64_t)list[i], from = block * q->block,
                       to = from + q->block < seen ? from + q->block : seen;
        if (block <= row)
            onxi_ms_keys(one, k, v, from, to);
    }
}

/* A sequence: `past` keys in the cache; `length` keys with the new ones; keys before the first query, counted among
 * those (`before`) and in the whole text (`first`); keys that the cache drops at its front when the new ones come; the
 * number of new keys (`fresh`), after which rows are padding. */
typedef struct sequence {
    uint64_t batch, past, length, before, first, dropped, fresh;
} sequence;

/* The same of a row; zeros for padding. */
static onx_status take_valid(onx_work *work, const params *q, const sequence *s, uint64_t row, uint32_t which,
                             uint64_t head, float *out)
{
    if (row < s->fresh || !q->keys)
        return take(work, q, s->batch, row, which, head, s->first, out);
    memset(out, 0, q->size * sizeof *out);
    return ONX_OK;
}

/* The keys that the queries can see. */
static onxi_queries range_of(const params *q, const sequence *s)
{
    return (onxi_queries){
        .length = s->length, .before = s->before, .window = q->window > 0 ? (uint64_t)q->window : 0, .causal = q->causal
    };
}

static void attend(const onx_work *work, const params *q, const sequence *s, onxi_ms_query *one, const onxi_ms_rows *k,
                   const onxi_ms_rows *v)
{
    const onx_value *sink = in(work, q->sink);
    uint64_t from, seen;
    const onxi_queries range = range_of(q, s);
    onxi_queries_visible(&range, one->row, &from, &seen);
    onxi_ms_begin(one, q->size);
    if (q->sparse)
        sparse_keys(work, q, one, k, v, seen);
    else
        onxi_ms_keys(one, k, v, from, seen);
    onxi_ms_end(one, q->size, !q->has_sink ? -INFINITY : sink ? onxi_ms_float(sink, one->head) : 0);
    onxi_ms_store(work->outputs[0], ((s->batch * q->length + one->row) * q->heads + one->head) * q->size, q->size,
                  one->sum);
    if (q->products)
        onxi_ms_show(one, q->products, from, seen, 0, q->heads, q->length, work->outputs[3]);
}

/* Writes vectors to the cache from its element `at` on. */
static void put(const onx_work *work, const params *q, uint32_t which, uint64_t head, uint64_t count, const float *from,
                onx_value *cache, uint64_t at)
{
    if (!q->bits) {
        onxi_ms_store(cache, at, count * q->size, from);
        return;
    }
    uint8_t *to = (uint8_t *)cache->data + at;
    for (uint64_t k = 0; k < count; k++, from += q->size, to += q->row) {
        memset(to, 0, q->row);
        for (uint64_t i = 0; i < q->size; i++) {
            const int code = code_of(q, from[i], scale_at(work, q, which, head, i));
            if (q->bits == 8)
                to[i] = (uint8_t)(int8_t)code;
            else
                to[i / 2] |= (uint8_t)((unsigned)(code + 8) << (i % 2 * 4));
        }
    }
}

/* Writes a head's part of the new cache: past keys, new keys, and zeros. If it shares the buffer of the past, only the
 * new keys are written, and remaining past keys are moved to the front if some are dropped. */
static void hand_on(const onx_work *work, const params *q, const sequence *s, uint64_t head, uint32_t which,
                    const float *now)
{
    onx_value *present = work->prepared->output_count > which ? work->outputs[which] : NULL;
    const onx_value *past = in(work, PAST_KEY + which - 1);
    if (!present)
        return;
    const uint64_t room = (uint64_t)present->dims[2], bytes = q->row * onxi_element_size(present->dtype),
                   row = s->batch * q->kv_heads + head, gone = s->dropped < s->past ? s->dropped : s->past,
                   skipped = s->dropped - gone, stays = s->past - gone, left = s->fresh - skipped,
                   fresh = stays + left < room ? left : room - stays,
                   kept = !past       ? 0
                          : q->sparse ? q->room
                                      : stays;
    char *to = (char *)present->data + row * room * bytes;
    const bool same = past && past->data == present->data;
    if (kept && (!same || gone))
        memmove(to, (const char *)past->data + (row * q->room + gone) * bytes, kept * bytes);
    if (!same)
        memset(to + kept * bytes, 0, (room - kept) * bytes);
    put(work, q, which, head, fresh, now + skipped * q->size, present, (row * room + stays) * q->row);
}

static void set_rows(const onx_work *work, const params *q, const sequence *s, uint64_t head, uint32_t which,
                     const onx_value *now, onxi_ms_rows *r)
{
    const uint64_t at = (s->batch * q->kv_heads + head) * q->room * q->row;
    *r = (onxi_ms_rows){ .at = { at, 0 }, .step = { q->row, q->size }, .split = s->past, .size = q->size };
    r->in[0] = in(work, PAST_KEY + which - KEY);
    r->in[1] = now;
    r->bits = q->bits;
    r->per_channel = q->per_channel;
    if (q->bits)
        r->scales = (const float *)work->inputs[K_SCALE + which - KEY]->data + (q->per_channel ? head * q->size : 0);
}

/* Computes all queries of a head by the vectorized implementation. *done is false if a result is not finite: the reason
 * may be a key that its query does not see, or infinite scores, so the queries are computed again one by one. */
static onx_status attend_together(onx_work *work, const params *q, const sequence *s, uint64_t head,
                                  const onxi_ms_rows *k, const onxi_ms_rows *v, bool *done)
{
    const onxi_queries_ops *ops = ((const body *)work->prepared->kernel->body)->ops;
    char *memory = work->thread_workspace;
    float *query = (float *)(void *)(memory + q->query_at);
    onxi_queries all = range_of(q, s);
    all.work = work;
    all.q = query;
    const uint64_t at = (s->batch * q->length * q->heads + head) * q->size, step = q->heads * q->size;
    all.y = q->narrows ? (float *)(void *)(memory + q->result_at) : (float *)work->outputs[0]->data + at;
    all.q_row = q->size;
    all.y_row = q->narrows ? q->size : step;
    all.rows = q->length;
    all.size = all.v_size = q->size;
    all.scale = q->scores.scale;
    all.cap = q->scores.softcap;
    *done = false;
    if (!ops || !q->length)
        return ONX_OK;
    for (uint64_t i = 0; i < q->length; i++)
        ONX_TRY(take_valid(work, q, s, i, QUERY, head, query + i * q->size));
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = k->in[i] ? onxi_element_size(k->in[i]->dtype) : 0;
        all.keys[i].narrow = bytes == sizeof(uint16_t) ? k->in[i]->dtype : 0;
        all.keys[i].k = k->in[i] ? (const char *)k->in[i]->data + k->at[i] * bytes : NULL;
        all.keys[i].v = v->in[i] ? (const char *)v->in[i]->data + v->at[i] * bytes : NULL;
        all.keys[i].k_row = k->step[i];
        all.keys[i].v_row = v->step[i];
        all.keys[i].count = i ? s->fresh : s->past;
    }
    ops->run(&all, (float *)(void *)(memory + q->tiles_at));
    *done = true;
    for (uint64_t i = 0; i < q->length; i++)
        *done &= onxi_value_is_finite(&(onx_value){ .data = all.y + i * all.y_row, .count = q->size });
    for (uint64_t i = 0; q->narrows && *done && i < q->length; i++)
        onxi_ms_store(work->outputs[0], at + i * step, q->size, all.y + i * q->size);
    return ONX_OK;
}

static onx_status run_head(onx_work *work, const params *q, const sequence *s, uint64_t head)
{
    char *memory = work->thread_workspace;
    float *keys = (float *)(void *)(memory + q->key_at), *values = (float *)(void *)(memory + q->value_at),
          *query = (float *)(void *)(memory + q->query_at);
    const onx_value new_keys = { .dtype = ONX_FLOAT, .data = keys },
                    new_values = { .dtype = ONX_FLOAT, .data = values };
    const uint64_t group = q->heads / q->kv_heads;
    const bool valid = !q->sparse && in(work, QUERY_LENGTHS);
    onxi_ms_rows k, v;
    set_rows(work, q, s, head, KEY, &new_keys, &k);
    set_rows(work, q, s, head, VALUE, &new_values, &v);
    for (uint64_t i = 0; i < q->keys; i++) {
        ONX_TRY(take_valid(work, q, s, i, KEY, head, keys + i * q->size));
        ONX_TRY(take_valid(work, q, s, i, VALUE, head, values + i * q->size));
    }
    onxi_ms_query one = { .scores = &q->scores,
                          .bias = in(work, q->bias),
                          .batch = s->batch,
                          .bias_from = s->first - s->before, /* columns count from the beginning of the text */
                          .query = query,
                          .sum = (float *)(void *)(memory + q->sum_at),
                          .space = (float *)(void *)(memory + q->space_at),
                          .shown = q->products ? (float *)(void *)(memory + q->shown_at) : NULL };
    for (one.head = head * group; one.head < (head + 1) * group; one.head++) {
        bool done;
        ONX_TRY(attend_together(work, q, s, one.head, &k, &v, &done));
        for (one.row = 0; !done && one.row < q->length && !onx_work_stops(work); one.row++) {
            ONX_TRY(take_valid(work, q, s, one.row, QUERY, one.head, query));
            attend(work, q, s, &one, &k, &v);
        }
        memset(query, 0, q->size * sizeof *query);
        for (uint64_t row = s->fresh; valid && row < q->length; row++) /* of padding */
            onxi_ms_store(work->outputs[0], ((s->batch * q->length + row) * q->heads + one.head) * q->size, q->size,
                          query);
    }
    hand_on(work, q, s, head, 1, keys);
    hand_on(work, q, s, head, 2, values);
    return ONX_OK;
}

/* The number of keys that a sliding cache holds for a text of `length` keys: all of them until it is full. Each time it
 * is full, it drops as many keys as it has beyond the window. */
static int64_t sliding_keys(const params *q, int64_t length)
{
    const int64_t room = (int64_t)q->room, gap = room - q->window + 1;
    return length <= room ? length : length - gap * ((length - room + gap - 1) / gap);
}

/* Determines the range of a sequence. In the first prompt, all sequences begin at position 0 and may have different
 * lengths. */
static onx_status find_sequence(onx_work *work, const params *q, uint64_t batch, int64_t total, sequence *s)
{
    const onx_value *valid = q->sparse ? NULL : in(work, QUERY_LENGTHS);
    const int64_t given = ((const int32_t *)work->inputs[q->lengths]->data)[batch],
                  length = q->sparse ? given : given + 1,
                  keys = valid ? ((const int32_t *)valid->data)[batch] : (int64_t)q->keys,
                  queries = valid ? keys : (int64_t)q->length;
    const bool first = !valid && total == queries && !q->slides;
    const int64_t before = first ? 0 : length - queries, past = q->keys ? before : length,
                  held = q->slides && past > 0 ? sliding_keys(q, past) : past;
    if (length < (valid ? 1 : 0) || length > total || before < 0 || keys < 0 || keys > (int64_t)q->keys ||
        (uint64_t)held > q->room)
        return onx_work_fail(work, ONX_E_INVALID,
                             "sequence %llu has %lld keys of at most %lld, %lld of them new, and a cache of %llu",
                             (unsigned long long)batch, (long long)length, (long long)total, (long long)keys,
                             (unsigned long long)q->room);
    *s = (sequence){ batch, (uint64_t)held, (uint64_t)length, (uint64_t)before, (uint64_t)before, 0, (uint64_t)keys };
    if (q->slides) {
        s->before = s->past;
        s->length = s->past + s->fresh;
        s->dropped = s->length - (uint64_t)sliding_keys(q, length);
    }
    return ONX_OK;
}

/* A row of work is a head of keys. */
static onx_status cache_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    const int64_t total = ((const int32_t *)work->inputs[q->total]->data)[0];
    const onx_value *bias = in(work, q->bias);
    if (total < 0 || (uint64_t)total < q->length || (q->sparse && (uint64_t)total > q->room) ||
        (bias && (uint64_t)bias->dims[3] < (uint64_t)total))
        return onx_work_fail(work, ONX_E_INVALID,
                             "a total of %lld keys does not fit %llu new ones, the cache or the bias", (long long)total,
                             (unsigned long long)q->length);
    for (uint32_t i = 1; i < 3 && i < work->prepared->output_count; i++)
        if (work->outputs[i] && !q->slides &&
            work->outputs[i]->dims[2] < (total > (int64_t)q->room && q->keys ? total : (int64_t)q->room))
            return onx_work_fail(work, ONX_E_INVALID, "the present cache has no room for %lld keys", (long long)total);
    if (q->products && work->outputs[3]->dims[3] != total)
        return onx_work_fail(work, ONX_E_INVALID, "output 3 has room for the scores of %lld keys, and there are %lld",
                             (long long)work->outputs[3]->dims[3], (long long)total);
    for (uint64_t row = first; row < last; row++) {
        sequence s;
        ONX_TRY(find_sequence(work, q, row / q->kv_heads, total, &s));
        ONX_TRY(run_head(work, q, &s, row % q->kv_heads));
    }
    return ONX_OK;
}

static const body group = { false, NULL }, sparse = { true, NULL };

#define GROUP(...)                                                                                                     \
    MS_KERNEL("GroupQueryAttention", .prepare = cache_prepare, .run = cache_run, .updates = 2,                         \
              .update_input = PAST_KEY, .update_output = 1, __VA_ARGS__)
#define FAST(isa_, variant_, ops)                                                                                      \
    GROUP(.dtypes = ONXI_F32 | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16), .preference = 11,             \
          .isa = (isa_), .variant = (variant_), .body = &(const body){ false, &(ops) })

const onx_kernel onxi_kernels_microsoft_cache[] = {
    MS_KERNEL("RotaryEmbedding", .prepare = rotary_prepare, .run = rotary_run),
#ifdef ONX_WITH_X86_LEVELS
    FAST(ONX_ISA_V4, "avx512", onxi_queries_v4),
    FAST(ONX_ISA_V3, "avx2", onxi_queries_v3),
#endif
    FAST(ONX_ISA_BASE, "simd", onxi_queries_base),
    GROUP(.body = &group),
    MS_KERNEL("SparseAttention", .prepare = cache_prepare, .run = cache_run, .updates = 2, .update_input = PAST_KEY,
              .update_output = 1, .body = &sparse),
    { 0 },
};
