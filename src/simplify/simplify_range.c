/* simplify_range.c - bounds of the elements of a value, from constants, element types and the nodes that produce it:
 * rules need to know that a mask has no -inf. */
#include "simplify/simplify.h"

#include <float.h>
#include <math.h>

/* How many values are looked at, and the most elements of a constant. */
enum { LOOKS = 48, ELEMENTS = 1 << 22 };

/* Each element is NaN, or from `low` to `high`. */
typedef struct range {
    double low, high;
} range;
static const range any = { -INFINITY, INFINITY };

typedef struct ranger {
    onxi_simplify *s;
    uint32_t looks;
} ranger;

static range around(range a, range b)
{
    return (range){ fmin(a.low, b.low), fmax(a.high, b.high) };
}

/* The largest finite number of a type of element; 0: not known. */
static double most_of(int dtype)
{
    switch (dtype) {
    case ONX_DOUBLE:
        return DBL_MAX;
    case ONX_FLOAT:
        return (double)FLT_MAX;
    case ONX_FLOAT16:
        return 65504;
    case ONX_BFLOAT16:
        return 0x1.fep127;
    default:
        return 0;
    }
}

/* What numbers of that range are in a floating-point type. */
static range in_type(range r, int dtype)
{
    const double most = most_of(dtype);
    if (!(r.low >= -most)) /* NaN, too: infinities that were subtracted */
        r.low = -INFINITY;
    if (!(r.high <= most))
        r.high = INFINITY;
    return r;
}

static range of_type(int dtype)
{
    const uint32_t bits = dtype == ONX_UNDEFINED ? 0 : (uint32_t)onx_dtype_bits((onx_dtype)dtype);
    if (dtype == ONX_BOOL)
        return (range){ 0, 1 };
    switch (bits ? onx_dtype_class_of((onx_dtype)dtype) : ONX_CLASS_FLOATING) {
    case ONX_CLASS_SIGNED:
        return (range){ -ldexp(1, (int)bits - 1), ldexp(1, (int)bits - 1) };
    case ONX_CLASS_UNSIGNED:
        return (range){ 0, ldexp(1, (int)bits) };
    default:
        return any;
    }
}

static range of_constant(onxi_simplify *s, uint32_t value)
{
    onxi_svalue *v = &s->values[value];
    uint64_t count;
    range r = { INFINITY, -INFINITY };
    if (v->ranged)
        return (range){ v->low, v->high };
    v->ranged = true;
    v->low = any.low;
    v->high = any.high;
    if (!onx_tensor_count(v->tensor, &count) || count > ELEMENTS)
        return any;
    double *numbers = ONXI_ARRAY(s->scratch, double, count + 1);
    if (!numbers || !onxi_simplify_get_numbers(s, value, numbers, count, &count))
        return any;
    for (uint64_t i = 0; i < count; i++) {
        r.low = fmin(r.low, numbers[i]); /* without NaN */
        r.high = fmax(r.high, numbers[i]);
    }
    v->low = r.low;
    v->high = r.high;
    return r;
}

static range range_of(ranger *w, uint32_t value);

static range of_input(ranger *w, const onxi_sop *op, uint32_t i)
{
    const uint32_t value = onxi_simplify_input(w->s, op, i);
    return value == ONXI_S_NONE ? any : range_of(w, value);
}

static range of_inputs(ranger *w, const onxi_sop *op, uint32_t from, uint32_t to)
{
    range r = { INFINITY, -INFINITY };
    for (uint32_t i = from; i < to && i < op->input_count; i++)
        r = around(r, of_input(w, op, i));
    return from < op->input_count ? r : any;
}

static range product(range a, range b)
{
    const double corners[] = { a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high };
    range r = { 0, 0 }; /* 0 * inf is NaN, but a number near 0 times a large number is any number between */
    for (int i = 0; i < 4; i++)
        if (!isnan(corners[i]))
            r = around(r, (range){ corners[i], corners[i] });
    return r;
}

/* The range of what a floating-point operator makes. */
static range of_maker(ranger *w, const onxi_sop *op)
{
    range a, b;
    switch (op->bound->op) {
    case ONXI_ID_Identity:
    case ONXI_ID_Reshape:
    case ONXI_ID_Unsqueeze:
    case ONXI_ID_Squeeze:
    case ONXI_ID_Flatten:
    case ONXI_ID_Transpose:
    case ONXI_ID_Expand:
    case ONXI_ID_Tile:
    case ONXI_ID_Slice:
    case ONXI_ID_Split:
    case ONXI_ID_Gather:
    case ONXI_ID_GatherND:
    case ONXI_ID_GatherElements:
    case ONXI_ID_Cast:
    case ONXI_ID_CastLike:
        return of_input(w, op, 0);
    case ONXI_ID_Relu:
        return (range){ 0, fmax(of_input(w, op, 0).high, 0) };
    case ONXI_ID_Trilu:
        return around(of_input(w, op, 0), (range){ 0, 0 });
    case ONXI_ID_Concat:
        return of_inputs(w, op, 0, op->input_count);
    case ONXI_ID_Where:
        return of_inputs(w, op, 1, 3);
    case ONXI_ID_Neg:
        a = of_input(w, op, 0);
        return (range){ -a.high, -a.low };
    case ONXI_ID_Add:
        a = of_input(w, op, 0), b = of_input(w, op, 1);
        return (range){ a.low + b.low, a.high + b.high };
    case ONXI_ID_Sub:
        a = of_input(w, op, 0), b = of_input(w, op, 1);
        return (range){ a.low - b.high, a.high - b.low };
    case ONXI_ID_Mul:
        return product(of_input(w, op, 0), of_input(w, op, 1));
    case ONXI_ID_Max:
        a = of_input(w, op, 0), b = of_input(w, op, 1);
        return op->input_count == 2 ? (range){ fmax(a.low, b.low), fmax(a.high, b.high) } : any;
    case ONXI_ID_Clip:
        if (op->bound->schema->since < 11)
            return any;
        b = onxi_simplify_input(w->s, op, 1) == ONXI_S_NONE ? any : of_input(w, op, 1);
        /* a bound above the upper one gives the upper one */
        a = onxi_simplify_input(w->s, op, 2) == ONXI_S_NONE ? (range){ INFINITY, INFINITY } : of_input(w, op, 2);
        return (range){ fmin(b.low, a.low), INFINITY };
    default:
        return any;
    }
}

static range range_of(ranger *w, uint32_t value)
{
    onxi_simplify *s = w->s;
    const onxi_svalue *v = &s->values[value];
    const int dtype = onxi_simplify_dtype(s, value);
    if (v->tensor)
        return v->tensor->data_type == ONX_STRING ? any : of_constant(s, value);
    if (most_of(dtype) == 0) /* integers wrap around */
        return of_type(dtype);
    if (!v->maker || w->looks >= LOOKS)
        return any;
    w->looks++;
    onxi_sop *op = &s->ops[v->maker - 1];
    return op->dead || op->opaque || op->first_scope != ONXI_S_NONE || !op->input_count || !onxi_simplify_attrs(s, op)
               ? any
               : in_type(of_maker(w, op), dtype);
}

bool onxi_simplify_is_bounded(onxi_simplify *s, uint32_t value)
{
    return range_of(&(ranger){ s, 0 }, onxi_simplify_value(s, value)).low > -INFINITY;
}
