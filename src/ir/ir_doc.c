/* ir_doc.c - documents: a root message and the memory that holds it. */
#include "ir/ir.h"

onx_status onx_doc_new(onx_ctx *cx, onx_kind kind, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    if (kind <= ONX_KIND_NONE || kind >= ONX_KIND_COUNT)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%d is no kind of message", (int)kind);
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_doc *doc = ONXI_NEW(arena, onx_doc);
    void *root = doc ? onx_message_new(arena, kind) : NULL;
    if (!root) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    *doc = (onx_doc){ .cx = cx, .arena = arena, .kind = kind, .root = root };
    *out = doc;
    return ONX_OK;
}

onx_doc onxi_doc_reader(const onx_doc *doc, onx_ctx *cx, onx_arena *arena)
{
    onx_doc reader = *doc;
    reader.cx = cx;
    reader.arena = arena;
    reader.attachments = NULL;
    reader.external = NULL;
    memset(&reader.guarded, 0, sizeof reader.guarded);
    return reader;
}

void onxi_doc_reader_close(onx_doc *reader)
{
    for (onxi_attachment *a = reader->attachments; a; a = a->next)
        a->release(reader->cx, a->data);
    reader->attachments = NULL;
    reader->external = NULL;
}

onx_status onx_doc_reader(onx_ctx *cx, const onx_doc *doc, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_doc *reader = ONXI_NEW(arena, onx_doc);
    if (!reader) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    *reader = onxi_doc_reader(doc, cx, arena);
    *out = reader;
    return ONX_OK;
}

onx_status onx_doc_share(onx_ctx *cx, const onx_doc *doc, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    onx_doc *share;
    ONX_TRY(onx_doc_reader(cx, doc, &share));
    const onx_status status = onx_message_share(share->arena, share->kind, doc->root, &share->root);
    if (status != ONX_OK) {
        onx_doc_free(share);
        return status;
    }
    *out = share;
    return ONX_OK;
}

void onx_doc_free(onx_doc *doc)
{
    if (!doc)
        return;
    onxi_doc_reader_close(doc);
    onx_arena_free(doc->arena); /* holds the document itself */
}

onx_status onxi_doc_need_graph(onx_ctx *cx, const onx_doc *doc)
{
    const onx_model *model = onx_doc_model(doc);
    if (model && model->graph)
        return ONX_OK;
    return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the document holds no model with a graph");
}

onx_status onxi_doc_attach(onx_doc *doc, void (*release)(onx_ctx *cx, void *data), void *data)
{
    onxi_attachment *a = ONXI_NEW(doc->arena, onxi_attachment);
    if (!a)
        return ONX_E_MEMORY;
    *a = (onxi_attachment){ .next = doc->attachments, .release = release, .data = data };
    doc->attachments = a;
    return ONX_OK;
}

static void release_spilled(onx_ctx *cx, void *data)
{
    onxi_file_close(cx, &((onxi_spilled *)data)->file);
}

onx_status onxi_doc_spill(onx_doc *doc, onxi_file *file)
{
    onxi_spilled *s = ONXI_NEW(doc->arena, onxi_spilled);
    if (!s || onxi_doc_attach(doc, release_spilled, s) != ONX_OK) {
        onxi_file_close(doc->cx, file);
        return ONX_E_MEMORY;
    }
    *s = (onxi_spilled){ doc->spilled, *file };
    doc->spilled = s;
    memset(file, 0, sizeof *file);
    return ONX_OK;
}

onx_kind onx_doc_kind(const onx_doc *doc)
{
    return doc ? doc->kind : ONX_KIND_NONE;
}

void *onx_doc_root(const onx_doc *doc, onx_kind kind)
{
    return doc && doc->kind == kind ? doc->root : NULL;
}

onx_arena *onx_doc_arena(const onx_doc *doc)
{
    return doc ? doc->arena : NULL;
}

onx_ctx *onx_doc_ctx(const onx_doc *doc)
{
    return doc ? doc->cx : NULL;
}

uint64_t onx_doc_input_size(const onx_doc *doc)
{
    return doc ? doc->input_size : 0;
}
