/* experts.h - what the rows of MoE and QMoE share: operands, sizes, and which experts a token goes through. */
#ifndef ONXI_KERNEL_MICROSOFT_EXPERTS_H
#define ONXI_KERNEL_MICROSOFT_EXPERTS_H

#include "kernel/core/few_bits.h"
#include "kernel/core/gates.h"
#include "kernel/core/rnn.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* A row: which of the two operators, and by what it multiplies and activates, NULL in the plain rows. */
typedef struct experts_body {
    bool quantized;
    const onxi_rnn_packing *floats;
    const onxi_few_bits_ops *few_bits;
    const onxi_gate_loops *gates;
} experts_body;

enum { RELU, GELU, SILU, IDENTITY, SWIGLU };
enum { ROUTER_WEIGHTS = 14 }; /* input of QMoE */

/* One of the matrices of all experts. */
typedef struct experts_layer {
    uint32_t weights, bias, scales, zeros; /* inputs */
    onxi_ms_packed packed;
    uint64_t rows, columns; /* of an expert */
} experts_layer;

typedef struct experts_params {
    bool quantized, normalize, interleaved;
    bool weighted; /* what experts give is weighted by an input of its own */
    int activation;
    float alpha, beta, limit;
    uint64_t tokens, hidden, wide, inner, experts, k; /* wide: what the first layer gives */
    experts_layer first, second;
    uint64_t share_at, row_at, between_at, result_at, token_at; /* in a thread's memory */
} experts_params;

/* Operands and attributes; `q` is empty. */
onx_status onxi_ms_experts_read(const onx_prepare *p, experts_params *q);
/* The next of a token's experts, the one with the greatest share that is left, and its weight; `share` is what
 * onxi_ms_experts_route made. */
void onxi_ms_experts_route(const experts_params *q, const onx_value *router, uint64_t token, float *share);
uint64_t onxi_ms_experts_next(const onx_work *work, const experts_params *q, uint64_t token, float *share,
                              float *weight);

/* By experts in place of tokens (experts_grouped.c). */
onx_status onxi_ms_experts_group(onx_prepare *p);
onx_status onxi_ms_experts_run_grouped(onx_work *work, uint64_t first, uint64_t last);

#endif
