/* lstm.c - layers of long short-term memory whose products are not those of the standard: DynamicQuantizeLSTM, where
 * the input and each state are quantized by their own range, and AttnLSTM, where each step also takes in what the state
 * before it attended to. A direction is a row of the work. */
#include "kernel/core/rnn.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

enum {
    X,
    W,
    R,
    B,
    LENS,
    H,
    C,
    P,
    W_SCALE = 8,
    W_ZERO,
    R_SCALE,
    R_ZERO, /* quantized */
    QUERY = 8,
    MEMORY_LAYER,
    V,
    MEMORY,
    MEMORY_LENS,
    ATTENTION_LAYER, /* with attention */
    GATES = 4,
    EXACT = 32768 /* sums of this number of products fit 32 bits */
};

typedef struct lstm_params {
    uint64_t directions, steps, batch, inputs, hidden;
    bool backward[2], couple, quantized, has_layer;
    double clip;
    onxi_activation act[2][3];
    uint64_t memory_steps, memory_depth, depth, attention; /* depth: of keys; attention: of what is taken in */
    /* bytes into the memory of a thread */
    uint64_t gates, recurrent, bias, h, c, whole, sums, keys, query, shares, context, taken;
} lstm_params;

/* ---- preparing ---- */

static const onx_value *operand_of(const onx_prepare *p, uint32_t i)
{
    return onxi_operand(p->input_count, p->inputs, i);
}

/* Checks an operand, where there is one, against sizes; UINT64_MAX: any. */
static onx_status want(const onx_prepare *p, uint32_t i, uint32_t rank, uint64_t a, uint64_t b, uint64_t c)
{
    const onx_value *v = operand_of(p, i);
    const uint64_t sizes[] = { a, b, c };
    bool fits = !v || (v->kind == ONX_VALUE_TENSOR && v->rank == rank);
    for (uint32_t d = 0; v && fits && d < rank; d++)
        fits = sizes[d] == UINT64_MAX || (uint64_t)v->dims[d] == sizes[d];
    return fits ? ONX_OK : onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the others", i);
}

static onx_status read_attributes(onx_prepare *p, lstm_params *q)
{
    const onx_str direction = onx_prepare_text(p, "direction");
    const bool both = onx_str_is(direction, "bidirectional");
    q->backward[0] = onx_str_is(direction, "reverse");
    q->backward[1] = true;
    if (!both && !q->backward[0] && !onx_str_is(direction, "forward"))
        return onx_prepare_fail(p, ONX_E_INVALID, "direction is \"%.*s\"", ONX_ARG(direction));
    q->directions = both ? 2 : 1;
    q->couple = onx_prepare_is_set(p, "input_forget");
    q->clip = onx_prepare_given(p, "clip") ? (double)onx_prepare_float(p, "clip") : (double)INFINITY;
    if (!(q->clip >= 0))
        return onx_prepare_fail(p, ONX_E_INVALID, "clip is %g", q->clip);
    return onxi_rnn_activations(p, &onxi_rnn_cells[2], (uint32_t)q->directions, q->act);
}

static onx_status check_common(onx_prepare *p, lstm_params *q)
{
    const onx_value *x = operand_of(p, X), *r = operand_of(p, R);
    if (!x || !r || !operand_of(p, W) || x->rank != 3 || r->rank != 3)
        return onx_prepare_fail(p, ONX_E_INVALID, "X, W or R is no tensor of rank 3");
    q->steps = (uint64_t)x->dims[0];
    q->batch = (uint64_t)x->dims[1];
    q->inputs = (uint64_t)x->dims[2];
    q->hidden = (uint64_t)r->dims[q->quantized ? 1 : 2];
    const int64_t named = onx_prepare_given(p, "hidden_size") ? onx_prepare_int(p, "hidden_size") : (int64_t)q->hidden;
    if (q->hidden > INT32_MAX / 8 || q->inputs > INT32_MAX || named != (int64_t)q->hidden)
        return onx_prepare_fail(p, ONX_E_INVALID, "hidden_size is %lld, R is for %llu", (long long)named,
                                (unsigned long long)q->hidden);
    const uint64_t d = q->directions, g = GATES * q->hidden;
    ONX_TRY(q->quantized ? want(p, R, 3, d, q->hidden, g) : want(p, R, 3, d, g, q->hidden));
    ONX_TRY(want(p, B, 2, d, 2 * g, 0));
    ONX_TRY(want(p, LENS, 1, q->batch, 0, 0));
    ONX_TRY(want(p, H, 3, d, q->batch, q->hidden));
    ONX_TRY(want(p, C, 3, d, q->batch, q->hidden));
    return want(p, P, 2, d, 3 * q->hidden, 0);
}

/* Scale and zero point of weights: one for each direction, or one for each column of it. */
static onx_status check_quantized(onx_prepare *p, const lstm_params *q)
{
    const uint64_t g = GATES * q->hidden;
    ONX_TRY(want(p, W, 3, q->directions, q->inputs, g));
    for (uint32_t i = W_SCALE; i <= R_ZERO; i++) {
        const onx_value *v = operand_of(p, i), *w = operand_of(p, i < R_SCALE ? W : R);
        if (!v || v->kind != ONX_VALUE_TENSOR || v->rank < 1 || v->rank > 2 || v->dims[0] != (int64_t)q->directions ||
            (v->rank == 2 && v->dims[1] != (int64_t)g) || (i % 2 && v->dtype != w->dtype))
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the weights", i);
    }
    return ONX_OK;
}

static onx_status check_attention(onx_prepare *p, lstm_params *q)
{
    for (uint32_t i = QUERY; i <= MEMORY; i++)
        if (!operand_of(p, i))
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u is missing", i);
    const onx_value *layer = operand_of(p, MEMORY_LAYER), *memory = operand_of(p, MEMORY),
                    *taken = operand_of(p, ATTENTION_LAYER);
    if (layer->rank != 3 || memory->rank != 3 || (taken && taken->rank != 3))
        return onx_prepare_fail(p, ONX_E_INVALID, "the memory or a weight of the attention is not of rank 3");
    q->memory_steps = (uint64_t)memory->dims[1];
    q->memory_depth = (uint64_t)layer->dims[1];
    q->depth = (uint64_t)layer->dims[2];
    q->has_layer = taken != NULL;
    q->attention = taken ? (uint64_t)taken->dims[2] : q->memory_depth;
    const uint64_t d = q->directions, both = q->memory_depth + q->hidden;
    if (q->memory_depth > INT32_MAX || q->attention > INT32_MAX || !q->memory_steps)
        return onx_prepare_fail(p, ONX_E_INVALID, "the memory has %llu steps", (unsigned long long)q->memory_steps);
    ONX_TRY(want(p, W, 3, d, GATES * q->hidden, q->inputs + q->attention));
    ONX_TRY(want(p, QUERY, 3, d, q->hidden, q->depth));
    ONX_TRY(want(p, MEMORY_LAYER, 3, d, UINT64_MAX, UINT64_MAX));
    ONX_TRY(want(p, V, 2, d, q->depth, 0));
    ONX_TRY(want(p, MEMORY, 3, q->batch, q->memory_steps, q->memory_depth));
    ONX_TRY(want(p, MEMORY_LENS, 1, q->batch, 0, 0));
    return want(p, ATTENTION_LAYER, 3, d, both, q->attention);
}

static bool times(uint64_t a, uint64_t b, uint64_t c, uint64_t *out)
{
    return onxi_mul_u64(a, b, out) && onxi_mul_u64(*out, c, out);
}

static onx_status plan_memory(onx_prepare *p, lstm_params *q)
{
    const uint64_t g = GATES * q->hidden, b = q->batch;
    uint64_t total = 0, all, step, whole, keys, shares, context, taken;
    const bool fits =
        times(q->steps, b, g, &all) && times(b, g, 1, &step) &&
        times(q->steps > 1 ? q->steps : 1, b, q->inputs > q->hidden ? q->inputs : q->hidden, &whole) &&
        times(b, q->memory_steps, q->depth, &keys) && times(b, q->memory_depth, 1, &context) &&
        times(b, q->attention, 1, &taken) && times(1, q->memory_steps, 1, &shares) &&
        onxi_ms_reserve(&total, all, &q->gates) && onxi_ms_reserve(&total, step, &q->recurrent) &&
        onxi_ms_reserve(&total, 2 * g, &q->bias) && onxi_ms_reserve(&total, step, &q->h) &&
        onxi_ms_reserve(&total, step, &q->c) && onxi_ms_reserve(&total, q->quantized ? whole : 0, &q->whole) &&
        onxi_ms_reserve(&total, q->quantized ? g : 0, &q->sums) && onxi_ms_reserve(&total, keys, &q->keys) &&
        onxi_ms_reserve(&total, q->depth, &q->query) && onxi_ms_reserve(&total, shares, &q->shares) &&
        onxi_ms_reserve(&total, context, &q->context) && onxi_ms_reserve(&total, taken, &q->taken);
    if (!fits)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the layer is too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = q->directions;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p, bool quantized)
{
    lstm_params *q = ONXI_NEW(p->arena, lstm_params);
    if (!q)
        return ONX_E_MEMORY;
    q->quantized = quantized;
    ONX_TRY(read_attributes(p, q));
    ONX_TRY(check_common(p, q));
    ONX_TRY(quantized ? check_quantized(p, q) : check_attention(p, q));
    return plan_memory(p, q);
}

static onx_status quantized_prepare(onx_prepare *p)
{
    return prepare(p, true);
}

static onx_status attention_prepare(onx_prepare *p)
{
    return prepare(p, false);
}

/* ---- a direction while it runs ---- */

typedef struct lane {
    onx_work *work;
    const lstm_params *q;
    uint64_t d, longest;
    char *memory;
    const int32_t *lens, *memory_lens;
} lane;

static float *at(const lane *l, uint64_t offset)
{
    return (float *)(void *)(l->memory + offset);
}

static const onx_value *operand(const lane *l, uint32_t i)
{
    return onxi_operand(l->work->prepared->input_count, l->work->inputs, i);
}

/* The part of an operand of floats that is for this direction; NULL where it is left out. */
static const float *part(const lane *l, uint32_t i)
{
    const onx_value *v = operand(l, i);
    return v ? (const float *)v->data + l->d * (v->count / l->q->directions) : NULL;
}

static uint64_t length_of(const lane *l, uint64_t b)
{
    return l->lens ? (uint64_t)l->lens[b] : l->q->steps;
}

static uint64_t place(const lane *l, uint64_t b, uint64_t s)
{
    const uint64_t n = length_of(l, b);
    return l->q->backward[l->d] && s < n ? n - 1 - s : s;
}

static const float *input_row(const lane *l, uint64_t s, uint64_t b)
{
    const lstm_params *q = l->q;
    return (const float *)operand(l, X)->data + (place(l, b, s) * q->batch + b) * q->inputs;
}

/* ---- products of quantized numbers ---- */

typedef struct range {
    float least, most;
} range;

static range widen(range r, const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        r.least = x[i] < r.least ? x[i] : r.least;
        r.most = x[i] > r.most ? x[i] : r.most;
    }
    return r;
}

/* The step of bytes that hold the range, and the byte that stands for zero. */
static float step_of(range r, int32_t *zero)
{
    const float scale = r.most > r.least ? (r.most - r.least) / 255 : 1;
    const float z = nearbyintf(0 - r.least / scale);
    *zero = z >= 0 && z <= 255 ? (int32_t)z : z > 255 ? 255 : 0;
    return scale;
}

static int32_t byte_of(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_INT8 ? ((const int8_t *)v->data)[i] : ((const uint8_t *)v->data)[i];
}

/* sums[j] += by * row[j] */
static void add_row(const onx_value *w, uint64_t from, uint64_t n, int32_t by, int32_t *sums)
{
    const int8_t *s = (const int8_t *)w->data + from;
    const uint8_t *u = (const uint8_t *)w->data + from;
    if (w->dtype == ONX_INT8)
        for (uint64_t j = 0; j < n; j++)
            sums[j] += by * s[j];
    else
        for (uint64_t j = 0; j < n; j++)
            sums[j] += by * u[j];
}

/* One row of real numbers, by `scale` and `zero`, with the weights of this direction: adds to out[4 * hidden]. */
static void quantized_row(const lane *l, const float *x, uint64_t k, float scale, int32_t zero, uint32_t weight,
                          float *out)
{
    const uint64_t n = GATES * l->q->hidden;
    const uint32_t first = weight == W ? W_SCALE : R_SCALE;
    const onx_value *w = operand(l, weight), *zeros = operand(l, first + 1);
    const float *scales = part(l, first);
    const bool columns = operand(l, first)->rank == 2, zero_columns = zeros->rank == 2;
    int32_t *sums = (int32_t *)(void *)at(l, l->q->sums);
    for (uint64_t from = 0; from < k; from += EXACT) {
        const uint64_t to = from + EXACT < k ? from + EXACT : k;
        int64_t sum = 0;
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (uint64_t i = from; i < to; i++) {
            const float steps = nearbyintf(x[i] / scale) + (float)zero;
            const int32_t a = (steps > 255 ? 255 : steps > 0 ? (int32_t)steps : 0) - zero;
            sum += a;
            if (a)
                add_row(w, (l->d * k + i) * n, n, a, sums);
        }
        for (uint64_t j = 0; j < n; j++) {
            const int64_t z = byte_of(zeros, zero_columns ? l->d * n + j : l->d);
            out[j] += (float)(sums[j] - sum * z) * (scale * scales[columns ? j : 0]);
        }
    }
}

/* All steps of the input are quantized together, up to the longest sequence. */
static void quantized_inputs(const lane *l)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden;
    int32_t zero;
    range r = { 0, 0 };
    r = widen(r, operand(l, X)->data, l->longest * q->batch * q->inputs);
    const float scale = step_of(r, &zero);
    memset(at(l, q->gates), 0, (size_t)(q->steps * q->batch * n) * sizeof(float));
    for (uint64_t s = 0; s < l->longest; s++)
        for (uint64_t b = 0; b < q->batch; b++)
            quantized_row(l, input_row(l, s, b), q->inputs, scale, zero, W, at(l, q->gates) + (s * q->batch + b) * n);
}

/* The states of all sequences that continue are quantized together. */
static void quantized_states(const lane *l, uint64_t s)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden;
    int32_t zero;
    range r = { 0, 0 };
    for (uint64_t b = 0; b < q->batch; b++)
        if (!s || s - 1 < length_of(l, b))
            r = widen(r, at(l, q->h) + b * q->hidden, q->hidden);
    const float scale = step_of(r, &zero);
    memset(at(l, q->recurrent), 0, (size_t)(q->batch * n) * sizeof(float));
    for (uint64_t b = 0; b < q->batch; b++)
        if (s < length_of(l, b))
            quantized_row(l, at(l, q->h) + b * q->hidden, q->hidden, scale, zero, R, at(l, q->recurrent) + b * n);
}

/* ---- attention ---- */

/* out[j] += the sum of x[i] * w[i][j] */
static void add_product(const float *x, uint64_t k, const float *w, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < k; i++)
        for (uint64_t j = 0; j < n; j++)
            out[j] += x[i] * w[i * n + j];
}

static void attention_begin(const lane *l)
{
    const lstm_params *q = l->q;
    const float *memory = operand(l, MEMORY)->data, *layer = part(l, MEMORY_LAYER);
    const uint64_t rows = q->batch * q->memory_steps;
    memset(at(l, q->taken), 0, (size_t)(q->batch * q->attention) * sizeof(float));
    memset(at(l, q->keys), 0, (size_t)(rows * q->depth) * sizeof(float));
    for (uint64_t row = 0; row < rows; row++)
        add_product(memory + row * q->memory_depth, q->memory_depth, layer, q->depth, at(l, q->keys) + row * q->depth);
}

/* What the state of a row attends to: shares of the memory by how its keys and the query fit. */
static void attend(const lane *l, uint64_t b)
{
    const lstm_params *q = l->q;
    const uint64_t steps = l->memory_lens ? (uint64_t)l->memory_lens[b] : q->memory_steps;
    const float *h = at(l, q->h) + b * q->hidden, *v = part(l, V);
    const float *keys = at(l, q->keys) + b * q->memory_steps * q->depth;
    const float *memory = (const float *)operand(l, MEMORY)->data + b * q->memory_steps * q->memory_depth;
    float *query = at(l, q->query), *shares = at(l, q->shares), *context = at(l, q->context) + b * q->memory_depth;
    float top = -INFINITY;
    double sum = 0;
    memset(query, 0, (size_t)q->depth * sizeof *query);
    add_product(h, q->hidden, part(l, QUERY), q->depth, query);
    for (uint64_t t = 0; t < steps; t++) {
        shares[t] = 0;
        for (uint64_t i = 0; i < q->depth; i++)
            shares[t] += v[i] * tanhf(keys[t * q->depth + i] + query[i]);
        top = shares[t] > top ? shares[t] : top;
    }
    for (uint64_t t = 0; t < steps; t++)
        sum += shares[t] = expf(shares[t] - top);
    memset(context, 0, (size_t)q->memory_depth * sizeof *context);
    for (uint64_t t = 0; t < steps; t++)
        for (uint64_t i = 0; i < q->memory_depth; i++)
            context[i] += (float)(shares[t] / sum) * memory[t * q->memory_depth + i];
    float *taken = at(l, q->taken) + b * q->attention;
    if (!q->has_layer) {
        memcpy(taken, context, (size_t)q->attention * sizeof *taken);
        return;
    }
    memset(taken, 0, (size_t)q->attention * sizeof *taken);
    add_product(h, q->hidden, part(l, ATTENTION_LAYER), q->attention, taken);
    add_product(context, q->memory_depth, part(l, ATTENTION_LAYER) + q->hidden * q->attention, q->attention, taken);
}

/* Products of the input, of what was attended to, and of the state, for a row in a step. */
static void attention_products(const lane *l, uint64_t s, uint64_t b)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden, width = q->inputs + q->attention;
    const float *x = input_row(l, s, b), *w = part(l, W), *r = part(l, R);
    float *gates = at(l, q->gates) + (s * q->batch + b) * n, *recurrent = at(l, q->recurrent) + b * n;
    for (uint64_t j = 0; j < n; j++) {
        gates[j] = onxi_ms_dot(x, w + j * width, q->inputs) +
                   onxi_ms_dot(at(l, q->taken) + b * q->attention, w + j * width + q->inputs, q->attention);
        recurrent[j] = onxi_ms_dot(at(l, q->h) + b * q->hidden, r + j * q->hidden, q->hidden);
    }
}

/* ---- steps ---- */

static void load(const lane *l, uint32_t input, uint64_t offset, uint64_t count)
{
    const float *from = part(l, input);
    if (from && count)
        memcpy(at(l, offset), from, (size_t)count * sizeof(float));
    else
        memset(at(l, offset), 0, (size_t)count * sizeof(float));
}

static void store(const lane *l, uint32_t output, uint64_t row, const float *from, uint64_t count)
{
    onx_value *y = output < l->work->prepared->output_count ? l->work->outputs[output] : NULL;
    if (y && count && from)
        memcpy((float *)y->data + row * count, from, (size_t)count * sizeof *from);
    else if (y && count)
        memset((float *)y->data + row * count, 0, (size_t)count * sizeof(float));
}

static void run_row(const lane *l, uint64_t s, uint64_t b)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden;
    const float *peephole = part(l, P);
    if (!q->quantized)
        attention_products(l, s, b);
    onxi_rnn_cells[2].step[0](&(onxi_rnn_row){ .act = q->act[l->d],
                                               .clip = q->clip,
                                               .hidden = q->hidden,
                                               .couple = q->couple,
                                               .open_cell = true,
                                               .gates = at(l, q->gates) + (s * q->batch + b) * n,
                                               .recurrent = at(l, q->recurrent) + b * n,
                                               .bias = at(l, q->bias),
                                               .peephole = peephole,
                                               .h = at(l, q->h) + b * q->hidden,
                                               .c = at(l, q->c) + b * q->hidden });
    if (!q->quantized)
        attend(l, b);
}

static void run_direction(lane *l)
{
    const lstm_params *q = l->q;
    const uint64_t h = q->hidden;
    load(l, B, q->bias, 2 * GATES * h);
    load(l, H, q->h, q->batch * h);
    load(l, C, q->c, q->batch * h);
    if (q->quantized)
        quantized_inputs(l);
    else
        attention_begin(l);
    for (uint64_t s = 0; s < q->steps; s++) {
        if (q->quantized && s < l->longest)
            quantized_states(l, s);
        for (uint64_t b = 0; b < q->batch; b++) {
            const bool goes_on = s < length_of(l, b);
            if (goes_on)
                run_row(l, s, b);
            store(l, 0, (place(l, b, s) * q->directions + l->d) * q->batch + b, goes_on ? at(l, q->h) + b * h : NULL,
                  h);
        }
    }
    for (uint64_t b = 0; b < q->batch; b++) {
        store(l, 1, l->d * q->batch + b, at(l, q->h) + b * h, h);
        store(l, 2, l->d * q->batch + b, at(l, q->c) + b * h, h);
    }
}

/* Lengths of sequences, from `least` up to `most` (NULL: all are the longest). */
static onx_status read_lengths(onx_work *work, uint32_t input, uint64_t batch, int32_t least, uint64_t most,
                               const int32_t **out)
{
    const onx_value *v = onxi_operand(work->prepared->input_count, work->inputs, input);
    *out = v ? v->data : NULL;
    for (uint64_t b = 0; v && b < batch; b++)
        if ((*out)[b] < least || (uint64_t)(*out)[b] > most)
            return onx_work_fail(work, ONX_E_INVALID, "input %u has the value %d, which is not from %d to %llu", input,
                                 (int)(*out)[b], (int)least, (unsigned long long)most);
    return ONX_OK;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const lstm_params *q = work->params;
    lane l = { .work = work, .q = q, .memory = work->thread_workspace, .longest = q->steps };
    ONX_TRY(read_lengths(work, LENS, q->batch, 0, q->steps, &l.lens));
    if (!q->quantized)
        ONX_TRY(read_lengths(work, MEMORY_LENS, q->batch, 1, q->memory_steps, &l.memory_lens));
    for (uint64_t b = 0, longest = 0; l.lens && b < q->batch; b++) {
        longest = (uint64_t)l.lens[b] > longest ? (uint64_t)l.lens[b] : longest;
        l.longest = longest;
    }
    for (l.d = first; l.d < last && q->hidden; l.d++)
        run_direction(&l);
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_lstm[] = {
    MS_KERNEL("DynamicQuantizeLSTM", .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .prepare = quantized_prepare, .run = run),
    MS_KERNEL("AttnLSTM", .dtypes = ONX_DTYPE_BIT(ONX_FLOAT), .prepare = attention_prepare, .run = run),
    { 0 },
};
