/* text_scan.c - tokens of the text syntax, errors with their position, and recovery from errors. */
#include "text/text.h"

#include <stdio.h>

enum { ERRORS_MAX = 100, EXCERPT_MAX = 240, FOUND_MAX = 40 };

#define L ONXI_CHAR_LETTER
#define D ONXI_CHAR_DIGIT
#define S ONXI_CHAR_SPACE
const uint8_t onxi_text_char_class[256] = {
    ['\t'] = S, ['\n'] = S, ['\v'] = S, ['\f'] = S, ['\r'] = S, [' '] = S, ['_'] = L, ['0'] = D, ['1'] = D, ['2'] = D,
    ['3'] = D,  ['4'] = D,  ['5'] = D,  ['6'] = D,  ['7'] = D,  ['8'] = D, ['9'] = D, ['a'] = L, ['b'] = L, ['c'] = L,
    ['d'] = L,  ['e'] = L,  ['f'] = L,  ['g'] = L,  ['h'] = L,  ['i'] = L, ['j'] = L, ['k'] = L, ['l'] = L, ['m'] = L,
    ['n'] = L,  ['o'] = L,  ['p'] = L,  ['q'] = L,  ['r'] = L,  ['s'] = L, ['t'] = L, ['u'] = L, ['v'] = L, ['w'] = L,
    ['x'] = L,  ['y'] = L,  ['z'] = L,  ['A'] = L,  ['B'] = L,  ['C'] = L, ['D'] = L, ['E'] = L, ['F'] = L, ['G'] = L,
    ['H'] = L,  ['I'] = L,  ['J'] = L,  ['K'] = L,  ['L'] = L,  ['M'] = L, ['N'] = L, ['O'] = L, ['P'] = L, ['Q'] = L,
    ['R'] = L,  ['S'] = L,  ['T'] = L,  ['U'] = L,  ['V'] = L,  ['W'] = L, ['X'] = L, ['Y'] = L, ['Z'] = L,
};
#undef L
#undef D
#undef S

bool onxi_text_is_ident(onx_str s)
{
    if (s.len == 0 || !onxi_text_char_is(s.ptr[0], ONXI_CHAR_LETTER))
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!onxi_text_char_is(s.ptr[i], ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT))
            return false;
    return true;
}

bool onxi_text_is_special_float(onx_str s)
{
    static const char *const words[] = { "inf", "infinity", "nan" };
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t i = 0;
        while (i < s.len && words[w][i] && (s.ptr[i] | 0x20) == words[w][i])
            i++;
        if (i == s.len && !words[w][i])
            return i > 0;
    }
    return false;
}

/* ---- gaps ---- */

/* A comment ends before the line feed. Positions that were scanned before are skipped, because the parser may pass them
 * twice. */
static const char *skip_comment(onxi_text_parser *p)
{
    const char *start = p->at;
    const char *stop = memchr(start, '\n', (size_t)(p->end - start));
    if (!stop)
        stop = p->end;
    if (start >= p->seen) {
        p->seen = stop;
        onx_str text = onx_str_make(start, (size_t)(stop - start));
        if (text.len > 0 && text.ptr[text.len - 1] == '\r')
            text.len--;
        if (text.len >= 2 && text.ptr[1] == '@')
            onxi_text_restore_later(p, start, onx_str_make(text.ptr + 2, text.len - 2));
        else if (p->trivia)
            onxi_text_trivia_comment(p, text);
    }
    return stop;
}

void onxi_text_gap_slow(onxi_text_parser *p)
{
    unsigned breaks = 0;
    p->gap_begin = p->at;
    while (p->at < p->end) {
        char c = *p->at;
        if (c == '#') {
            p->at = skip_comment(p);
            breaks = 0;
        } else if (onxi_text_char_is(c, ONXI_CHAR_SPACE)) {
            if (c == '\n' && ++breaks == 2 && p->trivia && p->at >= p->seen) {
                p->seen = p->at;
                onxi_text_trivia_blank(p, p->at);
            }
            p->at++;
        } else {
            break;
        }
    }
    p->gap_end = p->at;
}

/* ---- tokens ---- */

onx_str onxi_text_look_ident(onxi_text_parser *p)
{
    const char *s = p->at;
    if (s < p->end && onxi_text_char_is(*s, ONXI_CHAR_LETTER))
        do
            s++;
        while (s < p->end && onxi_text_char_is(*s, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT));
    return onx_str_make(p->at, (size_t)(s - p->at));
}

onx_str onxi_text_take_ident(onxi_text_parser *p)
{
    onx_str s = onxi_text_look_ident(p);
    p->at += s.len;
    return s;
}

/* The end of the string, after the closing quote, or NULL. */
static const char *string_end(const onxi_text_parser *p, bool *escaped)
{
    *escaped = false;
    for (const char *s = p->at + 1; s < p->end; s++) {
        if (*s == '"')
            return s + 1;
        if (*s == '\\') {
            *escaped = true;
            s++;
        }
    }
    return NULL;
}

/* string = '"' { plain | "\" any-byte } '"' */
bool onxi_text_take_string(onxi_text_parser *p, onx_bytes *out)
{
    bool escaped;
    const char *start = p->at + 1, *stop = string_end(p, &escaped);
    if (!stop)
        return onxi_text_parse_error(p, p->at, "a closing \"", NULL, "this string has no end");
    onx_str text = onx_str_make(start, (size_t)(stop - 1 - start));
    p->at = stop;
    if (escaped) {
        char *copy = onxi_arena_get(p->arena, text.len);
        if (!copy)
            return onxi_text_parse_abort(p, ONX_E_MEMORY);
        size_t n = 0;
        for (size_t i = 0; i < text.len; i++) {
            if (text.ptr[i] == '\\')
                i++;
            copy[n++] = text.ptr[i];
        }
        text = onx_str_make(copy, n);
    }
    return onxi_bytes_refer(p->arena, text.ptr, text.len, out) || onxi_text_parse_abort(p, ONX_E_MEMORY);
}

bool onxi_text_take_name(onxi_text_parser *p, onx_bytes *out, const char *what)
{
    char c = onxi_text_peek(p);
    if (c == '"')
        return onxi_text_take_string(p, out);
    onx_str s = onxi_text_take_ident(p);
    if (!s.len)
        return onxi_text_parse_error(p, p->at, what, c == '\'' ? "strings are quoted with \"" : NULL,
                                     "a name is missing");
    return onxi_bytes_refer(p->arena, s.ptr, s.len, out) || onxi_text_parse_abort(p, ONX_E_MEMORY);
}

bool onxi_text_expect(onxi_text_parser *p, char c, const char *expected, const char *context)
{
    if (onxi_text_take(p, c))
        return true;
    return onxi_text_unexpected(p, expected, NULL, context);
}

/* A missing closing bracket is detected at the first token of a later line: the error is reported at the end of the
 * earlier line, where the bracket could have been. */
bool onxi_text_unexpected(onxi_text_parser *p, const char *expected, const char *hint, const char *context)
{
    onxi_text_gap(p);
    const char *stop = onxi_text_token_end(p);
    bool broken = memchr(stop, '\n', (size_t)(p->at - stop)) != NULL;
    if (broken)
        p->at = stop;
    return onxi_text_parse_error(p, p->at, expected, hint, "unexpected %s in %s",
                                 broken || p->at >= p->end ? "end" : "text", context);
}

static const char *skip_digits(const char *s, const char *end)
{
    while (s < end && onxi_text_char_is(*s, ONXI_CHAR_DIGIT))
        s++;
    return s;
}

/* int | float */
onxi_text_literal_kind onxi_text_take_number(onxi_text_parser *p, onx_str *out, bool *ok)
{
    const char *start = p->at, *s = start, *end = p->end;
    *ok = true;
    if (s < end && *s == '-')
        s++;
    if (s < end && onxi_text_char_is(*s, ONXI_CHAR_LETTER)) {
        onx_str word = { 0 };
        p->at = s;
        word = onxi_text_look_ident(p);
        p->at = start;
        if (onxi_text_is_special_float(word)) {
            *out = onx_str_make(start, (size_t)(onxi_str_end(word) - start));
            p->at = onxi_str_end(word);
            return ONXI_LITERAL_FLOAT;
        }
    }
    const char *digits = s;
    s = skip_digits(s, end);
    if (s == digits) {
        if (digits > start)
            *ok = onxi_text_parse_error(p, start, "a number", "no gap may stand after the minus sign, infinity is -inf",
                                        "this minus sign has no number");
        return ONXI_LITERAL_NONE;
    }
    onxi_text_literal_kind kind = ONXI_LITERAL_INT;
    if (s < end && *s == '.') {
        kind = ONXI_LITERAL_FLOAT;
        s = skip_digits(s + 1, end);
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        kind = ONXI_LITERAL_FLOAT;
        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        const char *exponent = s;
        s = skip_digits(s, end);
        if (s == exponent)
            *ok = onxi_text_parse_error(p, start, "digits after the e", NULL,
                                        "this number has an exponent without digits");
    }
    if (*ok && s < end && (onxi_text_char_is(*s, ONXI_CHAR_LETTER) || *s == '.'))
        *ok = onxi_text_parse_error(p, start, "a decimal number",
                                    (*s | 0x20) == 'x' ? "hexadecimal numbers have no notation" : NULL,
                                    "this is not a well formed number");
    *out = onx_str_make(start, (size_t)(s - start));
    p->at = s;
    return kind;
}

bool onxi_text_uint_of(onx_str text, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)(text.ptr[i] - '0');
        if (!onxi_mul_u64(value, 10, &value) || !onxi_add_u64(value, digit, &value))
            return false;
    }
    *out = value;
    return text.len > 0;
}

bool onxi_text_int_of(onx_str text, int64_t *out)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t magnitude;
    if (!onxi_text_uint_of(onx_str_make(text.ptr + negative, text.len - negative), &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool onxi_text_take_int(onxi_text_parser *p, int64_t *out, const char *what)
{
    onx_str text;
    bool ok;
    onxi_text_gap(p);
    const char *at = p->at;
    onxi_text_literal_kind kind = onxi_text_take_number(p, &text, &ok);
    if (!ok)
        return false;
    if (kind != ONXI_LITERAL_INT)
        return onxi_text_parse_error(p, at, "an integer",
                                     at < p->end && *at == '+' ? "a plus sign is not part of a number" : NULL,
                                     "%s must be an integer", what);
    if (!onxi_text_int_of(text, out))
        return onxi_text_parse_error(p, at, "-9223372036854775808 to 9223372036854775807", NULL, "%s is out of range",
                                     what);
    return true;
}

/* ---- errors ---- */

onx_where onxi_text_parse_where(onxi_text_parser *p, const char *at)
{
    if (at < p->place) {
        p->place = p->begin;
        p->line = 1;
    }
    for (const char *s; (s = memchr(p->place, '\n', (size_t)(at - p->place))) != NULL; p->line++)
        p->place = s + 1;
    size_t column = (size_t)(at - p->place) + 1;
    return (onx_where){ .kind = ONX_AT_TEXT,
                        .byte = (uint64_t)(at - p->begin),
                        .line = p->line,
                        .column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column };
}

onx_str onxi_text_excerpt(const char *end, const char *at, uint32_t column)
{
    if (column > EXCERPT_MAX)
        return (onx_str){ 0 };
    const char *start = at - (column - 1);
    size_t len = (size_t)(end - start);
    const char *stop = memchr(start, '\n', len > 2 * EXCERPT_MAX ? 2 * EXCERPT_MAX : len);
    if (stop)
        len = (size_t)(stop - start);
    if (len > 2 * EXCERPT_MAX)
        len = 2 * EXCERPT_MAX;
    if (len > 0 && start[len - 1] == '\r')
        len--;
    return onx_str_make(start, len);
}

/* Describes the token at a position. */
static onx_str found_at(const onxi_text_parser *p, const char *at, char buf[64])
{
    const char *next = at;
    while (next < p->end && (onxi_text_char_is(*next, ONXI_CHAR_SPACE) || *next == '#')) {
        const char *stop = *next == '#' ? memchr(next, '\n', (size_t)(p->end - next)) : next;
        next = stop ? stop + 1 : p->end;
    }
    if (next >= p->end)
        return onx_str_of("the end of the text");
    if (next > at)
        return onx_str_of("the end of the line");
    size_t rest = (size_t)(p->end - at), n = 0;
    char c = *at;
    if (onxi_text_char_is(c, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT) || c == '-')
        while (n < rest && n < FOUND_MAX &&
               (onxi_text_char_is(at[n], ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT) || at[n] == '.' || at[n] == '-'))
            n++;
    else if (c == '"') {
        do
            n++;
        while (n < rest && n < FOUND_MAX && at[n] != '"' && at[n] != '\n');
        n += n < rest && at[n] == '"';
        return onx_str_make(at, n);
    }
    int len;
    if (c == '=' && rest > 1 && at[1] == '>')
        n = 2;
    if (n)
        len = snprintf(buf, 64, "'%.*s'", (int)n, at);
    else if (c >= ' ' && c <= '~')
        len = snprintf(buf, 64, "'%c'", c);
    else
        len = snprintf(buf, 64, "byte 0x%02X", (unsigned)(uint8_t)c);
    return onx_str_make(buf, (size_t)len);
}

static const char *common_slip(const onxi_text_parser *p, const char *at)
{
    if (p->end - at >= 2 && at[0] == '/' && (at[1] == '/' || at[1] == '*'))
        return "comments start with #";
    if (at < p->end && *at == '\'')
        return "strings are quoted with \"";
    if (p->end - at >= 3 && memcmp(at, "...", 3) == 0)
        return "values were left out when this text was printed: show --full keeps them";
    if (at < p->end && *at == ';')
        return "no semicolon stands behind a node";
    return NULL;
}

static void report(onxi_text_parser *p, const char *at, onx_diag *d, const char *format, va_list args)
{
    char buf[64];
    d->where = onxi_text_parse_where(p, at);
    d->excerpt = onxi_text_excerpt(p->end, at, d->where.column);
    if (d->expected.len)
        d->value = found_at(p, at, buf);
    onxi_vreport(p->cx, d, format, args);
}

bool onxi_text_parse_error(onxi_text_parser *p, const char *at, const char *expected, const char *hint,
                           const char *format, ...)
{
    if (p->fatal)
        return false;
    onx_diag d = { .severity = ONX_ERROR, .status = ONX_E_MALFORMED, .expected = onx_str_of(expected) };
    const char *slip = common_slip(p, at);
    d.hint = onx_str_of(slip ? slip : hint);
    va_list args;
    va_start(args, format);
    report(p, at, &d, format, args);
    va_end(args);
    if (p->status == ONX_OK)
        p->status = ONX_E_MALFORMED;
    if (++p->errors >= ERRORS_MAX) {
        onxi_fail(p->cx, ONX_E_LIMIT, onxi_text_parse_where(p, at),
                  "too many errors (%d), the rest of the text was not read", ERRORS_MAX);
        p->fatal = true;
    }
    return false;
}

void onxi_text_parse_warn(onxi_text_parser *p, const char *at, onx_severity severity, const char *hint,
                          const char *format, ...)
{
    onx_diag d = { .severity = severity, .hint = onx_str_of(hint) };
    va_list args;
    va_start(args, format);
    report(p, at, &d, format, args);
    va_end(args);
}

bool onxi_text_parse_abort(onxi_text_parser *p, onx_status status)
{
    p->status = status;
    p->fatal = true;
    return false;
}

bool onxi_text_parse_enter(onxi_text_parser *p, uint32_t levels)
{
    if (p->depth + levels > p->depth_limit) {
        if (!p->fatal)
            onxi_fail(p->cx, ONX_E_LIMIT, onxi_text_parse_where(p, p->at),
                      "messages are nested more than %u levels deep (limit depth)", p->depth_limit);
        return onxi_text_parse_abort(p, ONX_E_LIMIT);
    }
    p->depth += levels;
    return true;
}

/* ---- recovering from errors ---- */

/* Skips one token, ignoring the grammar; returns its first byte, 0 at the end. */
static char skip_token(onxi_text_parser *p)
{
    char c = onxi_text_peek(p);
    bool escaped;
    const char *start = p->at;
    if (p->at >= p->end)
        return '\0';
    const char *stop = c == '"' && !p->unclosed ? string_end(p, &escaped) : NULL;
    if (c == '"' && !stop) { /* it probably ends with the line; its end is searched only once */
        p->unclosed = true;
        stop = memchr(p->at, '\n', (size_t)(p->end - p->at));
    }
    if (c == '"')
        p->at = stop ? stop : p->end;
    else if (c == '=' && p->end - p->at >= 2 && p->at[1] == '>')
        p->at += 2;
    else if (onxi_text_char_is(c, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT))
        while (p->at < p->end && onxi_text_char_is(*p->at, ONXI_CHAR_LETTER | ONXI_CHAR_DIGIT))
            p->at++;
    else
        p->at++;
    uint64_t skipped = (uint64_t)(p->at - start);
    if (skipped > p->patience)
        p->at = p->end;
    else
        p->patience -= skipped;
    return c ? c : '?';
}

static size_t column_of(const onxi_text_parser *p, const char *at)
{
    const char *s = at;
    while (s > p->begin && s[-1] != '\n')
        s--;
    return (size_t)(at - s);
}

static bool first_on_line(const onxi_text_parser *p, const char *at)
{
    const char *s = at;
    while (s > p->begin && s[-1] != '\n')
        if (!onxi_text_char_is(*--s, ONXI_CHAR_SPACE))
            return false;
    return true;
}

/* Texts are usually indented: the next node starts on a new line, indented no further than the faulty one, and all
 * brackets opened after the error have to be closed. The number of lines searched backwards is limited to that of the
 * skipped text. */
void onxi_text_skip_node(onxi_text_parser *p, const char *start)
{
    size_t column = column_of(p, start);
    bool own_line = first_on_line(p, start);
    uint32_t open = 0;
    while (!p->fatal) {
        const char *before = p->at;
        char c = onxi_text_peek(p);
        bool new_line = p->at > before && memchr(before, '\n', (size_t)(p->at - before)) != NULL;
        if (p->at >= p->end || (c == '}' && open == 0))
            return;
        if (new_line && p->at > start && c != '}' && c != ')' && c != '>') {
            size_t here = column_of(p, p->at);
            if (own_line ? here <= column : open == 0)
                return;
        }
        skip_token(p);
        if (c == '(' || c == '[' || c == '{')
            open++;
        else if ((c == ')' || c == ']' || c == '}') && open > 0)
            open--;
    }
}

bool onxi_text_skip_element(onxi_text_parser *p, const char *start, char close)
{
    uint32_t open = 0;
    p->at = start;
    while (!p->fatal) {
        char c = onxi_text_peek(p);
        if (p->at >= p->end)
            return false;
        if (open == 0 && (c == ',' || c == close))
            return true;
        if (open == 0 && (c == ')' || c == ']' || c == '}' || c == '>'))
            return false;
        skip_token(p);
        if (c == '(' || c == '[' || c == '{')
            open++;
        else if ((c == ')' || c == ']' || c == '}') && open > 0)
            open--;
    }
    return false;
}

/* The brace after the outputs, or after the list that follows them. */
bool onxi_text_skip_to_body(onxi_text_parser *p)
{
    const char *error = p->at;
    for (char c, last = '\0'; !p->fatal; last = c) {
        c = onxi_text_peek(p);
        if (c == '{' && (last == ')' || last == '>'))
            return true;
        if (p->at >= p->end)
            break;
        c = skip_token(p);
    }
    p->at = error;
    return false;
}

/* ---- lists under construction ---- */

bool onxi_text_push(onxi_text_parser *p, uint64_t value)
{
    if (!ONXI_GROW(p->cx, p->stack, p->stack_room, p->stack_count + 1))
        return onxi_text_parse_abort(p, ONX_E_MEMORY);
    p->stack[p->stack_count++] = value;
    return true;
}

static void *pop_list(onxi_text_parser *p, size_t base, uint32_t *count, size_t size)
{
    size_t n = p->stack_count - base;
    p->stack_count = base;
    *count = 0;
    if (n == 0)
        return NULL;
    if (n > INT32_MAX) {
        onxi_text_parse_error(p, p->at, NULL, NULL, "a list of %zu elements is too long", n);
        onxi_text_parse_abort(p, ONX_E_LIMIT);
        return NULL;
    }
    void *list = onxi_arena_get(p->arena, (size_t)onxi_list_room(n) * size);
    if (!list)
        onxi_text_parse_abort(p, ONX_E_MEMORY);
    else
        *count = (uint32_t)n;
    return list;
}

void *onxi_text_pop_pointers(onxi_text_parser *p, size_t base, uint32_t *count)
{
    void **list = pop_list(p, base, count, sizeof *list);
    for (uint32_t i = 0; i < *count; i++)
        list[i] = (void *)(uintptr_t)p->stack[base + i];
    return list;
}

onx_bytes *onxi_text_pop_strings(onxi_text_parser *p, size_t base, uint32_t *count)
{
    onx_bytes *list = pop_list(p, base, count, sizeof *list);
    if (list)
        memcpy(list, p->stack + base, *count * sizeof *list);
    return list;
}

bool onxi_text_data_reserve(onxi_text_parser *p, size_t more)
{
    enum { FIRST = 1024 };
    const size_t wanted = p->data_len + more;
    return ONXI_GROW(p->cx, p->data, p->data_room, wanted < FIRST ? FIRST : wanted) ||
           onxi_text_parse_abort(p, ONX_E_MEMORY);
}
