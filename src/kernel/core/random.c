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

static inline uint32_t twist(uint32_t high, uint32_t low)
{
    const uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return y >> 1 ^ ((0u - (y & 1)) & 0x9908b0dfu);
}

/* In loops that the compiler can vectorize. */
static void refill(onxi_random *r)
{
    uint32_t *s = r->state;
    for (uint32_t i = 0; i < N - M; i++)
        s[i] = s[i + M] ^ twist(s[i], s[i + 1]);
    for (uint32_t i = N - M; i < N - 1; i++)
        s[i] = s[i + M - N] ^ twist(s[i], s[i + 1]);
    s[N - 1] = s[M - 1] ^ twist(s[N - 1], s[0]);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t y = s[i];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        r->words[i] = y ^ y >> 18;
    }
    r->next = 0;
}

static inline uint32_t next_word(onxi_random *r)
{
    if (r->next == N)
        refill(r);
    return r->words[r->next++];
}

static inline double uniform_of(uint32_t first, uint32_t second)
{
    return ((double)(first >> 5) * 67108864.0 + (double)(second >> 6)) / 9007199254740992.0;
}

static inline double next_uniform(onxi_random *r)
{
    const uint32_t first = next_word(r);
    return uniform_of(first, next_word(r));
}

double onxi_random_uniform(onxi_random *r)
{
    return next_uniform(r);
}

void onxi_random_uniforms(onxi_random *r, double *out, uint64_t count)
{
    for (uint64_t i = 0, n; i < count; i += n) {
        if (N - r->next < 2) { /* the words of a number may be of two fillings */
            out[i] = next_uniform(r);
            n = 1;
            continue;
        }
        const uint32_t *words = r->words + r->next;
        n = (N - r->next) / 2;
        n = n < count - i ? n : count - i;
        for (uint64_t k = 0; k < n; k++)
            out[i + k] = uniform_of(words[2 * k], words[2 * k + 1]);
        r->next += (uint32_t)(2 * n);
    }
}

/* Marsaglia's polar method: a point in the unit circle, and what its distance from the centre makes of it. */
static inline double next_point(onxi_random *r, double *x, double *y)
{
    double square;
    do {
        *x = 2 * next_uniform(r) - 1;
        *y = 2 * next_uniform(r) - 1;
        square = *x * *x + *y * *y;
    } while (square >= 1 || square == 0);
    return square;
}

static inline double scale_of(double square)
{
    return sqrt(-2 * log(square) / square);
}

/* The second number of a pair is returned first. */
double onxi_random_normal(onxi_random *r)
{
    if (r->has_normal) {
        r->has_normal = false;
        return r->normal;
    }
    double x, y;
    const double by = scale_of(next_point(r, &x, &y));
    r->has_normal = true;
    r->normal = by * x;
    return by * y;
}

void onxi_random_normals(onxi_random *r, double *out, uint64_t count)
{
    enum { PAIRS = 64 }; /* whose logarithms do not wait for each other */
    double square[PAIRS];
    uint64_t i = 0;
    if (count && r->has_normal)
        out[i++] = onxi_random_normal(r);
    for (uint64_t n; count - i > 1; i += 2 * n) {
        n = (count - i) / 2 < PAIRS ? (count - i) / 2 : PAIRS;
        for (uint64_t k = 0; k < n; k++)
            square[k] = next_point(r, &out[i + 2 * k + 1], &out[i + 2 * k]);
        for (uint64_t k = 0; k < n; k++) {
            const double by = scale_of(square[k]);
            out[i + 2 * k] *= by;
            out[i + 2 * k + 1] *= by;
        }
    }
    if (i < count)
        out[i] = onxi_random_normal(r);
}
