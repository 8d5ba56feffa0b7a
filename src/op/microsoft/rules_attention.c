/* rules_attention.c - inference rules for the attention variants of com.microsoft. */
#include "op/microsoft/microsoft.h"

/* A dimension of an input, or unknown. */
static onxi_dim dim_of(const onxi_type *t, uint32_t axis)
{
    return t && axis < t->rank ? t->dims[axis] : ONXI_DIM_UNKNOWN;
}

static onxi_dim divided(onxi_dim a, int64_t by)
{
    return onxi_dim_is_const(a) && by > 0 ? a / by : ONXI_DIM_UNKNOWN;
}

static onx_status heads_of(onxi_call *call, const char *name, int64_t *out)
{
    *out = onxi_call_int(call, name);
    return *out < 1 ? onxi_call_fail(call, "attribute %s is %lld, which is no number of heads", name, (long long)*out)
                    : ONX_OK;
}

/* Attention and QAttention: past keys and values come in one tensor, and so do present ones. */
onx_status onxi_rule_microsoft_attention(onxi_call *call)
{
    const bool quantized = onxi_schema_attr(call->schema, onx_str_of("qkv_hidden_sizes")) == NULL;
    const uint32_t past_at = quantized ? 8 : 4;
    const int dtype = onxi_call_dtype(call, quantized ? 2 : 0);
    const onxi_type *x = onxi_call_ranked(call, 0), *w = onxi_call_ranked(call, 1),
                    *past = onxi_call_ranked(call, past_at);
    uint32_t count = 0;
    const onxi_dim *sizes = quantized ? NULL : onxi_call_dims(call, "qkv_hidden_sizes", &count);
    int64_t heads;
    onxi_dim *dims, hidden, total = ONXI_DIM_UNKNOWN;
    ONX_TRY(heads_of(call, "num_heads", &heads));
    if (sizes && count != 3)
        return onxi_call_fail(call, "attribute qkv_hidden_sizes has %u numbers, not 3", count);
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    if (onxi_call_has_input(call, 2)) /* the body would broadcast other ranks as well */
        ONX_TRY(onxi_call_want_vector(call, 2, dim_of(w, 1)));
    if (onxi_call_has_input(call, past_at))
        ONX_TRY(onxi_call_want_rank(call, past_at, 5));
    hidden = sizes ? sizes[2] : divided(dim_of(w, 1), 3);
    ONX_TRY(onxi_call_output(call, 0, dtype, 3, &dims));
    dims[0] = dim_of(x, 0);
    dims[1] = dim_of(x, 1);
    dims[2] = hidden;
    if (!onxi_call_has_input(call, past_at))
        total = dims[1];
    else if (past)
        total = onxi_call_is_set(call, "past_present_share_buffer") ? past->dims[3]
                                                                    : onxi_dim_add(call->dims, past->dims[3], dims[1]);
    onxi_dim *present;
    ONX_TRY(onxi_call_output(call, 1, dtype, 5, &present));
    present[0] = 2;
    present[1] = dims[0];
    present[2] = heads;
    present[3] = total;
    present[4] = divided(sizes ? sizes[0] : hidden, heads);
    return ONX_OK;
}

/* MultiHeadAttention and its variant for a single query. If only queries are given, they contain packed keys and
 * values. */
onx_status onxi_rule_microsoft_multi_head_attention(onxi_call *call)
{
    const bool decodes = onxi_schema_attr(call->schema, onx_str_of("output_qk")) != NULL;
    const uint32_t past_at = decodes ? 5 : 6;
    const bool shared = decodes ? onxi_call_is_set(call, "past_present_share_buffer")
                                : onxi_call_has_input(call, past_at) && onxi_call_has_input(call, past_at + 2);
    const onxi_type *q = onxi_call_ranked(call, 0), *k = onxi_call_ranked(call, 1), *v = onxi_call_ranked(call, 2),
                    *past = onxi_call_ranked(call, past_at);
    int64_t before;
    const int dtype = onxi_call_dtype(call, 0);
    const bool has_key = onxi_call_has_input(call, 1), has_value = onxi_call_has_input(call, 2);
    int64_t heads;
    onxi_dim *y, *present, length = ONXI_DIM_UNKNOWN, size, v_size;
    ONX_TRY(heads_of(call, "num_heads", &heads));
    onxi_call_output_unranked(call, 0, dtype);
    for (uint32_t i = 1; i < 4; i++)
        onxi_call_output_unranked(call, i, i == 3 && decodes ? ONX_FLOAT : dtype);
    if (!q || (has_key && !k) || (has_value && !v))
        return ONX_OK;
    if (q->rank != 3 && q->rank != 5)
        return onxi_call_fail(call, "the query has rank %u, neither 3 nor 5", q->rank);
    size = q->rank == 5 ? q->dims[4] : divided(has_key ? q->dims[2] : divided(q->dims[2], 3), heads);
    v_size = !has_value ? size : v->rank == 4 ? v->dims[3] : v->rank == 3 ? divided(v->dims[2], heads) : size;
    length = !has_key ? q->dims[1] : k->rank == 4 ? k->dims[2] : k->rank ? dim_of(k, 1) : ONXI_DIM_UNKNOWN;
    ONX_TRY(onxi_call_output(call, 0, dtype, 3, &y));
    y[0] = q->dims[0];
    y[1] = q->dims[1];
    y[2] = onxi_dim_mul(call->dims, v_size, heads);
    const onxi_dim added = length;
    if (has_key && k->rank == 4)
        ;
    else if (shared)
        length = dim_of(past, 2);
    else if (onxi_call_has_input(call, past_at))
        length = past ? onxi_dim_add(call->dims, dim_of(past, 2), length) : ONXI_DIM_UNKNOWN;
    for (uint32_t i = 1; i < 3; i++) {
        ONX_TRY(onxi_call_output(call, i, dtype, 4, &present));
        present[0] = q->dims[0];
        present[1] = heads;
        present[2] = length;
        present[3] = i == 1 ? size : v_size;
    }
    ONX_TRY(onxi_call_output(call, 3, decodes ? ONX_FLOAT : dtype, 4, &present));
    present[0] = q->dims[0];
    present[1] = heads;
    present[2] = q->dims[1];
    present[3] = length;
    if (shared && !(has_key && k->rank == 4))
        present[3] = onxi_call_const_int(call, past_at + 2, &before) && before >= 0 && before < INT32_MAX
                         ? onxi_dim_add(call->dims, before, added)
                         : ONXI_DIM_UNKNOWN;
    return ONX_OK;
}

/* The present cache is as long as the past cache, or as the longest sequence so far. */
onx_status onxi_rule_microsoft_group_query_attention(onxi_call *call)
{
    const onxi_type *q = onxi_call_ranked(call, 0), *past = onxi_call_ranked(call, 3);
    const int dtype = onxi_call_dtype(call, 0);
    const bool packed = !onxi_call_has_input(call, 1);
    int64_t heads, kv_heads, total;
    onxi_dim *y, *present, size = ONXI_DIM_UNKNOWN;
    ONX_TRY(heads_of(call, "num_heads", &heads));
    ONX_TRY(heads_of(call, "kv_num_heads", &kv_heads));
    if (heads % kv_heads)
        return onxi_call_fail(call, "%lld heads are no multiple of %lld heads of keys", (long long)heads,
                              (long long)kv_heads);
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_output(call, 0, dtype, 3, &y));
    if (q) {
        size = divided(q->dims[2], packed ? heads + 2 * kv_heads : heads);
        y[0] = q->dims[0];
        y[1] = q->dims[1];
        y[2] = packed ? onxi_dim_mul(call->dims, size, heads) : q->dims[2];
    }
    for (uint32_t i = 1; i < 3; i++) {
        const int cache = onxi_call_has_input(call, i + 2) ? onxi_call_dtype(call, i + 2) : dtype;
        ONX_TRY(onxi_call_output(call, i, cache, 4, &present));
        present[0] = q ? q->dims[0] : ONXI_DIM_UNKNOWN;
        present[1] = kv_heads;
        present[3] = onxi_call_has_input(call, 3) ? dim_of(past, 3) : size; /* two 4-bit values are one element */
        if (onxi_call_is_set(call, "sliding_window_cache"))
            present[2] = dim_of(past, 2);
        else if (!onxi_call_const_int(call, 6, &total))
            continue;
        else if (!onxi_call_has_input(call, 3))
            present[2] = total;
        else if (past && past->rank == 4 && onxi_dim_is_const(past->dims[2]))
            present[2] = past->dims[2] > total ? past->dims[2] : total;
    }
    ONX_TRY(onxi_call_output(call, 3, dtype, 4, &present));
    present[0] = q ? q->dims[0] : ONXI_DIM_UNKNOWN;
    present[1] = heads;
    present[2] = q ? q->dims[1] : ONXI_DIM_UNKNOWN;
    if (onxi_call_const_int(call, 6, &total))
        present[3] = total;
    return ONX_OK;
}

onx_status onxi_rule_microsoft_sparse_attention(onxi_call *call)
{
    const onxi_type *q = onxi_call_ranked(call, 0);
    const bool packed = !onxi_call_has_input(call, 1);
    int64_t heads, kv_heads;
    onxi_dim *y;
    ONX_TRY(heads_of(call, "num_heads", &heads));
    ONX_TRY(heads_of(call, "kv_num_heads", &kv_heads));
    if (heads % kv_heads)
        return onxi_call_fail(call, "%lld heads are no multiple of %lld heads of keys", (long long)heads,
                              (long long)kv_heads);
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 3, 4));
    ONX_TRY(onxi_call_want_rank(call, 4, 4));
    ONX_TRY(onxi_call_output(call, 0, onxi_call_dtype(call, 0), 3, &y));
    if (q) {
        y[0] = q->dims[0];
        y[1] = q->dims[1];
        y[2] = packed ? onxi_dim_mul(call->dims, divided(q->dims[2], heads + 2 * kv_heads), heads) : q->dims[2];
    }
    onxi_call_same(call, 1, 3);
    onxi_call_same(call, 2, 4);
    return ONX_OK;
}
