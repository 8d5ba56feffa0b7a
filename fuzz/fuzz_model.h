/* fuzz_model.h - shared by targets that process models: the first byte selects the options, the rest is a model, which
 * is written after the work has succeeded. */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include <onx/io.h>

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_model(const uint8_t *data, size_t size,
                             onx_status (*work)(onx_ctx *, onx_doc *, unsigned choice))
{
    if (size == 0)
        return 0;
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_buffer buffer;
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = UINT64_C(1) << 30;
    onx_ctx_set_limits(cx, limits);
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make((const char *)data + 1, size - 1), 0, 1, &doc) == ONX_OK) {
        if (work(cx, doc, data[0]) == ONX_OK && onx_write(cx, ONX_KIND_MODEL, onx_doc_model(doc), 0, &buffer) == ONX_OK)
            onx_buffer_free(&buffer);
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
    return 0;
}

#endif
