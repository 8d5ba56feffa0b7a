/* rnn.c - rules of recurrent layers: RNN, GRU and LSTM have the same shapes. */
#include "op/op_rules.h"

/* How many directions the layer runs in; unknown for a word that means nothing. The default of GRU-1 was published as
 * "foward". */
static onxi_dim directions(onxi_call *call)
{
    if (onxi_call_text_is(call, "direction", "forward") || onxi_call_text_is(call, "direction", "foward") ||
        onxi_call_text_is(call, "direction", "reverse"))
        return 1;
    return onxi_call_text_is(call, "direction", "bidirectional") ? 2 : ONXI_DIM_UNKNOWN;
}

/* The attribute, or the last axis of the recurrence weights. */
static onxi_dim hidden_size(onxi_call *call)
{
    const int64_t size = onxi_call_given(call, "hidden_size") ? onxi_call_int(call, "hidden_size") : 0;
    if (size > 0)
        return size;
    const onxi_type *r = onxi_call_ranked(call, 2);
    return r && r->rank == 3 ? r->dims[2] : ONXI_DIM_UNKNOWN;
}

/* Weights, biases, lengths and states have to match the directions and the hidden size when the layer runs; the
 * reference implementation does not check them during inference. */
static onx_status recurrent_operands(onxi_call *call, const onxi_type *x, bool batch_first, onxi_dim count,
                                     onxi_dim hidden)
{
    onxi_dims *d = call->dims;
    const int64_t gates = call->op == ONXI_ID_LSTM ? 4 : call->op == ONXI_ID_GRU ? 3 : 1;
    const onxi_dim rows = onxi_dim_mul(d, hidden, gates), batch = x ? x->dims[!batch_first] : ONXI_DIM_UNKNOWN;
    const onxi_dim state[] = { batch_first ? batch : count, batch_first ? count : batch, hidden };
    ONX_TRY(onxi_call_want_dims(call, 1, 3, (onxi_dim[]){ count, rows, x ? x->dims[2] : ONXI_DIM_UNKNOWN }));
    ONX_TRY(onxi_call_want_dims(call, 2, 3, (onxi_dim[]){ count, rows, hidden }));
    ONX_TRY(onxi_call_want_dims(call, 3, 2, (onxi_dim[]){ count, onxi_dim_mul(d, rows, 2) }));
    ONX_TRY(onxi_call_want_vector(call, 4, batch));
    ONX_TRY(onxi_call_want_dims(call, 5, 3, state));
    if (gates < 4)
        return ONX_OK;
    ONX_TRY(onxi_call_want_dims(call, 6, 3, state));
    return onxi_call_want_dims(call, 7, 2, (onxi_dim[]){ count, onxi_dim_mul(d, hidden, 3) });
}

onx_status onxi_rule_recurrent(onxi_call *call)
{
    const bool batch_first = onxi_call_is_set(call, "layout");
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims, length = ONXI_DIM_UNKNOWN, batch = ONXI_DIM_UNKNOWN;
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    if (x) {
        length = x->dims[batch_first];
        batch = x->dims[!batch_first];
    }
    for (uint32_t i = 0; i < call->output_count; i++)
        onxi_call_output_unranked(call, i, onxi_call_dtype(call, 0));
    /* Before version 7 an output keeps its position even if output_sequence allows the sequence to be omitted. */
    const onxi_dim count = directions(call), hidden = hidden_size(call);
    if (call->running)
        ONX_TRY(recurrent_operands(call, x, batch_first, count, hidden));
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    dims[0] = batch_first ? batch : length;
    dims[1] = batch_first ? length : count;
    dims[2] = batch_first ? count : batch;
    dims[3] = hidden;
    for (uint32_t i = 1; i < 3; i++) {
        ONX_TRY(onxi_call_shape(call, i, 3, &dims));
        dims[0] = batch_first ? batch : count;
        dims[1] = batch_first ? count : batch;
        dims[2] = hidden;
    }
    return ONX_OK;
}
