/* fold.c - Col2Im and MaxUnpool: elements of windows return to their positions in the image. */
#include "kernel/core/loops.h"
#include "kernel/core/pace.h"

/* ---- Col2Im ---- */

/* y[i * step] += x[i] */
typedef void (*fold_loop)(const void *x, uint64_t sx, void *y, uint64_t sy, uint64_t n);
#define FOLD(op, d, T, C, M, L, S, SUM)                                                                                \
    static void op##_##d(const void *px, uint64_t sx, void *py, uint64_t sy, uint64_t n)                               \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i * sy] = (T)S(SUM((C)L(y[i * sy]), (C)L(x[i * sx]), C));                                                \
    }
#define SUM_FLOAT(a, b, C)                 ((a) + (b))
#define SUM_WRAP(a, b, C)                  ONXI_WRAP(C, a, +, b)
#define SUM_BOOL(a, b, C)                  ((a) | (b))
#define FOLD_FLOAT(op, d, T, C, M, L, S)   FOLD(op, d, T, C, M, L, S, SUM_FLOAT)
#define FOLD_INTEGER(op, d, T, C, M, L, S) FOLD(op, d, T, C, M, L, S, SUM_WRAP)
#define FOLD_BOOL(op, d, T, C, M, L, S)    FOLD(op, d, T, C, M, L, S, SUM_BOOL)
ONXI_EACH_FLOAT(FOLD_FLOAT, fold)
ONXI_EACH_SIGNED(FOLD_INTEGER, fold)
ONXI_EACH_UNSIGNED(FOLD_INTEGER, fold)
ONXI_EACH_BOOL(FOLD_BOOL, fold)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
/* Complex numbers are added as two real numbers. */
static const fold_loop loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, fold) ONXI_EACH_SIGNED(ENTRY, fold)
                                                      ONXI_EACH_UNSIGNED(ENTRY, fold)
                                                          ONXI_EACH_BOOL(ENTRY, fold)[ONX_COMPLEX64] = fold_FLOAT,
                                                  [ONX_COMPLEX128] = fold_DOUBLE };

/* Attributes per axis. */
typedef struct windows {
    uint32_t rank;
    int64_t stride[ONX_RANK_MAX], dilation[ONX_RANK_MAX], pads[2 * ONX_RANK_MAX];
} windows;

typedef struct image {
    uint32_t rank;
    int64_t size[ONX_RANK_MAX], kernel[ONX_RANK_MAX], blocks[ONX_RANK_MAX], stride[ONX_RANK_MAX],
        dilation[ONX_RANK_MAX], pad[ONX_RANK_MAX];
    uint64_t kernel_size, block_count, elements;
} image;

/* The number of windows along an axis. */
static onx_status count_blocks(onx_work *work, image *m, uint32_t d, int64_t pad_end)
{
    int64_t reach, room;
    if (m->kernel[d] < 1 || m->size[d] < 0 || m->size[d] > INT64_MAX / 4 ||
        !onxi_mul_i64(m->kernel[d] - 1, m->dilation[d], &reach) || reach > INT64_MAX / 4)
        return onx_work_fail(work, ONX_E_INVALID, "a block of %lld does not fit an image of %lld",
                             (long long)m->kernel[d], (long long)m->size[d]);
    room = m->size[d] + m->pad[d] + pad_end - reach - 1;
    m->blocks[d] = room < 0 ? 0 : room / m->stride[d] + 1;
    if (!onxi_mul_u64(m->kernel_size, (uint64_t)m->kernel[d], &m->kernel_size) ||
        !onxi_mul_u64(m->block_count, (uint64_t)m->blocks[d], &m->block_count))
        return onx_work_fail(work, ONX_E_LIMIT, "there are too many blocks");
    m->elements *= (uint64_t)m->size[d];
    return ONX_OK;
}

static onx_status read_image(onx_work *work, image *m)
{
    const onx_value *x = work->inputs[0], *size = work->inputs[1], *block = work->inputs[2], *y = work->outputs[0];
    const windows *q = work->params;
    memset(m, 0, sizeof *m);
    if (x->rank != 3 || y->rank != q->rank + 2 || size->count != y->rank - 2 || block->count != size->count)
        return onx_work_fail(work, ONX_E_INVALID, "image_shape has %llu and block_shape %llu values for rank %u",
                             (unsigned long long)size->count, (unsigned long long)block->count, y->rank);
    m->rank = y->rank - 2;
    m->kernel_size = m->block_count = m->elements = 1;
    onxi_copy_dims(m->stride, q->stride, m->rank);
    onxi_copy_dims(m->dilation, q->dilation, m->rank);
    for (uint32_t d = 0; d < m->rank; d++) {
        m->size[d] = onxi_index(size, d);
        m->kernel[d] = onxi_index(block, d);
        m->pad[d] = q->pads[d];
        if (m->size[d] != y->dims[d + 2])
            return onx_work_fail(work, ONX_E_INVALID, "dimension %u of the output is %lld, of the image %lld", d + 2,
                                 (long long)y->dims[d + 2], (long long)m->size[d]);
        ONX_TRY(count_blocks(work, m, d, q->pads[m->rank + d]));
    }
    uint64_t rows;
    if (!onxi_mul_u64(m->kernel_size, (uint64_t)y->dims[1], &rows) || rows != (uint64_t)x->dims[1] ||
        m->block_count != (uint64_t)x->dims[2] || x->dims[0] != y->dims[0])
        return onx_work_fail(work, ONX_E_INVALID, "%lld by %lld elements are not %llu by %llu of blocks",
                             (long long)x->dims[1], (long long)x->dims[2], (unsigned long long)m->kernel_size,
                             (unsigned long long)m->block_count);
    return ONX_OK;
}

/* The number of blocks whose element at `tap` is inside the image, along the last axis, and the first of them. */
static int64_t inside(const image *m, int64_t tap, int64_t *first)
{
    uint32_t d = m->rank - 1;
    int64_t shift = tap * m->dilation[d] - m->pad[d], stride = m->stride[d], last;
    *first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    last = shift >= m->size[d] ? -1 : (m->size[d] - 1 - shift) / stride;
    last = last < m->blocks[d] - 1 ? last : m->blocks[d] - 1;
    return last - *first + 1;
}

/* Adds the elements at one tap of all blocks. */
static void fold_tap(const image *m, fold_loop loop, const int64_t *tap, const char *x, char *y, uint32_t size,
                     uint32_t parts)
{
    uint32_t last = m->rank - 1;
    int64_t pos[ONX_RANK_MAX] = { 0 }, first, count = inside(m, tap[last], &first);
    uint64_t rows = m->block_count / (uint64_t)m->blocks[last];
    for (uint64_t row = 0; row < rows && count > 0; row++, x += (uint64_t)m->blocks[last] * size) {
        int64_t at = 0;
        bool there = true;
        for (uint32_t d = 0; d < last; d++) {
            int64_t i = pos[d] * m->stride[d] + tap[d] * m->dilation[d] - m->pad[d];
            there &= i >= 0 && i < m->size[d];
            at = at * m->size[d] + (there ? i : 0);
        }
        at = at * m->size[last] + first * m->stride[last] + tap[last] * m->dilation[last] - m->pad[last];
        for (uint32_t k = 0; k < parts && there; k++)
            loop(x + (uint64_t)first * size + k * (size / parts), parts, y + (uint64_t)at * size + k * (size / parts),
                 (uint64_t)m->stride[last] * parts, (uint64_t)count);
        for (uint32_t d = last; d-- > 0;) {
            if (++pos[d] < m->blocks[d])
                break;
            pos[d] = 0;
        }
    }
}

static onx_status image_prepare(onx_prepare *p)
{
    const onx_value *y = p->outputs[0];
    if (p->inputs[0]->dtype >= ONX_DTYPE_COUNT || !loops[p->inputs[0]->dtype])
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "adding elements of %s is not supported",
                                onx_dtype_name(p->inputs[0]->dtype));
    windows *q = ONXI_NEW(p->arena, windows);
    if (!q)
        return ONX_E_MEMORY;
    q->rank = y->rank > 2 ? y->rank - 2 : 0;
    ONX_TRY(onxi_window_list(p, "strides", q->rank, 1, q->stride));
    ONX_TRY(onxi_window_list(p, "dilations", q->rank, 1, q->dilation));
    ONX_TRY(onxi_window_list(p, "pads", 2 * q->rank, INT32_MIN, q->pads));
    p->params = q;
    p->rows = y->rank > 2 && y->count ? (uint64_t)(y->dims[0] * y->dims[1]) : 0;
    return ONX_OK;
}

static onx_status image_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    uint32_t size = onxi_element_size(x->dtype), parts = onx_dtype_class_of(x->dtype) == ONX_CLASS_COMPLEX ? 2 : 1;
    image m;
    ONX_TRY(read_image(work, &m));
    for (uint64_t row = first; row < last; row++) {
        char *to = (char *)y->data + row * m.elements * size;
        const char *from = (const char *)x->data + row * m.kernel_size * m.block_count * size;
        int64_t tap[ONX_RANK_MAX] = { 0 };
        memset(to, 0, m.elements * size);
        for (uint64_t k = 0; k < m.kernel_size && m.block_count; k++) {
            fold_tap(&m, loops[x->dtype], tap, from + k * m.block_count * size, to, size, parts);
            for (uint32_t d = m.rank; d-- > 0;) {
                if (++tap[d] < m.kernel[d])
                    break;
                tap[d] = 0;
            }
        }
    }
    return ONX_OK;
}

/* ---- MaxUnpool ---- */

typedef struct unpool_params {
    /* Dims of the tensor that the indices refer to, computed from kernel, strides and pads. */
    int64_t dims[ONX_RANK_MAX];
    uint64_t count;
    bool same; /* the output has these dims */
} unpool_params;

static onx_status unpool_axis(const onx_prepare *p, uint32_t d, uint32_t spatial, int64_t *out)
{
    uint32_t kernels, strides, pads;
    const int64_t *kernel = onx_prepare_ints(p, "kernel_shape", &kernels);
    const int64_t *stride = onx_prepare_ints(p, "strides", &strides), *pad = onx_prepare_ints(p, "pads", &pads);
    if (!kernel || kernels != spatial || (stride && strides != spatial) || (pad && pads != 2 * spatial))
        return onx_prepare_fail(p, ONX_E_INVALID, "kernel_shape, strides and pads do not fit %u axes", spatial);
    int64_t size = p->inputs[0]->dims[d + 2], pad_all = 0;
    if (!onxi_mul_i64(size - 1, stride ? stride[d] : onxi_attr_implied("strides"), out) ||
        !onxi_add_i64(*out, kernel[d], out) || (pad && !onxi_add_i64(pad[d], pad[spatial + d], &pad_all)) ||
        !onxi_sub_i64(*out, pad_all, out) || *out < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "axis %u cannot be unpooled", d + 2);
    return ONX_OK;
}

static onx_status unpool_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1], *y = p->outputs[0];
    unpool_params *q = ONXI_NEW(p->arena, unpool_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 2 || index->rank != x->rank || y->rank != x->rank || index->count != x->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu indexes for %llu elements",
                                (unsigned long long)index->count, (unsigned long long)x->count);
    q->same = true;
    for (uint32_t d = 0; d < x->rank; d++) {
        q->dims[d] = x->dims[d];
        if (d >= 2)
            ONX_TRY(unpool_axis(p, d - 2, x->rank - 2, &q->dims[d]));
        q->same &= q->dims[d] == y->dims[d];
    }
    if (!onxi_dims_count(x->rank, q->dims, &q->count) || q->count > INT64_MAX)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the indexes are of too many elements");
    p->params = q;
    return ONX_OK;
}

static onx_status unpool_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const unpool_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    uint32_t size = onxi_element_size(x->dtype);
    onxi_pace pace = { .work = work };
    onxi_pace_clear(work, y->data, y->size);
    for (uint64_t i = 0; i < x->count && !onxi_pace_stops(&pace, 32); i++) {
        int64_t at = onxi_index(work->inputs[1], i), to = 0, rest = at, stride = 1;
        if (at < 0 || (uint64_t)at >= q->count)
            return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of %llu elements", (long long)at,
                                 (unsigned long long)q->count);
        for (uint32_t d = x->rank; d-- > 0 && !q->same;) { /* the output is larger, or smaller */
            int64_t here = rest % q->dims[d];
            rest /= q->dims[d];
            if (here >= y->dims[d])
                return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of the output in dimension %u",
                                     (long long)at, d);
            to += here * stride;
            stride *= y->dims[d];
        }
        memcpy((char *)y->data + (uint64_t)(q->same ? at : to) * size, (const char *)x->data + i * size, size);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_fold[] = {
    { .op = "Col2Im",
      .since = 18,
      .dtypes = ONXI_NUMBERS | ONX_DTYPE_BIT(ONX_BOOL) | ONX_DTYPE_BIT(ONX_COMPLEX64) | ONX_DTYPE_BIT(ONX_COMPLEX128),
      .prepare = image_prepare,
      .run = image_run },
    { .op = "MaxUnpool", .since = 9, .dtypes = ONXI_FLOATS, .prepare = unpool_prepare, .run = unpool_run },
    { 0 }
};
