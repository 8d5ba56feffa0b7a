/* proto_json_write.c - writes JSON in the proto3 mapping with the field names of the .proto, indented by two spaces;
 * lists of numbers and strings are written on one line. */
#include "proto/proto_text.h"

#include <float.h>
#include <stdio.h>

#define HEX(n) (char)((n) < 10 ? '0' + (n) : 'a' - 10 + (n))
#define UNICODE(c)                                                                                                     \
    {                                                                                                                  \
        { '\\', 'u', '0', '0', HEX((c) >> 4), HEX((c)&15) }, 6                                                         \
    }
/* clang-format off */
static const onxi_text_escape escapes[256] = {
    ONXI_TEXT_ROW(UNICODE, 0x00),
    ONXI_TEXT_SHORT('b'), ONXI_TEXT_SHORT('t'), ONXI_TEXT_SHORT('n'), UNICODE(0x0b),
    ONXI_TEXT_SHORT('f'), ONXI_TEXT_SHORT('r'), UNICODE(0x0e), UNICODE(0x0f),
    ONXI_TEXT_ROW(UNICODE, 0x10), ONXI_TEXT_ROW(UNICODE, 0x18),
    ONXI_TEXT_PLAIN(' '), ONXI_TEXT_PLAIN('!'), ONXI_TEXT_SHORT('"'), ONXI_TEXT_PLAIN('#'),
    ONXI_TEXT_PLAIN('$'), ONXI_TEXT_PLAIN('%'), ONXI_TEXT_PLAIN('&'), ONXI_TEXT_PLAIN('\''),
    ONXI_TEXT_LETTERS, UNICODE(0x7f),
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x80), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x88), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x90),
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0x98), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xa0), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xa8),
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xb0), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xb8), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xc0),
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xc8), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xd0), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xd8),
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xe0), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xe8), ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xf0),
    ONXI_TEXT_ROW(ONXI_TEXT_PLAIN, 0xf8),
};
/* clang-format on */

typedef struct json_out {
    onxi_text_out text; /* must be the first member: the shared functions take a pointer to it */
    uint64_t unknown;   /* number of fields that could not be written */
    char unknown_path[256];
    size_t unknown_path_len;
} json_out;

/* ---- values ---- */

static void put_base64(onxi_text_out *out, onx_str bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { CHUNK = 3072 };
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    ONXI_TEXT_PUT(out, "\"");
    for (size_t left = bytes.len; left && out->status == ONX_OK;) {
        size_t n = left < CHUNK ? left : CHUNK;
        char *to = onxi_text_room(out, CHUNK / 3 * 4);
        const unsigned char *end = p + n / 3 * 3;
        left -= n;
        for (; p < end; p += 3, to += 4) {
            uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
            to[0] = letters[v >> 18];
            to[1] = letters[(v >> 12) & 63];
            to[2] = letters[(v >> 6) & 63];
            to[3] = letters[v & 63];
        }
        if (n % 3) { /* the last chunk */
            uint32_t v = (uint32_t)p[0] << 16 | (n % 3 == 2 ? (uint32_t)p[1] << 8 : 0);
            to[0] = letters[v >> 18];
            to[1] = letters[(v >> 12) & 63];
            to[2] = '=';
            if (n % 3 == 2)
                to[2] = letters[(v >> 6) & 63];
            to[3] = '=';
            to += 4;
        }
        out->used = (size_t)(to - out->buffer);
    }
    ONXI_TEXT_PUT(out, "\"");
}

static void put_float(onxi_text_out *out, double value, bool is_double)
{
    if (value != value) {
        ONXI_TEXT_PUT(out, "\"NaN\"");
    } else if (value > DBL_MAX) {
        ONXI_TEXT_PUT(out, "\"Infinity\"");
    } else if (value < -DBL_MAX) {
        ONXI_TEXT_PUT(out, "\"-Infinity\"");
    } else {
        char *to = onxi_text_room(out, 32);
        out->used += is_double ? onxi_print_f64(to, value) : onxi_print_f32(to, (float)value);
    }
}

static void put_name(onxi_text_out *out, const char *name)
{
    ONXI_TEXT_PUT(out, "\"");
    onxi_text_put(out, name, strlen(name));
    ONXI_TEXT_PUT(out, "\"");
}

static onx_status put_string(onxi_text_out *out, const onxi_field *field, const onx_visit *self, onx_str bytes)
{
    size_t valid = onxi_utf8_valid(bytes);
    if (valid != bytes.len)
        return onxi_text_model_fail(out->cx, ONX_E_UNSUPPORTED, self, field->name,
                                    "the string is not UTF-8 at byte %zu, which JSON cannot carry", valid);
    ONXI_TEXT_PUT(out, "\"");
    onxi_text_put_escaped(out, escapes, bytes);
    ONXI_TEXT_PUT(out, "\"");
    return out->status;
}

static onx_status put_value(onxi_text_out *out, const onxi_field *field, const onx_visit *self, const void *value)
{
    switch ((onxi_field_type)field->type) {
    case ONXI_FLOAT:
    case ONXI_DOUBLE:
        put_float(out, onxi_text_load_float(out, field, value), field->type == ONXI_DOUBLE);
        break;
    case ONXI_INT64:
    case ONXI_UINT64:
        ONXI_TEXT_PUT(out, "\"");
        if (field->type == ONXI_UINT64)
            onxi_text_put_u64(out, *(const uint64_t *)value);
        else
            onxi_text_put_i64(out, *(const int64_t *)value);
        ONXI_TEXT_PUT(out, "\"");
        break;
    case ONXI_ENUM: {
        const char *name = onxi_text_enum_name(field, *(const int32_t *)value);
        if (name) {
            put_name(out, name);
            break;
        }
    } /* fall through */
    case ONXI_INT32:
        onxi_text_put_i64(out, *(const int32_t *)value);
        break;
    case ONXI_STRING:
        return put_string(out, field, self, onx_view(*(const onx_bytes *)value));
    case ONXI_BYTES:
        put_base64(out, onx_view(*(const onx_bytes *)value));
        break;
    case ONXI_MESSAGE:
        break;
    }
    return out->status;
}

/* ---- messages ---- */

static void put_line(onxi_text_out *out, uint32_t level)
{
    ONXI_TEXT_PUT(out, "\n");
    onxi_text_indent(out, level);
}

static onx_status put_object(json_out *json, const onxi_message_table *table, const onx_visit *self, uint32_t level);

static onx_status put_list(json_out *json, const onxi_field *field, const char *values, uint64_t count,
                           const onx_visit *self, uint32_t level)
{
    onxi_text_out *out = &json->text;
    size_t size = onxi_field_size(field);
    ONXI_TEXT_PUT(out, "[");
    for (uint64_t i = 0; i < count; i++) {
        if (field->type == ONXI_MESSAGE) {
            if (i)
                ONXI_TEXT_PUT(out, ",");
            put_line(out, level + 1);
            onx_visit child = onxi_text_visit(field, values, self, i);
            ONX_TRY(put_object(json, field->message, &child, level + 1));
        } else {
            if (i)
                ONXI_TEXT_PUT(out, ", ");
            ONX_TRY(put_value(out, field, self, values + i * size));
        }
    }
    if (field->type == ONXI_MESSAGE)
        put_line(out, level);
    ONXI_TEXT_PUT(out, "]");
    return out->status;
}

static void note_unknown(json_out *json, const onx_visit *self)
{
    const onx_message *message = self->message;
    const onx_unknown *unknown = message->extra ? message->extra->unknown : NULL;
    if (unknown && !json->unknown)
        json->unknown_path_len = onxi_text_path(self, NULL, json->unknown_path, sizeof json->unknown_path);
    for (; unknown; unknown = unknown->next)
        json->unknown++;
}

static onx_status put_object(json_out *json, const onxi_message_table *table, const onx_visit *self, uint32_t level)
{
    onxi_text_out *out = &json->text;
    bool first = true;
    ONX_TRY(onxi_text_deeper(out->cx, self));
    note_unknown(json, self);
    ONXI_TEXT_PUT(out, "{");
    for (uint32_t i = 0; i < table->field_count; i++) {
        const onxi_field *field = &table->fields[i];
        const char *values;
        uint64_t count = onxi_text_values(table, field, self->message, &values);
        if (!count)
            continue;
        if (!first)
            ONXI_TEXT_PUT(out, ",");
        first = false;
        put_line(out, level + 1);
        put_name(out, field->name);
        ONXI_TEXT_PUT(out, ": ");
        if (field->flags & ONXI_REPEATED) {
            ONX_TRY(put_list(json, field, values, count, self, level + 1));
        } else if (field->type == ONXI_MESSAGE) {
            onx_visit child = onxi_text_visit(field, values, self, 0);
            ONX_TRY(put_object(json, field->message, &child, level + 1));
        } else {
            ONX_TRY(put_value(out, field, self, values));
        }
    }
    if (!first)
        put_line(out, level);
    ONXI_TEXT_PUT(out, "}");
    return out->status;
}

onx_status onx_json_write(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, message);
    ONXI_NEED(cx, onxi_is_kind(kind));
    ONXI_NEED(cx, sink.write);
    json_out json;
    onxi_text_out *out = &json.text;
    onxi_text_start(out, cx, sink);
    json.unknown = 0;
    onx_visit root = { .kind = kind, .message = (void *)(uintptr_t)message };
    ONX_TRY(put_object(&json, onxi_messages[kind], &root, 0));
    ONXI_TEXT_PUT(out, "\n");
    ONX_TRY(onxi_text_finish(out));
    if (json.unknown)
        onxi_warn(cx, ONX_WARNING, NULL, ONXI_AT_PATH(onx_str_make(json.unknown_path, json.unknown_path_len)),
                  "%llu unknown fields, here and further on, are not written: JSON has no way to express them",
                  (unsigned long long)json.unknown);
    return ONX_OK;
}
