/* proto_json_read.c - reads JSON by the proto3 mapping, in one pass from the text into the messages. */
#include "proto/proto_text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- scanning ---- */

static char peek(onxi_text_in *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
        in->at++;
    return in->at < in->end ? *in->at : 0;
}

static bool take(onxi_text_in *in, char c)
{
    if (peek(in) != c || in->at == in->end)
        return false;
    in->at++;
    return true;
}

static bool take_word(onxi_text_in *in, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

static bool hex4(const char *p, const char *end, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p + i < end ? onxi_text_hex(p[i]) : -1;
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* The escape at p, a backslash, as bytes; returns the place behind it, NULL when it is none. */
static const char *escape(const char *p, const char *end, char bytes[4], size_t *len_out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    char c = end - p >= 2 ? p[1] : 0;
    const char *simple = c ? strchr(letters, c) : NULL;
    *len_out = 1;
    if (simple) {
        bytes[0] = meanings[simple - letters];
        return p + 2;
    }
    if (c != 'u' || !hex4(p + 2, end, &code))
        return NULL;
    p += 6;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || end - p < 6 || p[0] != '\\' || p[1] != 'u' || !hex4(p + 2, end, &low) || low < 0xdc00 ||
            low >= 0xe000)
            return NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    *len_out = onxi_text_utf8(code, bytes);
    return p;
}

/* Finds the end of a string and whether it has escapes; UTF-8 and escapes are checked. `raw_out` is what stands
 * between the quotes. */
static onx_status scan_string(onxi_text_in *in, onx_str *raw_out, bool *escaped_out)
{
    const char *from = in->at + 1, *p = from;
    char bytes[4];
    size_t len;
    unsigned char any = 0;
    *escaped_out = false;
    for (; p < in->end && *p != '"'; p++) {
        any |= (unsigned char)*p;
        if ((unsigned char)*p < 0x20)
            break;
        if (*p == '\\') {
            *escaped_out = true;
            const char *behind = escape(p, in->end, bytes, &len);
            if (!behind) {
                in->at = p;
                return onxi_text_expected(in,
                                          "an escape of JSON: \\n \\\" \\\\ \\uhhhh or the like, surrogates in pairs");
            }
            p = behind - 1;
        }
    }
    if (p == in->end || *p != '"') {
        in->at = p == in->end ? from - 1 : p;
        return onxi_text_expected(in, p == in->end ? "the quote that ends the string"
                                                   : "no control character in a string, but its escape");
    }
    *raw_out = onx_str_make(from, (size_t)(p - from));
    size_t valid = any & 0x80 ? onxi_utf8_valid(*raw_out) : raw_out->len;
    if (valid != raw_out->len) {
        in->at = from + valid;
        return onxi_text_expected(in, "a string in UTF-8");
    }
    in->at = p + 1;
    return ONX_OK;
}

/* The text of a string: in the input when it has no escapes and `borrow`, else in the arena. */
static onx_status take_string(onxi_text_in *in, bool borrow, onx_str *out)
{
    bool escaped;
    onx_str raw;
    if (peek(in) != '"')
        return onxi_text_expected(in, "a string");
    ONX_TRY(scan_string(in, &raw, &escaped));
    *out = raw;
    if (!escaped && borrow)
        return ONX_OK;
    char *to = onxi_arena_get(in->arena, raw.len + 1); /* escapes are longer than what they stand for */
    if (!to)
        return ONX_E_MEMORY;
    *out = onx_str_make(to, raw.len);
    if (!escaped) {
        if (raw.len)
            memcpy(to, raw.ptr, raw.len);
        return ONX_OK;
    }
    for (const char *p = raw.ptr, *end = p + raw.len; p < end;) {
        size_t len = 1;
        if (*p == '\\')
            p = escape(p, end, to, &len);
        else
            *to = *p++;
        to += len;
    }
    out->len = (size_t)(to - out->ptr);
    return ONX_OK;
}

/* The length of the JSON number at the start of `text`, 0 when there is none; *fractional: it has a point or exponent.
 */
static size_t number_length(onx_str text, bool *fractional)
{
    const char *p = text.ptr, *end = p + text.len;
    *fractional = false;
    p += p < end && *p == '-';
    if (p == end || !is_digit(*p))
        return 0;
    if (*p == '0')
        p++;
    else
        while (p < end && is_digit(*p))
            p++;
    if (end - p >= 2 && *p == '.' && is_digit(p[1])) {
        *fractional = true;
        for (p++; p < end && is_digit(*p);)
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        q += q < end && (*q == '+' || *q == '-');
        if (q == end || !is_digit(*q))
            return 0;
        *fractional = true;
        for (p = q; p < end && is_digit(*p);)
            p++;
    }
    return (size_t)(p - text.ptr);
}

/* A number, bare or in quotes. Words in quotes that stand for floats are given as they are, with *word_out set. */
static onx_status take_number(onxi_text_in *in, const char *expected, onx_str *out, bool *fractional, bool *word_out)
{
    bool quoted = peek(in) == '"';
    const char *at = in->at;
    *word_out = false;
    if (quoted) {
        ONX_TRY(take_string(in, true, out));
        *word_out = onx_str_is(*out, "NaN") || onx_str_is(*out, "Infinity") || onx_str_is(*out, "-Infinity");
        if (*word_out || (out->len && number_length(*out, fractional) == out->len))
            return ONX_OK;
        in->at = at;
        return onxi_text_expected(in, expected);
    }
    *out = onx_str_make(at, number_length(onx_str_make(at, (size_t)(in->end - at)), fractional));
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
    peek(in);
    const char *at = in->at;
    ONX_TRY(take_number(in, "an integer, bare or in quotes", &text, &fractional, &word));
    uint64_t magnitude = 0;
    bool negative = *text.ptr == '-', fits;
    if (word) {
        in->at = at;
        return onxi_text_expected(in, "an integer, bare or in quotes");
    }
    if (fractional) { /* 1e3, 2.0: fine as long as a double holds the integer exactly */
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
    peek(in);
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
    if (peek(in) != '"')
        return read_integer(in, field, slot);
    const char *at = in->at;
    ONX_TRY(take_string(in, true, &name));
    return onxi_text_store_enum(in, field, slot, at, name);
}

/* 0 to 63 by character, both alphabets at once; -1 for what is in neither. */
static const signed char base64_values[128] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, 62, -1, 63, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1, -1, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, 63, -1, 26, 27, 28, 29, 30, 31, 32,
    33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
};

static inline int base64_value(unsigned char c)
{
    return c < 128 ? base64_values[c] : -1;
}

static bool decode_base64(onx_str text, char *to)
{
    uint32_t bits = 0;
    int wrong = 0;
    const unsigned char *p = (const unsigned char *)text.ptr, *end = p + text.len;
    for (; end - p >= 4; p += 4, to += 3) {
        int a = base64_value(p[0]), b = base64_value(p[1]), c = base64_value(p[2]), d = base64_value(p[3]);
        wrong |= a | b | c | d;
        bits = (uint32_t)(a & 63) << 18 | (uint32_t)(b & 63) << 12 | (uint32_t)(c & 63) << 6 | (uint32_t)(d & 63);
        to[0] = (char)(bits >> 16);
        to[1] = (char)(bits >> 8);
        to[2] = (char)bits;
    }
    size_t left = (size_t)(end - p);
    if (left == 1)
        return false;
    if (left) {
        int a = base64_value(p[0]), b = base64_value(p[1]), c = left == 3 ? base64_value(p[2]) : 0;
        wrong |= a | b | c;
        bits = (uint32_t)(a & 63) << 18 | (uint32_t)(b & 63) << 12 | (uint32_t)(c & 63) << 6;
        to[0] = (char)(bits >> 16);
        if (left == 3)
            to[1] = (char)(bits >> 8);
    }
    return wrong >= 0;
}

/* Base64, standard or URL-safe, padded or not. */
static onx_status read_base64(onxi_text_in *in, void *slot)
{
    onx_str text;
    peek(in);
    const char *at = in->at;
    ONX_TRY(take_string(in, true, &text));
    if (text.len % 4 == 0 && text.len && text.ptr[text.len - 1] == '=')
        text.len -= text.ptr[text.len - 2] == '=' ? 2 : 1;
    size_t len = text.len / 4 * 3 + (text.len % 4 ? text.len % 4 - 1 : 0);
    char *bytes = onxi_arena_get(in->arena, len + 1);
    if (!bytes)
        return ONX_E_MEMORY;
    if (!decode_base64(text, bytes)) {
        in->at = at;
        return onxi_text_expected(in, "bytes in base64");
    }
    return onx_arena_refer(in->arena, onx_str_make(bytes, len), slot);
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
        ONX_TRY(take_string(in, false, &text));
        return onx_arena_refer(in->arena, text, slot);
    case ONXI_BYTES:
        return read_base64(in, slot);
    case ONXI_MESSAGE:
        break;
    }
    onx_visit frame;
    const onx_visit *outer = in->self;
    if (peek(in) != '{')
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
    if (!take(in, '['))
        return onxi_text_expected(in, "a list");
    for (bool more = !take(in, ']'); more;) {
        ONX_TRY(read_value(in, table, field, message, name_at));
        more = take(in, ',');
        if (!more && !take(in, ']'))
            return onxi_text_expected(in, ", or ]");
    }
    return ONX_OK;
}

/* object = "{" [ name ":" value { "," name ":" value } ] "}"; null is the same as absent */
static onx_status read_object(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self)
{
    uint32_t hint = 0;
    in->field = NULL;
    if (!take(in, '{'))
        return onxi_text_expected(in, "an object");
    for (bool more = !take(in, '}'); more;) {
        onx_str name;
        in->field = NULL;
        if (peek(in) != '"')
            return onxi_text_expected(in, "the name of a field in quotes");
        const char *at = in->at;
        ONX_TRY(take_string(in, true, &name));
        const onxi_field *field = onxi_text_find(table, name, true, &hint);
        if (!field)
            return onxi_text_fail(in, ONX_E_MALFORMED, at, name, NULL, "%s has no field of that name", table->name);
        in->field = field->name;
        if (!take(in, ':'))
            return onxi_text_expected(in, ":");
        peek(in);
        if (!take_word(in, "null"))
            ONX_TRY(field->flags & ONXI_REPEATED ? read_list(in, table, field, self->message, at)
                                                 : read_value(in, table, field, self->message, at));
        hint++;
        more = take(in, ',');
        if (!more && !take(in, '}'))
            return onxi_text_expected(in, ", or }");
    }
    return ONX_OK;
}

static onx_status read_root(onxi_text_in *in, const onxi_message_table *table, const onx_visit *root)
{
    ONX_TRY(read_object(in, table, root));
    in->field = NULL;
    peek(in);
    return in->at == in->end ? ONX_OK : onxi_text_expected(in, "the end of the text");
}

onx_status onx_json_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    return onxi_text_read(cx, kind, text, read_root, out);
}
