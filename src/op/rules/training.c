/* training.c - rules of optimizers and of Gradient. */
#include "op/op_rules.h"

/* R and T, then `groups` lists of equal length, one of them the gradients; the other lists are also outputs. */
static onx_status optimizer(onxi_call *call, uint32_t groups)
{
    enum { BEFORE = 2, GRADIENTS = 1 };
    const uint32_t given = call->input_count > BEFORE ? call->input_count - BEFORE : 0, count = given / groups;
    if (!given || given % groups)
        return onxi_call_fail(call, "%u tensors follow R and T, expected a multiple of %u", given, groups);
    for (uint32_t i = BEFORE + count; i < call->input_count; i++) {
        const uint32_t tensor = BEFORE + (i - BEFORE) % count;
        const int dtype = onxi_call_dtype(call, i), other = onxi_call_dtype(call, tensor);
        if (dtype && other && dtype != other)
            return onxi_call_fail(call, "input %u has elements of type %s, input %u of type %s", i,
                                  onx_dtype_name(dtype), tensor, onx_dtype_name(other));
    }
    for (uint32_t group = 0, output = 0; group < groups; group++)
        for (uint32_t i = 0; i < count && group != GRADIENTS; i++)
            onxi_call_same(call, output++, BEFORE + group * count + i);
    return ONX_OK;
}

/* Adagrad: tensors, gradients, squared gradients. Momentum: tensors, gradients, momenta. */
onx_status onxi_rule_optimizer_3(onxi_call *call)
{
    return optimizer(call, 3);
}

/* Adam: tensors, gradients, averages of gradients and of their squares. */
onx_status onxi_rule_optimizer_4(onxi_call *call)
{
    return optimizer(call, 4);
}

/* The gradients have the types of xs; the inputs are xs, then zs. */
onx_status onxi_rule_gradient(onxi_call *call)
{
    for (uint32_t i = 0; i < call->output_count && i < onxi_call_list_count(call, "xs"); i++)
        onxi_call_same(call, i, i);
    return ONX_OK;
}
