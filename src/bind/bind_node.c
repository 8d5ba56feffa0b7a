/* bind_node.c - which operator or function a node means. */
#include "bind/bind.h"

onx_status onxi_binder_open(onxi_binder *binder, onx_operator_set_id *const *list, uint32_t count, bool legacy)
{
    binder->slots = NULL;
    binder->count = binder->slot_count = 0;
    return onxi_imports_open(&binder->imports, binder->arena, list, count, legacy);
}

static uint64_t hash_of(const onxi_binder *binder, onx_str domain, onx_str name, onx_str overload)
{
    uint64_t h = onxi_hash(name.ptr, name.len, (uint64_t)(uintptr_t)binder->arena * 0x9e3779b97f4a7c15u);
    if (domain.len)
        h = onxi_hash(domain.ptr, domain.len, h);
    return overload.len ? onxi_hash(overload.ptr, overload.len, h ^ 1) : h;
}

static bool grow(onxi_binder *binder)
{
    const uint32_t count = binder->slot_count ? binder->slot_count * 2 : 16;
    onxi_bound **slots = count > binder->slot_count ? (onxi_bound **)ONXI_ARRAY(binder->arena, void *, count) : NULL;
    if (!slots)
        return false;
    for (uint32_t i = 0; i < binder->slot_count; i++) {
        if (!binder->slots[i])
            continue;
        uint32_t at = (uint32_t)binder->slots[i]->hash & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = binder->slots[i];
    }
    binder->slots = slots;
    binder->slot_count = count;
    return true;
}

static void resolve(const onxi_binder *binder, onxi_bound *b)
{
    b->import = onxi_imports_find(&binder->imports, b->domain);
    b->opset = b->import == ONXI_UNBOUND ? -1 : binder->imports.items[b->import].version;
    if (b->opset >= 1)
        b->schema = onx_registry_find(binder->registry, b->domain, b->name, b->opset);
    if (binder->functions)
        b->function = onxi_functions_find(binder->functions, b->domain, b->name, b->overload, &b->function_index);
    if (b->function) {
        b->kind = ONXI_BOUND_FUNCTION;
        return;
    }
    if (b->overload.len &&
        binder->functions) /* an overload selects a function of the model, and nothing else (ND-22) */
        b->schema = NULL;
    if (!b->schema)
        return;
    b->kind = ONXI_BOUND_OPERATOR;
    b->op = onxi_operator_id(onxi_operator_find(b->domain, b->name));
}

onxi_bound *onxi_bind(onxi_binder *binder, const onx_node *node)
{
    const onx_str domain = onxi_domain_plain(onx_view(node->domain)), name = onx_view(node->op_type);
    const onx_str overload = node->extra ? onx_view(onx_node_more(node)->overload) : onx_str_make(NULL, 0);
    const uint64_t hash = hash_of(binder, domain, name, overload);
    if (binder->count >= binder->slot_count / 4 * 3 && !grow(binder))
        return NULL;
    uint32_t at = (uint32_t)hash & (binder->slot_count - 1);
    for (; binder->slots[at]; at = (at + 1) & (binder->slot_count - 1)) {
        onxi_bound *b = binder->slots[at];
        if (b->hash == hash && onx_str_equal(b->name, name) && onx_str_equal(b->domain, domain) &&
            onx_str_equal(b->overload, overload))
            return b;
    }
    onxi_bound *b = ONXI_NEW(binder->arena, onxi_bound);
    if (!b)
        return NULL;
    *b = (onxi_bound){ .domain = domain, .name = name, .overload = overload, .hash = hash };
    resolve(binder, b);
    binder->slots[at] = b;
    binder->count++;
    return b;
}
