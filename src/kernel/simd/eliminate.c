/* eliminate.c - a step of Gauss-Jordan elimination. */
#include "kernel/core/inverse.h"
#include "kernel/simd/simd.h"

enum { WIDTH = ONXI_LANES / 2 };
typedef double vd __attribute__((vector_size(WIDTH * 8)));

/* x -= by * row */
static inline void take_out(double *x, const double *row, uint64_t n, double by)
{
    uint64_t k = 0;
    for (; k + WIDTH <= n; k += WIDTH) {
        vd a, b;
        memcpy(&a, x + k, sizeof a);
        memcpy(&b, row + k, sizeof b);
        a -= by * b;
        memcpy(x + k, &a, sizeof a);
    }
    for (; k < n; k++)
        x[k] -= by * row[k];
}

static void eliminate(double *a, uint64_t n, uint64_t c)
{
    for (uint64_t r = 0; r < n; r++) {
        const double by = a[r * n + c];
        if (r == c)
            continue;
        take_out(a + r * n, a + c * n, n, by);
        a[r * n + c] = 0 - by * a[c * n + c]; /* a number written before would delay the vector that it is part of */
    }
}

const onxi_inverse_loops ONXI_LEVELED(onxi_inverse_loops) = { eliminate };
