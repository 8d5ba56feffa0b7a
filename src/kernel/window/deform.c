/* deform.c - DeformConv: convolution with windows whose taps are moved by offsets. Columns are sampled and then
 * multiplied with the weights as in kernel/window/conv.c. */
#include "kernel/core/conv.h"
#include "kernel/core/loops.h"

#include <math.h>

enum { AXES_MAX = 8 }; /* a sampled position has two neighbours along each axis */

typedef struct deform_params {
    onxi_conv conv;
    uint64_t offset_groups, channels_each; /* groups of channels that share offsets, and channels per group */
} deform_params;

/* The neighbours of a sampled position: indices in a channel, and interpolation weights. */
typedef struct taps {
    uint32_t count;
    uint64_t at[1 << AXES_MAX];
    double weight[1 << AXES_MAX];
} taps;

/* Computes column k of position `i` for channels first .. first+count-1 of the group. */
typedef void (*column_loop)(const void *x, uint64_t plane, const taps *t, double mask, uint64_t count, void *columns,
                            uint64_t pitch);
#define COLUMN(op, d, T, C, M, L, S)                                                                                   \
    static void op##_##d(const void *px, uint64_t plane, const taps *t, double mask, uint64_t count, void *columns,    \
                         uint64_t pitch)                                                                               \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *to = (T *)columns;                                                                                          \
        for (uint64_t c = 0; c < count; c++, x += plane, to += pitch) {                                                \
            double sum = 0;                                                                                            \
            for (uint32_t i = 0; i < t->count; i++)                                                                    \
                sum += t->weight[i] * (double)L(x[t->at[i]]);                                                          \
            *to = (T)S((C)(sum * mask));                                                                               \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(COLUMN, column)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const column_loop column_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, column) };

/* Checks for the shape [N, groups * each, output...]. */
static bool fits(const onx_value *v, const onx_value *y, uint64_t lines)
{
    if (v->rank != y->rank || v->dims[0] != y->dims[0] || (uint64_t)v->dims[1] != lines)
        return false;
    for (uint32_t d = 2; d < y->rank; d++)
        if (v->dims[d] != y->dims[d])
            return false;
    return true;
}

static onx_status deform_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *w = p->inputs[1], *offset = p->inputs[2];
    const onx_value *bias = onxi_operand(p->input_count, p->inputs, 3),
                    *mask = onxi_operand(p->input_count, p->inputs, 4);
    deform_params *q = ONXI_NEW(p->arena, deform_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_conv_make(p, w, bias, &q->conv));
    int64_t groups = onx_prepare_int(p, "offset_group");
    uint64_t taps_each, lines;
    if (groups < 1 || x->dims[1] % groups)
        return onx_prepare_fail(p, ONX_E_INVALID, "offset_group is %lld for %lld channels", (long long)groups,
                                (long long)x->dims[1]);
    if (q->conv.window.spatial > AXES_MAX)
        return onx_prepare_fail(p, ONX_E_LIMIT, "interpolation over %u axes is not supported", q->conv.window.spatial);
    if (!onxi_mul_u64(q->conv.window.kernel_size, (uint64_t)groups, &taps_each) ||
        !onxi_mul_u64(taps_each, q->conv.window.spatial, &lines) || !fits(offset, p->outputs[0], lines) ||
        (mask && !fits(mask, p->outputs[0], taps_each)))
        return onx_prepare_fail(p, ONX_E_INVALID, "offsets or mask do not fit a window of %llu elements",
                                (unsigned long long)q->conv.window.kernel_size);
    if (w->dtype != x->dtype || offset->dtype != x->dtype || (bias && bias->dtype != x->dtype) ||
        (mask && mask->dtype != x->dtype))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs differ in type");
    q->offset_groups = (uint64_t)groups;
    q->channels_each = (uint64_t)(x->dims[1] / groups);
    p->params = q;
    p->thread_workspace =
        q->conv.columns_size + onxi_gemm_workspace(x->dtype, q->conv.out_each, ONXI_CONV_TILE, q->conv.depth);
    p->rows = p->outputs[0]->count ? q->conv.window.batch * q->conv.group * q->conv.tiles : 0;
    p->grain =
        onxi_worth_a_thread((q->conv.window.out_size < ONXI_CONV_TILE ? q->conv.window.out_size : ONXI_CONV_TILE) *
                            q->conv.depth * q->conv.out_each);
    return ONX_OK;
}

/* Finds the neighbours of a position, axis by axis. Outside of the image, elements count as zero. */
static void find_taps(const onxi_window *w, const double *place, taps *t)
{
    t->count = 1;
    t->at[0] = 0;
    t->weight[0] = 1;
    for (uint32_t d = 0; d < w->spatial; d++) {
        double low = floor(place[d]), rest = place[d] - low;
        if (!(low >= -1 && low < (double)w->in[d])) {
            t->count = 0;
            return;
        }
        const bool there[2] = { low >= 0, low + 1 < (double)w->in[d] && rest > 0 };
        uint32_t kept = (uint32_t)there[0] + there[1];
        for (uint32_t i = t->count; i-- > 0;) /* from the end, so that no entry is overwritten before it is read */
            for (uint32_t k = kept; k-- > 0;) {
                bool high = k || !there[0];
                t->at[i * kept + k] = t->at[i] * (uint64_t)w->in[d] + (uint64_t)((int64_t)low + high);
                t->weight[i * kept + k] = t->weight[i] * (high ? rest : 1 - rest);
            }
        t->count *= kept;
    }
}

/* Samples the columns of positions start .. start+count-1 of group g of image n. */
static void sample_columns(const onx_work *work, const deform_params *q, uint64_t n, uint64_t g, uint64_t start,
                           uint64_t count, char *columns)
{
    const onxi_conv *c = &q->conv;
    const onxi_window *w = &c->window;
    const onx_value *x = work->inputs[0], *offset = work->inputs[2];
    const onx_value *mask = onxi_operand(work->prepared->input_count, work->inputs, 4);
    uint64_t first = g * c->in_each, last = first + c->in_each;
    taps t;
    if (first == last) /* no channels, so no offset group has any */
        return;
    for (uint64_t og = first / q->channels_each; og * q->channels_each < last; og++) {
        uint64_t from = og * q->channels_each > first ? og * q->channels_each : first;
        uint64_t to = (og + 1) * q->channels_each < last ? (og + 1) * q->channels_each : last;
        for (uint64_t k = 0; k < w->kernel_size; k++) {
            uint64_t line = (n * q->offset_groups + og) * w->kernel_size + k;
            for (uint64_t i = 0; i < count; i++) {
                double place[AXES_MAX];
                uint64_t rest = start + i, tap = k;
                for (uint32_t d = w->spatial; d-- > 0; rest /= (uint64_t)w->out[d], tap /= (uint64_t)w->kernel[d])
                    place[d] = (double)((int64_t)(rest % (uint64_t)w->out[d]) * w->stride[d] - w->pad[d] +
                                        (int64_t)(tap % (uint64_t)w->kernel[d]) * w->dilation[d]) +
                               onxi_value_number(offset, (line * w->spatial + d) * w->out_size + start + i);
                find_taps(w, place, &t);
                double by = mask ? onxi_value_number(mask, line * w->out_size + start + i) : 1;
                column_loops[x->dtype](
                    (const char *)x->data + (n * w->channels + from) * w->in_size * c->width, w->in_size, &t, by,
                    to - from, columns + (((from - first) * w->kernel_size + k) * ONXI_CONV_TILE + i) * c->width,
                    w->kernel_size * ONXI_CONV_TILE);
            }
        }
    }
}

static onx_status deform_run(onx_work *work, uint64_t first, uint64_t last)
{
    const deform_params *q = work->params;
    const onxi_conv *c = &q->conv;
    const onx_value *bias = onxi_operand(work->prepared->input_count, work->inputs, 3);
    char *columns = work->thread_workspace;
    for (uint64_t row = first; row < last; row++) {
        uint64_t g = row / c->tiles % c->group, n = row / c->tiles / c->group, start = row % c->tiles * ONXI_CONV_TILE;
        uint64_t count = c->window.out_size - start;
        count = count < ONXI_CONV_TILE ? count : ONXI_CONV_TILE;
        sample_columns(work, q, n, g, start, count, columns);
        onxi_conv_multiply(work, c, work->inputs[1], bias, work->outputs[0], n * c->group + g, start, count, columns);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_deform[] = {
    { .op = "DeformConv", .since = 19, .dtypes = ONXI_FLOATS, .prepare = deform_prepare, .run = deform_run }, { 0 }
};
