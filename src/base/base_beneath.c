/* base_beneath.c - opens files with untrusted names: always below a given folder, and never through a link unless
 * requested. The kernel resolves the path if it can (openat2); otherwise this file does, one component at a time. Both
 * refuse the same paths. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct attempt {
    onx_ctx *cx;
    onx_where where;
    int dir;
    onx_str path;
} attempt;

static onx_status refuse(const attempt *a, const char *rule, const char *format, ...) ONX_PRINTF(3, 4);
static onx_status refuse(const attempt *a, const char *rule, const char *format, ...)
{
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_INVALID, .rule = rule, .where = a->where };
    va_list args;
    va_start(args, format);
    onxi_vreport(a->cx, &diag, format, args);
    va_end(args);
    return ONX_E_INVALID;
}

/* The same for a file that would be accepted if links were allowed. */
static onx_status refuse_link(const attempt *a, const char *rule, const char *format, ...) ONX_PRINTF(3, 4);
static onx_status refuse_link(const attempt *a, const char *rule, const char *format, ...)
{
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_INVALID, .rule = rule, .where = a->where };
    diag.hint = onx_str_of("allow links, if the folder is trusted");
    va_list args;
    va_start(args, format);
    onxi_vreport(a->cx, &diag, format, args);
    va_end(args);
    return ONX_E_INVALID;
}

/* Decides the wording of the message after a file was refused because of a link: would following it leave the folder?
 * For a dangling link, the missing path is examined. */
static bool leads_outside(const attempt *a)
{
    char root[PATH_MAX], name[PATH_MAX], target[PATH_MAX];
    if (!onxi_platform_path_of(a->dir, name, sizeof name) || !realpath(name, root))
        return false;
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    int n = snprintf(name, sizeof name, "%.*s/%.*s", (int)len, root, ONX_ARG(a->path));
    target[0] = 0;
    if (n < 0 || (size_t)n >= sizeof name || (!realpath(name, target) && errno != ENOENT) || !target[0])
        return false;
    return strncmp(target, root, len) != 0 || (target[len] && target[len] != '/');
}

/* Failures of the machine or of permissions, which are no fault of the model. */
static bool is_of_system(int error)
{
    return error == EACCES || error == EPERM || error == EIO || error == ENOMEM || error == EMFILE || error == ENFILE;
}

static onx_status refuse_errno(const attempt *a, int error)
{
    char reason[128];
    if (is_of_system(error)) {
        onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_IO, .rule = "E-09", .where = a->where };
        onxi_report(a->cx, &diag, "cannot open %.*s: %s", ONX_ARG(a->path),
                    onxi_error_text(error, reason, sizeof reason));
        return ONX_E_IO;
    }
    if (error == ELOOP && leads_outside(a))
        return refuse_link(a, "E-07", "%.*s leads out of the model's folder through a symbolic link", ONX_ARG(a->path));
    if (error == ELOOP)
        return refuse_link(a, "E-08", "external data is not read through symbolic links, and %.*s has one",
                           ONX_ARG(a->path));
    if (error == EXDEV)
        return refuse(a, "E-07", "%.*s leads out of the model's folder", ONX_ARG(a->path));
    return refuse(a, "E-09", "cannot open %.*s: %s", ONX_ARG(a->path), onxi_error_text(error, reason, sizeof reason));
}

/* Splits off the next component; empty components and "." are skipped. False at the end. */
static bool next_component(onx_str *rest, onx_str *part)
{
    while (rest->len) {
        const char *slash = memchr(rest->ptr, '/', rest->len);
        size_t len = slash ? (size_t)(slash - rest->ptr) : rest->len, taken = slash ? len + 1 : len;
        *part = onx_str_make(rest->ptr, len);
        *rest = onx_str_make(rest->ptr + taken, rest->len - taken);
        if (len && !onx_str_is(*part, "."))
            return true;
    }
    return false;
}

/* The component as a C string; false if it must not be opened. */
static bool name_of(onx_str part, char name[NAME_MAX + 1])
{
    if (part.len > NAME_MAX || memchr(part.ptr, 0, part.len) || onx_str_is(part, ".."))
        return false;
    memcpy(name, part.ptr, part.len);
    name[part.len] = 0;
    return true;
}

/* Opens a folder that is not a link; with ONXI_BENEATH_MAKE creates it if needed. -1 with errno set. */
static int open_folder(int dir, const char *name, bool make)
{
    int fd = openat(dir, name, onxi_platform_folder_flags() | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && make && (mkdirat(dir, name, 0777) == 0 || errno == EEXIST))
        fd = openat(dir, name, onxi_platform_folder_flags() | O_NOFOLLOW);
    if (fd < 0 && errno == ENOTDIR) {
        struct stat st;
        errno = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
    }
    return fd;
}

/* Walks to the folder that contains the last component; the component's name is copied to `name`, and `leaf` is its
 * position in the path. */
static onx_status walk(const attempt *a, int dir, bool make, int *folder_out, onx_str *leaf, char name[NAME_MAX + 1])
{
    onx_str rest = a->path, next;
    int at = onxi_platform_same_file(dir);
    *folder_out = -1;
    if (at < 0)
        return refuse_errno(a, errno);
    if (rest.len == 0 || rest.ptr[0] == '/' || !next_component(&rest, leaf) || !name_of(*leaf, name)) {
        close(at);
        return refuse(a, "E-04", "%.*s is not a path below the model's folder", ONX_ARG(a->path));
    }
    while (next_component(&rest, &next)) {
        int below = open_folder(at, name, make), error = errno;
        close(at);
        if (below < 0)
            return refuse_errno(a, error);
        at = below;
        *leaf = next;
        if (!name_of(next, name)) {
            close(at);
            return refuse(a, "E-04", "%.*s is not a path below the model's folder", ONX_ARG(a->path));
        }
    }
    *folder_out = at;
    return ONX_OK;
}

#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC)

/* Copies with a terminating zero; false with errno set. */
static bool copy_path(onx_str path, char text[PATH_MAX])
{
    if (path.len >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(text, path.ptr, path.len);
    text[path.len] = 0;
    return true;
}

/* -1 with errno set; ENOSYS if the kernel does not support the call. */
static int open_by_kernel(int dir, onx_str path)
{
    char text[PATH_MAX];
    if (!copy_path(path, text))
        return -1;
    return onxi_platform_open_beneath(dir, text, READ_FLAGS);
}

/* Is the path relative, without ".."? */
static bool is_below(onx_str path)
{
    onx_str rest = path, part;
    if (path.ptr[0] == '/')
        return false;
    while (next_component(&rest, &part))
        if (onx_str_is(part, ".."))
            return false;
    return true;
}

/* Follows all links; -1 with errno set. */
static int open_through_links(int dir, onx_str path)
{
    char text[PATH_MAX];
    if (!copy_path(path, text))
        return -1;
    return openat(dir, text, READ_FLAGS & ~O_NOFOLLOW);
}

static onx_status open_stepwise(const attempt *a, int dir, int *fd_out)
{
    char name[NAME_MAX + 1];
    onx_str leaf;
    int folder;
    ONX_TRY(walk(a, dir, false, &folder, &leaf, name));
    int fd = openat(folder, name, READ_FLAGS);
    int error = errno;
    close(folder);
    if (fd < 0)
        return refuse_errno(a, error);
    *fd_out = fd;
    return ONX_OK;
}

onx_status onxi_beneath_open(onx_ctx *cx, onx_where where, int dir, onx_str path, unsigned flags, int *fd_out,
                             uint64_t *size_out)
{
    attempt a = { cx, where, dir, path };
    *fd_out = -1;
    if (path.len == 0 || memchr(path.ptr, 0, path.len))
        return refuse(&a, "E-06", "the path is empty or holds a zero byte");
    int fd = -1, error = ENOSYS;
    const bool links = (flags & ONXI_BENEATH_LINKS) != 0;
    if (links && !is_below(path))
        return refuse(&a, "E-04", "%.*s is not a path below the model's folder", ONX_ARG(path));
    if (links && (fd = open_through_links(dir, path)) < 0)
        return refuse_errno(&a, errno);
    if (!links && !(flags & ONXI_BENEATH_STEPWISE)) {
        fd = open_by_kernel(dir, path);
        error = errno;
    }
    /* Old kernels do not have the call, and sandboxes often forbid calls that they do not know. */
    if (fd < 0 && (error == ENOSYS || error == EPERM || error == E2BIG || error == EINVAL))
        ONX_TRY(open_stepwise(&a, dir, &fd));
    else if (fd < 0)
        return refuse_errno(&a, error);
    struct stat st;
    onx_status status = ONX_OK;
    if (fstat(fd, &st) != 0)
        status = refuse_errno(&a, errno);
    else if (!S_ISREG(st.st_mode))
        status = refuse(&a, "E-09", "%.*s is %s, not a regular file", ONX_ARG(path), onxi_mode_name(st.st_mode));
    else if (st.st_nlink != 1 && !links)
        status = refuse_link(&a, "E-10", "%.*s has %llu hard links; only one is allowed", ONX_ARG(path),
                             (unsigned long long)st.st_nlink);
    else
        status = onxi_guard_read(cx, onxi_file_id_of(&st), path);
    if (status != ONX_OK) {
        close(fd);
        return status;
    }
    *fd_out = fd;
    *size_out = (uint64_t)st.st_size;
    return ONX_OK;
}

onx_status onxi_beneath_folder(onx_ctx *cx, onx_where where, int dir, onx_str path, unsigned flags, int *folder_out,
                               onx_str *leaf_out)
{
    attempt a = { cx, where, dir, path };
    char name[NAME_MAX + 1];
    return walk(&a, dir, (flags & ONXI_BENEATH_MAKE) != 0, folder_out, leaf_out, name);
}
