/* transform_subject.c - queries about a node for the conditions of steps, and values that they define for the text. */
#include "transform/transform_retarget.h"

bool onxi_subject_has(const onxi_subject *s, uint32_t input)
{
    return input < s->node->input_count && onx_view(s->node->input[input]).len;
}

uint32_t onxi_subject_outputs(const onxi_subject *s)
{
    uint32_t count = s->node->output_count;
    while (count && !onx_view(s->node->output[count - 1]).len)
        count--;
    return count;
}

const onx_type *onxi_subject_type(onxi_subject *s, uint32_t input)
{
    return onxi_subject_has(s, input) ? onxi_values_type(s->values, s->scope, onx_view(s->node->input[input])) : NULL;
}

int onxi_subject_rank(onxi_subject *s, uint32_t input)
{
    return onxi_type_rank(onxi_subject_type(s, input));
}

int onxi_subject_dtype(onxi_subject *s, uint32_t input)
{
    return onxi_type_dtype(onxi_subject_type(s, input));
}

/* ---- attributes ---- */

const onx_attribute *onxi_subject_given(const onxi_subject *s, const char *name)
{
    return onx_node_attribute(s->node, name);
}

static const onx_attribute *of_value(onx_arena *arena, const onxi_attr_value *value, const char *name)
{
    onx_attribute *a = onxi_attribute_new(arena, name, (onx_attribute_type)value->type);
    if (!a)
        return NULL;
    switch (value->type) {
    case ONX_ATTR_INT:
        ONX_SET(attribute, a, i, value->i);
        return a;
    case ONX_ATTR_FLOAT:
        ONX_SET(attribute, a, f, value->f);
        return a;
    case ONX_ATTR_STRING:
        if (onx_arena_keep(arena, value->s, &a->s) != ONX_OK)
            return NULL;
        a->has |= onx_attribute_has_s;
        return a;
    case ONX_ATTR_INTS:
        a->ints = (int64_t *)(uintptr_t)value->list;
        a->count = value->count;
        return a;
    case ONX_ATTR_FLOATS:
        a->floats = (float *)(uintptr_t)value->list;
        a->count = value->count;
        return a;
    default:
        return NULL;
    }
}

const onx_attribute *onxi_subject_attribute(onxi_subject *s, const char *name)
{
    const onx_attribute *given = onxi_subject_given(s, name);
    onxi_attr_value value;
    if (given)
        return given;
    const onxi_attr *attr = onxi_schema_attr(s->row, onx_str_of(name));
    if (!attr || onxi_schema_default(s->row, attr, s->arena, &value) != ONX_OK)
        return NULL;
    return of_value(s->arena, &value, name);
}

static bool is_known(const onx_attribute *a, onx_attribute_type type)
{
    return a && onx_attribute_type_of(a) == type && !onx_view(onx_attribute_more(a)->ref_attr_name).len;
}

bool onxi_subject_int(onxi_subject *s, const char *name, int64_t *out)
{
    const onx_attribute *a = onxi_subject_attribute(s, name);
    if (!is_known(a, ONX_ATTR_INT))
        return false;
    *out = onxi_attribute_int(a);
    return true;
}

bool onxi_subject_float(onxi_subject *s, const char *name, float *out)
{
    const onx_attribute *a = onxi_subject_attribute(s, name);
    if (!is_known(a, ONX_ATTR_FLOAT))
        return false;
    *out = onxi_attribute_float(a);
    return true;
}

bool onxi_subject_text_is(onxi_subject *s, const char *name, const char *text)
{
    const onx_attribute *a = onxi_subject_attribute(s, name);
    return is_known(a, ONX_ATTR_STRING) && onx_str_is(onxi_attribute_text(a), text);
}

const int64_t *onxi_subject_ints(onxi_subject *s, const char *name, uint32_t *count)
{
    const onx_attribute *a = onxi_subject_given(s, name);
    *count = 0;
    if (!is_known(a, ONX_ATTR_INTS) || a->slot != ONX_SLOT_INTS)
        return NULL;
    *count = a->count;
    return a->ints;
}

/* ---- constants ---- */

static const onx_attribute *constant(onxi_subject *s, uint32_t input, onx_attribute_type type)
{
    const onxi_constant *c =
        onxi_subject_has(s, input) ? onxi_values_constant(s->values, s->scope, onx_view(s->node->input[input])) : NULL;
    const onx_attribute *a = c ? onxi_constant_attribute(s->values, s->arena, c, (int32_t)type) : NULL;
    return is_known(a, type) ? a : NULL;
}

const int64_t *onxi_subject_input_ints(onxi_subject *s, uint32_t input, uint32_t *count)
{
    const onx_attribute *a = constant(s, input, ONX_ATTR_INTS);
    static const int64_t none = 0;
    *count = a ? a->count : 0;
    return !a ? NULL : a->count ? a->ints : &none;
}

const float *onxi_subject_input_floats(onxi_subject *s, uint32_t input, uint32_t *count)
{
    const onx_attribute *a = constant(s, input, ONX_ATTR_FLOATS);
    static const float none = 0;
    *count = a ? a->count : 0;
    return !a ? NULL : a->count ? a->floats : &none;
}

/* ---- prepared attributes ---- */

static bool prepare(onxi_subject *s, const char *name, const onx_attribute *a)
{
    if (!a || s->prepared_count == ONXI_PREPARED_MAX)
        return false;
    s->prepared_names[s->prepared_count] = name;
    s->prepared[s->prepared_count++] = a;
    return true;
}

bool onxi_prepare_int(onxi_subject *s, const char *name, int64_t value)
{
    const onxi_attr_value v = { .type = ONX_ATTR_INT, .i = value };
    return prepare(s, name, of_value(s->arena, &v, name));
}

bool onxi_prepare_float(onxi_subject *s, const char *name, float value)
{
    const onxi_attr_value v = { .type = ONX_ATTR_FLOAT, .f = value };
    return prepare(s, name, of_value(s->arena, &v, name));
}

bool onxi_prepare_ints(onxi_subject *s, const char *name, const int64_t *values, uint32_t count)
{
    int64_t *copy = onxi_arena_array(s->arena, (size_t)onxi_list_room(count), sizeof *copy);
    const onxi_attr_value v = { .type = ONX_ATTR_INTS, .list = copy, .count = count };
    if (!copy)
        return false;
    onxi_copy_dims(copy, values, count);
    return prepare(s, name, of_value(s->arena, &v, name));
}

bool onxi_prepare_floats(onxi_subject *s, const char *name, const float *values, uint32_t count)
{
    float *copy = onxi_arena_array(s->arena, (size_t)onxi_list_room(count), sizeof *copy);
    const onxi_attr_value v = { .type = ONX_ATTR_FLOATS, .list = copy, .count = count };
    if (!copy)
        return false;
    if (count)
        memcpy(copy, values, count * sizeof *copy);
    return prepare(s, name, of_value(s->arena, &v, name));
}

bool onxi_prepare_text(onxi_subject *s, const char *name, const char *text)
{
    const onxi_attr_value v = { .type = ONX_ATTR_STRING, .s = onx_str_of(text) };
    return prepare(s, name, of_value(s->arena, &v, name));
}

bool onxi_prepare_tensor(onxi_subject *s, const char *name, onx_tensor *tensor)
{
    onx_attribute *a = tensor ? onxi_attribute_new(s->arena, name, ONX_ATTR_TENSOR) : NULL;
    if (a)
        ONX_SET(attribute, a, t, tensor);
    return prepare(s, name, a);
}

onx_tensor *onxi_subject_number(onxi_subject *s, int dtype, bool list, double value)
{
    const int64_t dims[1] = { 1 };
    unsigned char bytes[16] = { 0 };
    const onx_dtype to = dtype > 0 && dtype < ONX_DTYPE_COUNT && dtype != ONX_STRING ? (onx_dtype)dtype : ONX_FLOAT;
    if (onx_convert(to, bytes, ONX_DOUBLE, &value, 1, true) != ONX_OK)
        return NULL;
    return onx_tensor_new(s->arena, to, dims, list, bytes, NULL);
}

bool onxi_prepare_number(onxi_subject *s, const char *attribute, const char *name)
{
    const onx_attribute *a = onxi_subject_given(s, attribute);
    if (!a || onx_view(onx_attribute_more(a)->ref_attr_name).len)
        return false;
    return onxi_prepare_tensor(
        s, name, onxi_subject_number(s, onxi_subject_dtype(s, 0), false, (double)onxi_attribute_float(a)));
}

const onx_attribute *onxi_subject_argument(onxi_subject *s, const onx_function *text, onx_str name, int32_t type,
                                           uint32_t *input_out)
{
    if (input_out)
        *input_out = ONXI_NO_INPUT;
    for (uint32_t i = 0; i < s->prepared_count; i++)
        if (onx_str_is(name, s->prepared_names[i]))
            return s->prepared[i];
    for (uint32_t i = 0; i < text->input_count; i++) {
        if (!onx_str_equal(onx_view(text->input[i]), name))
            continue;
        const onxi_constant *c =
            onxi_subject_has(s, i) ? onxi_values_constant(s->values, s->scope, onx_view(s->node->input[i])) : NULL;
        if (input_out)
            *input_out = i;
        return c ? onxi_constant_attribute(s->values, s->arena, c, type) : NULL;
    }
    const onxi_attr *attr = onxi_schema_attr(s->row, name);
    return attr ? onxi_subject_attribute(s, attr->name) : NULL;
}
