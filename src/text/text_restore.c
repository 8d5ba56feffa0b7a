/* text_restore.c - reads the "#@" comments in which the printer keeps what has no notation (text_keep.c):
 *   comment = "#@" target { "." field [ "[" index "]" ] } [ ":" value ]
 *   value   = number | string | "none" | "{" { field ":" value } "}" | "[" [ value { "," value } ] "]"
 * Field names are those of the .proto. */
#include "text/text.h"

typedef struct reader {
    onxi_text_parser *p;
    const char *at, *end;
    uint32_t depth;
    const char *wrong; /* what could not be parsed */
} reader;

static bool wrong(reader *r, const char *what)
{
    if (!r->wrong)
        r->wrong = what;
    return false;
}

static char peek(reader *r);

/* Called before the model is changed: nothing may follow the value of the comment. */
static bool at_end(reader *r)
{
    peek(r);
    return r->depth > 0 || r->at == r->end || wrong(r, "something follows the value");
}

/* The next byte after white space that also ends a comment. */
static char peek(reader *r)
{
    while (r->at < r->end && onxi_text_char_is(*r->at, ONXI_CHAR_SPACE))
        r->at++;
    return r->at < r->end ? *r->at : '\0';
}

static bool take(reader *r, char c)
{
    if (peek(r) != c || r->at >= r->end)
        return false;
    r->at++;
    return true;
}

static onx_str take_word(reader *r)
{
    peek(r);
    const char *start = r->at;
    while (r->at < r->end && onxi_text_char_is(*r->at, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT))
        r->at++;
    return onx_str_make(start, (size_t)(r->at - start));
}

/* ---- values ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_string(reader *r, onx_bytes *out)
{
    if (!take(r, '"'))
        return wrong(r, "a string is missing");
    const char *s = r->at;
    while (s < r->end && *s != '"')
        s += *s == '\\' ? 2 : 1;
    if (s >= r->end)
        return wrong(r, "a string has no end");
    char *copy = onxi_arena_get(r->p->arena, (size_t)(s - r->at) + 1);
    if (!copy)
        return onxi_text_parse_abort(r->p, ONX_E_MEMORY);
    size_t n = 0;
    while (r->at < s) {
        char c = *r->at++;
        if (c == '\\') {
            c = *r->at++;
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
            else if (c == 'x') {
                int high = s - r->at >= 2 ? hex_digit(r->at[0]) : -1, low = high < 0 ? -1 : hex_digit(r->at[1]);
                if (low < 0)
                    return wrong(r, "\\x needs two hexadecimal digits");
                c = (char)(high * 16 + low);
                r->at += 2;
            }
        }
        copy[n++] = c;
    }
    r->at = s + 1;
    return onxi_bytes_refer(r->p->arena, copy, n, out) || onxi_text_parse_abort(r->p, ONX_E_MEMORY);
}

static onx_str number_text(reader *r)
{
    peek(r);
    const char *start = r->at;
    while (r->at < r->end && (onxi_text_char_is(*r->at, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT) || *r->at == '-' ||
                              *r->at == '+' || *r->at == '.'))
        r->at++;
    return onx_str_make(start, (size_t)(r->at - start));
}

/* nan:0x7f800001 gives the bits of the value. */
static bool take_float(reader *r, bool wide, uint64_t *bits)
{
    onx_str text = number_text(r);
    bool overflow;
    *bits = 0;
    if (onx_str_is(text, "nan") && r->end - r->at > 3 && memcmp(r->at, ":0x", 3) == 0) {
        r->at += 3;
        for (int digit, n = 0; r->at < r->end && n < 16 && (digit = hex_digit(*r->at)) >= 0; r->at++, n++)
            *bits = *bits << 4 | (unsigned)digit;
        return wide || *bits <= UINT32_MAX || wrong(r, "a float has 32 bits");
    }
    float f = 0;
    double d = 0;
    if (!text.len || (wide ? !onxi_parse_f64(text, &d, &overflow) : !onxi_parse_f32(text, &f, &overflow)))
        return wrong(r, "a number is missing");
    memcpy(bits, wide ? (void *)&d : (void *)&f, wide ? sizeof d : sizeof f);
    return true;
}

static bool take_integer(reader *r, uint8_t type, uint64_t *bits)
{
    onx_str text = number_text(r);
    int64_t value = 0;
    for (size_t i = 0; i < text.len; i++)
        if (!onxi_text_char_is(text.ptr[i], ONXI_CHAR_DIGIT) && !(i == 0 && text.ptr[i] == '-' && text.len > 1))
            return wrong(r, "an integer is missing");
    if (type == ONXI_UINT64)
        return (text.len > 0 && text.ptr[0] != '-' && onxi_text_uint_of(text, bits)) ||
               wrong(r, "an integer is missing or out of range");
    if (!onxi_text_int_of(text, &value) || (type != ONXI_INT64 && (value < INT32_MIN || value > INT32_MAX)))
        return wrong(r, "an integer is missing or out of range");
    *bits = type == ONXI_INT64 ? (uint64_t)value : (uint32_t)value;
    return true;
}

static bool take_message(reader *r, const onxi_message_table *table, void **out);

/* One element, in the low bytes of *bits (hosts are little-endian). */
static bool take_element(reader *r, const onxi_field *field, uint64_t *bits)
{
    onx_bytes text;
    void *message;
    switch (field->type) {
    case ONXI_FLOAT:
        return take_float(r, false, bits);
    case ONXI_DOUBLE:
        return take_float(r, true, bits);
    case ONXI_STRING:
    case ONXI_BYTES:
        if (!take_string(r, &text))
            return false;
        *bits = text.bits;
        return true;
    case ONXI_MESSAGE:
        if (!take_message(r, field->message, &message))
            return false;
        *bits = 0;
        memcpy(bits, &message, sizeof message);
        return true;
    default:
        return take_integer(r, field->type, bits);
    }
}

/* "[" [ value { "," value } ] "]" becomes the list. */
static bool set_list(reader *r, const onxi_message_table *table, const onxi_field *field, void *message)
{
    onxi_text_parser *p = r->p;
    size_t base = p->stack_count, size = onxi_field_size(field);
    if (!take(r, '['))
        return wrong(r, "a list is missing");
    if (!take(r, ']')) {
        do {
            uint64_t bits = 0;
            if (!take_element(r, field, &bits) || !onxi_text_push(p, bits)) {
                p->stack_count = base;
                return false;
            }
        } while (take(r, ','));
        if (!take(r, ']')) {
            p->stack_count = base;
            return wrong(r, "a list has no end");
        }
    }
    uint64_t count = p->stack_count - base;
    onxi_place place;
    if (!at_end(r)) {
        p->stack_count = base;
        return false;
    }
    char *data = onxi_arena_get(p->arena, (size_t)onxi_list_room(count) * size + 1);
    p->stack_count = base;
    if (!data || !onxi_field_claim(table, field, message, p->arena, &place))
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    for (uint64_t i = 0; i < count; i++)
        memcpy(data + i * size, &p->stack[base + i], size);
    if (count == 0)
        data = NULL;
    memcpy(place.value, &data, sizeof data);
    if (field->flags & ONXI_WIDE)
        *(uint64_t *)place.count = count;
    else
        *(uint32_t *)place.count = (uint32_t)count;
    return true;
}

static bool set_singular(reader *r, const onxi_message_table *table, const onxi_field *field, void *message)
{
    onx_message *m = message;
    uint64_t bits = 0;
    onxi_place place;
    bool none = peek(r) == 'n' && r->end - r->at >= 4 && memcmp(r->at, "none", 4) == 0;
    if (none)
        r->at += 4;
    else if (!take_element(r, field, &bits))
        return false;
    if (!at_end(r))
        return false;
    none |= (field->type == ONXI_STRING || field->type == ONXI_BYTES) && !bits && !onxi_text_tells_empty(table, field);
    if (none && !(m->has & field->has))
        return true;
    if (field->flags & ONXI_ONEOF)
        m->has &= ~field->group;
    if (!onxi_field_claim(table, field, message, r->p->arena, &place))
        return onxi_text_parse_abort(r->p, ONX_E_MEMORY);
    memcpy(place.value, &bits, onxi_field_size(field));
    m->has = none ? m->has & ~field->has : m->has | field->has;
    return true;
}

/* unknown: ["bytes", ...]: complete fields of the wire format, including the tag. */
static bool set_unknown(reader *r, const onxi_message_table *table, void *message)
{
    onx_message *m = message;
    onx_unknown *first = NULL, **last = &first;
    if (!take(r, '['))
        return wrong(r, "a list is missing");
    do {
        onx_unknown *u = ONXI_NEW(r->p->arena, onx_unknown);
        if (!u)
            return onxi_text_parse_abort(r->p, ONX_E_MEMORY);
        if (!take_string(r, &u->bytes))
            return false;
        onx_str bytes = onx_view(u->bytes);
        uint64_t tag = 0;
        size_t n = 0;
        while (n < bytes.len && n < 5) {
            tag |= (uint64_t)((uint8_t)bytes.ptr[n] & 127u) << (7 * n);
            if (!((uint8_t)bytes.ptr[n++] & 128u))
                break;
        }
        u->number = (uint32_t)(tag >> 3);
        if (n == 0 || ((uint8_t)bytes.ptr[n - 1] & 128u) || u->number == 0)
            return wrong(r, "an unknown field does not begin with its number");
        *last = u;
        last = &u->next;
    } while (take(r, ','));
    if (!take(r, ']'))
        return wrong(r, "a list has no end");
    if (!at_end(r))
        return false;
    if (!m->extra)
        m->extra = onx_arena_alloc(r->p->arena, table->extra_size);
    if (!m->extra)
        return onxi_text_parse_abort(r->p, ONX_E_MEMORY);
    m->extra->unknown = first;
    return true;
}

static const onxi_field *find_field(const onxi_message_table *table, onx_str name)
{
    for (uint32_t i = 0; i < table->field_count; i++)
        if (onx_str_is(name, table->fields[i].name))
            return &table->fields[i];
    return NULL;
}

static bool set_field(reader *r, const onxi_message_table *table, const onxi_field *field, void *message)
{
    return (field->flags & ONXI_REPEATED) ? set_list(r, table, field, message) : set_singular(r, table, field, message);
}

/* "{" { field ":" value } "}" */
static bool take_message(reader *r, const onxi_message_table *table, void **out)
{
    void *message = onx_arena_alloc(r->p->arena, table->size);
    if (!message)
        return onxi_text_parse_abort(r->p, ONX_E_MEMORY);
    if (!take(r, '{'))
        return wrong(r, "a message is missing");
    if (++r->depth > r->p->depth_limit)
        return wrong(r, "messages are nested too deep");
    while (!take(r, '}')) {
        onx_str name = take_word(r);
        const onxi_field *field = find_field(table, name);
        if (!name.len || !take(r, ':'))
            return wrong(r, "a field and its value are missing");
        if (onx_str_is(name, "unknown")
                ? !set_unknown(r, table, message)
                : !(field ? set_field(r, table, field, message) : wrong(r, "there is no such field")))
            return false;
    }
    r->depth--;
    *out = message;
    return true;
}

/* ---- paths ---- */

/* The element of a list, or the value of a singular field; NULL if it is absent. */
static void *element_at(const onxi_message_table *table, const onxi_field *field, void *message, uint64_t index)
{
    onxi_place place = onxi_field_place(table, field, message);
    if (!place.value || index >= onxi_field_count(table, field, message))
        return NULL;
    if (!(field->flags & ONXI_REPEATED))
        return place.value;
    char *elements;
    memcpy(&elements, place.value, sizeof elements);
    return elements + index * onxi_field_size(field);
}

/* At the end of the path: sets the field, or one element of a list. */
static bool assign(reader *r, const onxi_message_table *table, const onxi_field *field, void *message, void *element)
{
    if (!element)
        return set_field(r, table, field, message);
    uint64_t bits = 0;
    if (!take_element(r, field, &bits) || !at_end(r))
        return false;
    if (field->type == ONXI_MESSAGE) { /* in place, because the formatter identifies items by their addresses */
        void *old, *new;
        memcpy(&old, element, sizeof old);
        memcpy(&new, &bits, sizeof new);
        memcpy(old, new, field->message->size);
    } else {
        memcpy(element, &bits, onxi_field_size(field));
    }
    return true;
}

static bool follow(reader *r, const onxi_message_table *table, void *message)
{
    for (;;) {
        onx_str name = take_word(r);
        if (onx_str_is(name, "unknown") && take(r, ':'))
            return set_unknown(r, table, message);
        const onxi_field *field = find_field(table, name);
        if (!field)
            return wrong(r, "there is no such field");
        void *element = NULL;
        uint64_t index;
        bool indexed = take(r, '[');
        if (indexed) {
            if (!onxi_text_uint_of(take_word(r), &index) || !take(r, ']') || !(field->flags & ONXI_REPEATED))
                return wrong(r, "an index is not well formed");
            element = element_at(table, field, message, index);
            if (!element)
                return wrong(r, "there is no element of that index");
        }
        if (peek(r) == '\0' && table->kind == ONX_KIND_TENSOR && onx_str_is(name, "raw_data"))
            return onxi_text_tensor_to_raw(r->p->arena, message) || wrong(r, "the tensor cannot be stored as raw data");
        if (take(r, ':'))
            return assign(r, table, field, message, element);
        if (!take(r, '.') || field->type != ONXI_MESSAGE || ((field->flags & ONXI_REPEATED) && !indexed))
            return wrong(r, "the path is not well formed");
        if (!element)
            element = element_at(table, field, message, 0);
        if (!element)
            return wrong(r, "the message does not have that part");
        memcpy(&message, element, sizeof message);
        table = field->message;
    }
}

static bool restore(reader *r)
{
    onx_str word = take_word(r);
    int target = 0;
    while (target < ONXI_TARGET_COUNT && !onx_str_is(word, onxi_text_targets[target].word))
        target++;
    if (target == ONXI_TARGET_COUNT)
        return wrong(r, "it does not begin with the name of a part");
    void *message = r->p->target[target];
    const onxi_message_table *table = onxi_messages[onxi_text_targets[target].kind];
    if (!message)
        return wrong(r, "there is no such part before it");
    if (take(r, '.'))
        return follow(r, table, message);
    void *other;
    if (!take(r, ':') || !take_message(r, table, &other))
        return wrong(r, "a value is missing");
    if (!at_end(r))
        return false;
    memcpy(message, other, table->size);
    return true;
}

void onxi_text_restore(onxi_text_parser *p, const char *at, onx_str text)
{
    reader r = { .p = p, .at = text.ptr, .end = onxi_str_end(text) };
    char c = peek(&r);
    if (c == '(' || c == '\0')
        return; /* a remark */
    if (restore(&r) || p->fatal)
        return;
    onxi_text_parse_warn(p, at, ONX_WARNING, NULL, "this #@ comment is left out of account: %s",
                         r.wrong ? r.wrong : "it is not well formed");
    if (p->trivia) /* for the formatter it is a comment like others */
        onxi_text_trivia_comment(p, onx_str_make(at, (size_t)(r.end - at)));
}

void onxi_text_restore_later(onxi_text_parser *p, const char *at, onx_str text)
{
    if (!p->hold) {
        onxi_text_restore(p, at, text);
        return;
    }
    if (!ONXI_GROW(p->cx, p->waiting, p->waiting_room, p->waiting_count + 1)) {
        onxi_text_parse_abort(p, ONX_E_MEMORY);
        return;
    }
    p->waiting[p->waiting_count++] = text;
}

void onxi_text_restore_waiting(onxi_text_parser *p, size_t base)
{
    for (size_t i = base; i < p->waiting_count; i++)
        onxi_text_restore(p, p->waiting[i].ptr - 2, p->waiting[i]); /* "#@" comes before it */
    p->waiting_count = base;
}
