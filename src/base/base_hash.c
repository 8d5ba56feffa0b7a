/* base_hash.c - a quick hash of bytes for tables in memory; not for files, it may change. */
#include "base/base.h"

static uint64_t load(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
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
    while (len >= 16) {
        h = fold(load(p, 8) ^ h, load(p + 8, 8) ^ 0xd6e8feb86659fd93u);
        p += 16;
        len -= 16;
    }
    uint64_t a = 0, b = 0;
    if (len > 8) {
        a = load(p, 8);
        b = load(p + len - 8, 8);
    } else if (len) {
        a = load(p, len);
    }
    return fold(a ^ 0xa0761d6478bd642fu, b ^ h ^ 0xe7037ed1a0b428dbu);
}
