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

onxi_run_kept *onxi_run_recent_add(onxi_run_recent *list, onxi_run_kept *kept, uint32_t most)
{
    kept->busy = 1;
    kept->next = list->first;
    list->first = kept;
    if (++list->count <= most)
        return NULL;
    onxi_run_kept **last = &list->first;
    while ((*last)->next)
        last = &(*last)->next;
    onxi_run_kept *old = *last;
    *last = NULL;
    list->count--;
    old->retired = old->busy > 0;
    return old->retired ? NULL : old;
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
