/* linear_attention.c - LinearAttention and CausalConvWithState: operators that carry a state along a sequence. The
 * final state is an output, with which the next part of the sequence begins. */
#include "kernel/core/linear.h"
#include "kernel/core/loops.h"

#include <math.h>

/* Converts `count` elements from `first` on to float. */
static void floats_of(const onx_value *v, uint64_t first, uint64_t count, float *out)
{
    if (v->dtype == ONX_FLOAT) {
        memcpy(out, (const float *)v->data + first, (size_t)count * sizeof *out);
        return;
    }
    onx_convert(ONX_FLOAT, out, (onx_dtype)v->dtype, (const char *)v->data + first * onxi_element_size(v->dtype), count,
                true);
}
static void give_floats(onx_value *v, uint64_t first, uint64_t count, const float *in)
{
    onx_convert((onx_dtype)v->dtype, (char *)v->data + first * onxi_element_size(v->dtype), ONX_FLOAT, in, count, true);
}

/* ---- LinearAttention ---- */

enum { IN_Q, IN_K, IN_V, IN_PAST, IN_DECAY, IN_BETA };

typedef struct linear_params {
    uint64_t batch, length, q_heads, kv_heads, group, key, value; /* key, value: elements per head */
    /* Elements per head and step (decay), per step (beta). */
    uint64_t decay_width, beta_width;
    float scale;
} linear_params;

static onx_status linear_packed(const onx_prepare *p, uint32_t input, const linear_params *q)
{
    const onx_value *v = onxi_operand(p->input_count, p->inputs, input);
    bool fits = !v || (v->kind == ONX_VALUE_TENSOR && v->rank == 3 && (ONXI_FLOATS & ONX_DTYPE_BIT(v->dtype)) &&
                       (uint64_t)v->dims[0] == q->batch && (uint64_t)v->dims[1] == q->length);
    return fits ? ONX_OK : onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the query", input);
}

static onx_status linear_widths(const onx_prepare *p, linear_params *q)
{
    const onx_value *query = p->inputs[IN_Q], *value = p->inputs[IN_V],
                    *past = onxi_operand(p->input_count, p->inputs, IN_PAST);
    const onx_value *decay = onxi_operand(p->input_count, p->inputs, IN_DECAY),
                    *beta = onxi_operand(p->input_count, p->inputs, IN_BETA);
    uint64_t width = (uint64_t)query->dims[2], v_width = (uint64_t)value->dims[2];
    q->key = width / q->q_heads;
    q->value = v_width / q->kv_heads;
    bool fits = q->key * q->q_heads == width && q->value * q->kv_heads == v_width &&
                (uint64_t)p->inputs[IN_K]->dims[2] == q->kv_heads * q->key;
    if (decay && fits) {
        q->decay_width = (uint64_t)decay->dims[2] == q->kv_heads ? 1 : q->key;
        fits = (uint64_t)decay->dims[2] == q->kv_heads * q->decay_width;
    }
    if (beta && fits) {
        q->beta_width = (uint64_t)beta->dims[2];
        fits = q->beta_width == 1 || q->beta_width == q->kv_heads;
    }
    if (past && fits)
        fits = past->rank == 4 && (ONXI_FLOATS & ONX_DTYPE_BIT(past->dtype)) && (uint64_t)past->dims[0] == q->batch &&
               (uint64_t)past->dims[1] == q->kv_heads && (uint64_t)past->dims[2] == q->key &&
               (uint64_t)past->dims[3] == q->value;
    return fits ? ONX_OK
                : onx_prepare_fail(p, ONX_E_INVALID, "the inputs are not as wide as %llu query and %llu key heads ask",
                                   (unsigned long long)q->q_heads, (unsigned long long)q->kv_heads);
}

static onx_status linear_prepare(onx_prepare *p)
{
    linear_params *q = ONXI_NEW(p->arena, linear_params);
    const onx_value *query = p->inputs[IN_Q];
    int64_t q_heads = onx_prepare_int(p, "q_num_heads"), kv_heads = onx_prepare_int(p, "kv_num_heads");
    if (!q)
        return ONX_E_MEMORY;
    if (query->rank != 3 || q_heads < 1 || kv_heads < 1 || q_heads % kv_heads)
        return onx_prepare_fail(p, ONX_E_INVALID, "a query of rank %u does not have %lld heads for %lld of the key",
                                query->rank, (long long)q_heads, (long long)kv_heads);
    q->batch = (uint64_t)query->dims[0];
    q->length = (uint64_t)query->dims[1];
    q->q_heads = (uint64_t)q_heads;
    q->kv_heads = (uint64_t)kv_heads;
    q->group = q->q_heads / q->kv_heads;
    for (uint32_t i = 0; i < p->input_count; i++)
        if (i != IN_PAST)
            ONX_TRY(linear_packed(p, i, q));
    ONX_TRY(linear_widths(p, q));
    q->scale = onx_prepare_float(p, "scale");
    if (q->scale == 0)
        q->scale = q->key ? 1 / sqrtf((float)q->key) : 1;
    uint64_t floats;
    if (!onxi_mul_u64(q->key, q->value, &floats) || floats > UINT64_MAX / 64 || q->key > UINT64_MAX / 64 ||
        q->value > UINT64_MAX / 64)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the state is too large");
    p->params = q;
    p->rows = q->batch * q->kv_heads;
    p->thread_workspace =
        /* In this order: state, key, decay, query, value, result. */
        (floats + 3 * q->key + 2 * q->value) * sizeof(float);
    return ONX_OK;
}

static void forget(float *state, uint64_t rows, uint64_t columns, const float *keep, const float *key, float *out)
{
    for (uint64_t j = 0; key && j < columns; j++)
        out[j] = 0;
    for (uint64_t i = 0; i < rows; i++, state += columns) {
        for (uint64_t j = 0; keep && j < columns; j++)
            state[j] *= keep[i];
        for (uint64_t j = 0; key && j < columns; j++)
            out[j] += key[i] * state[j];
    }
}

static void learn(float *state, uint64_t rows, uint64_t columns, const float *key, const float *value,
                  const float *query, float *out)
{
    for (uint64_t j = 0; query && j < columns; j++)
        out[j] = 0;
    for (uint64_t i = 0; i < rows; i++, state += columns) {
        for (uint64_t j = 0; j < columns; j++)
            state[j] += key[i] * value[j];
        for (uint64_t j = 0; query && j < columns; j++)
            out[j] += query[i] * state[j];
    }
}

static const onxi_linear_loops plain = { forget, learn };

/* One step of one key head; `at` counts steps over the batch. The state [key, value] is multiplied with exp(decay),
 * which is given per head or per element of the key. */
static void linear_step(onx_work *work, uint64_t at, uint64_t head, float *state)
{
    const linear_params *q = work->params;
    const onxi_linear_loops *loops = work->prepared->kernel->body;
    const onx_value *const *in = work->inputs;
    const onx_value *decay = onxi_operand(work->prepared->input_count, in, IN_DECAY),
                    *beta = onxi_operand(work->prepared->input_count, in, IN_BETA);
    float *key = state + q->key * q->value, *keep = key + q->key, *query = keep + q->key, *value = query + q->key,
          *out = value + q->value;
    const bool forgets = decay && q->decay_width, asks = q->group && work->outputs[0];
    floats_of(in[IN_K], (at * q->kv_heads + head) * q->key, q->key, key);
    floats_of(in[IN_V], (at * q->kv_heads + head) * q->value, q->value, value);
    if (forgets)
        floats_of(decay, (at * q->kv_heads + head) * q->decay_width, q->decay_width, keep);
    for (uint64_t i = 0; forgets && i < q->key; i++)
        keep[i] = i < q->decay_width ? expf(keep[i]) : keep[0];
    if (forgets || beta)
        loops->forget(state, q->key, q->value, forgets ? keep : NULL, beta ? key : NULL, out);
    if (beta) { /* learn only the difference from what the state already gives */
        float weight;
        floats_of(beta, at * q->beta_width + (q->beta_width == 1 ? 0 : head), 1, &weight);
        for (uint64_t j = 0; j < q->value; j++)
            value[j] = weight * (value[j] - out[j]);
    }
    uint64_t row = at * q->q_heads + head * q->group;
    if (asks)
        floats_of(in[IN_Q], row * q->key, q->key, query);
    loops->learn(state, q->key, q->value, key, value, asks ? query : NULL, out);
    for (uint64_t g = 0; asks && g < q->group; g++, row++) {
        if (g) {
            floats_of(in[IN_Q], row * q->key, q->key, query);
            loops->forget(state, q->key, q->value, NULL, query, out);
        }
        for (uint64_t j = 0; j < q->value; j++)
            out[j] *= q->scale;
        give_floats(work->outputs[0], row * q->value, q->value, out);
    }
}

static onx_status linear_run(onx_work *work, uint64_t first, uint64_t last)
{
    const linear_params *q = work->params;
    const onx_value *past = onxi_operand(work->prepared->input_count, work->inputs, IN_PAST);
    onx_value *present = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    float *state = work->thread_workspace;
    uint64_t size = q->key * q->value;
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; size && row < last; row++) {
        uint64_t batch = row / q->kv_heads, head = row % q->kv_heads;
        if (past)
            floats_of(past, row * size, size, state);
        else
            memset(state, 0, size * sizeof *state);
        for (uint64_t t = 0; t < q->length && !onxi_pace_stops(&pace, size); t++)
            linear_step(work, batch * q->length + t, head, state);
        if (present)
            give_floats(present, row * size, size, state);
    }
    if (!size && work->outputs[0] && work->outputs[0]->count && !first) /* keys have no elements, so results are zero */
        memset(work->outputs[0]->data, 0, work->outputs[0]->size);
    return ONX_OK;
}

/* ---- CausalConvWithState ---- */

enum { IN_X, IN_W, IN_BIAS, IN_STATE };

typedef struct causal_params {
    uint64_t channels, length, kernel;
    bool silu;
} causal_params;

static onx_status causal_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[IN_X], *w = p->inputs[IN_W];
    const onx_value *bias = onxi_operand(p->input_count, p->inputs, IN_BIAS),
                    *past = onxi_operand(p->input_count, p->inputs, IN_STATE);
    causal_params *q = ONXI_NEW(p->arena, causal_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank != 3 || w->rank != 3 || w->dims[0] != x->dims[1] || w->dims[1] != 1 || w->dims[2] < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the kernel is not [channels, 1, size]");
    q->channels = (uint64_t)x->dims[1];
    q->length = (uint64_t)x->dims[2];
    q->kernel = (uint64_t)w->dims[2];
    bool fits = w->dtype == x->dtype &&
                (!bias || (bias->dtype == x->dtype && bias->rank == 1 && bias->count == q->channels)) &&
                (!past || (past->dtype == x->dtype && past->rank == 3 && past->dims[0] == x->dims[0] &&
                           past->dims[1] == x->dims[1] && (uint64_t)past->dims[2] == q->kernel - 1));
    if (!fits)
        return onx_prepare_fail(p, ONX_E_INVALID, "bias or state do not fit %llu channels and a kernel of %llu",
                                (unsigned long long)q->channels, (unsigned long long)q->kernel);
    onx_str activation = onx_prepare_text(p, "activation");
    q->silu = onx_str_is(activation, "silu") || onx_str_is(activation, "swish");
    if (!q->silu && !onx_str_is(activation, "none"))
        return onx_prepare_fail(p, ONX_E_INVALID, "activation is \"%.*s\"", ONX_ARG(activation));
    if (q->kernel > UINT64_MAX / 64 || q->length > UINT64_MAX / 64)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the sequence is too long");
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * q->channels;
    p->grain = ONXI_BLOCK / (q->length + q->kernel) + 1;
    /* In this order: kernel, padded sequence, result. */
    p->thread_workspace = (2 * q->kernel + 2 * q->length) * sizeof(float);
    return ONX_OK;
}

static onx_status causal_run(onx_work *work, uint64_t first, uint64_t last)
{
    const causal_params *q = work->params;
    const onx_value *const *in = work->inputs;
    const onx_value *bias = onxi_operand(work->prepared->input_count, in, IN_BIAS),
                    *past = onxi_operand(work->prepared->input_count, in, IN_STATE);
    onx_value *present = work->prepared->output_count > 1 ? work->outputs[1] : NULL;
    uint64_t before = q->kernel - 1;
    float *kernel = work->thread_workspace, *line = kernel + q->kernel, *out = line + before + q->length;
    for (uint64_t row = first; row < last; row++) {
        float start = 0;
        floats_of(in[IN_W], row % q->channels * q->kernel, q->kernel, kernel);
        if (bias)
            floats_of(bias, row % q->channels, 1, &start);
        memset(line, 0, before * sizeof *line);
        if (past)
            floats_of(past, row * before, before, line);
        floats_of(in[IN_X], row * q->length, q->length, line + before);
        for (uint64_t i = 0; i < q->length; i++)
            out[i] = start;
        for (uint64_t k = 0; k < q->kernel; k++)
            for (uint64_t i = 0; i < q->length; i++)
                out[i] += kernel[k] * line[i + k];
        for (uint64_t i = 0; q->silu && i < q->length; i++)
            out[i] /= 1 + expf(-out[i]);
        if (work->outputs[0])
            give_floats(work->outputs[0], row * q->length, q->length, out);
        if (present)
            give_floats(present, row * before, before, line + q->length);
    }
    return ONX_OK;
}

#define TYPES (ONXI_F32 | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))

#define LINEAR(...)                                                                                                    \
    {                                                                                                                  \
        .op = "LinearAttention", .since = 27, .dtypes = TYPES, .prepare = linear_prepare, .run = linear_run,           \
        __VA_ARGS__                                                                                                    \
    }

const onx_kernel onxi_kernels_linear_attention[] = {
#ifdef ONX_WITH_X86_LEVELS
    LINEAR(.preference = 1, .isa = ONX_ISA_V4, .variant = "avx512", .body = &onxi_linear_loops_v4),
    LINEAR(.preference = 1, .isa = ONX_ISA_V3, .variant = "avx2", .body = &onxi_linear_loops_v3),
#endif
#if ONXI_PLATFORM_ROOMY
    LINEAR(.preference = 1, .isa = ONX_ISA_BASE, .variant = "simd", .body = &onxi_linear_loops_base),
#endif
    LINEAR(.body = &plain),
    { .op = "CausalConvWithState", .since = 27, .dtypes = TYPES, .prepare = causal_prepare, .run = causal_run },
    { 0 },
};
