/* cast.c - vectorized Cast between float and 16-bit floats, and from float to integers, with the driver and the bits of
 * the plain row. */
#include "base/base.h"
#include "kernel/core/chain.h"
#include "kernel/simd/halves.h"

typedef int8_t bytes __attribute__((vector_size(ONXI_LANES)));

/* ---- integers: converted through 32 bits; values outside are converted one by one ---- */

#define WHOLE(name, dtype, V)                                                                                          \
    static inline void name(onxi_vf x, V *y)                                                                           \
    {                                                                                                                  \
        if (vi_any((onxi_vi) ~(vf_abs(x) < 0x1p31f)))                                                                  \
            onxi_convert(dtype, y, ONX_FLOAT, &x, 0, ONXI_LANES, true);                                                \
        else                                                                                                           \
            *y = __builtin_convertvector(__builtin_convertvector(x, onxi_vi), V);                                      \
    }
WHOLE(int64_of, ONX_INT64, onxi_vl)
WHOLE(int32_of, ONX_INT32, onxi_vi)
WHOLE(int8_of, ONX_INT8, bytes) /* for uint8, too: the low bits are kept */

static inline bytes bool_of(onxi_vf x)
{
    return __builtin_convertvector((x != 0.0f) & 1, bytes); /* NaN is not zero */
}

/* ---- loops ---- */

/* Computes y from x by STORE. */
#define CAST(op, V_IN, V_OUT, STORE)                                                                                   \
    static void op##_loop(const void *px, void *py, uint64_t n, double a, double b)                                    \
    {                                                                                                                  \
        const char *in = px;                                                                                           \
        char *out = py;                                                                                                \
        V_OUT y;                                                                                                       \
        (void)a, (void)b;                                                                                              \
        for (; n >= ONXI_LANES; n -= ONXI_LANES, in += sizeof(V_IN), out += sizeof(V_OUT)) {                           \
            V_IN x;                                                                                                    \
            memcpy(&x, in, sizeof x);                                                                                  \
            STORE;                                                                                                     \
            memcpy(out, &y, sizeof y);                                                                                 \
        }                                                                                                              \
        if (n) {                                                                                                       \
            V_IN x = { 0 };                                                                                            \
            memcpy(&x, in, (size_t)n *(sizeof x / ONXI_LANES));                                                        \
            STORE;                                                                                                     \
            memcpy(out, &y, (size_t)n *(sizeof y / ONXI_LANES));                                                       \
        }                                                                                                              \
    }
CAST(float16_of, onxi_vf, halves, y = float16_of(x))
CAST(of_float16, halves, onxi_vf, y = of_float16(x))
CAST(bfloat16_of, onxi_vf, halves, y = bfloat16_of(x))
CAST(of_bfloat16, halves, onxi_vf, y = of_bfloat16(x))
CAST(int64_of, onxi_vf, onxi_vl, int64_of(x, &y))
CAST(int32_of, onxi_vf, onxi_vi, int32_of(x, &y))
CAST(int8_of, onxi_vf, bytes, int8_of(x, &y))
CAST(bool_of, onxi_vf, bytes, y = bool_of(x))

static const onxi_cast_body body[] = {
    { ONX_FLOAT, ONX_FLOAT16, float16_of_loop },   { ONX_FLOAT16, ONX_FLOAT, of_float16_loop },
    { ONX_FLOAT, ONX_BFLOAT16, bfloat16_of_loop }, { ONX_BFLOAT16, ONX_FLOAT, of_bfloat16_loop },
    { ONX_FLOAT, ONX_INT64, int64_of_loop },       { ONX_FLOAT, ONX_INT32, int32_of_loop },
    { ONX_FLOAT, ONX_INT8, int8_of_loop },         { ONX_FLOAT, ONX_UINT8, int8_of_loop },
    { ONX_FLOAT, ONX_BOOL, bool_of_loop },         { 0 }
};

#define ROW(name, version)                                                                                             \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = ONXI_F32 | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16),   \
        .preference = 1, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT, .body = body, .prepare = onxi_cast_prepare,       \
        .run = onxi_cast_run                                                                                           \
    }

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_cast)[] = { ROW("Cast", 1), ROW("CastLike", 15), { 0 } };
