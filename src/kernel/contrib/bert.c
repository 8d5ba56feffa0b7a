/* bert.c - BasicTokenizer, WordpieceTokenizer, BertTokenizer, and HfBertTokenizer: divides texts into words, and words
 * greedily into the longest tokens. */
#include "kernel/contrib/token.h"

/* ---- words as tokens ---- */

typedef struct pieces {
    const onxi_trie *trie; /* trie of all tokens; gives their indices */
    uint32_t inside;       /* node after the prefix that marks tokens inside a word; 0: no token has it */
    uint64_t most;         /* most characters of a word */
} pieces;

/* Indices of tokens; -1: no token. */
typedef struct found {
    onx_arena *arena;
    int64_t *at;
    uint64_t count, room;
} found;

static bool add_found(found *f, int64_t token)
{
    if (!ONXI_GROW_IN(f->arena, f->at, f->room, f->count + 1))
        return false;
    f->at[f->count++] = token;
    return true;
}

/* The longest token that begins at a node; returns its length in bytes, 0: there is none. */
static size_t longest(const onxi_trie *trie, uint32_t node, onx_str text, int64_t *token)
{
    size_t size = 0;
    for (size_t i = 0; i < text.len && trie->nodes; i++) {
        node = onxi_trie_step(trie, node, (uint8_t)text.ptr[i]);
        if (!node)
            break;
        if (trie->nodes[node].value >= 0) {
            size = i + 1;
            *token = trie->nodes[node].value;
        }
    }
    return size;
}

/* Divides a word into tokens. Tokens found so far are kept if the rest of the word has no token. */
static bool cut_word(const pieces *p, onx_str word, found *out)
{
    uint64_t characters = 0;
    for (size_t i = 0; i < word.len; i += onxi_rune_size(word.ptr + i, onxi_str_end(word)))
        characters++;
    if (characters > p->most)
        return add_found(out, -1);
    for (size_t at = 0, size; at < word.len; at += size) {
        int64_t token = -1;
        const bool can = !at || p->inside;
        size = can ? longest(p->trie, at ? p->inside : 0, onxi_str_from(word, at), &token) : 0;
        if (!add_found(out, size ? token : -1))
            return false;
        if (!size)
            break;
    }
    return true;
}

/* Follows the bytes from the root; returns the node, 0: there is none. */
static uint32_t node_of(const onxi_trie *trie, onx_str text)
{
    uint32_t node = 0;
    for (size_t i = 0; i < text.len && trie->nodes; i++)
        if (!(node = onxi_trie_step(trie, node, (uint8_t)text.ptr[i])))
            return 0;
    return node;
}

/* ---- BasicTokenizer ---- */

static onxi_basic_words words_of(const onx_prepare *p, bool punctuation, bool clean)
{
    return (onxi_basic_words){ .clean = clean,
                               .chinese = onx_prepare_is_set(p, "tokenize_chinese_chars"),
                               .strip = onx_prepare_is_set(p, "strip_accents"),
                               .lower = onx_prepare_is_set(p, "do_lower_case"),
                               .punctuation = punctuation };
}

static onx_status basic_prepare(onx_prepare *p)
{
    onxi_basic_words *q = ONXI_NEW(p->arena, onxi_basic_words);
    if (!q)
        return ONX_E_MEMORY;
    *q = words_of(p, onx_prepare_is_set(p, "tokenize_punctuation"), onx_prepare_is_set(p, "remove_control_chars"));
    p->params = q;
    return ONX_OK;
}

static onx_status basic_run(onx_work *work, uint64_t first, uint64_t last)
{
    onx_str text = { 0 };
    (void)first, (void)last;
    ONX_TRY(onxi_contrib_text(work, 0, &text));
    onxi_tokenrun run = { .cx = work->cx, .arena = work->text };
    const onx_status status = onxi_token_words(&run, work->params, text);
    onxi_token_end(&run);
    ONX_TRY(onxi_contrib_undone(work, status, 0));
    const int64_t count = (int64_t)run.next.count;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &count));
    for (int64_t i = 0; i < count; i++)
        ((onx_str *)work->outputs[0]->data)[i] = run.next.list[i].text;
    return ONX_OK;
}

/* ---- WordpieceTokenizer ---- */

typedef struct wordpiece {
    onx_tokenizer *vocabulary;
    pieces pieces;
    onx_str unknown;
} wordpiece;

static void wordpiece_release(void *at)
{
    wordpiece *q = at;
    if (q)
        onx_tokenizer_free(q->vocabulary);
}

static onx_status wordpiece_prepare(onx_prepare *p)
{
    wordpiece *q = ONXI_NEW(p->arena, wordpiece);
    const onxi_bpe_parts parts = { .vocab = onx_prepare_text(p, "vocab"),
                                   .steps = "\"normalizer\":null",
                                   .model = "\"type\":\"WordPiece\"" };
    const int64_t most = onx_prepare_int(p, "max_input_chars_per_word");
    if (!q)
        return ONX_E_MEMORY;
    q->unknown = onx_prepare_text(p, "unknown_token");
    ONX_TRY(onxi_contrib_unread(p, onxi_tokenizer_of_parts(p->cx, &parts, &q->vocabulary)));
    const onxi_trie *trie = &q->vocabulary->trie;
    q->pieces = (pieces){ trie, node_of(trie, onx_prepare_text(p, "suffix_indicator")), most < 0 ? 0 : (uint64_t)most };
    p->params = q;
    return ONX_OK;
}

/* Rows begin at the strings whose indices are given, or at each string. */
static onx_status find_pieces(onx_work *work, found *out, found *rows)
{
    const wordpiece *q = work->params;
    const onx_value *x = work->inputs[0], *listed = work->inputs[1];
    uint64_t row = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        onx_str rest = ((const onx_str *)x->data)[i], word;
        const bool begins =
            !listed->count || (row < listed->count && ((const int64_t *)listed->data)[row] == (int64_t)i);
        row += begins;
        if (begins && !add_found(rows, (int64_t)out->count))
            return ONX_E_MEMORY;
        while (onxi_next_part(&rest, ' ', &word))
            if (!cut_word(&q->pieces, word, out))
                return ONX_E_MEMORY;
    }
    if (row < listed->count)
        return onx_work_fail(work, ONX_E_INVALID, "row %llu begins with string %lld, and there are %llu",
                             (unsigned long long)row, (long long)((const int64_t *)listed->data)[row],
                             (unsigned long long)x->count);
    return add_found(rows, (int64_t)out->count) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status write_pieces(onx_work *work, const found *tokens, const found *rows)
{
    const wordpiece *q = work->params;
    const int64_t count = (int64_t)tokens->count, places = (int64_t)rows->count, spans = places - 1;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &count));
    for (int64_t i = 0; i < count; i++) {
        onx_str text = q->unknown, kept;
        ONX_TRY(onxi_contrib_go_on(work, (uint64_t)i));
        if (tokens->at[i] >= 0) { /* copied, because the tokenizer may be freed before the output */
            onx_bytes copy;
            kept = q->vocabulary->tokens[tokens->at[i]].text;
            ONX_TRY(onx_arena_keep(work->text, kept, &copy));
            text = onx_view(copy);
        }
        ((onx_str *)work->outputs[0]->data)[i] = text;
    }
    for (uint32_t i = 1; i < 4; i++) {
        const uint64_t from = i == 3, size = (uint64_t)(i == 1 ? places : spans);
        ONX_TRY(onxi_value_size(work->outputs[i], ONX_INT64, 1, i == 1 ? &places : &spans));
        if (size)
            memcpy(work->outputs[i]->data, rows->at + from, size * sizeof(int64_t));
    }
    return ONX_OK;
}

static onx_status wordpiece_run(onx_work *work, uint64_t first, uint64_t last)
{
    onx_arena *arena;
    (void)first, (void)last;
    ONX_TRY(onx_arena_new(work->cx, &arena));
    found tokens = { .arena = arena }, rows = { .arena = arena };
    onx_status status = find_pieces(work, &tokens, &rows);
    if (status == ONX_OK)
        status = write_pieces(work, &tokens, &rows);
    onx_arena_free(arena);
    return status;
}

/* ---- BertTokenizer, HfBertTokenizer ---- */

typedef struct bert {
    onxi_trie trie;
    pieces pieces;
    onxi_basic_words words;
    bool basic;
    int64_t unknown, separator, start, length;
} bert;

static onx_status find_line(const onx_prepare *p, const bert *q, const char *name, int64_t *out)
{
    const onx_str token = onx_prepare_text(p, name);
    int64_t id = -1;
    const size_t size = longest(&q->trie, 0, token, &id);
    if (out)
        *out = id;
    return size == token.len && size
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is \"%.*s\", which is not in the vocabulary", name,
                                  ONX_ARG(token));
}

/* Reads one token per line. Ids count the lines that are not empty. */
static onx_status read_vocabulary(const onx_prepare *p, bert *q)
{
    onx_str rest = onx_prepare_text(p, "vocab_file"), line, token;
    onxi_trie_entry *entries = NULL;
    uint32_t count = 0, room = 0;
    while (onxi_next_part(&rest, '\n', &line))
        while (onxi_next_part(&line, '\r', &token)) {
            if (token.len > ONXI_TOKEN_MAX)
                return onx_prepare_fail(p, ONX_E_LIMIT, "token %u of the vocabulary has %zu bytes, expected up to %d",
                                        count, token.len, ONXI_TOKEN_MAX);
            if (!ONXI_GROW_IN(p->arena, entries, room, (uint64_t)count + 1))
                return ONX_E_MEMORY;
            entries[count] = (onxi_trie_entry){ token, count };
            count++;
        }
    return count ? onxi_trie_make(p->arena, entries, count, &q->trie)
                 : onx_prepare_fail(p, ONX_E_INVALID, "the vocabulary has no tokens");
}

static onx_status bert_prepare(onx_prepare *p)
{
    bert *q = ONXI_NEW(p->arena, bert);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_contrib_not_output(p, 3, "where tokens are in the text"));
    ONX_TRY(read_vocabulary(p, q));
    ONX_TRY(find_line(p, q, "unk_token", &q->unknown));
    ONX_TRY(find_line(p, q, "sep_token", &q->separator));
    ONX_TRY(find_line(p, q, "cls_token", &q->start));
    ONX_TRY(find_line(p, q, "pad_token", NULL));
    ONX_TRY(find_line(p, q, "mask_token", NULL));
    q->pieces = (pieces){ &q->trie, node_of(&q->trie, onx_prepare_text(p, "suffix_indicator")), 100 };
    q->words = words_of(p, true, true);
    q->basic = onx_prepare_is_set(p, "do_basic_tokenize");
    q->length = onx_prepare_int(p, "max_length");
    p->params = q;
    return ONX_OK;
}

static onx_status cut_text(onx_work *work, onx_str text, found *out)
{
    const bert *q = work->params;
    onx_str word;
    if (!q->basic) {
        while (onxi_next_part(&text, ' ', &word))
            if (!cut_word(&q->pieces, word, out))
                return ONX_E_MEMORY;
        return ONX_OK;
    }
    onxi_tokenrun run = { .cx = work->cx, .arena = out->arena };
    const onx_status status = onxi_token_words(&run, &q->words, text);
    onxi_token_end(&run);
    ONX_TRY(status);
    for (uint64_t i = 0; i < run.next.count; i++)
        if (!cut_word(&q->pieces, run.next.list[i].text, out))
            return ONX_E_MEMORY;
    return ONX_OK;
}

/* Gives [CLS] a [SEP], or [CLS] a [SEP] b [SEP]; *second_out is the index where b begins. A single text is truncated to
 * the length. */
static onx_status encode(onx_work *work, found *out, uint64_t *second_out)
{
    const bert *q = work->params;
    const onx_value *x = work->inputs[0];
    if (!add_found(out, q->start))
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(onxi_contrib_go_on(work, i));
        ONX_TRY(onxi_contrib_undone(work, cut_text(work, ((const onx_str *)x->data)[i], out), i));
        if (x->count == 1 && q->length > 2 && out->count >= (uint64_t)q->length)
            out->count = (uint64_t)q->length - 1;
        if (!add_found(out, q->separator))
            return ONX_E_MEMORY;
        if (!i)
            *second_out = out->count;
    }
    for (uint64_t i = 0; i < out->count; i++)
        out->at[i] = out->at[i] < 0 ? q->unknown : out->at[i];
    return ONX_OK;
}

/* Writes the ids, and, in an order that depends on the operator, the index of the text that each belongs to and the
 * attention mask. */
static onx_status write_all(onx_work *work, const found *ids, uint64_t second, bool hf)
{
    const int64_t dims[] = { 1, (int64_t)ids->count };
    for (uint32_t i = 0; i < 3 && i < work->prepared->output_count; i++) {
        onx_value *y = work->outputs[i];
        const bool types = i == (hf ? 2u : 1u);
        if (!y)
            continue;
        ONX_TRY(onxi_value_size(y, ONX_INT64, hf ? 2 : 1, hf ? dims : dims + 1));
        for (uint64_t k = 0; k < ids->count; k++)
            ((int64_t *)y->data)[k] = i == 0 ? ids->at[k] : types ? k >= second : 1;
    }
    return ONX_OK;
}

static onx_status bert_run(onx_work *work, uint64_t first, uint64_t last)
{
    const bool hf = work->prepared->kernel->body != NULL;
    const uint64_t count = work->inputs[0]->count;
    onx_arena *arena;
    uint64_t second = 0;
    (void)first, (void)last;
    if (count != 2 && (hf || count != 1))
        return onx_work_fail(work, ONX_E_INVALID, "there are %llu strings, expected %s", (unsigned long long)count,
                             hf ? "2" : "1 or 2");
    ONX_TRY(onx_arena_new(work->cx, &arena));
    found ids = { .arena = arena };
    onx_status status = encode(work, &ids, &second);
    if (status == ONX_OK)
        status = write_all(work, &ids, second, hf);
    onx_arena_free(arena);
    return status;
}

const onx_kernel onxi_kernels_contrib_bert[] = {
    CONTRIB_KERNEL("BasicTokenizer", .prepare = basic_prepare, .run = basic_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("WordpieceTokenizer", .prepare = wordpiece_prepare, .run = wordpiece_run,
                   .release = wordpiece_release, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("BertTokenizer", .prepare = bert_prepare, .run = bert_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("HfBertTokenizer", .prepare = bert_prepare, .run = bert_run, .flags = ONX_KERNEL_SIZES_OUTPUT,
                   .body = "2"),
    { 0 },
};
