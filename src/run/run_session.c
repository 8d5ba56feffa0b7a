/* run_session.c - the public functions: sessions over a model, and runs with checks of the caller's inputs. */
#include "check/check.h"
#include "run/run_bind.h"
#include "run/run_choice.h"

#include <onx/check.h>
#include <onx/grad.h>

onx_ctx *onxi_run_ctx_child(const onx_ctx *cx)
{
    onx_ctx *child = onx_ctx_new(onxi_ctx_allocator(cx));
    if (!child)
        return NULL;
    onx_ctx_set_limits(child, onx_ctx_limits(cx));
    onxi_ctx_set_registry(child, onxi_ctx_registry(cx));
    return child;
}

void onx_session_free(onx_session *session)
{
    if (!session)
        return;
    onx_ctx *cx = session->s.cx, *doc_cx = session->doc_cx;
    onx_doc *doc = session->doc, *derived = session->derived;
    if (!session->s.options.lean_memory)
        onxi_memory_keep(); /* keeps freed memory: after this session, another one will need as much */
    onxi_dict_free(&session->inputs);
    onxi_dict_free(&session->outputs);
    onxi_dict_free(&session->defaults);
    if (session->other && session->other_user)
        session->other->release(session->other_user);
    else if (!session->other)
        onxi_run_session_close(&session->s);
    if (session->said)
        onxi_run_said_close(cx, session->said);
    onxi_release(cx, session->said, sizeof *session->said);
    onxi_release(cx, session, sizeof *session);
    onx_doc_free(derived);
    onx_ctx_free(cx);
    onx_doc_free(doc);
    onx_ctx_free(doc_cx);
}

static onx_status open_said(onx_session *session, const onx_graph *graph)
{
    if (!(session->said = onxi_resize(session->s.cx, NULL, 0, sizeof *session->said)))
        return ONX_E_MEMORY;
    *session->said = (onxi_run_said){ .count = 0 };
    return onxi_run_said_open(session->s.cx, graph->output_count, session->said);
}

/* If the model alone determines the shapes of all inputs, makes the first plan immediately. */
static onx_status plan_early(onxi_run_session *s)
{
    onxi_run_graph *g = s->main;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    const onx_value **inputs = (const onx_value **)ONXI_ARRAY(arena, void *, g->input_count + 1u);
    onx_value *values = ONXI_ARRAY(arena, onx_value, g->input_count + 1u);
    onx_status status = inputs && values ? ONX_OK : ONX_E_MEMORY;
    bool known = true;
    for (uint32_t i = 0; status == ONX_OK && known && i < g->input_count; i++) {
        const onxi_run_graph_slot *slot = &g->slots[g->inputs[i]];
        if (slot->constant || slot->tensor || slot->sparse)
            continue;
        const onx_type *type = g->graph->input[i]->type;
        const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
        onx_value *v = &values[i];
        inputs[i] = v;
        known = t && t->shape && onx_dtype_name(t->elem_type) && t->shape->dim_count <= ONX_RANK_MAX;
        if (!known)
            break;
        *v = (onx_value){ .kind = ONX_VALUE_TENSOR, .dtype = (uint8_t)t->elem_type, .rank = t->shape->dim_count };
        v->dims = ONXI_ARRAY(arena, int64_t, v->rank + 1u);
        for (uint32_t k = 0; v->dims && known && k < v->rank; k++) {
            known = ONX_HAS(dimension, t->shape->dim[k], dim_value);
            v->dims[k] = known ? t->shape->dim[k]->dim_value : 0;
        }
        known = known && v->dims && onxi_dims_count(v->rank, v->dims, &v->count) &&
                onxi_tensor_room(v->dtype, v->count, &v->size);
    }
    if (status == ONX_OK && known) {
        onxi_run_plan *plan;
        status = onxi_run_plan_new(g, inputs, &s->watch, s->once, s->cx, &plan);
        if (ONXI_RUN_MEASURES && status == ONX_OK && onxi_run_measure_is_due(plan)) { /* needs a run with values */
            onxi_run_plan_free(s, plan);
        } else if (status == ONX_OK) {
            (void)onxi_run_recent_add(&g->plans, &plan->kept, 1, 1, 0); /* it is the first one */
            (void)onxi_run_recent_let_go(&plan->kept);                  /* not in use yet */
        }
    }
    onx_arena_free(arena);
    return status;
}

/* Of several with the same name, the first is found. */
static onx_status index_names(onxi_dict *names, onx_value_info *const *info, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!onxi_dict_at(names, onx_view(info[i]->name), i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status find_gradient(void *user, const onx_visit *at)
{
    bool *found = user;
    if (at->kind == ONX_KIND_TRAINING_INFO)
        return ONX_OK;
    *found |= at->kind == ONX_KIND_NODE && onxi_node_is(at->message, ONXI_ID_Gradient);
    return ONX_OK;
}

/* A model that asks for gradients is replaced by a copy that computes them. */
static onx_status derive_copy(onx_ctx *cx, onx_doc *doc, onx_doc **out)
{
    const onx_model *model = onx_doc_model(doc);
    bool found = false;
    void *copy;
    *out = NULL;
    ONX_TRY(onx_message_walk(cx, ONX_KIND_GRAPH, model->graph, find_gradient, &found));
    for (uint32_t i = 0; i < model->functions_count && !found; i++)
        ONX_TRY(onx_message_walk(cx, ONX_KIND_FUNCTION, model->functions[i], find_gradient, &found));
    if (!found)
        return ONX_OK;
    ONX_TRY(onx_doc_new(cx, ONX_KIND_MODEL, out));
    onx_status status = onx_message_copy(onx_doc_arena(*out), ONX_KIND_MODEL, model, &copy);
    if (status == ONX_OK) {
        (*out)->root = copy;
        (*out)->external_bytes = doc->external_bytes;
        (*out)->external_late = doc->external_late;
        (*out)->links = doc->links;
        if (doc->base_dir) {
            const onx_str folder = onxi_arena_printf((*out)->arena, "%s", doc->base_dir);
            (*out)->base_dir = folder.ptr;
            status = folder.ptr ? ONX_OK : ONX_E_MEMORY;
        }
    }
    if (status == ONX_OK)
        status = onx_grad_expand(cx, *out);
    if (status == ONX_OK)
        return ONX_OK;
    onx_doc_free(*out);
    *out = NULL;
    return status;
}

static onx_status session_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options, onx_session **out)
{
    ONX_TRY(onxi_doc_need_graph(cx, doc));
    onx_model *model = onx_doc_model(doc);
    if (options && options->precision >= ONX_PRECISION_END)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%u is not a precision", options->precision);
    /* Unchecked models never run. Shapes are checked when values are given. */
    static const char *const harmless[] = { "ND-07" }; /* an operator that became deprecated still has a meaning */
    const bool strict = options && options->strict, newer = !strict && !(options && options->strict_opset);
    onx_check_options check = { .flags = ONX_CHECK_STRUCTURE | ONX_CHECK_OPEN_SHAPES |
                                         (uint32_t)(strict ? ONX_CHECK_STRICT : ONX_CHECK_ONE_MEANING) |
                                         (uint32_t)(newer ? ONX_CHECK_NEWER_OPSETS : 0),
                                .ignore = harmless,
                                .ignore_count = 1,
                                .registry = options ? options->registry : NULL };
    onx_check_summary found;
    ONX_TRY(onx_check(cx, doc, &check, &found));
    onxi_check_warn_of_newer(cx, model, "run");
    onx_ctx *own = onxi_run_ctx_child(cx);
    if (!own)
        return onxi_no_memory(cx);
    onx_session *session = onxi_resize(own, NULL, 0, sizeof *session);
    if (!session) {
        onx_ctx_free(own);
        return onxi_no_memory(cx);
    }
    memset(session, 0, sizeof *session);
    if (check.registry) /* for everything made of the document here, including gradients */
        onxi_ctx_set_registry(own, check.registry);
    session->inputs = onxi_dict_on_heap(own);
    session->outputs = onxi_dict_on_heap(own);
    session->defaults = onxi_dict_on_heap(own);
    session->s.cx = own; /* freed even if opening fails */
    session->strict = strict;
    session->s.unsorted = found.warnings > 0; /* a warning may say that nodes are unsorted */
    onx_status status = derive_copy(own, doc, &session->derived);
    if (session->derived) {
        doc = session->derived;
        model = onx_doc_model(doc);
    }
    session->graph = model->graph;
    session->s.watch =
        onxi_run_watch_new(cx, &(onx_run_options){ .timeout_ns = options->timeout_ns, .cancel = options->cancel });
    if (status == ONX_OK)
        status = onxi_run_session_open(&session->s, own, doc, options, NULL, NULL);
    if (status == ONX_OK)
        status = open_said(session, model->graph);
    if (status == ONX_OK)
        status = index_names(&session->inputs, model->graph->input, model->graph->input_count);
    if (status == ONX_OK)
        status = index_names(&session->outputs, model->graph->output, model->graph->output_count);
    if (status == ONX_OK)
        status = plan_early(&session->s);
    if (status == ONX_OK)
        onxi_run_elements_end(&session->s);
    session->s.watch = (onxi_run_watch){ .timeout_ns = 0 };
    if (ONXI_PLATFORM_KEEPS)
        onxi_store_tell(session->s.store, cx);
    if (status != ONX_OK) {
        onxi_diag_move(cx, own);
        onx_session_free(session);
        return status;
    }
    *out = session;
    return ONX_OK;
}

static onx_status index_defaults(onxi_dict *names, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(names, onx_view(g->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++)
        if (g->sparse_initializer[i]->values &&
            !onxi_dict_at(names, onx_view(g->sparse_initializer[i]->values->name), i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

onx_status onxi_run_session_other(onx_ctx *cx, onx_doc *doc, const onxi_run_other *other, void *user, onx_session **out)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    onx_ctx *own = onxi_run_ctx_child(cx);
    onx_session *session = own ? onxi_resize(own, NULL, 0, sizeof *session) : NULL;
    if (!session) {
        onx_ctx_free(own);
        return onxi_no_memory(cx);
    }
    *session = (onx_session){ .other = other, .graph = g };
    session->s.cx = own;
    session->inputs = onxi_dict_on_heap(own);
    session->outputs = onxi_dict_on_heap(own);
    session->defaults = onxi_dict_on_heap(own);
    onx_status status = open_said(session, g);
    if (status == ONX_OK)
        status = index_names(&session->inputs, g->input, g->input_count);
    if (status == ONX_OK)
        status = index_names(&session->outputs, g->output, g->output_count);
    if (status == ONX_OK)
        status = index_defaults(&session->defaults, g);
    if (status == ONX_OK) {
        session->other_user = user; /* only now: before, it belonged to the caller */
        *out = session;
        return ONX_OK;
    }
    onxi_diag_move(cx, own);
    onx_session_free(session);
    return status;
}

void *onxi_run_session_user(const onx_session *session, const onxi_run_other *other)
{
    return session && session->other == other ? session->other_user : NULL;
}

onx_status onx_session_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options, onx_session **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_session_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_session_free, session_new(cx, doc, &own, out));
}

static onx_status load_and_make(onx_ctx *cx, onx_ctx *doc_cx, const char *path, const onx_load_options *load_options,
                                const onx_session_options *options, onx_session **out)
{
    onx_doc *doc = NULL;
    onx_status status = onx_load(doc_cx, ONX_KIND_MODEL, path, load_options, &doc);
    onxi_diag_move(cx, doc_cx);
    if (status == ONX_OK)
        status = onx_session_new(cx, doc, options, out);
    if (status != ONX_OK) {
        onx_doc_free(doc);
        return status;
    }
    (*out)->doc = doc;
    (*out)->doc_cx = doc_cx;
    return ONX_OK;
}

static onx_status session_load(onx_ctx *cx, const char *path, const onx_load_options *load_options,
                               const onx_session_options *options, onx_session **out)
{
    /* The document stays with the session, which may be used by another thread. */
    onx_ctx *doc_cx = onxi_run_ctx_child(cx);
    if (!doc_cx)
        return onxi_no_memory(cx);
    const onx_status status = load_and_make(cx, doc_cx, path, load_options, options, out);
    if (status != ONX_OK)
        onx_ctx_free(doc_cx);
    return status;
}

onx_status onx_session_load(onx_ctx *cx, const char *path, const onx_load_options *load_options,
                            const onx_session_options *options, onx_session **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, path);
    ONXI_CALL_TO_MAKE(cx, out, onx_session_free, session_load(cx, path, load_options, options, out));
}

uint32_t onx_session_input_count(const onx_session *session)
{
    return session ? session->graph->input_count : 0;
}
uint32_t onx_session_output_count(const onx_session *session)
{
    return session ? session->graph->output_count : 0;
}

onx_session_port onx_session_input(const onx_session *session, uint32_t index)
{
    if (index >= onx_session_input_count(session))
        return (onx_session_port){ .required = false };
    const onx_value_info *info = session->graph->input[index];
    if (session->other)
        return (onx_session_port){ onx_view(info->name), info->type,
                                   !onxi_dict_find(&session->defaults, onx_view(info->name)) };
    const onxi_run_graph *g = session->s.main;
    const onxi_run_graph_slot *slot = &g->slots[g->inputs[index]];
    return (onx_session_port){ onx_view(info->name), info->type, !slot->constant && !slot->tensor && !slot->sparse };
}

onx_session_port onx_session_output(const onx_session *session, uint32_t index)
{
    if (index >= onx_session_output_count(session))
        return (onx_session_port){ .required = false };
    const onx_value_info *info = session->graph->output[index];
    return (onx_session_port){ onx_view(info->name), info->type, true };
}

static bool find_port(const onxi_dict *names, onx_str name, uint32_t *index_out)
{
    const onxi_dict_entry *entry = onxi_dict_find(names, name);
    if (entry)
        *index_out = entry->value;
    return entry != NULL;
}

bool onx_session_find_input(const onx_session *session, onx_str name, uint32_t *index_out)
{
    return session && index_out && (name.ptr || !name.len) && find_port(&session->inputs, name, index_out);
}

bool onx_session_find_output(const onx_session *session, onx_str name, uint32_t *index_out)
{
    return session && index_out && (name.ptr || !name.len) && find_port(&session->outputs, name, index_out);
}

/* Is each output value distinct from the other outputs and from the inputs? Otherwise it would be written while it is
 * read. */
static bool outputs_are_distinct(const onx_graph *g, const onx_value *const *inputs, onx_value *const *outputs)
{
    bool distinct = true;
    for (uint32_t i = 0; i < g->output_count; i++)
        if (outputs[i]) {
            distinct &= !(outputs[i]->flags & ONXI_VALUE_OUTPUT);
            outputs[i]->flags |= ONXI_VALUE_OUTPUT;
        }
    for (uint32_t i = 0; i < g->input_count; i++)
        distinct &= !inputs[i] || !(inputs[i]->flags & ONXI_VALUE_OUTPUT);
    for (uint32_t i = 0; i < g->output_count; i++)
        if (outputs[i])
            outputs[i]->flags &= (uint16_t)~ONXI_VALUE_OUTPUT;
    return distinct;
}

static onx_status check_arguments(const onx_session *session, onx_ctx *cx, const onx_value *const *inputs,
                                  onx_value *const *outputs)
{
    const onx_graph *g = session->graph;
    for (uint32_t i = 0; i < g->input_count; i++) {
        onx_session_port port = onx_session_input(session, i);
        if (!inputs[i] && port.required)
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "input \"%.*s\" is not given", ONX_ARG(port.name));
        if (inputs[i] && inputs[i]->kind == ONX_VALUE_NONE)
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "the value for input \"%.*s\" holds nothing",
                             ONX_ARG(port.name));
    }
    if (!outputs_are_distinct(g, inputs, outputs))
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE,
                         "a value is given for an output and also for an input or another output");
    return ONX_OK;
}

static onx_status run_with(onx_session *session, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                           const onx_run_options *options)
{
    onxi_run_session *s = &session->s;
    onxi_run_session *variant;
    if (session->other)
        return session->other->run(session->other_user, cx, inputs, outputs, options);
    ONX_TRY(onxi_run_variant_take(s, cx, inputs, options, &variant));
    onx_status status = onxi_run_graph_run(variant->main, cx, inputs, outputs, options);
    onxi_run_variant_let_go(variant);
    return status;
}

static onx_status run_checked(onx_session *session, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              const onx_run_options *options)
{
    const onx_graph *g = session->graph;
    ONX_TRY(check_arguments(session, cx, inputs, outputs));
    onxi_run_inputs bound;
    ONX_TRY(onxi_run_inputs_bind(cx, g, inputs, session->strict, session->said, &bound));
    const onx_status status = run_with(session, cx, bound.inputs, outputs, options);
    onxi_run_inputs_free(cx, &bound);
    ONX_TRY(status);
    onxi_run_bind_results(cx, g->output, g->output_count, outputs, session->said);
    return ONX_OK;
}

onx_status onx_session_run_with(onx_session *session, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                                const onx_run_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, session);
    ONXI_NEED(cx, inputs || !session->graph->input_count);
    ONXI_NEED(cx, outputs || !session->graph->output_count);
    ONXI_OPTIONS(cx, onx_run_options, own, options);
    ONXI_CALL(cx, run_checked(session, cx, inputs, outputs, &own));
}

onx_status onx_session_run(onx_session *session, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs)
{
    return onx_session_run_with(session, cx, inputs, outputs, NULL);
}

/* ---- by name ---- */

/* Puts the named values into the positions of the graph's names; `used` marks the positions that have a value. */
static onx_status place_named(onx_ctx *cx, const char *what, const onxi_dict *names, const onx_named_value *list,
                              uint32_t count, onx_value **values, bool *used)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at;
        if (!list[i].name)
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%s %u of the list has no name", what, i);
        if (!find_port(names, onx_str_of(list[i].name), &at))
            return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no %s \"%s\"", what, list[i].name);
        if (used[at])
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%s \"%s\" is given twice", what, list[i].name);
        used[at] = true;
        values[at] = list[i].value;
    }
    return ONX_OK;
}

static onx_status run_placed(onx_session *session, onx_ctx *cx, const onx_named_value *inputs, uint32_t input_count,
                             onx_named_value *outputs, uint32_t output_count, const onx_run_options *options,
                             onx_arena *arena)
{
    const uint32_t ins = session->graph->input_count, outs = session->graph->output_count;
    onx_value **values = ONXI_ARRAY(arena, onx_value *, (size_t)ins + 1),
              **made = ONXI_ARRAY(arena, onx_value *, (size_t)outs + 1);
    bool *is_given = ONXI_ARRAY(arena, bool, (size_t)ins + 1), *is_asked = ONXI_ARRAY(arena, bool, (size_t)outs + 1);
    if (!values || !made || !is_given || !is_asked)
        return ONX_E_MEMORY;
    ONX_TRY(place_named(cx, "input", &session->inputs, inputs, input_count, values, is_given));
    ONX_TRY(place_named(cx, "output", &session->outputs, outputs, output_count, made, is_asked));
    const onx_status status =
        onx_session_run_with(session, cx, (const onx_value *const *)(void *)values, made, options);
    for (uint32_t i = 0; i < output_count; i++) {
        uint32_t at = 0;
        (void)find_port(&session->outputs, onx_str_of(outputs[i].name), &at);
        outputs[i].value = made[at];
    }
    for (uint32_t i = 0; i < outs; i++)
        if (!is_asked[i])
            onx_value_free(made[i]);
    return status;
}

static onx_status run_named(onx_session *session, onx_ctx *cx, const onx_named_value *inputs, uint32_t input_count,
                            onx_named_value *outputs, uint32_t output_count, const onx_run_options *options)
{
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    const onx_status status = run_placed(session, cx, inputs, input_count, outputs, output_count, options, arena);
    onx_arena_free(arena);
    return status;
}

onx_status onx_session_run_named(onx_session *session, onx_ctx *cx, const onx_named_value *inputs, uint32_t input_count,
                                 onx_named_value *outputs, uint32_t output_count, const onx_run_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, session);
    ONXI_NEED(cx, inputs || !input_count);
    ONXI_NEED(cx, outputs || !output_count);
    ONXI_CALL(cx, run_named(session, cx, inputs, input_count, outputs, output_count, options));
}
