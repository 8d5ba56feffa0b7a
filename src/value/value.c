/* value.c - run-time values: creating, resizing, sharing and freeing them. */
#include "value/value.h"

#include <math.h>
#include <stdio.h>

bool onxi_dims_count(uint32_t rank, const int64_t *dims, uint64_t *count_out)
{
    uint64_t count = 1;
    bool overflow = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        if (dims[i] == 0) {
            *count_out = 0;
            for (uint32_t j = i + 1; j < rank; j++)
                if (dims[j] < 0)
                    return false;
            return true;
        }
        overflow |= !onxi_mul_u64(count, (uint64_t)dims[i], &count);
    }
    for (uint32_t i = 0; overflow && i < rank; i++) /* a later dim of 0 makes the product 0 after all */
        if (dims[i] == 0) {
            count = 0;
            overflow = false;
        }
    *count_out = count;
    return !overflow;
}

bool onxi_tensor_room(int dtype, uint64_t count, uint64_t *bytes_out)
{
    if (dtype == ONX_STRING)
        return onxi_mul_u64(count, sizeof(onx_str), bytes_out);
    return onx_dtype_size(dtype, count, bytes_out);
}

enum { NESTED_MAX = 100 }; /* nesting of lists */

static bool is_whole(const onx_value *v, unsigned depth)
{
    uint64_t count, size;
    if (v->kind == ONX_VALUE_TENSOR)
        return !v->layout && v->rank <= ONX_RANK_MAX && (v->dims || !v->rank) &&
               onxi_dims_count(v->rank, v->dims, &count) && onxi_tensor_room(v->dtype, count, &size) &&
               count == v->count && size == v->size && (v->data || !size);
    if (v->kind == ONX_VALUE_MAP && v->count && !v->data)
        return false;
    for (uint64_t i = 0; v->kind != ONX_VALUE_NONE && i < v->count; i++)
        if (depth >= NESTED_MAX || !v->items || !v->items[i] || !is_whole(v->items[i], depth + 1))
            return false;
    return true;
}

bool onxi_value_is_whole(const onx_value *v)
{
    return is_whole(v, 0);
}

onx_status onxi_value_memory(onx_ctx *cx, void *part, uint64_t from, uint64_t to)
{
    void *now;
    memcpy(&now, part, sizeof now);
    if (to > from && !onxi_ctx_hold(cx, to - from))
        return ONX_E_LIMIT;
    void *moved = to || now ? onxi_resize(cx, now, from, to) : NULL;
    if (to && !moved) {
        onxi_ctx_let_go(cx, to > from ? to - from : 0);
        return ONX_E_MEMORY;
    }
    onxi_ctx_let_go(cx, to < from ? from - to : 0);
    memcpy(part, &moved, sizeof moved);
    return ONX_OK;
}

static void release(onx_ctx *cx, void *part, uint64_t size)
{
    onxi_value_memory(cx, &part, size, 0);
}

onx_status onx_value_new(onx_ctx *cx, onx_value **out)
{
    onx_value *v = NULL;
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONX_TRY(onxi_value_memory(cx, &v, 0, sizeof *v));
    memset(v, 0, sizeof *v);
    v->cx = cx;
    v->refs = 1;
    *out = v;
    return ONX_OK;
}

onx_status onx_value_new_tensor(onx_ctx *cx, onx_dtype dtype, uint32_t rank, const int64_t *dims, onx_value **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, dims || !rank);
    ONX_TRY(onx_value_new(cx, out));
    onx_status status = onx_value_reset(*out, dtype, rank, dims);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
        return status;
    }
    if ((*out)->size)
        memset((*out)->data, 0, (*out)->size);
    return ONX_OK;
}

/* Releases the items. Nested lists are freed through a chain of `items` pointers instead of recursion, so that deep
 * nesting needs no stack. */
static void drop_items(onx_value *v, onx_value **pending)
{
    uint64_t count = v->kind == ONX_VALUE_TENSOR || v->kind == ONX_VALUE_NONE ? 0 : v->count;
    for (uint64_t i = 0; i < count; i++) {
        onx_value *item = v->items[i];
        if (item && --item->refs == 0) {
            /* the chain is linked through `layout`, which a value being freed does not need */
            item->layout = (const struct onx_layout *)(const void *)*pending;
            *pending = item;
        }
    }
    if (count)
        v->count = 0;
}

static void release_parts(onx_value *v)
{
    release(v->cx, v->items ? v->items - v->items_head : NULL, v->items_room * sizeof *v->items);
    if (v->flags & ONXI_VALUE_WRAPPED && v->release)
        v->release(v->owner);
    if (!(v->flags & ONXI_VALUE_BORROWED)) {
        release(v->cx, v->flags & ONXI_VALUE_WRAPPED ? NULL : v->data, v->data_room);
        release(v->cx, v->dims, v->dims_room * sizeof *v->dims);
    }
    release(v->cx, v->text, v->text_room);
}

void onx_value_free(onx_value *value)
{
    if (!value || --value->refs != 0)
        return;
    onx_value *pending = value;
    value->layout = NULL;
    while (pending) {
        onx_value *v = pending;
        pending = (onx_value *)(uintptr_t)(const void *)v->layout;
        drop_items(v, &pending);
        release_parts(v);
        release(v->cx, v, sizeof *v);
    }
}

static void clear_items(onx_value *v)
{
    onx_value *pending = NULL;
    drop_items(v, &pending);
    while (pending) {
        onx_value *item = pending;
        pending = (onx_value *)(uintptr_t)(const void *)item->layout;
        drop_items(item, &pending);
        release_parts(item);
        release(item->cx, item, sizeof *item);
    }
}

/* Does the memory belong to another owner (a plan, a constant, the caller)? Such memory is never resized here. */
static bool is_fixed(const onx_value *v)
{
    return !v->cx || v->flags & (ONXI_VALUE_BORROWED | ONXI_VALUE_WRAPPED);
}

static bool is_tensor_of(const onx_value *v, int dtype, uint32_t rank, const int64_t *dims)
{
    return v->kind == ONX_VALUE_TENSOR && v->dtype == dtype && v->rank == rank && onxi_same_dims(v->dims, dims, rank);
}

static onx_status reserve(onx_value *v, uint64_t bytes)
{
    if (bytes > onx_ctx_limits(v->cx).memory || bytes > SIZE_MAX / 2)
        return onxi_fail(v->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "a tensor of %llu bytes exceeds the memory limit of %llu bytes", (unsigned long long)bytes,
                         (unsigned long long)onx_ctx_limits(v->cx).memory);
    if (bytes <= v->data_room)
        return ONX_OK;
    release(v->cx, v->data, v->data_room);
    v->data_room = 0;
    v->data = NULL;
    ONX_TRY(onxi_value_memory(v->cx, &v->data, 0, bytes));
    v->data_room = bytes;
    return ONX_OK;
}

/* Provides room for `bytes` bytes and keeps the contents. The room at least doubles, as by ONXI_GROW, but counts
 * against the memory limit. */
static onx_status grow_data(onx_value *v, uint64_t bytes)
{
    if (bytes <= v->data_room)
        return ONX_OK;
    const uint64_t room = bytes / 2 > v->data_room ? bytes : 2 * v->data_room;
    ONX_TRY(onxi_value_memory(v->cx, &v->data, v->data_room, room < bytes ? bytes : room));
    v->data_room = room < bytes ? bytes : room;
    return ONX_OK;
}

onx_status onxi_dims_refuse(onx_ctx *cx, int dtype, uint32_t rank, const int64_t *dims)
{
    enum { EACH = 21 }; /* 20 digits or a sign, and a comma */
    char text[ONX_RANK_MAX * EACH + 1] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? "," : "", (long long)dims[i]);
    return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "a tensor cannot be %s[%s]", onx_dtype_name(dtype), text);
}

onx_status onx_value_reset(onx_value *value, onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    ONXI_NEED(NULL, value);
    ONXI_NEED(value->cx, dims || !rank);
    uint64_t count, bytes;
    if (is_fixed(value))
        return is_tensor_of(value, (int)dtype, rank, dims) ? ONX_OK : ONX_E_MISUSE;
    if (!onx_dtype_name(dtype))
        return onxi_fail(value->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%ld is no element type", (long)dtype);
    if (rank > ONX_RANK_MAX)
        return onxi_fail(value->cx, ONX_E_LIMIT, ONXI_NOWHERE, "rank %u exceeds the limit of %u", rank, ONX_RANK_MAX);
    if (!onxi_dims_count(rank, dims, &count) || !onxi_tensor_room((int)dtype, count, &bytes))
        return onxi_dims_refuse(value->cx, (int)dtype, rank, dims);
    int64_t keep[ONX_RANK_MAX]; /* `dims` may point to the value's own dims */
    onxi_copy_dims(keep, dims, rank);
    clear_items(value);
    value->kind = ONX_VALUE_NONE;
    value->layout = NULL;
    if (rank > value->dims_room) {
        release(value->cx, value->dims, value->dims_room * sizeof *value->dims);
        value->dims_room = 0;
        value->dims = NULL;
        ONX_TRY(onxi_value_memory(value->cx, &value->dims, 0, rank * sizeof *value->dims));
        value->dims_room = rank;
    }
    onxi_copy_dims(value->dims, keep, rank);
    /* Empty tensors have an address, too, because kernels add offsets to it. */
    ONX_TRY(reserve(value, bytes ? bytes : 1));
    if (dtype == ONX_STRING && bytes)
        memset(value->data, 0, bytes);
    value->text_spare = value->text_room; /* no string uses the text memory any more */
    value->kind = ONX_VALUE_TENSOR;
    value->dtype = (uint8_t)dtype;
    value->rank = rank;
    value->count = count;
    value->size = bytes;
    return ONX_OK;
}

onx_status onxi_value_size(onx_value *v, int dtype, uint32_t rank, const int64_t *dims)
{
    return is_tensor_of(v, dtype, rank, dims) ? ONX_OK : onx_value_reset(v, (onx_dtype)dtype, rank, dims);
}

double onxi_value_number(const onx_value *v, uint64_t index)
{
    double out = 0;
    const unsigned bits = onx_dtype_bits(v->dtype);
    const void *at = (const uint8_t *)v->data + index * (bits / 8);
    uint8_t low;
    if (bits && bits < 8) {
        low = (uint8_t)onxi_packed_get(v->data, bits, index);
        at = &low;
    }
    onx_convert(ONX_DOUBLE, &out, (onx_dtype)v->dtype, at, 1, true);
    return out;
}

bool onxi_value_is_finite(const onx_value *v)
{
    const char *x = v->data;
    const uint32_t exponent = 0x7f800000; /* exponent bits of infinities and NaN */
    uint32_t found = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i * sizeof bits, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return !found;
}

int64_t onxi_value_int64(const onx_value *v, uint64_t index)
{
    double x = onxi_value_number(v, index);
    return x > -9e18 && x < 9e18 ? (int64_t)x : x < 0 ? INT64_MIN : INT64_MAX;
}

void onxi_value_numbers(const onx_value *v, uint64_t first, uint64_t count, double *out)
{
    uint64_t bit = first * onx_dtype_bits(v->dtype);
    if (bit % 8 == 0)
        onx_convert(ONX_DOUBLE, out, (onx_dtype)v->dtype, (const char *)v->data + bit / 8, count, true);
    else
        for (uint64_t i = 0; i < count; i++)
            out[i] = onxi_value_number(v, first + i);
}

void onxi_value_set_number(onx_value *v, uint64_t index, double number)
{
    onx_convert((onx_dtype)v->dtype, (char *)v->data + index * (onx_dtype_bits(v->dtype) / 8), ONX_DOUBLE, &number, 1,
                true);
}

onx_status onxi_value_lengthen(onx_value *value, int64_t length)
{
    uint64_t count, bytes, before = value->size;
    if (is_fixed(value))
        return ONX_E_MISUSE;
    int64_t was = value->dims[0];
    value->dims[0] = length;
    bool possible = onxi_dims_count(value->rank, value->dims, &count) && onxi_tensor_room(value->dtype, count, &bytes);
    uint64_t limit = onx_ctx_limits(value->cx).memory;
    if (!possible || bytes > limit || bytes > SIZE_MAX / 4) {
        value->dims[0] = was;
        return onxi_fail(value->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "a tensor of %lld parts of %llu bytes exceeds the memory limit of %llu bytes",
                         (long long)length, (unsigned long long)(was > 0 ? before / (uint64_t)was : 0),
                         (unsigned long long)limit);
    }
    ONX_TRY(grow_data(value, bytes));
    if (bytes > before && (value->dtype == ONX_STRING || onx_dtype_bits(value->dtype) < 8))
        memset((char *)value->data + before, 0, bytes - before);
    value->count = count;
    value->size = bytes;
    return ONX_OK;
}

void onxi_value_swap(onx_value *a, onx_value *b)
{
    uint32_t a_refs = a->refs, b_refs = b->refs;
    onx_value was = *a;
    *a = *b;
    *b = was;
    a->refs = a_refs;
    b->refs = b_refs;
}

onx_status onxi_value_take(onx_value *to, const onx_value *from)
{
    onx_value *given = (onx_value *)(uintptr_t)(const void *)from; /* given away, so it may be changed */
    if (!(from->flags & ONXI_VALUE_GIVEN) || to->flags & ONXI_VALUE_BORROWED || to->cx != from->cx)
        return onx_value_assign(to, from);
    onxi_value_swap(to, given);
    to->flags &= (uint16_t)~ONXI_VALUE_GIVEN;
    return ONX_OK;
}

enum { ROUNDED = 256 }; /* elements per chunk; a multiple of 8, so that chunks of packed types begin at a byte */

void onxi_round_to(int dtype, void *out, const double *in, uint64_t count)
{
    unsigned bits = onx_dtype_bits(dtype);
    bool is_signed = onx_dtype_class_of(dtype) == ONX_CLASS_SIGNED, is_bool = dtype == ONX_BOOL;
    double high = is_bool ? 1 : ldexp(1, (int)bits - is_signed) - 1, low = is_signed ? -high - 1 : 0;
    if (bits == 64) /* the greatest double that is an integer of the type */
        high = ldexp(1, 64 - is_signed) - (is_signed ? 1024 : 2048);
    for (uint64_t start = 0; start < count; start += ROUNDED) {
        double held[ROUNDED];
        uint64_t n = count - start < ROUNDED ? count - start : ROUNDED;
        for (uint64_t i = 0; i < n; i++) {
            double v = rint(in[start + i]);
            held[i] = v > low ? v < high ? v : high : low;
        }
        onx_convert((onx_dtype)dtype, (char *)out + start * bits / 8, ONX_DOUBLE, held, n, true);
    }
}

static bool is_list(onx_value_kind kind)
{
    return kind == ONX_VALUE_SEQUENCE || kind == ONX_VALUE_OPTIONAL || kind == ONX_VALUE_MAP;
}

onx_status onx_value_reset_list(onx_value *value, onx_value_kind kind, onx_dtype dtype)
{
    ONXI_NEED(NULL, value);
    ONXI_NEED(value->cx, kind == ONX_VALUE_NONE || is_list(kind));
    ONXI_NEED(value->cx, dtype == ONX_UNDEFINED || onx_dtype_name(dtype));
    if (is_fixed(value))
        return ONX_E_MISUSE;
    clear_items(value);
    value->kind = (uint8_t)kind;
    value->dtype = (uint8_t)dtype;
    value->rank = 0;
    value->count = 0;
    value->size = 0;
    value->layout = NULL;
    value->text_spare = value->text_room;
    return ONX_OK;
}

onx_status onxi_value_share(onx_ctx *cx, onx_value *value, onx_value **out)
{
    if (value->cx == cx && !(value->flags & ONXI_VALUE_BORROWED) && value->refs > 0 && value->refs < UINT32_MAX) {
        value->refs++;
        *out = value;
        return ONX_OK;
    }
    return onxi_value_snapshot(cx, value, out);
}

/* Makes room for a key in the keys of a map, at `index`. */
static onx_status grow_keys(onx_value *value, uint64_t index)
{
    uint64_t width = value->dtype == ONX_STRING ? sizeof(onx_str) : sizeof(int64_t);
    uint64_t need = (value->count + 1) * width;
    ONX_TRY(grow_data(value, need));
    char *at = (char *)value->data + index * width;
    memmove(at + width, at, (value->count - index) * width);
    memset(at, 0, width);
    value->size = need;
    return ONX_OK;
}

/* Makes room for an item at the front or at the end: if many entries are free, they are divided between both ends; else
 * the list doubles. Either takes linear time, but only once in a number of insertions that is proportional to the
 * length. */
static onx_status make_room(onx_value *v, bool front)
{
    onx_value **start = v->items ? v->items - v->items_head : NULL;
    uint64_t room = v->items_room, head = v->items_head;
    if (room < 2 * v->count + 4) {
        room = 2 * v->count + 4;
        if (room > SIZE_MAX / sizeof *start)
            return ONX_E_LIMIT;
        ONX_TRY(onxi_value_memory(v->cx, &start, v->items_room * sizeof *start, room * sizeof *start));
        v->items_room = room;
        head = front ? (room - v->count) / 2 : head;
    } else {
        head = (room - v->count) / 2;
    }
    if (v->count)
        memmove(start + head, start + v->items_head, v->count * sizeof *start);
    v->items = start + head;
    v->items_head = head;
    return ONX_OK;
}

/* Makes an empty entry at `index` by moving the items on its shorter side. */
static onx_status open_gap(onx_value *v, uint64_t index)
{
    bool front = index < v->count - index;
    if (front ? !v->items_head : v->items_head + v->count == v->items_room)
        ONX_TRY(make_room(v, front));
    if (front) {
        v->items--;
        v->items_head--;
        memmove(v->items, v->items + 1, index * sizeof *v->items);
    } else {
        memmove(&v->items[index + 1], &v->items[index], (v->count - index) * sizeof *v->items);
    }
    v->items[index] = NULL;
    v->count++;
    return ONX_OK;
}

void onxi_value_remove(onx_value *list, uint64_t index)
{
    onx_value_free(list->items[index]);
    if (index < list->count / 2) {
        memmove(list->items + 1, list->items, index * sizeof *list->items);
        list->items++;
        list->items_head++;
    } else {
        memmove(&list->items[index], &list->items[index + 1], (list->count - index - 1) * sizeof *list->items);
    }
    list->count--;
}

/* Is `inner` an item of the list, or of a list in it? Lists that are nested too deeply to tell count as containing
 * it. */
static bool contains(const onx_value *list, const onx_value *inner, unsigned depth)
{
    if (!is_list((onx_value_kind)list->kind))
        return false;
    if (depth > ONX_DEPTH_MAX)
        return true;
    for (uint64_t i = 0; i < list->count; i++)
        if (list->items[i] == inner || contains(list->items[i], inner, depth + 1))
            return true;
    return false;
}

onx_status onx_value_insert(onx_value *value, uint64_t index, onx_value *item)
{
    ONXI_NEED(NULL, value);
    ONXI_NEED(value->cx, item);
    if (is_fixed(value))
        return ONX_E_MISUSE;
    if (!is_list((onx_value_kind)value->kind))
        return onxi_fail(value->cx, ONX_E_MISUSE, ONXI_NOWHERE, "only sequences, optional values and maps hold items");
    if (index > value->count || (value->kind == ONX_VALUE_OPTIONAL && value->count))
        return onxi_fail(value->cx, ONX_E_MISUSE, ONXI_NOWHERE, "no item can be put at %llu of %llu",
                         (unsigned long long)index, (unsigned long long)value->count);
    /* Only a value with other references can be in a list. */
    if (item == value || (value->refs > 1 && contains(item, value, 0)))
        return onxi_fail(value->cx, ONX_E_MISUSE, ONXI_NOWHERE, "a value cannot be put into itself");
    onx_value *own;
    ONX_TRY(onxi_value_share(value->cx, item, &own));
    onx_status status = value->kind == ONX_VALUE_MAP ? grow_keys(value, index) : ONX_OK;
    if (status == ONX_OK)
        status = open_gap(value, index);
    if (status != ONX_OK) {
        onx_value_free(own);
        return status;
    }
    value->items[index] = own;
    return ONX_OK;
}

/* Copies the strings of `from` to memory that `to` owns; `spare` further bytes can be added later. */
/* Asked before part `i` of a copy. */
static bool stops_at(const onxi_value_end *end, uint64_t i)
{
    enum { PARTS = 1 << 9 };
    return end && i % PARTS == 0 && end->stops(end->user);
}

static onx_status copy_texts(onx_value *to, const onx_str *from, uint64_t count, uint64_t spare,
                             const onxi_value_end *end)
{
    uint64_t total = spare;
    for (uint64_t i = 0; i < count; i++)
        if (!onxi_add_u64(total, from[i].len, &total))
            return onxi_no_memory(to->cx);
    if (total > onx_ctx_limits(to->cx).memory)
        return onxi_fail(to->cx, ONX_E_LIMIT, ONXI_NOWHERE, "strings of %llu bytes exceed the memory limit",
                         (unsigned long long)total);
    char *text = NULL;
    ONX_TRY(onxi_value_memory(to->cx, &text, 0, total));
    onx_str *strings = to->data;
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (stops_at(end, i)) {
            release(to->cx, text, total);
            return ONX_E_CANCELLED;
        }
        if (from[i].len)
            memcpy(text + at, from[i].ptr, from[i].len);
        strings[i] = onx_str_make(from[i].len ? text + at : NULL, from[i].len);
        at += from[i].len;
    }
    release(to->cx, to->text, to->text_room);
    to->text = text;
    to->text_room = total;
    to->text_spare = spare;
    return ONX_OK;
}

/* Makes room for `more` bytes of text and for as much again as there is, counting at least one byte per string. So
 * copying takes amortized constant time per byte. */
static onx_status grow_texts(onx_value *value, uint64_t more)
{
    const onx_str *strings = value->data;
    uint64_t live = value->count, spare;
    for (uint64_t i = 0; i < value->count; i++)
        if (!onxi_add_u64(live, strings[i].len, &live))
            return onxi_no_memory(value->cx);
    if (!onxi_add_u64(live, more, &spare) ||
        spare > onx_ctx_limits(value->cx).memory / 4) /* near the limit, only what is needed */
        spare = more;
    return copy_texts(value, strings, value->count, spare, NULL);
}

onx_status onxi_value_own_texts(onx_value *value)
{
    const bool strings = value->kind == ONX_VALUE_TENSOR || value->kind == ONX_VALUE_MAP;
    return value->dtype == ONX_STRING && strings ? copy_texts(value, value->data, value->count, 0, NULL) : ONX_OK;
}

onx_status onxi_value_snapshot(onx_ctx *cx, const onx_value *from, onx_value **out)
{
    ONX_TRY(onx_value_new(cx, out));
    onx_status status = onx_value_assign(*out, from);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}

onx_status onx_value_set_text(onx_value *value, uint64_t index, onx_str text)
{
    ONXI_NEED(NULL, value);
    ONXI_NEED(value->cx, text.ptr || !text.len);
    if (is_fixed(value))
        return ONX_E_MISUSE;
    if (value->dtype != ONX_STRING || index >= value->count ||
        (value->kind != ONX_VALUE_TENSOR && value->kind != ONX_VALUE_MAP))
        return onxi_fail(value->cx, ONX_E_MISUSE, ONXI_NOWHERE, "there is no string at %llu",
                         (unsigned long long)index);
    onx_str *strings = value->data;
    if (text.len > value->text_spare) {
        const onx_str old = strings[index];
        strings[index] = text; /* it may point into the text memory, so it is moved along with the other strings */
        const onx_status status = grow_texts(value, text.len);
        if (status != ONX_OK)
            strings[index] = old;
        return status;
    }
    char *to = text.len ? value->text + (value->text_room - value->text_spare) : NULL;
    if (text.len)
        memcpy(to, text.ptr, text.len);
    value->text_spare -= text.len;
    strings[index] = onx_str_make(to, text.len);
    return ONX_OK;
}

/* Values over memory of the caller may overlap. */
static onx_status copy_bytes(char *to, const char *from, uint64_t size, const onxi_value_end *end)
{
    enum { PART = 1 << 20 };
    const bool overlap = (uintptr_t)to < (uintptr_t)from + size && (uintptr_t)from < (uintptr_t)to + size;
    const uint64_t part = !end || overlap ? size : PART;
    for (uint64_t at = 0, n; at < size; at += n) {
        if (at && end->stops(end->user))
            return ONX_E_CANCELLED;
        n = size - at < part ? size - at : part;
        memmove(to + at, from + at, (size_t)n);
    }
    return ONX_OK;
}

static onx_status assign_flat(onx_value *to, const onx_value *from, const onxi_value_end *end)
{
    if (from->kind == ONX_VALUE_TENSOR) {
        if (!onxi_value_is_whole(from))
            return onxi_fail(to->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                             "the elements of the tensor do not fit its dimensions");
        ONX_TRY(onx_value_reset(to, (onx_dtype)from->dtype, from->rank, from->dims));
        if (from->dtype == ONX_STRING)
            return copy_texts(to, from->data, from->count, 0, end);
        return copy_bytes(to->data, from->data, to->size, end);
    }
    return onx_value_reset_list(to, (onx_value_kind)from->kind, (onx_dtype)from->dtype);
}

/* An item of another context is copied as a whole by onx_value_insert, and may be large. */
static onx_status insert_until(onx_value *to, uint64_t index, onx_value *item, const onxi_value_end *end)
{
    onx_value *copy;
    if (!end || item->cx == to->cx)
        return onx_value_insert(to, index, item);
    ONX_TRY(onx_value_new(to->cx, &copy));
    onx_status status = onxi_value_assign_until(copy, item, end);
    if (status == ONX_OK)
        status = onx_value_insert(to, index, copy);
    onx_value_free(copy);
    return status;
}

static onx_status assign_any(onx_value *to, const onx_value *from, const onxi_value_end *end)
{
    ONX_TRY(assign_flat(to, from, end));
    if (from->kind == ONX_VALUE_TENSOR || from->kind == ONX_VALUE_NONE)
        return ONX_OK;
    for (uint64_t i = 0; i < from->count; i++) {
        if (stops_at(end, i))
            return ONX_E_CANCELLED;
        ONX_TRY(insert_until(to, i, from->items[i], end));
    }
    if (from->kind == ONX_VALUE_MAP && from->count) {
        if (from->dtype == ONX_STRING)
            return copy_texts(to, from->data, from->count, 0, end);
        memcpy(to->data, from->data, from->count * sizeof(int64_t));
    }
    return ONX_OK;
}

onx_status onx_value_assign(onx_value *to, const onx_value *from)
{
    ONXI_NEED(NULL, to);
    ONXI_NEED(to->cx, from);
    return onxi_value_assign_until(to, from, NULL);
}

onx_status onxi_value_assign_until(onx_value *to, const onx_value *from, const onxi_value_end *end)
{
    if (to == from)
        return ONX_OK;
    if (!is_list((onx_value_kind)to->kind) || !to->count)
        return assign_any(to, from, end);
    onx_value *made; /* if `from` is an item of the list `to`, it would be freed with the list */
    ONX_TRY(onx_value_new(to->cx, &made));
    onx_status status = assign_any(made, from, end);
    if (status == ONX_OK)
        onxi_value_swap(to, made);
    onx_value_free(made);
    return status;
}
