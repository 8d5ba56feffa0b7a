/* run_step.c - the steps of a plan: the kernel of an op with its post-operations, the layouts of its operands, and the
 * memory of its results. */
#include "run/run_plan.h"

bool onxi_run_same_type(const onx_value *a, const onx_value *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

/* ---- steps ---- */

static void extend_lives(onxi_run_planner *pl, const onxi_run_step *step, uint32_t index)
{
    for (uint32_t i = 0; i < step->input_count + step->capture_count; i++)
        if (step->inputs[i] != ONXI_NO_SLOT)
            onxi_run_plan_extend_life(pl, step->inputs[i], index);
    for (uint32_t i = 0; i < step->output_count; i++)
        if (step->outputs[i] != ONXI_NO_SLOT)
            onxi_run_plan_extend_life(pl, step->outputs[i], index);
}

/* An op with subgraphs can choose its kernel now, since the kernel does not depend on the operands. */
static onx_status prepare_holder(onxi_run_planner *pl, onxi_run_step *step)
{
    const onxi_run_op *op = step->op;
    onx_arena *arena = pl->plan->arena;
    const onx_value **inputs = (const onx_value **)ONXI_ARRAY(arena, void *, op->input_count + 1u);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, op->output_count + 1u);
    bool *last_use = ONXI_ARRAY(arena, bool, op->input_count + 1u);
    if (!inputs || !outputs || !last_use)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        inputs[i] = onxi_run_plan_value(pl, step->inputs[i]);
    for (uint32_t i = 0; i < op->output_count; i++)
        outputs[i] = onxi_run_plan_value(pl, step->outputs[i]);
    onx_prepare p = { .inputs = inputs, .outputs = outputs, .last_use = last_use };
    onxi_run_op_describe(pl->e, op, &p);
    ONX_TRY(onxi_run_op_prepare(pl->e, op, &p, NULL, ONXI_COMMON_NOT, (onxi_run_order){ 0 }));
    step->kernel = p.kernel;
    step->prepare = p;
    step->first_site = pl->plan->site_count;
    pl->plan->site_count += op->graph_count;
    return ONX_OK;
}

onx_status onxi_run_plan_dynamic(onxi_run_planner *pl, const onxi_run_op *op)
{
    onxi_run_plan *plan = pl->plan;
    uint32_t inputs = op->input_count + op->capture_count;
    uint32_t *list = ONXI_ARRAY(plan->arena, uint32_t, inputs + op->output_count + 1u);
    if (!list)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < inputs; i++) {
        list[i] = op->inputs[i];
        if (list[i] == ONXI_NO_SLOT)
            continue;
        ONX_TRY(onxi_run_plan_elements(pl, list[i]));
        ONX_TRY(onxi_run_plan_in_layout(pl, op->inputs[i], NULL, &list[i]));
    }
    onxi_run_step *step;
    ONX_TRY(onxi_run_plan_add_step(pl, &step));
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
            onxi_run_plan_use_planned(pl, op->inputs[i]);
    return step->eager ? ONX_OK : prepare_holder(pl, step);
}

/* Everything needed to make a step. Its operands are those of the op, followed by those of its post-operations. */
typedef struct draft {
    const onxi_run_op *op;
    uint32_t *slots; /* slots of the graph */
    uint32_t count;
    const onx_value **as_laid_out, **row_major;
    bool *last_use, *freed;
    onx_post_op *post_ops;
    const onxi_run_op **post_op_ops;
    uint32_t post_op_count, taken; /* number offered, and number that the kernel takes */
    onx_value **outputs;
    onxi_common_layout alike; /* whether elementwise kernels may see the layout of the inputs */
    const onx_prepare *anew;  /* as in a step */
    bool alone;               /* not part of an elementwise chain, so its row may be chosen by measurement */
    uint32_t chosen;          /* as in a step */
    bool measured;
    onx_prepare p;
} draft;

static onx_status draft_operand(onxi_run_planner *pl, draft *d, uint32_t slot)
{
    onx_arena *arena = pl->plan->arena;
    uint32_t i = d->count++;
    d->slots[i] = slot;
    if (slot == ONXI_NO_SLOT)
        return ONX_OK;
    onx_value *v = onxi_run_plan_value(pl, slot);
    d->as_laid_out[i] = d->row_major[i] = v;
    if (v->layout) {
        onx_value *copy = ONXI_NEW(arena, onx_value);
        if (!copy)
            return ONX_E_MEMORY;
        *copy = *v;
        copy->layout = NULL;
        if (!onxi_tensor_room(copy->dtype, copy->count, &copy->size)) /* size without the padding of the layout */
            return onxi_no_memory(pl->e->cx);
        d->row_major[i] = copy;
    }
    return ONX_OK;
}

static onx_status draft_post_op(onxi_run_planner *pl, draft *d, uint32_t chain_slot, const onxi_run_op *op)
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
        ONX_TRY(onxi_run_plan_elements(pl, op->inputs[i]));
        inputs[i] = onxi_run_plan_value(pl, op->inputs[i]);
        if (op->inputs[i] == chain_slot)
            f->port = i;
        else if (op->inputs[i] != ONXI_NO_SLOT && pl->plan->slots[op->inputs[i]]->place != ONXI_PLACE_CONSTANT) {
            f->operand = (int32_t)d->count;
            ONX_TRY(draft_operand(pl, d, op->inputs[i]));
        }
    }
    outputs[0] = onxi_run_plan_value(pl, op->outputs[0]);
    as->inputs = inputs;
    as->outputs = outputs;
    onxi_run_op_describe(pl->e, op, as);
    as->kernel = op->kernels[0];
    f->prepare = as;
    d->post_op_ops[d->post_op_count++] = op;
    return ONX_OK;
}

static onx_status draft_make(onxi_run_planner *pl, draft *d, const onxi_run_op *op, uint32_t chain)
{
    onx_arena *arena = pl->plan->arena, *scratch = pl->e->scratch;
    uint32_t room = op->input_count + chain + 1u;
    *d = (draft){ .op = op,
                  .slots = ONXI_ARRAY(scratch, uint32_t, room),
                  .as_laid_out = (const onx_value **)ONXI_ARRAY(scratch, void *, room),
                  .row_major = (const onx_value **)ONXI_ARRAY(scratch, void *, room),
                  .last_use = ONXI_ARRAY(arena, bool, room),
                  .freed = ONXI_ARRAY(scratch, bool, room),
                  .post_ops = ONXI_ARRAY(arena, onx_post_op, chain + 1u),
                  .post_op_ops = (const onxi_run_op **)ONXI_ARRAY(scratch, void *, chain + 1u) };
    if (!d->slots || !d->as_laid_out || !d->row_major || !d->last_use || !d->freed || !d->post_ops || !d->post_op_ops)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        ONX_TRY(draft_operand(pl, d, op->inputs[i]));
    uint32_t slot = op->output_count ? op->outputs[0] : ONXI_NO_SLOT;
    for (uint32_t n = 0; n < chain; n++) {
        const onxi_run_op *next = &pl->g->ops[pl->g->slots[slot].user];
        ONX_TRY(draft_post_op(pl, d, slot, next));
        slot = next->outputs[0];
    }
    return onxi_run_plan_find_free(pl, d->slots, d->slots, d->count, ONXI_OTHERS_NONE, d->last_use);
}

/* Chooses the memory of output 0: overwriting an input, a view of an input, or a storage of its own. */
static onx_status place_first(onxi_run_planner *pl, const draft *d, const onxi_run_step *step, uint32_t out)
{
    onxi_run_plan *plan = pl->plan;
    onxi_run_plan_slot *o = plan->slots[out];
    uint16_t flags = step->kernel->flags;
    if (flags & ONX_KERNEL_VIEW && step->input_count && step->inputs[0] != ONXI_NO_SLOT) {
        onxi_run_plan_slot *from = plan->slots[step->inputs[0]];
        o->place = from->place;
        o->base = from->place == ONXI_PLACE_VIEW ? from->base : step->inputs[0];
        switch (from->place) {
        case ONXI_PLACE_BUFFER:
            onxi_run_plan_join_storage(pl, out, from->storage);
            break;
        case ONXI_PLACE_CONSTANT:
            o->value.data = from->value.data;
            break;
        default:
            o->place = ONXI_PLACE_VIEW;
            break;
        }
        return ONX_OK;
    }
    if (d->p.overwrite >= 0 && (uint32_t)d->p.overwrite < d->count) {
        const onxi_run_plan_slot *from = plan->slots[step->inputs[d->p.overwrite]];
        if (d->freed[d->p.overwrite] && from->value.size >= o->value.size) {
            onxi_run_plan_join_storage(pl, out, from->storage);
            return ONX_OK;
        }
        return onx_prepare_fail(&d->p, ONX_E_INVALID, "the kernel overwrites an input that is still needed");
    }
    for (uint32_t i = 0; flags & ONX_KERNEL_IN_PLACE && i < step->input_count; i++) {
        const onxi_run_plan_slot *from = step->inputs[i] == ONXI_NO_SLOT ? NULL : plan->slots[step->inputs[i]];
        if (from && d->freed[i] && from->value.size == o->value.size && from->value.dtype == o->value.dtype &&
            onxi_run_layouts_equal(from->value.layout, o->value.layout)) {
            onxi_run_plan_join_storage(pl, out, from->storage);
            return ONX_OK;
        }
    }
    return onxi_run_plan_add_storage(pl, out);
}

static bool is_view(const onxi_run_op *op)
{
    return op->kernel_count && op->kernels[0]->flags & ONX_KERNEL_VIEW;
}

/* Have all operands channel blocks of the same size, or one element? */
static bool have_common_blocks(const draft *d, uint32_t count, const onx_value *out)
{
    const onx_value *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const onx_value *v = d->as_laid_out[i];
        if (!v || (!v->layout && v->count == 1))
            continue;
        first = first ? first : v;
        if (!onxi_blocked_alike(v, first) || v->rank != out->rank || !onxi_same_dims(v->dims, out->dims, v->rank))
            return false;
    }
    return first && onxi_blocked_type_is(out->dtype);
}

static onxi_common_layout common_layout(const draft *d, const onx_value *out)
{
    const uint32_t count = is_view(d->op) ? 1 : d->op->input_count;
    if (have_common_blocks(d, count, out))
        return ONXI_COMMON_WHOLE;
    if (!count || !d->as_laid_out[0] || !d->as_laid_out[0]->layout)
        return ONXI_COMMON_NOT;
    for (uint32_t i = 0; i < count; i++)
        if (d->as_laid_out[i] && (!onxi_run_layouts_equal(d->as_laid_out[i]->layout, d->as_laid_out[0]->layout) ||
                                  !onxi_run_same_type(d->as_laid_out[i], out)))
            return ONXI_COMMON_NOT;
    return ONXI_COMMON_PADDED;
}

/* Finds which of the operands `read` may be overwritten. The row may have chosen one (onx_prepare.overwrite) that is
 * read in another layout, from a copy that something else reads, too: it gets a copy for itself. */
static onx_status settle_overwritten(onxi_run_planner *pl, draft *d, const onx_kernel *kernel, uint32_t *read)
{
    const bool chosen = d->p.overwrite >= 0 && (uint32_t)d->p.overwrite < d->count;
    const uint32_t which = chosen ? (uint32_t)d->p.overwrite : 0;
    const bool alike = !chosen && (onxi_element_is(kernel, d->op->input_count) || kernel == &onxi_kernel_chain);
    const onxi_run_others others = alike ? ONXI_OTHERS_ALIKE : ONXI_OTHERS_APART;
    ONX_TRY(onxi_run_plan_find_free(pl, d->slots, read, d->count, others, d->freed));
    if (!chosen || d->freed[which] || !d->last_use[which] || read[which] == d->slots[which])
        return ONX_OK;
    ONX_TRY(onxi_run_plan_convert(pl, d->slots[which], pl->plan->slots[read[which]]->value.layout, &read[which]));
    return onxi_run_plan_find_free(pl, d->slots, read, d->count, others, d->freed);
}

static onx_status settle_inputs(onxi_run_planner *pl, draft *d, const onx_kernel *kernel, uint32_t **out)
{
    const bool as_laid_out = onxi_element_as_laid_out(kernel, d->op->input_count, d->alike);
    uint32_t *list = ONXI_ARRAY(pl->plan->arena, uint32_t, d->count + 1u);
    if (!list)
        return ONX_E_MEMORY;
    uint32_t alike_count = kernel->flags & ONX_KERNEL_VIEW ? 1 : d->op->input_count;
    for (uint32_t i = 0; i < d->count; i++) {
        list[i] = d->slots[i];
        if (list[i] == ONXI_NO_SLOT)
            continue;
        const onx_layout *layout = kernel->flags & ONX_KERNEL_LAYOUTS ? d->p.want[i]
                                   : as_laid_out && i < alike_count   ? d->as_laid_out[i]->layout
                                                                      : NULL;
        ONX_TRY(onxi_run_plan_in_layout(pl, d->slots[i], layout, &list[i]));
    }
    *out = list;
    return settle_overwritten(pl, d, kernel, list);
}

/* Keeps the description as it was before the row was asked, except for the amounts of memory, which are as the row has
 * requested. */
static onx_status note_anew(onxi_run_planner *pl, draft *d)
{
    onx_arena *arena = pl->plan->arena;
    onx_prepare *from = ONXI_NEW(arena, onx_prepare);
    const onx_value **inputs = (const onx_value **)ONXI_ARRAY(arena, void *, d->count + 1u);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, d->op->output_count + 1u);
    if (!from || !inputs || !outputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < d->count; i++)
        inputs[i] = d->p.inputs[i];
    for (uint32_t i = 0; i < d->op->output_count; i++) {
        if (!d->outputs[i])
            continue;
        if (!(outputs[i] = ONXI_NEW(arena, onx_value)))
            return ONX_E_MEMORY;
        *outputs[i] = *d->outputs[i];
        outputs[i]->layout = NULL;
        if (outputs[i]->kind == ONX_VALUE_TENSOR &&
            !onxi_tensor_room(outputs[i]->dtype, outputs[i]->count, &outputs[i]->size))
            return onxi_no_memory(pl->e->cx);
    }
    *from = d->p;
    from->inputs = inputs;
    from->outputs = outputs;
    from->params = NULL;
    from->post_ops_done = 0;
    d->anew = from;
    return ONX_OK;
}

/* Finds the kernel that takes the op. It chooses the layouts of its operands and the post-operations that it takes. */
static onx_status draft_prepare(onxi_run_planner *pl, draft *d)
{
    const onxi_run_op *op = d->op;
    onx_arena *arena = pl->plan->arena;
    const onx_layout **want = (const onx_layout **)ONXI_ARRAY(arena, void *, d->count + 1u);
    d->outputs = (onx_value **)ONXI_ARRAY(arena, void *, op->output_count + 1u);
    if (!d->outputs || !want)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->output_count; i++)
        d->outputs[i] = onxi_run_plan_value(pl, op->outputs[i]);
    for (uint32_t i = 0; i < d->count; i++)
        want[i] = d->as_laid_out[i] ? d->as_laid_out[i]->layout : NULL;
    d->alike = op->output_count && d->outputs[0] ? common_layout(d, d->outputs[0]) : ONXI_COMMON_NOT;
    d->p.inputs = d->as_laid_out;
    d->p.outputs = d->outputs;
    onxi_run_op_describe(pl->e, op, &d->p);
    d->p.operand_count = d->count;
    d->p.last_use = d->last_use;
    d->p.want = want;
    d->p.post_ops = d->post_ops;
    d->p.post_op_count = d->post_op_count;
    onxi_run_order order = { 0 };
    if (ONXI_RUN_MEASURES && d->alone)
        ONX_TRY(onxi_run_plan_choose(pl, op, &d->p, &order, &d->chosen));
    ONX_TRY(onxi_run_op_prepare(pl->e, op, &d->p, d->row_major, d->alike, order));
    if (ONXI_RUN_MEASURES && d->chosen)
        d->measured = onxi_run_plan_chose(pl, d->chosen, &order, d->p.kernel);
    if (onxi_run_op_is_anew(&d->p))
        ONX_TRY(note_anew(pl, d));
    const uint16_t flags = d->p.kernel->flags;
    if (flags & ONX_KERNEL_VIEW && flags & ONX_KERNEL_FLAT && d->alike != ONXI_COMMON_NOT)
        d->outputs[0]->layout = d->as_laid_out[0]->layout;
    d->taken = d->p.post_ops_done <= d->post_op_count ? d->p.post_ops_done : 0;
    return ONX_OK;
}

/* Gives the outputs of the step: output 0 is the result of the last post-operation taken, in the layout that the kernel
 * chose. Operands of post-operations that were not taken are removed from the step. */
static onx_status settle_outputs(onxi_run_planner *pl, draft *d, uint32_t **out)
{
    const onxi_run_op *op = d->op;
    uint32_t *outs = *out = ONXI_ARRAY(pl->plan->arena, uint32_t, op->output_count + 1u);
    if (!outs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->output_count; i++)
        outs[i] = op->outputs[i];
    if (d->taken) {
        outs[0] = d->post_op_ops[d->taken - 1]->outputs[0];
        onx_value *final = onxi_run_plan_value(pl, outs[0]);
        final->layout = d->outputs[0]->layout;
        final->size = d->outputs[0]->size;
        d->outputs[0] = final;
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (d->outputs[i] && d->outputs[i]->layout)
            d->outputs[i]->size = d->outputs[i]->layout->size;
    d->count = op->input_count;
    for (uint32_t n = 0; n < d->taken; n++)
        if (d->post_ops[n].operand >= 0)
            d->count = (uint32_t)d->post_ops[n].operand + 1;
    d->p.operand_count = d->count;
    return ONX_OK;
}

/* Finds caches that the kernel may update in the caller's memory: inputs of the graph without another reader. */
static void note_updates(const onxi_run_planner *pl, const onxi_run_step *made)
{
    const onx_kernel *kernel = made->kernel;
    for (uint32_t i = 0; i < kernel->updates; i++) {
        const uint32_t in = kernel->update_input + i, out = kernel->update_output + i;
        if (in >= made->input_count || out >= made->output_count || made->outputs[out] == ONXI_NO_SLOT)
            continue;
        const uint32_t from = made->inputs[in];
        if (from < pl->g->slot_count && pl->plan->slots[from]->place == ONXI_PLACE_INPUT &&
            pl->g->slots[from].uses == 1)
            pl->plan->slots[made->outputs[out]]->updates = from;
    }
}

/* Places the results and adds the step; a view needs no step. */
static onx_status place_step(onxi_run_planner *pl, draft *d, uint32_t *inputs, uint32_t *outs)
{
    onxi_run_plan *plan = pl->plan;
    const onxi_run_op *op = d->op;
    const onx_kernel *kernel = d->p.kernel;
    onxi_run_step made = { .op = op,
                           .kernel = kernel,
                           .inputs = inputs,
                           .input_count = d->count,
                           .outputs = outs,
                           .output_count = op->output_count,
                           .measured = d->measured,
                           .anew = d->anew };
    uint64_t cut_at = 0;
    for (uint32_t i = 0; i < op->output_count; i++) {
        bool done = outs[i] == ONXI_NO_SLOT;
        if (kernel->flags & ONXI_KERNEL_CUTS)
            ONX_TRY(onxi_run_plan_cut(pl, &made, i, &cut_at, &done));
        if (!done)
            ONX_TRY(i == 0 ? place_first(pl, d, &made, outs[i]) : onxi_run_plan_add_storage(pl, outs[i]));
    }
    if (kernel->flags & ONXI_KERNEL_JOINS)
        onxi_run_plan_join(pl, &made);
    const onx_value **bound = (const onx_value **)ONXI_ARRAY(plan->arena, void *, d->count + 1u);
    if (!bound)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < d->count; i++)
        bound[i] = onxi_run_plan_value(pl, inputs[i]);
    d->p.inputs = bound;
    made.prepare = d->p;
    if (kernel->flags & ONX_KERNEL_VIEW && d->count && inputs[0] != ONXI_NO_SLOT) {
        extend_lives(pl, &made, plan->step_count);
        return ONX_OK;
    }
    note_updates(pl, &made);
    onxi_run_step *step;
    ONX_TRY(onxi_run_plan_add_step(pl, &step));
    *step = made;
    extend_lives(pl, step, plan->step_count - 1);
    return ONX_OK;
}

/* Makes the step from what has been prepared, and counts its operands as used. */
static onx_status finish_step(onxi_run_planner *pl, draft *d)
{
    uint32_t *inputs, *outs;
    ONX_TRY(settle_outputs(pl, d, &outs));
    ONX_TRY(settle_inputs(pl, d, d->p.kernel, &inputs));
    ONX_TRY(place_step(pl, d, inputs, outs));
    for (uint32_t i = 0; i < d->count; i++)
        if (d->slots[i] != ONXI_NO_SLOT)
            onxi_run_plan_use_planned(pl, d->slots[i]);
    return ONX_OK;
}

onx_status onxi_run_plan_static(onxi_run_planner *pl, const onxi_run_op *op, uint32_t chain)
{
    const uint32_t before = pl->plan->step_count;
    draft d;
    ONX_TRY(draft_make(pl, &d, op, chain));
    d.alone = true;
    ONX_TRY(draft_prepare(pl, &d));
    ONX_TRY(finish_step(pl, &d));
    for (uint32_t n = d.taken; n < d.post_op_count; n++) /* post-operations that were not taken become ordinary steps */
        ONX_TRY(onxi_run_plan_static(pl, d.post_op_ops[n], 0));
    /* Including changes of layout that its row caused. */
    for (uint32_t i = before; d.chosen && i < pl->plan->step_count; i++)
        pl->plan->steps[i].chosen = d.chosen;
    return ONX_OK;
}

/* ---- chains ---- */

/* A chain while its step is made: its ops, and its operands, one for each use. */
typedef struct links {
    const onxi_run_op **ops;
    onxi_chain_op *parts;
    uint32_t *slots;
    uint32_t count, slot_count;
    const onx_value *bytes; /* operand for whose 256 values a table of results is made; NULL: none */
} links;

/* Did the kernel accept its operands in their present layouts? */
static bool takes_as_laid_out(const draft *d)
{
    const bool layouts = d->p.kernel->flags & ONX_KERNEL_LAYOUTS;
    const bool as_laid_out = onxi_element_as_laid_out(d->p.kernel, d->op->input_count, d->alike);
    for (uint32_t i = 0; i < d->count; i++) {
        const onx_layout *lies = d->as_laid_out[i] ? d->as_laid_out[i]->layout : NULL;
        const onx_layout *taken = layouts ? d->p.want[i] : as_laid_out ? lies : NULL;
        if (!onxi_run_layouts_equal(lies, taken))
            return false;
    }
    return true;
}

/* Prepares the op as if it ran alone, and adds it to the chain; *fits: it has a loop, and its result has the layout of
 * the other results. */
static onx_status link_op(onxi_run_planner *pl, const onxi_run_op *op, links *l, bool *fits)
{
    draft d;
    ONX_TRY(draft_make(pl, &d, op, 0));
    if (l->bytes)
        d.as_laid_out = d.row_major;
    ONX_TRY(draft_prepare(pl, &d));
    const onx_value *first = l->count ? onxi_run_plan_value(pl, l->ops[0]->outputs[0]) : d.outputs[0];
    *fits = onxi_element_is(d.p.kernel, op->input_count) && takes_as_laid_out(&d) &&
            (onxi_run_layouts_equal(first->layout, d.outputs[0]->layout) || onxi_blocked_alike(first, d.outputs[0]));
    if (!*fits)
        return ONX_OK;
    if (d.outputs[0]->layout) /* its readers process the padding, too */
        d.outputs[0]->size = d.outputs[0]->layout->size;
    onxi_chain_op *part = &l->parts[l->count];
    *part = (onxi_chain_op){ .kernel = d.p.kernel, .params = d.p.params };
    for (uint32_t i = 0; i < ONXI_ELEMENT_INPUTS; i++) {
        part->inputs[i] = ONXI_CHAIN_NONE;
        if (i >= op->input_count || op->inputs[i] == ONXI_NO_SLOT)
            continue;
        uint32_t from = 0;
        while (from < l->count && l->ops[from]->outputs[0] != op->inputs[i])
            from++;
        part->inputs[i] = from < l->count ? -1 - (int32_t)from : (int32_t)l->slot_count;
        if (from == l->count)
            l->slots[l->slot_count++] = op->inputs[i];
    }
    l->ops[l->count++] = op;
    return ONX_OK;
}

/* Prepares the op that ends the chain as if it ran alone; *out is NULL if it does not read lines that fit into
 * blocks. */
static onx_status link_end(onxi_run_planner *pl, const onxi_run_op *op, links *l, const onxi_chain_end **out)
{
    onx_arena *arena = pl->plan->arena;
    draft d;
    ONX_TRY(draft_make(pl, &d, op, 0));
    ONX_TRY(draft_prepare(pl, &d));
    const onx_kernel *k = d.p.kernel;
    const uint64_t line = k->flags & ONXI_KERNEL_LINES && d.p.params ? ((const onxi_lines *)d.p.params)->count : 0;
    *out = NULL;
    /* Long lines, of several blocks, pay off where the values between the ops would otherwise go to memory and back,
     * not just out of the L1 cache. There must be a line for each thread, because the ops before the end run on the
     * same threads. */
    const bool pays = line <= ONXI_CHAIN_LINE_SHORT ||
                      (d.as_laid_out[0]->size >= ONXI_CHAIN_LONG_BYTES && d.p.rows >= pl->e->session->threads);
    if (!line || line > ONXI_CHAIN_LINE || !pays || d.p.workspace || k->bind || !takes_as_laid_out(&d) ||
        d.p.rows != d.as_laid_out[0]->count / line)
        return ONX_OK;
    onxi_chain_end *end = ONXI_NEW(arena, onxi_chain_end);
    onx_prepared *prepared = ONXI_NEW(arena, onx_prepared);
    if (!end || !prepared)
        return ONX_E_MEMORY;
    *prepared = onxi_run_op_prepared(&d.p);
    *end = (onxi_chain_end){ .kernel = k,
                             .params = d.p.params,
                             .prepared = prepared,
                             .made = d.as_laid_out[0],
                             .thread_workspace = d.p.thread_workspace,
                             .input_count = op->input_count };
    for (uint32_t i = 1; i < op->input_count; i++) {
        end->inputs[i] = op->inputs[i] == ONXI_NO_SLOT ? ONXI_CHAIN_NONE : (int32_t)l->slot_count;
        if (op->inputs[i] != ONXI_NO_SLOT)
            l->slots[l->slot_count++] = op->inputs[i];
    }
    l->ops[l->count++] = op;
    *out = end;
    return ONX_OK;
}

/* Copies the arrays to the plan's arena in their final size. */
static bool keep_links(onx_arena *arena, links *l)
{
    const links from = *l;
    l->ops = (const onxi_run_op **)ONXI_ARRAY(arena, void *, l->count);
    l->slots = ONXI_ARRAY(arena, uint32_t, l->slot_count + 1u);
    if (!l->ops || !l->slots)
        return false;
    memcpy(l->ops, from.ops, l->count * sizeof *l->ops);
    memcpy(l->slots, from.slots, l->slot_count * sizeof *l->slots);
    return true;
}

static const onx_kernel *row_of(const links *l, const onxi_chain_end *end, const onx_value *output)
{
#if ONXI_PLATFORM_ROOMY
    if (l->bytes)
        return &onxi_kernel_table;
#else
    (void)l;
#endif
    return onxi_chain_row(end, output);
}

/* Adds one step for the whole chain. If `end` is not NULL, it is the last op. */
static onx_status chain_step(onxi_run_planner *pl, links *l, const onxi_chain_end *end)
{
    onx_arena *arena = pl->plan->arena;
    const onxi_run_op *last = l->ops[l->count - 1];
    const onx_kernel *row = row_of(l, end, onxi_run_plan_value(pl, last->outputs[0]));
    onxi_run_op *op = ONXI_NEW(arena, onxi_run_op);
    const onx_kernel **rows = (const onx_kernel **)ONXI_ARRAY(arena, void *, 1);
    draft d;
    if (!op || !rows || !keep_links(arena, l))
        return ONX_E_MEMORY;
    rows[0] = row;
    *op = *last;
    op->inputs = l->slots;
    op->input_count = l->slot_count;
    op->kernels = rows;
    op->kernel_count = 1;
    op->part_count = op->condition_count = 0;
    op->rule = NULL;
    op->links = l->ops;
    op->link_count = l->count;
    ONX_TRY(draft_make(pl, &d, op, 0));
    const onx_layout **want = (const onx_layout **)ONXI_ARRAY(arena, void *, d.count + 1u);
    d.outputs = (onx_value **)ONXI_ARRAY(arena, void *, 1);
    if (!want || !d.outputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < d.count; i++)
        want[i] = d.as_laid_out[i]->layout;
    d.outputs[0] = onxi_run_plan_value(pl, op->outputs[0]);
    d.p.inputs = d.as_laid_out;
    d.p.outputs = d.outputs;
    onxi_run_op_describe(pl->e, op, &d.p);
    d.p.kernel = row;
    d.p.want = want;
    if (ONXI_PLATFORM_ROOMY && l->bytes)
        ONX_TRY(onxi_chain_table_prepare(&d.p, l->parts, l->count, l->bytes));
    else
        ONX_TRY(onxi_chain_prepare(&d.p, l->parts, l->count - (end != NULL), end));
    return finish_step(pl, &d);
}

/* Resets the layouts that rows have given to results. */
static onx_status forget_layouts(onxi_run_planner *pl, uint32_t last)
{
    for (uint32_t i = pl->next[last];; i = pl->next[i]) {
        onx_value *v = onxi_run_plan_value(pl, pl->g->ops[i].outputs[0]);
        v->layout = NULL;
        if (!onxi_tensor_room(v->dtype, v->count, &v->size))
            return onxi_no_memory(pl->e->cx);
        if (i == last)
            return ONX_OK;
    }
}

/* Plans a separate step for each op. */
static onx_status plan_links(onxi_run_planner *pl, uint32_t last)
{
    ONX_TRY(forget_layouts(pl, last));
    for (uint32_t i = pl->next[last];; i = pl->next[i]) {
        ONX_TRY(onxi_run_plan_static(pl, &pl->g->ops[i], 0));
        if (i == last)
            return ONX_OK;
    }
}

static links new_links(onx_arena *scratch)
{
    return (links){ .ops = (const onxi_run_op **)ONXI_ARRAY(scratch, void *, ONXI_CHAIN_OPS),
                    .parts = ONXI_ARRAY(scratch, onxi_chain_op, ONXI_CHAIN_OPS),
                    .slots = ONXI_ARRAY(scratch, uint32_t, ONXI_CHAIN_OPERANDS) };
}

#if ONXI_PLATFORM_ROOMY
static bool is_of_bytes(const onx_value *v)
{
    return v->dtype == ONX_INT8 || v->dtype == ONX_UINT8;
}

/* Finds the 8-bit operand of a chain that maps each of its elements to an 8-bit result, where all other operands are
 * constants of one element; NULL: the chain is not of this kind. */
static onx_status find_bytes(onxi_run_planner *pl, uint32_t last, const onx_value **out)
{
    enum { LEAST = 1024 }; /* fewest elements for which a table pays off */
    const onx_value *y = onxi_run_plan_value(pl, pl->g->ops[last].outputs[0]), *found = NULL;
    const uint32_t first = pl->next[last];
    *out = NULL;
    if (!is_of_bytes(y) || y->count < LEAST)
        return ONX_OK;
    for (uint32_t i = first;; i = pl->next[i]) {
        const onxi_run_op *op = &pl->g->ops[i];
        for (uint32_t k = 0; k < op->input_count; k++) {
            uint32_t from = first;
            if (op->inputs[k] == ONXI_NO_SLOT)
                continue;
            while (from != i && pl->g->ops[from].outputs[0] != op->inputs[k])
                from = pl->next[from];
            if (from != i)
                continue;
            ONX_TRY(onxi_run_plan_elements(pl, op->inputs[k]));
            const onx_value *v = onxi_run_plan_value(pl, op->inputs[k]);
            if (pl->plan->slots[op->inputs[k]]->place == ONXI_PLACE_CONSTANT && v->count == 1 && v->data)
                continue;
            if ((found && v != found) || !is_of_bytes(v) || v->count != y->count)
                return ONX_OK;
            found = v;
        }
        if (i == last)
            break;
    }
    *out = found;
    return ONX_OK;
}

/* Plans the chain as a table lookup; *done: it did. */
static onx_status plan_table(onxi_run_planner *pl, uint32_t last, bool *done)
{
    links l = new_links(pl->e->scratch);
    bool fits = true;
    *done = false;
    if (!l.ops || !l.parts || !l.slots)
        return ONX_E_MEMORY;
    ONX_TRY(find_bytes(pl, last, &l.bytes));
    if (!l.bytes)
        return ONX_OK;
    for (uint32_t i = pl->next[last]; fits; i = pl->next[i]) {
        ONX_TRY(link_op(pl, &pl->g->ops[i], &l, &fits));
        if (i == last)
            break;
    }
    const onx_status status = fits ? chain_step(pl, &l, NULL) : ONX_E_UNSUPPORTED;
    *done = status == ONX_OK;
    return status == ONX_E_UNSUPPORTED ? forget_layouts(pl, last) : status;
}
#endif

onx_status onxi_run_plan_chain(onxi_run_planner *pl, uint32_t last)
{
    links l = new_links(pl->e->scratch);
    bool fits = true;
    const onxi_chain_end *end = NULL;
    const onxi_run_op *ended = onxi_run_plan_ends_chain(&pl->g->ops[last]) ? &pl->g->ops[last] : NULL;
    if (!l.ops || !l.parts || !l.slots)
        return ONX_E_MEMORY;
#if ONXI_PLATFORM_ROOMY
    bool done = false;
    if (!ended)
        ONX_TRY(plan_table(pl, last, &done));
    if (done)
        return ONX_OK;
#endif
    for (uint32_t i = pl->next[last]; fits; i = pl->next[i]) {
        if (i != last || !ended)
            ONX_TRY(link_op(pl, &pl->g->ops[i], &l, &fits));
        if (i == last)
            break;
    }
    if (fits && ended)
        ONX_TRY(link_end(pl, ended, &l, &end));
    if (fits && (end || !ended))
        return chain_step(pl, &l, end);
    if (fits && l.count > 1) { /* the chain without its end */
        onxi_run_plan_value(pl, ended->outputs[0])->layout = NULL;
        ONX_TRY(chain_step(pl, &l, NULL));
        return onxi_run_plan_static(pl, ended, 0);
    }
    return plan_links(pl, last);
}
