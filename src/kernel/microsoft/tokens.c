/* tokens.c - Tokenizer: texts cut at separators, or into characters. Separators that are expressions, and expressions
 * for tokens, are not done. */
#include "kernel/microsoft/microsoft.h"

enum { SEPARATORS = 64 };

typedef struct params {
    bool mark, characters;
    int64_t least;
    onx_str pad;
    uint32_t count;
    onx_str separators[SEPARATORS];
} params;

static bool is_plain(onx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (strchr("\\.[]{}()*+?^$|", s.ptr[i]) || !s.ptr[i])
            return false;
    return true;
}

static onx_status read_separators(const onx_prepare *p, params *q)
{
    uint32_t count;
    const onx_bytes *list = onx_prepare_strings(p, "separators", &count);
    const bool has_expression = onx_prepare_given(p, "tokenexp");
    if (!has_expression == !count)
        return onx_prepare_fail(p, ONX_E_INVALID, "one of separators and tokenexp is needed, and not both");
    if (has_expression) {
        q->characters = onx_str_is(onx_prepare_text(p, "tokenexp"), ".");
        return q->characters
                   ? ONX_OK
                   : onx_prepare_fail(p, ONX_E_UNSUPPORTED, "expressions for tokens are not done, but for \".\"");
    }
    q->characters = count == 1 && !onx_view(list[0]).len;
    if (count > SEPARATORS)
        return onx_prepare_fail(p, ONX_E_LIMIT, "there are %u separators, and at most %d are done", count, SEPARATORS);
    q->count = count;
    for (uint32_t i = 0; i < count && !q->characters; i++) {
        q->separators[i] = onx_view(list[i]);
        if (!q->separators[i].len)
            return onx_prepare_fail(p, ONX_E_INVALID, "separator %u is empty", i);
        if (!is_plain(q->separators[i]))
            return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "separators that are expressions are not done");
    }
    return ONX_OK;
}

static onx_status tokenizer_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    ONX_TRY(read_separators(p, q));
    q->mark = onx_prepare_is_set(p, "mark");
    q->least = onx_prepare_int(p, "mincharnum");
    q->pad = onx_prepare_text(p, "pad_value");
    if (q->characters && q->least > 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "characters are not %lld characters long", (long long)q->least);
    p->params = q;
    return ONX_OK;
}

/* Bytes of the character that begins there. */
static size_t character(onx_str s)
{
    size_t n = 1;
    while (n < s.len && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void emit(const params *q, onx_str token, onx_str *out, uint64_t *count)
{
    int64_t length = 0;
    for (size_t i = 0; i < token.len; i++)
        length += ((unsigned char)token.ptr[i] & 0xc0) != 0x80;
    if (!length || length < q->least)
        return;
    if (out)
        out[*count] = token;
    ++*count;
}

/* What the separators from `level` on leave of a text; one after the other cuts the pieces of those before. */
static void cut(const params *q, onx_str s, uint32_t level, onx_str *out, uint64_t *count)
{
    if (level == q->count) {
        emit(q, s, out, count);
        return;
    }
    const onx_str by = q->separators[level];
    for (const char *hit; s.len && (hit = memmem(s.ptr, s.len, by.ptr, by.len));) {
        const size_t before = (size_t)(hit - s.ptr);
        cut(q, onx_str_make(s.ptr, before), level + 1, out, count);
        s = onx_str_make(hit + by.len, s.len - before - by.len);
    }
    if (s.len)
        cut(q, s, level + 1, out, count);
}

static uint64_t tokens(const params *q, onx_str s, onx_str *out)
{
    uint64_t count = 0;
    if (!q->characters)
        cut(q, s, 0, out, &count);
    while (q->characters && s.len) {
        const size_t n = character(s);
        if (out)
            out[count] = onx_str_make(s.ptr, n);
        count++;
        s = onx_str_make(s.ptr + n, s.len - n);
    }
    return count;
}

/* Tokens refer to the input. */
static onx_status tokenizer_run(onx_work *work, uint64_t first, uint64_t last)
{
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    const onx_str *texts = x->data;
    uint64_t most = 0;
    (void)first, (void)last;
    if (x->rank < 1 || x->rank > 2)
        return onx_work_fail(work, ONX_E_INVALID, "the texts have rank %u, neither 1 nor 2", x->rank);
    for (uint64_t i = 0; i < x->count; i++) {
        const uint64_t count = tokens(q, texts[i], NULL);
        most = count > most ? count : most;
    }
    const uint64_t marks = q->mark && most ? 1 : 0, columns = most + 2 * marks; /* pads stand outside of the marks */
    int64_t dims[3];
    onxi_copy_dims(dims, x->dims, x->rank);
    dims[x->rank] = (int64_t)columns;
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, x->count ? x->rank + 1 : x->rank, dims));
    onx_str *y = work->outputs[0]->data;
    for (uint64_t i = 0; columns && i < x->count; i++, y += columns) {
        uint64_t at = marks;
        at += tokens(q, texts[i], y + marks);
        if (marks) {
            y[0] = onx_str_of("\x02");
            y[at++] = onx_str_of("\x03");
        }
        for (; at < columns; at++)
            y[at] = q->pad;
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_microsoft_tokens[] = {
    MS_KERNEL("Tokenizer", .prepare = tokenizer_prepare, .run = tokenizer_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};
