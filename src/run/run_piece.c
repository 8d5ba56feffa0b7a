/* run_piece.c - values that are parts of other values: outputs of a Split inside its input, and inputs of a Concat
 * inside its output, so that nothing is copied. The kernels recognise operands that are already in place, and copy the
 * others. */
#include "run/run_plan.h"

/* An input of a Concat is copied if it was made more than PIECE_STEPS steps earlier, because the whole output would
 * take memory from that step on. */
enum { PIECE_ALIGN = 64, PIECE_STEPS = 64 };

uint32_t onxi_run_plan_whole(onxi_run_plan *plan, uint32_t storage, uint64_t *at)
{
    onxi_run_storage *const all = plan->storages;
    uint32_t whole = storage;
    uint64_t sum = 0;
    for (; all[whole].whole != ONXI_NO_SLOT; whole = all[whole].whole)
        sum += all[whole].at;
    *at = sum;
    while (all[storage].whole != ONXI_NO_SLOT) { /* storages on the way now refer to `whole` directly */
        const uint32_t next = all[storage].whole;
        const uint64_t here = all[storage].at;
        all[storage].whole = whole;
        all[storage].at = sum;
        sum -= here;
        storage = next;
    }
    return whole;
}

/* Is the piece contiguous in the whole? Yes if all dims before the axis of the split are 1. */
static bool is_stretch(const onx_value *whole, const onx_value *piece)
{
    uint32_t lead = 0;
    if (whole->kind != ONX_VALUE_TENSOR || piece->kind != ONX_VALUE_TENSOR || whole->dtype == ONX_STRING ||
        piece->dtype != whole->dtype || piece->rank != whole->rank || piece->layout || whole->layout ||
        !onxi_element_size(whole->dtype))
        return false;
    while (lead < whole->rank && whole->dims[lead] == 1)
        lead++;
    return lead < whole->rank && onxi_same_dims(whole->dims + lead + 1, piece->dims + lead + 1, whole->rank - lead - 1);
}

#define UNKNOWN UINT64_MAX /* the offset of an output is unknown after an omitted output without a type */

onx_status onxi_run_plan_cut(onxi_run_planner *pl, const onxi_run_step *step, uint32_t i, uint64_t *at, bool *done)
{
    onxi_run_plan *plan = pl->plan;
    const uint32_t in = step->inputs[0];
    const uint64_t here = *at;
    onxi_run_plan_slot *out = step->outputs[i] == ONXI_NO_SLOT ? NULL : plan->slots[step->outputs[i]];
    *done = !out;
    *at = UNKNOWN;
    if (!out || here == UNKNOWN || in == ONXI_NO_SLOT || plan->slots[in]->place != ONXI_PLACE_BUFFER ||
        plan->slots[in]->storage == ONXI_NO_SLOT)
        return ONX_OK;
    const onx_value *whole = &plan->slots[in]->value;
    if (!is_stretch(whole, &out->value) || out->value.size > whole->size - here)
        return ONX_OK;
    *at = here + out->value.size;
    if (here % PIECE_ALIGN || !out->value.size)
        return ONX_OK;
    ONX_TRY(onxi_run_plan_add_storage(pl, step->outputs[i]));
    plan->storages[out->storage].whole = plan->slots[in]->storage;
    plan->storages[out->storage].at = here;
    onxi_run_plan_storage(pl, in)->uses_left += out->uses_left;
    *done = true;
    return ONX_OK;
}

/* Places a storage of `size` bytes inside of another one, at offset `at`, unless it has another size, is a piece
 * already, or is too old. */
static void put(onxi_run_plan *plan, uint32_t piece, uint64_t size, uint32_t whole, uint64_t at, uint32_t step)
{
    onxi_run_storage *p = &plan->storages[piece], *w = &plan->storages[whole];
    if (piece == whole || p->whole != ONXI_NO_SLOT || p->size != size || p->first + PIECE_STEPS < step)
        return;
    p->whole = whole;
    p->at = at;
    w->uses_left += p->uses_left;
    if (p->first < w->first)
        w->first = p->first;
    if (p->last > w->last)
        w->last = p->last;
}

void onxi_run_plan_join(onxi_run_planner *pl, const onxi_run_step *step)
{
    onxi_run_plan *plan = pl->plan;
    const onxi_run_plan_slot *out = step->outputs[0] == ONXI_NO_SLOT ? NULL : plan->slots[step->outputs[0]];
    uint64_t at = 0;
    if (!out || out->place != ONXI_PLACE_BUFFER || out->storage == ONXI_NO_SLOT)
        return;
    for (uint32_t i = 0; i < step->input_count; i++) {
        const onxi_run_plan_slot *in = step->inputs[i] == ONXI_NO_SLOT ? NULL : plan->slots[step->inputs[i]];
        if (!in || !is_stretch(&out->value, &in->value))
            return;
        if (in->place == ONXI_PLACE_BUFFER && in->storage != ONXI_NO_SLOT && in->value.size && at % PIECE_ALIGN == 0 &&
            in->value.size <= out->value.size - at)
            put(plan, in->storage, in->value.size, out->storage, at, plan->step_count);
        at += in->value.size;
    }
}
