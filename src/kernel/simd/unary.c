/* unary.c - vectorized functions of one float, with the drivers of the plain rows; 16-bit floats are converted to
 * float. */
#include "kernel/simd/halves_loops.h"
#include "kernel/simd/math.h"

/* EXPR over the vector x and the numbers a and b. */
#define LOOP(op, EXPR)                                                                                                 \
    static void op##_loop(const void *px, void *py, uint64_t n, double pa, double pb)                                  \
    {                                                                                                                  \
        const float *in = px;                                                                                          \
        float *out = py;                                                                                               \
        const onxi_vf a = vf_all((float)pa), b = vf_all((float)pb);                                                    \
        uint64_t i = 0;                                                                                                \
        (void)a, (void)b;                                                                                              \
        for (; i + ONXI_LANES <= n; i += ONXI_LANES) {                                                                 \
            const onxi_vf x = vf_load(in + i);                                                                         \
            vf_store(out + i, EXPR);                                                                                   \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            const onxi_vf x = vf_load_part(in + i, n - i, 0);                                                          \
            vf_store_part(out + i, EXPR, n - i);                                                                       \
        }                                                                                                              \
    }
#define FUNCTION(op, a_, b_, EXPR)                                                                                     \
    LOOP(op, EXPR)                                                                                                     \
    ONXI_HALF_UNARY(op)                                                                                                \
    static const onxi_unary_body op##_body = { .loops = { [ONX_FLOAT] = op##_loop ONXI_HALF_LOOPS(op) },               \
                                               .a = (a_),                                                              \
                                               .b = (b_) };

#define ZERO vf_all(0)

/* Clamps to 0 .. 1; NaN is kept. */
static inline onxi_vf bounded(onxi_vf x)
{
    return vf_select(x < 0.0f, ZERO, vf_select(x > 1.0f, vf_all(1), x));
}

FUNCTION(relu, NULL, NULL, vf_select(x <= 0.0f, ZERO, x)) /* NaN is kept */
FUNCTION(leaky, "alpha", NULL, vf_select(x < 0.0f, a *x, x))
FUNCTION(elu, "alpha", NULL, vf_select(x < 0.0f, a *vf_expm1(x), x))
FUNCTION(selu, "alpha", "gamma", vf_select(x < 0.0f, b *(a *vf_expm1(x)), vf_select(x > 0.0f, b *x, x)))
FUNCTION(celu, "alpha", NULL, vf_select(x < 0.0f, a *vf_expm1(x / a), x))
FUNCTION(sigmoid, NULL, NULL, vf_sigmoid(x))
FUNCTION(hard_sigmoid, "alpha", "beta", bounded(a *x + b))
FUNCTION(hard_swish, NULL, NULL, x *bounded(x *(1.0f / 6.0f) + 0.5f))
FUNCTION(softplus, NULL, NULL, vf_softplus(x))
FUNCTION(mish, NULL, NULL, vf_mish(x))
FUNCTION(softsign, NULL, NULL, x / (1.0f + vf_abs(x)))
FUNCTION(reciprocal, NULL, NULL, 1.0f / x)
FUNCTION(neg, NULL, NULL, -x)
FUNCTION(abs, NULL, NULL, vf_abs(x))
FUNCTION(exp, NULL, NULL, vf_exp(x))
FUNCTION(log, NULL, NULL, vf_log(x))
FUNCTION(sqrt, NULL, NULL, vf_sqrt(x))
FUNCTION(round, NULL, NULL, vf_round(x))
FUNCTION(floor, NULL, NULL, vf_floor(x))
FUNCTION(ceil, NULL, NULL, vf_ceil(x))
FUNCTION(tanh, NULL, NULL, vf_tanh(x))
FUNCTION(erf, NULL, NULL, vf_erf(x))
FUNCTION(sin, NULL, NULL, vf_sine(x, 0))
FUNCTION(cos, NULL, NULL, vf_sine(x, 1))
FUNCTION(atan, NULL, NULL, vf_atan(x))
FUNCTION(asin, NULL, NULL, vf_arc(x, 0))
FUNCTION(acos, NULL, NULL, vf_arc(x, 1))
FUNCTION(gelu, NULL, NULL, vf_gelu(x))
FUNCTION(gelu_tanh, NULL, NULL, vf_gelu_tanh(x))
FUNCTION(swish, "alpha", NULL, vf_swish(x, a))

static const onxi_unary_body *const gelu_bodies[] = { &gelu_body, &gelu_tanh_body };

#define POST_ROW(kind, name, version, how, body_)                                                                      \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_F32 | ONXI_HALF_TYPES, .preference = 1, .isa = ONXI_LEVEL,        \
        .flags = ONX_KERNEL_IN_PLACE | (how), .post_op = ONX_POST_##kind, .variant = ONXI_VARIANT, .body = &body_,     \
        .prepare = onxi_unary_prepare, .run = onxi_unary_run                                                           \
    }
#define ROW(name, version, how, body_) POST_ROW(NONE, name, version, how, body_)
#define FLAT                           ONX_KERNEL_FLAT /* f(0) = 0 */

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_unary)[] = { POST_ROW(RELU, "Relu", 1, FLAT, relu_body),
                                                             POST_ROW(LEAKY_RELU, "LeakyRelu", 1, FLAT, leaky_body),
                                                             ROW("Elu", 1, FLAT, elu_body),
                                                             ROW("Selu", 1, FLAT, selu_body),
                                                             ROW("Celu", 12, FLAT, celu_body),
                                                             POST_ROW(SIGMOID, "Sigmoid", 1, 0, sigmoid_body),
                                                             ROW("HardSigmoid", 1, 0, hard_sigmoid_body),
                                                             POST_ROW(HARD_SWISH, "HardSwish", 14, FLAT,
                                                                      hard_swish_body),
                                                             ROW("Softplus", 1, 0, softplus_body),
                                                             ROW("Mish", 18, FLAT, mish_body),
                                                             ROW("Softsign", 1, FLAT, softsign_body),
                                                             ROW("Reciprocal", 1, 0, reciprocal_body),
                                                             ROW("Neg", 1, FLAT, neg_body),
                                                             ROW("Abs", 1, FLAT, abs_body),
                                                             ROW("Exp", 1, 0, exp_body),
                                                             ROW("Log", 1, 0, log_body),
                                                             ROW("Sqrt", 1, FLAT, sqrt_body),
                                                             ROW("Round", 11, FLAT, round_body),
                                                             ROW("Floor", 1, FLAT, floor_body),
                                                             ROW("Ceil", 1, FLAT, ceil_body),
                                                             POST_ROW(TANH, "Tanh", 1, FLAT, tanh_body),
                                                             ROW("Erf", 9, FLAT, erf_body),
                                                             ROW("Sin", 7, FLAT, sin_body),
                                                             ROW("Cos", 7, 0, cos_body),
                                                             ROW("Atan", 7, FLAT, atan_body),
                                                             ROW("Asin", 7, FLAT, asin_body),
                                                             ROW("Acos", 7, 0, acos_body),
                                                             POST_ROW(SWISH, "Swish", 24, FLAT, swish_body),
                                                             { .op = "Gelu",
                                                               .since = 20,
                                                               .dtypes = ONXI_F32 | ONXI_HALF_TYPES,
                                                               .preference = 1,
                                                               .isa = ONXI_LEVEL,
                                                               .flags = ONX_KERNEL_IN_PLACE | FLAT,
                                                               .variant = ONXI_VARIANT,
                                                               .body = gelu_bodies,
                                                               .post_op = ONX_POST_GELU,
                                                               .prepare = onxi_gelu_prepare,
                                                               .run = onxi_unary_run },
                                                             { 0 } };
