/* expressions.c - StringRegexReplace and StringRegexSplitWithOffsets, with expressions in the syntax of RE2, and their
 * ECMA variants, with that of std::regex. Expressions are inputs, so each run compiles them. */
#include "kernel/contrib/contrib.h"
#include "kernel/core/pattern.h"
#include "token/token.h"

typedef struct kind {
    const onxi_syntax *syntax;
    bool script;
} kind;

static const kind re2 = { &onxi_syntax_re2, false }, script = { &onxi_syntax_script, true };

/* A search through a string, match by match. */
typedef struct search {
    onx_work *work;
    const kind *kind;
    onxi_regex *regex, *keep; /* keep: NULL, or matches delimiters that are output as words */
    onxi_matcher *matcher, *keeps;
    onx_str text;
    uint64_t index;
    size_t from, start, end; /* where to continue; the last match */
    bool any, known;         /* any: there was a match; known: the string is known to be UTF-8 */
} search;

static void search_end(search *s)
{
    onxi_regex_free(s->regex);
    onxi_regex_free(s->keep);
    onxi_matcher_free(s->matcher);
    onxi_matcher_free(s->keeps);
}

static onx_status compile(search *s, uint32_t input, onx_str text, onxi_regex **out)
{
    const bool ignores = s->kind->script && *(const bool *)s->work->params;
    onxi_regex_error why = { 0 };
    const onx_status status =
        onxi_pattern_compile(s->work->cx, s->work->text, text, s->kind->syntax,
                             ONXI_REGEX_GROUPS | ONXI_REGEX_PATIENT | (ignores ? ONXI_REGEX_ANY_CASE : 0), out, &why);
    if (why.status == ONX_E_UNSUPPORTED)
        return onx_work_fail(s->work, status, "%s %s", s->work->prepared->kernel->op, why.text);
    return why.status ? onx_work_fail(s->work, status, "the expression of input %u %s", input, why.text) : status;
}

static onx_status match(search *s, unsigned how, bool *found)
{
    onxi_regex_error why = { 0 };
    const onx_status status = onxi_regex_match(s->work->cx, s->regex, &s->matcher, s->text, s->from,
                                               how | (s->known ? ONXI_MATCH_TRUSTED : 0), found, &why);
    if (why.status)
        return onx_work_fail(s->work, status, "string %llu cannot be matched from byte %zu on: %s",
                             (unsigned long long)s->index, s->from, why.text);
    s->known = status == ONX_OK;
    if (status == ONX_OK && *found) {
        (void)onxi_matcher_group(s->matcher, 0, &s->start, &s->end);
        s->from = s->end;
        s->any = true;
    }
    return status;
}

static size_t step_of(const search *s)
{
    return s->kind->script ? 1 : onxi_rune_size(s->text.ptr + s->from, onxi_str_end(s->text));
}

/* As std::regex_iterator: after an empty match, looks for a nonempty one at the same position. */
static onx_status next_of_script(search *s, bool *found)
{
    *found = false;
    if (s->any && s->start == s->end) {
        if (s->from == s->text.len)
            return ONX_OK;
        ONX_TRY(match(s, ONXI_MATCH_HERE | ONXI_MATCH_NOT_EMPTY_HERE, found));
        if (*found)
            return ONX_OK;
        s->from++;
    }
    return match(s, 0, found);
}

/* As RE2's GlobalReplace: an empty match directly after another match does not count. */
static onx_status next_of_re2(search *s, bool *found)
{
    const bool before = s->any;
    const size_t last = s->end;
    ONX_TRY(match(s, 0, found));
    while (*found && before && s->start == s->end && s->start == last && s->from < s->text.len) {
        s->from += step_of(s);
        ONX_TRY(match(s, 0, found));
    }
    *found = *found && !(before && s->start == s->end && s->start == last);
    return ONX_OK;
}

static onx_status next(search *s, bool *found)
{
    ONX_TRY(onxi_ctx_go_on(s->work->cx));
    return s->kind->script ? next_of_script(s, found) : next_of_re2(s, found);
}

static void begin(search *s, onx_str text, uint64_t index)
{
    s->text = text;
    s->index = index;
    s->from = s->start = s->end = 0;
    s->any = s->known = false;
}

/* ---- attributes ---- */

typedef struct params {
    bool ignore_case; /* must be the first member: `compile` reads it for all four operators */
    bool global;
} params;

static onx_status replace_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->global = onx_prepare_is_set(p, "global_replace");
    q->ignore_case = p->kernel->body == &script && onx_prepare_is_set(p, "ignore_case");
    if (p->inputs[0]->dtype != ONX_STRING || p->outputs[0]->count != p->inputs[0]->count)
        return onx_prepare_fail(p, ONX_E_INVALID, "input 0 is not a tensor of strings with the shape of the output");
    p->params = q;
    p->rows = p->inputs[0]->count ? 1 : 0;
    return ONX_OK;
}

static onx_status split_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    q->ignore_case = p->kernel->body == &script && onx_prepare_is_set(p, "ignore_case");
    p->params = q;
    return ONX_OK;
}

/* ---- replacing ---- */

static onx_str group(const search *s, uint32_t number)
{
    size_t start, end;
    return onxi_matcher_group(s->matcher, number, &start, &end) ? onxi_str_part(s->text, start, end)
                                                                : onx_str_make(NULL, 0);
}

/* \0 to \9 are groups, and \\ is a backslash; checked once before replacing. */
static onx_status check_rewrite(const search *s, onx_str by)
{
    const uint32_t groups = onxi_regex_groups(s->regex);
    for (size_t i = 0; i < by.len; i++) {
        if (by.ptr[i] != '\\')
            continue;
        const char c = ++i < by.len ? by.ptr[i] : ' ';
        if (c != '\\' && (c < '0' || c > '9'))
            return onx_work_fail(s->work, ONX_E_INVALID,
                                 "the replacement has a \\ at byte %zu that no digit and no \\ follows", i - 1);
        if (c != '\\' && (uint32_t)(c - '0') > groups)
            return onx_work_fail(s->work, ONX_E_INVALID, "the replacement has group %c, and the expression %u", c,
                                 groups);
    }
    return ONX_OK;
}

static bool add_rewrite(const search *s, onx_str by, onxi_chars *to)
{
    size_t at = 0;
    for (size_t i = 0; i + 1 < by.len; i++) {
        if (by.ptr[i] != '\\')
            continue;
        const char c = by.ptr[i + 1];
        if (!onxi_chars_add(to, onxi_str_part(by, at, i)) ||
            !onxi_chars_add(to, c == '\\' ? onx_str_of("\\") : group(s, (uint32_t)(c - '0'))))
            return false;
        at = ++i + 1;
    }
    return onxi_chars_add(to, onxi_str_from(by, at));
}

/* The replacement that a $ stands for; returns the number of bytes read, 0: the $ stands for itself. */
static size_t read_sign(const search *s, size_t copied, onx_str rest, onx_str *out)
{
    const char c = rest.len > 1 ? rest.ptr[1] : ' ';
    size_t size = 2;
    uint32_t number = 0;
    if (c == '$') {
        *out = onx_str_of("$");
    } else if (c == '&') {
        *out = group(s, 0);
    } else if (c == '`') {
        *out = onxi_str_part(s->text, copied, s->start);
    } else if (c == '\'') {
        *out = onxi_str_from(s->text, s->end);
    } else if (c >= '0' && c <= '9') {
        number = (uint32_t)(c - '0');
        if (rest.len > 2 && rest.ptr[2] >= '0' && rest.ptr[2] <= '9')
            number = number * 10 + (uint32_t)(rest.ptr[size++] - '0');
        *out = group(s, number);
    } else {
        return 0;
    }
    return size;
}

static bool add_signs(const search *s, size_t copied, onx_str by, onxi_chars *to)
{
    size_t at = 0;
    for (size_t i = 0; i < by.len;) {
        onx_str sign = { 0 };
        const size_t size = by.ptr[i] == '$' ? read_sign(s, copied, onxi_str_from(by, i), &sign) : 0;
        if (size && (!onxi_chars_add(to, onxi_str_part(by, at, i)) || !onxi_chars_add(to, sign)))
            return false;
        i += size ? size : 1;
        at = size ? i : at;
    }
    return onxi_chars_add(to, onxi_str_from(by, at));
}

/* Without a match, the output string refers to the input. */
static onx_status replace_one(search *s, onx_str by, onx_str *out)
{
    const bool global = ((const params *)s->work->params)->global;
    onxi_chars made = { .arena = s->work->text };
    size_t copied = 0;
    bool found = false;
    ONX_TRY(next(s, &found));
    *out = s->text;
    if (!found)
        return ONX_OK;
    do {
        if (!onxi_chars_add(&made, onxi_str_part(s->text, copied, s->start)) ||
            !(s->kind->script ? add_signs(s, copied, by, &made) : add_rewrite(s, by, &made)))
            return ONX_E_MEMORY;
        copied = s->end;
        found = false;
        if (global)
            ONX_TRY(next(s, &found));
    } while (found);
    if (!onxi_chars_add(&made, onxi_str_from(s->text, copied)))
        return ONX_E_MEMORY;
    *out = onxi_chars_view(&made);
    return ONX_OK;
}

static onx_status replace_all(search *s, onx_str pattern, onx_str by)
{
    const onx_value *x = s->work->inputs[0];
    if (!pattern.len)
        return onx_work_fail(s->work, ONX_E_INVALID, "the expression of input 1 is empty");
    ONX_TRY(compile(s, 1, pattern, &s->regex));
    if (!s->kind->script)
        ONX_TRY(check_rewrite(s, by));
    for (uint64_t i = 0; i < x->count; i++) {
        begin(s, ((const onx_str *)x->data)[i], i);
        ONX_TRY(replace_one(s, by, (onx_str *)s->work->outputs[0]->data + i));
    }
    return ONX_OK;
}

static onx_status replace_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    search s = { .work = work, .kind = work->prepared->kernel->body };
    onx_str pattern, by;
    ONX_TRY(onxi_contrib_text(work, 1, &pattern));
    ONX_TRY(onxi_contrib_text(work, 2, &by));
    const onx_status status = replace_all(&s, pattern, by);
    search_end(&s);
    return status;
}

/* ---- splitting ---- */

typedef struct words {
    size_t (*at)[2];
    uint64_t count, room;
} words;

static bool add_word(const search *s, words *w, size_t start, size_t end)
{
    if (!ONXI_GROW_IN(s->work->text, w->at, w->room, w->count + 1))
        return false;
    w->at[w->count][0] = start;
    w->at[w->count++][1] = end;
    return true;
}

/* A delimiter may be output as a word. */
static onx_status keep(search *s, size_t start, size_t end, words *w)
{
    onxi_regex_error why = { 0 };
    bool whole = false;
    if (!s->keep)
        return ONX_OK;
    const onx_status status = onxi_regex_match(s->work->cx, s->keep, &s->keeps, onxi_str_part(s->text, start, end), 0,
                                               ONXI_MATCH_HERE | ONXI_MATCH_TO_END, &whole, &why);
    if (why.status)
        return onx_work_fail(s->work, status, "the delimiter at byte %zu of string %llu cannot be matched: %s", start,
                             (unsigned long long)s->index, why.text);
    ONX_TRY(status);
    return !whole || add_word(s, w, start, end) ? ONX_OK : ONX_E_MEMORY;
}

/* Each match is a delimiter. */
static onx_status split_script(search *s, words *w)
{
    size_t from = 0;
    for (bool found = true;;) {
        ONX_TRY(next(s, &found));
        if (!found)
            break;
        if (s->start > from && !add_word(s, w, from, s->start))
            return ONX_E_MEMORY;
        ONX_TRY(keep(s, s->start, s->end, w));
        from = s->end;
    }
    return from == s->text.len || add_word(s, w, from, s->text.len) ? ONX_OK : ONX_E_MEMORY;
}

/* Group 1 of a match is the delimiter; the rest of the text is then searched as a separate text. Without a group, there
 * are no delimiters. */
static onx_status split_re2(search *s, words *w)
{
    const onx_str whole = s->text;
    size_t base = 0, from, to;
    bool found = onxi_regex_groups(s->regex) > 0;
    while (found) {
        s->text = onxi_str_from(whole, base);
        s->from = 0;
        s->any = false;
        ONX_TRY(next(s, &found));
        if (!found)
            break;
        if (!s->end || !onxi_matcher_group(s->matcher, 1, &from, &to))
            return onx_work_fail(s->work, ONX_E_INVALID, "the expression finds at byte %zu of string %llu %s",
                                 base + s->start, (unsigned long long)s->index,
                                 s->end ? "what has no group 1" : "nothing, again and again");
        s->text = whole; /* from here on, positions refer to the whole text */
        if (from && !add_word(s, w, base, base + from))
            return ONX_E_MEMORY;
        ONX_TRY(keep(s, base + from, base + to, w));
        base += s->end;
    }
    s->text = whole;
    return base == whole.len || add_word(s, w, base, whole.len) ? ONX_OK : ONX_E_MEMORY;
}

/* Words refer to the input. */
static onx_status give_words(onx_work *work, const words *w, const int64_t *rows)
{
    const onx_value *x = work->inputs[0];
    const int64_t count = (int64_t)w->count, splits = (int64_t)x->count + 1;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &count));
    ONX_TRY(onxi_value_size(work->outputs[1], ONX_INT64, 1, &count));
    ONX_TRY(onxi_value_size(work->outputs[2], ONX_INT64, 1, &count));
    ONX_TRY(onxi_value_size(work->outputs[3], ONX_INT64, 1, &splits));
    memcpy(work->outputs[3]->data, rows, (size_t)splits * sizeof *rows);
    for (uint64_t row = 0; row < x->count; row++)
        for (int64_t i = rows[row]; i < rows[row + 1]; i++) {
            ((int64_t *)work->outputs[1]->data)[i] = (int64_t)w->at[i][0];
            ((int64_t *)work->outputs[2]->data)[i] = (int64_t)w->at[i][1];
            ((onx_str *)work->outputs[0]->data)[i] =
                onxi_str_part(((const onx_str *)x->data)[row], w->at[i][0], w->at[i][1]);
        }
    return ONX_OK;
}

static onx_status split_all(search *s, onx_str pattern, onx_str kept)
{
    const onx_value *x = s->work->inputs[0];
    int64_t *rows = onxi_arena_array(s->work->text, x->count + 1, sizeof *rows);
    words w = { 0 };
    if (!rows)
        return ONX_E_MEMORY;
    if (!pattern.len)
        return onx_work_fail(s->work, ONX_E_INVALID, "the expression of input 1 is empty");
    ONX_TRY(compile(s, 1, pattern, &s->regex));
    if (kept.len)
        ONX_TRY(compile(s, 2, kept, &s->keep));
    rows[0] = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        begin(s, ((const onx_str *)x->data)[i], i);
        ONX_TRY(s->kind->script ? split_script(s, &w) : split_re2(s, &w));
        rows[i + 1] = (int64_t)w.count;
    }
    return give_words(s->work, &w, rows);
}

static onx_status split_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    search s = { .work = work, .kind = work->prepared->kernel->body };
    onx_str pattern, kept = { 0 };
    if (work->inputs[0]->rank != 1)
        return onx_work_fail(work, ONX_E_INVALID, "the strings have rank %u, expected 1", work->inputs[0]->rank);
    ONX_TRY(onxi_contrib_text(work, 1, &pattern));
    if (work->inputs[2]->count)
        ONX_TRY(onxi_contrib_text(work, 2, &kept));
    const onx_status status = split_all(&s, pattern, kept);
    search_end(&s);
    return status;
}

#define REPLACE(name, kind_) CONTRIB_KERNEL(name, .prepare = replace_prepare, .run = replace_run, .body = &(kind_))
#define SPLIT(name, kind_)                                                                                             \
    CONTRIB_KERNEL(name, .prepare = split_prepare, .run = split_run, .body = &(kind_), .flags = ONX_KERNEL_SIZES_OUTPUT)

const onx_kernel onxi_kernels_contrib_expressions[] = {
    REPLACE("StringRegexReplace", re2),
    REPLACE("StringECMARegexReplace", script),
    SPLIT("StringRegexSplitWithOffsets", re2),
    SPLIT("StringECMARegexSplitWithOffsets", script),
    { 0 },
};
