/* steps.h - addresses of rows that are at equal distances, for loops that go along all of them at once. */
#ifndef ONXI_KERNEL_SIMD_STEPS_H
#define ONXI_KERNEL_SIMD_STEPS_H

#include "kernel/simd/tile.h" /* UNROLL */

/* Nine rows share a base. The multiples of the distance are opaque to the compiler, which
 * otherwise keeps an address for each row, and registers run out. */
enum { ROW_SHARE = 9 };
typedef struct row_steps {
    uint64_t one, three, five, seven; /* times the distance in bytes */
} row_steps;
#define ROW_OPAQUE(x) __asm__("" : "+r"(x))

__attribute__((always_inline)) static inline row_steps row_steps_of(uint64_t elements)
{
    row_steps s = { .one = elements * sizeof(float) };
    s.three = 3 * s.one;
    s.five = 5 * s.one;
    s.seven = 7 * s.one;
    return s;
}

/* A row of the nine that share a base. */
__attribute__((always_inline)) static inline const float *row_at(const char *base, const row_steps *s, int i)
{
    const uint64_t times[ROW_SHARE] = { 0,       s->one,       2 * s->one, s->three,  4 * s->one,
                                        s->five, 2 * s->three, s->seven,   8 * s->one };
    return (const float *)(base + times[i]);
}

/* Sets the bases of the rows, `offset` elements from others that are nine rows apart. */
__attribute__((always_inline)) static inline void row_bases(const char **to, const float *from, const row_steps *s,
                                                            const int rows)
{
    UNROLL
    for (int i = 0; i < rows; i += ROW_SHARE)
        to[i / ROW_SHARE] = (const char *)from + (uint64_t)i * s->one;
}

#define ROW_AT(bases, i, steps) row_at(bases[(i) / ROW_SHARE], steps, (i) % ROW_SHARE)

#endif
