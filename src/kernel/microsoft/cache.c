/* cache.c - GroupQueryAttention and SparseAttention: queries of several heads share keys that a cache holds, which is
 * handed on with the new ones; and RotaryEmbedding, which both may do to queries and keys first. */
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* ---- turning by position ---- */

/* Pairs of the first 2 * pairs elements are turned; the rest stays. */
static void turn(float *x, uint64_t pairs, bool interleaved, const onx_value *cosines, const onx_value *sines,
                 uint64_t position)
{
    const uint64_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : pairs;
    for (uint64_t i = 0; i < pairs; i++) {
        const float a = x[i * step], b = x[i * step + apart], c = onxi_ms_float(cosines, position * pairs + i),
                    s = onxi_ms_float(sines, position * pairs + i);
        x[i * step] = a * c - b * s;
        x[i * step + apart] = b * c + a * s;
    }
}

static onx_status check_tables(const onx_prepare *p, const onx_value *cosines, const onx_value *sines, uint64_t size)
{
    const bool fit = cosines && sines && cosines->rank == 2 && sines->rank == 2 && cosines->dims[0] == sines->dims[0] &&
                     cosines->dims[1] == sines->dims[1] && (uint64_t)cosines->dims[1] * 2 <= size;
    return fit ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID,
                                  "the tables of cosines and sines are not alike, or too wide for heads of %llu",
                                  (unsigned long long)size);
}

typedef struct rotary {
    uint64_t batch, heads, length, size, pairs;
    uint64_t batch_step, head_step, row_step;
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
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld elements are to be turned by tables of %llu columns",
                                (long long)turned, (unsigned long long)q->pairs);
    ONX_TRY(check_tables(p, cosines, p->inputs[3], q->size));
    q->offset = ids->rank < 2;
    if (q->offset ? ids->count != 1
                  : ids->rank != 2 || (uint64_t)ids->dims[0] != q->batch || (uint64_t)ids->dims[1] != q->length)
        return onx_prepare_fail(p, ONX_E_INVALID, "position_ids is neither one number nor [%llu, %llu]",
                                (unsigned long long)q->batch, (unsigned long long)q->length);
    q->interleaved = onx_prepare_is_set(p, "interleaved");
    p->params = q;
    p->rows = x->count ? q->batch * q->length : 0;
    p->grain = x->count ? 4096 / (q->heads * q->size) + 1 : 1;
    p->thread_workspace = q->size * sizeof(float);
    return ONX_OK;
}

/* Rows are positions. */
static onx_status rotary_run(onx_work *work, uint64_t first, uint64_t last)
{
    const rotary *q = work->params;
    const onx_value *ids = work->inputs[1], *cosines = work->inputs[2];
    float *head = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        const int64_t place = ((const int64_t *)ids->data)[q->offset ? 0 : row];
        uint64_t position = (uint64_t)place + (q->offset ? row % q->length : 0);
        if (place < 0 || place > INT32_MAX || position >= (uint64_t)cosines->dims[0])
            return onx_work_fail(work, ONX_E_INVALID, "position %lld is outside of the %lld in the tables",
                                 (long long)position, (long long)cosines->dims[0]);
        for (uint64_t h = 0; h < q->heads; h++) {
            const uint64_t at = row / q->length * q->batch_step + h * q->head_step + row % q->length * q->row_step;
            onxi_ms_floats(work->inputs[0], at, q->size, head);
            turn(head, q->pairs, q->interleaved, cosines, work->inputs[3], position);
            onxi_ms_store(work->outputs[0], at, q->size, head);
        }
    }
    return ONX_OK;
}

/* ---- attention with a cache ---- */

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE };

typedef struct params {
    bool sparse, packed, causal, interleaved;
    uint64_t batch, length, heads, kv_heads, size, pairs; /* pairs 0: nothing is turned */
    uint64_t keys;                                        /* new ones */
    uint64_t room;                                        /* of the cache that came */
    int64_t window;                                       /* keys that a query sees, -1: all */
    uint64_t block;
    bool has_sink;
    onxi_ms_scores scores;
    uint32_t lengths, total, cosines, positions, bias, sink;
    uint64_t key_at, value_at, query_at, sum_at, space_at;
} params;

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
        if (o->rank != 3 || o->dims[0] != x->dims[0] || o->dims[1] != x->dims[1] ||
            (uint64_t)o->dims[2] != q->kv_heads * q->size || o->dtype != x->dtype)
            return onx_prepare_fail(p, ONX_E_INVALID, "%s is not [%llu, %llu, %llu]", i == KEY ? "key" : "value",
                                    (unsigned long long)q->batch, (unsigned long long)q->length,
                                    (unsigned long long)(q->kv_heads * q->size));
    }
    return ONX_OK;
}

static onx_status read_cache(const onx_prepare *p, params *q)
{
    const onx_value *lengths = p->inputs[q->lengths], *total = p->inputs[q->total];
    for (uint32_t i = PAST_KEY; i <= PAST_VALUE; i++) {
        const onx_value *v = operand(p, i);
        if (!v && !operand(p, PAST_KEY))
            continue;
        if (!v || v->rank != 4 || (uint64_t)v->dims[0] != q->batch || (uint64_t)v->dims[1] != q->kv_heads ||
            (uint64_t)v->dims[3] != q->size || (i == PAST_VALUE && (uint64_t)v->dims[2] != q->room))
            return onx_prepare_fail(p, ONX_E_INVALID, "the cache is not [%llu, %llu, any, %llu] for both",
                                    (unsigned long long)q->batch, (unsigned long long)q->kv_heads,
                                    (unsigned long long)q->size);
        if (v->dtype != p->inputs[0]->dtype)
            return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a cache of %s for queries of %s is not done",
                                    onx_dtype_name(v->dtype), onx_dtype_name(p->inputs[0]->dtype));
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
    ONX_TRY(check_tables(p, operand(p, q->cosines), operand(p, q->cosines + 1), q->size));
    q->pairs = (uint64_t)operand(p, q->cosines)->dims[1];
    q->interleaved = onx_prepare_is_set(p, "rotary_interleaved");
    if (ids && (ids->rank != 2 || (uint64_t)ids->dims[0] != q->batch || (uint64_t)ids->dims[1] != q->length))
        return onx_prepare_fail(p, ONX_E_INVALID, "position_ids is not [%llu, %llu]", (unsigned long long)q->batch,
                                (unsigned long long)q->length);
    return ONX_OK;
}

static onx_status read_group(const onx_prepare *p, params *q)
{
    static const onxi_word none[] = { { "NONE", 1, 0 } };
    if (onxi_prepare_word(p, "k_quant_type", none, 1) || onxi_prepare_word(p, "v_quant_type", none, 1) ||
        operand(p, 12) || operand(p, 13))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a cache that is quantized is not done");
    if (operand(p, 14) || operand(p, 15) || onx_prepare_is_set(p, "sliding_window_cache") ||
        (p->output_count > 3 && p->outputs[3]))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED,
                                "normalized queries, a cache as long as the window, and the products are not done");
    q->causal = onx_prepare_is_set(p, "causal");
    q->window = onx_prepare_int(p, "local_window_size");
    q->scores.softcap = onx_prepare_float(p, "softcap");
    const onx_value *sink = operand(p, q->sink);
    if (sink && (sink->rank != 1 || (uint64_t)sink->dims[0] != q->heads))
        return onx_prepare_fail(p, ONX_E_INVALID, "head_sink does not have %llu elements",
                                (unsigned long long)q->heads);
    q->has_sink = sink || onx_prepare_int(p, "smooth_softmax") == 1;
    return onxi_ms_bias(p, operand(p, q->bias), q->batch, q->heads, q->length, UINT64_MAX, &q->scores);
}

static onx_status read_blocks(const onx_prepare *p, params *q)
{
    const onx_value *rows = p->inputs[5], *columns = p->inputs[6];
    const int64_t block = onx_prepare_int(p, "sparse_block_size");
    if (block < 1 || block > INT32_MAX || rows->rank != 2 || columns->rank != 2 || rows->dims[0] != columns->dims[0] ||
        rows->dims[0] < 1 || rows->dims[1] < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the rows and columns of blocks of %lld are not alike",
                                (long long)block);
    q->block = (uint64_t)block;
    q->causal = true;
    q->window = -1;
    return ONX_OK;
}

static onx_status cache_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->sparse = p->kernel->body != NULL;
    q->lengths = q->sparse ? 8 : 5;
    q->total = q->sparse ? 7 : 6;
    q->cosines = q->sparse ? 9 : 7;
    q->positions = q->sparse ? 0 : 9;
    q->bias = q->sparse ? 0 : 10;
    q->sink = q->sparse ? 0 : 11;
    ONX_TRY(read_query(p, q));
    ONX_TRY(read_cache(p, q));
    ONX_TRY(read_turning(p, q));
    ONX_TRY(q->sparse ? read_blocks(p, q) : read_group(p, q));
    q->scores.scale = onxi_ms_scale(p, q->size);
    uint64_t total = 0, keys;
    if (!onxi_mul_u64(q->keys, q->size, &keys) || !onxi_ms_reserve(&total, keys, &q->key_at) ||
        !onxi_ms_reserve(&total, keys, &q->value_at) || !onxi_ms_reserve(&total, q->size, &q->query_at) ||
        !onxi_ms_reserve(&total, q->size, &q->sum_at) || !onxi_ms_reserve(&total, q->size, &q->space_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the operands are too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = q->length ? q->batch * q->kv_heads : 0;
    return ONX_OK;
}

/* Where the vectors of a head begin: of the queries, or of new keys or values. */
static uint64_t place(const params *q, uint64_t batch, uint64_t row, uint32_t which, uint64_t head)
{
    const uint64_t all = q->packed ? q->heads + 2 * q->kv_heads
                         : which   ? q->kv_heads
                                   : q->heads,
                   first = !q->packed || !which ? 0 : q->heads + (which - 1) * q->kv_heads;
    return ((batch * q->length + row) * all + first + head) * q->size;
}

/* A vector of a head, turned by its position. */
static onx_status take(onx_work *work, const params *q, uint64_t batch, uint64_t row, uint32_t which, uint64_t head,
                       uint64_t past, float *out)
{
    const onx_value *ids = in(work, q->positions), *cosines = in(work, q->cosines);
    onxi_ms_floats(work->inputs[q->packed ? 0 : which], place(q, batch, row, which, head), q->size, out);
    if (!q->pairs || which == VALUE)
        return ONX_OK;
    const int64_t position = ids ? ((const int64_t *)ids->data)[batch * q->length + row] : (int64_t)(past + row);
    if (position < 0 || position >= cosines->dims[0])
        return onx_work_fail(work, ONX_E_INVALID, "position %lld is outside of the %lld in the tables",
                             (long long)position, (long long)cosines->dims[0]);
    turn(out, q->pairs, q->interleaved, cosines, in(work, q->cosines + 1), (uint64_t)position);
    return ONX_OK;
}

/* The keys that a query sees of a block mask: block by block, as its row has them. */
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

typedef struct sequence {
    uint64_t batch, past, length; /* keys before, and in all */
} sequence;

static void attend(const onx_work *work, const params *q, const sequence *s, onxi_ms_query *one, const onxi_ms_rows *k,
                   const onxi_ms_rows *v)
{
    const onx_value *sink = in(work, q->sink);
    const uint64_t here = s->past + one->row + 1, seen = q->causal && here < s->length ? here : s->length,
                   window = q->window > 0 ? (uint64_t)q->window : seen;
    onxi_ms_begin(one, q->size);
    if (q->sparse)
        sparse_keys(work, q, one, k, v, seen);
    else
        onxi_ms_keys(one, k, v, seen > window ? seen - window : 0, seen);
    onxi_ms_end(one, q->size, !q->has_sink ? -INFINITY : sink ? onxi_ms_float(sink, one->head) : 0);
    onxi_ms_store(work->outputs[0], ((s->batch * q->length + one->row) * q->heads + one->head) * q->size, q->size,
                  one->sum);
}

/* What the cache that is handed on holds of a head: the past, what is new, and zeros. Where it lies where the past
 * does, what is new alone is written. */
static void hand_on(const onx_work *work, const params *q, const sequence *s, uint64_t head, uint32_t which,
                    const float *now)
{
    onx_value *present = work->prepared->output_count > which ? work->outputs[which] : NULL;
    const onx_value *past = in(work, PAST_KEY + which - 1);
    if (!present)
        return;
    const uint64_t width = onxi_element_size(present->dtype), row = s->batch * q->kv_heads + head,
                   room = (uint64_t)present->dims[2], fresh = s->past + q->keys < room ? q->keys : room - s->past,
                   kept = !past       ? 0
                          : q->sparse ? q->room
                                      : s->past;
    if (!past || past->data != present->data) {
        char *to = (char *)present->data + row * room * q->size * width;
        if (kept)
            memcpy(to, (const char *)past->data + row * q->room * q->size * width, kept * q->size * width);
        memset(to + kept * q->size * width, 0, (room - kept) * q->size * width);
    }
    onxi_ms_store(present, (row * room + s->past) * q->size, fresh * q->size, now);
}

static onx_status run_head(onx_work *work, const params *q, const sequence *s, uint64_t head)
{
    char *memory = work->thread_workspace;
    float *keys = (float *)(void *)(memory + q->key_at), *values = (float *)(void *)(memory + q->value_at),
          *query = (float *)(void *)(memory + q->query_at);
    const onx_value new_keys = { .dtype = ONX_FLOAT, .data = keys },
                    new_values = { .dtype = ONX_FLOAT, .data = values };
    const uint64_t at = (s->batch * q->kv_heads + head) * q->room * q->size, group = q->heads / q->kv_heads;
    onxi_ms_rows k = { .at = { at, 0 }, .step = { q->size, q->size }, .split = s->past, .size = q->size }, v = k;
    k.in[0] = in(work, PAST_KEY);
    k.in[1] = &new_keys;
    v.in[0] = in(work, PAST_VALUE);
    v.in[1] = &new_values;
    for (uint64_t i = 0; i < q->keys; i++) {
        ONX_TRY(take(work, q, s->batch, i, KEY, head, s->past, keys + i * q->size));
        ONX_TRY(take(work, q, s->batch, i, VALUE, head, s->past, values + i * q->size));
    }
    onxi_ms_query one = { .scores = &q->scores,
                          .bias = in(work, q->bias),
                          .batch = s->batch,
                          .query = query,
                          .sum = (float *)(void *)(memory + q->sum_at),
                          .space = (float *)(void *)(memory + q->space_at) };
    for (one.head = head * group; one.head < (head + 1) * group; one.head++)
        for (one.row = 0; one.row < q->length; one.row++) {
            ONX_TRY(take(work, q, s->batch, one.row, QUERY, one.head, s->past, query));
            attend(work, q, s, &one, &k, &v);
        }
    hand_on(work, q, s, head, 1, keys);
    hand_on(work, q, s, head, 2, values);
    return ONX_OK;
}

/* Where a sequence begins and ends. In the first prompt all of them begin at once, and may end early. */
static onx_status find_sequence(onx_work *work, const params *q, uint64_t batch, int64_t total, sequence *s)
{
    const int64_t given = ((const int32_t *)work->inputs[q->lengths]->data)[batch],
                  length = q->sparse ? given : given + 1, keys = (int64_t)q->length;
    const bool first = total == keys;
    const int64_t past = first ? 0 : length - keys;
    if (length < 0 || length > total || past < 0 || (uint64_t)past > q->room)
        return onx_work_fail(work, ONX_E_INVALID,
                             "sequence %llu has %lld keys of at most %lld, %lld of them new, and a cache of %llu",
                             (unsigned long long)batch, (long long)length, (long long)total, (long long)keys,
                             (unsigned long long)q->room);
    *s = (sequence){ batch, (uint64_t)past, (uint64_t)length };
    return ONX_OK;
}

/* Rows are heads of keys. */
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
        if (work->outputs[i] && work->outputs[i]->dims[2] < (total > (int64_t)q->room ? total : (int64_t)q->room))
            return onx_work_fail(work, ONX_E_INVALID, "the cache that is handed on has no room for %lld keys",
                                 (long long)total);
    for (uint64_t row = first; row < last; row++) {
        sequence s;
        ONX_TRY(find_sequence(work, q, row / q->kv_heads, total, &s));
        ONX_TRY(run_head(work, q, &s, row % q->kv_heads));
    }
    return ONX_OK;
}

static const bool sparse = true;

const onx_kernel onxi_kernels_microsoft_cache[] = {
    MS_KERNEL("RotaryEmbedding", .prepare = rotary_prepare, .run = rotary_run),
    MS_KERNEL("GroupQueryAttention", .prepare = cache_prepare, .run = cache_run, .updates = 2, .update_input = PAST_KEY,
              .update_output = 1),
    MS_KERNEL("SparseAttention", .prepare = cache_prepare, .run = cache_run, .updates = 2, .update_input = PAST_KEY,
              .update_output = 1, .body = &sparse),
    { 0 },
};
