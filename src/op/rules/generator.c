/* generator.c - rules of constants and other operators that create tensors. */
#include "op/op_rules.h"

#include <math.h>

#include <onx/io.h>

/* ---- Constant ---- */

static onx_status constant_tensor(onxi_call *call, const onx_tensor *tensor)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, tensor->data_type, tensor->dims_count, &dims));
    for (uint32_t i = 0; i < tensor->dims_count; i++) {
        if (tensor->dims[i] < 0)
            return onxi_call_fail(call, "the value has size %lld at axis %u", (long long)tensor->dims[i], i);
        dims[i] = tensor->dims[i];
    }
    onxi_known_ints value;
    if (onx_dtype_class_of(tensor->data_type) != ONX_CLASS_TEXT &&
        onxi_known_ints_of_tensor(call->doc, call->arena, tensor, &value))
        onxi_call_carry(call, 0, value);
    return ONX_OK;
}

/* Integral elements are propagated whatever their type, because shapes are also computed in floating point. */
static onx_status constant_floats(onxi_call *call, const char *name, uint32_t rank)
{
    uint32_t count = 1;
    const float one = rank ? 0 : onxi_call_float(call, name);
    const float *elements = rank ? onxi_call_floats(call, name, &count) : &one;
    onxi_dim *out = elements ? onxi_call_set_value(call, 0, rank, count) : NULL;
    for (uint32_t i = 0; out && i < count; i++)
        if (elements[i] >= -1e15f && elements[i] <= 1e15f && (float)(int64_t)elements[i] == elements[i])
            out[i] = (int64_t)elements[i];
    return ONX_OK;
}

/* Since version 12, Constant also takes lists and single numbers. */
static onx_status constant_list(onxi_call *call, const char *name, int dtype, uint32_t rank)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, dtype, rank, &dims));
    if (rank)
        dims[0] = onxi_call_list_count(call, name);
    if (dtype == ONX_FLOAT)
        return constant_floats(call, name, rank);
    uint32_t count = 1;
    int64_t one = dtype == ONX_INT64 && !rank ? onxi_call_int(call, name) : 0;
    const int64_t *elements = rank ? onxi_call_ints(call, name, &count) : &one;
    if (dtype != ONX_INT64 || !elements)
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, rank, count);
    for (uint32_t i = 0; out && i < count; i++)
        out[i] = onxi_dim_of_int(elements[i]);
    return ONX_OK;
}

onx_status onxi_rule_constant(onxi_call *call)
{
    static const struct {
        const char *name;
        uint8_t dtype, rank;
    } lists[] = {
        { "value_int", ONX_INT64, 0 },    { "value_ints", ONX_INT64, 1 },    { "value_float", ONX_FLOAT, 0 },
        { "value_floats", ONX_FLOAT, 1 }, { "value_string", ONX_STRING, 0 }, { "value_strings", ONX_STRING, 1 },
    };
    uint32_t given = 0;
    for (uint32_t i = 0; i < call->attrs->count; i++)
        given += call->attrs->values[i].given;
    if (given != 1)
        return onxi_call_fail(call, "%u of the value attributes are given, expected one", given);
    const onx_tensor *value = onxi_call_attr_tensor(call, "value");
    if (value)
        return constant_tensor(call, value);
    const onxi_attr_value *sparse = onxi_call_attr(call, "sparse_value");
    if (sparse) {
        const onx_sparse_tensor *tensor = sparse->sparse;
        onxi_dim *dims;
        if (!tensor->values)
            return onxi_call_fail(call, "attribute sparse_value holds no sparse tensor");
        ONX_TRY(onxi_call_output(call, 0, tensor->values->data_type, tensor->dims_count, &dims));
        for (uint32_t i = 0; i < tensor->dims_count; i++)
            dims[i] = onxi_dim_is_const(tensor->dims[i]) ? tensor->dims[i] : ONXI_DIM_UNKNOWN;
        return ONX_OK; /* Constant always returns a dense tensor: only the attribute is sparse */
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (onxi_call_given(call, lists[i].name))
            return constant_list(call, lists[i].name, lists[i].dtype, lists[i].rank);
    return ONX_OK;
}

onx_status onxi_rule_constant_of_shape(onxi_call *call)
{
    const onxi_known_ints *shape = onxi_call_value(call, 0);
    onxi_dim *dims;
    onxi_known_ints fill = { .elements = NULL };
    int dtype = ONX_FLOAT;
    const onx_tensor *tensor = onxi_call_attr_tensor(call, "value");
    if (tensor) {
        dtype = tensor->data_type;
        if (!onxi_known_ints_of_tensor(call->doc, call->arena, tensor, &fill))
            fill.elements = NULL;
    }
    onxi_call_output_unranked(call, 0, dtype);
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
    const onx_tensor *given = onxi_call_has_input(call, 0) ? call->ops->constant(call, 0) : NULL;
    if (given && given->data_type != ONX_INT64)
        return onxi_call_fail(call, "the shape has element type %d, expected int64", (int)given->data_type);
    if (!shape)
        return onxi_rank_from_shape_input(call, 0, 0);
    ONX_TRY(onxi_call_output(call, 0, dtype, shape->count, &dims));
    for (uint32_t i = 0; i < shape->count; i++) {
        if (onxi_dim_is_const(shape->elements[i]) && shape->elements[i] < 0)
            return onxi_call_fail(call, "the shape has %lld at axis %u", (long long)shape->elements[i], i);
        dims[i] = shape->elements[i];
    }
    int64_t length = shape->count ? dims[0] : 1;
    if (shape->count > 1 || !fill.elements || fill.count != 1 || !onxi_dim_is_const(length) ||
        length > ONXI_KNOWN_INTS_LIMIT)
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, shape->count, (uint32_t)length);
    for (int64_t i = 0; out && i < length; i++)
        out[i] = fill.elements[0];
    return ONX_OK;
}

/* ---- tensors with the shape of another tensor, or of an attribute ---- */

/* The element type in attribute dtype; if it is absent, that of the input, provided that `like` is set. */
static onx_status dtype_attribute(onxi_call *call, bool like, int *out)
{
    const bool given = onxi_call_given(call, "dtype");
    const int64_t dtype = like && !given ? onxi_call_dtype(call, 0) : onxi_call_int(call, "dtype");
    *out = ONX_UNDEFINED;
    if ((given || dtype != ONX_UNDEFINED) && !onx_dtype_name(dtype))
        return onxi_call_fail(call, "dtype %lld is not an element type", (long long)dtype);
    *out = (int)dtype;
    return ONX_OK;
}

/* Bernoulli, RandomNormalLike, RandomUniformLike: the type of the input unless dtype is given. */
onx_status onxi_rule_random_like(onxi_call *call)
{
    int dtype;
    ONX_TRY(dtype_attribute(call, true, &dtype));
    onxi_call_output_unranked(call, 0, dtype);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

onx_status onxi_rule_eye_like(onxi_call *call)
{
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    return onxi_rule_random_like(call);
}

onx_status onxi_rule_random(onxi_call *call)
{
    int dtype;
    uint32_t rank;
    onxi_dim *dims;
    const int64_t *shape = onxi_call_ints(call, "shape", &rank);
    ONX_TRY(dtype_attribute(call, false, &dtype));
    onxi_call_output_unranked(call, 0, dtype);
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return onxi_call_fail(call, "the shape has %lld at axis %u", (long long)shape[i], i);
        dims[i] = shape[i];
    }
    return ONX_OK;
}

onx_status onxi_rule_multinomial(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const int64_t samples = onxi_call_int(call, "sample_size");
    int dtype;
    onxi_dim *dims;
    ONX_TRY(dtype_attribute(call, false, &dtype));
    if (dtype != ONX_INT32 && dtype != ONX_INT64)
        return onxi_call_fail(call, "dtype is %s, expected int32 or int64", onx_dtype_name(dtype));
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(onxi_call_output(call, 0, dtype, 2, &dims));
    if (x)
        dims[0] = x->dims[0];
    if (samples >= 0)
        dims[1] = samples;
    return ONX_OK;
}

/* ---- Range ---- */

/* A constant operand has to be a single readable number; *out is NAN while it is unknown. */
static onx_status range_operand(onxi_call *call, uint32_t input, double *out)
{
    const onx_tensor *tensor = onxi_call_has_input(call, input) ? call->ops->constant(call, input) : NULL;
    uint64_t count;
    *out = NAN;
    if (!tensor || onx_tensor_is_external(tensor))
        return ONX_OK;
    if (!onx_tensor_count(tensor, &count) || count != 1)
        return onxi_call_fail(call, "input %u is not a scalar", input);
    if (onx_tensor_get_f64(call->doc, tensor, 0, 1, out) != ONX_OK)
        return onxi_call_fail(call, "the value of input %u cannot be read", input);
    return ONX_OK;
}

/* The number of steps from start to limit; false if unknown. */
static bool real_steps(double start, double limit, double step, int64_t *out)
{
    const double steps = (limit - start) / step;
    if (!(steps < 1e15)) /* infinite, NaN, or too large */
        return false;
    *out = steps > 0 ? (int64_t)steps : 0;
    *out += (double)*out < steps;
    return true;
}

/* The same for integers, which may be symbolic; the step has to be constant. */
static onxi_dim integer_steps(onxi_call *call)
{
    onxi_dim number[3];
    for (uint32_t i = 0; i < 3; i++) {
        const onxi_known_ints *value = onxi_call_value(call, i);
        if (!value || value->count != 1)
            return ONXI_DIM_UNKNOWN;
        number[i] = value->elements[0];
    }
    if (!onxi_dim_is_const(number[2]) || number[2] == 0)
        return ONXI_DIM_UNKNOWN;
    const bool down = number[2] < 0;
    const onxi_dim way = onxi_dim_sub(call->dims, number[down ? 0 : 1], number[down ? 1 : 0]);
    return onxi_dim_max(call->dims, onxi_dim_div_ceil(call->dims, way, down ? -number[2] : number[2]), 0);
}

onx_status onxi_rule_range(onxi_call *call)
{
    const onx_dtype_class class = onx_dtype_class_of(onxi_call_dtype(call, 0));
    onxi_dim *dims;
    double real[3];
    for (uint32_t i = 0; i < 3; i++) {
        const onxi_type *type = onxi_call_ranked(call, i);
        if (type && type->rank > 1)
            return onxi_call_fail(call, "input %u has rank %u, expected a scalar", i, type->rank);
        ONX_TRY(range_operand(call, i, &real[i]));
    }
    ONX_TRY(onxi_call_shape(call, 0, 1, &dims));
    if (class == ONX_CLASS_FLOATING) {
        int64_t steps;
        if (real_steps(real[0], real[1], real[2], &steps))
            dims[0] = steps;
        return ONX_OK;
    }
    dims[0] = integer_steps(call);
    const onxi_known_ints *start = onxi_call_value(call, 0), *step = onxi_call_value(call, 2);
    if (!onxi_dim_is_const(dims[0]) || dims[0] > ONXI_KNOWN_INTS_LIMIT)
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, 1, (uint32_t)dims[0]);
    for (int64_t i = 0; out && i < dims[0]; i++)
        out[i] = onxi_dim_add(call->dims, start->elements[0], onxi_dim_mul(call->dims, step->elements[0], i));
    return ONX_OK;
}
