/* fuzz_read.c - takes any bytes as a message of any kind. Reading is safe, with one thread and with several; a message
 * that can be read is written, read again, and must be equal. The first byte selects the kind. */
#include <onx/io.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    onx_kind kind = (onx_kind)(1 + data[0] % (ONX_KIND_COUNT - 1));
    uint32_t flags = data[0] >= 128 ? ONX_READ_LENIENT : 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 256 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc, *again;
    if (onx_read(cx, kind, onx_str_make((const char *)data + 1, size - 1), flags, 1, &doc) == ONX_OK) {
        onx_buffer out, out2;
        if (onx_write(cx, kind, onx_doc_root(doc, kind), size, &out) != ONX_OK)
            abort();
        if (onx_read(cx, kind, onx_str_make(out.ptr, out.len), flags, 1, &again) != ONX_OK)
            abort();
        if (onx_write(cx, kind, onx_doc_root(again, kind), 0, &out2) != ONX_OK || out.len != out2.len ||
            (out.len && memcmp(out.ptr, out2.ptr, out.len) != 0))
            abort();
        if (!onx_message_equal(kind, onx_doc_root(doc, kind), onx_doc_root(again, kind)))
            abort();
        void *copy;
        if (onx_message_copy(onx_doc_arena(doc), kind, onx_doc_root(doc, kind), &copy) == ONX_OK &&
            !onx_message_equal(kind, onx_doc_root(doc, kind), copy))
            abort();
        onx_buffer_free(&out);
        onx_buffer_free(&out2);
        onx_doc_free(again);
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
    return 0;
}
