/* base_store.c - a folder of files that are named by a digest of their origin. Names and checksums are digests keyed
 * with the folder's secret: without read access to the secret nobody can predict a file name, or forge a file that
 * passes the check. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT = 64, BLOCK = 1 << 20 };
#define MAGIC       0x31656b61736b6e6fu
#define SECRET_NAME "secret"

/* The last UNIT bytes of a file; zeros pad the contents to a multiple of UNIT. It is in the byte order of the machine,
 * so that files from machines of the other byte order are rejected. */
typedef struct trailer {
    uint64_t magic, size; /* of the contents */
    onxi_digest name, contents;
    onxi_digest self; /* digest of all preceding members */
} trailer;
_Static_assert(sizeof(trailer) == UNIT, "no holes");

struct onxi_store {
    onx_ctx *cx;
    int dir; /* -1: nothing is found and nothing is kept */
    onxi_secret secret;
    bool read_only;  /* writing has failed */
    uint32_t untold; /* number of problems that onxi_store_tell has to report */
    size_t folder_size;
    char *folder;
    char said[2 * NAME_MAX]; /* text of the first problem */
};

static void note(onxi_store *s, const char *format, ...) ONX_PRINTF(2, 3);
static void note(onxi_store *s, const char *format, ...)
{
    if (s->untold++)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(s->said, sizeof s->said, format, args);
    va_end(args);
}

void onxi_store_tell(onxi_store *s, onx_ctx *cx)
{
    if (!s || !s->untold)
        return;
    const onx_diag diag = { .severity = ONX_NOTE, .status = ONX_E_IO };
    const uint32_t more = s->untold - 1;
    s->untold = 0;
    if (more)
        onxi_report(cx, &diag, "%s: %s, and %u more like that", s->folder, s->said, more);
    else
        onxi_report(cx, &diag, "%s: %s", s->folder, s->said);
}

/* ---- opening ---- */

/* Files of other users are never trusted, nor files that others could change while they are mapped. The size must be
 * between `least` and `most`. */
static const char *distrust(const struct stat *st, uint64_t least, uint64_t most)
{
    if (!S_ISREG(st->st_mode))
        return "is no regular file";
    if (st->st_uid != geteuid())
        return "belongs to another user";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "may be written by others";
    const uint64_t size = (uint64_t)st->st_size;
    return size < least || size > most ? "has another size" : NULL;
}

/* Opens a trusted file; -1 if there is none, and *why gives the reason. */
static int open_trusted(const onxi_store *s, const char *name, uint64_t least, uint64_t most, uint64_t *size,
                        const char **why)
{
    struct stat st;
    *why = NULL;
    const int fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        *why = errno == ENOENT ? NULL : "cannot be opened";
        return -1;
    }
    if (fstat(fd, &st) != 0)
        *why = "cannot be looked at";
    else
        *why = distrust(&st, least, most);
    if (!*why) {
        *size = (uint64_t)st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

static bool read_secret(onxi_store *s, const char **why)
{
    uint64_t size;
    const int fd = open_trusted(s, SECRET_NAME, sizeof s->secret, sizeof s->secret, &size, why);
    if (fd < 0)
        return false;
    const bool whole = read(fd, &s->secret, sizeof s->secret) == (ssize_t)sizeof s->secret;
    close(fd);
    *why = whole ? NULL : "cannot be read";
    return whole;
}

/* Creates the secret under its final name, complete from the start; if two processes do this at once, both use the
 * first one. */
static void make_secret(onxi_store *s, bool replace)
{
    unsigned char random[sizeof s->secret + 8];
    char temp[40];
    if (!onxi_platform_random(random, sizeof random, true))
        return;
    const unsigned char *r = random + sizeof s->secret;
    snprintf(temp, sizeof temp, ".%s.%02x%02x%02x%02x%02x%02x%02x%02x.tmp", SECRET_NAME, r[0], r[1], r[2], r[3], r[4],
             r[5], r[6], r[7]);
    const int fd = openat(s->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, random, sizeof s->secret) == (ssize_t)sizeof s->secret) {
        if (replace)
            (void)renameat(s->dir, temp, s->dir, SECRET_NAME);
        else
            (void)linkat(s->dir, temp, s->dir, SECRET_NAME, 0);
    }
    close(fd);
    (void)unlinkat(s->dir, temp, 0); /* failures show when the secret is read */
}

static void find_secret(onxi_store *s)
{
    const char *why;
    if (read_secret(s, &why))
        return;
    if (why)
        note(s, "its file %s %s", SECRET_NAME, why);
    make_secret(s, why != NULL);
    if (read_secret(s, &why))
        return;
    if (!s->untold)
        note(s, "its file %s %s, so it is not used", SECRET_NAME, why ? why : "cannot be made");
    close(s->dir);
    s->dir = -1;
}

onx_status onxi_store_open(onx_ctx *cx, const char *folder, onxi_store **out)
{
    char reason[128];
    *out = NULL;
    (void)mkdir(folder, 0700);
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return onxi_fail(cx, ONX_E_IO, ONXI_NOWHERE, "cannot open the folder %s: %s", folder,
                         onxi_error_text(errno, reason, sizeof reason));
    onxi_store *s = onxi_resize(cx, NULL, 0, sizeof *s);
    const size_t size = strlen(folder) + 1;
    char *name = s ? onxi_resize(cx, NULL, 0, size) : NULL;
    if (!name) {
        onxi_release(cx, s, sizeof *s);
        close(dir);
        return ONX_E_MEMORY;
    }
    memcpy(name, folder, size);
    *s = (onxi_store){ .cx = cx, .dir = dir, .folder = name, .folder_size = size };
    find_secret(s);
    *out = s;
    return ONX_OK;
}

void onxi_store_close(onxi_store *s)
{
    if (!s)
        return;
    if (s->dir >= 0)
        close(s->dir);
    onxi_release(s->cx, s->folder, s->folder_size);
    onxi_release(s->cx, s, sizeof *s);
}

/* ---- digests ---- */

typedef struct digest_job {
    onxi_secret secret;
    const char *bytes;
    size_t len;
    onxi_digest *blocks;
} digest_job;

static void digest_block(void *user, uint64_t block, unsigned worker)
{
    const digest_job *job = user;
    const size_t from = (size_t)block * BLOCK, len = job->len - from < BLOCK ? job->len - from : BLOCK;
    (void)worker;
    job->blocks[block] = onxi_digest_of(job->secret, job->bytes + from, len);
}

onxi_secret onxi_store_secret(const onxi_store *s)
{
    return s->secret;
}

onxi_digest onxi_store_digest(const onxi_store *s, unsigned threads, onxi_digest before, const void *bytes, size_t len)
{
    return onxi_digest_then(s->secret, threads, before, bytes, len);
}

onxi_digest onxi_digest_then(onxi_secret secret, unsigned threads, onxi_digest before, const void *bytes, size_t len)
{
    enum { BLOCKS = 64 }; /* at a time; fixed, so that the digest is the same for every number of threads */
    onxi_digest blocks[BLOCKS + 1];
    for (size_t at = 0, step; at == 0 || at < len; at += step) {
        step = len - at < (size_t)BLOCKS * BLOCK ? len - at : (size_t)BLOCKS * BLOCK;
        const uint64_t count = (step + BLOCK - 1) / BLOCK;
        digest_job job = { secret, len ? (const char *)bytes + at : "", step, blocks + 1 };
        onxi_team_run(threads, count, digest_block, &job);
        blocks[0] = before;
        before = onxi_digest_of(secret, blocks, (size_t)(1 + count) * sizeof *blocks);
        if (!step)
            break;
    }
    return before;
}

/* ---- files ---- */

static void name_file(onxi_digest name, char out[48])
{
    snprintf(out, 48, "%016llx%016llx.pack", (unsigned long long)name.a, (unsigned long long)name.b);
}

/* The size of a file; 0 if it would be too large. */
static size_t file_size(uint64_t size)
{
    return size > SIZE_MAX / 2 - 2 * UNIT ? 0 : ((size_t)size + UNIT - 1) / UNIT * UNIT + UNIT;
}

static trailer make_trailer(const onxi_store *s, unsigned threads, onxi_digest name, const void *bytes, uint64_t size)
{
    trailer t = { .magic = MAGIC, .size = size, .name = name };
    t.contents = onxi_store_digest(s, threads, name, bytes, (size_t)size);
    t.self = onxi_digest_of(s->secret, &t, offsetof(trailer, self));
    return t;
}

/* Checks a mapped file against its trailer and the requested name. *size is the size of its contents. */
static bool is_whole(const onxi_store *s, unsigned threads, onxi_digest name, const char *map, size_t all,
                     uint64_t *size)
{
    trailer found;
    memcpy(&found, map + all - UNIT, sizeof found);
    if (file_size(found.size) != all)
        return false;
    const trailer expected = make_trailer(s, threads, name, map, found.size);
    *size = found.size;
    return memcmp(&expected, &found, sizeof expected) == 0;
}

const void *onxi_store_find_some(onxi_store *s, unsigned threads, onxi_digest name, uint64_t least, uint64_t most,
                                 uint64_t *size)
{
    char file[48];
    const char *why;
    uint64_t all;
    if (s->dir < 0 || !least || !file_size(most))
        return NULL;
    name_file(name, file);
    const int fd = open_trusted(s, file, file_size(least), file_size(most), &all, &why);
    if (fd < 0) {
        if (why)
            note(s, "%s %s", file, why);
        return NULL;
    }
    const char *map = mmap(NULL, (size_t)all, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED) {
        note(s, "%s cannot be mapped", file);
        return NULL;
    }
    if (is_whole(s, threads, name, map, (size_t)all, size) && *size >= least && *size <= most)
        return map;
    munmap((void *)(uintptr_t)map, (size_t)all);
    note(s, "%s is damaged or from elsewhere", file);
    return NULL;
}

const void *onxi_store_find(onxi_store *s, unsigned threads, onxi_digest name, uint64_t size)
{
    return onxi_store_find_some(s, threads, name, size, size, &size);
}

void onxi_store_unmap(const void *bytes, uint64_t size)
{
    munmap((void *)(uintptr_t)bytes, file_size(size));
}

static onx_status write_file(onxi_store *s, const char *file, const trailer *t, const void *bytes)
{
    onxi_output *o;
    (void)unlinkat(s->dir, file,
                   0); /* the existing file was not trusted, so the new one does not inherit its permissions */
    ONX_TRY(onxi_output_open_at(s->cx, s->dir, file, file, &o));
    onx_status status = onxi_output_disposable(o);
    if (status == ONX_OK)
        status = onxi_output_write(o, onx_str_make(bytes, (size_t)t->size));
    if (status == ONX_OK)
        status = onxi_output_skip(o, file_size(t->size) - UNIT - t->size);
    if (status == ONX_OK)
        status = onxi_output_write(o, onx_str_make((const char *)t, sizeof *t));
    if (status == ONX_OK)
        return onxi_output_commit(o);
    onxi_output_abandon(o);
    return status;
}

void onxi_store_put(onxi_store *s, unsigned threads, onxi_digest name, const void *bytes, uint64_t size)
{
    char file[48];
    if (s->dir < 0 || s->read_only || !file_size(size) || !size)
        return;
    name_file(name, file);
    const trailer t = make_trailer(s, threads, name, bytes, size);
    const onxi_diag_mark said = onxi_diag_here(s->cx);
    if (write_file(s, file, &t, bytes) == ONX_OK)
        return;
    onxi_diag_rewind(s->cx, said);
    s->read_only = true; /* further writes would fail, too */
    note(s, "cannot write there, so nothing new is kept");
}
