/* elementwise.c - operators with two broadcast inputs: arithmetic, comparisons, logic, bits. */
#include "kernel/core/blocked.h"
#include "kernel/core/loops.h"

#include <math.h>

/* ---- loops ---- */

#define ADD_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x + y)
#define SUB_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x - y)
#define MUL_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x *y)
#define DIV_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x / y)
#define ADD_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, ONXI_WRAP(C, x, +, y))
#define SUB_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, ONXI_WRAP(C, x, -, y))
#define MUL_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, ONXI_WRAP(C, x, *, y))
/* Rounds towards zero; division by zero gives 0, as in NumPy; the one overflow wraps. */
#define DIV_I(op, d, T, C, M, L, S)                                                                                    \
    ONXI_BINARY(op, d, T, C, T, L, S, y == 0 ? 0 : y == (C)-1 ? ONXI_WRAP(C, 0, -, x) : x / y)
#define DIV_U(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, y == 0 ? 0 : x / y)

/* Mod: the sign of the divisor, or of the dividend with fmod=1. */
#define FLOOR_MOD(C, copysign)                                                                                         \
    static inline C floor_mod_##C(C rest, C y)                                                                         \
    {                                                                                                                  \
        return rest == 0 ? copysign((C)0, y) : (rest < 0) != (y < 0) ? rest + y : rest;                                \
    }
FLOOR_MOD(float, copysignf)
FLOOR_MOD(double, copysign)
#define MOD_I(op, d, T, C, M, L, S)                                                                                    \
    ONXI_BINARY(op, d, T, C, T, L, S,                                                                                  \
                y == 0 || y == (C)-1 ? 0 : ((x % y != 0 && (x % y < 0) != (y < 0)) ? x % y + y : x % y))
#define MOD_U(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, y == 0 ? 0 : x % y)
/* Zero has the sign of the divisor as well; NaN if x is infinite or y is 0; x or y if y is infinite. */
#define MOD_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, floor_mod_##C(fmod##M(x, y), y))
#define REM_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, y == 0 || y == (C)-1 ? 0 : x % y)
#define REM_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, fmod##M(x, y))

#define EQ(op, d, T, C, M, L, S)      ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x == y)
#define LT(op, d, T, C, M, L, S)      ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x < y)
#define GT(op, d, T, C, M, L, S)      ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x > y)
#define LE(op, d, T, C, M, L, S)      ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x <= y)
#define GE(op, d, T, C, M, L, S)      ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x >= y)
#define AND_B(op, d, T, C, M, L, S)   ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x &&y)
#define OR_B(op, d, T, C, M, L, S)    ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, x || y)
#define XOR_B(op, d, T, C, M, L, S)   ONXI_BINARY(op, d, T, C, uint8_t, L, ONXI_SAME, !x != !y)
#define BIT_AND(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x &y)
#define BIT_OR(op, d, T, C, M, L, S)  ONXI_BINARY(op, d, T, C, T, L, S, x | y)
#define BIT_XOR(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x ^ y)
#define SHIFT_L(op, d, T, C, M, L, S)                                                                                  \
    ONXI_BINARY(op, d, T, C, T, L, S, (uint64_t)y >= sizeof(T) * 8 ? 0 : (uint64_t)x << y)
#define SHIFT_R(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, y >= sizeof(T) * 8 ? 0 : x >> y)
/* Arithmetic, rounds down: too many steps leave the sign. */
#define SHIFT_S(op, d, T, C, M, L, S)                                                                                  \
    ONXI_BINARY(op, d, T, C, T, L, S, (uint64_t)y >= sizeof(T) * 8 ? -(x < 0) : x >= 0 ? x >> y : ~(~x >> y))
/* x * slope if x is below zero */
#define PRELU_F(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x < 0 ? x * y : x)
#define PRELU_I(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, x < 0 ? ONXI_WRAP(C, x, *, y) : x)
#define PRELU_U(op, d, T, C, M, L, S) ONXI_BINARY(op, d, T, C, T, L, S, ((void)y, x))

#define NUMERIC(op, F, I, U) ONXI_EACH_FLOAT(F, op) ONXI_EACH_SIGNED(I, op) ONXI_EACH_UNSIGNED(U, op)
NUMERIC(add, ADD_F, ADD_I, ADD_I)
NUMERIC(sub, SUB_F, SUB_I, SUB_I)
NUMERIC(mul, MUL_F, MUL_I, MUL_I)
NUMERIC(div, DIV_F, DIV_I, DIV_U)
ONXI_EACH_FLOAT(MOD_F, mod)
ONXI_EACH_SIGNED(MOD_I, mod)
ONXI_EACH_UNSIGNED(MOD_U, mod)
ONXI_EACH_FLOAT(REM_F, rem)
ONXI_EACH_SIGNED(REM_I, rem)
ONXI_EACH_UNSIGNED(MOD_U, rem)
NUMERIC(equal, EQ, EQ, EQ)
ONXI_EACH_BOOL(EQ, equal)
NUMERIC(less, LT, LT, LT)
NUMERIC(greater, GT, GT, GT)
NUMERIC(less_equal, LE, LE, LE)
NUMERIC(greater_equal, GE, GE, GE)
ONXI_EACH_BOOL(AND_B, and)
ONXI_EACH_BOOL(OR_B, or)
ONXI_EACH_BOOL(XOR_B, xor)
ONXI_EACH_SIGNED(BIT_AND, bit_and)
ONXI_EACH_UNSIGNED(BIT_AND, bit_and)
ONXI_EACH_SIGNED(BIT_OR, bit_or)
ONXI_EACH_UNSIGNED(BIT_OR, bit_or)
ONXI_EACH_SIGNED(BIT_XOR, bit_xor)
ONXI_EACH_UNSIGNED(BIT_XOR, bit_xor)
ONXI_EACH_SIGNED(SHIFT_L, shift_left)
ONXI_EACH_UNSIGNED(SHIFT_L, shift_left)
ONXI_EACH_SIGNED(SHIFT_S, shift_right)
ONXI_EACH_UNSIGNED(SHIFT_R, shift_right)
NUMERIC(prelu, PRELU_F, PRELU_I, PRELU_U)

static void equal_STRING(const void *px, int64_t sx, const void *py, int64_t sy, void *pz, int64_t n)
{
    const onx_str *x = px, *y = py;
    uint8_t *z = pz;
    for (int64_t i = 0; i < n; i++)
        z[i] = onx_str_equal(x[i * sx], y[i * sy]);
}

#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
#define FLOAT_LOOPS(op)             ONXI_EACH_FLOAT(ENTRY, op)
#define INT_LOOPS(op)               ONXI_EACH_SIGNED(ENTRY, op) ONXI_EACH_UNSIGNED(ENTRY, op)
#define BODY(op, loops_)            static const onxi_binary_body op##_body = { .loops = { loops_ } };
#define SHARED(op, loops_)          const onxi_binary_body onxi_body_##op = { .loops = { loops_ } };
SHARED(add, FLOAT_LOOPS(add) INT_LOOPS(add))
BODY(sub, FLOAT_LOOPS(sub) INT_LOOPS(sub))
SHARED(mul, FLOAT_LOOPS(mul) INT_LOOPS(mul))
BODY(div, FLOAT_LOOPS(div) INT_LOOPS(div))
BODY(mod, FLOAT_LOOPS(mod) INT_LOOPS(mod))
BODY(rem, FLOAT_LOOPS(rem) INT_LOOPS(rem))
BODY(equal, FLOAT_LOOPS(equal) INT_LOOPS(equal) ONXI_EACH_BOOL(ENTRY, equal)[ONX_STRING] = equal_STRING)
BODY(less, FLOAT_LOOPS(less) INT_LOOPS(less))
BODY(greater, FLOAT_LOOPS(greater) INT_LOOPS(greater))
BODY(less_equal, FLOAT_LOOPS(less_equal) INT_LOOPS(less_equal))
BODY(greater_equal, FLOAT_LOOPS(greater_equal) INT_LOOPS(greater_equal))
SHARED(and, ONXI_EACH_BOOL(ENTRY, and))
SHARED(or, ONXI_EACH_BOOL(ENTRY, or))
BODY(xor, ONXI_EACH_BOOL(ENTRY, xor))
BODY(bit_and, INT_LOOPS(bit_and))
BODY(bit_or, INT_LOOPS(bit_or))
BODY(bit_xor, INT_LOOPS(bit_xor))
BODY(shift_left, INT_LOOPS(shift_left))
BODY(shift_right, INT_LOOPS(shift_right))
BODY(prelu, FLOAT_LOOPS(prelu) INT_LOOPS(prelu))

/* ---- driver ---- */

/* Add-1, Sub-6 and others give the axis that the second operand is aligned to. */
static onx_status old_axis(const onx_prepare *p, int32_t *shift)
{
    shift[0] = shift[1] = -1;
    if (p->since >= 7 || !onx_prepare_given(p, "axis") || !onx_prepare_is_set(p, "broadcast"))
        return ONX_OK;
    uint32_t axis;
    ONX_TRY(onx_prepare_axis(p, onx_prepare_int(p, "axis"), p->inputs[0]->rank, &axis));
    shift[1] = (int32_t)axis;
    return ONX_OK;
}

static onxi_binary_params *params_of(const onx_prepare *p, onxi_binary_loop loop)
{
    onxi_binary_params *q = ONXI_NEW(p->arena, onxi_binary_params);
    if (q) {
        q->loop = loop;
        q->in_width[0] = onxi_element_size(p->inputs[0]->dtype);
        q->in_width[1] = onxi_element_size(p->inputs[1]->dtype);
        q->out_width = onxi_element_size(p->outputs[0]->dtype);
    }
    return q;
}

static bool has_loop(const onx_prepare *p, const onxi_binary_body *body)
{
    const onx_value *x = p->inputs[0];
    return x->dtype == p->inputs[1]->dtype && x->dtype < ONX_DTYPE_COUNT && body->loops[x->dtype];
}

enum { GATHERED = 512 }; /* elements at once */

static bool is_straight(const onxi_broadcast *b, uint32_t i)
{
    int64_t step = 1;
    for (uint32_t d = b->rank; d-- > 0; step *= b->dims[d])
        if (b->step[i][d] != step)
            return false;
    return true;
}

static bool halves(const onx_value *v)
{
    return v->dtype == ONX_FLOAT16 || v->dtype == ONX_BFLOAT16;
}

static void set_rows(onx_prepare *p, onxi_binary_params *q)
{
    const uint64_t inner = (uint64_t)q->broadcast.inner;
    p->params = q;
    q->block = q->broadcast.outer == 1 ? ONXI_BLOCK : 0;
    p->rows = q->block ? (inner + q->block - 1) / q->block : q->broadcast.outer;
    p->grain = q->block || inner >= ONXI_BLOCK ? 1 : inner ? ONXI_BLOCK / inner : 1;
    if (p->outputs[0]->count == 0)
        p->rows = 0;
    for (uint32_t i = 0; i < 2; i++)
        q->straight[i] = is_straight(&q->broadcast, i);
    /* The plain loops go from element to element. */
    q->gathers = ONXI_PLATFORM_ROOMY && !q->block && inner <= GATHERED / 4 && !onxi_kernel_is_plain(p->kernel) &&
                 (halves(p->inputs[0]) && halves(p->inputs[1]));
}

static onx_status prepare_loop(onx_prepare *p, onxi_binary_loop loop, const int32_t *shift)
{
    onx_value *z = p->outputs[0];
    onxi_binary_params *q = params_of(p, loop);
    if (!q || !onxi_element_layout(p))
        return ONX_E_MEMORY;
    if (z->layout) { /* that of all values but single elements: one loop over all elements, padding included */
        const int64_t count = (int64_t)(z->layout->size / q->out_width);
        q->broadcast = (onxi_broadcast){ .rank = 1, .inputs = 2, .dims = { count }, .outer = 1, .inner = count };
        for (int i = 0; i < 2; i++)
            q->broadcast.step[i][0] = p->inputs[i]->layout != NULL;
    } else if (!onxi_broadcast_make(&q->broadcast, p->inputs, 2, z, shift)) {
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs do not broadcast to the output");
    }
    set_rows(p, q);
    return ONX_OK;
}

static onx_status prepare_with(onx_prepare *p, const onxi_binary_body *body, const int32_t *shift)
{
    return has_loop(p, body) ? prepare_loop(p, body->loops[p->inputs[0]->dtype], shift) : ONX_E_UNSUPPORTED;
}

/* For one input with the shape of the output and channel blocks. If the other one is an image of that shape, it is
 * wanted in blocks, too: its readers are more likely to want blocks than row-major elements. */
static onx_status prepare_in_blocks(onx_prepare *p, onxi_binary_loop loop)
{
    onx_value *z = p->outputs[0], views[3];
    const onx_value *list[] = { &views[0], &views[1] };
    const uint32_t laid_out = onxi_blocked_of(p->inputs[0]) ? 0 : 1, block = onxi_blocked_of(p->inputs[laid_out]);
    int64_t dims[3][ONX_RANK_MAX];
    const onx_value *whole = p->inputs[laid_out];
    onx_value other = *p->inputs[1 - laid_out];
    if (!p->want || !block || p->since < 7 || whole->rank != z->rank || z->rank >= ONX_RANK_MAX ||
        !onxi_same_dims(whole->dims, z->dims, z->rank))
        return ONX_E_UNSUPPORTED;
    const bool image = other.rank == z->rank && onxi_same_dims(other.dims, z->dims, z->rank);
    if ((other.layout && !(image && onxi_blocked_of(&other))) || (image && other.dtype != whole->dtype))
        return ONX_E_UNSUPPORTED;
    const onx_layout *layout = onxi_blocked_layout(p->arena, z, block);
    onxi_binary_params *q = params_of(p, loop);
    if (!q)
        return ONX_E_MEMORY;
    onx_value as_whole = *z;
    as_whole.layout = layout;
    if (image)
        other.layout = whole->layout;
    if (!layout || !onxi_blocked_view(&as_whole, z->rank, block, dims[2], &views[2]) ||
        !onxi_blocked_view(laid_out ? &other : whole, z->rank, block, dims[0], &views[0]) ||
        !onxi_blocked_view(laid_out ? whole : &other, z->rank, block, dims[1], &views[1]) ||
        !onxi_broadcast_make(&q->broadcast, list, 2, &views[2], NULL))
        return ONX_E_UNSUPPORTED;
    set_rows(p, q);
    p->want[1 - laid_out] = other.layout;
    z->layout = layout;
    return ONX_OK;
}

onx_status onxi_binary_prepare_in_blocks(onx_prepare *p)
{
    const onxi_binary_body *body = p->kernel->body;
    return has_loop(p, body) ? prepare_in_blocks(p, body->loops[p->inputs[0]->dtype]) : ONX_E_UNSUPPORTED;
}

onx_status onxi_binary_prepare_numpy(onx_prepare *p)
{
    return prepare_with(p, p->kernel->body, NULL);
}

onx_status onxi_binary_prepare(onx_prepare *p)
{
    int32_t shift[2];
    ONX_TRY(old_axis(p, shift));
    return prepare_with(p, p->kernel->body, shift);
}

#if ONXI_PLATFORM_ROOMY
/* Copies a few elements by two moves that overlap, more of them by several. */
static inline void copy_few(uint16_t *to, const uint16_t *from, uint64_t n)
{
#define OVERLAPPING(size)                                                                                              \
    do {                                                                                                               \
        for (uint64_t i = 0; i + (size) < n; i += (size))                                                              \
            memcpy(to + i, from + i, (size) * sizeof *to);                                                             \
        memcpy(to + n - (size), from + n - (size), (size) * sizeof *to);                                               \
    } while (0)
    if (n >= 8)
        OVERLAPPING(8);
    else if (n >= 4)
        OVERLAPPING(4);
    else if (n >= 2)
        OVERLAPPING(2);
    else
        *to = *from;
#undef OVERLAPPING
}

/* Elements start to start + n - 1 of an input as it is broadcast. */
static void gather(const onxi_broadcast *b, uint32_t input, const uint16_t *from, uint64_t start, uint64_t n,
                   uint16_t *to)
{
    const uint64_t inner = (uint64_t)b->inner;
    const int64_t step = b->step[input][b->rank - 1];
    int64_t at[ONXI_BROADCAST_MAX];
    uint64_t row = start / inner, column = start % inner;
    onxi_broadcast_offsets(b, row, at);
    for (uint64_t count; n; n -= count, to += count, column = 0) {
        const uint16_t *x = from + at[input] + (int64_t)column * step;
        count = inner - column < n ? inner - column : n;
        if (step == 1)
            copy_few(to, x, count);
        else
            for (uint64_t i = 0; i < count; i++)
                to[i] = x[(int64_t)i * step];
        if (count < n)
            onxi_broadcast_next(b, ++row, at);
    }
}

void onxi_binary_gathered(const onxi_binary_params *q, const char *const *in, const bool *cut, char *out,
                          uint64_t start, uint64_t end)
{
    uint16_t gathered[2][GATHERED];
    for (uint64_t at = start, n; at < end; at += n) {
        const void *x[2];
        n = end - at < GATHERED ? end - at : GATHERED;
        for (uint32_t i = 0; i < 2; i++) {
            x[i] = q->straight[i] ? in[i] + (at - (cut[i] ? start : 0)) * sizeof **gathered : (char *)gathered[i];
            if (!q->straight[i])
                gather(&q->broadcast, i, (const uint16_t *)(const void *)in[i], at, n, gathered[i]);
        }
        q->loop(x[0], 1, x[1], 1, out + (at - start) * q->out_width, (int64_t)n);
    }
}
#endif

onx_status onxi_binary_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_binary_params *q = work->params;
    const char *x = work->inputs[0]->data, *y = work->inputs[1]->data;
    char *z = work->outputs[0]->data;
    const onxi_broadcast *b = &q->broadcast;
    int64_t sx = b->step[0][b->rank - 1], sy = b->step[1][b->rank - 1], at[ONXI_BROADCAST_MAX] = { 0 };
#if ONXI_PLATFORM_ROOMY
    if (q->gathers) {
        const uint64_t start = first * (uint64_t)b->inner, end = last * (uint64_t)b->inner;
        onxi_binary_gathered(q, (const char *[]){ x, y }, (const bool[2]){ false }, z + start * q->out_width, start,
                             end);
        return ONX_OK;
    }
#endif
    for (uint64_t row = first; row < last; row++) {
        int64_t start = 0, n = b->inner;
        if (q->block) {
            start = (int64_t)(row * q->block);
            n = b->inner - start < (int64_t)q->block ? b->inner - start : (int64_t)q->block;
            at[0] = start * sx;
            at[1] = start * sy;
        } else {
            (row == first ? onxi_broadcast_offsets : onxi_broadcast_next)(b, row, at);
            start = (int64_t)row * b->inner;
        }
        q->loop(x + at[0] * q->in_width[0], sx, y + at[1] * q->in_width[1], sy, z + start * q->out_width, n);
    }
    return ONX_OK;
}

onx_status onxi_mod_prepare(onx_prepare *p)
{
    static const int32_t ends[2] = { -1, -1 };
    const onxi_mod_body *body = p->kernel->body;
    return prepare_with(p, onx_prepare_int(p, "fmod") ? body->rem : body->mod, ends);
}

static const onxi_mod_body both_mods = { &mod_body, &rem_body };

static onx_status shift_prepare(onx_prepare *p)
{
    static const int32_t ends[2] = { -1, -1 };
    onx_str direction = onx_prepare_text(p, "direction");
    bool left = onx_str_is(direction, "LEFT");
    if (!left && !onx_str_is(direction, "RIGHT"))
        return onx_prepare_fail(p, ONX_E_INVALID, "direction is \"%.*s\", expected LEFT or RIGHT", ONX_ARG(direction));
    return prepare_with(p, left ? &shift_left_body : &shift_right_body, ends);
}

/* Before version 7, a slope of rank 1 is per channel; otherwise it is broadcast as any operand. */
onx_status onxi_prelu_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *slope = p->inputs[1];
    int32_t shift[2] = { -1, -1 };
    if (p->since < 7 && slope->rank == 1 && x->rank > 1 && slope->dims[0] != 1)
        shift[1] = 1;
    return prepare_with(p, p->kernel->body, shift);
}

/* ---- Pow: the exponent may be of another type ---- */

/* NULL: there is none for these types. */
static onxi_binary_loop power_loop(const onx_prepare *p)
{
    const onxi_power_body *body = p->kernel->body;
    while (body->loop &&
           ((int64_t)body->base != p->inputs[0]->dtype || (int64_t)body->exponents != p->inputs[1]->dtype))
        body++;
    return body->loop;
}

onx_status onxi_power_prepare(onx_prepare *p)
{
    const onxi_binary_loop loop = power_loop(p);
    int32_t shift[2];
    ONX_TRY(old_axis(p, shift));
    return loop ? prepare_loop(p, loop, shift) : ONX_E_UNSUPPORTED;
}

onx_status onxi_power_prepare_in_blocks(onx_prepare *p)
{
    const onxi_binary_loop loop = power_loop(p);
    return loop ? prepare_in_blocks(p, loop) : ONX_E_UNSUPPORTED;
}

typedef struct pow_params {
    onxi_broadcast broadcast;
} pow_params;

static onx_status pow_prepare(onx_prepare *p)
{
    pow_params *q = ONXI_NEW(p->arena, pow_params);
    int32_t shift[2];
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(old_axis(p, shift));
    if (!onxi_broadcast_make(&q->broadcast, p->inputs, 2, p->outputs[0], shift))
        return onx_prepare_fail(p, ONX_E_INVALID, "the inputs do not broadcast to the output");
    if (!(ONXI_NUMBERS & ONX_DTYPE_BIT(p->inputs[1]->dtype)))
        return ONX_E_UNSUPPORTED;
    p->params = q;
    p->rows = p->outputs[0]->count ? q->broadcast.outer : 0;
    p->grain = 64;
    return ONX_OK;
}

static onx_status pow_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onxi_broadcast *b = &((const pow_params *)work->params)->broadcast;
    const onx_value *x = work->inputs[0], *y = work->inputs[1];
    onx_value *z = work->outputs[0];
    uint32_t wx = onxi_element_size(x->dtype), wy = onxi_element_size(y->dtype);
    bool integers =
        onx_dtype_class_of(x->dtype) != ONX_CLASS_FLOATING && onx_dtype_class_of(y->dtype) != ONX_CLASS_FLOATING;
    for (uint64_t row = first; row < last; row++) {
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, row, at);
        for (int64_t i = 0; i < b->inner; i++) {
            const char *px = (const char *)x->data + (at[0] + i * b->step[0][b->rank - 1]) * wx;
            const char *py = (const char *)y->data + (at[1] + i * b->step[1][b->rank - 1]) * wy;
            char *pz = (char *)z->data + ((int64_t)row * b->inner + i) * wx;
            if (integers) {
                int64_t base = 0, n = 0, out;
                onx_convert(ONX_INT64, &base, (onx_dtype)x->dtype, px, 1, true);
                onx_convert(ONX_INT64, &n, (onx_dtype)y->dtype, py, 1, true);
                out = onxi_integer_power(base, y->dtype == ONX_UINT64 ? onxi_signed_exponent((uint64_t)n) : n);
                memcpy(pz, &out, wx); /* little-endian: the low bytes come first */
            } else {
                double base = 0, n = 0, out;
                onx_convert(ONX_DOUBLE, &base, (onx_dtype)x->dtype, px, 1, true);
                onx_convert(ONX_DOUBLE, &n, (onx_dtype)y->dtype, py, 1, true);
                out =
                    x->dtype == ONX_FLOAT && y->dtype == ONX_FLOAT ? (double)powf((float)base, (float)n) : pow(base, n);
                onx_convert((onx_dtype)x->dtype, pz, ONX_DOUBLE, &out, 1, true);
            }
        }
    }
    return ONX_OK;
}

/* ---- rows ---- */

#define BINARY_ROW(name, version, types, how, body_)                                                                   \
    {                                                                                                                  \
        .op = name, .since = version, .dtypes = types, .flags = how, .body = &body_, .prepare = onxi_binary_prepare,   \
        .run = onxi_binary_run                                                                                         \
    }
#define BOOLS ONX_DTYPE_BIT(ONX_BOOL)

const onx_kernel onxi_kernels_elementwise[] = {
    { .op = "Add",
      .since = 1,
      .dtypes = ONXI_NUMBERS,
      .flags = ONX_KERNEL_IN_PLACE | ONX_KERNEL_FLAT,
      .post_op = ONX_POST_ADD,
      .body = &onxi_body_add,
      .prepare = onxi_binary_prepare,
      .run = onxi_binary_run },
    BINARY_ROW("Sub", 1, ONXI_NUMBERS, ONX_KERNEL_IN_PLACE | ONX_KERNEL_FLAT, sub_body),
    BINARY_ROW("Mul", 1, ONXI_NUMBERS, ONX_KERNEL_IN_PLACE | ONX_KERNEL_FLAT, onxi_body_mul),
    BINARY_ROW("Div", 1, ONXI_NUMBERS, ONX_KERNEL_IN_PLACE, div_body),
    { .op = "Mod",
      .since = 10,
      .dtypes = ONXI_NUMBERS,
      .flags = ONX_KERNEL_IN_PLACE,
      .body = &both_mods,
      .prepare = onxi_mod_prepare,
      .run = onxi_binary_run },
    { .op = "Pow", .since = 1, .dtypes = ONXI_NUMBERS, .prepare = pow_prepare, .run = pow_run },
    { .op = "PRelu",
      .since = 1,
      .dtypes = ONXI_NUMBERS,
      .flags = ONX_KERNEL_IN_PLACE,
      .body = &prelu_body,
      .prepare = onxi_prelu_prepare,
      .run = onxi_binary_run },
    BINARY_ROW("Equal", 1, ONXI_NUMBERS | BOOLS | ONX_DTYPE_BIT(ONX_STRING), 0, equal_body),
    BINARY_ROW("Less", 1, ONXI_NUMBERS, 0, less_body),
    BINARY_ROW("Greater", 1, ONXI_NUMBERS, 0, greater_body),
    { .op = "Greater",
      .since = 1,
      .dtypes = ONXI_F32,
      .preference = 2,
      .flags = ONX_KERNEL_LAYOUTS,
      .variant = "blocked",
      .body = &greater_body,
      .prepare = onxi_binary_prepare_in_blocks,
      .run = onxi_binary_run },
    BINARY_ROW("LessOrEqual", 12, ONXI_NUMBERS, 0, less_equal_body),
    BINARY_ROW("GreaterOrEqual", 12, ONXI_NUMBERS, 0, greater_equal_body),
    BINARY_ROW("And", 1, BOOLS, ONX_KERNEL_IN_PLACE, onxi_body_and),
    BINARY_ROW("Or", 1, BOOLS, ONX_KERNEL_IN_PLACE, onxi_body_or),
    BINARY_ROW("Xor", 1, BOOLS, ONX_KERNEL_IN_PLACE, xor_body),
    BINARY_ROW("BitwiseAnd", 18, ONXI_INTEGERS, ONX_KERNEL_IN_PLACE, bit_and_body),
    BINARY_ROW("BitwiseOr", 18, ONXI_INTEGERS, ONX_KERNEL_IN_PLACE, bit_or_body),
    BINARY_ROW("BitwiseXor", 18, ONXI_INTEGERS, ONX_KERNEL_IN_PLACE, bit_xor_body),
    { .op = "BitShift",
      .since = 11,
      .dtypes = ONXI_INTEGERS,
      .flags = ONX_KERNEL_IN_PLACE,
      .prepare = shift_prepare,
      .run = onxi_binary_run },
    { 0 }
};
