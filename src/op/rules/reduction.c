/* reduction.c - rules of reductions over axes. */
#include "op/op_rules.h"

/* The propagated value of a vector that is reduced to one element. */
static void carry_reduced(onxi_call *call, uint32_t rank)
{
    static const struct {
        onxi_op_id op;
        onxi_dim (*step)(onxi_dims *dims, onxi_dim a, onxi_dim b);
    } steps[] = { { ONXI_ID_ReduceSum, onxi_dim_add },
                  { ONXI_ID_ReduceProd, onxi_dim_mul },
                  { ONXI_ID_ReduceMax, onxi_dim_max },
                  { ONXI_ID_ReduceMin, onxi_dim_min } };
    const onxi_known_ints *in = onxi_call_value(call, 0);
    for (size_t i = 0; in && in->count && i < sizeof steps / sizeof *steps; i++) {
        if (steps[i].op != call->op)
            continue;
        onxi_dim *out = onxi_call_set_value(call, 0, rank, 1);
        if (!out)
            return;
        const int dtype = onxi_call_dtype(call, 0);
        const bool floating = onx_dtype_class_of(dtype) == ONX_CLASS_FLOATING;
        out[0] = in->elements[0];
        for (uint32_t k = 1; k < in->count; k++) {
            out[0] = onxi_call_step(call, steps[i].step, out[0], in->elements[k]);
            /* With terms from 0 on, a float sum that is not rounded is exact in any order. */
            if (floating && steps[i].op == ONXI_ID_ReduceSum &&
                (onxi_dim_low(call->dims, in->elements[k]) < 0 || onxi_dim_low(call->dims, in->elements[0]) < 0))
                out[0] = ONXI_DIM_UNKNOWN;
            if (floating)
                out[0] = onxi_call_held(call, dtype, out[0]);
        }
    }
}

static onx_status reduce_marked(onxi_call *call, const onxi_type *x, const bool *reduced, bool keep)
{
    uint32_t rank = 0;
    onxi_dim *dims;
    for (uint32_t i = 0; i < x->rank; i++)
        rank += keep || !reduced[i];
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!reduced[i])
            *dims++ = x->dims[i];
        else if (keep)
            *dims++ = 1;
    }
    if (x->rank == 1 && reduced[0])
        carry_reduced(call, rank);
    return ONX_OK;
}

/* The axes are an unknown input: with keepdims the rank stays the same, otherwise it decreases by the number of
 * axes. */
static onx_status reduce_unknown(onxi_call *call, const onxi_type *x, bool keep)
{
    const onxi_type *axes = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    if (keep)
        return onxi_call_shape(call, 0, x->rank, &dims);
    if (!axes || axes->rank != 1 || !onxi_dim_is_const(axes->dims[0]) || axes->dims[0] < 1 || axes->dims[0] > x->rank)
        return ONX_OK; /* an empty list would mean all axes or none */
    return onxi_call_shape(call, 0, x->rank - (uint32_t)axes->dims[0], &dims);
}

/* Numbers other than 0 and 1 are not defined; the reference implementation and ONNX Runtime take them as 0. */
static bool keeps_dims(onxi_call *call)
{
    return onxi_call_int(call, "keepdims") == 1;
}

onx_status onxi_rule_reduce(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const bool keep = keeps_dims(call);
    uint32_t count;
    bool *reduced;
    if (onxi_call_has_input(call, 1) && onxi_call_given(call, "axes"))
        return onxi_call_fail(call, "axes are given as an input and as an attribute");
    if (!x && !keep && !onxi_call_has_input(call, 1) && !onxi_call_given(call, "axes") &&
        !onxi_call_is_set(call, "noop_with_empty_axes")) /* over all axes, however many there are */
        return onxi_call_shape(call, 0, 0, &(onxi_dim *){ NULL });
    if (!x)
        return ONX_OK;
    const int64_t *axes =
        onxi_call_has_input(call, 1) ? onxi_call_const_ints(call, 1, &count) : onxi_call_ints(call, "axes", &count);
    if (onxi_call_has_input(call, 1) && !axes)
        return reduce_unknown(call, x, keep);
    if (count == 0 && onxi_call_is_set(call, "noop_with_empty_axes")) {
        onxi_call_shape_of(call, 0, x);
        return ONX_OK;
    }
    ONX_TRY(onxi_call_mark_axes(call, axes, count, x->rank, true, &reduced));
    if (count == 0)
        memset(reduced, true, x->rank);
    return reduce_marked(call, x, reduced, keep);
}

/* ArgMax, ArgMin */
onx_status onxi_rule_arg_reduce(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    int64_t axis = onxi_call_int(call, "axis");
    bool *reduced;
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_mark_axes(call, &axis, 1, x->rank, false, &reduced));
    return reduce_marked(call, x, reduced, keeps_dims(call));
}
