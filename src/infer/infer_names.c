/* infer_names.c - names of values and their bindings, scope by scope; result records per graph. */
#include "infer/infer.h"

/* ---- tables of names ---- */

onx_status onxi_infer_names_reserve(onx_infer *e, onxi_infer_names *names, uint64_t count)
{
    if (!names->table.cx)
        names->table = onxi_table_on_heap(e->cx);
    if (ONXI_GROW(e->cx, names->entries, names->room, names->count + count) &&
        onxi_table_reserve(&names->table, names->count + count))
        return ONX_OK;
    return e->status = ONX_E_MEMORY;
}

static size_t ahead_of(onx_str text)
{
    return ((uintptr_t)text.ptr >> 2) % ONXI_INFER_AHEAD;
}

static uint32_t hash_of(const onxi_infer_names *names, onx_str text)
{
    const size_t at = ahead_of(text);
    if (names->ahead[at].text.ptr == text.ptr && names->ahead[at].text.len == text.len)
        return names->ahead[at].hash;
    return onxi_table_hash(&names->table, text);
}

void onxi_infer_names_prefetch(onxi_infer_names *names, onx_str text)
{
    if (names->in_order || !names->table.cx)
        return;
    const size_t at = ahead_of(text);
    names->ahead[at].text = text;
    names->ahead[at].hash = onxi_table_hash(&names->table, text);
    onxi_table_prefetch(&names->table, names->ahead[at].hash);
}

static uint32_t look_up(onx_infer *e, onxi_infer_names *names, onx_str text)
{
    if ((names->count == names->room || names->count == names->table.limit) &&
        onxi_infer_names_reserve(e, names, 1) != ONX_OK)
        return UINT32_MAX;
    uint32_t hash = hash_of(names, text), at = hash;
    for (uint32_t i; (i = onxi_table_seek(&names->table, hash, &at)) != ONXI_NO_ENTRY; at++)
        if (onxi_str_same(names->entries[i].text, text))
            return i;
    names->entries[names->count] = (onxi_infer_name){ .text = text };
    onxi_table_place(&names->table, hash, at, names->count);
    return names->count++;
}

uint32_t onxi_infer_names_add(onx_infer *e, onxi_infer_names *names, onx_str text)
{
    const uint32_t made = names->made;
    for (uint32_t i = 1; i <= ONXI_INFER_RECENT && i <= made; i++) {
        const uint32_t name = names->recent[(made - i) % ONXI_INFER_RECENT];
        if (onxi_str_same(names->entries[name].text, text))
            return name;
    }
    return look_up(e, names, text);
}

uint32_t onxi_infer_names_make(onx_infer *e, onxi_infer_names *names, onx_str text)
{
    uint32_t name = names->made ? names->recent[(names->made - 1) % ONXI_INFER_RECENT] + 1 : 0;
    names->in_order = name < names->count && onxi_str_same(names->entries[name].text, text);
    if (!names->in_order)
        name = look_up(e, names, text);
    if (name != UINT32_MAX) {
        names->entries[name].made = true;
        names->recent[names->made++ % ONXI_INFER_RECENT] = name;
    }
    return name;
}

uint32_t onxi_infer_names_find(const onxi_infer_names *names, onx_str text)
{
    uint32_t hash = onxi_table_hash(&names->table, text);
    ONXI_TABLE_EACH (&names->table, hash, i)
        if (onx_str_equal(names->entries[i].text, text))
            return i;
    return UINT32_MAX;
}

void onxi_infer_names_free(onx_infer *e, onxi_infer_names *names)
{
    onxi_release(e->cx, names->entries, names->room * sizeof *names->entries);
    if (names->table.cx)
        onxi_table_free(&names->table);
    *names = (onxi_infer_names){ .entries = NULL };
}

/* ---- scopes ---- */

onx_status onxi_infer_scope_bind(onx_infer *e, onxi_infer_scope *scope, uint32_t name, onxi_infer_fact *fact)
{
    onxi_infer_frame *frame = scope->frame;
    onxi_infer_name *entry = &frame->names.entries[name];
    bool outermost = !scope->parent || scope->parent->frame != frame;
    if (!outermost && entry->scope != scope) {
        if (!ONXI_GROW(e->cx, frame->undo, frame->undo_room, frame->undo_count + 1))
            return e->status = ONX_E_MEMORY;
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

void **onxi_infer_map_at(onx_infer *e, onxi_map *map, uint64_t key)
{
    void **at = onxi_map_at(map, key);
    if (!at)
        e->status = ONX_E_MEMORY;
    return at;
}

/* ---- results ---- */

onxi_infer_result *onxi_infer_result_of(onx_infer *e, const onx_graph *graph, bool make)
{
    const uint64_t key = (uint64_t)(uintptr_t)graph;
    onxi_infer_result *result = onxi_map_find(&e->result_of, key);
    if (result && make) {
        result->count = 0;
        result->indexed = result->settled = false;
    }
    if (result || !make)
        return result;
    void **at = onxi_infer_map_at(e, &e->result_of, key);
    result = at ? ONXI_NEW(e->arena, onxi_infer_result) : NULL;
    if (!result) {
        e->status = ONX_E_MEMORY;
        return NULL;
    }
    *at = result;
    result->graph = graph;
    *e->results_end = result;
    e->results_end = &result->next;
    return result;
}

onx_status onxi_infer_result_add(onx_infer *e, onxi_infer_result *result, onx_str name, onxi_infer_fact *fact,
                                 bool declared)
{
    if (result->count == result->room) {
        uint64_t least = result->room ? 0 : (uint64_t)result->graph->input_count + result->graph->node_count + 16;
        uint64_t wanted = least > UINT32_MAX / 2 || !least ? (uint64_t)result->count + 1 : least;
        if (!ONXI_GROW_IN(e->arena, result->made, result->room, wanted))
            return e->status = ONX_E_MEMORY;
    }
    result->made[result->count++] = (onxi_infer_made){ name, fact, declared };
    return ONX_OK;
}

onxi_infer_fact *onxi_infer_result_find(onx_infer *e, onxi_infer_result *result, onx_str name)
{
    if (!result->indexed) {
        onxi_table table = onxi_table_in_arena(e->arena);
        if (!onxi_table_reserve(&table, result->count))
            return NULL;
        for (uint32_t i = 0; i < result->count; i++)
            if (!onxi_table_add(&table, onxi_table_hash(&table, result->made[i].name), i))
                return NULL;
        result->table = table;
        result->indexed = true;
    }
    uint32_t hash = onxi_table_hash(&result->table, name);
    ONXI_TABLE_EACH (&result->table, hash, i)
        if (onx_str_equal(result->made[i].name, name))
            return result->made[i].fact;
    return NULL;
}
