/* emulated_tiles.h - the AMX instructions in C, for builds with ONX_EMULATED_TILES. Files that use them are compiled
 * with this header included first, so that kernels and their tests run on CPUs without AMX. Their effect is defined by
 * Intel's manual (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). */
#ifndef ONX_EMULATED_TILES_H
#define ONX_EMULATED_TILES_H

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TILES = 8, TILE_LINES = 16, TILE_BYTES = 64, TILE_COLUMNS = TILE_BYTES / 4 };

typedef struct emulated_tiles {
    int configured;
    uint8_t of[TILES][TILE_LINES][TILE_BYTES];
} emulated_tiles;

static _Thread_local emulated_tiles tile_state;

/* The only form that kernels set up: all tiles have all lines. */
static inline void tiles_configure(const void *setup)
{
    const uint8_t *bytes = setup;
    for (int i = 0; i < TILES; i++)
        if (bytes[0] != 1 || bytes[16 + 2 * i] != TILE_BYTES || bytes[17 + 2 * i] || bytes[48 + i] != TILE_LINES)
            abort();
    memset(&tile_state, 0, sizeof tile_state);
    tile_state.configured = 1;
}

static inline void tiles_release(void)
{
    tile_state.configured = 0;
}

/* Without a configuration the processor raises an exception. */
static inline uint8_t (*tiles_at(int t))[TILE_BYTES]
{
    if (!tile_state.configured)
        abort();
    return tile_state.of[t];
}

static inline void tiles_load(int t, const void *from, uint64_t step)
{
    for (uint64_t i = 0; i < TILE_LINES; i++)
        memcpy(tiles_at(t)[i], (const char *)from + i * step, TILE_BYTES);
}

static inline void tiles_store(int t, void *to, uint64_t step)
{
    for (uint64_t i = 0; i < TILE_LINES; i++)
        memcpy((char *)to + i * step, tiles_at(t)[i], TILE_BYTES);
}

/* Numbers below the least normal one count as 0, also as results. */
static inline __m512 tiles_flush(__m512 x)
{
    const __mmask16 small = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(0x1p-126f), _CMP_LT_OQ);
    return _mm512_mask_and_ps(x, small, x, _mm512_set1_ps(-0.0f));
}

/* The low (0) or high (1) numbers of pairs. */
static inline __m512 tiles_half(__m512i pairs, int which)
{
    const __m512i high = _mm512_set1_epi32(-0x10000);
    return tiles_flush(_mm512_castsi512_ps(which ? _mm512_and_si512(pairs, high) : _mm512_slli_epi32(pairs, 16)));
}

static inline void tiles_multiply_halves(int c, int a, int b)
{
    uint8_t(*ta)[TILE_BYTES] = tiles_at(a), (*tb)[TILE_BYTES] = tiles_at(b), (*tc)[TILE_BYTES] = tiles_at(c);
    for (int m = 0; m < TILE_LINES; m++) {
        __m512 sum[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
        for (int k = 0; k < TILE_LINES; k++) {
            int32_t pair;
            memcpy(&pair, ta[m] + 4 * k, sizeof pair);
            const __m512i left = _mm512_set1_epi32(pair), right = _mm512_loadu_si512(tb[k]);
            for (int i = 0; i < 2; i++)
                sum[i] = tiles_flush(_mm512_fmadd_ps(tiles_half(left, i), tiles_half(right, i), sum[i]));
        }
        const __m512 all = tiles_flush(_mm512_add_ps(sum[0], sum[1]));
        _mm512_storeu_ps(tc[m], tiles_flush(_mm512_add_ps(tiles_flush(_mm512_loadu_ps(tc[m])), all)));
    }
}

static inline void tiles_multiply_bytes(int c, int a, int b, int a_is_signed)
{
    uint8_t(*ta)[TILE_BYTES] = tiles_at(a), (*tb)[TILE_BYTES] = tiles_at(b), (*tc)[TILE_BYTES] = tiles_at(c);
    for (int m = 0; m < TILE_LINES; m++)
        for (int n = 0; n < TILE_COLUMNS; n++) {
            uint32_t sum; /* wraps */
            memcpy(&sum, tc[m] + 4 * n, sizeof sum);
            for (int k = 0; k < TILE_BYTES; k++) {
                const int x = a_is_signed ? (int8_t)ta[m][k] : ta[m][k];
                sum += (uint32_t)(x * (int8_t)tb[k / 4][4 * n + k % 4]);
            }
            memcpy(tc[m] + 4 * n, &sum, sizeof sum);
        }
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbusd
#define _tile_loadconfig(setup)    tiles_configure(setup)
#define _tile_release()            tiles_release()
#define _tile_loadd(t, from, step) tiles_load(t, from, step)
#define _tile_stored(t, to, step)  tiles_store(t, to, step)
#define _tile_zero(t)              memset(tiles_at(t), 0, sizeof(uint8_t[TILE_LINES][TILE_BYTES]))
#define _tile_dpbf16ps(c, a, b)    tiles_multiply_halves(c, a, b)
#define _tile_dpbssd(c, a, b)      tiles_multiply_bytes(c, a, b, 1)
#define _tile_dpbusd(c, a, b)      tiles_multiply_bytes(c, a, b, 0)

#endif
