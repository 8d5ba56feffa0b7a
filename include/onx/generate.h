/* generate.h - language models: a decoder generates token after token, with its caches kept between the steps. See
 * docs/notes/generate.md. */
#ifndef ONX_GENERATE_H
#define ONX_GENERATE_H

#include <onx/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One sequence of tokens that a decoder processes. */
typedef struct onx_generator onx_generator;

typedef struct onx_generator_options {
    uint32_t struct_size;               /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_session_options *session; /* of the session that runs the model; may be NULL */
    onx_str config; /* contents of a genai_config.json, which names the inputs and outputs; empty: the model's own
                     * names and types decide */
    uint64_t room;  /* initial capacity in tokens of a cache that has spare room; the cache grows when it is full. 0:
                     * 256 */
    onx_str ends;   /* contents of a generation_config.json or config.json, whose end-of-text tokens count if `config`
                     * names none */
} onx_generator_options;

/* Makes a session of a model whose inputs are token ids and tensors that follow from the number of tokens: masks,
 * positions, lengths, and caches. Each cache has an output that replaces it in the next step. The document must outlive
 * the generator. ONX_E_UNSUPPORTED for a model that has other inputs. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_new(onx_ctx *cx, onx_doc *doc, const onx_generator_options *options,
                                                    onx_generator **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_generator_free(onx_generator *generator);

/* Runs the model on `count` tokens that follow the earlier ones; afterwards there are scores for the next token.
 * ONX_E_LIMIT when the model cannot take that many: the tokens fed before are kept. After a run that failed, call
 * onx_generator_reset. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_feed(onx_generator *generator, const int64_t *ids, uint64_t count);
/* Removes all tokens. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_reset(onx_generator *generator);
/* How many tokens were fed, and how many the model can take in total (UINT64_MAX: the model does not say). */
ONX_API ONX_ANY_THREAD uint64_t onx_generator_length(const onx_generator *generator);
ONX_API ONX_ANY_THREAD uint64_t onx_generator_limit(const onx_generator *generator);
/* A score for each token of the vocabulary, valid until the next call that changes the generator; NULL before any token
 * was fed. `count_out` may be NULL. */
ONX_API ONX_ANY_THREAD const float *onx_generator_scores(const onx_generator *generator, uint64_t *count_out);
/* The end-of-text tokens of the configuration; false past the last one. */
ONX_API ONX_ANY_THREAD bool onx_generator_end(const onx_generator *generator, uint32_t index, int64_t *id_out);

/* How the next token is chosen: penalties are applied first, then the temperature, then top_k, then top_p on the
 * remaining tokens. */
typedef struct onx_choice_options {
    uint32_t struct_size;      /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t top_k;            /* only this many of the greatest scores; 0: all */
    double temperature;        /* divisor of the scores; 0: the greatest score wins, the first one of a tie */
    double top_p;              /* only the most likely tokens whose probabilities add up to this; 0: all */
    double repetition_penalty; /* divides positive scores of tokens that were fed and multiplies negative ones; 0: no
                                * penalty */
    uint64_t seed;             /* the same seed and scores at the same position give the same token */
} onx_choice_options;
/* Chooses a token from the scores, without feeding it. ONX_E_MISUSE before any token was fed and for options that are
 * negative or not finite; ONX_E_INVALID if scores are NaN. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_choose(onx_generator *generator, const onx_choice_options *options,
                                                       int64_t *id_out);

#ifdef __cplusplus
}
#endif
#endif
