/* run_aim.c - computes outputs of the main graph directly in the caller's memory, so that nothing is copied. */
#include "run/run.h"

enum { AIM_ALIGN = 16, AIM_PAIRS_MAX = 65536 };
#define NOT_UPDATED UINT32_MAX

/* The storage of output `i`, unless another storage contains it: then that one decides its place. */
static uint32_t own_storage(const onxi_run_plan *plan, uint32_t i)
{
    const uint32_t storage = plan->slots[plan->outputs[i]]->storage;
    const bool own = storage != ONXI_NO_SLOT && storage < plan->storage_count;
    return own && plan->storages[storage].whole == ONXI_NO_SLOT ? storage : ONXI_NO_SLOT;
}

static uint32_t operand_count(const onxi_run_plan *plan)
{
    return plan->graph->output_count + plan->graph->input_count;
}

bool onxi_run_aim_new(onxi_run_state *st)
{
    const onxi_run_graph *g = st->plan->graph;
    const uint32_t count = operand_count(st->plan);
    onxi_run_aim *a = &st->aim;
    a->from = onxi_apart_new(st->cx, (count + 1u) * sizeof *a->from);
    a->to = onxi_apart_new(st->cx, (count + 1u) * sizeof *a->to);
    a->order = onxi_apart_new(st->cx, (count + 1u) * sizeof *a->order);
    a->updated = onxi_apart_new(st->cx, (g->output_count + 1u) * sizeof *a->updated);
    a->apart = onxi_apart_new(st->cx, (count + 1u) * sizeof *a->apart);
    a->storage = onxi_apart_new(st->cx, (g->output_count + 1u) * sizeof *a->storage);
    if (!a->from || !a->to || !a->order || !a->updated || !a->apart || !a->storage)
        return false;
    for (uint32_t i = 0; i < count; i++)
        a->order[i] = i;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t updates = st->plan->slots[st->plan->outputs[i]]->updates;
        a->updated[i] = NOT_UPDATED;
        a->storage[i] = own_storage(st->plan, i);
        for (uint32_t k = 0; k < g->input_count && updates != ONXI_NO_SLOT; k++)
            if (g->inputs[k] == updates)
                a->updated[i] = k;
    }
    return true;
}

void onxi_run_aim_free(onxi_run_state *st)
{
    const uint32_t count = operand_count(st->plan);
    onxi_run_aim *a = &st->aim;
    onxi_apart_free(st->cx, a->from, (count + 1u) * sizeof *a->from);
    onxi_apart_free(st->cx, a->to, (count + 1u) * sizeof *a->to);
    onxi_apart_free(st->cx, a->order, (count + 1u) * sizeof *a->order);
    onxi_apart_free(st->cx, a->updated, (st->plan->graph->output_count + 1u) * sizeof *a->updated);
    onxi_apart_free(st->cx, a->apart, (count + 1u) * sizeof *a->apart);
    onxi_apart_free(st->cx, a->storage, (st->plan->graph->output_count + 1u) * sizeof *a->storage);
}

static void set_range(onxi_run_aim *a, uint32_t which, const onx_value *v)
{
    a->from[which] = v && v->size ? (uintptr_t)v->data : 0;
    a->to[which] = a->from[which] ? a->from[which] + v->size : 0;
}

/* Notes the address ranges of the outputs and then of the inputs. Returns false if an input is not a tensor, as its
 * memory is then not one range. An input that an output updates in place gets no range of its own. */
static bool set_ranges(onxi_run_aim *a, const onxi_run_graph *g, const onx_value *const *inputs,
                       onx_value *const *outputs)
{
    const uint32_t outs = g->output_count;
    for (uint32_t i = 0; i < outs; i++)
        set_range(a, i, outputs[i]);
    for (uint32_t k = 0; k < g->input_count; k++) {
        if (inputs[k] && inputs[k]->kind != ONX_VALUE_TENSOR)
            return false;
        set_range(a, outs + k, inputs[k]);
    }
    for (uint32_t i = 0; i < outs; i++) {
        const uint32_t k = a->updated[i];
        if (k != NOT_UPDATED && a->from[i] == a->from[outs + k] && a->to[i] == a->to[outs + k])
            a->from[outs + k] = a->to[outs + k] = 0;
    }
    return true;
}

/* Finds the outputs whose memory overlaps no other output or input. Ranges are visited in the order of their addresses;
 * a range that begins before an earlier one has ended overlaps it. The order is kept between runs, since it rarely
 * changes. */
static void find_apart(onxi_run_aim *a, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t which = a->order[i];
        uint32_t k = i;
        for (; k && a->from[a->order[k - 1]] > a->from[which]; k--)
            a->order[k] = a->order[k - 1];
        a->order[k] = which;
    }
    uintptr_t end = 0;
    uint32_t last = 0; /* the range that ends at `end` */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t which = a->order[i];
        a->apart[which] = a->to[which] && a->from[which] >= end;
        if (a->to[which] && a->from[which] < end)
            a->apart[last] = false;
        if (a->to[which] > end) {
            end = a->to[which];
            last = which;
        }
    }
}

/* May output `i` be computed directly in the caller's value? All values that share the storage are written there then,
 * so none may be larger. A value with the right dims is used only if its element count and size match them, too. */
static bool fits(const onxi_run_plan *plan, uint32_t i, const onx_value *out)
{
    const onxi_run_plan_slot *slot = plan->slots[plan->outputs[i]];
    const onx_value *want = &slot->value;
    return slot->place == ONXI_PLACE_BUFFER && want->dtype != ONX_STRING && !want->layout &&
           out->kind == ONX_VALUE_TENSOR && out->dtype == want->dtype && out->rank == want->rank &&
           (out->dims || !out->rank) && onxi_same_dims(out->dims, want->dims, want->rank) && !out->layout &&
           out->count == want->count && out->size == want->size && out->size && out->data &&
           (uintptr_t)out->data % AIM_ALIGN == 0 && plan->storages[slot->storage].size <= out->size;
}

/* Does the memory of some output overlap that of another output or of an input? */
static bool find_overlaps(const onxi_run_aim *a, uint32_t outs)
{
    for (uint32_t i = 0; i < outs; i++)
        if (a->to[i] && !a->apart[i])
            return true;
    return false;
}

void onxi_run_aim_outputs(onxi_run_state *st, const onx_value *const *inputs, onx_value *const *outputs)
{
    const onxi_run_plan *plan = st->plan;
    const uint32_t count = operand_count(plan), outs = plan->graph->output_count;
    const bool some = (uint64_t)count * count <= AIM_PAIRS_MAX && set_ranges(&st->aim, plan->graph, inputs, outputs);
    const uint32_t *own = st->aim.storage;
    bool moved = false;
    if (some)
        find_apart(&st->aim, count);
    st->aim.overlaps = !some || find_overlaps(&st->aim, outs);
    for (uint32_t i = 0; i < outs; i++)
        if (own[i] != ONXI_NO_SLOT)
            st->storage_at[own[i]] = st->buffer + plan->storages[own[i]].offset;
    /* Of several outputs that share a storage, the first one with its own memory gets it. */
    for (uint32_t i = 0; some && i < outs; i++)
        if (own[i] != ONXI_NO_SLOT && outputs[i] && st->aim.apart[i] &&
            st->storage_at[own[i]] == st->buffer + plan->storages[own[i]].offset && fits(plan, i, outputs[i]))
            st->storage_at[own[i]] = outputs[i]->data;
    for (uint32_t i = 0; i < outs && !moved; i++)
        moved = own[i] != ONXI_NO_SLOT && plan->slots[plan->outputs[i]]->place == ONXI_PLACE_BUFFER &&
                st->values[plan->outputs[i]].data != st->storage_at[own[i]];
    for (uint32_t i = 0; moved && i < plan->slot_count; i++)
        if (plan->slots[i]->place == ONXI_PLACE_BUFFER && plan->slots[i]->storage != ONXI_NO_SLOT) {
            const onxi_run_storage *s = &plan->storages[plan->slots[i]->storage];
            st->values[i].data =
                s->whole == ONXI_NO_SLOT ? st->storage_at[plan->slots[i]->storage] : st->storage_at[s->whole] + s->at;
        }
}
