/* copies.h - copying a dense tensor in which some axes of the result repeat what is inside of them: Tile and Expand. */
#ifndef ONXI_KERNEL_COPIES_H
#define ONXI_KERNEL_COPIES_H

#include "kernel/kernel.h"

typedef struct onxi_copies_axis {
    uint64_t size;
    bool again; /* the result has the same elements at all indices; else those of the input, one after the other */
    uint64_t from, to; /* bytes from an index to the next, in the input and in the result */
} onxi_copies_axis;

/* What is copied, and how often. */
typedef struct onxi_copies {
    uint32_t count; /* of axes, from the outermost one; neighbours of a kind are one */
    onxi_copies_axis axis[2 * ONX_RANK_MAX];
    uint32_t split; /* the axes before this one are divided among rows of work */
    uint64_t rows, element;
} onxi_copies;

/* `element`: bytes of one. */
static inline void onxi_copies_start(onxi_copies *r, uint64_t element)
{
    r->count = 0;
    r->element = element;
}

/* Adds an axis inside of those that are there; at most two for each dim. */
void onxi_copies_add(onxi_copies *r, uint64_t size, bool again);
/* Sets distances and rows of work for so many threads, once all axes are there. The result is known to fit in
 * memory. */
void onxi_copies_finish(onxi_copies *r, unsigned threads);
void onxi_copies_run(const onxi_copies *r, const void *x, void *y, uint64_t first, uint64_t last);

#endif
