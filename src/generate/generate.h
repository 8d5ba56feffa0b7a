/* generate.h - what the files of this folder share: the inputs of a decoder and what they are. */
#ifndef ONXI_GENERATE_H
#define ONXI_GENERATE_H

#include <onx/generate.h>

#include "base/base.h"
#include "proto/proto.h"
#include "value/value.h"

/* What an input is about. */
typedef enum onxi_feed_role {
    ONXI_FEED_NONE,
    ONXI_FEED_IDS,
    ONXI_FEED_MASK,          /* 1 per token, or per query and key what is added to scores */
    ONXI_FEED_POSITIONS,     /* of the new tokens */
    ONXI_FEED_PAST_LENGTH,   /* tokens before */
    ONXI_FEED_TOTAL_LENGTH,  /* with the new ones */
    ONXI_FEED_LAST_POSITION, /* one less */
    ONXI_FEED_HAS_PAST,
    ONXI_FEED_ZEROS,
    ONXI_FEED_ONES,
    ONXI_FEED_CACHE
} onxi_feed_role;

typedef enum onxi_cache_kind {
    ONXI_CACHE_GROWS, /* by the new tokens: what is passed on is longer */
    ONXI_CACHE_ROOM,  /* as long as we like, and updated in place */
    ONXI_CACHE_FIXED  /* of one shape */
} onxi_cache_kind;

typedef struct onxi_feed {
    onxi_feed_role role;
    onx_str name;
    onx_dtype dtype;
    uint32_t rank;
    int64_t *dims;      /* -1: open */
    onx_str *dim_names; /* of open ones, or empty */
    bool whole;         /* a mask that may be as long as the caches, past the last token */
    onxi_cache_kind kind;
    uint32_t output, axis; /* that takes its place; the axis of tokens */
    bool updated;          /* by a kernel, in place */
    onx_value *value;      /* what is given */
    onx_value *other;      /* of a cache: takes the output; over the memory of `value` where it is updated */
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
    uint32_t logits;      /* which output */
    uint64_t chunk;       /* tokens that a run takes at most */
    uint64_t step;        /* tokens that each run takes; 0: any number */
    uint64_t limit, room; /* tokens in all; that caches with room have, 0: not made yet */
    uint64_t first_room;
    const onx_value **inputs;
    onx_value **outputs;
    int64_t *ids;
    uint64_t id_count, id_room, done; /* done: tokens that are in the caches */
    bool failed;
    float *scores;
    uint64_t score_count, score_room;
    uint32_t *heap; /* of as many tokens, for choosing */
    uint64_t heap_room;
    int64_t *ends;
    uint32_t end_count, end_room;
};

/* Reads the configuration: ends of texts, the longest sequence. */
onx_status onxi_generate_configure(onx_generator *g, onx_str text);
/* Finds out what the inputs and outputs of the session are. */
onx_status onxi_generate_ports(onx_generator *g);
/* The values of all inputs for `count` tokens from `ids` on, after `past` ones, and where the outputs go. */
onx_status onxi_generate_fill(onx_generator *g, const int64_t *ids, uint64_t count, uint64_t past);
/* Caches as they are before the first token. */
onx_status onxi_generate_empty(onx_generator *g);
/* What was passed on replaces what was given. */
onx_status onxi_generate_turn(onx_generator *g, uint64_t total);

#endif
