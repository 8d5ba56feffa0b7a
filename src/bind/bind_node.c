/* bind_node.c - resolves the operator or function that a node names. */
#include "bind/bind.h"

onx_status onxi_binder_open(onxi_binder *binder, onx_operator_set_id *const *list, uint32_t count, bool legacy)
{
    if (!binder->registry)
        binder->registry = onxi_ctx_registry(binder->arena->cx);
    binder->bound = NULL;
    binder->count = binder->room = 0;
    memset(binder->recent, 0, sizeof binder->recent);
    binder->table = onxi_table_in_arena(binder->arena);
    return onxi_imports_open(&binder->imports, binder->arena, list, count, legacy);
}

onx_status onxi_binder_open_model(onxi_binder *binder, const onx_model *model)
{
    return onxi_binder_open(binder, model->opset_import, model->opset_import_count, onxi_model_is_legacy(model));
}

onx_status onxi_binder_open_body(onxi_binder *binder, const onx_function *function)
{
    ONX_TRY(onxi_parameters_open(&binder->parameters, binder->arena, function));
    return onxi_binder_open(binder, function->opset_import, function->opset_import_count, false);
}

/* Fills the attribute defaults from the row. */
static bool note_defaults(const onxi_binder *binder, onxi_bound *b)
{
    for (const onxi_attr *a = b->schema->attrs; a && a->name; a++) {
        b->attr_count++;
        b->required += a->required;
    }
    if (!b->attr_count)
        return true;
    b->defaults = ONXI_ARRAY(binder->arena, onxi_attr_value, b->attr_count);
    if (!b->defaults)
        return false;
    for (uint32_t i = 0; i < b->attr_count; i++)
        if (onxi_schema_default(b->schema, &b->schema->attrs[i], binder->arena, &b->defaults[i]) == ONX_E_MEMORY)
            return false;
    return true;
}

static bool is_standard(onx_str domain)
{
    static const char *const domains[] = { "", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview",
                                           "ai.onnx.preview.training" };
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (onx_str_is(domain, domains[i]))
            return true;
    return false;
}

static bool resolve(const onxi_binder *binder, onxi_bound *b)
{
    b->import = onxi_imports_find(&binder->imports, b->domain);
    b->opset = b->import == ONXI_UNBOUND ? -1 : binder->imports.items[b->import].version;
    if (b->opset >= 1)
        b->schema = onx_registry_find(binder->registry, b->domain, b->name, b->opset);
    if (binder->functions)
        b->function = onxi_functions_find(binder->functions, b->domain, b->name, b->overload, &b->function_index);
    if (b->function) {
        b->kind = ONXI_BOUND_FUNCTION;
        return true;
    }
    b->implied =
        b->import == ONXI_UNBOUND && !is_standard(b->domain) && onx_registry_has_domain(binder->registry, b->domain);
    if (b->implied) {
        b->opset = 1;
        b->schema = onx_registry_find(binder->registry, b->domain, b->name, b->opset);
    }
    if (b->overload.len && binder->functions) /* an overload can only select a function of the model (ND-22) */
        b->schema = NULL;
    if (!b->schema)
        return true;
    b->kind = ONXI_BOUND_OPERATOR;
    if (onxi_schema_find(b->domain, b->name, b->opset) == b->schema) /* a registry may have a newer version of it */
        b->op = onxi_operator_id(onxi_operator_at(b->domain, b->name, b->opset));
    return b->schema->flags & ONXI_OP_OPEN || note_defaults(binder, b);
}

static onxi_bound *look_up(onxi_binder *binder, onx_str domain, onx_str name, onx_str overload)
{
    const uint32_t hash = onxi_table_hash_texts(&binder->table, name, domain, overload);
    ONXI_TABLE_EACH (&binder->table, hash, i) {
        onxi_bound *b = binder->bound[i];
        if (onxi_str_same(b->name, name) && onxi_str_same(b->domain, domain) && onxi_str_same(b->overload, overload))
            return b;
    }
    onxi_bound *b = ONXI_NEW(binder->arena, onxi_bound);
    if (!b)
        return NULL;
    *b = (onxi_bound){ .domain = domain, .name = name, .overload = overload };
    if (!resolve(binder, b) || !ONXI_GROW_IN(binder->arena, binder->bound, binder->room, binder->count + 1) ||
        !onxi_table_add(&binder->table, hash, binder->count))
        return NULL;
    binder->bound[binder->count++] = b;
    return b;
}

/* The cache slot for a name. It uses no hash, because it only has to be fast. */
static onxi_bound **recent_of(onxi_binder *binder, onx_str name)
{
    const unsigned char *p = (const unsigned char *)name.ptr;
    return &binder->recent[(name.len + p[0] * 5u + p[name.len / 2] * 3u + p[name.len - 1]) % ONXI_BIND_RECENT];
}

onxi_bound *onxi_bind(onxi_binder *binder, const onx_node *node)
{
    const onx_str domain = onxi_domain_plain(onx_view(node->domain)), name = onx_view(node->op_type);
    const onx_str overload = node->extra ? onx_view(onx_node_more(node)->overload) : onx_str_make(NULL, 0);
    if (domain.len || overload.len || !name.len)
        return look_up(binder, domain, name, overload);
    onxi_bound **recent = recent_of(binder, name);
    if (!*recent || !onxi_str_same((*recent)->name, name))
        *recent = look_up(binder, domain, name, overload);
    return *recent;
}

bool onxi_bound_report(onxi_binder *binder, onxi_bound *bound)
{
    if (!bound->implied || bound->reported)
        return false;
    bound->reported = true;
    for (uint32_t i = 0; i < binder->count; i++)
        if (binder->bound[i] != bound && binder->bound[i]->reported &&
            onxi_str_same(binder->bound[i]->domain, bound->domain))
            return false;
    return true;
}
