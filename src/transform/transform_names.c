/* transform_names.c - generates names that are unique in the model. */
#include "transform/transform.h"

/* ---- places that contain names ---- */

typedef struct namer {
    onx_status (*visit)(void *user, onx_bytes *name);
    onx_status (*visit_node)(void *user, onx_bytes *name);
    void *user;
} namer;

static onx_status name_list(namer *n, onx_bytes *list, uint32_t count)
{
    for (uint32_t i = 0; i < count && n->visit; i++)
        if (onx_view(list[i]).len)
            ONX_TRY(n->visit(n->user, &list[i]));
    return ONX_OK;
}

static onx_status name_one(namer *n, onx_bytes *name)
{
    return onx_view(*name).len && n->visit ? n->visit(n->user, name) : ONX_OK;
}

bool onxi_node_names_values(const onx_node *node)
{
    const onxi_operator *op = onxi_operator_find(onx_view(node->domain), onx_view(node->op_type));
    return onxi_operator_is(onxi_operator_id(op), ONXI_TRAIT_NAMES_VALUES);
}

onx_status onxi_node_each_named(const onx_node *node, onx_status (*visit)(void *user, onx_bytes *name), void *user)
{
    static const uint32_t slots[] = { ONX_SLOT_S, ONX_SLOT_STRINGS };
    if (!node->attribute_count || !onxi_node_names_values(node))
        return ONX_OK;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        for (size_t s = 0; s < sizeof slots / sizeof *slots; s++) {
            uint32_t count = 0;
            onx_bytes *names = (onx_bytes *)(uintptr_t)onx_attribute_value(node->attribute[i], slots[s], &count);
            for (uint32_t k = 0; names && k < count; k++)
                if (onx_view(names[k]).len)
                    ONX_TRY(visit(user, &names[k]));
        }
    return ONX_OK;
}

static onx_status name_message(void *user, const onx_visit *at)
{
    namer *n = user;
    const bool in_graph = at->parent && at->parent->kind == ONX_KIND_GRAPH;
    switch ((int)at->kind) {
    case ONX_KIND_NODE: {
        onx_node *node = at->message;
        if (onx_view(node->name).len && n->visit_node)
            ONX_TRY(n->visit_node(n->user, &node->name));
        ONX_TRY(name_list(n, node->input, node->input_count));
        ONX_TRY(name_list(n, node->output, node->output_count));
        return n->visit ? onxi_node_each_named(node, n->visit, n->user) : ONX_OK;
    }
    case ONX_KIND_VALUE_INFO:
        return name_one(n, &((onx_value_info *)at->message)->name);
    case ONX_KIND_TENSOR: {
        const bool sparse = at->parent && at->parent->kind == ONX_KIND_SPARSE_TENSOR && at->parent->parent &&
                            at->parent->parent->kind == ONX_KIND_GRAPH && strcmp(at->field, "values") == 0;
        return in_graph || sparse ? name_one(n, &((onx_tensor *)at->message)->name) : ONX_OK;
    }
    case ONX_KIND_TENSOR_ANNOTATION:
        return name_one(n, &((onx_tensor_annotation *)at->message)->tensor_name);
    case ONX_KIND_SHARDING_SPEC:
        return name_one(n, &((onx_sharding_spec *)at->message)->tensor_name);
    case ONX_KIND_STRING_STRING_ENTRY: {
        onx_string_string_entry *entry = at->message;
        if (at->parent && at->parent->kind == ONX_KIND_TRAINING_INFO)
            ONX_TRY(name_one(n, &entry->key));
        return at->parent &&
                       (at->parent->kind == ONX_KIND_TENSOR_ANNOTATION || at->parent->kind == ONX_KIND_TRAINING_INFO) &&
                       strcmp(at->field, "metadata_props") != 0
                   ? name_one(n, &entry->value)
                   : ONX_OK;
    }
    case ONX_KIND_FUNCTION: {
        onx_function *f = at->message;
        ONX_TRY(name_list(n, f->input, f->input_count));
        return name_list(n, f->output, f->output_count);
    }
    default:
        return ONX_OK;
    }
}

onx_status onxi_graph_each_name(onx_ctx *cx, onx_graph *graph, onx_status (*visit)(void *user, onx_bytes *name),
                                void *user)
{
    return onxi_each_name(cx, ONX_KIND_GRAPH, graph, visit, visit, user);
}

onx_status onxi_each_name(onx_ctx *cx, onx_kind kind, void *message, onx_status (*visit)(void *user, onx_bytes *name),
                          onx_status (*visit_node)(void *user, onx_bytes *name), void *user)
{
    namer n = { visit, visit_node, user };
    return onx_message_walk(cx, kind, message, name_message, &n);
}

static onx_status named_of_node(void *user, const onx_visit *at)
{
    const namer *n = user;
    return at->kind == ONX_KIND_NODE ? onxi_node_each_named(at->message, n->visit, n->user) : ONX_OK;
}

onx_status onxi_each_named(onx_ctx *cx, onx_kind kind, void *message, onx_status (*visit)(void *user, onx_bytes *name),
                           void *user)
{
    namer n = { visit, NULL, user };
    return onx_message_walk(cx, kind, message, named_of_node, &n);
}

/* ---- generating names ---- */

static onx_status take(void *user, onx_bytes *name)
{
    onxi_names *names = user;
    return onxi_dict_at(&names->taken, onx_view(*name), 2, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status open_names(onxi_names *names)
{
    names->taken = onxi_dict_in_arena(names->scratch);
    names->open = true;
    return onxi_each_name(names->arena->cx, ONX_KIND_MODEL, names->model, take, take, names);
}

onx_status onxi_names_take(onxi_names *names, onx_kind kind, void *message)
{
    if (!names->open)
        ONX_TRY(open_names(names));
    return onxi_each_name(names->arena->cx, kind, message, take, take, names);
}

/* The first PART_MAX bytes, cut between characters: otherwise names that are combined repeatedly would grow without
 * bound. */
static onx_str cut(onx_str name)
{
    enum { PART_MAX = 400 };
    if (name.len <= PART_MAX)
        return name;
    size_t len = PART_MAX;
    while (len && ((unsigned char)name.ptr[len] & 0xc0) == 0x80)
        len--;
    return onx_str_make(name.ptr, len ? len : PART_MAX);
}

onx_status onxi_names_make(onxi_names *names, onx_str base, onx_str part, onx_bytes *out)
{
    if (!names->open)
        ONX_TRY(open_names(names));
    base = cut(base);
    part = cut(part);
    onx_str name = base.len && part.len ? onxi_arena_printf(names->arena, "%.*s_%.*s", ONX_ARG(base), ONX_ARG(part))
                                        : onxi_arena_printf(names->arena, "%.*s%.*s", ONX_ARG(base), ONX_ARG(part));
    bool made;
    onxi_dict_entry *entry = name.len ? onxi_dict_at(&names->taken, name, 2, &made) : NULL;
    if (!entry)
        return ONX_E_MEMORY;
    const onx_str plain = name;
    while (!made) {
        const uint32_t number = entry->value++;
        name = onxi_arena_printf(names->arena, "%.*s_%u", ONX_ARG(plain), number);
        if (!name.len || !onxi_dict_at(&names->taken, name, 2, &made))
            return ONX_E_MEMORY;
        if (!made && !(entry = onxi_dict_find(&names->taken, plain)))
            return ONX_E_MEMORY;
    }
    return onx_arena_refer(names->arena, name, out);
}
