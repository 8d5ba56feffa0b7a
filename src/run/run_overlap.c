/* run_overlap.c - which operands of a step have memory that its kernel may overwrite. Memory is shared by ranges of
 * bytes: a value may be part of another one (run_piece.c), a view of it, or its copy in another layout. */
#include "run/run_plan.h"

#include <stdlib.h>

/* Counts the uses of storages by the operands, as onxi_run_plan_use_planned will subtract them; `reset` undoes it. */
static void count_here(onxi_run_planner *pl, const uint32_t *slots, uint32_t count, bool reset)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = slots[i]; at != ONXI_NO_SLOT; at = pl->plan->slots[at]->reordered) {
            onxi_run_storage *storage = onxi_run_plan_storage(pl, at);
            if (storage)
                storage->here = reset ? 0 : storage->here + 1;
        }
}

/* The bytes of an operand, in the storage that contains it. */
typedef struct extent {
    uint64_t from, to;
    uint32_t whole, operand;
    const onx_value *value;
} extent;

static int by_place(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    if (x->whole != y->whole)
        return x->whole < y->whole ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Are these the same bytes in the same order? Views of one size have one order of elements. */
static bool is_same(const extent *a, const extent *b)
{
    return a->whole == b->whole && a->from == b->from && a->to == b->to && a->value->dtype == b->value->dtype &&
           onxi_run_layouts_equal(a->value->layout, b->value->layout);
}

/* Clears the flags of operands that share bytes with another operand. With `alike`, operands that are exactly the same
 * bytes do not count as overlapping. In sorted order, an extent that overlaps any earlier one overlaps the one that
 * reaches farthest. */
static void strike_overlaps(const extent *list, uint32_t count, bool alike, bool *flags)
{
    for (uint32_t i = 1, far = 0; i < count; i++) {
        if (list[i].whole == list[far].whole && list[i].from < list[far].to &&
            !(alike && is_same(&list[i], &list[far])))
            flags[list[i].operand] = flags[list[far].operand] = false;
        if (list[i].whole != list[far].whole || list[i].to > list[far].to)
            far = i;
    }
    /* One of several operands that are the same bytes cannot be overwritten where another one cannot. */
    for (uint32_t i = 1; i < count; i++)
        if (is_same(&list[i], &list[i - 1]) && !flags[list[i - 1].operand])
            flags[list[i].operand] = false;
    for (uint32_t i = count; i-- > 1;)
        if (is_same(&list[i], &list[i - 1]) && !flags[list[i].operand])
            flags[list[i - 1].operand] = false;
}

onx_status onxi_run_plan_find_free(onxi_run_planner *pl, const uint32_t *slots, const uint32_t *read, uint32_t count,
                                   onxi_run_others others, bool *out)
{
    enum { FEW = 16 };
    const onxi_run_plan *plan = pl->plan;
    extent few[FEW], *list = count <= FEW ? few : ONXI_ARRAY(pl->e->scratch, extent, count);
    uint32_t n = 0;
    if (!list)
        return ONX_E_MEMORY;
    count_here(pl, slots, count, false);
    for (uint32_t i = 0; i < count; i++) {
        const onxi_run_storage *storage = onxi_run_plan_storage(pl, read[i]);
        const bool inside = storage && plan->slots[read[i]]->place == ONXI_PLACE_BUFFER;
        out[i] = inside && storage->uses_left <= storage->here && (others != ONXI_OTHERS_NONE || storage->here == 1);
        if (!inside)
            continue;
        extent *e = &list[n++];
        *e = (extent){ .operand = i, .value = &plan->slots[read[i]]->value };
        e->whole = onxi_run_plan_whole(pl->plan, plan->slots[read[i]]->storage, &e->from);
        e->to = e->from + e->value->size;
    }
    count_here(pl, slots, count, true);
    if (n > 1) {
        qsort(list, n, sizeof *list, by_place);
        strike_overlaps(list, n, others == ONXI_OTHERS_ALIKE, out);
    }
    return ONX_OK;
}
