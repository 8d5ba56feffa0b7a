/* direct.c - Conv that reads images in place, with channels last, in blocks or in planes: each input that a window
 * covers is at the same distance from the first one for all pixels, and a table has these distances. Only where windows
 * reach into the padding is a part of the image copied, once for some lines of the output. Unlike oneDNN, it generates
 * no code for a shape when a plan is made. */
#include "kernel/simd/simd.h"

#if !ONXI_PLATFORM_ROOMY /* browsers use conv.c */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_direct)[] = { { 0 } };
#else

#include "kernel/core/blocked.h"
#include "kernel/simd/direct.h"
#include "kernel/simd/window.h"

enum { DIMS = WINDOW_DIMS, DEPTH = 0, DOWN = 1, ACROSS = 2 };
/* Floats that the copy of a part may take, of which units of work should take fewer; most output pixels of a unit, and
 * fewest if the image has them. */
enum { PATCH_MOST = 1 << 18, PATCH = 48 << 10, PIXELS = 192, PIXELS_LEAST = 96, PIXELS_PADDED = 512 };

/* A way to read windows: in place, or in a copied patch. Distances in elements. */
typedef struct view {
    uint64_t plane, line, column; /* from an input pixel to the next, along each axis */
    uint64_t block;               /* from the channels of a block to those of the next */
    int32_t *at;                  /* where the elements of a window are, in the order of the sum */
} view;

typedef struct direct_params {
    uint64_t groups, c, m; /* channels per group, of input and output */
    simd_window win;
    uint64_t batch, depth;
    /* Channels that lie next to each other for a pixel, of input and output: all, a block, or one in planes. */
    uint64_t in_block, out_block;
    bool planes; /* reads a row-major input */
    bool skips;  /* leaves out slices and lines of windows in the padding; they lie one after the other in the sum */
    bool apart;  /* adds one tap after the other, each to the pixels for which it is in the image; nothing is copied */
    view place, patch;
    uint64_t patch_size; /* elements */
    uint64_t panels;     /* of a group */
    /* Units of work: some lines and columns of the output, times the panels in so many parts. */
    uint64_t lines, columns, down, across, parts;
    const float *weights, *start; /* start: bias or zeros, padded to whole vectors for each group */
    uint64_t padded;
    simd_posts posts;
    uint32_t applied; /* of these, by the tiles */
} direct_params;

/* ---- units of work ---- */

/* Part of the output, and where the windows of its first pixel are read. */
typedef struct unit {
    uint64_t image;
    int64_t at[DIMS];
    uint64_t lines, columns, p0, p1; /* panels p0 to p1 - 1 of all groups */
    const view *from;
    const float *x;
    int64_t begin[DIMS]; /* input of the first tap of the first pixel */
    uint64_t k0, k1;     /* elements of the sum that are added: k0 to k1 - 1 */
} unit;

static inline int64_t extent_of(const direct_params *q, int axis, int64_t outputs)
{
    return (outputs - 1) * q->win.stride[axis] + (q->win.kernel[axis] - 1) * q->win.dilation[axis] + 1;
}

/* Copies columns `from` to `from + count` - 1 of a line of pixels, which may be outside of the image. */
static void copy_line(const float *line, int64_t size, uint64_t pixel, int64_t from, int64_t count, float *to)
{
    const int64_t first = from < 0 ? (-from < count ? -from : count) : 0;
    const int64_t left = size - from < count ? size - from : count, end = left > first ? left : first;
    memset(to, 0, (size_t)first * pixel * sizeof *to);
    if (end > first)
        memcpy(to + (uint64_t)first * pixel, line + (uint64_t)(from + first) * pixel,
               (size_t)(end - first) * pixel * sizeof *to);
    memset(to + (uint64_t)end * pixel, 0, (size_t)(count - end) * pixel * sizeof *to);
}

/* Copies the inputs that the windows of a unit cover, with zeros for the padding, as far as it is not left out of the
 * sum; begin: those of the first window. */
static void copy_patch(const direct_params *q, const unit *u, const float *image, const int64_t *begin, float *patch)
{
    const view *to = &q->patch;
    const int64_t down = extent_of(q, DOWN, (int64_t)u->lines), across = extent_of(q, ACROSS, (int64_t)u->columns);
    const uint64_t blocks = q->groups * q->c / q->in_block, pixel = q->in_block;
    for (uint64_t c = 0; c < blocks; c++)
        for (int64_t kz = 0; kz < q->win.kernel[DEPTH]; kz++)
            for (int64_t y = 0; y < down; y++) {
                const int64_t iz = begin[DEPTH] + kz * q->win.dilation[DEPTH], iy = begin[DOWN] + y;
                float *line = patch + c * to->block + (uint64_t)kz * to->plane + (uint64_t)y * to->line;
                const bool is_padding = iz < 0 || iz >= q->win.in[DEPTH] || iy < 0 || iy >= q->win.in[DOWN];
                if (is_padding && !q->skips)
                    memset(line, 0, (size_t)across * pixel * sizeof *line);
                else if (!is_padding)
                    copy_line(image + c * q->place.block + (uint64_t)iz * q->place.plane + (uint64_t)iy * q->place.line,
                              q->win.in[ACROSS], pixel, begin[ACROSS], across, line);
            }
}

/* The elements of the sum of a unit: without those of slices in the padding. */
static void take_sum(const direct_params *q, unit *u)
{
    int64_t first = 0, last = q->win.kernel[DEPTH];
    if (q->skips)
        window_taps(&q->win, DEPTH, u->begin[DEPTH], &first, &last);
    const uint64_t each = q->depth / (uint64_t)q->win.kernel[DEPTH];
    u->k0 = (uint64_t)first * each;
    u->k1 = last > first ? (uint64_t)last * each : u->k0;
}

/* Finds out which part of the output a piece is, and copies its inputs if some are padding. */
static unit take_unit(const direct_params *q, const onx_work *work, uint64_t piece, float *patch)
{
    const uint64_t panels = q->groups * q->panels, units = q->batch * (uint64_t)q->win.out[DEPTH] * q->down * q->across;
    const uint64_t part = piece / units;
    uint64_t at = piece % units;
    unit u = { .p0 = part * panels / q->parts, .p1 = (part + 1) * panels / q->parts };
    u.at[ACROSS] = (int64_t)(at % q->across * q->columns);
    at /= q->across;
    u.at[DOWN] = (int64_t)(at % q->down * q->lines);
    at /= q->down;
    u.at[DEPTH] = (int64_t)(at % (uint64_t)q->win.out[DEPTH]);
    u.image = at / (uint64_t)q->win.out[DEPTH];
    const uint64_t lines = (uint64_t)(q->win.out[DOWN] - u.at[DOWN]),
                   columns = (uint64_t)(q->win.out[ACROSS] - u.at[ACROSS]);
    u.lines = lines < q->lines ? lines : q->lines;
    u.columns = columns < q->columns ? columns : q->columns;
    const int64_t covers[DIMS] = { 1, (int64_t)u.lines, (int64_t)u.columns };
    int64_t *begin = u.begin;
    bool inside = true;
    for (int i = 0; i < DIMS; i++) {
        begin[i] = u.at[i] * q->win.stride[i] - q->win.pad[i];
        inside = inside && begin[i] >= 0 && begin[i] + extent_of(q, i, covers[i]) <= q->win.in[i];
    }
    const float *image =
        (const float *)work->inputs[0]->data +
        u.image * q->groups * q->c * (uint64_t)(q->win.in[DEPTH] * q->win.in[DOWN] * q->win.in[ACROSS]);
    u.from = inside || q->apart ? &q->place : &q->patch;
    u.x = q->apart ? image
          : inside ? image + (uint64_t)begin[DEPTH] * q->place.plane + (uint64_t)begin[DOWN] * q->place.line +
                         (uint64_t)begin[ACROSS] * q->place.column
                   : patch;
    if (!inside && !q->apart)
        copy_patch(q, &u, image, begin, patch);
    take_sum(q, &u);
    return u;
}

/* From the channels of a block of the result to those of the next. */
static uint64_t out_step(const direct_params *q)
{
    return (uint64_t)(q->win.out[DEPTH] * q->win.out[DOWN] * q->win.out[ACROSS]) * q->out_block;
}

/* Where channel `channel` of a line of a unit begins in the result. */
static uint64_t line_of(const direct_params *q, const unit *u, uint64_t line, uint64_t channel)
{
    const uint64_t lines = (uint64_t)(u->at[DEPTH] * q->win.out[DOWN] + u->at[DOWN]) + line;
    const uint64_t pixel = lines * (uint64_t)q->win.out[ACROSS] + (uint64_t)u->at[ACROSS];
    const uint64_t block = u->image * (q->groups * q->m / q->out_block) + channel / q->out_block;
    return block * out_step(q) + pixel * q->out_block + channel % q->out_block;
}

/* From a line of the result to the next. */
static uint64_t out_line(const direct_params *q)
{
    return (uint64_t)q->win.out[ACROSS] * q->out_block;
}

static const float *other_of(const direct_params *q, const onx_work *work, uint32_t post)
{
    const int32_t operand = q->posts.list[post].operand;
    return operand >= 0 ? work->inputs[operand]->data : NULL;
}

/* Applies the post-operations that the tiles left to `rows` rows of whole vectors that begin at `at` in the result. */
static void apply(const direct_params *q, const onx_work *work, uint64_t at, uint64_t rows, uint64_t vectors)
{
    const uint64_t step = q->out_block;
    for (uint32_t p = q->applied; p < q->posts.count; p++) {
        const float *other = other_of(q, work, p);
        post_apply(&q->posts.list[p], (float *)work->outputs[0]->data + at, step, rows, vectors, NULL,
                   other ? other + at : NULL, step);
    }
}

/* The same to less than a vector. */
static void apply_rest(const direct_params *q, const onx_work *work, uint64_t at, uint64_t count)
{
    float *y = (float *)work->outputs[0]->data + at, sums[ONXI_LANES] = { 0 }, with[ONXI_LANES] = { 0 };
    memcpy(sums, y, count * sizeof *y);
    for (uint32_t p = q->applied; p < q->posts.count; p++) {
        const float *other = other_of(q, work, p);
        if (other)
            memcpy(with, other + at, count * sizeof *y);
        post_apply(&q->posts.list[p], sums, 0, 1, 1, NULL, with, 0);
    }
    memcpy(y, sums, count * sizeof *y);
}

/* The first channel of a panel. */
static inline uint64_t channel_of(const direct_params *q, uint64_t panel)
{
    return panel / q->panels * q->m + panel_first(q->m, q->panels, panel % q->panels);
}

/* The same to a unit. The pixels of a line are contiguous if it has all channels, which are whole vectors otherwise. */
static void finish(const direct_params *q, const onx_work *work, const unit *u)
{
    const uint64_t panels = q->groups * q->panels, count = u->columns * q->groups * q->m;
    const bool blocks = q->out_block < q->groups * q->m;
    for (uint64_t line = 0; line < u->lines; line++) {
        const uint64_t at = line_of(q, u, line, 0), whole = count / ONXI_LANES;
        if (u->p1 - u->p0 == panels && !blocks) {
            apply(q, work, at, 1, whole);
            if (count % ONXI_LANES)
                apply_rest(q, work, at + whole * ONXI_LANES, count % ONXI_LANES);
            continue;
        }
        for (uint64_t p = u->p0; p < u->p1; p++) {
            const uint64_t vectors = panel_vectors(q->m, q->panels, p % q->panels), together = blocks ? 1 : vectors;
            for (uint64_t v = 0; v < vectors; v += together)
                apply(q, work, line_of(q, u, line, channel_of(q, p) + v * ONXI_LANES), u->columns, together);
        }
    }
}

/* Elements of a sum, one after the other. */
typedef struct stretch {
    uint64_t from, to;
} stretch;

/* Which lines of windows are in the image for a line of the unit: elements of a slice. */
static stretch lines_in_image(const direct_params *q, const unit *u, uint64_t line)
{
    const uint64_t each = q->depth / (uint64_t)(q->win.kernel[DEPTH] * q->win.kernel[DOWN]);
    int64_t first = 0, last = q->win.kernel[DOWN];
    if (q->skips)
        window_taps(&q->win, DOWN, u->begin[DOWN] + (int64_t)line * q->win.stride[DOWN], &first, &last);
    return (stretch){ (uint64_t)first * each, last > first ? (uint64_t)last * each : (uint64_t)first * each };
}

/* The first part of a stretch that these lines of windows have: all of it if they are all lines, or of one slice.
 * Empty: there is none. */
static stretch part_of(const direct_params *q, stretch in, stretch lines)
{
    const uint64_t each = q->depth / (uint64_t)q->win.kernel[DEPTH];
    if (lines.to - lines.from == each)
        return in;
    for (uint64_t slice = in.from / each * each; slice < in.to; slice += each) {
        const uint64_t from = slice + lines.from, to = slice + lines.to;
        const stretch part = { from < in.from ? in.from : from, to < in.to ? to : in.to };
        if (part.from < part.to)
            return part;
    }
    return (stretch){ in.to, in.to };
}

/* Tiles of nearly the same size for some pixels of a line, from where `t` is. */
static void run_line(direct_tile t, uint64_t vectors, uint64_t pixels)
{
    const uint64_t most = direct_most(vectors), across = (pixels + most - 1) / most, longer = pixels % across;
    for (uint64_t i = 0, count; i < across; i++) {
        count = pixels / across + (i < longer);
        direct_tiles[vectors - 1][count - 1](&t);
        t.a += count * t.step;
        t.start += count * t.start_step;
        t.c += count * t.c_step;
        t.place += count * t.other_step;
        t.fetch += t.fetch_step * t.k;
    }
}

/* Weights of a panel of a group, from element k of the sum on. */
static const float *weights_of(const direct_params *q, uint64_t panel, uint64_t k)
{
    const uint64_t group = panel / q->panels, index = panel % q->panels;
    return q->weights + (group * q->padded + panel_first(q->m, q->panels, index)) * q->depth +
           k * panel_vectors(q->m, q->panels, index) * ONXI_LANES;
}

/* The distance of an input channel from the first one. */
static inline uint64_t from_first(const direct_params *q, const view *v, uint64_t channel)
{
    return channel / q->in_block * v->block + channel % q->in_block;
}

/* What all tiles of a panel have in common that give results or, without `ends`, partial sums. */
static direct_tile panel_tile(const direct_params *q, const unit *u, uint64_t panel, bool ends, const float **others)
{
    const uint64_t index = panel % q->panels, vectors = panel_vectors(q->m, q->panels, index);
    const uint64_t left = q->m - panel_first(q->m, q->panels, index);
    const uint64_t vector = q->out_block < q->groups * q->m ? out_step(q) : ONXI_LANES;
    return (direct_tile){ .at = u->from->at,
                          .adjacent = !q->planes && q->c % DIRECT_TOGETHER == 0,
                          .step = u->from->column * (uint64_t)q->win.stride[ACROSS],
                          .start_step = DIRECT_ROW,
                          .c_step = ends ? q->out_block : DIRECT_ROW,
                          .c_vector = ends ? vector : ONXI_LANES,
                          .posts = &q->posts,
                          .applied = ends ? q->applied : 0,
                          .others = others,
                          .other_step = q->out_block,
                          .other_vector = vector,
                          .last =
                              ends && left < vectors * ONXI_LANES ? left - (vectors - 1) * ONXI_LANES : ONXI_LANES };
}

/* A stretch of the sums of a panel, for a line of a unit. `t` has what is common to all lines; to: the results, NULL
 * if it does not end the sums. The parts of it that are not padding follow each other. */
static void one_line(const direct_params *q, const unit *u, direct_tile t, uint64_t panel, uint64_t line, stretch in,
                     float *partial, float *to)
{
    const uint64_t group = panel / q->panels, vectors = panel_vectors(q->m, q->panels, panel % q->panels);
    const stretch lines = lines_in_image(q, u, line);
    const direct_tile whole = t;
    bool begins = in.from == u->k0;
    stretch part = part_of(q, in, lines);
    do {
        const stretch next = part_of(q, (stretch){ part.to, in.to }, lines);
        const bool ends = to && next.from >= next.to;
        t.at = whole.at + part.from;
        t.k = part.to - part.from;
        t.b = weights_of(q, panel, part.from);
        t.start = begins ? q->start + group * q->padded + panel_first(q->m, q->panels, panel % q->panels) : partial;
        t.start_step = begins ? 0 : DIRECT_ROW;
        t.c = ends ? to : partial;
        t.c_step = ends ? whole.c_step : DIRECT_ROW;
        t.c_vector = ends ? whole.c_vector : ONXI_LANES;
        t.applied = ends ? whole.applied : 0;
        t.last = ends ? whole.last : ONXI_LANES;
        run_line(t, vectors, u->columns);
        begins = false;
        part = next;
    } while (part.from < part.to);
}

/* The same for all lines of a unit. */
static void one_stretch(const direct_params *q, const onx_work *work, const unit *u, uint64_t panel, stretch in,
                        float *sums)
{
    const uint64_t vectors = panel_vectors(q->m, q->panels, panel % q->panels), most = direct_most(vectors);
    const uint64_t channel = panel / q->panels * q->c, size = in.to - in.from;
    const uint64_t each = (u->columns + most - 1) / most, tiles = each * u->lines;
    const bool ends = in.to == u->k1;
    const float *others[POST_MAX];
    for (uint32_t p = 0; p < q->applied; p++)
        others[p] = other_of(q, work, p);
    direct_tile t = panel_tile(q, u, panel, true, others);
    t.fetch_step = (vectors * ONXI_LANES + tiles - 1) / tiles;
    const float *fetch = ends && panel + 1 == u->p1 ? weights_of(q, u->p0, 0) : weights_of(q, panel, in.to);
    const float *x = u->x + from_first(q, u->from, channel);
    const uint64_t place = line_of(q, u, 0, channel_of(q, panel));
    for (uint64_t line = 0; line < u->lines; line++) {
        t.a = x + line * (uint64_t)q->win.stride[DOWN] * u->from->line;
        t.place = place + line * out_line(q);
        t.fetch = fetch + line * each * t.fetch_step * size;
        one_line(q, u, t, panel, line, in, sums + line * u->columns * DIRECT_ROW,
                 ends ? (float *)work->outputs[0]->data + t.place : NULL);
    }
}

/* ---- taps apart ---- */

/* Pixels of a unit along an axis for which a tap is in the image: from .. to - 1. */
typedef struct reach {
    uint64_t from, to;
} reach;

static reach reach_of(const direct_params *q, const unit *u, int axis, int64_t tap, uint64_t count)
{
    const int64_t at = u->begin[axis] + tap * q->win.dilation[axis], step = q->win.stride[axis];
    const int64_t from = at < 0 ? (-at + step - 1) / step : 0, left = q->win.in[axis] - at;
    const int64_t to = left <= 0 ? 0 : (left + step - 1) / step;
    const uint64_t end = to < (int64_t)count ? (uint64_t)to : count;
    return (reach){ (uint64_t)from < end ? (uint64_t)from : end, end };
}

/* The sums of a panel of the unit begin with the bias, or end as results. */
static void begin_or_end(const direct_params *q, const onx_work *work, const unit *u, uint64_t panel, bool ends,
                         float *sums)
{
    const uint64_t group = panel / q->panels, index = panel % q->panels;
    const uint64_t first = panel_first(q->m, q->panels, index);
    const float *others[POST_MAX];
    for (uint32_t p = 0; p < q->applied; p++)
        others[p] = other_of(q, work, p);
    direct_tile t = panel_tile(q, u, panel, ends, others);
    t.a = u->x;
    t.b = t.fetch = weights_of(q, panel, 0);
    t.start_step = ends ? DIRECT_ROW : 0;
    const uint64_t place = line_of(q, u, 0, channel_of(q, panel));
    for (uint64_t line = 0; line < u->lines; line++) {
        float *partial = sums + line * u->columns * DIRECT_ROW;
        t.place = place + line * out_line(q);
        t.start = ends ? partial : q->start + group * q->padded + first;
        t.c = ends ? (float *)work->outputs[0]->data + t.place : partial;
        run_line(t, panel_vectors(q->m, q->panels, index), u->columns);
    }
}

/* Adds a range of the channels of a tap to the pixels of the unit for which it is there; `tap`: its place in the sum.
 */
static void one_tap(const direct_params *q, const unit *u, const float *x, uint64_t tap, const reach *down,
                    const reach *across, float *sums)
{
    const uint64_t each = u->lines * u->columns * DIRECT_ROW, columns = across->to - across->from;
    for (uint64_t k = 0, size; k < q->c; k += size) {
        size = tile_depth(q->c - k);
        for (uint64_t p = u->p0; p < u->p1; p++) {
            const uint64_t vectors = panel_vectors(q->m, q->panels, p % q->panels), most = direct_most(vectors);
            const uint64_t tiles = (columns + most - 1) / most * (down->to - down->from);
            direct_tile t = panel_tile(q, u, p, false, NULL);
            t.k = size;
            t.at += k;
            t.b = weights_of(q, p, tap * q->c + k);
            t.fetch = p + 1 < u->p1 ? weights_of(q, p + 1, tap * q->c + k) : t.b + size * vectors * ONXI_LANES;
            t.fetch_step = (vectors * ONXI_LANES + tiles - 1) / tiles;
            const float *of_group = x + from_first(q, &q->place, p / q->panels * q->c);
            for (uint64_t line = down->from; line < down->to; line++) {
                t.a = of_group + (line - down->from) * (uint64_t)q->win.stride[DOWN] * q->place.line;
                t.c = sums + (p - u->p0) * each + (line * u->columns + across->from) * DIRECT_ROW;
                t.start = t.c;
                run_line(t, vectors, columns);
                t.fetch += (columns + most - 1) / most * t.fetch_step * size;
            }
        }
    }
}

/* The input of a tap for the first pixel of the unit for which it is there, in elements of the image. */
static uint64_t input_of(const direct_params *q, const unit *u, const int64_t tap[DIMS], const reach *down,
                         const reach *across)
{
    const int64_t first[DIMS] = { 0, (int64_t)down->from, (int64_t)across->from };
    const uint64_t each[DIMS] = { q->place.plane, q->place.line, q->place.column };
    uint64_t at = 0;
    for (int i = 0; i < DIMS; i++)
        at += (uint64_t)(u->begin[i] + tap[i] * q->win.dilation[i] + first[i] * q->win.stride[i]) * each[i];
    return at;
}

static void taps_apart(const direct_params *q, const onx_work *work, const unit *u, float *sums)
{
    const uint64_t each = u->lines * u->columns * DIRECT_ROW;
    const int64_t *kernel = q->win.kernel;
    uint64_t tap = 0;
    for (uint64_t p = u->p0; p < u->p1; p++)
        begin_or_end(q, work, u, p, false, sums + (p - u->p0) * each);
    for (int64_t kz = 0; kz < kernel[DEPTH]; kz++) {
        const reach slice = reach_of(q, u, DEPTH, kz, 1);
        for (int64_t ky = 0; ky < kernel[DOWN]; ky++) {
            const reach down = reach_of(q, u, DOWN, ky, u->lines);
            for (int64_t kx = 0; kx < kernel[ACROSS]; kx++, tap++) {
                const reach across = reach_of(q, u, ACROSS, kx, u->columns);
                if (slice.from < slice.to && down.from < down.to && across.from < across.to)
                    one_tap(q, u, u->x + input_of(q, u, (const int64_t[]){ kz, ky, kx }, &down, &across), tap, &down,
                            &across, sums);
            }
        }
    }
    for (uint64_t p = u->p0; p < u->p1; p++)
        begin_or_end(q, work, u, p, true, sums + (p - u->p0) * each);
}

static void one_panel(const direct_params *q, const onx_work *work, const unit *u, uint64_t panel, float *sums)
{
    stretch in = { u->k0, u->k0 };
    do {
        in.to += in.from < u->k1 ? tile_depth(u->k1 - in.from) : 0;
        one_stretch(q, work, u, panel, in, sums);
        in.from = in.to;
    } while (in.from < u->k1);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const direct_params *q = work->params;
    float *patch = work->thread_workspace, *sums = patch + q->patch_size;
    for (uint64_t piece = first; piece < last; piece++) {
        const unit u = take_unit(q, work, piece, patch);
        if (q->apart)
            taps_apart(q, work, &u, sums);
        for (uint64_t p = u.p0; !q->apart && p < u.p1; p++)
            one_panel(q, work, &u, p, sums);
        if (q->applied < q->posts.count)
            finish(q, work, &u);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

static bool shape_of(onx_prepare *p, direct_params *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    const int64_t groups = onx_prepare_int(p, "group");
    enum { CHANNELS_MOST = 1 << 20 };
    onxi_window win;
    if (x->rank < 4 || x->rank > 5 || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT || !y ||
        y->rank != x->rank || !y->count || !x->count || !w->count || groups < 1 || x->dims[1] % groups ||
        y->dims[1] % groups || w->dims[1] != x->dims[1] / groups || w->dims[0] != y->dims[1] ||
        x->dims[0] != y->dims[0] || x->dims[1] > CHANNELS_MOST || y->dims[1] > CHANNELS_MOST ||
        (b && (!b->data || b->dtype != ONX_FLOAT || b->count != (uint64_t)w->dims[0])) ||
        onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    *q = (direct_params){ .groups = (uint64_t)groups,
                          .c = (uint64_t)(x->dims[1] / groups),
                          .m = (uint64_t)(y->dims[1] / groups),
                          .batch = (uint64_t)x->dims[0] };
    return window_take(&win, &q->win);
}

/* Are the pixels a line, and windows more than a pixel? These are left to conv.c. */
static bool is_line(const direct_params *q)
{
    const bool flat = q->win.in[DEPTH] == 1 && q->win.kernel[DEPTH] == 1;
    return flat &&
           ((q->win.in[DOWN] == 1 && q->win.kernel[DOWN] == 1) ||
            (q->win.in[ACROSS] == 1 && q->win.kernel[ACROSS] == 1)) &&
           (q->win.kernel[DOWN] != 1 || q->win.kernel[ACROSS] != 1);
}

/* With AVX2 images are in blocks of a vector if their channels fill them, like those of oneDNN and other rows; but
 * an input with channels last is read as it lies. */
static void take_blocks(const onx_prepare *p, direct_params *q)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const uint64_t c = q->groups * q->c, m = q->groups * q->m;
    q->in_block = q->planes ? 1 : c;
    q->out_block = m;
    if (ONXI_LANES != 8)
        return;
    if (!q->planes && q->c % ONXI_LANES == 0 && onxi_blocked_of(x) != c && onxi_product(x->dims, 2, x->rank) > 1)
        q->in_block = ONXI_LANES;
    if (q->m % ONXI_LANES == 0 && onxi_product(y->dims, 2, y->rank) > 1)
        q->out_block = ONXI_LANES;
}

/* With windows of one pixel, all lines of all images are joined to one; in blocks, those of an image. */
static void join_lines(direct_params *q)
{
    for (int i = 0; i < DIMS; i++)
        if (q->win.kernel[i] != 1 || q->win.stride[i] != 1 || q->win.pad[i] || q->win.out[i] != q->win.in[i])
            return;
    const bool all = q->in_block == q->groups * q->c && q->out_block == q->groups * q->m;
    q->win.out[ACROSS] *= q->win.out[DEPTH] * q->win.out[DOWN] * (int64_t)(all ? q->batch : 1);
    q->win.in[ACROSS] = q->win.out[ACROSS];
    q->win.in[DEPTH] = q->win.in[DOWN] = q->win.out[DEPTH] = q->win.out[DOWN] = 1;
    q->batch = all ? 1 : q->batch;
}

/* Sets the distances between pixels of an image of these sizes. */
static void take_view(const direct_params *q, uint64_t planes, uint64_t lines, uint64_t columns, view *v)
{
    v->column = q->in_block;
    v->line = columns * v->column;
    v->plane = lines * v->line;
    v->block = planes * v->plane;
}

/* Finds out where the elements of a window are; `slices`: the dilation along the depth. */
static onx_status take_table(onx_prepare *p, const direct_params *q, uint64_t slices, view *v)
{
    const uint64_t outer = q->planes ? q->c : 1, inner = q->planes ? 1 : q->c;
    int32_t *to = onxi_arena_array(p->arena, q->depth, sizeof *to);
    v->at = to;
    if (!to)
        return ONX_E_MEMORY;
    for (uint64_t c = 0; c < outer; c++)
        for (uint64_t kz = 0; kz < (uint64_t)q->win.kernel[DEPTH]; kz++)
            for (uint64_t ky = 0; ky < (uint64_t)q->win.kernel[DOWN]; ky++)
                for (uint64_t kx = 0; kx < (uint64_t)q->win.kernel[ACROSS]; kx++) {
                    const uint64_t at = c * v->block + kz * slices * v->plane +
                                        ky * (uint64_t)q->win.dilation[DOWN] * v->line +
                                        kx * (uint64_t)q->win.dilation[ACROSS] * v->column;
                    for (uint64_t i = 0; i < inner; i++)
                        *to++ = (int32_t)(at + from_first(q, v, i));
                }
    return ONX_OK;
}

/* Elements of the copy of what a unit covers; UINT64_MAX: too many. */
static uint64_t patch_elements(const direct_params *q, uint64_t lines, uint64_t columns)
{
    const int64_t down = extent_of(q, DOWN, (int64_t)lines), across = extent_of(q, ACROSS, (int64_t)columns);
    uint64_t size = (uint64_t)q->win.kernel[DEPTH] * q->groups * q->c;
    return onxi_mul_u64(size, (uint64_t)down, &size) && onxi_mul_u64(size, (uint64_t)across, &size) ? size : UINT64_MAX;
}

/* Are some windows not inside the image? */
static bool is_padded(const direct_params *q)
{
    for (int i = 0; i < DIMS; i++)
        if (q->win.pad[i] || extent_of(q, i, q->win.out[i]) > q->win.in[i])
            return true;
    return false;
}

/* Lines of a unit: as many as make some pixels and fit the cache; all threads should finish at nearly the same time. */
static void cut(direct_params *q, uint64_t threads)
{
    enum { LEAST_GAIN = 50 }; /* a smaller unit must gain at least this fraction */
    const uint64_t down = (uint64_t)q->win.out[DOWN], across = (uint64_t)q->win.out[ACROSS];
    const uint64_t others = q->batch * (uint64_t)q->win.out[DEPTH];
    const bool padded = is_padded(q) && !q->apart, single = down == 1;
    const uint64_t most = padded ? PIXELS_PADDED : q->depth > BLOCK_K ? PIXELS_LEAST : PIXELS;
    const uint64_t pieces = (across + most - 1) / most;
    uint64_t columns = ((across + pieces - 1) / pieces + TILE_M - 1) / TILE_M * TILE_M;
    columns = columns < across ? columns : across;
    uint64_t lines = most / columns ? most / columns : 1;
    lines = lines < down ? lines : down;
    while (padded && lines > 1 && patch_elements(q, lines, columns) > PATCH)
        lines--;
    /* A smaller number of what is divided: lines, or columns of a single line. */
    const uint64_t size = single ? (across + TILE_M - 1) / TILE_M : down;
    const uint64_t start = single ? (columns + TILE_M - 1) / TILE_M : lines;
    const uint64_t other = single ? others : others * ((across + columns - 1) / columns);
    uint64_t best = start, least = UINT64_MAX;
    for (uint64_t each = start; each && each >= start / 2; each--) {
        const uint64_t units = (size + each - 1) / each * other, span = (units + threads - 1) / threads * each;
        if (least == UINT64_MAX || span < least - least / LEAST_GAIN) {
            least = span;
            best = each;
        }
    }
    /* Where units would have to be smaller and weights are most of what is read, threads share the panels instead. */
    const uint64_t panels = q->groups * q->panels;
    const uint64_t inputs = others * (uint64_t)(q->win.in[DOWN] * q->win.in[ACROSS]) * q->groups * q->c;
    const bool by_panels =
        best < start && panels % threads == 0 && q->m % ONXI_LANES == 0 && q->groups * q->m * q->depth > inputs;
    best = by_panels ? start : best;
    q->lines = single ? 1 : best;
    q->columns = single && best * TILE_M < across ? best * TILE_M : columns;
    q->down = (down + q->lines - 1) / q->lines;
    q->across = (across + q->columns - 1) / q->columns;
    const uint64_t units = others * q->down * q->across;
    q->parts = by_panels || (units % threads && units < 2 * threads && q->m % ONXI_LANES == 0) ? threads : 1;
    q->parts = q->parts < panels ? q->parts : panels;
    q->patch_size = padded ? patch_elements(q, q->lines, q->columns) : 0;
}

/* Taps are added one by one where a window reaches over so much that copying it would cost more, or does not fit, and
 * much of it is padding. Weights that are NaN or infinite have to be multiplied by padding. */
static bool are_apart(const onx_prepare *p, const direct_params *q)
{
    const int64_t across = q->win.out[ACROSS] < PIXELS_LEAST ? q->win.out[ACROSS] : PIXELS_LEAST;
    const uint64_t most = q->win.dilation[DOWN] > 1 || q->win.dilation[ACROSS] > 1 ? PATCH : PATCH_MOST;
    return !q->planes && is_padded(q) && patch_elements(q, 1, (uint64_t)across) > most && onxi_weights_are_finite(p, 1);
}

static onx_status take_weights(onx_prepare *p, direct_params *q)
{
    const uint64_t taps = (uint64_t)(q->win.kernel[DEPTH] * q->win.kernel[DOWN] * q->win.kernel[ACROSS]);
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    direct_packing from = { q->c, q->m, taps, q->panels, q->planes };
    const struct {
        char what[8];
        uint64_t planes, lanes, m, taps, panels;
    } key = { "direct", q->planes, ONXI_LANES, q->m, taps, q->panels };
    uint64_t size;
    if (!onxi_mul_u64(q->groups * q->padded * sizeof(float), q->depth, &size))
        return ONX_E_UNSUPPORTED;
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = size,
                              .pieces = q->groups * q->panels,
                              .make = direct_pack,
                              .user = &from };
    const void *weights;
    ONX_TRY(p->ops->packed(p, &job, &weights));
    q->weights = weights;
    float *start = onxi_arena_array(p->arena, q->groups * q->padded, sizeof *start);
    q->start = start;
    if (!start)
        return ONX_E_MEMORY;
    memset(start, 0, q->groups * q->padded * sizeof *start);
    for (uint64_t g = 0; b && g < q->groups; g++)
        memcpy(start + g * q->padded, (const float *)b->data + g * q->m, q->m * sizeof *start);
    return ONX_OK;
}

static bool layout_of(onx_prepare *p, const onx_value *v, uint64_t block, const onx_layout **out)
{
    if (block == (uint64_t)v->dims[1])
        return onxi_channels_last(p, v, out);
    return (*out = onxi_blocked_layout(p->arena, v, (uint32_t)block)) != NULL;
}

static onx_status take_layouts(onx_prepare *p, direct_params *q)
{
    const onx_layout *in = NULL, *out = NULL;
    if ((!q->planes && !layout_of(p, p->inputs[0], q->in_block, &in)) ||
        !layout_of(p, p->outputs[0], q->out_block, &out))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_weights(p, q));
    q->skips = q->patch_size && !q->planes && onxi_weights_are_finite(p, 1);
    post_take_image(p, &q->posts, out);
    while (q->applied < q->posts.count && direct_applies(&q->posts.list[q->applied]))
        q->applied++;
    onxi_image_layouts(p, in, out);
    p->params = q;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    enum { PLANES_MOST = 4 };
    direct_params *q = ONXI_NEW(p->arena, direct_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || !shape_of(p, q))
        return ONX_E_UNSUPPORTED;
    q->planes = q->groups == 1 && q->c <= PLANES_MOST && !p->inputs[0]->layout;
    /* The tiles of a single vector of 16 channels are limited by loads: oneDNN takes 0.87 to 0.99 times as long, except
     * where it needs another layout of the input, as for groups. */
    if (ONXI_LANES == 16 && p->kernel->body && vectors_of(q->m) < 2 && !q->planes && q->groups == 1)
        return ONX_E_UNSUPPORTED;
    if (q->groups > 1 && (q->c < ONXI_LANES || q->m % ONXI_LANES))
        return ONX_E_UNSUPPORTED;
    if (is_line(q))
        return ONX_E_UNSUPPORTED;
    take_blocks(p, q);
    if (!q->planes)
        join_lines(q);
    const uint64_t taps = (uint64_t)(q->win.kernel[DEPTH] * q->win.kernel[DOWN] * q->win.kernel[ACROSS]);
    q->depth = q->c * taps;
    q->panels = panels_of(q->m);
    q->padded = vectors_of(q->m) * ONXI_LANES;
    q->apart = are_apart(p, q);
    cut(q, p->threads);
    if (q->patch_size > PATCH_MOST)
        return ONX_E_UNSUPPORTED;
    take_view(q, (uint64_t)q->win.in[DEPTH], (uint64_t)q->win.in[DOWN], (uint64_t)q->win.in[ACROSS], &q->place);
    take_view(q, (uint64_t)q->win.kernel[DEPTH], (uint64_t)extent_of(q, DOWN, (int64_t)q->lines),
              (uint64_t)extent_of(q, ACROSS, (int64_t)q->columns), &q->patch);
    if (q->place.block > INT32_MAX / (q->groups * q->c / q->in_block))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_table(p, q, (uint64_t)q->win.dilation[DEPTH], &q->place));
    if (q->patch_size)
        ONX_TRY(take_table(p, q, 1, &q->patch));
    p->rows = q->batch * (uint64_t)q->win.out[DEPTH] * q->down * q->across * q->parts;
    p->grain = onxi_worth_a_thread(q->lines * q->columns * q->depth * q->groups * q->m / q->parts);
    const uint64_t partial =
        q->apart ? (q->groups * q->panels + q->parts - 1) / q->parts : q->depth > BLOCK_K || q->win.kernel[DEPTH] > 1;
    p->thread_workspace = (q->patch_size + partial * q->lines * q->columns * DIRECT_ROW) * sizeof(float);
    return take_layouts(p, q);
}

#define ROW(preference_, body_)                                                                                        \
    {                                                                                                                  \
        .op = "Conv", .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .packs = 1 << 1,   \
        .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = body_, .prepare = prepare, \
        .run = run                                                                                                     \
    }
#if ONXI_LANES >= 8
/* Tried before oneDNN, which is as fast, but generates code for each shape. */
static const char early = 0;
#define EARLY_ROW ROW(11, &early),
#else
#define EARLY_ROW
#endif
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_direct)[] = { EARLY_ROW ROW(6, NULL), { 0 } };
#endif
