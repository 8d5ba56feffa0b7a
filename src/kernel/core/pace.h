/* pace.h - moving bytes of any number in parts, between which a kernel asks whether the run has to end. */
#ifndef ONXI_KERNEL_PACE_H
#define ONXI_KERNEL_PACE_H

#include "kernel/kernel.h"

enum { ONXI_PACE_BYTES = 1 << 21 }; /* of a part: at most a millisecond */

/* memcpy; incomplete if the run has to end. */
static inline void onxi_pace_copy(const onx_work *work, void *to, const void *from, uint64_t bytes)
{
    for (uint64_t at = 0, n; at < bytes && !(at && onx_work_stops(work)); at += n) {
        n = bytes - at < ONXI_PACE_BYTES ? bytes - at : ONXI_PACE_BYTES;
        memcpy((char *)to + at, (const char *)from + at, (size_t)n);
    }
}

/* memset to 0; likewise. */
static inline void onxi_pace_clear(const onx_work *work, void *to, uint64_t bytes)
{
    for (uint64_t at = 0, n; at < bytes && !(at && onx_work_stops(work)); at += n) {
        n = bytes - at < ONXI_PACE_BYTES ? bytes - at : ONXI_PACE_BYTES;
        memset((char *)to + at, 0, (size_t)n);
    }
}

/* Writes an item of `size` bytes `count` times; likewise. */
static inline void onxi_pace_repeat(const onx_work *work, void *to, const void *item, uint64_t size, uint64_t count)
{
    if (!size || !count)
        return;
    const uint64_t bytes = size * count;
    uint64_t done = size;
    memcpy(to, item, (size_t)size);
    while (done < bytes && !(done > ONXI_PACE_BYTES && onx_work_stops(work))) {
        const uint64_t most = done < ONXI_PACE_BYTES ? done : ONXI_PACE_BYTES / size * size;
        const uint64_t n = most && bytes - done > most ? most : bytes - done;
        memcpy((char *)to + done, to, (size_t)n);
        done += n;
    }
}

#endif
