/* run_plan.c - makes a plan for given input shapes: the types of all values, which ops become post-operations of
 * others, a step for each of the other ops (run_step.c), and the memory of a run. */
#include "run/run_plan.h"
#include "run/run_zones.h"

#define FOLD_MAX 65536 /* largest result in bytes that is computed while planning */

/* After each batch of ops, frees memory that only planning them needed, so that it is used again while it is in
 * cache. */
static void tidy(const onxi_run_planner *pl, uint32_t op)
{
    enum { OPS = 64 };
    if (op % OPS == OPS - 1)
        onxi_arena_reset(pl->e->scratch);
}

/* ---- types ---- */

static onx_status start_slots(onxi_run_planner *pl, const onx_value *const *inputs)
{
    onxi_run_graph *g = pl->g;
    onxi_run_plan *plan = pl->plan;
    uint32_t total = g->input_count + g->capture_count;
    plan->slot_room = g->slot_count + 16;
    plan->slots = (onxi_run_plan_slot **)ONXI_ARRAY(plan->arena, void *, plan->slot_room);
    plan->input_types = ONXI_ARRAY(plan->arena, onx_value, total + 1u);
    if (!plan->slots || !plan->input_types)
        return ONX_E_MEMORY;
    onx_value none = { 0 };
    for (uint32_t i = 0; i < g->slot_count; i++) {
        uint32_t slot;
        const onx_value *c = g->slots[i].constant;
        ONX_TRY(onxi_run_plan_add_slot(pl, c ? c : &none, c ? ONXI_PLACE_CONSTANT : ONXI_PLACE_NONE, &slot));
        plan->slots[slot]->uses_left = g->slots[i].uses;
        if (c)
            plan->slots[slot]->value.data = c->data;
    }
    for (uint32_t i = 0; i < total; i++) {
        const onx_value *v = inputs[i];
        onxi_run_plan_slot *s = plan->slots[g->inputs[i]];
        if (g->known && g->known[i]) {
            s->value = *g->known[i];
            s->value.flags |= ONXI_VALUE_BORROWED;
            s->place = ONXI_PLACE_CONSTANT;
        }
        if (!v || s->place == ONXI_PLACE_CONSTANT)
            continue;
        onx_value *type = &plan->input_types[i];
        *type = (onx_value){ .kind = v->kind, .dtype = v->dtype, .rank = v->rank };
        s->place = ONXI_PLACE_INPUT;
        if (v->kind != ONX_VALUE_TENSOR)
            continue;
        type->count = v->count;
        type->size = v->size;
        type->dims = ONXI_ARRAY(plan->arena, int64_t, v->rank + 1u);
        if (!type->dims)
            return ONX_E_MEMORY;
        onxi_copy_dims(type->dims, v->dims, v->rank);
        s->value = *type;
    }
    return ONX_OK;
}

static bool foldable(onxi_run_planner *pl, const onxi_run_op *op, bool part)
{
    if (!onxi_run_op_is_pure(op))
        return false;
    bool shapes = op->kernels[0]->flags & ONX_KERNEL_SHAPE_ONLY;
    uint64_t size = 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const onx_value *v = onxi_run_plan_value(pl, op->inputs[i]);
        if (v && !shapes && pl->plan->slots[op->inputs[i]]->place != ONXI_PLACE_CONSTANT)
            return false;
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT)
            size += onxi_run_plan_value(pl, op->outputs[i])->size;
    if (size > FOLD_MAX && pl->g->session->options.lean_memory)
        return false;
    /* Dequantized weights that no rule has used. */
    return size <= FOLD_MAX || (!part && op->id == ONXI_ID_DequantizeLinear);
}

static onx_status fold(onxi_run_planner *pl, const onxi_run_op *op)
{
    onxi_run_plan *plan = pl->plan;
    onxi_run_env e = *pl->e;
    const onx_value **in = (const onx_value **)ONXI_ARRAY(plan->arena, void *, op->input_count + 1u);
    onx_value **out = (onx_value **)ONXI_ARRAY(plan->arena, void *, op->output_count + 1u);
    if (!in || !out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        in[i] = onxi_run_plan_value(pl, op->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (op->outputs[i] == ONXI_NO_SLOT)
            continue;
        onxi_run_owned *o = ONXI_NEW(plan->arena, onxi_run_owned);
        if (!o)
            return ONX_E_MEMORY;
        ONX_TRY(onx_value_new(e.cx, &out[i]));
        *o = (onxi_run_owned){ plan->constants, out[i] };
        plan->constants = o;
    }
    ONX_TRY(onxi_run_op_eager(&e, op, in, out, NULL));
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (!out[i])
            continue;
        onxi_run_plan_slot *s = plan->slots[op->outputs[i]];
        s->value = *out[i];
        s->value.flags |= ONXI_VALUE_BORROWED;
        s->place = ONXI_PLACE_CONSTANT;
    }
    return ONX_OK;
}

/* Infers the types of the outputs by the operator's rule; *dynamic: they depend on data. */
static onx_status types_of(onxi_run_planner *pl, const onxi_run_op *op, bool *dynamic)
{
    *dynamic = op->graph_count > 0;
    for (uint32_t i = 0; i < op->input_count && !*dynamic; i++) {
        const onx_value *v = onxi_run_plan_value(pl, op->inputs[i]);
        *dynamic = v && v->kind != ONX_VALUE_TENSOR;
    }
    if (*dynamic)
        return ONX_OK;
    const onx_value **in = (const onx_value **)ONXI_ARRAY(pl->e->scratch, void *, op->input_count + 1u);
    onx_value **out = (onx_value **)ONXI_ARRAY(pl->e->scratch, void *, op->output_count + 1u);
    if (!in || !out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        in[i] = onxi_run_plan_value(pl, op->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        out[i] = onxi_run_plan_value(pl, op->outputs[i]);
    ONX_TRY(onxi_run_op_types(pl->e, op, in, out));
    for (uint32_t i = 0; i < op->output_count; i++)
        *dynamic |= out[i] && out[i]->kind != ONX_VALUE_TENSOR;
    return ONX_OK;
}

static bool see_shape(void *user, uint32_t value, onxi_rewrite_shape *out)
{
    const onx_value *v = onxi_run_plan_value(user, value);
    if (!v || v->kind != ONX_VALUE_TENSOR)
        return false;
    *out = (onxi_rewrite_shape){ v->dtype, v->rank, v->dims };
    return true;
}

static bool see_ints(void *user, uint32_t value, int64_t *out, uint32_t most, uint32_t *count)
{
    onxi_run_planner *pl = user;
    const onx_value *v = onxi_run_plan_value(pl, value);
    return v && pl->plan->slots[value]->place == ONXI_PLACE_CONSTANT && onxi_run_read_ints(v, out, most, count);
}

/* Checks that an op that replaces other ops gives the same type as these, and that the conditions of its rule hold.
 * Otherwise its parts take its place. */
static onx_status type_parts(onxi_run_planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    bool dynamic = false, refused = false;
    for (uint32_t i = 0; i < op->part_count && !dynamic; i++) {
        ONX_TRY(types_of(pl, &op->parts[i], &dynamic));
        if (!dynamic && foldable(pl, &op->parts[i], true)) /* shapes of other parts may depend on the result */
            ONX_TRY(fold(pl, &op->parts[i]));
    }
    refused = dynamic;
    if (!refused) {
        const onx_value wanted = *onxi_run_plan_value(pl, op->outputs[0]);
        const onxi_rewrite_shapes shapes = { pl, see_shape, see_ints, NULL };
        for (uint32_t i = 0; i < op->condition_count && !refused; i++)
            refused = !onxi_rewrite_holds(&shapes, &op->conditions[i]);
        if (!refused) { /* errors of the op's own rule are not reported: its parts then take its place */
            const onxi_diag_mark said = onxi_diag_here(pl->e->cx);
            *onxi_run_plan_value(pl, op->outputs[0]) = (onx_value){ 0 };
            refused = types_of(pl, op, &dynamic) != ONX_OK || dynamic ||
                      !onxi_run_same_type(&wanted, onxi_run_plan_value(pl, op->outputs[0]));
            onxi_diag_rewind(pl->e->cx, said);
        }
        *onxi_run_plan_value(pl, op->outputs[0]) = wanted;
    }
    pl->refused[index] = refused;
    pl->any_refused |= refused;
    return ONX_OK;
}

static onx_status type_op(onxi_run_planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    bool dynamic;
    if (op->part_count)
        ONX_TRY(type_parts(pl, index));
    if (pl->refused[index]) {
        const onx_value *v = onxi_run_plan_value(pl, op->outputs[0]);
        if (v && v->data) /* computed by its parts; the op itself would compute something else */
            return ONX_OK;
        dynamic = !v || v->kind != ONX_VALUE_TENSOR;
    } else {
        ONX_TRY(types_of(pl, op, &dynamic));
    }
    if (!pl->refused[index] && !dynamic && foldable(pl, op, false))
        return fold(pl, op);
    pl->dynamic[index] = dynamic;
    pl->plan->has_dynamic |= dynamic;
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (op->outputs[i] == ONXI_NO_SLOT)
            continue;
        onxi_run_plan_slot *s = pl->plan->slots[op->outputs[i]];
        s->place = dynamic ? ONXI_PLACE_DYNAMIC : ONXI_PLACE_BUFFER;
        if (dynamic)
            s->value = (onx_value){ 0 };
    }
    return ONX_OK;
}
/* ---- post-operations: an op and the elementwise ops after it ---- */

static bool takes_post_ops(const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->kernel_count; i++)
        if (op->kernels[i]->flags & ONX_KERNEL_POST_OPS)
            return true;
    return false;
}

static bool is_done(const onxi_run_planner *pl, const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT && pl->plan->slots[op->outputs[i]]->place != ONXI_PLACE_CONSTANT)
            return false;
    return true;
}

/* The sole user of a slot, if it can become a post-operation; ONXI_NO_SLOT otherwise. */
static uint32_t post_op_of(const onxi_run_planner *pl, uint32_t slot)
{
    const onxi_run_graph_slot *s = &pl->g->slots[slot];
    if (s->uses != 1 || s->is_output)
        return ONXI_NO_SLOT;
    uint32_t user = s->user;
    const onxi_run_op *op = &pl->g->ops[user];
    if (pl->dynamic[user] || pl->claimed[user] || op->graph_count || op->output_count != 1 ||
        op->outputs[0] == ONXI_NO_SLOT || !op->kernel_count || op->kernels[0]->post_op == ONX_POST_NONE ||
        takes_post_ops(op) || is_done(pl, op))
        return ONXI_NO_SLOT;
    if (!onxi_run_same_type(&pl->plan->slots[slot]->value, &pl->plan->slots[op->outputs[0]]->value))
        return ONXI_NO_SLOT;
    uint32_t others = 0;
    for (uint32_t i = 0; i < op->input_count; i++)
        others += op->inputs[i] != ONXI_NO_SLOT && op->inputs[i] != slot &&
                  pl->plan->slots[op->inputs[i]]->place != ONXI_PLACE_CONSTANT;
    return others > 1 ? ONXI_NO_SLOT : user;
}

/* Counts the ops so far that wait for others, as collectives do (ONX_KERNEL_ONCE). An op with post-operations runs at
 * the position of the last one, so no such op may be between them: others may be waiting for it. */
static void note_talks(const onxi_run_planner *pl)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pl->g->op_count; i++) {
        const onxi_run_op *op = &pl->g->ops[i];
        count += op->kernel_count && op->kernels[0]->flags & ONX_KERNEL_ONCE;
        pl->talks[i] = count;
    }
}

/* Does anything up to op `last` read another output of an op than the one that its post-operations take? The op runs at
 * the position of the last of these. */
static bool is_read_before(const onxi_run_planner *pl, const onxi_run_op *op, uint32_t last)
{
    for (uint32_t i = 1; i < op->output_count; i++) {
        const onxi_run_graph_slot *s = op->outputs[i] == ONXI_NO_SLOT ? NULL : &pl->g->slots[op->outputs[i]];
        if (s && (s->uses > 1 || (s->uses == 1 && s->user <= last)))
            return true;
    }
    return false;
}

static void claim_chain(onxi_run_planner *pl, uint32_t head)
{
    const onxi_run_op *op = &pl->g->ops[head];
    if (pl->dynamic[head] || pl->claimed[head] || !takes_post_ops(op) || !op->output_count ||
        op->outputs[0] == ONXI_NO_SLOT || is_done(pl, op))
        return;
    uint32_t last = head, slot = op->outputs[0];
    for (uint32_t n = 0; n < ONXI_POST_OPS_MAX; n++) {
        uint32_t next = post_op_of(pl, slot);
        if (next == ONXI_NO_SLOT || pl->talks[next] != pl->talks[head] || is_read_before(pl, op, next))
            break;
        pl->claimed[next] = 1;
        last = next;
        slot = pl->g->ops[next].outputs[0];
    }
    if (last != head) {
        pl->claimed[head] = 1;
        pl->head[last] = head;
    }
}
/* Allocates the steps in one array, because growing lists leave unused copies in the arena. */
static onx_status reserve_steps(onxi_run_planner *pl)
{
    onxi_run_plan *plan = pl->plan;
    uint64_t count = 0;
    for (uint32_t i = 0; i < pl->g->op_count; i++)
        count += pl->dynamic[i] || !pl->claimed[i] || pl->head[i] != ONXI_NO_SLOT;
    return ONXI_GROW_IN(plan->arena, plan->steps, plan->step_room, count) &&
                   ONXI_GROW_IN(plan->arena, plan->storages, plan->storage_room, count)
               ? ONX_OK
               : ONX_E_MEMORY;
}

/* Plans steps for the ops of plan->later, or for all other ops. */
static onx_status plan_ops(onxi_run_planner *pl, bool late)
{
    onxi_run_graph *g = pl->g;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        if ((pl->late && pl->late[i]) != late)
            continue;
        const onx_status going = onxi_run_watch_look(pl->e->watch);
        if (going != ONX_OK)
            return onxi_run_watch_fail(pl->e->watch, going, pl->e->cx, op);
        if (is_done(pl, op) && op->output_count) {
            for (uint32_t k = 0; k < op->input_count; k++)
                if (op->inputs[k] != ONXI_NO_SLOT)
                    onxi_run_plan_use_planned(pl, op->inputs[k]);
            continue;
        }
        if (pl->dynamic[i]) {
            ONX_TRY(onxi_run_plan_dynamic(pl, op));
            continue;
        }
        if (pl->head[i] != ONXI_NO_SLOT) {
            uint32_t chain = 0;
            for (uint32_t at = pl->head[i]; at != i; at = g->slots[g->ops[at].outputs[0]].user)
                chain++;
            ONX_TRY(onxi_run_plan_static(pl, &g->ops[pl->head[i]], chain));
        } else if (pl->chain[i] == i) {
            ONX_TRY(onxi_run_plan_chain(pl, i));
        } else if (!pl->claimed[i] && pl->chain[i] == ONXI_NO_SLOT) {
            ONX_TRY(onxi_run_plan_static(pl, op, 0));
        }
        tidy(pl, i);
    }
    return ONX_OK;
}

static onx_status plan_steps(onxi_run_planner *pl)
{
    onxi_run_graph *g = pl->g;
    ONX_TRY(reserve_steps(pl));
    ONX_TRY(plan_ops(pl, false));
    if (ONXI_PLATFORM_ROOMY && pl->late) {
        ONX_TRY(onxi_run_plan_begin_later(pl));
        ONX_TRY(plan_ops(pl, true));
        pl->plan->later->to = pl->plan->step_count;
    }
    pl->plan->outputs = ONXI_ARRAY(pl->plan->arena, uint32_t, g->output_count + 1u);
    pl->plan->moves = ONXI_ARRAY(pl->plan->arena, bool, g->output_count + 1u);
    if (!pl->plan->outputs || !pl->plan->moves)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++)
        ONX_TRY(onxi_run_plan_elements(pl, g->outputs[i]));
    for (uint32_t i = 0; i < g->output_count; i++)
        ONX_TRY(onxi_run_plan_in_layout(pl, g->outputs[i], NULL, &pl->plan->outputs[i]));
    for (uint32_t i = 0; i < g->output_count; i++)
        onxi_run_plan_extend_life(pl, pl->plan->outputs[i], pl->plan->step_count);
    for (uint32_t i = g->output_count; i-- > 0;) {
        onxi_run_plan_slot *s = pl->plan->slots[pl->plan->outputs[i]];
        pl->plan->moves[i] = (s->place == ONXI_PLACE_DYNAMIC || s->place == ONXI_PLACE_INPUT) && !s->moved;
        s->moved = true;
    }
    return ONX_OK;
}

/* ---- memory ---- */

static onx_status add_workspace(onxi_run_planner *pl)
{
    onxi_run_plan *plan = pl->plan;
    uint64_t workspace = 0, each = 0, total, threads = pl->e->session->threads;
    const uint64_t zone = onxi_run_zone(pl->e->session);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onx_prepare *p = &plan->steps[i].prepare;
        workspace = p->workspace > workspace ? p->workspace : workspace;
        each = p->thread_workspace > each ? p->thread_workspace : each;
    }
    workspace = workspace ? ((workspace + 63u) & ~(uint64_t)63u) + zone : 0;
    each = each ? ((each + 63u) & ~(uint64_t)63u) + zone : 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        plan->steps[i].prepared = onxi_run_op_prepared(&plan->steps[i].prepare);
        plan->steps[i].prepared.thread_workspace = each; /* one stride for all steps */
    }
    plan->workspace_offset = plan->buffer_size;
    uint64_t limit = pl->e->session->options.memory, constants = onxi_run_constant_bytes(pl->e->session);
    if (!onxi_mul_u64(each, threads, &total) || !onxi_add_u64(total, workspace, &total) ||
        !onxi_add_u64(total, plan->buffer_size, &total) || total > limit || constants > limit - total)
        return onxi_fail(pl->e->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "a run takes %llu bytes in addition to %llu for constants, the memory limit is %llu",
                         (unsigned long long)total, (unsigned long long)constants, (unsigned long long)limit);
    plan->thread_workspace_offset = plan->workspace_offset + workspace;
    plan->thread_workspace = each;
    plan->buffer_size = total;
    return ONX_OK;
}

static onx_status make(onxi_run_planner *pl, const onx_value *const *inputs)
{
    onxi_run_graph *g = pl->g;
    onx_arena *arena = pl->plan->arena;
    pl->dynamic = ONXI_ARRAY(arena, bool, g->op_count + 1u);
    pl->claimed = ONXI_ARRAY(arena, uint8_t, g->op_count + 1u);
    pl->head = ONXI_ARRAY(arena, uint32_t, g->op_count + 1u);
    pl->refused = ONXI_ARRAY(arena, bool, g->op_count + 1u);
    pl->talks = ONXI_ARRAY(arena, uint32_t, g->op_count + 1u);
    if (!pl->dynamic || !pl->claimed || !pl->head || !pl->refused || !pl->talks)
        return ONX_E_MEMORY;
    note_talks(pl);
    ONX_TRY(start_slots(pl, inputs));
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onx_status going = onxi_run_watch_look(pl->e->watch);
        if (going != ONX_OK)
            return onxi_run_watch_fail(pl->e->watch, going, pl->e->cx, &g->ops[i]);
        pl->head[i] = ONXI_NO_SLOT;
        ONX_TRY(type_op(pl, i));
        tidy(pl, i);
    }
    if (pl->any_refused)
        return ONX_OK;
    if (ONXI_PLATFORM_ROOMY)
        ONX_TRY(onxi_run_plan_find_later(pl));
    onxi_arena_reset(pl->e->scratch);
    for (uint32_t i = 0; i < g->op_count; i++)
        claim_chain(pl, i);
    ONX_TRY(onxi_run_plan_find_chains(pl));
    if (ONXI_RUN_MEASURES && pl->chooses)
        onxi_run_plan_context(pl);
    ONX_TRY(plan_steps(pl));
    ONX_TRY(onxi_run_plan_memory(pl->plan, pl->e->cx, &pl->plan->buffer_size));
    return add_workspace(pl);
}

typedef struct plan_options {
    const onxi_run_watch *watch;
    bool nonfinite;
    onx_ctx *cx; /* receives the diagnostics */
} plan_options;

/* Makes a plan; *out stays NULL if ops with parts are refused. These are then flagged in *refused_out, allocated in
 * `keep`. */
static onx_status try_plan(onxi_run_graph *g, const onx_value *const *inputs, const plan_options *o, onx_arena *keep,
                           bool **refused_out, onxi_run_plan **out)
{
    onxi_run_session *s = g->session;
    onx_ctx *own = onxi_run_ctx_child(s->cx);
    onx_arena *arena;
    *out = NULL;
    *refused_out = NULL;
    if (!own || onx_arena_new(own, &arena) != ONX_OK) {
        onx_ctx_free(own);
        return onxi_no_memory(o->cx);
    }
    onxi_run_plan *plan = ONXI_NEW(arena, onxi_run_plan);
    if (!plan) {
        onx_arena_free(arena);
        onx_ctx_free(own);
        return onxi_no_memory(o->cx);
    }
    plan->cx = own;
    plan->arena = arena;
    plan->graph = g;
    plan->nonfinite = o->nonfinite;
    onxi_run_env e = {
        .cx = own, .session = s, .graph = g, .arena = arena, .plan = plan, .watch = o->watch, .nonfinite = o->nonfinite
    };
    onxi_run_planner pl = { .e = &e,
                            .g = g,
                            .plan = plan,
                            .chooses = ONXI_RUN_MEASURES && onxi_run_plan_chooses(g, o->nonfinite),
                            .by_key = onxi_table_in_arena(arena) };
    onx_status status = onx_arena_new(own, &e.scratch);
    if (status == ONX_OK)
        status = make(&pl, inputs);
    onx_arena_free(e.scratch);
    e.scratch = NULL;
    if (status == ONX_OK && !pl.any_refused && onxi_run_verifies(s))
        status = onxi_run_verify(plan, own);
    if (status == ONX_OK && pl.any_refused) {
        if (!(*refused_out = ONXI_ARRAY(keep, bool, g->op_count)))
            status = ONX_E_MEMORY;
        else
            memcpy(*refused_out, pl.refused, g->op_count * sizeof *pl.refused);
    }
    if (status != ONX_OK || pl.any_refused) {
        onxi_diag_move(o->cx, own);
        onxi_run_plan_free(s, plan);
        return status;
    }
    *out = plan;
    return ONX_OK;
}

/* Gives the graph in which the refused ops (NULL: all ops with parts) are replaced by their parts. At most two such
 * graphs are made: one for the ops that were refused first, and one without any op that has parts. So changing shapes
 * cost no further memory. */
static onx_status with_parts(onxi_run_graph *g, const bool *refused, onx_arena *arena, onxi_run_graph **out)
{
    onx_arena *kept = g->arena;
    bool covered = g->unwritten != NULL;
    for (uint32_t i = 0; covered && i < g->op_count; i++)
        covered = g->unwritten_by[i] || !(refused ? refused[i] : g->ops[i].part_count != 0);
    if (!covered && g->unwritten)
        return with_parts(g->unwritten, NULL, arena, out);
    if (!g->unwritten) {
        bool *by = ONXI_ARRAY(kept, bool, g->op_count + 1u);
        if (!by)
            return ONX_E_MEMORY;
        for (uint32_t i = 0; i < g->op_count; i++)
            by[i] = refused ? refused[i] : g->ops[i].part_count != 0;
        ONX_TRY(onxi_run_graph_unwritten(g, by, &g->unwritten));
        g->unwritten_by = by;
    }
    *out = g->unwritten;
    return ONX_OK;
}

static bool has_parts(const onxi_run_graph *g)
{
    for (uint32_t i = 0; i < g->op_count; i++)
        if (g->ops[i].part_count)
            return true;
    return false;
}

/* The final failure is reported for nodes of the model, since the last graph tried has no op that replaces others. */
static onx_status plan_with_parts(onxi_run_graph *g, const onx_value *const *inputs, const plan_options *o,
                                  onx_arena *arena, onxi_run_plan **out)
{
    for (;;) {
        bool *refused = NULL;
        const onxi_diag_mark said = onxi_diag_here(o->cx);
        onx_status status = try_plan(g, inputs, o, arena, &refused, out);
        if (*out || status == ONX_E_MEMORY || status == ONX_E_LIMIT || status == ONX_E_CANCELLED || !has_parts(g))
            return status;
        onxi_diag_rewind(o->cx, said);
        status = with_parts(g, refused, arena, &g);
        if (status != ONX_OK && o->cx != g->session->cx)
            onxi_diag_move(o->cx, g->session->cx);
        ONX_TRY(status);
    }
}

onx_status onxi_run_plan_new(onxi_run_graph *g, const onx_value *const *inputs, const onxi_run_watch *watch,
                             bool nonfinite, onx_ctx *cx, onxi_run_plan **out)
{
    const plan_options options = { .watch = watch, .nonfinite = nonfinite, .cx = cx };
    onx_arena *arena;
    *out = NULL;
    if (onx_arena_new(g->session->cx, &arena) != ONX_OK)
        return onxi_no_memory(cx);
    onx_status status = plan_with_parts(g, inputs, &options, arena, out);
    onx_arena_free(arena);
    return status;
}

void onxi_run_plan_free(onxi_run_session *s, onxi_run_plan *plan)
{
    while (plan->idle) {
        onxi_run_state *state = plan->idle;
        plan->idle = state->next;
        onxi_run_state_free(state);
    }
    if (ONXI_PLATFORM_ROOMY && plan->later)
        onxi_run_later_close(s, plan->later);
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kernel && plan->steps[i].kernel->release && plan->steps[i].prepare.params)
            plan->steps[i].kernel->release(plan->steps[i].prepare.params);
    for (onxi_run_owned *o = plan->constants; o; o = o->next)
        onx_value_free(o->value);
    onx_ctx *cx = plan->cx;
    onxi_run_packs_free(&plan->packs, cx);
    onx_arena_free(plan->arena); /* also frees the plan itself */
    onx_ctx_free(cx);
}
