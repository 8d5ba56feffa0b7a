/* run_later.c - the rest of a run, after nodes whose output shapes are known only during the run. Its nodes form a
 * graph of their own, which is planned for the shapes at hand, the first ones too, so that all runs give the same bits.
 * Where no plan can be made, the nodes run one by one. docs/notes/session.md */
#include "run/run_plan.h"
#include "run/run_zones.h"

enum {
    LEAST_OPS = 4,
    MOST_DEPTH = 8,      /* nesting of such graphs */
    MOST_SLOTS = 1 << 16 /* bounds their memory, because each graph copies all slots */
};

/* ---- finding the nodes ---- */

static bool comes_late(const onxi_run_planner *pl, const bool *made, const onxi_run_op *op, bool *after_late)
{
    bool late = *after_late = false;
    for (uint32_t k = 0; k < op->input_count + op->capture_count; k++) {
        const uint32_t slot = op->inputs[k];
        if (slot == ONXI_NO_SLOT)
            continue;
        late |= pl->plan->slots[slot]->place == ONXI_PLACE_DYNAMIC;
        *after_late |= made[slot];
    }
    return late;
}

/* Marks and counts the nodes that depend on values of unknown shape. Returns 0 if a node of known shape depends on a
 * marked one. */
static uint32_t mark(const onxi_run_planner *pl, bool *late, bool *made)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pl->g->op_count; i++) {
        const onxi_run_op *op = &pl->g->ops[i];
        bool after_late;
        const bool is_late = comes_late(pl, made, op, &after_late);
        if (after_late && !pl->dynamic[i])
            return 0;
        late[i] = pl->dynamic[i] && (is_late || after_late);
        for (uint32_t k = 0; late[i] && k < op->output_count; k++)
            if (op->outputs[k] != ONXI_NO_SLOT)
                made[op->outputs[k]] = true;
        count += late[i];
    }
    return count;
}

/* ---- the graph of these nodes ---- */

typedef struct drafter {
    onxi_run_planner *pl;
    onxi_run_graph *out;
    bool *read, *made; /* per slot: read or made by the nodes; in the end, by the ops of `out` */
} drafter;

static void note_read(drafter *d, const onxi_run_op *op)
{
    for (uint32_t k = 0; k < op->input_count + op->capture_count; k++)
        if (op->inputs[k] != ONXI_NO_SLOT)
            d->read[op->inputs[k]] = true;
}

static void note_made(drafter *d, const onxi_run_op *op)
{
    for (uint32_t k = 0; k < op->output_count; k++)
        if (op->outputs[k] != ONXI_NO_SLOT)
            d->made[op->outputs[k]] = true;
}

/* Also those of parts that replace others. */
static void note_parts(drafter *d, const onxi_run_op *op)
{
    for (uint32_t n = 0; n < op->part_count; n++) {
        note_read(d, &op->parts[n]);
        note_made(d, &op->parts[n]);
        note_parts(d, &op->parts[n]);
    }
}

/* Are the inputs of `op` available in the new graph? Values that late nodes read are kept; other values may not even be
 * computed. Values made by other parts of `whole` are available, too. */
static bool is_there(const drafter *d, const onxi_run_op *op, const onxi_run_op *whole)
{
    for (uint32_t k = 0; k < op->input_count; k++) {
        const uint32_t slot = op->inputs[k];
        bool inside = slot == ONXI_NO_SLOT || d->read[slot] || d->pl->g->slots[slot].constant ||
                      d->pl->plan->slots[slot]->place == ONXI_PLACE_CONSTANT;
        for (uint32_t n = 0; n < whole->part_count && !inside; n++)
            for (uint32_t o = 0; o < whole->parts[n].output_count; o++)
                inside |= whole->parts[n].outputs[o] == slot;
        if (!inside)
            return false;
    }
    return true;
}

static bool can_stand_for(const drafter *d, const onxi_run_op *op)
{
    bool there = is_there(d, op, op);
    for (uint32_t n = 0; n < op->part_count && there; n++)
        there = is_there(d, &op->parts[n], op) && can_stand_for(d, &op->parts[n]);
    return there;
}

/* Adds a copy of the op with an array of outputs of its own, because each graph strikes out its unused outputs. */
static onx_status add_op(drafter *d, const onxi_run_op *op)
{
    onxi_run_op *to = &d->out->ops[d->out->op_count++];
    *to = *op;
    to->outputs = ONXI_ARRAY(d->out->arena, uint32_t, op->output_count + 1u);
    if (!to->outputs)
        return ONX_E_MEMORY;
    if (op->output_count)
        memcpy(to->outputs, op->outputs, op->output_count * sizeof *to->outputs);
    return ONX_OK;
}

/* Adds the late nodes. Where an op was replaced by its parts only because shapes were unknown, the op itself is added
 * again. */
static onx_status add_ops(drafter *d, const bool *late)
{
    const onxi_run_graph *g = d->pl->g, *from = g->written ? g->written : g;
    uint32_t at = 0;
    for (uint32_t i = 0; i < from->op_count; i++) {
        const onxi_run_op *op = &from->ops[i];
        const uint32_t count = from != g && from->unwritten_by[i] && op->part_count ? op->part_count : 1;
        bool any = false;
        for (uint32_t k = 0; k < count && at + k < g->op_count; k++)
            any |= late[at + k];
        const bool whole = any && count > 1 && can_stand_for(d, op);
        if (whole)
            ONX_TRY(add_op(d, op));
        for (uint32_t k = 0; !whole && k < count && at + k < g->op_count; k++)
            if (late[at + k])
                ONX_TRY(add_op(d, &g->ops[at + k]));
        at += count;
    }
    return ONX_OK;
}

static onx_status add_ports(drafter *d, onxi_run_later *later)
{
    onxi_run_graph *u = d->out;
    const onxi_run_graph *g = d->pl->g;
    onx_arena *arena = u->arena;
    const uint32_t room = g->slot_count + g->output_count + 1u;
    const onx_value **known = (const onx_value **)ONXI_ARRAY(arena, void *, room);
    u->inputs = ONXI_ARRAY(arena, uint32_t, room);
    u->outputs = ONXI_ARRAY(arena, uint32_t, room);
    later->captured = ONXI_ARRAY(arena, uint32_t, room);
    if (!known || !u->inputs || !u->outputs || !later->captured)
        return ONX_E_MEMORY;
    for (uint32_t slot = 0; slot < g->slot_count; slot++) {
        if (!d->read[slot] || d->made[slot] || g->slots[slot].constant)
            continue;
        const onxi_run_plan_slot *s = d->pl->plan->slots[slot];
        known[u->capture_count] = s->place == ONXI_PLACE_CONSTANT ? &s->value : NULL;
        later->captured[u->capture_count] = u->inputs[u->capture_count] = slot;
        u->capture_count++;
    }
    u->known = known;
    memset(d->read, 0, g->slot_count * sizeof *d->read);
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t slot = g->outputs[i];
        if (d->made[slot] && !d->read[slot])
            u->outputs[u->output_count++] = slot;
        d->read[slot] = true;
    }
    return ONX_OK;
}

static onx_status draft(onxi_run_planner *pl, const bool *late, uint32_t count, drafter *d, onxi_run_later *later)
{
    onxi_run_graph *u = d->out = &later->graph;
    *u = (onxi_run_graph){ .session = pl->g->session,
                           .graph = pl->g->graph,
                           .arena = pl->plan->arena,
                           .slots = ONXI_ARRAY(pl->plan->arena, onxi_run_graph_slot, pl->g->slot_count + 1u),
                           .ops = ONXI_ARRAY(pl->plan->arena, onxi_run_op, count + 1u),
                           .slot_count = pl->g->slot_count,
                           .slot_room = pl->g->slot_count + 1,
                           .op_room = count + 1,
                           .depth = pl->g->depth + 1 };
    if (!u->slots || !u->ops)
        return ONX_E_MEMORY;
    memcpy(u->slots, pl->g->slots, pl->g->slot_count * sizeof *u->slots);
    for (uint32_t i = 0; i < pl->g->op_count; i++)
        if (late[i])
            note_read(d, &pl->g->ops[i]);
    ONX_TRY(add_ops(d, late));
    memset(d->read, 0, pl->g->slot_count * sizeof *d->read);
    memset(d->made, 0, pl->g->slot_count * sizeof *d->made);
    for (uint32_t i = 0; i < u->op_count; i++) {
        note_read(d, &u->ops[i]);
        note_made(d, &u->ops[i]);
        note_parts(d, &u->ops[i]);
    }
    ONX_TRY(add_ports(d, later));
    return onxi_run_graph_count_uses(u);
}

onx_status onxi_run_plan_find_later(onxi_run_planner *pl)
{
    const onxi_run_graph *g = pl->g;
    const onx_session_options *options = &g->session->options;
    onx_arena *scratch = pl->e->scratch;
    /* Nodes that wait for others must keep their order, and lean memory leaves no room for more plans. */
    if (!pl->plan->has_dynamic || options->plain || options->no_optimize || options->lean_memory ||
        g->depth >= MOST_DEPTH || g->slot_count > MOST_SLOTS || (g->op_count && pl->talks[g->op_count - 1]))
        return ONX_OK;
    drafter d = { .pl = pl,
                  .read = ONXI_ARRAY(scratch, bool, g->slot_count + 1u),
                  .made = ONXI_ARRAY(scratch, bool, g->slot_count + 1u) };
    bool *late = ONXI_ARRAY(pl->plan->arena, bool, g->op_count + 1u);
    if (!d.read || !d.made || !late)
        return ONX_E_MEMORY;
    const uint32_t count = mark(pl, late, d.made);
    if (count < LEAST_OPS)
        return ONX_OK;
    onxi_run_later *later = ONXI_NEW(pl->plan->arena, onxi_run_later);
    if (!later)
        return ONX_E_MEMORY;
    ONX_TRY(draft(pl, late, count, &d, later));
    pl->late = late;
    pl->plan->later = later;
    return ONX_OK;
}

onx_status onxi_run_plan_begin_later(onxi_run_planner *pl)
{
    onxi_run_later *later = pl->plan->later;
    for (uint32_t i = 0; i < later->graph.capture_count; i++)
        if (!later->graph.known[i])
            ONX_TRY(onxi_run_plan_in_layout(pl, later->captured[i], NULL, &later->captured[i]));
    later->from = pl->plan->step_count;
    return ONX_OK;
}

void onxi_run_later_close(onxi_run_session *s, onxi_run_later *later)
{
    for (onxi_run_kept *kept; (kept = onxi_run_recent_take(&later->graph.plans)) != NULL;)
        onxi_run_plan_free(s, (onxi_run_plan *)kept);
}

/* ---- running ---- */

typedef struct onxi_run_rest {
    onxi_run_site site;
    onx_value **outputs;
    bool fails; /* planning failed, for example for lack of memory */
} onxi_run_rest;

onx_status onxi_run_rest_new(onxi_run_state *st)
{
    onxi_run_later *later = st->plan->later;
    onxi_run_rest *rest = st->rest = onxi_resize(st->cx, NULL, 0, sizeof *rest);
    if (!rest)
        return ONX_E_MEMORY;
    *rest = (onxi_run_rest){ .site = { .outer = st, .graph = &later->graph } };
    const uint32_t ins = later->graph.capture_count, outs = later->graph.output_count;
    rest->site.inputs = onxi_resize(st->cx, NULL, 0, (ins + 1u) * sizeof *rest->site.inputs);
    rest->outputs = onxi_resize(st->cx, NULL, 0, (outs + 1u) * sizeof *rest->outputs);
    if (!rest->site.inputs || !rest->outputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < ins; i++)
        rest->site.inputs[i] = later->graph.known[i] ? NULL : st->slots[later->captured[i]];
    for (uint32_t i = 0; i < outs; i++)
        rest->outputs[i] = st->slots[later->graph.outputs[i]];
    return ONX_OK;
}

void onxi_run_rest_free(onxi_run_state *st)
{
    onxi_run_rest *rest = st->rest;
    if (!rest)
        return;
    const onxi_run_graph *g = &st->plan->later->graph;
    onxi_run_site_close(&rest->site);
    onxi_release(st->cx, rest->site.inputs, (g->capture_count + 1u) * sizeof *rest->site.inputs);
    onxi_release(st->cx, rest->outputs, (g->output_count + 1u) * sizeof *rest->outputs);
    onxi_release(st->cx, rest, sizeof *rest);
}

/* Finds a state whose plan fits the current shapes, or makes one; else NULL. */
static onx_status find_planned(onxi_run_state *st, onxi_run_state **out)
{
    onxi_run_rest *rest = st->rest;
    *out = onxi_run_site_find(&rest->site);
    if (*out || rest->fails)
        return ONX_OK;
    const onxi_diag_mark said = onxi_diag_here(st->cx);
    const onx_status status = onxi_run_site_add(&rest->site, out);
    if (status == ONX_OK) {
        (*out)->goes_on = st->goes_on || st->outermost == st;
        return ONX_OK;
    }
    if (status == ONX_E_CANCELLED || status == ONX_E_INTERNAL)
        return status;
    rest->fails = true; /* the nodes may run one by one, or report the error better */
    onxi_diag_rewind(st->cx, said);
    return ONX_OK;
}

/* Lets the plan read what it captures and write its outputs. */
static void open_rest(const onxi_run_state *st, bool open)
{
    const onxi_run_graph *g = &st->plan->later->graph;
    void (*visit)(const onxi_run_state *, const onx_value *) =
        open ? onxi_run_zones_open_value : onxi_run_zones_close_value;
    for (uint32_t i = 0; i < g->capture_count; i++)
        visit(st, st->rest->site.inputs[i]);
    for (uint32_t i = 0; i < g->output_count; i++)
        visit(st, st->rest->outputs[i]);
}

onx_status onxi_run_rest_run(onxi_run_state *st, bool *done)
{
    onxi_run_state *planned;
    *done = false;
    ONX_TRY(find_planned(st, &planned));
    if (!planned)
        return ONX_OK;
    *done = true;
    open_rest(st, true);
    const onx_status status = onxi_run_state_run(planned, NULL, st->rest->site.inputs, st->rest->outputs,
                                                 st->plan->later->graph.output_count);
    open_rest(st, false);
    return status;
}
