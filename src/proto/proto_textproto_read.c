/* proto_textproto_read.c - reads protobuf text: the syntax of protobuf's TextFormat, plus unknown fields by number
 * (docs/notes/textproto_json.md). Recursive descent directly into the messages. */
#include "proto/proto_text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* ---- scanning ---- */

static void skip_blank(onxi_text_in *in)
{
    const char *p = in->at, *end = in->end;
    for (; p < end; p++) {
        if (*p == '#') {
            p = memchr(p, '\n', (size_t)(end - p));
            if (!p)
                p = end - 1;
        } else if (*p != ' ' && (*p < '\t' || *p > '\r')) {
            break;
        }
    }
    in->at = p;
}

/* The next character that is not white space; 0 at the end. No token begins with 0. */
static char peek(onxi_text_in *in)
{
    skip_blank(in);
    return in->at < in->end ? *in->at : 0;
}

static bool take(onxi_text_in *in, char c)
{
    if (peek(in) != c || in->at == in->end)
        return false;
    in->at++;
    return true;
}

/* identifier = letter { letter | digit } */
static onx_str take_word(onxi_text_in *in)
{
    const char *from = in->at;
    while (in->at < in->end && (is_letter(*in->at) || is_digit(*in->at)))
        in->at++;
    return onx_str_make(from, (size_t)(in->at - from));
}

typedef struct numeral {
    onx_str digits;  /* without 0x and the f suffix */
    unsigned base;   /* 8, 10, 16 */
    bool fractional; /* has a point or an exponent */
    bool suffixed;   /* f at the end */
    uint64_t value;  /* when not fractional */
    bool fits;       /* in 64 bits */
} numeral;

static size_t count_digits(const onxi_text_in *in, const char *p)
{
    const char *from = p;
    while (p < in->end && is_digit(*p))
        p++;
    return (size_t)(p - from);
}

/* The end of a decimal number at p: digits [ "." digits ] [ exponent ]; p itself if there is none. */
static const char *decimal_end(const onxi_text_in *in, const char *p, bool *fractional)
{
    size_t before = count_digits(in, p), behind = 0;
    const char *q = p + before;
    if (q < in->end && *q == '.') {
        behind = count_digits(in, q + 1);
        q += 1 + behind;
        *fractional = true;
    }
    if (before + behind == 0)
        return p;
    if (q < in->end && (*q == 'e' || *q == 'E')) {
        const char *e = q + 1;
        e += e < in->end && (*e == '+' || *e == '-');
        size_t exponent = count_digits(in, e);
        *fractional = true;
        q = exponent ? e + exponent : p;
    }
    return q;
}

/* number = "0x" hex+ | "0" octal+ | decimal [ "f" ], not followed by a letter */
static onx_status take_number(onxi_text_in *in, const char *expected, numeral *out)
{
    const char *p = in->at, *q = p;
    *out = (numeral){ .base = 10 };
    if (in->end - p > 2 && *p == '0' && (p[1] == 'x' || p[1] == 'X')) {
        out->base = 16;
        p += 2;
        for (q = p; q < in->end && onxi_text_hex(*q) >= 0;)
            q++;
    } else {
        q = decimal_end(in, p, &out->fractional);
        if (q - p > 1 && *p == '0' && is_digit(p[1])) {
            out->base = 8;
            out->fractional |= memchr(p, '8', (size_t)(q - p)) || memchr(p, '9', (size_t)(q - p));
            if (out->fractional)
                return onxi_text_expected(
                    in, "no 0 before a decimal number, and digits 0 to 7 behind the 0 of an octal one");
        }
    }
    if (q == p)
        return onxi_text_expected(in, expected);
    out->digits = onx_str_make(p, (size_t)(q - p));
    if (out->base == 10 && q < in->end && (*q == 'f' || *q == 'F')) {
        out->suffixed = true;
        q++;
    }
    if (q < in->end && (is_letter(*q) || *q == '.' || is_digit(*q)))
        return onxi_text_expected(in, "a number with a blank behind it");
    if (!out->fractional)
        out->fits = onxi_text_digits(out->digits, out->base, &out->value);
    in->at = q;
    return ONX_OK;
}

/* ---- strings ---- */

/* Parses up to `most` digits of a base at p; returns their number. */
static size_t digits_at(const char *p, const char *end, unsigned base, size_t most, uint32_t *out)
{
    size_t n = 0;
    for (*out = 0; n < most && p + n < end; n++) {
        int digit = onxi_text_hex(p[n]);
        if (digit < 0 || digit >= (int)base)
            break;
        *out = *out * base + (uint32_t)digit;
    }
    return n;
}

/* Decodes an escape whose backslash precedes in->at into up to four bytes. Moves in->at past it. */
static onx_status take_escape(onxi_text_in *in, char *bytes, size_t *len_out)
{
    static const char letters[] = "abfnrtv\\?'\"", meanings[] = "\a\b\f\n\r\t\v\\?'\"";
    const char *p = in->at + 1, *end = in->end;
    uint32_t code = 0, low = 0;
    char c = p < end ? *p : 0;
    const char *simple = c ? strchr(letters, c) : NULL;
    *len_out = 1;
    if (simple) {
        bytes[0] = meanings[simple - letters];
        in->at = p + 1;
        return ONX_OK;
    }
    if (c >= '0' && c <= '7') {
        size_t n = digits_at(p, end, 8, 3, &code);
        if (code > 0xff)
            return onxi_text_expected(in, "an octal escape up to \\377");
        bytes[0] = (char)code;
        in->at = p + n;
        return ONX_OK;
    }
    if (c == 'x') {
        size_t n = digits_at(p + 1, end, 16, 2, &code);
        if (!n)
            return onxi_text_expected(in, "hexadecimal digits behind \\x");
        bytes[0] = (char)code;
        in->at = p + 1 + n;
        return ONX_OK;
    }
    size_t want = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!want || digits_at(p + 1, end, 16, want, &code) != want || code > 0x10ffff)
        return onxi_text_expected(in, !want      ? "an escape: \\n \\t \\\\ \\\" \\ooo \\xhh \\uhhhh or the like"
                                      : c == 'u' ? "four hexadecimal digits behind \\u"
                                                 : "eight hexadecimal digits behind \\U, up to 0010ffff");
    in->at = p + 1 + want;
    if (code >= 0xd800 && code < 0xdc00 && end - in->at >= 6 && in->at[0] == '\\' && in->at[1] == 'u' &&
        digits_at(in->at + 2, end, 16, 4, &low) == 4 && low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        in->at += 6;
    }
    *len_out = onxi_text_utf8(code, bytes);
    return ONX_OK;
}

/* Fast path for three octal digits, the most frequent escape in raw data. */
static bool is_octal_escape(const char *p, const char *end)
{
    return end - p >= 4 && (p[1] & 0xfc) == '0' && (p[2] & 0xf8) == '0' && (p[3] & 0xf8) == '0';
}

/* Reserves `len` more bytes in the scratch buffer. */
static onx_status make_room(onxi_text_in *in, size_t len)
{
    /* both are bounded by available memory */
    return ONXI_GROW(in->cx, in->scratch, in->scratch_size, in->scratch_used + len) ? ONX_OK : ONX_E_MEMORY;
}

/* Appends the bytes of one string literal to the scratch buffer. */
static onx_status take_literal(onxi_text_in *in)
{
    enum { CHUNK = 4096, ESCAPE = 16 }; /* an escape is never shorter than its bytes */
    const char *from = in->at, *p = from + 1, *end = in->end, quote = *from;
    while (p < end && *p != quote) {
        ONX_TRY(make_room(in, CHUNK + ESCAPE));
        char *to = in->scratch + in->scratch_used;
        const char *stop = end - p > CHUNK ? p + CHUNK : end;
        while (p < stop && *p != quote) {
            if (*p == '\n' || *p == 0) {
                in->at = p;
                return onxi_text_expected(in, "the quote that ends the string");
            }
            if (*p != '\\') {
                *to++ = *p++;
            } else if (is_octal_escape(p, end)) {
                *to++ = (char)((p[1] & 3) << 6 | (p[2] & 7) << 3 | (p[3] & 7));
                p += 4;
            } else {
                size_t len;
                in->at = p;
                ONX_TRY(take_escape(in, to, &len));
                p = in->at;
                to += len;
            }
        }
        in->scratch_used = (size_t)(to - in->scratch);
    }
    in->at = p < end ? p + 1 : from;
    return p < end ? ONX_OK : onxi_text_expected(in, "the quote that ends the string");
}

/* string = literal { literal }, appended to the scratch buffer */
static onx_status take_string(onxi_text_in *in)
{
    char c = peek(in);
    if (c != '"' && c != '\'')
        return onxi_text_expected(in, "a string in quotes");
    for (; c == '"' || c == '\''; c = peek(in))
        ONX_TRY(take_literal(in));
    return ONX_OK;
}

/* ---- values ---- */

static onx_status read_integer(onxi_text_in *in, const onxi_field *field, void *slot)
{
    numeral n;
    const char *at = in->at;
    bool negative = field->type != ONXI_UINT64 && take(in, '-');
    skip_blank(in);
    ONX_TRY(take_number(in, "an integer", &n));
    if (n.fractional || n.suffixed) {
        in->at = at;
        return onxi_text_expected(in, "an integer");
    }
    return onxi_text_store_int(in, field, slot, at, negative, n.value, n.fits);
}

static onx_status read_enum(onxi_text_in *in, const onxi_field *field, void *slot)
{
    const char *at = in->at;
    if (at < in->end && is_letter(*at))
        return onxi_text_store_enum(in, field, slot, at, take_word(in));
    return read_integer(in, field, slot);
}

/* float = [ "-" ] ( decimal [ "f" ] | "inf" | "infinity" | "nan" ); too large values become infinite */
static onx_status read_float(onxi_text_in *in, const onxi_field *field, void *slot)
{
    static const char expected[] = "a decimal number, inf or nan";
    bool negative = take(in, '-'), overflow;
    bool word = is_letter(peek(in));
    const char *at = in->at;
    numeral n = { .base = 10 };
    float f = 0;
    double d = 0;
    if (word)
        n.digits = take_word(in);
    else
        ONX_TRY(take_number(in, expected, &n));
    if (n.base != 10 || !(field->type == ONXI_FLOAT ? onxi_parse_f32(n.digits, &f, &overflow)
                                                    : onxi_parse_f64(n.digits, &d, &overflow))) {
        in->at = at;
        return onxi_text_expected(in, expected);
    }
    f = negative ? -f : f;
    d = negative ? -d : d;
    memcpy(slot, field->type == ONXI_FLOAT ? (const void *)&f : (const void *)&d, onxi_field_size(field));
    return ONX_OK;
}

static onx_status read_fields(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self, char close);

/* value of a message = "{" fields "}" | "<" fields ">" */
static onx_status read_message(onxi_text_in *in, const onxi_field *field, void *slot, uint32_t index)
{
    char open = peek(in);
    if (open != '{' && open != '<')
        return onxi_text_expected(in, "{ or <");
    onx_visit frame;
    const onx_visit *outer = in->self;
    ONX_TRY(onxi_text_enter(in, field, slot, index, &frame));
    in->at++;
    in->self = &frame;
    ONX_TRY(read_fields(in, field->message, &frame, open == '{' ? '}' : '>'));
    in->self = outer;
    in->field = field->name;
    in->at++;
    return ONX_OK;
}

static onx_status read_value(onxi_text_in *in, const onxi_message_table *table, const onxi_field *field, void *message,
                             const char *name_at)
{
    void *slot;
    ONX_TRY(onxi_text_slot(in, table, field, message, name_at, &slot));
    skip_blank(in);
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
    case ONXI_BYTES:
        in->scratch_used = 0;
        ONX_TRY(take_string(in));
        return onx_arena_keep(in->arena, onx_str_make(in->scratch, in->scratch_used), slot);
    case ONXI_MESSAGE:
        break;
    }
    return read_message(in, field, slot, onxi_text_index(table, field, message));
}

/* ---- unknown fields: number ( ":" ( integer | string ) | "{" fields "}" | "<" fields ">" ), converted to wire format
 * ---- */

static onx_status put_bytes(onxi_text_in *in, const void *bytes, size_t len)
{
    ONX_TRY(make_room(in, len));
    memcpy(in->scratch + in->scratch_used, bytes, len);
    in->scratch_used += len;
    return ONX_OK;
}

static onx_status put_varint(onxi_text_in *in, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    return put_bytes(in, bytes, n);
}

/* Inserts the length of the bytes that follow `from` before them. */
static onx_status insert_length(onxi_text_in *in, size_t from)
{
    size_t len = in->scratch_used - from;
    ONX_TRY(put_varint(in, len));
    size_t added = in->scratch_used - from - len;
    char varint[10];
    memcpy(varint, in->scratch + from + len, added);
    memmove(in->scratch + from + added, in->scratch + from, len);
    memcpy(in->scratch + from, varint, added);
    return ONX_OK;
}

static onx_status put_tag(onxi_text_in *in, uint64_t number, unsigned type)
{
    return put_varint(in, number << 3 | type);
}

static onx_status put_unknown_number(onxi_text_in *in, uint64_t tag_number)
{
    numeral n;
    const char *at = in->at;
    bool negative = take(in, '-');
    skip_blank(in);
    ONX_TRY(take_number(in, "an integer, a string, { or <", &n));
    if (n.fractional || n.suffixed || !n.fits || (negative && n.value > (uint64_t)1 << 63)) {
        in->at = at;
        return onxi_text_expected(in, "an integer of up to 64 bits, for an unknown field");
    }
    size_t len = n.base == 16 && !negative && (n.digits.len == 8 || n.digits.len == 16) ? n.digits.len / 2 : 0;
    if (!len) {
        ONX_TRY(put_tag(in, tag_number, 0));
        return put_varint(in, negative ? 0 - n.value : n.value);
    }
    ONX_TRY(put_tag(in, tag_number, len == 4 ? 5 : 1));
    char bytes[8];
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(n.value >> (8 * i));
    return put_bytes(in, bytes, len);
}

static onx_status take_unknown_tag(onxi_text_in *in, uint64_t *out)
{
    numeral n;
    const char *at = in->at;
    ONX_TRY(take_number(in, "the number of a field", &n));
    if (n.fractional || n.suffixed || n.base != 10 || !n.fits || n.value < 1 || n.value > 536870911) {
        in->at = at;
        return onxi_text_expected(in, "a field number from 1 to 536870911");
    }
    *out = n.value;
    return ONX_OK;
}

/* `budget` bounds the nesting of messages, whose bytes are moved once per level; `depth` also bounds groups. */
static onx_status read_unknown(onxi_text_in *in, uint32_t budget, uint32_t depth)
{
    uint64_t number = 0;
    ONX_TRY(take_unknown_tag(in, &number));
    bool colon = take(in, ':');
    char c = peek(in);
    if (c == '{' || c == '<') {
        char close = c == '{' ? '}' : '>';
        if (depth == 0 || (c == '{' && budget == 0))
            return onxi_text_fail(in, ONX_E_LIMIT, in->at, (onx_str){ 0 }, NULL, "unknown fields are nested too deep");
        in->at++;
        ONX_TRY(put_tag(in, number, c == '{' ? 2 : 3));
        size_t from = in->scratch_used;
        while (peek(in) != close)
            ONX_TRY(read_unknown(in, budget - (c == '{'), depth - 1));
        in->at++;
        ONX_TRY(c == '{' ? insert_length(in, from) : put_tag(in, number, 4));
    } else if (!colon) {
        return onxi_text_expected(in, ": or { or <");
    } else if (c == '"' || c == '\'') {
        ONX_TRY(put_tag(in, number, 2));
        size_t from = in->scratch_used;
        ONX_TRY(take_string(in));
        ONX_TRY(insert_length(in, from));
    } else {
        ONX_TRY(put_unknown_number(in, number));
    }
    if (!take(in, ';'))
        take(in, ',');
    return ONX_OK;
}

static onx_status keep_unknown(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self,
                               onx_unknown **last)
{
    const char *at = in->at;
    uint64_t number = 0;
    in->field = NULL;
    in->scratch_used = 0;
    ONX_TRY(take_unknown_tag(in, &number));
    in->at = at;
    ONX_TRY(read_unknown(in, ONXI_UNKNOWN_DEPTH, onx_ctx_limits(in->cx).depth));
    onx_extra *extra = onx_message_extra(in->arena, (onx_kind)table->kind, self->message);
    onx_unknown *unknown = extra ? ONXI_NEW(in->arena, onx_unknown) : NULL;
    if (!unknown)
        return ONX_E_MEMORY;
    unknown->number = (uint32_t)number;
    ONX_TRY(onx_arena_keep(in->arena, onx_str_make(in->scratch, in->scratch_used), &unknown->bytes));
    if (*last)
        (*last)->next = unknown;
    else
        extra->unknown = unknown;
    *last = unknown;
    return ONX_OK;
}

/* ---- fields ---- */

/* field = name [ ":" ] ( value | "[" [ value { "," value } ] "]" ) [ ";" | "," ]; the colon is optional before "{" and
 * "<" */
static onx_status read_field(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self, uint32_t *hint)
{
    const char *at = in->at;
    in->field = NULL;
    onx_str name = take_word(in);
    const onxi_field *field = onxi_text_find(table, name, false, hint);
    if (!field)
        return onxi_text_fail(in, ONX_E_MALFORMED, at, name, NULL, "%s has no field of that name", table->name);
    in->field = field->name;
    if (!take(in, ':') && field->type != ONXI_MESSAGE)
        return onxi_text_expected(in, ":");
    if ((field->flags & ONXI_REPEATED) && take(in, '[')) {
        for (bool more = !take(in, ']'); more;) {
            ONX_TRY(read_value(in, table, field, self->message, at));
            more = take(in, ',');
            if (!more && !take(in, ']'))
                return onxi_text_expected(in, ", or ]");
        }
    } else {
        ONX_TRY(read_value(in, table, field, self->message, at));
    }
    if (!take(in, ';'))
        take(in, ',');
    *hint += !(field->flags & ONXI_REPEATED);
    return ONX_OK;
}

/* fields = { field | unknown field } up to `close`, which is not consumed; 0 is the end of the text */
static onx_status read_fields(onxi_text_in *in, const onxi_message_table *table, const onx_visit *self, char close)
{
    uint32_t hint = 0;
    onx_unknown *last = NULL;
    for (char c; (c = peek(in)) != close || (!close && in->at < in->end);) {
        if (is_letter(c)) {
            ONX_TRY(read_field(in, table, self, &hint));
        } else if (is_digit(c)) {
            ONX_TRY(keep_unknown(in, table, self, &last));
        } else {
            in->field = NULL;
            return onxi_text_expected(in, close == '}'   ? "a field name or }"
                                          : close == '>' ? "a field name or >"
                                          : c == '['     ? "a field name (ONNX has no extensions)"
                                                         : "a field name");
        }
    }
    return ONX_OK;
}

static onx_status read_root(onxi_text_in *in, const onxi_message_table *table, const onx_visit *root)
{
    return read_fields(in, table, root, 0);
}

onx_status onx_textproto_read(onx_ctx *cx, onx_kind kind, onx_str text, onx_doc **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_CALL_TO_MAKE(cx, out, onx_doc_free, onxi_text_read(cx, kind, text, read_root, out));
}
