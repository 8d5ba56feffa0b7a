/* linear.c - steps of linear attention: processes some columns of the state at a time and keeps their sums in
 * registers. */
#include "kernel/core/linear.h"
#include "kernel/simd/simd.h"

#ifndef __wasm__ /* browsers use the plain row */

enum { VECTORS = 4, WIDE = VECTORS * ONXI_LANES };

/* The columns of a call: `vectors` vectors (a constant at each call), the last one with `last` lanes. */
typedef struct columns {
    float *state;
    uint64_t rows, step, last;
    const float *keep, *key, *value, *query;
    float *out;
} columns;

__attribute__((always_inline)) static inline onxi_vf load(const float *p, const bool whole, uint64_t n)
{
    return whole ? vf_load(p) : vf_load_part(p, n, 0);
}

__attribute__((always_inline)) static inline void store(float *p, onxi_vf v, const bool whole, uint64_t n)
{
    if (whole)
        vf_store(p, v);
    else
        vf_store_part(p, v, n);
}

__attribute__((always_inline)) static inline void step(const columns *c, const unsigned vectors, const bool whole)
{
    onxi_vf sum[VECTORS], value[VECTORS];
    for (unsigned v = 0; v < vectors; v++) {
        sum[v] = vf_all(0);
        value[v] = c->value ? load(c->value + v * ONXI_LANES, whole, c->last) : vf_all(0);
    }
    float *row = c->state;
    for (uint64_t i = 0; i < c->rows; i++, row += c->step)
        for (unsigned v = 0; v < vectors; v++) {
            onxi_vf x = load(row + v * ONXI_LANES, whole, c->last);
            if (c->keep)
                x *= c->keep[i];
            if (c->value)
                x += c->key[i] * value[v];
            if (c->keep || c->value)
                store(row + v * ONXI_LANES, x, whole, c->last);
            if (c->query)
                sum[v] += c->query[i] * x;
        }
    for (unsigned v = 0; v < vectors && c->query; v++)
        store(c->out + v * ONXI_LANES, sum[v], whole, c->last);
}

static void all_columns(columns c)
{
    const uint64_t n = c.step;
    for (uint64_t at = 0, width; at < n; at += width) {
        width = n - at >= WIDE ? WIDE : n - at < ONXI_LANES ? n - at : ONXI_LANES;
        c.last = width;
        if (width == WIDE)
            step(&c, VECTORS, true);
        else if (width == ONXI_LANES)
            step(&c, 1, true);
        else
            step(&c, 1, false);
        c.state += width;
        c.value = c.value ? c.value + width : NULL;
        c.out = c.out ? c.out + width : NULL;
    }
}

static void forget(float *state, uint64_t rows, uint64_t n, const float *keep, const float *key, float *out)
{
    all_columns((columns){ .state = state, .rows = rows, .step = n, .keep = keep, .query = key, .out = out });
}

static void learn(float *state, uint64_t rows, uint64_t n, const float *key, const float *value, const float *query,
                  float *out)
{
    all_columns(
        (columns){ .state = state, .rows = rows, .step = n, .key = key, .value = value, .query = query, .out = out });
}

const onxi_linear_loops ONXI_LEVELED(onxi_linear_loops) = { forget, learn };
#endif
