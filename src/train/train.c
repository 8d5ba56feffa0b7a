/* train.c - executes training information: one session per entry, over the main graph followed by its algorithm, with
 * variables as inputs; and one session per initialisation graph. */
#include "train/train.h"

#include <onx/check.h>
#include <onx/tensor.h>

#include "ir/ir.h"

#include <math.h>

typedef struct variable {
    onx_str name;
    onx_tensor *tensor; /* a tensor of the document */
    uint32_t entry;     /* UINT32_MAX: a variable of the main graph */
    onx_value *value, *next;
    void *stored; /* memory of the document that an earlier store allocated, of the size of the value */
} variable;

typedef struct binding {
    uint32_t variable, output; /* output: index of the name */
    bool shared;               /* the output is assigned to several variables */
} binding;

typedef struct scope {                 /* the main graph, or the algorithm graph of an entry */
    onxi_dict initializers, variables; /* name to index */
    bool open;
} scope;

typedef struct program { /* a graph to run: a step or an initialisation */
    onx_doc *doc;
    onx_session *session;
    uint32_t *variables, *variable_at; /* variables that are inputs of it, and the index of each input */
    uint32_t variable_count;
    onx_value **inputs, **outputs; /* of the session; outputs are reused from step to step */
    uint32_t input_count, output_count;
    bool whole; /* all outputs of the main graph are requested, not only those that are bound to variables */
    onxi_train_reduced reduced;
    binding *bindings;
    const char **names;  /* of bound outputs, each once */
    uint32_t *output_at; /* the session output of each name */
    uint32_t binding_count, name_count;
} program;

struct onx_trainer {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena;
    onx_session_options options;
    uint32_t count;
    onx_run_options run;
    program *steps, *starts;
    scope *scopes; /* of the main graph, then of the entries */
    variable *variables;
    uint32_t variable_count, variable_room;
    onx_train_reduction reduction; /* reduce NULL: none */
    onxi_train_ranks ranks;
    onx_kernel *kernels; /* the caller's kernels, and that of the reduction */
};

static const onx_training_info *entry_of(const onx_trainer *t, uint32_t i)
{
    return onx_doc_model(t->doc)->training_info[i];
}

/* ---- variables ---- */

static onx_status open_scope(onx_trainer *t, scope *s, const onx_graph *graph)
{
    s->initializers = onxi_dict_in_arena(t->arena);
    s->variables = onxi_dict_in_arena(t->arena);
    s->open = true;
    for (uint32_t i = 0; graph && i < graph->initializer_count; i++)
        if (!onxi_dict_at(&s->initializers, onx_view(graph->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_tensor *initializer(const scope *s, const onx_graph *graph, onx_str name)
{
    const onxi_dict_entry *entry = onxi_dict_find(&s->initializers, name);
    return entry ? graph->initializer[entry->value] : NULL;
}

/* The variable that a key of an entry names; created on first use. */
static onx_status find_variable(onx_trainer *t, uint32_t entry, onx_str key, uint32_t *index)
{
    const onx_graph *graph = onx_doc_model(t->doc)->graph, *algorithm = entry_of(t, entry)->algorithm;
    if (!t->scopes[0].open)
        ONX_TRY(open_scope(t, &t->scopes[0], graph));
    if (!t->scopes[entry + 1].open)
        ONX_TRY(open_scope(t, &t->scopes[entry + 1], algorithm));
    onx_tensor *main = initializer(&t->scopes[0], graph, key);
    onx_tensor *own = main ? NULL : initializer(&t->scopes[entry + 1], algorithm, key);
    const uint32_t where = main ? UINT32_MAX : entry;
    if (!main && !own)
        return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE,
                         "training_info[%u] binds %.*s, which is not an initializer", entry, ONX_ARG(key));
    bool made;
    const onxi_dict_entry *at = onxi_dict_at(&t->scopes[main ? 0 : entry + 1].variables, key, t->variable_count, &made);
    if (!at)
        return ONX_E_MEMORY;
    *index = at->value;
    if (!made)
        return ONX_OK;
    if (!ONXI_GROW_IN(t->arena, t->variables, t->variable_room, (uint64_t)t->variable_count + 1))
        return ONX_E_MEMORY;
    variable *v = &t->variables[t->variable_count++];
    *v = (variable){ .name = key, .tensor = main ? main : own, .entry = where };
    ONX_TRY(onx_value_from_message(t->cx, t->doc, ONX_KIND_TENSOR, v->tensor, &v->value));
    return onx_value_new(t->cx, &v->next);
}

static onx_status find_variables(onx_trainer *t)
{
    uint32_t index;
    for (uint32_t i = 0; i < t->count; i++) {
        const onx_training_info *info = entry_of(t, i);
        for (uint32_t k = 0; k < info->initialization_binding_count; k++)
            ONX_TRY(find_variable(t, i, onx_view(info->initialization_binding[k]->key), &index));
        for (uint32_t k = 0; k < info->update_binding_count; k++)
            ONX_TRY(find_variable(t, i, onx_view(info->update_binding[k]->key), &index));
    }
    return ONX_OK;
}

/* ---- programs ---- */

static onx_status bind(onx_trainer *t, program *p, uint32_t entry, onx_string_string_entry *const *list, uint32_t count)
{
    p->bindings = ONXI_ARRAY(t->arena, binding, (size_t)count + 1);
    p->names = ONXI_ARRAY(t->arena, const char *, (size_t)count + 1);
    onxi_dict names = onxi_dict_in_arena(t->arena); /* outputs: index of the first binding */
    if (!p->bindings || !p->names)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        binding *b = &p->bindings[p->binding_count++];
        const onx_str value = onx_view(list[i]->value);
        bool made;
        ONX_TRY(find_variable(t, entry, onx_view(list[i]->key), &b->variable));
        const onxi_dict_entry *first = onxi_dict_at(&names, value, i, &made);
        if (!first)
            return ONX_E_MEMORY;
        if (!made) {
            b->output = p->bindings[first->value].output;
            p->bindings[first->value].shared = b->shared = true;
            continue;
        }
        const onx_str name = onxi_arena_printf(t->arena, "%.*s", ONX_ARG(value));
        if (!name.ptr)
            return ONX_E_MEMORY;
        b->output = p->name_count;
        p->names[p->name_count++] = name.ptr;
    }
    return ONX_OK;
}

/* Creates a separate model with the parts of the document that the graph needs. */
static onx_status new_doc(onx_trainer *t, program *p)
{
    const onx_model *from = onx_doc_model(t->doc);
    ONX_TRY(onx_doc_new(t->cx, ONX_KIND_MODEL, &p->doc));
    onx_model *model = onx_message_new(onx_doc_arena(p->doc), ONX_KIND_MODEL);
    if (!model)
        return ONX_E_MEMORY;
    *model = *from; /* parts that are not replaced are shared, and only read */
    model->graph = NULL;
    model->training_info = NULL;
    model->training_info_count = 0;
    if (model->ir_version < 4)
        ONX_SET(model, model, ir_version, 4); /* from this IR version on, initializers need not be inputs */
    p->doc->root = model;
    p->doc->external_bytes = t->doc->external_bytes;
    p->doc->external_late = t->doc->external_late;
    p->doc->base_dir = t->doc->base_dir;
    p->doc->links = t->doc->links;
    return ONX_OK;
}

static onx_status add_input(onx_arena *arena, onx_graph *graph, const variable *v)
{
    const onx_tensor *tensor = v->tensor;
    const onx_str name = onxi_arena_printf(arena, "%.*s", ONX_ARG(v->name));
    onx_type *type = onx_type_new_tensor(arena, (onx_dtype)tensor->data_type, tensor->dims, (int)tensor->dims_count);
    return name.ptr && type && onx_graph_add_input(arena, graph, name.ptr, type) ? ONX_OK : ONX_E_MEMORY;
}

/* The variables of a step become inputs instead of initializers. */
static onx_status make_inputs(onx_trainer *t, program *p, onx_graph *graph, uint32_t entry)
{
    onxi_dict inputs = onxi_dict_in_arena(t->arena), mine = onxi_dict_in_arena(t->arena);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!onxi_dict_at(&inputs, onx_view(graph->input[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < t->variable_count; i++) {
        const variable *v = &t->variables[i];
        if (v->entry != UINT32_MAX && v->entry != entry)
            continue;
        p->variables[p->variable_count++] = i;
        if (!onxi_dict_at(&mine, v->name, i, NULL))
            return ONX_E_MEMORY;
        if (!onxi_dict_find(&inputs, v->name))
            ONX_TRY(add_input(onx_doc_arena(p->doc), graph, v));
    }
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (!onxi_dict_find(&mine, onx_view(graph->initializer[i]->name)))
            graph->initializer[kept++] = graph->initializer[i];
    graph->initializer_count = kept;
    return ONX_OK;
}

/* Appends the lists of one graph to another's. */
#define JOIN(field)                                                                                                    \
    for (uint32_t i = 0; i < more->field##_count; i++) {                                                               \
        void *list = graph->field;                                                                                     \
        void *place = onx_list_insert(arena, &list, &graph->field##_count, graph->field##_count, sizeof(void *));      \
        if (!place)                                                                                                    \
            return ONX_E_MEMORY;                                                                                       \
        graph->field = list;                                                                                           \
        memcpy(place, &more->field[i], sizeof(void *));                                                                \
    }

static onx_status join_outputs(onx_arena *arena, onx_graph *graph, const onx_graph *more)
{
    JOIN(output)
    return ONX_OK;
}

static onx_status join(onx_arena *arena, onx_graph *graph, const onx_graph *more)
{
    JOIN(input)
    JOIN(node)
    JOIN(initializer)
    JOIN(sparse_initializer)
    JOIN(value_info)
    return ONX_OK;
}

/* The session output that corresponds to a name in the model. */
static bool find_output(const program *p, onx_str name, uint32_t *index)
{
    const onxi_dict_entry *reduced = p->reduced.names ? onxi_dict_find(&p->reduced.outputs, name) : NULL;
    return onx_session_find_output(p->session, reduced ? p->reduced.names[reduced->value] : name, index);
}

static onx_status open_session(onx_trainer *t, program *p)
{
    onx_session_options options = t->options;
    if (t->reduction.reduce)
        options.kernels = t->kernels;
    ONX_TRY(onx_session_new(t->cx, p->doc, &options, &p->session));
    p->input_count = onx_session_input_count(p->session);
    p->output_count = onx_session_output_count(p->session);
    p->inputs = (onx_value **)ONXI_ARRAY(t->arena, void *, (size_t)p->input_count + 1);
    p->outputs = (onx_value **)ONXI_ARRAY(t->arena, void *, (size_t)p->output_count + 1);
    p->variable_at = ONXI_ARRAY(t->arena, uint32_t, (size_t)p->variable_count + 1);
    p->output_at = ONXI_ARRAY(t->arena, uint32_t, (size_t)p->name_count + 1);
    if (!p->inputs || !p->outputs || !p->variable_at || !p->output_at)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p->variable_count; i++)
        if (!onx_session_find_input(p->session, t->variables[p->variables[i]].name, &p->variable_at[i]))
            return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "variable %.*s is not an input of its step",
                             ONX_ARG(t->variables[p->variables[i]].name));
    for (uint32_t i = 0; i < p->name_count; i++)
        if (!find_output(p, onx_str_of(p->names[i]), &p->output_at[i]))
            return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE, "%s is bound to a variable and is not an output",
                             p->names[i]);
    return ONX_OK;
}

/* Selects the outputs of the main graph that a step needs: those that are bound, until others are requested. Nodes
 * needed only for the others are not computed. */
static onx_status keep_bound(const program *p, onx_graph *graph)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        bool bound = false;
        for (uint32_t k = 0; k < p->name_count && !bound; k++)
            bound = onx_str_is(onx_view(graph->output[i]->name), p->names[k]);
        if (bound)
            graph->output[kept++] = graph->output[i];
    }
    graph->output_count = kept;
    return ONX_OK;
}

/* Imports the domain of the reduction nodes. */
static onx_status add_import(program *p)
{
    onx_arena *arena = onx_doc_arena(p->doc);
    onx_model *model = onx_doc_model(p->doc);
    onx_operator_set_id **list =
        (onx_operator_set_id **)ONXI_ARRAY(arena, void *, (size_t)model->opset_import_count + 1);
    onx_operator_set_id *id = onx_message_new(arena, ONX_KIND_OPERATOR_SET_ID);
    if (!list || !id || onx_arena_keep(arena, onx_str_of(ONXI_TRAIN_DOMAIN), &id->domain) != ONX_OK)
        return ONX_E_MEMORY;
    id->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, id, version, 1);
    if (model->opset_import_count)
        memcpy(list, model->opset_import, model->opset_import_count * sizeof *list); /* the list of `from` is shared and
                                                                                      * must not be changed */
    list[model->opset_import_count++] = id;
    model->opset_import = list;
    return ONX_OK;
}

static onx_status add_reduction(onx_trainer *t, program *p, onx_graph *graph)
{
    onxi_dict own = onxi_dict_in_arena(t->arena);
    for (uint32_t i = 0; i < p->variable_count; i++)
        if (!onxi_dict_at(&own, t->variables[p->variables[i]].name, i, NULL))
            return ONX_E_MEMORY;
    ONX_TRY(add_import(p));
    return onxi_train_reduce_graph(t->cx, t->arena, graph, &own, &p->reduced);
}

/* The main graph followed by the algorithm; variables are inputs. */
static onx_status open_step(onx_trainer *t, uint32_t entry, bool whole)
{
    program *p = &t->steps[entry];
    const onx_training_info *info = entry_of(t, entry);
    if (!info->algorithm)
        return ONX_OK;
    ONX_TRY(bind(t, p, entry, info->update_binding, info->update_binding_count));
    ONX_TRY(new_doc(t, p));
    onx_arena *arena = onx_doc_arena(p->doc);
    onx_graph *graph = onx_message_new(arena, ONX_KIND_GRAPH);
    if (!graph || !(p->variables = ONXI_ARRAY(t->arena, uint32_t, (size_t)t->variable_count + 1)))
        return ONX_E_MEMORY;
    graph->name = onx_doc_model(t->doc)->graph->name;
    graph->has |= onx_graph_has_name;
    ONX_TRY(join(arena, graph, onx_doc_model(t->doc)->graph));
    ONX_TRY(join_outputs(arena, graph, onx_doc_model(t->doc)->graph));
    p->whole = whole || !info->algorithm->output_count;
    if (!p->whole)
        ONX_TRY(keep_bound(p, graph));
    ONX_TRY(join(arena, graph, info->algorithm));
    ONX_TRY(join_outputs(arena, graph, info->algorithm));
    onx_doc_model(p->doc)->graph = graph;
    ONX_TRY(make_inputs(t, p, graph, entry));
    if (t->reduction.reduce)
        ONX_TRY(add_reduction(t, p, graph));
    return open_session(t, p);
}

static onx_status open_start(onx_trainer *t, uint32_t entry)
{
    program *p = &t->starts[entry];
    const onx_training_info *info = entry_of(t, entry);
    if (!info->initialization || !info->initialization_binding_count)
        return ONX_OK;
    ONX_TRY(bind(t, p, entry, info->initialization_binding, info->initialization_binding_count));
    ONX_TRY(new_doc(t, p));
    onx_doc_model(p->doc)->graph = info->initialization;
    return open_session(t, p);
}

/* ---- running ---- */

static onx_value **bound_at(const program *p, const binding *b)
{
    return &p->outputs[p->output_at[b->output]];
}

/* Assigns the outputs of a program to the variables that they are bound to. */
static onx_status take(onx_trainer *t, program *p)
{
    for (uint32_t i = 0; i < p->binding_count; i++) {
        const variable *v = &t->variables[p->bindings[i].variable];
        onx_value_difference d;
        if (!onx_value_same_type(*bound_at(p, &p->bindings[i]), v->value, &d))
            return onxi_fail(t->cx, ONX_E_INVALID, ONXI_NOWHERE,
                             "what training gives for variable %.*s has another type or shape: %s", ONX_ARG(v->name),
                             d.text);
    }
    for (uint32_t i = 0; i < p->binding_count; i++) /* outputs bound to several variables are copied before any variable
                                                     * changes */
        if (p->bindings[i].shared)
            ONX_TRY(onx_value_assign(t->variables[p->bindings[i].variable].next, *bound_at(p, &p->bindings[i])));
    for (uint32_t i = 0; i < p->binding_count; i++) {
        variable *v = &t->variables[p->bindings[i].variable];
        onx_value **from = p->bindings[i].shared ? &v->next : bound_at(p, &p->bindings[i]), *old = v->value;
        v->value = *from;
        *from = old;
    }
    return ONX_OK;
}

static onx_status run_program(onx_trainer *t, program *p)
{
    return onx_session_run_with(p->session, t->cx, (const onx_value *const *)p->inputs, p->outputs, &t->run);
}

/* All ranks get the variables of rank 0. */
static onx_status share(onx_trainer *t)
{
    for (uint32_t i = 0; i < t->variable_count && t->ranks.comm.exchange; i++)
        ONX_TRY(onxi_train_ranks_share(&t->ranks, t->variables[i].value));
    return ONX_OK;
}

static onx_status initialize(onx_trainer *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        program *p = &t->starts[i];
        if (!p->session)
            continue;
        ONX_TRY(run_program(t, p));
        ONX_TRY(take(t, p));
    }
    return share(t);
}

/* Fills the session inputs from the caller's inputs and the variables. */
static onx_status place_inputs(onx_trainer *t, program *p, const onx_named_value *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < p->input_count; i++)
        p->inputs[i] = NULL;
    for (uint32_t i = 0; i < p->variable_count; i++)
        p->inputs[p->variable_at[i]] = t->variables[p->variables[i]].value;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at;
        const char *name = inputs[i].name ? inputs[i].name : "";
        if (!onx_session_find_input(p->session, onx_str_of(name), &at))
            return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the step has no input %s", name);
        if (p->inputs[at])
            return onxi_fail(t->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                             "%s is a variable, which steps alone change, or is given twice", name);
        p->inputs[at] = inputs[i].value;
    }
    return ONX_OK;
}

static void close_program(program *p)
{
    for (uint32_t i = 0; p->outputs && i < p->output_count; i++)
        onx_value_free(p->outputs[i]);
    onx_session_free(p->session);
    onx_doc_free(p->doc);
}

/* Prepares a step again if an output of the main graph is requested that no step has computed so far, or if the
 * reduction has changed. */
static onx_status reopen(onx_trainer *t, uint32_t entry, bool whole)
{
    program *p = &t->steps[entry], before = *p;
    *p = (program){ .doc = NULL };
    const onx_status status = open_step(t, entry, whole);
    if (status != ONX_OK) {
        close_program(p);
        *p = before;
        return status;
    }
    close_program(&before);
    return ONX_OK;
}

static bool in_main(const onx_trainer *t, const char *name)
{
    const onx_graph *graph = onx_doc_model(t->doc)->graph;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (onx_str_is(onx_view(graph->output[i]->name), name))
            return true;
    return false;
}

static onx_status run_step(onx_trainer *t, uint32_t entry, const onx_named_value *inputs, uint32_t input_count,
                           onx_named_value *outputs, uint32_t output_count)
{
    uint32_t at;
    if (entry >= t->count || !t->steps[entry].session)
        return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no algorithm %u", entry);
    program *p = &t->steps[entry];
    for (uint32_t i = 0; i < output_count; i++)
        if (!find_output(p, onx_str_of(outputs[i].name), &at)) {
            if (p->whole || !in_main(t, outputs[i].name))
                return onxi_fail(t->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the step has no output %s", outputs[i].name);
            ONX_TRY(reopen(t, entry, true));
        }
    ONX_TRY(place_inputs(t, p, inputs, input_count));
    ONX_TRY(run_program(t, p));
    for (uint32_t i = 0; i < output_count; i++) {
        (void)find_output(p, onx_str_of(outputs[i].name), &at);
        if (!outputs[i].value)
            ONX_TRY(onx_value_new(t->cx, &outputs[i].value));
        ONX_TRY(onx_value_assign(outputs[i].value, p->outputs[at]));
    }
    return ONX_OK;
}

/* Tells the other ranks that this one failed, so that they do not wait for it. */
static onx_status tell_ranks(const onx_trainer *t, onx_status status)
{
    if (status != ONX_OK && t->ranks.comm.fail)
        t->ranks.comm.fail(t->ranks.comm.user);
    return status;
}

static onx_status evaluate(onx_trainer *t, uint32_t entry, const onx_named_value *inputs, uint32_t input_count,
                           onx_named_value *outputs, uint32_t output_count)
{
    return tell_ranks(t, run_step(t, entry, inputs, input_count, outputs, output_count));
}

static onx_status step(onx_trainer *t, uint32_t entry, const onx_named_value *inputs, uint32_t input_count,
                       onx_named_value *outputs, uint32_t output_count)
{
    ONX_TRY(evaluate(t, entry, inputs, input_count, outputs, output_count));
    return tell_ranks(t, take(t, &t->steps[entry]));
}

/* ---- reduction over ranks ---- */

static onx_status join_kernels(onx_trainer *t)
{
    uint32_t count = 0;
    for (const onx_kernel *k = t->options.kernels; k && k->op; k++)
        count++;
    if (!t->kernels && !(t->kernels = ONXI_ARRAY(t->arena, onx_kernel, (size_t)count + 2)))
        return ONX_E_MEMORY;
    if (count)
        memcpy(t->kernels, t->options.kernels, count * sizeof *t->kernels);
    t->kernels[count] = onxi_train_reduce_kernel(&t->reduction);
    return ONX_OK;
}

static onx_status set_reduction(onx_trainer *t, const onx_train_reduction *reduction)
{
    const onx_train_reduction before = t->reduction;
    onx_status status = ONX_OK;
    ONX_TRY(join_kernels(t));
    t->reduction = reduction ? *reduction : (onx_train_reduction){ .user = NULL };
    if (!before.reduce == !t->reduction.reduce) /* the reduction nodes are already present, or not needed */
        return ONX_OK;
    for (uint32_t i = 0; i < t->count && status == ONX_OK; i++)
        if (t->steps[i].session)
            status = reopen(t, i, t->steps[i].whole);
    return status;
}

static onx_status set_ranks(onx_trainer *t, const onx_train_ranks *ranks)
{
    const uint64_t minute = 60000000000u;
    const double weight = t->ranks.weight;
    onxi_train_ranks_close(&t->ranks);
    t->ranks.weight = weight;
    if (!ranks)
        return set_reduction(t, NULL);
    const onx_train_reduction reduction = { .user = &t->ranks, .reduce = onxi_train_ranks_reduce };
    t->ranks.comm = *ranks->comm;
    t->ranks.timeout_ns = ranks->timeout_ns ? ranks->timeout_ns : minute;
    ONX_TRY(tell_ranks(t, set_reduction(t, &reduction)));
    return tell_ranks(t, share(t));
}

/* ---- the public interface ---- */

void onx_trainer_free(onx_trainer *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->count && t->steps && t->starts; i++) {
        close_program(&t->steps[i]);
        close_program(&t->starts[i]);
    }
    for (uint32_t i = 0; i < t->variable_count; i++) {
        onx_value_free(t->variables[i].value);
        onx_value_free(t->variables[i].next);
    }
    onxi_train_ranks_close(&t->ranks);
    onx_arena_free(t->arena);
}

static onx_status trainer_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options, onx_trainer **out)
{
    onx_arena *arena;
    const onx_model *model = onx_doc_model(doc);
    const onx_check_options full = { .flags = ONX_CHECK_STRUCTURE, .registry = options->registry };
    ONX_TRY(onxi_doc_need_graph(cx, doc));
    if (!model->training_info_count)
        return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no training information");
    ONX_TRY(onx_check(cx, doc, &full, NULL));
    ONX_TRY(onx_arena_new(cx, &arena));
    onx_trainer *t = ONXI_NEW(arena, onx_trainer);
    if (!t) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    *t = (onx_trainer){ .cx = cx, .doc = doc, .arena = arena, .options = *options, .ranks = { .cx = cx, .weight = 1 } };
    t->steps = ONXI_ARRAY(arena, program, (size_t)model->training_info_count + 1);
    t->starts = ONXI_ARRAY(arena, program, (size_t)model->training_info_count + 1);
    t->scopes = ONXI_ARRAY(arena, scope, (size_t)model->training_info_count + 1);
    onx_status status = t->steps && t->starts && t->scopes ? ONX_OK : ONX_E_MEMORY;
    t->count = status == ONX_OK ? model->training_info_count : 0;
    if (status == ONX_OK)
        status = find_variables(t);
    for (uint32_t i = 0; i < t->variable_count && status == ONX_OK; i++) {
        t->variables[i].name = onxi_arena_printf(arena, "%.*s", ONX_ARG(t->variables[i].name)); /* a zero-terminated
                                                                                                 * copy */
        status = t->variables[i].name.ptr ? ONX_OK : ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < t->count && status == ONX_OK; i++) {
        status = open_start(t, i);
        if (status == ONX_OK)
            status = open_step(t, i, false);
    }
    if (status == ONX_OK)
        *out = t;
    else
        onx_trainer_free(t);
    return status;
}

onx_status onx_trainer_new(onx_ctx *cx, onx_doc *doc, const onx_session_options *options, onx_trainer **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_session_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_trainer_free, trainer_new(cx, doc, &own, out));
}

onx_status onx_trainer_set_run(onx_trainer *t, const onx_run_options *options)
{
    if (!t)
        return ONX_E_MISUSE;
    ONXI_OPTIONS(t->cx, onx_run_options, own, options);
    t->run = own;
    return ONX_OK;
}

uint32_t onx_trainer_count(const onx_trainer *t)
{
    return t ? t->count : 0;
}

bool onx_trainer_has_initialization(const onx_trainer *t)
{
    bool any = false;
    for (uint32_t i = 0; t && i < t->count; i++)
        any |= t->starts[i].session != NULL;
    return any;
}

onx_status onx_trainer_initialize(onx_trainer *t)
{
    if (!t)
        return ONX_E_MISUSE;
    ONXI_CALL(t->cx, initialize(t));
}

#define CALL_WITH_NAMES(call)                                                                                          \
    if (!t)                                                                                                            \
        return ONX_E_MISUSE;                                                                                           \
    ONXI_NEED(t->cx, inputs || !input_count);                                                                          \
    ONXI_NEED(t->cx, outputs || !output_count);                                                                        \
    for (uint32_t i = 0; i < output_count; i++)                                                                        \
        ONXI_NEED(t->cx, outputs[i].name);                                                                             \
    ONXI_CALL(t->cx, call(t, entry, inputs, input_count, outputs, output_count))

onx_status onx_trainer_step(onx_trainer *t, uint32_t entry, const onx_named_value *inputs, uint32_t input_count,
                            onx_named_value *outputs, uint32_t output_count)
{
    CALL_WITH_NAMES(step);
}

onx_status onx_trainer_evaluate(onx_trainer *t, uint32_t entry, const onx_named_value *inputs, uint32_t input_count,
                                onx_named_value *outputs, uint32_t output_count)
{
    CALL_WITH_NAMES(evaluate);
}

onx_status onx_trainer_set_reduction(onx_trainer *t, const onx_train_reduction *reduction)
{
    if (!t)
        return ONX_E_MISUSE;
    if (reduction) {
        ONXI_OPTIONS(t->cx, onx_train_reduction, own, reduction);
        ONXI_NEED(t->cx, own.reduce);
        ONXI_CALL(t->cx, set_reduction(t, &own));
    }
    ONXI_CALL(t->cx, set_reduction(t, NULL));
}

onx_status onx_trainer_set_ranks(onx_trainer *t, const onx_train_ranks *ranks)
{
    if (!t)
        return ONX_E_MISUSE;
    if (ranks) {
        ONXI_OPTIONS(t->cx, onx_train_ranks, own, ranks);
        ONXI_NEED(t->cx, own.comm);
        ONXI_NEED(t->cx, own.comm->exchange && own.comm->fail && own.comm->rank < own.comm->size);
        ONXI_CALL(t->cx, set_ranks(t, &own));
    }
    ONXI_CALL(t->cx, set_ranks(t, NULL));
}

onx_status onx_trainer_set_weight(onx_trainer *t, double weight)
{
    if (!t)
        return ONX_E_MISUSE;
    if (!isfinite(weight) || weight < 0)
        return onxi_fail(t->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%g is not a valid weight", weight);
    t->ranks.weight = weight;
    return ONX_OK;
}

uint32_t onx_trainer_variable_count(const onx_trainer *t)
{
    return t ? t->variable_count : 0;
}

bool onx_trainer_variable_get(const onx_trainer *t, uint32_t index, onx_trainer_variable *out)
{
    if (!t || !out || index >= t->variable_count)
        return false;
    const variable *v = &t->variables[index];
    *out = (onx_trainer_variable){ .name = v->name,
                                   .value = v->value,
                                   .in_main = v->entry == UINT32_MAX,
                                   .entry = v->entry == UINT32_MAX ? 0 : v->entry };
    return true;
}

static onx_status store_variable(onx_trainer *t, variable *v)
{
    onx_doc *made;
    void *copy;
    if (v->stored && v->value->size) { /* the sizes match, because no step changes the type or shape of a variable */
        memcpy(v->stored, v->value->data, (size_t)v->value->size);
        return ONX_OK;
    }
    ONX_TRY(onx_value_to_doc(t->cx, v->value, v->name, &made));
    onx_status status =
        onx_message_copy(onx_doc_arena(t->doc), ONX_KIND_TENSOR, onx_doc_root(made, ONX_KIND_TENSOR), &copy);
    onx_doc_free(made);
    ONX_TRY(status);
    *v->tensor = *(const onx_tensor *)copy;
    /* Storing after each epoch needs memory only once. */
    if (v->value->dtype != ONX_STRING && onx_view(v->tensor->raw_data).len == v->value->size)
        v->stored = (void *)(uintptr_t)onx_view(v->tensor->raw_data).ptr;
    return ONX_OK;
}

static onx_status store(onx_trainer *t)
{
    for (uint32_t i = 0; i < t->variable_count; i++)
        ONX_TRY(store_variable(t, &t->variables[i]));
    return ONX_OK;
}

onx_status onx_trainer_store(onx_trainer *t)
{
    if (!t)
        return ONX_E_MISUSE;
    ONXI_CALL(t->cx, store(t));
}
