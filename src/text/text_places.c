/* text_places.c - converts the path of a diagnostic to line and column: the text is parsed again, this time with a mark
 * for each part, and the path is followed through the messages to the innermost part with a mark. */
#include "text/text.h"

#include <stdlib.h>

enum { BLOCK = 4096 };

/* The line of the first byte of a block of the text. */
typedef struct block {
    uint32_t line;    /* line number, from 1 */
    const char *from; /* start of that line */
} block;

struct onx_text_places {
    onx_ctx *cx;
    onx_doc *doc; /* as parsed from the text, whatever the caller did to its document */
    onxi_text_marks marks;
    onxi_functions functions;
    block *blocks;
    size_t block_count;
};

/* ---- while parsing ---- */

void onxi_text_mark_add(onxi_text_parser *p, const void *key, const char *at)
{
    onxi_text_marks *m = p->marks;
    if (!ONXI_GROW(p->cx, m->list, m->room, m->count + 1)) {
        onxi_text_parse_abort(p, ONX_E_MEMORY);
        return;
    }
    m->list[m->count++] = (onxi_text_mark){ key, at };
}

void onxi_text_mark_elements(onxi_text_parser *p, size_t from, const onx_bytes *list)
{
    for (size_t i = from; list && i < p->marks->count; i++)
        p->marks->list[i].key = list + (i - from);
}

void onxi_text_mark_also(onxi_text_parser *p, size_t *from, const void *old, const void *key)
{
    const onxi_text_marks *m = p->marks;
    while (m && *from < m->count)
        if (m->list[(*from)++].key == old) {
            onxi_text_mark_add(p, key, m->list[*from - 1].at);
            return;
        }
}

void onxi_text_mark_moved(onxi_text_parser *p, const void *from, const void *to, size_t size)
{
    for (size_t i = 0; p->marks && i < p->marks->count; i++) {
        uintptr_t offset = (uintptr_t)p->marks->list[i].key - (uintptr_t)from;
        if (offset < size)
            p->marks->list[i].key = (const char *)to + offset;
    }
}

/* ---- after parsing ---- */

static int by_key(const void *a, const void *b)
{
    const onxi_text_mark *x = a, *y = b;
    if (x->key != y->key)
        return (uintptr_t)x->key < (uintptr_t)y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The position of the part, or `other`. */
static const char *mark_of(const onx_text_places *places, const void *key, const char *other)
{
    size_t low = 0, high = places->marks.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)places->marks.list[middle].key < (uintptr_t)key)
            low = middle + 1;
        else
            high = middle;
    }
    return key && low < places->marks.count && places->marks.list[low].key == key ? places->marks.list[low].at : other;
}

static bool note_blocks(onx_text_places *places)
{
    onx_str text = places->doc->text;
    size_t count = text.len / BLOCK + 1;
    places->blocks = onxi_resize(places->cx, NULL, 0, count * sizeof *places->blocks);
    if (!places->blocks)
        return false;
    places->block_count = count;
    block here = { 1, text.ptr };
    for (size_t i = 0; i < count; i++) {
        places->blocks[i] = here;
        const char *at = text.ptr + i * BLOCK, *stop = i + 1 < count ? at + BLOCK : onxi_str_end(text);
        for (const char *s; at < stop && (s = memchr(at, '\n', (size_t)(stop - at))) != NULL; at = s + 1)
            here = (block){ here.line + 1, s + 1 };
    }
    return true;
}

/* Parses the same text with the same flags and limits: it can fail only for lack of memory, and all diagnostics were
 * reported the first time. */
static onx_status parse_again(onx_text_places *places, const onx_doc *doc)
{
    onxi_diag_mark before = onxi_diag_here(places->cx);
    onxi_text_parse_notes notes = { .marks = &places->marks };
    onx_status status =
        onxi_text_parse_text(places->cx, doc->kind, doc->text, doc->text_flags | ONX_TEXT_BORROW, notes, &places->doc);
    const onx_model *model = status == ONX_OK && doc->kind == ONX_KIND_MODEL ? onx_doc_model(places->doc) : NULL;
    if (model)
        status = onxi_functions_index(onx_doc_arena(places->doc), model->functions, model->functions_count,
                                      &places->functions);
    if (status == ONX_OK && !note_blocks(places))
        status = ONX_E_MEMORY;
    onxi_diag_rewind(places->cx, before);
    if (status == ONX_E_MEMORY)
        onxi_no_memory(places->cx);
    return status;
}

onx_status onx_text_places_new(const onx_doc *doc, onx_text_places **out)
{
    ONXI_NEED(onx_doc_ctx(doc), out);
    *out = NULL;
    ONXI_NEED(NULL, doc);
    if (!doc->text.len)
        return ONX_OK;
    onx_text_places *places = onxi_resize(doc->cx, NULL, 0, sizeof *places);
    if (!places)
        return ONX_E_MEMORY;
    *places = (onx_text_places){ .cx = doc->cx };
    onx_status status = parse_again(places, doc);
    if (status != ONX_OK) {
        onx_text_places_free(places);
        return status;
    }
    if (places->marks.count)
        qsort(places->marks.list, places->marks.count, sizeof *places->marks.list, by_key);
    *out = places;
    return ONX_OK;
}

void onx_text_places_free(onx_text_places *places)
{
    if (!places)
        return;
    onx_ctx *cx = places->cx;
    onx_doc_free(places->doc);
    onxi_release(cx, places->marks.list, places->marks.room * sizeof *places->marks.list);
    onxi_release(cx, places->blocks, places->block_count * sizeof *places->blocks);
    onxi_release(cx, places, sizeof *places);
}

/* ---- queries ---- */

static onx_where where_of(const onx_text_places *places, const char *at)
{
    size_t byte = (size_t)(at - places->doc->text.ptr);
    block here = places->blocks[byte / BLOCK];
    const char *s = places->doc->text.ptr + byte / BLOCK * BLOCK;
    for (const char *next; s < at && (next = memchr(s, '\n', (size_t)(at - s))) != NULL; s = next + 1)
        here = (block){ here.line + 1, next + 1 };
    size_t column = (size_t)(at - here.from) + 1;
    return (onx_where){ .kind = ONX_AT_TEXT,
                        .byte = byte,
                        .line = here.line,
                        .column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column };
}

static bool enter_call(const onx_text_places *places, onxi_path_cursor *c)
{
    if (!c->message || c->table->kind != ONX_KIND_NODE || !c->rest.len)
        return false;
    const onx_node *node = c->message;
    onx_str overload = node->extra ? onx_view(onx_node_more(node)->overload) : (onx_str){ 0 };
    const onx_function *f =
        onxi_functions_find(&places->functions, onx_view(node->domain), onx_view(node->op_type), overload, NULL);
    return f && onxi_path_enter_call(c, f);
}

bool onx_text_places_find(const onx_text_places *places, onx_str path, onx_where *where_out, onx_str *excerpt_out)
{
    if (!places || !where_out)
        return false;
    const onx_doc *doc = places->doc;
    const void *root = onx_doc_root(doc, doc->kind);
    const char *at = mark_of(places, root, NULL);
    onxi_path_cursor c = onxi_path_begin(doc->kind, root, path);
    bool steps = onxi_path_next(&c);
    if (!steps && !onx_str_is(path, onx_kind_proto_name(doc->kind)) &&
        !(doc->kind == ONX_KIND_MODEL && onx_str_is(path, "model")))
        return false;
    while (steps) {
        at = mark_of(places, c.member, at);
        at = mark_of(places, c.message, at);
        if (enter_call(places, &c))
            at = mark_of(places, c.message, at);
        steps = onxi_path_next(&c);
    }
    if (!at)
        return false;
    *where_out = where_of(places, at);
    if (excerpt_out)
        *excerpt_out = onxi_text_excerpt(onxi_str_end(doc->text), at, where_out->column);
    return true;
}

onx_status onx_text_locate(const onx_doc *doc, size_t first)
{
    ONXI_NEED(NULL, doc);
    onx_text_places *places = NULL;
    size_t count = onx_diag_count(doc->cx);
    for (size_t i = first; doc->text.len && i < count; i++) {
        onx_where where = onx_diag_get(doc->cx, i)->where;
        onx_str excerpt;
        if (where.kind != ONX_AT_MODEL || !where.path.len)
            continue;
        if (!places)
            ONX_TRY(onx_text_places_new(doc, &places));
        if (onx_text_places_find(places, where.path, &where, &excerpt))
            onxi_diag_place(doc->cx, i, where, excerpt);
    }
    onx_text_places_free(places);
    return ONX_OK;
}
