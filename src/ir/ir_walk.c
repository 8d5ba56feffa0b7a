/* ir_walk.c - visiting all messages below one, and saying where a visit is. */
#include "ir/ir.h"

#include <stdio.h>

typedef struct walker {
    onx_ctx *cx;
    onx_status (*visit)(void *user, const onx_visit *at);
    void *user;
    uint32_t limit;
} walker;

static onx_status walk(walker *w, const onxi_message_table *table, const onx_visit *at);

static onx_status walk_field(walker *w, const onxi_message_table *table, const onxi_field *field, const onx_visit *at)
{
    uint64_t count = onxi_field_count(table, field, at->message);
    if (count == 0)
        return ONX_OK;
    onxi_place place = onxi_field_place(table, field, at->message);
    if (!place.value)
        return ONX_OK;
    bool repeated = (field->flags & ONXI_REPEATED) != 0;
    onx_visit below = { .kind = (onx_kind)field->message->kind,
                        .parent = at,
                        .field = field->name,
                        .repeated = repeated,
                        .depth = at->depth + 1 };
    for (uint64_t i = 0; i < count; i++) {
        below.index = (uint32_t)i;
        /* Read anew each time: a visit may replace the list it is in. */
        below.message = repeated ? (*(void ***)place.value)[i] : *(void **)place.value;
        if (below.message)
            ONX_TRY(walk(w, field->message, &below));
    }
    return ONX_OK;
}

static onx_status walk(walker *w, const onxi_message_table *table, const onx_visit *at)
{
    if (at->depth > w->limit)
        return onxi_fail(w->cx, ONX_E_LIMIT, ONXI_NOWHERE, "messages are nested more than %u deep (limit depth)",
                         w->limit);
    ONX_TRY(w->visit(w->user, at));
    for (uint32_t i = 0; i < table->field_count; i++)
        if (table->fields[i].type == ONXI_MESSAGE)
            ONX_TRY(walk_field(w, table, &table->fields[i], at));
    return ONX_OK;
}

onx_status onx_message_walk(onx_ctx *cx, onx_kind kind, void *message,
                            onx_status (*visit)(void *user, const onx_visit *at), void *user)
{
    walker w = { cx, visit, user, onx_ctx_limits(cx).depth };
    return walk(&w, onxi_messages[kind], &(onx_visit){ .kind = kind, .message = message });
}

/* The name that a person would point at a message by, or an empty text. */
static onx_str name_of(onx_kind kind, const void *message)
{
    switch (kind) {
    case ONX_KIND_NODE:
        return onx_view(((const onx_node *)message)->name);
    case ONX_KIND_ATTRIBUTE:
        return onx_view(((const onx_attribute *)message)->name);
    case ONX_KIND_TENSOR:
        return onx_view(((const onx_tensor *)message)->name);
    case ONX_KIND_VALUE_INFO:
        return onx_view(((const onx_value_info *)message)->name);
    case ONX_KIND_FUNCTION:
        return onx_view(((const onx_function *)message)->name);
    case ONX_KIND_STRING_STRING_ENTRY:
        return onx_view(((const onx_string_string_entry *)message)->key);
    default:
        return (onx_str){ 0 };
    }
}

typedef struct text {
    char *buf;
    size_t size, len;
} text;

static void put(text *t, const char *format, ...) ONX_PRINTF(2, 3);
static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t at = t->len < t->size ? t->len : t->size;
    int n = vsnprintf(at < t->size ? t->buf + at : NULL, t->size - at, format, args);
    va_end(args);
    if (n > 0)
        t->len += (size_t)n;
}

static void put_visit(text *t, const onx_visit *at)
{
    if (!at->parent)
        return;
    put_visit(t, at->parent);
    put(t, t->len ? ".%s" : "%s", at->field);
    if (at->repeated)
        put(t, "[%u]", at->index);
    onx_str name = name_of(at->kind, at->message);
    if (name.len)
        put(t, " \"%.*s\"", ONX_ARG(name));
    onx_str op = at->kind == ONX_KIND_NODE ? onx_view(((const onx_node *)at->message)->op_type) : (onx_str){ 0 };
    if (op.len)
        put(t, " (%.*s)", ONX_ARG(op));
}

size_t onx_visit_path(const onx_visit *at, char *buf, size_t size)
{
    text t = { buf, size, 0 };
    if (size)
        buf[0] = 0;
    put_visit(&t, at);
    return t.len;
}

onx_str onxi_path_node(onx_arena *arena, const char *prefix, uint32_t index, const onx_node *node)
{
    onx_str name = onx_view(node->name), op = onx_view(node->op_type);
    if (name.len)
        return onxi_arena_printf(arena, "%snode[%u] \"%.*s\" (%.*s)", prefix, index, ONX_ARG(name), ONX_ARG(op));
    return onxi_arena_printf(arena, "%snode[%u] (%.*s)", prefix, index, ONX_ARG(op));
}
