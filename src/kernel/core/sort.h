/* sort.h - a sort of lists of any length that asks whether the run has to end. */
#ifndef ONXI_KERNEL_SORT_H
#define ONXI_KERNEL_SORT_H

#include "kernel/kernel.h"

/* Sorts `count` items of `size` bytes: equal ones stay in their order (merge sort). `room` is as large as the list.
 * False: the run has to end; all items are still items of the list, but in any order, some repeated. */
static inline bool onxi_sort(onxi_pace *pace, void *list, void *room, uint64_t count, uint64_t size,
                             int (*compare)(const void *, const void *))
{
    enum { COST = 16 };
    char *from = list, *to = room;
    for (uint64_t run = 1; run < count; run *= 2) {
        for (uint64_t start = 0; start < count; start += 2 * run) {
            const uint64_t middle = count - start > run ? start + run : count;
            const uint64_t end = count - start > 2 * run ? start + 2 * run : count;
            for (uint64_t a = start, b = middle, at = start; at < end; at++) {
                if (onxi_pace_stops(pace, COST))
                    return false;
                const bool left = b == end || (a < middle && compare(from + a * size, from + b * size) <= 0);
                onxi_copy_item(to + at * size, from + (left ? a++ : b++) * size, size);
            }
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != (char *)list && count)
        memcpy(list, from, (size_t)(count * size));
    return true;
}

#endif
