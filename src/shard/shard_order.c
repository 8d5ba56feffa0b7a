/* shard_order.c - the order of a plan's steps, chosen to overlap communication with computation. Steps are listed in a
 * new order: values are sent as soon as they are computed, and if the next step of the old order would wait for a
 * value, the first step that would not is moved before it, as far as memory allows. The simulated clock counts whole
 * nanoseconds, so that all ranks compute the same order. */
#include "shard/shard_rules.h"

#include "value/value.h"

enum {
    WINDOW = 256,   /* number of units of the old order that others may overtake */
    NODE_NS = 1000, /* minimum time of a node */
    OPERATIONS_PER_NS = 50,
    WEIGHTS_PER_NS = 10,  /* bytes; weights are read from memory */
    VALUES_PER_NS = 50,   /* bytes; values are cached */
    LATENCY_NS = 1000000, /* a high estimate; that costs little, because all steps are executed anyway */
    LINK_PER_NS = 1
};

/* A unit that is not divided: a node with the reductions of its partial results and with following nodes that use only
 * its results, which may become one step of a session; or a move. */
typedef struct unit {
    uint32_t first, last;          /* range of steps */
    uint32_t key;                  /* priority among the units that can be executed */
    uint32_t waits;                /* for this number of other units */
    uint32_t next;                 /* units that depend on it, a list of edges */
    uint32_t read, made, made_end; /* ranges of versions in the list */
    uint64_t ns;
    uint64_t made_bytes; /* of its results */
    int64_t kept;        /* increase of memory after it compared with before, in the actual order */
    uint64_t old_held;   /* memory held while it is executed in the old order */
    uint64_t arrival;    /* when its inputs have arrived */
    bool moves, done;
} unit;

typedef struct edge {
    uint32_t to, next;
} edge;

typedef struct version {
    uint32_t maker; /* the unit that computes it; ONXI_SHARD_NONE: available from the start */
    uint32_t readers, left;
    uint64_t bytes; /* on all devices */
    uint64_t one;   /* on one device */
    uint64_t arrival;
    bool constant;
} version;

typedef struct heap {
    uint32_t *unit;
    uint32_t count;
    bool by_arrival;
} heap;

typedef struct orderer {
    onxi_shard_plan *plan;
    unit *unit;
    uint32_t unit_count;
    version *version;
    uint32_t *list; /* versions that units read and compute */
    uint64_t list_count, list_room;
    edge *edge;
    uint64_t edge_count, edge_room;
    heap ready, later; /* units whose inputs are available; units whose inputs are in transit */
    uint32_t *transit; /* versions in order of arrival */
    uint32_t transit_first, transit_count;
    uint64_t now, link;  /* until when the link is busy */
    uint64_t held, most; /* bytes of values; the maximum at any time of the old order */
    uint64_t in_transit;
    int64_t ahead; /* bytes of values that are available earlier than in the old order */
    uint32_t base; /* the first unit of the old order that is not done */
    onxi_shard_step *step;
    uint32_t step_count;
} orderer;

/* ---- building units ---- */

static onx_status add_to_list(orderer *o, uint32_t id)
{
    if (!ONXI_GROW_IN(o->plan->arena, o->list, o->list_room, o->list_count + 1))
        return ONX_E_MEMORY;
    o->list[o->list_count++] = id;
    return ONX_OK;
}

static onx_status add_edge(orderer *o, uint32_t from, uint32_t to)
{
    if (!ONXI_GROW_IN(o->plan->arena, o->edge, o->edge_room, o->edge_count + 1))
        return ONX_E_MEMORY;
    o->edge[o->edge_count] = (edge){ to, o->unit[from].next };
    o->unit[from].next = (uint32_t)o->edge_count++;
    o->unit[to].waits++;
    return ONX_OK;
}

/* Adds a read of a version, which an earlier unit computes or which is available. */
static onx_status add_read(orderer *o, uint32_t value, const onxi_placement *p)
{
    const onxi_shard_version *v = value == ONXI_SHARD_NONE || !p ? NULL : onxi_shard_version_find(o->plan, value, p);
    if (!v)
        return ONX_OK;
    return add_to_list(o, v->id);
}

/* Subgraphs read the whole value, wherever it comes from. */
static onx_status add_captured(orderer *o, uint32_t value)
{
    for (const onxi_shard_version *v = o->plan->value[value].versions; v; v = v->next)
        ONX_TRY(add_to_list(o, v->id));
    return ONX_OK;
}

static onx_status list_reads(orderer *o, const onxi_shard_step *s)
{
    if (s->kind == ONXI_STEP_MOVE)
        return add_read(o, s->value, s->from);
    const onxi_shard_node *n = &o->plan->node[s->node];
    for (uint32_t i = 0; i < n->node->input_count; i++)
        ONX_TRY(add_read(o, n->inputs[i], s->in[i]));
    for (uint32_t i = 0; i < n->captured_count; i++)
        ONX_TRY(add_captured(o, n->captured[i]));
    return ONX_OK;
}

static onx_status add_made(orderer *o, uint32_t index, uint32_t value, const onxi_placement *p)
{
    const onxi_shard_version *v = value == ONXI_SHARD_NONE || !p ? NULL : onxi_shard_version_find(o->plan, value, p);
    if (!v)
        return ONX_OK;
    version *w = &o->version[v->id];
    if (w->maker == ONXI_SHARD_NONE)
        w->maker = index;
    else if (w->maker != index) /* constants may be computed again, beside others */
        ONX_TRY(add_edge(o, w->maker, index));
    return add_to_list(o, v->id);
}

static onx_status list_made(orderer *o, uint32_t index, const onxi_shard_step *s)
{
    if (s->kind == ONXI_STEP_MOVE)
        return add_made(o, index, s->value, s->to);
    const onxi_shard_node *n = &o->plan->node[s->node];
    for (uint32_t i = 0; i < n->node->output_count; i++)
        ONX_TRY(add_made(o, index, n->outputs[i], s->out[i]));
    return ONX_OK;
}

static bool is_random(const onxi_shard_node *n)
{
    return n->captured_count || !n->bound->schema || !onxi_bound_repeats(n->bound);
}

static uint64_t time_of(const onxi_shard_plan *plan, const onxi_shard_step *s)
{
    const onxi_shard_node *n = &plan->node[s->node];
    uint32_t device = 0;
    uint64_t parts = 1;
    if (n->constant)
        return 0;
    for (uint32_t i = 0; i < n->rule.dim_count; i++)
        parts *= s->assignment->shards[i];
    while (device + 1 < plan->placements.devices && s->assignment->at[device] < 0)
        device++;
    const double most = 1e15; /* keeps the sum exactly representable as a double */
    const onxi_shard_work w = onxi_shard_work_at(plan, n, s->in, (double)parts, device);
    const uint64_t operations = (uint64_t)(w.operations < most ? w.operations : most) / OPERATIONS_PER_NS;
    const uint64_t weights = (uint64_t)(w.weights < most ? w.weights : most);
    const uint64_t all = (uint64_t)(w.bytes < most ? w.bytes : most);
    const uint64_t values = (all > weights ? all - weights : 0) / VALUES_PER_NS;
    return NODE_NS + weights / WEIGHTS_PER_NS + (operations > values ? operations : values);
}

static onx_status count_readers(orderer *o)
{
    for (uint32_t i = 0; i < o->plan->step_count; i++)
        if (o->plan->step[i].kind != ONXI_STEP_REDUCE)
            ONX_TRY(list_reads(o, &o->plan->step[i]));
    for (uint64_t k = 0; k < o->list_count; k++)
        o->version[o->list[k]].readers++;
    o->list_count = 0;
    return ONX_OK;
}

/* Does the step, whose reads are at the end of the list, depend only on the previous unit and on values that are
 * available? Other reads might have to be waited for. */
static bool goes_on(const orderer *o, const onxi_shard_step *s, uint64_t reads)
{
    const uint32_t last = o->unit_count - 1;
    bool any = false;
    if (s->kind != ONXI_STEP_NODE || o->plan->node[s->node].captured_count ||
        (o->plan->node[s->node].row && o->plan->node[s->node].row->product))
        return false;
    if (!o->unit_count || o->unit[last].moves || o->plan->step[o->unit[last].last].kind != ONXI_STEP_NODE)
        return false;
    for (uint64_t k = reads; k < o->list_count; k++) {
        const version *v = &o->version[o->list[k]];
        if (v->maker != ONXI_SHARD_NONE && !v->constant && (v->maker != last || v->readers != 1))
            return false;
        any |= v->maker == last;
    }
    return any;
}

/* Begins a unit with the step, or adds it to the previous one; its reads are listed. */
static onx_status add_step(orderer *o, uint32_t step, uint64_t reads, bool more)
{
    const onxi_shard_step *s = &o->plan->step[step];
    const uint32_t index = more ? o->unit_count - 1 : o->unit_count++;
    unit *u = &o->unit[index];
    if (more)
        u->last = step;
    else
        *u = (unit){
            .first = step, .last = step, .key = index, .next = ONXI_SHARD_NONE, .moves = s->kind == ONXI_STEP_MOVE
        };
    for (uint64_t k = reads; k < o->list_count; k++) {
        const uint32_t maker = o->version[o->list[k]].maker;
        if (maker == index)
            o->version[o->list[k]].readers = 0; /* outside of the unit */
        if (maker == ONXI_SHARD_NONE || maker == index)
            continue;
        ONX_TRY(add_edge(o, maker, index));
        if (u->moves) /* as early as it would be needed */
            u->key = index - maker > ONXI_SHARD_AHEAD ? index - ONXI_SHARD_AHEAD : maker;
    }
    if (more) { /* the other inputs are available already */
        o->list_count = reads;
    } else {
        u->read = (uint32_t)reads;
        u->made = (uint32_t)o->list_count;
    }
    ONX_TRY(list_made(o, index, s));
    u->made_end = (uint32_t)o->list_count;
    return ONX_OK;
}

/* Units in the old order: reductions follow their node. */
static onx_status list_units(orderer *o)
{
    const onxi_shard_plan *plan = o->plan;
    uint32_t random = ONXI_SHARD_NONE;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_shard_step *s = &plan->step[i];
        const uint64_t reads = o->list_count;
        if (s->kind == ONXI_STEP_REDUCE) {
            o->unit[o->unit_count - 1].last = i;
            continue;
        }
        ONX_TRY(list_reads(o, s));
        ONX_TRY(add_step(o, i, reads, goes_on(o, s, reads)));
        const uint32_t index = o->unit_count - 1;
        if (s->kind == ONXI_STEP_MOVE)
            continue;
        o->unit[index].ns += time_of(plan, s);
        if (!is_random(&plan->node[s->node]))
            continue;
        if (random != ONXI_SHARD_NONE && random != index) /* random nodes keep their order, because results may depend
                                                           * on earlier draws */
            ONX_TRY(add_edge(o, random, index));
        random = index;
    }
    return ONX_OK;
}

/* ---- memory ---- */

static void size_versions(orderer *o)
{
    for (uint32_t i = 0; i < o->plan->value_count; i++) {
        const onxi_shard_value *v = &o->plan->value[i];
        for (const onxi_shard_version *at = v->versions; at; at = at->next) {
            version *w = &o->version[at->id];
            *w = (version){ .maker = ONXI_SHARD_NONE, .constant = v->constant };
            if (!v->known || v->constant || v->input)
                continue;
            const onxi_box box = onxi_placement_box(at->placement, v->dims, v->rank, 0);
            w->one = (uint64_t)onxi_box_count(&box, v->rank) * onxi_element_size(v->dtype);
            if (!onxi_mul_u64(w->one, at->placement->first[at->placement->shards], &w->bytes) ||
                w->bytes > INT64_MAX / 4)
                w->bytes = INT64_MAX / 4;
        }
    }
}

/* Updates memory after unit `u`: its results are added, values without further readers are freed. */
static void pass(orderer *o, unit *u)
{
    const uint64_t before = o->held;
    for (uint32_t k = u->made; k < u->made_end; k++)
        o->held = onxi_shard_add(o->held, o->version[o->list[k]].bytes);
    u->made_bytes = o->held - before;
    for (uint32_t k = u->read; k < u->made_end; k++) {
        version *v = &o->version[o->list[k]];
        v->left -= k < u->made && v->left;
        if (!v->left && v->bytes)
            o->held -= v->bytes < o->held ? v->bytes : o->held;
    }
    u->kept = (int64_t)o->held - (int64_t)before;
}

static void start_pass(orderer *o, uint32_t versions)
{
    o->held = 0;
    for (uint32_t i = 0; i < versions; i++)
        o->version[i].left = o->version[i].readers;
    for (uint32_t i = 0; i < o->plan->graph->output_count; i++) {
        const uint32_t value = onxi_shard_value_find(o->plan, onx_view(o->plan->graph->output[i]->name));
        for (const onxi_shard_version *v = value == ONXI_SHARD_NONE ? NULL : o->plan->value[value].versions; v;
             v = v->next)
            o->version[v->id].left++; /* kept to the end */
    }
}

static void measure(orderer *o, uint32_t versions)
{
    start_pass(o, versions);
    for (uint32_t i = 0; i < o->unit_count; i++) {
        const uint64_t before = o->held;
        pass(o, &o->unit[i]);
        o->unit[i].old_held = onxi_shard_add(before, o->unit[i].made_bytes);
        o->most = o->unit[i].old_held > o->most ? o->unit[i].old_held : o->most;
    }
    start_pass(o, versions);
}

/* Is there enough memory to execute unit `index` before earlier ones: no more than the maximum of the old order plus
 * the size of values in transit? */
static bool has_room(const orderer *o, uint32_t index)
{
    const unit *u = &o->unit[index];
    const uint64_t most = onxi_shard_add(o->most, o->in_transit);
    const int64_t ahead = o->ahead + u->kept;
    if (onxi_shard_add(o->held, u->made_bytes) > most)
        return false;
    for (uint32_t i = o->base; i < index && ahead > 0; i++)
        if (!o->unit[i].done && onxi_shard_add(o->unit[i].old_held, (uint64_t)ahead) > most)
            return false;
    return true;
}

/* ---- priority queues of units ---- */

static bool before(const orderer *o, const heap *h, uint32_t a, uint32_t b)
{
    const unit *x = &o->unit[a], *y = &o->unit[b];
    const uint64_t first = h->by_arrival ? x->arrival : x->key, second = h->by_arrival ? y->arrival : y->key;
    return first != second ? first < second : a < b;
}

static void put(const orderer *o, heap *h, uint32_t index)
{
    uint32_t at = h->count++;
    for (; at && before(o, h, index, h->unit[(at - 1) / 2]); at = (at - 1) / 2)
        h->unit[at] = h->unit[(at - 1) / 2];
    h->unit[at] = index;
}

static uint32_t take(const orderer *o, heap *h)
{
    const uint32_t top = h->unit[0], last = h->unit[--h->count];
    uint32_t at = 0;
    for (uint32_t below; (below = 2 * at + 1) < h->count; at = below) {
        below += below + 1 < h->count && before(o, h, h->unit[below + 1], h->unit[below]);
        if (!before(o, h, h->unit[below], last))
            break;
        h->unit[at] = h->unit[below];
    }
    h->unit[at] = last;
    return top;
}

/* ---- listing units in the new order ---- */

/* Puts the moved value in transit from now on. */
static void send(orderer *o, uint32_t id)
{
    version *v = &o->version[id];
    o->link = onxi_shard_add(o->link > o->now ? o->link : o->now, v->one / LINK_PER_NS);
    v->arrival = onxi_shard_add(o->link, LATENCY_NS);
    o->in_transit = onxi_shard_add(o->in_transit, v->bytes);
    o->transit[o->transit_count++] = id;
}

static void arrive(orderer *o)
{
    for (; o->transit_first < o->transit_count; o->transit_first++) {
        const version *v = &o->version[o->transit[o->transit_first]];
        if (v->arrival > o->now)
            break;
        o->in_transit -= v->bytes < o->in_transit ? v->bytes : o->in_transit;
    }
    while (o->later.count && o->unit[o->later.unit[0]].arrival <= o->now)
        put(o, &o->ready, take(o, &o->later));
}

static void send_results(orderer *o, const unit *u)
{
    const onxi_shard_plan *plan = o->plan;
    for (uint32_t i = u->first; i <= u->last; i++) {
        const onxi_shard_step *s = &plan->step[i];
        const onxi_shard_value *v = &plan->value[s->value];
        const onxi_shard_version *to =
            s->kind == ONXI_STEP_NODE ? NULL : onxi_shard_version_find(plan, s->value, s->to);
        if (!to ||
            (s->kind == ONXI_STEP_MOVE && !onxi_placement_cost(&plan->placements, s->from, s->to, v->dims, v->rank)))
            continue; /* nothing is transferred */
        send(o, to->id);
    }
}

static void do_unit(orderer *o, uint32_t index)
{
    unit *u = &o->unit[index];
    const bool early = index > o->base;
    u->done = true;
    for (uint32_t i = u->first; i <= u->last; i++)
        o->step[o->step_count++] = o->plan->step[i];
    o->now = onxi_shard_add(o->now > u->arrival ? o->now : u->arrival, u->ns);
    pass(o, u);
    o->ahead += early ? u->kept : 0;
    for (; o->base < o->unit_count && o->unit[o->base].done; o->base++)
        o->ahead -= o->base != index ? o->unit[o->base].kept : 0;
    send_results(o, u);
    for (uint32_t e = u->next; e != ONXI_SHARD_NONE; e = o->edge[e].next) {
        unit *to = &o->unit[o->edge[e].to];
        if (--to->waits)
            continue;
        for (uint32_t k = to->read; k < to->made; k++)
            if (o->version[o->list[k]].arrival > to->arrival)
                to->arrival = o->version[o->list[k]].arrival;
        put(o, &o->later, o->edge[e].to);
    }
}

/* The first unit that does not wait, if there is memory for it; otherwise the next unit of the old order. */
static uint32_t choose(orderer *o)
{
    arrive(o);
    while (o->ready.count && o->unit[o->ready.unit[0]].done)
        (void)take(o, &o->ready);
    if (!o->ready.count)
        return o->base;
    const uint32_t index = o->ready.unit[0];
    const uint32_t ahead = index - o->base;
    const bool may =
        !ahead || (o->unit[index].moves && ahead <= ONXI_SHARD_AHEAD) || (ahead <= WINDOW && has_room(o, index));
    return may ? take(o, &o->ready) : o->base;
}

static onx_status make_tables(orderer *o)
{
    onx_arena *arena = o->plan->arena;
    const size_t steps = (size_t)o->plan->step_count + 1, versions = (size_t)o->plan->version_count + 1;
    o->unit = ONXI_ARRAY(arena, unit, steps);
    o->step = ONXI_ARRAY(arena, onxi_shard_step, steps);
    o->version = ONXI_ARRAY(arena, version, versions);
    o->transit = ONXI_ARRAY(arena, uint32_t, steps);
    o->ready.unit = ONXI_ARRAY(arena, uint32_t, steps);
    o->later = (heap){ ONXI_ARRAY(arena, uint32_t, steps), 0, true };
    return o->unit && o->step && o->version && o->transit && o->ready.unit && o->later.unit ? ONX_OK : ONX_E_MEMORY;
}

onx_status onxi_shard_order(onxi_shard_plan *plan)
{
    orderer o = { .plan = plan };
    uint32_t sent = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        sent += plan->step[i].kind != ONXI_STEP_NODE;
    if (!sent)
        return ONX_OK;
    ONX_TRY(make_tables(&o));
    size_versions(&o);
    ONX_TRY(count_readers(&o));
    ONX_TRY(list_units(&o));
    measure(&o, plan->version_count);
    for (uint32_t i = 0; i < o.unit_count; i++)
        if (!o.unit[i].waits)
            put(&o, &o.ready, i);
    for (uint32_t i = 0; i < o.unit_count; i++)
        do_unit(&o, choose(&o));
    plan->step = o.step;
    return ONX_OK;
}
