/* transform_grad.c - computes the gradient of a value, and replaces Gradient nodes, by nodes of standard operators. */
#include "transform/transform_grad.h"
#include "infer/infer.h"

#include <onx/grad.h>

#define TRAINING "ai.onnx.preview.training"

/* ---- preparing a model ---- */

static onx_status visit_node(void *user, const onx_visit *at)
{
    bool *found = user;
    *found |= at->kind == ONX_KIND_NODE && onxi_node_is(at->message, ONXI_ID_Gradient);
    return ONX_OK;
}

static onx_status has_gradient(onx_ctx *cx, onx_kind kind, void *message, bool *found)
{
    return message ? onx_message_walk(cx, kind, message, visit_node, found) : ONX_OK;
}

static onx_status retype(onxi_grad *g)
{
    const onx_status status = g->values.status;
    onxi_values_close(&g->values);
    ONX_TRY(status);
    ONX_TRY(onxi_grad_spend(g, g->model->graph->node_count));
    g->fresh = onxi_dict_in_arena(g->scratch);
    g->values.inferred = false; /* constants are kept, because scopes refer to them */
    return ONX_OK;
}

onx_status onxi_grad_refresh(onxi_grad *g, const onx_bytes *values, uint32_t count, const onxi_node_list *nodes)
{
    bool any = false;
    for (uint32_t i = 0; i < count && !any; i++)
        any = onxi_dict_find(&g->fresh, onx_view(values[i])) != NULL;
    for (uint32_t i = 0; i < nodes->count && !any; i++)
        for (uint32_t k = 0; k < nodes->items[i]->output_count && !any; k++)
            any = onxi_dict_find(&g->fresh, onx_view(nodes->items[i]->output[k])) != NULL;
    return any ? retype(g) : ONX_OK;
}

onx_status onxi_grad_note(onxi_grad *g, const onx_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        if (onx_view(node->output[i]).len && !onxi_dict_at(&g->fresh, onx_view(node->output[i]), 1, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

/* The checkpoint option stored in the model. */
static onx_status read_checkpoint(onxi_grad *g)
{
    for (uint32_t i = 0; i < g->model->metadata_props_count; i++) {
        const onx_str value = onx_view(g->model->metadata_props[i]->value);
        double number = 0;
        bool overflow;
        if (!onx_str_is(onx_view(g->model->metadata_props[i]->key), ONXI_GRAD_PROPERTY))
            continue;
        const bool root = onx_str_is(value, "sqrt");
        if (!root && (!onxi_parse_f64(value, &number, &overflow) || !(number >= 1 && number <= INT32_MAX)))
            return onxi_fail(g->cx, ONX_E_INVALID, ONXI_AT_PATH(onx_str_of("metadata_props")),
                             ONXI_GRAD_PROPERTY " is \"%.*s\", which is neither sqrt nor a number of segments",
                             ONX_ARG(value));
        g->checkpoint = root ? ONX_GRAD_CHECKPOINT_SQRT : (int32_t)number;
    }
    return ONX_OK;
}

onx_status onxi_grad_open(onxi_grad *g, onx_ctx *cx, onx_doc *doc, onx_arena *scratch, int32_t checkpoint)
{
    onx_model *model = onx_doc_model(doc);
    onx_arena *arena = onx_doc_arena(doc);
    *g = (onxi_grad){ .cx = cx,
                      .doc = doc,
                      .model = model,
                      .arena = arena,
                      .scratch = scratch,
                      .names = { .scratch = scratch, .arena = arena, .model = model },
                      .binder = { .arena = scratch },
                      .texts = onxi_dict_in_arena(scratch),
                      .fresh = onxi_dict_in_arena(scratch),
                      .left = onxi_grad_limit(model),
                      .limit = onx_ctx_limits(cx).depth };
    g->first = ONXI_ARRAY(scratch, uint16_t, ONXI_ID_END);
    if (!g->first)
        return ONX_E_MEMORY;
    for (uint32_t i = onxi_grad_rule_count; i-- > 0;)
        g->first[onxi_grad_rules[i].op] = (uint16_t)(i + 1);
    g->checkpoint = checkpoint;
    if (!checkpoint)
        ONX_TRY(read_checkpoint(g));
    ONX_TRY(onxi_binder_open_model(&g->binder, model));
    return onxi_values_open(&g->values, doc, scratch);
}

onx_status onxi_grad_close(onxi_grad *g, onx_status status)
{
    onxi_values_close(&g->values);
    return status == ONX_OK ? g->values.status : status;
}

typedef struct bodies {
    onxi_imports imports;
    int64_t opset; /* the newest version in which a body is written; 0: none */
} bodies;

static onx_status note_body(void *user, const onx_visit *at)
{
    bodies *b = user;
    const onx_node *node = at->kind == ONX_KIND_NODE ? at->message : NULL;
    if (!node)
        return ONX_OK;
    const onx_str domain = onxi_domain_plain(onx_view(node->domain)), name = onx_view(node->op_type);
    const int64_t version = onxi_imports_version(&b->imports, domain);
    const onxi_schema *row = onxi_schema_find(domain, name, version);
    if (row && onxi_schema_is_composed(row) &&
        !onxi_operator_is_standard(onxi_operator_id(onxi_operator_at(domain, name, version))))
        b->opset = row->body_opset > b->opset ? row->body_opset : b->opset;
    return ONX_OK;
}

/* Operators of other domains have no rules, but their bodies in terms of standard operators do, if they are known. */
static onx_status put_bodies(onx_ctx *cx, onx_doc *doc, onx_arena *scratch)
{
    onx_model *model = onx_doc_model(doc);
    bodies b = { .opset = 0 };
    ONX_TRY(onxi_imports_open(&b.imports, scratch, model->opset_import, model->opset_import_count,
                              onxi_model_is_legacy(model)));
    ONX_TRY(onx_message_walk(cx, ONX_KIND_MODEL, model, note_body, &b));
    if (!b.opset)
        return ONX_OK;
    ONX_TRY(onxi_retarget_at_least(cx, doc, b.opset));
    const onx_inline_options every = { .domain = onx_str_of(ONXI_EVERY_DOMAIN) };
    return onxi_retarget_bodies(cx, doc, &every);
}

onx_status onxi_grad_bring_up(onx_ctx *cx, onx_doc *doc, onx_arena *scratch)
{
    onx_model *model = onx_doc_model(doc);
    onxi_imports imports;
    int64_t newest;
    ONX_TRY(onxi_adopt_functions(cx, doc, scratch, &newest));
    ONX_TRY(onxi_retarget_at_least(cx, doc, newest));
    ONX_TRY(onxi_imports_open(&imports, scratch, model->opset_import, model->opset_import_count,
                              onxi_model_is_legacy(model)));
    if (onxi_imports_version(&imports, (onx_str){ 0 }) < ONXI_GRAD_OPSET) {
        const onx_opset_version wanted = { { 0 }, ONXI_GRAD_OPSET };
        const onx_retarget_options options = { .struct_size = sizeof options, .opset = &wanted, .opset_count = 1 };
        ONX_TRY(onx_retarget(cx, doc, &options));
    }
    if (model->functions_count)
        ONX_TRY(onx_inline(cx, doc, NULL));
    return put_bodies(cx, doc, scratch);
}

/* ---- one derivative ---- */

typedef struct derivative {
    onxi_grad *g;
    onxi_scope *scope;
    onx_graph *graph; /* whose nodes are differentiated */
    onx_bytes y;
    const onx_bytes *xs;
    const onx_bytes *names; /* for the gradients; empty: not needed */
    uint32_t count;
    const onx_node *asks; /* the Gradient node; NULL: none */
    onxi_node_list nodes; /* that y needs */
    onxi_grad_out out;
} derivative;

/* Marks the nodes that y needs; types are inferred again if some of these, or producers of xs, are new. */
static onx_status find_nodes(derivative *d)
{
    onxi_grad *g = d->g;
    const onx_graph *graph = d->graph;
    ONX_TRY(onxi_grad_needed(g, graph->node, graph->node_count, &d->y, 1, d->xs, d->count, &d->nodes));
    return onxi_grad_refresh(g, d->xs, d->count, &d->nodes);
}

static onx_status lower_all(derivative *d)
{
    enum { ROUNDS = 16 }; /* equivalent subgraphs may have to be replaced in turn, a few levels deep */
    bool changed = true;
    for (int i = 0; changed && i < ROUNDS; i++) {
        changed = false;
        ONX_TRY(find_nodes(d));
        ONX_TRY(onxi_grad_lower_graph(d->g, d->scope, d->graph, &d->y, 1, d->xs, d->count, &changed));
        if (!changed)
            return ONX_OK;
        d->scope->nodes = d->graph->node;
        d->scope->node_count = d->graph->node_count;
        d->scope->constants = NULL;
    }
    return find_nodes(d);
}

/* Gives the gradient of one of xs its final name. */
static onx_status put_result(derivative *d, onxi_grad_node *n, uint32_t i, onx_bytes gradient)
{
    if (!onx_view(gradient).len) {
        ONX_TRY(onxi_grad_name(d->g, d->xs[i], "zeros", &gradient));
        ONX_TRY(onxi_grad_put(n, "x", "out", "out = grad.Zeros (x)", &d->xs[i], 1, &gradient, 1));
    }
    return onxi_grad_add(d->g, &d->out, "Identity", onxi_grad_resolve(&d->out, gradient), d->names[i]);
}

/* Makes the nodes of a list the nodes of the graph. */
static onx_status put_nodes(derivative *d, const onxi_node_list *list)
{
    ONX_TRY(onxi_node_list_keep(d->g->arena, list, &d->graph->node, &d->graph->node_count));
    d->scope->nodes = d->graph->node;
    d->scope->node_count = d->graph->node_count;
    return ONX_OK;
}

static onx_status ask_shapes_early(derivative *d)
{
    onxi_node_list forward = { 0 };
    ONX_TRY(onxi_node_list_add_all(d->g->scratch, &forward, d->graph->node, d->graph->node_count));
    ONX_TRY(onxi_grad_shapes_early(d->g, &forward, &d->out.nodes));
    return forward.count > d->graph->node_count ? put_nodes(d, &forward) : ONX_OK;
}

/* Decides by sizes, so types are inferred once with the new nodes in the graph. */
static onx_status checkpoint(derivative *d, const onxi_grad_task *task)
{
    onxi_grad *g = d->g;
    onx_graph *graph = d->graph, before = *graph;
    onxi_node_list all = { 0 };
    if (!g->checkpoint)
        return ONX_OK;
    ONX_TRY(onxi_node_list_add_all(g->scratch, &all, graph->node, graph->node_count));
    ONX_TRY(onxi_node_list_add_all(g->scratch, &all, d->out.nodes.items, d->out.nodes.count));
    graph->node = all.items;
    graph->node_count = all.count;
    onx_status status = retype(g);
    if (status == ONX_OK)
        (void)onxi_values_type(&g->values, d->scope, onx_view(d->y)); /* the query triggers inference */
    graph->node = before.node;
    graph->node_count = before.node_count;
    return status == ONX_OK ? onxi_grad_checkpoint(g, task, &d->out.nodes) : status;
}

/* Adds nodes for the gradients to d->out. */
static onx_status derive(derivative *d)
{
    onxi_grad *g = d->g;
    onx_bytes seed, *xs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)d->count + 1);
    onx_bytes *dxs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)d->count + 1);
    static const onx_node nobody;
    if (!xs || !dxs)
        return ONX_E_MEMORY;
    ONX_TRY(lower_all(d));
    ONX_TRY(onxi_grad_out_open(g, &d->out));
    onxi_grad_node n = {
        .s = { .values = &g->values, .arena = g->arena, .scope = d->scope, .node = d->asks ? d->asks : &nobody },
        .g = g,
        .out = &d->out
    };
    if (!onxi_grad_is_real(g, d->scope, onx_view(d->y)))
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "%.*s is not real-valued and has no gradient",
                         ONX_ARG(onx_view(d->y)));
    ONX_TRY(onxi_grad_name(g, d->y, "grad", &seed));
    ONX_TRY(onxi_grad_put(&n, "x", "out", "out = grad.Ones (x)", &d->y, 1, &seed, 1));
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->count; i++)
        if (onx_view(d->names[i]).len && onxi_grad_is_real(g, d->scope, onx_view(d->xs[i])))
            xs[count++] = d->xs[i];
    const onxi_grad_task task = { .scope = d->scope,
                                  .nodes = d->nodes.items,
                                  .count = d->nodes.count,
                                  .ys = &d->y,
                                  .dys = &seed,
                                  .y_count = 1,
                                  .xs = xs,
                                  .dxs = dxs,
                                  .x_count = count };
    ONX_TRY(onxi_grad_walk(g, &task, &d->out));
    for (uint32_t i = 0, at = 0; i < d->count; i++) {
        if (!onx_view(d->names[i]).len)
            continue;
        const bool real = onxi_grad_is_real(g, d->scope, onx_view(d->xs[i]));
        ONX_TRY(put_result(d, &n, i, real ? dxs[at] : (onx_bytes){ 0 }));
        at += real;
    }
    ONX_TRY(onxi_grad_prune(g, d->out.nodes.items, &d->out.nodes.count, d->names, d->count));
    ONX_TRY(ask_shapes_early(d));
    return checkpoint(d, &task);
}

/* Inserts the new nodes after node `behind` of a graph, and removes the Gradient node. */
static onx_status insert(derivative *d, onx_graph *graph, uint32_t behind)
{
    onxi_node_list list = { 0 };
    for (uint32_t i = 0; i <= graph->node_count; i++) {
        if (i == behind)
            ONX_TRY(onxi_node_list_add_all(d->g->scratch, &list, d->out.nodes.items, d->out.nodes.count));
        if (i < graph->node_count && graph->node[i] != d->asks)
            ONX_TRY(onxi_node_list_add(d->g->scratch, &list, graph->node[i]));
    }
    return onxi_node_list_keep(d->g->arena, &list, &graph->node, &graph->node_count);
}

/* ---- nodes Gradient ---- */

typedef struct question { /* the request of a Gradient node */
    onx_bytes *xs, *zs, y;
    uint32_t x_count, z_count;
} question;

static onx_status read_names(onxi_grad *g, const onx_node *node, const char *name, onx_bytes **out, uint32_t *count)
{
    const onx_attribute *a = onx_node_attribute(node, name);
    const onx_bytes *list = a ? onx_attribute_value(a, ONX_SLOT_STRINGS, count) : NULL;
    if (!list)
        *count = 0;
    if (!(*out = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)*count + 1)))
        return ONX_E_MEMORY;
    if (*count)
        memcpy(*out, list, *count * sizeof **out);
    return ONX_OK;
}

static onx_status read_question(onxi_grad *g, const onx_node *node, question *q)
{
    uint32_t one;
    const onx_attribute *a = onx_node_attribute(node, "y");
    const onx_bytes *y = a ? onx_attribute_value(a, ONX_SLOT_S, &one) : NULL;
    ONX_TRY(read_names(g, node, "xs", &q->xs, &q->x_count));
    ONX_TRY(read_names(g, node, "zs", &q->zs, &q->z_count));
    if (!y || node->input_count != (uint64_t)q->x_count + q->z_count || node->output_count > q->x_count)
        return onxi_grad_fail(g, node, "its attributes do not name its inputs and outputs");
    q->y = *y;
    return ONX_OK;
}

static bool makes(const onx_graph *graph, onx_str name, uint32_t *index)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++)
            if (onx_str_equal(onx_view(graph->node[i]->output[k]), name)) {
                *index = i;
                return true;
            }
    return false;
}

/* If xs or zs are given values other than those with the names, the nodes from there to y are copied. */
static bool reads(const onxi_grad_again *a, onxi_grad *g, const onx_node *node)
{
    onxi_dict captured = onxi_dict_in_arena(g->scratch);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (onxi_dict_find(&a->to, onx_view(node->input[i])))
            return true;
    if (onxi_grad_captured(g, node, &captured) != ONX_OK)
        return false;
    for (uint32_t i = 0; i < captured.count; i++)
        if (onxi_dict_find(&a->to, captured.entries[i].key))
            return true;
    return false;
}

/* Uses the names of the inputs as xs, and copies the nodes up to y after its producer. */
static onx_status repeat(onxi_grad *g, onx_graph *graph, const onx_node *node, question *q)
{
    onxi_grad_again a = { .to = onxi_dict_in_arena(g->scratch), .g = g };
    bool same = true;
    uint32_t last;
    for (uint32_t i = 0; i < node->input_count; i++)
        same &= onx_str_equal(onx_view(node->input[i]), onx_view(i < q->x_count ? q->xs[i] : q->zs[i - q->x_count]));
    if (same || !makes(graph, onx_view(q->y), &last))
        return ONX_OK;
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(onxi_grad_again_set(&a, onx_view(i < q->x_count ? q->xs[i] : q->zs[i - q->x_count]), node->input[i]));
    onxi_node_list list = { 0 };
    ONX_TRY(onxi_node_list_add_all(g->scratch, &list, graph->node, graph->node_count));
    for (uint32_t i = 0; i <= last && i < graph->node_count; i++)
        if (!onxi_node_is(graph->node[i], ONXI_ID_Gradient) && reads(&a, g, graph->node[i])) {
            onx_node *copy;
            ONX_TRY(onxi_grad_again_node(&a, graph->node[i], &copy));
            ONX_TRY(onxi_node_list_add(g->scratch, &list, copy));
            ONX_TRY(onxi_grad_note(g, copy));
        }
    ONX_TRY(onxi_node_list_keep(g->arena, &list, &graph->node, &graph->node_count));
    ONX_TRY(onxi_grad_again_rename(&a, &q->y));
    for (uint32_t i = 0; i < q->x_count; i++)
        q->xs[i] = node->input[i];
    return ONX_OK;
}

static onx_status expand_node(onxi_grad *g, onxi_scope *scope, onx_graph *graph, uint32_t at)
{
    onx_node *node = graph->node[at];
    question q;
    uint32_t behind = at, made;
    ONX_TRY(read_question(g, node, &q));
    onxi_scope *where = scope;
    while (where->parent && !makes(where->graph, onx_view(q.y), &made))
        where = (onxi_scope *)(uintptr_t)where->parent;
    onx_graph *source = (onx_graph *)(uintptr_t)where->graph;
    ONX_TRY(repeat(g, source, node, &q));
    where->nodes = source->node;
    where->node_count = source->node_count;
    onx_bytes *names = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)q.x_count + 1);
    if (!names)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->output_count; i++)
        names[i] = node->output[i];
    derivative d = {
        .g = g, .scope = where, .graph = source, .y = q.y, .xs = q.xs, .names = names, .count = q.x_count, .asks = node
    };
    ONX_TRY(derive(&d));
    for (uint32_t i = 0; i < graph->node_count; i++) /* its index may have changed */
        if (graph->node[i] == node)
            behind = i;
    if (source == graph && makes(graph, onx_view(q.y), &made) && made >= behind)
        behind = made + 1;
    ONX_TRY(insert(&d, graph, behind));
    scope->nodes = graph->node;
    scope->node_count = graph->node_count;
    scope->constants = NULL;
    for (uint32_t i = 0; i < d.out.nodes.count; i++)
        ONX_TRY(onxi_grad_note(g, d.out.nodes.items[i]));
    return ONX_OK;
}

static onx_status expand_graph(onxi_grad *g, const onxi_scope *parent, onx_graph *graph)
{
    onxi_scope scope = { .parent = parent, .graph = graph, .nodes = graph->node, .node_count = graph->node_count };
    if (++g->depth > g->limit)
        return onxi_fail(g->cx, ONX_E_LIMIT, ONXI_NOWHERE, "subgraphs are nested more than %u deep (limit depth)",
                         g->limit);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const onx_node *node = graph->node[i];
        for (uint32_t k = 0; k < node->attribute_count; k++) {
            const onx_attribute *a = node->attribute[k];
            if (a->slot == ONX_SLOT_G && a->g)
                ONX_TRY(expand_graph(g, &scope, a->g));
        }
        if (onxi_node_is(node, ONXI_ID_Gradient)) {
            ONX_TRY(expand_node(g, &scope, graph, i));
            i--; /* the list has changed; there is no earlier Gradient node */
        }
    }
    g->depth--;
    return ONX_OK;
}

/* Removes the import of the domain if no node uses it any more. */
static onx_status expand_all(onx_ctx *cx, onx_doc *doc, onx_arena *scratch, int32_t checkpoint)
{
    onxi_grad g;
    ONX_TRY(onxi_grad_bring_up(cx, doc, scratch));
    ONX_TRY(onxi_grad_open(&g, cx, doc, scratch, checkpoint));
    onx_status status = g.model->graph ? expand_graph(&g, NULL, g.model->graph) : ONX_OK;
    status = onxi_grad_close(&g, status);
    return status == ONX_OK ? onx_doc_sort(doc, NULL) : status;
}

static onx_status grad_expand(onx_ctx *cx, onx_doc *doc, int32_t checkpoint)
{
    onx_arena *scratch;
    onx_model *model = onx_doc_model(doc);
    bool found = false;
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    ONX_TRY(has_gradient(cx, ONX_KIND_GRAPH, model->graph, &found));
    for (uint32_t i = 0; i < model->functions_count; i++)
        ONX_TRY(has_gradient(cx, ONX_KIND_FUNCTION, model->functions[i], &found));
    if (!found)
        return ONX_OK;
    ONX_TRY(onx_arena_new(cx, &scratch));
    onx_status status = expand_all(cx, doc, scratch, checkpoint);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_grad_expand(onx_ctx *cx, onx_doc *doc)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_TRANSFORM(cx, doc, grad_expand(cx, doc, 0));
}

/* ---- the gradient of a value of the main graph ---- */

static onx_status list_values(const onx_graph *graph, onxi_dict *values)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!onxi_dict_at(values, onx_view(graph->input[i]->name), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (!onxi_dict_at(values, onx_view(graph->initializer[i]->name), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->node[i]->output_count; k++)
            if (!onxi_dict_at(values, onx_view(graph->node[i]->output[k]), 1, NULL))
                return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status find_value(onxi_grad *g, const onxi_dict *values, onx_str name, onx_bytes *out)
{
    if (!name.len || !onxi_dict_find(values, name))
        return onxi_fail(g->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the main graph has no value %.*s", ONX_ARG(name));
    return onx_arena_keep(g->arena, name, out);
}

static onx_status add_output(onxi_grad *g, const onxi_scope *scope, onx_bytes name, onx_bytes like)
{
    const onx_type *type = onxi_values_type(&g->values, scope, onx_view(like));
    onx_value_info *info = ONX_ADD(g->arena, g->model->graph, output, VALUE_INFO);
    onx_type *copy = NULL;
    if (!info)
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, name, name);
    if (type) {
        ONX_TRY(onxi_facts_show(g->arena, type, &copy));
        ONX_SET(value_info, info, type, copy);
    }
    return ONX_OK;
}

/* Removes nodes and initializers that the outputs do not need. */
static onx_status remove_rest(onxi_grad *g)
{
    onx_graph *graph = g->model->graph;
    onx_bytes *needed = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)graph->output_count + 1);
    onxi_dict used = onxi_dict_in_arena(g->scratch);
    uint32_t kept = 0;
    if (!needed)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->output_count; i++)
        needed[i] = graph->output[i]->name;
    ONX_TRY(onxi_grad_prune(g, graph->node, &graph->node_count, needed, graph->output_count));
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!onxi_dict_at(&used, onx_view(needed[i]), 1, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        for (uint32_t k = 0; k < graph->node[i]->input_count; k++)
            if (!onxi_dict_at(&used, onx_view(graph->node[i]->input[k]), 1, NULL))
                return ONX_E_MEMORY;
        ONX_TRY(onxi_grad_captured(g, graph->node[i], &used));
    }
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (onxi_dict_find(&used, onx_view(graph->initializer[i]->name)))
            graph->initializer[kept++] = graph->initializer[i];
    graph->initializer_count = kept;
    return ONX_OK;
}

static onx_status add_gradients(onxi_grad *g, const onx_grad_options *options)
{
    onx_graph *graph = g->model->graph;
    onxi_scope scope = { .graph = graph, .nodes = graph->node, .node_count = graph->node_count };
    derivative d = { .g = g, .scope = &scope, .graph = graph, .count = options->wrt_count };
    onx_bytes *xs = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)d.count + 1);
    onx_bytes *names = ONXI_ARRAY(g->scratch, onx_bytes, (size_t)d.count + 1);
    if (!xs || !names)
        return ONX_E_MEMORY;
    onxi_dict values = onxi_dict_in_arena(g->scratch);
    ONX_TRY(list_values(graph, &values));
    ONX_TRY(find_value(g, &values, options->of, &d.y));
    for (uint32_t i = 0; i < d.count; i++) {
        ONX_TRY(find_value(g, &values, options->wrt[i], &xs[i]));
        ONX_TRY(onxi_grad_name(g, xs[i], "grad", &names[i]));
    }
    d.xs = xs;
    d.names = names;
    ONX_TRY(derive(&d));
    if (options->only)
        graph->output_count = 0;
    for (uint32_t i = 0; i < d.count; i++)
        ONX_TRY(add_output(g, &scope, names[i], xs[i]));
    ONX_TRY(insert(&d, graph, graph->node_count));
    return options->only ? remove_rest(g) : ONX_OK;
}

static onx_status grad(onx_ctx *cx, onx_doc *doc, const onx_grad_options *options)
{
    onx_arena *scratch;
    onxi_grad g;
    onx_model *model = onx_doc_model(doc);
    if (!model || !model->graph)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document holds no model with a graph");
    if (options->checkpoint < ONX_GRAD_CHECKPOINT_SQRT)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%d is not a number of segments", (int)options->checkpoint);
    ONX_TRY(grad_expand(cx, doc, options->checkpoint));
    if (!options->of.len && !options->wrt_count)
        return ONX_OK;
    ONX_TRY(onx_arena_new(cx, &scratch));
    onx_status status = onxi_grad_bring_up(cx, doc, scratch);
    if (status == ONX_OK) {
        status = onxi_grad_open(&g, cx, doc, scratch, options->checkpoint);
        if (status == ONX_OK)
            status = add_gradients(&g, options);
        status = onxi_grad_close(&g, status);
    }
    onx_arena_free(scratch);
    return status;
}

onx_status onx_grad(onx_ctx *cx, onx_doc *doc, const onx_grad_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_grad_options, own, options);
    ONXI_NEED(cx, own.wrt || !own.wrt_count);
    ONXI_TRANSFORM(cx, doc, grad(cx, doc, &own));
}
