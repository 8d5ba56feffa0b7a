/* fuzz_text.h - reads a text, writes it, and reads and writes that again: both written texts must be equal. The first
 * byte of the input selects the message. */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <onx/io.h>

#include <stdio.h>
#include <stdlib.h>

#include "fuzz_buffer.h"

typedef struct fuzz_format {
    onx_status (*read)(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out);
    onx_status (*write)(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);
} fuzz_format;

static inline void fuzz_require(onx_ctx *cx, bool good, const char *what)
{
    char line[512];
    if (good)
        return;
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        onx_diag_format(onx_diag_get(cx, i), line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    fprintf(stderr, "%s\n", what);
    abort();
}

static inline void fuzz_round(const fuzz_format *format, const uint8_t *data, size_t size)
{
    if (!size)
        return;
    onx_kind kind = (onx_kind)(1 + data[0] % (ONX_KIND_COUNT - 1));
    onx_str text = onx_str_make((const char *)data + 1, size - 1);
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 256 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc, *again;
    fuzz_buffer first = { 0 }, second = { 0 };
    onx_status status = data[0] & 0x80 ? onx_read(cx, kind, text, 0, 1, &doc) : format->read(cx, kind, text, &doc);
    if (status == ONX_OK) {
        status = format->write(cx, kind, onx_doc_root(doc, kind), (onx_sink){ fuzz_append, &first });
        fuzz_require(cx, status == ONX_OK || (data[0] & 0x80 && status == ONX_E_UNSUPPORTED),
                     "what was read cannot be written");
        if (status != ONX_OK)
            onx_doc_free(doc);
    }
    if (status == ONX_OK) {
        fuzz_require(cx, format->read(cx, kind, onx_str_make(first.ptr, first.len), &again) == ONX_OK,
                     "what was written cannot be read");
        fuzz_require(cx,
                     format->write(cx, kind, onx_doc_root(again, kind), (onx_sink){ fuzz_append, &second }) == ONX_OK,
                     "what was read again cannot be written");
        fuzz_require(cx, first.len == second.len && (!first.len || memcmp(first.ptr, second.ptr, first.len) == 0),
                     "the two texts differ");
        onx_doc_free(again);
        onx_doc_free(doc);
    } else {
        fuzz_require(cx, onx_diag_total(cx, ONX_ERROR) != 0, "a failure without its one diagnostic");
    }
    free(first.ptr);
    free(second.ptr);
    onx_ctx_free(cx);
}

#endif
