/* ir_list.c - lists whose capacity follows from their length. */
#include "ir/ir.h"

void *onx_list_insert(onx_arena *arena, void **list, uint32_t *count, uint32_t at, size_t size)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, list, NULL);
    ONXI_NEED_OR(arena->cx, count, NULL);
    ONXI_NEED_OR(arena->cx, size, NULL);
    uint32_t n = *count;
    if (n == UINT32_MAX || at > n) {
        onxi_fail(arena->cx, n == UINT32_MAX ? ONX_E_LIMIT : ONX_E_MISUSE, ONXI_NOWHERE,
                  "cannot insert at %u into a list of %u elements", at, n);
        return NULL;
    }
    char *old = *list, *now = old;
    if (onxi_list_room(n) == n) { /* full */
        size_t bytes;
        if (!onxi_mul_size((size_t)onxi_list_room((uint64_t)n + 1), size, &bytes)) {
            onxi_no_memory(arena->cx);
            return NULL;
        }
        now = onxi_arena_get(arena, bytes);
        if (!now)
            return NULL;
        if (at)
            memcpy(now, old, (size_t)at * size);
    }
    if (at < n)
        memmove(now + ((size_t)at + 1) * size, old + (size_t)at * size, (size_t)(n - at) * size);
    memset(now + (size_t)at * size, 0, size);
    *list = now;
    *count = n + 1;
    return now + (size_t)at * size;
}

void onx_list_remove(void *list, uint32_t *count, uint32_t at, size_t size)
{
    if (!list || !count)
        return;
    if (at >= *count)
        return;
    char *p = (char *)list + (size_t)at * size;
    memmove(p, p + size, (size_t)(*count - at - 1) * size);
    /* The new capacity, computed from the length, may be smaller than the allocated memory; the memory is still
     * there. */
    --*count;
}

void *onx_list_add_message(onx_arena *arena, void ***list, uint32_t *count, onx_kind kind)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, list, NULL);
    ONXI_NEED_OR(arena->cx, count, NULL);
    void *m = onx_message_new(arena, kind);
    void *bare = *list;
    void **place = m ? onx_list_insert(arena, &bare, count, *count, sizeof(void *)) : NULL;
    if (!place)
        return NULL;
    *list = bare;
    *place = m;
    return m;
}

onx_status onx_list_add_text(onx_arena *arena, onx_bytes **list, uint32_t *count, onx_str text)
{
    ONXI_NEED(NULL, arena);
    ONXI_NEED(arena->cx, list);
    ONXI_NEED(arena->cx, count);
    onx_bytes kept;
    ONX_TRY(onx_arena_keep(arena, text, &kept));
    void *bare = *list;
    onx_bytes *place = onx_list_insert(arena, &bare, count, *count, sizeof(onx_bytes));
    if (!place)
        return ONX_E_MEMORY;
    *list = bare;
    *place = kept;
    return ONX_OK;
}
