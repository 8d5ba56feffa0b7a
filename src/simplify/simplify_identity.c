/* simplify_identity.c - removes nodes that return their input unchanged: one row per operator, with its condition. */
#include "simplify/simplify.h"

enum { UNIFORM_MAX = 4096 }; /* maximum size of a constant that is tested for being all 0 or all 1 */

typedef bool (*condition)(onxi_simplify *s, onxi_sop *op);

static bool always(onxi_simplify *s, onxi_sop *op)
{
    (void)s;
    return op->input_count == 1;
}

/* Reinterprets the shape without changing the type. */
static bool same_type(onxi_simplify *s, onxi_sop *op)
{
    return onxi_simplify_same_type(s, onxi_simplify_input(s, op, 0), op->outputs[0]);
}

static bool is_cast_to_same(onxi_simplify *s, onxi_sop *op)
{
    const int from = onxi_simplify_dtype(s, onxi_simplify_input(s, op, 0));
    return from != ONX_UNDEFINED && from == onxi_attrs_int(&op->attrs, "to");
}

static bool is_cast_like_same(onxi_simplify *s, onxi_sop *op)
{
    const int from = onxi_simplify_dtype(s, onxi_simplify_input(s, op, 0));
    return from != ONX_UNDEFINED && from == onxi_simplify_dtype(s, onxi_simplify_input(s, op, 1));
}

/* Inference mode, or nothing is dropped; a mask that has readers must be kept. */
static bool is_dropout_off(onxi_simplify *s, onxi_sop *op)
{
    double number;
    uint64_t count;
    for (uint32_t i = 1; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_S_NONE && (s->values[op->outputs[i]].uses || s->values[op->outputs[i]].is_output))
            return false;
    if (op->bound->schema->since < 7)
        return onxi_attrs_int(&op->attrs, "is_test") != 0;
    for (uint32_t i = 1; i <= 2; i++) { /* ratio 0, or inference mode */
        const uint32_t x = onxi_simplify_input(s, op, i);
        if (x != ONXI_S_NONE && onxi_simplify_get_numbers(s, x, &number, 1, &count) && count == 1 && number == 0)
            return true;
    }
    return op->bound->schema->since < 12 || onxi_simplify_input(s, op, 2) == ONXI_S_NONE;
}

static bool is_in_order(onxi_simplify *s, onxi_sop *op)
{
    onxi_type type;
    const onxi_attr_value *perm = onxi_attrs_get(&op->attrs, "perm", ONX_ATTR_INTS);
    if (!perm || !perm->count) /* absent: the axes are reversed */
        return onxi_simplify_type(s, onxi_simplify_input(s, op, 0), &type) && type.rank < 2;
    for (uint32_t i = 0; i < perm->count; i++)
        if (((const int64_t *)perm->list)[i] != i)
            return false;
    return true;
}

/* Does it take every element, in forward order? */
static bool is_whole_slice(onxi_simplify *s, onxi_sop *op)
{
    int64_t steps[ONX_RANK_MAX];
    uint32_t count;
    if (!same_type(s, op) || !onxi_simplify_list(s, op, "steps", 4, steps, ONX_RANK_MAX, &count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (steps[i] < 0)
            return false;
    return true;
}

static bool is_zero_pad(onxi_simplify *s, onxi_sop *op)
{
    int64_t pads[2 * ONX_RANK_MAX];
    uint32_t count;
    const char *name = onxi_attrs_find(&op->attrs, "paddings") ? "paddings" : "pads";
    if (!onxi_simplify_list(s, op, name, 1, pads, 2 * ONX_RANK_MAX, &count) || !count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (pads[i])
            return false;
    return true;
}

static bool is_unbounded(onxi_simplify *s, onxi_sop *op)
{
    return op->bound->schema->since >= 11 && onxi_simplify_input(s, op, 1) == ONXI_S_NONE &&
           onxi_simplify_input(s, op, 2) == ONXI_S_NONE;
}

/* Are all elements of the constant equal to `wanted`, bit by bit? The sign of zero is irrelevant for integers. */
static bool is_all(onxi_simplify *s, uint32_t value, double wanted, bool negative)
{
    double numbers[64];
    uint64_t count;
    const onx_tensor *t = value == ONXI_S_NONE ? NULL : s->values[value].tensor;
    if (!t || !onx_tensor_count(t, &count) || !count || count > UNIFORM_MAX || t->data_type == ONX_STRING ||
        onx_dtype_class_of((onx_dtype)t->data_type) == ONX_CLASS_COMPLEX)
        return false;
    const onxi_diag_mark mark = onxi_diag_here(s->cx);
    bool all = true;
    for (uint64_t at = 0; at < count && all; at += 64) {
        const uint64_t n = count - at < 64 ? count - at : 64;
        all = onx_tensor_get_f64(s->doc, t, at, n, numbers) == ONX_OK;
        for (uint64_t i = 0; i < n && all; i++)
            all = numbers[i] == wanted && (wanted != 0 || !negative || __builtin_signbit(numbers[i]));
    }
    onxi_diag_rewind(s->cx, mark);
    return all;
}

static bool is_floating(onxi_simplify *s, uint32_t value)
{
    return onx_dtype_class_of((onx_dtype)onxi_simplify_dtype(s, value)) == ONX_CLASS_FLOATING;
}

/* x * 1; for 1 * x see hand_on_second. */
static bool is_times_one(onxi_simplify *s, onxi_sop *op)
{
    return is_all(s, onxi_simplify_input(s, op, 1), 1, false) && same_type(s, op);
}

/* x + -0.0 is x, but x + 0.0 is not if x is -0.0. For integers both are. */
static bool is_plus_zero(onxi_simplify *s, onxi_sop *op)
{
    const uint32_t zero = onxi_simplify_input(s, op, 1);
    return is_all(s, zero, 0, is_floating(s, zero)) && same_type(s, op);
}

static bool is_minus_zero(onxi_simplify *s, onxi_sop *op)
{
    const uint32_t zero = onxi_simplify_input(s, op, 1);
    return is_all(s, zero, 0, false) && !(is_floating(s, zero) && is_all(s, zero, 0, true)) && same_type(s, op);
}

static bool is_after_itself(onxi_simplify *s, onxi_sop *op)
{
    return onxi_simplify_maker(s, op, onxi_simplify_input(s, op, 0), op->bound->op) != NULL;
}

static bool is_no_reduction(onxi_simplify *s, onxi_sop *op)
{
    int64_t axes[ONX_RANK_MAX];
    uint32_t count;
    return onxi_attrs_int(&op->attrs, "noop_with_empty_axes") != 0 &&
           onxi_simplify_list(s, op, "axes", 1, axes, ONX_RANK_MAX, &count) && !count;
}

static const struct {
    onxi_op_id id;
    condition holds;
    const char *what;
} rows[] = {
    { ONXI_ID_Identity, always, "returns its input" },
    { ONXI_ID_Dropout, is_dropout_off, "drops nothing in inference" },
    { ONXI_ID_Cast, is_cast_to_same, "its input has this type already" },
    { ONXI_ID_CastLike, is_cast_like_same, "its input has this type already" },
    { ONXI_ID_Transpose, is_in_order, "keeps the order of axes" },
    { ONXI_ID_Reshape, same_type, "its input has this shape already" },
    { ONXI_ID_Flatten, same_type, "its input is flat already" },
    { ONXI_ID_Squeeze, same_type, "it removes no axis" },
    { ONXI_ID_Unsqueeze, same_type, "it adds no axis" },
    { ONXI_ID_Expand, same_type, "its input has this shape already" },
    { ONXI_ID_Tile, same_type, "repeats its input once" },
    { ONXI_ID_Slice, is_whole_slice, "takes all elements" },
    { ONXI_ID_Pad, is_zero_pad, "adds no elements" },
    { ONXI_ID_Concat, always, "it has one input" },
    { ONXI_ID_Sum, always, "it has one input" },
    { ONXI_ID_Mean, always, "it has one input" },
    { ONXI_ID_Max, always, "it has one input" },
    { ONXI_ID_Min, always, "it has one input" },
    { ONXI_ID_Clip, is_unbounded, "has no bounds" },
    { ONXI_ID_Mul, is_times_one, "multiplies by 1" },
    { ONXI_ID_Div, is_times_one, "divides by 1" },
    { ONXI_ID_Add, is_plus_zero, "adds 0" },
    { ONXI_ID_Sub, is_minus_zero, "subtracts 0" },
    { ONXI_ID_Relu, is_after_itself, "its input has the same operator" },
    { ONXI_ID_Abs, is_after_itself, "its input has the same operator" },
    { ONXI_ID_Floor, is_after_itself, "its input has the same operator" },
    { ONXI_ID_Ceil, is_after_itself, "its input has the same operator" },
    { ONXI_ID_Round, is_after_itself, "its input has the same operator" },
    { ONXI_ID_ReduceSum, is_no_reduction, "reduces no axis" },
    { ONXI_ID_ReduceMean, is_no_reduction, "reduces no axis" },
    { ONXI_ID_ReduceMax, is_no_reduction, "reduces no axis" },
    { ONXI_ID_ReduceMin, is_no_reduction, "reduces no axis" },
    { ONXI_ID_ReduceProd, is_no_reduction, "reduces no axis" },
};

static onx_status remove_it(onxi_simplify *s, uint32_t op, uint32_t input, const char *what)
{
    const uint32_t x = onxi_simplify_input(s, &s->ops[op], input);
    if (x == ONXI_S_NONE || s->ops[op].outputs[0] == ONXI_S_NONE ||
        !onxi_simplify_can_hand_on(s, s->ops[op].outputs[0], x))
        return ONX_OK;
    onxi_simplify_note(s, ONXI_SIMPLIFY_IDENTITY, s->ops[op].bound->schema->name, op, "removed: %s", what);
    (void)onxi_simplify_hand_on(s, op, s->ops[op].outputs[0], x);
    return onxi_simplify_drop(s, op);
}

/* The constant may be the first operand of a sum or product. */
static bool is_neutral_first(onxi_simplify *s, onxi_sop *op)
{
    const uint32_t first = onxi_simplify_input(s, op, 0);
    const bool product = op->bound->op == ONXI_ID_Mul;
    if ((!product && op->bound->op != ONXI_ID_Add) || op->input_count != 2)
        return false;
    return is_all(s, first, product ? 1 : 0, !product && is_floating(s, first)) &&
           onxi_simplify_same_type(s, onxi_simplify_input(s, op, 1), op->outputs[0]);
}

/* Not of Not, or Neg of Neg. */
static bool is_undone(onxi_simplify *s, const onxi_sop *op, uint32_t *x)
{
    const onxi_op_id id = op->bound->op;
    const onxi_sop *before =
        id == ONXI_ID_Not || id == ONXI_ID_Neg ? onxi_simplify_maker(s, op, onxi_simplify_input(s, op, 0), id) : NULL;
    *x = before ? onxi_simplify_input(s, before, 0) : ONXI_S_NONE;
    return before != NULL;
}

onx_status onxi_simplify_identity(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    uint32_t x;
    if (!op->output_count || op->outputs[0] == ONXI_S_NONE || !op->input_count || !onxi_simplify_attrs(s, op))
        return ONX_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == op->bound->op && rows[i].holds(s, op))
            return remove_it(s, index, 0, rows[i].what);
    if (is_neutral_first(s, op))
        return remove_it(s, index, 1, "changes nothing");
    if (is_undone(s, op, &x) && x != ONXI_S_NONE && onxi_simplify_can_hand_on(s, op->outputs[0], x)) {
        onxi_simplify_note(s, ONXI_SIMPLIFY_IDENTITY, op->bound->schema->name, index,
                           "removed: cancels the node before it");
        (void)onxi_simplify_hand_on(s, index, op->outputs[0], x);
        return onxi_simplify_drop(s, index);
    }
    return ONX_OK;
}
