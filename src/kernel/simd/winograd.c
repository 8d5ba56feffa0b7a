/* winograd.c - Conv of 3x3 with stride 1 on channel blocks or channels last: computes four by four outputs from six by
 * six inputs with 36 products instead of 144. With dilation, an image is divided into phases (positions modulo
 * dilation), which are convolved separately. After Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks"
 * (2015), at the points 0, +-sqrt(1/2), +-sqrt(2) and infinity, which round better than 0, +-1, +-2. */
#include "kernel/core/blocked.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

/* Outputs and inputs of a tile along an axis, products of a tile; channels of a block; channels of a cache line, which
 * are transformed together, tile by tile; columns multiplied at a time; most output channels for the layout with
 * channels last. */
enum {
    OUT = 4,
    IN = 6,
    POINTS = IN * IN,
    BLOCK = ONXI_LANES < 8 ? 8 : ONXI_LANES,
    LINE = 16,
    CHUNK = 32,
    LAST_MOST = 128
};

/* a = sqrt(1/2), b = sqrt(2): a * b = 1, and a^2 + b^2 = 5/2. */
#define A 0.70710678118654752440
#define B 1.41421356237309504880

typedef struct wino {
    uint64_t batch, c, m, h, w, oh, ow;
    int64_t pad_y, pad_x;
    uint64_t gap_y, gap_x;        /* dilation */
    uint64_t down, across;        /* tiles of a phase */
    uint64_t tiles;               /* all tiles of all phases */
    uint64_t group, groups;       /* tiles processed at a time; number of such groups */
    uint64_t panels, splits;      /* panels of output channels; units of work that they are divided into */
    uint64_t in_block, out_block; /* contiguous channels of a pixel */
    uint64_t v_step, m_step;      /* strides between points, in the transformed input and in the products */
    /* Packed weights by point, panel, input channel; the bias is padded to whole panels. */
    const float *u, *bias;
    simd_posts posts;
} wino;

/* ---- weights ---- */

typedef struct packing {
    uint64_t c, m;
} packing;

/* Transforms three weights of a filter to the points: G g. */
static inline void transform_three(const onxi_vd g[3], onxi_vd u[IN])
{
    const onxi_vd even_a = g[0] * (-2.0 / 3) - g[2] * (1.0 / 3), odd_a = g[1] * (2.0 / 3 * A);
    const onxi_vd even_b = g[0] * (1.0 / 6) + g[2] * (1.0 / 3), odd_b = g[1] * (1.0 / 6 * B);
    u[0] = g[0];
    u[1] = even_a - odd_a;
    u[2] = even_a + odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2];
}

/* Transforms the filters of one input channel and a vector of output channels: G g G^T. Results have stride `PANEL`. */
static void transform_filters(const float *g, float *to, uint64_t to_step)
{
    onxi_vd rows[3][IN];
    for (int x = 0; x < 3; x++) {
        onxi_vd column[3];
        for (int y = 0; y < 3; y++)
            column[y] = __builtin_convertvector(vf_load(g + (3 * y + x) * PANEL), onxi_vd);
        transform_three(column, rows[x]);
    }
    for (int i = 0; i < IN; i++) {
        const onxi_vd row[3] = { rows[0][i], rows[1][i], rows[2][i] };
        onxi_vd u[IN];
        transform_three(row, u);
        for (int j = 0; j < IN; j++)
            vf_store(to + (uint64_t)(i * IN + j) * to_step, __builtin_convertvector(u[j], onxi_vf));
    }
}

/* A piece is a panel of output channels at all points. The filters of an output channel are contiguous. */
static onx_status pack(void *user, const void *elements, uint64_t panel, void *out)
{
    const packing *q = user;
    const uint64_t panels = (q->m + PANEL - 1) / PANEL, step = panels * q->c * PANEL;
    const uint64_t first = panel * PANEL, width = q->m - first < PANEL ? q->m - first : PANEL;
    const uint64_t each = q->c * 9 * sizeof(float);
    const char *from = (const char *)elements + first * each;
    float *to = (float *)out + panel * q->c * PANEL, rows[9 * BLOCK * PANEL];
    for (uint64_t c = 0, count; c < q->c; c += count) {
        count = q->c - c < BLOCK ? q->c - c : BLOCK;
        tile_turn(from + c * 9 * sizeof *to, each, width, 9 * count, rows);
        for (uint64_t i = 0; i < count; i++)
            for (uint64_t m = 0; m < PANEL; m += ONXI_LANES)
                transform_filters(rows + 9 * i * PANEL + m, to + (c + i) * PANEL + m, step);
    }
    return ONX_OK;
}

/* ---- input ---- */

/* Transforms six inputs to the points: B^T d. */
static inline void transform_six(const onxi_vf d[IN], onxi_vf out[IN])
{
    const onxi_vf even_a = d[4] - 2.0f * d[2], odd_a = (float)A * d[3] - (float)B * d[1];
    const onxi_vf even_b = d[4] - 0.5f * d[2], odd_b = (float)B * d[3] - (float)A * d[1];
    out[0] = d[0] - 2.5f * d[2] + d[4];
    out[1] = even_a + odd_a;
    out[2] = even_a - odd_a;
    out[3] = even_b + odd_b;
    out[4] = even_b - odd_b;
    out[5] = d[1] - 2.5f * d[3] + d[5];
}

/* The first output of a tile. */
static inline void place_tile(const wino *q, uint64_t tile, uint64_t *y, uint64_t *x)
{
    const uint64_t each = q->down * q->across, phase = q->tiles > each ? tile / each : 0,
                   in_phase = tile - phase * each;
    *y = in_phase / q->across * OUT * q->gap_y + phase / q->gap_x;
    *x = in_phase % q->across * OUT * q->gap_x + phase % q->gap_x;
}

/* Transforms a vector of channels of a tile; `x` points to its first input element, which may be padding. */
static inline void transform_input(const wino *q, const float *x, int64_t y0, int64_t x0, float *v)
{
    const int64_t gap_y = (int64_t)q->gap_y, gap_x = (int64_t)q->gap_x, h = (int64_t)q->h, w = (int64_t)q->w;
    const bool inside = y0 >= 0 && x0 >= 0 && y0 + (IN - 1) * gap_y < h && x0 + (IN - 1) * gap_x < w;
    const int64_t step = (int64_t)q->in_block * gap_x, line = w * (int64_t)q->in_block * gap_y;
    onxi_vf half[IN][IN];
    for (int64_t i = 0; i < IN; i++) /* prefetches the tile after the next */
        __builtin_prefetch(x + i * line + (2 * OUT + 2) * step);
    for (int64_t i = 0; i < IN; i++)
        __builtin_prefetch(x + i * line + (2 * OUT + 4) * step);
    for (int j = 0; j < IN; j++) {
        onxi_vf d[IN], t[IN];
        if (inside) {
            UNROLL
            for (int i = 0; i < IN; i++)
                d[i] = vf_load(x + i * line + j * step);
        } else {
            for (int i = 0; i < IN; i++)
                d[i] = y0 + i * gap_y >= 0 && y0 + i * gap_y < h && x0 + j * gap_x >= 0 && x0 + j * gap_x < w
                           ? vf_load(x + i * line + j * step)
                           : vf_all(0);
        }
        transform_six(d, t);
        UNROLL
        for (int i = 0; i < IN; i++)
            half[i][j] = t[i];
    }
    for (int i = 0; i < IN; i++) {
        onxi_vf t[IN];
        transform_six(half[i], t);
        UNROLL
        for (int j = 0; j < IN; j++)
            vf_store(v + (uint64_t)(i * IN + j) * q->v_step, t[j]);
    }
}

static void transform_group(const wino *q, const float *image, uint64_t first, uint64_t tiles, float *v)
{
    const int64_t plane = (int64_t)(q->h * q->w);
    for (uint64_t c0 = 0; c0 < q->c; c0 += LINE)
        for (uint64_t t = 0; t < tiles; t++) {
            uint64_t top, left;
            place_tile(q, first + t, &top, &left);
            const int64_t y0 = (int64_t)top - q->pad_y, x0 = (int64_t)left - q->pad_x;
            for (uint64_t c = c0; c < q->c && c < c0 + LINE; c += ONXI_LANES) {
                const int64_t block = (int64_t)(c / q->in_block), step = (int64_t)q->in_block;
                const int64_t at = (block * plane + y0 * (int64_t)q->w + x0) * step + (int64_t)(c % q->in_block);
                transform_input(q, image + at, y0, x0, v + t * q->c + c);
            }
        }
}

/* ---- products ---- */

static void multiply(const wino *q, const float *v, uint64_t tiles, uint64_t p0, uint64_t p1, float *m)
{
    const uint64_t pieces = (tiles + TILE_M - 1) / TILE_M;
    for (uint64_t i = 0; i < POINTS; i++)
        for (uint64_t p = p0; p < p1; p++)
            for (uint64_t k = 0, kc; k < q->c; k += kc) {
                const float *u = q->u + ((i * q->panels + p) * q->c + k) * PANEL;
                kc = tile_depth(q->c - k);
                /* The next tile of weights is contiguous with this one: the panels of a point are not finished. */
                const bool along = k + kc < q->c || p + 1 < p1;
                const float *next = along ? u + kc * PANEL : u + ((q->panels - (p1 - p0) + 1) * q->c - k) * PANEL;
                const bool last = !along && i + 1 == POINTS;
                for (uint64_t t = 0, rows, index = 0; t < tiles; t += rows, index++) {
                    rows = tile_height(tiles - t);
                    tile_operands o = { .a = v + i * q->v_step + t * q->c + k,
                                        .lda = q->c,
                                        .b = u,
                                        .ldb = PANEL,
                                        .k = kc,
                                        .c = m + i * q->m_step + t * CHUNK + (p - p0) * PANEL,
                                        .ldc = CHUNK,
                                        .more = k > 0 };
                    tile_fetch(&o, last ? NULL : next, index, pieces);
                    tile_run(&o, rows);
                }
            }
}

/* ---- output ---- */

/* Transforms six products to four outputs: A^T m. */
static inline void transform_four(const onxi_vf m[IN], onxi_vf out[OUT])
{
    const onxi_vf sa = m[1] + m[2], da = m[1] - m[2], sb = m[3] + m[4], db = m[3] - m[4];
    out[0] = m[0] + sa + sb;
    out[1] = (float)A * da + (float)B * db;
    out[2] = 0.5f * sa + 2.0f * sb;
    out[3] = m[5] + ((float)(A / 2) * da + (float)(B * 2) * db);
}

/* Output transform of a vector of channels of a tile. Adds the bias. y holds 4 x 4 pixels, a vector each. */
static inline void transform_output(const wino *q, const float *m, uint64_t channel, float y[OUT * OUT * ONXI_LANES])
{
    const onxi_vf bias = q->bias ? vf_load(q->bias + channel) : vf_all(0);
    onxi_vf half[OUT][IN];
    for (int j = 0; j < IN; j++) {
        onxi_vf d[IN], t[OUT];
        UNROLL
        for (int i = 0; i < IN; i++)
            d[i] = vf_load(m + (uint64_t)(i * IN + j) * q->m_step);
        transform_four(d, t);
        UNROLL
        for (int i = 0; i < OUT; i++)
            half[i][j] = t[i];
    }
    for (int i = 0; i < OUT; i++) {
        onxi_vf t[OUT];
        transform_four(half[i], t);
        UNROLL
        for (int j = 0; j < OUT; j++)
            vf_store(y + (i * OUT + j) * ONXI_LANES, t[j] + bias);
    }
}

/* Applies the post-ops to a vector of channels of a tile and stores it. *doubt becomes NaN if a result is not finite:
 * then the convolution has to be computed in another way, since the transform mixes the inputs of a tile and so spreads
 * NaN and infinities to outputs that do not depend on them. */
static inline void store_tile(const wino *q, const onx_work *work, uint64_t at, uint64_t rows, uint64_t columns,
                              float y[OUT * OUT * ONXI_LANES], onxi_vf *doubt)
{
    float *out = work->outputs[0]->data;
    const uint64_t step = q->gap_x * q->out_block, line = q->gap_y * q->ow * q->out_block;
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            *doubt += vf_load(y + (i * OUT + j) * ONXI_LANES) * 0.0f;
    for (uint32_t p = 0; p < q->posts.count; p++) {
        const simd_post *f = &q->posts.list[p];
        if (f->operand < 0) {
            post_apply(f, y, ONXI_LANES, OUT * OUT, 1, NULL, NULL, 0);
            continue;
        }
        const float *same = (const float *)work->inputs[f->operand]->data + at;
        for (uint64_t i = 0; i < rows; i++)
            post_apply(f, y + i * OUT * ONXI_LANES, ONXI_LANES, columns, 1, NULL, same + i * line, step);
    }
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            vf_store(out + at + i * line + j * step, vf_load(y + (i * OUT + j) * ONXI_LANES));
}

/* The number of outputs of a tile along an axis that lie inside the result. */
static inline uint64_t outputs_from(uint64_t first, uint64_t size, uint64_t gap)
{
    const uint64_t left = first < size ? (size - first + gap - 1) / gap : 0;
    return left < OUT ? left : OUT;
}

static void store_group(const wino *q, const onx_work *work, uint64_t image, uint64_t first, uint64_t tiles,
                        uint64_t m0, uint64_t m1, const float *m, onxi_vf *doubt)
{
    for (uint64_t c0 = m0; c0 < m1; c0 += LINE)
        for (uint64_t t = 0; t < tiles; t++) {
            uint64_t y0, x0;
            place_tile(q, first + t, &y0, &x0);
            const uint64_t rows = outputs_from(y0, q->oh, q->gap_y), columns = outputs_from(x0, q->ow, q->gap_x);
            if (!rows || !columns) /* the last tiles of a phase that is smaller than the others */
                continue;
            for (uint64_t c = c0; c < m1 && c < c0 + LINE; c += ONXI_LANES) {
                float y[OUT * OUT * ONXI_LANES];
                const uint64_t block = image * (q->m / q->out_block) + c / q->out_block;
                transform_output(q, m + t * CHUNK + (c - m0), c, y);
                store_tile(q, work, ((block * q->oh + y0) * q->ow + x0) * q->out_block + c % q->out_block, rows,
                           columns, y, doubt);
            }
        }
}

/* A unit of work is a group of tiles of an image and a range of output channels. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const wino *q = work->params;
    const uint64_t tiles = q->tiles, each = (q->panels + q->splits - 1) / q->splits;
    float *v = work->thread_workspace, *m = v + POINTS * q->v_step;
    uint64_t there = UINT64_MAX; /* the group whose transformed input is in v */
    onxi_vf doubt = vf_all(0);
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t group = piece / q->splits, image = group / q->groups, t0 = group % q->groups * q->group;
        const uint64_t count = tiles - t0 < q->group ? tiles - t0 : q->group;
        const uint64_t end = (piece % q->splits + 1) * each < q->panels ? (piece % q->splits + 1) * each : q->panels;
        if (there != group)
            transform_group(q, (const float *)work->inputs[0]->data + image * q->c * q->h * q->w, t0, count, v);
        there = group;
        for (uint64_t p = piece % q->splits * each; p < end; p += CHUNK / PANEL) {
            const uint64_t p1 = end - p < CHUNK / PANEL ? end : p + CHUNK / PANEL;
            multiply(q, v, count, p, p1, m);
            store_group(q, work, image, t0, count, p * PANEL, p1 * PANEL < q->m ? p1 * PANEL : q->m, m, &doubt);
        }
    }
    return vi_any((onxi_vi)(doubt != doubt)) && !work->prepared->nonfinite ? ONX_E_UNSUPPORTED : ONX_OK;
}

/* ---- preparing ---- */

static bool shape_of(onx_prepare *p, wino *q)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    onxi_window win;
    if (x->rank != 4 || w->rank != 4 || !w->data || w->dtype != ONX_FLOAT || !y || y->rank != 4 || !y->count ||
        !x->count || (b && (!b->data || b->dtype != ONX_FLOAT || b->count != (uint64_t)w->dims[0])) ||
        onx_prepare_int(p, "group") != 1 || w->dims[2] != 3 || w->dims[3] != 3 || w->dims[1] != x->dims[1] ||
        w->dims[0] != y->dims[1] || x->dims[0] != y->dims[0] || w->dims[1] % BLOCK || w->dims[0] % BLOCK ||
        onxi_window_make(p, w->dims + 2, &win) != ONX_OK)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t gap = win.dilation[i];
        if (win.stride[i] != 1 || gap > win.out[i] || win.pad[i] < 0 || win.pad[i] > 2 * gap || win.pad_end[i] < 0 ||
            win.pad_end[i] > 2 * gap || win.in[i] + win.pad[i] + win.pad_end[i] - 2 * gap != win.out[i])
            return false;
    }
    q->batch = (uint64_t)x->dims[0];
    q->c = (uint64_t)x->dims[1];
    q->m = (uint64_t)y->dims[1];
    q->h = (uint64_t)x->dims[2];
    q->w = (uint64_t)x->dims[3];
    q->oh = (uint64_t)y->dims[2];
    q->ow = (uint64_t)y->dims[3];
    q->pad_y = win.pad[0];
    q->pad_x = win.pad[1];
    q->gap_y = (uint64_t)win.dilation[0];
    q->gap_x = (uint64_t)win.dilation[1];
    q->down = (q->oh + q->gap_y * OUT - 1) / (q->gap_y * OUT);
    q->across = (q->ow + q->gap_x * OUT - 1) / (q->gap_x * OUT);
    q->tiles = q->down * q->across * q->gap_y * q->gap_x;
    return true;
}

/* Compares the estimated cost with that of direct convolution. The cost per pair of input and output channel is 36
 * multiplications per tile, plus the equivalent of some tiles for reading transformed weights, which are four times as
 * large. The transforms cost about 400 multiplications per tile and channel. Where transformed weights are large, the
 * gain has to be larger, because creating the session takes longer. */
static bool worth_it(const wino *q)
{
    enum { C_MIN = 16, CACHED = 8 << 20, LARGE = 32 << 20, MOST = 160 << 20 };
    if (q->c < C_MIN || q->m < C_MIN || q->m > MOST / (POINTS * sizeof(float)) / q->c ||
        q->h > INT32_MAX / BLOCK / q->w)
        return false;
    const uint64_t size = q->m * q->c * POINTS * sizeof(float);
    const double tiles = (double)(q->tiles * q->batch), pairs = (double)q->c * (double)q->m;
    const double ours = POINTS * pairs * (tiles + (size <= CACHED ? 6 : 16)) + 400 * tiles * (double)(q->c + q->m);
    return ours * (size > LARGE ? 1.6 : 1.25) < 9 * pairs * (double)(q->oh * q->ow * q->batch);
}

/* Divides the work: into groups of tiles whose transformed input fits into the L2 cache if possible, and into ranges of
 * output channels if there are fewer groups than threads. */
static void cut(onx_prepare *p, wino *q)
{
    enum { CACHE = 320 << 10, LEAST = 24, MOST = 96 };
    const uint64_t tiles = q->tiles, threads = p->threads;
    uint64_t most = CACHE / (POINTS * sizeof(float) * (q->c + CHUNK));
    most = most < LEAST ? LEAST : most > MOST ? MOST : most;
    q->groups = (tiles + most - 1) / most;
    while (q->groups * q->batch % threads && q->groups < 4 * threads && tiles / q->groups > LEAST)
        q->groups++;
    q->group = (tiles + q->groups - 1) / q->groups;
    q->groups = (tiles + q->group - 1) / q->group;
    q->panels = (q->m + PANEL - 1) / PANEL;
    q->splits = q->groups * q->batch >= 2 * threads ? 1 : threads;
    q->splits = q->splits < q->panels ? q->splits : q->panels;
    q->splits = (q->panels + (q->panels + q->splits - 1) / q->splits - 1) / ((q->panels + q->splits - 1) / q->splits);
    q->v_step = q->group * q->c + 16; /* padded, so that the stride is not a power of two */
    q->m_step = q->group * CHUNK + 16;
    p->rows = q->batch * q->groups * q->splits;
    p->grain = 1;
    p->thread_workspace = POINTS * (q->v_step + q->m_step) * sizeof(float);
}

static onx_status conv_prepare(onx_prepare *p)
{
    wino *q = ONXI_NEW(p->arena, wino);
    const void *u;
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || p->nonfinite || !shape_of(p, q) || !worth_it(q) || !onxi_weights_are_finite(p, 1))
        return ONX_E_UNSUPPORTED;
    /* Tensors with channels last keep this layout, unless there are so many channels that the pixels of a tile evict
     * each other from the L1 cache. */
    const bool last = onxi_blocked_of(p->inputs[0]) == q->c;
    q->in_block = last && q->c <= LAST_MOST ? q->c : BLOCK;
    q->out_block = last && q->m <= LAST_MOST ? q->m : BLOCK;
    const onx_layout *in = onxi_blocked_layout(p->arena, p->inputs[0], (uint32_t)q->in_block);
    const onx_layout *out = onxi_blocked_layout(p->arena, p->outputs[0], (uint32_t)q->out_block);
    if (!in || !out)
        return ONX_E_MEMORY;
    cut(p, q);
    packing from = { q->c, q->m };
    const struct {
        char what[8];
        uint64_t out, panel, c, m;
    } key = { "wino", OUT, PANEL, q->c, q->m };
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = POINTS * q->panels * q->c * PANEL * sizeof(float),
                              .pieces = q->panels,
                              .unaligned = true,
                              .in_order = true,
                              .part = PANEL * q->c * 9,
                              .make = pack,
                              .user = &from };
    /* A session that keeps no packed weights (lean_memory) convolves directly: these weights are four times as large.
     */
    onx_elements elements;
    if (p->ops->in_place(p, 1, job.size, &elements) == ONX_OK)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(p->ops->packed(p, &job, &u));
    q->u = u;
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    if (b) {
        float *bias = onxi_arena_array(p->arena, q->panels * PANEL, sizeof *bias);
        if (!bias)
            return ONX_E_MEMORY;
        memset(bias, 0, q->panels * PANEL * sizeof *bias);
        memcpy(bias, b->data, q->m * sizeof *bias);
        q->bias = bias;
    }
    post_take_image(p, &q->posts, out);
    p->want[0] = in;
    p->want[1] = NULL;
    if (b)
        p->want[2] = NULL;
    p->outputs[0]->layout = out;
    p->params = q;
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_winograd)[] = { { .op = "Conv",
                                                                  .since = 1,
                                                                  .dtypes = ONXI_F32,
                                                                  .preference = 12,
                                                                  .isa = ONXI_LEVEL,
                                                                  .packs = 1 << 1,
                                                                  .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                                  .variant = "winograd",
                                                                  .prepare = conv_prepare,
                                                                  .run = run },
                                                                { 0 } };
