/* select.c - operators that select elements: Where from two inputs, GatherElements and GatherND by indices, Compress by
 * a condition, OneHot from two values. */
#include "kernel/core/blocked.h"
#include "kernel/core/chain.h"
#include "kernel/core/move.h"
#include "kernel/core/pace.h"

/* ---- Where: elements are moved as integers of their size ---- */

ONXI_WHERE(uint8_t)
ONXI_WHERE(uint16_t)
ONXI_WHERE(uint32_t)
ONXI_WHERE(uint64_t)
ONXI_WHERE(onxi_sixteen)

typedef struct where_params {
    onxi_broadcast broadcast;
    onxi_where_loop loop;
    /* Bytes per element; elements per row of work if the broadcast has one outer row, 0: outer rows are rows of
     * work. */
    int64_t size, block;
} where_params;

/* Prepares for the given inputs and output, which may be views of the actual ones. */
static onx_status where_prepare_as(onx_prepare *p, const onx_value *const *inputs, const onx_value *z)
{
    static const onxi_where_body plain = { { [1] = where_uint8_t,
                                             [2] = where_uint16_t,
                                             [4] = where_uint32_t,
                                             [8] = where_uint64_t,
                                             [16] = where_onxi_sixteen } };
    const onxi_where_body *body = p->kernel->body ? p->kernel->body : &plain;
    where_params *q = ONXI_NEW(p->arena, where_params);
    if (!q)
        return ONX_E_MEMORY;
    q->size = onxi_element_size(z->dtype);
    if (inputs[0]->dtype != ONX_BOOL || inputs[1]->dtype != inputs[2]->dtype || !q->size)
        return ONX_E_UNSUPPORTED;
    if (!onxi_broadcast_make(&q->broadcast, inputs, 3, z, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs do not broadcast to the output");
    q->loop = body->loops[q->size];
    if (!q->loop)
        return ONX_E_UNSUPPORTED;
    int64_t inner = q->broadcast.inner;
    q->block = q->broadcast.outer == 1 ? ONXI_BLOCK : 0;
    p->params = q;
    p->rows = !z->count ? 0 : q->block ? (uint64_t)((inner + q->block - 1) / q->block) : q->broadcast.outer;
    p->grain = q->block || inner >= ONXI_BLOCK || !inner ? 1 : ONXI_BLOCK / (uint64_t)inner;
    return ONX_OK;
}

onx_status onxi_where_prepare(onx_prepare *p)
{
    return where_prepare_as(p, p->inputs, p->outputs[0]);
}

/* For images, at least one of which has channel blocks: inputs of the same shape are wanted in blocks, too; the others
 * are broadcast to them. */
static onx_status where_prepare_in_blocks(onx_prepare *p)
{
    onx_value *z = p->outputs[0], whole, views[4];
    const onx_value *list[] = { &views[0], &views[1], &views[2] };
    int64_t dims[4][ONX_RANK_MAX];
    uint32_t block = 0;
    for (uint32_t i = 0; i < 3 && !block; i++)
        /* Begins with the values: converting the condition moves fewer bytes. */
        block = onxi_blocked_of(p->inputs[2 - i]);
    if (!p->want || !block || z->rank >= ONX_RANK_MAX)
        return ONX_E_UNSUPPORTED;
    whole = *z;
    if (!(whole.layout = onxi_blocked_layout(p->arena, z, block)) ||
        !onxi_blocked_view(&whole, z->rank, block, dims[3], &views[3]))
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < 3; i++) {
        onx_value v = *p->inputs[i];
        const bool image = v.rank == z->rank && onxi_same_dims(v.dims, z->dims, z->rank);
        if (image && onxi_blocked_of(&v) != block && !(v.layout = onxi_blocked_layout(p->arena, p->inputs[i], block)))
            return ONX_E_UNSUPPORTED;
        if (!onxi_blocked_view(&v, z->rank, block, dims[i], &views[i]))
            return ONX_E_UNSUPPORTED;
        p->want[i] = v.layout;
    }
    ONX_TRY(where_prepare_as(p, list, &views[3]));
    z->layout = whole.layout;
    return ONX_OK;
}

onx_status onxi_where_run(onx_work *work, uint64_t first, uint64_t last)
{
    const where_params *q = work->params;
    const onxi_broadcast *b = &q->broadcast;
    const uint8_t *c = work->inputs[0]->data;
    const char *x = work->inputs[1]->data, *y = work->inputs[2]->data;
    char *z = work->outputs[0]->data;
    int64_t sc = b->step[0][b->rank - 1], sx = b->step[1][b->rank - 1], sy = b->step[2][b->rank - 1];
    for (uint64_t row = first; row < last; row++) {
        int64_t at[ONXI_BROADCAST_MAX] = { 0 }, start = (int64_t)row * b->inner, n = b->inner;
        if (q->block) {
            start = (int64_t)row * q->block;
            n = b->inner - start < q->block ? b->inner - start : q->block;
            at[0] = start * sc;
            at[1] = start * sx;
            at[2] = start * sy;
        } else {
            onxi_broadcast_offsets(b, row, at);
        }
        q->loop(c + at[0], sc, x + at[1] * q->size, sx, y + at[2] * q->size, sy, z + start * q->size, n);
    }
    return ONX_OK;
}

void onxi_where_element(const void *params, onxi_element *out)
{
    const where_params *q = params;
    out->inputs = 3;
    out->where = q->loop;
    out->broadcast = &q->broadcast;
    out->in_width[0] = 1;
    out->in_width[1] = out->in_width[2] = out->out_width = (uint32_t)q->size;
}

/* ---- GatherElements ---- */

typedef struct elements_params elements_params;
/* Gathers a line of the output by a line of the index, from the elements of x that begin at `base`. Returns the
 * position of the first index out of range, or the length of the line. */
typedef int64_t (*elements_line)(const elements_params *q, const void *x, int64_t base, const void *index, void *y);
struct elements_params {
    uint32_t rank, axis;
    int64_t dims[ONX_RANK_MAX], stride[ONX_RANK_MAX]; /* of the index; of the input */
    int64_t bound, inner;
    uint32_t size;
    bool wide; /* the index is int64 */
    elements_line line;
};

#define GATHER(T, I)                                                                                                   \
    static int64_t gather_##T##_by_##I(const elements_params *q, const void *px, int64_t base, const void *pindex,     \
                                       void *py)                                                                       \
    {                                                                                                                  \
        const T *x = px;                                                                                               \
        const I *index = pindex;                                                                                       \
        T *y = py;                                                                                                     \
        const int64_t bound = q->bound, stride = q->stride[q->axis], along = q->axis + 1 < q->rank, n = q->inner;      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            int64_t at = index[i];                                                                                     \
            at += at < 0 ? bound : 0;                                                                                  \
            if ((uint64_t)at >= (uint64_t)bound)                                                                       \
                return i;                                                                                              \
            y[i] = x[base + at * stride + i * along];                                                                  \
        }                                                                                                              \
        return n;                                                                                                      \
    }
#define GATHER_BOTH(T) GATHER(T, int32_t) GATHER(T, int64_t)
GATHER_BOTH(uint8_t)
GATHER_BOTH(uint16_t)
GATHER_BOTH(uint32_t)
GATHER_BOTH(uint64_t)
GATHER_BOTH(onxi_sixteen)

static const elements_line lines_by_int32[] = { [1] = gather_uint8_t_by_int32_t,
                                                [2] = gather_uint16_t_by_int32_t,
                                                [4] = gather_uint32_t_by_int32_t,
                                                [8] = gather_uint64_t_by_int32_t,
                                                [16] = gather_onxi_sixteen_by_int32_t };
static const elements_line lines_by_int64[] = { [1] = gather_uint8_t_by_int64_t,
                                                [2] = gather_uint16_t_by_int64_t,
                                                [4] = gather_uint32_t_by_int64_t,
                                                [8] = gather_uint64_t_by_int64_t,
                                                [16] = gather_onxi_sixteen_by_int64_t };

static onx_status elements_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1];
    elements_params *q = ONXI_NEW(p->arena, elements_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &q->axis));
    q->size = onxi_element_size(x->dtype);
    if (!q->size || (index->dtype != ONX_INT64 && index->dtype != ONX_INT32))
        return ONX_E_UNSUPPORTED;
    if (index->rank != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the index has rank %u, the input %u", index->rank, x->rank);
    onxi_strides(x, q->stride);
    q->rank = x->rank;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (d != q->axis && index->dims[d] > x->dims[d])
            return onx_prepare_fail(p, ONX_E_INVALID, "dimension %u of the index is %lld, of the input %lld", d,
                                    (long long)index->dims[d], (long long)x->dims[d]);
        q->dims[d] = index->dims[d];
    }
    q->bound = x->dims[q->axis];
    q->inner = index->dims[q->rank - 1];
    q->wide = index->dtype == ONX_INT64;
    q->line = (q->wide ? lines_by_int64 : lines_by_int32)[q->size];
    p->params = q;
    p->rows = index->count && q->inner ? index->count / (uint64_t)q->inner : 0;
    p->grain = q->inner ? 16384 / (uint64_t)q->inner + 1 : 1;
    return ONX_OK;
}

static onx_status elements_run(onx_work *work, uint64_t first, uint64_t last)
{
    const elements_params *q = work->params;
    const char *x = work->inputs[0]->data, *indexes = work->inputs[1]->data;
    char *y = work->outputs[0]->data;
    for (uint64_t row = first; row < last; row++) {
        int64_t base = 0, rest = (int64_t)row;
        for (uint32_t d = q->rank - 1; d-- > 0;) {
            base += d == q->axis ? 0 : rest % q->dims[d] * q->stride[d];
            rest /= q->dims[d];
        }
        const uint64_t start = row * (uint64_t)q->inner;
        const int64_t done = q->line(q, x, base, indexes + start * (q->wide ? 8 : 4), y + start * q->size);
        if (done < q->inner)
            return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of a dimension of %lld",
                                 (long long)onxi_index(work->inputs[1], start + (uint64_t)done), (long long)q->bound);
    }
    return ONX_OK;
}

/* ---- GatherND ---- */

typedef struct nd_params {
    uint32_t batch_dims, depth, rank; /* number of common leading dims; indices per position */
    uint64_t batches, each, bytes;    /* positions per batch; bytes per position */
    uint64_t batch_bytes;
    const int64_t *dims; /* the dims that the indices of a position refer to */
    uint64_t *steps;     /* strides in bytes */
} nd_params;

static onx_status nd_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1];
    nd_params *q = ONXI_NEW(p->arena, nd_params);
    if (!q)
        return ONX_E_MEMORY;
    int64_t batch = p->since >= 12 ? onx_prepare_int(p, "batch_dims") : 0,
            depth = index->rank ? index->dims[index->rank - 1] : 0;
    if (!onxi_element_size(x->dtype) || (index->dtype != ONX_INT64 && index->dtype != ONX_INT32))
        return ONX_E_UNSUPPORTED;
    if (batch < 0 || batch >= index->rank || batch > x->rank || depth > x->rank - batch)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "an index of rank %u and depth %lld with %lld batch dimensions does "
                                "not fit an input of rank %u",
                                index->rank, (long long)depth, (long long)batch, x->rank);
    q->batch_dims = (uint32_t)batch;
    q->depth = (uint32_t)depth;
    for (uint32_t d = 0; d < q->batch_dims; d++)
        if (index->dims[d] != x->dims[d])
            return onx_prepare_fail(p, ONX_E_INVALID, "dimension %u of the index is %lld, of the input %lld", d,
                                    (long long)index->dims[d], (long long)x->dims[d]);
    q->bytes = onxi_product(x->dims, q->batch_dims + q->depth, x->rank) * onxi_element_size(x->dtype);
    q->batches = onxi_product(x->dims, 0, q->batch_dims);
    q->each = onxi_product(index->dims, q->batch_dims, index->rank - 1);
    q->batch_bytes = onxi_product(x->dims, q->batch_dims, x->rank) * onxi_element_size(x->dtype);
    q->dims = x->dims + q->batch_dims;
    q->steps = ONXI_ARRAY(p->arena, uint64_t, q->depth + 1u);
    if (!q->steps)
        return ONX_E_MEMORY;
    uint64_t step = q->bytes;
    for (uint32_t d = q->depth; d-- > 0;) {
        q->steps[d] = step;
        step *= (uint64_t)q->dims[d];
    }
    if (p->outputs[0]->size != q->batches * q->each * q->bytes)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output does not have the elements that are gathered");
    p->params = q;
    p->rows = q->bytes || q->depth ? q->batches * q->each : 0; /* indices are checked even where nothing is copied */
    p->grain = 65536 / (q->bytes + q->depth + 1) + 1;
    return ONX_OK;
}

static onx_status nd_run(onx_work *work, uint64_t first, uint64_t last)
{
    const nd_params *q = work->params;
    const char *x = work->inputs[0]->data;
    for (uint64_t row = first; row < last; row++) {
        uint64_t from = row < q->each ? 0 : row / q->each * q->batch_bytes;
        for (uint32_t d = 0; d < q->depth; d++) {
            int64_t at = onxi_index(work->inputs[1], row * q->depth + d), bound = q->dims[d];
            if (at < -bound || at >= bound)
                return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of a dimension of %lld", (long long)at,
                                     (long long)bound);
            from += (uint64_t)(at < 0 ? at + bound : at) * q->steps[d];
        }
        if (q->bytes)
            onxi_copy_item((char *)work->outputs[0]->data + row * q->bytes, x + from, q->bytes);
    }
    return ONX_OK;
}

/* ---- Compress ---- */

typedef struct compress_params {
    bool flat; /* the input is taken as one dimension */
    uint32_t axis;
} compress_params;

static onx_status compress_prepare(onx_prepare *p)
{
    compress_params *q = ONXI_NEW(p->arena, compress_params);
    if (!q)
        return ONX_E_MEMORY;
    q->flat = !onx_prepare_given(p, "axis");
    if (!q->flat)
        ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), p->inputs[0]->rank, &q->axis));
    p->params = q;
    return onxi_whole_bytes(p);
}

static onx_status compress_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const compress_params *q = work->params;
    const onx_value *x = work->inputs[0], *condition = work->inputs[1];
    const uint8_t *keep = condition->data;
    int64_t dims[ONX_RANK_MAX] = { (int64_t)x->count }, kept = 0;
    const uint32_t axis = q->axis, rank = q->flat ? 1 : x->rank;
    if (!q->flat)
        onxi_copy_dims(dims, x->dims, x->rank);
    uint64_t outer = onxi_product(dims, 0, axis), inner = onxi_product(dims, axis + 1, rank), size = inner;
    uint64_t length = (uint64_t)dims[axis];
    size *= onxi_element_size(x->dtype);
    for (uint64_t i = 0; i < condition->count; i++) {
        if (keep[i] && i >= length)
            return onx_work_fail(work, ONX_E_INVALID, "the condition keeps %llu of a dimension of %llu",
                                 (unsigned long long)i, (unsigned long long)length);
        kept += keep[i] != 0;
    }
    dims[axis] = kept;
    ONX_TRY(onxi_value_size(work->outputs[0], x->dtype, rank, dims));
    const char *from = x->data;
    char *to = work->outputs[0]->data;
    uint64_t count = condition->count < length ? condition->count : length;
    onxi_pace pace = { .work = work };
    for (uint64_t row = 0; row < outer && size; row++, from += length * size)
        for (uint64_t i = 0; i < count && !onxi_pace_stops(&pace, 4); i++)
            if (keep[i]) {
                onxi_pace_copy(work, to, from + i * size, size);
                to += size;
            }
    return ONX_OK;
}

/* ---- OneHot: indices of any type; fractions are truncated, NaN is out of range ---- */

static onx_status one_hot_prepare(onx_prepare *p)
{
    uint32_t *axis = ONXI_NEW(p->arena, uint32_t);
    if (!axis)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), p->inputs[0]->rank + 1, axis));
    p->params = axis;
    return onxi_whole_bytes(p);
}

static onx_status one_hot_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *index = work->inputs[0], *depths = work->inputs[1], *values = work->inputs[2];
    const uint32_t axis = *(const uint32_t *)work->params, size = onxi_element_size(values->dtype);
    if (depths->count != 1 || values->rank != 1 || values->dims[0] != 2)
        return onx_work_fail(work, ONX_E_INVALID, "depth has %llu elements and values %llu, expected 1 and 2",
                             (unsigned long long)depths->count, (unsigned long long)values->count);
    int64_t depth = onxi_index(depths, 0), dims[ONX_RANK_MAX + 1];
    if (depth < 0 || depth == INT64_MAX || index->rank >= ONX_RANK_MAX)
        return onx_work_fail(work, ONX_E_INVALID, "depth is %lld", (long long)depth);
    for (uint32_t d = 0; d < index->rank; d++)
        dims[d + (d >= axis)] = index->dims[d];
    dims[axis] = depth;
    ONX_TRY(onxi_value_size(work->outputs[0], values->dtype, index->rank + 1, dims));
    onx_value *y = work->outputs[0];
    const char *off = values->data, *on = off + size;
    char *to = y->data;
    uint64_t inner = onxi_product(index->dims, axis, index->rank);
    onxi_pace pace = { .work = work };
    onxi_pace_repeat(work, to, off, size, y->count);
    for (uint64_t i = 0; i < index->count && depth && !onxi_pace_stops(&pace, 16); i++) {
        int64_t at = onxi_index(index, i);
        at = at < 0 && work->prepared->since >= 11 ? at + depth : at; /* before, negative ones are out of range */
        if (at >= 0 && at < depth)
            memcpy(to + ((i / inner * (uint64_t)depth + (uint64_t)at) * inner + i % inner) * size, on, size);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_select[] = {
    { .op = "Where", .since = 9, .prepare = onxi_where_prepare, .run = onxi_where_run },
    { .op = "Where",
      .since = 9,
      .dtypes = ONX_DTYPE_BIT(ONX_BOOL),
      .preference = 2,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .prepare = where_prepare_in_blocks,
      .run = onxi_where_run },
    { .op = "GatherElements", .since = 11, .prepare = elements_prepare, .run = elements_run },
    { .op = "GatherND", .since = 11, .prepare = nd_prepare, .run = nd_run },
    { .op = "Compress",
      .since = 9,
      .dtypes = ONX_DTYPE_BIT(ONX_BOOL),
      .dtype_from = ONX_INPUT(1),
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = compress_prepare,
      .run = compress_run },
    { .op = "OneHot", .since = 9, .flags = ONX_KERNEL_SIZES_OUTPUT, .prepare = one_hot_prepare, .run = one_hot_run },
    { 0 }
};
