/* op_call.c - helper functions that keep rules short: reading inputs and attributes of a call, setting its outputs. */
#include "op/op_rules.h"

/* ---- running a rule ---- */

/* The element type in "tensor(float)", or ONX_UNDEFINED. */
static int dtype_of_text(const char *text)
{
    size_t len = strlen(text);
    if (len < 9 || memcmp(text, "tensor(", 7) != 0 || text[len - 1] != ')')
        return ONX_UNDEFINED;
    return (int)onx_dtype_find(onx_str_make(text + 7, len - 8));
}

static bool same_text(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

/* The element type if a constraint allows only one, else ONX_UNDEFINED. */
static int dtype_of_constraint(const onxi_schema *schema, const char *name)
{
    if (!schema->types)
        return ONX_UNDEFINED;
    for (const onxi_type_constraint *c = schema->types; c->name; c++)
        if (same_text(c->name, name)) {
            uint32_t bits = c->set.tensor;
            bool others = c->set.seq || c->set.optional || c->set.optional_seq || c->set.sparse_tensor || c->set.other;
            return bits && !(bits & (bits - 1)) && !others ? __builtin_ctz(bits) : ONX_UNDEFINED;
        }
    return ONX_UNDEFINED;
}

/* The first input that has the type constraint, and is a tensor of known type. */
static int dtype_of_inputs(const onxi_call *call, const char *constraint)
{
    for (uint32_t i = 0; i < call->input_count; i++) {
        const onxi_port *port = onxi_port_at(call->schema->inputs, i);
        if (!port)
            return ONX_UNDEFINED;
        if (same_text(port->type, constraint) && !(port->flags & ONXI_PORT_HETEROGENEOUS) && call->inputs[i] &&
            call->inputs[i]->kind == ONXI_TYPE_TENSOR && call->inputs[i]->dtype != ONX_UNDEFINED)
            return call->inputs[i]->dtype;
    }
    return ONX_UNDEFINED;
}

static void preset_output(onxi_call *call, uint32_t i)
{
    const onxi_port *port = onxi_port_at(call->schema->outputs, i);
    if (!port || port->flags & ONXI_PORT_HETEROGENEOUS)
        return;
    int dtype = dtype_of_text(port->type);
    if (dtype == ONX_UNDEFINED)
        dtype = dtype_of_inputs(call, port->type);
    if (dtype == ONX_UNDEFINED)
        dtype = dtype_of_constraint(call->schema, port->type);
    if (dtype != ONX_UNDEFINED)
        onxi_call_output_unranked(call, i, dtype);
}

void onxi_call_preset(onxi_call *call)
{
    for (uint32_t i = 0; i < call->output_count; i++)
        preset_output(call, i);
}

bool onxi_dtype_holds(int dtype, int64_t number)
{
    const unsigned bits = onx_dtype_bits(dtype);
    uint64_t m = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    switch (onx_dtype_class_of(dtype)) {
    case ONX_CLASS_BOOLEAN:
        return number == 0 || number == 1;
    case ONX_CLASS_SIGNED:
        return bits >= 64 || (number >> (bits - 1)) == (number < 0 ? -1 : 0);
    case ONX_CLASS_UNSIGNED:
        return number >= 0 && (bits >= 64 || m >> bits == 0);
    case ONX_CLASS_FLOATING: {
        const unsigned digits = bits >= 16 ? onxi_dtype_row_of(dtype)->mantissa + 1u : 0;
        if (dtype == ONX_FLOAT16 && m > 65504)
            return false;
        return digits && (!m || m >> __builtin_ctzll(m) >> digits == 0);
    }
    default:
        return false;
    }
}

/* The largest number up to which a type holds every integer; 0: none. */
static double holds_up_to(int dtype)
{
    const unsigned bits = onx_dtype_bits(dtype);
    switch (onx_dtype_class_of(dtype)) {
    case ONX_CLASS_SIGNED:
        return (double)(UINT64_C(1) << (bits - 1)) - (bits < 64 ? 1 : 1024); /* 2^63 - 1 would round up */
    case ONX_CLASS_UNSIGNED:
        return bits >= 64 ? (double)INT64_MAX / 2 : (double)(UINT64_C(1) << bits) - 1;
    case ONX_CLASS_FLOATING:
        return dtype == ONX_DOUBLE ? 0x1p53 : dtype == ONX_FLOAT ? 0x1p24 : 0;
    default:
        return 0;
    }
}

onxi_dim onxi_call_held(const onxi_call *call, int dtype, onxi_dim d)
{
    if (!onxi_dim_is_known(d))
        return d;
    if (onxi_dim_is_const(d))
        return dtype == ONX_UNDEFINED || onxi_dtype_holds(dtype, d) ? d : ONXI_DIM_UNKNOWN;
    return !onxi_dims_proves(call->dims) || onxi_dim_within(call->dims, d, holds_up_to(dtype)) ? d : ONXI_DIM_UNKNOWN;
}

/* Forgets the elements that the type of the output does not hold. */
static onx_status hold_output(onxi_call *call, uint32_t i)
{
    const onxi_known_ints *value = &call->output_values[i];
    const int dtype = call->outputs[i].dtype;
    onxi_dim *own = NULL;
    for (uint32_t k = 0; value->elements && k < value->count; k++) {
        const onxi_dim d = onxi_call_held(call, dtype, value->elements[k]);
        if (d == value->elements[k])
            continue;
        if (!own) {
            if (!(own = onxi_arena_get(call->arena, value->count * sizeof *own)))
                return ONX_E_MEMORY;
            memcpy(own, value->elements, value->count * sizeof *own);
        }
        own[k] = d;
    }
    if (own)
        call->output_values[i].elements = own;
    return ONX_OK;
}

onx_status onxi_call_run(onxi_call *call)
{
    onxi_call_preset(call);
    call->misread = NULL;
    onx_status status = call->schema->infer ? call->schema->infer(call) : ONX_OK;
    if (status == ONX_OK && call->misread)
        return onxi_call_fail(call, "the rule of %s-%d asks for attribute %s, which has no value", call->schema->name,
                              (int)call->schema->since, call->misread);
    for (uint32_t i = 0; call->output_values && i < call->output_count; i++)
        ONX_TRY(hold_output(call, i));
    return status;
}

onx_status onxi_call_fail(onxi_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    onx_status status = call->ops->fail(call, format, args);
    va_end(args);
    return status;
}

/* ---- attributes ---- */

static const onxi_attr_value *find(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = onxi_attrs_find(call->attrs, name);
    if (!value && !onxi_schema_has_attr(call->schema, name))
        call->misread = name;
    return value;
}

/* The value, which has to exist. */
static const onxi_attr_value *read(onxi_call *call, const char *name, onx_attribute_type type)
{
    static const onxi_attr_value nothing = { .count = 0 };
    const onxi_attr_value *value = find(call, name);
    if (value && value->type == type)
        return value;
    call->misread = name;
    return &nothing;
}

bool onxi_call_given(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = find(call, name);
    return value && value->given;
}

int64_t onxi_call_int(onxi_call *call, const char *name)
{
    return read(call, name, ONX_ATTR_INT)->i;
}

bool onxi_call_is_set(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = find(call, name);
    return value && value->type == ONX_ATTR_INT && value->i != 0;
}

float onxi_call_float(onxi_call *call, const char *name)
{
    return read(call, name, ONX_ATTR_FLOAT)->f;
}

onx_str onxi_call_text(onxi_call *call, const char *name)
{
    return read(call, name, ONX_ATTR_STRING)->s;
}

bool onxi_call_text_is(onxi_call *call, const char *name, const char *text)
{
    return onx_str_is(onxi_call_text(call, name), text);
}

static const void *list(onxi_call *call, const char *name, onx_attribute_type type, uint32_t *count)
{
    const onxi_attr_value *value = find(call, name);
    const bool there = value && value->type == type && value->count;
    *count = there ? value->count : 0;
    return there ? value->list : NULL;
}

const int64_t *onxi_call_ints(onxi_call *call, const char *name, uint32_t *count)
{
    return list(call, name, ONX_ATTR_INTS, count);
}

const float *onxi_call_floats(onxi_call *call, const char *name, uint32_t *count)
{
    return list(call, name, ONX_ATTR_FLOATS, count);
}

const onxi_dim *onxi_call_dims(onxi_call *call, const char *name, uint32_t *count)
{
    const int64_t *ints = onxi_call_ints(call, name, count);
    bool fits = true;
    for (uint32_t i = 0; i < *count && ints; i++)
        fits = fits && onxi_dim_is_const(ints[i]);
    if (fits)
        return ints;
    onxi_dim *dims = ONXI_ARRAY(call->arena, onxi_dim, *count);
    for (uint32_t i = 0; dims && i < *count; i++)
        dims[i] = onxi_dim_of_int(ints[i]);
    return dims;
}

uint32_t onxi_call_list_count(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = find(call, name);
    return value ? value->count : 0;
}

const onx_graph *onxi_call_graph(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = find(call, name);
    return value && value->type == ONX_ATTR_GRAPH ? value->g : NULL;
}

const onx_tensor *onxi_call_attr_tensor(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = find(call, name);
    return value && value->type == ONX_ATTR_TENSOR ? value->t : NULL;
}

const onxi_attr_value *onxi_call_attr(onxi_call *call, const char *name)
{
    const onxi_attr_value *value = find(call, name);
    return value && value->type != ONX_ATTR_UNDEFINED ? value : NULL;
}

/* ---- inputs ---- */

bool onxi_call_has_input(const onxi_call *call, uint32_t input)
{
    return input < call->input_count && call->inputs[input];
}

const onxi_type *onxi_call_tensor(onxi_call *call, uint32_t input)
{
    if (!onxi_call_has_input(call, input) || call->inputs[input]->kind != ONXI_TYPE_TENSOR)
        return NULL;
    return call->inputs[input];
}

const onxi_type *onxi_call_ranked(onxi_call *call, uint32_t input)
{
    const onxi_type *type = onxi_call_tensor(call, input);
    return type && type->ranked && type->rank <= ONX_RANK_MAX ? type : NULL;
}

int onxi_call_dtype(const onxi_call *call, uint32_t input)
{
    return onxi_call_has_input(call, input) ? call->inputs[input]->dtype : ONX_UNDEFINED;
}

onx_status onxi_call_want_rank(onxi_call *call, uint32_t input, uint32_t rank)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    if (type && type->rank != rank)
        return onxi_call_fail(call, "input %u has rank %u, expected %u", input, type->rank, rank);
    return ONX_OK;
}

onx_status onxi_call_want_least_rank(onxi_call *call, uint32_t input, uint32_t rank)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    if (type && type->rank < rank)
        return onxi_call_fail(call, "input %u has rank %u, expected at least %u", input, type->rank, rank);
    return ONX_OK;
}

onx_status onxi_call_want_dim(onxi_call *call, uint32_t input, uint32_t axis, onxi_dim dim)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    if (!type || !onxi_dim_is_const(dim) || !onxi_dim_is_const(type->dims[axis]) || type->dims[axis] == dim)
        return ONX_OK;
    return onxi_call_fail(call, "input %u has size %lld at axis %u, expected %lld", input, (long long)type->dims[axis],
                          axis, (long long)dim);
}

onx_status onxi_call_want_dims(onxi_call *call, uint32_t input, uint32_t rank, const onxi_dim *dims)
{
    ONX_TRY(onxi_call_want_rank(call, input, rank));
    for (uint32_t i = 0; i < rank; i++)
        ONX_TRY(onxi_call_want_dim(call, input, i, dims[i]));
    return ONX_OK;
}

onx_status onxi_call_want_one_way(onxi_call *call, uint32_t input, uint32_t rank, const onxi_dim *shape)
{
    const onxi_type *type = onxi_call_ranked(call, input);
    if (type && type->rank > rank)
        return onxi_call_fail(call, "input %u has rank %u, expected at most %u", input, type->rank, rank);
    for (uint32_t i = 0; type && i < type->rank; i++)
        if (type->dims[i] != 1)
            ONX_TRY(
                onxi_call_unify(call, type->dims[i], shape[rank - type->rank + i], "a dimension", &(onxi_dim){ 0 }));
    return ONX_OK;
}

onx_status onxi_call_want_vector(onxi_call *call, uint32_t input, onxi_dim length)
{
    return onxi_call_want_dims(call, input, 1, &length);
}

const onxi_known_ints *onxi_call_any_value(onxi_call *call, uint32_t input)
{
    const onxi_known_ints *value = onxi_call_has_input(call, input) ? call->ops->value(call, input) : NULL;
    return value && !value->floored ? value : NULL;
}

const onxi_known_ints *onxi_call_floored_value(onxi_call *call, uint32_t input)
{
    const onxi_known_ints *value = onxi_call_has_input(call, input) ? call->ops->value(call, input) : NULL;
    return value && value->floored ? value : NULL;
}

const onxi_known_ints *onxi_call_value(onxi_call *call, uint32_t input)
{
    const onxi_known_ints *value = onxi_call_any_value(call, input);
    return value && value->rank <= 1 ? value : NULL;
}

const onxi_known_ints *onxi_call_shape_value(onxi_call *call, uint32_t input)
{
    const onxi_known_ints *value = onxi_call_value(call, input);
    const onxi_type *type = onxi_call_ranked(call, input);
    if (value || !type || type->rank != 1 || !onxi_dim_is_const(type->dims[0]) || type->dims[0] < 0 ||
        type->dims[0] > ONXI_KNOWN_INTS_LIMIT)
        return value;
    uint32_t count = (uint32_t)type->dims[0];
    onxi_known_ints *open = onxi_arena_get(call->arena, sizeof *open);
    onxi_dim *elements = onxi_arena_get(call->arena, (count + 1) * sizeof *elements);
    if (!open || !elements)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        elements[i] = ONXI_DIM_UNKNOWN;
    *open = (onxi_known_ints){ .rank = 1, .count = count, .elements = elements };
    return open;
}

bool onxi_call_const_int(onxi_call *call, uint32_t input, int64_t *out)
{
    const onxi_known_ints *value = onxi_call_value(call, input);
    if (!value || value->count != 1 || !onxi_dim_is_const(value->elements[0]))
        return false;
    *out = value->elements[0];
    return true;
}

const int64_t *onxi_call_const_ints(onxi_call *call, uint32_t input, uint32_t *count)
{
    static const int64_t none = 0;
    const onxi_known_ints *value = onxi_call_value(call, input);
    *count = 0;
    if (!value)
        return NULL;
    for (uint32_t i = 0; i < value->count; i++)
        if (!onxi_dim_is_const(value->elements[i]))
            return NULL;
    *count = value->count;
    return value->count ? value->elements : &none; /* constants represent themselves */
}

/* ---- outputs ---- */

bool onxi_call_wants_output(const onxi_call *call, uint32_t i)
{
    return i < call->output_count && onx_view(call->node->output[i]).len != 0;
}

void onxi_call_output_unranked(onxi_call *call, uint32_t i, int dtype)
{
    if (i < call->output_count)
        call->outputs[i] = (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype };
}

onx_status onxi_call_output(onxi_call *call, uint32_t i, int dtype, uint32_t rank, onxi_dim **dims_out)
{
    *dims_out = NULL;
    if (rank > ONX_RANK_MAX)
        return onxi_call_fail(call, "output %u would have rank %u, the limit is %u", i, rank, ONX_RANK_MAX);
    onxi_dim *dims = ONXI_ARRAY(call->arena, onxi_dim, rank ? rank : 1u);
    if (!dims)
        return ONX_E_MEMORY;
    for (uint32_t k = 0; k < rank; k++)
        dims[k] = ONXI_DIM_UNKNOWN;
    *dims_out = dims;
    if (i < call->output_count)
        call->outputs[i] = (onxi_type){
            .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype, .ranked = true, .rank = rank, .dims = dims
        };
    return ONX_OK;
}

onx_status onxi_call_shape(onxi_call *call, uint32_t i, uint32_t rank, onxi_dim **dims_out)
{
    return onxi_call_output(call, i, i < call->output_count ? call->outputs[i].dtype : ONX_UNDEFINED, rank, dims_out);
}

void onxi_call_shape_of(onxi_call *call, uint32_t i, const onxi_type *shape)
{
    if (i >= call->output_count || !shape)
        return;
    onxi_type *out = &call->outputs[i];
    *out = (onxi_type){
        .kind = ONXI_TYPE_TENSOR, .dtype = out->dtype, .ranked = shape->ranked, .rank = shape->rank, .dims = shape->dims
    };
}

void onxi_call_same(onxi_call *call, uint32_t i, uint32_t input)
{
    if (i < call->output_count && onxi_call_has_input(call, input) && call->inputs[input]->kind != ONXI_TYPE_NONE)
        call->outputs[i] = *call->inputs[input];
}

onxi_dim *onxi_call_set_value(onxi_call *call, uint32_t i, uint32_t rank, uint32_t count)
{
    uint32_t limit = call->value_limit ? call->value_limit : ONXI_KNOWN_INTS_LIMIT;
    if (i >= call->output_count || !call->output_values || count > limit)
        return NULL;
    onxi_dim *elements = onxi_arena_get(call->arena, (count ? count : 1) * sizeof *elements);
    if (!elements)
        return NULL;
    for (uint32_t k = 0; k < count; k++)
        elements[k] = ONXI_DIM_UNKNOWN;
    call->output_values[i] = (onxi_known_ints){ .rank = rank, .count = count, .elements = elements };
    return elements;
}

void onxi_call_carry(onxi_call *call, uint32_t i, onxi_known_ints value)
{
    if (i < call->output_count && call->output_values)
        call->output_values[i] = value;
}

/* ---- dimensions ---- */

onx_status onxi_call_axis(onxi_call *call, int64_t axis, uint32_t rank, uint32_t *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onxi_call_fail(call, "axis %lld is out of range for rank %u", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return ONX_OK;
}

onx_status onxi_call_broadcast(onxi_call *call, onxi_dim a, onxi_dim b, onxi_dim *out)
{
    const bool open = onxi_dims_proves(call->dims) && a != b && !onxi_dim_is_const(a) && !onxi_dim_is_const(b) &&
                      onxi_dim_is_known(a) && onxi_dim_is_known(b) &&
                      (onxi_dim_low(call->dims, a) < 1 || onxi_dim_low(call->dims, b) < 1);
    *out = open ? ONXI_DIM_UNKNOWN : onxi_dim_broadcast(call->dims, a, b); /* open: a size of 0 and one of 1 give 0 */
    if (a == b || a == 1 || b == 1 || !onxi_dim_is_const(a) || !onxi_dim_is_const(b))
        return ONX_OK;
    return onxi_call_fail(call, "dimensions %lld and %lld cannot be broadcast to each other", (long long)a,
                          (long long)b);
}

onx_status onxi_call_unify(onxi_call *call, onxi_dim a, onxi_dim b, const char *what, onxi_dim *out)
{
    *out = onxi_dim_is_const(b) || !onxi_dim_is_known(a) ? b : a;
    if (a != b && onxi_dim_is_const(a) && onxi_dim_is_const(b))
        return onxi_call_fail(call, "%s is %lld in one place and %lld in another", what, (long long)a, (long long)b);
    return ONX_OK;
}

onx_status onxi_call_times(onxi_call *call, onxi_dim a, onxi_dim b, const char *what, onxi_dim *out)
{
    *out = onxi_dim_mul(call->dims, a, b);
    if (onxi_dim_is_known(*out) || !onxi_dim_is_const(a) || !onxi_dim_is_const(b))
        return ONX_OK;
    return onxi_call_fail(call, "%s overflows 64 bits: %lld times %lld", what, (long long)a, (long long)b);
}

onxi_dim onxi_call_product(onxi_call *call, const onxi_dim *dims, uint32_t first, uint32_t last)
{
    onxi_dim product = 1;
    for (uint32_t i = first; i < last; i++)
        product = onxi_dim_mul(call->dims, product, dims[i]);
    return product;
}

/* ---- values ---- */

bool onxi_known_ints_of_tensor(onx_doc *doc, onx_arena *arena, const onx_tensor *tensor, onxi_known_ints *out)
{
    uint64_t count;
    bool index = tensor->data_type == ONX_INT64 || tensor->data_type == ONX_INT32 || tensor->data_type == ONX_BOOL;
    if ((tensor->dims_count > 1 && !index) || !onx_tensor_count(tensor, &count) || count > ONXI_KNOWN_INTS_LIMIT)
        return false;
    onx_dtype_class class = onx_dtype_class_of(tensor->data_type);
    bool floating = class == ONX_CLASS_FLOATING && onx_dtype_bits(tensor->data_type) >= 16;
    if (!floating && class != ONX_CLASS_SIGNED && class != ONX_CLASS_UNSIGNED && class != ONX_CLASS_BOOLEAN)
        return false;
    size_t room = (count ? (size_t)count : 1) * sizeof(onxi_dim);
    int64_t *elements = onxi_arena_get(arena, room);
    if (!elements || onx_tensor_get_i64(doc, tensor, 0, count, elements) != ONX_OK)
        return false;
    for (uint64_t i = 0; i < count; i++)
        elements[i] = class == ONX_CLASS_UNSIGNED && elements[i] < 0 ? ONXI_DIM_UNKNOWN : onxi_dim_of_int(elements[i]);
    if (floating) {
        double *exact = onxi_arena_get(arena, room);
        if (!exact || onx_tensor_get_f64(doc, tensor, 0, count, exact) != ONX_OK)
            return false;
        for (uint64_t i = 0; i < count; i++)
            if ((double)elements[i] != exact[i])
                elements[i] = ONXI_DIM_UNKNOWN;
    }
    *out = (onxi_known_ints){ .rank = tensor->dims_count, .count = (uint32_t)count, .elements = elements };
    return true;
}
