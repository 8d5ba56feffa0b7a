/* token_regex.c - the patterns of tokenizer files. They are written for Oniguruma, whose syntax equals that of PCRE2 in
 * all features that such files use. */
#include "token/token.h"

onx_status onxi_regex_new(onx_ctx *cx, onx_arena *arena, onx_str pattern, onxi_regex **out)
{
    onxi_regex_error why = { 0 };
    if (pattern.len > ONXI_REGEX_MAX)
        return onxi_fail(cx, ONX_E_LIMIT, ONXI_NOWHERE, "a pattern has %zu bytes, expected up to %d", pattern.len,
                         ONXI_REGEX_MAX);
    const onx_status status = onxi_regex_compile(cx, arena, pattern, ONXI_REGEX_UTF | ONXI_REGEX_UNICODE, out, &why);
    if (why.status == ONX_E_UNSUPPORTED)
        return onxi_fail(cx, status, ONXI_NOWHERE, "a tokenizer with patterns %s", why.text);
    return why.status ? onxi_fail(cx, status, ONXI_NOWHERE, "the pattern \"%.*s\" %s", ONX_ARG(pattern), why.text)
                      : status;
}

onx_status onxi_regex_find(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                           size_t *start_out, size_t *end_out, bool *found_out)
{
    onxi_regex_error why = { 0 };
    const onx_status status =
        onxi_regex_match(cx, regex, matcher, text, from, ONXI_MATCH_TRUSTED | ONXI_MATCH_NOT_EMPTY, found_out, &why);
    if (why.status)
        return onxi_fail(cx, status, ONXI_NOWHERE, "a pattern cannot be looked for from byte %zu of a text on: %s",
                         from, why.text);
    if (status == ONX_OK && *found_out)
        *found_out = onxi_matcher_group(*matcher, 0, start_out, end_out) && *start_out >= from &&
                     *end_out > *start_out && *end_out <= text.len;
    return status;
}
