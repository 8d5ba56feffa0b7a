/* fuzz_text_print.c - each message that can be decoded must print, and parse back to the same message. The first byte
 * selects the kind of message. */
#include <onx/text.h>

#include <stdlib.h>
#include <string.h>

#include "fuzz_buffer.h"

#include "../tests/unit/text_normal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const onx_kind kinds[] = { ONX_KIND_MODEL,  ONX_KIND_GRAPH,     ONX_KIND_NODE, ONX_KIND_FUNCTION,
                                      ONX_KIND_TENSOR, ONX_KIND_ATTRIBUTE, ONX_KIND_TYPE, ONX_KIND_VALUE_INFO };
    if (size < 1)
        return 0;
    onx_kind kind = kinds[data[0] & 7];
    onx_ctx *cx = onx_ctx_new(NULL);
    if (!cx)
        return 0;
    onx_doc *doc = NULL, *again = NULL;
    fuzz_buffer text = { 0 };
    if (onx_read(cx, kind, onx_str_make((const char *)data + 1, size - 1), 0, 1, &doc) == ONX_OK) {
        onx_status status = onx_text_print(cx, kind, onx_doc_root(doc, kind), NULL, (onx_sink){ fuzz_append, &text });
        fuzz_must(status == ONX_OK || status == ONX_E_LIMIT);
        if (status == ONX_OK) {
            status = onx_text_parse(cx, kind, onx_str_make(text.ptr, text.len), ONX_TEXT_BORROW, &again);
            fuzz_must(status == ONX_OK || status == ONX_E_LIMIT);
        }
        if (status == ONX_OK) {
            text_normal(cx, kind, onx_doc_root(doc, kind));
            text_normal(cx, kind, onx_doc_root(again, kind));
            fuzz_must(onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(again, kind)));
        }
    }
    onx_doc_free(again);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    free(text.ptr);
    return 0;
}
