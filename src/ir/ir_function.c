/* ir_function.c - looks up the functions of a model by domain, name and overload in constant time. */
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
            continue; /* a duplicate: the first function of that name counts */
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

/* ---- functions that call themselves ---- */

typedef struct callers {
    const onxi_functions *functions;
    onx_arena *arena;
    uint32_t *list; /* the callees of all functions, concatenated */
    size_t count, room;
} callers;

static onx_status note_call(void *user, const onx_visit *at)
{
    callers *c = user;
    const onx_node *node = at->message;
    uint32_t index;
    if (at->kind != ONX_KIND_NODE || !onxi_functions_find(c->functions, onx_view(node->domain), onx_view(node->op_type),
                                                          onx_view(onx_node_more(node)->overload), &index))
        return ONX_OK;
    if (!ONXI_GROW_IN(c->arena, c->list, c->room, (uint64_t)c->count + 1))
        return ONX_E_MEMORY;
    c->list[c->count++] = index;
    return ONX_OK;
}

/* Iterative depth-first search: finds the first function that is reached again while its callees are being visited. */
static onx_status search_calls(onx_arena *arena, const callers *c, const size_t *start, uint32_t count, uint32_t *out)
{
    enum { NOT_MET, WAITING, DONE };
    size_t *next = ONXI_ARRAY(arena, size_t, count);
    uint32_t *stack = ONXI_ARRAY(arena, uint32_t, count);
    uint8_t *met = ONXI_ARRAY(arena, uint8_t, count);
    if (!next || !stack || !met)
        return ONX_E_MEMORY;
    memcpy(next, start, count * sizeof *next);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t depth = 0;
        if (met[i] != NOT_MET)
            continue;
        met[i] = WAITING;
        stack[depth++] = i;
        while (depth) {
            const uint32_t f = stack[depth - 1];
            if (next[f] == start[f + 1]) {
                met[f] = DONE;
                depth--;
                continue;
            }
            const uint32_t callee = c->list[next[f]++];
            if (met[callee] == WAITING) {
                *out = callee;
                return ONX_OK;
            }
            if (met[callee] == NOT_MET) {
                met[callee] = WAITING;
                stack[depth++] = callee;
            }
        }
    }
    return ONX_OK;
}

onx_status onxi_functions_endless(onx_arena *arena, const onxi_functions *functions, uint32_t *out)
{
    callers c = { .functions = functions, .arena = arena };
    size_t *start = ONXI_ARRAY(arena, size_t, (size_t)functions->count + 1);
    *out = ONXI_NO_ENTRY;
    if (!start)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < functions->count; i++) {
        start[i] = c.count;
        ONX_TRY(onx_message_walk(arena->cx, ONX_KIND_FUNCTION, functions->list[i], note_call, &c));
    }
    start[functions->count] = c.count;
    return functions->count ? search_calls(arena, &c, start, functions->count, out) : ONX_OK;
}
