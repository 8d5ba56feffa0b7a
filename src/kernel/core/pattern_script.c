/* pattern_script.c - regular expressions in the syntax of ECMAScript, third edition, on bytes: that of C++'s
 * std::regex. They are rewritten where PCRE2 reads them differently, and refused where they are invalid. */
#include "kernel/core/pattern.h"

#include <stdio.h>

#define GROWTH 6u /* bytes that two bytes of a pattern become at most */

enum { NESTED_MAX = 250 }; /* as PCRE2 has it */

typedef struct script {
    onxi_rewriting *t;
    uint32_t groups, depth;
    bool looks[NESTED_MAX]; /* which of the open brackets only look ahead */
} script;

static onx_status refuse(const onxi_rewriting *t, const char *from, const char *what)
{
    return onxi_rewriting_refuse(t, from, what, "ECMAScript");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A character given by its code: \x and two digits, or \u and four. */
static onx_status numbered(onxi_rewriting *t, const char *from, int digits)
{
    char buf[16];
    unsigned value = 0;
    for (int i = 0; i < digits; i++) {
        const int digit = t->at < t->end ? hex_value(*t->at++) : -1;
        if (digit < 0)
            return refuse(t, from, "half a character");
        value = value * 16 + (unsigned)digit;
    }
    if (value > 0xff)
        return refuse(t, from, "a character of more than one byte");
    onxi_rewriting_put(t, buf, (size_t)snprintf(buf, sizeof buf, "\\x%02x", value));
    return ONX_OK;
}

/* \1: what a group before has matched. */
static onx_status reference(script *s, const char *from)
{
    onxi_rewriting *t = s->t;
    char buf[24];
    uint32_t number = 0;
    t->at--;
    while (t->at < t->end && is_digit(*t->at) && number <= s->groups)
        number = number * 10 + (uint32_t)(*t->at++ - '0');
    if (number > s->groups)
        return refuse(t, from, "the number of no group before");
    onxi_rewriting_put(t, buf, (size_t)snprintf(buf, sizeof buf, "\\g{%u}", number));
    return ONX_OK;
}

/* A letter that stands for nothing is itself. */
static void itself(onxi_rewriting *t, char c)
{
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
    if (!letter && c)
        onxi_rewriting_text(t, "\\");
    onxi_rewriting_put(t, &c, 1);
}

/* What is no assertion may be repeated. */
static onx_status escape(script *s, bool in_class, bool *item)
{
    onxi_rewriting *t = s->t;
    const char *from = t->at++;
    *item = true;
    if (t->at == t->end)
        return refuse(t, from, "a \\ without anything");
    const char c = *t->at++;
    if (c == 'b' || c == 'B') {
        *item = in_class;
        if (in_class && c == 'B')
            return refuse(t, from, "an escape");
        onxi_rewriting_text(t, in_class ? "\\x08" : c == 'b' ? "\\b" : "\\B");
    } else if (c == 'x' || c == 'u') {
        return numbered(t, from, c == 'x' ? 2 : 4);
    } else if (c == 'v' || c == '0') {
        onxi_rewriting_text(t, c == 'v' ? "\\x0b" : "\\x00");
    } else if (is_digit(c)) {
        return in_class ? refuse(t, from, "an escape") : reference(s, from);
    } else if (c == 'c') {
        char buf[8];
        const char letter = t->at < t->end ? *t->at++ : ' ';
        if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')))
            return refuse(t, from, "an escape");
        onxi_rewriting_put(t, buf, (size_t)snprintf(buf, sizeof buf, "\\x%02x", (unsigned)letter & 31));
    } else if (memchr("dDwWsSfnrt", c, 10)) {
        onxi_rewriting_put(t, from, 2);
    } else {
        itself(t, c);
    }
    return ONX_OK;
}

static onx_status class_of(script *s)
{
    onxi_rewriting *t = s->t;
    const char *from = t->at;
    bool item;
    onxi_rewriting_put(t, t->at++, 1);
    if (t->at < t->end && *t->at == '^')
        onxi_rewriting_put(t, t->at++, 1);
    while (t->at < t->end && *t->at != ']') {
        const bool pair = t->end - t->at > 2 && t->at[0] == '[';
        if (pair && (t->at[1] == '.' || t->at[1] == '='))
            return refuse(t, t->at, "a name of characters");
        if (pair && t->at[1] == ':') {
            const char *close = memmem(t->at + 2, (size_t)(t->end - t->at) - 2, ":]", 2);
            if (!close || t->at[2] == '<' || t->at[2] == '>' || t->at[2] == '^')
                return refuse(t, t->at, "a name of characters");
            onxi_rewriting_put(t, t->at, (size_t)(close + 2 - t->at));
            t->at = close + 2;
        } else if (*t->at == '\\') {
            ONX_TRY(escape(s, true, &item));
        } else {
            if (*t->at == '[')
                onxi_rewriting_text(t, "\\");
            onxi_rewriting_put(t, t->at++, 1);
        }
    }
    if (t->at == t->end)
        return refuse(t, from, "a [ without its ]");
    onxi_rewriting_put(t, t->at++, 1);
    return ONX_OK;
}

/* (, (?:, (?= and (?!. */
static onx_status open_group(script *s)
{
    onxi_rewriting *t = s->t;
    const char *from = t->at;
    const bool marked = t->end - from > 1 && from[1] == '?';
    if (marked && (t->end - from < 3 || !memchr(":=!", from[2], 3)))
        return refuse(t, from, "a group");
    if (s->depth == NESTED_MAX)
        return refuse(t, from, "a bracket in more than 250 others");
    s->looks[s->depth++] = marked && from[2] != ':';
    s->groups += !marked;
    onxi_rewriting_put(t, from, marked ? 3 : 1);
    t->at += marked ? 3 : 1;
    return ONX_OK;
}

/* The end of {2}, {2,} or {2,5}; NULL: it is none. */
static const char *braces_end(const onxi_rewriting *t)
{
    const char *c = t->at + 1;
    if (c == t->end || !is_digit(*c))
        return NULL;
    while (c < t->end && is_digit(*c))
        c++;
    if (c < t->end && *c == ',')
        for (c++; c < t->end && is_digit(*c);)
            c++;
    return c < t->end && *c == '}' ? c + 1 : NULL;
}

static onx_status repeat(onxi_rewriting *t, bool item)
{
    const char *end = *t->at == '{' ? braces_end(t) : t->at + 1;
    if (!end || !item)
        return refuse(t, t->at, end ? "a repetition of nothing" : "a repetition without its numbers");
    onxi_rewriting_put(t, t->at, (size_t)(end - t->at));
    t->at = end;
    if (t->at < t->end && *t->at == '?')
        onxi_rewriting_put(t, t->at++, 1);
    return ONX_OK;
}

static onx_status rewrite(onxi_rewriting *t)
{
    script s = { .t = t };
    bool item = false; /* is there something before that may be repeated? */
    while (t->at < t->end) {
        const char c = *t->at;
        if (memchr("*+?{", c, 4)) {
            ONX_TRY(repeat(t, item));
            item = false;
        } else if (c == '(') {
            ONX_TRY(open_group(&s));
            item = false;
        } else if (c == '[') {
            ONX_TRY(class_of(&s));
            item = true;
        } else if (c == '\\') {
            ONX_TRY(escape(&s, false, &item));
        } else {
            if (c == ']' || c == '}')
                onxi_rewriting_text(t, "\\");
            onxi_rewriting_put(t, t->at++, 1);
            item = c != '|' && c != '^' && c != '$' && (c != ')' || !s.depth || !s.looks[s.depth - 1]);
            s.depth -= c == ')' && s.depth;
        }
    }
    return ONX_OK;
}

const onxi_syntax onxi_syntax_script = { rewrite, GROWTH, ONXI_REGEX_SCRIPT | ONXI_REGEX_GROUPS | ONXI_REGEX_LAST_END };
