/* experts.c - MoE and QMoE: each token passes through the few experts with the highest router scores. */
#include "kernel/microsoft/experts.h"

/* Bits of the weights of layer 1 or 2; a layer may have its own number. */
static int64_t bits_of(const onx_prepare *p, unsigned layer)
{
    const char *name = layer == 1 ? "fc1_expert_weight_bits" : "fc2_expert_weight_bits";
    return onx_prepare_int(p, onx_prepare_given(p, name) ? name : "expert_weight_bits");
}

static onx_status check_layer(const onx_prepare *p, const experts_params *q, experts_layer *l, uint64_t rows,
                              uint64_t columns)
{
    const onx_value *w = p->inputs[l->weights], *bias = onxi_operand(p->input_count, p->inputs, l->bias);
    l->rows = rows;
    l->columns = columns;
    if (bias && bias->count != q->experts * rows)
        return onx_prepare_fail(p, ONX_E_INVALID, "a bias has %llu elements for %llu experts of %llu",
                                (unsigned long long)bias->count, (unsigned long long)q->experts,
                                (unsigned long long)rows);
    if (!q->quantized)
        return w->count == q->experts * rows * columns
                   ? ONX_OK
                   : onx_prepare_fail(p, ONX_E_INVALID, "%llu weights are not %llu experts of %llu by %llu",
                                      (unsigned long long)w->count, (unsigned long long)q->experts,
                                      (unsigned long long)rows, (unsigned long long)columns);
    const int64_t bits = bits_of(p, l == &q->first ? 1 : 2), block = onx_prepare_int(p, "block_size");
    if ((bits != 2 && bits != 4 && bits != 8) || block < 0 || (block && (block < 16 || block & (block - 1))))
        return onx_prepare_fail(p, ONX_E_INVALID, "weights of %lld bits in blocks of %lld are not supported",
                                (long long)bits, (long long)block);
    onxi_ms_packed *k = &l->packed;
    *k = (onxi_ms_packed){ .rows = q->experts * rows, .length = columns, .bits = (unsigned)bits };
    k->block = block ? (uint64_t)block : columns ? columns : 1;
    k->blocks = (columns + k->block - 1) / k->block;
    k->row_bytes = (columns * k->bits + 7) / 8;
    k->together = k->blocks == 1 ? rows : 0;
    k->zero_bytes = ((k->together ? k->together : k->blocks) * k->bits + 7) / 8;
    return onxi_ms_packed_check(p, k, w, onxi_operand(p->input_count, p->inputs, l->scales),
                                onxi_operand(p->input_count, p->inputs, l->zeros));
}

static onx_status read_attributes(const onx_prepare *p, experts_params *q)
{
    static const onxi_word words[] = {
        { "relu", 1, 0 }, { "gelu", 1, 0 }, { "silu", 1, 0 }, { "identity", 1, 0 }, { "swiglu", 1, 0 }
    };
    q->activation = onxi_prepare_word(p, "activation_type", words, 5);
    const int64_t fusion = onx_prepare_int(p, "swiglu_fusion"), k = onx_prepare_int(p, "k");
    if (q->activation < 0 || onx_prepare_is_set(p, "use_sparse_mixer"))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "this activation or the sparse mixer is not supported");
    if (q->activation == SWIGLU && fusion != 1 && fusion != 2)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "activation swiglu needs swiglu_fusion 1 or 2");
    q->interleaved = fusion == 1;
    q->alpha = onx_prepare_float(p, "activation_alpha");
    q->beta = onx_prepare_float(p, "activation_beta");
    q->limit = onx_prepare_given(p, "swiglu_limit") ? onx_prepare_float(p, "swiglu_limit") : INFINITY;
    /* QMoE always normalizes the weights of the chosen experts, unless an input gives the weights. */
    q->normalize = (q->quantized && !q->weighted) || onx_prepare_is_set(p, "normalize_routing_weights");
    if (k < 1 || (uint64_t)k > q->experts)
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld of %llu experts cannot be chosen", (long long)k,
                                (unsigned long long)q->experts);
    q->k = (uint64_t)k;
    return ONX_OK;
}

static onx_status read_sizes(const onx_prepare *p, experts_params *q)
{
    const onx_value *x = p->inputs[0], *router = p->inputs[1], *second = p->inputs[q->second.weights];
    if (x->rank < 2 || router->rank != 2 || second->rank != 3)
        return onx_prepare_fail(p, ONX_E_INVALID, "input, router, and weights have ranks %u, %u, and %u", x->rank,
                                router->rank, second->rank);
    q->hidden = (uint64_t)x->dims[x->rank - 1];
    q->tokens = onxi_product(x->dims, 0, x->rank - 1);
    q->experts = (uint64_t)router->dims[1];
    const int64_t bits = q->quantized ? bits_of(p, 2) : 8;
    const uint64_t pack = bits > 0 && bits < 8 ? 8 / (uint64_t)bits : 1;
    q->inner = (uint64_t)second->dims[2] * pack;
    const onx_value *weights = q->quantized ? onxi_operand(p->input_count, p->inputs, ROUTER_WEIGHTS) : NULL;
    q->weighted = weights != NULL;
    if (weights && (weights->rank != 2 || memcmp(weights->dims, router->dims, 2 * sizeof *router->dims) != 0))
        return onx_prepare_fail(p, ONX_E_INVALID, "router_weights have another shape than router_probs");
    return (uint64_t)router->dims[0] == q->tokens
               ? ONX_OK
               : onx_prepare_fail(p, ONX_E_INVALID, "the router has %lld rows for %llu tokens",
                                  (long long)router->dims[0], (unsigned long long)q->tokens);
}

onx_status onxi_ms_experts_read(const onx_prepare *p, experts_params *q)
{
    static const char *const extra[] = { "fc1_global_scale", "fc2_global_scale",    "fc1_act_scale",
                                         "fc2_act_scale",    "fc1_act_block_scale", "fc2_act_block_scale" };
    q->quantized = ((const experts_body *)p->kernel->body)->quantized;
    q->first =
        q->quantized ? (experts_layer){ 2, 4, 3, 11, { 0 }, 0, 0 } : (experts_layer){ 2, 3, 99, 99, { 0 }, 0, 0 };
    q->second =
        q->quantized ? (experts_layer){ 5, 7, 6, 12, { 0 }, 0, 0 } : (experts_layer){ 4, 5, 99, 99, { 0 }, 0, 0 };
    if (onxi_operand(p->input_count, p->inputs, q->quantized ? 8 : 6) ||
        (q->quantized && !onx_str_is(onx_prepare_text(p, "quant_type"), "int")))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a third layer and weights of 4-bit floats are not supported");
    if (onx_prepare_is_set(p, "swiglu_limit_after_activation"))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED,
                                "attribute swiglu_limit_after_activation is set, which is for accelerators only");
    for (uint32_t i = 0; q->quantized && i < 6; i++)
        if (onxi_operand(p->input_count, p->inputs, ROUTER_WEIGHTS + 1 + i))
            return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "input %s is given, which is for accelerators only",
                                    extra[i]);
    ONX_TRY(read_sizes(p, q));
    ONX_TRY(read_attributes(p, q));
    q->wide = q->activation == SWIGLU ? 2 * q->inner : q->inner;
    ONX_TRY(check_layer(p, q, &q->first, q->wide, q->hidden));
    return check_layer(p, q, &q->second, q->hidden, q->inner);
}

static onx_status experts_prepare(onx_prepare *p)
{
    experts_params *q = ONXI_NEW(p->arena, experts_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_ms_experts_read(p, q));
    uint64_t total = 0;
    if (!onxi_ms_reserve(&total, q->experts, &q->share_at) ||
        !onxi_ms_reserve(&total, q->hidden > q->inner ? q->hidden : q->inner, &q->row_at) ||
        !onxi_ms_reserve(&total, q->wide, &q->between_at) || !onxi_ms_reserve(&total, q->hidden, &q->result_at) ||
        !onxi_ms_reserve(&total, q->hidden, &q->token_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the experts are too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = p->outputs[0]->count ? q->tokens : 0;
    return ONX_OK;
}

/* Computes y = W x + b for an expert. */
static void apply(const onx_work *work, const experts_params *q, const experts_layer *l, uint64_t expert,
                  const float *x, float *row, float *y)
{
    const uint32_t inputs = work->prepared->input_count;
    const onx_value *w = work->inputs[l->weights], *bias = onxi_operand(inputs, work->inputs, l->bias),
                    *zeros = onxi_operand(inputs, work->inputs, l->zeros);
    for (uint64_t i = 0; i < l->rows; i++) {
        const uint64_t at = expert * l->rows + i;
        const float *weights = row;
        if (q->quantized)
            onxi_ms_packed_row(&l->packed, w, work->inputs[l->scales], zeros, NULL, at, row);
        else if (w->dtype == ONX_FLOAT)
            weights = (const float *)w->data + at * l->columns;
        else
            onxi_ms_floats(w, at * l->columns, l->columns, row);
        y[i] = onxi_ms_dot(weights, x, l->columns) + (bias ? onxi_ms_float(bias, at) : 0);
    }
}

static float bounded(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static void activate(const experts_params *q, float *x)
{
    for (uint64_t i = 0; i < q->inner; i++) {
        const float v = x[i];
        if (q->activation == RELU)
            x[i] = v > 0 || v != v ? v : 0;
        else if (q->activation == GELU)
            x[i] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
        else if (q->activation == SILU)
            x[i] = v / (1 + expf(-v));
    }
}

/* Combines pairs of a gate and a value, interleaved or in two halves, to one element each. */
static void gate(const experts_params *q, const float *x, float *y)
{
    for (uint64_t i = 0; i < q->inner; i++) {
        const float g = bounded(q->interleaved ? x[2 * i] : x[i], -INFINITY, q->limit),
                    l = bounded(q->interleaved ? x[2 * i + 1] : x[q->inner + i], -q->limit, q->limit);
        y[i] = g / (1 + expf(-q->alpha * g)) * (l + q->beta);
    }
}

/* Computes the routing weights of all experts. */
void onxi_ms_experts_route(const experts_params *q, const onx_value *router, uint64_t token, float *share)
{
    float most = -INFINITY, sum = 0;
    onxi_ms_floats(router, token * q->experts, q->experts, share);
    for (uint64_t i = 0; i < q->experts; i++)
        most = share[i] > most ? share[i] : most;
    for (uint64_t i = 0; i < q->experts; i++)
        sum += share[i] = expf(share[i] - most);
    for (uint64_t i = 0; i < q->experts; i++)
        share[i] /= sum;
}

/* Marks the chosen expert as used by a negative weight. */
uint64_t onxi_ms_experts_next(const onx_work *work, const experts_params *q, uint64_t token, float *share,
                              float *weight)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < q->experts; i++)
        if (share[i] > share[best])
            best = i;
    *weight = q->weighted ? onxi_ms_float(work->inputs[ROUTER_WEIGHTS], token * q->experts + best) : share[best];
    share[best] = -1;
    return best;
}

/* A row of work is a token. */
static onx_status experts_run(onx_work *work, uint64_t first, uint64_t last)
{
    const experts_params *q = work->params;
    char *memory = work->thread_workspace;
    float *share = (float *)(void *)(memory + q->share_at), *row = (float *)(void *)(memory + q->row_at),
          *between = (float *)(void *)(memory + q->between_at), *result = (float *)(void *)(memory + q->result_at),
          *token = (float *)(void *)(memory + q->token_at);
    for (uint64_t t = first; t < last; t++) {
        float weight, sum = 0;
        onxi_ms_experts_route(q, work->inputs[1], t, share);
        memset(result, 0, q->hidden * sizeof *result);
        for (uint64_t i = 0; i < q->k; i++) {
            const uint64_t expert = onxi_ms_experts_next(work, q, t, share, &weight);
            sum += weight;
            onxi_ms_floats(work->inputs[0], t * q->hidden, q->hidden, token);
            apply(work, q, &q->first, expert, token, row, between);
            if (q->activation == SWIGLU)
                gate(q, between, between);
            else
                activate(q, between);
            apply(work, q, &q->second, expert, between, row, token);
            for (uint64_t k = 0; k < q->hidden; k++)
                result[k] += weight * token[k];
        }
        for (uint64_t k = 0; q->normalize && k < q->hidden; k++)
            result[k] = sum != 0 ? result[k] / sum : 0; /* given weights may sum to zero */
        onxi_ms_store(work->outputs[0], t * q->hidden, q->hidden, result);
    }
    return ONX_OK;
}

static const experts_body plain = { 0 }, quantized = { .quantized = true };

/* `packs_` are the inputs that are packed: the weights and, for low-bit weights, the scales. MoE's weights have the
 * type of the tokens. */
#define GROUPED(op_, types, packs_, isa_, variant_, ...)                                                               \
    MS_KERNEL(op_, .dtypes = (types), .preference = 11, .isa = (isa_), .variant = (variant_), .packs = (packs_),       \
              .prepare = onxi_ms_experts_group, .run = onxi_ms_experts_run_grouped,                                    \
              .body = &(const experts_body){ __VA_ARGS__ })
#define FLOATS(isa_, variant_, level)                                                                                  \
    GROUPED("MoE", ONXI_F32, 1 << 2 | 1 << 4, isa_, variant_, .floats = &onxi_rnn_packing_##level,                     \
            .gates = &onxi_gate_loops_##level)
#define FEW_BITS(isa_, variant_, level, gates_)                                                                        \
    GROUPED("QMoE", ONXI_F32 | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16),                               \
            1 << 2 | 1 << 3 | 1 << 5 | 1 << 6, isa_, variant_, .quantized = true, .few_bits = &onxi_few_bits_##level,  \
            .gates = &onxi_gate_loops_##gates_)

const onx_kernel onxi_kernels_microsoft_experts[] = {
#ifdef ONX_WITH_X86_LEVELS
    FLOATS(ONX_ISA_V4, "avx512", v4),
    FLOATS(ONX_ISA_V3, "avx2", v3),
    FEW_BITS(ONX_ISA_VNNI, "vnni", vnni, v4),
    FEW_BITS(ONX_ISA_V4, "avx512", v4, v4),
    FEW_BITS(ONX_ISA_V3, "avx2", v3, v3),
#endif
#if ONXI_PLATFORM_ROOMY
    FLOATS(ONX_ISA_BASE, "simd", base),
    FEW_BITS(ONX_ISA_BASE, "simd", base, base),
#endif
    MS_KERNEL("MoE", .prepare = experts_prepare, .run = experts_run, .body = &plain),
    MS_KERNEL("QMoE", .prepare = experts_prepare, .run = experts_run, .body = &quantized),
    { 0 },
};
