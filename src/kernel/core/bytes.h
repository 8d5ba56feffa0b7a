/* bytes.h - loops over quantized bytes, for each ISA level (kernel/simd/bytes.c). */
#ifndef ONXI_KERNEL_CORE_BYTES_H
#define ONXI_KERNEL_CORE_BYTES_H

#include "kernel/kernel.h"

/* How a quantized byte maps to a value: (byte - zero) * scale. The loops read all bytes as unsigned. For signed bytes,
 * `flip` is 0x80, which is XORed with each byte, and 128 is added to `zero`. */
typedef struct onxi_byte_meaning {
    float scale;
    int32_t zero;
    uint8_t flip;
} onxi_byte_meaning;

static inline bool onxi_is_byte(const onx_value *v)
{
    return v && v->kind == ONX_VALUE_TENSOR && (v->dtype == ONX_INT8 || v->dtype == ONX_UINT8);
}

static inline onxi_byte_meaning onxi_byte_meaning_of(const onx_value *scale, const onx_value *zero, int dtype)
{
    const bool is_signed = dtype == ONX_INT8;
    onxi_byte_meaning m = { .scale = *(const float *)scale->data,
                            .zero = is_signed ? 128 : 0,
                            .flip = is_signed ? 0x80 : 0 };
    if (zero)
        m.zero += is_signed ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
    return m;
}

/* Are these inputs a single float scale and, if present, a single zero point of the type of the bytes? */
static inline bool onxi_byte_has_meaning(const onx_prepare *p, uint32_t scale_at, uint32_t zero_at, int dtype)
{
    const onx_value *scale = onxi_operand(p->input_count, p->inputs, scale_at),
                    *zero = onxi_operand(p->input_count, p->inputs, zero_at);
    return scale && scale->dtype == ONX_FLOAT && scale->count == 1 &&
           (!zero || (zero->dtype == dtype && zero->count == 1));
}

/* The same for the result. Without a zero point, QuantizeLinear makes unsigned bytes. A Relu before it can be dropped
 * if the lowest byte stands for 0. */
static inline bool onxi_byte_result_has_meaning(const onx_prepare *p, uint32_t scale_at, uint32_t zero_at, int dtype)
{
    const onx_value *zero = onxi_operand(p->input_count, p->inputs, zero_at);
    if (!onxi_byte_has_meaning(p, scale_at, zero_at, dtype) || (!zero && dtype != ONX_UINT8))
        return false;
    const onxi_attr_value *function = onxi_attrs_get(p->attrs, "activation", ONX_ATTR_STRING);
    return !function || (onx_str_is(function->s, "Relu") &&
                         (!zero || (zero->data && *(const uint8_t *)zero->data == (dtype == ONX_INT8 ? 0x80 : 0))));
}

/* Sums or products, for rows of `count` results. Each row of an operand has `count` contiguous bytes (a_step, b_step),
 * or a single byte that is broadcast. A sum is a * ra + (b * rb + (zero - (za * ra + zb * rb))), where ra and rb are
 * the operand's scale divided by that of the result. Each product except zb * rb is fused with its addition. The
 * operands are exchanged if only a is broadcast. A product is (a - za) * (b - zb) * (sa * sb / s) + zero; each step is
 * rounded to float. */
typedef struct onxi_byte_pair {
    const uint8_t *a, *b;
    uint8_t *y;
    uint64_t count, rows;       /* results per row, and rows; the results are contiguous */
    int64_t a_next, b_next;     /* row strides of the operands, in bytes */
    bool a_step, b_step, times; /* times: products instead of sums */
    onxi_byte_meaning of[3];    /* a, b, the result */
} onxi_byte_pair;

/* y[i] = table[x[i]]; reads and writes eight bytes at a time, as one 64-bit integer. */
static inline void onxi_byte_look_up(const uint8_t *restrict table, const uint8_t *restrict x, uint64_t n,
                                     uint8_t *restrict y)
{
    enum { TOGETHER = 8 };
    uint64_t i = 0;
    for (; i + TOGETHER <= n; i += TOGETHER) {
        uint64_t in, out = 0;
        memcpy(&in, x + i, sizeof in);
        for (unsigned k = 0; k < TOGETHER; k++)
            out |= (uint64_t)table[in >> (8 * k) & 255] << (8 * k);
        memcpy(y + i, &out, sizeof out);
    }
    for (; i < n; i++)
        y[i] = table[x[i]];
}

/* Means over `taps` pixels, for `count` contiguous channels: the dequantized bytes are added in float, in order, and
 * the sum is divided by `divisor` and quantized. The zero point is added before rounding. */
typedef struct onxi_byte_mean {
    const uint8_t *const *x;
    uint8_t *y;
    uint64_t taps, count;
    float divisor;
    onxi_byte_meaning of[2]; /* x, y */
} onxi_byte_mean;

typedef struct onxi_byte_loops {
    void (*pair)(const onxi_byte_pair *t);
    void (*mean)(const onxi_byte_mean *t);
    /* sums[i] += x[i] ^ flip */
    void (*total)(const uint8_t *x, uint8_t flip, uint64_t n, uint32_t *sums);
    uint32_t (*sum)(const uint8_t *x, uint8_t flip, uint64_t n);
} onxi_byte_loops;
extern const onxi_byte_loops onxi_byte_loops_base, onxi_byte_loops_v3, onxi_byte_loops_v4;

/* The loops for the widest vectors of the CPU. All give the same bits. */
static inline const onxi_byte_loops *onxi_byte_loops_best(void)
{
    return ONXI_BEST_LEVEL(onxi_byte_loops);
}

#endif
