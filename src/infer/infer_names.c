/* infer_names.c - names of values and what they are bound to, scope by scope; records of what was found per graph. */
#include "infer/infer.h"

/* ---- tables of names ---- */

/* Makes room for `wanted` names in all. */
static bool names_grow(onx_infer *e, onxi_infer_names *names, uint64_t wanted)
{
    uint32_t room = names->room ? names->room : 64;
    while (room < wanted && room <= UINT32_C(1) << 29)
        room *= 2;
    if (room < wanted)
        return false;
    onxi_infer_name *entries =
        onxi_resize(e->cx, names->entries, names->room * sizeof *entries, room * sizeof *entries);
    if (!entries)
        return false;
    names->entries = entries;
    names->room = room;
    uint32_t slot_count = room * 2;
    uint64_t *slots = onxi_resize(e->cx, NULL, 0, slot_count * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0, slot_count * sizeof *slots);
    for (uint32_t i = 0; i < names->slot_count; i++) {
        uint64_t slot = names->slots[i];
        uint32_t at = (uint32_t)(slot >> 32) & (slot_count - 1);
        while (slot && slots[at])
            at = (at + 1) & (slot_count - 1);
        if (slot)
            slots[at] = slot;
    }
    onxi_release(e->cx, names->slots, names->slot_count * sizeof *slots);
    names->slots = slots;
    names->slot_count = slot_count;
    return true;
}

onx_status onxi_infer_names_reserve(onx_infer *e, onxi_infer_names *names, uint64_t count)
{
    uint64_t wanted = names->count + count;
    return wanted <= names->room || names_grow(e, names, wanted) ? ONX_OK : (e->status = ONX_E_MEMORY);
}

enum { RECENT = 4 };

void onxi_infer_names_prefetch(const onxi_infer_names *names, onx_str text)
{
    if (names->slot_count)
        __builtin_prefetch(&names->slots[(uint32_t)onxi_hash(text.ptr, text.len, 0) & (names->slot_count - 1)], 1);
}

/* A slot holds the hash in its upper half and the index + 1 in its lower: most probes need no look at the entry. */
uint32_t onxi_infer_names_add(onx_infer *e, onxi_infer_names *names, onx_str text)
{
    /* Most inputs are what one of the last nodes made; those names are at hand. */
    for (uint32_t i = names->count; i > 0 && i + RECENT > names->count; i--)
        if (onx_str_equal(names->entries[i - 1].text, text))
            return i - 1;
    uint32_t hash = (uint32_t)onxi_hash(text.ptr, text.len, 0);
    if (names->count == names->room && !names_grow(e, names, (uint64_t)names->room + 1)) {
        e->status = ONX_E_MEMORY;
        return UINT32_MAX;
    }
    uint32_t mask = names->slot_count - 1, at = hash & mask;
    for (uint64_t slot; (slot = names->slots[at]) != 0; at = (at + 1) & mask)
        if (slot >> 32 == hash && onx_str_equal(names->entries[(uint32_t)slot - 1].text, text))
            return (uint32_t)slot - 1;
    names->entries[names->count] = (onxi_infer_name){ .text = text };
    names->slots[at] = (uint64_t)hash << 32 | ++names->count;
    return names->count - 1;
}

uint32_t onxi_infer_names_find(const onxi_infer_names *names, onx_str text)
{
    uint32_t hash = (uint32_t)onxi_hash(text.ptr, text.len, 0), mask = names->slot_count - 1, at = hash & mask;
    if (!names->slot_count)
        return UINT32_MAX;
    for (uint64_t slot; (slot = names->slots[at]) != 0; at = (at + 1) & mask)
        if (slot >> 32 == hash && onx_str_equal(names->entries[(uint32_t)slot - 1].text, text))
            return (uint32_t)slot - 1;
    return UINT32_MAX;
}

void onxi_infer_names_free(onx_infer *e, onxi_infer_names *names)
{
    onxi_release(e->cx, names->entries, names->room * sizeof *names->entries);
    onxi_release(e->cx, names->slots, names->slot_count * sizeof *names->slots);
    *names = (onxi_infer_names){ .entries = NULL };
}

/* ---- scopes ---- */

onx_status onxi_infer_scope_bind(onx_infer *e, onxi_infer_scope *scope, uint32_t name, onxi_infer_fact *fact)
{
    onxi_infer_frame *frame = scope->frame;
    onxi_infer_name *entry = &frame->names.entries[name];
    bool outermost = !scope->parent || scope->parent->frame != frame;
    if (!outermost && entry->scope != scope) {
        if (frame->undo_count == frame->undo_room) {
            uint32_t room = frame->undo_room ? frame->undo_room * 2 : 64;
            onxi_infer_undo *undo =
                onxi_resize(e->cx, frame->undo, frame->undo_room * sizeof *undo, room * sizeof *undo);
            if (!undo)
                return e->status = ONX_E_MEMORY;
            frame->undo = undo;
            frame->undo_room = room;
        }
        frame->undo[frame->undo_count++] = (onxi_infer_undo){ name, entry->declared, entry->fact, entry->scope };
        entry->declared = ONXI_DECLARED_NOT;
    }
    entry->fact = fact;
    entry->scope = scope;
    return ONX_OK;
}

void onxi_infer_scope_leave(onx_infer *e, onxi_infer_scope *scope)
{
    onxi_infer_frame *frame = scope->frame;
    (void)e;
    while (frame->undo_count > scope->undo_mark) {
        onxi_infer_undo *undo = &frame->undo[--frame->undo_count];
        onxi_infer_name *entry = &frame->names.entries[undo->name];
        entry->fact = undo->fact;
        entry->scope = undo->scope;
        entry->declared = undo->declared;
    }
}

onxi_infer_fact *onxi_infer_fact_new(onx_infer *e)
{
    onxi_infer_fact *fact = onxi_arena_get(e->arena, sizeof *fact);
    if (!fact) {
        e->status = ONX_E_MEMORY;
        return NULL;
    }
    memset(fact, 0, sizeof *fact);
    return fact;
}

/* ---- maps ---- */

static bool map_grow(onx_infer *e, onxi_infer_map *map)
{
    onxi_infer_map larger = { .count = map->count, .room = map->room ? map->room * 2 : 64 };
    larger.keys = ONXI_ARRAY(e->arena, uint64_t, larger.room);
    larger.values = ONXI_ARRAY(e->arena, void *, larger.room);
    if (!larger.keys || !larger.values)
        return false;
    for (uint32_t i = 0; i < map->room; i++) {
        uint32_t at = (uint32_t)map->keys[i] & (larger.room - 1);
        while (map->keys[i] && larger.keys[at])
            at = (at + 1) & (larger.room - 1);
        if (map->keys[i]) {
            larger.keys[at] = map->keys[i];
            larger.values[at] = map->values[i];
        }
    }
    *map = larger;
    return true;
}

void **onxi_infer_map_at(onx_infer *e, onxi_infer_map *map, uint64_t key)
{
    if (map->count * 2 >= map->room && !map_grow(e, map)) {
        e->status = ONX_E_MEMORY;
        return NULL;
    }
    key += key == 0;
    uint32_t at = (uint32_t)key & (map->room - 1);
    for (; map->keys[at]; at = (at + 1) & (map->room - 1))
        if (map->keys[at] == key)
            return &map->values[at];
    map->keys[at] = key;
    map->count++;
    return &map->values[at];
}

void *onxi_infer_map_find(const onxi_infer_map *map, uint64_t key)
{
    key += key == 0;
    if (!map->room)
        return NULL;
    for (uint32_t at = (uint32_t)key & (map->room - 1); map->keys[at]; at = (at + 1) & (map->room - 1))
        if (map->keys[at] == key)
            return map->values[at];
    return NULL;
}

/* ---- results ---- */

static uint32_t hash_pointer(const void *p)
{
    uint64_t h = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static bool results_grow(onx_infer *e)
{
    uint32_t slot_count = e->result_slot_count ? e->result_slot_count * 2 : 16;
    onxi_infer_result **slots = ONXI_ARRAY(e->arena, onxi_infer_result *, slot_count);
    if (!slots)
        return false;
    for (onxi_infer_result *r = e->results; r; r = r->next) {
        uint32_t at = hash_pointer(r->graph) & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = r;
    }
    e->result_slots = slots;
    e->result_slot_count = slot_count;
    return true;
}

onxi_infer_result *onxi_infer_result_of(onx_infer *e, const onx_graph *graph, bool make)
{
    uint32_t hash = hash_pointer(graph), at;
    if (e->result_slot_count) {
        for (at = hash & (e->result_slot_count - 1); e->result_slots[at]; at = (at + 1) & (e->result_slot_count - 1))
            if (e->result_slots[at]->graph == graph) {
                if (make) {
                    e->result_slots[at]->count = 0;
                    e->result_slots[at]->slots = NULL;
                }
                return e->result_slots[at];
            }
    }
    if (!make)
        return NULL;
    onxi_infer_result *result = ONXI_NEW(e->arena, onxi_infer_result);
    if (!result || (e->result_count * 2 >= e->result_slot_count && !results_grow(e))) {
        e->status = ONX_E_MEMORY;
        return NULL;
    }
    result->graph = graph;
    for (at = hash & (e->result_slot_count - 1); e->result_slots[at];)
        at = (at + 1) & (e->result_slot_count - 1);
    e->result_slots[at] = result;
    e->result_count++;
    *e->results_end = result;
    e->results_end = &result->next;
    return result;
}

onx_status onxi_infer_result_add(onx_infer *e, onxi_infer_result *result, onx_str name, onxi_infer_fact *fact,
                                 bool declared)
{
    if (result->count == result->room) {
        uint64_t least = (uint64_t)result->graph->input_count + result->graph->node_count + 16;
        uint32_t room = result->room ? result->room * 2 : least > UINT32_MAX / 2 ? 16 : (uint32_t)least;
        onxi_infer_made *made = onxi_arena_get(e->arena, room * sizeof *made);
        if (!made)
            return e->status = ONX_E_MEMORY;
        if (result->count)
            memcpy(made, result->made, result->count * sizeof *made);
        result->made = made;
        result->room = room;
    }
    result->made[result->count++] = (onxi_infer_made){ name, fact, declared };
    return ONX_OK;
}

onxi_infer_fact *onxi_infer_result_find(onx_infer *e, onxi_infer_result *result, onx_str name)
{
    if (!result->slots) {
        uint32_t slot_count = 16;
        while (slot_count < result->count * 2)
            slot_count *= 2;
        uint32_t *slots = ONXI_ARRAY(e->arena, uint32_t, slot_count);
        if (!slots)
            return NULL;
        for (uint32_t i = 0; i < result->count; i++) {
            onx_str text = result->made[i].name;
            uint32_t at = (uint32_t)onxi_hash(text.ptr, text.len, 0) & (slot_count - 1);
            while (slots[at])
                at = (at + 1) & (slot_count - 1);
            slots[at] = i + 1;
        }
        result->slots = slots;
        result->slot_count = slot_count;
    }
    uint32_t at = (uint32_t)onxi_hash(name.ptr, name.len, 0) & (result->slot_count - 1);
    for (; result->slots[at]; at = (at + 1) & (result->slot_count - 1))
        if (onx_str_equal(result->made[result->slots[at] - 1].name, name))
            return result->made[result->slots[at] - 1].fact;
    return NULL;
}
