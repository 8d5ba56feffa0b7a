/* groups.h - sorts items by the group that each belongs to, so that all items of a group are computed together and what
 * the group has in common, such as the weights of an expert, is read once and never copied per item. */
#ifndef ONXI_KERNEL_CORE_GROUPS_H
#define ONXI_KERNEL_CORE_GROUPS_H

#include <stdint.h>
#include <string.h>

/* place[i] is the group of item i, below `groups`, and becomes its place in the order of the groups, in which items of
 * a group keep their order. starts[g] is the place of the first item of group g, starts[groups] = count. `next`: room
 * for a number per group; `active`: gets the groups that have items. Returns their number. */
static inline uint64_t onxi_groups_sort(uint32_t *place, uint64_t count, uint64_t groups, uint32_t *starts,
                                        uint32_t *next, uint32_t *active)
{
    uint64_t found = 0;
    memset(starts, 0, (size_t)(groups + 1) * sizeof *starts);
    for (uint64_t i = 0; i < count; i++)
        starts[place[i] + 1]++;
    for (uint64_t g = 0; g < groups; g++) {
        if (starts[g + 1])
            active[found++] = (uint32_t)g;
        starts[g + 1] += starts[g];
        next[g] = starts[g];
    }
    for (uint64_t i = 0; i < count; i++)
        place[i] = next[place[i]]++;
    return found;
}

#endif
