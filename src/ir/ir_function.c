/* ir_function.c - the functions of a model, found by domain, name and overload in constant time. */
#include "ir/ir.h"

static uint32_t hash_function(onx_str domain, onx_str name, onx_str overload)
{
    uint64_t h = onxi_hash(domain.ptr, domain.len, 1);
    h = onxi_hash(name.ptr, name.len, h);
    return (uint32_t)onxi_hash(overload.ptr, overload.len, h);
}

onx_status onxi_functions_index(onx_ctx *cx, onx_arena *arena, const onx_model *model, onxi_functions *out)
{
    uint32_t count = model ? model->functions_count : 0, slot_count = 16;
    *out = (onxi_functions){ 0 };
    if (!count)
        return ONX_OK;
    if (count > UINT32_MAX / 4)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "the model has %u functions", count);
    while (slot_count < count * 2)
        slot_count *= 2;
    const onx_function **slots = ONXI_ARRAY(arena, const onx_function *, slot_count);
    if (!slots)
        return ONX_E_MEMORY;
    *out = (onxi_functions){ slots, slot_count };
    for (uint32_t i = 0; i < count; i++) {
        const onx_function *f = model->functions[i];
        onx_str domain = onxi_domain_plain(onx_view(f->domain)), name = onx_view(f->name),
                overload = onx_view(f->overload);
        if (onxi_functions_find(out, domain, name, overload))
            continue; /* the first one of that name counts */
        uint32_t at = hash_function(domain, name, overload) & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = f;
    }
    return ONX_OK;
}

const onx_function *onxi_functions_find(const onxi_functions *functions, onx_str domain, onx_str name, onx_str overload)
{
    if (!functions->slot_count)
        return NULL;
    domain = onxi_domain_plain(domain);
    uint32_t mask = functions->slot_count - 1, at = hash_function(domain, name, overload) & mask;
    for (; functions->slots[at]; at = (at + 1) & mask) {
        const onx_function *f = functions->slots[at];
        if (onx_str_equal(onx_view(f->name), name) && onx_str_equal(onxi_domain_plain(onx_view(f->domain)), domain) &&
            onx_str_equal(onx_view(f->overload), overload))
            return f;
    }
    return NULL;
}
