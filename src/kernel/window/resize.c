/* resize.c - Resize and Upsample with the tables of kernel/window/resize_taps.c: copies the nearest element, or
 * interpolates one axis after the other, in float for floats of up to 32 bits, else in double. */
#include "kernel/core/resize.h"

#include "kernel/core/blocked.h"
#include "kernel/core/pace.h"

typedef struct resize_params {
    bool known;
    /* Images whose channels lie next to each other are resized as row-major tensors of one more dim, which these are,
     * and a row of work is one line of the output instead of a whole image. */
    bool laid_out;
    int64_t dims[2][ONX_RANK_MAX]; /* of the input and of the output */
    onxi_taps_list taps;
    uint64_t rows, grain, space; /* space: bytes of a thread's workspace */
    const onx_prepare *kept;     /* for tables that each run has to make */
    const onxi_resize_loops *loops;
} resize_params;

/* ---- nearest ---- */

/* A row of work is a line along the last resized axis. Elements of the dims behind it are moved together. */
static uint32_t last_axis(const onxi_taps_list *list)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < list->count; i++)
        last = list->axis[i].axis > last ? list->axis[i].axis : last;
    return last;
}

static const onxi_taps *taps_of(const onxi_taps_list *list, uint32_t axis)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->axis[i].axis == axis)
            return &list->axis[i];
    return NULL;
}

static void fill(char *to, const char *value, uint64_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * size, value, size);
}

/* Positions outside read element 0 first, so that the loop has no branch. */
#define TAKE(T)                                                                                                        \
    for (int64_t o = 0; o < t->out; o++) {                                                                             \
        const T inside = ((const T *)(const void *)from)[t->start[o]], outside = *(const T *)(const void *)value;      \
        ((T *)(void *)to)[o] = t->count[o] ? inside : outside;                                                         \
    }

/* Resizes a line along the last axis. */
static void take_run(const onxi_taps *t, const char *from, char *to, uint64_t bytes, uint64_t size, const char *value)
{
    switch (bytes) {
    case 1:
        TAKE(uint8_t);
        return;
    case 2:
        TAKE(uint16_t);
        return;
    case 4:
        TAKE(uint32_t);
        return;
    case 8:
        TAKE(uint64_t);
        return;
    default:
        for (int64_t o = 0; o < t->out; o++, to += bytes)
            if (t->count[o])
                memcpy(to, from + (uint64_t)t->start[o] * bytes, bytes);
            else
                fill(to, value, size, bytes / size);
    }
}

static void take_nearest(const onxi_taps_list *list, const onx_value *x, onx_value *y, uint64_t first, uint64_t last,
                         onxi_pace *pace)
{
    uint32_t run = last_axis(list);
    const onxi_taps *along = taps_of(list, run);
    uint64_t size = onxi_element_size(x->dtype), bytes = onxi_product(x->dims, run + 1, x->rank) * size;
    uint64_t value[2] = { 0 };
    int64_t stride[ONX_RANK_MAX];
    onxi_strides(x, stride);
    if (x->dtype != ONX_STRING && onx_dtype_class_of(x->dtype) != ONX_CLASS_COMPLEX)
        onx_convert((onx_dtype)x->dtype, value, ONX_DOUBLE, &list->extrapolation, 1, true);
    const uint64_t line = (uint64_t)y->dims[run] * bytes;
    int64_t before = -1; /* source of the previous line, for reuse */
    for (uint64_t row = first; row < last && !onxi_pace_stops(pace, line / 2 + 16); row++) {
        uint64_t rest = row;
        int64_t from = 0;
        bool outside = false;
        for (uint32_t d = run; d-- > 0;) {
            const onxi_taps *t = taps_of(list, d);
            int64_t o = (int64_t)(rest % (uint64_t)y->dims[d]);
            rest /= (uint64_t)y->dims[d];
            outside |= t && !t->count[o];
            from += (t ? t->start[o] : o) * stride[d];
        }
        char *to = (char *)y->data + row * line;
        const bool again = !outside && from == before;
        before = outside ? -1 : from;
        if (again)
            memcpy(to, to - line, line);
        else if (outside)
            fill(to, (const char *)value, size, line / size);
        else
            take_run(along, (const char *)x->data + (uint64_t)from * size, to, bytes, size, (const char *)value);
    }
}

/* ---- interpolation ---- */

/* Resizing one axis of [outer, in, inner]. */
typedef struct pass {
    const onxi_taps *taps;
    uint64_t outer, inner;
    double extrapolation;
    onxi_pace *pace;
} pass;

/* A line of the output: the weighted sum of `count` lines of the input, in the order of the taps. */
#define PASS(T)                                                                                                        \
    static void line_##T(const pass *p, const T *from, const double *w, int64_t count, T *y)                           \
    {                                                                                                                  \
        const uint64_t inner = p->inner;                                                                               \
        for (uint64_t i = 0; i < inner; i++)                                                                           \
            y[i] = count ? (T)w[0] * from[i] : (T)p->extrapolation;                                                    \
        for (int64_t n = 1; n < count && !onxi_pace_stops(p->pace, inner); n++) {                                      \
            from += inner;                                                                                             \
            for (uint64_t i = 0; i < inner; i++)                                                                       \
                y[i] += (T)w[n] * from[i];                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    /* For lines of one element. */                                                                                    \
    static void points_##T(const pass *p, const T *x, T *y)                                                            \
    {                                                                                                                  \
        const onxi_taps *t = p->taps;                                                                                  \
        const double *w = t->weight;                                                                                   \
        const uint64_t cost = 2 * (uint64_t)t->most;                                                                   \
        const int64_t turns = (int64_t)onxi_pace_turns(cost);                                                          \
        for (int64_t k = 0, end; k < t->out;) {                                                                        \
            end = t->out - k < turns ? t->out : k + turns;                                                             \
            if (onxi_pace_stops(p->pace, (uint64_t)(end - k) * cost))                                                  \
                return;                                                                                                \
            for (; k < end; k++, w += t->most) {                                                                       \
                const T *from = x + t->start[k];                                                                       \
                T sum = t->count[k] ? (T)w[0] * from[0] : (T)p->extrapolation;                                         \
                for (int64_t n = 1; n < t->count[k]; n++)                                                              \
                    sum += (T)w[n] * from[n];                                                                          \
                y[k] = sum;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void pass_##T(const pass *p, const T *x, T *y)                                                              \
    {                                                                                                                  \
        const onxi_taps *t = p->taps;                                                                                  \
        for (uint64_t o = 0; o < p->outer; o++, x += (uint64_t)t->in * p->inner, y += (uint64_t)t->out * p->inner) {   \
            if (p->inner == 1)                                                                                         \
                points_##T(p, x, y);                                                                                   \
            for (int64_t k = 0; p->inner > 1 && k < t->out && !onxi_pace_stops(p->pace, p->inner + 8); k++)            \
                line_##T(p, x + (uint64_t)t->start[k] * p->inner, t->weight + k * t->most, t->count[k],                \
                         y + (uint64_t)k * p->inner);                                                                  \
        }                                                                                                              \
    }
PASS(float)
PASS(double)

static void line_of_two(const float *a, float wa, const float *b, float wb, float *y, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        y[i] = wa * a[i] + wb * b[i];
}

static void points_of_two(const onxi_taps_pair *pair, const float *x, float *y, uint64_t count)
{
    const float *wa = pair->weight[0], *wb = pair->weight[1];
    for (uint64_t i = 0; i < count; i++)
        y[i] = wa[i] * x[pair->at[0][i]] + wb[i] * x[pair->at[1][i]];
}

static const onxi_resize_loops plain_loops = { .line = line_of_two, .points = points_of_two };

/* The same for outputs with two taps. */
static void pass_of_two(const pass *p, const onxi_resize_loops *loops, const float *x, float *y)
{
    const onxi_taps *t = p->taps;
    const onxi_taps_pair *pair = &t->pair;
    const uint64_t cost = p->inner / 4 + 8;
    const int64_t turns = (int64_t)onxi_pace_turns(cost);
    for (uint64_t o = 0; o < p->outer; o++, x += (uint64_t)t->in * p->inner) {
        for (int64_t k = 0, end; p->inner > 1 && k < t->out;) {
            end = t->out - k < turns ? t->out : k + turns;
            if (onxi_pace_stops(p->pace, (uint64_t)(end - k) * cost))
                return;
            for (; k < end; k++, y += p->inner)
                loops->line(x + (uint64_t)pair->at[0][k] * p->inner, pair->weight[0][k],
                            x + (uint64_t)pair->at[1][k] * p->inner, pair->weight[1][k], y, p->inner);
        }
        if (onxi_pace_stops(p->pace, (uint64_t)t->out))
            return;
        if (p->inner > 1)
            continue;
        loops->points(pair, x, y, (uint64_t)t->out);
        y += t->out;
    }
}

static bool in_float(int dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16 || dtype == ONX_COMPLEX64;
}

/* A complex number is processed as two contiguous real numbers. */
static int part_of(int dtype)
{
    return dtype == ONX_COMPLEX64 ? ONX_FLOAT : dtype == ONX_COMPLEX128 ? ONX_DOUBLE : dtype;
}

/* The first resized axis. The dims before it are independent. */
static uint32_t first_axis(const onxi_taps_list *list, uint32_t rank)
{
    uint32_t first = rank;
    for (uint32_t i = 0; i < list->count; i++)
        first = list->axis[i].axis < first ? list->axis[i].axis : first;
    return first;
}

/* Real numbers per row of the input, and per largest intermediate row. With `lines`, these are of one line of the
 * output along the first resized axis. */
static uint64_t row_parts(const onxi_taps_list *list, const onx_value *x, bool lines, uint64_t *largest)
{
    int64_t dims[ONX_RANK_MAX];
    uint32_t first = first_axis(list, x->rank) + lines;
    uint64_t parts = onx_dtype_class_of(x->dtype) == ONX_CLASS_COMPLEX ? 2 : 1, start;
    onxi_copy_dims(dims, x->dims, x->rank);
    *largest = start = onxi_product(dims, first, x->rank) * parts;
    for (uint32_t i = lines; i < list->count; i++) {
        dims[list->axis[i].axis] = list->axis[i].out;
        uint64_t now = onxi_product(dims, first, x->rank) * parts;
        *largest = now > *largest ? now : *largest;
    }
    return start;
}

static void widen_part(const resize_params *q, int computed, int stored, const char *x, uint64_t count, char *out)
{
#if ONXI_PLATFORM_ROOMY
    if (q->loops->widen) {
        q->loops->widen(stored, x, count, out);
        return;
    }
#else
    (void)q;
#endif
    onx_convert((onx_dtype)computed, out, (onx_dtype)stored, x, count, true);
}

/* Integers are rounded and saturated. */
static void narrow_part(const resize_params *q, int computed, int stored, const char *x, uint64_t count, char *out)
{
#if ONXI_PLATFORM_ROOMY
    if (q->loops->narrow) {
        q->loops->narrow(stored, x, count, out);
        return;
    }
#else
    (void)q;
#endif
    if (onx_dtype_class_of(stored) != ONX_CLASS_FLOATING)
        onxi_round_to(stored, out, (const double *)(const void *)x, count);
    else
        onx_convert((onx_dtype)stored, out, (onx_dtype)computed, x, count, true);
}

/* Converts elements of a type to those that are computed with, or back. */
static void convert(const resize_params *q, bool widens, int computed, int stored, const char *from, uint64_t count,
                    char *to, onxi_pace *pace)
{
    enum { PART = 1 << 16 };
    const uint64_t wide = onx_dtype_bits((onx_dtype)computed) / 8, size = onx_dtype_bits((onx_dtype)stored) / 8;
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < PART ? count - at : PART;
        if (onxi_pace_stops(pace, 4 * n))
            return;
        if (widens)
            widen_part(q, computed, stored, from + at * size, n, to + at * wide);
        else
            narrow_part(q, computed, stored, from + at * wide, n, to + at * size);
    }
}

/* Resizes a part of x, whose dims from `lead` on are `dims`, along the axes from number `i` on. The result is in
 * `end`; intermediate results alternate between the buffers, starting with number i % 2. */
static void weigh_axes(const resize_params *q, uint32_t i, uint32_t lead, int64_t *dims, uint32_t rank, uint64_t parts,
                       bool single, const char *now, char *const *buffers, char *end, onxi_pace *pace)
{
    const onxi_taps_list *list = &q->taps;
    for (; i < list->count; i++) {
        const onxi_taps *t = &list->axis[i];
        const pass p = { t, onxi_product(dims, lead, t->axis), onxi_product(dims, t->axis + 1, rank) * parts,
                         list->extrapolation, pace };
        char *to = i + 1 == list->count ? end : buffers[i % 2];
        if (single && t->pair.at[0])
            pass_of_two(&p, q->loops, (const float *)(const void *)now, (float *)(void *)to);
        else if (single)
            pass_float(&p, (const float *)(const void *)now, (float *)(void *)to);
        else
            pass_double(&p, (const double *)(const void *)now, (double *)(void *)to);
        dims[t->axis] = t->out;
        now = to;
    }
}

static void weigh_rows(const resize_params *q, const onx_value *x, onx_value *y, void *space, uint64_t first,
                       uint64_t last, onxi_pace *pace)
{
    const onxi_taps_list *list = &q->taps;
    uint32_t lead = first_axis(list, x->rank);
    uint64_t parts = onx_dtype_class_of(x->dtype) == ONX_CLASS_COMPLEX ? 2 : 1, largest;
    uint64_t in = row_parts(list, x, false, &largest), out = onxi_product(y->dims, lead, y->rank) * parts;
    bool single = in_float(x->dtype);
    int stored = part_of(x->dtype), computed = single ? ONX_FLOAT : ONX_DOUBLE;
    uint64_t width = single ? sizeof(float) : sizeof(double), size = onx_dtype_bits(stored) / 8;
    char *const buffers[2] = { space, (char *)space + largest * width };
    for (uint64_t row = first; row < last && !onxi_pace_stops(pace, 64); row++) {
        int64_t dims[ONX_RANK_MAX];
        const char *now = (const char *)x->data + row * in * size;
        char *end = (char *)y->data + row * out * size, *to = end;
        onxi_copy_dims(dims, x->dims, x->rank);
        if (stored != computed) {
            convert(q, true, computed, stored, now, in, buffers[1], pace);
            now = buffers[1];
            to = buffers[(list->count - 1) % 2];
        }
        weigh_axes(q, 0, lead, dims, x->rank, parts, single, now, buffers, to, pace);
        if (stored != computed)
            convert(q, false, computed, stored, to, out, end, pace);
    }
}

/* Makes lines along the first resized axis, of floats: each from lines of the input, which then are resized along the
 * other axes while they are in the cache. */
static void weigh_lines(const resize_params *q, const onx_value *x, onx_value *y, void *space, uint64_t first,
                        uint64_t last, onxi_pace *pace)
{
    const onxi_taps_list *list = &q->taps;
    const onxi_taps *t = &list->axis[0];
    const uint32_t lead = t->axis + 1;
    const uint64_t inner = onxi_product(x->dims, lead, x->rank), out = onxi_product(y->dims, lead, y->rank);
    const pass p = { t, 1, inner, list->extrapolation, pace };
    uint64_t largest;
    row_parts(list, x, true, &largest);
    char *const buffers[2] = { space, (char *)space + largest * sizeof(float) };
    for (uint64_t row = first; row < last && !onxi_pace_stops(pace, inner / 4 + 8); row++) {
        const uint64_t k = row % (uint64_t)t->out;
        const float *from = (const float *)x->data + row / (uint64_t)t->out * (uint64_t)t->in * inner;
        char *const end = (char *)((float *)y->data + row * out);
        float *to = (float *)(void *)(list->count == 1 ? end : buffers[0]);
        int64_t dims[ONX_RANK_MAX];
        if (t->pair.at[0])
            q->loops->line(from + (uint64_t)t->pair.at[0][k] * inner, t->pair.weight[0][k],
                           from + (uint64_t)t->pair.at[1][k] * inner, t->pair.weight[1][k], to, inner);
        else
            line_float(&p, from + (uint64_t)t->start[k] * inner, t->weight + k * (uint64_t)t->most, t->count[k], to);
        onxi_copy_dims(dims, x->dims, x->rank);
        weigh_axes(q, 1, lead, dims, x->rank, 1, true, (const char *)to, buffers, end, pace);
    }
}

/* ---- the node ---- */

static void size_work(const onx_value *x, const onx_value *y, resize_params *q)
{
    const onxi_taps_list *list = &q->taps;
    uint64_t largest;
    if (!list->count || list->nearest) {
        uint32_t run = list->count ? last_axis(list) : 0;
        q->rows = list->count ? onxi_product(y->dims, 0, run) : 1;
        q->space = 0;
        q->grain = ONXI_MOVE_GRAIN / (y->count / q->rows) + 1;
        return;
    }
    row_parts(list, x, q->laid_out, &largest);
    q->rows = onxi_product(y->dims, 0, first_axis(list, x->rank) + q->laid_out);
    q->space = 2 * largest * (in_float(x->dtype) ? sizeof(float) : sizeof(double));
    q->grain = ONXI_MOVE_GRAIN / (largest + 1) + 1;
}

/* An image as a row-major tensor in the order that its elements have in memory. */
static onx_value view_of(const resize_params *q, const onx_value *image, uint32_t which)
{
    onx_value v = *image;
    if (q->laid_out) {
        v.rank++;
        v.dims = (int64_t *)(uintptr_t)(const void *)q->dims[which];
    }
    return v;
}

/* Lines along the first resized axis are made first, so that axis comes first. False: it grows while another one
 * shrinks, which then has to be resized before, or the work and the intermediate results would exceed input and
 * output. */
static bool put_first(onxi_taps_list *list)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < list->count; i++)
        first = list->axis[i].axis < list->axis[first].axis ? i : first;
    const onxi_taps t = list->axis[first];
    for (uint32_t i = 0; i < list->count && !list->nearest; i++)
        if (t.out > t.in && list->axis[i].out < list->axis[i].in)
            return false;
    memmove(&list->axis[1], &list->axis[0], first * sizeof t);
    list->axis[0] = t;
    return true;
}

/* For an image whose channels lie next to each other: the result gets the same kind of layout. If it has to be
 * converted, the smaller one of the two images should be. */
static onx_status lay_out(onx_prepare *p, resize_params *q)
{
    const onx_value *x = p->inputs[0];
    onx_value *y = p->outputs[0], view;
    onxi_taps_list *list = &q->taps;
    const uint32_t block = onxi_blocked_of(x), rank = x->rank;
    const onx_layout *layout = p->want && block ? onxi_blocked_layout(p->arena, y, block) : NULL;
    if (!layout || rank == ONX_RANK_MAX || (p->row_major_next && y->count > x->count) || !list->count ||
        first_axis(list, rank) < 2 || (!list->nearest && x->dtype != ONX_FLOAT) ||
        !onxi_blocked_view(x, rank, block, q->dims[0], &view) || !put_first(list))
        return ONX_E_UNSUPPORTED;
    onxi_copy_dims(q->dims[1], q->dims[0], rank + 1);
    for (uint32_t i = 0; i < list->count; i++)
        q->dims[1][list->axis[i].axis] = list->axis[i].out;
    q->laid_out = true;
    onxi_image_layouts(p, x->layout, layout);
    return ONX_OK;
}

onx_status onxi_resize_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    resize_params *q = ONXI_NEW(p->arena, resize_params);
    if (!q)
        return ONX_E_MEMORY;
    p->params = q;
    q->loops = p->kernel->body ? p->kernel->body : &plain_loops;
    if (!onxi_element_size(x->dtype) || y->rank != x->rank || y->dtype != x->dtype)
        return ONX_E_UNSUPPORTED;
    if (x->dtype == ONX_STRING && !onx_str_is(onx_prepare_text(p, "mode"), "nearest"))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "strings cannot be interpolated");
    if (!y->count) {
        p->rows = 0;
        return ONX_OK;
    }
    q->known = onxi_taps_known(p);
    const bool laid_out = (p->kernel->flags & ONX_KERNEL_LAYOUTS) != 0;
    if (!q->known && laid_out)
        return ONX_E_UNSUPPORTED;
    if (!q->known)
        return (q->kept = onxi_prepare_keep(p)) ? ONX_OK : ONX_E_MEMORY;
    const onxi_move_call call = { .p = p, .inputs = p->inputs, .output = y };
    ONX_TRY(onxi_taps_make(&call, p->arena, &q->taps));
    if (laid_out)
        ONX_TRY(lay_out(p, q));
    const onx_value in = view_of(q, x, 0), out = view_of(q, y, 1);
    size_work(&in, &out, q);
    p->rows = q->rows;
    p->grain = q->grain;
    p->thread_workspace = q->space;
    return ONX_OK;
}

onx_status onxi_resize_run(onx_work *work, uint64_t first, uint64_t last)
{
    const resize_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    void *space = work->thread_workspace;
    resize_params own = { .loops = q->loops };
    if (!q->known) { /* one row does all the work */
        const onx_prepare again = onxi_prepare_again(q->kept, work);
        const onxi_move_call call = { .p = &again, .inputs = work->inputs, .output = y };
        ONX_TRY(onxi_taps_make(&call, work->text, &own.taps));
        size_work(x, y, &own);
        space = own.space ? onxi_arena_array(work->text, own.space, 1) : NULL;
        if (own.space && !space)
            return onx_work_fail(work, ONX_E_MEMORY, "there is no memory for the intermediate result");
        q = &own;
        first = 0;
        last = own.rows;
    }
    const onx_value in = view_of(q, x, 0);
    onx_value out = view_of(q, y, 1);
    onxi_pace pace = { .work = work };
    if (!q->taps.count)
        onxi_pace_copy(work, y->data, x->data, x->size);
    else if (q->taps.nearest)
        take_nearest(&q->taps, &in, &out, first, last, &pace);
    else if (q->laid_out)
        weigh_lines(q, &in, &out, space, first, last, &pace);
    else
        weigh_rows(q, &in, &out, space, first, last, &pace);
    return ONX_OK;
}

#define LAID_OUT(name, version)                                                                                        \
    {                                                                                                                  \
        .op = name, .since = version, .preference = 5, .flags = ONX_KERNEL_LAYOUTS, .variant = "blocked",              \
        .prepare = onxi_resize_prepare, .run = onxi_resize_run                                                         \
    }

const onx_kernel onxi_kernels_resize[] = {
    LAID_OUT("Resize", 10),
    LAID_OUT("Upsample", 1),
    { .op = "Resize", .since = 10, .prepare = onxi_resize_prepare, .run = onxi_resize_run },
    { .op = "Upsample", .since = 1, .prepare = onxi_resize_prepare, .run = onxi_resize_run },
    { 0 }
};
