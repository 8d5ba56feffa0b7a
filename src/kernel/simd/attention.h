/* attention.h - a group of queries of one head, for every attention operator: positions of queries and keys, changes of
 * the scores (masks, biases), and scratch memory of a thread. */
#ifndef ONXI_KERNEL_SIMD_ATTENTION_H
#define ONXI_KERNEL_SIMD_ATTENTION_H

#include "kernel/core/attention.h"
#include "kernel/simd/simd.h"

/* Queries that are processed together; keys of a block; queries of a piece of work. */
enum { QUERIES = 2 * ONXI_LANES, KEYS_BLOCK = 96, QUERIES_PIECE = 64 };

/* Keys and values of one layout; steps in elements. */
typedef struct attention_keys {
    const void *k, *v;
    int64_t k_row, k_col, v_row, v_col;
    uint64_t count;
    int narrow; /* ONX_FLOAT16 or ONX_BFLOAT16, whose vectors are neighbours in memory; 0: floats */
} attention_keys;

/* Changes of the scores: a mask of Attention is added or hides keys; nodes add a value, or replace a score by a
 * constant depending on a condition. */
typedef enum change_kind {
    CHANGE_MASK,
    CHANGE_MASK_BOOL,
    CHANGE_ADD,
    CHANGE_FILTER, /* adds the number where a mask of int32 has nothing above 0 */
    CHANGE_KEEP,
    CHANGE_HIDE
} change_kind;
typedef struct change {
    change_kind kind;
    const void *data; /* of query 0 */
    int64_t row, col; /* steps, in elements */
    uint64_t columns; /* further ones are masked */
    float number;     /* of CHANGE_FILTER, CHANGE_KEEP and CHANGE_HIDE */
} change;
enum { CHANGES_MAX = 4 };

/* Some queries of one head. */
typedef struct attention_job {
    const float *q;
    float *y;
    int64_t q_row, q_col, y_row, y_col;
    uint64_t first, rows; /* queries */
    uint64_t size, v_size;
    attention_keys keys[2];        /* the past, and now */
    float query_scale, scale, cap; /* times each query, times each score; cap 0: none */
    change changes[CHANGES_MAX];
    uint32_t change_count;
    bool as_nodes;                       /* a query that sees no key gets NaN */
    const onxi_attention_params *ranges; /* which keys are visible */
    const onxi_queries *own;             /* the same of queries of another operator; both NULL: all */
    int64_t length;
    uint64_t from, to; /* keys that any of the queries sees */
    float *memory;
} attention_job;

/* Floats of a thread's memory. */
static inline uint64_t job_memory(uint64_t size, uint64_t v_size)
{
    return (size + v_size + 2 * KEYS_BLOCK) * QUERIES;
}

/* The same where keys or values are narrow, a block of which is widened behind all else. */
static inline uint64_t job_memory_wide(uint64_t size, uint64_t v_size)
{
    return job_memory(size, v_size) + (size > v_size ? size : v_size) * KEYS_BLOCK;
}

/* What a thread needs, and how much work is worth one. */
static inline onx_status job_settle(onx_prepare *p, uint64_t size, uint64_t v_size, uint64_t total)
{
    uint64_t bytes;
    if (size > UINT32_MAX || v_size > UINT32_MAX || !onxi_mul_u64(job_memory(size, v_size), sizeof(float), &bytes))
        return ONX_E_UNSUPPORTED;
    p->thread_workspace = bytes;
    const double cost = (double)QUERIES_PIECE * (double)total * (double)(size + v_size) + 1;
    p->grain = cost < 1e9 ? onxi_worth_a_thread((uint64_t)cost) : 1;
    return ONX_OK;
}

void ONXI_LEVELED(onxi_attention_job)(const attention_job *j);

#endif
