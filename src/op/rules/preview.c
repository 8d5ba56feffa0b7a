/* preview.c - rules of preview operators (domain ai.onnx.preview). */
#include "op/op_rules.h"

/* The graph takes and returns a tensor of rank 4: [batch, heads, queries, keys]. */
static onx_status check_modifier(onxi_call *call, const char *name, const onxi_type *scores)
{
    const onx_graph *graph = onxi_call_graph(call, name);
    onxi_type result = { .kind = ONXI_TYPE_NONE };
    if (!graph)
        return onxi_call_given(call, name) ? onxi_call_fail(call, "attribute %s is not a graph", name) : ONX_OK;
    if (graph->input_count != 1 || graph->output_count != 1)
        return onxi_call_fail(call, "%s has %u inputs and %u outputs, expected one of each", name, graph->input_count,
                              graph->output_count);
    ONX_TRY(call->ops->subgraph(call, graph, scores, 1, &result, 1));
    if (result.kind == ONXI_TYPE_NONE)
        return ONX_OK;
    if (result.kind != ONXI_TYPE_TENSOR)
        return onxi_call_fail(call, "%s does not give a tensor", name);
    if (result.dtype && scores->dtype && result.dtype != scores->dtype)
        return onxi_call_fail(call, "%s gives %s, expected %s", name, onx_dtype_name(result.dtype),
                              onx_dtype_name(scores->dtype));
    if (result.ranked && result.rank != 4)
        return onxi_call_fail(call, "%s gives a tensor of rank %u, expected 4", name, result.rank);
    return ONX_OK;
}

/* The element type of the scores. */
static onx_status score_dtype(onxi_call *call, int *out)
{
    const int dtype = onxi_call_dtype(call, 0);
    const int64_t asked = onxi_call_given(call, "softmax_precision") ? onxi_call_int(call, "softmax_precision")
                          : dtype == ONX_DOUBLE                      ? ONX_DOUBLE
                                                                     : ONX_FLOAT;
    if (asked != ONX_FLOAT && asked != ONX_FLOAT16 && asked != ONX_BFLOAT16 && asked != ONX_DOUBLE)
        return onxi_call_fail(call, "softmax_precision %lld is not a floating-point type", (long long)asked);
    *out = (int)asked;
    return ONX_OK;
}

/* Q [batch, heads, queries, size], K [batch, kv heads, keys, size], V [batch, kv heads, keys, value size]. */
onx_status onxi_rule_flex_attention(onxi_call *call)
{
    const onxi_type *q = onxi_call_ranked(call, 0), *k = onxi_call_ranked(call, 1), *v = onxi_call_ranked(call, 2);
    onxi_dim *dims, *score_dims, batch, heads, keys, size;
    int dtype = ONX_FLOAT;
    for (uint32_t i = 0; i < 3; i++)
        ONX_TRY(onxi_call_want_rank(call, i, 4));
    for (uint32_t i = 1; i < 3; i++)
        if (onxi_call_dtype(call, i) && onxi_call_dtype(call, 0) &&
            onxi_call_dtype(call, i) != onxi_call_dtype(call, 0))
            return onxi_call_fail(call, "inputs 0 and %u have the element types %s and %s", i,
                                  onx_dtype_name(onxi_call_dtype(call, 0)), onx_dtype_name(onxi_call_dtype(call, i)));
    ONX_TRY(score_dtype(call, &dtype));
    if (!q || !k || !v)
        return ONX_OK;
    ONX_TRY(onxi_call_unify(call, q->dims[0], k->dims[0], "the batch size", &batch));
    ONX_TRY(onxi_call_unify(call, batch, v->dims[0], "the batch size", &batch));
    ONX_TRY(onxi_call_unify(call, k->dims[1], v->dims[1], "the number of key and value heads", &heads));
    ONX_TRY(onxi_call_unify(call, k->dims[2], v->dims[2], "the number of keys", &keys));
    ONX_TRY(onxi_call_unify(call, q->dims[3], k->dims[3], "the size of queries and keys", &size));
    if (onxi_dim_is_const(q->dims[1]) && onxi_dim_is_const(heads) && q->dims[1] != heads &&
        (heads <= 0 || q->dims[1] % heads))
        return onxi_call_fail(call, "%lld query heads are not a multiple of %lld key heads", (long long)q->dims[1],
                              (long long)heads);
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    score_dims = ONXI_ARRAY(call->arena, onxi_dim, 4);
    if (!score_dims)
        return ONX_E_MEMORY;
    dims[0] = score_dims[0] = batch;
    dims[1] = score_dims[1] = q->dims[1];
    dims[2] = score_dims[2] = q->dims[2];
    dims[3] = v->dims[3];
    score_dims[3] = keys;
    const onxi_type scores = {
        .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype, .ranked = true, .rank = 4, .dims = score_dims
    };
    ONX_TRY(check_modifier(call, "score_mod", &scores));
    return check_modifier(call, "prob_mod", &scores);
}
