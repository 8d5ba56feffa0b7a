/* experts.c - MoE and QMoE: each token goes through the few experts that its router scores highest. */
#include "kernel/microsoft/microsoft.h"

#include <math.h>

enum { RELU, GELU, SILU, IDENTITY, SWIGLU };
enum { ROUTER_WEIGHTS = 14 }; /* input of QMoE */

/* One of the matrices of all experts. */
typedef struct layer {
    uint32_t weights, bias, scales, zeros; /* inputs */
    onxi_ms_packed packed;
    uint64_t rows, columns; /* of an expert */
} layer;

typedef struct params {
    bool quantized, normalize, interleaved;
    bool weighted; /* what experts give is weighted by an input of its own */
    int activation;
    float alpha, beta, limit;
    uint64_t tokens, hidden, inner, experts, k;
    layer first, second;
    uint64_t share_at, row_at, between_at, result_at, token_at; /* in a thread's memory */
} params;

static onx_status check_layer(const onx_prepare *p, const params *q, layer *l, uint64_t rows, uint64_t columns)
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
    const int64_t bits = onx_prepare_int(p, "expert_weight_bits"), block = onx_prepare_int(p, "block_size");
    if ((bits != 2 && bits != 4 && bits != 8) || block < 0 || (block && (block < 16 || block & (block - 1))))
        return onx_prepare_fail(p, ONX_E_INVALID, "weights of %lld bits in blocks of %lld are not done",
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

static onx_status read_attributes(const onx_prepare *p, params *q)
{
    static const onxi_word words[] = {
        { "relu", 1, 0 }, { "gelu", 1, 0 }, { "silu", 1, 0 }, { "identity", 1, 0 }, { "swiglu", 1, 0 }
    };
    q->activation = onxi_prepare_word(p, "activation_type", words, 5);
    const int64_t fusion = onx_prepare_int(p, "swiglu_fusion"), k = onx_prepare_int(p, "k");
    if (q->activation < 0 || onx_prepare_is_set(p, "use_sparse_mixer"))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "this activation, or the sparse mixer, is not done");
    if (q->activation == SWIGLU && fusion != 1 && fusion != 2)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "swiglu is done where its two products are one");
    q->interleaved = fusion == 1;
    q->alpha = onx_prepare_float(p, "activation_alpha");
    q->beta = onx_prepare_float(p, "activation_beta");
    q->limit = onx_prepare_given(p, "swiglu_limit") ? onx_prepare_float(p, "swiglu_limit") : INFINITY;
    /* Shares of those chosen are always shared out again by QMoE; weights that are given are not. */
    q->normalize = (q->quantized && !q->weighted) || onx_prepare_is_set(p, "normalize_routing_weights");
    if (k < 1 || (uint64_t)k > q->experts)
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld of %llu experts cannot be chosen", (long long)k,
                                (unsigned long long)q->experts);
    q->k = (uint64_t)k;
    return ONX_OK;
}

static onx_status read_sizes(const onx_prepare *p, params *q)
{
    const onx_value *x = p->inputs[0], *router = p->inputs[1], *second = p->inputs[q->second.weights];
    if (x->rank < 2 || router->rank != 2 || second->rank != 3)
        return onx_prepare_fail(p, ONX_E_INVALID, "input, router, and weights have ranks %u, %u, and %u", x->rank,
                                router->rank, second->rank);
    q->hidden = (uint64_t)x->dims[x->rank - 1];
    q->tokens = onxi_product(x->dims, 0, x->rank - 1);
    q->experts = (uint64_t)router->dims[1];
    const uint64_t pack = q->quantized ? 8 / (uint64_t)(onx_prepare_int(p, "expert_weight_bits") > 0
                                                            ? onx_prepare_int(p, "expert_weight_bits")
                                                            : 8)
                                       : 1;
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

static onx_status experts_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->quantized = p->kernel->body != NULL;
    q->first = q->quantized ? (layer){ 2, 4, 3, 11, { 0 }, 0, 0 } : (layer){ 2, 3, 99, 99, { 0 }, 0, 0 };
    q->second = q->quantized ? (layer){ 5, 7, 6, 12, { 0 }, 0, 0 } : (layer){ 4, 5, 99, 99, { 0 }, 0, 0 };
    if (onxi_operand(p->input_count, p->inputs, q->quantized ? 8 : 6) ||
        (q->quantized && !onx_str_is(onx_prepare_text(p, "quant_type"), "int")))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a third layer, and weights of 4-bit floats are not done");
    ONX_TRY(read_sizes(p, q));
    ONX_TRY(read_attributes(p, q));
    const uint64_t wide = q->activation == SWIGLU ? 2 * q->inner : q->inner;
    ONX_TRY(check_layer(p, q, &q->first, wide, q->hidden));
    ONX_TRY(check_layer(p, q, &q->second, q->hidden, q->inner));
    uint64_t total = 0;
    if (!onxi_ms_reserve(&total, q->experts, &q->share_at) ||
        !onxi_ms_reserve(&total, q->hidden > q->inner ? q->hidden : q->inner, &q->row_at) ||
        !onxi_ms_reserve(&total, wide, &q->between_at) || !onxi_ms_reserve(&total, q->hidden, &q->result_at) ||
        !onxi_ms_reserve(&total, q->hidden, &q->token_at))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the experts are too large");
    p->thread_workspace = total;
    p->params = q;
    p->rows = p->outputs[0]->count ? q->tokens : 0;
    return ONX_OK;
}

/* y = W x + b of an expert. */
static void apply(const onx_work *work, const params *q, const layer *l, uint64_t expert, const float *x, float *row,
                  float *y)
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

static void activate(const params *q, float *x)
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

/* From pairs of a gate and a number, interleaved or in two halves, to one each. */
static void gate(const params *q, const float *x, float *y)
{
    for (uint64_t i = 0; i < q->inner; i++) {
        const float g = bounded(q->interleaved ? x[2 * i] : x[i], -INFINITY, q->limit),
                    l = bounded(q->interleaved ? x[2 * i + 1] : x[q->inner + i], -q->limit, q->limit);
        y[i] = g / (1 + expf(-q->alpha * g)) * (l + q->beta);
    }
}

/* The shares of all experts. */
static void route(const params *q, const onx_value *router, uint64_t token, float *share)
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

/* The expert with the greatest share that is left; it is taken out by a negative one. */
static uint64_t next_expert(const params *q, float *share, float *out)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < q->experts; i++)
        if (share[i] > share[best])
            best = i;
    *out = share[best];
    share[best] = -1;
    return best;
}

/* Rows are tokens. */
static onx_status experts_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    char *memory = work->thread_workspace;
    float *share = (float *)(void *)(memory + q->share_at), *row = (float *)(void *)(memory + q->row_at),
          *between = (float *)(void *)(memory + q->between_at), *result = (float *)(void *)(memory + q->result_at),
          *token = (float *)(void *)(memory + q->token_at);
    for (uint64_t t = first; t < last; t++) {
        float weight, sum = 0;
        route(q, work->inputs[1], t, share);
        memset(result, 0, q->hidden * sizeof *result);
        for (uint64_t i = 0; i < q->k; i++) {
            const uint64_t expert = next_expert(q, share, &weight);
            if (q->weighted)
                weight = onxi_ms_float(work->inputs[ROUTER_WEIGHTS], t * q->experts + expert);
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
            result[k] = sum != 0 ? result[k] / sum : 0; /* weights that are given may have no sum */
        onxi_ms_store(work->outputs[0], t * q->hidden, q->hidden, result);
    }
    return ONX_OK;
}

static const bool quantized = true;

const onx_kernel onxi_kernels_microsoft_experts[] = {
    MS_KERNEL("MoE", .prepare = experts_prepare, .run = experts_run),
    MS_KERNEL("QMoE", .prepare = experts_prepare, .run = experts_run, .body = &quantized),
    { 0 },
};
