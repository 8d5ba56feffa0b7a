/* sentence.c - SentencepieceTokenizer and SentencepieceDecoder. */
#include "kernel/contrib/token.h"

enum { TEXT, SAMPLES, ALPHA, ADD_BOS, ADD_EOS, REVERSED, FAIRSEQ };

typedef struct params {
    onx_tokenizer *tokenizer;
    int64_t bos, eos; /* -1: there is none */
} params;

static void release(void *at)
{
    params *q = at;
    if (q)
        onx_tokenizer_free(q->tokenizer);
}

static onx_status prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    const onx_str model = onx_prepare_text(p, "model");
    q->bos = q->eos = -1;
    ONX_TRY(onxi_contrib_not_output(p, 2, "where tokens are in the text"));
    ONX_TRY(onxi_contrib_unread(p, onxi_tokenizer_of_model(p->cx, model, &q->tokenizer)));
    (void)onx_tokenizer_id(q->tokenizer, onx_str_of("<s>"), &q->bos);
    (void)onx_tokenizer_id(q->tokenizer, onx_str_of("</s>"), &q->eos);
    p->params = q;
    return ONX_OK;
}

/* ---- ids of fairseq: those of the model plus one, except the first few ---- */

static int64_t to_fairseq(int64_t id)
{
    return id == 0 ? 3 : id == 1 ? 0 : id == 2 ? 2 : id + 1;
}

static int64_t from_fairseq(int64_t id)
{
    return id == 3 ? 0 : id == 0 ? 1 : id == 2 ? 2 : id - 1;
}

/* ---- encoding ---- */

typedef struct order {
    bool bos, eos, reversed, fairseq;
} order;

static onx_status want(onx_work *work, bool wanted, int64_t id, const char *name)
{
    return wanted && id < 0 ? onx_work_fail(work, ONX_E_INVALID, "the model has no token %s", name) : ONX_OK;
}

static onx_status read_order(onx_work *work, order *o)
{
    const params *q = work->params;
    ONX_TRY(onxi_contrib_flag(work, ADD_BOS, false, &o->bos));
    ONX_TRY(onxi_contrib_flag(work, ADD_EOS, false, &o->eos));
    ONX_TRY(onxi_contrib_flag(work, REVERSED, false, &o->reversed));
    ONX_TRY(onxi_contrib_flag(work, FAIRSEQ, false, &o->fairseq));
    ONX_TRY(want(work, o->bos, q->bos, "<s>"));
    return want(work, o->eos, q->eos, "</s>");
}

/* Appends the ids of a text. Reversing includes the tokens around it. */
static onx_status encode(onx_work *work, const order *o, onxi_tokenrun *run, onx_str text)
{
    const params *q = work->params;
    const uint64_t from = run->id_count;
    const bool first = o->reversed ? o->eos : o->bos, last = o->reversed ? o->bos : o->eos;
    if (first && !onxi_token_id(run, (uint32_t)(o->reversed ? q->eos : q->bos)))
        return ONX_E_MEMORY;
    const uint64_t begin = run->id_count;
    ONX_TRY(onxi_token_encode(run, text, false));
    for (uint64_t i = begin, k = run->id_count; o->reversed && i + 1 < k; i++, k--) {
        const int64_t id = run->ids[i];
        run->ids[i] = run->ids[k - 1];
        run->ids[k - 1] = id;
    }
    if (last && !onxi_token_id(run, (uint32_t)(o->reversed ? q->bos : q->eos)))
        return ONX_E_MEMORY;
    for (uint64_t i = from; o->fairseq && !o->reversed && i < run->id_count; i++)
        run->ids[i] = to_fairseq(run->ids[i]);
    return ONX_OK;
}

static onx_status encode_all(onx_work *work, onxi_tokenrun *run)
{
    const onx_value *x = work->inputs[TEXT];
    const int64_t places = (int64_t)x->count + 1;
    order o;
    ONX_TRY(read_order(work, &o));
    ONX_TRY(onxi_value_size(work->outputs[1], ONX_INT64, 1, &places));
    int64_t *place = work->outputs[1]->data;
    place[0] = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        ONX_TRY(onxi_contrib_undone(work, encode(work, &o, run, ((const onx_str *)x->data)[i]), i));
        place[i + 1] = (int64_t)run->id_count;
    }
    const int64_t count = (int64_t)run->id_count;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT32, 1, &count));
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)work->outputs[0]->data)[i] = (int32_t)run->ids[i];
    return ONX_OK;
}

static onx_status tokenizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    onx_arena *arena;
    (void)first, (void)last;
    ONX_TRY(onx_arena_new(work->cx, &arena));
    onxi_tokenrun run = { .cx = work->cx, .arena = arena, .tokenizer = q->tokenizer };
    const onx_status status = encode_all(work, &run);
    onxi_token_end(&run);
    onx_arena_free(arena);
    return status;
}

/* ---- decoding ---- */

static onx_status decode(onx_work *work, onx_arena *arena, bool fairseq)
{
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    const int64_t *from = x->data, one = 1;
    const uint64_t size = onx_tokenizer_size(q->tokenizer);
    int64_t *ids = onxi_arena_array(arena, x->count + 1, sizeof *ids);
    if (!ids)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        const bool far = from[i] < 0 || from[i] > INT32_MAX;
        ids[i] = fairseq && !far ? from_fairseq(from[i]) : from[i];
        if (far || ids[i] < 0 || (uint64_t)ids[i] >= size)
            return onx_work_fail(work, ONX_E_INVALID, "id %lld at position %llu is outside of %llu tokens",
                                 (long long)from[i], (unsigned long long)i, (unsigned long long)size);
    }
    onxi_tokenrun run = { .cx = work->cx, .arena = arena, .tokenizer = q->tokenizer, .word = { .arena = arena } };
    onxi_chars made = { .arena = work->text };
    const onx_status status = onxi_token_decode(&run, ids, x->count, false, &made);
    onxi_token_end(&run);
    ONX_TRY(status);
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &one));
    *(onx_str *)work->outputs[0]->data = onxi_chars_view(&made);
    return ONX_OK;
}

static onx_status decoder_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0];
    onx_arena *arena;
    bool fairseq;
    (void)first, (void)last;
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return onx_work_fail(work, ONX_E_INVALID, "the ids have rank %u, and are no [n] or [1,n]", x->rank);
    ONX_TRY(onxi_contrib_flag(work, 1, false, &fairseq));
    ONX_TRY(onx_arena_new(work->cx, &arena));
    const onx_status status = decode(work, arena, fairseq);
    onx_arena_free(arena);
    return status;
}

const onx_kernel onxi_kernels_contrib_sentence[] = {
    CONTRIB_KERNEL("SentencepieceTokenizer", .prepare = prepare, .run = tokenizer_run, .release = release,
                   .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("SentencepieceDecoder", .prepare = prepare, .run = decoder_run, .release = release,
                   .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
