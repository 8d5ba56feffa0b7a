/* random.c - random numbers: the Mersenne Twister MT19937 of Matsumoto and Nishimura (1998), seeded and used as in
 * NumPy's RandomState, because the reference evaluator uses that. The same seed gives the same numbers in both. */
#include "kernel/kernel.h"

#include <math.h>
#include <time.h>

enum { N = 624, M = 397 };

void onxi_random_seed(onxi_random *r, uint32_t seed)
{
    r->state[0] = seed;
    for (uint32_t i = 1; i < N; i++)
        r->state[i] = 1812433253u * (r->state[i - 1] ^ r->state[i - 1] >> 30) + i;
    r->next = N;
    r->has_normal = false;
}

void onxi_random_any(onxi_random *r, const void *place)
{
    struct timespec now = { 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t mixed = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)place << 16) *
                     UINT64_C(0x9e3779b97f4a7c15);
    onxi_random_seed(r, (uint32_t)(mixed >> 32));
}

static uint32_t twist(uint32_t high, uint32_t low)
{
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
}

static void refill(onxi_random *r)
{
    uint32_t *s = r->state;
    for (uint32_t i = 0; i < N; i++)
        s[i] = s[(i + M) % N] ^ twist(s[i], s[(i + 1) % N]);
    r->next = 0;
}

static uint32_t next_word(onxi_random *r)
{
    if (r->next == N)
        refill(r);
    uint32_t y = r->state[r->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

double onxi_random_uniform(onxi_random *r)
{
    uint32_t high = next_word(r) >> 5, low = next_word(r) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

/* Marsaglia's polar method; the second number of a pair is returned first. */
double onxi_random_normal(onxi_random *r)
{
    if (r->has_normal) {
        r->has_normal = false;
        return r->normal;
    }
    double x, y, square;
    do {
        x = 2 * onxi_random_uniform(r) - 1;
        y = 2 * onxi_random_uniform(r) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double by = sqrt(-2 * log(square) / square);
    r->has_normal = true;
    r->normal = by * x;
    return by * y;
}
