/* kernel_select.c - operators that pick each element of the output: Where from two inputs, GatherElements by an index.
 */
#include "kernel/kernel_loops.h"

/* Elements are moved as numbers of their size. */
typedef struct sixteen {
    uint64_t a, b;
} sixteen;

/* ---- Where ---- */

typedef void (*where_loop)(const uint8_t *c, int64_t sc, const void *x, int64_t sx, const void *y, int64_t sy, void *z,
                           int64_t n);
#define WHERE(T)                                                                                                       \
    static void where_##T(const uint8_t *c, int64_t sc, const void *x, int64_t sx, const void *y, int64_t sy, void *z, \
                          int64_t n)                                                                                   \
    {                                                                                                                  \
        const T *px = x, *py = y;                                                                                      \
        T *pz = z;                                                                                                     \
        for (int64_t i = 0; i < n; i++)                                                                                \
            pz[i] = c[i * sc] ? px[i * sx] : py[i * sy];                                                               \
    }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)
WHERE(sixteen)

typedef struct where_params {
    onxi_broadcast broadcast;
    where_loop loop;
    int64_t size, block; /* of an element; elements of a row when there is one outer row, 0: rows are outer rows */
} where_params;

static onx_status where_prepare(onx_prepare *p)
{
    static const where_loop loops[] = {
        [1] = where_uint8_t, [2] = where_uint16_t, [4] = where_uint32_t, [8] = where_uint64_t, [16] = where_sixteen
    };
    const onx_value *x = p->inputs[1], *z = p->outputs[0];
    where_params *q = ONXI_NEW(p->arena, where_params);
    if (!q)
        return ONX_E_MEMORY;
    q->size = onxi_element_size(x->dtype);
    if (p->inputs[0]->dtype != ONX_BOOL || x->dtype != p->inputs[2]->dtype || !q->size)
        return ONX_E_UNSUPPORTED;
    if (!onxi_broadcast_make(&q->broadcast, p->inputs, 3, z, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs do not broadcast to the output");
    q->loop = loops[q->size];
    int64_t inner = q->broadcast.inner;
    q->block = q->broadcast.outer == 1 ? ONXI_BLOCK : 0;
    p->params = q;
    p->rows = !z->count ? 0 : q->block ? (uint64_t)((inner + q->block - 1) / q->block) : q->broadcast.outer;
    p->grain = q->block || inner >= ONXI_BLOCK || !inner ? 1 : ONXI_BLOCK / (uint64_t)inner;
    return ONX_OK;
}

static onx_status where_run(onx_work *work, uint64_t first, uint64_t last)
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

/* ---- GatherElements ---- */

typedef struct elements_params {
    uint32_t rank, axis;
    int64_t dims[ONX_RANK_MAX], stride[ONX_RANK_MAX]; /* of the index; of the input */
    int64_t bound, inner;
    uint32_t size;
} elements_params;

static onx_status elements_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1];
    elements_params *q = ONXI_NEW(p->arena, elements_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis", 0), x->rank, &q->axis));
    q->size = onxi_element_size(x->dtype);
    if (!q->size || (index->dtype != ONX_INT64 && index->dtype != ONX_INT32))
        return ONX_E_UNSUPPORTED;
    if (index->rank != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the index has rank %u, the input %u", index->rank, x->rank);
    int64_t stride = 1;
    q->rank = x->rank;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (d != q->axis && index->dims[d] > x->dims[d])
            return onx_prepare_fail(p, ONX_E_INVALID, "dimension %u of the index is %lld, of the input %lld", d,
                                    (long long)index->dims[d], (long long)x->dims[d]);
        q->dims[d] = index->dims[d];
        q->stride[d] = stride;
        stride *= x->dims[d];
    }
    q->bound = x->dims[q->axis];
    q->inner = index->dims[q->rank - 1];
    p->params = q;
    p->rows = index->count && q->inner ? index->count / (uint64_t)q->inner : 0;
    p->grain = q->inner ? 16384 / (uint64_t)q->inner + 1 : 1;
    return ONX_OK;
}

static onx_status elements_run(onx_work *work, uint64_t first, uint64_t last)
{
    const elements_params *q = work->params;
    const onx_value *index = work->inputs[1];
    const char *x = work->inputs[0]->data;
    char *y = work->outputs[0]->data;
    for (uint64_t row = first; row < last; row++) {
        int64_t base = 0, rest = (int64_t)row;
        for (uint32_t d = q->rank - 1; d-- > 0;) {
            base += d == q->axis ? 0 : rest % q->dims[d] * q->stride[d];
            rest /= q->dims[d];
        }
        for (int64_t i = 0; i < q->inner; i++) {
            uint64_t to = row * (uint64_t)q->inner + (uint64_t)i;
            int64_t at =
                index->dtype == ONX_INT64 ? ((const int64_t *)index->data)[to] : ((const int32_t *)index->data)[to];
            if (at < -q->bound || at >= q->bound)
                return onx_work_fail(work, ONX_E_INVALID, "index %lld is outside of a dimension of %lld", (long long)at,
                                     (long long)q->bound);
            at = base + (at < 0 ? at + q->bound : at) * q->stride[q->axis] + (q->axis + 1 < q->rank ? i : 0);
            memcpy(y + to * q->size, x + (uint64_t)at * q->size, q->size);
        }
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_select[] = {
    { .op = "Where", .since = 9, .prepare = where_prepare, .run = where_run },
    { .op = "GatherElements", .since = 11, .prepare = elements_prepare, .run = elements_run },
    { 0 }
};
