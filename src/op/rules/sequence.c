/* sequence.c - rules of sequences and optional values. */
#include "op/op_rules.h"

/* ---- types with element types ---- */

static onx_status set_container(onxi_call *call, uint32_t output, onxi_type_kind kind, const onxi_type *inner)
{
    onxi_type *kept = ONXI_NEW(call->arena, onxi_type);
    if (!kept)
        return ONX_E_MEMORY;
    *kept = *inner;
    if (output < call->output_count)
        call->outputs[output] = (onxi_type){ .kind = (uint8_t)kind, .inner = kept };
    return ONX_OK;
}

/* The element type of a sequence input, or NULL if it is unknown; fails if the input is not a sequence. */
static onx_status sequence_element(onxi_call *call, uint32_t input, const onxi_type **out)
{
    *out = NULL;
    if (!onxi_call_has_input(call, input) || call->inputs[input]->kind == ONXI_TYPE_NONE)
        return ONX_OK;
    if (call->inputs[input]->kind != ONXI_TYPE_SEQUENCE)
        return onxi_call_fail(call, "input %u is not a sequence", input);
    *out = call->inputs[input]->inner;
    return ONX_OK;
}

/* Generalises `into` to a tensor type that holds for both: differing dims or ranks become unknown. */
static onx_status unite(onxi_call *call, const onxi_type *type, onxi_type *into)
{
    if (!type->ranked || !into->ranked || type->rank != into->rank) {
        into->ranked = false;
        into->rank = 0;
        into->dims = NULL;
        return ONX_OK;
    }
    onxi_dim *dims = ONXI_ARRAY(call->arena, onxi_dim, into->rank);
    if (into->rank && !dims)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < into->rank; i++)
        dims[i] = into->dims[i] == type->dims[i] ? into->dims[i] : ONXI_DIM_UNKNOWN;
    into->dims = dims;
    return ONX_OK;
}

/* ---- creating sequences ---- */

onx_status onxi_rule_sequence_empty(onxi_call *call)
{
    const int64_t dtype = onxi_call_int(call, "dtype");
    if (!onx_dtype_name(dtype))
        return onxi_call_fail(call, "dtype %lld is not an element type", (long long)dtype);
    const onxi_type element = { .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype };
    return set_container(call, 0, ONXI_TYPE_SEQUENCE, &element);
}

onx_status onxi_rule_sequence_construct(onxi_call *call)
{
    onxi_type element = { .kind = ONXI_TYPE_NONE };
    for (uint32_t i = 0; i < call->input_count; i++) {
        const onxi_type *type = onxi_call_tensor(call, i);
        if (!type)
            return ONX_OK;
        if (i == 0)
            element = *type;
        else if (type->dtype != element.dtype && type->dtype && element.dtype)
            return onxi_call_fail(call, "inputs 0 and %u have the element types %s and %s", i,
                                  onx_dtype_name(element.dtype), onx_dtype_name(type->dtype));
        else
            ONX_TRY(unite(call, type, &element));
    }
    return element.kind ? set_container(call, 0, ONXI_TYPE_SEQUENCE, &element) : ONX_OK;
}

onx_status onxi_rule_sequence_insert(onxi_call *call)
{
    const onxi_type *element, *tensor = onxi_call_tensor(call, 1);
    ONX_TRY(sequence_element(call, 0, &element));
    if (!element)
        return ONX_OK;
    onxi_type united = *element;
    if (!tensor)
        united.ranked = false;
    else if (tensor->dtype != element->dtype && tensor->dtype && element->dtype)
        return onxi_call_fail(call, "the tensor has the element type %s, those of the sequence %s",
                              onx_dtype_name(tensor->dtype), onx_dtype_name(element->dtype));
    else
        ONX_TRY(unite(call, tensor, &united));
    if (!united.dtype && tensor)
        united.dtype = tensor->dtype;
    return set_container(call, 0, ONXI_TYPE_SEQUENCE, &united);
}

onx_status onxi_rule_sequence_erase(onxi_call *call)
{
    const onxi_type *element;
    ONX_TRY(sequence_element(call, 0, &element));
    onxi_call_same(call, 0, 0);
    return ONX_OK;
}

/* The common size of the parts along the axis; unknown if they differ. */
static onx_status part_size(onxi_call *call, onxi_dim size, onxi_dim *out)
{
    const onxi_known_ints *split = onxi_call_value(call, 1);
    const onxi_type *shape = onxi_call_ranked(call, 1);
    *out = ONXI_DIM_UNKNOWN;
    if (shape && shape->rank > 1)
        return onxi_call_fail(call, "split has rank %u, expected 0 or 1", shape->rank);
    if (!split)
        return ONX_OK;
    if (split->rank == 0) {
        const onxi_dim part = split->elements[0];
        if (onxi_dim_is_const(part) && part <= 0)
            return onxi_call_fail(call, "split is %lld, expected more than 0", (long long)part);
        if (onxi_dim_mod(call->dims, size, part) == 0)
            *out = part;
        return ONX_OK;
    }
    if (!split->count)
        return onxi_call_fail(call, "split is empty");
    onxi_dim sum = 0;
    *out = split->elements[0];
    for (uint32_t i = 0; i < split->count; i++) {
        if (onxi_dim_is_const(split->elements[i]) && split->elements[i] < 0)
            return onxi_call_fail(call, "part %u of split is %lld", i, (long long)split->elements[i]);
        sum = onxi_dim_add(call->dims, sum, split->elements[i]);
        if (split->elements[i] != *out)
            *out = ONXI_DIM_UNKNOWN;
    }
    if (onxi_dim_is_const(sum) && onxi_dim_is_const(size) && sum != size)
        return onxi_call_fail(call, "the parts of split sum up to %lld, but the axis has size %lld", (long long)sum,
                              (long long)size);
    return ONX_OK;
}

onx_status onxi_rule_split_to_sequence(onxi_call *call)
{
    const onxi_type *x = onxi_call_tensor(call, 0);
    uint32_t axis;
    if (!x)
        return ONX_OK;
    onxi_type element = { .kind = ONXI_TYPE_TENSOR, .dtype = x->dtype };
    if (x->ranked) {
        ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), x->rank, &axis));
        const bool whole = onxi_call_has_input(call, 1); /* keepdims is only used without split */
        const bool keep = whole || onxi_call_int(call, "keepdims") != 0;
        onxi_dim part = 1;
        if (whole)
            ONX_TRY(part_size(call, x->dims[axis], &part));
        element.ranked = true;
        element.rank = keep ? x->rank : x->rank - 1;
        element.dims = ONXI_ARRAY(call->arena, onxi_dim, element.rank);
        if (element.rank && !element.dims)
            return ONX_E_MEMORY;
        for (uint32_t i = 0, k = 0; i < x->rank; i++)
            if (i != axis || keep)
                element.dims[k++] = i == axis ? part : x->dims[i];
    }
    return set_container(call, 0, ONXI_TYPE_SEQUENCE, &element);
}

/* ---- reading sequences ---- */

onx_status onxi_rule_sequence_at(onxi_call *call)
{
    const onxi_type *element;
    ONX_TRY(sequence_element(call, 0, &element));
    if (element && call->output_count)
        call->outputs[0] = *element;
    return ONX_OK;
}

onx_status onxi_rule_sequence_length(onxi_call *call)
{
    const onxi_type *element;
    onxi_dim *dims;
    ONX_TRY(sequence_element(call, 0, &element));
    return onxi_call_output(call, 0, ONX_INT64, 0, &dims);
}

onx_status onxi_rule_concat_from_sequence(onxi_call *call)
{
    const onxi_type *element;
    const int64_t new_axis = onxi_call_int(call, "new_axis");
    uint32_t axis;
    onxi_dim *dims;
    ONX_TRY(sequence_element(call, 0, &element));
    if (new_axis != 0 && new_axis != 1)
        return onxi_call_fail(call, "new_axis is %lld, expected 0 or 1", (long long)new_axis);
    if (!element || element->kind != ONXI_TYPE_TENSOR)
        return ONX_OK;
    onxi_call_output_unranked(call, 0, element->dtype);
    if (!element->ranked)
        return ONX_OK;
    const uint32_t rank = element->rank + (uint32_t)new_axis;
    ONX_TRY(onxi_call_axis(call, onxi_call_int(call, "axis"), rank, &axis));
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i < rank; i++)
        if (i != axis)
            dims[i] = element->dims[new_axis && i > axis ? i - 1 : i];
    return ONX_OK;
}

/* The body receives one element of each sequence, and other inputs unchanged; its outputs are collected in
 * sequences. */
onx_status onxi_rule_sequence_map(onxi_call *call)
{
    const onx_graph *body = onxi_call_graph(call, "body");
    onxi_type *inputs = ONXI_ARRAY(call->arena, onxi_type, call->input_count);
    onxi_type *outputs = ONXI_ARRAY(call->arena, onxi_type, call->output_count);
    const onxi_type *first;
    if (!inputs || !outputs)
        return ONX_E_MEMORY;
    ONX_TRY(sequence_element(call, 0, &first));
    if (!body)
        return onxi_call_fail(call, "attribute body is missing");
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (!onxi_call_has_input(call, i))
            continue;
        const onxi_type *type = call->inputs[i];
        if (type->kind != ONXI_TYPE_SEQUENCE)
            inputs[i] = *type;
        else if (type->inner)
            inputs[i] = *type->inner;
    }
    if (body->output_count != call->output_count)
        return onxi_call_fail(call, "the body has %u outputs and the node %u", body->output_count, call->output_count);
    ONX_TRY(call->ops->subgraph(call, body, inputs, call->input_count, outputs, call->output_count));
    for (uint32_t i = 0; i < call->output_count; i++)
        ONX_TRY(set_container(call, i, ONXI_TYPE_SEQUENCE, &outputs[i]));
    return ONX_OK;
}

/* ---- optional values ---- */

onx_status onxi_rule_optional(onxi_call *call)
{
    if (onxi_call_has_input(call, 0))
        return set_container(call, 0, ONXI_TYPE_OPTIONAL, call->inputs[0]);
    const onxi_attr_value *type = onxi_call_attr(call, "type");
    if (!type)
        return onxi_call_fail(call, "neither an input nor attribute type says what the optional value is");
    onxi_type element = { .kind = ONXI_TYPE_NONE };
    ONX_TRY(call->ops->type(call, type->tp, &element));
    return set_container(call, 0, ONXI_TYPE_OPTIONAL, &element);
}

onx_status onxi_rule_optional_has_element(onxi_call *call)
{
    onxi_dim *dims;
    return onxi_call_output(call, 0, ONX_BOOL, 0, &dims);
}

/* Since version 18 tensors and sequences are also accepted, and are passed on. */
onx_status onxi_rule_optional_get_element(onxi_call *call)
{
    if (!onxi_call_has_input(call, 0) || call->inputs[0]->kind == ONXI_TYPE_NONE || !call->output_count)
        return ONX_OK;
    if (call->inputs[0]->kind == ONXI_TYPE_OPTIONAL) {
        if (call->inputs[0]->inner)
            call->outputs[0] = *call->inputs[0]->inner;
        return ONX_OK;
    }
    if (call->schema->since < 18)
        return onxi_call_fail(call, "the input is not an optional value");
    onxi_call_same(call, 0, 0);
    return ONX_OK;
}
