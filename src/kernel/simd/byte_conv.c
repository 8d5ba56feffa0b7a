/* byte_conv.c - 8-bit integer convolutions with channels last: windows are gathered into rows, which are multiplied by
 * packed weights. */
#include "kernel/simd/alone.h"
#include "kernel/simd/byte_columns.h"
#include "kernel/simd/byte_drive.h"

#include <math.h>

typedef struct conv_params {
    drive drive;
    uint64_t h, w, oh, ow, kh, kw, channels, c; /* channels of a group */
    uint64_t stride[2], dilation[2], pad[2];
    int32_t x_zero; /* its input index; -1: none */
} conv_params;

/* ---- gathering ---- */

static void gather_window(const conv_params *q, const uint8_t *image, uint64_t position, uint8_t padding, uint8_t *to)
{
    const int64_t y0 = (int64_t)(position / q->ow * q->stride[0]) - (int64_t)q->pad[0];
    const int64_t x0 = (int64_t)(position % q->ow * q->stride[1]) - (int64_t)q->pad[1];
    const int64_t reach = (int64_t)((q->kw - 1) * q->dilation[1]);
    const bool inside = x0 >= 0 && x0 + reach < (int64_t)q->w;
    const bool whole = inside && q->dilation[1] == 1 && q->c == q->channels;
    for (uint64_t i = 0; i < q->kh; i++) {
        const int64_t y = y0 + (int64_t)(i * q->dilation[0]);
        const uint8_t *line = image + (y * (int64_t)q->w + x0) * (int64_t)q->channels;
        if (y < 0 || y >= (int64_t)q->h) {
            fill_bytes(to, padding, q->kw * q->c);
            to += q->kw * q->c;
        } else if (whole) {
            copy_bytes(to, line, q->kw * q->c);
            to += q->kw * q->c;
        } else {
            for (uint64_t k = 0; k < q->kw; k++, to += q->c) {
                const int64_t x = x0 + (int64_t)(k * q->dilation[1]);
                if (x < 0 || x >= (int64_t)q->w)
                    fill_bytes(to, padding, q->c);
                else
                    copy_bytes(to, line + (int64_t)(k * q->dilation[1] * q->channels), q->c);
            }
        }
    }
}

static const uint8_t *rows(const void *params, const onx_work *work, uint64_t group, uint64_t first, uint64_t count,
                           uint8_t *space, uint64_t *lda)
{
    const conv_params *q = params;
    const uint8_t *x = (const uint8_t *)work->inputs[0]->data + group * q->c;
    const uint64_t positions = q->oh * q->ow, image = q->h * q->w * q->channels;
    const bool raise = q->drive.a_is_signed && raises;
    const uint8_t padding = q->x_zero >= 0 ? *(const uint8_t *)work->inputs[q->x_zero]->data : 0;
    if (q->kh * q->kw == 1 && q->stride[0] * q->stride[1] == 1 && q->c == q->channels && !q->pad[0] && !q->pad[1] &&
        q->oh == q->h && q->ow == q->w && dot_reads_alone(q->channels, count) && !raise) {
        *lda = q->channels;
        return x + first * q->channels;
    }
    for (uint64_t i = 0; i < count; i++) {
        gather_window(q, x + (first + i) / positions * image, (first + i) % positions, padding,
                      space + i * q->drive.lda);
        if (raise)
            raise_bytes(space + i * q->drive.lda, q->drive.slices * DEPTH);
    }
    return space;
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const conv_params *q = work->params;
    const onx_value *zero = q->x_zero >= 0 ? work->inputs[q->x_zero] : NULL;
    const drive_run r = { &q->drive, work, left_zero(zero, q->drive.a_is_signed), rows, q };
    drive_pieces(&r, first, last);
    return ONX_OK;
}

/* ---- preparing ---- */

static bool geometry_of(const onx_prepare *p, const onx_value *w, const onxi_window *win, conv_params *q)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const uint32_t n = win->spatial;
    if (n < 1 || n > 2 || w->dims[0] != y->dims[1] || x->dims[0] != y->dims[0])
        return false;
    q->h = q->oh = q->kh = q->stride[0] = q->dilation[0] = 1;
    q->pad[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = 2 - n + i;
        const int64_t extent = (win->kernel[i] - 1) * win->dilation[i] + 1;
        if (win->pad[i] < 0 || win->pad_end[i] < 0 || win->kernel[i] < 1 || win->in[i] > INT32_MAX ||
            win->pad[i] > INT32_MAX || win->in[i] + win->pad[i] + win->pad_end[i] < extent ||
            (win->in[i] + win->pad[i] + win->pad_end[i] - extent) / win->stride[i] + 1 != win->out[i])
            return false;
        q->stride[at] = (uint64_t)win->stride[i];
        q->dilation[at] = (uint64_t)win->dilation[i];
        q->pad[at] = (uint64_t)win->pad[i];
        *(at ? &q->w : &q->h) = (uint64_t)win->in[i];
        *(at ? &q->ow : &q->oh) = (uint64_t)win->out[i];
        *(at ? &q->kw : &q->kh) = (uint64_t)win->kernel[i];
    }
    q->channels = (uint64_t)x->dims[1];
    return true;
}

/* Reads the groups, if they have enough channels for tiles. */
static bool groups_of(const onx_prepare *p, const onx_value *w, conv_params *q, uint64_t *groups)
{
    enum { LEAST = 8 };
    const int64_t group = onx_prepare_int(p, "group");
    if (group < 1 || (int64_t)q->channels % group || w->dims[0] % group || w->dims[1] != (int64_t)q->channels / group)
        return false;
    q->c = q->channels / (uint64_t)group;
    *groups = (uint64_t)group;
    return group == 1 || (q->c >= LEAST && w->dims[0] / group >= LEAST);
}

static onx_status prepare(onx_prepare *p)
{
    const byte_operands *at = p->kernel->body;
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    const onx_value *w = byte_operand(p, at->b);
    const onx_layout *in, *out;
    onxi_window win;
    conv_params *q = ONXI_NEW(p->arena, conv_params);
    uint64_t groups;
    if (!q)
        return ONX_E_MEMORY;
    if (!p->want || !y || !y->count || !x->count || !w || !w->data || x->rank < 3 || w->rank != x->rank ||
        y->rank != x->rank || !byte_operands_fit(p, at, (uint64_t)w->dims[0], y->dtype))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_window_make(p, w->dims + 2, &win));
    if (!geometry_of(p, w, &win, q) || !groups_of(p, w, q, &groups) || !onxi_channels_last(p, x, &in) ||
        !onxi_channels_last(p, y, &out))
        return ONX_E_UNSUPPORTED;
    drive *d = &q->drive;
    q->x_zero = byte_operand(p, at->a_zero) ? at->a_zero : -1;
    d->a_is_signed = x->dtype == ONX_INT8;
    d->m = win.batch * win.out_size;
    d->k = q->c * q->kh * q->kw;
    d->groups = groups;
    d->finish.n = (uint64_t)w->dims[0] / groups;
    d->finish.y_step = (uint64_t)w->dims[0];
    const uint64_t taps = q->kh * q->kw;
    const byte_packing packing = { .n = d->finish.n,
                                   .taps = taps,
                                   .c = q->c,
                                   .n_step = q->c * taps,
                                   .tap_step = 1,
                                   .c_step = taps,
                                   .groups = groups,
                                   .is_unsigned = w->dtype == ONX_UINT8 };
    ONX_TRY(byte_finish(p, at, d));
    if (!drive_cut(p, d))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(drive_pack(p, (uint32_t)at->b, &packing, d));
    for (uint32_t i = 0; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->want[0] = in;
    if (d->finish.kind == AS_FLOATS)
        post_take_image(p, &d->finish.posts, out);
    p->outputs[0]->layout = out;
    p->params = q;
    return ONX_OK;
}

static const byte_operands linear = { AGAIN, 1, 2, 3, 4, 5, 6, 7, 8 };
static const byte_operands integer = { AS_SUMS, -1, 2, 1, -1, 3, -1, -1, -1 };

/* Is it a depthwise convolution that byte_alone.c supports? */
static bool suits_alone(const onx_prepare *p, const onx_value *x, const onx_value *w)
{
    const uint64_t taps = (uint64_t)onxi_product(w->dims, 2, w->rank);
    return are_alone(p, x, w) && taps <= TAPS_MAX &&
           alone_weights_fit(w, byte_operand(p, byte_by_rule.b_zero), (uint64_t)x->dims[1], taps);
}

/* The type of a convolution made by a rewrite rule: float, or 8-bit if it has an output scale; none if it cannot
 * replace the nodes. */
static onx_status types(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = byte_operand(p, byte_by_rule.b);
    int64_t dims[ONX_RANK_MAX];
    const uint32_t n = x->rank > 2 ? x->rank - 2 : 0;
    const int type = byte_rule_type(p, &byte_by_rule);
    conv_params q = { .channels = n ? (uint64_t)x->dims[1] : 0 };
    uint64_t groups;
    bool fits;
    if (!n || n > 2 || !w || !w->data || w->rank != x->rank || !x->count ||
        !byte_operands_fit(p, &byte_by_rule, (uint64_t)w->dims[0], type) || !byte_rule_axis(p, &byte_by_rule, 0) ||
        (!groups_of(p, w, &q, &groups) && !suits_alone(p, x, w)))
        return ONX_OK;
    ONX_TRY(onxi_window_dims(p, x, w->dims + 2, dims, &fits));
    dims[1] = w->dims[0];
    if (!fits)
        return ONX_OK;
    return onx_prepare_output(p, 0, (onx_dtype)type, x->rank, dims);
}

#define ROW(name, since_, flags_, body_, weights)                                                                      \
    .op = name, .since = since_, .dtypes = BYTES, .preference = 2, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,         \
    .packs = 1 << weights, .flags = ONX_KERNEL_LAYOUTS | flags_, .body = &body_, .prepare = prepare, .run = run
const onx_kernel ONXI_LEVELED(onxi_kernels_byte_conv)[] = {
    { ROW("QLinearConv", 10, 0, linear, 3) },
    { ROW("ConvInteger", 10, 0, integer, 1) },
    { ROW("QConv", 1, ONX_KERNEL_POST_OPS, byte_by_rule, 3), .domain = "onx", .types = types },
    { 0 },
};
