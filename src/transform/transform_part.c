/* transform_part.c - extracts nodes of the main graph as a separate model, with everything that they need. */
#include "transform/transform_part.h"
#include "infer/infer.h"

#include <stdio.h>

/* ---- the graph with its names resolved ---- */

static onx_status note_declared(onxi_cutter *c)
{
    c->declared = onxi_dict_in_arena(c->scratch);
    for (uint32_t i = 0; i < c->graph->value_info_count; i++)
        if (!onxi_dict_at(&c->declared, onx_view(c->graph->value_info[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < c->graph->output_count; i++)
        if (!onxi_dict_at(&c->declared, onx_view(c->graph->output[i]->name), c->graph->value_info_count + i, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

typedef struct reader {
    onxi_cutter *c;
    uint32_t node;
    bool count; /* count only */
} reader;

static onx_status read_named(void *user, onx_bytes *name)
{
    const reader *r = user;
    const onx_name_id id = onx_index_find(r->c->index, onx_view(*name));
    r->c->names_values = true;
    if (id != ONX_NO_NAME && r->count)
        r->c->first[r->node + 2]++;
    else if (id != ONX_NO_NAME)
        r->c->reads[r->c->first[r->node + 1]++] = id;
    return ONX_OK;
}

static onx_status each_named(onxi_cutter *c, bool count)
{
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        reader r = { c, i, count };
        ONX_TRY(onxi_each_named(c->cx, ONX_KIND_NODE, c->graph->node[i], read_named, &r));
    }
    return ONX_OK;
}

/* Inverts the uses of names: the values that each node reads. */
static onx_status note_reads(onxi_cutter *c)
{
    const uint32_t names = onx_index_name_count(c->index), nodes = c->graph->node_count;
    uint64_t total = 0;
    uint32_t count;
    if (!(c->first = ONXI_ARRAY(c->scratch, uint32_t, (size_t)nodes + 2)))
        return ONX_E_MEMORY;
    for (onx_name_id id = 0; id < names; id++) {
        const onx_use *uses = onx_index_uses(c->index, id, &count);
        total += count;
        for (uint32_t i = 0; i < count; i++)
            c->first[uses[i].node + 2]++;
    }
    ONX_TRY(each_named(c, true));
    for (uint32_t i = 2; i < nodes + 2; i++)
        c->first[i] += c->first[i - 1];
    total = c->first[nodes + 1];
    if (!(c->reads = ONXI_ARRAY(c->scratch, onx_name_id, (size_t)total + 1)))
        return ONX_E_MEMORY;
    for (onx_name_id id = 0; id < names; id++) {
        const onx_use *uses = onx_index_uses(c->index, id, &count);
        for (uint32_t i = 0; i < count; i++)
            c->reads[c->first[uses[i].node + 1]++] = id;
    }
    return each_named(c, false);
}

bool onxi_is_repeatable(const onxi_bound *bound)
{
    return bound->kind == ONXI_BOUND_OPERATOR && bound->op && onxi_bound_repeats(bound);
}

/* Are the node's outputs deterministic functions of its inputs, and are these constant? */
static bool makes_constant(const onxi_cutter *c, uint32_t node, const onxi_bound *bound)
{
    if (!onxi_is_repeatable(bound))
        return false;
    const onx_node *n = c->graph->node[node];
    for (uint32_t i = 0; i < n->attribute_count; i++)
        if (n->attribute[i]->slot == ONX_SLOT_G || n->attribute[i]->slot == ONX_SLOT_GRAPHS || n->attribute[i]->extra)
            return false;
    for (uint32_t k = c->first[node]; k < c->first[node + 1]; k++) {
        const onx_def def = onx_index_def(c->index, c->reads[k]);
        if (def.kind == ONX_DEF_NONE || def.kind == ONX_DEF_INPUT ||
            (def.kind == ONX_DEF_NODE && !c->constant[def.index]))
            return false;
    }
    return true;
}

static onx_status note_constants(onxi_cutter *c)
{
    const uint32_t nodes = c->graph->node_count;
    c->binder = (onxi_binder){ .arena = c->scratch, .functions = &c->functions };
    ONX_TRY(onxi_functions_index(c->scratch, c->model->functions, c->model->functions_count, &c->functions));
    ONX_TRY(onxi_binder_open_model(&c->binder, c->model));
    ONX_TRY(onxi_nodes_order(c->scratch, c->graph->node, nodes, &c->cycle, &c->order));
    c->constant = ONXI_ARRAY(c->scratch, bool, (size_t)nodes + 1);
    c->stack = ONXI_ARRAY(c->scratch, uint32_t, (size_t)nodes + 1);
    if (!c->constant || !c->stack)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < nodes; i++) {
        const uint32_t node = c->order ? c->order[i] : i;
        const onxi_bound *bound = onxi_bind(&c->binder, c->graph->node[node]);
        if (!bound)
            return ONX_E_MEMORY;
        c->constant[node] = makes_constant(c, node, bound);
    }
    return ONX_OK;
}

/* Checks that every name has a single meaning; otherwise a part could give it another one than the whole model. */
static onx_status check_names(const onxi_cutter *c)
{
    for (uint32_t i = 0; i < c->graph->node_count; i++)
        for (uint32_t k = 0; k < c->graph->node[i]->output_count; k++) {
            const onx_str name = onx_view(c->graph->node[i]->output[k]);
            const onx_def def = name.len ? onx_index_def(c->index, onx_index_find(c->index, name)) : (onx_def){ 0 };
            if (name.len && (def.kind != ONX_DEF_NODE || def.index != i || def.output != k))
                return onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE,
                                 "the value %.*s is made more than once: it is not clear which one is meant",
                                 ONX_ARG(name));
        }
    return ONX_OK;
}

onx_status onxi_cutter_open(onxi_cutter *c, onx_doc *doc, onx_arena *scratch)
{
    const onx_model *model = onx_doc_model(doc);
    *c = (onxi_cutter){ .cx = scratch->cx, .doc = doc, .scratch = scratch, .model = model };
    if (!model)
        return onxi_fail(c->cx, ONX_E_MISUSE, ONXI_NOWHERE, "the document is not a model");
    if (!model->graph)
        return onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE, "the model has no graph");
    c->graph = model->graph;
    ONX_TRY(onx_index_new(c->cx, c->graph, &c->index));
    ONX_TRY(check_names(c));
    ONX_TRY(onxi_values_open(&c->values, doc, scratch));
    ONX_TRY(note_declared(c));
    ONX_TRY(note_reads(c));
    return note_constants(c);
}

void onxi_cutter_close(onxi_cutter *c)
{
    onxi_values_close(&c->values);
    onx_index_free(c->index);
}

onx_status onxi_cutter_refuse_cycle(onxi_cutter *c, const bool *node)
{
    onxi_cycle cycle = c->cycle;
    if (!cycle.node)
        return ONX_OK;
    if (node) {
        onx_node **list = (onx_node **)ONXI_ARRAY(c->scratch, void *, (size_t)c->graph->node_count + 1);
        uint32_t *order, count = 0;
        if (!list)
            return ONX_E_MEMORY;
        for (uint32_t i = 0; i < c->graph->node_count; i++)
            if (node[i])
                list[count++] = c->graph->node[i];
        ONX_TRY(onxi_nodes_order(c->scratch, list, count, &cycle, &order));
    }
    return !cycle.node
               ? ONX_OK
               : onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE, "the graph has a cycle: %.*s", ONX_ARG(cycle.text));
}

bool onxi_cutter_is_constant(const onxi_cutter *c, onx_name_id id)
{
    const onx_def def = onx_index_def(c->index, id);
    return def.kind == ONX_DEF_NODE && c->constant[def.index];
}

void onxi_cutter_take_constant(onxi_cutter *c, onx_name_id id, bool *node)
{
    uint32_t depth = 0;
    const uint32_t from = onx_index_def(c->index, id).index;
    if (node[from])
        return;
    node[from] = true;
    c->stack[depth++] = from;
    while (depth) {
        const uint32_t at = c->stack[--depth];
        for (uint32_t k = c->first[at]; k < c->first[at + 1]; k++) {
            const onx_def def = onx_index_def(c->index, c->reads[k]);
            if (def.kind != ONX_DEF_NODE || node[def.index])
                continue;
            node[def.index] = true;
            c->stack[depth++] = def.index;
        }
    }
}

onx_status onxi_cutter_find(const onxi_cutter *c, onx_str name, onx_name_id *out)
{
    *out = onx_index_find(c->index, name);
    if (*out != ONX_NO_NAME && onx_index_def(c->index, *out).kind != ONX_DEF_NONE)
        return ONX_OK;
    return onxi_fail(c->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the main graph has no value %.*s", ONX_ARG(name));
}

onx_status onxi_cutter_need(onxi_cutter *c, const onx_name_id *wanted, uint32_t count, const bool *given, bool *node,
                            bool *needed)
{
    onx_name_id *stack = NULL;
    uint32_t room = 0;
    uint64_t depth = 0;
    for (uint32_t i = 0; i <= count; i++) {
        if (i < count && !needed[wanted[i]]) {
            if (!ONXI_GROW_IN(c->scratch, stack, room, depth + 1))
                return ONX_E_MEMORY;
            needed[wanted[i]] = true;
            stack[depth++] = wanted[i];
        }
        while (depth) {
            const onx_name_id id = stack[--depth];
            const onx_def def = onx_index_def(c->index, id);
            if (given[id] || (def.kind != ONX_DEF_NODE && def.kind != ONX_DEF_NONE))
                continue;
            if (def.kind == ONX_DEF_NONE)
                return onxi_fail(c->cx, ONX_E_INVALID, ONXI_NOWHERE, "nothing makes the value %.*s, which is needed",
                                 ONX_ARG(onx_index_name(c->index, id)));
            if (node[def.index])
                continue;
            node[def.index] = true;
            for (uint32_t k = c->first[def.index]; k < c->first[def.index + 1]; k++) {
                if (needed[c->reads[k]])
                    continue;
                if (!ONXI_GROW_IN(c->scratch, stack, room, depth + 1))
                    return ONX_E_MEMORY;
                needed[c->reads[k]] = true;
                stack[depth++] = c->reads[k];
            }
        }
    }
    return ONX_OK;
}

/* ---- building a part ---- */

enum { PRESENT = 1, GIVEN = 2, RESULT = 4 }; /* role of a value in the part: any value, an input, an output */

typedef struct maker {
    onxi_cutter *c;
    onx_arena *arena;
    const onxi_part *part;
    onx_model *model;
    onx_graph *graph;
    uint8_t *is; /* per name */
} maker;

static void *list_of(maker *m, uint64_t count)
{
    return onxi_arena_array(m->arena, (size_t)onxi_list_room(count) + 1, sizeof(void *));
}

/* The declaration of a value, or NULL. */
static onx_value_info *declared(const onxi_cutter *c, onx_name_id id)
{
    const onx_def def = onx_index_def(c->index, id);
    const onxi_dict_entry *entry = onxi_dict_find(&c->declared, onx_index_name(c->index, id));
    const uint32_t infos = c->graph->value_info_count;
    if (def.kind == ONX_DEF_INPUT)
        return c->graph->input[def.index];
    if (!entry)
        return NULL;
    return entry->value < infos ? c->graph->value_info[entry->value] : c->graph->output[entry->value - infos];
}

/* Sizes that are only claimed: the declared names, without the declared numbers. */
static void name_sizes(onx_type *type, const onx_type *claimed)
{
    const onx_tensor_shape *names =
        onxi_type_rank(claimed) == onxi_type_rank(type) ? claimed->tensor_type->shape : NULL;
    for (uint32_t i = 0; names && i < names->dim_count; i++) {
        onx_dimension *d = type->tensor_type->shape->dim[i];
        if (ONX_HAS(dimension, d, dim_value) || !ONX_HAS(dimension, names->dim[i], dim_param))
            continue;
        d->dim_param = names->dim[i]->dim_param;
        d->has |= onx_dimension_has_dim_param;
    }
}

/* A declared type with a rank is kept for an output. An inner value that becomes an input gets the type that it is
 * proven to have, because a run refuses other ones. */
static onx_status add_end(maker *m, onx_name_id id, onx_value_info **list, uint32_t *count)
{
    onxi_cutter *c = m->c;
    const onx_str name = onx_index_name(c->index, id);
    onx_value_info *known = declared(c, id);
    const bool ranked = known && onxi_type_rank(known->type) >= 0, given = list == m->graph->input;
    if (known && (onx_index_def(c->index, id).kind == ONX_DEF_INPUT || (ranked && !given))) {
        list[(*count)++] = known;
        return ONX_OK;
    }
    const onxi_scope scope = { .graph = c->graph };
    const onx_type *type = onxi_values_type(&c->values, &scope, name);
    if (c->values.status != ONX_OK)
        return c->values.status;
    if (ranked && onxi_type_rank(type) < 0)
        type = known->type; /* nothing better is known */
    void *copy = known ? known->type : NULL;
    onx_value_info *info = ONXI_NEW(m->arena, onx_value_info);
    if (!info)
        return ONX_E_MEMORY;
    if (known)
        *info = *known;
    else
        ONX_TRY(onx_arena_keep(m->arena, name, &info->name));
    if (type) {
        onx_type *shown;
        ONX_TRY(onxi_facts_show(m->arena, type, &shown));
        if (known && given)
            name_sizes(shown, known->type);
        copy = shown;
    }
    info->has |= onx_value_info_has_name;
    if (copy)
        ONX_SET(value_info, info, type, copy);
    list[(*count)++] = info;
    return ONX_OK;
}

static onx_status add_ends(maker *m)
{
    const onxi_part *p = m->part;
    m->graph->input = list_of(m, (uint64_t)p->input_count + m->c->graph->input_count);
    m->graph->output = list_of(m, p->output_count);
    m->graph->input_count = m->graph->output_count = 0;
    if (!m->graph->input || !m->graph->output)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p->input_count; i++) {
        m->is[p->input[i]] |= PRESENT | GIVEN;
        ONX_TRY(add_end(m, p->input[i], m->graph->input, &m->graph->input_count));
    }
    for (uint32_t i = 0; i < p->output_count; i++) {
        m->is[p->output[i]] |= PRESENT | RESULT;
        ONX_TRY(add_end(m, p->output[i], m->graph->output, &m->graph->output_count));
    }
    return ONX_OK;
}

static onx_status add_nodes(maker *m)
{
    const onxi_cutter *c = m->c;
    if (!(m->graph->node = list_of(m, c->graph->node_count)))
        return ONX_E_MEMORY;
    m->graph->node_count = 0;
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        const onx_node *node = c->graph->node[i];
        if (!m->part->node[i])
            continue;
        m->graph->node[m->graph->node_count++] = c->graph->node[i];
        for (uint32_t k = c->first[i]; k < c->first[i + 1]; k++)
            m->is[c->reads[k]] |= PRESENT;
        for (uint32_t k = 0; k < node->output_count; k++) {
            const onx_name_id id = onx_index_find(c->index, onx_view(node->output[k]));
            if (id != ONX_NO_NAME)
                m->is[id] |= PRESENT;
        }
    }
    return ONX_OK;
}

static uint8_t what_is(const maker *m, onx_bytes name)
{
    const onx_name_id id = onx_index_find(m->c->index, onx_view(name));
    return id == ONX_NO_NAME ? 0 : m->is[id];
}

/* The initializers with quantization parameters of an included value are included as well. */
static onx_status add_annotations(maker *m)
{
    const onx_graph *from = m->c->graph;
    if (!(m->graph->quantization_annotation = list_of(m, from->quantization_annotation_count)))
        return ONX_E_MEMORY;
    m->graph->quantization_annotation_count = 0;
    for (uint32_t i = 0; i < from->quantization_annotation_count; i++) {
        onx_tensor_annotation *a = from->quantization_annotation[i];
        if (!what_is(m, a->tensor_name))
            continue;
        m->graph->quantization_annotation[m->graph->quantization_annotation_count++] = a;
        for (uint32_t k = 0; k < a->quant_parameter_tensor_names_count; k++) {
            const onx_name_id id = onx_index_find(m->c->index, onx_view(a->quant_parameter_tensor_names[k]->value));
            if (id != ONX_NO_NAME && onx_index_def(m->c->index, id).kind != ONX_DEF_NODE)
                m->is[id] |= PRESENT;
        }
    }
    return ONX_OK;
}

/* Does the initializer belong to the part? If its value became an input it does not, unless the model had both. */
static bool keeps_initializer(maker *m, onx_bytes name)
{
    const onx_name_id id = onx_index_find(m->c->index, onx_view(name));
    if (id == ONX_NO_NAME || !m->is[id])
        return false;
    const onx_def def = onx_index_def(m->c->index, id);
    if (def.kind != ONX_DEF_INPUT)
        return !(m->is[id] & GIVEN);
    if (!(m->is[id] & GIVEN)) { /* the caller may override it, as in the model */
        m->graph->input[m->graph->input_count++] = m->c->graph->input[def.index];
        m->is[id] |= GIVEN;
    }
    return true;
}

static onx_status add_initializers(maker *m)
{
    const onx_graph *from = m->c->graph;
    onx_graph *to = m->graph;
    to->initializer = list_of(m, from->initializer_count);
    to->sparse_initializer = list_of(m, from->sparse_initializer_count);
    to->initializer_count = to->sparse_initializer_count = 0;
    if (!to->initializer || !to->sparse_initializer)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < from->initializer_count; i++)
        if (keeps_initializer(m, from->initializer[i]->name))
            to->initializer[to->initializer_count++] = from->initializer[i];
    for (uint32_t i = 0; i < from->sparse_initializer_count; i++)
        if (from->sparse_initializer[i]->values && keeps_initializer(m, from->sparse_initializer[i]->values->name))
            to->sparse_initializer[to->sparse_initializer_count++] = from->sparse_initializer[i];
    return ONX_OK;
}

static onx_status add_infos(maker *m)
{
    const onx_graph *from = m->c->graph;
    if (!(m->graph->value_info = list_of(m, from->value_info_count)))
        return ONX_E_MEMORY;
    m->graph->value_info_count = 0;
    for (uint32_t i = 0; i < from->value_info_count; i++)
        if (what_is(m, from->value_info[i]->name) == PRESENT)
            m->graph->value_info[m->graph->value_info_count++] = from->value_info[i];
    return ONX_OK;
}

/* ---- functions ---- */

typedef struct callers {
    onxi_cutter *c;
    bool *called;
    uint32_t *stack, depth;
} callers;

static onx_status note_call(void *user, const onx_visit *at)
{
    callers *w = user;
    const onx_node *node = at->message;
    uint32_t index;
    if (at->kind != ONX_KIND_NODE)
        return ONX_OK;
    if (onxi_functions_find(&w->c->functions, onx_view(node->domain), onx_view(node->op_type),
                            onx_view(onx_node_more(node)->overload), &index) &&
        !w->called[index]) {
        w->called[index] = true;
        w->stack[w->depth++] = index;
    }
    return ONX_OK;
}

static onx_status add_functions(maker *m)
{
    const onx_model *from = m->c->model;
    const uint32_t count = from->functions_count;
    if (!count)
        return ONX_OK;
    callers w = { m->c, ONXI_ARRAY(m->c->scratch, bool, count), ONXI_ARRAY(m->c->scratch, uint32_t, count), 0 };
    if (!w.called || !w.stack || !(m->model->functions = list_of(m, count)))
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->graph->node_count; i++)
        ONX_TRY(onx_message_walk(m->c->cx, ONX_KIND_NODE, m->graph->node[i], note_call, &w));
    while (w.depth) {
        const onx_function *f = from->functions[w.stack[--w.depth]];
        for (uint32_t i = 0; i < f->node_count; i++)
            ONX_TRY(onx_message_walk(m->c->cx, ONX_KIND_NODE, f->node[i], note_call, &w));
    }
    m->model->functions_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (w.called[i])
            m->model->functions[m->model->functions_count++] = from->functions[i];
    return ONX_OK;
}

/* ---- names in attributes ---- */

enum {
    NAMED = 1,
    FROM = 2,
    TO = 4
}; /* a named value; one that depends on named values; one that named values depend
    * on */

typedef struct marker {
    const onxi_cutter *c;
    uint8_t *is; /* per name */
} marker;

static onx_status mark_named(void *user, onx_bytes *name)
{
    const marker *m = user;
    const onx_name_id id = onx_index_find(m->c->index, onx_view(*name));
    if (id != ONX_NO_NAME)
        m->is[id] = NAMED | FROM | TO;
    return ONX_OK;
}

/* Marks the outputs of a node that reads a value marked FROM, or the inputs of a node that computes one marked TO. */
static bool hand_mark(const marker *m, uint32_t node, uint8_t mark)
{
    const onx_node *n = m->c->graph->node[node];
    bool any = false;
    for (uint32_t k = m->c->first[node]; mark == FROM && k < m->c->first[node + 1]; k++)
        any |= (m->is[m->c->reads[k]] & FROM) != 0;
    for (int pass = mark == TO ? 0 : 1; pass < 2; pass++)
        for (uint32_t k = 0; k < n->output_count; k++) {
            const onx_name_id id = onx_index_find(m->c->index, onx_view(n->output[k]));
            if (id != ONX_NO_NAME && mark == TO)
                any |= (m->is[id] & TO) != 0;
            else if (id != ONX_NO_NAME && any)
                m->is[id] |= FROM;
        }
    for (uint32_t k = m->c->first[node]; any && mark == TO && k < m->c->first[node + 1]; k++)
        m->is[m->c->reads[k]] |= TO;
    return any;
}

/* A node that names values also depends on the nodes between these: a part with this node contains all of them. */
static onx_status check_named(onxi_cutter *c, const onxi_part *part)
{
    const uint32_t nodes = c->graph->node_count;
    const marker m = { c, ONXI_ARRAY(c->scratch, uint8_t, (size_t)onx_index_name_count(c->index) + 1) };
    bool *from = ONXI_ARRAY(c->scratch, bool, (size_t)nodes + 1);
    if (!m.is || !from)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < nodes; i++)
        if (part->node[i])
            ONX_TRY(onxi_each_named(c->cx, ONX_KIND_NODE, c->graph->node[i], mark_named, (void *)(uintptr_t)&m));
    for (uint32_t i = 0; i < nodes; i++) {
        const uint32_t node = c->order ? c->order[i] : i;
        from[node] = hand_mark(&m, node, FROM);
    }
    for (uint32_t i = nodes; i-- > 0;) {
        const uint32_t node = c->order ? c->order[i] : i;
        if (hand_mark(&m, node, TO) && from[node] && !part->node[node])
            return onxi_fail(c->cx, ONX_E_UNSUPPORTED,
                             ONXI_AT_PATH(onxi_path_node(c->scratch, onx_str_of("graph."), node, c->graph->node[node])),
                             "the node is between values that another node of a part names, and not in the part");
    }
    return ONX_OK;
}

/* ---- the whole part ---- */

onx_status onxi_part_make(onxi_cutter *c, onx_arena *arena, const onxi_part *part, onx_model **out)
{
    maker m = { .c = c, .arena = arena, .part = part };
    m.model = ONXI_NEW(arena, onx_model);
    m.graph = ONXI_NEW(arena, onx_graph);
    m.is = ONXI_ARRAY(c->scratch, uint8_t, (size_t)onx_index_name_count(c->index) + 1);
    if (!m.model || !m.graph || !m.is)
        return ONX_E_MEMORY;
    if (c->names_values)
        ONX_TRY(check_named(c, part));
    ONX_TRY(onxi_cutter_refuse_cycle(c, part->node));
    *m.model = *c->model;
    *m.graph = *c->graph;
    m.model->graph = m.graph;
    ONX_TRY(add_nodes(&m));
    ONX_TRY(add_ends(&m));
    ONX_TRY(add_annotations(&m));
    ONX_TRY(add_initializers(&m));
    ONX_TRY(add_infos(&m));
    ONX_TRY(add_functions(&m));
    m.model->training_info = NULL; /* it describes the whole model */
    m.model->training_info_count = 0;
    *out = m.model;
    return ONX_OK;
}

onx_status onxi_part_doc(onxi_cutter *c, const onxi_part *part, onx_doc **out)
{
    onx_model *model;
    ONX_TRY(onx_doc_reader(c->cx, c->doc, out));
    const onx_status status = onxi_part_make(c, (*out)->arena, part, &model);
    if (status == ONX_OK) {
        (*out)->root = model;
        return ONX_OK;
    }
    onx_doc_free(*out);
    *out = NULL;
    return status;
}

/* ---- reporting ---- */

void onxi_tell_change(void (*changed)(void *user, const onx_change *change), void *user, const char *pass,
                      const char *rule, onx_str path, const char *format, ...)
{
    char text[512];
    va_list args;
    if (!changed)
        return;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    const onx_change change = { pass, onx_str_of(rule), path, onx_str_make(text, len) };
    changed(user, &change);
}

bool onxi_pattern_match(onx_str pattern, onx_str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.len) {
        if (p < pattern.len && (pattern.ptr[p] == '?' || (pattern.ptr[p] == text.ptr[t] && pattern.ptr[p] != '*'))) {
            p++;
            t++;
        } else if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = t;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else
            return false;
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}
