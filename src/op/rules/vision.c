/* vision.c - rules of boxes and regions of interest. */
#include "op/op_rules.h"

onx_status onxi_rule_roi_align(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *rois = onxi_call_ranked(call, 1),
                    *batch = onxi_call_ranked(call, 2);
    const int64_t height = onxi_call_int(call, "output_height"), width = onxi_call_int(call, "output_width");
    onxi_dim *dims, count = ONXI_DIM_UNKNOWN;
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    if (rois && onxi_dim_is_const(rois->dims[1]) && rois->dims[1] != 4)
        return onxi_call_fail(call, "a region has %lld coordinates, expected 4", (long long)rois->dims[1]);
    if (rois)
        count = rois->dims[0];
    if (batch)
        ONX_TRY(onxi_call_unify(call, count, batch->dims[0], "the number of regions", &count));
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    dims[0] = count;
    if (x)
        dims[1] = x->dims[1];
    if (height < 1 || width < 1)
        return onxi_call_fail(call, "output_height is %lld and output_width %lld, the least is 1", (long long)height,
                              (long long)width);
    dims[2] = height;
    dims[3] = width;
    return ONX_OK;
}

/* One row per box: batch, class and index. */
onx_status onxi_rule_non_max_suppression(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 1, 3));
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 2, &dims));
    dims[1] = 3;
    return ONX_OK;
}
