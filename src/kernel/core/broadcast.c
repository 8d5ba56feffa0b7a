/* broadcast.c - sizes and strides, and NumPy broadcasting with neighbouring dims merged. */
#include "kernel/kernel.h"

uint64_t onxi_product(const int64_t *dims, uint32_t first, uint32_t last)
{
    uint64_t product = 1;
    for (uint32_t i = first; i < last; i++)
        product *= (uint64_t)dims[i];
    return product;
}

void onxi_strides(const onx_value *v, int64_t *out)
{
    uint64_t stride = 1; /* dims of an empty tensor may be of any size */
    for (uint32_t d = v->rank; d-- > 0;) {
        out[d] = (int64_t)stride;
        stride *= (uint64_t)v->dims[d];
    }
}

bool onxi_broadcast_make(onxi_broadcast *b, const onx_value *const *inputs, uint32_t count, const onx_value *output,
                         const int32_t *shift)
{
    memset(b, 0, sizeof *b);
    b->inputs = count;
    uint32_t rank = output->rank;
    int64_t full[ONXI_BROADCAST_MAX][ONX_RANK_MAX];
    if (count > ONXI_BROADCAST_MAX || rank > ONX_RANK_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const onx_value *v = inputs[i];
        if (v->rank > rank)
            return false;
        uint32_t first = shift && shift[i] >= 0 ? (uint32_t)shift[i] : rank - v->rank;
        if (first + v->rank > rank)
            return false;
        int64_t step = 1;
        for (uint32_t d = rank; d-- > 0;) {
            bool inside = d >= first && d < first + v->rank;
            int64_t dim = inside ? v->dims[d - first] : 1;
            if (dim != output->dims[d] && dim != 1)
                return false;
            full[i][d] = dim == 1 ? 0 : step;
            step *= dim;
        }
    }
    /* merge dims: d joins d+1 if every input passes through both with one stride */
    for (uint32_t d = rank; d-- > 0;) {
        if (output->dims[d] == 1) /* merge the last one too: otherwise all dims before it would be processed element
                                   * by element */
            continue;
        uint32_t last = b->rank;
        bool joins = last > 0;
        for (uint32_t i = 0; joins && i < count; i++)
            joins = full[i][d] == b->step[i][last - 1] * b->dims[last - 1] &&
                    (full[i][d] != 0 || b->step[i][last - 1] == 0);
        if (joins) {
            b->dims[last - 1] *= output->dims[d];
            continue;
        }
        b->dims[last] = output->dims[d];
        for (uint32_t i = 0; i < count; i++)
            b->step[i][last] = full[i][d];
        b->rank++;
    }
    if (!b->rank) {
        b->rank = 1;
        b->dims[0] = 1;
    }
    /* innermost first so far: reverse */
    for (uint32_t l = 0, r = b->rank - 1; l < r; l++, r--) {
        int64_t t = b->dims[l];
        b->dims[l] = b->dims[r];
        b->dims[r] = t;
        for (uint32_t i = 0; i < count; i++) {
            t = b->step[i][l];
            b->step[i][l] = b->step[i][r];
            b->step[i][r] = t;
        }
    }
    b->inner = b->dims[b->rank - 1];
    b->outer = onxi_product(b->dims, 0, b->rank - 1);
    return true;
}

void onxi_broadcast_offsets(const onxi_broadcast *b, uint64_t row, int64_t *offsets)
{
    for (uint32_t i = 0; i < b->inputs; i++)
        offsets[i] = 0;
    for (uint32_t d = b->rank - 1; d-- > 0;) {
        int64_t at = (int64_t)(row % (uint64_t)b->dims[d]);
        row /= (uint64_t)b->dims[d];
        for (uint32_t i = 0; i < b->inputs; i++)
            offsets[i] += at * b->step[i][d];
    }
}

void onxi_broadcast_next(const onxi_broadcast *b, uint64_t row, int64_t *offsets)
{
    for (uint32_t d = b->rank - 1; d-- > 0; row /= (uint64_t)b->dims[d]) {
        const bool wraps = row % (uint64_t)b->dims[d] == 0;
        for (uint32_t i = 0; i < b->inputs; i++)
            offsets[i] += b->step[i][d] * (wraps ? 1 - b->dims[d] : 1);
        if (!wraps)
            return;
    }
}
