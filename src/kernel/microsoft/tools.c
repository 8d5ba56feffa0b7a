/* tools.c - IsAllFinite and ReduceSumInteger. */
#include "kernel/microsoft/microsoft.h"

#include <math.h>

/* ---- IsAllFinite ---- */

typedef struct tests {
    bool infinities, nans; /* what is looked for */
} tests;

static onx_status finite_prepare(onx_prepare *p)
{
    tests *q = ONXI_NEW(p->arena, tests);
    if (!q)
        return ONX_E_MEMORY;
    const bool only_infinite = onx_prepare_is_set(p, "isinf_only"), only_nan = onx_prepare_is_set(p, "isnan_only");
    if (only_infinite && only_nan)
        return onx_prepare_fail(p, ONX_E_INVALID, "attributes isinf_only and isnan_only are both set");
    q->infinities = !only_nan;
    q->nans = !only_infinite;
    p->params = q;
    p->rows = 1;
    return ONX_OK;
}

static onx_status finite_run(onx_work *work, uint64_t first, uint64_t last)
{
    const tests *q = work->params;
    onxi_pace pace = { .work = work };
    bool all = true;
    (void)first;
    (void)last;
    for (uint32_t i = 0; all && i < work->prepared->input_count; i++) {
        const onx_value *x = work->inputs[i];
        for (uint64_t k = 0; all && k < x->count && !onxi_pace_stops(&pace, 4); k++) {
            const double v = x->dtype == ONX_DOUBLE ? ((const double *)x->data)[k] : (double)onxi_ms_float(x, k);
            all = !(q->infinities && isinf(v)) && !(q->nans && isnan(v));
        }
    }
    *(uint8_t *)work->outputs[0]->data = all;
    return ONX_OK;
}

/* ---- ReduceSumInteger ---- */

/* Axes that are kept, and those that are summed; the last ones change fastest. */
typedef struct axes {
    uint32_t count;
    uint64_t size[ONX_RANK_MAX], step[ONX_RANK_MAX], all;
} axes;
typedef struct sums {
    axes kept, summed;
} sums;

static onx_status sums_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    sums *q = ONXI_NEW(p->arena, sums);
    uint32_t count = 0, axis;
    bool along[ONX_RANK_MAX] = { false };
    if (!q)
        return ONX_E_MEMORY;
    const int64_t *list = onx_prepare_ints(p, "axes", &count);
    for (uint32_t i = 0; i < count; i++) {
        ONX_TRY(onx_prepare_axis(p, list[i], x->rank, &axis));
        along[axis] = true;
    }
    q->kept.all = q->summed.all = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        axes *to = !count || along[i] ? &q->summed : &q->kept;
        to->size[to->count] = (uint64_t)x->dims[i];
        to->step[to->count++] = onxi_product(x->dims, i + 1, x->rank);
        to->all *= (uint64_t)x->dims[i];
    }
    p->params = q;
    p->rows = q->kept.all;
    p->grain = onxi_worth_a_thread(q->summed.all * ONXI_COST_ELEMENT);
    return ONX_OK;
}

static uint64_t offset_of(const axes *a, uint64_t index)
{
    uint64_t offset = 0;
    for (uint32_t i = a->count; i-- > 0; index /= a->size[i])
        offset += index % a->size[i] * a->step[i];
    return offset;
}

/* A row of work is an element of the output. Sums wrap around. */
static onx_status sums_run(onx_work *work, uint64_t first, uint64_t last)
{
    const sums *q = work->params;
    const uint8_t *x = work->inputs[0]->data;
    const bool is_signed = work->inputs[0]->dtype == ONX_INT8;
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        const uint64_t from = offset_of(&q->kept, row);
        uint32_t sum = 0;
        for (uint64_t i = 0; i < q->summed.all && !onxi_pace_stops(&pace, 16); i++) {
            const uint8_t byte = x[from + offset_of(&q->summed, i)];
            const int32_t value = is_signed ? (int8_t)byte : byte;
            sum += (uint32_t)value;
        }
        ((uint32_t *)work->outputs[0]->data)[row] = sum;
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_tools[] = {
    MS_KERNEL("IsAllFinite", .prepare = finite_prepare, .run = finite_run),
    MS_KERNEL("ReduceSumInteger", .prepare = sums_prepare, .run = sums_run),
    { 0 },
};
