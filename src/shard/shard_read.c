/* shard_read.c - reads the model for a plan: values with their shapes, nodes with their rules, and which values are
 * needed. */
#include "shard/shard.h"

#include <onx/tensor.h>

#include "infer/infer.h"
#include "transform/transform.h"

uint32_t onxi_shard_value_find(const onxi_shard_plan *plan, onx_str name)
{
    const onxi_dict_entry *entry = name.len ? onxi_dict_find(&plan->names, name) : NULL;
    return entry ? entry->value : ONXI_SHARD_NONE;
}

onx_status onxi_shard_note(onxi_shard_plan *plan, uint32_t node, const char *format, ...)
{
    va_list args;
    const onx_str path = onxi_path_node(plan->arena, onx_str_of("graph."), node, plan->graph->node[node]);
    const onx_diag diag = { .severity = plan->strict ? ONX_ERROR : ONX_NOTE,
                            .status = plan->strict ? ONX_E_UNSUPPORTED : ONX_OK,
                            .where = ONXI_AT_PATH(path) };
    va_start(args, format);
    onxi_vreport(plan->cx, &diag, format, args);
    va_end(args);
    return plan->strict ? ONX_E_UNSUPPORTED : ONX_OK;
}

/* ---- values ---- */

/* Can it be cut into pieces and sent? */
static void note_shape(onxi_shard_value *v, int64_t dtype, uint64_t rank, const int64_t *dims)
{
    uint64_t count = 1;
    v->known =
        rank <= ONXI_SHARD_RANK && onx_dtype_name(dtype) && dtype != ONX_STRING && onx_dtype_bits((int)dtype) >= 8;
    v->dtype = (int32_t)dtype;
    for (uint64_t i = 0; v->known && i < rank; i++) {
        v->known = dims[i] > 0 && onxi_mul_u64(count, (uint64_t)dims[i], &count) && count < UINT64_C(1) << 48;
        v->dims[i] = dims[i];
    }
    v->rank = v->known ? (uint32_t)rank : 0;
}

static void note_type(onxi_shard_value *v, const onx_type *type)
{
    int64_t dims[ONXI_SHARD_RANK];
    const int rank = onxi_type_rank(type);
    if (rank < 0 || rank > ONXI_SHARD_RANK)
        return;
    for (int i = 0; i < rank; i++)
        dims[i] = onxi_type_dim(type, (uint32_t)i);
    note_shape(v, type->tensor_type->elem_type, (uint64_t)rank, dims);
}

/* The value of that name, created on first use. */
static onx_status add_value(onxi_shard_plan *plan, onx_str name, uint32_t *out)
{
    bool made;
    *out = ONXI_SHARD_NONE;
    if (!name.len)
        return ONX_OK;
    const onxi_dict_entry *entry = onxi_dict_at(&plan->names, name, plan->value_count, &made);
    if (!entry)
        return ONX_E_MEMORY;
    *out = entry->value;
    if (!made)
        return ONX_OK;
    if (!ONXI_GROW_IN(plan->arena, plan->value, plan->value_room, (uint64_t)plan->value_count + 1))
        return ONX_E_MEMORY;
    plan->value[plan->value_count++] = (onxi_shard_value){ .name = name, .node = ONXI_SHARD_NONE };
    return ONX_OK;
}

static onx_status add_given(onxi_shard_plan *plan, onx_infer *infer)
{
    uint32_t at;
    const onx_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->initializer_count; i++) {
        const onx_tensor *t = g->initializer[i];
        ONX_TRY(add_value(plan, onx_view(t->name), &at));
        if (at == ONXI_SHARD_NONE)
            continue;
        plan->value[at].tensor = t;
        plan->value[at].constant = true;
        note_shape(&plan->value[at], t->data_type, t->dims_count, t->dims);
    }
    for (uint32_t i = 0; i < g->sparse_initializer_count; i++) {
        const onx_tensor *t = g->sparse_initializer[i]->values;
        ONX_TRY(add_value(plan, t ? onx_view(t->name) : onx_str_of(""), &at));
        if (at == ONXI_SHARD_NONE)
            continue;
        plan->value[at].sparse = g->sparse_initializer[i];
        plan->value[at].constant = true;
    }
    for (uint32_t i = 0; i < g->input_count; i++) {
        ONX_TRY(add_value(plan, onx_view(g->input[i]->name), &at));
        if (at == ONXI_SHARD_NONE || plan->value[at].constant)
            continue;
        plan->value[at].input = true;
        note_type(&plan->value[at], onx_infer_type(infer, g, onx_view(g->input[i]->name)));
    }
    return ONX_OK;
}

/* ---- nodes ---- */

static const onx_node_device_configuration *device_of(const onxi_shard_plan *plan, const onx_node *node)
{
    const onx_node_extra *more = onx_node_more(node);
    for (uint32_t i = 0; i < more->device_configurations_count; i++)
        if (onx_str_equal(onx_view(more->device_configurations[i]->configuration_id),
                          onx_view(plan->configuration->name)))
            return more->device_configurations[i];
    return NULL;
}

typedef struct capture {
    onxi_shard_plan *plan;
    onxi_shard_node *node;
    uint32_t room;
} capture;

static onx_status note_captured(void *user, onx_bytes *name)
{
    capture *c = user;
    const uint32_t value = onxi_shard_value_find(c->plan, onx_view(*name));
    if (value == ONXI_SHARD_NONE)
        return ONX_OK;
    if (!ONXI_GROW_IN(c->plan->arena, c->node->captured, c->room, (uint64_t)c->node->captured_count + 1))
        return ONX_E_MEMORY;
    c->node->captured[c->node->captured_count++] = value;
    return ONX_OK;
}

/* Names inside of subgraphs that refer to values of the graph. */
static onx_status note_captures(onxi_shard_plan *plan, onxi_shard_node *n)
{
    capture c = { plan, n, 0 };
    for (uint32_t i = 0; i < n->node->attribute_count; i++) {
        const onx_attribute *a = n->node->attribute[i];
        uint32_t count = 0;
        onx_graph *const *graphs = onx_attribute_value(a, ONX_SLOT_GRAPHS, &count);
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(onxi_graph_each_name(plan->cx, a->g, note_captured, &c));
        for (uint32_t k = 0; graphs && k < count; k++)
            ONX_TRY(onxi_graph_each_name(plan->cx, graphs[k], note_captured, &c));
    }
    return ONX_OK;
}

enum { CONSTANT_DEPTH_MAX = 64 };

/* Values that depend on constants only are computed where they are needed, in the placement that is needed. */
static void note_constant(onxi_shard_plan *plan, onxi_shard_node *n)
{
    uint32_t depth = 0;
    n->constant = n->bound->kind == ONXI_BOUND_OPERATOR && n->bound->op != ONXI_ID_NONE && !n->captured_count &&
                  onxi_bound_repeats(n->bound);
    for (uint32_t i = 0; i < n->node->input_count && n->constant; i++) {
        const onxi_shard_value *v = n->inputs[i] == ONXI_SHARD_NONE ? NULL : &plan->value[n->inputs[i]];
        n->constant = !v || v->constant;
        depth = v && v->depth > depth ? v->depth : depth;
    }
    n->constant = n->constant && depth < CONSTANT_DEPTH_MAX;
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (n->outputs[i] != ONXI_SHARD_NONE) {
            plan->value[n->outputs[i]].constant = n->constant;
            plan->value[n->outputs[i]].depth = depth + 1;
        }
}

/* The shape of a value is known wherever its parts are, so it is a constant that does not read the value. */
static onx_status fold_shape(onxi_shard_plan *plan, onxi_shard_node *n)
{
    const bool is = n->bound->kind == ONXI_BOUND_OPERATOR && n->bound->op == ONXI_ID_Shape &&
                    n->node->input_count == 1 && n->node->output_count == 1 && n->inputs[0] != ONXI_SHARD_NONE &&
                    n->outputs[0] != ONXI_SHARD_NONE;
    const onxi_shard_value *x = is ? &plan->value[n->inputs[0]] : NULL;
    onxi_shard_value *y = is ? &plan->value[n->outputs[0]] : NULL;
    if (!is || n->constant || !x->known || !y->known || y->rank != 1)
        return ONX_OK;
    const onxi_attr_value *a = onxi_attrs_get(&n->attrs, "start", ONX_ATTR_INT);
    int64_t start = a ? a->i : 0;
    start = start < 0 ? start + x->rank : start;
    start = start < 0 ? 0 : start;
    if (start + y->dims[0] > x->rank)
        return ONX_OK; /* inference says something else */
    onx_tensor *t = onx_tensor_new(onx_doc_arena(plan->doc), ONX_INT64, y->dims, 1, x->dims + start, NULL);
    if (!t)
        return ONX_E_MEMORY;
    ONX_SET(tensor, t, name, n->node->output[0]);
    y->tensor = t;
    y->constant = n->constant = true;
    n->rule.unread = 0;
    return ONX_OK;
}

static onx_status find_rule(onxi_shard_plan *plan, onxi_shard_node *n)
{
    const uint32_t operands = n->node->input_count + n->node->output_count;
    n->rule = (onxi_shard_rule){ .once = -1, .unread = -1 };
    n->rule.map = onxi_arena_array(plan->arena, (size_t)operands + 1, sizeof *n->rule.map);
    if (!n->rule.map)
        return ONX_E_MEMORY;
    memset(n->rule.map, -1, ((size_t)operands + 1) * sizeof *n->rule.map);
    const onxi_shard_subject s = { plan, n->node, n->bound, &n->attrs, n->inputs, n->outputs };
    n->row = n->bound->kind == ONXI_BOUND_OPERATOR ? onxi_split_row_find(n->bound->op) : NULL;
    onxi_shard_rule_find(&s, n->row, &n->rule);
    return ONX_OK;
}

static onx_status read_node(onxi_shard_plan *plan, onx_infer *infer, uint32_t i)
{
    onxi_shard_node *n = &plan->node[i];
    onxi_attr_fault fault;
    n->node = plan->graph->node[i];
    n->device = device_of(plan, n->node);
    n->inputs = ONXI_ARRAY(plan->arena, uint32_t, (size_t)n->node->input_count + n->node->output_count + 1);
    n->bound = onxi_bind(&plan->binder, n->node);
    if (!n->inputs || !n->bound)
        return ONX_E_MEMORY;
    n->outputs = n->inputs + n->node->input_count;
    const onx_status status = onxi_bind_attributes(n->bound, n->node, NULL, plan->arena, NULL, 0, &n->attrs, &fault);
    if (status != ONX_OK)
        return onxi_fail(plan->cx, status, ONXI_AT_PATH(onxi_path_node(plan->arena, onx_str_of("graph."), i, n->node)),
                         "%s", fault.text);
    for (uint32_t k = 0; k < n->node->input_count; k++) {
        n->inputs[k] = onxi_shard_value_find(plan, onx_view(n->node->input[k]));
        if (n->inputs[k] == ONXI_SHARD_NONE && onx_view(n->node->input[k]).len)
            return onxi_fail(plan->cx, ONX_E_INVALID, ONXI_NOWHERE, "nothing makes the value \"%.*s\"",
                             ONX_ARG(onx_view(n->node->input[k])));
    }
    ONX_TRY(note_captures(plan, n));
    for (uint32_t k = 0; k < n->node->output_count; k++) {
        ONX_TRY(add_value(plan, onx_view(n->node->output[k]), &n->outputs[k]));
        if (n->outputs[k] == ONXI_SHARD_NONE)
            continue;
        plan->value[n->outputs[k]].node = i;
        note_type(&plan->value[n->outputs[k]], onx_infer_type(infer, plan->graph, onx_view(n->node->output[k])));
    }
    note_constant(plan, n);
    ONX_TRY(find_rule(plan, n));
    return fold_shape(plan, n);
}

static onx_status read_stages(onxi_shard_plan *plan)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const onx_node_device_configuration *d = plan->node[i].device;
        uint32_t at = 0;
        if (!d || !ONX_HAS(node_device_configuration, d, pipeline_stage))
            continue;
        while (at < plan->stage_count && plan->stages[at] < d->pipeline_stage)
            at++;
        if (at < plan->stage_count && plan->stages[at] == d->pipeline_stage)
            continue;
        if (plan->stage_count == ONXI_SHARD_DEVICES_MAX)
            return onxi_fail(plan->cx, ONX_E_LIMIT, ONXI_NOWHERE, "there are more than %d pipeline stages",
                             ONXI_SHARD_DEVICES_MAX);
        if (!ONXI_GROW_IN(plan->arena, plan->stages, room, (uint64_t)plan->stage_count + 1))
            return ONX_E_MEMORY;
        memmove(plan->stages + at + 1, plan->stages + at, (plan->stage_count - at) * sizeof *plan->stages);
        plan->stages[at] = d->pipeline_stage;
        plan->stage_count++;
    }
    return ONX_OK;
}

/* Only nodes that the outputs need are executed. */
static void note_live(onxi_shard_plan *plan, bool *wanted)
{
    for (uint32_t i = plan->node_count; i-- > 0;) {
        onxi_shard_node *n = &plan->node[i];
        for (uint32_t k = 0; k < n->node->output_count; k++)
            n->live |= n->outputs[k] != ONXI_SHARD_NONE && wanted[n->outputs[k]];
        for (uint32_t k = 0; n->live && k < n->node->input_count; k++)
            if (n->inputs[k] != ONXI_SHARD_NONE && (int32_t)k != n->rule.unread)
                wanted[n->inputs[k]] = true;
        for (uint32_t k = 0; n->live && k < n->captured_count; k++)
            wanted[n->captured[k]] = true;
    }
}

static onx_status read_nodes(onxi_shard_plan *plan, onx_infer *infer)
{
    const onx_graph *g = plan->graph;
    plan->node_count = g->node_count;
    plan->node = ONXI_ARRAY(plan->arena, onxi_shard_node, (size_t)g->node_count + 1);
    if (!plan->node)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->node_count; i++)
        ONX_TRY(read_node(plan, infer, i));
    bool *wanted = ONXI_ARRAY(plan->arena, bool, (size_t)plan->value_count + 1);
    if (!wanted)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t value = onxi_shard_value_find(plan, onx_view(g->output[i]->name));
        if (value == ONXI_SHARD_NONE)
            return onxi_fail(plan->cx, ONX_E_INVALID, ONXI_NOWHERE, "nothing makes the output \"%.*s\"",
                             ONX_ARG(onx_view(g->output[i]->name)));
        wanted[value] = true;
    }
    note_live(plan, wanted);
    return read_stages(plan);
}

/* types that have to be known are missing, which inference does not treat as a failure */
static onx_status memory_was_short(const onx_ctx *cx, size_t from)
{
    for (size_t i = from; i < onx_diag_count(cx); i++)
        if (onx_diag_get(cx, i)->status == ONX_E_MEMORY)
            return ONX_E_MEMORY;
    return ONX_OK;
}

onx_status onxi_shard_read(onxi_shard_plan *plan)
{
    onx_infer *infer;
    plan->names = onxi_dict_in_arena(plan->arena);
    plan->binder = (onxi_binder){ .arena = plan->arena, .functions = &plan->functions };
    ONX_TRY(onxi_functions_index(plan->arena, plan->model->functions, plan->model->functions_count, &plan->functions));
    ONX_TRY(onxi_binder_open_model(&plan->binder, plan->model));
    const onxi_diag_mark mark = onxi_diag_here(plan->cx);
    onx_status status = onxi_facts_new(plan->cx, plan->doc, onx_str_of(""), &infer);
    ONX_TRY(status);
    status = memory_was_short(plan->cx, mark.count);
    onxi_diag_rewind(plan->cx, mark); /* what else inference has to say was not asked for */
    if (status == ONX_OK)
        status = add_given(plan, infer);
    if (status == ONX_OK)
        status = read_nodes(plan, infer);
    if (status == ONX_OK)
        status = memory_was_short(plan->cx, mark.count);
    onx_infer_free(infer);
    return status;
}
