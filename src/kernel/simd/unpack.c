/* unpack.c - converts low-bit integers to floats. */
#include "kernel/core/unpack.h"
#include "kernel/simd/simd.h"

/* Looks up the table entries given by the low four bits of each lane. */
typedef struct table_of {
#if ONXI_LANES == 16 && defined(__AVX512F__)
    __m512 all;
#elif ONXI_LANES == 8 && defined(__AVX2__)
    __m256 low, high;
#else
    const float *all;
#endif
} table_of;

static inline table_of table_at(const float *table)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (table_of){ _mm512_loadu_ps(table) };
#elif ONXI_LANES == 8 && defined(__AVX2__)
    return (table_of){ _mm256_loadu_ps(table), _mm256_loadu_ps(table + 8) };
#else
    return (table_of){ table };
#endif
}

static inline onxi_vf entries(const table_of *t, onxi_vu of)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vf)_mm512_permutexvar_ps((__m512i)of, t->all);
#elif ONXI_LANES == 8 && defined(__AVX2__)
    const __m256 low = _mm256_permutevar8x32_ps(t->low, (__m256i)of),
                 high = _mm256_permutevar8x32_ps(t->high, (__m256i)of);
    return (onxi_vf)_mm256_blendv_ps(low, high, (__m256)(of << 28)); /* selected by bit 3 */
#else
    onxi_vf v;
    for (int i = 0; i < ONXI_LANES; i++)
        v[i] = t->all[of[i] & 15];
    return v;
#endif
}

static inline onxi_vu lanes_of(const uint8_t *x)
{
    typedef uint8_t line __attribute__((vector_size(ONXI_LANES)));
    line v;
    memcpy(&v, x, sizeof v);
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vu)_mm512_cvtepu8_epi32((__m128i)v);
#elif ONXI_LANES == 8 && defined(__AVX2__)
    __m128i low = _mm_setzero_si128();
    memcpy(&low, &v, sizeof v);
    return (onxi_vu)_mm256_cvtepu8_epi32(low);
#else
    return __builtin_convertvector(v, onxi_vu);
#endif
}

static void look_up(const uint8_t *bytes, uint64_t n, bool high, const float *table, float *out)
{
    const table_of t = table_at(table);
    const unsigned first = high ? 4 : 0;
    uint64_t i = 0;
    for (; i + 2 * ONXI_LANES <= n; i += 2 * ONXI_LANES) {
        const onxi_vu both = lanes_of(bytes + i / 2);
        const onxi_vf a = entries(&t, both >> first & 15), b = entries(&t, both >> (4 - first) & 15);
        vf_store(out + i, __builtin_shufflevector(a, b, ONXI_LOW));
        vf_store(out + i + ONXI_LANES, __builtin_shufflevector(a, b, ONXI_HIGH));
    }
    for (; i < n; i++)
        out[i] = table[bytes[i / 2] >> ((i % 2) ^ high ? 4 : 0) & 15];
}

static void bytes(const uint8_t *x, uint64_t n, float zero, float scale, float *out)
{
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
        const onxi_vf v = __builtin_convertvector((onxi_vi)lanes_of(x + i), onxi_vf);
        vf_store(out + i, (v - zero) * scale);
    }
    for (; i < n; i++)
        out[i] = ((float)x[i] - zero) * scale;
}

static inline onxi_vf nibbles_of(onxi_vu x, int raised)
{
    return __builtin_convertvector(((onxi_vi)(x & 15) ^ raised) - raised, onxi_vf);
}

static void nibbles(const uint8_t *x, uint64_t n, int raised, float zero, float scale, float *out)
{
    uint64_t i = 0;
    for (; i + 2 * ONXI_LANES <= n; i += 2 * ONXI_LANES) {
        const onxi_vu both = lanes_of(x + i / 2);
        const onxi_vf a = (nibbles_of(both, raised) - zero) * scale, b = (nibbles_of(both >> 4, raised) - zero) * scale;
        vf_store(out + i, __builtin_shufflevector(a, b, ONXI_LOW));
        vf_store(out + i + ONXI_LANES, __builtin_shufflevector(a, b, ONXI_HIGH));
    }
    for (; i < n; i++)
        out[i] = ((float)(((x[i / 2] >> i % 2 * 4 & 15) ^ raised) - raised) - zero) * scale;
}

static void scale(float *restrict x, uint64_t n, const int32_t *restrict of, const float *restrict zeros,
                  const float *restrict scales)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = (x[i] - zeros[of[i]]) * scales[of[i]];
}

const onxi_unpack_loops ONXI_LEVELED(onxi_unpack_loops) = { look_up, bytes, nibbles, scale };
