/* window.h - the windows of convolutions and pools over up to three axes, with the missing leading axes of size 1. */
#ifndef ONXI_KERNEL_SIMD_WINDOW_H
#define ONXI_KERNEL_SIMD_WINDOW_H

#include "kernel/core/pool.h"
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

/* ---- units of work ---- */

/* A unit is a line of the result for a set of channels. From the inside they are the lines of a stretch, the sets, the
 * stretches of an image, the images: so a thread computes whole pixels as far as possible, since it probably reads them
 * next. */
typedef struct window_units {
    uint64_t lines, sets;        /* of an image */
    uint64_t stretch, stretches; /* lines of one, of which the last may have fewer; of an image */
} window_units;

typedef struct window_unit {
    uint64_t image, set, line;
} window_unit;

static inline window_units window_units_of(uint64_t lines, uint64_t sets, unsigned threads)
{
    window_units u = { .lines = lines, .sets = sets, .stretches = threads < lines ? threads : lines };
    u.stretch = (lines + u.stretches - 1) / u.stretches;
    return u;
}

/* How many numbers there are for the units of an image. */
static inline uint64_t window_units_count(const window_units *u)
{
    return u->stretches * u->sets * u->stretch;
}

/* False: there is no such line. */
static inline bool window_unit_at(const window_units *u, uint64_t i, window_unit *out)
{
    const uint64_t stretch = i / u->stretch / u->sets % u->stretches;
    *out = (window_unit){ .image = i / window_units_count(u),
                          .set = i / u->stretch % u->sets,
                          .line = stretch * u->stretch + i % u->stretch };
    return out->line < u->lines;
}

/* ---- strips of pixels, whose loops over taps are unrolled ---- */

#if defined(__clang__)
#define WINDOW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define WINDOW_UNROLL _Pragma("GCC unroll 32")
#endif

/* The compiler would keep an index for each multiple of the step, and run out of registers. */
static inline const float *window_onward(const float *p, uint64_t step)
{
    p += step;
    __asm__("" : "+r"(p));
    return p;
}

/* ---- pools ---- */

/* The one window of a global pool. */
static inline onxi_window window_whole(const onx_value *x)
{
    onxi_window w = { .spatial = x->rank - 2 };
    for (uint32_t d = 0; d < w.spatial; d++) {
        w.in[d] = w.kernel[d] = x->dims[d + 2];
        w.out[d] = w.stride[d] = w.dilation[d] = 1;
    }
    return w;
}

/* For averages: `divisor` gets the number of taps that count, for each position along each axis: those inside, or with
 * padding, or all. An average is divided by their product. pads: the node says whether padding counts. */
static inline onx_status window_divisors(onx_prepare *p, const onxi_window *from, const simd_window *q, bool pads,
                                         const float *divisor[WINDOW_DIMS])
{
    pads = pads && onx_prepare_is_set(p, "count_include_pad");
    const bool beyond = pads && onxi_pool_counts_beyond(p);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int axis = window_axis(from, d);
        const int64_t pad_end = axis >= 0 ? from->pad_end[axis] : 0, step = q->dilation[d];
        float *counts = onxi_arena_array(p->arena, (uint64_t)q->out[d], sizeof *counts);
        if (!counts)
            return ONX_E_MEMORY;
        for (int64_t i = 0; i < q->out[d]; i++) {
            const int64_t origin = i * q->stride[d] - q->pad[d], room = q->in[d] + pad_end - origin;
            int64_t first, last;
            window_taps(q, d, origin, &first, &last);
            int64_t count = last > first ? last - first : 0;
            if (pads) {
                const int64_t padded = room > 0 ? (room + step - 1) / step : 0;
                count = beyond || padded > q->kernel[d] ? q->kernel[d] : padded;
            }
            counts[i] = (float)count;
        }
        divisor[d] = counts;
    }
    return ONX_OK;
}

/* What a pool makes of two elements. */
static inline onxi_vf window_both(const bool average, onxi_vf a, onxi_vf b)
{
    return average ? a + b : vf_max_or_nan(a, b);
}

#endif
