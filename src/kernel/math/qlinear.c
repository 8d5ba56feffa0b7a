/* qlinear.c - MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv: subtracts the zero points of the operands,
 * multiplies in 32-bit integers (8-bit floats: in float) and, for QLinear, quantizes the result. */
#include "kernel/core/conv.h"
#include "kernel/core/quantize.h"

#include <math.h>

enum { ROWS_EACH = 96, COLUMNS_EACH = 256 }; /* tile of the output of a matrix product */

/* Multiplies operands from which the zero points have been subtracted: int32, or float for 8-bit floats. */
static void multiply(const onx_kernel *kernel, const onxi_gemm *g, void *pack)
{
    const onxi_quantize_loops *fast = onxi_quantize_body_of(kernel)->fast;
    if (fast && g->dtype == ONX_INT32)
        fast->product(g, pack);
    else
        onxi_gemm_run(g, pack);
}

static uint64_t multiply_workspace(const onx_kernel *kernel, uint64_t m, uint64_t n, uint64_t k)
{
    const onxi_quantize_loops *fast = onxi_quantize_body_of(kernel)->fast;
    const uint64_t plain = onxi_gemm_workspace(ONX_INT32, m, n, k), own = fast ? fast->product_workspace() : 0;
    return plain > own ? plain : own;
}

/* ---- zero points and scales ---- */

/* Checks that v has one element, one per row (or column) of a matrix, or one per row of all matrices. */
static onx_status check_vector(const onx_prepare *p, const onx_value *v, uint64_t lines, uint64_t matrices,
                               const char *what)
{
    if (!v || v->count == 1 || v->count == lines || v->count == lines * matrices)
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu %s for %llu lines", (unsigned long long)v->count, what,
                            (unsigned long long)lines);
}

static double vector_at(const onx_value *v, uint64_t lines, uint64_t matrix, uint64_t line, double fallback)
{
    if (!v)
        return fallback;
    const uint64_t at = v->count == 1 ? 0 : v->count == lines ? line : matrix * lines + line;
#if ONXI_PLATFORM_ROOMY /* the general conversion takes as long as some vectors of products */
    if (v->dtype == ONX_FLOAT)
        return (double)((const float *)v->data)[at];
    if (v->dtype == ONX_INT8 || v->dtype == ONX_UINT8)
        return onxi_zero_point(v->dtype, (const char *)v->data + at);
#endif
    return onxi_value_number(v, at);
}

/* Rows of `columns` elements, from which zero points are subtracted and which are packed as int32 or float. `line` is
 * the index of the zero point of the first row, or of the first column if zero points are per column. */
typedef struct centred {
    const onx_value *v, *zero;
    uint64_t first, stride, rows, columns; /* elements */
    uint64_t lines, matrix, line;
    bool by_column;
    bool floats;
} centred;

#define CENTRE(T, O)                                                                                                   \
    for (uint64_t i = 0; i < c->columns; i++)                                                                          \
    ((O *)to)[i] = (O)((O)((const T *)c->v->data)[from + i] - (O)zero)

static void centre_row(const centred *c, uint64_t from, double zero, void *to)
{
    if (c->floats) {
        float *out = to;
        onx_convert(ONX_FLOAT, to, (onx_dtype)c->v->dtype, (const char *)c->v->data + from, c->columns, true);
        for (uint64_t i = 0; i < c->columns; i++)
            out[i] -= (float)zero;
    } else if (c->v->dtype == ONX_INT8) {
        CENTRE(int8_t, int32_t);
    } else {
        CENTRE(uint8_t, int32_t);
    }
}

/* Zero points per column: at most COLUMNS_EACH. */
static void centre(const centred *c, void *to)
{
    const bool each = c->by_column && c->zero && c->zero->count > 1;
    double zeros[COLUMNS_EACH] = { 0 };
    for (uint64_t i = 0; each && i < c->columns; i++)
        zeros[i] = vector_at(c->zero, c->lines, c->matrix, c->line + i, 0);
    for (uint64_t r = 0; r < c->rows; r++) {
        uint64_t from = c->first + r * c->stride;
        char *row = (char *)to + r * c->columns * 4;
        centre_row(c, from, each ? 0 : vector_at(c->zero, c->lines, c->matrix, c->line + r, 0), row);
        for (uint64_t i = 0; each && i < c->columns; i++) {
            if (c->floats)
                ((float *)(void *)row)[i] -= (float)zeros[i];
            else
                ((int32_t *)(void *)row)[i] -= (int32_t)zeros[i];
        }
    }
}

#define BYTES (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8))
#define SMALL                                                                                                          \
    (ONX_DTYPE_BIT(ONX_FLOAT8E4M3FN) | ONX_DTYPE_BIT(ONX_FLOAT8E4M3FNUZ) | ONX_DTYPE_BIT(ONX_FLOAT8E5M2) |             \
     ONX_DTYPE_BIT(ONX_FLOAT8E5M2FNUZ))

static bool is_float(const onx_value *v)
{
    return ONX_DTYPE_BIT(v->dtype) & SMALL;
}

/* Checks that the operands have one byte per element and zero points of the same type; a zero point may be NULL. */
static onx_status check_types(const onx_prepare *p, const onx_value *v, const onx_value *zero)
{
    if (v->dtype >= ONX_DTYPE_COUNT || !(ONX_DTYPE_BIT(v->dtype) & (BYTES | SMALL)))
        return ONX_E_UNSUPPORTED;
    if (zero && zero->dtype != v->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the zero point of %s is %s", onx_dtype_name(v->dtype),
                                onx_dtype_name(zero->dtype));
    return ONX_OK;
}

/* Stores y = sum * scale[i * step], rounded where the type is an integer, plus the zero point, saturated to the type of
 * y; at most COLUMNS_EACH elements. */
static void store_quantized(const onx_kernel *kernel, onx_value *y, uint64_t first, uint64_t count, const void *sums,
                            bool floats, const float *scale, uint64_t step, double zero)
{
    const onxi_quantize_loops *fast = onxi_quantize_body_of(kernel)->fast;
    if (fast && !floats && fast->requantize[y->dtype]) {
        const uint64_t width = onx_dtype_bits(y->dtype) / 8;
        fast->requantize[y->dtype](sums, (char *)y->data + first * width, count, scale, step, (int32_t)zero);
        return;
    }
    double chunk[COLUMNS_EACH];
    unsigned bits = onx_dtype_bits(y->dtype);
    onx_dtype_class class = onx_dtype_class_of(y->dtype);
    double high = ldexp(1, (int)bits - (class == ONX_CLASS_SIGNED)) - 1,
           low = class == ONX_CLASS_SIGNED ? -high - 1 : 0;
    for (uint64_t i = 0; i < count; i++) {
        const float sum = floats ? ((const float *)sums)[i] : (float)((const int32_t *)sums)[i], by = scale[i * step];
        chunk[i] = zero + (class == ONX_CLASS_FLOATING
                               ? (double)sum * (double)by
                               : (double)onxi_requantized(sum, by, (float)(low - zero), (float)(high - zero)));
    }
    onx_convert((onx_dtype)y->dtype, (char *)y->data + first, ONX_DOUBLE, chunk, count, true);
}

/* ---- MatMulInteger, QLinearMatMul ---- */

static onx_status check_operands(const onx_prepare *p, const onxi_qoperands *o, const onxi_qproduct *q)
{
    ONX_TRY(check_vector(p, o->a_zero, q->m, q->matrices_a, "zero points"));
    ONX_TRY(check_vector(p, o->a_scale, q->m, q->matrices_a, "scales"));
    ONX_TRY(check_vector(p, o->b_zero, q->n, q->matrices_b, "zero points"));
    ONX_TRY(check_vector(p, o->b_scale, q->n, q->matrices_b, "scales"));
    ONX_TRY(check_vector(p, o->y_scale, 1, 1, "scales"));
    ONX_TRY(check_vector(p, o->y_zero, 1, 1, "zero points"));
    ONX_TRY(check_types(p, o->a, o->a_zero));
    ONX_TRY(check_types(p, o->b, o->b_zero));
    if (!o->y_scale)
        return is_float(o->a) || is_float(o->b) ? ONX_E_UNSUPPORTED : ONX_OK;
    return check_types(p, p->outputs[0], o->y_zero);
}

onx_status onxi_qproduct_prepare(onx_prepare *p)
{
    const onxi_qoperands o = onxi_qoperands_of(p->kernel, p->input_count, p->inputs);
    const onx_value *a = o.a, *b = o.b, *y = p->outputs[0];
    onxi_qproduct *q = ONXI_NEW(p->arena, onxi_qproduct);
    if (!q)
        return ONX_E_MEMORY;
    if (!a->rank || !b->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs must have at least one dimension");
    uint32_t la = a->rank > 1 ? a->rank - 2 : 0, lb = b->rank > 1 ? b->rank - 2 : 0, ly = la > lb ? la : lb;
    q->m = a->rank > 1 ? (uint64_t)a->dims[a->rank - 2] : 1;
    q->k = (uint64_t)a->dims[a->rank - 1];
    q->n = b->rank > 1 ? (uint64_t)b->dims[b->rank - 1] : 1;
    q->matrices_a = onxi_product(a->dims, 0, la);
    q->matrices_b = onxi_product(b->dims, 0, lb);
    q->floats = is_float(a) || is_float(b);
    if ((uint64_t)b->dims[b->rank > 1 ? b->rank - 2 : 0] != q->k)
        return onx_prepare_fail(p, ONX_E_INVALID, "the inner dimensions differ");
    onx_value batch_a = { .rank = la, .dims = a->dims }, batch_b = { .rank = lb, .dims = b->dims },
              batch_y = { .rank = ly, .dims = y->dims };
    const onx_value *leading[] = { &batch_a, &batch_b };
    if (y->rank < ly || !onxi_broadcast_make(&q->batch, leading, 2, &batch_y, NULL))
        return onx_prepare_fail(p, ONX_E_INVALID, "the leading dimensions do not broadcast");
    ONX_TRY(check_operands(p, &o, q));
    q->chunks = (q->m + ROWS_EACH - 1) / ROWS_EACH;
    p->params = q;
    p->rows = y->count ? q->batch.outer * (uint64_t)q->batch.inner * q->chunks : 0;
    uint64_t packed; /* elements of packed rows of a, packed columns of b, and sums */
    if (!onxi_mul_u64(q->k, (ROWS_EACH + COLUMNS_EACH) * 4, &packed) || packed > UINT64_MAX / 2)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the matrices are too large");
    p->thread_workspace = ((packed + 63u) & ~(uint64_t)63u) + ROWS_EACH * COLUMNS_EACH * 4 +
                          multiply_workspace(p->kernel, ROWS_EACH, COLUMNS_EACH, q->k);
    return ONX_OK;
}

/* A tile of the output: rows from r0 on of chunk, columns from c0 on. */
typedef struct tile {
    uint64_t matrix, a, b, r0, rows, c0, columns;
} tile;

static void store_tile(onx_work *work, const onxi_qoperands *o, const tile *t, const char *sums)
{
    const onxi_qproduct *q = work->params;
    onx_value *y = work->outputs[0];
    float columns[COLUMNS_EACH] = { 0 }, scales[COLUMNS_EACH];
    const uint64_t step = o->y_scale && o->b_scale->count > 1, count = step ? t->columns : 1;
    for (uint64_t c = 0; o->y_scale && c < count; c++)
        columns[c] = (float)vector_at(o->b_scale, q->n, t->b, step ? t->c0 + c : 0, 1);
    for (uint64_t r = 0; r < t->rows; r++) {
        uint64_t first = (t->matrix * q->m + t->r0 + r) * q->n + t->c0;
        const char *row = sums + r * t->columns * 4;
        if (!o->y_scale) {
            memcpy((char *)y->data + first * 4, row, t->columns * 4);
            continue;
        }
        float scale = (float)vector_at(o->a_scale, q->m, t->a, t->r0 + r, 1),
              out = (float)vector_at(o->y_scale, 1, 0, 0, 1);
        for (uint64_t c = 0; c < count; c++)
            scales[c] = scale * columns[c] / out;
        store_quantized(work->prepared->kernel, y, first, t->columns, row, q->floats, scales, step,
                        vector_at(o->y_zero, 1, 0, 0, 0));
    }
}

onx_status onxi_qproduct_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_qproduct *q = work->params;
    const onxi_broadcast *b = &q->batch;
    const onxi_qoperands o = onxi_qoperands_of(work->prepared->kernel, work->prepared->input_count, work->inputs);
    char *rows = work->thread_workspace, *columns = rows + q->k * ROWS_EACH * 4;
    char *sums = rows + ((q->k * (ROWS_EACH + COLUMNS_EACH) * 4 + 63u) & ~(uint64_t)63u);
    for (uint64_t row = first; row < last; row++) {
        uint64_t matrix = row / q->chunks, inner = matrix % (uint64_t)b->inner;
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, matrix / (uint64_t)b->inner, at);
        tile t = { .matrix = matrix,
                   .a = (uint64_t)(at[0] + (int64_t)inner * b->step[0][b->rank - 1]),
                   .b = (uint64_t)(at[1] + (int64_t)inner * b->step[1][b->rank - 1]),
                   .r0 = row % q->chunks * ROWS_EACH };
        t.rows = q->m - t.r0 < ROWS_EACH ? q->m - t.r0 : ROWS_EACH;
        centre(&(centred){ o.a, o.a_zero, (t.a * q->m + t.r0) * q->k, q->k, t.rows, q->k, q->m, t.a, t.r0, false,
                           q->floats },
               rows);
        for (t.c0 = 0; t.c0 < q->n && !onx_work_stops(work); t.c0 += COLUMNS_EACH) {
            t.columns = q->n - t.c0 < COLUMNS_EACH ? q->n - t.c0 : COLUMNS_EACH;
            centre(&(centred){ o.b, o.b_zero, t.b * q->k * q->n + t.c0, q->n, q->k, t.columns, q->n, t.b, t.c0, true,
                               q->floats },
                   columns);
            onxi_gemm g = { .dtype = q->floats ? ONX_FLOAT : ONX_INT32,
                            .m = t.rows,
                            .n = t.columns,
                            .k = q->k,
                            .a = rows,
                            .b = columns,
                            .c = sums,
                            .a_row = (int64_t)q->k,
                            .a_col = 1,
                            .b_row = (int64_t)t.columns,
                            .b_col = 1,
                            .c_row = (int64_t)t.columns,
                            .work = work };
            multiply(work->prepared->kernel, &g, sums + ROWS_EACH * COLUMNS_EACH * 4);
            store_tile(work, &o, &t, sums);
        }
    }
    return ONX_OK;
}

/* ---- ConvInteger, QLinearConv ---- */

typedef struct convolved {
    const onx_value *x, *x_scale, *x_zero, *w, *w_scale, *w_zero, *y_scale, *y_zero, *bias;
} convolved;

static convolved convolved_of(const onx_kernel *kernel, uint32_t count, const onx_value *const *in)
{
    if (onxi_quantize_body_of(kernel)->back)
        return (convolved){ in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], onxi_operand(count, in, 8) };
    return (convolved){
        .x = in[0], .w = in[1], .x_zero = onxi_operand(count, in, 2), .w_zero = onxi_operand(count, in, 3)
    };
}

typedef struct qconv_params {
    onxi_conv conv;
    uint64_t weights_at, columns_at, sums_at, pack_at; /* offsets in a thread's workspace */
} qconv_params;

onx_status onxi_qconv_prepare(onx_prepare *p)
{
    const convolved o = convolved_of(p->kernel, p->input_count, p->inputs);
    qconv_params *q = ONXI_NEW(p->arena, qconv_params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_conv_make(p, o.w, o.bias, &q->conv));
    uint64_t channels = (uint64_t)o.w->dims[0];
    ONX_TRY(check_vector(p, o.x_zero, 1, 1, "zero points"));
    ONX_TRY(check_vector(p, o.x_scale, 1, 1, "scales"));
    ONX_TRY(check_vector(p, o.w_zero, channels, 1, "zero points"));
    ONX_TRY(check_vector(p, o.w_scale, channels, 1, "scales"));
    ONX_TRY(check_vector(p, o.y_scale, 1, 1, "scales"));
    ONX_TRY(check_vector(p, o.y_zero, 1, 1, "zero points"));
    ONX_TRY(check_types(p, o.x, o.x_zero));
    ONX_TRY(check_types(p, o.w, o.w_zero));
    if (o.y_scale)
        ONX_TRY(check_types(p, p->outputs[0], o.y_zero));
    if (is_float(o.w) || (o.bias && o.bias->dtype != ONX_INT32))
        return ONX_E_UNSUPPORTED;
    const onxi_conv *c = &q->conv;
    uint64_t weights, sums;
    if (!onxi_mul_u64(c->out_each, c->depth, &weights) || weights > UINT64_MAX / 64 ||
        !onxi_mul_u64(c->out_each, ONXI_CONV_TILE * 4, &sums) || sums > UINT64_MAX / 64)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the weights are too large");
    q->columns_at = c->columns_size;
    q->weights_at = q->columns_at + c->columns_size * 4;
    q->sums_at = q->weights_at + ((weights * 4 + 63u) & ~(uint64_t)63u);
    q->pack_at = q->sums_at + sums;
    p->thread_workspace = q->pack_at + multiply_workspace(p->kernel, c->out_each, ONXI_CONV_TILE, c->depth);
    p->params = q;
    p->rows = p->outputs[0]->count ? c->window.batch * c->group * c->tiles : 0;
    return ONX_OK;
}

/* Stores the sums of `count` positions of a channel from element `first` of the output on. */
static void store_channel(onx_work *work, const convolved *o, uint64_t channel, uint64_t first, uint64_t count,
                          int32_t *sums)
{
    onx_value *y = work->outputs[0];
    if (!o->y_scale) {
        memcpy((int32_t *)y->data + first, sums, count * sizeof *sums);
        return;
    }
    uint32_t bias = o->bias ? (uint32_t)((const int32_t *)o->bias->data)[channel] : 0;
    for (uint64_t i = 0; i < count; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] + bias);
    uint64_t channels = (uint64_t)o->w->dims[0];
    float scale = (float)vector_at(o->x_scale, 1, 0, 0, 1) * (float)vector_at(o->w_scale, channels, 0, channel, 1) /
                  (float)vector_at(o->y_scale, 1, 0, 0, 1);
    store_quantized(work->prepared->kernel, y, first, count, sums, false, &scale, 0, vector_at(o->y_zero, 1, 0, 0, 0));
}

onx_status onxi_qconv_run(onx_work *work, uint64_t first, uint64_t last)
{
    const qconv_params *q = work->params;
    const onxi_conv *c = &q->conv;
    const onxi_window *w = &c->window;
    const convolved o = convolved_of(work->prepared->kernel, work->prepared->input_count, work->inputs);
    char *space = work->thread_workspace;
    int32_t *sums = (int32_t *)(void *)(space + q->sums_at);
    char padding = o.x_zero ? *(const char *)o.x_zero->data : 0;
    /* The unfolded columns as a value, so that `centre` subtracts their zero point as well. */
    onx_value columns = { .dtype = o.x->dtype, .data = space };
    for (uint64_t row = first; row < last; row++) {
        uint64_t part = row % c->tiles, g = row / c->tiles % c->group, n = row / c->tiles / c->group;
        uint64_t start = part * ONXI_CONV_TILE, count = w->out_size - start;
        count = count < ONXI_CONV_TILE ? count : ONXI_CONV_TILE;
        onxi_unfold(c, (const char *)o.x->data + (n * w->channels + g * c->in_each) * w->in_size, start, count,
                    &padding, space);
        centre(&(centred){ &columns, o.x_zero, 0, ONXI_CONV_TILE, c->depth, count, 1, 0, 0, true, false },
               space + q->columns_at);
        if (row == first || !part) /* the weights of the next group */
            centre(&(centred){ o.w, o.w_zero, g * c->out_each * c->depth, c->depth, c->out_each, c->depth,
                               (uint64_t)o.w->dims[0], 0, g * c->out_each, false, false },
                   space + q->weights_at);
        onxi_gemm gemm = { .dtype = ONX_INT32,
                           .m = c->out_each,
                           .n = count,
                           .k = c->depth,
                           .a = space + q->weights_at,
                           .b = space + q->columns_at,
                           .c = sums,
                           .a_row = (int64_t)c->depth,
                           .a_col = 1,
                           .b_row = (int64_t)count,
                           .b_col = 1,
                           .c_row = ONXI_CONV_TILE,
                           .work = work };
        multiply(work->prepared->kernel, &gemm, space + q->pack_at);
        for (uint64_t k = 0; k < c->out_each; k++)
            store_channel(work, &o, g * c->out_each + k, ((n * c->group + g) * c->out_each + k) * w->out_size + start,
                          count, sums + k * ONXI_CONV_TILE);
    }
    return ONX_OK;
}

static const onxi_quantize_body as_sums = { .back = false }, quantizes = { .back = true };

const onx_kernel onxi_kernels_qlinear[] = { { .op = "MatMulInteger",
                                              .since = 10,
                                              .dtypes = BYTES,
                                              .body = &as_sums,
                                              .prepare = onxi_qproduct_prepare,
                                              .run = onxi_qproduct_run },
                                            { .op = "QLinearMatMul",
                                              .since = 10,
                                              .dtypes = BYTES | SMALL,
                                              .body = &quantizes,
                                              .prepare = onxi_qproduct_prepare,
                                              .run = onxi_qproduct_run },
                                            { .op = "ConvInteger",
                                              .since = 10,
                                              .dtypes = BYTES,
                                              .body = &as_sums,
                                              .prepare = onxi_qconv_prepare,
                                              .run = onxi_qconv_run },
                                            { .op = "QLinearConv",
                                              .since = 10,
                                              .dtypes = BYTES,
                                              .body = &quantizes,
                                              .prepare = onxi_qconv_prepare,
                                              .run = onxi_qconv_run },
                                            { 0 } };
