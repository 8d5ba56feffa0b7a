/* transform_values.c - types and constants of values, determined on demand. */
#include "infer/infer.h"
#include "transform/transform.h"

enum { ELEMENTS_MAX = 4096 }; /* of a constant that becomes an attribute */

onx_status onxi_values_open(onxi_values *values, onx_doc *doc, onx_arena *scratch)
{
    *values = (onxi_values){ .cx = scratch->cx, .doc = doc, .scratch = scratch, .made = onxi_dict_in_arena(scratch) };
    return ONX_OK;
}

void onxi_values_close(onxi_values *values)
{
    onx_infer_free(values->infer);
    values->infer = NULL;
}

/* ---- types ---- */

/* Records lack of memory or an exceeded limit; other errors mean that the property is unknown. */
static bool done(onxi_values *values, onx_status status)
{
    if (status == ONX_E_MEMORY || status == ONX_E_LIMIT)
        values->status = status;
    return status == ONX_OK;
}

/* Diagnostics of inference are dropped, because they were not requested. */
static void infer(onxi_values *values)
{
    const onxi_diag_mark mark = onxi_diag_here(values->cx);
    values->inferred = true;
    if (!done(values, onxi_facts_new(values->cx, values->doc, values->same, &values->infer)))
        values->infer = NULL;
    if (values->status == ONX_OK)
        onxi_diag_rewind(values->cx, mark);
    /* A value on a cycle has no type; passes that need types do not change it. */
    (void)done(values, onxi_doc_warn_of_cycle(values->doc, ONXI_CYCLE_UNTYPED));
}

/* The type of an initializer, which inference does not list. */
static const onx_type *type_of_constant(onxi_values *values, const onxi_scope *scope, onx_str name)
{
    const onxi_constant *constant = onxi_values_constant(values, (onxi_scope *)(uintptr_t)scope, name);
    const onx_tensor *tensor = constant ? constant->tensor : NULL;
    if (!tensor || tensor->dims_count > ONX_RANK_MAX || (unsigned)tensor->data_type >= ONX_DTYPE_COUNT)
        return NULL;
    const onxi_constant known = *constant;
    const onx_type *type =
        onx_type_new_tensor(values->scratch, (onx_dtype)tensor->data_type, tensor->dims, (int)tensor->dims_count);
    return done(values, type ? onxi_values_note(values, name, type, &known) : ONX_E_MEMORY) ? type : NULL;
}

const onx_type *onxi_values_type(onxi_values *values, const onxi_scope *scope, onx_str name)
{
    const onxi_dict_entry *made = onxi_dict_find(&values->made, name);
    if (made)
        return values->made_types[made->value];
    if (!values->inferred)
        infer(values);
    for (const onxi_scope *at = scope; values->infer && at && at->graph; at = at->parent) {
        const onx_type *type = onx_infer_type(values->infer, at->graph, name);
        if (type)
            return type;
    }
    return type_of_constant(values, scope, name);
}

int onxi_type_dtype(const onx_type *type)
{
    for (int depth = 0; type && depth < 4; depth++) {
        if (ONX_HAS(type, type, tensor_type))
            return type->tensor_type->elem_type;
        if (ONX_HAS(type, type, sparse_tensor_type))
            return type->sparse_tensor_type->elem_type;
        type = ONX_HAS(type, type, sequence_type)   ? type->sequence_type->elem_type
               : ONX_HAS(type, type, optional_type) ? type->optional_type->elem_type
                                                    : NULL;
    }
    return ONX_UNDEFINED;
}

static const onx_tensor_shape *shape_of(const onx_type *type)
{
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
}

int onxi_type_rank(const onx_type *type)
{
    const onx_tensor_shape *shape = shape_of(type);
    return shape && shape->dim_count <= ONX_RANK_MAX ? (int)shape->dim_count : -1;
}

int64_t onxi_type_dim(const onx_type *type, uint32_t axis)
{
    const onx_tensor_shape *shape = shape_of(type);
    if (!shape || axis >= shape->dim_count || !ONX_HAS(dimension, shape->dim[axis], dim_value))
        return -1;
    return shape->dim[axis]->dim_value < 0 ? -1 : shape->dim[axis]->dim_value;
}

uint32_t onxi_element_types(const onxi_type_set *set, const onx_type *type)
{
    if (ONX_HAS(type, type, tensor_type))
        return set->tensor;
    if (ONX_HAS(type, type, sparse_tensor_type))
        return set->sparse_tensor;
    if (ONX_HAS(type, type, sequence_type))
        return set->seq;
    const onx_type *inner = ONX_HAS(type, type, optional_type) ? type->optional_type->elem_type : NULL;
    return !inner ? UINT32_MAX : ONX_HAS(type, inner, sequence_type) ? set->optional_seq : set->optional;
}

/* ---- constants ---- */

static onx_status add_constant(onxi_values *values, onxi_dict *table, onx_str name, onxi_constant constant)
{
    if (!name.len)
        return ONX_OK;
    if (!ONXI_GROW_IN(values->scratch, values->constant, values->constant_room, (uint64_t)values->constant_count + 1))
        return ONX_E_MEMORY;
    values->constant[values->constant_count] = constant;
    return onxi_dict_at(table, name, values->constant_count++, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static const onx_attribute *value_of(const onx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_view(node->attribute[i]->name).len >= 5 &&
            memcmp(onx_view(node->attribute[i]->name).ptr, "value", 5) == 0)
            return node->attribute[i];
    return NULL;
}

static onx_status collect(onxi_values *values, onxi_scope *scope)
{
    onxi_dict *table = scope->constants = ONXI_NEW(values->scratch, onxi_dict);
    if (!table)
        return ONX_E_MEMORY;
    *table = onxi_dict_in_arena(values->scratch);
    for (uint32_t i = 0; i < scope->node_count; i++) {
        const onx_node *node = scope->nodes[i];
        if (onxi_node_is(node, ONXI_ID_Constant) && node->output_count == 1 && value_of(node))
            ONX_TRY(
                add_constant(values, table, onx_view(node->output[0]), (onxi_constant){ .attribute = value_of(node) }));
    }
    if (!scope->graph)
        return ONX_OK;
    onxi_dict defaults = onxi_dict_in_arena(values->scratch);
    ONX_TRY(onxi_facts_defaults(onx_doc_model(values->doc), scope->graph, &defaults));
    for (uint32_t i = 0; i < scope->graph->initializer_count; i++) {
        const onx_tensor *tensor = scope->graph->initializer[i];
        const bool is_default = onxi_dict_find(&defaults, onx_view(tensor->name)) != NULL;
        if (!is_default || values->takes_defaults)
            ONX_TRY(add_constant(values, table, onx_view(tensor->name),
                                 (onxi_constant){ .tensor = tensor, .is_default = is_default }));
    }
    return ONX_OK;
}

const onxi_constant *onxi_values_constant(onxi_values *values, onxi_scope *scope, onx_str name)
{
    const onxi_dict_entry *entry = onxi_dict_find(&values->made, name);
    if (entry) {
        const onxi_constant *made = &values->made_constants[entry->value];
        return made->tensor || made->attribute ? made : NULL;
    }
    for (; scope; scope = (onxi_scope *)(uintptr_t)scope->parent) {
        if (!scope->constants && !done(values, collect(values, scope)))
            return NULL;
        if ((entry = onxi_dict_find(scope->constants, name)) != NULL)
            return &values->constant[entry->value];
    }
    return NULL;
}

onx_status onxi_values_note(onxi_values *values, onx_str name, const onx_type *type, const onxi_constant *constant)
{
    if (!name.len)
        return ONX_OK;
    /* room comes first: queries continue after a failure, and every entry needs its property */
    const uint64_t room = (uint64_t)values->made.count + 1;
    if (!ONXI_GROW_IN(values->scratch, values->made_types, values->made_type_room, room) ||
        !ONXI_GROW_IN(values->scratch, values->made_constants, values->made_constant_room, room))
        return ONX_E_MEMORY;
    onxi_dict_entry *entry = onxi_dict_at(&values->made, name, values->made.count, NULL);
    if (!entry)
        return ONX_E_MEMORY;
    values->made_types[entry->value] = type;
    values->made_constants[entry->value] = constant ? *constant : (onxi_constant){ 0 };
    return ONX_OK;
}

/* ---- constants as attributes ---- */

onx_attribute *onxi_attribute_new(onx_arena *arena, const char *name, onx_attribute_type type)
{
    onx_attribute *a = onx_message_new(arena, ONX_KIND_ATTRIBUTE);
    if (!a || onx_arena_keep(arena, onx_str_of(name), &a->name) != ONX_OK)
        return NULL;
    a->has |= onx_attribute_has_name;
    ONX_SET(attribute, a, type, (int32_t)type);
    a->slot = onxi_attribute_kind_of((int32_t)type)->slot;
    return a;
}

onx_attribute *onxi_attribute_named(onx_arena *arena, const onx_attribute *from, onx_bytes name)
{
    onx_attribute *a = ONXI_NEW(arena, onx_attribute);
    if (!a)
        return NULL;
    *a = *from;
    ONX_SET(attribute, a, name, name);
    return a;
}

static const onx_attribute *from_tensor(onxi_values *values, onx_arena *arena, const onx_tensor *tensor, int32_t type)
{
    uint64_t count;
    onx_attribute *a = onxi_attribute_new(arena, "value", (onx_attribute_type)type);
    const bool list = type == ONX_ATTR_INTS || type == ONX_ATTR_FLOATS;
    const bool real = type == ONX_ATTR_FLOAT || type == ONX_ATTR_FLOATS;
    if (!done(values, a ? ONX_OK : ONX_E_MEMORY) || !onx_tensor_count(tensor, &count) || count > ELEMENTS_MAX ||
        tensor->data_type == ONX_STRING)
        return NULL;
    if (type == ONX_ATTR_TENSOR) {
        onx_tensor *copy = ONXI_NEW(arena, onx_tensor);
        if (!done(values, copy ? ONX_OK : ONX_E_MEMORY))
            return NULL;
        *copy = *tensor;
        ONX_SET(attribute, a, t, copy);
        return a;
    }
    if ((!list && !real && type != ONX_ATTR_INT) || (!list && count != 1))
        return NULL;
    void *to = onxi_arena_array(arena, (size_t)onxi_list_room(count), 8);
    const onxi_diag_mark mark = onxi_diag_here(values->cx);
    onx_status status = !to    ? ONX_E_MEMORY
                        : real ? onx_tensor_get_f32(values->doc, tensor, 0, count, to)
                               : onx_tensor_get_i64(values->doc, tensor, 0, count, to);
    onxi_diag_rewind(values->cx, mark);
    if (!done(values, status))
        return NULL;
    if (type == ONX_ATTR_FLOAT)
        ONX_SET(attribute, a, f, *(float *)to);
    else if (type == ONX_ATTR_INT)
        ONX_SET(attribute, a, i, *(int64_t *)to);
    else if (real)
        a->floats = to;
    else
        a->ints = to;
    a->count = list ? (uint32_t)count : 0;
    return a;
}

/* The value of a Constant node as another attribute, which may refer to a parameter of the enclosing function. */
static const onx_attribute *from_attribute(onxi_values *values, onx_arena *arena, const onx_attribute *from,
                                           int32_t type)
{
    const int32_t has = (int32_t)onx_attribute_type_of(from);
    if (has == type)
        return from;
    if (onx_view(onx_attribute_more(from)->ref_attr_name).len)
        return NULL;
    const bool to_list =
        (has == ONX_ATTR_INT && type == ONX_ATTR_INTS) || (has == ONX_ATTR_FLOAT && type == ONX_ATTR_FLOATS);
    const bool to_one =
        ((has == ONX_ATTR_INTS && type == ONX_ATTR_INT) || (has == ONX_ATTR_FLOATS && type == ONX_ATTR_FLOAT)) &&
        from->count == 1;
    onx_attribute *a = to_list || to_one ? onxi_attribute_new(arena, "value", (onx_attribute_type)type) : NULL;
    if (!a) {
        done(values, to_list || to_one ? ONX_E_MEMORY : ONX_OK);
        return NULL;
    }
    if (type == ONX_ATTR_INT)
        ONX_SET(attribute, a, i, from->ints[0]);
    else if (type == ONX_ATTR_FLOAT)
        ONX_SET(attribute, a, f, from->floats[0]);
    else if (type == ONX_ATTR_INTS && (a->ints = ONXI_ARRAY(arena, int64_t, 1)) != NULL)
        a->ints[0] = from->i;
    else if (type == ONX_ATTR_FLOATS && (a->floats = ONXI_ARRAY(arena, float, 1)) != NULL)
        a->floats[0] = from->f;
    a->count = to_list;
    return done(values, to_list && !a->ints ? ONX_E_MEMORY : ONX_OK) ? a : NULL;
}

const onx_attribute *onxi_constant_attribute(onxi_values *values, onx_arena *arena, const onxi_constant *constant,
                                             int32_t type)
{
    const onx_tensor *tensor = constant->tensor;
    if (constant->attribute && onx_attribute_type_of(constant->attribute) == ONX_ATTR_TENSOR &&
        !onx_view(onx_attribute_more(constant->attribute)->ref_attr_name).len)
        tensor = constant->attribute->slot == ONX_SLOT_T ? constant->attribute->t : NULL;
    if (tensor)
        return from_tensor(values, arena, tensor, type);
    return constant->attribute ? from_attribute(values, arena, constant->attribute, type) : NULL;
}
