/* search.c - GreedySearch, Sampling, BeamSearch and WhisperBeamSearch over a decoder subgraph. Its inputs are ids,
 * positions, a mask and the past of each layer; its outputs are the scores of all tokens and the new past. */
#include "kernel/microsoft/search.h"
#include "kernel/core/scores.h"

enum { IDS, MOST_LENGTH, LEAST_LENGTH, LONGEST = 4096, MOST_BEAMS = 128, FORMAL = 3 };

/* ---- the decoder ---- */

int64_t onxi_search_declared(const onx_value_info *v, uint32_t rank, uint32_t dim)
{
    const onx_type *type = v ? v->type : NULL;
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    const onx_tensor_shape *shape = t ? t->shape : NULL;
    if (!shape || shape->dim_count != rank || !ONX_HAS(dimension, shape->dim[dim], dim_value))
        return 0;
    return shape->dim[dim]->dim_value;
}

int onxi_search_dtype(const onx_value_info *v)
{
    const onx_type *type = v ? v->type : NULL;
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    return t ? t->elem_type : ONX_UNDEFINED;
}

onx_status onxi_search_find_extras(const onx_prepare *p, const char *name, const onx_graph *g, uint32_t first,
                                   onxi_search *q)
{
    static const char *const names[] = { "past_sequence_length", "beam_width", "cache_indirection" };
    q->extra_count = 0;
    for (uint32_t i = first; i < g->input_count; i++) {
        uint32_t kind = q->extra_count ? (uint32_t)q->extras[q->extra_count - 1] + 1 : ONXI_SEARCH_PAST_LENGTH;
        while (kind < ONXI_SEARCH_EXTRAS && !onx_str_is(onx_view(g->input[i]->name), names[kind]))
            kind++;
        if (kind == ONXI_SEARCH_EXTRAS || (i == first && kind) || onxi_search_dtype(g->input[i]) != ONX_INT32)
            return onx_prepare_fail(p, ONX_E_INVALID,
                                    "input %u of %s is \"%.*s\"; behind the past there may be past_sequence_length, "
                                    "beam_width and cache_indirection, of int32",
                                    i, name, ONX_ARG(onx_view(g->input[i]->name)));
        q->extras[q->extra_count++] = (onxi_search_extra)kind;
    }
    return ONX_OK;
}

onx_status onxi_search_set_extras(const onxi_search *q, onxi_search_run *r, uint64_t past)
{
    const int64_t one = 1, keys[] = { (int64_t)r->batch, (int64_t)r->beams, (int64_t)r->longest };
    for (uint32_t i = 0; i < q->extra_count; i++) {
        onx_value *v = r->extra[i];
        const bool per_key = q->extras[i] == ONXI_SEARCH_BEAM_OF_KEY;
        ONX_TRY(onx_value_reset(v, ONX_INT32, per_key ? 3 : 1, per_key ? keys : &one));
        int32_t *to = v->data;
        if (!per_key)
            *to = (int32_t)(q->extras[i] == ONXI_SEARCH_PAST_LENGTH ? past : r->beams);
        /* The buffers of continued beams are copied, so each key belongs to the beam itself. */
        for (uint64_t k = 0; per_key && k < v->count; k++)
            to[k] = (int32_t)(k / r->longest % r->beams);
    }
    return ONX_OK;
}

static onx_status check_decoder(onx_prepare *p, const char *name, onxi_search *q)
{
    const onx_graph *g = onx_prepare_graph(p, name);
    if (!g)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is missing", name);
    if (g->output_count < 2 || g->input_count < g->output_count - 1 + FORMAL)
        return onx_prepare_fail(
            p, ONX_E_INVALID,
            "%s has %u inputs and %u outputs; expected the inputs ids, positions, mask and a past per layer, and the "
            "outputs scores and a present per layer",
            name, g->input_count, g->output_count);
    q->layers = g->output_count - 1;
    q->formal = FORMAL;
    ONX_TRY(onxi_search_find_extras(p, name, g, FORMAL + q->layers, q));
    q->decoder_inputs = g->input_count;
    q->heads = onxi_search_declared(g->input[FORMAL], 5, 2);
    q->size = onxi_search_declared(g->input[FORMAL], 5, 4);
    q->dtype = onxi_search_dtype(g->input[FORMAL]);
    if (q->heads < 1 || q->size < 1)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "input %d of %s does not declare its shape [2, batch, heads, length, head size]",
                                FORMAL, name);
    if (q->dtype != ONX_FLOAT && q->dtype != ONX_FLOAT16)
        return onx_prepare_fail(p, ONX_E_INVALID, "input %d of %s is neither of float nor of float16", FORMAL, name);
    return ONX_OK;
}

static onx_status read_ids(const onx_prepare *p, onxi_search *q)
{
    const struct {
        const char *name;
        int32_t *to;
    } numbers[] = { { "eos_token_id", &q->end }, { "pad_token_id", &q->pad } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const int64_t id = onx_prepare_int(p, numbers[i].name);
        if (id < 0 || id > INT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is %lld", numbers[i].name, (long long)id);
        *numbers[i].to = (int32_t)id;
    }
    const int64_t ngram = onx_prepare_int(p, "no_repeat_ngram_size"), vocab = onx_prepare_int(p, "vocab_size"),
                  start = onx_prepare_int(p, "decoder_start_token_id");
    if (ngram < 0 || ngram > INT32_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute no_repeat_ngram_size is %lld", (long long)ngram);
    q->ngram = (uint64_t)ngram;
    if (start > INT32_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute decoder_start_token_id is %lld", (long long)start);
    q->vocab = vocab > 0 ? (uint64_t)vocab : 0;
    q->start = start < 0 ? -1 : (int32_t)start;
    return ONX_OK;
}

/* Checks a decoder without an encoder, whose first step may have a subgraph of its own. */
static onx_status prepare_alone(onx_prepare *p, onxi_search *q)
{
    ONX_TRY(check_decoder(p, "decoder", q));
    q->first = q->decoder;
    if (!onx_prepare_graph(p, "init_decoder"))
        return ONX_OK;
    const uint32_t layers = q->layers, inputs = q->decoder_inputs;
    ONX_TRY(check_decoder(p, "init_decoder", q));
    ONX_TRY(p->ops->graph(p, "init_decoder", &q->first));
    if (q->layers != layers || q->decoder_inputs != inputs)
        return onx_prepare_fail(p, ONX_E_INVALID, "init_decoder has %u layers and %u inputs, decoder %u and %u",
                                q->layers, q->decoder_inputs, layers, inputs);
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p, int64_t most_kind, onxi_search **out)
{
    onxi_search *q = ONXI_NEW(p->arena, onxi_search);
    if (!q)
        return ONX_E_MEMORY;
    q->kind = onx_prepare_int(p, "model_type");
    if (q->kind < ONXI_SEARCH_ALONE || q->kind > most_kind)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute model_type is %lld, which is not from 0 to %lld",
                                (long long)q->kind, (long long)most_kind);
    ONX_TRY(read_ids(p, q));
    ONX_TRY(p->ops->graph(p, "decoder", &q->decoder));
    ONX_TRY(q->kind == ONXI_SEARCH_ALONE ? prepare_alone(p, q) : onxi_search_check_encoder(p, q));
    q->temperature = 1;
    p->params = *out = q;
    return ONX_OK;
}

static const onxi_search_inputs greedy_inputs = { .penalty = 3,
                                                  .vocab_mask = 4,
                                                  .prefix_mask = 5,
                                                  .mask = 6,
                                                  .presence = -1,
                                                  .seed = -1,
                                                  .times = -1,
                                                  .temperature = -1,
                                                  .heads = -1,
                                                  .forced = -1 },
                                beam_inputs = { .penalty = 6,
                                                .vocab_mask = 7,
                                                .prefix_mask = 8,
                                                .mask = 9,
                                                .presence = -1,
                                                .seed = -1,
                                                .times = 11,
                                                .temperature = -1,
                                                .heads = -1,
                                                .forced = -1 };

static onx_status greedy_prepare(onx_prepare *p)
{
    onxi_search *q = NULL;
    ONX_TRY(prepare(p, ONXI_SEARCH_TEXT, &q));
    q->in = greedy_inputs;
    return ONX_OK;
}

static onx_status sampling_prepare(onx_prepare *p)
{
    onxi_search *q = NULL;
    ONX_TRY(prepare(p, ONXI_SEARCH_TEXT, &q));
    q->in = greedy_inputs;
    q->in.presence = 7;
    q->in.seed = 8;
    q->samples = true;
    q->temperature = onx_prepare_float(p, "temperature");
    q->presence_penalty = onx_prepare_float(p, "presence_penalty");
    q->filter = onx_prepare_float(p, "filter_value");
    q->share = onx_prepare_float(p, "top_p");
    q->downwards = onx_prepare_is_set(p, "custom");
    q->least_kept = onx_prepare_int(p, "min_tokens_to_keep");
    if (!(q->temperature > 0))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute temperature is %g", (double)q->temperature);
    return ONX_OK;
}

static onx_status beam_prepare(onx_prepare *p)
{
    onxi_search *q = NULL;
    ONX_TRY(prepare(p, ONXI_SEARCH_SOUND, &q));
    q->in = beam_inputs;
    q->beams = true;
    q->stops_early = onx_prepare_is_set(p, "early_stopping");
    q->times = (onxi_search_times){ -1, -1, -1, -1, -1 };
    q->silence = -1;
    return ONX_OK;
}

static onx_status whisper_prepare(onx_prepare *p)
{
    ONX_TRY(beam_prepare(p));
    onxi_search *q = (onxi_search *)p->params;
    if (q->kind != ONXI_SEARCH_SOUND)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute model_type is %lld, not 2", (long long)q->kind);
    if (p->output_count > 3 && p->outputs[3] && !q->crossed)
        return onx_prepare_fail(p, ONX_E_INVALID, "output cross_qk needs attribute decoder_output_cross_qk");
    q->in.heads = 12;
    q->in.forced = 13;
    q->in.temperature = 14;
    const struct {
        const char *name;
        int32_t *to;
    } tokens[] = { { "beginning_timestamp_token_id", &q->times.first },  { "no_timestamps_token_id", &q->times.none },
                   { "start_of_lm_token_id", &q->times.language_model }, { "translate_token_id", &q->times.translate },
                   { "transcribe_token_id", &q->times.transcribe },      { "no_speech_token_id", &q->silence } };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const int64_t id = onx_prepare_int(p, tokens[i].name);
        if (id > INT32_MAX)
            return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is %lld", tokens[i].name, (long long)id);
        *tokens[i].to = id < 0 ? -1 : (int32_t)id;
    }
    return ONX_OK;
}

/* ---- inputs of a run ---- */

const onx_value *onxi_search_operand(onx_work *work, int32_t index)
{
    return index < 0 ? NULL : onxi_operand(work->prepared->input_count, work->inputs, (uint32_t)index);
}

/* Reads an optional input of one number; `absent` is its default. */
static onx_status number(onx_work *work, int32_t index, const char *name, float absent, float *out)
{
    const onx_value *v = onxi_search_operand(work, index);
    *out = absent;
    if (!v)
        return ONX_OK;
    if (v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "%s has %llu elements, not one", name, (unsigned long long)v->count);
    *out = v->dtype == ONX_INT32 ? (float)*(const int32_t *)v->data : onxi_ms_float(v, 0);
    return ONX_OK;
}

static onx_status whole(onx_work *work, int32_t index, const char *name, int64_t absent, int64_t least, int64_t most,
                        int64_t *out)
{
    const onx_value *v = onxi_search_operand(work, index);
    *out = absent;
    if (v && v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "%s has %llu elements, not one", name, (unsigned long long)v->count);
    if (v)
        *out = *(const int32_t *)v->data;
    if (*out < least || *out > most)
        return onx_work_fail(work, ONX_E_INVALID, "%s is %lld, which is not from %lld to %lld", name, (long long)*out,
                             (long long)least, (long long)most);
    return ONX_OK;
}

/* Reads the initial tokens of each sequence. */
static onx_status read_sequences(onx_work *work, const onxi_search *q, int64_t *length)
{
    const bool sound = q->kind == ONXI_SEARCH_SOUND;
    const onx_value *ids = work->inputs[IDS], *mask = onxi_search_operand(work, q->in.mask),
                    *start = sound ? onxi_search_operand(work, 10) : NULL;
    const uint32_t rank = sound ? 3 : 2;
    if (ids->rank != rank || ids->count < 1 || (ids->dtype == ONX_INT32) == sound)
        return onx_work_fail(work, ONX_E_INVALID, "input 0 is not %s, as model_type %lld has it",
                             sound ? "sound as real numbers of rank 3" : "a matrix of int32", (long long)q->kind);
    if (mask && (mask->rank != rank || memcmp(mask->dims, ids->dims, rank * sizeof *ids->dims) != 0))
        return onx_work_fail(work, ONX_E_INVALID, "attention_mask has another shape than input 0");
    if (start && (start->rank != 2 || start->dims[0] != ids->dims[0] || start->dims[1] < 1))
        return onx_work_fail(work, ONX_E_INVALID, "decoder_input_ids is not a matrix of %lld sequences",
                             (long long)ids->dims[0]);
    if (q->kind != ONXI_SEARCH_ALONE && !start && q->start < 0)
        return onx_work_fail(work, ONX_E_INVALID,
                             "neither decoder_input_ids nor decoder_start_token_id gives the first token");
    *length = q->kind == ONXI_SEARCH_ALONE ? ids->dims[1] : start ? start->dims[1] : 1;
    return ONX_OK;
}

static onx_status read_inputs(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const onx_value *ids = work->inputs[IDS];
    int64_t length = 0, longest, least, beams = 1, wanted = 1, seed = 0, times;
    ONX_TRY(read_sequences(work, q, &length));
    ONX_TRY(whole(work, MOST_LENGTH, "max_length", LONGEST, length + 1, LONGEST, &longest));
    ONX_TRY(whole(work, LEAST_LENGTH, "min_length", 0, INT32_MIN, INT32_MAX, &least));
    ONX_TRY(whole(work, q->in.seed, "seed", 0, INT32_MIN, INT32_MAX, &seed));
    if (q->beams) {
        ONX_TRY(whole(work, 3, "num_beams", 1, 1, MOST_BEAMS, &beams));
        ONX_TRY(whole(work, 4, "num_return_sequences", 1, 1, beams, &wanted));
        ONX_TRY(number(work, 5, "length_penalty", 1, &r->length_penalty));
    }
    ONX_TRY(number(work, q->in.penalty, "repetition_penalty", 1, &r->penalty));
    if (!(r->penalty > 0))
        return onx_work_fail(work, ONX_E_INVALID, "repetition_penalty is %g, which is not above 0", (double)r->penalty);
    ONX_TRY(number(work, q->in.temperature, "temperature", q->temperature, &r->temperature));
    if (!(r->temperature > 0))
        return onx_work_fail(work, ONX_E_INVALID, "temperature is %g, which is not above 0", (double)r->temperature);
    ONX_TRY(whole(work, q->in.times, "logits_processor", 0, 0, INT32_MAX, &times));
    r->has_times = times == 1 && q->kind == ONXI_SEARCH_SOUND;
    r->batch = (uint64_t)ids->dims[0];
    r->length = r->start = (uint64_t)length;
    r->longest = (uint64_t)longest;
    r->least = least;
    r->beams = (uint64_t)beams;
    r->wanted = (uint64_t)wanted;
    if (r->batch > INT32_MAX / r->beams / (uint64_t)LONGEST)
        return onx_work_fail(work, ONX_E_LIMIT, "there are %llu sequences of %llu beams", (unsigned long long)r->batch,
                             (unsigned long long)r->beams);
    r->rows = r->batch * r->beams;
    const onx_value *forced = onxi_search_operand(work, q->in.forced);
    if (forced && (forced->rank != 2 || forced->dims[0] != ids->dims[0]))
        return onx_work_fail(work, ONX_E_INVALID, "extra_decoding_ids is not a matrix of %lld sequences",
                             (long long)ids->dims[0]);
    r->forced = forced ? forced->data : NULL;
    r->forced_count = forced ? (uint64_t)forced->dims[1] : 0;
    onxi_random_seed(&r->random, (uint32_t)seed);
    if (q->samples && !onxi_search_operand(work, q->in.seed))
        onxi_random_any(&r->random, r);
    return ONX_OK;
}

/* Checks a mask with an entry per token of the vocabulary. */
static onx_status token_mask(onx_work *work, const onxi_search_run *r, int32_t index, const char *name, uint64_t rows,
                             const int32_t **out)
{
    const onx_value *v = onxi_search_operand(work, index);
    *out = NULL;
    if (!v)
        return ONX_OK;
    if (v->rank != (rows ? 2 : 1) || v->dims[v->rank - 1] != (int64_t)r->vocab || (rows && v->dims[0] != (int64_t)rows))
        return onx_work_fail(work, ONX_E_INVALID, "%s has %llu elements, and there are %llu tokens", name,
                             (unsigned long long)v->count, (unsigned long long)r->vocab);
    *out = v->data;
    return ONX_OK;
}

/* ---- memory ---- */

onx_status onxi_search_no_past(const onxi_search *q, const onxi_search_run *r, uint32_t rank, onx_value *past)
{
    const int64_t dims[] = { 2, (int64_t)r->rows, q->heads, q->extra_count ? (int64_t)r->longest : 0, q->size };
    ONX_TRY(onx_value_reset(past, (onx_dtype)q->dtype, rank, dims + 5 - rank));
    if (past->size)
        memset(past->data, 0, (size_t)past->size);
    return ONX_OK;
}

static void *room(onxi_search_run *r, uint64_t count, size_t size)
{
    uint64_t bytes;
    if (!onxi_mul_u64(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    return onx_arena_alloc(r->arena, (size_t)bytes + 1);
}

static onx_status make_values(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const bool alone = q->kind == ONXI_SEARCH_ALONE;
    const uint64_t count =
        (uint64_t)q->decoder_inputs + 1 + q->layers + q->crossed + (alone ? 0 : q->encoder_outputs + (uint64_t)2);
    r->values = room(r, count, sizeof *r->values);
    r->in = room(r, q->decoder_inputs, sizeof *r->in);
    if (!r->values || !r->in)
        return ONX_E_MEMORY;
    for (r->value_count = 0; r->value_count < count; r->value_count++)
        ONX_TRY(onx_value_new(work->cx, &r->values[r->value_count]));
    r->past = r->values + q->formal;
    r->extra = r->values + q->decoder_inputs - q->extra_count;
    r->out = r->values + q->decoder_inputs; /* the scores, the new past, then attention products */
    r->encoded = r->out + 1 + q->layers + q->crossed;
    for (uint32_t i = 0; i < q->layers && alone; i++)
        ONX_TRY(onxi_search_no_past(q, r, 5, r->past[i]));
    for (uint32_t i = 0; i < q->decoder_inputs; i++)
        r->in[i] = r->values[i];
    for (uint32_t s = 0; s < 2; s++)
        if (!(r->tokens[s] = room(r, r->rows * r->longest, sizeof(int32_t))))
            return ONX_E_MEMORY;
    r->positions = room(r, r->rows, sizeof *r->positions);
    r->next = room(r, r->rows, sizeof *r->next);
    r->from = room(r, r->rows, sizeof *r->from);
    r->done = room(r, r->batch, sizeof *r->done);
    r->sums = room(r, r->rows, sizeof *r->sums);
    return r->positions && r->next && r->from && r->done && r->sums ? ONX_OK : ONX_E_MEMORY;
}

/* ---- steps ---- */

/* Makes the inputs of the first step. Each sequence is repeated for all of its beams; padding tokens are masked and
 * have no position. */
static onx_status first_inputs(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const int64_t dims[] = { (int64_t)r->rows, (int64_t)r->length };
    const onx_value *given = onxi_search_operand(work, q->in.mask);
    const int32_t *ids = work->inputs[IDS]->data, *given_mask = given ? given->data : NULL;
    for (uint32_t i = 0; i < FORMAL; i++)
        ONX_TRY(onx_value_reset(r->values[i], ONX_INT32, 2, dims));
    int32_t *id = r->values[0]->data, *position = r->values[1]->data, *mask = r->values[2]->data;
    for (uint64_t row = 0; row < r->rows; row++) {
        const uint64_t at = row / r->beams * r->length;
        int32_t counted = 0;
        for (uint64_t i = 0; i < r->length; i++) {
            const bool fills = ids[at + i] == q->pad;
            *id++ = r->tokens[0][row * r->longest + i] = ids[at + i];
            *mask++ = given_mask ? given_mask[at + i] : !fills;
            *position++ = fills ? 0 : counted;
            counted += !fills;
        }
        r->positions[row] = counted;
        r->sums[row] = row % r->beams ? -1e9f : 0;
    }
    return ONX_OK;
}

onx_status onxi_search_hand_past(onxi_search_run *r, const onxi_search *q)
{
    const uint64_t halves = q->kind == ONXI_SEARCH_ALONE ? 2 : 1; /* one tensor for keys and values, or one each */
    for (uint32_t i = 0; i < q->layers; i++) {
        onx_value *made = r->out[1 + i];
        if (r->beams == 1) {
            onxi_value_swap(r->past[i], made);
            continue;
        }
        ONX_TRY(onx_value_reset(r->past[i], (onx_dtype)made->dtype, made->rank, made->dims));
        const uint64_t bytes = made->size / halves / r->rows;
        for (uint64_t half = 0; half < halves && bytes; half++)
            for (uint64_t row = 0; row < r->rows; row++)
                memcpy((char *)r->past[i]->data + (half * r->rows + row) * bytes,
                       (const char *)made->data + (half * r->rows + r->from[row]) * bytes, (size_t)bytes);
    }
    return ONX_OK;
}

/* Makes the inputs of the next step: only the new token, at the next position. The mask grows by one. */
static onx_status next_inputs(const onxi_search *q, onxi_search_run *r, bool moves)
{
    const int64_t one[] = { (int64_t)r->rows, 1 }, all[] = { (int64_t)r->rows, (int64_t)r->length };
    onx_value *grown = r->values[0], *old = r->values[2];
    const int32_t *had = old->data;
    ONX_TRY(onx_value_reset(grown, ONX_INT32, 2, all));
    int32_t *mask = grown->data;
    for (uint64_t row = 0; row < r->rows; row++) {
        memcpy(mask + row * r->length, had + row * (r->length - 1), (size_t)(r->length - 1) * sizeof *mask);
        mask[row * r->length + r->length - 1] = 1;
    }
    onxi_value_swap(grown, old);
    ONX_TRY(onx_value_reset(r->values[0], ONX_INT32, 2, one));
    ONX_TRY(onx_value_reset(r->values[1], ONX_INT32, 2, one));
    for (uint64_t row = 0; row < r->rows; row++) {
        r->positions[row] += moves;
        ((int32_t *)r->values[0]->data)[row] = r->next[row];
        ((int32_t *)r->values[1]->data)[row] = r->positions[row];
    }
    return onxi_search_hand_past(r, q);
}

static onx_status check_past(onx_work *work, const onxi_search *q, const onxi_search_run *r)
{
    const uint32_t rank = q->kind == ONXI_SEARCH_ALONE ? 5 : 4;
    for (uint32_t i = 1; i <= q->layers; i++) {
        const onx_value *v = r->out[i];
        if (v->kind != ONX_VALUE_TENSOR || v->dtype != q->dtype || v->rank != rank || (rank == 5 && v->dims[0] != 2) ||
            v->dims[rank - 4] != (int64_t)r->rows ||
            (q->extra_count && memcmp(v->dims, r->past[i - 1]->dims, rank * sizeof *v->dims) != 0))
            return onx_work_fail(work, ONX_E_INVALID, "output %u of the decoder is not a past of %llu sequences", i,
                                 (unsigned long long)r->rows);
    }
    return ONX_OK;
}

/* Checks the scores, which are per beam or per sequence, and copies those of the last position of each row to
 * r->scores. */
static onx_status take_scores(onx_work *work, const onxi_search *q, onxi_search_run *r, const onx_value *y,
                              uint64_t rows)
{
    const bool first = r->step == 1;
    if (y->kind != ONX_VALUE_TENSOR || y->rank != 3 || y->dims[0] != (int64_t)rows || y->dims[1] < 1 ||
        y->dims[2] < 1 || y->dims[2] > INT32_MAX || (y->dtype != ONX_FLOAT && y->dtype != ONX_FLOAT16))
        return onx_work_fail(work, ONX_E_INVALID, "the scores of the decoder are not of %llu sequences",
                             (unsigned long long)rows);
    const uint64_t columns = (uint64_t)y->dims[2], places = (uint64_t)y->dims[1];
    if (first) {
        r->vocab = q->vocab ? q->vocab : columns;
        ONX_TRY(token_mask(work, r, q->in.vocab_mask, "vocab_mask", 0, &r->vocab_mask));
        ONX_TRY(token_mask(work, r, q->in.prefix_mask, "prefix_vocab_mask", r->batch, &r->prefix_mask));
        ONX_TRY(token_mask(work, r, q->in.presence, "presence_mask", r->batch, &r->presence));
        r->scores = room(r, r->rows * r->vocab, sizeof *r->scores);
        r->seen = room(r, r->vocab, sizeof *r->seen);
        if (!r->scores || !r->seen)
            return ONX_E_MEMORY;
    }
    if (columns < r->vocab)
        return onx_work_fail(work, ONX_E_INVALID, "the decoder scores %llu tokens, not %llu",
                             (unsigned long long)columns, (unsigned long long)r->vocab);
    for (uint64_t row = 0; row < r->rows; row++)
        onxi_ms_floats(y, (row * rows / r->rows * places + places - 1) * columns, r->vocab, r->scores + row * r->vocab);
    return ONX_OK;
}

/* Appends the chosen tokens to the sequences that they continue. */
static void append(onxi_search_run *r)
{
    for (uint64_t row = 0; row < r->rows; row++) {
        const uint64_t from = r->beams > 1 ? r->from[row] : row;
        int32_t *to = r->tokens[1] + row * r->longest;
        memcpy(to, r->tokens[0] + from * r->longest, (size_t)r->length * sizeof *to);
        to[r->length] = r->next[row];
    }
    int32_t *last = r->tokens[0];
    r->tokens[0] = r->tokens[1];
    r->tokens[1] = last;
    onxi_search_move_products(r);
}

static bool all_done(const onxi_search_run *r)
{
    for (uint64_t i = 0; i < r->batch; i++)
        if (!r->done[i])
            return false;
    return true;
}

/* Chooses tokens by the scores of a step: sets next, from and done. */
typedef onx_status (*choose_fn)(onx_work *work, const onxi_search *q, onxi_search_run *r);

/* Computes the scores of a step by the decoder. The encoder gives those of the first step if it begins to decode. */
static onx_status score(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const bool alone = q->kind == ONXI_SEARCH_ALONE;
    if (!alone && !q->fresh && r->step == 1)
        return take_scores(work, q, r, r->encoded[0], r->batch);
    ONX_TRY(onxi_search_set_extras(q, r, alone && r->step == 1 ? 0 : r->length - 1));
    ONX_TRY(work->ops->graph(work, alone && r->step == 1 ? q->first : q->decoder, r->in, q->decoder_inputs, r->out,
                             1 + q->layers + q->crossed));
    ONX_TRY(check_past(work, q, r));
    ONX_TRY(onxi_search_keep_products(work, q, r));
    return take_scores(work, q, r, r->out[0], r->rows);
}

static onx_status walk(onx_work *work, const onxi_search *q, onxi_search_run *r, choose_fn choose)
{
    const bool alone = q->kind == ONXI_SEARCH_ALONE;
    ONX_TRY(alone ? first_inputs(work, q, r) : onxi_search_encode(work, q, r));
    for (r->step = 1; r->length < r->longest; r->step++) {
        ONX_TRY(score(work, q, r));
        ONX_TRY(choose(work, q, r));
        append(r);
        r->length++;
        if (all_done(r))
            break;
        if (r->length < r->longest)
            ONX_TRY(alone ? next_inputs(q, r, r->step > 1) : onxi_search_encoder_next(q, r));
    }
    return ONX_OK;
}

/* ---- greedy choice and sampling ---- */

static onx_status choose_one(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const onxi_score_loops *loops = onxi_score_loops_best();
    (void)work;
    onxi_search_adjust(q, r);
    for (uint64_t row = 0; row < r->rows; row++) {
        float *scores = r->scores + row * r->vocab;
        uint64_t best = 0;
        if (q->samples)
            ONX_TRY(onxi_search_sample(q, r, scores, &best));
        else
            for (uint64_t i; (i = loops->above(scores, best + 1, r->vocab, scores[best])) < r->vocab;)
                best = i;
        r->done[row] |= (int32_t)best == q->end;
        r->next[row] = r->done[row] ? q->pad : (int32_t)best;
    }
    return ONX_OK;
}

static onx_status greedy_outputs(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    const int64_t dims[] = { (int64_t)r->batch, (int64_t)r->longest },
                  scored[] = { (int64_t)r->batch, (int64_t)r->vocab };
    ONX_TRY(onx_value_reset(work->outputs[0], ONX_INT32, 2, dims));
    int32_t *y = work->outputs[0]->data;
    for (uint64_t row = 0; row < r->rows; row++)
        for (uint64_t i = 0; i < r->longest; i++)
            *y++ = i < r->length ? r->tokens[0][row * r->longest + i] : q->pad;
    if (work->prepared->output_count < 2 || !work->outputs[1])
        return ONX_OK;
    ONX_TRY(onx_value_reset(work->outputs[1], ONX_FLOAT, 2, scored));
    memcpy(work->outputs[1]->data, r->scores, (size_t)(r->rows * r->vocab) * sizeof *r->scores);
    return ONX_OK;
}

/* ---- runs ---- */

typedef onx_status (*outputs_fn)(onx_work *work, const onxi_search *q, onxi_search_run *r);

static onx_status search(onx_work *work, choose_fn choose, outputs_fn outputs)
{
    const onxi_search *q = work->params;
    onxi_search_run r = { 0 };
    ONX_TRY(read_inputs(work, q, &r));
    ONX_TRY(onx_arena_new(work->cx, &r.arena));
    onx_status status = make_values(work, q, &r);
    if (status == ONX_OK && q->beams)
        status = onxi_beam_begin(work, q, &r);
    if (status == ONX_OK)
        status = walk(work, q, &r, choose);
    if (status == ONX_OK)
        status = outputs(work, q, &r);
    if (status == ONX_OK)
        status = onxi_search_give_products(work, q, &r);
    for (uint32_t i = 0; i < r.value_count; i++)
        onx_value_free(r.values[i]);
    onx_arena_free(r.arena);
    return status;
}

static onx_status greedy_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return search(work, choose_one, greedy_outputs);
}

static onx_status beam_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return search(work, onxi_beam_choose, onxi_beam_outputs);
}

#define ROW(name, types, prepare_, run_, more)                                                                         \
    MS_KERNEL(name, .dtypes = types, .dtype_from = IDS, .flags = ONX_KERNEL_SIZES_OUTPUT | (more),                     \
              .prepare = prepare_, .run = run_)
#define TEXT  ONX_DTYPE_BIT(ONX_INT32)
#define SOUND ONX_DTYPE_BIT(ONX_FLOAT)

const onx_kernel onxi_kernels_microsoft_search[] = {
    ROW("GreedySearch", TEXT, greedy_prepare, greedy_run, 0),
    ROW("Sampling", TEXT, sampling_prepare, greedy_run, ONX_KERNEL_RANDOM),
    ROW("BeamSearch", TEXT | SOUND, beam_prepare, beam_run, 0),
    ROW("WhisperBeamSearch", SOUND, whisper_prepare, beam_run, 0),
    { 0 },
};
