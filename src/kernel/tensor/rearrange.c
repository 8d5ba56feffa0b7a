/* rearrange.c - ReverseSequence, Trilu, EyeLike and BitCast. */
#include "kernel/core/pace.h"
#include "kernel/kernel.h"

/* ---- ReverseSequence ---- */

typedef struct reverse_params {
    int64_t times, batches;
    bool time_first;
    uint64_t bytes; /* bytes of one time step of one sequence */
} reverse_params;

static onx_status reverse_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *lengths = p->inputs[1];
    reverse_params *q = ONXI_NEW(p->arena, reverse_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_whole_bytes(p));
    int64_t batch = onx_prepare_int(p, "batch_axis"), time = onx_prepare_int(p, "time_axis");
    if (x->rank < 2 || batch < 0 || batch > 1 || time != 1 - batch)
        return onx_prepare_fail(p, ONX_E_INVALID, "batch_axis is %lld and time_axis %lld for rank %u, expected 0 and 1",
                                (long long)batch, (long long)time, x->rank);
    if (lengths->rank != 1 || lengths->dims[0] != x->dims[batch])
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu lengths for %lld sequences",
                                (unsigned long long)lengths->count, (long long)x->dims[batch]);
    q->times = x->dims[time];
    q->batches = x->dims[batch];
    q->time_first = time == 0;
    q->bytes = onxi_product(x->dims, 2, x->rank) * onxi_element_size(x->dtype);
    p->params = q;
    p->rows = x->count ? (uint64_t)(q->times * q->batches) : 0;
    p->grain = q->bytes ? 65536 / q->bytes + 1 : 1;
    return ONX_OK;
}

static onx_status reverse_run(onx_work *work, uint64_t first, uint64_t last)
{
    const reverse_params *q = work->params;
    const char *x = work->inputs[0]->data;
    char *y = work->outputs[0]->data;
    int64_t inner = q->time_first ? q->batches : q->times;
    for (uint64_t row = first; row < last; row++) {
        int64_t major = (int64_t)row / inner, minor = (int64_t)row % inner;
        int64_t batch = q->time_first ? minor : major, time = q->time_first ? major : minor;
        int64_t length = onxi_index(work->inputs[1], (uint64_t)batch);
        if (length < 0 || length > q->times)
            return onx_work_fail(work, ONX_E_INVALID, "sequence %lld has length %lld, the input %lld", (long long)batch,
                                 (long long)length, (long long)q->times);
        int64_t source = time < length ? length - 1 - time : time;
        int64_t from = q->time_first ? source * inner + minor : major * inner + source;
        memcpy(y + row * q->bytes, x + (uint64_t)from * q->bytes, q->bytes);
    }
    return ONX_OK;
}

/* ---- Trilu ---- */

typedef struct trilu_params {
    int64_t height, width;
    uint32_t size;
    bool upper;
} trilu_params;

static onx_status trilu_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *k = p->input_count > 1 ? p->inputs[1] : NULL;
    trilu_params *q = ONXI_NEW(p->arena, trilu_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_whole_bytes(p));
    if (x->rank < 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u, expected at least 2", x->rank);
    if (k && k->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "k has %llu elements, expected one", (unsigned long long)k->count);
    q->height = x->dims[x->rank - 2];
    q->width = x->dims[x->rank - 1];
    q->size = onxi_element_size(x->dtype);
    q->upper = onx_prepare_int(p, "upper") != 0;
    p->params = q;
    p->rows = x->count ? x->count / (uint64_t)q->width : 0;
    p->grain = q->width ? 65536 / ((uint64_t)q->width * q->size + 1) + 1 : 1;
    return ONX_OK;
}

static onx_status trilu_run(onx_work *work, uint64_t first, uint64_t last)
{
    const trilu_params *q = work->params;
    const onx_value *diagonal = work->prepared->input_count > 1 ? work->inputs[1] : NULL;
    const char *x = work->inputs[0]->data;
    char *y = work->outputs[0]->data;
    int64_t k = diagonal ? onxi_index(diagonal, 0) : 0;
    /* Beyond the matrix, all offsets give the same result. */
    k = k < -q->height ? -q->height : k > q->width ? q->width : k;
    for (uint64_t row = first; row < last; row++) {
        /* First column kept, or first column cleared. */
        int64_t edge = (int64_t)(row % (uint64_t)q->height) + k + (q->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > q->width ? q->width : edge;
        uint64_t at = row * (uint64_t)q->width * q->size, head = (uint64_t)edge * q->size,
                 all = (uint64_t)q->width * q->size;
        if (q->upper) {
            memset(y + at, 0, head);
            memcpy(y + at + head, x + at + head, all - head);
        } else {
            memcpy(y + at, x + at, head);
            memset(y + at + head, 0, all - head);
        }
    }
    return ONX_OK;
}

/* ---- EyeLike ---- */

static onx_status eye_prepare(onx_prepare *p)
{
    int64_t *k = ONXI_NEW(p->arena, int64_t);
    if (!k)
        return ONX_E_MEMORY;
    *k = onx_prepare_int(p, "k");
    p->params = k;
    const onx_value *x = p->inputs[0];
    return x->rank == 2 ? ONX_OK : onx_prepare_fail(p, ONX_E_INVALID, "the input has rank %u, expected 2", x->rank);
}

static onx_status eye_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    onx_value *y = work->outputs[0];
    int64_t height = y->dims[0], width = y->dims[1], k = *(const int64_t *)work->params;
    if (!y->count)
        return ONX_OK;
    onxi_pace pace = { .work = work };
    onxi_pace_clear(work, y->data, y->size);
    k = k < -height ? -height : k > width ? width : k;
    for (int64_t i = k < 0 ? -k : 0; i < height && i + k < width && !onxi_pace_stops(&pace, 16); i++)
        onxi_value_set_number(y, (uint64_t)(i * width + i + k), 1);
    return ONX_OK;
}

/* ---- BitCast ---- */

static onx_status bits_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    if (!onx_dtype_bits(x->dtype) || onx_dtype_bits(x->dtype) != onx_dtype_bits(y->dtype) || x->size != y->size)
        return onx_prepare_fail(p, ONX_E_INVALID, "the bits of %s do not make a %s", onx_dtype_name(x->dtype),
                                onx_dtype_name(y->dtype));
    return ONX_OK;
}

static onx_status bits_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    onxi_pace_copy(work, work->outputs[0]->data, x->data, x->size);
    return ONX_OK;
}

#define ONE_OF (ONXI_NUMBERS | ONX_DTYPE_BIT(ONX_BOOL))
const onx_kernel onxi_kernels_rearrange[] = {
    { .op = "ReverseSequence", .since = 10, .prepare = reverse_prepare, .run = reverse_run },
    { .op = "Trilu", .since = 14, .prepare = trilu_prepare, .run = trilu_run },
    { .op = "EyeLike",
      .since = 9,
      .dtypes = ONE_OF,
      .dtype_from = ONX_OUTPUT(0),
      .prepare = eye_prepare,
      .run = eye_run },
    { .op = "BitCast", .since = 26, .prepare = bits_prepare, .run = bits_run },
    { 0 }
};
