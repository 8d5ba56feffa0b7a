/* value.h - the insides of values: their memory, their elements as numbers, their type as a message. */
#ifndef ONXI_VALUE_H
#define ONXI_VALUE_H

#include <onx/tensor.h>
#include <onx/value.h>

#include "base/base.h"
#include "ir/ir.h"

enum {
    ONXI_VALUE_BORROWED = 1, /* data and dims belong to another owner */
    ONXI_VALUE_OUTPUT = 4,   /* an output of the run that is about to start */
    ONXI_VALUE_WRAPPED = 8,  /* data belongs to the caller, dims to the value */
    ONXI_VALUE_GIVEN = 2     /* an operand that is unused afterwards: onxi_value_take may empty it */
};

/* Number of elements by dims; false when impossible. */
bool onxi_dims_count(uint32_t rank, const int64_t *dims, uint64_t *count_out);
/* Says that no tensor has these dims, with their numbers: ONX_E_LIMIT. */
onx_status onxi_dims_refuse(onx_ctx *cx, int dtype, uint32_t rank, const int64_t *dims);
/* Bytes of an element; 0: several share a byte. */
static inline uint32_t onxi_element_size(int dtype)
{
    return dtype == ONX_STRING ? (uint32_t)sizeof(onx_str) : onx_dtype_bits(dtype) / 8;
}
/* Element `index` as a number; of integers past 2^53 the nearest double. */
double onxi_value_number(const onx_value *v, uint64_t index);
/* Elements first .. first+count-1. */
void onxi_value_numbers(const onx_value *v, uint64_t first, uint64_t count, double *out);
/* Element `index` as an integer, truncated towards zero; NaN and overflow give INT64_MAX. */
int64_t onxi_value_int64(const onx_value *v, uint64_t index);
/* Of a row-major tensor of float, at any address: no element is NaN or infinite. */
bool onxi_value_is_finite(const onx_value *v);
void onxi_value_set_number(onx_value *v, uint64_t index, double number);
/* Doubles as elements of an integer type or bool, rounded to nearest even and held in its range; NaN is its least. */
void onxi_round_to(int dtype, void *out, const double *in, uint64_t count);
/* Entry of an int32 or int64 tensor: an index, an axis, a length. A model may give any other type: what that says is
 * taken as a number, so that nothing is read past the end. */
static inline int64_t onxi_index(const onx_value *v, uint64_t i)
{
    if (v->dtype == ONX_INT64)
        return ((const int64_t *)v->data)[i];
    return v->dtype == ONX_INT32 ? ((const int32_t *)v->data)[i] : onxi_value_int64(v, i);
}
/* Makes an output whose shape depends on data what it shall be; one that is so already keeps its elements. Memory of a
 * plan or of the caller is never resized: then another shape or type is ONX_E_MISUSE, as with all functions that change
 * values. */
onx_status onxi_value_size(onx_value *v, int dtype, uint32_t rank, const int64_t *dims);
/* Is a value what its fields say? A row-major tensor has as many elements and bytes as type and dims ask for, and data
 * where there are any; the items of lists are there, and such values, too. What copies by count, rank or size relies
 * on it; structs are public, and a caller may have made or changed one. */
bool onxi_value_is_whole(const onx_value *v);
/* Whether onx_value_wrap would take memory of known type and rank: row-major, at an address that suits. */
bool onxi_memory_suits(const onx_memory *memory);
/* Bytes that a row-major tensor takes; false when that overflows. Strings count as onx_str. */
bool onxi_tensor_room(int dtype, uint64_t count, uint64_t *bytes_out);
/* Memory of a value: what `part` points to (a pointer) grows or shrinks and keeps its bytes, counted against the memory
 * limit of the context. */
onx_status onxi_value_memory(onx_ctx *cx, void *part, uint64_t from, uint64_t to);
/* The reference count goes up when the value was made with cx, else it is copied. */
onx_status onxi_value_share(onx_ctx *cx, onx_value *value, onx_value **out);
/* A value of its own that stays as it is when `from` changes. */
onx_status onxi_value_snapshot(onx_ctx *cx, const onx_value *from, onx_value **out);
/* As onx_value_assign, but an operand that was given away is moved in constant time: it then holds what `to` held. */
onx_status onxi_value_take(onx_value *to, const onx_value *from);
/* Takes item `index` out of a sequence; moves the items on its shorter side. */
void onxi_value_remove(onx_value *list, uint64_t index);
/* Two values made with the same context hold what the other one held. */
void onxi_value_swap(onx_value *a, onx_value *b);
/* A tensor becomes longer along its first axis and keeps its elements; memory grows in large steps. Elements that
 * are smaller than a byte start as zero. */
onx_status onxi_value_lengthen(onx_value *value, int64_t length);
/* The bytes of a tensor's strings move into the value, whoever owned them. */
onx_status onxi_value_own_texts(onx_value *value);

#endif
