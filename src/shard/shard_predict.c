/* shard_predict.c - predicts the time and memory of a plan on each device without running it: a clock per device
 * advances from step to step, and waits for messages. */
#include "shard/shard_spread.h"

#include "transform/transform.h"
#include "value/value.h"

/* An ordinary core, and others of the same machine. */
#define OPERATIONS_DEFAULT 5e10
#define BANDWIDTH_DEFAULT  1e10
#define LATENCY_DEFAULT    1e-5
#define LINK_DEFAULT       5e9
#define CACHE_DEFAULT      5e10
#define PASSES_DEFAULT     2
#define NODE_SECONDS       1e-6 /* overhead of a node */

typedef struct simulator {
    onxi_shard_plan *plan;
    onx_shard_machine machine;
    onx_shard_forecast *row; /* per device */
    uint64_t *held;          /* per device: bytes of available values */
    uint32_t devices;
} simulator;

static onx_shard_machine complete(onx_shard_machine m)
{
    m.operations = m.operations > 0 ? m.operations : OPERATIONS_DEFAULT;
    m.bandwidth = m.bandwidth > 0 ? m.bandwidth : BANDWIDTH_DEFAULT;
    m.latency = m.latency > 0 ? m.latency : LATENCY_DEFAULT;
    m.link = m.link > 0 ? m.link : LINK_DEFAULT;
    m.cache = m.cache > 0 ? m.cache : CACHE_DEFAULT;
    m.shared = m.shared > 0 ? m.shared : m.bandwidth;
    m.passes = m.passes > 0 ? m.passes : PASSES_DEFAULT;
    return m;
}

/* ---- memory ---- */

static uint64_t bytes_at(const simulator *m, uint32_t value, const onxi_placement *p, uint32_t device)
{
    const onxi_shard_value *v = &m->plan->value[value];
    if (!v->known || p->at[device] < 0)
        return 0;
    const onxi_box box = onxi_placement_box(p, v->dims, v->rank, (uint32_t)p->at[device]);
    return (uint64_t)onxi_box_count(&box, v->rank) * onxi_element_size(v->dtype);
}

/* Overlapping parts of several placements are counted for each placement. */
static void count_weights(simulator *m)
{
    for (uint32_t i = 0; i < m->plan->value_count; i++)
        for (const onxi_shard_version *at = m->plan->value[i].versions; m->plan->value[i].tensor && at; at = at->next)
            for (uint32_t d = 0; d < m->devices; d++)
                m->row[d].weight_bytes = onxi_shard_add(m->row[d].weight_bytes, bytes_at(m, i, at->placement, d));
}

static void note_use(const simulator *m, uint32_t value, const onxi_placement *p, uint32_t step)
{
    onxi_shard_version *v = value == ONXI_SHARD_NONE || !p ? NULL : onxi_shard_version_find(m->plan, value, p);
    if (v)
        v->last = step;
}

/* The last step that needs each value. */
static void note_uses(const simulator *m)
{
    for (uint32_t i = 0; i < m->plan->step_count; i++) {
        const onxi_shard_step *s = &m->plan->step[i];
        if (s->kind == ONXI_STEP_MOVE) {
            note_use(m, s->value, s->from, i);
            note_use(m, s->value, s->to, i);
        } else if (s->kind == ONXI_STEP_REDUCE)
            note_use(m, s->value, s->to, i);
        else {
            const onxi_shard_node *n = &m->plan->node[s->node];
            for (uint32_t k = 0; k < n->node->input_count + n->node->output_count; k++)
                note_use(m, n->inputs[k], s->in[k], i); /* outputs follow */
        }
    }
}

static void hold(simulator *m, uint32_t value, const onxi_placement *p)
{
    for (uint32_t d = 0; d < m->devices; d++) {
        m->held[d] = onxi_shard_add(m->held[d], bytes_at(m, value, p, d));
        if (m->held[d] > m->row[d].value_bytes)
            m->row[d].value_bytes = m->held[d];
    }
}

static void let_go(simulator *m, uint32_t value, const onxi_placement *p, uint32_t step)
{
    const onxi_shard_version *v = value == ONXI_SHARD_NONE || !p ? NULL : onxi_shard_version_find(m->plan, value, p);
    if (!v || v->last != step || m->plan->value[value].constant || m->plan->value[value].input)
        return;
    for (uint32_t d = 0; d < m->devices; d++) {
        const uint64_t bytes = bytes_at(m, value, p, d);
        m->held[d] -= bytes < m->held[d] ? bytes : m->held[d];
    }
}

/* ---- time ---- */

/* Weights are read from memory. A product with a single row waits for them; with many rows, arithmetic overlaps with
 * reading, but weights may have to be read again for the next rows: how often depends on the machine. Other values are
 * assumed to be in the cache. */
static double seconds_of(const onx_shard_machine *m, const onxi_shard_work *w, bool alone)
{
    const double bandwidth = alone ? m->bandwidth : m->shared;
    const double by_operations = w->operations / m->operations, by_bytes = (w->bytes - w->weights) / m->cache;
    const double passes = m->passes + (1 - m->passes) / w->rows;
    return NODE_SECONDS + passes * w->weights / bandwidth + (by_operations > by_bytes ? by_operations : by_bytes);
}

static void compute(simulator *m, uint32_t index)
{
    const onxi_shard_step *s = &m->plan->step[index];
    const onxi_shard_node *n = &m->plan->node[s->node];
    const uint32_t ins = n->node->input_count;
    double parts = 1;
    uint32_t take_part = 0, some = 0; /* a device that takes part: all have about the same work */
    if (n->constant)
        return;
    for (uint32_t i = 0; i < n->rule.dim_count; i++)
        parts *= s->assignment->shards[i];
    for (uint32_t d = 0; d < m->devices; d++)
        take_part += s->assignment->at[d] >= 0;
    while (some + 1 < m->devices && s->assignment->at[some] < 0)
        some++;
    const onxi_shard_work w = onxi_shard_work_at(m->plan, n, s->in, parts, some);
    const double seconds = seconds_of(&m->machine, &w, take_part == 1);
    for (uint32_t d = 0; d < m->devices; d++)
        if (s->assignment->at[d] >= 0) {
            m->row[d].nodes++;
            m->row[d].compute_seconds += seconds;
            m->row[d].seconds += seconds;
        }
    for (uint32_t i = ins; i < ins + n->node->output_count; i++)
        if (s->in[i])
            hold(m, n->inputs[i], s->in[i]);
    for (uint32_t i = 0; i < ins + n->node->output_count; i++)
        let_go(m, n->inputs[i], s->in[i], index);
}

/* Advances the clock of a device to `ready`, and then by `messages` of `bytes` in total. */
static void communicate(simulator *m, uint32_t device, double ready, double messages, double bytes)
{
    onx_shard_forecast *r = &m->row[device];
    const double begin = r->seconds;
    r->seconds = (ready > begin ? ready : begin) + messages * m->machine.latency + bytes / m->machine.link;
    r->wait_seconds += r->seconds - begin;
    r->collectives++;
}

/* The time when the last of these devices is ready. */
static double latest(const simulator *m, const int32_t *at)
{
    double last = 0;
    for (uint32_t d = 0; d < m->devices; d++)
        if (at[d] >= 0 && m->row[d].seconds > last)
            last = m->row[d].seconds;
    return last;
}

static void move(simulator *m, uint32_t index)
{
    const onxi_shard_step *s = &m->plan->step[index];
    const onxi_shard_value *v = &m->plan->value[s->value];
    const double ready = latest(m, s->from->at);
    uint64_t all = 0;
    uint32_t senders = 0;
    for (uint32_t d = 0; d < m->devices; d++) {
        onxi_box part;
        uint64_t bytes = bytes_at(m, s->value, s->to, d);
        bool own = false;
        senders += s->from->at[d] >= 0;
        if (bytes && s->from->at[d] >= 0) {
            const onxi_box have = onxi_placement_box(s->from, v->dims, v->rank, (uint32_t)s->from->at[d]);
            const onxi_box want = onxi_placement_box(s->to, v->dims, v->rank, (uint32_t)s->to->at[d]);
            own = onxi_box_meet(&have, &want, v->rank, &part);
            bytes -= own ? (uint64_t)onxi_box_count(&part, v->rank) * onxi_element_size(v->dtype) : 0;
        }
        if (!bytes)
            continue;
        /* Number of shards that intersect the required one. */
        const uint32_t sources = s->from->shards > s->to->shards ? s->from->shards / s->to->shards : 1;
        all = onxi_shard_add(all, bytes);
        m->row[d].receive_bytes = onxi_shard_add(m->row[d].receive_bytes, bytes);
        communicate(m, d, ready, sources > own ? sources - own : 1, (double)bytes);
    }
    for (uint32_t d = 0; d < m->devices && all; d++)
        if (s->from->at[d] >= 0 && s->to->at[d] < 0) /* it sends, and receives nothing */
            communicate(m, d, 0, 1, (double)all / senders);
    hold(m, s->value, s->to);
    let_go(m, s->value, s->from, index);
    let_go(m, s->value, s->to, index);
}

/* Each device with a part adds up a share of the elements, and sends it to the others; or each adds up everything. */
static void reduce(simulator *m, uint32_t index)
{
    const onxi_shard_step *s = &m->plan->step[index];
    const onxi_shard_node *n = &m->plan->node[s->node];
    const double ready = latest(m, s->assignment->at);
    uint64_t parts = 1;
    for (uint32_t i = 0; i < n->rule.dim_count; i++)
        if (n->rule.dim[i].kind != ONXI_SHARD_PARALLEL)
            parts *= s->assignment->shards[i];
    for (uint32_t d = 0; d < m->devices; d++) {
        const uint64_t whole = bytes_at(m, s->value, s->to, d), bytes = onxi_shard_sum_bytes(parts, whole);
        if (!whole)
            continue;
        m->row[d].receive_bytes = onxi_shard_add(m->row[d].receive_bytes, bytes);
        communicate(m, d, ready, (onxi_shard_adds_alone(parts, whole) ? 1 : 2) * ((double)parts - 1), (double)bytes);
    }
}

static void simulate(simulator *m)
{
    note_uses(m);
    count_weights(m);
    for (uint32_t i = 0; i < m->plan->step_count; i++)
        switch (m->plan->step[i].kind) {
        case ONXI_STEP_NODE:
            compute(m, i);
            break;
        case ONXI_STEP_MOVE:
            move(m, i);
            break;
        case ONXI_STEP_REDUCE:
            reduce(m, i);
            break;
        }
}

/* ---- the whole prediction ---- */

static onx_status find_devices(onx_ctx *cx, const onx_model *model, onx_str name, const onx_device_configuration **out)
{
    *out = NULL;
    for (uint32_t i = 0; i < model->configuration_count; i++)
        if (onx_str_equal(onx_view(model->configuration[i]->name), name))
            *out = model->configuration[i];
    if (!*out)
        return onxi_fail(cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no device configuration \"%.*s\"",
                         ONX_ARG(name));
    if ((*out)->num_devices < 1 || (*out)->num_devices > ONXI_SHARD_DEVICES_MAX)
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "a configuration has 1 to %d devices, not %d",
                         ONXI_SHARD_DEVICES_MAX, (*out)->num_devices);
    return ONX_OK;
}

/* The empty name stands for a single device without annotations. */
static onx_status plan_for(onx_ctx *cx, onx_doc *whole, onx_arena *arena, const onx_shard_predict_options *o,
                           onxi_shard_plan *plan)
{
    static const onx_device_configuration alone = { .num_devices = 1 };
    const onx_device_configuration *c = &alone;
    if (o->configuration.len)
        ONX_TRY(find_devices(cx, onx_doc_model(whole), o->configuration, &c));
    if (o->count < (uint32_t)c->num_devices)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "there is room for %u devices, and there are %d", o->count,
                         c->num_devices);
    ONX_TRY(onx_doc_sort(whole, NULL));
    if (onx_doc_model(whole)->functions_count)
        ONX_TRY(onx_inline(cx, whole, NULL));
    ONX_TRY(onxi_spread_fix(whole, arena, o->fixed, o->fixed_count, o->batch));
    *plan = (onxi_shard_plan){ .cx = cx, .doc = whole, .arena = arena, .configuration = c };
    plan->model = onx_doc_model(whole);
    plan->graph = plan->model->graph;
    plan->placements = (onxi_placements){ arena, (uint32_t)c->num_devices, NULL };
    return onxi_shard_plan_make(plan);
}

static onx_status predict(onx_ctx *cx, onx_doc *whole, onx_arena *arena, const onx_shard_predict_options *o,
                          onx_shard_forecast *out)
{
    onxi_shard_plan plan;
    ONX_TRY(plan_for(cx, whole, arena, o, &plan));
    simulator m = { .plan = &plan, .machine = complete(o->machine), .row = out, .devices = plan.placements.devices };
    memset(out, 0, m.devices * sizeof *out);
    m.held = ONXI_ARRAY(arena, uint64_t, m.devices);
    if (!m.held)
        return ONX_E_MEMORY;
    simulate(&m);
    return ONX_OK;
}

static onx_status predict_with(onx_ctx *cx, const onx_doc *doc, const onx_shard_predict_options *o,
                               onx_shard_forecast *out)
{
    onx_arena *arena;
    onx_doc *whole;
    ONX_TRY(onxi_doc_need_graph(cx, doc));
    ONX_TRY(onx_doc_share(cx, doc, &whole));
    onx_status status = onx_arena_new(cx, &arena);
    if (status == ONX_OK) {
        status = predict(cx, whole, arena, o, out);
        onx_arena_free(arena);
    }
    onx_doc_free(whole);
    return status;
}

onx_status onx_shard_predict(onx_ctx *cx, const onx_doc *doc, const onx_shard_predict_options *options,
                             onx_shard_forecast *devices)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_NEED(cx, options);
    ONXI_NEED(cx, devices);
    ONXI_OPTIONS(cx, onx_shard_predict_options, own, options);
    ONXI_NEED(cx, own.fixed || !own.fixed_count);
    ONXI_CALL(cx, predict_with(cx, doc, &own, devices));
}
