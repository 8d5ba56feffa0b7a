/* lstm.c - LSTM layers that differ from the standard: in DynamicQuantizeLSTM, the input and each state are quantized by
 * their own range; in AttnLSTM, each step also uses the attention computed from the previous state. A row of work is a
 * direction. */
#include "kernel/microsoft/lstm.h"

#include <math.h>

/* ---- preparing ---- */

static const onx_value *operand_of(const onx_prepare *p, uint32_t i)
{
    return onxi_operand(p->input_count, p->inputs, i);
}

/* Checks the shape of an optional operand; UINT64_MAX: any size. */
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
        return onx_prepare_fail(p, ONX_E_INVALID, "X, W or R is not a tensor of rank 3");
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

/* Checks scales and zero points of weights: one per direction, or one per column. */
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
    if (q->body->bytes)
        ONX_TRY(onxi_ms_lstm_pack(p, q, &total));
    p->thread_workspace = total;
    p->params = q;
    p->rows = q->directions;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    lstm_params *q = ONXI_NEW(p->arena, lstm_params);
    if (!q)
        return ONX_E_MEMORY;
    q->body = p->kernel->body;
    q->quantized = q->body->quantized;
    ONX_TRY(read_attributes(p, q));
    ONX_TRY(check_common(p, q));
    ONX_TRY(q->quantized ? check_quantized(p, q) : check_attention(p, q));
    return plan_memory(p, q);
}

/* ---- attention ---- */

/* out[j] += sum over i of x[i] * w[i][j] */
static void add_product(const float *x, uint64_t k, const float *w, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < k; i++)
        for (uint64_t j = 0; j < n; j++)
            out[j] += x[i] * w[i * n + j];
}

static void attention_begin(const lstm_lane *l)
{
    const lstm_params *q = l->q;
    const float *memory = lstm_operand(l, MEMORY)->data, *layer = lstm_part(l, MEMORY_LAYER);
    const uint64_t rows = q->batch * q->memory_steps;
    memset(lstm_at(l, q->taken), 0, (size_t)(q->batch * q->attention) * sizeof(float));
    memset(lstm_at(l, q->keys), 0, (size_t)(rows * q->depth) * sizeof(float));
    for (uint64_t row = 0; row < rows; row++)
        add_product(memory + row * q->memory_depth, q->memory_depth, layer, q->depth,
                    lstm_at(l, q->keys) + row * q->depth);
}

/* How much a key has in common with the query. */
static float score_of(const lstm_params *q, const float *key, const float *query, const float *v)
{
    float sum = 0;
    if (ONXI_PLATFORM_ROOMY && q->body->products)
        return q->body->products->tanh_dot(key, query, v, q->depth);
    for (uint64_t i = 0; i < q->depth; i++)
        sum += v[i] * tanhf(key[i] + query[i]);
    return sum;
}

/* Computes the attention of a row's state: a weighted sum of the memory, by the scores of its keys with the query. */
static void attend(const lstm_lane *l, uint64_t b)
{
    const lstm_params *q = l->q;
    const uint64_t steps = l->memory_lens ? (uint64_t)l->memory_lens[b] : q->memory_steps;
    const float *h = lstm_at(l, q->h) + b * q->hidden, *v = lstm_part(l, V);
    const float *keys = lstm_at(l, q->keys) + b * q->memory_steps * q->depth;
    const float *memory = (const float *)lstm_operand(l, MEMORY)->data + b * q->memory_steps * q->memory_depth;
    float *query = lstm_at(l, q->query), *shares = lstm_at(l, q->shares),
          *context = lstm_at(l, q->context) + b * q->memory_depth;
    float top = -INFINITY;
    double sum = 0;
    memset(query, 0, (size_t)q->depth * sizeof *query);
    add_product(h, q->hidden, lstm_part(l, QUERY), q->depth, query);
    for (uint64_t t = 0; t < steps; t++) {
        shares[t] = score_of(q, keys + t * q->depth, query, v);
        top = shares[t] > top ? shares[t] : top;
    }
    for (uint64_t t = 0; t < steps; t++)
        sum += shares[t] = expf(shares[t] - top);
    memset(context, 0, (size_t)q->memory_depth * sizeof *context);
    for (uint64_t t = 0; t < steps; t++)
        for (uint64_t i = 0; i < q->memory_depth; i++)
            context[i] += (float)(shares[t] / sum) * memory[t * q->memory_depth + i];
    float *taken = lstm_at(l, q->taken) + b * q->attention;
    if (!q->has_layer) {
        memcpy(taken, context, (size_t)q->attention * sizeof *taken);
        return;
    }
    memset(taken, 0, (size_t)q->attention * sizeof *taken);
    add_product(h, q->hidden, lstm_part(l, ATTENTION_LAYER), q->attention, taken);
    add_product(context, q->memory_depth, lstm_part(l, ATTENTION_LAYER) + q->hidden * q->attention, q->attention,
                taken);
}

/* Computes the products of the input, of the attention, and of the state, for a row in a step. */
static void attention_products(const lstm_lane *l, uint64_t s, uint64_t b)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden, width = q->inputs + q->attention;
    const float *x = lstm_input_row(l, s, b), *w = lstm_part(l, W), *r = lstm_part(l, R);
    const float *taken = lstm_at(l, q->taken) + b * q->attention, *h = lstm_at(l, q->h) + b * q->hidden;
    float *gates = lstm_at(l, q->gates) + (s * q->batch + b) * n, *recurrent = lstm_at(l, q->recurrent) + b * n;
    if (ONXI_PLATFORM_ROOMY && q->body->products) {
        const onxi_gate_loops *loops = q->body->products;
        loops->dots(x, w, width, n, q->inputs, gates);
        loops->dots(taken, w + q->inputs, width, n, q->attention, recurrent);
        for (uint64_t j = 0; j < n; j++)
            gates[j] += recurrent[j];
        loops->dots(h, r, q->hidden, n, q->hidden, recurrent);
        return;
    }
    for (uint64_t j = 0; j < n; j++) {
        gates[j] =
            onxi_ms_dot(x, w + j * width, q->inputs) + onxi_ms_dot(taken, w + j * width + q->inputs, q->attention);
        recurrent[j] = onxi_ms_dot(h, r + j * q->hidden, q->hidden);
    }
}

/* ---- steps ---- */

static void load(const lstm_lane *l, uint32_t input, uint64_t offset, uint64_t count)
{
    const float *from = lstm_part(l, input);
    if (from && count)
        memcpy(lstm_at(l, offset), from, (size_t)count * sizeof(float));
    else
        memset(lstm_at(l, offset), 0, (size_t)count * sizeof(float));
}

static void store(const lstm_lane *l, uint32_t output, uint64_t row, const float *from, uint64_t count)
{
    onx_value *y = output < l->work->prepared->output_count ? l->work->outputs[output] : NULL;
    if (y && count && from)
        memcpy((float *)y->data + row * count, from, (size_t)count * sizeof *from);
    else if (y && count)
        memset((float *)y->data + row * count, 0, (size_t)count * sizeof(float));
}

static void run_row(const lstm_lane *l, uint64_t s, uint64_t b)
{
    const lstm_params *q = l->q;
    const uint64_t n = GATES * q->hidden;
    const float *peephole = lstm_part(l, P);
    if (!q->quantized)
        attention_products(l, s, b);
    q->body->cell->step[0](&(onxi_rnn_row){ .act = q->act[l->d],
                                            .clip = q->clip,
                                            .hidden = q->hidden,
                                            .couple = q->couple,
                                            .open_cell = true,
                                            .gates = lstm_at(l, q->gates) + (s * q->batch + b) * n,
                                            .recurrent = lstm_at(l, q->recurrent) + b * n,
                                            .bias = lstm_at(l, q->bias),
                                            .peephole = peephole,
                                            .h = lstm_at(l, q->h) + b * q->hidden,
                                            .c = lstm_at(l, q->c) + b * q->hidden });
    if (!q->quantized)
        attend(l, b);
}

static void run_direction(lstm_lane *l)
{
    const lstm_params *q = l->q;
    const uint64_t h = q->hidden;
    load(l, B, q->bias, 2 * GATES * h);
    load(l, H, q->h, q->batch * h);
    load(l, C, q->c, q->batch * h);
    if (q->quantized)
        onxi_ms_lstm_quantized_inputs(l);
    else
        attention_begin(l);
    onxi_pace pace = { .work = l->work };
    for (uint64_t s = 0; s < q->steps && !onxi_pace_stops(&pace, q->batch * h * h); s++) {
        if (q->quantized && s < l->longest)
            onxi_ms_lstm_quantized_states(l, s);
        for (uint64_t b = 0; b < q->batch; b++) {
            const bool goes_on = s < lstm_length(l, b);
            if (goes_on)
                run_row(l, s, b);
            store(l, 0, (lstm_place(l, b, s) * q->directions + l->d) * q->batch + b,
                  goes_on ? lstm_at(l, q->h) + b * h : NULL, h);
        }
    }
    for (uint64_t b = 0; b < q->batch; b++) {
        store(l, 1, l->d * q->batch + b, lstm_at(l, q->h) + b * h, h);
        store(l, 2, l->d * q->batch + b, lstm_at(l, q->c) + b * h, h);
    }
}

/* Reads the lengths of sequences, which must be from `least` to `most`; without the input, all have the greatest
 * length. */
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
    lstm_lane l = { .work = work, .q = q, .memory = work->thread_workspace, .longest = q->steps };
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

#define ROW(op_, isa_, variant_, preference_, packs_, ...)                                                             \
    MS_KERNEL(op_, .dtypes = ONXI_F32, .isa = (isa_), .variant = (variant_), .preference = (preference_),              \
              .packs = (packs_), .prepare = prepare, .run = run, .body = &(const lstm_body){ __VA_ARGS__ })
#define QUANTIZED(isa_, variant_, level, cells)                                                                        \
    ROW("DynamicQuantizeLSTM", isa_, variant_, 11, 1 << W | 1 << R, .quantized = true,                                 \
        .cell = &onxi_rnn_cells_##cells[2], .bytes = &onxi_byte_rows_##level)
#define ATTENTION(isa_, variant_, level)                                                                               \
    ROW("AttnLSTM", isa_, variant_, 11, 0, .cell = &onxi_rnn_cells_##level[2], .products = &onxi_gate_loops_##level)

const onx_kernel onxi_kernels_microsoft_lstm[] = {
#ifdef ONX_WITH_X86_LEVELS
    QUANTIZED(ONX_ISA_VNNI, "vnni", vnni, v4),
    QUANTIZED(ONX_ISA_V4, "avx512", v4, v4),
    QUANTIZED(ONX_ISA_V3, "avx2", v3, v3),
    ATTENTION(ONX_ISA_V4, "avx512", v4),
    ATTENTION(ONX_ISA_V3, "avx2", v3),
#endif
#if ONXI_PLATFORM_ROOMY
    QUANTIZED(ONX_ISA_BASE, "simd", base, base),
    ATTENTION(ONX_ISA_BASE, "simd", base),
#endif
    ROW("DynamicQuantizeLSTM", ONX_ISA_ANY, NULL, 0, 0, .quantized = true, .cell = &onxi_rnn_cells[2]),
    ROW("AttnLSTM", ONX_ISA_ANY, NULL, 0, 0, .cell = &onxi_rnn_cells[2]),
    { 0 },
};
