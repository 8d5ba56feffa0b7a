/* few.c - Conv with 1x1 windows from planar channels to a few output channels, as in heads and masks. oneDNN would pad
 * these to a block with zeros and convert the layout of the input. Here, some pixels are accumulated in the L1 cache
 * over all input channels, some channels at a time, so that it takes as long as reading the input. The sum runs in one
 * fixed order. */
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"

#if !ONXI_PLATFORM_ROOMY /* browsers use products by blocks */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_few)[] = { { 0 } };
#else

/* Most output channels (with more, products by blocks justify a layout conversion); output channels in registers; input
 * channels read together; pixels per unit of work: a page of each channel, since CPUs prefetch no further. */
enum { MOST = ONXI_LANES < 16 ? ONXI_LANES : 12, ROWS = 4, TOGETHER = 4, PIXELS = 1024, DEPTH_MAX = 1 << 20 };

typedef struct few_params {
    uint64_t k, m, plane, pieces; /* channels of the input and of the output; pixels, and units of work */
    bool has_bias;
    simd_posts posts;
} few_params;

/* Some input channels, with stride `plane`, that are accumulated to PIXELS of some output channels. */
typedef struct channels {
    const float *x, *w; /* w: for the first output channel; stride `k` to the next */
    float *sum;
    uint64_t plane, k;
} channels;

/* Adds `count` channels for a vector of pixels that begins at `at`; `left` pixels remain. */
__attribute__((always_inline)) static inline void add_vector(const channels *c, uint64_t at, uint64_t left, bool whole,
                                                             const int rows, const int count)
{
    onxi_vf sum[ROWS];
    for (int i = 0; i < rows; i++)
        sum[i] = vf_load(c->sum + (uint64_t)i * PIXELS + at);
    for (int k = 0; k < count; k++) {
        const float *from = c->x + (uint64_t)k * c->plane + at;
        const onxi_vf x = whole ? vf_load(from) : vf_load_part(from, left, 0);
        for (int i = 0; i < rows; i++)
            sum[i] += c->w[(uint64_t)i * c->k + (uint64_t)k] * x;
    }
    for (int i = 0; i < rows; i++)
        vf_store(c->sum + (uint64_t)i * PIXELS + at, sum[i]);
}

__attribute__((always_inline)) static inline void add_in(const channels *of, uint64_t pixels, const int rows,
                                                         const int count)
{
    const channels c = *of;
    uint64_t at = 0;
    for (; at + ONXI_LANES <= pixels; at += ONXI_LANES)
        add_vector(&c, at, ONXI_LANES, true, rows, count);
    if (at < pixels)
        add_vector(&c, at, pixels - at, false, rows, count);
}

#define EACH(X) X(1) X(2) X(3) X(4)
#define ADD(n)                                                                                                         \
    static ONXI_ALONE void add_to_##n(const channels *c, uint64_t pixels, uint64_t count)                              \
    {                                                                                                                  \
        if (count == TOGETHER)                                                                                         \
            add_in(c, pixels, n, TOGETHER);                                                                            \
        else                                                                                                           \
            add_in(c, pixels, n, 1);                                                                                   \
    }
EACH(ADD)
#undef ADD

static void add(const channels *c, uint64_t pixels, uint64_t rows, uint64_t count)
{
    switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        add_to_##n(c, pixels, count);                                                                                  \
        break;
        EACH(CASE)
#undef CASE
    default:
        break;
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const few_params *q = work->params;
    const float *w = work->inputs[1]->data, *bias = q->has_bias ? work->inputs[2]->data : NULL;
    float *sums = work->thread_workspace;
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t image = piece / q->pieces, p0 = piece % q->pieces * PIXELS;
        const uint64_t pixels = q->plane - p0 < PIXELS ? q->plane - p0 : PIXELS;
        const uint64_t vectors = (pixels + ONXI_LANES - 1) / ONXI_LANES;
        const float *x = (const float *)work->inputs[0]->data + image * q->k * q->plane + p0;
        float *y = (float *)work->outputs[0]->data + image * q->m * q->plane + p0;
        for (uint64_t i = 0; i < q->m; i++)
            for (uint64_t v = 0; v < vectors; v++)
                vf_store(sums + i * PIXELS + v * ONXI_LANES, vf_all(bias ? bias[i] : 0));
        for (uint64_t k = 0, count; k < q->k; k += count) {
            count = q->k - k < TOGETHER ? 1 : TOGETHER;
            for (uint64_t i = 0; i < q->m; i += ROWS) {
                const channels c = { x + k * q->plane, w + i * q->k + k, sums + i * PIXELS, q->plane, q->k };
                add(&c, pixels, q->m - i < ROWS ? q->m - i : ROWS, count);
            }
        }
        for (uint32_t f = 0; f < q->posts.count; f++)
            post_apply(&q->posts.list[f], sums, PIXELS, q->m, vectors, NULL, NULL, 0);
        for (uint64_t i = 0; i < q->m; i++)
            memcpy(y + i * q->plane, sums + i * PIXELS, pixels * sizeof *y);
    }
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    onxi_conv made;
    if (!p->want || x->layout || x->rank < 3 || w->rank != x->rank || w->dtype != ONX_FLOAT ||
        (b && b->dtype != ONX_FLOAT) || !p->outputs[0]->count)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_conv_make(p, w, b, &made));
    const onxi_window *win = &made.window;
    if (!onxi_window_is_pixel(win) || made.group != 1 || !made.in_each || made.in_each > DEPTH_MAX ||
        made.out_each > MOST || win->in_size < ONXI_LANES)
        return ONX_E_UNSUPPORTED;
    few_params *q = ONXI_NEW(p->arena, few_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (few_params){ .k = made.in_each,
                       .m = made.out_each,
                       .plane = win->in_size,
                       .pieces = (win->in_size + PIXELS - 1) / PIXELS,
                       .has_bias = b != NULL };
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    post_take_functions(p, &q->posts);
    p->params = q;
    p->rows = win->batch * q->pieces;
    p->grain = onxi_worth_a_thread(ONXI_COST_READING * (win->in_size < PIXELS ? win->in_size : PIXELS) * q->k);
    p->thread_workspace = q->m * PIXELS * sizeof(float);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_few)[] = { { .op = "Conv",
                                                             .since = 1,
                                                             .dtypes = ONXI_F32,
                                                             .preference = 11,
                                                             .isa = ONXI_LEVEL,
                                                             .packs = 1 << 1,
                                                             .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                             .variant = ONXI_VARIANT,
                                                             .prepare = prepare,
                                                             .run = run },
                                                           { 0 } };
#endif
