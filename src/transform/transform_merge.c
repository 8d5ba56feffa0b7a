/* transform_merge.c - merges models: connects values, resolves name conflicts, and builds one graph. */
#include "infer/infer.h"
#include "transform/transform_part.h"

#include "transform/transform_merge.h"

/* ---- names of the model merged so far ---- */

static onx_status take_name(void *user, onx_bytes *name)
{
    return onxi_dict_at(user, onx_view(*name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

/* The names of values of a model; names inside of functions are separate. */
static onx_status take_names(onx_ctx *cx, const onx_model *model, onxi_dict *values, onxi_dict *nodes)
{
    ONX_TRY(onxi_each_name(cx, ONX_KIND_GRAPH, model->graph, take_name, NULL, values));
    ONX_TRY(onxi_each_name(cx, ONX_KIND_GRAPH, model->graph, NULL, take_name, nodes));
    for (uint32_t i = 0; i < model->training_info_count; i++) {
        ONX_TRY(onxi_each_name(cx, ONX_KIND_TRAINING_INFO, model->training_info[i], take_name, NULL, values));
        ONX_TRY(onxi_each_name(cx, ONX_KIND_TRAINING_INFO, model->training_info[i], NULL, take_name, nodes));
    }
    return ONX_OK;
}

static onx_status note_offered(onxi_merger *m)
{
    const onx_graph *g = m->last ? m->other->graph : m->model->graph;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const onxi_dict_entry *entry = onxi_dict_at(&m->offered, onx_view(g->output[i]->name), m->offered.count, NULL);
        if (!entry || !ONXI_GROW_IN(m->scratch, m->offer, m->offer_room, m->offered.count))
            return ONX_E_MEMORY;
        m->offer[entry->value] = g->output[i];
    }
    return ONX_OK;
}

/* ---- prefixes ---- */

typedef struct prefixer {
    onx_arena *arena;
    onx_str prefix;
    onxi_dict known; /* indexes of names */
    onx_bytes *names;
    uint32_t room;
} prefixer;

static onx_status add_prefix(void *user, onx_bytes *name)
{
    prefixer *p = user;
    bool made;
    const onxi_dict_entry *entry = onxi_dict_at(&p->known, onx_view(*name), p->known.count, &made);
    if (!entry || !ONXI_GROW_IN(p->arena, p->names, p->room, p->known.count))
        return ONX_E_MEMORY;
    if (made) {
        const onx_str text = onxi_arena_printf(p->arena, "%.*s%.*s", ONX_ARG(p->prefix), ONX_ARG(onx_view(*name)));
        if (!text.len)
            return ONX_E_MEMORY;
        ONX_TRY(onx_arena_refer(p->arena, text, &p->names[entry->value]));
    }
    *name = p->names[entry->value];
    return ONX_OK;
}

typedef struct call_prefixer {
    prefixer names;
    const onxi_functions *functions;
} call_prefixer;

static onx_status prefix_call(void *user, const onx_visit *at)
{
    call_prefixer *p = user;
    onx_node *node = at->message;
    if (at->kind != ONX_KIND_NODE || !onxi_functions_find(p->functions, onx_view(node->domain), onx_view(node->op_type),
                                                          onx_view(onx_node_more(node)->overload), NULL))
        return ONX_OK;
    return add_prefix(&p->names, &node->op_type);
}

static onx_status prefix_functions(onxi_merger *m, onx_model *model, onx_str prefix)
{
    onxi_functions functions;
    if (!model->functions_count)
        return ONX_OK;
    ONX_TRY(onxi_functions_index(m->scratch, model->functions, model->functions_count, &functions));
    call_prefixer p = { { m->arena, prefix, onxi_dict_in_arena(m->scratch), NULL, 0 }, &functions };
    ONX_TRY(onx_message_walk(m->cx, ONX_KIND_MODEL, model, prefix_call, &p));
    for (uint32_t i = 0; i < model->functions_count; i++)
        ONX_TRY(add_prefix(&p.names, &model->functions[i]->name));
    return ONX_OK;
}

static onx_status prefix_model(onxi_merger *m, onx_model *model, onx_str prefix)
{
    prefixer p = { m->arena, prefix, onxi_dict_in_arena(m->scratch), NULL, 0 };
    if (!prefix.len)
        return ONX_OK;
    ONX_TRY(prefix_functions(m, model, prefix));
    ONX_TRY(onxi_each_name(m->cx, ONX_KIND_GRAPH, model->graph, add_prefix, add_prefix, &p));
    for (uint32_t i = 0; i < model->training_info_count; i++)
        ONX_TRY(onxi_each_name(m->cx, ONX_KIND_TRAINING_INFO, model->training_info[i], add_prefix, add_prefix, &p));
    return ONX_OK;
}

/* ---- connecting values ---- */

/* Are kinds and element types equal, as far as they are known? */
static bool fits(const onx_type *a, const onx_type *b)
{
    const uint32_t kinds = onx_type_has_tensor_type | onx_type_has_sequence_type | onx_type_has_map_type |
                           onx_type_has_opaque_type | onx_type_has_sparse_tensor_type | onx_type_has_optional_type;
    if (!a || !b || !(a->has & kinds) || !(b->has & kinds))
        return true;
    const int x = onxi_type_dtype(a), y = onxi_type_dtype(b);
    return (a->has & kinds) == (b->has & kinds) && (x == y || x == ONX_UNDEFINED || y == ONX_UNDEFINED);
}

static onx_status connect(onxi_merger *m, const onx_value_info *to, onx_str output)
{
    bool made;
    const onx_str input = onx_view(to->name);
    const onxi_dict_entry *entry = onxi_dict_at(&m->connected, input, m->connected.count, &made);
    const onxi_dict_entry *offered = onxi_dict_find(&m->offered, output);
    if (!entry || !ONXI_GROW_IN(m->scratch, m->source, m->source_room, m->connected.count) ||
        !onxi_dict_at(&m->taken, output, 0, NULL))
        return ONX_E_MEMORY;
    if (!made && !onx_str_equal(m->source[entry->value], output))
        return onxi_fail(m->cx, ONX_E_MISUSE, ONXI_NOWHERE, "input %.*s is connected twice", ONX_ARG(input));
    m->source[entry->value] = output;
    if (offered && !fits(m->offer[offered->value]->type, to->type))
        return onxi_fail(m->cx, ONX_E_INVALID, ONXI_NOWHERE, "output %.*s and input %.*s are of different types",
                         ONX_ARG(output), ONX_ARG(input));
    onxi_tell_change(m->options->changed, m->options->user, "merge", "connect", input, "is output %.*s",
                     ONX_ARG(output));
    return ONX_OK;
}

static onx_str prefixed(onxi_merger *m, onx_str prefix, onx_str name)
{
    return prefix.len ? onxi_arena_printf(m->scratch, "%.*s%.*s", ONX_ARG(prefix), ONX_ARG(name)) : name;
}

/* An entry of the map applies to a later model with that input; every entry has to apply to one. */
static onx_status connect_map(onxi_merger *m)
{
    onxi_dict inputs = onxi_dict_in_arena(m->scratch);
    const onx_graph *g = m->other->graph;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (!onxi_dict_at(&inputs, onx_view(g->input[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < m->options->map_count; i++) {
        const onx_str input = prefixed(m, m->options->prefix2, m->options->map[i].input);
        const onx_str plain = m->options->map[i].output, first = prefixed(m, m->options->prefix1, plain);
        const onx_str output = onxi_dict_find(&m->offered, first) ? first : prefixed(m, m->options->prefix2, plain);
        const onxi_dict_entry *to = onxi_dict_find(&inputs, input);
        if (!to)
            continue;
        if (!onxi_dict_find(&m->offered, output))
            return onxi_fail(m->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE,
                             "no model before it has an output %.*s for input %.*s", ONX_ARG(plain),
                             ONX_ARG(m->options->map[i].input));
        m->map_used[i] = true;
        ONX_TRY(connect(m, g->input[to->value], output));
    }
    return ONX_OK;
}

static onx_status connect_by_name(onxi_merger *m)
{
    const onx_graph *g = m->other->graph;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_str name = onx_view(g->input[i]->name);
        if (onxi_dict_find(&m->offered, name))
            ONX_TRY(connect(m, g->input[i], name));
    }
    return ONX_OK;
}

static onx_status connect_in_sequence(onxi_merger *m)
{
    onxi_dict initialized = onxi_dict_in_arena(m->scratch);
    const onx_graph *g = m->other->graph;
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(&initialized, onx_view(g->initializer[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const onx_str input = onx_view(g->input[i]->name);
        if (onxi_dict_find(&initialized, input))
            continue;
        if (next < m->last_count)
            ONX_TRY(connect(m, g->input[i], m->last[next]));
        next++;
    }
    if (next != m->last_count)
        return onxi_fail(m->cx, ONX_E_INVALID, ONXI_NOWHERE, "%u outputs cannot be the %u inputs of the next model",
                         m->last_count, next);
    return ONX_OK;
}

static onx_status connect_all(onxi_merger *m)
{
    const uint32_t before = m->connected.count;
    switch (m->options->how) {
    case ONX_MERGE_BY_MAP:
        return connect_map(m);
    case ONX_MERGE_IN_SEQUENCE:
        return connect_in_sequence(m);
    case ONX_MERGE_SIDE_BY_SIDE:
        return ONX_OK;
    default:
        ONX_TRY(connect_by_name(m));
    }
    if (m->connected.count == before)
        onxi_warn(m->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "no input has the name of an output before it: the models stand side by side");
    return ONX_OK;
}

/* ---- name conflicts ---- */

static onx_status set_name(onxi_merger *m, onx_str from, onx_bytes to)
{
    const onxi_dict_entry *entry = onxi_dict_at(&m->renamed, from, m->renamed.count, NULL);
    if (!entry || !ONXI_GROW_IN(m->scratch, m->to, m->to_room, m->renamed.count))
        return ONX_E_MEMORY;
    m->to[entry->value] = to;
    return ONX_OK;
}

static onx_status settle_value(void *user, onx_bytes *name)
{
    onxi_merger *m = user;
    const onx_str old = onx_view(*name);
    onx_bytes fresh;
    if (onxi_dict_find(&m->renamed, old))
        return ONX_OK;
    const onxi_dict_entry *input = onxi_dict_find(&m->connected, old);
    if (input) {
        ONX_TRY(onx_arena_keep(m->arena, m->source[input->value], &fresh));
        return set_name(m, old, fresh);
    }
    if (!onxi_dict_find(&m->values, old) || onxi_dict_find(&m->shared, old))
        return set_name(m, old, *name);
    if (onxi_dict_find(&m->visible, old)) {
        m->clashes++;
        (void)onxi_fail(
            m->cx, ONX_E_INVALID, ONXI_NOWHERE,
            "%.*s is an input or output of one model and a value of another; use a prefix to distinguish them",
            ONX_ARG(old));
        return set_name(m, old, *name);
    }
    ONX_TRY(onxi_names_make(&m->names, old, (onx_str){ 0 }, &fresh));
    onxi_tell_change(m->options->changed, m->options->user, "merge", "rename", old, "becomes %.*s",
                     ONX_ARG(onx_view(fresh)));
    return set_name(m, old, fresh);
}

static onx_status rename_value(void *user, onx_bytes *name)
{
    const onxi_merger *m = user;
    const onxi_dict_entry *entry = onxi_dict_find(&m->renamed, onx_view(*name));
    if (entry)
        *name = m->to[entry->value];
    return ONX_OK;
}

/* Names of nodes have no meaning; they are only made unique. */
static onx_status rename_node(void *user, onx_bytes *name)
{
    onxi_merger *m = user;
    if (!onxi_dict_find(&m->nodes, onx_view(*name)))
        return ONX_OK;
    return onxi_names_make(&m->names, onx_view(*name), (onx_str){ 0 }, name);
}

static onx_status settle_names(onxi_merger *m)
{
    onx_model *other = m->other;
    ONX_TRY(onxi_names_take(&m->names, ONX_KIND_GRAPH, other->graph));
    for (uint32_t i = 0; i < other->training_info_count; i++)
        ONX_TRY(onxi_names_take(&m->names, ONX_KIND_TRAINING_INFO, other->training_info[i]));
    ONX_TRY(onxi_each_name(m->cx, ONX_KIND_GRAPH, other->graph, settle_value, NULL, m));
    for (uint32_t i = 0; i < other->training_info_count; i++)
        ONX_TRY(onxi_each_name(m->cx, ONX_KIND_TRAINING_INFO, other->training_info[i], settle_value, NULL, m));
    if (m->clashes)
        return ONX_E_INVALID;
    ONX_TRY(onxi_each_name(m->cx, ONX_KIND_GRAPH, other->graph, rename_value, rename_node, m));
    for (uint32_t i = 0; i < other->training_info_count; i++)
        ONX_TRY(onxi_each_name(m->cx, ONX_KIND_TRAINING_INFO, other->training_info[i], rename_value, rename_node, m));
    return ONX_OK;
}

/* ---- parts that both models have ---- */

/* Inputs of both models with the same name become one if names connect. */
static onx_status share_inputs(onxi_merger *m)
{
    const onx_graph *g = m->other->graph;
    onxi_dict own = onxi_dict_in_arena(m->scratch);
    for (uint32_t i = 0; i < m->model->graph->input_count; i++)
        if (!onxi_dict_at(&own, onx_view(m->model->graph->input[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->input_count && m->options->how == ONX_MERGE_BY_NAME; i++) {
        const onx_str name = onx_view(g->input[i]->name);
        const onxi_dict_entry *entry = onxi_dict_find(&own, name);
        if (!entry || onxi_dict_find(&m->connected, name))
            continue;
        if (!fits(m->model->graph->input[entry->value]->type, g->input[i]->type))
            continue;
        if (!onxi_dict_at(&m->shared, name, 0, NULL))
            return ONX_E_MEMORY;
    }
    return ONX_OK;
}

static onx_status note_visible(onxi_merger *m)
{
    const onx_graph *g = m->other->graph;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (!onxi_dict_at(&m->visible, onx_view(g->input[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++)
        if (!onxi_dict_at(&m->visible, onx_view(g->output[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    return ONX_OK;
}

/* Skips the message; false when out of memory. */
static bool skip(onxi_merger *m, const void *message)
{
    void **at = onxi_map_at(&m->skip, (uint64_t)(uintptr_t)message);
    if (at)
        *at = m;
    return at != NULL;
}

/* Does the node have outputs, and read only values that both models have? */
static bool reads_shared(const onxi_merger *m, const onx_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (onx_view(node->input[i]).len && !onxi_dict_find(&m->shared, onx_view(node->input[i])))
            return false;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i]->slot == ONX_SLOT_G || node->attribute[i]->slot == ONX_SLOT_GRAPHS)
            return false;
    return node->output_count && onx_view(node->output[0]).len;
}

/* Nodes that are equal in both models and read the same values are merged; parts of a split model have such nodes. */
static onx_status share_nodes(onxi_merger *m)
{
    onxi_dict own = onxi_dict_in_arena(m->scratch);
    const onx_graph *a = m->model->graph, *b = m->other->graph;
    onxi_functions functions;
    onxi_binder binder = { .arena = m->scratch, .functions = &functions };
    ONX_TRY(onxi_functions_index(m->scratch, m->other->functions, m->other->functions_count, &functions));
    ONX_TRY(onxi_binder_open_model(&binder, m->other));
    for (uint32_t i = 0; i < a->node_count; i++)
        if (a->node[i]->output_count && !onxi_dict_at(&own, onx_view(a->node[i]->output[0]), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->node_count; i++) {
        const onx_node *node = b->node[i];
        const onxi_dict_entry *entry = reads_shared(m, node) ? onxi_dict_find(&own, onx_view(node->output[0])) : NULL;
        if (!entry || !onx_message_equal(ONX_KIND_NODE, a->node[entry->value], node))
            continue;
        const onxi_bound *bound = onxi_bind(&binder, node);
        if (!bound)
            return ONX_E_MEMORY;
        if (!onxi_is_repeatable(bound))
            continue;
        if (!skip(m, node))
            return ONX_E_MEMORY;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (!onxi_dict_at(&m->shared, onx_view(node->output[k]), 0, NULL))
                return ONX_E_MEMORY;
    }
    return ONX_OK;
}

/* Equal initializers and constants with the same name are merged. A default, which callers override, and a constant
 * stay apart. */
static onx_status share_constants(onxi_merger *m)
{
    onxi_dict own = onxi_dict_in_arena(m->scratch), set[2];
    const onx_graph *a = m->model->graph, *b = m->other->graph;
    for (int i = 0; i < 2; i++)
        set[i] = onxi_dict_in_arena(m->scratch);
    ONX_TRY(onxi_facts_defaults(m->model, a, &set[0]));
    ONX_TRY(onxi_facts_defaults(m->other, b, &set[1]));
    for (uint32_t i = 0; i < a->initializer_count; i++)
        if (!onxi_dict_at(&own, onx_view(a->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < b->initializer_count; i++) {
        const onx_str name = onx_view(b->initializer[i]->name);
        const onxi_dict_entry *entry = onxi_dict_find(&own, name);
        if (entry && entry->value < a->initializer_count &&
            !onxi_dict_find(&set[0], name) == !onxi_dict_find(&set[1], name) &&
            onx_message_equal(ONX_KIND_TENSOR, a->initializer[entry->value], b->initializer[i]) &&
            !onxi_dict_at(&m->shared, name, 0, NULL))
            return ONX_E_MEMORY;
    }
    return share_nodes(m);
}

static bool is_there(const onxi_merger *m, onx_bytes name)
{
    return onxi_dict_find(&m->connected, onx_view(name)) || onxi_dict_find(&m->shared, onx_view(name));
}

/* Skips declarations of values that belong to the model merged so far. */
static onx_status skip_shared(onxi_merger *m)
{
    const onx_graph *g = m->other->graph;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (is_there(m, g->input[i]->name) && !skip(m, g->input[i]))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (is_there(m, g->initializer[i]->name) && !skip(m, g->initializer[i]))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++)
        if (g->sparse_initializer[i]->values && is_there(m, g->sparse_initializer[i]->values->name) &&
            !skip(m, g->sparse_initializer[i]))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->value_info_count; i++)
        if (is_there(m, g->value_info[i]->name) && !skip(m, g->value_info[i]))
            return ONX_E_MEMORY;
    return ONX_OK;
}

/* ---- adding a model ---- */

static onx_status add_model(onxi_merger *m)
{
    m->connected = onxi_dict_in_arena(m->scratch);
    m->renamed = onxi_dict_in_arena(m->scratch);
    m->shared = onxi_dict_in_arena(m->scratch);
    m->visible = onxi_dict_in_arena(m->scratch);
    m->taken = onxi_dict_in_arena(m->scratch);
    m->skip = onxi_map_in_arena(m->scratch);
    ONX_TRY(prefix_model(m, m->other, m->options->prefix2));
    ONX_TRY(connect_all(m));
    ONX_TRY(share_inputs(m));
    ONX_TRY(note_visible(m));
    ONX_TRY(onxi_merge_external(m));
    ONX_TRY(share_constants(m));
    ONX_TRY(skip_shared(m));
    ONX_TRY(settle_names(m));
    ONX_TRY(onxi_merge_append(m));
    return note_offered(m);
}

static onx_status note_last(onxi_merger *m, const onx_graph *g)
{
    if (!(m->last = ONXI_ARRAY(m->scratch, onx_str, (size_t)g->output_count + 1)))
        return ONX_E_MEMORY;
    m->last_count = g->output_count;
    for (uint32_t i = 0; i < g->output_count; i++)
        m->last[i] = onx_view(g->output[i]->name);
    return ONX_OK;
}

static onx_status check_map(onxi_merger *m)
{
    for (uint32_t i = 0; i < m->options->map_count; i++)
        if (!m->map_used[i])
            return onxi_fail(m->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "no model but the first has an input %.*s",
                             ONX_ARG(m->options->map[i].input));
    return ONX_OK;
}

/* Keeps only the requested inputs and outputs, and the nodes between them. */
static onx_status keep_wanted(onxi_merger *m)
{
    onxi_cutter c;
    onx_model *made;
    const onx_graph *g = m->model->graph;
    onx_extract_options wanted = { .struct_size = sizeof wanted,
                                   .input = m->options->input,
                                   .input_count = m->options->input_count,
                                   .output = m->options->output,
                                   .output_count = m->options->output_count };
    if (!wanted.input_count && !wanted.output_count)
        return ONX_OK;
    onx_str *all = ONXI_ARRAY(m->scratch, onx_str, (size_t)g->input_count + 1);
    if (!all)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->input_count; i++)
        all[i] = onx_view(g->input[i]->name);
    if (!wanted.input_count) { /* inputs are kept, needed or not */
        wanted.input = all;
        wanted.input_count = g->input_count;
    }
    onx_status status = onxi_cutter_open(&c, m->doc, m->scratch);
    if (status == ONX_OK)
        status = onxi_extract_between(&c, m->arena, &wanted, &made);
    if (status == ONX_OK)
        *m->model->graph = *made->graph;
    onxi_cutter_close(&c);
    return status;
}

/* Records that messages of `doc` now belong to `other`, unless that would form a cycle. */
static void refer(onx_doc *doc, onx_doc *other)
{
    onx_doc *end = doc, *at = other;
    while (end->also)
        end = end->also;
    while (at && at != end)
        at = at->also;
    if (!at)
        end->also = other;
}

static onx_status run(onxi_merger *m, onx_doc *const *other, uint32_t count)
{
    if (!(m->map_used = ONXI_ARRAY(m->scratch, bool, (size_t)m->options->map_count + 1)))
        return ONX_E_MEMORY;
    ONX_TRY(prefix_model(m, m->model, m->options->prefix1));
    ONX_TRY(note_offered(m));
    ONX_TRY(note_last(m, m->model->graph));
    for (uint32_t i = 0; i < count; i++) {
        m->other_doc = other[i];
        m->other = onx_doc_model(other[i]);
        ONX_TRY(onxi_merge_agree(m));
        m->names.open = false; /* both models have new names since then */
        m->values = onxi_dict_in_arena(m->scratch);
        m->nodes = onxi_dict_in_arena(m->scratch);
        ONX_TRY(take_names(m->cx, m->model, &m->values, &m->nodes));
        ONX_TRY(add_model(m));
        refer(m->doc, m->other_doc);
        ONX_TRY(note_last(m, m->other->graph));
    }
    ONX_TRY(check_map(m));
    return keep_wanted(m);
}

static onx_status check_docs(onx_ctx *cx, onx_doc *doc, onx_doc *const *other, uint32_t count)
{
    for (uint32_t i = 0; i <= count; i++) {
        const onx_doc *d = i ? other[i - 1] : doc;
        const onx_model *model = onx_doc_model(d);
        for (uint32_t k = 0; k < i; k++)
            if ((k ? other[k - 1] : doc) == d)
                return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "a document is given twice");
        if (!model)
            return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "model %u is no model", i + 1);
        if (!model->graph)
            return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "model %u has no graph", i + 1);
    }
    return ONX_OK;
}

static onx_status merge(onx_ctx *cx, onx_doc *doc, onx_doc *const *other, uint32_t count,
                        const onx_merge_options *options)
{
    onx_arena *scratch;
    if (options->how < 0 || options->how >= ONX_MERGE_HOW_COUNT)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "%d is no way to connect models", options->how);
    ONX_TRY(check_docs(cx, doc, other, count));
    ONX_TRY(onx_arena_new(cx, &scratch));
    onxi_merger m = { .cx = cx,
                      .doc = doc,
                      .arena = onx_doc_arena(doc),
                      .scratch = scratch,
                      .model = onx_doc_model(doc),
                      .options = options,
                      .names = { .scratch = scratch, .arena = onx_doc_arena(doc), .model = onx_doc_model(doc) },
                      .offered = onxi_dict_in_arena(scratch) };
    const onx_status status = run(&m, other, count);
    onx_arena_free(scratch);
    return status == ONX_OK ? onxi_doc_warn_of_cycle(doc, ONXI_CYCLE_STAYS) : status;
}

onx_status onx_merge(onx_ctx *cx, onx_doc *doc, onx_doc *const *other, uint32_t count, const onx_merge_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, other || !count);
    ONXI_OPTIONS(cx, onx_merge_options, own, options);
    ONXI_NEED(cx, own.map || !own.map_count);
    ONXI_NEED(cx, own.input || !own.input_count);
    ONXI_NEED(cx, own.output || !own.output_count);
    for (uint32_t i = 0; i < count; i++)
        ONXI_NEED(cx, other[i]);
    onxi_checked checked;
    const size_t errors = onxi_call_begin(cx);
    onx_status status = onxi_checked_begin(&checked, cx, doc);
    for (uint32_t i = 0; i < count && status == ONX_OK; i++)
        status = onxi_checked_also(&checked, other[i]);
    if (status == ONX_OK)
        status = merge(cx, doc, other, count, &own);
    return onxi_tell(cx, errors, onxi_checked_end(&checked, &doc, 1, false, status));
}
