/* chain.h - fusion of elementwise operators into one pass: each operator is a loop over any range of elements, and a
 * chain runs loop after loop on a block of elements that stays in the first-level cache. Results are bit-identical to
 * separate nodes, since the loops are those of their rows. */
#ifndef ONXI_KERNEL_CHAIN_H
#define ONXI_KERNEL_CHAIN_H

#include "kernel/core/loops.h"

/* z[i] = c[i * sc] ? x[i * sx] : y[i * sy] for n elements. */
typedef void (*onxi_where_loop)(const uint8_t *c, int64_t sc, const void *x, int64_t sx, const void *y, int64_t sy,
                                void *z, int64_t n);

/* By the bytes of an element. */
typedef struct onxi_where_body {
    onxi_where_loop loops[17];
} onxi_where_body;

/* Both operands are read unconditionally, so that there is no branch; the usual strides are constants, so that the
 * loops are vectorized. */
#define ONXI_WHERE_STEPS(T, SC, SX, SY)                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const T if_so = px[i * (SX)], if_not = py[i * (SY)];                                                           \
        pz[i] = c[i * (SC)] ? if_so : if_not;                                                                          \
    }
#define ONXI_WHERE(T)                                                                                                  \
    static void where_##T(const uint8_t *c, int64_t sc, const void *x, int64_t sx, const void *y, int64_t sy, void *z, \
                          int64_t n)                                                                                   \
    {                                                                                                                  \
        const T *px = x, *py = y;                                                                                      \
        T *pz = z;                                                                                                     \
        if (sc == 1 && sx == 1 && sy == 1)                                                                             \
            ONXI_WHERE_STEPS(T, 1, 1, 1)                                                                               \
        else if (sc == 1 && sx == 1 && sy == 0)                                                                        \
            ONXI_WHERE_STEPS(T, 1, 1, 0)                                                                               \
        else if (sc == 1 && sx == 0 && sy == 1)                                                                        \
            ONXI_WHERE_STEPS(T, 1, 0, 1)                                                                               \
        else                                                                                                           \
            ONXI_WHERE_STEPS(T, sc, sx, sy)                                                                            \
    }

/* y[i] = x[i], clamped to the bounds; each bound is NULL or one element. */
typedef void (*onxi_clip_loop)(const void *x, const void *low, const void *high, void *y, uint64_t n);

/* By element type. */
typedef struct onxi_clip_body {
    onxi_clip_loop loops[ONX_DTYPE_COUNT];
} onxi_clip_body;

/* A table of Cast loops for pairs of types; the last entry has no loop. They give the results of onx_convert. */
typedef struct onxi_cast_body {
    onx_dtype from, to;
    onxi_unary_loop loop;
} onxi_cast_body;

/* What a row does to elements. One of the loops is there. */
typedef struct onxi_element {
    onxi_unary_loop unary;
    double a, b;
    onxi_binary_loop binary;
    const onxi_binary_params *gathered; /* of a binary operator whose rows are gathered; else NULL */
    onxi_where_loop where;
    onxi_clip_loop clip;
    const void *low, *high; /* bounds that are no inputs; NULL: none */
    bool cast, saturate;    /* y[i] = x[i] of another type, instead of a loop */
    /* Inputs 1 and 2 are one scale and one zero point (NULL: 0) of numbers of the type `to` or `from`. */
    void (*quantize)(const float *x, void *y, uint64_t n, float scale, int32_t zero);
    void (*dequantize)(const void *x, float *y, uint64_t n, float scale, int32_t zero);
    onx_dtype from, to;
    const onxi_broadcast *broadcast; /* broadcast of the inputs to the output; NULL: input 0 has the size of the
                                      * output */
    uint32_t inputs, in_width[ONXI_ELEMENT_INPUTS], out_width;
} onxi_element;

/* Of rows with these drivers, from what they have prepared. */
/* Loops are those of the row's body, or the plain ones. */
onx_status onxi_where_prepare(onx_prepare *p);
onx_status onxi_where_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_clip_prepare(onx_prepare *p);
onx_status onxi_clip_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_cast_prepare(onx_prepare *p);
onx_status onxi_cast_run(onx_work *work, uint64_t first, uint64_t last);
void onxi_unary_element(const void *params, onxi_element *out);
void onxi_where_element(const void *params, onxi_element *out);
void onxi_clip_element(const void *params, onxi_element *out);
void onxi_cast_element(const void *params, onxi_element *out);

#endif
