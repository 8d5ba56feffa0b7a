/* layer_norm.c - LayerNormalization, RMSNormalization, GroupNormalization and InstanceNormalization. */
#include "kernel/core/loops.h"
#include "kernel/core/norm.h"

#include <math.h>

#define MOMENTS(op, d, T, C, M, L, S)                                                                                  \
    static void op##_##d(const void *px, uint64_t n, bool about_zero, double *mean, double *second)                    \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        double sum = 0, squares = 0, m = 0;                                                                            \
        for (uint64_t i = 0; i < n && !about_zero; i++)                                                                \
            sum += (double)L(x[i]);                                                                                    \
        m = about_zero ? 0 : sum / (double)n;                                                                          \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            double v = (double)L(x[i]) - m;                                                                            \
            squares += v * v;                                                                                          \
        }                                                                                                              \
        *mean = m;                                                                                                     \
        *second = squares / (double)n;                                                                                 \
    }
#define AFFINE(op, d, T, C, M, L, S)                                                                                   \
    static void op##_##d(const void *px, void *py, uint64_t n, double mean, double scale, const void *pa, int64_t sa,  \
                         const void *pb, int64_t sb)                                                                   \
    {                                                                                                                  \
        const T *x = (const T *)px, *a = (const T *)pa, *b = (const T *)pb;                                            \
        T *y = (T *)py;                                                                                                \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            double v = ((double)L(x[i]) - mean) * scale;                                                               \
            v = (a ? v * (double)L(a[(int64_t)i * sa]) : v) + (b ? (double)L(b[(int64_t)i * sb]) : -0.0);              \
            y[i] = (T)S((C)v);                                                                                         \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(MOMENTS, moments)
ONXI_EACH_FLOAT(AFFINE, affine)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = { moments_##d, affine_##d, NULL },
static const onxi_norm_loops plain_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, ) };

typedef struct layer_params {
    onxi_lines lines;
    onxi_norm_loops loops;
    onxi_broadcast broadcast; /* of the input, scale and shift */
    /* Elements per line, and per segment of a line in which the strides of scale and shift are constant. */
    uint64_t line, segment;
    uint32_t width, shift; /* bytes per element; input index of the shift, 0: none */
    double epsilon;
    bool about_zero, mixed;
} layer_params;

/* Is the operand the same for each line of the dims from `axis` on? NULL is. */
static bool same_for_lines(const onx_value *v, const onx_value *x, uint32_t axis)
{
    const uint32_t inside = x->rank - axis;
    return !v || v->rank <= inside || onxi_product(v->dims, 0, v->rank - inside) == 1;
}

onx_status onxi_layer_norm_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const onxi_norm_loops *bodies = p->kernel->body;
    layer_params *q = ONXI_NEW(p->arena, layer_params);
    uint32_t axis, count = 2;
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &axis));
    q->loops = bodies[x->dtype];
    if (!q->loops.moments)
        return ONX_E_UNSUPPORTED;
    q->about_zero = p->op == ONXI_ID_RMSNormalization;
    q->mixed = q->about_zero && p->inputs[1]->dtype != x->dtype;
    if (q->mixed && !onxi_kernel_is_plain(p->kernel))
        return ONX_E_UNSUPPORTED;
    q->shift = !q->about_zero && p->input_count > 2 && p->inputs[2] ? 2 : 0;
    const onx_value *operands[3] = { x, p->inputs[1], q->shift ? p->inputs[2] : NULL };
    count += q->shift != 0;
    if (!onxi_broadcast_make(&q->broadcast, operands, count, x, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "scale and shift do not broadcast to the input");
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    q->width = onxi_element_size(x->dtype);
    q->line = onxi_product(x->dims, axis, x->rank);
    q->segment = (uint64_t)q->broadcast.inner < q->line ? (uint64_t)q->broadcast.inner : q->line;
    p->params = q;
    bool moments = (p->output_count > 1 && p->outputs[1]) || (p->output_count > 2 && p->outputs[2]);
    if (!moments && !q->mixed && same_for_lines(operands[1], x, axis) && same_for_lines(operands[2], x, axis))
        q->lines.count = q->line;
    p->rows = q->line || moments ? onxi_product(x->dims, 0, axis) : 0;
    p->grain = q->line ? 4096 / q->line + 1 : 1;
    return ONX_OK;
}

/* In RMSNormalization, the scale and therefore the output may have another type than the input. */
static void mixed_segment(const layer_params *q, const onx_work *work, uint64_t at, int64_t scale_at, int64_t step,
                          double factor)
{
    for (uint64_t i = 0; i < q->segment; i++) {
        double v = onxi_value_number(work->inputs[0], at + i) * factor;
        v *= onxi_value_number(work->inputs[1], (uint64_t)(scale_at + (int64_t)i * step));
        onxi_value_set_number(work->outputs[0], at + i, v);
    }
}

/* Lines of few elements that have the same scale and shift. */
static bool is_short(const layer_params *q)
{
    return ONXI_PLATFORM_ROOMY && q->loops.short_lines && q->lines.count && q->line <= ONXI_NORM_SHORT &&
           q->segment == q->line;
}

static void short_lines(const layer_params *q, const onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_broadcast *b = &q->broadcast;
    const uint64_t at = first * q->line * q->width;
    const onxi_norm_short lines = { .n = q->line,
                                    .about_zero = q->about_zero,
                                    .epsilon = q->epsilon,
                                    .a = work->inputs[1]->data,
                                    .step_a = b->step[1][b->rank - 1],
                                    .b = q->shift ? work->inputs[q->shift]->data : NULL,
                                    .step_b = q->shift ? b->step[2][b->rank - 1] : 0 };
    if (work->outputs[0])
        q->loops.short_lines(&lines, (const char *)work->inputs[0]->data + at, (char *)work->outputs[0]->data + at,
                             last - first);
}

onx_status onxi_layer_norm_run(onx_work *work, uint64_t first, uint64_t last)
{
    const layer_params *q = work->params;
    if (is_short(q)) {
        short_lines(q, work, first, last);
        return ONX_OK;
    }
    const onxi_broadcast *b = &q->broadcast;
    const uint64_t inner = (uint64_t)b->inner, outputs = work->prepared->output_count;
    const char *x = work->inputs[0]->data, *scale = work->inputs[1]->data;
    const char *shift = q->shift ? work->inputs[q->shift]->data : NULL;
    int64_t step_a = b->step[1][b->rank - 1], step_b = q->shift ? b->step[2][b->rank - 1] : 0;
    for (uint64_t row = first; row < last; row++) {
        double mean, second;
        q->loops.moments(x + row * q->line * q->width, q->line, q->about_zero, &mean, &second);
        double factor = 1 / sqrt(second + q->epsilon);
        for (uint64_t at = row * q->line; at < (row + 1) * q->line && work->outputs[0]; at += q->segment) {
            int64_t from[ONXI_BROADCAST_MAX] = { 0 }, into = (int64_t)(at % inner);
            onxi_broadcast_offsets(b, at / inner, from);
            if (q->mixed) {
                mixed_segment(q, work, at, from[1] + into * step_a, step_a, factor);
                continue;
            }
            q->loops.affine(x + at * q->width, (char *)work->outputs[0]->data + at * q->width, q->segment, mean, factor,
                            scale + (from[1] + into * step_a) * q->width, step_a,
                            shift ? shift + (from[2] + into * step_b) * q->width : NULL, step_b);
        }
        if (outputs > 1 && work->outputs[1])
            onxi_value_set_number(work->outputs[1], row, mean);
        if (outputs > 2 && work->outputs[2])
            onxi_value_set_number(work->outputs[2], row, factor);
    }
    return ONX_OK;
}

typedef struct group_params {
    onxi_norm_loops loops;
    uint64_t channels, groups, plane;
    uint64_t per_number; /* channels that share a scale */
    uint32_t width;
    double epsilon;
} group_params;

uint64_t onxi_group_norm_each(const onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    if (p->op == ONXI_ID_GroupNormalization && p->since < 21) /* a number per group */
        return 0;
    if (p->output_count < 1 || !p->outputs[0] || x->rank < 2 || !x->count)
        return 0;
    for (uint32_t i = 1; i < 3; i++) {
        const onx_value *v = onxi_operand(p->input_count, p->inputs, i);
        if (!v || v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT || v->count != (uint64_t)x->dims[1])
            return 0;
    }
    const int64_t groups = p->op == ONXI_ID_InstanceNormalization ? x->dims[1] : onx_prepare_int(p, "num_groups");
    return groups < 1 || x->dims[1] % groups ? 0 : (uint64_t)(x->dims[1] / groups);
}

/* InstanceNormalization: a group per channel. GroupNormalization has a scale per group before version 21. */
onx_status onxi_group_norm_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const onxi_norm_loops *bodies = p->kernel->body;
    group_params *q = ONXI_NEW(p->arena, group_params);
    if (!q)
        return ONX_E_MEMORY;
    q->loops = bodies[x->dtype];
    if (!q->loops.moments)
        return ONX_E_UNSUPPORTED;
    if (x->rank < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is a scalar");
    bool instance = p->op == ONXI_ID_InstanceNormalization;
    q->channels = x->rank > 1 ? (uint64_t)x->dims[1] : 1;
    q->plane = x->rank > 2 ? onxi_product(x->dims, 2, x->rank) : 1;
    int64_t groups = instance ? (int64_t)q->channels : onx_prepare_int(p, "num_groups");
    if (!instance && (groups < 1 || q->channels % (uint64_t)groups))
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu channels do not divide into %lld groups",
                                (unsigned long long)q->channels, (long long)groups);
    q->groups = (uint64_t)groups;
    q->per_number = !instance && p->since < 21 && groups ? q->channels / q->groups : 1;
    uint64_t numbers = q->per_number ? q->channels / q->per_number : 0;
    for (uint32_t i = 1; i < 3; i++)
        if (p->inputs[i]->count != numbers)
            return onx_prepare_fail(p, ONX_E_INVALID, "input %u has %llu elements, expected %llu", i,
                                    (unsigned long long)p->inputs[i]->count, (unsigned long long)numbers);
    q->epsilon = (double)onx_prepare_float(p, "epsilon");
    q->width = onxi_element_size(x->dtype);
    p->params = q;
    p->rows = x->count ? (uint64_t)x->dims[0] * q->groups : 0;
    return ONX_OK;
}

onx_status onxi_group_norm_run(onx_work *work, uint64_t first, uint64_t last)
{
    const group_params *q = work->params;
    const uint64_t each = q->channels / q->groups, line = each * q->plane;
    for (uint64_t row = first; row < last; row++) {
        const char *x = (const char *)work->inputs[0]->data + row * line * q->width;
        char *y = (char *)work->outputs[0]->data + row * line * q->width;
        double mean, second;
        q->loops.moments(x, line, false, &mean, &second);
        double factor = 1 / sqrt(second + q->epsilon);
        for (uint64_t c = 0; c < each; c++) {
            uint64_t number = (row % q->groups * each + c) / q->per_number * q->width, at = c * q->plane * q->width;
            q->loops.affine(x + at, y + at, q->plane, mean, factor, (const char *)work->inputs[1]->data + number, 0,
                            (const char *)work->inputs[2]->data + number, 0);
        }
    }
    return ONX_OK;
}

static onx_status like_input(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    return onx_prepare_output(p, 0, (onx_dtype)x->dtype, x->rank, x->dims);
}

#define ROW(name, version, kind)                                                                                       \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_FLOATS, .flags = ONX_KERNEL_IN_PLACE, .body = plain_loops,        \
        .prepare = onxi_##kind##_norm_prepare, .run = onxi_##kind##_norm_run                                           \
    }
const onx_kernel onxi_kernels_layer_norm[] = { ROW("LayerNormalization", 17, layer),
                                               ROW("RMSNormalization", 23, layer),
                                               ROW("GroupNormalization", 18, group),
                                               { .op = "InstanceNormalization",
                                                 .since = 1,
                                                 .dtypes = ONXI_FLOATS,
                                                 .flags = ONX_KERNEL_IN_PLACE,
                                                 .body = plain_loops,
                                                 .prepare = onxi_group_norm_prepare,
                                                 .run = onxi_group_norm_run,
                                                 .types = like_input },
                                               { 0 } };
