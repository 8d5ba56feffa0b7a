/* lstm.h - shared by the files of DynamicQuantizeLSTM and AttnLSTM: operands, sizes, and the state of a direction. */
#ifndef ONXI_KERNEL_MICROSOFT_LSTM_H
#define ONXI_KERNEL_MICROSOFT_LSTM_H

#include "kernel/core/byte_rows.h"
#include "kernel/core/gates.h"
#include "kernel/core/rnn.h"
#include "kernel/microsoft/microsoft.h"

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
    R_ZERO, /* quantized variant */
    QUERY = 8,
    MEMORY_LAYER,
    V,
    MEMORY,
    MEMORY_LENS,
    ATTENTION_LAYER, /* with attention */
    GATES = 4,
    EXACT = 32768 /* up to this many 8-bit products sum up without overflow of 32 bits */
};

/* Describes a kernel row: the gates, and functions for 8-bit products. */
typedef struct lstm_body {
    bool quantized;
    const onxi_rnn_cell *cell;
    const onxi_byte_rows_ops *bytes; /* NULL: not vectorized */
    const onxi_gate_loops *products; /* with attention; NULL: not vectorized */
} lstm_body;

typedef struct lstm_params {
    const lstm_body *body;
    uint64_t directions, steps, batch, inputs, hidden;
    bool backward[2], couple, quantized, has_layer;
    double clip;
    onxi_activation act[2][3];
    uint64_t memory_steps, memory_depth, depth, attention; /* depth: of keys; attention: size of the attention vector */
    /* Offsets in a thread's workspace. */
    uint64_t gates, recurrent, bias, h, c, whole, sums, keys, query, shares, context, taken;
    /* Packed weights: a direction has `packed_w_size` and `packed_r_size` bytes. Further offsets in a thread's
     * workspace: rows of bytes, their sums, scales and zero points of columns. */
    const char *packed_w, *packed_r;
    uint64_t packed_w_size, packed_r_size, bytes, totals, scales, zeros;
} lstm_params;

/* ---- state of a direction ---- */

typedef struct lstm_lane {
    onx_work *work;
    const lstm_params *q;
    uint64_t d, longest;
    char *memory;
    const int32_t *lens, *memory_lens;
} lstm_lane;

static inline float *lstm_at(const lstm_lane *l, uint64_t offset)
{
    return (float *)(void *)(l->memory + offset);
}

static inline const onx_value *lstm_operand(const lstm_lane *l, uint32_t i)
{
    return onxi_operand(l->work->prepared->input_count, l->work->inputs, i);
}

/* The part of a float operand for this direction; NULL if the operand is omitted. */
static inline const float *lstm_part(const lstm_lane *l, uint32_t i)
{
    const onx_value *v = lstm_operand(l, i);
    return v ? (const float *)v->data + l->d * (v->count / l->q->directions) : NULL;
}

static inline uint64_t lstm_length(const lstm_lane *l, uint64_t b)
{
    return l->lens ? (uint64_t)l->lens[b] : l->q->steps;
}

static inline uint64_t lstm_place(const lstm_lane *l, uint64_t b, uint64_t s)
{
    const uint64_t n = lstm_length(l, b);
    return l->q->backward[l->d] && s < n ? n - 1 - s : s;
}

static inline const float *lstm_input_row(const lstm_lane *l, uint64_t s, uint64_t b)
{
    const lstm_params *q = l->q;
    return (const float *)lstm_operand(l, X)->data + (lstm_place(l, b, s) * q->batch + b) * q->inputs;
}

/* ---- quantized products (lstm_quantized.c) ---- */

/* Packs weights for the row's loops and reserves workspace from *total on; declines weights that the loops do not
 * support. */
onx_status onxi_ms_lstm_pack(onx_prepare *p, lstm_params *q, uint64_t *total);
/* onxi_ms_lstm_quantized_inputs computes the products of all input steps, quantized together up to the longest
 * sequence. onxi_ms_lstm_quantized_states computes those of the states before step `s`, for all sequences that have not
 * ended. */
void onxi_ms_lstm_quantized_inputs(const lstm_lane *l);
void onxi_ms_lstm_quantized_states(const lstm_lane *l, uint64_t s);

#endif
