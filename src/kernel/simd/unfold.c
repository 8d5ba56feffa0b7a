/* unfold.c - Conv and ConvTranspose with any window as matrix products, on channel blocks or channels last. For some
 * output pixels, the inputs of a range of the sum are gathered and multiplied with panels of packed weights. A
 * transposed convolution is one convolution with evenly spaced taps for each phase of its output (position modulo
 * stride). At the level with bfloat16 products, these rows serve sessions with that precision: both operands are
 * rounded to it, and pairs of channels take the place of one (half.h). At the level with AMX tiles, these multiply
 * floats (parts.h). */
#include "kernel/core/blocked.h"

/* How the level multiplies rows and panels. */
#define PAIRS (ONXI_LEVEL == 5) /* ONX_ISA_BF16 */
#define TILES (ONXI_LEVEL == 6) /* ONX_ISA_AMX */
#if PAIRS
#include "kernel/simd/half.h"
#else
#include "kernel/simd/parts.h"
#endif
#include "kernel/simd/post.h"

enum {
    DIMS = 3,
    BLOCK = ONXI_LANES < 8 ? 8 : ONXI_LANES, /* channels of a block */
    EACH = PAIRS ? 2 : 1,                    /* channels per element along k */
    PIXELS = 96,                             /* most pixels at a time */
    PIXELS_LEAST = 24,
    LINE = BLOCK_K + 16, /* stride of pixels in the gathered input, in floats: not a power of two */
    LAST_MOST = 128,     /* most output channels for the layout with channels last */
    TAPS_MAX = 1 << 12,
    PHASES_MAX = 64
};

_Static_assert(WHOLE_K % BLOCK == 0, "a stretch of the sum ends where a block of channels does");

/* The position that a tap of a phase reads, relative to the pixel, and the index of its weights. */
typedef struct tap {
    int64_t at[DIMS];
    uint64_t which;
} tap;

/* A convolution whose results are `step` apart. */
typedef struct phase {
    const tap *taps;
    uint64_t count, before;          /* taps; taps of the phases before */
    int64_t first[DIMS], size[DIMS]; /* positions of the results */
    uint64_t pixels, groups;
} phase;

typedef struct unfold_params {
    /* Sets are groups of channels that are convolved separately; c, m: channels of a set. */
    uint64_t batch, sets, c, m;
    uint64_t depth;                     /* elements of k per tap */
    int64_t in[DIMS], out[DIMS];        /* sizes */
    int64_t stride[DIMS], step[DIMS];   /* strides between pixels in the input and in the output */
    uint64_t in_plane, out_plane, taps; /* taps of all phases */
    uint64_t in_block, out_block;       /* contiguous channels */
    /* Pixels at a time; panels of a set, units of work that they are divided into. */
    uint64_t group, panels, splits, ldc;
    uint64_t groups, phase_count; /* groups of pixels per image and set */
    const phase *phases;
    bool skips;            /* weights are finite: zeros of the padding need not be multiplied */
    const float *w, *bias; /* packed by set, phase and panel; the bias is padded to whole panels */
    simd_posts posts;
} unfold_params;

/* ---- weights ---- */

typedef struct packing {
    const unfold_params *q;
    bool transposed;
} packing;

static uint64_t panel_at(const unfold_params *q, uint64_t set, const phase *f, uint64_t panel)
{
    return ((set * q->taps + f->before) * q->panels + panel * f->count) * q->depth * PANEL;
}

/* Taps whose weights are gathered together for a block of channels. */
enum { TAPS_AT_ONCE = 32 };

/* Stores BLOCK rows of a panel, with stride `step`; returns false if an element does not fit the type. */
static bool put_weights(const float *rows, uint64_t step, float *to)
{
#if PAIRS
    return half_pack(rows, step, BLOCK, (char *)to);
#else
    for (uint64_t k = 0; k < BLOCK; k++, rows += step, to += PANEL)
        memcpy(to, rows, PANEL * sizeof *to);
    return true;
#endif
}

/* Gathers the weights of channels from `c` on, for `count` taps: channel by channel, tap by tap. The weights of one
 * output are contiguous over channels and taps, and are read in place. */
static void gather_weights(const packing *job, const char *w, uint64_t set, uint64_t m0, const tap *taps,
                           uint64_t count, uint64_t c, float *rows)
{
    const unfold_params *q = job->q;
    const uint64_t left = q->m - m0, width = left < PANEL ? left : PANEL;
    if (!job->transposed) {
        const uint64_t step = q->c * q->taps * sizeof(float), first = taps->which;
        const bool all = count == q->taps;
        const char *from = w + (set * q->m + m0) * step + (c * q->taps + first) * sizeof(float);
        const uint64_t runs = all ? 1 : BLOCK, each = all ? BLOCK * count : count;
        for (uint64_t i = 0; i < runs; i++)
            tile_turn(from + i * q->taps * sizeof(float), step, width, each, rows + i * each * PANEL);
        return;
    }
    for (uint64_t i = 0; i < BLOCK; i++)
        for (uint64_t t = 0; t < count; t++, rows += PANEL)
            for (uint64_t m = 0; m < PANEL; m++) {
                const uint64_t at = ((set * q->c + c + i) * q->m + m0 + m) * q->taps + taps[t].which;
                rows[m] = m < width ? ((const float *)(const void *)w)[at] : 0;
            }
}

/* A piece is a panel of a set. */
static onx_status pack(void *user, const void *elements, uint64_t piece, void *out)
{
    const packing *job = user;
    const unfold_params *q = job->q;
    const uint64_t set = piece / q->panels, panel = piece % q->panels;
    float rows[TAPS_AT_ONCE * BLOCK * PANEL];
    for (uint64_t i = 0; i < q->phase_count; i++) {
        const phase *f = &q->phases[i];
        float *to = (float *)out + panel_at(q, set, f, panel);
        for (uint64_t c = 0; c < q->c; c += BLOCK, to += BLOCK / EACH * PANEL)
            for (uint64_t t = 0, count; t < f->count; t += count) {
                count = f->count - t < TAPS_AT_ONCE ? f->count - t : TAPS_AT_ONCE;
                gather_weights(job, elements, set, panel * PANEL, f->taps + t, count, c, rows);
                for (uint64_t k = 0; k < count; k++)
                    if (!put_weights(rows + k * PANEL, count * PANEL, to + (t + k) * q->depth * PANEL))
                        return ONX_E_UNSUPPORTED;
            }
    }
    return ONX_OK;
}

/* ---- input ---- */

/* Some output pixels: their positions in the input and in the output. */
typedef struct pixels {
    uint64_t count;
    int64_t from[PIXELS][DIMS];
    uint64_t to[PIXELS];
} pixels;

static void place_pixels(const unfold_params *q, const phase *f, uint64_t first, pixels *p)
{
    int64_t at[DIMS];
    p->count = f->pixels - first < q->group ? f->pixels - first : q->group;
    for (int d = DIMS; d-- > 0; first /= (uint64_t)f->size[d])
        at[d] = (int64_t)(first % (uint64_t)f->size[d]);
    for (uint64_t i = 0; i < p->count; i++) {
        int64_t to = 0;
        for (int d = 0; d < DIMS; d++) {
            p->from[i][d] = at[d] * q->stride[d];
            to = to * q->out[d] + f->first[d] + at[d] * q->step[d];
        }
        p->to[i] = (uint64_t)to;
        for (int d = DIMS; d-- > 0; at[d] = 0)
            if (++at[d] < f->size[d])
                break;
    }
}

/* Stores a block of channels, or any number of consecutive blocks. */
static inline void put_block(const float *from, float *to)
{
#if PAIRS
    half_vector(from, to);
#else
    memcpy(to, from, BLOCK * sizeof *to);
#endif
}

static inline void put_channels(const float *from, uint64_t count, float *to)
{
#if PAIRS
    half_line(from, count, to); /* the zeros written after it are overwritten by the next ones, or are padding */
#else
    memcpy(to, from, count * sizeof *to);
#endif
}

/* Gathers channels c .. c+count-1 that a tap reads; x points to the image and set. */
static void gather_tap(const unfold_params *q, const pixels *p, const tap *t, const float *x, uint64_t c,
                       uint64_t count, float *a)
{
    const float *channels = x + c / q->in_block * q->in_plane * q->in_block + c % q->in_block;
    for (uint64_t i = 0; i < p->count; i++, a += LINE) {
        int64_t at = 0;
        bool inside = true;
        for (int d = 0; d < DIMS; d++) {
            const int64_t from = p->from[i][d] + t->at[d];
            inside &= from >= 0 && from < q->in[d];
            at = at * q->in[d] + from;
        }
        if (!inside) {
            memset(a, 0, count / EACH * sizeof *a);
        } else if (q->in_block == BLOCK) {
            const float *from = channels + at * BLOCK;
            for (uint64_t k = 0; k < count; k += BLOCK, from += q->in_plane * BLOCK)
                put_block(from, a + k / EACH);
        } else {
            put_channels(channels + (uint64_t)at * q->in_block, count, a);
        }
    }
}

static void gather(const unfold_params *q, const phase *f, const pixels *p, const float *x, uint64_t k0, uint64_t kc,
                   float *a)
{
    for (uint64_t k = k0; k < k0 + kc;) {
        const uint64_t c = k % q->depth, left = k0 + kc - k, count = q->depth - c < left ? q->depth - c : left;
        gather_tap(q, p, &f->taps[k / q->depth], x, c * EACH, count * EACH, a + (k - k0));
        k += count;
    }
}

/* Does a tap read anything but padding? */
static bool reads(const unfold_params *q, const pixels *p, const tap *t)
{
    bool any = !q->skips;
    for (uint64_t i = 0; i < p->count && !any; i++) {
        any = true;
        for (int d = 0; d < DIMS; d++) {
            const int64_t from = p->from[i][d] + t->at[d];
            any &= from >= 0 && from < q->in[d];
        }
    }
    return any;
}

/* ---- products ---- */

/* A range of the sum: gathered pixels, and panels p0 .. p1-1. */
typedef struct stretch {
    const unfold_params *q;
    const phase *f;
    uint64_t set, pixels, p0, p1, k0, kc;
    bool more; /* adds to what is in c */
    const float *a;
    float *c;
    void *space; /* for the level: parts_space() bytes */
} stretch;

#if TILES
static void put(void *user, uint64_t row, uint64_t rows, uint64_t panel, const float *sums)
{
    const stretch *s = user;
    amx_put(sums, s->c + row * s->q->ldc + (panel - s->p0) * PANEL, s->q->ldc, rows, s->more);
}

static void multiply(stretch *s)
{
    parts_stretch(&(parts_product){ .a = s->a,
                                    .lda = LINE,
                                    .rows = s->pixels,
                                    .b = s->q->w + panel_at(s->q, s->set, s->f, 0) + s->k0 * PANEL,
                                    .panel = s->f->count * s->q->depth * PANEL,
                                    .p0 = s->p0,
                                    .p1 = s->p1,
                                    .k = s->kc,
                                    .space = s->space,
                                    .put = put,
                                    .user = s });
}

static void level_begin(void)
{
    amx_begin();
}

static void level_end(void)
{
    amx_end();
}

static uint64_t depth_of(uint64_t left)
{
    return parts_depth(left);
}

static uint64_t space_of(uint64_t pixel_count)
{
    return parts_space(pixel_count);
}
#else
static void multiply(const stretch *s)
{
    const uint64_t tiles = (s->pixels + TILE_M - 1) / TILE_M;
    for (uint64_t p = s->p0; p < s->p1; p++) {
        const float *w = s->q->w + panel_at(s->q, s->set, s->f, p) + s->k0 * PANEL;
        const float *next = p + 1 < s->p1 ? s->q->w + panel_at(s->q, s->set, s->f, p + 1) + s->k0 * PANEL : NULL;
        for (uint64_t i = 0, rows, index = 0; i < s->pixels; i += rows, index++) {
            rows = tile_height(s->pixels - i);
            tile_operands t = { .a = s->a + i * LINE,
                                .lda = LINE,
                                .b = w,
                                .ldb = PANEL,
                                .k = s->kc,
                                .c = s->c + i * s->q->ldc + (p - s->p0) * PANEL,
                                .ldc = s->q->ldc,
                                .more = s->more };
            tile_fetch(&t, next, index, tiles);
            tile_run(&t, rows);
        }
    }
}

static void level_begin(void) {}

static void level_end(void) {}

static uint64_t depth_of(uint64_t left)
{
    return tile_depth(left);
}

static uint64_t space_of(uint64_t pixel_count)
{
    (void)pixel_count;
    return 0;
}
#endif

/* ---- output ---- */

/* Applies post-operations to a block of channels of all pixels, and stores it. `m` counts channels of the image. */
static void store_block(const unfold_params *q, const onx_work *work, uint64_t image, const pixels *p, uint64_t m,
                        const float *bias, float *c)
{
    enum { VECTORS = BLOCK / ONXI_LANES };
    const uint64_t at = (image * q->sets * q->m + m / q->out_block * q->out_block) * q->out_plane + m % q->out_block;
    float *y = (float *)work->outputs[0]->data + at;
    for (uint64_t i = 0; bias && i < p->count; i++)
        for (uint64_t v = 0; v < BLOCK; v += ONXI_LANES)
            vf_store(c + i * q->ldc + v, vf_load(c + i * q->ldc + v) + vf_load(bias + v));
    for (uint32_t i = 0; i < q->posts.count; i++) {
        const simd_post *f = &q->posts.list[i];
        const float *same = f->operand < 0 ? NULL : (const float *)work->inputs[f->operand]->data + at;
        if (same) /* the pixels of a convolution are contiguous */
            same += p->to[0] * q->out_block;
        post_apply(f, c, q->ldc, p->count, VECTORS, NULL, same, q->out_block);
    }
    for (uint64_t i = 0; i < p->count; i++)
        for (uint64_t v = 0; v < BLOCK; v += ONXI_LANES)
            vf_store(y + p->to[i] * q->out_block + v, vf_load(c + i * q->ldc + v));
}

/* A unit of work is a group of pixels of an image and a set of channels, and some of the panels. */
static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const unfold_params *q = work->params;
    const uint64_t each = (q->panels + q->splits - 1) / q->splits;
    float *a = (float *)work->thread_workspace + space_of(q->group) / sizeof *a, *c = a + q->group * LINE;
    pixels p;
    level_begin();
    for (uint64_t piece = first; piece < last; piece++) {
        const uint64_t p0 = piece % q->splits * each, p1 = p0 + each < q->panels ? p0 + each : q->panels;
        const uint64_t all = piece / q->splits, set = all / q->groups % q->sets, image = all / q->groups / q->sets;
        const phase *f = q->phases;
        uint64_t group = all % q->groups;
        for (; group >= f->groups; f++)
            group -= f->groups;
        place_pixels(q, f, group * q->group, &p);
        const float *x = (const float *)work->inputs[0]->data + (image * q->sets + set) * q->c * q->in_plane;
        bool more = false;
        for (uint64_t t = 0, end; t < f->count; t = end) { /* consecutive taps that read something */
            for (end = t; end < f->count && reads(q, &p, &f->taps[end]); end++)
                ;
            for (uint64_t k = t * q->depth, kc; k < end * q->depth; k += kc, more = true) {
                kc = depth_of(end * q->depth - k);
                gather(q, f, &p, x, k, kc, a);
                multiply(&(stretch){ q, f, set, p.count, p0, p1, k, kc, more, a, c, work->thread_workspace });
            }
            end += end == t;
        }
        if (!more)
            memset(c, 0, p.count * q->ldc * sizeof *c);
        for (uint64_t m = p0 * PANEL; m < p1 * PANEL && m < q->m; m += BLOCK)
            store_block(q, work, image, &p, set * q->m + m, q->bias ? q->bias + set * q->m + m : NULL,
                        c + (m - p0 * PANEL));
    }
    level_end();
    return ONX_OK;
}

/* ---- preparing ---- */

/* The last dims of three. */
static bool take_sizes(const onxi_window *w, unfold_params *q, int64_t kernel[DIMS], int64_t dilation[DIMS],
                       int64_t pad[DIMS])
{
    enum { MOST = 1 << 24 };
    q->in_plane = q->out_plane = q->taps = 1;
    for (int d = 0; d < DIMS; d++) {
        const int from = d - (DIMS - (int)w->spatial);
        q->in[d] = from < 0 ? 1 : w->in[from];
        q->out[d] = from < 0 ? 1 : w->out[from];
        kernel[d] = from < 0 ? 1 : w->kernel[from];
        q->stride[d] = from < 0 ? 1 : w->stride[from];
        dilation[d] = from < 0 ? 1 : w->dilation[from];
        pad[d] = from < 0 ? 0 : w->pad[from];
        if (q->in[d] < 1 || q->in[d] > MOST || q->out[d] < 1 || q->out[d] > MOST || kernel[d] < 1 ||
            kernel[d] > TAPS_MAX || q->stride[d] > MOST || dilation[d] > MOST || pad[d] < -MOST || pad[d] > MOST)
            return false;
        q->in_plane *= (uint64_t)q->in[d];
        q->out_plane *= (uint64_t)q->out[d];
        q->taps *= (uint64_t)kernel[d];
    }
    return q->taps <= TAPS_MAX && q->in_plane <= INT32_MAX && q->out_plane <= INT32_MAX;
}

/* Describes the phase with results at first + i * step, and the taps that contribute to them. */
static void make_phase(unfold_params *q, const int64_t kernel[DIMS], const int64_t dilation[DIMS],
                       const int64_t pad[DIMS], bool transposed, phase *f, tap *taps)
{
    int64_t k[DIMS];
    f->taps = taps;
    f->pixels = 1;
    for (int d = 0; d < DIMS; d++) {
        f->size[d] = q->out[d] > f->first[d] ? (q->out[d] - f->first[d] + q->step[d] - 1) / q->step[d] : 0;
        f->pixels *= (uint64_t)f->size[d];
    }
    f->count = 0;
    for (uint64_t which = 0; which < q->taps; which++) {
        uint64_t rest = which;
        bool takes = true;
        for (int d = DIMS; d-- > 0; rest /= (uint64_t)kernel[d])
            k[d] = (int64_t)(rest % (uint64_t)kernel[d]);
        tap *t = &taps[f->count];
        for (int d = 0; d < DIMS; d++) {
            const int64_t at = transposed ? f->first[d] + pad[d] - k[d] * dilation[d] : k[d] * dilation[d] - pad[d];
            takes &= !transposed || at % q->step[d] == 0;
            t->at[d] = transposed ? at / q->step[d] : at;
        }
        t->which = which;
        f->count += takes;
    }
}

static onx_status make_phases(onx_prepare *p, unfold_params *q, const int64_t kernel[DIMS],
                              const int64_t dilation[DIMS], const int64_t pad[DIMS], bool transposed)
{
    q->phase_count = 1;
    for (int d = 0; d < DIMS; d++) {
        q->step[d] = transposed ? q->stride[d] : 1;
        q->stride[d] = transposed ? 1 : q->stride[d];
        if (q->step[d] > PHASES_MAX)
            return ONX_E_UNSUPPORTED;
        q->phase_count *= (uint64_t)q->step[d];
    }
    if (q->phase_count > PHASES_MAX)
        return ONX_E_UNSUPPORTED;
    phase *phases = ONXI_ARRAY(p->arena, phase, q->phase_count);
    /* Each tap belongs to one phase; one more entry is used while building. */
    tap *taps = ONXI_ARRAY(p->arena, tap, q->taps + 1);
    if (!phases || !taps)
        return ONX_E_MEMORY;
    uint64_t before = 0;
    for (uint64_t i = 0; i < q->phase_count; i++) {
        phase *f = &phases[i];
        uint64_t rest = i;
        *f = (phase){ .before = before };
        for (int d = DIMS; d-- > 0; rest /= (uint64_t)q->step[d])
            f->first[d] = (int64_t)(rest % (uint64_t)q->step[d]);
        make_phase(q, kernel, dilation, pad, transposed, f, taps + before);
        before += f->count;
    }
    q->phases = phases;
    return ONX_OK;
}

/* Divides pixels into groups of nearly equal size, at most `most`; returns the number of units of work for all
 * images. */
static uint64_t cut_pixels(unfold_params *q, uint64_t most)
{
    q->group = 1;
    q->groups = 0;
    for (uint64_t i = 0; i < q->phase_count; i++) {
        const uint64_t n = q->phases[i].pixels, groups = (n + most - 1) / most;
        const uint64_t even = groups ? (n + groups - 1) / groups : 0;
        q->group = even > q->group ? even : q->group;
    }
    for (uint64_t i = 0; i < q->phase_count; i++) {
        phase *f = (phase *)(uintptr_t)(const void *)&q->phases[i];
        f->groups = (f->pixels + q->group - 1) / q->group;
        q->groups += f->groups;
    }
    return q->batch * q->sets * q->groups;
}

/* Divides the work. Gathered inputs and results stay in the L2 cache. If there are fewer groups than threads, channels
 * are divided, too; or, for 1x1 windows whose panels do not divide evenly, groups are made smaller. */
static bool cut(onx_prepare *p, unfold_params *q)
{
    enum { CACHE = 320 << 10, PANELS_MAX = 1 << 12 };
    const uint64_t threads = p->threads;
    q->panels = (q->m + PANEL - 1) / PANEL;
    if (q->panels > PANELS_MAX)
        return false;
    uint64_t most = CACHE / sizeof(float) / (LINE + q->panels * PANEL) / TILE_M * TILE_M;
    most = most < PIXELS_LEAST ? PIXELS_LEAST : most > PIXELS ? PIXELS : most;
    uint64_t pieces = cut_pixels(q, most);
    q->splits = pieces >= 2 * threads ? 1 : threads;
    /* Taps that read only padding are skipped group by group, which also divides the sums differently; and tiles
     * multiply groups with out-of-range elements as floats. In these cases, the groups must not depend on the number of
     * threads, so that the bits do not. */
    if (q->taps == 1 && !TILES && q->splits > 1 && q->panels % threads && pieces < threads &&
        q->group >= threads * PIXELS_LEAST) {
        pieces = cut_pixels(q, (q->group + threads - 1) / threads);
        q->splits = pieces % threads ? threads : 1;
    }
    q->splits = q->splits < q->panels ? q->splits : q->panels;
    const uint64_t each = (q->panels + q->splits - 1) / q->splits;
    q->splits = (q->panels + each - 1) / each;
    q->ldc = each * PANEL + 16;
    p->rows = pieces * q->splits;
    p->grain = 1;
    p->thread_workspace = space_of(q->group) + q->group * (LINE + q->ldc) * sizeof(float);
    return q->groups > 0;
}

static onx_status take_weights(onx_prepare *p, unfold_params *q, const int64_t kernel[DIMS],
                               const int64_t dilation[DIMS], const int64_t pad[DIMS], bool transposed)
{
    struct {
        char what[8];
        uint64_t transposed, panel, sets, c, m;
        int64_t kernel[DIMS], by[DIMS][3]; /* phases follow from these */
    } key = { "unfold", transposed, PANEL * EACH, q->sets, q->c, q->m, { 0 }, { { 0 } } };
    for (int d = 0; d < DIMS; d++) {
        key.kernel[d] = kernel[d];
        key.by[d][0] = transposed ? q->step[d] : 0;
        key.by[d][1] = transposed ? dilation[d] : 0;
        key.by[d][2] = transposed ? pad[d] : 0;
    }
    packing from = { q, transposed };
    onx_packing job = { .input = 1,
                        .key = &key,
                        .key_size = sizeof key,
                        .pieces = q->sets * q->panels,
                        .unaligned = !transposed,
                        .in_order = !transposed,
                        .part = transposed || (q->sets > 1 && q->m % PANEL) ? 0 : PANEL * q->c * q->taps,
                        .make = pack,
                        .user = &from,
                        .may_decline = EACH > 1 };
    const void *packed;
    if (!onxi_mul_u64(q->sets * q->panels * PANEL, q->taps * sizeof(float), &job.size) ||
        !onxi_mul_u64(job.size, q->depth, &job.size))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(p->ops->packed(p, &job, &packed));
    q->w = packed;
    return ONX_OK;
}

/* Chooses the layouts of the input and of the output, and the post-operations. */
static onx_status take_layouts(onx_prepare *p, unfold_params *q, const onx_value *bias, bool transposed)
{
    const onx_value *x = p->inputs[0];
    const bool last = q->sets == 1 && onxi_blocked_of(x) == q->c && q->c > BLOCK;
    q->in_block = last ? q->c : BLOCK;
    q->out_block = last && q->m <= LAST_MOST ? q->m : BLOCK;
    const onx_layout *in = onxi_blocked_layout(p->arena, x, (uint32_t)q->in_block);
    const onx_layout *out = onxi_blocked_layout(p->arena, p->outputs[0], (uint32_t)q->out_block);
    if (!in || !out)
        return ONX_E_UNSUPPORTED;
    if (bias) {
        float *row = onxi_arena_array(p->arena, q->sets * q->m + PANEL, sizeof *row);
        if (!row)
            return ONX_E_MEMORY;
        memcpy(row, bias->data, q->sets * q->m * sizeof *row);
        q->bias = row;
    }
    p->want[0] = in;
    p->want[1] = NULL;
    if (bias)
        p->want[2] = NULL;
    if (transposed)
        post_take_functions(p, &q->posts);
    else
        post_take_image(p, &q->posts, out);
    p->outputs[0]->layout = out;
    return ONX_OK;
}

/* What a row accepts: convolutions or transposed ones; all of them, those with few pixels, or those with many
 * channels. */
typedef struct unfold_row {
    bool transposed, few, many;
} unfold_row;

/* With so few pixels, a convolution is limited by reading its weights, which are read panel after panel as in a matrix
 * product: 1.05 to 1.2 times as fast as oneDNN at 49 pixels with AVX2 and AVX-512, and 0.9 times at 100. */
static bool has_few_pixels(const unfold_params *q)
{
    enum { FEW = 64 };
    return q->sets == 1 && q->m >= PANEL && q->batch * (uint64_t)(q->out[0] * q->out[1] * q->out[2]) <= FEW;
}

/* For such transposed convolutions oneDNN takes 1.05 to 1.7 times as long with AVX2 and AVX-512; from 128 channels to
 * 64 it takes 0.9 times as long, and from 64 to 16 less than half. */
static bool has_many_channels(const unfold_params *q)
{
    enum { MANY = 128 * 128 };
    return q->sets == 1 && q->c * q->m >= MANY;
}

/* Is the level faster for these? */
static bool suits_level(const onx_prepare *p, const unfold_params *q)
{
#if PAIRS
    /* Rounding the gathered inputs pays if they are multiplied with at least a panel and the sums are long enough. Sums
     * of 16 to 48 elements take 1.4 to 3.5 times as long as oneDNN's with floats, of 64 elements as long, of 80 and
     * more 0.5 to 0.7 times as long. */
    enum { LONG = 80 };
    return p->precision == ONX_PRECISION_BF16 && q->m >= PANEL && q->taps * q->c >= LONG;
#elif TILES
    /* Splitting the gathered inputs takes as long as a panel, and an incomplete group of pixels takes as long as a full
     * one. */
    enum { WIDE = 2 * PANEL, LONG = 128 };
    return p->precision == ONX_PRECISION_FULL && q->m >= WIDE && q->taps * q->c >= LONG && q->c >= PARTS_DEPTH &&
           q->group >= PARTS_ROWS;
#else
    (void)p, (void)q;
    return true;
#endif
}

static onx_status prepare(onx_prepare *p)
{
    const unfold_row *row = p->kernel->body;
    const bool transposed = row->transposed;
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    const int64_t sets = onx_prepare_int(p, "group");
    int64_t kernel[DIMS], dilation[DIMS], pad[DIMS];
    onxi_window win;
    if (!p->want || x->rank < 3 || x->rank > 5 || w->rank != x->rank || !w->data || w->dtype != ONX_FLOAT || !y ||
        y->rank != x->rank || !x->count || !y->count || sets < 1 || x->dims[1] % sets || y->dims[1] % sets)
        return ONX_E_UNSUPPORTED;
    unfold_params *q = ONXI_NEW(p->arena, unfold_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (unfold_params){ .batch = (uint64_t)x->dims[0],
                          .sets = (uint64_t)sets,
                          .c = (uint64_t)(x->dims[1] / sets),
                          .m = (uint64_t)(y->dims[1] / sets) };
    q->depth = q->c / EACH;
    const uint64_t rows = (uint64_t)w->dims[0], columns = (uint64_t)w->dims[1];
    if (q->c % BLOCK || q->m % BLOCK || (sets > 1 && q->m < PANEL) || x->dims[0] != y->dims[0] ||
        (transposed ? rows != (uint64_t)x->dims[1] || columns != q->m
                    : rows != (uint64_t)y->dims[1] || columns != q->c) ||
        (b && (!b->data || b->dtype != ONX_FLOAT || b->count != (uint64_t)y->dims[1])))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    if (transposed)
        ONX_TRY(onxi_window_transpose(p, &win));
    /* Taps of a transposed convolution's phase may read outside of the input. They are multiplied as zeros here, while
     * the standard has no such products; with finite weights the result is the same. */
    q->skips = onxi_weights_are_finite(p, 1);
    if (!take_sizes(&win, q, kernel, dilation, pad) || (transposed && !q->skips) || (row->few && !has_few_pixels(q)) ||
        (row->many && !has_many_channels(q)))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(make_phases(p, q, kernel, dilation, pad, transposed));
    if (!cut(p, q) || !suits_level(p, q))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_weights(p, q, kernel, dilation, pad, transposed));
    ONX_TRY(take_layouts(p, q, b, transposed));
    p->params = q;
    return ONX_OK;
}

static const unfold_row any = { 0 }, transposed = { .transposed = true };
#if ONXI_LEVEL < 5
static const unfold_row few = { .few = true }, many = { .transposed = true, .many = true };
#endif

#define ROW(name, preference_, body_)                                                                                  \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .packs = 1 << 1,     \
        .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = &body_,                    \
        .prepare = prepare, .run = run                                                                                 \
    }
#if ONXI_LEVEL >= 5
/* Tried before all other float rows except winograd.c. */
const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_unfold)[] = { ROW("Conv", 12, any), ROW("ConvTranspose", 10, transposed), { 0 } };
#else
/* Tried before oneDNN for few pixels and for transposed convolutions with many channels, otherwise after it. */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_unfold)[] = { ROW("Conv", 11, few),
                                                              ROW("Conv", 9, any),
                                                              ROW("ConvTranspose", 11, many),
                                                              ROW("ConvTranspose", 9, transposed),
                                                              { 0 } };
#endif
