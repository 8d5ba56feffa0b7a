/* infer_api.c - the entry points: inference of a model, a graph or a function; querying types; the summary. */
#include "infer/infer.h"

/* ---- creation ---- */

void onx_infer_free(onx_infer *e)
{
    if (!e)
        return;
    onx_ctx *cx = e->cx;
    onx_arena *arena = e->arena;
    onxi_infer_again_free(e);
    onxi_infer_main_free(e);
    onxi_infer_bodies_free(e);
    onxi_dims_free(e->dims);
    onxi_doc_reader_close(&e->reader);
    if (e->quiet)
        onx_ctx_free(e->quiet);
    onx_arena_free(e->type_arena);
    onx_arena_free(arena); /* e itself is in the arena */
    (void)cx;
}

onx_status onxi_infer_start(onx_ctx *cx, onx_doc *doc, const onx_model *model, const onx_infer_options *options,
                            onx_infer **out)
{
    onx_arena *arena;
    *out = NULL;
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_infer *e = ONXI_NEW(arena, onx_infer);
    if (!e || onxi_dims_new(cx, &e->dims) != ONX_OK) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    e->cx = cx;
    e->doc = doc;
    e->model = model;
    e->arena = arena;
    if (doc)
        e->reader = onxi_doc_reader(doc, cx, arena);
    e->lost_at = e->reported = e->failed_at = e->binders = e->calls = e->result_of = onxi_map_in_arena(arena);
    e->plain.table = onxi_table_in_arena(arena);
    e->named = onxi_dict_in_arena(arena);
    e->results_end = &e->results;
    e->losses_end = &e->losses;
    if (options)
        e->options = *options;
    e->visit_limit = 200000;
    if (model && model->graph) /* wide nodes count more than once; the size of the input bounds the total */
        e->visit_limit += 20 * (uint64_t)model->graph->node_count + (doc ? onx_doc_input_size(doc) : 0);
    onx_status status = ONX_OK;
    if (model)
        status = onxi_functions_index(e->arena, model->functions, model->functions_count, &e->functions);
    for (uint32_t i = 0; i < e->options.fixed_count && status == ONX_OK; i++) {
        const onx_infer_fixed *f = &e->options.fixed[i];
        if (f->size < 0)
            status = onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "dimension %s cannot have size %lld", f->name,
                               (long long)f->size);
        else
            status = onxi_dims_fix(e->dims, onx_str_of(f->name), f->size);
    }
    if (status == ONX_OK)
        *out = e;
    else
        onx_infer_free(e);
    return status;
}

/* Walks a graph with the operator sets of the model. */
static onx_status walk_graph(onx_infer *e, onxi_infer_frame *frame, onxi_infer_scope *scope, const onxi_type *inputs,
                             uint32_t input_count, onxi_type *outputs, uint32_t output_count)
{
    onx_status status = onxi_infer_binder(e, NULL, &frame->binder);
    if (status == ONX_OK)
        status = onxi_infer_graph_in(e, scope, inputs, input_count, outputs, output_count);
    if (status == ONX_OK && e->status != ONX_OK)
        status = e->status;
    return status == ONX_OK && e->invalid ? ONX_E_INVALID : status;
}

void onxi_infer_main_free(onx_infer *e)
{
    if (e->main)
        onxi_infer_frame_free(e, &e->main->frame);
    e->main = NULL;
}

onx_status onxi_infer_main(onx_infer *e)
{
    onxi_infer_main_free(e);
    for (onxi_infer_result *r = e->results; r; r = r->next) { /* graphs that are not reached this time have no types */
        r->count = r->input_count = 0;
        r->indexed = false;
    }
    e->losses = NULL;
    e->losses_end = &e->losses;
    e->lost_at = e->failed_at = e->calls = onxi_map_in_arena(e->arena);
    e->failed = e->visits = e->carried = 0;
    e->gave_up = false;
    onxi_infer_repeat_forget(e);
    if (!(e->main = ONXI_NEW(e->arena, onxi_infer_main_graph)))
        return ONX_E_MEMORY;
    onxi_infer_scope *scope = &e->main->scope;
    *scope = (onxi_infer_scope){ .graph = e->model->graph, .frame = &e->main->frame };
    if (!(scope->result = onxi_infer_result_of(e, scope->graph, true)))
        return ONX_E_MEMORY;
    return walk_graph(e, scope->frame, scope, NULL, 0, NULL, 0);
}

onx_status onxi_infer_open(onx_ctx *cx, onx_doc *doc, const onx_infer_options *options, const onx_str *same,
                           onx_infer **out)
{
    onx_model *model = onx_doc_model(doc);
    if (!model)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    if (!model->graph)
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the model has no graph");
    onx_infer *e;
    *out = NULL;
    ONX_TRY(onxi_infer_start(cx, doc, model, options, &e));
    if (same) {
        e->proven = true;
        e->same = *same;
        onxi_dims_prove(e->dims);
    } else if (e->options.strict) {
        onxi_dims_refuse_overflow(e->dims);
    }
    onx_status status = onxi_infer_main(e);
    for (uint32_t i = 0; i < e->options.fixed_count && status == ONX_OK; i++)
        if (!onxi_dims_met(e->dims, onx_str_of(e->options.fixed[i].name))) {
            const onx_diag diag = { .severity = ONX_WARNING };
            onxi_report(cx, &diag, "no dimension of the model contains \"%s\", which was to be %lld",
                        e->options.fixed[i].name, (long long)e->options.fixed[i].size);
        }
    if (status == ONX_OK)
        *out = e;
    else
        onx_infer_free(e);
    return status;
}

onx_status onx_infer_new(onx_ctx *cx, onx_doc *doc, const onx_infer_options *options, onx_infer **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_infer_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_infer_free, onxi_infer_open(cx, doc, &own, NULL, out));
}

onx_status onx_infer_model(onx_ctx *cx, onx_doc *doc, const onx_infer_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    onx_infer *e;
    ONX_TRY(onx_infer_new(cx, doc, options, &e));
    onx_status status = onx_infer_apply(e);
    onx_infer_free(e);
    return status;
}

/* ---- parts of models ---- */

/* The caller's types, as an array; absent ones are of kind NONE. */
static onx_status read_types(onx_infer *e, const onx_type *const *types, uint32_t count, onxi_type **out)
{
    *out = ONXI_ARRAY(e->arena, onxi_type, count ? count : 1);
    if (!*out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        if (types[i])
            ONX_TRY(onxi_infer_type_read(e, types[i], &(*out)[i]));
    return ONX_OK;
}

static onx_status infer_graph(onx_ctx *cx, const onx_model *model, const onx_graph *graph,
                              const onx_type *const *inputs, uint32_t input_count, const onx_infer_options *options,
                              onx_arena *arena, const onx_type **outputs)
{
    onx_infer *e;
    onxi_type *given;
    ONX_TRY(onxi_infer_start(cx, NULL, model, options, &e));
    onxi_infer_frame frame = { .function = NULL };
    onxi_infer_scope scope = { .graph = graph, .frame = &frame };
    onxi_type *found = ONXI_ARRAY(e->arena, onxi_type, graph->output_count ? graph->output_count : 1);
    onx_status status = found ? read_types(e, inputs, input_count, &given) : ONX_E_MEMORY;
    if (status == ONX_OK)
        status = walk_graph(e, &frame, &scope, given, input_count, found, graph->output_count);
    onxi_infer_frame_free(e, &frame);
    for (uint32_t i = 0; i < graph->output_count && status == ONX_OK; i++) {
        onx_type *type;
        status = onxi_infer_type_write(e, arena, &found[i], &type);
        outputs[i] = type;
    }
    onx_infer_free(e);
    return status;
}

onx_status onx_infer_graph(onx_ctx *cx, const onx_model *model, const onx_graph *graph, const onx_type *const *inputs,
                           uint32_t input_count, const onx_infer_options *options, onx_arena *arena,
                           const onx_type **outputs)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, model);
    ONXI_NEED(cx, graph);
    ONXI_NEED(cx, inputs || !input_count);
    ONXI_NEED(cx, arena);
    ONXI_NEED(cx, outputs);
    ONXI_OPTIONS(cx, onx_infer_options, own, options);
    ONXI_CALL(cx, infer_graph(cx, model, graph, inputs, input_count, &own, arena, outputs));
}

static onx_status types_of_function(onx_infer *e, const onx_function *function, const onx_type *const *inputs,
                                    uint32_t input_count, const onx_attribute *const *attributes,
                                    uint32_t attribute_count, onx_arena *arena, const onx_type **outputs)
{
    onxi_infer_fact **facts = ONXI_ARRAY(e->arena, onxi_infer_fact *, input_count + 1);
    onxi_infer_fact **found = ONXI_ARRAY(e->arena, onxi_infer_fact *, function->output_count + 1);
    onxi_type *types;
    if (!facts || !found)
        return ONX_E_MEMORY;
    ONX_TRY(read_types(e, inputs, input_count, &types));
    for (uint32_t i = 0; i < input_count; i++) {
        if (!inputs[i])
            continue;
        if (!(facts[i] = onxi_infer_fact_new(e)))
            return ONX_E_MEMORY;
        facts[i]->type = types[i];
    }
    ONX_TRY(
        onxi_infer_body(e, function, facts, input_count, attributes, attribute_count, found, function->output_count));
    for (uint32_t i = 0; i < function->output_count; i++) {
        onx_type *type = NULL;
        if (found[i])
            ONX_TRY(onxi_infer_type_write(e, arena, &found[i]->type, &type));
        outputs[i] = type;
    }
    return e->invalid ? ONX_E_INVALID : e->status;
}

static onx_status infer_function(onx_ctx *cx, const onx_model *model, const onx_function *function,
                                 const onx_type *const *inputs, uint32_t input_count,
                                 const onx_attribute *const *attributes, uint32_t attribute_count,
                                 const onx_infer_options *options, onx_arena *arena, const onx_type **outputs)
{
    onx_infer *e;
    ONX_TRY(onxi_infer_start(cx, NULL, model, options, &e));
    onx_status status =
        types_of_function(e, function, inputs, input_count, attributes, attribute_count, arena, outputs);
    onx_infer_free(e);
    return status;
}

onx_status onx_infer_function(onx_ctx *cx, const onx_model *model, const onx_function *function,
                              const onx_type *const *inputs, uint32_t input_count,
                              const onx_attribute *const *attributes, uint32_t attribute_count,
                              const onx_infer_options *options, onx_arena *arena, const onx_type **outputs)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, function);
    ONXI_NEED(cx, inputs || !input_count);
    ONXI_NEED(cx, attributes || !attribute_count);
    ONXI_NEED(cx, arena);
    ONXI_NEED(cx, outputs);
    ONXI_OPTIONS(cx, onx_infer_options, own, options);
    ONXI_CALL(cx, infer_function(cx, model, function, inputs, input_count, attributes, attribute_count, &own, arena,
                                 outputs));
}

/* ---- queries ---- */

const onx_type *onx_infer_type(onx_infer *e, const onx_graph *graph, onx_str name)
{
    if (!e || !graph)
        return NULL;
    onxi_infer_result *result = onxi_infer_result_of(e, graph, false);
    onxi_infer_fact *fact = result ? onxi_infer_result_find(e, result, name) : NULL;
    onx_type *type;
    if (!fact)
        return NULL;
    if (!e->type_arena && onx_arena_new(e->cx, &e->type_arena) != ONX_OK)
        return NULL;
    return onxi_infer_type_write(e, e->type_arena, &fact->type, &type) == ONX_OK ? type : NULL;
}

const onx_type *onx_infer_type_of(void *infer, onx_kind scope_kind, const void *scope, onx_str name)
{
    if (!infer || !scope)
        return NULL;
    return scope_kind == ONX_KIND_GRAPH ? onx_infer_type(infer, scope, name) : NULL;
}

/* ---- summary ---- */

typedef enum knowledge { KNOWN, SYMBOLIC, OPEN, UNKNOWN } knowledge;

static knowledge knowledge_of(const onx_infer *e, const onxi_type *type)
{
    knowledge k = KNOWN;
    if (type->kind == ONXI_TYPE_NONE)
        return UNKNOWN;
    if (type->kind == ONXI_TYPE_TENSOR || type->kind == ONXI_TYPE_SPARSE_TENSOR) {
        if (!type->ranked || !type->dtype)
            return UNKNOWN;
        for (uint32_t i = 0; i < type->rank; i++) {
            if (onxi_dim_is_const(type->dims[i]))
                continue;
            knowledge dim = onxi_dim_is_fresh(e->dims, type->dims[i]) ? OPEN : SYMBOLIC;
            k = dim > k ? dim : k;
        }
        return k;
    }
    return type->inner ? knowledge_of(e, type->inner) : KNOWN;
}

onx_infer_summary onx_infer_summarize(const onx_infer *e)
{
    if (!e)
        return (onx_infer_summary){ 0 };
    onx_infer_summary s = { .failed = e->failed };
    for (onxi_infer_loss *l = e->losses; l; l = l->next)
        l->shown.values = 0;
    for (const onxi_infer_result *r = e->results; r; r = r->next)
        for (uint32_t i = r->input_count; i < r->count; i++) {
            const onxi_infer_fact *fact = r->made[i].fact;
            knowledge k = knowledge_of(e, &fact->type);
            s.values++;
            s.known += k == KNOWN;
            s.symbolic += k == SYMBOLIC;
            s.open += k == OPEN;
            s.unknown += k == UNKNOWN;
            if (k >= OPEN && fact->loss)
                fact->loss->shown.values++;
        }
    return s;
}

const onx_infer_loss *onx_infer_loss_get(const onx_infer *e, uint32_t index)
{
    if (!e)
        return NULL;
    if (index == 0)
        (void)onx_infer_summarize(e); /* counts the values */
    for (const onxi_infer_loss *l = e->losses; l; l = l->next)
        if (l->shown.values && index-- == 0)
            return &l->shown;
    return NULL;
}
