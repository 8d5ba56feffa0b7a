/* pool_types.c - MaxPool of doubles and 8-bit integers, on planes and with channels last: the lines of a window are
 * reduced first, then the pixels of the reduced line, for all positions along it at once. */
#include "kernel/core/blocked.h"
#include "kernel/simd/window.h"

#if !ONXI_PLATFORM_ROOMY /* builds for browsers have the plain rows */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_pool_types)[] = { { 0 } };
#else

#include <math.h>

enum { DIMS = WINDOW_DIMS, LINE_MOST = 1 << 22 /* bytes */ };

struct pool_loops;

typedef struct pool_params {
    simd_window win;
    const struct pool_loops *loops;
    bool where;                /* it outputs the indices of the maxima, too */
    uint64_t block;            /* channels that are contiguous for a pixel; sets of them follow each other */
    int64_t inside;            /* windows from column 0 up to this one are inside along a line */
    uint64_t span, line;       /* elements of a reduced line from the first to the last position; with its padding */
    uint64_t x_image, y_image; /* elements of one set of channels of an image */
    window_units units;
} pool_params;

/* The place of the windows of a line of the result. */
typedef struct pool_line {
    const void *x;                        /* the image */
    int64_t base;                         /* the index of its first element */
    int64_t origin[2], first[2], last[2]; /* across planes and lines: where windows begin, and their taps inside */
    onxi_pace *pace;
} pool_line;

typedef struct pool_loops {
    uint64_t width;
    void (*fill)(void *y, uint64_t n); /* with the lowest number */
    /* y[i] = the greatest of `count` x[k][i]. Some elements may be computed twice, from y if that is one of them. */
    void (*most)(const char *const *x, uint64_t count, uint64_t n, void *y);
    void (*pick)(const void *x, uint64_t step, uint64_t n, void *y); /* y[i] = x[i * step] */
    /* For a line of maxima: the first tap of each window that is its maximum. */
    void (*find)(const pool_params *q, const pool_line *l, const void *y, int64_t *index);
} pool_loops;

/* ---- loops ---- */

static inline int64_t row_of(const pool_params *q, const pool_line *l, int64_t k, int64_t j)
{
    return (l->origin[0] + k * q->win.dilation[0]) * q->win.in[1] + l->origin[1] + j * q->win.dilation[1];
}

/* y = the greatest of several x, for all elements that vectors of this type hold; the last vector may repeat elements
 * of the one before, which changes no maximum. */
#define JOIN(vector, mask, at, above)                                                                                  \
    do {                                                                                                               \
        vector a, b;                                                                                                   \
        memcpy(&a, x[0] + (at) * sizeof *y, sizeof a);                                                                 \
        for (uint64_t k = 1; k < count; k++) {                                                                         \
            memcpy(&b, x[k] + (at) * sizeof *y, sizeof b);                                                             \
            const mask take = above;                                                                                   \
            a = (vector)(((mask)b & take) | ((mask)a & ~take));                                                        \
        }                                                                                                              \
        memcpy(y + (at), &a, sizeof a);                                                                                \
    } while (0)
#define JOIN_ALL(vector, mask, above)                                                                                  \
    for (; i + sizeof(vector) / sizeof *y <= n; i += sizeof(vector) / sizeof *y)                                       \
        JOIN(vector, mask, i, above);                                                                                  \
    if (i < n && n >= sizeof(vector) / sizeof *y) {                                                                    \
        JOIN(vector, mask, n - sizeof(vector) / sizeof *y, above);                                                     \
        i = n;                                                                                                         \
    }

/* above: is b to replace a? The first of several NaN stays. whole: an integer of that size. */
#define LOOPS(name, T, whole, lowest, above)                                                                           \
    typedef T wide_##name __attribute__((vector_size(ONXI_LANES * 4)));                                                \
    typedef whole wide_mask_##name __attribute__((vector_size(ONXI_LANES * 4)));                                       \
    typedef T part_##name __attribute__((vector_size(16)));                                                            \
    typedef whole part_mask_##name __attribute__((vector_size(16)));                                                   \
    static void fill_##name(void *py, uint64_t n)                                                                      \
    {                                                                                                                  \
        T *y = py;                                                                                                     \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i] = lowest;                                                                                             \
    }                                                                                                                  \
    static void most_##name(const char *const *x, uint64_t count, uint64_t n, void *py)                                \
    {                                                                                                                  \
        T *y = py;                                                                                                     \
        uint64_t i = 0;                                                                                                \
        JOIN_ALL(wide_##name, wide_mask_##name, above)                                                                 \
        JOIN_ALL(part_##name, part_mask_##name, above)                                                                 \
        for (; i < n; i++) {                                                                                           \
            T a = ((const T *)(const void *)x[0])[i];                                                                  \
            for (uint64_t k = 1; k < count; k++) {                                                                     \
                const T b = ((const T *)(const void *)x[k])[i];                                                        \
                a = (above) ? b : a;                                                                                   \
            }                                                                                                          \
            y[i] = a;                                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void pick_##name(const void *px, uint64_t step, uint64_t n, void *py)                                       \
    {                                                                                                                  \
        const T *restrict x = px;                                                                                      \
        T *restrict y = py;                                                                                            \
        for (uint64_t i = 0; step == 2 && i < n; i++) /* by a known step whole vectors are shuffled */                 \
            y[i] = x[2 * i];                                                                                           \
        for (uint64_t i = 0; step != 2 && i < n; i++)                                                                  \
            y[i] = x[i * step];                                                                                        \
    }                                                                                                                  \
    static inline int64_t find_one_##name(const pool_params *q, const pool_line *l, const T *x, int64_t column, T m)   \
    {                                                                                                                  \
        int64_t first = 0, last = q->win.kernel[2];                                                                    \
        if (column < 0 || column >= q->inside)                                                                         \
            window_taps(&q->win, 2, column, &first, &last);                                                            \
        for (int64_t k = l->first[0]; k < l->last[0]; k++)                                                             \
            for (int64_t j = l->first[1]; j < l->last[1] && !onxi_pace_stops(l->pace, (uint64_t)(last - first));       \
                 j++) {                                                                                                \
                const int64_t row = row_of(q, l, k, j) * q->win.in[2] + column;                                        \
                for (int64_t i = first; i < last; i++) {                                                               \
                    const T v = x[row + i * q->win.dilation[2]];                                                       \
                    if (v == m || (v != v && m != m))                                                                  \
                        return row + i * q->win.dilation[2];                                                           \
                }                                                                                                      \
            }                                                                                                          \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static void find_##name(const pool_params *q, const pool_line *l, const void *py, int64_t *index)                  \
    {                                                                                                                  \
        const T *x = l->x, *y = py;                                                                                    \
        for (int64_t o = 0; o < q->win.out[2]; o++)                                                                    \
            index[o] = l->base + find_one_##name(q, l, x, o * q->win.stride[2] - q->win.pad[2], y[o]);                 \
    }
LOOPS(f64, double, int64_t, -(double)INFINITY, (b > a) | ((b != b) & (a == a)))
LOOPS(i8, int8_t, int8_t, INT8_MIN, b > a)
LOOPS(u8, uint8_t, int8_t, 0, b > a)
#define OF(name, T)                                                                                                    \
    {                                                                                                                  \
        sizeof(T), fill_##name, most_##name, pick_##name, find_##name                                                  \
    }
static const pool_loops f64_loops = OF(f64, double), i8_loops = OF(i8, int8_t), u8_loops = OF(u8, uint8_t);

static const pool_loops *loops_of(int dtype)
{
    return dtype == ONX_DOUBLE ? &f64_loops : dtype == ONX_INT8 ? &i8_loops : dtype == ONX_UINT8 ? &u8_loops : NULL;
}

/* ---- lines ---- */

/* What is reduced together; the result of some is one of the next ones. */
typedef struct pool_terms {
    const char *x[16];
    uint64_t count;
    onxi_pace *pace;
} pool_terms;

static inline void add_term(const pool_loops *loops, pool_terms *t, const char *x, uint64_t n, char *y)
{
    if (t->count == sizeof t->x / sizeof *t->x) {
        if (onxi_pace_stops(t->pace, n))
            return;
        loops->most(t->x, t->count, n, y);
        t->x[0] = y;
        t->count = 1;
    }
    t->x[t->count++] = x;
}

/* Reduces the lines of windows, element by element. */
static void go_down(const pool_params *q, const pool_line *l, char *line)
{
    const uint64_t n = (uint64_t)q->win.in[2] * q->block, size = n * q->loops->width;
    pool_terms t = { .count = 0, .pace = l->pace };
    for (int64_t k = l->first[0]; k < l->last[0]; k++)
        for (int64_t j = l->first[1]; j < l->last[1]; j++)
            add_term(q->loops, &t, (const char *)l->x + (uint64_t)row_of(q, l, k, j) * size, n, line);
    if (t.count)
        q->loops->most(t.x, t.count, n, line);
    else
        q->loops->fill(line, n);
}

/* Copies pixels of `size` bytes: few are copied with what follows them, which is overwritten later. */
static void pick_pixels(const char *x, uint64_t step, uint64_t n, uint64_t size, char *y)
{
    enum { TOGETHER = 16 };
    uint64_t i = 0;
    for (; size <= TOGETHER && (n - i) * size >= TOGETHER; i++)
        memcpy(y + i * size, x + i * step * size, TOGETHER);
    for (; i < n; i++)
        memcpy(y + i * size, x + i * step * size, (size_t)size);
}

static void go_across(const pool_params *q, const char *line, char *spare, char *y, onxi_pace *pace)
{
    const pool_loops *loops = q->loops;
    const uint64_t step = (uint64_t)q->win.stride[2], n = (uint64_t)q->win.out[2], taps = (uint64_t)q->win.kernel[2];
    const uint64_t by = (uint64_t)q->win.dilation[2] * q->block * loops->width;
    char *to = step == 1 ? y : spare;
    pool_terms t = { .count = 0, .pace = pace };
    for (uint64_t k = 0; k < taps; k++)
        add_term(loops, &t, line + k * by, q->span, to);
    if (step == 1 || taps > 1)
        loops->most(t.x, t.count, q->span, to);
    if (step == 1)
        return;
    const char *from = taps > 1 ? to : line;
    if (q->block == 1)
        loops->pick(from, step, n, y);
    else
        pick_pixels(from, step, n, q->block * loops->width, y);
}

static void line_of(const pool_params *q, const onx_work *work, const window_unit *u, char *line, onxi_pace *pace)
{
    const uint64_t set = u->image * q->units.sets + u->set, width = q->loops->width;
    const uint64_t columns = (uint64_t)q->win.out[2], at = u->line * columns * q->block;
    const int64_t place[] = { (int64_t)u->line / q->win.out[1], (int64_t)u->line % q->win.out[1] };
    pool_line l = { .x = (const char *)work->inputs[0]->data + set * q->x_image * width,
                    .base = (int64_t)(set * q->x_image),
                    .pace = pace };
    char *y = (char *)work->outputs[0]->data + (set * q->y_image + at) * width;
    for (int d = 0; d < 2; d++) {
        l.origin[d] = place[d] * q->win.stride[d] - q->win.pad[d];
        window_taps(&q->win, d, l.origin[d], &l.first[d], &l.last[d]);
    }
    go_down(q, &l, line + (uint64_t)q->win.pad[2] * q->block * width);
    go_across(q, line, line + q->line * width, y, pace);
    if (q->where)
        q->loops->find(q, &l, y, (int64_t *)work->outputs[1]->data + set * q->y_image + at);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const pool_params *q = work->params;
    onxi_pace pace = { .work = work };
    q->loops->fill(work->thread_workspace, q->line); /* the padding stays */
    for (uint64_t i = first; i < last && !onxi_pace_stops(&pace, q->span); i++) {
        window_unit u;
        if (window_unit_at(&q->units, i, &u))
            line_of(q, work, &u, work->thread_workspace, &pace);
    }
    return ONX_OK;
}

/* ---- preparing ---- */

/* The result has the layout of the input, if that has channels next to each other. */
static onx_status take_layouts(onx_prepare *p, pool_params *q)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0];
    const uint32_t block = q->where ? 0 : onxi_blocked_of(x);
    q->block = block ? block : 1;
    if (!block && p->want)
        p->want[0] = NULL;
    if (q->block == 1 || onxi_product(y->dims, 2, y->rank) == 1)
        return ONX_OK;
    return (y->layout = onxi_blocked_layout(p->arena, y, block)) ? ONX_OK : ONX_E_UNSUPPORTED;
}

static onx_status prepare(onx_prepare *p)
{
    enum { SLACK = 64 };
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    onxi_window w;
    pool_params *q = ONXI_NEW(p->arena, pool_params);
    if (!q)
        return ONX_E_MEMORY;
    q->where = p->output_count == 2 && p->outputs[1];
    if (x->rank < 3 || x->rank > 5 || !x->count || !y || !y->count || !(q->loops = loops_of(x->dtype)) ||
        (q->where && onx_prepare_is_set(p, "storage_order")))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, NULL, &w));
    if (!window_take(&w, &q->win))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(take_layouts(p, q));
    const simd_window *win = &q->win;
    const uint64_t reach = (uint64_t)((win->kernel[2] - 1) * win->dilation[2]);
    const uint64_t span = (uint64_t)((win->out[2] - 1) * win->stride[2] + 1),
                   least = (uint64_t)(win->pad[2] + win->in[2]);
    const uint64_t pixels = span + reach > least ? span + reach : least;
    if (!onxi_mul_u64(pixels, q->block, &q->line) || q->line > LINE_MOST / q->loops->width)
        return ONX_E_UNSUPPORTED;
    q->span = span * q->block;
    q->inside = win->in[2] - (int64_t)reach;
    const uint64_t lines = (uint64_t)(win->out[0] * win->out[1]), sets = (uint64_t)x->dims[1] / q->block;
    const uint64_t images = (uint64_t)x->dims[0] * sets;
    q->x_image = x->count / images;
    q->y_image = y->count / images;
    q->units = window_units_of(lines, sets, p->threads);
    p->thread_workspace = (q->line + q->span) * q->loops->width + SLACK;
    p->params = q;
    p->rows = (uint64_t)x->dims[0] * window_units_count(&q->units);
    p->grain = onxi_worth_a_thread((x->count + y->count) / (images * lines) * ONXI_COST_ELEMENT / 4 + 1);
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_pool_types)[] = {
    { .op = "MaxPool",
      .since = 1,
      .dtypes = ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8),
      .preference = 6,
      .isa = ONXI_LEVEL,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = ONXI_VARIANT,
      .prepare = prepare,
      .run = run },
    { 0 }
};
#endif
