/* rnn.h - recurrent layers: the interface of kernel/sequence/rnn.c (sizes, order, memory) and
 * kernel/sequence/rnn_cell.c (arithmetic). */
#ifndef ONXI_KERNEL_RNN_H
#define ONXI_KERNEL_RNN_H

#include "kernel/kernel.h"

typedef enum onxi_activation_kind {
    ONXI_ACT_RELU,
    ONXI_ACT_TANH,
    ONXI_ACT_SIGMOID,
    ONXI_ACT_AFFINE,
    ONXI_ACT_LEAKY_RELU,
    ONXI_ACT_THRESHOLDED_RELU,
    ONXI_ACT_SCALED_TANH,
    ONXI_ACT_HARD_SIGMOID,
    ONXI_ACT_ELU,
    ONXI_ACT_SOFTSIGN,
    ONXI_ACT_SOFTPLUS
} onxi_activation_kind;

typedef struct onxi_activation {
    onxi_activation_kind kind;
    double alpha, beta;
} onxi_activation;

/* One row of a batch in one step. Elements are float or double, as the cell says. */
typedef struct onxi_rnn_row {
    const onxi_activation *act;
    double clip; /* infinity: none */
    uint64_t hidden;
    bool couple, before_reset; /* LSTM: the forget gate is 1 - input; GRU: linear_before_reset */
    bool open_cell;            /* LSTM: the clip applies to gates, not to the cell state before the output */
    void *gates;               /* products of the input; overwritten */
    const void *recurrent;     /* products of the hidden state */
    const void *bias;          /* biases of the input for all gates, then of the hidden state for all gates */
    const void *peephole;      /* i, o, f; NULL: none */
    void *h, *c;
    void *reset; /* GRU: reset gate times h, for a product of its own */
} onxi_rnn_row;

/* Products of rows with packed weights of gates: out[row][gate * hidden + i]. */
typedef struct onxi_rnn_product {
    const float *a; /* rows x k */
    uint64_t rows, k, hidden;
    const float *packed;
    float *out;
    uint64_t pitch;
    bool backwards; /* from the last tile to the first: the tiles used last are still in the cache */
} onxi_rnn_product;
typedef struct onxi_rnn_packing {
    uint64_t tile; /* columns of a gate that are packed together */
    /* Weights are [gates][hidden][k]; packed, the tiles of each gate are contiguous, k * tile elements each. */
    void (*pack)(const float *weight, uint32_t gates, uint64_t hidden, uint64_t k, float *out);
    void (*product)(const onxi_rnn_product *p, uint64_t first, uint64_t last); /* tiles first .. last - 1 */
} onxi_rnn_packing;
extern const onxi_rnn_packing onxi_rnn_packing_base, onxi_rnn_packing_v3, onxi_rnn_packing_v4;

typedef struct onxi_rnn_cell {
    const char *name;
    uint32_t gates, activations;
    onxi_activation_kind fallback[3];
    /* In double (1) or float (0). GRU comes in two halves: the second one follows the product with `reset`. */
    void (*step[2])(const onxi_rnn_row *row);
    void (*finish[2])(const onxi_rnn_row *row);
    const onxi_rnn_packing *packing; /* for floats with constant weights; NULL: the plain products */
} onxi_rnn_cell;
/* RNN, GRU, LSTM: the plain ones, and those of floats by vectors, which have no step of doubles. */
extern const onxi_rnn_cell onxi_rnn_cells[], onxi_rnn_cells_base[], onxi_rnn_cells_v3[], onxi_rnn_cells_v4[];

/* The activations that a node names, with their parameters, or the defaults of the cell. */
onx_status onxi_rnn_activations(onx_prepare *p, const onxi_rnn_cell *cell, uint32_t directions,
                                onxi_activation act[2][3]);
/* A row has an onxi_rnn_cell as its body. */
onx_status onxi_rnn_prepare(onx_prepare *p);
onx_status onxi_rnn_run(onx_work *work, uint64_t first, uint64_t last);

/* rows x n products with a weight stored as k rows of n: for few rows, when packing would cost more. */
void onxi_rnn_plain_product(bool wide, const void *a, uint64_t rows, uint64_t k, const void *weight, uint64_t n,
                            uint64_t pitch, void *out);

#endif
