/* proto_textproto_write.c - writes protobuf text: the output of `protoc --decode`, byte for byte, except for two cases
 * of unknown fields that protoc prints with loss of information (docs/notes/textproto_json.md). */
#include "proto/proto_text.h"

/* protobuf's CEscape */
#define OCTAL(c)                                                                                                       \
    {                                                                                                                  \
        { '\\', (char)('0' + ((c) >> 6)), (char)('0' + (((c) >> 3) & 7)), (char)('0' + ((c)&7)) }, 4                   \
    }
/* clang-format off */
static const onxi_text_escape escapes[256] = {
    ONXI_TEXT_ROW(OCTAL, 0x00),
    OCTAL(0x08), ONXI_TEXT_SHORT('t'), ONXI_TEXT_SHORT('n'), OCTAL(0x0b),
    OCTAL(0x0c), ONXI_TEXT_SHORT('r'), OCTAL(0x0e), OCTAL(0x0f),
    ONXI_TEXT_ROW(OCTAL, 0x10), ONXI_TEXT_ROW(OCTAL, 0x18),
    ONXI_TEXT_PLAIN(' '), ONXI_TEXT_PLAIN('!'), ONXI_TEXT_SHORT('"'), ONXI_TEXT_PLAIN('#'),
    ONXI_TEXT_PLAIN('$'), ONXI_TEXT_PLAIN('%'), ONXI_TEXT_PLAIN('&'), ONXI_TEXT_SHORT('\''),
    ONXI_TEXT_LETTERS, OCTAL(0x7f),
    ONXI_TEXT_ROW(OCTAL, 0x80), ONXI_TEXT_ROW(OCTAL, 0x88), ONXI_TEXT_ROW(OCTAL, 0x90),
    ONXI_TEXT_ROW(OCTAL, 0x98), ONXI_TEXT_ROW(OCTAL, 0xa0), ONXI_TEXT_ROW(OCTAL, 0xa8),
    ONXI_TEXT_ROW(OCTAL, 0xb0), ONXI_TEXT_ROW(OCTAL, 0xb8), ONXI_TEXT_ROW(OCTAL, 0xc0),
    ONXI_TEXT_ROW(OCTAL, 0xc8), ONXI_TEXT_ROW(OCTAL, 0xd0), ONXI_TEXT_ROW(OCTAL, 0xd8),
    ONXI_TEXT_ROW(OCTAL, 0xe0), ONXI_TEXT_ROW(OCTAL, 0xe8), ONXI_TEXT_ROW(OCTAL, 0xf0),
    ONXI_TEXT_ROW(OCTAL, 0xf8),
};
/* clang-format on */

static void put_string(onxi_text_out *out, onx_str bytes)
{
    ONXI_TEXT_PUT(out, "\"");
    onxi_text_put_escaped(out, escapes, bytes);
    ONXI_TEXT_PUT(out, "\"");
}

/* ---- unknown fields ---- */

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP = 3, GROUP_END = 4, FIXED32 = 5 };

typedef struct wire_piece {
    uint32_t number, type;
    uint64_t value;  /* varint, fixed, length */
    onx_str content; /* length-delimited */
    bool canonical;  /* varints in their shortest form */
} wire_piece;

static bool take_varint(onx_str *rest, uint64_t *out, bool *canonical)
{
    *out = 0;
    for (unsigned i = 0; i < 10 && i < rest->len; i++) {
        uint64_t byte = (unsigned char)rest->ptr[i];
        *out |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = onx_str_make(rest->ptr + i + 1, rest->len - i - 1);
            *canonical &= (byte != 0 || i == 0) && (i < 9 || byte == 1);
            return true;
        }
    }
    return false;
}

static onx_str take_bytes(onx_str *rest, size_t len)
{
    onx_str taken = onx_str_make(rest->ptr, len);
    *rest = onx_str_make(rest->ptr + len, rest->len - len);
    return taken;
}

/* Reads the next field; of a group only its tag. */
static bool take_piece(onx_str *rest, wire_piece *out)
{
    uint64_t tag;
    *out = (wire_piece){ .canonical = true };
    if (!take_varint(rest, &tag, &out->canonical) || tag > UINT32_MAX || tag < 8)
        return false;
    out->number = (uint32_t)(tag >> 3);
    out->type = (uint32_t)(tag & 7);
    if (out->type == FIXED64 || out->type == FIXED32) {
        size_t len = out->type == FIXED64 ? 8 : 4;
        if (rest->len < len)
            return false;
        onx_str bytes = take_bytes(rest, len);
        for (size_t i = 0; i < len; i++)
            out->value |= (uint64_t)(unsigned char)bytes.ptr[i] << (8 * i);
        return true;
    }
    if (out->type == GROUP || out->type == GROUP_END)
        return true;
    if (out->type > FIXED32 || !take_varint(rest, &out->value, &out->canonical))
        return false;
    if (out->type == LENGTH) {
        if (out->value > rest->len)
            return false;
        out->content = take_bytes(rest, (size_t)out->value);
    }
    return true;
}

/* Can the bytes be printed as a message without loss? Groups and overlong varints cannot. */
static bool is_message(onx_str bytes)
{
    bool yes = bytes.len != 0;
    for (wire_piece piece; yes && bytes.len;)
        yes = take_piece(&bytes, &piece) && piece.canonical && piece.type != GROUP && piece.type != GROUP_END;
    return yes;
}

static void put_hex(onxi_text_out *out, uint64_t value, unsigned digits)
{
    ONXI_TEXT_PUT(out, ": 0x");
    for (unsigned i = digits; i > 0; i--)
        onxi_text_put(out, &"0123456789abcdef"[(value >> (4 * (i - 1))) & 15], 1);
    ONXI_TEXT_PUT(out, "\n");
}

/* Prints fields up to the end of the bytes or of the group; false if they are not valid wire data. Messages are printed
 * down to depth `budget`; `level` bounds groups. */
static bool put_pieces(onxi_text_out *out, onx_str *rest, uint32_t level, uint32_t budget, bool in_group)
{
    while (rest->len) {
        wire_piece piece;
        bool good = take_piece(rest, &piece);
        if (!good || piece.type == GROUP_END)
            return good && in_group;
        onxi_text_indent(out, level);
        onxi_text_put_u64(out, piece.number);
        if (piece.type == VARINT) {
            ONXI_TEXT_PUT(out, ": ");
            onxi_text_put_u64(out, piece.value);
            ONXI_TEXT_PUT(out, "\n");
        } else if (piece.type == GROUP) {
            ONXI_TEXT_PUT(out, " <\n");
            if (level > 2 * ONX_DEPTH_MAX || !put_pieces(out, rest, level + 1, budget, true))
                return false;
            onxi_text_indent(out, level);
            ONXI_TEXT_PUT(out, ">\n");
        } else if (piece.type != LENGTH) {
            put_hex(out, piece.value, piece.type == FIXED64 ? 16 : 8);
        } else if (budget && is_message(piece.content)) {
            ONXI_TEXT_PUT(out, " {\n");
            put_pieces(out, &piece.content, level + 1, budget - 1, false);
            onxi_text_indent(out, level);
            ONXI_TEXT_PUT(out, "}\n");
        } else {
            ONXI_TEXT_PUT(out, ": ");
            put_string(out, piece.content);
            ONXI_TEXT_PUT(out, "\n");
        }
    }
    return !in_group;
}

/* ---- messages ---- */

static void put_value(onxi_text_out *out, const onxi_field *field, const void *value)
{
    switch ((onxi_field_type)field->type) {
    case ONXI_FLOAT:
    case ONXI_DOUBLE: {
        double d = onxi_text_load_float(out, field, value);
        out->used += onxi_text_print_float(onxi_text_room(out, 32), d, field->type == ONXI_DOUBLE);
        break;
    }
    case ONXI_UINT64:
        onxi_text_put_u64(out, *(const uint64_t *)value);
        break;
    case ONXI_ENUM: {
        const char *name = onxi_text_enum_name(field, *(const int32_t *)value);
        if (name) {
            onxi_text_put(out, name, strlen(name));
            break;
        }
    } /* fall through */
    case ONXI_INT32:
    case ONXI_INT64:
        onxi_text_put_i64(out, onxi_text_load_int(field, value));
        break;
    case ONXI_STRING:
    case ONXI_BYTES:
        put_string(out, onx_view(*(const onx_bytes *)value));
        break;
    case ONXI_MESSAGE:
        break;
    }
}

static onx_status put_message(onxi_text_out *out, const onxi_message_table *table, const onx_visit *self);

static onx_status put_field(onxi_text_out *out, const onxi_message_table *table, const onxi_field *field,
                            const onx_visit *self)
{
    const char *values;
    uint64_t count = onxi_text_values(table, field, self->message, &values);
    size_t name_len = count ? strlen(field->name) : 0, size = onxi_field_size(field);
    for (uint64_t i = 0; i < count && out->status == ONX_OK; i++) {
        onxi_text_indent(out, self->depth);
        onxi_text_put(out, field->name, name_len);
        if (field->type == ONXI_MESSAGE) {
            onx_visit child = onxi_text_visit(field, values, self, i);
            ONXI_TEXT_PUT(out, " {\n");
            ONX_TRY(put_message(out, field->message, &child));
            onxi_text_indent(out, self->depth);
            ONXI_TEXT_PUT(out, "}\n");
        } else {
            ONXI_TEXT_PUT(out, ": ");
            put_value(out, field, values + i * size);
            ONXI_TEXT_PUT(out, "\n");
        }
    }
    return out->status;
}

static onx_status put_message(onxi_text_out *out, const onxi_message_table *table, const onx_visit *self)
{
    const onx_message *message = self->message;
    ONX_TRY(onxi_text_deeper(out->cx, self));
    for (uint32_t i = 0; i < table->field_count; i++)
        ONX_TRY(put_field(out, table, &table->fields[i], self));
    for (const onx_unknown *u = message->extra ? message->extra->unknown : NULL; u; u = u->next) {
        onx_str bytes = onx_view(u->bytes);
        if (!put_pieces(out, &bytes, self->depth, ONXI_UNKNOWN_DEPTH, false))
            return onxi_text_model_fail(out->cx, ONX_E_INVALID, self, NULL, "unknown field %u does not hold wire data",
                                        u->number);
    }
    return out->status;
}

onx_status onx_textproto_write(onx_ctx *cx, onx_kind kind, const void *message, onx_sink sink)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, message);
    ONXI_NEED(cx, onxi_is_kind(kind));
    ONXI_NEED(cx, sink.write);
    onxi_text_out out;
    onxi_text_start(&out, cx, sink);
    onx_visit root = { .kind = kind, .message = (void *)(uintptr_t)message };
    ONX_TRY(put_message(&out, onxi_messages[kind], &root));
    return onxi_text_finish(&out);
}
