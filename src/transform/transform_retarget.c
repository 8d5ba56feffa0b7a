/* transform_retarget.c - converts a model to other versions of its operator sets: the traversal of graphs and
 * functions. The model is only changed after all conversions are known to be possible. */
#include "transform/transform_retarget.h"

/* ---- plans per operator name ---- */

bool onxi_retarget_takes_body(const onxi_retarget *r, onxi_op_id op, const onxi_schema *row)
{
    const char *domain = onxi_schema_domain(row);
    if (!r->bodies_only || !onxi_schema_is_composed(row) || op == ONXI_ID_NONE)
        return false;
    if (onxi_operator_is_standard(op))
        return r->bodies_schema;
    return r->bodies_of.len &&
           (!*domain || onx_str_is(r->bodies_of, domain) || onx_str_is(r->bodies_of, ONXI_EVERY_DOMAIN));
}

bool onxi_retarget_succeeded(const onxi_retarget *r, onxi_op_id op, onx_str name, onxi_versioned domain)
{
    const int64_t target = r->target.of[domain];
    if (!target || op == ONXI_ID_NONE || onxi_operator_is_standard(op))
        return false;
    const onxi_operator *then = onxi_operator_at(onx_str_of(onxi_versioned_domains[domain]), name, target);
    return then && onxi_operator_id(then) != op;
}

enum { PLAN_NEW, PLAN_KEEP, PLAN_CONVERT, PLAN_UNKNOWN };
enum { PLAN_MASK = 3, PLAN_GRAPHS = 4 };

/* ---- graphs and functions ---- */

/* The plan for the nodes of one name, stored in the binder's `more`. */
static uintptr_t plan_of(onxi_retarget *r, const onxi_bound *bound)
{
    const onxi_versioned domain = onxi_versioned_of(bound->domain);
    uintptr_t graphs = PLAN_GRAPHS;
    if (bound->kind == ONXI_BOUND_OPERATOR && onxi_retarget_takes_body(r, bound->op, bound->schema))
        return PLAN_CONVERT | graphs;
    if (domain != ONXI_VERSIONED_COUNT &&
        (bound->kind == ONXI_BOUND_NOTHING || (bound->kind == ONXI_BOUND_OPERATOR && bound->op == ONXI_ID_NONE &&
                                               r->newer.of[domain] && bound->schema->since > r->source.of[domain])))
        return PLAN_UNKNOWN | graphs;
    if (bound->kind == ONXI_BOUND_FUNCTION || domain == ONXI_VERSIONED_COUNT || bound->op == ONXI_ID_NONE)
        return PLAN_KEEP | graphs;
    const onxi_schema *row = bound->schema, *to;
    const int64_t at = r->source.of[domain];
    graphs = 0;
    for (const onxi_attr *a = row->attrs; a && a->name; a++)
        if (a->type == ONX_ATTR_GRAPH || a->type == ONX_ATTR_GRAPHS)
            graphs = PLAN_GRAPHS;
    const int64_t target = r->target.of[domain];
    if (onxi_retarget_succeeded(r, bound->op, bound->name, domain))
        return PLAN_CONVERT | graphs;
    if (at == target || !target || !onxi_retarget_next(onxi_operator_of(bound->op), row, at, target, &to))
        return PLAN_KEEP | graphs;
    return PLAN_CONVERT | graphs;
}

static onx_status put_aside(onxi_retarget *r, const onxi_node_list *out, onx_graph *graph, onx_function *function)
{
    onxi_pending *p = ONXI_NEW(r->scratch, onxi_pending);
    if (!p)
        return ONX_E_MEMORY;
    *p = (onxi_pending){ .next = r->pending, .graph = graph, .function = function };
    ONX_TRY(onxi_node_list_keep(r->arena, out, &p->nodes, &p->count));
    r->pending = p;
    return ONX_OK;
}

/* Of a set that is newer than the newest known. */
static onx_status refuse_newer(onxi_retarget *r, const onx_node *node, const onxi_bound *bound)
{
    const onxi_versioned domain = onxi_versioned_of(bound->domain);
    if (!bound->schema)
        return onxi_retarget_fail(r, node, NULL, "%s has no operator %.*s up to version %lld, the newest known",
                                  onxi_versioned_names[domain], ONX_ARG(bound->name), (long long)r->source.of[domain]);
    return onxi_retarget_fail(r, node,
                              onxi_schema_body(bound->schema) ? "onx inline --schema replaces it by its body" : NULL,
                              "the given operator set defines %.*s in version %d, and no older operators for it",
                              ONX_ARG(bound->name), bound->schema->since);
}

static onx_status walk_node(onxi_retarget *r, onxi_scope *scope, onxi_binder *binder, onx_node *node, onxi_versions at,
                            onxi_node_list *out, bool *kept)
{
    onxi_bound *bound = binder ? onxi_bind(binder, node) : NULL;
    uintptr_t plan = PLAN_CONVERT | PLAN_GRAPHS;
    if (binder && !bound)
        return ONX_E_MEMORY;
    if (bound && !bound->more)
        bound->more = (void *)plan_of(r, bound);
    if (bound)
        plan = (uintptr_t)bound->more;
    *kept = (plan & PLAN_MASK) != PLAN_CONVERT;
    if ((plan & PLAN_MASK) == PLAN_UNKNOWN && !r->bodies_only && r->newer.of[onxi_versioned_of(bound->domain)])
        ONX_TRY(refuse_newer(r, node, bound));
    else if ((plan & PLAN_MASK) == PLAN_UNKNOWN && !r->bodies_only) /* it may exist with the same meaning in the target
                                                                     * version */
        onxi_warn(r->cx, ONX_WARNING, NULL, ONXI_AT_PATH(onxi_retarget_path(r)),
                  bound->import == ONXI_UNBOUND ? "domain %s is not imported: the node is not changed"
                                                : "domain %s has no operator of that name: the node is not changed",
                  onxi_versioned_names[onxi_versioned_of(bound->domain) == ONXI_ML]);
    if (*kept)
        return plan & PLAN_GRAPHS ? onxi_retarget_graphs(r, scope, node, at) : ONX_OK;
    return onxi_retarget_convert(r, scope, node, at, out);
}

/* Nodes are copied to a new list from the first changed one on. `more`: to be added at the end. */
static onx_status walk(onxi_retarget *r, onxi_scope *scope, onxi_binder *binder, onxi_versions at, onx_graph *graph,
                       onx_function *function, const onxi_node_list *more)
{
    onxi_node_list out = { 0 };
    bool changed = false;
    for (uint32_t i = 0; i < scope->node_count; i++) {
        onx_node *node = scope->nodes[i];
        const uint32_t before = out.count;
        bool kept;
        r->at = node;
        r->at_index = i;
        r->path = (onx_str){ 0 };
        ONX_TRY(walk_node(r, scope, binder, node, at, &out, &kept));
        if (kept && changed)
            ONX_TRY(onxi_node_list_add(r->scratch, &out, node));
        if (kept || (!changed && out.count == 1 && out.items[0] == node)) {
            if (!changed)
                out.count = 0;
            continue;
        }
        if (changed)
            continue;
        onxi_node_list all = { 0 };
        ONX_TRY(onxi_node_list_add_all(r->scratch, &all, scope->nodes, i));
        ONX_TRY(onxi_node_list_add_all(r->scratch, &all, before ? out.items + before : out.items, out.count - before));
        out = all;
        changed = true;
    }
    if (more->count && !changed)
        ONX_TRY(onxi_node_list_add_all(r->scratch, &out, scope->nodes, scope->node_count));
    ONX_TRY(onxi_node_list_add_all(r->scratch, &out, more->items, more->count));
    return changed || more->count ? put_aside(r, &out, graph, function) : ONX_OK;
}

/* An output that is a captured value is passed through an Identity: older libraries accept it, but checkers of newer
 * versions report an error. */
static onx_status own_outputs(onxi_retarget *r, onx_graph *graph, onxi_node_list *more)
{
    onxi_dict known = onxi_dict_in_arena(r->scratch);
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!onxi_dict_at(&known, onx_view(graph->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (!onxi_dict_at(&known, onx_view(graph->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->sparse_initializer_count; i++)
        if (graph->sparse_initializer[i]->values &&
            !onxi_dict_at(&known, onx_view(graph->sparse_initializer[i]->values->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++)
            if (!onxi_dict_at(&known, onx_view(graph->node[i]->output[k]), 0, NULL))
                return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        onx_value_info *output = graph->output[i];
        if (!onx_view(output->name).len || onxi_dict_find(&known, onx_view(output->name)))
            continue;
        onx_bytes name;
        onxi_handed *h = ONXI_NEW(r->scratch, onxi_handed);
        ONX_TRY(onxi_names_make(&r->names, onx_view(output->name), onx_str_of("out"), &name));
        onx_node *node = onxi_make_node(r, "Identity", output->name, name);
        if (!node || !h)
            return ONX_E_MEMORY;
        *h = (onxi_handed){ r->handed, output, name };
        r->handed = h;
        ONX_TRY(onxi_node_list_add(r->scratch, more, node));
    }
    return ONX_OK;
}

static onx_status convert_graph(onxi_retarget *r, onxi_scope *scope, const onx_node *node, const onx_attribute *a,
                                onx_graph *graph, onxi_versions at)
{
    void **seen = graph ? onxi_map_at(&r->done, (uint64_t)(uintptr_t)graph) : NULL;
    if (!graph || (seen && *seen))
        return ONX_OK;
    onxi_scope *inner = ONXI_NEW(r->scratch, onxi_scope);
    if (!seen || !inner)
        return ONX_E_MEMORY;
    *seen = graph;
    *inner = (onxi_scope){ .parent = scope, .graph = graph, .nodes = graph->node, .node_count = graph->node_count };
    const onx_str prefix = r->prefix, path = onxi_retarget_path(r);
    const onx_node *outer = r->at;
    const uint32_t index = r->at_index;
    r->prefix = onxi_path_subgraph(r->scratch, path, node, a);
    /* The nodes of a body that replaces a node use another version than the model. */
    const bool same = memcmp(&at, &r->source, sizeof at) == 0;
    if (++r->depth > r->limit)
        return onxi_fail(r->cx, ONX_E_LIMIT, ONXI_AT_PATH(path), "subgraphs are nested more than %u deep (limit depth)",
                         r->limit);
    onxi_node_list more = { 0 };
    ONX_TRY(own_outputs(r, graph, &more));
    ONX_TRY(walk(r, inner, same ? r->binder : NULL, at, graph, NULL, &more));
    r->depth--;
    r->prefix = prefix;
    r->path = path;
    r->at = outer;
    r->at_index = index;
    return ONX_OK;
}

onx_status onxi_retarget_graphs(onxi_retarget *r, onxi_scope *scope, const onx_node *node, onxi_versions at)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_G)
            ONX_TRY(convert_graph(r, scope, node, a, a->g, at));
        for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
            ONX_TRY(convert_graph(r, scope, node, a, a->graphs[k], at));
    }
    return ONX_OK;
}

static onxi_versions imported(const onxi_binder *binder)
{
    onxi_versions v;
    for (int d = 0; d < ONXI_VERSIONED_COUNT; d++) {
        const int64_t version = onxi_imports_version(&binder->imports, onx_str_of(onxi_versioned_domains[d]));
        v.of[d] = version < 0 ? 0 : version;
    }
    return v;
}

/* A version newer than the newest known is taken to be that one: nodes whose operators it does not have, or which a
 * registry defines anew, are refused one by one. */
static void clamp_source(onxi_retarget *r)
{
    for (int d = 0; d < ONXI_VERSIONED_COUNT; d++) {
        const int64_t newest = onxi_domain_newest(onx_str_of(onxi_versioned_domains[d]));
        r->newer.of[d] = 0;
        if (r->source.of[d] <= newest)
            continue;
        r->newer.of[d] = r->wanted.of[d] ? r->source.of[d] : 0;
        r->source.of[d] = newest;
        r->left_newer |= r->wanted.of[d] && r->wanted.of[d] <= newest;
    }
}

/* A domain without a requested version is not converted. */
static void settle_target(onxi_retarget *r)
{
    for (int d = 0; d < ONXI_VERSIONED_COUNT; d++) {
        const int64_t newest = onxi_domain_newest(onx_str_of(onxi_versioned_domains[d]));
        r->target.of[d] = r->wanted.of[d] > newest ? newest : r->wanted.of[d] ? r->wanted.of[d] : r->source.of[d];
    }
}

static onx_status walk_scope(onxi_retarget *r, onxi_binder *binder, onx_graph *graph, onx_function *function,
                             onx_str prefix)
{
    onxi_scope scope = { .graph = graph,
                         .nodes = graph ? graph->node : function->node,
                         .node_count = graph ? graph->node_count : function->node_count };
    r->prefix = prefix;
    r->source = imported(binder);
    clamp_source(r);
    settle_target(r);
    r->binder = binder;
    return walk(r, &scope, binder, r->source, graph, function, &(onxi_node_list){ 0 });
}

static onx_status walk_functions(onxi_retarget *r, onx_model *model)
{
    for (uint32_t i = 0; i < model->functions_count; i++) {
        onxi_binder *binder = ONXI_NEW(r->scratch, onxi_binder);
        if (!binder)
            return ONX_E_MEMORY;
        *binder = (onxi_binder){ .arena = r->scratch, .functions = &r->functions };
        ONX_TRY(onxi_binder_open_body(binder, model->functions[i]));
        ONX_TRY(walk_scope(r, binder, NULL, model->functions[i], onxi_arena_printf(r->scratch, "functions[%u].", i)));
    }
    return ONX_OK;
}

static onx_status walk_model(onxi_retarget *r, onx_model *model, onxi_binder *binder)
{
    if (model->graph)
        ONX_TRY(walk_scope(r, binder, model->graph, NULL, onx_str_of("graph.")));
    for (uint32_t i = 0; i < model->training_info_count; i++) {
        const onx_training_info *info = model->training_info[i];
        if (info->initialization)
            ONX_TRY(walk_scope(r, binder, info->initialization, NULL,
                               onxi_arena_printf(r->scratch, "training_info[%u].initialization.", i)));
        if (info->algorithm)
            ONX_TRY(walk_scope(r, binder, info->algorithm, NULL,
                               onxi_arena_printf(r->scratch, "training_info[%u].algorithm.", i)));
    }
    return walk_functions(r, model);
}

/* ---- the pass ---- */

/* A version that is newer than the newest known can be asked for only where the model has it: for its functions. */
static onx_status read_options(onxi_retarget *r, const onxi_imports *imports)
{
    for (uint32_t i = 0; i < r->options->opset_count; i++) {
        const onx_opset_version *v = &r->options->opset[i];
        const onxi_versioned d = onxi_versioned_of(v->domain);
        const int64_t newest = d < ONXI_VERSIONED_COUNT ? onxi_domain_newest(onx_str_of(onxi_versioned_domains[d])) : 0;
        if (d == ONXI_VERSIONED_COUNT)
            return onxi_fail(r->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                             "nothing is known about the versions of domain %.*s", ONX_ARG(v->domain));
        if (v->version < 1 || (v->version > newest && v->version != onxi_imports_version(imports, v->domain)))
            return onxi_fail(r->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "version %lld of %s is not known, only 1 to %lld",
                             (long long)v->version, onxi_versioned_names[d], (long long)newest);
        r->wanted.of[d] = v->version;
    }
    if (r->options->ir_version < 0 || r->options->ir_version > ONXI_IR_VERSION ||
        (r->options->ir_version && r->options->ir_version < 3))
        return onxi_fail(r->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "IR version %lld is none of 3 to %d",
                         (long long)r->options->ir_version, ONXI_IR_VERSION);
    return ONX_OK;
}

static onx_status index_steps(onxi_retarget *r)
{
    r->first = ONXI_ARRAY(r->scratch, uint16_t, ONXI_ID_END);
    r->next = ONXI_ARRAY(r->scratch, uint16_t, (size_t)onxi_step_count + 1);
    r->assumed = ONXI_ARRAY(r->scratch, onxi_assumed, (size_t)onxi_step_count + 1);
    if (!r->first || !r->next || !r->assumed)
        return ONX_E_MEMORY;
    for (uint32_t i = onxi_step_count; i-- > 0;) {
        r->next[i] = r->first[onxi_steps[i].op];
        r->first[onxi_steps[i].op] = (uint16_t)(i + 1);
    }
    return ONX_OK;
}

/* One warning for all nodes that took the same step. */
static void tell_assumed(const onxi_retarget *r)
{
    for (uint32_t i = 0; i < onxi_step_count; i++)
        if (r->assumed[i].count)
            onxi_warn(r->cx, ONX_WARNING, NULL, ONXI_NOWHERE, "%u %s node%s: %s (the first is %.*s)",
                      r->assumed[i].count, r->assumed[i].op, r->assumed[i].count == 1 ? "" : "s", onxi_steps[i].assumes,
                      ONX_ARG(r->assumed[i].first));
}

static onx_status run(onxi_retarget *r, onx_model *model)
{
    onxi_binder *binder = ONXI_NEW(r->scratch, onxi_binder);
    if (!binder || !(r->texts = ONXI_ARRAY(r->scratch, const onx_function *, (size_t)onxi_step_count + 1)))
        return ONX_E_MEMORY;
    ONX_TRY(index_steps(r));
    ONX_TRY(onxi_functions_index(r->scratch, model->functions, model->functions_count, &r->functions));
    *binder = (onxi_binder){ .arena = r->scratch, .functions = &r->functions };
    ONX_TRY(onxi_binder_open_model(binder, model));
    ONX_TRY(read_options(r, &binder->imports));
    r->imports_ml = onxi_imports_version(&binder->imports, onx_str_of(onxi_versioned_domains[ONXI_ML])) > 0;
    ONX_TRY(onxi_values_open(&r->values, r->doc, r->scratch));
    r->values.takes_defaults = true; /* what older versions have as attributes */
    ONX_TRY(walk_model(r, model, binder));
    if (!r->bodies_only && !r->values.inferred) /* not warned yet */
        ONX_TRY(onxi_doc_warn_of_cycle(r->doc, ONXI_CYCLE_STAYS));
    ONX_TRY(onxi_retarget_check_ir(r, model));
    ONX_TRY(r->values.status);
    if (r->failed && !r->options->best_effort)
        return ONX_E_UNSUPPORTED;
    tell_assumed(r);
    return r->options->dry_run ? ONX_OK : onxi_retarget_apply(r, model);
}

static onx_status retarget(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options, const onxi_retarget *bodies)
{
    onx_model *model = onx_doc_model(doc);
    onx_arena *scratch;
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_retarget r = { .cx = cx,
                        .doc = doc,
                        .arena = onx_doc_arena(doc),
                        .scratch = scratch,
                        .options = options,
                        .bodies_only = bodies != NULL,
                        .bodies_schema = bodies && bodies->bodies_schema,
                        .bodies_of = bodies ? bodies->bodies_of : (onx_str){ 0 },
                        .names = { .scratch = scratch, .arena = onx_doc_arena(doc), .model = model },
                        .captured = onxi_dict_in_arena(scratch),
                        .bodies = onxi_map_in_arena(scratch),
                        .done = onxi_map_in_arena(scratch),
                        .limit = onx_ctx_limits(cx).depth };
    const onx_status status = run(&r, model);
    onxi_values_close(&r.values);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_retarget(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_retarget_options, own, options);
    ONXI_NEED(cx, own.opset || !own.opset_count);
    ONXI_TRANSFORM_TO(cx, doc, &doc, 1, own.best_effort, retarget(cx, doc, &own, NULL));
}

/* A model without an import of standard operators needs one for the bodies. */
static onx_status import_standard(onx_model *model, onx_arena *arena)
{
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        if (!onxi_domain_plain(onx_view(model->opset_import[i]->domain)).len)
            return ONX_OK;
    onx_operator_set_id *import = ONX_ADD(arena, model, opset_import, OPERATOR_SET_ID);
    if (!import)
        return ONX_E_MEMORY;
    ONX_SET(operator_set_id, import, version, 17);
    return ONX_OK;
}

onx_status onxi_retarget_bodies(onx_ctx *cx, onx_doc *doc, const onx_inline_options *wanted)
{
    const onx_str domain = wanted->domain;
    const onx_retarget_options options = { .changed = wanted->changed, .user = wanted->user };
    const onxi_retarget bodies = { .bodies_schema = wanted->schema, .bodies_of = domain };
    if (domain.len && !onx_str_is(domain, ONXI_EVERY_DOMAIN) && !onxi_domain_newest(domain))
        return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no operators of domain %.*s are known", ONX_ARG(domain));
    if (domain.len && onx_doc_model(doc))
        ONX_TRY(import_standard(onx_doc_model(doc), onx_doc_arena(doc)));
    return retarget(cx, doc, &options, &bodies);
}

onx_status onxi_retarget_at_least(onx_ctx *cx, onx_doc *doc, int64_t opset)
{
    const onx_model *model = onx_doc_model(doc);
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        if (!onxi_domain_plain(onx_view(model->opset_import[i]->domain)).len &&
            model->opset_import[i]->version < opset) {
            const onx_opset_version version = { onx_str_of(""), opset };
            const onx_retarget_options to = { .struct_size = sizeof to, .opset = &version, .opset_count = 1 };
            return onx_retarget(cx, doc, &to);
        }
    return ONX_OK;
}
