/* base_zip.c - reads members of zip archives with libzip, an optional library that verifies checksums and supports
 * archives beyond 4 GiB. A size that an archive claims is accepted if deflate could have compressed that much data into
 * it. */
#include "base/base.h"

#ifdef ONX_WITH_ZIP

#include <zip.h>

#define FUNCTIONS(F)                                                                                                   \
    F(zip_error_init)                                                                                                  \
    F(zip_error_fini)                                                                                                  \
    F(zip_error_strerror)                                                                                              \
    F(zip_source_buffer_create)                                                                                        \
    F(zip_source_free)                                                                                                 \
    F(zip_open_from_source)                                                                                            \
    F(zip_discard)                                                                                                     \
    F(zip_get_num_entries)                                                                                             \
    F(zip_stat_init)                                                                                                   \
    F(zip_stat_index) F(zip_fopen_index) F(zip_fread) F(zip_fclose) F(zip_strerror) F(zip_file_strerror)

typedef struct zip_library {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} zip_library;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

static onx_status damaged(onx_ctx *cx, const char *what, const char *why)
{
    return onxi_fail(cx, ONX_E_MALFORMED, ONXI_NOWHERE, "the zip archive %s: %s", what, why);
}

static onx_status open_archive(onx_ctx *cx, const zip_library *lib, onx_str bytes, zip_t **out)
{
    zip_error_t error;
    onx_status status = ONX_OK;
    lib->zip_error_init(&error);
    zip_source_t *source = lib->zip_source_buffer_create(bytes.ptr, bytes.len, 0, &error);
    *out = source ? lib->zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
    if (!*out) {
        status = damaged(cx, "cannot be read", lib->zip_error_strerror(&error));
        if (source)
            lib->zip_source_free(source);
    }
    lib->zip_error_fini(&error);
    return status;
}

/* The member of that name, with or without the suffix; or the only member. */
static onx_status find(onx_ctx *cx, const zip_library *lib, zip_t *zip, onx_str name, const char *suffix,
                       zip_stat_t *out)
{
    const zip_int64_t count = lib->zip_get_num_entries(zip, 0);
    const size_t tail = strlen(suffix);
    for (zip_int64_t i = 0; i < count; i++) {
        lib->zip_stat_init(out);
        if (lib->zip_stat_index(zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW, out) != 0 || !(out->valid & ZIP_STAT_NAME))
            continue;
        onx_str member = onx_str_of(out->name);
        if (count == 1 || onx_str_equal(member, name))
            return ONX_OK;
        if (member.len == name.len + tail && memcmp(member.ptr + name.len, suffix, tail) == 0 &&
            onx_str_equal(onx_str_make(member.ptr, name.len), name))
            return ONX_OK;
    }
    return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "none of the %lld members of the archive is named \"%.*s\"",
                     (long long)count, ONX_ARG(name));
}

/* May the member be unpacked, and is its size plausible? */
static onx_status judge(onx_ctx *cx, const zip_stat_t *st)
{
    enum { DEFLATE_MOST = 1100 }; /* deflate expands one byte to at most 1032 */
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    const uint64_t limit = onx_ctx_limits(cx).memory;
    if ((st->valid & needed) != needed)
        return damaged(cx, "does not say all of its member", st->name);
    if (st->encryption_method != ZIP_EM_NONE)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "member \"%s\" of the archive is encrypted", st->name);
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "member \"%s\" of the archive is packed by method %u, not stored or deflated", st->name,
                         (unsigned)st->comp_method);
    if (st->comp_method == ZIP_CM_STORE ? st->size != st->comp_size : st->size / DEFLATE_MOST > st->comp_size)
        return damaged(cx, "cannot hold as much as it says in member", st->name);
    if (st->size >= limit || st->size > SIZE_MAX / 2)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "member \"%s\" of %llu bytes exceeds the memory limit of %llu bytes", st->name,
                         (unsigned long long)st->size, (unsigned long long)limit);
    return ONX_OK;
}

/* Reads to the end, where libzip compares the checksum. */
static onx_status unpack(onx_ctx *cx, const zip_library *lib, zip_t *zip, const zip_stat_t *st, char *to)
{
    char more;
    zip_file_t *file = lib->zip_fopen_index(zip, st->index, 0);
    if (!file)
        return damaged(cx, "cannot be unpacked", lib->zip_strerror(zip));
    zip_uint64_t have = 0;
    zip_int64_t got = 1;
    while (have < st->size && (got = lib->zip_fread(file, to + have, st->size - have)) > 0)
        have += (zip_uint64_t)got;
    if (got > 0 || st->size == 0)
        got = lib->zip_fread(file, &more, 1);
    onx_status status = ONX_OK;
    if (got < 0)
        status = damaged(cx, "is damaged", lib->zip_file_strerror(file));
    else if (got > 0 || have < st->size)
        status = damaged(cx, "does not hold as much as it says in member", st->name);
    lib->zip_fclose(file);
    return status;
}

/* *zip has to be discarded. */
static onx_status open_library(onx_ctx *cx, onx_str archive, const zip_library **lib, zip_t **zip)
{
    *lib = ONXI_FUNCTIONS(ONXI_LIBRARY_ZIP, function_names);
    if (!*lib)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a zip archive %s",
                         onxi_library_missing(ONXI_LIBRARY_ZIP));
    if (!archive.len) /* libzip would create a new archive */
        return damaged(cx, "cannot be read", "it is empty");
    return open_archive(cx, *lib, archive, zip);
}

static onx_status take(onx_ctx *cx, const zip_library *lib, zip_t *zip, const zip_stat_t *st, char **bytes_out,
                       size_t *len_out)
{
    ONX_TRY(judge(cx, st));
    const size_t size = (size_t)st->size;
    char *bytes = onxi_resize(cx, NULL, 0, size + 1);
    if (!bytes)
        return ONX_E_MEMORY;
    const onx_status status = unpack(cx, lib, zip, st, bytes);
    if (status != ONX_OK) {
        onxi_release(cx, bytes, size + 1);
        return status;
    }
    *bytes_out = bytes;
    *len_out = size;
    return ONX_OK;
}

onx_status onxi_zip_member(onx_ctx *cx, onx_str archive, onx_str name, const char *suffix, char **bytes_out,
                           size_t *len_out)
{
    const zip_library *lib;
    zip_t *zip;
    zip_stat_t st;
    *bytes_out = NULL;
    *len_out = 0;
    ONX_TRY(open_library(cx, archive, &lib, &zip));
    onx_status status = find(cx, lib, zip, name, suffix, &st);
    if (status == ONX_OK)
        status = take(cx, lib, zip, &st, bytes_out, len_out);
    lib->zip_discard(zip);
    return status;
}

onx_status onxi_zip_each(onx_ctx *cx, onx_str archive, const char *suffix, bool (*wanted)(void *user, onx_str name),
                         onx_status (*member)(void *user, onx_str name, onx_str bytes), void *user)
{
    const zip_library *lib;
    zip_t *zip;
    ONX_TRY(open_library(cx, archive, &lib, &zip));
    const zip_int64_t count = lib->zip_get_num_entries(zip, 0);
    const size_t tail = strlen(suffix);
    onx_status status = ONX_OK;
    for (zip_int64_t i = 0; i < count && status == ONX_OK; i++) {
        zip_stat_t st;
        char *bytes;
        size_t len;
        lib->zip_stat_init(&st);
        if (lib->zip_stat_index(zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW, &st) != 0 || !(st.valid & ZIP_STAT_NAME))
            continue;
        onx_str name = onx_str_of(st.name);
        if (name.len < tail || memcmp(name.ptr + name.len - tail, suffix, tail) != 0)
            continue;
        name.len -= tail;
        if (wanted && !wanted(user, name))
            continue;
        status = take(cx, lib, zip, &st, &bytes, &len);
        if (status != ONX_OK)
            break;
        status = member(user, name, onx_str_make(bytes, len));
        onxi_release(cx, bytes, len + 1);
    }
    lib->zip_discard(zip);
    return status;
}

#else

onx_status onxi_zip_member(onx_ctx *cx, onx_str archive, onx_str name, const char *suffix, char **bytes_out,
                           size_t *len_out)
{
    (void)archive;
    (void)name;
    (void)suffix;
    *bytes_out = NULL;
    *len_out = 0;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a zip archive %s", onxi_library_missing(ONXI_LIBRARY_ZIP));
}

onx_status onxi_zip_each(onx_ctx *cx, onx_str archive, const char *suffix, bool (*wanted)(void *user, onx_str name),
                         onx_status (*member)(void *user, onx_str name, onx_str bytes), void *user)
{
    (void)archive, (void)suffix, (void)wanted, (void)member, (void)user;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a zip archive %s", onxi_library_missing(ONXI_LIBRARY_ZIP));
}

#endif
