/* attention.h - common parts of Attention and FlexAttention: heads in any layout, scores, softmax, and the weighted
 * mean of values. All of it works on a tile of queries of one head at a time, in float or double. */
#ifndef ONXI_KERNEL_CORE_ATTENTION_H
#define ONXI_KERNEL_CORE_ATTENTION_H

#include "kernel/kernel.h"

/* Queries of one head that are done together. */
enum { ONXI_ATTENTION_ROWS = 48 };

/* An operand as heads: `length` vectors of `size` contiguous elements each. Strides are in elements. */
typedef struct onxi_heads {
    int dtype;
    uint64_t heads, length, size;
    int64_t batch_step, head_step, row_step;
} onxi_heads;

typedef struct onxi_attention {
    int dtype;             /* computed in: FLOAT or DOUBLE */
    int precision;         /* precision of softmax; at least that of dtype */
    uint64_t batch, group; /* query heads that share a key head */
    uint64_t total;        /* keys: those of the past come first */
    onxi_heads q, k, v, past_k, past_v, y;
    double scale;
    uint64_t query_at, scores_at, result_at, tile_at, extra_at, bytes; /* offsets in a thread's memory */
} onxi_attention;

/* A tile of queries: rows first .. first + rows - 1 of a head, and keys from .. to - 1, which take part. */
typedef struct onxi_attention_tile {
    const onx_work *work; /* asked whether the run has to end */
    uint64_t batch, head, first, rows, from, to;
    char *memory;
} onxi_attention_tile;

/* ---- Attention (attention.c) ---- */

enum {
    ONXI_ATTENTION_Q,
    ONXI_ATTENTION_K,
    ONXI_ATTENTION_V,
    ONXI_ATTENTION_MASK,
    ONXI_ATTENTION_PAST_K,
    ONXI_ATTENTION_PAST_V,
    ONXI_ATTENTION_LENGTHS
};
enum { ONXI_ATTENTION_Y, ONXI_ATTENTION_PRESENT_K, ONXI_ATTENTION_PRESENT_V, ONXI_ATTENTION_SCORES };

typedef struct onxi_attention_params {
    onxi_attention a;
    /* Computes a tile; `length`: number of valid keys of the batch entry, -1: all. */
    void (*run_tile)(onx_work *work, onxi_attention_tile *t, int64_t length);
    uint64_t tile_rows; /* queries of a tile */
    uint64_t tiles;     /* of queries in a head */
    double softcap;     /* 0: none */
    bool causal;
    int64_t left, right; /* windows, -1: none */
    int64_t mode;        /* which scores are an output */
    /* the mask: steps in elements, 0 where repeated */
    int64_t mask_batch, mask_head, mask_row;
    uint64_t mask_columns; /* further ones are masked */
    bool mask_repeat;      /* one column for all keys */
} onxi_attention_params;

/* The run function of all rows of Attention: tiles of `tile_rows` queries go to `run_tile`. */
onx_status onxi_attention_prepare(onx_prepare *p);
void onxi_attention_cut(onx_prepare *p, onxi_attention_params *q, uint64_t tile_rows);
onx_status onxi_attention_run(onx_work *work, uint64_t first, uint64_t last);
/* The keys first .. last - 1 that a query of a batch entry may see, without the mask. */
void onxi_attention_visible(const onxi_attention_params *q, int64_t length, uint64_t query, uint64_t *first,
                            uint64_t *last);

/* ---- queries of other operators, vectorized (simd/attention.c) ---- */

/* Queries of one head over keys in two pieces, all of numbers that are neighbours in memory; steps are from a vector to
 * the next. Of `length` keys query i sees those that a causal mask and a window leave it, where `before` keys come
 * before those of query 0. */
typedef struct onxi_queries {
    const onx_work *work; /* asked whether the run has to end */
    const float *q;
    float *y;
    uint64_t q_row, y_row, rows, size, v_size;
    struct {
        const void *k, *v;
        uint64_t k_row, v_row, count;
        int narrow; /* ONX_FLOAT16 or ONX_BFLOAT16, where these are taken; 0: floats */
    } keys[2];
    uint64_t length, before, window; /* window 0: none */
    bool causal;
    float scale, cap; /* cap 0: none */
    /* The term that is added to scores: floats, or `filter` for keys whose mask is not above 0. Columns are keys; `row`
     * is the stride between queries, 0: the same row for all. */
    struct {
        const float *numbers;
        const int32_t *mask;
        uint64_t row;
        float filter;
    } added[2];
    uint32_t added_count;
} onxi_queries;

/* Keys first .. last - 1. A query past the end of its text may see no key. */
static inline void onxi_queries_visible(const onxi_queries *q, uint64_t query, uint64_t *first, uint64_t *last)
{
    const uint64_t here = q->before + query + 1, end = q->causal && here < q->length ? here : q->length,
                   reach = q->causal ? here : end, window = q->window && q->window < reach ? q->window : reach;
    *last = end;
    *first = reach - window < end ? reach - window : end;
}

typedef struct onxi_queries_ops {
    /* Floats of a thread's memory for vectors of such a size. */
    uint64_t (*memory)(uint64_t size, uint64_t v_size);
    void (*run)(const onxi_queries *q, float *memory);
    bool takes_narrow; /* keys may be narrow */
} onxi_queries_ops;
extern const onxi_queries_ops onxi_queries_base, onxi_queries_v3, onxi_queries_v4;

/* ---- parts ---- */

/* A tensor of rank 4 as heads, or of rank 3 with heads concatenated. */
onx_status onxi_heads_make(const onx_prepare *p, const onx_value *v, const char *name, int64_t heads, onxi_heads *out);
/* Checks q, k, v and the past against each other and sets all other members of `a` except dtype, precision and scale.
 * `extra` bytes of a thread's memory are for the caller. */
onx_status onxi_attention_make(const onx_prepare *p, onxi_attention *a, uint64_t extra);

/* The row of scores of a query; `total` elements of a->dtype. */
static inline void *onxi_attention_row(const onxi_attention *a, const onxi_attention_tile *t, uint64_t row)
{
    return t->memory + a->scores_at + row * a->total * onxi_element_size(a->dtype);
}
/* Products of queries and keys, scaled. */
void onxi_attention_scores(const onxi_attention *a, const onxi_attention_tile *t, const onx_value *q,
                           const onx_value *past_k, const onx_value *k);
/* Turns scores into probabilities: zeros for a query that is `blind`, as positions and mask hide all keys from it;
 * scores that are all -inf by themselves give NaN, as Softmax does. */
void onxi_attention_softmax(const onxi_attention *a, void *row, uint64_t count, bool blind);
/* The mean of the values, weighted by the probabilities, into the output. */
void onxi_attention_mix(const onxi_attention *a, const onxi_attention_tile *t, const onx_value *past_v,
                        const onx_value *v, onx_value *y);

#endif
