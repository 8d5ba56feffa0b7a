/* shard_plan.c - the plan: each node is split as its annotations require, or otherwise in the way that costs the least
 * communication, and values are moved to where they are needed. All ranks compute the same plan. */
#include "shard/shard.h"

#include "value/value.h"

/* ---- the split of a node, under construction ---- */

typedef struct builder {
    onxi_shard_plan *plan;
    const onxi_shard_node *node;
    uint32_t shards[ONXI_SHARD_DIMS];
    uint32_t *part; /* per dimension and device */
    bool *on;       /* per device: it takes part */
    bool *seen;     /* scratch: combinations of parts */
} builder;

/* There is one builder: an assignment is finished before the next node is processed. */
static onx_status open_builder(onxi_shard_plan *plan, const onxi_shard_node *node, builder *b)
{
    const uint32_t devices = plan->placements.devices;
    *b = (builder){ .plan = plan, .node = node };
    if (!plan->part && !(plan->part = ONXI_ARRAY(plan->arena, uint32_t, (size_t)ONXI_SHARD_DIMS * devices)))
        return ONX_E_MEMORY;
    if (!plan->on && !(plan->on = ONXI_ARRAY(plan->arena, bool, 2 * (size_t)devices)))
        return ONX_E_MEMORY;
    b->part = plan->part;
    b->on = plan->on;
    b->seen = plan->on + devices;
    memset(b->on, 0, devices * sizeof *b->on);
    return ONX_OK;
}

static void start(builder *b)
{
    for (uint32_t i = 0; i < ONXI_SHARD_DIMS; i++)
        b->shards[i] = 1;
}

static void take_devices(builder *b, const onxi_placement *p)
{
    for (uint32_t d = 0; d < b->plan->placements.devices; d++)
        b->on[d] = p->at[d] >= 0;
}

static uint32_t index_of(const builder *b, uint32_t device)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < b->node->rule.dim_count; i++)
        index = index * b->shards[i] + (b->shards[i] > 1 ? b->part[i * b->plan->placements.devices + device] : 0);
    return index;
}

/* Is every combination of parts on some device? */
static bool is_complete(const builder *b)
{
    const uint32_t devices = b->plan->placements.devices;
    uint64_t all = 1, found = 0;
    for (uint32_t i = 0; i < b->node->rule.dim_count; i++)
        if (!onxi_mul_u64(all, b->shards[i], &all) || all > devices)
            return false;
    memset(b->seen, 0, devices * sizeof *b->seen);
    for (uint32_t d = 0; d < devices; d++)
        if (b->on[d] && !b->seen[index_of(b, d)]) {
            b->seen[index_of(b, d)] = true;
            found++;
        }
    return found == all;
}

static bool part_of_axis(const onxi_placement *p, uint32_t axis_index, uint32_t device, uint32_t *out)
{
    uint32_t index;
    if (p->at[device] < 0)
        return false;
    index = (uint32_t)p->at[device];
    for (uint32_t i = p->axis_count; i-- > axis_index + 1;)
        index /= p->count[i];
    *out = index % p->count[axis_index];
    return true;
}

/* Splits a dimension in the same way as an axis of an operand; false if that contradicts the existing splits. */
static bool split_dim(builder *b, uint32_t dim, const onxi_placement *p, uint32_t axis_index)
{
    const onxi_shard_dim *d = &b->node->rule.dim[dim];
    const uint32_t devices = b->plan->placements.devices, count = p->count[axis_index], old = b->shards[dim];
    if ((old > 1 && old != count) || (d->unit && d->unit % count) || d->size < count)
        return false;
    for (uint32_t i = 0; i < devices; i++) {
        uint32_t part = 0;
        if (b->on[i] && (!part_of_axis(p, axis_index, i, &part) || (old > 1 && b->part[dim * devices + i] != part)))
            return false;
    }
    for (uint32_t i = 0; i < devices && old == 1; i++)
        (void)part_of_axis(p, axis_index, i, &b->part[dim * devices + i]);
    b->shards[dim] = count;
    if (is_complete(b))
        return true;
    b->shards[dim] = old;
    return false;
}

/* Splits the node according to the placement of an operand, as far as possible; false if not completely. */
static bool include(builder *b, uint32_t operand, const onxi_placement *p)
{
    bool all = true;
    for (uint32_t i = 0; i < p->axis_count; i++) {
        const int8_t dim = p->axis[i] < ONXI_SHARD_RANK ? b->node->rule.map[operand][p->axis[i]] : -1;
        all &= dim >= 0 && split_dim(b, (uint32_t)dim, p, i);
    }
    return all;
}

static onx_status finish(const builder *b, const onxi_assignment **out)
{
    const uint32_t devices = b->plan->placements.devices;
    int32_t *at = b->plan->scratch;
    for (uint32_t d = 0; d < devices; d++)
        at[d] = b->on[d] ? (int32_t)index_of(b, d) : -1;
    const onxi_assignment *last = b->plan->assignment; /* consecutive nodes often have the same placement */
    if (last && memcmp(last->shards, b->shards, sizeof b->shards) == 0 &&
        memcmp(last->at, at, devices * sizeof *at) == 0) {
        *out = last;
        return ONX_OK;
    }
    onxi_assignment *a = ONXI_NEW(b->plan->arena, onxi_assignment);
    if (!a || !(at = ONXI_ARRAY(b->plan->arena, int32_t, devices)))
        return ONX_E_MEMORY;
    memcpy(at, b->plan->scratch, devices * sizeof *at);
    memcpy(a->shards, b->shards, sizeof a->shards);
    a->at = at;
    *out = b->plan->assignment = a;
    return ONX_OK;
}

uint32_t onxi_shard_part(const onxi_shard_rule *rule, const onxi_assignment *a, uint32_t device, uint32_t dim)
{
    uint32_t index = (uint32_t)a->at[device];
    for (uint32_t i = rule->dim_count; i-- > dim + 1;)
        index /= a->shards[i];
    return index % a->shards[dim];
}

uint32_t onxi_shard_reduced_part(const onxi_shard_rule *rule, const onxi_assignment *a, uint32_t device)
{
    uint32_t part = 0;
    for (uint32_t i = 0; i < rule->dim_count; i++)
        if (rule->dim[i].kind != ONXI_SHARD_PARALLEL)
            part = part * a->shards[i] + onxi_shard_part(rule, a, device, i);
    return part;
}

bool onxi_shard_is_partial(const onxi_shard_rule *rule, const onxi_assignment *a)
{
    for (uint32_t i = 0; i < rule->dim_count; i++)
        if (rule->dim[i].kind != ONXI_SHARD_PARALLEL && a->shards[i] > 1)
            return true;
    return false;
}

const onxi_placement *onxi_shard_project(onxi_shard_plan *plan, const onxi_shard_node *n, const onxi_assignment *a,
                                         uint32_t operand)
{
    uint32_t axes = 0, axis[ONXI_SHARD_RANK], count[ONXI_SHARD_RANK], dims[ONXI_SHARD_RANK];
    int32_t *const at = plan->scratch;
    for (uint32_t k = 0; k < ONXI_SHARD_RANK; k++) {
        const int8_t dim = n->rule.map[operand][k];
        if (dim < 0 || a->shards[dim] < 2)
            continue;
        axis[axes] = k;
        dims[axes] = (uint32_t)dim;
        count[axes++] = a->shards[dim];
    }
    for (uint32_t d = 0; d < plan->placements.devices; d++) {
        at[d] = a->at[d] < 0 ? -1 : 0;
        for (uint32_t i = 0; i < axes && at[d] >= 0; i++)
            at[d] = at[d] * (int32_t)count[i] + (int32_t)onxi_shard_part(&n->rule, a, d, dims[i]);
    }
    return onxi_placement_make(&plan->placements, axes, axis, count, at);
}

/* ---- versions and steps ---- */

static onx_status add_step(onxi_shard_plan *plan, onxi_shard_step step)
{
    if (!ONXI_GROW_IN(plan->arena, plan->step, plan->step_room, (uint64_t)plan->step_count + 1))
        return ONX_E_MEMORY;
    plan->step[plan->step_count++] = step;
    return ONX_OK;
}

static onxi_shard_version *find_version(const onxi_shard_value *v, const onxi_placement *p)
{
    onxi_shard_version *at = v->versions;
    while (at && at->placement != p)
        at = at->next;
    return at;
}

static bool has_version(const onxi_shard_value *v, const onxi_placement *p)
{
    return find_version(v, p) != NULL;
}

onxi_shard_version *onxi_shard_version_find(const onxi_shard_plan *plan, uint32_t value, const onxi_placement *p)
{
    return find_version(&plan->value[value], p);
}

static onx_status add_version(onxi_shard_plan *plan, uint32_t value, const onxi_placement *p)
{
    onxi_shard_version *version = ONXI_NEW(plan->arena, onxi_shard_version);
    if (!version || !p)
        return ONX_E_MEMORY;
    *version = (onxi_shard_version){ plan->value[value].versions, p, plan->version_count++, 0 };
    plan->value[value].versions = version;
    return ONX_OK;
}

static uint64_t bytes_of(const onxi_shard_value *v, uint64_t elements)
{
    return elements * onxi_element_size(v->dtype);
}

/* The version from which the transfer is the cheapest; NULL if there is none. */
static const onxi_placement *nearest(const onxi_shard_plan *plan, const onxi_shard_value *v, const onxi_placement *to,
                                     uint64_t *cost)
{
    const onxi_placement *best = NULL;
    *cost = 0;
    for (const onxi_shard_version *at = v->versions; at; at = at->next) {
        const uint64_t c = bytes_of(v, onxi_placement_cost(&plan->placements, at->placement, to, v->dims, v->rank));
        if (!best || c < *cost) {
            best = at->placement;
            *cost = c;
        }
    }
    return best;
}

static onx_status put_node(onxi_shard_plan *plan, uint32_t node, const onxi_assignment *a);

/* Values that depend on constants only are computed in the placement that is needed. */
static onx_status make_constant(onxi_shard_plan *plan, uint32_t value, const onxi_placement *to)
{
    const uint32_t node = plan->value[value].node;
    const onxi_shard_node *n = &plan->node[node];
    const onxi_assignment *a;
    builder b;
    uint32_t output = 0;
    ONX_TRY(open_builder(plan, n, &b));
    while (n->outputs[output] != value)
        output++;
    start(&b);
    take_devices(&b, to);
    (void)include(&b, n->node->input_count + output, to);
    ONX_TRY(finish(&b, &a));
    return put_node(plan, node, a);
}

static onx_status demand(onxi_shard_plan *plan, uint32_t value, const onxi_placement *to)
{
    uint64_t cost;
    onxi_shard_value *v = &plan->value[value];
    if (!to)
        return ONX_E_MEMORY;
    if (has_version(v, to))
        return ONX_OK;
    if (v->tensor || v->sparse) /* each rank reads the part that it needs */
        return add_version(plan, value, to);
    if (v->constant)
        ONX_TRY(make_constant(plan, value, to));
    v = &plan->value[value];
    if (has_version(v, to))
        return ONX_OK;
    const onxi_placement *from = nearest(plan, v, to, &cost);
    if (!from)
        return onxi_fail(plan->cx, ONX_E_INVALID, ONXI_NOWHERE, "the value \"%.*s\" is read before it is made",
                         ONX_ARG(v->name));
    ONX_TRY(add_step(plan, (onxi_shard_step){ .kind = ONXI_STEP_MOVE, .value = value, .from = from, .to = to }));
    return add_version(plan, value, to);
}

/* Combines partial results in the placement that results from the split, or as an annotation requires. */
static onx_status put_output(onxi_shard_plan *plan, uint32_t node, const onxi_assignment *a, uint32_t output,
                             const onxi_placement *made)
{
    const onxi_shard_node *n = &plan->node[node];
    const uint32_t value = n->outputs[output];
    if (onxi_shard_is_partial(&n->rule, a))
        ONX_TRY(add_step(plan, (onxi_shard_step){ .kind = ONXI_STEP_REDUCE,
                                                  .node = node,
                                                  .assignment = a,
                                                  .value = value,
                                                  .output = output,
                                                  .to = made }));
    return has_version(&plan->value[value], made) ? ONX_OK : add_version(plan, value, made);
}

/* The whole value on the devices that take part. NULL when out of memory. */
static const onxi_placement *whole_where(onxi_shard_plan *plan, const onxi_assignment *a)
{
    for (uint32_t d = 0; d < plan->placements.devices; d++)
        plan->scratch[d] = a->at[d] < 0 ? -1 : 0;
    return onxi_placement_make(&plan->placements, 0, NULL, NULL, plan->scratch);
}

static onx_status put_node(onxi_shard_plan *plan, uint32_t node, const onxi_assignment *a)
{
    const onxi_shard_node *n = &plan->node[node];
    const uint32_t ins = n->node->input_count, outs = n->node->output_count;
    onxi_shard_step step = { .kind = ONXI_STEP_NODE, .node = node, .assignment = a };
    step.in = (const onxi_placement **)ONXI_ARRAY(plan->arena, void *, (size_t)ins + outs + 1);
    if (!step.in)
        return ONX_E_MEMORY;
    step.out = step.in + ins;
    for (uint32_t i = 0; i < ins; i++) {
        if (n->inputs[i] == ONXI_SHARD_NONE || (int32_t)i == n->rule.unread)
            continue;
        step.in[i] = onxi_shard_project(plan, n, a, i);
        ONX_TRY(demand(plan, n->inputs[i], step.in[i]));
    }
    const onxi_placement *whole = n->captured_count ? whole_where(plan, a) : NULL;
    for (uint32_t i = 0; i < n->captured_count; i++)
        ONX_TRY(demand(plan, n->captured[i], whole));
    for (uint32_t i = 0; i < outs; i++)
        if (n->outputs[i] != ONXI_SHARD_NONE && !(step.out[i] = onxi_shard_project(plan, n, a, ins + i)))
            return ONX_E_MEMORY;
    ONX_TRY(add_step(plan, step));
    for (uint32_t i = 0; i < outs; i++)
        if (n->outputs[i] != ONXI_SHARD_NONE)
            ONX_TRY(put_output(plan, node, a, i, step.out[i]));
    return ONX_OK;
}

/* ---- choosing a split ---- */

/* Records the first operand index of each value, so that nodes with many operands and annotations take linear time. */
static void note_operands(onxi_shard_plan *plan, const onxi_shard_node *n)
{
    for (uint32_t i = n->node->input_count + n->node->output_count; i-- > 0;)
        if (n->inputs[i] != ONXI_SHARD_NONE) /* outputs follow */
            plan->operand[n->inputs[i]] = i;
}

static uint32_t operand_of(const onxi_shard_plan *plan, const onxi_shard_node *n, onx_str name)
{
    const uint32_t value = onxi_shard_value_find(plan, name);
    const uint32_t i = value == ONXI_SHARD_NONE ? 0 : plan->operand[value];
    const bool is = i < n->node->input_count + n->node->output_count && n->inputs[i] == value;
    return is && value != ONXI_SHARD_NONE ? i : ONXI_SHARD_NONE;
}

/* The placements that a node's annotations require for its operands. */
static onx_status read_specs(onxi_shard_plan *plan, uint32_t node, const onxi_placement **said, bool *on, bool *any)
{
    const onxi_shard_node *n = &plan->node[node];
    *any = false;
    note_operands(plan, n);
    for (uint32_t i = 0; i < n->device->sharding_spec_count; i++) {
        const onx_sharding_spec *spec = n->device->sharding_spec[i];
        const uint32_t operand = operand_of(plan, n, onx_view(spec->tensor_name));
        const onxi_placement *p = NULL;
        if (operand == ONXI_SHARD_NONE) {
            ONX_TRY(onxi_shard_note(plan, node, "\"%.*s\" is not an input or output of the node",
                                    ONX_ARG(onx_view(spec->tensor_name))));
            continue;
        }
        const uint32_t value = n->inputs[operand]; /* outputs follow */
        ONX_TRY(onxi_shard_spec_read(plan, node, spec, value == ONXI_SHARD_NONE ? NULL : &plan->value[value], &p));
        if (!p || said[operand])
            continue;
        said[operand] = p;
        *any = true;
        for (uint32_t d = 0; d < plan->placements.devices; d++)
            on[d] |= p->at[d] >= 0;
    }
    return ONX_OK;
}

/* Stages share the devices evenly. */
static void take_stage(const onxi_shard_plan *plan, int64_t stage, bool *on)
{
    const uint64_t devices = plan->placements.devices, stages = plan->stage_count;
    uint64_t at = 0;
    while (at + 1 < stages && plan->stages[at] != stage)
        at++;
    const uint64_t first = at * devices / stages, last = (at + 1) * devices / stages;
    for (uint64_t d = first; d < (last > first ? last : first + 1); d++)
        on[d] = true;
}

/* The placement of an input: that of the latest version. */
static const onxi_placement *current(const onxi_shard_plan *plan, uint32_t value)
{
    const onxi_shard_value *v = value == ONXI_SHARD_NONE ? NULL : &plan->value[value];
    return v && !v->constant && v->known && v->versions ? v->versions->placement : NULL;
}

static void include_inputs(builder *b, const onxi_placement *const *said)
{
    for (uint32_t i = 0; i < b->node->node->input_count; i++) {
        const onxi_placement *p = said && said[i] ? NULL : current(b->plan, b->node->inputs[i]);
        if (p && (int32_t)i != b->node->rule.unread)
            (void)include(b, i, p);
    }
}

/* After a node was split according to its annotations: moves outputs to the placements that the annotations require. */
static onx_status move_outputs(onxi_shard_plan *plan, uint32_t node, const onxi_placement *const *said)
{
    const onxi_shard_node *n = &plan->node[node];
    for (uint32_t i = 0; i < n->node->output_count; i++)
        if (said[n->node->input_count + i] && n->outputs[i] != ONXI_SHARD_NONE && plan->value[n->outputs[i]].known)
            ONX_TRY(demand(plan, n->outputs[i], said[n->node->input_count + i]));
    return ONX_OK;
}

static onx_status place_annotated(onxi_shard_plan *plan, uint32_t node, bool *done)
{
    const onxi_shard_node *n = &plan->node[node];
    const uint32_t operands = n->node->input_count + n->node->output_count;
    const onxi_placement **said = (const onxi_placement **)ONXI_ARRAY(plan->arena, void *, (size_t)operands + 1);
    const onxi_assignment *a;
    builder b;
    ONX_TRY(said ? open_builder(plan, n, &b) : ONX_E_MEMORY);
    ONX_TRY(read_specs(plan, node, said, b.on, done));
    if (!*done && ONX_HAS(node_device_configuration, n->device, pipeline_stage)) {
        take_stage(plan, n->device->pipeline_stage, b.on);
        *done = true;
    }
    if (!*done)
        return ONX_OK;
    start(&b);
    for (uint32_t i = 0; i < operands; i++)
        if (said[i] && !include(&b, i, said[i]) && i < n->node->input_count)
            ONX_TRY(
                onxi_shard_note(plan, node, "input %u is put together first, as the node cannot be split like it", i));
    include_inputs(&b, said);
    ONX_TRY(finish(&b, &a));
    ONX_TRY(put_node(plan, node, a));
    return move_outputs(plan, node, said);
}

/* Bytes that are exchanged if the node is split in this way. */
static onx_status cost_of(onxi_shard_plan *plan, const onxi_shard_node *n, const onxi_assignment *a, uint64_t *out)
{
    const uint32_t ins = n->node->input_count;
    *out = 0;
    for (uint32_t i = 0; i < ins; i++) {
        uint64_t cost = 0;
        if (n->inputs[i] == ONXI_SHARD_NONE || plan->value[n->inputs[i]].constant || (int32_t)i == n->rule.unread)
            continue;
        const onxi_placement *to = onxi_shard_project(plan, n, a, i);
        if (!to)
            return ONX_E_MEMORY;
        (void)nearest(plan, &plan->value[n->inputs[i]], to, &cost);
        *out = onxi_shard_add(*out, cost);
    }
    for (uint32_t i = 0; i < n->node->output_count; i++) {
        if (n->outputs[i] == ONXI_SHARD_NONE)
            continue;
        const onxi_placement *made = onxi_shard_project(plan, n, a, ins + i);
        const onxi_shard_value *v = &plan->value[n->outputs[i]];
        if (!made)
            return ONX_E_MEMORY;
        uint64_t elements = 0;
        for (uint32_t d = 0; d < plan->placements.devices; d++)
            if (made->at[d] >= 0) {
                const onxi_box box = onxi_placement_box(made, v->dims, v->rank, (uint32_t)made->at[d]);
                elements += (uint64_t)onxi_box_count(&box, v->rank);
            }
        /* Of two splits with the same communication, takes the one with less computation per device. */
        *out = onxi_shard_add(*out, onxi_shard_is_partial(&n->rule, a) ? 2 * bytes_of(v, elements) : 0);
        *out = onxi_shard_add(*out, v->known ? bytes_of(v, elements) / 1024 : 0);
    }
    return ONX_OK;
}

typedef struct choice {
    const onxi_assignment *best;
    uint64_t cost;
} choice;

static onx_status consider(builder *b, choice *c)
{
    const onxi_assignment *a;
    uint64_t cost;
    ONX_TRY(finish(b, &a));
    ONX_TRY(cost_of(b->plan, b->node, a, &cost));
    if (!c->best || cost < c->cost) {
        c->best = a;
        c->cost = cost;
    }
    return ONX_OK;
}

/* Runs the whole node on device `first` only, or on all devices. */
static bool must_be_whole(const onxi_shard_plan *plan, const onxi_shard_node *n, bool *alone)
{
    bool known = true;
    *alone = n->bound->schema && n->bound->schema->flags & ONXI_OP_NONDETERMINISTIC;
    for (uint32_t i = 0; i < n->node->output_count; i++)
        known &= n->outputs[i] == ONXI_SHARD_NONE || plan->value[n->outputs[i]].known;
    for (uint32_t i = 0; i < n->node->input_count; i++)
        known &= n->inputs[i] == ONXI_SHARD_NONE || plan->value[n->inputs[i]].known ||
                 plan->value[n->inputs[i]].constant || plan->value[n->inputs[i]].input;
    *alone = *alone && known;
    return *alone || !known;
}

static onx_status place_whole(onxi_shard_plan *plan, uint32_t node, bool alone)
{
    const onxi_assignment *a;
    builder b;
    ONX_TRY(open_builder(plan, &plan->node[node], &b));
    start(&b);
    take_devices(&b, alone ? plan->root : plan->everywhere);
    ONX_TRY(finish(&b, &a));
    return put_node(plan, node, a);
}

static onx_status place_free(onxi_shard_plan *plan, uint32_t node)
{
    enum { INPUTS_MOST = 8 };
    const onxi_shard_node *n = &plan->node[node];
    choice c = { 0 };
    builder b;
    ONX_TRY(open_builder(plan, n, &b));
    for (uint32_t i = 0, tried = 0; i < n->node->input_count && tried < INPUTS_MOST; i++) {
        const onxi_placement *p = (int32_t)i == n->rule.unread ? NULL : current(plan, n->inputs[i]);
        if (!p)
            continue;
        tried++;
        take_devices(&b, p);
        start(&b);
        (void)include(&b, i, p);
        include_inputs(&b, NULL);
        ONX_TRY(consider(&b, &c));
        start(&b);
        ONX_TRY(consider(&b, &c));
    }
    if (!c.best)
        return place_whole(plan, node, false);
    return put_node(plan, node, c.best);
}

static onx_status place(onxi_shard_plan *plan, uint32_t node)
{
    const onxi_shard_node *n = &plan->node[node];
    bool alone, done = false;
    if (must_be_whole(plan, n, &alone)) {
        if (n->device && n->device->sharding_spec_count)
            ONX_TRY(onxi_shard_note(plan, node, "the node is not split, as it is random or shapes are not known"));
        return place_whole(plan, node, alone);
    }
    if (n->device)
        ONX_TRY(place_annotated(plan, node, &done));
    if (done || n->constant)
        return ONX_OK;
    return place_free(plan, node);
}

onx_status onxi_shard_plan_make(onxi_shard_plan *plan)
{
    bool *first = ONXI_ARRAY(plan->arena, bool, plan->placements.devices);
    plan->scratch = ONXI_ARRAY(plan->arena, int32_t, plan->placements.devices);
    if (!first || !plan->scratch)
        return ONX_E_MEMORY;
    first[0] = true;
    plan->everywhere = onxi_placement_whole(&plan->placements, NULL);
    plan->root = onxi_placement_whole(&plan->placements, first);
    if (!plan->everywhere || !plan->root)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_shard_read(plan));
    plan->operand = ONXI_ARRAY(plan->arena, uint32_t, plan->value_count + 1u);
    if (!plan->operand)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < plan->value_count; i++)
        if (plan->value[i].input)
            ONX_TRY(add_version(plan, i, plan->everywhere));
    for (uint32_t i = 0; i < plan->node_count; i++)
        if (plan->node[i].live)
            ONX_TRY(place(plan, i));
    for (uint32_t i = 0; i < plan->graph->output_count; i++) {
        const uint32_t value = onxi_shard_value_find(plan, onx_view(plan->graph->output[i]->name));
        const onxi_shard_value *v = &plan->value[value];
        const bool there = !v->constant && v->versions && v->versions->placement == plan->everywhere;
        ONX_TRY(demand(plan, value, there || plan->outputs_everywhere ? plan->everywhere : plan->root));
    }
    return onxi_shard_order(plan);
}
