/* rules_numbers.c - inference rules of ai.onnx.contrib for numbers, images and audio. */
#include "op/contrib/contrib.h"

/* The size of the image is only known from the file. */
onx_status onxi_rule_contrib_decode_image(onxi_call *call)
{
    const bool chosen = onxi_schema_attr(call->schema, onx_str_of("color_space")) != NULL;
    const onx_str colors = chosen ? onxi_call_text(call, "color_space") : onx_str_of("bgr");
    onxi_dim *dims;
    if (!onx_str_is(colors, "bgr") && !onx_str_is(colors, "rgb"))
        return onxi_call_fail(call, "attribute color_space is \"%.*s\", neither \"bgr\" nor \"rgb\"", ONX_ARG(colors));
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    ONX_TRY(onxi_call_output(call, 0, ONX_UINT8, 3, &dims));
    dims[0] = dims[1] = ONXI_DIM_UNKNOWN;
    dims[2] = 3;
    return ONX_OK;
}

onx_status onxi_rule_contrib_read_image(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    if (onxi_call_ranked(call, 0))
        ONX_TRY(onxi_call_want_dim(call, 0, 0, 1));
    ONX_TRY(onxi_call_output(call, 0, ONX_UINT8, 4, &dims));
    dims[0] = 1;
    dims[1] = dims[2] = ONXI_DIM_UNKNOWN;
    dims[3] = 3;
    return ONX_OK;
}

/* The number of runs depends on the elements. */
onx_status onxi_rule_contrib_segments(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *position, *value;
    if (x && x->rank != 1 && x->rank != 2)
        return onxi_call_fail(call, "input 0 has rank %u, neither 1 nor 2", x->rank);
    if (x && x->rank == 2)
        ONX_TRY(onxi_call_want_dim(call, 0, 0, 1));
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 2, &position));
    ONX_TRY(onxi_call_output(call, 1, ONX_INT64, 1, &value));
    position[0] = value[0] = ONXI_DIM_UNKNOWN;
    position[1] = 2;
    return ONX_OK;
}

onx_status onxi_rule_contrib_inverse(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim same;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    return x ? onxi_call_unify(call, x->dims[0], x->dims[1], "the size of a matrix", &same) : ONX_OK;
}

/* ---- images ---- */

static onx_status want_image(onxi_call *call)
{
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    return onxi_call_ranked(call, 0) ? onxi_call_want_dim(call, 0, 2, 3) : ONX_OK;
}

onx_status onxi_rule_contrib_encode_image(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(want_image(call));
    return onxi_call_shape(call, 0, 1, &dims);
}

onx_status onxi_rule_contrib_draw_boxes(onxi_call *call)
{
    ONX_TRY(want_image(call));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    if (onxi_call_ranked(call, 1))
        ONX_TRY(onxi_call_want_dim(call, 1, 1, 6));
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

onx_status onxi_rule_contrib_blur(onxi_call *call)
{
    for (uint32_t i = 1; i < 3; i++) {
        ONX_TRY(onxi_call_want_rank(call, i, 1));
        if (onxi_call_ranked(call, i))
            ONX_TRY(onxi_call_want_dim(call, i, 0, 2));
    }
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* ---- sounds ---- */

/* [1,n] */
static onx_status want_sound(onxi_call *call)
{
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    return onxi_call_ranked(call, 0) ? onxi_call_want_dim(call, 0, 0, 1) : ONX_OK;
}

onx_status onxi_rule_contrib_audio(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    if (x && x->rank != 1 && x->rank != 2)
        return onxi_call_fail(call, "input 0 has rank %u, neither 1 nor 2", x->rank);
    if (x && x->rank == 2)
        ONX_TRY(onxi_call_want_dim(call, 0, 0, 1));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    dims[0] = 1;
    return ONX_OK;
}

onx_status onxi_rule_contrib_stft_norm(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(want_sound(call));
    ONX_TRY(onxi_call_shape(call, 0, 3, &dims));
    dims[0] = 1;
    return ONX_OK;
}

onx_status onxi_rule_contrib_signal_segments(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(want_sound(call));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    dims[1] = 2;
    return ONX_OK;
}

onx_status onxi_rule_contrib_merge_segments(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    if (onxi_call_ranked(call, 0))
        ONX_TRY(onxi_call_want_dim(call, 0, 1, 2));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    dims[1] = 2;
    return ONX_OK;
}
