/* varlen.c - GatedDeltaNet and VarlenCausalConvWithState: several sequences, packed along one axis of tokens, each with
 * a state that the operator takes and hands on. */
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* Where a sequence begins and ends among the tokens: `borders` has one more element than there are sequences; NULL: all
 * have the same length. Fails if a border is not in order. */
static onx_status range_of(onx_work *work, const onx_value *borders, uint64_t sequence, uint64_t sequences,
                           uint64_t tokens, uint64_t *from, uint64_t *to)
{
    if (!borders) {
        *from = tokens / sequences * sequence;
        *to = *from + tokens / sequences;
        return ONX_OK;
    }
    const int32_t *at = borders->data;
    if (at[0] != 0 || (uint64_t)at[sequences] != tokens || at[sequence] < 0 || at[sequence + 1] < at[sequence] ||
        (uint64_t)at[sequence + 1] > tokens)
        return onx_work_fail(work, ONX_E_INVALID,
                             "sequence %llu has the tokens from %d to %d of %llu, expected borders from 0 to %llu",
                             (unsigned long long)sequence, (int)at[sequence], (int)at[sequence + 1],
                             (unsigned long long)tokens, (unsigned long long)tokens);
    *from = (uint64_t)at[sequence];
    *to = (uint64_t)at[sequence + 1];
    return ONX_OK;
}

/* How many of the first tokens of a sequence are captured. */
static uint64_t captured(const onx_value *counts, uint64_t sequence, uint64_t capacity, uint64_t length)
{
    const int32_t count = counts ? ((const int32_t *)counts->data)[sequence] : 0;
    const uint64_t most = capacity < length ? capacity : length;
    return count < 0 ? 0 : (uint64_t)count < most ? (uint64_t)count : most;
}

static const onx_value *in(const onx_work *work, uint32_t i)
{
    return onxi_operand(work->prepared->input_count, work->inputs, i);
}

static onx_value *out(const onx_work *work, uint32_t i)
{
    return i < work->prepared->output_count ? work->outputs[i] : NULL;
}

/* ---- VarlenCausalConvWithState ---- */

typedef struct conv {
    uint64_t sequences, tokens, channels, taps, kept, dilation, capacity; /* kept: positions of a state */
    bool silu;
    uint64_t row_at;
} conv;

enum { INPUT, WEIGHT, BORDERS, BIAS, STATE, COUNTS, DELTA, MASK };

static onx_status conv_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[INPUT], *w = p->inputs[WEIGHT], *borders = p->inputs[BORDERS],
                    *state = p->inputs[STATE], *bias = onxi_operand(p->input_count, p->inputs, BIAS),
                    *counts = onxi_operand(p->input_count, p->inputs, COUNTS);
    const int64_t dilation = onx_prepare_int(p, "dilation"), capacity = onx_prepare_int(p, "state_update_capacity");
    static const onxi_word words[] = { { "none", 1, 0 }, { "silu", 1, 0 }, { "swish", 1, 0 } };
    const int activation = onxi_prepare_word(p, "activation", words, 3);
    conv *q = ONXI_NEW(p->arena, conv);
    if (!q)
        return ONX_E_MEMORY;
    if (onxi_operand(p->input_count, p->inputs, DELTA) || onxi_operand(p->input_count, p->inputs, MASK))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED,
                                "inputs kernel_delta and previous_mask are given, which are for accelerators only");
    if (activation < 0 || dilation < 1 || dilation > INT32_MAX || capacity < 0 || capacity > 8 ||
        (capacity > 0) != (counts != NULL))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "activation \"%.*s\", dilation %lld and state_update_capacity %lld %s capture_count do "
                                "not fit",
                                ONX_ARG(onx_prepare_text(p, "activation")), (long long)dilation, (long long)capacity,
                                counts ? "with" : "without");
    if (x->rank != 2 || w->rank != 3 || w->dims[0] != x->dims[1] || w->dims[1] != 1 || w->dims[2] < 1 ||
        borders->rank != 1 || borders->dims[0] < 1 || state->rank != 3 || state->dims[0] != borders->dims[0] - 1 ||
        state->dims[1] != x->dims[1] || (bias && bias->count != (uint64_t)x->dims[1]) ||
        (counts && counts->count != (uint64_t)state->dims[0]))
        return onx_prepare_fail(p, ONX_E_INVALID, "the operands do not fit %llu channels and %llu sequences",
                                (unsigned long long)(x->rank == 2 ? x->dims[1] : 0),
                                (unsigned long long)(borders->count ? borders->count - 1 : 0));
    q->tokens = (uint64_t)x->dims[0];
    q->channels = (uint64_t)x->dims[1];
    q->sequences = (uint64_t)state->dims[0];
    q->taps = (uint64_t)w->dims[2];
    q->dilation = (uint64_t)dilation;
    q->capacity = (uint64_t)capacity;
    q->silu = activation > 0;
    q->kept = (uint64_t)state->dims[2];
    uint64_t reach, total = 0;
    if (!onxi_mul_u64(q->taps - 1, q->dilation, &reach) || reach != q->kept)
        return onx_prepare_fail(p, ONX_E_INVALID, "the state has %llu positions, expected %llu",
                                (unsigned long long)q->kept, (unsigned long long)reach);
    if (!onxi_ms_gives(p, 0, q->tokens, q->channels, 1) || !onxi_ms_gives(p, 1, q->sequences, q->channels, q->kept) ||
        !onxi_ms_gives(p, 2, q->sequences, q->capacity, q->channels))
        return onx_prepare_fail(p, ONX_E_INVALID, "the outputs do not have the sizes of the operands");
    if (!onxi_ms_reserve(&total, q->kept, &q->row_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the state is too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = q->sequences * q->channels;
    return ONX_OK;
}

/* A channel of a sequence. `past` holds the samples before it. */
static void convolve(const onx_work *work, const conv *q, uint64_t channel, uint64_t from, uint64_t to,
                     const float *past)
{
    const onx_value *x = work->inputs[INPUT], *w = work->inputs[WEIGHT], *bias = in(work, BIAS);
    for (uint64_t t = from; t < to; t++) {
        float sum = bias ? onxi_ms_float(bias, channel) : 0;
        for (uint64_t j = 0; j < q->taps; j++) {
            const uint64_t back = (q->taps - 1 - j) * q->dilation, at = t - from;
            const float sample =
                back <= at ? onxi_ms_float(x, (t - back) * q->channels + channel) : past[q->kept + at - back];
            sum += onxi_ms_float(w, channel * q->taps + j) * sample;
        }
        if (q->silu)
            sum = sum / (1 + expf(-sum));
        onxi_ms_store(work->outputs[0], t * q->channels + channel, 1, &sum);
    }
}

/* A row of work is a channel of a sequence. */
static onx_status conv_run(onx_work *work, uint64_t first, uint64_t last)
{
    const conv *q = work->params;
    const onx_value *x = work->inputs[INPUT];
    float *past = (float *)(void *)((char *)work->thread_workspace + q->row_at);
    onx_value *update = out(work, 2);
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        const uint64_t sequence = row / q->channels, channel = row % q->channels;
        uint64_t from, to;
        ONX_TRY(range_of(work, work->inputs[BORDERS], sequence, q->sequences, q->tokens, &from, &to));
        if (onxi_pace_stops(&pace, (to - from) * q->taps * 4 + q->kept))
            return ONX_OK;
        const uint64_t length = to - from;
        onxi_ms_floats(work->inputs[STATE], row * q->kept, q->kept, past);
        convolve(work, q, channel, from, to, past);
        for (uint64_t i = 0; i < q->kept; i++) { /* the last samples, with those of the past before them */
            const float sample = length + i >= q->kept
                                     ? onxi_ms_float(x, (from + length + i - q->kept) * q->channels + channel)
                                     : past[length + i];
            onxi_ms_store(work->outputs[1], row * q->kept + i, 1, &sample);
        }
        const uint64_t count = captured(in(work, COUNTS), sequence, q->capacity, length);
        for (uint64_t i = 0; update && i < q->capacity; i++) {
            const float sample = i < count ? onxi_ms_float(x, (from + i) * q->channels + channel) : 0;
            onxi_ms_store(update, (sequence * q->capacity + i) * q->channels + channel, 1, &sample);
        }
    }
    return ONX_OK;
}

/* ---- GatedDeltaNet ---- */

typedef struct delta_net {
    uint64_t sequences, tokens, heads, value_heads, key, value, capacity;
    uint64_t captured;                                  /* numbers of a token that replay it */
    uint32_t lead;                                      /* axes of tokens */
    bool packed, decays, corrects, normalizes, per_key; /* per_key: a decay for each element of a key */
    enum { AS_GIVEN, SOFTPLUS, SIGMOID } gate;
    bool beta_sigmoid, bias_per_key;
    float scale, bound;
    uint64_t query_at, key_at, value_at, decay_at, state_at;
} delta_net;

enum { QUERY, KEY, VALUE, CU_SEQLENS, DECAY, BETA, INITIAL, A_LOG, DT_BIAS, CAPTURE, ACTIVE };

static const onx_value *operand(const onx_prepare *p, uint32_t i)
{
    return onxi_operand(p->input_count, p->inputs, i);
}

static bool has_count(const onx_value *v, uint64_t count)
{
    return !v || v->count == count;
}

static onx_status delta_sizes(const onx_prepare *p, delta_net *q)
{
    const onx_value *x = p->inputs[QUERY], *v = operand(p, VALUE), *state = operand(p, INITIAL),
                    *borders = operand(p, CU_SEQLENS), *k = operand(p, KEY);
    q->packed = !k;
    if (!k != !v || (!state && (q->packed || !borders)) || (state && state->rank != 4) ||
        (borders && (borders->rank != 1 || borders->dims[0] < 1)))
        return onx_prepare_fail(p, ONX_E_INVALID, "key and value, or initial_state and cu_seqlens, are incomplete");
    const uint32_t own = q->packed ? 1 : 2, lead = x->rank - own;
    if (x->rank <= own || lead > 2 || (borders && lead > 1))
        return onx_prepare_fail(p, ONX_E_INVALID, "the query has rank %u", x->rank);
    q->lead = lead;
    q->tokens = onxi_product(x->dims, 0, lead);
    q->sequences = state ? (uint64_t)state->dims[0] : borders->count - 1;
    q->value_heads = state ? (uint64_t)state->dims[1] : (uint64_t)v->dims[v->rank - 2];
    q->value = state ? (uint64_t)state->dims[2] : (uint64_t)v->dims[v->rank - 1];
    q->key = state ? (uint64_t)state->dims[3] : (uint64_t)x->dims[x->rank - 1];
    const uint64_t width = (uint64_t)x->dims[x->rank - 1], values = q->value_heads * q->value;
    q->heads = !q->packed                 ? (uint64_t)x->dims[x->rank - 2]
               : q->key && width > values ? (width - values) / 2 / q->key
                                          : 0;
    const bool fits = q->packed ? width == 2 * q->heads * q->key + values
                                : width == q->key && k->count == x->count && v->count == q->tokens * values;
    if (!fits || !q->heads || !q->value_heads || q->value_heads % q->heads ||
        (borders && borders->count != q->sequences + 1) || (lead == 2 && (uint64_t)x->dims[0] != q->sequences) ||
        (!borders && (q->sequences ? q->tokens % q->sequences : q->tokens)))
        return onx_prepare_fail(
            p, ONX_E_INVALID,
            "queries, keys, values, states and borders do not fit %llu sequences of %llu and %llu heads",
            (unsigned long long)q->sequences, (unsigned long long)q->heads, (unsigned long long)q->value_heads);
    return ONX_OK;
}

static onx_status delta_words(const onx_prepare *p, delta_net *q)
{
    static const onxi_word
        rules[] = { { "linear", 1, 0 }, { "gated", 1, 0 }, { "delta", 1, 0 }, { "gated_delta", 1, 0 } },
        gates[] = { { "none", 1, 0 }, { "softplus", 1, 0 }, { "qwen", 1, 0 }, { "sigmoid", 1, 0 }, { "kda", 1, 0 } },
        betas[] = { { "none", 1, 0 }, { "sigmoid", 1, 0 } };
    const int rule = onxi_prepare_word(p, "update_rule", rules, 4),
              gate = onxi_prepare_word(p, "gate_activation", gates, 5),
              beta = onxi_prepare_word(p, "beta_activation", betas, 2);
    const int64_t capacity = onx_prepare_int(p, "state_update_capacity");
    if (rule < 0 || gate < 0 || beta < 0 || capacity < 0 || capacity > 8)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "update_rule, gate_activation, beta_activation or state_update_capacity is not valid");
    q->decays = rule == 1 || rule == 3;
    q->corrects = rule >= 2;
    q->gate = gate == 0 ? AS_GIVEN : gate < 3 ? SOFTPLUS : SIGMOID;
    q->beta_sigmoid = beta == 1;
    q->capacity = (uint64_t)capacity;
    q->normalizes = onx_prepare_is_set(p, "qk_l2_norm");
    q->bound = onx_prepare_float(p, "gate_lower_bound");
    q->scale = onx_prepare_float(p, "scale");
    if (q->scale == 0)
        q->scale = 1 / sqrtf((float)q->key);
    return ONX_OK;
}

/* Numbers that replay a step: decays, the key, and what is added along it. False: too many. */
static bool count_captured(const delta_net *q, uint64_t *out)
{
    uint64_t decays, keys, values;
    return onxi_mul_u64(q->value_heads, q->per_key ? q->key : 1, &decays) && onxi_mul_u64(q->heads, q->key, &keys) &&
           onxi_mul_u64(q->value_heads, q->value, &values) && onxi_add_u64(decays, keys, out) &&
           onxi_add_u64(*out, values, out);
}

static onx_status delta_prepare(onx_prepare *p)
{
    const onx_value *decay = operand(p, DECAY), *beta = operand(p, BETA), *a_log = operand(p, A_LOG),
                    *bias = operand(p, DT_BIAS), *counts = operand(p, CAPTURE), *active = operand(p, ACTIVE);
    delta_net *q = ONXI_NEW(p->arena, delta_net);
    uint64_t total = 0, state;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(delta_sizes(p, q));
    ONX_TRY(delta_words(p, q));
    uint64_t per_head, per_key;
    if (!onxi_mul_u64(q->tokens, q->value_heads, &per_head) || !onxi_mul_u64(per_head, q->key, &per_key))
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many tokens and heads");
    q->per_key = decay && decay->rank == q->lead + 2;
    q->bias_per_key = bias && bias->count == q->value_heads * q->key && q->key != 1;
    if ((q->decays && !decay) || (q->corrects && !beta) || !has_count(decay, q->per_key ? per_key : per_head) ||
        !has_count(beta, per_head) || !has_count(a_log, q->value_heads) ||
        (!q->bias_per_key && !has_count(bias, q->value_heads)) || !has_count(counts, q->sequences) ||
        !has_count(active, 1) || (q->decays && q->gate != AS_GIVEN && (!a_log || !bias)) ||
        (q->bias_per_key && !q->per_key) || (q->capacity > 0) != (counts != NULL))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "decay, beta, a_log, dt_bias or capture_count is missing, or does not fit");
    if (!onxi_mul_u64(q->key, q->value, &state) || !count_captured(q, &q->captured))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the state is too large");
    if (!onxi_ms_gives(p, 0, per_head, q->value, 1) || !onxi_ms_gives(p, 1, q->sequences, q->value_heads, state) ||
        !onxi_ms_gives(p, 2, q->sequences, q->capacity, q->captured) ||
        !onxi_mul_u64(q->sequences, q->value_heads, &p->rows))
        return onx_prepare_fail(p, ONX_E_INVALID, "the outputs do not have the sizes of the operands");
    if (!onxi_ms_reserve(&total, q->key, &q->query_at) || !onxi_ms_reserve(&total, q->key, &q->key_at) ||
        !onxi_ms_reserve(&total, q->value, &q->value_at) || !onxi_ms_reserve(&total, q->key, &q->decay_at) ||
        !onxi_ms_reserve(&total, state, &q->state_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the state is too large");
    p->thread_workspace = total;
    p->params = q;
    return ONX_OK;
}

/* A query (`which` 0) or key (1) of a token and head, normalized if the operator does that. */
static void take_vector(const onx_work *work, const delta_net *q, uint32_t which, uint64_t token, uint64_t head,
                        float *into)
{
    const uint64_t width = 2 * q->heads * q->key + q->value_heads * q->value,
                   at = q->packed ? token * width + (which * q->heads + head) * q->key
                                  : (token * q->heads + head) * q->key;
    onxi_ms_floats(work->inputs[q->packed ? QUERY : which], at, q->key, into);
    const float by = q->normalizes ? 1 / sqrtf(onxi_ms_dot(into, into, q->key) + 1e-6f) : 1;
    for (uint64_t i = 0; q->normalizes && i < q->key; i++)
        into[i] *= by;
}

static void take_value(const onx_work *work, const delta_net *q, uint64_t token, uint64_t head, float *into)
{
    const uint64_t width = 2 * q->heads * q->key + q->value_heads * q->value;
    onxi_ms_floats(work->inputs[q->packed ? QUERY : VALUE],
                   q->packed ? token * width + 2 * q->heads * q->key + head * q->value
                             : (token * q->value_heads + head) * q->value,
                   q->value, into);
}

/* The factors of the state's rows: exp of the decay. */
static void take_decay(const onx_work *work, const delta_net *q, uint64_t token, uint64_t head, float *into)
{
    const onx_value *decay = in(work, DECAY), *a_log = in(work, A_LOG), *bias = in(work, DT_BIAS);
    for (uint64_t i = 0; i < (q->per_key ? q->key : 1); i++) {
        const uint64_t at = token * q->value_heads + head;
        float g = q->decays ? onxi_ms_float(decay, q->per_key ? at * q->key + i : at) : 0;
        if (q->decays && q->gate != AS_GIVEN) {
            const float a = expf(onxi_ms_float(a_log, head));
            g += onxi_ms_float(bias, q->bias_per_key ? head * q->key + i : head);
            g = q->gate == SOFTPLUS ? -a * (g > 20 ? g : log1pf(expf(g))) : q->bound / (1 + expf(-a * g));
        }
        into[i] = q->decays ? expf(g) : 1;
    }
    for (uint64_t i = 1; !q->per_key && i < q->key; i++)
        into[i] = into[0];
}

/* Keeps what replays a step: decays, the key and what is added along it. */
static void capture(const onx_work *work, const delta_net *q, uint64_t sequence, uint64_t head, uint64_t step,
                    const float *decay, const float *key, const float *delta)
{
    onx_value *update = out(work, 2);
    const uint64_t each = q->per_key ? q->key : 1, decays = q->value_heads * each, keys = q->heads * q->key,
                   values = q->value_heads * q->value, group = q->value_heads / q->heads,
                   from = sequence * q->capacity * q->captured;
    onxi_ms_store(update, from + step * decays + head * each, each, decay);
    if (head % group == 0)
        onxi_ms_store(update, from + q->capacity * decays + step * keys + head / group * q->key, q->key, key);
    onxi_ms_store(update, from + q->capacity * (decays + keys) + step * values + head * q->value, q->value, delta);
}

/* Zeros where nothing is captured. */
static void clear_captures(const onx_work *work, const delta_net *q, uint64_t sequence, uint64_t head, uint64_t from)
{
    char *memory = work->thread_workspace;
    float *delta = (float *)(void *)(memory + q->value_at), *key = (float *)(void *)(memory + q->key_at),
          *decay = (float *)(void *)(memory + q->decay_at);
    memset(delta, 0, q->value * sizeof *delta);
    memset(key, 0, q->key * sizeof *key);
    memset(decay, 0, q->key * sizeof *decay);
    for (uint64_t i = from; i < q->capacity; i++)
        capture(work, q, sequence, head, i, decay, key, delta);
}

/* One token: the state's row of each element of the value decays, takes what it lacks, and answers the query. */
static void step(const onx_work *work, const delta_net *q, float *state, uint64_t token, uint64_t head, float *delta)
{
    char *memory = work->thread_workspace;
    float *query = (float *)(void *)(memory + q->query_at), *key = (float *)(void *)(memory + q->key_at),
          *decay = (float *)(void *)(memory + q->decay_at);
    const uint64_t group = q->value_heads / q->heads;
    const onx_value *rates = in(work, BETA);
    take_vector(work, q, 0, token, head / group, query);
    take_vector(work, q, 1, token, head / group, key);
    take_value(work, q, token, head, delta);
    take_decay(work, q, token, head, decay);
    float rate = q->corrects ? onxi_ms_float(rates, token * q->value_heads + head) : 1;
    if (q->corrects && q->beta_sigmoid)
        rate = 1 / (1 + expf(-rate));
    for (uint64_t v = 0; v < q->value; v++) {
        float *row = state + v * q->key;
        for (uint64_t i = 0; q->decays && i < q->key; i++)
            row[i] *= decay[i];
        if (q->corrects)
            delta[v] = rate * (delta[v] - onxi_ms_dot(row, key, q->key));
        for (uint64_t i = 0; i < q->key; i++)
            row[i] += key[i] * delta[v];
        const float y = q->scale * onxi_ms_dot(row, query, q->key);
        onxi_ms_store(work->outputs[0], (token * q->value_heads + head) * q->value + v, 1, &y);
    }
}

/* A row of work is a head of values of a sequence. */
static onx_status delta_run(onx_work *work, uint64_t first, uint64_t last)
{
    const delta_net *q = work->params;
    char *memory = work->thread_workspace;
    float *state = (float *)(void *)(memory + q->state_at), *delta = (float *)(void *)(memory + q->value_at);
    const uint64_t size = q->key * q->value;
    const onx_value *initial = in(work, INITIAL), *active = in(work, ACTIVE);
    const bool captures = out(work, 2) && !(active && ((const int32_t *)active->data)[0] == 0);
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        const uint64_t sequence = row / q->value_heads, head = row % q->value_heads;
        uint64_t from, to;
        ONX_TRY(range_of(work, in(work, CU_SEQLENS), sequence, q->sequences, q->tokens, &from, &to));
        const uint64_t kept = captures ? captured(in(work, CAPTURE), sequence, q->capacity, to - from) : 0;
        if (initial)
            onxi_ms_floats(initial, row * size, size, state);
        else
            memset(state, 0, size * sizeof *state);
        for (uint64_t t = from; t < to && !onxi_pace_stops(&pace, size * 4 + 64); t++) {
            step(work, q, state, t, head, delta);
            if (t - from < kept)
                capture(work, q, sequence, head, t - from, (float *)(void *)(memory + q->decay_at),
                        (float *)(void *)(memory + q->key_at), delta);
        }
        if (out(work, 1))
            onxi_ms_store(out(work, 1), row * size, size, state);
        if (out(work, 2) && kept < q->capacity)
            clear_captures(work, q, sequence, head, kept);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_varlen[] = {
    MS_KERNEL("VarlenCausalConvWithState", .prepare = conv_prepare, .run = conv_run),
    MS_KERNEL("GatedDeltaNet", .prepare = delta_prepare, .run = delta_run),
    { 0 },
};
