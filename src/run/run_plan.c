/* run_plan.c - a plan for given input shapes: types of everything, kernels with what they do in passing, layouts, and
 * which values share memory. */
#include "run/run.h"

#define FOLD_MAX 65536 /* bytes of results that are worth computing while planning */

typedef struct planner {
    onxi_run_env *e;
    onxi_run_graph *g;
    onxi_run_plan *plan;
    bool *dynamic;    /* per op */
    uint8_t *claimed; /* per op: done in passing by a chain */
    uint32_t *head;   /* per op: the head of the chain that ends here, ONXI_NO_SLOT: none */
    bool *refused;    /* per op: it cannot take the place of its parts here */
    bool any_refused;
} planner;

/* ---- growing ---- */

static onx_status add_slot(planner *pl, const onx_value *type, onxi_run_residence place, uint32_t *out)
{
    onxi_run_plan *plan = pl->plan;
    onxi_run_plan_slot *s = ONXI_NEW(plan->arena, onxi_run_plan_slot);
    if (!s || !ONXI_GROW_IN(plan->arena, plan->slots, plan->slot_room, (uint64_t)plan->slot_count + 1))
        return ONX_E_MEMORY;
    *s = (onxi_run_plan_slot){
        .value = *type, .place = place, .storage = ONXI_NO_SLOT, .base = ONXI_NO_SLOT, .reordered = ONXI_NO_SLOT
    };
    s->value.data = NULL;
    plan->slots[plan->slot_count] = s;
    *out = plan->slot_count++;
    return ONX_OK;
}

static onx_status add_step(planner *pl, onxi_run_step **out)
{
    onxi_run_plan *plan = pl->plan;
    if (!ONXI_GROW_IN(plan->arena, plan->steps, plan->step_room, (uint64_t)plan->step_count + 1))
        return ONX_E_MEMORY;
    *out = &plan->steps[plan->step_count++];
    memset(*out, 0, sizeof **out);
    return ONX_OK;
}

static onx_status add_storage(planner *pl, uint32_t slot)
{
    onxi_run_plan *plan = pl->plan;
    if (!ONXI_GROW_IN(plan->arena, plan->storages, plan->storage_room, (uint64_t)plan->storage_count + 1))
        return ONX_E_MEMORY;
    onxi_run_plan_slot *s = plan->slots[slot];
    plan->storages[plan->storage_count] = (onxi_run_storage){
        .size = s->value.size, .first = plan->step_count, .last = plan->step_count, .uses_left = s->uses_left
    };
    s->storage = plan->storage_count++;
    return ONX_OK;
}

static void join_storage(planner *pl, uint32_t slot, uint32_t storage)
{
    onxi_run_plan_slot *s = pl->plan->slots[slot];
    s->storage = storage;
    pl->plan->storages[storage].uses_left += s->uses_left;
}

static onxi_run_storage *storage_of(const planner *pl, uint32_t slot)
{
    uint32_t storage = slot == ONXI_NO_SLOT ? ONXI_NO_SLOT : pl->plan->slots[slot]->storage;
    return storage == ONXI_NO_SLOT ? NULL : &pl->plan->storages[storage];
}

/* Step `step` reads or writes the slot. */
static void extend_life(planner *pl, uint32_t slot, uint32_t step)
{
    onxi_run_plan_slot *s = pl->plan->slots[slot];
    if (s->place == ONXI_PLACE_BUFFER && s->storage != ONXI_NO_SLOT && pl->plan->storages[s->storage].last < step)
        pl->plan->storages[s->storage].last = step;
}

/* One use of a slot of the graph is planned, and so for its copies in other layouts. */
static void use_planned(planner *pl, uint32_t slot)
{
    for (uint32_t at = slot; at != ONXI_NO_SLOT; at = pl->plan->slots[at]->reordered) {
        onxi_run_plan_slot *s = pl->plan->slots[at];
        if (s->uses_left)
            s->uses_left--;
        if (s->storage != ONXI_NO_SLOT && pl->plan->storages[s->storage].uses_left)
            pl->plan->storages[s->storage].uses_left--;
    }
}

/* ---- types ---- */

static onx_status start_slots(planner *pl, const onx_value *const *inputs)
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
        ONX_TRY(add_slot(pl, c ? c : &none, c ? ONXI_PLACE_CONSTANT : ONXI_PLACE_NONE, &slot));
        plan->slots[slot]->uses_left = g->slots[i].uses;
        if (c)
            plan->slots[slot]->value.data = c->data;
    }
    for (uint32_t i = 0; i < total; i++) {
        const onx_value *v = inputs[i];
        onxi_run_plan_slot *s = plan->slots[g->inputs[i]];
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
        if (v->rank)
            memcpy(type->dims, v->dims, v->rank * sizeof *v->dims);
        s->value = *type;
    }
    return ONX_OK;
}

static onx_value *slot_value(planner *pl, uint32_t slot)
{
    return slot == ONXI_NO_SLOT ? NULL : &pl->plan->slots[slot]->value;
}

static bool foldable(planner *pl, const onxi_run_op *op)
{
    if (!onxi_run_op_is_pure(op))
        return false;
    bool shapes = op->kernels[0]->flags & ONX_KERNEL_SHAPE_ONLY;
    uint64_t size = 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const onx_value *v = slot_value(pl, op->inputs[i]);
        if (v && !shapes && pl->plan->slots[op->inputs[i]]->place != ONXI_PLACE_CONSTANT)
            return false;
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT)
            size += slot_value(pl, op->outputs[i])->size;
    return size <= FOLD_MAX;
}

static onx_status fold(planner *pl, const onxi_run_op *op)
{
    onxi_run_plan *plan = pl->plan;
    onxi_run_env e = *pl->e;
    const onx_value **in = (const onx_value **)ONXI_ARRAY(plan->arena, void *, op->input_count + 1u);
    onx_value **out = (onx_value **)ONXI_ARRAY(plan->arena, void *, op->output_count + 1u);
    if (!in || !out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        in[i] = slot_value(pl, op->inputs[i]);
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

/* The types of the outputs by the operator's rule; *dynamic: they depend on data. */
static onx_status types_of(planner *pl, const onxi_run_op *op, bool *dynamic)
{
    *dynamic = op->graph_count > 0;
    for (uint32_t i = 0; i < op->input_count && !*dynamic; i++) {
        const onx_value *v = slot_value(pl, op->inputs[i]);
        *dynamic = v && v->kind != ONX_VALUE_TENSOR;
    }
    if (*dynamic)
        return ONX_OK;
    const onx_value **in = (const onx_value **)ONXI_ARRAY(pl->plan->arena, void *, op->input_count + 1u);
    onx_value **out = (onx_value **)ONXI_ARRAY(pl->plan->arena, void *, op->output_count + 1u);
    if (!in || !out)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        in[i] = slot_value(pl, op->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        out[i] = slot_value(pl, op->outputs[i]);
    ONX_TRY(onxi_run_op_types(pl->e, op, in, out));
    for (uint32_t i = 0; i < op->output_count; i++)
        *dynamic |= out[i] && out[i]->kind != ONX_VALUE_TENSOR;
    return ONX_OK;
}

static bool same_type(const onx_value *a, const onx_value *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

/* An op that takes the place of others has to give the type that they give, and an axis that it takes from them has to
 * be the last one: normalizations go from their axis to the end. Else the parts go in its place. */
static onx_status type_parts(planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    bool dynamic = false, refused = false;
    for (uint32_t i = 0; i < op->part_count && !dynamic; i++)
        ONX_TRY(types_of(pl, &op->parts[i], &dynamic));
    refused = dynamic;
    if (!refused) {
        const onx_value wanted = *slot_value(pl, op->outputs[0]), *x = slot_value(pl, op->inputs[0]);
        const onxi_attr_value *axis = onxi_attrs_get(&op->attrs, "axis", ONX_ATTR_INT);
        refused = axis && axis->i != -1 && axis->i != (int64_t)x->rank - 1;
        if (!refused) { /* its own rule may refuse what the parts take: that is said nowhere */
            const onxi_diag_mark said = onxi_diag_here(pl->e->cx);
            refused =
                types_of(pl, op, &dynamic) != ONX_OK || dynamic || !same_type(&wanted, slot_value(pl, op->outputs[0]));
            onxi_diag_rewind(pl->e->cx, said);
        }
        *slot_value(pl, op->outputs[0]) = wanted;
    }
    pl->refused[index] = refused;
    pl->any_refused |= refused;
    return ONX_OK;
}

static onx_status type_op(planner *pl, uint32_t index)
{
    const onxi_run_op *op = &pl->g->ops[index];
    bool dynamic;
    if (op->part_count)
        ONX_TRY(type_parts(pl, index));
    if (pl->refused[index]) {
        const onx_value *v = slot_value(pl, op->outputs[0]);
        dynamic = !v || v->kind != ONX_VALUE_TENSOR;
    } else {
        ONX_TRY(types_of(pl, op, &dynamic));
    }
    if (!dynamic && foldable(pl, op))
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

/* ---- chains: a head and the elementwise nodes behind it ---- */

static bool takes_post_ops(const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->kernel_count; i++)
        if (op->kernels[i]->flags & ONX_KERNEL_POST_OPS)
            return true;
    return false;
}

static bool is_done(const planner *pl, const onxi_run_op *op)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT && pl->plan->slots[op->outputs[i]]->place != ONXI_PLACE_CONSTANT)
            return false;
    return true;
}

/* The sole user of a slot, if its kernel is one that others may compute in passing; ONXI_NO_SLOT otherwise. */
static uint32_t post_op_of(const planner *pl, uint32_t slot)
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
    if (!same_type(&pl->plan->slots[slot]->value, &pl->plan->slots[op->outputs[0]]->value))
        return ONXI_NO_SLOT;
    uint32_t others = 0;
    for (uint32_t i = 0; i < op->input_count; i++)
        others += op->inputs[i] != ONXI_NO_SLOT && op->inputs[i] != slot &&
                  pl->plan->slots[op->inputs[i]]->place != ONXI_PLACE_CONSTANT;
    return others > 1 ? ONXI_NO_SLOT : user;
}

static void claim_chain(planner *pl, uint32_t head)
{
    const onxi_run_op *op = &pl->g->ops[head];
    if (pl->dynamic[head] || pl->claimed[head] || !takes_post_ops(op) || !op->output_count ||
        op->outputs[0] == ONXI_NO_SLOT || is_done(pl, op))
        return;
    uint32_t last = head, slot = op->outputs[0];
    for (uint32_t n = 0; n < ONXI_POST_OPS_MAX; n++) {
        uint32_t next = post_op_of(pl, slot);
        if (next == ONXI_NO_SLOT)
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

/* ---- layouts ---- */

static bool layouts_equal(const onx_layout *a, const onx_layout *b)
{
    return a == b || (a && b && a->ops == b->ops && a->ops->equal(a, b));
}

/* The slot, or a copy of it, in the layout. */
static onx_status in_layout(planner *pl, uint32_t slot, const onx_layout *layout, uint32_t *out)
{
    onxi_run_plan *plan = pl->plan;
    for (uint32_t at = slot; at != ONXI_NO_SLOT; at = plan->slots[at]->reordered)
        if (layouts_equal(plan->slots[at]->value.layout, layout)) {
            *out = at;
            return ONX_OK;
        }
    onxi_run_plan_slot *from = plan->slots[slot];
    onx_value type = from->value;
    type.layout = layout;
    uint64_t count = type.count;
    if (layout)
        type.size = layout->size;
    else if (!onxi_tensor_room(type.dtype, count, &type.size))
        return onxi_no_memory(pl->e->cx);
    ONX_TRY(add_slot(pl, &type, ONXI_PLACE_BUFFER, out));
    onxi_run_plan_slot *to = plan->slots[*out];
    to->uses_left = from->uses_left;
    to->reordered = from->reordered;
    from->reordered = *out;
    ONX_TRY(add_storage(pl, *out));
    onxi_run_step *step;
    ONX_TRY(add_step(pl, &step));
    uint32_t index = plan->step_count - 1;
    step->kernel = (layout ? layout : from->value.layout)->ops->reorder;
    step->inputs = ONXI_ARRAY(plan->arena, uint32_t, 2);
    const onx_value **values = (const onx_value **)ONXI_ARRAY(plan->arena, void *, 2);
    if (!step->inputs || !values)
        return ONX_E_MEMORY;
    step->outputs = step->inputs + 1;
    step->input_count = step->output_count = 1;
    step->inputs[0] = slot;
    step->outputs[0] = *out;
    values[0] = &from->value;
    values[1] = &to->value;
    step->prepare = (onx_prepare){ .cx = pl->e->cx,
                                   .arena = plan->arena,
                                   .kernel = step->kernel,
                                   .input_count = 1,
                                   .output_count = 1,
                                   .inputs = values,
                                   .outputs = (onx_value *const *)(uintptr_t)(const void *)(values + 1),
                                   .threads = pl->e->session->threads,
                                   .rows = 1,
                                   .grain = 1,
                                   .overwrite = -1 };
    extend_life(pl, slot, index);
    extend_life(pl, *out, index);
    return step->kernel->prepare ? step->kernel->prepare(&step->prepare) : ONX_OK;
}

/* ---- steps ---- */

static void extend_lives(planner *pl, const onxi_run_step *step, uint32_t index)
{
    for (uint32_t i = 0; i < step->input_count + step->capture_count; i++)
        if (step->inputs[i] != ONXI_NO_SLOT)
            extend_life(pl, step->inputs[i], index);
    for (uint32_t i = 0; i < step->output_count; i++)
        if (step->outputs[i] != ONXI_NO_SLOT)
            extend_life(pl, step->outputs[i], index);
}

/* What holds subgraphs knows its kernel now, whatever its operands will be. */
static onx_status prepare_holder(planner *pl, onxi_run_step *step)
{
    const onxi_run_op *op = step->op;
    onx_arena *arena = pl->plan->arena;
    const onx_value **inputs = (const onx_value **)ONXI_ARRAY(arena, void *, op->input_count + 1u);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, op->output_count + 1u);
    bool *last_use = ONXI_ARRAY(arena, bool, op->input_count + 1u);
    if (!inputs || !outputs || !last_use)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        inputs[i] = slot_value(pl, step->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        outputs[i] = slot_value(pl, step->outputs[i]);
    onx_prepare p = { .inputs = inputs, .outputs = outputs, .last_use = last_use };
    onxi_run_op_describe(pl->e, op, &p);
    ONX_TRY(onxi_run_op_prepare(pl->e, op, &p, NULL, false));
    step->kernel = p.kernel;
    step->prepare = p;
    step->first_site = pl->plan->site_count;
    pl->plan->site_count += op->graph_count;
    return ONX_OK;
}

static onx_status plan_dynamic(planner *pl, const onxi_run_op *op)
{
    onxi_run_plan *plan = pl->plan;
    uint32_t inputs = op->input_count + op->capture_count;
    uint32_t *list = ONXI_ARRAY(plan->arena, uint32_t, inputs + op->output_count + 1u);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < inputs; i++) {
        list[i] = op->inputs[i];
        if (list[i] != ONXI_NO_SLOT)
            ONX_TRY(in_layout(pl, op->inputs[i], NULL, &list[i]));
    }
    onxi_run_step *step;
    ONX_TRY(add_step(pl, &step));
    step->op = op;
    step->eager = !op->graph_count;
    step->inputs = list;
    step->outputs = list + inputs;
    step->input_count = op->input_count;
    step->capture_count = op->capture_count;
    step->output_count = op->output_count;
    for (uint32_t i = 0; i < op->output_count; i++)
        step->outputs[i] = op->outputs[i];
    extend_lives(pl, step, plan->step_count - 1);
    bool *last_use = ONXI_ARRAY(plan->arena, bool, inputs + 1u);
    if (!last_use)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < inputs; i++) {
        const onxi_run_plan_slot *s = op->inputs[i] == ONXI_NO_SLOT ? NULL : plan->slots[op->inputs[i]];
        last_use[i] = s && s->uses_left == 1 && (s->place == ONXI_PLACE_DYNAMIC || s->place == ONXI_PLACE_INPUT);
    }
    step->last_use = last_use;
    for (uint32_t i = 0; i < inputs; i++)
        if (op->inputs[i] != ONXI_NO_SLOT)
            use_planned(pl, op->inputs[i]);
    return step->eager ? ONX_OK : prepare_holder(pl, step);
}

/* What a step is made from: the op's operands, then those of its post_ops. */
typedef struct draft {
    const onxi_run_op *op;
    uint32_t *slots; /* of the graph */
    uint32_t count;
    const onx_value **as_laid_out, **row_major;
    bool *last_use;
    onx_post_op *post_ops;
    const onxi_run_op **post_op_ops;
    uint32_t post_op_count;
    onx_prepare p;
} draft;

static onx_status draft_operand(planner *pl, draft *d, uint32_t slot)
{
    onx_arena *arena = pl->plan->arena;
    uint32_t i = d->count++;
    d->slots[i] = slot;
    if (slot == ONXI_NO_SLOT)
        return ONX_OK;
    onx_value *v = slot_value(pl, slot);
    d->as_laid_out[i] = d->row_major[i] = v;
    if (v->layout) {
        onx_value *copy = ONXI_NEW(arena, onx_value);
        if (!copy)
            return ONX_E_MEMORY;
        *copy = *v;
        copy->layout = NULL;
        d->row_major[i] = copy;
    }
    return ONX_OK;
}

static onx_status draft_post_op(planner *pl, draft *d, uint32_t chain_slot, const onxi_run_op *op)
{
    onx_arena *arena = pl->plan->arena;
    onx_post_op *f = &d->post_ops[d->post_op_count];
    onx_prepare *as = ONXI_NEW(arena, onx_prepare);
    const onx_value **inputs = (const onx_value **)ONXI_ARRAY(arena, void *, op->input_count + 1u);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, 1);
    if (!as || !inputs || !outputs)
        return ONX_E_MEMORY;
    f->operand = -1;
    for (uint32_t i = 0; i < op->input_count; i++) {
        inputs[i] = slot_value(pl, op->inputs[i]);
        if (op->inputs[i] == chain_slot)
            f->port = i;
        else if (op->inputs[i] != ONXI_NO_SLOT && pl->plan->slots[op->inputs[i]]->place != ONXI_PLACE_CONSTANT) {
            f->operand = (int32_t)d->count;
            ONX_TRY(draft_operand(pl, d, op->inputs[i]));
        }
    }
    outputs[0] = slot_value(pl, op->outputs[0]);
    as->inputs = inputs;
    as->outputs = outputs;
    onxi_run_op_describe(pl->e, op, as);
    as->kernel = op->kernels[0];
    f->prepare = as;
    d->post_op_ops[d->post_op_count++] = op;
    return ONX_OK;
}

/* Which operands nobody needs after this step: all uses of their storage that are still to be planned are its own.
 * They are counted in the storages, so that a node with many operands costs no more than as many with one. */
static void find_last_uses(planner *pl, draft *d)
{
    onxi_run_plan *plan = pl->plan;
    for (uint32_t i = 0; i < d->count; i++) {
        onxi_run_storage *storage = storage_of(pl, d->slots[i]);
        if (storage)
            storage->here++;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        const onxi_run_storage *storage = storage_of(pl, d->slots[i]);
        d->last_use[i] =
            storage && plan->slots[d->slots[i]]->place == ONXI_PLACE_BUFFER && storage->uses_left <= storage->here;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        onxi_run_storage *storage = storage_of(pl, d->slots[i]);
        if (storage)
            storage->here = 0;
    }
}

static onx_status draft_make(planner *pl, draft *d, const onxi_run_op *op, uint32_t chain)
{
    onx_arena *arena = pl->plan->arena;
    uint32_t room = op->input_count + chain + 1u;
    *d = (draft){ .op = op,
                  .slots = ONXI_ARRAY(arena, uint32_t, room),
                  .as_laid_out = (const onx_value **)ONXI_ARRAY(arena, void *, room),
                  .row_major = (const onx_value **)ONXI_ARRAY(arena, void *, room),
                  .last_use = ONXI_ARRAY(arena, bool, room),
                  .post_ops = ONXI_ARRAY(arena, onx_post_op, chain + 1u),
                  .post_op_ops = (const onxi_run_op **)ONXI_ARRAY(arena, void *, chain + 1u) };
    if (!d->slots || !d->as_laid_out || !d->row_major || !d->last_use || !d->post_ops || !d->post_op_ops)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        ONX_TRY(draft_operand(pl, d, op->inputs[i]));
    uint32_t slot = op->output_count ? op->outputs[0] : ONXI_NO_SLOT;
    for (uint32_t n = 0; n < chain; n++) {
        const onxi_run_op *next = &pl->g->ops[pl->g->slots[slot].user];
        ONX_TRY(draft_post_op(pl, d, slot, next));
        slot = next->outputs[0];
    }
    find_last_uses(pl, d);
    return ONX_OK;
}

/* Where output 0 goes: over an input, as a view, or into memory of its own. */
static onx_status place_first(planner *pl, const draft *d, const onxi_run_step *step, uint32_t out)
{
    onxi_run_plan *plan = pl->plan;
    onxi_run_plan_slot *o = plan->slots[out];
    uint16_t flags = step->kernel->flags;
    if (flags & ONX_KERNEL_VIEW && step->input_count && step->inputs[0] != ONXI_NO_SLOT) {
        onxi_run_plan_slot *from = plan->slots[step->inputs[0]];
        o->place = from->place;
        switch (from->place) {
        case ONXI_PLACE_BUFFER:
            join_storage(pl, out, from->storage);
            break;
        case ONXI_PLACE_CONSTANT:
            o->value.data = from->value.data;
            break;
        default:
            o->place = ONXI_PLACE_VIEW;
            o->base = from->place == ONXI_PLACE_VIEW ? from->base : step->inputs[0];
            break;
        }
        return ONX_OK;
    }
    if (d->p.overwrite >= 0 && (uint32_t)d->p.overwrite < d->count) {
        const onxi_run_plan_slot *from = plan->slots[step->inputs[d->p.overwrite]];
        if (from->place == ONXI_PLACE_BUFFER && from->value.size >= o->value.size) {
            join_storage(pl, out, from->storage);
            return ONX_OK;
        }
        return onx_prepare_fail(&d->p, ONX_E_INVALID, "the kernel overwrites an input that is still needed");
    }
    for (uint32_t i = 0; flags & ONX_KERNEL_IN_PLACE && i < step->input_count; i++) {
        const onxi_run_plan_slot *from = step->inputs[i] == ONXI_NO_SLOT ? NULL : plan->slots[step->inputs[i]];
        if (from && d->last_use[i] && from->place == ONXI_PLACE_BUFFER && from->value.size == o->value.size &&
            from->value.dtype == o->value.dtype && layouts_equal(from->value.layout, o->value.layout)) {
            join_storage(pl, out, from->storage);
            return ONX_OK;
        }
    }
    return add_storage(pl, out);
}

static bool is_view(const onxi_run_op *op)
{
    return op->kernel_count && op->kernels[0]->flags & ONX_KERNEL_VIEW;
}

/* FLAT kernels see their inputs as they are laid out only if all have one layout and the shape of the output. */
static bool same_layout(const draft *d, const onx_value *out)
{
    if (!d->op->input_count || !d->as_laid_out[0] || !d->as_laid_out[0]->layout)
        return false;
    uint32_t count = is_view(d->op) ? 1 : d->op->input_count;
    for (uint32_t i = 0; i < count; i++)
        if (d->as_laid_out[i] && (!layouts_equal(d->as_laid_out[i]->layout, d->as_laid_out[0]->layout) ||
                                  !same_type(d->as_laid_out[i], out)))
            return false;
    return true;
}

static onx_status settle_inputs(planner *pl, draft *d, const onx_kernel *kernel, bool flat, uint32_t **out)
{
    uint32_t *list = ONXI_ARRAY(pl->plan->arena, uint32_t, d->count + 1u);
    if (!list)
        return ONX_E_MEMORY;
    uint32_t alike_count = kernel->flags & ONX_KERNEL_VIEW ? 1 : d->op->input_count;
    for (uint32_t i = 0; i < d->count; i++) {
        list[i] = d->slots[i];
        if (list[i] == ONXI_NO_SLOT)
            continue;
        const onx_layout *layout = kernel->flags & ONX_KERNEL_LAYOUTS ? d->p.want[i]
                                   : kernel->flags & ONX_KERNEL_FLAT && flat && i < alike_count
                                       ? d->as_laid_out[i]->layout
                                       : NULL;
        ONX_TRY(in_layout(pl, d->slots[i], layout, &list[i]));
    }
    *out = list;
    return ONX_OK;
}

static onx_status plan_static(planner *pl, const onxi_run_op *op, uint32_t chain)
{
    onxi_run_plan *plan = pl->plan;
    onx_arena *arena = plan->arena;
    draft d;
    ONX_TRY(draft_make(pl, &d, op, chain));
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, op->output_count + 1u);
    const onx_layout **want = (const onx_layout **)ONXI_ARRAY(arena, void *, d.count + 1u);
    if (!outputs || !want)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->output_count; i++)
        outputs[i] = slot_value(pl, op->outputs[i]);
    for (uint32_t i = 0; i < d.count; i++)
        want[i] = d.as_laid_out[i] ? d.as_laid_out[i]->layout : NULL;
    bool flat = op->output_count && outputs[0] && same_layout(&d, outputs[0]);
    d.p.inputs = d.as_laid_out;
    d.p.outputs = outputs;
    onxi_run_op_describe(pl->e, op, &d.p);
    d.p.operand_count = d.count;
    d.p.last_use = d.last_use;
    d.p.want = want;
    d.p.post_ops = d.post_ops;
    d.p.post_op_count = d.post_op_count;
    ONX_TRY(onxi_run_op_prepare(pl->e, op, &d.p, d.row_major, flat));
    const onx_kernel *kernel = d.p.kernel;
    if (kernel->flags & ONX_KERNEL_VIEW && kernel->flags & ONX_KERNEL_FLAT && flat)
        outputs[0]->layout = d.as_laid_out[0]->layout;
    uint32_t taken = d.p.post_ops_done <= d.post_op_count ? d.p.post_ops_done : 0;
    uint32_t *inputs, *outs = ONXI_ARRAY(arena, uint32_t, op->output_count + 1u);
    if (!outs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->output_count; i++)
        outs[i] = op->outputs[i];
    if (taken) { /* the last of them is what comes out */
        outs[0] = d.post_op_ops[taken - 1]->outputs[0];
        onx_value *final = slot_value(pl, outs[0]);
        final->layout = outputs[0]->layout;
        final->size = outputs[0]->size;
        outputs[0] = final;
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (outputs[i] && outputs[i]->layout)
            outputs[i]->size = outputs[i]->layout->size;
    /* operands of post-operations that were not taken are none of this step */
    uint32_t used = op->input_count;
    for (uint32_t n = 0; n < taken; n++)
        if (d.post_ops[n].operand >= 0)
            used = (uint32_t)d.post_ops[n].operand + 1;
    d.count = used;
    d.p.operand_count = used;
    ONX_TRY(settle_inputs(pl, &d, kernel, flat, &inputs));
    onxi_run_step draft_step = { .op = op,
                                 .kernel = kernel,
                                 .inputs = inputs,
                                 .input_count = used,
                                 .outputs = outs,
                                 .output_count = op->output_count };
    for (uint32_t i = 0; i < op->output_count; i++)
        if (outs[i] != ONXI_NO_SLOT)
            ONX_TRY(i == 0 ? place_first(pl, &d, &draft_step, outs[i]) : add_storage(pl, outs[i]));
    const onx_value **bound = (const onx_value **)ONXI_ARRAY(arena, void *, used + 1u);
    if (!bound)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < used; i++)
        bound[i] = slot_value(pl, inputs[i]);
    d.p.inputs = bound;
    draft_step.prepare = d.p;
    bool view = kernel->flags & ONX_KERNEL_VIEW && used && inputs[0] != ONXI_NO_SLOT;
    if (view) {
        extend_lives(pl, &draft_step, plan->step_count);
    } else {
        onxi_run_step *step;
        ONX_TRY(add_step(pl, &step));
        *step = draft_step;
        extend_lives(pl, step, plan->step_count - 1);
    }
    for (uint32_t i = 0; i < used; i++)
        if (d.slots[i] != ONXI_NO_SLOT)
            use_planned(pl, d.slots[i]);
    for (uint32_t n = taken; n < d.post_op_count; n++) /* what it did not take has the usual way */
        ONX_TRY(plan_static(pl, d.post_op_ops[n], 0));
    return ONX_OK;
}

static onx_status plan_steps(planner *pl)
{
    onxi_run_graph *g = pl->g;
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onxi_run_op *op = &g->ops[i];
        const onx_status going = onxi_run_watch_look(pl->e->watch);
        if (going != ONX_OK)
            return onxi_run_watch_fail(pl->e->watch, going, pl->e->cx, op);
        if (is_done(pl, op) && op->output_count) {
            for (uint32_t k = 0; k < op->input_count; k++)
                if (op->inputs[k] != ONXI_NO_SLOT)
                    use_planned(pl, op->inputs[k]);
            continue;
        }
        if (pl->dynamic[i]) {
            ONX_TRY(plan_dynamic(pl, op));
            continue;
        }
        if (pl->head[i] != ONXI_NO_SLOT) {
            uint32_t chain = 0;
            for (uint32_t at = pl->head[i]; at != i; at = g->slots[g->ops[at].outputs[0]].user)
                chain++;
            ONX_TRY(plan_static(pl, &g->ops[pl->head[i]], chain));
        } else if (!pl->claimed[i]) {
            ONX_TRY(plan_static(pl, op, 0));
        }
    }
    pl->plan->outputs = ONXI_ARRAY(pl->plan->arena, uint32_t, g->output_count + 1u);
    pl->plan->moves = ONXI_ARRAY(pl->plan->arena, bool, g->output_count + 1u);
    if (!pl->plan->outputs || !pl->plan->moves)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->output_count; i++)
        ONX_TRY(in_layout(pl, g->outputs[i], NULL, &pl->plan->outputs[i]));
    for (uint32_t i = 0; i < g->output_count; i++)
        extend_life(pl, pl->plan->outputs[i], pl->plan->step_count);
    for (uint32_t i = g->output_count; i-- > 0;) {
        onxi_run_plan_slot *s = pl->plan->slots[pl->plan->outputs[i]];
        pl->plan->moves[i] = (s->place == ONXI_PLACE_DYNAMIC || s->place == ONXI_PLACE_INPUT) && !s->moved;
        s->moved = true;
    }
    return ONX_OK;
}

/* ---- memory ---- */

static onx_status add_workspace(planner *pl)
{
    onxi_run_plan *plan = pl->plan;
    uint64_t workspace = 0, each = 0, total, threads = pl->e->session->threads;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const onx_prepare *p = &plan->steps[i].prepare;
        workspace = p->workspace > workspace ? p->workspace : workspace;
        each = p->thread_workspace > each ? p->thread_workspace : each;
    }
    workspace = (workspace + 63u) & ~(uint64_t)63u;
    each = (each + 63u) & ~(uint64_t)63u;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        plan->steps[i].prepare.thread_workspace = each; /* one pitch for all */
        plan->steps[i].prepared = onxi_run_op_prepared(&plan->steps[i].prepare);
    }
    plan->workspace_offset = plan->buffer_size;
    uint64_t limit = pl->e->session->options.memory, constants = onxi_run_constant_bytes(pl->e->session);
    if (!onxi_mul_u64(each, threads, &total) || !onxi_add_u64(total, workspace, &total) ||
        !onxi_add_u64(total, plan->buffer_size, &total) || total > limit || constants > limit - total)
        return onxi_fail(pl->e->cx, ONX_E_LIMIT, ONXI_NOWHERE,
                         "a run takes %llu bytes beside %llu of constants, the memory limit is %llu",
                         (unsigned long long)total, (unsigned long long)constants, (unsigned long long)limit);
    plan->thread_workspace_offset = plan->workspace_offset + workspace;
    plan->thread_workspace = each;
    plan->buffer_size = total;
    return ONX_OK;
}

static onx_status make(planner *pl, const onx_value *const *inputs)
{
    onxi_run_graph *g = pl->g;
    onx_arena *arena = pl->plan->arena;
    pl->dynamic = ONXI_ARRAY(arena, bool, g->op_count + 1u);
    pl->claimed = ONXI_ARRAY(arena, uint8_t, g->op_count + 1u);
    pl->head = ONXI_ARRAY(arena, uint32_t, g->op_count + 1u);
    pl->refused = ONXI_ARRAY(arena, bool, g->op_count + 1u);
    if (!pl->dynamic || !pl->claimed || !pl->head || !pl->refused)
        return ONX_E_MEMORY;
    ONX_TRY(start_slots(pl, inputs));
    for (uint32_t i = 0; i < g->op_count; i++) {
        const onx_status going = onxi_run_watch_look(pl->e->watch);
        if (going != ONX_OK)
            return onxi_run_watch_fail(pl->e->watch, going, pl->e->cx, &g->ops[i]);
        pl->head[i] = ONXI_NO_SLOT;
        ONX_TRY(type_op(pl, i));
    }
    if (pl->any_refused)
        return ONX_OK;
    for (uint32_t i = 0; i < g->op_count; i++)
        claim_chain(pl, i);
    ONX_TRY(plan_steps(pl));
    ONX_TRY(onxi_run_plan_memory(pl->plan, pl->e->cx, &pl->plan->buffer_size));
    return add_workspace(pl);
}

typedef struct plan_options {
    const onxi_run_watch *watch;
    bool nonfinite;
    onx_ctx *cx; /* for diagnostics */
} plan_options;

/* A plan, or none where ops are refused that stand for others (`refused_out`, in `keep`). */
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
    planner pl = { .e = &e, .g = g, .plan = plan };
    onx_status status = make(&pl, inputs);
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

/* The graph with the parts of these ops (NULL: of all) in their place. There are two such graphs at most, one for what
 * was refused first and one without any op that stands for others, so that shapes that come and go cost no memory. */
static onx_status with_parts(onxi_run_graph *g, const bool *refused, onx_arena *arena, onxi_run_graph **out)
{
    onx_arena *kept = g->session->arena;
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

/* Whatever fails is told of the nodes of the model. */
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
        onxi_run_state_free(s, state);
    }
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kernel && plan->steps[i].kernel->release && plan->steps[i].prepare.params)
            plan->steps[i].kernel->release(plan->steps[i].prepare.params);
    for (onxi_run_owned *o = plan->constants; o; o = o->next)
        onx_value_free(o->value);
    onx_ctx *cx = plan->cx;
    onxi_run_packs_free(&plan->packs, cx);
    onx_arena_free(plan->arena); /* holds the plan itself */
    onx_ctx_free(cx);
}
