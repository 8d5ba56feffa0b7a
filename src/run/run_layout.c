/* run_layout.c - the slots of a plan, their shared memory, and the layouts of their values. */
#include "run/run_plan.h"

/* ---- growing ---- */

onx_status onxi_run_plan_add_slot(onxi_run_planner *pl, const onx_value *type, onxi_run_residence place, uint32_t *out)
{
    onxi_run_plan *plan = pl->plan;
    onxi_run_plan_slot *s = ONXI_NEW(plan->arena, onxi_run_plan_slot);
    if (!s || !ONXI_GROW_IN(plan->arena, plan->slots, plan->slot_room, (uint64_t)plan->slot_count + 1))
        return ONX_E_MEMORY;
    *s = (onxi_run_plan_slot){ .value = *type,
                               .place = place,
                               .storage = ONXI_NO_SLOT,
                               .base = ONXI_NO_SLOT,
                               .updates = ONXI_NO_SLOT,
                               .reordered = ONXI_NO_SLOT };
    s->value.data = NULL;
    plan->slots[plan->slot_count] = s;
    *out = plan->slot_count++;
    return ONX_OK;
}

onx_status onxi_run_plan_add_step(onxi_run_planner *pl, onxi_run_step **out)
{
    onxi_run_plan *plan = pl->plan;
    if (!ONXI_GROW_IN(plan->arena, plan->steps, plan->step_room, (uint64_t)plan->step_count + 1))
        return ONX_E_MEMORY;
    *out = &plan->steps[plan->step_count++];
    memset(*out, 0, sizeof **out);
    return ONX_OK;
}

onx_status onxi_run_plan_add_storage(onxi_run_planner *pl, uint32_t slot)
{
    onxi_run_plan *plan = pl->plan;
    if (!ONXI_GROW_IN(plan->arena, plan->storages, plan->storage_room, (uint64_t)plan->storage_count + 1))
        return ONX_E_MEMORY;
    onxi_run_plan_slot *s = plan->slots[slot];
    plan->storages[plan->storage_count] = (onxi_run_storage){ .size = s->value.size,
                                                              .whole = ONXI_NO_SLOT,
                                                              .first = plan->step_count,
                                                              .last = plan->step_count,
                                                              .uses_left = s->uses_left };
    s->storage = plan->storage_count++;
    return ONX_OK;
}

void onxi_run_plan_join_storage(onxi_run_planner *pl, uint32_t slot, uint32_t storage)
{
    onxi_run_plan_slot *s = pl->plan->slots[slot];
    s->storage = storage;
    onxi_run_plan_storage(pl, slot)->uses_left += s->uses_left;
}

onxi_run_storage *onxi_run_plan_storage(const onxi_run_planner *pl, uint32_t slot)
{
    uint32_t storage = slot == ONXI_NO_SLOT ? ONXI_NO_SLOT : pl->plan->slots[slot]->storage;
    uint64_t at;
    return storage == ONXI_NO_SLOT ? NULL : &pl->plan->storages[onxi_run_plan_whole(pl->plan, storage, &at)];
}

void onxi_run_plan_extend_life(onxi_run_planner *pl, uint32_t slot, uint32_t step)
{
    onxi_run_storage *storage = onxi_run_plan_storage(pl, slot);
    if (storage && pl->plan->slots[slot]->place == ONXI_PLACE_BUFFER && storage->last < step)
        storage->last = step;
}

void onxi_run_plan_use_planned(onxi_run_planner *pl, uint32_t slot)
{
    for (uint32_t at = slot; at != ONXI_NO_SLOT; at = pl->plan->slots[at]->reordered) {
        onxi_run_plan_slot *s = pl->plan->slots[at];
        if (s->uses_left)
            s->uses_left--;
        onxi_run_storage *storage = onxi_run_plan_storage(pl, at);
        if (storage && storage->uses_left)
            storage->uses_left--;
    }
}

onx_value *onxi_run_plan_value(onxi_run_planner *pl, uint32_t slot)
{
    return slot == ONXI_NO_SLOT ? NULL : &pl->plan->slots[slot]->value;
}

onx_status onxi_run_plan_elements(onxi_run_planner *pl, uint32_t slot)
{
    if (slot == ONXI_NO_SLOT || slot >= pl->g->slot_count || !pl->g->slots[slot].source)
        return ONX_OK;
    ONX_TRY(onxi_run_constant_make(pl->g, slot));
    onxi_run_plan_slot *s = pl->plan->slots[slot];
    if (s->value.data == (const void *)pl->g->slots[slot].source->raw)
        s->value.data = pl->g->slots[slot].source->value->data;
    return ONX_OK;
}

/* ---- layouts ---- */

onx_status onxi_run_session_reorders(onxi_run_session *s)
{
    const onxi_kernel_wanted want = {
        .domain = onx_str_of("onx"), .name = onx_str_of("Reorder"), .since = 1, .by_rule = true
    };
    return onxi_kernel_candidates(s->kernels, s->arena, &want, &s->reorders, &s->reorder_count);
}

onx_status onxi_run_reorder_prepare(const onxi_run_session *s, const onx_layout *layout, onx_prepare *p)
{
    for (uint32_t i = 0; i < s->reorder_count; i++) {
        p->kernel = s->reorders[i];
        if (!p->kernel->prepare || !onxi_kernel_suits(p->kernel, p))
            continue;
        const onx_status status = p->kernel->prepare(p);
        if (status != ONX_E_UNSUPPORTED)
            return status;
    }
    p->kernel = layout->ops->reorder;
    return p->kernel->prepare ? p->kernel->prepare(p) : ONX_OK;
}

bool onxi_run_layouts_equal(const onx_layout *a, const onx_layout *b)
{
    return a == b || (a && b && a->ops == b->ops && a->ops->equal(a, b));
}

onx_status onxi_run_plan_in_layout(onxi_run_planner *pl, uint32_t slot, const onx_layout *layout, uint32_t *out)
{
    onxi_run_plan *plan = pl->plan;
    for (uint32_t at = slot; at != ONXI_NO_SLOT; at = plan->slots[at]->reordered)
        if (onxi_run_layouts_equal(plan->slots[at]->value.layout, layout)) {
            *out = at;
            return ONX_OK;
        }
    return onxi_run_plan_convert(pl, slot, layout, out);
}

onx_status onxi_run_plan_convert(onxi_run_planner *pl, uint32_t slot, const onx_layout *layout, uint32_t *out)
{
    onxi_run_plan *plan = pl->plan;
    ONX_TRY(onxi_run_plan_elements(pl, slot));
    onxi_run_plan_slot *from = plan->slots[slot];
    if (layout && from->value.layout && layout->ops != from->value.layout->ops) { /* row-major is what both know */
        ONX_TRY(onxi_run_plan_in_layout(pl, slot, NULL, &slot));
        from = plan->slots[slot];
    }
    onx_value type = from->value;
    type.layout = layout;
    uint64_t count = type.count;
    if (layout)
        type.size = layout->size;
    else if (!onxi_tensor_room(type.dtype, count, &type.size))
        return onxi_no_memory(pl->e->cx);
    ONX_TRY(onxi_run_plan_add_slot(pl, &type, ONXI_PLACE_BUFFER, out));
    onxi_run_plan_slot *to = plan->slots[*out];
    to->uses_left = from->uses_left;
    to->reordered = from->reordered;
    from->reordered = *out;
    ONX_TRY(onxi_run_plan_add_storage(pl, *out));
    onxi_run_step *step;
    ONX_TRY(onxi_run_plan_add_step(pl, &step));
    uint32_t index = plan->step_count - 1;
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
                                   .input_count = 1,
                                   .output_count = 1,
                                   .inputs = values,
                                   .outputs = (onx_value *const *)(uintptr_t)(const void *)(values + 1),
                                   .threads = pl->e->session->threads,
                                   .rows = 1,
                                   .grain = 1,
                                   .overwrite = -1 };
    onxi_run_plan_extend_life(pl, slot, index);
    onxi_run_plan_extend_life(pl, *out, index);
    ONX_TRY(onxi_run_reorder_prepare(pl->e->session, layout ? layout : from->value.layout, &step->prepare));
    step->kernel = step->prepare.kernel;
    return ONX_OK;
}
