/* paged.c - PagedAttention: sequences that are packed along one axis of tokens attend to keys in the pages of a cache,
 * which holds numbers of 16, 8 or 4 bits. */
#include "kernel/microsoft/rotary.h"

enum {
    QUERY,
    KEY,
    VALUE,
    KEY_CACHE,
    VALUE_CACHE,
    BORDERS,
    PAST,
    TABLE,
    COSINES,
    SINES,
    SLOTS,
    SINK,
    Q_NORM,
    K_NORM,
    K_SCALE,
    V_SCALE
};
enum { Y, KEYS_OUT, VALUES_OUT };

/* Queries per head that are done together: a page is decoded once for them. */
enum { TOGETHER = 8 };

typedef struct cache {
    int dtype;            /* of elements; two of INT4 or FLOAT4E2M1 are in a byte */
    uint64_t size, bytes; /* of a vector of a head */
    uint64_t row;         /* bytes of the vectors of all heads */
    bool quantized, per_channel;
    uint64_t copy_at; /* in the workspace, if it is not an output */
} cache;

typedef struct paged {
    uint64_t tokens, sequences, heads, kv_heads, group, size, value_size;
    uint64_t blocks, page, pages; /* page: keys of a block; pages: blocks per sequence */
    bool packed, latent, causal, normalizes, interleaved;
    uint64_t pairs, offset; /* of the elements that are rotated */
    int64_t window;
    float epsilon;
    onxi_ms_scores scores;
    cache of[2];
    uint64_t query_at, sum_at, states_at, key_at, value_at, space_at;
} paged;

static const onx_value *operand(const onx_prepare *p, uint32_t i)
{
    return onxi_operand(p->input_count, p->inputs, i);
}

static const onx_value *in(const onx_work *work, uint32_t i)
{
    return onxi_operand(work->prepared->input_count, work->inputs, i);
}

static bool has_dims(const onx_value *v, uint32_t rank, uint64_t a, uint64_t b)
{
    return v->rank == rank && (uint64_t)v->dims[0] == a && (rank < 2 || (uint64_t)v->dims[1] == b);
}

/* ---- preparation ---- */

/* The type of the elements of a cache: that of the tensor, or one that has two of them in a byte. 0: they do not fit.
 */
static int type_of(const onx_prepare *p, const char *name, int dtype)
{
    static const onxi_word words[] = { { "", 1, 0 },          { "float16", 1, 0 },      { "bfloat16", 1, 0 },
                                       { "int8", 1, 0 },      { "float8e4m3fn", 1, 0 }, { "int4", 1, 0 },
                                       { "float4e2m1", 1, 0 } };
    static const int types[] = { ONX_UNDEFINED,    ONX_FLOAT16, ONX_BFLOAT16,  ONX_INT8,
                                 ONX_FLOAT8E4M3FN, ONX_INT4,    ONX_FLOAT4E2M1 };
    const int word = onxi_prepare_word(p, name, words, 7);
    if (word <= 0)
        return word < 0 || dtype == ONX_UINT8 ? 0 : dtype;
    const bool pairs = types[word] == ONX_INT4 || types[word] == ONX_FLOAT4E2M1;
    return dtype == (pairs ? ONX_UINT8 : types[word]) ? types[word] : 0;
}

static onx_status read_cache(const onx_prepare *p, paged *q, int which)
{
    static const char *const names[2][2] = { { "k_cache_dtype", "k_quant_type" }, { "v_cache_dtype", "v_quant_type" } };
    static const onxi_word words[] = { { "NONE", 1, 0 }, { "PER_TENSOR", 1, 0 }, { "PER_CHANNEL", 1, 0 } };
    const onx_value *v = p->inputs[KEY_CACHE + which], *scale = operand(p, K_SCALE + (uint32_t)which);
    const int kind = onxi_prepare_word(p, names[which][1], words, 3);
    cache *c = &q->of[which];
    c->dtype = type_of(p, names[which][0], v->dtype);
    if (!c->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is \"%.*s\" for a cache of type %s", names[which][0],
                                ONX_ARG(onx_prepare_text(p, names[which][0])), onx_dtype_name(v->dtype));
    const bool half = c->dtype == ONX_FLOAT16 || c->dtype == ONX_BFLOAT16,
               small = c->dtype == ONX_INT4 || c->dtype == ONX_FLOAT4E2M1;
    c->size = q->size;
    c->quantized = !half;
    c->per_channel = kind == 2;
    const uint64_t width = small ? q->size / 2 + q->size % 2 : q->size;
    c->bytes = half ? 2 * width : width;
    if (kind < 0 || (kind > 0) != c->quantized || (c->quantized && !scale) ||
        (scale && scale->count != (c->per_channel ? q->kv_heads * q->size : 1)))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "attribute %s is \"%.*s\" and the scale has %llu elements, for a cache of %s",
                                names[which][1], ONX_ARG(onx_prepare_text(p, names[which][1])),
                                (unsigned long long)(scale ? scale->count : 0), onx_dtype_name(c->dtype));
    if (v->rank != 4 || (uint64_t)v->dims[2] != q->kv_heads || (uint64_t)v->dims[3] != width || v->dims[1] < 1 ||
        (which && (v->dims[0] != p->inputs[KEY_CACHE]->dims[0] || v->dims[1] != p->inputs[KEY_CACHE]->dims[1])))
        return onx_prepare_fail(p, ONX_E_INVALID, "a cache does not have pages of %llu heads with %llu numbers",
                                (unsigned long long)q->kv_heads, (unsigned long long)width);
    q->blocks = (uint64_t)v->dims[0];
    q->page = (uint64_t)v->dims[1];
    c->row = q->kv_heads * c->bytes;
    return ONX_OK;
}

static onx_status read_sizes(const onx_prepare *p, paged *q)
{
    const onx_value *x = p->inputs[QUERY], *k = operand(p, KEY), *v = operand(p, VALUE), *borders = p->inputs[BORDERS],
                    *past = p->inputs[PAST], *table = p->inputs[TABLE], *slots = operand(p, SLOTS);
    static const onxi_word layouts[] = { { "SEPARATE", 1, 0 }, { "LATENT", 1, 0 } };
    const int64_t heads = onx_prepare_int(p, "num_heads"), kv_heads = onx_prepare_int(p, "kv_num_heads"),
                  own = onx_prepare_int(p, "v_head_size");
    const int layout = onxi_prepare_word(p, "kv_cache_layout", layouts, 2);
    if (heads < 1 || kv_heads < 1 || heads > INT32_MAX || heads % kv_heads || layout < 0 || x->rank != 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld heads with %lld of keys, and a query of rank %u, do not fit",
                                (long long)heads, (long long)kv_heads, x->rank);
    q->latent = layout == 1;
    q->packed = !k && !v && !q->latent;
    q->heads = (uint64_t)heads;
    q->kv_heads = (uint64_t)kv_heads;
    q->group = q->heads / q->kv_heads;
    const uint64_t all = q->heads + (q->packed ? 2 * q->kv_heads : 0), width = (uint64_t)x->dims[1];
    q->tokens = (uint64_t)x->dims[0];
    q->size = width / all;
    q->value_size = q->latent && own ? (uint64_t)own : q->size;
    if (q->latent && (kv_heads != 1 || v || operand(p, VALUE_CACHE) || own < 0 || q->value_size > q->size ||
                      (q->value_size != q->size && !onx_prepare_given(p, "scale"))))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "a latent cache needs one head of keys, no values, and heads of values of %lld with a "
                                "scale",
                                (long long)own);
    if (!q->latent && (own || !operand(p, VALUE_CACHE)))
        return onx_prepare_fail(
            p, ONX_E_INVALID, "value_cache is missing, or v_head_size is %lld without a latent cache", (long long)own);
    const uint64_t kv_width = q->kv_heads * q->size;
    if (!q->size || width != all * q->size || (!q->packed && (!k || !has_dims(k, 2, q->tokens, kv_width))) ||
        (!q->packed && !q->latent && (!v || !has_dims(v, 2, q->tokens, kv_width))))
        return onx_prepare_fail(p, ONX_E_INVALID, "query, key and value do not fit %llu tokens and heads of %llu",
                                (unsigned long long)q->tokens, (unsigned long long)q->size);
    if (past->rank != 1 || borders->rank != 1 || borders->dims[0] != past->dims[0] + 1 || table->rank != 2 ||
        table->dims[0] != past->dims[0] || (slots && !has_dims(slots, 1, q->tokens, 0)))
        return onx_prepare_fail(p, ONX_E_INVALID, "borders, lengths, pages and slots do not fit %lld sequences",
                                (long long)(past->rank == 1 ? past->dims[0] : 0));
    q->sequences = (uint64_t)past->dims[0];
    q->pages = (uint64_t)table->dims[1];
    return ONX_OK;
}

static onx_status read_turning(const onx_prepare *p, paged *q)
{
    const int64_t offset = onx_prepare_int(p, "rotary_offset");
    if (!onx_prepare_is_set(p, "do_rotary"))
        return ONX_OK;
    q->interleaved = onx_prepare_is_set(p, "rotary_interleaved");
    if (offset < 0 || offset % 8 || (uint64_t)offset > q->size)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "attribute rotary_offset is %lld, expected a multiple of 8 in heads of %llu",
                                (long long)offset, (unsigned long long)q->size);
    q->offset = (uint64_t)offset;
    ONX_TRY(onxi_ms_check_tables(p, operand(p, COSINES), operand(p, SINES), q->size - q->offset));
    q->pairs = (uint64_t)p->inputs[COSINES]->dims[1];
    return ONX_OK;
}

static onx_status read_scores(const onx_prepare *p, paged *q)
{
    const onx_value *sink = operand(p, SINK), *norms[] = { operand(p, Q_NORM), operand(p, K_NORM) };
    q->causal = onx_prepare_is_set(p, "is_causal");
    q->window = onx_prepare_int(p, "local_window_size");
    q->epsilon = onx_prepare_float(p, "qk_norm_epsilon");
    q->normalizes = norms[0] || norms[1];
    q->scores.softcap = onx_prepare_float(p, "softcap");
    q->scores.scale = onxi_ms_scale(p, q->size);
    for (int i = 0; q->normalizes && i < 2; i++)
        if (!norms[i] || !has_dims(norms[i], 1, q->size, 0))
            return onx_prepare_fail(p, ONX_E_INVALID, "%c_norm_weight does not have %llu elements", i ? 'k' : 'q',
                                    (unsigned long long)q->size);
    return !sink || has_dims(sink, 1, q->heads, 0)
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "head_sink does not have %llu elements",
                                  (unsigned long long)q->heads);
}

/* Room for a cache that is not an output. */
static bool reserve_copy(onx_prepare *p, const paged *q, int which, cache *c)
{
    uint64_t bytes;
    if (KEYS_OUT + (uint32_t)which < p->output_count && p->outputs[KEYS_OUT + which])
        return p->outputs[KEYS_OUT + which]->count == p->inputs[KEY_CACHE + which]->count;
    return onxi_mul_u64(q->blocks * q->page, c->row, &bytes) &&
           onxi_ms_reserve(&p->workspace, bytes / sizeof(float) + 1, &c->copy_at);
}

static onx_status paged_prepare(onx_prepare *p)
{
    paged *q = ONXI_NEW(p->arena, paged);
    uint64_t total = 0, queries, page;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(read_sizes(p, q));
    for (int i = 0; i < (q->latent ? 1 : 2); i++)
        ONX_TRY(read_cache(p, q, i));
    ONX_TRY(read_turning(p, q));
    ONX_TRY(read_scores(p, q));
    if (!onxi_ms_gives(p, Y, q->tokens, q->heads, q->value_size) || !reserve_copy(p, q, 0, &q->of[0]) ||
        (!q->latent && !reserve_copy(p, q, 1, &q->of[1])) ||
        (q->latent && p->output_count > VALUES_OUT && p->outputs[VALUES_OUT]))
        return onx_prepare_fail(p, ONX_E_INVALID, "the outputs do not have the sizes of the operands");
    if (!onxi_mul_u64(q->group * TOGETHER, q->size, &queries) || !onxi_mul_u64(q->page, q->size, &page) ||
        !onxi_ms_reserve(&total, queries, &q->query_at) || !onxi_ms_reserve(&total, queries, &q->sum_at) ||
        !onxi_ms_reserve(&total, q->group * TOGETHER * (sizeof(onxi_ms_query) / sizeof(float) + 1), &q->states_at) ||
        !onxi_ms_reserve(&total, page, &q->key_at) || !onxi_ms_reserve(&total, q->latent ? 0 : page, &q->value_at) ||
        !onxi_ms_reserve(&total, 2 * q->size, &q->space_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the pages or heads are too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = q->kv_heads; /* needed without tokens, too, to copy the caches */
    return ONX_OK;
}

/* ---- numbers in the cache ---- */

static float rounded(const onx_work *work, float x)
{
    return work->inputs[QUERY]->dtype == ONX_FLOAT16 ? onx_float16_to_f32(onx_f32_to_float16(x))
                                                     : onx_bfloat16_to_f32(onx_f32_to_bfloat16(x));
}

static float scale_at(const onx_work *work, const paged *q, int which, uint64_t head, uint64_t i)
{
    const float *scales = work->inputs[K_SCALE + which]->data;
    return q->of[which].per_channel ? scales[head * q->size + i] : scales[0];
}

/* NaN becomes the least value. */
static int nearest(float x, int most)
{
    const float y = rintf(x), top = (float)most;
    return (int)(y > top ? top : y >= -top - 1 ? y : -top - 1);
}

static void store(const onx_work *work, const paged *q, int which, uint64_t head, const float *x, uint8_t *to)
{
    const cache *c = &q->of[which];
    if (c->size % 2)
        to[c->bytes - 1] = 0;
    for (uint64_t i = 0; i < c->size; i++) {
        if (!c->quantized) {
            const uint16_t bits = c->dtype == ONX_FLOAT16 ? onx_f32_to_float16(x[i]) : onx_f32_to_bfloat16(x[i]);
            memcpy(to + 2 * i, &bits, sizeof bits);
            continue;
        }
        const float scale = scale_at(work, q, which, head, i), y = scale != 0 ? rounded(work, x[i]) * (1 / scale) : 0;
        if (c->dtype == ONX_INT8)
            to[i] = (uint8_t)nearest(y, 127);
        else if (c->dtype == ONX_FLOAT8E4M3FN)
            to[i] = onx_f32_to_small_float(ONX_FLOAT8E4M3FN, y, true);
        else
            onxi_packed_set(to, 4, i,
                            c->dtype == ONX_INT4 ? (unsigned)nearest(y, 7) & 15
                                                 : onx_f32_to_small_float(ONX_FLOAT4E2M1, y, true));
    }
}

static void load(const onx_work *work, const paged *q, int which, uint64_t head, const uint8_t *from, float *out)
{
    const cache *c = &q->of[which];
    for (uint64_t i = 0; i < c->size; i++) {
        if (!c->quantized) {
            uint16_t bits;
            memcpy(&bits, from + 2 * i, sizeof bits);
            out[i] = c->dtype == ONX_FLOAT16 ? onx_float16_to_f32(bits) : onx_bfloat16_to_f32(bits);
            continue;
        }
        const unsigned code =
            c->dtype == ONX_INT8 || c->dtype == ONX_FLOAT8E4M3FN ? from[i] : onxi_packed_get(from, 4, i);
        const float y = c->dtype == ONX_INT8   ? (float)(int8_t)code
                        : c->dtype == ONX_INT4 ? (float)((int)(code ^ 8) - 8)
                                               : onx_small_float_to_f32((onx_dtype)c->dtype, (uint8_t)code);
        out[i] = rounded(work, y * scale_at(work, q, which, head, i));
    }
}

/* The bytes of a cache of this run, which is an output or in the workspace. */
static uint8_t *bytes_of(const onx_work *work, const paged *q, int which)
{
    onx_value *out = KEYS_OUT + (uint32_t)which < work->prepared->output_count ? work->outputs[KEYS_OUT + which] : NULL;
    return out ? out->data : (uint8_t *)work->workspace + q->of[which].copy_at;
}

/* ---- running ---- */

/* Where the tokens of a sequence are, and how many keys were there before. */
static onx_status range_of(onx_work *work, const paged *q, uint64_t sequence, uint64_t *from, uint64_t *to,
                           uint64_t *past)
{
    const int32_t *at = work->inputs[BORDERS]->data, before = ((const int32_t *)work->inputs[PAST]->data)[sequence];
    if (at[0] != 0 || (uint64_t)at[q->sequences] != q->tokens || at[sequence] < 0 || at[sequence + 1] < at[sequence] ||
        (uint64_t)at[sequence + 1] > q->tokens)
        return onx_work_fail(work, ONX_E_INVALID,
                             "sequence %llu has the tokens from %d to %d of %llu, expected borders from 0 to %llu",
                             (unsigned long long)sequence, (int)at[sequence], (int)at[sequence + 1],
                             (unsigned long long)q->tokens, (unsigned long long)q->tokens);
    *from = (uint64_t)at[sequence];
    *to = (uint64_t)at[sequence + 1];
    *past = (uint64_t)before;
    uint64_t room;
    if (before < 0 || !onxi_mul_u64(q->pages, q->page, &room) || *past + (*to - *from) > room)
        return onx_work_fail(work, ONX_E_INVALID,
                             "sequence %llu has %d keys in the cache and %llu more, expected room for them in %llu "
                             "pages of %llu",
                             (unsigned long long)sequence, (int)before, (unsigned long long)(*to - *from),
                             (unsigned long long)q->pages, (unsigned long long)q->page);
    if (q->pairs && *to > *from && *past + (*to - *from) > (uint64_t)work->inputs[COSINES]->dims[0])
        return onx_work_fail(work, ONX_E_INVALID, "sequence %llu has %llu positions, the tables of angles %lld",
                             (unsigned long long)sequence, (unsigned long long)(*past + (*to - *from)),
                             (long long)work->inputs[COSINES]->dims[0]);
    return ONX_OK;
}

/* The block of a page of a sequence; -1: none. */
static int64_t block_of(const onx_work *work, const paged *q, uint64_t sequence, uint64_t page)
{
    const int32_t block = ((const int32_t *)work->inputs[TABLE]->data)[sequence * q->pages + page];
    return block >= 0 && (uint64_t)block < q->blocks ? block : -1;
}

/* The vector of a head of a token, normalized and rotated: of a query (0), key (1) or value (2). */
static void take(const onx_work *work, const paged *q, uint32_t which, uint64_t token, uint64_t head, uint64_t position,
                 float *out)
{
    const uint64_t own = which ? q->kv_heads : q->heads, all = q->packed ? q->heads + 2 * q->kv_heads : own,
                   first = !q->packed || !which ? 0 : q->heads + (which - 1) * q->kv_heads;
    const onx_value *from = work->inputs[q->packed ? QUERY : which];
    float *space = (float *)(void *)((char *)work->thread_workspace + q->space_at), *x = space + q->size;
    onxi_ms_floats(from, (token * all + first + head) * q->size, q->size, out);
    if (which == VALUE)
        return;
    if (q->normalizes)
        onxi_ms_normalize(out, q->size, q->epsilon, work->inputs[which ? K_NORM : Q_NORM]);
    if (q->pairs) {
        const onxi_ms_angles by =
            onxi_ms_angles_of(work->inputs[COSINES], work->inputs[SINES], position, q->pairs, space);
        memcpy(x, out, q->size * sizeof *x);
        onxi_ms_turn(x + q->offset, out + q->offset, q->size - q->offset, q->pairs, q->interleaved, &by);
    }
    for (uint64_t i = 0; i < q->size && (q->normalizes || q->pairs); i++)
        out[i] = rounded(work, out[i]);
}

/* Copies a head's part of the caches, and adds the keys and values of all tokens. */
static onx_status update(onx_work *work, const paged *q, uint64_t head, onxi_pace *pace)
{
    const onx_value *slots = in(work, SLOTS);
    float *x = (float *)(void *)((char *)work->thread_workspace + q->query_at);
    const int caches = q->latent ? 1 : 2;
    for (int which = 0; which < caches; which++) {
        const cache *c = &q->of[which];
        const uint8_t *from = work->inputs[KEY_CACHE + which]->data;
        uint8_t *to = bytes_of(work, q, which);
        for (uint64_t i = 0; to != from && i < q->blocks * q->page && !onxi_pace_stops(pace, c->bytes / 8 + 4); i++)
            memcpy(to + i * c->row + head * c->bytes, from + i * c->row + head * c->bytes, c->bytes);
    }
    for (uint64_t s = 0; s < q->sequences; s++) {
        uint64_t from, to, past;
        ONX_TRY(range_of(work, q, s, &from, &to, &past));
        for (uint64_t t = from; t < to && !onxi_pace_stops(pace, q->size * 4); t++) {
            const uint64_t position = past + (t - from);
            const int64_t block = block_of(work, q, s, position / q->page);
            const int64_t slot = slots       ? ((const int32_t *)slots->data)[t]
                                 : block < 0 ? -1
                                             : block * (int64_t)q->page + (int64_t)(position % q->page);
            if (slot >= 0 && (uint64_t)slot >= q->blocks * q->page)
                return onx_work_fail(work, ONX_E_INVALID,
                                     "slot_mapping has %lld for token %llu, expected less than %llu", (long long)slot,
                                     (unsigned long long)t, (unsigned long long)(q->blocks * q->page));
            for (int which = 0; slot >= 0 && which < caches; which++) {
                take(work, q, KEY + (uint32_t)which, t, head, position, x);
                store(work, q, which, head, x,
                      bytes_of(work, q, which) + (uint64_t)slot * q->of[which].row + head * q->of[which].bytes);
            }
        }
    }
    return ONX_OK;
}

/* Some queries of a head of keys: tokens first .. first + count - 1 of a sequence, each with the heads of its group. */
typedef struct tile {
    uint64_t sequence, first, count, position, total; /* position: of the first token; total: keys */
    uint64_t head;
} tile;

/* Positions that a token sees: from .. to - 1. */
static void seen_by(const paged *q, const tile *t, uint64_t position, uint64_t *from, uint64_t *to)
{
    *to = q->causal ? position + 1 : t->total;
    *from = q->window > 0 && position + 1 > (uint64_t)q->window ? position + 1 - (uint64_t)q->window : 0;
}

static void attend_to_page(const onx_work *work, const paged *q, const tile *t, uint64_t page, uint64_t from,
                           uint64_t to)
{
    char *memory = work->thread_workspace;
    float *keys = (float *)(void *)(memory + q->key_at), *values = (float *)(void *)(memory + q->value_at);
    onxi_ms_query *states = (onxi_ms_query *)(void *)(memory + q->states_at);
    const int64_t block = block_of(work, q, t->sequence, page);
    const uint64_t start = page * q->page;
    if (block < 0)
        return;
    for (uint64_t i = from; i < to; i++) {
        const uint64_t slot = (uint64_t)block * q->page + i - start;
        for (int which = 0; which < (q->latent ? 1 : 2); which++)
            load(work, q, which, t->head,
                 bytes_of(work, q, which) + slot * q->of[which].row + t->head * q->of[which].bytes,
                 (which ? values : keys) + (i - from) * q->size);
    }
    const onx_value key_value = { .dtype = ONX_FLOAT, .data = keys },
                    value_value = { .dtype = ONX_FLOAT, .data = q->latent ? keys : values };
    const onxi_ms_rows k = { .in = { &key_value }, .step = { q->size }, .split = UINT64_MAX, .size = q->size },
                       v = { .in = { &value_value }, .step = { q->size }, .split = UINT64_MAX, .size = q->value_size };
    for (uint64_t i = 0; i < t->count; i++) {
        uint64_t low, high;
        seen_by(q, t, t->position + i, &low, &high);
        low = low > from ? low : from;
        high = high < to ? high : to;
        for (uint64_t h = 0; low < high && h < q->group; h++)
            onxi_ms_keys(&states[i * q->group + h], &k, &v, low - from, high - from);
    }
}

static void attend(const onx_work *work, const paged *q, const tile *t, onxi_pace *pace)
{
    char *memory = work->thread_workspace;
    float *queries = (float *)(void *)(memory + q->query_at), *sums = (float *)(void *)(memory + q->sum_at);
    onxi_ms_query *states = (onxi_ms_query *)(void *)(memory + q->states_at);
    const onx_value *sinks = in(work, SINK);
    uint64_t low, high, unused;
    for (uint64_t i = 0; i < t->count * q->group; i++) {
        const uint64_t token = i / q->group, head = t->head * q->group + i % q->group;
        take(work, q, 0, t->first + token, head, t->position + token, queries + i * q->size);
        states[i] = (onxi_ms_query){ .scores = &q->scores, .query = queries + i * q->size, .sum = sums + i * q->size };
        onxi_ms_begin(&states[i], q->value_size);
    }
    seen_by(q, t, t->position, &low, &unused);
    seen_by(q, t, t->position + t->count - 1, &unused, &high);
    for (uint64_t at = low; at < high;) {
        const uint64_t page = at / q->page, end = (page + 1) * q->page < high ? (page + 1) * q->page : high;
        if (onxi_pace_stops(pace, (end - at) * q->size * (4 + t->count * q->group)))
            return;
        attend_to_page(work, q, t, page, at, end);
        at = end;
    }
    for (uint64_t i = 0; i < t->count * q->group; i++) {
        const uint64_t head = t->head * q->group + i % q->group;
        onxi_ms_end(&states[i], q->value_size, sinks ? onxi_ms_float(sinks, head) : -INFINITY);
        onxi_ms_store(work->outputs[Y], ((t->first + i / q->group) * q->heads + head) * q->value_size, q->value_size,
                      states[i].sum);
    }
}

/* A row of work is a head of keys: its part of the caches is written first, then read. */
static onx_status paged_run(onx_work *work, uint64_t first, uint64_t last)
{
    const paged *q = work->params;
    onxi_pace pace = { .work = work };
    for (uint64_t head = first; head < last; head++) {
        ONX_TRY(update(work, q, head, &pace));
        for (uint64_t s = 0; s < q->sequences; s++) {
            uint64_t from, to, past;
            ONX_TRY(range_of(work, q, s, &from, &to, &past));
            for (uint64_t t = from; t < to && !onxi_pace_stops(&pace, q->size); t += TOGETHER) {
                const tile one = { .sequence = s,
                                   .first = t,
                                   .count = to - t < TOGETHER ? to - t : TOGETHER,
                                   .position = past + (t - from),
                                   .total = past + (to - from),
                                   .head = head };
                attend(work, q, &one, &pace);
            }
        }
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_paged[] = {
    MS_KERNEL("PagedAttention", .prepare = paged_prepare, .run = paged_run),
    { 0 },
};
