/* base_regex.c - expressions compiled and matched by PCRE2, which is loaded when first needed. */
#include "base/base.h"

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
    F(pcre2_jit_compile)                                                                                               \
    F(pcre2_pattern_info)                                                                                              \
    F(pcre2_match_context_create)                                                                                      \
    F(pcre2_match_context_free)                                                                                        \
    F(pcre2_set_match_limit)                                                                                           \
    F(pcre2_set_heap_limit)                                                                                            \
    F(pcre2_match_data_create)                                                                                         \
    F(pcre2_match_data_free)                                                                                           \
    F(pcre2_match)                                                                                                     \
    F(pcre2_dfa_match)                                                                                                 \
    F(pcre2_get_ovector_pointer)                                                                                       \
    F(pcre2_get_error_message)

typedef struct pcre2 {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} pcre2;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

/* The workspace of the longest-match algorithm has six integers per state of the expression. */
enum { STEPS_PER_BYTE = 8, STEPS_MIN = 100000, STEPS_PATIENT = 5000000, HEAP_KIB = 1 << 18, WORKSPACE = 1 << 14 };

struct onxi_regex {
    const pcre2 *lib;
    pcre2_code *code;
    unsigned flags;
    uint32_t groups;
};

struct onxi_matcher {
    onx_ctx *cx;
    const pcre2 *lib;
    pcre2_match_data *data, *longest; /* for all groups; for the whole match only */
    pcre2_match_context *context;
    int *workspace;
    const pcre2_match_data *last;
    uint32_t count; /* groups that the last match reports */
    uint32_t limit;
};

static onx_status say(const pcre2 *lib, onx_status status, int code, const char *before, onxi_regex_error *why)
{
    PCRE2_UCHAR message[96];
    lib->pcre2_get_error_message(code, message, sizeof message);
    why->status = status;
    (void)snprintf(why->text, sizeof why->text, "%s%s", before, (const char *)message);
    return status;
}

static uint32_t options_of(unsigned flags)
{
    return (flags & ONXI_REGEX_UTF ? PCRE2_UTF : 0) | (flags & ONXI_REGEX_UNICODE ? PCRE2_UCP : 0) |
           (flags & ONXI_REGEX_GROUPS ? 0 : PCRE2_NO_AUTO_CAPTURE) |
           (flags & ONXI_REGEX_ANY_CASE ? PCRE2_CASELESS : 0) |
           (flags & ONXI_REGEX_LAST_END ? PCRE2_DOLLAR_ENDONLY : 0) |
           (flags & ONXI_REGEX_SCRIPT ? PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF : 0) |
           PCRE2_NEVER_BACKSLASH_C;
}

static onx_status compile(onx_ctx *cx, onx_str pattern, onxi_regex *q, onxi_regex_error *why)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = q->lib->pcre2_compile_context_create(NULL);
    if (!context)
        return onxi_no_memory(cx);
    if (q->flags & (ONXI_REGEX_LINES_LF | ONXI_REGEX_SCRIPT))
        q->lib->pcre2_set_newline(context, q->flags & ONXI_REGEX_SCRIPT ? PCRE2_NEWLINE_ANYCRLF : PCRE2_NEWLINE_LF);
    q->code = q->lib->pcre2_compile((PCRE2_SPTR)(pattern.len ? pattern.ptr : ""), pattern.len, options_of(q->flags),
                                    &error, &at, context);
    q->lib->pcre2_compile_context_free(context);
    return q->code ? ONX_OK : say(q->lib, ONX_E_INVALID, error, "cannot be used: ", why);
}

onx_status onxi_regex_compile(onx_ctx *cx, onx_arena *arena, onx_str pattern, unsigned flags, onxi_regex **out,
                              onxi_regex_error *why)
{
    onxi_regex *q = *out = ONXI_NEW(arena, onxi_regex);
    if (!q)
        return ONX_E_MEMORY;
    q->flags = flags;
    q->lib = ONXI_FUNCTIONS(ONXI_LIBRARY_PCRE2, function_names);
    if (!q->lib) {
        (void)snprintf(why->text, sizeof why->text, "%s", onxi_library_missing(ONXI_LIBRARY_PCRE2));
        return why->status = ONX_E_UNSUPPORTED;
    }
    ONX_TRY(compile(cx, pattern, q, why));
    (void)q->lib->pcre2_pattern_info(q->code, PCRE2_INFO_CAPTURECOUNT, &q->groups);
    if (!(flags & ONXI_REGEX_LONGEST)) /* expressions that cannot be compiled to machine code are interpreted */
        (void)q->lib->pcre2_jit_compile(q->code, PCRE2_JIT_COMPLETE);
    return ONX_OK;
}

void onxi_regex_free(onxi_regex *regex)
{
    if (regex && regex->code)
        regex->lib->pcre2_code_free(regex->code);
}

uint32_t onxi_regex_groups(const onxi_regex *regex)
{
    return regex->groups;
}

/* ---- matching ---- */

static onx_status matcher_new(onx_ctx *cx, const pcre2 *lib, onxi_matcher **out)
{
    onxi_matcher *m = *out = onxi_resize(cx, NULL, 0, sizeof *m);
    if (!m)
        return ONX_E_MEMORY;
    *m = (onxi_matcher){ .cx = cx, .lib = lib };
    return ONX_OK;
}

void onxi_matcher_free(onxi_matcher *m)
{
    if (!m)
        return;
    if (m->data)
        m->lib->pcre2_match_data_free(m->data);
    if (m->longest)
        m->lib->pcre2_match_data_free(m->longest);
    if (m->context)
        m->lib->pcre2_match_context_free(m->context);
    onxi_release(m->cx, m->workspace, m->workspace ? WORKSPACE * sizeof *m->workspace : 0);
    onxi_release(m->cx, m, sizeof *m);
}

static onx_status ready_for_longest(onxi_matcher *m)
{
    if (!m->longest && !(m->longest = m->lib->pcre2_match_data_create(1, NULL)))
        return onxi_no_memory(m->cx);
    if (!m->workspace && !(m->workspace = onxi_resize(m->cx, NULL, 0, WORKSPACE * sizeof *m->workspace)))
        return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status ready_for_first(onxi_matcher *m)
{
    if (!m->data && !(m->data = m->lib->pcre2_match_data_create(ONXI_GROUPS_MAX, NULL)))
        return onxi_no_memory(m->cx);
    if (m->context)
        return ONX_OK;
    if (!(m->context = m->lib->pcre2_match_context_create(NULL)))
        return onxi_no_memory(m->cx);
    m->lib->pcre2_set_heap_limit(m->context, HEAP_KIB);
    return ONX_OK;
}

/* The backtracking limit: a number of steps per remaining byte, so that no match takes forever. */
static void limit_steps(onxi_matcher *m, const onxi_regex *q, size_t left)
{
    const uint64_t least = q->flags & ONXI_REGEX_PATIENT ? STEPS_PATIENT : STEPS_MIN,
                   limit = least + (uint64_t)left * STEPS_PER_BYTE;
    const uint32_t steps = limit < UINT32_MAX ? (uint32_t)limit : (uint32_t)-1;
    if (steps > m->limit || steps < m->limit / 2)
        m->lib->pcre2_set_match_limit(m->context, m->limit = steps);
}

static int match_longest(const onxi_regex *q, onxi_matcher *m, onx_str text, size_t from, uint32_t options)
{
    m->last = m->longest;
    return q->lib->pcre2_dfa_match(q->code, (PCRE2_SPTR)text.ptr, text.len, from, options, m->longest, NULL,
                                   m->workspace, WORKSPACE);
}

static int match_first(const onxi_regex *q, onxi_matcher *m, onx_str text, size_t from, uint32_t options)
{
    limit_steps(m, q, text.len - from);
    m->last = m->data;
    int rc = q->lib->pcre2_match(q->code, (PCRE2_SPTR)text.ptr, text.len, from, options, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = q->lib->pcre2_match(q->code, (PCRE2_SPTR)text.ptr, text.len, from, options | PCRE2_NO_JIT, m->data,
                                 m->context);
    return rc;
}

static uint32_t match_options(unsigned how)
{
    return (how & ONXI_MATCH_HERE ? PCRE2_ANCHORED : 0) | (how & ONXI_MATCH_TO_END ? PCRE2_ENDANCHORED : 0) |
           (how & ONXI_MATCH_NOT_EMPTY ? PCRE2_NOTEMPTY : 0) |
           (how & ONXI_MATCH_NOT_EMPTY_HERE ? PCRE2_NOTEMPTY_ATSTART : 0) |
           (how & ONXI_MATCH_TRUSTED ? PCRE2_NO_UTF_CHECK : 0);
}

onx_status onxi_regex_match(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                            unsigned how, bool *found, onxi_regex_error *why)
{
    const bool longest = regex->flags & ONXI_REGEX_LONGEST;
    *found = false;
    if (!*matcher)
        ONX_TRY(matcher_new(cx, regex->lib, matcher));
    ONX_TRY(longest ? ready_for_longest(*matcher) : ready_for_first(*matcher));
    if (!text.len)
        text.ptr = "";
    const int rc = longest ? match_longest(regex, *matcher, text, from, match_options(how))
                           : match_first(regex, *matcher, text, from, match_options(how));
    if (rc == PCRE2_ERROR_NOMATCH)
        return ONX_OK;
    if (rc < 0)
        return say(regex->lib,
                   rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT || rc == PCRE2_ERROR_DFA_WSSIZE
                       ? ONX_E_LIMIT
                       : ONX_E_INVALID,
                   rc, "", why);
    (*matcher)->count = longest ? 1 : rc ? (uint32_t)rc : ONXI_GROUPS_MAX;
    *found = true;
    return ONX_OK;
}

bool onxi_matcher_group(const onxi_matcher *m, uint32_t index, size_t *start, size_t *end)
{
    /* PCRE2's parameter is not const, but it does not modify the object. */
    const PCRE2_SIZE *places = m->lib->pcre2_get_ovector_pointer((pcre2_match_data *)(uintptr_t)m->last);
    *start = *end = 0;
    if (index >= m->count || places[2 * index] == PCRE2_UNSET || places[2 * index + 1] < places[2 * index])
        return false;
    *start = places[2 * index];
    *end = places[2 * index + 1];
    return true;
}

#else /* !ONX_WITH_PCRE2 */

#include <stdio.h>

onx_status onxi_regex_compile(onx_ctx *cx, onx_arena *arena, onx_str pattern, unsigned flags, onxi_regex **out,
                              onxi_regex_error *why)
{
    (void)cx, (void)arena, (void)pattern, (void)flags;
    *out = NULL;
    (void)snprintf(why->text, sizeof why->text, "%s", onxi_library_missing(ONXI_LIBRARY_PCRE2));
    return why->status = ONX_E_UNSUPPORTED;
}

void onxi_regex_free(onxi_regex *regex)
{
    (void)regex;
}

uint32_t onxi_regex_groups(const onxi_regex *regex)
{
    (void)regex;
    return 0;
}

onx_status onxi_regex_match(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                            unsigned how, bool *found, onxi_regex_error *why)
{
    (void)cx, (void)regex, (void)matcher, (void)text, (void)from, (void)how;
    *found = false;
    (void)snprintf(why->text, sizeof why->text, "%s", onxi_library_missing(ONXI_LIBRARY_PCRE2));
    return why->status = ONX_E_UNSUPPORTED;
}

bool onxi_matcher_group(const onxi_matcher *matcher, uint32_t index, size_t *start, size_t *end)
{
    (void)matcher, (void)index;
    *start = *end = 0;
    return false;
}

void onxi_matcher_free(onxi_matcher *matcher)
{
    (void)matcher;
}

#endif
