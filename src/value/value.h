/* value.h - internals of values: memory, access to elements as numbers, types as messages. */
#ifndef ONXI_VALUE_H
#define ONXI_VALUE_H

#include <onx/tensor.h>
#include <onx/value.h>

#include "base/base.h"
#include "ir/ir.h"

enum {
    ONXI_VALUE_BORROWED = 1, /* data and dims belong to another owner */
    ONXI_VALUE_OUTPUT = 4,   /* an output of the next run */
    ONXI_VALUE_WRAPPED = 8,  /* data belongs to the caller, dims to the value */
    ONXI_VALUE_GIVEN = 2     /* an operand that is not used afterwards: onxi_value_take may empty it */
};

/* The product of the dims; false when a dim is negative or the product overflows. */
bool onxi_dims_count(uint32_t rank, const int64_t *dims, uint64_t *count_out);
/* Records ONX_E_LIMIT with a message that lists the dims. */
onx_status onxi_dims_refuse(onx_ctx *cx, int dtype, uint32_t rank, const int64_t *dims);
/* Bytes of an element; 0 where several elements share a byte. */
static inline uint32_t onxi_element_size(int dtype)
{
    return dtype == ONX_STRING ? (uint32_t)sizeof(onx_str) : onx_dtype_bits(dtype) / 8;
}
/* Element `index` as a double; 64-bit integers beyond 2^53 are rounded. */
double onxi_value_number(const onx_value *v, uint64_t index);
/* The same for elements first .. first+count-1. */
void onxi_value_numbers(const onx_value *v, uint64_t first, uint64_t count, double *out);
/* Element `index` as an integer, truncated towards zero; NaN and overflow give INT64_MAX. */
int64_t onxi_value_int64(const onx_value *v, uint64_t index);
/* For a row-major float tensor at any address: is no element NaN or infinite? */
bool onxi_value_is_finite(const onx_value *v);
void onxi_value_set_number(onx_value *v, uint64_t index, double number);
/* Converts doubles to an integer type or bool: rounds to nearest even and saturates; NaN gives the least value. */
void onxi_round_to(int dtype, void *out, const double *in, uint64_t count);
/* An entry of an int32 or int64 tensor: an index, an axis, a length. A model may give any other type; its elements are
 * then converted to int64, so that nothing is read past the end. */
static inline int64_t onxi_index(const onx_value *v, uint64_t i)
{
    if (v->dtype == ONX_INT64)
        return ((const int64_t *)v->data)[i];
    return v->dtype == ONX_INT32 ? ((const int32_t *)v->data)[i] : onxi_value_int64(v, i);
}
/* Gives a type and dims to an output whose shape depends on data; if it has them already, it keeps its elements. Memory
 * of a plan or of the caller is never resized: another shape or type is then ONX_E_MISUSE, as for all functions that
 * change values. */
onx_status onxi_value_size(onx_value *v, int dtype, uint32_t rank, const int64_t *dims);
/* Are the fields of a value consistent? The element count and size of a row-major tensor match its type and dims, and
 * there is data unless it is empty; items of lists exist and are consistent, too. Code that copies by count, rank or
 * size relies on it: structs are public, so a caller may have made or changed one. */
bool onxi_value_is_whole(const onx_value *v);
/* Would onx_value_wrap accept the memory, given a valid type and rank? It must be row-major and aligned. */
bool onxi_memory_suits(const onx_memory *memory);
/* Bytes of a row-major tensor; false on overflow. A string counts as an onx_str. */
bool onxi_tensor_room(int dtype, uint64_t count, uint64_t *bytes_out);
/* Resizes memory of a value and keeps its contents. `part` is the address of the pointer to the memory. The size counts
 * against the memory limit of the context. */
onx_status onxi_value_memory(onx_ctx *cx, void *part, uint64_t from, uint64_t to);
/* Counts a reference if the value was made with `cx`; otherwise copies it. */
onx_status onxi_value_share(onx_ctx *cx, onx_value *value, onx_value **out);
/* onx_value_assign that can end between parts of large values: `stops` is asked, and the status is then
 * ONX_E_CANCELLED, without a diagnostic. `end` NULL: it goes to the end. */
typedef struct onxi_value_end {
    bool (*stops)(const void *user);
    const void *user;
} onxi_value_end;
onx_status onxi_value_assign_until(onx_value *to, const onx_value *from, const onxi_value_end *end);
/* A separate value that does not change when `from` changes. */
onx_status onxi_value_snapshot(onx_ctx *cx, const onx_value *from, onx_value **out);
/* As onx_value_assign, but an operand that was given away is moved in constant time: its contents and those of `to` are
 * swapped. */
onx_status onxi_value_take(onx_value *to, const onx_value *from);
/* Removes item `index` of a sequence by moving the items on its shorter side. */
void onxi_value_remove(onx_value *list, uint64_t index);
/* Swaps the contents of two values of the same context. */
void onxi_value_swap(onx_value *a, onx_value *b);
/* Lengthens a tensor along its first axis and keeps its elements. Memory grows in large steps. New elements of less
 * than a byte are zero. */
onx_status onxi_value_lengthen(onx_value *value, int64_t length);
/* Copies the bytes of all strings to memory that the value owns. */
onx_status onxi_value_own_texts(onx_value *value);

#endif
