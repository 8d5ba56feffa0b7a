/* proto_json_scan.c - the tokens of JSON: strings with escapes, numbers, base64. */
#include "proto/proto.h"
#include "proto/proto_text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- scanning ---- */

char onxi_json_peek(onxi_text_in *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
        in->at++;
    return in->at < in->end ? *in->at : 0;
}

bool onxi_json_take(onxi_text_in *in, char c)
{
    if (onxi_json_peek(in) != c || in->at == in->end)
        return false;
    in->at++;
    return true;
}

bool onxi_json_take_word(onxi_text_in *in, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

static bool hex4(const char *p, const char *end, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p + i < end ? onxi_text_hex(p[i]) : -1;
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* Decodes the escape whose backslash is at p; returns the position after it, NULL if it is invalid. */
static const char *escape(const char *p, const char *end, char bytes[4], size_t *len_out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    char c = end - p >= 2 ? p[1] : 0;
    const char *simple = c ? strchr(letters, c) : NULL;
    *len_out = 1;
    if (simple) {
        bytes[0] = meanings[simple - letters];
        return p + 2;
    }
    if (c != 'u' || !hex4(p + 2, end, &code))
        return NULL;
    p += 6;
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || end - p < 6 || p[0] != '\\' || p[1] != 'u' || !hex4(p + 2, end, &low) || low < 0xdc00 ||
            low >= 0xe000)
            return NULL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    *len_out = onxi_text_utf8(code, bytes);
    return p;
}

/* Finds the end of a string and whether it contains escapes; checks UTF-8 and escapes. `raw_out` is the text between
 * the quotes. */
static onx_status scan_string(onxi_text_in *in, onx_str *raw_out, bool *escaped_out)
{
    const char *from = in->at + 1, *p = from;
    char bytes[4];
    size_t len;
    unsigned char any = 0;
    *escaped_out = false;
    for (; p < in->end && *p != '"'; p++) {
        any |= (unsigned char)*p;
        if ((unsigned char)*p < 0x20)
            break;
        if (*p == '\\') {
            *escaped_out = true;
            const char *behind = escape(p, in->end, bytes, &len);
            if (!behind) {
                in->at = p;
                return onxi_text_expected(in,
                                          "an escape of JSON: \\n \\\" \\\\ \\uhhhh or the like, surrogates in pairs");
            }
            p = behind - 1;
        }
    }
    if (p == in->end || *p != '"') {
        in->at = p == in->end ? from - 1 : p;
        return onxi_text_expected(in, p == in->end ? "the quote that ends the string"
                                                   : "no control character in a string, but its escape");
    }
    *raw_out = onx_str_make(from, (size_t)(p - from));
    size_t valid = any & 0x80 ? onxi_utf8_valid(*raw_out) : raw_out->len;
    if (valid != raw_out->len) {
        in->at = from + valid;
        return onxi_text_expected(in, "a string in UTF-8");
    }
    in->at = p + 1;
    return ONX_OK;
}

onx_status onxi_json_take_string(onxi_text_in *in, bool borrow, onx_str *out)
{
    bool escaped;
    onx_str raw;
    if (onxi_json_peek(in) != '"')
        return onxi_text_expected(in, "a string");
    ONX_TRY(scan_string(in, &raw, &escaped));
    *out = raw;
    if (!escaped && borrow)
        return ONX_OK;
    char *to = onxi_arena_get(in->arena, raw.len + 1); /* decoded escapes are shorter than the escapes */
    if (!to)
        return ONX_E_MEMORY;
    *out = onx_str_make(to, raw.len);
    if (!escaped) {
        if (raw.len)
            memcpy(to, raw.ptr, raw.len);
        return ONX_OK;
    }
    for (const char *p = raw.ptr, *end = p + raw.len; p < end;) {
        size_t len = 1;
        if (*p == '\\')
            p = escape(p, end, to, &len);
        else
            *to = *p++;
        to += len;
    }
    out->len = (size_t)(to - out->ptr);
    return ONX_OK;
}

size_t onxi_json_number_length(onx_str text, bool *fractional)
{
    const char *p = text.ptr, *end = p + text.len;
    *fractional = false;
    p += p < end && *p == '-';
    if (p == end || !is_digit(*p))
        return 0;
    if (*p == '0')
        p++;
    else
        while (p < end && is_digit(*p))
            p++;
    if (end - p >= 2 && *p == '.' && is_digit(p[1])) {
        *fractional = true;
        for (p++; p < end && is_digit(*p);)
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        q += q < end && (*q == '+' || *q == '-');
        if (q == end || !is_digit(*q))
            return 0;
        *fractional = true;
        for (p = q; p < end && is_digit(*p);)
            p++;
    }
    return (size_t)(p - text.ptr);
}

/* ---- base64 ---- */

/* The value 0 to 63 of each character, in both alphabets; -1 for other characters. */
static const signed char base64_values[128] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, 62, -1, 63, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1, -1, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, 63, -1, 26, 27, 28, 29, 30, 31, 32,
    33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
};

static inline int base64_value(unsigned char c)
{
    return c < 128 ? base64_values[c] : -1;
}

static bool decode_base64(onx_str text, char *to)
{
    uint32_t bits = 0;
    int wrong = 0;
    const unsigned char *p = (const unsigned char *)text.ptr, *end = p + text.len;
    for (; end - p >= 4; p += 4, to += 3) {
        int a = base64_value(p[0]), b = base64_value(p[1]), c = base64_value(p[2]), d = base64_value(p[3]);
        wrong |= a | b | c | d;
        bits = (uint32_t)(a & 63) << 18 | (uint32_t)(b & 63) << 12 | (uint32_t)(c & 63) << 6 | (uint32_t)(d & 63);
        to[0] = (char)(bits >> 16);
        to[1] = (char)(bits >> 8);
        to[2] = (char)bits;
    }
    size_t left = (size_t)(end - p);
    if (left == 1)
        return false;
    if (left) {
        int a = base64_value(p[0]), b = base64_value(p[1]), c = left == 3 ? base64_value(p[2]) : 0;
        wrong |= a | b | c;
        bits = (uint32_t)(a & 63) << 18 | (uint32_t)(b & 63) << 12 | (uint32_t)(c & 63) << 6;
        to[0] = (char)(bits >> 16);
        if (left == 3)
            to[1] = (char)(bits >> 8);
    }
    return wrong >= 0;
}

onx_status onxi_json_base64(onx_arena *arena, onx_str text, onx_str *out)
{
    *out = (onx_str){ 0 };
    if (text.len % 4 == 0 && text.len && text.ptr[text.len - 1] == '=')
        text.len -= text.ptr[text.len - 2] == '=' ? 2 : 1;
    const size_t len = text.len / 4 * 3 + (text.len % 4 ? text.len % 4 - 1 : 0);
    char *bytes = onxi_arena_get(arena, len + 1);
    if (!bytes)
        return ONX_E_MEMORY;
    if (decode_base64(text, bytes))
        *out = onx_str_make(bytes, len);
    return ONX_OK;
}
