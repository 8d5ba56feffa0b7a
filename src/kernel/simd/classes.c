/* classes.c - vectorized IsNaN, IsInf and Hardmax: floats of each width compared as integers, by loops that compilers
 * vectorize. */
#include "kernel/core/loops.h"
#include "kernel/simd/simd.h"

#if !ONXI_PLATFORM_ROOMY
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_classes)[] = { { 0 } };
#else

/* ---- IsNaN, IsInf ---- */

/* A float without its sign bit is NaN if it is greater than INF. */
#define CLASSES(d, U, SIGN, INF)                                                                                       \
    static void nan_##d(const void *px, uint8_t *restrict y, uint64_t n, bool below, bool above)                       \
    {                                                                                                                  \
        const U *restrict x = px;                                                                                      \
        (void)below, (void)above;                                                                                      \
        for (uint64_t i = 0; i < n; i++)                                                                               \
            y[i] = (U)(x[i] & (U)((SIGN)-1)) > (U)(INF);                                                               \
    }                                                                                                                  \
    static void inf_##d(const void *px, uint8_t *restrict y, uint64_t n, bool below, bool above)                       \
    {                                                                                                                  \
        const U *restrict x = px;                                                                                      \
        const U most = (U)(above ? (INF) : (INF) | (SIGN)), least = (U)(below ? (INF) | (SIGN) : (INF));               \
        if (!above && !below)                                                                                          \
            memset(y, 0, (size_t)n);                                                                                   \
        else                                                                                                           \
            for (uint64_t i = 0; i < n; i++)                                                                           \
                y[i] = (x[i] == most) | (x[i] == least);                                                               \
    }
#define EACH(X)                                                                                                        \
    X(FLOAT16, uint16_t, 0x8000u, 0x7c00u)                                                                             \
    X(BFLOAT16, uint16_t, 0x8000u, 0x7f80u)                                                                            \
    X(FLOAT, uint32_t, UINT32_C(0x80000000), UINT32_C(0x7f800000))                                                     \
    X(DOUBLE, uint64_t, UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000))
EACH(CLASSES)

#define NAN_ENTRY(d, U, SIGN, INF) [ONX_##d] = nan_##d,
#define INF_ENTRY(d, U, SIGN, INF) [ONX_##d] = inf_##d,
static const onxi_class_body is_nan = { true, { EACH(NAN_ENTRY) } }, is_inf = { false, { EACH(INF_ENTRY) } };

/* ---- Hardmax: the place of the greatest key ---- */

/* A signed integer that orders like the float: all NaN are the greatest, and both zeros are equal. */
#define KEYS(d, U, I, SIGN, INF)                                                                                       \
    static inline I key_##d(U bits)                                                                                    \
    {                                                                                                                  \
        const U size = bits & (U)((SIGN)-1), sign = (U)(0 - (bits >> (sizeof(U) * 8 - 1)));                            \
        const U key = (U)((size ^ sign) - sign);                                                                       \
        return (I)(size > (U)(INF) ? (U)((SIGN)-1) : key);                                                             \
    }

enum { COLUMNS = 128, LANES = 64 };

#define HARDMAX(d, U, I, SIGN, INF, ONE)                                                                               \
    KEYS(d, U, I, SIGN, INF)                                                                                           \
    /* The greatest key of `count` rows for each of `width` columns, and the first row that has it. */                 \
    static inline void greatest_##d(const U *x, uint64_t step, uint64_t count, uint64_t width, I *best, uint32_t *at)  \
    {                                                                                                                  \
        for (uint64_t i = 0; i < width; i++) {                                                                         \
            best[i] = key_##d(x[i]);                                                                                   \
            at[i] = 0;                                                                                                 \
        }                                                                                                              \
        for (uint64_t k = 1; k < count; k++)                                                                           \
            for (uint64_t i = 0; i < width; i++) {                                                                     \
                const I key = key_##d(x[k * step + i]), before = best[i];                                              \
                best[i] = key > before ? key : before;                                                                 \
                at[i] = key > before ? (uint32_t)k : at[i];                                                            \
            }                                                                                                          \
    }                                                                                                                  \
    static void line_##d(const onxi_softmax_params *q, const void *px, void *py, int kind)                             \
    {                                                                                                                  \
        const U *x = px;                                                                                               \
        U *y = py;                                                                                                     \
        I best[LANES] = { key_##d(x[0]) };                                                                             \
        uint32_t at[LANES] = { 0 };                                                                                    \
        uint64_t most = 0;                                                                                             \
        const uint64_t rows = q->count / LANES;                                                                        \
        (void)kind;                                                                                                    \
        if (rows)                                                                                                      \
            greatest_##d(x, LANES, rows, LANES, best, at);                                                             \
        for (uint64_t i = 0; rows && i < LANES; i++) { /* of equal ones the first */                                   \
            const uint64_t place = (uint64_t)at[i] * LANES + i;                                                        \
            const I greatest = key_##d(x[most]);                                                                       \
            most = best[i] > greatest || (best[i] == greatest && place < most) ? place : most;                         \
        }                                                                                                              \
        for (uint64_t i = rows * LANES; i < q->count; i++)                                                             \
            most = key_##d(x[i]) > key_##d(x[most]) ? i : most;                                                        \
        memset(y, 0, (size_t)q->count * sizeof *y);                                                                    \
        y[most] = (ONE);                                                                                               \
    }                                                                                                                  \
    static void columns_##d(const onxi_softmax_params *q, const void *px, void *py, uint64_t width)                    \
    {                                                                                                                  \
        U *y = py;                                                                                                     \
        I best[COLUMNS];                                                                                               \
        uint32_t at[COLUMNS];                                                                                          \
        greatest_##d(px, q->inner, q->count, width, best, at);                                                         \
        for (uint64_t k = 0; k < q->count; k++)                                                                        \
            memset(y + k * q->inner, 0, (size_t)width * sizeof *y);                                                    \
        for (uint64_t i = 0; i < width; i++)                                                                           \
            y[at[i] * q->inner + i] = (ONE);                                                                           \
    }
HARDMAX(FLOAT16, uint16_t, int16_t, 0x8000u, 0x7c00u, 0x3c00u)
HARDMAX(BFLOAT16, uint16_t, int16_t, 0x8000u, 0x7f80u, 0x3f80u)
HARDMAX(FLOAT, uint32_t, int32_t, UINT32_C(0x80000000), UINT32_C(0x7f800000), UINT32_C(0x3f800000))
HARDMAX(DOUBLE, uint64_t, int64_t, UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000),
        UINT64_C(0x3ff0000000000000))

static void (*const lines[ONX_DTYPE_COUNT])(const onxi_softmax_params *, const void *, void *, int) = {
    [ONX_FLOAT16] = line_FLOAT16, [ONX_BFLOAT16] = line_BFLOAT16, [ONX_FLOAT] = line_FLOAT, [ONX_DOUBLE] = line_DOUBLE
};
static void (*const columns[ONX_DTYPE_COUNT])(const onxi_softmax_params *, const void *, void *,
                                              uint64_t) = { [ONX_FLOAT16] = columns_FLOAT16,
                                                            [ONX_BFLOAT16] = columns_BFLOAT16,
                                                            [ONX_FLOAT] = columns_FLOAT,
                                                            [ONX_DOUBLE] = columns_DOUBLE };

static onx_status hard_prepare(onx_prepare *p)
{
    ONX_TRY(onxi_softmax_prepare(p));
    if (((const onxi_softmax_params *)p->params)->count > UINT32_MAX)
        return ONX_E_UNSUPPORTED;
    onxi_softmax_use(p, lines[p->inputs[0]->dtype], columns[p->inputs[0]->dtype], COLUMNS);
    return ONX_OK;
}

static const int hard = ONXI_HARDMAX;
#define ROW(name, since_, flags_, body_, how, run_)                                                                    \
    {                                                                                                                  \
        .op = name, .since = since_, .dtypes = ONXI_FLOATS, .preference = 1, .isa = ONXI_LEVEL, .flags = flags_,       \
        .variant = ONXI_VARIANT, .body = &body_, .prepare = how##_prepare, .run = run_                                 \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_classes)[] = {
    ROW("IsInf", 10, 0, is_inf, onxi_class, onxi_class_run),
    ROW("IsNaN", 9, 0, is_nan, onxi_class, onxi_class_run),
    ROW("Hardmax", 1, ONX_KERNEL_IN_PLACE | ONXI_KERNEL_LINES, hard, hard, onxi_softmax_run),
    { 0 },
};
#endif
