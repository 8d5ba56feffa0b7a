/* transform_quantize.c - quantises products with constant weights: the traversal of the model, and which nodes are
 * skipped. */
#include "transform/transform_quantize.h"

#include <math.h>

/* ---- which nodes can be quantised ---- */

/* Exporters use Identity for constants that several nodes share. */
static onx_str behind_identity(onxi_quant_scope *s, onx_str name)
{
    for (int steps = 0; steps < 8; steps++) {
        const onxi_dict_entry *entry = onxi_dict_find(&s->identities, name);
        if (!entry)
            break;
        name = onx_view(s->scope.nodes[entry->value]->input[0]);
    }
    return name;
}

static onx_status list_identities(onxi_quant_scope *s)
{
    for (uint32_t i = 0; i < s->scope.node_count; i++) {
        const onx_node *n = s->scope.nodes[i];
        if (onxi_node_is(n, ONXI_ID_Identity) && n->input_count == 1 && n->output_count == 1 &&
            onx_view(n->input[0]).len && onx_view(n->output[0]).len &&
            !onxi_dict_at(&s->identities, onx_view(n->output[0]), i, NULL))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

static const onx_tensor *constant(onxi_quantizer *z, onxi_quant_scope *s, onx_str name)
{
    name = behind_identity(s, name);
    const onxi_constant *c = name.len ? onxi_values_constant(&z->values, &s->scope, name) : NULL;
    const onx_tensor *t = c ? c->tensor : NULL;
    if (c && !t && c->attribute && c->attribute->slot == ONX_SLOT_T)
        t = c->attribute->t;
    uint64_t count;
    const bool real = t && (t->data_type == ONX_FLOAT || t->data_type == ONX_FLOAT16 || t->data_type == ONX_BFLOAT16);
    return real && onx_tensor_count(t, &count) ? t : NULL;
}

/* NULL: it can be quantised; otherwise the reason why not. */
static const char *open_layer(onxi_quantizer *z, onxi_quant_scope *s, const onxi_bound *bound, onx_node *node,
                              onxi_layer *l)
{
    const onxi_op_id op = bound->op;
    *l = (onxi_layer){ .node = node, .op = op };
    if (node->input_count < 2 || node->output_count != 1 || !onx_view(node->input[0]).len)
        return "it has not the operands of its operator";
    l->x = node->input[0];
    l->y = node->output[0];
    if (node->input_count > 2)
        l->bias = node->input[2];
    l->weight = constant(z, s, onx_view(node->input[1]));
    l->bias_tensor = constant(z, s, onx_view(l->bias));
    if (!l->weight)
        return "its weight is no constant of type float, float16 or bfloat16";
    l->dtype = (onx_dtype)l->weight->data_type;
    const uint32_t rank = l->weight->dims_count;
    if (op == ONXI_ID_Conv ? rank < 3 || rank > 5 : rank != 2)
        return "its weight has another rank than matrices and filters have";
    const onx_type *type = onxi_values_type(&z->values, &s->scope, onx_view(l->x));
    if (type && onxi_type_dtype(type) != (int)l->dtype && onxi_type_dtype(type) != ONX_UNDEFINED)
        return "its input is not of the type of its weight";
    if (op == ONXI_ID_Gemm) {
        l->transposed = onxi_bind_int(bound, node, "transB") != 0;
        /* Not equal to 1, including NaN. */
        const float alpha = onxi_bind_float(bound, node, "alpha"), beta = onxi_bind_float(bound, node, "beta");
        const bool plain = alpha >= 1 && alpha <= 1 && beta >= 1 && beta <= 1 && !onxi_bind_int(bound, node, "transA");
        if (z->options->mode != ONX_QUANTIZE_WEIGHTS && !plain)
            return "its factors are not 1, or its input is transposed";
    }
    l->channels = (uint32_t)l->weight->dims[op == ONXI_ID_Conv || l->transposed ? 0 : 1];
    uint64_t count;
    if (l->bias_tensor &&
        (!onx_tensor_count(l->bias_tensor, &count) || count != l->channels || l->bias_tensor->dims_count != 1))
        l->bias_tensor = NULL;
    return NULL;
}

static void skip(const onxi_quantizer *z, const char *why)
{
    const onx_change change = { "quantize", onx_str_of("skip"), z->path, onx_str_of(why) };
    if (z->options->changed)
        z->options->changed(z->options->user, &change);
}

/* ---- traversal ---- */

static onx_status walk_graph(onxi_quantizer *z, onxi_quant_scope *parent, onx_graph *graph);

static onx_status walk_graphs(onxi_quantizer *z, onxi_quant_scope *s, const onx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(walk_graph(z, s, a->g));
        for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
            ONX_TRY(walk_graph(z, s, a->graphs[k]));
    }
    return ONX_OK;
}

static onx_status walk_node(onxi_quantizer *z, onxi_quant_scope *s, uint32_t index)
{
    onx_node *node = s->scope.nodes[index];
    onxi_bound *bound = onxi_bind(&z->binder, node);
    onxi_layer l;
    if (!bound)
        return ONX_E_MEMORY;
    const bool kept = onxi_dict_find(&z->keep, onxi_node_called(node)) != NULL;
    z->kept += kept;
    ONX_TRY(walk_graphs(z, s, node));
    z->kept -= kept;
    const onxi_op_id op = bound->kind == ONXI_BOUND_OPERATOR ? bound->op : ONXI_ID_NONE;
    const bool chosen = onxi_selects(&z->selection, node) && !kept && !z->kept;
    if (op != ONXI_ID_Conv && op != ONXI_ID_MatMul && op != ONXI_ID_Gemm)
        return onxi_quant_push(z, s, node);
    z->path = onxi_path_node(z->scratch, onx_str_of("graph."), index, node);
    const char *why = chosen ? open_layer(z, s, bound, node, &l) : "it was left out";
    if (!why)
        ONX_TRY(onxi_layer_write(z, s, &l, &why));
    if (!why)
        return ONX_OK;
    skip(z, why);
    return onxi_quant_push(z, s, node);
}

static onx_status walk_graph(onxi_quantizer *z, onxi_quant_scope *parent, onx_graph *graph)
{
    onxi_quant_scope s = { .graph = graph, .values = onxi_dict_in_arena(z->scratch) };
    s.scope = (onxi_scope){
        .parent = parent ? &parent->scope : NULL, .graph = graph, .nodes = graph->node, .node_count = graph->node_count
    };
    if (++z->depth > z->limit)
        return onxi_fail(z->cx, ONX_E_LIMIT, ONXI_NOWHERE, "subgraphs are nested more than %u deep (limit depth)",
                         z->limit);
    s.identities = onxi_dict_in_arena(z->scratch);
    s.weights = onxi_dict_in_arena(z->scratch);
    s.casts = onxi_dict_in_arena(z->scratch);
    ONX_TRY(list_identities(&s));
    const uint32_t count = graph->node_count;
    for (uint32_t i = 0; i < count; i++)
        ONX_TRY(walk_node(z, &s, i));
    z->depth--;
    if (!s.out_count)
        return ONX_OK;
    onx_node **nodes = onxi_arena_array(z->arena, (size_t)onxi_list_room(s.out_count), sizeof *nodes);
    if (!nodes)
        return ONX_E_MEMORY;
    memcpy(nodes, s.out, s.out_count * sizeof *nodes);
    graph->node = nodes;
    graph->node_count = s.out_count;
    return ONX_OK;
}

/* ---- removing unused weights ---- */

typedef struct sweeper {
    onxi_quantizer *z;
    onxi_dict used;
    const onxi_dict *before; /* names that were unused before are kept */
} sweeper;

static onx_status note_use(void *user, const onx_visit *at)
{
    sweeper *w = user;
    if (at->kind == ONX_KIND_NODE) {
        const onx_node *n = at->message;
        for (uint32_t i = 0; i < n->input_count; i++)
            if (onx_view(n->input[i]).len && !onxi_dict_at(&w->used, onx_view(n->input[i]), 0, NULL))
                return ONX_E_MEMORY;
    } else if (at->kind == ONX_KIND_VALUE_INFO && at->field &&
               (strcmp(at->field, "output") == 0 || strcmp(at->field, "input") == 0)) {
        return onxi_dict_at(&w->used, onx_view(((const onx_value_info *)at->message)->name), 0, NULL) ? ONX_OK
                                                                                                      : ONX_E_MEMORY;
    } else if (at->kind == ONX_KIND_STRING_STRING_ENTRY && at->parent && at->parent->kind == ONX_KIND_TRAINING_INFO) {
        return onxi_dict_at(&w->used, onx_view(((const onx_string_string_entry *)at->message)->key), 0, NULL)
                   ? ONX_OK
                   : ONX_E_MEMORY;
    }
    return ONX_OK;
}

static bool is_dead(const sweeper *w, onx_bytes name)
{
    const onx_str text = onx_view(name);
    return text.len && !onxi_dict_find(&w->used, text) && onxi_dict_find(w->before, text);
}

/* Removes declarations of removed values. */
static void drop_notes(const sweeper *w, onx_graph *g)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->quantization_annotation_count; i++)
        if (!is_dead(w, g->quantization_annotation[i]->tensor_name))
            g->quantization_annotation[kept++] = g->quantization_annotation[i];
    g->quantization_annotation_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < g->value_info_count; i++)
        if (!is_dead(w, g->value_info[i]->name))
            g->value_info[kept++] = g->value_info[i];
    g->value_info_count = kept;
}

static onx_status drop_unused(void *user, const onx_visit *at)
{
    const sweeper *w = user;
    onx_graph *g = at->message;
    uint32_t kept = 0;
    if (at->kind != ONX_KIND_GRAPH)
        return ONX_OK;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!is_dead(w, g->initializer[i]->name))
            g->initializer[kept++] = g->initializer[i];
    g->initializer_count = kept;
    kept = 0;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onx_node *n = g->node[i];
        const bool plain = onxi_node_is(n, ONXI_ID_Constant) || onxi_node_is(n, ONXI_ID_Identity);
        if (!(plain && n->output_count == 1 && is_dead(w, n->output[0])))
            g->node[kept++] = g->node[i];
    }
    g->node_count = kept;
    drop_notes(w, g);
    return ONX_OK;
}

/* ---- versions and options ---- */

static bool dequantizes(const onxi_schema *s, int32_t type)
{
    const onxi_type_constraint *t = s->types;
    while (t && t->name && strcmp(t->name, s->inputs[0].type) != 0)
        t++;
    return t && t->name && t->set.tensor & (UINT32_C(1) << type);
}

/* The first version of the operator set in which weights can have an element type; 0: none. */
static int64_t weights_since(int32_t type)
{
    const onxi_dtype_row *row = onxi_dtype_row_of(type);
    int64_t since = 0;
    if (!row->bits || row->bits > 8 || row->values == ONXI_VALUES_FNUZ || row->values == ONXI_VALUES_SCALE)
        return 0;
    const onx_str op = onx_str_of("DequantizeLinear");
    for (const onxi_schema *s = onxi_schema_find(onx_str_of(""), op, INT64_MAX); s && dequantizes(s, type);
         s = onxi_schema_find(onx_str_of(""), op, since - 1))
        since = s->since;
    return since;
}

static int64_t needed_opset(const onx_quantize_options *o)
{
    switch (o->mode) {
    case ONX_QUANTIZE_DYNAMIC:
        return 11;
    case ONX_QUANTIZE_QLINEAR:
        return 10;
    case ONX_QUANTIZE_QDQ:
        return 13;
    case ONX_QUANTIZE_WEIGHTS:
        break;
    }
    const int64_t least = o->block_size ? 21 : 13, since = o->weight_type ? weights_since(o->weight_type) : least;
    return since > least ? since : least;
}

onx_status onxi_moments_check(const onxi_quantizer *z, onx_str name, const onx_value_moments *m)
{
    if (m->data && m->size && m->size <= 16384)
        return ONX_OK;
    return onxi_fail(z->cx, ONX_E_MISUSE, ONXI_NOWHERE, "the moments of %.*s are no matrix of a size that can be",
                     ONX_ARG(name));
}

static onx_status check_options(const onxi_quantizer *z)
{
    const onx_quantize_options *o = z->options;
    if (o->weight_type && !weights_since(o->weight_type))
        return onxi_fail(z->cx, ONX_E_MISUSE, ONXI_NOWHERE, "weights cannot be quantized to type %d", o->weight_type);
    if ((int)o->mode < 0 || (int)o->mode > (int)ONX_QUANTIZE_QLINEAR)
        return onxi_fail(z->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%d is no way to quantise", (int)o->mode);
    for (uint32_t i = 0; i < o->range_count; i++)
        if (!isfinite(o->range[i].low) || !isfinite(o->range[i].high) || !(o->range[i].low <= o->range[i].high))
            return onxi_fail(z->cx, ONX_E_INVALID, ONXI_NOWHERE, "the range of %.*s is not one of finite numbers",
                             ONX_ARG(o->range[i].name));
    for (uint32_t i = 0; i < o->moments_count; i++)
        ONX_TRY(onxi_moments_check(z, o->moments[i].name, &o->moments[i]));
    return ONX_OK;
}

static onx_status index_options(onxi_quantizer *z)
{
    const onx_quantize_options *o = z->options;
    for (uint32_t i = 0; i < o->range_count; i++)
        if (!onxi_dict_at(&z->ranges, o->range[i].name, i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < o->moments_count; i++)
        if (!onxi_dict_at(&z->moments, o->moments[i].name, i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < o->keep_node_count; i++)
        if (!onxi_dict_at(&z->keep, o->keep_node[i], i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status sweep(onxi_quantizer *z, const onxi_dict *before)
{
    /* twice: nodes removed in the first pass used the weights that an Identity returned */
    for (int round = 0; round < 2; round++) {
        sweeper w = { z, onxi_dict_in_arena(z->scratch), before };
        ONX_TRY(onx_message_walk(z->cx, ONX_KIND_MODEL, z->model, note_use, &w));
        ONX_TRY(onx_message_walk(z->cx, ONX_KIND_MODEL, z->model, drop_unused, &w));
    }
    return ONX_OK;
}

static onx_status run(onxi_quantizer *z)
{
    sweeper before = { z, onxi_dict_in_arena(z->scratch), NULL };
    const bool calls = z->model->functions_count != 0;
    if (calls)
        ONX_TRY(onx_inline(z->cx, z->doc, NULL));
    ONX_TRY(onxi_retarget_at_least(z->cx, z->doc, needed_opset(z->options)));
    z->model = onx_doc_model(z->doc);
    z->new_names.model = z->model;
    z->binder = (onxi_binder){ .arena = z->scratch };
    ONX_TRY(onxi_binder_open_model(&z->binder, z->model));
    ONX_TRY(onxi_selection_open(&z->selection, z->scratch));
    ONX_TRY(index_options(z));
    ONX_TRY(onxi_values_open(&z->values, z->doc, z->scratch));
    onxi_weights_open(&z->weights, z->doc, z->scratch, z->options->spill_dir);
    ONX_TRY(onx_message_walk(z->cx, ONX_KIND_MODEL, z->model, note_use, &before));
    if (z->model->graph)
        ONX_TRY(walk_graph(z, NULL, z->model->graph));
    ONX_TRY(z->values.status);
    ONX_TRY(onxi_selection_close(&z->selection, z->cx));
    if (!calls && !z->values.inferred) /* not warned yet */
        ONX_TRY(onxi_doc_warn_of_cycle(z->doc, ONXI_CYCLE_STAYS));
    if (!z->done && !z->keep.count)
        onxi_warn(z->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "nothing is quantised: no Conv, MatMul or Gemm that was asked for has constant weights");
    ONX_TRY(onxi_weights_finish(&z->weights));
    return sweep(z, &before.used);
}

static onx_status quantize(onx_ctx *cx, onx_doc *doc, const onx_quantize_options *options)
{
    onx_model *model = onx_doc_model(doc);
    onx_arena *scratch;
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_quantizer z = { .cx = cx,
                         .doc = doc,
                         .arena = onx_doc_arena(doc),
                         .scratch = scratch,
                         .model = model,
                         .options = options,
                         .selection = { .only = options->only,
                                        .only_count = options->only_count,
                                        .except = options->except,
                                        .except_count = options->except_count,
                                        .block_op = options->block_op,
                                        .block_op_count = options->block_op_count },
                         .keep = onxi_dict_in_arena(scratch),
                         .ranges = onxi_dict_in_arena(scratch),
                         .moments = onxi_dict_in_arena(scratch),
                         .new_names = { .scratch = scratch, .arena = onx_doc_arena(doc) },
                         .weights = { .spill = { .fd = -1 } },
                         .limit = onx_ctx_limits(cx).depth };
    onx_status status = check_options(&z);
    if (status == ONX_OK)
        status = run(&z);
    onxi_weights_close(&z.weights);
    onxi_values_close(&z.values);
    onx_arena_free(scratch);
    return status;
}

onx_status onx_quantize(onx_ctx *cx, onx_doc *doc, const onx_quantize_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_OPTIONS(cx, onx_quantize_options, own, options);
    ONXI_NEED_SELECTION(cx, own);
    ONXI_NEED(cx, own.range || !own.range_count);
    ONXI_NEED(cx, own.moments || !own.moments_count);
    ONXI_TRANSFORM(cx, doc, quantize(cx, doc, &own));
}
