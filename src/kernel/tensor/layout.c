/* layout.c - operators that move elements or give them another shape. */
#include "kernel/core/blocked.h"
#include "kernel/core/depth.h"
#include "kernel/core/move.h"
#include "kernel/core/pace.h"

/* ---- Dropout: a view unless a mask is wanted or elements are dropped ---- */

typedef struct dropout_params {
    bool training, inverted; /* training: the mode, by version; the mask of versions 1 to 9 has floats */
    float ratio;
    uint32_t seed;
    bool seeded;
} dropout_params;

#define DROPOUT_RATIO 0.5f /* default where the input is omitted */

static bool dropout_mode(const onx_prepare *p, bool *training)
{
    *training = false;
    if (p->since < 7)
        *training = onx_prepare_int(p, "is_test") == 0;
    const onx_value *mode = p->since >= 12 && p->input_count > 2 ? p->inputs[2] : NULL;
    if (!mode)
        return true;
    *training = mode->data && mode->count ? *(const uint8_t *)mode->data != 0 : true;
    return mode->data != NULL;
}

/* Some exporters leave training mode on, with a ratio of 0. */
static bool drops_nothing(const onx_prepare *p)
{
    if (p->since < 12)
        return onx_prepare_float(p, "ratio") == 0;
    const onx_value *ratio = p->input_count > 1 ? p->inputs[1] : NULL;
    return ratio && ratio->data && ratio->count == 1 && onxi_value_number(ratio, 0) == 0;
}

static onx_status dropout_view(onx_prepare *p)
{
    bool training, known = dropout_mode(p, &training);
    return p->output_count < 2 && ((known && !training) || drops_nothing(p)) ? ONX_OK : ONX_E_UNSUPPORTED;
}

static onx_status dropout_prepare(onx_prepare *p)
{
    dropout_params *q = ONXI_NEW(p->arena, dropout_params);
    if (!q)
        return ONX_E_MEMORY;
    q->ratio = p->since < 12 ? onx_prepare_float(p, "ratio") : DROPOUT_RATIO;
    q->seeded = p->since >= 12 && onx_prepare_given(p, "seed");
    q->seed = q->seeded ? (uint32_t)onx_prepare_int(p, "seed") : 0;
    q->training = p->since < 7 && onx_prepare_int(p, "is_test") == 0;
    p->params = q;
    return ONX_OK;
}

/* Draws which of `n` elements are kept. */
static void draw(onxi_random *random, double ratio, uint8_t *kept, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        kept[i] = onxi_random_uniform(random) >= ratio;
}

/* Sets elements `from` to `from + n` of a mask, which has booleans or, up to version 9, floats. */
static void set_mask(onx_value *mask, uint64_t from, const uint8_t *kept, uint64_t n)
{
    const uint64_t width = onx_dtype_bits(mask->dtype) / 8;
    onx_convert((onx_dtype)mask->dtype, (char *)mask->data + from * width, ONX_UINT8, kept, n, true);
}

/* Sets the same elements of the output: kept elements are scaled up, the others are zero. */
static void set_kept(onx_value *y, const onx_value *x, uint64_t from, const uint8_t *kept, uint64_t n, double scale)
{
    enum { AT_ONCE = 256 };
    const uint64_t width = onx_dtype_bits(x->dtype) / 8;
    double numbers[AT_ONCE];
    for (uint64_t i = 0; i < n; i += AT_ONCE) {
        const uint64_t some = n - i < AT_ONCE ? n - i : AT_ONCE, at = (from + i) * width;
        if (x->dtype == ONX_FLOAT) {
            const float *in = (const float *)x->data + from + i, by = (float)scale;
            float *out = (float *)y->data + from + i;
            for (uint64_t k = 0; k < some; k++)
                out[k] = kept[i + k] ? in[k] * by : 0;
            continue;
        }
        onx_convert(ONX_DOUBLE, numbers, (onx_dtype)x->dtype, (const char *)x->data + at, some, true);
        for (uint64_t k = 0; k < some; k++)
            numbers[k] = kept[i + k] ? numbers[k] * scale : 0;
        onx_convert((onx_dtype)y->dtype, (char *)y->data + at, ONX_DOUBLE, numbers, some, true);
    }
}

static onx_status dropout_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    enum { AT_ONCE = 1024 };
    const dropout_params *q = work->params;
    const onx_prepared *p = work->prepared;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0], *mask = p->output_count > 1 ? work->outputs[1] : NULL;
    double ratio = (double)q->ratio;
    bool training = q->training;
    if (p->since >= 12) {
        ratio = 0.5;
        if (p->input_count > 1 && work->inputs[1] && work->inputs[1]->count)
            onx_convert(ONX_DOUBLE, &ratio, (onx_dtype)work->inputs[1]->dtype, work->inputs[1]->data, 1, true);
        training =
            p->input_count > 2 && work->inputs[2] && work->inputs[2]->count && *(const uint8_t *)work->inputs[2]->data;
    }
    training = training && ratio > 0 && ratio < 1;
    onxi_random random;
    if (q->seeded)
        onxi_random_seed(&random, q->seed);
    else if (training)
        onxi_random_any(&random, y);
    uint8_t kept[AT_ONCE];
    memset(kept, 1, sizeof kept);
    onxi_pace pace = { .work = work };
    for (uint64_t i = 0; i < x->count && (mask || training) && !onxi_pace_stops(&pace, 16 * AT_ONCE); i += AT_ONCE) {
        const uint64_t n = x->count - i < AT_ONCE ? x->count - i : AT_ONCE;
        if (training)
            draw(&random, ratio, kept, n);
        if (mask)
            set_mask(mask, i, kept, n);
        if (y && training)
            set_kept(y, x, i, kept, n, 1 / (1 - ratio));
    }
    if (y && !training && x->size && y->data != x->data)
        onxi_pace_copy(work, y->data, x->data, x->size);
    return ONX_OK;
}

/* ---- Concat ---- */

typedef struct concat_params {
    uint64_t outer, total; /* rows, and bytes per row of the output */
    uint64_t *bytes;       /* bytes per row of each input */
} concat_params;

static onx_status concat_prepare(onx_prepare *p)
{
    onx_value *y = p->outputs[0];
    concat_params *q = ONXI_NEW(p->arena, concat_params);
    uint32_t axis;
    if (!q || !(q->bytes = ONXI_ARRAY(p->arena, uint64_t, p->input_count + 1u)))
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), y->rank, &axis));
    if (!onxi_element_size(y->dtype))
        return ONX_E_UNSUPPORTED;
    q->outer = onxi_product(y->dims, 0, axis);
    for (uint32_t i = 0; i < p->input_count; i++) {
        const onx_value *x = p->inputs[i];
        if (!x || x->rank != y->rank || x->dtype != y->dtype)
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the others", i);
        for (uint32_t d = 0; d < x->rank; d++)
            if (d != axis && x->dims[d] != y->dims[d])
                return onx_prepare_fail(p, ONX_E_INVALID, "input %u does not fit the others in dimension %u", i, d);
        q->bytes[i] = onxi_product(x->dims, axis, x->rank) * onxi_element_size(y->dtype);
        q->total += q->bytes[i];
    }
    if (q->total != onxi_product(y->dims, axis, y->rank) * onxi_element_size(y->dtype))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs do not add up to the output");
    p->params = q;
    p->rows = q->outer;
    p->grain = q->total ? 65536 / q->total + 1 : 1;
    return ONX_OK;
}

/* The number of elements whose layout would have to change if all inputs had this number of channels per block: `kind`
 * is 1 (row-major), 8, 16, or 0 (all channels in one block). UINT64_MAX: an input does not divide into such blocks. */
static uint64_t elements_to_change(const onx_prepare *p, uint32_t kind)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < p->input_count; i++) {
        const onx_value *x = p->inputs[i];
        const uint64_t channels = (uint64_t)x->dims[1], block = kind ? kind : channels;
        if (!channels || channels % block)
            return UINT64_MAX;
        const bool alike = x->layout ? onxi_blocked_of(x) == block : block == 1;
        count += alike ? 0 : x->count;
    }
    return count;
}

/* Concatenates images with channel blocks. Of channels, whole blocks are contiguous, or, where one block has all
 * channels, the work is pixel by pixel; along other axes each element is a block of channels. */
static onx_status concat_in_blocks_prepare(onx_prepare *p)
{
    static const uint32_t kinds[] = { 1, 0, 16, 8 };
    onx_value *y = p->outputs[0];
    uint32_t axis, best = 0;
    if (!p->want || p->since < 4 || y->rank < 3 || !y->count ||
        onx_prepare_axis(p, onx_prepare_int(p, "axis"), y->rank, &axis) != ONX_OK)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(concat_prepare(p));
    for (uint32_t k = 1; k < sizeof kinds / sizeof *kinds; k++)
        if (elements_to_change(p, kinds[k]) < elements_to_change(p, kinds[best]))
            best = k;
    const uint32_t block = kinds[best];
    if (block == 1 || y->dims[1] > UINT32_MAX)
        return ONX_E_UNSUPPORTED;
    concat_params *q = p->params;
    const onx_layout *layout = onxi_blocked_layout(p->arena, y, block ? block : (uint32_t)y->dims[1]);
    for (uint32_t i = 0; i < p->input_count && layout; i++) {
        const onx_value *x = p->inputs[i];
        if (x->dims[1] == 1)
            p->want[i] = NULL;
        else if (!onxi_blocked_of(x) || onxi_blocked_of(x) != (block ? block : (uint32_t)x->dims[1]))
            layout =
                (p->want[i] = onxi_blocked_layout(p->arena, x, block ? block : (uint32_t)x->dims[1])) ? layout : NULL;
    }
    if (!layout)
        return ONX_E_UNSUPPORTED;
    y->layout = layout;
    const uint64_t pixels = onxi_product(y->dims, 2, y->rank), channels = block ? block : (uint64_t)y->dims[1];
    const uint64_t more = axis == 1 && !block ? pixels : 1, fewer = axis > 1 ? channels : 1; /* rows than of planes */
    q->outer = q->outer / fewer * more;
    q->total = q->total / more * fewer;
    for (uint32_t i = 0; i < p->input_count; i++)
        q->bytes[i] = q->bytes[i] / more * fewer;
    p->rows = q->outer;
    p->grain = 65536 / q->total + 1;
    return ONX_OK;
}

/* Copies some rows at a time, input by input, so that narrow rows stay in the L1 cache. */
static onx_status concat_run(onx_work *work, uint64_t first, uint64_t last)
{
    enum { BYTES = 16384 };
    const concat_params *q = work->params;
    for (uint64_t row = first, rows; row < last; row += rows) {
        char *to = (char *)work->outputs[0]->data + row * q->total;
        rows = q->total < BYTES ? BYTES / (q->total + 1) + 1 : 1;
        rows = rows < last - row ? rows : last - row;
        for (uint32_t i = 0; i < work->prepared->input_count; i++) {
            const char *from = (const char *)work->inputs[i]->data + row * q->bytes[i];
            if (q->bytes[i] && from != to)
                onxi_move_apart(to, (int64_t)q->total, from, (int64_t)q->bytes[i], (size_t)q->bytes[i], (int64_t)rows);
            to += q->bytes[i];
        }
    }
    return ONX_OK;
}

/* ---- Transpose ---- */

typedef struct transpose_params {
    uint32_t rank;
    int64_t dims[ONX_RANK_MAX], steps[ONX_RANK_MAX]; /* of the output; strides in the input */
    uint64_t inner;
    uint64_t size;
} transpose_params;

/* Finishes the parameters once dims and strides are set: drops dims of size 1 and merges contiguous neighbours. */
static void transpose_finish(onx_prepare *p, transpose_params *q)
{
    const onx_value *x = p->inputs[0];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < q->rank && x->count; d++) {
        if (q->dims[d] == 1)
            continue;
        if (rank && q->steps[rank - 1] == q->steps[d] * q->dims[d]) {
            q->dims[rank - 1] *= q->dims[d];
            q->steps[rank - 1] = q->steps[d];
            continue;
        }
        q->dims[rank] = q->dims[d];
        q->steps[rank++] = q->steps[d];
    }
    q->rank = x->count ? rank : q->rank;
    q->inner = q->rank ? (uint64_t)q->dims[q->rank - 1] : 1;
    q->size = onxi_element_size(x->dtype);
    p->params = q;
    p->rows = x->count && q->inner ? x->count / q->inner : 0;
    p->grain = q->inner ? 16384 / q->inner + 1 : 1;
    const int64_t pixel = q->rank > 1 && q->steps[q->rank - 2] == 1 ? q->dims[q->rank - 2] : 0;
    if (p->rows && q->size <= 4 && pixel > 0 && pixel <= ONXI_MOVE_PLANES) /* onxi_move_planes takes whole ones */
        p->grain = (p->grain + (uint64_t)pixel - 1) / (uint64_t)pixel * (uint64_t)pixel;
    if (!q->size && p->rows) { /* elements of less than a byte share bytes, so one thread moves them all */
        p->grain = p->rows;
    }
}

onx_status onxi_transpose_make(onx_prepare *p, const int64_t *perm)
{
    const onx_value *x = p->inputs[0];
    transpose_params *q = ONXI_NEW(p->arena, transpose_params);
    int64_t steps[ONX_RANK_MAX];
    if (!q)
        return ONX_E_MEMORY;
    onxi_strides(x, steps);
    q->rank = x->rank;
    for (uint32_t d = 0; d < x->rank; d++) {
        q->dims[d] = x->dims[perm[d]];
        q->steps[d] = steps[perm[d]];
    }
    transpose_finish(p, q);
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY
/* The same from an image with blocked channels, whose memory has one more dim, to row-major. */
static onx_status transpose_make_of_blocks(onx_prepare *p, const int64_t *perm, uint32_t block)
{
    const onx_value *x = p->inputs[0];
    transpose_params *q = ONXI_NEW(p->arena, transpose_params);
    int64_t dims[ONX_RANK_MAX], steps[ONX_RANK_MAX];
    onx_value view;
    if (!q)
        return ONX_E_MEMORY;
    if (!onxi_blocked_view(x, x->rank, block, dims, &view))
        return ONX_E_UNSUPPORTED;
    onxi_strides(&view, steps);
    for (uint32_t d = 0; d < x->rank; d++) {
        q->dims[q->rank] = dims[perm[d]];
        q->steps[q->rank++] = steps[perm[d]];
        if (perm[d] != 1)
            continue;
        q->dims[q->rank] = block; /* channels of a block come after the blocks */
        q->steps[q->rank++] = 1;
    }
    transpose_finish(p, q);
    return ONX_OK;
}
#endif

/* The axis of the input that each axis of the output is. */
static onx_status axes_of(const onx_prepare *p, int64_t *axes)
{
    const onx_value *x = p->inputs[0];
    const onx_value *y = p->outputs[0];
    uint32_t n;
    const int64_t *perm = onx_prepare_ints(p, "perm", &n);
    bool seen[ONX_RANK_MAX] = { false };
    if (perm && n != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "perm has %u values, the input has rank %u", n, x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t from = perm ? perm[d] : (int64_t)(x->rank - 1 - d);
        if (from < 0 || from >= (int64_t)x->rank || seen[from] || y->dims[d] != x->dims[from])
            return onx_prepare_fail(p, ONX_E_INVALID, "perm is not a permutation");
        seen[from] = true;
        axes[d] = from;
    }
    return ONX_OK;
}

static onx_status transpose_prepare(onx_prepare *p)
{
    int64_t axes[ONX_RANK_MAX];
    ONX_TRY(axes_of(p, axes));
    return onxi_transpose_make(p, axes);
}

#if ONXI_PLATFORM_ROOMY
static onx_status transpose_blocks_prepare(onx_prepare *p)
{
    int64_t axes[ONX_RANK_MAX];
    const uint32_t block = onxi_blocked_of(p->inputs[0]);
    if (!p->want || !block || p->inputs[0]->rank >= ONX_RANK_MAX)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(axes_of(p, axes));
    return transpose_make_of_blocks(p, axes, block);
}
#endif

#if ONXI_PLATFORM_ROOMY /* browsers move them: their module has no room for this row */
/* Elements stay where they are if only axes of size 1 pass others. */
static onx_status transpose_view_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    int64_t axes[ONX_RANK_MAX], last = -1;
    ONX_TRY(axes_of(p, axes));
    for (uint32_t d = 0; d < x->rank; d++) {
        if (x->dims[axes[d]] == 1)
            continue;
        if (axes[d] < last)
            return ONX_E_UNSUPPORTED;
        last = axes[d];
    }
    return ONX_OK;
}
#endif

/* ---- DepthToSpace, SpaceToDepth: transposing an input that is divided into blocks ---- */

static onx_status block_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const onx_value *y = p->outputs[0];
    transpose_params *q = ONXI_NEW(p->arena, transpose_params);
    if (!q)
        return ONX_E_MEMORY;
    onxi_depth at;
    ONX_TRY(onxi_depth_of(p, &at));
    const bool to_depth = at.to_depth, columns_first = at.columns_first;
    const int64_t block = at.block, area = block * block;
    if (y->count != x->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output does not have the elements of the input");
    p->rows = 0;
    if (!x->count)
        return ONX_OK;
    int64_t c = x->dims[1], h = x->dims[2], w = x->dims[3], plane = h * w, n = x->dims[0], deep = c / area;
    /* Sizes and strides in the input, in this order: batch, block row, block column, channel, row, column of the
     * smaller image. */
    int64_t small_h = to_depth ? h / block : h, small_w = to_depth ? w / block : w;
    int64_t step_row = to_depth ? w : columns_first ? block * plane : block * deep * plane;
    int64_t step_column = to_depth ? 1 : columns_first ? plane : deep * plane;
    int64_t step_channel = to_depth || !columns_first ? plane : area * plane;
    int64_t step_h = to_depth ? w * block : w, step_w = to_depth ? block : 1, channels = to_depth ? c : deep;
    *q = to_depth && columns_first
             ? (transpose_params){ .rank = 6,
                                   .dims = { n, channels, block, block, small_h, small_w },
                                   .steps = { c * plane, step_channel, step_row, step_column, step_h, step_w } }
         : to_depth ? (transpose_params){ .rank = 6,
                                          .dims = { n, block, block, channels, small_h, small_w },
                                          .steps = { c * plane, step_row, step_column, step_channel, step_h, step_w } }
                    : (transpose_params){ .rank = 6,
                                          .dims = { n, channels, small_h, block, small_w, block },
                                          .steps = { c * plane, step_channel, step_h, step_row, step_w, step_column } };
    transpose_finish(p, q);
    return ONX_OK;
}

/* ---- ChannelShuffle: transposes groups and channels of a group (domain onx, made by a rewrite rule) ---- */

/* The number of groups into which a Reshape to [N, groups, channels, ...] divides the channels; 0: unknown. */
static int64_t shuffle_groups(const onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *shape = p->input_count > 1 ? p->inputs[1] : NULL;
    int64_t groups;
    if (!x || x->kind != ONX_VALUE_TENSOR || x->rank < 2 || !shape || !shape->data || shape->dtype != ONX_INT64 ||
        shape->count < 2)
        return 0;
    memcpy(&groups, (const char *)shape->data + sizeof groups, sizeof groups);
    return groups >= 1 && x->dims[1] % groups == 0 ? groups : 0;
}

static onx_status shuffle_types(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    return shuffle_groups(p) ? onx_prepare_output(p, 0, (onx_dtype)x->dtype, x->rank, x->dims)
                             : ONX_OK; /* no type: the op cannot replace the nodes */
}

static onx_status shuffle_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const int64_t groups = shuffle_groups(p);
    transpose_params *q = ONXI_NEW(p->arena, transpose_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!groups)
        return ONX_E_UNSUPPORTED;
    p->rows = 0;
    if (!x->count)
        return ONX_OK;
    const int64_t plane = (int64_t)onxi_product(x->dims, 2, x->rank), each = x->dims[1] / groups;
    if (p->kernel->flags & ONX_KERNEL_LAYOUTS) { /* channels last */
        if (!p->want || onxi_blocked_of(x) != x->dims[1])
            return ONX_E_UNSUPPORTED;
        *q = (transpose_params){ .rank = 3,
                                 .dims = { x->dims[0] * plane, each, groups },
                                 .steps = { x->dims[1], 1, each } };
        transpose_finish(p, q);
        onxi_image_layouts(p, x->layout, x->layout);
        return ONX_OK;
    }
    *q = (transpose_params){ .rank = 4,
                             .dims = { x->dims[0], each, groups, plane },
                             .steps = { x->dims[1] * plane, plane, each * plane, 1 } };
    transpose_finish(p, q);
    return ONX_OK;
}

enum { TOGETHER = 16 };

/* Moves `rows` rows of the output whose elements are adjacent in the input. They are transposed in square tiles through
 * a contiguous buffer, which uses whole cache lines whatever the stride is. */
#define MOVE(T, name)                                                                                                  \
    static void move_##name(const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)                   \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        T *y = to, square[TOGETHER][TOGETHER];                                                                         \
        uint64_t i = 0;                                                                                                \
        for (; rows == TOGETHER && i + TOGETHER <= count; i += TOGETHER, x += TOGETHER * step) {                       \
            for (uint64_t k = 0; k < TOGETHER; k++)                                                                    \
                for (uint64_t r = 0; r < TOGETHER; r++)                                                                \
                    square[r][k] = x[(int64_t)k * step + (int64_t)r];                                                  \
            for (uint64_t r = 0; r < TOGETHER; r++)                                                                    \
                memcpy(y + r * count + i, square[r], sizeof square[r]);                                                \
        }                                                                                                              \
        for (; i < count; i++, x += step)                                                                              \
            for (uint64_t r = 0; r < rows; r++)                                                                        \
                y[r * count + i] = x[r];                                                                               \
    }
MOVE(uint16_t, 2)
MOVE(uint64_t, 8)
MOVE(onxi_sixteen, 16)

static void move_1(const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    if (step > 0 && rows == TOGETHER) {
        onxi_move_turn_all_bytes(&(onxi_move_square){ x, x, y, y, (uint64_t)step, count, count, TOGETHER });
        return;
    }
    for (uint64_t i = 0; i < count; i++, x += step)
        for (uint64_t r = 0; r < rows; r++)
            y[r * count + i] = x[r];
}

static void move_4(const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)
{
    const uint32_t *x = from;
    uint32_t *y = to;
    uint64_t i = 0;
    for (; rows == TOGETHER && i + TOGETHER <= count; i += TOGETHER, x += TOGETHER * step)
        for (uint64_t r = 0; r < TOGETHER; r += 4) /* a whole cache line per row of the output */
            for (uint64_t k = 0; k < TOGETHER; k += 4)
                onxi_move_turned(x + (int64_t)k * step + r, step, y + r * count + i + k, (int64_t)count);
    for (; i < count; i++, x += step)
        for (uint64_t r = 0; r < rows; r++)
            y[r * count + i] = x[r];
}

static void move_rows(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)
{
    if (step == 1 && rows == 1) {
        onxi_copy_item(to, from, count * size);
        return;
    }
    if (onxi_move_woven(size, from, step, rows, count, to) ||
        onxi_move_planes(size, from, step, rows, count, to, count))
        return;
    switch (size) {
    case 1:
        move_1(from, step, rows, count, to);
        break;
    case 2:
        move_2(from, step, rows, count, to);
        break;
    case 4:
        move_4(from, step, rows, count, to);
        break;
    case 8:
        move_8(from, step, rows, count, to);
        break;
    default:
        move_16(from, step, rows, count, to);
        break;
    }
}

/* Position in the input of a row of the output, updated incrementally. */
typedef struct walk {
    int64_t pos[ONX_RANK_MAX], at;
} walk;

static void walk_start(const transpose_params *q, uint64_t row, walk *w)
{
    w->at = 0;
    for (uint32_t d = q->rank ? q->rank - 1 : 0; d-- > 0;) {
        w->pos[d] = (int64_t)(row % (uint64_t)q->dims[d]);
        w->at += w->pos[d] * q->steps[d];
        row /= (uint64_t)q->dims[d];
    }
}

/* Advances by `rows` rows, which must not cross the end of the second to last dim. */
static inline void walk_on(const transpose_params *q, int64_t rows, walk *w)
{
    for (uint32_t d = q->rank ? q->rank - 1 : 0; d-- > 0; rows = 1) {
        w->pos[d] += rows;
        w->at += rows * q->steps[d];
        if (w->pos[d] < q->dims[d])
            return;
        w->at -= w->pos[d] * q->steps[d];
        w->pos[d] = 0;
    }
}

onx_status onxi_transpose_run(onx_work *work, uint64_t first, uint64_t last)
{
    const transpose_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    const int64_t step = q->rank ? q->steps[q->rank - 1] : 1;
    const unsigned bits = onx_dtype_bits(x->dtype);
    /* The next rows are adjacent in the input. */
    const bool blocks = q->size && q->rank > 1 && q->steps[q->rank - 2] == 1;
    walk w;
    if (first == last) /* dims may be 0 */
        return ONX_OK;
    walk_start(q, first, &w);
    for (uint64_t row = first, rows; row < last; row += rows, walk_on(q, (int64_t)rows, &w)) {
        rows = 1;
        if (blocks) {
            const uint64_t left = (uint64_t)(q->dims[q->rank - 2] - w.pos[q->rank - 2]);
            rows = left < last - row ? left : last - row;
            rows = rows < TOGETHER || q->inner <= ONXI_MOVE_WOVEN ? rows : TOGETHER;
        }
        if (q->size)
            move_rows(q->size, (const char *)x->data + w.at * (int64_t)q->size, step, rows, q->inner,
                      (char *)y->data + row * q->inner * q->size);
        for (uint64_t i = 0; !q->size && i < q->inner; i++)
            onxi_move_bits(bits, x->data, (uint64_t)(w.at + (int64_t)i * step), y->data, row * q->inner + i);
    }
    return ONX_OK;
}

/* ---- Shape, Size ---- */

static onx_status shape_prepare(onx_prepare *p)
{
    int64_t *start = ONXI_NEW(p->arena, int64_t);
    if (!start)
        return ONX_E_MEMORY;
    *start = p->since >= 15 ? onx_prepare_int(p, "start") : 0;
    p->params = start;
    return ONX_OK;
}

static onx_status shape_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const onx_value *x = work->inputs[0];
    int64_t start = *(const int64_t *)work->params, rank = x->rank;
    start = start < 0 ? start + rank : start;
    start = start < 0 ? 0 : start > rank ? rank : start;
    onx_value *y = work->outputs[0];
    for (uint64_t i = 0; i < y->count && (int64_t)i + start < rank; i++)
        ((int64_t *)y->data)[i] = x->dims[start + (int64_t)i];
    return ONX_OK;
}

static onx_status size_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    *(int64_t *)work->outputs[0]->data = (int64_t)work->inputs[0]->count;
    return ONX_OK;
}

/* ---- Gather ---- */

typedef struct gather_params {
    uint64_t outer, bytes; /* bytes per index */
    int64_t bound;
} gather_params;

static onx_status gather_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *index = p->inputs[1];
    gather_params *q = ONXI_NEW(p->arena, gather_params);
    uint32_t axis;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &axis));
    if (!onxi_element_size(x->dtype) || (index->dtype != ONX_INT64 && index->dtype != ONX_INT32))
        return ONX_E_UNSUPPORTED;
    q->outer = onxi_product(x->dims, 0, axis);
    q->bytes = onxi_product(x->dims, axis + 1, x->rank) * onxi_element_size(x->dtype);
    q->bound = x->dims[axis];
    p->params = q;
    /* Indices are checked even where nothing is copied, as inference does if it knows them. */
    p->rows = p->outputs[0]->count ? q->outer * index->count : index->count;
    p->grain = q->bytes ? 65536 / q->bytes + 1 : 1;
    return ONX_OK;
}

static onx_status gather_run(onx_work *work, uint64_t first, uint64_t last)
{
    const gather_params *q = work->params;
    const onx_value *index = work->inputs[1];
    uint64_t outer = index->count ? first / index->count : 0, i = index->count ? first % index->count : 0;
    for (uint64_t row = first; row < last; row++) {
        int64_t at = index->dtype == ONX_INT64 ? ((const int64_t *)index->data)[i] : ((const int32_t *)index->data)[i];
        if (at < -q->bound || at >= q->bound)
            return onx_work_fail(work, ONX_E_INVALID, "index %lld is out of range for size %lld", (long long)at,
                                 (long long)q->bound);
        at = at < 0 ? at + q->bound : at;
        if (work->outputs[0]->count)
            onxi_copy_item((char *)work->outputs[0]->data + row * q->bytes,
                           (const char *)work->inputs[0]->data + (outer * (uint64_t)q->bound + (uint64_t)at) * q->bytes,
                           q->bytes);
        if (++i == index->count) {
            i = 0;
            outer++;
        }
    }
    return ONX_OK;
}

/* ---- rows ---- */

#define VIEW(name, version)                                                                                            \
    {                                                                                                                  \
        .op = name, .since = version, .flags = ONX_KERNEL_VIEW, .run = onxi_view_run                                   \
    }
const onx_kernel onxi_kernels_layout[] = {
    { .op = "Identity", .since = 1, .flags = ONX_KERNEL_VIEW | ONX_KERNEL_FLAT, .run = onxi_view_run },
    VIEW("Reshape", 1),
    VIEW("Flatten", 1),
    VIEW("Squeeze", 1),
    VIEW("Unsqueeze", 1),
    { .op = "Dropout",
      .since = 1,
      .flags = ONX_KERNEL_VIEW | ONX_KERNEL_FLAT,
      .preference = 1,
      .prepare = dropout_view,
      .run = onxi_view_run },
    { .op = "Dropout", .since = 1, .flags = ONX_KERNEL_RANDOM, .prepare = dropout_prepare, .run = dropout_run },
    { .op = "Concat", .since = 1, .flags = ONXI_KERNEL_JOINS, .prepare = concat_prepare, .run = concat_run },
    { .op = "Concat",
      .since = 1,
      .dtypes = ONXI_F32,
      .preference = 11,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .prepare = concat_in_blocks_prepare,
      .run = concat_run },
#if ONXI_PLATFORM_ROOMY
    { .op = "Transpose",
      .since = 1,
      .preference = 11,
      .flags = ONX_KERNEL_VIEW,
      .variant = "view",
      .prepare = transpose_view_prepare,
      .run = onxi_view_run },
    { .op = "Transpose",
      .since = 1,
      .preference = 5,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .prepare = transpose_blocks_prepare,
      .run = onxi_transpose_run },
#endif
    { .op = "Transpose", .since = 1, .prepare = transpose_prepare, .run = onxi_transpose_run },
    { .op = "DepthToSpace", .since = 1, .prepare = block_prepare, .run = onxi_transpose_run },
    { .op = "SpaceToDepth", .since = 1, .prepare = block_prepare, .run = onxi_transpose_run },
#if ONXI_PLATFORM_ROOMY
    { .op = "ChannelShuffle",
      .domain = "onx",
      .since = 1,
      .preference = 5,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .prepare = shuffle_prepare,
      .run = onxi_transpose_run,
      .types = shuffle_types },
#endif
    { .op = "ChannelShuffle",
      .domain = "onx",
      .since = 1,
      .prepare = shuffle_prepare,
      .run = onxi_transpose_run,
      .types = shuffle_types },
    { .op = "Shape", .since = 1, .flags = ONX_KERNEL_SHAPE_ONLY, .prepare = shape_prepare, .run = shape_run },
    { .op = "Size", .since = 1, .flags = ONX_KERNEL_SHAPE_ONLY, .run = size_run },
    { .op = "Gather", .since = 1, .prepare = gather_prepare, .run = gather_run },
    { 0 }
};
