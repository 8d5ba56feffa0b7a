/* text_normal.h - normalizes what the text syntax does not distinguish: empty and absent strings become the same.
 * Values of attributes, raw_data and alternatives of a oneof are distinguished, so they are kept. */
#ifndef TEXT_NORMAL_H
#define TEXT_NORMAL_H

#include "ir/ir.h"

static onx_status text_normal_visit(void *user, const onx_visit *at)
{
    const onxi_message_table *table = onxi_messages[at->kind];
    onx_message *message = (onx_message *)at->message;
    (void)user;
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *f = &table->fields[i];
        if ((f->flags & (ONXI_REPEATED | ONXI_SLOT | ONXI_ONEOF)) || !(message->has & f->has) ||
            (f->type != ONXI_STRING && f->type != ONXI_BYTES) || (at->kind == ONX_KIND_TENSOR && f->number == 9))
            continue;
        if (at->kind == ONX_KIND_NODE && f->number == 3)
            continue; /* an empty label is told from none */
        onxi_place place = onxi_field_place(table, f, message);
        if (onx_view(*(onx_bytes *)place.value).len == 0)
            message->has &= ~f->has;
    }
    return ONX_OK;
}

static inline void text_normal(onx_ctx *cx, onx_kind kind, void *root)
{
    (void)onx_message_walk(cx, kind, root, text_normal_visit, NULL);
}

#endif
