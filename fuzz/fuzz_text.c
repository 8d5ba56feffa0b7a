/* fuzz_text.c - takes any bytes as ONNX text: text that can be parsed must print, parse again to the same message, and
 * format. The first byte selects the kind of message and the flags. */
#include <onx/text.h>

#include <stdlib.h>
#include <string.h>

#include "fuzz_buffer.h"

/* Each path of the message must lead to a location in the text. */
static onx_status find_place(void *user, const onx_visit *at)
{
    char path[4096];
    onx_where where;
    size_t len = onx_visit_path(at, path, sizeof path);
    if (len == 0 || len >= sizeof path)
        return ONX_OK;
    fuzz_must(onx_text_places_find(user, onx_str_make(path, len), &where, NULL));
    fuzz_must(where.kind == ONX_AT_TEXT && where.line > 0 && where.column > 0);
    return ONX_OK;
}

static void check_places(onx_ctx *cx, onx_kind kind, onx_doc *doc)
{
    onx_text_places *places;
    onx_status status = onx_text_places_new(doc, &places);
    fuzz_must(status == ONX_OK && places);
    status = onx_message_walk(cx, kind, onx_doc_root(doc, kind), find_place, places);
    fuzz_must(status == ONX_OK || status == ONX_E_LIMIT);
    onx_text_places_free(places);
}

static void check_parsed(onx_ctx *cx, onx_kind kind, onx_doc *doc, onx_str text, bool lenient)
{
    fuzz_buffer first = { 0 }, second = { 0 }, formatted = { 0 };
    onx_doc *again = NULL;
    onx_status status = onx_text_print(cx, kind, onx_doc_root(doc, kind), NULL, (onx_sink){ fuzz_append, &first });
    if (status == ONX_E_LIMIT)
        goto done;
    fuzz_must(status == ONX_OK);
    status = onx_text_parse(cx, kind, onx_str_make(first.ptr, first.len), ONX_TEXT_BORROW, &again);
    if (status == ONX_E_LIMIT)
        goto done;
    fuzz_must(status == ONX_OK);
    fuzz_must(onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(again, kind)));
    fuzz_must(onx_text_print(cx, kind, onx_doc_root(again, kind), NULL, (onx_sink){ fuzz_append, &second }) == ONX_OK);
    fuzz_must(first.len == second.len && memcmp(first.ptr, second.ptr, first.len) == 0);
    onx_text_options shown = { .elide = 4, .width = 40, .plain = true };
    fuzz_must(onx_text_print(cx, kind, onx_doc_root(again, kind), &shown, (onx_sink){ fuzz_append, &second }) ==
              ONX_OK);
    if (!lenient) {
        onx_doc_free(again);
        again = NULL;
        fuzz_must(onx_text_format(cx, kind, text, (onx_sink){ fuzz_append, &formatted }) == ONX_OK);
        fuzz_must(onx_text_parse(cx, kind, onx_str_make(formatted.ptr, formatted.len), 0, &again) == ONX_OK);
        fuzz_must(onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(again, kind)));
    }
done:
    onx_doc_free(again);
    free(first.ptr);
    free(second.ptr);
    free(formatted.ptr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const onx_kind kinds[] = { ONX_KIND_MODEL,  ONX_KIND_GRAPH,     ONX_KIND_NODE, ONX_KIND_FUNCTION,
                                      ONX_KIND_TENSOR, ONX_KIND_ATTRIBUTE, ONX_KIND_TYPE, ONX_KIND_VALUE_INFO };
    if (size < 1)
        return 0;
    onx_kind kind = kinds[data[0] & 7];
    bool lenient = (data[0] & 16) != 0;
    uint32_t flags = (data[0] & 8 ? (uint32_t)ONX_TEXT_BORROW : 0u) | (lenient ? (uint32_t)ONX_TEXT_LENIENT : 0u);
    onx_str text = onx_str_make((const char *)data + 1, size - 1);
    onx_ctx *cx = onx_ctx_new(NULL);
    if (!cx)
        return 0;
    onx_doc *doc = NULL;
    if (onx_text_parse(cx, kind, text, flags, &doc) == ONX_OK) {
        check_places(cx, kind, doc);
        check_parsed(cx, kind, doc, text, lenient);
    } else {
        fuzz_must(doc == NULL && onx_diag_total(cx, ONX_ERROR) > 0);
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    return 0;
}
