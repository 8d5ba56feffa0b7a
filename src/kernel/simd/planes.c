/* planes.c - Conv with windows of one pixel on channels stored as planes, as shuffles of channels, pools and Concat
 * leave them: products of the weights and columns of pixels, tile by tile as in product.c, so that no
 * layout is changed. The weights are the left operand as they are. The sum runs in one fixed order. */
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

enum { DEPTH_MAX = 4096, WIDTH_MAX = 4096 }; /* channels of a group */

typedef struct plane_params {
    uint64_t group, k, m;   /* groups; channels of the input and of the result in each */
    uint64_t plane, pieces; /* pixels; panels of them in an image */
    bool has_bias;
    simd_posts posts;
} plane_params;

/* A panel of the pixels of some planes, `count` of them, zeros after them. */
static void gather(const float *x, uint64_t plane, uint64_t rows, uint64_t count, float *to)
{
    for (uint64_t i = 0; i < rows; i++, x += plane, to += PANEL) {
        if (count == PANEL) {
            for (int v = 0; v < TILE_V; v++)
                vf_store(to + v * ONXI_LANES, vf_load(x + v * ONXI_LANES));
        } else {
            memset(to, 0, PANEL * sizeof *to);
            memcpy(to, x, count * sizeof *to);
        }
    }
}

static void scatter(const float *from, uint64_t plane, uint64_t rows, uint64_t count, float *y)
{
    for (uint64_t i = 0; i < rows; i++, from += PANEL, y += plane) {
        if (count == PANEL) {
            for (int v = 0; v < TILE_V; v++)
                vf_store(y + v * ONXI_LANES, vf_load(from + v * ONXI_LANES));
        } else {
            memcpy(y, from, count * sizeof *y);
        }
    }
}

static void multiply(const plane_params *q, const float *w, const float *b, float *c)
{
    for (uint64_t k = 0; k < q->k; k += BLOCK_K)
        for (uint64_t i = 0, rows; i < q->m; i += rows) {
            rows = tile_height(q->m - i);
            tile_run(&(tile_operands){ .a = w + i * q->k + k,
                                       .lda = q->k,
                                       .b = b + k * PANEL,
                                       .ldb = PANEL,
                                       .k = q->k - k < BLOCK_K ? q->k - k : BLOCK_K,
                                       .c = c + i * PANEL,
                                       .ldc = PANEL,
                                       .more = k > 0 },
                     rows);
        }
}

/* Bias and what follows; `at` is where the pixels are in the first plane of the result. `room` takes operands. */
static void finish(const plane_params *q, const onx_work *work, const float *bias, uint64_t at, uint64_t count,
                   float *c, float *room)
{
    for (uint64_t i = 0; bias && i < q->m; i++)
        for (uint64_t v = 0; v < PANEL; v += ONXI_LANES)
            vf_store(c + i * PANEL + v, vf_load(c + i * PANEL + v) + vf_all(bias[i]));
    for (uint32_t i = 0; i < q->posts.count; i++) {
        const simd_post *f = &q->posts.list[i];
        const float *same = f->operand < 0 ? NULL : (const float *)work->inputs[f->operand]->data + at;
        if (same && count < PANEL)
            gather(same, q->plane, q->m, count, room);
        post_apply(f, c, PANEL, q->m, TILE_V, NULL, same && count < PANEL ? room : same,
                   count < PANEL ? PANEL : q->plane);
    }
    scatter(c, q->plane, q->m, count, (float *)work->outputs[0]->data + at);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const plane_params *q = work->params;
    const float *x = work->inputs[0]->data, *w = work->inputs[1]->data;
    const float *bias = q->has_bias ? work->inputs[2]->data : NULL;
    float *b = work->thread_workspace, *c = b + q->k * PANEL, *room = c + q->m * PANEL;
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t set = piece / q->pieces, p0 = piece % q->pieces * PANEL, left = q->plane - p0;
        const uint64_t count = left < PANEL ? left : PANEL, channel = set % q->group * q->m;
        gather(x + set * q->k * q->plane + p0, q->plane, q->k, count, b);
        multiply(q, w + channel * q->k, b, c);
        finish(q, work, bias ? bias + channel : NULL, set * q->m * q->plane + p0, count, c, room);
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
    for (uint32_t i = 0; i < win->spatial; i++)
        if (win->kernel[i] != 1 || win->stride[i] != 1 || win->pad[i] || win->pad_end[i])
            return ONX_E_UNSUPPORTED;
    if (!made.in_each || made.in_each > DEPTH_MAX || made.out_each > WIDTH_MAX || made.out_each < TILE_M ||
        made.group < 2) /* without groups oneDNN is worth a change of layout */
        return ONX_E_UNSUPPORTED;
    plane_params *q = ONXI_NEW(p->arena, plane_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (plane_params){ .group = made.group,
                         .k = made.in_each,
                         .m = made.out_each,
                         .plane = win->in_size,
                         .pieces = (win->in_size + PANEL - 1) / PANEL,
                         .has_bias = b != NULL };
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    post_take_image(p, &q->posts, NULL);
    p->params = q;
    p->rows = win->batch * q->group * q->pieces;
    p->grain = 262144 / (PANEL * q->k * q->m + 1) + 1;
    p->thread_workspace = (q->k + 2 * q->m) * PANEL * sizeof(float);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_planes)[] = { { .op = "Conv",
                                                                .since = 1,
                                                                .dtypes = ONXI_F32,
                                                                .preference = 11,
                                                                .isa = ONXI_LEVEL,
                                                                .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                                .variant = ONXI_VARIANT,
                                                                .prepare = prepare,
                                                                .run = run },
                                                              { 0 } };
