/* run_chain.c - finds elementwise nodes that run as one step: their results are used only by other nodes of the chain
 * and have the shape of the last result. A reduction or normalization that reads the last result line by line may end
 * the chain. The step is planned at the position of the last node (run_step.c). */
#include "run/run_plan.h"

/* The users of a slot among the ops visited so far. */
typedef struct slot_users {
    uint32_t chain; /* the chain that contains all of them, named by its last op; ONXI_NO_SLOT: no chain contains all */
    uint32_t seen;
} slot_users;

/* May a chain contain the op, judging without its operands? */
static bool is_free(const onxi_run_planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    if (pl->dynamic[index] || pl->claimed[index] || pl->head[index] != ONXI_NO_SLOT || op->graph_count ||
        op->guard_end || op->output_count != 1 || op->outputs[0] == ONXI_NO_SLOT || !op->kernel_count ||
        op->input_count < 1 || op->input_count > ONXI_ELEMENT_INPUTS)
        return false;
    const onxi_run_plan_slot *out = pl->plan->slots[op->outputs[0]];
    return out->place == ONXI_PLACE_BUFFER && out->value.count && onxi_element_type_is(out->value.dtype);
}

bool onxi_run_plan_ends_chain(const onxi_run_op *op)
{
    bool lines = false; /* the row with this flag need not come first: rows for layouts may precede it */
    for (uint32_t i = 0; i < op->kernel_count && !lines; i++)
        lines = (op->kernels[i]->flags & ONXI_KERNEL_LINES) != 0;
    return lines;
}

/* May the op end a chain? */
static bool is_end(const onxi_run_planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    return is_free(pl, index) && onxi_run_plan_ends_chain(op) && op->inputs[0] != ONXI_NO_SLOT &&
           pl->plan->slots[op->inputs[0]]->place == ONXI_PLACE_BUFFER;
}

/* The row that is tried first. A row that returns a view, as of Cast to the same type, is skipped if the type
 * changes. */
static const onx_kernel *moving_row(const onxi_run_planner *pl, const onxi_run_op *op)
{
    const onx_value *x = onxi_run_plan_value((onxi_run_planner *)(uintptr_t)(const void *)pl, op->inputs[0]);
    const bool stays = x && x->dtype == pl->plan->slots[op->outputs[0]]->value.dtype;
    return op->kernel_count > 1 && op->kernels[0]->flags & ONX_KERNEL_VIEW && !stays ? op->kernels[1] : op->kernels[0];
}

static bool quantizes(const onxi_run_op *op)
{
    return op->id == ONXI_ID_QuantizeLinear || op->id == ONXI_ID_DequantizeLinear;
}

/* Is there one scale for all elements, and have loops the types involved? */
static bool has_one_scale(const onxi_run_planner *pl, const onxi_run_op *op)
{
    const bool back = op->id == ONXI_ID_DequantizeLinear;
    const onx_value *x = &pl->plan->slots[op->inputs[0]]->value, *y = &pl->plan->slots[op->outputs[0]]->value;
    const int type = back ? x->dtype : y->dtype, other = back ? y->dtype : x->dtype;
    for (uint32_t i = 1; i < op->input_count; i++)
        if (op->inputs[i] != ONXI_NO_SLOT && pl->plan->slots[op->inputs[i]]->value.count != 1)
            return false;
    return other == ONX_FLOAT && (type == ONX_INT8 || type == ONX_UINT8 || type == ONX_INT16 || type == ONX_UINT16);
}

/* Is the op computed element by element for these operands? */
static bool is_element(const onxi_run_planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    if (!is_free(pl, index) || !onxi_element_is(moving_row(pl, op), op->input_count))
        return false;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const onx_value *v = op->inputs[i] == ONXI_NO_SLOT ? NULL : &pl->plan->slots[op->inputs[i]]->value;
        /* A bound of Clip and a zero point may be omitted. */
        if (!v && i > 0 && (op->id == ONXI_ID_Clip || quantizes(op)))
            continue;
        if (!v || v->kind != ONX_VALUE_TENSOR || !onxi_element_type_is(v->dtype))
            return false;
    }
    return !quantizes(op) || has_one_scale(pl, op);
}

/* The chain that the op joins: the one that contains all users of the op's result; ONXI_NO_SLOT: none. */
static uint32_t chain_around(const onxi_run_planner *pl, const slot_users *users, const uint32_t *sizes, uint32_t index)
{
    const uint32_t slot = pl->g->ops[index].outputs[0], chain = users[slot].chain;
    const onxi_run_graph_slot *s = &pl->g->slots[slot];
    if (chain == ONXI_NO_SLOT || s->is_output || users[slot].seen != s->uses || sizes[chain] >= ONXI_CHAIN_OPS ||
        pl->talks[index] != pl->talks[chain])
        return ONXI_NO_SLOT;
    const onx_value *made = &pl->plan->slots[slot]->value;
    const onxi_run_op *last = &pl->g->ops[chain];
    const onx_value *out = &pl->plan->slots[onxi_run_plan_ends_chain(last) ? last->inputs[0] : last->outputs[0]]->value;
    return made->rank == out->rank && onxi_same_dims(made->dims, out->dims, out->rank) ? chain : ONXI_NO_SLOT;
}

static void note_uses(const onxi_run_planner *pl, slot_users *users, uint32_t index, uint32_t chain)
{
    const onxi_run_op *op = &pl->g->ops[index];
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] == ONXI_NO_SLOT)
            continue;
        slot_users *u = &users[op->inputs[i]];
        const bool takes = i == 0 || chain == ONXI_NO_SLOT || !onxi_run_plan_ends_chain(op);
        u->chain = takes && (u->seen == 0 || u->chain == chain) ? chain : ONXI_NO_SLOT;
        u->seen++;
    }
}

/* Visits the ops backwards, so that all users of a result are known when its op is visited. A single op is no chain. */
static void find(onxi_run_planner *pl, slot_users *users, uint32_t *sizes)
{
    for (uint32_t i = pl->g->op_count; i-- > 0;) {
        uint32_t chain = ONXI_NO_SLOT;
        if (is_element(pl, i)) {
            chain = chain_around(pl, users, sizes, i);
            if (chain == ONXI_NO_SLOT)
                chain = i;
            pl->chain[i] = chain;
            pl->next[i] = chain == i ? i : pl->next[chain]; /* `next` is a ring: the last op leads to the first one */
            pl->next[chain] = i;
            sizes[chain]++;
        } else if (is_end(pl, i)) {
            chain = pl->chain[i] = pl->next[i] = i;
            sizes[i]++;
        }
        note_uses(pl, users, i, chain);
    }
    for (uint32_t i = 0; i < pl->g->op_count; i++)
        if (pl->chain[i] == i && sizes[i] < 2)
            pl->chain[i] = ONXI_NO_SLOT;
}

onx_status onxi_run_plan_find_chains(onxi_run_planner *pl)
{
    const onxi_run_session *s = pl->e->session;
    const uint32_t count = pl->g->op_count;
    pl->chain = ONXI_ARRAY(pl->plan->arena, uint32_t, count + 1u);
    pl->next = ONXI_ARRAY(pl->plan->arena, uint32_t, count + 1u);
    slot_users *users = ONXI_ARRAY(pl->e->scratch, slot_users, pl->g->slot_count + 1u);
    uint32_t *sizes = ONXI_ARRAY(pl->e->scratch, uint32_t, count + 1u);
    if (!pl->chain || !pl->next || !users || !sizes)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        pl->chain[i] = ONXI_NO_SLOT;
    for (uint32_t i = 0; i < pl->g->slot_count; i++)
        users[i].chain = ONXI_NO_SLOT;
    if (!s->options.plain && !s->options.no_optimize)
        find(pl, users, sizes);
    onxi_arena_reset(pl->e->scratch);
    return ONX_OK;
}
