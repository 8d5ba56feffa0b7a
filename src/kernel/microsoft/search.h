/* search.h - shared by the files of sequence search: search.c has the main loop, search_encoder.c decoders with an
 * encoder, search_scores.c adjusts scores and samples tokens, search_beams.c does beam search. */
#ifndef ONXI_KERNEL_MICROSOFT_SEARCH_H
#define ONXI_KERNEL_MICROSOFT_SEARCH_H

#include "kernel/microsoft/microsoft.h"

/* Input indices of the node; -1: the operator has no such input. */
typedef struct onxi_search_inputs {
    int32_t penalty, vocab_mask, prefix_mask, mask, presence, seed, times, temperature, heads, forced;
} onxi_search_inputs;

/* Inputs of a decoder after a past that shares its buffer with the present: the number of past keys, the number of
 * beams, and the beam of each key. */
typedef enum onxi_search_extra {
    ONXI_SEARCH_PAST_LENGTH,
    ONXI_SEARCH_BEAM_WIDTH,
    ONXI_SEARCH_BEAM_OF_KEY,
    ONXI_SEARCH_EXTRAS
} onxi_search_extra;

/* Values of model_type: a decoder without encoder, with a text encoder, with an audio encoder. */
enum { ONXI_SEARCH_ALONE, ONXI_SEARCH_TEXT, ONXI_SEARCH_SOUND };

/* The first timestamp token, and other tokens with rules in that mode; -1: there is none. */
typedef struct onxi_search_times {
    int32_t first, none, language_model, translate, transcribe;
} onxi_search_times;

typedef struct onxi_search {
    uint32_t decoder, first; /* subgraphs; `first` is used in the first step */
    int64_t kind;
    uint32_t formal, decoder_inputs; /* number of inputs of the decoder before the past, and of all inputs */
    uint32_t layers;                 /* number of past tensors of the decoder */
    /* Number of inputs of the decoder after the past; 0: past and present have separate memory. */
    uint32_t extra_count;
    onxi_search_extra extras[ONXI_SEARCH_EXTRAS];
    uint32_t crossed;    /* number of outputs of the decoder after the past: cross-attention products */
    int64_t heads, size; /* of the past */
    int dtype;           /* of the past */
    int32_t end, pad, start;
    uint32_t encoder, encoder_inputs, encoder_outputs;
    bool takes_ids, takes_mask, takes_hidden; /* inputs of the decoder that come from the encoder */
    bool whole;                               /* the decoder has no past: it gets all tokens in each step */
    bool fresh;                               /* the encoder gives neither scores nor a past */
    onxi_search_times times;
    int32_t silence;       /* the token whose probability is an output */
    uint64_t ngram, vocab; /* vocab 0: as many tokens as the decoder scores */
    onxi_search_inputs in;
    bool beams, stops_early;
    bool samples, downwards;
    float temperature, presence_penalty, filter, share;
    int64_t least_kept;
} onxi_search;

typedef struct onxi_search_beam { /* a finished sequence */
    float score;
    uint64_t length, runs;
    int32_t *tokens;
    uint32_t *trail;
} onxi_search_beam;

/* Cross-attention products of the decoder, kept for an output: per run, those of the requested heads for all rows; and
 * for each current row, the row that it had in each run. */
typedef struct onxi_search_products {
    const int32_t *wanted; /* pairs of layer and head; NULL: all */
    uint64_t pairs, frames, runs;
    float **kept;       /* per run: [rows, pairs, frames] */
    uint32_t *trail[2]; /* rows of length `longest`; the first array is current, the second one is for the next step */
} onxi_search_products;

/* The state of a run. A row is a beam; the beams of a sequence are adjacent. */
typedef struct onxi_search_run {
    onx_arena *arena;
    uint64_t batch, beams, rows, wanted;
    uint64_t start, length, longest, step, vocab; /* length: of the sequences so far */
    int64_t least;
    float penalty, length_penalty, temperature;
    bool has_times;
    const int32_t *vocab_mask, *prefix_mask, *presence;
    onx_value **values, **past, **out, **extra;
    onx_value **encoded; /* outputs of the encoder, then the text mask and the first tokens */
    uint32_t value_count;
    const onx_value **in;
    int32_t *tokens[2]; /* rows of length `longest`; the first array is current, the second one is for the next step */
    int32_t *positions, *next;
    uint32_t *from; /* per row: the row that it continues */
    bool *done;     /* per sequence of the batch */
    float *scores, *sums;
    onxi_random random;
    uint64_t *seen, stamp;   /* per token: the stamp when it was seen last */
    void *order;             /* tokens sorted by scores */
    onxi_search_beam *ended; /* beams + 1 entries per sequence, of which ended_count are used */
    uint64_t *ended_count;
    uint64_t *best;        /* the 2 * beams best candidates of a sequence, as row * vocab + token */
    const int32_t *forced; /* tokens forced after the initial ones, [batch, forced_count]; negative: none */
    uint64_t forced_count;
    onxi_search_products products;
} onxi_search_run;

/* The declared size of a dimension of an input or output; 0 if it is not fixed. */
int64_t onxi_search_declared(const onx_value_info *v, uint32_t rank, uint32_t dim);
int onxi_search_dtype(const onx_value_info *v);
const onx_value *onxi_search_operand(onx_work *work, int32_t index);
/* Sets the past of the next step from that of the beams that continue. */
onx_status onxi_search_hand_past(onxi_search_run *r, const onxi_search *q);

/* Identifies the inputs of a decoder from `first` on by their names; fails if one is unknown. */
onx_status onxi_search_find_extras(const onx_prepare *p, const char *name, const onx_graph *g, uint32_t first,
                                   onxi_search *q);
/* Makes an empty past of rank 5, or of rank 4 if keys and values are separate; a shared buffer gets room for all
 * keys. */
onx_status onxi_search_no_past(const onxi_search *q, const onxi_search_run *r, uint32_t rank, onx_value *past);
/* Sets these extra inputs for a past with this number of keys. */
onx_status onxi_search_set_extras(const onxi_search *q, onxi_search_run *r, uint64_t past);

/* Checks the encoder and decoder of a node with both. */
onx_status onxi_search_check_encoder(onx_prepare *p, onxi_search *q);
/* onxi_search_encode runs the encoder and makes the inputs of the decoder's first step; onxi_search_encoder_next makes
 * those of the next step. */
onx_status onxi_search_encode(onx_work *work, const onxi_search *q, onxi_search_run *r);
onx_status onxi_search_encoder_next(const onxi_search *q, onxi_search_run *r);

/* Adjusts the scores of a step as inputs and attributes require. */
void onxi_search_adjust(const onxi_search *q, onxi_search_run *r);
/* Samples a token; afterwards, excluded tokens have the filter value in `scores`. */
onx_status onxi_search_sample(const onxi_search *q, onxi_search_run *r, float *scores, uint64_t *token);

/* Cross-attention products as an output (search_products.c). */
onx_status onxi_search_begin_products(onx_work *work, const onxi_search *q, onxi_search_run *r);
/* Keeps the products of a run of the decoder. */
onx_status onxi_search_keep_products(onx_work *work, const onxi_search *q, onxi_search_run *r);
/* Reorders the rows as given by `from`. */
void onxi_search_move_products(onxi_search_run *r);
onx_status onxi_search_give_products(onx_work *work, const onxi_search *q, const onxi_search_run *r);

onx_status onxi_beam_begin(onx_work *work, const onxi_search *q, onxi_search_run *r);
onx_status onxi_beam_choose(onx_work *work, const onxi_search *q, onxi_search_run *r);
onx_status onxi_beam_outputs(onx_work *work, const onxi_search *q, onxi_search_run *r);

#endif
