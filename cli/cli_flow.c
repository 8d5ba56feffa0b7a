/* cli_flow.c - nodes and values of a model by number, and bounds of elements that are known before anything is run. */
#include "cli_flow.h"

#include "cli_attribute.h"

#include <onx/tensor.h>
#include <onx/transform.h>

#include <math.h>

enum { MOST_DEPTH = 100, MOST_READ = 4096 /* maximum size of a constant that is read */ };

static const cli_move moves[] = {
#define MOVE(domain, op, how, inputs, outputs) { domain, #op, CLI_##how, ALL_OR(inputs), ALL_OR(outputs) },
#define FACT(op, low, high)
#define ALL       CLI_MOVES_ALL
#define ALL_OR(x) (uint32_t)(x)
#include "cli_moves.def"
};
static const struct fact {
    const char *op;
    double low, high;
} facts[] = {
#define MOVE(domain, op, how, inputs, outputs)
#define FACT(op, low, high) { #op, low, high },
#include "cli_moves.def"
};

onx_status cli_flow_no_memory(const cli_flow *flow)
{
    cli_error(flow->call, "out of memory");
    return ONX_E_MEMORY;
}

onx_str cli_flow_domain(const onx_node *node)
{
    const onx_str domain = onx_view(node->domain);
    return onx_str_is(domain, "ai.onnx") ? onx_str_of("") : domain;
}

const cli_move *cli_flow_move(const cli_flow *flow, const onx_node *node)
{
    const onx_str op = onx_view(node->op_type);
    CLI_TABLE_EACH (&flow->move_rows, cli_table_hash(&flow->move_rows, op, cli_flow_domain(node)), i)
        if (cli_flow_is(node, moves[i].domain, moves[i].op))
            return &moves[i];
    return NULL;
}

/* ---- values by name ---- */

/* Scopes, innermost first. */
typedef struct scope {
    const onx_graph *graph;
    const struct scope *up;
    unsigned depth;
} scope;

static uint32_t hash_in(const cli_flow *flow, onx_str name, const onx_graph *graph)
{
    return cli_table_hash(&flow->names, name, onx_str_make((const char *)&graph, sizeof graph));
}

static uint32_t find_in(const cli_flow *flow, onx_str name, const onx_graph *graph)
{
    CLI_TABLE_EACH (&flow->names, hash_in(flow, name, graph), i)
        if (flow->values[i].scope == graph && onx_str_equal(flow->values[i].name, name))
            return i;
    return CLI_FLOW_NONE;
}

/* The value of that name in the graph itself, added if there is none. */
static onx_status define(cli_flow *flow, onx_str name, const onx_graph *graph, uint32_t *out)
{
    *out = name.len ? find_in(flow, name, graph) : CLI_FLOW_NONE;
    if (!name.len || *out != CLI_FLOW_NONE)
        return ONX_OK;
    if (!CLI_GROW(flow->values, flow->value_count, flow->value_room) ||
        !cli_table_add(&flow->names, hash_in(flow, name, graph), flow->value_count))
        return cli_flow_no_memory(flow);
    *out = flow->value_count++;
    flow->values[*out] = (cli_flow_value){ .name = name, .scope = graph, .low = -INFINITY, .high = INFINITY };
    return ONX_OK;
}

/* The value that a name refers to in a graph; in an unsorted graph it may be defined later. */
static onx_status resolve(cli_flow *flow, onx_str name, const scope *in, uint32_t *out)
{
    for (const scope *s = in; s && name.len; s = s->up)
        if ((*out = find_in(flow, name, s->graph)) != CLI_FLOW_NONE)
            return ONX_OK;
    return define(flow, name, in->graph, out);
}

static onx_status reserve(cli_flow *flow, uint64_t count, uint32_t *first)
{
    *first = flow->id_count;
    if (count > UINT32_MAX - flow->id_count)
        return cli_flow_no_memory(flow);
    while (flow->id_room < flow->id_count + count)
        if (!cli_grow(&flow->ids, sizeof *flow->ids, &flow->id_room))
            return cli_flow_no_memory(flow);
    flow->id_count += (uint32_t)count;
    return ONX_OK;
}

/* ---- bounds of elements ---- */

static void bound(cli_flow_value *v, const double *x, uint64_t count)
{
    v->low = count ? INFINITY : -INFINITY;
    v->high = count ? -INFINITY : INFINITY;
    for (uint64_t i = 0; i < count; i++) {
        v->low = fmin(v->low, x[i]);
        v->high = fmax(v->high, x[i]);
    }
}

static void know_tensor(cli_flow *flow, uint32_t value, const onx_tensor *t)
{
    cli_flow_value *v = &flow->values[value];
    double x[MOST_READ];
    uint64_t count;
    v->tensor = t;
    if (onx_dtype_class_of(t->data_type) != ONX_CLASS_TEXT && t->data_location != ONX_DATA_EXTERNAL &&
        onx_tensor_count(t, &count) && count && count <= MOST_READ &&
        onx_tensor_get_f64(flow->doc, t, 0, count, x) == ONX_OK)
        bound(v, x, count);
}

static void know_constant(cli_flow *flow, const onx_node *node, uint32_t value)
{
    cli_flow_value *v = &flow->values[value];
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        double x[MOST_READ];
        const uint32_t count = a->count < MOST_READ ? a->count : 0;
        if (a->slot == ONX_SLOT_T && a->t) {
            know_tensor(flow, value, a->t);
        } else if (cli_attribute_number(a, &v->low)) {
            v->high = v->low;
        } else if (a->slot == ONX_SLOT_INTS || a->slot == ONX_SLOT_FLOATS) {
            for (uint32_t k = 0; k < count; k++)
                x[k] = a->slot == ONX_SLOT_INTS ? (double)a->ints[k] : (double)a->floats[k];
            bound(v, x, count);
        }
    }
}

static const cli_flow_value *value_at(const cli_flow *flow, uint32_t id)
{
    return id == CLI_FLOW_NONE ? NULL : &flow->values[id];
}

/* Clip: the limits, from inputs or attributes. */
static void clip(const cli_flow *flow, const cli_flow_step *step, double *low, double *high)
{
    const cli_flow_value *least = value_at(flow, cli_flow_input(flow, step, 1)),
                         *most = value_at(flow, cli_flow_input(flow, step, 2));
    double min = least ? least->low : -INFINITY, max = most ? most->high : INFINITY;
    (void)cli_attribute_number(onx_node_attribute(step->node, "min"), &min);
    (void)cli_attribute_number(onx_node_attribute(step->node, "max"), &max);
    *low = fmax(*low, min);
    *high = fmin(*high, max);
}

/* Moved elements are within the bounds of the elements that they come from. */
static void hull(const cli_flow *flow, const cli_flow_step *step, const cli_move *move, double *low, double *high)
{
    const bool least = cli_flow_is(step->node, "", "Min"), most = cli_flow_is(step->node, "", "Max");
    bool any = false;
    for (uint32_t i = 0; i < step->node->input_count; i++) {
        const cli_flow_value *v = cli_moves(move->inputs, i) ? value_at(flow, cli_flow_input(flow, step, i)) : NULL;
        if (!v)
            continue;
        *low = !any ? v->low : most ? fmax(*low, v->low) : fmin(*low, v->low);
        *high = !any ? v->high : least ? fmin(*high, v->high) : fmax(*high, v->high);
        any = true;
    }
    if (cli_flow_is(step->node, "", "Pad")) { /* with zeros, unless something else is said */
        *low = fmin(*low, 0);
        *high = fmax(*high, 0);
    }
}

static void calculate(const cli_flow *flow, const cli_flow_step *step, const cli_move *move, double *low, double *high)
{
    const cli_flow_value *a = value_at(flow, cli_flow_input(flow, step, 0)),
                         *b = value_at(flow, cli_flow_input(flow, step, 1));
    if (move->how == CLI_SAME) {
        hull(flow, step, move, low, high);
        if (cli_flow_is(step->node, "", "Clip"))
            clip(flow, step, low, high);
        return;
    }
    if (step->node->input_count != 2 || !a || !b || !isfinite(a->low + a->high + b->low + b->high))
        return;
    if (move->how == CLI_ADD || move->how == CLI_SUB) {
        *low = a->low + (move->how == CLI_ADD ? b->low : -b->high);
        *high = a->high + (move->how == CLI_ADD ? b->high : -b->low);
    } else if (move->how == CLI_MUL) {
        *low = fmin(fmin(a->low * b->low, a->low * b->high), fmin(a->high * b->low, a->high * b->high));
        *high = fmax(fmax(a->low * b->low, a->low * b->high), fmax(a->high * b->low, a->high * b->high));
    }
}

static void know(cli_flow *flow, const cli_flow_step *step)
{
    const onx_node *node = step->node;
    const cli_move *move = cli_flow_move(flow, node);
    const cli_flow_value *divisor = value_at(flow, cli_flow_input(flow, step, 1));
    double low = -INFINITY, high = INFINITY;
    if (cli_flow_is(node, "", "Constant") && cli_flow_output(flow, step, 0) != CLI_FLOW_NONE)
        know_constant(flow, node, cli_flow_output(flow, step, 0));
    double to = 0;
    if (cli_flow_is(node, "", "Cast") && cli_attribute_number(onx_node_attribute(node, "to"), &to) &&
        to == (double)ONX_BOOL) {
        low = 0;
        high = 1;
    } else if (move) {
        calculate(flow, step, move, &low, &high);
    } else if (cli_flow_is(node, "", "Mod") && divisor && divisor->low > 0) {
        low = onx_node_attribute(node, "fmod") ? -divisor->high : 0;
        high = divisor->high;
        high -= onx_node_attribute(node, "fmod") ? 0 : 1;
    } else if (!cli_flow_domain(node).len) {
        CLI_TABLE_EACH (&flow->fact_rows, cli_table_hash(&flow->fact_rows, onx_view(node->op_type), onx_str_of("")), i)
            if (onx_str_is(onx_view(node->op_type), facts[i].op)) {
                low = facts[i].low;
                high = facts[i].high;
            }
    }
    for (uint32_t i = 0; i < node->output_count && isfinite(low) && isfinite(high); i++) {
        const uint32_t y = cli_flow_output(flow, step, i);
        if (y != CLI_FLOW_NONE && (!move || cli_moves(move->outputs, i))) {
            flow->values[y].low = low;
            flow->values[y].high = high;
        }
    }
}

/* ---- where values come from ---- */

static bool is_one_of(onx_str op, const char *const *names)
{
    for (; *names; names++)
        if (onx_str_is(op, *names))
            return true;
    return false;
}

/* Operators whose output has the shape of an input, if the other inputs are not larger. */
static bool keeps_shape(onx_str op, uint32_t input)
{
    static const char *const first[] = { "Identity",  "Cast",      "Clip",    "Relu",   "Sigmoid", "Tanh", "Abs",
                                         "Neg",       "Sqrt",      "Exp",     "Log",    "Not",     "Erf",  "Elu",
                                         "LeakyRelu", "HardSwish", "Dropout", "Scaler", NULL },
                             *const pair[] = { "Add", "Sub", "Mul", "Div", "Pow", NULL };
    return (input == 0 && is_one_of(op, first)) || (input < 2 && is_one_of(op, pair));
}

static void derive(cli_flow *flow, const cli_flow_step *step)
{
    const onx_node *node = step->node;
    bool derived = step->bodies != 0;
    uint32_t like = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const cli_flow_value *v = value_at(flow, cli_flow_input(flow, step, i));
        derived |= v && v->derived;
        if (v && !like && keeps_shape(onx_view(node->op_type), i))
            like = v->like;
    }
    if (cli_flow_is(node, "", "Shape") || cli_flow_is(node, "", "Size"))
        derived = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t y = cli_flow_output(flow, step, i);
        if (y == CLI_FLOW_NONE)
            continue;
        flow->values[y].derived |= derived;
        if (!flow->values[y].like)
            flow->values[y].like = like;
    }
}

/* ---- graphs ---- */

static onx_status add_graph(cli_flow *flow, const onx_graph *g, const scope *in, uint32_t *last);

static onx_status add_body(cli_flow *flow, const onx_graph *g, const scope *up, uint32_t *list)
{
    const scope in = { g, up, up->depth + 1 };
    uint32_t first, last = 0;
    if (in.depth > MOST_DEPTH)
        return ONX_OK;
    ONX_TRY(reserve(flow, (uint64_t)g->input_count + g->output_count, &first));
    for (uint32_t i = 0; i < g->input_count; i++) {
        uint32_t id;
        ONX_TRY(define(flow, onx_view(g->input[i]->name), g, &id));
        flow->ids[first + i] = id;
        if (id != CLI_FLOW_NONE)
            flow->values[id].derived = true;
    }
    ONX_TRY(add_graph(flow, g, &in, &last));
    for (uint32_t i = 0; i < g->output_count; i++) {
        uint32_t id;
        ONX_TRY(resolve(flow, onx_view(g->output[i]->name), &in, &id));
        flow->ids[first + g->input_count + i] = id;
    }
    if (!CLI_GROW(flow->bodies, flow->body_count, flow->body_room))
        return cli_flow_no_memory(flow);
    flow->bodies[flow->body_count] = (cli_flow_body){ g, *list, last, first };
    *list = ++flow->body_count;
    return ONX_OK;
}

static onx_status add_node(cli_flow *flow, const onx_node *node, const scope *in, uint32_t *last)
{
    cli_flow_step step = { .node = node, .before = *last };
    uint32_t id;
    ONX_TRY(reserve(flow, (uint64_t)node->input_count + node->output_count, &step.first));
    for (uint32_t i = 0; i < node->input_count; i++) {
        ONX_TRY(resolve(flow, onx_view(node->input[i]), in, &id));
        flow->ids[step.first + i] = id;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G && node->attribute[i]->g)
            ONX_TRY(add_body(flow, node->attribute[i]->g, in, &step.bodies));
    for (uint32_t i = 0; i < node->output_count; i++) {
        ONX_TRY(define(flow, onx_view(node->output[i]), in->graph, &id));
        flow->ids[step.first + node->input_count + i] = id;
    }
    if (!CLI_GROW(flow->steps, flow->step_count, flow->step_room))
        return cli_flow_no_memory(flow);
    flow->steps[flow->step_count++] = step;
    *last = flow->step_count;
    know(flow, &step);
    derive(flow, &step);
    return ONX_OK;
}

static onx_status add_graph(cli_flow *flow, const onx_graph *g, const scope *in, uint32_t *last)
{
    uint32_t id;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        ONX_TRY(define(flow, onx_view(g->initializer[i]->name), g, &id));
        if (id != CLI_FLOW_NONE)
            know_tensor(flow, id, g->initializer[i]);
    }
    for (uint32_t i = 0; i < g->node_count; i++)
        ONX_TRY(add_node(flow, g->node[i], in, last));
    return ONX_OK;
}

static onx_status add_rows(cli_flow *flow)
{
    for (uint32_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (!cli_table_add(&flow->move_rows,
                           cli_table_hash(&flow->move_rows, onx_str_of(moves[i].op), onx_str_of(moves[i].domain)), i))
            return cli_flow_no_memory(flow);
    for (uint32_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (!cli_table_add(&flow->fact_rows, cli_table_hash(&flow->fact_rows, onx_str_of(facts[i].op), onx_str_of("")),
                           i))
            return cli_flow_no_memory(flow);
    return ONX_OK;
}

/* Function calls are expanded if possible, so that their use of inputs counts as well. */
static onx_status take(cli_flow *flow, const onx_doc *doc)
{
    if (!onx_doc_model(doc)->functions_count)
        return onx_doc_reader(flow->cx, doc, &flow->doc);
    ONX_TRY(onx_doc_share(flow->cx, doc, &flow->doc));
    if (onx_inline(flow->cx, flow->doc, NULL) == ONX_OK)
        return ONX_OK;
    onx_doc_free(flow->doc);
    return onx_doc_reader(flow->cx, doc, &flow->doc);
}

onx_status cli_flow_open(cli_flow *flow, cli_call *call, const onx_doc *doc, const onx_session *s)
{
    *flow = (cli_flow){ .call = call, .cx = onx_ctx_new(NULL) };
    if (!flow->cx)
        return cli_flow_no_memory(flow);
    onx_ctx_set_limits(flow->cx, onx_ctx_limits(call->cx));
    onx_ctx_set_registry(flow->cx, call->registry);
    flow->names.cx = flow->move_rows.cx = flow->fact_rows.cx = flow->cx;
    if (take(flow, doc) != ONX_OK)
        return cli_flow_no_memory(flow);
    ONX_TRY(add_rows(flow));
    const onx_graph *g = onx_doc_model(flow->doc)->graph;
    for (uint32_t i = 0; i < onx_session_input_count(s); i++) {
        uint32_t id;
        const onx_session_port port = onx_session_input(s, i);
        const onx_type *type = port.type;
        ONX_TRY(define(flow, port.name, g, &id));
        if (id != i)
            return ONX_OK; /* without a name, or with a duplicate name: nothing is known about such inputs */
        flow->values[id].derived = port.required;
        if (type && ONX_HAS(type, type, tensor_type) && type->tensor_type->elem_type == ONX_BOOL) {
            flow->values[id].low = 0;
            flow->values[id].high = 1;
        }
        flow->values[id].like = i + 1;
        flow->input_count = i + 1;
    }
    const scope in = { g, NULL, 0 };
    ONX_TRY(add_graph(flow, g, &in, &flow->last));
    return ONX_OK;
}

void cli_flow_close(cli_flow *flow)
{
    onx_infer_free(flow->infer);
    onx_doc_free(flow->doc);
    free(flow->names.slots);
    free(flow->move_rows.slots);
    free(flow->fact_rows.slots);
    free(flow->values);
    free(flow->steps);
    free(flow->bodies);
    free(flow->ids);
    free(flow->asked);
    onx_ctx_free(flow->cx);
    *flow = (cli_flow){ 0 };
}

/* ---- shapes ---- */

static const onx_tensor_shape *inferred_shape(cli_flow *flow, const cli_flow_value *v)
{
    if (!flow->inferred && onx_infer_new(flow->cx, flow->doc, NULL, &flow->infer) != ONX_OK)
        flow->infer = NULL;
    flow->inferred = true;
    const onx_type *type = flow->infer ? onx_infer_type(flow->infer, v->scope, v->name) : NULL;
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
}

bool cli_flow_dims(cli_flow *flow, uint32_t value, cli_shape *out)
{
    if (value == CLI_FLOW_NONE)
        return false;
    const cli_flow_value *v = &flow->values[value];
    if (v->tensor && v->tensor->dims_count <= ONX_RANK_MAX) {
        out->rank = v->tensor->dims_count;
        for (uint32_t i = 0; i < out->rank; i++)
            out->dims[i] = v->tensor->dims[i];
        return true;
    }
    const onx_tensor_shape *shape = inferred_shape(flow, v);
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return false;
    out->rank = shape->dim_count;
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = ONX_HAS(dimension, shape->dim[i], dim_value) ? shape->dim[i]->dim_value : -1;
    return true;
}
