/* lstm.h - what the parts of DynamicQuantizeLSTM and AttnLSTM share: operands, sizes, and a direction while it runs. */
#ifndef ONXI_KERNEL_MICROSOFT_LSTM_H
#define ONXI_KERNEL_MICROSOFT_LSTM_H

#include "kernel/core/byte_rows.h"
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

/* A row: the gates, and, where the vectors of a level multiply bytes, how. */
typedef struct lstm_body {
    bool quantized;
    const onxi_rnn_cell *cell;
    const onxi_byte_rows_ops *bytes; /* NULL: one after the other */
} lstm_body;

typedef struct lstm_params {
    const lstm_body *body;
    uint64_t directions, steps, batch, inputs, hidden;
    bool backward[2], couple, quantized, has_layer;
    double clip;
    onxi_activation act[2][3];
    uint64_t memory_steps, memory_depth, depth, attention; /* depth: of keys; attention: of what is taken in */
    /* bytes into the memory of a thread */
    uint64_t gates, recurrent, bias, h, c, whole, sums, keys, query, shares, context, taken;
    /* packed weights, of a direction `packed_w_size` and `packed_r_size` bytes; into the memory of a thread: rows of
     * bytes, their sums, scales and zero points of columns */
    const char *packed_w, *packed_r;
    uint64_t packed_w_size, packed_r_size, bytes, totals, scales, zeros;
} lstm_params;

/* ---- a direction while it runs ---- */

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

/* The part of an operand of floats that is for this direction; NULL where it is left out. */
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

/* ---- products of quantized numbers (lstm_quantized.c) ---- */

/* Packs weights for the row's loops and takes memory of a thread from *total on; declines where they do not suit. */
onx_status onxi_ms_lstm_pack(onx_prepare *p, lstm_params *q, uint64_t *total);
/* Products of all steps of the input, which is quantized together up to the longest sequence; and of the states before
 * step `s`, those of all sequences that continue together. */
void onxi_ms_lstm_quantized_inputs(const lstm_lane *l);
void onxi_ms_lstm_quantized_states(const lstm_lane *l, uint64_t s);

#endif
