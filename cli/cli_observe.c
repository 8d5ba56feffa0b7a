/* cli_observe.c - shows the values that runs of a model compute. After each wanted value a node is added that reads it;
 * these nodes are a chain, whose end becomes an output of their graph, and of the node that contains the graph. */
#include "cli_observe.h"

#include "cli_attribute.h"
#include "cli_table.h"

#include <stdlib.h>

#define DOMAIN "onx.observe"

static onx_status no_memory(const cli_call *call)
{
    cli_error(call, "out of memory");
    return ONX_E_MEMORY;
}

/* ---- the node that sees a value ---- */

static onx_status observe_types(onx_prepare *p)
{
    return onx_prepare_output(p, 0, ONX_FLOAT, 0, NULL);
}

static onx_status observe_prepare(onx_prepare *p)
{
    int64_t *value = onx_arena_alloc(p->arena, sizeof *value);
    if (!value)
        return ONX_E_MEMORY;
    *value = -1;
    for (uint32_t i = 0; i < p->node->attribute_count; i++)
        *value = p->node->attribute[i]->i;
    p->params = value;
    return ONX_OK;
}

static onx_status observe_run(onx_work *work, uint64_t first, uint64_t last)
{
    cli_observer *o = (cli_observer *)(uintptr_t)work->prepared->kernel->body;
    const int64_t value = *(const int64_t *)work->params;
    (void)first, (void)last;
    *(float *)work->outputs[0]->data = 0;
    return value < 0 || !work->inputs[0] ? ONX_OK
                                         : o->visit.see(o->visit.user, o->sample, (uint32_t)value, work->inputs[0]);
}

/* ---- walking over graphs: to list values, and to add nodes ---- */

typedef struct walk {
    cli_observer *o;
    onx_arena *arena;
    bool write;
} walk;

/* A graph while nodes are added. */
typedef struct part {
    onx_graph *graph;
    onx_node **nodes;
    uint32_t count, room;
    onx_bytes token; /* the end of the chain; empty: nothing is observed yet */
} part;

static bool is_opened(const onx_node *n)
{
    return cli_node_is(n, "If") || cli_node_is(n, "Loop") || cli_node_is(n, "Scan") || cli_node_is(n, "SequenceMap");
}

static bool push(const walk *w, part *p, onx_node *node)
{
    if (!w->write)
        return true;
    if (!CLI_GROW(p->nodes, p->count, p->room))
        return false;
    p->nodes[p->count++] = node;
    return true;
}

static bool new_name(const walk *w, onx_bytes *out)
{
    char text[40];
    const int n = snprintf(text, sizeof text, "%s %u", DOMAIN, w->o->made++);
    return onx_arena_keep(w->arena, onx_str_make(text, (size_t)n), out) == ONX_OK;
}

static onx_node *new_node(const walk *w, const char *op, const char *domain, uint32_t inputs)
{
    onx_node *n = onx_message_new(w->arena, ONX_KIND_NODE);
    if (!n || onx_arena_keep(w->arena, onx_str_of(op), &n->op_type) != ONX_OK ||
        onx_arena_keep(w->arena, onx_str_of(domain), &n->domain) != ONX_OK ||
        !(n->input = onx_arena_alloc(w->arena, (inputs + 1) * sizeof *n->input)) ||
        !(n->output = onx_arena_alloc(w->arena, sizeof *n->output)) || !new_name(w, n->output))
        return NULL;
    n->has |= onx_node_has_op_type | (*domain ? onx_node_has_domain : 0);
    n->input_count = inputs;
    n->output_count = 1;
    return n;
}

/* Adds the node that sees a value; -1: it only makes the value part of the chain. */
static bool add_observe(const walk *w, part *p, onx_bytes name, int64_t value)
{
    const bool first = !onx_view(p->token).len;
    onx_node *n = new_node(w, "Observe", DOMAIN, first ? 1 : 2);
    if (!n || !onx_node_add_int(w->arena, n, "value", value))
        return false;
    n->input[0] = name;
    if (!first)
        n->input[1] = p->token;
    p->token = n->output[0];
    return push(w, p, n);
}

static int64_t row_of(const onx_type *type)
{
    const onx_tensor_shape *shape = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
    const onx_dimension *last = shape && shape->dim_count ? shape->dim[shape->dim_count - 1] : NULL;
    return last && ONX_HAS(dimension, last, dim_value) ? last->dim_value : -1;
}

static bool list_value(const walk *w, const onx_graph *g, onx_bytes name, cli_origin from, uint32_t node)
{
    cli_observer *o = w->o;
    const onx_type *type = onx_infer_type(o->infer, g, onx_view(name));
    const int32_t dtype = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->elem_type : ONX_UNDEFINED;
    if (type && (!ONX_HAS(type, type, tensor_type) ||
                 (dtype && (onx_dtype_class_of(dtype) != ONX_CLASS_FLOATING || onx_dtype_bits(dtype) < 16))))
        return true;
    if (!CLI_GROW(o->list, o->count, o->room))
        return false;
    o->list[o->count++] =
        (cli_observed){ .name = onx_view(name), .node = node, .row = row_of(type), .at = o->met, .from = from };
    return true;
}

static bool meet(walk *w, part *p, const onx_graph *g, onx_bytes name, cli_origin from, uint32_t node)
{
    cli_observer *o = w->o;
    if (!onx_view(name).len)
        return true;
    o->met++;
    if (!w->write)
        return list_value(w, g, name, from, node);
    if (o->next >= o->count || o->list[o->next].at != o->met)
        return true;
    const uint32_t value = o->next++;
    return !o->list[value].wanted || add_observe(w, p, name, value);
}

static bool walk_graph(walk *w, const onx_graph *g, part *out);

/* The token of a graph becomes an output; a branch without any gets a constant one. */
static bool give_token(const walk *w, part *p)
{
    if (!onx_view(p->token).len) {
        static const float zero;
        onx_node *n = new_node(w, "Constant", "", 0);
        onx_tensor *t = onx_tensor_new(w->arena, ONX_FLOAT, NULL, 0, &zero, NULL);
        if (!n || !t || !onx_node_add_tensor(w->arena, n, "value", t))
            return false;
        p->token = n->output[0];
        if (!push(w, p, n))
            return false;
    }
    onx_value_info *info = onx_message_new(w->arena, ONX_KIND_VALUE_INFO);
    onx_value_info **list = onx_arena_alloc(w->arena, ((size_t)p->graph->output_count + 1) * sizeof *list);
    static const int64_t none;
    onx_type *type = onx_type_new_tensor(w->arena, ONX_FLOAT, &none, 0);
    if (!info || !list || !type)
        return false;
    ONX_SET(value_info, info, name, p->token);
    ONX_SET(value_info, info, type, type);
    for (uint32_t i = 0; i < p->graph->output_count; i++)
        list[i] = p->graph->output[i];
    list[p->graph->output_count++] = info;
    p->graph->output = list;
    return true;
}

static bool close_part(const walk *w, part *p)
{
    onx_node **nodes = onx_arena_alloc(w->arena, ((size_t)p->count + 1) * sizeof *nodes);
    for (uint32_t i = 0; nodes && i < p->count; i++)
        nodes[i] = p->nodes[i];
    p->graph->node = nodes;
    p->graph->node_count = p->count;
    free(p->nodes);
    p->nodes = NULL;
    return nodes != NULL;
}

/* Lists per output of the body get an entry for the new one. */
static bool extend_axes(const walk *w, onx_attribute *a)
{
    const onx_str name = onx_view(a->name);
    if (a->slot != ONX_SLOT_INTS || !a->count ||
        !(onx_str_is(name, "scan_output_axes") || onx_str_is(name, "scan_output_directions")))
        return true;
    int64_t *list = onx_arena_alloc(w->arena, ((size_t)a->count + 1) * sizeof *list);
    for (uint32_t i = 0; list && i < a->count; i++)
        list[i] = a->ints[i];
    if (list)
        list[a->count++] = 0;
    a->ints = list;
    return list != NULL;
}

/* A copy of the node with other graphs and a further output, which is the last one of each graph. */
static onx_node *with_graphs(const walk *w, const onx_node *from, part *bodies)
{
    onx_node *n = onx_arena_alloc(w->arena, sizeof *n);
    onx_attribute **list = onx_arena_alloc(w->arena, ((size_t)from->attribute_count + 1) * sizeof *list);
    uint32_t outputs = 0;
    if (!n || !list)
        return NULL;
    *n = *from;
    n->attribute = list;
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        onx_attribute *a = onx_arena_alloc(w->arena, sizeof *a);
        if (!a)
            return NULL;
        *a = *from->attribute[i];
        list[i] = a;
        if (bodies[i].graph) {
            if (!give_token(w, &bodies[i]) || !close_part(w, &bodies[i]))
                return NULL;
            a->g = bodies[i].graph;
            outputs = bodies[i].graph->output_count - (cli_node_is(from, "Loop") ? 2 : 1);
        } else if (!extend_axes(w, a)) {
            return NULL;
        }
    }
    outputs = outputs > from->output_count ? outputs : from->output_count;
    n->output = onx_arena_alloc(w->arena, ((size_t)outputs + 1) * sizeof *n->output);
    for (uint32_t i = 0; n->output && i < outputs; i++)
        n->output[i] = i < from->output_count ? from->output[i] : (onx_bytes){ 0 };
    n->output_count = outputs + 1;
    return n->output && new_name(w, &n->output[outputs]) ? n : NULL;
}

static bool walk_node(walk *w, part *p, onx_node *node)
{
    part *bodies = calloc((size_t)node->attribute_count + 1, sizeof *bodies);
    bool good = bodies != NULL, any = false;
    for (uint32_t i = 0; good && i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g) {
            good = walk_graph(w, node->attribute[i]->g, &bodies[i]);
            any |= onx_view(bodies[i].token).len > 0;
        }
    if (good && any) {
        onx_node *changed = with_graphs(w, node, bodies);
        good = changed && push(w, p, changed) && add_observe(w, p, changed->output[changed->output_count - 1], -1);
    } else if (good) {
        good = push(w, p, node);
    }
    for (uint32_t i = 0; bodies && i < node->attribute_count; i++)
        free(bodies[i].nodes);
    free(bodies);
    return good;
}

/* Recursion is as deep as graphs are nested, which the reader bounds. */
static bool walk_graph(walk *w, const onx_graph *g, part *out)
{
    cli_observer *o = w->o;
    *out = (part){ 0 };
    if (w->write) {
        if (!(out->graph = onx_arena_alloc(w->arena, sizeof *out->graph)))
            return false;
        *out->graph = *g;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < g->input_count; i++)
        good = meet(w, out, g, g->input[i]->name, CLI_FROM_INPUT, UINT32_MAX);
    for (uint32_t i = 0; good && i < g->initializer_count; i++)
        good = meet(w, out, g, g->initializer[i]->name, CLI_FROM_WEIGHT, UINT32_MAX);
    for (uint32_t i = 0; good && i < g->node_count; i++) {
        onx_node *n = g->node[i];
        const bool opened = is_opened(n);
        good = opened ? walk_node(w, out, n) : push(w, out, n);
        const uint32_t index = o->node_count;
        if (good && !w->write && (good = CLI_GROW(o->nodes, o->node_count, o->node_room)))
            o->nodes[o->node_count++] = (cli_observed_node){ n, opened };
        for (uint32_t k = 0; good && k < n->output_count; k++)
            good = meet(w, out, g, n->output[k], CLI_FROM_NODE, index);
    }
    return good;
}

/* ---- opening and running ---- */

static bool count_names(cli_observer *o)
{
    cli_table names = { .cx = o->call->cx };
    bool good = true;
    for (uint32_t i = 0; good && i < o->count; i++) {
        const uint32_t hash = cli_table_hash(&names, o->list[i].name, onx_str_of(""));
        CLI_TABLE_EACH (&names, hash, k) {
            if (onx_str_equal(o->list[k].name, o->list[i].name) && o->list[k].ordinal >= o->list[i].ordinal)
                o->list[i].ordinal = o->list[k].ordinal + 1;
        }
        good = o->list[i].ordinal > 100 || cli_table_add(&names, hash, i); /* further ones are not told apart */
    }
    free(names.slots);
    return good;
}

onx_status cli_observer_open(cli_observer *o, cli_call *call, onx_doc *doc)
{
    *o = (cli_observer){ .call = call, .doc = doc };
    const onx_graph *g = onx_doc_model(doc)->graph;
    walk w = { .o = o, .arena = onx_doc_arena(doc) };
    part main;
    if (!g)
        return ONX_OK;
    o->outputs = g->output_count;
    ONX_TRY(onx_infer_new(call->cx, doc, NULL, &o->infer));
    const bool good = walk_graph(&w, g, &main) && count_names(o);
    onx_infer_free(o->infer);
    o->infer = NULL;
    return good ? ONX_OK : no_memory(call);
}

/* The model with the added nodes. */
static bool change(cli_observer *o)
{
    onx_model *model = onx_doc_model(o->doc);
    walk w = { .o = o, .arena = onx_doc_arena(o->doc), .write = true };
    part main;
    o->before = *model;
    o->started = true;
    o->next = o->met = o->made = 0;
    bool good = walk_graph(&w, model->graph, &main);
    onx_operator_set_id *import = onx_message_new(w.arena, ONX_KIND_OPERATOR_SET_ID);
    onx_operator_set_id **list = onx_arena_alloc(w.arena, ((size_t)model->opset_import_count + 1) * sizeof *list);
    good = good && import && list && onx_arena_keep(w.arena, onx_str_of(DOMAIN), &import->domain) == ONX_OK &&
           give_token(&w, &main) && close_part(&w, &main);
    free(main.nodes);
    if (!good)
        return false;
    import->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, import, version, 1);
    for (uint32_t i = 0; i < model->opset_import_count; i++)
        list[i] = model->opset_import[i];
    list[model->opset_import_count++] = import;
    model->opset_import = list;
    model->graph = main.graph;
    return true;
}

onx_status cli_observer_start(cli_observer *o)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    if (!cli_run_options(o->call, &threads, &options, &limits))
        return ONX_E_MISUSE;
    if (onx_doc_model(o->doc)->graph && !change(o))
        return no_memory(o->call);
    o->rows[0] = (onx_kernel){ .op = "Observe",
                               .domain = DOMAIN,
                               .since = 1,
                               .flags = ONX_KERNEL_RANDOM | ONX_KERNEL_ONCE,
                               .body = o,
                               .prepare = observe_prepare,
                               .run = observe_run,
                               .types = observe_types };
    o->rows[1] = (onx_kernel){ 0 };
    options.lean_memory = true; /* weights are read from the mapped file, and no packed copies are kept */
    options.kernels = o->rows;
    cli_report(o->call);
    ONX_TRY(onx_session_new(o->call->cx, o->doc, &options, &o->session));
    onx_diag_clear(o->call->cx); /* what it warns of counts the added nodes */
    return ONX_OK;
}

onx_status cli_observer_run(cli_observer *o, const cli_samples *samples, uint32_t sample, const cli_visit *visit)
{
    const uint32_t outputs = onx_session_output_count(o->session);
    cli_inputs in;
    onx_value **values = calloc(outputs + 1u, sizeof *values);
    if (!values)
        return no_memory(o->call);
    onx_status status = cli_samples_read(samples, sample, o->doc, o->session, &in);
    o->visit = *visit;
    o->sample = sample;
    if (status == ONX_OK)
        status = onx_session_run(o->session, o->call->cx, (const onx_value *const *)in.values, values);
    for (uint32_t i = 0; status == ONX_OK && i < o->outputs && i < outputs; i++)
        status = visit->see(visit->user, sample, o->count + i, values[i]);
    for (uint32_t i = 0; i < outputs; i++)
        onx_value_free(values[i]);
    free(values);
    cli_inputs_free(&in);
    return status;
}

void cli_observer_close(cli_observer *o)
{
    onx_session_free(o->session);
    if (o->started)
        *onx_doc_model(o->doc) = o->before;
    free(o->list);
    free(o->nodes);
    *o = (cli_observer){ 0 };
}
