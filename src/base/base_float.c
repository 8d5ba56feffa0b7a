/* base_float.c - the floating-point types that C does not have: 16 bits and less. A row of dtype.def describes each
 * format for reading and rounding; 16-bit types also have a fast conversion from float (docs/notes/small_floats.md). */
#include <onx/tensor.h>

#include "base/base.h"

static uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- to float: always exact ---- */

float onx_float16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t rest = (uint32_t)(bits & 0x7fffu) << 13;
    uint32_t exponent = rest & 0x0f800000u;
    if (exponent == 0x0f800000u) /* infinity, NaN */
        return f32_of(sign | (rest + ((255u - 31u) << 23)));
    if (exponent == 0) /* rest / 2^23 * 2^-14, computed by subtracting 2^-14 from 2^-14 + rest */
        return f32_of(sign | f32_bits(f32_of(rest + (113u << 23)) - f32_of(113u << 23)));
    return f32_of(sign | (rest + ((127u - 15u) << 23)));
}

float onx_bfloat16_to_f32(uint16_t bits)
{
    return f32_of((uint32_t)bits << 16);
}

float onx_small_float_to_f32(onx_dtype dtype, uint8_t bits)
{
    const uint32_t nan = 0x7fc00000u;
    if (onx_dtype_class_of(dtype) != ONX_CLASS_FLOATING || onx_dtype_bits(dtype) > 8)
        return f32_of(nan);
    const onxi_dtype_row *f = onxi_dtype_row_of(dtype);
    if (f->values == ONXI_VALUES_SCALE) {
        if (bits == 0xff)
            return f32_of(nan);
        return f32_of(bits ? (uint32_t)bits << 23 : 1u << 22);
    }
    uint32_t sign_bit = 1u << (f->bits - 1);
    uint32_t sign = (bits & sign_bit) ? 0x80000000u : 0;
    uint32_t rest = bits & (sign_bit - 1);
    if (f->values == ONXI_VALUES_FNUZ && sign && rest == 0)
        return f32_of(nan);
    if (f->values == ONXI_VALUES_FN && rest > f->max)
        return f32_of(sign | nan);
    if (f->values == ONXI_VALUES_IEEE && rest > f->max)
        return f32_of(sign | (rest == f->max + 1u ? 0x7f800000u : nan));
    uint32_t exponent = rest >> f->mantissa, mantissa = rest & ((1u << f->mantissa) - 1);
    if (exponent == 0) {
        uint32_t unit = (uint32_t)(127 + 1 - f->bias - f->mantissa) << 23; /* the smallest step of the format, a power
                                                                            * of two */
        return f32_of(sign | f32_bits((float)mantissa * f32_of(unit)));
    }
    uint32_t field = exponent + (uint32_t)(127 - f->bias);
    return f32_of(sign | field << 23 | mantissa << (23 - f->mantissa));
}

/* ---- from float: to nearest, ties to even ---- */

uint16_t onx_f32_to_float16(float value)
{
    uint32_t bits = f32_bits(value);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    bits &= 0x7fffffffu;
    uint32_t out;
    if (bits > 0x7f800000u)
        out = 0x7e00u | ((bits >> 13) & 0x1ffu); /* a quiet NaN, with as many payload bits as fit */
    else if (bits >= 0x47800000u)                /* 65536 */
        out = 0x7c00u;
    else if (bits < 0x38800000u) /* below 2^-14: adding 0.5 aligns the unit of the sum with that of the result */
        out = f32_bits(f32_of(bits) + 0.5f) - 0x3f000000u;
    else
        out = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13; /* a carry into infinity is correct */
    return (uint16_t)(sign | out);
}

uint16_t onx_f32_to_bfloat16(float value)
{
    uint32_t bits = f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* The result for a value beyond the largest finite one, including infinity. */
static uint16_t overflow(const onxi_dtype_row *f, uint16_t sign, bool saturate)
{
    if (saturate || f->values == ONXI_VALUES_FINITE)
        return (uint16_t)(sign | f->max);
    if (f->values == ONXI_VALUES_FNUZ)
        return 0x80;
    return (uint16_t)(sign | (f->max + 1u)); /* infinity in IEEE formats, NaN in FN */
}

static uint16_t not_a_number(const onxi_dtype_row *f, uint16_t sign)
{
    switch (f->values) {
    case ONXI_VALUES_IEEE:
        return (uint16_t)(sign | (f->max + 1u) | 1u << (f->mantissa - 1));
    case ONXI_VALUES_FN:
        return (uint16_t)(sign | (f->max + 1u));
    case ONXI_VALUES_FNUZ:
        return 0x80;
    default:
        return (uint16_t)(1u << (f->bits - 1)); /* no NaN: the standard's test data uses negative zero here */
    }
}

uint16_t onxi_f64_to_float(onx_dtype dtype, double value, bool saturate)
{
    const onxi_dtype_row *f = onxi_dtype_row_of(dtype);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 63) << (f->bits - 1));
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 0x7ff)
        return mantissa ? not_a_number(f, sign) : overflow(f, sign, saturate);
    uint64_t out = 0;
    int target = exponent - 1023 + f->bias; /* exponent field in the new format; below 1: subnormal */
    int shift = 52 - f->mantissa + (target < 1 ? 1 - target : 0);
    if (exponent != 0 && shift < 55) { /* otherwise the value is less than half of the smallest step */
        mantissa |= (uint64_t)1 << 52;
        uint64_t rest = mantissa & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
        out = mantissa >> shift;
        out += rest > half || (rest == half && (out & 1));
        if (target > 1)
            out += (uint64_t)(target - 1) << f->mantissa; /* `out` includes the leading one, which adds the last 1 */
    }
    if (out > f->max)
        return overflow(f, sign, saturate);
    if (out == 0 && f->values == ONXI_VALUES_FNUZ)
        return 0;
    return (uint16_t)(sign | out);
}

uint8_t onx_f32_to_float8e8m0(float value, onx_round_mode mode, bool saturate)
{
    uint32_t bits = f32_bits(value) & 0x7fffffffu; /* the format has no sign */
    if (bits >= 0x7f800000u)
        return 0xff;
    uint32_t exponent = bits >> 23, rest = bits & 0x7fffffu, half = 0x400000u;
    if (exponent == 0) { /* code 0 is 2^-127, which is subnormal in float; smaller values become 2^-127 in every
                          * rounding mode */
        if (rest <= half)
            return 0;
        rest = (rest - half) << 1; /* position between 2^-127 and 2^-126 */
    }
    bool up = mode == ONX_ROUND_UP ? rest != 0 : mode == ONX_ROUND_NEAREST ? rest >= half : false;
    exponent += up;
    if (exponent == 0xff && saturate)
        exponent = 0xfe;
    return (uint8_t)exponent;
}

uint8_t onx_f32_to_small_float(onx_dtype dtype, float value, bool saturate)
{
    if (dtype == ONX_FLOAT8E8M0)
        return onx_f32_to_float8e8m0(value, ONX_ROUND_UP, saturate);
    if (onx_dtype_class_of(dtype) != ONX_CLASS_FLOATING || onx_dtype_bits(dtype) > 8)
        return 0;
    return (uint8_t)onxi_f64_to_float(dtype, (double)value, saturate);
}
