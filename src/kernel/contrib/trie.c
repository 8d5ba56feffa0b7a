/* trie.c - TrieTokenizer and TrieDetokenizer: the longest token at each position, as in RWKV. Each line of the
 * vocabulary has an id, a token as a Python string or bytes literal, and its length in bytes. */
#include "kernel/contrib/contrib.h"
#include "token/token.h"

typedef struct params {
    onxi_trie trie;
    onxi_map by_id; /* maps ids to texts, each an onx_str */
} params;

/* ---- Python literals ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Appends a character, or a byte of b'...', given by hexadecimal digits; false if there are too few digits. */
static bool put_number(onx_str *rest, unsigned digits, bool bytes, onxi_chars *to)
{
    uint32_t value = 0;
    if (rest->len < digits)
        return false;
    for (unsigned i = 0; i < digits; i++) {
        const int digit = hex(rest->ptr[i]);
        if (digit < 0)
            return false;
        value = value * 16 + (uint32_t)digit;
    }
    *rest = onxi_str_from(*rest, digits);
    const char byte = (char)value;
    if (bytes)
        return digits == 2 && onxi_chars_add(to, onx_str_make(&byte, 1));
    return value <= 0x10ffff && (value < 0xd800 || value > 0xdfff) && onxi_chars_put(to, value);
}

static bool put_escape(onx_str *rest, bool bytes, onxi_chars *to)
{
    static const char names[] = "nrt\\'\"", meant[] = "\n\r\t\\'\"";
    if (!rest->len)
        return false;
    const char c = rest->ptr[0];
    *rest = onxi_str_from(*rest, 1);
    const char *known = c ? strchr(names, c) : NULL;
    if (known)
        return onxi_chars_add(to, onx_str_make(&meant[known - names], 1));
    return (c == 'x' || c == 'u' || c == 'U') && put_number(rest, c == 'x' ? 2 : c == 'u' ? 4 : 8, bytes, to);
}

/* Decodes a literal: 'text', "text" or b'bytes'. */
static bool unquote(onx_str from, onxi_chars *to)
{
    const bool bytes = from.len && from.ptr[0] == 'b';
    from = onxi_str_from(from, bytes);
    if (from.len < 2 || (from.ptr[0] != '\'' && from.ptr[0] != '"') || from.ptr[from.len - 1] != from.ptr[0])
        return false;
    onx_str rest = onx_str_make(from.ptr + 1, from.len - 2);
    while (rest.len) {
        const onx_str one = onx_str_make(rest.ptr, 1);
        rest = onxi_str_from(rest, 1);
        if (!(one.ptr[0] == '\\' ? put_escape(&rest, bytes, to) : onxi_chars_add(to, one)))
            return false;
    }
    return true;
}

/* ---- the vocabulary ---- */

static bool read_number(onx_str text, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || *out > INT32_MAX)
            return false;
        *out = *out * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return text.len && *out <= INT32_MAX;
}

static onx_status read_line(const onx_prepare *p, uint64_t number, onx_str line, onxi_trie_entry *out)
{
    const char *first = memchr(line.ptr, ' ', line.len), *last = memrchr(line.ptr, ' ', line.len);
    onxi_chars text = { .arena = p->arena };
    uint64_t id, length;
    if (!first || first == last || !read_number(onx_str_make(line.ptr, (size_t)(first - line.ptr)), &id) || !id ||
        !read_number(onxi_str_from(line, (size_t)(last + 1 - line.ptr)), &length) ||
        !unquote(onx_str_make(first + 1, (size_t)(last - first) - 1), &text))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "line %llu of attribute vocab is no id above 0, a token in quotes, and its length",
                                (unsigned long long)number);
    if (text.len != length || !length || length > ONXI_TOKEN_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "line %llu of attribute vocab has a token of %zu bytes, and says that they are %llu "
                                "(there may be up to %d)",
                                (unsigned long long)number, text.len, (unsigned long long)length, ONXI_TOKEN_MAX);
    *out = (onxi_trie_entry){ onxi_chars_view(&text), (uint32_t)id };
    return ONX_OK;
}

static onx_status trie_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    onx_str rest = onx_prepare_text(p, "vocab"), line;
    onxi_trie_entry *entries = NULL;
    uint32_t count = 0, room = 0;
    if (!q)
        return ONX_E_MEMORY;
    q->by_id = onxi_map_in_arena(p->arena);
    while (onxi_next_part(&rest, '\n', &line)) {
        if (count == INT32_MAX || !ONXI_GROW_IN(p->arena, entries, room, (uint64_t)count + 1))
            return ONX_E_MEMORY;
        ONX_TRY(read_line(p, (uint64_t)count + 1, line, &entries[count]));
        onx_str *text = ONXI_NEW(p->arena, onx_str);
        void **place = onxi_map_at(&q->by_id, entries[count].value);
        if (!text || !place)
            return ONX_E_MEMORY;
        *text = entries[count++].key;
        *place = text; /* the last line of an id counts */
    }
    if (!count)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute vocab has no tokens");
    p->params = q;
    return onxi_trie_make(p->arena, entries, count, &q->trie);
}

/* ---- running ---- */

typedef struct ids {
    int64_t *at;
    uint64_t count, room;
} ids;

static onx_status encode(onx_work *work, uint64_t index, onx_str text, ids *out)
{
    const params *q = work->params;
    for (size_t at = 0; at < text.len;) {
        uint32_t id = 0;
        const size_t size = onxi_trie_longest(&q->trie, onxi_str_from(text, at), &id);
        if (!size)
            return onx_work_fail(work, ONX_E_INVALID, "no token begins at byte %zu of string %llu", at,
                                 (unsigned long long)index);
        if (!ONXI_GROW_IN(work->text, out->at, out->room, out->count + 1))
            return ONX_E_MEMORY;
        out->at[out->count++] = id;
        at += size;
    }
    return ONX_OK;
}

/* There are as many columns as the longest text has tokens; shorter rows are padded with zeros. */
static onx_status tokenize_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    int64_t dims[ONX_RANK_MAX];
    uint64_t most = 0;
    ids *rows = onxi_arena_array(work->text, x->count + 1, sizeof *rows);
    if (!rows)
        return ONX_E_MEMORY;
    if (x->rank >= ONX_RANK_MAX)
        return onx_work_fail(work, ONX_E_INVALID, "the strings have rank %u, expected less than %u", x->rank,
                             ONX_RANK_MAX);
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        rows[i] = (ids){ 0 };
        ONX_TRY(encode(work, i, ((const onx_str *)x->data)[i], &rows[i]));
        most = rows[i].count > most ? rows[i].count : most;
    }
    onxi_copy_dims(dims, x->dims, x->rank);
    dims[x->rank] = (int64_t)most;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, x->rank + 1, dims));
    int64_t *to = work->outputs[0]->data;
    for (uint64_t i = 0; most && i < x->count; i++)
        for (uint64_t k = 0; k < most; k++)
            *to++ = k < rows[i].count ? rows[i].at[k] : 0;
    return ONX_OK;
}

/* Ids without a token, such as the zeros at the end of a row, are skipped. */
static onx_status detokenize_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    const int64_t one = 1;
    if (!x->rank)
        return onx_work_fail(work, ONX_E_INVALID, "the ids are a scalar");
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, x->rank > 1 ? x->rank - 1 : 1, x->rank > 1 ? x->dims : &one));
    const uint64_t length = (uint64_t)x->dims[x->rank - 1];
    for (uint64_t i = 0; i < work->outputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        onxi_chars made = { .arena = work->text };
        for (uint64_t k = 0; k < length; k++) {
            const int64_t id = ((const int64_t *)x->data)[i * length + k];
            const onx_str *text = id > 0 ? onxi_map_find(&q->by_id, (uint64_t)id) : NULL;
            if (text && !onxi_chars_add(&made, *text))
                return ONX_E_MEMORY;
        }
        const onx_str text = onxi_chars_view(&made);
        if (onxi_utf8_valid(text) != text.len)
            return onx_work_fail(work, ONX_E_INVALID, "the ids of row %llu give bytes that are not UTF-8",
                                 (unsigned long long)i);
        ((onx_str *)work->outputs[0]->data)[i] = text;
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_trie[] = {
    CONTRIB_KERNEL("TrieTokenizer", .prepare = trie_prepare, .run = tokenize_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("TrieDetokenizer", .prepare = trie_prepare, .run = detokenize_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
