/* conv.c - Conv of images whose channels are last: products of the pixels that a window covers and the weights, tile by
 * tile as in product.c, and vectors of channels where each channel is a group of its own. For machines without oneDNN,
 * and for what it has no fast kernel for. Sums run in one fixed order. */
#include "kernel/core/blocked.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

/* Pixels of the result at a time, at most; bytes that what they cover may take; pixels of a line whose channels are
 * summed up together. */
enum { PIXELS = 96, COVERED = 192 << 10, TOGETHER = 4 };

typedef struct conv_params {
    uint64_t c, m;                          /* channels of the input and of the result */
    int64_t h, w, oh, ow, kh, kw;           /* of images, and of the window */
    int64_t stride[2], dilation[2], pad[2]; /* down, across */
    uint64_t depth;                         /* numbers that a pixel of the result is made of */
    uint64_t each, pieces;                  /* pixels of a piece of work; pieces of an image */
    bool direct;                            /* what a pixel covers is a pixel: nothing is copied */
    bool depthwise;                         /* each channel is a group of its own */
    const float *weights, *bias;            /* packed; bias padded to whole panels, NULL: none */
    simd_posts posts;
} conv_params;

/* ---- weights ---- */

typedef struct packing {
    uint64_t c, m, taps;
} packing;

/* A panel of output channels: by tap, by input channel. */
static onx_status pack_panel(void *user, const void *elements, uint64_t panel, void *out)
{
    const packing *q = user;
    const uint64_t first = panel * PANEL, width = q->m - first < PANEL ? q->m - first : PANEL;
    float *to = (float *)out + panel * q->c * q->taps * PANEL;
    for (uint64_t t = 0; t < q->taps; t++)
        for (uint64_t c = 0; c < q->c; c++, to += PANEL)
            for (uint64_t m = 0; m < PANEL; m++)
                to[m] = m < width ? ((const float *)elements)[((first + m) * q->c + c) * q->taps + t] : 0;
    return ONX_OK;
}

/* A tap of all channels after the other. */
static onx_status pack_taps(void *user, const void *elements, uint64_t piece, void *out)
{
    const packing *q = user;
    float *to = out;
    (void)piece;
    for (uint64_t t = 0; t < q->taps; t++)
        for (uint64_t c = 0; c < q->m; c++)
            *to++ = ((const float *)elements)[c * q->taps + t];
    return ONX_OK;
}

/* ---- products ---- */

/* From which tap on, and up to which one, is a window that begins at `at` within 0 .. size - 1? */
static inline void inside(int64_t at, int64_t size, int64_t taps, int64_t dilation, int64_t *from, int64_t *to)
{
    *from = at < 0 ? (-at + dilation - 1) / dilation : 0;
    *to = at < size ? (size - at + dilation - 1) / dilation : 0;
    *from = *from < taps ? *from : taps;
    *to = *to < taps ? *to : taps;
    *to = *to > *from ? *to : *from;
}

/* What a pixel of the result covers, with zeros for the padding. */
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

/* What comes after the sums of some pixels and channels: `at` is where they are in the result. */
static void finish(const conv_params *q, const onx_work *work, float *sums, uint64_t step, uint64_t pixels,
                   uint64_t vectors, uint64_t at)
{
    for (uint32_t p = 0; p < q->posts.count; p++) {
        const simd_post *f = &q->posts.list[p];
        const float *same = f->operand >= 0 ? (const float *)work->inputs[f->operand]->data + at : NULL;
        post_apply(f, sums, step, pixels, vectors, NULL, same, q->m);
    }
}

/* A panel of channels of some pixels: `a` is what they cover, `at` where the panel of the first one goes. */
static void panel_of(const conv_params *q, const onx_work *work, const float *a, uint64_t pixels, uint64_t panel,
                     uint64_t at, float *sums)
{
    const float *b = q->weights + panel * q->depth * PANEL;
    const uint64_t left = q->m - panel * PANEL, vectors = left < PANEL ? left / ONXI_LANES : (uint64_t)TILE_V;
    for (uint64_t k = 0; k < q->depth; k += BLOCK_K)
        for (uint64_t i = 0, rows; i < pixels; i += rows) {
            rows = tile_height(pixels - i);
            const tile_operands t = { .a = a + i * q->depth + k,
                                      .b = b + k * PANEL,
                                      .c = sums + i * PANEL,
                                      .lda = q->depth,
                                      .ldb = PANEL,
                                      .ldc = PANEL,
                                      .k = q->depth - k < BLOCK_K ? q->depth - k : BLOCK_K,
                                      .more = k > 0 };
            tile_run(&t, rows);
        }
    if (q->bias)
        post_apply_row(sums, PANEL, pixels, TILE_V, q->bias + panel * PANEL);
    finish(q, work, sums, PANEL, pixels, vectors, at);
    float *y = (float *)work->outputs[0]->data + at;
    for (uint64_t i = 0; i < pixels; i++)
        for (uint64_t v = 0; v < vectors; v++)
            vf_store(y + i * q->m + v * ONXI_LANES, vf_load(sums + i * PANEL + v * ONXI_LANES));
}

static onx_status products_run(onx_work *work, uint64_t first, uint64_t last)
{
    const conv_params *q = work->params;
    const uint64_t size = (uint64_t)(q->oh * q->ow), panels = (q->m + PANEL - 1) / PANEL;
    float *sums = work->thread_workspace, *covered = sums + PIXELS * PANEL;
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t image = piece / q->pieces, p0 = piece % q->pieces * q->each;
        const uint64_t count = size - p0 < q->each ? size - p0 : q->each;
        const float *x = (const float *)work->inputs[0]->data + image * (uint64_t)(q->h * q->w) * q->c, *a = covered;
        if (q->direct)
            a = x + p0 * q->c;
        for (uint64_t i = 0; !q->direct && i < count; i++)
            cover(q, x, (int64_t)(p0 + i) / q->ow, (int64_t)(p0 + i) % q->ow, covered + i * q->depth);
        for (uint64_t p = 0; p < panels; p++)
            panel_of(q, work, a, count, p, (image * size + p0) * q->m + p * PANEL, sums);
    }
    return ONX_OK;
}

/* ---- channels that are groups ---- */

/* A vector of channels of `pixels` neighbours, whose windows are within the image across; `x` is the first number that
 * they cover, `w` its weights. */
__attribute__((always_inline)) static inline void together(const conv_params *q, const float *x, const float *w,
                                                           int64_t lines, int64_t taps, onxi_vf bias, float *y,
                                                           const int pixels)
{
    const uint64_t c = q->c, line = (uint64_t)(q->w * q->dilation[0]) * c, tap = (uint64_t)q->dilation[1] * c;
    const uint64_t next = (uint64_t)q->stride[1] * c;
    onxi_vf sum[TOGETHER];
    UNROLL
    for (int i = 0; i < pixels; i++)
        sum[i] = bias;
    for (int64_t ky = 0; ky < lines; ky++, x += line, w += (uint64_t)q->kw * c)
        for (int64_t kx = 0; kx < taps; kx++) {
            const float *at = x + (uint64_t)kx * tap;
            const onxi_vf by = vf_load(w + (uint64_t)kx * c);
            UNROLL
            for (int i = 0; i < pixels; i++)
                sum[i] += by * vf_load(at + (uint64_t)i * next);
        }
    UNROLL
    for (int i = 0; i < pixels; i++)
        vf_store(y + (uint64_t)i * c, sum[i]);
}

/* Pixels ox .. ox + count - 1 of a line of the result: count is 1, or TOGETHER where nothing is cut off across. */
static void some_pixels(const conv_params *q, const float *x, int64_t oy, int64_t ox, int count, float *y)
{
    const int64_t y0 = oy * q->stride[0] - q->pad[0], x0 = ox * q->stride[1] - q->pad[1];
    int64_t top, bottom, from, to;
    inside(y0, q->h, q->kh, q->dilation[0], &top, &bottom);
    inside(x0, q->w, q->kw, q->dilation[1], &from, &to);
    const bool none = top == bottom || from == to; /* a window in the padding altogether reads nothing */
    const int64_t at = none ? 0 : (y0 + top * q->dilation[0]) * q->w + x0 + from * q->dilation[1];
    const float *first = x + (uint64_t)at * q->c;
    const float *w = q->weights + (none ? 0 : (uint64_t)(top * q->kw + from) * q->c);
    for (uint64_t c = 0; c < q->c; c += ONXI_LANES) {
        const onxi_vf bias = q->bias ? vf_load(q->bias + c) : vf_all(0);
        if (count == TOGETHER)
            together(q, first + c, w + c, none ? 0 : bottom - top, to - from, bias, y + c, TOGETHER);
        else
            together(q, first + c, w + c, none ? 0 : bottom - top, to - from, bias, y + c, 1);
    }
}

/* A piece is a line of the result. */
static onx_status depthwise_run(onx_work *work, uint64_t first, uint64_t last)
{
    const conv_params *q = work->params;
    const int64_t reach = (q->kw - 1) * q->dilation[1];
    for (uint64_t line = first; line < last; line++) {
        const uint64_t image = line / (uint64_t)q->oh, at = line * (uint64_t)q->ow * q->c;
        const float *x = (const float *)work->inputs[0]->data + image * (uint64_t)(q->h * q->w) * q->c;
        float *y = (float *)work->outputs[0]->data + at;
        for (int64_t ox = 0, count; ox < q->ow; ox += count) {
            const int64_t from = ox * q->stride[1] - q->pad[1], to = from + (TOGETHER - 1) * q->stride[1] + reach;
            count = from >= 0 && to < q->w && ox + TOGETHER <= q->ow ? TOGETHER : 1;
            some_pixels(q, x, (int64_t)(line % (uint64_t)q->oh), ox, (int)count, y + (uint64_t)ox * q->c);
        }
        finish(q, work, y, q->c, (uint64_t)q->ow, q->c / ONXI_LANES, at);
    }
    return ONX_OK;
}

static onx_status conv_run(onx_work *work, uint64_t first, uint64_t last)
{
    const conv_params *q = work->params;
    return q->depthwise ? depthwise_run(work, first, last) : products_run(work, first, last);
}

/* ---- preparing ---- */

/* Sizes within which no sum of a few products leaves 64 bits. */
static bool is_small(const onxi_window *win, uint32_t i)
{
    return win->in[i] < 1 << 28 && win->out[i] < 1 << 28 && win->kernel[i] > 0 && win->kernel[i] < 1 << 15 &&
           win->stride[i] < 1 << 15 && win->dilation[i] < 1 << 15 && win->pad[i] >= 0 && win->pad[i] < 1 << 28;
}

static bool shape_of(onx_prepare *p, conv_params *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank != 4 || w->rank != 4 || !w->data || w->dtype != ONX_FLOAT || !y || y->rank != 4 || !y->count ||
        !x->count || !w->count || (b && (!b->data || b->dtype != ONX_FLOAT || b->count != (uint64_t)w->dims[0])) ||
        w->dims[0] != y->dims[1] || x->dims[0] != y->dims[0] || w->dims[0] % ONXI_LANES ||
        onxi_window_make(p, w->dims + 2, &win) != ONX_OK || !is_small(&win, 0) || !is_small(&win, 1))
        return false;
    *q = (conv_params){ .c = (uint64_t)x->dims[1],
                        .m = (uint64_t)y->dims[1],
                        .h = win.in[0],
                        .w = win.in[1],
                        .oh = win.out[0],
                        .ow = win.out[1],
                        .kh = win.kernel[0],
                        .kw = win.kernel[1] };
    for (int i = 0; i < 2; i++) {
        q->stride[i] = win.stride[i];
        q->dilation[i] = win.dilation[i];
        q->pad[i] = win.pad[i];
    }
    return true;
}

static onx_status take_weights(onx_prepare *p, conv_params *q)
{
    const uint64_t taps = (uint64_t)(q->kh * q->kw), panels = (q->m + PANEL - 1) / PANEL;
    packing from = { q->c, q->m, taps };
    const struct {
        char what[8];
        uint64_t depthwise, panel, taps;
    } key = { "conv", q->depthwise, PANEL, taps };
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = (q->depthwise ? q->m * taps : panels * PANEL * q->depth) * sizeof(float),
                              .pieces = q->depthwise ? 1 : panels,
                              .in_order = true,
                              .make = q->depthwise ? pack_taps : pack_panel,
                              .user = &from };
    const void *weights;
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    ONX_TRY(p->ops->packed(p, &job, &weights)); /* weights that a run computes are not packed */
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
    /* One channel is the same last as first. */
    const onx_layout *in = q->c > 1 ? onxi_blocked_layout(p->arena, p->inputs[0], (uint32_t)q->c) : NULL;
    const onx_layout *out = onxi_blocked_layout(p->arena, p->outputs[0], (uint32_t)q->m);
    if ((q->c > 1 && !in) || !out)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_weights(p, q));
    post_take_image(p, &q->posts, out);
    p->want[0] = in;
    p->want[1] = NULL;
    if (p->input_count > 2)
        p->want[2] = NULL;
    p->outputs[0]->layout = out;
    p->params = q;
    return ONX_OK;
}

/* Pixels at a time: whole tiles, few enough that what they cover stays in the second cache. */
static uint64_t pixels_of(const conv_params *q, uint64_t batch, unsigned threads)
{
    const uint64_t size = (uint64_t)(q->oh * q->ow), share = size * batch / (threads ? threads : 1);
    uint64_t most = COVERED / sizeof(float) / q->depth;
    most = most < share ? most : share;
    most = most < PIXELS ? most / TILE_M * TILE_M : PIXELS;
    return most ? most : TILE_M;
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
    /* Padding is not read there, so zeros are not multiplied by weights that are not finite. */
    if (groups > 1 && (uint64_t)groups == q->c && q->m == q->c && p->inputs[1]->dims[1] == 1 &&
        onxi_weights_are_finite(p, 1)) {
        q->depthwise = true;
        p->rows = batch * (uint64_t)q->oh;
        p->grain = onxi_worth_a_thread((uint64_t)(q->ow * q->kh * q->kw) * q->c);
        return take(p, q);
    }
    if (groups != 1 || (uint64_t)p->inputs[1]->dims[1] != q->c)
        return ONX_E_UNSUPPORTED;
    q->depth = q->c * (uint64_t)(q->kh * q->kw);
    q->direct = q->kh == 1 && q->kw == 1 && q->stride[0] == 1 && q->stride[1] == 1 && !q->pad[0] && !q->pad[1] &&
                q->oh == q->h && q->ow == q->w;
    q->each = pixels_of(q, batch, p->threads);
    q->pieces = ((uint64_t)(q->oh * q->ow) + q->each - 1) / q->each;
    p->rows = batch * q->pieces;
    p->grain = onxi_worth_a_thread(q->each * q->depth * q->m);
    p->thread_workspace = ((uint64_t)PIXELS * PANEL + (q->direct ? 0 : q->each * q->depth)) * sizeof(float);
    return take(p, q);
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_conv)[] = { { .op = "Conv",
                                                              .since = 1,
                                                              .dtypes = ONXI_F32,
                                                              .preference = 4,
                                                              .isa = ONXI_LEVEL,
                                                              .packs = 1 << 1,
                                                              .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                              .variant = ONXI_VARIANT,
                                                              .prepare = conv_prepare,
                                                              .run = conv_run },
                                                            { 0 } };
