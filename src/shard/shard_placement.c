/* shard_placement.c - which device has which shard of a value, and the communication between two placements. */
#include "shard/shard.h"

/* ---- creating placements ---- */

static bool is_same(const onxi_placement *p, uint32_t axis_count, const uint32_t *axis, const uint32_t *count,
                    const int32_t *at, uint32_t devices)
{
    return p->axis_count == axis_count && memcmp(p->at, at, devices * sizeof *at) == 0 &&
           (!axis_count || (memcmp(p->axis, axis, axis_count * sizeof *axis) == 0 &&
                            memcmp(p->count, count, axis_count * sizeof *count) == 0));
}

static bool list_holders(onxi_placements *all, onxi_placement *p)
{
    uint32_t *first = ONXI_ARRAY(all->arena, uint32_t, (size_t)p->shards + 2);
    uint32_t *holder = ONXI_ARRAY(all->arena, uint32_t, (size_t)all->devices + 1);
    if (!first || !holder)
        return false;
    for (uint32_t d = 0; d < all->devices; d++)
        if (p->at[d] >= 0)
            first[p->at[d] + 2]++;
    for (uint32_t j = 0; j < p->shards; j++) {
        if (!first[j + 2])
            return false;
        first[j + 2] += first[j + 1];
    }
    for (uint32_t d = 0; d < all->devices; d++)
        if (p->at[d] >= 0)
            holder[first[p->at[d] + 1]++] = d;
    p->first = first;
    p->holder = holder;
    return true;
}

const onxi_placement *onxi_placement_make(onxi_placements *all, uint32_t axis_count, const uint32_t *axis,
                                          const uint32_t *count, const int32_t *at)
{
    onxi_placement made = { .shards = 1 };
    for (uint32_t i = 0; i < axis_count; i++)
        if (count[i] > 1) {
            made.axis[made.axis_count] = axis[i];
            made.count[made.axis_count++] = count[i];
            made.shards *= count[i];
        }
    for (onxi_placement *p = all->all; p; p = p->next)
        if (is_same(p, made.axis_count, made.axis, made.count, at, all->devices))
            return p;
    onxi_placement *p = ONXI_NEW(all->arena, onxi_placement);
    int32_t *own = ONXI_ARRAY(all->arena, int32_t, all->devices);
    if (!p || !own)
        return NULL;
    memcpy(own, at, all->devices * sizeof *own);
    *p = made;
    p->at = own;
    if (!list_holders(all, p))
        return NULL;
    p->next = all->all;
    return all->all = p;
}

const onxi_placement *onxi_placement_whole(onxi_placements *all, const bool *on)
{
    int32_t *at = ONXI_ARRAY(all->arena, int32_t, all->devices);
    for (uint32_t d = 0; at && d < all->devices; d++)
        at[d] = on && !on[d] ? -1 : 0;
    return at ? onxi_placement_make(all, 0, NULL, NULL, at) : NULL;
}

/* ---- boxes ---- */

onxi_box onxi_placement_box(const onxi_placement *p, const int64_t *dims, uint32_t rank, uint32_t index)
{
    onxi_box box = { { 0 }, { 0 } };
    for (uint32_t i = 0; i < rank; i++)
        box.size[i] = dims[i];
    for (uint32_t i = p->axis_count; i-- > 0; index /= p->count[i]) {
        const uint32_t axis = p->axis[i], at = index % p->count[i];
        box.start[axis] = onxi_shard_start(dims[axis], p->count[i], at);
        box.size[axis] = onxi_shard_start(dims[axis], p->count[i], at + 1) - box.start[axis];
    }
    return box;
}

bool onxi_box_meet(const onxi_box *a, const onxi_box *b, uint32_t rank, onxi_box *out)
{
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t end_a = a->start[i] + a->size[i], end_b = b->start[i] + b->size[i];
        const int64_t start = a->start[i] > b->start[i] ? a->start[i] : b->start[i];
        const int64_t end = end_a < end_b ? end_a : end_b;
        if (start >= end)
            return false;
        out->start[i] = start;
        out->size[i] = end - start;
    }
    return true;
}

bool onxi_box_same(const onxi_box *a, const onxi_box *b, uint32_t rank)
{
    return onxi_same_dims(a->start, b->start, rank) && onxi_same_dims(a->size, b->size, rank);
}

int64_t onxi_box_count(const onxi_box *b, uint32_t rank)
{
    int64_t count = 1; /* cannot overflow: a part of a tensor whose elements were counted */
    for (uint32_t i = 0; i < rank; i++)
        count *= b->size[i];
    return count;
}

/* ---- transfers between placements ---- */

uint64_t onxi_placement_cost(const onxi_placements *all, const onxi_placement *from, const onxi_placement *to,
                             const int64_t *dims, uint32_t rank)
{
    uint64_t cost = 0;
    if (from == to)
        return 0;
    for (uint32_t d = 0; d < all->devices; d++) {
        if (to->at[d] < 0)
            continue;
        const onxi_box want = onxi_placement_box(to, dims, rank, (uint32_t)to->at[d]);
        onxi_box common;
        cost += (uint64_t)onxi_box_count(&want, rank);
        if (from->at[d] < 0)
            continue;
        const onxi_box have = onxi_placement_box(from, dims, rank, (uint32_t)from->at[d]);
        if (onxi_box_meet(&have, &want, rank, &common))
            cost -= (uint64_t)onxi_box_count(&common, rank);
    }
    return cost;
}

uint32_t onxi_placement_source(const onxi_placement *p, uint32_t index, uint32_t device)
{
    const uint32_t first = p->first[index], count = p->first[index + 1] - first;
    return p->holder[first + device % count];
}
