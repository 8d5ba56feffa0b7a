/* quantization.c - rules of linear quantisation. */
#include "op/op_rules.h"

/* The type in attribute output_dtype (since version 21), or ONX_UNDEFINED. */
static onx_status wanted_dtype(onxi_call *call, int *out)
{
    const onxi_attr_value *wanted = onxi_call_attr(call, "output_dtype");
    const int64_t dtype = wanted ? wanted->i : ONX_UNDEFINED;
    *out = ONX_UNDEFINED;
    if (dtype != ONX_UNDEFINED && !onx_dtype_name(dtype))
        return onxi_call_fail(call, "output_dtype %lld is not an element type", (long long)dtype);
    *out = (int)dtype;
    return ONX_OK;
}

/* The output type is that of the zero point, or of attribute output_dtype; without both it is uint8. */
onx_status onxi_rule_quantize_linear(onxi_call *call)
{
    int wanted, dtype = onxi_call_dtype(call, 2);
    ONX_TRY(wanted_dtype(call, &wanted));
    if (wanted && dtype && wanted != dtype)
        return onxi_call_fail(call, "output_dtype is %s, but the zero point has type %s", onx_dtype_name(wanted),
                              onx_dtype_name(dtype));
    if (!dtype)
        dtype = wanted || onxi_call_has_input(call, 2) ? wanted : ONX_UINT8;
    onxi_call_output_unranked(call, 0, dtype);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* Since version 19 the result has the type of the scale, unless output_dtype is given. */
onx_status onxi_rule_dequantize_linear(onxi_call *call)
{
    int dtype;
    ONX_TRY(wanted_dtype(call, &dtype));
    if (call->schema->since < 19)
        dtype = ONX_FLOAT;
    else if (!dtype)
        dtype = onxi_call_dtype(call, 1);
    onxi_call_output_unranked(call, 0, dtype);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

onx_status onxi_rule_dynamic_quantize_linear(onxi_call *call)
{
    onxi_dim *dims;
    onxi_call_output_unranked(call, 0, ONX_UINT8);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_output(call, 1, ONX_FLOAT, 0, &dims));
    return onxi_call_output(call, 2, ONX_UINT8, 0, &dims);
}
