/* attention.c - Attention of floats, by blocks of keys, so that the full score matrix is never in memory. Vector lanes
 * hold different queries: products read keys and values one element at a time, in any layout, and softmax needs no
 * horizontal sums. After Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), and Dao et al.,
 * "FlashAttention" (2022). Each query is computed independently, in one order, so that the bits do not depend on
 * threads. */
#include "kernel/simd/attention.h"
#ifndef __wasm__
#include "kernel/simd/halves.h"
#endif
#include "kernel/simd/math.h"

#include <math.h>

/* Rows of a product tile and vectors per row; number of queries below which they are processed one by one. */
enum { TILE_M = ONXI_ROWS, TILE_V = QUERIES / ONXI_LANES, FEW = 4 };

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

static float *scores_of(const attention_job *j)
{
    return j->memory;
}
static float *changes_of(const attention_job *j)
{
    return j->memory + KEYS_BLOCK * QUERIES;
}
static float *query_of(const attention_job *j)
{
    return j->memory + 2 * KEYS_BLOCK * QUERIES;
}
static float *result_of(const attention_job *j)
{
    return query_of(j) + j->size * QUERIES;
}

/* ---- products: c (rows x QUERIES) = a * b, or c += a * b, of `count` terms ---- */

#define PRODUCT(ROWS)                                                                                                  \
    static ONXI_ALONE void product_##ROWS(const float *a, int64_t row, int64_t step, const float *restrict b,          \
                                          uint64_t count, float *restrict c, bool more)                                \
    {                                                                                                                  \
        onxi_vf sum[ROWS][TILE_V];                                                                                     \
        const float *from[ROWS];                                                                                       \
        UNROLL                                                                                                         \
        for (int i = 0; i < ROWS; i++) {                                                                               \
            from[i] = a + i * row;                                                                                     \
            UNROLL                                                                                                     \
            for (int v = 0; v < TILE_V; v++)                                                                           \
                sum[i][v] = vf_all(0);                                                                                 \
        }                                                                                                              \
        int64_t at = 0;                                                                                                \
        for (uint64_t k = 0; k < count; k++, at += step, b += QUERIES) {                                               \
            onxi_vf x[TILE_V];                                                                                         \
            UNROLL                                                                                                     \
            for (int v = 0; v < TILE_V; v++)                                                                           \
                x[v] = vf_load(b + v * ONXI_LANES);                                                                    \
            UNROLL                                                                                                     \
            for (int i = 0; i < ROWS; i++) {                                                                           \
                const float by = from[i][at];                                                                          \
                UNROLL                                                                                                 \
                for (int v = 0; v < TILE_V; v++)                                                                       \
                    sum[i][v] += by * x[v];                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL                                                                                                         \
        for (int i = 0; i < ROWS; i++)                                                                                 \
            UNROLL                                                                                                     \
        for (int v = 0; v < TILE_V; v++) {                                                                             \
            float *to = c + i * QUERIES + v * ONXI_LANES;                                                              \
            vf_store(to, more ? vf_load(to) + sum[i][v] : sum[i][v]);                                                  \
        }                                                                                                              \
    }
#if ONXI_ROWS > 6
PRODUCT(12)
#endif
#if ONXI_ROWS > 4
PRODUCT(6)
#else
PRODUCT(4)
#endif
PRODUCT(2)
PRODUCT(1)

static void product(const float *a, int64_t row, int64_t step, uint64_t rows, const float *b, uint64_t count, float *c,
                    bool more)
{
    uint64_t i = 0;
#if ONXI_ROWS > 6
    for (; i + 12 <= rows; i += 12)
        product_12(a + (int64_t)i * row, row, step, b, count, c + i * QUERIES, more);
#endif
#if ONXI_ROWS > 4
    for (; i + 6 <= rows; i += 6)
        product_6(a + (int64_t)i * row, row, step, b, count, c + i * QUERIES, more);
#else
    for (; i + 4 <= rows; i += 4)
        product_4(a + (int64_t)i * row, row, step, b, count, c + i * QUERIES, more);
#endif
    for (; i + 2 <= rows; i += 2)
        product_2(a + (int64_t)i * row, row, step, b, count, c + i * QUERIES, more);
    if (i < rows)
        product_1(a + (int64_t)i * row, row, step, b, count, c + i * QUERIES, more);
}

/* ---- scores: softcap, masks, what is visible ---- */

static float number_at(const change *c, uint64_t query, uint64_t key)
{
    const int64_t at = (int64_t)query * c->row + (int64_t)key * c->col;
    if (key >= c->columns)
        return -INFINITY;
    if (c->kind == CHANGE_MASK || c->kind == CHANGE_ADD)
        return ((const float *)c->data)[at];
    if (c->kind == CHANGE_FILTER)
        return ((const int32_t *)c->data)[at] > 0 ? 0 : c->number;
    const bool on = ((const uint8_t *)c->data)[at] != 0;
    return c->kind == CHANGE_MASK_BOOL ? (on ? 0.0f : -INFINITY) : (on ? 1.0f : 0.0f);
}

/* The mask or bias for the scores of queries from `query` on, one per lane; the last query is repeated. */
static const float *change_block(const attention_job *j, const change *c, uint64_t query, uint64_t lanes,
                                 uint64_t width, uint64_t key, uint64_t n)
{
    float *t = changes_of(j);
    if (!c->row) {
        for (uint64_t k = 0; k < n; k++) {
            const float m = number_at(c, 0, key + k);
            for (uint64_t i = 0; i < width; i++)
                t[k * width + i] = m;
        }
        return t;
    }
    for (uint64_t i = 0; i < width; i++) {
        const uint64_t lane = query + (i < lanes ? i : lanes - 1);
        if (c->kind == CHANGE_ADD && c->col == 1) {
            const float *from = (const float *)c->data + (int64_t)lane * c->row + (int64_t)key;
            for (uint64_t k = 0; k < n; k++)
                t[k * width + i] = from[k];
            continue;
        }
        for (uint64_t k = 0; k < n; k++)
            t[k * width + i] = number_at(c, lane, key + k);
    }
    return t;
}

static onxi_vf changed(const change *c, onxi_vf x, onxi_vf by)
{
    switch (c->kind) {
    case CHANGE_ADD:
    case CHANGE_FILTER:
        return x + by;
    case CHANGE_KEEP:
        return vf_select(by != 0.0f, x, vf_all(c->number));
    case CHANGE_HIDE:
        return vf_select(by != 0.0f, vf_all(c->number), x);
    default:
        return vf_select(by == -INFINITY, by, x + by);
    }
}

/* Applies scale, mask and bias to the scores of keys from `key` on, `width` queries each, before softmax. */
static void finish_scores(const attention_job *j, uint64_t query, uint64_t lanes, uint64_t width, uint64_t key,
                          uint64_t n, float *s)
{
    const uint64_t count = n * width;
    for (uint64_t i = 0; i < count; i += ONXI_LANES) {
        onxi_vf x = vf_load(s + i) * j->scale;
        if (j->cap > 0)
            x = j->cap * vf_tanh(x / j->cap);
        vf_store(s + i, x);
    }
    for (uint32_t c = 0; c < j->change_count; c++) {
        const float *by = change_block(j, &j->changes[c], query, lanes, width, key, n);
        for (uint64_t i = 0; i < count; i += ONXI_LANES)
            vf_store(s + i, changed(&j->changes[c], vf_load(s + i), vf_load(by + i)));
    }
    for (uint64_t i = 0; (j->ranges || j->own) && i < lanes; i++) {
        uint64_t first, last;
        if (j->own)
            onxi_queries_visible(j->own, query + i, &first, &last);
        else
            onxi_attention_visible(j->ranges, j->length, query + i, &first, &last);
        for (uint64_t k = 0; k < n && key + k < first; k++)
            s[k * width + i] = -INFINITY;
        for (uint64_t k = last > key ? last - key : 0; k < n; k++)
            s[k * width + i] = -INFINITY;
    }
}

/* Exponentials, one query per lane: updates the running `best` (maximum) and `sum`, and gives the factor for earlier
 * results. */
static onxi_vf soften(float *s, uint64_t step, uint64_t n, onxi_vf *best, onxi_vf *sum)
{
    onxi_vf top = *best, part = vf_all(0);
    for (uint64_t k = 0; k < n; k++)
        top = vf_max(vf_load(s + k * step), top);
    const onxi_vf by = vf_select(top == -INFINITY, vf_all(0), top); /* no key seen so far */
    const onxi_vf earlier = vf_exp_weight(*best - by);
    for (uint64_t k = 0; k < n; k++) {
        const onxi_vf e = vf_exp_weight(vf_load(s + k * step) - by);
        vf_store(s + k * step, e);
        part += e;
    }
    *sum = *sum * earlier + part;
    *best = top;
    return earlier;
}

/* Do positions and mask hide all keys from a query? Scores that are all -inf by themselves give NaN, as Softmax does.
 */
static bool is_blind(const attention_job *j, uint64_t query)
{
    uint64_t first, last;
    if (!j->ranges)
        return !j->as_nodes;
    onxi_attention_visible(j->ranges, j->length, query, &first, &last);
    for (uint64_t key = first; j->change_count && key < last; key++)
        if (number_at(&j->changes[0], query, key) != -INFINITY)
            return false;
    return j->change_count || first >= last;
}

/* What the results of queries from `query` on, one per lane, are multiplied by. */
static onxi_vf divisor(const attention_job *j, uint64_t query, uint64_t lanes, onxi_vf sum)
{
    onxi_vf by = 1.0f / sum;
    for (uint64_t i = 0; vi_any(sum == 0.0f) && i < lanes && i < ONXI_LANES; i++)
        if (sum[i] == 0)
            by[i] = is_blind(j, query + i) ? 0 : NAN;
    return by;
}

/* ---- one query per lane ---- */

/* The block of keys that begins with key `at`: the operand that contains it, the index in it, and the number of
 * keys. */
static const attention_keys *block_at(const attention_job *j, uint64_t at, uint64_t *within, uint64_t *n)
{
    const attention_keys *p = &j->keys[at >= j->keys[0].count];
    *within = p == j->keys ? at : at - j->keys[0].count;
    *n = p->count - *within < KEYS_BLOCK ? p->count - *within : KEYS_BLOCK;
    if (*n > j->to - at)
        *n = j->to - at;
    return p;
}

/* The vectors of a block of keys: in place, or, if they are 16-bit floats, converted to floats at the end of the
 * workspace, so that a product finds them in the L1 cache. Strides are then those of the floats. */
#ifdef __wasm__ /* browsers have no rows for 16-bit floats */
static const float *vectors_at(const attention_job *j, const attention_keys *p, const void *from, uint64_t within,
                               uint64_t n, uint64_t size, int64_t *row)
{
    (void)j, (void)p, (void)n, (void)size;
    return (const float *)from + (int64_t)within * *row;
}
#else
static const float *vectors_at(const attention_job *j, const attention_keys *p, const void *from, uint64_t within,
                               uint64_t n, uint64_t size, int64_t *row)
{
    if (!p->narrow)
        return (const float *)from + (int64_t)within * *row;
    float *wide = result_of(j) + j->v_size * QUERIES;
    const uint16_t *x = (const uint16_t *)from + (int64_t)within * *row;
    const half_kind kind = p->narrow == ONX_FLOAT16 ? HALF_FLOAT16 : HALF_BFLOAT16;
    if (*row == (int64_t)size)
        half_widen(kind, x, wide, n * size);
    else
        for (uint64_t i = 0; i < n; i++)
            half_widen(kind, x + (int64_t)i * *row, wide + i * size, size);
    *row = (int64_t)size;
    return wide;
}
#endif

static const float *keys_at(const attention_job *j, const attention_keys *p, uint64_t within, uint64_t n, int64_t *row)
{
    *row = p->k_row;
    return vectors_at(j, p, p->k, within, n, j->size, row);
}

static const float *values_at(const attention_job *j, const attention_keys *p, uint64_t within, uint64_t n,
                              int64_t *row)
{
    *row = p->v_row;
    return vectors_at(j, p, p->v, within, n, j->v_size, row);
}

static void some_queries(const attention_job *j, uint64_t start, uint64_t lanes)
{
    const uint64_t query = j->first + start;
    float *s = scores_of(j), *qt = query_of(j), *y = result_of(j);
    onxi_vf best[TILE_V], sum[TILE_V];
    for (int v = 0; v < TILE_V; v++) {
        best[v] = vf_all(-INFINITY);
        sum[v] = vf_all(0);
    }
    for (uint64_t i = 0; i < QUERIES; i++) {
        const float *from = j->q + (int64_t)(start + (i < lanes ? i : lanes - 1)) * j->q_row;
        for (uint64_t d = 0; d < j->size; d++)
            qt[d * QUERIES + i] = from[(int64_t)d * j->q_col] * j->query_scale;
    }
    memset(y, 0, j->v_size * QUERIES * sizeof *y);
    for (uint64_t at = j->from, within, n; at < j->to; at += n) {
        int64_t row;
        const attention_keys *p = block_at(j, at, &within, &n);
        const float *keys = keys_at(j, p, within, n, &row);
        product(keys, row, p->k_col, n, qt, j->size, s, false);
        finish_scores(j, query, lanes, QUERIES, at, n, s);
        for (int v = 0; v < TILE_V; v++) {
            const onxi_vf before = best[v], earlier = soften(s + v * ONXI_LANES, QUERIES, n, &best[v], &sum[v]);
            const bool less = at > j->from && vi_any(before != best[v]);
            for (uint64_t d = 0; less && d < j->v_size; d++) {
                float *to = y + d * QUERIES + v * ONXI_LANES;
                vf_store(to, vf_load(to) * earlier);
            }
        }
        const float *values = values_at(j, p, within, n, &row);
        product(values, p->v_col, row, j->v_size, s, n, y, true);
    }
    for (int v = 0; v < TILE_V; v++) {
        const uint64_t before = (uint64_t)v * ONXI_LANES;
        const onxi_vf by = divisor(j, query + before, lanes > before ? lanes - before : 0, sum[v]);
        for (uint64_t d = 0; d < j->v_size; d++)
            vf_store(y + d * QUERIES + v * ONXI_LANES, vf_load(y + d * QUERIES + v * ONXI_LANES) * by);
    }
    for (uint64_t i = 0; i < lanes; i++) {
        float *to = j->y + (int64_t)(start + i) * j->y_row;
        for (uint64_t d = 0; d < j->v_size; d++)
            to[(int64_t)d * j->y_col] = y[d * QUERIES + i];
    }
}

/* ---- one query, limited by memory bandwidth ---- */

/* Vectors of columns accumulated at a time; prefetch distance in bytes. The keys of a long past come from memory, and
 * the hardware prefetcher stops at page ends. */
enum { MIXED = 8, AHEAD = 8192 };

static inline void ask_for(const float *p)
{
    __builtin_prefetch((const void *)((uintptr_t)p + AHEAD));
}

/* Dot products of b with lines of a that have stride `step`. */
static void dots(const float *a, int64_t row, int64_t col, uint64_t rows, const float *b, uint64_t n, float *out)
{
    const uint64_t whole = col == 1 ? n - n % ONXI_LANES : 0;
    for (uint64_t i = 0; i < rows; i++, a += row) {
        onxi_vf sum = vf_all(0), other = vf_all(0);
        uint64_t d = 0;
        for (; d + 2 * ONXI_LANES <= whole; d += 2 * ONXI_LANES) {
            ask_for(a + d);
            ask_for(a + d + ONXI_LANES);
            sum += vf_load(a + d) * vf_load(b + d);
            other += vf_load(a + d + ONXI_LANES) * vf_load(b + d + ONXI_LANES);
        }
        for (; d < whole; d += ONXI_LANES)
            sum += vf_load(a + d) * vf_load(b + d);
        float total = vf_sum(sum + other);
        for (; d < n; d++)
            total += a[(int64_t)d * col] * b[d];
        out[i] = total;
    }
}

/* y += p * a for `at_once` vectors of columns: each line of a is multiplied with its element of p. */
__attribute__((always_inline)) static inline void mix_vectors(const int at_once, const float *a, int64_t row,
                                                              uint64_t rows, const float *p, float *y)
{
    onxi_vf sum[MIXED];
    UNROLL
    for (int v = 0; v < at_once; v++)
        sum[v] = vf_load(y + v * ONXI_LANES);
    for (uint64_t i = 0; i < rows; i++, a += row)
        UNROLL
    for (int v = 0; v < at_once; v++) {
        ask_for(a + v * ONXI_LANES);
        sum[v] += p[i] * vf_load(a + v * ONXI_LANES);
    }
    UNROLL
    for (int v = 0; v < at_once; v++)
        vf_store(y + v * ONXI_LANES, sum[v]);
}

static void mix(const float *a, int64_t row, int64_t col, uint64_t rows, const float *p, uint64_t n, float *y)
{
    uint64_t d = 0;
    for (; col == 1 && d + MIXED * ONXI_LANES <= n; d += MIXED * ONXI_LANES)
        mix_vectors(MIXED, a + d, row, rows, p, y + d);
#if ONXI_LANES == 16 /* heads of 64 */
    for (; col == 1 && d + 4 * ONXI_LANES <= n; d += 4 * ONXI_LANES)
        mix_vectors(4, a + d, row, rows, p, y + d);
#endif
    for (; col == 1 && d + ONXI_LANES <= n; d += ONXI_LANES)
        mix_vectors(1, a + d, row, rows, p, y + d);
    for (; d < n; d++)
        for (uint64_t i = 0; i < rows; i++)
            y[d] += p[i] * a[(int64_t)i * row + (int64_t)d * col];
}

/* Exponentials of a line, as in `soften`. */
static float soften_line(float *s, uint64_t n, float *best, float *sum)
{
    for (uint64_t k = n; k % ONXI_LANES; k++)
        s[k] = -INFINITY;
    onxi_vf top = vf_all(*best), total = vf_all(0);
    for (uint64_t k = 0; k < n; k += ONXI_LANES)
        top = vf_max(vf_load(s + k), top);
    const float most = vf_greatest(top), by = most == -INFINITY ? 0 : most;
    const float earlier = vf_exp_weight(vf_all(*best - by))[0];
    for (uint64_t k = 0; k < n; k += ONXI_LANES) {
        const onxi_vf e = vf_exp_weight(vf_load(s + k) - by);
        vf_store(s + k, e);
        total += e;
    }
    *sum = *sum * earlier + vf_sum(total);
    *best = most;
    return earlier;
}

static void one_query(const attention_job *j, uint64_t start)
{
    float *s = scores_of(j), *q = query_of(j), *y = result_of(j);
    float best = -INFINITY, sum = 0;
    for (uint64_t d = 0; d < j->size; d++)
        q[d] = j->q[(int64_t)start * j->q_row + (int64_t)d * j->q_col] * j->query_scale;
    memset(y, 0, j->v_size * sizeof *y);
    for (uint64_t at = j->from, within, n; at < j->to; at += n) {
        int64_t row;
        const attention_keys *p = block_at(j, at, &within, &n);
        const float *keys = keys_at(j, p, within, n, &row);
        dots(keys, row, p->k_col, n, q, j->size, s);
        for (uint64_t k = n; k % ONXI_LANES; k++)
            s[k] = 0;
        finish_scores(j, j->first + start, 1, 1, at, n, s);
        const float earlier = soften_line(s, n, &best, &sum);
        for (uint64_t d = 0; at > j->from && d < j->v_size; d++)
            y[d] *= earlier;
        const float *values = values_at(j, p, within, n, &row);
        mix(values, row, p->v_col, n, s, j->v_size, y);
    }
    const float by = divisor(j, j->first + start, 1, vf_all(sum))[0];
    for (uint64_t d = 0; d < j->v_size; d++)
        j->y[(int64_t)start * j->y_row + (int64_t)d * j->y_col] = y[d] * by;
}

void ONXI_LEVELED(onxi_attention_job)(const attention_job *j)
{
    uint64_t i = 0;
    for (; j->rows - i > FEW; i += j->rows - i < QUERIES ? j->rows - i : QUERIES)
        some_queries(j, i, j->rows - i < QUERIES ? j->rows - i : QUERIES);
    for (; i < j->rows; i++)
        one_query(j, i);
}

/* ---- queries of other operators ---- */

static void run_queries(const onxi_queries *q, float *memory)
{
    for (uint64_t start = 0; start < q->rows && !onx_work_stops(q->work); start += QUERIES) {
        uint64_t first, last;
        attention_job j = { .q = q->q + start * q->q_row,
                            .y = q->y + start * q->y_row,
                            .q_row = (int64_t)q->q_row,
                            .q_col = 1,
                            .y_row = (int64_t)q->y_row,
                            .y_col = 1,
                            .first = start,
                            .rows = q->rows - start < QUERIES ? q->rows - start : QUERIES,
                            .size = q->size,
                            .v_size = q->v_size,
                            .query_scale = 1,
                            .scale = q->scale,
                            .cap = q->cap,
                            .own = q,
                            .memory = memory };
        for (int i = 0; i < 2; i++)
            j.keys[i] = (attention_keys){
                q->keys[i].k,     q->keys[i].v,     (int64_t)q->keys[i].k_row, 1, (int64_t)q->keys[i].v_row, 1,
                q->keys[i].count, q->keys[i].narrow
            };
        for (uint32_t i = 0; i < q->added_count; i++)
            j.changes[j.change_count++] =
                (change){ .kind = q->added[i].numbers ? CHANGE_ADD : CHANGE_FILTER,
                          .data = q->added[i].numbers ? (const void *)q->added[i].numbers : q->added[i].mask,
                          .row = (int64_t)q->added[i].row,
                          .col = 1,
                          .columns = q->length,
                          .number = q->added[i].filter };
        onxi_queries_visible(q, start, &j.from, &last);
        onxi_queries_visible(q, start + j.rows - 1, &first, &j.to);
        if (j.from > j.to)
            j.from = j.to;
        ONXI_LEVELED(onxi_attention_job)(&j);
    }
}

#ifdef __wasm__
const onxi_queries_ops ONXI_LEVELED(onxi_queries) = { .memory = job_memory, .run = run_queries };
#else
const onxi_queries_ops
    ONXI_LEVELED(onxi_queries) = { .memory = job_memory_wide, .run = run_queries, .takes_narrow = true };
#endif

/* ---- Attention ---- */

static const float *head_of(const onxi_heads *h, const onx_value *v, uint64_t batch, uint64_t head)
{
    return v ? (const float *)v->data + (int64_t)batch * h->batch_step + (int64_t)head * h->head_step : NULL;
}

static void run_tile(onx_work *work, onxi_attention_tile *t, int64_t length)
{
    const onxi_attention_params *q = work->params;
    const onxi_attention *a = &q->a;
    const onx_value *in[ONXI_ATTENTION_LENGTHS + 1];
    const uint64_t head = t->head / a->group;
    uint64_t first, last;
    for (uint32_t i = 0; i <= ONXI_ATTENTION_LENGTHS; i++)
        in[i] = onxi_operand(work->prepared->input_count, work->inputs, i);
    if (!work->outputs[ONXI_ATTENTION_Y])
        return;
    const onx_value *mask = in[ONXI_ATTENTION_MASK];
    attention_job j = { .q =
                            head_of(&a->q, in[ONXI_ATTENTION_Q], t->batch, t->head) + (int64_t)t->first * a->q.row_step,
                        .q_row = a->q.row_step,
                        .q_col = 1,
                        .y_row = a->y.row_step,
                        .y_col = 1,
                        .first = t->first,
                        .rows = t->rows,
                        .size = a->q.size,
                        .v_size = a->v.size,
                        /* Multiplied as in the plain kernel, because the order decides what overflows. */
                        .query_scale = (float)a->scale,
                        .scale = 1,
                        .cap = q->softcap > 0 ? (float)q->softcap : 0,
                        .ranges = q,
                        .length = length,
                        .memory = (float *)t->memory };
    j.y = (float *)work->outputs[ONXI_ATTENTION_Y]->data + (int64_t)t->batch * a->y.batch_step +
          (int64_t)t->head * a->y.head_step + (int64_t)t->first * a->y.row_step;
    j.keys[0] = (attention_keys){ head_of(&a->past_k, in[ONXI_ATTENTION_PAST_K], t->batch, head),
                                  head_of(&a->past_v, in[ONXI_ATTENTION_PAST_V], t->batch, head),
                                  a->past_k.row_step,
                                  1,
                                  a->past_v.row_step,
                                  1,
                                  a->past_k.length,
                                  0 };
    j.keys[1] = (attention_keys){ head_of(&a->k, in[ONXI_ATTENTION_K], t->batch, head),
                                  head_of(&a->v, in[ONXI_ATTENTION_V], t->batch, head),
                                  a->k.row_step,
                                  1,
                                  a->v.row_step,
                                  1,
                                  a->k.length,
                                  0 };
    if (mask) {
        const int64_t at = (int64_t)t->batch * q->mask_batch + (int64_t)t->head * q->mask_head;
        const bool boolean = mask->dtype == ONX_BOOL;
        j.changes[j.change_count++] = (change){ .kind = boolean ? CHANGE_MASK_BOOL : CHANGE_MASK,
                                                .data = (const char *)mask->data + at * (boolean ? 1 : 4),
                                                .row = q->mask_row,
                                                .col = q->mask_repeat ? 0 : 1,
                                                .columns = q->mask_repeat ? a->total : q->mask_columns };
    }
    onxi_attention_visible(q, length, t->first, &j.from, &last);
    onxi_attention_visible(q, length, t->first + t->rows - 1, &first, &j.to);
    if (j.from > j.to)
        j.from = j.to;
    ONXI_LEVELED(onxi_attention_job)(&j);
}

/* Beyond this bound ordinary scores overflow, and the result depends on the order of the additions: the plain kernel
 * runs. */
#define SCALE_MOST 1e15

static onx_status attention_prepare(onx_prepare *p)
{
    const onx_value *mask = onxi_operand(p->input_count, p->inputs, ONXI_ATTENTION_MASK);
    ONX_TRY(onxi_attention_prepare(p));
    onxi_attention_params *q = p->params;
    const onxi_attention *a = &q->a;
    if (a->q.dtype != ONX_FLOAT || a->v.dtype != ONX_FLOAT || a->precision != ONX_FLOAT ||
        (mask && mask->dtype != ONX_FLOAT && mask->dtype != ONX_BOOL) ||
        (p->output_count > ONXI_ATTENTION_SCORES && p->outputs[ONXI_ATTENTION_SCORES]) ||
        !(fabs(a->scale) <= SCALE_MOST))
        return ONX_E_UNSUPPORTED;
    q->run_tile = run_tile;
    onxi_attention_cut(p, q, QUERIES_PIECE);
    return job_settle(p, a->q.size, a->v.size, a->total);
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_attention)[] = {
    { .op = "Attention",
      .since = 23,
      .dtypes = ONXI_F32,
      .preference = 1,
      .isa = ONXI_LEVEL,
      .variant = ONXI_VARIANT,
      .prepare = attention_prepare,
      .run = onxi_attention_run },
    { 0 },
};
