/* transform_expand.c - replaces a call by the body of the function: inputs and outputs become values of the caller,
 * inner values get new names, and references to parameters are replaced by their values. */
#include "transform/transform.h"

typedef struct expander {
    onxi_expansion *x;
    onxi_dict names; /* of the body: indexes of `to` */
    onx_bytes *to;   /* their new names; empty: omitted */
    uint32_t to_room;
    uint32_t depth, limit;
} expander;

/* Functions that call each other twice would create exponentially many nodes. Operands count as well; otherwise a body
 * with many operands that is called often would cost the product of both. Most nodes count as one. */
static onx_status count_node(expander *e, uint64_t operands)
{
    enum { SHARE = 16 };
    const uint64_t cost = 1 + operands / SHARE;
    if (!e->x->left)
        return ONX_OK;
    if (cost > *e->x->left)
        return onxi_fail(e->x->arena->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "the model has more than %u nodes, and %u for each that it had, after inlining; "
                         "function %.*s exceeds the limit",
                         (unsigned)ONXI_CALLS_MAX, (unsigned)ONXI_CALLS_PER_NODE,
                         ONX_ARG(onx_view(e->x->function->name)));
    *e->x->left -= cost;
    return ONX_OK;
}

static onx_status map_name(expander *e, onx_str name, onx_bytes to)
{
    bool made;
    onxi_dict_entry *entry = onxi_dict_at(&e->names, name, e->names.count, &made);
    if (!entry || !ONXI_GROW_IN(e->x->scratch, e->to, e->to_room, e->names.count))
        return ONX_E_MEMORY;
    e->to[entry->value] = to;
    return ONX_OK;
}

/* A name that the body defines. */
static onx_status make_name(expander *e, onx_bytes *name)
{
    const onx_str old = onx_view(*name);
    if (!old.len)
        return ONX_OK;
    onxi_dict_entry *known = onxi_dict_find(&e->names, old);
    if (known) {
        *name = e->to[known->value];
        return ONX_OK;
    }
    ONX_TRY(onxi_names_make(e->x->names, e->x->base, old, name));
    return map_name(e, old, *name);
}

static onx_status use_name(expander *e, onx_bytes *name)
{
    const onx_str old = onx_view(*name);
    if (!old.len)
        return ONX_OK;
    const onxi_dict_entry *known = onxi_dict_find(&e->names, old);
    if (!known)
        return onxi_fail(e->x->arena->cx, ONX_E_INVALID, ONXI_NOWHERE,
                         "function %.*s uses %.*s, which is not defined before",
                         ONX_ARG(onx_view(e->x->function->name)), ONX_ARG(old));
    *name = e->to[known->value];
    return ONX_OK;
}

static onx_bytes *copy_list(onx_arena *arena, const onx_bytes *from, uint32_t count)
{
    onx_bytes *to = onxi_arena_array(arena, (size_t)onxi_list_room(count), sizeof *to);
    if (to && count)
        memcpy(to, from, count * sizeof *to);
    return to;
}

static onx_status expand_node(expander *e, const onx_node *from, onx_node **out);

/* ---- subgraphs ---- */

static onx_status own_value(expander *e, onx_value_info **place)
{
    onx_value_info *copy = ONXI_NEW(e->x->arena, onx_value_info);
    if (!copy)
        return ONX_E_MEMORY;
    *copy = **place;
    *place = copy;
    return make_name(e, &copy->name);
}

static onx_status own_values(expander *e, onx_value_info ***list, uint32_t count)
{
    onx_value_info **copy = onxi_arena_array(e->x->arena, (size_t)onxi_list_room(count), sizeof *copy);
    if (!copy)
        return ONX_E_MEMORY;
    if (count)
        memcpy(copy, *list, count * sizeof *copy);
    *list = copy;
    for (uint32_t i = 0; i < count; i++)
        ONX_TRY(own_value(e, &copy[i]));
    return ONX_OK;
}

static onx_status own_initializers(expander *e, onx_graph *graph)
{
    onx_arena *arena = e->x->arena;
    onx_tensor **list = onxi_arena_array(arena, (size_t)onxi_list_room(graph->initializer_count), sizeof *list);
    onx_sparse_tensor **sparse =
        onxi_arena_array(arena, (size_t)onxi_list_room(graph->sparse_initializer_count), sizeof *sparse);
    if (!list || !sparse)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        if (!(list[i] = ONXI_NEW(arena, onx_tensor)))
            return ONX_E_MEMORY;
        *list[i] = *graph->initializer[i];
        ONX_TRY(make_name(e, &list[i]->name));
    }
    for (uint32_t i = 0; i < graph->sparse_initializer_count; i++) {
        onx_tensor *values = ONXI_NEW(arena, onx_tensor);
        if (!values || !(sparse[i] = ONXI_NEW(arena, onx_sparse_tensor)))
            return ONX_E_MEMORY;
        *sparse[i] = *graph->sparse_initializer[i];
        if (!sparse[i]->values)
            continue;
        *values = *sparse[i]->values;
        sparse[i]->values = values;
        ONX_TRY(make_name(e, &values->name));
    }
    graph->initializer = list;
    graph->sparse_initializer = sparse;
    return ONX_OK;
}

static onx_status expand_graph(expander *e, const onx_graph *from, onx_graph **out)
{
    if (++e->depth > e->limit)
        return onxi_fail(e->x->arena->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "subgraphs are nested more than %u deep (limit depth)", e->limit);
    ONX_TRY(count_node(e, (uint64_t)from->input_count + from->output_count + from->initializer_count +
                              from->sparse_initializer_count + from->value_info_count));
    onx_graph *graph = ONXI_NEW(e->x->arena, onx_graph);
    onx_node **nodes = onxi_arena_array(e->x->arena, (size_t)onxi_list_room(from->node_count), sizeof *nodes);
    if (!graph || !nodes)
        return ONX_E_MEMORY;
    *graph = *from;
    ONX_TRY(own_values(e, &graph->input, graph->input_count));
    ONX_TRY(own_initializers(e, graph));
    for (uint32_t i = 0; i < from->node_count; i++)
        ONX_TRY(expand_node(e, from->node[i], &nodes[i]));
    graph->node = nodes;
    ONX_TRY(own_values(e, &graph->value_info, graph->value_info_count));
    ONX_TRY(own_values(e, &graph->output, graph->output_count));
    graph->quantization_annotation = NULL; /* its names refer to values of the function, whose names are new */
    graph->quantization_annotation_count = 0;
    e->depth--;
    *out = graph;
    return ONX_OK;
}

/* ---- attributes ---- */

static onx_status expand_graphs(expander *e, onx_attribute *a)
{
    if (a->slot == ONX_SLOT_G && a->g)
        return expand_graph(e, a->g, &a->g);
    if (a->slot != ONX_SLOT_GRAPHS)
        return ONX_OK;
    onx_graph **list = onxi_arena_array(e->x->arena, (size_t)onxi_list_room(a->count), sizeof *list);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < a->count; i++)
        ONX_TRY(expand_graph(e, a->graphs[i], &list[i]));
    a->graphs = list;
    return ONX_OK;
}

static onx_status expand_attribute(expander *e, const onx_attribute *from, onx_attribute **out)
{
    const onx_str refers = onx_view(onx_attribute_more(from)->ref_attr_name);
    *out = NULL;
    if (refers.len) {
        const onx_attribute *value = e->x->argument(e->x->user, refers, (int32_t)onx_attribute_type_of(from));
        if (value && !(*out = onxi_attribute_named(e->x->arena, value, from->name)))
            return ONX_E_MEMORY;
        return ONX_OK;
    }
    if (!(*out = ONXI_NEW(e->x->arena, onx_attribute)))
        return ONX_E_MEMORY;
    **out = *from;
    return expand_graphs(e, *out);
}

static onx_status expand_attributes(expander *e, onx_node *node)
{
    onx_attribute **list = onxi_arena_array(e->x->arena, (size_t)onxi_list_room(node->attribute_count), sizeof *list);
    uint32_t count = 0;
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        ONX_TRY(expand_attribute(e, node->attribute[i], &list[count]));
        count += list[count] != NULL;
    }
    node->attribute = list;
    node->attribute_count = count;
    return ONX_OK;
}

/* ---- nodes ---- */

static onx_status use_named(void *user, onx_bytes *name)
{
    return use_name(user, name);
}

/* Names in attributes are renamed, too. Their strings are shared with the function, so they are copied first. */
static onx_status expand_named(expander *e, const onx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count && onxi_node_names_values(node); i++) {
        onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_STRINGS && !(a->strings = copy_list(e->x->arena, a->strings, a->count)))
            return ONX_E_MEMORY;
    }
    return onxi_node_each_named(node, use_named, e);
}

static onx_status omit_outputs(expander *e, const onx_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        ONX_TRY(map_name(e, onx_view(node->output[i]), (onx_bytes){ 0 }));
    return ONX_OK;
}

static void trim(const onx_bytes *list, uint32_t *count)
{
    while (*count && !onx_view(list[*count - 1]).len)
        --*count;
}

static onx_status expand_node(expander *e, const onx_node *from, onx_node **out)
{
    onx_arena *arena = e->x->arena;
    *out = NULL;
    ONX_TRY(count_node(e, (uint64_t)from->input_count + from->output_count + from->attribute_count));
    onx_node *node = ONXI_NEW(arena, onx_node);
    if (!node)
        return ONX_E_MEMORY;
    *node = *from;
    if (!(node->input = copy_list(arena, from->input, from->input_count)) ||
        !(node->output = copy_list(arena, from->output, from->output_count)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(use_name(e, &node->input[i]));
    if (e->x->omit && from->input_count && onx_view(from->input[0]).len && !onx_view(node->input[0]).len)
        return omit_outputs(e, from);
    trim(node->input, &node->input_count);
    ONX_TRY(expand_attributes(e, node));
    ONX_TRY(expand_named(e, node));
    for (uint32_t i = 0; i < node->output_count; i++)
        ONX_TRY(make_name(e, &node->output[i]));
    trim(node->output, &node->output_count);
    if (onx_view(node->name).len)
        ONX_TRY(onxi_names_make(e->x->names, e->x->base, onx_view(node->name), &node->name));
    *out = node;
    return ONX_OK;
}

/* ---- the part of the body that the call needs ---- */

static onx_status need_name(void *user, onx_bytes *name)
{
    return onxi_dict_at(user, onx_view(*name), 1, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status need_node(expander *e, onxi_dict *needed, const onx_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(need_name(needed, &node->input[i]));
    ONX_TRY(onxi_node_each_named(node, need_name, needed));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(onxi_graph_each_name(e->x->arena->cx, a->g, need_name, needed));
        for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
            ONX_TRY(onxi_graph_each_name(e->x->arena->cx, a->graphs[k], need_name, needed));
    }
    return ONX_OK;
}

/* Marks the nodes that no output of the call needs. An unused output of the function is omitted. */
static onx_status find_needed(expander *e, bool *skip)
{
    const onx_function *f = e->x->function;
    onxi_dict needed = onxi_dict_in_arena(e->x->scratch);
    for (uint32_t i = 0; i < f->output_count && i < e->x->output_count; i++)
        if (onx_view(e->x->outputs[i]).len)
            ONX_TRY(need_name(&needed, &f->output[i]));
    for (uint32_t i = f->node_count; i-- > 0;) {
        const onx_node *node = f->node[i];
        skip[i] = node->output_count != 0;
        for (uint32_t k = 0; k < node->output_count && skip[i]; k++)
            skip[i] = !onxi_dict_find(&needed, onx_view(node->output[k]));
        if (!skip[i])
            ONX_TRY(need_node(e, &needed, node));
    }
    for (uint32_t i = 0; i < f->output_count; i++)
        if (!onxi_dict_find(&needed, onx_view(f->output[i])) && !onxi_dict_find(&e->names, onx_view(f->output[i])))
            ONX_TRY(map_name(e, onx_view(f->output[i]), (onx_bytes){ 0 }));
    return ONX_OK;
}

onxi_expansion onxi_expansion_of(onxi_names *names, const onx_function *function, const onx_node *call, onx_str base)
{
    return (onxi_expansion){ .arena = names->arena,
                             .scratch = names->scratch,
                             .names = names,
                             .function = function,
                             .inputs = call->input,
                             .input_count = call->input_count,
                             .outputs = call->output,
                             .output_count = call->output_count,
                             .base = base };
}

onx_status onxi_expand(onxi_expansion *x)
{
    const onx_function *f = x->function;
    expander e = { .x = x, .names = onxi_dict_in_arena(x->scratch), .limit = onx_ctx_limits(x->arena->cx).depth };
    ONX_TRY(count_node(&e, (uint64_t)f->input_count + f->output_count + f->attribute_proto_count));
    for (uint32_t i = 0; i < f->input_count; i++)
        ONX_TRY(map_name(&e, onx_view(f->input[i]), i < x->input_count ? x->inputs[i] : (onx_bytes){ 0 }));
    for (uint32_t i = 0; i < f->output_count; i++) {
        const onx_bytes to = i < x->output_count ? x->outputs[i] : (onx_bytes){ 0 };
        if (onx_view(to).len && !onxi_dict_find(&e.names, onx_view(f->output[i])))
            ONX_TRY(map_name(&e, onx_view(f->output[i]), to));
    }
    bool *skip = ONXI_ARRAY(x->scratch, bool, (size_t)f->node_count + 1);
    if (!skip || !(x->nodes = ONXI_ARRAY(x->scratch, onx_node *, (size_t)f->node_count + 1)))
        return ONX_E_MEMORY;
    if (x->omit)
        ONX_TRY(find_needed(&e, skip));
    for (uint32_t i = 0; i < f->node_count; i++)
        if (!skip[i])
            ONX_TRY(expand_node(&e, f->node[i], &x->nodes[i]));
    return ONX_OK;
}
