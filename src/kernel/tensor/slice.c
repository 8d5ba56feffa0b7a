/* slice.c - Slice, Split, Tile and Expand: parts of the input, or the input several times. */
#include "kernel/core/blocked.h"
#include "kernel/core/move.h"

/* ---- Slice ---- */

typedef struct slice_list {
    const onx_value *input;
    const int64_t *attribute;
    uint64_t count;
} slice_list;

static slice_list read_list(const onxi_move_call *call, const char *name, uint32_t input)
{
    slice_list list = { 0 };
    if (call->p->since >= 10) {
        list.input = onxi_move_input(call, input);
        list.count = list.input ? list.input->count : 0;
        return list;
    }
    uint32_t count = 0;
    list.attribute = name ? onx_prepare_ints(call->p, name, &count) : NULL;
    list.count = count;
    return list;
}

static bool is_given(const slice_list *list)
{
    return list->input || list->attribute;
}

static int64_t entry(const slice_list *list, uint64_t i)
{
    return list->input ? onxi_move_number(list->input, i) : list->attribute[i];
}

static int64_t clamp(int64_t at, int64_t size, int64_t low, int64_t high)
{
    at = at < 0 ? at + size : at;
    return at < low ? low : at > high ? high : at;
}

static void slice_axis(onxi_move_axis *a, int64_t start, int64_t end, int64_t step)
{
    int64_t size = a->count, below = step > 0 ? 0 : -1, above = step > 0 ? size : size - 1;
    int64_t far = size < INT64_MAX ? size + 1 : size; /* a longer step selects one element as well */
    step = step > far ? far : step < -far ? -far : step;
    if (!size) {
        a->out = 0;
        return;
    }
    start = clamp(start, size, 0, above);
    end = clamp(end, size, below, above);
    int64_t way = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    a->out = way > 0 ? (way - 1) / stride + 1 : 0;
    a->offset = start;
    a->step = step;
}

static onx_status slice_describe(const onxi_move_call *call, onxi_move *m)
{
    slice_list starts = read_list(call, "starts", 1), ends = read_list(call, "ends", 2),
               axes = read_list(call, "axes", 3), steps = read_list(call, NULL, 4);
    if (starts.count != ends.count || (is_given(&axes) && axes.count != starts.count) ||
        (is_given(&steps) && steps.count != starts.count) || starts.count > m->rank)
        return ONXI_MOVE_FAIL(call, "there are %llu starts, %llu ends, %llu axes and %llu steps for rank %u",
                              (unsigned long long)starts.count, (unsigned long long)ends.count,
                              (unsigned long long)axes.count, (unsigned long long)steps.count, m->rank);
    bool seen[ONX_RANK_MAX] = { false };
    for (uint64_t i = 0; i < starts.count; i++) {
        int64_t axis = is_given(&axes) ? entry(&axes, i) : (int64_t)i, step = is_given(&steps) ? entry(&steps, i) : 1;
        if (axis < -(int64_t)m->rank || axis >= (int64_t)m->rank || seen[axis < 0 ? axis + m->rank : axis])
            return ONXI_MOVE_FAIL(call, "axis %lld is outside of rank %u, or given twice", (long long)axis, m->rank);
        if (step == 0)
            return ONXI_MOVE_FAIL(call, "step %llu is 0", (unsigned long long)i);
        axis = axis < 0 ? axis + m->rank : axis;
        seen[axis] = true;
        slice_axis(&m->axis[axis], entry(&starts, i), entry(&ends, i), step);
    }
    return ONX_OK;
}

/* ---- Tile ---- */

static onx_status tile_axis(const onxi_move_call *call, onxi_move_axis *a, int64_t times)
{
    int64_t out;
    if (times < 0 || !onxi_mul_i64(a->count, times, &out))
        return ONXI_MOVE_FAIL(call, "a dimension of %lld cannot be repeated %lld times", (long long)a->count,
                              (long long)times);
    a->out = out;
    a->mode = ONXI_MOVE_WRAP;
    return ONX_OK;
}

static onx_status tile_describe(const onxi_move_call *call, onxi_move *m)
{
    const onx_value *repeats = onxi_move_input(call, 1);
    if (!repeats || repeats->count != m->rank)
        return ONXI_MOVE_FAIL(call, "there are %llu repeats for rank %u",
                              repeats ? (unsigned long long)repeats->count : 0, m->rank);
    for (uint32_t d = 0; d < m->rank; d++)
        ONX_TRY(tile_axis(call, &m->axis[d], onxi_move_number(repeats, d)));
    return ONX_OK;
}

/* Version 1 has one repeat count and its axis, both in the type of the input. */
static onx_status tile_describe_1(const onxi_move_call *call, onxi_move *m)
{
    const onx_value *tiles = onxi_move_input(call, 1), *along = onxi_move_input(call, 2);
    if (!tiles || !along || tiles->count != 1 || along->count != 1)
        return ONXI_MOVE_FAIL(call, "tiles and axis must hold one number each");
    int64_t axis = onxi_move_number(along, 0);
    if (axis < 0 || axis >= (int64_t)m->rank)
        return ONXI_MOVE_FAIL(call, "axis %lld is outside of rank %u", (long long)axis, m->rank);
    return tile_axis(call, &m->axis[axis], onxi_move_number(tiles, 0));
}

/* ---- Split ---- */

typedef struct split_params {
    uint32_t axis, bits;
    uint64_t outer, inner; /* rows, and elements per index along the axis */
    const int64_t *sizes;  /* from the attribute */
    uint32_t size_count;
    uint32_t outputs; /* number of outputs of the node, the last of which may be unused */
    int64_t parts;    /* number of equal parts, where no sizes are given */
} split_params;

/* For an image whose channels lie next to each other: the parts get the same kind of layout. Parts of channels are
 * whole blocks, which lie in memory as the planes of as many channels do, or they are parts of each pixel. */
static onx_status split_lay_out(onx_prepare *p, split_params *q)
{
    const onx_value *x = p->inputs[0], *sizes = onxi_operand(p->input_count, p->inputs, 1);
    const uint32_t block = onxi_blocked_of(x);
    if (!p->want || !block || p->row_major_next || (sizes && !sizes->data) || p->output_count != p->node->output_count)
        return ONX_E_UNSUPPORTED;
    const bool last = block == x->dims[1];
    for (uint32_t i = 0; i < p->output_count; i++) {
        onx_value *y = p->outputs[i];
        const onx_layout *layout = NULL;
        if (!y || y->kind != ONX_VALUE_TENSOR || y->rank != x->rank || !y->count ||
            (last ? !onxi_channels_last(p, y, &layout) : !(layout = onxi_blocked_layout(p->arena, y, block))))
            return ONX_E_UNSUPPORTED;
        y->layout = layout;
    }
    onxi_image_layouts(p, x->layout, p->outputs[0]->layout);
    if (q->axis == 1 && last) {
        q->outer *= q->inner;
        q->inner = 1;
    } else if (q->axis > 1) {
        q->outer /= block;
        q->inner *= block;
    }
    return ONX_OK;
}

static onx_status split_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    split_params *q = ONXI_NEW(p->arena, split_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &q->axis));
    q->bits = x->dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(x->dtype);
    if (!q->bits)
        return ONX_E_UNSUPPORTED;
    q->outer = onxi_product(x->dims, 0, q->axis);
    q->inner = onxi_product(x->dims, q->axis + 1, x->rank);
    if (p->kernel->flags & ONX_KERNEL_LAYOUTS)
        ONX_TRY(split_lay_out(p, q));
    if (p->since < 13)
        q->sizes = onx_prepare_ints(p, "split", &q->size_count);
    q->outputs = p->node->output_count;
    q->parts = onx_prepare_given(p, "num_outputs") ? onx_prepare_int(p, "num_outputs") : q->outputs;
    if (q->parts < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "num_outputs is %lld", (long long)q->parts);
    p->params = q;
    if (p->kernel->flags & ONX_KERNEL_SIZES_OUTPUT)
        return ONX_OK; /* one row does all the work */
    uint64_t row = q->inner * (uint64_t)x->dims[q->axis];
    p->rows = q->outer;
    p->grain = q->bits < 8 ? p->rows + 1 : row ? ONXI_MOVE_GRAIN / row + 1 : 1;
    return ONX_OK;
}

/* The size of part `i` of an axis of `length`; -1: there are no sizes for that many outputs. */
static int64_t part_size(const split_params *q, const onx_value *sizes, int64_t length, uint32_t i, int32_t since)
{
    if (sizes)
        return i < sizes->count ? onxi_move_number(sizes, i) : -1;
    if (q->sizes)
        return i < q->size_count ? q->sizes[i] : -1;
    if (since < 18)
        return length % q->parts ? -1 : length / q->parts;
    int64_t chunk = length / q->parts + (length % q->parts ? 1 : 0), before;
    if (!onxi_mul_i64(chunk, i, &before) || before > length)
        return -1;
    return chunk < length - before ? chunk : length - before;
}

static bool is_part(const onx_value *x, const onx_value *y, uint32_t axis, int64_t size)
{
    if (y->kind != ONX_VALUE_TENSOR || y->dtype != x->dtype || y->rank != x->rank)
        return false;
    for (uint32_t d = 0; d < x->rank; d++)
        if (y->dims[d] != (d == axis ? size : x->dims[d]))
            return false;
    return true;
}

static onx_status split_output(onx_work *work, uint32_t i, int64_t size)
{
    const split_params *q = work->params;
    const onx_value *x = work->inputs[0];
    if (is_part(x, work->outputs[i], q->axis, size))
        return ONX_OK;
    if (!(work->prepared->kernel->flags & ONX_KERNEL_SIZES_OUTPUT))
        return onx_work_fail(work, ONX_E_INVALID, "output %u does not have the %lld elements of part %u", i,
                             (long long)size, i);
    int64_t dims[ONX_RANK_MAX];
    onxi_copy_dims(dims, x->dims, x->rank);
    dims[q->axis] = size;
    return onx_value_reset(work->outputs[i], (onx_dtype)x->dtype, x->rank, dims);
}

/* Copies `rows` runs of `count` elements, which begin `whole` elements apart in x. */
static void split_copy(const split_params *q, const onx_value *x, uint64_t from, uint64_t whole, onx_value *y,
                       uint64_t to, uint64_t count, uint64_t rows)
{
    const uint64_t size = q->bits / 8;
    if (rows == 1 || q->bits < 8)
        for (uint64_t row = 0; row < rows; row++)
            onxi_move_copy(q->bits, x, from + row * whole, y, to + row * count, count);
    else
        onxi_move_apart((char *)y->data + to * size, (int64_t)(count * size), (const char *)x->data + from * size,
                        (int64_t)(whole * size), count * size, (int64_t)rows);
}

static onx_status split_run(onx_work *work, uint64_t first, uint64_t last)
{
    const split_params *q = work->params;
    const onx_prepared *p = work->prepared;
    const onx_value *x = work->inputs[0];
    const onx_value *sizes = p->input_count > 1 ? work->inputs[1] : NULL;
    int64_t length = x->dims[q->axis], at = 0;
    const uint64_t whole = (uint64_t)length * q->inner;
    if (p->kernel->flags & ONX_KERNEL_SIZES_OUTPUT) {
        first = 0;
        last = q->outer;
    }
    for (uint32_t i = 0; i < q->outputs; i++) {
        int64_t size = part_size(q, sizes, length, i, p->since);
        if (size < 0 || size > length - at)
            return onx_work_fail(work, ONX_E_INVALID, "a dimension of %lld cannot be split into %u parts as asked",
                                 (long long)length, q->outputs);
        uint64_t start = (uint64_t)at * q->inner, count = (uint64_t)size * q->inner;
        at += size;
        if (i >= p->output_count || !work->outputs[i])
            continue;
        ONX_TRY(split_output(work, i, size));
        if (count && first < last)
            split_copy(q, x, first * whole + start, whole, work->outputs[i], first * count, count, last - first);
    }
    if ((sizes || q->sizes) && at != length)
        return onx_work_fail(work, ONX_E_INVALID, "the parts add up to %lld, the dimension has %lld", (long long)at,
                             (long long)length);
    return ONX_OK;
}

/* ---- Expand ---- */

static onx_status expand_as(onx_prepare *p, const onx_value *x, const onx_value *y)
{
    onxi_copies *q = ONXI_NEW(p->arena, onxi_copies);
    onxi_broadcast b;
    if (!q)
        return ONX_E_MEMORY;
    if (!onxi_element_size(x->dtype))
        return ONX_E_UNSUPPORTED;
    if (!onxi_broadcast_make(&b, &x, 1, y, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the input does not broadcast to the shape");
    p->params = q;
    p->rows = 1; /* without elements, too: the shape is looked at */
    if (!y->count)
        return ONX_OK;
    onxi_copies_start(q, onxi_element_size(x->dtype));
    for (uint32_t d = 0; d < b.rank; d++)
        onxi_copies_add(q, (uint64_t)b.dims[d], !b.step[0][d]);
    onxi_copies_finish(q, p->threads);
    p->rows = q->rows;
    p->grain = ONXI_MOVE_GRAIN / (y->count / q->rows) + 1;
    return ONX_OK;
}

static onx_status expand_prepare(onx_prepare *p)
{
    return expand_as(p, p->inputs[0], p->outputs[0]);
}

#if ONXI_PLATFORM_ROOMY
/* Images whose channels lie next to each other, if these are not repeated. */
static onx_status expand_in_blocks_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const uint32_t block = onxi_blocked_of(x);
    onx_value *y = p->outputs[0], whole = *y, views[2];
    int64_t dims[2][ONX_RANK_MAX];
    if (!p->want || !block || x->rank != y->rank || y->rank >= ONX_RANK_MAX || x->dims[1] != y->dims[1] ||
        !(whole.layout = onxi_blocked_layout(p->arena, y, block)) ||
        !onxi_blocked_view(x, x->rank, block, dims[0], &views[0]) ||
        !onxi_blocked_view(&whole, y->rank, block, dims[1], &views[1]))
        return ONX_E_UNSUPPORTED;
    y->layout = whole.layout;
    return expand_as(p, &views[0], &views[1]);
}
#endif

/* A plan may be made without the shape: where the input has more than one element along an axis, the output has as
 * many, if the shape allows it. */
static onx_status check_expanded(onx_work *work)
{
    const onx_value *shape = work->inputs[1], *y = work->outputs[0];
    for (uint64_t i = 0; i < shape->count && i < y->rank; i++) {
        const int64_t wanted = ((const int64_t *)shape->data)[shape->count - 1 - i], size = y->dims[y->rank - 1 - i];
        if (wanted != 1 && wanted != size)
            return onx_work_fail(work, ONX_E_INVALID, "dimensions %lld and %lld cannot be broadcast to each other",
                                 (long long)size, (long long)wanted);
    }
    return ONX_OK;
}

static onx_status expand_run(onx_work *work, uint64_t first, uint64_t last)
{
    if (!first)
        ONX_TRY(check_expanded(work));
    if (work->outputs[0]->count)
        onxi_copies_run(work->params, work->inputs[0]->data, work->outputs[0]->data, first, last);
    return ONX_OK;
}

/* ---- rows ---- */

static const onxi_move_body slice = { slice_describe, 0 }, tile = { tile_describe, 0 }, tile_1 = { tile_describe_1, 0 };

const onx_kernel onxi_kernels_slice[] = {
#if ONXI_PLATFORM_ROOMY
    ONXI_MOVE_LAID_OUT("Slice", 1, &slice, onxi_move_prepare),
    { .op = "Split",
      .since = 2,
      .preference = 5,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .prepare = split_prepare,
      .run = split_run },
#endif
    { .op = "Slice",
      .since = 1,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .body = &slice,
      .prepare = onxi_move_prepare,
      .run = onxi_move_run },
    { .op = "Tile", .since = 6, .body = &tile, .prepare = onxi_move_prepare, .run = onxi_move_run },
    { .op = "Tile",
      .since = 1,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .body = &tile_1,
      .prepare = onxi_move_prepare,
      .run = onxi_move_run },
#if ONXI_PLATFORM_ROOMY
    { .op = "Expand",
      .since = 8,
      .preference = 1,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .prepare = expand_in_blocks_prepare,
      .run = expand_run },
#endif
    { .op = "Expand", .since = 8, .prepare = expand_prepare, .run = expand_run },
    { .op = "Split", .since = 2, .flags = ONXI_KERNEL_CUTS, .prepare = split_prepare, .run = split_run },
    { .op = "Split", .since = 1, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = split_prepare, .run = split_run },
    { 0 }
};
