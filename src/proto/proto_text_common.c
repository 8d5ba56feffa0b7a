/* proto_text_common.c - shared by protobuf text and JSON: buffered output, the input cursor and its errors, and storing
 * values in messages according to their tables. */
#include "proto/proto_text.h"

#include <stdio.h>

/* ---- writing ---- */

void onxi_text_start(onxi_text_out *out, onx_ctx *cx, onx_sink sink)
{
    out->cx = cx;
    out->sink = sink;
    out->status = ONX_OK;
    out->odd_nans = 0;
    out->used = 0;
}

void onxi_text_flush(onxi_text_out *out)
{
    if (out->used && out->status == ONX_OK)
        out->status = out->sink.write(out->sink.user, onx_str_make(out->buffer, out->used));
    out->used = 0;
}

onx_status onxi_text_finish(onxi_text_out *out)
{
    onxi_text_flush(out);
    if (out->odd_nans && out->status == ONX_OK)
        onxi_warn(out->cx, ONX_WARNING, NULL, ONXI_NOWHERE,
                  "%llu NaN values have a sign or payload, which the text does not keep",
                  (unsigned long long)out->odd_nans);
    return out->status;
}

void onxi_text_indent(onxi_text_out *out, uint32_t level)
{
    memset(onxi_text_room(out, 2 * (size_t)level), ' ', 2 * (size_t)level);
    out->used += 2 * (size_t)level;
}

void onxi_text_put_u64(onxi_text_out *out, uint64_t value)
{
    char digits[20], *p = digits + sizeof digits;
    do {
        *--p = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    onxi_text_put(out, p, (size_t)(digits + sizeof digits - p));
}

void onxi_text_put_i64(onxi_text_out *out, int64_t value)
{
    if (value < 0)
        ONXI_TEXT_PUT(out, "-");
    onxi_text_put_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void onxi_text_put_escaped(onxi_text_out *out, const onxi_text_escape *escapes, onx_str bytes)
{
    enum { CHUNK = 1024, LONGEST = sizeof escapes->text };
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    for (size_t left = bytes.len, n; left && out->status == ONX_OK; left -= n) {
        n = left < CHUNK ? left : CHUNK;
        char *to = onxi_text_room(out, CHUNK * LONGEST);
        for (const unsigned char *end = p + n; p < end; p++) {
            memcpy(to, escapes[*p].text, LONGEST);
            to += escapes[*p].len;
        }
        out->used = (size_t)(to - out->buffer);
    }
}

const char *onxi_text_enum_name(const onxi_field *field, int32_t value)
{
    for (const onxi_enum_name *n = field->names; n->name; n++) {
        if (n->value == value)
            return n->name;
    }
    return NULL;
}

int64_t onxi_text_load_int(const onxi_field *field, const void *value)
{
    if (field->type == ONXI_INT64)
        return *(const int64_t *)value;
    return *(const int32_t *)value;
}

double onxi_text_load_float(onxi_text_out *out, const onxi_field *field, const void *value)
{
    if (field->type == ONXI_FLOAT) {
        uint32_t bits;
        float f;
        memcpy(&bits, value, sizeof bits);
        memcpy(&f, value, sizeof f);
        out->odd_nans += f != f && bits != 0x7fc00000u;
        return (double)f;
    }
    uint64_t bits;
    double d;
    memcpy(&bits, value, sizeof bits);
    memcpy(&d, value, sizeof d);
    out->odd_nans += d != d && bits != 0x7ff8000000000000u;
    return d;
}

uint64_t onxi_text_values(const onxi_message_table *table, const onxi_field *field, const void *message,
                          const char **values_out)
{
    bool repeated = (field->flags & ONXI_REPEATED) != 0;
    if (!repeated && !(((const onx_message *)message)->has & field->has))
        return 0;
    onxi_place place = onxi_field_place(table, field, message);
    if (!place.value)
        return 0;
    if (repeated) {
        memcpy(values_out, place.value, sizeof *values_out);
        return (field->flags & ONXI_WIDE) ? *(const uint64_t *)place.count : *(const uint32_t *)place.count;
    }
    *values_out = place.value;
    return field->type != ONXI_MESSAGE || *(void *const *)place.value;
}

onx_visit onxi_text_visit(const onxi_field *field, const char *values, const onx_visit *parent, uint64_t index)
{
    return (onx_visit){ .kind = (onx_kind)field->message->kind,
                        .message = ((void *const *)(const void *)values)[index],
                        .parent = parent,
                        .field = field->name,
                        .index = (uint32_t)index,
                        .repeated = (field->flags & ONXI_REPEATED) != 0,
                        .depth = parent->depth + 1 };
}

size_t onxi_text_path(const onx_visit *at, const char *field, char *buf, size_t size)
{
    buf[0] = 0;
    size_t len = at ? onx_visit_path(at, buf, size) : 0;
    if (len >= size)
        len = size - 1;
    if (field) {
        int more = snprintf(buf + len, size - len, "%s%s", len ? "." : "", field);
        len += more < 0 ? 0 : (size_t)more;
    }
    return len < size ? len : size - 1;
}

onx_status onxi_text_model_fail(onx_ctx *cx, onx_status status, const onx_visit *at, const char *field,
                                const char *format, ...)
{
    char path[512];
    size_t len = onxi_text_path(at, field, path, sizeof path);
    onx_diag diag = { .severity = ONX_ERROR, .status = status, .where = ONXI_AT_PATH(onx_str_make(path, len)) };
    va_list args;
    va_start(args, format);
    onxi_vreport(cx, &diag, format, args);
    va_end(args);
    return status;
}

onx_status onxi_text_deeper(onx_ctx *cx, const onx_visit *at)
{
    uint32_t limit = onx_ctx_limits(cx).depth;
    if (at->depth <= limit)
        return ONX_OK;
    return onxi_text_model_fail(cx, ONX_E_LIMIT, at, NULL, "messages are nested more than %u deep (limit depth)",
                                limit);
}

/* ---- reading: the document and its errors ---- */

onx_status onxi_text_read(onx_ctx *cx, onx_kind kind, onx_str text, onxi_text_reader read, onx_doc **out)
{
    onx_doc *doc = NULL;
    *out = NULL;
    ONX_TRY(onx_doc_new(cx, kind, &doc));
    onxi_text_in in = { .cx = cx, .arena = doc->arena, .text = text };
    if (!text.ptr)
        in.text = onx_str_make("", 0);
    in.at = in.text.ptr;
    in.end = in.at + in.text.len;
    if (in.text.len >= 3 && memcmp(in.at, "\xef\xbb\xbf", 3) == 0) /* byte order mark */
        in.at += 3;
    onx_visit root = { .kind = kind, .message = doc->root };
    in.self = &root;
    onx_status status = read(&in, onxi_messages[kind], &root);
    onxi_release(cx, in.scratch, in.scratch_size);
    if (status != ONX_OK) {
        onx_doc_free(doc);
        return status;
    }
    doc->input_size = text.len;
    *out = doc;
    return ONX_OK;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '+';
}

/* Describes the token at a position, for "found ...": a word, the beginning of a string, or one character. */
static onx_str token_at(const onxi_text_in *in, const char *at)
{
    enum { LONGEST = 40 };
    size_t left = (size_t)(in->end - at), n = 1;
    if (!left)
        return onx_str_of("the end of the text");
    if (*at == '\n' || *at == '\r')
        return onx_str_of("the end of the line");
    if ((unsigned char)*at < 0x20 || *at == 0x7f)
        return onx_str_of("a control character");
    if (left > LONGEST)
        left = LONGEST;
    if (*at == '"' || *at == '\'') {
        while (n < left && at[n] != *at && at[n] != '\n')
            n++;
        n += n < left && at[n] == *at;
    } else if (is_word(*at)) {
        while (n < left && is_word(at[n]))
            n++;
    } else {
        while (n < left && n < 4 && (at[n] & 0xc0) == 0x80) /* the rest of a UTF-8 character */
            n++;
    }
    size_t valid = onxi_utf8_valid(onx_str_make(at, n));
    return valid ? onx_str_make(at, valid) : onx_str_of("a byte that is not text");
}

/* The line around a position; only its beginning if it is long, nothing if the position is far into a long line. */
static onx_str excerpt_of(const char *line, const char *at, const char *end)
{
    enum { LONGEST = 160 };
    if (at - line > LONGEST)
        return (onx_str){ 0 };
    size_t len = (size_t)(end - line) < LONGEST ? (size_t)(end - line) : LONGEST;
    const char *newline = memchr(line, '\n', len);
    if (newline)
        len = (size_t)(newline - line);
    if (len && line[len - 1] == '\r')
        len--;
    return onx_str_make(line, onxi_utf8_valid(onx_str_make(line, len)));
}

onx_status onxi_text_fail(onxi_text_in *in, onx_status status, const char *at, onx_str found, const char *expected,
                          const char *format, ...)
{
    char path[512];
    const char *line = in->text.ptr;
    uint32_t number = 1;
    for (const char *p; (p = memchr(line, '\n', (size_t)(at - line))) != NULL; line = p + 1)
        number += number < UINT32_MAX;
    size_t column = (size_t)(at - line) + 1;
    onx_diag diag = { .severity = ONX_ERROR, .status = status };
    diag.where = (onx_where){ .kind = ONX_AT_TEXT,
                              .byte = (uint64_t)(at - in->text.ptr),
                              .line = number,
                              .column = column < UINT32_MAX ? (uint32_t)column : UINT32_MAX,
                              .path = onx_str_make(path, onxi_text_path(in->self, in->field, path, sizeof path)) };
    diag.value = found.ptr || status == ONX_E_LIMIT ? found : token_at(in, at);
    diag.expected = onx_str_of(expected);
    diag.excerpt = excerpt_of(line, at, in->end);
    va_list args;
    va_start(args, format);
    onxi_vreport(in->cx, &diag, format, args);
    va_end(args);
    return status;
}

onx_status onxi_text_expected(onxi_text_in *in, const char *expected)
{
    return onxi_text_fail(in, ONX_E_MALFORMED, in->at, (onx_str){ 0 }, expected, "syntax error");
}

/* ---- reading: fields ---- */

/* Is `name` the JSON form of a field's name: underscores dropped, the letter after one in upper case? */
static bool is_camel(const char *field, onx_str name)
{
    size_t n = 0;
    for (const char *p = field; *p; p++, n++) {
        char c = *p;
        if (c == '_' && p[1]) {
            c = *++p;
            if (c >= 'a' && c <= 'z')
                c = (char)(c - 'a' + 'A');
        }
        if (n == name.len || name.ptr[n] != c)
            return false;
    }
    return n == name.len;
}

const onxi_field *onxi_text_find(const onxi_message_table *table, onx_str name, bool camel, uint32_t *hint)
{
    for (uint32_t k = 0, i = *hint; k < table->field_count; k++, i++) {
        if (i >= table->field_count)
            i = 0;
        const onxi_field *field = &table->fields[i];
        if (name.len && *name.ptr == *field->name &&
            (onx_str_is(name, field->name) || (camel && is_camel(field->name, name)))) {
            *hint = i;
            return field;
        }
    }
    return NULL;
}

/* Appends an element to a list with the capacity that onx/ir.h guarantees. */
static onx_status append(onxi_text_in *in, const onxi_field *field, onxi_place place, void **slot_out)
{
    bool wide = (field->flags & ONXI_WIDE) != 0;
    uint64_t count = wide ? *(uint64_t *)place.count : *(uint32_t *)place.count;
    size_t size = onxi_field_size(field), bytes;
    char *list;
    memcpy(&list, place.value, sizeof list);
    if (!wide && count == UINT32_MAX)
        return onxi_text_fail(in, ONX_E_LIMIT, in->at, (onx_str){ 0 }, NULL, "a list has more than %u elements",
                              UINT32_MAX);
    if (onxi_list_room(count) == count) {
        if (!onxi_mul_size((size_t)onxi_list_room(count + 1), size, &bytes))
            return onxi_no_memory(in->cx);
        char *bigger = onxi_arena_get(in->arena, bytes);
        if (!bigger)
            return ONX_E_MEMORY;
        if (count)
            memcpy(bigger, list, (size_t)count * size);
        list = bigger;
        memcpy(place.value, &list, sizeof list);
    }
    *slot_out = memset(list + (size_t)count * size, 0, size);
    if (wide)
        *(uint64_t *)place.count = count + 1;
    else
        *(uint32_t *)place.count = (uint32_t)count + 1;
    return ONX_OK;
}

static const char *name_of_bits(const onxi_message_table *table, uint32_t bits)
{
    for (uint32_t i = 0; i < table->field_count; i++) {
        if (table->fields[i].has & bits)
            return table->fields[i].name;
    }
    return "";
}

onx_status onxi_text_slot(onxi_text_in *in, const onxi_message_table *table, const onxi_field *field, void *message,
                          const char *at, void **slot_out)
{
    onx_message *head = message;
    uint32_t taken = head->has & (field->has | field->group);
    if (taken & field->has)
        return onxi_text_fail(in, ONX_E_MALFORMED, at, onx_str_of(field->name), NULL, "field %s is given twice",
                              field->name);
    if (taken)
        return onxi_text_fail(in, ONX_E_MALFORMED, at, onx_str_of(field->name), NULL,
                              "fields %s and %s belong to one oneof, of which only one may be given",
                              name_of_bits(table, taken), field->name);
    onxi_place place;
    if (!onxi_field_claim(table, field, message, in->arena, &place))
        return ONX_E_MEMORY;
    if (field->flags & ONXI_REPEATED)
        return append(in, field, place, slot_out);
    head->has |= field->has;
    *slot_out = place.value;
    return ONX_OK;
}

uint32_t onxi_text_index(const onxi_message_table *table, const onxi_field *field, const void *message)
{
    uint64_t count = onxi_field_count(table, field, message);
    return count && (field->flags & ONXI_REPEATED) ? (uint32_t)(count - 1) : 0;
}

onx_status onxi_text_enter(onxi_text_in *in, const onxi_field *field, void *slot, uint32_t index, onx_visit *frame_out)
{
    onx_kind kind = (onx_kind)field->message->kind;
    void *message = onx_message_new(in->arena, kind);
    if (!message)
        return ONX_E_MEMORY;
    memcpy(slot, &message, sizeof message);
    bool repeated = (field->flags & ONXI_REPEATED) != 0;
    *frame_out = (onx_visit){ kind, message, in->self, field->name, index, repeated, in->self->depth + 1 };
    uint32_t limit = onx_ctx_limits(in->cx).depth;
    if (frame_out->depth > limit)
        return onxi_text_fail(in, ONX_E_LIMIT, in->at, (onx_str){ 0 }, NULL,
                              "messages are nested more than %u deep (limit depth)", limit);
    return ONX_OK;
}

/* ---- reading: values ---- */

int onxi_text_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool onxi_text_digits(onx_str digits, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (!onxi_mul_u64(value, base, &value) || !onxi_add_u64(value, (uint64_t)onxi_text_hex(digits.ptr[i]), &value))
            return false;
    }
    *out = value;
    return true;
}

size_t onxi_text_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00u >> len) | code);
    return len;
}

onx_status onxi_text_store_int(onxi_text_in *in, const onxi_field *field, void *slot, const char *at, bool negative,
                               uint64_t magnitude, bool magnitude_fits)
{
    static const struct range {
        uint64_t positive, negative;
        const char *text;
    } ranges[] = {
        [ONXI_INT32] = { INT32_MAX, (uint64_t)INT32_MAX + 1, "an integer from -2147483648 to 2147483647" },
        [ONXI_ENUM] = { INT32_MAX, (uint64_t)INT32_MAX + 1, "an integer from -2147483648 to 2147483647" },
        [ONXI_INT64] = { INT64_MAX, (uint64_t)INT64_MAX + 1, "an integer from -2^63 to 2^63 - 1" },
        [ONXI_UINT64] = { UINT64_MAX, 0, "an integer from 0 to 2^64 - 1" },
    };
    const struct range *range = &ranges[field->type];
    if (!magnitude_fits || magnitude > (negative ? range->negative : range->positive))
        return onxi_text_fail(in, ONX_E_MALFORMED, at, (onx_str){ 0 }, range->text, "the number is out of range");
    uint64_t bits = negative ? 0 - magnitude : magnitude;
    if (onxi_field_size(field) == 8) {
        memcpy(slot, &bits, sizeof bits);
    } else {
        uint32_t low = (uint32_t)bits;
        memcpy(slot, &low, sizeof low);
    }
    return ONX_OK;
}

onx_status onxi_text_store_enum(onxi_text_in *in, const onxi_field *field, void *slot, const char *at, onx_str name)
{
    for (const onxi_enum_name *n = field->names; n->name; n++) {
        if (onx_str_is(name, n->name)) {
            memcpy(slot, &n->value, sizeof n->value);
            return ONX_OK;
        }
    }
    return onxi_text_fail(in, ONX_E_MALFORMED, at, name, NULL, "%s has no value of that name", field->name);
}
