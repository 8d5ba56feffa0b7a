/* microsoft.h - shared by the kernels of com.microsoft: conversion of elements to float, and attention of one query at
 * a time. */
#ifndef ONXI_KERNEL_MICROSOFT_H
#define ONXI_KERNEL_MICROSOFT_H

#include "kernel/kernel.h"

#define MS_KERNEL(name, ...)                                                                                           \
    {                                                                                                                  \
        .op = name, .domain = "com.microsoft", .since = 1, __VA_ARGS__                                                 \
    }

/* An element of a tensor of FLOAT, FLOAT16 or BFLOAT16, or of the 8-bit floats that scales may have. */
float onxi_ms_float(const onx_value *v, uint64_t index);
/* `count` elements from `first` on. */
void onxi_ms_floats(const onx_value *v, uint64_t first, uint64_t count, float *out);
void onxi_ms_store(onx_value *v, uint64_t first, uint64_t count, const float *from);
/* The dot product of two vectors. */
float onxi_ms_dot(const float *a, const float *b, uint64_t n);

/* Reserves `count` elements of 4 bytes in a thread's workspace; *at is their offset. Returns false on overflow. */
bool onxi_ms_reserve(uint64_t *total, uint64_t count, uint64_t *at);
/* Has output `i` a * b * c elements, or is it not wanted? Kernels that count by operands ask before they write, because
 * the rule of shapes may have counted by others. */
bool onxi_ms_gives(const onx_prepare *p, uint32_t i, uint64_t a, uint64_t b, uint64_t c);

/* ---- low-bit weights ---- */

/* Rows of `length` elements of 2, 4, or 8 bits; the lowest bits of a byte come first. Each block of `block` elements
 * has a scale and a zero point, which is a float, a packed integer like the elements, or by default the middle of the
 * range. With one block per row, zero points of `together` rows may be packed together; 0: each row has bytes of its
 * own. */
typedef struct onxi_ms_packed {
    /* Per row; zero_bytes: per row, or per rows packed together. */
    uint64_t rows, length, block, blocks, row_bytes, zero_bytes;
    uint64_t together;
    unsigned bits;
} onxi_ms_packed;
/* Checks bytes, scales and zero points (NULL: none) against the sizes in `w`. */
onx_status onxi_ms_packed_check(const onx_prepare *p, const onxi_ms_packed *w, const onx_value *bytes,
                                const onx_value *scales, const onx_value *zeros);
/* Extracts element `i`. */
static inline unsigned onxi_ms_number(const uint8_t *bytes, uint64_t i, unsigned bits)
{
    const uint64_t bit = i * bits;
    return bytes[bit / 8] >> (bit % 8) & ((1u << bits) - 1);
}
/* The zero point of a block of a row. */
float onxi_ms_packed_zero(const onxi_ms_packed *w, const onx_value *zeros, uint64_t row, uint64_t block);
/* Dequantizes a row; `groups` (NULL: none) gives the block of each element. */
void onxi_ms_packed_row(const onxi_ms_packed *w, const onx_value *bytes, const onx_value *scales,
                        const onx_value *zeros, const int32_t *groups, uint64_t row, float *out);

/* ---- attention, one query at a time ---- */

/* What is added to the scores: an int32 mask and a tensor of numbers. */
enum {
    ONXI_MS_NO_MASK,
    ONXI_MS_KEYS,   /* an entry per key: the key counts if it is above 0 */
    ONXI_MS_LENGTH, /* the number of keys that count, per batch entry */
    ONXI_MS_RANGE   /* the end of the keys that count, then the start, per batch entry */
};
typedef struct onxi_ms_scores {
    float scale, softcap, filter; /* softcap 0: none; filter is added to scores of masked keys */
    int mask_kind;
    uint64_t mask_batch, mask_row; /* strides */
    uint64_t batch;
    uint64_t bias_batch, bias_head, bias_row; /* strides, 0 along broadcast dims */
} onxi_ms_scores;
/* A mask of one column adds the same number to all scores of a sequence, which does not change the softmax. */
static inline bool onxi_ms_mask_is_even(const onx_value *mask, uint64_t batch)
{
    return mask && mask->rank == 2 && mask->dims[1] == 1 && ((uint64_t)mask->dims[0] == batch || mask->dims[0] == 1);
}
/* Checks a mask (NULL: none) for `queries` and `total` keys; UINT64_MAX: any number. */
onx_status onxi_ms_mask(const onx_prepare *p, const onx_value *mask, uint64_t batch, uint64_t queries, uint64_t total,
                        onxi_ms_scores *s);
/* Checks a bias (NULL: none) of [batch or 1, heads or 1, queries, total]; UINT64_MAX: any number of keys. */
onx_status onxi_ms_bias(const onx_prepare *p, const onx_value *bias, uint64_t batch, uint64_t heads, uint64_t queries,
                        uint64_t total, onxi_ms_scores *s);
/* Reads how many past keys a shared buffer holds and checks that it has room for `keys` more; also checks that a mask
 * and a bias (NULL: none) cover all keys. */
onx_status onxi_ms_shared_past(onx_work *work, const onx_value *length, const onx_value *mask, const onx_value *bias,
                               uint64_t room, uint64_t keys, uint64_t *past);
/* The scale attribute of the node; its default is 1 / sqrt(size). */
float onxi_ms_scale(const onx_prepare *p, uint64_t size);

/* Vectors of a head in one or two tensors: indices below `split` are in the first. Strides are in elements. */
typedef struct onxi_ms_rows {
    const onx_value *in[2];
    uint64_t at[2], step[2], split, size;
    const int32_t *beams; /* per vector of the first tensor: the beam that it belongs to; NULL: its own */
    uint64_t beam_step, beam_count;
    /* For a quantized first tensor: bits per element, and one scale or one per channel. 8-bit elements are signed;
     * 4-bit elements have an offset of 8, two per byte. Offsets and strides are then in bytes. bits 0: not
     * quantized. */
    unsigned bits;
    bool per_channel;
    const float *scales;
} onxi_ms_rows;
const float *onxi_ms_row(const onxi_ms_rows *r, uint64_t index, float *space);

/* Running softmax of a query: the greatest score, the sum of the weights, and the weighted sum of the values so far. */
typedef struct onxi_ms_query {
    const onxi_ms_scores *scores;
    const onx_value *mask, *bias;
    uint64_t batch, head, row, bias_from; /* bias_from: the column of the bias for the first key */
    const float *query;
    float *sum, *space; /* of the size of a value; room for a key or value */
    float *shown;       /* score per key, if scores are needed; else NULL */
    float greatest, weights;
} onxi_ms_query;
void onxi_ms_begin(onxi_ms_query *q, uint64_t value_size);
void onxi_ms_keys(onxi_ms_query *q, const onxi_ms_rows *keys, const onxi_ms_rows *values, uint64_t from, uint64_t to);
/* `sink` is added to the sum of the weights as another score; minus infinity: none. */
void onxi_ms_end(onxi_ms_query *q, uint64_t value_size, float sink);

/* What an output contains of the products of queries and keys: the scores before the softmax, or the probabilities
 * after it. */
typedef enum onxi_ms_products { ONXI_MS_NO_PRODUCTS, ONXI_MS_SCORES, ONXI_MS_SHARES } onxi_ms_products;
/* Reserves workspace for the scores of one query, if they are needed. */
bool onxi_ms_reserve_shown(uint64_t *total, onxi_ms_products kind, uint64_t keys, uint64_t *at);
/* Writes the scores of a finished query; keys before `from` and from `to` on were not processed. */
void onxi_ms_show(const onxi_ms_query *q, onxi_ms_products kind, uint64_t from, uint64_t to, float absent,
                  uint64_t heads, uint64_t queries, onx_value *out);

#endif
