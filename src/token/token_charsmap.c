/* token_charsmap.c - the normalization tables of SentencePiece: a double-array trie of 32-bit units that maps prefixes
 * of a text to replacements. The tables come from files, so every access is checked. */
#include "token/token.h"

onx_status onxi_charsmap_read(onxi_tokenrun *run, onx_str bytes, onxi_charsmap *out)
{
    uint32_t size;
    *out = (onxi_charsmap){ 0 };
    if (!bytes.len)
        return ONX_OK;
    if (bytes.len < 4)
        return onxi_token_fail(run, ONX_E_MALFORMED, "precompiled_charsmap has %zu bytes", bytes.len);
    memcpy(&size, bytes.ptr, 4);
    if (size % 4 || size > bytes.len - 4)
        return onxi_token_fail(run, ONX_E_MALFORMED, "precompiled_charsmap says %u bytes of units, and has %zu",
                               (unsigned)size, bytes.len - 4);
    out->units = onx_str_make(bytes.ptr + 4, size);
    out->texts = onxi_str_from(bytes, 4 + (size_t)size);
    return ONX_OK;
}

static bool unit_at(const onxi_charsmap *map, uint32_t at, uint32_t *out)
{
    if (at >= map->units.len / 4)
        return false;
    memcpy(out, map->units.ptr + (size_t)at * 4, 4);
    return true;
}

/* The position of a unit's children, before the exclusive or with the byte of a child. */
static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

size_t onxi_charsmap_find(const onxi_charsmap *map, onx_str text, onx_str *out)
{
    uint32_t unit, at, leaf;
    size_t longest = 0;
    uint32_t value = 0;
    if (!unit_at(map, 0, &unit))
        return 0;
    at = offset_of(unit);
    for (size_t i = 0; i < text.len && i < ONXI_TOKEN_MAX; i++) {
        const uint8_t byte = (uint8_t)text.ptr[i];
        at ^= byte;
        if (!unit_at(map, at, &unit) || (unit & (1u << 31 | 0xff)) != byte)
            break;
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            if (!unit_at(map, at, &leaf))
                break;
            longest = i + 1;
            value = leaf & 0x7fffffff;
        }
    }
    if (!longest || value >= map->texts.len)
        return 0;
    *out = onxi_str_from(map->texts, value);
    const char *end = memchr(out->ptr, 0, out->len);
    if (end)
        out->len = (size_t)(end - out->ptr);
    return longest;
}
