/* generate_choose.c - selects the next token from the scores: the most likely one, or a random one among the likely
 * ones. */
#include "generate/generate.h"

#include <math.h>

/* A number in [0, 1) that depends only on the seed and the position in the text. */
static double chance(uint64_t seed, uint64_t place)
{
    uint64_t x = seed + (place + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

/* ---- a heap of tokens, the most likely one on top ---- */

static bool is_better(const float *scores, uint32_t a, uint32_t b)
{
    return scores[a] > scores[b] || (scores[a] >= scores[b] && a < b);
}

static void sink(const float *scores, uint32_t *heap, uint64_t count, uint64_t at)
{
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_better(scores, heap[child + 1], heap[child]))
            child++;
        if (!is_better(scores, heap[child], heap[at]))
            return;
        const uint32_t swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
    }
}

/* Moves the top to the end of the heap, which becomes one shorter. */
static uint32_t take_best(const float *scores, uint32_t *heap, uint64_t *count)
{
    const uint32_t best = heap[0];
    heap[0] = heap[--*count];
    heap[*count] = best;
    sink(scores, heap, *count, 0);
    return best;
}

/* ---- selection ---- */

static double weight(const onx_generator *g, uint32_t id, double greatest, double temperature)
{
    return exp(((double)g->scores[id] - greatest) / temperature);
}

/* Selects the candidates that top_k and top_p allow; they are stored from the end of g->heap. */
static uint64_t keep_likely(onx_generator *g, const onx_choice_options *o, double greatest)
{
    uint64_t left = g->score_count;
    const uint64_t most = o->top_k && o->top_k < left ? o->top_k : left;
    const bool all = o->top_p <= 0 || o->top_p >= 1;
    double sum = 0, so_far = 0;
    uint64_t kept = 0;
    if (all && most == left)
        return left;
    for (uint64_t i = left / 2; i-- > 0;)
        sink(g->scores, g->heap, left, i);
    if (most == g->score_count)
        for (uint64_t i = 0; i < g->score_count; i++)
            sum += weight(g, (uint32_t)i, greatest, o->temperature);
    while (kept < most && (all || most < g->score_count || so_far < o->top_p * sum)) {
        so_far += weight(g, take_best(g->scores, g->heap, &left), greatest, o->temperature);
        kept++;
    }
    if (all || most == g->score_count)
        return kept;
    /* top_p applies to the candidates that top_k allows */
    for (sum = so_far, so_far = 0, kept = 0; kept < most && so_far < o->top_p * sum; kept++)
        so_far += weight(g, g->heap[g->score_count - 1 - kept], greatest, o->temperature);
    return kept;
}

static int64_t draw(onx_generator *g, const onx_choice_options *o, double greatest)
{
    for (uint64_t i = 0; i < g->score_count; i++)
        g->heap[i] = (uint32_t)i;
    const uint64_t kept = keep_likely(g, o, greatest);
    const uint32_t *list = g->heap + (g->score_count - kept);
    double sum = 0, so_far = 0;
    for (uint64_t i = 0; i < kept; i++)
        sum += weight(g, list[i], greatest, o->temperature);
    const double point = chance(o->seed, g->id_count) * sum;
    for (uint64_t i = kept; i-- > 0;) {
        so_far += weight(g, list[i], greatest, o->temperature);
        if (point < so_far)
            return list[i];
    }
    return kept ? (int64_t)list[0] : 0;
}

/* Makes each token that occurred less likely, once. Marks are kept in g->heap, which is not in use yet. */
static void penalize(onx_generator *g, double penalty)
{
    memset(g->heap, 0, g->score_count * sizeof *g->heap);
    for (uint64_t i = 0; i < g->id_count; i++) {
        const int64_t id = g->ids[i];
        if (id < 0 || (uint64_t)id >= g->score_count || g->heap[id])
            continue;
        g->heap[id] = 1;
        const double score = (double)g->scores[id];
        g->scores[id] = (float)(score > 0 ? score / penalty : score * penalty);
    }
}

static onx_status choose(onx_generator *g, const onx_choice_options *o, int64_t *out)
{
    if (!g->score_count)
        return onxi_fail(g->cx, ONX_E_MISUSE, ONXI_NOWHERE, "no tokens were fed, so there is no next token");
    if (!(o->temperature >= 0) || !(o->top_p >= 0) || !(o->repetition_penalty >= 0) || isinf(o->temperature) ||
        isinf(o->repetition_penalty))
        return onxi_fail(g->cx, ONX_E_MISUSE, ONXI_NOWHERE, "temperature, top_p or penalty is negative or not finite");
    if (!ONXI_GROW(g->cx, g->heap, g->heap_room, g->score_count))
        return ONX_E_MEMORY;
    if (o->repetition_penalty > 0 && (o->repetition_penalty < 1 || o->repetition_penalty > 1))
        penalize(g, o->repetition_penalty);
    uint64_t best = 0;
    for (uint64_t i = 0; i < g->score_count; i++) {
        if (isnan(g->scores[i]))
            return onxi_fail(g->cx, ONX_E_INVALID, ONXI_NOWHERE, "the score of token %llu behind %llu tokens is NaN",
                             (unsigned long long)i, (unsigned long long)g->id_count);
        if (g->scores[i] > g->scores[best])
            best = i;
    }
    *out = (int64_t)best;
    if (o->temperature > 0 && o->top_k != 1 && isfinite(g->scores[best]))
        *out = draw(g, o, (double)g->scores[best]);
    return ONX_OK;
}

onx_status onx_generator_choose(onx_generator *generator, const onx_choice_options *options, int64_t *id_out)
{
    if (!generator)
        return ONX_E_MISUSE;
    ONXI_NEED(generator->cx, id_out);
    ONXI_OPTIONS(generator->cx, onx_choice_options, own, options);
    ONXI_CALL(generator->cx, choose(generator, &own, id_out));
}
