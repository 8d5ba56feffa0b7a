/* lines.c - convolutions in groups along one dim (of sound, text and series), for which oneDNN has no fast kernel. A
 * line of the input is copied with its padding, and a few channels of the result are summed up in registers, some
 * vectors of neighbouring positions at a time. The sum runs in one fixed order. */
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

enum {
    CHANNELS = 4, /* of the result, at a time */
    VECTORS = 4,
    STEP = VECTORS * ONXI_LANES,
    ROOM_MAX = 1 << 18 /* floats of the lines of a group */
};

typedef struct line_params {
    uint64_t group, in_each, out_each, blocks;           /* channels of a group, and blocks of its channels */
    uint64_t in, out, padded, taps, dilation, pad, room; /* room: of a line of the input with all that is read of it */
    bool has_bias;
    simd_posts posts;
} line_params;

/* STEP positions of `channels` channels. `w`: the weights of a channel are `pitch` apart. */
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
            const float *at = x + t * q->dilation;
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

static void block(const line_params *q, const float *x, const float *w, const float *bias, float *y, uint64_t channels)
{
    const uint64_t pitch = q->in_each * q->taps;
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

/* The lines of a group with zeros around them. */
static void copy_lines(const line_params *q, const float *x, float *to)
{
    for (uint64_t i = 0; i < q->in_each; i++, to += q->room, x += q->in) {
        memset(to, 0, q->pad * sizeof *to);
        memcpy(to + q->pad, x, q->in * sizeof *to);
        memset(to + q->pad + q->in, 0, (q->room - q->pad - q->in) * sizeof *to);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const line_params *q = work->params;
    const float *x = work->inputs[0]->data, *w = work->inputs[1]->data;
    const float *bias = q->has_bias ? work->inputs[2]->data : NULL;
    float *lines = work->thread_workspace, *made = lines + q->in_each * q->room, *y = work->outputs[0]->data;
    uint64_t there = UINT64_MAX; /* the group whose lines have been copied */
    for (uint64_t row = first; row < last; row++) {
        const uint64_t set = row / q->blocks, in_group = row % q->blocks * CHANNELS;
        const uint64_t left = q->out_each - in_group, channels = left < CHANNELS ? left : CHANNELS;
        const uint64_t channel = set % q->group * q->out_each + in_group;
        if (there != set)
            copy_lines(q, x + set * q->in_each * q->in, lines);
        there = set;
        block(q, lines, w + channel * q->in_each * q->taps, bias ? bias + channel : NULL, made, channels);
        for (uint32_t f = 0; f < q->posts.count; f++)
            post_apply(&q->posts.list[f], made, q->padded, channels, q->padded / ONXI_LANES, NULL, NULL, 0);
        for (uint64_t c = 0; c < channels; c++)
            memcpy(y + (set * q->out_each + in_group + c) * q->out, made + c * q->padded, q->out * sizeof *y);
    }
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    onxi_conv made;
    if (p->inputs[0]->rank != 3 || w->rank != 3 || p->inputs[0]->layout || w->dtype != ONX_FLOAT)
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_conv_make(p, w, b, &made));
    const onxi_window *win = &made.window;
    line_params *q = ONXI_NEW(p->arena, line_params);
    if (!q)
        return ONX_E_MEMORY;
    if (made.group < 2 || win->stride[0] != 1 || win->pad[0] < 0 || win->pad[0] > ROOM_MAX || !p->outputs[0]->count ||
        win->in[0] > ROOM_MAX || win->out[0] > ROOM_MAX || win->kernel[0] > ROOM_MAX || win->dilation[0] > ROOM_MAX ||
        !made.in_each)
        return ONX_E_UNSUPPORTED;
    *q = (line_params){ .group = made.group,
                        .in_each = made.in_each,
                        .out_each = made.out_each,
                        .blocks = (made.out_each + CHANNELS - 1) / CHANNELS,
                        .in = (uint64_t)win->in[0],
                        .out = (uint64_t)win->out[0],
                        .padded = ((uint64_t)win->out[0] + STEP - 1) / STEP * STEP,
                        .taps = (uint64_t)win->kernel[0],
                        .dilation = (uint64_t)win->dilation[0],
                        .pad = (uint64_t)win->pad[0],
                        .has_bias = b != NULL };
    const uint64_t reach = q->padded + (q->taps ? (q->taps - 1) * q->dilation : 0), least = q->pad + q->in;
    q->room = (reach > least ? reach : least) + ONXI_LANES;
    if (!onxi_mul_u64(q->in_each, q->room, &p->thread_workspace) || p->thread_workspace > ROOM_MAX)
        return ONX_E_UNSUPPORTED;
    p->thread_workspace = (p->thread_workspace + CHANNELS * q->padded) * sizeof(float);
    for (; p->post_ops_done < p->post_op_count && q->posts.count < POST_MAX; p->post_ops_done++)
        if (!post_take_function(&p->post_ops[p->post_ops_done], &q->posts.list[q->posts.count++])) {
            q->posts.count--;
            break;
        }
    p->params = q;
    p->rows = win->batch * q->group * q->blocks;
    p->grain = 262144 / (CHANNELS * q->padded * q->in_each * q->taps + 1) + 1;
    return ONX_OK;
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_lines)[] = { { .op = "Conv",
                                                               .since = 1,
                                                               .dtypes = ONXI_F32,
                                                               .preference = 12,
                                                               .isa = ONXI_LEVEL,
                                                               .flags = ONX_KERNEL_POST_OPS,
                                                               .variant = ONXI_VARIANT,
                                                               .prepare = prepare,
                                                               .run = run },
                                                             { 0 } };
