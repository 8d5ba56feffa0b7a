/* conv.c - Conv of images with channels last: multiplies the inputs that windows cover with the weights, tile by tile
 * as in product.c. It serves browsers, and what direct.c declines. If the pixels are one line (sound, time series),
 * windows are overlapping rows of a matrix in memory, and only windows that reach into the padding are copied. Sums run
 * in one fixed order. */
#include "kernel/core/blocked.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

/* Most output pixels at a time; bytes that covered inputs may take, and where these are the ends of a line; fewest
 * pixels that are read in place; pixels of a line whose dot products are computed together. */
enum { PIXELS = 96, COVERED = 192 << 10, COVERED_ENDS = 1 << 20, DIRECT_LEAST = 2 * TILE_M, DOTS = 8 };

typedef struct conv_params {
    uint64_t c, m;                          /* channels of the input and of the output */
    int64_t h, w, oh, ow, kh, kw;           /* of images, and of the window */
    int64_t stride[2], dilation[2], pad[2]; /* down, across */
    uint64_t depth;                         /* elements that an output pixel is computed from */
    /* Length of a contiguous run of them in a line, and elements between two runs. */
    uint64_t run, gap;
    uint64_t pixels, each; /* of all images; per unit of work */
    int64_t within[2];     /* range of pixels in a line that are read in place */
    /* One output channel: sums use vectors along the depth instead of channels. */
    bool dots;
    const float *weights, *bias; /* packed; bias padded to whole panels, NULL: none */
    simd_posts posts;
} conv_params;

/* Is a single line of pixels, or a number of channels that is not a multiple of the vector length, supported? Browsers
 * use other rows for these, since their module has no room for more. */
enum { LINES = ONXI_PLATFORM_ROOMY };

/* ---- weights ---- */

typedef struct packing {
    uint64_t c, m, taps;
} packing;

/* The first channel of a panel. The last of several panels ends with the last channel and has whole vectors, so that
 * results can be stored directly; it repeats some channels of the panel before. */
static inline uint64_t panel_first(uint64_t m, uint64_t panel)
{
    const uint64_t first = panel * PANEL, left = m - first, vectors = (left + ONXI_LANES - 1) / ONXI_LANES;
    return !LINES || !panel || left >= PANEL ? first : m - vectors * ONXI_LANES;
}

/* A panel of output channels: by tap, by input channel. */
static onx_status pack_panel(void *user, const void *elements, uint64_t panel, void *out)
{
    enum { AT_ONCE = 64 };
    const packing *q = user;
    const uint64_t first = panel_first(q->m, panel), width = q->m - first < PANEL ? q->m - first : PANEL;
    const uint64_t depth = q->c * q->taps;
    const float *from = (const float *)elements + first * depth;
    float *to = (float *)out + panel * depth * PANEL, rows[AT_ONCE * PANEL];
    for (uint64_t k = 0, count; k < depth; k += count) {
        count = depth - k < AT_ONCE ? depth - k : AT_ONCE;
        tile_turn((const char *)(from + k), depth * sizeof *from, width, count, rows);
        for (uint64_t i = 0; i < count; i++)
            memcpy(to + ((k + i) % q->taps * q->c + (k + i) / q->taps) * PANEL, rows + i * PANEL, PANEL * sizeof *to);
    }
    return ONX_OK;
}

/* Packs the weights of a single output channel: by tap, by input channel. */
static onx_status pack_dots(void *user, const void *elements, uint64_t piece, void *out)
{
    const packing *q = user;
    float *to = out;
    (void)piece;
    for (uint64_t t = 0; t < q->taps; t++)
        for (uint64_t c = 0; c < q->c; c++)
            *to++ = ((const float *)elements)[c * q->taps + t];
    return ONX_OK;
}

/* ---- products ---- */

/* The range of taps for which a window that begins at `at` is within 0 .. size - 1. */
static inline void inside(int64_t at, int64_t size, int64_t taps, int64_t dilation, int64_t *from, int64_t *to)
{
    *from = at < 0 ? (-at + dilation - 1) / dilation : 0;
    *to = at < size ? (size - at + dilation - 1) / dilation : 0;
    *from = *from < taps ? *from : taps;
    *to = *to < taps ? *to : taps;
    *to = *to > *from ? *to : *from;
}

/* Copies the inputs that an output pixel covers, with zeros for the padding. */
static void cover(const conv_params *q, const float *x, int64_t oy, int64_t ox, float *to)
{
    const int64_t y0 = oy * q->stride[0] - q->pad[0], x0 = ox * q->stride[1] - q->pad[1];
    const size_t pixel = (size_t)q->c, line = pixel * (size_t)q->kw;
    int64_t from, end;
    inside(x0, q->w, q->kw, q->dilation[1], &from, &end);
    for (int64_t ky = 0; ky < q->kh; ky++, to += line) {
        const int64_t y = y0 + ky * q->dilation[0];
        if (y < 0 || y >= q->h || from == end) {
            memset(to, 0, line * sizeof *to);
            continue;
        }
        const float *at = x + (uint64_t)(y * q->w + x0 + from * q->dilation[1]) * q->c;
        memset(to, 0, (size_t)from * pixel * sizeof *to);
        if (q->dilation[1] == 1)
            memcpy(to + (size_t)from * pixel, at, (size_t)(end - from) * pixel * sizeof *to);
        for (int64_t kx = from; q->dilation[1] != 1 && kx < end; kx++)
            memcpy(to + (size_t)kx * pixel, at + (uint64_t)((kx - from) * q->dilation[1]) * q->c, pixel * sizeof *to);
        memset(to + (size_t)end * pixel, 0, (size_t)(q->kw - end) * pixel * sizeof *to);
    }
}

/* Copies rows of `width` elements; nothing beyond them is read or written. */
static inline void copy_rows(const float *from, uint64_t step, float *to, uint64_t to_step, uint64_t rows,
                             uint64_t width)
{
    const uint64_t whole = width / ONXI_LANES * ONXI_LANES, rest = width - whole;
    for (uint64_t i = 0; i < rows; i++, from += step, to += to_step) {
        for (uint64_t k = 0; k < whole; k += ONXI_LANES)
            vf_store(to + k, vf_load(from + k));
        if (LINES && rest)
            vf_store_part(to + whole, vf_load_part(from + whole, rest, 0), rest);
    }
}

/* Applies post-operations to the sums of some pixels and `width` channels, and stores them at `at` of the result. If
 * `width` is not a multiple of the vector length, there are at most TILE_M pixels, or, with one channel, PIXELS. */
static void finish(const conv_params *q, const onx_work *work, float *sums, uint64_t step, uint64_t pixels,
                   uint64_t width, uint64_t at)
{
    enum { ROOM = TILE_M * PANEL > PIXELS ? TILE_M * PANEL : PIXELS };
    float part[ROOM], *y = (float *)work->outputs[0]->data + at;
    for (uint32_t p = 0; p < q->posts.count; p++) {
        const simd_post *f = &q->posts.list[p];
        const float *same = f->operand >= 0 ? (const float *)work->inputs[f->operand]->data + at : NULL;
        uint64_t same_step = q->m;
        if (LINES && same && width % ONXI_LANES) {
            copy_rows(same, q->m, part, PANEL, pixels, width);
            same = part;
            same_step = PANEL;
        }
        post_apply(f, sums, step, pixels, (width + ONXI_LANES - 1) / ONXI_LANES, NULL, same, same_step);
    }
    if (sums != y)
        copy_rows(sums, step, y, q->m, pixels, width);
}

/* Consecutive pixels and the inputs they cover: `lda` elements from a pixel to the next, with gaps between runs or
 * without. */
typedef struct part {
    const float *a;
    uint64_t lda, gap, pixels;
} part;

/* The part of the depth that is summed next, from `k` on: some runs, or a part of one. */
static uint64_t stretch_of(const conv_params *q, uint64_t k)
{
    const uint64_t left = q->depth - k;
    if (!LINES || q->run == q->depth)
        return tile_depth(left);
    if (q->run >= BLOCK_K)
        return tile_depth(q->run - k % q->run);
    const uint64_t runs = left / q->run, most = BLOCK_K / q->run, stretches = (runs + most - 1) / most;
    return (runs + stretches - 1) / stretches * q->run;
}

/* Where the sums of a panel are accumulated, and where in the result they go. */
typedef struct target {
    float *c;
    uint64_t ldc, panel, width, at;
} target;

/* Accumulates `count` elements of the depth, from `k` on, for a part that begins at pixel `first` of the target. */
static void sum_up(const conv_params *q, const onx_work *work, const part *f, const target *to, uint64_t first,
                   uint64_t k, uint64_t count)
{
    const uint64_t run = count < q->run ? count : q->run;
    const tile_walk walk = { count / run, f->gap, k || !q->bias ? NULL : q->bias + panel_first(q->m, to->panel) };
    for (uint64_t i = 0, rows; i < f->pixels; i += rows) {
        rows = tile_height(f->pixels - i);
        const tile_operands t = { .a = f->a + i * f->lda + k + k / q->run * f->gap,
                                  .b = q->weights + (to->panel * q->depth + k) * PANEL,
                                  .c = to->c + (first + i) * to->ldc,
                                  .lda = f->lda,
                                  .ldb = PANEL,
                                  .ldc = to->ldc,
                                  .k = run,
                                  .more = k > 0 };
        tile_run_walk(&t, &walk, rows, LINES && to->width <= ONXI_LANES);
        if (k + count == q->depth)
            finish(q, work, t.c, t.ldc, rows, to->width, to->at + (first + i) * q->m);
    }
}

/* Computes a panel of channels for the pixels of some parts, which begin at pixel `first` of the result. Sums that are
 * whole vectors and need one pass are accumulated directly in the result. */
static void panel_of(const conv_params *q, const onx_work *work, const part *parts, int count, uint64_t panel,
                     uint64_t first, float *sums)
{
    const uint64_t channel = panel_first(q->m, panel), left = q->m - channel;
    target to = { sums, PANEL, panel, left < PANEL ? left : PANEL, first * q->m + channel };
    if (to.width % (LINES ? ONXI_LANES : PANEL) == 0 && stretch_of(q, 0) == q->depth) {
        to.c = (float *)work->outputs[0]->data + to.at;
        to.ldc = q->m;
    }
    for (uint64_t k = 0, some; k < q->depth; k += some) {
        uint64_t pixels = 0;
        some = stretch_of(q, k);
        for (int i = 0; i < count; pixels += parts[i++].pixels)
            sum_up(q, work, &parts[i], &to, pixels, k, some);
    }
}

/* ---- one output channel ---- */

/* Computes some pixels whose inputs begin at `a`, with stride `lda`. */
__attribute__((always_inline)) static inline void some_dots(const conv_params *q, const part *f, const float *a,
                                                            float *y, const int pixels)
{
    const uint64_t run = f->gap ? q->run : q->depth, whole = run / ONXI_LANES * ONXI_LANES, rest = run - whole;
    const float *w = q->weights;
    onxi_vf sum[DOTS];
    UNROLL
    for (int i = 0; i < pixels; i++)
        sum[i] = vf_all(0);
    for (uint64_t left = q->depth; left; left -= run, a += run + f->gap, w += run) {
        for (uint64_t k = 0; k < whole; k += ONXI_LANES) {
            const onxi_vf by = vf_load(w + k);
            UNROLL
            for (int i = 0; i < pixels; i++)
                sum[i] += by * vf_load(a + (uint64_t)i * f->lda + k);
        }
        if (!rest)
            continue;
        const onxi_vf by = vf_load_part(w + whole, rest, 0);
        for (int i = 0; i < pixels; i++)
            sum[i] += by * vf_load_part(a + (uint64_t)i * f->lda + whole, rest, 0);
    }
    for (int i = 0; i < pixels; i++)
        y[i] = vf_sum(sum[i]) + (q->bias ? q->bias[0] : 0);
}

/* Computes all pixels of some parts, which begin at pixel `first` of the result. */
static void dots(const conv_params *q, const onx_work *work, const part *parts, int count, uint64_t first, float *sums)
{
    float *y = sums;
    for (const part *f = parts; f < parts + count; f++) {
        uint64_t i = 0;
        for (; i + DOTS <= f->pixels; i += DOTS, y += DOTS)
            some_dots(q, f, f->a + i * f->lda, y, DOTS);
        for (; i < f->pixels; i++)
            some_dots(q, f, f->a + i * f->lda, y++, 1);
    }
    finish(q, work, sums, PIXELS, 1, (uint64_t)(y - sums), first);
}

/* ---- pieces ---- */

/* The end of the range of pixels from `at` on, up to `end`, whose inputs are all read in place (*direct) or all
 * copied. */
static int64_t part_end(const conv_params *q, int64_t at, int64_t end, bool *direct)
{
    const int64_t from = q->within[0], to = q->within[1] < end ? q->within[1] : end;
    *direct = at >= from && to - at >= DIRECT_LEAST;
    return *direct ? to : at < from && from < end ? from : end;
}

/* Divides some pixels of all images into parts and copies inputs where necessary. Consecutive copies are one part. */
static int make_parts(const conv_params *q, const float *x, uint64_t first, uint64_t count, float *covered, part *parts)
{
    const uint64_t size = (uint64_t)(q->oh * q->ow), plane = (uint64_t)(q->h * q->w) * q->c;
    int made = 0;
    for (uint64_t i = 0, some; i < count; i += some) {
        const int64_t at = (int64_t)((first + i) % size), left = (int64_t)(count - i);
        const float *image = x + (first + i) / size * plane;
        bool direct;
        const int64_t end = part_end(q, at, left < (int64_t)size - at ? at + left : (int64_t)size, &direct);
        some = (uint64_t)(end - at);
        if (direct) {
            const float *a = image + (uint64_t)(at * q->stride[1] - q->pad[1]) * q->c;
            parts[made++] = (part){ a, (uint64_t)q->stride[1] * q->c, q->gap, some };
            continue;
        }
        if (!made || parts[made - 1].a != covered - parts[made - 1].pixels * q->depth)
            parts[made++] = (part){ covered, q->depth, 0, 0 };
        parts[made - 1].pixels += some;
        for (int64_t p = at; p < end; p++, covered += q->depth)
            cover(q, image, p / q->ow, p % q->ow, covered);
    }
    return made;
}

static onx_status conv_run(onx_work *work, uint64_t first, uint64_t last)
{
    const conv_params *q = work->params;
    const uint64_t panels = (q->m + PANEL - 1) / PANEL;
    float *sums = work->thread_workspace, *covered = sums + PIXELS * PANEL;
    part parts[PIXELS];
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t p0 = piece * q->each, pixels = q->pixels - p0 < q->each ? q->pixels - p0 : q->each;
        const int count = make_parts(q, work->inputs[0]->data, p0, pixels, covered, parts);
        if (LINES && q->dots)
            dots(q, work, parts, count, p0, sums);
        for (uint64_t p = 0; !q->dots && p < panels; p++)
            panel_of(q, work, parts, count, p, p0, sums);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* Are the sizes small enough that products of a few of them fit in 64 bits? */
static bool is_small(const onxi_window *win, uint32_t i)
{
    return win->in[i] < 1 << 28 && win->out[i] < 1 << 28 && win->kernel[i] > 0 && win->kernel[i] < 1 << 15 &&
           win->stride[i] < 1 << 15 && win->dilation[i] < 1 << 15 && win->pad[i] >= 0 && win->pad[i] < 1 << 28;
}

/* Sets axis 0 or 1 of the images: dim `from` of the window, or size 1 if there is no such dim. */
static void take_axis(const onxi_window *win, int axis, int from, conv_params *q)
{
    const bool is_there = from >= 0;
    *(axis ? &q->w : &q->h) = is_there ? win->in[from] : 1;
    *(axis ? &q->ow : &q->oh) = is_there ? win->out[from] : 1;
    *(axis ? &q->kw : &q->kh) = is_there ? win->kernel[from] : 1;
    q->stride[axis] = is_there ? win->stride[from] : 1;
    q->dilation[axis] = is_there ? win->dilation[from] : 1;
    q->pad[axis] = is_there ? win->pad[from] : 0;
}

static bool shape_of(onx_prepare *p, conv_params *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank < (LINES ? 3 : 4) || x->rank > 4 || w->rank != x->rank || (!LINES && w->dims[0] % ONXI_LANES) ||
        !w->data || w->dtype != ONX_FLOAT || !y || y->rank != x->rank || !y->count || !x->count || !w->count ||
        (b && (!b->data || b->dtype != ONX_FLOAT || b->count != (uint64_t)w->dims[0])) || w->dims[0] != y->dims[1] ||
        x->dims[0] != y->dims[0] || onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    for (uint32_t i = 0; i < win.spatial; i++)
        if (!is_small(&win, i))
            return false;
    *q = (conv_params){ .c = (uint64_t)x->dims[1], .m = (uint64_t)y->dims[1] };
    const int last = (int)win.spatial - 1;
    take_axis(&win, 0, last - 1, q);
    take_axis(&win, 1, last, q);
    return true;
}

/* Are the pixels one horizontal line? */
static bool is_line(const conv_params *q)
{
    return q->h == 1 && q->oh == 1 && q->kh == 1 && !q->pad[0];
}

/* Makes a vertical line a horizontal one by exchanging the axes. */
static void turn_line(conv_params *q)
{
    if (!LINES || q->w != 1 || q->ow != 1 || q->kw != 1 || q->pad[1])
        return;
    q->w = q->h;
    q->ow = q->oh;
    q->kw = q->kh;
    q->h = q->oh = q->kh = 1;
    q->stride[1] = q->stride[0];
    q->dilation[1] = q->dilation[0];
    q->pad[1] = q->pad[0];
    q->pad[0] = 0;
}

/* With windows of one pixel, all lines are joined to one. */
static void join_lines(conv_params *q)
{
    if (q->kh != 1 || q->kw != 1 || q->stride[0] != 1 || q->stride[1] != 1 || q->pad[0] || q->pad[1] || q->oh != q->h ||
        q->ow != q->w)
        return;
    q->w = q->ow = q->w * q->h;
    q->h = q->oh = 1;
}

/* Finds the contiguous runs of a window, and the range of pixels in a line whose inputs are read in place. */
static void take_line(conv_params *q)
{
    enum { RUN_LEAST = 2 * ONXI_LANES }; /* so that most vectors are whole */
    const int64_t reach = (q->kw - 1) * q->dilation[1], stride = q->stride[1], pad = q->pad[1];
    q->run = q->depth;
    if (!is_line(q))
        return;
    if (LINES && q->kw > 1 && q->dilation[1] > 1) {
        q->run = q->c;
        q->gap = (uint64_t)(q->dilation[1] - 1) * q->c;
    }
    q->dots = LINES && q->m == 1 && (q->run % ONXI_LANES == 0 || q->run >= RUN_LEAST);
    q->within[0] = (pad + stride - 1) / stride;
    q->within[1] = q->w + pad > reach ? (q->w + pad - reach - 1) / stride + 1 : 0;
}

static onx_status take_weights(onx_prepare *p, conv_params *q)
{
    const uint64_t taps = (uint64_t)(q->kh * q->kw), panels = (q->m + PANEL - 1) / PANEL;
    packing from = { q->c, q->m, taps };
    const struct {
        char what[8];
        uint64_t how, panel, m, taps;
    } key = { "conv", q->dots ? 2 : 0, PANEL, q->m, taps };
    const bool dots = LINES && q->dots;
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = (dots ? 1 : panels * PANEL) * q->depth * sizeof(float),
                              .pieces = dots ? 1 : panels,
                              .in_order = true,
                              .make = dots ? pack_dots : pack_panel,
                              .user = &from };
    const void *weights;
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    ONX_TRY(p->ops->packed(p, &job, &weights)); /* weights that are not constant are not packed */
    q->weights = weights;
    if (!b)
        return ONX_OK;
    float *bias = onxi_arena_array(p->arena, panels * PANEL, sizeof *bias);
    if (bias)
        memcpy(bias, b->data, (size_t)q->m * sizeof *bias);
    q->bias = bias;
    return bias ? ONX_OK : ONX_E_MEMORY;
}

static onx_status take(onx_prepare *p, conv_params *q)
{
    const onx_layout *in, *out;
    if (!onxi_channels_last(p, p->inputs[0], &in) || !onxi_channels_last(p, p->outputs[0], &out))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_weights(p, q));
    post_take_image(p, &q->posts, out);
    onxi_image_layouts(p, in, out);
    p->params = q;
    return ONX_OK;
}

/* Pixels per unit of work: whole tiles, few enough that copied inputs stay in the L2 cache, and such that all threads
 * finish at nearly the same time. */
static uint64_t pixels_of(const conv_params *q, uint64_t threads)
{
    enum { LEAST_GAIN = 50 }; /* fewer pixels must gain at least this fraction */
    const uint64_t covered = (is_line(q) ? COVERED_ENDS : COVERED) / sizeof(float) / q->depth / TILE_M;
    const uint64_t tiles = (q->pixels + TILE_M - 1) / TILE_M, share = (tiles + threads - 1) / threads;
    uint64_t most = covered < PIXELS / TILE_M ? covered : PIXELS / TILE_M, best = 1, least = UINT64_MAX;
    most = most < share ? most : share;
    for (uint64_t each = most; each && each >= most / 2; each--) {
        const uint64_t pieces = (tiles + each - 1) / each, span = (pieces + threads - 1) / threads * each;
        if (least == UINT64_MAX || span < least - least / LEAST_GAIN) {
            least = span;
            best = each;
        }
    }
    return best * TILE_M;
}

static onx_status conv_prepare(onx_prepare *p)
{
    conv_params *q = ONXI_NEW(p->arena, conv_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || !shape_of(p, q))
        return ONX_E_UNSUPPORTED;
    const int64_t groups = onx_prepare_int(p, "group");
    const uint64_t batch = (uint64_t)p->inputs[0]->dims[0];
    turn_line(q);
    if (LINES && p->kernel->body && !is_line(q))
        return ONX_E_UNSUPPORTED;
    if (groups != 1 || (uint64_t)p->inputs[1]->dims[1] != q->c)
        return ONX_E_UNSUPPORTED;
    join_lines(q);
    q->depth = q->c * (uint64_t)(q->kh * q->kw);
    take_line(q);
    q->pixels = batch * (uint64_t)(q->oh * q->ow);
    q->each = pixels_of(q, p->threads);
    p->rows = (q->pixels + q->each - 1) / q->each;
    p->grain = onxi_worth_a_thread(q->each * q->depth * q->m);
    p->thread_workspace = ((uint64_t)PIXELS * PANEL + q->each * q->depth) * sizeof(float);
    return take(p, q);
}

#define ROW(preference_, body_)                                                                                        \
    {                                                                                                                  \
        .op = "Conv", .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .packs = 1 << 1,   \
        .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = body_,                     \
        .prepare = conv_prepare, .run = conv_run                                                                       \
    }
#if ONXI_PLATFORM_ROOMY
/* Lines are tried before oneDNN. They run within a tenth of its time, but its kernels are generated when a session is
 * created, which takes 2 to 30 ms for each convolution of a long line that runs in 0.05 to 2 ms. */
static const char lines = 0;
#define LINE_ROW ROW(10, &lines),
#else
#define LINE_ROW
#endif
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_conv)[] = { LINE_ROW ROW(4, NULL), { 0 } };
