/* base_output.c - atomic replacement of files: data is written to a temporary file in the same folder, which is synced
 * and then renamed. If anything fails before the rename, the old file is intact (docs/notes/files.md). */
#include "base/base.h"
#include "base/base_ctx.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)1 << 16)
#define LARGE       ((size_t)1 << 14) /* larger pieces bypass the buffer */
#define HOLE        ((size_t)1 << 16) /* longer runs of zeros become holes */

struct onxi_output {
    onx_ctx *cx;
    int fd;
    int dir; /* -1: there is no temporary file */
    bool finished;
    bool unsynced;     /* the data may be lost when the system stops */
    bool sparse;       /* holes are allowed, because the file is our temporary file */
    bool exists;       /* a file of that name existed */
    bool owned;        /* fd has to be closed */
    bool own_dir;      /* dir has to be closed */
    onx_status status; /* the first failure; later calls return the same status */
    uint64_t size;     /* bytes appended so far, including buffered ones */
    uint64_t written;  /* file offset: bytes that have been written from the buffer */
    uint64_t end;      /* length of the file; less than `written` after a hole */
    onxi_guard_write guard;
    onxi_file_id made; /* the new file */
    size_t used;
    size_t shown_size;
    char *shown; /* the name for messages */
    char name[NAME_MAX + 1];
    char temp[NAME_MAX + 1]; /* of the temporary file; empty: it has no name, and disappears when it is closed */
    char *buffer; /* BUFFER_SIZE bytes, freed when all is written, because many files may wait for a common rename */
};

static onx_status fail(onxi_output *o, const char *doing, int error)
{
    char reason[128];
    o->status = onxi_fail(o->cx, ONX_E_IO, ONXI_NOWHERE, "cannot %s %s: %s", doing, o->shown,
                          onxi_error_text(error, reason, sizeof reason));
    return o->status;
}

/* ---- writing ---- */

/* Writes the whole vector, in as many calls as the system needs. */
static onx_status write_vector(onxi_output *o, struct iovec *iov, int count)
{
    while (count > 0) {
        if ((o->status = onxi_ctx_go_on(o->cx)) != ONX_OK)
            return o->status;
        if (iov->iov_len == 0) {
            iov++;
            count--;
            continue;
        }
        ssize_t n = writev(o->fd, iov, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) { /* a terminal or pipe that another process made
                                                                   * non-blocking */
            struct pollfd p = { .fd = o->fd, .events = POLLOUT };
            (void)poll(&p, 1, -1);
            continue;
        }
        if (n < 0 && errno == EFAULT) { /* the data is in a mapped file that has become shorter */
            o->status = onxi_fail(o->cx, ONX_E_IO, ONXI_NOWHERE,
                                  "cannot write %s: a file that is being read was cut short", o->shown);
            return o->status;
        }
        if (n < 0)
            return fail(o, "write", errno);
        o->written += (uint64_t)n;
        o->end = o->written;
        size_t left = (size_t)n;
        while (count > 0 && left >= iov->iov_len) {
            left -= iov->iov_len;
            iov++;
            count--;
        }
        if (left) {
            iov->iov_base = (char *)iov->iov_base + left;
            iov->iov_len -= left;
        }
    }
    return ONX_OK;
}

static onx_status flush_with(onxi_output *o, onx_str more)
{
    struct iovec iov[2] = {
        { o->buffer, o->used }, { (void *)(uintptr_t)more.ptr, more.len }, /* writev does not change what it writes */
    };
    o->used = 0;
    return write_vector(o, iov, 2);
}

/* Leaves a hole: its bytes read as zeros and take no disk space. */
static onx_status leave_hole(onxi_output *o, uint64_t count)
{
    ONX_TRY(flush_with(o, onx_str_make(NULL, 0)));
    uint64_t to;
    if (!onxi_add_u64(o->written, count, &to) || to > INT64_MAX)
        return fail(o, "write", EFBIG);
    if (lseek(o->fd, (off_t)to, SEEK_SET) < 0)
        return fail(o, "write", errno);
    o->written = to;
    return ONX_OK;
}

static bool is_zero(const char *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* Writes a large piece: blocks of zeros become holes, the rest is written directly. */
static onx_status write_large(onxi_output *o, onx_str s)
{
    if (!o->sparse)
        return flush_with(o, s);
    size_t from = 0, at = 0;
    while (at < s.len) {
        size_t step = s.len - at < HOLE ? s.len - at : HOLE;
        if (step < HOLE || !is_zero(s.ptr + at, step)) {
            at += step;
            continue;
        }
        size_t hole = at;
        while (at + HOLE <= s.len && is_zero(s.ptr + at, HOLE))
            at += HOLE;
        ONX_TRY(flush_with(o, onx_str_make(s.ptr + from, hole - from)));
        ONX_TRY(leave_hole(o, at - hole));
        from = at;
    }
    return flush_with(o, onx_str_make(s.ptr + from, s.len - from));
}

onx_status onxi_output_write(onxi_output *o, onx_str bytes)
{
    if (o->status != ONX_OK)
        return o->status;
    if (bytes.len == 0)
        return ONX_OK;
    o->size += bytes.len;
    if (bytes.len >= LARGE)
        return write_large(o, bytes);
    if (bytes.len > BUFFER_SIZE - o->used)
        ONX_TRY(flush_with(o, onx_str_make(NULL, 0)));
    memcpy(o->buffer + o->used, bytes.ptr, bytes.len);
    o->used += bytes.len;
    return ONX_OK;
}

onx_status onxi_output_skip(onxi_output *o, uint64_t count)
{
    static const char zeros[4096];
    if (o->status != ONX_OK)
        return o->status;
    if (o->sparse && count >= HOLE) {
        o->size += count;
        return leave_hole(o, count);
    }
    while (count > 0) {
        size_t n = count < sizeof zeros ? (size_t)count : sizeof zeros;
        ONX_TRY(onxi_output_write(o, onx_str_make(zeros, n)));
        count -= n;
    }
    return ONX_OK;
}

uint64_t onxi_output_size(const onxi_output *o)
{
    return o->size;
}

/* ---- opening ---- */

static onx_status output_new(onx_ctx *cx, const char *shown, onxi_output **out)
{
    onxi_output *o = onxi_resize(cx, NULL, 0, sizeof *o);
    *out = NULL;
    if (!o)
        return ONX_E_MEMORY;
    memset(o, 0, sizeof *o);
    o->cx = cx;
    o->fd = o->dir = -1;
    o->shown_size = strlen(shown) + 1;
    o->shown = onxi_resize(cx, NULL, 0, o->shown_size);
    o->buffer = onxi_resize(cx, NULL, 0, BUFFER_SIZE);
    if (!o->shown || !o->buffer) {
        onxi_output_abandon(o);
        return ONX_E_MEMORY;
    }
    memcpy(o->shown, shown, o->shown_size);
    *out = o;
    return ONX_OK;
}

/* Builds `.name.xxxxxxxxxxxx.tmp`; the name is cut if it would be too long. */
static bool make_temp_name(onxi_output *o)
{
    unsigned char random[6];
    if (!onxi_platform_random(random, sizeof random, true))
        return false;
    int n = snprintf(o->temp, sizeof o->temp, ".%.200s.%02x%02x%02x%02x%02x%02x.tmp", o->name, random[0], random[1],
                     random[2], random[3], random[4], random[5]);
    return n > 0 && (size_t)n < sizeof o->temp;
}

/* Finds a name for the temporary file; `make` creates it and returns like a system call. The watcher is told before the
 * name exists and after it is gone, so that a signal at any moment can remove the file. */
static onx_status name_temp(onxi_output *o, int (*make)(onxi_output *o, mode_t mode), mode_t mode)
{
    const onx_temp_watch *watch = &o->cx->temps;
    for (int attempt = 0; attempt < 100; attempt++) {
        if (!make_temp_name(o))
            break;
        if (watch->made)
            watch->made(watch->user, o->dir, o->temp);
        if (make(o, mode) >= 0)
            return ONX_OK;
        int error = errno;
        if (watch->gone)
            watch->gone(watch->user, o->dir, o->temp);
        o->temp[0] = 0;
        if (error != EEXIST)
            return fail(o, "create a temporary file for", error);
    }
    return fail(o, "name a temporary file for", errno ? errno : ENAMETOOLONG);
}

static void forget_temp(onxi_output *o)
{
    if (o->temp[0] && o->cx->temps.gone)
        o->cx->temps.gone(o->cx->temps.user, o->dir, o->temp);
    o->temp[0] = 0;
}

static int make_named(onxi_output *o, mode_t mode)
{
    return o->fd = openat(o->dir, o->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* Gives the unnamed file a name by linking it through /proc, the only way that needs no privilege. */
static int link_nameless(const onxi_output *o, const char *name)
{
    char from[40];
    if (!onxi_platform_path_of(o->fd, from, sizeof from)) {
        errno = ENOTSUP;
        return -1;
    }
    return linkat(AT_FDCWD, from, o->dir, name, AT_SYMLINK_FOLLOW);
}

static int link_temp(onxi_output *o, mode_t mode)
{
    (void)mode;
    return link_nameless(o, o->temp);
}

/* Creates an unnamed file, which cannot be left behind, if the system and file system support this. */
static bool open_nameless(onxi_output *o, mode_t mode)
{
    if (!o->cx->named_temps && access("/proc/self/fd", X_OK) == 0)
        o->fd = onxi_platform_open_nameless(o->dir, O_WRONLY, mode);
    return o->fd >= 0;
}

/* The new file gets the owner and mode of the file that it replaces. */
static onx_status take_over(onxi_output *o, const struct stat *old)
{
    struct stat st;
    if (fstat(o->fd, &st) != 0)
        return fail(o, "look at", errno);
    mode_t mode = old->st_mode & 0777;
    if ((old->st_uid != st.st_uid || old->st_gid != st.st_gid) && fchown(o->fd, old->st_uid, old->st_gid) != 0)
        mode = (mode & 0707) | (mode & 07) << 3; /* the group differs: give it no more rights than others have */
    if (fchmod(o->fd, mode) != 0)
        return fail(o, "set the mode of", errno);
    return ONX_OK;
}

/* Opens the temporary file for o->name in o->dir. */
static onx_status open_temp(onxi_output *o, bool strict)
{
    struct stat old, made;
    o->guard.folder = o->dir;
    o->guard.name = o->name;
    o->guard.shown = o->shown;
    o->guard.owner = o;
    ONX_TRY(o->status = onxi_guard_begin(o->cx, &o->guard));
    o->exists = fstatat(o->dir, o->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!o->exists && errno != ENOENT)
        return fail(o, "look at", errno);
    if (o->exists && !S_ISREG(old.st_mode)) {
        o->status = onxi_fail(o->cx, ONX_E_IO, ONXI_NOWHERE, "cannot write %s: it is %s, not a regular file", o->shown,
                              onxi_mode_name(old.st_mode));
        return o->status;
    }
    if (o->exists && strict && old.st_nlink != 1) {
        o->status = onxi_fail(o->cx, ONX_E_IO, ONXI_NOWHERE, "cannot write %s: it has %llu hard links", o->shown,
                              (unsigned long long)old.st_nlink);
        return o->status;
    }
    /* A file without write permission is not replaced, because its owner may not want that. */
    if (o->exists && faccessat(o->dir, o->name, W_OK, AT_EACCESS) != 0)
        return fail(o, "write", errno);
    mode_t mode = o->exists ? 0600 : 0666; /* a replacement is private until its mode is set */
    if (!open_nameless(o, mode))
        ONX_TRY(name_temp(o, make_named, mode));
    if (fstat(o->fd, &made) != 0)
        return fail(o, "look at", errno);
    o->made = onxi_file_id_of(&made);
    o->sparse = true;
    return o->exists ? take_over(o, &old) : ONX_OK;
}

static bool set_name(onxi_output *o, const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > NAME_MAX || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    memcpy(o->name, name, len + 1);
    return true;
}

onx_status onxi_output_open_at(onx_ctx *cx, int dir, const char *name, const char *shown, onxi_output **out)
{
    onxi_output *o;
    *out = NULL;
    ONX_TRY(output_new(cx, shown, &o));
    o->owned = true;
    onx_status status = ONX_OK;
    if (!set_name(o, name))
        status = onxi_fail(cx, ONX_E_IO, ONXI_NOWHERE, "cannot write %s: not the name of a file", shown);
    o->dir = dir;
    if (status == ONX_OK)
        status = open_temp(o, true);
    if (status != ONX_OK) {
        onxi_output_abandon(o);
        return status;
    }
    *out = o;
    return ONX_OK;
}

/* Opens the folder of the path and stores the file's name. A symbolic link is resolved here, so that it is kept. */
static onx_status open_folder(onxi_output *o, const char *path)
{
    char real[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        if (!realpath(path, real))
            return fail(o, "follow the symbolic link", errno);
        path = real;
    }
    const char *slash = strrchr(path, '/');
    const char *folder = slash == path ? "/" : slash ? NULL : ".";
    char *cut = NULL;
    const size_t cut_size = slash ? (size_t)(slash - path) + 1 : 0;
    onx_status status = ONX_OK;
    if (!folder && (cut = onxi_resize(o->cx, NULL, 0, cut_size)) != NULL) {
        memcpy(cut, path, cut_size - 1);
        cut[cut_size - 1] = 0;
        folder = cut;
    }
    if (!folder)
        status = ONX_E_MEMORY;
    else if (!set_name(o, slash ? slash + 1 : path))
        status = onxi_fail(o->cx, ONX_E_IO, ONXI_NOWHERE, "cannot write %s: not the name of a file", o->shown);
    else if ((o->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 &&
             (o->dir = open(folder, onxi_platform_folder_flags())) < 0) /* the folder may be writable without being
                                                                         * readable */
        status = fail(o, "open the folder of", errno);
    onxi_release(o->cx, cut, cut_size);
    return status;
}

/* Devices and FIFOs are written to, not replaced. */
static onx_status open_special(onxi_output *o, const char *path, bool *done)
{
    struct stat st;
    *done = false;
    if (stat(path, &st) != 0 || !(S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
        return ONX_OK;
    o->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (o->fd < 0)
        return fail(o, "open", errno);
    *done = true;
    return ONX_OK;
}

static onx_status open_path(onxi_output *o, const char *path)
{
    bool done;
    if (strcmp(path, "-") == 0) {
        o->fd = STDOUT_FILENO;
        return onxi_guard_stream(o->cx, o->fd, o->shown);
    }
    o->owned = o->own_dir = true;
    ONX_TRY(open_special(o, path, &done));
    if (done)
        return ONX_OK;
    ONX_TRY(open_folder(o, path));
    return open_temp(o, false);
}

onx_status onxi_output_open_over(onx_ctx *cx, const char *path, onxi_file_id own, onxi_output **out)
{
    onxi_output *o;
    *out = NULL;
    ONX_TRY(output_new(cx, strcmp(path, "-") == 0 ? "standard output" : path, &o));
    o->guard.own = own;
    onx_status status = open_path(o, path);
    if (status != ONX_OK) {
        onxi_output_abandon(o);
        return status;
    }
    *out = o;
    return ONX_OK;
}

onx_status onxi_output_open(onx_ctx *cx, const char *path, onxi_output **out)
{
    return onxi_output_open_over(cx, path, (onxi_file_id){ 0 }, out);
}

onx_status onx_output_claim(onx_ctx *cx, const char *path, bool in_place)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, path);
    struct stat st;
    onxi_output *o;
    if (strcmp(path, "-") == 0)
        return onxi_guard_stream(cx, STDOUT_FILENO, "standard output");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return ONX_OK; /* a device, or something that the output itself refuses */
    ONX_TRY(output_new(cx, path, &o));
    o->own_dir = true;
    onx_status status = open_folder(o, path);
    o->guard =
        (onxi_guard_write){ .folder = o->dir, .name = o->name, .shown = path, .owner = cx, .in_place = in_place };
    if (status == ONX_OK)
        status = onxi_guard_claim(cx, &o->guard);
    onxi_output_abandon(o);
    return status;
}

onx_status onx_output_again(onx_ctx *cx, const char *path)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, path);
    onxi_guard_again(cx, path);
    return ONX_OK;
}

/* ---- closing ---- */

static void output_free(onxi_output *o)
{
    if (o->fd >= 0 && o->owned)
        close(o->fd);
    if (o->dir >= 0 && o->own_dir)
        close(o->dir);
    onxi_release(o->cx, o->shown, o->shown_size);
    onxi_release(o->cx, o->buffer, BUFFER_SIZE);
    onxi_release(o->cx, o, sizeof *o);
}

/* Some writable files cannot be synced: pipes, devices and files on some network file systems. */
static bool sync_failed(int fd)
{
    while (fsync(fd) != 0) {
        if (errno == EINTR)
            continue;
        return errno != EINVAL && errno != ENOTSUP && errno != EROFS;
    }
    return false;
}

/* A folder that was opened for path lookup only (EBADF) cannot be synced; unreadable folders have to be opened so. */
bool onxi_folder_sync_failed(int dir)
{
    return sync_failed(dir) && errno != EBADF;
}

onx_status onxi_output_disposable(onxi_output *o)
{
    o->unsynced = true;
    return o->status == ONX_OK && fchmod(o->fd, 0600) != 0 ? fail(o, "set the mode of", errno) : o->status;
}

onx_status onxi_output_complete(onxi_output *o)
{
    if (o->status != ONX_OK || o->finished)
        return o->status;
    ONX_TRY(flush_with(o, onx_str_make(NULL, 0)));
    if (o->written != o->end && ftruncate(o->fd, (off_t)o->written) != 0)
        return fail(o, "write", errno);
    if (o->owned && !o->unsynced && sync_failed(o->fd))
        return fail(o, "write", errno);
    onxi_release(o->cx, o->buffer, BUFFER_SIZE);
    o->buffer = NULL;
    o->finished = true;
    return ONX_OK;
}

static onx_status close_output(onxi_output *o)
{
    int fd = o->fd;
    o->fd = -1;
    return fd >= 0 && o->owned && close(fd) != 0 && errno != EINTR ? fail(o, "write", errno) : ONX_OK;
}

onx_status onxi_output_finish(onxi_output *o)
{
    ONX_TRY(onxi_output_complete(o));
    if (o->fd >= 0 && o->dir >= 0 && !o->temp[0])
        ONX_TRY(name_temp(o, link_temp, 0));
    return close_output(o);
}

/* Renames the complete file. */
static onx_status put_in_place(onxi_output *o)
{
    ONX_TRY(o->status = onxi_guard_replace(o->cx, &o->guard));
    if (!o->exists && !o->temp[0]) {
        if (link_nameless(o, o->name) == 0)
            return close_output(o);
        if (errno != EEXIST) /* a file of that name was created meanwhile: replace it */
            return fail(o, "name the finished file", errno);
        ONX_TRY(o->status = onxi_guard_replace(o->cx, &o->guard));
    }
    ONX_TRY(onxi_output_finish(o));
    if (renameat(o->dir, o->temp, o->dir, o->name) != 0)
        return fail(o, "rename the finished file to", errno);
    forget_temp(o);
    return ONX_OK;
}

onx_status onxi_output_commit(onxi_output *o)
{
    onx_status status = onxi_output_complete(o);
    if (status == ONX_OK && o->dir < 0)
        status = close_output(o);
    else if (status == ONX_OK)
        status = put_in_place(o);
    if (status != ONX_OK || o->dir < 0) {
        onxi_output_abandon(o);
        return status;
    }
    status = onxi_guard_done(o->cx, o->made, &o->guard);
    /* The new file is in place; syncing the folder makes the rename durable. If the folder was passed by the caller,
     * the caller syncs it, once for all files. */
    if (o->own_dir && onxi_folder_sync_failed(o->dir))
        status = fail(o, "sync the folder of", errno);
    output_free(o);
    return status;
}

void onxi_output_abandon(onxi_output *o)
{
    if (!o)
        return;
    onxi_guard_give_up(o->cx, o);
    if (o->dir >= 0 && o->temp[0])
        (void)unlinkat(o->dir, o->temp, 0); /* best effort: the error that led here is the one to report */
    forget_temp(o);
    output_free(o);
}
