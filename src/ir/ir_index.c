/* ir_index.c - the definition and the uses of each name in a graph; names are interned in a hash table. */
#include "ir/ir.h"

typedef struct entry {
    onx_str name;
    onx_def def;
    uint32_t use_count, use_at; /* uses[use_at .. use_at + use_count) */
    bool is_output;
} entry;

struct onx_index {
    onx_ctx *cx;
    onx_arena *arena;
    entry *entries;
    uint32_t entry_count, entry_room;
    onxi_table table;
    onx_use *uses;
};

/* A use in order of discovery; a counting sort then groups the uses by name. */
typedef struct found {
    onx_name_id id;
    onx_use use;
} found;

typedef struct builder {
    onx_index *index;
    found *list;
    size_t count, room;
    uint32_t depth_limit;
} builder;

/* The id of a name, which is added if it is new; ONX_NO_NAME when out of memory. */
static onx_name_id intern(onx_index *x, onx_str name)
{
    uint32_t hash = onxi_table_hash(&x->table, name);
    ONXI_TABLE_EACH (&x->table, hash, i)
        if (onx_str_equal(x->entries[i].name, name))
            return i;
    if (!ONXI_GROW_IN(x->arena, x->entries, x->entry_room, x->entry_count + 1) ||
        !onxi_table_add(&x->table, hash, x->entry_count))
        return ONX_NO_NAME;
    x->entries[x->entry_count] = (entry){ .name = name };
    return x->entry_count++;
}

static onx_status add_use(builder *b, onx_name_id id, uint32_t node, uint32_t input)
{
    if (!ONXI_GROW(b->index->cx, b->list, b->room, b->count + 1))
        return ONX_E_MEMORY;
    b->list[b->count++] = (found){ id, { node, input } };
    b->index->entries[id].use_count++;
    return ONX_OK;
}

static onx_status define(onx_index *x, onx_str name, onx_def def)
{
    if (!name.len)
        return ONX_OK;
    onx_name_id id = intern(x, name);
    if (id == ONX_NO_NAME)
        return ONX_E_MEMORY;
    if (x->entries[id].def.kind == ONX_DEF_NONE) /* the first definition counts; the checker reports duplicates */
        x->entries[id].def = def;
    return ONX_OK;
}

static onx_status define_all(onx_index *x, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->input_count; i++)
        ONX_TRY(define(x, onx_view(g->input[i]->name), (onx_def){ ONX_DEF_INPUT, i, 0 }));
    for (uint32_t i = 0; i < g->initializer_count; i++)
        ONX_TRY(define(x, onx_view(g->initializer[i]->name), (onx_def){ ONX_DEF_INITIALIZER, i, 0 }));
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++)
        if (g->sparse_initializer[i]->values)
            ONX_TRY(define(x, onx_view(g->sparse_initializer[i]->values->name),
                           (onx_def){ ONX_DEF_SPARSE_INITIALIZER, i, 0 }));
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->node[i]->output_count; k++)
            ONX_TRY(define(x, onx_view(g->node[i]->output[k]), (onx_def){ ONX_DEF_NODE, i, k }));
    return ONX_OK;
}

static onx_status uses_in_subgraphs(builder *b, const onx_node *node, uint32_t outer, uint32_t depth);

/* Collects the names that a subgraph captures: those that it does not define itself. A name that an enclosing subgraph
 * defines is counted as well, although it is not captured from the graph. This keeps the pass linear and is harmless,
 * because names are unique across nested scopes in a valid model. */
static onx_status uses_of_subgraph(builder *b, const onx_graph *g, uint32_t outer, uint32_t depth)
{
    if (depth > b->depth_limit)
        return onxi_fail(b->index->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "subgraphs are nested more than %u deep (limit depth)", b->depth_limit);
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onx_node *node = g->node[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            onx_name_id id = onx_index_find(b->index, onx_view(node->input[k]));
            if (id != ONX_NO_NAME)
                ONX_TRY(add_use(b, id, outer, UINT32_MAX));
        }
        ONX_TRY(uses_in_subgraphs(b, node, outer, depth + 1));
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        onx_name_id id = onx_index_find(b->index, onx_view(g->output[i]->name));
        if (id != ONX_NO_NAME)
            ONX_TRY(add_use(b, id, outer, UINT32_MAX));
    }
    return ONX_OK;
}

static onx_status uses_in_subgraphs(builder *b, const onx_node *node, uint32_t outer, uint32_t depth)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot != ONX_SLOT_G && a->slot != ONX_SLOT_GRAPHS && !a->extra)
            continue;
        uint32_t count;
        onx_graph *const *one = onx_attribute_value(a, ONX_SLOT_G, &count);
        if (one && *one)
            ONX_TRY(uses_of_subgraph(b, *one, outer, depth));
        onx_graph *const *many = onx_attribute_value(a, ONX_SLOT_GRAPHS, &count);
        for (uint32_t k = 0; many && k < count; k++)
            if (many[k])
                ONX_TRY(uses_of_subgraph(b, many[k], outer, depth));
    }
    return ONX_OK;
}

static onx_status find_uses(builder *b, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onx_node *node = g->node[i];
        for (uint32_t k = 0; k < node->input_count; k++) {
            onx_str name = onx_view(node->input[k]);
            if (!name.len)
                continue;
            onx_name_id id = intern(b->index, name); /* a captured name is known only by its uses */
            if (id == ONX_NO_NAME)
                return ONX_E_MEMORY;
            ONX_TRY(add_use(b, id, i, k));
        }
        ONX_TRY(uses_in_subgraphs(b, node, i, 1));
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        onx_str name = onx_view(g->output[i]->name);
        onx_name_id id = name.len ? intern(b->index, name) : ONX_NO_NAME;
        if (id != ONX_NO_NAME)
            b->index->entries[id].is_output = true;
        else if (name.len)
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Groups the uses by name; within a group they stay in node order. */
static onx_status sort_uses(builder *b)
{
    onx_index *x = b->index;
    x->uses = ONXI_ARRAY(x->arena, onx_use, b->count);
    if (!x->uses)
        return ONX_E_MEMORY;
    uint32_t at = 0;
    if (b->count > UINT32_MAX)
        return onxi_fail(x->cx, ONX_E_LIMIT, ONXI_NOWHERE, "more than 2^32 uses of names in one graph");
    for (uint32_t i = 0; i < x->entry_count; i++) {
        x->entries[i].use_at = at;
        at += x->entries[i].use_count;
        x->entries[i].use_count = 0;
    }
    for (size_t i = 0; i < b->count; i++) {
        entry *e = &x->entries[b->list[i].id];
        x->uses[e->use_at + e->use_count++] = b->list[i].use;
    }
    return ONX_OK;
}

onx_status onx_index_new(onx_ctx *cx, const onx_graph *graph, onx_index **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, graph);
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_index *x = ONXI_NEW(arena, onx_index);
    if (x)
        *x = (onx_index){ .cx = cx, .arena = arena, .table = onxi_table_in_arena(arena) };
    builder b = { .index = x, .depth_limit = onx_ctx_limits(cx).depth };
    onx_status status = x ? define_all(x, graph) : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = find_uses(&b, graph);
    if (status == ONX_OK)
        status = sort_uses(&b);
    onxi_release(cx, b.list, b.room * sizeof *b.list);
    if (status != ONX_OK) {
        onx_arena_free(arena);
        return status;
    }
    *out = x;
    return ONX_OK;
}

void onx_index_free(onx_index *index)
{
    if (index)
        onx_arena_free(index->arena);
}

uint32_t onx_index_name_count(const onx_index *index)
{
    if (!index)
        return 0;
    return index->entry_count;
}

onx_name_id onx_index_find(const onx_index *index, onx_str name)
{
    if (!index)
        return ONX_NO_NAME;
    uint32_t hash = onxi_table_hash(&index->table, name);
    ONXI_TABLE_EACH (&index->table, hash, i)
        if (onx_str_equal(index->entries[i].name, name))
            return i;
    return ONX_NO_NAME;
}

/* The entry of a name, NULL if there is none. */
static const entry *entry_at(const onx_index *index, onx_name_id id)
{
    return index && id < index->entry_count ? &index->entries[id] : NULL;
}

onx_str onx_index_name(const onx_index *index, onx_name_id id)
{
    const entry *e = entry_at(index, id);
    return e ? e->name : onx_str_make("", 0);
}

onx_def onx_index_def(const onx_index *index, onx_name_id id)
{
    const entry *e = entry_at(index, id);
    return e ? e->def : (onx_def){ .kind = ONX_DEF_NONE };
}

const onx_use *onx_index_uses(const onx_index *index, onx_name_id id, uint32_t *count)
{
    const entry *e = entry_at(index, id);
    if (!count)
        return NULL;
    *count = e ? e->use_count : 0;
    return e ? index->uses + e->use_at : NULL;
}

bool onx_index_is_output(const onx_index *index, onx_name_id id)
{
    const entry *e = entry_at(index, id);
    return e && e->is_output;
}
