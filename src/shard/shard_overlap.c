/* shard_overlap.c - when the collectives of a rank begin and end: values are in transit between the node that computes
 * them and the first node that reads them, and nodes in between are computed meanwhile. A collective consists of two
 * nodes, which are joined if the rank has nothing to do between them.
 *
 * Ranks cannot deadlock: each rank begins a step no later than at its position in the plan, and ends it no earlier, at
 * a position that is the same for all ranks. So a rank only ever waits for an earlier step. */
#include "shard/shard_write.h"

typedef struct pending {
    struct pending *next;
    onxi_shard_collective c;
    onx_node *begin;
    uint32_t end; /* the step before which it ends */
} pending;

typedef struct schedule {
    onxi_shard_writer *w;
    uint32_t *begin, *end;  /* per collective step: the step after which it begins, and the step before which it ends */
    uint32_t *first, *next; /* lists of collectives that begin after a step other than themselves */
    pending *list;          /* in the order in which they have begun */
} schedule;

/* ---- positions in the plan ---- */

static void note_use(uint32_t *use, uint32_t which, uint32_t step)
{
    if (which != ONXI_SHARD_NONE)
        use[which] = step;
}

static void note_version(const onxi_shard_plan *plan, uint32_t *use, uint32_t value, const onxi_placement *p,
                         uint32_t step)
{
    const onxi_shard_version *v = value == ONXI_SHARD_NONE || !p ? NULL : onxi_shard_version_find(plan, value, p);
    note_use(use, v ? v->id : ONXI_SHARD_NONE, step);
}

/* A subgraph may read any placement of a value. */
static void note_all(const onxi_shard_plan *plan, uint32_t *use, uint32_t value, uint32_t step)
{
    for (const onxi_shard_version *v = plan->value[value].versions; v; v = v->next)
        use[v->id] = step;
}

/* Backwards: the next step that uses the value with that placement. */
static void find_ends(const schedule *s, uint32_t *use)
{
    const onxi_shard_plan *plan = s->w->plan;
    for (uint32_t i = 0; i < plan->version_count; i++)
        use[i] = plan->step_count;
    for (uint32_t i = plan->step_count; i-- > 0;) {
        const onxi_shard_step *step = &plan->step[i];
        if (step->kind != ONXI_STEP_NODE) {
            const onxi_shard_version *to = onxi_shard_version_find(plan, step->value, step->to);
            s->end[i] = to ? use[to->id] : i;
            note_version(plan, use, step->value, step->to, i);
            note_version(plan, use, step->value, step->from, i);
            continue;
        }
        const onxi_shard_node *n = &plan->node[step->node];
        for (uint32_t k = 0; k < n->node->input_count + n->node->output_count; k++)
            note_version(plan, use, n->inputs[k], step->in[k], i); /* outputs follow */
        for (uint32_t k = 0; k < n->captured_count; k++)
            note_all(plan, use, n->captured[k], i);
    }
}

/* Forwards: a value moves as soon as it has been computed, unless something else happens to it in between. */
static void find_begins(const schedule *s, uint32_t *made)
{
    const onxi_shard_plan *plan = s->w->plan;
    for (uint32_t i = 0; i < plan->value_count; i++)
        made[i] = plan->value[i].input ? 0 : ONXI_SHARD_NONE;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onxi_shard_step *step = &plan->step[i];
        s->begin[i] = i;
        if (step->kind == ONXI_STEP_NODE) {
            const onxi_shard_node *n = &plan->node[step->node];
            for (uint32_t k = 0; k < n->node->output_count; k++)
                note_use(made, n->outputs[k], i);
            continue;
        }
        if (step->kind == ONXI_STEP_MOVE && made[step->value] < i) {
            const uint32_t first = i < ONXI_SHARD_AHEAD ? 0 : i - ONXI_SHARD_AHEAD;
            s->begin[i] = made[step->value] > first ? made[step->value] : first;
            s->next[i] = s->first[s->begin[i]];
            s->first[s->begin[i]] = i;
        }
        made[step->value] = ONXI_SHARD_NONE;
    }
}

static onx_status plan_times(schedule *s)
{
    const size_t steps = (size_t)s->w->plan->step_count + 1;
    uint32_t *of_values = ONXI_ARRAY(s->w->arena, uint32_t, (size_t)s->w->plan->value_count + 1);
    uint32_t *of_versions = ONXI_ARRAY(s->w->arena, uint32_t, (size_t)s->w->plan->version_count + 1);
    s->begin = ONXI_ARRAY(s->w->arena, uint32_t, steps);
    s->end = ONXI_ARRAY(s->w->arena, uint32_t, steps);
    s->first = ONXI_ARRAY(s->w->arena, uint32_t, steps);
    s->next = ONXI_ARRAY(s->w->arena, uint32_t, steps);
    if (!of_values || !of_versions || !s->begin || !s->end || !s->first || !s->next)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < steps; i++)
        s->first[i] = ONXI_SHARD_NONE;
    find_ends(s, of_versions);
    find_begins(s, of_values);
    return ONX_OK;
}

/* ---- the nodes of a rank ---- */

/* A copy of the collective with another operator, and room for these numbers of inputs and outputs. */
static onx_status half_of(onxi_shard_writer *w, const onx_node *whole, const char *prefix, uint32_t inputs,
                          uint32_t outputs, onx_node **out)
{
    onx_node *n = ONXI_NEW(w->arena, onx_node);
    const onx_str name = onxi_arena_printf(w->arena, "%s%.*s", prefix, ONX_ARG(onx_view(whole->op_type)));
    if (!n || !name.ptr)
        return ONX_E_MEMORY;
    *n = *whole; /* attributes are shared, and only read */
    n->input = onxi_arena_array(w->arena, (size_t)onxi_list_room(inputs), sizeof *n->input);
    n->output = onxi_arena_array(w->arena, (size_t)onxi_list_room(outputs), sizeof *n->output);
    n->input_count = n->output_count = 0;
    *out = n;
    return n->input && n->output ? onx_arena_refer(w->arena, name, &n->op_type) : ONX_E_MEMORY;
}

static onx_status add_output(onxi_shard_writer *w, const onxi_shard_collective *c, onx_node *n)
{
    return onxi_shard_name_new(w, w->plan->value[c->value].name, &n->output[n->output_count++]);
}

/* The outputs of the collective, or of its second half. */
static onx_status name_result(onxi_shard_writer *w, const onxi_shard_collective *c, onx_node *n)
{
    return c->makes ? onxi_shard_hold(w, c->value, &c->want, &n->output[0])
                    : onxi_shard_name_new(w, w->plan->value[c->value].name, &n->output[0]);
}

static onx_status write_begin(onxi_shard_writer *w, pending *p)
{
    const onxi_shard_collective *c = &p->c;
    ONX_TRY(half_of(w, c->node, "Begin", 1, 2, &p->begin));
    for (uint32_t i = 0; i < c->node->input_count; i++)
        p->begin->input[p->begin->input_count++] = c->node->input[i];
    if (!c->partial)
        ONX_TRY(add_output(w, c, p->begin));
    ONX_TRY(add_output(w, c, p->begin));
    return onxi_shard_node_add(w, p->begin);
}

static onx_status write_end(onxi_shard_writer *w, const pending *p)
{
    onxi_shard_halves *h = ONXI_NEW(w->arena, onxi_shard_halves);
    if (!h)
        return ONX_E_MEMORY;
    *h = (onxi_shard_halves){ .begin = p->begin, .whole = p->c.node };
    ONX_TRY(half_of(w, p->c.node, "End", 3, 1, &h->end));
    for (uint32_t i = 0; i < p->begin->output_count; i++)
        h->end->input[h->end->input_count++] = p->begin->output[i];
    for (uint32_t i = 0; i < p->begin->input_count; i++)
        h->end->input[h->end->input_count++] = p->begin->input[i];
    h->end->output_count = 1;
    ONX_TRY(name_result(w, &p->c, h->end));
    *w->last_halves = h;
    w->last_halves = &h->next;
    return onxi_shard_node_add(w, h->end);
}

static onx_status start(schedule *s, uint32_t index)
{
    onxi_shard_writer *w = s->w;
    pending *p = ONXI_NEW(w->arena, pending), **last = &s->list;
    if (!p)
        return ONX_E_MEMORY;
    if (w->plan->step[index].kind == ONXI_STEP_MOVE)
        ONX_TRY(onxi_shard_make_move(w, index, &p->c));
    else
        ONX_TRY(onxi_shard_make_reduce(w, index, &p->c));
    if (!p->c.node)
        return ONX_OK;
    if (!w->plan->overlaps || p->c.alone) {
        ONX_TRY(name_result(w, &p->c, p->c.node));
        return onxi_shard_node_add(w, p->c.node);
    }
    p->end = s->end[index];
    while (*last)
        last = &(*last)->next;
    *last = p;
    return write_begin(w, p);
}

/* Ends the collectives that step `index` may need. */
static onx_status settle(schedule *s, uint32_t index)
{
    for (pending **at = &s->list; *at;) {
        pending *p = *at;
        if (p->end > index) {
            at = &p->next;
            continue;
        }
        ONX_TRY(write_end(s->w, p));
        *at = p->next;
    }
    return ONX_OK;
}

onx_status onxi_shard_write_steps(onxi_shard_writer *w,
                                  onx_status (*write_node)(onxi_shard_writer *w, const onxi_shard_step *step))
{
    const onxi_shard_plan *plan = w->plan;
    schedule s = { .w = w };
    ONX_TRY(plan_times(&s));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        ONX_TRY(settle(&s, i));
        if (plan->step[i].kind == ONXI_STEP_NODE)
            ONX_TRY(write_node(w, &plan->step[i]));
        else if (s.begin[i] == i || !plan->overlaps)
            ONX_TRY(start(&s, i));
        for (uint32_t k = s.first[i]; k != ONXI_SHARD_NONE && plan->overlaps; k = s.next[k])
            ONX_TRY(start(&s, k));
    }
    return settle(&s, plan->step_count);
}
