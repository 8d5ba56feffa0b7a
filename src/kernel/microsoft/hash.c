/* hash.c - NGramHashMapping and VarlenNGramHashMapping: hashes of each token and those before it, of sequences in rows
 * or packed along one axis. */
#include "kernel/microsoft/microsoft.h"

/* Input indices of the two operators; 0: it has no such input. */
typedef struct places {
    uint32_t borders, past, offsets, eos, segments, past_segments, counts;
} places;

typedef struct params {
    const places *at;
    uint64_t sequences, tokens, before, heads; /* before: preceding tokens; heads per n-gram size */
    uint64_t capacity;
    int64_t pad;
    bool resets; /* at tokens that end a text */
} params;

enum { IDS, FACTORS, SIZES };

/* A sequence: its number and its tokens; `fill` is the id of what is not there. */
typedef struct sequence {
    uint64_t number, from, length;
    int64_t fill;
} sequence;

static int64_t id_at(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_INT64 ? ((const int64_t *)v->data)[i] : ((const int32_t *)v->data)[i];
}

static void put_id(onx_value *v, uint64_t i, int64_t id)
{
    if (v->dtype == ONX_INT64)
        ((int64_t *)v->data)[i] = id;
    else
        ((int32_t *)v->data)[i] = (int32_t)(uint32_t)(uint64_t)id;
}

static const onx_value *given(const onx_work *work, uint32_t i)
{
    return i ? onxi_operand(work->prepared->input_count, work->inputs, i) : NULL;
}

static bool fits(const onx_prepare *p, uint32_t i, uint64_t count)
{
    const onx_value *v = i ? onxi_operand(p->input_count, p->inputs, i) : NULL;
    return !v || v->count == count;
}

static onx_status hash_prepare(onx_prepare *p)
{
    const onx_value *ids = p->inputs[IDS];
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->at = p->kernel->body;
    const onx_value *borders = q->at->borders ? p->inputs[q->at->borders] : NULL,
                    *counts = q->at->counts ? onxi_operand(p->input_count, p->inputs, q->at->counts) : NULL;
    const int64_t capacity = borders ? onx_prepare_int(p, "state_update_capacity") : 0;
    q->before = (uint64_t)onx_prepare_int(p, "max_ngram_size") - 1;
    q->heads = (uint64_t)onx_prepare_int(p, "n_head_per_ngram");
    q->pad = onx_prepare_int(p, "pad_id");
    q->resets = onx_prepare_is_set(p, "reset_on_eos");
    if (ids->dtype == ONX_INT32 && (q->pad < INT32_MIN || q->pad > INT32_MAX))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute pad_id is %lld, which is no id of 32 bits",
                                (long long)q->pad);
    if (capacity < 0 || capacity > 8 || (borders && (borders->rank != 1 || borders->dims[0] < 1)) ||
        (capacity > 0) != (counts != NULL))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "attribute state_update_capacity is %lld %s capture_count, or there are no borders",
                                (long long)capacity, counts ? "with" : "without");
    q->capacity = (uint64_t)capacity;
    q->tokens = ids->count;
    q->sequences = borders ? (uint64_t)borders->dims[0] - 1 : (uint64_t)ids->dims[0];
    const uint64_t all = p->inputs[SIZES]->count;
    uint64_t held, of_sizes;
    if (!onxi_mul_u64(q->sequences, q->before, &held) || !onxi_mul_u64(q->before, q->heads, &of_sizes) ||
        of_sizes != all || p->inputs[FACTORS]->count <= q->before || !onxi_ms_gives(p, 0, q->tokens, all, 1) ||
        !onxi_ms_gives(p, 1, q->sequences, q->before, 1) || !onxi_ms_gives(p, 2, q->sequences, q->before, 1) ||
        !onxi_ms_gives(p, 3, q->sequences, q->capacity, q->before) || !fits(p, q->at->past, held) ||
        !fits(p, q->at->past_segments, held) || !fits(p, q->at->offsets, all) || !fits(p, q->at->eos, 1) ||
        !fits(p, q->at->segments, q->tokens) || !fits(p, q->at->counts, q->sequences))
        return onx_prepare_fail(p, ONX_E_INVALID, "an operand does not fit %llu sequences and n-grams of up to %llu",
                                (unsigned long long)q->sequences, (unsigned long long)q->before + 1);
    p->params = q;
    p->rows = q->sequences;
    return ONX_OK;
}

/* Reads `own` at a position of the sequence, or `past` before its beginning. False: there is nothing. */
static bool read_at(const params *q, const sequence *s, const onx_value *own, const onx_value *past, int64_t position,
                    int64_t *out)
{
    if (position >= 0)
        *out = id_at(own, s->from + (uint64_t)position);
    else if (past && (uint64_t)-position <= q->before)
        *out = id_at(past, s->number * q->before + q->before - (uint64_t)-position);
    else
        return false;
    return true;
}

/* Does another segment begin after the position? */
static bool ends_segment(const onx_work *work, const params *q, const sequence *s, int64_t position)
{
    const onx_value *own = given(work, q->at->segments), *past = given(work, q->at->past_segments);
    int64_t here, next;
    return own && read_at(q, s, own, past, position, &here) && read_at(q, s, own, past, position + 1, &next) &&
           here != next;
}

static int64_t history(const onx_work *work, const params *q, const sequence *s, int64_t position)
{
    int64_t id;
    return read_at(q, s, work->inputs[IDS], given(work, q->at->past), position, &id) ? id : s->fill;
}

/* The remainder has the sign of the size, which is positive. */
static int64_t remainder_of(int64_t a, int64_t size)
{
    const int64_t r = a % size;
    return r < 0 ? r + size : r;
}

/* The hashes of a token: one for each n-gram size and head. Nothing before a cut counts. */
static void hash_token(const onx_work *work, const params *q, const sequence *s, uint64_t token)
{
    const onx_value *sizes = work->inputs[SIZES], *offsets = given(work, q->at->offsets);
    onx_value *hashes = work->outputs[0];
    const bool ends = q->resets && given(work, q->at->eos);
    uint64_t mix = 0;
    bool cut = false;
    for (uint64_t back = 0; back <= q->before; back++) {
        const int64_t position = (int64_t)token - (int64_t)back;
        cut = cut || (back && ends_segment(work, q, s, position));
        const int64_t id = cut ? s->fill : history(work, q, s, position);
        cut = cut || (back && ends && id == s->fill);
        mix ^= (uint64_t)id * (uint64_t)id_at(work->inputs[FACTORS], back);
        const int64_t whole = hashes->dtype == ONX_INT64 ? (int64_t)mix : (int64_t)(int32_t)(uint32_t)mix;
        for (uint64_t h = 0; back && h < q->heads; h++) {
            const uint64_t head = (back - 1) * q->heads + h;
            const uint64_t hash =
                (uint64_t)remainder_of(whole, id_at(sizes, head)) + (offsets ? (uint64_t)id_at(offsets, head) : 0);
            put_id(hashes, (s->from + token) * sizes->count + head, (int64_t)hash);
        }
    }
}

/* Writes what the next call needs: the last ids, and their segments. */
static void hand_on(const onx_work *work, const params *q, const sequence *s)
{
    const onx_prepared *p = work->prepared;
    onx_value *ids = p->output_count > 1 ? work->outputs[1] : NULL,
              *segments = p->output_count > 2 ? work->outputs[2] : NULL,
              *update = p->output_count > 3 ? work->outputs[3] : NULL;
    const onx_value *own = given(work, q->at->segments), *counts = given(work, q->at->counts);
    for (uint64_t i = 0; i < q->before; i++) {
        const int64_t position = (int64_t)(s->length + i) - (int64_t)q->before;
        int64_t segment = own && s->length ? id_at(own, s->from) : 0; /* what came before belongs to the first one */
        if (ids)
            put_id(ids, s->number * q->before + i, history(work, q, s, position));
        if (segments && own)
            (void)read_at(q, s, own, given(work, q->at->past_segments), position, &segment);
        if (segments)
            put_id(segments, s->number * q->before + i, segment);
    }
    const int64_t count = counts ? id_at(counts, s->number) : 0;
    for (uint64_t k = 0; update && k < q->capacity; k++)
        for (uint64_t i = 0; i < q->before; i++)
            put_id(update, (s->number * q->capacity + k) * q->before + i,
                   (int64_t)k < count && k < s->length ? history(work, q, s, (int64_t)(k + 1 + i) - (int64_t)q->before)
                                                       : q->pad);
}

static onx_status find_sequence(onx_work *work, const params *q, uint64_t number, sequence *s)
{
    const onx_value *borders = given(work, q->at->borders), *eos = given(work, q->at->eos);
    *s = (sequence){ .number = number, .fill = eos ? id_at(eos, 0) : q->pad };
    if (!borders) {
        s->length = q->tokens / q->sequences;
        s->from = number * s->length;
        return ONX_OK;
    }
    const int64_t from = id_at(borders, number), to = id_at(borders, number + 1);
    if (id_at(borders, 0) != 0 || (uint64_t)id_at(borders, q->sequences) != q->tokens || from < 0 || to < from ||
        (uint64_t)to > q->tokens)
        return onx_work_fail(work, ONX_E_INVALID,
                             "sequence %llu has the tokens from %lld to %lld of %llu, expected borders from 0 to %llu",
                             (unsigned long long)number, (long long)from, (long long)to, (unsigned long long)q->tokens,
                             (unsigned long long)q->tokens);
    s->from = (uint64_t)from;
    s->length = (uint64_t)(to - from);
    return ONX_OK;
}

/* A row of work is a sequence. */
static onx_status hash_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    const onx_value *sizes = work->inputs[SIZES];
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < sizes->count; i++)
        if (id_at(sizes, i) < 1)
            return onx_work_fail(work, ONX_E_INVALID, "vocabulary %llu has %lld entries", (unsigned long long)i,
                                 (long long)id_at(sizes, i));
    for (uint64_t row = first; row < last; row++) {
        sequence s;
        ONX_TRY(find_sequence(work, q, row, &s));
        for (uint64_t t = 0; t < s.length && !onxi_pace_stops(&pace, (q->before + sizes->count + 1) * 8); t++)
            hash_token(work, q, &s, t);
        hand_on(work, q, &s);
    }
    return ONX_OK;
}

static const places rows = { .past = 3, .offsets = 4, .eos = 5, .segments = 6 }, packed = {
    .borders = 3, .past = 4, .offsets = 5, .eos = 6, .segments = 7, .past_segments = 8, .counts = 9
};

const onx_kernel onxi_kernels_microsoft_hash[] = {
    MS_KERNEL("NGramHashMapping", .prepare = hash_prepare, .run = hash_run, .body = &rows),
    MS_KERNEL("VarlenNGramHashMapping", .prepare = hash_prepare, .run = hash_run, .body = &packed),
    { 0 },
};
