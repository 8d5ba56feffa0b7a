/* io_stream.c - writes data from mapped files without accumulating it in memory. */
#include "io/io.h"

enum {
    WINDOW = 4 << 20,
    PAYLOAD = 4096 /* smaller pieces come from the writer's buffer */
};

/* Contiguous bytes are dropped together, every few megabytes. */
static void pass(onxi_io_stream *s, onx_str bytes)
{
    if (!s->doc || bytes.len < PAYLOAD)
        return;
    if (s->behind.len && onxi_str_end(s->behind) <= bytes.ptr && bytes.ptr - onxi_str_end(s->behind) < WINDOW) {
        s->behind.len = (size_t)(onxi_str_end(bytes) - s->behind.ptr);
    } else {
        onxi_doc_forget(s->doc, s->behind);
        s->behind = bytes;
    }
    if (s->behind.len >= WINDOW) {
        onxi_doc_forget(s->doc, s->behind);
        s->behind.len = 0;
    }
}

onx_status onxi_io_stream_skip(onxi_io_stream *s, uint64_t count)
{
    static const char zeros[1 << 16];
    for (uint64_t left = s->hash ? count : 0; left;) {
        size_t n = left < sizeof zeros ? (size_t)left : sizeof zeros;
        onxi_sha1_add(s->hash, onx_str_make(zeros, n));
        left -= n;
    }
    return onxi_output_skip(s->output, count);
}

onx_status onxi_io_stream_write(void *stream, onx_str bytes)
{
    onxi_io_stream *s = stream;
    while (bytes.len) {
        size_t hole = s->doc && bytes.len >= WINDOW / 4 ? onxi_doc_hole(s->doc, bytes) : 0;
        onx_str part = onx_str_make(bytes.ptr, hole ? hole : bytes.len < WINDOW ? bytes.len : WINDOW);
        if (hole) {
            ONX_TRY(onxi_io_stream_skip(s, hole)); /* nothing is read */
        } else {
            ONX_TRY(onxi_output_write(s->output, part));
            if (s->hash)
                onxi_sha1_add(s->hash, part);
            pass(s, part);
        }
        bytes = onx_str_make(bytes.ptr + part.len, bytes.len - part.len);
    }
    return ONX_OK;
}

onx_sink onxi_io_stream_sink(onxi_io_stream *stream)
{
    return (onx_sink){ onxi_io_stream_write, stream };
}
