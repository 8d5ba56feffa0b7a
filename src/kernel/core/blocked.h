/* blocked.h - the image layout of vectorized kernels: channels in blocks, with the channels of a block contiguous for
 * each pixel (N, C / block, spatial dims, block). oneDNN calls it nChw8c and nChw16c, and nhwc if all channels are one
 * block. */
#ifndef ONXI_KERNEL_BLOCKED_H
#define ONXI_KERNEL_BLOCKED_H

#include "kernel/kernel.h"

/* The layout for a value of floats, 32-bit integers, bytes or bools; it lives as long as the arena. Blocks have 8, 16
 * or all channels, which is what all rows know. NULL: out of memory, or the channels of the value are no multiple of
 * the block. */
const onx_layout *onxi_blocked_layout(onx_arena *arena, const onx_value *v, uint32_t block);
/* Channels per block of a value in this layout; 0: the value has another layout. */
uint32_t onxi_blocked_of(const onx_value *v);
/* Describes a value in blocked layout as a row-major tensor: N, C / block, spatial dims, block, in `dims`, which has
 * rank + 1 entries. `v` has this layout, or is broadcast to a value of that rank that has it; in the latter case one
 * with a single channel or a single pixel qualifies too. False: it has another layout. */
bool onxi_blocked_view(const onx_value *v, uint32_t rank, uint32_t block, int64_t *dims, onx_value *out);

/* Copies `count` runs of floats, which begin `in` floats apart and are written `out` floats apart. */
void onxi_copy_runs(const float *from, uint64_t in, float *to, uint64_t out, uint64_t run, uint64_t count);

/* Interleaves `lines` lines of `length` floats, `in` floats apart, into columns, `out` floats apart. False: they are
 * too few or too short for it, and nothing was done. */
typedef bool onxi_turn_lines(const float *from, uint64_t lines, uint64_t length, uint64_t in, float *to, uint64_t out);
/* What is the body of rows of Reorder in the domain onx, between row-major and channel blocks. */
typedef struct onxi_reorder_body {
    onxi_turn_lines *turn;
} onxi_reorder_body;
onx_status onxi_reorder_prepare(onx_prepare *p);
onx_status onxi_reorder_run(onx_work *work, uint64_t first, uint64_t last);

/* The channels-last layout of a value; *out NULL: it equals row-major. False: there is none. */
static inline bool onxi_channels_last(onx_prepare *p, const onx_value *v, const onx_layout **out)
{
    *out = NULL;
    if (v->dims[1] == 1 || onxi_product(v->dims, 2, v->rank) == 1)
        return true;
    return v->dims[1] <= INT32_MAX && (*out = onxi_blocked_layout(p->arena, v, (uint32_t)v->dims[1])) != NULL;
}

/* For elementwise rows that may see operands as they lie (onxi_element_as_laid_out): gives the result their layout, or
 * none if they are row-major. False: out of memory. */
bool onxi_element_layout(onx_prepare *p);

/* Asks for the image, input 0, in the layout `in`, for the other inputs row-major, and gives the result the layout
 * `out`. */
static inline void onxi_image_layouts(onx_prepare *p, const onx_layout *in, const onx_layout *out)
{
    for (uint32_t i = 1; i < p->input_count; i++)
        p->want[i] = NULL;
    p->want[0] = in;
    p->outputs[0]->layout = out;
}

#endif
