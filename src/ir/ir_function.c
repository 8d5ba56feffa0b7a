/* ir_function.c - the functions of a model, found by domain, name and overload in constant time. */
#include "ir/ir.h"

/* The slot that holds the function, or the free one where it would go. */
static uint32_t *slot_of(const onxi_functions *functions, onx_str domain, onx_str name, onx_str overload)
{
    uint64_t hash = onxi_hash(domain.ptr, domain.len, functions->seed);
    hash = onxi_hash(overload.ptr, overload.len, onxi_hash(name.ptr, name.len, hash));
    for (;; hash++) {
        uint32_t *slot = &functions->slots[hash & (functions->slot_count - 1)];
        if (!*slot)
            return slot;
        const onx_function *f = functions->list[*slot - 1];
        if (onx_str_equal(onx_view(f->name), name) && onx_str_equal(onxi_domain_plain(onx_view(f->domain)), domain) &&
            onx_str_equal(onx_view(f->overload), overload))
            return slot;
    }
}

onx_status onxi_functions_index(onx_ctx *cx, onx_arena *arena, onx_function *const *list, uint32_t count,
                                onxi_functions *out)
{
    *out = (onxi_functions){ .list = list, .count = count, .seed = (uint64_t)(uintptr_t)arena * 0x9e3779b97f4a7c15u };
    if (!count)
        return ONX_OK;
    if (count > UINT32_MAX / 4)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "the model has %u functions", count);
    uint32_t slot_count = 16;
    while (slot_count < count * 2)
        slot_count *= 2;
    out->slots = ONXI_ARRAY(arena, uint32_t, slot_count);
    if (!out->slots)
        return ONX_E_MEMORY;
    out->slot_count = slot_count;
    for (uint32_t i = 0; i < count; i++) {
        const onx_function *f = list[i];
        if (!onx_view(f->name).len)
            continue;
        uint32_t *slot = slot_of(out, onxi_domain_plain(onx_view(f->domain)), onx_view(f->name), onx_view(f->overload));
        if (!*slot) /* else the first one of that name counts */
            *slot = i + 1;
    }
    return ONX_OK;
}

const onx_function *onxi_functions_find(const onxi_functions *functions, onx_str domain, onx_str name, onx_str overload,
                                        uint32_t *index_out)
{
    const uint32_t at = functions->slot_count ? *slot_of(functions, onxi_domain_plain(domain), name, overload) : 0;
    if (at && index_out)
        *index_out = at - 1;
    return at ? functions->list[at - 1] : NULL;
}
