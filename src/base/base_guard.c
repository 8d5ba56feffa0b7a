/* base_guard.c - records the files that must not be replaced: those that a job reads, and those that it has written. An
 * existing file is identified by device and inode, one that does not exist yet by its folder and name, so that no
 * spelling of a path, symbolic link or hard link makes one file look like two (docs/notes/files.md). */
#include "base/base.h"
#include "base/base_ctx.h"

#include <fcntl.h>
#include <sys/stat.h>

typedef enum output_state {
    NO_OUTPUT,
    CLAIMED, /* will be written; the output with the same spelling takes the claim over */
    OPENED,  /* is being written */
    WRITTEN
} output_state;

/* What is known of a file, or of a name in a folder; for the latter `name` is not empty, and the id is that of the
 * folder. */
typedef struct entry {
    onxi_file_id id;
    onx_str name;
    const char *read_as; /* name of the file as an input, for messages; NULL: it is not an input */
    const char *written_as;
    const void *owner; /* OPENED: the output that writes it */
    output_state state;
    bool in_place; /* the claim allows it to replace an input */
} entry;

typedef struct onxi_guard {
    unsigned users;
    onx_arena *arena;
    entry *entries;
    uint32_t count, room;
    onxi_table table;
    onxi_guard_source *sources;
} onxi_guard;

/* ---- the table ---- */

/* NULL when out of memory. */
static const char *copy_text(const onxi_guard *g, onx_str s)
{
    char *copy = onxi_arena_get(g->arena, s.len + 1);
    if (copy && s.len)
        memcpy(copy, s.ptr, s.len);
    if (copy)
        copy[s.len] = 0;
    return copy;
}

static bool same_id(onxi_file_id a, onxi_file_id b)
{
    return a.device == b.device && a.inode == b.inode;
}

/* The entry of the file or name; a new one is created if there is none. */
static onx_status find_or_add(onx_ctx *cx, onxi_file_id id, onx_str name, entry **out)
{
    onxi_guard *g = cx->guard;
    uint32_t hash = onxi_table_hash_word(&g->table, id.device) ^ onxi_table_hash_word(&g->table, id.inode + 1);
    hash ^= onxi_table_hash(&g->table, name);
    ONXI_TABLE_EACH (&g->table, hash, i)
        if (same_id(g->entries[i].id, id) && onx_str_equal(g->entries[i].name, name)) {
            *out = &g->entries[i];
            return ONX_OK;
        }
    const char *copy = copy_text(g, name);
    if (!copy || !ONXI_GROW(cx, g->entries, g->room, g->count + 1) || !onxi_table_add(&g->table, hash, g->count))
        return ONX_E_MEMORY;
    *out = &g->entries[g->count++];
    **out = (entry){ .id = id, .name = onx_str_make(copy, name.len) };
    return ONX_OK;
}

/* ---- entering and leaving ---- */

onx_status onxi_guard_enter(onx_ctx *cx)
{
    if (!cx->guard) {
        onx_arena *arena;
        ONX_TRY(onx_arena_new(cx, &arena));
        onxi_guard *g = ONXI_NEW(arena, onxi_guard);
        if (!g) {
            onx_arena_free(arena);
            return ONX_E_MEMORY;
        }
        g->arena = arena;
        g->table = onxi_table_on_heap(cx);
        cx->guard = g;
    }
    cx->guard->users++;
    return ONX_OK;
}

void onxi_guard_leave(onx_ctx *cx)
{
    onxi_guard *g = cx->guard;
    if (!g || --g->users > 0)
        return;
    while (g->sources)
        onxi_guard_unwatch(cx, g->sources);
    onxi_release(cx, g->entries, g->room * sizeof *g->entries);
    onxi_table_free(&g->table);
    cx->guard = NULL;
    onx_arena_free(g->arena); /* holds the guard itself */
}

onx_status onx_ctx_guard_files(onx_ctx *cx)
{
    ONXI_NEED(cx, cx);
    return cx->guard ? ONX_OK : onxi_guard_enter(cx);
}

void onxi_guard_watch(onx_ctx *cx, onxi_guard_source *source)
{
    if (!cx->guard || source->watched)
        return;
    source->watched = true;
    source->listed = false;
    source->next = cx->guard->sources;
    cx->guard->sources = source;
}

void onxi_guard_unwatch(onx_ctx *cx, onxi_guard_source *source)
{
    if (!cx->guard || !source->watched)
        return;
    onxi_guard_source **at = &cx->guard->sources;
    while (*at && *at != source)
        at = &(*at)->next;
    if (*at)
        *at = source->next;
    source->watched = false;
}

/* ---- files that are read ---- */

onxi_file_id onxi_file_id_of(const struct stat *st)
{
    return (onxi_file_id){ (uint64_t)st->st_dev, (uint64_t)st->st_ino };
}

onx_status onxi_guard_read(onx_ctx *cx, onxi_file_id id, onx_str shown)
{
    entry *e;
    if (!cx->guard)
        return ONX_OK;
    ONX_TRY(find_or_add(cx, id, (onx_str){ 0 }, &e));
    if (!e->read_as)
        e->read_as = copy_text(cx->guard, shown);
    return e->read_as ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_guard_read_beneath(onx_ctx *cx, int folder, onx_str location)
{
    entry *e;
    struct stat st;
    if (!cx->guard || fstat(folder, &st) != 0)
        return ONX_OK;
    /* Looks up by name in the folder first, because a model may refer to one file a million times. */
    ONX_TRY(find_or_add(cx, onxi_file_id_of(&st), location, &e));
    if (e->read_as)
        return ONX_OK;
    e->read_as = copy_text(cx->guard, location);
    if (!e->read_as)
        return ONX_E_MEMORY;
    return fstatat(folder, e->read_as, &st, 0) == 0 ? onxi_guard_read(cx, onxi_file_id_of(&st), location) : ONX_OK;
}

/* ---- files that are written ---- */

static onx_status refuse(onx_ctx *cx, const char *shown, const char *what, const char *other)
{
    onx_diag diag = { .severity = ONX_ERROR, .status = ONX_E_MISUSE, .where = ONXI_NOWHERE };
    diag.hint = onx_str_of("give the output another name");
    if (strcmp(shown, other) == 0)
        onxi_report(cx, &diag, "cannot write %s: the %s of that name would be lost", shown, what);
    else
        onxi_report(cx, &diag, "cannot write %s: it is the same file as the %s %s, which would be lost", shown, what,
                    other);
    return ONX_E_MISUSE;
}

/* May this output use the file or name? Records an error if not. */
static onx_status expect_free(onx_ctx *cx, const entry *e, const onxi_guard_write *w, output_state to)
{
    bool taken_up = e->state == CLAIMED && to == OPENED && strcmp(e->written_as, w->shown) == 0;
    bool own = e->state == NO_OUTPUT || taken_up || (e->state == OPENED && e->owner == w->owner);
    if (e->read_as && !w->in_place && !same_id(e->id, w->own))
        return refuse(cx, w->shown, "input", e->read_as);
    return own ? ONX_OK : refuse(cx, w->shown, "output", e->written_as);
}

static onx_status list_sources(onx_ctx *cx)
{
    for (onxi_guard_source *s = cx->guard->sources; s; s = s->next) {
        if (!s->listed)
            ONX_TRY(s->list(s->user));
        s->listed = true;
    }
    return ONX_OK;
}

/* The regular file that the name refers to now; false when there is none. */
static bool target_of(const onxi_guard_write *w, struct stat *st)
{
    return fstatat(w->folder, w->name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode);
}

/* The entry of the file or name if the output may use it. */
static onx_status look(onx_ctx *cx, onxi_file_id id, onx_str name, onxi_guard_write *w, output_state to, entry **out)
{
    ONX_TRY(find_or_add(cx, id, name, out));
    w->in_place |= (*out)->state == CLAIMED && (*out)->in_place;
    return expect_free(cx, *out, w, to);
}

static onx_status take(onx_ctx *cx, onxi_file_id id, onx_str name, onxi_guard_write *w, output_state to)
{
    entry *e;
    ONX_TRY(look(cx, id, name, w, to, &e));
    if (!e->written_as)
        e->written_as = copy_text(cx->guard, onx_str_of(w->shown));
    if (!e->written_as)
        return ONX_E_MEMORY;
    e->state = to;
    e->owner = w->owner;
    e->in_place = w->in_place;
    return ONX_OK;
}

/* Claims both the name and the file that has it now; if either is refused, neither is claimed. */
static onx_status begin(onx_ctx *cx, onxi_guard_write *w, output_state to)
{
    struct stat folder, target;
    entry *e;
    if (!cx->guard)
        return ONX_OK;
    ONX_TRY(list_sources(cx));
    const onx_str name = onx_str_of(w->name), any = { 0 };
    bool named = fstat(w->folder, &folder) == 0; /* otherwise opening the output fails as well, and reports the
                                                  * reason */
    bool exists = target_of(w, &target);
    if (named)
        ONX_TRY(look(cx, onxi_file_id_of(&folder), name, w, to, &e));
    if (exists)
        ONX_TRY(look(cx, onxi_file_id_of(&target), any, w, to, &e));
    if (named)
        ONX_TRY(take(cx, onxi_file_id_of(&folder), name, w, to));
    return exists ? take(cx, onxi_file_id_of(&target), any, w, to) : ONX_OK;
}

void onxi_guard_give_up(onx_ctx *cx, const void *owner)
{
    onxi_guard *g = cx->guard;
    for (uint32_t i = 0; g && i < g->count; i++)
        if (g->entries[i].state == OPENED && g->entries[i].owner == owner)
            g->entries[i].state = NO_OUTPUT;
}

onx_status onxi_guard_claim(onx_ctx *cx, onxi_guard_write *w)
{
    return begin(cx, w, CLAIMED);
}

void onxi_guard_again(onx_ctx *cx, const char *shown)
{
    onxi_guard *g = cx->guard;
    for (uint32_t i = 0; g && i < g->count; i++)
        if (g->entries[i].state != NO_OUTPUT && strcmp(g->entries[i].written_as, shown) == 0)
            g->entries[i].state = CLAIMED;
}

onx_status onxi_guard_begin(onx_ctx *cx, onxi_guard_write *w)
{
    return begin(cx, w, OPENED);
}

onx_status onxi_guard_replace(onx_ctx *cx, const onxi_guard_write *w)
{
    struct stat st;
    if (!cx->guard || !target_of(w, &st))
        return ONX_OK;
    entry *e;
    ONX_TRY(find_or_add(cx, onxi_file_id_of(&st), (onx_str){ 0 }, &e));
    ONX_TRY(expect_free(cx, e, w, OPENED));
    if (st.st_nlink == 1) { /* its last name is removed, and the system may reuse the inode number */
        e->read_as = NULL;
        e->state = NO_OUTPUT;
    }
    return ONX_OK;
}

onx_status onxi_guard_done(onx_ctx *cx, onxi_file_id made, const onxi_guard_write *w)
{
    entry *e;
    if (!cx->guard)
        return ONX_OK;
    ONX_TRY(find_or_add(cx, made, (onx_str){ 0 }, &e));
    e->read_as = NULL;
    e->state = WRITTEN;
    e->written_as = copy_text(cx->guard, onx_str_of(w->shown));
    return e->written_as ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_guard_stream(onx_ctx *cx, int fd, const char *shown)
{
    struct stat st;
    entry *e;
    if (!cx->guard || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return ONX_OK;
    ONX_TRY(list_sources(cx));
    ONX_TRY(find_or_add(cx, onxi_file_id_of(&st), (onx_str){ 0 }, &e));
    return e->read_as ? refuse(cx, shown, "input", e->read_as) : ONX_OK;
}
