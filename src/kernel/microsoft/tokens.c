/* tokens.c - Tokenizer: divides texts at separators, which may be regular expressions, or into characters, or into the
 * matches of an expression. */
#include "kernel/core/pattern.h"
#include "kernel/microsoft/microsoft.h"

/* An expression is tried at each byte of a text, so the length of texts is limited. */
enum { SEPARATORS = 64, LONGEST = 1 << 15 };

typedef struct params {
    bool mark, characters;
    int64_t least;
    onx_str pad;
    uint32_t count;
    onx_str separators[SEPARATORS];
    onxi_regex *patterns[SEPARATORS]; /* NULL: the separator is a literal string */
    onxi_regex *token;                /* matches are tokens; NULL: tokens are between separators */
    onxi_regex *any;                  /* any of the expressions; NULL: there are none */
} params;

static bool is_plain(onx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (strchr("\\.[]{}()*+?^$|", s.ptr[i]) || !s.ptr[i])
            return false;
    return true;
}

static onx_status read_separators(onx_prepare *p, params *q)
{
    uint32_t count;
    const onx_bytes *list = onx_prepare_strings(p, "separators", &count);
    const bool has_expression = onx_prepare_given(p, "tokenexp");
    if (!has_expression == !count)
        return onx_prepare_fail(p, ONX_E_INVALID, "one of separators and tokenexp is needed, and not both");
    if (has_expression) {
        const onx_str text = onx_prepare_text(p, "tokenexp");
        q->characters = onx_str_is(text, ".");
        if (!q->characters)
            ONX_TRY(onxi_pattern_new(p, "tokenexp", text, &q->token));
        q->any = q->token;
        return ONX_OK;
    }
    q->characters = count == 1 && !onx_view(list[0]).len;
    if (count > SEPARATORS)
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are %u separators, at most %d are supported", count, SEPARATORS);
    q->count = count;
    for (uint32_t i = 0; i < count && !q->characters; i++) {
        q->separators[i] = onx_view(list[i]);
        if (!is_plain(q->separators[i]))
            ONX_TRY(onxi_pattern_new(p, "separators", q->separators[i], &q->patterns[i]));
        q->any = q->patterns[i] ? q->patterns[i] : q->any;
    }
    return ONX_OK;
}

static void tokenizer_release(void *made)
{
    struct params *q = made;
    for (uint32_t i = 0; q && i < q->count; i++)
        onxi_regex_free(q->patterns[i]);
    if (q)
        onxi_regex_free(q->token);
}

static onx_status read_node(onx_prepare *p, params *q)
{
    ONX_TRY(read_separators(p, q));
    q->mark = onx_prepare_is_set(p, "mark");
    q->least = onx_prepare_int(p, "mincharnum");
    q->pad = onx_prepare_text(p, "pad_value");
    if (q->characters && q->least > 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "characters are not %lld characters long", (long long)q->least);
    return ONX_OK;
}

static onx_status tokenizer_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    const onx_status status = read_node(p, q);
    if (status == ONX_OK)
        p->params = q;
    else
        tokenizer_release(q);
    return status;
}

static onx_str after(onx_str s, size_t at)
{
    return onx_str_make(s.ptr + at, s.len - at);
}

/* The length in bytes of the first character. */
static size_t character(onx_str s)
{
    size_t n = 1;
    while (n < s.len && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* The text being tokenized. */
typedef struct cutter {
    onx_work *work;
    const params *q;
    onxi_matcher *matcher;
    uint64_t index, count; /* index of the text; number of tokens so far */
    onx_str *out;          /* NULL: tokens are only counted */
} cutter;

static int64_t characters_of(onx_str s)
{
    int64_t length = 0;
    for (size_t i = 0; i < s.len; i++)
        length += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return length;
}

static bool emit(cutter *c, onx_str token)
{
    const int64_t length = characters_of(token);
    if (!length || length < c->q->least)
        return false;
    if (c->out)
        c->out[c->count] = token;
    c->count++;
    return true;
}

/* Finds a separator or expression in a text from a byte on. */
static onx_status find(cutter *c, const onxi_regex *pattern, onx_str by, onx_str s, size_t from, size_t *start,
                       size_t *end, bool *found)
{
    if (pattern)
        return onxi_pattern_find(c->work, pattern, &c->matcher, s, c->index, from, false, start, end, found);
    const char *hit = s.len > from ? by.len ? memmem(s.ptr + from, s.len - from, by.ptr, by.len) : s.ptr + from : NULL;
    *found = hit != NULL;
    *start = hit ? (size_t)(hit - s.ptr) : 0;
    *end = *start + by.len;
    return ONX_OK;
}

/* Emits the parts between the separators from `level` on; each separator divides the parts left by the ones before. An
 * empty match skips a character. */
static onx_status cut(cutter *c, onx_str s, uint32_t level)
{
    if (level == c->q->count) {
        (void)emit(c, s);
        return ONX_OK;
    }
    size_t from = 0, start, end;
    for (bool found = true; from < s.len;) {
        ONX_TRY(find(c, c->q->patterns[level], c->q->separators[level], s, from, &start, &end, &found));
        if (!found)
            break;
        if (start > from)
            ONX_TRY(cut(c, onx_str_make(s.ptr + from, start - from), level + 1));
        from = end > start ? end : start + (start < s.len ? character(after(s, start)) : 0);
        if (start == s.len)
            return ONX_OK;
    }
    return from < s.len ? cut(c, after(s, from), level + 1) : ONX_OK;
}

/* Emits the matches of an expression. After a match that is too short for a token, continues one character after its
 * start. */
static onx_status find_tokens(cutter *c, onx_str s)
{
    size_t from = 0, start, end;
    for (bool found = true; from < s.len;) {
        ONX_TRY(find(c, c->q->token, s, s, from, &start, &end, &found));
        if (!found || start == s.len)
            break;
        from = emit(c, onx_str_make(s.ptr + start, end - start)) ? end : start + character(after(s, start));
    }
    return ONX_OK;
}

static onx_status tokens(cutter *c, uint64_t index, onx_str s, onx_str *out)
{
    c->index = index;
    c->count = 0;
    c->out = out;
    if (c->q->any && s.len > LONGEST)
        return onx_work_fail(c->work, ONX_E_LIMIT, "text %llu has %zu bytes; expressions are looked for in up to %d",
                             (unsigned long long)index, s.len, LONGEST);
    if (!c->q->characters)
        return c->q->token ? find_tokens(c, s) : cut(c, s, 0);
    for (size_t n; s.len; s = onx_str_make(s.ptr + n, s.len - n)) {
        n = character(s);
        if (out)
            out[c->count] = onx_str_make(s.ptr, n);
        c->count++;
    }
    return ONX_OK;
}

static onx_status fill(cutter *c)
{
    const params *q = c->q;
    const onx_value *x = c->work->inputs[0];
    onx_value *to = c->work->outputs[0];
    const onx_str *texts = x->data;
    uint64_t most = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        ONX_TRY(tokens(c, i, texts[i], NULL));
        most = c->count > most ? c->count : most;
    }
    const uint64_t marks = q->mark && most ? 1 : 0, columns = most + 2 * marks; /* padding is outside of the marks */
    int64_t dims[3];
    onxi_copy_dims(dims, x->dims, x->rank);
    dims[x->rank] = (int64_t)columns;
    ONX_TRY(onxi_value_size(to, ONX_STRING, x->count ? x->rank + 1 : x->rank, dims));
    onx_str *y = to->data;
    for (uint64_t i = 0; columns && i < x->count; i++, y += columns) {
        ONX_TRY(tokens(c, i, texts[i], y + marks));
        uint64_t at = marks + c->count;
        if (marks) {
            y[0] = onx_str_of("\x02");
            y[at++] = onx_str_of("\x03");
        }
        for (; at < columns; at++)
            y[at] = q->pad;
    }
    return ONX_OK;
}

/* Tokens refer to the input. */
static onx_status tokenizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    cutter c = { .work = work, .q = work->params };
    const onx_value *x = work->inputs[0];
    (void)first, (void)last;
    if (x->rank < 1 || x->rank > 2)
        return onx_work_fail(work, ONX_E_INVALID, "the texts have rank %u, neither 1 nor 2", x->rank);
    const onx_status status = fill(&c);
    onxi_matcher_free(c.matcher);
    return status;
}

const onx_kernel onxi_kernels_microsoft_tokens[] = {
    MS_KERNEL("Tokenizer", .prepare = tokenizer_prepare, .run = tokenizer_run, .release = tokenizer_release,
              .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
