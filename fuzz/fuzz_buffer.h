/* fuzz_buffer.h - output collected in memory, and assertions, for fuzz targets. */
#ifndef FUZZ_BUFFER_H
#define FUZZ_BUFFER_H

#include <onx/base.h>

#include <stdlib.h>

typedef struct fuzz_buffer {
    char *ptr;
    size_t len, room;
} fuzz_buffer;

/* An onx_sink's write; `user` is a fuzz_buffer. */
static inline onx_status fuzz_append(void *user, onx_str bytes)
{
    fuzz_buffer *b = user;
    if (b->room - b->len < bytes.len) {
        b->room = 2 * (b->room + bytes.len);
        b->ptr = realloc(b->ptr, b->room);
        if (!b->ptr)
            abort();
    }
    if (bytes.len)
        memcpy(b->ptr + b->len, bytes.ptr, bytes.len);
    b->len += bytes.len;
    return ONX_OK;
}

static inline void fuzz_must(int condition)
{
    if (!condition)
        abort();
}

#endif
