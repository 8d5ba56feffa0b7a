/* base_memory.c - the default allocator: the C library for small blocks, huge pages for large ones. Touching fresh
 * memory in 4 KiB pages costs more than decoding into it, and clearing it in the kernel costs as much as packing
 * weights into it. Therefore the blocks of a closed session are kept for the next one. */
#include "base/base.h"
#include "base/base_ctx.h"
#include "base/base_process.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE_MAX = 64 << 10 /* at least the ordinary page size of every system */ };

/* Whether a block of this size is a separate mapping. Only the size decides, so a block needs no header. */
static bool is_mapped(size_t size)
{
    return ONXI_PLATFORM_PAGES && size >= HUGE_PAGE && onxi_platform_has_mappings();
}

static size_t whole_pages(size_t size)
{
    return (size + PAGE_MAX - 1) & ~(size_t)(PAGE_MAX - 1);
}

/* ---- blocks that are kept ---- */

void onxi_memory_keep(void)
{
    atomic_store_explicit(&onxi_process_get()->kept.on, true, memory_order_relaxed);
}

bool onxi_memory_keeps(void)
{
    return atomic_load_explicit(&onxi_process_get()->kept.on, memory_order_relaxed);
}

static void take_out(onxi_kept *kept, unsigned i)
{
    kept->total -= kept->block[i].size;
    memmove(kept->block + i, kept->block + i + 1, (--kept->count - i) * sizeof *kept->block);
}

/* Unmaps the oldest blocks until `size` bytes, or all, are gone. */
static void drop(onxi_kept *kept, size_t size)
{
    for (size_t gone = 0; kept->count && gone < size;) {
        gone += kept->block[0].size;
        munmap(kept->block[0].ptr, kept->block[0].size);
        take_out(kept, 0);
    }
}

/* How many bytes may be kept here, in addition to derived data (base_left.c). */
static size_t most_kept(void)
{
    const size_t left = atomic_load_explicit(&onxi_process_get()->left.all, memory_order_relaxed);
    return left < ONXI_KEPT_MOST ? ONXI_KEPT_MOST - left : 0;
}

void onxi_memory_make_room(void)
{
    onxi_kept *kept = &onxi_process_get()->kept;
    const size_t most = most_kept();
    if (pthread_mutex_trylock(&kept->lock) != 0)
        return;
    if (kept->total > most)
        drop(kept, kept->total - most);
    pthread_mutex_unlock(&kept->lock);
}

/* Keeps a mapping of whole pages, or unmaps it. Never blocks on the lock: after a fork, the thread that holds it may
 * not exist. */
static void unmap(void *ptr, size_t size)
{
    onxi_kept *kept = &onxi_process_get()->kept;
    const size_t most = most_kept();
    if (!onxi_memory_keeps() || size > most || pthread_mutex_trylock(&kept->lock) != 0) {
        munmap(ptr, size);
        return;
    }
    if (!onxi_platform_lend(ptr, size)) {
        munmap(ptr, size);
    } else {
        if (kept->count == ONXI_KEPT_BLOCKS)
            drop(kept, 1);
        if (kept->total > most - size)
            drop(kept, kept->total - (most - size));
        kept->block[kept->count].ptr = ptr;
        kept->block[kept->count++].size = size;
        kept->total += size;
    }
    pthread_mutex_unlock(&kept->lock);
}

/* Takes a kept block of exactly this size. If there is none, other blocks are unmapped, so that the process does not
 * use more memory than it would without keeping blocks. */
static void *take_kept(size_t size)
{
    onxi_kept *kept = &onxi_process_get()->kept;
    void *ptr = NULL;
    if (!onxi_memory_keeps() || pthread_mutex_trylock(&kept->lock) != 0)
        return NULL;
    for (unsigned i = kept->count; i-- > 0 && !ptr;)
        if (kept->block[i].size == size) {
            ptr = kept->block[i].ptr;
            take_out(kept, i);
        }
    if (!ptr)
        drop(kept, size);
    pthread_mutex_unlock(&kept->lock);
    return ptr;
}

/* ---- mappings ---- */

/* Are huge pages fast to get? The kernel clears one in a tenth of a millisecond. In a virtual machine it may take 4 ms,
 * because hosts reclaim free huge pages; small pages are then faster, 512 of them take 0.8 ms. To find out, some pages
 * of the mapping are touched; if that takes long, the next mappings get small pages without being tested. */
static bool huge_pages_are_there(char *from, size_t size)
{
    enum { STEP = 6 << 20, SLOW_NS = 1500000, WAIT = 256 << 20 /* bytes to map before testing again */ };
    atomic_size_t *small = &onxi_process_get()->small_pages;
    const size_t left = atomic_load_explicit(small, memory_order_relaxed);
    bool there = !left;
    for (size_t at = 0; there && at + HUGE_PAGE <= size; at += STEP)
        there = onxi_platform_touch(from + at) <= SLOW_NS;
    if (!there) /* threads may overwrite each other's count, which only costs an extra test */
        atomic_store_explicit(small, !left ? WAIT : left > size ? left - size : 0, memory_order_relaxed);
    return there;
}

/* Creates a mapping that is aligned to a huge page: maps more than needed and unmaps the excess on both sides. */
static void *map(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = whole_pages(size);
    void *old = take_kept(size);
    if (!old && onxi_memory_keeps() && onxi_left_drop(size)) /* the entries that were dropped have freed memory, which
                                                              * is kept now */
        old = take_kept(size);
    if (old)
        return old;
    char *from = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)from % HUGE_PAGE;
    if (before)
        munmap(from, before);
    munmap(from + before + size, HUGE_PAGE - before);
    onxi_platform_advise_huge(from + before, size);
    if (!huge_pages_are_there(from + before, size)) /* the whole mapping, because remap needs a single one */
        onxi_platform_advise_small(from + before, size);
    return from + before;
}

static void *remap(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size > SIZE_MAX / 2)
        return NULL;
    void *moved = onxi_platform_remap(ptr, whole_pages(old_size), whole_pages(new_size));
    if (moved)
        onxi_platform_advise_huge(moved, whole_pages(new_size));
    return moved;
}

/* Moves a block from the C library to a mapping or back. */
static void *move(void *ptr, size_t old_size, size_t new_size)
{
    void *to = is_mapped(new_size) ? map(new_size) : malloc(new_size);
    if (!to)
        return NULL;
    memcpy(to, ptr, old_size < new_size ? old_size : new_size);
    if (is_mapped(old_size))
        unmap(ptr, whole_pages(old_size));
    else
        free(ptr);
    return to;
}

/* The only place that calls realloc. */
static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    bool was_mapped = ptr && is_mapped(old_size);
    if (new_size == 0) {
        if (was_mapped)
            unmap(ptr, whole_pages(old_size));
        else
            free(ptr);
        return NULL;
    }
    if (was_mapped != is_mapped(new_size))
        return ptr ? move(ptr, old_size, new_size) : map(new_size);
    return was_mapped ? remap(ptr, old_size, new_size) : realloc(ptr, new_size);
}

const onx_allocator onxi_allocator_default = { resize, NULL };
