/* three.c - depthwise Conv of 3x3 with stride 1 on planar channels: each input line is loaded once, at three offsets,
 * and accumulated for the three output lines that it contributes to. Nothing is copied, and nothing outside of a line
 * is read. For levels with masked loads and stores. The sum runs in one fixed order. */
#include "kernel/core/conv.h"
#include "kernel/simd/post.h"

#ifdef VF_MASKS

enum { TAPS = 3, SIDE_MAX = 1 << 20 };

typedef struct three_params {
    uint64_t group;
    int64_t h, w, oh, ow, pad_y, pad_x;
    bool has_bias;
    simd_posts posts;
} three_params;

/* Adds the contribution of an input line to an output line. */
static inline onxi_vf line_sum(onxi_vf sum, const onxi_vf w[TAPS], const onxi_vf x[TAPS])
{
    for (int k = 0; k < TAPS; k++)
        sum += w[k] * x[k];
    return sum;
}

/* Computes columns `first` .. first + ONXI_LANES - 1 of the result for all lines; `y` is the first of them, with stride
 * `step` between lines. whole: lanes after the last column may be written, too. */
static void columns(const three_params *q, const float *x, const float *weights, float bias, int64_t first, float *y,
                    int64_t step, bool whole)
{
    vf_mask reads[TAPS];
    onxi_vf w[TAPS][TAPS];
    for (int k = 0; k < TAPS; k++) {
        const int64_t from = first - q->pad_x + k;
        reads[k] = vf_mask_of(-from, q->w - from);
        for (int i = 0; i < TAPS; i++)
            w[i][k] = vf_all(weights[i * TAPS + k]);
    }
    const bool all = whole || q->ow - first >= ONXI_LANES; /* masked stores are slow on some CPUs */
    const vf_mask writes = vf_mask_of(0, q->ow - first);
    const onxi_vf start = vf_all(bias), zero = vf_all(0);
    onxi_vf upper = start, middle = start; /* sums of the next two output lines to be finished */
    for (int64_t in = -q->pad_y, out = 1 - TAPS; out < q->oh; in++, out++) {
        onxi_vf lower = start, done = upper;
        upper = middle;
        if (in >= 0 && in < q->h) {
            const float *line = x + in * q->w + first - q->pad_x;
            const onxi_vf part[TAPS] = { vf_load_some(line, reads[0]), vf_load_some(line + 1, reads[1]),
                                         vf_load_some(line + 2, reads[2]) };
            lower = line_sum(start, w[0], part);
            upper += line_sum(zero, w[1], part);
            done += line_sum(zero, w[2], part);
        }
        middle = lower;
        if (out >= 0 && all)
            vf_store(y + out * step, done);
        else if (out >= 0)
            vf_store_some(y + out * step, done, writes);
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const three_params *q = work->params;
    const float *w = work->inputs[1]->data, *bias = q->has_bias ? work->inputs[2]->data : NULL;
    float *made = work->thread_workspace;
    for (uint64_t i = first; i < last; i++) {
        const uint64_t channel = i % q->group;
        const float *x = (const float *)work->inputs[0]->data + i * (uint64_t)(q->h * q->w);
        float *y = (float *)work->outputs[0]->data + i * (uint64_t)(q->oh * q->ow);
        for (int64_t at = 0; at < q->ow; at += ONXI_LANES) {
            const bool made_apart = q->posts.count > 0;
            columns(q, x, w + channel * TAPS * TAPS, bias ? bias[channel] : 0, at, made_apart ? made : y + at,
                    made_apart ? ONXI_LANES : q->ow, made_apart);
            if (!made_apart)
                continue;
            for (uint32_t f = 0; f < q->posts.count; f++)
                post_apply(&q->posts.list[f], made, ONXI_LANES, (uint64_t)q->oh, 1, NULL, NULL, 0);
            const vf_mask writes = vf_mask_of(0, q->ow - at);
            for (int64_t l = 0; l < q->oh; l++)
                vf_store_some(y + l * q->ow + at, vf_load(made + l * ONXI_LANES), writes);
        }
    }
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *b = p->input_count > 2 ? p->inputs[2] : NULL;
    onxi_conv made;
    if (!p->want || x->layout || x->rank != 4 || w->rank != 4 || w->dtype != ONX_FLOAT ||
        (b && b->dtype != ONX_FLOAT) || !p->outputs[0]->count ||
        !onxi_weights_are_finite(p, 1)) /* padding is not multiplied */
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_conv_make(p, w, b, &made));
    const onxi_window *win = &made.window;
    for (uint32_t i = 0; i < 2; i++)
        if (win->kernel[i] != TAPS || win->stride[i] != 1 || win->dilation[i] != 1 || win->pad[i] < 0 ||
            win->pad[i] > SIDE_MAX || win->in[i] > SIDE_MAX || win->out[i] > SIDE_MAX)
            return ONX_E_UNSUPPORTED;
    three_params *q = ONXI_NEW(p->arena, three_params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (three_params){ .group = made.group,
                         .h = win->in[0],
                         .w = win->in[1],
                         .oh = win->out[0],
                         .ow = win->out[1],
                         .pad_y = win->pad[0],
                         .pad_x = win->pad[1],
                         .has_bias = b != NULL };
    if (made.group < 2 || made.in_each != 1 || made.out_each != 1)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    post_take_functions(p, &q->posts);
    p->params = q;
    p->rows = win->batch * made.group;
    p->grain = onxi_worth_a_thread(ONXI_COST_ALONE * (uint64_t)(q->oh * q->ow) * TAPS * TAPS);
    p->thread_workspace = q->posts.count ? (uint64_t)q->oh * ONXI_LANES * sizeof(float) : 0;
    return ONX_OK;
}

/* Tried before lines.c, which handles other window sizes and strides. */
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_three)[] = { { .op = "Conv",
                                                               .since = 1,
                                                               .dtypes = ONXI_F32,
                                                               .preference = 12,
                                                               .isa = ONXI_LEVEL,
                                                               .packs = 1 << 1,
                                                               .flags = ONX_KERNEL_LAYOUTS | ONX_KERNEL_POST_OPS,
                                                               .variant = ONXI_VARIANT,
                                                               .prepare = prepare,
                                                               .run = run },
                                                             { 0 } };
#else
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_three)[] = { { 0 } };
#endif
