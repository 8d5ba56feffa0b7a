/* bind_imports.c - finds the imported version of a domain in constant time. */
#include "bind/bind.h"

bool onxi_model_is_legacy(const onx_model *model)
{
    return model && model->ir_version >= 1 && model->ir_version < 3;
}

onx_status onxi_imports_open(onxi_imports *imports, onx_arena *arena, onx_operator_set_id *const *list, uint32_t count,
                             bool legacy)
{
    *imports = (onxi_imports){ .items = ONXI_ARRAY(arena, onxi_import, (size_t)count + 1),
                               .by_domain = onxi_dict_in_arena(arena) };
    if (!imports->items)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const onx_str domain = onxi_domain_plain(onx_view(list[i]->domain));
        bool made;
        const onxi_dict_entry *entry = onxi_dict_at(&imports->by_domain, domain, imports->count, &made);
        if (!entry)
            return ONX_E_MEMORY;
        onxi_import *item = &imports->items[entry->value];
        if (made)
            imports->items[imports->count++] =
                (onxi_import){ .domain = domain, .version = list[i]->version, .first = i, .best = i };
        else if (list[i]->version > item->version) {
            item->version = list[i]->version;
            item->best = i;
        }
    }
    if (!legacy || onxi_imports_find(imports, onx_str_of("")) != ONXI_UNBOUND)
        return ONX_OK;
    if (!onxi_dict_at(&imports->by_domain, onx_str_of(""), imports->count, NULL))
        return ONX_E_MEMORY;
    imports->items[imports->count++] = (onxi_import){
        .domain = onx_str_of(""), .version = 1, .first = ONXI_IMPORT_IMPLIED, .best = ONXI_IMPORT_IMPLIED
    };
    return ONX_OK;
}

uint32_t onxi_imports_find(const onxi_imports *imports, onx_str domain)
{
    const onxi_dict_entry *entry = onxi_dict_find(&imports->by_domain, onxi_domain_plain(domain));
    return entry ? entry->value : ONXI_UNBOUND;
}

int64_t onxi_imports_version(const onxi_imports *imports, onx_str domain)
{
    const uint32_t at = onxi_imports_find(imports, domain);
    return at == ONXI_UNBOUND ? -1 : imports->items[at].version;
}

/* ---- IR versions ---- */

/* The smallest IR version for an operator-set version: the first row whose version is high enough (Versioning.md). */
static const struct release {
    const char *domain;
    int64_t version, ir;
} releases[] = {
    { "", 8, 3 },
    { "", 9, 4 },
    { "", 10, 5 },
    { "", 11, 6 },
    { "", 14, 7 },
    { "", 18, 8 },
    { "", 20, 9 },
    { "", 22, 10 },
    { "", 23, 11 },
    { "", 24, 12 },
    { "", 28, 13 },
    { "ai.onnx.ml", 1, 3 },
    { "ai.onnx.ml", 2, 6 },
    { "ai.onnx.ml", 3, 8 },
    { "ai.onnx.ml", 4, 9 },
    { "ai.onnx.ml", 5, 10 },
    { "ai.onnx.training", 1, 7 },
    { "ai.onnx.preview.training", 1, 7 },
};

int64_t onxi_import_ir_version(onx_str domain, int64_t version)
{
    domain = onxi_domain_plain(domain);
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (onx_str_is(domain, releases[i].domain) && version <= releases[i].version)
            return releases[i].ir;
    return 0;
}
