/* bind_imports.c - which version of which domain is imported, found in constant time. */
#include "bind/bind.h"

/* ---- texts to numbers ---- */

typedef struct onxi_bind_entry {
    onx_str text;
    uint32_t hash;
} onxi_bind_entry;

enum { FIRST_ROOM = 8 };

static uint32_t hash_of(const onxi_bind_index *index, onx_str text)
{
    return (uint32_t)onxi_hash(text.ptr, text.len, index->seed);
}

/* The slot that holds the text, or the free one where it would go. */
static uint32_t *slot_of(const onxi_bind_index *index, onx_str text, uint32_t hash)
{
    for (uint32_t at = hash;; at++) {
        uint32_t *slot = &index->slots[at & (index->slot_count - 1)];
        const onxi_bind_entry *entry = *slot ? &index->entries[*slot - 1] : NULL;
        if (!entry || (entry->hash == hash && onx_str_equal(entry->text, text)))
            return slot;
    }
}

static bool grow(onxi_bind_index *index, onx_arena *arena)
{
    uint32_t room = index->room ? index->room * 2 : FIRST_ROOM;
    if (room > UINT32_MAX / 4)
        return false;
    onxi_bind_entry *entries = ONXI_ARRAY(arena, onxi_bind_entry, room);
    uint32_t *slots = ONXI_ARRAY(arena, uint32_t, (size_t)room * 2);
    if (!entries || !slots)
        return false;
    if (index->count)
        memcpy(entries, index->entries, index->count * sizeof *entries);
    index->entries = entries;
    index->room = room;
    index->slots = slots;
    index->slot_count = room * 2;
    for (uint32_t i = 0; i < index->count; i++)
        *slot_of(index, entries[i].text, entries[i].hash) = i + 1;
    return true;
}

uint32_t onxi_bind_index_add(onxi_bind_index *index, onx_arena *arena, onx_str text)
{
    if (!index->slots)
        index->seed = (uint64_t)(uintptr_t)arena * 0x9e3779b97f4a7c15u;
    if (index->count == index->room && !grow(index, arena))
        return ONXI_UNBOUND;
    const uint32_t hash = hash_of(index, text);
    uint32_t *slot = slot_of(index, text, hash);
    if (!*slot) {
        index->entries[index->count++] = (onxi_bind_entry){ text, hash };
        *slot = index->count;
    }
    return *slot - 1;
}

uint32_t onxi_bind_index_find(const onxi_bind_index *index, onx_str text)
{
    return index->slots ? *slot_of(index, text, hash_of(index, text)) - 1 : ONXI_UNBOUND;
}

/* ---- imports ---- */

bool onxi_model_is_legacy(const onx_model *model)
{
    return model && model->ir_version >= 1 && model->ir_version < 3;
}

onx_status onxi_imports_open(onxi_imports *imports, onx_arena *arena, onx_operator_set_id *const *list, uint32_t count,
                             bool legacy)
{
    *imports = (onxi_imports){ .items = ONXI_ARRAY(arena, onxi_import, (size_t)count + 1) };
    if (!imports->items)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const onx_str domain = onxi_domain_plain(onx_view(list[i]->domain));
        const uint32_t at = onxi_bind_index_add(&imports->index, arena, domain);
        if (at == ONXI_UNBOUND)
            return ONX_E_MEMORY;
        onxi_import *item = &imports->items[at];
        if (at == imports->count)
            imports->items[imports->count++] =
                (onxi_import){ .domain = domain, .version = list[i]->version, .first = i, .best = i };
        else if (list[i]->version > item->version) {
            item->version = list[i]->version;
            item->best = i;
        }
    }
    if (!legacy || onxi_imports_find(imports, onx_str_of("")) != ONXI_UNBOUND)
        return ONX_OK;
    if (onxi_bind_index_add(&imports->index, arena, onx_str_of("")) == ONXI_UNBOUND)
        return ONX_E_MEMORY;
    imports->items[imports->count++] = (onxi_import){
        .domain = onx_str_of(""), .version = 1, .first = ONXI_IMPORT_IMPLIED, .best = ONXI_IMPORT_IMPLIED
    };
    return ONX_OK;
}

uint32_t onxi_imports_find(const onxi_imports *imports, onx_str domain)
{
    return onxi_bind_index_find(&imports->index, onxi_domain_plain(domain));
}

int64_t onxi_imports_version(const onxi_imports *imports, onx_str domain)
{
    const uint32_t at = onxi_imports_find(imports, domain);
    return at == ONXI_UNBOUND ? -1 : imports->items[at].version;
}
