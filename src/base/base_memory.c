/* base_memory.c - the allocator of contexts that are given none: the C library for what is small, huge pages for what
 * is large. Touching fresh memory 4 KiB at a time costs more than decoding into it. */
#include "base/base.h"
#include "base/base_ctx.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, PAGE_MAX = 64 << 10 /* no system's ordinary page is larger */ };

/* Whether a block of this size is a mapping of its own. The size alone tells, so a block needs no header. */
static bool is_mapped(size_t size)
{
    return size >= HUGE_PAGE && onxi_platform_has_mappings();
}

static size_t whole_pages(size_t size)
{
    return (size + PAGE_MAX - 1) & ~(size_t)(PAGE_MAX - 1);
}

/* A mapping that begins at a huge page: too much is mapped, and what is not needed around it is given back. */
static void *map(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = whole_pages(size);
    char *from = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)from % HUGE_PAGE;
    if (before)
        munmap(from, before);
    munmap(from + before + size, HUGE_PAGE - before);
    onxi_platform_advise_huge(from + before, size);
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

/* From the C library to a mapping or back. */
static void *move(void *ptr, size_t old_size, size_t new_size)
{
    void *to = is_mapped(new_size) ? map(new_size) : malloc(new_size);
    if (!to)
        return NULL;
    memcpy(to, ptr, old_size < new_size ? old_size : new_size);
    if (is_mapped(old_size))
        munmap(ptr, whole_pages(old_size));
    else
        free(ptr);
    return to;
}

/* The one place that calls realloc. */
static void *resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    bool was_mapped = ptr && is_mapped(old_size);
    if (new_size == 0) {
        if (was_mapped)
            munmap(ptr, whole_pages(old_size));
        else
            free(ptr);
        return NULL;
    }
    if (was_mapped != is_mapped(new_size))
        return ptr ? move(ptr, old_size, new_size) : map(new_size);
    return was_mapped ? remap(ptr, old_size, new_size) : realloc(ptr, new_size);
}

const onx_allocator onxi_allocator_default = { resize, NULL };
