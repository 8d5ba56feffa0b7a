/* window.h - the windows of convolutions and pools over up to three axes, with the missing leading axes of size 1, and
 * the units of a layout that vectors of channels run through. */
#ifndef ONXI_KERNEL_SIMD_WINDOW_H
#define ONXI_KERNEL_SIMD_WINDOW_H

#include "kernel/simd/simd.h"

enum { WINDOW_DIMS = 3, WINDOW_SIDE_MAX = 1 << 20 /* most of each size, so that products of three fit in 64 bits */ };

typedef struct simd_window {
    int64_t in[WINDOW_DIMS], out[WINDOW_DIMS], kernel[WINDOW_DIMS], stride[WINDOW_DIMS], dilation[WINDOW_DIMS];
    int64_t pad[WINDOW_DIMS];
} simd_window;

/* The axis of the node's window that is axis `d` of three; negative: there is none. */
static inline int window_axis(const onxi_window *from, int d)
{
    return d - (WINDOW_DIMS - (int)from->spatial);
}

/* False: there are more axes, a size is too large, or a window begins inside the image. */
static inline bool window_take(const onxi_window *from, simd_window *q)
{
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int axis = window_axis(from, d);
        int64_t size[] = { 1, 1, 1, 1, 1, 0 }; /* input, output, kernel, stride, dilation, padding */
        if (axis >= 0) {
            size[0] = from->in[axis];
            size[1] = from->out[axis];
            size[2] = from->kernel[axis];
            size[3] = from->stride[axis];
            size[4] = from->dilation[axis];
            size[5] = from->pad[axis];
        }
        for (uint32_t i = 0; i < sizeof size / sizeof *size; i++)
            if (size[i] < 0 || size[i] > WINDOW_SIDE_MAX)
                return false;
        q->in[d] = size[0];
        q->out[d] = size[1];
        q->kernel[d] = size[2];
        q->stride[d] = size[3];
        q->dilation[d] = size[4];
        q->pad[d] = size[5];
    }
    return from->spatial <= WINDOW_DIMS;
}

/* Taps first .. last-1 along `d` of a window that begins at `origin` are in the input; none: first >= last. */
static inline void window_taps(const simd_window *q, int d, int64_t origin, int64_t *first, int64_t *last)
{
    const int64_t step = q->dilation[d], room = q->in[d] - origin;
    *first = origin < 0 ? (-origin + step - 1) / step : 0;
    *last = room > 0 ? (room + step - 1) / step : 0;
    *last = *last < q->kernel[d] ? *last : q->kernel[d];
}

#endif
