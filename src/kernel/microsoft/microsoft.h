/* microsoft.h - what the kernels of com.microsoft share: elements as floats, and attention one query at a time. */
#ifndef ONXI_KERNEL_MICROSOFT_H
#define ONXI_KERNEL_MICROSOFT_H

#include "kernel/kernel.h"

#define MS_KERNEL(name, ...)                                                                                           \
    {                                                                                                                  \
        .op = name, .domain = "com.microsoft", .since = 1, __VA_ARGS__                                                 \
    }

/* An element of a tensor of FLOAT, FLOAT16 or BFLOAT16. */
float onxi_ms_float(const onx_value *v, uint64_t index);
/* `count` elements from `first` on. */
void onxi_ms_floats(const onx_value *v, uint64_t first, uint64_t count, float *out);
void onxi_ms_store(onx_value *v, uint64_t first, uint64_t count, const float *from);
/* The sum of the products of `n` numbers. */
float onxi_ms_dot(const float *a, const float *b, uint64_t n);

/* Parts of a thread's memory: `count` elements of 4 bytes from *at on, which is advanced; false when it cannot be. */
bool onxi_ms_reserve(uint64_t *total, uint64_t count, uint64_t *at);

/* ---- weights of few bits ---- */

/* Rows of `length` numbers of 2, 4, or 8 bits, the lowest bits of a byte first; each `block` of a row has a scale, and
 * a zero point that is a number, or packed like the numbers, or half of what the bits hold. Rows of one block may have
 * their zero points packed together, so many as `together` says; 0: each row has bytes of its own. */
typedef struct onxi_ms_packed {
    uint64_t rows, length, block, blocks, row_bytes, zero_bytes; /* of a row; zero_bytes: or of those together */
    uint64_t together;
    unsigned bits;
} onxi_ms_packed;
/* Checks bytes, scales and zero points (NULL: none) against the sizes, which are set. */
onx_status onxi_ms_packed_check(const onx_prepare *p, const onxi_ms_packed *w, const onx_value *bytes,
                                const onx_value *scales, const onx_value *zeros);
/* Number `i` of those in bytes. */
static inline unsigned onxi_ms_number(const uint8_t *bytes, uint64_t i, unsigned bits)
{
    const uint64_t bit = i * bits;
    return bytes[bit / 8] >> (bit % 8) & ((1u << bits) - 1);
}
/* The zero point of a block of a row. */
float onxi_ms_packed_zero(const onxi_ms_packed *w, const onx_value *zeros, uint64_t row, uint64_t block);
/* A row as floats; `groups` (NULL: none) says of which block each number is. */
void onxi_ms_packed_row(const onxi_ms_packed *w, const onx_value *bytes, const onx_value *scales,
                        const onx_value *zeros, const int32_t *groups, uint64_t row, float *out);

/* ---- attention, one query at a time ---- */

/* What is added to the scores of a node: a mask of int32 and a tensor of numbers. */
enum {
    ONXI_MS_NO_MASK,
    ONXI_MS_KEYS,   /* an entry per key: above 0 where it counts */
    ONXI_MS_LENGTH, /* per batch entry, how many keys count */
    ONXI_MS_RANGE   /* the ends of all batch entries, then the starts */
};
typedef struct onxi_ms_scores {
    float scale, softcap, filter; /* softcap 0: none; filter is added where the mask rules out */
    int mask_kind;
    uint64_t mask_batch, mask_row; /* steps */
    uint64_t batch;
    uint64_t bias_batch, bias_head, bias_row; /* steps, 0 where repeated */
} onxi_ms_scores;
/* A mask of one column raises or lowers all scores of a sequence by the same amount, which changes nothing. */
static inline bool onxi_ms_mask_is_even(const onx_value *mask, uint64_t batch)
{
    return mask && mask->rank == 2 && mask->dims[1] == 1 && ((uint64_t)mask->dims[0] == batch || mask->dims[0] == 1);
}
/* Checks a mask (NULL: none) for `queries` and `total` keys; UINT64_MAX: as many as there are. */
onx_status onxi_ms_mask(const onx_prepare *p, const onx_value *mask, uint64_t batch, uint64_t queries, uint64_t total,
                        onxi_ms_scores *s);
/* Checks a bias (NULL: none) of [batch or 1, heads or 1, queries, total]; UINT64_MAX: as many keys as there are. */
onx_status onxi_ms_bias(const onx_prepare *p, const onx_value *bias, uint64_t batch, uint64_t heads, uint64_t queries,
                        uint64_t total, onxi_ms_scores *s);
/* How many keys a buffer holds that past and present share, for `keys` more; looks whether a mask and a bias (NULL:
 * none) are for all of them. */
onx_status onxi_ms_shared_past(onx_work *work, const onx_value *length, const onx_value *mask, const onx_value *bias,
                               uint64_t room, uint64_t keys, uint64_t *past);
/* The scale of the node, by default one over the root of a head's size. */
float onxi_ms_scale(const onx_prepare *p, uint64_t size);

/* Vectors of a head in one or two tensors: those before `split` in the first. Steps are in elements. */
typedef struct onxi_ms_rows {
    const onx_value *in[2];
    uint64_t at[2], step[2], split, size;
    const int32_t *beams; /* per vector of the first tensor, of which beam it is; NULL: its own */
    uint64_t beam_step, beam_count;
    /* Of the first tensor where it is quantized: the bits of its numbers, two of 4 in a byte, those about 8; one scale,
     * or one per channel. Places are in bytes then. bits 0: it is not. */
    unsigned bits;
    bool per_channel;
    const float *scales;
} onxi_ms_rows;
const float *onxi_ms_row(const onxi_ms_rows *r, uint64_t index, float *space);

/* A query on its way over the keys: the greatest score, the sum of the weights, the weighted sum of the values. */
typedef struct onxi_ms_query {
    const onxi_ms_scores *scores;
    const onx_value *mask, *bias;
    uint64_t batch, head, row, bias_from; /* bias_from: the column of the bias that is for the first key */
    const float *query;
    float *sum, *space; /* of a value's size, and room for a key or value */
    float *shown;       /* per key, its score, where they are used; else NULL */
    float greatest, weights;
} onxi_ms_query;
void onxi_ms_begin(onxi_ms_query *q, uint64_t value_size);
void onxi_ms_keys(onxi_ms_query *q, const onxi_ms_rows *keys, const onxi_ms_rows *values, uint64_t from, uint64_t to);
/* `sink` takes part in the sum of the weights; minus infinity: none. */
void onxi_ms_end(onxi_ms_query *q, uint64_t value_size, float sink);

/* What an output gives of the products of queries and keys: scores as they go into the softmax, or what it makes of
 * them. */
typedef enum onxi_ms_products { ONXI_MS_NO_PRODUCTS, ONXI_MS_SCORES, ONXI_MS_SHARES } onxi_ms_products;
/* Room for the scores of one query in a thread's memory; none where they are not used. */
bool onxi_ms_reserve_shown(uint64_t *total, onxi_ms_products kind, uint64_t keys, uint64_t *at);
/* Writes the scores of a query that is at its end; keys before `from` and from `to` on were not looked at. */
void onxi_ms_show(const onxi_ms_query *q, onxi_ms_products kind, uint64_t from, uint64_t to, float absent,
                  uint64_t heads, uint64_t queries, onx_value *out);

#endif
