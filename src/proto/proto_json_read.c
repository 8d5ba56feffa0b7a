/* proto_json_read.c - reads JSON in the proto3 mapping, in one pass from the text into the messages. */
#include "proto/proto.h"
#include "proto/proto_text.h"

/* Reads a number, bare or quoted. A quoted word that stands for a float is returned unchanged, with *word_out set. */
static onx_status take_number(onxi_text_in *in, const char *expected, onx_str *out, bool *fractional, bool *word_out)
{
    bool quoted = onxi_json_peek(in) == '"';
    const char *at = in->at;
    *word_out = false;
    if (quoted) {
        ONX_TRY(onxi_json_take_string(in, true, out));
        *word_out = onx_str_is(*out, "NaN") || onx_str_is(*out, "Infinity") || onx_str_is(*out, "-Infinity");
        if (*word_out || (out->len && onxi_json_number_length(*out, fractional) == out->len))
            return ONX_OK;
        in->at = at;
        return onxi_text_expected(in, expected);
    }
    *out = onx_str_make(at, onxi_json_number_length(onx_str_make(at, (size_t)(in->end - at)), fractional));
    if (!out->len)
        return onxi_text_expected(in, expected);
    in->at += out->len;
    return ONX_OK;
}

/* ---- values ---- */

static onx_status read_integer(onxi_text_in *in, const onxi_field *field, void *slot)
{
    onx_str text;
    bool fractional, word, overflow;
    onxi_json_peek(in);
    const char *at = in->at;
    ONX_TRY(take_number(in, "an integer, bare or in quotes", &text, &fractional, &word));
    uint64_t magnitude = 0;
    bool negative = *text.ptr == '-', fits;
    if (word) {
        in->at = at;
        return onxi_text_expected(in, "an integer, bare or in quotes");
    }
    if (fractional) { /* 1e3, 2.0: valid if a double represents the integer exactly */
        double d = 0;
        if (!onxi_parse_f64(text, &d, &overflow) || !(d >= -9007199254740992.0 && d <= 9007199254740992.0) ||
            d != (double)(int64_t)d) {
            in->at = at;
            return onxi_text_expected(in, "an integer");
        }
        magnitude = (uint64_t)(d < 0 ? -d : d);
        fits = true;
    } else {
        fits = onxi_text_digits(onx_str_make(text.ptr + negative, text.len - negative), 10, &magnitude);
    }
    return onxi_text_store_int(in, field, slot, at, negative, magnitude, fits);
}

static onx_status read_float(onxi_text_in *in, const onxi_field *field, void *slot)
{
    onx_str text;
    bool fractional, word, overflow = false;
    float f = 0;
    double d = 0;
    onxi_json_peek(in);
    const char *at = in->at;
    ONX_TRY(take_number(in, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", &text, &fractional, &word));
    bool good = field->type == ONXI_FLOAT ? onxi_parse_f32(text, &f, &overflow) : onxi_parse_f64(text, &d, &overflow);
    if (!good || (overflow && !word)) {
        in->at = at;
        return onxi_text_expected(in, field->type == ONXI_FLOAT ? "a number in the range of 32-bit floats"
                                                                : "a number in the range of 64-bit floats");
    }
    if (field->type == ONXI_FLOAT)
        memcpy(slot, &f, sizeof f);
    else
        memcpy(slot, &d, sizeof d);
    return ONX_OK;
}

static onx_status read_enum(onxi_text_in *in, const onxi_field *field, void *slot)
{
    onx_str name;
    if (onxi_json_peek(in) != '"')
        return read_integer(in, field, slot);
    const char *at = in->at;
    ONX_TRY(onxi_json_take_string(in, true, &name));
    return onxi_text_store_enum(in, field, slot, at, name);
}

/* Decodes base64, standard or URL-safe, padded or not. */
static onx_status read_base64(onxi_text_in *in, void *slot)
{
    onx_str text;
    onxi_json_peek(in);
    const char *at = in->at;
    ONX_TRY(onxi_json_take_string(in, true, &text));
    onx_str bytes;
    ONX_TRY(onxi_json_base64(in->arena, text, &bytes));
    if (!bytes.ptr) {
        in->at = at;
        return onxi_text_expected(in, "bytes in base64");
    }
    return onx_arena_refer(in->arena, bytes, slot);
}

static onx_status read_object(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self);

static onx_status read_value(onxi_text_in *in, const onxi_message_table *table, const onxi_field *field, void *message,
                             const char *name_at)
{
    void *slot;
    onx_str text;
    ONX_TRY(onxi_text_slot(in, table, field, message, name_at, &slot));
    switch ((onxi_field_type)field->type) {
    case ONXI_FLOAT:
    case ONXI_DOUBLE:
        return read_float(in, field, slot);
    case ONXI_INT32:
    case ONXI_INT64:
    case ONXI_UINT64:
        return read_integer(in, field, slot);
    case ONXI_ENUM:
        return read_enum(in, field, slot);
    case ONXI_STRING:
        ONX_TRY(onxi_json_take_string(in, false, &text));
        return onx_arena_refer(in->arena, text, slot);
    case ONXI_BYTES:
        return read_base64(in, slot);
    case ONXI_MESSAGE:
        break;
    }
    onx_visit frame;
    const onx_visit *outer = in->self;
    if (onxi_json_peek(in) != '{')
        return onxi_text_expected(in, "an object");
    ONX_TRY(onxi_text_enter(in, field, slot, onxi_text_index(table, field, message), &frame));
    in->self = &frame;
    ONX_TRY(read_object(in, field->message, &frame));
    in->self = outer;
    in->field = field->name;
    return ONX_OK;
}

/* list = "[" [ value { "," value } ] "]" */
static onx_status read_list(onxi_text_in *in, const onxi_message_table *table, const onxi_field *field, void *message,
                            const char *name_at)
{
    if (onxi_field_count(table, field, message))
        return onxi_text_fail(in, ONX_E_MALFORMED, name_at, onx_str_of(field->name), NULL, "field %s is given twice",
                              field->name);
    if (!onxi_json_take(in, '['))
        return onxi_text_expected(in, "a list");
    for (bool more = !onxi_json_take(in, ']'); more;) {
        ONX_TRY(read_value(in, table, field, message, name_at));
        more = onxi_json_take(in, ',');
        if (!more && !onxi_json_take(in, ']'))
            return onxi_text_expected(in, ", or ]");
    }
    return ONX_OK;
}

/* object = "{" [ name ":" value { "," name ":" value } ] "}"; a null value means that the field is absent */
static onx_status read_object(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self)
{
    uint32_t hint = 0;
    in->field = NULL;
    if (!onxi_json_take(in, '{'))
        return onxi_text_expected(in, "an object");
    for (bool more = !onxi_json_take(in, '}'); more;) {
        onx_str name;
        in->field = NULL;
        if (onxi_json_peek(in) != '"')
            return onxi_text_expected(in, "the name of a field in quotes");
        const char *at = in->at;
        ONX_TRY(onxi_json_take_string(in, true, &name));
        const onxi_field *field = onxi_text_find(table, name, true, &hint);
        if (!field)
            return onxi_text_fail(in, ONX_E_MALFORMED, at, name, NULL, "%s has no field of that name", table->name);
        in->field = field->name;
        if (!onxi_json_take(in, ':'))
            return onxi_text_expected(in, ":");
        onxi_json_peek(in);
        if (!onxi_json_take_word(in, "null"))
            ONX_TRY(field->flags & ONXI_REPEATED ? read_list(in, table, field, self->message, at)
                                                 : read_value(in, table, field, self->message, at));
        hint++;
        more = onxi_json_take(in, ',');
        if (!more && !onxi_json_take(in, '}'))
            return onxi_text_expected(in, ", or }");
    }
    return ONX_OK;
}

static onx_status read_root(onxi_text_in *in, const onxi_message_table *table, const onx_visit *root)
{
    ONX_TRY(read_object(in, table, root));
    in->field = NULL;
    onxi_json_peek(in);
    return in->at == in->end ? ONX_OK : onxi_text_expected(in, "the end of the text");
}

onx_status onx_json_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_doc_free, onxi_text_read(cx, kind, text, read_root, out));
}
