/* masks.c - windows of a line that end where a mask is 0: a window is its first element and the next shorter one that
 * begins behind it, or nothing. Shorter windows stay in registers, for a vector of windows at a time. */
#include "kernel/core/masks.h"
#include "kernel/simd/simd.h"

#include <float.h>

#ifndef __wasm__ /* browsers compute windows one by one */

static void windows(const float *x, const int32_t *mask, bool first_counts, int64_t length, int64_t size, float *merged)
{
    const int64_t reach = size < length ? size : length;
    const float before = merged[0];
    for (int64_t i = 0; i < length && reach > 0; i += ONXI_LANES) {
        const bool inside = i + reach - 1 + ONXI_LANES <= length;
        onxi_vf most = vf_all(-FLT_MAX);
        for (int64_t j = reach - 1; j >= 0; j--) {
            const int64_t at = i + j < length ? i + j : length;
            const uint64_t left = (uint64_t)(length - at);
            const float *bits = (const float *)(const void *)mask + at;
            const onxi_vf v = inside ? vf_load(x + at) : vf_load_part(x + at, left, 0); /* which none counts */
            const onxi_vi open = (onxi_vi)(inside ? vf_load(bits) : vf_load_part(bits, left, 0)) != 0;
            most = vf_select(open, vf_max(v, most), vf_all(-FLT_MAX)); /* NaN does not count */
        }
        const uint64_t n = (uint64_t)(length - i);
        if (n >= ONXI_LANES)
            vf_store(merged + i, vf_max(most, vf_load(merged + i)));
        else
            vf_store_part(merged + i, vf_max(most, vf_load_part(merged + i, n, 0)), n);
    }
    if (!first_counts || reach <= 0)
        return;
    float most = before;
    for (int64_t j = 0; j < reach && (j == 0 || mask[j] != 0); j++)
        most = x[j] > most ? x[j] : most;
    merged[0] = most;
}

const onxi_mask_loops ONXI_LEVELED(onxi_mask_loops) = { windows };
#endif
