/* run_memory.c - assigns an offset in one buffer to each storage of a plan: storages whose lifetimes do not overlap
 * share bytes. Where plans are checked, a zone that belongs to nothing follows each storage. */
#include "run/run_plan.h"
#include "run/run_zones.h"

/* Maximum number of holes that are searched before the buffer grows instead; this keeps planning linear. */
#define SEARCH_MAX 512

typedef struct hole {
    uint64_t at, size;
} hole;

typedef struct space {
    hole *holes; /* sorted by address; no two are adjacent */
    uint32_t count, room;
    uint64_t end;
    onx_arena *arena;
} space;

static onx_status space_give(space *s, uint64_t at, uint64_t size)
{
    uint32_t lo = 0, hi = s->count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->holes[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool left = lo > 0 && s->holes[lo - 1].at + s->holes[lo - 1].size == at;
    bool right = lo < s->count && at + size == s->holes[lo].at;
    if (left && right) {
        s->holes[lo - 1].size += size + s->holes[lo].size;
        memmove(&s->holes[lo], &s->holes[lo + 1], (s->count - lo - 1) * sizeof *s->holes);
        s->count--;
    } else if (left) {
        s->holes[lo - 1].size += size;
    } else if (right) {
        s->holes[lo].at = at;
        s->holes[lo].size += size;
    } else {
        if (!ONXI_GROW_IN(s->arena, s->holes, s->room, (uint64_t)s->count + 1))
            return ONX_E_MEMORY;
        memmove(&s->holes[lo + 1], &s->holes[lo], (s->count - lo) * sizeof *s->holes);
        s->holes[lo] = (hole){ at, size };
        s->count++;
    }
    return ONX_OK;
}

static bool space_take(space *s, uint64_t size, uint64_t *at)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0, seen = 0; i < s->count && seen < SEARCH_MAX; i++, seen++)
        if (s->holes[i].size >= size && (best == UINT32_MAX || s->holes[i].size < s->holes[best].size))
            best = i;
    if (best != UINT32_MAX) {
        *at = s->holes[best].at;
        s->holes[best].at += size;
        s->holes[best].size -= size;
        if (!s->holes[best].size) {
            memmove(&s->holes[best], &s->holes[best + 1], (s->count - best - 1) * sizeof *s->holes);
            s->count--;
        }
        return true;
    }
    if (s->count && s->holes[s->count - 1].at + s->holes[s->count - 1].size == s->end) { /* grow the last hole */
        *at = s->holes[--s->count].at;
        return onxi_add_u64(*at, size, &s->end);
    }
    *at = s->end;
    return onxi_add_u64(s->end, size, &s->end);
}

/* Sorts storages by their first step (*by_first) and by their last one with counting sorts. Pieces of other storages
 * are left out. */
static bool sort_storages(const onxi_run_plan *plan, onx_arena *arena, uint32_t *by_first, uint32_t *by_last)
{
    const uint32_t steps = plan->step_count;
    for (int last = 0; last < 2; last++) {
        uint32_t *start = ONXI_ARRAY(arena, uint32_t, (size_t)steps + 3), *order = last ? by_last : by_first;
        if (!start)
            return false;
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (plan->storages[i].whole == ONXI_NO_SLOT)
                start[(last ? plan->storages[i].last : plan->storages[i].first) + 1]++;
        for (uint32_t i = 1; i <= steps + 1; i++)
            start[i] += start[i - 1];
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (plan->storages[i].whole == ONXI_NO_SLOT)
                order[start[last ? plan->storages[i].last : plan->storages[i].first]++] = i;
    }
    return true;
}

/* Gives pieces their offsets inside the storages that contain them. */
static uint32_t find_wholes(onxi_run_plan *plan)
{
    uint32_t count = 0;
    uint64_t at;
    for (uint32_t i = 0; i < plan->storage_count; i++)
        count += onxi_run_plan_whole(plan, i, &at) == i;
    return count;
}

/* Bytes that a storage takes with its zone. */
static uint64_t room_of(const onxi_run_storage *storage, uint64_t zone)
{
    return storage->size ? ((storage->size + 63u) & ~(uint64_t)63u) + zone : 0;
}

onx_status onxi_run_plan_memory(onxi_run_plan *plan, onx_ctx *cx, uint64_t *size_out)
{
    const uint32_t n = find_wholes(plan);
    const uint64_t zone = onxi_run_zone(plan->graph->session);
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    uint32_t *order = ONXI_ARRAY(arena, uint32_t, (size_t)n + 1), *ends = ONXI_ARRAY(arena, uint32_t, (size_t)n + 1);
    space s = { .arena = arena };
    onx_status status = order && ends && sort_storages(plan, arena, order, ends) ? ONX_OK : ONX_E_MEMORY;
    uint32_t ended = 0;
    for (uint32_t i = 0; status == ONX_OK && i < n; i++) {
        onxi_run_storage *now = &plan->storages[order[i]];
        while (status == ONX_OK && ended < n && plan->storages[ends[ended]].last < now->first) {
            const onxi_run_storage *old = &plan->storages[ends[ended++]];
            if (old->size)
                status = space_give(&s, old->offset, room_of(old, zone));
        }
        const uint64_t size = room_of(now, zone);
        if (status == ONX_OK && size && !space_take(&s, size, &now->offset))
            status = onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "the values of a run take more than 2^64 bytes");
    }
    for (uint32_t i = 0; i < plan->storage_count; i++)
        if (plan->storages[i].whole != ONXI_NO_SLOT)
            plan->storages[i].offset = plan->storages[plan->storages[i].whole].offset + plan->storages[i].at;
    onx_arena_free(arena);
    *size_out = s.end;
    return status;
}
