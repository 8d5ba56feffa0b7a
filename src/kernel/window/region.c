/* region.c - operators of object detectors: RoiAlign and MaxRoiPool sample regions of an image, NonMaxSuppression
 * selects the best of overlapping boxes. */
#include "kernel/core/loops.h"

#include <math.h>

/* ---- RoiAlign ---- */

enum { SAMPLES_MAX = 1 << 24 }; /* per bin */

typedef struct align_params {
    uint64_t channels, height, width, bins_h, bins_w;
    double scale, shift;
    int64_t ratio;
    bool largest;
} align_params;

/* The four neighbours of a point, and their interpolation weights. */
typedef struct corners {
    uint64_t at[4];
    double weight[4];
} corners;

/* Adds the values at some points to `sums`, or takes their maximum, for all channels. The inner loop is over the points
 * of one channel, whose neighbours are then in the cache. */
typedef void (*points_loop)(const void *image, uint64_t plane, uint64_t channels, const corners *points, uint64_t count,
                            bool largest, double *sums);
#define POINTS(op, d, T, C, M, L, S)                                                                                   \
    static void op##_##d(const void *image, uint64_t plane, uint64_t channels, const corners *points, uint64_t count,  \
                         bool largest, double *sums)                                                                   \
    {                                                                                                                  \
        const T *x = (const T *)image;                                                                                 \
        for (uint64_t k = 0; k < channels; k++, x += plane) {                                                          \
            double sum = sums[k];                                                                                      \
            for (uint64_t n = 0; n < count; n++) {                                                                     \
                const corners *c = &points[n];                                                                         \
                double v[4];                                                                                           \
                for (int i = 0; i < 4; i++)                                                                            \
                    v[i] = c->weight[i] * (double)L(x[c->at[i]]);                                                      \
                if (!largest)                                                                                          \
                    sum = sum + v[0] + v[1] + v[2] + v[3];                                                             \
                for (int i = 0; largest && i < 4; i++)                                                                 \
                    sum = v[i] > sum || isnan(v[i]) ? v[i] : sum;                                                      \
            }                                                                                                          \
            sums[k] = sum;                                                                                             \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(POINTS, points)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const points_loop points_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, points) };

static onx_status align_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *rois = p->inputs[1], *images = p->inputs[2], *y = p->outputs[0];
    align_params *q = ONXI_NEW(p->arena, align_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4 || images->rank != 1 || images->dims[0] != rois->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "an input of rank %u, regions of rank %u and %llu indexes do not fit",
                                x->rank, rois->rank, (unsigned long long)images->count);
    onx_str mode = onx_prepare_text(p, "mode"), shift = p->since >= 16
                                                            ? onx_prepare_text(p, "coordinate_transformation_mode")
                                                            : onx_str_of("output_half_pixel");
    q->largest = onx_str_is(mode, "max");
    if (!q->largest && !onx_str_is(mode, "avg"))
        return onx_prepare_fail(p, ONX_E_INVALID, "mode is \"%.*s\"", ONX_ARG(mode));
    if (!onx_str_is(shift, "half_pixel") && !onx_str_is(shift, "output_half_pixel"))
        return onx_prepare_fail(p, ONX_E_INVALID, "coordinate_transformation_mode is \"%.*s\"", ONX_ARG(shift));
    q->shift = p->since >= 16 && onx_str_is(shift, "half_pixel") ? 0.5 : 0;
    q->scale = (double)onx_prepare_float(p, "spatial_scale");
    q->ratio = onx_prepare_int(p, "sampling_ratio");
    q->channels = (uint64_t)x->dims[1];
    q->height = (uint64_t)x->dims[2];
    q->width = (uint64_t)x->dims[3];
    q->bins_h = (uint64_t)y->dims[2];
    q->bins_w = (uint64_t)y->dims[3];
    if (!x->count && y->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input has no elements");
    p->params = q;
    p->rows = y->count ? (uint64_t)rois->dims[0] * q->bins_h : 0;
    p->thread_workspace = q->channels * sizeof(double);
    return ONX_OK;
}

/* For one coordinate of a point: the indices on both sides, and its distance from the first; false if it is outside. */
static bool around(double x, uint64_t size, uint64_t *low, uint64_t *high, double *rest)
{
    if (!(x >= -1 && x <= (double)size))
        return false;
    x = x < 0 ? 0 : x;
    *low = (uint64_t)x;
    if (*low >= size - 1) {
        *low = *high = size - 1;
        *rest = 0;
        return true;
    }
    *high = *low + 1;
    *rest = x - (double)*low;
    return true;
}

static bool find_corners(const align_params *q, double y, double x, corners *c)
{
    uint64_t y0, y1, x0, x1;
    double fy, fx;
    if (!around(y, q->height, &y0, &y1, &fy) || !around(x, q->width, &x0, &x1, &fx))
        return false;
    *c = (corners){ { y0 * q->width + x0, y0 * q->width + x1, y1 * q->width + x0, y1 * q->width + x1 },
                    { (1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx } };
    return true;
}

/* Start and length of the bins along an axis, and the number of points per bin. */
typedef struct bins {
    double start, size;
    int64_t points;
} bins;

static bins bins_of(const align_params *q, double from, double to, uint64_t count)
{
    bins b = { .start = from * q->scale - q->shift };
    double length = to * q->scale - q->shift - b.start;
    if (q->shift == 0 && !(length >= 1))
        length = 1; /* malformed regions are made one element large */
    b.size = length / (double)count;
    double points = q->ratio > 0 ? (double)q->ratio : ceil(b.size);
    b.points = points > 0 ? points < 1e9 ? (int64_t)points : 1000000000 : 0;
    return b;
}

/* Computes one bin for all channels, some points at a time. */
static void align_bin(const align_params *q, const onx_value *x, int64_t image, const bins *h, const bins *w,
                      uint64_t row, uint64_t column, double *sums, onxi_pace *pace)
{
    enum { TOGETHER = 16 };
    corners list[TOGETHER];
    const uint64_t plane = q->height * q->width;
    const int64_t points = h->points * w->points;
    const char *from = (const char *)x->data + (uint64_t)image * q->channels * plane * onxi_element_size(x->dtype);
    for (uint64_t c = 0; c < q->channels; c++)
        sums[c] = q->largest && points ? -(double)INFINITY : 0;
    for (int64_t i = 0; i < points && !onxi_pace_stops(pace, TOGETHER * (q->channels * 4 + 8));) {
        uint64_t n = 0;
        for (; n < TOGETHER && i < points; n++, i++) {
            const double y =
                h->start + (double)row * h->size + ((double)(i / w->points) + 0.5) * h->size / (double)h->points;
            const double at =
                w->start + (double)column * w->size + ((double)(i % w->points) + 0.5) * w->size / (double)w->points;
            list[n] = (corners){ { 0 }, { 0 } }; /* a point outside counts as zero */
            find_corners(q, y, at, &list[n]);
        }
        points_loops[x->dtype](from, plane, q->channels, list, n, q->largest, sums);
    }
    for (uint64_t c = 0; points && !q->largest && c < q->channels; c++)
        sums[c] /= (double)points;
}

static onx_status align_run(onx_work *work, uint64_t first, uint64_t last)
{
    const align_params *q = work->params;
    const onx_value *x = work->inputs[0], *rois = work->inputs[1];
    onx_value *out = work->outputs[0];
    double *sums = work->thread_workspace;
    const uint64_t area = q->bins_h * q->bins_w;
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        uint64_t roi = row / q->bins_h, bin = row % q->bins_h;
        int64_t image = onxi_index(work->inputs[2], roi);
        if (image < 0 || image >= x->dims[0])
            return onx_work_fail(work, ONX_E_INVALID, "region %llu is in image %lld of %lld", (unsigned long long)roi,
                                 (long long)image, (long long)x->dims[0]);
        const bins w = bins_of(q, onxi_value_number(rois, roi * 4), onxi_value_number(rois, roi * 4 + 2), q->bins_w);
        const bins h =
            bins_of(q, onxi_value_number(rois, roi * 4 + 1), onxi_value_number(rois, roi * 4 + 3), q->bins_h);
        if (h.points && w.points > SAMPLES_MAX / h.points)
            return onx_work_fail(work, ONX_E_LIMIT, "region %llu has %lld by %lld points in a bin",
                                 (unsigned long long)roi, (long long)h.points, (long long)w.points);
        for (uint64_t b = 0; b < q->bins_w; b++) {
            const uint64_t to = roi * q->channels * area + bin * q->bins_w + b;
            align_bin(q, x, image, &h, &w, bin, b, sums, &pace);
            if (onxi_pace_stops(&pace, q->channels * 4))
                return ONX_OK;
            for (uint64_t c = 0; c < q->channels; c++)
                if (out->dtype == ONX_FLOAT)
                    ((float *)out->data)[to + c * area] = (float)sums[c];
                else
                    onxi_value_set_number(out, to + c * area, sums[c]);
        }
    }
    return ONX_OK;
}

/* ---- MaxRoiPool ---- */

typedef struct pool_params {
    uint64_t channels, bins_h, bins_w;
    int64_t height, width;
    double scale;
} pool_params;

static onx_status pool_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *rois = p->inputs[1], *y = p->outputs[0];
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 5)
        return onx_prepare_fail(p, ONX_E_INVALID, "an input of rank %u and regions of rank %u do not fit", x->rank,
                                rois->rank);
    *q = (pool_params){ (uint64_t)x->dims[1], (uint64_t)y->dims[2], (uint64_t)y->dims[3],
                        x->dims[2],           x->dims[3],           (double)onx_prepare_float(p, "spatial_scale") };
    p->params = q;
    p->rows = y->count ? (uint64_t)rois->dims[0] * q->channels : 0;
    return ONX_OK;
}

/* The indices low .. high-1 of a bin: regions consist of whole elements, and adjacent bins share those on their
 * edges. */
static void bin_range(double from, double to, uint64_t count, uint64_t bin, int64_t size, int64_t *low, int64_t *high)
{
    double length = to - from + 1, start = 0, end = 0, all = (double)size;
    length = length >= 1 ? length : 1;
    start = floor((double)bin * (length / (double)count)) + from;
    end = ceil((double)(bin + 1) * (length / (double)count)) + from;
    *low = start > 0 ? start < all ? (int64_t)start : size : 0;
    *high = end > 0 ? end < all ? (int64_t)end : size : 0;
}

static onx_status pool_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    const onx_value *x = work->inputs[0], *rois = work->inputs[1];
    onx_value *y = work->outputs[0];
    onxi_pace pace = { .work = work };
    for (uint64_t row = first; row < last; row++) {
        uint64_t roi = row / q->channels, c = row % q->channels;
        double image = onxi_value_number(rois, roi * 5), box[4];
        if (!(image >= 0 && image < (double)x->dims[0]))
            return onx_work_fail(work, ONX_E_INVALID, "region %llu is in image %g of %lld", (unsigned long long)roi,
                                 image, (long long)x->dims[0]);
        for (int i = 0; i < 4; i++)
            box[i] = round(onxi_value_number(rois, roi * 5 + 1 + (uint64_t)i) * q->scale);
        uint64_t plane = ((uint64_t)image * q->channels + c) * (uint64_t)(q->height * q->width);
        for (uint64_t bin = 0; bin < q->bins_h * q->bins_w; bin++) {
            int64_t top, bottom, left, right;
            bin_range(box[1], box[3], q->bins_h, bin / q->bins_w, q->height, &top, &bottom);
            bin_range(box[0], box[2], q->bins_w, bin % q->bins_w, q->width, &left, &right);
            double most = top < bottom && left < right ? -(double)INFINITY : 0;
            for (int64_t i = top; i < bottom; i++) {
                for (int64_t k = left; k < right; k++) {
                    double v = onxi_value_number(x, plane + (uint64_t)(i * q->width + k));
                    most = v > most || v != v ? v : most;
                }
                if (right > left && onxi_pace_stops(&pace, 8 * (uint64_t)(right - left)))
                    return ONX_OK;
            }
            onxi_value_set_number(y, row * q->bins_h * q->bins_w + bin, most);
        }
    }
    return ONX_OK;
}

/* ---- NonMaxSuppression ---- */

typedef struct box {
    float low[2], high[2];
} box;

static box box_at(const float *v, bool centred)
{
    box b;
    for (int d = 0; d < 2; d++) {
        float one = centred ? v[d] - v[2 + d] / 2 : v[d], other = centred ? v[d] + v[2 + d] / 2 : v[2 + d];
        bool turned = !centred && one > other;
        b.low[d] = turned ? other : one;
        b.high[d] = turned ? one : other;
    }
    return b;
}

static bool overlaps(const box *a, const box *b, float threshold)
{
    float common = 1, area_a = 1, area_b = 1;
    for (int d = 0; d < 2; d++) {
        float low = a->low[d] > b->low[d] ? a->low[d] : b->low[d];
        float high = a->high[d] < b->high[d] ? a->high[d] : b->high[d];
        if (!(high > low))
            return false;
        common *= high - low;
        area_a *= a->high[d] - a->low[d];
        area_b *= b->high[d] - b->low[d];
    }
    float all = area_a + area_b - common;
    return common > 0 && area_a > 0 && area_b > 0 && all > 0 && common / all > threshold;
}

/* Merge sort: greater scores first, of equal ones the lower index. */
static uint64_t *sort_scores(const float *score, uint64_t *order, uint64_t *other, uint64_t count, onxi_pace *pace)
{
    for (uint64_t run = 1; run < count; run *= 2) {
        for (uint64_t start = 0; start < count && !onxi_pace_stops(pace, 8 * run); start += 2 * run) {
            uint64_t a = start, middle = start + run < count ? start + run : count, b = middle;
            uint64_t end = count - start > 2 * run ? start + 2 * run : count;
            for (uint64_t at = start; at < end; at++)
                other[at] = b == end || (a < middle && score[order[a]] >= score[order[b]]) ? order[a++] : order[b++];
        }
        uint64_t *swap = order;
        order = other;
        other = swap;
    }
    return order;
}

static double limit_at(const onx_work *work, uint32_t input, double fallback)
{
    const onx_value *v = input < work->prepared->input_count ? work->inputs[input] : NULL;
    return v && v->count ? onxi_value_number(v, 0) : fallback;
}

typedef struct suppression {
    uint64_t most;
    float overlap, least;
    bool centred;
} suppression;

/* Selected boxes as arrays of edges. Unused entries have an empty box, which overlaps no box. */
enum { BLOCK = 32, BINS = 256, SPAN = 4 };
typedef struct box_block {
    float low[2][BLOCK], high[2][BLOCK];
    struct box_block *next;
    uint64_t count;
} box_block;

/* Bins of the selected boxes by their first dim: a box is in each bin that it extends into, or, if it extends over many
 * bins, in the last bin, which is searched for every box. So two overlapping boxes share a bin, or one of them is in
 * the last bin. */
typedef struct box_bins {
    box_block *bin[BINS + 1], *free;
    float least, scale;
} box_bins;

static uint64_t bin_of(const box_bins *b, float x)
{
    const float at = (x - b->least) * b->scale;
    return at > 0 ? at < BINS - 1 ? (uint64_t)at : BINS - 1 : 0;
}

static void span_of(const box_bins *b, const box *of, uint64_t *first, uint64_t *last)
{
    const bool finite = isfinite(of->low[0]) && isfinite(of->high[0]);
    *first = finite ? bin_of(b, of->low[0]) : 0;
    *last = finite ? bin_of(b, of->high[0]) : BINS - 1;
}

/* Initializes the bins for coordinates from `least` to `most`; `room` is memory for blocks. */
static void start_bins(box_bins *b, float least, float most, void *room)
{
    memset(b, 0, sizeof *b);
    b->free = room;
    b->least = least;
    b->scale = most - least > 0 && isfinite(most - least) ? BINS / (most - least) : 0;
}

static void put_box(box_bins *b, uint64_t bin, const box *of)
{
    box_block *block = b->bin[bin];
    if (!block || block->count == BLOCK) {
        block = b->free++;
        block->next = b->bin[bin];
        block->count = 0;
        b->bin[bin] = block;
        for (int i = 0; i < BLOCK; i++) {
            block->low[0][i] = block->low[1][i] = INFINITY;
            block->high[0][i] = block->high[1][i] = -INFINITY;
        }
    }
    for (int d = 0; d < 2; d++) {
        block->low[d][block->count] = of->low[d];
        block->high[d][block->count] = of->high[d];
    }
    block->count++;
}

static void keep_box(box_bins *b, const box *of)
{
    uint64_t first, last;
    span_of(b, of, &first, &last);
    if (first <= last && last - first >= SPAN)
        first = last = BINS;
    for (uint64_t i = first; i <= last; i++)
        put_box(b, i, of);
}

/* Does a box overlap any box of the block? The comparisons are those of overlaps(), without branches. */
static bool meets_any(const box_block *e, const box *b)
{
    const box a = *b;
    int any = 0;
    for (int i = 0; i < BLOCK; i++) {
        const float l0 = a.low[0] > e->low[0][i] ? a.low[0] : e->low[0][i];
        const float h0 = a.high[0] < e->high[0][i] ? a.high[0] : e->high[0][i];
        const float l1 = a.low[1] > e->low[1][i] ? a.low[1] : e->low[1][i];
        const float h1 = a.high[1] < e->high[1][i] ? a.high[1] : e->high[1][i];
        any |= (h0 > l0) & (h1 > l1);
    }
    return any != 0;
}

static bool overlaps_bin(const box_block *e, const box *b, float threshold, onxi_pace *pace)
{
    for (; e && !onxi_pace_stops(pace, 2 * BLOCK); e = e->next) {
        if (!meets_any(e, b))
            continue;
        for (uint64_t k = 0; k < e->count; k++) {
            const box before = { { e->low[0][k], e->low[1][k] }, { e->high[0][k], e->high[1][k] } };
            if (overlaps(b, &before, threshold))
                return true;
        }
    }
    return false;
}

static bool overlaps_any(const box_bins *kept, const box *b, float threshold, onxi_pace *pace)
{
    uint64_t first, last;
    if (overlaps_bin(kept->bin[BINS], b, threshold, pace))
        return true;
    span_of(kept, b, &first, &last);
    for (uint64_t i = first; i <= last; i++)
        if (overlaps_bin(kept->bin[i], b, threshold, pace))
            return true;
    return false;
}

/* Bytes of blocks for `count` boxes: full blocks, and one partly filled block per bin. */
static bool block_bytes(uint64_t count, uint64_t *out)
{
    uint64_t blocks;
    return onxi_mul_u64(count, SPAN, &blocks) && onxi_add_u64(blocks / BLOCK, BINS + 1, &blocks) &&
           onxi_mul_u64(blocks, sizeof(box_block), out);
}

/* Selects the boxes of a class, best first; returns how many. `order` has room for two permutations. */
static uint64_t keep_boxes(const suppression *s, const float *boxes, const float *scores, uint64_t count,
                           uint64_t *order, void *room, uint64_t *kept, onxi_pace *pace)
{
    uint64_t candidates = 0, found = 0, *sorted;
    box_bins grid;
    float least = INFINITY, most = -INFINITY;
    for (uint64_t i = 0; i < count; i++)
        if (scores[i] > s->least || (s->least == -(float)INFINITY && scores[i] == s->least)) {
            const box b = box_at(boxes + 4 * i, s->centred);
            order[candidates++] = i;
            least = isfinite(b.low[0]) && b.low[0] < least ? b.low[0] : least;
            most = isfinite(b.high[0]) && b.high[0] > most ? b.high[0] : most;
        }
    start_bins(&grid, least, most, room);
    sorted = sort_scores(scores, order, order + count, candidates, pace);
    if (onxi_pace_stops(pace, 0)) /* the list may be incomplete */
        return 0;
    for (uint64_t i = 0; i < candidates && found < s->most; i++) {
        const box b = box_at(boxes + 4 * sorted[i], s->centred);
        const bool overlapping = overlaps_any(&grid, &b, s->overlap, pace);
        if (onxi_pace_stops(pace, SPAN))
            break;
        if (overlapping)
            continue;
        keep_box(&grid, &b);
        kept[found++] = sorted[i];
    }
    return found;
}

static onx_status suppress_prepare(onx_prepare *p)
{
    const onx_value *boxes = p->inputs[0], *scores = p->inputs[1];
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 || scores->dims[0] != boxes->dims[0] ||
        scores->dims[2] != boxes->dims[1] || scores->dtype != ONX_FLOAT)
        return onx_prepare_fail(p, ONX_E_INVALID, "boxes of rank %u and scores of rank %u do not fit", boxes->rank,
                                scores->rank);
    uint64_t each = 2 * (uint64_t)boxes->dims[1], all, blocks; /* two permutations, the selected boxes, blocks */
    if (!onxi_add_u64(each, scores->count + 1, &all) || !onxi_mul_u64(all, sizeof(uint64_t), &all) ||
        !block_bytes((uint64_t)boxes->dims[1], &blocks) || !onxi_add_u64(all, blocks, &p->workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are too many boxes");
    bool *centred = ONXI_NEW(p->arena, bool);
    if (!centred)
        return ONX_E_MEMORY;
    *centred = onx_prepare_int(p, "center_point_box") != 0;
    p->params = centred;
    return ONX_OK;
}

static onx_status suppress_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *boxes = work->inputs[0], *scores = work->inputs[1];
    uint64_t count = (uint64_t)boxes->dims[1], classes = (uint64_t)scores->dims[1], total = 0;
    uint64_t lists = (uint64_t)boxes->dims[0] * classes, *order = work->workspace, *kept = order + 2 * count;
    void *room = kept + scores->count + 1;
    double most = limit_at(work, 2, 0);
    const suppression s = { .most = most > 0 ? most < 9e18 ? (uint64_t)most : UINT64_MAX : 0,
                            .overlap = (float)limit_at(work, 3, 0),
                            .least = (float)limit_at(work, 4, -(double)INFINITY),
                            .centred = *(const bool *)work->params };
    /* The selected boxes of a class are stored one after the other, up to UINT64_MAX. */
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < lists && count; i++) {
        if (onxi_pace_stops(&pace, count * 16))
            return ONX_OK;
        uint64_t found =
            keep_boxes(&s, (const float *)boxes->data + i / classes * count * 4,
                       (const float *)scores->data + i * count, count, order, room, kept + i * count, &pace);
        total += found;
        if (found < count)
            kept[i * count + found] = UINT64_MAX;
    }
    const int64_t dims[2] = { (int64_t)total, 3 };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_INT64, 2, dims));
    int64_t *to = work->outputs[0]->data;
    for (uint64_t i = 0; i < lists; i++)
        for (uint64_t k = 0; k < count && kept[i * count + k] != UINT64_MAX; k++) {
            *to++ = (int64_t)(i / classes);
            *to++ = (int64_t)(i % classes);
            *to++ = (int64_t)kept[i * count + k];
        }
    return ONX_OK;
}

const onx_kernel onxi_kernels_region[] = {
    { .op = "RoiAlign", .since = 10, .dtypes = ONXI_FLOATS, .prepare = align_prepare, .run = align_run },
    { .op = "MaxRoiPool", .since = 1, .dtypes = ONXI_FLOATS, .prepare = pool_prepare, .run = pool_run },
    { .op = "NonMaxSuppression",
      .since = 10,
      .dtypes = ONXI_F32,
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = suppress_prepare,
      .run = suppress_run },
    { 0 }
};
