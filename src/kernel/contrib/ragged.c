/* ragged.c - kernels of ai.onnx.contrib on ragged rows, given as one list and its splits. */
#include "kernel/contrib/contrib.h"

onx_status onxi_contrib_splits(onx_work *work, const onx_value *splits, uint64_t count, int64_t *longest_out)
{
    const int64_t *at = splits->data;
    *longest_out = 0;
    if (splits->rank != 1 || !splits->count)
        return onx_work_fail(work, ONX_E_INVALID,
                             "splits has rank %u and %llu elements, expected a list of at least one", splits->rank,
                             (unsigned long long)splits->count);
    for (uint64_t i = 0; i < splits->count; i++) {
        if (at[i] < 0 || (uint64_t)at[i] > count)
            return onx_work_fail(work, ONX_E_INVALID, "split %llu is %lld, and there are %llu values",
                                 (unsigned long long)i, (long long)at[i], (unsigned long long)count);
        if (i && at[i] < at[i - 1])
            return onx_work_fail(work, ONX_E_INVALID, "split %llu is %lld, and the one before it %lld",
                                 (unsigned long long)i, (long long)at[i], (long long)at[i - 1]);
        if (i && at[i] - at[i - 1] > *longest_out)
            *longest_out = at[i] - at[i - 1];
    }
    return ONX_OK;
}

static onx_status to_sparse_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *splits = work->inputs[0];
    const int64_t *at = splits->data, two = 2;
    int64_t longest;
    ONX_TRY(onxi_contrib_splits(work, splits, INT64_MAX, &longest));
    if (at[0])
        return onx_work_fail(work, ONX_E_INVALID, "the first split is %lld, expected 0", (long long)at[0]);
    const uint64_t limit = onx_ctx_limits(work->cx).memory;
    const int64_t dims[] = { at[splits->count - 1], 2 };
    if ((uint64_t)dims[0] > limit / (2 * sizeof *at))
        return onx_work_fail(work, ONX_E_LIMIT, "%lld elements exceed the memory limit of %llu bytes",
                             (long long)dims[0], (unsigned long long)limit);
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, dims));
    ONX_TRY(onxi_value_size(work->outputs[1], ONX_INT64, 1, &two));
    int64_t *place = work->outputs[0]->data, *shape = work->outputs[1]->data;
    for (uint64_t row = 0; row + 1 < splits->count; row++)
        for (int64_t i = at[row]; i < at[row + 1]; i++) {
            *place++ = (int64_t)row;
            *place++ = i - at[row];
        }
    shape[0] = (int64_t)splits->count - 1;
    shape[1] = longest;
    return ONX_OK;
}

/* ---- runs of equal elements ---- */

/* Finds runs of equal nonzero elements; writes their positions and values unless the pointers are NULL. Returns their
 * number. */
static int64_t find_runs(const onx_value *x, int64_t *place, int64_t *value)
{
    const int64_t *e = x->data;
    int64_t count = 0;
    for (uint64_t i = 0, end; i < x->count; i = end) {
        for (end = i + 1; end < x->count && e[end] == e[i]; end++)
            ;
        if (!e[i])
            continue;
        if (place) {
            place[2 * count] = (int64_t)i;
            place[2 * count + 1] = (int64_t)end;
            value[count] = e[i];
        }
        count++;
    }
    return count;
}

static onx_status segments_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    const int64_t dims[] = { find_runs(x, NULL, NULL), 2 };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, dims));
    ONX_TRY(onxi_value_size(work->outputs[1], ONX_INT64, 1, dims));
    if (dims[0])
        (void)find_runs(x, work->outputs[0]->data, work->outputs[1]->data);
    return ONX_OK;
}

/* ---- conversion to a matrix ---- */

static onx_status to_dense(onx_work *work, const onx_value *splits, const onx_value *fill)
{
    const onx_value *values = work->inputs[1];
    onx_value *y = work->outputs[0];
    const uint64_t size = onxi_element_size(values->dtype);
    int64_t longest;
    ONX_TRY(onxi_contrib_splits(work, splits, values->count, &longest));
    if (fill->count < 1)
        return onx_work_fail(work, ONX_E_INVALID, "there is no value to fill rows with");
    const int64_t *at = splits->data, dims[] = { (int64_t)splits->count - 1, longest };
    ONX_TRY(onxi_value_size(y, values->dtype, 2, dims));
    char *to = y->data;
    for (uint64_t row = 0; y->count && row + 1 < splits->count; row++) {
        const uint64_t count = (uint64_t)(at[row + 1] - at[row]);
        if (count)
            memcpy(to, (const char *)values->data + (uint64_t)at[row] * size, count * size);
        to += count * size;
        for (uint64_t i = count; i < (uint64_t)longest; i++, to += size)
            onxi_copy_item(to, fill->data, size);
    }
    return ONX_OK;
}

static onx_status to_dense_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return to_dense(work, work->inputs[3], work->inputs[2]);
}

/* Strings refer to the input. */
static onx_status texts_to_dense_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return to_dense(work, work->inputs[2], work->inputs[3]);
}

const onx_kernel onxi_kernels_contrib_ragged[] = {
    CONTRIB_KERNEL("SegmentExtraction", .run = segments_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("RaggedTensorToSparse", .run = to_sparse_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("RaggedTensorToDense", .run = to_dense_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    CONTRIB_KERNEL("StringRaggedTensorToDense", .run = texts_to_dense_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
