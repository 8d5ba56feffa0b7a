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

bool onxi_move_woven(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count, void *to)
{
    static void (*const weave[])(const void *, int64_t, uint64_t, uint64_t, void *) = { weave_1, weave_2, weave_4,
                                                                                        weave_8 };
    static void (*const halve[])(const void *, uint64_t, void *) = { halve_1, halve_2, halve_4, halve_8 };
    const unsigned width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    const bool weaves = rows > 1 && count > 1 && count <= ONXI_MOVE_WOVEN, halves = rows == 1 && step == 2;
    if (size > 8 || (!weaves && !halves))
        return false;
    if (weaves)
        weave[width](from, step, rows, count, to);
    else
        halve[width](from, count, to);
    return true;
}
#endif
