/* power.c - Pow for every type of base and of exponents, which may differ. Exponents become doubles, or 64-bit integers
 * if the base is an integer as well, a stretch at a time. Exponents that are frequent in networks are products if one
 * exponent serves the whole row. Browsers have floats only. */
#include "kernel/simd/halves_loops.h"
#include "kernel/simd/math.h"

enum { STRETCH = 256 };

/* ---- floats ---- */

/* y = x^e for a frequent exponent; false: it is not frequent. */
static bool floats_by_product(const float *x, int64_t step, float e, float *y, int64_t n)
{
    if (e == 2) {
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i * step] * x[i * step];
#ifndef __wasm__ /* browsers have no room for the others */
    } else if (e == 3) {
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i * step] * x[i * step] * x[i * step];
    } else if (e == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i * step];
    } else if (e == -1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = 1 / x[i * step];
    } else if (e == 0.5f) {
        for (int64_t i = 0; i < n; i++) /* powf(-0, 0.5) is 0, and of minus infinity it is infinity */
            y[i] = x[i * step] == -INFINITY ? INFINITY : sqrtf(x[i * step]) + 0.0f;
#endif
    } else {
        return false;
    }
    return true;
}

/* Lanes from element i on, of which m are wanted. */
static inline onxi_vf lanes(const float *x, int64_t step, uint64_t i, uint64_t m)
{
    float t[ONXI_LANES] = { 0 };
    if (step == 0)
        return vf_all(*x);
    if (step == 1)
        return m == ONXI_LANES ? vf_load(x + i) : vf_load_part(x + i, m, 1);
    for (uint64_t k = 0; k < m; k++)
        t[k] = x[(int64_t)(i + k) * step];
    return vf_load(t);
}

static void FLOAT_FLOAT(const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t count)
{
    const float *x = px, *y = py;
    float *z = pz;
    const uint64_t n = (uint64_t)count;
    if (!n || (sy == 0 && floats_by_product(x, sx, *y, z, count)))
        return;
    for (uint64_t i = 0, m; i < n; i += m) {
        m = n - i < ONXI_LANES ? n - i : ONXI_LANES;
        vf_store_part(z + i, vf_pow(lanes(x, sx, i, m), lanes(y, sy, i, m)), m);
    }
}

#ifdef __wasm__
static const onxi_power_body body[] = { { ONX_FLOAT, ONX_FLOAT, FLOAT_FLOAT }, { 0 } };
#define BASES ONXI_F32
#else
#define BASES                                                                                                          \
    (ONXI_F32 | ONXI_HALF_TYPES | ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_INT64))

/* ---- exponents of a stretch: out[i] = y[i * step] ---- */

#define EXPONENTS(E, T, as, O, CONVERT)                                                                                \
    static void E##_##as(const void *py, int64_t first, int64_t step, void *pout, uint64_t n)                          \
    {                                                                                                                  \
        const T *y = (const T *)py + first;                                                                            \
        O *out = (O *)pout;                                                                                            \
        if (step == 1)                                                                                                 \
            for (uint64_t i = 0; i < n; i++)                                                                           \
                out[i] = (O)CONVERT(y[i]);                                                                             \
        else                                                                                                           \
            for (uint64_t i = 0; i < n; i++)                                                                           \
                out[i] = (O)CONVERT(y[(int64_t)i * step]);                                                             \
    }
#define BOTH(E, T) EXPONENTS(E, T, real, double, ) EXPONENTS(E, T, whole, int64_t, )
EXPONENTS(FLOAT, float, real, double, )
EXPONENTS(DOUBLE, double, real, double, )
EXPONENTS(FLOAT16, uint16_t, real, double, onx_float16_to_f32)
EXPONENTS(BFLOAT16, uint16_t, real, double, onx_bfloat16_to_f32)
BOTH(INT8, int8_t)
BOTH(INT16, int16_t)
BOTH(INT32, int32_t)
BOTH(INT64, int64_t)
BOTH(UINT8, uint8_t)
BOTH(UINT16, uint16_t)
BOTH(UINT32, uint32_t)
EXPONENTS(UINT64, uint64_t, real, double, )
EXPONENTS(UINT64, uint64_t, whole, int64_t, onxi_signed_exponent)
typedef void (*exponents_of)(const void *y, int64_t first, int64_t step, void *out, uint64_t n);

/* ---- bases of up to 32 bits that are floats: z = x^e, where all have the exponent e[0] if `one` ---- */

static inline vdf power_of_part(vdf x, vd e)
{
    return __builtin_convertvector(vd_pow_of_float(__builtin_convertvector(x, vd), e), vdf);
}

static void power_float(const float *x, const double *e, bool one, float *z, uint64_t n)
{
    const float first = (float)e[0];
    if (one && (double)first == e[0] && floats_by_product(x, 1, first, z, (int64_t)n))
        return;
    vd y = vd_all(e[0]);
    vdf t = { 0 };
    uint64_t i = 0;
    for (; i + VD_LANES <= n; i += VD_LANES) {
        memcpy(&t, x + i, sizeof t);
        if (!one)
            memcpy(&y, e + i, sizeof y);
        t = power_of_part(t, y);
        memcpy(z + i, &t, sizeof t);
    }
    memcpy(&t, x + i, (size_t)(n - i) * sizeof *x);
    if (!one)
        memcpy(&y, e + i, (size_t)(n - i) * sizeof *e);
    t = power_of_part(t, y);
    memcpy(z + i, &t, (size_t)(n - i) * sizeof *z);
}

/* ---- bases that are doubles, or become doubles ---- */

/* Likewise; `rounds`: products may be rounded more often than once. */
static bool doubles_by_product(const double *x, double e, bool rounds, double *z, uint64_t n)
{
    if (e == 2)
        for (uint64_t i = 0; i < n; i++)
            z[i] = x[i] * x[i];
    else if (e == 3 && rounds)
        for (uint64_t i = 0; i < n; i++)
            z[i] = x[i] * x[i] * x[i];
    else if (e == 1)
        memcpy(z, x, (size_t)n * sizeof *z);
    else if (e == -1)
        for (uint64_t i = 0; i < n; i++)
            z[i] = 1 / x[i];
    else if (e == 0.5)
        for (uint64_t i = 0; i < n; i++)
            z[i] = x[i] == -(double)INFINITY ? (double)INFINITY : sqrt(x[i]) + 0.0;
    else
        return false;
    return true;
}

static void power_double(const double *x, const double *e, bool one, bool rounds, double *z, uint64_t n)
{
    if (!one || !doubles_by_product(x, e[0], rounds, z, n))
        for (uint64_t i = 0; i < n; i++)
            z[i] = pow(x[i], e[one ? 0 : i]);
}

/* To 32 bits: that is far below the precision of 16-bit floats, but removes the error of a power that is exact. */
static inline vd round_a_little(vd x)
{
    return (vd)(((vul)x + (1u << 20)) & ~(uint64_t)((1u << 21) - 1));
}

/* 16-bit floats are rounded once. */
static void power_half(half_kind kind, const uint16_t *x, const double *e, bool one, uint16_t *z, uint64_t n)
{
    float t[STRETCH];
    double base[STRETCH] = { 0 }, power[STRETCH];
    half_widen(kind, x, t, n);
    for (uint64_t i = 0; i < n; i++)
        base[i] = (double)t[i];
    if (!one || !doubles_by_product(base, e[0], true, power, n))
        for (uint64_t i = 0; i < n; i += VD_LANES) {
            vd b, y = vd_all(e[0]);
            memcpy(&b, base + i, sizeof b);
            if (!one)
                memcpy(&y, e + i, sizeof y);
            b = round_a_little(vd_pow_of_float(b, y));
            memcpy(power + i, &b, sizeof b);
        }
    half_odd(power, t, n);
    half_narrow(kind, t, z, n);
}

/* ---- integers: powers by repeated squaring, which wrap ---- */

#define WHOLE(B, T)                                                                                                    \
    /* Exponents that are not negative. */                                                                             \
    static void up_##B(u##T *base, uint64_t *e, bool one, u##T *z, uint64_t n)                                         \
    {                                                                                                                  \
        uint64_t any = e[0];                                                                                           \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            z[i] = 1;                                                                                                  \
        for (uint64_t i = 1; !one && i < n; i++)                                                                       \
            any |= e[i];                                                                                               \
        for (; any; any >>= 1) {                                                                                       \
            if (!one)                                                                                                  \
                for (uint64_t i = 0; i < n; i++, e[i - 1] >>= 1)                                                       \
                    z[i] = e[i] & 1 ? (u##T)(z[i] * base[i]) : z[i];                                                   \
            else if (any & 1)                                                                                          \
                for (uint64_t i = 0; i < n; i++)                                                                       \
                    z[i] *= base[i];                                                                                   \
            for (uint64_t i = 0; any > 1 && i < n; i++)                                                                \
                base[i] *= base[i];                                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void power_##B(const T *x, const int64_t *e, bool one, T *z, uint64_t n)                                    \
    {                                                                                                                  \
        u##T base[STRETCH], power[STRETCH];                                                                            \
        uint64_t up[STRETCH];                                                                                          \
        bool down = false;                                                                                             \
        for (uint64_t i = 0; i < (one ? 1 : n); i++) {                                                                 \
            up[i] = e[i] < 0 ? 0 : (uint64_t)e[i];                                                                     \
            down |= e[i] < 0;                                                                                          \
        }                                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            base[i] = (u##T)x[i];                                                                                      \
        up_##B(base, up, one, power, n);                                                                               \
        for (uint64_t i = 0; down && i < n; i++)                                                                       \
            if (e[one ? 0 : i] < 0)                                                                                    \
                power[i] = (u##T)onxi_integer_power(x[i], e[one ? 0 : i]);                                             \
        memcpy(z, power, (size_t)n * sizeof *z);                                                                       \
    }                                                                                                                  \
    static void reals_##B(const T *x, const double *e, bool one, T *z, uint64_t n)                                     \
    {                                                                                                                  \
        double base[STRETCH], power[STRETCH];                                                                          \
        int exact = 1, fits = 1;                                                                                       \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            base[i] = (double)x[i];                                                                                    \
            exact &= base[i] > -0x1p17 && base[i] < 0x1p17; /* so are cubes */                                         \
        }                                                                                                              \
        power_double(base, e, one, exact, power, n);                                                                   \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            fits &= power[i] > -0x1p31 && power[i] < 0x1p31;                                                           \
        for (uint64_t i = 0; fits && i < n; i++)                                                                       \
            z[i] = (T)(int32_t)power[i];                                                                               \
        if (!fits)                                                                                                     \
            onx_convert(ONX_##B, z, ONX_DOUBLE, power, n, true);                                                       \
    }
WHOLE(INT32, int32_t)
WHOLE(INT64, int64_t)

/* ---- rows of a broadcast, a stretch at a time ---- */

/* Elements of a stretch, one after the other, in `room` if they lie apart. */
static const void *stretch_of(const char *x, int64_t first, int64_t step, uint64_t n, size_t width, void *room)
{
    x += first * step * (int64_t)width;
    if (step == 1)
        return x;
    for (uint64_t i = 0; i < n; i++)
        memcpy((char *)room + i * width, x + (int64_t)i * step * (int64_t)width, width);
    return room;
}

#define OVER(name, T, E, POWER)                                                                                        \
    static void name(exponents_of of, const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t count) \
    {                                                                                                                  \
        T *z = (T *)pz, room[STRETCH];                                                                                 \
        E e[STRETCH] = { 0 };                                                                                          \
        for (int64_t first = 0, n; first < count; first += n) {                                                        \
            n = count - first < STRETCH ? count - first : STRETCH;                                                     \
            const T *x = (const T *)stretch_of((const char *)px, first, sx, (uint64_t)n, sizeof(T), room);             \
            of(py, first *sy, sy, e, sy ? (uint64_t)n : 1);                                                            \
            POWER;                                                                                                     \
        }                                                                                                              \
    }
OVER(over_FLOAT, float, double, power_float(x, e, sy == 0, z + first, (uint64_t)n))
OVER(over_DOUBLE, double, double, power_double(x, e, sy == 0, true, z + first, (uint64_t)n))
OVER(whole_INT32, int32_t, int64_t, power_INT32(x, e, sy == 0, z + first, (uint64_t)n))
OVER(whole_INT64, int64_t, int64_t, power_INT64(x, e, sy == 0, z + first, (uint64_t)n))
OVER(over_INT32, int32_t, double, reals_INT32(x, e, sy == 0, z + first, (uint64_t)n))
OVER(over_INT64, int64_t, double, reals_INT64(x, e, sy == 0, z + first, (uint64_t)n))

OVER(over_FLOAT16, uint16_t, double, power_half(HALF_FLOAT16, x, e, sy == 0, z + first, (uint64_t)n))
OVER(over_BFLOAT16, uint16_t, double, power_half(HALF_BFLOAT16, x, e, sy == 0, z + first, (uint64_t)n))

/* ---- a loop for each pair of types ---- */

#define PAIR(B, E, over, as)                                                                                           \
    static void B##_##E(const void *x, int64_t sx, const void *y, int64_t sy, void *z, int64_t n)                      \
    {                                                                                                                  \
        over##_##B(E##_##as, x, sx, y, sy, z, n);                                                                      \
    }
#define EACH_REAL(X, B, over) X(B, DOUBLE, over, real) X(B, FLOAT16, over, real) X(B, BFLOAT16, over, real)
#define EACH_WHOLE(X, B, over, as)                                                                                     \
    X(B, INT8, over, as)                                                                                               \
    X(B, INT16, over, as)                                                                                              \
    X(B, INT32, over, as)                                                                                              \
    X(B, INT64, over, as)                                                                                              \
    X(B, UINT8, over, as) X(B, UINT16, over, as) X(B, UINT32, over, as) X(B, UINT64, over, as)
/* All pairs but that of two floats. */
#define EACH_PAIR(X)                                                                                                   \
    EACH_REAL(X, FLOAT, over)                                                                                          \
    EACH_WHOLE(X, FLOAT, over, real)                                                                                   \
    EACH_OF(X, DOUBLE, real, over)                                                                                     \
    EACH_OF(X, FLOAT16, real, over)                                                                                    \
    EACH_OF(X, BFLOAT16, real, over)                                                                                   \
    EACH_OF(X, INT32, whole, whole)                                                                                    \
    EACH_OF(X, INT64, whole, whole)
#define EACH_OF(X, B, as, over_wholes)                                                                                 \
    X(B, FLOAT, over, real)                                                                                            \
    EACH_REAL(X, B, over)                                                                                              \
    EACH_WHOLE(X, B, over_wholes, as)
EACH_PAIR(PAIR)

#define ENTRY(B, E, over, as) { ONX_##B, ONX_##E, B##_##E },
static const onxi_power_body body[] = { { ONX_FLOAT, ONX_FLOAT, FLOAT_FLOAT }, EACH_PAIR(ENTRY){ 0 } };
#endif

#define ROW(preference_, flags_, prepare_)                                                                             \
    {                                                                                                                  \
        .op = "Pow", .since = 1, .dtypes = BASES, .preference = preference_, .isa = ONXI_LEVEL, .flags = flags_,       \
        .variant = ONXI_VARIANT, .body = body, .prepare = prepare_, .run = onxi_binary_run                             \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_power)[] = {
    ROW(2, ONX_KERNEL_LAYOUTS, onxi_power_prepare_in_blocks),
    ROW(1, 0, onxi_power_prepare),
    { 0 },
};
