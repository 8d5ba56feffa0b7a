/* shard_unfold.c - converts weights of operators that also accept a form with more axes to that form, in a model that
 * is to be annotated, so that they can be split along these axes. */
#include "shard/shard_apart.h"

#include "transform/transform.h"

static onx_status count_name(void *user, onx_bytes *name)
{
    onxi_unfolder *u = user;
    onxi_dict_entry *e = onxi_dict_at(&u->names, onx_view(*name), 0, NULL);
    if (e)
        e->value++;
    return e ? ONX_OK : ONX_E_MEMORY;
}

onx_tensor *onxi_unfold_own(const onxi_unfolder *u, const onx_node *node, uint32_t i)
{
    const onx_str name = i < node->input_count ? onx_view(node->input[i]) : onx_str_make("", 0);
    const onxi_dict_entry *at = name.len ? onxi_dict_find(&u->tensors, name) : NULL;
    const onxi_dict_entry *places = at ? onxi_dict_find(&u->names, name) : NULL;
    return places && places->value == 2 ? u->graph->initializer[at->value] : NULL; /* the tensor, and this node */
}

onx_status onxi_unfold_axis(const onxi_unfolder *u, onx_tensor *t, int64_t outer, int64_t inner)
{
    int64_t all;
    if (t->dims_count != 1 || __builtin_mul_overflow(outer, inner, &all) || t->dims[0] != all || inner < 2)
        return ONX_OK;
    int64_t *dims = onxi_arena_array(onx_doc_arena(u->doc), 2, sizeof *dims);
    if (!dims)
        return ONX_E_MEMORY;
    dims[0] = outer;
    dims[1] = inner;
    t->dims = dims;
    t->dims_count = 2;
    return ONX_OK;
}

static onx_status open(onxi_unfolder *u)
{
    u->names = onxi_dict_in_arena(u->scratch);
    u->tensors = onxi_dict_in_arena(u->scratch);
    ONX_TRY(onxi_graph_each_name(u->cx, u->graph, count_name, u));
    for (uint32_t i = 0; i < u->graph->initializer_count; i++)
        if (!onxi_dict_at(&u->tensors, onx_view(u->graph->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

/* Rows access operands by index, so a node without its required operands is treated as unknown. */
static onx_status row_of(const onxi_unfolder *u, uint32_t node, const onxi_bound **bound, const onxi_split_row **row)
{
    *bound = onxi_bind(u->binder, u->graph->node[node]);
    const bool whole = *bound && (*bound)->kind == ONXI_BOUND_OPERATOR &&
                       onxi_node_has_operands(u->graph->node[node], (*bound)->schema);
    *row = whole ? onxi_split_row_find((*bound)->op) : NULL;
    return *bound ? ONX_OK : ONX_E_MEMORY;
}

static onx_status separate(onxi_unfolder *u)
{
    const onxi_bound *bound;
    const onxi_split_row *row;
    ONX_TRY(open(u));
    ONX_TRY(onxi_apart_open(u));
    for (uint32_t i = 0; i < u->graph->node_count; i++) {
        ONX_TRY(row_of(u, i, &bound, &row));
        if (row && row->separate)
            ONX_TRY(row->separate(u, bound, i));
    }
    return onxi_apart_close(u);
}

onx_status onxi_spread_unfold(onx_ctx *cx, onx_doc *doc, bool weights, onx_arena *arena)
{
    onxi_functions functions;
    onxi_binder binder = { .arena = arena, .functions = &functions };
    onxi_unfolder u = { .cx = cx, .doc = doc, .graph = onx_doc_model(doc)->graph, .scratch = arena, .binder = &binder };
    const onxi_bound *bound;
    const onxi_split_row *row;
    ONX_TRY(onxi_functions_index(arena, NULL, 0, &functions));
    ONX_TRY(onxi_binder_open_model(&binder, onx_doc_model(doc)));
    if (weights)
        ONX_TRY(separate(&u));
    ONX_TRY(open(&u));
    for (uint32_t i = 0; i < u.graph->node_count; i++) {
        ONX_TRY(row_of(&u, i, &bound, &row));
        if (row && row->unfold)
            ONX_TRY(row->unfold(&u, bound, u.graph->node[i]));
    }
    return ONX_OK;
}
