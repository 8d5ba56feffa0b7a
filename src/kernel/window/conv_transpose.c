/* conv_transpose.c - transposed convolution: multiplies the weights with a tile of input positions and adds each
 * product to the output positions that it contributes to. 16-bit floats are computed in float. */
#include "kernel/kernel.h"

enum {
    TILE = 256,   /* input positions per product */
    CHANNELS = 8, /* output channels per unit of work */
};

typedef struct deconv_params {
    onxi_window window;
    uint64_t group, in_each, out_each; /* channels per group */
    uint64_t blocks;                   /* blocks of output channels per group */
    int dtype;                         /* type of the computation */
    uint32_t width;
    bool narrow; /* the tensors have a narrower type */
    /* Offsets in a thread's workspace. Columns come first, then, for narrow types, inputs, weights and the output, and
     * last the workspace of the product. */
    uint64_t inputs_at, weights_at, output_at, pack_at;
} deconv_params;

/* Reserves a * b * c elements after `*total`, in whole cache lines. */
static bool reserve(uint64_t *total, uint64_t a, uint64_t b, uint64_t c)
{
    return onxi_mul_u64(a, b, &a) && onxi_mul_u64(a, c, &a) && a < UINT64_MAX - 63u &&
           onxi_add_u64(*total, (a + 63u) & ~(uint64_t)63u, total);
}

onx_status onxi_window_transpose(const onx_prepare *p, onxi_window *w)
{
    uint32_t extra_count, shape_count;
    const int64_t *extra = onx_prepare_ints(p, "output_padding", &extra_count);
    const int64_t *shape = onx_prepare_ints(p, "output_shape", &shape_count);
    onx_str mode = onx_prepare_text(p, "auto_pad");
    bool upper = onx_str_is(mode, "SAME_UPPER"), same = upper || onx_str_is(mode, "SAME_LOWER");
    if (extra && extra_count != w->spatial)
        return onx_prepare_fail(p, ONX_E_INVALID, "output_padding has %u values, expected %u", extra_count, w->spatial);
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t reach, extent = (w->kernel[i] > 0 ? w->kernel[i] - 1 : 0) * w->dilation[i] + 1;
        if (!onxi_mul_i64(w->in[i] > 0 ? w->in[i] - 1 : 0, w->stride[i], &reach) || reach > INT64_MAX / 8 ||
            (extra && (extra[i] < 0 || extra[i] > INT32_MAX)))
            return onx_prepare_fail(p, ONX_E_LIMIT, "the output reaches too far in dimension %u", i + 2);
        if (!shape && !same)
            continue;
        int64_t total = reach + extent + (extra ? extra[i] : 0);
        total = total > w->out[i] ? total - w->out[i] : 0;
        bool less_first = p->since < 11 ? !upper : upper; /* versions differ in where an odd pad goes */
        w->pad[i] = less_first ? total / 2 : total - total / 2;
    }
    return ONX_OK;
}

static onx_status check_operands(const onx_prepare *p, int64_t group)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *y = p->outputs[0];
    const onx_value *b = p->input_count > 2 ? p->inputs[2] : NULL;
    if (x->rank < 2 || w->rank != x->rank || w->dtype != x->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "weights of rank %u do not fit an input of rank %u", w->rank,
                                x->rank);
    int64_t channels;
    if (group < 1 || x->dims[1] % group || w->dims[0] != x->dims[1] || y->rank != x->rank || y->dims[0] != x->dims[0] ||
        !onxi_mul_i64(w->dims[1], group, &channels) || y->dims[1] != channels)
        return onx_prepare_fail(p, ONX_E_INVALID, "%lld channels, weights [%lld,%lld,...] and group %lld do not fit",
                                (long long)x->dims[1], (long long)w->dims[0], (long long)w->dims[1], (long long)group);
    if (b && (b->rank != 1 || b->dims[0] != channels || b->dtype != x->dtype))
        return onx_prepare_fail(p, ONX_E_INVALID, "the bias does not fit the weights");
    return ONX_OK;
}

static onx_status deconv_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1];
    deconv_params *q = ONXI_NEW(p->arena, deconv_params);
    if (!q)
        return ONX_E_MEMORY;
    int64_t group = onx_prepare_int(p, "group");
    ONX_TRY(check_operands(p, group));
    ONX_TRY(onxi_window_make(p, w->dims + 2, &q->window));
    ONX_TRY(onxi_window_transpose(p, &q->window));
    q->group = (uint64_t)group;
    q->in_each = (uint64_t)x->dims[1] / q->group;
    q->out_each = (uint64_t)w->dims[1];
    q->blocks = (q->out_each + CHANNELS - 1) / CHANNELS;
    q->narrow = x->dtype == ONX_FLOAT16 || x->dtype == ONX_BFLOAT16;
    q->dtype = q->narrow ? ONX_FLOAT : x->dtype;
    q->width = onx_dtype_bits(q->dtype) / 8;
    uint64_t depth, total = 0;
    bool fits = onxi_mul_u64(q->window.kernel_size, CHANNELS, &depth) && reserve(&total, depth, TILE, q->width);
    q->inputs_at = total;
    fits = fits && (!q->narrow || reserve(&total, q->in_each, TILE, q->width));
    q->weights_at = total;
    fits = fits && (!q->narrow || reserve(&total, q->in_each, depth, q->width));
    q->output_at = total;
    fits = fits && (!q->narrow || reserve(&total, q->window.out_size, CHANNELS, q->width));
    q->pack_at = total;
    if (!fits || !onxi_add_u64(total, onxi_gemm_workspace(q->dtype, depth, TILE, q->in_each), &p->thread_workspace))
        return onx_prepare_fail(p, ONX_E_LIMIT, "the window is too large");
    p->params = q;
    p->rows = p->outputs[0]->count ? q->window.batch * q->group * q->blocks : 0;
    p->grain = onxi_worth_a_thread(depth * q->in_each * onxi_product(p->inputs[0]->dims, 2, p->inputs[0]->rank));
    return ONX_OK;
}

/* Adds row `tap` of the columns, for input positions start .. start+count-1, to the output of one channel. */
#define FOLD(T)                                                                                                        \
    static void fold_##T(const onxi_window *w, const int64_t *tap, const T *columns, uint64_t start, uint64_t count,   \
                         T *y)                                                                                         \
    {                                                                                                                  \
        int64_t pos[ONX_RANK_MAX];                                                                                     \
        uint32_t last = w->spatial ? w->spatial - 1 : 0;                                                               \
        for (uint32_t d = w->spatial; d-- > 0;) {                                                                      \
            pos[d] = (int64_t)(start % (uint64_t)w->in[d]);                                                            \
            start /= (uint64_t)w->in[d];                                                                               \
        }                                                                                                              \
        for (uint64_t i = 0; i < count;) {                                                                             \
            int64_t at = 0;                                                                                            \
            bool inside = true;                                                                                        \
            for (uint32_t d = 0; d < last; d++) {                                                                      \
                int64_t c = pos[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d];                               \
                inside = inside && c >= 0 && c < w->out[d];                                                            \
                at = at * w->out[d] + (inside ? c : 0);                                                                \
            }                                                                                                          \
            uint64_t run = w->spatial ? (uint64_t)(w->in[last] - pos[last]) : 1;                                       \
            run = run < count - i ? run : count - i;                                                                   \
            if (inside && w->spatial) {                                                                                \
                int64_t c = pos[last] * w->stride[last] + tap[last] * w->dilation[last] - w->pad[last];                \
                for (uint64_t k = 0; k < run; k++, c += w->stride[last])                                               \
                    if (c >= 0 && c < w->out[last])                                                                    \
                        y[at * w->out[last] + c] += columns[i + k];                                                    \
            } else if (inside) {                                                                                       \
                *y += columns[i];                                                                                      \
            }                                                                                                          \
            i += run;                                                                                                  \
            if (w->spatial)                                                                                            \
                pos[last] = 0;                                                                                         \
            for (uint32_t d = last; d-- > 0;) {                                                                        \
                if (++pos[d] < w->in[d])                                                                               \
                    break;                                                                                             \
                pos[d] = 0;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }
FOLD(float)
FOLD(double)

/* Adds columns[channel * kernel + tap][position] of a tile to the planes of `channels` channels at y. */
static void fold_tile(const deconv_params *q, const void *columns, uint64_t start, uint64_t count, uint64_t channels,
                      void *y)
{
    const onxi_window *w = &q->window;
    for (uint64_t c = 0; c < channels; c++) {
        int64_t tap[ONX_RANK_MAX] = { 0 };
        for (uint64_t k = 0; k < w->kernel_size; k++) {
            uint64_t row = (c * w->kernel_size + k) * TILE, plane = c * w->out_size;
            if (q->dtype == ONX_DOUBLE)
                fold_double(w, tap, (const double *)columns + row, start, count, (double *)y + plane);
            else
                fold_float(w, tap, (const float *)columns + row, start, count, (float *)y + plane);
            for (uint32_t d = w->spatial; d-- > 0;) {
                if (++tap[d] < w->kernel[d])
                    break;
                tap[d] = 0;
            }
        }
    }
}

static void start_output(const deconv_params *q, const onx_value *bias, uint64_t channel, uint64_t channels, char *y)
{
    uint32_t stored = bias ? onx_dtype_bits(bias->dtype) / 8 : 0;
    for (uint64_t c = 0; c < channels; c++) {
        char *plane = y + c * q->window.out_size * q->width, value[8] = { 0 };
        if (bias)
            onx_convert((onx_dtype)q->dtype, value, (onx_dtype)bias->dtype,
                        (const char *)bias->data + (channel + c) * stored, 1, true);
        for (uint64_t i = 0; i < q->window.out_size; i++)
            memcpy(plane + i * q->width, value, q->width);
    }
}

/* Converts `rows` rows of `count` narrow elements with stride `pitch` to floats with stride `room`. */
static const char *widen(const onx_value *v, uint64_t at, uint64_t pitch, uint64_t rows, uint64_t count, uint64_t room,
                         char *out)
{
    for (uint64_t r = 0; r < rows; r++)
        onx_convert(ONX_FLOAT, out + r * room * sizeof(float), (onx_dtype)v->dtype,
                    (const char *)v->data + (at + r * pitch) * 2, count, true);
    return out;
}

static void deconv_block(const deconv_params *q, const onx_work *work, uint64_t n, uint64_t g, uint64_t block)
{
    const onxi_window *w = &q->window;
    const onx_value *x = work->inputs[0], *weights = work->inputs[1];
    const onx_value *bias = work->prepared->input_count > 2 ? work->inputs[2] : NULL;
    uint64_t first = block * CHANNELS, channels = q->out_each - first < CHANNELS ? q->out_each - first : CHANNELS;
    uint64_t channel = g * q->out_each + first, depth = channels * w->kernel_size;
    uint64_t out_at = (n * q->group * q->out_each + channel) * w->out_size;
    uint64_t x_at = (n * q->group + g) * q->in_each * w->in_size;
    uint64_t w_pitch = q->out_each * w->kernel_size;
    uint64_t w_at = g * q->in_each * w_pitch + first * w->kernel_size;
    char *space = work->thread_workspace;
    char *y = q->narrow ? space + q->output_at : (char *)work->outputs[0]->data + out_at * q->width;
    const char *a = q->narrow ? widen(weights, w_at, w_pitch, q->in_each, depth, depth, space + q->weights_at)
                              : (const char *)weights->data + w_at * q->width;
    start_output(q, bias, channel, channels, y);
    for (uint64_t start = 0; start < w->in_size && !onx_work_stops(work); start += TILE) {
        uint64_t count = w->in_size - start < TILE ? w->in_size - start : TILE;
        const char *b = q->narrow ? widen(x, x_at + start, w->in_size, q->in_each, count, TILE, space + q->inputs_at)
                                  : (const char *)x->data + (x_at + start) * q->width;
        onxi_gemm gemm = { .dtype = q->dtype,
                           .m = depth,
                           .n = count,
                           .k = q->in_each,
                           .a = a,
                           .b = b,
                           .c = space,
                           .a_row = 1,
                           .a_col = (int64_t)(q->narrow ? depth : w_pitch),
                           .b_row = (int64_t)(q->narrow ? TILE : w->in_size),
                           .b_col = 1,
                           .c_row = TILE,
                           .work = work };
        onxi_gemm_run(&gemm, space + q->pack_at);
        fold_tile(q, space, start, count, channels, y);
    }
    if (q->narrow)
        onx_convert((onx_dtype)x->dtype, (char *)work->outputs[0]->data + out_at * 2, ONX_FLOAT, y,
                    channels * w->out_size, true);
}

static onx_status deconv_run(onx_work *work, uint64_t first, uint64_t last)
{
    const deconv_params *q = work->params;
    for (uint64_t row = first; row < last; row++)
        deconv_block(q, work, row / q->blocks / q->group, row / q->blocks % q->group, row % q->blocks);
    return ONX_OK;
}

const onx_kernel onxi_kernels_conv_transpose[] = {
    { .op = "ConvTranspose", .since = 1, .dtypes = ONXI_FLOATS, .prepare = deconv_prepare, .run = deconv_run }, { 0 }
};
