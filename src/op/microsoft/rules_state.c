/* rules_state.c - inference rules of com.microsoft operators that carry a state along a sequence. */
#include "op/microsoft/microsoft.h"

/* How many states are kept, along an axis in front; 0: the last one, without that axis. */
static onx_status window_of(onxi_call *call, int64_t *out)
{
    *out = onxi_call_int(call, "state_window");
    return *out >= 0 && *out <= 8
               ? ONX_OK
               : onxi_call_fail(call, "attribute state_window is %lld, expected 0 to 8", (long long)*out);
}

/* A packed input [batch, length, heads * size]; computes *size. */
static onx_status packed(onxi_call *call, uint32_t input, int64_t heads, onxi_dim *batch, onxi_dim *length,
                         onxi_dim *size)
{
    const onxi_type *x = onxi_call_ranked(call, input);
    ONX_TRY(onxi_call_want_rank(call, input, 3));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_unify(call, *batch, x->dims[0], "the batch size", batch));
    ONX_TRY(onxi_call_unify(call, *length, x->dims[1], "the length of the sequence", length));
    if (!size)
        return ONX_OK;
    if (onxi_dim_is_const(x->dims[2]) && x->dims[2] % heads)
        return onxi_call_fail(call, "input %u has %lld columns, which is no multiple of %lld heads", input,
                              (long long)x->dims[2], (long long)heads);
    return onxi_call_unify(call, *size, onxi_dim_div(call->dims, x->dims[2], heads), "the size of a head", size);
}

onx_status onxi_rule_microsoft_linear_attention(onxi_call *call)
{
    const int64_t q_heads = onxi_call_int(call, "q_num_heads"), kv_heads = onxi_call_int(call, "kv_num_heads"),
                  more = q_heads > kv_heads ? q_heads : kv_heads, less = q_heads > kv_heads ? kv_heads : q_heads;
    onxi_dim batch = ONXI_DIM_UNKNOWN, length = ONXI_DIM_UNKNOWN, key = ONXI_DIM_UNKNOWN, value = ONXI_DIM_UNKNOWN,
             *dims;
    if (less < 1 || more > INT32_MAX || more % less)
        return onxi_call_fail(call, "q_num_heads is %lld and kv_num_heads %lld, and neither is a multiple of the other",
                              (long long)q_heads, (long long)kv_heads);
    int64_t window;
    ONX_TRY(window_of(call, &window));
    onxi_call_output_unranked(call, 1, onxi_call_dtype(call, onxi_call_dtype(call, 3) ? 3 : 0));
    ONX_TRY(packed(call, 0, q_heads, &batch, &length, &key));
    ONX_TRY(packed(call, 1, kv_heads, &batch, &length, &key));
    ONX_TRY(packed(call, 2, kv_heads, &batch, &length, &value));
    ONX_TRY(packed(call, 4, kv_heads, &batch, &length, NULL));
    ONX_TRY(packed(call, 5, kv_heads, &batch, &length, NULL));
    const onxi_dim states[] = { window, batch, kv_heads, key, value }, *state = window ? states : states + 1;
    const uint32_t rank = window ? 5 : 4;
    ONX_TRY(onxi_call_want_dims(call, 3, rank, state));
    ONX_TRY(onxi_call_shape(call, 0, 3, &dims));
    dims[0] = batch;
    dims[1] = length;
    dims[2] = onxi_dim_mul(call->dims, more, value);
    if (call->output_count < 2)
        return ONX_OK;
    ONX_TRY(onxi_call_output(call, 1, call->outputs[1].dtype, rank, &dims));
    memcpy(dims, state, rank * sizeof *dims);
    return ONX_OK;
}

/* Weights are [channels, 1, taps], whatever the layout of the other inputs. */
static onx_status causal_weights(onxi_call *call, int64_t dilation, onxi_dim *channels, onxi_dim *kept)
{
    const onxi_type *w = onxi_call_ranked(call, 1);
    ONX_TRY(onxi_call_want_rank(call, 1, 3));
    if (w) {
        ONX_TRY(onxi_call_unify(call, *channels, w->dims[0], "the number of channels", channels));
        ONX_TRY(onxi_call_want_dim(call, 1, 1, 1));
        if (onxi_dim_is_const(w->dims[2]) && (w->dims[2] < 1 || w->dims[2] > INT32_MAX))
            return onxi_call_fail(call, "the kernel has %lld taps", (long long)w->dims[2]);
        *kept = onxi_dim_mul(call->dims, onxi_dim_sub(call->dims, w->dims[2], 1), dilation);
    }
    return onxi_call_want_vector(call, 2, *channels);
}

bool onxi_ms_conv_is_extended(onxi_call *call)
{
    return onxi_call_is_set(call, "input_channels") || onxi_call_is_set(call, "input_channel_offset") ||
           onxi_call_is_set(call, "state_length") || onxi_call_is_set(call, "state_update_capacity") ||
           onxi_call_int(call, "state_channels_last") != -1 || onxi_call_is_set(call, "state_window") ||
           onxi_call_wants_output(call, 2);
}

/* The dims that follow from the attributes; states have other layouts than the operands. */
static onx_status extended_conv(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *w = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    const onxi_dim channels = w && w->rank ? w->dims[0] : ONXI_DIM_UNKNOWN;
    const int64_t capacity = onxi_call_int(call, "state_update_capacity");
    if (capacity < 0 || capacity > 8)
        return onxi_call_fail(call, "attribute state_update_capacity is %lld, expected 0 to 8", (long long)capacity);
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, 3, &dims));
    memcpy(dims, x->dims, 3 * sizeof *dims);
    if (onxi_call_is_set(call, "input_channels"))
        dims[2] = channels;
    if (!onxi_call_wants_output(call, 2))
        return ONX_OK;
    ONX_TRY(onxi_call_output(call, 2, x->dtype, 3, &dims));
    dims[0] = x->dims[0];
    dims[1] = capacity;
    dims[2] = channels;
    return ONX_OK;
}

onx_status onxi_rule_microsoft_gated_norm(onxi_call *call)
{
    const onx_str activation = onxi_call_text(call, "activation");
    if (!onx_str_is(activation, "silu") && !onx_str_is(activation, "swish") && !onx_str_is(activation, "sigmoid"))
        return onxi_call_fail(call, "attribute activation is \"%.*s\", expected silu, swish or sigmoid",
                              ONX_ARG(activation));
    onxi_call_same(call, 0, 0);
    return ONX_OK;
}

onx_status onxi_rule_microsoft_causal_conv(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *past = onxi_call_ranked(call, 3);
    const bool last = onxi_call_is_set(call, "channels_last");
    const int64_t dilation = onxi_call_int(call, "dilation"), spatial = onxi_call_int(call, "ndim");
    const onx_str activation = onxi_call_text(call, "activation");
    onxi_dim channels = ONXI_DIM_UNKNOWN, kept = ONXI_DIM_UNKNOWN, *dims;
    onxi_call_output_unranked(call, 1, onxi_call_dtype(call, 0));
    if (!onx_str_is(activation, "none") && !onx_str_is(activation, "silu") && !onx_str_is(activation, "swish"))
        return onxi_call_fail(call, "attribute activation is \"%.*s\"", ONX_ARG(activation));
    if (dilation < 1 || dilation > INT32_MAX)
        return onxi_call_fail(call, "attribute dilation is %lld", (long long)dilation);
    if (spatial != 1)
        return onxi_call_fail(call, "attribute ndim is %lld, and only sequences are done", (long long)spatial);
    int64_t window;
    ONX_TRY(window_of(call, &window));
    if (onxi_ms_conv_is_extended(call) && !window)
        return extended_conv(call);
    const uint32_t lead = window ? 1 : 0;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(last ? onxi_call_want_least_rank(call, 0, 3) : onxi_call_want_rank(call, 0, 3));
    if (x)
        channels = last ? onxi_call_product(call, x->dims, 2, x->rank) : x->dims[1];
    ONX_TRY(causal_weights(call, dilation, &channels, &kept));
    if (past && x) {
        ONX_TRY(onxi_call_want_rank(call, 3, x->rank + lead));
        ONX_TRY(onxi_call_unify(call, kept, past->dims[lead + (last ? 1 : 2)], "the length of the state", &kept));
        for (uint32_t i = 0; i < x->rank; i++)
            if (i != (last ? 1u : 2u))
                ONX_TRY(onxi_call_want_dim(call, 3, i + lead, x->dims[i]));
    }
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_output(call, 1, x->dtype, x->rank + lead, &dims));
    dims[0] = window;
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i + lead] = i == (last ? 1u : 2u) ? kept : x->dims[i];
    return ONX_OK;
}

onx_status onxi_rule_microsoft_mrotary(onxi_call *call)
{
    uint32_t count;
    const int64_t *section = onxi_call_ints(call, "mrope_section", &count),
                  layout = onxi_call_int(call, "mrope_layout");
    const onxi_type *x = onxi_call_ranked(call, 0);
    int64_t half = 0;
    onxi_call_same(call, 0, 0);
    if (layout != 0 && layout != 1)
        return onxi_call_fail(call, "attribute mrope_layout is %lld, neither 0 nor 1", (long long)layout);
    if (count != 3)
        return onxi_call_fail(call, "attribute mrope_section has %u numbers, not 3", count);
    for (uint32_t i = 0; i < 3; half += section[i++])
        if (section[i] < 0 || section[i] > INT32_MAX)
            return onxi_call_fail(call, "attribute mrope_section has the number %lld", (long long)section[i]);
    if (x && x->rank != 3 && x->rank != 4)
        return onxi_call_fail(call, "input 0 has rank %u, expected 3 or 4", x->rank);
    const onxi_dim batch = x ? x->dims[0] : ONXI_DIM_UNKNOWN, length = x ? x->dims[x->rank - 2] : ONXI_DIM_UNKNOWN;
    const onxi_dim positions[] = { 3, batch, length }, cache[] = { ONXI_DIM_UNKNOWN, half };
    ONX_TRY(onxi_call_want_dims(call, 1, 3, positions));
    ONX_TRY(onxi_call_want_dims(call, 2, 2, cache));
    return onxi_call_want_dims(call, 3, 2, cache);
}

onx_status onxi_rule_microsoft_engram_gate(onxi_call *call)
{
    const onxi_type *key = onxi_call_ranked(call, 0);
    onxi_call_same(call, 0, 0);
    if (onxi_call_wants_output(call, 1)) {
        if (!onxi_call_has_input(call, 5))
            return onxi_call_fail(call, "gated_value_normed is an output, and conv_norm_scale is not given");
        onxi_call_same(call, 1, 0);
    }
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    if (!key)
        return ONX_OK;
    const onxi_dim value[] = { key->dims[0], key->dims[1], key->dims[3] }, *scale = key->dims + 2;
    ONX_TRY(onxi_call_want_dims(call, 1, 4, key->dims));
    ONX_TRY(onxi_call_want_dims(call, 2, 3, value));
    ONX_TRY(onxi_call_want_dims(call, 3, 2, scale));
    ONX_TRY(onxi_call_want_dims(call, 5, 2, scale));
    return onxi_call_want_dims(call, 4, 2, scale);
}

onx_status onxi_rule_microsoft_ngram_hash(onxi_call *call)
{
    const int64_t size = onxi_call_int(call, "max_ngram_size"), heads = onxi_call_int(call, "n_head_per_ngram");
    const onxi_type *ids = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    if (size < 2 || size > INT32_MAX)
        return onxi_call_fail(call, "attribute max_ngram_size is %lld", (long long)size);
    if (heads < 1 || heads > INT32_MAX)
        return onxi_call_fail(call, "attribute n_head_per_ngram is %lld", (long long)heads);
    const onxi_dim past[] = { ids ? ids->dims[0] : ONXI_DIM_UNKNOWN, size - 1 }, all = (size - 1) * heads;
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    const onxi_type *factors = onxi_call_ranked(call, 1);
    ONX_TRY(onxi_call_want_rank(call, 1, 1));
    if (factors && onxi_dim_is_const(factors->dims[0]) && factors->dims[0] < size)
        return onxi_call_fail(call, "there are %lld multipliers, expected at least %lld", (long long)factors->dims[0],
                              (long long)size);
    ONX_TRY(onxi_call_want_vector(call, 2, all));
    ONX_TRY(onxi_call_want_dims(call, 3, 2, past));
    ONX_TRY(onxi_call_want_vector(call, 4, all));
    if (ids)
        ONX_TRY(onxi_call_want_dims(call, 6, 2, ids->dims));
    ONX_TRY(onxi_call_output(call, 0, onxi_call_dtype(call, 0), 3, &dims));
    dims[0] = past[0];
    dims[1] = ids ? ids->dims[1] : ONXI_DIM_UNKNOWN;
    dims[2] = all;
    ONX_TRY(onxi_call_output(call, 1, onxi_call_dtype(call, 0), 2, &dims));
    memcpy(dims, past, sizeof past);
    return ONX_OK;
}

onx_status onxi_rule_microsoft_lstm(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *r = onxi_call_ranked(call, 2);
    onxi_dim *dims, hidden = ONXI_DIM_UNKNOWN;
    if (r && r->rank == 3) /* quantized weights are transposed */
        hidden = r->dims[call->op == ONXI_ID_microsoft_DynamicQuantizeLSTM ? 1 : 2];
    if (onxi_call_given(call, "hidden_size"))
        hidden = onxi_call_int(call, "hidden_size");
    if (onxi_dim_is_const(hidden) && (hidden < 1 || hidden > INT32_MAX))
        return onxi_call_fail(call, "attribute hidden_size is %lld", (long long)hidden);
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 2, 3));
    const onxi_dim count = onxi_ms_text_is(call, "direction", "bidirectional") ? 2 : 1;
    for (uint32_t i = 0; i < 3; i++) {
        ONX_TRY(onxi_call_output(call, i, onxi_call_dtype(call, 0), i ? 3 : 4, &dims));
        if (!i)
            *dims++ = x ? x->dims[0] : ONXI_DIM_UNKNOWN;
        dims[0] = count;
        dims[1] = x ? x->dims[1] : ONXI_DIM_UNKNOWN;
        dims[2] = hidden;
    }
    return ONX_OK;
}

/* ---- tokens of several sequences in one axis ---- */

/* The sizes of GatedDeltaNet. Tokens are one axis, or batch and length. */
typedef struct delta_net {
    uint32_t lead; /* axes of tokens */
    onxi_dim batch, heads, value_heads, key, value;
} delta_net;

/* Queries and keys have as many heads; values have their own. Packed together, they need the state for their sizes. */
static onx_status delta_operands(onxi_call *call, delta_net *d)
{
    const onxi_type *q = onxi_call_ranked(call, 0), *v = onxi_call_ranked(call, 2), *state = onxi_call_ranked(call, 6);
    const bool packed = !onxi_call_has_input(call, 1) && !onxi_call_has_input(call, 2);
    if (onxi_call_has_input(call, 1) != onxi_call_has_input(call, 2))
        return onxi_call_fail(call, "key and value are given together or not at all");
    if (!onxi_call_has_input(call, 6) && (packed || !onxi_call_has_input(call, 3)))
        return onxi_call_fail(call, "initial_state is missing, and %s",
                              packed ? "queries, keys and values are packed" : "cu_seqlens is missing too");
    ONX_TRY(onxi_call_want_rank(call, 6, 4));
    if (state) {
        d->batch = state->dims[0];
        d->value_heads = state->dims[1];
        d->value = state->dims[2];
        d->key = state->dims[3];
    }
    if (!q)
        return ONX_OK;
    const uint32_t least = packed ? 2 : 3;
    if (q->rank < least || q->rank > least + (onxi_call_has_input(call, 3) ? 0 : 1))
        return onxi_call_fail(call, "input 0 has rank %u, expected %u", q->rank, least);
    d->lead = q->rank - least + 1;
    if (packed) {
        const onxi_dim values = onxi_dim_mul(call->dims, d->value_heads, d->value),
                       rest = onxi_dim_sub(call->dims, q->dims[d->lead], values);
        d->heads = onxi_dim_div(call->dims, onxi_dim_div(call->dims, rest, 2), d->key);
        return ONX_OK;
    }
    d->heads = q->dims[d->lead];
    ONX_TRY(onxi_call_unify(call, d->key, q->dims[d->lead + 1], "the size of a key", &d->key));
    ONX_TRY(onxi_call_want_dims(call, 1, q->rank, q->dims));
    ONX_TRY(onxi_call_want_rank(call, 2, q->rank));
    for (uint32_t i = 0; v && i < d->lead; i++)
        ONX_TRY(onxi_call_want_dim(call, 2, i, q->dims[i]));
    if (!v)
        return ONX_OK;
    ONX_TRY(onxi_call_unify(call, d->value_heads, v->dims[d->lead], "the number of heads", &d->value_heads));
    return onxi_call_unify(call, d->value, v->dims[d->lead + 1], "the size of a value", &d->value);
}

static onx_status delta_words(onxi_call *call)
{
    const onx_str gate = onxi_call_text(call, "gate_activation"), beta = onxi_call_text(call, "beta_activation"),
                  rule = onxi_call_text(call, "update_rule");
    const int64_t capacity = onxi_call_int(call, "state_update_capacity");
    if (!onx_str_is(gate, "none") && !onx_str_is(gate, "softplus") && !onx_str_is(gate, "qwen") &&
        !onx_str_is(gate, "sigmoid") && !onx_str_is(gate, "kda"))
        return onxi_call_fail(call, "attribute gate_activation is \"%.*s\", expected none, softplus or sigmoid",
                              ONX_ARG(gate));
    if (!onx_str_is(beta, "none") && !onx_str_is(beta, "sigmoid"))
        return onxi_call_fail(call, "attribute beta_activation is \"%.*s\", expected none or sigmoid", ONX_ARG(beta));
    if (!onx_str_is(rule, "linear") && !onx_str_is(rule, "gated") && !onx_str_is(rule, "delta") &&
        !onx_str_is(rule, "gated_delta"))
        return onxi_call_fail(call, "attribute update_rule is \"%.*s\", expected linear, gated, delta or gated_delta",
                              ONX_ARG(rule));
    if (capacity < 0 || capacity > 8)
        return onxi_call_fail(call, "attribute state_update_capacity is %lld, expected 0 to 8", (long long)capacity);
    return ONX_OK;
}

onx_status onxi_rule_microsoft_gated_delta_net(onxi_call *call)
{
    delta_net d = { 1, ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN };
    const onxi_type *q = onxi_call_ranked(call, 0), *lengths = onxi_call_ranked(call, 3),
                    *decay = onxi_call_ranked(call, 4);
    onxi_dim *dims;
    ONX_TRY(delta_words(call));
    ONX_TRY(delta_operands(call, &d));
    ONX_TRY(onxi_call_want_rank(call, 3, 1));
    if (lengths)
        ONX_TRY(onxi_call_unify(call, d.batch, onxi_dim_sub(call->dims, lengths->dims[0], 1), "the number of sequences",
                                &d.batch));
    if (decay && q) { /* of a head, or of each element of its key */
        if (decay->rank != d.lead + 1 && decay->rank != d.lead + 2)
            return onxi_call_fail(call, "input 4 has rank %u, expected %u or %u", decay->rank, d.lead + 1, d.lead + 2);
        ONX_TRY(onxi_call_want_dim(call, 4, d.lead, d.value_heads));
        if (decay->rank == d.lead + 2)
            ONX_TRY(onxi_call_want_dim(call, 4, d.lead + 1, d.key));
    }
    if (onxi_dim_is_const(d.heads) && onxi_dim_is_const(d.value_heads) &&
        (d.heads < 1 || d.value_heads % d.heads || d.value_heads < 1))
        return onxi_call_fail(call, "there are %lld heads of values for %lld heads of queries, expected a multiple",
                              (long long)d.value_heads, (long long)d.heads);
    if (q) {
        ONX_TRY(onxi_call_shape(call, 0, d.lead + 2, &dims));
        for (uint32_t i = 0; i < d.lead; i++)
            dims[i] = q->dims[i];
        dims[d.lead] = d.value_heads;
        dims[d.lead + 1] = d.value;
    }
    const onxi_dim state[] = { d.batch, d.value_heads, d.value, d.key };
    if (onxi_call_wants_output(call, 1)) {
        ONX_TRY(onxi_call_shape(call, 1, 4, &dims));
        memcpy(dims, state, sizeof state);
    }
    if (!onxi_call_wants_output(call, 2))
        return ONX_OK;
    onxi_dims *a = call->dims;
    const onxi_dim keys = onxi_dim_mul(a, d.value_heads, d.key),
                   decays = !decay && onxi_call_has_input(call, 4) ? ONXI_DIM_UNKNOWN
                            : decay && decay->rank == d.lead + 2   ? keys
                                                                   : d.value_heads,
                   width = onxi_dim_add(a, onxi_dim_add(a, decays, onxi_dim_mul(a, d.heads, d.key)),
                                        onxi_dim_mul(a, d.value_heads, d.value));
    ONX_TRY(onxi_call_shape(call, 2, 2, &dims));
    dims[0] = d.batch;
    dims[1] = onxi_dim_mul(a, onxi_call_int(call, "state_update_capacity"), width);
    return ONX_OK;
}
