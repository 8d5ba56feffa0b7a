/* run_recent.c - lists of what was made for earlier runs, most recently used first. */
#include "run/run.h"

onxi_run_kept *onxi_run_recent_find(onxi_run_recent *list, bool (*fits)(const onxi_run_kept *kept, const void *user),
                                    const void *user)
{
    onxi_run_kept **at = &list->first;
    while (*at && !fits(*at, user))
        at = &(*at)->next;
    onxi_run_kept *kept = *at;
    if (kept) {
        *at = kept->next;
        kept->next = list->first;
        list->first = kept;
        kept->busy++;
    }
    return kept;
}

onxi_run_kept *onxi_run_recent_add(onxi_run_recent *list, onxi_run_kept *kept, uint32_t least, uint32_t most,
                                   uint64_t room)
{
    kept->busy = 1;
    kept->next = list->first;
    list->first = kept;
    list->count = 0;
    onxi_run_kept **at = &list->first, *unused = NULL;
    for (uint64_t size = 0; *at && list->count < most; at = &(*at)->next, list->count++) {
        if (!onxi_add_u64(size, (*at)->size, &size))
            size = UINT64_MAX;
        if (size > room && list->count >= least)
            break;
    }
    for (onxi_run_kept *old = *at, *next; old; old = next) {
        next = old->next;
        old->retired = old->busy > 0;
        old->next = unused;
        unused = old->retired ? unused : old;
    }
    *at = NULL;
    return unused;
}

bool onxi_run_recent_let_go(onxi_run_kept *kept)
{
    return --kept->busy == 0 && kept->retired;
}

onxi_run_kept *onxi_run_recent_take(onxi_run_recent *list)
{
    onxi_run_kept *kept = list->first;
    if (kept)
        list->first = kept->next;
    return kept;
}
