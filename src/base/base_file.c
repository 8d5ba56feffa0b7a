/* base_file.c - reads the bytes of a file: maps a regular file, and reads standard input, or a FIFO if requested. Other
 * files are not opened, so that no name can block the reader or supply an endless stream. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_CHUNK ((size_t)1 << 16)

static onx_status fail(onx_ctx *cx, const char *path, const char *doing, int error)
{
    char reason[128];
    return onxi_fail(cx, ONX_E_IO, ONXI_NOWHERE, "cannot %s %s: %s", doing, path,
                     onxi_error_text(error, reason, sizeof reason));
}

const char *onxi_error_text(int error, char *buf, size_t size)
{
#ifdef __GLIBC__
    return strerror_r(error, buf, size); /* the GNU variant may return a pointer to static memory */
#else
    return strerror_r(error, buf, size) == 0 ? buf : "unknown error";
#endif
}

const char *onxi_mode_name(unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "a regular file";
    case S_IFDIR:
        return "a directory";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
        return "a character device";
    case S_IFBLK:
        return "a block device";
    default:
        return "no regular file";
    }
}

/* Reads to the end; the context's memory limit bounds the size. */
onx_status onxi_file_load(onx_ctx *cx, int fd, size_t expected, const char *shown, onxi_file *out)
{
    uint64_t limit = onx_ctx_limits(cx).memory;
    size_t room = 0, have = 0;
    char *buf = NULL;
    onx_status status = ONX_OK;
    memset(out, 0, sizeof *out);
    for (;;) {
        if ((status = onxi_ctx_go_on(cx)) != ONX_OK)
            break;
        if (have == room) {
            if (room >= limit) {
                status = onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "%s is longer than the memory limit of %llu bytes",
                                   shown, (unsigned long long)limit);
                break;
            }
            /* one byte more than expected, so that the end is detected without growing the buffer */
            const uint64_t first = expected < FIRST_CHUNK ? (uint64_t)FIRST_CHUNK : (uint64_t)expected + 1;
            if (!ONXI_GROW(cx, buf, room, room ? (uint64_t)room + 1 : first)) {
                status = ONX_E_MEMORY;
                break;
            }
        }
        ssize_t got = read(fd, buf + have, room - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = fail(cx, shown, "read", errno);
            break;
        }
        if (got == 0)
            break;
        have += (size_t)got;
    }
    if (status != ONX_OK || have == 0) {
        onxi_release(cx, buf, room);
        out->bytes = onx_str_make("", 0);
        return status;
    }
    out->heap = buf;
    out->heap_size = room;
    out->bytes = onx_str_make(buf, have);
    return ONX_OK;
}

onx_status onxi_file_map(onx_ctx *cx, int fd, uint64_t size, const char *shown, onxi_file *out)
{
    memset(out, 0, sizeof *out);
    if (size > SIZE_MAX / 2)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "%s has %llu bytes, more than this machine can address", shown,
                         (unsigned long long)size);
    if (size > 0) {
        void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            struct stat st;
            if (fstat(fd, &st) == 0 && (uint64_t)st.st_blocks < size / 512)
                out->holes = onxi_platform_same_file(fd) + 1;
            out->map = map;
            out->map_size = (size_t)size;
            out->bytes = onx_str_make(map, (size_t)size);
            return ONX_OK;
        }
    }
    /* The file is empty, or is a virtual file that reports size 0 or cannot be mapped. */
    return onxi_file_load(cx, fd, (size_t)size, shown, out);
}

/* From here on, opening blocks: a FIFO without a writer would otherwise look like an empty file. */
static onx_status await_writer(onx_ctx *cx, const char *path, int fd)
{
    struct pollfd wanted = { .fd = fd, .events = POLLIN };
    const int flags = fcntl(fd, F_GETFL);
    while (poll(&wanted, 1, -1) < 0)
        if (errno != EINTR)
            return fail(cx, path, "wait for", errno);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return fail(cx, path, "read", errno);
    return ONX_OK;
}

/* a stream has the id 0 */
static onx_status open_path(onx_ctx *cx, const char *path, bool streams, int *fd_out, uint64_t *size_out,
                            onxi_file_id *id_out)
{
    /* O_NONBLOCK: opening a FIFO without a writer must not block before its type has been checked */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return fail(cx, path, "open", errno);
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int error = errno;
        close(fd);
        return fail(cx, path, "look at", error);
    }
    if (S_ISFIFO(st.st_mode) && streams) {
        *fd_out = fd;
        *size_out = 0;
        *id_out = (onxi_file_id){ 0 };
        onx_status status = await_writer(cx, path, fd);
        if (status != ONX_OK)
            close(fd);
        return status;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_IO };
        if (!S_ISDIR(st.st_mode))
            diag.hint = onx_str_of("give - to read standard input");
        onxi_report(cx, &diag, "cannot read %s: it is %s, not a regular file", path, onxi_mode_name(st.st_mode));
        return ONX_E_IO;
    }
    *fd_out = fd;
    *size_out = (uint64_t)st.st_size;
    *id_out = onxi_file_id_of(&st);
    return ONX_OK;
}

static onx_status open_stdin(onx_ctx *cx, bool map, onxi_file *out)
{
    static const char shown[] = "standard input";
    struct stat st;
    memset(out, 0, sizeof *out);
    if (fstat(STDIN_FILENO, &st) != 0)
        return fail(cx, shown, "read", errno);
    const onxi_file_id id = S_ISREG(st.st_mode) ? onxi_file_id_of(&st) : (onxi_file_id){ 0 };
    if (S_ISREG(st.st_mode))
        ONX_TRY(onxi_guard_read(cx, id, onx_str_of(shown)));
    onx_status status;
    if (map && S_ISREG(st.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        status = onxi_file_map(cx, STDIN_FILENO, (uint64_t)st.st_size, shown, out);
    else
        status = onxi_file_load(cx, STDIN_FILENO, 0, shown, out);
    out->id = id;
    return status;
}

onx_status onxi_file_take(onx_ctx *cx, const char *path, unsigned flags, onxi_file *out)
{
    const bool map = (flags & ONXI_FILE_MAP) != 0;
    memset(out, 0, sizeof *out);
    if (strcmp(path, "-") == 0)
        return open_stdin(cx, map, out);
    int fd = -1;
    uint64_t size = 0;
    onxi_file_id id = { 0 };
    ONX_TRY(open_path(cx, path, (flags & ONXI_FILE_STREAM) != 0, &fd, &size, &id));
    onx_status status = id.inode ? onxi_guard_read(cx, id, onx_str_of(path)) : ONX_OK;
    if (status == ONX_OK && map && id.inode)
        status = onxi_file_map(cx, fd, size, path, out);
    else if (status == ONX_OK)
        status = onxi_file_load(cx, fd, size < SIZE_MAX ? (size_t)size : SIZE_MAX, path, out);
    close(fd);
    out->id = id;
    return status;
}

onx_status onxi_file_open(onx_ctx *cx, const char *path, onxi_file *out)
{
    return onxi_file_take(cx, path, ONXI_FILE_MAP, out);
}

onx_status onxi_file_read(onx_ctx *cx, const char *path, onxi_file *out)
{
    return onxi_file_take(cx, path, 0, out);
}

void onxi_file_forget(const onxi_file *file, onx_str bytes)
{
    if (!file->map || bytes.len == 0)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t low = (uintptr_t)file->map, high = low + file->map_size;
    uintptr_t from = (uintptr_t)bytes.ptr, to = from + bytes.len;
    if (from < low || to > high)
        return;
    /* Extends the range to whole pages. Dropping a neighbouring byte costs reading it again, but keeping the partial
     * pages of many small pieces would keep much of the memory. */
    from = from / page * page;
    to = to > high - page ? high : (to + page - 1) / page * page;
    if (from < to)
        onxi_platform_advise_unneeded((void *)from, to - from);
}

size_t onxi_file_hole(const onxi_file *file, onx_str bytes)
{
    uintptr_t low = (uintptr_t)file->map, from = (uintptr_t)bytes.ptr;
    if (!file->holes || from < low || from + bytes.len > low + file->map_size)
        return 0;
    const int64_t at = (int64_t)(from - low), data = onxi_platform_data_after(file->holes - 1, at);
    if (data < 0)
        return errno == ENXIO ? bytes.len : 0; /* ENXIO: no data up to the end of the file */
    return data - at < (int64_t)bytes.len ? (size_t)(data - at) : bytes.len;
}

void onxi_file_read_ahead(const onxi_file *file)
{
    if (file->map)
        onxi_platform_advise_sequential(file->map, file->map_size);
}

void onxi_file_close(onx_ctx *cx, onxi_file *file)
{
    if (file->map)
        munmap(file->map, file->map_size);
    if (file->holes)
        close(file->holes - 1);
    onxi_late_close(cx, file->late);
    onxi_release(cx, file->heap, file->heap_size);
    memset(file, 0, sizeof *file);
}
