/* base_hash.c - a fast hash of bytes for tables in memory, and its secret, which prevents others from causing
 * collisions. */
#include "base/base_ctx.h"

#include <time.h>

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

/* Each product has a secret in both factors. With a constant as one factor, a file could contain bytes that make the
 * other factor 0, and so the product 0, whatever the rest is. */
uint64_t onxi_hash(onxi_secret secret, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = secret.a ^ 0x9e3779b97f4a7c15u ^ len;
    for (; len > 16; p += 16, len -= 16)
        h = onxi_hash_fold(load64(p) ^ h, load64(p + 8) ^ secret.b ^ 0xd6e8feb86659fd93u);
    /* Reads the last bytes as fixed-size words that may overlap: copies of variable length would be function calls. */
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
    return onxi_hash_fold(a ^ secret.b ^ 0xa0761d6478bd642fu, b ^ h ^ 0xe7037ed1a0b428dbu);
}

/* Four independent sums, so that the latencies of the multiplications overlap. */
onxi_digest onxi_digest_of(onxi_secret secret, const void *bytes, size_t len)
{
    enum { LANES = 4, STRIPE = 16 * LANES };
    const unsigned char *p = bytes;
    uint64_t sum[LANES], key[LANES];
    size_t left = len;
    for (unsigned i = 0; i < LANES; i++) {
        sum[i] = onxi_hash_word(secret, i);
        key[i] = onxi_hash_word(secret, LANES + i);
    }
    for (; left >= STRIPE; p += STRIPE, left -= STRIPE)
        for (unsigned i = 0; i < LANES; i++)
            sum[i] = onxi_hash_fold(load64(p + 16 * i) ^ sum[i], load64(p + 16 * i + 8) ^ key[i]);
    const uint64_t rest = onxi_hash(onxi_hash_then(secret, len), p, left);
    const onxi_secret last = onxi_hash_then(secret, rest);
    const uint64_t a = onxi_hash(last, sum, sizeof sum);
    return (onxi_digest){ a, onxi_hash((onxi_secret){ last.b ^ a, last.a }, sum, sizeof sum) };
}

uint64_t onx_hash(const onx_ctx *cx, onx_str text, uint64_t before)
{
    if (!cx)
        return 0;
    return onxi_hash(onxi_hash_then(cx->secret, before), text.ptr, text.len);
}

onxi_secret onxi_secret_make(const void *address)
{
    onxi_secret secret = { 0x9e3779b97f4a7c15u, 0xd6e8feb86659fd93u };
    if (onxi_platform_random(&secret, sizeof secret, false))
        return secret;
    /* No random numbers are available: getrandom is forbidden here, or the system has just started. Uses the random
     * bytes that the kernel gave the process, addresses, and the time. */
    const void *given = onxi_platform_seed();
    if (given)
        memcpy(&secret, given, sizeof secret);
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t a = onxi_hash_fold(secret.a ^ time, secret.b | 1);
    return (onxi_secret){ a, onxi_hash_fold(secret.b ^ (uint64_t)(uintptr_t)address, a | 1) };
}
