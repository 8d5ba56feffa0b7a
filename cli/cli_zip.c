/* cli_zip.c - a member of a zip archive (.npz), stored or deflated. */
#include "cli_value.h"

#include <stdlib.h>

/* ---- deflate (RFC 1951) ---- */

typedef struct bits {
    const uint8_t *in;
    size_t len, at;
    uint32_t hold;
    unsigned count;
    bool failed;
} bits;

static uint32_t take(bits *b, unsigned n)
{
    while (b->count < n) {
        if (b->at == b->len) {
            b->failed = true;
            return 0;
        }
        b->hold |= (uint32_t)b->in[b->at++] << b->count;
        b->count += 8;
    }
    uint32_t out = b->hold & ((1u << n) - 1u);
    b->hold >>= n;
    b->count -= n;
    return out;
}

/* A canonical Huffman code: how many codes of each length, and the symbols in order of their codes. */
typedef struct code {
    uint16_t counts[16], symbols[288];
} code;

static void make_code(code *c, const uint8_t *lengths, unsigned n)
{
    uint16_t offsets[16] = { 0 };
    memset(c, 0, sizeof *c);
    for (unsigned i = 0; i < n; i++)
        c->counts[lengths[i]]++;
    c->counts[0] = 0;
    for (unsigned i = 1; i < 16; i++)
        offsets[i] = (uint16_t)(offsets[i - 1] + c->counts[i - 1]);
    for (unsigned i = 0; i < n; i++)
        if (lengths[i])
            c->symbols[offsets[lengths[i]]++] = (uint16_t)i;
}

static unsigned symbol(bits *b, const code *c)
{
    int value = 0, first = 0, index = 0;
    for (unsigned len = 1; len < 16 && !b->failed; len++) {
        value |= (int)take(b, 1);
        int count = c->counts[len];
        if (value - count < first)
            return c->symbols[index + value - first];
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    b->failed = true;
    return 0;
}

static bool dynamic_codes(bits *b, code *literals, code *distances)
{
    static const uint8_t order[19] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    unsigned nl = take(b, 5) + 257, nd = take(b, 5) + 1, nc = take(b, 4) + 4;
    uint8_t lengths[320] = { 0 };
    for (unsigned i = 0; i < nc; i++)
        lengths[order[i]] = (uint8_t)take(b, 3);
    code c;
    make_code(&c, lengths, 19);
    memset(lengths, 0, sizeof lengths);
    for (unsigned i = 0; i < nl + nd && !b->failed;) {
        unsigned s = symbol(b, &c), repeat = 1;
        uint8_t value = (uint8_t)s;
        if (s == 16) {
            if (!i)
                return false;
            value = lengths[i - 1];
            repeat = 3 + take(b, 2);
        } else if (s >= 17) {
            value = 0;
            repeat = s == 17 ? 3 + take(b, 3) : 11 + take(b, 7);
        }
        if (i + repeat > nl + nd)
            return false;
        while (repeat--)
            lengths[i++] = value;
    }
    if (b->failed || nl > 286)
        return false;
    make_code(literals, lengths, nl);
    make_code(distances, lengths + nl, nd);
    return true;
}

static bool inflate_block(bits *b, const code *literals, const code *distances, uint8_t *out, size_t len, size_t *at)
{
    static const uint16_t base[29] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const uint8_t extra[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
    static const uint16_t far[30] = { 1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                      33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                      1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
    for (;;) {
        unsigned s = symbol(b, literals);
        if (b->failed)
            return false;
        if (s == 256)
            return true;
        if (s < 256) {
            if (*at == len)
                return false;
            out[(*at)++] = (uint8_t)s;
            continue;
        }
        if (s > 285)
            return false;
        size_t n = base[s - 257] + take(b, extra[s - 257]);
        unsigned d = symbol(b, distances);
        if (b->failed || d > 29)
            return false;
        size_t back = far[d] + take(b, d < 4 ? 0 : d / 2 - 1);
        if (b->failed || back > *at || n > len - *at)
            return false;
        for (; n; n--, (*at)++)
            out[*at] = out[*at - back];
    }
}

bool cli_inflate(onx_str in, char *out, size_t out_len)
{
    bits b = { .in = (const uint8_t *)in.ptr, .len = in.len };
    size_t at = 0;
    bool last = false;
    while (!last && !b.failed) {
        last = take(&b, 1);
        unsigned kind = take(&b, 2);
        code literals, distances;
        if (kind == 0) {
            b.hold = b.count = 0;
            if (b.len - b.at < 4)
                return false;
            size_t n = (size_t)(b.in[b.at] | b.in[b.at + 1] << 8);
            b.at += 4;
            if (n > b.len - b.at || n > out_len - at)
                return false;
            memcpy(out + at, b.in + b.at, n);
            b.at += n;
            at += n;
            continue;
        }
        if (kind == 1) {
            uint8_t lengths[288];
            for (unsigned i = 0; i < 288; i++)
                lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
            make_code(&literals, lengths, 288);
            memset(lengths, 5, 30);
            make_code(&distances, lengths, 30);
        } else if (kind != 2 || !dynamic_codes(&b, &literals, &distances)) {
            return false;
        }
        if (!inflate_block(&b, &literals, &distances, (uint8_t *)out, out_len, &at))
            return false;
    }
    return !b.failed && at == out_len;
}

/* ---- the archive ---- */

static uint32_t u32(const char *p)
{
    const uint8_t *u = (const uint8_t *)p;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}
static uint32_t u16(const char *p)
{
    return (uint32_t)(uint8_t)p[0] | (uint32_t)(uint8_t)p[1] << 8;
}

static onx_status unpack(cli_call *call, const char *what, onx_str archive, const char *entry, char **bytes_out,
                         size_t *len_out)
{
    uint32_t method = u16(entry + 10), packed = u32(entry + 20), size = u32(entry + 24), at = u32(entry + 42);
    if (archive.len < 30 || at > archive.len - 30 || packed == UINT32_MAX || size == UINT32_MAX) {
        cli_error(call, "%s: the archive is damaged, or beyond 4 GiB", what);
        return ONX_E_MALFORMED;
    }
    size_t start = at + 30 + u16(archive.ptr + at + 26) + u16(archive.ptr + at + 28);
    if (start > archive.len || packed > archive.len - start || (method == 0 && packed != size) ||
        (method == 8 && size / 1100 > packed)) {
        cli_error(call, "%s: the archive is damaged", what);
        return ONX_E_MALFORMED;
    }
    char *bytes = malloc((size_t)size + 1);
    if (!bytes)
        return ONX_E_MEMORY;
    bool good = method == 0 || method == 8;
    if (method == 0)
        memcpy(bytes, archive.ptr + start, size);
    else if (method == 8)
        good = cli_inflate(onx_str_make(archive.ptr + start, packed), bytes, size);
    if (!good) {
        free(bytes);
        cli_error(call, "%s: a member cannot be unpacked", what);
        return ONX_E_MALFORMED;
    }
    *bytes_out = bytes;
    *len_out = size;
    return ONX_OK;
}

onx_status cli_zip_member(cli_call *call, const char *what, onx_str archive, onx_str name, char **bytes_out,
                          size_t *len_out)
{
    size_t end = archive.len < 22 ? 0 : archive.len - 22;
    size_t lowest = archive.len > 66000 ? archive.len - 66000 : 0;
    while (archive.len >= 22 && end > lowest && u32(archive.ptr + end) != 0x06054b50)
        end--;
    if (archive.len < 22 || u32(archive.ptr + end) != 0x06054b50) {
        cli_error(call, "%s: this is no zip archive", what);
        return ONX_E_MALFORMED;
    }
    uint32_t count = u16(archive.ptr + end + 10), at = u32(archive.ptr + end + 16);
    for (uint32_t i = 0; i < count; i++) {
        if (archive.len < 46 || at > archive.len - 46 || u32(archive.ptr + at) != 0x02014b50)
            break;
        uint32_t len = u16(archive.ptr + at + 28);
        if (len > archive.len - at - 46)
            break;
        onx_str member = onx_str_make(archive.ptr + at + 46, len);
        if (member.len > 4 && memcmp(member.ptr + member.len - 4, ".npy", 4) == 0)
            member.len -= 4;
        if (count == 1 || onx_str_equal(member, name))
            return unpack(call, what, archive, archive.ptr + at, bytes_out, len_out);
        at += 46 + len + u16(archive.ptr + at + 30) + u16(archive.ptr + at + 32);
    }
    cli_error(call, "%s: no member is named \"%.*s\"", what, ONX_ARG(name));
    return ONX_E_NOT_FOUND;
}
