/* loops.h - one body for all element types: X-macros over the types with their load, compute and store operations. */
#ifndef ONXI_KERNEL_LOOPS_H
#define ONXI_KERNEL_LOOPS_H

#include "kernel/kernel.h"

#define ONXI_SAME(x) (x)

/* X(op, dtype, stored type, compute type, math suffix, load, store) */
#define ONXI_EACH_FLOAT(X, op)                                                                                         \
    X(op, FLOAT, float, float, f, ONXI_SAME, ONXI_SAME)                                                                \
    X(op, DOUBLE, double, double, , ONXI_SAME, ONXI_SAME)                                                              \
    X(op, FLOAT16, uint16_t, float, f, onx_float16_to_f32, onx_f32_to_float16)                                         \
    X(op, BFLOAT16, uint16_t, float, f, onx_bfloat16_to_f32, onx_f32_to_bfloat16)
#define ONXI_EACH_SIGNED(X, op)                                                                                        \
    X(op, INT8, int8_t, int64_t, , ONXI_SAME, ONXI_SAME)                                                               \
    X(op, INT16, int16_t, int64_t, , ONXI_SAME, ONXI_SAME)                                                             \
    X(op, INT32, int32_t, int64_t, , ONXI_SAME, ONXI_SAME)                                                             \
    X(op, INT64, int64_t, int64_t, , ONXI_SAME, ONXI_SAME)
#define ONXI_EACH_UNSIGNED(X, op)                                                                                      \
    X(op, UINT8, uint8_t, uint64_t, , ONXI_SAME, ONXI_SAME)                                                            \
    X(op, UINT16, uint16_t, uint64_t, , ONXI_SAME, ONXI_SAME)                                                          \
    X(op, UINT32, uint32_t, uint64_t, , ONXI_SAME, ONXI_SAME)                                                          \
    X(op, UINT64, uint64_t, uint64_t, , ONXI_SAME, ONXI_SAME)
#define ONXI_EACH_BOOL(X, op) X(op, BOOL, uint8_t, uint64_t, , ONXI_SAME, ONXI_SAME)

/* z[i] = f(x[i * sx], y[i * sy]) for n elements; the strides are usually 0 or 1. */
typedef void (*onxi_binary_loop)(const void *x, int64_t sx, const void *y, int64_t sy, void *z, int64_t n);
typedef struct onxi_binary_body {
    onxi_binary_loop loops[ONX_DTYPE_COUNT]; /* by element type of the inputs */
} onxi_binary_body;
/* Loops that other kernels reduce with. */
extern const onxi_binary_body onxi_body_add, onxi_body_mul, onxi_body_max, onxi_body_min, onxi_body_and, onxi_body_or;

/* y[i] = f(x[i]) with the numbers a and b. */
typedef void (*onxi_unary_loop)(const void *x, void *y, uint64_t n, double a, double b);
typedef struct onxi_unary_body {
    onxi_unary_loop loops[ONX_DTYPE_COUNT];
    const char *a, *b; /* attributes that a and b come from, NULL: none */
} onxi_unary_body;

/* Prepares with the loops of the row's body, or of this one. */
onx_status onxi_unary_prepare(onx_prepare *p);
onx_status onxi_unary_prepare_with(onx_prepare *p, const onxi_unary_body *body);
onx_status onxi_unary_run(onx_work *work, uint64_t first, uint64_t last);
/* Gelu: the body of the row is a list of two loops, exact and with tanh; NULL: the plain ones. */
onx_status onxi_gelu_prepare(onx_prepare *p);

/* A bound of Clip that is known while preparing: attribute `name` before version 11, `input` from then on; *out is
 * `unbounded` if there is none. */
bool onxi_clip_bound(const onx_prepare *as, const char *name, uint32_t input, float unbounded, float *out);

/* Softmax and similar: a line is `count` elements, `inner` apart; there are outer * inner lines. */
enum { ONXI_SOFTMAX, ONXI_LOG_SOFTMAX, ONXI_HARDMAX };
typedef struct onxi_softmax_params {
    onxi_lines lines;
    uint64_t outer, count, inner;
    void (*loop)(const struct onxi_softmax_params *q, const void *x, void *y, int kind); /* one line */
    /* `n` adjacent lines, at most `columns`; NULL: line by line. */
    void (*block)(const struct onxi_softmax_params *q, const void *x, void *y, uint64_t n);
    uint64_t columns;
    int kind; /* the row's body */
    uint32_t width;
} onxi_softmax_params;
onx_status onxi_softmax_prepare(onx_prepare *p);
/* After onxi_softmax_prepare: sets the loops. */
void onxi_softmax_use(onx_prepare *p, void (*loop)(const onxi_softmax_params *q, const void *x, void *y, int kind),
                      void (*block)(const onxi_softmax_params *q, const void *x, void *y, uint64_t n),
                      uint64_t columns);
onx_status onxi_softmax_run(onx_work *work, uint64_t first, uint64_t last);

/* IsNaN and IsInf: y[i] says whether x[i] is NaN, or one of the infinities that are looked for. */
typedef void (*onxi_class_loop)(const void *x, uint8_t *y, uint64_t n, bool below, bool above);
typedef struct onxi_class_body {
    bool nan;
    onxi_class_loop loops[ONX_DTYPE_COUNT]; /* NULL: the plain ones */
} onxi_class_body;
onx_status onxi_class_prepare(onx_prepare *p);
onx_status onxi_class_run(onx_work *work, uint64_t first, uint64_t last);

/* The loop of a binary operator: EXPR over x and y, of the compute type C; out type O. */
#define ONXI_BINARY(op, dtype, T, C, O, LOAD, STORE, EXPR)                                                             \
    static void op##_##dtype(const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t n)              \
    {                                                                                                                  \
        const T *ax = (const T *)px, *ay = (const T *)py;                                                              \
        O *az = (O *)pz;                                                                                               \
        if (sx == 1 && sy == 1) {                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                C x = (C)LOAD(ax[i]), y = (C)LOAD(ay[i]);                                                              \
                az[i] = (O)STORE(EXPR);                                                                                \
            }                                                                                                          \
        } else if (sx == 1 && sy == 0) {                                                                               \
            C y = n ? (C)LOAD(*ay) : (C)0;                                                                             \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                C x = (C)LOAD(ax[i]);                                                                                  \
                az[i] = (O)STORE(EXPR);                                                                                \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                C x = (C)LOAD(ax[i * sx]), y = (C)LOAD(ay[i * sy]);                                                    \
                az[i] = (O)STORE(EXPR);                                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Wrapping integer arithmetic: computed in the unsigned type, so that overflow is defined. */
#define ONXI_WRAP(C, x, sign, y) ((C)((uint64_t)(x)sign(uint64_t)(y)))

/* An exponent that gives the same powers of every integer, in 64 bits, and fits a signed integer: powers of an odd base
 * repeat after 2^62, those of an even base are 0 from 64 on. */
static inline int64_t onxi_signed_exponent(uint64_t n)
{
    const uint64_t high = UINT64_C(1) << 62;
    return (int64_t)(n >> 63 ? (n & (high - 1)) | high : n);
}

/* Computes integer powers by repeated squaring, so that they are exact and wrap; negative exponents give 1/x rounded
 * towards zero. */
static inline int64_t onxi_integer_power(int64_t x, int64_t n)
{
    if (n < 0)
        return x == 1 ? 1 : x == -1 ? (n % 2 ? -1 : 1) : 0;
    uint64_t base = (uint64_t)x, out = 1;
    for (; n; n >>= 1, base *= base)
        if (n & 1)
            out *= base;
    return (int64_t)out;
}

/* What a binary elementwise kernel prepares. */
typedef struct onxi_binary_params {
    onxi_broadcast broadcast;
    onxi_binary_loop loop;
    uint64_t block; /* elements of a work row when there is one outer row; 0: work rows are outer rows */
    uint32_t in_width[2], out_width;
    /* Rows are short, and the loop, of 16-bit elements, has to be called for many elements at once; `straight`: the
     * input has the elements of the output in their order. */
    bool gathers, straight[2];
} onxi_binary_params;
/* Elements start to end - 1 of such an operation, from `start` on in `out`; an input that is `cut`, which has to be
 * straight, begins with element `start`. */
void onxi_binary_gathered(const onxi_binary_params *q, const char *const *in, const bool *cut, char *out,
                          uint64_t start, uint64_t end);
/* The loops of Pow, for pairs of types of the base and the exponents; a loop of NULL ends a list. */
typedef struct onxi_power_body {
    onx_dtype base, exponents;
    onxi_binary_loop loop;
} onxi_power_body;
onx_status onxi_power_prepare(onx_prepare *p);
onx_status onxi_power_prepare_in_blocks(onx_prepare *p);
onx_status onxi_binary_prepare(onx_prepare *p);
/* For operators with NumPy broadcasting from their first version on. */
onx_status onxi_binary_prepare_numpy(onx_prepare *p);
/* Of Mod: the row's body has the loops without and with `fmod`. */
typedef struct onxi_mod_body {
    const onxi_binary_body *mod, *rem;
} onxi_mod_body;
onx_status onxi_mod_prepare(onx_prepare *p);
/* For rows that support layouts: an image with blocked channels, and an operand per channel, per pixel, or with one
 * element. */
onx_status onxi_binary_prepare_in_blocks(onx_prepare *p);
onx_status onxi_binary_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_prelu_prepare(onx_prepare *p);
/* For any number of inputs; and for two, through onxi_binary_run. */
onx_status onxi_variadic_prepare(onx_prepare *p);
onx_status onxi_variadic_run(onx_work *work, uint64_t first, uint64_t last);
onx_status onxi_pair_prepare(onx_prepare *p);
/* Rows of about this many elements are worth a thread. */
#define ONXI_BLOCK 8192u

#endif
