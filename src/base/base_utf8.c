/* base_utf8.c - validation of UTF-8. */
#include "base/base.h"

/* The length of the character at p, or 0 if it is invalid: overlong, a surrogate, past U+10FFFF, or truncated. */
static size_t character(const unsigned char *p, size_t left)
{
    unsigned lead = p[0];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || left < need)
        return 0;
    for (size_t i = 1; i < need; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] > 0x9f) || (lead == 0xf0 && p[1] < 0x90) ||
        (lead == 0xf4 && p[1] > 0x8f))
        return 0;
    return need;
}

size_t onxi_utf8_valid(onx_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t i = 0;
    while (i < s.len) {
        uint64_t eight;
        if (s.len - i >= sizeof eight) {
            memcpy(&eight, p + i, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                i += sizeof eight;
                continue;
            }
        }
        if (p[i] < 0x80) {
            i++;
            continue;
        }
        size_t n = character(p + i, s.len - i);
        if (!n)
            break;
        i += n;
    }
    return i;
}
