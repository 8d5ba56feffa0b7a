/* bytes.h - loops over quantized bytes, for each ISA level (kernel/simd/bytes.c). */
#ifndef ONXI_KERNEL_CORE_BYTES_H
#define ONXI_KERNEL_CORE_BYTES_H

#include "kernel/kernel.h"

/* Meaning of quantized bytes: (byte - zero) * scale. Signed and unsigned bytes are both read as unsigned; signed ones
 * are `flip`ped, with a matching zero point. */
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

/* Are these inputs a scale, and a zero point of the type of the bytes or none? */
static inline bool onxi_byte_has_meaning(const onx_prepare *p, uint32_t scale_at, uint32_t zero_at, int dtype)
{
    const onx_value *scale = onxi_operand(p->input_count, p->inputs, scale_at),
                    *zero = onxi_operand(p->input_count, p->inputs, zero_at);
    return scale && scale->dtype == ONX_FLOAT && scale->count == 1 &&
           (!zero || (zero->dtype == dtype && zero->count == 1));
}

/* Of the result: without a zero point QuantizeLinear makes unsigned bytes; Relu in front of it does nothing where 0 is
 * the least number that they stand for. */
static inline bool onxi_byte_result_has_meaning(const onx_prepare *p, uint32_t scale_at, uint32_t zero_at, int dtype)
{
    const onx_value *zero = onxi_operand(p->input_count, p->inputs, zero_at);
    if (!onxi_byte_has_meaning(p, scale_at, zero_at, dtype) || (!zero && dtype != ONX_UINT8))
        return false;
    const onxi_attr_value *function = onxi_attrs_get(p->attrs, "activation", ONX_ATTR_STRING);
    return !function || (onx_str_is(function->s, "Relu") &&
                         (!zero || (zero->data && *(const uint8_t *)zero->data == (dtype == ONX_INT8 ? 0x80 : 0))));
}

/* Rows of `count` results from contiguous bytes, or (no step) from one byte for all of a row. With the ratios r of
 * scales to that of the result, a sum is a * ra + (b * rb + (zero - (za * ra + zb * rb))), each product fused with the
 * sum that it is in but for zb * rb; operands change places where there is one byte for all of the first. A product is
 * (a - za)
 * * (b - zb) * (sa * sb / s) + zero, each step rounded to float. */
typedef struct onxi_byte_pair {
    const uint8_t *a, *b;
    uint8_t *y;
    uint64_t count, rows;       /* of results, which lie behind each other, per row */
    int64_t a_next, b_next;     /* bytes from a row of an operand to the next */
    bool a_step, b_step, times; /* times: products, else sums */
    onxi_byte_meaning of[3];    /* a, b, the result */
} onxi_byte_pair;

/* y[i] = table[x[i]], eight bytes at a time, which are read and written as one 64-bit integer. */
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

/* Means of the bytes of `taps` pixels, of `count` channels that are neighbours: numbers are added one after the other
 * in float, divided by `divisor`, and quantized with the zero point in what is rounded. */
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
    /* y[i]: the maximum of x[k][i]; 0, flipped, without any x. */
    void (*greatest)(const uint8_t *const *x, uint64_t count, uint8_t flip, uint64_t n, uint8_t *y);
    /* sums[i] += x[i], flipped */
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
