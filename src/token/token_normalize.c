/* token_normalize.c - normalizers: change a text before it is split into pieces. */
#include "token/token.h"

static onx_status give(const onxi_chars *made, onx_str *out)
{
    *out = onxi_chars_view(made);
    return ONX_OK;
}

onx_status onxi_text_valid(onxi_tokenrun *run, onx_str *text)
{
    onxi_chars made = { .arena = run->arena };
    const char *end = onxi_str_end(*text);
    if (onxi_utf8_valid(*text) == text->len)
        return ONX_OK;
    for (const char *p = text->ptr; p != end;)
        if (!onxi_chars_put(&made, onxi_rune_next(&p, end)))
            return ONX_E_MEMORY;
    return give(&made, text);
}

/* ---- normal forms and case ---- */

static onx_status nfc(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    ONX_TRY(onxi_chars_form(run->cx, (onxi_form)step->cut, text, &made));
    return give(&made, out);
}

static onx_status form_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run, (void)from;
    static const char *const names[] = { "NFC", "NFD", "NFKC", "NFKD" };
    while (strcmp(names[step->cut], step->row->name) != 0)
        step->cut++;
    return ONX_OK;
}

static onx_status lower(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step;
    onxi_chars made = { .arena = run->arena };
    return onxi_chars_lower(&made, text) ? give(&made, out) : ONX_E_MEMORY;
}

/* `flag`: only nonspacing marks are removed, as BERT does. */
static onx_status strip_accents(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    const char *end = onxi_str_end(text);
    for (const char *p = text.ptr; p != end;) {
        const uint32_t c = onxi_rune_next(&p, end);
        if (!onxi_rune_is_mark(c, step->flag) && !onxi_chars_put(&made, c))
            return ONX_E_MEMORY;
    }
    return give(&made, out);
}

/* ---- BERT's ---- */

static bool is_cjk(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* Removes control characters, replaces white space by spaces, and puts spaces around Chinese characters. */
static onx_status bert_clean(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    const char *end = onxi_str_end(text);
    for (const char *p = text.ptr; p != end;) {
        const uint32_t c = onxi_rune_next(&p, end);
        const bool control = c != '\t' && c != '\n' && c != '\r' && (c == 0 || c == 0xfffd || onxi_rune_is_other(c));
        const bool apart = step->second && is_cjk(c);
        if (step->flag && control)
            continue;
        if ((apart && !onxi_chars_put(&made, ' ')) ||
            !onxi_chars_put(&made, step->flag && onxi_rune_is_space(c) ? ' ' : c) ||
            (apart && !onxi_chars_put(&made, ' ')))
            return ONX_E_MEMORY;
    }
    return give(&made, out);
}

static onx_status bert(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    *out = text;
    if (step->flag || step->second)
        ONX_TRY(bert_clean(run, step, *out, out));
    if (step->third) {
        onxi_chars apart = { .arena = run->arena };
        ONX_TRY(onxi_chars_form(run->cx, ONXI_NFD, *out, &apart));
        ONX_TRY(strip_accents(run, &(onxi_token_step){ .flag = true }, onxi_chars_view(&apart), out));
    }
    return step->fourth ? lower(run, step, *out, out) : ONX_OK;
}

static onx_status bert_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->flag = onxi_json_truth(from, "clean_text", true);
    step->second = onxi_json_truth(from, "handle_chinese_chars", true);
    step->fourth = onxi_json_truth(from, "lowercase", true);
    step->third = onxi_json_truth(from, "strip_accents", step->fourth);
    return ONX_OK;
}

/* ---- white space, prefixes, patterns ---- */

static onx_status strip_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->flag = onxi_json_truth(from, "strip_left", true);
    step->second = onxi_json_truth(from, "strip_right", true);
    return ONX_OK;
}

static onx_status strip(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)run;
    const char *p = text.ptr, *end = onxi_str_end(text), *begin = p, *last;
    for (const char *q = p; step->flag && q != end; begin = q)
        if (!onxi_rune_is_space(onxi_rune_next(&q, end)))
            break;
    last = begin;
    for (const char *q = begin; q != end;)
        if (!onxi_rune_is_space(onxi_rune_next(&q, end)))
            last = q;
    *out = onx_str_make(begin, (size_t)((step->second ? last : end) - begin));
    return ONX_OK;
}

static onx_status prepend_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->text = onxi_json_text(from, "prepend");
    return ONX_OK;
}

static onx_status prepend(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    if (text.len && (!onxi_chars_add(&made, step->text) || !onxi_chars_add(&made, text)))
        return ONX_E_MEMORY;
    return give(&made, out);
}

onx_status onxi_replace_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    step->other = onxi_json_text(from, "content");
    return onxi_token_step_pattern(run, from, step);
}

onx_status onxi_replace(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    size_t at = 0, from, to;
    if (step->regex)
        ONX_TRY(onxi_text_valid(run, &text));
    if (!text.len)
        return give(&made, out);
    for (bool found = true;;) {
        if (step->regex) {
            ONX_TRY(onxi_regex_find(run->cx, step->regex, &run->matcher, text, at, &from, &to, &found));
        } else {
            const char *p =
                step->text.len ? memmem(text.ptr + at, text.len - at, step->text.ptr, step->text.len) : NULL;
            found = p != NULL;
            from = p ? (size_t)(p - text.ptr) : 0;
            to = from + step->text.len;
        }
        if (!found)
            break;
        if (!onxi_chars_add(&made, onx_str_make(text.ptr + at, from - at)) || !onxi_chars_add(&made, step->other))
            return ONX_E_MEMORY;
        at = to;
    }
    if (!onxi_chars_add(&made, onxi_str_from(text, at)))
        return ONX_E_MEMORY;
    return give(&made, out);
}

/* The rule "nmt" of SentencePiece: removes control characters, and replaces all kinds of white space by spaces. */
static onx_status nmt(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step;
    onxi_chars made = { .arena = run->arena };
    const char *end = onxi_str_end(text);
    for (const char *p = text.ptr; p != end;) {
        const uint32_t c = onxi_rune_next(&p, end);
        if ((c >= 1 && c <= 8) || c == 11 || (c >= 14 && c <= 31) || c == 0x7f || c == 0x8f || c == 0x9f)
            continue;
        const bool blank = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
                           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
        if (!onxi_chars_put(&made, blank ? ' ' : c))
            return ONX_E_MEMORY;
    }
    return give(&made, out);
}

static onx_status charsmap_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    onx_str bytes, text = onxi_json_text(from, "precompiled_charsmap");
    ONX_TRY(onxi_json_base64(run->tokenizer->arena, text, &bytes));
    if (text.len && !bytes.ptr)
        return onxi_token_fail(run, ONX_E_MALFORMED, "precompiled_charsmap is not base64");
    return onxi_charsmap_read(run, bytes, &step->map);
}

static onx_status charsmap(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    for (size_t at = 0; at < text.len;) {
        onx_str made_of;
        size_t n = onxi_charsmap_find(&step->map, onxi_str_from(text, at), &made_of);
        if (!n) {
            n = onxi_rune_size(text.ptr + at, onxi_str_end(text));
            made_of = onx_str_make(text.ptr + at, n);
        }
        if (!onxi_chars_add(&made, made_of))
            return ONX_E_MEMORY;
        at += n;
    }
    return give(&made, out);
}

static onx_status bytes(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step;
    return onxi_byte_text(run, text, out);
}

const onxi_token_step_row onxi_normalizer_rows[] = {
    { "NFC", form_read, nfc, true },
    { "NFD", form_read, nfc, true },
    { "NFKC", form_read, nfc, true },
    { "NFKD", form_read, nfc, true },
    { "Lowercase", NULL, lower, true },
    { "StripAccents", NULL, strip_accents, true },
    { "BertNormalizer", bert_read, bert, true },
    { "Strip", strip_read, strip, false },
    { "Prepend", prepend_read, prepend, false },
    { "Replace", onxi_replace_read, onxi_replace, false },
    { "Nmt", NULL, nmt, false },
    { "Precompiled", charsmap_read, charsmap, false },
    { "ByteLevel", NULL, bytes, false },
    { NULL, NULL, NULL, false },
};

onx_status onxi_normalize(onxi_tokenrun *run, onx_str text, onx_str *out)
{
    const onxi_token_steps *steps = &run->tokenizer->normalizers;
    *out = text;
    for (uint32_t i = 0; i < steps->count; i++)
        ONX_TRY(steps->list[i].row->run(run, &steps->list[i], *out, out));
    return ONX_OK;
}
