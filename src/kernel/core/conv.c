/* conv.c - convolution by unfolding, as the header says. */
#include "kernel/core/conv.h"

onx_status onxi_conv_make(const onx_prepare *p, const onx_value *w, const onx_value *bias, onxi_conv *q)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    if (w->rank != x->rank || x->rank < 2)
        return onx_prepare_fail(p, ONX_E_INVALID, "weights of rank %u do not fit an input of rank %u", w->rank,
                                x->rank);
    ONX_TRY(onxi_window_make(p, w->dims + 2, &q->window));
    int64_t group = onx_prepare_int(p, "group");
    if (group < 1 || x->dims[1] % group || w->dims[0] % group || w->dims[1] != x->dims[1] / group ||
        y->dims[1] != w->dims[0])
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld channels, weights [%lld,%lld,...] and group %lld do not fit",
                                (long long)x->dims[1], (long long)w->dims[0], (long long)w->dims[1], (long long)group);
    if (bias && (bias->rank != 1 || bias->dims[0] != w->dims[0]))
        return onx_prepare_fail(p, ONX_E_INVALID, "the bias does not fit the weights");
    q->group = (uint64_t)group;
    q->in_each = (uint64_t)w->dims[1];
    q->out_each = (uint64_t)w->dims[0] / q->group;
    q->depth = q->in_each * q->window.kernel_size;
    q->tiles = (q->window.out_size + ONXI_CONV_TILE - 1) / ONXI_CONV_TILE;
    q->width = onx_dtype_bits(x->dtype) / 8;
    if (!onxi_mul_u64(q->depth, (uint64_t)ONXI_CONV_TILE * q->width, &q->columns_size) ||
        q->columns_size > UINT64_MAX / 64)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the window is too large");
    q->columns_size = (q->columns_size + 63u) & ~(uint64_t)63u;
    return ONX_OK;
}

/* `count` elements, `step` elements apart in `from`; a step of 0 repeats one. */
static void put_line(char *to, const char *from, uint64_t count, uint64_t step, uint32_t width)
{
    if (step == 1) {
        memcpy(to, from, count * width);
        return;
    }
    switch (width) {
    case 1:
        for (uint64_t i = 0; i < count; i++)
            to[i] = from[i * step];
        break;
    case 4:
        for (uint64_t i = 0; i < count; i++)
            memcpy(to + i * 4, from + i * step * 4, 4);
        break;
    default:
        for (uint64_t i = 0; i < count; i++)
            onxi_copy_item(to + i * width, from + i * step * width, width);
        break;
    }
}

/* Neighbouring positions along the last dim for one tap: positions before `low` and from `high` on are padding. */
typedef struct unfold_line {
    uint64_t count, low, high, step;
    int64_t at; /* of position `low` in the channel */
} unfold_line;

/* The first j with c + j * step >= end, at most `count`. */
static uint64_t reaches(int64_t c, int64_t step, int64_t end, uint64_t count)
{
    if (c >= end)
        return 0;
    const uint64_t j = ((uint64_t)(end - c) + (uint64_t)step - 1) / (uint64_t)step;
    return j < count ? j : count;
}

static unfold_line line_at(const onxi_window *w, const int64_t *pos, const int64_t *tap, uint64_t most)
{
    unfold_line l = { .count = 1, .high = 1, .step = 1 };
    if (!w->spatial)
        return l;
    const uint32_t last = w->spatial - 1;
    bool inside = true;
    for (uint32_t d = 0; d < last; d++) {
        const int64_t c = pos[d] * w->stride[d] - w->pad[d] + tap[d] * w->dilation[d];
        inside &= c >= 0 && c < w->in[d];
        l.at = l.at * w->in[d] + (inside ? c : 0);
    }
    const int64_t c = pos[last] * w->stride[last] - w->pad[last] + tap[last] * w->dilation[last];
    l.count = (uint64_t)(w->out[last] - pos[last]) < most ? (uint64_t)(w->out[last] - pos[last]) : most;
    l.step = (uint64_t)w->stride[last];
    l.low = inside ? reaches(c, w->stride[last], 0, l.count) : l.count;
    l.high = inside ? reaches(c, w->stride[last], w->in[last], l.count) : l.count;
    if (l.low < l.high)
        l.at = l.at * w->in[last] + c + (int64_t)l.low * w->stride[last];
    return l;
}

void onxi_unfold(const onxi_conv *q, const char *x, uint64_t first, uint64_t count, const char *padding, char *columns)
{
    const onxi_window *w = &q->window;
    int64_t pos[ONX_RANK_MAX], tap[ONX_RANK_MAX] = { 0 };
    for (uint64_t k = 0; k < w->kernel_size; k++) {
        uint64_t rest = first;
        for (uint32_t d = w->spatial; d-- > 0;) {
            pos[d] = (int64_t)(rest % (uint64_t)w->out[d]);
            rest /= (uint64_t)w->out[d];
        }
        for (uint64_t i = 0; i < count;) {
            const unfold_line l = line_at(w, pos, tap, count - i);
            for (uint64_t c = 0; c < q->in_each; c++) {
                char *to = columns + ((c * w->kernel_size + k) * ONXI_CONV_TILE + i) * q->width;
                put_line(to, padding, l.low, 0, q->width);
                if (l.low < l.high)
                    put_line(to + l.low * q->width, x + (c * w->in_size + (uint64_t)l.at) * q->width, l.high - l.low,
                             l.step, q->width);
                put_line(to + l.high * q->width, padding, l.count - l.high, 0, q->width);
            }
            i += l.count;
            for (uint32_t d = w->spatial; d-- > 0;) {
                pos[d] += d + 1 == w->spatial ? (int64_t)l.count : 1;
                if (pos[d] < w->out[d])
                    break;
                pos[d] = 0;
            }
        }
        for (uint32_t d = w->spatial; d-- > 0;) {
            if (++tap[d] < w->kernel[d])
                break;
            tap[d] = 0;
        }
    }
}

static void fill_bias(const onx_value *bias, uint64_t channel, uint64_t channels, char *y, uint64_t pitch,
                      uint64_t count, uint32_t width)
{
    for (uint64_t c = 0; c < channels; c++)
        for (uint64_t i = 0; i < count; i++)
            onxi_copy_item(y + (c * pitch + i) * width, (const char *)bias->data + (channel + c) * width, width);
}

void onxi_conv_multiply(const onx_work *work, const onxi_conv *q, const onx_value *weights, const onx_value *bias,
                        onx_value *y, uint64_t image, uint64_t start, uint64_t count, char *columns)
{
    const onxi_window *w = &q->window;
    uint64_t g = image % q->group;
    char *out = (char *)y->data + (image * q->out_each * w->out_size + start) * q->width;
    if (bias)
        fill_bias(bias, g * q->out_each, q->out_each, out, w->out_size, count, q->width);
    const onxi_gemm gemm = { .dtype = y->dtype,
                             .m = q->out_each,
                             .n = count,
                             .k = q->depth,
                             .a = (const char *)weights->data + g * q->out_each * q->depth * q->width,
                             .b = columns,
                             .c = out,
                             .a_row = (int64_t)q->depth,
                             .a_col = 1,
                             .b_row = ONXI_CONV_TILE,
                             .b_col = 1,
                             .c_row = (int64_t)w->out_size,
                             .accumulate = bias != NULL,
                             .work = work };
    onxi_gemm_run(&gemm, columns + q->columns_size);
}
