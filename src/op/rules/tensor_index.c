/* tensor_index.c - rules of operators that select or replace elements by index or condition. */
#include "op/op_rules.h"

/* ---- Gather ---- */

/* An element of a propagated vector; the index may count from the end. */
static onxi_dim pick(const onxi_known_ints *from, onxi_dim index)
{
    if (!onxi_dim_is_const(index))
        return ONXI_DIM_UNKNOWN;
    int64_t at = index < 0 ? index + (int64_t)from->count : index;
    return at < 0 || at >= (int64_t)from->count ? ONXI_DIM_UNKNOWN : from->elements[at];
}

onx_status onxi_rule_gather(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *at = onxi_call_ranked(call, 1);
    uint32_t axis;
    onxi_dim *dims;
    if (!x)
        return ONX_OK;
    if (x->rank == 0)
        return onxi_call_fail(call, "the data is a scalar");
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    if (!at)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank - 1 + at->rank, &dims));
    memcpy(dims, x->dims, axis * sizeof *dims);
    if (at->rank)
        memcpy(dims + axis, at->dims, at->rank * sizeof *dims);
    memcpy(dims + axis + at->rank, x->dims + axis + 1, (x->rank - axis - 1) * sizeof *dims);
    const onxi_known_ints *from = onxi_call_value(call, 0), *indices = onxi_call_value(call, 1);
    for (uint32_t i = 0; indices && i < indices->count; i++) {
        onxi_dim index = indices->elements[i], size = x->dims[axis];
        if (onxi_dim_is_const(index) && onxi_dim_is_const(size) && (index >= size || index < -size))
            return onxi_call_fail(call, "index %lld is out of range for size %lld", (long long)index, (long long)size);
    }
    if (!from || from->rank != 1 || !indices || indices->rank != at->rank) {
        onxi_carry_gathered(call, axis);
        return ONX_OK;
    }
    onxi_dim *out = onxi_call_set_value(call, 0, indices->rank, indices->count);
    for (uint32_t i = 0; out && i < indices->count; i++)
        out[i] = pick(from, indices->elements[i]);
    return ONX_OK;
}

onx_status onxi_rule_gather_elements(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis;
    if (x)
        ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 1));
    const onxi_known_ints *from = onxi_call_value(call, 0), *indices = onxi_call_value(call, 1);
    if (!from || !indices || from->rank != 1 || indices->rank != 1)
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, 1, indices->count);
    for (uint32_t i = 0; out && i < indices->count; i++)
        out[i] = pick(from, indices->elements[i]);
    return ONX_OK;
}

onx_status onxi_rule_gather_nd(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *at = onxi_call_ranked(call, 1);
    int64_t batch = call->schema->since >= 12 ? onxi_call_int(call, "batch_dims") : 0, last;
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 1));
    ONX_TRY(onxi_call_want_least_rank(call, 1, 1));
    if (!x || !at || !onxi_dim_is_const(at->dims[at->rank - 1]))
        return ONX_OK;
    if (batch < 0 || batch >= x->rank || batch >= at->rank)
        return onxi_call_fail(call, "attribute batch_dims is %lld", (long long)batch);
    if (!onxi_add_i64(at->dims[at->rank - 1], batch, &last) || last > x->rank)
        return onxi_call_fail(call, "index tuples have %lld elements, the data has rank %u and %lld batch dimensions",
                              (long long)at->dims[at->rank - 1], x->rank, (long long)batch);
    uint32_t taken = (uint32_t)last;
    ONX_TRY(onxi_call_shape(call, 0, at->rank - 1 + x->rank - taken, &dims));
    memcpy(dims, at->dims, (at->rank - 1) * sizeof *dims);
    if (x->rank > taken)
        memcpy(dims + at->rank - 1, x->dims + taken, (x->rank - taken) * sizeof *dims);
    if (!batch)
        onxi_carry_gathered_tuples(call);
    return ONX_OK;
}

/* ---- Slice ---- */

enum { ENDLESS = 0x7fffffff }; /* exporters write the largest 32- or 64-bit number for "to the end" */

/* Converts a start or end to a position between `low` and `high`; negative values count from the end. */
static onxi_dim slice_clamp(onxi_dims *d, onxi_dim at, onxi_dim size, onxi_dim low, onxi_dim high)
{
    if (!onxi_dim_is_known(at))
        return at;
    if (onxi_dim_is_const(at)) {
        if (at >= ENDLESS)
            return high;
        if (at <= -ENDLESS)
            return low;
        if (at < 0)
            return onxi_dim_max(d, onxi_dim_add(d, size, at), low);
        return onxi_dim_min(d, at, high);
    }
    /* A symbolic position counts from the start: expressions such as N - 1 are negative only for empty tensors. */
    return onxi_dim_min(d, onxi_dim_low(d, at) < 0 ? onxi_dim_max(d, at, low) : at, high);
}

/* In a call that has to prove its results an expression may be negative and count from the end. */
static bool slice_from_front(const onxi_call *call, onxi_dim at)
{
    return !onxi_dims_proves(call->dims) || onxi_dim_is_const(at) ||
           (onxi_dim_is_known(at) && onxi_dim_low(call->dims, at) >= 0);
}

/* The number of elements from start to end with the given step. */
static onxi_dim slice_length(onxi_dims *d, onxi_dim size, onxi_dim start, onxi_dim end, int64_t step)
{
    if (step > 0) {
        start = slice_clamp(d, start, size, 0, size);
        end = slice_clamp(d, end, size, 0, size);
        return onxi_dim_max(d, onxi_dim_div_ceil(d, onxi_dim_sub(d, end, start), step), 0);
    }
    onxi_dim last = onxi_dim_sub(d, size, 1);
    start = start == -1 ? last : slice_clamp(d, start, size, 0, last);
    /* -1 itself means the last element; only far below does "before the first" begin. */
    end = onxi_dim_is_const(end) && onxi_dim_is_const(size) && end < -size ? -1 : slice_clamp(d, end, size, -1, last);
    return onxi_dim_max(d, onxi_dim_div_ceil(d, onxi_dim_sub(d, start, end), -step), 0);
}

typedef struct slice_lists {
    const onxi_dim *starts, *ends, *steps;
    const int64_t *axes;
    uint32_t start_count, end_count, axis_count, step_count;
    bool axes_known, steps_known;
} slice_lists;

static void slice_read(onxi_call *call, slice_lists *s)
{
    *s = (slice_lists){ .axes_known = true, .steps_known = true };
    if (call->schema->since < 10) {
        s->starts = onxi_call_dims(call, "starts", &s->start_count);
        s->ends = onxi_call_dims(call, "ends", &s->end_count);
        s->axes = onxi_call_ints(call, "axes", &s->axis_count);
        return;
    }
    const onxi_known_ints *starts = onxi_call_value(call, 1), *ends = onxi_call_value(call, 2),
                          *steps = onxi_call_value(call, 4);
    if (starts) {
        s->starts = starts->elements;
        s->start_count = starts->count;
    }
    if (ends) {
        s->ends = ends->elements;
        s->end_count = ends->count;
    }
    if (steps) {
        s->steps = steps->elements;
        s->step_count = steps->count;
    }
    if (onxi_call_has_input(call, 3))
        s->axes = onxi_call_const_ints(call, 3, &s->axis_count);
    s->axes_known = s->axes || !onxi_call_has_input(call, 3);
    s->steps_known = s->steps || !onxi_call_has_input(call, 4);
}

static void carry_slice(onxi_call *call, const slice_lists *s, onxi_dim length)
{
    const onxi_known_ints *in = onxi_call_value(call, 0);
    int64_t step = s->steps ? s->steps[0] : 1;
    if (!in || in->rank != 1 || s->start_count != 1 || !onxi_dim_is_const(length) || !onxi_dim_is_const(s->starts[0]) ||
        !onxi_dim_is_const(step) || length > in->count || length < 0)
        return;
    onxi_dim at = slice_clamp(NULL, s->starts[0], in->count, 0, step > 0 ? (int64_t)in->count : (int64_t)in->count - 1);
    onxi_dim *out = onxi_call_set_value(call, 0, 1, (uint32_t)length);
    for (int64_t i = 0; out && i < length && at >= 0 && at < in->count; i++) {
        out[i] = in->elements[at];
        if (i + 1 < length)
            at += step; /* stays inside, because of length */
    }
}

/* The same for a value with several dimensions. */
static void carry_table(onxi_call *call, const onxi_type *x, const slice_lists *s)
{
    enum { RANK = 8 };
    int64_t starts[RANK] = { 0 }, steps[RANK];
    if (!onxi_call_any_value(call, 0) || x->rank > RANK || !s->starts || !s->ends || !s->steps_known)
        return;
    for (uint32_t i = 0; i < x->rank; i++)
        steps[i] = 1;
    for (uint32_t i = 0; i < s->start_count; i++) {
        int64_t axis = s->axes ? s->axes[i] : (int64_t)i;
        onxi_dim step = s->steps ? s->steps[i] : 1;
        axis = axis < 0 ? axis + (int64_t)x->rank : axis;
        if (!onxi_dim_is_const(step) || step > ENDLESS || step < -ENDLESS || !onxi_dim_is_const(s->starts[i]) ||
            !onxi_dim_is_const(x->dims[axis]))
            return;
        starts[axis] = slice_clamp(NULL, s->starts[i], x->dims[axis], 0, step > 0 ? x->dims[axis] : x->dims[axis] - 1);
        steps[axis] = step;
    }
    onxi_carry_sliced(call, starts, steps);
}

onx_status onxi_rule_slice(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    slice_lists s;
    onxi_dim *dims;
    bool *seen;
    slice_read(call, &s);
    if (call->schema->since < 10 && (!s.starts || !s.ends || s.start_count != s.end_count))
        return onxi_call_fail(call, "starts has %u values and ends %u", s.start_count, s.end_count);
    if (!x)
        return ONX_OK;
    uint32_t count = s.starts ? s.start_count : s.end_count;
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    if (!s.axes_known)
        return ONX_OK; /* any size may have changed */
    if ((s.starts && s.ends && s.start_count != s.end_count) ||
        (s.axes && (s.starts || s.ends) && s.axis_count != count) ||
        (s.steps && (s.starts || s.ends) && s.step_count != count))
        return onxi_call_fail(call, "starts, ends, axes and steps have %u, %u, %u and %u elements", s.start_count,
                              s.end_count, s.axis_count, s.step_count);
    if (!s.starts && !s.ends && !s.axes) {
        const onxi_type *starts = onxi_call_ranked(call, 1);
        if (!starts || starts->rank != 1 || !onxi_dim_is_const(starts->dims[0]))
            return ONX_OK;
        count = starts->dims[0] > x->rank ? x->rank : (uint32_t)(starts->dims[0] < 0 ? 0 : starts->dims[0]);
    } else if (!s.starts && !s.ends) {
        count = s.axis_count;
    }
    if (!s.axes && count > x->rank)
        return onxi_call_fail(call, "%u axes are sliced, the input has rank %u", count, x->rank);
    if (s.axes)
        ONX_TRY(onxi_call_mark_axes(call, s.axes, s.axis_count, x->rank, true, &seen));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = i;
        if (s.axes)
            ONX_TRY(onxi_call_axis(call, s.axes[i], x->rank, &axis));
        onxi_dim step = s.steps_known ? 1 : ONXI_DIM_UNKNOWN;
        if (s.steps)
            step = i < s.step_count ? s.steps[i] : ONXI_DIM_UNKNOWN;
        if (step == 0)
            return onxi_call_fail(call, "step %u is 0", i);
        bool known = s.starts && s.ends && onxi_dim_is_const(step) && step > INT64_MIN / 2 &&
                     slice_from_front(call, s.starts[i]) && slice_from_front(call, s.ends[i]);
        if (known && step > ENDLESS)
            step = ENDLESS;
        dims[axis] =
            known ? slice_length(call->dims, x->dims[axis], s.starts[i], s.ends[i], step < -ENDLESS ? -ENDLESS : step)
                  : ONXI_DIM_UNKNOWN;
    }
    if (x->rank == 1 && count == 1)
        carry_slice(call, &s, dims[0]);
    else
        carry_table(call, x, &s);
    return ONX_OK;
}

/* ---- Scatter and similar: the output has the type of the data ---- */

onx_status onxi_rule_scatter(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    onxi_carry_scattered(call, axis);
    return ONX_OK;
}

onx_status onxi_rule_scatter_nd(onxi_call *call)
{
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_want_least_rank(call, 0, 1));
    ONX_TRY(onxi_call_want_least_rank(call, 1, 1));
    onxi_carry_scattered_tuples(call);
    return ONX_OK;
}

onx_status onxi_rule_tensor_scatter(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *update = onxi_call_ranked(call, 1),
                    *at = onxi_call_ranked(call, 2);
    uint32_t axis;
    onxi_dim same;
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    if (axis == 0)
        return onxi_call_fail(call, "axis 0 is the batch and cannot be written along");
    if (update && update->rank != x->rank)
        return onxi_call_fail(call, "past_cache has rank %u and update %u", x->rank, update->rank);
    for (uint32_t i = 0; update && i < x->rank; i++)
        if (i != axis)
            ONX_TRY(onxi_call_unify(call, x->dims[i], update->dims[i], "a dimension of past_cache and update", &same));
    return at ? onxi_call_unify(call, x->dims[0], at->dims[0], "the batch size", &same) : ONX_OK;
}

/* ---- sizes that depend on data ---- */

/* The number of nonzero or nonempty elements of a constant; false if the input is not constant, or too long to read. */
static bool count_constant(onxi_call *call, uint32_t input, uint32_t *out)
{
    const onx_tensor *tensor = call->ops->constant(call, input);
    uint64_t count;
    onx_str bytes, text;
    *out = 0;
    if (!tensor || !onx_tensor_count(tensor, &count) || count > ONXI_KNOWN_INTS_LIMIT)
        return false;
    const bool complex = onx_dtype_class_of(tensor->data_type) == ONX_CLASS_COMPLEX;
    if (complex && (onx_tensor_bytes(call->doc, tensor, &bytes) != ONX_OK || !count))
        return complex && !count;
    for (uint64_t i = 0; i < count; i++) {
        double number = 0, parts[2] = { 0 };
        if (tensor->data_type == ONX_STRING) {
            if (onx_tensor_get_text(tensor, i, &text) != ONX_OK)
                return false;
            *out += text.len > 0;
        } else if (complex) {
            const bool wide = tensor->data_type == ONX_COMPLEX128;
            if (onx_convert(ONX_DOUBLE, parts, wide ? ONX_DOUBLE : ONX_FLOAT, bytes.ptr + i * (wide ? 16 : 8), 2,
                            true) != ONX_OK)
                return false;
            *out += parts[0] != 0 || parts[1] != 0;
        } else {
            if (onx_tensor_get_f64(call->doc, tensor, i, 1, &number) != ONX_OK)
                return false;
            *out += number != 0;
        }
    }
    return true;
}

onx_status onxi_rule_non_zero(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, ONX_INT64, 2, &dims));
    uint32_t found;
    if (x)
        dims[0] = x->rank;
    if (x && onxi_count_set(call, 0, UINT32_MAX, &found)) {
        dims[1] = found;
        onxi_carry_positions(call);
    } else if (x && !call->running && count_constant(call, 0, &found)) { /* running, the kernel counts */
        dims[1] = found;
    }
    return ONX_OK;
}

onx_status onxi_rule_compress(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis;
    onxi_dim *dims;
    ONX_TRY(onxi_call_want_rank(call, 1, 1));
    uint32_t kept;
    if (!onxi_call_given(call, "axis")) {
        ONX_TRY(onxi_call_shape(call, 0, 1, &dims));
        if (onxi_count_set(call, 1, UINT32_MAX, &kept)) {
            dims[0] = kept;
            onxi_carry_kept(call);
        }
        return ONX_OK;
    }
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = ONXI_DIM_UNKNOWN;
    if (onxi_count_set(call, 1, UINT32_MAX, &kept)) {
        dims[axis] = kept;
        if (x->rank == 1)
            onxi_carry_kept(call);
    }
    return ONX_OK;
}

onx_status onxi_rule_unique(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis = 0;
    onxi_dim *dims, *lists;
    bool flat = !onxi_call_given(call, "axis");
    for (uint32_t i = 1; i < 4; i++) {
        ONX_TRY(onxi_call_output(call, i, ONX_INT64, 1, &lists));
        if (i == 2 && x && flat) /* one index per element of the input */
            lists[0] = onxi_call_product(call, x->dims, 0, x->rank);
    }
    if (flat)
        return onxi_call_shape(call, 0, 1, &dims);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = ONXI_DIM_UNKNOWN;
    return ONX_OK;
}

/* ---- OneHot, TopK ---- */

onx_status onxi_rule_one_hot(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *depth_type = onxi_call_ranked(call, 1),
                    *values = onxi_call_ranked(call, 2);
    const onxi_known_ints *depth = onxi_call_value(call, 1), *indices = onxi_call_value(call, 0);
    const bool strict = onxi_dims_refuses_overflow(call->dims) && call->schema->since < 11;
    uint32_t axis;
    onxi_dim *dims;
    if (depth_type && depth_type->rank > 1)
        return onxi_call_fail(call, "depth has rank %u", depth_type->rank);
    if (depth_type && depth_type->rank == 1 && onxi_dim_is_const(depth_type->dims[0]) && depth_type->dims[0] > 1)
        return onxi_call_fail(call, "depth has %lld elements, expected one", (long long)depth_type->dims[0]);
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    if (values && onxi_dim_is_const(values->dims[0]) && values->dims[0] != 2)
        return onxi_call_fail(call, "values has %lld elements, expected 2", (long long)values->dims[0]);
    if (depth && depth->count == 1 && onxi_dim_is_const(depth->elements[0]) && depth->elements[0] < 0)
        return onxi_call_fail(call, "depth is %lld", (long long)depth->elements[0]);
    /* Strict inference refuses them, as the reference does; runs give them the off value. */
    for (uint32_t i = 0; strict && indices && i < indices->count; i++)
        if (onxi_dim_is_const(indices->elements[i]) && indices->elements[i] < 0)
            return onxi_call_fail(call, "index %lld is negative", (long long)indices->elements[i]);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 1));
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank + 1, &axis));
    ONX_TRY(onxi_call_shape(call, 0, x->rank + 1, &dims));
    for (uint32_t i = 0, k = 0; i <= x->rank; i++)
        dims[i] = i == axis ? (depth && depth->count == 1 ? depth->elements[0] : ONXI_DIM_UNKNOWN) : x->dims[k++];
    return ONX_OK;
}

onx_status onxi_rule_top_k(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const onxi_known_ints *input = call->schema->since >= 10 ? onxi_call_value(call, 1) : NULL;
    onxi_dim k = input && input->count == 1 ? input->elements[0] : ONXI_DIM_UNKNOWN;
    uint32_t axis;
    onxi_dim *values, *indices;
    if (call->schema->since < 10)
        k = onxi_dim_of_int(onxi_call_int(call, "k"));
    if (onxi_dim_is_const(k) && k < 0)
        return onxi_call_fail(call, "k is %lld", (long long)k);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
    if (onxi_dim_is_const(k) && onxi_dim_is_const(x->dims[axis]) && k > x->dims[axis])
        return onxi_call_fail(call, "k is %lld and axis %u has size %lld", (long long)k, axis,
                              (long long)x->dims[axis]);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &values));
    ONX_TRY(onxi_call_output(call, 1, ONX_INT64, x->rank, &indices));
    memcpy(values, x->dims, x->rank * sizeof *values);
    values[axis] = k;
    memcpy(indices, values, x->rank * sizeof *values);
    return ONX_OK;
}

/* ---- order within an axis ---- */

onx_status onxi_rule_trilu(onxi_call *call)
{
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return onxi_call_want_least_rank(call, 0, 2);
}

onx_status onxi_rule_reverse_sequence(onxi_call *call)
{
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    return onxi_call_want_rank(call, 1, 1);
}
