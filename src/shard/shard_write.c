/* shard_write.c - writes the model of one rank: its nodes over its shards, slices of the weights, and collectives. */
#include "shard/shard_write.h"

#include <onx/tensor.h>

#include "transform/transform.h"
#include "value/value.h"

/* ---- names ---- */

onx_status onxi_shard_name_new(onxi_shard_writer *w, onx_str base, onx_bytes *out)
{
    onx_str name;
    do { /* names in the model may look like generated ones */
        name = onxi_arena_printf(w->arena, "%.*s.%llu", ONX_ARG(base), (unsigned long long)++w->names);
        if (!name.ptr)
            return ONX_E_MEMORY;
    } while (onxi_shard_value_find(w->plan, name) != ONXI_SHARD_NONE);
    return onx_arena_refer(w->arena, name, out);
}

static onxi_shard_held *find_held(const onxi_shard_writer *w, uint32_t value, const onxi_box *box)
{
    for (onxi_shard_held *h = w->held[value]; h; h = h->next)
        if (onxi_box_same(&h->box, box, w->plan->value[value].rank))
            return h;
    return NULL;
}

/* A name for a part; the whole value has its name in the model. */
onx_status onxi_shard_hold(onxi_shard_writer *w, uint32_t value, const onxi_box *box, onx_bytes *name)
{
    const onxi_shard_value *v = &w->plan->value[value];
    onxi_shard_held *h = ONXI_NEW(w->arena, onxi_shard_held);
    if (!h)
        return ONX_E_MEMORY;
    h->box = *box;
    h->next = w->held[value];
    bool whole = !find_held(w, value, box);
    for (uint32_t i = 0; i < v->rank; i++)
        whole &= box->size[i] == v->dims[i];
    ONX_TRY(whole ? onx_arena_refer(w->arena, v->name, &h->name) : onxi_shard_name_new(w, v->name, &h->name));
    w->held[value] = h;
    *name = h->name;
    return ONX_OK;
}

/* ---- weights ---- */

static onx_status add_initializer(onxi_shard_writer *w, const onx_tensor *t)
{
    uint64_t count, size;
    if (onx_tensor_count(t, &count) && onx_dtype_size(t->data_type, count, &size))
        w->summary->weight_bytes += size;
    return onx_graph_add_initializer(w->arena, w->graph, (onx_tensor *)(uintptr_t)t) ? ONX_OK : ONX_E_MEMORY;
}

/* Elements are not copied: the part is one contiguous run, or runs that are joined when it is read. */
static onx_status slice_bytes(onxi_shard_writer *w, const onxi_shard_value *v, const onxi_box *box, onx_str all,
                              onx_tensor *out)
{
    uint32_t outer = 0;
    uint64_t inner = onxi_element_size(v->dtype), pitch, first, last = 0;
    onxi_tensor_part part = { .runs = 1 };
    for (uint32_t i = 0; i < v->rank; i++)
        if (box->size[i] != v->dims[i])
            outer = i; /* the last axis that is split */
    for (uint32_t i = outer + 1; i < v->rank; i++)
        inner *= (uint64_t)v->dims[i];
    part.run = inner * (uint64_t)box->size[outer];
    first = inner * (uint64_t)box->start[outer];
    pitch = inner * (uint64_t)v->dims[outer];
    part.axes = outer;
    for (uint32_t i = outer; i-- > 0; pitch *= (uint64_t)v->dims[i]) {
        part.count[i] = (uint64_t)box->size[i];
        part.pitch[i] = pitch;
        part.runs *= part.count[i];
        first += pitch * (uint64_t)box->start[i];
        last += pitch * (part.count[i] - 1);
    }
    part.span = onx_str_make(all.ptr + first, (size_t)(last + part.run));
    if (part.runs > 1)
        return onxi_doc_add_part(w->doc, out, &part);
    out->has |= onx_tensor_has_raw_data;
    return onx_arena_refer(w->arena, part.span, &out->raw_data);
}

static onx_status put_weight(onxi_shard_writer *w, uint32_t value, const onxi_box *box, onx_bytes name)
{
    const onxi_shard_value *v = &w->plan->value[value];
    onx_str all;
    bool whole = true;
    for (uint32_t i = 0; i < v->rank; i++)
        whole &= box->size[i] == v->dims[i];
    if (v->sparse) {
        onx_sparse_tensor **at =
            onx_list_insert(w->arena, (void **)&w->graph->sparse_initializer, &w->graph->sparse_initializer_count,
                            w->graph->sparse_initializer_count, sizeof *at);
        if (at)
            *at = (onx_sparse_tensor *)(uintptr_t)v->sparse;
        return at ? ONX_OK : ONX_E_MEMORY;
    }
    if (whole)
        return add_initializer(w, v->tensor);
    onx_tensor *t = onx_message_new(w->arena, ONX_KIND_TENSOR);
    if (!t || !(t->dims = ONXI_ARRAY(w->arena, int64_t, (size_t)onxi_list_room(v->rank))))
        return ONX_E_MEMORY;
    onxi_copy_dims(t->dims, box->size, v->rank);
    t->dims_count = v->rank;
    ONX_SET(tensor, t, data_type, v->dtype);
    ONX_SET(tensor, t, name, name);
    ONX_TRY(onx_tensor_bytes(w->plan->doc, v->tensor, &all));
    ONX_TRY(slice_bytes(w, v, box, all, t));
    return add_initializer(w, t);
}

/* This rank's name for the value with that placement. */
onx_status onxi_shard_name_of(onxi_shard_writer *w, uint32_t value, const onxi_placement *p, onx_bytes *out)
{
    const onxi_shard_value *v = &w->plan->value[value];
    const onxi_box box = onxi_shard_box_of(w, value, p, w->rank);
    const onxi_shard_held *h = find_held(w, value, &box);
    if (h) {
        *out = h->name;
        return ONX_OK;
    }
    if (!v->tensor && !v->sparse)
        return onxi_fail(w->plan->cx, ONX_E_INVALID, ONXI_NOWHERE, "rank %u has no part of \"%.*s\"", w->rank,
                         ONX_ARG(v->name));
    ONX_TRY(onxi_shard_hold(w, value, &box, out));
    return put_weight(w, value, &box, *out);
}

/* ---- nodes ---- */

onx_status onxi_shard_node_add(onxi_shard_writer *w, onx_node *node)
{
    if (!ONXI_GROW_IN(w->arena, w->node, w->node_room, (uint64_t)w->node_count + 1))
        return ONX_E_MEMORY;
    w->node[w->node_count++] = node;
    return ONX_OK;
}

/* Copies the attributes of the node to a list of its own, without that one. */
static onx_status drop(onxi_shard_writer *w, onx_node *node, const char *name)
{
    const onx_attribute *old = onx_node_attribute(node, name);
    onx_attribute **list = onxi_arena_array(w->arena, (size_t)onxi_list_room(node->attribute_count + 1u), sizeof *list);
    uint32_t count = 0;
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attribute[i] != old)
            list[count++] = node->attribute[i];
    node->attribute = list;
    node->attribute_count = count;
    return ONX_OK;
}

static onx_status set_int(onxi_shard_writer *w, onx_node *node, const char *name, int64_t value)
{
    ONX_TRY(drop(w, node, name));
    return onx_node_add_int(w->arena, node, name, value) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status add_ints(onxi_shard_writer *w, const int64_t *ints, uint32_t count, onx_bytes *name)
{
    const int64_t dims[] = { count };
    ONX_TRY(onxi_shard_name_new(w, onx_str_of("onx.shard.shape"), name));
    onx_tensor *t = onx_tensor_new(w->arena, ONX_INT64, dims, 1, ints, NULL);
    if (!t)
        return ONX_E_MEMORY;
    ONX_SET(tensor, t, name, *name);
    return add_initializer(w, t);
}

static onx_status copy_node(onxi_shard_writer *w, const onx_node *from, onx_node **out)
{
    onx_node *n = ONXI_NEW(w->arena, onx_node);
    if (!n)
        return ONX_E_MEMORY;
    *n = *from;
    if (n->extra) {
        onx_node_extra *extra = ONXI_NEW(w->arena, onx_node_extra);
        if (!extra)
            return ONX_E_MEMORY;
        *extra = *onx_node_more(from);
        extra->device_configurations_count = 0;
        n->extra = &extra->base;
    }
    n->input = onxi_arena_array(w->arena, (size_t)onxi_list_room(n->input_count), sizeof *n->input);
    n->output = onxi_arena_array(w->arena, (size_t)onxi_list_room(n->output_count), sizeof *n->output);
    *out = n;
    return (n->input || !n->input_count) && (n->output || !n->output_count) ? ONX_OK : ONX_E_MEMORY;
}

/* Means of shards cannot be combined: sums are added up, and then divided. */
static onx_status sum_instead(onxi_shard_writer *w, const onxi_shard_node *n, onx_node *to)
{
    const onx_attribute *axes = onx_node_attribute(to, "axes");
    uint32_t count = 0;
    const int64_t *list = axes ? onx_attribute_value(axes, ONX_SLOT_INTS, &count) : NULL;
    ONX_TRY(onx_arena_keep(w->arena, onx_str_of("ReduceSum"), &to->op_type));
    if (n->bound->opset < 13 || !list)
        return ONX_OK;
    ONX_TRY(drop(w, to, "axes")); /* it becomes an input */
    onx_bytes *in = onxi_arena_array(w->arena, 2, sizeof *in);
    if (!in)
        return ONX_E_MEMORY;
    in[0] = to->input[0];
    to->input = in;
    to->input_count = 2;
    return add_ints(w, list, count, &in[1]);
}

static onx_status look_up(onxi_shard_writer *w, const onxi_shard_node *n, const onxi_assignment *a, onx_node *to)
{
    const onxi_shard_dim *rows = &n->rule.dim[n->rule.fix_dim];
    const onxi_attr_value *axis = onxi_attrs_get(&n->attrs, "axis", ONX_ATTR_INT);
    const int64_t rank = w->plan->value[n->inputs[0]].rank, at = axis ? axis->i : 0;
    const uint32_t part = onxi_shard_part(&n->rule, a, w->rank, n->rule.fix_dim);
    to->attribute_count = 0;
    to->attribute = NULL;
    ONX_TRY(onx_arena_keep(w->arena, onx_str_of("Lookup"), &to->op_type));
    ONX_TRY(onx_arena_keep(w->arena, onx_str_of(ONXI_SHARD_DOMAIN), &to->domain));
    to->has |= onx_node_has_domain;
    ONX_TRY(set_int(w, to, "axis", at < 0 ? at + rank : at));
    ONX_TRY(set_int(w, to, "first", onxi_shard_start(rows->size, a->shards[n->rule.fix_dim], part)));
    return set_int(w, to, "all", rows->size);
}

static onx_status divide_counts(onxi_shard_writer *w, const onxi_shard_node *n, onx_node *to, uint32_t shards)
{
    for (const char *const *names = n->rule.names; *names; names++) {
        const onxi_attr_value *v = onxi_attrs_get(&n->attrs, *names, ONX_ATTR_INT);
        if (v)
            ONX_TRY(set_int(w, to, *names, v->i / shards));
    }
    return ONX_OK;
}

static onx_status set_sizes(onxi_shard_writer *w, const onxi_shard_node *n, const onxi_shard_step *step, onx_node *to)
{
    const uint32_t a = n->inputs[0], y = n->outputs[0];
    const onxi_box rows = onxi_shard_box_of(w, a, step->in[0], w->rank);
    const onxi_box columns = onxi_shard_box_of(w, y, step->out[0], w->rank);
    ONX_TRY(set_int(w, to, n->rule.names[0], rows.size[w->plan->value[a].rank - 1]));
    return set_int(w, to, n->rule.names[1], columns.size[w->plan->value[y].rank - 1]);
}

static onx_status choose_direction(onxi_shard_writer *w, const onxi_shard_node *n, const onxi_assignment *a,
                                   onx_node *to)
{
    static const char *const ways[] = { "forward", "reverse" };
    ONX_TRY(drop(w, to, "direction"));
    const uint32_t part = onxi_shard_part(&n->rule, a, w->rank, n->rule.fix_dim);
    return onx_node_add_string(w->arena, to, "direction", onx_str_of(ways[part != 0])) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status fix(onxi_shard_writer *w, const onxi_shard_node *n, const onxi_shard_step *step, onx_node *to)
{
    const uint32_t shards = step->assignment->shards[n->rule.fix_dim];
    const bool partial = onxi_shard_is_partial(&n->rule, step->assignment);
    if (partial && n->rule.once >= 0 && onxi_shard_reduced_part(&n->rule, step->assignment, w->rank))
        to->input_count = (uint32_t)n->rule.once; /* it is the last one */
    for (uint32_t i = 0; i < n->rule.dim_count && partial; i++)
        if (n->rule.dim[i].kind == ONXI_SHARD_MEAN)
            return sum_instead(w, n, to);
    switch (n->rule.fix) {
    case ONXI_SHARD_SHAPE: {
        const onxi_box box = onxi_shard_box_of(w, n->outputs[0], step->out[0], w->rank);
        return add_ints(w, box.size, w->plan->value[n->outputs[0]].rank, &to->input[1]);
    }
    case ONXI_SHARD_COUNTS:
        return shards > 1 ? divide_counts(w, n, to, shards) : ONX_OK;
    case ONXI_SHARD_LOOKUP:
        return shards > 1 ? look_up(w, n, step->assignment, to) : ONX_OK;
    case ONXI_SHARD_SIZES:
        return set_sizes(w, n, step, to);
    case ONXI_SHARD_DIRECTION:
        return shards > 1 ? choose_direction(w, n, step->assignment, to) : ONX_OK;
    default:
        return ONX_OK;
    }
}

/* Are all its outputs available already? Constants may be computed more than once. */
static bool is_there(const onxi_shard_writer *w, const onxi_shard_node *n, const onxi_shard_step *step)
{
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (n->outputs[i] != ONXI_SHARD_NONE) {
            const onxi_box box = onxi_shard_box_of(w, n->outputs[i], step->out[i], w->rank);
            if (!find_held(w, n->outputs[i], &box))
                return false;
        }
    return true;
}

static onx_status write_node(onxi_shard_writer *w, const onxi_shard_step *step)
{
    const onxi_shard_node *n = &w->plan->node[step->node];
    const bool partial = onxi_shard_is_partial(&n->rule, step->assignment);
    onx_node *to;
    if (step->assignment->at[w->rank] < 0 || (!partial && is_there(w, n, step)))
        return ONX_OK;
    ONX_TRY(copy_node(w, n->node, &to));
    for (uint32_t i = 0; i < n->node->input_count; i++)
        if (step->in[i])
            ONX_TRY(onxi_shard_name_of(w, n->inputs[i], step->in[i], &to->input[i]));
    for (uint32_t i = 0; i < n->captured_count; i++) {
        onx_bytes name;
        ONX_TRY(onxi_shard_name_of(w, n->captured[i], w->plan->everywhere, &name));
    }
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        if (n->outputs[i] == ONXI_SHARD_NONE)
            continue;
        const onxi_box box = onxi_shard_box_of(w, n->outputs[i], step->out[i], w->rank);
        if (partial) {
            ONX_TRY(onxi_shard_name_new(w, w->plan->value[n->outputs[i]].name, &to->output[i]));
            w->partial[n->outputs[i]] = to->output[i];
        } else
            ONX_TRY(onxi_shard_hold(w, n->outputs[i], &box, &to->output[i]));
    }
    ONX_TRY(fix(w, n, step, to));
    return onxi_shard_node_add(w, to);
}

/* ---- the model ---- */

static bool is_collective(const onx_node *n)
{
    return onx_str_is(onx_view(n->domain), ONXI_SHARD_DOMAIN) && !onx_str_is(onx_view(n->op_type), "Lookup") &&
           !onx_str_is(onx_view(n->op_type), "Slice");
}

typedef struct marker {
    onxi_shard_writer *w;
    onxi_dict *wanted;
} marker;

static onx_status want_name(void *user, onx_bytes *name)
{
    marker *m = user;
    return onxi_dict_at(m->wanted, onx_view(*name), 0, NULL) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status want_inputs(onxi_shard_writer *w, onx_node *n, onxi_dict *wanted)
{
    marker m = { w, wanted };
    for (uint32_t i = 0; i < n->input_count; i++)
        ONX_TRY(want_name(&m, &n->input[i]));
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        const onx_attribute *a = n->attribute[i];
        uint32_t count = 0;
        onx_graph *const *graphs = onx_attribute_value(a, ONX_SLOT_GRAPHS, &count);
        if (a->slot == ONX_SLOT_G && a->g)
            ONX_TRY(onxi_graph_each_name(w->plan->cx, a->g, want_name, &m));
        for (uint32_t k = 0; graphs && k < count; k++)
            ONX_TRY(onxi_graph_each_name(w->plan->cx, graphs[k], want_name, &m));
    }
    return ONX_OK;
}

/* The nodes that this rank needs for its outputs and for other ranks; values that are only sent become outputs, so that
 * sessions do not drop them. */
static onx_status keep_needed(onxi_shard_writer *w)
{
    onxi_dict wanted = onxi_dict_in_arena(w->arena);
    bool *needed = ONXI_ARRAY(w->arena, bool, (size_t)w->node_count + 1);
    if (!needed)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < w->graph->output_count; i++)
        if (!onxi_dict_at(&wanted, onx_view(w->graph->output[i]->name), 0, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = w->node_count; i-- > 0;) {
        onx_node *n = w->node[i];
        bool read = false;
        for (uint32_t k = 0; k < n->output_count; k++)
            read |= onx_view(n->output[k]).len && onxi_dict_find(&wanted, onx_view(n->output[k]));
        needed[i] = read || is_collective(n);
        if (needed[i])
            ONX_TRY(want_inputs(w, n, &wanted));
        if (!needed[i] || read)
            continue;
        onx_value_info *out = ONX_ADD(w->arena, w->graph, output, VALUE_INFO);
        if (!out)
            return ONX_E_MEMORY;
        ONX_SET(value_info, out, name, n->output[0]);
    }
    uint32_t kept = 0;
    onxi_shard_halves *h = w->halves;
    for (uint32_t i = 0; i < w->graph->initializer_count; i++)
        if (onxi_dict_find(&wanted, onx_view(w->graph->initializer[i]->name)))
            w->graph->initializer[kept++] = w->graph->initializer[i];
    w->graph->initializer_count = kept;
    for (uint32_t i = kept = 0; i < w->node_count; i++)
        if (needed[i]) {
            onx_node *n = w->node[i];
            w->summary->nodes += !is_collective(n);
            if (h && n == h->end) {
                if (w->node[kept - 1] == h->begin) { /* nothing is computed meanwhile */
                    h->whole->output[0] = n->output[0];
                    n = h->whole;
                    kept--;
                }
                h = h->next;
            }
            w->node[kept++] = n;
        }
    w->graph->node = onxi_arena_array(w->arena, (size_t)onxi_list_room(kept), sizeof *w->node);
    if (!w->graph->node && kept)
        return ONX_E_MEMORY;
    if (kept)
        memcpy(w->graph->node, w->node, kept * sizeof *w->node);
    w->graph->node_count = kept;
    return ONX_OK;
}

static onx_status write_inputs(onxi_shard_writer *w)
{
    const onx_graph *g = w->plan->graph;
    for (uint32_t i = 0; i < w->plan->value_count; i++)
        if (w->plan->value[i].input) {
            const onxi_box box =
                onxi_placement_box(w->plan->everywhere, w->plan->value[i].dims, w->plan->value[i].rank, 0);
            onx_bytes name;
            ONX_TRY(onxi_shard_hold(w, i, &box, &name));
        }
    for (uint32_t i = 0; i < g->input_count; i++) {
        const uint32_t value = onxi_shard_value_find(w->plan, onx_view(g->input[i]->name));
        if (value == ONXI_SHARD_NONE || !w->plan->value[value].input)
            continue;
        onx_value_info **at = onx_list_insert(w->arena, (void **)&w->graph->input, &w->graph->input_count,
                                              w->graph->input_count, sizeof *at);
        if (!at)
            return ONX_E_MEMORY;
        *at = g->input[i];
    }
    return ONX_OK;
}

static onx_status write_outputs(onxi_shard_writer *w)
{
    const onx_graph *g = w->plan->graph;
    for (uint32_t i = 0; i < g->output_count && (!w->rank || w->plan->outputs_everywhere); i++) {
        const uint32_t value = onxi_shard_value_find(w->plan, onx_view(g->output[i]->name));
        onx_bytes name;
        ONX_TRY(onxi_shard_name_of(w, value, w->plan->outputs_everywhere ? w->plan->everywhere : w->plan->root, &name));
        onx_value_info *out = ONX_ADD(w->arena, w->graph, output, VALUE_INFO);
        if (!out)
            return ONX_E_MEMORY;
        *out = *g->output[i];
    }
    return ONX_OK;
}

static onx_status new_model(onxi_shard_writer *w)
{
    const onx_model *from = w->plan->model;
    onx_model *model = ONXI_NEW(w->arena, onx_model);
    onx_operator_set_id *domain = onx_message_new(w->arena, ONX_KIND_OPERATOR_SET_ID);
    if (!model || !domain || !(w->graph = onx_message_new(w->arena, ONX_KIND_GRAPH)))
        return ONX_E_MEMORY;
    *model = *from; /* parts that are not replaced are shared, and only read */
    model->training_info_count = model->configuration_count = 0;
    model->graph = w->graph;
    w->graph->name = w->plan->graph->name;
    w->graph->has |= onx_graph_has_name;
    ONX_TRY(onxi_model_raise_ir(w->arena, model, ONXI_IR_DEFAULTS)); /* initializers need not be inputs */
    model->opset_import =
        onxi_arena_array(w->arena, (size_t)onxi_list_room(from->opset_import_count + 1u), sizeof *model->opset_import);
    if (!model->opset_import)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < from->opset_import_count; i++)
        model->opset_import[i] = from->opset_import[i];
    model->opset_import[model->opset_import_count++] = domain;
    ONX_TRY(onx_arena_keep(w->arena, onx_str_of(ONXI_SHARD_DOMAIN), &domain->domain));
    domain->has |= onx_operator_set_id_has_domain;
    ONX_SET(operator_set_id, domain, version, 1);
    w->doc->root = model;
    return ONX_OK;
}

onx_status onxi_shard_write(onxi_shard_plan *plan, uint32_t rank, onx_doc *out, onx_shard_summary *summary)
{
    onxi_shard_writer w = {
        .plan = plan, .rank = rank, .devices = plan->placements.devices, .doc = out, .summary = summary
    };
    w.arena = onx_doc_arena(out);
    w.last_halves = &w.halves;
    w.held = (onxi_shard_held **)ONXI_ARRAY(w.arena, void *, (size_t)plan->value_count + 1);
    w.partial = ONXI_ARRAY(w.arena, onx_bytes, (size_t)plan->value_count + 1);
    *summary = (onx_shard_summary){ 0 };
    if (!w.held || !w.partial)
        return ONX_E_MEMORY;
    ONX_TRY(new_model(&w));
    ONX_TRY(write_inputs(&w));
    ONX_TRY(onxi_shard_write_steps(&w, write_node));
    ONX_TRY(write_outputs(&w));
    for (uint32_t i = 0; i < plan->graph->initializer_count; i++) {
        uint64_t count, size;
        if (onx_tensor_count(plan->graph->initializer[i], &count) &&
            onx_dtype_size(plan->graph->initializer[i]->data_type, count, &size))
            summary->whole_bytes += size;
    }
    return keep_needed(&w);
}
