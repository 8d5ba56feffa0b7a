/* run_slab.c - memory for packed constants. Blocks of some hundred KiB share slabs: the system gives memory of a
 * separate block in pages of 4 KiB, which takes longer than packing into it, while a slab is large enough for huge
 * pages. The file also has the buffer for elements before packing, which is reused. */
#include "run/run.h"

#include <stdatomic.h>

enum {
    LEAST = 512 << 10, /* bytes of the first slab; a session first packs twice as much outside of slabs, so that little
                          of a slab is unused */
    MOST = 8 << 20,    /* bytes of the largest slab */
    KEPT = 16 << 20,   /* bytes of the largest buffer that is kept */
    EXTRA = 4 << 10,   /* bytes beyond these sizes, so that blocks of a power of two plus a cache line fit */
    SHARE = 4          /* the largest block is this part of a slab, which bounds the unused end */
};

/* Header of a slab, before its blocks. */
typedef struct onxi_run_slab {
    atomic_uint users; /* number of its blocks, plus one while the session cuts blocks from it */
    size_t size, used;
} onxi_run_slab;

static size_t whole_lines(size_t size)
{
    return (size + 63u) & ~(size_t)63u;
}

/* ---- slabs ---- */

static void let_go(onxi_run_slab *slab, const onx_allocator *a)
{
    if (slab && atomic_fetch_sub(&slab->users, 1) == 1)
        a->resize(a->user, slab, slab->size, 0);
}

/* Finds an open slab with room. If there is none, a new slab replaces the open slab with the least room. */
static onxi_run_slab *slab_for(onxi_run_session *root, size_t size)
{
    onxi_run_slabs *slabs = &root->slabs;
    const size_t place = sizeof(onxi_run_slab) + 64;
    size_t whole = LEAST, least = 0;
    for (size_t i = 0; i < ONXI_RUN_SLABS; i++) {
        onxi_run_slab *slab = slabs->open[i];
        if (slab && slab->size - slab->used >= size)
            return slab;
        const onxi_run_slab *other = slabs->open[least];
        if (!slab || (other && slab->size - slab->used < other->size - other->used))
            least = i;
    }
    while (whole < MOST && whole < slabs->total / 2)
        whole *= 2;
    if (slabs->total / 2 < LEAST || size > whole / SHARE + 64)
        return NULL;
    onxi_run_slab *slab = onxi_resize(root->cx, NULL, 0, whole + EXTRA);
    if (!slab)
        return NULL;
    atomic_init(&slab->users, 1);
    slab->size = whole + EXTRA;
    slab->used = whole_lines((uintptr_t)slab + place) - (uintptr_t)slab;
    let_go(slabs->open[least], onxi_ctx_allocator(root->cx));
    slabs->open[least] = slab;
    return slab;
}

void *onxi_run_slab_take(onxi_run_session *s, uint64_t size, onxi_run_slab **out)
{
    onxi_run_slab *slab = NULL;
    *out = NULL;
    if (ONXI_PLATFORM_PAGES && size <= MOST / SHARE + 64 && !s->options.lean_memory)
        slab = slab_for(s->root, whole_lines((size_t)size));
    if (!slab) {
        void *own = onxi_resize(s->root->cx, NULL, 0, size);
        s->root->slabs.total += own ? size : 0;
        return own;
    }
    void *block = (char *)slab + slab->used;
    slab->used += whole_lines((size_t)size);
    s->root->slabs.total += size;
    atomic_fetch_add(&slab->users, 1);
    *out = slab;
    return block;
}

void onxi_run_slab_give(const onx_allocator *a, onxi_run_slab *slab, void *block, uint64_t size)
{
    if (slab)
        let_go(slab, a);
    else if (block)
        a->resize(a->user, block, (size_t)size, 0);
}

void onxi_run_slab_free(void *slab, void *block, size_t size)
{
    onxi_run_slab_give(&onxi_allocator_default, slab, block, size);
}

/* ---- the buffer of elements ---- */

void *onxi_run_elements_take(onxi_run_session *s, uint64_t size)
{
    onxi_run_slabs *slabs = &s->root->slabs;
    if (size > KEPT || s->options.lean_memory)
        return onxi_resize(s->root->cx, NULL, 0, size);
    slabs->held = NULL; /* the caller overwrites the elements */
    if (slabs->elements_room < size) {
        onxi_run_elements_end(s);
        slabs->elements = onxi_resize(s->root->cx, NULL, 0, size);
        slabs->elements_room = slabs->elements ? size : 0;
    }
    return slabs->elements;
}

void onxi_run_elements_give(onxi_run_session *s, void *elements, uint64_t size)
{
    if (elements != s->root->slabs.elements)
        onxi_release(s->root->cx, elements, size);
}

/* Some elements are read twice, once to examine and once to pack them. The buffer may stand for them only if their
 * address identifies them: memory that is not part of the document could have been freed and reused for others. */
static bool may_hold(const onxi_run_source *source)
{
    return source->origin && !source->scale && !source->part && !source->recipe;
}

const void *onxi_run_elements_held(const onxi_run_session *s, const onxi_run_source *source)
{
    const onxi_run_slabs *slabs = &s->root->slabs;
    const bool held = may_hold(source) && slabs->held == source->raw && slabs->held_size == source->value->size;
    return held ? slabs->elements : NULL;
}

void onxi_run_elements_hold(onxi_run_session *s, const onxi_run_source *source, const void *elements)
{
    onxi_run_slabs *slabs = &s->root->slabs;
    if (elements != slabs->elements || !may_hold(source))
        return;
    slabs->held = source->raw;
    slabs->held_size = source->value->size;
}

static void end_elements(onxi_run_slabs *slabs, onx_ctx *cx)
{
    onxi_release(cx, slabs->elements, slabs->elements_room);
    slabs->elements = NULL;
    slabs->elements_room = 0;
    slabs->held = NULL;
}

void onxi_run_elements_end(onxi_run_session *s)
{
    end_elements(&s->root->slabs, s->root->cx);
}

/* Called for variants, too, which have no buffer and slabs, and for sessions that were not opened, which have no
 * root. */
void onxi_run_slabs_close(onxi_run_session *s)
{
    end_elements(&s->slabs, s->cx);
    for (size_t i = 0; i < ONXI_RUN_SLABS; i++) {
        if (s->slabs.open[i])
            let_go(s->slabs.open[i], onxi_ctx_allocator(s->cx));
        s->slabs.open[i] = NULL;
    }
}
