/* unary.c - elementwise operators of one input, with at most two numeric attributes. */
#include "kernel/core/blocked.h"
#include "kernel/core/chain.h"

#include <math.h>

/* EXPR may use x (of compute type C), a and b; M is the suffix of the math functions. */
#define UNARY(op, d, T, C, LOAD, STORE, EXPR)                                                                          \
    static void op##_##d(const void *px, void *py, uint64_t n, double pa, double pb)                                   \
    {                                                                                                                  \
        const T *in = (const T *)px;                                                                                   \
        T *out = (T *)py;                                                                                              \
        const C a = (C)pa, b = (C)pb;                                                                                  \
        (void)a, (void)b;                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            C x = (C)LOAD(in[i]);                                                                                      \
            out[i] = (T)STORE((C)(EXPR));                                                                              \
        }                                                                                                              \
    }

#define F_RELU(op, d, T, C, M, L, S)      UNARY(op, d, T, C, L, S, x > 0 ? x : x != x ? x : 0)
#define I_RELU(op, d, T, C, M, L, S)      UNARY(op, d, T, C, L, S, x > 0 ? x : 0)
#define F_LEAKY(op, d, T, C, M, L, S)     UNARY(op, d, T, C, L, S, x < 0 ? a * x : x)
#define F_ELU(op, d, T, C, M, L, S)       UNARY(op, d, T, C, L, S, x < 0 ? a * expm1##M(x) : x)
#define F_SELU(op, d, T, C, M, L, S)      UNARY(op, d, T, C, L, S, x > 0 ? b * x : x < 0 ? b * (a * expm1##M(x)) : x)
#define F_CELU(op, d, T, C, M, L, S)      UNARY(op, d, T, C, L, S, x < 0 ? a * expm1##M(x / a) : x)
#define F_THRESHOLD(op, d, T, C, M, L, S) UNARY(op, d, T, C, L, S, x > a ? x : 0)
#define F_SIGMOID(op, d, T, C, M, L, S)                                                                                \
    UNARY(op, d, T, C, L, S, x >= 0 ? 1 / (1 + exp##M(-x)) : exp##M(x) / (1 + exp##M(x)))
#define F_HARD_SIGMOID(op, d, T, C, M, L, S)                                                                           \
    UNARY(op, d, T, C, L, S, a *x + b <= 0 ? 0 : a * x + b >= 1 ? 1 : a * x + b)
#define F_HARD_SWISH(op, d, T, C, M, L, S) UNARY(op, d, T, C, L, S, x *fmax##M(0, fmin##M(1, x / 6 + (C)0.5)))
#define F_SOFTPLUS(op, d, T, C, M, L, S)   UNARY(op, d, T, C, L, S, (x > 0 ? x : 0) + log1p##M(exp##M(-fabs##M(x))))
#define F_MISH(op, d, T, C, M, L, S)                                                                                   \
    UNARY(op, d, T, C, L, S, x *tanh##M((x > 0 ? x : 0) + log1p##M(exp##M(-fabs##M(x)))))
#define F_SOFTSIGN(op, d, T, C, M, L, S)   UNARY(op, d, T, C, L, S, x / (1 + fabs##M(x)))
#define F_RECIPROCAL(op, d, T, C, M, L, S) UNARY(op, d, T, C, L, S, 1 / x)
#define F_NEG(op, d, T, C, M, L, S)        UNARY(op, d, T, C, L, S, -x)
#define I_NEG(op, d, T, C, M, L, S)        UNARY(op, d, T, C, L, S, ONXI_WRAP(C, 0, -, x))
#define F_ABS(op, d, T, C, M, L, S)        UNARY(op, d, T, C, L, S, fabs##M(x))
#define I_ABS(op, d, T, C, M, L, S)        UNARY(op, d, T, C, L, S, x < 0 ? ONXI_WRAP(C, 0, -, x) : x)
#define U_SAME(op, d, T, C, M, L, S)       UNARY(op, d, T, C, L, S, x)
#define F_SIGN(op, d, T, C, M, L, S)       UNARY(op, d, T, C, L, S, x > 0 ? 1 : x < 0 ? -1 : x)
#define I_SIGN(op, d, T, C, M, L, S)       UNARY(op, d, T, C, L, S, x > 0 ? 1 : x < 0 ? -1 : 0)
#define U_SIGN(op, d, T, C, M, L, S)       UNARY(op, d, T, C, L, S, x != 0)
#define I_INVERT(op, d, T, C, M, L, S)     UNARY(op, d, T, C, L, S, ~x)
#define B_NOT(op, d, T, C, M, L, S)        UNARY(op, d, T, C, L, S, !x)
#define MATH(fn, op, d, T, C, M, L, S)     UNARY(op, d, T, C, L, S, fn##M(x))
#define F_EXP(op, d, T, C, M, L, S)        MATH(exp, op, d, T, C, M, L, S)
#define F_LOG(op, d, T, C, M, L, S)        MATH(log, op, d, T, C, M, L, S)
#define F_SQRT(op, d, T, C, M, L, S)       MATH(sqrt, op, d, T, C, M, L, S)
#define F_FLOOR(op, d, T, C, M, L, S)      MATH(floor, op, d, T, C, M, L, S)
#define F_CEIL(op, d, T, C, M, L, S)       MATH(ceil, op, d, T, C, M, L, S)
#define F_ROUND(op, d, T, C, M, L, S)      MATH(rint, op, d, T, C, M, L, S)
#define F_TANH(op, d, T, C, M, L, S)       MATH(tanh, op, d, T, C, M, L, S)
#define F_ERF(op, d, T, C, M, L, S)        MATH(erf, op, d, T, C, M, L, S)
#define I_ERF(op, d, T, C, M, L, S)        UNARY(op, d, T, C, L, S, erf((double)x)) /* truncated: 0 up to 5, then 1 */
/* 1 + erf and 1 + tanh would lose their digits where x is far below 0. */
#define F_GELU(op, d, T, C, M, L, S) UNARY(op, d, T, C, L, S, x / 2 * erfc##M(-x * (C)0.70710678118654752))
#define F_GELU_TANH(op, d, T, C, M, L, S)                                                                              \
    UNARY(op, d, T, C, L, S, x / (1 + exp##M((C)-1.5957691216057308 * (x + (C)0.044715 * x * x * x))))
#define F_SWISH(op, d, T, C, M, L, S) UNARY(op, d, T, C, L, S, x / (1 + exp##M(-a * x)))
#define F_SIN(op, d, T, C, M, L, S)   MATH(sin, op, d, T, C, M, L, S)
#define F_COS(op, d, T, C, M, L, S)   MATH(cos, op, d, T, C, M, L, S)
#define F_TAN(op, d, T, C, M, L, S)   MATH(tan, op, d, T, C, M, L, S)
#define F_ASIN(op, d, T, C, M, L, S)  MATH(asin, op, d, T, C, M, L, S)
#define F_ACOS(op, d, T, C, M, L, S)  MATH(acos, op, d, T, C, M, L, S)
#define F_ATAN(op, d, T, C, M, L, S)  MATH(atan, op, d, T, C, M, L, S)
#define F_SINH(op, d, T, C, M, L, S)  MATH(sinh, op, d, T, C, M, L, S)
#define F_COSH(op, d, T, C, M, L, S)  MATH(cosh, op, d, T, C, M, L, S)
#define F_ASINH(op, d, T, C, M, L, S) MATH(asinh, op, d, T, C, M, L, S)
#define F_ACOSH(op, d, T, C, M, L, S) MATH(acosh, op, d, T, C, M, L, S)
#define F_ATANH(op, d, T, C, M, L, S) MATH(atanh, op, d, T, C, M, L, S)

#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
/* A float operator: its loops and its body. */
#define FLOAT_OP(op, F, a_, b_)                                                                                        \
    ONXI_EACH_FLOAT(F, op)                                                                                             \
    static const onxi_unary_body op##_body = { .loops = { ONXI_EACH_FLOAT(ENTRY, op) }, .a = a_, .b = b_ };

FLOAT_OP(leaky, F_LEAKY, "alpha", NULL)
FLOAT_OP(elu, F_ELU, "alpha", NULL)
FLOAT_OP(selu, F_SELU, "alpha", "gamma")
FLOAT_OP(celu, F_CELU, "alpha", NULL)
FLOAT_OP(threshold, F_THRESHOLD, "alpha", NULL)
FLOAT_OP(sigmoid, F_SIGMOID, NULL, NULL)
FLOAT_OP(hard_sigmoid, F_HARD_SIGMOID, "alpha", "beta")
FLOAT_OP(hard_swish, F_HARD_SWISH, NULL, NULL)
FLOAT_OP(softplus, F_SOFTPLUS, NULL, NULL)
FLOAT_OP(mish, F_MISH, NULL, NULL)
FLOAT_OP(softsign, F_SOFTSIGN, NULL, NULL)
FLOAT_OP(reciprocal, F_RECIPROCAL, NULL, NULL)
FLOAT_OP(exp, F_EXP, NULL, NULL)
FLOAT_OP(log, F_LOG, NULL, NULL)
FLOAT_OP(sqrt, F_SQRT, NULL, NULL)
FLOAT_OP(floor, F_FLOOR, NULL, NULL)
FLOAT_OP(ceil, F_CEIL, NULL, NULL)
FLOAT_OP(round, F_ROUND, NULL, NULL)
FLOAT_OP(tanh, F_TANH, NULL, NULL)
FLOAT_OP(gelu, F_GELU, NULL, NULL)
FLOAT_OP(gelu_tanh, F_GELU_TANH, NULL, NULL)
FLOAT_OP(swish, F_SWISH, "alpha", NULL)
FLOAT_OP(sin, F_SIN, NULL, NULL)
FLOAT_OP(cos, F_COS, NULL, NULL)
FLOAT_OP(tan, F_TAN, NULL, NULL)
FLOAT_OP(asin, F_ASIN, NULL, NULL)
FLOAT_OP(acos, F_ACOS, NULL, NULL)
FLOAT_OP(atan, F_ATAN, NULL, NULL)
FLOAT_OP(sinh, F_SINH, NULL, NULL)
FLOAT_OP(cosh, F_COSH, NULL, NULL)
FLOAT_OP(asinh, F_ASINH, NULL, NULL)
FLOAT_OP(acosh, F_ACOSH, NULL, NULL)
FLOAT_OP(atanh, F_ATANH, NULL, NULL)

#define NUMERIC_LOOPS(op) ONXI_EACH_FLOAT(ENTRY, op) ONXI_EACH_SIGNED(ENTRY, op) ONXI_EACH_UNSIGNED(ENTRY, op)
ONXI_EACH_FLOAT(F_RELU, relu)
ONXI_EACH_SIGNED(I_RELU, relu)
static const onxi_unary_body relu_body = { .loops = { ONXI_EACH_FLOAT(ENTRY, relu) ONXI_EACH_SIGNED(ENTRY, relu) } };
ONXI_EACH_FLOAT(F_NEG, neg)
ONXI_EACH_SIGNED(I_NEG, neg)
static const onxi_unary_body neg_body = { .loops = { ONXI_EACH_FLOAT(ENTRY, neg) ONXI_EACH_SIGNED(ENTRY, neg) } };
ONXI_EACH_FLOAT(F_ABS, abs)
ONXI_EACH_SIGNED(I_ABS, abs)
ONXI_EACH_UNSIGNED(U_SAME, abs)
static const onxi_unary_body abs_body = { .loops = { NUMERIC_LOOPS(abs) } };
ONXI_EACH_FLOAT(F_SIGN, sign)
ONXI_EACH_SIGNED(I_SIGN, sign)
ONXI_EACH_UNSIGNED(U_SIGN, sign)
static const onxi_unary_body sign_body = { .loops = { NUMERIC_LOOPS(sign) } };
ONXI_EACH_FLOAT(F_ERF, erf)
ONXI_EACH_SIGNED(I_ERF, erf)
ONXI_EACH_UNSIGNED(I_ERF, erf)
static const onxi_unary_body erf_body = { .loops = { NUMERIC_LOOPS(erf) } };
ONXI_EACH_SIGNED(I_INVERT, invert)
ONXI_EACH_UNSIGNED(I_INVERT, invert)
static const onxi_unary_body invert_body = { .loops = { ONXI_EACH_SIGNED(ENTRY, invert)
                                                            ONXI_EACH_UNSIGNED(ENTRY, invert) } };
ONXI_EACH_BOOL(B_NOT, not )
static const onxi_unary_body not_body = { .loops = { ONXI_EACH_BOOL(ENTRY, not ) } };

/* ---- driver ---- */

typedef struct unary_params {
    onxi_unary_loop loop;
    double a, b;
    uint64_t count;
    uint32_t width;
} unary_params;

onx_status onxi_unary_prepare(onx_prepare *p)
{
    return onxi_unary_prepare_with(p, p->kernel->body);
}

onx_status onxi_unary_prepare_with(onx_prepare *p, const onxi_unary_body *body)
{
    const onx_value *x = p->inputs[0];
    unary_params *q = ONXI_NEW(p->arena, unary_params);
    if (!q)
        return ONX_E_MEMORY;
    if (x->dtype >= ONX_DTYPE_COUNT || !body->loops[x->dtype])
        return ONX_E_UNSUPPORTED;
    q->loop = body->loops[x->dtype];
    q->width = onx_dtype_bits(x->dtype) / 8;
    q->count = x->layout ? x->size / q->width : x->count;
    q->a = body->a ? (double)onx_prepare_float(p, body->a) : 0;
    q->b = body->b ? (double)onx_prepare_float(p, body->b) : 0;
    if (!onxi_element_layout(p))
        return ONX_E_MEMORY;
    p->params = q;
    p->rows = (q->count + ONXI_BLOCK - 1) / ONXI_BLOCK;
    return ONX_OK;
}

onx_status onxi_unary_run(onx_work *work, uint64_t first, uint64_t last)
{
    const unary_params *q = work->params;
    uint64_t start = first * ONXI_BLOCK, end = last * ONXI_BLOCK < q->count ? last * ONXI_BLOCK : q->count;
    if (start < end)
        q->loop((const char *)work->inputs[0]->data + start * q->width,
                (char *)work->outputs[0]->data + start * q->width, end - start, q->a, q->b);
    return ONX_OK;
}

void onxi_unary_element(const void *params, onxi_element *out)
{
    const unary_params *q = params;
    out->inputs = 1;
    out->unary = q->loop;
    out->a = q->a;
    out->b = q->b;
    out->in_width[0] = out->out_width = q->width;
}

onx_status onxi_gelu_prepare(onx_prepare *p)
{
    static const onxi_unary_body *const plain[] = { &gelu_body, &gelu_tanh_body };
    const onxi_unary_body *const *bodies = p->kernel->body ? p->kernel->body : plain;
    onx_str how = onx_prepare_text(p, "approximate");
    if (!onx_str_is(how, "none") && !onx_str_is(how, "tanh"))
        return onx_prepare_fail(p, ONX_E_INVALID, "approximate is \"%.*s\", expected none or tanh", ONX_ARG(how));
    return onxi_unary_prepare_with(p, bodies[onx_str_is(how, "tanh")]);
}

/* ---- Clip: bounds are attributes before version 11, inputs from then on ---- */

#define CLIP(op, d, T, C, M, L, S)                                                                                     \
    static void op##_##d(const void *px, const void *plow, const void *phigh, void *py, uint64_t n)                    \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        T *y = (T *)py;                                                                                                \
        C low = plow ? (C)L(*(const T *)plow) : 0, high = phigh ? (C)L(*(const T *)phigh) : 0;                         \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            C v = (C)L(x[i]);                                                                                          \
            if (plow && v < low)                                                                                       \
                v = low;                                                                                               \
            if (phigh && v > high)                                                                                     \
                v = high;                                                                                              \
            y[i] = (T)S(v);                                                                                            \
        }                                                                                                              \
    }
ONXI_EACH_FLOAT(CLIP, clip)
ONXI_EACH_SIGNED(CLIP, clip)
ONXI_EACH_UNSIGNED(CLIP, clip)
static const onxi_clip_body clip_body = { { NUMERIC_LOOPS(clip) } };

typedef struct clip_params {
    onxi_clip_loop loop;
    uint32_t width;
    double low, high; /* in the element type */
    bool has_low, has_high;
} clip_params;

onx_status onxi_clip_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    clip_params *q = ONXI_NEW(p->arena, clip_params);
    if (!q)
        return ONX_E_MEMORY;
    q->loop = ((const onxi_clip_body *)(p->kernel->body ? p->kernel->body : &clip_body))->loops[x->dtype];
    if (!q->loop)
        return ONX_E_UNSUPPORTED;
    q->width = onxi_element_size(x->dtype);
    if (p->since < 11) {
        static const char *const names[] = { "min", "max" };
        for (int i = 0; i < 2; i++) {
            bool given = p->since >= 6 || onx_prepare_given(p, names[i]); /* version 1 has no defaults */
            double value = given ? (double)onx_prepare_float(p, names[i]) : 0;
            *(i ? &q->has_high : &q->has_low) = given;
            if (given)
                ONX_TRY(onx_convert((onx_dtype)x->dtype, i ? &q->high : &q->low, ONX_DOUBLE, &value, 1, true));
        }
    }
    for (uint32_t i = 1; i < p->input_count && p->since >= 11; i++)
        if (p->inputs[i] && (p->inputs[i]->dtype != x->dtype || p->inputs[i]->count != 1))
            return onx_prepare_fail(p, ONX_E_INVALID, "a bound is not a scalar of the input's type");
    if (!onxi_element_layout(p))
        return ONX_E_MEMORY;
    p->params = q;
    p->rows = (x->count + ONXI_BLOCK - 1) / ONXI_BLOCK;
    return ONX_OK;
}

onx_status onxi_clip_run(onx_work *work, uint64_t first, uint64_t last)
{
    const clip_params *q = work->params;
    const void *low = q->has_low ? &q->low : NULL, *high = q->has_high ? &q->high : NULL;
    uint32_t inputs = work->prepared->since < 11 ? 1 : work->prepared->input_count;
    if (inputs > 1 && work->inputs[1])
        low = work->inputs[1]->data;
    if (inputs > 2 && work->inputs[2])
        high = work->inputs[2]->data;
    uint64_t count = work->inputs[0]->count, end = last * ONXI_BLOCK < count ? last * ONXI_BLOCK : count;
    const uint64_t start = first * ONXI_BLOCK;
    if (start < end)
        q->loop((const char *)work->inputs[0]->data + start * q->width, low, high,
                (char *)work->outputs[0]->data + start * q->width, end - start);
    return ONX_OK;
}

void onxi_clip_element(const void *params, onxi_element *out)
{
    const clip_params *q = params;
    out->inputs = 3;
    out->clip = q->loop;
    out->low = q->has_low ? &q->low : NULL;
    out->high = q->has_high ? &q->high : NULL;
    out->in_width[0] = out->in_width[1] = out->in_width[2] = out->out_width = q->width;
}

bool onxi_clip_bound(const onx_prepare *as, const char *name, uint32_t input, float unbounded, float *out)
{
    *out = unbounded;
    if (as->since < 11) {
        if (onx_prepare_given(as, name))
            *out = onx_prepare_float(as, name);
        return true;
    }
    const onx_value *v = input < as->input_count ? as->inputs[input] : NULL;
    if (v && (!v->data || v->dtype != ONX_FLOAT || v->count != 1))
        return false;
    if (v)
        *out = *(const float *)v->data;
    return true;
}

/* ---- rows ---- */

#define POST_ROW(kind, name, version, types, how, body_)                                                               \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = types, .flags = how, .post_op = ONX_POST_##kind, .body = &body_,       \
        .prepare = onxi_unary_prepare, .run = onxi_unary_run                                                           \
    }
#define ROW(name, version, types, how, body_) POST_ROW(NONE, name, version, types, how, body_)
#define ZERO                                  (ONX_KERNEL_IN_PLACE | ONX_KERNEL_FLAT) /* f(0) = 0 */

const onx_kernel onxi_kernels_unary[] = { POST_ROW(RELU, "Relu", 1, ONXI_FLOATS | ONXI_SIGNED, ZERO, relu_body),
                                          POST_ROW(LEAKY_RELU, "LeakyRelu", 1, ONXI_FLOATS, ZERO, leaky_body),
                                          ROW("Elu", 1, ONXI_FLOATS, ZERO, elu_body),
                                          ROW("Selu", 1, ONXI_FLOATS, ZERO, selu_body),
                                          ROW("Celu", 12, ONXI_FLOATS, ZERO, celu_body),
                                          ROW("ThresholdedRelu", 10, ONXI_FLOATS, ZERO, threshold_body),
                                          POST_ROW(SIGMOID, "Sigmoid", 1, ONXI_FLOATS, ONX_KERNEL_IN_PLACE,
                                                   sigmoid_body),
                                          ROW("HardSigmoid", 1, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, hard_sigmoid_body),
                                          POST_ROW(HARD_SWISH, "HardSwish", 14, ONXI_FLOATS, ZERO, hard_swish_body),
                                          ROW("Softplus", 1, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, softplus_body),
                                          ROW("Mish", 18, ONXI_FLOATS, ZERO, mish_body),
                                          ROW("Softsign", 1, ONXI_FLOATS, ZERO, softsign_body),
                                          ROW("Reciprocal", 1, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, reciprocal_body),
                                          ROW("Neg", 1, ONXI_FLOATS | ONXI_SIGNED, ZERO, neg_body),
                                          ROW("Abs", 1, ONXI_NUMBERS, ZERO, abs_body),
                                          ROW("Sign", 9, ONXI_NUMBERS, ZERO, sign_body),
                                          ROW("Exp", 1, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, exp_body),
                                          ROW("Log", 1, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, log_body),
                                          ROW("Sqrt", 1, ONXI_FLOATS, ZERO, sqrt_body),
                                          ROW("Floor", 1, ONXI_FLOATS, ZERO, floor_body),
                                          ROW("Ceil", 1, ONXI_FLOATS, ZERO, ceil_body),
                                          ROW("Round", 11, ONXI_FLOATS, ZERO, round_body),
                                          POST_ROW(TANH, "Tanh", 1, ONXI_FLOATS, ZERO, tanh_body),
                                          ROW("Erf", 9, ONXI_NUMBERS, ZERO, erf_body),
                                          ROW("Sin", 7, ONXI_FLOATS, ZERO, sin_body),
                                          ROW("Cos", 7, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, cos_body),
                                          ROW("Tan", 7, ONXI_FLOATS, ZERO, tan_body),
                                          ROW("Asin", 7, ONXI_FLOATS, ZERO, asin_body),
                                          ROW("Acos", 7, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, acos_body),
                                          ROW("Atan", 7, ONXI_FLOATS, ZERO, atan_body),
                                          ROW("Sinh", 9, ONXI_FLOATS, ZERO, sinh_body),
                                          ROW("Cosh", 9, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, cosh_body),
                                          ROW("Asinh", 9, ONXI_FLOATS, ZERO, asinh_body),
                                          ROW("Acosh", 9, ONXI_FLOATS, ONX_KERNEL_IN_PLACE, acosh_body),
                                          ROW("Atanh", 9, ONXI_FLOATS, ZERO, atanh_body),
                                          ROW("BitwiseNot", 18, ONXI_INTEGERS, ONX_KERNEL_IN_PLACE, invert_body),
                                          ROW("Not", 1, ONX_DTYPE_BIT(ONX_BOOL), ONX_KERNEL_IN_PLACE, not_body),
                                          POST_ROW(SWISH, "Swish", 24, ONXI_FLOATS, ZERO, swish_body),
                                          { .op = "Gelu",
                                            .since = 20,
                                            .dtypes = ONXI_FLOATS,
                                            .flags = ZERO,
                                            .post_op = ONX_POST_GELU,
                                            .prepare = onxi_gelu_prepare,
                                            .run = onxi_unary_run },
                                          { .op = "Clip",
                                            .since = 1,
                                            .dtypes = ONXI_NUMBERS,
                                            .flags = ONX_KERNEL_IN_PLACE,
                                            .post_op = ONX_POST_CLIP,
                                            .prepare = onxi_clip_prepare,
                                            .run = onxi_clip_run },
                                          { 0 } };
