/* text.c - rules of strings and encoded images. */
#include "op/op_rules.h"

onx_status onxi_rule_string_concat(onxi_call *call)
{
    return onxi_broadcast_inputs(call, 0, 2, 0);
}

onx_status onxi_rule_regex_full_match(onxi_call *call)
{
    onxi_call_output_unranked(call, 0, ONX_BOOL);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* The parts have an axis of their own; their number is output 1. */
onx_status onxi_rule_string_split(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    onxi_call_output_unranked(call, 0, ONX_STRING);
    onxi_call_output_unranked(call, 1, ONX_INT64);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank + 1, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    onxi_call_shape_of(call, 1, x);
    return ONX_OK;
}

/* [C] or [1, C]; the number of remaining strings is not known in advance. */
onx_status onxi_rule_string_normalizer(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    onxi_call_output_unranked(call, 0, ONX_STRING);
    if (!x)
        return ONX_OK;
    if (x->rank < 1 || x->rank > 2)
        return onxi_call_fail(call, "input 0 has rank %u, expected 1 or 2", x->rank);
    if (x->rank == 2 && onxi_dim_is_const(x->dims[0]) && x->dims[0] != 1)
        return onxi_call_fail(call, "input 0 has %lld rows, expected 1", (long long)x->dims[0]);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    if (x->rank == 2)
        dims[0] = 1;
    return ONX_OK;
}

/* Height and width depend on the file; channels follow from the pixel format. */
onx_status onxi_rule_image_decoder(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    ONX_TRY(onxi_call_output(call, 0, ONX_UINT8, 3, &dims));
    if (onxi_call_text_is(call, "pixel_format", "RGB") || onxi_call_text_is(call, "pixel_format", "BGR"))
        dims[2] = 3;
    else if (onxi_call_text_is(call, "pixel_format", "Grayscale"))
        dims[2] = 1;
    return ONX_OK;
}
