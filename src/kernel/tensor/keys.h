/* keys.h - sort keys: unsigned integers with the order of the elements they are computed from. */
#ifndef ONXI_KERNEL_KEYS_H
#define ONXI_KERNEL_KEYS_H

#include "kernel/kernel.h"

/* The key of a float, from its bits: both zeros are equal, all NaN are equal and the greatest. */
static inline uint64_t float_key(uint64_t bits, uint64_t sign, uint64_t infinity)
{
    uint64_t size = bits & (sign - 1);
    if (size > infinity)
        return UINT64_MAX;
    return bits & sign ? sign - size : sign + size;
}

#define SIGN_64 UINT64_C(0x8000000000000000)

/* The key of element i. For a complex type, i counts its real and imaginary parts separately. */
static inline uint64_t key_of(int dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case ONX_FLOAT:
    case ONX_COMPLEX64:
        return float_key(((const uint32_t *)data)[i], UINT64_C(0x80000000), UINT64_C(0x7f800000));
    case ONX_DOUBLE:
    case ONX_COMPLEX128:
        return float_key(((const uint64_t *)data)[i], SIGN_64, UINT64_C(0x7ff0000000000000));
    case ONX_FLOAT16:
        return float_key(((const uint16_t *)data)[i], 0x8000, 0x7c00);
    case ONX_BFLOAT16:
        return float_key(((const uint16_t *)data)[i], 0x8000, 0x7f80);
    case ONX_INT8:
        return (uint64_t)((const int8_t *)data)[i] ^ SIGN_64;
    case ONX_INT16:
        return (uint64_t)((const int16_t *)data)[i] ^ SIGN_64;
    case ONX_INT32:
        return (uint64_t)((const int32_t *)data)[i] ^ SIGN_64;
    case ONX_INT64:
        return (uint64_t)((const int64_t *)data)[i] ^ SIGN_64;
    case ONX_UINT16:
        return ((const uint16_t *)data)[i];
    case ONX_UINT32:
        return ((const uint32_t *)data)[i];
    case ONX_UINT64:
        return ((const uint64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

#endif
