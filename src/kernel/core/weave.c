/* weave.c - rows of a few elements from as many lines, as DepthToSpace and permutations of short axes have them, in
 * loops that compilers vectorize. */
#include "kernel/core/move.h"

#if ONXI_PLATFORM_ROOMY
/* Rows of at most ONXI_MOVE_WOVEN elements, from as many lines: element k of each row is from line k. And a row of
 * elements that are every second one. */
#define WEAVE(T, name)                                                                                                 \
    static void weave_##name(const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)                  \
    {                                                                                                                  \
        const T *restrict a = from, *restrict b = a + step;                                                            \
        T *restrict y = to;                                                                                            \
        for (uint64_t r = 0; count == 2 && r < rows; r++) {                                                            \
            y[2 * r] = a[r];                                                                                           \
            y[2 * r + 1] = b[r];                                                                                       \
        }                                                                                                              \
        for (uint64_t k = 0; count != 2 && k < count; k++)                                                             \
            for (uint64_t r = 0; r < rows; r++)                                                                        \
                y[r * count + k] = a[(int64_t)k * step + (int64_t)r];                                                  \
    }                                                                                                                  \
    static void halve_##name(const void *from, uint64_t count, void *to)                                               \
    {                                                                                                                  \
        const T *restrict x = from;                                                                                    \
        T *restrict y = to;                                                                                            \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            y[i] = x[2 * i];                                                                                           \
    }
WEAVE(uint8_t, 1)
WEAVE(uint16_t, 2)
WEAVE(uint32_t, 4)
WEAVE(uint64_t, 8)

/* ---- pixels of a few elements, taken apart ---- */

#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW_4   0, 4, 1, 5
#define HIGH_4  2, 6, 3, 7

/* Rows of `count` elements, of which pixels of as many elements as there are rows consist. A block of N pixels is a
 * vector for each row. Interleaving the first half of all its elements with the second one moves element i to
 * 2 * i modulo their number less one; when that has been done log2(N) times, element p * rows + r is at r * N + p. */
#define TAKE_APART(T, N)                                                                                               \
    typedef T vector_of_##N __attribute__((vector_size(16)));                                                          \
    static inline vector_of_##N lower_##N(vector_of_##N v, unsigned half)                                              \
    {                                                                                                                  \
        const sixteen_bytes both = (sixteen_bytes)v;                                                                   \
        return half % 2 ? (vector_of_##N)__builtin_shufflevector(both, both, 1, 1) : v;                                \
    }                                                                                                                  \
    __attribute__((always_inline)) static inline void mix_##N(vector_of_##N *v, const unsigned rows)                   \
    {                                                                                                                  \
        vector_of_##N next[ONXI_MOVE_PLANES];                                                                          \
        for (unsigned r = 0; r < rows; r++) { /* halves r and rows + r of the block */                                 \
            const vector_of_##N a = v[r / 2], b = v[(rows + r) / 2];                                                   \
            next[r] = r % 2 && (rows + r) % 2                                                                          \
                          ? __builtin_shufflevector(a, b, HIGH_##N)                                                    \
                          : __builtin_shufflevector(lower_##N(a, r), lower_##N(b, rows + r), LOW_##N);                 \
        }                                                                                                              \
        for (unsigned r = 0; r < rows; r++)                                                                            \
            v[r] = next[r];                                                                                            \
    }                                                                                                                  \
    __attribute__((always_inline)) static inline void apart_##N(const T *x, T *y, uint64_t count, uint64_t pitch,      \
                                                                const unsigned rows)                                   \
    {                                                                                                                  \
        uint64_t i = 0;                                                                                                \
        for (; i + (N) <= count; i += (N), x += (uint64_t)(N)*rows) {                                                  \
            vector_of_##N v[ONXI_MOVE_PLANES];                                                                         \
            for (unsigned r = 0; r < rows; r++)                                                                        \
                memcpy(&v[r], x + r * (N), sizeof *v);                                                                 \
            mix_##N(v, rows); /* not a loop, which compilers would keep in memory */                                   \
            mix_##N(v, rows);                                                                                          \
            if ((N) > 4)                                                                                               \
                mix_##N(v, rows);                                                                                      \
            if ((N) > 8)                                                                                               \
                mix_##N(v, rows);                                                                                      \
            for (unsigned r = 0; r < rows; r++)                                                                        \
                memcpy(y + r * pitch + i, &v[r], sizeof *v);                                                           \
        }                                                                                                              \
        for (; i < count; i++, x += rows)                                                                              \
            for (unsigned r = 0; r < rows; r++)                                                                        \
                y[r * pitch + i] = x[r];                                                                               \
    }                                                                                                                  \
    /* The reverse for pixels of four elements, which takes two times. Returns how many pixels are done. */            \
    static uint64_t four_##N(const T *x, int64_t step, uint64_t count, T *y)                                           \
    {                                                                                                                  \
        enum { ROWS = 4 };                                                                                             \
        uint64_t i = 0;                                                                                                \
        for (; i + (N) <= count; i += (N)) {                                                                           \
            vector_of_##N v[ONXI_MOVE_PLANES];                                                                         \
            for (int64_t r = 0; r < ROWS; r++)                                                                         \
                memcpy(&v[r], x + r * step + (int64_t)i, sizeof *v);                                                   \
            mix_##N(v, ROWS);                                                                                          \
            mix_##N(v, ROWS);                                                                                          \
            memcpy(y + ROWS * i, v, ROWS * sizeof *v);                                                                 \
        }                                                                                                              \
        return i;                                                                                                      \
    }                                                                                                                  \
    static void take_apart_##N(const void *x, void *y, uint64_t count, uint64_t pitch, uint64_t rows)                  \
    {                                                                                                                  \
        switch (rows) {                                                                                                \
        case 2:                                                                                                        \
            apart_##N(x, y, count, pitch, 2);                                                                          \
            break;                                                                                                     \
        case 3:                                                                                                        \
            apart_##N(x, y, count, pitch, 3);                                                                          \
            break;                                                                                                     \
        case 4:                                                                                                        \
            apart_##N(x, y, count, pitch, 4);                                                                          \
            break;                                                                                                     \
        case 5:                                                                                                        \
            apart_##N(x, y, count, pitch, 5);                                                                          \
            break;                                                                                                     \
        case 6:                                                                                                        \
            apart_##N(x, y, count, pitch, 6);                                                                          \
            break;                                                                                                     \
        case 7:                                                                                                        \
            apart_##N(x, y, count, pitch, 7);                                                                          \
            break;                                                                                                     \
        default:                                                                                                       \
            apart_##N(x, y, count, pitch, 8);                                                                          \
            break;                                                                                                     \
        }                                                                                                              \
    }
typedef uint64_t sixteen_bytes __attribute__((vector_size(16)));
TAKE_APART(uint8_t, 16)
TAKE_APART(uint16_t, 8)
TAKE_APART(uint32_t, 4)

bool onxi_move_planes(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count, void *to,
                      uint64_t pitch)
{
    enum { LEAST = 16 };
    if (rows < 2 || rows > ONXI_MOVE_PLANES || step != (int64_t)rows || count < LEAST)
        return false;
    if (size != 1 && size != 2 && size != 4)
        return false;
    (size == 1 ? take_apart_16 : size == 2 ? take_apart_8 : take_apart_4)(from, to, count, pitch, rows);
    return true;
}

bool onxi_move_woven(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)
{
    static void (*const weave[])(const void *, int64_t, uint64_t, uint64_t, void *) = { weave_1, weave_2, weave_4,
                                                                                        weave_8 };
    static void (*const halve[])(const void *, uint64_t, void *) = { halve_1, halve_2, halve_4, halve_8 };
    const unsigned width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    const bool weaves = rows > 1 && count > 1 && count <= ONXI_MOVE_WOVEN, halves = rows == 1 && step == 2;
    if (size > 8 || (!weaves && !halves))
        return false;
    if (weaves) {
        const uint64_t done = count != 4  ? 0
                              : size == 1 ? four_16(from, step, rows, to)
                              : size == 2 ? four_8(from, step, rows, to)
                              : size == 4 ? four_4(from, step, rows, to)
                                          : 0;
        weave[width]((const char *)from + done * size, step, rows - done, count, (char *)to + done * count * size);
    }
    if (halves)
        halve[width](from, count, to);
    return true;
}
#endif
