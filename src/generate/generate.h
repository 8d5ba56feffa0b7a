/* generate.h - shared by the files of this folder: the inputs of a decoder and their roles. */
#ifndef ONXI_GENERATE_H
#define ONXI_GENERATE_H

#include <onx/generate.h>

#include "base/base.h"
#include "proto/proto.h"
#include "value/value.h"

/* The role of an input. */
typedef enum onxi_feed_role {
    ONXI_FEED_NONE,
    ONXI_FEED_IDS,
    ONXI_FEED_MASK,          /* 1 per token, or a value per query and key that is added to the scores */
    ONXI_FEED_POSITIONS,     /* positions of the new tokens */
    ONXI_FEED_PAST_LENGTH,   /* number of tokens before */
    ONXI_FEED_TOTAL_LENGTH,  /* number of tokens including the new ones */
    ONXI_FEED_LAST_POSITION, /* the total length minus 1 */
    ONXI_FEED_HAS_PAST,
    ONXI_FEED_ZEROS,
    ONXI_FEED_ONES,
    ONXI_FEED_CACHE
} onxi_feed_role;

typedef enum onxi_cache_kind {
    ONXI_CACHE_GROWS, /* grows by the new tokens: each output is longer than its input */
    ONXI_CACHE_ROOM,  /* of any length that is chosen, and updated in place */
    ONXI_CACHE_FIXED  /* of a fixed shape */
} onxi_cache_kind;

typedef struct onxi_feed {
    onxi_feed_role role;
    onx_str name;
    onx_dtype dtype;
    uint32_t rank;
    int64_t *dims;      /* -1: symbolic or unknown */
    onx_str *dim_names; /* names of symbolic dims, or empty */
    bool whole;         /* a mask that may be as long as the caches, beyond the last token */
    onxi_cache_kind kind;
    uint32_t output, axis; /* the output that becomes the next input; the axis of tokens */
    bool updated;          /* updated in place by a kernel */
    onx_value *value;      /* the input value */
    onx_value *other;      /* for a cache: receives the output; shares the memory of `value` if it is updated in
                            * place */
} onxi_feed;

typedef struct onxi_genconfig {
    onxi_json json;
    const onxi_json *model, *decoder;
} onxi_genconfig;

struct onx_generator {
    onx_ctx *cx;
    onx_arena *arena;
    onx_session *session;
    onxi_genconfig config;
    onxi_feed *ports; /* per input of the session */
    uint32_t port_count, output_count, cache_count;
    uint32_t logits;      /* index of the output */
    uint64_t chunk;       /* maximum number of tokens per run */
    uint64_t step;        /* number of tokens that every run must have; 0: any number */
    uint64_t limit, room; /* maximum number of tokens; room in preallocated caches, 0: not allocated yet */
    uint64_t first_room;
    const onx_value **inputs;
    onx_value **outputs;
    int64_t *ids;
    uint64_t id_count, id_room, done; /* done: number of tokens in the caches */
    bool failed;
    float *scores;
    uint64_t score_count, score_room;
    uint32_t *heap; /* scratch for selecting tokens, of vocabulary size */
    uint64_t heap_room;
    int64_t *ends;
    uint32_t end_count, end_room;
};

/* Reads the configuration: end-of-text tokens, maximum length. */
onx_status onxi_generate_configure(onx_generator *g, onx_str text, onx_str more);
/* Determines the roles of the inputs and outputs of the session. */
onx_status onxi_generate_ports(onx_generator *g);
/* Prepares all inputs for `count` tokens from `ids` on, after `past` tokens, and the memory of the outputs. */
onx_status onxi_generate_fill(onx_generator *g, const int64_t *ids, uint64_t count, uint64_t past);
/* Sets the caches to their state before the first token. */
onx_status onxi_generate_empty(onx_generator *g);
/* Makes the output caches the next input caches. */
onx_status onxi_generate_turn(onx_generator *g, uint64_t total);

#endif
