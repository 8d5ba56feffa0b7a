/* token_model.c - the tokens of one piece of text: merging pairs (BPE), longest match (WordPiece), most likely
 * segmentation (Unigram), whole words. */
#include "token/token.h"

#include <math.h>
#include <stdio.h>

/* ---- the tokens of a model ---- */

onx_status onxi_token_add(onxi_tokenrun *run, onx_str text, uint64_t id, double score, onxi_token_kind kind)
{
    onx_tokenizer *t = run->tokenizer;
    if (text.len > ONXI_TOKEN_MAX)
        return onxi_token_fail(run, ONX_E_LIMIT, "token %llu has %zu bytes, expected up to %d", (unsigned long long)id,
                               text.len, ONXI_TOKEN_MAX);
    if (id >= INT32_MAX)
        return onxi_token_fail(run, ONX_E_INVALID, "token \"%.*s\" has id %llu, expected less than 2^31 - 1",
                               ONX_ARG(text), (unsigned long long)id);
    onxi_token *token = &t->tokens[t->count]; /* the caller has reserved room */
    onxi_dict_entry *named = onxi_dict_at(&t->by_text, text, t->count, NULL);
    void **place = named ? onxi_map_at(&t->by_id, id) : NULL;
    if (!place)
        return ONX_E_MEMORY;
    *token = (onxi_token){ .text = text, .id = (uint32_t)id, .score = score, .kind = (uint8_t)kind };
    token->special = kind == ONXI_TOKEN_CONTROL;
    named->value = t->count++;
    *place = token;
    if (id >= t->size)
        t->size = id + 1;
    if (text.len > t->longest)
        t->longest = (uint32_t)text.len;
    return ONX_OK;
}

static uint32_t find(const onx_tokenizer *t, onx_str text)
{
    const onxi_dict_entry *e = text.len <= t->longest ? onxi_dict_find(&t->by_text, text) : NULL;
    return e ? e->value : ONXI_NO_TOKEN;
}

static bool is_found_in_text(const onx_tokenizer *t, const onxi_token *token)
{
    return token->text.len && (!t->sentencepiece || token->kind == ONXI_TOKEN_NORMAL || token->kind == ONXI_TOKEN_USER);
}

static onx_status make_trie(onxi_tokenrun *run, onxi_token_kind only, onxi_trie *out)
{
    onx_tokenizer *t = run->tokenizer;
    uint32_t count = 0;
    onxi_trie_entry *entries = ONXI_ARRAY(run->arena, onxi_trie_entry, t->count + 1u);
    if (!entries)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < t->count; i++)
        if (is_found_in_text(t, &t->tokens[i]) && (only == ONXI_TOKEN_NORMAL || t->tokens[i].kind == only))
            entries[count++] = (onxi_trie_entry){ t->tokens[i].text, i };
    return onxi_trie_make(t->arena, entries, count, out);
}

onx_status onxi_model_ready(onxi_tokenrun *run)
{
    onx_tokenizer *t = run->tokenizer;
    char name[8];
    double least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        t->bytes[i] = t->byte_fallback ? find(t, onx_str_of(name)) : ONXI_NO_TOKEN;
    }
    for (uint32_t i = 0; i < t->count; i++)
        if (!t->sentencepiece || t->tokens[i].kind == ONXI_TOKEN_NORMAL) {
            least = t->tokens[i].score < least ? t->tokens[i].score : least;
            most = t->tokens[i].score > most ? t->tokens[i].score : most;
        }
    t->unknown_score = (least < INFINITY ? least : 0) - 10;
    for (uint32_t i = 0; t->sentencepiece && t->model == ONXI_MODEL_UNIGRAM && i < t->count; i++)
        if (t->tokens[i].kind == ONXI_TOKEN_USER)
            t->tokens[i].score = (double)t->tokens[i].text.len * (most > -INFINITY ? most : 0) - 0.1;
    if (t->model == ONXI_MODEL_UNIGRAM || t->model == ONXI_MODEL_WORDPIECE)
        ONX_TRY(make_trie(run, ONXI_TOKEN_NORMAL, &t->trie));
    return t->sentencepiece ? make_trie(run, ONXI_TOKEN_USER, &t->user) : ONX_OK;
}

/* ---- text that is not in the vocabulary ---- */

static bool has_bytes(const onx_tokenizer *t, onx_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (t->bytes[(uint8_t)text.ptr[i]] == ONXI_NO_TOKEN)
            return false;
    return t->byte_fallback;
}

static onx_status no_unknown(onxi_tokenrun *run, onx_str text)
{
    return onxi_token_fail(run, ONX_E_INVALID, "\"%.*s\" is not a token, and there is no token for unknown text",
                           ONX_ARG(onx_str_make(text.ptr, text.len < 40 ? text.len : 40)));
}

static onx_status add_unknown(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    if (has_bytes(t, text)) {
        for (size_t i = 0; i < text.len; i++)
            if (!onxi_token_id(run, t->tokens[t->bytes[(uint8_t)text.ptr[i]]].id))
                return ONX_E_MEMORY;
        return ONX_OK;
    }
    if (t->unknown == ONXI_NO_TOKEN)
        return no_unknown(run, text);
    return onxi_token_id(run, t->tokens[t->unknown].id) ? ONX_OK : ONX_E_MEMORY;
}

/* ---- BPE: a linked list of symbols, and a heap of pairs that may merge ---- */

static bool goes_before(const onxi_pair *a, const onxi_pair *b)
{
    return a->priority < b->priority || (a->priority == b->priority && a->at < b->at);
}

static onx_status heap_push(onxi_tokenrun *run, onxi_pair pair)
{
    if (!ONXI_GROW_IN(run->arena, run->heap, run->heap_room, run->heap_count + 1))
        return ONX_E_MEMORY;
    uint64_t i = run->heap_count++;
    for (; i && goes_before(&pair, &run->heap[(i - 1) / 2]); i = (i - 1) / 2)
        run->heap[i] = run->heap[(i - 1) / 2];
    run->heap[i] = pair;
    return ONX_OK;
}

static onxi_pair heap_pop(onxi_tokenrun *run)
{
    const onxi_pair top = run->heap[0], last = run->heap[--run->heap_count];
    uint64_t i = 0;
    for (uint64_t k; (k = 2 * i + 1) < run->heap_count; i = k) {
        if (k + 1 < run->heap_count && goes_before(&run->heap[k + 1], &run->heap[k]))
            k++;
        if (!goes_before(&run->heap[k], &last))
            break;
        run->heap[i] = run->heap[k];
    }
    run->heap[i] = last;
    return top;
}

/* Pushes the pair of a symbol and its successor if it merges. */
static onx_status offer(onxi_tokenrun *run, onx_str text, uint32_t at)
{
    const onx_tokenizer *t = run->tokenizer;
    const onxi_symbol *a = &run->symbols[at], *b = a->after == ONXI_NO_TOKEN ? NULL : &run->symbols[a->after];
    if (!b || a->whole || b->whole)
        return ONX_OK;
    onxi_pair pair = { .at = at, .size = a->size + b->size };
    if (t->by_score) {
        const uint32_t made = find(t, onx_str_make(text.ptr + a->start, pair.size));
        if (made == ONXI_NO_TOKEN || !is_found_in_text(t, &t->tokens[made]))
            return ONX_OK;
        pair.index = made;
        pair.priority = -t->tokens[made].score;
    } else {
        const onxi_merge *m = a->index == ONXI_NO_TOKEN || b->index == ONXI_NO_TOKEN
                                  ? NULL
                                  : onxi_map_find(&t->merges, (uint64_t)a->index << 32 | b->index);
        if (!m)
            return ONX_OK;
        pair.index = m->id;
        pair.priority = m->rank;
    }
    return heap_push(run, pair);
}

/* A symbol that was merged into another has size 0, one that absorbed another has grown: in both cases the pair is
 * outdated. */
static bool still_there(const onxi_tokenrun *run, const onxi_pair *pair)
{
    const onxi_symbol *a = &run->symbols[pair->at];
    return a->size && a->after != ONXI_NO_TOKEN && a->size + run->symbols[a->after].size == pair->size;
}

static onx_status merge_all(onxi_tokenrun *run, onx_str text)
{
    run->heap_count = 0;
    for (uint32_t i = 0; i < run->symbol_count; i++)
        ONX_TRY(offer(run, text, i));
    while (run->heap_count) {
        const onxi_pair pair = heap_pop(run);
        if (!still_there(run, &pair))
            continue;
        onxi_symbol *a = &run->symbols[pair.at], *b = &run->symbols[a->after];
        a->size = pair.size;
        a->index = pair.index;
        a->after = b->after;
        b->size = 0;
        if (a->after != ONXI_NO_TOKEN)
            run->symbols[a->after].before = pair.at;
        if (a->before != ONXI_NO_TOKEN)
            ONX_TRY(offer(run, text, a->before));
        ONX_TRY(offer(run, text, pair.at));
    }
    return ONX_OK;
}

static onx_status add_symbol(onxi_tokenrun *run, size_t start, size_t size, uint32_t index, bool whole)
{
    const uint32_t n = (uint32_t)run->symbol_count;
    if (!ONXI_GROW_IN(run->arena, run->symbols, run->symbol_room, run->symbol_count + 1))
        return ONX_E_MEMORY;
    if (n)
        run->symbols[n - 1].after = n;
    run->symbols[run->symbol_count++] = (onxi_symbol){ .start = (uint32_t)start,
                                                       .size = (uint32_t)size,
                                                       .index = index,
                                                       .before = n ? n - 1 : ONXI_NO_TOKEN,
                                                       .after = ONXI_NO_TOKEN,
                                                       .whole = whole };
    return ONX_OK;
}

/* The initial symbols for a list of merges: characters, with the markers for the start and end of words. */
static onx_status rune_symbols(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    const char *end = onxi_str_end(text);
    bool unknown = false; /* the last symbol is unknown */
    for (size_t at = 0, n; at < text.len; at += n) {
        n = onxi_rune_size(text.ptr + at, end);
        onx_str s = onx_str_make(text.ptr + at, n);
        if ((at && t->prefix.len) || (at + n == text.len && t->suffix.len)) {
            run->word.len = 0;
            if ((at && !onxi_chars_add(&run->word, t->prefix)) || !onxi_chars_add(&run->word, s) ||
                (at + n == text.len && !onxi_chars_add(&run->word, t->suffix)))
                return ONX_E_MEMORY;
            s = onxi_chars_view(&run->word);
        }
        const uint32_t index = find(t, s);
        if (index == ONXI_NO_TOKEN && has_bytes(t, s)) {
            for (size_t i = 0; i < s.len; i++) /* the byte tokens are together at least as long as the character */
                ONX_TRY(add_symbol(run, at, 1, t->bytes[(uint8_t)s.ptr[i]], false));
            unknown = false;
        } else if (index != ONXI_NO_TOKEN || (t->unknown != ONXI_NO_TOKEN && !(unknown && t->fuse_unknown))) {
            unknown = index == ONXI_NO_TOKEN;
            ONX_TRY(add_symbol(run, at, n, unknown ? t->unknown : index, false));
        }
    }
    return ONX_OK;
}

/* The initial symbols for SentencePiece: characters, and tokens that are never split. */
static onx_status sentence_symbols(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    const char *end = onxi_str_end(text);
    for (size_t at = 0, n; at < text.len; at += n) {
        uint32_t user = ONXI_NO_TOKEN;
        n = onxi_trie_longest(&t->user, onxi_str_from(text, at), &user);
        const bool whole = n != 0;
        if (!whole) {
            n = onxi_rune_size(text.ptr + at, end);
            user = find(t, onx_str_make(text.ptr + at, n));
            if (user != ONXI_NO_TOKEN && !is_found_in_text(t, &t->tokens[user]))
                user = ONXI_NO_TOKEN;
        }
        ONX_TRY(add_symbol(run, at, n, user, whole));
    }
    return ONX_OK;
}

static onx_status bpe(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    const uint32_t whole = t->ignore_merges ? find(t, text) : ONXI_NO_TOKEN;
    if (whole != ONXI_NO_TOKEN)
        return onxi_token_id(run, t->tokens[whole].id) ? ONX_OK : ONX_E_MEMORY;
    run->symbol_count = 0;
    ONX_TRY(t->by_score ? sentence_symbols(run, text) : rune_symbols(run, text));
    ONX_TRY(merge_all(run, text));
    bool unknown = false;
    for (uint32_t i = 0; i < run->symbol_count; i++) {
        const onxi_symbol *s = &run->symbols[i];
        const onx_str part = onx_str_make(text.ptr + s->start, s->size);
        if (!s->size)
            continue;
        if (s->index != ONXI_NO_TOKEN) {
            unknown = false;
            if (!onxi_token_id(run, t->tokens[s->index].id))
                return ONX_E_MEMORY;
        } else if (!unknown || has_bytes(t, part)) { /* consecutive unknown symbols become one */
            unknown = !has_bytes(t, part);
            ONX_TRY(add_unknown(run, part));
        }
    }
    return ONX_OK;
}

/* ---- Unigram: the best segmentation up to every position, from left to right ---- */

/* SentencePiece stores scores as float, and compares sums before rounding. */
static void consider(const onx_tokenizer *t, onxi_best *best, double score, uint32_t from, uint32_t index)
{
    if (best->from == ONXI_NO_TOKEN || score > best->score)
        *best = (onxi_best){ t->narrow ? (double)(float)score : score, from, index };
}

static void look_from(onxi_tokenrun *run, onx_str text, size_t at)
{
    const onx_tokenizer *t = run->tokenizer;
    const double score = run->best[at].score;
    const size_t one = onxi_rune_size(text.ptr + at, onxi_str_end(text));
    bool has_one = false;
    uint32_t node = 0;
    for (size_t i = at; t->trie.nodes && i < text.len; i++) {
        node = onxi_trie_step(&t->trie, node, (uint8_t)text.ptr[i]);
        if (!node)
            break;
        const int32_t index = t->trie.nodes[node].value;
        if (index < 0)
            continue;
        consider(t, &run->best[i + 1], score + t->tokens[index].score, (uint32_t)at, (uint32_t)index);
        has_one = has_one || i + 1 == at + one;
    }
    if (!has_one)
        consider(t, &run->best[at + one], score + t->unknown_score, (uint32_t)at, ONXI_NO_TOKEN);
}

static onx_status unigram(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    const char *end = onxi_str_end(text);
    if (!ONXI_GROW_IN(run->arena, run->best, run->best_room, (uint64_t)text.len + 1))
        return ONX_E_MEMORY;
    for (size_t i = 0; i <= text.len; i++)
        run->best[i] = (onxi_best){ .from = ONXI_NO_TOKEN };
    for (size_t at = 0; at < text.len; at += onxi_rune_size(text.ptr + at, end))
        look_from(run, text, at);
    /* Follows the best path backwards, and reverses it. */
    run->symbol_count = 0;
    for (size_t at = text.len; at; at = run->best[at].from)
        ONX_TRY(add_symbol(run, run->best[at].from, at - run->best[at].from, run->best[at].index, false));
    for (uint64_t i = run->symbol_count; i--;) {
        const onxi_symbol *s = &run->symbols[i];
        size_t size = s->size;
        if (s->index != ONXI_NO_TOKEN) {
            if (!onxi_token_id(run, t->tokens[s->index].id))
                return ONX_E_MEMORY;
            continue;
        }
        const size_t start = s->start;
        for (; i && run->symbols[i - 1].index == ONXI_NO_TOKEN; i--) /* consecutive unknown parts become one */
            size += run->symbols[i - 1].size;
        ONX_TRY(add_unknown(run, onx_str_make(text.ptr + start, size)));
    }
    return ONX_OK;
}

/* ---- words ---- */

/* The longest token for a word from byte `at` on; inside a word, the prefix comes before it. */
static size_t continues(const onx_tokenizer *t, onx_str text, uint32_t *index)
{
    uint32_t node = 0;
    size_t longest = 0;
    for (size_t i = 0; i < t->prefix.len; i++)
        if (!t->trie.nodes || !(node = onxi_trie_step(&t->trie, node, (uint8_t)t->prefix.ptr[i])))
            return 0;
    for (size_t i = 0; t->trie.nodes && i < text.len; i++) {
        node = onxi_trie_step(&t->trie, node, (uint8_t)text.ptr[i]);
        if (!node)
            break;
        if (t->trie.nodes[node].value >= 0) {
            longest = i + 1;
            *index = (uint32_t)t->trie.nodes[node].value;
        }
    }
    return longest;
}

static onx_status wordpiece(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    const uint64_t before = run->id_count;
    const char *end = onxi_str_end(text);
    uint64_t runes = 0;
    for (const char *p = text.ptr; p != end && runes <= t->longest_word; runes++)
        p += onxi_rune_size(p, end);
    size_t n = 1;
    for (size_t at = 0; n && runes <= t->longest_word && at < text.len; at += n) {
        uint32_t index = 0;
        n = at ? continues(t, onxi_str_from(text, at), &index) : onxi_trie_longest(&t->trie, text, &index);
        if (n && !onxi_token_id(run, t->tokens[index].id))
            return ONX_E_MEMORY;
    }
    if (n && runes <= t->longest_word)
        return ONX_OK;
    run->id_count = before; /* a word with an unknown part is unknown as a whole */
    return add_unknown(run, text);
}

static onx_status words(onxi_tokenrun *run, onx_str text)
{
    const onx_tokenizer *t = run->tokenizer;
    const uint32_t index = find(t, text);
    if (index == ONXI_NO_TOKEN)
        return add_unknown(run, text);
    return onxi_token_id(run, t->tokens[index].id) ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_model_encode(onxi_tokenrun *run, onx_str text)
{
    static onx_status (*const models[])(onxi_tokenrun *, onx_str) = {
        [ONXI_MODEL_BPE] = bpe,
        [ONXI_MODEL_WORDPIECE] = wordpiece,
        [ONXI_MODEL_UNIGRAM] = unigram,
        [ONXI_MODEL_WORDS] = words,
    };
    if (text.len >= INT32_MAX / 2)
        return onxi_token_fail(run, ONX_E_LIMIT, "a piece of text has %zu bytes, expected less than 2^30", text.len);
    return text.len ? models[run->tokenizer->model](run, text) : ONX_OK;
}
