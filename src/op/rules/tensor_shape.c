/* tensor_shape.c - rules of operators that reshape a tensor or return its shape. */
#include "op/op_rules.h"

/* ---- Cast ---- */

static onx_status carry_cast(onxi_call *call, int to)
{
    const onxi_known_ints *in = onxi_call_any_value(call, 0), *part = onxi_call_floored_value(call, 0);
    onx_dtype_class class = onx_dtype_class_of(to);
    bool wide = class != ONX_CLASS_TEXT && class != ONX_CLASS_COMPLEX && onx_dtype_bits(to) >= 32;
    if (part && wide && class != ONX_CLASS_FLOATING) { /* drops the fraction */
        onxi_known_ints cut = *part;
        cut.floored = false;
        onxi_call_carry(call, 0, cut);
    }
    if (!in || !(wide || class == ONX_CLASS_BOOLEAN))
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, in->rank, in->count);
    for (uint32_t i = 0; out && i < in->count; i++) {
        onxi_dim d = in->elements[i];
        if (class != ONX_CLASS_BOOLEAN)
            out[i] = d;
        else if (onxi_dim_is_const(d))
            out[i] = d != 0;
    }
    return ONX_OK;
}

onx_status onxi_rule_cast(onxi_call *call)
{
    const onxi_type *x = onxi_call_tensor(call, 0);
    int64_t to = ONX_UNDEFINED;
    if (call->schema->since < 6) { /* version 1 has the type name as a string */
        onx_str name = onxi_call_text(call, "to");
        char lower[16];
        for (size_t i = 0; i < name.len && i < sizeof lower; i++)
            lower[i] = (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] + 32 : name.ptr[i]);
        to = name.len <= sizeof lower ? (int64_t)onx_dtype_find(onx_str_make(lower, name.len)) : ONX_UNDEFINED;
    } else {
        to = onxi_call_int(call, "to");
        if (!onx_dtype_name(to))
            return onxi_call_fail(call, "attribute to is %lld, which is no element type", (long long)to);
    }
    onxi_call_output_unranked(call, 0, (int)to);
    onxi_call_shape_of(call, 0, x);
    return carry_cast(call, (int)to);
}

onx_status onxi_rule_cast_like(onxi_call *call)
{
    onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 1));
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return onxi_call_dtype(call, 1) ? carry_cast(call, onxi_call_dtype(call, 1)) : ONX_OK;
}

/* The bits do not change; both types have the same width. */
onx_status onxi_rule_bit_cast(onxi_call *call)
{
    int from = onxi_call_dtype(call, 0);
    int64_t to = onxi_call_int(call, "to");
    if (!onx_dtype_bits(to))
        return onxi_call_fail(call, "attribute to is %lld, which is no element type with a width", (long long)to);
    if (from && onx_dtype_bits(from) != onx_dtype_bits(to))
        return onxi_call_fail(call, "%s has %u bits and %s has %u", onx_dtype_name(from), onx_dtype_bits(from),
                              onx_dtype_name(to), onx_dtype_bits(to));
    onxi_call_output_unranked(call, 0, (int)to);
    return onxi_rule_unary(call);
}

/* ---- Shape, Size ---- */

onx_status onxi_rule_shape(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 1, &dims));
    if (!x)
        return ONX_OK;
    int64_t rank = x->rank, start = call->schema->since >= 15 ? onxi_call_int(call, "start") : 0, end = rank;
    if (onxi_call_given(call, "end"))
        end = onxi_call_int(call, "end");
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    dims[0] = end - start;
    onxi_dim *value = onxi_call_set_value(call, 0, 1, (uint32_t)(end - start));
    if (value && end > start)
        memcpy(value, x->dims + start, (size_t)(end - start) * sizeof *value);
    return ONX_OK;
}

onx_status onxi_rule_size(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 0, &dims));
    onxi_dim *value = x ? onxi_call_set_value(call, 0, 0, 1) : NULL;
    if (value)
        value[0] = onxi_call_product(call, x->dims, 0, x->rank);
    return ONX_OK;
}

/* ---- Reshape ---- */

/* The rank that a one-dimensional shape input implies if its elements are not known. */
static bool rank_of_shape_input(onxi_call *call, uint32_t input, uint32_t *out)
{
    const onxi_type *shape = onxi_call_ranked(call, input);
    if (!shape || shape->rank != 1 || !onxi_dim_is_const(shape->dims[0]) || shape->dims[0] < 0 ||
        shape->dims[0] > ONXI_KNOWN_INTS_LIMIT)
        return false;
    *out = (uint32_t)shape->dims[0];
    return true;
}

onx_status onxi_rank_from_shape_input(onxi_call *call, uint32_t input, uint32_t output)
{
    uint32_t rank;
    onxi_dim *dims;
    return rank_of_shape_input(call, input, &rank) ? onxi_call_shape(call, output, rank, &dims) : ONX_OK;
}

static onx_status reshape_dims(onxi_call *call, const onxi_type *x, const onxi_dim *target, uint32_t rank)
{
    bool zero_is_zero = onxi_call_is_set(call, "allowzero");
    int64_t open = -1; /* the axis whose size follows from the others: a -1, or the only unknown element */
    uint32_t unknown = 0;
    onxi_dim *dims, total = x ? onxi_call_product(call, x->dims, 0, x->rank) : ONXI_DIM_UNKNOWN, others = 1;
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = target[i];
        if (target[i] == -1) {
            if (open >= 0)
                return onxi_call_fail(call, "the target shape has -1 at axes %lld and %u", (long long)open, i);
            open = i;
            dims[i] = ONXI_DIM_UNKNOWN;
            continue;
        }
        if (onxi_dim_is_const(target[i]) && target[i] < -1)
            return onxi_call_fail(call, "the target shape has %lld at axis %u", (long long)target[i], i);
        if (target[i] == 0 && !zero_is_zero) {
            if (x && i >= x->rank)
                return onxi_call_fail(call, "the target shape has 0 at axis %u and the input has rank %u", i, x->rank);
            dims[i] = x ? x->dims[i] : ONXI_DIM_UNKNOWN;
        }
        if (!onxi_dim_is_known(dims[i]))
            unknown++;
        others = onxi_dim_mul(call->dims, others, dims[i]);
    }
    if (unknown == 1 && open < 0 && x) { /* computed from the others, like a -1 */
        others = 1;
        for (uint32_t i = 0; i < rank; i++) {
            if (onxi_dim_is_known(dims[i]))
                others = onxi_dim_mul(call->dims, others, dims[i]);
            else
                open = i;
        }
    }
    if (open >= 0 && others == 0 && target[open] == -1)
        return onxi_call_fail(call, "the target shape has -1 at axis %lld beside a size of 0", (long long)open);
    if (open >= 0 && others != 0) {
        if (onxi_dim_is_const(total) && onxi_dim_is_const(others) && total % others != 0)
            return onxi_call_fail(call, "%lld elements cannot be arranged in rows of %lld", (long long)total,
                                  (long long)others);
        dims[open] = onxi_dim_div(call->dims, total, others);
    }
    if (open < 0 && onxi_dim_is_const(total) && onxi_dim_is_const(others) && total != others)
        return onxi_call_fail(call, "the input has %lld elements and the target shape %lld", (long long)total,
                              (long long)others);
    return ONX_OK;
}

onx_status onxi_rule_reshape(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t rank = 0;
    const onxi_dim *target;
    if (call->schema->since < 5) {
        target = onxi_call_dims(call, "shape", &rank);
    } else {
        ONX_TRY(onxi_call_want_rank(call, 1, 1));
        const onxi_known_ints *shape = onxi_call_value(call, 1);
        target = shape ? shape->elements : NULL;
        rank = shape ? shape->count : 0;
    }
    if (!target)
        return onxi_rank_from_shape_input(call, 1, 0);
    ONX_TRY(reshape_dims(call, x, target, rank));
    onxi_carry_reshaped(call);
    return ONX_OK;
}

onx_status onxi_rule_flatten(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    int64_t axis = onxi_call_int(call, "axis");
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    if (!x)
        return ONX_OK;
    if (axis > (int64_t)x->rank || axis < (call->schema->since >= 11 ? -(int64_t)x->rank : 0))
        return onxi_call_fail(call, "axis %lld is out of range for rank %u", (long long)axis, x->rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int64_t)x->rank : axis);
    dims[0] = onxi_call_product(call, x->dims, 0, at);
    dims[1] = onxi_call_product(call, x->dims, at, x->rank);
    onxi_carry_reshaped(call);
    return ONX_OK;
}

/* ---- Squeeze, Unsqueeze ---- */

/* The axes, from input 1 since version 13 and from the attribute before; *given: whether there are any. */
static const int64_t *axes_of(onxi_call *call, uint32_t *count, bool *given)
{
    static const int64_t none = 0;
    *count = 0;
    *given = call->schema->since >= 13 ? onxi_call_has_input(call, 1) : onxi_call_given(call, "axes");
    if (!*given)
        return NULL;
    if (call->schema->since >= 13)
        return onxi_call_const_ints(call, 1, count);
    const int64_t *axes = onxi_call_ints(call, "axes", count);
    return axes || onxi_call_list_count(call, "axes") ? axes : &none; /* [] are no axes, not unknown ones */
}

/* Marks the axes in a new array of `rank` flags; fails on one that is out of range or, when `once`, given twice. */
onx_status onxi_call_mark_axes(onxi_call *call, const int64_t *axes, uint32_t count, uint32_t rank, bool once,
                               bool **out)
{
    bool *marked = onxi_arena_get(call->arena, rank ? rank : 1);
    *out = marked;
    if (!marked)
        return ONX_E_MEMORY;
    memset(marked, 0, rank);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        ONX_TRY(onxi_call_axis(call, axes[i], rank, &axis));
        if (once && marked[axis])
            return onxi_call_fail(call, "axis %u is given twice", axis);
        marked[axis] = true;
    }
    return ONX_OK;
}

onx_status onxi_rule_squeeze(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t count, rank = 0;
    bool given, *drop;
    const int64_t *axes = axes_of(call, &count, &given);
    onxi_dim *dims;
    if (!x || (given && !axes))
        return ONX_OK;
    ONX_TRY(onxi_call_mark_axes(call, axes, count, x->rank, true, &drop));
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!given && !onxi_dim_is_const(x->dims[i]))
            return ONX_OK; /* whether the axis is removed depends on its size */
        drop[i] = given ? drop[i] : x->dims[i] == 1;
        if (drop[i] && onxi_dim_is_const(x->dims[i]) && x->dims[i] != 1)
            return onxi_call_fail(call, "axis %u has size %lld and cannot be removed", i, (long long)x->dims[i]);
        rank += !drop[i];
    }
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        if (!drop[i])
            *dims++ = x->dims[i];
    onxi_carry_reshaped(call);
    return ONX_OK;
}

onx_status onxi_rule_unsqueeze(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t count;
    bool given, *added;
    const int64_t *axes = axes_of(call, &count, &given);
    onxi_dim *dims;
    if (!given)
        return onxi_call_fail(call, "axes are missing");
    if (!x || !axes)
        return ONX_OK;
    if (count > UINT32_MAX - x->rank)
        return onxi_call_fail(call, "%u axes are given", count);
    uint32_t rank = x->rank + count;
    ONX_TRY(onxi_call_mark_axes(call, axes, count, rank, true, &added));
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0, k = 0; i < rank; i++)
        dims[i] = added[i] ? 1 : x->dims[k++];
    onxi_carry_reshaped(call);
    return ONX_OK;
}

/* ---- Transpose, Expand, Tile ---- */

onx_status onxi_rule_transpose(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t count;
    bool *seen;
    onxi_dim *dims;
    const int64_t *perm = onxi_call_ints(call, "perm", &count);
    if (perm && count && !x) { /* the permutation determines the rank */
        ONX_TRY(onxi_call_mark_axes(call, perm, count, count, true, &seen));
        return onxi_call_shape(call, 0, count, &dims);
    }
    if (!x)
        return ONX_OK;
    if (perm && count != x->rank && count)
        return onxi_call_fail(call, "perm has %u values and the input rank %u", count, x->rank);
    for (uint32_t i = 0; i < count; i++)
        if (perm[i] < 0)
            return onxi_call_fail(call, "perm has the value %lld", (long long)perm[i]);
    ONX_TRY(onxi_call_mark_axes(call, perm, count, x->rank, true, &seen));
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[count ? (uint32_t)perm[i] : x->rank - 1 - i];
    if (x->rank < 2)
        onxi_carry_reshaped(call);
    else
        onxi_carry_transposed(call, count ? perm : NULL);
    return ONX_OK;
}

onx_status onxi_rule_expand(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const onxi_known_ints *shape = onxi_call_shape_value(call, 1);
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 1, 1));
    if (!x || !shape)
        return ONX_OK;
    uint32_t rank = shape->count > x->rank ? shape->count : x->rank;
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < rank; i++) {
        onxi_dim a = i + x->rank < rank ? 1 : x->dims[i + x->rank - rank];
        onxi_dim b = i + shape->count < rank ? 1 : shape->elements[i + shape->count - rank];
        if (onxi_dim_is_const(b) && b < 0)
            return onxi_call_fail(call, "the shape has %lld at axis %u", (long long)b, i);
        ONX_TRY(onxi_call_broadcast(call, a, b, &dims[i]));
    }
    const onxi_known_ints *in = onxi_call_value(call, 0);
    if (in && in->count == 1 && rank == 1 && onxi_dim_is_const(dims[0]) && dims[0] >= 0 &&
        dims[0] <= ONXI_KNOWN_INTS_LIMIT) {
        onxi_dim *out = onxi_call_set_value(call, 0, 1, (uint32_t)dims[0]);
        for (int64_t i = 0; out && i < dims[0]; i++)
            out[i] = in->elements[0];
    } else {
        onxi_carry_expanded(call);
    }
    return ONX_OK;
}

onx_status onxi_rule_tile(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    if (!x)
        return onxi_rank_from_shape_input(call, 1, 0);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    if (call->schema->since < 6) { /* version 1: repeats along a single axis */
        int64_t axis, times;
        bool has_axis = onxi_call_const_int(call, 2, &axis), has_times = onxi_call_const_int(call, 1, &times);
        for (uint32_t i = 0; has_axis && i < x->rank; i++) {
            dims[i] = x->dims[i];
            if (i == axis)
                dims[i] = has_times ? onxi_dim_mul(call->dims, x->dims[i], times) : ONXI_DIM_UNKNOWN;
        }
        return ONX_OK;
    }
    ONX_TRY(onxi_call_want_rank(call, 1, 1));
    const onxi_known_ints *repeats = onxi_call_value(call, 1);
    if (!repeats)
        return ONX_OK;
    if (repeats->count != x->rank)
        return onxi_call_fail(call, "repeats has %u elements and the input rank %u", repeats->count, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (onxi_dim_is_const(repeats->elements[i]) && repeats->elements[i] < 0)
            return onxi_call_fail(call, "repeats has the value %lld", (long long)repeats->elements[i]);
        ONX_TRY(onxi_call_times(call, x->dims[i], repeats->elements[i], "a dimension of the output", &dims[i]));
    }
    const onxi_known_ints *in = onxi_call_value(call, 0);
    if (in && x->rank == 1 && onxi_dim_is_const(dims[0]) && dims[0] >= 0 && dims[0] <= ONXI_KNOWN_INTS_LIMIT &&
        in->count) {
        onxi_dim *out = onxi_call_set_value(call, 0, 1, (uint32_t)dims[0]);
        for (uint32_t i = 0; out && i < dims[0]; i++)
            out[i] = in->elements[i % in->count];
    }
    return ONX_OK;
}

/* ---- Concat, Split ---- */

/* The propagated value of concatenated vectors: elements of unknown inputs are unknown. */
static void carry_concat(onxi_call *call, onxi_dim length)
{
    if (!onxi_dim_is_const(length) || length < 0 || length > ONXI_KNOWN_INTS_LIMIT)
        return;
    bool any = false;
    for (uint32_t i = 0; i < call->input_count; i++)
        any |= onxi_call_value(call, i) != NULL;
    onxi_dim *out = any ? onxi_call_set_value(call, 0, 1, (uint32_t)length) : NULL;
    for (uint32_t i = 0; out && i < call->input_count; i++) {
        const onxi_known_ints *in = onxi_call_value(call, i);
        int64_t count = in ? (int64_t)in->count : call->inputs[i]->dims[0];
        if (count < 0 || count > length)
            return;
        if (in && count)
            memcpy(out, in->elements, (size_t)count * sizeof *out);
        out += count;
        length -= count;
    }
}

onx_status onxi_rule_concat(onxi_call *call)
{
    uint32_t rank = 0, at;
    const onxi_type *first = NULL;
    onxi_dim *dims;
    bool all = call->input_count > 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const onxi_type *x = onxi_call_ranked(call, i);
        all = all && x;
        if (!x)
            continue;
        if (first && x->rank != rank)
            return onxi_call_fail(call, "input %u has rank %u and the first one %u", i, x->rank, rank);
        first = first ? first : x;
        rank = x->rank;
    }
    if (!first)
        return ONX_OK;
    if (rank == 0)
        return onxi_call_fail(call, "scalars cannot be concatenated");
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), rank, &at));
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    onxi_dim length = all ? 0 : ONXI_DIM_UNKNOWN;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const onxi_type *x = onxi_call_ranked(call, i);
        if (!x)
            continue;
        bool fits = onxi_dim_is_const(length) && onxi_dim_is_const(x->dims[at]);
        length = onxi_dim_add(call->dims, length, x->dims[at]);
        if (fits && !onxi_dim_is_known(length))
            return onxi_call_fail(call, "the length of the output along axis %u overflows", at);
        for (uint32_t k = 0; k < rank; k++)
            if (k != at)
                ONX_TRY(onxi_call_unify(call, dims[k], x->dims[k], "a dimension beside the axis", &dims[k]));
    }
    dims[at] = length;
    if (rank == 1 && all)
        carry_concat(call, length);
    else if (all)
        onxi_carry_joined(call, at);
    return ONX_OK;
}

/* The sizes of the parts: from the input, from the attribute, or equal. */
static onx_status split_size(onxi_call *call, onxi_dim length, const onxi_dim *sizes, uint32_t i, onxi_dim *out)
{
    onxi_dims *d = call->dims;
    int64_t parts = call->output_count;
    *out = ONXI_DIM_UNKNOWN;
    if (sizes) {
        *out = sizes[i];
        return ONX_OK;
    }
    if (call->schema->since >= 18) { /* the last part may be smaller */
        if (onxi_call_given(call, "num_outputs"))
            parts = onxi_call_int(call, "num_outputs");
        if (parts < 1)
            return onxi_call_fail(call, "attribute num_outputs is %lld", (long long)parts);
        onxi_dim chunk = onxi_dim_div_ceil(d, length, parts);
        onxi_dim left = onxi_dim_sub(d, length, onxi_dim_mul(d, chunk, i));
        *out = onxi_dim_mod(d, length, parts) == 0 || i + 1 < parts ? chunk : left;
        if (onxi_dim_is_const(left) && left < 0)
            return onxi_call_fail(call, "%lld elements cannot be split into %lld parts", (long long)length,
                                  (long long)parts);
        return ONX_OK;
    }
    if (onxi_dim_is_const(length) && length % parts != 0)
        return onxi_call_fail(call, "%lld elements cannot be split into %lld equal parts", (long long)length,
                              (long long)parts);
    *out = onxi_dim_div(d, length, parts);
    return ONX_OK;
}

onx_status onxi_rule_split(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t at, count = 0;
    onxi_dim sum = 0, offset = 0;
    if (!x || !call->output_count)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &at));
    bool by_input = call->schema->since >= 13 || call->schema->since < 2;
    bool given = by_input ? onxi_call_has_input(call, 1) : onxi_call_list_count(call, "split") > 0;
    const onxi_known_ints *value = by_input ? onxi_call_value(call, 1) : NULL;
    const onxi_dim *sizes = value ? value->elements : onxi_call_dims(call, "split", &count);
    count = value ? value->count : count;
    given = given || sizes;
    if (call->schema->since >= 18 && given && onxi_call_given(call, "num_outputs"))
        return onxi_call_fail(call, "split and num_outputs are both given");
    if (call->schema->since >= 18 && !given && !onxi_call_given(call, "num_outputs"))
        return onxi_call_fail(call, "neither split nor num_outputs is given");
    if (sizes && count != call->output_count)
        return onxi_call_fail(call, "split has %u sizes and the node %u outputs", count, call->output_count);
    for (uint32_t i = 0; sizes && i < count; i++) {
        if (onxi_dim_is_const(sizes[i]) && sizes[i] < 0)
            return onxi_call_fail(call, "split has the size %lld", (long long)sizes[i]);
        sum = onxi_dim_add(call->dims, sum, sizes[i]);
    }
    if (sizes && onxi_dim_is_const(sum) && onxi_dim_is_const(x->dims[at]) && sum != x->dims[at])
        return onxi_call_fail(call, "the sizes add up to %lld, the axis has %lld", (long long)sum,
                              (long long)x->dims[at]);
    const onxi_known_ints *in = x->rank == 1 ? onxi_call_value(call, 0) : NULL;
    for (uint32_t i = 0; i < call->output_count; i++) {
        onxi_dim *dims;
        ONX_TRY(onxi_call_shape(call, i, x->rank, &dims));
        memcpy(dims, x->dims, x->rank * sizeof *dims);
        dims[at] = ONXI_DIM_UNKNOWN;
        if (!given || sizes)
            ONX_TRY(split_size(call, x->dims[at], sizes, i, &dims[at]));
        if (in && onxi_dim_is_const(dims[at]) && onxi_dim_is_const(offset) && dims[at] <= (int64_t)in->count - offset)
            onxi_call_carry(
                call, i,
                (onxi_known_ints){ .rank = 1, .count = (uint32_t)dims[at], .elements = in->elements + offset });
        offset = onxi_dim_add(call->dims, offset, dims[at]);
    }
    return ONX_OK;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

/* Checks of both operators: a block of at least 1, and rank 4. */
static onx_status block_moves(onxi_call *call, int64_t *block_out, onxi_dim **dims_out)
{
    *block_out = onxi_call_int(call, "blocksize");
    if (*block_out < 1)
        return onxi_call_fail(call, "attribute blocksize is %lld", (long long)*block_out);
    ONX_TRY(onxi_call_want_rank(call, 0, 4));
    return onxi_call_shape(call, 0, 4, dims_out);
}

onx_status onxi_rule_depth_to_space(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dims *d = call->dims;
    onxi_dim *dims;
    int64_t block;
    ONX_TRY(block_moves(call, &block, &dims));
    if (!x)
        return ONX_OK;
    onxi_dim square = onxi_dim_mul(d, block, block);
    if (!onxi_dim_is_known(square))
        return onxi_call_fail(call, "blocksize %lld overflows", (long long)block);
    if (onxi_dim_is_const(x->dims[1]) && x->dims[1] % square != 0)
        return onxi_call_fail(call, "%lld channels are not divisible by %lld", (long long)x->dims[1],
                              (long long)square);
    dims[0] = x->dims[0];
    dims[1] = onxi_dim_div(d, x->dims[1], square);
    ONX_TRY(onxi_call_times(call, x->dims[2], block, "the height of the output", &dims[2]));
    return onxi_call_times(call, x->dims[3], block, "the width of the output", &dims[3]);
}

onx_status onxi_rule_space_to_depth(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dims *d = call->dims;
    onxi_dim *dims;
    int64_t block;
    ONX_TRY(block_moves(call, &block, &dims));
    if (!x)
        return ONX_OK;
    dims[0] = x->dims[0];
    dims[1] = onxi_dim_mul(d, x->dims[1], onxi_dim_mul(d, block, block));
    for (uint32_t i = 2; i < 4; i++) {
        if (onxi_dim_is_const(x->dims[i]) && x->dims[i] % block != 0)
            return onxi_call_fail(call, "size %lld at axis %u is not divisible by blocksize %lld",
                                  (long long)x->dims[i], i, (long long)block);
        dims[i] = onxi_dim_div(d, x->dims[i], block);
    }
    return ONX_OK;
}
