/* wire_read_alike.c - a message with the same bytes as an earlier one is copied instead of decoded: most types in a
 * model are among a few distinct ones. */
#include "wire/wire_read.h"

enum { LENGTH_MIN = 8, LENGTH_MAX = 512, SIZE_MAX_ALIKE = 4096 };

static uint64_t word(const byte *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* The slot for a message with these bytes. Messages of one kind differ in length, in the middle or at the end, so only
 * these are hashed. */
static onxi_alike *place_of(onxi_reader *r, const byte *p, size_t len)
{
    const uint64_t h = (word(p + len - 8) + len) * 0x9e3779b97f4a7c15u ^ word(p + (len - 8) / 2) * 0xd6e8feb86659fd93u;
    return &r->alike[(h >> 32 ^ h >> 56) % ONXI_ALIKE];
}

/* Pointers into the message's own memory are relocated; a message with other pointers is not copied. */
static bool note_pointer(onxi_alike *a, void *where)
{
    uintptr_t target;
    memcpy(&target, where, sizeof target);
    const uintptr_t from = (uintptr_t)a->memory, at = (uintptr_t)where;
    if (target < from || target - from >= a->size || at < from || at - from >= a->size ||
        a->pointer_count == ONXI_ALIKE_POINTERS)
        return false;
    a->pointer[a->pointer_count++] = (uint16_t)(at - from);
    return true;
}

static bool note_message(onxi_alike *a, const onxi_message_table *table, const void *message);

static bool note_field(onxi_alike *a, const onxi_message_table *table, const onxi_field *field, const void *message)
{
    const uint64_t count = onxi_field_count(table, field, message);
    const bool repeated = field->flags & ONXI_REPEATED, inner = field->type == ONXI_MESSAGE;
    if (!count || (!repeated && !inner))
        return true;
    void **value = onxi_field_place(table, field, message).value;
    if (!note_pointer(a, value))
        return false;
    if (!inner)
        return true;
    if (!repeated)
        return note_message(a, field->message, *value);
    void **list = *value;
    for (uint64_t i = 0; i < count; i++)
        if (!note_pointer(a, &list[i]) || !note_message(a, field->message, list[i]))
            return false;
    return true;
}

/* Finds all pointers in a message; the recursion is as deep as the decoder's was. */
static bool note_message(onxi_alike *a, const onxi_message_table *table, const void *message)
{
    if (((const onx_message *)message)->extra || table->slot_offset)
        return false;
    for (uint32_t i = 0; i < table->field_count; i++)
        if (!note_field(a, table, &table->fields[i], message))
            return false;
    return true;
}

static void *copy(onxi_reader *r, const onxi_alike *a)
{
    char *to = onxi_arena_get(r->arena, a->size);
    if (!to) {
        r->failure = ONX_E_MEMORY;
        return NULL;
    }
    memcpy(to, a->memory, a->size);
    for (uint32_t i = 0; i < a->pointer_count; i++) {
        const size_t at = a->pointer[i];
        char *target;
        memcpy(&target, a->memory + at, sizeof target);
        target = to + (target - a->memory);
        memcpy(to + at, &target, sizeof target);
    }
    return to;
}

void *onxi_read_alike(onxi_reader *r, const onxi_message_table *table, const byte *p, size_t len,
                      const onxi_reader_frame *up)
{
    onxi_alike *a = len >= LENGTH_MIN && len <= LENGTH_MAX ? place_of(r, p, len) : NULL;
    if (a && a->len == len && a->table == table && a->notes == r->notes && a->depth >= up->depth &&
        memcmp(a->bytes, p, len) == 0) {
        if (a->state == ONXI_ALIKE_SEEN) /* second occurrence: a third one is likely */
            a->state = note_message(a, table, a->memory) ? ONXI_ALIKE_READY : ONXI_ALIKE_UNFIT;
        if (a->state == ONXI_ALIKE_READY)
            return copy(r, a);
    }
    const char *end = r->arena->end, *from = r->arena->at;
    const uint64_t notes = r->notes;
    void *message = onxi_reader_message(r, table);
    if (!message || !onxi_read_message(r, table, message, p, p + len, up))
        return NULL;
    /* Only if the memory is contiguous. If diagnostics were reported, r->notes has changed, and the entry is not
     * used. */
    if (a && message == from && r->arena->end == end && r->arena->at - from <= SIZE_MAX_ALIKE)
        *a = (onxi_alike){ .table = table,
                           .bytes = p,
                           .memory = message,
                           .notes = notes,
                           .len = (uint32_t)len,
                           .size = (uint32_t)(r->arena->at - from),
                           .depth = up->depth };
    return message;
}
