/* cli_utf8.c - UTF-8 decoding, for output on terminals, as JSON and as XML. */
#include "cli.h"

size_t cli_utf8_char(onx_str s, uint32_t *c)
{
    /* The lead byte of a sequence of that length, and the smallest code point that needs it: smaller ones are
     * overlong. */
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = { { 0x80, 0, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };
    const unsigned char *p = (const unsigned char *)s.ptr;
    *c = 0;
    for (size_t n = 1; n <= 4 && n <= s.len; n++) {
        if ((p[0] & forms[n - 1].mask) != forms[n - 1].lead)
            continue;
        *c = p[0] & (n == 1 ? 0x7f : 0x7fu >> n);
        for (size_t i = 1; i < n; i++) {
            if ((p[i] & 0xc0) != 0x80)
                return 0;
            *c = *c << 6 | (p[i] & 0x3f);
        }
        return *c < forms[n - 1].least || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : n;
    }
    return 0;
}

size_t cli_xml_char(onx_str s, uint32_t *c)
{
    const size_t n = cli_utf8_char(s, c);
    const bool control = *c < 0x20 ? *c != '\n' && *c != '\t' : *c == 0x7f;
    return n && !control && *c != 0xfffe && *c != 0xffff ? n : 0;
}

void cli_put_xml(FILE *to, onx_str s)
{
    for (size_t i = 0, n; i < s.len; i += n ? n : 1) {
        uint32_t c = 0;
        n = cli_xml_char(onx_str_make(s.ptr + i, s.len - i), &c);
        if (n == 0)
            fputs("\xef\xbf\xbd", to);
        else if (c < 0x80 && strchr("&<>\"", (int)c))
            fprintf(to, "&#%u;", c);
        else
            fwrite(s.ptr + i, 1, n, to);
    }
}
