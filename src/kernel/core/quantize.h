/* quantize.h - line loops of vectorized rows for quantized operators, and the drivers that they share with the plain
 * rows (kernel/math/quantize.c, kernel/math/qlinear.c). */
#ifndef ONXI_KERNEL_QUANTIZE_H
#define ONXI_KERNEL_QUANTIZE_H

#include "kernel/core/chain.h"

#include <math.h>

/* y[i] = table[x[i]]; the table has 256 bytes. */
typedef void onxi_look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, uint64_t n);

/* Loops over lines with one scale and one zero point, by quantized type; NULL: there is no loop for that type. The
 * results have the same bits as those of the plain rows. */
typedef struct onxi_quantize_loops {
    void (*quantize[ONX_DTYPE_COUNT])(const float *x, void *y, uint64_t n, float scale, int32_t zero);
    void (*dequantize[ONX_DTYPE_COUNT])(const void *x, float *y, uint64_t n, float scale, int32_t zero);
    /* y[i] = onxi_requantized(sums[i], scale[i * step], ..) plus the zero point. */
    void (*requantize[ONX_DTYPE_COUNT])(const int32_t *sums, void *y, uint64_t n, const float *scale, uint64_t step,
                                        int32_t zero);
    /* An int32 matrix product whose operands are between -32768 and 32767; the arguments are those of onxi_gemm_run. */
    void (*product)(const onxi_gemm *g, void *pack);
    uint64_t (*product_workspace)(void);
    onxi_look_up *look_up; /* NULL: the plain one */
} onxi_quantize_loops;

#if ONXI_PLATFORM_ROOMY
enum { ONXI_QUANTIZE_STRETCH = 512 }; /* elements: what is computed from them stays in the L1 cache */

/* Loops over up to ONXI_QUANTIZE_STRETCH elements with scales and zero points of their own, with the bits of the plain
 * rows. Real types are float, float16 and bfloat16; quantized types are integers of 4, 8 and 16 bits. */
typedef struct onxi_quantize_each {
    /* Convert n elements from number `first` on of a real type or int32, and of a quantized type or int32. */
    void (*floats)(int dtype, const void *data, uint64_t first, uint64_t n, float *out);
    void (*wholes)(int dtype, const void *data, uint64_t first, uint64_t n, int32_t *out);
    /* Quotients are rounded to the real type `precision`; x is used as workspace. */
    void (*quantize)(int dtype, int precision, float *x, const float *scale, const int32_t *zero, uint64_t n, void *y);
    /* x: elements of int32 if `wide`, otherwise of a quantized type. */
    void (*dequantize)(int dtype, bool wide, const int32_t *x, const float *scale, const int32_t *zero, uint64_t n,
                       void *y);
} onxi_quantize_each;
#endif

/* The zero point of an integer type of 8 or 16 bits. */
static inline int32_t onxi_zero_point(int type, const void *at)
{
    int16_t wide = 0;
    if (type == ONX_INT16 || type == ONX_UINT16)
        memcpy(&wide, at, sizeof wide);
    return type == ONX_INT8     ? *(const int8_t *)at
           : type == ONX_UINT8  ? *(const uint8_t *)at
           : type == ONX_UINT16 ? (uint16_t)wide
                                : wide;
}

/* Requantizes a sum, without adding the zero point. The product with `scale` is computed in float, as in onnxruntime;
 * the definition of the operators leaves the precision open. The product is clamped to `low` .. `high`, which are
 * integers, and rounded to nearest, ties to even. NaN becomes `low`. */
static inline float onxi_requantized(float sum, float scale, float low, float high)
{
    const float v = sum * scale;
    return rintf(v > low ? v < high ? v : high : low);
}

/* The kernel body of QuantizeLinear and DequantizeLinear (`back`), and of MatMulInteger, ConvInteger and their QLinear
 * forms (`back`: the sums are requantized). */
typedef struct onxi_quantize_body {
    bool back;
    const onxi_quantize_loops *fast; /* NULL: plain */
#if ONXI_PLATFORM_ROOMY
    const onxi_quantize_each *each; /* if not NULL, the row is for what the loops of `fast` do not support */
#endif
} onxi_quantize_body;

static inline const onxi_quantize_body *onxi_quantize_body_of(const onx_kernel *kernel)
{
    return kernel->body;
}

/* Operands of MatMulInteger and QLinearMatMul; NULL: absent. */
typedef struct onxi_qoperands {
    const onx_value *a, *a_scale, *a_zero, *b, *b_scale, *b_zero, *y_scale, *y_zero;
} onxi_qoperands;

static inline onxi_qoperands onxi_qoperands_of(const onx_kernel *kernel, uint32_t count, const onx_value *const *in)
{
    if (onxi_quantize_body_of(kernel)->back)
        return (onxi_qoperands){ in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7] };
    return (onxi_qoperands){
        .a = in[0], .b = in[1], .a_zero = onxi_operand(count, in, 2), .b_zero = onxi_operand(count, in, 3)
    };
}

/* Sizes of such a product. A vector of zero points or scales has one element, or one per row of a (column of b) of one
 * matrix or of all matrices. */
typedef struct onxi_qproduct {
    onxi_broadcast batch; /* of the leading dims; its elements are matrices */
    uint64_t m, n, k, chunks, matrices_a, matrices_b;
    bool floats;
} onxi_qproduct;

onx_status onxi_quantize_prepare(onx_prepare *p);
onx_status onxi_dequantize_prepare(onx_prepare *p);
/* The same for images with blocked channels: with a single scale and zero point, the result keeps the layout of the
 * input. Declines all other inputs. */
onx_status onxi_quantize_laid_out(onx_prepare *p);
onx_status onxi_quantize_run(onx_work *work, uint64_t first, uint64_t last);
/* Describes the kernel as a step of an elementwise chain, for kernels with loops that were prepared with a single
 * scale. */
void onxi_quantize_element(const onx_kernel *kernel, const void *params, onxi_element *out);
/* Prepares a product: p->params becomes an onxi_qproduct. */
onx_status onxi_qproduct_prepare(onx_prepare *p);
onx_status onxi_qproduct_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_qconv_prepare(onx_prepare *p);
onx_status onxi_qconv_run(onx_work *work, uint64_t first, uint64_t last);

#endif
