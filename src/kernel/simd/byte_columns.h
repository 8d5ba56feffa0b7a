/* byte_columns.h - operands of 8-bit integer products: their input indices, the checks that they are supported, and the
 * per-column parameters of the result that follow from them. */
#ifndef ONXI_KERNEL_SIMD_BYTE_COLUMNS_H
#define ONXI_KERNEL_SIMD_BYTE_COLUMNS_H

#include "kernel/core/quantize.h"
#include "kernel/simd/byte_drive.h"

#include <math.h>

#if ONXI_LEVEL >= 4 /* ONX_ISA_VNNI; files of lower levels do not have it */

#define BYTES (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8))

/* Input indices of the operands; -1: the operator has no such input. The left operand is input 0. */
typedef struct byte_operands {
    finish_kind kind; /* AS_FLOATS becomes AS_BYTES if there is a y_scale */
    int8_t a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
} byte_operands;

/* For the operators that rewrite rules create. */
static const byte_operands byte_by_rule = { AS_FLOATS, 1, 2, 3, 4, 5, 7, 8, 6 };

static inline const onx_value *byte_operand(const onx_prepare *p, int8_t at)
{
    return at < 0 ? NULL : onxi_operand(p->input_count, p->inputs, (uint32_t)at);
}

static inline bool is_byte(int dtype)
{
    return dtype == ONX_INT8 || dtype == ONX_UINT8;
}

/* Is it absent, or a constant of this type with one element or one per column? */
static inline bool fits_columns(const onx_value *v, int dtype, uint64_t columns)
{
    return !v || (v->data && v->dtype == dtype && (v->count == 1 || v->count == columns));
}

static inline bool are_normal(const onx_value *v)
{
    for (uint64_t i = 0; v && i < v->count; i++)
        if (!isnormal(((const float *)v->data)[i]))
            return false;
    return true;
}

/* Are the types and sizes of the operands supported here? If not, the plain rows take the node and report errors. */
static inline bool byte_operands_fit(const onx_prepare *p, const byte_operands *at, uint64_t columns, int y_dtype)
{
    enum { MOST_FLOAT = 1 << 16 }; /* elements per column, so that sums to be converted to float do not overflow */
    const onx_value *a = p->inputs[0], *b = byte_operand(p, at->b), *a_zero = byte_operand(p, at->a_zero);
    const onx_value *b_zero = byte_operand(p, at->b_zero), *bias = byte_operand(p, at->bias);
    const onx_value *scales[] = { byte_operand(p, at->a_scale), byte_operand(p, at->b_scale),
                                  byte_operand(p, at->y_scale) };
    const onx_value *y_zero = byte_operand(p, at->y_zero);
    if (!is_byte(a->dtype) || !is_byte(b->dtype) || (a_zero && (a_zero->dtype != a->dtype || a_zero->count != 1)) ||
        !fits_columns(b_zero, b->dtype, columns) || !fits_columns(scales[0], ONX_FLOAT, 1) ||
        !fits_columns(scales[1], ONX_FLOAT, columns) || !fits_columns(scales[2], ONX_FLOAT, 1) ||
        !fits_columns(y_zero, y_dtype, 1))
        return false;
    if (at->kind == AS_SUMS)
        return true;
    if (!scales[0] || !scales[1])
        return false;
    if (at->kind == AGAIN)
        return scales[2] && (!bias || (bias->data && bias->dtype == ONX_INT32 && bias->count == columns)) &&
               is_byte(y_dtype);
    return are_normal(scales[0]) && are_normal(scales[1]) && are_normal(scales[2]) &&
           b->count / columns <= MOST_FLOAT && (!scales[2] || is_byte(y_dtype)) &&
           (!bias || (bias->data && bias->dtype == ONX_FLOAT && bias->rank && bias->count == columns &&
                      bias->dims[bias->rank - 1] == (int64_t)columns));
}

/* For an operator that a rewrite rule created: the type of its result. */
static inline int byte_rule_type(const onx_prepare *p, const byte_operands *at)
{
    const onx_value *scale = byte_operand(p, at->y_scale), *zero = byte_operand(p, at->y_zero);
    return zero ? zero->dtype : scale ? ONX_UINT8 : ONX_FLOAT;
}

/* Do the per-column parameters of such an operator lie along this axis of the right operand? */
static inline bool byte_rule_axis(const onx_prepare *p, const byte_operands *at, int64_t axis)
{
    const onx_value *w = byte_operand(p, at->b), *scale = byte_operand(p, at->b_scale);
    const int64_t is = onxi_attrs_int(p->attrs, "w_axis");
    return scale->count == 1 || (is < 0 ? is + w->rank : is) == axis;
}

/* Reads the bounds of Clip, which are the last inputs of the operators that rewrite rules create. */
static inline bool take_bounds(const onx_prepare *p, simd_post *f)
{
    enum { LOW = 9, HIGH = 10 };
    const onx_value *low = onxi_operand(p->input_count, p->inputs, LOW);
    const onx_value *high = onxi_operand(p->input_count, p->inputs, HIGH);
    if (!fits_columns(low, ONX_FLOAT, 1) || !fits_columns(high, ONX_FLOAT, 1))
        return false;
    f->a = low ? *(const float *)low->data : -INFINITY;
    f->b = high ? *(const float *)high->data : INFINITY;
    return f->a <= f->b;
}

/* Reads the activation function that is applied before the result is quantized; the attribute holds the name of its
 * operator. */
static inline bool take_activation(const onx_prepare *p, finish *f)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } known[] = { { "Relu", ONX_POST_RELU },
                  { "Clip", ONX_POST_CLIP },
                  { "HardSwish", ONX_POST_HARD_SWISH },
                  { "Sigmoid", ONX_POST_SIGMOID } };
    const onxi_attr_value *name = onxi_attrs_get(p->attrs, "activation", ONX_ATTR_STRING);
    if (!name)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (onx_str_is(name->s, known[i].name))
            f->posts.list[f->posts.count++] = (simd_post){ .kind = known[i].kind, .operand = -1 };
    return f->posts.count == 1 && (f->posts.list[0].kind != ONX_POST_CLIP || take_bounds(p, &f->posts.list[0]));
}

/* Recovers the integers of a bias that DequantizeLinear has computed with the product of the scales. Added to the
 * integer sums, they leave a single rounding, as in onnxruntime. False: the bias is not a multiple of the product of
 * the scales, or the sums may overflow. */
static inline bool whole_bias(const float *shift, const float *factor, uint64_t n, uint64_t k, int32_t *out)
{
    enum { MOST = 1 << 22, MOST_NUMBERS = 1 << 15 };
    for (uint64_t i = 0; i < n; i++) {
        const float steps = shift[i] == 0 ? 0 : shift[i] / factor[i], whole = rintf(steps);
        if (!(fabsf(whole) < MOST && fabsf(steps - whole) <= fabsf(whole) * 0x1p-22f))
            return false;
        out[i] = (int32_t)whole;
    }
    return k <= MOST_NUMBERS;
}

static inline onx_status take_bias(onx_prepare *p, const onx_value *bias, const drive *d, finish *f)
{
    const uint64_t n = d->groups * padded_columns(f->n);
    if (f->kind == AGAIN)
        return (f->bias = column_integers(p->arena, bias, d->groups, f->n, 0)) ? ONX_OK : ONX_E_MEMORY;
    const float *shift = column_floats(p->arena, bias, d->groups, f->n);
    int32_t *whole = onxi_arena_array(p->arena, n, sizeof *whole);
    if (!shift || !whole)
        return ONX_E_MEMORY;
    if (whole_bias(shift, f->factor, n, d->k, whole))
        f->bias = whole;
    else
        f->shift = shift;
    return ONX_OK;
}

/* Rounds a bound to the nearest integer in the range of the result's type, without the zero point. */
static inline float bound_of(const finish *f, float x)
{
    const float least = (float)((f->y_is_signed ? -128 : 0) - f->y_zero);
    return onxi_requantized(x, 1, least, least + 255);
}

/* Simplifies AS_BYTES without activation functions other than bounds to AGAIN: the sums are requantized directly, and
 * clamped to these bounds. */
static inline void become_again(finish *f, float *factor, uint64_t n)
{
    float low, high;
    if (f->shift || !(f->y_scale > 0) || !posts_are_bounds(&f->posts, &low, &high))
        return;
    for (uint64_t i = 0; i < n; i++)
        factor[i] /= f->y_scale;
    f->kind = AGAIN;
    f->low = bound_of(f, low / f->y_scale);
    f->high = bound_of(f, high / f->y_scale);
}

/* Sets up the post-processing of the sums. */
static inline onx_status byte_finish(onx_prepare *p, const byte_operands *at, drive *d)
{
    finish *f = &d->finish;
    const onx_value *a_scale = byte_operand(p, at->a_scale), *b_scale = byte_operand(p, at->b_scale);
    const onx_value *y_scale = byte_operand(p, at->y_scale), *y_zero = byte_operand(p, at->y_zero);
    const onx_value *bias = byte_operand(p, at->bias), *b = byte_operand(p, at->b);
    f->kind = at->kind == AS_FLOATS && y_scale ? AS_BYTES : at->kind;
    f->k = d->k;
    ONX_TRY(column_zeros(p, byte_operand(p, at->b_zero), b->dtype == ONX_UINT8, d->groups, f->n, &f->zero));
    f->y_is_signed = p->outputs[0]->dtype == ONX_INT8;
    f->y_zero = y_zero ? (int32_t)onxi_value_number(y_zero, 0) : 0;
    f->y_scale = y_scale ? *(const float *)y_scale->data : 1;
    if (f->kind == AS_SUMS)
        return ONX_OK;
    float *factor = column_floats(p->arena, b_scale, d->groups, f->n);
    if (!factor)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < d->groups * padded_columns(f->n); i++) {
        factor[i] = *(const float *)a_scale->data * factor[i];
        if (f->kind == AGAIN)
            factor[i] /= f->y_scale;
    }
    f->factor = factor;
    f->low = bound_of(f, -INFINITY);
    f->high = bound_of(f, INFINITY);
    if (f->kind == AS_BYTES && !take_activation(p, f))
        return ONX_E_UNSUPPORTED;
    if (bias)
        ONX_TRY(take_bias(p, bias, d, f));
    if (f->kind == AS_BYTES)
        become_again(f, factor, d->groups * padded_columns(f->n));
    return ONX_OK;
}

#endif
#endif
