/* base_regex.h - regular expressions by PCRE2, an optional library. Expressions passed to these functions are in PCRE2
 * syntax: callers translate from their own syntax. Errors are texts that the caller completes. Included by base.h. */
#ifndef ONXI_BASE_REGEX_H
#define ONXI_BASE_REGEX_H

#include <onx/base.h>

enum {
    ONXI_REGEX_MAX = 65535, /* maximum length of an expression in bytes, and of a compiled one */
    ONXI_GROUPS_MAX = 100   /* maximum number of groups whose positions a match reports, including the whole match */
};

/* How to interpret an expression. */
enum {
    ONXI_REGEX_UTF = 1u,     /* match characters instead of bytes */
    ONXI_REGEX_UNICODE = 2u, /* classes such as \w go beyond ASCII */
    ONXI_REGEX_GROUPS = 4u,  /* brackets without a name are capturing groups */
    ONXI_REGEX_LONGEST = 8u, /* of the leftmost matches take the longest, with an algorithm of bounded time that has no
                              * groups; otherwise take the first match that backtracking finds */
    ONXI_REGEX_ANY_CASE = 16u, /* ignore the case of letters */
    ONXI_REGEX_LAST_END = 32u, /* $ matches only at the end of the text, not before a final line break */
    ONXI_REGEX_LINES_LF = 64u, /* only \n ends a line */
    ONXI_REGEX_SCRIPT = 128u,  /* as in ECMAScript: \r and \n end lines, classes may be empty, and a reference to an
                                * unset group matches the empty text */
    ONXI_REGEX_PATIENT = 256u, /* allow several million steps whatever the length of the text, instead of 100,000 */
};

typedef struct onxi_regex_error {
    onx_status status;
    char text[128];
} onxi_regex_error;

typedef struct onxi_regex onxi_regex;     /* any thread may match with it */
typedef struct onxi_matcher onxi_matcher; /* for one thread, for all its expressions */

/* Compiles an expression into the arena; it still has to be freed. On failure *why describes the error;
 * ONX_E_UNSUPPORTED if the library is missing. */
onx_status onxi_regex_compile(onx_ctx *cx, onx_arena *arena, onx_str pattern, unsigned flags, onxi_regex **out,
                              onxi_regex_error *why);
void onxi_regex_free(onxi_regex *regex);
/* The number of capturing groups, without the whole match. */
uint32_t onxi_regex_groups(const onxi_regex *regex);

/* Restrictions on a match. */
enum {
    ONXI_MATCH_HERE = 1u,           /* anchored at the position where the search begins */
    ONXI_MATCH_TO_END = 2u,         /* has to extend to the end of the text */
    ONXI_MATCH_NOT_EMPTY = 4u,      /* must not be empty, */
    ONXI_MATCH_NOT_EMPTY_HERE = 8u, /* or must not be empty at the start position */
    ONXI_MATCH_TRUSTED = 16u,       /* the text is known to be valid UTF-8 */
};

/* Searches from byte `from` on; *found tells whether there is a match. *matcher is NULL at first and is created on
 * demand. The limit on backtracking grows with the length of the remaining text. */
onx_status onxi_regex_match(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                            unsigned how, bool *found, onxi_regex_error *why);
/* The position of group `index` of the last match; 0 is the whole match. False if the group did not take part in the
 * match. */
bool onxi_matcher_group(const onxi_matcher *matcher, uint32_t index, size_t *start, size_t *end);
void onxi_matcher_free(onxi_matcher *matcher);

#endif
