/* transform_conditions_types.c - conditions that depend on the element types of operands. */
#include "transform/transform_retarget.h"

#include <math.h>

#define WHEN(name) bool onxi_when_##name(onxi_subject *s)

/* ---- classes of types ---- */

static bool has_integers(onxi_subject *s, uint32_t input)
{
    const onx_dtype_class class = onx_dtype_class_of(onxi_subject_dtype(s, input));
    return class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED;
}
WHEN(is_of_integers)
{
    return has_integers(s, 0);
}
WHEN(not_integers)
{
    return !has_integers(s, 0);
}
WHEN(not_reals)
{
    return onx_dtype_class_of(onxi_subject_dtype(s, 0)) != ONX_CLASS_FLOATING;
}
static bool has_longs(onxi_subject *s)
{
    const int dtype = onxi_subject_dtype(s, 0);
    return dtype == ONX_INT64 || dtype == ONX_UINT64;
}
WHEN(not_longs)
{
    return !has_longs(s);
}
WHEN(halves)
{
    return onxi_prepare_tensor(s, "half", onxi_subject_number(s, onxi_subject_dtype(s, 0), false, 4294967296.0));
}
WHEN(zero_of_type)
{
    return onxi_prepare_tensor(s, "zero", onxi_subject_number(s, onxi_subject_dtype(s, 0), false, 0));
}
static bool prepare_constant(onxi_subject *s, const char *name, double value)
{
    return onxi_prepare_tensor(s, name, onxi_subject_number(s, onxi_subject_dtype(s, 0), false, value));
}
WHEN(signed_zeros)
{
    return onx_dtype_class_of(onxi_subject_dtype(s, 0)) == ONX_CLASS_FLOATING && prepare_constant(s, "zero", 0) &&
           prepare_constant(s, "below", -0.0);
}
WHEN(rest_of_dividend)
{
    int64_t fmod;
    return onxi_subject_int(s, "fmod", &fmod) && fmod != 0;
}
WHEN(sums_integers)
{
    return has_integers(s, 0) && onxi_prepare_int(s, "to", onxi_subject_dtype(s, 0));
}

/* ---- BitShift ---- */

WHEN(is_of_unsigned)
{
    return onx_dtype_class_of(onxi_subject_dtype(s, 0)) == ONX_CLASS_UNSIGNED;
}
static bool shifts(onxi_subject *s, const char *direction)
{
    static const struct {
        onx_dtype from, to;
    } types[] = {
        { ONX_INT8, ONX_UINT8 }, { ONX_INT16, ONX_UINT16 }, { ONX_INT32, ONX_UINT32 }, { ONX_INT64, ONX_UINT64 }
    };
    const int dtype = onxi_subject_dtype(s, 0);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((int)types[i].from == dtype)
            return onxi_subject_text_is(s, "direction", direction) && prepare_constant(s, "zero", 0) &&
                   prepare_constant(s, "minus", -1) && prepare_constant(s, "bits", 8 << i) &&
                   onxi_prepare_int(s, "signed", dtype) && onxi_prepare_int(s, "unsigned", types[i].to);
    return false;
}
WHEN(shift_left)
{
    return shifts(s, "LEFT");
}
WHEN(shift_right)
{
    return shifts(s, "RIGHT");
}
WHEN(thresholds)
{
    float alpha;
    const int dtype = onxi_subject_dtype(s, 0) == ONX_DOUBLE ? ONX_DOUBLE : ONX_FLOAT;
    return onxi_subject_float(s, "alpha", &alpha) &&
           onxi_prepare_tensor(s, "from", onxi_subject_number(s, dtype, false, (double)alpha)) &&
           onxi_prepare_tensor(s, "zero", onxi_subject_number(s, dtype, false, 0));
}

/* ---- Max, Min ---- */

enum { CHAIN_MAX = 64 };

/* "(x0, x1, x2) => (m) { c1 = Greater (x0, x1)  m1 = Where (c1, x0, x1)  ... }" */
static bool write_chain(onxi_subject *s, const char *compare)
{
    const uint32_t count = s->node->input_count;
    onx_str head = onx_str_of("x0"), body = { 0 };
    if (!has_longs(s) || !count || count > CHAIN_MAX)
        return false;
    for (uint32_t i = 1; i < count; i++) {
        const onx_str left = i == 1 ? onx_str_of("x0") : onxi_arena_printf(s->arena, "m%u", i - 1);
        const onx_str right = onxi_arena_printf(s->arena, "x%u", i);
        head = onxi_arena_printf(s->arena, "%.*s, x%u", ONX_ARG(head), i);
        body = onxi_arena_printf(s->arena, "%.*s c%u = %s (%.*s, %.*s) m%u = Where (c%u, %.*s, %.*s)", ONX_ARG(body), i,
                                 compare, ONX_ARG(left), ONX_ARG(right), i, i, ONX_ARG(left), ONX_ARG(right));
    }
    const onx_str last = count == 1 ? onx_str_of("x0") : onxi_arena_printf(s->arena, "m%u", count - 1);
    s->text = onxi_arena_printf(s->arena, "(%.*s) => (m) {%.*s m = Identity (%.*s) }", ONX_ARG(head), ONX_ARG(body),
                                ONX_ARG(last));
    return s->text.len != 0;
}
WHEN(largest_long)
{
    return write_chain(s, "Greater");
}
WHEN(smallest_long)
{
    return write_chain(s, "Less");
}

/* ---- Pow ---- */

/* The value of a constant exponent of one element. */
static bool constant_exponent(onxi_subject *s, double *out)
{
    const onxi_constant *c =
        onxi_subject_has(s, 1) ? onxi_values_constant(s->values, s->scope, onx_view(s->node->input[1])) : NULL;
    const onx_attribute *a = c ? onxi_constant_attribute(s->values, s->arena, c, ONX_ATTR_TENSOR) : NULL;
    uint64_t count;
    const int rank = onxi_subject_rank(s, 1);
    if (!a || a->slot != ONX_SLOT_T || !onx_tensor_count(a->t, &count) || count != 1 || rank > 1 ||
        (rank == 1 && onxi_subject_rank(s, 0) < 1) || onx_tensor_get_f64(s->values->doc, a->t, 0, 1, out) != ONX_OK)
        return false;
    return true;
}

/* Powers of integers wrap around, and so do products. */
WHEN(power_of_products)
{
    enum { MOST = 64 };
    double exponent;
    if (!has_integers(s, 0) || !has_integers(s, 1) || !constant_exponent(s, &exponent) || !(exponent >= 1) ||
        exponent > MOST)
        return false;
    onx_str text = { 0 }, so_far = { 0 }, power = onx_str_of("X");
    uint32_t left = (uint32_t)exponent, made = 0;
    for (text = onx_str_of("(X, Y) => (Z) {"); left; left >>= 1) {
        if (left & 1 && so_far.len) {
            text = onxi_arena_printf(s->arena, "%.*s p%u = Mul (%.*s, %.*s)", ONX_ARG(text), made, ONX_ARG(so_far),
                                     ONX_ARG(power));
            so_far = onxi_arena_printf(s->arena, "p%u", made++);
        } else if (left & 1)
            so_far = power;
        if (left > 1) {
            text = onxi_arena_printf(s->arena, "%.*s p%u = Mul (%.*s, %.*s)", ONX_ARG(text), made, ONX_ARG(power),
                                     ONX_ARG(power));
            power = onxi_arena_printf(s->arena, "p%u", made++);
        }
    }
    s->text = onxi_arena_printf(s->arena, "%.*s Z = Identity (%.*s) }", ONX_ARG(text), ONX_ARG(so_far));
    return s->text.len != 0;
}

static bool is_mixed(onxi_subject *s)
{
    const int base = onxi_subject_dtype(s, 0), exponent = onxi_subject_dtype(s, 1);
    return base > 0 && exponent > 0 && base != exponent && onxi_prepare_int(s, "to", base);
}
WHEN(small_exponent)
{
    double exponent;
    return constant_exponent(s, &exponent) && fabs(exponent) <= 256 && floor(exponent) == exponent && is_mixed(s);
}
WHEN(mixed_power)
{
    return is_mixed(s);
}

/* ---- what floating-point numbers had first ---- */

WHEN(flatten_sizes)
{
    int64_t axis, sizes[2] = { 1, 1 };
    const onx_type *type = onxi_subject_type(s, 0);
    const int rank = onxi_type_rank(type);
    if (rank < 0 || !onxi_subject_int(s, "axis", &axis) || onxi_when_not_integers(s))
        return false;
    for (int i = 0; i < rank; i++) {
        const int64_t size = onxi_type_dim(type, (uint32_t)i);
        if (size <= 0 || !onxi_mul_i64(sizes[i >= axis], size, &sizes[i >= axis]))
            return false;
    }
    return onxi_prepare_ints(s, "sizes", sizes, 2);
}
WHEN(integer_matrices)
{
    const int dtype = onxi_subject_dtype(s, 0);
    return (has_longs(s) || dtype == ONX_INT32 || dtype == ONX_UINT32) && onxi_subject_rank(s, 0) == 2 &&
           onxi_subject_rank(s, 1) == 2;
}
WHEN(integer_gemm)
{
    float alpha, beta;
    int64_t a, b;
    return onxi_when_integer_matrices(s) && onxi_subject_float(s, "alpha", &alpha) && alpha == 1 &&
           onxi_subject_float(s, "beta", &beta) && beta == 1 && onxi_subject_int(s, "transA", &a) && !a &&
           onxi_subject_int(s, "transB", &b) && !b;
}

/* ---- OneHot ---- */

WHEN(indexes_from_front)
{
    uint32_t count;
    if (onx_dtype_class_of(onxi_subject_dtype(s, 0)) == ONX_CLASS_UNSIGNED)
        return true;
    const int64_t *list = onxi_subject_dtype(s, 0) == ONX_INT64 ? onxi_subject_input_ints(s, 0, &count) : NULL;
    for (uint32_t i = 0; list && i < count; i++)
        if (list[i] < 0)
            return false;
    return list != NULL;
}
