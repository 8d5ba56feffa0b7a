/* base_hash.c - a quick hash of bytes for tables in memory; not for files, it may change. */
#include "base/base.h"

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t load32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Multiply-and-fold (the core of wyhash and of many hash tables): two halves of a 128-bit product mix well. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t onxi_hash(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = seed ^ 0x9e3779b97f4a7c15u ^ len;
    for (; len > 16; p += 16, len -= 16)
        h = fold(load64(p) ^ h, load64(p + 8) ^ 0xd6e8feb86659fd93u);
    /* The rest in words of fixed size that may overlap: a copy of every length would be a call each time. */
    uint64_t a = 0, b = 0;
    if (len >= 8) {
        a = load64(p);
        b = load64(p + len - 8);
    } else if (len >= 4) {
        a = load32(p);
        b = load32(p + len - 4);
    } else if (len) {
        a = (uint64_t)p[0] | (uint64_t)p[len / 2] << 8 | (uint64_t)p[len - 1] << 16;
    }
    return fold(a ^ 0xa0761d6478bd642fu, b ^ h ^ 0xe7037ed1a0b428dbu);
}
