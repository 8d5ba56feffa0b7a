/* bytes.c - com.microsoft kernels on 8-bit quantized tensors: elementwise sums and products, functions of one operand
 * by a table of all 256 bytes, and global means. Results equal those of the function bodies of these operators
 * (op/microsoft/quantized.c), except that sums, products and means close to a tie are rounded as in onnxruntime. */
#include "kernel/core/bytes.h"
#include "kernel/core/blocked.h"
#include "kernel/core/quantize.h"
#include "kernel/microsoft/microsoft.h"

#include <math.h>

#if ONXI_PLATFORM_ROOMY /* browsers run the function bodies: their module has no room for these kernels */
enum { BYTES = 256, PIECE = 1 << 14 };

static onx_status check_meaning(const onx_prepare *p, uint32_t scale_at, uint32_t zero_at, int dtype)
{
    const onx_value *scale = onxi_operand(p->input_count, p->inputs, scale_at),
                    *zero = onxi_operand(p->input_count, p->inputs, zero_at);
    if (!scale || scale->dtype != ONX_FLOAT || scale->count != 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "input %u is not a scale: a single float", scale_at);
    if (zero && (zero->dtype != dtype || zero->count != 1))
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "input %u is not a zero point: a single element of the type of the quantized tensor",
                                zero_at);
    return ONX_OK;
}

static const onx_value *input(const onx_work *work, uint32_t i)
{
    return onxi_operand(work->prepared->input_count, work->inputs, i);
}

/* Quantizes a value: rounds to nearest even and saturates. */
static uint8_t byte_of(float v, const onxi_byte_meaning *m)
{
    const float low = (float)-m->zero, high = (float)(255 - m->zero);
    float q = v / m->scale;
    q = q > low ? q : low; /* NaN becomes the least value */
    q = q < high ? q : high;
    return (uint8_t)((uint8_t)((int32_t)rintf(q) + m->zero) ^ m->flip);
}

static float number_of(uint8_t x, const onxi_byte_meaning *m)
{
    return (float)((int32_t)(uint8_t)(x ^ m->flip) - m->zero) * m->scale;
}

/* ---- QLinearAdd, QLinearMul ---- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

typedef struct pair_params {
    onxi_broadcast broadcast;
    bool flat; /* both operands have the shape and order of the result */
    uint64_t count;
} pair_params;

/* If an operand has a blocked layout, and both are images of the same shape, the other operand and the result get that
 * layout as well. */
static void keep_layout(onx_prepare *p)
{
    const onx_value *a = p->inputs[A], *b = p->inputs[B];
    const uint32_t block = onxi_blocked_of(a) ? onxi_blocked_of(a) : onxi_blocked_of(b);
    const onx_layout *in = block ? onxi_blocked_layout(p->arena, onxi_blocked_of(a) ? b : a, block) : NULL;
    const onx_layout *out = in ? onxi_blocked_layout(p->arena, p->outputs[0], block) : NULL;
    if (!out)
        return;
    p->want[A] = onxi_blocked_of(a) ? a->layout : in;
    p->want[B] = onxi_blocked_of(a) ? in : b->layout;
    p->outputs[0]->layout = out;
}

static onx_status pair_types(onx_prepare *p)
{
    const onx_value *a = p->inputs[A], *b = onxi_operand(p->input_count, p->inputs, B);
    int64_t dims[ONX_RANK_MAX];
    if (!b || b->kind != ONX_VALUE_TENSOR)
        return ONX_OK;
    const uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t d = 0; d < rank; d++) {
        const int64_t left = d + a->rank < rank ? 1 : a->dims[d + a->rank - rank],
                      right = d + b->rank < rank ? 1 : b->dims[d + b->rank - rank];
        if (left != right && left != 1 && right != 1)
            return onx_prepare_fail(p, ONX_E_INVALID, "the operands do not broadcast: dimension %u is %lld and %lld", d,
                                    (long long)left, (long long)right);
        dims[d] = left == 1 ? right : left;
    }
    return onx_prepare_output(p, 0, (onx_dtype)a->dtype, rank, dims);
}

/* If one operand is an image with channels last and the other has at most one element per channel, the kernel runs
 * pixel by pixel and keeps the layout. For sums the image must be operand A: the rounding of a sum depends on which
 * operand is broadcast along a row, and this must not depend on the layout. */
static void take_channels(onx_prepare *p, pair_params *q)
{
    const onx_value *y = p->outputs[0];
    const uint32_t big = p->inputs[A]->count == y->count ? A : B;
    const onx_value *image = p->inputs[big], *few = p->inputs[big == A ? B : A];
    if (image->rank != y->rank || few->rank != y->rank || y->rank < 3 || !y->count || image->count != y->count ||
        onxi_product(few->dims, 2, few->rank) != 1 || onxi_blocked_of(image) != image->dims[1] ||
        (big == B && !p->kernel->body))
        return;
    const onx_layout *layout = onxi_blocked_layout(p->arena, y, (uint32_t)y->dims[1]);
    int64_t whole_dims[] = { y->dims[0], (int64_t)onxi_product(y->dims, 2, y->rank), y->dims[1] };
    int64_t few_dims[] = { few->dims[0], 1, few->dims[1] };
    onx_value whole = { .rank = 3, .dims = whole_dims }, part = { .rank = 3, .dims = few_dims };
    const onx_value *operands[] = { big == A ? &whole : &part, big == A ? &part : &whole };
    onxi_broadcast broadcast;
    if (!layout || !onxi_broadcast_make(&broadcast, operands, 2, &whole, NULL))
        return;
    q->broadcast = broadcast;
    p->want[big] = image->layout;
    p->outputs[0]->layout = layout;
}

/* The output type for the rewrite rules of nodes between DequantizeLinear and QuantizeLinear. */
static onx_status pair_types_by_rule(onx_prepare *p)
{
    const onx_value *a = p->inputs[A], *b = onxi_operand(p->input_count, p->inputs, B);
    if (!onxi_is_byte(a) || !onxi_is_byte(b) || a->dtype != b->dtype ||
        !onxi_byte_has_meaning(p, A_SCALE, A_ZERO, a->dtype) || !onxi_byte_has_meaning(p, B_SCALE, B_ZERO, a->dtype) ||
        !onxi_byte_result_has_meaning(p, Y_SCALE, Y_ZERO, a->dtype))
        return ONX_OK;
    return pair_types(p);
}

static onx_status pair_prepare(onx_prepare *p)
{
    const onx_value *a = p->inputs[A], *b = onxi_operand(p->input_count, p->inputs, B), *y = p->outputs[0];
    pair_params *q = ONXI_NEW(p->arena, pair_params);
    if (!q)
        return ONX_E_MEMORY;
    if (!b || b->dtype != a->dtype || y->dtype != a->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the operands are not of one type");
    ONX_TRY(check_meaning(p, A_SCALE, A_ZERO, a->dtype));
    ONX_TRY(check_meaning(p, B_SCALE, B_ZERO, a->dtype));
    ONX_TRY(check_meaning(p, Y_SCALE, Y_ZERO, a->dtype));
    const onx_value *operands[] = { a, b };
    if (!onxi_broadcast_make(&q->broadcast, operands, 2, y, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the operands do not broadcast to the result");
    q->count = y->count;
    q->flat = a->count == y->count && b->count == y->count;
    for (uint32_t i = 0; p->want && i < p->operand_count; i++)
        p->want[i] = NULL;
    if (p->want && q->flat && a->rank == y->rank && b->rank == y->rank && y->count)
        keep_layout(p);
    else if (p->want)
        take_channels(p, q);
    p->params = q;
    p->rows = q->flat ? (q->count + PIECE - 1) / PIECE : y->count ? q->broadcast.outer : 0;
    p->grain = onxi_worth_a_thread((q->flat ? PIECE : (uint64_t)q->broadcast.inner) * (ONXI_COST_ELEMENT / 2));
    return ONX_OK;
}

static onx_status pair_run(onx_work *work, uint64_t first, uint64_t last)
{
    const pair_params *q = work->params;
    const onxi_byte_loops *l = onxi_byte_loops_best();
    const onx_value *a = work->inputs[A], *b = work->inputs[B];
    uint8_t *y = work->outputs[0]->data;
    onxi_byte_pair t = { .rows = 1,
                         .times = work->prepared->kernel->body != NULL,
                         .of = { onxi_byte_meaning_of(input(work, A_SCALE), input(work, A_ZERO), a->dtype),
                                 onxi_byte_meaning_of(input(work, B_SCALE), input(work, B_ZERO), a->dtype),
                                 onxi_byte_meaning_of(input(work, Y_SCALE), input(work, Y_ZERO), a->dtype) } };
    int64_t at[ONXI_BROADCAST_MAX];
    if (first == last)
        return ONX_OK;
    if (q->flat) {
        const uint64_t from = first * PIECE, end = last * PIECE < q->count ? last * PIECE : q->count;
        t.a = (const uint8_t *)a->data + from;
        t.b = (const uint8_t *)b->data + from;
        t.y = y + from;
        t.count = end - from;
        t.a_step = t.b_step = true;
        l->pair(&t);
        return ONX_OK;
    }
    const onxi_broadcast *s = &q->broadcast;
    t.count = (uint64_t)s->inner;
    t.a_step = s->rank && s->step[0][s->rank - 1];
    t.b_step = s->rank && s->step[1][s->rank - 1];
    const uint64_t together = s->rank > 1 ? (uint64_t)s->dims[s->rank - 2] : 1;
    t.a_next = s->rank > 1 ? s->step[0][s->rank - 2] : 0;
    t.b_next = s->rank > 1 ? s->step[1][s->rank - 2] : 0;
    for (uint64_t row = first; row < last; row += t.rows) {
        t.rows = together - row % together;
        t.rows = t.rows < last - row ? t.rows : last - row;
        onxi_broadcast_offsets(s, row, at);
        t.a = (const uint8_t *)a->data + at[0];
        t.b = (const uint8_t *)b->data + at[1];
        t.y = y + row * t.count;
        l->pair(&t);
    }
    return ONX_OK;
}

/* ---- QLinearSigmoid, QLinearLeakyRelu ---- */

enum { X, X_SCALE, X_ZERO, Z_SCALE, Z_ZERO };

typedef struct table_params {
    bool leaky;
    float alpha;
    uint64_t count;
} table_params;

static onx_status table_types(onx_prepare *p)
{
    const onx_value *x = p->inputs[X];
    return onx_prepare_output(p, 0, (onx_dtype)x->dtype, x->rank, x->dims);
}

static onx_status table_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[X], *y = p->outputs[0];
    table_params *q = ONXI_NEW(p->arena, table_params);
    if (!q)
        return ONX_E_MEMORY;
    if (y->dtype != x->dtype || y->count != x->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output is not like the input");
    ONX_TRY(check_meaning(p, X_SCALE, X_ZERO, x->dtype));
    ONX_TRY(check_meaning(p, Z_SCALE, Z_ZERO, x->dtype));
    q->leaky = p->kernel->body != NULL;
    q->alpha = q->leaky ? onx_prepare_float(p, "alpha") : 0;
    q->count = x->count;
    for (uint32_t i = 0; p->want && i < p->operand_count; i++)
        p->want[i] = NULL;
    const uint32_t block = p->want ? onxi_blocked_of(x) : 0;
    const onx_layout *layout = block ? onxi_blocked_layout(p->arena, y, block) : NULL;
    if (layout) {
        p->want[X] = x->layout;
        p->outputs[0]->layout = layout;
    }
    p->params = q;
    p->rows = (q->count + PIECE - 1) / PIECE;
    p->grain = onxi_worth_a_thread(PIECE * (ONXI_COST_ELEMENT / 2));
    return ONX_OK;
}

static onx_status table_run(onx_work *work, uint64_t first, uint64_t last)
{
    const table_params *q = work->params;
    const int dtype = work->inputs[X]->dtype;
    const onxi_byte_meaning in = onxi_byte_meaning_of(input(work, X_SCALE), input(work, X_ZERO), dtype),
                            out = onxi_byte_meaning_of(input(work, Z_SCALE), input(work, Z_ZERO), dtype);
    const uint64_t from = first * PIECE, end = last * PIECE < q->count ? last * PIECE : q->count;
    const uint8_t *x = work->inputs[X]->data;
    uint8_t *y = work->outputs[0]->data, table[BYTES];
    for (unsigned i = 0; i < BYTES; i++) {
        const float v = number_of((uint8_t)i, &in);
        table[i] = byte_of(q->leaky ? (v < 0 ? v * q->alpha : v) : 1 / (1 + expf(-v)), &out);
    }
    onxi_byte_look_up(table, x + from, end - from, y + from);
    return ONX_OK;
}

/* ---- QLinearGlobalAveragePool ---- */

typedef struct mean_params {
    bool last;
    uint64_t channels, pixels, sums; /* sums: number of adjacent channels summed together */
} mean_params;

/* Only QLinearGlobalAveragePool has this attribute; QMean always has channels second. */
static bool is_last(const onx_prepare *p)
{
    return onxi_attrs_int(p->attrs, "channels_last") != 0;
}

static onx_status mean_types(onx_prepare *p)
{
    const onx_value *x = p->inputs[X];
    const bool last = is_last(p);
    int64_t dims[ONX_RANK_MAX];
    if (x->rank < 3)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is not an image");
    for (uint32_t d = 0; d < x->rank; d++)
        dims[d] = d == 0 || d == (last ? x->rank - 1 : 1) ? x->dims[d] : 1;
    return onx_prepare_output(p, 0, (onx_dtype)x->dtype, x->rank, dims);
}

static onx_status mean_types_by_rule(onx_prepare *p)
{
    const onx_value *x = p->inputs[X];
    if (!onxi_is_byte(x) || x->rank < 3 || !onxi_byte_has_meaning(p, X_SCALE, X_ZERO, x->dtype) ||
        !onxi_byte_result_has_meaning(p, Z_SCALE, Z_ZERO, x->dtype) ||
        onxi_product(x->dims, 2, x->rank) > UINT32_MAX / BYTES)
        return ONX_OK;
    return mean_types(p);
}

static onx_status mean_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[X], *y = p->outputs[0];
    mean_params *q = ONXI_NEW(p->arena, mean_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->rank < 3 || y->dtype != x->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the input is not an image");
    ONX_TRY(check_meaning(p, X_SCALE, X_ZERO, x->dtype));
    ONX_TRY(check_meaning(p, Z_SCALE, Z_ZERO, x->dtype));
    q->last = is_last(p);
    q->channels = (uint64_t)x->dims[q->last ? x->rank - 1 : 1];
    q->pixels = q->last ? onxi_product(x->dims, 1, x->rank - 1) : onxi_product(x->dims, 2, x->rank);
    if (q->pixels > UINT32_MAX / BYTES || y->count != (uint64_t)x->dims[0] * q->channels)
        return onx_prepare_fail(p, ONX_E_LIMIT, "an image of %llu pixels is too large", (unsigned long long)q->pixels);
    for (uint32_t i = 0; p->want && i < p->operand_count; i++)
        p->want[i] = NULL;
    if (p->want && !q->last && onxi_blocked_of(x) && onxi_blocked_of(x) == q->channels) {
        p->want[X] = x->layout; /* results are equal in all layouts */
        q->last = true;
    }
    q->sums = q->channels < BYTES ? q->channels : BYTES;
    p->params = q;
    p->rows = y->count ? (uint64_t)x->dims[0] * ((q->channels + BYTES - 1) / BYTES) : 0;
    p->grain = onxi_worth_a_thread(q->sums * q->pixels * 2);
    return ONX_OK;
}

/* A row of work is up to BYTES channels of an image. */
static onx_status mean_run(onx_work *work, uint64_t first, uint64_t last)
{
    const mean_params *q = work->params;
    const int dtype = work->inputs[X]->dtype;
    const onxi_byte_meaning in = onxi_byte_meaning_of(input(work, X_SCALE), input(work, X_ZERO), dtype),
                            out = onxi_byte_meaning_of(input(work, Z_SCALE), input(work, Z_ZERO), dtype);
    const float by = in.scale / (out.scale * (float)q->pixels);
    const uint64_t pieces = (q->channels + BYTES - 1) / BYTES;
    const onxi_byte_loops *l = onxi_byte_loops_best();
    for (uint64_t row = first; row < last; row++) {
        uint32_t sums[BYTES] = { 0 };
        const uint64_t c0 = row % pieces * BYTES, n = q->channels - c0 < BYTES ? q->channels - c0 : BYTES;
        const uint64_t image = row / pieces * q->channels;
        const uint8_t *x = (const uint8_t *)work->inputs[X]->data + image * q->pixels;
        uint8_t *y = (uint8_t *)work->outputs[0]->data + image + c0;
        for (uint64_t i = 0; q->last && i < q->pixels; i++)
            l->total(x + i * q->channels + c0, in.flip, n, sums);
        for (uint64_t c = 0; !q->last && c < n; c++)
            sums[c] = l->sum(x + (c0 + c) * q->pixels, in.flip, q->pixels);
        for (uint64_t c = 0; c < n; c++) {
            const float all = (float)((int64_t)sums[c] - (int64_t)q->pixels * in.zero);
            const float whole = onxi_requantized(all, by, (float)-out.zero, (float)(255 - out.zero));
            y[c] = (uint8_t)((uint8_t)((int32_t)whole + out.zero) ^ out.flip);
        }
    }
    return ONX_OK;
}

static const bool second = true; /* selects the second of two operators that share a row */

#define ROW(name, from, what, types_, body_, ...)                                                                      \
    {                                                                                                                  \
        .op = name, .domain = from, .since = 1, .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8),          \
        .body = body_, .prepare = what##_prepare, .run = what##_run, .types = types_, __VA_ARGS__                      \
    }
#define BOTH(name, from, what, types, body)                                                                            \
    ROW(name, from, what, types, body, .preference = 1, .flags = ONX_KERNEL_LAYOUTS, .variant = "channels"),           \
        ROW(name, from, what, types, body, .preference = 0)
#define ROWS(name, what, body)    BOTH(name, "com.microsoft", what, what##_types, body)
#define BY_RULE(name, what, body) BOTH(name, "onx", what, what##_types_by_rule, body)
#endif

/* Single nodes that run outside of a session use the rows without layouts. */
const onx_kernel onxi_kernels_microsoft_bytes[] = {
#if ONXI_PLATFORM_ROOMY
    ROWS("QLinearAdd", pair, NULL),
    ROWS("QLinearMul", pair, &second),
    ROWS("QLinearSigmoid", table, NULL),
    ROWS("QLinearLeakyRelu", table, &second),
    ROWS("QLinearGlobalAveragePool", mean, NULL),
    BY_RULE("QAdd", pair, NULL),
    BY_RULE("QMul", pair, &second),
    BY_RULE("QMean", mean, NULL),
#endif
    { 0 },
};
