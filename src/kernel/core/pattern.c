/* pattern.c - expressions in the syntax of RE2. PCRE2 does the matching, by the algorithm that tries all ways at once,
 * which has no bad cases as backtracking has, and finds the longest of the matches that begin first. Patterns are
 * rewritten where the two read them differently, and refused where RE2 does not know them. */
#include "kernel/core/pattern.h"

#ifdef ONX_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

#define FUNCTIONS(F)                                                                                                   \
    F(pcre2_compile_context_create)                                                                                    \
    F(pcre2_compile_context_free)                                                                                      \
    F(pcre2_set_newline)                                                                                               \
    F(pcre2_compile)                                                                                                   \
    F(pcre2_code_free)                                                                                                 \
    F(pcre2_match_data_create)                                                                                         \
    F(pcre2_match_data_free)                                                                                           \
    F(pcre2_dfa_match)                                                                                                 \
    F(pcre2_get_ovector_pointer)                                                                                       \
    F(pcre2_get_error_message)

typedef struct pcre2 {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} pcre2;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

/* ---- from RE2 to PCRE2 ---- */

#define PATTERN_MAX 65535u /* bytes; compiled ones are no larger either */
#define REPEAT_MAX  1000   /* of RE2 */
#define GROWTH      56u    /* bytes that two bytes of a pattern become at most */

typedef struct pattern {
    const onx_prepare *p;
    const char *name; /* of the attribute */
    const char *at, *end;
    char *out;
    size_t len;
} pattern;

static void put(pattern *t, const char *text, size_t len)
{
    memcpy(t->out + t->len, text, len);
    t->len += len;
}

static void put_text(pattern *t, const char *text)
{
    put(t, text, strlen(text));
}

static onx_status refuse(const pattern *t, const char *from, const char *what)
{
    size_t len = (size_t)(t->end - from);
    return onx_prepare_fail(t->p, ONX_E_INVALID, "%s has %s at \"%.*s\", which is not in the syntax of RE2", t->name,
                            what, (int)(len < 20 ? len : 20), from);
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
    put(t, buf, (size_t)snprintf(buf, sizeof buf, "\\x{%x}", value));
}

/* \p{Name}, \pN and \x{10ffff} are the same in both; what is wrong with them PCRE2 will say. */
static void put_named(pattern *t, const char *from)
{
    if (t->at < t->end && *t->at == '{')
        while (t->at < t->end && *t->at != '}')
            t->at++;
    if (t->at < t->end)
        t->at++;
    put(t, from, (size_t)(t->at - from));
}

/* What stands for a set of characters where the two differ: PCRE2 counts the vertical tab as white space. */
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
            put_text(t, "\\");
        put(t, t->at, 1);
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
        put_text(t, set);
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
        put_text(t, "(?:");
        put(t, from, 2);
        put_text(t, ")");
    } else if (memchr("dDwWaftnr", c, 9) || ((unsigned char)c < 0x80 && !is_letter(c) && !is_digit(c) && c != '_')) {
        put(t, from, 2);
    } else {
        return refuse(t, from, "an escape");
    }
    return ONX_OK;
}

static onx_status class_of(pattern *t)
{
    const char *from = t->at;
    put(t, t->at++, 1);
    if (t->at < t->end && *t->at == '^')
        put(t, t->at++, 1);
    for (bool first = true; t->at < t->end; first = false) {
        bool item;
        if (*t->at == ']' && !first) {
            put(t, t->at++, 1);
            return ONX_OK;
        }
        if (t->end - t->at > 2 && t->at[0] == '[' && t->at[1] == ':') {
            const char *close = memmem(t->at, (size_t)(t->end - t->at), ":]", 2);
            if (!close || t->at[2] == '<' || t->at[2] == '>')
                return refuse(t, t->at, "a name of characters");
            put(t, t->at, (size_t)(close + 2 - t->at));
            t->at = close + 2;
        } else if (*t->at == '\\') {
            ONX_TRY(escape(t, true, &item));
        } else {
            if (*t->at == '[' || *t->at == ']')
                put_text(t, "\\");
            put(t, t->at++, 1);
        }
    }
    return refuse(t, from, "a [ without its ]");
}

/* {2}, {2,} or {2,5}: its end, else NULL, and then { means itself. */
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
    put(t, t->at, (size_t)(end - t->at));
    t->at = end;
    if (t->at < t->end && *t->at == '?')
        put(t, t->at++, 1);
    return ONX_OK;
}

/* (?:, (?P<name>, (?<name>, (?flags) and (?flags:; everything else that begins so looks around or back. */
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
    put(t, from, (size_t)(c - from));
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
            put_text(t, *from == '^' ? "(?:^)" : "(?:$)");
            t->at++;
            item = true;
        } else {
            if (*from == '{' || *from == '}' || *from == ']')
                put_text(t, "\\");
            put(t, t->at++, 1);
            item = *from != '|';
        }
    }
    return ONX_OK;
}

/* ---- matching ---- */

struct onxi_pattern {
    const pcre2 *lib;
    pcre2_code *code;
};

struct onxi_pattern_place {
    const pcre2 *lib;
    pcre2_match_data *data;
};

static onx_status compile(const onx_prepare *p, const char *name, const char *text, size_t len, onxi_pattern *q)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR message[128];
    pcre2_compile_context *context = q->lib->pcre2_compile_context_create(NULL);
    if (!context)
        return onxi_no_memory(p->cx);
    q->lib->pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    q->code = q->lib->pcre2_compile((PCRE2_SPTR)text, len,
                                    PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C,
                                    &error, &at, context);
    q->lib->pcre2_compile_context_free(context);
    if (q->code)
        return ONX_OK;
    q->lib->pcre2_get_error_message(error, message, sizeof message);
    return onx_prepare_fail(p, ONX_E_INVALID, "%s cannot be used: %s", name, (const char *)message);
}

onx_status onxi_pattern_new(onx_prepare *p, const char *name, onx_str text, onxi_pattern **out)
{
    onxi_pattern *q = *out = ONXI_NEW(p->arena, onxi_pattern);
    pattern t = { .p = p, .name = name, .at = text.ptr, .end = onxi_str_end(text) };
    if (text.len > PATTERN_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s has %zu bytes, expected up to %u", name, text.len,
                                PATTERN_MAX);
    t.out = onx_arena_alloc(p->arena, text.len * (GROWTH / 2) + 1);
    if (!q || !t.out)
        return ONX_E_MEMORY;
    q->lib = ONXI_FUNCTIONS(ONXI_LIBRARY_PCRE2, function_names);
    if (!q->lib)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "%s %s", p->kernel->op, onxi_library_missing(ONXI_LIBRARY_PCRE2));
    if (text.len)
        ONX_TRY(translate(&t));
    return compile(p, name, t.out, t.len, q);
}

void onxi_pattern_free(onxi_pattern *q)
{
    if (q && q->code)
        q->lib->pcre2_code_free(q->code);
}

onx_status onxi_pattern_place_new(onx_work *work, const onxi_pattern *q, onxi_pattern_place **out)
{
    onxi_pattern_place *place = *out = onxi_resize(work->cx, NULL, 0, sizeof *place);
    if (!place)
        return ONX_E_MEMORY;
    *place = (onxi_pattern_place){ q->lib, q->lib->pcre2_match_data_create(1, NULL) };
    return place->data ? ONX_OK : onxi_no_memory(work->cx);
}

void onxi_pattern_place_free(onx_work *work, onxi_pattern_place *place)
{
    if (!place)
        return;
    place->lib->pcre2_match_data_free(place->data);
    onxi_release(work->cx, place, sizeof *place);
}

onx_status onxi_pattern_find(onx_work *work, const onxi_pattern *q, onxi_pattern_place *place, onx_str text,
                             uint64_t index, size_t from, bool here, size_t *start, size_t *end, bool *found)
{
    const int rc = q->lib->pcre2_dfa_match(q->code, (PCRE2_SPTR)(text.len ? text.ptr : ""), text.len, from,
                                           (here ? PCRE2_ANCHORED : 0) | (from ? PCRE2_NO_UTF_CHECK : 0), place->data,
                                           NULL, work->workspace, ONXI_PATTERN_WORKSPACE);
    *found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMATCH)
        return ONX_OK;
    if (rc < 0) {
        PCRE2_UCHAR message[128];
        q->lib->pcre2_get_error_message(rc, message, sizeof message);
        return onx_work_fail(work, rc == PCRE2_ERROR_DFA_WSSIZE ? ONX_E_LIMIT : ONX_E_INVALID,
                             "string %llu cannot be matched: %s", (unsigned long long)index, (const char *)message);
    }
    const PCRE2_SIZE *places = q->lib->pcre2_get_ovector_pointer(place->data);
    *start = places[0];
    *end = places[1];
    return ONX_OK;
}

#else /* !ONX_WITH_PCRE2 */

onx_status onxi_pattern_new(onx_prepare *p, const char *name, onx_str text, onxi_pattern **out)
{
    (void)name, (void)text, (void)out;
    return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "%s %s", p->kernel->op, onxi_library_missing(ONXI_LIBRARY_PCRE2));
}

void onxi_pattern_free(onxi_pattern *q)
{
    (void)q;
}

onx_status onxi_pattern_place_new(onx_work *work, const onxi_pattern *q, onxi_pattern_place **out)
{
    (void)q, (void)out;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "%s", onxi_library_missing(ONXI_LIBRARY_PCRE2));
}

void onxi_pattern_place_free(onx_work *work, onxi_pattern_place *place)
{
    (void)work, (void)place;
}

onx_status onxi_pattern_find(onx_work *work, const onxi_pattern *q, onxi_pattern_place *place, onx_str text,
                             uint64_t index, size_t from, bool here, size_t *start, size_t *end, bool *found)
{
    (void)q, (void)place, (void)text, (void)index, (void)from, (void)here, (void)start, (void)end, (void)found;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "%s", onxi_library_missing(ONXI_LIBRARY_PCRE2));
}

#endif
