/* cut.h - chooses the number of columns of a piece of work, so that all threads finish at nearly the same time. */
#ifndef ONXI_KERNEL_SIMD_CUT_H
#define ONXI_KERNEL_SIMD_CUT_H

#include <stdint.h>

/* Pieces of a thread. */
enum { CUT_SOME = 4, CUT_FEW = 2 };

/* Number of `units` in a piece, if there are `others` times as many pieces in another dimension (blocks of rows, for
 * example). The target is `some` pieces per thread (CUT_SOME, or CUT_FEW if each piece has a start-up cost), so that a
 * late thread leaves pieces to others. Among numbers near the target it takes the one whose last thread finishes first:
 * on two threads nine equal pieces take as long as ten. */
static inline uint64_t cut_evenly(uint64_t units, uint64_t others, uint64_t threads, uint64_t some)
{
    enum { LEAST_GAIN = 50 }; /* a finer cut gains one part of so many, or is not taken */
    const uint64_t wanted = some * threads;
    if (threads < 2 || !units || !others || others >= CUT_SOME * wanted)
        return units;
    const uint64_t parts = others < wanted ? wanted / others : 1, start = parts < units ? parts : units;
    uint64_t best = units, least = UINT64_MAX;
    for (uint64_t i = start; i <= 3 * start + 2 && i <= units; i++) {
        const uint64_t each = (units + i - 1) / i, pieces = (units + each - 1) / each * others;
        const uint64_t span = (pieces + threads - 1) / threads * each;
        if (least == UINT64_MAX || span < least - least / LEAST_GAIN) {
            least = span;
            best = each;
        }
    }
    return best;
}

#endif
