/* rules_former.c - inference rules for the operators that ONNX Runtime adds to the default domain. */
#include "op/microsoft/microsoft.h"

onx_status onxi_rule_microsoft_image_scaler(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_call_same(call, 0, 0);
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    return x ? onxi_call_want_dim(call, 0, 1, (onxi_dim)onxi_call_list_count(call, "bias")) : ONX_OK;
}

/* The size of a cropped axis: `size` elements of `whole` from `from` on or, if that is negative, all except `less`. */
static onx_status crop(onxi_call *call, onxi_dim whole, int64_t from, int64_t less, int64_t size, const char *what,
                       onxi_dim *out)
{
    const int64_t taken = size < 0 ? less : size;
    if (from < 0 || from > INT32_MAX || taken < 0 || taken > INT32_MAX)
        return onxi_call_fail(call, "the %s is cropped by %lld and %lld, which are no sizes", what, (long long)from,
                              (long long)taken);
    if (onxi_dim_is_const(whole) && from + taken > whole)
        return onxi_call_fail(call, "the %s is cropped by %lld and %lld, but has only %lld elements", what,
                              (long long)from, (long long)taken, (long long)whole);
    *out = size < 0 ? onxi_dim_sub(call->dims, whole, from + less) : size;
    return ONX_OK;
}

onx_status onxi_rule_microsoft_crop(onxi_call *call)
{
    uint32_t borders, sizes;
    const int64_t *border = onxi_call_ints(call, "border", &borders), *size = onxi_call_ints(call, "scale", &sizes);
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    if (borders != 4)
        return onxi_call_fail(call, "attribute border has %u numbers, not 4", borders);
    if (sizes && sizes != 2)
        return onxi_call_fail(call, "attribute scale has %u numbers, not 2", sizes);
    for (uint32_t i = 0; i < sizes; i++)
        if (size[i] < 0)
            return onxi_call_fail(call, "attribute scale has the number %lld, which is no size", (long long)size[i]);
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    if (!x)
        return ONX_OK;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    ONX_TRY(crop(call, x->dims[2], border[1], border[3], sizes ? size[0] : -1, "height", &dims[2]));
    return crop(call, x->dims[3], border[0], border[2], sizes ? size[1] : -1, "width", &dims[3]);
}
