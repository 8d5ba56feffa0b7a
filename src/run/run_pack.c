/* run_pack.c - packed constants. They are made once per session. Sessions of one document with the same allocator share
 * them through a shelf. */
#include "run/run.h"

#include <stdatomic.h>

/* ---- packing ---- */

typedef struct packing_job {
    const onx_packing *packing;
    const void *elements;
    void *out;
    uint64_t first; /* index of the first piece */
    atomic_bool failed;
} packing_job;

static void make_piece(void *user, uint64_t piece, unsigned worker)
{
    packing_job *job = user;
    (void)worker;
    if (job->packing->make(job->packing->user, job->elements, job->first + piece, job->out) != ONX_OK)
        atomic_store_explicit(&job->failed, true, memory_order_relaxed);
}

/* Packs elements that are in memory or in the document. Large constants of the document are read in chunks, and their
 * pages may be dropped afterwards. */
static onx_status make_from(onxi_run_session *s, const onxi_run_source *source, const void *elements,
                            const onx_packing *packing, void *out)
{
    enum { AT_ONCE = 32 << 20 }; /* bytes */
    const uint64_t pieces = packing->pieces ? packing->pieces : 1, size = source ? source->value->size : 0;
    const uint64_t groups = packing->in_order ? 1 + size / AT_ONCE : 1, each = (pieces + groups - 1) / groups;
    packing_job job = { .packing = packing, .elements = elements, .out = out };
    for (; job.first < pieces; job.first += each) {
        const uint64_t count = pieces - job.first < each ? pieces - job.first : each;
        onxi_team_run(s->threads, count, make_piece, &job);
        if (atomic_load_explicit(&job.failed, memory_order_relaxed))
            return ONX_E_UNSUPPORTED;
        if (!source || packing->note) /* the elements of notes are read again */
            continue;
        const uint64_t from = groups > 1 ? size / pieces * job.first : 0;
        onxi_run_source_forget(s, source, from, job.first + count == pieces ? size - from : size / pieces * count);
    }
    return ONX_OK;
}

/* A buffer for elements. The shared buffer is used by the thread that plans; other threads allocate one. */
static void *elements_take(onxi_run_session *s, const onxi_run_keeper *to, bool plans, uint64_t size)
{
    return plans ? onxi_run_elements_take(s, size) : onxi_resize(to->cx, NULL, 0, size);
}

static void elements_give(onxi_run_session *s, const onxi_run_keeper *to, bool plans, void *elements, uint64_t size)
{
    if (plans)
        onxi_run_elements_give(s, elements, size);
    else
        onxi_release(to->cx, elements, size);
}

enum { SOME = 4 << 20 }; /* bytes of elements that are made at a time, where it is known which elements a piece reads */

/* Makes the elements of some pieces and packs them, then the next ones: all elements may take more memory than their
 * packed form. */
static onx_status make_some(onxi_run_session *s, const onxi_run_keeper *to, const onx_packing *packing, bool plans,
                            void *out)
{
    const onxi_run_source *source = to->source;
    const uint64_t count = source->value->count, width = source->value->size / count, pieces = packing->pieces;
    uint64_t each = SOME / width / packing->part;
    each = each < s->threads ? s->threads : each;
    each = each < pieces ? each : pieces;
    const uint64_t most = each * packing->part < count ? each * packing->part : count;
    char *elements = elements_take(s, to, plans, most * width);
    packing_job job = { .packing = packing, .out = out };
    if (!elements)
        return ONX_E_MEMORY;
    for (; job.first < pieces && !atomic_load_explicit(&job.failed, memory_order_relaxed); job.first += each) {
        const uint64_t from = job.first * packing->part, left = from < count ? count - from : 0;
        const uint64_t n = left < most ? left : most;
        onxi_run_source_read(source, from, n, elements);
        onxi_run_source_forget(s, source, from * width, n * width);
        /* Pieces index elements from the first element of all. */
        job.elements = (const void *)((uintptr_t)elements - from * width);
        onxi_team_run(s->threads, pieces - job.first < each ? pieces - job.first : each, make_piece, &job);
    }
    elements_give(s, to, plans, elements, most * width);
    ONX_TRY(onxi_run_source_failed(to->cx, source));
    return atomic_load_explicit(&job.failed, memory_order_relaxed) ? ONX_E_UNSUPPORTED : ONX_OK;
}

static onx_status make_bytes(onxi_run_session *s, const onxi_run_keeper *to, const onx_packing *packing, bool plans,
                             void *out)
{
    const onxi_run_source *source = to->source;
    if (!source || source->made)
        return make_from(s, source, source ? source->value->data : to->elements, packing, out);
    if (packing->unaligned && onxi_run_source_is_whole(source))
        return make_from(s, source, source->raw, packing, out);
    const void *held = plans ? onxi_run_elements_held(s, source) : NULL;
    if (held)
        return make_from(s, NULL, held, packing, out);
    const uint64_t size = source->value->size;
    if (packing->part && size > SOME)
        return make_some(s, to, packing, plans, out);
    void *elements = elements_take(s, to, plans, size);
    if (!elements)
        return ONX_E_MEMORY;
    onxi_run_source_write(s, source, elements);
    onx_status status = onxi_run_source_failed(to->cx, source);
    if (status == ONX_OK && plans)
        onxi_run_elements_hold(s, source, elements);
    if (status == ONX_OK)
        status = make_from(s, NULL, elements, packing, out);
    elements_give(s, to, plans, elements, size);
    return status;
}

static void *aligned(void *base)
{
    return (void *)(((uintptr_t)base + 63u) & ~(uintptr_t)63u);
}

/* Leaves the bytes to later sessions, or frees them. */
static void leave(const onx_allocator *a, const onxi_run_packed *k)
{
    if (k->mapped)
        onxi_store_unmap(k->base, k->mapped);
    else if (!ONXI_PLATFORM_KEEPS || !k->base || !k->named ||
             !onxi_left_put(k->name, k->slab, k->base, k->size, onxi_run_slab_free))
        onxi_run_slab_give(a, k->slab, k->base, k->size);
}

/* ---- the shelf ---- */

typedef enum shared_state { GONE, MADE_NOW, MADE } shared_state;

/* An entry of a shelf. The lock of the shelf protects it, except for the packed bytes, which do not change. */
typedef struct onxi_run_shared {
    struct onxi_run_shelf *shelf;
    shared_state state;
    uint32_t users;
    onxi_run_packed bytes; /* all but its key and its list pointers are used */
} onxi_run_shared;

typedef struct onxi_run_shelf {
    struct onxi_run_shelf *next;
    const onx_doc *doc; /* identifies the shelf: another document cannot have this address while the shelf is in use */
    uint32_t users;     /* number of sessions; protected by the process's lock */
    onx_allocator allocator;
    pthread_mutex_t lock;
    pthread_cond_t made; /* signals that an entry is made or has failed */
    onx_ctx *cx;
    onx_arena *arena; /* for names and entries, which stay */
    onxi_dict names;  /* maps the name of a packed constant to its index in `all` */
    onxi_run_shared **all;
    uint32_t count, room;
} onxi_run_shelf;

static void shelf_free(onxi_run_shelf *shelf)
{
    onx_ctx *cx = shelf->cx;
    pthread_cond_destroy(&shelf->made);
    pthread_mutex_destroy(&shelf->lock);
    onx_arena_free(shelf->arena); /* also frees the shelf itself */
    onx_ctx_free(cx);
}

static onx_status shelf_new(const onxi_run_session *s, onxi_run_shelf **out)
{
    onx_ctx *cx = onxi_run_ctx_child(s->cx);
    onx_arena *arena = NULL;
    onxi_run_shelf *shelf = cx && onx_arena_new(cx, &arena) == ONX_OK ? ONXI_NEW(arena, onxi_run_shelf) : NULL;
    if (shelf && pthread_mutex_init(&shelf->lock, NULL) != 0)
        shelf = NULL;
    if (shelf && pthread_cond_init(&shelf->made, NULL) != 0) {
        pthread_mutex_destroy(&shelf->lock);
        shelf = NULL;
    }
    if (!shelf) {
        onx_arena_free(arena);
        onx_ctx_free(cx);
        return ONX_E_MEMORY;
    }
    shelf->doc = s->doc;
    shelf->allocator = *onxi_ctx_allocator(s->cx);
    shelf->cx = cx;
    shelf->arena = arena;
    shelf->names = onxi_dict_in_arena(arena);
    *out = shelf;
    return ONX_OK;
}

static onxi_run_shelf *find_shelf(const onxi_run_session *s, onxi_run_shelf *shelf)
{
    const onx_allocator *a = onxi_ctx_allocator(s->cx);
    while (shelf && (shelf->doc != s->doc || shelf->allocator.resize != a->resize || shelf->allocator.user != a->user))
        shelf = shelf->next;
    return shelf;
}

onx_status onxi_run_shelf_open(onxi_run_session *s)
{
    void **shelves = onxi_process_enter();
    onx_status status = ONX_OK;
    onxi_run_shelf *shelf = find_shelf(s, *shelves);
    if (!shelf && (status = shelf_new(s, &shelf)) == ONX_OK) {
        shelf->next = *shelves;
        *shelves = shelf;
    }
    if (status == ONX_OK) {
        shelf->users++;
        s->shelf = shelf;
    }
    onxi_process_leave();
    return status;
}

void onxi_run_shelf_close(onxi_run_session *s)
{
    onxi_run_shelf *shelf = s->shelf;
    if (!shelf)
        return;
    s->shelf = NULL;
    void **shelves = onxi_process_enter();
    const bool last = --shelf->users == 0;
    if (last && *shelves == shelf) {
        *shelves = shelf->next;
    } else if (last) {
        onxi_run_shelf *before = *shelves;
        while (before->next != shelf)
            before = before->next;
        before->next = shelf->next;
    }
    onxi_process_leave();
    if (last)
        shelf_free(shelf);
}

/* A name of the packed constant: its place in the document, its scale factors, and the packing key, as bytes. */
static onx_status shared_name(const onxi_run_keeper *to, const onx_packing *packing, onx_str *out)
{
    const onxi_run_source *source = to->source;
    const size_t factors = source->scale ? (size_t)source->value->dims[0] * sizeof *source->scale : 0;
    const size_t len = sizeof source->origin + sizeof source->narrow + sizeof factors + factors + packing->key_size;
    char *name = onx_arena_alloc(to->arena, len), *at = name;
    if (!name)
        return ONX_E_MEMORY;
    memcpy(at, &source->origin, sizeof source->origin);
    at += sizeof source->origin;
    *at++ = (char)source->narrow;
    memcpy(at, &factors, sizeof factors);
    at += sizeof factors;
    if (factors)
        memcpy(at, source->scale, factors);
    memcpy(at + factors, packing->key, packing->key_size);
    *out = onx_str_make(name, len);
    return ONX_OK;
}

/* Finds the entry of the name and counts the caller as a user. If the entry has to be made, the caller makes it. */
static onx_status shared_take(onxi_run_shelf *shelf, onx_str name, onxi_run_shared **out)
{
    onx_status status = ONX_OK;
    pthread_mutex_lock(&shelf->lock);
    const onxi_dict_entry *entry = onxi_dict_find(&shelf->names, name);
    if (!entry) {
        char *copy = onx_arena_alloc(shelf->arena, name.len);
        onxi_run_shared *shared = ONXI_NEW(shelf->arena, onxi_run_shared);
        if (copy)
            memcpy(copy, name.ptr, name.len);
        if (!copy || !shared || !ONXI_GROW_IN(shelf->arena, shelf->all, shelf->room, (uint64_t)shelf->count + 1) ||
            !(entry = onxi_dict_at(&shelf->names, onx_str_make(copy, name.len), shelf->count, NULL))) {
            status = ONX_E_MEMORY;
        } else {
            shared->shelf = shelf;
            shelf->all[shelf->count++] = shared;
        }
    }
    if (status == ONX_OK) {
        onxi_run_shared *shared = *out = shelf->all[entry->value];
        shared->users++;
        while (shared->state == MADE_NOW)
            pthread_cond_wait(&shelf->made, &shelf->lock);
        if (shared->state == GONE)
            shared->state = MADE_NOW;
    }
    pthread_mutex_unlock(&shelf->lock);
    return status;
}

/* Publishes the bytes, or that they could not be made (NULL). */
static void shared_put(onxi_run_shared *shared, const onxi_run_packed *k)
{
    onxi_run_shelf *shelf = shared->shelf;
    pthread_mutex_lock(&shelf->lock);
    shared->bytes = *k;
    shared->state = k->base ? MADE : GONE;
    if (!k->base)
        shared->users--;
    pthread_cond_broadcast(&shelf->made);
    pthread_mutex_unlock(&shelf->lock);
}

static void shared_let_go(onxi_run_shared *shared)
{
    onxi_run_shelf *shelf = shared->shelf;
    pthread_mutex_lock(&shelf->lock);
    if (--shared->users == 0) {
        leave(&shelf->allocator, &shared->bytes);
        shared->state = GONE;
    }
    pthread_mutex_unlock(&shelf->lock);
}

/* ---- freeing and finding ---- */

static void give_back(onx_ctx *cx, const onxi_run_packed *k)
{
    if (k->shared)
        shared_let_go(k->shared);
    else
        leave(onxi_ctx_allocator(cx), k);
}

void onxi_run_packs_free(onxi_run_packs *packs, onx_ctx *cx)
{
    for (const onxi_run_packed *k = packs->all; k; k = k->all)
        give_back(cx, k);
    packs->all = NULL;
}

/* Finds bytes with that name in the store, or those left by an earlier session. */
static bool find_named(onxi_run_session *s, const onxi_run_keeper *to, const onx_packing *packing, onxi_run_packed *k)
{
    const onxi_store *store = s->root->store;
    void *slab = NULL;
    const void *found = store ? onxi_store_find(s->root->store, s->threads, k->name, packing->size)
                              : onxi_left_take(k->name, k->size, &slab);
    if (!found)
        return false;
    k->base = (void *)(uintptr_t)found;
    k->mapped = store ? packing->size : 0;
    k->slab = slab;
    if (to->source && !to->source->made)
        onxi_run_source_forget(s, to->source, 0, to->source->value->size);
    return true;
}

/* Finds the bytes or makes them. With lean memory, new bytes in the store are mapped from there at once. */
static onx_status find_or_make(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                               const onx_packing *packing, onxi_run_packed *k)
{
    onxi_store *store = s->root->store;
    const bool named = ONXI_PLATFORM_KEEPS && onxi_run_saved_name(s, to, p, packing, &k->name);
    k->named = named && !store;
    if (named && find_named(s, to, packing, k))
        return ONX_OK;
    /* A plan may be freed before the session, so what it has computed uses no slab. */
    k->base = to->session ? onxi_run_slab_take(s, k->size, &k->slab) : onxi_resize(to->cx, NULL, 0, k->size);
    const onx_status status = k->base ? make_bytes(s, to, packing, true, aligned(k->base)) : ONX_E_MEMORY;
    if (status != ONX_OK) {
        onxi_run_slab_give(onxi_ctx_allocator(to->cx), k->slab, k->base, k->size);
        k->base = NULL;
        k->slab = NULL;
    } else if (named && store) {
        onxi_store_put(store, s->threads, k->name, aligned(k->base), packing->size);
        const void *own = k->base;
        struct onxi_run_slab *slab = k->slab;
        if (s->options.lean_memory && find_named(s, to, packing, k))
            onxi_run_slab_give(onxi_ctx_allocator(to->cx), slab, (void *)(uintptr_t)own, k->size);
    }
    return status;
}

/* Gets the bytes from the shelf, where they are made if need be. Bytes that cannot be shared are made for the session
 * alone. */
static onx_status get_bytes(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                            const onx_packing *packing, onxi_run_packed *k)
{
    onxi_run_shelf *shelf = to->session ? to->session->root->shelf : NULL;
    if (shelf && to->source && to->source->origin) {
        onx_str name;
        ONX_TRY(shared_name(to, packing, &name));
        ONX_TRY(shared_take(shelf, name, &k->shared));
        if (k->shared->state == MADE) {
            k->base = k->shared->bytes.base;
            k->mapped = k->shared->bytes.mapped;
            return ONX_OK;
        }
    }
    const onx_status status = find_or_make(s, to, p, packing, k);
    if (k->shared)
        shared_put(k->shared, k);
    return status;
}

/* Finds what was packed from the constant with that key; *first is the head of the list of the constant. */
static const onxi_run_packed *find_packed(const onxi_run_keeper *to, const onx_packing *packing,
                                          onxi_run_packed **first)
{
    const void *of = to->source ? (const void *)to->source : to->elements;
    *first = to->packs->all ? onxi_map_find(&to->packs->by_source, (uint64_t)(uintptr_t)of) : NULL;
    for (const onxi_run_packed *k = *first; k; k = k->next)
        if (k->key_size == packing->key_size && memcmp(k->key, packing->key, k->key_size) == 0)
            return k;
    return NULL;
}

static bool exceeds_limit(const onxi_run_session *s, const onx_packing *packing)
{
    const uint64_t limit = s->options.memory;
    return packing->size > limit || onxi_run_constant_bytes(s) > limit - packing->size;
}

/* Adds the bytes to the list under the lock, because runs read the list of a session meanwhile. */
static onx_status add_packed(onxi_run_session *s, const onxi_run_keeper *to, onxi_run_packed *k)
{
    const void *of = to->source ? (const void *)to->source : to->elements;
    pthread_mutex_lock(&s->root->lock);
    if (!to->packs->all)
        to->packs->by_source = onxi_map_in_arena(to->arena);
    void **entry = onxi_map_at(&to->packs->by_source, (uint64_t)(uintptr_t)of);
    if (entry) {
        k->all = to->packs->all;
        to->packs->all = k;
        *entry = k;
        if (to->session)
            to->session->constant_bytes += k->size - 64;
        if (to->session && !k->mapped)
            to->session->kept_bytes += k->size;
    }
    pthread_mutex_unlock(&s->root->lock);
    return entry ? ONX_OK : ONX_E_MEMORY;
}

/* ---- sessions with lean memory ---- */

enum {
    LEAN_KEEP = 16 << 20, /* bytes of packed constants that a lean session keeps */
    LEAN_SMALL = 1 << 12  /* smaller ones, such as notes, are always kept */
};

bool onxi_run_may_keep(const onxi_run_session *s, uint64_t size)
{
    const uint64_t kept = s->kept_bytes + (s->root == s ? 0 : s->root->kept_bytes);
    return !s->options.lean_memory || size <= LEAN_SMALL || (size <= LEAN_KEEP && kept <= LEAN_KEEP - size);
}

/* A plan's packed constants are freed with the plan and not counted, so a lean session keeps only small ones. */
static bool may_keep(const onxi_run_session *s, const onxi_run_keeper *to, const onx_packing *packing)
{
    return onxi_run_may_keep(s, packing->size) &&
           (to->session || !s->options.lean_memory || packing->size <= LEAN_SMALL);
}

static bool in_store(const onxi_run_session *s, const onx_packing *packing)
{
    return s->root->store && packing->size >= ONXI_RUN_STORE_LEAST;
}

typedef struct onxi_run_passed { /* header in front of the bytes */
    struct onxi_run_passed *next;
    uint64_t size; /* including the header */
} onxi_run_passed;

void onxi_run_passing_end(onxi_run_passing *passing)
{
    for (onxi_run_passed *k = passing->first, *next; k; k = next) {
        next = k->next;
        onxi_ctx_let_go(passing->cx, k->size);
        onxi_release(passing->cx, k, k->size);
    }
    passing->first = NULL;
}

static onx_status pack_passing(onxi_run_session *s, const onxi_run_keeper *to, const onx_packing *packing,
                               onxi_run_passing *passing, const void **out)
{
    onxi_run_keeper from = *to;
    onxi_run_source source = { 0 };
    onx_value value = { 0 };
    /* Cannot overflow: packing->size is below the memory limit. */
    const uint64_t size = packing->size + sizeof(onxi_run_passed) + 64;
    if (!onxi_ctx_hold(passing->cx, size))
        return ONX_E_LIMIT;
    onxi_run_passed *k = onxi_resize(passing->cx, NULL, 0, size);
    if (!k) {
        onxi_ctx_let_go(passing->cx, size);
        return ONX_E_MEMORY;
    }
    *k = (onxi_run_passed){ passing->first, size };
    passing->first = k;
    from.cx = passing->cx;
    if (to->source) { /* another thread may plan meanwhile and make the elements */
        pthread_mutex_lock(&s->root->lock);
        source = *to->source;
        value = *source.value;
        pthread_mutex_unlock(&s->root->lock);
        source.value = &value;
        from.source = &source;
    }
    void *bytes = aligned(k + 1);
    *out = bytes;
    return make_bytes(s, &from, packing, false, bytes);
}

/* Can the constant be packed? Packs it and frees the result. */
static onx_status try_to_make(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                              const onx_packing *packing)
{
    onxi_run_passing passing = { .cx = p->cx };
    const void *made;
    const onx_status status = pack_passing(s, to, packing, &passing, &made);
    onxi_run_passing_end(&passing);
    return status;
}

/* ---- packing for sessions ---- */

static onx_status exceeded(const onx_prepare *p, const onxi_run_session *s)
{
    return onx_prepare_fail(p, ONX_E_LIMIT, "packed constants exceed the memory limit of %llu bytes",
                            (unsigned long long)s->options.memory);
}

onx_status onxi_run_pack(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                         const onx_packing *packing, bool *anew, const void **out)
{
    onxi_run_packed *first;
    const onxi_run_packed *made = find_packed(to, packing, &first);
    if (made) {
        *out = made->data;
        return ONX_OK;
    }
    if (exceeds_limit(s, packing))
        return exceeded(p, s);
    const bool keeps = may_keep(s, to, packing);
    if (!keeps && !in_store(s, packing)) {
        *anew = true;
        *out = to->elements;
        return packing->may_decline ? try_to_make(s, to, p, packing) : ONX_OK;
    }
    onxi_run_packed *k = ONXI_NEW(to->arena, onxi_run_packed);
    void *key = onx_arena_alloc(to->arena, packing->key_size);
    if (!k || !key)
        return ONX_E_MEMORY;
    memcpy(key, packing->key, packing->key_size);
    *k = (onxi_run_packed){ .next = first, .key = key, .key_size = packing->key_size, .size = packing->size + 64 };
    ONX_TRY(get_bytes(s, to, p, packing, k));
    if (!keeps && !k->mapped) { /* the folder of the store cannot be written to */
        give_back(to->cx, k);
        *anew = true;
        *out = to->elements;
        return ONX_OK;
    }
    k->data = aligned(k->base);
    const onx_status status = add_packed(s, to, k);
    if (status != ONX_OK)
        give_back(to->cx, k);
    else
        *out = k->data;
    return status;
}

onx_status onxi_run_pack_running(onxi_run_session *s, const onxi_run_keeper *to, const onx_prepare *p,
                                 const onx_packing *packing, const onxi_run_watch *watch, bool planning,
                                 onxi_run_passing *passing, const void **out)
{
    onxi_run_packed *first;
    bool anew = false;
    pthread_mutex_lock(&s->root->lock);
    const onxi_run_packed *made = find_packed(to, packing, &first);
    const bool keeps = may_keep(s, to, packing);
    pthread_mutex_unlock(&s->root->lock);
    if (made) {
        *out = made->data;
        return ONX_OK;
    }
    if (!keeps && !in_store(s, packing))
        return exceeds_limit(s, packing) ? ONX_E_UNSUPPORTED : pack_passing(s, to, packing, passing, out);
    if (!planning)
        ONX_TRY(onxi_run_planning_begin(s, watch, p->cx));
    /* The node can also run slowly without packed weights, so exceeding the limit is no error here. */
    const onx_status status =
        exceeds_limit(s, packing) && !planning ? ONX_E_UNSUPPORTED : onxi_run_pack(s, to, p, packing, &anew, out);
    if (!planning)
        onxi_run_planning_end(s);
    return status == ONX_OK && anew ? pack_passing(s, to, packing, passing, out) : status;
}
