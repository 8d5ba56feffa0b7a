/* gates.c - activations between the products of feed-forward layers, and products of single vectors. */
#include "kernel/core/gates.h"
#include "kernel/simd/math.h"

#ifndef __wasm__ /* browsers use the plain rows for experts */

#if ONXI_LANES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif ONXI_LANES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD  1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6
#define ODD  1, 3, 5, 7
#endif

static inline onxi_vf one_of(onxi_gate_kind kind, onxi_vf v)
{
    if (kind == ONXI_GATE_SILU)
        return vf_swish(v, vf_all(1));
    if (kind == ONXI_GATE_GELU)
        return 0.5f * v * (1 + vf_tanh(0.7978845608f * (v + 0.044715f * v * v * v)));
    return vf_select(v <= 0.0f, vf_all(0), v); /* NaN is kept */
}

static void alone(onxi_gate_kind kind, float *x, uint64_t n)
{
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES)
        vf_store(x + i, one_of(kind, vf_load(x + i)));
    if (i < n)
        vf_store_part(x + i, one_of(kind, vf_load_part(x + i, n - i, 0)), n - i);
}

static inline onxi_vf pair_of(const onxi_gate_pairs *g, onxi_vf gate, onxi_vf number)
{
    gate = vf_select(gate > g->limit, vf_all(g->limit), gate);
    number = vf_select(number > g->limit, vf_all(g->limit), number);
    number = vf_select(number < -g->limit, vf_all(-g->limit), number);
    return vf_swish(gate, vf_all(g->alpha)) * (number + g->beta);
}

static void pairs(const onxi_gate_pairs *g, const float *x, float *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const uint64_t width = n - i < ONXI_LANES ? n - i : ONXI_LANES;
        onxi_vf gate, number;
        if (g->interleaved) {
            const uint64_t second = 2 * width > ONXI_LANES ? 2 * width - ONXI_LANES : 0;
            const onxi_vf low = vf_load_part(x + 2 * i, 2 * width - second, 0),
                          high = second ? vf_load_part(x + 2 * i + ONXI_LANES, second, 0) : low;
            gate = __builtin_shufflevector(low, high, EVEN);
            number = __builtin_shufflevector(low, high, ODD);
        } else {
            gate = vf_load_part(x + i, width, 0);
            number = vf_load_part(x + n + i, width, 0);
        }
        vf_store_part(y + i, pair_of(g, gate, number), width);
    }
}

/* A row of weights is read once, so the sums of some rows hide each other's latency; elements of x are read for all of
 * them. */
static void dots(const float *x, const float *w, uint64_t step, uint64_t rows, uint64_t n, float *y)
{
    enum { TOGETHER = 4 };
    for (uint64_t j = 0; j < rows; j += TOGETHER) {
        const uint64_t some = rows - j < TOGETHER ? rows - j : TOGETHER;
        onxi_vf sums[TOGETHER] = { { 0 } };
        uint64_t i = 0;
        for (; some == TOGETHER && i + ONXI_LANES <= n; i += ONXI_LANES)
            for (uint64_t r = 0; r < TOGETHER; r++)
                sums[r] += vf_load(x + i) * vf_load(w + (j + r) * step + i);
        for (; i < n; i += ONXI_LANES)
            for (uint64_t r = 0; r < some; r++)
                sums[r] += vf_load_part(x + i, n - i, 0) * vf_load_part(w + (j + r) * step + i, n - i, 0);
        for (uint64_t r = 0; r < some; r++)
            y[j + r] = vf_sum(sums[r]);
    }
}

static float tanh_dot(const float *a, const float *b, const float *v, uint64_t n)
{
    onxi_vf sum = vf_all(0);
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES)
        sum += vf_load(v + i) * vf_tanh(vf_load(a + i) + vf_load(b + i));
    if (i < n)
        sum += vf_load_part(v + i, n - i, 0) * vf_tanh(vf_load_part(a + i, n - i, 0) + vf_load_part(b + i, n - i, 0));
    return vf_sum(sum);
}

const onxi_gate_loops ONXI_LEVELED(onxi_gate_loops) = { alone, pairs, dots, tanh_dot };
#endif
