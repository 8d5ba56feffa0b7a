/* spread.c - ConvTranspose with row-major channels, of any number: the last layers of decoders and generators have few
 * channels, and channel blocks would mostly contain zeros. A transposed convolution is one convolution for each output
 * phase (position modulo stride), with the taps that reach that phase. A stripe of the input is copied with zeros
 * around it, so that a tap reads it at a constant offset from every position. A few outputs, of channels and phases
 * with the same taps, are accumulated in registers for some vectors of neighbouring positions at a time, including
 * those between the lines, and are then stored with the stride. The sum runs in one fixed order. */
#include "kernel/kernel.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

enum {
    DIMS = 3,
    BLOCK = 16,  /* channels that lie together in blocked layouts */
    WIDTH = 4,   /* most outputs per position at a time */
    VECTORS = 8, /* most vectors of positions at a time */
    TAPS_MAX = 1 << 12,
    PLACES_MAX = 1 << 10, /* phases */
    BLOCKS_MAX = 1 << 16, /* of one output each */
    STRIPE = 1 << 16,     /* floats of a stripe of the input, which stays in the L2 cache */
    STRIPE_MAX = 1 << 18, /* most floats of a stripe of one line */
    DIM_MAX = 1 << 24     /* of a dim */
};

/* The taps that contribute to one phase. */
typedef struct place {
    uint64_t first, count; /* ranges of `at` and `which` */
    int64_t r[DIMS];
} place;

/* Outputs that are computed together: their phases have the same taps, with different weights. */
typedef struct block {
    uint64_t width, weights; /* weights: offset of the block's weights in a group */
    struct {
        const place *place;
        uint64_t channel;
    } of[WIDTH];
} block;

typedef struct spread_params {
    uint64_t batch, group, c, m; /* channels of a group */
    uint64_t block_count;        /* of a group */
    const block *blocks;
    int64_t in[DIMS], out[DIMS], stride[DIMS], pad[DIMS], reach[DIMS];
    int64_t q[DIMS];          /* positions that contribute to the result; the first one is 0 */
    int64_t rows, stripes;    /* positions of the outermost dim that has more than one; number of its stripes */
    uint32_t outer;           /* that dim */
    uint64_t splits;          /* units of work that the blocks are divided into */
    uint64_t room, positions; /* floats of a channel of a stripe; number of computed positions, a multiple of the
                               * step */
    uint64_t in_plane, out_plane, taps, place_count;
    const place *places;
    uint64_t *at;    /* offset from a position where a tap reads; the same for all stripes */
    uint64_t *which; /* index of the tap's weights */
    const float *w, *bias;
    simd_posts posts;
} spread_params;

/* ---- weights: by group, block, input channel, tap and output of the block ---- */

static uint64_t weights_of_group(const spread_params *q)
{
    return q->m * q->taps * q->c;
}

/* A piece is a group. */
static onx_status pack(void *user, const void *elements, uint64_t g, void *out)
{
    const spread_params *q = user;
    const float *w = (const float *)elements + g * weights_of_group(q);
    float *to = (float *)out + g * weights_of_group(q);
    for (uint64_t i = 0; i < q->block_count; i++) {
        const block *b = &q->blocks[i];
        for (uint64_t c = 0; c < q->c; c++)
            for (uint64_t t = 0; t < b->of[0].place->count; t++)
                for (uint64_t k = 0; k < b->width; k++)
                    *to++ = w[(c * q->m + b->of[k].channel) * q->taps + q->which[b->of[k].place->first + t]];
    }
    return ONX_OK;
}

/* ---- input ---- */

/* Copies a stripe that begins at position `first` of the outermost dim: the positions of all channels of a group that
 * its taps read, with zeros outside of the input. */
static void copy_stripe(const spread_params *q, const float *x, int64_t first, float *to)
{
    int64_t from[DIMS], size[DIMS];
    for (uint32_t d = 0; d < DIMS; d++) {
        from[d] = (d == q->outer ? first : 0) - q->reach[d];
        size[d] = (d == q->outer ? q->rows : q->q[d]) + q->reach[d];
    }
    const int64_t n = q->in[2], before = from[2] < 0 ? -from[2] < size[2] ? -from[2] : size[2] : 0;
    const int64_t end = n - from[2] < before ? before : n - from[2] < size[2] ? n - from[2] : size[2];
    for (uint64_t c = 0; c < q->c; c++, x += q->in_plane) {
        float *line = to + c * q->room;
        for (int64_t i = from[0]; i < from[0] + size[0]; i++)
            for (int64_t j = from[1]; j < from[1] + size[1]; j++, line += size[2]) {
                if (i < 0 || i >= q->in[0] || j < 0 || j >= q->in[1]) {
                    memset(line, 0, (size_t)size[2] * sizeof *line);
                    continue;
                }
                memset(line, 0, (size_t)before * sizeof *line);
                if (end > before)
                    memcpy(line + before, x + (i * q->in[1] + j) * n + from[2] + before,
                           (size_t)(end - before) * sizeof *line);
                memset(line + end, 0, (size_t)(size[2] - end) * sizeof *line);
            }
        memset(line, 0, (size_t)(to + (c + 1) * q->room - line) * sizeof *line);
    }
}

/* ---- products ---- */

/* Outputs per position, and vectors of positions for that number: as many as there are registers for, with enough sums
 * that none waits for another. All of them divide VECTORS. */
#if ONXI_LANES == 16
#define WIDTHS(X) X(1, 8) X(2, 8) X(3, 4) X(4, 4)
#else
#define WIDTHS(X) X(1, 8) X(2, 4) X(3, 2) X(4, 2)
#endif

/* Accumulates some vectors of positions over all input channels and all taps. `w` and `bias` are those of the block. */
__attribute__((always_inline)) static inline void some(const spread_params *q, const block *b, const float *x,
                                                       const float *w, const float *bias, float *made, const int width,
                                                       const int vectors)
{
    const uint64_t taps = b->of[0].place->count, *offset = q->at + b->of[0].place->first;
    onxi_vf sum[WIDTH][VECTORS];
    UNROLL
    for (int k = 0; k < width; k++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[k][v] = vf_all(bias ? bias[b->of[k].channel] : 0);
    for (uint64_t c = 0; c < q->c; c++, x += q->room)
        for (uint64_t t = 0; t < taps; t++, w += width) {
            const float *at = x + offset[t];
            onxi_vf part[VECTORS];
            UNROLL
            for (int v = 0; v < vectors; v++)
                part[v] = vf_load(at + v * ONXI_LANES);
            UNROLL
            for (int k = 0; k < width; k++)
                UNROLL
            for (int v = 0; v < vectors; v++)
                sum[k][v] += w[k] * part[v];
        }
    UNROLL
    for (int k = 0; k < width; k++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        vf_store(made + (uint64_t)k * q->positions + (uint64_t)v * ONXI_LANES, sum[k][v]);
}

/* All positions of a stripe. */
static void multiply(const spread_params *q, const block *b, const float *stripe, const float *w, const float *bias,
                     float *made)
{
    switch (b->width) {
#define CASE(width, vectors)                                                                                           \
    case width:                                                                                                        \
        for (uint64_t at = 0; at < q->positions; at += (uint64_t)(vectors)*ONXI_LANES)                                 \
            some(q, b, stripe + at, w, bias, made + at, width, vectors);                                               \
        break;
        WIDTHS(CASE)
#undef CASE
    default:
        break;
    }
}

/* ---- output ---- */

/* The positions of a dim, between `low` and `high`, that reach the result at this phase. */
static void within(const spread_params *q, uint32_t d, int64_t r, int64_t *low, int64_t *high)
{
    const int64_t s = q->stride[d], first = q->pad[d] > r ? (q->pad[d] - r + s - 1) / s : 0;
    const int64_t last = q->out[d] - 1 + q->pad[d] - r, end = last < 0 ? 0 : last / s + 1;
    *low = *low < first ? first : *low;
    *high = *high > end ? end : *high;
}

/* Stores the results of a channel at this phase, from the positions of a stripe. */
static void store(const spread_params *q, const place *f, int64_t first, int64_t end, const float *made, float *y)
{
    int64_t low[DIMS], high[DIMS], base[DIMS], size[DIMS];
    for (uint32_t d = 0; d < DIMS; d++) {
        base[d] = low[d] = d == q->outer ? first : 0;
        high[d] = d == q->outer ? end : q->q[d];
        size[d] = (d == q->outer ? q->rows : q->q[d]) + q->reach[d];
        within(q, d, f->r[d], &low[d], &high[d]);
    }
    for (int64_t i = low[0]; i < high[0]; i++)
        for (int64_t j = low[1]; j < high[1]; j++) {
            const int64_t line = (i * q->stride[0] + f->r[0] - q->pad[0]) * q->out[1] + j * q->stride[1] + f->r[1];
            const float *from = made + ((i - base[0]) * size[1] + j - base[1]) * size[2] - base[2];
            float *to = y + (line - q->pad[1]) * q->out[2] + f->r[2] - q->pad[2];
            const int64_t s = q->stride[2];
            for (int64_t k = low[2]; k < high[2]; k++)
                to[k * s] = from[k];
        }
}

/* A piece of work is a stripe of a group of an image, and some of its blocks. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const spread_params *q = work->params;
    const uint64_t each = (q->block_count + q->splits - 1) / q->splits;
    float *stripe = work->thread_workspace, *made = stripe + q->c * q->room;
    uint64_t there = UINT64_MAX; /* the stripe in the buffer */
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t which = piece / q->splits, set = which / (uint64_t)q->stripes, g = set % q->group;
        const int64_t begin = (int64_t)(which % (uint64_t)q->stripes) * q->rows, all = q->q[q->outer];
        const int64_t end = all - begin < q->rows ? all : begin + q->rows;
        if (which != there)
            copy_stripe(q, (const float *)work->inputs[0]->data + set * q->c * q->in_plane, begin, stripe);
        there = which;
        const uint64_t b0 = piece % q->splits * each, b1 = b0 + each < q->block_count ? b0 + each : q->block_count;
        for (uint64_t i = b0; i < b1; i++) {
            const block *b = &q->blocks[i];
            multiply(q, b, stripe, q->w + g * weights_of_group(q) + b->weights, q->bias ? q->bias + g * q->m : NULL,
                     made);
            for (uint32_t k = 0; k < q->posts.count; k++)
                post_apply(&q->posts.list[k], made, q->positions, b->width, q->positions / ONXI_LANES, NULL, NULL, 0);
            for (uint64_t k = 0; k < b->width; k++)
                store(q, b->of[k].place, begin, end, made + k * q->positions,
                      (float *)work->outputs[0]->data + (set * q->m + b->of[k].channel) * q->out_plane);
        }
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* The last dims of three; false: too large. */
static bool take_sizes(const onxi_window *w, spread_params *q, int64_t kernel[DIMS], int64_t dilation[DIMS])
{
    q->in_plane = q->out_plane = q->taps = q->place_count = 1;
    for (uint32_t d = 0; d < DIMS; d++) {
        const int from = (int)d - (DIMS - (int)w->spatial);
        q->in[d] = from < 0 ? 1 : w->in[from];
        q->out[d] = from < 0 ? 1 : w->out[from];
        kernel[d] = from < 0 ? 1 : w->kernel[from];
        q->stride[d] = from < 0 ? 1 : w->stride[from];
        dilation[d] = from < 0 ? 1 : w->dilation[from];
        q->pad[d] = from < 0 ? 0 : w->pad[from];
        if (q->in[d] < 1 || q->in[d] > DIM_MAX || q->out[d] < 1 || q->out[d] > DIM_MAX || kernel[d] < 1 ||
            kernel[d] > TAPS_MAX || q->stride[d] > PLACES_MAX || dilation[d] > TAPS_MAX || q->pad[d] < 0 ||
            q->pad[d] > DIM_MAX)
            return false;
        q->reach[d] = (kernel[d] - 1) * dilation[d] / q->stride[d];
        q->q[d] = (q->out[d] - 1 + q->pad[d]) / q->stride[d] + 1;
        q->in_plane *= (uint64_t)q->in[d];
        q->out_plane *= (uint64_t)q->out[d];
        q->taps *= (uint64_t)kernel[d];
        q->place_count *= (uint64_t)q->stride[d];
        if (q->taps > TAPS_MAX || q->place_count > PLACES_MAX || q->in_plane > INT32_MAX || q->out_plane > INT32_MAX)
            return false;
    }
    return true;
}

/* Stripes, and what they take; false: too much. */
static bool cut(onx_prepare *p, spread_params *q)
{
    q->outer = q->q[0] > 1 ? 0 : q->q[1] > 1 ? 1 : 2;
    uint64_t line = 1, tail = 0; /* floats of a channel per position of the outermost dim; the last float that is
                                  * read */
    for (uint32_t d = q->outer + 1; d < DIMS; d++)
        line *= (uint64_t)(q->q[d] + q->reach[d]);
    if (line > STRIPE_MAX || q->c > STRIPE_MAX || line * q->c > STRIPE_MAX)
        return false;
    const uint64_t fit = STRIPE / (line * q->c) > 2 * (uint64_t)q->reach[q->outer]
                             ? STRIPE / (line * q->c) - (uint64_t)q->reach[q->outer]
                             : (uint64_t)q->reach[q->outer] + 1;
    const uint64_t all = (uint64_t)q->q[q->outer], stripes = (all + fit - 1) / fit;
    q->rows = (int64_t)((all + stripes - 1) / stripes);
    q->stripes = (int64_t)((all + (uint64_t)q->rows - 1) / (uint64_t)q->rows);
    for (uint32_t d = 0; d < DIMS; d++) {
        const uint64_t size = (uint64_t)((d == q->outer ? q->rows : q->q[d]) + q->reach[d]);
        tail = tail * size + (uint64_t)(d == q->outer ? q->rows : q->q[d]) - 1;
    }
    enum { STEP = VECTORS * ONXI_LANES };
    q->positions = (tail + STEP) / STEP * STEP;
    q->room = line * (uint64_t)(q->rows + q->reach[q->outer]) + STEP;
    if (q->room * q->c > 4 * STRIPE_MAX)
        return false;
    p->thread_workspace = (q->c * q->room + WIDTH * q->positions) * sizeof(float);
    return true;
}

/* Blocks of a stripe are separate pieces if there are fewer stripes than the threads can use. */
static void split(onx_prepare *p, spread_params *q)
{
    const uint64_t threads = p->threads, pieces = q->batch * q->group * (uint64_t)q->stripes;
    q->splits = pieces >= 2 * threads ? 1 : (2 * threads + pieces - 1) / pieces;
    q->splits = q->splits < q->block_count ? q->splits : q->block_count;
    const uint64_t each = (q->block_count + q->splits - 1) / q->splits;
    q->splits = (q->block_count + each - 1) / each;
    p->rows = pieces * q->splits;
    p->grain = onxi_worth_a_thread(q->positions * q->c * q->taps * q->m / q->splits);
}

/* Computes which taps reach which phase, and the offsets that they read at. */
static onx_status make_places(onx_prepare *p, spread_params *q, const int64_t kernel[DIMS],
                              const int64_t dilation[DIMS])
{
    place *places = ONXI_ARRAY(p->arena, place, q->place_count);
    q->at = onxi_arena_array(p->arena, q->taps, sizeof *q->at);
    q->which = onxi_arena_array(p->arena, q->taps, sizeof *q->which);
    if (!places || !q->at || !q->which)
        return ONX_E_MEMORY;
    uint64_t taken = 0;
    for (uint64_t i = 0; i < q->place_count; i++) {
        place *f = &places[i];
        uint64_t rest = i;
        f->first = taken;
        for (int d = DIMS; d-- > 0; rest /= (uint64_t)q->stride[d])
            f->r[d] = (int64_t)(rest % (uint64_t)q->stride[d]);
        for (uint64_t t = 0; t < q->taps; t++) {
            int64_t k[DIMS], at = 0;
            bool reaches = true;
            rest = t;
            for (int d = DIMS; d-- > 0; rest /= (uint64_t)kernel[d])
                k[d] = (int64_t)(rest % (uint64_t)kernel[d]) * dilation[d];
            for (uint32_t d = 0; d < DIMS; d++) {
                reaches = reaches && k[d] % q->stride[d] == f->r[d];
                at = at * ((d == q->outer ? q->rows : q->q[d]) + q->reach[d]) + q->reach[d] - k[d] / q->stride[d];
            }
            if (!reaches)
                continue;
            q->at[taken] = (uint64_t)at;
            q->which[taken++] = t;
        }
        f->count = taken - f->first;
    }
    q->places = places;
    return ONX_OK;
}

static bool reads_the_same(const spread_params *q, const place *a, const place *b)
{
    return a->count == b->count && memcmp(q->at + a->first, q->at + b->first, a->count * sizeof *q->at) == 0;
}

/* All channels of all phases; those whose taps read the same inputs are grouped. */
static onx_status make_blocks(onx_prepare *p, spread_params *q)
{
    block *blocks = ONXI_ARRAY(p->arena, block, q->place_count * q->m);
    bool *taken = ONXI_ARRAY(p->arena, bool, q->place_count);
    if (!blocks || !taken)
        return ONX_E_MEMORY;
    uint64_t weights = 0;
    for (uint64_t i = 0; i < q->place_count; i++) {
        block *b = NULL;
        for (uint64_t k = i; k < q->place_count && !taken[i]; k++) {
            if (taken[k] || !reads_the_same(q, &q->places[i], &q->places[k]))
                continue;
            taken[k] = k > i;
            for (uint64_t m = 0; m < q->m; m++) {
                if (!b || b->width == WIDTH) {
                    b = &blocks[q->block_count++];
                    b->weights = weights;
                }
                b->of[b->width].place = &q->places[k];
                b->of[b->width++].channel = m;
                weights += q->places[k].count * q->c;
            }
        }
    }
    q->blocks = blocks;
    return ONX_OK;
}

static onx_status take_weights(onx_prepare *p, spread_params *q, const onx_value *b, const int64_t kernel[DIMS],
                               const int64_t dilation[DIMS])
{
    struct {
        char what[8];
        uint64_t group, c, m;
        int64_t by[DIMS][3]; /* phases follow from these */
    } key = { "spread", q->group, q->c, q->m, { { 0 } } };
    for (int d = 0; d < DIMS; d++) {
        key.by[d][0] = kernel[d];
        key.by[d][1] = dilation[d];
        key.by[d][2] = q->stride[d];
    }
    onx_packing job = { .input = 1, .key = &key, .key_size = sizeof key, .pieces = q->group, .make = pack, .user = q };
    if (!onxi_mul_u64(q->group * q->m, q->taps * sizeof(float), &job.size) || !onxi_mul_u64(job.size, q->c, &job.size))
        return ONX_E_UNSUPPORTED;
    if (b) {
        float *bias = onxi_arena_array(p->arena, q->group * q->m, sizeof *bias);
        if (!bias)
            return ONX_E_MEMORY;
        memcpy(bias, b->data, q->group * q->m * sizeof *bias);
        q->bias = bias;
    }
    const void *packed;
    ONX_TRY(p->ops->packed(p, &job, &packed));
    q->w = packed;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    const int64_t group = onx_prepare_int(p, "group");
    int64_t kernel[DIMS], dilation[DIMS];
    onxi_window win;
    if (!y || x->rank < 3 || x->rank > 5 || w->rank != x->rank || y->rank != x->rank || !w->data ||
        w->dtype != ONX_FLOAT || x->layout || !x->count || !y->count || group < 1 || x->dims[1] % group ||
        w->dims[0] != x->dims[1] || w->dims[1] < 1 || w->dims[1] > INT32_MAX || y->dims[1] / group != w->dims[1] ||
        y->dims[1] % group || y->dims[0] != x->dims[0])
        return ONX_E_UNSUPPORTED;
    /* Good cases of oneDNN come first: channels in whole blocks, or depthwise groups. */
    const bool first = p->kernel->body != NULL;
    if (first && (group > 1 || w->dims[1] % BLOCK == 0))
        return ONX_E_UNSUPPORTED;
    if (b && (!b->data || b->dtype != ONX_FLOAT || b->rank != 1 || b->dims[0] != y->dims[1]))
        return ONX_E_UNSUPPORTED;
    spread_params *q = ONXI_NEW(p->arena, spread_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (spread_params){ .batch = (uint64_t)x->dims[0],
                          .group = (uint64_t)group,
                          .c = (uint64_t)(x->dims[1] / group),
                          .m = (uint64_t)w->dims[1] };
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    ONX_TRY(onxi_window_transpose(p, &win));
    /* Zeros around the input are multiplied too: with infinite weights they would give NaN, which the standard does not
     * have there. */
    if (!take_sizes(&win, q, kernel, dilation) || q->place_count * q->m > BLOCKS_MAX || !cut(p, q) ||
        !onxi_weights_are_finite(p, 1))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(make_places(p, q, kernel, dilation));
    ONX_TRY(make_blocks(p, q));
    split(p, q);
    ONX_TRY(take_weights(p, q, b, kernel, dilation));
    post_take_functions(p, &q->posts);
    p->params = q;
    return ONX_OK;
}

static const char first = 0;

#define ROW(preference_, body_)                                                                                        \
    {                                                                                                                  \
        .op = "ConvTranspose", .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL,           \
        .packs = 1 << 1, .flags = ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = body_, .prepare = prepare,     \
        .run = run                                                                                                     \
    }
/* Before oneDNN where this is 1.3 to 4 times as fast, and after it where the only alternative is the plain row. */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_spread)[] = { ROW(11, &first), ROW(8, NULL), { 0 } };
