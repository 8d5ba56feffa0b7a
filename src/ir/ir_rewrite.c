/* ir_rewrite.c - copies a message with some of the messages below it replaced, without modifying the original: changed
 * messages and those that contain them are copied, everything else is shared. */
#include "ir/ir.h"

typedef struct rewriter {
    onx_ctx *cx;
    onx_arena *arena;
    onx_kind wanted;
    bool leads[ONX_KIND_COUNT]; /* can a message of this kind contain one of the wanted kind? */
    onx_status (*replace)(void *user, const onx_visit *at, const void **out);
    void *user;
    uint32_t limit;
} rewriter;

static bool find_ways(rewriter *w)
{
    bool changed = false;
    for (int k = 1; k < ONX_KIND_COUNT; k++) {
        const onxi_message_table *table = onxi_messages[k];
        for (uint32_t i = 0; i < table->field_count && !w->leads[k]; i++) {
            const onxi_field *field = &table->fields[i];
            if (field->type == ONXI_MESSAGE &&
                (field->message->kind == (int)w->wanted || w->leads[field->message->kind]))
                changed = w->leads[k] = true;
        }
    }
    return changed;
}

static void *copy_bytes(onx_arena *arena, const void *from, size_t size)
{
    void *to = onxi_arena_get(arena, size);
    return to ? memcpy(to, from, size) : NULL;
}

/* Copies the struct and its extra part, unless *copy is a copy already. */
static onx_status own(rewriter *w, const onxi_message_table *table, const void *message, void **copy)
{
    if (*copy)
        return ONX_OK;
    onx_message *m = copy_bytes(w->arena, message, table->size);
    if (!m)
        return ONX_E_MEMORY;
    if (m->extra) {
        m->extra = copy_bytes(w->arena, m->extra, table->extra_size);
        if (!m->extra)
            return ONX_E_MEMORY;
    }
    *copy = m;
    return ONX_OK;
}

static onx_status rewrite(rewriter *w, const onxi_message_table *table, const onx_visit *at, const void **out);

static onx_status rewrite_field(rewriter *w, const onxi_message_table *table, const onxi_field *field,
                                const onx_visit *at, void **copy)
{
    uint64_t count = onxi_field_count(table, field, at->message);
    onxi_place place = onxi_field_place(table, field, at->message);
    bool repeated = (field->flags & ONXI_REPEATED) != 0, own_list = false;
    if (!place.value)
        return ONX_OK;
    onx_visit below = { .kind = (onx_kind)field->message->kind,
                        .parent = at,
                        .field = field->name,
                        .repeated = repeated,
                        .depth = at->depth + 1 };
    for (uint64_t i = 0; i < count; i++) {
        below.index = (uint32_t)i;
        below.message = repeated ? (*(void ***)place.value)[i] : *(void **)place.value;
        if (!below.message)
            continue;
        const void *now;
        ONX_TRY(rewrite(w, field->message, &below, &now));
        if (now == below.message)
            continue;
        ONX_TRY(own(w, table, at->message, copy));
        onxi_place mine = onxi_field_place(table, field, *copy);
        if (!repeated) {
            *(const void **)mine.value = now;
            continue;
        }
        if (!own_list) {
            size_t size;
            if (!onxi_mul_size((size_t)count, sizeof(void *), &size))
                return onxi_no_memory(w->cx);
            void *list = copy_bytes(w->arena, *(void **)place.value, size);
            if (!list)
                return ONX_E_MEMORY;
            *(void **)mine.value = list;
            own_list = true;
        }
        (*(const void ***)mine.value)[i] = now;
    }
    return ONX_OK;
}

static onx_status rewrite(rewriter *w, const onxi_message_table *table, const onx_visit *at, const void **out)
{
    *out = at->message;
    if (at->depth > w->limit)
        return onxi_fail(w->cx, ONX_E_LIMIT, ONXI_NOWHERE, "messages are nested more than %u deep (limit depth)",
                         w->limit);
    if (at->kind == w->wanted)
        return w->replace(w->user, at, out);
    if (!w->leads[at->kind])
        return ONX_OK;
    void *copy = NULL;
    for (uint32_t i = 0; i < table->field_count; i++)
        if (table->fields[i].type == ONXI_MESSAGE)
            ONX_TRY(rewrite_field(w, table, &table->fields[i], at, &copy));
    if (copy)
        *out = copy;
    return ONX_OK;
}

onx_status onxi_message_rewrite(onx_arena *arena, onx_kind kind, const void *message, onx_kind wanted,
                                onx_status (*replace)(void *user, const onx_visit *at, const void **out), void *user,
                                const void **out)
{
    rewriter w = { .cx = arena->cx, .arena = arena, .wanted = wanted, .replace = replace, .user = user };
    w.limit = onx_ctx_limits(arena->cx).depth;
    while (find_ways(&w))
        ;
    onx_visit root = { .kind = kind, .message = (void *)(uintptr_t)message };
    return rewrite(&w, onxi_messages[kind], &root, out);
}
