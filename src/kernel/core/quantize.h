/* quantize.h - line loops of vectorized rows for quantized operators, and the drivers that they share with the plain
 * rows (kernel/math/quantize.c, kernel/math/qlinear.c). */
#ifndef ONXI_KERNEL_QUANTIZE_H
#define ONXI_KERNEL_QUANTIZE_H

#include "kernel/core/chain.h"

#include <math.h>

/* y[i] = table[x[i]], of 256 bytes. */
typedef void onxi_look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, uint64_t n);

/* Loops over lines with one scale and one zero point, by quantized type; NULL: none for that type. All of them give the
 * bits of the plain rows. */
typedef struct onxi_quantize_loops {
    void (*quantize[ONX_DTYPE_COUNT])(const float *x, void *y, uint64_t n, float scale, int32_t zero);
    void (*dequantize[ONX_DTYPE_COUNT])(const void *x, float *y, uint64_t n, float scale, int32_t zero);
    /* y = onxi_requantized of the sums by scale[i * step], plus the zero point. */
    void (*requantize[ONX_DTYPE_COUNT])(const int32_t *sums, void *y, uint64_t n, const float *scale, uint64_t step,
                                        int32_t zero);
    /* A product of int32 with operands between -32768 and 32767, with the arguments of onxi_gemm_run. */
    void (*product)(const onxi_gemm *g, void *pack);
    uint64_t (*product_workspace)(void);
    onxi_look_up *look_up; /* NULL: the plain one */
} onxi_quantize_loops;

/* A sum as a quantized number without its zero point: the product with `scale` is one of floats, where the definition
 * leaves the precision open, which is what onnxruntime has. It is rounded to the nearest of the whole numbers from
 * `low` to `high`, halves to even; NaN becomes `low`. */
static inline float onxi_requantized(float sum, float scale, float low, float high)
{
    const float v = sum * scale;
    return rintf(v > low ? v < high ? v : high : low);
}

/* The body of QuantizeLinear, DequantizeLinear (`back`), and of MatMulInteger, ConvInteger and their QLinear forms
 * (`back`: sums are requantized). */
typedef struct onxi_quantize_body {
    bool back;
    const onxi_quantize_loops *fast; /* NULL: plain */
} onxi_quantize_body;

onx_status onxi_quantize_prepare(onx_prepare *p);
onx_status onxi_dequantize_prepare(onx_prepare *p);
/* The same of images whose channels lie in blocks: with one scale for all they are left as they lie. Declines others.
 */
onx_status onxi_quantize_laid_out(onx_prepare *p);
onx_status onxi_quantize_run(onx_work *work, uint64_t first, uint64_t last);
/* Of rows that have loops, prepared with one scale for all. */
void onxi_quantize_element(const onx_kernel *kernel, const void *params, onxi_element *out);
onx_status onxi_qproduct_prepare(onx_prepare *p);
onx_status onxi_qproduct_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_qconv_prepare(onx_prepare *p);
onx_status onxi_qconv_run(onx_work *work, uint64_t first, uint64_t last);

#endif
