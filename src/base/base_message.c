/* base_message.c - computes the address of a field in a message from its table. */
#include "base/base.h"

static onxi_place place_in(const void *part, uint16_t offset, const onxi_field *field, uint16_t count_offset)
{
    char *p = (char *)(uintptr_t)part;
    return (onxi_place){ p + offset, (field->flags & ONXI_REPEATED) ? p + count_offset : NULL };
}

onxi_place onxi_field_place(const onxi_message_table *table, const onxi_field *field, const void *message)
{
    const onx_message *head = message;
    if (!(field->flags & (ONXI_COLD | ONXI_SLOT)))
        return place_in(message, field->offset, field, field->count_offset);
    if ((field->flags & ONXI_SLOT) && *onxi_slot(table, message) == field->number)
        return place_in(message, field->offset, field, field->count_offset);
    if (!head->extra)
        return (onxi_place){ NULL, NULL };
    if (field->flags & ONXI_COLD)
        return place_in(head->extra, field->offset, field, field->count_offset);
    return place_in(head->extra, field->more_offset, field, field->more_count_offset);
}

bool onxi_field_claim(const onxi_message_table *table, const onxi_field *field, void *message, onx_arena *arena,
                      onxi_place *out)
{
    onx_message *head = message;
    if (field->flags & ONXI_SLOT) {
        uint32_t *slot = onxi_slot(table, message);
        if (*slot == 0)
            *slot = field->number;
        if (*slot != field->number && !head->extra)
            head->extra = onx_arena_alloc(arena, table->extra_size);
    } else if ((field->flags & ONXI_COLD) && !head->extra) {
        head->extra = onx_arena_alloc(arena, table->extra_size);
    }
    *out = onxi_field_place(table, field, message);
    return out->value != NULL;
}

uint64_t onxi_field_count(const onxi_message_table *table, const onxi_field *field, const void *message)
{
    const onx_message *head = message;
    if (!(field->flags & ONXI_REPEATED))
        return (head->has & field->has) != 0;
    onxi_place place = onxi_field_place(table, field, message);
    if (!place.value)
        return 0;
    return (field->flags & ONXI_WIDE) ? *(const uint64_t *)place.count : *(const uint32_t *)place.count;
}

size_t onxi_field_size(const onxi_field *field)
{
    switch (field->type) {
    case ONXI_FLOAT:
    case ONXI_INT32:
    case ONXI_ENUM:
        return 4;
    case ONXI_MESSAGE:
        return sizeof(void *);
    default:
        return 8;
    }
}
