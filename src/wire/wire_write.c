/* wire_write.c - encodes messages in canonical form, from back to front. */
#include "wire/wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are written as they lie in memory");

enum {
    REFER_MIN = 4096, /* payloads of at least this size are referenced */
    VARINT_MAX = 10,
    TAG_AND_LENGTH = 20, /* maximum size of a tag and a length */
    SHORT_MAX = 64
};

/* Not inlined, to keep rare code out of the hot path. */
#define COLD      __attribute__((cold, noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)

enum { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_I32 = 5 };

/* The functions below take the front of the encoded bytes, `p`, and return the new front; NULL on failure. */

COLD static char *fail(onxi_writer *w, onx_status status)
{
    w->failure = status;
    return NULL;
}

/* The number of bytes from p on, including referenced payloads. Growing moves the buffer, but this number stays the
 * same. */
static inline uint64_t written(const onxi_writer *w, const char *p)
{
    return w->top - (uint64_t)(uintptr_t)p;
}

COLD static char *grow(onxi_writer *w, char *p, size_t size)
{
    size_t used = (size_t)(w->end - p), want, room = w->base ? (size_t)(w->end - w->base) : 256;
    if (__builtin_add_overflow(used, size, &want))
        return fail(w, onxi_no_memory(w->cx));
    while (room < want)
        if (__builtin_mul_overflow(room, (size_t)2, &room))
            room = want;
    char *base = onxi_buffer_take(w->cx, room, &room);
    if (!base)
        return fail(w, ONX_E_MEMORY);
    if (used)
        memcpy(base + (room - used), p, used);
    onxi_writer_free_buffer(w);
    w->base = base;
    w->end = base + room;
    w->top = (uint64_t)(uintptr_t)w->end + w->referred;
    return w->end - used;
}

/* Reserves room for `size` more bytes before p. */
static inline char *reserve(onxi_writer *w, char *p, size_t size)
{
    return LIKELY(size <= (size_t)(p - w->base)) ? p : grow(w, p, size);
}

/* The put_* functions need reserved room. */
static inline char *put_bytes(char *p, const void *bytes, size_t size)
{
    p -= size;
    if (size)
        memcpy(p, bytes, size);
    return p;
}

/* Names and operator types are short and of varying length, so a loop or a call would often be mispredicted: two or
 * four overlapping words of fixed size serve a whole range of lengths. */
static inline char *put_short(char *p, const char *bytes, size_t size)
{
    char *to = p - size;
    if (size >= 16 && size <= SHORT_MAX) {
        size_t last = size - 16, second = last < 16 ? last : 16, third = last - second;
        memcpy(to, bytes, 16);
        memcpy(to + second, bytes + second, 16);
        memcpy(to + third, bytes + third, 16);
        memcpy(to + last, bytes + last, 16);
    } else if (size >= 8 && size <= 16) {
        memcpy(to, bytes, 8);
        memcpy(to + size - 8, bytes + size - 8, 8);
    } else if (size >= 4 && size <= 8) {
        memcpy(to, bytes, 4);
        memcpy(to + size - 4, bytes + size - 4, 4);
    } else if (size) {
        memcpy(to, bytes, size);
    }
    return to;
}

static inline char *put_varint(char *p, uint64_t v)
{
    if (v < 0x80) {
        *--p = (char)v;
        return p;
    }
    char buf[VARINT_MAX];
    size_t n = 0;
    while (v >= 0x80) {
        buf[n++] = (char)(v | 0x80);
        v >>= 7;
    }
    buf[n++] = (char)v;
    return put_bytes(p, buf, n);
}

static inline char *put_tag(char *p, const onxi_field *field, uint32_t wire_type)
{
    return put_varint(p, (uint64_t)field->number << 3 | wire_type);
}

static inline char *put_short_head(char *p, const onxi_field *field, uint64_t len)
{
    uint16_t head = (uint16_t)(len << 8 | field->tag);
    p -= 2;
    memcpy(p, &head, 2);
    return p;
}

/* Writes the tag and length of the bytes that follow p. */
static inline char *put_len(char *p, const onxi_field *field, uint64_t len)
{
    if (LIKELY(len < 0x80 && field->tag))
        return put_short_head(p, field, len);
    return put_tag(put_varint(p, len), field, WIRE_LEN);
}

static char *put_payload(onxi_writer *w, char *p, onx_str s)
{
    if (!w->refer || s.len < REFER_MIN) {
        p = reserve(w, p, s.len);
        return p ? put_bytes(p, s.ptr, s.len) : NULL;
    }
    if (!ONXI_GROW(w->cx, w->refs, w->ref_room, w->ref_count + 1))
        return fail(w, ONX_E_MEMORY);
    w->refs[w->ref_count++] = (onxi_wire_ref){ (size_t)(w->end - p), s };
    w->referred += s.len;
    w->top += s.len;
    return p;
}

/* Writes the tag and length of the bytes written since `start`. */
static inline char *put_head(onxi_writer *w, char *p, const onxi_field *field, uint64_t start)
{
    p = reserve(w, p, TAG_AND_LENGTH);
    return p ? put_len(p, field, written(w, p) - start) : NULL;
}

COLD static char *write_long_string(onxi_writer *w, char *p, const onxi_field *field, onx_str s)
{
    uint64_t start = written(w, p);
    p = put_payload(w, p, s);
    return p ? put_head(w, p, field, start) : NULL;
}

static inline char *write_string(onxi_writer *w, char *p, const onxi_field *field, onx_bytes bytes)
{
    size_t len = bytes.bits >> 48;
    if (!LIKELY(len <= SHORT_MAX && field->tag))
        return write_long_string(w, p, field, onx_view(bytes));
    p = reserve(w, p, SHORT_MAX + 2);
    if (!p)
        return NULL;
    p = put_short(p, (const char *)(uintptr_t)(bytes.bits & 0xffffffffffffu), len);
    return put_short_head(p, field, len);
}

/* Writes element i of a numeric array as a varint. */
static inline uint64_t varint_at(const onxi_field *field, const void *array, uint64_t i)
{
    if (field->type == ONXI_INT32 || field->type == ONXI_ENUM)
        return (uint64_t)(int64_t)((const int32_t *)array)[i];
    return ((const uint64_t *)array)[i];
}

static inline char *write_number(onxi_writer *w, char *p, const onxi_field *field, const void *array, uint64_t i)
{
    p = reserve(w, p, TAG_AND_LENGTH);
    if (!p)
        return NULL;
    switch (field->type) {
    case ONXI_FLOAT:
        return put_tag(put_bytes(p, (const char *)array + i * 4, 4), field, WIRE_I32);
    case ONXI_DOUBLE:
        return put_tag(put_bytes(p, (const char *)array + i * 8, 8), field, WIRE_I64);
    default:
        return put_tag(put_varint(p, varint_at(field, array, i)), field, WIRE_VARINT);
    }
}

COLD static char *write_packed(onxi_writer *w, char *p, const onxi_field *field, const void *array, uint64_t count)
{
    uint64_t start = written(w, p);
    if (field->type == ONXI_FLOAT || field->type == ONXI_DOUBLE)
        p = put_payload(w, p, onx_str_make(array, (size_t)count * onxi_field_size(field)));
    else
        for (uint64_t i = count; p && i-- > 0;) {
            p = reserve(w, p, VARINT_MAX);
            if (p)
                p = put_varint(p, varint_at(field, array, i));
        }
    return p ? put_head(w, p, field, start) : NULL;
}

static char *write_message(onxi_writer *w, char *p, const onxi_message_table *table, const void *message);

static char *write_sub(onxi_writer *w, char *p, const onxi_field *field, const void *sub)
{
    uint64_t start = written(w, p);
    p = write_message(w, p, field->message, sub);
    return p ? put_head(w, p, field, start) : NULL;
}

static char *write_repeated(onxi_writer *w, char *p, const onxi_field *field, onxi_place place)
{
    const void *array = *(void *const *)place.value;
    uint64_t i = (field->flags & ONXI_WIDE) ? *(const uint64_t *)place.count : *(const uint32_t *)place.count;
    if (i == 0)
        return p;
    if (field->flags & ONXI_PACKED)
        return write_packed(w, p, field, array, i);
    if (field->type == ONXI_MESSAGE) {
        while (p && i-- > 0)
            p = write_sub(w, p, field, ((void *const *)array)[i]);
    } else if (field->type >= ONXI_STRING) {
        while (p && i-- > 0)
            p = write_string(w, p, field, ((const onx_bytes *)array)[i]);
    } else {
        while (p && i-- > 0)
            p = write_number(w, p, field, array, i);
    }
    return p;
}

static inline char *write_field(onxi_writer *w, char *p, const onxi_message_table *table, const onxi_field *field,
                                const onx_message *m)
{
    char *value = (char *)(uintptr_t)m + field->offset;
    if (field->flags) {
        onxi_place place = { value, (char *)(uintptr_t)m + field->count_offset };
        bool here = !(field->flags & (ONXI_COLD | ONXI_SLOT)) ||
                    ((field->flags & ONXI_SLOT) && *onxi_slot(table, m) == field->number);
        if (!here)
            place = onxi_field_place(table, field, m);
        if (!place.value)
            return p;
        if (field->flags & ONXI_REPEATED)
            return write_repeated(w, p, field, place);
        value = place.value;
    }
    if (field->type < ONXI_STRING)
        return write_number(w, p, field, value, 0);
    if (LIKELY(field->type != ONXI_MESSAGE))
        return write_string(w, p, field, *(const onx_bytes *)(void *)value);
    const void *sub = *(void *const *)(void *)value;
    return sub ? write_sub(w, p, field, sub) : p; /* NULL: the caller marked the field as present without setting a
                                                   * message */
}

COLD static char *write_unknown(onxi_writer *w, char *p, const onx_unknown *first)
{
    size_t size = 0;
    for (const onx_unknown *u = first; u; u = u->next)
        size += onx_view(u->bytes).len;
    p = reserve(w, p, size);
    if (!p)
        return NULL;
    p -= size;
    char *to = p;
    for (const onx_unknown *u = first; u; u = u->next) {
        onx_str s = onx_view(u->bytes);
        memcpy(to, s.ptr, s.len);
        to += s.len;
    }
    return p;
}

/* The rows that may be present, as a bit mask. */
static inline uint32_t rows_to_write(const onxi_message_table *table, const onx_message *m)
{
    uint32_t rows = (m->has & table->singles) | table->lists;
    if (m->extra)
        return rows | table->extra_lists;
    if (table->slot_offset) {
        uint32_t slot = *onxi_slot(table, m);
        if (slot < table->number_count && table->by_number[slot])
            rows |= table->extra_lists & ONXI_ROW_BIT(table->by_number[slot] - 1);
    }
    return rows;
}

static char *write_message(onxi_writer *w, char *p, const onxi_message_table *table, const void *message)
{
    const onx_message *m = message;
    if (w->depth > w->depth_limit)
        return fail(w, onxi_fail(w->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                                 "messages are nested more than %u deep (limit depth)", w->depth_limit));
    w->depth++;
    if (m->extra && m->extra->unknown)
        p = write_unknown(w, p, m->extra->unknown);
    for (uint32_t rows = rows_to_write(table, m); rows && p; rows &= rows - 1)
        p = write_field(w, p, table, table->fields + 30 - (size_t)__builtin_ctz(rows), m);
    w->depth--;
    return p;
}

onx_status onxi_wire_write(onx_ctx *cx, const onxi_message_table *table, const void *message, bool refer,
                           size_t expected, onxi_writer *out)
{
    *out = (onxi_writer){ .cx = cx, .refer = refer, .depth_limit = onx_ctx_limits(cx).depth };
    char *p = grow(out, NULL, expected + SHORT_MAX);
    if (p)
        p = write_message(out, p, table, message);
    if (!p) {
        onxi_writer_free(out);
        return out->failure;
    }
    out->bytes = onx_str_make(p, (size_t)(out->end - p));
    return ONX_OK;
}

void onxi_writer_free_buffer(onxi_writer *w)
{
    if (w->base)
        onxi_buffer_give(w->cx, w->base, (size_t)(w->end - w->base));
    w->base = w->end = NULL;
}

void onxi_writer_free(onxi_writer *w)
{
    onxi_writer_free_buffer(w);
    onxi_release(w->cx, w->refs, w->ref_room * sizeof *w->refs);
    w->refs = NULL;
}
