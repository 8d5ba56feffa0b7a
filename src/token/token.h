/* token.h - a tokenizer in memory: the steps that process a text, and the model that turns its pieces into tokens. */
#ifndef ONXI_TOKEN_H
#define ONXI_TOKEN_H

#include <onx/tokenizer.h>

#include "base/base.h"
#include "proto/proto.h"

/* The maximum length of a token: the cost of a text is bounded by this times its length, whatever a file contains. */
enum { ONXI_TOKEN_MAX = 1024 };

/* ---- texts (token_text.c) ---- */

/* A growing string in an arena. */
typedef struct onxi_chars {
    onx_arena *arena;
    char *ptr;
    size_t len, room;
} onxi_chars;

bool onxi_chars_add(onxi_chars *out, onx_str text);
/* Appends a code point as UTF-8. */
bool onxi_chars_put(onxi_chars *out, uint32_t c);
static inline onx_str onxi_chars_view(const onxi_chars *c)
{
    return onx_str_make(c->ptr, c->len);
}
/* The next code point of a text that is not at its end; a byte that is not UTF-8 yields U+FFFD. */
uint32_t onxi_rune_next(const char **at, const char *end);
/* The same, but returns its length in bytes, at least 1. */
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

/* The bytes between two positions. The pointer of an empty text may be NULL. */
static inline onx_str onxi_str_part(onx_str text, size_t start, size_t end)
{
    return onx_str_make(start ? text.ptr + start : text.ptr, end - start);
}

/* From the Unicode tables of utf8proc; use only if onxi_unicode_there. */
bool onxi_unicode_there(void);
bool onxi_rune_is_punctuation(uint32_t c);
bool onxi_rune_is_mark(uint32_t c, bool nonspacing); /* Mn alone, or M */
bool onxi_rune_is_other(uint32_t c);                 /* general category C */
bool onxi_rune_is_number(uint32_t c);
/* Maps one code point according to a character table. */
bool onxi_chars_lower(onxi_chars *out, onx_str text);
typedef enum onxi_form { ONXI_NFC, ONXI_NFD, ONXI_NFKC, ONXI_NFKD } onxi_form;
onx_status onxi_chars_form(onx_ctx *cx, onxi_form form, onx_str text, onxi_chars *out);

/* ---- patterns (token_regex.c) ---- */

/* Compiles a pattern from a file, with errors that name it; it has to be freed. */
onx_status onxi_regex_new(onx_ctx *cx, onx_arena *arena, onx_str pattern, onxi_regex **out);
/* The first non-empty match from byte `from` on; *found_out tells whether there is one. */
onx_status onxi_regex_find(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                           size_t *start_out, size_t *end_out, bool *found_out);

/* ---- prefixes (token_trie.c) ---- */

typedef struct onxi_trie_node {
    uint32_t first; /* first child; the children of a node are consecutive, ordered by their bytes */
    int32_t value;  /* -1: no key ends here */
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
/* Sorts the entries and builds the trie; of equal keys the greatest value counts. Keys must not be empty, and values
 * must be below 2^31. */
onx_status onxi_trie_make(onx_arena *arena, onxi_trie_entry *entries, uint32_t count, onxi_trie *out);
/* The child of a node for one byte; 0 if there is none. */
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
/* The longest key that is a prefix of the text: returns its length, and its value; 0 if there is none. */
size_t onxi_trie_longest(const onxi_trie *trie, onx_str text, uint32_t *value_out);

/* ---- steps ---- */

typedef struct onxi_tokenrun onxi_tokenrun;
typedef struct onxi_token_step onxi_token_step;

/* How matches are joined with their surroundings when a piece is split. */
typedef enum onxi_cut {
    ONXI_CUT_REMOVED,
    ONXI_CUT_ISOLATED,
    ONXI_CUT_WITH_PREVIOUS,
    ONXI_CUT_WITH_NEXT,
    ONXI_CUT_CONTIGUOUS,
    ONXI_CUT_COUNT
} onxi_cut;

typedef enum onxi_prepend { ONXI_PREPEND_ALWAYS, ONXI_PREPEND_FIRST, ONXI_PREPEND_NEVER } onxi_prepend;

/* A double-array trie and the replacement strings that its entries point to (token_charsmap.c). */
typedef struct onxi_charsmap {
    onx_str units, texts;
} onxi_charsmap;

typedef struct onxi_token_step_row {
    const char *name;                                                                     /* `type` in the file */
    onx_status (*read)(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step); /* may be NULL */
    /* A normalizer replaces the text; a pre-tokenizer appends pieces to run->next; a decoder modifies run->parts. */
    onx_status (*run)(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out);
    bool unicode; /* needs the Unicode tables */
} onxi_token_step_row;

struct onxi_token_step {
    const onxi_token_step_row *row;
    onx_str text, other;
    onxi_regex *regex;
    onxi_charsmap map;
    uint64_t start, stop;
    uint32_t rune;
    uint8_t cut, prepend;
    bool flag, second, third, fourth; /* their meaning depends on the row */
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
    bool special; /* omitted from decoded text unless requested */
} onxi_token;

/* A token that is searched for before the text is processed. */
typedef struct onxi_added {
    onx_str text, found; /* as in the file; as it is searched for in normalized text */
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
    onxi_token *tokens; /* tokens of the model, in file order */
    uint32_t count;
    uint64_t size;
    onxi_dict by_text; /* indexes of tokens */
    onxi_map by_id;    /* onxi_token by id, including added tokens */
    onxi_map merges;   /* onxi_merge by left << 32 | right; empty: a pair merges if its concatenation is a token */
    onxi_merge *merge_list;
    uint32_t longest;    /* length of the longest token of the model, in bytes */
    uint32_t unknown;    /* index of a token, ONXI_NO_TOKEN: none */
    uint32_t bytes[256]; /* indexes of tokens <0x00> .. <0xFF> when `byte_fallback` */
    bool byte_fallback, fuse_unknown, ignore_merges, by_score, narrow;
    onx_str prefix, suffix; /* prefix of tokens that continue a word; suffix of tokens that end a word */
    uint64_t longest_word;
    double unknown_score;
    onxi_trie trie;           /* for Unigram and WordPiece: indexes of tokens */
    onxi_trie user;           /* for SentencePiece: tokens that are never split */
    onxi_token_step sentence; /* for SentencePiece: how text is normalized; no row: not at all */
    bool sentencepiece, as_suffix;
    onx_str unknown_surface;
    onxi_added *added;
    uint32_t added_count;
    onxi_trie raw, normal; /* added tokens to search in the original text, and in normalized text: indexes into
                            * `added` */
    onxi_token_steps normalizers, splitters, decoders;
    uint32_t *before, *after; /* special ids before and after every text */
    uint32_t before_count, after_count;
    /* result of the last onx_tokenizer_encode */
    onx_arena *answer;
};

/* ---- state of processing one text ---- */

typedef struct onxi_piece {
    onx_str text;
    uint32_t id; /* of an added token; ONXI_NO_TOKEN: still text */
    bool first;  /* it is the start of the whole text */
} onxi_piece;
typedef struct onxi_pieces {
    onxi_piece *list;
    uint64_t count, room;
} onxi_pieces;

typedef struct onxi_symbol {
    uint32_t start, size, index; /* in bytes; size 0: merged into another symbol. Index of a token, ONXI_NO_TOKEN:
                                  * none */
    uint32_t before, after;
    bool whole; /* never merged */
} onxi_symbol;
typedef struct onxi_pair {
    double priority; /* the smallest goes first */
    uint32_t at, size, index;
} onxi_pair;
typedef struct onxi_best { /* the best path to a position in the text */
    double score;
    uint32_t from, index;
} onxi_best;

struct onxi_tokenrun {
    onx_ctx *cx;
    onx_arena *arena; /* for data of this run */
    onx_tokenizer *tokenizer;
    onxi_matcher *matcher;
    onxi_pieces now, next;
    bool first; /* whether the current piece is the first one */
    int64_t *ids;
    uint64_t id_count, id_room;
    onxi_symbol *symbols;
    uint64_t symbol_count, symbol_room;
    onxi_pair *heap;
    uint64_t heap_count, heap_room;
    onxi_best *best;
    uint64_t best_room;
    onxi_chars word;
    onx_str *parts; /* parts of the text that is decoded */
    uint64_t part_count, part_room;
};

/* Records an error about the contents of the file. */
onx_status onxi_token_fail(const onxi_tokenrun *run, onx_status status, const char *format, ...) ONX_PRINTF(3, 4);
bool onxi_token_id(onxi_tokenrun *run, uint32_t id);
bool onxi_token_piece(onxi_tokenrun *run, onx_str text, uint32_t id, bool first);

/* Parsers of files (token_json.c, token_sentence.c), which fill a tokenizer. */
onx_status onxi_tokenizer_read_json(onxi_tokenrun *run, onx_str text);
onx_status onxi_tokenizer_read_sentence(onxi_tokenrun *run, onx_str bytes);
/* Reads steps of one kind; nested sequences are flattened (token_json.c). */
onx_status onxi_token_steps_read(onxi_tokenrun *run, const onxi_token_step_row *rows, const char *what,
                                 const onxi_json *from, const char *list, onxi_token_steps *out);
onx_status onxi_token_step_pattern(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step);
extern const onxi_token_step_row onxi_normalizer_rows[], onxi_splitter_rows[], onxi_decoder_rows[];
/* Adds a token of the model; its text is not copied. */
onx_status onxi_token_add(onxi_tokenrun *run, onx_str text, uint64_t id, double score, onxi_token_kind kind);
/* Builds the data that depends on all tokens: tries, byte tokens, the maximum length. */
onx_status onxi_model_ready(onxi_tokenrun *run);
/* Resolves the added tokens, after those of the model (token_added.c). */
onx_status onxi_added_read(onxi_tokenrun *run, const onxi_json *list);
onx_status onxi_added_ready(onxi_tokenrun *run);
/* Splits a text at added tokens; appends pieces to run->next. */
onx_status onxi_added_cut(onxi_tokenrun *run, const onxi_trie *trie, onx_str text, bool first);

onx_status onxi_normalize(onxi_tokenrun *run, onx_str text, onx_str *out);
onx_status onxi_charsmap_read(onxi_tokenrun *run, onx_str bytes, onxi_charsmap *out);
/* The longest prefix of the text that the table maps: returns its length, and its replacement; 0 if there is none. */
size_t onxi_charsmap_find(const onxi_charsmap *map, onx_str text, onx_str *out);
/* The normalization of SentencePiece: table, white space, and the space before the text. */
onx_status onxi_sentence_normalize(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out);
onx_status onxi_sentence_decode(onxi_tokenrun *run, const int64_t *ids, uint64_t count, bool special, onxi_chars *out);

/* The text itself if it is valid UTF-8, as patterns require; else a copy with U+FFFD for every invalid byte. */
onx_status onxi_text_valid(onxi_tokenrun *run, onx_str *text);
/* Steps that belong to more than one kind. */
onx_status onxi_replace_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step);
onx_status onxi_replace(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out);
onx_status onxi_metaspace_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step);
/* Maps each byte to the code point that represents it. */
onx_status onxi_byte_text(onxi_tokenrun *run, onx_str text, onx_str *out);
/* The byte that a token like "<0x41>" stands for; -1 for other tokens. */
int onxi_byte_token(onx_str token);
/* The code point that represents a byte in byte-level texts, and the inverse (-1: none). */
uint32_t onxi_byte_rune(uint8_t byte);
int onxi_rune_byte(uint32_t c);
/* Appends the tokens of one piece of text. */
onx_status onxi_model_encode(onxi_tokenrun *run, onx_str text);
/* Encodes a text to run->ids, and decodes ids. */
onx_status onxi_token_encode(onxi_tokenrun *run, onx_str text, bool special);
onx_status onxi_token_decode(onxi_tokenrun *run, const int64_t *ids, uint64_t count, bool special, onxi_chars *out);
void onxi_token_end(onxi_tokenrun *run);

/* ---- tokenizers from separate parts (token_make.c) ---- */

/* The parts that models store in node attributes. */
typedef struct onxi_bpe_parts {
    onx_str vocab;             /* a JSON object that maps tokens to ids */
    onx_str merges;            /* one merge per line */
    onx_str added;             /* lines "token=id" */
    const char *steps, *model; /* constant JSON members of the tokenizer.json and of its model */
    const char *special[4];    /* tokens that are searched for before the text is processed; ended by NULL */
} onxi_bpe_parts;
onx_status onxi_tokenizer_of_parts(onx_ctx *cx, const onxi_bpe_parts *parts, onx_tokenizer **out);
/* The bytes of an attribute, either directly or decoded from base64. */
onx_status onxi_token_bytes(onx_arena *arena, onx_str held, onx_str *out);
/* A SentencePiece model, either directly or in base64. */
onx_status onxi_tokenizer_of_model(onx_ctx *cx, onx_str bytes, onx_tokenizer **out);

/* Splits a text into words like BERT's basic tokenizer; the pieces are in run->next. */
typedef struct onxi_basic_words {
    bool clean, chinese, strip, lower, punctuation;
} onxi_basic_words;
onx_status onxi_token_words(onxi_tokenrun *run, const onxi_basic_words *how, onx_str text);

#endif
