/* ir_walk.c - visits all messages below a message. */
#include "ir/ir.h"

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
        /* read again in each iteration, because a visit may replace the list */
        below.message = repeated ? (*(void ***)place.value)[i] : *(void **)place.value;
        if (below.message)
            ONX_TRY(walk(w, field->message, &below));
    }
    return ONX_OK;
}

/* Most fields of nodes and attributes are numbers and strings, which need no visit. */
static bool is_leaf(onx_kind kind, const void *message)
{
    const onx_node *node = message;
    const onx_attribute *a = message;
    if (kind == ONX_KIND_NODE)
        return !node->attribute_count && !node->extra;
    return kind == ONX_KIND_ATTRIBUTE && !a->extra &&
           (a->slot <= ONX_SLOT_S || (a->slot >= ONX_SLOT_FLOATS && a->slot <= ONX_SLOT_STRINGS));
}

static onx_status walk(walker *w, const onxi_message_table *table, const onx_visit *at)
{
    if (at->depth > w->limit)
        return onxi_fail(w->cx, ONX_E_LIMIT, ONXI_NOWHERE, "messages are nested more than %u deep (limit depth)",
                         w->limit);
    ONX_TRY(w->visit(w->user, at));
    if (is_leaf(at->kind, at->message))
        return ONX_OK;
    for (uint32_t i = 0; i < table->field_count; i++)
        if (table->fields[i].type == ONXI_MESSAGE)
            ONX_TRY(walk_field(w, table, &table->fields[i], at));
    return ONX_OK;
}

onx_status onx_message_walk(onx_ctx *cx, onx_kind kind, void *message,
                            onx_status (*visit)(void *user, const onx_visit *at), void *user)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, message);
    ONXI_NEED(cx, onxi_is_kind(kind));
    ONXI_NEED(cx, visit);
    walker w = { cx, visit, user, onx_ctx_limits(cx).depth };
    return walk(&w, onxi_messages[kind], &(onx_visit){ .kind = kind, .message = message });
}
