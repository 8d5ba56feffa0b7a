/* tensor.h - the elements of a TensorProto, whichever field or file stores them. */
#ifndef ONX_TENSOR_H
#define ONX_TENSOR_H

#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of elements; false when dims are negative or their product overflows. */
ONX_API ONX_ANY_THREAD bool onx_tensor_count(const onx_tensor *tensor, uint64_t *count_out);

/* All elements in the layout of raw_data (row-major, little-endian, types below 8 bits packed). They are borrowed if
 * they already have that layout (raw_data, external data), otherwise allocated in the arena of `doc`. `doc` may be a
 * reader (onx_doc_reader) in all functions below. `doc` may be NULL for tensors that are not external and hold
 * raw_data. Fails for STRING and when the data does not match type and shape. */
ONX_API ONX_OWN_THREAD onx_status onx_tensor_bytes(onx_doc *doc, const onx_tensor *tensor, onx_str *out);

/* Converts elements first .. first+count-1. Integers saturate, floats round to nearest even, NaN becomes 0 in integers,
 * complex numbers give their real part. Fails for STRING. `doc` may be NULL as above. */
ONX_API ONX_OWN_THREAD onx_status onx_tensor_get_f64(onx_doc *doc, const onx_tensor *tensor, uint64_t first,
                                                     uint64_t count, double *out);
/* `doc` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_tensor_get_f32(onx_doc *doc, const onx_tensor *tensor, uint64_t first,
                                                     uint64_t count, float *out);
/* `doc` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_tensor_get_i64(onx_doc *doc, const onx_tensor *tensor, uint64_t first,
                                                     uint64_t count, int64_t *out);
/* One element of a STRING tensor. */
ONX_API ONX_ANY_THREAD onx_status onx_tensor_get_text(const onx_tensor *tensor, uint64_t index, onx_str *out);

/* ---- conversion of elements in memory, in raw_data layout ---- */

/* Converts `count` elements between any two types except STRING and complex. Conversion is by value and rounds to
 * nearest even (to FLOAT8E8M0: up, the default of Cast-24). Conversion to the 8-bit floats saturates when `saturate` is
 * set (the default of Cast-19); otherwise overflow becomes infinity or NaN, depending on the type. Smaller floats
 * always saturate, and NaN becomes negative zero. Floats to integers truncate towards zero, and NaN becomes 0; integers
 * that do not fit keep their low bits. `in` and `out` may be unaligned and must not overlap. */
ONX_API ONX_ANY_THREAD onx_status onx_convert(onx_dtype to, void *out, onx_dtype from, const void *in, uint64_t count,
                                              bool saturate);

ONX_API ONX_ANY_THREAD float onx_float16_to_f32(uint16_t bits);
ONX_API ONX_ANY_THREAD uint16_t onx_f32_to_float16(float value);
ONX_API ONX_ANY_THREAD float onx_bfloat16_to_f32(uint16_t bits);
ONX_API ONX_ANY_THREAD uint16_t onx_f32_to_bfloat16(float value);
/* `dtype` is a float of 8 bits or less; the code is in the low bits. */
ONX_API ONX_ANY_THREAD float onx_small_float_to_f32(onx_dtype dtype, uint8_t bits);
ONX_API ONX_ANY_THREAD uint8_t onx_f32_to_small_float(onx_dtype dtype, float value, bool saturate);

/* Packs one byte per element, with the code in its low bits as arrays of the package ml_dtypes have it, into the layout
 * of raw_data; and back, where signed integers are sign-extended. For types of at most 8 bits; ONX_E_UNSUPPORTED for
 * others. */
ONX_API ONX_ANY_THREAD onx_status onx_codes_pack(onx_dtype dtype, void *out, const uint8_t *codes, uint64_t count);
ONX_API ONX_ANY_THREAD onx_status onx_codes_unpack(onx_dtype dtype, uint8_t *codes_out, const void *in, uint64_t count);

/* `round_mode` of Cast-24: to the power of two above, below, or nearest (ties go up). */
typedef enum onx_round_mode { ONX_ROUND_UP, ONX_ROUND_DOWN, ONX_ROUND_NEAREST } onx_round_mode;
/* The type has no sign, zero or infinity: the sign is dropped, zero becomes 2^-127, infinity and NaN become NaN. */
ONX_API ONX_ANY_THREAD uint8_t onx_f32_to_float8e8m0(float value, onx_round_mode mode, bool saturate);

#ifdef __cplusplus
}
#endif
#endif
