/* narrow.h - weights held in 16 or 8 bits: packed in that type, and widened to float in registers where they are
 * multiplied. A panel is PANEL scales (8 bits only), then k rows of PANEL elements. */
#ifndef ONXI_KERNEL_SIMD_NARROW_H
#define ONXI_KERNEL_SIMD_NARROW_H

#include "kernel/simd/halves.h"
#include "kernel/simd/tile.h"

#include <math.h>

typedef int8_t onxi_vb __attribute__((vector_size(ONXI_LANES)));

static inline uint64_t narrow_width(unsigned precision)
{
    return precision == ONX_PRECISION_INT8 ? 1 : 2;
}

static inline uint64_t narrow_head(unsigned precision)
{
    return precision == ONX_PRECISION_INT8 ? PANEL * sizeof(float) : 0;
}

/* Bytes of a panel; false: too many. */
static inline bool narrow_size(unsigned precision, uint64_t k, uint64_t *out)
{
    return onxi_mul_u64(k, PANEL * narrow_width(precision), out) && onxi_add_u64(*out, narrow_head(precision), out);
}

/* ---- widening ---- */

/* Widens elements to float. Packed weights have no infinities or NaN. */
__attribute__((always_inline)) static inline onxi_vf narrow_load(const unsigned precision, const char *p)
{
    if (precision == ONX_PRECISION_INT8) {
        onxi_vb v;
        memcpy(&v, p, sizeof v);
        return __builtin_convertvector(__builtin_convertvector(v, onxi_vi), onxi_vf);
    }
    halves v;
    memcpy(&v, p, sizeof v);
    return half_wide(precision == ONX_PRECISION_BF16 ? HALF_BFLOAT16 : HALF_FLOAT16, v);
}

__attribute__((always_inline)) static inline void narrow_widen_as(const unsigned precision, const char *panel,
                                                                  uint64_t k0, uint64_t kc, float *out)
{
    const uint64_t width = narrow_width(precision);
    const char *from = panel + narrow_head(precision) + k0 * PANEL * width;
    for (uint64_t k = 0; k < kc; k++)
        for (int v = 0; v < TILE_V; v++, from += ONXI_LANES * width, out += ONXI_LANES) {
            onxi_vf x = narrow_load(precision, from);
            if (precision == ONX_PRECISION_INT8)
                x *= vf_load((const float *)(const void *)panel + v * ONXI_LANES);
            vf_store(out, x);
        }
}

/* Rows k0 .. k0+kc-1 of a panel as floats. */
static inline void narrow_widen(unsigned precision, const char *panel, uint64_t k0, uint64_t kc, float *out)
{
    switch (precision) {
    case ONX_PRECISION_BF16:
        narrow_widen_as(ONX_PRECISION_BF16, panel, k0, kc, out);
        break;
    case ONX_PRECISION_F16:
        narrow_widen_as(ONX_PRECISION_F16, panel, k0, kc, out);
        break;
    default:
        narrow_widen_as(ONX_PRECISION_INT8, panel, k0, kc, out);
        break;
    }
}

/* ---- one row, at memory speed ---- */

__attribute__((always_inline)) static inline void narrow_row_as(const unsigned precision, const float *a,
                                                                const char *panel[2], uint64_t k, float *c)
{
    enum { WAYS = 2 };
    const uint64_t step = PANEL * narrow_width(precision), lane = ONXI_LANES * narrow_width(precision);
    const char *b[2] = { panel[0] + narrow_head(precision), panel[1] + narrow_head(precision) };
    onxi_vf sum[2][WAYS][TILE_V];
    UNROLL
    for (int i = 0; i < 2 * WAYS * TILE_V; i++)
        sum[i / (WAYS * TILE_V)][i / TILE_V % WAYS][i % TILE_V] = vf_all(0);
    for (; k >= WAYS; k -= WAYS, a += WAYS)
        UNROLL
    for (int w = 0; w < WAYS; w++)
        UNROLL
    for (int p = 0; p < 2; p++) {
        UNROLL
        for (int v = 0; v < TILE_V; v++)
            sum[p][w][v] += a[w] * narrow_load(precision, b[p] + (uint64_t)v * lane);
        b[p] += step;
    }
    if (k)
        for (int p = 0; p < 2; p++)
            for (int v = 0; v < TILE_V; v++)
                sum[p][0][v] += *a * narrow_load(precision, b[p] + (uint64_t)v * lane);
    for (int p = 0; p < 2; p++)
        for (int v = 0; v < TILE_V; v++) {
            onxi_vf x = sum[p][0][v] + sum[p][1][v];
            if (precision == ONX_PRECISION_INT8)
                x *= vf_load((const float *)(const void *)panel[p] + v * ONXI_LANES);
            vf_store(c + p * PANEL + v * ONXI_LANES, x);
        }
}

/* A row times two panels. */
static inline void narrow_row(unsigned precision, const float *a, const char *panel[2], uint64_t k, float *c)
{
    switch (precision) {
    case ONX_PRECISION_BF16:
        narrow_row_as(ONX_PRECISION_BF16, a, panel, k, c);
        break;
    case ONX_PRECISION_F16:
        narrow_row_as(ONX_PRECISION_F16, a, panel, k, c);
        break;
    default:
        narrow_row_as(ONX_PRECISION_INT8, a, panel, k, c);
        break;
    }
}

/* ---- packing ---- */

/* The largest number that the type holds as it is. */
static inline float narrow_limit(unsigned precision)
{
    return precision == ONX_PRECISION_F16 ? 65504.0f : 0x1.fep127f;
}

/* Packs whole panel rows, `count` elements; those of column i are multiplied by to_int8[i % PANEL]. False if one does
 * not fit the type. */
static inline bool narrow_pack(unsigned precision, const float *rows, uint64_t count, const float *to_int8, char *out)
{
    const float limit = narrow_limit(precision);
    bool fits = true;
    for (uint64_t i = 0; i < count; i++)
        fits &= fabsf(rows[i]) <= limit;
    if (!fits)
        return false;
    for (uint64_t i = 0; precision == ONX_PRECISION_INT8 && i < count; i++)
        ((int8_t *)out)[i] = (int8_t)rintf(rows[i] * to_int8[i % PANEL]);
    if (precision != ONX_PRECISION_INT8)
        half_narrow(precision == ONX_PRECISION_BF16 ? HALF_BFLOAT16 : HALF_FLOAT16, rows, (uint16_t *)(void *)out,
                    count);
    return true;
}

/* The scales of a panel from the largest magnitude of each column, and their inverses: magnitudes are scaled to 127. */
static inline void narrow_factors(const float *most, float *factors, float *to_int8)
{
    for (int i = 0; i < PANEL; i++) {
        const bool is_none = !(most[i] > 1e-35f); /* the inverse has to be finite */
        factors[i] = is_none ? 0 : most[i] / 127.0f;
        to_int8[i] = is_none ? 0 : 127.0f / most[i];
    }
}

#endif
