/* transform_halve.c - collects the values whose types are converted, their producers and readers, and sets of values
 * that must have the same type: elements of sequences, and values that control flow passes on. */
#include "transform/transform_halve.h"

/* ---- terms ---- */

onx_status onxi_halve_term_new(onxi_halver *h, bool stays, uint32_t *out)
{
    if (!ONXI_GROW_IN(h->scratch, h->term, h->term_room, (uint64_t)h->term_count + 1))
        return ONX_E_MEMORY;
    *out = h->term_count;
    h->term[h->term_count++] = (onxi_halve_term){ *out, stays };
    return ONX_OK;
}

uint32_t onxi_halve_root(onxi_halver *h, uint32_t term)
{
    while (h->term[term].parent != term)
        term = h->term[term].parent = h->term[h->term[term].parent].parent;
    return term;
}

void onxi_halve_unite(onxi_halver *h, uint32_t a, uint32_t b)
{
    if (a == ONXI_HALVE_NONE || b == ONXI_HALVE_NONE) {
        const uint32_t one = a == ONXI_HALVE_NONE ? b : a;
        if (one != ONXI_HALVE_NONE) /* with a value whose type is not converted */
            h->term[onxi_halve_root(h, one)].stays = true;
        return;
    }
    a = onxi_halve_root(h, a);
    b = onxi_halve_root(h, b);
    h->term[a].stays |= h->term[b].stays;
    h->term[b].parent = a;
}

/* ---- values ---- */

bool onxi_halve_is_tensor(const onx_type *type)
{
    return type && (ONX_HAS(type, type, tensor_type) || ONX_HAS(type, type, sparse_tensor_type));
}

int onxi_halve_source(const onxi_halver *h, const onx_type *type)
{
    const int dtype = onxi_type_dtype(type);
    return dtype > 0 && dtype < 32 && h->sources >> dtype & 1 ? dtype : ONX_UNDEFINED;
}

uint32_t onxi_halve_find(onxi_halver *h, const onxi_halve_scope *scope, onx_str name)
{
    (void)h;
    for (; scope; scope = scope->parent) {
        const onxi_dict_entry *entry = onxi_dict_find(&scope->values, name);
        if (entry)
            return entry->value;
    }
    return ONXI_HALVE_NONE;
}

/* An existing name keeps its first meaning. */
static onx_status add_value(onxi_halver *h, onxi_halve_scope *scope, onx_bytes name, onxi_halve_value value,
                            uint32_t *out)
{
    bool made = true;
    *out = h->value_count;
    if (!ONXI_GROW_IN(h->scratch, h->value, h->value_room, (uint64_t)h->value_count + 1))
        return ONX_E_MEMORY;
    if (onx_view(name).len && !onxi_dict_at(&scope->values, onx_view(name), h->value_count, &made))
        return ONX_E_MEMORY;
    value.name = value.now = name;
    h->value[h->value_count++] = value;
    return ONX_OK;
}

static int source_of(const onxi_halver *h, int32_t dtype)
{
    return dtype > 0 && dtype < 32 && h->sources >> dtype & 1 ? dtype : ONX_UNDEFINED;
}

static onx_status add_initializers(onxi_halver *h, onxi_halve_scope *scope, const onxi_dict *inputs)
{
    uint32_t out;
    for (uint32_t i = 0; i < scope->graph->initializer_count; i++) {
        onx_tensor *t = scope->graph->initializer[i];
        const onxi_dict_entry *input = onxi_dict_find(inputs, onx_view(t->name));
        if (input) {
            h->value[input->value].tensor = t;
            continue;
        }
        ONX_TRY(add_value(h, scope, t->name,
                          (onxi_halve_value){ .tensor = t,
                                              .term = ONXI_HALVE_NONE,
                                              .kind = ONXI_HALVE_CONSTANT,
                                              .from = (uint8_t)source_of(h, t->data_type),
                                              .tensor_typed = true,
                                              .pinned = onxi_dict_find(&h->trained, onx_view(t->name)) != NULL },
                          &out));
    }
    for (uint32_t i = 0; i < scope->graph->sparse_initializer_count; i++) {
        onx_sparse_tensor *s = scope->graph->sparse_initializer[i];
        if (!s->values)
            continue;
        ONX_TRY(add_value(h, scope, s->values->name,
                          (onxi_halve_value){ .sparse = s,
                                              .term = ONXI_HALVE_NONE,
                                              .kind = ONXI_HALVE_CONSTANT,
                                              .from = (uint8_t)source_of(h, s->values->data_type),
                                              .tensor_typed = true },
                          &out));
    }
    return ONX_OK;
}

/* `terms`: of the inputs of a subgraph, from the values passed to it; NULL: for a graph of the model. */
static onx_status add_inputs(onxi_halver *h, onxi_halve_scope *scope, const uint32_t *terms, uint32_t term_count)
{
    onxi_dict inputs = onxi_dict_in_arena(h->scratch);
    for (uint32_t i = 0; i < scope->graph->input_count; i++) {
        const onx_value_info *info = scope->graph->input[i];
        const onx_type *type = onxi_values_type(&h->values, &scope->scope, onx_view(info->name));
        if (!type && ONX_HAS(value_info, info, type))
            type = info->type;
        onxi_halve_value v = { .term = ONXI_HALVE_NONE,
                               .kind = ONXI_HALVE_INPUT,
                               .from = (uint8_t)onxi_halve_source(h, type),
                               .tensor_typed = onxi_halve_is_tensor(type) };
        uint32_t index;
        if (v.from && terms && i < term_count && terms[i] != ONXI_HALVE_NONE)
            v.term = terms[i];
        else if (v.from)
            ONX_TRY(onxi_halve_term_new(h, terms != NULL || h->options->keep_io, &v.term));
        if (terms && i < term_count && terms[i] != ONXI_HALVE_NONE && !v.from)
            h->term[onxi_halve_root(h, terms[i])].stays = true; /* of an unknown type */
        if (onxi_dict_find(&h->trained, onx_view(info->name)) && v.from)
            h->term[onxi_halve_root(h, v.term)].stays = true;
        ONX_TRY(add_value(h, scope, info->name, v, &index));
        if (!onxi_dict_at(&inputs, onx_view(info->name), index, NULL))
            return ONX_E_MEMORY;
    }
    return add_initializers(h, scope, &inputs);
}

/* ---- control flow ---- */

static onx_status walk_graph(onxi_halver *h, onxi_halve_scope *parent, onx_graph *graph, const uint32_t *terms,
                             uint32_t term_count, onxi_halve_scope **out);

/* Output `index` of a graph becomes a value with that term. */
static onx_status hand_out(onxi_halver *h, onxi_halve_scope *scope, uint32_t index, uint32_t term, uint8_t want)
{
    if (index >= scope->graph->output_count)
        return ONX_OK;
    const onx_str name = onx_view(scope->graph->output[index]->name);
    const uint32_t value = name.len ? onxi_halve_find(h, scope, name) : ONXI_HALVE_NONE;
    const onxi_halve_value *v = value == ONXI_HALVE_NONE ? NULL : &h->value[value];
    if (!v || !v->from) {
        if (term != ONXI_HALVE_NONE)
            h->term[onxi_halve_root(h, term)].stays = true;
        return ONX_OK;
    }
    if (!v->tensor_typed && want == ONXI_HALVE_TERM)
        onxi_halve_unite(h, v->term, term);
    if (want == ONXI_HALVE_TERM && term == ONXI_HALVE_NONE)
        want = ONXI_HALVE_OLD;
    if (!v->tensor_typed && want == ONXI_HALVE_OLD && v->term != ONXI_HALVE_NONE) /* no Cast converts lists */
        h->term[onxi_halve_root(h, v->term)].stays = true;
    if (!v->tensor_typed && want != ONXI_HALVE_TERM)
        want = ONXI_HALVE_ANY;
    if (!ONXI_GROW_IN(h->scratch, h->result, h->result_room, (uint64_t)h->result_count + 1))
        return ONX_E_MEMORY;
    h->result[h->result_count++] = (onxi_halve_result){ scope, index, { value, term, want } };
    return ONX_OK;
}

/* How outputs of the body correspond to those of the node, and inputs of the body to inputs or outputs: -1 none. */
typedef struct bridge {
    uint32_t node_inputs, body_inputs; /* the first that are passed */
    uint32_t body_outputs;             /* the first that becomes an output of the node */
    uint32_t states;                   /* loop-carried values, which are outputs and inputs of the body */
    bool carries;                      /* the outputs of the node begin with the states */
    bool inputs;                       /* the body receives inputs of the node */
} bridge;

static bool bridge_of(const onxi_halve_node *n, bridge *b)
{
    const uint32_t count = n->node->input_count;
    switch ((int)n->op) {
    case ONXI_ID_If:
        *b = (bridge){ .carries = true };
        return true;
    case ONXI_ID_Loop:
        *b = (bridge){ 2, 2, 1, count > 2 ? count - 2 : 0, true, true };
        return true;
    case ONXI_ID_Scan: {
        const uint32_t first = n->schema && n->schema->since < 9 ? 1 : 0;
        const int64_t scans = onxi_bind_int(n->bound, n->node, "num_scan_inputs");
        const uint32_t rest = count > first ? count - first : 0;
        if (scans < 0 || scans > rest)
            return false;
        *b = (bridge){ first, 0, 0, rest - (uint32_t)scans, true, true };
        return true;
    }
    case ONXI_ID_SequenceMap:
        *b = (bridge){ 0, 0, 0, 0, true, true };
        return true;
    default:
        return false;
    }
}

/* A use of a node input that has the type of the body's input. */
static onx_status hand_in(onxi_halver *h, onxi_halve_node *n, uint32_t i, uint32_t *term)
{
    const onx_str name = onx_view(n->node->input[i]);
    const uint32_t value = name.len ? onxi_halve_find(h, n->scope, name) : ONXI_HALVE_NONE;
    *term = ONXI_HALVE_NONE;
    h->use[n->use + i] = (onxi_halve_use){ ONXI_HALVE_NONE, ONXI_HALVE_NONE, ONXI_HALVE_OLD };
    if (value == ONXI_HALVE_NONE || !h->value[value].from)
        return ONX_OK;
    const onx_type *type = onxi_values_type(&h->values, &n->scope->scope, name);
    const onxi_port *port = n->schema ? onxi_port_at(n->schema->inputs, i) : NULL;
    onx_type_tensor element = { 0 };
    const onx_type plain = { .has = onx_type_has_tensor_type, .tensor_type = &element };
    const bool takes = onxi_halve_takes(h, n, port, h->value[value].tensor_typed ? &plain : type);
    ONX_TRY(onxi_halve_term_new(h, !n->chosen || !takes, term));
    if (!h->value[value].tensor_typed)
        onxi_halve_unite(h, *term, h->value[value].term);
    h->use[n->use + i] = (onxi_halve_use){ value, *term, ONXI_HALVE_TERM };
    return ONX_OK;
}

/* The terms of the outputs: those of states, or new ones. */
static onx_status open_outputs(onxi_halver *h, onxi_halve_node *n, const bridge *b, const uint32_t *states,
                               uint32_t *outputs)
{
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        const onx_str name = onx_view(n->node->output[i]);
        const onx_type *type = name.len ? onxi_values_type(&h->values, &n->scope->scope, name) : NULL;
        outputs[i] = ONXI_HALVE_NONE;
        if (name.len && !onxi_halve_source(h, type)) {
            if (i < b->states && states[i] != ONXI_HALVE_NONE)
                h->term[onxi_halve_root(h, states[i])].stays = true;
            continue;
        }
        if (i < b->states && states[i] != ONXI_HALVE_NONE)
            outputs[i] = states[i];
        else if (name.len)
            ONX_TRY(onxi_halve_term_new(h, !n->chosen, &outputs[i]));
        const onxi_port *port = n->schema ? onxi_port_at(n->schema->outputs, i) : NULL;
        if (outputs[i] != ONXI_HALVE_NONE && name.len && !onxi_halve_takes(h, n, port, type))
            h->term[onxi_halve_root(h, outputs[i])].stays = true;
    }
    return ONX_OK;
}

static onx_status walk_body(onxi_halver *h, onxi_halve_node *n, const bridge *b, onx_graph *body,
                            const uint32_t *inputs, uint32_t input_count, const uint32_t *states,
                            const uint32_t *outputs)
{
    onxi_halve_scope *inner;
    ONX_TRY(walk_graph(h, n->scope, body, inputs, input_count, &inner));
    for (uint32_t i = 0; i < body->output_count; i++) {
        const bool named = i >= b->body_outputs;
        const uint32_t k = i - b->body_outputs;
        const uint32_t term = !named                                                          ? ONXI_HALVE_NONE
                              : k < b->states                                                 ? states[k]
                              : k < n->node->output_count && onx_view(n->node->output[k]).len ? outputs[k]
                                                                                              : ONXI_HALVE_NONE;
        ONX_TRY(hand_out(h, inner, i, term, ONXI_HALVE_TERM));
    }
    return ONX_OK;
}

static onx_status walk_control(onxi_halver *h, onxi_halve_node *n, const bridge *b, uint32_t *outputs)
{
    const onx_node *node = n->node;
    uint32_t *terms = ONXI_ARRAY(h->scratch, uint32_t, (size_t)node->input_count + b->body_inputs + 1);
    if (!terms)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->body_inputs; i++)
        terms[i] = ONXI_HALVE_NONE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t term;
        ONX_TRY(hand_in(h, n, i, &term));
        if (b->inputs && i >= b->node_inputs)
            terms[i - b->node_inputs + b->body_inputs] = term;
    }
    const uint32_t handed =
        b->inputs && node->input_count > b->node_inputs ? node->input_count - b->node_inputs + b->body_inputs : 0;
    const uint32_t *states = terms + b->body_inputs;
    ONX_TRY(open_outputs(h, n, b, states, outputs));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_attribute *a = node->attribute[i];
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(walk_body(h, n, b, a->g, terms, handed, states, outputs));
    }
    return ONX_OK;
}

/* A node of an unknown operator: the inputs and outputs of its graphs keep their types. */
static onx_status walk_unknown(onxi_halver *h, onxi_halve_node *n, onx_graph *graph)
{
    onxi_halve_scope *inner;
    const uint32_t none = ONXI_HALVE_NONE;
    ONX_TRY(walk_graph(h, n->scope, graph, &none, 0, &inner));
    for (uint32_t i = 0; i < graph->output_count; i++)
        ONX_TRY(hand_out(h, inner, i, ONXI_HALVE_NONE, ONXI_HALVE_TERM));
    return ONX_OK;
}

/* ---- nodes ---- */

static onx_status add_outputs(onxi_halver *h, onxi_halve_node *n, const uint32_t *terms)
{
    n->made = h->made_count;
    if (!ONXI_GROW_IN(h->scratch, h->made, h->made_room, (uint64_t)h->made_count + n->node->output_count))
        return ONX_E_MEMORY;
    const bool constant = n->op == ONXI_ID_Constant;
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        const onx_bytes name = n->node->output[i];
        const onx_type *type =
            onx_view(name).len ? onxi_values_type(&h->values, &n->scope->scope, onx_view(name)) : NULL;
        onxi_halve_value v = { .term = constant ? ONXI_HALVE_NONE : terms[i],
                               .kind = constant ? ONXI_HALVE_CONSTANT : ONXI_HALVE_MADE,
                               .from = (uint8_t)(constant || terms[i] != ONXI_HALVE_NONE ? onxi_halve_source(h, type)
                                                                                         : ONX_UNDEFINED),
                               .tensor_typed = onxi_halve_is_tensor(type),
                               .pinned = constant && !onxi_halve_can_rewrite(n->node) };
        h->made[h->made_count] = ONXI_HALVE_NONE;
        if (v.term != ONXI_HALVE_NONE && onxi_dict_find(&h->trained, onx_view(name)))
            h->term[onxi_halve_root(h, v.term)].stays = true;
        if (onx_view(name).len)
            ONX_TRY(add_value(h, n->scope, name, v, &h->made[h->made_count]));
        h->made_count++;
    }
    return ONX_OK;
}

static onx_status open_node(onxi_halver *h, onxi_halve_scope *scope, uint32_t index, onxi_halve_node *n)
{
    onx_node *node = scope->graph->node[index];
    onxi_bound *bound = onxi_bind(&h->binder, node);
    if (!bound)
        return ONX_E_MEMORY;
    const bool known = bound->kind == ONXI_BOUND_OPERATOR;
    *n = (onxi_halve_node){ .node = node,
                            .scope = scope,
                            .bound = bound,
                            .schema = known ? bound->schema : NULL,
                            .op = known ? bound->op : ONXI_ID_NONE,
                            .index = index,
                            .next = ONXI_HALVE_NONE,
                            .use = h->use_count,
                            .term = ONXI_HALVE_NONE };
    n->chosen = onxi_selects(&h->selection, node);
    n->kept = onxi_dict_find(&h->keep, onxi_node_called(node)) != NULL;
    n->chosen = n->chosen && !n->kept && !h->kept;
    if (!ONXI_GROW_IN(h->scratch, h->use, h->use_room, (uint64_t)h->use_count + node->input_count))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->input_count; i++)
        h->use[h->use_count++] = (onxi_halve_use){ ONXI_HALVE_NONE, ONXI_HALVE_NONE, ONXI_HALVE_OLD };
    return ONX_OK;
}

static onx_status walk_node(onxi_halver *h, onxi_halve_scope *scope, uint32_t index)
{
    onxi_halve_node n;
    bridge b;
    ONX_TRY(open_node(h, scope, index, &n));
    uint32_t *outputs = ONXI_ARRAY(h->scratch, uint32_t, (size_t)n.node->output_count + 1);
    if (!outputs)
        return ONX_E_MEMORY;
    h->kept += n.kept;
    if (bridge_of(&n, &b)) {
        ONX_TRY(walk_control(h, &n, &b, outputs));
    } else {
        ONX_TRY(onxi_halve_operands(h, &n, outputs));
        for (uint32_t i = 0; i < n.node->attribute_count; i++) {
            const onx_attribute *a = n.node->attribute[i];
            if (a->slot == ONX_SLOT_G && a->g)
                ONX_TRY(walk_unknown(h, &n, a->g));
            for (uint32_t k = 0; a->slot == ONX_SLOT_GRAPHS && k < a->count; k++)
                ONX_TRY(walk_unknown(h, &n, a->graphs[k]));
        }
    }
    h->kept -= n.kept;
    ONX_TRY(add_outputs(h, &n, outputs));
    if (!ONXI_GROW_IN(h->scratch, h->node, h->node_room, (uint64_t)h->node_count + 1))
        return ONX_E_MEMORY;
    *(scope->last_node == ONXI_HALVE_NONE ? &scope->first_node : &h->node[scope->last_node].next) = h->node_count;
    scope->last_node = h->node_count;
    h->node[h->node_count++] = n;
    return ONX_OK;
}

static onx_status walk_graph(onxi_halver *h, onxi_halve_scope *parent, onx_graph *graph, const uint32_t *terms,
                             uint32_t term_count, onxi_halve_scope **out)
{
    onxi_halve_scope *scope = *out = ONXI_NEW(h->scratch, onxi_halve_scope);
    if (!scope)
        return ONX_E_MEMORY;
    scope->scope = (onxi_scope){
        .parent = parent ? &parent->scope : NULL, .graph = graph, .nodes = graph->node, .node_count = graph->node_count
    };
    scope->parent = parent;
    scope->graph = graph;
    scope->values = onxi_dict_in_arena(h->scratch);
    scope->main = !parent;
    scope->first_node = scope->last_node = ONXI_HALVE_NONE;
    if (++h->depth > h->limit)
        return onxi_fail(h->cx, ONX_E_LIMIT, ONXI_NOWHERE, "subgraphs are nested more than %u deep (limit depth)",
                         h->limit);
    *h->last_scope = scope;
    h->last_scope = &scope->next;
    ONX_TRY(add_inputs(h, scope, terms, term_count));
    for (uint32_t i = 0; i < graph->node_count; i++)
        ONX_TRY(walk_node(h, scope, i));
    h->depth--;
    return ONX_OK;
}

onx_status onxi_halve_model(onxi_halver *h)
{
    onxi_halve_scope *scope;
    if (!h->model->graph)
        return ONX_OK;
    ONX_TRY(walk_graph(h, NULL, h->model->graph, NULL, 0, &scope));
    for (uint32_t i = 0; i < h->model->graph->output_count; i++)
        ONX_TRY(hand_out(h, scope, i, ONXI_HALVE_NONE, h->options->keep_io ? ONXI_HALVE_OLD : ONXI_HALVE_NEW));
    return ONX_OK;
}
