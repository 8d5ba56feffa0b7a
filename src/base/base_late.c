/* base_late.c - on systems without mappings: a file is represented by untouched memory of its size, and bytes are read
 * into it on demand. Weights that are only packed are read past that memory, in pieces, so that they are never in
 * memory as a whole. This also avoids touching fresh memory, which costs more than reading the bytes. */
#include "base/base_late.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    LEAST = 1 << 16, /* smaller files are read at once (web/npm/lib/weights.js relies on it) */
    BLOCK = 1 << 16, /* bytes that are read together */
};

struct onxi_late {
    int fd;
    atomic_bool broken;    /* some bytes could not be read */
    size_t blocks, room;   /* room: size of this struct in bytes */
    const char *shown;     /* name of the file for messages */
    unsigned char there[]; /* per block: has it been read? The name follows */
};

onx_status onxi_late_open(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out)
{
    memset(out, 0, sizeof *out);
    const uint64_t limit = onx_ctx_limits(cx).memory;
    if (size > limit)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "%s has %llu bytes, more than the memory limit of %llu", shown,
                         (unsigned long long)size, (unsigned long long)limit);
    const size_t blocks = (size_t)((size + BLOCK - 1) / BLOCK), named = strlen(shown) + 1;
    struct onxi_late *late = onxi_resize(cx, NULL, 0, sizeof *late + blocks + named);
    char *room = late ? onxi_resize(cx, NULL, 0, size) : NULL;
    const int own = room ? onxi_platform_same_file(fd) : -1, error = errno;
    if (own < 0) {
        char reason[128];
        onxi_release(cx, late, sizeof *late + blocks + named);
        if (!room)
            return ONX_E_MEMORY;
        onxi_release(cx, room, (size_t)size);
        return onxi_fail(cx, ONX_E_IO, ONXI_NOWHERE, "cannot keep %s open: %s", shown,
                         onxi_error_text(error, reason, sizeof reason));
    }
    char *name = (char *)late->there + blocks;
    *late = (struct onxi_late){ .fd = own, .blocks = blocks, .room = sizeof *late + blocks + named, .shown = name };
    memset(late->there, 0, blocks);
    memcpy(name, shown, named);
    out->late = late;
    out->heap = room;
    out->heap_size = (size_t)size;
    out->bytes = onx_str_make(room, (size_t)size);
    return ONX_OK;
}

onx_status onxi_file_map_late(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out)
{
    if (ONXI_PLATFORM_PAGES || size < LEAST || size > SIZE_MAX / 2) /* systems with pages map files instead */
        return onxi_file_map(cx, fd, size, shown, out);
    return onxi_late_open(cx, fd, size, shown, out);
}

void onxi_late_close(onx_ctx *cx, struct onxi_late *late)
{
    if (!late)
        return;
    close(late->fd);
    onxi_release(cx, late, late->room);
}

/* False with errno set; ENODATA if the file has become shorter. */
static bool read_at(const struct onxi_late *late, uint64_t from, size_t size, char *out)
{
    while (size) {
        const ssize_t got = pread(late->fd, out, size, (off_t)from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : ENODATA;
            return false;
        }
        out += got;
        from += (size_t)got;
        size -= (size_t)got;
    }
    return true;
}

onx_status onxi_file_need(onx_ctx *cx, onx_where where, const onxi_file *file, onx_str bytes)
{
    struct onxi_late *late = file->late;
    if (!late || bytes.len == 0)
        return ONX_OK;
    char *room = file->heap;
    const size_t at = (size_t)(bytes.ptr - room), last = (at + bytes.len - 1) / BLOCK;
    for (size_t i = at / BLOCK; i <= last; i++) {
        size_t end = i;
        while (end <= last && !late->there[end])
            end++;
        if (end == i)
            continue;
        const size_t from = i * BLOCK, to = end < late->blocks ? end * BLOCK : file->heap_size;
        char reason[128];
        if (!read_at(late, from, to - from, room + from))
            return onxi_fail(cx, ONX_E_IO, where, "%zu bytes of %s cannot be read from offset %zu: %s", to - from,
                             late->shown, from, onxi_error_text(errno, reason, sizeof reason));
        memset(late->there + i, 1, end - i);
        i = end - 1;
    }
    return ONX_OK;
}

void onxi_file_copy(const onxi_file *file, const char *from, size_t size, void *out)
{
    struct onxi_late *late = file->late;
    const size_t at = (size_t)(from - (const char *)file->bytes.ptr);
    if (!late) {
        memcpy(out, from, size);
    } else if (!read_at(late, at, size, out)) {
        memset(out, 0, size);
        atomic_store_explicit(&late->broken, true, memory_order_relaxed);
    }
}

const char *onxi_file_broken(const onxi_file *file)
{
    return file->late && atomic_load_explicit(&file->late->broken, memory_order_relaxed) ? file->late->shown : NULL;
}
