/* cast.c - Cast and CastLike: converts numbers by onx_convert, and from and to strings. */
#include "kernel/core/blocked.h"
#include "kernel/core/chain.h"

#include <math.h>

enum { BLOCK = 16384 }; /* even, so that packed types split between bytes */

typedef struct cast_params {
    onx_dtype from, to;
    bool saturate;
    onx_round_mode round_mode; /* for float8e8m0, which holds powers of two */
    onxi_unary_loop loop;      /* NULL: onx_convert */
} cast_params;

onx_status onxi_cast_prepare(onx_prepare *p)
{
    cast_params *q = ONXI_NEW(p->arena, cast_params);
    if (!q)
        return ONX_E_MEMORY;
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    if (onx_dtype_class_of(x->dtype) == ONX_CLASS_COMPLEX || onx_dtype_class_of(y->dtype) == ONX_CLASS_COMPLEX)
        return ONX_E_UNSUPPORTED;
    if (p->kernel->body) {
        const onxi_cast_body *body = p->kernel->body;
        while (body->loop && ((int64_t)body->from != x->dtype || (int64_t)body->to != y->dtype))
            body++;
        if (!body->loop)
            return ONX_E_UNSUPPORTED;
        q->loop = body->loop;
    }
    onx_str round_mode = p->since >= 24 ? onx_prepare_text(p, "round_mode") : onx_str_of("up");
    q->round_mode = onx_str_is(round_mode, "down")      ? ONX_ROUND_DOWN
                    : onx_str_is(round_mode, "nearest") ? ONX_ROUND_NEAREST
                                                        : ONX_ROUND_UP;
    if (q->round_mode == ONX_ROUND_UP && !onx_str_is(round_mode, "up"))
        return onx_prepare_fail(p, ONX_E_INVALID, "round_mode is \"%.*s\", expected up, down or nearest",
                                ONX_ARG(round_mode));
    q->from = (onx_dtype)x->dtype;
    q->to = (onx_dtype)y->dtype;
    q->saturate = p->since < 19 || onx_prepare_int(p, "saturate") != 0;
    if (!onxi_element_layout(p))
        return ONX_E_MEMORY;
    p->params = q;
    p->rows = x->dtype == ONX_STRING || y->dtype == ONX_STRING ? 1 : (x->count + BLOCK - 1) / BLOCK;
    return ONX_OK;
}

static onx_status from_text(onx_work *work)
{
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    unsigned bits = onx_dtype_bits(y->dtype);
    bool whole = onx_dtype_class_of(y->dtype) == ONX_CLASS_SIGNED || onx_dtype_class_of(y->dtype) == ONX_CLASS_UNSIGNED;
    if (bits < 8)
        memset(y->data, 0, y->size);
    for (uint64_t i = 0; i < x->count; i++) {
        onx_str s = ((const onx_str *)x->data)[i];
        double number;
        bool overflow;
        if (!onxi_parse_f64(s, &number, &overflow))
            return onx_work_fail(work, ONX_E_INVALID, "\"%.*s\" is no number", ONX_ARG(s));
        int64_t integer = 0; /* integers with many digits do not fit a double */
        bool digits = whole && s.len > 0 && s.len < 19;
        for (size_t k = s.ptr[0] == '-'; digits && k < s.len; k++) {
            digits = s.ptr[k] >= '0' && s.ptr[k] <= '9';
            integer = integer * 10 + (s.ptr[k] - '0');
        }
        if (digits && s.ptr[0] == '-')
            integer = -integer;
        uint64_t element = 0;
        onx_convert((onx_dtype)y->dtype, &element, digits ? ONX_INT64 : ONX_DOUBLE,
                    digits ? (const void *)&integer : &number, 1, true);
        if (bits < 8)
            onxi_packed_set(y->data, bits, i, (unsigned)element);
        else
            memcpy((char *)y->data + i * (bits / 8), &element, bits / 8);
    }
    return ONX_OK;
}

static size_t print_integer(char *buf, const onx_value *x, uint64_t i)
{
    int64_t v = 0;
    size_t at = 0, len = 0;
    char digits[24];
    onxi_convert(ONX_INT64, &v, (onx_dtype)x->dtype, x->data, i, 1, true);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    if (x->dtype == ONX_UINT64)
        u = ((const uint64_t *)x->data)[i];
    else if (v < 0)
        buf[at++] = '-';
    do
        digits[len++] = (char)('0' + u % 10);
    while ((u /= 10));
    while (len)
        buf[at++] = digits[--len];
    return at;
}

static onx_status to_text(onx_work *work)
{
    const onx_value *x = work->inputs[0];
    onx_str *out = work->outputs[0]->data;
    onx_dtype_class class = onx_dtype_class_of(x->dtype);
    for (uint64_t i = 0; i < x->count; i++) {
        char buf[32];
        size_t len;
        if (x->dtype == ONX_DOUBLE) {
            len = onxi_print_f64(buf, ((const double *)x->data)[i]);
        } else if (class == ONX_CLASS_FLOATING) {
            float f = 0;
            onxi_convert(ONX_FLOAT, &f, (onx_dtype)x->dtype, x->data, i, 1, true);
            len = onxi_print_f32(buf, f);
        } else {
            len = print_integer(buf, x, i);
        }
        bool upper = class == ONX_CLASS_FLOATING && len == 3 && buf[0] == 'n'; /* the standard writes NaN, +INF, -INF */
        if (upper)
            memcpy(buf, "NaN", 3);
        if (class == ONX_CLASS_FLOATING && len >= 3 && memcmp(buf + len - 3, "inf", 3) == 0) {
            memcpy(buf, len == 4 ? "-INF" : "INF", len);
        }
        char *copy = onx_arena_alloc(work->text, len);
        if (!copy)
            return ONX_E_MEMORY;
        memcpy(copy, buf, len);
        out[i] = onx_str_make(copy, len);
    }
    return ONX_OK;
}

/* Until version 24, values out of range of a 4-bit type saturate, and NaN becomes the largest float. */
static onx_status cast_clamped(const onx_value *x, onx_value *y, uint64_t start, uint64_t end)
{
    double least = y->dtype == ONX_INT4    ? -8
                   : y->dtype == ONX_UINT4 ? 0
                                           : -6,
           most = y->dtype == ONX_INT4    ? 7
                  : y->dtype == ONX_UINT4 ? 15
                                          : 6;
    double block[256];
    for (uint64_t at = start; at < end;) {
        uint64_t n = end - at < 256 ? end - at : 256;
        ONX_TRY(onx_convert(ONX_DOUBLE, block, (onx_dtype)x->dtype,
                            (const char *)x->data + at * onx_dtype_bits(x->dtype) / 8, n, true));
        for (uint64_t i = 0; i < n; i++) {
            double v = isnan(block[i]) ? (y->dtype == ONX_FLOAT4E2M1 ? most : 0) : block[i];
            block[i] = v < least ? least : v > most ? most : v;
        }
        ONX_TRY(onx_convert((onx_dtype)y->dtype, (char *)y->data + at / 2, ONX_DOUBLE, block, n, true));
        at += n;
    }
    return ONX_OK;
}

/* Rounds to powers of two, downwards or to the nearest: `above` is the power above, and the one below is half of it. */
static void cast_to_scales(const cast_params *q, const onx_value *x, onx_value *y, uint64_t start, uint64_t end)
{
    double block[256];
    uint8_t *out = y->data;
    for (uint64_t at = start; at < end;) {
        uint64_t n = end - at < 256 ? end - at : 256;
        onxi_convert(ONX_DOUBLE, block, (onx_dtype)x->dtype, x->data, at, n, true);
        onxi_convert(ONX_FLOAT8E8M0, out + at, ONX_DOUBLE, block, 0, n, true);
        for (uint64_t i = 0; i < n; i++) {
            uint8_t code = out[at + i];
            double above = ldexp(1, code - 127), v = fabs(block[i]);
            if (code == 0xff)
                continue;
            if (code && v < (q->round_mode == ONX_ROUND_DOWN ? above : above * 0.75))
                out[at + i]--;
            else if (!q->saturate && q->round_mode == ONX_ROUND_NEAREST && v >= above * 1.5) /* past the greatest */
                out[at + i] = 0xff;
        }
        at += n;
    }
}

onx_status onxi_cast_run(onx_work *work, uint64_t first, uint64_t last)
{
    const cast_params *q = work->params;
    const onx_value *x = work->inputs[0];
    onx_value *y = work->outputs[0];
    if (x->dtype == ONX_STRING && y->dtype == ONX_STRING) {
        if (y->size)
            memcpy(y->data, x->data, y->size);
        return ONX_OK;
    }
    if (x->dtype == ONX_STRING)
        return from_text(work);
    if (y->dtype == ONX_STRING)
        return to_text(work);
    uint64_t start = first * BLOCK, end = last * BLOCK < x->count ? last * BLOCK : x->count;
    if (start >= end)
        return ONX_OK;
    if (q->loop) {
        q->loop((const char *)x->data + start * onxi_element_size(x->dtype),
                (char *)y->data + start * onxi_element_size(y->dtype), end - start, 0, 0);
        return ONX_OK;
    }
    if (y->dtype == ONX_FLOAT8E8M0 && x->dtype != ONX_FLOAT8E8M0 && q->round_mode != ONX_ROUND_UP)
        return cast_to_scales(q, x, y, start, end), ONX_OK;
    bool clamped = y->dtype == ONX_INT4 || y->dtype == ONX_UINT4 || y->dtype == ONX_FLOAT4E2M1;
    if (clamped && work->prepared->since < 24 && onx_dtype_class_of(x->dtype) == ONX_CLASS_FLOATING)
        return cast_clamped(x, y, start, end);
    return onx_convert((onx_dtype)y->dtype, (char *)y->data + start * onx_dtype_bits(y->dtype) / 8, (onx_dtype)x->dtype,
                       (const char *)x->data + start * onx_dtype_bits(x->dtype) / 8, end - start, q->saturate);
}

void onxi_cast_element(const void *params, onxi_element *out)
{
    const cast_params *q = params;
    out->inputs = 1;
    out->cast = !q->loop;
    out->unary = q->loop;
    out->saturate = q->saturate;
    out->from = q->from;
    out->to = q->to;
    out->in_width[0] = onxi_element_size((int)q->from);
    out->out_width = onxi_element_size((int)q->to);
}

/* A cast to the input's own type, as in function bodies that are written for all types. */
static onx_status same_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    if (!y || x->kind != ONX_VALUE_TENSOR || y->kind != ONX_VALUE_TENSOR || x->dtype != y->dtype)
        return ONX_E_UNSUPPORTED;
    return onxi_cast_prepare(p); /* attributes are checked all the same */
}

#define SAME(name, since_)                                                                                             \
    {                                                                                                                  \
        .op = name, .since = since_, .preference = 20, .flags = ONX_KERNEL_VIEW | ONX_KERNEL_FLAT, .variant = "view",  \
        .prepare = same_prepare, .run = onxi_view_run                                                                  \
    }
const onx_kernel onxi_kernels_cast[] = {
    SAME("Cast", 1),
    SAME("CastLike", 15),
    { .op = "Cast", .since = 1, .prepare = onxi_cast_prepare, .run = onxi_cast_run },
    { .op = "CastLike", .since = 15, .prepare = onxi_cast_prepare, .run = onxi_cast_run },
    { 0 }
};
