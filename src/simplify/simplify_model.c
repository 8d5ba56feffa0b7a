/* simplify_model.c - changes of the whole model: shapes that the caller fixes, and removal of unused functions and
 * imports. */
#include "simplify/simplify.h"

/* ---- shapes ---- */

typedef struct fixer {
    onx_ctx *cx;
    onx_arena *arena; /* of the document */
    onx_arena *scratch;
    onxi_dict declared; /* names in value_info */
    onx_infer_fixed *fixed;
    uint32_t fixed_count, fixed_room;
    bool overridden; /* a declared size was replaced by another one: dependent types are inferred again */
} fixer;

static onx_status add_fixed(fixer *f, const char *name, int64_t size)
{
    if (!ONXI_GROW_IN(f->scratch, f->fixed, f->fixed_room, (uint64_t)f->fixed_count + 1))
        return ONX_E_MEMORY;
    f->fixed[f->fixed_count++] = (onx_infer_fixed){ name, size };
    return ONX_OK;
}

static onx_status fix_dim(fixer *f, onx_dimension *dim, int64_t size)
{
    if (size < 0)
        return ONX_OK;
    if (ONX_HAS(dimension, dim, dim_param) && onx_view(dim->dim_param).len) {
        const onx_str name = onxi_arena_printf(f->scratch, "%.*s", ONX_ARG(onx_view(dim->dim_param)));
        return name.len ? add_fixed(f, name.ptr, size) : ONX_E_MEMORY;
    }
    f->overridden |= ONX_HAS(dimension, dim, dim_value) && dim->dim_value != size;
    ONX_CLEAR(dimension, dim, dim_param);
    ONX_SET(dimension, dim, dim_value, size);
    return ONX_OK;
}

static onx_status fix_input(fixer *f, onx_graph *graph, const onx_input_shape *shape)
{
    uint32_t i = 0;
    while (i < graph->input_count && !onx_str_equal(onx_view(graph->input[i]->name), shape->name))
        i++;
    if (i == graph->input_count)
        return onxi_fail(f->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no input is called %.*s", ONX_ARG(shape->name));
    onx_type *type = graph->input[i]->type;
    if (!type || !ONX_HAS(type, type, tensor_type) || shape->rank > ONX_RANK_MAX)
        return onxi_fail(f->cx, ONX_E_INVALID, ONXI_NOWHERE, "input %.*s is not a tensor that can have %u dimensions",
                         ONX_ARG(shape->name), shape->rank);
    if (!ONX_HAS(type_tensor, type->tensor_type, shape) || !type->tensor_type->shape) {
        onx_type *made =
            onx_type_new_tensor(f->arena, (onx_dtype)type->tensor_type->elem_type, shape->dims, (int)shape->rank);
        if (!made)
            return ONX_E_MEMORY;
        graph->input[i]->type = made;
        return ONX_OK;
    }
    onx_tensor_shape *dims = type->tensor_type->shape;
    if (dims->dim_count != shape->rank)
        return onxi_fail(f->cx, ONX_E_INVALID, ONXI_NOWHERE, "input %.*s has %u dimensions, not %u",
                         ONX_ARG(shape->name), dims->dim_count, shape->rank);
    for (uint32_t k = 0; k < shape->rank; k++)
        ONX_TRY(fix_dim(f, dims->dim[k], shape->dims[k]));
    return ONX_OK;
}

/* Discards the declared types of inner values and outputs if an input gets another size than the model was made for. */
static onx_status forget(fixer *f, onx_graph *graph)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const onx_type *type = graph->output[i]->type;
        if (!type || !ONX_HAS(type, type, tensor_type) || !type->tensor_type->shape)
            continue;
        for (uint32_t k = 0; k < type->tensor_type->shape->dim_count; k++)
            ONX_CLEAR(dimension, type->tensor_type->shape->dim[k], dim_value);
    }
    return onxi_types_forget(f->cx, f->arena, graph);
}

static onx_status note_declared(void *user, const onx_visit *at)
{
    fixer *f = user;
    const onx_value_info *info = at->message;
    if (at->kind != ONX_KIND_VALUE_INFO || strcmp(at->field, "value_info") != 0)
        return ONX_OK;
    return onxi_dict_at(&f->declared, onx_view(info->name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status drop_others(void *user, const onx_visit *at)
{
    fixer *f = user;
    onx_graph *graph = at->message;
    uint32_t kept = 0;
    if (at->kind != ONX_KIND_GRAPH)
        return ONX_OK;
    for (uint32_t i = 0; i < graph->value_info_count; i++)
        if (onxi_dict_find(&f->declared, onx_view(graph->value_info[i]->name)))
            graph->value_info[kept++] = graph->value_info[i];
    graph->value_info_count = kept;
    return ONX_OK;
}

static onx_status fix(fixer *f, onx_doc *doc, const onx_simplify_options *options)
{
    onx_model *model = onx_doc_model(doc);
    for (uint32_t i = 0; i < options->fixed_count; i++)
        ONX_TRY(add_fixed(f, options->fixed[i].name, options->fixed[i].size));
    ONX_TRY(onx_message_walk(f->cx, ONX_KIND_MODEL, model, note_declared, f));
    for (uint32_t i = 0; i < options->shape_count; i++)
        ONX_TRY(fix_input(f, model->graph, &options->shape[i]));
    if (f->overridden)
        ONX_TRY(forget(f, model->graph));
    const onx_infer_options how = { .struct_size = sizeof how, .fixed = f->fixed, .fixed_count = f->fixed_count };
    ONX_TRY(onx_infer_model(f->cx, doc, &how));
    return onx_message_walk(f->cx, ONX_KIND_GRAPH, model->graph, drop_others, f);
}

onx_status onxi_simplify_fix(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options)
{
    onx_arena *scratch;
    if ((!options->fixed_count && !options->shape_count) || !onx_doc_model(doc)->graph)
        return ONX_OK;
    ONX_TRY(onx_arena_new(cx, &scratch));
    fixer f = { .cx = cx, .arena = onx_doc_arena(doc), .scratch = scratch, .declared = onxi_dict_in_arena(scratch) };
    const onx_status status = fix(&f, doc, options);
    onx_arena_free(scratch);
    return status;
}

/* ---- defaults ---- */

static bool has_default(const onxi_dict *initializers, const onx_value_info *input)
{
    return onxi_dict_find(initializers, onx_view(input->name)) != NULL;
}

static onx_status list_initializers(const onx_graph *graph, onxi_dict *names)
{
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (!onxi_dict_at(names, onx_view(graph->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->sparse_initializer_count; i++)
        if (graph->sparse_initializer[i]->values &&
            !onxi_dict_at(names, onx_view(graph->sparse_initializer[i]->values->name), 0, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status freeze(onx_ctx *cx, onx_graph *graph, onx_arena *scratch)
{
    enum { SHOWN = 8 };
    onxi_dict initializers = onxi_dict_in_arena(scratch);
    uint32_t kept = 0, frozen = 0;
    onx_str names = onx_str_of("");
    ONX_TRY(list_initializers(graph, &initializers));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (!has_default(&initializers, graph->input[i])) {
            graph->input[kept++] = graph->input[i];
            continue;
        }
        if (++frozen <= SHOWN)
            names = onxi_arena_printf(scratch, "%.*s%s%.*s", ONX_ARG(names), frozen > 1 ? ", " : "",
                                      ONX_ARG(onx_view(graph->input[i]->name)));
    }
    graph->input_count = kept;
    if (frozen)
        onxi_warn(cx, ONX_NOTE, NULL, ONXI_NOWHERE,
                  "%u input%s with a default became constant%s, which callers cannot set any more: %.*s%s", frozen,
                  frozen == 1 ? "" : "s", frozen == 1 ? "" : "s", ONX_ARG(names), frozen > SHOWN ? ", ..." : "");
    return ONX_OK;
}

onx_status onxi_simplify_freeze(onx_ctx *cx, onx_doc *doc)
{
    onx_arena *scratch;
    onx_model *model = onx_doc_model(doc);
    if (!model->graph || !onxi_facts_has_defaults(model))
        return ONX_OK;
    ONX_TRY(onx_arena_new(cx, &scratch));
    const onx_status status = freeze(cx, model->graph, scratch);
    onx_arena_free(scratch);
    return status;
}

/* ---- functions and imports ---- */

typedef struct sweeper {
    onxi_functions functions;
    bool *called;    /* per function */
    uint32_t *queue; /* functions whose bodies still have to be visited */
    uint32_t queued;
    onxi_dict domains; /* domains of nodes in graphs */
} sweeper;

static onx_status note_node(void *user, const onx_visit *at)
{
    sweeper *w = user;
    const onx_node *node = at->message;
    uint32_t index;
    if (at->kind != ONX_KIND_NODE)
        return ONX_OK;
    if (!onxi_dict_at(&w->domains, onxi_domain_plain(onx_view(node->domain)), 0, NULL))
        return ONX_E_MEMORY;
    if (onxi_functions_find(&w->functions, onx_view(node->domain), onx_view(node->op_type),
                            onx_view(onx_node_more(node)->overload), &index) &&
        !w->called[index]) {
        w->called[index] = true;
        w->queue[w->queued++] = index;
    }
    return ONX_OK;
}

static onx_status note_all(onx_ctx *cx, sweeper *w, const onx_model *model)
{
    if (model->graph)
        ONX_TRY(onx_message_walk(cx, ONX_KIND_GRAPH, model->graph, note_node, w));
    for (uint32_t i = 0; i < model->training_info_count; i++)
        ONX_TRY(onx_message_walk(cx, ONX_KIND_TRAINING_INFO, model->training_info[i], note_node, w));
    for (uint32_t i = 0; i < w->queued; i++) { /* the queue grows during the loop */
        const onx_function *f = model->functions[w->queue[i]];
        for (uint32_t k = 0; k < f->opset_import_count; k++)
            if (!onxi_dict_at(&w->domains, onxi_domain_plain(onx_view(f->opset_import[k]->domain)), 0, NULL))
                return ONX_E_MEMORY;
        ONX_TRY(onx_message_walk(cx, ONX_KIND_FUNCTION, model->functions[w->queue[i]], note_node, w));
    }
    return ONX_OK;
}

static void tell(const onx_simplify_options *options, onx_arena *scratch, const char *rule, const char *field,
                 uint32_t index, const char *text)
{
    if (!options->changed)
        return;
    const onx_change change = { .pass = onxi_simplify_names[ONXI_SIMPLIFY_UNUSED],
                                .rule = onx_str_of(rule),
                                .path = onxi_arena_printf(scratch, "%s[%u]", field, index),
                                .text = onx_str_of(text) };
    options->changed(options->user, &change);
}

static onx_status sweep(onx_ctx *cx, onx_arena *scratch, onx_model *model, const onx_simplify_options *options)
{
    sweeper w = { .called = ONXI_ARRAY(scratch, bool, model->functions_count + 1u),
                  .queue = ONXI_ARRAY(scratch, uint32_t, model->functions_count + 1u),
                  .domains = onxi_dict_in_arena(scratch) };
    uint32_t kept = 0;
    if (!w.called || !w.queue)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_functions_index(scratch, model->functions, model->functions_count, &w.functions));
    ONX_TRY(note_all(cx, &w, model));
    for (uint32_t i = 0; i < model->functions_count; i++) {
        if (w.called[i])
            model->functions[kept++] = model->functions[i];
        else
            tell(options, scratch, "function", "functions", i, "removed: never called");
    }
    model->functions_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < model->opset_import_count; i++) {
        const onx_str domain = onxi_domain_plain(onx_view(model->opset_import[i]->domain));
        if (!domain.len || onxi_dict_find(&w.domains, domain))
            model->opset_import[kept++] = model->opset_import[i];
        else
            tell(options, scratch, "import", "opset_import", i, "removed: no node uses its domain");
    }
    model->opset_import_count = kept;
    return ONX_OK;
}

onx_status onxi_simplify_unused(onx_ctx *cx, onx_doc *doc, const onx_simplify_options *options)
{
    onx_arena *scratch;
    ONX_TRY(onx_arena_new(cx, &scratch));
    const onx_status status = sweep(cx, scratch, onx_doc_model(doc), options);
    onx_arena_free(scratch);
    return status;
}
