/* simplify_write.c - writes a simplified graph back into the document: nodes, names, initializers, and without
 * value_info of removed values. */
#include "simplify/simplify.h"

/* ---- constants per scope ---- */

static uint32_t scope_now(const onxi_simplify *s, uint32_t scope)
{
    while (scope != ONXI_S_NONE && s->scopes[scope].gone)
        scope = s->scopes[scope].parent;
    return scope;
}

/* Must a constant be a Constant node? An initializer is not possible in functions, for outputs, and in subgraphs before
 * IR version 4, where it would have to be an input. */
static bool is_node(const onxi_simplify *s, const onxi_svalue *v)
{
    const uint32_t scope = scope_now(s, v->scope);
    return s->nodes_only || v->is_output ||
           (s->model->ir_version < 4 && scope != ONXI_S_NONE && s->scopes[scope].holder != ONXI_S_NONE);
}

/* Values of Constant nodes become initializers. */
static void take_constants(onxi_simplify *s)
{
    for (uint32_t i = 0; i < s->op_count; i++) {
        onxi_sop *op = &s->ops[i];
        if (op->dead || op->opaque || op->bound->op != ONXI_ID_Constant || op->output_count != 1 ||
            op->outputs[0] == ONXI_S_NONE)
            continue;
        onxi_svalue *v = &s->values[op->outputs[0]];
        if (!v->tensor || v->made || v->pinned || is_node(s, v))
            continue;
        onxi_simplify_note(s, ONXI_SIMPLIFY_FOLD, "Constant", i, "becomes an initializer");
        v->made = true;
        v->maker = 0;
        op->dead = s->changed = true;
    }
}

/* ---- nodes ---- */

static onx_status write_names(onxi_simplify *s, onx_bytes **list, uint32_t *count, const uint32_t *values,
                              uint32_t value_count)
{
    bool same = *count == value_count;
    for (uint32_t i = 0; i < value_count && same; i++)
        same = onx_str_equal(onx_view((*list)[i]), values[i] == ONXI_S_NONE
                                                       ? (onx_str){ 0 }
                                                       : onx_view(s->values[onxi_simplify_value(s, values[i])].name));
    if (same)
        return ONX_OK;
    onx_bytes *names = onxi_arena_array(s->arena, (size_t)onxi_list_room(value_count), sizeof *names);
    if (!names)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < value_count; i++)
        if (values[i] != ONXI_S_NONE)
            names[i] = s->values[onxi_simplify_value(s, values[i])].name;
    *list = names;
    *count = value_count;
    return ONX_OK;
}

static onx_status write_node(onxi_simplify *s, onxi_sop *op)
{
    uint32_t outputs = op->output_count;
    while (outputs > 1 && outputs <= op->node->output_count && op->outputs[outputs - 1] == ONXI_S_NONE &&
           onx_view(op->node->output[outputs - 1]).len)
        outputs--; /* its value is a constant, so it is no longer an output of the node */
    const onx_node before = *op->node;
    ONX_TRY(write_names(s, &op->node->input, &op->node->input_count, op->inputs, op->input_count));
    ONX_TRY(write_names(s, &op->node->output, &op->node->output_count, op->outputs, outputs));
    return onxi_node_fit_devices(s->arena, op->node, &before);
}

static onx_status constant_node(onxi_simplify *s, const onxi_svalue *v, onx_node **out)
{
    onx_node *node = *out = onx_message_new(s->arena, ONX_KIND_NODE);
    onx_tensor *t = ONXI_NEW(s->arena, onx_tensor);
    if (!node || !t || onx_arena_keep(s->arena, onx_str_of("Constant"), &node->op_type) != ONX_OK)
        return ONX_E_MEMORY;
    node->has |= onx_node_has_op_type;
    *t = *v->tensor;
    t->name = (onx_bytes){ 0 };
    ONX_CLEAR(tensor, t, name);
    ONX_TRY(onx_list_add_text(s->arena, &node->output, &node->output_count, onx_view(v->name)));
    return onx_node_add_tensor(s->arena, node, "value", t) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status write_nodes(onxi_simplify *s, const uint32_t *made, uint32_t made_count, uint32_t scope)
{
    onxi_sscope *sc = &s->scopes[scope];
    uint32_t count = 0, n = 0;
    for (uint32_t op = sc->first; op != ONXI_S_NONE; op = s->ops[op].next)
        count += !s->ops[op].dead;
    for (uint32_t i = 0; i < made_count; i++)
        count += is_node(s, &s->values[made[i]]);
    onx_node **list = onxi_arena_array(s->arena, (size_t)onxi_list_room(count), sizeof *list);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < made_count; i++)
        if (is_node(s, &s->values[made[i]]))
            ONX_TRY(constant_node(s, &s->values[made[i]], &list[n++]));
    for (uint32_t op = sc->first; op != ONXI_S_NONE; op = s->ops[op].next) {
        if (s->ops[op].dead)
            continue;
        ONX_TRY(write_node(s, &s->ops[op]));
        list[n++] = s->ops[op].node;
    }
    if (sc->graph) {
        sc->graph->node = list;
        sc->graph->node_count = count;
    } else {
        sc->function->node = list;
        sc->function->node_count = count;
    }
    return ONX_OK;
}

/* ---- value_info and other lists ---- */

static onx_status names_of(onxi_simplify *s, uint32_t scope, onxi_dict *names)
{
    const onxi_sscope *sc = &s->scopes[scope];
    *names = onxi_dict_in_arena(s->scratch);
    for (uint32_t i = 0; i < sc->input_count; i++)
        if (sc->inputs[i] != ONXI_S_NONE && !onxi_dict_at(names, onx_view(s->values[sc->inputs[i]].name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t op = sc->first; op != ONXI_S_NONE; op = s->ops[op].next)
        for (uint32_t i = 0; i < s->ops[op].output_count && !s->ops[op].dead; i++)
            if (s->ops[op].outputs[i] != ONXI_S_NONE &&
                !onxi_dict_at(names, onx_view(s->values[s->ops[op].outputs[i]].name), 0, NULL))
                return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status filter_value_info(onxi_simplify *s, uint32_t scope, onx_value_info **list, uint32_t *count)
{
    onxi_dict names;
    uint32_t kept = 0;
    if (!*count)
        return ONX_OK;
    ONX_TRY(names_of(s, scope, &names));
    for (uint32_t i = 0; i < *count; i++)
        if (onxi_dict_find(&names, onx_view(list[i]->name)))
            list[kept++] = list[i];
    *count = kept;
    return ONX_OK;
}

static bool is_wanted(const onxi_simplify *s, const onxi_svalue *v, bool input)
{
    return input || v->pinned || v->uses || v->is_output || !onxi_simplify_wants(s, ONXI_SIMPLIFY_UNUSED);
}

static onx_status write_initializers(onxi_simplify *s, const uint32_t *made, uint32_t made_count, uint32_t scope)
{
    const onxi_sscope *sc = &s->scopes[scope];
    onx_graph *graph = sc->graph;
    onxi_dict old = onxi_dict_in_arena(s->scratch);
    for (uint32_t i = sc->first_value; i < sc->end_value; i++)
        if (s->values[i].initializer && s->values[i].scope == scope &&
            !onxi_dict_at(&old, onx_view(s->values[i].was), i, NULL))
            return ONX_E_MEMORY;
    onxi_dict inputs = onxi_dict_in_arena(s->scratch);
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!onxi_dict_at(&inputs, onx_view(graph->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        const onxi_dict_entry *entry = onxi_dict_find(&old, onx_view(graph->initializer[i]->name));
        const bool input = onxi_dict_find(&inputs, onx_view(graph->initializer[i]->name)) && s->model->ir_version >= 4;
        if (entry && !is_wanted(s, &s->values[entry->value], input))
            continue;
        if (entry)
            ONX_SET(tensor, graph->initializer[i], name, s->values[entry->value].name);
        graph->initializer[kept++] = graph->initializer[i];
    }
    graph->initializer_count = kept;
    for (uint32_t i = 0; i < made_count; i++) {
        const onxi_svalue *v = &s->values[made[i]];
        onx_tensor *t = is_node(s, v) ? NULL : ONXI_NEW(s->arena, onx_tensor);
        if (is_node(s, v))
            continue;
        if (!t)
            return ONX_E_MEMORY;
        *t = *v->tensor; /* the elements are shared */
        ONX_SET(tensor, t, name, v->name);
        if (!onx_graph_add_initializer(s->arena, graph, t))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Before IR version 4 a new initializer has to be an input, too, */
static onx_status add_inputs(onxi_simplify *s, const uint32_t *made, uint32_t made_count, uint32_t scope)
{
    onx_graph *graph = s->scopes[scope].graph;
    for (uint32_t i = 0; i < made_count && s->model->ir_version < 4; i++) {
        const onxi_svalue *v = &s->values[made[i]];
        if (is_node(s, v))
            continue;
        const onx_tensor *t = v->tensor;
        onx_value_info *info = onx_graph_add_input(
            s->arena, graph, "", onx_type_new_tensor(s->arena, (onx_dtype)t->data_type, t->dims, (int)t->dims_count));
        if (!info)
            return ONX_E_MEMORY;
        ONX_SET(value_info, info, name, v->name);
    }
    return ONX_OK;
}

/* and a removed one is removed from the inputs. */
static onx_status drop_inputs(onxi_simplify *s, uint32_t scope)
{
    onxi_sscope *sc = &s->scopes[scope];
    uint32_t kept = 0;
    if (s->model->ir_version >= 4 || sc->holder != ONXI_S_NONE || !onxi_simplify_wants(s, ONXI_SIMPLIFY_UNUSED))
        return ONX_OK;
    for (uint32_t i = 0; i < sc->input_count; i++) {
        const onxi_svalue *v = sc->inputs[i] == ONXI_S_NONE ? NULL : &s->values[sc->inputs[i]];
        if (!v || !v->initializer || is_wanted(s, v, false)) {
            sc->graph->input[kept] = sc->graph->input[i];
            sc->inputs[kept++] = sc->inputs[i];
        }
    }
    sc->graph->input_count = sc->input_count = kept;
    return ONX_OK;
}

/* Updates the names of inputs and outputs of subgraphs, which may have changed. */
static onx_status write_ports(onxi_simplify *s, uint32_t scope)
{
    const onxi_sscope *sc = &s->scopes[scope];
    for (uint32_t i = 0; i < sc->input_count; i++)
        if (sc->inputs[i] != ONXI_S_NONE)
            ONX_SET(value_info, sc->graph->input[i], name, s->values[sc->inputs[i]].name);
    for (uint32_t i = 0; i < sc->output_count; i++)
        if (sc->outputs[i] != ONXI_S_NONE)
            ONX_SET(value_info, sc->graph->output[i], name, s->values[onxi_simplify_value(s, sc->outputs[i])].name);
    return ONX_OK;
}

static onx_status write_scope(onxi_simplify *s, const uint32_t *made, uint32_t made_count, uint32_t scope)
{
    const onxi_sscope *sc = &s->scopes[scope];
    ONX_TRY(write_nodes(s, made, made_count, scope));
    if (!sc->graph)
        return filter_value_info(s, scope, sc->function->value_info, &sc->function->value_info_count);
    ONX_TRY(write_initializers(s, made, made_count, scope));
    ONX_TRY(drop_inputs(s, scope));
    ONX_TRY(write_ports(s, scope));
    ONX_TRY(add_inputs(s, made, made_count, scope));
    return filter_value_info(s, scope, sc->graph->value_info, &sc->graph->value_info_count);
}

onx_status onxi_simplify_write(onxi_simplify *s)
{
    if (onxi_simplify_wants(s, ONXI_SIMPLIFY_FOLD))
        take_constants(s);
    if (!s->changed)
        return ONX_OK;
    /* constants by scope: counting sort */
    uint32_t *from = ONXI_ARRAY(s->scratch, uint32_t, s->scope_count + 2u);
    uint32_t *made = ONXI_ARRAY(s->scratch, uint32_t, s->value_count + 1u);
    if (!from || !made)
        return ONX_E_MEMORY;
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < s->value_count; i++) {
            const onxi_svalue *v = &s->values[i];
            const uint32_t scope = scope_now(s, v->scope);
            if (!v->made || v->alias != ONXI_S_NONE || !v->uses || scope == ONXI_S_NONE)
                continue;
            if (turn)
                made[from[scope + 1]++] = i;
            else
                from[scope + 2]++;
        }
        for (uint32_t i = 1; !turn && i < s->scope_count + 2; i++)
            from[i] += from[i - 1];
    }
    for (uint32_t i = 0; i < s->scope_count; i++)
        if (!s->scopes[i].gone && (s->scopes[i].graph || s->scopes[i].function))
            ONX_TRY(write_scope(s, made + from[i], from[i + 1] - from[i], i));
    return ONX_OK;
}
