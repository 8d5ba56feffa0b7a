/* math.c - rules of matrix products, losses and other mathematical operators that are not elementwise. */
#include "op/op_rules.h"

/* The shape of a matrix product as in NumPy; vectors count as a row or column, which is removed from the result. */
static onx_status matmul(onxi_call *call, uint32_t left, uint32_t right)
{
    const onxi_type *a = onxi_call_ranked(call, left), *b = onxi_call_ranked(call, right);
    onxi_dim *dims, inner;
    if (!a || !b)
        return ONX_OK;
    if (a->rank == 0 || b->rank == 0)
        return onxi_call_fail(call, "a factor is a scalar");
    uint32_t batch_a = a->rank < 2 ? 0 : a->rank - 2, batch_b = b->rank < 2 ? 0 : b->rank - 2;
    uint32_t batch = batch_a > batch_b ? batch_a : batch_b;
    ONX_TRY(onxi_call_unify(call, a->dims[a->rank - 1], b->dims[b->rank == 1 ? 0 : b->rank - 2], "the inner dimension",
                            &inner));
    ONX_TRY(onxi_call_shape(call, 0, batch + (a->rank > 1) + (b->rank > 1), &dims));
    onx_status status = ONX_OK;
    for (uint32_t k = 0; k < batch && status == ONX_OK; k++) {
        onxi_dim x = k + batch_a < batch ? 1 : a->dims[k + batch_a - batch];
        onxi_dim y = k + batch_b < batch ? 1 : b->dims[k + batch_b - batch];
        status = onxi_call_broadcast(call, x, y, &dims[k]);
    }
    if (a->rank > 1)
        dims[batch] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[batch + (a->rank > 1)] = b->dims[b->rank - 1];
    return status;
}

onx_status onxi_rule_matmul(onxi_call *call)
{
    return matmul(call, 0, 1);
}

onx_status onxi_rule_qlinear_matmul(onxi_call *call)
{
    if (onxi_call_dtype(call, 7))
        onxi_call_output_unranked(call, 0, onxi_call_dtype(call, 7));
    return matmul(call, 0, 3);
}

onx_status onxi_rule_gemm(onxi_call *call)
{
    const onxi_type *a = onxi_call_ranked(call, 0), *b = onxi_call_ranked(call, 1);
    bool trans_a = onxi_call_int(call, "transA") != 0, trans_b = onxi_call_int(call, "transB") != 0;
    onxi_dim *dims, inner;
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 1, 2));
    ONX_TRY(onxi_call_shape(call, 0, 2, &dims));
    if (a)
        dims[0] = a->dims[trans_a];
    if (b)
        dims[1] = b->dims[!trans_b];
    if (!a || !b)
        return ONX_OK;
    ONX_TRY(onxi_call_unify(call, a->dims[!trans_a], b->dims[trans_b], "the inner dimension", &inner));
    return call->schema->since >= 7 ? onxi_call_want_one_way(call, 2, 2, dims) : ONX_OK;
}

/* The running sum or product along an axis. */
/* Propagates it for a list: offsets are running sums of sizes. */
static void carry_cumulated(onxi_call *call, onxi_dim (*step)(onxi_dims *dims, onxi_dim a, onxi_dim b))
{
    const onxi_known_ints *in = onxi_call_value(call, 0);
    bool exclusive = onxi_call_int(call, "exclusive") != 0, reverse = onxi_call_int(call, "reverse") != 0;
    onxi_dim *out = in && in->rank == 1 ? onxi_call_set_value(call, 0, 1, in->count) : NULL;
    onxi_dim so_far = step == onxi_dim_add ? 0 : 1;
    for (uint32_t i = 0; out && i < in->count; i++) {
        uint32_t k = reverse ? in->count - 1 - i : i;
        onxi_dim after =
            onxi_call_held(call, onxi_call_dtype(call, 0), onxi_call_step(call, step, so_far, in->elements[k]));
        out[k] = exclusive ? so_far : after;
        so_far = after;
    }
}

onx_status onxi_rule_cumulate(onxi_call *call)
{
    int64_t axis;
    uint32_t at;
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    if (x && onxi_call_const_int(call, 1, &axis))
        ONX_TRY(onxi_call_axis(call, axis, x->rank, &at));
    carry_cumulated(call, call->op == ONXI_ID_CumSum ? onxi_dim_add : onxi_dim_mul);
    return ONX_OK;
}

onx_status onxi_rule_det(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    onxi_dim *dims, size;
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    ONX_TRY(onxi_call_unify(call, x->dims[x->rank - 2], x->dims[x->rank - 1], "the size of the square matrix", &size));
    ONX_TRY(onxi_call_shape(call, 0, x->rank - 2, &dims));
    memcpy(dims, x->dims, (x->rank - 2) * sizeof *dims);
    return ONX_OK;
}

/* Both inputs have the same shape; there is no broadcasting. */
onx_status onxi_rule_swiglu(onxi_call *call)
{
    const onxi_type *a = onxi_call_ranked(call, 0), *b = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    if (!a || !b)
        return onxi_rule_unary(call);
    if (a->rank != b->rank)
        return onxi_call_fail(call, "the inputs have ranks %u and %u", a->rank, b->rank);
    ONX_TRY(onxi_call_shape(call, 0, a->rank, &dims));
    for (uint32_t i = 0; i < a->rank; i++)
        ONX_TRY(onxi_call_unify(call, a->dims[i], b->dims[i], "a dimension", &dims[i]));
    return ONX_OK;
}

/* ---- Einsum ---- */

enum { EINSUM_LETTERS = 52, EINSUM_RANK = 64 };

typedef struct einsum {
    onxi_call *call;
    const char *at, *end;
    onxi_dim letters[EINSUM_LETTERS];
    uint32_t seen[EINSUM_LETTERS];
    onxi_dim dots[EINSUM_RANK];
    uint32_t dot_count;
    bool has_dots;
} einsum;

static int letter_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

static bool is_dots(const char *at, const char *end)
{
    return end - at >= 3 && memcmp(at, "...", 3) == 0;
}

/* One operand: letters and at most one "...", which stands for the dimensions that have no letter. */
static onx_status einsum_operand(einsum *s, uint32_t input)
{
    const onxi_type *x = s->call->inputs[input];
    const char *end = s->at;
    uint32_t letters = 0, axis = 0;
    bool dots = false;
    while (end < s->end && *end != ',' && *end != '-')
        end++;
    for (const char *c = s->at; c < end; c++)
        letters += letter_of(*c) >= 0;
    for (const char *c = s->at; c < end; c++)
        dots |= is_dots(c, end);
    if (dots ? x->rank < letters : x->rank != letters)
        return onxi_call_fail(s->call, "input %u has rank %u and %u letters in the equation", input, x->rank, letters);
    uint32_t hidden = x->rank - letters;
    for (; s->at < end; s->at++) {
        int letter = letter_of(*s->at);
        if (letter >= 0) {
            onxi_dim *dim = &s->letters[letter];
            if (s->seen[letter]++ == 0)
                *dim = x->dims[axis];
            else
                ONX_TRY(onxi_call_broadcast(s->call, *dim, x->dims[axis], dim));
            axis++;
        } else if (is_dots(s->at, end)) {
            if (hidden > EINSUM_RANK || (s->has_dots && hidden != s->dot_count))
                return onxi_call_fail(s->call, "\"...\" stands for %u dimensions of input %u, for %u before", hidden,
                                      input, s->dot_count);
            for (uint32_t i = 0; i < hidden; i++, axis++) {
                if (!s->has_dots)
                    s->dots[i] = x->dims[axis];
                else
                    ONX_TRY(onxi_call_broadcast(s->call, s->dots[i], x->dims[axis], &s->dots[i]));
            }
            s->has_dots = true;
            s->dot_count = hidden;
            s->at += 2;
        } else if (*s->at != ' ') {
            return onxi_call_fail(s->call, "the equation has the character '%c'", *s->at);
        }
    }
    return ONX_OK;
}

static onx_status einsum_output(einsum *s)
{
    bool given = s->end - s->at >= 2 && s->at[0] == '-' && s->at[1] == '>';
    onxi_dim out[EINSUM_LETTERS + EINSUM_RANK], *dims;
    uint32_t rank = 0;
    bool dots = !given;
    if (!given) { /* "...", then the letters that occur once, in order */
        for (uint32_t i = 0; i < s->dot_count; i++)
            out[rank++] = s->dots[i];
        for (int k = 0; k < EINSUM_LETTERS; k++)
            if (s->seen[k] == 1)
                out[rank++] = s->letters[k];
    } else {
        for (s->at += 2; s->at < s->end; s->at++) {
            int letter = letter_of(*s->at);
            if (letter >= 0 && !s->seen[letter])
                return onxi_call_fail(s->call, "the output has the letter '%c', which no input has", *s->at);
            if (rank == EINSUM_LETTERS || (dots && is_dots(s->at, s->end)))
                return onxi_call_fail(s->call, "the output of the equation repeats letters");
            if (letter >= 0) {
                out[rank++] = s->letters[letter];
            } else if (is_dots(s->at, s->end)) {
                for (uint32_t i = 0; i < s->dot_count; i++)
                    out[rank++] = s->dots[i];
                s->at += 2;
                dots = true;
            }
            if (rank > EINSUM_LETTERS)
                return onxi_call_fail(s->call, "the output of the equation has more than %d dimensions",
                                      (int)EINSUM_LETTERS);
        }
    }
    ONX_TRY(onxi_call_shape(s->call, 0, rank, &dims));
    memcpy(dims, out, rank * sizeof *dims);
    return ONX_OK;
}

onx_status onxi_rule_einsum(onxi_call *call)
{
    onx_str equation = onxi_call_text(call, "equation");
    if (!equation.len)
        return onxi_call_fail(call, "attribute equation is missing");
    for (uint32_t i = 0; i < call->input_count; i++)
        if (!onxi_call_ranked(call, i))
            return ONX_OK;
    einsum s = { .call = call, .at = equation.ptr, .end = onxi_str_end(equation) };
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (i > 0) {
            if (s.at == s.end || *s.at != ',')
                return onxi_call_fail(call, "the equation has %u operands, the node %u inputs", i, call->input_count);
            s.at++;
        }
        ONX_TRY(einsum_operand(&s, i));
    }
    if (s.at < s.end && *s.at == ',')
        return onxi_call_fail(call, "the equation has more operands than the %u inputs of the node", call->input_count);
    return einsum_output(&s);
}

/* ---- losses ---- */

onx_status onxi_rule_nll_loss(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *target = onxi_call_ranked(call, 1),
                    *weight = onxi_call_ranked(call, 2);
    bool none = onx_str_is(onxi_call_text(call, "reduction"), "none");
    onxi_dim *dims, dim;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    if (x && target && target->rank != x->rank - 1)
        return onxi_call_fail(call, "the input has rank %u and the target %u", x->rank, target->rank);
    if (x && weight)
        ONX_TRY(onxi_call_unify(call, x->dims[1], weight->dims[0], "the number of classes", &dim));
    if (!none)
        ONX_TRY(onxi_call_shape(call, 0, 0, &dims));
    if (!x || !target)
        return ONX_OK;
    onxi_dim *scratch = onxi_arena_get(call->arena, (target->rank + 1) * sizeof *scratch);
    if (!scratch)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < target->rank; i++)
        ONX_TRY(onxi_call_unify(call, target->dims[i], x->dims[i ? i + 1 : 0], "a dimension of input and target",
                                &scratch[i]));
    if (none) {
        ONX_TRY(onxi_call_shape(call, 0, target->rank, &dims));
        memcpy(dims, scratch, target->rank * sizeof *dims);
    }
    return ONX_OK;
}

onx_status onxi_rule_softmax_cross_entropy(onxi_call *call)
{
    onxi_dim *dims;
    onxi_call_shape_of(call, 1, onxi_call_tensor(call, 0));
    if (onx_str_is(onxi_call_text(call, "reduction"), "none")) {
        onxi_call_shape_of(call, 0, onxi_call_tensor(call, 1));
        return ONX_OK;
    }
    return onxi_call_shape(call, 0, 0, &dims);
}

/* ---- signals ---- */

static onx_status want_scalar(onxi_call *call, uint32_t input, const char *name)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    return type && type->rank != 0 ? onxi_call_fail(call, "%s has rank %u, expected a scalar", name, type->rank)
                                   : ONX_OK;
}

static onxi_dim scalar(onxi_call *call, uint32_t input)
{
    const onxi_known_ints *value = onxi_call_value(call, input);
    return value && value->count == 1 ? value->elements[0] : ONXI_DIM_UNKNOWN;
}

/* BlackmanWindow, HammingWindow, HannWindow */
onx_status onxi_rule_window(onxi_call *call)
{
    onxi_dim *dims, size = scalar(call, 0);
    int64_t dtype = onxi_call_int(call, "output_datatype");
    if (!onx_dtype_name(dtype))
        return onxi_call_fail(call, "attribute output_datatype is %lld, which is no element type", (long long)dtype);
    onxi_call_output_unranked(call, 0, (int)dtype);
    ONX_TRY(want_scalar(call, 0, "size"));
    if (onxi_dim_is_const(size) && size <= 0)
        return onxi_call_fail(call, "size is %lld", (long long)size);
    ONX_TRY(onxi_call_output(call, 0, (int)dtype, 1, &dims));
    dims[0] = size;
    return ONX_OK;
}

onx_status onxi_rule_mel_weight_matrix(onxi_call *call)
{
    int64_t dtype = onxi_call_int(call, "output_datatype");
    onxi_dim *dims;
    if (!onx_dtype_name(dtype))
        return onxi_call_fail(call, "attribute output_datatype is %lld, which is no element type", (long long)dtype);
    ONX_TRY(want_scalar(call, 0, "num_mel_bins"));
    ONX_TRY(want_scalar(call, 1, "dft_length"));
    ONX_TRY(onxi_call_output(call, 0, (int)dtype, 2, &dims));
    dims[0] = onxi_dim_add(call->dims, onxi_dim_div(call->dims, scalar(call, 1), 2), 1);
    dims[1] = scalar(call, 0);
    return ONX_OK;
}

onx_status onxi_rule_dft(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    bool one_sided = onxi_call_int(call, "onesided") != 0, inverse = onxi_call_int(call, "inverse") != 0;
    onxi_dims *d = call->dims;
    onxi_dim *dims;
    int64_t axis = call->schema->since < 20 ? onxi_call_int(call, "axis") : -2;
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    ONX_TRY(want_scalar(call, 1, "dft_length"));
    onxi_dim parts = x->dims[x->rank - 1];
    if (one_sided && onxi_dim_is_const(parts) && parts != (inverse ? 2 : 1))
        return onxi_call_fail(call, "the last dimension is %lld, a one-sided %s takes %d", (long long)parts,
                              inverse ? "inverse transform" : "transform", inverse ? 2 : 1);
    ONX_TRY(onxi_call_shape(call, 0, x->rank, &dims));
    bool by_input = call->schema->since >= 20 && onxi_call_has_input(call, 2);
    bool has_length = onxi_call_has_input(call, 1);
    if (by_input)
        ONX_TRY(want_scalar(call, 2, "axis"));
    dims[x->rank - 1] = one_sided && inverse ? 1 : 2;
    if (by_input && !onxi_call_const_int(call, 2, &axis)) {
        if (!one_sided && !has_length)
            memcpy(dims, x->dims, (x->rank - 1) * sizeof *dims);
        return ONX_OK;
    }
    if (axis < -(int64_t)x->rank || axis == -1 || axis >= (int64_t)x->rank - 1)
        return onxi_call_fail(call, "axis %lld is out of range for rank %u, the last one holding the parts of numbers",
                              (long long)axis, x->rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int64_t)x->rank : axis);
    memcpy(dims, x->dims, (x->rank - 1) * sizeof *dims);
    onxi_dim length = has_length ? scalar(call, 1) : x->dims[at];
    if (one_sided && !inverse)
        dims[at] = onxi_dim_add(d, onxi_dim_div(d, length, 2), 1);
    else if (one_sided && !has_length) /* the full length is assumed to be even */
        dims[at] = onxi_dim_mul(d, onxi_dim_sub(d, length, 1), 2);
    else
        dims[at] = length;
    return ONX_OK;
}

onx_status onxi_rule_stft(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *window = onxi_call_ranked(call, 2);
    onxi_dims *d = call->dims;
    onxi_dim *dims, size = scalar(call, 3), step = scalar(call, 1);
    ONX_TRY(onxi_call_want_least_rank(call, 0, 2));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    ONX_TRY(want_scalar(call, 3, "frame_length"));
    if (window)
        ONX_TRY(onxi_call_unify(call, size, window->dims[0], "the length of window and frame", &size));
    if (onxi_dim_is_const(step) && step < 1)
        return onxi_call_fail(call, "frame_step is %lld", (long long)step);
    ONX_TRY(onxi_call_shape(call, 0, 4, &dims));
    if (x) {
        dims[0] = x->dims[0];
        dims[1] = onxi_dim_add(d, onxi_dim_div(d, onxi_dim_sub(d, x->dims[1], size), step), 1);
    }
    dims[2] = onxi_call_int(call, "onesided") ? onxi_dim_add(d, onxi_dim_div(d, size, 2), 1) : size;
    dims[3] = 2;
    return ONX_OK;
}
