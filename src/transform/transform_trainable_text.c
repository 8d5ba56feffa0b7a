/* transform_trainable_text.c - converts texts of rows to nodes of training graphs, with numbers, outputs and
 * bindings. */
#include "transform/transform_trainable.h"

/* ---- numbers ---- */

static onx_status set_number(onxi_trainable *t, const onx_attribute *a)
{
    if (!a)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < t->number_count; i++)
        if (onx_str_equal(onx_view(t->numbers[i]->name), onx_view(a->name))) {
            t->numbers[i] = a;
            return ONX_OK;
        }
    if (!ONXI_GROW_IN(t->scratch, t->numbers, t->number_room, (uint64_t)t->number_count + 1))
        return ONX_E_MEMORY;
    t->numbers[t->number_count++] = a;
    return ONX_OK;
}

onx_status onxi_trainable_float(onxi_trainable *t, onx_str name, double value)
{
    const onx_str ended = onxi_arena_printf(t->scratch, "%.*s", ONX_ARG(name));
    onx_attribute *a = ended.len ? onxi_attribute_new(t->arena, ended.ptr, ONX_ATTR_FLOAT) : NULL;
    if (a)
        ONX_SET(attribute, a, f, (float)value);
    return set_number(t, a);
}

onx_status onxi_trainable_int(onxi_trainable *t, const char *name, int64_t value)
{
    onx_attribute *a = onxi_attribute_new(t->arena, name, ONX_ATTR_INT);
    if (a)
        ONX_SET(attribute, a, i, value);
    return set_number(t, a);
}

onx_status onxi_trainable_ints(onxi_trainable *t, const char *name, const int64_t *values, uint32_t count)
{
    onx_attribute *a = onxi_attribute_new(t->arena, name, ONX_ATTR_INTS);
    if (!a || !(a->ints = onxi_arena_array(t->arena, (size_t)onxi_list_room(count) + 1, sizeof *a->ints)))
        return ONX_E_MEMORY;
    if (count)
        memcpy(a->ints, values, count * sizeof *values);
    a->count = count;
    return set_number(t, a);
}

onx_status onxi_trainable_tensor(onxi_trainable *t, const char *name, onx_tensor *tensor)
{
    onx_attribute *a = tensor ? onxi_attribute_new(t->arena, name, ONX_ATTR_TENSOR) : NULL;
    if (a)
        ONX_SET(attribute, a, t, tensor);
    return set_number(t, a);
}

static const onx_attribute *argument(void *user, onx_str name, int32_t type)
{
    const onxi_trainable *t = user;
    (void)type;
    for (uint32_t i = 0; i < t->number_count; i++)
        if (onx_str_equal(onx_view(t->numbers[i]->name), name))
            return t->numbers[i];
    return NULL;
}

/* ---- nodes ---- */

static onx_status function_of(onxi_trainable *t, const onxi_text_nodes *nodes, const onx_function **out)
{
    const onx_str text = onxi_arena_printf(
        t->scratch, "<domain: \"train\", opset_import: [\"\": %d, \"" ONXI_TRAINING_DOMAIN "\": 1]> T %s {\n%s\n}",
        ONXI_GRAD_OPSET, nodes->head, nodes->text);
    bool made;
    onxi_dict_entry *entry = text.len ? onxi_dict_at(&t->texts, text, t->texts.count, &made) : NULL;
    if (!entry || !ONXI_GROW_IN(t->scratch, t->functions, t->function_room, t->texts.count))
        return ONX_E_MEMORY;
    const uint32_t at = entry->value;
    if (made) {
        onx_doc *doc;
        t->functions[at] = NULL;
        ONX_TRY(onxi_function_of_text(t->cx, text, &doc));
        t->functions[at] = onx_doc_root(doc, ONX_KIND_FUNCTION);
        onx_arena_adopt(t->arena, doc->arena);
    }
    *out = t->functions[at];
    return *out ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_trainable_add_node(onxi_trainable *t, onx_graph *graph, onx_node *node)
{
    void *list = graph->node;
    onx_node **place =
        node ? onx_list_insert(t->arena, &list, &graph->node_count, graph->node_count, sizeof *place) : NULL;
    if (!place)
        return ONX_E_MEMORY;
    graph->node = list;
    *place = node;
    return ONX_OK;
}

onx_status onxi_trainable_put(onxi_trainable *t, onx_graph *graph, const onxi_text_nodes *nodes)
{
    const onx_function *f;
    ONX_TRY(function_of(t, nodes, &f));
    onxi_expansion x = { .arena = t->arena,
                         .scratch = t->scratch,
                         .names = &t->names,
                         .function = f,
                         .inputs = nodes->in,
                         .outputs = nodes->out,
                         .input_count = nodes->in_count,
                         .output_count = nodes->out_count,
                         .base = nodes->base,
                         .argument = argument,
                         .user = t };
    ONX_TRY(onxi_expand(&x));
    for (uint32_t i = 0; i < f->node_count; i++)
        if (x.nodes[i])
            ONX_TRY(onxi_trainable_add_node(t, graph, x.nodes[i]));
    return ONX_OK;
}

/* ---- graphs ---- */

onx_type *onxi_trainable_type_of(onxi_trainable *t, const onx_tensor *tensor)
{
    return onx_type_new_tensor(t->arena, (onx_dtype)tensor->data_type, tensor->dims, (int)tensor->dims_count);
}

onx_status onxi_trainable_output(onxi_trainable *t, onx_graph *graph, onx_bytes name, const onx_type *type)
{
    onx_value_info *info = ONX_ADD(t->arena, graph, output, VALUE_INFO);
    if (!info || !type)
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, name, name);
    ONX_SET(value_info, info, type, (onx_type *)(uintptr_t)type);
    return ONX_OK;
}

onx_status onxi_trainable_scalar(onxi_trainable *t, onx_graph *graph, onx_bytes name, onx_dtype dtype, double value)
{
    int64_t bits[1] = { 0 };
    ONX_TRY(onx_convert(dtype, bits, ONX_DOUBLE, &value, 1, true));
    onx_tensor *tensor = onx_tensor_new(t->arena, dtype, NULL, 0, bits, "");
    if (!tensor)
        return ONX_E_MEMORY;
    ONX_SET(tensor, tensor, name, name);
    return onx_graph_add_initializer(t->arena, graph, tensor) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status add_binding(onxi_trainable *t, onx_string_string_entry ***list, uint32_t *count, onx_bytes variable,
                              onx_bytes value)
{
    onx_string_string_entry *entry =
        onx_list_add_message(t->arena, (void ***)(void *)list, count, ONX_KIND_STRING_STRING_ENTRY);
    if (!entry)
        return ONX_E_MEMORY;
    ONX_SET(string_string_entry, entry, key, variable);
    ONX_SET(string_string_entry, entry, value, value);
    return ONX_OK;
}

onx_status onxi_trainable_update(onxi_trainable *t, onx_bytes variable, onx_bytes value)
{
    return add_binding(t, &t->step->update_binding, &t->step->update_binding_count, variable, value);
}

onx_status onxi_trainable_begin(onxi_trainable *t, onx_bytes variable, onx_bytes value)
{
    return add_binding(t, &t->step->initialization_binding, &t->step->initialization_binding_count, variable, value);
}
