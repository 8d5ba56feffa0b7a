/* types.c - elementwise operators of all plain types: loops over elements at their stored width, which compilers
 * vectorize at each level. The plain rows compute integers in 64 bits, for which SSE2 has no comparisons. 16-bit floats
 * use the loops for floats. */
#include "kernel/core/chain.h"
#include "kernel/simd/halves_loops.h"
#include "kernel/simd/wide.h"

#ifndef __wasm__

/* Lists of types; types for which the plain loops are as fast are left out of a list. */
#define FLOATS(X, op)  X(op, FLOAT, float, float, f, ONXI_SAME, ONXI_SAME) DOUBLES(X, op)
#define DOUBLES(X, op) X(op, DOUBLE, double, double, , ONXI_SAME, ONXI_SAME)
#define LONG(X, op)    X(op, INT64, int64_t, int64_t, , ONXI_SAME, ONXI_SAME)
#define SIGNED(X, op)                                                                                                  \
    X(op, INT8, int8_t, int8_t, , ONXI_SAME, ONXI_SAME)                                                                \
    X(op, INT16, int16_t, int16_t, , ONXI_SAME, ONXI_SAME)                                                             \
    X(op, INT32, int32_t, int32_t, , ONXI_SAME, ONXI_SAME)                                                             \
    LONG(X, op)
#define UNSIGNED(X, op)                                                                                                \
    X(op, UINT8, uint8_t, uint8_t, , ONXI_SAME, ONXI_SAME)                                                             \
    X(op, UINT16, uint16_t, uint16_t, , ONXI_SAME, ONXI_SAME)                                                          \
    X(op, UINT32, uint32_t, uint32_t, , ONXI_SAME, ONXI_SAME)                                                          \
    X(op, UINT64, uint64_t, uint64_t, , ONXI_SAME, ONXI_SAME)
#define ALL(X, op)                  FLOATS(X, op) SIGNED(X, op) UNSIGNED(X, op)
#define WIDE(X, op)                 FLOATS(X, op) LONG(X, op)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,

/* ---- two operands ---- */

#define EQ(op, d, T, C, M, L, S)    ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x == y)
#define LT(op, d, T, C, M, L, S)    ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x < y)
#define GT(op, d, T, C, M, L, S)    ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x > y)
#define LE(op, d, T, C, M, L, S)    ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x <= y)
#define GE(op, d, T, C, M, L, S)    ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x >= y)
#define MAX(op, d, T, C, M, L, S)   ONXI_BINARY(op, d, T, C, T, L, S, x > y || x != x ? x : y) /* NaN wins */
#define MIN(op, d, T, C, M, L, S)   ONXI_BINARY(op, d, T, C, T, L, S, x < y || x != x ? x : y)
#define PRELU(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x < 0 ? x * y : x)
/* Wraps on overflow. */
#define PRELU_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x < 0 ? (T)((u##T)x * (u##T)y) : x)
/* Declares op##_loop of floats for the 16-bit floats, and the body. */
#define BINARY_BODY(op, TYPES, to_halves)                                                                              \
    static const onxi_binary_loop op##_loop = op##_FLOAT;                                                              \
    ONXI_HALF_BINARY(op, to_halves)                                                                                    \
    static const onxi_binary_body op##_body = {                                                                        \
        .loops = { TYPES(ENTRY, op)[ONX_FLOAT16] = op##_FLOAT16, [ONX_BFLOAT16] = op##_BFLOAT16 }                      \
    };
WIDE(EQ, equal)
BINARY_BODY(equal, WIDE, false)
WIDE(LT, less)
BINARY_BODY(less, WIDE, false)
WIDE(GT, greater)
BINARY_BODY(greater, WIDE, false)
WIDE(LE, less_equal)
BINARY_BODY(less_equal, WIDE, false)
WIDE(GE, greater_equal)
BINARY_BODY(greater_equal, WIDE, false)
ALL(MAX, max)
BINARY_BODY(max, ALL, true)
ALL(MIN, min)
BINARY_BODY(min, ALL, true)
DOUBLES(PRELU, prelu)
LONG(PRELU_I, prelu)
static const onxi_binary_body prelu_body = { .loops = { DOUBLES(ENTRY, prelu) LONG(ENTRY, prelu) } };

/* Remainders of integers by floating-point quotients, which integers of half their bits make exact: a quotient that is
 * no integer differs from the next one by more than it is rounded. A divisor of 0 gives 0. */
static inline float rest_FLOAT(float x, float y)
{
    const float by = y == 0 ? 1 : y;
    return x - (float)(int32_t)(x / by) * by;
}

#define SMALL(X, op)                                                                                                   \
    X(op, INT8, int8_t, FLOAT, float)                                                                                  \
    X(op, UINT8, uint8_t, FLOAT, float)                                                                                \
    X(op, INT16, int16_t, FLOAT, float)                                                                                \
    X(op, UINT16, uint16_t, FLOAT, float)
#if ONXI_LEVEL > 1 || !defined(__SSE2__) /* SSE2 cannot round doubles to integers */
static inline double rest_DOUBLE(double x, double y)
{
    const double by = y == 0 ? 1 : y;
    return x - trunc(x / by) * by;
}

#define NARROW(X, op)                                                                                                  \
    SMALL(X, op)                                                                                                       \
    X(op, INT32, int32_t, DOUBLE, double)                                                                              \
    X(op, UINT32, uint32_t, DOUBLE, double)
#else
#define NARROW(X, op) SMALL(X, op)
#endif
#define REM_OF(op, d, T, f, C) ONXI_BINARY(op, d, T, C, T, ONXI_SAME, ONXI_SAME, rest_##f(x, y))
#define MOD_OF(op, d, T, f, C)                                                                                         \
    static inline C signed_rest_##d(C x, C y) /* with the sign of the divisor */                                       \
    {                                                                                                                  \
        const C rest = rest_##f(x, y);                                                                                 \
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;                                                   \
    }                                                                                                                  \
    ONXI_BINARY(op, d, T, C, T, ONXI_SAME, ONXI_SAME, signed_rest_##d(x, y))
#define NARROW_ENTRY(op, d, T, f, C) [ONX_##d] = op##_##d,
NARROW(REM_OF, rem)
NARROW(MOD_OF, mod)
static const onxi_binary_body mod_body = { .loops = { NARROW(NARROW_ENTRY, mod) } };
static const onxi_binary_body rem_body = { .loops = { NARROW(NARROW_ENTRY, rem) } };
static const onxi_mod_body both_mods = { &mod_body, &rem_body };

/* ---- one operand ---- */

#define UNARY(op, d, T, EXPR)                                                                                          \
    static void op##_##d(const void *px, void *py, uint64_t n, double a, double b)                                     \
    {                                                                                                                  \
        const T *in = (const T *)px;                                                                                   \
        T *out = (T *)py;                                                                                              \
        (void)a, (void)b;                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            const T x = in[i];                                                                                         \
            out[i] = (T)(EXPR);                                                                                        \
        }                                                                                                              \
    }
#define SIGN_F(op, d, T, C, M, L, S)    UNARY(op, d, T, x != x ? x : (T)((x > 0) - (x < 0)))
#define SIGN_I(op, d, T, C, M, L, S)    UNARY(op, d, T, (x > 0) - (x < 0))
#define SIGN_U(op, d, T, C, M, L, S)    UNARY(op, d, T, x != 0)
#define ABS_I(op, d, T, C, M, L, S)     UNARY(op, d, T, x < 0 ? 0 - (u##T)x : (u##T)x)
#define FLOOR(op, d, T, C, M, L, S)     UNARY(op, d, T, floor##M(x))
#define CEIL(op, d, T, C, M, L, S)      UNARY(op, d, T, ceil##M(x))
#define ROUND(op, d, T, C, M, L, S)     UNARY(op, d, T, rint##M(x))
#define THRESHOLD(op, d, T, C, M, L, S) UNARY(op, d, T, x > (T)a ? x : 0)

FLOATS(SIGN_F, sign)
SIGNED(SIGN_I, sign)
UNSIGNED(SIGN_U, sign)
static const onxi_unary_loop sign_loop = sign_FLOAT;
ONXI_HALF_UNARY(sign)
static const onxi_unary_body sign_body = {
    .loops = { ALL(ENTRY, sign)[ONX_FLOAT16] = sign_FLOAT16, [ONX_BFLOAT16] = sign_BFLOAT16 }
};
FLOATS(THRESHOLD, threshold)
static const onxi_unary_loop threshold_loop = threshold_FLOAT;
ONXI_HALF_UNARY(threshold)
static const onxi_unary_body threshold_body = {
    .loops = { FLOATS(ENTRY, threshold)[ONX_FLOAT16] = threshold_FLOAT16, [ONX_BFLOAT16] = threshold_BFLOAT16 },
    .a = "alpha"
};
LONG(ABS_I, abs)
static const onxi_unary_body abs_body = { .loops = { LONG(ENTRY, abs) } };
DOUBLES(FLOOR, floor)
static const onxi_unary_body floor_body = { .loops = { DOUBLES(ENTRY, floor) } };
DOUBLES(CEIL, ceil)
static const onxi_unary_body ceil_body = { .loops = { DOUBLES(ENTRY, ceil) } };
DOUBLES(ROUND, round)
static const onxi_unary_body round_body = { .loops = { DOUBLES(ENTRY, round) } };

/* A function of a vector of doubles, and the part of a vector at the end. */
#define WIDE_UNARY(op, FUNCTION)                                                                                       \
    static void op##_DOUBLE(const void *px, void *py, uint64_t n, double a, double b)                                  \
    {                                                                                                                  \
        const double *x = (const double *)px;                                                                          \
        double *y = (double *)py;                                                                                      \
        uint64_t i = 0;                                                                                                \
        (void)a, (void)b;                                                                                              \
        for (vd v; i + VD_LANES <= n; i += VD_LANES) {                                                                 \
            memcpy(&v, x + i, sizeof v);                                                                               \
            v = FUNCTION(v);                                                                                           \
            memcpy(y + i, &v, sizeof v);                                                                               \
        }                                                                                                              \
        vd rest = { 0 };                                                                                               \
        memcpy(&rest, x + i, (size_t)(n - i) * sizeof *x);                                                             \
        rest = FUNCTION(rest);                                                                                         \
        memcpy(y + i, &rest, (size_t)(n - i) * sizeof *y);                                                             \
    }
#define SINE(v)   vd_sine(v, false)
#define COSINE(v) vd_sine(v, true)
WIDE_UNARY(sin, SINE)
WIDE_UNARY(cos, COSINE)
static const onxi_unary_body sin_body = { .loops = { [ONX_DOUBLE] = sin_DOUBLE } };
static const onxi_unary_body cos_body = { .loops = { [ONX_DOUBLE] = cos_DOUBLE } };
WIDE_UNARY(tanh, vd_tanh)
static const onxi_unary_body tanh_body = { .loops = { [ONX_DOUBLE] = tanh_DOUBLE } };

/* ---- Clip: a missing bound is the end of the type's range ---- */

#define CLIP_OF(op, d, T, LEAST, MOST)                                                                                 \
    static void op##_##d(const void *px, const void *plow, const void *phigh, void *py, uint64_t n)                    \
    {                                                                                                                  \
        const T *x = (const T *)px, low = plow ? *(const T *)plow : (T)(LEAST);                                        \
        const T high = phigh ? *(const T *)phigh : (T)(MOST);                                                          \
        T *y = (T *)py;                                                                                                \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            T v = x[i];                                                                                                \
            v = v < low ? low : v;                                                                                     \
            y[i] = v > high ? high : v;                                                                                \
        }                                                                                                              \
    }
#define CLIP_F(op, d, T, C, M, L, S) CLIP_OF(op, d, T, -INFINITY, INFINITY)
#define CLIP_I(op, d, T, C, M, L, S) CLIP_OF(op, d, T, (u##T)1 << (sizeof(T) * 8 - 1), (u##T) ~(u##T)0 >> 1)
#define CLIP_U(op, d, T, C, M, L, S) CLIP_OF(op, d, T, 0, ~(T)0)
FLOATS(CLIP_F, clip)
SIGNED(CLIP_I, clip)
UNSIGNED(CLIP_U, clip)

static void half_clip(half_kind kind, const uint16_t *x, const uint16_t *low, const uint16_t *high, uint16_t *y,
                      uint64_t n)
{
    float t[ONXI_HALVES], ends[2] = { 0 };
    if (low)
        half_widen(kind, low, &ends[0], 1);
    if (high)
        half_widen(kind, high, &ends[1], 1);
    for (uint64_t i = 0, m; i < n; i += m) {
        m = half_stretch(n - i);
        half_widen(kind, x + i, t, m);
        clip_FLOAT(t, low ? &ends[0] : NULL, high ? &ends[1] : NULL, t, m);
        half_narrow(kind, t, y + i, m);
    }
}

static void clip_FLOAT16(const void *x, const void *low, const void *high, void *y, uint64_t n)
{
    half_clip(HALF_FLOAT16, x, low, high, y, n);
}

static void clip_BFLOAT16(const void *x, const void *low, const void *high, void *y, uint64_t n)
{
    half_clip(HALF_BFLOAT16, x, low, high, y, n);
}

static const onxi_clip_body clip_body = { { ALL(ENTRY, clip)[ONX_FLOAT16] = clip_FLOAT16, [ONX_BFLOAT16] =
                                                                                              clip_BFLOAT16 } };

/* ---- Where ---- */

ONXI_WHERE(uint8_t)
ONXI_WHERE(uint16_t)
ONXI_WHERE(uint32_t)
ONXI_WHERE(uint64_t)
static const onxi_where_body where_body = {
    { [1] = where_uint8_t, [2] = where_uint16_t, [4] = where_uint32_t, [8] = where_uint64_t }
};

/* ---- rows ---- */

#define ROW(name, version, types, how, body_, prepare_, run_)                                                          \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = types, .preference = 1, .isa = ONXI_LEVEL, .flags = how,               \
        .variant = ONXI_VARIANT, .body = body_, .prepare = prepare_, .run = run_                                       \
    }
#define ZERO (ONX_KERNEL_IN_PLACE | ONX_KERNEL_FLAT) /* f(0) = 0 */
#define COMPARISON(name, version, body_)                                                                               \
    ROW(name, version, ONXI_FLOATS | I64, 0, &body_, onxi_binary_prepare, onxi_binary_run)
#define FUNCTION(name, version, types, body_)                                                                          \
    ROW(name, version, types, ZERO, &body_, onxi_unary_prepare, onxi_unary_run)
#define EXTREME(name, body_)                                                                                           \
    ROW(name, 1, ONXI_NUMBERS, ZERO, &body_, onxi_pair_prepare, onxi_binary_run),                                      \
        ROW(name, 1, ONXI_NUMBERS, ZERO, &body_, onxi_variadic_prepare, onxi_variadic_run)
#define SMALL_TYPES                                                                                                    \
    (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_UINT16) |       \
     ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_UINT32))
#define F64 ONX_DTYPE_BIT(ONX_DOUBLE)
#define I64 ONX_DTYPE_BIT(ONX_INT64)

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_types)[] = {
    COMPARISON("Equal", 1, equal_body),
    COMPARISON("Less", 1, less_body),
    COMPARISON("Greater", 1, greater_body),
    COMPARISON("LessOrEqual", 12, less_equal_body),
    COMPARISON("GreaterOrEqual", 12, greater_equal_body),
    EXTREME("Max", max_body),
    EXTREME("Min", min_body),
    ROW("Mod", 10, SMALL_TYPES, ONX_KERNEL_IN_PLACE, &both_mods, onxi_mod_prepare, onxi_binary_run),
    ROW("PRelu", 1, F64 | I64, ONX_KERNEL_IN_PLACE, &prelu_body, onxi_prelu_prepare, onxi_binary_run),
    FUNCTION("Sign", 9, ONXI_NUMBERS, sign_body),
    FUNCTION("Abs", 1, I64, abs_body),
    FUNCTION("ThresholdedRelu", 10, ONXI_FLOATS, threshold_body),
    FUNCTION("Floor", 1, F64, floor_body),
    FUNCTION("Ceil", 1, F64, ceil_body),
    FUNCTION("Round", 11, F64, round_body),
    FUNCTION("Tanh", 1, F64, tanh_body),
    FUNCTION("Sin", 7, F64, sin_body),
    ROW("Cos", 7, F64, ONX_KERNEL_IN_PLACE, &cos_body, onxi_unary_prepare, onxi_unary_run),
    { .op = "Clip",
      .since = 1,
      .dtypes = ONXI_NUMBERS,
      .preference = 1,
      .isa = ONXI_LEVEL,
      .flags = ONX_KERNEL_IN_PLACE,
      .post_op = ONX_POST_CLIP,
      .variant = ONXI_VARIANT,
      .body = &clip_body,
      .prepare = onxi_clip_prepare,
      .run = onxi_clip_run },
    ROW("Where", 9, ONX_DTYPE_BIT(ONX_BOOL), 0, &where_body, onxi_where_prepare, onxi_where_run),
    { 0 }
};
#else
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_types)[] = { { 0 } };
#endif
