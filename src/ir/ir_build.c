/* ir_build.c - creates and reads models from C. */
#include "ir/ir.h"

const onx_node_extra onx_node_extra_none = { .base = { NULL, NULL } };
const onx_attribute_extra onx_attribute_extra_none = { .base = { NULL, NULL } };

/* ---- reading ---- */

onx_attribute *onx_node_attribute(const onx_node *node, const char *name)
{
    if (!node || !name)
        return NULL;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_str_is(onx_view(node->attribute[i]->name), name))
            return node->attribute[i];
    return NULL;
}

const void *onx_attribute_value(const onx_attribute *a, uint32_t slot, uint32_t *count)
{
    if (!a || !count)
        return NULL;
    const onxi_message_table *table = onxi_messages[ONX_KIND_ATTRIBUTE];
    const onxi_field *field = onxi_field_find(table, slot);
    uint32_t ignored;
    if (!count)
        count = &ignored;
    *count = 0;
    if (!field || !(field->flags & ONXI_SLOT))
        return NULL;
    *count = (uint32_t)onxi_field_count(table, field, a);
    onxi_place place = onxi_field_place(table, field, a);
    if (!*count || !place.value)
        return NULL;
    return (field->flags & ONXI_REPEATED) ? *(void *const *)place.value : place.value;
}

static const onxi_attribute_kind kinds[] = {
    [ONX_ATTR_UNDEFINED] = { ONX_SLOT_NONE, false, false, "no field" },
    [ONX_ATTR_FLOAT] = { ONX_SLOT_F, false, false, "f" },
    [ONX_ATTR_INT] = { ONX_SLOT_I, false, false, "i" },
    [ONX_ATTR_STRING] = { ONX_SLOT_S, false, false, "s" },
    [ONX_ATTR_TENSOR] = { ONX_SLOT_T, false, true, "t" },
    [ONX_ATTR_GRAPH] = { ONX_SLOT_G, false, true, "g" },
    [ONX_ATTR_FLOATS] = { ONX_SLOT_FLOATS, true, false, "floats" },
    [ONX_ATTR_INTS] = { ONX_SLOT_INTS, true, false, "ints" },
    [ONX_ATTR_STRINGS] = { ONX_SLOT_STRINGS, true, false, "strings" },
    [ONX_ATTR_TENSORS] = { ONX_SLOT_TENSORS, true, false, "tensors" },
    [ONX_ATTR_GRAPHS] = { ONX_SLOT_GRAPHS, true, false, "graphs" },
    [ONX_ATTR_SPARSE_TENSOR] = { ONX_SLOT_SPARSE_TENSOR, false, true, "sparse_tensor" },
    [ONX_ATTR_SPARSE_TENSORS] = { ONX_SLOT_SPARSE_TENSORS, true, false, "sparse_tensors" },
    [ONX_ATTR_TYPE_PROTO] = { ONX_SLOT_TP, false, true, "tp" },
    [ONX_ATTR_TYPE_PROTOS] = { ONX_SLOT_TYPE_PROTOS, true, false, "type_protos" },
};
enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert((int)KINDS == (int)ONXI_ATTRIBUTE_TYPES, "a row per type");

const onxi_attribute_kind *onxi_attribute_kind_of(int32_t type)
{
    return &kinds[type >= 0 && type < KINDS ? type : ONX_ATTR_UNDEFINED];
}

onx_attribute_type onxi_attribute_type_in(uint32_t slot)
{
    int type = 1;
    while (type < KINDS && kinds[type].slot != slot)
        type++;
    return type < KINDS ? (onx_attribute_type)type : ONX_ATTR_UNDEFINED;
}

int64_t onxi_attribute_int(const onx_attribute *a)
{
    return a->slot == ONX_SLOT_I ? a->i : 0;
}

float onxi_attribute_float(const onx_attribute *a)
{
    return a->slot == ONX_SLOT_F ? a->f : 0;
}

onx_str onxi_attribute_text(const onx_attribute *a)
{
    return a->slot == ONX_SLOT_S ? onx_view(a->s) : (onx_str){ 0 };
}

onx_attribute_type onx_attribute_type_of(const onx_attribute *a)
{
    if (!a)
        return ONX_ATTR_UNDEFINED;
    if (ONX_HAS(attribute, a, type))
        return (onx_attribute_type)a->type;
    return onxi_attribute_type_in(a->slot);
}

/* ---- models ---- */

static bool set_text(onx_arena *arena, onx_bytes *field, const char *text)
{
    return onx_arena_keep(arena, onx_str_of(text), field) == ONX_OK;
}

onx_status onx_model_new(onx_ctx *cx, const char *graph_name, int64_t opset, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONX_TRY(onx_doc_new(cx, ONX_KIND_MODEL, out));
    onx_doc *doc = *out;
    onx_model *model = doc->root;
    onx_graph *graph = onx_message_new(doc->arena, ONX_KIND_GRAPH);
    onx_operator_set_id *import = ONX_ADD(doc->arena, model, opset_import, OPERATOR_SET_ID);
    if (!graph || !import || !set_text(doc->arena, &graph->name, graph_name) ||
        !set_text(doc->arena, &model->producer_name, "onx")) {
        onx_doc_free(doc);
        *out = NULL;
        return ONX_E_MEMORY;
    }
    graph->has |= onx_graph_has_name;
    model->has |= onx_model_has_producer_name;
    ONX_SET(model, model, ir_version, 10);
    ONX_SET(model, model, graph, graph);
    ONX_SET(operator_set_id, import, version, opset);
    import->has |= onx_operator_set_id_has_domain;
    return ONX_OK;
}

/* Appends the names of a text such as "x w -" to a list of strings. */
static onx_status add_names(onx_arena *arena, onx_bytes **list, uint32_t *count, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        if (n) {
            bool omitted = n == 1 && *names == '-';
            ONX_TRY(onx_list_add_text(arena, list, count, onx_str_make(names, omitted ? 0 : n)));
        }
        names += n + (names[n] == ' ');
    }
    return ONX_OK;
}

onx_node *onx_graph_add_node(onx_arena *arena, onx_graph *graph, const char *op_type, const char *inputs,
                             const char *outputs)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, graph, NULL);
    ONXI_NEED_OR(arena->cx, op_type, NULL);
    ONXI_NEED_OR(arena->cx, inputs, NULL);
    ONXI_NEED_OR(arena->cx, outputs, NULL);
    onx_node *node = ONX_ADD(arena, graph, node, NODE);
    if (!node || !set_text(arena, &node->op_type, op_type) ||
        add_names(arena, &node->input, &node->input_count, inputs) != ONX_OK ||
        add_names(arena, &node->output, &node->output_count, outputs) != ONX_OK)
        return NULL;
    node->has |= onx_node_has_op_type;
    return node;
}

/* ---- attributes ---- */

static onx_attribute *add_attribute(onx_arena *arena, onx_node *node, const char *name, onx_attribute_type type)
{
    onx_attribute *a = ONX_ADD(arena, node, attribute, ATTRIBUTE);
    if (!a || !set_text(arena, &a->name, name))
        return NULL;
    a->has |= onx_attribute_has_name;
    ONX_SET(attribute, a, type, (int32_t)type);
    a->slot = onxi_attribute_kind_of((int32_t)type)->slot;
    return a;
}

onx_attribute *onx_node_add_int(onx_arena *arena, onx_node *node, const char *name, int64_t value)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_INT);
    if (a)
        ONX_SET(attribute, a, i, value);
    return a;
}

onx_attribute *onx_node_add_float(onx_arena *arena, onx_node *node, const char *name, float value)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_FLOAT);
    if (a)
        ONX_SET(attribute, a, f, value);
    return a;
}

onx_attribute *onx_node_add_string(onx_arena *arena, onx_node *node, const char *name, onx_str value)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_STRING);
    if (!a || onx_arena_keep(arena, value, &a->s) != ONX_OK)
        return NULL;
    a->has |= onx_attribute_has_s;
    return a;
}

/* Allocates the elements of a list attribute, with the capacity that lists have. */
static void *keep_numbers(onx_arena *arena, const void *values, uint32_t count, size_t size)
{
    void *list = onxi_arena_array(arena, (size_t)onxi_list_room(count), size);
    if (list && count)
        memcpy(list, values, count * size);
    return list;
}

onx_attribute *onx_node_add_ints(onx_arena *arena, onx_node *node, const char *name, const int64_t *values,
                                 uint32_t count)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    ONXI_NEED_OR(arena->cx, values || !count, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_INTS);
    int64_t *list = a ? keep_numbers(arena, values, count, sizeof *values) : NULL;
    if (!list)
        return NULL;
    a->ints = list;
    a->count = count;
    return a;
}

onx_attribute *onx_node_add_floats(onx_arena *arena, onx_node *node, const char *name, const float *values,
                                   uint32_t count)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    ONXI_NEED_OR(arena->cx, values || !count, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_FLOATS);
    float *list = a ? keep_numbers(arena, values, count, sizeof *values) : NULL;
    if (!list)
        return NULL;
    a->floats = list;
    a->count = count;
    return a;
}

onx_attribute *onx_node_add_tensor(onx_arena *arena, onx_node *node, const char *name, onx_tensor *value)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    ONXI_NEED_OR(arena->cx, value, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_TENSOR);
    if (a)
        ONX_SET(attribute, a, t, value);
    return a;
}

onx_attribute *onx_node_add_graph(onx_arena *arena, onx_node *node, const char *name, onx_graph *value)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, node, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    ONXI_NEED_OR(arena->cx, value, NULL);
    onx_attribute *a = add_attribute(arena, node, name, ONX_ATTR_GRAPH);
    if (a)
        ONX_SET(attribute, a, g, value);
    return a;
}

/* ---- types, values, tensors ---- */

onx_type *onx_type_new_tensor(onx_arena *arena, onx_dtype dtype, const int64_t *dims, int rank)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, (unsigned)dtype < ONX_DTYPE_COUNT, NULL);
    ONXI_NEED_OR(arena->cx, rank <= (int)ONX_RANK_MAX, NULL);
    ONXI_NEED_OR(arena->cx, dims || rank <= 0, NULL);
    onx_type *type = onx_message_new(arena, ONX_KIND_TYPE);
    onx_type_tensor *tensor = type ? onx_message_new(arena, ONX_KIND_TYPE_TENSOR) : NULL;
    if (!tensor)
        return NULL;
    ONX_SET(type, type, tensor_type, tensor);
    ONX_SET(type_tensor, tensor, elem_type, (int32_t)dtype);
    if (rank < 0)
        return type;
    onx_tensor_shape *shape = onx_message_new(arena, ONX_KIND_TENSOR_SHAPE);
    if (!shape)
        return NULL;
    ONX_SET(type_tensor, tensor, shape, shape);
    for (int i = 0; i < rank; i++) {
        onx_dimension *dim = ONX_ADD(arena, shape, dim, DIMENSION);
        if (!dim)
            return NULL;
        if (dims[i] >= 0)
            ONX_SET(dimension, dim, dim_value, dims[i]);
    }
    return type;
}

static onx_value_info *fill_value(onx_arena *arena, onx_value_info *value, const char *name, onx_type *type)
{
    if (!value || !set_text(arena, &value->name, name))
        return NULL;
    value->has |= onx_value_info_has_name;
    if (type)
        ONX_SET(value_info, value, type, type);
    return value;
}

onx_value_info *onx_graph_add_input(onx_arena *arena, onx_graph *graph, const char *name, onx_type *type)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, graph, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    return fill_value(arena, ONX_ADD(arena, graph, input, VALUE_INFO), name, type);
}

onx_value_info *onx_graph_add_output(onx_arena *arena, onx_graph *graph, const char *name, onx_type *type)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, graph, NULL);
    ONXI_NEED_OR(arena->cx, name, NULL);
    return fill_value(arena, ONX_ADD(arena, graph, output, VALUE_INFO), name, type);
}

onx_tensor *onx_graph_add_initializer(onx_arena *arena, onx_graph *graph, onx_tensor *tensor)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, graph, NULL);
    ONXI_NEED_OR(arena->cx, tensor, NULL);
    void *list = graph->initializer;
    onx_tensor **slot =
        onx_list_insert(arena, &list, &graph->initializer_count, graph->initializer_count, sizeof(void *));
    if (!slot)
        return NULL;
    graph->initializer = list;
    return *slot = tensor;
}

onx_tensor *onx_tensor_new(onx_arena *arena, onx_dtype dtype, const int64_t *dims, uint32_t rank, const void *data,
                           const char *name)
{
    ONXI_NEED_OR(NULL, arena, NULL);
    ONXI_NEED_OR(arena->cx, rank <= ONX_RANK_MAX, NULL);
    ONXI_NEED_OR(arena->cx, dims || !rank, NULL);
    onx_tensor *t = onx_message_new(arena, ONX_KIND_TENSOR);
    uint64_t count, bytes;
    if (!t || !(t->dims = keep_numbers(arena, dims, rank, sizeof *dims)))
        return NULL;
    t->dims_count = rank;
    ONX_SET(tensor, t, data_type, (int32_t)dtype);
    if (!onx_tensor_count(t, &count) || !onx_dtype_size(dtype, count, &bytes) || bytes > SIZE_MAX) {
        onxi_fail(arena->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                  "a tensor of that type and shape cannot be stored as raw data");
        return NULL;
    }
    ONXI_NEED_OR(arena->cx, data || !bytes, NULL);
    if (onx_arena_keep(arena, onx_str_make(data, (size_t)bytes), &t->raw_data) != ONX_OK)
        return NULL;
    t->has |= onx_tensor_has_raw_data;
    if (name && set_text(arena, &t->name, name))
        t->has |= onx_tensor_has_name;
    return t;
}
