/* search.h - what searches for sequences share: search.c walks, search_encoder.c has the decoders with an encoder,
 * search_scores.c changes scores and draws tokens, search_beams.c keeps several sequences at once. */
#ifndef ONXI_KERNEL_MICROSOFT_SEARCH_H
#define ONXI_KERNEL_MICROSOFT_SEARCH_H

#include "kernel/microsoft/microsoft.h"

/* Where inputs of the node are; -1: the operator has none. */
typedef struct onxi_search_inputs {
    int32_t penalty, vocab_mask, prefix_mask, mask, presence, seed, times, temperature, heads, forced;
} onxi_search_inputs;

/* What a decoder takes after a past that it shares with the present, one buffer with room for all tokens: how many
 * keys it holds, how many beams there are, and of which beam each key is. */
typedef enum onxi_search_extra {
    ONXI_SEARCH_PAST_LENGTH,
    ONXI_SEARCH_BEAM_WIDTH,
    ONXI_SEARCH_BEAM_OF_KEY,
    ONXI_SEARCH_EXTRAS
} onxi_search_extra;

/* Values of model_type: a decoder alone, one with an encoder of texts, one with an encoder of sound. */
enum { ONXI_SEARCH_ALONE, ONXI_SEARCH_TEXT, ONXI_SEARCH_SOUND };

/* Tokens that mark times, and what else is ruled by them; -1: there is none. */
typedef struct onxi_search_times {
    int32_t first, none, language_model, translate, transcribe;
} onxi_search_times;

typedef struct onxi_search {
    uint32_t decoder, first; /* subgraphs; `first`: of the first step */
    int64_t kind;
    uint32_t formal, decoder_inputs; /* inputs of the decoder before the past, and all */
    uint32_t layers;                 /* tensors of the past that a step makes */
    uint32_t extra_count;            /* inputs of the decoder after the past; 0: past and present are apart */
    onxi_search_extra extras[ONXI_SEARCH_EXTRAS];
    uint32_t crossed;    /* outputs of the decoder after the past: products of queries and keys of the encoder */
    int64_t heads, size; /* of the past */
    int dtype;           /* of the past */
    int32_t end, pad, start;
    uint32_t encoder, encoder_inputs, encoder_outputs;
    bool takes_ids, takes_mask, takes_hidden; /* of the encoder, by the decoder */
    bool whole;                               /* the decoder takes all tokens each time */
    bool fresh;                               /* the encoder makes neither scores nor past */
    onxi_search_times times;
    int32_t silence;       /* the token whose probability is an output */
    uint64_t ngram, vocab; /* vocab 0: as many as the decoder scores */
    onxi_search_inputs in;
    bool beams, stops_early;
    bool samples, downwards;
    float temperature, presence_penalty, filter, share;
    int64_t least_kept;
} onxi_search;

typedef struct onxi_search_beam { /* a sequence that has ended */
    float score;
    uint64_t length, runs;
    int32_t *tokens;
    uint32_t *trail;
} onxi_search_beam;

/* Products that the decoder gave, kept for an output: for each of its runs those of all rows that are asked for, and
 * for each row in force in which row it was at each run. */
typedef struct onxi_search_products {
    const int32_t *wanted; /* pairs of layer and head; NULL: all */
    uint64_t pairs, frames, runs;
    float **kept;       /* per run: [rows, pairs, frames] */
    uint32_t *trail[2]; /* rows of `longest`; the first are in force */
} onxi_search_products;

/* One run. Rows are the beams of all sequences, those of a sequence adjacent. */
typedef struct onxi_search_run {
    onx_arena *arena;
    uint64_t batch, beams, rows, wanted;
    uint64_t start, length, longest, step, vocab; /* length: of the sequences so far */
    int64_t least;
    float penalty, length_penalty, temperature;
    bool has_times;
    const int32_t *vocab_mask, *prefix_mask, *presence;
    onx_value **values, **past, **out, **extra;
    onx_value **encoded; /* outputs of the encoder, then the mask of texts and the first tokens */
    uint32_t value_count;
    const onx_value **in;
    int32_t *tokens[2]; /* rows of `longest`; the first are in force */
    int32_t *positions, *next;
    uint32_t *from; /* which row each row continues */
    bool *done;     /* of each sequence of the batch */
    float *scores, *sums;
    onxi_random random;
    uint64_t *seen, stamp;   /* per token, when it occurred last */
    void *order;             /* of tokens by their scores */
    onxi_search_beam *ended; /* beams + 1 per sequence, of which ended_count are in use */
    uint64_t *ended_count;
    uint64_t *best;        /* the 2 * beams best of a sequence, as row * vocab + token */
    const int32_t *forced; /* tokens that sequences continue with at first, [batch, forced_count]; below 0: none */
    uint64_t forced_count;
    onxi_search_products products;
} onxi_search_run;

/* The declared size of a dimension of an input or output; 0 where it is open. */
int64_t onxi_search_declared(const onx_value_info *v, uint32_t rank, uint32_t dim);
int onxi_search_dtype(const onx_value_info *v);
const onx_value *onxi_search_operand(onx_work *work, int32_t index);
/* The past of the beams that continue takes the place of all. */
onx_status onxi_search_hand_past(onxi_search_run *r, const onxi_search *q);

/* Tells the inputs of a decoder from `first` on, all of them, by their names; fails where one is something else. */
onx_status onxi_search_find_extras(const onx_prepare *p, const char *name, const onx_graph *g, uint32_t first,
                                   onxi_search *q);
/* A past without keys, of rank 5, or 4 where keys and values are apart; with room for all where it is shared. */
onx_status onxi_search_no_past(const onxi_search *q, const onxi_search_run *r, uint32_t rank, onx_value *past);
/* Sets them for a past of this number of keys. */
onx_status onxi_search_set_extras(const onxi_search *q, onxi_search_run *r, uint64_t past);

/* Looks at encoder and decoder of a node with both. */
onx_status onxi_search_check_encoder(onx_prepare *p, onxi_search *q);
/* Runs the encoder and makes the inputs of the decoder's first step, and those of the next ones. */
onx_status onxi_search_encode(onx_work *work, const onxi_search *q, onxi_search_run *r);
onx_status onxi_search_encoder_next(const onxi_search *q, onxi_search_run *r);

/* Changes the scores of a step as inputs and attributes ask for. */
void onxi_search_adjust(const onxi_search *q, onxi_search_run *r);
/* Draws a token; what is ruled out has the filter value in `scores` then. */
onx_status onxi_search_sample(const onxi_search *q, onxi_search_run *r, float *scores, uint64_t *token);

/* Products of queries and keys as an output (search_products.c). */
onx_status onxi_search_begin_products(onx_work *work, const onxi_search *q, onxi_search_run *r);
/* Keeps those of a run of the decoder. */
onx_status onxi_search_keep_products(onx_work *work, const onxi_search *q, onxi_search_run *r);
/* Rows continue as `from` says. */
void onxi_search_move_products(onxi_search_run *r);
onx_status onxi_search_give_products(onx_work *work, const onxi_search *q, const onxi_search_run *r);

onx_status onxi_beam_begin(onx_work *work, const onxi_search *q, onxi_search_run *r);
onx_status onxi_beam_choose(onx_work *work, const onxi_search *q, onxi_search_run *r);
onx_status onxi_beam_outputs(onx_work *work, const onxi_search *q, onxi_search_run *r);

#endif
