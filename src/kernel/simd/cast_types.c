/* cast_types.c - Cast between all plain types, as loops that compilers vectorize, with the bits of onx_convert. Integer
 * types of a size share loops, because they keep the same low bits; 16-bit floats are converted through float. */
#include "kernel/core/chain.h"
#include "kernel/simd/halves_loops.h"

#ifdef __wasm__
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_cast_types)[] = { { 0 } };
#else

/* A loop from F to O, where x is the element. */
#define CONVERT(from, to, F, O, EXPR)                                                                                  \
    static void from##_##to(const void *px, void *py, uint64_t n, double a, double b)                                  \
    {                                                                                                                  \
        const F *restrict in = (const F *)px;                                                                          \
        O *restrict out = (O *)py;                                                                                     \
        (void)a, (void)b;                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            const F x = in[i];                                                                                         \
            out[i] = (O)(EXPR);                                                                                        \
        }                                                                                                              \
    }
#define FROM_INTEGER(from, F)                                                                                          \
    CONVERT(from, INT8, F, int8_t, x)                                                                                  \
    CONVERT(from, INT16, F, int16_t, x)                                                                                \
    CONVERT(from, INT32, F, int32_t, x)                                                                                \
    CONVERT(from, INT64, F, int64_t, x)                                                                                \
    CONVERT(from, FLOAT, F, float, x)                                                                                  \
    CONVERT(from, DOUBLE, F, double, x)                                                                                \
    CONVERT(from, BOOL, F, uint8_t, x != 0)

/* Rounds towards zero. Stretches with NaN, or with values that the intermediate integer cannot hold, are converted one
 * by one. */
enum { STRETCH = 256 };
typedef double doubles __attribute__((vector_size(sizeof(onxi_vf)))); /* as many as a register holds */
#define FITS(F, V)                                                                                                     \
    static inline bool F##_fits(const F *x, uint64_t n, F limit)                                                       \
    {                                                                                                                  \
        enum { COUNT = sizeof(V) / sizeof(F) };                                                                        \
        onxi_vi out = { 0 };                                                                                           \
        V v;                                                                                                           \
        uint64_t i = 0;                                                                                                \
        for (; i + COUNT <= n; i += COUNT) {                                                                           \
            memcpy(&v, x + i, sizeof v);                                                                               \
            out |= ~(onxi_vi)((v < limit) & (v > -limit));                                                             \
        }                                                                                                              \
        bool fits = !vi_any(out);                                                                                      \
        for (; i < n; i++)                                                                                             \
            fits = fits && x[i] < limit && x[i] > -limit;                                                              \
        return fits;                                                                                                   \
    }
FITS(float, onxi_vf)
FITS(double, doubles)
#define WHOLE(from, to, F, O, VIA, LIMIT)                                                                              \
    static void from##_##to(const void *px, void *py, uint64_t n, double a, double b)                                  \
    {                                                                                                                  \
        const F *restrict in = (const F *)px;                                                                          \
        O *restrict out = (O *)py;                                                                                     \
        (void)a, (void)b;                                                                                              \
        for (uint64_t first = 0, m; first < n; first += m) {                                                           \
            m = n - first < STRETCH ? n - first : STRETCH;                                                             \
            const F *x = in + first;                                                                                   \
            const bool fits = F##_fits(x, m, (F)(LIMIT));                                                              \
            for (uint64_t i = 0; fits && i < m; i++)                                                                   \
                out[first + i] = (O)(VIA)x[i];                                                                         \
            if (!fits)                                                                                                 \
                onx_convert(ONX_##to, out + first, ONX_##from, x, m, true);                                            \
        }                                                                                                              \
    }
#define FROM_FLOATING(from, F)                                                                                         \
    WHOLE(from, INT8, F, int8_t, int32_t, 0x1p31)                                                                      \
    WHOLE(from, INT16, F, int16_t, int32_t, 0x1p31)                                                                    \
    WHOLE(from, INT32, F, int32_t, int32_t, 0x1p31)                                                                    \
    WHOLE(from, INT64, F, int64_t, int64_t, 0x1p63)                                                                    \
    WHOLE(from, UINT64, F, uint64_t, int64_t, 0x1p63)                                                                  \
    CONVERT(from, BOOL, F, uint8_t, x != 0)

FROM_INTEGER(INT8, int8_t)
FROM_INTEGER(INT16, int16_t)
FROM_INTEGER(INT32, int32_t)
FROM_INTEGER(INT64, int64_t)
FROM_INTEGER(UINT8, uint8_t)
FROM_INTEGER(UINT16, uint16_t)
FROM_INTEGER(UINT32, uint32_t)
FROM_INTEGER(UINT64, uint64_t)
/* A bool is 1 where the element is not zero. */
CONVERT(BOOL, INT8, uint8_t, int8_t, x != 0)
CONVERT(BOOL, INT16, uint8_t, int16_t, x != 0)
CONVERT(BOOL, INT32, uint8_t, int32_t, x != 0)
CONVERT(BOOL, INT64, uint8_t, int64_t, x != 0)
CONVERT(BOOL, FLOAT, uint8_t, float, x != 0)
CONVERT(BOOL, DOUBLE, uint8_t, double, x != 0)
FROM_FLOATING(FLOAT, float)
FROM_FLOATING(DOUBLE, double)
CONVERT(FLOAT, DOUBLE, float, double, x)
CONVERT(DOUBLE, FLOAT, double, float, x)

/* ---- 16-bit floats ---- */

static void from_half(onxi_unary_loop loop, half_kind kind, const uint16_t *x, char *y, uint64_t n, uint64_t width)
{
    float t[ONXI_HALVES];
    for (uint64_t i = 0, m; i < n; i += m) {
        m = half_stretch(n - i);
        half_widen(kind, x + i, t, m);
        loop(t, y + i * width, m, 0, 0);
    }
}

static void to_half(onxi_unary_loop loop, half_kind kind, const char *x, uint16_t *y, uint64_t n, uint64_t width)
{
    float t[ONXI_HALVES];
    for (uint64_t i = 0, m; i < n; i += m) {
        m = half_stretch(n - i);
        loop(x + i * width, t, m, 0, 0);
        half_narrow(kind, t, y + i, m);
    }
}

static void DOUBLE_odd(const void *x, void *y, uint64_t n, double a, double b)
{
    (void)a, (void)b;
    half_odd(x, y, n);
}

#define FROM_HALF(from, to, width)                                                                                     \
    static void from##_##to(const void *x, void *y, uint64_t n, double a, double b)                                    \
    {                                                                                                                  \
        (void)a, (void)b;                                                                                              \
        from_half(FLOAT_##to, HALF_##from, x, y, n, width);                                                            \
    }
#define FROM_HALVES(from)                                                                                              \
    FROM_HALF(from, INT8, 1)                                                                                           \
    FROM_HALF(from, INT16, 2)                                                                                          \
    FROM_HALF(from, INT32, 4)                                                                                          \
    FROM_HALF(from, INT64, 8)                                                                                          \
    FROM_HALF(from, UINT64, 8)                                                                                         \
    FROM_HALF(from, DOUBLE, 8)                                                                                         \
    FROM_HALF(from, BOOL, 1)
FROM_HALVES(FLOAT16)
FROM_HALVES(BFLOAT16)

/* Converts through a float that is exact, or is also beyond the range of float16. */
#define TO_HALF(from, to, loop, width)                                                                                 \
    static void from##_##to(const void *x, void *y, uint64_t n, double a, double b)                                    \
    {                                                                                                                  \
        (void)a, (void)b;                                                                                              \
        to_half(loop, HALF_##to, x, y, n, width);                                                                      \
    }
TO_HALF(INT8, FLOAT16, INT8_FLOAT, 1)
TO_HALF(UINT8, FLOAT16, UINT8_FLOAT, 1)
TO_HALF(BOOL, FLOAT16, BOOL_FLOAT, 1)
TO_HALF(INT16, FLOAT16, INT16_FLOAT, 2)
TO_HALF(UINT16, FLOAT16, UINT16_FLOAT, 2)
TO_HALF(INT32, FLOAT16, INT32_FLOAT, 4)
TO_HALF(UINT32, FLOAT16, UINT32_FLOAT, 4)
TO_HALF(INT64, FLOAT16, INT64_FLOAT, 8)
TO_HALF(UINT64, FLOAT16, UINT64_FLOAT, 8)
TO_HALF(DOUBLE, FLOAT16, DOUBLE_odd, 8)
TO_HALF(INT8, BFLOAT16, INT8_FLOAT, 1)
TO_HALF(UINT8, BFLOAT16, UINT8_FLOAT, 1)
TO_HALF(INT16, BFLOAT16, INT16_FLOAT, 2)
TO_HALF(UINT16, BFLOAT16, UINT16_FLOAT, 2)
TO_HALF(DOUBLE, BFLOAT16, DOUBLE_odd, 8)

/* ---- the loop for each pair of types ---- */

#define TO(from, loops, to, loop)                                                                                      \
    {                                                                                                                  \
        ONX_##from, ONX_##to, loops##_##loop                                                                           \
    }
#define TO_INTEGERS(from, loops)                                                                                       \
    TO(from, loops, INT8, INT8), TO(from, loops, UINT8, INT8), TO(from, loops, INT16, INT16),                          \
        TO(from, loops, UINT16, INT16), TO(from, loops, INT32, INT32), TO(from, loops, UINT32, INT32),                 \
        TO(from, loops, INT64, INT64)
#define TO_WHOLE(from, loops) TO_INTEGERS(from, loops), TO(from, loops, UINT64, UINT64), TO(from, loops, BOOL, BOOL)
#define TO_NUMBERS(from, loops)                                                                                        \
    TO_INTEGERS(from, loops), TO(from, loops, UINT64, INT64), TO(from, loops, FLOAT, FLOAT),                           \
        TO(from, loops, DOUBLE, DOUBLE)
#define TO_ALL(from, loops) TO_NUMBERS(from, loops), TO(from, loops, BOOL, BOOL)
static const onxi_cast_body body[] = { TO_NUMBERS(BOOL, BOOL),
                                       TO_ALL(INT8, INT8),
                                       TO_ALL(INT16, INT16),
                                       TO_ALL(INT32, INT32),
                                       TO_ALL(INT64, INT64),
                                       TO_ALL(UINT8, UINT8),
                                       TO_ALL(UINT16, UINT16),
                                       TO_ALL(UINT32, UINT32),
                                       TO_ALL(UINT64, UINT64),
                                       TO_WHOLE(FLOAT, FLOAT),
                                       TO(FLOAT, FLOAT, DOUBLE, DOUBLE),
                                       TO_WHOLE(DOUBLE, DOUBLE),
                                       TO(DOUBLE, DOUBLE, FLOAT, FLOAT),
                                       TO(DOUBLE, DOUBLE, FLOAT16, FLOAT16),
                                       TO(DOUBLE, DOUBLE, BFLOAT16, BFLOAT16),
                                       TO_WHOLE(FLOAT16, FLOAT16),
                                       TO(FLOAT16, FLOAT16, DOUBLE, DOUBLE),
                                       TO_WHOLE(BFLOAT16, BFLOAT16),
                                       TO(BFLOAT16, BFLOAT16, DOUBLE, DOUBLE),
                                       TO(INT8, INT8, FLOAT16, FLOAT16),
                                       TO(UINT8, UINT8, FLOAT16, FLOAT16),
                                       TO(BOOL, BOOL, FLOAT16, FLOAT16),
                                       TO(INT16, INT16, FLOAT16, FLOAT16),
                                       TO(UINT16, UINT16, FLOAT16, FLOAT16),
                                       TO(INT32, INT32, FLOAT16, FLOAT16),
                                       TO(UINT32, UINT32, FLOAT16, FLOAT16),
                                       TO(INT64, INT64, FLOAT16, FLOAT16),
                                       TO(UINT64, UINT64, FLOAT16, FLOAT16),
                                       TO(INT8, INT8, BFLOAT16, BFLOAT16),
                                       TO(UINT8, UINT8, BFLOAT16, BFLOAT16),
                                       TO(INT16, INT16, BFLOAT16, BFLOAT16),
                                       TO(UINT16, UINT16, BFLOAT16, BFLOAT16),
                                       { 0 } };

#define ROW(name, version)                                                                                             \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_NUMBERS | ONX_DTYPE_BIT(ONX_BOOL), .preference = 1,               \
        .isa = ONXI_LEVEL, .variant = ONXI_VARIANT, .body = body, .prepare = onxi_cast_prepare, .run = onxi_cast_run   \
    }

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_cast_types)[] = { ROW("Cast", 1), ROW("CastLike", 15), { 0 } };
#endif
