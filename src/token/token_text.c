/* token_text.c - UTF-8 text by code points: classes, lower case, normal forms. The Unicode tables are those of
 * utf8proc. */
#include "token/token.h"

/* ---- growing strings ---- */

bool onxi_chars_add(onxi_chars *out, onx_str text)
{
    if (!text.len)
        return true;
    if (!ONXI_GROW_IN(out->arena, out->ptr, out->room, (uint64_t)out->len + text.len))
        return false;
    memcpy(out->ptr + out->len, text.ptr, text.len);
    out->len += text.len;
    return true;
}

bool onxi_chars_put(onxi_chars *out, uint32_t c)
{
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n == 1)
        bytes[0] = (char)c;
    for (size_t i = n; n > 1 && i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    if (n > 1)
        bytes[0] = (char)(c | (n == 2 ? 0xc0u : n == 3 ? 0xe0u : 0xf0u));
    return onxi_chars_add(out, onx_str_make(bytes, n));
}

/* ---- code points ---- */

size_t onxi_rune_size(const char *at, const char *end)
{
    const unsigned char lead = (unsigned char)*at;
    const size_t left = (size_t)(end - at);
    const size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
    return n == 1 || (n <= left && onxi_utf8_valid(onx_str_make(at, n)) == n) ? n : 1;
}

uint32_t onxi_rune_next(const char **at, const char *end)
{
    const size_t n = onxi_rune_size(*at, end);
    const unsigned char *p = (const unsigned char *)*at;
    *at += n;
    if (n == 1)
        return *p < 0x80 ? *p : 0xfffd;
    uint32_t c = n == 2 ? *p & 0x1fu : n == 3 ? *p & 0xfu : *p & 7u;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3fu);
    return c;
}

bool onxi_rune_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* ---- using utf8proc ---- */

#ifdef ONX_WITH_UTF8PROC
#include <utf8proc.h>

#define FUNCTIONS(F)                                                                                                   \
    F(utf8proc_category)                                                                                               \
    F(utf8proc_tolower) F(utf8proc_decompose_char) F(utf8proc_get_property) F(utf8proc_normalize_utf32)

typedef struct utf8proc {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} utf8proc;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

static const utf8proc *library(void)
{
    return ONXI_FUNCTIONS(ONXI_LIBRARY_UTF8PROC, function_names);
}

bool onxi_unicode_there(void)
{
    return library() != NULL;
}

static int category(uint32_t c)
{
    return (int)library()->utf8proc_category((utf8proc_int32_t)c);
}

bool onxi_rune_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    const int k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool onxi_rune_is_mark(uint32_t c, bool nonspacing)
{
    const int k = c < 0x300 ? UTF8PROC_CATEGORY_CN : category(c);
    return k == UTF8PROC_CATEGORY_MN || (!nonspacing && (k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME));
}

bool onxi_rune_is_other(uint32_t c)
{
    if (c >= 0x20 && c < 0x7f)
        return false;
    const int k = category(c);
    return k == UTF8PROC_CATEGORY_CN || (k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO);
}

bool onxi_rune_is_number(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9';
    const int k = category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool onxi_chars_lower(onxi_chars *out, onx_str text)
{
    const utf8proc *lib = library();
    const char *end = onxi_str_end(text);
    for (const char *p = text.ptr; p != end;) {
        const uint32_t c = onxi_rune_next(&p, end);
        const uint32_t low = c >= 'A' && c <= 'Z' ? c + 32
                             : c < 0x80           ? c
                                                  : (uint32_t)lib->utf8proc_tolower((utf8proc_int32_t)c);
        /* The only letter whose lower case consists of two code points. */
        if (c == 0x130 ? !onxi_chars_put(out, 'i') || !onxi_chars_put(out, 0x307) : !onxi_chars_put(out, low))
            return false;
    }
    return true;
}

/* ---- normal forms ---- */

typedef struct runes {
    utf8proc_int32_t *list, *spare;
    size_t count, room, spare_room;
} runes;

static int class_of(const utf8proc *lib, utf8proc_int32_t c)
{
    return c < 0x300 ? 0 : lib->utf8proc_get_property(c)->combining_class;
}

/* Sorts the marks after a letter by combining class; the sort is stable. A text may consist of marks only, so a
 * counting sort is used, which takes linear time. */
static onx_status order_marks(onx_arena *arena, const utf8proc *lib, runes *r, size_t from, size_t to)
{
    uint32_t counts[257] = { 0 };
    if (!ONXI_GROW_IN(arena, r->spare, r->spare_room, to - from))
        return ONX_E_MEMORY;
    for (size_t i = from; i < to; i++)
        counts[class_of(lib, r->list[i]) + 1]++;
    for (int k = 0; k < 256; k++)
        counts[k + 1] += counts[k];
    for (size_t i = from; i < to; i++)
        r->spare[counts[class_of(lib, r->list[i])]++] = r->list[i];
    memcpy(r->list + from, r->spare, (to - from) * sizeof *r->list);
    return ONX_OK;
}

static onx_status reorder(onx_arena *arena, const utf8proc *lib, runes *r)
{
    for (size_t i = 0, begin; i < r->count; i++) {
        bool sorted = true;
        for (begin = i; i < r->count && class_of(lib, r->list[i]); i++)
            sorted = sorted && (i == begin || class_of(lib, r->list[i - 1]) <= class_of(lib, r->list[i]));
        if (!sorted)
            ONX_TRY(order_marks(arena, lib, r, begin, i));
    }
    return ONX_OK;
}

onx_status onxi_chars_form(onx_ctx *cx, onxi_form form, onx_str text, onxi_chars *out)
{
    const utf8proc *lib = library();
    const bool compose = form == ONXI_NFC || form == ONXI_NFKC, compatible = form >= ONXI_NFKC;
    const unsigned how = UTF8PROC_STABLE | (unsigned)UTF8PROC_DECOMPOSE | (compatible ? (unsigned)UTF8PROC_COMPAT : 0u);
    const char *end = onxi_str_end(text);
    runes r = { 0 };
    for (const char *p = text.ptr; p != end;) {
        const utf8proc_int32_t c = (utf8proc_int32_t)onxi_rune_next(&p, end);
        if (!ONXI_GROW_IN(out->arena, r.list, r.room, r.count + 32)) /* a code point decomposes into at most 18 */
            return ONX_E_MEMORY;
        utf8proc_ssize_t n =
            c < 0x80 ? 0 : lib->utf8proc_decompose_char(c, r.list + r.count, 32, (utf8proc_option_t)how, NULL);
        if (n < 0 || n > 32)
            return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "U+%04X cannot be decomposed", (unsigned)c);
        if (n == 0 && c < 0x80)
            r.list[r.count + (size_t)n++] = c;
        r.count += (size_t)n;
    }
    ONX_TRY(reorder(out->arena, lib, &r));
    if (compose && r.count) {
        const utf8proc_ssize_t n = lib->utf8proc_normalize_utf32(
            r.list, (utf8proc_ssize_t)r.count, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        if (n < 0)
            return onxi_fail(cx, ONX_E_INVALID, ONXI_NOWHERE, "a text cannot be composed");
        r.count = (size_t)n;
    }
    for (size_t i = 0; i < r.count; i++)
        if (!onxi_chars_put(out, (uint32_t)r.list[i]))
            return ONX_E_MEMORY;
    return ONX_OK;
}

#else /* normalizers that need the tables are refused when a file is read */

bool onxi_unicode_there(void)
{
    return false;
}

bool onxi_rune_is_punctuation(uint32_t c)
{
    (void)c;
    return false;
}

bool onxi_rune_is_mark(uint32_t c, bool nonspacing)
{
    (void)c, (void)nonspacing;
    return false;
}

bool onxi_rune_is_other(uint32_t c)
{
    (void)c;
    return false;
}

bool onxi_rune_is_number(uint32_t c)
{
    (void)c;
    return false;
}

bool onxi_chars_lower(onxi_chars *out, onx_str text)
{
    return onxi_chars_add(out, text);
}

onx_status onxi_chars_form(onx_ctx *cx, onxi_form form, onx_str text, onxi_chars *out)
{
    (void)form, (void)text, (void)out;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "a normal form %s",
                     onxi_library_missing(ONXI_LIBRARY_UTF8PROC));
}

#endif
