/* distance.c - distances of all pairs of vectors, by direct sums of squared differences: unlike the identity with the
 * product of both matrices, they lose no digits where vectors are close to each other and far from 0. */
#include "kernel/core/distance.h"
#include "kernel/simd/simd.h"

#include <math.h>

#ifndef __wasm__ /* browsers run the function body */

/* The vectors on the left whose sums stay in registers, and those on the right, which are interleaved in two
 * registers. */
#define ROWS    (ONXI_LANES == 16 ? 8 : 4)
#define WIDE(T) (2 * ONXI_LANES * 4 / sizeof(T))

/* T##_turn: element k of vector r goes to out[k * WIDE(T) + r]; vectors beyond `count` are zeros.
 * T##_tile: adds the squared differences of n elements of `rows` vectors on the left, a constant at each call. */
#define TILE(T)                                                                                                        \
    typedef T T##_vector __attribute__((vector_size(ONXI_LANES * 4)));                                                 \
    static inline T##_vector T##_load(const T *p)                                                                      \
    {                                                                                                                  \
        T##_vector v;                                                                                                  \
        memcpy(&v, p, sizeof v);                                                                                       \
        return v;                                                                                                      \
    }                                                                                                                  \
    static void T##_turn(const T *from, uint64_t count, uint64_t step, uint64_t n, T *out)                             \
    {                                                                                                                  \
        uint64_t k = 0;                                                                                                \
        for (; sizeof(T) == sizeof(float) && count == WIDE(T) && k + ONXI_LANES <= n; k += ONXI_LANES)                 \
            for (uint64_t r = 0; r < WIDE(T); r += ONXI_LANES)                                                         \
                vf_turn((const char *)(from + r * step + k), step * sizeof(T),                                         \
                        (float *)(void *)(out + k * WIDE(T) + r), WIDE(T));                                            \
        for (; k < n; k++)                                                                                             \
            for (uint64_t r = 0; r < WIDE(T); r++)                                                                     \
                out[k * WIDE(T) + r] = r < count ? from[r * step + k] : 0;                                             \
    }                                                                                                                  \
    __attribute__((always_inline)) static inline void T##_tile(const T *left, uint64_t step, const T *right,           \
                                                               uint64_t n, const unsigned rows, T *sums)               \
    {                                                                                                                  \
        T##_vector sum[ROWS][2];                                                                                       \
        for (unsigned i = 0; i < rows; i++)                                                                            \
            sum[i][0] = sum[i][1] = (T##_vector){ 0 };                                                                 \
        for (uint64_t k = 0; k < n; k++, right += WIDE(T)) {                                                           \
            const T##_vector a = T##_load(right), b = T##_load(right + WIDE(T) / 2);                                   \
            for (unsigned i = 0; i < rows; i++) {                                                                      \
                const T x = left[i * step + k];                                                                        \
                const T##_vector apart = a - x, other = b - x;                                                         \
                sum[i][0] += apart * apart;                                                                            \
                sum[i][1] += other * other;                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        for (unsigned i = 0; i < 2 * rows; i++) {                                                                      \
            T *to = sums + i * WIDE(T) / 2;                                                                            \
            const T##_vector all = T##_load(to) + sum[i / 2][i % 2];                                                   \
            memcpy(to, &all, sizeof all);                                                                              \
        }                                                                                                              \
    }

#define DISTANCES(T, ROOT)                                                                                             \
    TILE(T)                                                                                                            \
    static void T##_add(const T *left, uint64_t count, uint64_t step, const T *right, uint64_t n, T *sums)             \
    {                                                                                                                  \
        for (; count >= ROWS; count -= ROWS, left += ROWS * step, sums += ROWS * WIDE(T))                              \
            T##_tile(left, step, right, n, ROWS, sums);                                                                \
        for (; count >= 2; count -= 2, left += 2 * step, sums += 2 * WIDE(T))                                          \
            T##_tile(left, step, right, n, 2, sums);                                                                   \
        if (count)                                                                                                     \
            T##_tile(left, step, right, n, 1, sums);                                                                   \
    }                                                                                                                  \
    static void T##_finish(const onxi_distances *d, T *sums, uint64_t count, T *out)                                   \
    {                                                                                                                  \
        for (uint64_t i = 0; i < d->left_count; i++, sums += WIDE(T), out += d->left_step) {                           \
            for (uint64_t r = 0; d->root && r < WIDE(T); r++)                                                          \
                sums[r] = ROOT(sums[r]);                                                                               \
            if (d->right_step == 1)                                                                                    \
                memcpy(out, sums, (size_t)count * sizeof(T));                                                          \
            for (uint64_t r = 0; d->right_step != 1 && r < count; r++)                                                 \
                out[r * d->right_step] = sums[r];                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void T##_distances(const onxi_distances *d)                                                                 \
    {                                                                                                                  \
        T *right = d->space, *sums = right + ONXI_DISTANCE_DEPTH * WIDE(T);                                            \
        for (uint64_t j = 0; j < d->right_count; j += WIDE(T)) {                                                       \
            const uint64_t count = d->right_count - j < WIDE(T) ? d->right_count - j : WIDE(T);                        \
            memset(sums, 0, (size_t)d->left_count *WIDE(T) * sizeof(T));                                               \
            for (uint64_t k = 0, n; k < d->size; k += n) {                                                             \
                n = d->size - k < ONXI_DISTANCE_DEPTH ? d->size - k : ONXI_DISTANCE_DEPTH;                             \
                T##_turn((const T *)d->right + j * d->size + k, count, d->size, n, right);                             \
                T##_add((const T *)d->left + k, d->left_count, d->size, right, n, sums);                               \
            }                                                                                                          \
            T##_finish(d, sums, count, (T *)d->out + j * d->right_step);                                               \
        }                                                                                                              \
    }

DISTANCES(float, sqrtf)
DISTANCES(double, sqrt)

const onxi_distance_loops ONXI_LEVELED(onxi_distance_loops) = { float_distances, double_distances };
#endif
