/* value.c - propagates values of more than one dimension: exporters arrange sizes in tables before they use them (the
 * pads of a Pad, the indices of a ScatterND). Lists and scalars are handled by each rule. */
#include "op/op_rules.h"

/* ---- arrays ---- */

enum { ARRAY_RANK = 6 };

/* A propagated value with its shape; elements in row-major order. */
typedef struct array {
    const onxi_dim *elements;
    uint32_t count, rank;
    int64_t sizes[ARRAY_RANK];
} array;

/* The shape of a type if all sizes are known and there are not too many elements. */
static bool sizes_of(const onxi_type *type, array *out)
{
    int64_t count = 1;
    if (!type || !type->ranked || type->rank > ARRAY_RANK)
        return false;
    for (uint32_t i = 0; i < type->rank; i++) {
        if (!onxi_dim_is_const(type->dims[i]) || type->dims[i] < 0 || type->dims[i] > ONXI_KNOWN_INTS_LIMIT)
            return false;
        out->sizes[i] = type->dims[i];
        count *= type->dims[i];
        if (count > ONXI_KNOWN_INTS_LIMIT)
            return false;
    }
    out->rank = type->rank;
    out->count = (uint32_t)count;
    return true;
}

static bool array_of(onxi_call *call, uint32_t input, array *out)
{
    const onxi_known_ints *value = call->dims ? onxi_call_any_value(call, input) : NULL;
    if (!value || !sizes_of(onxi_call_ranked(call, input), out) || out->rank != value->rank ||
        out->count != value->count)
        return false;
    out->elements = value->elements;
    return true;
}

/* Allocates the value of output 0, whose shape is set. */
static onxi_dim *new_array(onxi_call *call, array *out)
{
    if (!call->output_count || !sizes_of(&call->outputs[0], out))
        return NULL;
    onxi_dim *elements = onxi_call_set_value(call, 0, out->rank, out->count);
    out->elements = elements;
    return elements;
}

static void row_major(const array *a, int64_t strides[ARRAY_RANK])
{
    int64_t step = 1;
    for (uint32_t i = a->rank; i-- > 0; step *= a->sizes[i])
        strides[i] = step;
}

/* Advances the index of an element in row-major order. */
static void next(const array *a, int64_t at[ARRAY_RANK])
{
    for (uint32_t i = a->rank; i-- > 0;) {
        if (++at[i] < a->sizes[i])
            return;
        at[i] = 0;
    }
}

static int64_t place(uint32_t rank, const int64_t *at, const int64_t *strides)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < rank; i++)
        offset += at[i] * strides[i];
    return offset;
}

/* Copies elements from `in` to output 0, with these strides per axis. */
static void carry_strided(onxi_call *call, const array *in, int64_t first, const int64_t *strides)
{
    array out;
    int64_t at[ARRAY_RANK] = { 0 };
    onxi_dim *elements = new_array(call, &out);
    for (uint32_t k = 0; elements && k < out.count; k++, next(&out, at)) {
        int64_t from = first + place(out.rank, at, strides);
        elements[k] = from >= 0 && from < in->count ? in->elements[from] : ONXI_DIM_UNKNOWN;
    }
}

/* ---- rearranging elements ---- */

void onxi_carry_reshaped(onxi_call *call)
{
    const onxi_known_ints *in = onxi_call_any_value(call, 0);
    array out;
    if (!in || !call->output_count || !call->outputs[0].ranked)
        return;
    if (call->outputs[0].rank <= 1 && (call->outputs[0].rank == 1 || in->count == 1))
        onxi_call_carry(
            call, 0, (onxi_known_ints){ .rank = call->outputs[0].rank, .count = in->count, .elements = in->elements });
    else if (call->dims && sizes_of(&call->outputs[0], &out) && out.count == in->count)
        onxi_call_carry(call, 0, (onxi_known_ints){ .rank = out.rank, .count = in->count, .elements = in->elements });
}

void onxi_carry_transposed(onxi_call *call, const int64_t *perm)
{
    array in;
    int64_t strides[ARRAY_RANK], turned[ARRAY_RANK];
    if (!array_of(call, 0, &in))
        return;
    row_major(&in, strides);
    for (uint32_t i = 0; i < in.rank; i++)
        turned[i] = strides[perm ? (uint32_t)perm[i] : in.rank - 1 - i];
    carry_strided(call, &in, 0, turned);
}

/* Strides of an input that is broadcast to `rank` axes. */
static void broadcast_steps(const array *in, uint32_t rank, int64_t strides[ARRAY_RANK])
{
    int64_t own[ARRAY_RANK];
    row_major(in, own);
    for (uint32_t i = 0; i < rank; i++) {
        bool there = i + in->rank >= rank && in->sizes[i + in->rank - rank] != 1;
        strides[i] = there ? own[i + in->rank - rank] : 0;
    }
}

void onxi_carry_expanded(onxi_call *call)
{
    array in;
    int64_t strides[ARRAY_RANK];
    if (!call->output_count || !array_of(call, 0, &in) || !call->outputs[0].ranked ||
        call->outputs[0].rank > ARRAY_RANK || in.rank > call->outputs[0].rank)
        return;
    broadcast_steps(&in, call->outputs[0].rank, strides);
    carry_strided(call, &in, 0, strides);
}

void onxi_carry_sliced(onxi_call *call, const int64_t *starts, const int64_t *steps)
{
    array in;
    int64_t strides[ARRAY_RANK], first = 0;
    if (!array_of(call, 0, &in))
        return;
    row_major(&in, strides);
    for (uint32_t i = 0; i < in.rank; i++) {
        first += starts[i] * strides[i];
        strides[i] *= steps[i];
    }
    carry_strided(call, &in, first, strides);
}

void onxi_carry_joined(onxi_call *call, uint32_t axis)
{
    array out, in;
    int64_t strides[ARRAY_RANK], at[ARRAY_RANK], offset = 0;
    bool any = false;
    for (uint32_t i = 0; i < call->input_count; i++)
        any |= array_of(call, i, &in);
    onxi_dim *elements = any ? new_array(call, &out) : NULL;
    if (!elements)
        return;
    row_major(&out, strides);
    for (uint32_t i = 0; i < call->input_count; i++) {
        const onxi_type *type = onxi_call_ranked(call, i);
        bool known = array_of(call, i, &in);
        if (!type || type->rank != out.rank || !onxi_dim_is_const(type->dims[axis]))
            return;
        memset(at, 0, sizeof at);
        for (uint32_t k = 0; known && k < in.count; k++, next(&in, at)) {
            int64_t to = offset * strides[axis] + place(out.rank, at, strides);
            if (to >= 0 && to < out.count)
                elements[to] = in.elements[k];
        }
        offset += type->dims[axis];
    }
}

/* ---- element by element ---- */

onxi_dim onxi_call_step(onxi_call *call, onxi_dim (*step)(onxi_dims *dims, onxi_dim a, onxi_dim b), onxi_dim a,
                        onxi_dim b)
{
    if (!onxi_dim_is_known(a) || !onxi_dim_is_known(b))
        return ONXI_DIM_UNKNOWN;
    if (a == ONXI_DIM_BAND && b == ONXI_DIM_BAND && step != onxi_dim_min && step != onxi_dim_max)
        return ONXI_DIM_UNKNOWN; /* they may be different integers */
    return step(call->dims, a, b);
}

void onxi_carry_pairs(onxi_call *call, onxi_dim (*step)(onxi_dims *dims, onxi_dim a, onxi_dim b))
{
    array in[2], out;
    int64_t strides[2][ARRAY_RANK], at[ARRAY_RANK] = { 0 };
    onxi_dim *elements = array_of(call, 0, &in[0]) && array_of(call, 1, &in[1]) ? new_array(call, &out) : NULL;
    if (!elements)
        return;
    for (uint32_t i = 0; i < 2; i++)
        broadcast_steps(&in[i], out.rank, strides[i]);
    for (uint32_t k = 0; k < out.count; k++, next(&out, at)) {
        onxi_dim a = in[0].elements[place(out.rank, at, strides[0])];
        onxi_dim b = in[1].elements[place(out.rank, at, strides[1])];
        elements[k] = onxi_call_step(call, step, a, b);
    }
}

void onxi_carry_chosen(onxi_call *call)
{
    array in[3], out;
    int64_t strides[3][ARRAY_RANK], at[ARRAY_RANK] = { 0 };
    for (uint32_t i = 0; i < 3; i++)
        if (!array_of(call, i, &in[i]))
            return;
    onxi_dim *elements = new_array(call, &out);
    if (!elements)
        return;
    for (uint32_t i = 0; i < 3; i++)
        broadcast_steps(&in[i], out.rank, strides[i]);
    for (uint32_t k = 0; k < out.count; k++, next(&out, at)) {
        onxi_dim e[3];
        for (uint32_t i = 0; i < 3; i++)
            e[i] = in[i].elements[place(out.rank, at, strides[i])];
        elements[k] = onxi_dim_is_const(e[0]) ? (e[0] ? e[1] : e[2]) : e[1] == e[2] ? e[1] : ONXI_DIM_UNKNOWN;
    }
}

/* ---- by index ---- */

/* An index that may count from the end; -1 if it is unknown or out of range. */
static int64_t index_in(onxi_dim index, int64_t size)
{
    if (!onxi_dim_is_const(index) || index >= size || index < -size)
        return -1;
    return index < 0 ? index + size : index;
}

void onxi_carry_gathered(onxi_call *call, uint32_t axis)
{
    array in, at, out;
    if (!array_of(call, 0, &in) || !array_of(call, 1, &at) || axis >= in.rank)
        return;
    uint32_t inner = 1;
    for (uint32_t i = axis + 1; i < in.rank; i++)
        inner *= (uint32_t)in.sizes[i];
    onxi_dim *elements = new_array(call, &out);
    for (uint32_t k = 0; elements && k < out.count; k++) {
        uint32_t outer = k / inner / at.count, which = k / inner % at.count;
        int64_t index = index_in(at.elements[which], in.sizes[axis]);
        if (index >= 0)
            elements[k] = in.elements[((int64_t)outer * in.sizes[axis] + index) * inner + k % inner];
    }
}

/* The position in `data` that the index tuple `row` refers to; -1 if it is not known. */
static int64_t tuple_place(const array *data, const onxi_dim *row, uint32_t length)
{
    int64_t strides[ARRAY_RANK], offset = 0;
    row_major(data, strides);
    for (uint32_t i = 0; i < length; i++) {
        int64_t index = index_in(row[i], data->sizes[i]);
        if (index < 0)
            return -1;
        offset += index * strides[i];
    }
    return offset;
}

/* The number of elements that one index tuple selects; false if the shapes do not match. */
static bool tuple_extent(const array *data, const array *at, uint32_t *length, uint32_t *extent)
{
    if (!at->rank || at->sizes[at->rank - 1] > data->rank)
        return false;
    *length = (uint32_t)at->sizes[at->rank - 1];
    *extent = 1;
    for (uint32_t i = *length; i < data->rank; i++)
        *extent *= (uint32_t)data->sizes[i];
    return *length > 0 && *extent > 0;
}

void onxi_carry_gathered_tuples(onxi_call *call)
{
    array data, at, out;
    uint32_t length, extent;
    if (!array_of(call, 0, &data) || !array_of(call, 1, &at) || !tuple_extent(&data, &at, &length, &extent))
        return;
    onxi_dim *elements = new_array(call, &out);
    for (uint32_t k = 0; elements && k < out.count; k++) {
        int64_t from = tuple_place(&data, at.elements + (size_t)(k / extent) * length, length);
        if (from >= 0)
            elements[k] = data.elements[from + k % extent];
    }
}

/* If an index is unknown, every element that may have been written is unknown. */
static void forget_all(const array *out, onxi_dim *elements)
{
    for (uint32_t i = 0; i < out->count; i++)
        elements[i] = ONXI_DIM_UNKNOWN;
}

void onxi_carry_scattered_tuples(onxi_call *call)
{
    array data, at, updates, out;
    uint32_t length, extent;
    const onxi_attr_value *reduction = onxi_attrs_get(call->attrs, "reduction", ONX_ATTR_STRING);
    if (!array_of(call, 0, &data) || !array_of(call, 1, &at) || !tuple_extent(&data, &at, &length, &extent))
        return;
    bool known = array_of(call, 2, &updates) && (!reduction || onx_str_is(reduction->s, "none")) &&
                 updates.count == at.count / length * extent;
    onxi_dim *elements = new_array(call, &out);
    if (!elements || out.count != data.count)
        return;
    memcpy(elements, data.elements, data.count * sizeof *elements);
    for (uint32_t k = 0; k < at.count / length; k++) {
        int64_t to = tuple_place(&data, at.elements + (size_t)k * length, length);
        if (to < 0) {
            forget_all(&out, elements);
            return;
        }
        for (uint32_t i = 0; i < extent; i++)
            elements[to + i] = known ? updates.elements[k * extent + i] : ONXI_DIM_UNKNOWN;
    }
}

void onxi_carry_scattered(onxi_call *call, uint32_t axis)
{
    array data, at, updates, out;
    int64_t strides[ARRAY_RANK], where[ARRAY_RANK] = { 0 };
    const onxi_attr_value *reduction = onxi_attrs_get(call->attrs, "reduction", ONX_ATTR_STRING);
    if (!array_of(call, 0, &data) || !array_of(call, 1, &at) || at.rank != data.rank)
        return;
    bool known =
        array_of(call, 2, &updates) && (!reduction || onx_str_is(reduction->s, "none")) && updates.count == at.count;
    onxi_dim *elements = new_array(call, &out);
    if (!elements || out.count != data.count)
        return;
    memcpy(elements, data.elements, data.count * sizeof *elements);
    row_major(&data, strides);
    for (uint32_t k = 0; k < at.count; k++, next(&at, where)) {
        int64_t index = index_in(at.elements[k], data.sizes[axis]), to = -1;
        if (index >= 0)
            to = place(data.rank, where, strides) + (index - where[axis]) * strides[axis];
        if (to < 0 || to >= data.count) {
            forget_all(&out, elements);
            return;
        }
        elements[to] = known ? updates.elements[k] : ONXI_DIM_UNKNOWN;
    }
}

/* ---- positions of nonzero elements ---- */

/* -1: unknown */
static int is_set(onxi_dims *dims, onxi_dim d)
{
    if (!onxi_dim_is_known(d))
        return -1;
    if (onxi_dim_is_const(d))
        return d != 0;
    return onxi_dim_low(dims, d) > 0 ? 1 : -1;
}

bool onxi_count_set(onxi_call *call, uint32_t input, uint32_t limit, uint32_t *out)
{
    array in;
    *out = 0;
    if (!array_of(call, input, &in))
        return false;
    for (uint32_t k = 0; k < in.count && k < limit; k++) {
        int set = is_set(call->dims, in.elements[k]);
        if (set < 0)
            return false;
        *out += (uint32_t)set;
    }
    return true;
}

void onxi_carry_positions(onxi_call *call)
{
    array in, out;
    int64_t at[ARRAY_RANK] = { 0 };
    uint32_t found = 0;
    if (!array_of(call, 0, &in))
        return;
    onxi_dim *elements = new_array(call, &out);
    if (!elements || out.rank != 2)
        return;
    for (uint32_t k = 0; k < in.count; k++, next(&in, at)) {
        if (is_set(call->dims, in.elements[k]) != 1)
            continue;
        for (uint32_t i = 0; i < in.rank && found < out.sizes[1]; i++)
            elements[i * out.sizes[1] + found] = at[i];
        found++;
    }
}

void onxi_carry_kept(onxi_call *call)
{
    array in, out;
    const onxi_known_ints *keep = onxi_call_value(call, 1);
    uint32_t found = 0;
    if (!keep || !array_of(call, 0, &in))
        return;
    onxi_dim *elements = new_array(call, &out);
    for (uint32_t k = 0; elements && k < in.count && k < keep->count; k++)
        if (is_set(call->dims, keep->elements[k]) == 1 && found < out.count)
            elements[found++] = in.elements[k];
}
