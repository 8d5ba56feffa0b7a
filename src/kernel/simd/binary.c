/* binary.c - vectorized arithmetic on two broadcast float operands, with the drivers of the plain rows. */
#include "kernel/simd/halves_loops.h"
#include "kernel/simd/math.h"

/* EXPR over the vectors x and y. Strides are 0 or 1 here. */
#define LOOP(op, EXPR)                                                                                                 \
    static inline onxi_vf op##_of(onxi_vf x, onxi_vf y)                                                                \
    {                                                                                                                  \
        return EXPR;                                                                                                   \
    }                                                                                                                  \
    static void op##_loop(const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t count)             \
    {                                                                                                                  \
        const float *x = px, *y = py;                                                                                  \
        float *z = pz;                                                                                                 \
        const uint64_t n = (uint64_t)count;                                                                            \
        uint64_t i = 0;                                                                                                \
        if (sx == 1 && sy == 1) {                                                                                      \
            for (; i + ONXI_LANES <= n; i += ONXI_LANES)                                                               \
                vf_store(z + i, op##_of(vf_load(x + i), vf_load(y + i)));                                              \
            if (i < n)                                                                                                 \
                vf_store_part(z + i, op##_of(vf_load_part(x + i, n - i, 1), vf_load_part(y + i, n - i, 1)), n - i);    \
        } else if (sx == 1 && sy == 0 && n) {                                                                          \
            const onxi_vf b = vf_all(*y);                                                                              \
            for (; i + ONXI_LANES <= n; i += ONXI_LANES)                                                               \
                vf_store(z + i, op##_of(vf_load(x + i), b));                                                           \
            if (i < n)                                                                                                 \
                vf_store_part(z + i, op##_of(vf_load_part(x + i, n - i, 1), b), n - i);                                \
        } else if (sx == 0 && sy == 1 && n) {                                                                          \
            const onxi_vf a = vf_all(*x);                                                                              \
            for (; i + ONXI_LANES <= n; i += ONXI_LANES)                                                               \
                vf_store(z + i, op##_of(a, vf_load(y + i)));                                                           \
            if (i < n)                                                                                                 \
                vf_store_part(z + i, op##_of(a, vf_load_part(y + i, n - i, 1)), n - i);                                \
        } else {                                                                                                       \
            for (; i < n; i++)                                                                                         \
                z[i] = op##_of(vf_all(x[(int64_t)i * sx]), vf_all(y[(int64_t)i * sy]))[0];                             \
        }                                                                                                              \
    }
#define ARITHMETIC(op, EXPR)                                                                                           \
    LOOP(op, EXPR)                                                                                                     \
    ONXI_HALF_BINARY(op, true)                                                                                         \
    static const onxi_binary_body op##_body = { .loops = { [ONX_FLOAT] = op##_loop ONXI_HALF_LOOPS(op) } };

ARITHMETIC(add, x + y)
ARITHMETIC(sub, x - y)
ARITHMETIC(mul, x *y)
ARITHMETIC(div, x / y)
ARITHMETIC(prelu, vf_select(x < 0.0f, x *y, x))

#define POST_ROW(kind, name, types, how, body_)                                                                        \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = types, .preference = 1, .isa = ONXI_LEVEL,                                   \
        .flags = ONX_KERNEL_IN_PLACE | (how), .post_op = ONX_POST_##kind, .variant = ONXI_VARIANT, .body = &body_,     \
        .prepare = onxi_binary_prepare, .run = onxi_binary_run                                                         \
    }

#define ALL_FLOATS (ONXI_F32 | ONXI_HALF_TYPES)
#define BLOCKS_ROW(kind, name, body_)                                                                                  \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 2, .isa = ONXI_LEVEL,                                \
        .flags = ONX_KERNEL_IN_PLACE | ONX_KERNEL_LAYOUTS, .post_op = ONX_POST_##kind, .variant = ONXI_VARIANT,        \
        .body = &body_, .prepare = onxi_binary_prepare_in_blocks, .run = onxi_binary_run                               \
    }

const onx_kernel
    ONXI_LEVELED(onxi_kernels_simd_binary)[] = { BLOCKS_ROW(ADD, "Add", add_body),
                                                 BLOCKS_ROW(NONE, "Sub", sub_body),
                                                 BLOCKS_ROW(NONE, "Mul", mul_body),
                                                 BLOCKS_ROW(NONE, "Div", div_body),
                                                 BLOCKS_ROW(NONE, "PRelu", prelu_body),
                                                 POST_ROW(ADD, "Add", ALL_FLOATS, ONX_KERNEL_FLAT, add_body),
                                                 POST_ROW(NONE, "Sub", ALL_FLOATS, ONX_KERNEL_FLAT, sub_body),
                                                 POST_ROW(NONE, "Mul", ALL_FLOATS, ONX_KERNEL_FLAT, mul_body),
                                                 POST_ROW(NONE, "Div", ALL_FLOATS, 0, div_body),
                                                 { .op = "PRelu",
                                                   .since = 1,
                                                   .dtypes = ONXI_F32 | ONXI_HALF_TYPES,
                                                   .preference = 1,
                                                   .isa = ONXI_LEVEL,
                                                   .flags = ONX_KERNEL_IN_PLACE,
                                                   .variant = ONXI_VARIANT,
                                                   .body = &prelu_body,
                                                   .prepare = onxi_prelu_prepare,
                                                   .run = onxi_binary_run },
                                                 { 0 } };
