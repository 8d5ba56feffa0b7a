/* attention.h - a group of queries of one head, for every attention operator: positions of queries and keys, changes of
 * the scores (masks, biases), and scratch memory of a thread. */
#ifndef ONXI_KERNEL_SIMD_ATTENTION_H
#define ONXI_KERNEL_SIMD_ATTENTION_H

#include "kernel/core/attention.h"
#include "kernel/simd/simd.h"

/* Queries processed together; keys per block; queries per unit of work. */
enum { QUERIES = 2 * ONXI_LANES, KEYS_BLOCK = 96, QUERIES_PIECE = 64 };

/* Keys and values with one layout; strides in elements. */
typedef struct attention_keys {
    const void *k, *v;
    int64_t k_row, k_col, v_row, v_col;
    uint64_t count;
    int narrow; /* ONX_FLOAT16 or ONX_BFLOAT16, with contiguous vectors; 0: floats */
} attention_keys;

/* Changes of the scores: a mask of Attention is added or hides keys; nodes add a value, or replace a score by a
 * constant depending on a condition. */
typedef enum change_kind {
    CHANGE_MASK,
    CHANGE_MASK_BOOL,
    CHANGE_ADD,
    CHANGE_FILTER, /* adds `number` where an int32 mask is not above 0 */
    CHANGE_KEEP,
    CHANGE_HIDE
} change_kind;
typedef struct change {
    change_kind kind;
    const void *data; /* of query 0 */
    int64_t row, col; /* strides in elements */
    uint64_t columns; /* keys beyond are masked */
    float number;     /* for CHANGE_FILTER, CHANGE_KEEP and CHANGE_HIDE */
} change;
enum { CHANGES_MAX = 4 };

/* Some queries of one head. */
typedef struct attention_job {
    const float *q;
    float *y;
    int64_t q_row, q_col, y_row, y_col;
    uint64_t first, rows; /* queries */
    uint64_t size, v_size;
    attention_keys keys[2];        /* the past, and the new ones */
    float query_scale, scale, cap; /* factor of queries, factor of scores; cap 0: none */
    change changes[CHANGES_MAX];
    uint32_t change_count;
    bool as_nodes;                       /* without `ranges`: a query that sees no key gets NaN */
    const onxi_attention_params *ranges; /* visible keys of each query */
    /* The same for operators other than Attention; both NULL: all keys are visible. */
    const onxi_queries *own;
    int64_t length;
    uint64_t from, to; /* range of keys that any of the queries can see */
    float *memory;
} attention_job;

/* Floats of workspace per thread. */
static inline uint64_t job_memory(uint64_t size, uint64_t v_size)
{
    return (size + v_size + 2 * KEYS_BLOCK) * QUERIES;
}

/* The same with 16-bit keys or values, where a block is converted at the end of the workspace. */
static inline uint64_t job_memory_wide(uint64_t size, uint64_t v_size)
{
    return job_memory(size, v_size) + (size > v_size ? size : v_size) * KEYS_BLOCK;
}

/* Sets the workspace and the units of work that justify a thread. */
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
