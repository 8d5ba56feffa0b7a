/* base_table.c - the hash table, and the maps with strings and integers as keys. */
#include "base/base.h"

enum { SLOTS_MIN = 16 };

onxi_table onxi_table_on_heap(onx_ctx *cx)
{
    return (onxi_table){ .secret = onxi_ctx_secret(cx), .cx = cx };
}

onxi_table onxi_table_in_arena(onx_arena *arena)
{
    return (onxi_table){ .secret = onxi_ctx_secret(arena->cx), .cx = arena->cx, .arena = arena };
}

static size_t slot_bytes(const onxi_table *table)
{
    return table->slots ? ((size_t)table->mask + 1) * sizeof *table->slots : 0;
}

void onxi_table_free(onxi_table *table)
{
    if (!table->arena)
        onxi_release(table->cx, table->slots, slot_bytes(table));
    table->slots = NULL;
    table->mask = table->count = table->limit = 0;
}

void onxi_table_clear(onxi_table *table)
{
    if (table->count)
        memset(table->slots, 0, slot_bytes(table));
    table->count = 0;
}

/* The maximum number of entries for that many slots: a load factor of five eighths keeps probe sequences short. */
static uint64_t limit_of(uint64_t slots)
{
    return slots / 8 * 5;
}

bool onxi_table_reserve(onxi_table *table, uint64_t count)
{
    if (count <= table->limit)
        return true;
    if (count > (uint64_t)1 << 30) {
        onxi_fail(table->cx, ONX_E_LIMIT, ONXI_NOWHERE, "more than 2^30 entries in one table");
        return false;
    }
    uint64_t slot_count = table->slots ? ((uint64_t)table->mask + 1) * 2 : SLOTS_MIN;
    while (limit_of(slot_count) < count)
        slot_count *= 2;
    size_t size = (size_t)slot_count * sizeof *table->slots;
    uint64_t *slots = table->arena ? onxi_arena_get(table->arena, size) : onxi_resize(table->cx, NULL, 0, size);
    if (!slots)
        return false;
    memset(slots, 0, size);
    uint32_t mask = (uint32_t)(slot_count - 1);
    for (uint64_t i = 0; table->slots && i <= table->mask; i++) {
        uint64_t slot = table->slots[i];
        if (!slot)
            continue;
        uint32_t at = (uint32_t)(slot >> 32) & mask;
        while (slots[at])
            at = (at + 1) & mask;
        slots[at] = slot;
    }
    if (!table->arena)
        onxi_release(table->cx, table->slots, slot_bytes(table));
    table->slots = slots;
    table->mask = mask;
    table->limit = (uint32_t)limit_of(slot_count);
    return true;
}

uint32_t onxi_table_hash_texts(const onxi_table *table, onx_str a, onx_str b, onx_str c)
{
    uint64_t h = onxi_hash(table->secret, a.ptr, a.len);
    if (b.len)
        h = onxi_hash(onxi_hash_then(table->secret, h), b.ptr, b.len);
    return (uint32_t)(c.len ? onxi_hash(onxi_hash_then(table->secret, h + 1), c.ptr, c.len) : h);
}

/* ---- strings as keys ---- */

onxi_dict onxi_dict_on_heap(onx_ctx *cx)
{
    return (onxi_dict){ .table = onxi_table_on_heap(cx) };
}

onxi_dict onxi_dict_in_arena(onx_arena *arena)
{
    return (onxi_dict){ .table = onxi_table_in_arena(arena) };
}

void onxi_dict_free(onxi_dict *dict)
{
    if (!dict->table.arena)
        onxi_release(dict->table.cx, dict->entries, dict->room * sizeof *dict->entries);
    onxi_table_free(&dict->table);
    dict->entries = NULL;
    dict->count = dict->room = 0;
}

bool onxi_dict_reserve(onxi_dict *dict, uint64_t count)
{
    return ONXI_GROW_WHERE(dict->table.cx, dict->table.arena, dict->entries, dict->room, count) &&
           onxi_table_reserve(&dict->table, count);
}

static onxi_dict_entry *dict_seek(const onxi_dict *dict, onx_str key, uint32_t hash)
{
    ONXI_TABLE_EACH (&dict->table, hash, i)
        if (onx_str_equal(dict->entries[i].key, key))
            return &dict->entries[i];
    return NULL;
}

onxi_dict_entry *onxi_dict_find(const onxi_dict *dict, onx_str key)
{
    return dict_seek(dict, key, onxi_table_hash(&dict->table, key));
}

onxi_dict_entry *onxi_dict_at(onxi_dict *dict, onx_str key, uint32_t value, bool *made_out)
{
    uint32_t hash = onxi_table_hash(&dict->table, key);
    onxi_dict_entry *entry = dict_seek(dict, key, hash);
    if (made_out)
        *made_out = !entry;
    if (entry)
        return entry;
    if (!ONXI_GROW_WHERE(dict->table.cx, dict->table.arena, dict->entries, dict->room, dict->count + 1) ||
        !onxi_table_add(&dict->table, hash, dict->count))
        return NULL;
    entry = &dict->entries[dict->count++];
    *entry = (onxi_dict_entry){ key, value };
    return entry;
}

/* ---- integers as keys ---- */

onxi_map onxi_map_on_heap(onx_ctx *cx)
{
    return (onxi_map){ .table = onxi_table_on_heap(cx) };
}

onxi_map onxi_map_in_arena(onx_arena *arena)
{
    return (onxi_map){ .table = onxi_table_in_arena(arena) };
}

void onxi_map_free(onxi_map *map)
{
    if (!map->table.arena)
        onxi_release(map->table.cx, map->entries, map->room * sizeof *map->entries);
    onxi_table_free(&map->table);
    map->entries = NULL;
    map->count = map->room = 0;
}

static onxi_map_entry *map_seek(const onxi_map *map, uint64_t key, uint32_t hash)
{
    ONXI_TABLE_EACH (&map->table, hash, i)
        if (map->entries[i].key == key)
            return &map->entries[i];
    return NULL;
}

void *onxi_map_find(const onxi_map *map, uint64_t key)
{
    const onxi_map_entry *entry = map_seek(map, key, onxi_table_hash_word(&map->table, key));
    return entry ? entry->value : NULL;
}

void **onxi_map_at(onxi_map *map, uint64_t key)
{
    uint32_t hash = onxi_table_hash_word(&map->table, key);
    onxi_map_entry *entry = map_seek(map, key, hash);
    if (entry)
        return &entry->value;
    if (!ONXI_GROW_WHERE(map->table.cx, map->table.arena, map->entries, map->room, map->count + 1) ||
        !onxi_table_add(&map->table, hash, map->count))
        return NULL;
    entry = &map->entries[map->count++];
    *entry = (onxi_map_entry){ .key = key };
    return &entry->value;
}
