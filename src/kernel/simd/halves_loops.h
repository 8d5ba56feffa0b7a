/* halves_loops.h - loops over float16 and bfloat16 that convert to float, call the loop for floats, and round. Browsers
 * have none: their models use floats, and each byte of the module must be loaded. */
#ifndef ONXI_KERNEL_SIMD_HALVES_LOOPS_H
#define ONXI_KERNEL_SIMD_HALVES_LOOPS_H

#include "kernel/simd/halves.h"

#ifdef __wasm__
#define ONXI_HALF_TYPES 0
#define ONXI_HALF_UNARY(op)
#define ONXI_HALF_BINARY(op, to)
#define ONXI_HALF_LOOPS(op)
#else
#define ONXI_HALF_TYPES (ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))

__attribute__((noinline, unused)) static void half_unary(onxi_unary_loop loop, half_kind kind, const uint16_t *x,
                                                         uint16_t *y, uint64_t n, double a, double b)
{
    float t[ONXI_HALVES];
    for (uint64_t i = 0, m; i < n; i += m) {
        m = half_stretch(n - i);
        half_widen(kind, x + i, t, m);
        loop(t, t, m, a, b);
        half_narrow(kind, t, y + i, m);
    }
}

/* Converts n elements from x on to floats in t; returns the stride for the loop: 1, or 0 for a single element. */
static inline int64_t half_operand(half_kind kind, const uint16_t *x, int64_t step, float *t, uint64_t n)
{
    if (step == 1)
        half_widen(kind, x, t, n);
    else
        for (uint64_t i = 0; i < (step ? n : 1); i++)
            half_widen(kind, x + (int64_t)i * step, t + i, 1);
    return step != 0;
}

/* The result is 16-bit floats, or bytes for comparisons. */
__attribute__((noinline, unused)) static void half_binary(onxi_binary_loop loop, half_kind kind, bool to_halves,
                                                          const uint16_t *x, int64_t sx, const uint16_t *y, int64_t sy,
                                                          void *z, uint64_t n)
{
    float a[ONXI_HALVES], b[ONXI_HALVES];
    for (uint64_t i = 0, m; i < n; i += m) {
        m = half_stretch(n - i);
        const int64_t sa = half_operand(kind, x + (int64_t)i * sx, sx, a, m);
        const int64_t sb = half_operand(kind, y + (int64_t)i * sy, sy, b, m);
        if (!to_halves) {
            loop(a, sa, b, sb, (uint8_t *)z + i, (int64_t)m);
            continue;
        }
        float *t = sa ? a : b; /* one of both has room for all results, or both are single elements */
        if (!sa && !sb)
            for (uint64_t k = 1; k < m; k++)
                t[k] = t[0];
        loop(a, sa, b, sb || t == b, t, (int64_t)m);
        half_narrow(kind, t, (uint16_t *)z + i, m);
    }
}

#define ONXI_HALF_UNARY_OF(op, d)                                                                                      \
    static void op##_##d(const void *x, void *y, uint64_t n, double a, double b)                                       \
    {                                                                                                                  \
        half_unary(op##_loop, HALF_##d, x, y, n, a, b);                                                                \
    }
#define ONXI_HALF_BINARY_OF(op, d, to_halves)                                                                          \
    static void op##_##d(const void *x, int64_t sx, const void *y, int64_t sy, void *z, int64_t n)                     \
    {                                                                                                                  \
        half_binary(op##_loop, HALF_##d, to_halves, x, sx, y, sy, z, (uint64_t)n);                                     \
    }
/* Defines the loops of an operator from its op##_loop, and their entries in its body. */
#define ONXI_HALF_UNARY(op) ONXI_HALF_UNARY_OF(op, FLOAT16) ONXI_HALF_UNARY_OF(op, BFLOAT16)
#define ONXI_HALF_BINARY(op, to_halves)                                                                                \
    ONXI_HALF_BINARY_OF(op, FLOAT16, to_halves) ONXI_HALF_BINARY_OF(op, BFLOAT16, to_halves)
#define ONXI_HALF_LOOPS(op) , [ONX_FLOAT16] = op##_FLOAT16, [ONX_BFLOAT16] = op##_BFLOAT16
#endif

#endif
