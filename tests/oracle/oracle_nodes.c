/* oracle_nodes.c - runs a model node by node, each in a session of its own with plain kernels, so that no value is ever
 * overwritten or fused; the nodes of subgraphs and functions, too. It is what all other runs are compared with. */
#include "oracle/oracle.h"

#include <onx/tensor.h>
#include <onx/transform.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_PORTS = 64, DEPTH = 12 };

/* ---- what is known by name ---- */

typedef struct named {
    onx_str name;
    onx_value *value;
} named;

/* The values of one graph or function call; a subgraph sees those around it. */
typedef struct scope {
    const struct scope *outer;
    named *list;
    uint32_t count, room;
    const onx_node *call; /* of a function, whose attributes its nodes may refer to */
    const onx_function *function;
} scope;

/* A session for a node and for the element types of its inputs. */
typedef struct oracle_kept {
    const onx_node *node;
    uint8_t types[NODE_PORTS];
    onx_doc *doc;
    onx_session *session;
    struct oracle_kept *next;
} kept;

typedef struct state {
    oracle *o;
    const onx_model *model;
    kept **sessions;
    const oracle_nudge *nudge;
    uint32_t nudged; /* values so far */
    named *values;   /* all that were made, to be freed in the end */
    uint32_t value_count, value_room, depth;
    char why[ORACLE_WHY];
} state;

static bool grow(named **list, uint32_t *room, uint32_t count)
{
    if (count < *room)
        return true;
    const uint32_t more = *room ? *room * 2 : 16;
    named *grown = realloc(*list, more * sizeof **list);
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}

/* The value is freed at the end of the whole run. */
static onx_status own(state *s, onx_value *value)
{
    if (!grow(&s->values, &s->value_room, s->value_count)) {
        onx_value_free(value);
        return ONX_E_MEMORY;
    }
    s->values[s->value_count++].value = value;
    return ONX_OK;
}

static onx_status define(scope *in, onx_str name, onx_value *value)
{
    if (!name.len)
        return ONX_OK;
    if (!grow(&in->list, &in->room, in->count))
        return ONX_E_MEMORY;
    in->list[in->count++] = (named){ name, value };
    return ONX_OK;
}

static onx_value *find(const scope *in, onx_str name)
{
    for (; in && name.len; in = in->outer)
        for (uint32_t i = in->count; i-- > 0;)
            if (onx_str_equal(in->list[i].name, name))
                return in->list[i].value;
    return NULL;
}

static onx_status fail(state *s, onx_status status, const char *why)
{
    if (!s->why[0])
        (void)snprintf(s->why, sizeof s->why, "%s", why);
    return status;
}

/* ---- a node alone ---- */

static onx_type *type_of(onx_arena *arena, const onx_value *v)
{
    if (v->kind == ONX_VALUE_TENSOR)
        return onx_type_new_tensor(arena, (onx_dtype)v->dtype, NULL, -1);
    const bool sequence = v->kind == ONX_VALUE_SEQUENCE;
    onx_type *type = onx_message_new(arena, ONX_KIND_TYPE);
    onx_type *inner =
        v->count ? type_of(arena, v->items[0]) : onx_type_new_tensor(arena, (onx_dtype)v->dtype, NULL, -1);
    if (!type || !inner || v->kind == ONX_VALUE_MAP)
        return NULL;
    if (sequence) {
        ONX_SET(type, type, sequence_type, onx_message_new(arena, ONX_KIND_TYPE_SEQUENCE));
        ONX_SET(type_sequence, type->sequence_type, elem_type, inner);
    } else {
        ONX_SET(type, type, optional_type, onx_message_new(arena, ONX_KIND_TYPE_OPTIONAL));
        ONX_SET(type_optional, type->optional_type, elem_type, inner);
    }
    return type;
}

/* Attributes of the function's caller, or the function's own defaults, for those that the node refers to. */
static onx_status settle_attributes(onx_arena *arena, onx_node *node, const scope *in)
{
    while (in && !in->function)
        in = in->outer;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_str ref = onx_view(onx_attribute_more(node->attribute[i])->ref_attr_name);
        char name[64];
        void *copy;
        if (!ref.len || !in)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", ONX_ARG(ref));
        const onx_attribute *given = onx_node_attribute(in->call, name);
        for (uint32_t k = 0; !given && k < in->function->attribute_proto_count; k++)
            if (onx_str_equal(onx_view(in->function->attribute_proto[k]->name), ref))
                given = in->function->attribute_proto[k];
        if (!given) {
            onx_list_remove(node->attribute, &node->attribute_count, i--, sizeof *node->attribute);
            continue;
        }
        ONX_TRY(onx_message_copy(arena, ONX_KIND_ATTRIBUTE, given, &copy));
        ((onx_attribute *)copy)->name = node->attribute[i]->name;
        node->attribute[i] = copy;
    }
    return ONX_OK;
}

static bool refers(const onx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_view(onx_attribute_more(node->attribute[i])->ref_attr_name).len)
            return true;
    return false;
}

static bool is_repeated(const onx_node *node, uint32_t input)
{
    for (uint32_t i = 0; i < input; i++)
        if (onx_str_equal(onx_view(node->input[i]), onx_view(node->input[input])))
            return true;
    return false;
}

static onx_status model_of(state *s, const onx_node *from, const scope *in, onx_value *const *inputs, onx_doc **out)
{
    onx_arena *arena;
    void *copy;
    char name[128];
    ONX_TRY(onx_model_new(s->o->cx, "node", 1, out));
    arena = onx_doc_arena(*out);
    onx_model *model = onx_doc_model(*out);
    ONX_SET(model, model, ir_version, s->model->ir_version);
    model->opset_import = s->model->opset_import;
    model->opset_import_count = s->model->opset_import_count;
    ONX_TRY(onx_message_copy(arena, ONX_KIND_NODE, from, &copy));
    ONX_TRY(settle_attributes(arena, copy, in));
    onx_node **at =
        onx_list_insert(arena, (void **)(void *)&model->graph->node, &model->graph->node_count, 0, sizeof *at);
    if (!at)
        return ONX_E_MEMORY;
    *at = copy;
    for (uint32_t i = 0; i < from->input_count; i++) {
        const onx_str text = onx_view(from->input[i]);
        onx_type *type = text.len ? type_of(arena, inputs[i]) : NULL;
        if (!text.len || is_repeated(from, i))
            continue;
        (void)snprintf(name, sizeof name, "%.*s", ONX_ARG(text));
        if (!type || !onx_graph_add_input(arena, model->graph, name, type))
            return ONX_E_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < from->output_count; i++) {
        (void)snprintf(name, sizeof name, "%.*s", ONX_ARG(onx_view(from->output[i])));
        if (name[0] && !onx_graph_add_output(arena, model->graph, name, NULL))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

static void free_kept(kept *k)
{
    onx_session_free(k->session);
    onx_doc_free(k->doc);
    free(k);
}

static onx_status session_of(state *s, const onx_node *node, const scope *in, onx_value *const *inputs, kept **out)
{
    static const onx_session_options options = { .threads = 1, .plain = true, .no_optimize = true };
    const bool own_attributes = refers(node);
    uint8_t types[NODE_PORTS] = { 0 };
    for (uint32_t i = 0; i < node->input_count; i++)
        types[i] = inputs[i] ? (uint8_t)(inputs[i]->dtype + 32 * inputs[i]->kind) : 0;
    for (kept *k = *s->sessions; k && !own_attributes; k = k->next)
        if (k->node == node && memcmp(k->types, types, sizeof types) == 0) {
            *out = k;
            return ONX_OK;
        }
    kept *k = calloc(1, sizeof *k);
    if (!k)
        return ONX_E_MEMORY;
    k->node = own_attributes ? NULL : node;
    memcpy(k->types, types, sizeof types);
    onx_status status = model_of(s, node, in, inputs, &k->doc);
    if (status == ONX_OK)
        status = onx_session_new(s->o->cx, k->doc, &options, &k->session);
    if (status != ONX_OK) {
        free_kept(k);
        return status;
    }
    k->next = *s->sessions;
    *s->sessions = *out = k;
    return ONX_OK;
}

/* Another value, with its elements changed; values of other types stay as they are. */
static onx_status nudge_value(state *s, onx_value **value)
{
    const onx_value *v = *value;
    onx_value *changed;
    oracle_nudge nudge = *s->nudge;
    nudge.turn += 7 * ++s->nudged;
    if (v->kind != ONX_VALUE_TENSOR || onx_dtype_class_of((onx_dtype)v->dtype) != ONX_CLASS_FLOATING ||
        onx_dtype_bits((onx_dtype)v->dtype) < 16)
        return ONX_OK;
    const size_t width = onx_dtype_bits((onx_dtype)v->dtype) / 8;
    ONX_TRY(onx_value_new_tensor(s->o->cx, (onx_dtype)v->dtype, v->rank, v->dims, &changed));
    ONX_TRY(own(s, changed));
    for (uint64_t i = 0; i < v->count; i++) {
        double x = 0;
        (void)onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, (const char *)v->data + i * width, 1, true);
        x = oracle_nudged(&nudge, i, x);
        (void)onx_convert((onx_dtype)v->dtype, (char *)changed->data + i * width, ONX_DOUBLE, &x, 1, true);
    }
    *value = changed;
    return ONX_OK;
}

static onx_status run_alone(state *s, const onx_node *node, scope *in)
{
    onx_value *inputs[NODE_PORTS] = { NULL }, *distinct[NODE_PORTS] = { NULL }, *outputs[NODE_PORTS] = { NULL };
    uint32_t count = 0;
    kept *k;
    if (node->input_count > NODE_PORTS || node->output_count > NODE_PORTS)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const onx_str name = onx_view(node->input[i]);
        inputs[i] = find(in, name);
        if (name.len && !inputs[i])
            return fail(s, ONX_E_UNSUPPORTED, "a value is not known");
        if (name.len && !is_repeated(node, i))
            distinct[count++] = inputs[i];
    }
    ONX_TRY(session_of(s, node, in, inputs, &k));
    ONX_TRY(onx_session_run(k->session, s->o->cx, (const onx_value *const *)distinct, outputs));
    count = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const onx_str name = onx_view(node->output[i]);
        if (!name.len)
            continue;
        ONX_TRY(own(s, outputs[count]));
        if (s->nudge && node->input_count)
            ONX_TRY(nudge_value(s, &outputs[count]));
        ONX_TRY(define(in, name, outputs[count++]));
    }
    return ONX_OK;
}

/* ---- graphs ---- */

static onx_status run_graph(state *s, const onx_graph *graph, scope *in);
static onx_status run_nodes(state *s, onx_node *const *nodes, uint32_t count, const onx_str *outputs,
                            uint32_t output_count, scope *in);

static onx_status add_initializers(state *s, const onx_graph *graph, scope *in)
{
    if (graph->sparse_initializer_count)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < graph->initializer_count; i++) {
        onx_value *v;
        if (find(in, onx_view(graph->initializer[i]->name)) && !in->outer)
            continue; /* given as an input */
        ONX_TRY(onx_value_from_message(s->o->cx, s->o->doc, ONX_KIND_TENSOR, graph->initializer[i], &v));
        ONX_TRY(own(s, v));
        ONX_TRY(define(in, onx_view(graph->initializer[i]->name), v));
    }
    return ONX_OK;
}

static onx_status run_body(state *s, const onx_graph *graph, const scope *outer, onx_value *const *inputs,
                           uint32_t count, onx_value **outputs)
{
    scope in = { .outer = outer };
    onx_status status = graph->input_count == count && graph->output_count <= NODE_PORTS ? ONX_OK : ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < count && status == ONX_OK; i++)
        status = define(&in, onx_view(graph->input[i]->name), inputs[i]);
    if (status == ONX_OK)
        status = add_initializers(s, graph, &in);
    if (status == ONX_OK)
        status = run_graph(s, graph, &in);
    for (uint32_t i = 0; i < graph->output_count && status == ONX_OK; i++) {
        outputs[i] = find(&in, onx_view(graph->output[i]->name));
        status = outputs[i] ? ONX_OK : fail(s, ONX_E_UNSUPPORTED, "an output is not known");
    }
    free(in.list);
    return status;
}

static const onx_graph *graph_of(const onx_node *node, const char *name)
{
    uint32_t count;
    const onx_attribute *a = onx_node_attribute(node, name);
    const void *value = a ? onx_attribute_value(a, ONX_SLOT_G, &count) : NULL;
    return value ? *(onx_graph *const *)value : NULL;
}

static onx_status define_outputs(const onx_node *node, scope *in, onx_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < node->output_count && i < count; i++)
        ONX_TRY(define(in, onx_view(node->output[i]), values[i]));
    return ONX_OK;
}

static bool truth(const onx_value *v)
{
    return v->kind == ONX_VALUE_TENSOR && v->count == 1 && ((const uint8_t *)v->data)[0];
}

static onx_status run_if(state *s, const onx_node *node, scope *in)
{
    onx_value *outputs[NODE_PORTS];
    const onx_value *c = find(in, onx_view(node->input[0]));
    const onx_graph *graph = c ? graph_of(node, truth(c) ? "then_branch" : "else_branch") : NULL;
    if (!graph || c->count != 1)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(run_body(s, graph, in, NULL, 0, outputs));
    return define_outputs(node, in, outputs, graph->output_count);
}

/* Values of iterations, stacked along a new first axis. */
static onx_status stack(state *s, onx_value *const *list, uint32_t count, uint32_t stride, onx_value **out)
{
    int64_t dims[ORACLE_RANK + 1] = { count };
    const onx_value *first = count ? list[0] : NULL;
    if (!first || first->kind != ONX_VALUE_TENSOR || first->rank >= ORACLE_RANK || first->dtype == ONX_STRING)
        return fail(s, ONX_E_UNSUPPORTED, "outputs of a loop cannot be stacked");
    if (first->rank)
        memcpy(dims + 1, first->dims, first->rank * sizeof *dims);
    ONX_TRY(onx_value_new_tensor(s->o->cx, (onx_dtype)first->dtype, first->rank + 1, dims, out));
    ONX_TRY(own(s, *out));
    for (uint32_t i = 0; i < count; i++) {
        const onx_value *v = list[(size_t)i * stride];
        if (v->rank != first->rank || v->size != first->size ||
            (v->rank && memcmp(v->dims, first->dims, v->rank * sizeof *dims) != 0))
            return fail(s, ONX_E_INVALID, "iterations of a loop differ in shape");
        if (v->size)
            memcpy((char *)(*out)->data + i * first->size, v->data, (size_t)first->size);
    }
    return ONX_OK;
}

enum { ITERATIONS = 64 };

/* The number of the iteration, and true. */
static onx_status begin_iteration(state *s, int64_t i, onx_value **inputs)
{
    ONX_TRY(onx_value_new_tensor(s->o->cx, ONX_INT64, 0, NULL, &inputs[0]));
    ONX_TRY(own(s, inputs[0]));
    ONX_TRY(onx_value_new_tensor(s->o->cx, ONX_BOOL, 0, NULL, &inputs[1]));
    ONX_TRY(own(s, inputs[1]));
    *(int64_t *)inputs[0]->data = i;
    *(uint8_t *)inputs[1]->data = 1;
    return ONX_OK;
}

static onx_status run_loop(state *s, const onx_node *node, scope *in)
{
    onx_value *inputs[NODE_PORTS] = { NULL }, *outputs[NODE_PORTS], *made[NODE_PORTS];
    const onx_graph *body = graph_of(node, "body");
    const onx_value *times = find(in, onx_view(node->input[0]));
    onx_value *on = node->input_count > 1 ? find(in, onx_view(node->input[1])) : NULL;
    const uint32_t states = node->input_count - 2;
    int64_t i = 0;
    if (!body || node->input_count < 2 || states + 2 > NODE_PORTS)
        return ONX_E_UNSUPPORTED;
    for (uint32_t k = 0; k < states; k++)
        made[k] = inputs[2 + k] = find(in, onx_view(node->input[2 + k]));
    bool go = !on || truth(on);
    const uint32_t stacks = body->output_count - 1 - states;
    onx_value **rows = calloc((size_t)ITERATIONS * (stacks + 1), sizeof *rows);
    onx_status status = rows ? ONX_OK : ONX_E_MEMORY;
    for (; status == ONX_OK && go && (!times || i < *(const int64_t *)times->data); i++) {
        if (i == ITERATIONS) {
            status = ONX_E_UNSUPPORTED;
            break;
        }
        status = begin_iteration(s, i, inputs);
        if (i && status == ONX_OK)
            inputs[1] = on;
        if (status == ONX_OK)
            status = run_body(s, body, in, inputs, states + 2, outputs);
        if (status != ONX_OK)
            break;
        on = outputs[0];
        go = truth(on);
        for (uint32_t k = 0; k < states; k++)
            made[k] = inputs[2 + k] = outputs[1 + k];
        for (uint32_t k = 0; k < stacks; k++)
            rows[(size_t)i * stacks + k] = outputs[1 + states + k];
    }
    for (uint32_t k = 0; k < stacks && status == ONX_OK; k++)
        status = stack(s, rows + k, (uint32_t)i, stacks, &made[states + k]);
    free(rows);
    return status == ONX_OK ? define_outputs(node, in, made, states + stacks) : status;
}

static int64_t int_at(const onx_node *node, const char *name, uint32_t index)
{
    uint32_t count = 0;
    const onx_attribute *a = onx_node_attribute(node, name);
    const int64_t *list = a ? onx_attribute_value(a, ONX_SLOT_INTS, &count) : NULL;
    return list && index < count ? list[index] : 0;
}

/* Row `at` of a tensor. */
static onx_status row_of(state *s, const onx_value *v, int64_t at, onx_value **out)
{
    ONX_TRY(onx_value_new_tensor(s->o->cx, (onx_dtype)v->dtype, v->rank - 1, v->dims + 1, out));
    ONX_TRY(own(s, *out));
    if ((*out)->size)
        memcpy((*out)->data, (const char *)v->data + (uint64_t)at * (*out)->size, (size_t)(*out)->size);
    return ONX_OK;
}

static bool has_same_dims(const onx_value *a, const onx_value *b)
{
    return a->rank == b->rank && (!a->rank || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

static onx_status run_scan(state *s, const onx_node *node, scope *in)
{
    onx_value *inputs[NODE_PORTS], *outputs[NODE_PORTS], *made[NODE_PORTS], *items[NODE_PORTS];
    uint32_t ignored;
    const onx_graph *body = graph_of(node, "body");
    const onx_attribute *a = onx_node_attribute(node, "num_scan_inputs");
    const int64_t *scanned = a ? onx_attribute_value(a, ONX_SLOT_I, &ignored) : NULL;
    if (!body || !scanned || *scanned < 1 || (uint64_t)*scanned > node->input_count || node->input_count > NODE_PORTS ||
        onx_node_attribute(node, "scan_input_axes") || onx_node_attribute(node, "scan_output_axes") ||
        onx_node_attribute(node, "directions"))
        return ONX_E_UNSUPPORTED;
    const uint32_t states = node->input_count - (uint32_t)*scanned, stacks = body->output_count - states;
    for (uint32_t k = 0; k < node->input_count; k++) {
        inputs[k] = items[k] = find(in, onx_view(node->input[k]));
        if (!inputs[k] || (k >= states &&
                           (inputs[k]->kind != ONX_VALUE_TENSOR || !inputs[k]->rank || inputs[k]->dtype == ONX_STRING)))
            return ONX_E_UNSUPPORTED;
    }
    const int64_t length = items[states]->dims[0];
    onx_value **rows = length <= ITERATIONS ? calloc((size_t)ITERATIONS * (stacks + 1), sizeof *rows) : NULL;
    onx_status status = rows ? ONX_OK : ONX_E_UNSUPPORTED;
    for (int64_t i = 0; i < length && status == ONX_OK; i++) {
        for (uint32_t k = states; k < node->input_count && status == ONX_OK; k++)
            status = items[k]->dims[0] != length
                         ? ONX_E_UNSUPPORTED
                         : row_of(s, items[k], int_at(node, "scan_input_directions", k - states) ? length - 1 - i : i,
                                  &inputs[k]);
        if (status == ONX_OK)
            status = run_body(s, body, in, inputs, node->input_count, outputs);
        for (uint32_t k = 0; k < states && status == ONX_OK; k++) {
            if (!has_same_dims(inputs[k], outputs[k]))
                status = fail(s, ONX_E_INVALID, "the state of a Scan changes its shape");
            inputs[k] = outputs[k];
        }
        for (uint32_t k = 0; k < stacks && status == ONX_OK; k++)
            rows[(size_t)(int_at(node, "scan_output_directions", k) ? length - 1 - i : i) * stacks + k] =
                outputs[states + k];
    }
    memcpy(made, inputs, states * sizeof *made);
    for (uint32_t k = 0; k < stacks && status == ONX_OK; k++)
        status = stack(s, rows + k, (uint32_t)length, stacks, &made[states + k]);
    free(rows);
    return status == ONX_OK ? define_outputs(node, in, made, states + stacks) : status;
}

/* ---- functions ---- */

static const onx_function *function_of(const state *s, const onx_node *node)
{
    for (uint32_t i = 0; i < s->model->functions_count; i++)
        if (onx_str_equal(onx_view(s->model->functions[i]->name), onx_view(node->op_type)) &&
            onx_str_equal(onx_view(s->model->functions[i]->domain), onx_view(node->domain)))
            return s->model->functions[i];
    return NULL;
}

static onx_status run_call(state *s, const onx_function *f, const onx_node *node, scope *in)
{
    onx_node call = *node;
    scope inside = { .call = &call, .function = f };
    onx_status status = ONX_OK;
    onx_arena *arena = NULL;
    void *copy;
    onx_str outputs[NODE_PORTS];
    if (s->depth > DEPTH || f->output_count > NODE_PORTS)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < f->output_count; i++)
        outputs[i] = onx_view(f->output[i]);
    ONX_TRY(onx_arena_new(s->o->cx, &arena));
    if (onx_message_copy(arena, ONX_KIND_NODE, node, &copy) == ONX_OK) {
        call = *(onx_node *)copy; /* what it refers to itself is that of its own caller */
        status = settle_attributes(arena, &call, in);
    }
    s->depth += 2;
    for (uint32_t i = 0; i < f->input_count && i < node->input_count && status == ONX_OK; i++)
        status = define(&inside, onx_view(f->input[i]), find(in, onx_view(node->input[i])));
    if (status == ONX_OK)
        status = run_nodes(s, f->node, f->node_count, outputs, f->output_count, &inside);
    s->depth -= 2;
    for (uint32_t i = 0; i < f->output_count && i < node->output_count && status == ONX_OK; i++) {
        onx_value *made = find(&inside, onx_view(f->output[i]));
        status = made ? define(in, onx_view(node->output[i]), made) : fail(s, ONX_E_UNSUPPORTED, "no such output");
    }
    free(inside.list);
    onx_arena_free(arena);
    return status;
}

static onx_status run_node(state *s, const onx_node *node, scope *in)
{
    const onx_str op = onx_view(node->op_type), domain = onx_view(node->domain);
    const onx_function *f = function_of(s, node);
    if (f)
        return run_call(s, f, node, in);
    if (!domain.len && onx_str_is(op, "If"))
        return run_if(s, node, in);
    if (!domain.len && onx_str_is(op, "Loop"))
        return run_loop(s, node, in);
    if (!domain.len && onx_str_is(op, "Scan"))
        return run_scan(s, node, in);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (onx_attribute_type_of(node->attribute[i]) == ONX_ATTR_GRAPH)
            return ONX_E_UNSUPPORTED;
    return run_alone(s, node, in);
}

/* ---- nodes that are needed ---- */

typedef struct use {
    onx_str name;
    bool found;
} use;

static onx_status look_for_use(void *user, const onx_visit *at)
{
    use *u = user;
    if (at->kind == ONX_KIND_NODE) {
        const onx_node *node = at->message;
        for (uint32_t i = 0; i < node->input_count; i++)
            u->found = u->found || onx_str_equal(onx_view(node->input[i]), u->name);
    } else if (at->kind == ONX_KIND_GRAPH) {
        const onx_graph *graph = at->message;
        for (uint32_t i = 0; i < graph->output_count; i++)
            u->found = u->found || onx_str_equal(onx_view(graph->output[i]->name), u->name);
    }
    return ONX_OK;
}

/* Nodes that no output needs do not run, and cannot fail. */
static void mark_needed(state *s, onx_node *const *nodes, uint32_t count, const onx_str *outputs, uint32_t output_count,
                        bool *needed)
{
    for (uint32_t i = count; i-- > 0;)
        for (uint32_t k = 0; k < nodes[i]->output_count && !needed[i]; k++) {
            use u = { onx_view(nodes[i]->output[k]), false };
            for (uint32_t n = 0; n < output_count; n++)
                u.found = u.found || onx_str_equal(outputs[n], u.name);
            for (uint32_t n = i + 1; n < count && !u.found && u.name.len; n++)
                if (needed[n])
                    (void)onx_message_walk(s->o->cx, ONX_KIND_NODE, nodes[n], look_for_use, &u);
            needed[i] = u.found && u.name.len;
        }
}

static onx_status run_nodes(state *s, onx_node *const *nodes, uint32_t count, const onx_str *outputs,
                            uint32_t output_count, scope *in)
{
    bool *needed = calloc(count + 1, sizeof *needed);
    onx_status status = needed ? ONX_OK : ONX_E_MEMORY;
    if (needed)
        mark_needed(s, nodes, count, outputs, output_count, needed);
    for (uint32_t i = 0; i < count && status == ONX_OK; i++)
        if (needed[i])
            status = run_node(s, nodes[i], in);
    free(needed);
    return status;
}

static onx_status run_graph(state *s, const onx_graph *graph, scope *in)
{
    onx_str outputs[ORACLE_OUTPUTS];
    if (graph->output_count > ORACLE_OUTPUTS)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < graph->output_count; i++)
        outputs[i] = onx_view(graph->output[i]->name);
    return run_nodes(s, graph->node, graph->node_count, outputs, graph->output_count, in);
}

/* ---- the model ---- */

static onx_status add_inputs(state *s, uint32_t set, scope *in)
{
    const oracle_set *values = &s->o->sets[set];
    const onx_graph *graph = s->model->graph;
    for (uint32_t i = 0; i < graph->input_count; i++)
        for (uint32_t k = 0; k < values->count; k++) {
            const onx_str name = onx_view(graph->input[i]->name);
            const onx_type *type = graph->input[i]->type;
            if (!onx_str_is(name, values->input[k].name))
                continue;
            if (!type || !ONX_HAS(type, type, tensor_type))
                return ONX_E_UNSUPPORTED;
            onx_value *v =
                oracle_value(s->o->cx, &values->input[k], (onx_dtype)type->tensor_type->elem_type, set, s->nudge);
            if (!v)
                return ONX_E_MEMORY;
            ONX_TRY(own(s, v));
            ONX_TRY(define(in, name, v));
        }
    return ONX_OK;
}

static onx_status copy_outputs(state *s, const scope *in, oracle_run *run)
{
    const onx_graph *graph = s->model->graph;
    for (uint32_t i = 0; i < graph->output_count && i < ORACLE_OUTPUTS; i++) {
        const onx_value *v = find(in, onx_view(graph->output[i]->name));
        if (!v)
            return ONX_E_UNSUPPORTED;
        ONX_TRY(onx_value_new(s->o->cx, &run->outputs[i]));
        run->count = i + 1;
        ONX_TRY(onx_value_assign(run->outputs[i], v));
    }
    return ONX_OK;
}

static void free_sessions(kept **list)
{
    for (kept *k = *list, *next; k; k = next) {
        next = k->next;
        free_kept(k);
    }
    *list = NULL;
}

void oracle_free_nodes(oracle *o)
{
    free_sessions(&o->kept);
}

static void run_model(state *s, uint32_t set, oracle_run *run)
{
    oracle *o = s->o;
    scope in = { .outer = NULL };
    memset(run, 0, sizeof *run);
    run->status = add_inputs(s, set, &in);
    if (run->status == ONX_OK)
        run->status = add_initializers(s, s->model->graph, &in);
    if (run->status == ONX_OK)
        run->status = run_graph(s, s->model->graph, &in);
    if (run->status == ONX_OK)
        run->status = copy_outputs(s, &in, run);
    if (run->status != ONX_OK) {
        oracle_error(o->cx, run->why, sizeof run->why);
        if (!run->why[0])
            (void)snprintf(run->why, sizeof run->why, "%s: %.200s", onx_status_text(run->status), s->why);
        oracle_run_free(run);
    }
    onx_diag_clear(o->cx);
    for (uint32_t i = 0; i < s->value_count; i++)
        onx_value_free(s->values[i].value);
    free(s->values);
    free(in.list);
}

void oracle_run_nodes(oracle *o, uint32_t set, oracle_run *run)
{
    state s = { .o = o, .model = onx_doc_model(o->doc), .sessions = &o->kept };
    run_model(&s, set, run);
}

void oracle_run_nodes_nudged(oracle *o, uint32_t set, const oracle_nudge *nudge, oracle_run *run)
{
    const onx_inline_options bodies = { .schema = true };
    kept *sessions = NULL;
    onx_doc *doc = oracle_copy(o), *parts = oracle_copy(o);
    if (parts && onx_inline(o->cx, parts, &bodies) != ONX_OK) {
        onx_doc_free(parts);
        parts = NULL;
    }
    onx_diag_clear(o->cx);
    state s = { .o = o,
                .model = parts ? onx_doc_model(parts)
                         : doc ? onx_doc_model(doc)
                               : NULL,
                .sessions = &sessions,
                .nudge = nudge };
    run->status = ONX_E_MEMORY;
    if (s.model)
        run_model(&s, set, run);
    free_sessions(&sessions);
    onx_doc_free(parts);
    onx_doc_free(doc);
}
