/* simplify_shape.c - replaces known shapes by constants: integer values that inference knows become constants, and
 * shapes with a single symbolic size become constants in which 0 or -1 stands for that size. */
#include "simplify/simplify.h"

enum { LITTLE = 128 }; /* maximum number of elements of a shape value that is always replaced */

/* All elements as numbers of the element type. */
static bool numbers_of(const onxi_known_ints *known, int dtype, int64_t *out)
{
    for (uint32_t i = 0; i < known->count; i++) {
        const onxi_dim d = known->elements[i];
        if (!onxi_dim_is_const(d) || d == ONXI_DIM_BAND) /* the end of the band also stands for all values below it */
            return false;
        if (dtype == ONX_INT32 && (d > INT32_MAX || d < INT32_MIN))
            return false;
        if (dtype == ONX_BOOL && d != 0 && d != 1)
            return false;
        out[i] = d;
    }
    return true;
}

static onx_tensor *tensor_of(onxi_simplify *s, const onxi_type *type, const int64_t *numbers, uint32_t count)
{
    int32_t narrow[LITTLE];
    uint8_t bytes[LITTLE];
    for (uint32_t i = 0; i < count; i++) {
        narrow[i] = (int32_t)numbers[i];
        bytes[i] = numbers[i] != 0;
    }
    const void *data = type->dtype == ONX_INT64   ? (const void *)numbers
                       : type->dtype == ONX_INT32 ? (const void *)narrow
                                                  : (const void *)bytes;
    return onx_tensor_new(s->arena, (onx_dtype)type->dtype, type->dims, type->rank, data, NULL);
}

/* Replaces an output by these known elements, whatever the inputs are. */
static onx_status settle(onxi_simplify *s, uint32_t op, uint32_t value)
{
    const onxi_known_ints *known = onxi_simplify_known(s, value);
    int64_t numbers[LITTLE];
    uint64_t count = 1;
    onxi_type type;
    if (!known || known->count > LITTLE || s->values[value].pinned || !onxi_simplify_type(s, value, &type) ||
        (type.dtype != ONX_INT64 && type.dtype != ONX_INT32 && type.dtype != ONX_BOOL))
        return ONX_OK;
    for (uint32_t i = 0; i < type.rank; i++) {
        if (!onxi_dim_is_const(type.dims[i]) || type.dims[i] < 0 || type.dims[i] > LITTLE)
            return ONX_OK;
        count *= (uint64_t)type.dims[i];
    }
    if (count != known->count || !numbers_of(known, type.dtype, numbers))
        return ONX_OK;
    onx_tensor *tensor = tensor_of(s, &type, numbers, known->count);
    if (!tensor)
        return ONX_E_MEMORY;
    onxi_simplify_note(s, ONXI_SIMPLIFY_SHAPE, s->ops[op].bound->schema->name, op,
                       "known without running the model: %u elements", known->count);
    return onxi_simplify_settle(s, op, value, tensor);
}

/* The shape of a Reshape as numbers: either 0 for sizes copied from the input, or a single -1 for an unknown size. With
 * -1, all other sizes are numbers above 0, so that it follows from the number of elements. A shape with both 0 and -1
 * would be refused for an empty input, but the computed shape is not. */
static bool shape_of_reshape(onxi_simplify *s, const onxi_sop *op, const onxi_known_ints *known, int64_t *out)
{
    onxi_type from, to;
    const bool ranked = onxi_simplify_type(s, onxi_simplify_input(s, op, 0), &from);
    const bool inferred = onxi_simplify_type(s, op->outputs[0], &to) && to.rank == known->count;
    const bool zero = onxi_attrs_int(&op->attrs, "allowzero") != 0;
    uint32_t copies = 0, open = 0;
    for (uint32_t i = 0; i < known->count; i++) {
        onxi_dim d = known->elements[i];
        const bool copied = d == 0 && !zero;
        if (onxi_dim_is_const(d) && d <= 0 && inferred)
            d = to.dims[i];
        if (!copied && onxi_dim_is_const(d) && d > 0) {
            out[i] = d;
        } else if (copied || (ranked && !zero && i < from.rank && onxi_dim_is_known(d) && d == from.dims[i])) {
            out[i] = 0;
            copies++;
        } else if (onxi_dim_is_const(known->elements[i]) && known->elements[i] != -1) {
            return false;
        } else {
            out[i] = -1;
            open++;
        }
    }
    return open <= 1 && !(open && copies);
}

static onx_status reshape(onxi_simplify *s, uint32_t index)
{
    const onxi_sop *op = &s->ops[index];
    const uint32_t shape = onxi_simplify_input(s, op, 1);
    const onxi_known_ints *known =
        shape == ONXI_S_NONE || s->values[shape].tensor ? NULL : onxi_simplify_known(s, shape);
    int64_t numbers[ONX_RANK_MAX];
    if (!known || known->rank != 1 || known->count > ONX_RANK_MAX || !shape_of_reshape(s, op, known, numbers))
        return ONX_OK;
    const uint32_t made =
        onxi_simplify_ints(s, op->scope, onx_view(s->values[op->outputs[0]].name), "shape", numbers, 1, known->count);
    if (made == ONXI_S_NONE)
        return ONX_E_MEMORY;
    onxi_simplify_note(s, ONXI_SIMPLIFY_SHAPE, "Reshape", index, "the shape is a constant");
    return onxi_simplify_set_input(s, index, 1, made);
}

/* A shape of which every size is a number or a size of the input; for the latter, 1 has the same effect. */
static onx_status expand(onxi_simplify *s, uint32_t index)
{
    const onxi_sop *op = &s->ops[index];
    const uint32_t shape = onxi_simplify_input(s, op, 1);
    const onxi_known_ints *known =
        shape == ONXI_S_NONE || s->values[shape].tensor ? NULL : onxi_simplify_known(s, shape);
    int64_t numbers[ONX_RANK_MAX];
    onxi_type from;
    if (!known || known->rank != 1 || known->count > ONX_RANK_MAX ||
        !onxi_simplify_type(s, onxi_simplify_input(s, op, 0), &from))
        return ONX_OK;
    for (uint32_t i = 0; i < known->count; i++) {
        const onxi_dim d = known->elements[i];
        const uint32_t back = known->count - i; /* counted from the last axis */
        numbers[i] = d;
        if (onxi_dim_is_const(d))
            continue;
        if (!onxi_dim_is_known(d) || back > from.rank || from.dims[from.rank - back] != d)
            return ONX_OK;
        numbers[i] = 1;
    }
    const uint32_t made =
        onxi_simplify_ints(s, op->scope, onx_view(s->values[op->outputs[0]].name), "shape", numbers, 1, known->count);
    if (made == ONXI_S_NONE)
        return ONX_E_MEMORY;
    onxi_simplify_note(s, ONXI_SIMPLIFY_SHAPE, "Expand", index, "the shape is a constant");
    return onxi_simplify_set_input(s, index, 1, made);
}

onx_status onxi_simplify_shape(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    if (op->opaque || op->dead || op->first_scope != ONXI_S_NONE || op->bound->op == ONXI_ID_Constant ||
        !onxi_bound_repeats(op->bound))
        return ONX_OK;
    for (uint32_t i = 0; i < op->output_count && !op->dead; i++)
        if (op->outputs[i] != ONXI_S_NONE && s->values[op->outputs[i]].uses)
            ONX_TRY(settle(s, index, op->outputs[i]));
    op = &s->ops[index];
    if (onxi_simplify_is(s, op, ONXI_ID_Reshape) && op->outputs[0] != ONXI_S_NONE)
        return reshape(s, index);
    if (onxi_simplify_is(s, op, ONXI_ID_Expand) && op->outputs[0] != ONXI_S_NONE)
        return expand(s, index);
    return ONX_OK;
}
