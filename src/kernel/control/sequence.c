/* sequence.c - sequences and optional values. A value that is put into one is copied once, because its memory is
 * reused; after that, lists share their items, which never change. */
#include "kernel/core/move.h"

/* ---- shared functions ---- */

static onx_status need_list(const onx_prepare *p, uint32_t input, onx_value_kind kind, const char *what)
{
    const onx_value *v = p->inputs[input];
    if (v && (v->kind == kind || v->kind == ONX_VALUE_NONE)) /* NONE: the kind is known only while running */
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID, "input %u is not %s", input, what);
}

static onx_status sequence_prepare(onx_prepare *p)
{
    return need_list(p, 0, ONX_VALUE_SEQUENCE, "a sequence");
}

/* Reads a position in a list of `count` items, counted from the end if negative; it must be less than `end`. */
static onx_status position(onx_work *work, uint32_t input, uint64_t count, uint64_t end, uint64_t *out)
{
    *out = 0;
    const onx_value *v = work->inputs[input];
    if (v->kind != ONX_VALUE_TENSOR || (v->dtype != ONX_INT32 && v->dtype != ONX_INT64) || v->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "the position is not a single int32 or int64");
    int64_t at = onxi_move_number(v, 0), size = (int64_t)count;
    if (at < -size || at >= (int64_t)end)
        return onx_work_fail(work, ONX_E_INVALID, "position %lld is outside of a sequence of %lld", (long long)at,
                             (long long)size);
    *out = (uint64_t)(at < 0 ? at + size : at);
    return ONX_OK;
}

static bool given(const onx_work *work, uint32_t input)
{
    return input < work->prepared->input_count && work->inputs[input];
}

/* Copies `from` to an output, whether the plan or the value owns the output's memory. */
static onx_status put(onx_value *out, const onx_value *from)
{
    bool same = out->kind == ONX_VALUE_TENSOR && from->kind == ONX_VALUE_TENSOR && out->dtype == from->dtype &&
                out->rank == from->rank;
    for (uint32_t d = 0; same && d < out->rank; d++)
        same = out->dims[d] == from->dims[d];
    if (!same)
        return onx_value_assign(out, from);
    if (out->size)
        memcpy(out->data, from->data, out->size);
    return ONX_OK;
}

/* The same for an operand that may be given away. */
static onx_status take(onx_value *out, const onx_value *from)
{
    return from->kind > ONX_VALUE_TENSOR ? onxi_value_take(out, from) : put(out, from);
}

static onx_status add_copy(onx_value *list, uint64_t index, const onx_value *from)
{
    onx_value *item;
    ONX_TRY(onxi_value_snapshot(list->cx, from, &item));
    onx_status status = onx_value_insert(list, index, item);
    onx_value_free(item);
    return status;
}

/* ---- creating sequences ---- */

static onx_status empty_prepare(onx_prepare *p)
{
    onx_dtype *dtype = ONXI_NEW(p->arena, onx_dtype);
    if (!dtype)
        return ONX_E_MEMORY;
    *dtype = (onx_dtype)onx_prepare_int(p, "dtype");
    p->params = dtype;
    return ONX_OK;
}

static onx_status empty_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_value_reset_list(work->outputs[0], ONX_VALUE_SEQUENCE, *(const onx_dtype *)work->params);
}

static onx_status construct_prepare(onx_prepare *p)
{
    for (uint32_t i = 0; i < p->input_count; i++)
        ONX_TRY(need_list(p, i, ONX_VALUE_TENSOR, "a tensor"));
    return ONX_OK;
}

static onx_status construct_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    onx_value *y = work->outputs[0];
    ONX_TRY(onx_value_reset_list(y, ONX_VALUE_SEQUENCE, (onx_dtype)work->inputs[0]->dtype));
    for (uint32_t i = 0; i < work->prepared->input_count; i++) {
        if (work->inputs[i]->dtype != y->dtype)
            return onx_work_fail(work, ONX_E_INVALID, "inputs 0 and %u have the element types %s and %s", i,
                                 onx_dtype_name(y->dtype), onx_dtype_name(work->inputs[i]->dtype));
        ONX_TRY(add_copy(y, i, work->inputs[i]));
    }
    return ONX_OK;
}

static onx_status insert_prepare(onx_prepare *p)
{
    ONX_TRY(sequence_prepare(p));
    return need_list(p, 1, ONX_VALUE_TENSOR, "a tensor");
}

static onx_status insert_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0], *item = work->inputs[1];
    uint64_t at = x->count;
    if (given(work, 2))
        ONX_TRY(position(work, 2, x->count, x->count + 1, &at));
    if (x->dtype && x->dtype != item->dtype)
        return onx_work_fail(work, ONX_E_INVALID, "the tensor is %s, those of the sequence %s",
                             onx_dtype_name(item->dtype), onx_dtype_name(x->dtype));
    ONX_TRY(onxi_value_take(work->outputs[0], x));
    work->outputs[0]->dtype = item->dtype;
    return add_copy(work->outputs[0], at, item);
}

static onx_status erase_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    uint64_t at = x->count ? x->count - 1 : 0;
    if (given(work, 1))
        ONX_TRY(position(work, 1, x->count, x->count, &at));
    else if (!x->count)
        return onx_work_fail(work, ONX_E_INVALID, "the sequence is empty");
    ONX_TRY(onxi_value_take(y, x));
    onxi_value_remove(y, at);
    return ONX_OK;
}

/* ---- reading sequences ---- */

static onx_status at_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    uint64_t at;
    ONX_TRY(position(work, 1, work->inputs[0]->count, work->inputs[0]->count, &at));
    return put(work->outputs[0], work->inputs[0]->items[at]);
}

static onx_status length_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    memcpy(work->outputs[0]->data, &work->inputs[0]->count, sizeof(int64_t));
    return ONX_OK;
}

/* ---- SplitToSequence ---- */

typedef struct split {
    uint32_t axis;
    bool squeezed; /* parts of size 1, without the axis */
    uint32_t bits;
    uint64_t outer, inner; /* product of the dims before and after the axis */
    int64_t size;          /* of the axis */
} split;

/* Adds indices at .. at + size - 1 of the axis as an item. */
static onx_status add_part(onx_work *work, const split *s, int64_t at, int64_t size)
{
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0], *part;
    int64_t dims[ONX_RANK_MAX];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != s->axis || !s->squeezed)
            dims[rank++] = d == s->axis ? size : x->dims[d];
    ONX_TRY(onx_value_new_tensor(y->cx, (onx_dtype)x->dtype, rank, dims, &part));
    uint64_t run = (uint64_t)size * s->inner;
    for (uint64_t i = 0; i < s->outer && run; i++)
        onxi_move_copy(s->bits, x, (i * (uint64_t)s->size + (uint64_t)at) * s->inner, part, i * run, run);
    onx_status status = onxi_value_own_texts(part);
    if (status == ONX_OK)
        status = onx_value_insert(y, y->count, part);
    onx_value_free(part);
    return status;
}

static onx_status split_evenly(onx_work *work, const split *s, int64_t size)
{
    if (size <= 0)
        return onx_work_fail(work, ONX_E_INVALID, "split is %lld, expected more than 0", (long long)size);
    uint64_t parts = (uint64_t)(s->size / size), limit = onx_ctx_limits(work->outputs[0]->cx).memory;
    if (parts > limit / sizeof(onx_value)) /* parts may be empty, so no other limit bounds their number */
        return onx_work_fail(work, ONX_E_LIMIT, "a sequence of %llu parts exceeds the memory limit of %llu bytes",
                             (unsigned long long)parts, (unsigned long long)limit);
    for (int64_t at = 0; at < s->size; at += s->size - at < size ? s->size - at : size)
        ONX_TRY(add_part(work, s, at, s->size - at < size ? s->size - at : size));
    return ONX_OK;
}

static onx_status split_by_list(onx_work *work, const split *s, const onx_value *sizes)
{
    int64_t at = 0;
    for (uint64_t i = 0; i < sizes->count; i++) {
        int64_t size = onxi_move_number(sizes, i);
        if (size < 0 || size > s->size - at)
            return onx_work_fail(work, ONX_E_INVALID,
                                 "part %llu of size %lld does not fit after %lld elements in an axis of size %lld",
                                 (unsigned long long)i, (long long)size, (long long)at, (long long)s->size);
        ONX_TRY(add_part(work, s, at, size));
        at += size;
    }
    if (at != s->size)
        return onx_work_fail(work, ONX_E_INVALID, "the parts have %lld elements together, the axis has %lld",
                             (long long)at, (long long)s->size);
    return ONX_OK;
}

static onx_status split_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    split *s = ONXI_NEW(p->arena, split);
    if (!s)
        return ONX_E_MEMORY;
    ONX_TRY(need_list(p, 0, ONX_VALUE_TENSOR, "a tensor"));
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &s->axis));
    bool has_sizes = p->input_count > 1 && p->inputs[1];
    if (has_sizes && (p->inputs[1]->rank > 1 || (p->inputs[1]->dtype != ONX_INT32 && p->inputs[1]->dtype != ONX_INT64)))
        return onx_prepare_fail(p, ONX_E_INVALID, "split is not a scalar or vector of int32 or int64");
    s->squeezed = !has_sizes && onx_prepare_int(p, "keepdims") == 0;
    s->bits = x->dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(x->dtype);
    s->outer = onxi_product(x->dims, 0, s->axis);
    s->inner = onxi_product(x->dims, s->axis + 1, x->rank);
    s->size = x->dims[s->axis];
    p->params = s;
    return ONX_OK;
}

static onx_status split_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const split *s = work->params;
    ONX_TRY(onx_value_reset_list(work->outputs[0], ONX_VALUE_SEQUENCE, (onx_dtype)work->inputs[0]->dtype));
    if (!given(work, 1))
        return split_evenly(work, s, 1);
    const onx_value *sizes = work->inputs[1];
    return sizes->rank ? split_by_list(work, s, sizes) : split_evenly(work, s, onxi_move_number(sizes, 0));
}

/* ---- ConcatFromSequence ---- */

/* Computes the dims of the result from those of the items, which must agree in all dims but the axis. */
static onx_status joined_dims(onx_work *work, const onx_value *x, uint32_t axis, bool stack, int64_t *dims)
{
    const onx_value *head = x->items[0];
    for (uint32_t d = 0, k = 0; d < head->rank + (stack ? 1u : 0u); d++)
        dims[d] = d == axis ? 0 : head->dims[stack ? k++ : d];
    for (uint64_t i = 0; i < x->count; i++) {
        const onx_value *item = x->items[i];
        bool fits = item->kind == ONX_VALUE_TENSOR && item->dtype == head->dtype && item->rank == head->rank;
        for (uint32_t d = 0; fits && d < item->rank; d++)
            fits = item->dims[d] == head->dims[d] || (d == axis && !stack);
        if (!fits)
            return onx_work_fail(work, ONX_E_INVALID, "item %llu does not fit the first one", (unsigned long long)i);
        if (!onxi_add_i64(dims[axis], stack ? 1 : item->dims[axis], &dims[axis]))
            return onx_work_fail(work, ONX_E_LIMIT, "the items are too long together");
    }
    return ONX_OK;
}

typedef struct concat_params {
    bool stack; /* stacks along a new axis */
    int64_t axis;
} concat_params;

static onx_status concat_prepare(onx_prepare *p)
{
    ONX_TRY(sequence_prepare(p));
    concat_params *q = ONXI_NEW(p->arena, concat_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (concat_params){ .stack = onx_prepare_int(p, "new_axis") != 0, .axis = onx_prepare_int(p, "axis") };
    p->params = q;
    return ONX_OK;
}

static onx_status concat_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const concat_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    const bool stack = q->stack;
    int64_t axis = q->axis, dims[ONX_RANK_MAX + 1];
    if (!x->count || x->items[0]->kind != ONX_VALUE_TENSOR)
        return onx_work_fail(work, ONX_E_INVALID, "the sequence holds no tensors");
    int64_t rank = (int64_t)x->items[0]->rank + (stack ? 1 : 0);
    if (axis < -rank || axis >= rank || rank > (int64_t)ONX_RANK_MAX)
        return onx_work_fail(work, ONX_E_INVALID, "axis %lld is outside of rank %lld", (long long)axis,
                             (long long)rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + rank : axis);
    ONX_TRY(joined_dims(work, x, at, stack, dims));
    onx_dtype dtype = (onx_dtype)x->items[0]->dtype;
    ONX_TRY(onx_value_reset(y, dtype, (uint32_t)rank, dims));
    uint64_t inner = onxi_product(dims, at + 1, (uint32_t)rank), outer = onxi_product(dims, 0, at), to = 0;
    uint32_t bits = dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(dtype);
    for (uint64_t row = 0; row < outer && y->count; row++)
        for (uint64_t i = 0; i < x->count; i++) {
            uint64_t run = inner * (stack ? 1 : (uint64_t)x->items[i]->dims[at]);
            if (run)
                onxi_move_copy(bits, x->items[i], row * run, y, to, run);
            to += run;
        }
    return ONX_OK;
}

/* ---- optional values ---- */

static onx_status optional_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    ONX_TRY(onx_value_reset_list(work->outputs[0], ONX_VALUE_OPTIONAL, ONX_UNDEFINED));
    if (!given(work, 0))
        return ONX_OK;
    if (work->inputs[0]->kind != ONX_VALUE_TENSOR && work->inputs[0]->kind != ONX_VALUE_SEQUENCE)
        return onx_work_fail(work, ONX_E_INVALID, "an optional holds only tensors and sequences");
    return add_copy(work->outputs[0], 0, work->inputs[0]);
}

static onx_status get_element_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    if (x->kind != ONX_VALUE_OPTIONAL)
        return take(work->outputs[0], x);
    if (!x->count)
        return onx_work_fail(work, ONX_E_INVALID, "the optional value is empty");
    return put(work->outputs[0], x->items[0]);
}

static onx_status has_element_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = given(work, 0) ? work->inputs[0] : NULL;
    *(uint8_t *)work->outputs[0]->data = x && (x->kind != ONX_VALUE_OPTIONAL || x->count);
    return ONX_OK;
}

#define ROW(name, from, how, ...)                                                                                      \
    {                                                                                                                  \
        .op = name, .since = from, .flags = how, __VA_ARGS__                                                           \
    }
const onx_kernel onxi_kernels_sequence[] = {
    ROW("SequenceEmpty", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = empty_prepare, .run = empty_run),
    ROW("SequenceConstruct", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = construct_prepare, .run = construct_run),
    ROW("SequenceInsert", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = insert_prepare, .run = insert_run),
    ROW("SequenceErase", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = sequence_prepare, .run = erase_run),
    ROW("SequenceAt", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = sequence_prepare, .run = at_run),
    ROW("SequenceLength", 11, 0, .prepare = sequence_prepare, .run = length_run),
    ROW("SplitToSequence", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = split_prepare, .run = split_run),
    ROW("ConcatFromSequence", 11, ONX_KERNEL_SIZES_OUTPUT, .prepare = concat_prepare, .run = concat_run),
    ROW("Optional", 15, ONX_KERNEL_SIZES_OUTPUT, .run = optional_run),
    ROW("OptionalGetElement", 15, ONX_KERNEL_SIZES_OUTPUT, .run = get_element_run),
    ROW("OptionalHasElement", 15, 0, .run = has_element_run),
    { 0 },
};
