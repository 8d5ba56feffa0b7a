/* base_regex.h - regular expressions by PCRE2, an optional library. Who has an expression says in which syntax it is
 * written: what is given here is in that of PCRE2, and errors are texts that the caller finishes. Included by base.h.
 */
#ifndef ONXI_BASE_REGEX_H
#define ONXI_BASE_REGEX_H

#include <onx/base.h>

enum {
    ONXI_REGEX_MAX = 65535, /* bytes of an expression; compiled ones are no larger either */
    ONXI_GROUPS_MAX = 100   /* that a match tells of, the whole of it included */
};

/* How an expression is meant. */
enum {
    ONXI_REGEX_UTF = 1u,       /* of characters instead of bytes */
    ONXI_REGEX_UNICODE = 2u,   /* classes such as \w go beyond ASCII */
    ONXI_REGEX_GROUPS = 4u,    /* brackets without a name are groups that a match tells of */
    ONXI_REGEX_LONGEST = 8u,   /* of the matches that begin first the longest, by an algorithm that has no bad cases and
                                * knows no groups; else the first that the expression leads to */
    ONXI_REGEX_ANY_CASE = 16u, /* of letters */
    ONXI_REGEX_LAST_END = 32u, /* $ is the end of the text alone, not also a line break before it */
    ONXI_REGEX_LINES_LF = 64u, /* a line ends by \n, and by nothing else */
    ONXI_REGEX_SCRIPT = 128u,  /* as ECMAScript has it: lines end by \r or \n, classes may be empty, and groups that
                                * are not set are empty where they are referred to */
    ONXI_REGEX_PATIENT = 256u, /* may try some million times whatever the length of the text, instead of 100,000 */
};

typedef struct onxi_regex_error {
    onx_status status;
    char text[128];
} onxi_regex_error;

typedef struct onxi_regex onxi_regex;     /* any thread may match by it */
typedef struct onxi_matcher onxi_matcher; /* of one thread, for all its expressions */

/* In the arena, to be freed all the same. What is wrong is in *why, with ONX_E_UNSUPPORTED where the library is
 * missing. */
onx_status onxi_regex_compile(onx_ctx *cx, onx_arena *arena, onx_str pattern, unsigned flags, onxi_regex **out,
                              onxi_regex_error *why);
void onxi_regex_free(onxi_regex *regex);
/* How many groups it has, the whole match left out. */
uint32_t onxi_regex_groups(const onxi_regex *regex);

/* Where a match may be. */
enum {
    ONXI_MATCH_HERE = 1u,           /* at the place where the search begins */
    ONXI_MATCH_TO_END = 2u,         /* up to the end of the text */
    ONXI_MATCH_NOT_EMPTY = 4u,      /* not one of no bytes, */
    ONXI_MATCH_NOT_EMPTY_HERE = 8u, /* or only at that place */
    ONXI_MATCH_TRUSTED = 16u,       /* the text is known to be UTF-8 */
};

/* From byte `from` on; *found tells whether there is a match. *matcher is NULL at first, and made then. How often an
 * expression may try again depends on how much text is left. */
onx_status onxi_regex_match(onx_ctx *cx, const onxi_regex *regex, onxi_matcher **matcher, onx_str text, size_t from,
                            unsigned how, bool *found, onxi_regex_error *why);
/* Where group `index` of the last match is, 0 being all of it; false: it has no part in the match. */
bool onxi_matcher_group(const onxi_matcher *matcher, uint32_t index, size_t *start, size_t *end);
void onxi_matcher_free(onxi_matcher *matcher);

#endif
