/* token.h - a tokenizer in memory: the steps that a text goes through, and the model that makes tokens of its pieces.
 */
#ifndef ONXI_TOKEN_H
#define ONXI_TOKEN_H

#include <onx/tokenizer.h>

#include "base/base.h"
#include "proto/proto.h"

/* The longest token: what a text costs is bounded by this times its length, whatever a file holds. */
enum { ONXI_TOKEN_MAX = 1024 };

/* ---- texts (token_text.c) ---- */

/* A text that grows in an arena. */
typedef struct onxi_chars {
    onx_arena *arena;
    char *ptr;
    size_t len, room;
} onxi_chars;

bool onxi_chars_add(onxi_chars *out, onx_str text);
/* A code point as UTF-8. */
bool onxi_chars_put(onxi_chars *out, uint32_t c);
static inline onx_str onxi_chars_view(const onxi_chars *c)
{
    return onx_str_make(c->ptr, c->len);
}
/* The next code point of a text that is not at its end; a byte that is not UTF-8 is U+FFFD. */
uint32_t onxi_rune_next(const char **at, const char *end);
/* The same as a length in bytes, at least 1. */
size_t onxi_rune_size(const char *at, const char *end);
bool onxi_rune_is_space(uint32_t c);
static inline bool onxi_starts_with(onx_str text, onx_str start)
{
    return text.len >= start.len && (!start.len || memcmp(text.ptr, start.ptr, start.len) == 0);
}
static inline onx_str onxi_str_from(onx_str text, size_t at)
{
    return at ? onx_str_make(text.ptr + at, text.len - at) : text;
}

/* What is from one place to another, which may be all of a text without an address. */
static inline onx_str onxi_str_part(onx_str text, size_t start, size_t end)
{
    return onx_str_make(start ? text.ptr + start : text.ptr, end - start);
}

/* Of Unicode's tables, by utf8proc; only where onxi_unicode_there. */
bool onxi_unicode_there(void);
bool onxi_rune_is_punctuation(uint32_t c);
bool onxi_rune_is_mark(uint32_t c, bool nonspacing); /* Mn alone, or M */
bool onxi_rune_is_other(uint32_t c);                 /* C */
bool onxi_rune_is_number(uint32_t c);
/* One code point at a time, as character tables say. */
bool onxi_chars_lower(onxi_chars *out, onx_str text);
typedef enum onxi_form { ONXI_NFC, ONXI_NFD, ONXI_NFKC, ONXI_NFKD } onxi_form;
onx_status onxi_chars_form(onx_ctx *cx, onxi_form form, onx_str text, onxi_chars *out);

/* ---- patterns (token_regex.c) ---- */

/* A pattern of a file, with the errors of one; to be freed. */
onx_status onxi_regex_new(onx_ctx *cx, onx_arena *arena, onx_str pattern, onxi_regex **out);
/* The first match from byte `from` on that is not empty; *found_out tells whether there is one. */
onx_status onxi_regex_find(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                           size_t *start_out, size_t *end_out, bool *found_out);

/* ---- prefixes (token_trie.c) ---- */

typedef struct onxi_trie_node {
    uint32_t first; /* of its children, which follow one another in order of their bytes */
    int32_t value;  /* -1: nothing ends here */
    uint16_t count;
    uint8_t byte;
} onxi_trie_node;
typedef struct onxi_trie {
    onxi_trie_node *nodes; /* NULL: empty */
} onxi_trie;
typedef struct onxi_trie_entry {
    onx_str key;
    uint32_t value;
} onxi_trie_entry;
/* Sorts the entries; of equal ones the greatest value counts. Empty keys and values past 2^31 - 1 are mistakes. */
onx_status onxi_trie_make(onx_arena *arena, onxi_trie_entry *entries, uint32_t count, onxi_trie *out);
/* One byte further from a node; 0: nowhere. */
static inline uint32_t onxi_trie_step(const onxi_trie *trie, uint32_t node, uint8_t next)
{
    const onxi_trie_node *n = &trie->nodes[node];
    uint32_t low = n->first, count = n->count;
    while (count > 1) {
        const uint32_t half = count / 2;
        if (trie->nodes[low + half].byte <= next) {
            low += half;
            count -= half;
        } else {
            count = half;
        }
    }
    return count && trie->nodes[low].byte == next ? low : 0;
}
/* The longest key that the text begins with: its length, and its value; 0 when there is none. */
size_t onxi_trie_longest(const onxi_trie *trie, onx_str text, uint32_t *value_out);

/* ---- steps ---- */

typedef struct onxi_tokenrun onxi_tokenrun;
typedef struct onxi_token_step onxi_token_step;

/* How pieces are cut where something was found. */
typedef enum onxi_cut {
    ONXI_CUT_REMOVED,
    ONXI_CUT_ISOLATED,
    ONXI_CUT_WITH_PREVIOUS,
    ONXI_CUT_WITH_NEXT,
    ONXI_CUT_CONTIGUOUS,
    ONXI_CUT_COUNT
} onxi_cut;

typedef enum onxi_prepend { ONXI_PREPEND_ALWAYS, ONXI_PREPEND_FIRST, ONXI_PREPEND_NEVER } onxi_prepend;

/* A table of double-array units and the texts that they lead to (token_charsmap.c). */
typedef struct onxi_charsmap {
    onx_str units, texts;
} onxi_charsmap;

typedef struct onxi_token_step_row {
    const char *name;                                                                     /* `type` in the file */
    onx_status (*read)(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step); /* may be NULL */
    /* A normalizer gives the text anew; a pre-tokenizer adds pieces to run->next; a decoder changes run->parts. */
    onx_status (*run)(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out);
    bool unicode; /* needs Unicode's tables */
} onxi_token_step_row;

struct onxi_token_step {
    const onxi_token_step_row *row;
    onx_str text, other;
    onxi_regex *regex;
    onxi_charsmap map;
    uint64_t start, stop;
    uint32_t rune;
    uint8_t cut, prepend;
    bool flag, second, third, fourth; /* what they say depends on the row */
};

typedef struct onxi_token_steps {
    onxi_token_step *list;
    uint32_t count, room;
} onxi_token_steps;

/* ---- the tokenizer ---- */

typedef enum onxi_token_kind {
    ONXI_TOKEN_NORMAL,
    ONXI_TOKEN_UNKNOWN,
    ONXI_TOKEN_CONTROL,
    ONXI_TOKEN_USER,
    ONXI_TOKEN_UNUSED,
    ONXI_TOKEN_BYTE
} onxi_token_kind;

typedef struct onxi_token {
    onx_str text;
    double score;
    uint32_t id;
    uint8_t kind;
    bool special; /* left out of decoded texts unless they are asked for */
} onxi_token;

/* A token that is found before anything else is done. */
typedef struct onxi_added {
    onx_str text, found; /* as it is in the file; as it is found in normalized text */
    uint32_t id;
    bool single, left, right, normalized, special;
} onxi_added;

typedef struct onxi_merge {
    uint32_t rank, id;
} onxi_merge;

typedef enum onxi_token_model {
    ONXI_MODEL_BPE,
    ONXI_MODEL_WORDPIECE,
    ONXI_MODEL_UNIGRAM,
    ONXI_MODEL_WORDS
} onxi_token_model;

#define ONXI_NO_TOKEN UINT32_MAX

struct onx_tokenizer {
    onx_ctx *cx;
    onx_arena *arena;
    onxi_token_model model;
    onxi_token *tokens; /* of the model, in the order of the file */
    uint32_t count;
    uint64_t size;
    onxi_dict by_text; /* indexes of tokens */
    onxi_map by_id;    /* onxi_token of an id, added ones included */
    onxi_map merges;   /* onxi_merge of left << 32 | right; empty: pairs merge whose texts together are a token */
    onxi_merge *merge_list;
    uint32_t longest;    /* token of the model, in bytes */
    uint32_t unknown;    /* index of a token, ONXI_NO_TOKEN: none */
    uint32_t bytes[256]; /* indexes of tokens <0x00> .. <0xFF> when `byte_fallback` */
    bool byte_fallback, fuse_unknown, ignore_merges, by_score, narrow;
    onx_str prefix, suffix; /* of what continues a word; of the end of a word */
    uint64_t longest_word;
    double unknown_score;
    onxi_trie trie;           /* of Unigram and WordPiece: indexes of tokens */
    onxi_trie user;           /* of SentencePiece: tokens that stay whole */
    onxi_token_step sentence; /* of SentencePiece: how text is normalized; without row: none */
    bool sentencepiece, as_suffix;
    onx_str unknown_surface;
    onxi_added *added;
    uint32_t added_count;
    onxi_trie raw, normal; /* added tokens in the text as it is, and normalized: indexes of `added` */
    onxi_token_steps normalizers, splitters, decoders;
    uint32_t *before, *after; /* ids around every text */
    uint32_t before_count, after_count;
    /* of the last onx_tokenizer_encode */
    onx_arena *answer;
};

/* ---- work on one text ---- */

typedef struct onxi_piece {
    onx_str text;
    uint32_t id; /* of an added token; ONXI_NO_TOKEN: still a text */
    bool first;  /* the whole text begins with it */
} onxi_piece;
typedef struct onxi_pieces {
    onxi_piece *list;
    uint64_t count, room;
} onxi_pieces;

typedef struct onxi_symbol {
    uint32_t start, size, index; /* bytes; size 0: removed. Index of a token, ONXI_NO_TOKEN: none */
    uint32_t before, after;
    bool whole; /* does not merge */
} onxi_symbol;
typedef struct onxi_pair {
    double priority; /* the least goes first */
    uint32_t at, size, index;
} onxi_pair;
typedef struct onxi_best { /* way to a place in a text */
    double score;
    uint32_t from, index;
} onxi_best;

struct onxi_tokenrun {
    onx_ctx *cx;
    onx_arena *arena; /* of what the run makes */
    onx_tokenizer *tokenizer;
    onxi_matcher *matcher;
    onxi_pieces now, next;
    bool first; /* of the current piece */
    int64_t *ids;
    uint64_t id_count, id_room;
    onxi_symbol *symbols;
    uint64_t symbol_count, symbol_room;
    onxi_pair *heap;
    uint64_t heap_count, heap_room;
    onxi_best *best;
    uint64_t best_room;
    onxi_chars word;
    onx_str *parts; /* of a text that is decoded */
    uint64_t part_count, part_room;
};

/* An error about what a file says. */
onx_status onxi_token_fail(const onxi_tokenrun *run, onx_status status, const char *format, ...) ONX_PRINTF(3, 4);
bool onxi_token_id(onxi_tokenrun *run, uint32_t id);
bool onxi_token_piece(onxi_tokenrun *run, onx_str text, uint32_t id, bool first);

/* Reading files (token_json.c, token_sentence.c): fill a tokenizer. */
onx_status onxi_tokenizer_read_json(onxi_tokenrun *run, onx_str text);
onx_status onxi_tokenizer_read_sentence(onxi_tokenrun *run, onx_str bytes);
/* Steps of a kind, sequences laid flat (token_json.c). */
onx_status onxi_token_steps_read(onxi_tokenrun *run, const onxi_token_step_row *rows, const char *what,
                                 const onxi_json *from, const char *list, onxi_token_steps *out);
onx_status onxi_token_step_pattern(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step);
extern const onxi_token_step_row onxi_normalizer_rows[], onxi_splitter_rows[], onxi_decoder_rows[];
/* Adds a token of the model; texts are kept where they are. */
onx_status onxi_token_add(onxi_tokenrun *run, onx_str text, uint64_t id, double score, onxi_token_kind kind);
/* What is made of the tokens once they are there: tries, bytes, the longest. */
onx_status onxi_model_ready(onxi_tokenrun *run);
/* Tokens of added ones, those of the model known (token_added.c). */
onx_status onxi_added_read(onxi_tokenrun *run, const onxi_json *list);
onx_status onxi_added_ready(onxi_tokenrun *run);
/* Cuts a text at added tokens; adds pieces to run->next. */
onx_status onxi_added_cut(onxi_tokenrun *run, const onxi_trie *trie, onx_str text, bool first);

onx_status onxi_normalize(onxi_tokenrun *run, onx_str text, onx_str *out);
onx_status onxi_charsmap_read(onxi_tokenrun *run, onx_str bytes, onxi_charsmap *out);
/* The longest start of the text that the table knows: its length, and what it becomes; 0 when it knows none. */
size_t onxi_charsmap_find(const onxi_charsmap *map, onx_str text, onx_str *out);
/* SentencePiece's way: table, blanks, the blank before the text. */
onx_status onxi_sentence_normalize(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out);
onx_status onxi_sentence_decode(onxi_tokenrun *run, const int64_t *ids, uint64_t count, bool special, onxi_chars *out);

/* The same text where it is UTF-8, as patterns need it; else with U+FFFD for every byte that is not. */
onx_status onxi_text_valid(onxi_tokenrun *run, onx_str *text);
/* Steps of more than one kind. */
onx_status onxi_replace_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step);
onx_status onxi_replace(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out);
onx_status onxi_metaspace_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step);
/* Each byte as the code point that stands for it. */
onx_status onxi_byte_text(onxi_tokenrun *run, onx_str text, onx_str *out);
/* The byte of "<0x41>"; -1 for other tokens. */
int onxi_byte_token(onx_str token);
/* The code point that stands for a byte in byte-level texts, and back (-1: none). */
uint32_t onxi_byte_rune(uint8_t byte);
int onxi_rune_byte(uint32_t c);
/* The tokens of one piece of text. */
onx_status onxi_model_encode(onxi_tokenrun *run, onx_str text);
/* Everything from a text to run->ids, and back. */
onx_status onxi_token_encode(onxi_tokenrun *run, onx_str text, bool special);
onx_status onxi_token_decode(onxi_tokenrun *run, const int64_t *ids, uint64_t count, bool special, onxi_chars *out);
void onxi_token_end(onxi_tokenrun *run);

/* ---- tokenizers from parts (token_make.c) ---- */

/* What models carry in attributes of nodes. */
typedef struct onxi_bpe_parts {
    onx_str vocab;             /* an object of tokens and their ids, as JSON */
    onx_str merges;            /* a line for each */
    onx_str added;             /* lines "token=id" */
    const char *steps, *model; /* members of a tokenizer.json, and of its model, that are always the same */
    const char *special[4];    /* tokens that are found before anything else; NULL ends them */
} onxi_bpe_parts;
onx_status onxi_tokenizer_of_parts(onx_ctx *cx, const onxi_bpe_parts *parts, onx_tokenizer **out);
/* Bytes that an attribute holds: as they are, or what they stand for in base64. */
onx_status onxi_token_bytes(onx_arena *arena, onx_str held, onx_str *out);
/* A SentencePiece model, as it is or in base64. */
onx_status onxi_tokenizer_of_model(onx_ctx *cx, onx_str bytes, onx_tokenizer **out);

/* Words as BERT's basic tokenizer cuts them; pieces are in run->next. */
typedef struct onxi_basic_words {
    bool clean, chinese, strip, lower, punctuation;
} onxi_basic_words;
onx_status onxi_token_words(onxi_tokenrun *run, const onxi_basic_words *how, onx_str text);

#endif
