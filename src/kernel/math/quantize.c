/* quantize.c - QuantizeLinear and DequantizeLinear: one scale for all elements, one per index of an axis, or one per
 * block of it. Elements are processed in chunks of doubles, which can hold all types; the arithmetic is that of the
 * requested precision. */
#include "kernel/core/quantize.h"
#include "kernel/core/blocked.h"

#include <math.h>

enum { CHUNK = 1024 }; /* elements; a multiple of 4, so that chunks of packed types begin at a byte */

/* If the scale has the rank of the input, element (o, a, i) of [outer, length, inner] has scale (o, a / block, i) of
 * [outer, blocks, inner]; otherwise it has scale a. */
typedef struct quantize_params {
    uint64_t length, inner, block, blocks;
    bool single, blocked; /* one scale for all elements; one scale per block */
    bool single_zero;
    bool saturate;
    int precision; /* element type of the division or multiplication */
    double low, high;
    onx_dtype from, to;
    bool whole; /* the quantized type is an integer type with range low .. high */
} quantize_params;

static const onxi_quantize_loops *fast_of(const onx_kernel *kernel)
{
    return ((const onxi_quantize_body *)kernel->body)->fast;
}

static onx_status read_blocks(const onx_prepare *p, quantize_params *q, uint32_t axis, int64_t block)
{
    const onx_value *x = p->inputs[0], *scale = p->inputs[1];
    if (scale->rank != x->rank)
        return onx_prepare_fail(
            p, ONX_E_INVALID,
            "with block_size the scales must have the rank of the input: they have rank %u, the input %u", scale->rank,
            x->rank);
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t want = d == axis ? x->dims[d] / block + (x->dims[d] % block != 0) : x->dims[d];
        if (scale->dims[d] != want)
            return onx_prepare_fail(p, ONX_E_INVALID,
                                    "dimension %u of the scale is %lld, expected %lld for blocks of "
                                    "%lld",
                                    d, (long long)scale->dims[d], (long long)want, (long long)block);
    }
    q->blocked = true;
    q->block = (uint64_t)block;
    q->blocks = (uint64_t)scale->dims[axis];
    return ONX_OK;
}

static onx_status read_scale(const onx_prepare *p, quantize_params *q)
{
    const onx_value *x = p->inputs[0], *scale = p->inputs[1], *zero = p->input_count > 2 ? p->inputs[2] : NULL;
    int64_t block = p->since >= 21 ? onx_prepare_int(p, "block_size") : 0;
    uint32_t axis = 0;
    q->length = 1;
    q->inner = x->count;
    q->single = scale->count == 1;
    q->single_zero = !zero || zero->count == 1;
    if (zero && zero->count != 1 && zero->count != scale->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "there are %llu zero points for %llu scales",
                                (unsigned long long)zero->count, (unsigned long long)scale->count);
    if (q->single)
        return ONX_OK;
    if (p->since < 13)
        return onx_prepare_fail(p, ONX_E_INVALID, "the scale has %llu elements, expected 1",
                                (unsigned long long)scale->count);
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), x->rank, &axis));
    q->length = (uint64_t)x->dims[axis];
    q->inner = onxi_product(x->dims, axis + 1, x->rank);
    q->block = 1;
    if (block < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "block_size is %lld", (long long)block);
    if (block > 0)
        return read_blocks(p, q, axis, block);
    if (p->since < 13 || scale->rank != 1 || scale->dims[0] != x->dims[axis])
        return onx_prepare_fail(p, ONX_E_INVALID, "%llu scales of rank %u do not fit a dimension of %lld",
                                (unsigned long long)scale->count, scale->rank, (long long)x->dims[axis]);
    return ONX_OK;
}

static void read_range(quantize_params *q, int dtype)
{
    unsigned bits = onx_dtype_bits(dtype);
    onx_dtype_class class = onx_dtype_class_of(dtype);
    q->whole = class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED;
    q->high = ldexp(1, (int)bits - (class == ONX_CLASS_SIGNED)) - 1;
    q->low = class == ONX_CLASS_SIGNED ? -q->high - 1 : 0;
}

static bool is_number(const onx_value *v)
{
    onx_dtype_class class = onx_dtype_class_of(v->dtype);
    return class == ONX_CLASS_FLOATING || class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED;
}

static onx_status quantize_start(onx_prepare *p, quantize_params **out)
{
    const onx_value *x = p->inputs[0];
    quantize_params *q = ONXI_NEW(p->arena, quantize_params);
    if (!q)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < p->input_count; i++)
        if (p->inputs[i] && !is_number(p->inputs[i]))
            return ONX_E_UNSUPPORTED;
    if (!is_number(p->outputs[0]))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(read_scale(p, q));
    q->from = (onx_dtype)x->dtype;
    q->to = (onx_dtype)p->outputs[0]->dtype;
    p->params = *out = q;
    p->rows = (x->count + CHUNK - 1) / CHUNK;
    p->grain = 16;
    return ONX_OK;
}

#if ONXI_PLATFORM_ROOMY
static const onxi_quantize_each *each_of(const onx_kernel *kernel)
{
    return ((const onxi_quantize_body *)kernel->body)->each;
}

static bool is_real(int dtype)
{
    return dtype == ONX_FLOAT || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16;
}

/* Have the loops for elements with scales of their own all types of the operator? */
static bool has_each(const onx_prepare *p, const quantize_params *q)
{
    const uint32_t types = ONX_DTYPE_BIT(ONX_INT4) | ONX_DTYPE_BIT(ONX_UINT4) | ONX_DTYPE_BIT(ONX_INT8) |
                           ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_UINT16);
    if (((const onxi_quantize_body *)p->kernel->body)->back)
        return is_real((int)q->to) && is_real(p->inputs[1]->dtype) &&
               ((types | ONX_DTYPE_BIT(ONX_INT32)) & ONX_DTYPE_BIT(q->from));
    return (is_real((int)q->from) || q->from == ONX_INT32) && is_real(p->inputs[1]->dtype) && is_real(q->precision) &&
           (types & ONX_DTYPE_BIT(q->to));
}
#endif

/* Does it pay to process lines that have one scale and one zero point each? */
static bool has_lines(const onx_prepare *p, const quantize_params *q)
{
    enum { LINE = 16 };
    return p->inputs[1]->dtype == ONX_FLOAT &&
           (q->single || (!q->blocked && q->inner >= LINE) || (q->blocked && q->inner == 1 && q->block >= LINE));
}

onx_status onxi_quantize_prepare(onx_prepare *p)
{
    quantize_params *q = NULL;
    const onx_value *zero = p->input_count > 2 ? p->inputs[2] : NULL;
    ONX_TRY(quantize_start(p, &q));
    if (zero && zero->dtype != p->outputs[0]->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the zero point is %s, the output %s", onx_dtype_name(zero->dtype),
                                onx_dtype_name(p->outputs[0]->dtype));
    q->saturate = p->since < 19 || onx_prepare_int(p, "saturate") != 0;
    q->precision = p->since >= 23 ? (int)onx_prepare_int(p, "precision") : 0;
    if (!q->precision)
        q->precision = p->inputs[1]->dtype;
    if (q->precision == ONX_FLOAT8E8M0)
        q->precision = ONX_FLOAT;
    read_range(q, p->outputs[0]->dtype);
    const onxi_quantize_loops *fast = fast_of(p->kernel);
#if ONXI_PLATFORM_ROOMY
    if (each_of(p->kernel))
        return has_each(p, q) ? ONX_OK : ONX_E_UNSUPPORTED;
#endif
    return !fast || (fast->quantize[p->outputs[0]->dtype] && q->precision == ONX_FLOAT && has_lines(p, q))
               ? ONX_OK
               : ONX_E_UNSUPPORTED;
}

onx_status onxi_dequantize_prepare(onx_prepare *p)
{
    quantize_params *q = NULL;
    const onx_value *x = p->inputs[0], *zero = p->input_count > 2 ? p->inputs[2] : NULL;
    ONX_TRY(quantize_start(p, &q));
    if (zero && zero->dtype != x->dtype)
        return onx_prepare_fail(p, ONX_E_INVALID, "the zero point is %s, the input %s", onx_dtype_name(zero->dtype),
                                onx_dtype_name(x->dtype));
    const onxi_quantize_loops *fast = fast_of(p->kernel);
#if ONXI_PLATFORM_ROOMY
    if (each_of(p->kernel))
        return has_each(p, q) ? ONX_OK : ONX_E_UNSUPPORTED;
#endif
    return !fast || (fast->dequantize[x->dtype] && p->outputs[0]->dtype == ONX_FLOAT && has_lines(p, q))
               ? ONX_OK
               : ONX_E_UNSUPPORTED;
}

#if ONXI_PLATFORM_ROOMY
onx_status onxi_quantize_laid_out(onx_prepare *p)
{
    const onx_value *scale = p->inputs[1], *zero = onxi_operand(p->input_count, p->inputs, 2);
    const uint32_t block = onxi_blocked_of(p->inputs[0]);
    if (!p->want || !block || scale->count != 1 || (zero && zero->count != 1))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(((const onxi_quantize_body *)p->kernel->body)->back ? onxi_dequantize_prepare(p)
                                                                : onxi_quantize_prepare(p));
    const onx_layout *layout = onxi_blocked_layout(p->arena, p->outputs[0], block);
    if (!layout)
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 1; i < p->operand_count; i++)
        p->want[i] = NULL;
    p->outputs[0]->layout = layout;
    return ONX_OK;
}

void onxi_quantize_element(const onx_kernel *kernel, const void *params, onxi_element *out)
{
    const quantize_params *q = params;
    const onxi_quantize_body *body = kernel->body;
    const uint32_t width = onxi_element_size((int)(body->back ? q->from : q->to));
    out->inputs = 3;
    out->from = q->from;
    out->to = q->to;
    if (body->back)
        out->dequantize = body->fast->dequantize[q->from];
    else
        out->quantize = body->fast->quantize[q->to];
    out->in_width[0] = body->back ? width : sizeof(float);
    out->in_width[1] = sizeof(float);
    out->in_width[2] = width;
    out->out_width = body->back ? sizeof(float) : width;
}
#endif

/* The number of elements from `at` on whose scales follow one pattern: all the same (*step 0), or consecutive (*step
 * 1). */
static uint64_t scales_at(const quantize_params *q, uint64_t at, uint64_t most, uint64_t *scale, uint64_t *step)
{
    uint64_t i = at % q->inner, a = at / q->inner % q->length, o = at / q->inner / q->length, run = q->inner - i;
    *step = 0;
    if (q->single) {
        *scale = 0;
        return most;
    }
    *scale = a;
    if (q->inner == 1 && !q->blocked) {
        *step = 1;
        run = q->length - a;
    }
    if (q->blocked) {
        *scale = (o * q->blocks + a / q->block) * q->inner + i;
        *step = q->inner > 1;
        if (q->inner == 1) {
            run = q->block - a % q->block;
            run = run < q->length - a ? run : q->length - a;
        }
    }
    return run < most ? run : most;
}

/* Expands scales or zero points to `count` elements. */
static void spread(const onx_value *v, bool single, uint64_t first, uint64_t step, uint64_t count, double *out)
{
    if (step && !single) {
        onxi_value_numbers(v, first, count, out);
        return;
    }
    double one = v ? onxi_value_number(v, single ? 0 : first) : 0;
    for (uint64_t i = 0; i < count; i++)
        out[i] = one;
}

/* x / scale, rounded as in the precision. */
static void divide(int precision, double *x, const double *scale, uint64_t count)
{
    switch (precision) {
    case ONX_FLOAT:
        for (uint64_t i = 0; i < count; i++)
            x[i] = (double)((float)x[i] / (float)scale[i]);
        break;
    case ONX_FLOAT16:
        for (uint64_t i = 0; i < count; i++) {
            float a = onx_float16_to_f32(onx_f32_to_float16((float)x[i]));
            float b = onx_float16_to_f32(onx_f32_to_float16((float)scale[i]));
            x[i] = (double)onx_float16_to_f32(onx_f32_to_float16(a / b));
        }
        break;
    case ONX_BFLOAT16:
        for (uint64_t i = 0; i < count; i++) {
            float a = onx_bfloat16_to_f32(onx_f32_to_bfloat16((float)x[i]));
            float b = onx_bfloat16_to_f32(onx_f32_to_bfloat16((float)scale[i]));
            x[i] = (double)onx_bfloat16_to_f32(onx_f32_to_bfloat16(a / b));
        }
        break;
    default:
        for (uint64_t i = 0; i < count; i++)
            x[i] /= scale[i];
    }
}

static void quantize_run_of(const quantize_params *q, double *x, const double *scale, const double *zero,
                            uint64_t count)
{
    divide(q->precision, x, scale, count);
    if (!q->whole) {
        for (uint64_t i = 0; i < count; i++)
            if (zero[i] != 0) /* adding 0 would change the sign of -0, which these types keep */
                x[i] += zero[i];
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        double v = rint(x[i]) + zero[i];
        x[i] = v > q->low ? v < q->high ? v : q->high : q->low; /* NaN: low */
    }
}

static void dequantize_run_of(double *x, const double *scale, const double *zero, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        x[i] = (double)((float)(x[i] - zero[i]) * (float)scale[i]);
}

/* The operands of either operator. */
typedef struct operands {
    const quantize_params *q;
    const onxi_quantize_body *body;
    const onx_value *x, *scales, *zeros; /* zeros may be NULL */
    onx_dtype type;                      /* of the result */
} operands;

/* Processes elements at .. end-1, line by line. */
static void lines_of(const operands *o, uint64_t at, uint64_t end, char *out)
{
    const unsigned in_width = onx_dtype_bits(o->x->dtype) / 8, out_width = onx_dtype_bits(o->type) / 8;
    const unsigned zero_width = o->body->back ? in_width : out_width;
    for (uint64_t from, step, run; at < end; at += run, out += run * out_width) {
        run = scales_at(o->q, at, end - at, &from, &step);
        const float scale = ((const float *)o->scales->data)[from];
        const uint64_t zero_at = o->q->single_zero ? 0 : from * zero_width;
        const int32_t zero = o->zeros ? onxi_zero_point(o->zeros->dtype, (const char *)o->zeros->data + zero_at) : 0;
        const char *in = (const char *)o->x->data + at * in_width;
        if (o->body->back)
            o->body->fast->dequantize[o->x->dtype](in, (float *)(void *)out, run, scale, zero);
        else
            o->body->fast->quantize[o->type]((const float *)(const void *)in, out, run, scale, zero);
    }
}

#if ONXI_PLATFORM_ROOMY
/* The scales and, unless there is one for all, the zero points of n elements from `at` on. */
static void scales_of(const operands *o, uint64_t at, uint64_t n, float *scale, int32_t *zero)
{
    const onxi_quantize_each *each = o->body->each;
    for (uint64_t k = 0, run, from, step; k < n; k += run) {
        run = scales_at(o->q, at + k, n - k, &from, &step);
        each->floats(o->scales->dtype, o->scales->data, from, step ? run : 1, scale + k);
        for (uint64_t i = 1; i < run && !step; i++)
            scale[k + i] = scale[k];
        if (!o->zeros || o->q->single_zero)
            continue;
        each->wholes(o->zeros->dtype, o->zeros->data, from, step ? run : 1, zero + k);
        for (uint64_t i = 1; i < run && !step; i++)
            zero[k + i] = zero[k];
    }
}

/* Processes elements at .. end-1, whose scales may all differ, a stretch at a time. */
static void stretches_of(const operands *o, uint64_t at, uint64_t end, char *out)
{
    const onxi_quantize_each *each = o->body->each;
    float scale[ONXI_QUANTIZE_STRETCH] = { 0 }, x[ONXI_QUANTIZE_STRETCH] = { 0 }; /* whole vectors are read */
    int32_t zero[ONXI_QUANTIZE_STRETCH], whole[ONXI_QUANTIZE_STRETCH], all = 0;
    if (o->zeros && o->q->single_zero)
        each->wholes(o->zeros->dtype, o->zeros->data, 0, 1, &all);
    for (uint64_t i = 0; i < ONXI_QUANTIZE_STRETCH; i++)
        zero[i] = all;
    if (o->q->single)
        scales_of(o, 0, ONXI_QUANTIZE_STRETCH, scale, zero);
    for (uint64_t n; at < end; at += n, out += n * onx_dtype_bits((int)o->type) / 8) {
        n = end - at < ONXI_QUANTIZE_STRETCH ? end - at : ONXI_QUANTIZE_STRETCH;
        if (!o->q->single)
            scales_of(o, at, n, scale, zero);
        if (o->body->back) {
            each->wholes(o->x->dtype, o->x->data, at, n, whole);
            each->dequantize((int)o->type, o->x->dtype == ONX_INT32, whole, scale, zero, n, out);
        } else {
            each->floats(o->x->dtype, o->x->data, at, n, x);
            each->quantize((int)o->type, o->q->precision, x, scale, zero, n, out);
        }
    }
}
#endif

/* Processes a chunk of elements from `start` on. */
static void chunk_of(const operands *o, uint64_t start, uint64_t count, char *out)
{
    double chunk[CHUNK], scale[CHUNK], zero[CHUNK];
    onxi_value_numbers(o->x, start, count, chunk);
    for (uint64_t at = 0; at < count;) {
        uint64_t from, step, run = scales_at(o->q, start + at, count - at, &from, &step);
        spread(o->scales, o->q->single, from, step, run, scale);
        spread(o->zeros, o->q->single_zero, from, step, run, zero);
        if (o->body->back)
            dequantize_run_of(chunk + at, scale, zero, run);
        else
            quantize_run_of(o->q, chunk + at, scale, zero, run);
        at += run;
    }
    onx_convert(o->type, out, ONX_DOUBLE, chunk, count, o->body->back || o->q->saturate);
}

onx_status onxi_quantize_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0], *y = work->outputs[0];
    const operands o = { .q = work->params,
                         .body = work->prepared->kernel->body,
                         .x = x,
                         .scales = work->inputs[1],
                         .zeros = work->prepared->input_count > 2 ? work->inputs[2] : NULL,
                         .type = (onx_dtype)y->dtype };
    const uint64_t start = first * CHUNK, end = last * CHUNK < x->count ? last * CHUNK : x->count;
#if ONXI_PLATFORM_ROOMY
    if (o.body->each) {
        stretches_of(&o, start, end, (char *)y->data + start * onx_dtype_bits(y->dtype) / 8);
        return ONX_OK;
    }
#endif
    if (o.body->fast) {
        lines_of(&o, start, end, (char *)y->data + start * (onx_dtype_bits(y->dtype) / 8));
        return ONX_OK;
    }
    for (uint64_t at = start; at < end; at += CHUNK)
        chunk_of(&o, at, end - at < CHUNK ? end - at : CHUNK, (char *)y->data + at * onx_dtype_bits(y->dtype) / 8);
    return ONX_OK;
}

bool onxi_dequantize_reads(const onx_kernel *kernel)
{
    return kernel->run == onxi_quantize_run && ((const onxi_quantize_body *)kernel->body)->back;
}

void onxi_dequantize_read(const onx_kernel *kernel, const void *params, const onx_value *const *inputs,
                          uint32_t input_count, uint64_t first, uint64_t count, float *out)
{
    const operands o = { .q = params,
                         .body = kernel->body,
                         .x = inputs[0],
                         .scales = inputs[1],
                         .zeros = input_count > 2 ? inputs[2] : NULL,
                         .type = ONX_FLOAT };
#if ONXI_PLATFORM_ROOMY
    if (o.body->each) {
        stretches_of(&o, first, first + count, (char *)out);
        return;
    }
#endif
    if (o.body->fast) {
        lines_of(&o, first, first + count, (char *)out);
        return;
    }
    for (uint64_t n; count; first += n, out += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        chunk_of(&o, first, n, (char *)out);
    }
}

static const onxi_quantize_body there = { .back = false }, and_back = { .back = true };

const onx_kernel onxi_kernels_quantize[] = {
    { .op = "QuantizeLinear", .since = 10, .body = &there, .prepare = onxi_quantize_prepare, .run = onxi_quantize_run },
    { .op = "DequantizeLinear",
      .since = 10,
      .body = &and_back,
      .prepare = onxi_dequantize_prepare,
      .run = onxi_quantize_run },
    { 0 }
};
