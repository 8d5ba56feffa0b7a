/* pattern.c - regular expressions in RE2 syntax, rewritten where PCRE2 reads them differently and refused where RE2
 * does not support them. */
#include "kernel/core/pattern.h"

#include <stdio.h>

/* ---- from RE2 to PCRE2 ---- */

#define REPEAT_MAX 1000 /* of RE2 */
#define GROWTH     56u  /* bytes that two bytes of a pattern become at most */

typedef onxi_rewriting pattern;

static onx_status refuse(const pattern *t, const char *from, const char *what)
{
    return onxi_rewriting_refuse(t, from, what, "RE2");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A character by its number in base eight. */
static void put_octal(pattern *t)
{
    char buf[16];
    unsigned value = 0;
    for (int n = 0; n < 3 && t->at < t->end && *t->at >= '0' && *t->at <= '7'; n++)
        value = value * 8 + (unsigned)(*t->at++ - '0');
    onxi_rewriting_put(t, buf, (size_t)snprintf(buf, sizeof buf, "\\x{%x}", value));
}

/* \p{Name}, \pN and \x{10ffff} are the same in both; PCRE2 reports invalid ones. */
static void put_named(pattern *t, const char *from)
{
    if (t->at < t->end && *t->at == '{')
        while (t->at < t->end && *t->at != '}')
            t->at++;
    if (t->at < t->end)
        t->at++;
    onxi_rewriting_put(t, from, (size_t)(t->at - from));
}

/* Replacements for character classes that differ: PCRE2 counts the vertical tab as white space. */
static const char *set_of(char c, bool in_class)
{
    if (c == 's')
        return in_class ? "\\t\\n\\f\\r " : "[\\t\\n\\f\\r ]";
    if (c == 'S')
        return in_class ? "\\x{0}-\\x08\\x0b\\x0e-\\x1f\\x21-\\x{10ffff}" : "[^\\t\\n\\f\\r ]";
    return c == 'v' ? "\\x0b" : NULL;
}

/* \Q...\E: everything as it is. */
static void put_quoted(pattern *t)
{
    for (; t->at < t->end; t->at++) {
        if (t->end - t->at >= 2 && t->at[0] == '\\' && t->at[1] == 'E') {
            t->at += 2;
            return;
        }
        if (!is_letter(*t->at) && !is_digit(*t->at) && (unsigned char)*t->at < 0x80 && *t->at != '_')
            onxi_rewriting_text(t, "\\");
        onxi_rewriting_put(t, t->at, 1);
    }
}

static onx_status escape(pattern *t, bool in_class, bool *item)
{
    const char *from = t->at++;
    *item = true;
    if (t->at == t->end)
        return refuse(t, from, "a \\ without anything");
    char c = *t->at++;
    const char *set = set_of(c, in_class);
    if (set) {
        onxi_rewriting_text(t, set);
    } else if (c == 'p' || c == 'P') {
        put_named(t, from);
    } else if (c == 'x') {
        if (t->end - t->at < 2 || (*t->at != '{' && !(is_hex(t->at[0]) && is_hex(t->at[1]))))
            return refuse(t, from, "half a character");
        if (*t->at != '{') /* two digits, of which put_named takes the second */
            t->at++;
        put_named(t, from);
    } else if (c == '0' || (c >= '1' && c <= '7' && t->at < t->end && *t->at >= '0' && *t->at <= '7')) {
        t->at--;
        put_octal(t);
    } else if (!in_class && c == 'Q') {
        size_t before = t->len;
        put_quoted(t);
        *item = t->len > before;
    } else if (!in_class && (c == 'A' || c == 'z' || c == 'b' || c == 'B')) {
        onxi_rewriting_text(t, "(?:");
        onxi_rewriting_put(t, from, 2);
        onxi_rewriting_text(t, ")");
    } else if (memchr("dDwWaftnr", c, 9) || ((unsigned char)c < 0x80 && !is_letter(c) && !is_digit(c) && c != '_')) {
        onxi_rewriting_put(t, from, 2);
    } else {
        return refuse(t, from, "an escape");
    }
    return ONX_OK;
}

static onx_status class_of(pattern *t)
{
    const char *from = t->at;
    onxi_rewriting_put(t, t->at++, 1);
    if (t->at < t->end && *t->at == '^')
        onxi_rewriting_put(t, t->at++, 1);
    for (bool first = true; t->at < t->end; first = false) {
        bool item;
        if (*t->at == ']' && !first) {
            onxi_rewriting_put(t, t->at++, 1);
            return ONX_OK;
        }
        if (t->end - t->at > 2 && t->at[0] == '[' && t->at[1] == ':') {
            const char *close = memmem(t->at, (size_t)(t->end - t->at), ":]", 2);
            if (!close || t->at[2] == '<' || t->at[2] == '>')
                return refuse(t, t->at, "a name of characters");
            onxi_rewriting_put(t, t->at, (size_t)(close + 2 - t->at));
            t->at = close + 2;
        } else if (*t->at == '\\') {
            ONX_TRY(escape(t, true, &item));
        } else {
            if (*t->at == '[' || *t->at == ']')
                onxi_rewriting_text(t, "\\");
            onxi_rewriting_put(t, t->at++, 1);
        }
    }
    return refuse(t, from, "a [ without its ]");
}

/* The end of {2}, {2,} or {2,5}; NULL if it is none of these, and { is a literal. */
static const char *repeat_end(const pattern *t, bool *good)
{
    const char *c = t->at + 1;
    long low = 0, high = -1;
    if (c == t->end || !is_digit(*c))
        return NULL;
    for (; c < t->end && is_digit(*c); c++)
        low = low > REPEAT_MAX ? low : low * 10 + (*c - '0');
    if (c < t->end && *c == ',')
        for (c++; c < t->end && is_digit(*c); c++)
            high = (high < 0 ? 0 : high > REPEAT_MAX ? high : high * 10) + (*c - '0');
    *good = low <= REPEAT_MAX && high <= REPEAT_MAX && (high < 0 || low <= high);
    return c < t->end && *c == '}' ? c + 1 : NULL;
}

static onx_status repeat(pattern *t, const char *end, bool item)
{
    if (!item)
        return refuse(t, t->at, "a repetition of nothing");
    onxi_rewriting_put(t, t->at, (size_t)(end - t->at));
    t->at = end;
    if (t->at < t->end && *t->at == '?')
        onxi_rewriting_put(t, t->at++, 1);
    return ONX_OK;
}

/* (?:, (?P<name>, (?<name>, (?flags) and (?flags:; all other groups that begin with (? are lookarounds or back
 * references. */
static onx_status group(pattern *t)
{
    const char *from = t->at, *c = t->at + 1;
    if (c < t->end && *c == '?') {
        c++;
        if (t->end - c > 1 && c[0] == 'P' && c[1] == '<')
            c++;
        else if (t->end - c > 1 && c[0] == '<' && !is_letter(c[1]) && c[1] != '_')
            return refuse(t, from, "a group");
        const bool named = c < t->end && *c == '<';
        while (c < t->end && (named ? *c != '>' : memchr("imsU-", *c, 5) != NULL))
            c++;
        if (c == t->end || (!named && *c != ':' && *c != ')'))
            return refuse(t, from, "a group");
        if (*c != ')')
            c++;
    }
    if (c == from + 1 && c < t->end && *c == '*')
        return refuse(t, c, "a repetition of nothing");
    onxi_rewriting_put(t, from, (size_t)(c - from));
    t->at = c;
    return ONX_OK;
}

static onx_status translate(pattern *t)
{
    bool item = false, good = false; /* is there something before that may be repeated? */
    while (t->at < t->end) {
        const char *from = t->at, *end = *from == '{' ? repeat_end(t, &good) : NULL;
        if (end) {
            if (!good)
                return refuse(t, from, "a repetition");
            ONX_TRY(repeat(t, end, item));
            item = false;
        } else if (*from == '*' || *from == '+' || *from == '?') {
            ONX_TRY(repeat(t, from + 1, item));
            item = false;
        } else if (*from == '(') {
            ONX_TRY(group(t));
            item = false;
        } else if (*from == '[') {
            ONX_TRY(class_of(t));
            item = true;
        } else if (*from == '\\') {
            ONX_TRY(escape(t, false, &item));
        } else if (*from == '^' || *from == '$') {
            onxi_rewriting_text(t, *from == '^' ? "(?:^)" : "(?:$)");
            t->at++;
            item = true;
        } else {
            if (*from == '{' || *from == '}' || *from == ']')
                onxi_rewriting_text(t, "\\");
            onxi_rewriting_put(t, t->at++, 1);
            item = *from != '|';
        }
    }
    return ONX_OK;
}

/* ---- for all syntaxes ---- */

onx_status onxi_rewriting_refuse(const onxi_rewriting *t, const char *from, const char *what, const char *syntax)
{
    const size_t len = (size_t)(t->end - from);
    (void)snprintf(t->why->text, sizeof t->why->text, "has %s at \"%.*s\", which is not in the syntax of %s", what,
                   (int)(len < 20 ? len : 20), from, syntax);
    return t->why->status = ONX_E_INVALID;
}

onx_status onxi_pattern_compile(onx_ctx *cx, onx_arena *arena, onx_str text, const onxi_syntax *syntax, unsigned flags,
                                onxi_regex **out, onxi_regex_error *why)
{
    onxi_rewriting t = { .at = text.ptr, .end = onxi_str_end(text), .why = why };
    *out = NULL;
    if (text.len > ONXI_REGEX_MAX) {
        (void)snprintf(why->text, sizeof why->text, "has %zu bytes, expected up to %d", text.len, ONXI_REGEX_MAX);
        return why->status = ONX_E_INVALID;
    }
    t.out = onx_arena_alloc(arena, text.len * syntax->growth / 2 + 1);
    if (!t.out)
        return ONX_E_MEMORY;
    if (text.len)
        ONX_TRY(syntax->rewrite(&t));
    return onxi_regex_compile(cx, arena, onx_str_make(t.out, t.len), syntax->flags | flags, out, why);
}

const onxi_syntax onxi_syntax_re2 = { translate, GROWTH, ONXI_REGEX_UTF | ONXI_REGEX_LAST_END | ONXI_REGEX_LINES_LF };

/* ---- attributes that are expressions ---- */

onx_status onxi_pattern_new(onx_prepare *p, const char *name, onx_str text, onxi_regex **out)
{
    onxi_regex_error why = { 0 };
    const onx_status status =
        onxi_pattern_compile(p->cx, p->arena, text, &onxi_syntax_re2, ONXI_REGEX_LONGEST, out, &why);
    if (why.status == ONX_E_UNSUPPORTED)
        return onx_prepare_fail(p, status, "%s %s", p->kernel->op, why.text);
    return why.status ? onx_prepare_fail(p, status, "%s %s", name, why.text) : status;
}

onx_status onxi_pattern_find(onx_work *work, const onxi_regex *q, onxi_matcher **matcher, onx_str text, uint64_t index,
                             size_t from, bool here, size_t *start, size_t *end, bool *found)
{
    onxi_regex_error why = { 0 };
    const unsigned how = (here ? ONXI_MATCH_HERE : 0) | (from ? ONXI_MATCH_TRUSTED : 0);
    const onx_status status = onxi_regex_match(work->cx, q, matcher, text, from, how, found, &why);
    if (why.status)
        return onx_work_fail(work, status, "string %llu cannot be matched: %s", (unsigned long long)index, why.text);
    if (status == ONX_OK && *found)
        (void)onxi_matcher_group(*matcher, 0, start, end);
    return status;
}
