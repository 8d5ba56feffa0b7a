/* text_format.c - the formatter: parses a text and prints it, keeping comments and single empty lines with their items.
 * A comment belongs to the item before it if it begins on the line where that item ends; otherwise to the item that
 * encloses it; otherwise to the next item. */
#include "text/text.h"

#include <stdlib.h>

typedef struct item {
    const void *key; /* NULL: no item that ends here has comments beside it */
    const char *begin, *end;
    size_t parent; /* index + 1 of the enclosing item, 0: none */
} item;

typedef struct remark {
    onx_str text; /* "# ...", or empty for an empty line */
    const char *at;
    const void *key; /* of its item; NULL: the end of the text */
    bool beside;     /* it follows the item on the same line */
    bool printed;
    struct remark *next; /* next comment of the same item */
} remark;

struct onxi_text_trivia {
    item *items;
    size_t item_count, item_room;
    remark *remarks;
    size_t remark_count, remark_room;
    onxi_map firsts; /* of each item the first remark */
};

/* ---- while parsing ---- */

void onxi_text_trivia_item(onxi_text_parser *p, const void *key, const char *begin, const char *end)
{
    onxi_text_trivia *t = p->trivia;
    if (p->mute)
        return;
    if (!ONXI_GROW(p->cx, t->items, t->item_room, t->item_count + 1)) {
        onxi_text_parse_abort(p, ONX_E_MEMORY);
        return;
    }
    t->items[t->item_count++] = (item){ key, begin, end, 0 };
}

void onxi_text_trivia_closing(onxi_text_parser *p, const void *key)
{
    onxi_text_gap(p);
    onxi_text_trivia_item(p, key, p->at, NULL);
}

void onxi_text_trivia_moved(onxi_text_parser *p, const void *from, const void *to)
{
    for (size_t i = 0; i < p->trivia->item_count; i++)
        if (p->trivia->items[i].key == from)
            p->trivia->items[i].key = to;
}

static void add_remark(onxi_text_parser *p, onx_str text, const char *at)
{
    onxi_text_trivia *t = p->trivia;
    if (!ONXI_GROW(p->cx, t->remarks, t->remark_room, t->remark_count + 1)) {
        onxi_text_parse_abort(p, ONX_E_MEMORY);
        return;
    }
    t->remarks[t->remark_count++] = (remark){ .text = text, .at = at };
}

void onxi_text_trivia_comment(onxi_text_parser *p, onx_str comment)
{
    while (comment.len && onxi_text_char_is(comment.ptr[comment.len - 1], ONXI_CHAR_SPACE))
        comment.len--;
    add_remark(p, comment, comment.ptr);
}

void onxi_text_trivia_blank(onxi_text_parser *p, const char *at)
{
    add_remark(p, (onx_str){ 0 }, at);
}

/* ---- after parsing: assigning comments to items ---- */

static int by_begin(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (!x->end || !y->end)
        return (x->end != NULL) - (y->end != NULL);
    return x->end > y->end ? -1 : x->end < y->end; /* the whole comes before its parts */
}

static int by_end(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->begin > y->begin ? -1 : x->begin < y->begin; /* of those that end together the outermost counts */
}

/* The last item that ends before `at` with only blanks and a comma in between, or NULL; items are sorted by their
 * ends. */
static const item *item_beside(const onxi_text_trivia *t, const char *at)
{
    size_t low = 0, high = t->item_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (!t->items[middle].end || t->items[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const item *last = &t->items[low - 1];
    if (!last->key || !last->end)
        return NULL;
    const char *c = at; /* backwards, so that the gap before each comment is scanned once */
    while (c > last->end && (c[-1] == ',' || (c[-1] != '\n' && onxi_text_char_is(c[-1], ONXI_CHAR_SPACE))))
        c--;
    return c == last->end ? last : NULL;
}

/* Of the item at index - 1 and its enclosing items, the innermost that continues after `at`: index + 1, or 0. */
static size_t around(const onxi_text_trivia *t, size_t index, const char *at)
{
    while (index > 0 && !(t->items[index - 1].key && t->items[index - 1].end && t->items[index - 1].end > at))
        index = t->items[index - 1].parent;
    return index;
}

/* Sort order: by the beginning of items. */
static void find_parents(onxi_text_trivia *t)
{
    for (size_t i = 0; i < t->item_count; i++) {
        size_t above = around(t, i, t->items[i].begin);
        t->items[i].parent = above;
    }
}

/* The item that contains `at` outside of its parts, if no part follows; otherwise the first item that begins at or
 * after `at`; or NULL. */
static const item *item_around(const onxi_text_trivia *t, const char *at)
{
    size_t low = 0, high = t->item_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->items[middle].begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    size_t above = around(t, low, at);
    while (low < t->item_count && !t->items[low].key)
        low++;
    if (above && (low == t->item_count || t->items[low].begin >= t->items[above - 1].end))
        return &t->items[above - 1];
    return low < t->item_count ? &t->items[low] : NULL;
}

/* qsort needs no memory that could run out: the lists are sorted in place */
static bool settle(onx_ctx *cx, onxi_text_trivia *t)
{
    if (t->item_count)
        qsort(t->items, t->item_count, sizeof *t->items, by_end);
    for (size_t i = 0; i < t->remark_count; i++) {
        const item *it = t->remarks[i].text.len ? item_beside(t, t->remarks[i].at) : NULL;
        t->remarks[i].beside = it != NULL;
        if (it)
            t->remarks[i].key = it->key;
    }
    if (t->item_count)
        qsort(t->items, t->item_count, sizeof *t->items, by_begin);
    find_parents(t);
    for (size_t i = 0; i < t->remark_count; i++) {
        const item *it = t->remarks[i].beside ? NULL : item_around(t, t->remarks[i].at);
        if (it)
            t->remarks[i].key = it->key;
    }
    t->firsts = onxi_map_on_heap(cx);
    for (size_t i = t->remark_count; i-- > 0;) {
        remark *r = &t->remarks[i];
        void **first = r->key ? onxi_map_at(&t->firsts, (uint64_t)(uintptr_t)r->key) : NULL;
        if (!first && r->key)
            return false;
        if (first) {
            r->next = *first;
            *first = r;
        }
    }
    return true;
}

/* ---- while printing ---- */

static remark *first_of(const onxi_text_printer *o, const void *key)
{
    const onxi_text_trivia *t = o->trivia;
    if (!t || !key || !t->remark_count)
        return NULL;
    return onxi_map_find(&t->firsts, (uint64_t)(uintptr_t)key);
}

bool onxi_text_trivia_has(const onxi_text_printer *o, const void *key)
{
    for (const remark *r = first_of(o, key); r; r = r->next)
        if (r->text.len)
            return true;
    return false;
}

bool onxi_text_trivia_leads(const onxi_text_printer *o, const void *key)
{
    for (const remark *r = first_of(o, key); r; r = r->next)
        if (r->text.len && !r->beside)
            return true;
    return false;
}

static void put_remark_line(onxi_text_printer *o, const remark *r)
{
    if (o->status == ONX_OK)
        o->len = o->line; /* each line adds the indentation */
    if (r->text.len) {
        for (uint32_t i = 0; i < o->indent; i++)
            onxi_text_put_char(o, ' ');
        onxi_text_write(o, r->text.ptr, r->text.len);
    }
    onxi_text_put_line(o);
}

/* No empty line at the beginning or end of a block or of the text. */
static bool at_opening(const onxi_text_printer *o)
{
    return o->line < 2 || strchr("{<(\n", o->buf[o->line - 2]);
}

void onxi_text_trivia_before(onxi_text_printer *o, const void *key, bool closing)
{
    const remark *empty = NULL;
    for (remark *r = first_of(o, key); r; r = r->next) {
        if (r->beside || r->printed)
            continue;
        r->printed = true;
        if (!r->text.len) {
            empty = at_opening(o) ? NULL : r;
            continue;
        }
        if (empty)
            put_remark_line(o, empty);
        empty = NULL;
        put_remark_line(o, r);
    }
    if (empty && !closing)
        put_remark_line(o, empty);
}

bool onxi_text_trivia_after(onxi_text_printer *o, const void *key)
{
    bool any = false;
    for (remark *r = first_of(o, key); r; r = r->next) {
        if (!r->beside || r->printed)
            continue;
        r->printed = true;
        any = true;
        ONXI_PUT(o, "  ");
        onxi_text_write(o, r->text.ptr, r->text.len);
    }
    return any;
}

void onxi_text_trivia_rest(onxi_text_printer *o)
{
    for (size_t i = 0; i < o->trivia->remark_count; i++) {
        remark *r = &o->trivia->remarks[i];
        if (r->printed || !r->text.len)
            continue;
        onxi_text_put_line(o);
        onxi_text_write(o, r->text.ptr, r->text.len);
    }
}

/* ---- entry points ---- */

onx_status onx_text_format(onx_ctx *cx, onx_kind kind, onx_str text, onx_sink sink)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, sink.write);
    onxi_text_trivia t = { 0 };
    onx_doc *doc;
    onx_status status =
        onxi_text_parse_text(cx, kind, text, ONX_TEXT_BORROW, (onxi_text_parse_notes){ .trivia = &t }, &doc);
    if (status == ONX_OK)
        status =
            settle(cx, &t) ? onxi_text_print_text(cx, kind, onx_doc_root(doc, kind), NULL, &t, sink) : ONX_E_MEMORY;
    onx_doc_free(doc);
    onxi_release(cx, t.items, t.item_room * sizeof *t.items);
    onxi_release(cx, t.remarks, t.remark_room * sizeof *t.remarks);
    if (t.firsts.table.cx)
        onxi_map_free(&t.firsts);
    return status;
}
