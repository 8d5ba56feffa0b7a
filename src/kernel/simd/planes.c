/* planes.c - grouped Conv with 1x1 windows on planar channels, the layout that channel shuffles, pooling and Concat
 * leave: multiplies the weights with columns of pixels, tile by tile as in product.c, without a layout conversion. The
 * weights are the left operand, in place. The sum runs in one fixed order. */
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

/* Limits of the channels of a group; vectors of pixels per tile, and its rows: as many as registers allow; most pixels
 * after the last whole vector that are computed one by one, because a vector would take longer. */
enum {
    DEPTH_MAX = 4096,
    WIDTH_MAX = 4096,
    MOST_V = TILE_V + 1,
    MOST_V_M = TILE_M * TILE_V / MOST_V,
    WIDE = MOST_V * ONXI_LANES, /* stride of channels in copied input, in floats */
    SINGLE = 2
};

typedef struct plane_params {
    uint64_t group, k, m;     /* groups; input and output channels of each */
    uint64_t plane, pieces;   /* pixels; units of work, of TILE_V vectors except the last one */
    uint64_t vectors, single; /* vectors of the last unit; pixels after all vectors */
    bool in_place;            /* the input is read in place: few rows read it, and it fits in a cache */
    bool has_bias;
    int32_t add; /* input that is added in registers, -1: none */
    bool relu;   /* ReLU is applied in registers, too */
    simd_posts posts;
} plane_params;

/* Some pixels of all channels of a group. */
typedef struct piece {
    const float *w, *bias; /* of the group; bias may be NULL */
    /* Pixels of the input with stride `ldb` between channels; the operand of the addition, or NULL. */
    const float *b, *same;
    float *c; /* of the result, with stride `ldc` between channels */
    uint64_t ldb, ldc, same_step;
} piece;

/* ---- tiles ---- */

typedef struct stretch {
    uint64_t m, k, kc; /* first output and input channel; number of input channels */
} stretch;

/* Applies the addition and ReLU before sums are stored. */
static inline onxi_vf finished(const plane_params *q, onxi_vf sum, const float *same)
{
    if (same)
        sum += vf_load(same);
    return q->relu ? vf_select(sum <= 0.0f, vf_all(0), sum) : sum;
}

__attribute__((always_inline)) static inline void tile_in(const plane_params *q, const piece *p, const stretch *s,
                                                          const int rows, const int vectors)
{
    enum { TOGETHER = 3 }; /* rows that share an address register */
    const float *b = p->b + s->k * p->ldb, *a[(TILE_M + TOGETHER - 1) / TOGETHER];
    const uint64_t lda = q->k, ldb = p->ldb;
    float *c = p->c + s->m * p->ldc;
    onxi_vf sum[TILE_M][MOST_V];
    UNROLL
    for (int i = 0; i < rows; i += TOGETHER) {
        a[i / TOGETHER] = p->w + (s->m + (uint64_t)i) * lda + s->k;
        __asm__("" : "+r"(a[i / TOGETHER])); /* as in tile.h */
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i][v] = s->k      ? vf_load(c + (uint64_t)i * p->ldc + v * ONXI_LANES)
                    : p->bias ? vf_all(p->bias[s->m + (uint64_t)i])
                              : vf_all(0);
    for (uint64_t k = s->kc; k; k--, b += ldb) {
        onxi_vf x[MOST_V];
        UNROLL
        for (int v = 0; v < vectors; v++)
            x[v] = vf_load(b + v * ONXI_LANES);
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] += a[i / TOGETHER][(uint64_t)(i % TOGETHER) * lda] * x[v];
        UNROLL
        for (int i = 0; i < rows; i += TOGETHER)
            a[i / TOGETHER]++;
    }
    const bool last = s->k + s->kc == q->k;
    UNROLL
    for (int i = 0; i < rows; i++) {
        const float *same = last && p->same ? p->same + (s->m + (uint64_t)i) * p->same_step : NULL;
        UNROLL
        for (int v = 0; v < vectors; v++) {
            const uint64_t at = (uint64_t)v * ONXI_LANES;
            vf_store(c + (uint64_t)i * p->ldc + at, last ? finished(q, sum[i][v], same ? same + at : NULL) : sum[i][v]);
        }
    }
}

#define TILES(n)                                                                                                       \
    static inline ONXI_ALONE void tile_of_##n(const plane_params *q, const piece *p, const stretch *s, int vectors)    \
    {                                                                                                                  \
        if (vectors == 1)                                                                                              \
            tile_in(q, p, s, n, 1);                                                                                    \
        else if (vectors == TILE_V)                                                                                    \
            tile_in(q, p, s, n, TILE_V);                                                                               \
        else                                                                                                           \
            tile_in(q, p, s, n <= MOST_V_M ? n : 1, MOST_V);                                                           \
    }
TILE_EACH(TILES)
#undef TILES

static void multiply(const plane_params *q, const piece *p, int vectors)
{
    const uint64_t most = vectors == MOST_V ? MOST_V_M : TILE_M, tiles = (q->m + most - 1) / most;
    stretch s = { 0 };
    for (s.k = 0; s.k < q->k; s.k += s.kc) {
        s.kc = q->k - s.k < BLOCK_K ? q->k - s.k : BLOCK_K;
        s.m = 0;
        for (uint64_t left = tiles, rows; left; left--, s.m += rows) {
            rows = (q->m - s.m + left - 1) / left; /* of nearly one height */
            switch (rows) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        tile_of_##n(q, p, &s, vectors);                                                                                \
        break;
                TILE_EACH(CASE)
#undef CASE
            default:
                break;
            }
        }
    }
}

/* ---- pieces ---- */

/* Copies `count` pixels of some planes and pads them with zeros. */
static void gather(const float *x, uint64_t plane, uint64_t rows, uint64_t count, float *to, uint64_t step)
{
    const uint64_t whole = count / ONXI_LANES * ONXI_LANES;
    for (uint64_t i = 0; i < rows; i++, x += plane, to += step) {
        for (uint64_t v = 0; v < whole; v += ONXI_LANES)
            vf_store(to + v, vf_load(x + v));
        if (whole < count)
            vf_store(to + whole, vf_load_part(x + whole, count - whole, 0));
    }
}

/* Applies the remaining post-operations in the L1 cache. The first pixel is at `at` of the result. `room` is a buffer
 * for operands if the pixels are not whole vectors, else NULL. */
static void finish(const plane_params *q, const onx_work *work, const piece *p, uint64_t vectors, uint64_t count,
                   uint64_t at, float *room)
{
    for (uint32_t i = 0; i < q->posts.count; i++) {
        const simd_post *f = &q->posts.list[i];
        const float *same = f->operand < 0 ? NULL : (const float *)work->inputs[f->operand]->data + at;
        if (same && room)
            gather(same, q->plane, q->m, count, room, WIDE);
        post_apply(f, p->c, p->ldc, q->m, vectors, NULL, same && room ? room : same, room ? (uint64_t)WIDE : q->plane);
    }
}

/* Stores the pixels of a unit whose last vector is incomplete. */
static void scatter(const plane_params *q, const float *from, uint64_t count, float *y)
{
    const uint64_t whole = count / ONXI_LANES * ONXI_LANES;
    for (uint64_t i = 0; i < q->m; i++, from += WIDE, y += q->plane) {
        for (uint64_t v = 0; v < whole; v += ONXI_LANES)
            vf_store(y + v, vf_load(from + v));
        vf_store_part(y + whole, vf_load(from + whole), count - whole);
    }
}

/* Computes the pixels after all vectors one by one, as dot products of rows of weights with the channels of the
 * pixel. */
static void one_pixel(const plane_params *q, const onx_work *work, const float *w, const float *bias, const float *x,
                      uint64_t at, float *column)
{
    float *y = (float *)work->outputs[0]->data + at, sums[ONXI_LANES];
    const float *same = q->add < 0 ? NULL : (const float *)work->inputs[q->add]->data + at;
    for (uint64_t k = 0; k < q->k; k++)
        column[k] = x[k * q->plane];
    for (uint64_t m = 0, n; m < q->m; m += n) {
        n = q->m - m < ONXI_LANES ? q->m - m : ONXI_LANES;
        memset(sums, 0, sizeof sums);
        for (uint64_t i = 0; i < n; i++, w += q->k) {
            onxi_vf sum = vf_all(0);
            uint64_t k = 0;
            for (; k + ONXI_LANES <= q->k; k += ONXI_LANES)
                sum += vf_load(w + k) * vf_load(column + k);
            if (k < q->k)
                sum += vf_load_part(w + k, q->k - k, 0) * vf_load_part(column + k, q->k - k, 0);
            sums[i] = vf_sum(sum) + (bias ? bias[m + i] : 0);
        }
        if (same)
            for (uint64_t i = 0; i < n; i++)
                sums[i] += same[(m + i) * q->plane];
        vf_store(sums, finished(q, vf_load(sums), NULL));
        for (uint64_t i = 0; i < n; i++)
            y[(m + i) * q->plane] = sums[i];
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const plane_params *q = work->params;
    const float *x = work->inputs[0]->data, *w = work->inputs[1]->data;
    const float *bias = q->has_bias ? work->inputs[2]->data : NULL;
    const float *same = q->add < 0 ? NULL : (const float *)work->inputs[q->add]->data;
    float *b = work->thread_workspace, *c = b + q->k * WIDE, *room = c + q->m * WIDE;
    for (uint64_t i = first; i < last; i++) {
        const uint64_t set = i / q->pieces, p0 = i % q->pieces * PANEL, channel = set % q->group * q->m;
        const bool ends = i % q->pieces == q->pieces - 1;
        const uint64_t vectors = ends ? q->vectors : TILE_V, left = q->plane - q->single - p0;
        const uint64_t count = left < vectors * ONXI_LANES ? left : vectors * ONXI_LANES;
        const uint64_t from = set * q->k * q->plane + p0, at = set * q->m * q->plane + p0;
        const bool whole = count == vectors * ONXI_LANES;
        piece p = { .w = w + channel * q->k, .bias = bias ? bias + channel : NULL };
        p.b = whole && q->in_place ? x + from : b;
        p.ldb = whole && q->in_place ? q->plane : WIDE;
        if (p.b == b)
            gather(x + from, q->plane, q->k, count, b, WIDE);
        p.c = whole ? (float *)work->outputs[0]->data + at : c;
        p.ldc = whole ? q->plane : WIDE;
        p.same = same && whole ? same + at : same ? room : NULL;
        p.same_step = whole ? q->plane : WIDE;
        if (p.same == room && same)
            gather(same + at, q->plane, q->m, count, room, WIDE);
        multiply(q, &p, (int)vectors);
        finish(q, work, &p, vectors, count, at, whole ? NULL : room);
        if (!whole)
            scatter(q, c, count, (float *)work->outputs[0]->data + at);
        for (uint64_t s = 0; ends && s < q->single; s++)
            one_pixel(q, work, p.w, p.bias, x + from + count + s, at + count + s, b);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* An addition followed by ReLU is applied in registers. */
static void take_posts(plane_params *q)
{
    uint32_t taken = 0;
    if (taken < q->posts.count && q->posts.list[taken].kind == ONX_POST_ADD)
        q->add = q->posts.list[taken++].operand;
    if (taken < q->posts.count && q->posts.list[taken].kind == ONX_POST_RELU) {
        q->relu = true;
        taken++;
    }
    q->posts.count -= taken;
    memmove(q->posts.list, q->posts.list + taken, q->posts.count * sizeof *q->posts.list);
}

static void cut(plane_params *q)
{
    enum { ROWS = 64, CACHE = 1 << 15, ALIAS = 256 }; /* most rows for which the input is not copied; floats */
    const uint64_t whole = q->plane / ONXI_LANES, rest = q->plane % ONXI_LANES;
    q->single = whole && rest <= SINGLE && !q->posts.count ? rest : 0;
    const uint64_t vectors = whole + (rest > q->single);
    q->pieces = vectors / TILE_V ? vectors / TILE_V : 1;
    q->vectors = vectors - (q->pieces - 1) * TILE_V;
    q->in_place = q->m <= ROWS && q->k * q->plane <= CACHE && q->plane % ALIAS;
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
    if (!onxi_window_is_pixel(win) || !made.in_each || made.in_each > DEPTH_MAX || made.out_each > WIDTH_MAX ||
        made.out_each < TILE_M || made.group < 2) /* without groups, oneDNN justifies a layout conversion */
        return ONX_E_UNSUPPORTED;
    plane_params *q = ONXI_NEW(p->arena, plane_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (plane_params){ .group = made.group,
                         .k = made.in_each,
                         .m = made.out_each,
                         .plane = win->in_size,
                         .has_bias = b != NULL,
                         .add = -1 };
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    post_take_image(p, &q->posts, NULL);
    take_posts(q);
    cut(q);
    p->params = q;
    p->rows = win->batch * q->group * q->pieces;
    p->grain = onxi_worth_a_thread(PANEL * q->k * q->m);
    p->thread_workspace = (q->k + 2 * q->m) * WIDE * sizeof(float);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_planes)[] = { { .op = "Conv",
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
