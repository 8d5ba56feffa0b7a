/* transform_adopt.c - makes functions of the model from the bodies that operator-set documents give operators. */
#include "transform/transform_part.h"

/* Bodies of operators from documents of the registry, as functions of the model. */
typedef struct documented {
    onx_doc *doc;
    onx_arena *scratch;
    const onx_registry *registry;
    onxi_functions own;   /* of the original model, which take precedence over those of documents */
    onxi_dict taken;      /* by their full names */
    onxi_imports imports; /* of the graph or function that is visited */
    uint32_t room;        /* capacity of the model's list */
} documented;

static onx_status take_function(void *user, const onx_visit *at)
{
    documented *d = user;
    const onx_node *node = at->kind == ONX_KIND_NODE ? at->message : NULL;
    if (!node || onx_view(onx_node_more(node)->overload).len) /* an overload refers to a function of the model */
        return ONX_OK;
    const onx_str domain = onxi_domain_plain(onx_view(node->domain)), name = onx_view(node->op_type), none = { 0 };
    const onx_op *op = onx_registry_find(d->registry, domain, name, onxi_imports_version(&d->imports, domain));
    const onx_function *body = op ? onxi_schema_body(op) : NULL;
    if (!body || onxi_functions_find(&d->own, domain, name, none, NULL))
        return ONX_OK;
    onx_model *model = onx_doc_model(d->doc);
    const onx_str full = onxi_arena_printf(d->scratch, "%.*s\n%.*s", ONX_ARG(domain), ONX_ARG(name));
    void *copy;
    bool made;
    if (!full.len || !onxi_dict_at(&d->taken, full, 0, &made))
        return ONX_E_MEMORY;
    if (!made)
        return ONX_OK;
    ONX_TRY(onx_message_copy(d->doc->arena, ONX_KIND_FUNCTION, body, &copy));
    if (!ONXI_GROW_IN(d->doc->arena, model->functions, d->room, model->functions_count + 1))
        return ONX_E_MEMORY;
    onx_function *f = model->functions[model->functions_count++] = copy;
    ONX_CLEAR(function, f, overload);
    f->overload = (onx_bytes){ 0 };
    return ONX_OK;
}

static onx_status visit_graph(documented *d, onx_ctx *cx, onx_graph *graph)
{
    return graph ? onx_message_walk(cx, ONX_KIND_GRAPH, graph, take_function, d) : ONX_OK;
}

onx_status onxi_adopt_functions(onx_ctx *cx, onx_doc *doc, onx_arena *scratch, int64_t *newest)
{
    onx_model *model = onx_doc_model(doc);
    documented d = { .doc = doc,
                     .scratch = scratch,
                     .registry = onxi_ctx_registry(cx),
                     .taken = onxi_dict_in_arena(scratch),
                     .room = model->functions_count };
    *newest = 0;
    if (!d.registry)
        return ONX_OK;
    ONX_TRY(onxi_functions_index(scratch, model->functions, model->functions_count, &d.own));
    ONX_TRY(onxi_imports_open(&d.imports, scratch, model->opset_import, model->opset_import_count,
                              onxi_model_is_legacy(model)));
    ONX_TRY(visit_graph(&d, cx, model->graph));
    for (uint32_t i = 0; i < model->training_info_count; i++) {
        ONX_TRY(visit_graph(&d, cx, model->training_info[i]->initialization));
        ONX_TRY(visit_graph(&d, cx, model->training_info[i]->algorithm));
    }
    for (uint32_t i = 0; i < model->functions_count; i++) {
        onx_function *f = model->functions[i];
        ONX_TRY(onxi_imports_open(&d.imports, scratch, f->opset_import, f->opset_import_count, false));
        const int64_t version = onxi_imports_version(&d.imports, (onx_str){ 0 });
        if (i >= d.own.count && version > *newest)
            *newest = version;
        ONX_TRY(onx_message_walk(cx, ONX_KIND_FUNCTION, f, take_function, &d));
    }
    return ONX_OK;
}
