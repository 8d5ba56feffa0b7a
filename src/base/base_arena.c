/* base_arena.c - memory that is freed all at once: a list of blocks that double in size; allocation bumps a pointer. */
#include "base/base.h"
#include "base/base_ctx.h"

typedef struct onxi_block {
    struct onxi_block *next;
    size_t size; /* including the header */
} onxi_block;

enum {
    BLOCK_MIN = 4096,
    BLOCK_MAX = 2 << 20,
    SPARE_MAX = 64 << 20,
    BUFFER_KEEP_MIN = 64 << 10,
    BUFFER_KEEP_MAX = 64 << 20,
    REPORT_ROOM = 1 << 20
};

void *onxi_resize(onx_ctx *cx, void *ptr, uint64_t old_size, uint64_t new_size)
{
    void *p = NULL;
    if (new_size <= SIZE_MAX)
        p = cx->allocator.resize(cx->allocator.user, ptr, (size_t)old_size, (size_t)new_size);
    if (!p && new_size)
        onxi_no_memory(cx);
    return p;
}

void *onxi_apart_new(onx_ctx *cx, uint64_t size)
{
    uint64_t whole;
    if (!onxi_add_u64(size, 2 * ONXI_APART_BYTES, &whole))
        whole = UINT64_MAX; /* which no allocator has */
    char *p = onxi_resize(cx, NULL, 0, whole);
    return p ? p + ONXI_APART_BYTES : NULL;
}

void onxi_apart_free(onx_ctx *cx, void *ptr, uint64_t size)
{
    if (ptr)
        onxi_resize(cx, (char *)ptr - ONXI_APART_BYTES, size + 2 * ONXI_APART_BYTES, 0);
}

onx_status onx_arena_new(onx_ctx *cx, onx_arena **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    onx_arena *arena = onxi_apart_new(cx, sizeof *arena);
    *out = arena;
    if (!arena)
        return ONX_E_MEMORY;
    memset(arena, 0, sizeof *arena);
    arena->cx = cx;
    return ONX_OK;
}

void *onxi_buffer_take(onx_ctx *cx, uint64_t wanted, size_t *size)
{
    for (int i = 0; i < ONXI_SPARE_BUFFERS; i++) {
        void *p = cx->buffers[i].ptr;
        if (p && cx->buffers[i].size >= wanted && cx->buffers[i].size / 4 <= wanted) {
            *size = cx->buffers[i].size;
            cx->buffers[i].ptr = NULL;
            cx->buffers[i].size = 0;
            return p;
        }
    }
    *size = (size_t)wanted;
    return onxi_resize(cx, NULL, 0, wanted);
}

/* Keeps the largest buffers. */
void onxi_buffer_give(onx_ctx *cx, void *ptr, size_t size)
{
    if (size >= BUFFER_KEEP_MIN && size <= BUFFER_KEEP_MAX) {
        int least = 0;
        for (int i = 1; i < ONXI_SPARE_BUFFERS; i++)
            if (cx->buffers[i].size < cx->buffers[least].size)
                least = i;
        if (cx->buffers[least].size < size) {
            void *other = cx->buffers[least].ptr;
            size_t other_size = cx->buffers[least].size;
            cx->buffers[least].ptr = ptr;
            cx->buffers[least].size = size;
            ptr = other;
            size = other_size;
        }
    }
    onxi_release(cx, ptr, size);
}

void onxi_arena_drop_spare(onx_ctx *cx)
{
    for (int i = 0; i < ONXI_SPARE_BUFFERS; i++)
        onxi_release(cx, cx->buffers[i].ptr, cx->buffers[i].size);
    for (int i = 0; i < ONXI_SPARE_SIZES; i++) {
        for (onxi_block *block = cx->spare[i], *next; block; block = next) {
            next = block->next;
            onxi_release(cx, block, block->size);
        }
        cx->spare[i] = NULL;
    }
    cx->spare_bytes = 0;
}

/* The list of spare blocks of a size; NULL for sizes that only dedicated blocks have. */
static onxi_block **spare_of(onx_ctx *cx, size_t size)
{
    if (size < BLOCK_MIN || size > BLOCK_MAX || (size & (size - 1)))
        return NULL;
    return &cx->spare[__builtin_ctzll(size) - __builtin_ctz(BLOCK_MIN)];
}

static onxi_block *new_block(onx_ctx *cx, size_t size)
{
    onxi_block **spare = spare_of(cx, size);
    if (!spare || !*spare)
        return onxi_resize(cx, NULL, 0, size);
    onxi_block *block = *spare;
    *spare = block->next;
    cx->spare_bytes -= size;
    return block;
}

void onxi_arena_reset(onx_arena *arena)
{
    onx_ctx *cx = arena->cx;
    for (onxi_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        onxi_block **spare = spare_of(cx, block->size);
        if (spare && cx->spare_bytes + block->size <= SPARE_MAX) {
            block->next = *spare;
            *spare = block;
            cx->spare_bytes += block->size;
        } else {
            onxi_release(cx, block, block->size);
        }
    }
    cx->arena_bytes -= arena->total;
    memset(arena, 0, sizeof *arena);
    arena->cx = cx;
}

void onx_arena_free(onx_arena *arena)
{
    if (!arena)
        return;
    onx_ctx *cx = arena->cx;
    onxi_arena_reset(arena);
    onxi_apart_free(cx, arena, sizeof *arena);
}

/* Checks that `more` bytes may be allocated and the work is not cancelled. The diagnostic on failure needs some memory
 * itself. */
static bool within_limit(onx_ctx *cx, size_t more)
{
    if (onxi_ctx_go_on(cx) != ONX_OK)
        return false;
    if (more <= cx->limits.memory && cx->arena_bytes <= cx->limits.memory - more)
        return true;
    if (cx->reporting)
        return more <= REPORT_ROOM && onx_arena_size(cx->texts) <= REPORT_ROOM - more;
    onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "more than %llu bytes of memory are needed (limit memory)",
              (unsigned long long)cx->limits.memory);
    return false;
}

bool onxi_arena_within_limit(onx_ctx *cx)
{
    return within_limit(cx, 0);
}

bool onxi_ctx_hold(onx_ctx *cx, uint64_t bytes)
{
    if (bytes > SIZE_MAX || !within_limit(cx, (size_t)bytes))
        return false;
    cx->arena_bytes += bytes;
    return true;
}

void onxi_ctx_let_go(onx_ctx *cx, uint64_t bytes)
{
    cx->arena_bytes -= bytes;
}

uint64_t onxi_ctx_room(const onx_ctx *cx)
{
    return cx->arena_bytes < cx->limits.memory ? cx->limits.memory - cx->arena_bytes : 0;
}

/* Block sizes are powers of two, so that freed blocks fit the next arena. A full-size block is a huge page
 * (base_memory.c), which is cleared as a whole. That costs as much as clearing 200 small pages, so it is used once more
 * than that much memory is in use. */
static size_t block_size_after(size_t total)
{
    if (total < BLOCK_MIN)
        return BLOCK_MIN;
    return total >= BLOCK_MAX / 2 ? BLOCK_MAX : (size_t)1 << (63 - __builtin_clzll(total));
}

void *onxi_arena_grow(onx_arena *arena, uint64_t size)
{
    size_t want = block_size_after(arena->total);
    size_t rounded;
    if (__builtin_add_overflow(size, sizeof(onxi_block) + 7, &rounded)) {
        onxi_no_memory(arena->cx);
        return NULL;
    }
    rounded &= ~(size_t)7;
    /* A request that would use a large part of a block gets a dedicated block; the current block stays current. */
    bool own = rounded > want / 4;
    size_t block_size = own ? rounded : want;
    if (!within_limit(arena->cx, block_size))
        return NULL;
    onxi_block *block = new_block(arena->cx, block_size);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    block->size = block_size;
    arena->blocks = block;
    arena->total += block_size;
    arena->cx->arena_bytes += block_size;
    char *p = (char *)(block + 1);
    if (!own) {
        arena->at = p + (rounded - sizeof *block);
        arena->end = (char *)block + block_size;
    }
    return p;
}

void *onx_arena_alloc(onx_arena *arena, size_t size)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    enum { SMALL = 64 };
    /* Most requests are message structs. Their fixed size allows clearing without a function call; clearing beyond the
     * request is safe, because free room follows it. */
    bool roomy = size <= SMALL && (size_t)(arena->end - arena->at) >= SMALL;
    void *p = onxi_arena_get(arena, size ? size : 1);
    if (!p)
        return NULL;
    if (roomy)
        return memset(p, 0, SMALL);
    return memset(p, 0, size);
}

void *onxi_arena_array(onx_arena *arena, uint64_t count, size_t size)
{
    size_t bytes;
    if (!onxi_mul_size(count, size, &bytes)) {
        onxi_no_memory(arena->cx);
        return NULL;
    }
    return onx_arena_alloc(arena, bytes);
}

bool onxi_grow(onx_ctx *cx, onx_arena *arena, void *list, size_t size, void *room, size_t room_size, uint64_t wanted)
{
    enum { FIRST = 16 };
    void *old, *more;
    uint64_t have = 0;
    uint32_t narrow;
    memcpy(&old, list, sizeof old); /* the pointer may have any type */
    if (room_size == sizeof narrow) {
        memcpy(&narrow, room, sizeof narrow);
        have = narrow;
    } else {
        memcpy(&have, room, sizeof have);
    }
    uint64_t most = room_size == sizeof narrow ? UINT32_MAX : SIZE_MAX;
    uint64_t next = have < FIRST / 2 ? FIRST : have > most / 2 ? most : have * 2;
    if (next < wanted)
        next = wanted;
    size_t bytes;
    if (next > most || !onxi_mul_size((size_t)next, size, &bytes)) {
        onxi_no_memory(cx);
        return false;
    }
    if (arena) {
        if ((more = onxi_arena_get(arena, bytes)) != NULL && have)
            memcpy(more, old, (size_t)have * size);
    } else {
        more = onxi_resize(cx, old, (size_t)have * size, bytes);
    }
    if (!more)
        return false;
    memcpy(list, &more, sizeof more);
    narrow = (uint32_t)next;
    if (room_size == sizeof narrow)
        memcpy(room, &narrow, sizeof narrow);
    else
        memcpy(room, &next, sizeof next);
    return true;
}

void onx_arena_adopt(onx_arena *arena, onx_arena *from)
{
    if (!arena || !from)
        return;
    onxi_block **last = &arena->blocks;
    while (*last)
        last = &(*last)->next;
    *last = from->blocks;
    arena->total += from->total;
    /* The arenas may belong to different contexts (a worker's and its caller's): the byte count moves with the
     * blocks. */
    from->cx->arena_bytes -= from->total;
    arena->cx->arena_bytes += from->total;
    onxi_apart_free(from->cx, from, sizeof *from);
}

size_t onx_arena_size(const onx_arena *arena)
{
    if (!arena)
        return 0;
    return arena->total;
}

onx_status onx_arena_refer(onx_arena *arena, onx_str bytes, onx_bytes *out)
{
    ONXI_NEED(NULL, arena);
    ONXI_NEED(arena->cx, out);
    uint64_t address = (uint64_t)(uintptr_t)bytes.ptr;
    if (bytes.len < 0xffff && (address >> 48) == 0) {
        out->bits = bytes.len ? address | (uint64_t)bytes.len << 48 : 0;
        return ONX_OK;
    }
    onx_str *record = onxi_arena_get(arena, sizeof *record);
    if (!record)
        return ONX_E_MEMORY;
    *record = bytes;
    /* Addresses are below 2^48 on all supported systems (larger ones are used only on explicit request). */
    out->bits = (uint64_t)(uintptr_t)record | (uint64_t)0xffff << 48;
    return ONX_OK;
}

onx_status onx_arena_keep(onx_arena *arena, onx_str bytes, onx_bytes *out)
{
    ONXI_NEED(NULL, arena);
    ONXI_NEED(arena->cx, out);
    char *copy = onxi_arena_get(arena, bytes.len ? bytes.len : 1);
    if (!copy)
        return ONX_E_MEMORY;
    if (bytes.len)
        memcpy(copy, bytes.ptr, bytes.len);
    return onx_arena_refer(arena, onx_str_make(copy, bytes.len), out);
}
