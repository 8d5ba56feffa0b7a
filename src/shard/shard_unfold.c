/* shard_unfold.c - scales and zero points that lie in one axis get one for the columns and one for the blocks, which
 * the operator takes as well: blocks of rows can only be split along an axis of their own. */
#include "shard/shard_spread.h"

#include "transform/transform.h"

static bool is_few_bits(const onx_node *node)
{
#ifdef ONX_DOMAIN_MICROSOFT
    return onxi_node_is(node, ONXI_ID_microsoft_MatMulNBits);
#else
    (void)node;
    return false;
#endif
}

typedef struct unfolder {
    onx_doc *doc;
    onx_graph *graph;
    onxi_dict names; /* how many places have each */
} unfolder;

static onx_status count_name(void *user, onx_bytes *name)
{
    unfolder *u = user;
    onxi_dict_entry *e = onxi_dict_at(&u->names, onx_view(*name), 0, NULL);
    if (e)
        e->value++;
    return e ? ONX_OK : ONX_E_MEMORY;
}

static onx_status unfold(const unfolder *u, onx_tensor *t, int64_t columns, int64_t each)
{
    int64_t all;
    if (t->dims_count != 1 || __builtin_mul_overflow(columns, each, &all) || t->dims[0] != all || each < 2)
        return ONX_OK;
    int64_t *dims = onxi_arena_array(onx_doc_arena(u->doc), 2, sizeof *dims);
    if (!dims)
        return ONX_E_MEMORY;
    dims[0] = columns;
    dims[1] = each;
    t->dims = dims;
    t->dims_count = 2;
    return ONX_OK;
}

static onx_status unfold_node(const unfolder *u, const onxi_dict *tensors, const onxi_bound *bound,
                              const onx_node *node)
{
    enum { LARGEST = 1 << 30 };
    const int64_t columns = onxi_bind_int(bound, node, "N"), rows = onxi_bind_int(bound, node, "K"),
                  size = onxi_bind_int(bound, node, "block_size"), bits = onxi_bind_int(bound, node, "bits");
    if (columns < 1 || rows < 1 || size < 1 || rows > LARGEST || size > LARGEST || bits < 1 || bits > 8)
        return ONX_OK;
    const int64_t blocks = (rows + size - 1) / size;
    for (uint32_t i = 2; i < 4 && i < node->input_count; i++) {
        const onx_str name = onx_view(node->input[i]);
        const onxi_dict_entry *at = name.len ? onxi_dict_find(tensors, name) : NULL;
        const onxi_dict_entry *places = at ? onxi_dict_find(&u->names, name) : NULL;
        if (!places || places->value != 2)
            continue; /* something else than the tensor and this node */
        onx_tensor *t = u->graph->initializer[at->value];
        const bool packed = i == 3 && t->data_type == ONX_UINT8;
        ONX_TRY(unfold(u, t, columns, packed ? (blocks * bits + 7) / 8 : blocks));
    }
    return ONX_OK;
}

onx_status onxi_spread_unfold(onx_ctx *cx, onx_doc *doc, onx_arena *arena)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    unfolder u = { doc, g, onxi_dict_in_arena(arena) };
    onxi_dict tensors = onxi_dict_in_arena(arena);
    onxi_functions functions;
    onxi_binder binder = { .arena = arena, .functions = &functions };
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->node_count; i++)
        count += is_few_bits(g->node[i]);
    if (!count)
        return ONX_OK;
    ONX_TRY(onxi_graph_each_name(cx, g, count_name, &u));
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(&tensors, onx_view(g->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    ONX_TRY(onxi_functions_index(arena, NULL, 0, &functions));
    ONX_TRY(onxi_binder_open_model(&binder, onx_doc_model(doc)));
    for (uint32_t i = 0; i < g->node_count; i++) {
        if (!is_few_bits(g->node[i]))
            continue;
        const onxi_bound *bound = onxi_bind(&binder, g->node[i]);
        if (!bound)
            return ONX_E_MEMORY;
        if (bound->kind == ONXI_BOUND_OPERATOR && onxi_shard_is_few_bits(bound->op))
            ONX_TRY(unfold_node(&u, &tensors, bound, g->node[i]));
    }
    return ONX_OK;
}
