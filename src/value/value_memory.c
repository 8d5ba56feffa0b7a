/* value_memory.c - tensors over memory of the caller: referred to in place, or copied by strides. */
#include "value/value.h"

typedef struct span { /* range of elements around the first one that the strides reach */
    uint64_t before, after;
} span;

/* Computes the range of elements that the strides reach; false on overflow. */
static bool reach(const onx_memory *m, span *out)
{
    *out = (span){ 0, 0 };
    for (uint32_t i = 0; i < m->rank; i++) {
        const int64_t stride = m->strides[i];
        const uint64_t step = stride < 0 ? (uint64_t)0 - (uint64_t)stride : (uint64_t)stride;
        uint64_t far;
        uint64_t *side = stride < 0 ? &out->before : &out->after;
        if (!onxi_mul_u64(step, (uint64_t)m->dims[i] - 1, &far) || !onxi_add_u64(*side, far, side))
            return false;
    }
    return onxi_add_u64(out->after, 1, &out->after);
}

static bool is_row_major(const onx_memory *m)
{
    int64_t step = 1;
    for (uint32_t i = m->rank; m->strides && i-- > 0;) {
        if (m->dims[i] != 1 && m->strides[i] != step)
            return false;
        step *= m->dims[i]; /* cannot overflow: the product of all dims fits */
    }
    return true;
}

static onx_status check_room(onx_ctx *cx, const onx_memory *m, uint64_t count, uint64_t needed)
{
    span touched;
    uint64_t elements;
    if (count && !is_row_major(m)) {
        const uint64_t width = onxi_element_size(m->dtype);
        if (!width)
            return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "elements of type %s share bytes and have no strides",
                             onx_dtype_name(m->dtype));
        if (!reach(m, &touched) || !onxi_add_u64(touched.before, touched.after, &elements) ||
            !onxi_mul_u64(elements, width, &needed) || needed > PTRDIFF_MAX / 4)
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE,
                             "the strides of the memory lead past the end of all memory");
    }
    if (needed > m->size)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the memory has %llu bytes, and the tensor takes %llu",
                         (unsigned long long)m->size, (unsigned long long)needed);
    return needed && !m->data ? onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the memory of %llu bytes has no address",
                                          (unsigned long long)needed)
                              : ONX_OK;
}

/* Checks type, dims and size; gives the number of elements and their size as a row-major tensor. */
static onx_status check(onx_ctx *cx, const onx_memory *m, uint64_t *count, uint64_t *bytes)
{
    if (m->dtype == ONX_STRING)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "tensors of strings cannot use memory of the caller");
    if (!onx_dtype_name(m->dtype))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%ld is no element type", (long)m->dtype);
    if (m->rank > ONX_RANK_MAX)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "rank %u exceeds the limit of %u", m->rank, ONX_RANK_MAX);
    if (m->rank && !m->dims)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the memory has %u dimensions, but dims is NULL", m->rank);
    if (!onxi_dims_count(m->rank, m->dims, count) || !onxi_tensor_room(m->dtype, *count, bytes))
        return onxi_dims_refuse(cx, m->dtype, m->rank, m->dims);
    return check_room(cx, m, *count, *bytes);
}

/* The required alignment of elements of a type. */
static uint64_t alignment(int dtype)
{
    const uint64_t width = onx_dtype_bits(dtype) / 8;
    return onx_dtype_class_of(dtype) == ONX_CLASS_COMPLEX ? width / 2 : width ? width : 1;
}

bool onxi_memory_suits(const onx_memory *m)
{
    uint64_t count;
    if (m->rank > ONX_RANK_MAX || (m->rank && !m->dims) || !onxi_dims_count(m->rank, m->dims, &count))
        return false;
    return (!count || is_row_major(m)) && (uintptr_t)m->data % alignment(m->dtype) == 0;
}

static onx_status wrap(onx_ctx *cx, const onx_memory *m, onx_value **out)
{
    uint64_t count, bytes;
    ONX_TRY(check(cx, m, &count, &bytes));
    if (count && !is_row_major(m))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE,
                         "the strides are not those of row-major elements, which alone need no copy");
    if ((uintptr_t)m->data % alignment(m->dtype))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the address of the memory is no multiple of %llu",
                         (unsigned long long)alignment(m->dtype));
    ONX_TRY(onx_value_new(cx, out));
    onx_value *v = *out;
    const onx_status status = m->rank ? onxi_value_memory(cx, &v->dims, 0, m->rank * sizeof *v->dims) : ONX_OK;
    if (status != ONX_OK)
        return status;
    v->dims_room = m->rank;
    onxi_copy_dims(v->dims, m->dims, m->rank);
    v->kind = ONX_VALUE_TENSOR;
    v->dtype = (uint8_t)m->dtype;
    v->flags = ONXI_VALUE_WRAPPED;
    v->rank = m->rank;
    v->count = count;
    v->size = bytes;
    v->data = m->data;
    v->release = m->release;
    v->owner = m->owner;
    return ONX_OK;
}

static void release_unused(onx_value *value)
{
    value->release = NULL; /* the caller still owns the memory */
    onx_value_free(value);
}

onx_status onx_value_wrap(onx_ctx *cx, const onx_memory *memory, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, memory);
    ONXI_OPTIONS(cx, onx_memory, own, memory);
    ONXI_CALL_TO_MAKE(cx, out, release_unused, wrap(cx, &own, out));
}

/* Copies element by element between row-major and strided memory. */
static void copy_strided(const onx_memory *m, char *flat, uint64_t count, bool to_memory)
{
    const uint64_t width = onxi_element_size(m->dtype);
    int64_t index[ONX_RANK_MAX] = { 0 }, at = 0;
    for (uint64_t n = 0; n < count; n++) {
        char *other = (char *)m->data + at * (int64_t)width;
        memcpy(to_memory ? other : flat + n * width, to_memory ? flat + n * width : other, width);
        for (uint32_t i = m->rank; i-- > 0;) {
            if (m->dims[i] == 1)
                continue;
            at += m->strides[i];
            if (++index[i] < m->dims[i])
                break;
            at -= m->strides[i] * m->dims[i];
            index[i] = 0;
        }
    }
}

static void copy(const onx_memory *m, void *flat, uint64_t count, uint64_t bytes, bool to_memory)
{
    if (!bytes)
        return;
    if (is_row_major(m))
        memcpy(to_memory ? m->data : flat, to_memory ? flat : m->data, bytes);
    else
        copy_strided(m, flat, count, to_memory);
}

static onx_status from_memory(onx_ctx *cx, const onx_memory *m, onx_value **out)
{
    uint64_t count, bytes;
    ONX_TRY(check(cx, m, &count, &bytes));
    ONX_TRY(onx_value_new(cx, out));
    ONX_TRY(onx_value_reset(*out, (onx_dtype)m->dtype, m->rank, m->dims));
    copy(m, (*out)->data, count, bytes, false);
    return ONX_OK;
}

onx_status onx_value_from_memory(onx_ctx *cx, const onx_memory *memory, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, memory);
    ONXI_OPTIONS(cx, onx_memory, own, memory);
    ONXI_CALL_TO_MAKE(cx, out, onx_value_free, from_memory(cx, &own, out));
}

static onx_status to_memory(onx_ctx *cx, const onx_value *value, const onx_memory *m)
{
    uint64_t count, bytes;
    ONX_TRY(check(cx, m, &count, &bytes));
    if (value->kind != ONX_VALUE_TENSOR || value->dtype != m->dtype || value->rank != m->rank ||
        !onxi_same_dims(value->dims, m->dims, m->rank) || !onxi_value_is_whole(value))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the memory is for a tensor of another type or shape");
    copy(m, value->data, count, bytes, true);
    return ONX_OK;
}

onx_status onx_value_to_memory(onx_ctx *cx, const onx_value *value, const onx_memory *memory)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, value);
    ONXI_NEED(cx, memory);
    ONXI_OPTIONS(cx, onx_memory, own, memory);
    ONXI_CALL(cx, to_memory(cx, value, &own));
}
