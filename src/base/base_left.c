/* base_left.c - derived data, such as packed weights, whose owner is gone: whoever needs the same data finds it here,
 * under a digest of what it was derived from. The system may reclaim the pages of large entries meanwhile. This is
 * detected, because a word that is not 0 was recorded for each page. */
#include "base/base.h"
#include "base/base_ctx.h"
#include "base/base_process.h"

enum {
    LENT_LEAST = 2 << 20, /* the size in bytes from which base_memory.c uses a separate mapping */
    PAGE = 4096,          /* the smallest page size; a larger page is checked in several parts */
    WORD = sizeof(uint64_t)
};

/* Maximum number of bytes here that the system may not reclaim. */
#define HELD_MOST ((size_t)128 << 20)

typedef uint64_t __attribute__((may_alias)) word;

typedef struct onxi_left_entry {
    struct onxi_left_entry *next;            /* next entry in the hash chain */
    struct onxi_left_entry *newer, **before; /* list by age; `before` points to the pointer to this entry */
    onxi_digest name;
    onxi_left_free *free;
    void *owner, *bytes;
    size_t size;
    bool lent;
    uint64_t asked;     /* value of onxi_left.asked when this entry was put */
    size_t room;        /* size of this struct in bytes */
    uint16_t witness[]; /* for each reclaimable page, the position of a word that is not 0; PAGE / WORD: the page is all
                         * zeros */
} entry;

static bool is_lent(const void *bytes, size_t size)
{
    return ONXI_PLATFORM_PAGES && onxi_platform_has_mappings() && size >= LENT_LEAST &&
           (uintptr_t)bytes % LENT_LEAST == 0;
}

/* ---- letting the system reclaim pages ---- */

static bool lend(entry *e)
{
    const word *words = e->bytes;
    for (size_t page = 0; page < e->size / PAGE; page++) {
        uint16_t at = 0;
        while (at < PAGE / WORD && !words[page * (PAGE / WORD) + at])
            at++;
        e->witness[page] = at;
    }
    return e->lent = onxi_platform_lend(e->bytes, e->size / PAGE * PAGE);
}

/* Writes each page with its own contents, which makes it unreclaimable again. False if the system has taken a page. */
static bool take_back(const entry *e)
{
    word *words = e->bytes;
    for (size_t page = 0; e->lent && page < e->size / PAGE; page++) {
        word *at = words + page * (PAGE / WORD) + e->witness[page];
        if (e->witness[page] == PAGE / WORD)
            continue; /* whether taken or not, the page holds zeros */
        uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
        if (!seen || !__atomic_compare_exchange_n(at, &seen, seen, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return false;
    }
    return true;
}

/* ---- the list ---- */

static void free_entry(entry *e)
{
    onxi_allocator_default.resize(NULL, e, e->room, 0);
}

static entry **chain_of(onxi_left *left, onxi_digest name)
{
    return &left->chain[name.a % ONXI_LEFT_CHAINS];
}

static void take_out(onxi_left *left, entry *e)
{
    entry **link = chain_of(left, e->name);
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    *e->before = e->newer;
    if (e->newer)
        e->newer->before = e->before;
    else
        left->end = e->before;
    left->all -= e->size;
    left->held -= e->lent ? 0 : e->size;
}

static void put_in(onxi_left *left, entry *e)
{
    entry **link = chain_of(left, e->name);
    e->next = *link;
    *link = e;
    if (!left->end)
        left->end = &left->oldest;
    e->before = left->end;
    *left->end = e;
    left->end = &e->newer;
    left->all += e->size;
    left->held += e->lent ? 0 : e->size;
}

static void drop(onxi_left *left, entry *e)
{
    take_out(left, e);
    e->free(e->owner, e->bytes, e->size);
    free_entry(e);
}

static entry *find(onxi_left *left, onxi_digest name, size_t size)
{
    entry *e = *chain_of(left, name);
    while (e && (e->name.a != name.a || e->name.b != name.b || e->size != size))
        e = e->next;
    return e;
}

/* ---- the interface ---- */

/* Never blocks on the lock: after a fork, the thread that holds it may not exist. */
static onxi_left *enter(void)
{
    onxi_left *left = &onxi_process_get()->left;
    return pthread_mutex_trylock(&left->lock) == 0 ? left : NULL;
}

bool onxi_left_begin(onxi_secret *secret)
{
    onxi_left *left = enter();
    if (!left)
        return false;
    if (!left->has_secret)
        left->secret = onxi_secret_make(left);
    left->has_secret = true;
    left->asked++;
    *secret = left->secret;
    pthread_mutex_unlock(&left->lock);
    return true;
}

/* Makes room for `size` more bytes by dropping the oldest entries. Only entries that were put before the last
 * onxi_left_begin are dropped: newer ones belong to the same set as the new entry, and are as useful as it. */
static bool make_room(onxi_left *left, size_t size, bool lends)
{
    for (entry *e = left->oldest, *newer; e && e->asked != left->asked; e = newer) {
        const bool full = left->all > ONXI_KEPT_MOST - size;
        newer = e->newer;
        if (full || (!lends && !e->lent && left->held > HELD_MOST - size))
            drop(left, e);
    }
    return left->all <= ONXI_KEPT_MOST - size && (lends || left->held <= HELD_MOST - size);
}

bool onxi_left_put(onxi_digest name, void *owner, void *bytes, size_t size, onxi_left_free *release)
{
    const bool lends = is_lent(bytes, size);
    onxi_left *left = size <= (lends ? ONXI_KEPT_MOST : HELD_MOST) ? enter() : NULL;
    if (!left)
        return false;
    entry *e = NULL;
    const size_t room = sizeof *e + (lends ? size / PAGE * sizeof *e->witness : 0);
    if (!find(left, name, size) && make_room(left, size, lends))
        e = onxi_allocator_default.resize(NULL, NULL, 0, room);
    if (e) {
        *e = (entry){ .name = name,
                      .free = release,
                      .owner = owner,
                      .bytes = bytes,
                      .size = size,
                      .asked = left->asked,
                      .room = room };
        if (lends && !lend(e)) { /* the system does not support it */
            free_entry(e);
            e = NULL;
        }
    }
    if (e) {
        put_in(left, e);
        onxi_memory_make_room();
    }
    pthread_mutex_unlock(&left->lock);
    return e != NULL;
}

void *onxi_left_take(onxi_digest name, size_t size, void **owner)
{
    onxi_left *left = enter();
    void *bytes = NULL;
    if (!left)
        return NULL;
    entry *e = find(left, name, size);
    if (e && take_back(e)) {
        take_out(left, e);
        bytes = e->bytes;
        *owner = e->owner;
        free_entry(e);
    } else if (e) {
        drop(left, e);
    }
    pthread_mutex_unlock(&left->lock);
    return bytes;
}

bool onxi_left_drop(size_t size)
{
    onxi_left *left = enter();
    size_t gone = 0;
    if (!left)
        return false;
    while (left->oldest && gone < size) {
        gone += left->oldest->size;
        drop(left, left->oldest);
    }
    pthread_mutex_unlock(&left->lock);
    return gone > 0;
}
