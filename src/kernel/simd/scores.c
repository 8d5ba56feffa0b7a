/* scores.c - functions on the scores of all tokens, tens of thousands in each step of a search. */
#include "kernel/core/scores.h"
#include "kernel/simd/math.h"

#include <math.h>

/* Sums are accumulated in float over a piece, and in double over all. */
enum { PIECE = 4096 };

static void log_softmax(float *x, uint64_t n)
{
    onxi_vf tops = vf_all(x[0]);
    double sum = 0;
    for (uint64_t i = 0; i < n; i += ONXI_LANES)
        tops = vf_max(n - i < ONXI_LANES ? vf_load_part(x + i, n - i, x[0]) : vf_load(x + i), tops);
    float top = x[0];
    for (int i = 0; i < ONXI_LANES; i++)
        top = tops[i] > top ? tops[i] : top;
    for (uint64_t from = 0, to; from < n; from = to) {
        onxi_vf part = vf_all(0);
        to = n - from < PIECE ? n : from + PIECE;
        for (uint64_t i = from; i < to; i += ONXI_LANES)
            part += vf_exp((to - i < ONXI_LANES ? vf_load_part(x + i, to - i, -INFINITY) : vf_load(x + i)) - top);
        sum += (double)vf_sum(part);
    }
    const float whole = (float)log(sum);
    for (uint64_t i = 0; i < n; i++)
        x[i] = x[i] - top - whole;
}

static uint64_t above(const float *x, uint64_t from, uint64_t n, float limit)
{
    uint64_t i = from;
    for (; i + 2 * ONXI_LANES <= n; i += 2 * ONXI_LANES)
        if (vi_any((vf_load(x + i) > limit) | (vf_load(x + i + ONXI_LANES) > limit)))
            break;
    while (i < n && !(x[i] > limit))
        i++;
    return i;
}

const onxi_score_loops ONXI_LEVELED(onxi_score_loops) = { log_softmax, above };
