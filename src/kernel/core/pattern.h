/* pattern.h - regular expressions in foreign syntaxes, for kernels that match strings. PCRE2 does the matching. */
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
/* The result must be freed. On an error *why is the reason, to which the caller appends the name of the expression. */
onx_status onxi_pattern_compile(onx_ctx *cx, onx_arena *arena, onx_str text, const onxi_syntax *syntax, unsigned flags,
                                onxi_regex **out, onxi_regex_error *why);

/* An attribute in RE2 syntax, in the arena of the plan, matched by the algorithm that tries all alternatives at once.
 * `name` is that of the attribute. The result must be freed, also after a failure. */
onx_status onxi_pattern_new(onx_prepare *p, const char *name, onx_str text, onxi_regex **out);
/* The longest of the matches that begin first, from byte `from` on, or exactly at it with `here`; string `index` is for
 * error messages. A search from a later byte on relies on an earlier search of the same string. */
onx_status onxi_pattern_find(onx_work *work, const onxi_regex *q, onxi_matcher **matcher, onx_str text, uint64_t index,
                             size_t from, bool here, size_t *start, size_t *end, bool *found);

#endif
