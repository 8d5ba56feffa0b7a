/* experts.h - shared by the rows of MoE and QMoE: operands, sizes, and routing of tokens to experts. */
#ifndef ONXI_KERNEL_MICROSOFT_EXPERTS_H
#define ONXI_KERNEL_MICROSOFT_EXPERTS_H

#include "kernel/core/few_bits.h"
#include "kernel/core/gates.h"
#include "kernel/core/rnn.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* Describes a kernel row: the operator, and the functions for products and activations; these are NULL in plain
 * rows. */
typedef struct experts_body {
    bool quantized;
    const onxi_rnn_packing *floats;
    const onxi_few_bits_ops *few_bits;
    const onxi_gate_loops *gates;
} experts_body;

enum { RELU, GELU, SILU, IDENTITY, SWIGLU };
enum { ROUTER_WEIGHTS = 14 }; /* input index for QMoE */

/* One of the weight matrices of all experts. */
typedef struct experts_layer {
    uint32_t weights, bias, scales, zeros; /* input indices */
    onxi_ms_packed packed;
    uint64_t rows, columns; /* per expert */
} experts_layer;

typedef struct experts_params {
    bool quantized, normalize, interleaved;
    bool weighted; /* an input gives the weights of the experts' results */
    int activation;
    float alpha, beta, limit;
    uint64_t tokens, hidden, wide, inner, experts, k; /* wide: outputs of the first layer */
    experts_layer first, second;
    uint64_t share_at, row_at, between_at, result_at, token_at; /* offsets in a thread's workspace */
} experts_params;

/* Reads operands and attributes into `q`, which must be zero-initialized. */
onx_status onxi_ms_experts_read(const onx_prepare *p, experts_params *q);
/* onxi_ms_experts_route computes the routing weights of a token. onxi_ms_experts_next then returns the expert with the
 * greatest remaining weight, and its weight. */
void onxi_ms_experts_route(const experts_params *q, const onx_value *router, uint64_t token, float *share);
uint64_t onxi_ms_experts_next(const onx_work *work, const experts_params *q, uint64_t token, float *share,
                              float *weight);

/* The variant that processes tokens grouped by experts (experts_grouped.c). */
onx_status onxi_ms_experts_group(onx_prepare *p);
onx_status onxi_ms_experts_run_grouped(onx_work *work, uint64_t first, uint64_t last);

#endif
