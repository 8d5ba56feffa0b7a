/* text_formats.h - for tests of protobuf text and JSON: writing to memory, and both formats through one interface. */
#ifndef TEXT_FORMATS_H
#define TEXT_FORMATS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <onx/io.h>

#include "ir/ir.h"
#include "unit/scarce.h"

typedef struct text_buffer {
    char *ptr;
    size_t len, room;
} text_buffer;

static inline onx_status text_append(void *user, onx_str bytes)
{
    text_buffer *b = user;
    if (b->room - b->len < bytes.len) {
        b->room = 2 * b->room + bytes.len + 1024;
        b->ptr = realloc(b->ptr, b->room);
        assert_non_null(b->ptr);
    }
    if (bytes.len)
        memcpy(b->ptr + b->len, bytes.ptr, bytes.len);
    b->len += bytes.len;
    return ONX_OK;
}

static inline onx_sink text_sink(text_buffer *b)
{
    return (onx_sink){ text_append, b };
}
static inline onx_str text_view(const text_buffer *b)
{
    return onx_str_make(b->ptr, b->len);
}

typedef onx_status (*text_writer)(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink);
typedef onx_status (*text_reader)(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out);

/* Prints what went wrong when a call that must succeed did not. */
static inline void assert_ok(onx_ctx *cx, onx_status status)
{
    char line[1024];
    if (status == ONX_OK)
        return;
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        onx_diag_format(onx_diag_get(cx, i), line, sizeof line);
        print_error("%s\n", line);
    }
    fail_msg("%s", onx_status_text(status));
}

static inline void assert_text(onx_str got, onx_str want)
{
    if (!onx_str_equal(got, want))
        fail_msg("got:\n%.*s\nexpected:\n%.*s", ONX_ARG(got), ONX_ARG(want));
}

/* The canonical text of what `text` reads as. */
static inline void assert_rewrites(text_reader read, text_writer write, onx_kind kind, onx_str text, onx_str want)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    text_buffer b = { 0 };
    assert_ok(cx, read(cx, kind, text, &doc));
    assert_ok(cx, write(cx, kind, doc->root, text_sink(&b)));
    assert_text(text_view(&b), want);
    free(b.ptr);
    onx_doc_free(doc);
    onx_ctx_free(cx);
}

/* Reading fails with this diagnostic, as onx_diag_format prints it; NULL: with any. */
static inline void assert_refuses(text_reader read, onx_kind kind, onx_str text, onx_status status, const char *want)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc = NULL;
    char line[1024] = "";
    onx_status got = read(cx, kind, text, &doc);
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
    if (got != status || doc || (want && strcmp(line, want) != 0))
        fail_msg("%.*s\ngot (%s): %s\nexpected (%s): %s", ONX_ARG(text), onx_status_text(got), line,
                 onx_status_text(status), want ? want : "any");
    onx_ctx_free(cx);
}

/* Reading and writing with each allocation failing in turn: they say so, and nothing stays behind. */
static inline void assert_survives_scarcity(text_reader read, text_writer write, onx_kind kind, onx_str text)
{
    bool failed = true;
    for (unsigned n = 2; failed; n++) { /* the first one is the context's */
        scarce_memory m = { .failing = n };
        onx_ctx *cx = onx_ctx_new(&(onx_allocator){ scarce_resize, &m });
        onx_doc *doc = NULL;
        text_buffer b = { 0 };
        onx_status status = read(cx, kind, text, &doc);
        if (status == ONX_OK)
            status = write(cx, kind, doc->root, text_sink(&b));
        failed = m.calls >= n;
        assert_int_equal(status, failed ? ONX_E_MEMORY : ONX_OK);
        onx_doc_free(doc);
        onx_ctx_free(cx);
        assert_int_equal(m.in_use, 0);
        free(b.ptr);
        assert_true(n < 10000);
    }
}

/* Messages nested as deep as the largest limit, read and written again. */
static inline void assert_nests(text_reader read, text_writer write, const char *open, const char *middle,
                                const char *close)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.depth = ONX_DEPTH_MAX;
    onx_ctx_set_limits(cx, limits);
    text_buffer in = { 0 }, out = { 0 };
    onx_doc *doc;
    for (unsigned i = 0; i < ONX_DEPTH_MAX / 2; i++)
        text_append(&in, onx_str_of(open));
    text_append(&in, onx_str_of(middle));
    for (unsigned i = 0; i < ONX_DEPTH_MAX / 2; i++)
        text_append(&in, onx_str_of(close));
    assert_ok(cx, read(cx, ONX_KIND_TYPE, text_view(&in), &doc));
    assert_ok(cx, write(cx, ONX_KIND_TYPE, doc->root, text_sink(&out)));
    onx_doc_free(doc);
    free(in.ptr);
    free(out.ptr);
    onx_ctx_free(cx);
}

/* Writing fails with this diagnostic. */
static inline void assert_unwritable(text_writer write, onx_kind kind, const void *message, onx_status status,
                                     const char *want)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    char line[1024] = "";
    text_buffer b = { 0 };
    onx_status got = write(cx, kind, message, text_sink(&b));
    if (onx_diag_count(cx))
        onx_diag_format(onx_diag_get(cx, 0), line, sizeof line);
    if (got != status || strcmp(line, want) != 0)
        fail_msg("got (%s): %s\nexpected (%s): %s", onx_status_text(got), line, onx_status_text(status), want);
    free(b.ptr);
    onx_ctx_free(cx);
}

#endif
