/* ir_message.c - operations on messages of every kind, driven by their tables: creating, copying, comparing. */
#include "ir/ir.h"

void *onx_message_new(onx_arena *arena, onx_kind kind)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, onxi_is_kind(kind), NULL);
    return onx_arena_alloc(arena, onxi_messages[kind]->size);
}

void *onx_message_extra(onx_arena *arena, onx_kind kind, void *message)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, message, NULL);
    ONXI_NEED_OR(arena->cx, onxi_is_kind(kind), NULL);
    onx_message *m = message;
    if (!m->extra)
        m->extra = onx_arena_alloc(arena, onxi_messages[kind]->extra_size);
    return m->extra;
}

/* ---- copying ---- */

typedef struct copier {
    onx_arena *arena;
    bool share; /* strings, bytes and arrays that may be in the input are shared, not copied */
} copier;

static onx_status copy_message(const copier *c, const onxi_message_table *table, const void *from, void **out,
                               uint32_t depth);

static onx_status copy_bytes(const copier *c, onx_bytes from, onx_bytes *out)
{
    if (!c->share)
        return onx_arena_keep(c->arena, onx_view(from), out);
    *out = from;
    return ONX_OK;
}

static onx_status copy_value(const copier *c, const onxi_field *field, const void *from, void *to, uint32_t depth)
{
    if (field->type == ONXI_MESSAGE) {
        const void *sub = *(void *const *)from;
        return sub ? copy_message(c, field->message, sub, to, depth) : ONX_OK;
    }
    if (field->type == ONXI_STRING || field->type == ONXI_BYTES)
        return copy_bytes(c, *(const onx_bytes *)from, to);
    memcpy(to, from, onxi_field_size(field));
    return ONX_OK;
}

static onx_status copy_list(const copier *c, const onxi_field *field, onxi_place from, onxi_place to, uint32_t depth)
{
    uint64_t count = (field->flags & ONXI_WIDE) ? *(uint64_t *)from.count : *(uint32_t *)from.count;
    size_t size = onxi_field_size(field), bytes;
    if (count == 0)
        return ONX_OK;
    char *source = *(char *const *)from.value, *list = source;
    if (!c->share || !(field->flags & ONXI_BORROW)) {
        if (!onxi_mul_size((size_t)onxi_list_room(count), size, &bytes))
            return onxi_no_memory(c->arena->cx);
        list = onxi_arena_get(c->arena, bytes);
        if (!list)
            return ONX_E_MEMORY;
        if (field->type < ONXI_STRING)
            memcpy(list, source, (size_t)count * size);
        else
            memset(list, 0, bytes);
    }
    for (uint64_t i = 0; i < count && field->type >= ONXI_STRING; i++)
        ONX_TRY(copy_value(c, field, source + i * size, list + i * size, depth));
    *(void **)to.value = list;
    memcpy(to.count, from.count, (field->flags & ONXI_WIDE) ? 8 : 4);
    return ONX_OK;
}

static onx_status copy_unknown(const copier *c, const onxi_message_table *table, const onx_message *from,
                               onx_message *to)
{
    if (!from->extra)
        return ONX_OK;
    if (!to->extra && !(to->extra = onx_arena_alloc(c->arena, table->extra_size)))
        return ONX_E_MEMORY;
    for (const onx_unknown *u = from->extra->unknown; u; u = u->next) {
        onx_unknown *copy = ONXI_NEW(c->arena, onx_unknown);
        if (!copy)
            return ONX_E_MEMORY;
        copy->number = u->number;
        ONX_TRY(copy_bytes(c, u->bytes, &copy->bytes));
        if (to->extra->unknown_last)
            to->extra->unknown_last->next = copy;
        else
            to->extra->unknown = copy;
        to->extra->unknown_last = copy;
    }
    return ONX_OK;
}

static onx_status copy_message(const copier *c, const onxi_message_table *table, const void *from, void **out,
                               uint32_t depth)
{
    onx_ctx *cx = c->arena->cx;
    if (depth > onx_ctx_limits(cx).depth)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "messages are nested more than %u deep (limit depth)",
                         onx_ctx_limits(cx).depth);
    onx_message *to = onx_arena_alloc(c->arena, table->size);
    if (!to)
        return ONX_E_MEMORY;
    const onx_message *source = from;
    to->has = source->has;
    if (table->slot_offset) /* the same field has to claim the slot of the copy */
        memcpy((char *)to + table->slot_offset, (const char *)from + table->slot_offset, sizeof(uint32_t));
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *field = &table->fields[i];
        if (!onxi_field_count(table, field, from))
            continue;
        onxi_place a = onxi_field_place(table, field, from), b;
        if (!a.value)
            continue;
        if (!onxi_field_claim(table, field, to, c->arena, &b))
            return ONX_E_MEMORY;
        if (field->flags & ONXI_REPEATED)
            ONX_TRY(copy_list(c, field, a, b, depth + 1));
        else
            ONX_TRY(copy_value(c, field, a.value, b.value, depth + 1));
    }
    *out = to;
    return copy_unknown(c, table, source, to);
}

onx_status onx_message_copy(onx_arena *arena, onx_kind kind, const void *message, void **out)
{
    ONXI_NEED(NULL, arena);
    ONXI_NEED(arena->cx, out);
    *out = NULL;
    ONXI_NEED(arena->cx, message);
    ONXI_NEED(arena->cx, onxi_is_kind(kind));
    return copy_message(&(copier){ arena, false }, onxi_messages[kind], message, out, 0);
}

onx_status onx_message_share(onx_arena *arena, onx_kind kind, const void *message, void **out)
{
    ONXI_NEED(NULL, arena);
    ONXI_NEED(arena->cx, out);
    *out = NULL;
    ONXI_NEED(arena->cx, message);
    ONXI_NEED(arena->cx, onxi_is_kind(kind));
    return copy_message(&(copier){ arena, true }, onxi_messages[kind], message, out, 0);
}

/* ---- comparing ---- */

static bool equal_message(const onxi_message_table *table, const void *a, const void *b, uint32_t depth);

static bool equal_value(const onxi_field *field, const void *a, const void *b, uint32_t depth)
{
    if (field->type == ONXI_MESSAGE) {
        const void *x = *(void *const *)a, *y = *(void *const *)b;
        return x == y || (x && y && equal_message(field->message, x, y, depth));
    }
    if (field->type == ONXI_STRING || field->type == ONXI_BYTES)
        return onx_str_equal(onx_view(*(const onx_bytes *)a), onx_view(*(const onx_bytes *)b));
    return memcmp(a, b, onxi_field_size(field)) == 0;
}

static bool equal_field(const onxi_message_table *table, const onxi_field *field, const void *a, const void *b,
                        uint32_t depth)
{
    uint64_t count = onxi_field_count(table, field, a);
    if (count != onxi_field_count(table, field, b))
        return false;
    if (count == 0)
        return true;
    onxi_place x = onxi_field_place(table, field, a), y = onxi_field_place(table, field, b);
    if (!x.value || !y.value)
        return x.value == y.value;
    if (!(field->flags & ONXI_REPEATED))
        return equal_value(field, x.value, y.value, depth);
    const char *p = *(char *const *)x.value, *q = *(char *const *)y.value;
    size_t size = onxi_field_size(field);
    if (field->type < ONXI_STRING)
        return memcmp(p, q, (size_t)count * size) == 0;
    for (uint64_t i = 0; i < count; i++)
        if (!equal_value(field, p + i * size, q + i * size, depth))
            return false;
    return true;
}

static bool equal_unknown(const onx_message *a, const onx_message *b)
{
    const onx_unknown *u = a->extra ? a->extra->unknown : NULL, *v = b->extra ? b->extra->unknown : NULL;
    for (; u && v; u = u->next, v = v->next)
        if (!onx_str_equal(onx_view(u->bytes), onx_view(v->bytes)))
            return false;
    return u == v;
}

static bool equal_message(const onxi_message_table *table, const void *a, const void *b, uint32_t depth)
{
    if (depth > ONX_DEPTH_MAX)
        return false; /* deeper than any message that can be read or copied */
    const onx_message *x = a, *y = b;
    if (x->has != y->has || !equal_unknown(x, y))
        return false;
    for (uint32_t i = 0; i < table->field_count; i++)
        if (!equal_field(table, &table->fields[i], a, b, depth + 1))
            return false;
    return true;
}

bool onx_message_equal(onx_kind kind, const void *a, const void *b)
{
    if (!a || !b || !onxi_is_kind(kind))
        return false;
    return a == b || equal_message(onxi_messages[kind], a, b, 0);
}

/* ---- hashing: what equal messages have in common ---- */

static uint64_t hash_message(onxi_secret secret, const onxi_message_table *table, const void *message, uint32_t depth);

static uint64_t hash_bytes(onxi_secret secret, const void *bytes, size_t len)
{
    return len ? onxi_hash(secret, bytes, len) : 1;
}

static uint64_t hash_value(onxi_secret secret, const onxi_field *field, const void *value, uint32_t depth)
{
    if (field->type == ONXI_MESSAGE)
        return hash_message(secret, field->message, *(void *const *)value, depth);
    if (field->type == ONXI_STRING || field->type == ONXI_BYTES) {
        const onx_str s = onx_view(*(const onx_bytes *)value);
        return hash_bytes(secret, s.ptr, s.len);
    }
    return hash_bytes(secret, value, onxi_field_size(field));
}

static uint64_t hash_field(onxi_secret secret, const onxi_message_table *table, const onxi_field *field,
                           const void *message, uint32_t depth)
{
    const uint64_t count = onxi_field_count(table, field, message);
    const onxi_place place = onxi_field_place(table, field, message);
    uint64_t hash = onxi_hash_word(secret, count);
    if (!count || !place.value)
        return hash;
    if (!(field->flags & ONXI_REPEATED))
        return hash_value(onxi_hash_then(secret, hash), field, place.value, depth);
    const char *list = *(char *const *)place.value;
    const size_t size = onxi_field_size(field);
    if (field->type < ONXI_STRING)
        return hash_bytes(onxi_hash_then(secret, hash), list, (size_t)count * size);
    for (uint64_t i = 0; i < count; i++)
        hash = hash_value(onxi_hash_then(secret, hash), field, list + i * size, depth);
    return hash;
}

static uint64_t hash_message(onxi_secret secret, const onxi_message_table *table, const void *message, uint32_t depth)
{
    const onx_message *m = message;
    if (!m || depth > ONX_DEPTH_MAX)
        return 0;
    uint64_t hash = hash_bytes(secret, &m->has, sizeof m->has);
    for (uint32_t i = 0; i < table->field_count; i++)
        hash = hash_field(onxi_hash_then(secret, hash), table, &table->fields[i], message, depth + 1);
    for (const onx_unknown *u = m->extra ? m->extra->unknown : NULL; u; u = u->next)
        hash = hash_bytes(onxi_hash_then(secret, hash), onx_view(u->bytes).ptr, onx_view(u->bytes).len);
    return hash;
}

uint64_t onxi_message_hash(onxi_secret secret, onx_kind kind, const void *message)
{
    return onxi_is_kind(kind) ? hash_message(secret, onxi_messages[kind], message, 0) : 0;
}
