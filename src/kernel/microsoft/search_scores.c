/* search_scores.c - adjusts token scores by the tokens of the sequence and by masks, and samples tokens. */
#include "kernel/microsoft/search.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static void penalize(onxi_search_run *r, const int32_t *tokens, float *scores)
{
    r->stamp++;
    for (uint64_t i = 0; i < r->length; i++) {
        const int32_t id = tokens[i];
        if (id < 0 || (uint64_t)id >= r->vocab || r->seen[id] == r->stamp)
            continue;
        r->seen[id] = r->stamp;
        scores[id] = scores[id] < 0 ? scores[id] * r->penalty : scores[id] / r->penalty;
    }
}

/* Excludes tokens that would repeat an n-gram of the sequence. */
static void block_repeats(const onxi_search_run *r, uint64_t n, const int32_t *tokens, float *scores)
{
    if (!n || n > r->length)
        return;
    const int32_t *last = tokens + r->length - (n - 1);
    for (uint64_t i = 0; i + n <= r->length; i++) {
        const int32_t id = tokens[i + n - 1];
        if (id >= 0 && (uint64_t)id < r->vocab && (n == 1 || !memcmp(tokens + i, last, (size_t)(n - 1) * sizeof *last)))
            scores[id] = -FLT_MAX;
    }
}

static void rule_out(const int32_t *mask, uint64_t count, float *scores)
{
    for (uint64_t i = 0; mask && i < count; i++)
        if (!mask[i])
            scores[i] = -FLT_MAX;
}

/* ---- timestamps: Whisper's tokens from `first` on ---- */

static void rule_out_range(const onxi_search_run *r, int64_t from, int64_t to, float *scores)
{
    const int64_t end = to < (int64_t)r->vocab ? to : (int64_t)r->vocab;
    for (int64_t i = from < 0 ? 0 : from; i < end; i++)
        scores[i] = -FLT_MAX;
}

static void rule_out_token(const onxi_search_run *r, int64_t id, float *scores)
{
    if (id >= 0)
        rule_out_range(r, id, id + 1, scores);
}

/* If all timestamps together are more probable than any other token, a timestamp must come next. */
static void prefer_times(const onxi_search *q, const onxi_search_run *r, float *scores)
{
    const uint64_t first = (uint64_t)q->times.first;
    float top = -FLT_MAX, text = -FLT_MAX;
    double sum = 0;
    for (uint64_t i = 0; i < r->vocab; i++) {
        float *greatest = i < first ? &text : &top;
        *greatest = scores[i] > *greatest ? scores[i] : *greatest;
    }
    for (uint64_t i = first; i < r->vocab; i++)
        sum += scores[i] > -FLT_MAX ? exp((double)(scores[i] - top)) : 0;
    if (sum > 0 && (float)log(sum) + top > text)
        rule_out_range(r, 0, q->times.first, scores);
}

static void rule_times(const onxi_search *q, const onxi_search_run *r, const int32_t *tokens, float *scores)
{
    enum { MOST_AT_FIRST = 50 };
    const int64_t first = q->times.first;
    uint64_t begun = 0; /* number of tokens up to the first timestamp */
    int64_t last = -1;
    while (begun < r->length && tokens[begun++] < first)
        ;
    for (uint64_t i = 0; i < r->length; i++)
        last = tokens[i] >= first ? tokens[i] : last;
    rule_out_token(r, q->times.none, scores);
    rule_out_token(r, q->times.language_model, scores);
    if (r->length > begun) {
        rule_out_token(r, q->start, scores);
        rule_out_token(r, q->times.translate, scores);
        rule_out_token(r, q->times.transcribe, scores);
    }
    const bool ends_so = tokens[r->length - 1] >= first, pair = r->length <= begun || tokens[r->length - 2] >= first;
    if (ends_so && pair)
        rule_out_range(r, first, INT64_MAX, scores);
    if (ends_so && !pair)
        rule_out_range(r, 0, q->end, scores);
    if (last >= 0) /* timestamps never decrease, and repeat only where one segment ends and the next begins */
        rule_out_range(r, first, ends_so && !pair ? last : last + 1, scores);
    if (r->length == begun)
        rule_out_range(r, first + MOST_AT_FIRST + 1, INT64_MAX, scores);
    prefer_times(q, r, scores);
}

/* Forces the next token: its score becomes 0, all others are excluded. */
static void force(const onxi_search_run *r, int32_t token, float *scores)
{
    for (uint64_t i = 0; token >= 0 && (uint64_t)token < r->vocab && i < r->vocab; i++)
        scores[i] = i == (uint64_t)token ? 0 : -FLT_MAX;
}

void onxi_search_adjust(const onxi_search *q, onxi_search_run *r)
{
    for (uint64_t row = 0; row < r->rows; row++) {
        const int32_t *tokens = r->tokens[0] + row * r->longest;
        const uint64_t own = row / r->beams * r->vocab;
        float *scores = r->scores + row * r->vocab;
        if (r->penalty != 1)
            penalize(r, tokens, scores);
        block_repeats(r, q->ngram, tokens, scores);
        rule_out(r->vocab_mask, r->vocab, scores);
        rule_out(r->step == 1 && r->prefix_mask ? r->prefix_mask + own : NULL, r->vocab, scores);
        if ((int64_t)r->length < r->least && (uint64_t)q->end < r->vocab)
            scores[q->end] = -FLT_MAX;
        for (uint64_t i = 0; r->temperature != 1 && i < r->vocab; i++)
            scores[i] /= r->temperature;
        for (uint64_t i = 0; r->presence && i < r->vocab; i++)
            scores[i] -= (float)r->presence[own + i] * q->presence_penalty;
        if (r->has_times)
            rule_times(q, r, tokens, scores);
        if (r->step <= r->forced_count)
            force(r, r->forced[row / r->beams * r->forced_count + r->step - 1], scores);
    }
}

/* ---- sampling ---- */

typedef struct ranked {
    float score;
    uint32_t token;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* Excludes tokens that are not among the most probable ones that make up the share (top-p), going from the least
 * probable up or from the most probable down. */
static void filter(const onxi_search *q, uint64_t count, const ranked *order, float *scores)
{
    double whole = 0, sum = 0;
    const float top = order[count - 1].score;
    for (uint64_t i = 0; i < count; i++)
        whole += exp((double)(order[i].score - top));
    for (uint64_t i = 0; i < count; i++) {
        const ranked *at = &order[q->downwards ? count - 1 - i : i];
        sum += exp((double)(at->score - top)) / whole;
        if (!q->downwards && i + (uint64_t)(q->least_kept > 0 ? q->least_kept : 0) < count && sum <= 1 - q->share)
            scores[at->token] = q->filter;
        if (q->downwards && i + 1 < count && sum > q->share)
            scores[order[count - 2 - i].token] = q->filter;
    }
}

onx_status onxi_search_sample(const onxi_search *q, onxi_search_run *r, float *scores, uint64_t *token)
{
    if (!r->order)
        r->order = onx_arena_alloc(r->arena, (size_t)r->vocab * sizeof(ranked));
    ranked *order = r->order;
    if (!order)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < r->vocab; i++)
        order[i] = (ranked){ scores[i], (uint32_t)i };
    qsort(order, (size_t)r->vocab, sizeof *order, by_score);
    filter(q, r->vocab, order, scores);
    float top = -INFINITY;
    double whole = 0;
    for (uint64_t i = 0; i < r->vocab; i++)
        top = scores[i] > top ? scores[i] : top;
    for (uint64_t i = 0; i < r->vocab; i++)
        whole += exp((double)(scores[i] - top));
    double left = onxi_random_uniform(&r->random) * whole;
    *token = order[r->vocab - 1].token;
    for (uint64_t i = 0; i < r->vocab; i++) {
        left -= exp((double)(scores[i] - top));
        if (left < 0) {
            *token = i;
            break;
        }
    }
    return ONX_OK;
}
