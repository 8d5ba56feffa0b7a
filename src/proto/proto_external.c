/* proto_external.c - the bytes of external tensors: each data file below the document's folder is mapped once, on first
 * use (docs/notes/external_data.md). */
#include "proto/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct data_file {
    onx_str location;
    onxi_file file;
    onx_status status; /* result of opening it; a failed open is not repeated */
    bool hashed;
    char sha1[41];
} data_file;

struct onxi_external {
    int dir;         /* the folder, -1 until it is opened */
    onxi_file input; /* the file that the document was read from */
    data_file **files;
    uint32_t count, room;
    onxi_dict by_location; /* indexes of files */
};

static void release_external(onx_ctx *cx, void *data)
{
    struct onxi_external *e = data;
    for (uint32_t i = 0; i < e->count; i++)
        onxi_file_close(cx, &e->files[i]->file);
    onxi_file_close(cx, &e->input);
    if (e->dir >= 0)
        close(e->dir);
}

static struct onxi_external *external_of(onx_doc *doc)
{
    if (doc->external)
        return doc->external;
    struct onxi_external *e = ONXI_NEW(doc->arena, struct onxi_external);
    if (!e)
        return NULL;
    e->dir = -1;
    e->by_location = onxi_dict_in_arena(doc->arena);
    if (onxi_doc_attach(doc, release_external, e) != ONX_OK)
        return NULL;
    doc->external = e;
    return e;
}

onx_status onxi_doc_keep_input(onx_doc *doc, onxi_file *file)
{
    struct onxi_external *e = external_of(doc);
    if (!e)
        return ONX_E_MEMORY;
    e->input = *file;
    doc->input = &e->input;
    doc->forget = onxi_doc_forget;
    memset(file, 0, sizeof *file);
    return ONX_OK;
}

const char *onx_doc_base_dir(const onx_doc *doc)
{
    if (!doc)
        return NULL;
    return doc->base_dir;
}

static onx_status find_late(onx_doc *doc, const onx_tensor *tensor, onx_str *out, const onxi_file **file_out);

onx_status onx_doc_set_base_dir(onx_doc *doc, const char *dir)
{
    ONXI_NEED(NULL, doc);
    doc->external_bytes = onx_external_bytes;
    doc->external_late = find_late;
    doc->forget = onxi_doc_forget;
    if (doc->external && doc->external->count)
        return onxi_fail(doc->cx, ONX_E_MISUSE, ONXI_NOWHERE, "external data of the document is in use already");
    if (doc->external && doc->external->dir >= 0) {
        close(doc->external->dir);
        doc->external->dir = -1;
    }
    doc->base_dir = NULL;
    if (!dir)
        return ONX_OK;
    size_t size = strlen(dir) + 1;
    char *copy = onxi_arena_get(doc->arena, size);
    if (!copy)
        return ONX_E_MEMORY;
    memcpy(copy, dir, size);
    doc->base_dir = copy;
    return ONX_OK;
}

onx_status onx_doc_allow_links(onx_doc *doc, bool allowed)
{
    ONXI_NEED(NULL, doc);
    doc->links = allowed;
    return ONX_OK;
}

/* ---- guarding the files ---- */

/* The folder as a descriptor; -1 with errno set. */
static int folder_of(onx_doc *doc, struct onxi_external *e)
{
    if (e->dir < 0)
        e->dir = open(*doc->base_dir ? doc->base_dir : ".", onxi_platform_folder_flags());
    return e->dir;
}

static onx_status guard_tensor(void *user, const onx_visit *at)
{
    onx_doc *doc = user;
    onxi_external_ref ref;
    onxi_external_fault fault;
    if (at->kind != ONX_KIND_TENSOR || !onx_tensor_is_external(at->message) ||
        !onxi_external_parse(at->message, &ref, &fault) || folder_of(doc, doc->external) < 0)
        return ONX_OK; /* a file that cannot be opened needs no protection */
    return onxi_guard_read_beneath(doc->cx, doc->external->dir, ref.location);
}

static onx_status list_files(void *user)
{
    onx_doc *doc = user;
    if (doc->input_id.inode)
        ONX_TRY(onxi_guard_read(doc->cx, doc->input_id, doc->input_path));
    if (!doc->base_dir)
        return ONX_OK;
    if (!external_of(doc))
        return ONX_E_MEMORY;
    return onx_message_walk(doc->cx, doc->kind, doc->root, guard_tensor, doc);
}

static void release_guard(onx_ctx *cx, void *data)
{
    onxi_guard_unwatch(cx, data);
}

onx_status onxi_doc_guard(onx_doc *doc)
{
    if (!doc->guarded.list) {
        doc->guarded.list = list_files;
        doc->guarded.user = doc;
        ONX_TRY(onxi_doc_attach(doc, release_guard, &doc->guarded));
    }
    onxi_guard_watch(doc->cx, &doc->guarded);
    return ONX_OK;
}

/* ---- finding the bytes ---- */

/* A location in the document for messages: the given path, or the tensor by name. */
typedef struct place {
    char text[256];
    onx_where where;
} place;

static void place_of(place *p, const onx_tensor *t, const onx_visit *at)
{
    onx_str name = onx_view(t->name);
    int n;
    if (at)
        n = (int)onx_visit_path(at, p->text, sizeof p->text);
    else
        n = snprintf(p->text, sizeof p->text, "tensor \"%.*s\"", name.len > 200 ? 200 : (int)name.len,
                     name.len ? name.ptr : "");
    size_t len = n < 0 ? 0 : (size_t)n < sizeof p->text ? (size_t)n : sizeof p->text - 1;
    p->where = ONXI_AT_PATH(onx_str_make(p->text, len));
}

static onx_status refuse(onx_ctx *cx, const place *p, const char *rule, onx_str value, const char *format, ...)
    ONX_PRINTF(5, 6);
static onx_status refuse(onx_ctx *cx, const place *p, const char *rule, onx_str value, const char *format, ...)
{
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_INVALID, .rule = rule, .where = p->where, .value = value };
    va_list args;
    va_start(args, format);
    onxi_vreport(cx, &diag, format, args);
    va_end(args);
    return ONX_E_INVALID;
}

static onx_status open_dir(onx_doc *doc, struct onxi_external *e, const place *p)
{
    if (e->dir >= 0)
        return ONX_OK;
    if (!doc->base_dir) {
        onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_INVALID, .rule = "E-12", .where = p->where };
        diag.hint = onx_str_of("name the folder that external data is in");
        onxi_report(doc->cx, &diag, "the model comes from no folder, so its external data cannot be found");
        return ONX_E_INVALID;
    }
    if (folder_of(doc, e) >= 0)
        return ONX_OK;
    char reason[128];
    return onxi_fail(doc->cx, ONX_E_IO, p->where, "cannot open the folder %s: %s", *doc->base_dir ? doc->base_dir : ".",
                     onxi_error_text(errno, reason, sizeof reason));
}

/* ---- stores of model caches ---- */

/* A folder, and the name of a file in it; -1: none. */
typedef struct stored {
    int folder;
    char name[NAME_MAX + 1];
} stored;

/* Where the link with this name leads, if that is relative and names a file in a folder. */
static stored follow(int folder, const char *name)
{
    stored to = { .folder = -1 };
    char text[PATH_MAX];
    const ssize_t len = readlinkat(folder, name, text, sizeof text);
    if (len <= 0 || (size_t)len >= sizeof text || text[0] == '/')
        return to;
    text[len] = 0;
    char *slash = strrchr(text, '/');
    if (!slash || !slash[1] || strlen(slash + 1) > NAME_MAX || strcmp(slash + 1, "..") == 0 ||
        strcmp(slash + 1, ".") == 0)
        return to;
    strcpy(to.name, slash + 1);
    *slash = 0;
    to.folder = openat(folder, text, onxi_platform_folder_flags());
    return to;
}

/* The folder of the location, whose components must not be links; *leaf_out is the last one. -1: there is none. */
static int folder_of_location(int dir, onx_str location, char leaf_out[NAME_MAX + 1])
{
    int at = onxi_platform_same_file(dir);
    while (at >= 0) {
        const char *slash = memchr(location.ptr, '/', location.len);
        const size_t len = slash ? (size_t)(slash - location.ptr) : location.len;
        if (!len || len > NAME_MAX || memchr(location.ptr, 0, len))
            break;
        memcpy(leaf_out, location.ptr, len);
        leaf_out[len] = 0;
        if (strcmp(leaf_out, "..") == 0)
            break;
        if (!slash)
            return at;
        const int below = openat(at, leaf_out, onxi_platform_folder_flags() | O_NOFOLLOW);
        close(at);
        at = below;
        location = onx_str_make(slash + 1, location.len - len - 1);
    }
    if (at >= 0)
        close(at);
    return -1;
}

/* The name of the model's file in the folder of the document; empty if external data is elsewhere. */
static void model_name(const onx_doc *doc, char out[NAME_MAX + 1])
{
    const char *path = doc->input_path.ptr, *slash = path ? strrchr(path, '/') : NULL;
    const size_t len = !slash || slash == path ? 1 : (size_t)(slash - path);
    const char *folder = !slash ? "." : slash == path ? "/" : path, *name = slash ? slash + 1 : path;
    out[0] = 0;
    if (path && doc->base_dir && strlen(doc->base_dir) == len && memcmp(doc->base_dir, folder, len) == 0 &&
        strlen(name) <= NAME_MAX)
        strcpy(out, name);
}

/* Model caches keep files in one folder, and link to them: the model that was opened is a relative link, and its data
 * file is one to the same folder. Such a file is as trusted as the model, which came from there. It must be a regular
 * file with one name. -1: it is something else. */
static int open_stored(const onx_doc *doc, int dir, onx_str location, uint64_t *size)
{
    char name[NAME_MAX + 1], leaf[NAME_MAX + 1];
    struct stat own, other, st;
    int fd = -1, folder = -1;
    model_name(doc, name);
    if (!*name)
        return -1;
    const stored model = follow(dir, name);
    if (model.folder >= 0 && (folder = folder_of_location(dir, location, leaf)) >= 0) {
        const stored data = follow(folder, leaf);
        if (data.folder >= 0 && fstat(model.folder, &own) == 0 && fstat(data.folder, &other) == 0 &&
            own.st_dev == other.st_dev && own.st_ino == other.st_ino)
            fd = openat(data.folder, data.name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        if (data.folder >= 0)
            close(data.folder);
        close(folder);
    }
    if (model.folder >= 0)
        close(model.folder);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        *size = (uint64_t)st.st_size;
    return fd;
}

onx_status onxi_external_open(const onx_doc *doc, int dir, onx_where where, onx_str location, int *fd, uint64_t *size)
{
    struct stat st;
    if (!doc->links && (*fd = open_stored(doc, dir, location, size)) >= 0) {
        const onx_status status =
            fstat(*fd, &st) == 0 ? onxi_guard_read(doc->cx, onxi_file_id_of(&st), location) : ONX_OK;
        if (status != ONX_OK)
            close(*fd);
        return status;
    }
    return onxi_beneath_open(doc->cx, where, dir, location, doc->links ? ONXI_BENEATH_LINKS : 0, fd, size);
}

static void map_file(onx_doc *doc, const struct onxi_external *e, const place *p, data_file *file)
{
    const onx_str location = file->location;
    int fd;
    uint64_t size;
    file->status = onxi_external_open(doc, e->dir, p->where, location, &fd, &size);
    if (file->status != ONX_OK)
        return;
    char shown[256];
    snprintf(shown, sizeof shown, "%.*s", location.len > 200 ? 200 : (int)location.len, location.ptr);
    file->status = onxi_file_map_late(doc->cx, fd, size, shown, &file->file);
    close(fd);
    onxi_file_read_ahead(&file->file);
}

static onx_status open_file(onx_doc *doc, const place *p, onx_str location, data_file **out)
{
    struct onxi_external *e = external_of(doc);
    if (!e)
        return ONX_E_MEMORY;
    const onxi_dict_entry *known = onxi_dict_find(&e->by_location, location);
    if (known) {
        *out = e->files[known->value];
        if ((*out)->status != ONX_OK)
            (void)refuse(doc->cx, p, "E-09", location, "the data file could not be opened");
        return (*out)->status;
    }
    ONX_TRY(open_dir(doc, e, p));
    data_file *file = ONXI_NEW(doc->arena, data_file);
    if (!file || !ONXI_GROW_IN(doc->arena, e->files, e->room, e->count + 1) ||
        !onxi_dict_at(&e->by_location, location, e->count, NULL))
        return ONX_E_MEMORY;
    file->location = location;
    e->files[e->count++] = file;
    map_file(doc, e, p, file);
    *out = file;
    return file->status;
}

static onx_status find_bytes(onx_doc *doc, const onx_tensor *t, const place *p, onx_str *out, data_file **file_out)
{
    onxi_external_ref ref;
    onxi_external_fault fault;
    uint64_t count, size, end;
    *out = onx_str_make("", 0);
    if (!onxi_external_parse(t, &ref, &fault))
        return refuse(doc->cx, p, fault.rule, fault.value, "%s", fault.text);
    if (!onx_tensor_count(t, &count) || !onx_dtype_size(t->data_type, count, &size) || size > SIZE_MAX)
        return refuse(doc->cx, p, "E-26", (onx_str){ NULL, 0 }, "the size does not follow from data_type and dims");
    if (!onxi_external_fits(&ref, true, size, UINT64_MAX, &end, &fault))
        return refuse(doc->cx, p, fault.rule, (onx_str){ NULL, 0 },
                      "%s: %llu bytes at offset %llu, where %llu are called for", fault.text,
                      (unsigned long long)ref.length, (unsigned long long)ref.offset, (unsigned long long)size);
    data_file *file = NULL;
    ONX_TRY(open_file(doc, p, ref.location, &file));
    if (file_out)
        *file_out = file;
    if (!onxi_external_fits(&ref, true, size, file->file.bytes.len, &end, &fault))
        return refuse(doc->cx, p, fault.rule, ref.location,
                      "%llu bytes at offset %llu do not lie within the data file of %zu bytes",
                      (unsigned long long)size, (unsigned long long)ref.offset, file->file.bytes.len);
    *out = onx_str_make(file->file.bytes.ptr + ref.offset, (size_t)size);
    return ONX_OK;
}

onx_status onx_external_bytes(onx_doc *doc, const onx_tensor *tensor, onx_str *out)
{
    ONXI_NEED(NULL, doc);
    ONXI_NEED(doc->cx, tensor);
    ONXI_NEED(doc->cx, out);
    place p;
    place_of(&p, tensor, NULL);
    if (!onx_tensor_is_external(tensor)) {
        *out = onx_str_make("", 0);
        return onxi_fail(doc->cx, ONX_E_MISUSE, p.where, "the tensor is not external");
    }
    data_file *file = NULL;
    ONX_TRY(find_bytes(doc, tensor, &p, out, &file));
    return onxi_file_need(doc->cx, p.where, &file->file, *out);
}

static onx_status find_late(onx_doc *doc, const onx_tensor *tensor, onx_str *out, const onxi_file **file_out)
{
    place p;
    place_of(&p, tensor, NULL);
    data_file *file = NULL;
    ONX_TRY(find_bytes(doc, tensor, &p, out, &file));
    *file_out = &file->file;
    return ONX_OK;
}

size_t onxi_doc_hole(onx_doc *doc, onx_str bytes)
{
    struct onxi_external *e = doc->external;
    size_t n = e ? onxi_file_hole(&e->input, bytes) : 0;
    for (uint32_t i = 0; e && i < e->count && n == 0; i++)
        n = onxi_file_hole(&e->files[i]->file, bytes);
    for (const onxi_spilled *p = doc->spilled; p && n == 0; p = p->next)
        n = onxi_file_hole(&p->file, bytes);
    return n;
}

void onxi_doc_read_ahead(onx_doc *doc)
{
    if (doc->external)
        onxi_file_read_ahead(&doc->external->input);
}

void onxi_doc_forget(onx_doc *doc, onx_str bytes)
{
    for (; doc; doc = doc->also) {
        const struct onxi_external *e = doc->external;
        if (doc->input)
            onxi_file_forget(doc->input, bytes); /* has no effect on bytes outside of the input */
        for (uint32_t i = 0; e && i < e->count; i++)
            onxi_file_forget(&e->files[i]->file, bytes);
        for (const onxi_spilled *p = doc->spilled; p; p = p->next)
            onxi_file_forget(&p->file, bytes);
    }
}

/* ---- checksums ---- */

typedef struct verifier {
    onx_doc *doc;
    bool mismatch;
} verifier;

static onx_status hash_file(onx_doc *doc, data_file *file)
{
    enum { WINDOW = 8 << 20 };
    onx_str left = file->file.bytes;
    onxi_sha1 *hash;
    ONX_TRY(onxi_file_need(doc->cx, ONXI_NOWHERE, &file->file, left));
    ONX_TRY(onxi_sha1_new(doc->cx, &hash));
    while (left.len) {
        onx_str part = onx_str_make(left.ptr, left.len < WINDOW ? left.len : WINDOW);
        onxi_sha1_add(hash, part);
        onxi_file_forget(&file->file, part); /* otherwise a large file would fill the memory of the process */
        left = onx_str_make(left.ptr + part.len, left.len - part.len);
    }
    file->hashed = true;
    return onxi_sha1_end(hash, file->sha1);
}

static bool same_hex(onx_str text, const char *hex)
{
    if (text.len != 40)
        return false;
    for (size_t i = 0; i < 40; i++) {
        char c = text.ptr[i];
        if ((c >= 'A' && c <= 'F' ? c | 0x20 : c) != hex[i])
            return false;
    }
    return true;
}

static bool is_sha1(onx_str s)
{
    bool hex = s.len == 40;
    for (size_t i = 0; i < s.len && hex; i++)
        hex = (s.ptr[i] >= '0' && s.ptr[i] <= '9') || ((s.ptr[i] | 0x20) >= 'a' && (s.ptr[i] | 0x20) <= 'f');
    return hex;
}

static onx_status verify_tensor(void *user, const onx_visit *at)
{
    verifier *v = user;
    const onx_tensor *t = at->message;
    onxi_external_ref ref;
    onxi_external_fault fault;
    if (at->kind != ONX_KIND_TENSOR || !onx_tensor_is_external(t))
        return ONX_OK;
    place p;
    onx_str bytes;
    data_file *file = NULL;
    if (!onxi_external_parse(t, &ref, &fault) || !ref.has_checksum)
        return ONX_OK; /* invalid entries are reported elsewhere; there is nothing to verify */
    place_of(&p, t, at);
    if (!is_sha1(ref.checksum)) {
        onxi_warn(v->doc->cx, ONX_WARNING, "E-19", p.where,
                  "the checksum is not 40 hexadecimal digits and cannot be verified");
        return ONX_OK;
    }
    onx_status status = find_bytes(v->doc, t, &p, &bytes, &file);
    if (status == ONX_OK && !file->hashed)
        status = hash_file(v->doc, file);
    if (status == ONX_E_INVALID) { /* recorded; continue with the other files */
        v->mismatch = true;
        return ONX_OK;
    }
    ONX_TRY(status);
    if (!same_hex(ref.checksum, file->sha1)) {
        onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_INVALID, .rule = "E-19", .where = p.where };
        diag.value = onx_str_of(file->sha1);
        diag.expected = ref.checksum;
        onxi_report(v->doc->cx, &diag, "the SHA-1 of %.*s is not the one recorded", ONX_ARG(file->location));
        v->mismatch = true;
    }
    return ONX_OK;
}

onx_status onx_external_verify(onx_doc *doc)
{
    ONXI_NEED(NULL, doc);
    verifier v = { doc, false };
    ONX_TRY(onx_message_walk(doc->cx, doc->kind, doc->root, verify_tensor, &v));
    return v.mismatch ? ONX_E_INVALID : ONX_OK;
}
