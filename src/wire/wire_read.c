/* wire_read.c - decodes messages according to their tables; strings and payloads are not copied. */
#include "wire/wire_read.h"

enum { RUN_PARALLEL = 256 * 1024, PARALLEL_DEPTH = 2 };

bool onxi_reader_grow(onxi_reader *r, const onxi_reader_frame *f, void **list, uint64_t count, uint64_t more,
                      size_t size, bool borrowed, bool wide)
{
    uint64_t total;
    if (!onxi_add_u64(count, more, &total) || total > (wide ? UINT64_MAX >> 8 : UINT32_MAX)) {
        onxi_reader_bad(r, f, r->limit, ONX_E_LIMIT, NULL, "more than %llu elements in one list",
                        (unsigned long long)UINT32_MAX);
        return false;
    }
    if (!borrowed && total <= onxi_list_room(count))
        return true;
    size_t bytes;
    void *bigger = NULL;
    if (onxi_mul_size((size_t)onxi_list_room(total), size, &bytes))
        bigger = onxi_arena_get(r->arena, bytes);
    if (!bigger) {
        r->failure = ONX_E_MEMORY;
        return false;
    }
    if (count)
        memcpy(bigger, *list, (size_t)count * size);
    *list = bigger;
    return true;
}

/* ---- strings ---- */

static inline uint64_t word(const byte *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* Are all bytes ASCII? Most strings are short names. Overlapping words at fixed positions serve whole ranges of
 * lengths, so the branches are well predicted. */
static inline bool is_ascii(const byte *p, size_t len)
{
    uint64_t all = 0;
    if (len >= 16) {
        size_t i = 0;
        do
            all |= word(p + i) | word(p + i + 8);
        while ((i += 16) + 16 <= len);
        all |= word(p + len - 16) | word(p + len - 8);
    } else if (len >= 8) {
        all = word(p) | word(p + len - 8);
    } else {
        for (size_t i = 0; i < len; i++)
            all |= p[i];
    }
    return !(all & 0x8080808080808080u);
}

COLD static bool take_unusual(onxi_reader *r, const onxi_reader_frame *f, const byte *p, size_t len, onx_bytes *out)
{
    onx_str s = onx_str_make((const char *)p, len);
    if (f->field->type == ONXI_STRING && onxi_utf8_valid(s) != len)
        onxi_reader_note(r, f, p, ONX_WARNING, "W-21", "%s is not valid UTF-8", f->field->name);
    onx_status status =
        (r->flags & ONXI_WIRE_COPY) ? onx_arena_keep(r->arena, s, out) : onx_arena_refer(r->arena, s, out);
    if (status != ONX_OK)
        r->failure = status;
    return status == ONX_OK;
}

static inline bool take_string(onxi_reader *r, const onxi_reader_frame *f, const byte *p, size_t len, onx_bytes *out)
{
    uint64_t address = (uint64_t)(uintptr_t)p;
    if (len < 0xffff && !(address >> 48) && !(r->flags & ONXI_WIRE_COPY) &&
        (f->field->type == ONXI_BYTES || is_ascii(p, len))) {
        out->bits = len ? address | (uint64_t)len << 48 : 0;
        return true;
    }
    return take_unusual(r, f, p, len, out);
}

/* Counts the consecutive elements with this tag; the tag of the first one has been read already. Stops silently at
 * malformed input, which is reported when it is decoded. */
static uint64_t count_run(const byte *p, const byte *end, const byte *tag, size_t tag_size)
{
    uint64_t n = 0;
    for (;;) {
        uint64_t len = 0;
        unsigned shift = 0;
        n++;
        while (p < end && (*p & 0x80) && shift < 56) {
            len |= (uint64_t)(*p++ & 0x7f) << shift;
            shift += 7;
        }
        if (p >= end)
            return n;
        len |= (uint64_t)*p++ << shift;
        if (len > (uint64_t)(end - p))
            return n;
        p += len;
        if ((size_t)(end - p) <= tag_size || memcmp(p, tag, tag_size) != 0)
            return n;
        p += tag_size;
    }
}

static inline bool same_tag(const byte *p, const byte *end, const byte *tag, size_t tag_size)
{
    return (size_t)(end - p) > tag_size && p[0] == tag[0] && (tag_size == 1 || memcmp(p, tag, tag_size) == 0);
}

COLD static const byte *read_many_strings(onxi_reader *r, onxi_reader_frame *f, onxi_place place, const byte *p,
                                          const byte *end, const byte *tag, size_t tag_size)
{
    uint32_t *count = place.count;
    uint64_t more = count_run(p, end, tag, tag_size);
    if (!onxi_reader_grow(r, f, place.value, *count, more, sizeof(onx_bytes), false, false))
        return NULL;
    onx_bytes *list = *(onx_bytes **)place.value;
    for (uint64_t i = 0; i < more; i++) {
        size_t len;
        f->index = *count;
        if (i)
            p += tag_size;
        p = read_length(r, f, p, end, &len);
        if (!p || !take_string(r, f, p, len, &list[*count]))
            return NULL;
        ++*count;
        p += len;
    }
    return p;
}

/* Lists of strings are usually short (the inputs of a node): the first few are collected on the stack. */
static inline const byte *read_strings(onxi_reader *r, onxi_reader_frame *f, onxi_place place, const byte *p,
                                       const byte *end, const byte *tag, size_t tag_size)
{
    enum { FEW = 4 };
    onx_bytes few[FEW];
    uint32_t *count = place.count, n = 0;
    const byte *first = p;
    if (*count)
        return read_many_strings(r, f, place, p, end, tag, tag_size);
    for (;;) {
        size_t len;
        f->index = n;
        p = read_length(r, f, p, end, &len);
        if (!p || !take_string(r, f, p, len, &few[n]))
            return NULL;
        n++;
        p += len;
        if (!same_tag(p, end, tag, tag_size))
            break;
        if (n == FEW)
            return read_many_strings(r, f, place, first, end, tag, tag_size);
        p += tag_size;
    }
    onx_bytes *list = onxi_arena_get(r->arena, (n == 3 ? 4 : n) * sizeof *list);
    if (!list) {
        r->failure = ONX_E_MEMORY;
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        list[i] = few[i];
    *(onx_bytes **)place.value = list;
    *count = n;
    return p;
}

/* ---- messages ---- */

static inline bool push(onxi_reader *r, void *p)
{
    if (r->stack_count == r->stack_room) {
        /* Grown in place, because pages that were touched before need no page fault. */
        const size_t old = r->stack_room * sizeof *r->stack;
        size_t bytes = old ? old * 2 : 256 * sizeof *r->stack;
        void **bigger = old ? onxi_resize(r->cx, r->stack, old, bytes) : onxi_buffer_take(r->cx, bytes, &bytes);
        if (!bigger) {
            r->failure = ONX_E_MEMORY;
            return false;
        }
        r->stack = bigger;
        r->stack_room = bytes / sizeof *bigger;
    }
    r->stack[r->stack_count++] = p;
    return true;
}

/* A zeroed message. Clearing whole chunks is faster than a call with the exact size; the chunks beyond the message are
 * free room of the same block. */
static inline void *new_message(onxi_reader *r, const onxi_message_table *table)
{
    enum { CHUNK = 64 };
    size_t chunks = (table->size + CHUNK - 1) / CHUNK;
    bool roomy = (size_t)(r->arena->end - r->arena->at) >= chunks * CHUNK;
    char *m = onxi_arena_get(r->arena, table->size);
    if (!m) {
        r->failure = ONX_E_MEMORY;
        return NULL;
    }
    if (!roomy)
        return memset(m, 0, table->size);
    for (size_t i = 0; i < chunks; i++)
        memset(m + i * CHUNK, 0, CHUNK);
    return m;
}

void *onxi_reader_message(onxi_reader *r, const onxi_message_table *table)
{
    return new_message(r, table);
}

static inline const byte *read_messages(onxi_reader *r, onxi_reader_frame *f, onxi_place place, const byte *p,
                                        const byte *end, const byte *tag, size_t tag_size)
{
    if (r->threads > 1 && f->depth < PARALLEL_DEPTH && end - p > RUN_PARALLEL) {
        const byte *q = onxi_read_parallel(r, f, place, p, end, tag, tag_size);
        if (q || r->failure)
            return q;
    }
    const onxi_message_table *table = f->field->message;
    uint32_t *count = place.count;
    size_t base = r->stack_count;
    f->index = *count;
    for (;;) {
        size_t len;
        p = read_length(r, f, p, end, &len);
        void *m = p ? new_message(r, table) : NULL;
        if (!m || !push(r, m) || !onxi_read_message(r, table, m, p, p + len, f))
            return NULL;
        f->index++;
        p += len;
        if (!same_tag(p, end, tag, tag_size))
            break;
        p += tag_size;
    }
    uint64_t more = r->stack_count - base;
    if (*count == 0 && more == 1) {
        void **one = onxi_arena_get(r->arena, sizeof(void *));
        if (!one) {
            r->failure = ONX_E_MEMORY;
            return NULL;
        }
        *one = r->stack[base];
        *(void ***)place.value = one;
        *count = 1;
        r->stack_count = base;
        return p;
    }
    if (!onxi_reader_grow(r, f, place.value, *count, more, sizeof(void *), false, false))
        return NULL;
    memcpy(*(void ***)place.value + *count, r->stack + base, (size_t)more * sizeof(void *));
    *count += (uint32_t)more;
    r->stack_count = base;
    return p;
}

/* ---- singular fields ---- */

/* Makes a field the active member of its oneof (rule W-19); the members share storage. */
static void enter_oneof(onxi_reader *r, const onxi_reader_frame *f, onx_message *m, onxi_place place, const byte *p)
{
    uint32_t others = m->has & f->field->group & ~f->field->has;
    if (!others)
        return;
    onxi_reader_note(r, f, p, ONX_WARNING, "W-19", "%s takes the place of another member of its oneof", f->field->name);
    m->has &= ~others;
    memset(place.value, 0, onxi_field_size(f->field));
}

static inline const byte *read_singular(onxi_reader *r, onxi_reader_frame *f, onx_message *m, onxi_place place,
                                        const byte *p, const byte *end)
{
    const onxi_field *field = f->field;
    if (field->flags & ONXI_ONEOF)
        enter_oneof(r, f, m, place, p);
    if (m->has & field->has) {
        if (field->type == ONXI_MESSAGE)
            onxi_reader_note(r, f, p, ONX_WARNING, "W-18", "%s appears more than once, its parts are merged",
                             field->name);
        else
            onxi_reader_note(r, f, p, ONX_WARNING, "W-17", "%s appears more than once, the last one counts",
                             field->name);
    }
    if (field->type < ONXI_STRING) {
        p = onxi_read_number(r, f, place.value, p, end);
        m->has |= field->has;
        return p;
    }
    size_t len;
    p = read_length(r, f, p, end, &len);
    if (!p)
        return NULL;
    if (field->type == ONXI_MESSAGE) {
        void **sub = place.value;
        const bool fresh = !(m->has & field->has);
        m->has |= field->has;
        if (fresh && field->message->alike) {
            *sub = onxi_read_alike(r, field->message, p, len, f);
            return *sub ? p + len : NULL;
        }
        if (fresh)
            *sub = new_message(r, field->message);
        if (!*sub || !onxi_read_message(r, field->message, *sub, p, p + len, f))
            return NULL;
    } else {
        m->has |= field->has;
        if (!take_string(r, f, p, len, place.value))
            return NULL;
    }
    return p + len;
}

/* ---- fields ---- */

/* Keeps an unknown field unchanged: [tag, p) is its tag, and the value follows. */
COLD static const byte *keep_unknown(onxi_reader *r, const onxi_reader_frame *f, onx_message *m, const byte *head,
                                     const byte *p, const byte *end, uint32_t number, uint32_t wire_type)
{
    const byte *next = onxi_read_skip(r, f, p, end, number, wire_type);
    if (!next)
        return NULL;
    if (!m->extra)
        m->extra = onx_arena_alloc(r->arena, f->table->extra_size);
    onx_unknown *u = onxi_arena_get(r->arena, sizeof *u);
    onx_str s = onx_str_make((const char *)head, (size_t)(next - head));
    if (!m->extra || !u ||
        ((r->flags & ONXI_WIRE_COPY) ? onx_arena_keep(r->arena, s, &u->bytes)
                                     : onx_arena_refer(r->arena, s, &u->bytes)) != ONX_OK) {
        r->failure = ONX_E_MEMORY;
        return NULL;
    }
    u->next = NULL;
    u->number = number;
    if (m->extra->unknown_last)
        m->extra->unknown_last->next = u;
    else
        m->extra->unknown = u;
    m->extra->unknown_last = u;
    return next;
}

COLD static const byte *read_unknown(onxi_reader *r, const onxi_reader_frame *f, onx_message *m, const byte *head,
                                     const byte *p, const byte *end, uint32_t number, uint32_t wire_type)
{
    if (wire_type == WIRE_END)
        return onxi_reader_bad(r, f, head, ONX_E_MALFORMED, "W-09", "group %u ends without having begun", number);
    if (wire_type > WIRE_I32)
        return onxi_reader_bad(r, f, head, ONX_E_MALFORMED, "W-08", "wire type %u does not exist", wire_type);
    bool reserved = false;
    for (const uint32_t *n = f->table->reserved; n && *n; n++)
        reserved |= *n == number;
    onxi_reader_note(r, f, head, ONX_NOTE,
                     reserved                  ? "W-28"
                     : wire_type == WIRE_GROUP ? "W-09"
                                               : "W-16",
                     reserved                  ? "field number %u is reserved, it is kept as an unknown field"
                     : wire_type == WIRE_GROUP ? "group %u is kept as an unknown field"
                                               : "unknown field number %u is kept",
                     number);
    return keep_unknown(r, f, m, head, p, end, number, wire_type);
}

COLD static const byte *read_mismatch(onxi_reader *r, const onxi_reader_frame *f, onx_message *m, const byte *head,
                                      const byte *p, const byte *end, uint32_t wire_type)
{
    static const char *const names[] = { "varint", "64-bit", "length-delimited", "group", "group end", "32-bit" };
    if (wire_type == WIRE_END)
        return onxi_reader_bad(r, f, head, ONX_E_MALFORMED, "W-09", "group %u ends without having begun",
                               f->field->number);
    if (!(r->flags & ONXI_WIRE_LENIENT))
        return onxi_reader_bad(r, f, head, ONX_E_MALFORMED, "W-15", "%s has wire type %u (%s), which cannot hold it",
                               f->field->name, wire_type, names[wire_type]);
    onxi_reader_note(r, f, head, ONX_WARNING, "W-15", "%s has wire type %u (%s), it is kept as an unknown field",
                     f->field->name, wire_type, names[wire_type]);
    return keep_unknown(r, f, m, head, p, end, f->field->number, wire_type);
}

static inline const byte *read_field(onxi_reader *r, onxi_reader_frame *f, onx_message *m, const byte *head,
                                     const byte *p, const byte *end, uint32_t wire_type)
{
    const onxi_field *field = f->field;
    bool numeric = field->type < ONXI_STRING;
    bool packed = numeric && (field->flags & ONXI_REPEATED) && wire_type == WIRE_LEN;
    if (wire_type != ONXI_WIRE_TYPE(field->type) && !packed)
        return read_mismatch(r, f, m, head, p, end, wire_type);
    /* a local copy, so that the compiler can keep it in registers */
    onxi_place place = { .value = (char *)m + field->offset, .count = (char *)m + field->count_offset };
    if (field->flags & (ONXI_COLD | ONXI_SLOT)) {
        onxi_place claimed;
        if (!onxi_field_claim(f->table, field, m, r->arena, &claimed)) {
            r->failure = ONX_E_MEMORY;
            return NULL;
        }
        place = claimed;
    }
    if (!(field->flags & ONXI_REPEATED))
        return read_singular(r, f, m, place, p, end);
    size_t tag_size = (size_t)(p - head);
    if (numeric)
        return onxi_read_numbers(r, f, place, p, end, wire_type, head, tag_size);
    if (field->type == ONXI_MESSAGE)
        return read_messages(r, f, place, p, end, head, tag_size);
    return read_strings(r, f, place, p, end, head, tag_size);
}

/* Decodes a tag of more than one byte. */
COLD static const byte *read_tag_slow(onxi_reader *r, const onxi_reader_frame *f, const byte *p, const byte *end,
                                      uint64_t *out)
{
    const byte *q = onxi_read_varint_slow(r, f, p, end, out);
    if (q && (q - p > 5 || *out > UINT32_MAX))
        return onxi_reader_bad(r, f, p, ONX_E_MALFORMED, "W-03", "a tag takes more than five bytes or 32 bits");
    return q;
}

const byte *onxi_read_message(onxi_reader *r, const onxi_message_table *table, void *message, const byte *p,
                              const byte *end, const onxi_reader_frame *up)
{
    onxi_reader_frame f = { .up = up, .table = table, .depth = up ? up->depth + 1 : 0 };
    if (f.depth > r->depth_limit)
        return onxi_reader_bad(r, up, p, ONX_E_LIMIT, "W-25", "messages are nested more than %u deep (limit depth)",
                               r->depth_limit);
    while (p < end) {
        const byte *head = p;
        uint64_t tag = *p++;
        if (tag >= 0x80 && p<end && * p> 0 && *p < 0x80) {
            tag = (tag & 0x7f) | (uint64_t)*p++ << 7;
        } else if (tag >= 0x80) {
            f.field = NULL;
            p = read_tag_slow(r, &f, head, end, &tag);
            if (!p)
                return NULL;
        }
        uint32_t number = (uint32_t)(tag >> 3), wire_type = tag & 7;
        f.index = 0;
        f.field = onxi_field_find(table, number);
        if (f.field) {
            if (wire_type > WIRE_I32)
                return onxi_reader_bad(r, &f, head, ONX_E_MALFORMED, "W-08", "wire type %u does not exist", wire_type);
            p = read_field(r, &f, message, head, p, end, wire_type);
        } else {
            if (number == 0)
                return onxi_reader_bad(r, &f, head, ONX_E_MALFORMED, "W-02", "field number 0 does not exist");
            p = read_unknown(r, &f, message, head, p, end, number, wire_type);
        }
        if (!p)
            return NULL;
    }
    return p;
}

onx_status onxi_wire_read(onx_ctx *cx, onx_arena *arena, const onxi_message_table *table, onx_str bytes, uint32_t flags,
                          unsigned threads, void *message)
{
    if (!bytes.len)
        return ONX_OK; /* an empty message; its pointer may be NULL */
    const byte *start = (const byte *)bytes.ptr;
    onxi_reader r = { .cx = cx,
                      .arena = arena,
                      .start = start,
                      .limit = start + bytes.len,
                      .flags = flags,
                      .depth_limit = onx_ctx_limits(cx).depth,
                      .threads = threads };
    if (!onxi_read_message(&r, table, message, start, r.limit, NULL) && r.failure == ONX_OK)
        r.failure = ONX_E_MALFORMED;
    onxi_buffer_give(cx, r.stack, r.stack_room * sizeof *r.stack);
    return r.failure;
}
