/* image.c - CropAndResize and MaxpoolWithMask. */
#include "kernel/core/masks.h"
#include "kernel/microsoft/microsoft.h"

#include <float.h>
#include <math.h>

/* ---- CropAndResize ---- */

typedef struct crop {
    uint64_t boxes, batch, channels, size[2];
    double outside;
    bool nearest;
} crop;

static onx_status crop_prepare(onx_prepare *p)
{
    static const onxi_word words[] = { { "bilinear", 1, 0 }, { "nearest", 1, 0 } };
    const onx_value *x = p->inputs[0], *rois = p->inputs[1], *ids = p->inputs[2], *size = p->inputs[3];
    const int mode = onxi_prepare_word(p, "mode", words, 2);
    crop *q = ONXI_NEW(p->arena, crop);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4 || ids->rank != 1 || ids->dims[0] != rois->dims[0] ||
        size->count != 2 || mode < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "boxes, indices, sizes, or the mode do not fit");
    *q = (crop){ .boxes = (uint64_t)rois->dims[0],
                 .batch = (uint64_t)x->dims[0],
                 .channels = (uint64_t)x->dims[1],
                 .size = { (uint64_t)x->dims[2], (uint64_t)x->dims[3] },
                 .outside = onx_prepare_float(p, "extrapolation_value"),
                 .nearest = mode == 1 };
    p->params = q;
    return ONX_OK;
}

static double real_at(const onx_value *v, uint64_t i)
{
    return v->dtype == ONX_DOUBLE ? ((const double *)v->data)[i] : (double)onxi_ms_float(v, i);
}

static void put(onx_value *v, uint64_t i, double x)
{
    const float narrow = (float)x;
    if (v->dtype == ONX_DOUBLE)
        ((double *)v->data)[i] = x;
    else
        onxi_ms_store(v, i, 1, &narrow);
}

/* The position of index `i` of `count` on an axis of `size`; false if it is outside. */
static bool place(double from, double to, uint64_t i, uint64_t count, uint64_t size, double *out)
{
    const double last = (double)size - 1;
    *out = count == 1       ? 0.5 * (from + to) * last
           : i + 1 == count ? to * last
                            : from * last + (double)i * ((to - from) * last / (double)(count - 1));
    return *out >= 0 && *out <= last;
}

/* The elements of a plane that a sample is computed from, for all channels: the nearest one, or four that are
 * interpolated. */
typedef struct taps {
    uint64_t at[4];
    double down, along;
} taps;

static taps taps_of(const crop *q, double row, double column)
{
    const uint64_t width = q->size[1];
    if (q->nearest)
        return (taps){ .at = { (uint64_t)round(row) * width + (uint64_t)round(column) } };
    const uint64_t top = (uint64_t)row, left = (uint64_t)column, bottom = top + ((double)top < row),
                   right = left + ((double)left < column);
    return (taps){ .at = { top * width + left, top * width + right, bottom * width + left, bottom * width + right },
                   .down = row - (double)top,
                   .along = column - (double)left };
}

static double mix(const taps *t, double a, double b, double c, double d)
{
    const double above = a + (b - a) * t->along, below = c + (d - c) * t->along;
    return above + (below - above) * t->down;
}

static double sample(const crop *q, const onx_value *x, uint64_t from, const taps *t)
{
    if (q->nearest)
        return real_at(x, from + t->at[0]);
    return mix(t, real_at(x, from + t->at[0]), real_at(x, from + t->at[1]), real_at(x, from + t->at[2]),
               real_at(x, from + t->at[3]));
}

/* Computes all channels of a position in a box, with stride `step` in the output. */
static void crop_place(const onx_work *work, const crop *q, uint64_t image, const taps *t, uint64_t to, uint64_t step)
{
    const onx_value *x = work->inputs[0];
    const uint64_t area = q->size[0] * q->size[1], from = image * q->channels * area;
    if (!t || x->dtype != ONX_FLOAT) {
        for (uint64_t c = 0; c < q->channels; c++)
            put(work->outputs[0], to + c * step, t ? sample(q, x, from + c * area, t) : q->outside);
        return;
    }
    const float *plane = (const float *)x->data + from;
    float *y = (float *)work->outputs[0]->data + to;
    for (uint64_t c = 0; c < q->channels; c++, plane += area, y += step)
        *y = q->nearest ? plane[t->at[0]]
                        : (float)mix(t, (double)plane[t->at[0]], (double)plane[t->at[1]], (double)plane[t->at[2]],
                                     (double)plane[t->at[3]]);
}

static onx_status crop_box(onx_work *work, const crop *q, uint64_t box, uint64_t height, uint64_t width)
{
    const onx_value *rois = work->inputs[1];
    const int32_t id = ((const int32_t *)work->inputs[2]->data)[box];
    double edges[4], row, column;
    if (id < 0 || (uint64_t)id >= q->batch)
        return onx_work_fail(work, ONX_E_INVALID, "box %llu is of image %d of %llu", (unsigned long long)box, id,
                             (unsigned long long)q->batch);
    for (uint32_t i = 0; i < 4; i++)
        edges[i] = real_at(rois, box * 4 + i);
    for (uint64_t i = 0; i < height; i++)
        for (uint64_t k = 0; k < width; k++) {
            const bool in = place(edges[0], edges[2], i, height, q->size[0], &row);
            const bool inside = place(edges[1], edges[3], k, width, q->size[1], &column) && in;
            const taps t = inside ? taps_of(q, row, column) : (taps){ { 0 }, 0, 0 };
            crop_place(work, q, (uint64_t)id, inside ? &t : NULL, (box * q->channels * height + i) * width + k,
                       height * width);
        }
    return ONX_OK;
}

static onx_status crop_run(onx_work *work, uint64_t first, uint64_t last)
{
    const crop *q = work->params;
    const int32_t *size = work->inputs[3]->data;
    (void)first, (void)last;
    if (size[0] < 1 || size[1] < 1)
        return onx_work_fail(work, ONX_E_INVALID, "crop_size is %d by %d", size[0], size[1]);
    const int64_t dims[] = { (int64_t)q->boxes, (int64_t)q->channels, size[0], size[1] };
    ONX_TRY(onx_value_reset(work->outputs[0], (onx_dtype)work->inputs[0]->dtype, 4, dims));
    for (uint64_t box = 0; box < q->boxes && !onx_work_stops(work); box++)
        ONX_TRY(crop_box(work, q, box, (uint64_t)size[0], (uint64_t)size[1]));
    return ONX_OK;
}

/* ---- MaxpoolWithMask ---- */

typedef struct pool {
    onxi_window w;
    uint64_t planes; /* of the mask */
} pool;

/* Reads the window attributes of the node; sizes are taken from its input and output. */
static onx_status read_window(const onx_prepare *p, onxi_window *w)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    uint32_t kernels, strides, pads;
    const int64_t *kernel = onx_prepare_ints(p, "kernel_shape", &kernels),
                  *stride = onx_prepare_ints(p, "strides", &strides), *pad = onx_prepare_ints(p, "pads", &pads);
    const onx_str way = onx_prepare_text(p, "auto_pad");
    const bool lower = onx_str_is(way, "SAME_LOWER"), same = lower || onx_str_is(way, "SAME_UPPER");
    if (kernels != x->rank - 2 || (stride && strides != kernels) || (pad && pads != 2 * kernels))
        return onx_prepare_fail(p, ONX_E_INVALID, "kernel_shape, strides, or pads do not fit rank %u", x->rank);
    *w = (onxi_window){ .spatial = kernels, .batch = (uint64_t)x->dims[0], .channels = (uint64_t)x->dims[1] };
    for (uint32_t i = 0; i < kernels; i++) {
        w->in[i] = x->dims[i + 2];
        w->out[i] = y->dims[i + 2];
        w->kernel[i] = kernel[i];
        w->stride[i] = stride ? stride[i] : 1;
        const int64_t all = (w->out[i] - 1) * w->stride[i] + w->kernel[i] - w->in[i];
        w->pad[i] = !same ? (pad ? pad[i] : 0) : all <= 0 ? 0 : lower ? (all + 1) / 2 : all / 2;
    }
    w->in_size = onxi_product(x->dims, 2, x->rank);
    w->out_size = onxi_product(y->dims, 2, y->rank);
    return ONX_OK;
}

static onx_status pool_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *m = p->inputs[1];
    pool *q = ONXI_NEW(p->arena, pool);
    if (!q)
        return ONX_E_MEMORY;
    bool fits = x->rank >= 3 && x->rank <= 5 && m->rank == x->rank;
    for (uint32_t i = 2; fits && i < x->rank; i++)
        fits = m->dims[i] == x->dims[i];
    if (!fits || (x->count && !m->count))
        return onx_prepare_fail(p, ONX_E_INVALID, "a mask of rank %u does not fit an input of rank %u", m->rank,
                                x->rank);
    ONX_TRY(read_window(p, &q->w));
    q->planes = onxi_product(m->dims, 0, 2);
    p->params = q;
    p->rows = p->outputs[0]->count ? q->w.batch * q->w.channels : 0;
    if (x->count)
        p->thread_workspace = (uint64_t)x->dims[x->rank - 1] * sizeof(float);
    return ONX_OK;
}

/* The bounds of a window along an axis; a missing axis has the bounds 0 to 1. */
static void bounds(const onxi_window *w, uint32_t axis, int64_t at, int64_t *from, int64_t *to)
{
    *from = 0;
    *to = 1;
    if (axis >= w->spatial)
        return;
    *from = at * w->stride[axis] - w->pad[axis];
    *to = *from + w->kernel[axis] < w->in[axis] ? *from + w->kernel[axis] : w->in[axis];
    *from = *from > 0 ? *from : 0;
}

/* The maximum of a window. Along the last axis, it ends where the mask is 0, except at the very first element. */
static float greatest(const onxi_window *w, const float *x, const int32_t *m, const int64_t at[3])
{
    const int64_t columns = w->spatial > 1 ? w->in[1] : 1, depth = w->spatial > 2 ? w->in[2] : 1;
    int64_t from[3], to[3];
    float most = -FLT_MAX;
    for (uint32_t i = 0; i < 3; i++)
        bounds(w, i, at[i], &from[i], &to[i]);
    bool ended = false;
    for (int64_t r = from[0]; r < to[0] && !ended; r++)
        for (int64_t c = from[1]; c < to[1]; c++) {
            bool stopped = false;
            for (int64_t d = from[2]; d < to[2] && !stopped; d++) {
                const int64_t i = (r * columns + c) * depth + d;
                stopped = m[i] == 0 && (i > 0 || w->spatial == 1);
                most = !stopped && x[i] > most ? x[i] : most;
            }
            if (stopped && w->spatial < 3) {
                ended = w->spatial == 1;
                break;
            }
        }
    return most;
}

static bool has_zeros(const int32_t *m, uint64_t n)
{
    int32_t found = 0;
    for (uint64_t i = 0; i < n; i++)
        found |= m[i] == 0;
    return found != 0;
}

static void fill_least(float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = -FLT_MAX;
}

/* The lines of the input that the windows of a line of the output have. */
typedef struct lines {
    int64_t from[2], to[2], inner;
} lines;

static lines lines_of(const onxi_window *w, int64_t line)
{
    const uint32_t axis = w->spatial - 1;
    const int64_t across = axis > 1 ? w->out[1] : 1;
    lines l = { .inner = axis > 1 ? w->in[1] : 1 };
    bounds(w, axis > 0 ? 0 : w->spatial, line / across, &l.from[0], &l.to[0]);
    bounds(w, axis > 1 ? 1 : w->spatial, line % across, &l.from[1], &l.to[1]);
    return l;
}

static void merge(const float *restrict x, int64_t length, float *restrict merged)
{
    for (int64_t i = 0; i < length; i++)
        merged[i] = x[i] > merged[i] ? x[i] : merged[i];
}

#if ONXI_PLATFORM_ROOMY /* browsers compute windows one by one */
/* The windows of a line of the output, `line`, where the mask has zeros. Those that begin before the line are shorter,
 * and are computed one by one. */
static void pool_masked_line(const onxi_window *w, const float *x, const int32_t *m, int64_t line, float *merged,
                             float *y)
{
    const onxi_mask_loops *loops = onxi_mask_loops_best();
    const uint32_t axis = w->spatial - 1;
    const int64_t length = w->in[axis], across = axis > 1 ? w->out[1] : 1;
    const lines l = lines_of(w, line);
    fill_least(merged, (uint64_t)length);
    for (int64_t r = l.from[0]; r < l.to[0]; r++)
        for (int64_t c = l.from[1]; c < l.to[1]; c++) {
            const int64_t at = (r * l.inner + c) * length;
            loops->windows(x + at, m + at, at == 0 && w->spatial > 1, length, w->kernel[axis], merged);
        }
    for (int64_t i = 0, begin = -w->pad[axis]; i < w->out[axis]; i++, begin += w->stride[axis])
        y[i] = begin >= 0 && begin < length ? merged[begin] : -FLT_MAX;
    for (int64_t i = 0; i < w->out[axis] && i * w->stride[axis] < w->pad[axis]; i++) {
        int64_t at[3] = { i, 0, 0 };
        if (axis > 0)
            at[0] = line / across, at[axis] = i;
        if (axis > 1)
            at[1] = line % across;
        y[i] = greatest(w, x, m, at);
    }
}
#endif

/* The windows of a line of the output, `line`, where the mask has no zeros: maxima are taken across lines of the input
 * first, then along the last axis. */
static void pool_line(const onxi_window *w, const float *x, int64_t line, float *merged, float *y)
{
    const uint32_t axis = w->spatial - 1;
    const int64_t length = w->in[axis];
    const lines l = lines_of(w, line);
    int64_t from[3], to[3];
    fill_least(merged, (uint64_t)length);
    for (int64_t r = l.from[0]; r < l.to[0]; r++)
        for (int64_t c = l.from[1]; c < l.to[1]; c++)
            merge(x + (r * l.inner + c) * length, length, merged);
    for (int64_t i = 0; i < w->out[axis]; i++) {
        float most = -FLT_MAX;
        bounds(w, axis, i, &from[2], &to[2]);
        for (int64_t k = from[2]; k < to[2]; k++)
            most = merged[k] > most ? merged[k] : most;
        y[i] = most;
    }
}

/* A row of work is a plane. As in ONNX Runtime, the mask of a plane begins at an element, not a plane: at the offset of
 * the input's plane modulo the size of the mask. */
static onx_status pool_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool *q = work->params;
    const onxi_window *w = &q->w;
    const int64_t width = w->out[w->spatial - 1];
    for (uint64_t plane = first; plane < last; plane++) {
        float *y = (float *)work->outputs[0]->data + plane * w->out_size;
        if (!w->in_size) { /* windows of padding only */
            fill_least(y, w->out_size);
            continue;
        }
        const float *x = (const float *)work->inputs[0]->data + plane * w->in_size;
        const int32_t *m = (const int32_t *)work->inputs[1]->data + plane * w->in_size % q->planes;
        const bool masked = has_zeros(m, w->in_size);
        for (int64_t i = 0; !masked && i < (int64_t)w->out_size; i += width)
            pool_line(w, x, i / width, work->thread_workspace, y + i);
#if ONXI_PLATFORM_ROOMY
        for (int64_t i = 0; masked && i < (int64_t)w->out_size; i += width)
            pool_masked_line(w, x, m, i / width, work->thread_workspace, y + i);
#else
        const int64_t columns = w->spatial > 1 ? w->out[1] : 1, depth = w->spatial > 2 ? w->out[2] : 1;
        for (int64_t i = 0; masked && i < (int64_t)w->out_size; i++) {
            const int64_t at[3] = { i / depth / columns, i / depth % columns, i % depth };
            y[i] = greatest(w, x, m, at);
        }
#endif
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_image[] = {
    MS_KERNEL("CropAndResize", .prepare = crop_prepare, .run = crop_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    MS_KERNEL("MaxpoolWithMask", .prepare = pool_prepare, .run = pool_run),
    { 0 },
};
