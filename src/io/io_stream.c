/* io_stream.c - writing what lies in mapped files without letting it pile up in the memory of the process. */
#include "io/io.h"

enum { WINDOW = 4 << 20 };

/* Bytes that follow those read before are given back together, every few megabytes. */
static void pass(onxi_stream *s, onx_str bytes)
{
    if (!s->doc)
        return;
    if (s->behind.len && s->behind.ptr + s->behind.len <= bytes.ptr &&
        bytes.ptr - (s->behind.ptr + s->behind.len) < WINDOW) {
        s->behind.len = (size_t)(bytes.ptr + bytes.len - s->behind.ptr);
    } else {
        onxi_doc_forget(s->doc, s->behind);
        s->behind = bytes;
    }
    if (s->behind.len >= WINDOW) {
        onxi_doc_forget(s->doc, s->behind);
        s->behind.len = 0;
    }
}

onx_status onxi_stream_write(void *stream, onx_str bytes)
{
    onxi_stream *s = stream;
    while (bytes.len) {
        onx_str part = onx_str_make(bytes.ptr, bytes.len < WINDOW ? bytes.len : WINDOW);
        ONX_TRY(onxi_output_write(s->output, part));
        if (s->hash)
            onxi_sha1_add(s->hash, part);
        pass(s, part);
        bytes = onx_str_make(bytes.ptr + part.len, bytes.len - part.len);
    }
    return ONX_OK;
}

onx_sink onxi_stream_sink(onxi_stream *stream)
{
    return (onx_sink){ onxi_stream_write, stream };
}
