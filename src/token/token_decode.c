/* token_decode.c - decoders: convert tokens to text. Each one modifies the list of parts, which are concatenated at the
 * end. */
#include "token/token.h"

static onx_status set_part(onxi_tokenrun *run, uint64_t i, const onxi_chars *made)
{
    run->parts[i] = onxi_chars_view(made);
    return ONX_OK;
}

/* Replaces each occurrence of `what`. */
static onx_status swap_text(onxi_tokenrun *run, onx_str *text, onx_str what, onx_str by)
{
    const onxi_token_step step = { .text = what, .other = by };
    return what.len ? onxi_replace(run, &step, *text, text) : ONX_OK;
}

/* ---- bytes ---- */

/* Converts bytes to UTF-8, with U+FFFD for each invalid one. A valid but truncated character counts as one. */
static bool add_lossy(onxi_chars *out, onx_str bytes)
{
    while (bytes.len) {
        const size_t good = onxi_utf8_valid(bytes);
        if (!onxi_chars_add(out, onx_str_make(bytes.ptr, good)))
            return false;
        bytes = onxi_str_from(bytes, good);
        if (!bytes.len)
            break;
        /* the longest valid prefix of a character counts as one */
        const unsigned char *p = (const unsigned char *)bytes.ptr;
        size_t n = 1;
        const unsigned low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
        const unsigned high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
        const size_t whole = p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : 1;
        if (whole > 1 && bytes.len > 1 && p[1] >= low && p[1] <= high)
            for (n = 2; n < whole && n < bytes.len && p[n] >= 0x80 && p[n] <= 0xbf;)
                n++;
        if (!onxi_chars_put(out, 0xfffd))
            return false;
        bytes = onxi_str_from(bytes, n);
    }
    return true;
}

static onx_status join(onxi_tokenrun *run, onxi_chars *out)
{
    for (uint64_t i = 0; i < run->part_count; i++)
        if (!onxi_chars_add(out, run->parts[i]))
            return ONX_E_MEMORY;
    return ONX_OK;
}

static onx_status one_part(onxi_tokenrun *run, const onxi_chars *made)
{
    if (!ONXI_GROW_IN(run->arena, run->parts, run->part_room, 1))
        return ONX_E_MEMORY;
    run->part_count = 1;
    return set_part(run, 0, made);
}

/* The bytes that the characters of a token represent; the token itself if one of them represents none. */
static bool add_bytes(onxi_chars *out, onx_str token)
{
    const size_t before = out->len;
    const char *end = onxi_str_end(token);
    for (const char *p = token.ptr; p != end;) {
        const int byte = onxi_rune_byte(onxi_rune_next(&p, end));
        if (byte < 0) {
            out->len = before;
            return onxi_chars_add(out, token);
        }
        const char c = (char)byte;
        if (!onxi_chars_add(out, onx_str_make(&c, 1)))
            return false;
    }
    return true;
}

static onx_status byte_level(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step, (void)text, (void)out;
    onxi_chars bytes = { .arena = run->arena }, made = { .arena = run->arena };
    for (uint64_t i = 0; i < run->part_count; i++)
        if (!add_bytes(&bytes, run->parts[i]))
            return ONX_E_MEMORY;
    return add_lossy(&made, onxi_chars_view(&bytes)) ? one_part(run, &made) : ONX_E_MEMORY;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The byte that a token like "<0x41>" stands for; -1 for other tokens. */
int onxi_byte_token(onx_str token)
{
    if (token.len != 6 || memcmp(token.ptr, "<0x", 3) != 0 || token.ptr[5] != '>')
        return -1;
    const int high = hex_digit(token.ptr[3]), low = hex_digit(token.ptr[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A run of byte tokens is decoded if it is valid UTF-8; otherwise each byte becomes U+FFFD. */
static bool end_bytes(onxi_chars *made, onxi_chars *bytes)
{
    const onx_str all = onxi_chars_view(bytes);
    const bool good = onxi_utf8_valid(all) == all.len;
    bytes->len = 0;
    if (good)
        return onxi_chars_add(made, all);
    for (size_t i = 0; i < all.len; i++)
        if (!onxi_chars_put(made, 0xfffd))
            return false;
    return true;
}

static onx_status byte_fallback(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step, (void)text, (void)out;
    onxi_chars bytes = { .arena = run->arena };
    uint64_t count = 0;
    for (uint64_t i = 0; i <= run->part_count; i++) {
        const int byte = i < run->part_count ? onxi_byte_token(run->parts[i]) : -1;
        if (byte >= 0) {
            const char c = (char)byte;
            if (!onxi_chars_add(&bytes, onx_str_make(&c, 1)))
                return ONX_E_MEMORY;
            continue;
        }
        const onx_str part = i < run->part_count ? run->parts[i] : onx_str_make(NULL, 0);
        if (bytes.len) { /* the bytes replace at least one part, so there is room */
            onxi_chars made = { .arena = run->arena };
            if (!end_bytes(&made, &bytes))
                return ONX_E_MEMORY;
            run->parts[count++] = onxi_chars_view(&made);
        }
        if (i < run->part_count)
            run->parts[count++] = part;
    }
    run->part_count = count;
    return ONX_OK;
}

/* ---- words ---- */

static onx_status wordpiece_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->text = onxi_json_text(from, "prefix");
    if (onxi_json_get(from, "prefix")->kind != ONXI_JSON_TEXT)
        step->text = onx_str_of("##");
    step->flag = onxi_json_truth(from, "cleanup", true);
    return ONX_OK;
}

/* Removes the spaces that tokenization added to English text. */
static onx_status clean_up(onxi_tokenrun *run, onx_str *text)
{
    static const char *const swaps[][2] = { { " .", "." },     { " ?", "?" },           { " !", "!" },
                                            { " ,", "," },     { " ' ", "'" },          { " n't", "n't" },
                                            { " 'm", "'m" },   { " do not", " don't" }, { " 's", "'s" },
                                            { " 've", "'ve" }, { " 're", "'re" } };
    if (!memchr(text->len ? text->ptr : "", ' ', text->len))
        return ONX_OK;
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++)
        ONX_TRY(swap_text(run, text, onx_str_of(swaps[i][0]), onx_str_of(swaps[i][1])));
    return ONX_OK;
}

static onx_status wordpiece(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)text, (void)out;
    for (uint64_t i = 0; i < run->part_count; i++) {
        const onx_str part = run->parts[i];
        if (i && onxi_starts_with(part, step->text)) {
            run->parts[i] = onxi_str_from(part, step->text.len);
        } else if (i) {
            onxi_chars made = { .arena = run->arena };
            if (!onxi_chars_put(&made, ' ') || !onxi_chars_add(&made, part))
                return ONX_E_MEMORY;
            ONX_TRY(set_part(run, i, &made));
        }
        if (step->flag)
            ONX_TRY(clean_up(run, &run->parts[i]));
    }
    return ONX_OK;
}

static onx_status suffix_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    step->text = onxi_json_text(from, "suffix");
    if (onxi_json_get(from, "suffix")->kind != ONXI_JSON_TEXT)
        step->text = onx_str_of("</w>");
    return ONX_OK;
}

static onx_status suffix(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)text, (void)out;
    for (uint64_t i = 0; i < run->part_count; i++)
        ONX_TRY(swap_text(run, &run->parts[i], step->text, onx_str_of(i + 1 == run->part_count ? "" : " ")));
    return ONX_OK;
}

static onx_status ctc_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    (void)run;
    const bool pad = onxi_json_get(from, "pad_token")->kind == ONXI_JSON_TEXT;
    const bool word = onxi_json_get(from, "word_delimiter_token")->kind == ONXI_JSON_TEXT;
    step->text = pad ? onxi_json_text(from, "pad_token") : onx_str_of("<pad>");
    step->other = word ? onxi_json_text(from, "word_delimiter_token") : onx_str_of("|");
    step->flag = onxi_json_truth(from, "cleanup", true);
    return ONX_OK;
}

static onx_status ctc(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)text, (void)out;
    uint64_t count = 0;
    onx_str last = { 0 };
    for (uint64_t i = 0; i < run->part_count; i++) {
        onx_str part = run->parts[i];
        if (i && onx_str_equal(part, last))
            continue;
        last = part;
        ONX_TRY(swap_text(run, &part, step->text, onx_str_of("")));
        if (step->flag)
            ONX_TRY(clean_up(run, &part));
        if (step->flag)
            ONX_TRY(swap_text(run, &part, step->other, onx_str_of(" ")));
        if (part.len)
            run->parts[count++] = part;
    }
    run->part_count = count;
    return ONX_OK;
}

static onx_status metaspace(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)text, (void)out;
    for (uint64_t i = 0; i < run->part_count; i++)
        ONX_TRY(swap_text(run, &run->parts[i], step->text,
                          onx_str_of(i || step->prepend == ONXI_PREPEND_NEVER ? " " : "")));
    return ONX_OK;
}

static onx_status replace(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)text, (void)out;
    for (uint64_t i = 0; i < run->part_count; i++)
        ONX_TRY(onxi_replace(run, step, run->parts[i], &run->parts[i]));
    return ONX_OK;
}

static onx_status fuse(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)step, (void)text, (void)out;
    onxi_chars made = { .arena = run->arena };
    ONX_TRY(join(run, &made));
    return one_part(run, &made);
}

static onx_status strip_read(onxi_tokenrun *run, const onxi_json *from, onxi_token_step *step)
{
    const double start = onxi_json_number(from, "start", 0), stop = onxi_json_number(from, "stop", 0);
    if (!(start >= 0 && start <= 1e15 && stop >= 0 && stop <= 1e15))
        return onxi_token_fail(run, ONX_E_INVALID, "start is %g and stop %g, expected counts", start, stop);
    step->text = onxi_json_text(from, "content");
    step->start = (uint64_t)start;
    step->stop = (uint64_t)stop;
    return ONX_OK;
}

static onx_status strip(onxi_tokenrun *run, const onxi_token_step *step, onx_str text, onx_str *out)
{
    (void)text, (void)out;
    for (uint64_t i = 0; step->text.len && i < run->part_count; i++) {
        onx_str *part = &run->parts[i];
        for (uint64_t k = 0; k < step->start && onxi_starts_with(*part, step->text); k++)
            *part = onxi_str_from(*part, step->text.len);
        for (uint64_t k = 0; k < step->stop && part->len >= step->text.len &&
                             memcmp(part->ptr + part->len - step->text.len, step->text.ptr, step->text.len) == 0;
             k++)
            part->len -= step->text.len;
    }
    return ONX_OK;
}

const onxi_token_step_row onxi_decoder_rows[] = {
    { "ByteLevel", NULL, byte_level, false },
    { "ByteFallback", NULL, byte_fallback, false },
    { "WordPiece", wordpiece_read, wordpiece, false },
    { "Metaspace", onxi_metaspace_read, metaspace, false },
    { "BPEDecoder", suffix_read, suffix, false },
    { "CTC", ctc_read, ctc, false },
    { "Replace", onxi_replace_read, replace, false },
    { "Fuse", NULL, fuse, false },
    { "Strip", strip_read, strip, false },
    { NULL, NULL, NULL, false },
};

/* ---- the whole decoding ---- */

static bool add_part(onxi_tokenrun *run, onx_str text)
{
    if (!ONXI_GROW_IN(run->arena, run->parts, run->part_room, run->part_count + 1))
        return false;
    run->parts[run->part_count++] = text;
    return true;
}

onx_status onxi_token_decode(onxi_tokenrun *run, const int64_t *ids, uint64_t count, bool special, onxi_chars *out)
{
    const onx_tokenizer *t = run->tokenizer;
    if (t->sentencepiece)
        return onxi_sentence_decode(run, ids, count, special, out);
    run->part_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        const onxi_token *token = ids[i] < 0 ? NULL : onxi_map_find(&t->by_id, (uint64_t)ids[i]);
        const bool apart = run->part_count && !t->decoders.count;
        if (token && (special || !token->special) &&
            ((apart && !add_part(run, onx_str_of(" "))) || !add_part(run, token->text)))
            return ONX_E_MEMORY;
    }
    for (uint32_t i = 0; i < t->decoders.count; i++)
        ONX_TRY(t->decoders.list[i].row->run(run, &t->decoders.list[i], (onx_str){ 0 }, NULL));
    return join(run, out);
}
