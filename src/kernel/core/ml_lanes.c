/* ml_lanes.c - interleaves rows of features, and converts interleaved scores to contiguous rows. */
#include "kernel/core/ml_lanes.h"

#if ONXI_PLATFORM_ROOMY /* browsers run the plain rows */

void onxi_ml_lanes_load(const onxi_ml_loops *loops, const onx_value *x, uint64_t first, uint64_t count,
                        uint64_t columns, double *row, double *out)
{
    if (x->dtype == ONX_FLOAT) {
        loops->turn((const float *)x->data + first * columns, count, columns, out);
        return;
    }
    for (uint64_t r = 0; r < ONXI_ML_LANES; r++) {
        if (r < count)
            onxi_ml_load(x, first + r, columns, row);
        for (uint64_t i = 0; i < columns; i++)
            out[i * ONXI_ML_LANES + r] = r < count ? row[i] : 0;
    }
}

void onxi_ml_lanes_finish(const onxi_ml_loops *loops, onxi_ml_transform transform, double *scores, uint64_t count,
                          double *rows, uint64_t *best)
{
    const bool in_place = transform == ONXI_ML_NONE || transform == ONXI_ML_SOFTMAX || transform == ONXI_ML_LOGISTIC;
    if (transform == ONXI_ML_SOFTMAX)
        loops->softmax(scores, count);
    if (transform == ONXI_ML_LOGISTIC)
        loops->logistic(scores, count);
    if (best && in_place)
        loops->argmax(scores, count, best);
    for (uint64_t r = 0; r < ONXI_ML_LANES; r++) {
        for (uint64_t i = 0; i < count; i++)
            rows[r * count + i] = scores[i * ONXI_ML_LANES + r];
        if (!in_place)
            onxi_ml_finish(transform, rows + r * count, count);
        if (best && !in_place)
            best[r] = onxi_ml_argmax(rows + r * count, count);
    }
}
#endif
