/* lines.c - grouped convolutions that oneDNN has no fast kernel for: those along one dim (sound, text, time series),
 * and those of images whose groups are not whole blocks of channels. The input of a group is copied with its padding,
 * so that a tap reads it at a constant offset from every output position; inputs between strides are stored separately.
 * A few output channels are accumulated in registers, for some vectors of neighbouring positions at a time, including
 * the positions between the lines of the result. The sum runs in one fixed order. */
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

enum {
    CHANNELS = 4,                       /* of the result, at a time */
    VECTORS = ONXI_LANES == 16 ? 4 : 3, /* as many as there are registers for */
    STEP = VECTORS * ONXI_LANES,
    ALONE = 8, /* vectors of a channel that is a group of its own, at most */
    DIMS = 3,
    /* Maximum floats of the input of a group: they stay in the second-level cache, except where the only alternative is
     * the plain row. */
    ROOM_MAX = 1 << 18,
    ROOM_LAST = 1 << 20
};

typedef struct line_params {
    uint64_t group, in_each, out_each, blocks; /* channels of a group, and blocks of its channels */
    uint64_t in[DIMS], out[DIMS], stride[DIMS], pad[DIMS];
    uint64_t size[DIMS];                  /* dims of one part of a channel that is copied: the inputs of one stride
                                           * remainder */
    uint64_t part, room;                  /* floats of a part; floats of all parts, including the excess that is read */
    uint64_t dense;                       /* floats that are copied without padding between them; 0: there is padding */
    uint64_t in_plane, out_plane, padded; /* padded: positions that are computed, whole vectors */
    uint64_t taps;
    const uint64_t *at; /* where each tap reads, from the position of the result */
    bool alone;         /* each channel is a group of its own */
    bool apart;         /* steps skip inputs: there are several parts */
    bool has_bias;
    simd_posts posts;
} line_params;

/* STEP positions of `channels` channels. `w`: the weights of two channels are `pitch` apart. */
__attribute__((always_inline)) static inline void some(const line_params *q, const float *x, const float *w,
                                                       uint64_t pitch, const float *bias, float *y, const int channels)
{
    onxi_vf sum[CHANNELS][VECTORS];
    UNROLL
    for (int c = 0; c < channels; c++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[c][v] = vf_all(bias ? bias[c] : 0);
    for (uint64_t i = 0; i < q->in_each; i++, x += q->room, w += q->taps)
        for (uint64_t t = 0; t < q->taps; t++) {
            const float *at = x + q->at[t];
            onxi_vf part[VECTORS];
            UNROLL
            for (int v = 0; v < VECTORS; v++)
                part[v] = vf_load(at + v * ONXI_LANES);
            UNROLL
            for (int c = 0; c < channels; c++)
                UNROLL
            for (int v = 0; v < VECTORS; v++)
                sum[c][v] += w[(uint64_t)c * pitch + t] * part[v];
        }
    UNROLL
    for (int c = 0; c < channels; c++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        vf_store(y + (uint64_t)c * q->padded + (uint64_t)v * ONXI_LANES, sum[c][v]);
}

/* Some vectors of a channel that is a group of its own. */
__attribute__((always_inline)) static inline void few(const line_params *q, const float *x, const float *w, float bias,
                                                      float *y, const int vectors)
{
    onxi_vf sum[ALONE];
    UNROLL
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_all(bias);
    for (uint64_t t = 0; t < q->taps; t++) {
        const float *at = x + q->at[t];
        const onxi_vf weight = vf_all(w[t]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[v] += weight * vf_load(at + v * ONXI_LANES);
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        vf_store(y + v * ONXI_LANES, sum[v]);
}

static void alone(const line_params *q, const float *x, const float *w, float bias, float *y)
{
    uint64_t at = 0;
    for (; at + ALONE * ONXI_LANES <= q->padded; at += ALONE * ONXI_LANES)
        few(q, x + at, w, bias, y + at, ALONE);
    for (; at + 4 * ONXI_LANES <= q->padded; at += 4 * ONXI_LANES)
        few(q, x + at, w, bias, y + at, 4);
    for (; at < q->padded; at += ONXI_LANES)
        few(q, x + at, w, bias, y + at, 1);
}

static void block(const line_params *q, const float *x, const float *w, const float *bias, float *y, uint64_t channels)
{
    const uint64_t pitch = q->in_each * q->taps;
    if (q->alone) {
        alone(q, x, w, bias ? *bias : 0, y);
        return;
    }
    for (uint64_t at = 0; at < q->padded; at += STEP)
        switch (channels) {
        case 1:
            some(q, x + at, w, pitch, bias, y + at, 1);
            break;
        case 2:
            some(q, x + at, w, pitch, bias, y + at, 2);
            break;
        case 3:
            some(q, x + at, w, pitch, bias, y + at, 3);
            break;
        default:
            some(q, x + at, w, pitch, bias, y + at, 4);
            break;
        }
}

/* Deinterleaves: even elements go to the one, odd elements to the other. */
static void deal_line(const float *x, uint64_t n, float *one, float *other)
{
    typedef float four __attribute__((vector_size(16)));
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8, one += 4, other += 4) {
        four a, b;
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, x + i + 4, sizeof b);
        const four even = __builtin_shufflevector(a, b, 0, 2, 4, 6), odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
        memcpy(one, &even, sizeof even);
        memcpy(other, &odd, sizeof odd);
    }
    for (; i < n; i++)
        *(i % 2 ? other++ : one++) = x[i];
}

/* Distributes a line of the input to the parts that its elements belong to. */
static void copy_line(const line_params *q, const float *x, float *to)
{
    const uint64_t stride = q->stride[DIMS - 1], pad = q->pad[DIMS - 1], n = q->in[DIMS - 1];
    if (stride == 2) {
        deal_line(x, n, to + pad % 2 * q->part + pad / 2, to + (pad + 1) % 2 * q->part + (pad + 1) / 2);
        return;
    }
    for (uint64_t r = 0; r < stride; r++) {
        const uint64_t first = (r + stride - pad % stride) % stride; /* that is at r, modulo the step */
        float *part = to + r * q->part + (first + pad) / stride;
        for (uint64_t i = first; i < n; i += stride)
            *part++ = x[i];
    }
}

/* Copies `n` floats and adds zeros up to a whole vector; `left` floats may be read. Lines are adjacent, so the excess
 * zeros are in padding, or are overwritten by the next line. */
static inline void copy_padded(const float *x, uint64_t n, uint64_t left, float *to)
{
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES)
        vf_store(to + i, vf_load(x + i));
    if (i == n)
        return;
    if (i + ONXI_LANES > left) {
        memcpy(to + i, x + i, (n - i) * sizeof *to);
        return;
    }
    onxi_vi lane;
    for (int v = 0; v < ONXI_LANES; v++)
        lane[v] = v;
    vf_store(to + i, vf_select(lane < (int32_t)(n - i), vf_load(x + i), vf_all(0)));
}

/* Copies the input of a group; the zeros around it are written already. */
static void copy_lines(const line_params *q, const float *x, float *to)
{
    for (uint64_t c = 0; c < q->in_each; c++, to += q->room) {
        uint64_t left = q->in_plane;
        if (q->dense) {
            memcpy(to, x, q->in_plane * sizeof *to);
            x += q->in_plane;
            continue;
        }
        for (uint64_t i = 0; i < q->in[0]; i++)
            for (uint64_t j = 0; j < q->in[1]; j++, x += q->in[2], left -= q->in[2]) {
                const uint64_t y = i + q->pad[0], z = j + q->pad[1];
                if (!q->apart) {
                    copy_padded(x, q->in[2], left, to + (y * q->size[1] + z) * q->size[2] + q->pad[2]);
                    continue;
                }
                const uint64_t part = (y % q->stride[0] * q->stride[1] + z % q->stride[1]) * q->stride[2];
                const uint64_t line = y / q->stride[0] * q->size[1] + z / q->stride[1];
                copy_line(q, x, to + part * q->part + line * q->size[2]);
            }
    }
}

/* Extracts the lines of an output channel from all positions, by whole vectors where the next line overwrites the
 * excess. */
static void store_lines(const line_params *q, const float *made, float *y)
{
    const uint64_t n = q->out[2], whole = (n + ONXI_LANES - 1) / ONXI_LANES * ONXI_LANES;
    uint64_t left = q->out_plane;
    for (uint64_t i = 0; i < q->out[0]; i++)
        for (uint64_t j = 0; j < q->out[1]; j++, y += n, left -= n) {
            const float *line = made + (i * q->size[1] + j) * q->size[2];
            if (whole > left)
                memcpy(y, line, n * sizeof *y);
            else
                for (uint64_t k = 0; k < n; k += ONXI_LANES)
                    vf_store(y + k, vf_load(line + k));
        }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const line_params *q = work->params;
    const float *x = work->inputs[0]->data, *w = work->inputs[1]->data;
    const float *bias = q->has_bias ? work->inputs[2]->data : NULL;
    float *lines = work->thread_workspace, *made = lines + q->in_each * q->room, *y = work->outputs[0]->data;
    uint64_t there = UINT64_MAX; /* group whose lines are in the buffer */
    for (uint64_t row = first; row < last; row++) {
        const uint64_t set = row / q->blocks, in_group = row % q->blocks * CHANNELS;
        const uint64_t left = q->out_each - in_group, channels = left < CHANNELS ? left : CHANNELS;
        const uint64_t channel = set % q->group * q->out_each + in_group;
        if (there == UINT64_MAX)
            memset(lines, 0, q->in_each * q->room * sizeof *lines);
        if (there != set)
            copy_lines(q, x + set * q->in_each * q->in_plane, lines);
        there = set;
        block(q, lines, w + channel * q->in_each * q->taps, bias ? bias + channel : NULL, made, channels);
        for (uint32_t f = 0; f < q->posts.count; f++)
            post_apply(&q->posts.list[f], made, q->padded, channels, q->padded / ONXI_LANES, NULL, NULL, 0);
        for (uint64_t c = 0; c < channels; c++)
            store_lines(q, made + c * q->padded, y + (set * q->out_each + in_group + c) * q->out_plane);
    }
    return ONX_OK;
}

/* Sizes of the copies, for a window of three dims; false if too large. */
static bool place_input(const onxi_window *w, line_params *q, uint64_t kernel[DIMS], uint64_t dilation[DIMS])
{
    uint64_t parts = 1, last = 0, reach = 0;
    q->part = q->in_plane = q->out_plane = q->taps = 1;
    for (int d = 0; d < DIMS; d++) {
        const int from = d - (DIMS - (int)w->spatial);
        if (from >= 0 &&
            (w->pad[from] < 0 || w->pad[from] > ROOM_MAX || w->in[from] > ROOM_MAX || w->out[from] > ROOM_MAX ||
             w->kernel[from] > ROOM_MAX || w->dilation[from] > ROOM_MAX || w->stride[from] > ROOM_MAX))
            return false;
        q->in[d] = from < 0 ? 1 : (uint64_t)w->in[from];
        q->out[d] = from < 0 ? 1 : (uint64_t)w->out[from];
        q->stride[d] = from < 0 ? 1 : (uint64_t)w->stride[from];
        q->pad[d] = from < 0 ? 0 : (uint64_t)w->pad[from];
        kernel[d] = from < 0 ? 1 : (uint64_t)w->kernel[from];
        dilation[d] = from < 0 ? 1 : (uint64_t)w->dilation[from];
        const uint64_t far = kernel[d] ? (kernel[d] - 1) * dilation[d] / q->stride[d] : 0;
        const uint64_t least = (q->in[d] + q->pad[d] + q->stride[d] - 1) / q->stride[d];
        q->size[d] = q->out[d] + far > least ? q->out[d] + far : least;
        q->part *= q->size[d];
        parts *= q->stride[d];
        q->in_plane *= q->in[d];
        q->out_plane *= q->out[d];
        q->taps *= kernel[d];
        last = last * q->size[d] + q->out[d] - 1;
        reach = reach * q->size[d] + far;
        if (q->part > ROOM_MAX || parts > ROOM_MAX || q->taps > ROOM_MAX || parts * q->part > ROOM_MAX)
            return false;
    }
    const uint64_t step = q->alone ? ONXI_LANES : STEP;
    q->padded = (last + step) / step * step;
    q->apart = parts > 1;
    q->dense = parts == 1 && q->part == q->in_plane ? q->part : 0;
    q->room = parts * q->part + q->padded; /* the last part is read up to the last computed position */
    return reach < q->part && q->room <= ROOM_MAX;
}

static bool place_taps(onx_prepare *p, line_params *q, const uint64_t kernel[DIMS], const uint64_t dilation[DIMS])
{
    uint64_t *at = onxi_arena_array(p->arena, q->taps + 1, sizeof *at);
    for (uint64_t t = 0; at && t < q->taps; t++) {
        uint64_t rest = t, k[DIMS], part = 0, in_part = 0;
        for (int d = DIMS; d-- > 0; rest /= kernel[d])
            k[d] = rest % kernel[d] * dilation[d];
        for (int d = 0; d < DIMS; d++) {
            part = part * q->stride[d] + k[d] % q->stride[d];
            in_part = in_part * q->size[d] + k[d] / q->stride[d];
        }
        at[t] = part * q->part + in_part;
    }
    q->at = at;
    return at != NULL;
}

typedef struct line_row {
    uint32_t least, most; /* ranks */
    bool alone;
    uint64_t room;
    bool planes; /* only if the channels are planes already */
} line_row;

static onx_status prepare(onx_prepare *p)
{
    const onx_value *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    const line_row *row = p->kernel->body;
    onxi_conv made;
    uint64_t kernel[DIMS], dilation[DIMS];
    if (p->inputs[0]->rank < row->least || p->inputs[0]->rank > row->most || w->rank != p->inputs[0]->rank ||
        p->inputs[0]->layout || w->dtype != ONX_FLOAT || (row->planes && !p->want))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_conv_make(p, w, b, &made));
    line_params *q = ONXI_NEW(p->arena, line_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (line_params){ .group = made.group,
                        .in_each = made.in_each,
                        .out_each = made.out_each,
                        .blocks = (made.out_each + CHANNELS - 1) / CHANNELS,
                        .alone = made.in_each == 1 && made.out_each == 1,
                        .has_bias = b != NULL };
    if (made.group < 2 || !p->outputs[0]->count || !made.in_each || !place_input(&made.window, q, kernel, dilation) ||
        (row->alone && !q->alone) || !onxi_mul_u64(q->in_each, q->room, &p->thread_workspace) ||
        p->thread_workspace > row->room)
        return ONX_E_UNSUPPORTED;
    if (!place_taps(p, q, kernel, dilation))
        return ONX_E_MEMORY;
    p->thread_workspace = (p->thread_workspace + CHANNELS * q->padded) * sizeof(float);
    for (uint32_t i = 0; row->planes && i < p->operand_count; i++)
        p->want[i] = NULL;
    post_take_functions(p, &q->posts);
    p->params = q;
    p->rows = made.window.batch * q->group * q->blocks;
    p->grain = onxi_worth_a_thread(ONXI_COST_ALONE * CHANNELS * q->padded * q->in_each * q->taps);
    return ONX_OK;
}

static const line_row lines = { 3, 3, false, ROOM_MAX, true }, planes = { 4, 5, true, ROOM_MAX, true };
static const line_row any_lines = { 3, 3, false, ROOM_MAX, false }, images = { 4, 5, false, ROOM_LAST, false };

#define ROW(preference_, how, body_)                                                                                   \
    {                                                                                                                  \
        .op = "Conv", .since = 1, .dtypes = ONXI_F32, .preference = preference_, .isa = ONXI_LEVEL, .packs = 1 << 1,   \
        .flags = ONX_KERNEL_POST_OPS | (how), .variant = ONXI_VARIANT, .body = &body_, .prepare = prepare, .run = run  \
    }
/* Where channels are planes already it comes first, except for images whose groups have several channels. Otherwise
 * channels next to each other are for groups.c, and for images it ranks below the good cases of oneDNN: layout
 * conversions would take longer. */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_lines)[] = { ROW(12, ONX_KERNEL_LAYOUTS, lines),
                                                             ROW(11, ONX_KERNEL_LAYOUTS, planes),
                                                             ROW(11, 0, any_lines),
                                                             ROW(8, 0, images),
                                                             { 0 } };
