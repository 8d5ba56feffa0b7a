/* shard_unfold.c - operators that take their weights in another form, too, by whose axes they can be split, are given
 * that one in a model that is to be annotated. */
#include "shard/shard_rules.h"
#include "shard/shard_spread.h"

#include "transform/transform.h"

struct onxi_unfolder {
    onx_doc *doc;
    onx_graph *graph;
    onxi_dict names;   /* how many places have each */
    onxi_dict tensors; /* initializers by name */
};

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

onx_status onxi_spread_unfold(onx_ctx *cx, onx_doc *doc, onx_arena *arena)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    onxi_unfolder u = { doc, g, onxi_dict_in_arena(arena), onxi_dict_in_arena(arena) };
    onxi_functions functions;
    onxi_binder binder = { .arena = arena, .functions = &functions };
    ONX_TRY(onxi_graph_each_name(cx, g, count_name, &u));
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(&u.tensors, onx_view(g->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    ONX_TRY(onxi_functions_index(arena, NULL, 0, &functions));
    ONX_TRY(onxi_binder_open_model(&binder, onx_doc_model(doc)));
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onxi_bound *bound = onxi_bind(&binder, g->node[i]);
        if (!bound)
            return ONX_E_MEMORY;
        const onxi_split_row *row = bound->kind == ONXI_BOUND_OPERATOR ? onxi_split_row_find(bound->op) : NULL;
        if (row && row->unfold)
            ONX_TRY(row->unfold(&u, bound, g->node[i]));
    }
    return ONX_OK;
}
