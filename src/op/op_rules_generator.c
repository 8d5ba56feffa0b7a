/* op_rules_generator.c - rules of constants and of what makes tensors from nothing. */
#include "op/op_rules.h"

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
    onxi_value value;
    if (onx_dtype_class_of(tensor->data_type) != ONX_CLASS_TEXT &&
        onxi_value_of_tensor(call->doc, call->arena, tensor, &value))
        onxi_call_carry(call, 0, value);
    return ONX_OK;
}

/* Versions since 12 take a list or a number directly. */
static onx_status constant_list(onxi_call *call, const char *name, int dtype, uint32_t rank)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, dtype, rank, &dims));
    if (rank)
        dims[0] = onxi_call_list_count(call, name);
    uint32_t count = 1;
    int64_t one = dtype == ONX_INT64 ? onxi_call_int(call, name, 0) : 0;
    const int64_t *elements = rank ? onxi_call_ints(call, name, &count) : &one;
    if (dtype != ONX_INT64 || !elements)
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, rank, count);
    for (uint32_t i = 0; out && i < count; i++)
        out[i] = onxi_dim_is_const(elements[i]) ? elements[i] : ONXI_DIM_UNKNOWN;
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
    uint32_t count, given = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        given += onxi_call_has_attribute(call, lists[i].name);
    given += onxi_call_has_attribute(call, "value") + onxi_call_has_attribute(call, "sparse_value");
    if (given != 1)
        return onxi_call_fail(call, "%u of the value attributes are given, expected one", given);
    const onx_attribute *value = call->ops->attribute(call, "value");
    if (value) {
        onx_tensor *const *tensor = onx_attribute_value(value, ONX_SLOT_T, &count);
        return tensor && *tensor ? constant_tensor(call, *tensor)
                                 : onxi_call_fail(call, "attribute value holds no tensor");
    }
    const onx_attribute *sparse = call->ops->attribute(call, "sparse_value");
    if (sparse) {
        onx_sparse_tensor *const *tensor = onx_attribute_value(sparse, ONX_SLOT_SPARSE_TENSOR, &count);
        onxi_dim *dims;
        if (!tensor || !*tensor || !(*tensor)->values)
            return onxi_call_fail(call, "attribute sparse_value holds no sparse tensor");
        ONX_TRY(onxi_call_output(call, 0, (*tensor)->values->data_type, (*tensor)->dims_count, &dims));
        for (uint32_t i = 0; i < (*tensor)->dims_count; i++)
            dims[i] = onxi_dim_is_const((*tensor)->dims[i]) ? (*tensor)->dims[i] : ONXI_DIM_UNKNOWN;
        return ONX_OK; /* dense since the beginning: only the attribute is sparse */
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (onxi_call_has_attribute(call, lists[i].name))
            return constant_list(call, lists[i].name, lists[i].dtype, lists[i].rank);
    return ONX_OK;
}

onx_status onxi_rule_constant_of_shape(onxi_call *call)
{
    const onxi_value *shape = onxi_call_value(call, 0);
    uint32_t count;
    onxi_dim *dims;
    onxi_value fill = { .elements = NULL };
    int dtype = ONX_FLOAT;
    const onx_attribute *a = call->ops->attribute(call, "value");
    onx_tensor *const *tensor = a ? onx_attribute_value(a, ONX_SLOT_T, &count) : NULL;
    if (tensor && *tensor) {
        dtype = (*tensor)->data_type;
        if (!onxi_value_of_tensor(call->doc, call->arena, *tensor, &fill))
            fill.elements = NULL;
    }
    onxi_call_output_unranked(call, 0, dtype);
    ONX_TRY(onxi_call_want_rank(call, 0, 1));
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
        length > ONXI_VALUE_LIMIT)
        return ONX_OK;
    onxi_dim *out = onxi_call_set_value(call, 0, shape->count, (uint32_t)length);
    for (int64_t i = 0; out && i < length; i++)
        out[i] = fill.elements[0];
    return ONX_OK;
}
