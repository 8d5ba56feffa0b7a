/* token_regex.c - the patterns of tokenizer files, by PCRE2. They were written for Oniguruma, whose syntax is the same
 * for what such files use. */
#include "token/token.h"

#ifdef ONX_WITH_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define FUNCTIONS(F)                                                                                                   \
    F(pcre2_compile)                                                                                                   \
    F(pcre2_code_free)                                                                                                 \
    F(pcre2_jit_compile)                                                                                               \
    F(pcre2_match_context_create)                                                                                      \
    F(pcre2_match_context_free)                                                                                        \
    F(pcre2_set_match_limit)                                                                                           \
    F(pcre2_set_heap_limit)                                                                                            \
    F(pcre2_match_data_create)                                                                                         \
    F(pcre2_match_data_free)                                                                                           \
    F(pcre2_match)                                                                                                     \
    F(pcre2_get_ovector_pointer)                                                                                       \
    F(pcre2_get_error_message)

typedef struct pcre2 {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} pcre2;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

enum { PATTERN_MAX = 1 << 16, STEPS_PER_BYTE = 8, STEPS_MIN = 100000, HEAP_KIB = 1 << 18 };

struct onxi_regex {
    const pcre2 *lib;
    pcre2_code *code;
};

/* Shared by all patterns of a run. */
struct onxi_matcher {
    onx_ctx *cx;
    const pcre2 *lib;
    pcre2_match_data *data;
    pcre2_match_context *context;
    uint32_t limit;
};

onx_status onxi_regex_new(onx_ctx *cx, onx_arena *arena, onx_str pattern, onxi_regex **out)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR message[128];
    const pcre2 *lib = ONXI_FUNCTIONS(ONXI_LIBRARY_PCRE2, function_names);
    if (!lib)
        return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a tokenizer with patterns %s",
                         onxi_library_missing(ONXI_LIBRARY_PCRE2));
    if (pattern.len > PATTERN_MAX)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "a pattern has %zu bytes, expected up to %d", pattern.len,
                         PATTERN_MAX);
    *out = ONXI_NEW(arena, onxi_regex);
    if (!*out)
        return ONX_E_MEMORY;
    (*out)->lib = lib;
    (*out)->code =
        lib->pcre2_compile((PCRE2_SPTR)(pattern.len ? pattern.ptr : ""), pattern.len,
                           PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE, &error, &at, NULL);
    if (!(*out)->code) {
        lib->pcre2_get_error_message(error, message, sizeof message);
        return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "the pattern \"%.*s\" cannot be used: %s at byte %zu",
                         ONX_ARG(pattern), (const char *)message, (size_t)at);
    }
    (void)lib->pcre2_jit_compile((*out)->code, PCRE2_JIT_COMPLETE); /* where it cannot be done, it is interpreted */
    return ONX_OK;
}

void onxi_regex_free(onxi_regex *regex)
{
    if (regex && regex->code)
        regex->lib->pcre2_code_free(regex->code);
}

static onx_status matcher_new(onx_ctx *cx, const pcre2 *lib, onxi_matcher **out)
{
    onxi_matcher *m = onxi_resize(cx, NULL, 0, sizeof *m);
    if (!m)
        return ONX_E_MEMORY;
    *m = (onxi_matcher){ .cx = cx, .lib = lib };
    *out = m;
    m->data = lib->pcre2_match_data_create(1, NULL);
    m->context = lib->pcre2_match_context_create(NULL);
    if (!m->data || !m->context)
        return onxi_no_memory(cx);
    lib->pcre2_set_heap_limit(m->context, HEAP_KIB);
    return ONX_OK;
}

void onxi_matcher_free(onxi_matcher *m)
{
    if (!m)
        return;
    if (m->data)
        m->lib->pcre2_match_data_free(m->data);
    if (m->context)
        m->lib->pcre2_match_context_free(m->context);
    onxi_release(m->cx, m, sizeof *m);
}

/* How often a pattern may try again: some times for each byte that is left, so that no pattern takes for ever. */
static void limit_steps(onxi_matcher *m, size_t left)
{
    const uint64_t limit = STEPS_MIN + (uint64_t)left * STEPS_PER_BYTE;
    const uint32_t steps = limit < UINT32_MAX ? (uint32_t)limit : (uint32_t)-1;
    if (steps > m->limit || steps < m->limit / 2)
        m->lib->pcre2_set_match_limit(m->context, m->limit = steps);
}

onx_status onxi_regex_find(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                           size_t *start_out, size_t *end_out, bool *found_out)
{
    const pcre2 *lib = regex->lib;
    *found_out = false;
    if (!*matcher)
        ONX_TRY(matcher_new(cx, lib, matcher));
    onxi_matcher *m = *matcher;
    limit_steps(m, text.len - from);
    int rc = lib->pcre2_match(regex->code, (PCRE2_SPTR)(text.len ? text.ptr : ""), text.len, from,
                              PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = lib->pcre2_match(regex->code, (PCRE2_SPTR)(text.len ? text.ptr : ""), text.len, from,
                              PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NO_JIT, m->data, m->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return ONX_OK;
    if (rc < 0) {
        PCRE2_UCHAR message[128];
        lib->pcre2_get_error_message(rc, message, sizeof message);
        return onxi_fail(cx, rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT ? ONX_E_LIMIT : ONX_E_INVALID,
                         ONXI_NOWHERE, "a pattern cannot be looked for from byte %zu of a text on: %s", from,
                         (const char *)message);
    }
    const PCRE2_SIZE *places = lib->pcre2_get_ovector_pointer(m->data);
    *start_out = places[0];
    *end_out = places[1];
    *found_out = places[0] >= from && places[1] > places[0] && places[1] <= text.len;
    return ONX_OK;
}

#else

onx_status onxi_regex_new(onx_ctx *cx, onx_arena *arena, onx_str pattern, onxi_regex **out)
{
    (void)arena, (void)pattern, (void)out;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a tokenizer with patterns %s",
                     onxi_library_missing(ONXI_LIBRARY_PCRE2));
}

void onxi_regex_free(onxi_regex *regex)
{
    (void)regex;
}

onx_status onxi_regex_find(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                           size_t *start_out, size_t *end_out, bool *found_out)
{
    (void)regex, (void)matcher, (void)text, (void)from, (void)start_out, (void)end_out;
    *found_out = false;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a tokenizer with patterns %s",
                     onxi_library_missing(ONXI_LIBRARY_PCRE2));
}

void onxi_matcher_free(onxi_matcher *matcher)
{
    (void)matcher;
}

#endif
