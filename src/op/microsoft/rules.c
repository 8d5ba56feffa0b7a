/* rules.c - conditions and rules of com.microsoft operators that are composed of standard operators, except the fused
 * ones. */
#include "op/microsoft/microsoft.h"

bool onxi_ms_text_is(onxi_call *call, const char *name, const char *text)
{
    const onxi_attr_value *a = onxi_call_attr(call, name);
    return a && a->type == ONX_ATTR_STRING && onx_str_is(a->s, text);
}

/* The activation names for which the rows have bodies. */
static onx_status check_activation(onxi_call *call)
{
    static const char *const words[] = {
        "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", ""
    };
    const onxi_attr_value *a = onxi_call_attr(call, "activation");
    if (!a || a->type != ONX_ATTR_STRING)
        return ONX_OK;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (onx_str_is(a->s, words[i]))
            return ONX_OK;
    return onxi_call_fail(call, "attribute activation is \"%.*s\", which is no activation that can be fused",
                          ONX_ARG(a->s));
}

onx_status onxi_rule_microsoft_fused_conv(onxi_call *call)
{
    ONX_TRY(check_activation(call));
    ONX_TRY(onxi_rule_conv(call));
    const onxi_type *y = &call->outputs[0];
    if (y->ranked && onxi_call_has_input(call, 3))
        ONX_TRY(onxi_call_want_one_way(call, 3, y->rank, y->dims));
    return ONX_OK;
}

onx_status onxi_rule_microsoft_fused_gemm(onxi_call *call)
{
    ONX_TRY(check_activation(call));
    return onxi_rule_gemm(call);
}

onx_status onxi_rule_microsoft_cdist(onxi_call *call)
{
    static const char *const words[] = { "euclidean", "sqeuclidean" };
    const onxi_type *a = onxi_call_ranked(call, 0), *b = onxi_call_ranked(call, 1);
    const onx_str metric = onxi_call_text(call, "metric");
    onxi_dim *dims, depth;
    if (!onx_str_is(metric, words[0]) && !onx_str_is(metric, words[1]))
        return onxi_call_fail(call, "attribute metric is \"%.*s\", neither euclidean nor sqeuclidean", ONX_ARG(metric));
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    if (a)
        dims[0] = a->dims[0];
    if (b)
        dims[1] = b->dims[0];
    return a && b ? onxi_call_unify(call, a->dims[1], b->dims[1], "the length of a vector", &depth) : ONX_OK;
}

onx_status onxi_rule_microsoft_qgemm(onxi_call *call)
{
    const onxi_type *a = onxi_call_ranked(call, 0), *b = onxi_call_ranked(call, 3);
    const bool quantized = onxi_call_has_input(call, 7);
    const uint32_t turn_a = onxi_call_is_set(call, "transA"), turn_b = onxi_call_is_set(call, "transB");
    int dtype = ONX_FLOAT;
    onxi_dim *dims, depth;
    if (quantized)
        dtype = onxi_call_has_input(call, 8) ? onxi_call_dtype(call, 8) : onxi_call_dtype(call, 0);
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 3, 2));
    ONX_TRY(onxi_call_output(call, 0, dtype, 2, &dims));
    if (a)
        dims[0] = a->dims[turn_a];
    if (b)
        dims[1] = b->dims[!turn_b];
    if (a && b)
        ONX_TRY(onxi_call_unify(call, a->dims[!turn_a], b->dims[turn_b], "the inner dimension", &depth));
    return onxi_call_has_input(call, 6) ? onxi_call_want_one_way(call, 6, 2, dims) : ONX_OK;
}

/* The output concatenates every third input, each followed by its scale and zero point. */
onx_status onxi_rule_microsoft_qlinear_concat(onxi_call *call)
{
    onxi_dim *dims = NULL;
    uint32_t axis = 0, rank = 0;
    onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 1));
    if (call->input_count < 5 || (call->input_count - 2) % 3)
        return onxi_call_fail(call, "%u inputs behind the first two are not one or more of three each",
                              call->input_count < 2 ? 0 : call->input_count - 2);
    for (uint32_t i = 2; i < call->input_count; i += 3) {
        const onxi_type *x = onxi_call_ranked(call, i);
        if (!x) {
            onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 1));
            return ONX_OK;
        }
        if (!dims) {
            rank = x->rank;
            ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), rank, &axis));
            ONX_TRY(onxi_call_output(call, 0, onxi_call_dtype(call, 1), rank, &dims));
            for (uint32_t k = 0; k < rank; k++)
                dims[k] = x->dims[k];
            continue;
        }
        ONX_TRY(onxi_call_want_rank(call, i, rank));
        for (uint32_t k = 0; k < rank; k++)
            if (k == axis)
                dims[k] = onxi_dim_add(call->dims, dims[k], x->dims[k]);
            else
                ONX_TRY(onxi_call_unify(call, dims[k], x->dims[k], "a dimension that is not joined", &dims[k]));
    }
    return ONX_OK;
}

onx_status onxi_rule_microsoft_matmul_integer16(onxi_call *call)
{
    const int a = onxi_call_dtype(call, 0), b = onxi_call_dtype(call, 1);
    ONX_TRY(onxi_rule_matmul(call));
    if (a != ONX_UNDEFINED && b != ONX_UNDEFINED) {
        call->outputs[0].kind = ONXI_TYPE_TENSOR;
        call->outputs[0].dtype = a == ONX_UINT16 && b == ONX_UINT16 ? ONX_UINT32 : ONX_INT32;
    }
    return ONX_OK;
}

onx_status onxi_rule_microsoft_block_size(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 1, &dims));
    dims[0] = 1;
    return ONX_OK;
}
