/* token_split.c - pre-tokenizers: split a text into the pieces that the model processes separately. */
#include "token/token.h"

/* ---- splitting ---- */

/* Receives matches and the text between them, from left to right, and joins neighbours as the behavior requires. */
typedef struct cutter {
    onxi_tokenrun *run;
    onx_str text;
    onxi_cut cut;
    bool invert;
    bool held, held_match; /* a part is held back until the next one is known */
    size_t from, to;       /* range of that part */
    size_t at;             /* end of the last part */
} cutter;

static onx_status emit(const cutter *c, size_t from, size_t to)
{
    const onx_str part = onx_str_make(c->text.ptr + from, to - from);
    return onxi_token_piece(c->run, part, ONXI_NO_TOKEN, c->run->first && !from) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status let_go(cutter *c)
{
    const bool held = c->held;
    c->held = false;
    return held ? emit(c, c->from, c->to) : ONX_OK;
}

/* Is the part joined with the one that is held back? */
static bool joins(const cutter *c, bool match)
{
    if (!c->held)
        return false;
    if (c->cut == ONXI_CUT_CONTIGUOUS)
        return match == c->held_match;
    return c->cut == ONXI_CUT_WITH_PREVIOUS ? match && !c->held_match : !match && c->held_match;
}

static onx_status take_part(cutter *c, size_t to, bool found)
{
    const size_t from = c->at;
    const bool match = found != c->invert;
    c->at = to;
    if (from == to || (match && c->cut == ONXI_CUT_REMOVED))
        return ONX_OK;
    if (c->cut <= ONXI_CUT_ISOLATED)
        return emit(c, from, to);
    if (joins(c, match)) {
        c->to = to;
        return c->cut == ONXI_CUT_CONTIGUOUS ? ONX_OK : let_go(c);
    }
    ONX_TRY(let_go(c));
    c->held = true;
    c->held_match = match;
    c->from = from;
    c->to = to;
    return ONX_OK;
}

static onx_status take_match(cutter *c, size_t from, size_t to)
{
    ONX_TRY(take_part(c, from, false));
    return take_part(c, to, true);
}

static onx_status finish(cutter *c)
{
    ONX_TRY(take_part(c, c->text.len, false));
    return let_go(c);
}

static onx_status cut_at_runes(onxi_tokenrun *run, onx_str text, onxi_cut cut, bool (*wanted)(uint32_t c))
{
    cutter c = { .run = run, .text = text, .cut = cut };
    const char *end = onxi_str_end(text);
    for (const char *p = text.ptr, *begin; (begin = p) != end;)
        if (wanted(onxi_rune_next(&p, end)))
            ONX_TRY(take_match(&c, (size_t)(begin - text.ptr), (size_t)(p - text.ptr)));
    return finish(&c);
}

static onx_status cut_at_text(cutter *c, onx_str what)
{
    const char *end = onxi_str_end(c->text);
    for (const char *p = c->text.ptr; what.len && (p = memmem(p, (size_t)(end - p), what.ptr, what.len)); p += what.len)
        ONX_TRY(take_match(c, (size_t)(p - c->text.ptr), (size_t)(p - c->text.ptr) + what.len));
    return finish(c);
}

static onx_status cut_at_pattern(cutter *c, const onxi_regex *regex)
{
    size_t from, to;
    bool found;
    ONX_TRY(onxi_text_valid(c->run, &c->text));
    for (;;) {
        ONX_TRY(onxi_regex_find(c->run->cx, regex, &c->run->matcher, c->text, c->at, &from, &to, &found));
        if (!found)
            return finish(c);
        ONX_TRY(take_match(c, from, to));
    }
}

/* ---- patterns and character classes ---- */

static onx_status read_cut(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    static const char *const names[ONXI_CUT_COUNT] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                       "Contiguous" };
    const onx_str name = onxi_json_text(from, "behavior");
    step->cut = ONXI_CUT_ISOLATED;
    for (uint8_t i = 0; i < ONXI_CUT_COUNT; i++)
        if (onx_str_is(name, names[i])) {
            step->cut = i;
            return ONX_OK;
        }
    return name.len ? onxi_token_fail(run, ONX_E_UNSUPPORTED, "behavior \"%.*s\" is not known", ONX_ARG(name)) : ONX_OK;
}

static onx_status split_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    step->flag = onxi_json_truth(from, "invert", false);
    ONX_TRY(read_cut(run, from, step));
    return onxi_token_step_pattern(run, from, step);
}

static onx_status split(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)out;
    cutter c = { .run = run, .text = text, .cut = (onxi_cut)step->cut, .invert = step->flag };
    return step->regex ? cut_at_pattern(&c, step->regex) : cut_at_text(&c, step->text);
}

static onx_status delimiter_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->text = onxi_json_text(from, "delimiter");
    step->cut = ONXI_CUT_REMOVED;
    return ONX_OK;
}

static onx_status words_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)from;
    step->flag = true;
    step->cut = ONXI_CUT_REMOVED;
    return onxi_regex_new(run->cx, run->tokenizer->arena, onx_str_of("\\w+|[^\\w\\s]+"), &step->regex);
}

static onx_status blanks(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step, (void)out;
    return cut_at_runes(run, text, ONXI_CUT_REMOVED, onxi_rune_is_space);
}

static onx_status punctuation(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)out;
    return cut_at_runes(run, text, (onxi_cut)step->cut, onxi_rune_is_punctuation);
}

/* Drops white space; every punctuation character becomes a piece. */
static onx_status bert(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step, (void)out;
    const char *end = onxi_str_end(text);
    const bool first = run->first;
    for (const char *p = text.ptr, *begin = p, *at; p != end || begin != p;) {
        at = p;
        const bool over = p == end, blank = !over && onxi_rune_is_space(onxi_rune_next(&p, end));
        if (!over && !blank)
            continue;
        run->first = first && begin == text.ptr;
        if (at != begin)
            ONX_TRY(cut_at_runes(run, onx_str_make(begin, (size_t)(at - begin)), ONXI_CUT_ISOLATED,
                                 onxi_rune_is_punctuation));
        begin = p;
    }
    return ONX_OK;
}

static onx_status digits_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->cut = onxi_json_truth(from, "individual_digits", false) ? ONXI_CUT_ISOLATED : ONXI_CUT_CONTIGUOUS;
    return ONX_OK;
}

static onx_status digits(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)out;
    return cut_at_runes(run, text, (onxi_cut)step->cut, onxi_rune_is_number);
}

static onx_status length_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    const double length = onxi_json_number(from, "length", 5);
    if (!(length >= 1 && length <= 1e9))
        return onxi_token_fail(run, ONX_E_INVALID, "length is %g, expected 1 or more", length);
    step->start = (uint64_t)length;
    return ONX_OK;
}

static onx_status length(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)out;
    cutter c = { .run = run, .text = text, .cut = ONXI_CUT_ISOLATED };
    const char *end = onxi_str_end(text);
    uint64_t count = 0;
    for (const char *p = text.ptr; p != end;) {
        onxi_rune_next(&p, end);
        if (++count % step->start == 0)
            ONX_TRY(take_part(&c, (size_t)(p - text.ptr), true));
    }
    return finish(&c);
}

/* ---- bytes ---- */

/* Bytes that are printable characters of Latin-1 represent themselves; the others are mapped to code points from 256
 * on. */
static bool is_own(uint32_t byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

uint32_t onxi_byte_rune(uint8_t byte)
{
    if (is_own(byte))
        return byte;
    /* 0 .. 32, 127 .. 160, 173 in this order */
    return 256u + (byte <= 32 ? byte : byte <= 160 ? byte - 127u + 33u : 67u);
}

int onxi_rune_byte(uint32_t c)
{
    if (c < 256)
        return is_own(c) ? (int)c : -1;
    c -= 256;
    return c <= 32 ? (int)c : c <= 66 ? (int)(c - 33 + 127) : c == 67 ? 173 : -1;
}

onx_status onxi_byte_text(onxi_tokenrun *run, onx_str text, onx_str *out)
{
    onxi_chars made = { .arena = run->arena };
    for (size_t i = 0; i < text.len; i++)
        if (!onxi_chars_put(&made, onxi_byte_rune((uint8_t)text.ptr[i])))
            return ONX_E_MEMORY;
    *out = onxi_chars_view(&made);
    return ONX_OK;
}

static onx_status byte_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    static const char pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    step->flag = onxi_json_truth(from, "add_prefix_space", true);
    if (!onxi_json_truth(from, "use_regex", true))
        return ONX_OK;
    return onxi_regex_new(run->cx, run->tokenizer->arena, onx_str_of(pattern), &step->regex);
}

static onx_status with_start(onxi_tokenrun *run, onx_str start, onx_str *text)
{
    onxi_chars made = { .arena = run->arena };
    if (!onxi_chars_add(&made, start) || !onxi_chars_add(&made, *text))
        return ONX_E_MEMORY;
    *text = onxi_chars_view(&made);
    return ONX_OK;
}

static onx_status byte_level(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)out;
    const uint64_t begin = run->next.count;
    if (step->flag && text.ptr[0] != ' ')
        ONX_TRY(with_start(run, onx_str_of(" "), &text));
    cutter c = { .run = run, .text = text, .cut = ONXI_CUT_ISOLATED };
    ONX_TRY(step->regex ? cut_at_pattern(&c, step->regex) : finish(&c));
    /* Concatenates all pieces into one text, of which each becomes a slice. */
    onxi_chars made = { .arena = run->arena };
    for (uint64_t i = begin; i < run->next.count; i++) {
        onxi_piece *p = &run->next.list[i];
        const size_t from = made.len;
        for (size_t k = 0; k < p->text.len; k++)
            if (!onxi_chars_put(&made, onxi_byte_rune((uint8_t)p->text.ptr[k])))
                return ONX_E_MEMORY;
        p->text = onx_str_make(NULL, made.len - from);
    }
    const char *at = made.ptr;
    for (uint64_t i = begin; i < run->next.count; at += run->next.list[i++].text.len)
        run->next.list[i].text.ptr = at;
    return ONX_OK;
}

/* ---- replacing spaces by a visible character ---- */

onx_status onxi_metaspace_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    static const char *const names[] = { "always", "first", "never" };
    const onx_str scheme = onxi_json_text(from, "prepend_scheme");
    step->text = onxi_json_text(from, "replacement");
    if (!step->text.len)
        step->text = onx_str_of("\xe2\x96\x81");
    step->flag = onxi_json_truth(from, "split", true);
    if (!onxi_json_truth(from, "add_prefix_space", true))
        step->prepend = ONXI_PREPEND_NEVER;
    for (uint8_t i = 0; i < 3; i++)
        if (onx_str_is(scheme, names[i])) {
            step->prepend = i;
            return ONX_OK;
        }
    return scheme.len ? onxi_token_fail(run, ONX_E_UNSUPPORTED, "prepend_scheme \"%.*s\" is not known", ONX_ARG(scheme))
                      : ONX_OK;
}

static onx_status metaspace(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)out;
    onxi_chars made = { .arena = run->arena };
    const bool blank = text.ptr[0] == ' ' || onxi_starts_with(text, step->text);
    if (!blank && step->prepend != ONXI_PREPEND_NEVER && (step->prepend == ONXI_PREPEND_ALWAYS || run->first) &&
        !onxi_chars_add(&made, step->text))
        return ONX_E_MEMORY;
    for (size_t i = 0; i < text.len; i++)
        if (!onxi_chars_add(&made, text.ptr[i] == ' ' ? step->text : onx_str_make(text.ptr + i, 1)))
            return ONX_E_MEMORY;
    cutter c = { .run = run, .text = onxi_chars_view(&made), .cut = ONXI_CUT_WITH_NEXT };
    return step->flag ? cut_at_text(&c, step->text) : finish(&c);
}

const onxi_token_step_row onxi_splitter_rows[] = {
    { "ByteLevel", byte_read, byte_level, false },
    { "Metaspace", onxi_metaspace_read, metaspace, false },
    { "Split", split_read, split, false },
    { "BertPreTokenizer", NULL, bert, true },
    { "Whitespace", words_read, split, false },
    { "WhitespaceSplit", NULL, blanks, false },
    { "Punctuation", read_cut, punctuation, true },
    { "CharDelimiterSplit", delimiter_read, split, false },
    { "Digits", digits_read, digits, true },
    { "FixedLength", length_read, length, false },
    { NULL, NULL, NULL, false },
};
