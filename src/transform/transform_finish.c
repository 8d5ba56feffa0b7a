/* transform_finish.c - stores the new nodes in the model, and updates imports, IR version and types. */
#include "infer/infer.h"
#include "transform/transform_retarget.h"

/* ---- imports and IR version ---- */

/* One entry per domain, with the version, if the domain is imported or `always`. */
static onx_status set_import(onxi_retarget *r, onx_operator_set_id ***entries, uint32_t *count, onxi_versioned domain,
                             bool always)
{
    onx_operator_set_id **items = *entries;
    uint32_t kept = 0;
    bool found = false;
    for (uint32_t i = 0; i < *count; i++) {
        if (onxi_versioned_of(onx_view(items[i]->domain)) == domain) {
            if (found)
                continue;
            found = true;
            ONX_SET(operator_set_id, items[i], version, r->wanted.of[domain]);
        }
        items[kept++] = items[i];
    }
    *count = kept;
    if (found || !always)
        return ONX_OK;
    onx_operator_set_id *id =
        onx_list_add_message(r->arena, (void ***)(void *)entries, count, ONX_KIND_OPERATOR_SET_ID);
    if (!id || onx_arena_keep(r->arena, onx_str_of(onxi_versioned_domains[domain]), &id->domain) != ONX_OK)
        return ONX_E_MEMORY;
    id->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, id, version, r->wanted.of[domain]);
    return ONX_OK;
}

static onx_status set_imports(onxi_retarget *r, onx_model *model)
{
    for (onxi_versioned d = 0; d < ONXI_VERSIONED_COUNT; d++) {
        if (!r->wanted.of[d])
            continue;
        ONX_TRY(set_import(r, &model->opset_import, &model->opset_import_count, d, d == ONXI_DEFAULT));
        for (uint32_t i = 0; i < model->functions_count; i++)
            ONX_TRY(
                set_import(r, &model->functions[i]->opset_import, &model->functions[i]->opset_import_count, d, false));
    }
    return ONX_OK;
}

/* The smallest IR version for the features of the model, and the feature that requires it. */
static int64_t needed_ir(const onxi_retarget *r, const onx_model *model, const char **what)
{
    int64_t least = 3;
    *what = "imports of operator sets";
    for (int d = 0; d < ONXI_VERSIONED_COUNT; d++) {
        const int64_t ir = r->wanted.of[d] && (d == ONXI_DEFAULT || r->imports_ml)
                               ? onxi_import_ir_version(onx_str_of(onxi_versioned_domains[d]), r->wanted.of[d])
                               : 0;
        if (ir > least) {
            least = ir;
            *what = "the version of an operator set";
        }
    }
    if (model->configuration_count && least < 11) {
        least = 11;
        *what = "device configurations";
    }
    if (model->functions_count && least < 8) {
        least = 8;
        *what = "functions";
    }
    if (model->training_info_count && least < 7) {
        least = 7;
        *what = "training information";
    }
    if (model->graph && model->graph->sparse_initializer_count && least < 6) {
        least = 6;
        *what = "sparse initializers";
    }
    if (model->graph && model->graph->quantization_annotation_count && least < 5) {
        least = 5;
        *what = "quantization annotations";
    }
    return least;
}

/* A default of an input would become a constant. */
static onx_status check_defaults(onxi_retarget *r, const onx_model *model)
{
    const onx_graph *graph = model->graph;
    onxi_dict defaults = onxi_dict_in_arena(r->scratch);
    for (uint32_t i = 0; graph && i < graph->initializer_count; i++)
        if (!onxi_dict_at(&defaults, onx_view(graph->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; graph && i < graph->input_count; i++)
        if (onxi_dict_find(&defaults, onx_view(graph->input[i]->name)))
            return onxi_fail(r->cx, ONX_E_UNSUPPORTED, ONXI_AT_PATH(onx_str_of("ir_version")),
                             "input %.*s has a default that callers may replace, which came with IR version %d",
                             ONX_ARG(onx_view(graph->input[i]->name)), ONXI_IR_DEFAULTS);
    return ONX_OK;
}

onx_status onxi_retarget_check_ir(onxi_retarget *r, const onx_model *model)
{
    const char *what;
    const int64_t wanted = r->options->ir_version, least = needed_ir(r, model, &what);
    if (wanted && wanted >= least && wanted < ONXI_IR_DEFAULTS && model->ir_version >= ONXI_IR_DEFAULTS)
        return check_defaults(r, model);
    if (!wanted || wanted >= least)
        return ONX_OK;
    return onxi_fail(r->cx, ONX_E_UNSUPPORTED, ONXI_AT_PATH(onx_str_of("ir_version")),
                     "IR version %lld does not have %s, which came with version %lld", (long long)wanted, what,
                     (long long)least);
}

static onx_status set_ir(onxi_retarget *r, onx_model *model)
{
    const char *what;
    if (r->bodies_only)
        return ONX_OK;
    const int64_t least = needed_ir(r, model, &what);
    const int64_t version = r->options->ir_version;
    ONX_TRY(onxi_model_raise_ir(r->scratch, model, version ? version : least));
    if (version)
        ONX_SET(model, model, ir_version, version);
    else if (model->ir_version > ONXI_IR_VERSION && r->left_newer) /* it came with the operator set */
        ONX_SET(model, model, ir_version, ONXI_IR_VERSION);
    return onxi_model_complete_inputs(r->arena, r->scratch, model);
}

/* ---- outputs ---- */

/* Outputs of a model need at least a rank; if one has none, the type inferred for the old model is declared. */
static onx_status complete_outputs(onxi_retarget *r, onx_model *model)
{
    for (uint32_t i = 0; model->graph && i < model->graph->output_count; i++) {
        onx_value_info *output = model->graph->output[i];
        const onx_type *type = output->type;
        if (!type || !ONX_HAS(type, type, tensor_type) || type->tensor_type->shape)
            continue;
        const onxi_scope scope = { .graph = model->graph };
        const onx_type *known = onxi_values_type(&r->values, &scope, onx_view(output->name));
        onx_type *copy;
        if (onxi_type_rank(known) < 0 || onxi_type_dtype(known) != type->tensor_type->elem_type)
            continue;
        ONX_TRY(onxi_facts_show(r->arena, known, &copy));
        output->type = copy;
    }
    return ONX_OK;
}

/* ---- removing unused constants ---- */

typedef struct sweeper {
    onxi_retarget *r;
    onxi_dict uses; /* of every name, in all graphs and functions */
} sweeper;

static onx_status count_use(sweeper *w, onx_bytes name)
{
    onxi_dict_entry *entry = onx_view(name).len ? onxi_dict_at(&w->uses, onx_view(name), 0, NULL) : NULL;
    if (entry)
        entry->value++;
    return entry || !onx_view(name).len ? ONX_OK : ONX_E_MEMORY;
}

static onx_status count_uses(void *user, const onx_visit *at)
{
    sweeper *w = user;
    const onx_node *node = at->message;
    const onx_function *f = at->message;
    if (at->kind == ONX_KIND_NODE)
        for (uint32_t i = 0; i < node->input_count; i++)
            ONX_TRY(count_use(w, node->input[i]));
    if (at->kind == ONX_KIND_FUNCTION)
        for (uint32_t i = 0; i < f->output_count; i++)
            ONX_TRY(count_use(w, f->output[i]));
    if (at->kind == ONX_KIND_VALUE_INFO && strcmp(at->field, "output") == 0)
        return count_use(w, ((const onx_value_info *)at->message)->name);
    return ONX_OK;
}

static bool is_unused(const sweeper *w, onx_bytes name)
{
    const onxi_dict_entry *uses = onxi_dict_find(&w->uses, onx_view(name));
    return onxi_dict_find(&w->r->captured, onx_view(name)) && (!uses || !uses->value);
}

/* The node that computes a constant: a Constant, or the Cast that an old version needs after it. */
static bool makes_constant(const onx_node *node)
{
    return node->output_count == 1 && (onxi_node_is(node, ONXI_ID_Constant) || onxi_node_is(node, ONXI_ID_Cast));
}

static onx_status sweep_nodes(sweeper *w, onx_node **nodes, uint32_t *count)
{
    uint32_t kept = *count;
    for (uint32_t i = *count; i-- > 0;) {
        const onx_node *node = nodes[i];
        if (!makes_constant(node) || !is_unused(w, node->output[0])) {
            nodes[--kept] = nodes[i];
            continue;
        }
        for (uint32_t k = 0; k < node->input_count; k++) {
            onxi_dict_entry *entry = onxi_dict_find(&w->uses, onx_view(node->input[k]));
            if (entry && entry->value)
                entry->value--;
            if (!onxi_dict_at(&w->r->captured, onx_view(node->input[k]), 0, NULL))
                return ONX_E_MEMORY;
        }
    }
    memmove(nodes, nodes + kept, (*count - kept) * sizeof *nodes);
    *count -= kept;
    return ONX_OK;
}

static onx_status sweep_initializers(sweeper *w, onx_graph *graph)
{
    onxi_dict inputs = onxi_dict_in_arena(w->r->scratch);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!onxi_dict_at(&inputs, onx_view(graph->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        onx_tensor *tensor = graph->initializer[i];
        if (!is_unused(w, tensor->name) || onxi_dict_find(&inputs, onx_view(tensor->name)))
            graph->initializer[kept++] = tensor;
    }
    graph->initializer_count = kept;
    return ONX_OK;
}

static onx_status sweep_message(void *user, const onx_visit *at)
{
    sweeper *w = user;
    onx_graph *graph = at->message;
    onx_function *f = at->message;
    if (at->kind == ONX_KIND_FUNCTION && f->node_count)
        return sweep_nodes(w, f->node, &f->node_count);
    if (at->kind != ONX_KIND_GRAPH)
        return ONX_OK;
    if (graph->node_count)
        ONX_TRY(sweep_nodes(w, graph->node, &graph->node_count));
    return sweep_initializers(w, graph);
}

static onx_status sweep(onxi_retarget *r, onx_model *model)
{
    sweeper w = { r, onxi_dict_in_arena(r->scratch) };
    if (!r->captured.count)
        return ONX_OK;
    ONX_TRY(onx_message_walk(r->cx, ONX_KIND_MODEL, model, count_uses, &w));
    return onx_message_walk(r->cx, ONX_KIND_MODEL, model, sweep_message, &w);
}

onx_status onxi_retarget_apply(onxi_retarget *r, onx_model *model)
{
    ONX_TRY(complete_outputs(r, model)); /* uses types of the original model */
    for (const onxi_pending *p = r->pending; p; p = p->next) {
        if (p->graph) {
            p->graph->node = p->nodes;
            p->graph->node_count = p->count;
        } else {
            p->function->node = p->nodes;
            p->function->node_count = p->count;
        }
    }
    for (const onxi_handed *h = r->handed; h; h = h->next)
        ONX_SET(value_info, h->output, name, h->name);
    ONX_TRY(sweep(r, model));
    ONX_TRY(set_imports(r, model));
    return set_ir(r, model);
}
