/* search_beams.c - BeamSearch: keeps the best continuations of each sequence, and those that have ended. */
#include "kernel/core/scores.h"
#include "kernel/microsoft/search.h"

#include <math.h>

onx_status onxi_beam_begin(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const uint64_t slots = r->batch * (r->beams + 1);
    uint64_t bytes;
    if (!onxi_mul_u64(slots, r->longest * sizeof(int32_t), &bytes) || bytes > SIZE_MAX / 2)
        return onx_work_fail(work, ONX_E_LIMIT, "%llu sequences of %llu tokens are too many", (unsigned long long)slots,
                             (unsigned long long)r->longest);
    int32_t *tokens = onx_arena_alloc(r->arena, (size_t)bytes);
    r->ended = onx_arena_alloc(r->arena, (size_t)slots * sizeof *r->ended);
    r->ended_count = onx_arena_alloc(r->arena, (size_t)r->batch * sizeof *r->ended_count);
    r->best = onx_arena_alloc(r->arena, (size_t)(2 * r->beams) * sizeof *r->best);
    if (!tokens || !r->ended || !r->ended_count || !r->best)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < slots; i++)
        r->ended[i] = (onxi_search_beam){ .tokens = tokens + i * r->longest };
    return onxi_search_begin_products(work, q, r);
}

/* ---- ended sequences, the best first ---- */

static float by_length(const onxi_search_run *r, float sum, uint64_t length)
{
    return sum / powf((float)length, r->length_penalty);
}

/* Adds a row to the ended sequences: before the token of this step is appended, or when the search is over. */
static void end(onxi_search_run *r, uint64_t sequence, uint64_t row, float sum, bool over)
{
    const onxi_search_products *t = &r->products;
    onxi_search_beam *ended = r->ended + sequence * (r->beams + 1);
    uint64_t *count = &r->ended_count[sequence], at = *count;
    onxi_search_beam item = ended[at];
    item.score = by_length(r, sum, r->length);
    if (at == r->beams && !(item.score > ended[at - 1].score))
        return;
    item.length = r->length;
    memcpy(item.tokens, r->tokens[0] + row * r->longest, (size_t)r->length * sizeof *item.tokens);
    item.runs = t->runs;
    if (item.runs) {
        const uint64_t moved = item.runs - !over;
        memcpy(item.trail, t->trail[0] + row * r->longest, (size_t)moved * sizeof *item.trail);
        if (!over)
            item.trail[moved] = (uint32_t)row;
    }
    for (; at > 0 && item.score > ended[at - 1].score; at--)
        ended[at] = ended[at - 1];
    ended[at] = item;
    *count += *count < r->beams; /* if it is full, the worst one is in the spare entry */
}

static bool is_done(const onxi_search *q, const onxi_search_run *r, uint64_t sequence, float best)
{
    if (r->ended_count[sequence] < r->beams)
        return false;
    const onxi_search_beam *worst = r->ended + sequence * (r->beams + 1) + r->beams - 1;
    return q->stops_early || worst->score >= by_length(r, best, r->length);
}

/* ---- steps ---- */

/* Finds the best continuations of a sequence, in order; of equal ones, the first. */
static uint64_t find_best(onxi_search_run *r, const float *scores)
{
    const uint64_t wanted = 2 * r->beams, all = r->beams * r->vocab;
    const onxi_score_loops *loops = onxi_score_loops_best();
    uint64_t count = 0;
    for (uint64_t i = 0; i < all; i++) {
        if (count == wanted)
            i = loops->above(scores, i, all, scores[r->best[count - 1]]);
        if (i == all)
            break;
        uint64_t at = count < wanted ? count++ : wanted - 1;
        for (; at > 0 && scores[i] > scores[r->best[at - 1]]; at--)
            r->best[at] = r->best[at - 1];
        r->best[at] = i;
    }
    return count;
}

static void rest(const onxi_search *q, onxi_search_run *r, uint64_t sequence)
{
    for (uint64_t i = 0; i < r->beams; i++) {
        const uint64_t row = sequence * r->beams + i;
        r->sums[row] = 0;
        r->next[row] = q->pad;
        r->from[row] = (uint32_t)row;
    }
}

static onx_status go_on(onx_work *work, const onxi_search *q, onxi_search_run *r, uint64_t sequence)
{
    const float *scores = r->scores + sequence * r->beams * r->vocab;
    const uint64_t found = find_best(r, scores), base = sequence * r->beams;
    uint64_t beam = 0;
    for (uint64_t i = 0; i < found && beam < r->beams; i++) {
        const uint64_t row = base + r->best[i] / r->vocab;
        const int32_t token = (int32_t)(r->best[i] % r->vocab);
        if (token == q->end) {
            if (i < r->beams)
                end(r, sequence, row, scores[r->best[i]], false);
            continue;
        }
        r->sums[base + beam] = scores[r->best[i]];
        r->next[base + beam] = token;
        r->from[base + beam] = (uint32_t)row;
        beam++;
    }
    if (beam < r->beams)
        return onx_work_fail(work, ONX_E_INVALID, "%llu tokens are too few for %llu beams",
                             (unsigned long long)r->vocab, (unsigned long long)r->beams);
    r->done[sequence] = is_done(q, r, sequence, scores[r->best[0]]);
    return ONX_OK;
}

/* Outputs the scores of each step as [steps, batch, beams, tokens]; steps that were not taken are zero. */
static onx_status keep_scores(onx_work *work, const onxi_search_run *r)
{
    if (work->prepared->output_count < 3 || !work->outputs[2])
        return ONX_OK;
    const uint64_t count = r->rows * r->vocab;
    const int64_t dims[] = { (int64_t)(r->longest - r->start), (int64_t)r->batch, (int64_t)r->beams,
                             (int64_t)r->vocab };
    onx_value *y = work->outputs[2];
    if (r->step == 1) {
        ONX_TRY(onx_value_reset(y, ONX_FLOAT, 4, dims));
        memset(y->data, 0, (size_t)y->size);
    }
    memcpy((float *)y->data + (r->step - 1) * count, r->scores, (size_t)count * sizeof(float));
    return ONX_OK;
}

/* Outputs the probability of the no-speech token in the first step. */
static onx_status keep_silence(onx_work *work, const onxi_search *q, const onxi_search_run *r)
{
    const int64_t dims[] = { (int64_t)r->batch };
    if (work->prepared->output_count < 5 || !work->outputs[4] || r->step > 1)
        return ONX_OK;
    if (q->silence < 0 || (uint64_t)q->silence >= r->vocab)
        return onx_work_fail(work, ONX_E_INVALID, "attribute no_speech_token_id is %d of %llu tokens", (int)q->silence,
                             (unsigned long long)r->vocab);
    ONX_TRY(onx_value_reset(work->outputs[4], ONX_FLOAT, 1, dims));
    for (uint64_t i = 0; i < r->batch; i++)
        ((float *)work->outputs[4]->data)[i] = expf(r->scores[i * r->beams * r->vocab + (uint64_t)q->silence]);
    return ONX_OK;
}

onx_status onxi_beam_choose(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    if (r->has_times && (q->times.first < 1 || (uint64_t)q->times.first >= r->vocab))
        return onx_work_fail(work, ONX_E_INVALID, "attribute beginning_timestamp_token_id is %d of %llu tokens",
                             (int)q->times.first, (unsigned long long)r->vocab);
    for (uint64_t row = 0; row < r->rows; row++)
        onxi_score_loops_best()->log_softmax(r->scores + row * r->vocab, r->vocab);
    ONX_TRY(keep_silence(work, q, r));
    onxi_search_adjust(q, r);
    for (uint64_t row = 0; row < r->rows; row++)
        for (uint64_t i = 0; i < r->vocab; i++)
            r->scores[row * r->vocab + i] += r->sums[row];
    ONX_TRY(keep_scores(work, r));
    for (uint64_t i = 0; i < r->batch; i++)
        if (r->done[i])
            rest(q, r, i);
        else
            ONX_TRY(go_on(work, q, r, i));
    return ONX_OK;
}

onx_status onxi_beam_outputs(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const int64_t dims[] = { (int64_t)r->batch, (int64_t)r->wanted, (int64_t)r->longest };
    const bool scored = work->prepared->output_count > 1 && work->outputs[1];
    ONX_TRY(onx_value_reset(work->outputs[0], ONX_INT32, 3, dims));
    if (scored)
        ONX_TRY(onx_value_reset(work->outputs[1], ONX_FLOAT, 2, dims));
    int32_t *y = work->outputs[0]->data;
    for (uint64_t s = 0; s < r->batch; s++) {
        for (uint64_t i = 0; i < r->beams && !r->done[s]; i++)
            end(r, s, s * r->beams + i, r->sums[s * r->beams + i], true);
        for (uint64_t i = 0; i < r->wanted; i++, y += r->longest) {
            const onxi_search_beam *ended = &r->ended[s * (r->beams + 1) + i];
            for (uint64_t k = 0; k < r->longest; k++)
                y[k] = k < ended->length ? ended->tokens[k] : q->pad;
            if (scored)
                ((float *)work->outputs[1]->data)[s * r->wanted + i] = ended->score;
        }
    }
    return ONX_OK;
}
