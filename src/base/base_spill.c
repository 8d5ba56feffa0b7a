/* base_spill.c - bytes that are made from what is in files and would not fit into memory: they go to a file without a
 * name beside the result, and are read from there as those of any mapped file. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static onx_status fail(onx_ctx *cx, const char *doing)
{
    char reason[128];
    return onxi_fail(cx, ONX_E_IO, ONXI_NOWHERE, "cannot %s a temporary file: %s", doing,
                     onxi_error_text(errno, reason, sizeof reason));
}

/* Where a file system has no files without names, one that loses its name at once. */
static int open_named(const char *dir)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/.onx-XXXXXX", dir);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

onx_status onxi_spill_open(onx_ctx *cx, const char *dir, onxi_spill *out)
{
    *out = (onxi_spill){ .fd = -1 };
    const int folder = open(dir, onxi_platform_folder_flags());
    if (folder >= 0) {
        out->fd = onxi_platform_open_nameless(folder, O_RDWR, 0600);
        close(folder);
    }
    if (out->fd < 0)
        out->fd = open_named(dir);
    return out->fd < 0 ? fail(cx, "make") : ONX_OK;
}

static bool is_zero(onx_str bytes)
{
    return bytes.len && bytes.ptr[0] == 0 && memcmp(bytes.ptr, bytes.ptr + 1, bytes.len - 1) == 0;
}

onx_status onxi_spill_write(onx_ctx *cx, onxi_spill *spill, onx_str bytes)
{
    if (bytes.len > (uint64_t)INT64_MAX - spill->size)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "a temporary file would be larger than files can be");
    for (size_t at = 0; !is_zero(bytes) && at < bytes.len;) {
        const ssize_t n = pwrite(spill->fd, bytes.ptr + at, bytes.len - at, (off_t)(spill->size + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(cx, "write");
        at += (size_t)n;
    }
    spill->size += bytes.len;
    return ONX_OK;
}

onx_status onxi_spill_map(onx_ctx *cx, onxi_spill *spill, onxi_file *out)
{
    onx_status status = ONX_OK;
    memset(out, 0, sizeof *out);
    if (ftruncate(spill->fd, (off_t)spill->size)) /* zeros at the end were not written */
        status = fail(cx, "extend");
    if (status == ONX_OK)
        status = onxi_file_map(cx, spill->fd, spill->size, "a temporary file", out);
    onxi_spill_close(spill);
    return status;
}

void onxi_spill_close(onxi_spill *spill)
{
    if (spill->fd >= 0)
        close(spill->fd);
    *spill = (onxi_spill){ .fd = -1 };
}
