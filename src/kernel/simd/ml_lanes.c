/* ml_lanes.c - linear models and support vector machines, with a row of features in each SIMD lane. Elements are
 * doubles, as in the plain rows, because sums over hundreds of vectors would lose precision in float. */
#include "kernel/core/ml_lanes.h"
#include "kernel/simd/simd.h"

#include <math.h>

#ifndef __wasm__ /* browsers run the plain rows */

/* WIDTH: doubles per vector register; PARTS: registers for one element of all rows; LISTS: coefficient vectors per
 * tile, whose sums stay in registers. */
enum { WIDTH = ONXI_LANES / 2, PARTS = ONXI_ML_LANES / WIDTH, LISTS = ONXI_LANES == 16 ? 8 : ONXI_LANES == 8 ? 2 : 1 };
typedef double vd __attribute__((vector_size(WIDTH * 8)));
typedef int64_t vl __attribute__((vector_size(WIDTH * 8)));
typedef uint64_t vul __attribute__((vector_size(WIDTH * 8)));

static inline vd load(const double *p)
{
    vd v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(double *p, vd v)
{
    memcpy(p, &v, sizeof v);
}

static inline vd all(double x)
{
    return x - (vd){ 0 }; /* unlike x + 0, x - 0 keeps -0, so the compiler needs no instruction for it */
}

static inline vd choose(vl mask, vd yes, vd no)
{
    return (vd)((mask & (vl)yes) | (~mask & (vl)no));
}

/* ---- features ---- */

static void turn(const float *rows, uint64_t row_count, uint64_t columns, double *out)
{
    float block[ONXI_LANES * ONXI_ML_LANES];
    const bool wide = row_count == ONXI_ML_LANES && columns >= ONXI_LANES;
    for (uint64_t next = 0; wide && next < columns; next += ONXI_LANES) {
        const uint64_t c = columns - next < ONXI_LANES ? columns - ONXI_LANES : next; /* the last block may overlap */
        for (uint64_t r = 0; r < ONXI_ML_LANES; r += ONXI_LANES)
            vf_turn((const char *)(rows + r * columns + c), columns * sizeof *rows, block + r, ONXI_ML_LANES);
        for (uint64_t i = 0; i < ONXI_LANES * ONXI_ML_LANES; i++)
            out[c * ONXI_ML_LANES + i] = (double)block[i];
    }
    for (uint64_t c = 0; !wide && c < columns; c++)
        for (uint64_t r = 0; r < ONXI_ML_LANES; r++)
            out[c * ONXI_ML_LANES + r] = r < row_count ? (double)rows[r * columns + c] : 0;
}

/* ---- products ---- */

/* Accumulates one product (or squared difference) per row and per list, for `count` lists. */
__attribute__((always_inline)) static inline void add(const double *x, const double *lists, uint64_t n,
                                                      const unsigned count, const bool distance, vd sum[LISTS][PARTS])
{
    for (unsigned i = 0; i < count; i++) {
        const vd factor = all(lists[i * n]);
        for (unsigned v = 0; v < PARTS; v++) {
            const vd a = load(x + v * WIDTH), apart = a - factor;
            sum[i][v] += distance ? apart * apart : a * factor;
        }
    }
}

/* `count` and `distance` are constants at each call, so the compiler specializes the loop. If there are few sums,
 * elements at odd indices use a second set of accumulators, since each addition has to wait for the one before it. */
__attribute__((always_inline)) static inline void tile(const double *x, const double *lists, uint64_t n,
                                                       const unsigned count, const bool distance, double *out)
{
    const bool two = count * PARTS < 8;
    vd sum[LISTS][PARTS], other[LISTS][PARTS];
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < PARTS; v++) {
            sum[i][v] = load(out + i * ONXI_ML_LANES + v * WIDTH);
            other[i][v] = all(0);
        }
    uint64_t k = 0;
    for (; two && k + 2 <= n; k += 2) {
        add(x + k * ONXI_ML_LANES, lists + k, n, count, distance, sum);
        add(x + (k + 1) * ONXI_ML_LANES, lists + k + 1, n, count, distance, other);
    }
    for (; k < n; k++)
        add(x + k * ONXI_ML_LANES, lists + k, n, count, distance, sum);
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < PARTS; v++)
            store(out + i * ONXI_ML_LANES + v * WIDTH, two ? sum[i][v] + other[i][v] : sum[i][v]);
}

__attribute__((always_inline)) static inline void all_lists(const double *x, const double *lists, uint64_t n,
                                                            uint64_t count, const bool distance, double *out)
{
    for (; count >= LISTS; count -= LISTS, lists += LISTS * n, out += LISTS * ONXI_ML_LANES)
        tile(x, lists, n, LISTS, distance, out);
    if (LISTS > 4 && count >= 4) {
        tile(x, lists, n, LISTS > 4 ? 4 : 1, distance, out);
        count -= 4;
        lists += 4 * n;
        out += 4 * ONXI_ML_LANES;
    }
    if (LISTS > 2 && count >= 2) {
        tile(x, lists, n, LISTS > 2 ? 2 : 1, distance, out);
        count -= 2;
        lists += 2 * n;
        out += 2 * ONXI_ML_LANES;
    }
    if (count)
        tile(x, lists, n, 1, distance, out);
}

static void products(const double *x, const double *lists, uint64_t n, uint64_t count, double *out)
{
    all_lists(x, lists, n, count, false, out);
}

static void distances(const double *x, const double *lists, uint64_t n, uint64_t count, double *out)
{
    all_lists(x, lists, n, count, true, out);
}

/* ---- functions ---- */

/* e^x by a polynomial around the nearest multiple of ln 2; the error is at most 2 ulp. Results that would be denormal
 * are 0. */
static inline vd exp_of(vd x)
{
    static const double factors[] = { 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                      1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0,        1.0 };
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    const vl low = x<-708.0, high = x> 709.78, none = x != x;
    const vd u = choose(low | high | none, all(0), x), k = u * 1.4426950408889634 + magic;
    const vd n = k - magic, r = (u - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    vd y = all(1.0 / 479001600);
    for (unsigned i = 0; i < sizeof factors / sizeof *factors; i++)
        y = y * r + factors[i];
    const vd whole = (vd)((vul)y + (((vul)k - (vul)all(magic)) << 52));
    return choose(none, x, choose(low, all(0), choose(high, all((double)INFINITY), whole)));
}

static inline vd magnitude(vd x)
{
    return (vd)((vl)x & 0x7fffffffffffffff);
}

/* 1 / (1 + e^-x), without overflow. */
static inline vd logistic_of(vd x)
{
    const vd v = 1.0 / (1.0 + exp_of(-magnitude(x)));
    return choose(x < 0.0, 1.0 - v, v);
}

static inline vd tanh_of(vd x)
{
    const vd e = exp_of(magnitude(x) * -2.0), y = (1.0 - e) / (1.0 + e);
    return (vd)((vl)y | ((vl)x & INT64_MIN));
}

/* x^degree. The degree is an integer, usually a small one. */
static inline vd power_of(vd x, double degree)
{
    vd result = x;
    if (degree >= 1 && degree <= 8) {
        for (int i = 1; i < (int)degree; i++)
            result *= x;
        return result;
    }
    for (unsigned i = 0; i < WIDTH; i++)
        result[i] = pow(x[i], degree);
    return result;
}

static void curve(const onxi_ml_curve *c, double *x, uint64_t n)
{
    for (uint64_t i = 0; i < n * ONXI_ML_LANES && c->kind != ONXI_ML_LINEAR; i += WIDTH) {
        const vd v = load(x + i);
        store(x + i, c->kind == ONXI_ML_RBF    ? exp_of(v * -c->gamma)
                     : c->kind == ONXI_ML_POLY ? power_of(v * c->gamma + c->coef0, c->degree)
                                               : tanh_of(v * c->gamma + c->coef0));
    }
}

static void softmax(double *scores, uint64_t n)
{
    for (unsigned v = 0; v < ONXI_ML_LANES; v += WIDTH) {
        vd most = all(-(double)INFINITY), sum = all(0);
        for (uint64_t i = 0; i < n; i++) {
            const vd x = load(scores + i * ONXI_ML_LANES + v);
            most = choose((x > most) | (x != x), x, most);
        }
        for (uint64_t i = 0; i < n; i++) {
            const vd e = exp_of(load(scores + i * ONXI_ML_LANES + v) - most);
            store(scores + i * ONXI_ML_LANES + v, e);
            sum += e;
        }
        for (uint64_t i = 0; i < n; i++)
            store(scores + i * ONXI_ML_LANES + v, load(scores + i * ONXI_ML_LANES + v) / sum);
    }
}

static void argmax(const double *scores, uint64_t n, uint64_t *out)
{
    for (unsigned v = 0; v < ONXI_ML_LANES; v += WIDTH) {
        vd most = load(scores + v);
        vl best = { 0 };
        for (uint64_t i = 1; i < n; i++) {
            const vd x = load(scores + i * ONXI_ML_LANES + v);
            const vl more = (x > most) | ((x != x) & (most == most));
            most = choose(more, x, most);
            best = (more & (int64_t)i) | (~more & best);
        }
        memcpy(out + v, &best, sizeof best);
    }
}

static void logistic(double *scores, uint64_t n)
{
    for (uint64_t i = 0; i < n * ONXI_ML_LANES; i += WIDTH)
        store(scores + i, logistic_of(load(scores + i)));
}

const onxi_ml_loops ONXI_LEVELED(onxi_ml_loops) = { turn, products, distances, curve, softmax, logistic, argmax };
#endif
