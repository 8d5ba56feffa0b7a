/* ir_function.c - the functions of a model, found by domain, name and overload in constant time. */
#include "ir/ir.h"

onx_status onxi_functions_index(onx_arena *arena, onx_function *const *list, uint32_t count, onxi_functions *out)
{
    *out = (onxi_functions){ .list = list, .count = count, .table = onxi_table_in_arena(arena) };
    if (!onxi_table_reserve(&out->table, count))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const onx_function *f = list[i];
        onx_str domain = onxi_domain_plain(onx_view(f->domain)), name = onx_view(f->name);
        onx_str overload = onx_view(f->overload);
        if (!name.len || onxi_functions_find(out, domain, name, overload, NULL))
            continue; /* the first one of that name counts */
        if (!onxi_table_add(&out->table, onxi_table_hash_texts(&out->table, domain, name, overload), i))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

const onx_function *onxi_functions_find(const onxi_functions *functions, onx_str domain, onx_str name, onx_str overload,
                                        uint32_t *index_out)
{
    if (!functions->table.count)
        return NULL;
    domain = onxi_domain_plain(domain);
    uint32_t hash = onxi_table_hash_texts(&functions->table, domain, name, overload);
    ONXI_TABLE_EACH (&functions->table, hash, i) {
        const onx_function *f = functions->list[i];
        if (!onx_str_equal(onx_view(f->name), name) || !onx_str_equal(onxi_domain_plain(onx_view(f->domain)), domain) ||
            !onx_str_equal(onx_view(f->overload), overload))
            continue;
        if (index_out)
            *index_out = i;
        return f;
    }
    return NULL;
}
