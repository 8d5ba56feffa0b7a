/* rules.c - inference rules of ai.onnx.contrib for strings and ragged tensors. */
#include "op/contrib/contrib.h"

/* The number of values per string in a table: those in its first line, after the string and a tab. 0: there is no such
 * line. */
static uint32_t width_of(onx_str table)
{
    onx_str line, key, numbers, number;
    uint32_t count = 0;
    if (onxi_next_part(&table, '\n', &line) && onxi_next_part(&line, '\t', &key) &&
        onxi_next_part(&line, '\t', &numbers))
        while (onxi_next_part(&numbers, ' ', &number))
            count++;
    return count;
}

/* ---- element by element ---- */

onx_status onxi_rule_contrib_same_shape(onxi_call *call)
{
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

onx_status onxi_rule_contrib_concat(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *y = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    if (!x || !y) {
        onxi_call_shape_of(call, 0, x ? x : y);
        return ONX_OK;
    }
    ONX_TRY(onxi_call_want_rank(call, 1, x->rank));
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        ONX_TRY(onxi_call_unify(call, x->dims[i], y->dims[i], "a dimension of both", &dims[i]));
    return ONX_OK;
}

/* The first axes correspond; the shorter shape is padded with ones at the end. */
onx_status onxi_rule_contrib_equal(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *y = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    if (!x || !y)
        return ONX_OK;
    if (x->rank < y->rank) {
        const onxi_type *longer = y;
        y = x;
        x = longer;
    }
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        ONX_TRY(onxi_call_broadcast(call, x->dims[i], i < y->rank ? y->dims[i] : 1, &dims[i]));
    return ONX_OK;
}

/* ---- other shapes ---- */

/* Removes one axis; a vector or scalar becomes one string. */
onx_status onxi_rule_contrib_join(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    int64_t axis = 0;
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    const bool known = onxi_call_const_int(call, 2, &axis);
    if (known && x->rank && (axis < 0 || axis >= x->rank))
        return onxi_call_fail(call, "axis is %lld, and the strings have rank %u", (long long)axis, x->rank);
    ONX_TRY(onxi_call_shape(call, 0, x->rank > 1 ? x->rank - 1 : 1, &dims));
    if (x->rank < 2)
        dims[0] = 1;
    for (uint32_t i = 0; x->rank > 1 && known && i + 1 < x->rank; i++)
        dims[i] = x->dims[i < axis ? i : i + 1];
    return ONX_OK;
}

onx_status onxi_rule_contrib_split(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    dims[1] = 2;
    ONX_TRY(onxi_call_shape(call, 1, 1, &dims));
    ONX_TRY(onxi_call_shape(call, 2, 1, &dims));
    dims[0] = 2;
    return ONX_OK;
}

/* Words, the start and end of each, and the index of the first word of each string. */
onx_status onxi_rule_contrib_split_words(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    for (uint32_t k = 0; k < 4; k++)
        ONX_TRY(onxi_call_shape(call, k, 1, &dims));
    if (x)
        dims[0] = onxi_dim_add(call->dims, x->dims[0], 1);
    return ONX_OK;
}

onx_status onxi_rule_contrib_masked_fill(onxi_call *call)
{
    onxi_dim *dims;
    const onxi_type *x = onxi_call_ranked(call, 0), *mask = onxi_call_ranked(call, 1);
    if (x && x->rank > 1)
        return onxi_call_fail(call, "the strings have rank %u, neither 0 nor 1", x->rank);
    if (x && mask)
        ONX_TRY(onxi_call_want_dims(call, 1, x->rank, x->dims));
    return onxi_call_shape(call, 0, 1, &dims);
}

onx_status onxi_rule_contrib_string_to_vector(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const uint32_t width = width_of(onxi_call_text(call, "map"));
    onxi_dim *dims;
    if (!width)
        return onxi_call_fail(call, "the first line of attribute map is no string, a tab, and numbers");
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank + 1, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank] = width;
    return ONX_OK;
}

/* Vectors along the last axis; if they have one element each, a scalar or vector consists of numbers. */
onx_status onxi_rule_contrib_vector_to_string(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const uint32_t width = width_of(onxi_call_text(call, "map"));
    onxi_dim *dims;
    if (!width)
        return onxi_call_fail(call, "the first line of attribute map is no string, a tab, and numbers");
    if (!x)
        return ONX_OK;
    const uint32_t rank = width == 1 && x->rank < 2 ? x->rank : x->rank - 1;
    if (width > 1 || x->rank > 1) {
        ONX_TRY(onxi_call_want_least_rank(call, 0, 1));
        ONX_TRY(onxi_call_want_dim(call, 0, x->rank - 1, width));
    }
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = x->dims[i];
    return ONX_OK;
}

/* ---- ragged tensors ---- */

onx_status onxi_rule_contrib_ragged_to_sparse(onxi_call *call)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    dims[1] = 2;
    ONX_TRY(onxi_call_shape(call, 1, 1, &dims));
    dims[0] = 2;
    return ONX_OK;
}

/* One row per two consecutive splits. */
static onx_status dense(onxi_call *call, uint32_t splits)
{
    const onxi_type *x = onxi_call_ranked(call, splits);
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, splits, 1));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    if (x && x->dims[0] == 0)
        return onxi_call_fail(call, "there are no splits, and at least one is needed");
    if (x)
        dims[0] = onxi_dim_sub(call->dims, x->dims[0], 1);
    return ONX_OK;
}

onx_status onxi_rule_contrib_ragged_to_dense(onxi_call *call)
{
    return dense(call, 3);
}

onx_status onxi_rule_contrib_ragged_texts_to_dense(onxi_call *call)
{
    return dense(call, 2);
}
