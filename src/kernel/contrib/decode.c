/* decode.c - BpeDecoder and BertTokenizerDecoder: converts ids to texts by vocabularies in attributes. */
#include "kernel/contrib/token.h"

/* A list of lines: the texts of ids from 0 on. */
typedef struct lines {
    onx_str *at;
    uint64_t count, room;
} lines;

static bool add_line(onx_arena *arena, lines *l, onx_str line)
{
    if (!ONXI_GROW_IN(arena, l->at, l->room, l->count + 1))
        return false;
    l->at[l->count++] = line;
    return true;
}

/* Reads all lines, including empty ones, but not an empty one after the last line end. */
static onx_status read_lines(onx_arena *arena, onx_str text, lines *out)
{
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const size_t size = end ? (size_t)(end - text.ptr) : text.len;
        if (!add_line(arena, out, onx_str_make(text.ptr, size)))
            return ONX_E_MEMORY;
        text = onxi_str_from(text, size + (end != NULL));
    }
    return ONX_OK;
}

/* ---- BpeDecoder ---- */

typedef struct entry {
    onx_str text;
    uint8_t byte;
} entry;

typedef struct table {
    onxi_map places; /* maps numbers to entries */
    entry *entries;
    uint64_t count;
} table;

typedef struct bpe {
    lines vocabulary;
    table bytes, added, special; /* by code point; by id */
    onx_str unknown;
    bool skip, apart, sentencepiece;
} bpe;

static const entry *find(const table *t, uint64_t number)
{
    return onxi_map_find(&t->places, number);
}

/* Reads lines of a number, a tab, and an optional text. */
static onx_status read_table(const onx_prepare *p, const char *name, table *out)
{
    lines list = { 0 };
    out->places = onxi_map_in_arena(p->arena);
    ONX_TRY(read_lines(p->arena, onx_prepare_text(p, name), &list));
    out->count = list.count;
    out->entries = onxi_arena_array(p->arena, list.count + 1, sizeof *out->entries);
    if (!out->entries)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < list.count; i++) {
        const onx_str line = list.at[i];
        size_t at = 0;
        uint64_t number = 0;
        for (; at < line.len && line.ptr[at] >= '0' && line.ptr[at] <= '9' && number <= INT32_MAX; at++)
            number = number * 10 + (uint64_t)(line.ptr[at] - '0');
        if (!at || number > INT32_MAX || (at < line.len && line.ptr[at] != '\t' && line.ptr[at] != '\r'))
            return onx_prepare_fail(p, ONX_E_INVALID, "line %llu of attribute %s is no number, or no tab follows it",
                                    (unsigned long long)i + 1, name);
        out->entries[i] = (entry){ .text = at < line.len ? onxi_str_from(line, at + 1) : onx_str_make(NULL, 0) };
        void **place = onxi_map_at(&out->places, number);
        if (!place)
            return ONX_E_MEMORY;
        *place = &out->entries[i];
    }
    return ONX_OK;
}

static onx_status read_bytes(const onx_prepare *p, table *out)
{
    ONX_TRY(read_table(p, "byte_decoder", out));
    for (uint64_t k = 0; k < out->count; k++) {
        entry *e = &out->entries[k];
        unsigned byte = e->text.len ? 0 : 256;
        for (size_t i = 0; i < e->text.len && byte < 256; i++)
            byte = e->text.ptr[i] >= '0' && e->text.ptr[i] <= '9' ? byte * 10 + (unsigned)(e->text.ptr[i] - '0') : 256;
        if (byte > 255)
            return onx_prepare_fail(p, ONX_E_INVALID,
                                    "line %llu of attribute byte_decoder has \"%.*s\", which is no byte",
                                    (unsigned long long)k + 1, ONX_ARG(e->text));
        e->byte = (uint8_t)byte;
    }
    return ONX_OK;
}

static onx_status bpe_prepare(onx_prepare *p)
{
    bpe *q = ONXI_NEW(p->arena, bpe);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(read_lines(p->arena, onx_prepare_text(p, "id_vocab"), &q->vocabulary));
    if (!q->vocabulary.count)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute id_vocab has no tokens");
    ONX_TRY(read_bytes(p, &q->bytes));
    ONX_TRY(read_table(p, "added_tokens", &q->added));
    ONX_TRY(read_table(p, "all_special_ids", &q->special));
    q->sentencepiece = find(&q->bytes, 0x2581) != NULL;
    q->unknown = onx_prepare_text(p, "unk_token");
    q->skip = onx_prepare_is_set(p, "skip_special_tokens");
    q->apart = onx_prepare_is_set(p, "whitespace_token");
    p->params = q;
    return ONX_OK;
}

/* Appends a piece of SentencePiece: a byte, or a text with spaces. */
static bool put_piece(onxi_chars *to, onx_str piece)
{
    const int byte = onxi_byte_token(piece);
    const char c = (char)byte;
    if (byte >= 0)
        return onxi_chars_add(to, onx_str_make(&c, 1));
    for (size_t at = 0; at < piece.len;) {
        const bool blank = onxi_starts_with(onxi_str_from(piece, at), onx_str_of("\xe2\x96\x81"));
        if (!onxi_chars_add(to, blank ? onx_str_of(" ") : onx_str_make(piece.ptr + at, 1)))
            return false;
        at += blank ? 3 : 1;
    }
    return true;
}

/* Appends a token whose code points stand for bytes. If one of them does not, the whole token is unknown. */
static bool put_bytes(const bpe *q, onxi_chars *to, onx_str token)
{
    const size_t before = to->len;
    const char *end = onxi_str_end(token);
    for (const char *at = token.ptr; at != end;) {
        const uint32_t c = onxi_rune_next(&at, end);
        const entry *e = find(&q->bytes, c);
        const char byte = (char)(e ? e->byte : c);
        if (!e && c > 0xff) {
            if (q->skip)
                continue;
            to->len = before;
            return onxi_chars_add(to, q->unknown);
        }
        if (!onxi_chars_add(to, onx_str_make(&byte, 1)))
            return false;
    }
    return true;
}

static bool put_id(const bpe *q, onxi_chars *to, int64_t id)
{
    const entry *added = id < 0 ? NULL : find(&q->added, (uint64_t)id);
    if (added)
        return onxi_chars_add(to, added->text);
    if (id < 0 || (uint64_t)id >= q->vocabulary.count)
        return q->skip || onxi_chars_add(to, q->unknown);
    return q->sentencepiece ? put_piece(to, q->vocabulary.at[id]) : put_bytes(q, to, q->vocabulary.at[id]);
}

/* Appends the texts of ids, with spaces around special tokens if the node wants them. */
static bool put_ids(const bpe *q, onxi_chars *to, const int64_t *ids, uint64_t count)
{
    bool before = false;
    for (uint64_t i = 0; i < count; i++) {
        const bool special = ids[i] >= 0 && find(&q->special, (uint64_t)ids[i]), apart = q->apart && special;
        if (!(q->skip && special) &&
            ((apart && i && !before && !onxi_chars_add(to, onx_str_of(" "))) || !put_id(q, to, ids[i]) ||
             (apart && i + 1 < count && !onxi_chars_add(to, onx_str_of(" ")))))
            return false;
        before = special;
    }
    return true;
}

static onx_status bpe_run(onx_work *work, uint64_t first, uint64_t last)
{
    const bpe *q = work->params;
    const onx_value *x = work->inputs[0];
    const int64_t one = 1;
    const uint32_t rank = x->rank > 1 ? x->rank - 1 : 1;
    (void)first, (void)last;
    if (!x->rank)
        return onx_work_fail(work, ONX_E_INVALID, "the ids are a scalar");
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, rank, x->rank > 1 ? x->dims : &one));
    const uint64_t length = (uint64_t)x->dims[x->rank - 1];
    for (uint64_t i = 0; i < work->outputs[0]->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        onxi_chars made = { .arena = work->text };
        if (!put_ids(q, &made, length ? (const int64_t *)x->data + i * length : NULL, length))
            return ONX_E_MEMORY;
        ((onx_str *)work->outputs[0]->data)[i] = onxi_chars_view(&made);
    }
    return ONX_OK;
}

/* ---- BertTokenizerDecoder ---- */

typedef struct bert {
    lines vocabulary;
    onx_str unknown, suffix, special[4];
    bool spans, skip, clean;
} bert;

static onx_status bert_prepare(onx_prepare *p)
{
    bert *q = ONXI_NEW(p->arena, bert);
    onx_str rest = onx_prepare_text(p, "vocab_file"), line;
    if (!q)
        return ONX_E_MEMORY;
    while (onxi_next_part(&rest, '\n', &line))
        if (!add_line(p->arena, &q->vocabulary, line))
            return ONX_E_MEMORY;
    q->unknown = onx_prepare_text(p, "unk_token");
    q->suffix = onx_prepare_text(p, "suffix_indicator");
    q->special[0] = onx_prepare_text(p, "sep_token");
    q->special[1] = onx_prepare_text(p, "pad_token");
    q->special[2] = onx_prepare_text(p, "cls_token");
    q->special[3] = onx_prepare_text(p, "mask_token");
    q->spans = onx_prepare_is_set(p, "use_indices");
    q->skip = onx_prepare_is_set(p, "skip_special_tokens");
    q->clean = onx_prepare_is_set(p, "clean_up_tokenization_spaces");
    p->params = q;
    return ONX_OK;
}

static uint32_t first_rune(onx_str text)
{
    const char *at = text.ptr;
    return text.len ? onxi_rune_next(&at, onxi_str_end(text)) : 0;
}

static uint32_t last_rune(onx_str text)
{
    size_t at = text.len;
    while (at && ((unsigned char)text.ptr[at - 1] & 0xc0) == 0x80)
        at--;
    return at ? first_rune(onxi_str_from(text, at - 1)) : 0;
}

static bool is_one_of(uint32_t c, const char *list)
{
    return c && c < 0x80 && strchr(list, (int)c);
}

/* No space is written before closing punctuation, after opening punctuation, or around characters that join words. */
static bool is_joined(onx_str before, onx_str next)
{
    const uint32_t a = last_rune(before), b = first_rune(next);
    return is_one_of(b, "!.?,~:}]>)") || is_one_of(a, "{[<($") || is_one_of(a, "-'\"/@\\") ||
           is_one_of(b, "-'\"/@\\") || (a > 128 && onxi_rune_is_punctuation(a)) ||
           (b > 128 && onxi_rune_is_punctuation(b));
}

static bool is_special(const bert *q, onx_str token)
{
    for (size_t i = 0; i < sizeof q->special / sizeof *q->special; i++)
        if (onx_str_equal(q->special[i], token))
            return true;
    return false;
}

static bool put_words(const bert *q, onxi_chars *to, const int64_t *ids, uint64_t count)
{
    onx_str before = { 0 };
    for (uint64_t i = 0; i < count; i++) {
        const bool known = ids[i] >= 0 && (uint64_t)ids[i] < q->vocabulary.count;
        onx_str token = known ? q->vocabulary.at[ids[i]] : q->unknown;
        const bool inside = known && q->suffix.len && onxi_starts_with(token, q->suffix);
        if ((known && q->skip && is_special(q, token)) || (inside && !to->len))
            continue;
        if (inside)
            token = onxi_str_from(token, q->suffix.len);
        const bool joined = !to->len || inside || (known && q->clean && (!before.len || is_joined(before, token)));
        if ((!joined && !onxi_chars_add(to, onx_str_of(" "))) || !onxi_chars_add(to, token))
            return false;
        before = known ? token : before;
    }
    return true;
}

static onx_status bert_run(onx_work *work, uint64_t first, uint64_t last)
{
    const bert *q = work->params;
    const onx_value *x = work->inputs[0], *spans = work->inputs[1];
    const int64_t *ids = x->data, *span = spans->data;
    (void)first, (void)last;
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return onx_work_fail(work, ONX_E_INVALID, "the ids have rank %u, and are no [n] or [1,n]", x->rank);
    if (q->spans && spans->count && (spans->rank != 2 || spans->dims[1] != 2))
        return onx_work_fail(work, ONX_E_INVALID, "the positions have rank %u, and are no [n,2]", spans->rank);
    const int64_t whole[] = { 0, (int64_t)x->count }, rows = q->spans ? (int64_t)spans->count / 2 : 1;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &rows));
    for (int64_t i = 0; i < rows; i++) {
        const int64_t *at = q->spans ? span + 2 * i : whole;
        onxi_chars made = { .arena = work->text };
        if (at[0] < 0 || at[1] < at[0] || at[1] > (int64_t)x->count)
            return onx_work_fail(work, ONX_E_INVALID, "positions %lld to %lld are outside of %llu ids",
                                 (long long)at[0], (long long)at[1], (unsigned long long)x->count);
        if (!put_words(q, &made, x->count ? ids + at[0] : NULL, (uint64_t)(at[1] - at[0])))
            return ONX_E_MEMORY;
        ((onx_str *)work->outputs[0]->data)[i] = onxi_chars_view(&made);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_decode[] = {
    CONTRIB_KERNEL("BpeDecoder", .prepare = bpe_prepare, .run = bpe_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("BertTokenizerDecoder", .prepare = bert_prepare, .run = bert_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
