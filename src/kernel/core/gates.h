/* gates.h - what lies between the two products of a feed-forward layer, and what a state and its attention take, for
 * each level of the architecture (kernel/simd/gates.c). */
#ifndef ONXI_KERNEL_CORE_GATES_H
#define ONXI_KERNEL_CORE_GATES_H

#include "kernel/kernel.h"

typedef enum onxi_gate_kind { ONXI_GATE_RELU, ONXI_GATE_GELU, ONXI_GATE_SILU } onxi_gate_kind; /* Gelu by tanh */

/* Pairs of a gate and a number, interleaved or in two halves: gate * sigmoid(alpha * gate) * (number + beta), where
 * neither is above the limit, nor the number below its negative. */
typedef struct onxi_gate_pairs {
    bool interleaved;
    float alpha, beta, limit;
} onxi_gate_pairs;

typedef struct onxi_gate_loops {
    void (*alone)(onxi_gate_kind kind, float *x, uint64_t n);
    void (*pairs)(const onxi_gate_pairs *g, const float *x, float *y, uint64_t n); /* 2 * n numbers to n; y may be x */
    /* y[j] = the sum over i of x[i] * w[j * step + i], for rows j. */
    void (*dots)(const float *x, const float *w, uint64_t step, uint64_t rows, uint64_t n, float *y);
    /* The sum over i of v[i] * tanh(a[i] + b[i]). */
    float (*tanh_dot)(const float *a, const float *b, const float *v, uint64_t n);
} onxi_gate_loops;
extern const onxi_gate_loops onxi_gate_loops_base, onxi_gate_loops_v3, onxi_gate_loops_v4;

#endif
