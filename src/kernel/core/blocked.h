/* blocked.h - the layout of images that vector kernels like: channels in blocks, the channels of a block contiguous
 * for each pixel (N, C / block, spatial dims, block). oneDNN knows the same bytes as nChw8c and nChw16c, and as nhwc
 * where all channels are one block. */
#ifndef ONXI_KERNEL_BLOCKED_H
#define ONXI_KERNEL_BLOCKED_H

#include "kernel/kernel.h"

/* The layout of a value of floats, 32-bit integers, bytes or bools, which lives as long as the arena; NULL: out of
 * memory, or the value has no such layout, as its channels are no whole blocks. */
const onx_layout *onxi_blocked_layout(onx_arena *arena, const onx_value *v, uint32_t block);
/* Channels of a block of a value that is laid out so; 0: it is not. */
uint32_t onxi_blocked_of(const onx_value *v);
/* A value as the row-major tensor that the bytes of blocked channels are: N, C / block, spatial dims, block, in `dims`,
 * which has rank + 1 of them. `v` is laid out so, or is broadcast to such a value of that rank, and then has the same
 * layout if it has one channel or one pixel; false: it has another one. */
bool onxi_blocked_view(const onx_value *v, uint32_t rank, uint32_t block, int64_t *dims, onx_value *out);

/* The layout of a value with its channels last; *out NULL: the same as row-major. False: there is none. */
static inline bool onxi_channels_last(onx_prepare *p, const onx_value *v, const onx_layout **out)
{
    *out = NULL;
    if (v->dims[1] == 1 || onxi_product(v->dims, 2, v->rank) == 1)
        return true;
    return v->dims[1] <= INT32_MAX && (*out = onxi_blocked_layout(p->arena, v, (uint32_t)v->dims[1])) != NULL;
}

#endif
