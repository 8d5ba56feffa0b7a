/* run_slab.c - memory of what is packed. Blocks of some hundred KiB share slabs: a block of its own is had from the
 * system a page of 4 KiB at a time, which takes longer than packing into it, and a slab is large enough for huge ones.
 * And one buffer that elements are written to before they are packed, which is used over and over. */
#include "run/run.h"

#include <stdatomic.h>

enum {
    LEAST = 512 << 10, /* bytes of the first slab; a session packs twice as many before, so that little is left over */
    MOST = 8 << 20,    /* of a slab */
    KEPT = 16 << 20,   /* of the buffer that is kept */
    EXTRA = 4 << 10,   /* beyond these, so that blocks that are powers of two and a line fit */
    SHARE = 4          /* a block is that part of a slab at most, so that what is left at its end is little */
};

/* In front of its blocks. */
typedef struct onxi_run_slab {
    atomic_uint users; /* its blocks, and the session that cuts blocks from it */
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

/* Of the slabs that blocks are cut from the one with room; else a new one takes the place of that with the least. */
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

/* ---- the buffer ---- */

void *onxi_run_elements_take(onxi_run_session *s, uint64_t size)
{
    onxi_run_slabs *slabs = &s->root->slabs;
    if (size > KEPT || s->options.lean_memory)
        return onxi_resize(s->root->cx, NULL, 0, size);
    slabs->held = NULL; /* it is written to */
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

/* Elements are read twice where they are looked at before they are packed. Those that are in no file of the document,
 * or not as they are there, could have gone meanwhile, and others come to the same place. */
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

/* A variant has none, and one that was not opened has no root. */
void onxi_run_slabs_close(onxi_run_session *s)
{
    end_elements(&s->slabs, s->cx);
    for (size_t i = 0; i < ONXI_RUN_SLABS; i++) {
        if (s->slabs.open[i])
            let_go(s->slabs.open[i], onxi_ctx_allocator(s->cx));
        s->slabs.open[i] = NULL;
    }
}
