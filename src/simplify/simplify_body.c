/* simplify_body.c - reads a graph with its subgraphs, or the body of a function, into values and ops. */
#include "simplify/simplify.h"

static onx_status read_nodes(onxi_simplify *s, uint32_t scope, onx_node *const *nodes, uint32_t count);

static void give_up(onxi_simplify *s, const char *why, onx_str name)
{
    if (!s->broken) {
        s->broken = why;
        s->broken_name = name;
    }
}

/* ---- values ---- */

static uint32_t new_value(onxi_simplify *s, uint32_t scope, onx_bytes name)
{
    if (!ONXI_GROW_IN(s->scratch, s->values, s->value_room, (uint64_t)s->value_count + 1))
        return ONXI_S_NONE;
    s->values[s->value_count] =
        (onxi_svalue){ .name = name, .was = name, .scope = scope, .alias = ONXI_S_NONE, .defined = true };
    onxi_dict_entry *kept = s->keep->count ? onxi_dict_find(s->keep, onx_view(name)) : NULL;
    if (kept) {
        kept->value = 1;
        s->values[s->value_count].pinned = true;
    }
    return s->value_count++;
}

/* Defines a name in the scope. If an enclosing graph has the same name, the value gets a new one, so that the two are
 * not confused when nodes move. */
static onx_status declare(onxi_simplify *s, uint32_t scope, onx_bytes name, uint32_t *out)
{
    const onx_str text = onx_view(name);
    *out = ONXI_S_NONE;
    if (!text.len)
        return ONX_OK;
    bool made;
    onxi_dict_entry *entry = onxi_dict_at(&s->bound, text, ONXI_S_NONE, &made);
    const uint32_t value = entry ? new_value(s, scope, name) : ONXI_S_NONE;
    if (value == ONXI_S_NONE || !ONXI_GROW_IN(s->scratch, s->undo, s->undo_room, (uint64_t)s->undo_count + 1))
        return ONX_E_MEMORY;
    const uint32_t before = entry->value;
    s->values[value].shares_name = !made;
    if (before != ONXI_S_NONE && !s->values[before].defined)
        give_up(s, "is used before it is defined (onx convert --sort sorts the nodes)", text);
    else if (before != ONXI_S_NONE && s->values[before].scope == scope)
        give_up(s, "is defined more than once", text);
    else if (before != ONXI_S_NONE)
        ONX_TRY(onxi_names_make(s->names, text, (onx_str){ 0 }, &s->values[value].name));
    s->undo[s->undo_count].entry = (uint32_t)(entry - s->bound.entries);
    s->undo[s->undo_count++].value = before;
    entry->value = value;
    *out = value;
    return ONX_OK;
}

static onx_status use(onxi_simplify *s, onx_bytes name, uint32_t *out)
{
    const onx_str text = onx_view(name);
    *out = ONXI_S_NONE;
    if (!text.len)
        return ONX_OK;
    onxi_dict_entry *entry = onxi_dict_at(&s->bound, text, ONXI_S_NONE, NULL);
    if (!entry)
        return ONX_E_MEMORY;
    if (entry->value == ONXI_S_NONE) { /* not defined here: outside of a training graph, or an error of the model */
        const uint32_t value = new_value(s, 0, name);
        if (value == ONXI_S_NONE)
            return ONX_E_MEMORY;
        s->values[value].defined = false;
        s->values[value].pinned = true;
        entry->value = value;
    }
    s->values[entry->value].uses++;
    *out = entry->value;
    return ONX_OK;
}

static onx_status leave(onxi_simplify *s, uint32_t mark)
{
    while (s->undo_count > mark) {
        s->undo_count--;
        s->bound.entries[s->undo[s->undo_count].entry].value = s->undo[s->undo_count].value;
    }
    return ONX_OK;
}

/* ---- graphs ---- */

static onx_status new_scope(onxi_simplify *s, uint32_t parent, uint32_t holder, onx_str prefix, uint32_t *out)
{
    if (!ONXI_GROW_IN(s->scratch, s->scopes, s->scope_room, (uint64_t)s->scope_count + 1))
        return ONX_E_MEMORY;
    *out = s->scope_count++;
    s->scopes[*out] = (onxi_sscope){ .parent = parent,
                                     .holder = holder,
                                     .sibling = ONXI_S_NONE,
                                     .first = ONXI_S_NONE,
                                     .last = ONXI_S_NONE,
                                     .prefix = prefix };
    return ONX_OK;
}

static onx_status read_initializers(onxi_simplify *s, uint32_t scope, const onx_graph *graph)
{
    const bool given = onxi_facts_has_defaults(s->model);
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        const onx_tensor *tensor = graph->initializer[i];
        const onxi_dict_entry *entry = onxi_dict_find(&s->bound, onx_view(tensor->name));
        uint32_t value;
        const bool input = entry && entry->value != ONXI_S_NONE && s->values[entry->value].scope == scope;
        if (input)
            value = entry->value;
        else
            ONX_TRY(declare(s, scope, tensor->name, &value));
        if (value == ONXI_S_NONE)
            continue;
        if (s->values[value].initializer)
            give_up(s, "is defined more than once", onx_view(tensor->name));
        s->values[value].initializer = true;
        if (!s->values[value].pinned && (!input || !given))
            s->values[value].tensor = tensor;
    }
    for (uint32_t i = 0; i < graph->sparse_initializer_count; i++) {
        uint32_t value;
        if (graph->sparse_initializer[i]->values)
            ONX_TRY(declare(s, scope, graph->sparse_initializer[i]->values->name, &value));
    }
    return ONX_OK;
}

/* Names of quantization parameters stay, and so do the names of the values that they describe. */
static onx_status pin_annotations(onxi_simplify *s, const onx_graph *graph)
{
    for (uint32_t i = 0; i < graph->quantization_annotation_count; i++) {
        const onx_tensor_annotation *a = graph->quantization_annotation[i];
        for (uint32_t k = 0; k <= a->quant_parameter_tensor_names_count; k++) {
            const onx_bytes name = k ? a->quant_parameter_tensor_names[k - 1]->value : a->tensor_name;
            const onxi_dict_entry *entry = onxi_dict_find(&s->bound, onx_view(name));
            if (entry && entry->value != ONXI_S_NONE)
                s->values[entry->value].pinned = true;
        }
    }
    return ONX_OK;
}

static onx_status read_graph(onxi_simplify *s, uint32_t scope, onx_graph *graph)
{
    const uint32_t mark = s->undo_count;
    if (++s->depth > onx_ctx_limits(s->cx).depth)
        return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_NOWHERE, "subgraphs are nested more than %u deep (limit depth)",
                         onx_ctx_limits(s->cx).depth);
    uint32_t *inputs = ONXI_ARRAY(s->scratch, uint32_t, graph->input_count + 1u);
    uint32_t *outputs = ONXI_ARRAY(s->scratch, uint32_t, graph->output_count + 1u);
    if (!inputs || !outputs)
        return ONX_E_MEMORY;
    s->scopes[scope].graph = graph;
    s->scopes[scope].first_value = s->value_count;
    s->scopes[scope].inputs = inputs;
    s->scopes[scope].outputs = outputs;
    s->scopes[scope].input_count = graph->input_count;
    s->scopes[scope].output_count = graph->output_count;
    s->scopes[scope].types = s->infer ? onxi_infer_result_of(s->infer, graph, false) : NULL;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ONX_TRY(declare(s, scope, graph->input[i]->name, &inputs[i]));
        if (inputs[i] != ONXI_S_NONE && s->scopes[scope].types)
            s->values[inputs[i]].fact =
                onxi_infer_result_find(s->infer, s->scopes[scope].types, onx_view(graph->input[i]->name));
    }
    ONX_TRY(read_initializers(s, scope, graph));
    ONX_TRY(read_nodes(s, scope, graph->node, graph->node_count));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ONX_TRY(use(s, graph->output[i]->name, &outputs[i]));
        if (outputs[i] != ONXI_S_NONE)
            s->values[outputs[i]].is_output++;
    }
    ONX_TRY(pin_annotations(s, graph));
    s->scopes[scope].end_value = s->value_count;
    s->depth--;
    return leave(s, mark);
}

/* ---- nodes ---- */

static onx_status read_subgraph(onxi_simplify *s, uint32_t op, const onx_attribute *a, onx_graph *graph, onx_str path)
{
    uint32_t scope;
    const onx_str prefix = s->options->changed ? onxi_path_subgraph(s->scratch, path, s->ops[op].node, a) : path;
    ONX_TRY(new_scope(s, s->ops[op].scope, op, prefix, &scope));
    s->scopes[scope].sibling = s->ops[op].first_scope;
    s->ops[op].first_scope = scope;
    return graph ? read_graph(s, scope, graph) : ONX_OK;
}

static onx_status read_subgraphs(onxi_simplify *s, uint32_t op)
{
    const onx_node *node = s->ops[op].node;
    onx_str path = { 0 };
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->extra && onx_view(onx_attribute_more(a)->ref_attr_name).len)
            s->ops[op].opaque = true;
        if (a->slot != ONX_SLOT_G && a->slot != ONX_SLOT_GRAPHS)
            continue;
        if (!path.len && s->options->changed)
            path = onxi_path_node(s->scratch, s->scopes[s->ops[op].scope].prefix, s->ops[op].index, node);
        if (a->slot == ONX_SLOT_G)
            ONX_TRY(read_subgraph(s, op, a, a->g, path));
        for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
            ONX_TRY(read_subgraph(s, op, a, a->graphs[k], path));
    }
    return ONX_OK;
}

/* The value of a Constant node, as a tensor. */
static onx_status constant_of(onxi_simplify *s, const onx_node *node, const onx_tensor **out)
{
    const onx_attribute *a = node->attribute_count == 1 ? node->attribute[0] : NULL;
    const onx_attribute_type type = a ? onx_attribute_type_of(a) : ONX_ATTR_UNDEFINED;
    const int64_t count = a && a->count <= INT32_MAX ? (int64_t)a->count : -1;
    *out = NULL;
    if (!a || count < 0 || (a->extra && onx_view(onx_attribute_more(a)->ref_attr_name).len))
        return ONX_OK;
    if (type == ONX_ATTR_TENSOR && a->slot == ONX_SLOT_T)
        *out = a->t;
    else if (type == ONX_ATTR_INT)
        *out = onx_tensor_new(s->arena, ONX_INT64, NULL, 0, &(int64_t){ onxi_attribute_int(a) }, NULL);
    else if (type == ONX_ATTR_FLOAT)
        *out = onx_tensor_new(s->arena, ONX_FLOAT, NULL, 0, &(float){ onxi_attribute_float(a) }, NULL);
    else if (type == ONX_ATTR_INTS && a->slot == ONX_SLOT_INTS)
        *out = onx_tensor_new(s->arena, ONX_INT64, &count, 1, a->ints, NULL);
    else if (type == ONX_ATTR_FLOATS && a->slot == ONX_SLOT_FLOATS)
        *out = onx_tensor_new(s->arena, ONX_FLOAT, &count, 1, a->floats, NULL);
    else
        return ONX_OK;
    return *out || type == ONX_ATTR_TENSOR ? ONX_OK : ONX_E_MEMORY;
}

static onx_status read_outputs(onxi_simplify *s, uint32_t op, const onx_node *node)
{
    uint32_t *outputs = s->ops[op].outputs;
    const onxi_sscope *scope = &s->scopes[s->ops[op].scope];
    for (uint32_t i = 0; i < node->output_count; i++) {
        ONX_TRY(declare(s, s->ops[op].scope, node->output[i], &outputs[i]));
        if (outputs[i] == ONXI_S_NONE)
            continue;
        s->values[outputs[i]].maker = op + 1;
        if (scope->types)
            s->values[outputs[i]].fact = onxi_infer_result_find(s->infer, scope->types, onx_view(node->output[i]));
        if (onx_node_more(node)->device_configurations_count)
            s->values[outputs[i]].pinned = true;
    }
    return ONX_OK;
}

static onx_status read_node(onxi_simplify *s, uint32_t scope, onx_node *node, uint32_t index)
{
    if (!ONXI_GROW_IN(s->scratch, s->ops, s->op_room, (uint64_t)s->op_count + 1))
        return ONX_E_MEMORY;
    const uint32_t op = s->op_count++;
    s->ops[op] = (onxi_sop){ .node = node, .bound = onxi_bind(&s->binder, node), .scope = scope, .next = ONXI_S_NONE };
    uint32_t *inputs = ONXI_ARRAY(s->scratch, uint32_t, node->input_count + 1u);
    uint32_t *outputs = ONXI_ARRAY(s->scratch, uint32_t, node->output_count + 1u);
    if (!s->ops[op].bound || !inputs || !outputs)
        return ONX_E_MEMORY;
    s->ops[op].first_scope = ONXI_S_NONE;
    s->ops[op].index = index;
    s->ops[op].inputs = inputs;
    s->ops[op].outputs = outputs;
    s->ops[op].input_count = node->input_count;
    s->ops[op].output_count = node->output_count;
    s->ops[op].opaque = s->ops[op].bound->kind != ONXI_BOUND_OPERATOR || !s->ops[op].bound->schema ||
                        onx_node_more(node)->device_configurations_count;
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(use(s, node->input[i], &inputs[i]));
    ONX_TRY(read_subgraphs(s, op));
    ONX_TRY(read_outputs(s, op, node));
    if (s->ops[op].bound->op == ONXI_ID_Constant && !s->ops[op].opaque && node->output_count == 1 &&
        outputs[0] != ONXI_S_NONE && !s->values[outputs[0]].pinned)
        ONX_TRY(constant_of(s, node, &s->values[outputs[0]].tensor));
    if (s->scopes[scope].last == ONXI_S_NONE)
        s->scopes[scope].first = op;
    else
        s->ops[s->scopes[scope].last].next = op;
    s->scopes[scope].last = op;
    return ONX_OK;
}

static onx_status read_nodes(onxi_simplify *s, uint32_t scope, onx_node *const *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count && !s->broken; i++)
        ONX_TRY(read_node(s, scope, nodes[i], i));
    return ONX_OK;
}

/* ---- the whole body ---- */

onx_status onxi_simplify_read_graph(onxi_simplify *s, onx_graph *graph, onx_str prefix)
{
    uint32_t scope;
    s->bound = onxi_dict_in_arena(s->scratch);
    s->binder.arena = s->scratch;
    ONX_TRY(onxi_binder_open_model(&s->binder, s->model));
    s->opset = onxi_imports_version(&s->binder.imports, (onx_str){ 0 });
    ONX_TRY(new_scope(s, ONXI_S_NONE, ONXI_S_NONE, prefix, &scope));
    return read_graph(s, scope, graph);
}

onx_status onxi_simplify_read_function(onxi_simplify *s, onx_function *f, onx_str prefix)
{
    uint32_t scope;
    s->bound = onxi_dict_in_arena(s->scratch);
    s->binder.arena = s->scratch;
    ONX_TRY(onxi_binder_open_body(&s->binder, f));
    s->opset = onxi_imports_version(&s->binder.imports, (onx_str){ 0 });
    s->nodes_only = true;
    ONX_TRY(new_scope(s, ONXI_S_NONE, ONXI_S_NONE, prefix, &scope));
    uint32_t *inputs = ONXI_ARRAY(s->scratch, uint32_t, f->input_count + 1u);
    uint32_t *outputs = ONXI_ARRAY(s->scratch, uint32_t, f->output_count + 1u);
    if (!inputs || !outputs)
        return ONX_E_MEMORY;
    s->scopes[scope].function = f;
    s->scopes[scope].inputs = inputs;
    s->scopes[scope].outputs = outputs;
    s->scopes[scope].input_count = f->input_count;
    s->scopes[scope].output_count = f->output_count;
    for (uint32_t i = 0; i < f->input_count; i++)
        ONX_TRY(declare(s, scope, f->input[i], &inputs[i]));
    ONX_TRY(read_nodes(s, scope, f->node, f->node_count));
    for (uint32_t i = 0; i < f->output_count; i++) {
        ONX_TRY(use(s, f->output[i], &outputs[i]));
        if (outputs[i] != ONXI_S_NONE)
            s->values[outputs[i]].is_output++;
    }
    return ONX_OK;
}
