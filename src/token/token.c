/* token.c - the public interface: a tokenizer made from the bytes of a file, and the processing of a text. */
#include "token/token.h"

#include <stdio.h>

onx_status onxi_token_fail(const onxi_tokenrun *run, onx_status status, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return onxi_fail(run->cx, status, ONXI_NOWHERE, "tokenizer: %s", text);
}

bool onxi_token_id(onxi_tokenrun *run, uint32_t id)
{
    if (!ONXI_GROW_IN(run->arena, run->ids, run->id_room, run->id_count + 1))
        return false;
    run->ids[run->id_count++] = id;
    return true;
}

bool onxi_token_piece(onxi_tokenrun *run, onx_str text, uint32_t id, bool first)
{
    if (!text.len)
        return true;
    if (!ONXI_GROW_IN(run->arena, run->next.list, run->next.room, run->next.count + 1))
        return false;
    run->next.list[run->next.count++] = (onxi_piece){ .text = text, .id = id, .first = first };
    return true;
}

/* ---- encoding ---- */

static void turn(onxi_tokenrun *run)
{
    const onxi_pieces done = run->now;
    run->now = run->next;
    run->next = done;
    run->next.count = 0;
}

/* Applies a step to every piece that is not a token yet. */
static onx_status split_all(onxi_tokenrun *run, const onxi_token_step *step)
{
    for (uint64_t i = 0; i < run->now.count; i++) {
        const onxi_piece p = run->now.list[i];
        run->first = p.first;
        if (p.id == ONXI_NO_TOKEN)
            ONX_TRY(step->row->run(run, step, p.text, NULL));
        else if (!onxi_token_piece(run, p.text, p.id, false))
            return ONX_E_MEMORY;
    }
    turn(run);
    return ONX_OK;
}

/* Splits off added tokens first; the text between them is normalized, and may contain further ones. */
static onx_status cut_added(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    ONX_TRY(onxi_added_cut(run, &t->raw, text, true));
    turn(run);
    for (uint64_t i = 0; i < run->now.count; i++) {
        onxi_piece p = run->now.list[i];
        if (p.id == ONXI_NO_TOKEN) {
            ONX_TRY(onxi_normalize(run, p.text, &p.text));
            ONX_TRY(onxi_added_cut(run, &t->normal, p.text, p.first));
        } else if (!onxi_token_piece(run, p.text, p.id, false)) {
            return ONX_E_MEMORY;
        }
    }
    turn(run);
    return ONX_OK;
}

static onx_status encode_pieces(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    if (t->sentencepiece) {
        ONX_TRY(onxi_sentence_normalize(run, &t->sentence, text, &text));
        return onxi_model_encode(run, text);
    }
    ONX_TRY(cut_added(run, text));
    for (uint32_t i = 0; i < t->splitters.count; i++)
        ONX_TRY(split_all(run, &t->splitters.list[i]));
    for (uint64_t i = 0; i < run->now.count; i++) {
        const onxi_piece *p = &run->now.list[i];
        if (p->id == ONXI_NO_TOKEN)
            ONX_TRY(onxi_model_encode(run, p->text));
        else if (!onxi_token_id(run, p->id))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

onx_status onxi_token_encode(onxi_tokenrun *run, onx_str text, bool special)
{
    const onx_tokenizer *t = run->tokenizer;
    const size_t valid = onxi_utf8_valid(text);
    if (valid != text.len)
        return onxi_token_fail(run, ONX_E_INVALID, "byte %zu of the text is not UTF-8", valid);
    run->word.arena = run->arena;
    for (uint32_t i = 0; special && i < t->before_count; i++)
        if (!onxi_token_id(run, t->before[i]))
            return ONX_E_MEMORY;
    if (text.len)
        ONX_TRY(encode_pieces(run, text));
    for (uint32_t i = 0; special && i < t->after_count; i++)
        if (!onxi_token_id(run, t->after[i]))
            return ONX_E_MEMORY;
    return ONX_OK;
}

void onxi_token_end(onxi_tokenrun *run)
{
    onxi_matcher_free(run->matcher);
    run->matcher = NULL;
}

/* ---- the public face ---- */

static void free_steps(const onxi_token_steps *steps)
{
    for (uint32_t i = 0; i < steps->count; i++)
        onxi_regex_free(steps->list[i].regex);
}

void onx_tokenizer_free(onx_tokenizer *t)
{
    if (!t)
        return;
    onx_ctx *cx = t->cx;
    free_steps(&t->normalizers);
    free_steps(&t->splitters);
    free_steps(&t->decoders);
    onx_arena_free(t->answer);
    onx_arena_free(t->arena);
    onxi_release(cx, t, sizeof *t);
}

static onx_status fill(onx_tokenizer *t, onx_arena *scratch, onx_str bytes)
{
    onx_bytes kept;
    onxi_tokenrun run = { .cx = t->cx, .arena = scratch, .tokenizer = t, .word = { .arena = scratch } };
    ONX_TRY(onx_arena_keep(t->arena, bytes, &kept));
    bytes = onx_view(kept);
    size_t at = onxi_starts_with(bytes, onx_str_of("\xef\xbb\xbf")) ? 3 : 0;
    while (at < bytes.len && memchr(" \t\r\n", bytes.ptr[at], 4))
        at++;
    /* A SentencePiece model begins with the tag of a piece, which is white space or none of these. */
    const bool is_json = at < bytes.len && memchr("{[\"", bytes.ptr[at], 3);
    const onx_status status =
        is_json ? onxi_tokenizer_read_json(&run, bytes) : onxi_tokenizer_read_sentence(&run, bytes);
    onxi_token_end(&run);
    return status;
}

static onx_status tokenizer_new(onx_ctx *cx, onx_str bytes, onx_tokenizer **out)
{
    onx_arena *scratch;
    onx_tokenizer *t = onxi_resize(cx, NULL, 0, sizeof *t);
    if (!t)
        return ONX_E_MEMORY;
    memset(t, 0, sizeof *t);
    t->cx = cx;
    t->unknown = ONXI_NO_TOKEN;
    *out = t; /* the caller frees it on failure */
    ONX_TRY(onx_arena_new(cx, &t->arena));
    t->by_text = onxi_dict_in_arena(t->arena);
    t->by_id = onxi_map_in_arena(t->arena);
    t->merges = onxi_map_in_arena(t->arena);
    ONX_TRY(onx_arena_new(cx, &t->answer));
    ONX_TRY(onx_arena_new(cx, &scratch));
    const onx_status status = fill(t, scratch, bytes);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_tokenizer_new(onx_ctx *cx, onx_str bytes, onx_tokenizer **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_tokenizer_free, tokenizer_new(cx, bytes, out));
}

uint64_t onx_tokenizer_size(const onx_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->size : 0;
}

bool onx_tokenizer_token(const onx_tokenizer *tokenizer, int64_t id, onx_str *text_out)
{
    const onxi_token *token = tokenizer && id >= 0 ? onxi_map_find(&tokenizer->by_id, (uint64_t)id) : NULL;
    if (!token || !text_out)
        return false;
    *text_out = token->text;
    return true;
}

bool onx_tokenizer_id(const onx_tokenizer *tokenizer, onx_str token, int64_t *id_out)
{
    if (!tokenizer || !id_out)
        return false;
    for (uint32_t i = 0; i < tokenizer->added_count; i++)
        if (onx_str_equal(tokenizer->added[i].text, token)) {
            *id_out = tokenizer->added[i].id;
            return true;
        }
    const onxi_dict_entry *e = onxi_dict_find(&tokenizer->by_text, token);
    if (e)
        *id_out = tokenizer->tokens[e->value].id;
    return e != NULL;
}

static onx_status encode(onx_tokenizer *t, onx_str text, bool special, const int64_t **ids_out, uint64_t *count_out)
{
    *ids_out = NULL;
    *count_out = 0;
    onxi_arena_reset(t->answer);
    onxi_tokenrun run = { .cx = t->cx, .arena = t->answer, .tokenizer = t };
    const onx_status status = onxi_token_encode(&run, text, special);
    onxi_token_end(&run);
    ONX_TRY(status);
    *ids_out = run.ids;
    *count_out = run.id_count;
    return ONX_OK;
}

onx_status onx_tokenizer_encode(onx_tokenizer *tokenizer, onx_str text, bool special, const int64_t **ids_out,
                                uint64_t *count_out)
{
    if (!tokenizer)
        return ONX_E_MISUSE;
    ONXI_NEED(tokenizer->cx, ids_out);
    ONXI_NEED(tokenizer->cx, count_out);
    ONXI_CALL(tokenizer->cx, encode(tokenizer, text, special, ids_out, count_out));
}

static onx_status decode(onx_tokenizer *t, const int64_t *ids, uint64_t count, bool special, onx_buffer *out)
{
    onx_arena *arena;
    ONX_TRY(onx_arena_new(t->cx, &arena));
    onxi_tokenrun run = { .cx = t->cx, .arena = arena, .tokenizer = t, .word = { .arena = arena } };
    onxi_chars made = { .arena = arena };
    size_t size = 0;
    onx_status status = onxi_token_decode(&run, ids, count, special, &made);
    onxi_token_end(&run);
    void *base = status == ONX_OK ? onxi_buffer_take(t->cx, made.len + 1, &size) : NULL;
    if (status == ONX_OK && !base)
        status = ONX_E_MEMORY;
    if (base) {
        if (made.len)
            memcpy(base, made.ptr, made.len);
        *out = (onx_buffer){ .ptr = base, .len = made.len, .base = base, .base_size = size, .cx = t->cx };
    }
    onx_arena_free(arena);
    return status;
}

onx_status onx_tokenizer_decode(onx_tokenizer *tokenizer, const int64_t *ids, uint64_t count, bool special,
                                onx_buffer *out)
{
    if (!tokenizer)
        return ONX_E_MISUSE;
    ONXI_NEED(tokenizer->cx, out);
    memset(out, 0, sizeof *out);
    ONXI_NEED(tokenizer->cx, ids || !count);
    ONXI_CALL(tokenizer->cx, decode(tokenizer, ids, count, special, out));
}
