/* op_rules_math.c - rules of matrix products, losses and what else mathematics has beyond elementwise operators. */
#include "op/op_rules.h"

/* The shape of a matrix product as numpy has it; vectors take part as a row or a column that vanishes. */
static onx_status matmul(onxi_call *call, uint32_t left, uint32_t right)
{
    const onxi_type *a = onxi_call_ranked(call, left), *b = onxi_call_ranked(call, right);
    onxi_dim *dims, inner;
    if (!a || !b)
        return ONX_OK;
    if (a->rank == 0 || b->rank == 0)
        return onxi_call_fail(call, "a factor is a scalar");
    uint32_t batch_a = a->rank < 2 ? 0 : a->rank - 2, batch_b = b->rank < 2 ? 0 : b->rank - 2;
    uint32_t batch = batch_a > batch_b ? batch_a : batch_b;
    ONX_TRY(onxi_call_unify(call, a->dims[a->rank - 1], b->dims[b->rank == 1 ? 0 : b->rank - 2], "the inner dimension",
                            &inner));
    ONX_TRY(onxi_call_shape(call, 0, batch + (a->rank > 1) + (b->rank > 1), &dims));
    onx_status status = ONX_OK;
    for (uint32_t k = 0; k < batch && status == ONX_OK; k++) {
        onxi_dim x = k + batch_a < batch ? 1 : a->dims[k + batch_a - batch];
        onxi_dim y = k + batch_b < batch ? 1 : b->dims[k + batch_b - batch];
        status = onxi_call_broadcast(call, x, y, &dims[k]);
    }
    if (a->rank > 1)
        dims[batch] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[batch + (a->rank > 1)] = b->dims[b->rank - 1];
    return status;
}

onx_status onxi_rule_matmul(onxi_call *call)
{
    return matmul(call, 0, 1);
}

onx_status onxi_rule_qlinear_matmul(onxi_call *call)
{
    if (onxi_call_dtype(call, 7))
        onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 7));
    return matmul(call, 0, 3);
}

onx_status onxi_rule_gemm(onxi_call *call)
{
    const onxi_type *a = onxi_call_ranked(call, 0), *b = onxi_call_ranked(call, 1);
    bool trans_a = onxi_call_int(call, "transA", 0) != 0, trans_b = onxi_call_int(call, "transB", 0) != 0;
    onxi_dim *dims, inner;
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    if (a)
        dims[0] = a->dims[trans_a];
    if (b)
        dims[1] = b->dims[!trans_b];
    return a && b ? onxi_call_unify(call, a->dims[!trans_a], b->dims[trans_b], "the inner dimension", &inner) : ONX_OK;
}
