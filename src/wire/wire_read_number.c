/* wire_read_number.c - decodes varints, fixed-width numbers and packed blocks, and skips unknown fields. */
#include "wire/wire_read.h"

const byte *onxi_read_varint_slow(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end,
                                  uint64_t *out)
{
    uint64_t v = 0;
    const byte *q = p;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (q == end)
            return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-07", "the input ends inside a varint");
        uint64_t b = *q++;
        if (shift == 63 && b > 1)
            return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, b >= 0x80 ? "W-04" : "W-05",
                                   b >= 0x80 ? "a varint has more than ten bytes" : "a varint has more than 64 bits");
        v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return q;
        }
    }
    return NULL; /* unreachable: the tenth byte either ends the varint or is refused */
}

/* Skips a group iteratively: the numbers of open groups are a stack in a local array. */
static const byte *skip_group(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end,
                              uint32_t number)
{
    uint32_t open[64];
    uint32_t depth = 0, limit = sizeof open / sizeof *open;
    if (limit > r->depth_limit)
        limit = r->depth_limit ? r->depth_limit : 1;
    const byte *begin = p;
    open[depth++] = number;
    while (depth) {
        uint64_t tag = 0;
        if (p == end)
            return onxi_reader_bad(r, f, begin, ONX_E_MALFORMED, "W-09", "group %u is not closed", open[depth - 1]);
        const byte *q = read_varint(r, f, p, end, &tag);
        if (!q)
            return NULL;
        uint32_t n = (uint32_t)(tag >> 3), wire_type = tag & 7;
        if (tag > UINT32_MAX || q - p > 5 || n == 0)
            return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, n ? "W-03" : "W-02", "a malformed tag inside group %u",
                                   open[depth - 1]);
        if (wire_type == WIRE_GROUP) {
            if (depth == limit)
                return onxi_reader_bad(r, f, p, ONX_E_LIMIT, "W-25", "groups are nested more than %u deep", limit);
            open[depth++] = n;
            p = q;
        } else if (wire_type == WIRE_END) {
            if (open[--depth] != n)
                return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-09", "group %u is closed as group %u", open[depth],
                                       n);
            p = q;
        } else {
            p = onxi_read_skip(r, f, q, end, n, wire_type);
            if (!p)
                return NULL;
        }
    }
    return p;
}

const byte *onxi_read_skip(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end, uint32_t number,
                           uint32_t wire_type)
{
    uint64_t v = 0;
    size_t len = 0;
    switch (wire_type) {
    case WIRE_VARINT:
        return read_varint(r, f, p, end, &v);
    case WIRE_I64:
    case WIRE_I32:
        len = wire_type == WIRE_I64 ? 8 : 4;
        if ((size_t)(end - p) < len)
            return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-07", "the input ends inside a value of %zu bytes", len);
        return p + len;
    case WIRE_LEN:
        p = read_length(r, f, p, end, &len);
        return p ? p + len : NULL;
    case WIRE_GROUP:
        return skip_group(r, f, p, end, number);
    default:
        return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-08", "wire type %u does not exist", wire_type);
    }
}

/* A 32-bit field accepts values that fit into a signed 32-bit integer, and the five-byte form of negative values (W-22,
 * W-24). */
static bool fits_int32(uint64_t v)
{
    return (int64_t)v >= INT32_MIN && (int64_t)v <= (int64_t)UINT32_MAX;
}

static bool is_int32(const onxi_field *field)
{
    return field->type == ONXI_INT32 || field->type == ONXI_ENUM;
}

const byte *onxi_read_number(onxi_reader *r, const onxi_reader_frame *f, void *value, const byte *p, const byte *end)
{
    const onxi_field *field = f->field;
    if (field->type == ONXI_FLOAT || field->type == ONXI_DOUBLE) {
        size_t size = onxi_field_size(field);
        if ((size_t)(end - p) < size)
            return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-07", "the input ends inside %s", field->name);
        memcpy(value, p, size);
        return p + size;
    }
    uint64_t v = 0;
    const byte *q = read_varint(r, f, p, end, &v);
    if (!q)
        return NULL;
    if (!is_int32(field)) {
        memcpy(value, &v, 8);
        return q;
    }
    if (!fits_int32(v))
        return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-22", "%s is %lld, which does not fit 32 bits", field->name,
                               (long long)v);
    uint32_t low = (uint32_t)v;
    memcpy(value, &low, 4);
    return q;
}

/* ---- repeated numbers ---- */

static uint64_t list_count(const onxi_field *field, onxi_place place)
{
    return (field->flags & ONXI_WIDE) ? *(uint64_t *)place.count : *(uint32_t *)place.count;
}

static void set_list_count(const onxi_field *field, onxi_place place, uint64_t count)
{
    if (field->flags & ONXI_WIDE)
        *(uint64_t *)place.count = count;
    else
        *(uint32_t *)place.count = (uint32_t)count;
}

/* Appends room for `more` elements and returns the first; NULL if out of memory, which is recorded. */
static void *append(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, uint64_t more)
{
    const onxi_field *field = f->field;
    uint64_t count = list_count(field, place);
    void **list = place.value;
    /* an array in the input cannot grow in place */
    const byte *at = *list;
    bool borrowed = (field->flags & ONXI_BORROW) && count && at >= r->start && at < r->limit;
    size_t size = onxi_field_size(field);
    if (!onxi_reader_grow(r, f, list, count, more, size, borrowed, (field->flags & ONXI_WIDE) != 0))
        return NULL;
    return (char *)*list + (size_t)count * size;
}

static const byte *read_packed_fixed(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, const byte *p,
                                     size_t len)
{
    const onxi_field *field = f->field;
    size_t size = onxi_field_size(field);
    if (len % size)
        return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-13",
                               "%s is a block of %zu bytes, which is no multiple of %zu", field->name, len, size);
    uint64_t count = list_count(field, place);
    if (!len)
        return p;
    if (count == 0 && (field->flags & ONXI_BORROW) && !(r->flags & ONXI_WIRE_COPY)) {
        *(const void **)place.value = p;
    } else {
        void *to = append(r, f, place, len / size);
        if (!to)
            return NULL;
        memcpy(to, p, len);
    }
    set_list_count(field, place, count + len / size);
    return p + len;
}

/* Decodes `more` varints from p on, either consecutive in a block or each after a tag. */
static const byte *read_varints(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, const byte *p,
                                const byte *end, uint64_t more, size_t tag_size)
{
    const onxi_field *field = f->field;
    uint64_t count = list_count(field, place);
    void *to = append(r, f, place, more);
    if (!to)
        return NULL;
    bool narrow = is_int32(field);
    for (uint64_t i = 0; i < more; i++) {
        uint64_t v = 0;
        if (i)
            p += tag_size;
        const byte *q = read_varint(r, f, p, end, &v);
        if (!q)
            return NULL;
        if (narrow) {
            if (!fits_int32(v))
                return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-22", "%s[%llu] is %lld, which does not fit 32 bits",
                                       field->name, (unsigned long long)(count + i), (long long)v);
            ((uint32_t *)to)[i] = (uint32_t)v;
        } else {
            ((uint64_t *)to)[i] = v;
        }
        p = q;
    }
    set_list_count(field, place, count + more);
    return p;
}

/* The number of consecutive values with this tag. */
static uint64_t count_run(const byte *p, const byte *end, const byte *tag, size_t tag_size, size_t fixed)
{
    uint64_t n = 0;
    for (;;) {
        n++;
        if (fixed) {
            if ((size_t)(end - p) < fixed)
                return n;
            p += fixed;
        } else {
            while (p < end && (*p & 0x80))
                p++;
            if (p == end)
                return n;
            p++;
        }
        if ((size_t)(end - p) <= tag_size || memcmp(p, tag, tag_size) != 0)
            return n;
        p += tag_size;
    }
}

static const byte *read_packed(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, const byte *p,
                               const byte *end)
{
    size_t len = 0;
    p = read_length(r, f, p, end, &len);
    if (!p || !len)
        return p;
    if (f->field->type == ONXI_FLOAT || f->field->type == ONXI_DOUBLE)
        return read_packed_fixed(r, f, place, p, len);
    if (p[len - 1] & 0x80)
        return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-13", "the block of %s ends inside a varint",
                               f->field->name);
    uint64_t more = 0;
    for (size_t i = 0; i < len; i++)
        more += p[i] < 0x80;
    return read_varints(r, f, place, p, p + len, more, 0);
}

const byte *onxi_read_numbers(onxi_reader *r, const onxi_reader_frame *f, onxi_place place, const byte *p,
                              const byte *end, uint32_t wire_type, const byte *tag, size_t tag_size)
{
    if (wire_type == WIRE_LEN)
        return read_packed(r, f, place, p, end);
    if (wire_type == WIRE_VARINT)
        return read_varints(r, f, place, p, end, count_run(p, end, tag, tag_size, 0), tag_size);
    size_t size = onxi_field_size(f->field);
    uint64_t more = count_run(p, end, tag, tag_size, size), count = list_count(f->field, place);
    char *to = append(r, f, place, more);
    if (!to)
        return NULL;
    for (uint64_t i = 0; i < more; i++, to += size) {
        if (i)
            p += tag_size;
        p = onxi_read_number(r, f, to, p, end);
        if (!p)
            return NULL;
    }
    set_list_count(f->field, place, count + more);
    return p;
}
