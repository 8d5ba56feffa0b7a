/* io_external.c - moves weights out of a model into data files and back, without changing the document: first the
 * layout of the files is computed, then the bytes are streamed, then a root message that refers to them is created. */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THRESHOLD = 1024, ALIGNMENT = 4096, WIDEST_GAP = 65536 };

typedef struct data_file {
    onx_str location;
    onxi_output *output; /* NULL after the rename */
    uint64_t size;
    char sha1[41];
    onx_str aside; /* name of the older file of this name meanwhile; empty: there is none */
} data_file;

typedef struct weight {
    const onx_tensor *tensor;
    uint64_t offset, size;
    uint32_t file;
} weight;

struct onxi_io_move {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena;
    onx_external_options options;
    int dir;    /* the folder of the new model */
    int folder; /* the folder of the data files, -1 until the first one */
    data_file *files;
    uint32_t file_count, file_room;
    weight *weights; /* in traversal order */
    size_t weight_count, weight_room;
    size_t next; /* position during rewriting */
};

/* ---- layout ---- */

/* Reserves room for one more element in a list of the arena; false when out of memory. */
static bool grow(onx_arena *arena, void **list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return true;
    size_t bigger = *room ? *room * 2 : 16;
    void *now = onxi_arena_array(arena, bigger, size);
    if (!now)
        return false;
    if (count)
        memcpy(now, *list, count * size);
    *list = now;
    *room = bigger;
    return true;
}

/* A file name from letters, digits and ".-_" of the tensor's name, so that it can be recognised; a number makes it
 * unique. */
static onx_str file_name(onxi_io_move *m, const onx_tensor *t)
{
    char name[81];
    onx_str from = onx_view(t->name);
    size_t n = 0;
    for (; n < from.len && n < sizeof name - 1; n++) {
        char c = from.ptr[n];
        bool plain =
            (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '.' || c == '-' || c == '_';
        name[n] = plain ? c : '_';
    }
    name[n] = 0;
    const char *prefix = m->options.location;
    size_t len = strlen(prefix);
    return onxi_arena_printf(m->arena, "%s%s%05u%s%s", prefix, len && prefix[len - 1] == '/' ? "" : ".", m->file_count,
                             n ? "-" : "", name);
}

static onx_status add_file(onxi_io_move *m, const onx_tensor *t)
{
    size_t room = m->file_room;
    onxi_external_fault fault;
    if (m->file_count == UINT32_MAX || !grow(m->arena, (void **)&m->files, m->file_count, &room, sizeof *m->files))
        return onxi_no_memory(m->cx);
    m->file_room = (uint32_t)room;
    onx_str location = m->options.file_per_tensor ? file_name(m, t)
                       : m->file_count == 0       ? onxi_arena_printf(m->arena, "%s", m->options.location)
                                            : onxi_arena_printf(m->arena, "%s.%u", m->options.location, m->file_count);
    if (!location.ptr)
        return ONX_E_MEMORY;
    if (!onxi_location_is_sound(location, &fault)) {
        onx_diag diag = {
            .severity = ONX_ERROR, .status = ONX_E_MISUSE, .rule = fault.rule, .where = ONXI_NOWHERE, .value = location
        };
        onxi_report(m->cx, &diag, "the data file cannot have that name: %s", fault.text);
        return ONX_E_MISUSE;
    }
    m->files[m->file_count++] = (data_file){ .location = location };
    return ONX_OK;
}

/* Assigns a position to the next `size` bytes: after the previous ones, aligned, or in a new file. */
static onx_status place(onxi_io_move *m, weight *w)
{
    uint64_t alignment = m->options.alignment, end = 0;
    data_file *file = m->file_count ? &m->files[m->file_count - 1] : NULL;
    bool fits = file && !m->options.file_per_tensor;
    if (fits) {
        fits = onxi_add_u64(file->size, alignment - 1, &w->offset);
        w->offset &= ~(alignment - 1);
        fits = fits && onxi_add_u64(w->offset, w->size, &end) && end <= INT64_MAX;
        fits = fits && (m->options.split == 0 || file->size == 0 || end <= m->options.split);
    }
    if (!fits) {
        ONX_TRY(add_file(m, w->tensor));
        w->offset = 0;
        end = w->size;
    }
    w->file = m->file_count - 1;
    m->files[w->file].size = end;
    return ONX_OK;
}

/* Does this tensor move? Tensors with large enough data do, and external ones always. Damaged tensors stay
 * unchanged. */
static bool moves(const onxi_io_move *m, const onx_tensor *t, uint64_t *size)
{
    uint64_t count;
    bool external = onx_tensor_is_external(t);
    if (!onx_tensor_count(t, &count) || !onx_dtype_size(t->data_type, count, size))
        return external; /* moving it fails, as it should, because the reference would be dangling */
    if (m->options.inline_all)
        return external;
    return external || (*size >= m->options.threshold && *size > 0 && onxi_tensor_is_sound(t));
}

static onx_status collect(void *user, const onx_visit *at)
{
    onxi_io_move *m = user;
    weight w = { .tensor = at->message };
    if (at->kind != ONX_KIND_TENSOR || !moves(m, w.tensor, &w.size))
        return ONX_OK;
    if (!m->options.inline_all)
        ONX_TRY(place(m, &w));
    if (!grow(m->arena, (void **)&m->weights, m->weight_count, &m->weight_room, sizeof w))
        return ONX_E_MEMORY;
    m->weights[m->weight_count++] = w;
    return ONX_OK;
}

/* ---- writing ---- */

/* The last component of the location. */
static const char *name_of(const data_file *file)
{
    const char *slash = strrchr(file->location.ptr, '/');
    return slash ? slash + 1 : file->location.ptr;
}

/* All data files are in one folder; their locations differ only in the last component. */
static onx_status open_output(onxi_io_move *m, data_file *file)
{
    if (m->folder < 0) {
        int folder;
        onx_str leaf;
        ONX_TRY(onxi_beneath_folder(m->cx, ONXI_NOWHERE, m->dir, file->location, ONXI_BENEATH_MAKE, &folder, &leaf));
        m->folder =
            openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a descriptor that can be synced, if possible */
        if (m->folder < 0)
            m->folder = folder;
        else
            close(folder);
    }
    return onxi_output_open_at(m->cx, m->folder, name_of(file), file->location.ptr, &file->output);
}

/* Writes all weights of one file, from weights[*at] on. */
static onx_status write_file(onxi_io_move *m, uint32_t index, size_t *at)
{
    data_file *file = &m->files[index];
    ONX_TRY(open_output(m, file));
    onxi_io_stream stream = { .output = file->output, .doc = m->doc };
    if (m->options.checksum)
        ONX_TRY(onxi_sha1_new(m->cx, &stream.hash));
    onx_status status = ONX_OK;
    for (; status == ONX_OK && *at < m->weight_count && m->weights[*at].file == index; ++*at) {
        const weight *w = &m->weights[*at];
        status = onxi_io_stream_skip(&stream, w->offset - onxi_output_size(file->output));
        if (status == ONX_OK)
            status = onxi_tensor_stream(m->doc, w->tensor, onxi_io_stream_sink(&stream));
    }
    if (stream.hash) {
        onx_status hashed = onxi_sha1_end(stream.hash, file->sha1);
        status = status != ONX_OK ? status : hashed;
    }
    return status != ONX_OK ? status : onxi_output_finish(file->output);
}

/* ---- creating the root ---- */

static bool add_entry(onxi_io_move *m, onx_tensor *t, const char *key, onx_str value)
{
    onx_string_string_entry *e = ONX_ADD(m->arena, t, external_data, STRING_STRING_ENTRY);
    if (!e)
        return false;
    e->has = onx_string_string_entry_has_key | onx_string_string_entry_has_value;
    return onx_arena_refer(m->arena, onx_str_of(key), &e->key) == ONX_OK &&
           onx_arena_refer(m->arena, value, &e->value) == ONX_OK;
}

/* A copy of the tensor without its data. */
static onx_tensor *bare(onxi_io_move *m, const onx_tensor *old)
{
    onx_tensor *t = ONXI_NEW(m->arena, onx_tensor);
    if (!t)
        return NULL;
    *t = *old;
    ONX_CLEAR(tensor, t, raw_data);
    ONX_CLEAR(tensor, t, data_location);
    t->data_location = ONX_DATA_DEFAULT;
    t->raw_data = (onx_bytes){ 0 };
    t->float_data = t->double_data = NULL;
    t->int32_data = NULL;
    t->int64_data = NULL;
    t->uint64_data = NULL;
    t->float_data_count = t->double_data_count = t->int32_data_count = t->int64_data_count = t->uint64_data_count = 0;
    t->external_data = NULL;
    t->external_data_count = 0;
    return t;
}

static onx_status replace(void *user, const onx_visit *at, const void **out)
{
    onxi_io_move *m = user;
    if (m->next == m->weight_count || m->weights[m->next].tensor != at->message)
        return ONX_OK;
    const weight *w = &m->weights[m->next++];
    onx_tensor *t = bare(m, w->tensor);
    if (!t)
        return ONX_E_MEMORY;
    *out = t;
    if (m->options.inline_all) {
        onx_str bytes;
        ONX_TRY(onx_external_bytes(m->doc, w->tensor, &bytes));
        t->has |= onx_tensor_has_raw_data;
        return onx_arena_refer(m->arena, bytes, &t->raw_data);
    }
    const data_file *file = &m->files[w->file];
    ONX_SET(tensor, t, data_location, ONX_DATA_EXTERNAL);
    onx_str offset = onxi_arena_printf(m->arena, "%llu", (unsigned long long)w->offset);
    onx_str length = onxi_arena_printf(m->arena, "%llu", (unsigned long long)w->size);
    bool done = offset.ptr && length.ptr && add_entry(m, t, "location", file->location) &&
                add_entry(m, t, "offset", offset) && add_entry(m, t, "length", length);
    if (done && m->options.checksum)
        done = add_entry(m, t, "checksum", onx_str_of(file->sha1));
    return done ? ONX_OK : ONX_E_MEMORY;
}

/* ---- the whole move ---- */

static onx_status check_options(onxi_io_move *m, const char *path)
{
    onx_external_options *o = &m->options;
    if (o->inline_all)
        return o->location ? onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE, "weights cannot move out and in at once")
                           : ONX_OK;
    if (!o->location)
        return ONX_OK;
    o->threshold = o->threshold ? o->threshold : THRESHOLD;
    o->alignment = o->alignment ? o->alignment : ALIGNMENT;
    if (o->alignment & (o->alignment - 1))
        return onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE, "an alignment of %llu is not a power of two",
                         (unsigned long long)o->alignment);
    if (o->alignment > WIDEST_GAP) {
        const onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_MISUSE, .rule = "E-29", .where = ONXI_NOWHERE };
        onxi_report(m->cx, &diag, "an alignment of %llu leaves gaps of more than %u bytes in the data file",
                    (unsigned long long)o->alignment, (unsigned)WIDEST_GAP);
        return ONX_E_MISUSE;
    }
    if (strcmp(path, "-") == 0)
        return onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                         "a model on standard output has no folder for its data files");
    char folder[PATH_MAX], reason[128];
    if (!onxi_io_folder_of(path, folder, sizeof folder))
        return onxi_fail(m->cx, ONX_E_IO, ONXI_NOWHERE, "the path is longer than any path may be");
    m->dir = open(folder, onxi_platform_folder_flags());
    if (m->dir < 0)
        return onxi_fail(m->cx, ONX_E_IO, ONXI_NOWHERE, "cannot open the folder %s: %s", folder,
                         onxi_error_text(errno, reason, sizeof reason));
    return ONX_OK;
}

static onx_status run(onxi_io_move *m, const char *path, const void **root_out)
{
    onx_doc *doc = m->doc;
    ONX_TRY(check_options(m, path));
    if (!m->options.location && !m->options.inline_all)
        return ONX_OK;
    ONX_TRY(onx_message_walk(m->cx, doc->kind, doc->root, collect, m));
    size_t at = 0;
    for (uint32_t i = 0; i < m->file_count; i++)
        ONX_TRY(write_file(m, i, &at));
    return onxi_message_rewrite(m->arena, doc->kind, doc->root, ONX_KIND_TENSOR, replace, m, root_out);
}

onx_status onxi_io_move_begin(onx_doc *doc, const onx_external_options *options, const char *path, onxi_io_move **out,
                              const void **root_out)
{
    onx_arena *arena;
    *out = NULL;
    *root_out = doc->root;
    ONX_TRY(onx_arena_new(doc->cx, &arena));
    onxi_io_move *m = ONXI_NEW(arena, onxi_io_move);
    if (!m) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    *m = (onxi_io_move){ .cx = doc->cx, .doc = doc, .arena = arena, .options = *options, .dir = -1, .folder = -1 };
    onx_status status = run(m, path, root_out);
    if (status == ONX_OK)
        *out = m;
    else
        onxi_io_move_end(m);
    return status;
}

/* ---- renaming ---- */

static onx_status fail(const onxi_io_move *m, const char *doing, const data_file *file)
{
    char reason[128];
    return onxi_fail(m->cx, ONX_E_IO, ONXI_NOWHERE, "cannot %s %s: %s", doing,
                     file ? file->location.ptr : "the folder of the data files",
                     onxi_error_text(errno, reason, sizeof reason));
}

static onx_status sync_folder(const onxi_io_move *m)
{
    return m->folder >= 0 && onxi_folder_sync_failed(m->folder) ? fail(m, "sync", NULL) : ONX_OK;
}

static onx_status commit_data(onxi_io_move *m)
{
    for (uint32_t i = 0; i < m->file_count; i++) {
        onxi_output *output = m->files[i].output;
        m->files[i].output = NULL;
        ONX_TRY(onxi_output_commit(output));
    }
    return sync_folder(m);
}

/* Data files of these names get names of their own, `.NAME.old`, until the new model is in place. */
static onx_status set_aside(onxi_io_move *m)
{
    for (uint32_t i = 0; i < m->file_count; i++) {
        data_file *file = &m->files[i];
        struct stat st;
        if (fstatat(m->folder, name_of(file), &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        file->aside = onxi_arena_printf(m->arena, ".%.200s.old", name_of(file));
        if (!file->aside.ptr)
            return ONX_E_MEMORY;
        if (renameat(m->folder, name_of(file), m->folder, file->aside.ptr) != 0) {
            file->aside = (onx_str){ 0 };
            return fail(m, "rename", file);
        }
    }
    return sync_folder(m);
}

static void bring_back(const onxi_io_move *m)
{
    for (uint32_t i = 0; i < m->file_count; i++)
        if (m->files[i].aside.len) /* best effort: the error that led here is the one to report */
            (void)renameat(m->folder, m->files[i].aside.ptr, m->folder, name_of(&m->files[i]));
}

static bool replaces_data(const onxi_io_move *m)
{
    struct stat st;
    for (uint32_t i = 0; i < m->file_count; i++)
        if (fstatat(m->folder, name_of(&m->files[i]), &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

/* All files are complete. New data files come first, then the model that refers to them. If there are data files of
 * these names and an older model that may refer to them, they go first: whoever reads a model between the renames does
 * not find its data, which is an error, instead of the data of the other model. */
onx_status onxi_io_move_commit(onxi_io_move *m, onxi_output *model, const char *path)
{
    struct stat st;
    onx_status status;
    if (stat(path, &st) != 0 || !replaces_data(m)) {
        status = commit_data(m);
        if (status == ONX_OK)
            return onxi_output_commit(model);
        onxi_output_abandon(model);
        return status;
    }
    status = set_aside(m);
    if (status == ONX_OK)
        status = onxi_output_commit(model);
    else
        onxi_output_abandon(model);
    if (status != ONX_OK) {
        bring_back(m);
        return status;
    }
    ONX_TRY(commit_data(m));
    for (uint32_t i = 0; i < m->file_count; i++)
        if (m->files[i].aside.len && unlinkat(m->folder, m->files[i].aside.ptr, 0) != 0)
            return fail(m, "remove the old file of the name", &m->files[i]);
    return ONX_OK;
}

void onxi_io_move_end(onxi_io_move *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->file_count; i++)
        onxi_output_abandon(m->files[i].output);
    if (m->folder >= 0)
        close(m->folder);
    if (m->dir >= 0)
        close(m->dir);
    onx_arena_free(m->arena); /* holds the move itself */
}
