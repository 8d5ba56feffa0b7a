/* elementwise.c - rules of elementwise operators, with or without broadcasting, and their effect on propagated integer
 * tensors. */
#include "op/op_rules.h"

#include <math.h>

/* ---- one input ---- */

static void carry(onxi_call *call, onxi_dim (*step)(onxi_dims *dims, onxi_dim a))
{
    const onxi_known_ints *in = onxi_call_any_value(call, 0);
    onxi_dim *out = in ? onxi_call_set_value(call, 0, in->rank, in->count) : NULL;
    for (uint32_t i = 0; out && i < in->count; i++)
        out[i] = onxi_dim_is_known(in->elements[i]) ? step(call->dims, in->elements[i]) : ONXI_DIM_UNKNOWN;
}

static onxi_dim step_same(onxi_dims *dims, onxi_dim a)
{
    (void)dims;
    return a;
}
static onxi_dim step_neg(onxi_dims *dims, onxi_dim a)
{
    return onxi_dim_sub(dims, 0, a);
}
static onxi_dim step_abs(onxi_dims *dims, onxi_dim a)
{
    return onxi_dim_low(dims, a) >= 0 ? a : onxi_dim_max(dims, a, onxi_dim_sub(dims, 0, a));
}
static onxi_dim step_relu(onxi_dims *dims, onxi_dim a)
{
    return onxi_dim_max(dims, a, 0);
}
static onxi_dim step_not(onxi_dims *dims, onxi_dim a)
{
    return onxi_dim_sub(dims, 1, a);
}

/* The first output has the shape of the first input. */
onx_status onxi_rule_unary(onxi_call *call)
{
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* The same for any type; a propagated value is passed on. */
onx_status onxi_rule_identity(onxi_call *call)
{
    onxi_call_same(call, 0, 0);
    carry(call, step_same);
    return ONX_OK;
}

onx_status onxi_rule_neg(onxi_call *call)
{
    carry(call, step_neg);
    return onxi_rule_unary(call);
}

onx_status onxi_rule_abs(onxi_call *call)
{
    carry(call, step_abs);
    return onxi_rule_unary(call);
}

onx_status onxi_rule_relu(onxi_call *call)
{
    carry(call, step_relu);
    return onxi_rule_unary(call);
}

onx_status onxi_rule_not(onxi_call *call)
{
    carry(call, step_not);
    return onxi_rule_unary(call);
}

/* The root of a square; other values are not propagated. */
static onxi_dim step_sqrt(onxi_dims *dims, onxi_dim a)
{
    (void)dims;
    int64_t root = 0;
    if (!onxi_dim_is_const(a) || a < 0 || a > INT32_MAX)
        return ONXI_DIM_UNKNOWN;
    for (int64_t bit = 1 << 15; bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= a)
            root += bit;
    return root * root == a ? root : ONXI_DIM_UNKNOWN;
}

onx_status onxi_rule_sqrt(onxi_call *call)
{
    carry(call, step_sqrt);
    return onxi_rule_unary(call);
}

onx_status onxi_rule_floor(onxi_call *call)
{
    const onxi_known_ints *part = onxi_call_floored_value(call, 0);
    if (part) {
        onxi_known_ints whole = *part;
        whole.floored = false;
        onxi_call_carry(call, 0, whole);
    }
    carry(call, step_same);
    return onxi_rule_unary(call);
}

/* Ceil, Round: propagated elements are integers already. */
onx_status onxi_rule_round(onxi_call *call)
{
    carry(call, step_same);
    return onxi_rule_unary(call);
}

onx_status onxi_rule_clip(onxi_call *call)
{
    int64_t low, high;
    const onxi_known_ints *in = onxi_call_value(call, 0);
    bool has_low = call->schema->since >= 11 && onxi_call_const_int(call, 1, &low);
    bool has_high = call->schema->since >= 11 && onxi_call_const_int(call, 2, &high);
    bool known = call->schema->since >= 11 && (has_low || !onxi_call_has_input(call, 1)) &&
                 (has_high || !onxi_call_has_input(call, 2));
    onxi_dim *out = in && known ? onxi_call_set_value(call, 0, in->rank, in->count) : NULL;
    for (uint32_t i = 0; out && i < in->count; i++) {
        out[i] = has_low ? onxi_dim_max(call->dims, in->elements[i], low) : in->elements[i];
        out[i] = has_high ? onxi_dim_min(call->dims, out[i], high) : out[i];
    }
    if (call->schema->since >= 11 && call->schema->since < 12) {
        ONX_TRY(onxi_call_want_rank(call, 1, 0));
        ONX_TRY(onxi_call_want_rank(call, 2, 0));
    }
    return onxi_rule_unary(call);
}

/* Softmax and similar: the shape does not change, the axis has to exist. */
onx_status onxi_rule_axis(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    uint32_t axis;
    onx_status status = onxi_rule_unary(call);
    /* Before version 13 the axis only separates the two dimensions of a flattened input; a vector then has the default
     * 1, which is out of range. */
    if (!x || (call->schema->since < 13 && !onxi_call_given(call, "axis")))
        return status;
    int64_t at = onxi_call_int(call, "axis");
    return call->schema->since < 13 && at == (int64_t)x->rank ? ONX_OK : onxi_call_axis(call, at, x->rank, &axis);
}

/* ---- several inputs, broadcast to each other ---- */

/* The common shape of inputs first..last-1; false when a rank is unknown. */
static onx_status broadcast_shape(onxi_call *call, uint32_t first, uint32_t last, uint32_t output)
{
    uint32_t rank = 0;
    onxi_dim *dims;
    for (uint32_t i = first; i < last; i++) {
        const onxi_type *x = onxi_call_ranked(call, i);
        if (!x)
            return ONX_OK;
        rank = x->rank > rank ? x->rank : rank;
    }
    ONX_TRY(onxi_call_shape(call, output, rank, &dims));
    for (uint32_t k = 0; k < rank; k++) {
        onxi_dim dim = 1;
        for (uint32_t i = first; i < last; i++) {
            const onxi_type *x = call->inputs[i];
            if (k + x->rank < rank)
                continue;
            onx_status status = onxi_call_broadcast(call, dim, x->dims[k + x->rank - rank], &dim);
            if (status != ONX_OK) {
                onxi_call_output_unranked(call, output, output < call->output_count ? call->outputs[output].dtype : 0);
                return status;
            }
        }
        dims[k] = dim;
    }
    return ONX_OK;
}

onx_status onxi_broadcast_inputs(onxi_call *call, uint32_t first, uint32_t last, uint32_t output)
{
    return broadcast_shape(call, first, last, output);
}

typedef onxi_dim step_fn(onxi_dims *dims, onxi_dim a, onxi_dim b);

/* Element k of a broadcast value; a value of one element stands for all. */
static onxi_dim element(const onxi_known_ints *v, uint32_t k)
{
    return v->elements[v->count == 1 ? 0 : k];
}

/* Constants in the band of ids cannot be represented as dimensions, so they are read from the tensors themselves. */
static bool exact_constant(onxi_call *call, uint32_t input, uint32_t k, onxi_dim carried, int64_t *out)
{
    uint64_t count;
    *out = carried;
    if (carried != ONXI_DIM_BAND)
        return onxi_dim_is_const(carried) && onxi_call_dtype(call, input) == ONX_INT64;
    const onx_tensor *t = call->ops->constant(call, input);
    return t && t->data_type == ONX_INT64 && onx_tensor_count(t, &count) && count && !onx_tensor_is_external(t) &&
           onx_tensor_get_i64(call->doc, t, count == 1 ? 0 : k, 1, out) == ONX_OK;
}

/* For strict inference. */
static onx_status refuse_overflow(onxi_call *call, step_fn *step, uint32_t k, onxi_dim a, onxi_dim b)
{
    int64_t x, y, out;
    if ((step != onxi_dim_add && step != onxi_dim_sub && step != onxi_dim_mul) || !exact_constant(call, 0, k, a, &x) ||
        !exact_constant(call, 1, k, b, &y))
        return ONX_OK;
    bool fits = step == onxi_dim_add   ? onxi_add_i64(x, y, &out)
                : step == onxi_dim_sub ? onxi_sub_i64(x, y, &out)
                                       : onxi_mul_i64(x, y, &out);
    return fits ? ONX_OK : onxi_call_fail(call, "%lld and %lld overflow 64 bits", (long long)x, (long long)y);
}

static onx_status carry_pair(onxi_call *call, step_fn *step)
{
    const onxi_known_ints *a = onxi_call_any_value(call, 0), *b = onxi_call_any_value(call, 1);
    if (!a || !b)
        return ONX_OK;
    if (a->rank > 1 || b->rank > 1) {
        onxi_carry_pairs(call, step);
        return ONX_OK;
    }
    if (a->count != b->count && a->count != 1 && b->count != 1)
        return ONX_OK;
    uint32_t count = a->count == 1 ? b->count : a->count;
    onxi_dim *out = onxi_call_set_value(call, 0, a->rank > b->rank ? a->rank : b->rank, count);
    for (uint32_t k = 0; out && k < count; k++) {
        out[k] = onxi_call_step(call, step, element(a, k), element(b, k));
        if (onxi_dims_refuses_overflow(call->dims) && !onxi_dim_is_known(out[k]))
            ONX_TRY(refuse_overflow(call, step, k, element(a, k), element(b, k)));
    }
    return ONX_OK;
}

/* Multidirectional broadcasting of all inputs; before version 7 (8 for variadic operators) the first input determines
 * the shape. */
onx_status onxi_rule_broadcast(onxi_call *call)
{
    return broadcast_shape(call, 0, call->input_count, 0);
}

static onx_status pair(onxi_call *call, step_fn *step)
{
    if (call->schema->since < 7)
        return onxi_rule_unary(call);
    ONX_TRY(broadcast_shape(call, 0, call->input_count < 2 ? call->input_count : 2, 0));
    return step ? carry_pair(call, step) : ONX_OK;
}

/* Integer division truncates towards zero; floating-point division is only propagated if it is exact. */
static onxi_dim step_div(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b)) /* the end of the band may be any integer below it */
        return b == 0 || a == ONXI_DIM_BAND || b == ONXI_DIM_BAND ? ONXI_DIM_UNKNOWN : a / b;
    return onxi_dim_div(dims, a, b);
}

/* For every value of the symbols: a quotient of expressions is rounded down, which is towards zero from 0 on. */
static onxi_dim step_div_proven(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    const bool numbers = onxi_dim_is_const(a) && onxi_dim_is_const(b);
    return numbers || (onxi_dim_low(dims, a) >= 0 && onxi_dim_low(dims, b) >= 0) ? step_div(dims, a, b)
                                                                                 : ONXI_DIM_UNKNOWN;
}

static onxi_dim step_div_exact(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return onxi_dim_mod(dims, a, b) == 0 ? onxi_dim_div(dims, a, b) : ONXI_DIM_UNKNOWN;
}

static onxi_dim step_mod(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return onxi_dim_mod(dims, a, b);
}
static onxi_dim step_fmod(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    bool same = onxi_dim_low(dims, a) >= 0 && onxi_dim_low(dims, b) >= 0;
    return same ? onxi_dim_mod(dims, a, b) : ONXI_DIM_UNKNOWN; /* the sign is that of a */
}

onx_status onxi_rule_add(onxi_call *call)
{
    return pair(call, onxi_dim_add);
}
onx_status onxi_rule_sub(onxi_call *call)
{
    return pair(call, onxi_dim_sub);
}
/* floor(size * scale) of a size from 0 on, as a run computes it in float. */
static onxi_dim scaled_part(onxi_call *call, onxi_dim size, float scale)
{
    if (onxi_dim_is_const(size)) {
        const float part = floorf((float)size * scale);
        return part < 0x1p31f ? (int64_t)part : ONXI_DIM_UNKNOWN;
    }
    return onxi_scaled_in_float(call, size, scale);
}

/* The same of a quotient. Rounding the quotient of two integers that the type holds never reaches the next integer. */
static onxi_dim divided_part(onxi_call *call, onxi_dim size, onxi_dim by)
{
    return by != 0 && onxi_dim_low(call->dims, by) >= 0 ? onxi_dim_div(call->dims, size, by) : ONXI_DIM_UNKNOWN;
}

/* A size that is scaled in floating point, such as H * 0.5 or H / 32, is usually rounded down next, so its floor is
 * propagated. */
static void carry_part(onxi_call *call, const onxi_known_ints *a, const onxi_known_ints *b, const float *scale)
{
    uint32_t count = b && b->count > a->count ? b->count : a->count;
    const int dtype = onxi_call_dtype(call, 0);
    if (call->schema->since < 7 || a->rank > 1 || (b && b->rank > 1) || (a->count != count && a->count != 1) ||
        (b && b->count != count && b->count != 1) || (dtype != ONX_FLOAT && dtype != ONX_DOUBLE))
        return;
    onxi_dim *out = onxi_call_set_value(call, 0, b && b->rank > a->rank ? b->rank : a->rank, count);
    for (uint32_t i = 0; out && i < count; i++) {
        onxi_dim x = element(a, i), y = b ? element(b, i) : ONXI_DIM_UNKNOWN;
        if (!onxi_dim_is_known(x) || onxi_dim_low(call->dims, x) < 0)
            continue;
        if (scale)
            out[i] = scaled_part(call, x, *scale);
        else if (onxi_dim_is_known(y))
            out[i] = divided_part(call, x, y);
    }
    if (out)
        call->output_values[0].floored = true;
}

/* The only element of a constant, if it is a positive fraction. */
static bool fraction_in(onxi_call *call, uint32_t input, float *out)
{
    const onx_tensor *t = onxi_call_has_input(call, input) ? call->ops->constant(call, input) : NULL;
    uint64_t count;
    return t && t->data_type == ONX_FLOAT && t->dims_count <= 1 && !onx_tensor_is_external(t) &&
           onx_tensor_count(t, &count) && count == 1 && onx_tensor_get_f32(call->doc, t, 0, 1, out) == ONX_OK &&
           *out > 0 && *out < 1e6f && *out != (float)(int64_t)*out;
}

onx_status onxi_rule_mul(onxi_call *call)
{
    ONX_TRY(pair(call, onxi_dim_mul));
    if (onxi_call_dtype(call, 0) != ONX_FLOAT || !call->dims)
        return ONX_OK;
    for (uint32_t i = 0; i < 2; i++) {
        const onxi_known_ints *size = onxi_call_value(call, i);
        float scale;
        if (size && fraction_in(call, 1 - i, &scale))
            carry_part(call, size, NULL, &scale);
    }
    return ONX_OK;
}
onx_status onxi_rule_mod(onxi_call *call)
{
    return pair(call, onxi_call_int(call, "fmod") ? step_fmod : step_mod);
}

onx_status onxi_rule_div(onxi_call *call)
{
    bool floating = onx_dtype_class_of(onxi_call_dtype(call, 0)) == ONX_CLASS_FLOATING;
    const onxi_known_ints *a = onxi_call_value(call, 0), *b = onxi_call_value(call, 1);
    ONX_TRY(pair(call, floating ? step_div_exact : onxi_dims_proves(call->dims) ? step_div_proven : step_div));
    bool open = false;
    const onxi_known_ints *out = call->output_count && call->output_values ? &call->output_values[0] : NULL;
    for (uint32_t i = 0; floating && a && b && out && out->elements && i < out->count; i++)
        open |= !onxi_dim_is_known(out->elements[i]);
    if (open && call->dims)
        carry_part(call, a, b, NULL);
    return ONX_OK;
}

/* And, Or, Xor, BitShift, PRelu, Pow, ... : two inputs are broadcast; no values are propagated. */
onx_status onxi_rule_pair(onxi_call *call)
{
    return pair(call, NULL);
}

/* PRelu: the slope is broadcast to the input, but not vice versa. */
onx_status onxi_rule_prelu(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    if (x && call->schema->since >= 7) /* before, the slope is one number or one per channel */
        ONX_TRY(onxi_call_want_one_way(call, 1, x->rank, x->dims));
    return onxi_rule_unary(call);
}

/* Comparisons: the result is propagated if both operands are known well enough. */
static onxi_dim step_equal(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    onxi_dim difference = onxi_dim_sub(dims, a, b);
    if (a == b || difference == 0)
        return 1;
    if (onxi_dim_is_const(difference) && onxi_dim_is_known(difference))
        return 0;
    return onxi_dim_low(dims, a) > onxi_dim_high(dims, b) || onxi_dim_low(dims, b) > onxi_dim_high(dims, a)
               ? 0
               : ONXI_DIM_UNKNOWN;
}

static onxi_dim step_at_least(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (onxi_dim_at_least(dims, a, b))
        return 1;
    return onxi_dim_at_least(dims, b, onxi_dim_add(dims, a, 1)) ? 0 : ONXI_DIM_UNKNOWN;
}
static onxi_dim step_at_most(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return step_at_least(dims, b, a);
}
static onxi_dim step_less(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    onxi_dim not = step_at_least(dims, a, b);
    return onxi_dim_is_known(not ) ? 1 - not : not ;
}
static onxi_dim step_greater(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return step_less(dims, b, a);
}

static onx_status compare(onxi_call *call, step_fn *step)
{
    return pair(call, step);
}

/* Booleans are propagated as 0 and 1. */
onx_status onxi_rule_and(onxi_call *call)
{
    return pair(call, onxi_dim_min);
}
onx_status onxi_rule_or(onxi_call *call)
{
    return pair(call, onxi_dim_max);
}
static onxi_dim step_xor(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    onxi_dim same = step_equal(dims, a, b);
    return onxi_dim_is_known(same) ? 1 - same : same;
}
onx_status onxi_rule_xor(onxi_call *call)
{
    return pair(call, step_xor);
}

/* Small powers of sizes: H**2. */
static onxi_dim step_pow(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    onxi_dim out = 1;
    if (!onxi_dim_is_const(b) || b < 0 || b > 62)
        return ONXI_DIM_UNKNOWN;
    for (int64_t i = 0; i < b; i++)
        out = onxi_dim_mul(dims, out, a);
    return out;
}
/* In floating point a kernel need not be exact, but for these. */
static onxi_dim step_square(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return onxi_dim_is_const(b) && b <= 2 ? step_pow(dims, a, b) : ONXI_DIM_UNKNOWN;
}
onx_status onxi_rule_pow(onxi_call *call)
{
    const bool floating = onx_dtype_class_of(onxi_call_dtype(call, 0)) == ONX_CLASS_FLOATING ||
                          onx_dtype_class_of(onxi_call_dtype(call, 1)) == ONX_CLASS_FLOATING;
    return pair(call, floating ? step_square : step_pow);
}

onx_status onxi_rule_equal(onxi_call *call)
{
    return compare(call, step_equal);
}
onx_status onxi_rule_greater(onxi_call *call)
{
    return compare(call, step_greater);
}
onx_status onxi_rule_greater_or_equal(onxi_call *call)
{
    return compare(call, step_at_least);
}
onx_status onxi_rule_less(onxi_call *call)
{
    return compare(call, step_less);
}
onx_status onxi_rule_less_or_equal(onxi_call *call)
{
    return compare(call, step_at_most);
}

/* Max, Min, Sum, Mean: any number of inputs. */
static onx_status variadic(onxi_call *call, step_fn *step)
{
    if (call->schema->since < 8)
        return onxi_rule_unary(call);
    ONX_TRY(broadcast_shape(call, 0, call->input_count, 0));
    if (call->input_count == 1)
        carry(call, step_same);
    return step && call->input_count == 2 ? carry_pair(call, step) : ONX_OK;
}

onx_status onxi_rule_max(onxi_call *call)
{
    return variadic(call, onxi_dim_max);
}
onx_status onxi_rule_min(onxi_call *call)
{
    return variadic(call, onxi_dim_min);
}
onx_status onxi_rule_sum(onxi_call *call)
{
    return variadic(call, onxi_dim_add);
}
onx_status onxi_rule_mean(onxi_call *call)
{
    return variadic(call, NULL);
}

onx_status onxi_rule_where(onxi_call *call)
{
    const onxi_known_ints *c = onxi_call_value(call, 0), *a = onxi_call_value(call, 1), *b = onxi_call_value(call, 2);
    ONX_TRY(broadcast_shape(call, 0, call->input_count, 0));
    if (!c || !a || !b) {
        onxi_carry_chosen(call);
    } else {
        uint32_t count = c->count, rank = c->rank;
        const onxi_known_ints *all[3] = { c, a, b };
        for (int i = 0; i < 3; i++) {
            count = all[i]->count != 1 ? all[i]->count : count;
            rank = all[i]->rank > rank ? all[i]->rank : rank;
        }
        bool fits = true;
        for (int i = 0; i < 3; i++)
            fits = fits && (all[i]->count == count || all[i]->count == 1);
        onxi_dim *out = fits ? onxi_call_set_value(call, 0, rank, count) : NULL;
        for (uint32_t k = 0; out && k < count; k++) {
            onxi_dim test = element(c, k), yes = element(a, k), no = element(b, k);
            if (onxi_dim_is_const(test))
                out[k] = test ? yes : no;
            else if (yes == no)
                out[k] = yes;
        }
    }
    return ONX_OK;
}
