/* generate.h - language models: tokens from a decoder, one after the other, with its caches kept between the steps. See
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
    onx_str config; /* the text of a genai_config.json, which says what inputs and outputs are called; empty: their own
                     * names and types tell */
    uint64_t room;  /* tokens that a cache with room to spare begins with; it grows when that is used up. 0: 256 */
} onx_generator_options;

/* Makes a session of a model whose inputs are token ids, and what follows from how many there are: masks, positions,
 * lengths, and caches, each with an output that takes its place in the next step. The document must outlive the
 * generator. ONX_E_UNSUPPORTED for a model with inputs that are nothing of that. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_new(onx_ctx *cx, onx_doc *doc, const onx_generator_options *options,
                                                    onx_generator **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_generator_free(onx_generator *generator);

/* Runs the model over `count` more tokens, which follow those of before; afterwards there are scores for what comes
 * next. ONX_E_LIMIT when they are more than the model has room for. What was fed stays as it was when that fails; when
 * a run fails, begin anew. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_feed(onx_generator *generator, const int64_t *ids, uint64_t count);
/* Forgets all tokens. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_reset(onx_generator *generator);
/* How many tokens were fed, and how many the model can take in all (UINT64_MAX: it does not say). */
ONX_API ONX_ANY_THREAD uint64_t onx_generator_length(const onx_generator *generator);
ONX_API ONX_ANY_THREAD uint64_t onx_generator_limit(const onx_generator *generator);
/* A score for each token of the vocabulary, until the next call that changes the generator; NULL before anything was
 * fed. `count_out` may be NULL. */
ONX_API ONX_ANY_THREAD const float *onx_generator_scores(const onx_generator *generator, uint64_t *count_out);
/* The tokens that end a text, as the configuration says; false past the last one. */
ONX_API ONX_ANY_THREAD bool onx_generator_end(const onx_generator *generator, uint32_t index, int64_t *id_out);

/* How the next token is chosen: penalties first, then the temperature, then top_k, then top_p of what is left. */
typedef struct onx_choice_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t top_k;       /* only this number of the greatest scores; 0: all */
    double temperature;   /* scores are divided by it; 0: the greatest score wins, the first of equal ones */
    double top_p;         /* only the most likely ones whose probabilities add up to this; 0: all */
    double
        repetition_penalty; /* scores of tokens that were fed are divided by it, below 0 multiplied; 0: they are not */
    uint64_t seed;          /* the same seed and the same scores at the same place give the same token */
} onx_choice_options;
/* Chooses a token by the scores; it is not fed. ONX_E_MISUSE before anything was fed and for options that are negative
 * or not finite, ONX_E_INVALID where scores are NaN. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_generator_choose(onx_generator *generator, const onx_choice_options *options,
                                                       int64_t *id_out);

#ifdef __cplusplus
}
#endif
#endif
