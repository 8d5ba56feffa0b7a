/* pattern.h - expressions in the syntaxes of others, for kernels that match strings. PCRE2 does the matching. */
#ifndef ONXI_KERNEL_PATTERN_H
#define ONXI_KERNEL_PATTERN_H

#include "kernel/kernel.h"

/* An expression on its way from a syntax to that of PCRE2. */
typedef struct onxi_rewriting {
    const char *at, *end; /* what is left of it */
    char *out;            /* with room for what it becomes at most */
    size_t len;
    onxi_regex_error *why;
} onxi_rewriting;

typedef struct onxi_syntax {
    onx_status (*rewrite)(onxi_rewriting *t);
    uint32_t growth; /* bytes that two bytes become at most */
    unsigned flags;  /* ONXI_REGEX_... */
} onxi_syntax;

extern const onxi_syntax onxi_syntax_re2, onxi_syntax_script;

static inline void onxi_rewriting_put(onxi_rewriting *t, const char *text, size_t len)
{
    memcpy(t->out + t->len, text, len);
    t->len += len;
}
static inline void onxi_rewriting_text(onxi_rewriting *t, const char *text)
{
    onxi_rewriting_put(t, text, strlen(text));
}
/* "has a group at \"(?<a\", which is not in the syntax of RE2" */
onx_status onxi_rewriting_refuse(const onxi_rewriting *t, const char *from, const char *what, const char *syntax);
/* To be freed. What is wrong is in *why, to be finished with the name of what the expression is. */
onx_status onxi_pattern_compile(onx_ctx *cx, onx_arena *arena, onx_str text, const onxi_syntax *syntax, unsigned flags,
                                onxi_regex **out, onxi_regex_error *why);

/* An attribute in the syntax of RE2, in the arena of the plan, by the algorithm that tries all ways at once. `name` is
 * that of the attribute. To be freed, also after a failure. */
onx_status onxi_pattern_new(onx_prepare *p, const char *name, onx_str text, onxi_regex **out);
/* The longest of the matches that begin first, from byte `from` on, or `here` itself; string `index` is that of errors.
 * A search from a later byte on trusts that the string has been searched before. */
onx_status onxi_pattern_find(onx_work *work, const onxi_regex *q, onxi_matcher **matcher, onx_str text, uint64_t index,
                             size_t from, bool here, size_t *start, size_t *end, bool *found);

#endif
