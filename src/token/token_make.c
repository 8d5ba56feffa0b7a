/* token_make.c - creates tokenizers from the parts that models store in attributes: a vocabulary, merges, added tokens.
 * The parts are combined into a tokenizer.json, so that one reader serves all. */
#include "token/token.h"

#include <stdio.h>

static bool put(onxi_chars *to, const char *text)
{
    return onxi_chars_add(to, onx_str_of(text));
}

/* Writes a JSON string. Bytes from 0x80 on are written unchanged. */
static bool put_text(onxi_chars *to, onx_str text)
{
    if (!put(to, "\""))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        char escape[8];
        (void)snprintf(escape, sizeof escape, "\\u%04x", c);
        if (c < 0x20 || c == '"' || c == '\\' ? !put(to, escape) : !onxi_chars_add(to, onx_str_make(text.ptr + i, 1)))
            return false;
    }
    return put(to, "\"");
}

/* Splits off the next line, without its line end; false at the end. */
static bool next_line(onx_str *rest, onx_str *line)
{
    if (!onxi_next_part(rest, '\n', line))
        return false;
    while (line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    return true;
}

static bool put_merges(onxi_chars *to, onx_str merges)
{
    onx_str line;
    bool some = false;
    while (next_line(&merges, &line)) {
        if (!line.len || (!some && *line.ptr == '#')) /* the first lines may be comments with a version */
            continue;
        if ((some && !put(to, ",")) || !put_text(to, line))
            return false;
        some = true;
    }
    return true;
}

static bool put_added(onxi_chars *to, bool *some, onx_str token, uint32_t id)
{
    char number[32];
    (void)snprintf(number, sizeof number, ",\"id\":%u", id);
    const bool good = put(to, *some ? ",{\"content\":" : "{\"content\":") && put_text(to, token) && put(to, number) &&
                      put(to, ",\"special\":true,\"normalized\":false,\"single_word\":false,\"lstrip\":false,"
                              "\"rstrip\":false}");
    *some = true;
    return good;
}

/* Lines "token=id". */
static onx_status put_listed(onxi_tokenrun *run, onxi_chars *to, bool *some, onx_str added, onxi_dict *names)
{
    onx_str line;
    while (next_line(&added, &line)) {
        size_t at = line.len;
        uint64_t id = 0;
        while (at && line.ptr[at - 1] != '=')
            at--;
        for (size_t i = at; i < line.len && id <= UINT32_MAX; i++)
            id = line.ptr[i] >= '0' && line.ptr[i] <= '9' ? id * 10 + (uint64_t)(line.ptr[i] - '0') : UINT64_MAX / 16;
        if (at < 2 || at == line.len || id >= INT32_MAX)
            return onxi_token_fail(run, ONX_E_INVALID, "added token \"%.*s\" is not of the form TEXT=ID",
                                   ONX_ARG(line));
        const onx_str token = onx_str_make(line.ptr, at - 1);
        bool made;
        if (!onxi_dict_at(names, token, (uint32_t)id, &made) || (made && !put_added(to, some, token, (uint32_t)id)))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Adds the tokens that are searched for first. A token that is not in the vocabulary gets an id after it. */
static onx_status put_special(onxi_tokenrun *run, onxi_chars *to, bool *some, const onxi_bpe_parts *parts,
                              const onxi_json *vocab, onxi_dict *names)
{
    uint32_t next = vocab->count;
    for (size_t i = 0; i < sizeof parts->special / sizeof *parts->special && parts->special[i]; i++) {
        const onx_str token = onx_str_of(parts->special[i]);
        const onxi_json *found = onxi_json_get(vocab, parts->special[i]);
        int64_t id = 0;
        if (found->kind == ONXI_JSON_NULL)
            id = next;
        else if (!onxi_json_integer(found, &id) || id < 0 || id >= INT32_MAX)
            return onxi_token_fail(run, ONX_E_INVALID, "token \"%s\" has no id", parts->special[i]);
        bool made;
        if (!onxi_dict_at(names, token, (uint32_t)id, &made) || (made && !put_added(to, some, token, (uint32_t)id)))
            return ONX_E_MEMORY;
        next += made && found->kind == ONXI_JSON_NULL;
    }
    return ONX_OK;
}

static onx_status write_file(onxi_tokenrun *run, const onxi_bpe_parts *parts, onxi_chars *to)
{
    onxi_json vocab;
    bool some = false;
    onxi_dict names = onxi_dict_in_arena(run->arena);
    ONX_TRY(onxi_json_value_read(run->cx, run->arena, parts->vocab, &vocab));
    if (vocab.kind != ONXI_JSON_OBJECT || !vocab.count)
        return onxi_token_fail(run, ONX_E_INVALID, "the vocabulary is not an object with tokens");
    if (!put(to, "{") || !put(to, parts->steps) || !put(to, ",\"added_tokens\":["))
        return ONX_E_MEMORY;
    ONX_TRY(put_listed(run, to, &some, parts->added, &names));
    ONX_TRY(put_special(run, to, &some, parts, &vocab, &names));
    if (!put(to, "],\"model\":{") || !put(to, parts->model) || !put(to, ",\"merges\":[") ||
        !put_merges(to, parts->merges) || !put(to, "],\"vocab\":") || !onxi_chars_add(to, parts->vocab) ||
        !put(to, "}}"))
        return ONX_E_MEMORY;
    return ONX_OK;
}

onx_status onxi_tokenizer_of_parts(onx_ctx *cx, const onxi_bpe_parts *parts, onx_tokenizer **out)
{
    onx_arena *arena;
    *out = NULL;
    ONX_TRY(onx_arena_new(cx, &arena));
    onxi_tokenrun run = { .cx = cx, .arena = arena };
    onxi_chars text = { .arena = arena };
    onx_status status = write_file(&run, parts, &text);
    if (status == ONX_OK)
        status = onx_tokenizer_new(cx, onxi_chars_view(&text), out);
    onx_arena_free(arena);
    return status;
}

onx_status onxi_token_bytes(onx_arena *arena, onx_str held, onx_str *out)
{
    onx_str plain = { 0 };
    if (held.len)
        ONX_TRY(onxi_json_base64(arena, held, &plain));
    *out = plain.ptr ? plain : held;
    return ONX_OK;
}

onx_status onxi_tokenizer_of_model(onx_ctx *cx, onx_str bytes, onx_tokenizer **out)
{
    onx_arena *arena;
    *out = NULL;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_status status = ONX_OK;
    if (bytes.len && *bytes.ptr != '\n') /* not base64, and the first byte of SentencePiece models */
        status = onxi_token_bytes(arena, bytes, &bytes);
    if (status == ONX_OK)
        status = onx_tokenizer_new(cx, bytes, out);
    onx_arena_free(arena);
    return status;
}

/* ---- splitting into words like BERT ---- */

static const onxi_token_step_row *row_of(const onxi_token_step_row *rows, const char *name)
{
    while (strcmp(rows->name, name) != 0)
        rows++;
    return rows;
}

onx_status onxi_token_words(onxi_tokenrun *run, const onxi_basic_words *how, onx_str text)
{
    const onxi_token_step clean = { .flag = how->clean,
                                    .second = how->chinese,
                                    .third = how->strip,
                                    .fourth = how->lower },
                          cut = { 0 };
    if (!onxi_unicode_there())
        return onxi_token_fail(run, ONX_E_UNSUPPORTED, "words %s", onxi_library_missing(ONXI_LIBRARY_UTF8PROC));
    ONX_TRY(onxi_text_valid(run, &text));
    ONX_TRY(row_of(onxi_normalizer_rows, "BertNormalizer")->run(run, &clean, text, &text));
    run->next.count = 0;
    run->first = true;
    return row_of(onxi_splitter_rows, how->punctuation ? "BertPreTokenizer" : "WhitespaceSplit")
        ->run(run, &cut, text, NULL);
}
