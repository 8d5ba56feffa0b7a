/* text_parse_tensor.c - tensor literals: elements in the typed fields, external data, conversion to raw_data. */
#include "text/text.h"

#include <stdio.h>

/* Where the elements of a type are stored, and the range of a literal; table 1.9a of the rules. */
onxi_text_element onxi_text_element_of(int64_t dtype)
{
    const onxi_dtype_row *row = onxi_dtype_row_of(dtype);
    const bool number = row->field == ONXI_IN_FLOAT || row->field == ONXI_IN_DOUBLE;
    onxi_text_element e = { .storage = row->field, .bits = row->bits };
    if (!row->field)
        return e;
    e.packed = (uint8_t)(row->entry == ONXI_ENTRY_BYTE ? 8 / row->bits : 1);
    e.parts = row->entry == ONXI_ENTRY_PAIR ? 2 : 1;
    e.is_signed = row->class == ONX_CLASS_SIGNED || number;
    if (number || row->field == ONXI_IN_STRING || (row->bits == 64 && !e.is_signed))
        return e; /* the range is that of the C type */
    const unsigned bits = row->class == ONX_CLASS_BOOLEAN ? 1 : row->bits;
    e.max = INT64_MAX >> (64 - bits - !e.is_signed);
    e.min = e.is_signed ? -e.max - 1 : 0;
    return e;
}

/* ---- one literal ---- */

/* A hint about the token that was found instead of a number. */
static bool no_number(onxi_text_parser *p, const char *at, const char *type)
{
    onx_str word = onxi_text_look_ident(p);
    char c = at < p->end ? *at : '\0';
    const char *hint = NULL;
    if (onx_str_is(word, "true") || onx_str_is(word, "false"))
        hint = "booleans are written 1 and 0";
    else if (c == '"')
        hint = "only tensors of strings hold quoted values";
    else if (c == '.')
        hint = "a digit must stand before the point: 0.5";
    else if (c == '+')
        hint = "a plus sign is not part of a number";
    else if (c == '}')
        hint = onxi_text_hint_behind_comma(p);
    else if (c == '{' || c == '[')
        hint = "all values stand in one list, row by row: float[2, 2] {1, 2, 3, 4}";
    return onxi_text_parse_error(p, at, "a number", hint, "an element of a tensor of %s must be a number", type);
}

static bool store(onxi_text_parser *p, const void *value, size_t size)
{
    if (!onxi_text_data_reserve(p, size))
        return false;
    memcpy(p->data + p->data_len, value, size);
    p->data_len += size;
    return true;
}

static bool store_float(onxi_text_parser *p, const char *at, onx_str text)
{
    float value;
    bool overflow = false;
    if (!onxi_parse_f32(text, &value, &overflow) || overflow)
        return onxi_text_parse_error(p, at, "a number of at most 3.4028235e38", NULL,
                                     "this value is out of the range of float");
    return store(p, &value, sizeof value);
}

static bool store_double(onxi_text_parser *p, const char *at, onx_str text)
{
    double value;
    bool overflow = false;
    if (!onxi_parse_f64(text, &value, &overflow) || overflow)
        return onxi_text_parse_error(p, at, "a number of at most 1.7976931348623157e308", NULL,
                                     "this value is out of the range of double");
    return store(p, &value, sizeof value);
}

/* Reports a value that is out of range for the type: an error or, if the field can hold it and the caller allows it, a
 * warning. */
static bool out_of_range(onxi_text_parser *p, const char *at, const onxi_text_element *e, const char *type,
                         bool storable)
{
    char range[64];
    if (storable && (p->flags & ONX_TEXT_LENIENT) && e->packed == 1) {
        onxi_text_parse_warn(p, at, ONX_WARNING, NULL, "this value is out of the range of %s", type);
        return true;
    }
    if (e->storage == ONXI_IN_UINT64)
        snprintf(range, sizeof range, "0 to %s", e->bits == 32 ? "4294967295" : "18446744073709551615");
    else
        snprintf(range, sizeof range, "%lld to %lld", (long long)e->min, (long long)e->max);
    return onxi_text_parse_error(p, at, range, NULL, "this value is out of the range of %s", type);
}

static bool store_uint64(onxi_text_parser *p, const char *at, onx_str text, const onxi_text_element *e,
                         const char *type)
{
    uint64_t value;
    bool negative = text.ptr[0] == '-';
    if (!onxi_text_uint_of(onx_str_make(text.ptr + negative, text.len - negative), &value) || (negative && value > 0))
        return out_of_range(p, at, e, type, false);
    if (e->bits == 32 && value > UINT32_MAX && !out_of_range(p, at, e, type, true))
        return false;
    return store(p, &value, sizeof value);
}

static bool store_int(onxi_text_parser *p, const char *at, onx_str text, const onxi_text_element *e, const char *type)
{
    int64_t value;
    if (!onxi_text_int_of(text, &value))
        return out_of_range(p, at, e, type, false);
    if (e->storage == ONXI_IN_INT64)
        return store(p, &value, sizeof value);
    if (value < INT32_MIN || value > INT32_MAX)
        return out_of_range(p, at, e, type, false);
    if ((value < e->min || value > e->max) && !out_of_range(p, at, e, type, true))
        return false;
    int32_t narrow = (int32_t)value;
    return store(p, &narrow, sizeof narrow);
}

static bool store_literal(onxi_text_parser *p, const onxi_text_element *e, int32_t dtype)
{
    onxi_text_gap(p);
    const char *at = p->at, *type = onx_dtype_name(dtype);
    if (e->storage == ONXI_IN_STRING) {
        onx_bytes text;
        if (at >= p->end || *at != '"')
            return onxi_text_parse_error(p, at, "a string", NULL, "an element of a tensor of string must be quoted");
        return onxi_text_take_string(p, &text) && store(p, &text, sizeof text);
    }
    onx_str text;
    bool ok;
    onxi_text_literal_kind kind = onxi_text_take_number(p, &text, &ok);
    if (!ok)
        return false;
    if (kind == ONXI_LITERAL_NONE)
        return no_number(p, at, type);
    if (e->storage == ONXI_IN_FLOAT)
        return store_float(p, at, text);
    if (e->storage == ONXI_IN_DOUBLE)
        return store_double(p, at, text);
    if (kind == ONXI_LITERAL_FLOAT)
        return onxi_text_parse_error(p, at, "an integer",
                                     onx_dtype_class_of(dtype) == ONX_CLASS_FLOATING
                                         ? "the elements of this type are written as bit patterns"
                                         : NULL,
                                     "an element of a tensor of %s must be an integer", type);
    if (e->storage == ONXI_IN_UINT64)
        return store_uint64(p, at, text, e, type);
    return store_int(p, at, text, e, type);
}

/* ---- all elements ---- */

/* The elements of a byte are packed into one entry, the first in the low bits. */
static void pack_entries(onxi_text_parser *p, const onxi_text_element *e, uint64_t *count)
{
    uint64_t entries = (*count + e->packed - 1) / e->packed;
    uint32_t mask = (1u << e->bits) - 1;
    for (uint64_t i = 0; i < entries; i++) {
        uint32_t byte = 0;
        for (uint64_t k = 0; k < e->packed && i * e->packed + k < *count; k++) {
            int32_t value;
            memcpy(&value, p->data + (i * e->packed + k) * sizeof value, sizeof value);
            byte |= ((uint32_t)value & mask) << (k * e->bits);
        }
        memcpy(p->data + i * sizeof byte, &byte, sizeof byte);
    }
    *count = entries;
}

static bool adopt_data(onxi_text_parser *p, onx_tensor *tensor, const onxi_text_element *e, uint64_t count)
{
    static const uint8_t sizes[] = { [ONXI_IN_FLOAT] = 4,  [ONXI_IN_INT32] = 4,  [ONXI_IN_INT64] = 8,
                                     [ONXI_IN_DOUBLE] = 8, [ONXI_IN_UINT64] = 8, [ONXI_IN_STRING] = 8 };
    if (e->packed > 1)
        pack_entries(p, e, &count);
    if (count == 0)
        return true;
    if (count > UINT32_MAX && e->storage == ONXI_IN_STRING)
        return onxi_text_parse_error(p, p->at, NULL, NULL, "a tensor of more than %u strings is too large", UINT32_MAX);
    size_t bytes = (size_t)count * sizes[e->storage];
    void *data = onxi_arena_get(p->arena, (size_t)onxi_list_room(count) * sizes[e->storage]);
    if (!data)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    memcpy(data, p->data, bytes);
    switch (e->storage) {
    case ONXI_IN_FLOAT:
        tensor->float_data = data;
        tensor->float_data_count = count;
        break;
    case ONXI_IN_INT32:
        tensor->int32_data = data;
        tensor->int32_data_count = count;
        break;
    case ONXI_IN_INT64:
        tensor->int64_data = data;
        tensor->int64_data_count = count;
        break;
    case ONXI_IN_DOUBLE:
        tensor->double_data = data;
        tensor->double_data_count = count;
        break;
    case ONXI_IN_UINT64:
        tensor->uint64_data = data;
        tensor->uint64_data_count = count;
        break;
    default:
        tensor->string_data = data;
        tensor->string_data_count = (uint32_t)count;
        break;
    }
    return true;
}

/* The number of elements in the shape times the literals per element; false on overflow or for a negative dimension. */
static bool expected_count(const onx_tensor *tensor, const onxi_text_element *e, uint64_t *out)
{
    uint64_t n;
    return onx_tensor_count(tensor, &n) && onxi_mul_u64(n, e->parts, out);
}

/* "{" [ literal { "," literal } ] "}"; the opening brace has been consumed */
static bool parse_elements(onxi_text_parser *p, const char *at, onx_tensor *tensor)
{
    onxi_text_element e = onxi_text_element_of(tensor->data_type);
    uint64_t count = 0, expected = 0;
    bool fits = expected_count(tensor, &e, &expected);
    p->data_len = 0;
    if (!onxi_text_take(p, '}')) {
        do {
            if (!store_literal(p, &e, tensor->data_type))
                return false;
            count++;
        } while (onxi_text_take(p, ','));
        if (!onxi_text_expect(p, '}', "',' or '}'", "the list of values"))
            return false;
    }
    if (fits && e.parts == 2 && count && count == expected / 2) {
        onxi_text_parse_warn(
            p, at, ONX_WARNING, NULL,
            "each complex element is two numbers, real and imaginary part; this tensor has one for each");
    } else if (!fits || count != expected) {
        char want[48];
        snprintf(want, sizeof want, fits ? "%llu values" : "a smaller shape", (unsigned long long)expected);
        if (!(p->flags & ONX_TEXT_LENIENT) || (e.packed > 1 && !fits))
            return onxi_text_parse_error(
                p, at, NULL, e.parts == 2 ? "each complex element is two numbers, real and imaginary part" : NULL,
                "the tensor has %llu values where its shape calls for %s", (unsigned long long)count, want);
        onxi_text_parse_warn(p, at, ONX_WARNING, NULL, "the tensor has %llu values where its shape calls for %s",
                             (unsigned long long)count, want);
    }
    return adopt_data(p, tensor, &e, count);
}

/* pairs = pair { "," pair } ; pair = string ":" string; up to the closing bracket */
bool onxi_text_parse_pairs(onxi_text_parser *p, void ***list, uint32_t *count, const char *what)
{
    size_t base = p->stack_count;
    for (uint32_t i = 0; i < *count; i++) /* repeated header keys append */
        if (!onxi_text_push_ptr(p, (*list)[i]))
            return false;
    bool ok = true;
    do {
        onx_string_string_entry *entry = ONXI_NEW(p->arena, onx_string_string_entry);
        if (!entry)
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
        entry->has = onx_string_string_entry_has_key | onx_string_string_entry_has_value;
        if (onxi_text_peek(p) != '"')
            ok = onxi_text_parse_error(
                p, p->at, "\"key\" : \"value\"",
                onxi_text_char_is(onxi_text_peek(p), ONXI_CHAR_DIGIT) ? "values stand in braces: {1, 2}" : NULL,
                "a key of %s must be quoted", what);
        onxi_text_mark_part(p, entry, p->at);
        ok = ok && onxi_text_take_string(p, &entry->key) && onxi_text_expect(p, ':', "':'", what);
        if (ok && onxi_text_peek(p) != '"')
            ok = onxi_text_parse_error(p, p->at, "a string", NULL, "a value of %s must be quoted", what);
        ok = ok && onxi_text_take_string(p, &entry->value) && onxi_text_push_ptr(p, entry);
    } while (ok && onxi_text_take(p, ','));
    *list = onxi_text_pop_pointers(p, base, count);
    return ok && !p->fatal && onxi_text_expect(p, ']', "',' or ']'", what);
}

/* data = "{" [ literal { "," literal } ] "}" | "[" pairs "]" */
bool onxi_text_parse_tensor_data(onxi_text_parser *p, onx_tensor *tensor)
{
    onxi_text_gap(p);
    const char *at = p->at;
    if (onxi_text_take(p, '{'))
        return parse_elements(p, at, tensor);
    if (onxi_text_take(p, '[')) {
        ONX_SET(tensor, tensor, data_location, ONX_DATA_EXTERNAL);
        return onxi_text_parse_pairs(p, (void ***)(void *)&tensor->external_data, &tensor->external_data_count,
                                     "the external data");
    }
    const char *hint =
        onxi_text_char_is(*(at < p->end ? at : ","), ONXI_CHAR_DIGIT) ? "values stand in braces: {1, 2}" : NULL;
    return onxi_text_parse_error(p, at, "{values} or [\"location\" : \"file\"]", hint,
                                 "the value of a tensor is missing");
}

bool onxi_text_tensor_from_type(onxi_text_parser *p, const char *at, const onx_type *type, onx_tensor *tensor)
{
    if (!(type->has & onx_type_has_tensor_type))
        return onxi_text_parse_error(p, at, NULL, NULL, "only tensors have values, this is another type");
    const onx_type_tensor *t = type->tensor_type;
    if (!t->shape)
        return onxi_text_parse_error(p, at, NULL, "write its dimensions, or no brackets for a scalar",
                                     "a tensor with values cannot have an unknown rank");
    const onx_tensor_shape *shape = t->shape;
    ONX_SET(tensor, tensor, data_type, t->elem_type);
    if (shape->dim_count == 0)
        return true;
    tensor->dims = onxi_arena_get(p->arena, (size_t)onxi_list_room(shape->dim_count) * sizeof *tensor->dims);
    if (!tensor->dims)
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    for (uint32_t i = 0; i < shape->dim_count; i++) {
        const onx_dimension *dim = shape->dim[i];
        if (!ONX_HAS(dimension, dim, dim_value))
            return onxi_text_parse_error(p, at, NULL, NULL, "dimension %u of a tensor with values must be a number", i);
        if (dim->dim_value < 0)
            return onxi_text_parse_error(p, at, NULL, NULL, "dimension %u of a tensor with values is negative (%lld)",
                                         i, (long long)dim->dim_value);
        tensor->dims[i] = dim->dim_value;
    }
    tensor->dims_count = shape->dim_count;
    return true;
}

bool onxi_text_parse_tensor(onxi_text_parser *p, const char *at, const onx_type *type, onx_tensor *tensor)
{
    onx_type *own = NULL;
    if (!type && !onxi_text_parse_type(p, &own))
        return false;
    p->target[ONXI_TARGET_TENSOR] = tensor;
    onxi_text_mark_part(p, tensor, at);
    if (!onxi_text_tensor_from_type(p, at, type ? type : own, tensor))
        return false;
    char c = onxi_text_peek(p);
    if (c == '"' || onxi_text_char_is(c, ONXI_CHAR_LETTER)) {
        tensor->has |= onx_tensor_has_name;
        onxi_text_mark_part(p, &tensor->name, p->at);
        if (!onxi_text_take_name(p, &tensor->name, "a name"))
            return false;
    }
    onxi_text_take(p, '=');
    return onxi_text_parse_tensor_data(p, tensor);
}

/* ---- raw_data ---- */

static const void *typed_data(const onx_tensor *t, uint8_t storage, uint64_t *count)
{
    switch (storage) {
    case ONXI_IN_FLOAT:
        *count = t->float_data_count;
        return t->float_data;
    case ONXI_IN_INT32:
        *count = t->int32_data_count;
        return t->int32_data;
    case ONXI_IN_INT64:
        *count = t->int64_data_count;
        return t->int64_data;
    case ONXI_IN_DOUBLE:
        *count = t->double_data_count;
        return t->double_data;
    case ONXI_IN_UINT64:
        *count = t->uint64_data_count;
        return t->uint64_data;
    default:
        *count = 0;
        return NULL;
    }
}

bool onxi_text_tensor_to_raw(onx_arena *arena, onx_tensor *tensor)
{
    onxi_text_element e = onxi_text_element_of(tensor->data_type);
    uint64_t elements, count, bytes, entries;
    if (e.storage == ONXI_IN_STRING || !expected_count(tensor, &e, &entries) || !onx_tensor_count(tensor, &elements) ||
        !onx_dtype_size(tensor->data_type, elements, &bytes))
        return false;
    const char *data = typed_data(tensor, e.storage, &count);
    if (count != (entries + e.packed - 1) / e.packed || ONX_HAS(tensor, tensor, raw_data))
        return false;
    size_t size = count ? (size_t)(bytes / count) : 0; /* size of an entry in raw_data */
    bool wide = e.storage == ONXI_IN_INT64 || e.storage == ONXI_IN_DOUBLE || e.storage == ONXI_IN_UINT64;
    char *raw = onxi_arena_get(arena, bytes ? (size_t)bytes : 1);
    if (!raw)
        return false;
    if (e.bits < 8 && e.packed == 1) {
        memset(raw, 0, (size_t)bytes);
        for (uint64_t i = 0; i < count; i++)
            onxi_packed_set(raw, e.bits, i, (unsigned)tensor->int32_data[i]);
    } else {
        for (uint64_t i = 0; i < count; i++) /* little-endian: the low bytes of an entry are its raw form */
            memcpy(raw + i * size, data + i * (wide ? 8 : 4), size);
    }
    if (!onxi_bytes_refer(arena, raw, (size_t)bytes, &tensor->raw_data))
        return false;
    tensor->has |= onx_tensor_has_raw_data;
    tensor->float_data = tensor->double_data = NULL;
    tensor->int32_data = NULL;
    tensor->int64_data = NULL;
    tensor->uint64_data = NULL;
    tensor->float_data_count = tensor->double_data_count = 0;
    tensor->int32_data_count = tensor->int64_data_count = tensor->uint64_data_count = 0;
    return true;
}
