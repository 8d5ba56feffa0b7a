/* transform_inline.c - replaces calls of functions of the model, or of operator-set documents, by their bodies, in
 * graphs, subgraphs and the remaining functions. */
#include "transform/transform_part.h"

typedef struct inliner {
    onx_ctx *cx;
    onx_arena *arena, *scratch;
    onx_model *model;
    const onx_inline_options *options;
    onxi_functions functions;
    uint32_t own; /* functions that the model had; those after them are from operator-set documents */
    bool *chosen; /* per function of the model */
    bool *open;   /* per function: its body is being expanded, so a call of it would be infinite recursion */
    onxi_names names;
    onx_str path; /* of the model's node that is visited, if the caller wants to know */
    uint32_t depth, limit;
    uint64_t left; /* remaining number of nodes */
} inliner;

/* ---- which functions ---- */

static bool is_named(const onx_inline_options *options, const onx_function *f)
{
    for (uint32_t i = 0; i < options->function_count; i++)
        if (onx_str_equal(options->function[i].name, onx_view(f->name)) &&
            onx_str_equal(onxi_domain_plain(options->function[i].domain), onxi_domain_plain(onx_view(f->domain))))
            return true;
    return false;
}

/* A name without a function in the model is an error of the caller. */
static onx_status check_names(inliner *n)
{
    for (uint32_t i = 0; i < n->options->function_count; i++) {
        const onx_function_name *name = &n->options->function[i];
        bool found = false;
        for (uint32_t k = 0; k < n->model->functions_count && !found; k++)
            found = onx_str_equal(name->name, onx_view(n->model->functions[k]->name)) &&
                    onx_str_equal(onxi_domain_plain(name->domain),
                                  onxi_domain_plain(onx_view(n->model->functions[k]->domain)));
        if (!found)
            return onxi_fail(n->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no function %.*s.%.*s",
                             ONX_ARG(name->domain), ONX_ARG(name->name));
    }
    return ONX_OK;
}

static onx_status choose(inliner *n)
{
    ONX_TRY(check_names(n));
    n->chosen = ONXI_ARRAY(n->scratch, bool, (size_t)n->model->functions_count + 1);
    n->open = ONXI_ARRAY(n->scratch, bool, (size_t)n->model->functions_count + 1);
    if (!n->chosen || !n->open)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < n->model->functions_count; i++) {
        const bool named = is_named(n->options, n->model->functions[i]);
        const bool unnamed = i < n->own || n->options->schema; /* is it inlined without being named? */
        n->chosen[i] = n->options->exclude ? unnamed && !named : n->options->function_count ? named : unnamed;
    }
    return ONX_OK;
}

/* ---- one call ---- */

/* The argument values of a call: its attributes, else the defaults of the function. References to parameters of the
 * enclosing function remain references. */
typedef struct arguments {
    onxi_dict by_name; /* indexes of values */
    const onx_attribute **values;
    uint32_t room;
} arguments;

static onx_status add_argument(inliner *n, arguments *a, const onx_attribute *value)
{
    bool made;
    onxi_dict_entry *entry = onxi_dict_at(&a->by_name, onx_view(value->name), a->by_name.count, &made);
    if (!entry || !ONXI_GROW_IN(n->scratch, a->values, a->room, a->by_name.count))
        return ONX_E_MEMORY;
    if (made)
        a->values[entry->value] = value;
    return ONX_OK;
}

static onx_status read_arguments(inliner *n, const onx_node *node, const onx_function *f, arguments *a)
{
    *a = (arguments){ .by_name = onxi_dict_in_arena(n->scratch) };
    for (uint32_t i = 0; i < node->attribute_count; i++)
        ONX_TRY(add_argument(n, a, node->attribute[i]));
    for (uint32_t i = 0; i < f->attribute_proto_count; i++)
        ONX_TRY(add_argument(n, a, f->attribute_proto[i]));
    return ONX_OK;
}

static const onx_attribute *argument(void *user, onx_str name, int32_t type)
{
    const arguments *a = user;
    const onxi_dict_entry *entry = onxi_dict_find(&a->by_name, name);
    (void)type;
    return entry ? a->values[entry->value] : NULL;
}

static onx_status inline_node(inliner *n, onx_node *node, onxi_node_list *out, bool *changed);

/* Handles an output of the function that is one of its inputs, or the same as another output. */
static onx_status hand_on(inliner *n, const onx_node *call, const onx_function *f, onxi_node_list *out)
{
    onxi_dict known = onxi_dict_in_arena(n->scratch);
    for (uint32_t i = 0; i < f->input_count; i++)
        if (!onxi_dict_at(&known, onx_view(f->input[i]), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < f->output_count && i < call->output_count; i++) {
        bool made;
        const onxi_dict_entry *entry = onxi_dict_at(&known, onx_view(f->output[i]), f->input_count + i, &made);
        if (!entry)
            return ONX_E_MEMORY;
        if (made || !onx_view(call->output[i]).len)
            continue;
        const uint32_t at = entry->value;
        onx_node *node = onx_message_new(n->arena, ONX_KIND_NODE);
        if (!node || onx_arena_keep(n->arena, onx_str_of("Identity"), &node->op_type) != ONX_OK)
            return ONX_E_MEMORY;
        node->has |= onx_node_has_op_type;
        const onx_bytes from = at >= f->input_count     ? call->output[at - f->input_count]
                               : at < call->input_count ? call->input[at]
                                                        : (onx_bytes){ 0 };
        ONX_TRY(onx_list_add_text(n->arena, &node->input, &node->input_count, onx_view(from)));
        ONX_TRY(onx_list_add_text(n->arena, &node->output, &node->output_count, onx_view(call->output[i])));
        ONX_TRY(onxi_node_list_add(n->scratch, out, node));
    }
    return ONX_OK;
}

static onx_status inline_call(inliner *n, onx_node *node, uint32_t function, onxi_node_list *out)
{
    const onx_function *f = n->model->functions[function];
    arguments a;
    const onx_str name = onx_view(node->name), first = node->output_count ? onx_view(node->output[0]) : (onx_str){ 0 };
    if (n->open[function])
        return onxi_fail(n->cx, ONX_E_INVALID, ONXI_NOWHERE, "function %.*s calls itself: its body has no end",
                         ONX_ARG(onx_view(f->name)));
    if (++n->depth > n->limit)
        return onxi_fail(n->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "calls and subgraphs are nested more than %u deep (limit depth)", n->limit);
    n->open[function] = true;
    ONX_TRY(read_arguments(n, node, f, &a));
    onxi_expansion x = onxi_expansion_of(&n->names, f, node, name.len ? name : first);
    x.argument = argument;
    x.user = &a;
    x.left = &n->left;
    ONX_TRY(onxi_expand(&x));
    onxi_tell_change(n->options->changed, n->options->user, "inline", "call", n->path,
                     "function %.*s: %u nodes in its place", ONX_ARG(onx_view(f->name)), f->node_count);
    for (uint32_t i = 0; i < f->node_count; i++) {
        bool changed;
        ONX_TRY(inline_node(n, x.nodes[i], out, &changed));
    }
    ONX_TRY(hand_on(n, node, f, out));
    n->open[function] = false;
    n->depth--;
    return ONX_OK;
}

/* ---- graphs ---- */

static onx_status inline_list(inliner *n, onx_str prefix, onx_node ***nodes, uint32_t *count)
{
    onxi_node_list out = { 0 };
    bool any = false;
    for (uint32_t i = 0; i < *count; i++) {
        bool changed;
        if (n->options->changed)
            n->path = onxi_path_node(n->scratch, prefix, i, (*nodes)[i]);
        ONX_TRY(inline_node(n, (*nodes)[i], &out, &changed));
        any |= changed;
    }
    return any ? onxi_node_list_keep(n->arena, &out, nodes, count) : ONX_OK;
}

static onx_status inline_graphs(inliner *n, const onx_node *node)
{
    const onx_str path = n->path;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        const bool holds = a->slot == ONX_SLOT_G || a->slot == ONX_SLOT_GRAPHS;
        const onx_str prefix =
            holds && n->options->changed ? onxi_path_subgraph(n->scratch, path, node, a) : (onx_str){ 0 };
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(inline_list(n, prefix, &a->g->node, &a->g->node_count));
        for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
            ONX_TRY(inline_list(n, prefix, &a->graphs[k]->node, &a->graphs[k]->node_count));
    }
    n->path = path;
    return ONX_OK;
}

static onx_status inline_node(inliner *n, onx_node *node, onxi_node_list *out, bool *changed)
{
    uint32_t index;
    const onx_function *f = onxi_functions_find(&n->functions, onx_view(node->domain), onx_view(node->op_type),
                                                onx_view(onx_node_more(node)->overload), &index);
    *changed = f && n->chosen[index];
    if (*changed)
        return inline_call(n, node, index, out);
    if (++n->depth > n->limit)
        return onxi_fail(n->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "calls and subgraphs are nested more than %u deep (limit depth)", n->limit);
    ONX_TRY(inline_graphs(n, node));
    n->depth--;
    return onxi_node_list_add(n->scratch, out, node);
}

/* ---- the model ---- */

/* Removes the functions whose calls were all replaced, and adds their imports; and those of documents that stay. */
static onx_status drop_functions(inliner *n)
{
    onx_model *model = n->model;
    uint32_t kept = 0;
    onxi_dict imported = onxi_dict_in_arena(n->scratch);
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        if (!onxi_dict_at(&imported, onxi_domain_plain(onx_view(model->opset_import[i]->domain)), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < model->functions_count; i++) {
        onx_function *f = model->functions[i];
        if (!n->chosen[i]) {
            if (i < n->own) /* calls of the others mean the operators of the documents, as before */
                model->functions[kept++] = f;
            continue;
        }
        for (uint32_t k = 0; k < f->opset_import_count; k++) {
            const onx_str domain = onxi_domain_plain(onx_view(f->opset_import[k]->domain));
            bool made;
            if (!onxi_dict_at(&imported, domain, 0, &made))
                return ONX_E_MEMORY;
            onx_operator_set_id *id = made ? ONX_ADD(n->arena, model, opset_import, OPERATOR_SET_ID) : NULL;
            if (!made)
                continue;
            if (!id)
                return ONX_E_MEMORY;
            id->domain = f->opset_import[k]->domain;
            id->has |= onx_operator_set_id_has_domain;
            ONX_SET(operator_set_id, id, version, f->opset_import[k]->version);
        }
    }
    model->functions_count = kept;
    return ONX_OK;
}

/* Converts functions that import another version of an operator set to the model's version first. */
static onx_status agree_on_versions(inliner *n, onx_doc *doc)
{
    onxi_imports imports;
    onx_opset_version wanted[ONXI_RETARGET_DOMAINS];
    uint32_t count = 0;
    bool differ = false;
    ONX_TRY(onxi_imports_open(&imports, n->scratch, n->model->opset_import, n->model->opset_import_count,
                              onxi_model_is_legacy(n->model)));
    for (uint32_t d = 0; d < ONXI_RETARGET_DOMAINS; d++) {
        const onx_str domain = onx_str_of(onxi_versioned_domains[d]);
        const int64_t version = onxi_imports_version(&imports, domain);
        if (version < 1)
            continue;
        wanted[count++] = (onx_opset_version){ domain, version };
        for (uint32_t i = 0; i < n->model->functions_count && !differ; i++) {
            onxi_imports own;
            const onx_function *f = n->model->functions[i];
            if (!n->chosen[i])
                continue;
            ONX_TRY(onxi_imports_open(&own, n->scratch, f->opset_import, f->opset_import_count, false));
            const int64_t has = onxi_imports_version(&own, domain);
            differ = has > 0 && has != version;
        }
    }
    const onx_retarget_options options = { .struct_size = sizeof options, .opset = wanted, .opset_count = count };
    return differ ? onx_retarget(n->cx, doc, &options) : ONX_OK;
}

static onx_status run(inliner *n, onx_doc *doc)
{
    onx_model *model = n->model;
    int64_t newest;
    n->own = model->functions_count;
    if (n->options->schema || n->options->function_count)
        ONX_TRY(onxi_adopt_functions(n->cx, doc, n->scratch, &newest));
    ONX_TRY(choose(n));
    ONX_TRY(agree_on_versions(n, doc));
    ONX_TRY(onxi_functions_index(n->scratch, model->functions, model->functions_count, &n->functions));
    if (model->graph)
        ONX_TRY(inline_list(n, onx_str_of("graph."), &model->graph->node, &model->graph->node_count));
    for (uint32_t i = 0; i < model->training_info_count; i++) {
        onx_training_info *info = model->training_info[i];
        if (info->initialization)
            ONX_TRY(inline_list(n, onxi_arena_printf(n->scratch, "training_info[%u].initialization.", i),
                                &info->initialization->node, &info->initialization->node_count));
        if (info->algorithm)
            ONX_TRY(inline_list(n, onxi_arena_printf(n->scratch, "training_info[%u].algorithm.", i),
                                &info->algorithm->node, &info->algorithm->node_count));
    }
    for (uint32_t i = 0; i < model->functions_count; i++)
        if (!n->chosen[i])
            ONX_TRY(inline_list(n, onxi_arena_printf(n->scratch, "functions[%u].", i), &model->functions[i]->node,
                                &model->functions[i]->node_count));
    return drop_functions(n);
}

/* ---- domains that were decomposed ---- */

typedef struct domain_use {
    onx_str domain;
    bool used;
} domain_use;

static onx_status note_domain(void *user, const onx_visit *at)
{
    domain_use *use = user;
    const onx_node *node = at->kind == ONX_KIND_NODE ? at->message : NULL;
    const onx_function *f = at->kind == ONX_KIND_FUNCTION ? at->message : NULL;
    if (node || f)
        use->used |= onx_str_equal(onxi_domain_plain(onx_view(node ? node->domain : f->domain)), use->domain);
    return ONX_OK;
}

static void drop_from(onx_operator_set_id **list, uint32_t *count, onx_str domain)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (!onx_str_equal(onxi_domain_plain(onx_view(list[i]->domain)), domain))
            list[kept++] = list[i];
    *count = kept;
}

/* Removes imports of domains that are not used any more. */
static onx_status drop_import(onx_ctx *cx, onx_model *model, onx_str domain)
{
    domain_use use = { .domain = onxi_domain_plain(domain) };
    ONX_TRY(onx_message_walk(cx, ONX_KIND_MODEL, model, note_domain, &use));
    if (use.used || !use.domain.len)
        return ONX_OK;
    drop_from(model->opset_import, &model->opset_import_count, use.domain);
    for (uint32_t i = 0; i < model->functions_count; i++)
        drop_from(model->functions[i]->opset_import, &model->functions[i]->opset_import_count, use.domain);
    return ONX_OK;
}

static onx_status inline_functions(onx_ctx *cx, onx_doc *doc, const onx_inline_options *options)
{
    onx_arena *scratch;
    onx_model *model = onx_doc_model(doc);
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    ONX_TRY(onxi_doc_warn_of_cycle(doc, ONXI_CYCLE_STAYS));
    ONX_TRY(onx_arena_new(cx, &scratch));
    inliner n = { .cx = cx,
                  .arena = onx_doc_arena(doc),
                  .scratch = scratch,
                  .model = model,
                  .options = options,
                  .names = { .scratch = scratch, .arena = onx_doc_arena(doc), .model = model },
                  .limit = onx_ctx_limits(cx).depth,
                  .left = onxi_calls_limit(model) };
    onx_status status = run(&n, doc);
    onx_arena_free(scratch);
    if (status != ONX_OK || (!options->schema && !options->domain.len))
        return status;
    ONX_TRY(onxi_retarget_bodies(cx, doc, options));
    return options->domain.len ? drop_import(cx, onx_doc_model(doc), options->domain) : ONX_OK;
}

onx_status onx_inline(onx_ctx *cx, onx_doc *doc, const onx_inline_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_inline_options, own, options);
    ONXI_NEED(cx, own.function || !own.function_count);
    ONXI_TRANSFORM(cx, doc, inline_functions(cx, doc, &own));
}
