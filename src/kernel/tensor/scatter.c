/* scatter.c - operators that change some elements of a copy of their first input: ScatterElements, ScatterND and
 * TensorScatter. If the input is not needed afterwards, it is not copied. One thread applies the updates in the order
 * of memory, so repeated indices have one outcome. */
#include "kernel/core/loops.h"
#include "kernel/core/move.h"
#include "kernel/core/pace.h"

/* ---- reductions ---- */

/* Booleans are added and multiplied as in NumPy. */
#define COMPLEX_LOOPS(T, name)                                                                                         \
    static void add_##name(const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t n)                \
    {                                                                                                                  \
        const T *x = px, *y = py;                                                                                      \
        T *z = pz;                                                                                                     \
        for (int64_t i = 0; i < n; i++, x += 2 * sx, y += 2 * sy, z += 2) {                                            \
            z[0] = x[0] + y[0];                                                                                        \
            z[1] = x[1] + y[1];                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void mul_##name(const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t n)                \
    {                                                                                                                  \
        const T *x = px, *y = py;                                                                                      \
        T *z = pz;                                                                                                     \
        for (int64_t i = 0; i < n; i++, x += 2 * sx, y += 2 * sy, z += 2) {                                            \
            T re = x[0] * y[0] - x[1] * y[1], im = x[0] * y[1] + x[1] * y[0];                                          \
            z[0] = re;                                                                                                 \
            z[1] = im;                                                                                                 \
        }                                                                                                              \
    }
COMPLEX_LOOPS(float, complex64)
COMPLEX_LOOPS(double, complex128)

/* *out is NULL if the update replaces the element. */
static onx_status read_reduction(const onx_prepare *p, onxi_binary_loop *out)
{
    static const onxi_word words[] = {
        { "none", 1, 0 }, { "add", 1, 0 }, { "mul", 1, 0 }, { "max", 1, 0 }, { "min", 1, 0 } /* check_node.c, ND-26 */
    };
    const int word = p->since >= 16 ? onxi_prepare_word(p, "reduction", words, 5) : 0;
    int dtype = p->inputs[0]->dtype;
    const bool add = word == 1, mul = word == 2, max = word == 3;
    *out = NULL;
    if (!word)
        return ONX_OK;
    if (word < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "reduction is \"%.*s\"", ONX_ARG(onx_prepare_text(p, "reduction")));
    if (dtype == ONX_BOOL)
        *out = (add || max ? &onxi_body_or : &onxi_body_and)->loops[dtype];
    else if (dtype == ONX_COMPLEX64)
        *out = add ? add_complex64 : mul ? mul_complex64 : NULL;
    else if (dtype == ONX_COMPLEX128)
        *out = add ? add_complex128 : mul ? mul_complex128 : NULL;
    else
        *out = (add ? &onxi_body_add : mul ? &onxi_body_mul : max ? &onxi_body_max : &onxi_body_min)->loops[dtype];
    if (!*out)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "there is no reduction \"%s\" of %s", words[word].text,
                                onx_dtype_name(dtype));
    return ONX_OK;
}

typedef struct scatter_params {
    onxi_binary_loop reduce;
    bool adds_floats;                                 /* the reduction adds floats */
    uint32_t rank, axis, size, depth;                 /* depth: indices per position (ScatterND) */
    int64_t dims[ONX_RANK_MAX], stride[ONX_RANK_MAX]; /* of the index or the data; of the data, in elements */
    uint64_t inner;                                   /* contiguous elements per position */
    uint32_t outer;                                   /* number of dims of the index before a line */
    /* Elements of a line: along the last dim, or along all dims behind the axis. */
    uint64_t line;
} scatter_params;

static onx_status scatter_start(onx_prepare *p, scatter_params **out)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1], *update = p->inputs[2];
    scatter_params *q = ONXI_NEW(p->arena, scatter_params);
    if (!q)
        return ONX_E_MEMORY;
    q->size = onxi_element_size(x->dtype);
    if (!q->size || x->dtype != update->dtype || (index->dtype != ONX_INT64 && index->dtype != ONX_INT32))
        return ONX_E_UNSUPPORTED;
    q->rank = x->rank;
    onxi_strides(x, q->stride);
    p->params = *out = q;
    ONX_TRY(read_reduction(p, &q->reduce));
    q->adds_floats = x->dtype == ONX_FLOAT && q->reduce == onxi_body_add.loops[ONX_FLOAT];
    if (p->last_use[0]) /* the output then overwrites the input, and no copy is needed */
        p->overwrite = 0;
    return ONX_OK;
}

static onx_status bad_index(onx_work *work, int64_t at, int64_t bound)
{
    return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of a dimension of %lld", (long long)at,
                         (long long)bound);
}

static void put(const scatter_params *q, char *to, const char *update, uint64_t count)
{
    if (q->adds_floats)
        for (uint64_t i = 0; i < count; i++)
            ((float *)(void *)to)[i] += ((const float *)(const void *)update)[i];
    else if (q->reduce)
        q->reduce(to, 1, update, 1, to, (int64_t)count);
    else
        memcpy(to, update, count * q->size);
}

static void copy_data(const onx_work *work)
{
    const onx_value *x = work->inputs[0];
    if (x->size && work->outputs[0]->data != x->data)
        onxi_pace_copy(work, work->outputs[0]->data, x->data, x->size);
}

/* ---- ScatterElements ---- */

static onx_status elements_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1], *update = p->inputs[2];
    scatter_params *q = NULL;
    ONX_TRY(scatter_start(p, &q));
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &q->axis));
    if (index->rank != x->rank || update->rank != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the index has rank %u, the updates %u, the input %u", index->rank,
                                update->rank, x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        if (index->dims[d] != update->dims[d] || (d != q->axis && index->dims[d] > x->dims[d]))
            return onx_prepare_fail(p, ONX_E_INVALID,
                                    "dimension %u of the index is %lld, of the updates %lld, of the "
                                    "input %lld",
                                    d, (long long)index->dims[d], (long long)update->dims[d], (long long)x->dims[d]);
        q->dims[d] = index->dims[d];
    }
    q->outer = x->rank ? x->rank - 1 : 0;
    q->line = x->rank ? (uint64_t)q->dims[q->outer] : 1;
    while (q->outer > q->axis + 1 && q->dims[q->outer] == x->dims[q->outer])
        q->line *= (uint64_t)q->dims[--q->outer];
    return ONX_OK;
}

/* Are all indices of the line equal? They are where an index was broadcast over the dims behind the axis. */
static bool is_repeated(const onx_value *index, uint64_t from, uint64_t count)
{
    const size_t width = index->dtype == ONX_INT64 ? 8 : 4;
    const char *at = (const char *)index->data + from * width;
    return memcmp(at, at + width, (size_t)(count - 1) * width) == 0;
}

/* Applies one line of the index. `step` is 1 where neighbours in the line are neighbours in the data, and 0 along the
 * axis; `base` is the offset of the line. */
static onx_status elements_line(onx_work *work, uint64_t from, uint64_t count, int64_t base, int64_t step)
{
    const scatter_params *q = work->params;
    const onx_value *index = work->inputs[1];
    const char *update = (const char *)work->inputs[2]->data + from * q->size;
    const int64_t bound = work->inputs[0]->dims[q->axis], stride = q->stride[q->axis];
    char *y = work->outputs[0]->data;
    if (step == 1 && count > 1 && is_repeated(index, from, count)) {
        const int64_t at = onxi_index(index, from);
        if (at < -bound || at >= bound)
            return bad_index(work, at, bound);
        put(q, y + (uint64_t)(base + (at < 0 ? at + bound : at) * stride) * q->size, update, count);
        return ONX_OK;
    }
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < count && !onxi_pace_stops(&pace, 8); i++, base += step) {
        int64_t at = index->dtype == ONX_INT64 ? ((const int64_t *)index->data)[from + i]
                                               : ((const int32_t *)index->data)[from + i];
        if (at < -bound || at >= bound)
            return bad_index(work, at, bound);
        at = base + (at < 0 ? at + bound : at) * stride;
        if (q->adds_floats)
            ((float *)(void *)y)[at] += ((const float *)(const void *)update)[i];
        else if (q->reduce)
            q->reduce(y + (uint64_t)at * q->size, 1, update + i * q->size, 1, y + (uint64_t)at * q->size, 1);
        else
            onxi_copy_item(y + (uint64_t)at * q->size, update + i * q->size, q->size);
    }
    return ONX_OK;
}

static onx_status elements_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const scatter_params *q = work->params;
    const uint64_t count = work->inputs[1]->count, line = q->line;
    const uint32_t outer = q->outer;
    const int64_t step = q->rank && q->axis + 1 < q->rank; /* neighbours in a line are neighbours in the data */
    int64_t pos[ONX_RANK_MAX] = { 0 }, base = 0;
    copy_data(work);
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < count && !onxi_pace_stops(&pace, 8 * line);
         i += line) { /* `base` is the offset of the position, without the axis */
        ONX_TRY(elements_line(work, i, line, base, step));
        for (uint32_t d = outer; d-- > 0;) {
            const int64_t on = d == q->axis ? 0 : q->stride[d];
            base += on;
            if (++pos[d] < q->dims[d])
                break;
            base -= on * q->dims[d];
            pos[d] = 0;
        }
    }
    return ONX_OK;
}

/* ---- ScatterND ---- */

static onx_status nd_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1], *update = p->inputs[2];
    scatter_params *q = NULL;
    ONX_TRY(scatter_start(p, &q));
    if (!index->rank || index->dims[index->rank - 1] > (int64_t)x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the index of rank %u does not fit an input of rank %u", index->rank,
                                x->rank);
    q->depth = (uint32_t)index->dims[index->rank - 1];
    if (update->rank != index->rank - 1 + x->rank - q->depth)
        return onx_prepare_fail(p, ONX_E_INVALID, "the updates have rank %u, expected %u", update->rank,
                                index->rank - 1 + x->rank - q->depth);
    for (uint32_t d = 0; d < update->rank; d++) {
        int64_t want = d < index->rank - 1 ? index->dims[d] : x->dims[q->depth + d - (index->rank - 1)];
        if (update->dims[d] != want)
            return onx_prepare_fail(p, ONX_E_INVALID, "dimension %u of the updates is %lld, expected %lld", d,
                                    (long long)update->dims[d], (long long)want);
    }
    q->inner = onxi_product(x->dims, q->depth, x->rank);
    return ONX_OK;
}

static onx_status nd_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const scatter_params *q = work->params;
    const onx_value *x = work->inputs[0], *index = work->inputs[1];
    const char *update = work->inputs[2]->data;
    copy_data(work);
    uint64_t places = onxi_product(index->dims, 0, index->rank - 1);
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < places && !onxi_pace_stops(&pace, 16 + q->inner); i++) {
        int64_t to = 0;
        for (uint32_t d = 0; d < q->depth; d++) {
            int64_t at = onxi_index(index, i * q->depth + d), bound = x->dims[d];
            if (at < -bound || at >= bound)
                return bad_index(work, at, bound);
            to += (at < 0 ? at + bound : at) * q->stride[d];
        }
        if (q->inner)
            put(q, (char *)work->outputs[0]->data + (uint64_t)to * q->size, update + i * q->inner * q->size, q->inner);
    }
    return ONX_OK;
}

/* ---- TensorScatter: writes contiguous elements to the position given for each sample of the batch ---- */

typedef struct cache_params {
    uint64_t outer, each, inner; /* number of runs, runs per sample, and elements per index of the axis */
    int64_t length, added;       /* of the cache and of the update, along the axis */
    uint32_t bits;
    bool circular;
} cache_params;

static onx_status cache_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *update = p->inputs[1], *at = p->input_count > 2 ? p->inputs[2] : NULL;
    cache_params *q = ONXI_NEW(p->arena, cache_params);
    uint32_t axis;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &axis));
    onx_str mode = onx_prepare_text(p, "mode");
    q->circular = onx_str_is(mode, "circular");
    if (!q->circular && !onx_str_is(mode, "linear"))
        return onx_prepare_fail(p, ONX_E_INVALID, "mode is \"%.*s\"", ONX_ARG(mode));
    if (!axis)
        return onx_prepare_fail(p, ONX_E_INVALID, "the axis is that of the batch");
    if (update->dtype != x->dtype || update->rank != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the update of rank %u does not fit a cache of rank %u", update->rank,
                                x->rank);
    for (uint32_t d = 0; d < x->rank; d++)
        if (d == axis ? update->dims[d] > x->dims[d] : update->dims[d] != x->dims[d])
            return onx_prepare_fail(p, ONX_E_INVALID, "dimension %u of the update is %lld, of the cache %lld", d,
                                    (long long)update->dims[d], (long long)x->dims[d]);
    if (at && (at->rank != 1 || at->dims[0] != x->dims[0]))
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu write indexes for %lld samples",
                                (unsigned long long)at->count, (long long)x->dims[0]);
    q->outer = onxi_product(x->dims, 0, axis);
    q->each = onxi_product(x->dims, 1, axis);
    q->inner = onxi_product(x->dims, axis + 1, x->rank);
    q->length = x->dims[axis];
    q->added = update->dims[axis];
    q->bits = x->dtype == ONX_STRING ? 8 * (uint32_t)sizeof(onx_str) : onx_dtype_bits(x->dtype);
    p->params = q;
    return ONX_OK;
}

static onx_status cache_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const cache_params *q = work->params;
    const onx_value *update = work->inputs[1];
    const onx_value *where = work->prepared->input_count > 2 ? work->inputs[2] : NULL;
    copy_data(work);
    if (!update->count)
        return ONX_OK;
    onxi_pace pace = { .work = work };
    for (uint64_t row = 0; row < q->outer && !onxi_pace_stops(&pace, (uint64_t)q->added * q->inner); row++) {
        int64_t at = where ? onxi_index(where, row / q->each) : 0;
        if (q->circular)
            at = (at % q->length + q->length) % q->length;
        else if (at < 0 || at > q->length - q->added)
            return onx_work_fail(work, ONX_E_INVALID, "%lld elements cannot be written to %lld of %lld",
                                 (long long)q->added, (long long)at, (long long)q->length);
        int64_t head = q->added < q->length - at ? q->added : q->length - at;
        uint64_t from = row * (uint64_t)q->added * q->inner, to = row * (uint64_t)q->length * q->inner;
        onxi_move_copy(q->bits, update, from, work->outputs[0], to + (uint64_t)at * q->inner,
                       (uint64_t)head * q->inner);
        if (head < q->added) /* the update wraps around the end */
            onxi_move_copy(q->bits, update, from + (uint64_t)head * q->inner, work->outputs[0], to,
                           (uint64_t)(q->added - head) * q->inner);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_scatter[] = {
    { .op = "Scatter", .since = 9, .prepare = elements_prepare, .run = elements_run },
    { .op = "ScatterElements", .since = 11, .prepare = elements_prepare, .run = elements_run },
    { .op = "ScatterND", .since = 11, .prepare = nd_prepare, .run = nd_run },
    { .op = "TensorScatter", .since = 24, .updates = 1, .prepare = cache_prepare, .run = cache_run },
    { 0 }
};
