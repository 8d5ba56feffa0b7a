/* token_added.c - added tokens: strings that always become one token. They are searched for either before or after the
 * text is normalized. */
#include "token/token.h"

static onx_status add_one(onxi_tokenrun *run, const onxi_json *from, onxi_added *out)
{
    onx_tokenizer *t = run->tokenizer;
    int64_t id;
    out->text = out->found = onxi_json_text(from, "content");
    out->single = onxi_json_truth(from, "single_word", false);
    out->left = onxi_json_truth(from, "lstrip", false);
    out->right = onxi_json_truth(from, "rstrip", false);
    out->special = onxi_json_truth(from, "special", false);
    out->normalized = onxi_json_truth(from, "normalized", !out->special);
    if (!onxi_json_integer(onxi_json_get(from, "id"), &id) || id < 0 || id >= ONXI_NO_TOKEN - 1)
        return onxi_token_fail(run, ONX_E_INVALID, "added token \"%.*s\" has no id", ONX_ARG(out->text));
    if (out->text.len > ONXI_TOKEN_MAX)
        return onxi_token_fail(run, ONX_E_LIMIT, "added token %lld has %zu bytes, expected up to %d", (long long)id,
                               out->text.len, ONXI_TOKEN_MAX);
    /* If the text is a token of the model, the model's id counts. */
    const onxi_dict_entry *own = onxi_dict_find(&t->by_text, out->text);
    out->id = own && out->text.len ? t->tokens[own->value].id : (uint32_t)id;
    onxi_token *token = ONXI_NEW(t->arena, onxi_token);
    void **place = token ? onxi_map_at(&t->by_id, out->id) : NULL;
    if (!place)
        return ONX_E_MEMORY;
    *token = (onxi_token){ .text = out->text, .id = out->id, .kind = ONXI_TOKEN_CONTROL, .special = out->special };
    *place = token;
    if (out->id >= t->size)
        t->size = (uint64_t)out->id + 1;
    return ONX_OK;
}

onx_status onxi_added_read(onxi_tokenrun *run, const onxi_json *list)
{
    onx_tokenizer *t = run->tokenizer;
    const uint32_t count = list->kind == ONXI_JSON_LIST ? list->count : 0;
    t->added = ONXI_ARRAY(t->arena, onxi_added, count + 1u);
    if (!t->added)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        ONX_TRY(add_one(run, &list->members[i].value, &t->added[t->added_count++]));
    return ONX_OK;
}

static onx_status make_trie(onxi_tokenrun *run, bool normalized, onxi_trie *out)
{
    onx_tokenizer *t = run->tokenizer;
    uint32_t count = 0;
    onxi_trie_entry *entries = ONXI_ARRAY(run->arena, onxi_trie_entry, t->added_count + 1u);
    if (!entries)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].normalized == normalized && t->added[i].found.len)
            entries[count++] = (onxi_trie_entry){ t->added[i].found, i };
    return onxi_trie_make(t->arena, entries, count, out);
}

onx_status onxi_added_ready(onxi_tokenrun *run)
{
    onx_tokenizer *t = run->tokenizer;
    for (uint32_t i = 0; i < t->added_count; i++) {
        onxi_added *a = &t->added[i];
        onx_bytes kept;
        if (!a->normalized || !t->normalizers.count)
            continue;
        if (onxi_utf8_valid(a->text) == a->text.len)
            ONX_TRY(onxi_normalize(run, a->text, &a->found));
        if (a->found.len > ONXI_TOKEN_MAX)
            return onxi_token_fail(run, ONX_E_LIMIT, "added token %u has %zu bytes when normalized, expected up to %d",
                                   (unsigned)a->id, a->found.len, ONXI_TOKEN_MAX);
        ONX_TRY(onx_arena_keep(t->arena, a->found, &kept));
        a->found = onx_view(kept);
    }
    ONX_TRY(make_trie(run, false, &t->raw));
    return make_trie(run, true, &t->normal);
}

/* ---- searching ---- */

static bool is_word(uint32_t c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= 0x80 && !onxi_rune_is_space(c) && !(onxi_unicode_there() && onxi_rune_is_punctuation(c)));
}

/* The start of the character before byte `at`. */
static size_t back(onx_str text, size_t at)
{
    size_t i = at - 1;
    while (i && at - i < 4 && ((unsigned char)text.ptr[i] & 0xc0) == 0x80)
        i--;
    return i + onxi_rune_size(text.ptr + i, text.ptr + at) == at ? i : at - 1;
}

static bool stands_alone(onx_str text, size_t from, size_t to)
{
    const char *end = onxi_str_end(text), *after = text.ptr + to;
    const char *before = from ? text.ptr + back(text, from) : NULL;
    return !(before && is_word(onxi_rune_next(&before, text.ptr + from))) &&
           !(after != end && is_word(onxi_rune_next(&after, end)));
}

static void widen(onx_str text, const onxi_added *a, size_t taken, size_t *from, size_t *to)
{
    const char *end = onxi_str_end(text);
    while (a->left && *from > taken) {
        const size_t at = back(text, *from);
        const char *p = text.ptr + at;
        if (!onxi_rune_is_space(onxi_rune_next(&p, end)))
            break;
        *from = at;
    }
    for (const char *p = text.ptr + *to; a->right && p != end; *to = (size_t)(p - text.ptr))
        if (!onxi_rune_is_space(onxi_rune_next(&p, end)))
            break;
}

onx_status onxi_added_cut(onxi_tokenrun *run, const onxi_trie *trie, onx_str text, bool first)
{
    const onx_tokenizer *t = run->tokenizer;
    size_t taken = 0;
    for (size_t at = 0; trie->nodes && at < text.len;) {
        uint32_t which = 0;
        const size_t n = onxi_trie_longest(trie, onxi_str_from(text, at), &which);
        size_t from = at, to = at + n;
        at += n ? n : 1;
        if (!n || (t->added[which].single && !stands_alone(text, from, to)))
            continue;
        widen(text, &t->added[which], taken, &from, &to);
        if ((from > taken &&
             !onxi_token_piece(run, onx_str_make(text.ptr + taken, from - taken), ONXI_NO_TOKEN, first && !taken)) ||
            !onxi_token_piece(run, onx_str_make(text.ptr + from, to - from), t->added[which].id, false))
            return ONX_E_MEMORY;
        at = taken = to;
    }
    if (taken < text.len && !onxi_token_piece(run, onxi_str_from(text, taken), ONXI_NO_TOKEN, first && !taken))
        return ONX_E_MEMORY;
    return ONX_OK;
}
