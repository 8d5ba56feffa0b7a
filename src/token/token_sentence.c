/* token_sentence.c - SentencePiece models: the messages, the normalization of texts, and decoding. */
#include "token/token.h"

/* ---- the fields of sentencepiece_model.proto that are needed ---- */

typedef struct piece_message {
    ONX_MESSAGE_HEAD(float score);
    onx_bytes piece;
    int32_t type;
} piece_message;

typedef struct trainer_message {
    ONX_MESSAGE_HEAD(int32_t model_type);
    onx_bytes unk_surface;
    int32_t treat_whitespace_as_suffix, byte_fallback, unk_id, bos_id, eos_id;
} trainer_message;

typedef struct normalizer_message {
    ONX_MESSAGE_HEAD(int32_t add_dummy_prefix);
    onx_bytes precompiled_charsmap;
    int32_t remove_extra_whitespaces, escape_whitespaces;
} normalizer_message;

typedef struct model_message {
    ONX_MESSAGE_HEAD(uint32_t piece_count);
    piece_message **pieces;
    trainer_message *trainer;
    normalizer_message *normalizer;
} model_message;

#define ONE(message, i, n, f, T)                                                                                       \
    {                                                                                                                  \
        .name = #f, .number = (n), .type = ONXI_##T, .offset = offsetof(message, f), .has = ONXI_ROW_BIT(i)            \
    }
static const onxi_field piece_fields[] = { ONE(piece_message, 0, 1, piece, STRING),
                                           ONE(piece_message, 1, 2, score, FLOAT),
                                           ONE(piece_message, 2, 3, type, INT32) };
static const uint8_t piece_numbers[] = { 0, 1, 2, 3 };
static const onxi_message_table piece_table = { .name = "SentencePiece",
                                                .fields = piece_fields,
                                                .field_count = 3,
                                                .size = sizeof(piece_message),
                                                .extra_size = sizeof(onx_extra),
                                                .singles = 7u << 28,
                                                .by_number = piece_numbers,
                                                .number_count = 4 };
static const onxi_field trainer_fields[] = {
    ONE(trainer_message, 0, 3, model_type, INT32),     ONE(trainer_message, 1, 24, treat_whitespace_as_suffix, INT32),
    ONE(trainer_message, 2, 35, byte_fallback, INT32), ONE(trainer_message, 3, 40, unk_id, INT32),
    ONE(trainer_message, 4, 41, bos_id, INT32),        ONE(trainer_message, 5, 42, eos_id, INT32),
    ONE(trainer_message, 6, 44, unk_surface, STRING)
};
static const uint8_t trainer_numbers[] = { [3] = 1, [24] = 2, [35] = 3, [40] = 4, [41] = 5, [42] = 6, [44] = 7 };
static const onxi_message_table trainer_table = { .name = "TrainerSpec",
                                                  .fields = trainer_fields,
                                                  .field_count = 7,
                                                  .size = sizeof(trainer_message),
                                                  .extra_size = sizeof(onx_extra),
                                                  .singles = 0x7fu << 24,
                                                  .by_number = trainer_numbers,
                                                  .number_count = 45 };
static const onxi_field normalizer_fields[] = { ONE(normalizer_message, 0, 2, precompiled_charsmap, BYTES),
                                                ONE(normalizer_message, 1, 3, add_dummy_prefix, INT32),
                                                ONE(normalizer_message, 2, 4, remove_extra_whitespaces, INT32),
                                                ONE(normalizer_message, 3, 5, escape_whitespaces, INT32) };
static const uint8_t normalizer_numbers[] = { 0, 0, 1, 2, 3, 4 };
static const onxi_message_table normalizer_table = { .name = "NormalizerSpec",
                                                     .fields = normalizer_fields,
                                                     .field_count = 4,
                                                     .size = sizeof(normalizer_message),
                                                     .extra_size = sizeof(onx_extra),
                                                     .singles = 0xfu << 27,
                                                     .by_number = normalizer_numbers,
                                                     .number_count = 6 };
#define PART(i, n, f, table)                                                                                           \
    .name = #f, .number = (n), .type = ONXI_MESSAGE, .offset = offsetof(model_message, f), .message = &(table)
static const onxi_field model_fields[] = {
    { PART(0, 1, pieces, piece_table), .flags = ONXI_REPEATED, .count_offset = offsetof(model_message, piece_count) },
    { PART(1, 2, trainer, trainer_table), .has = ONXI_ROW_BIT(1) },
    { PART(2, 3, normalizer, normalizer_table), .has = ONXI_ROW_BIT(2) },
};
static const uint8_t model_numbers[] = { 0, 1, 2, 3 };
static const onxi_message_table model_table = { .name = "ModelProto",
                                                .fields = model_fields,
                                                .field_count = 3,
                                                .size = sizeof(model_message),
                                                .extra_size = sizeof(onx_extra),
                                                .singles = 3u << 28,
                                                .lists = 1u << 30,
                                                .by_number = model_numbers,
                                                .number_count = 4 };

/* Defaults of absent fields. */
static int32_t number_or(uint32_t has, int row, int32_t value, int32_t fallback)
{
    return has & ONXI_ROW_BIT(row) ? value : fallback;
}

/* ---- reading ---- */

static onx_status add_pieces(onxi_tokenrun *run, const model_message *m)
{
    onx_tokenizer *t = run->tokenizer;
    t->tokens = ONXI_ARRAY(t->arena, onxi_token, m->piece_count + 1u);
    if (!t->tokens || !onxi_dict_reserve(&t->by_text, m->piece_count))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->piece_count; i++) {
        const piece_message *p = m->pieces[i];
        const int32_t type = number_or(p->has, 2, p->type, 1);
        if (type < 1 || type > 6 || (type == 5 && t->model == ONXI_MODEL_BPE))
            return onxi_token_fail(run, ONX_E_UNSUPPORTED, "piece %u is of type %d", i, (int)type);
        ONX_TRY(onxi_token_add(run, onx_view(p->piece), i, (double)p->score, (onxi_token_kind)(type - 1)));
        if (type == 2 && t->unknown == ONXI_NO_TOKEN)
            t->unknown = i;
    }
    return ONX_OK;
}

/* Adds the token for the beginning of a text, if the file has one. */
static onx_status add_begin(onxi_tokenrun *run, int32_t id)
{
    onx_tokenizer *t = run->tokenizer;
    if (id < 0 || (uint32_t)id >= t->count || t->tokens[id].kind != ONXI_TOKEN_CONTROL)
        return ONX_OK;
    t->before = ONXI_ARRAY(t->arena, uint32_t, 1);
    if (!t->before)
        return ONX_E_MEMORY;
    t->before[t->before_count++] = (uint32_t)id;
    return ONX_OK;
}

static onx_status read_model(onxi_tokenrun *run, const model_message *m)
{
    static const trainer_message plain_trainer = { .has = 0 };
    static const normalizer_message plain_normalizer = { .has = 0 };
    onx_tokenizer *t = run->tokenizer;
    const trainer_message *trainer = m->trainer ? m->trainer : &plain_trainer;
    const normalizer_message *n = m->normalizer ? m->normalizer : &plain_normalizer;
    const int32_t kind = number_or(trainer->has, 0, trainer->model_type, 1);
    if (kind != 1 && kind != 2)
        return onxi_token_fail(run, ONX_E_UNSUPPORTED, "model_type is %d, expected UNIGRAM (1) or BPE (2)", (int)kind);
    t->sentencepiece = t->narrow = true;
    t->by_score = kind == 2;
    t->model = kind == 2 ? ONXI_MODEL_BPE : ONXI_MODEL_UNIGRAM;
    t->byte_fallback = number_or(trainer->has, 2, trainer->byte_fallback, 0) != 0;
    t->as_suffix = number_or(trainer->has, 1, trainer->treat_whitespace_as_suffix, 0) != 0;
    t->unknown_surface = trainer->has & ONXI_ROW_BIT(6) ? onx_view(trainer->unk_surface) : onx_str_of(" \xe2\x81\x87 ");
    t->sentence.flag = number_or(n->has, 1, n->add_dummy_prefix, 1) != 0;
    t->sentence.second = number_or(n->has, 2, n->remove_extra_whitespaces, 1) != 0;
    t->sentence.third = number_or(n->has, 3, n->escape_whitespaces, 1) != 0;
    ONX_TRY(onxi_charsmap_read(run, onx_view(n->precompiled_charsmap), &t->sentence.map));
    ONX_TRY(add_pieces(run, m));
    ONX_TRY(add_begin(run, number_or(trainer->has, 4, trainer->bos_id, 1)));
    return onxi_model_ready(run);
}

onx_status onxi_tokenizer_read_sentence(onxi_tokenrun *run, onx_str bytes)
{
    model_message m = { .has = 0 };
    const onxi_diag_mark mark = onxi_diag_here(run->cx);
    ONX_TRY(onxi_wire_read(run->cx, run->tokenizer->arena, &model_table, bytes, 0, 1, &m));
    onxi_diag_rewind(run->cx, mark); /* drops notes about fields that are not needed */
    if (!m.piece_count)
        return onxi_token_fail(run, ONX_E_MALFORMED, "it is no JSON, and as a SentencePiece model it has no pieces");
    return read_model(run, &m);
}

/* ---- encoding ---- */

/* The marker for the start of a text, and its length. */
static size_t next_part(const onx_tokenizer *t, onx_str text, onx_str *out)
{
    uint32_t ignored;
    size_t n = onxi_trie_longest(&t->user, text, &ignored);
    if (n) {
        *out = onx_str_make(text.ptr, n);
        return n;
    }
    n = onxi_charsmap_find(&t->sentence.map, text, out);
    if (n)
        return n;
    n = onxi_rune_size(text.ptr, onxi_str_end(text));
    *out = n > 1 || (uint8_t)*text.ptr < 0x80 ? onx_str_make(text.ptr, n) : onx_str_of("\xef\xbf\xbd");
    return n;
}

static bool add_escaped(onxi_chars *out, onx_str part, onx_str blank)
{
    for (size_t i = 0; i < part.len; i++)
        if (!onxi_chars_add(out, part.ptr[i] == ' ' ? blank : onx_str_make(part.ptr + i, 1)))
            return false;
    return true;
}

onx_status onxi_sentence_normalize(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    const onx_tokenizer *t = run->tokenizer;
    const onx_str blank = onx_str_of(step->third ? "\xe2\x96\x81" : " ");
    onxi_chars made = { .arena = run->arena };
    bool begun = false, after_blank = step->second;
    for (size_t at = 0; at < text.len;) {
        onx_str part;
        at += next_part(t, onxi_str_from(text, at), &part);
        if (!begun && step->second && onx_str_is(part, " "))
            continue;
        if (!begun && step->flag && !t->as_suffix && !onxi_chars_add(&made, blank))
            return ONX_E_MEMORY;
        begun = true;
        while (after_blank && part.len && *part.ptr == ' ')
            part = onxi_str_from(part, 1);
        if (!add_escaped(&made, part, blank))
            return ONX_E_MEMORY;
        if (part.len)
            after_blank = part.ptr[part.len - 1] == ' ';
        after_blank = after_blank && step->second;
    }
    while (step->second && made.len >= blank.len && memcmp(made.ptr + made.len - blank.len, blank.ptr, blank.len) == 0)
        made.len -= blank.len;
    if (begun && step->flag && t->as_suffix && !onxi_chars_add(&made, blank))
        return ONX_E_MEMORY;
    *out = onxi_chars_view(&made);
    return ONX_OK;
}

/* ---- decoding ---- */

typedef struct back {
    onxi_chars *out;
    onxi_chars bytes; /* of consecutive byte tokens */
    bool begin;       /* nothing was written yet: the leading space is dropped */
    bool blank_seen;
} back;

/* Writes complete characters, and U+FFFD for each byte that is not part of one. */
static bool end_bytes(back *b)
{
    const char *end = onxi_str_end(onxi_chars_view(&b->bytes));
    for (const char *p = b->bytes.ptr; p != end;)
        if (!onxi_chars_put(b->out, onxi_rune_next(&p, end)))
            return false;
    b->bytes.len = 0;
    return true;
}

static bool add_piece(const onx_tokenizer *t, back *b, onx_str piece)
{
    const onx_str blank = onx_str_of("\xe2\x96\x81");
    b->blank_seen = false;
    if (b->begin && (t->sentence.flag || t->sentence.second) && !t->as_suffix && onxi_starts_with(piece, blank)) {
        piece = onxi_str_from(piece, blank.len);
        b->blank_seen = !t->sentence.second;
    }
    for (size_t i = 0; i < piece.len; i++) {
        const bool is_blank = onxi_starts_with(onxi_str_from(piece, i), blank);
        if (!onxi_chars_add(b->out, is_blank ? onx_str_of(" ") : onx_str_make(piece.ptr + i, 1)))
            return false;
        i += is_blank ? blank.len - 1 : 0;
    }
    return true;
}

onx_status onxi_sentence_decode(onxi_tokenrun *run, const int64_t *ids, uint64_t count, bool special, onxi_chars *out)
{
    const onx_tokenizer *t = run->tokenizer;
    back b = { .out = out, .bytes = { .arena = run->arena }, .begin = true };
    for (uint64_t i = 0; i < count; i++) {
        const onxi_token *token = ids[i] < 0 ? NULL : onxi_map_find(&t->by_id, (uint64_t)ids[i]);
        if (!token)
            continue;
        const int byte = token->kind == ONXI_TOKEN_BYTE ? onxi_byte_token(token->text) : -1;
        const char c = (char)byte;
        if (byte >= 0 ? !onxi_chars_add(&b.bytes, onx_str_make(&c, 1)) : !end_bytes(&b))
            return ONX_E_MEMORY;
        if (byte >= 0)
            continue;
        if (b.blank_seen || out->len)
            b.begin = false;
        const bool control = token->kind == ONXI_TOKEN_CONTROL, unknown = token->kind == ONXI_TOKEN_UNKNOWN;
        if ((control || unknown)
                ? ((unknown || special) && !onxi_chars_add(out, unknown ? t->unknown_surface : token->text))
                : !add_piece(t, &b, token->text))
            return ONX_E_MEMORY;
    }
    return end_bytes(&b) ? ONX_OK : ONX_E_MEMORY;
}
