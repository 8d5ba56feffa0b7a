/* topk.c - TopK for small k, of all plain types. Elements become unsigned keys; the first in order has the least key.
 * The least key of each of many groups is found by vectors. The k-th of these is a bound: at least k elements are no
 * greater, and few others are. Only elements within the bound are sorted. Of adjacent lines, each lane of a
 * vector has the first k of one line in order: an element moves down past those that come after it. */
#include "kernel/core/topk.h"
#include "kernel/simd/wide.h"

#ifdef __wasm__
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_topk)[] = { { 0 } };
#else

/* Keys computed at a time, keys tested together; most candidates that are sorted. There are at least four times k
 * groups, so that few elements are within the bound by chance. */
enum { STRETCH = 256, GLANCE = 32, MOST = 512 };

#define KEYS(name, T, K, EXPR)                                                                                         \
    static void name##_keys(const void *px, uint64_t first, uint64_t n, bool largest, void *pkeys)                     \
    {                                                                                                                  \
        const T *x = (const T *)px + first;                                                                            \
        const K flip = largest ? (K) ~(K)0 : 0;                                                                        \
        K *keys = (K *)pkeys;                                                                                          \
        for (uint64_t i = 0; i < n; i++) {                                                                             \
            const K v = (K)x[i];                                                                                       \
            keys[i] = (K)(EXPR) ^ flip;                                                                                \
        }                                                                                                              \
    }
/* The key of a float, from its bits: both zeros are equal, all NaN are equal and the greatest. */
#define FLOAT_KEY(K, sign, infinity)                                                                                   \
    (v & ((K)(sign)-1)) > (K)(infinity) ? ~(K)0 : v &(K)(sign) ? (K)(sign) - (v & ((K)(sign)-1)) : (K)(sign) + v
KEYS(FLOAT, uint32_t, uint32_t, FLOAT_KEY(uint32_t, 0x80000000u, 0x7f800000u))
KEYS(FLOAT16, uint16_t, uint32_t, FLOAT_KEY(uint32_t, 0x8000u, 0x7c00u))
KEYS(BFLOAT16, uint16_t, uint32_t, FLOAT_KEY(uint32_t, 0x8000u, 0x7f80u))
KEYS(DOUBLE, uint64_t, uint64_t, FLOAT_KEY(uint64_t, UINT64_C(1) << 63, UINT64_C(0x7ff0000000000000)))
KEYS(INT8, int8_t, uint32_t, v ^ 0x80000000u)
KEYS(INT16, int16_t, uint32_t, v ^ 0x80000000u)
KEYS(INT32, int32_t, uint32_t, v ^ 0x80000000u)
KEYS(INT64, int64_t, uint64_t, v ^ UINT64_C(1) << 63)
KEYS(UINT8, uint8_t, uint32_t, v)
KEYS(UINT16, uint16_t, uint32_t, v)
KEYS(UINT32, uint32_t, uint32_t, v)
KEYS(UINT64, uint64_t, uint64_t, v)

typedef void (*keys_of)(const void *x, uint64_t first, uint64_t n, bool largest, void *keys);
#define ENTRY(d) [ONX_##d] = d##_keys
static const keys_of keys[ONX_DTYPE_COUNT] = { ENTRY(FLOAT), ENTRY(FLOAT16), ENTRY(BFLOAT16), ENTRY(DOUBLE),
                                               ENTRY(INT8),  ENTRY(INT16),   ENTRY(INT32),    ENTRY(INT64),
                                               ENTRY(UINT8), ENTRY(UINT16),  ENTRY(UINT32),   ENTRY(UINT64) };

/* Functions for keys of type K. few_K is onxi_topk_few. */
#define FEW(K)                                                                                                         \
    /* Inserts `key` among the `count` least so far, of which k are kept; after equal keys. */                         \
    static inline uint64_t put_##K(K *least, uint64_t *places, uint64_t count, uint64_t k, K key, uint64_t place)      \
    {                                                                                                                  \
        if (count == k && key >= least[k - 1])                                                                         \
            return count;                                                                                              \
        uint64_t at = count < k ? count : k - 1;                                                                       \
        for (; at && least[at - 1] > key; at--) {                                                                      \
            least[at] = least[at - 1];                                                                                 \
            places[at] = places[at - 1];                                                                               \
        }                                                                                                              \
        least[at] = key;                                                                                               \
        places[at] = place;                                                                                            \
        return count < k ? count + 1 : k;                                                                              \
    }                                                                                                                  \
    /* A bound that is at least the k-th key of the line. */                                                           \
    static K bound_##K(keys_of of, const void *x, uint64_t length, uint64_t k, bool largest, uint64_t groups,          \
                       onxi_pace *pace)                                                                                \
    {                                                                                                                  \
        K best[STRETCH], next[STRETCH], least[ONXI_TOPK_FEW];                                                          \
        uint64_t places[ONXI_TOPK_FEW], count = 0;                                                                     \
        of(x, 0, STRETCH, largest, best);                                                                              \
        for (uint64_t first = STRETCH, n; first < length && !onxi_pace_stops(pace, STRETCH); first += n) {             \
            n = length - first < STRETCH ? length - first : STRETCH;                                                   \
            of(x, first, n, largest, next);                                                                            \
            for (uint64_t i = 0; i < n; i++)                                                                           \
                best[i] = next[i] < best[i] ? next[i] : best[i];                                                       \
        }                                                                                                              \
        for (uint64_t from = groups; from < STRETCH; from += groups)                                                   \
            for (uint64_t i = 0; i < groups; i++)                                                                      \
                best[i] = best[from + i] < best[i] ? best[from + i] : best[i];                                         \
        for (uint64_t i = 0; i < groups; i++)                                                                          \
            count = put_##K(least, places, count, k, best[i], i);                                                      \
        return least[k - 1];                                                                                           \
    }                                                                                                                  \
    static bool few_##K(keys_of of, const void *x, uint64_t length, uint64_t k, bool largest, uint64_t *indices,       \
                        onxi_pace *pace)                                                                               \
    {                                                                                                                  \
        K limit = bound_##K(of, x, length, k, largest, k <= 4 ? 16 : k <= 16 ? 64 : STRETCH, pace);                    \
        K next[STRETCH], least[ONXI_TOPK_FEW];                                                                         \
        uint64_t count = 0, seen = 0;                                                                                  \
        for (uint64_t first = 0, n; first < length; first += n) {                                                      \
            if (onxi_pace_stops(pace, STRETCH))                                                                        \
                return false;                                                                                          \
            n = length - first < STRETCH ? length - first : STRETCH;                                                   \
            of(x, first, n, largest, next);                                                                            \
            for (uint64_t part = 0, end; part < n; part = end) {                                                       \
                int any = 0;                                                                                           \
                end = n - part < GLANCE ? n : part + GLANCE;                                                           \
                for (uint64_t i = part; i < end; i++)                                                                  \
                    any |= next[i] <= limit;                                                                           \
                for (uint64_t i = part; any && i < end; i++)                                                           \
                    if (next[i] <= limit) {                                                                            \
                        if (seen++ == MOST)                                                                            \
                            return false;                                                                              \
                        count = put_##K(least, indices, count, k, next[i], first + i);                                 \
                        if (count == k && least[k - 1] == 0)                                                           \
                            return true;                                                                               \
                        if (count == k) /* keys equal to the last one come too late */                                 \
                            limit = least[k - 1] - 1;                                                                  \
                    }                                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        return true;                                                                                                   \
    }
FEW(uint32_t)
FEW(uint64_t)

static bool few(int dtype, const void *line, uint64_t length, uint64_t k, bool largest, uint64_t *indices,
                onxi_pace *pace)
{
    return onx_dtype_bits(dtype) == 64 ? few_uint64_t(keys[dtype], line, length, k, largest, indices, pace)
                                       : few_uint32_t(keys[dtype], line, length, k, largest, indices, pace);
}

/* ---- adjacent lines ---- */

typedef uint32_t narrow_keys __attribute__((vector_size(VD_LANES * 4)));
typedef int64_t state __attribute__((vector_size(VD_LANES * 8), aligned(8)));

/* Keys of up to 32 bits and indices in one signed integer. Rank r of lines g * VD_LANES and following is at
 * first[g * k + r]. */
static void brief_abreast(const onxi_topk_lines *q, state *first)
{
    const uint64_t k = q->k, groups = (q->count + VD_LANES - 1) / VD_LANES;
    uint32_t of_row[ONXI_TOPK_ABREAST] = { 0 };
    for (uint64_t i = 0; i < groups * k; i++)
        first[i] = (vl){ 0 } + INT64_MAX;
    for (uint64_t i = 0; i < q->length && !onxi_pace_stops(q->pace, 8 + groups * (2 + k)); i++) {
        keys[q->dtype](q->x, i * q->inner, q->count, q->largest, of_row);
        for (uint64_t g = 0; g < groups; g++) {
            narrow_keys some;
            memcpy(&some, of_row + g * VD_LANES, sizeof some);
            vl v = (vl)(__builtin_convertvector(some ^ 0x80000000u, vul) << 32 | i);
            state *const at = first + g * k;
            if (k > 1 && !vl_any(v < (vl)at[k - 1]))
                continue;
            for (uint64_t r = 0; r < k; r++) {
                const vl other = at[r];
                at[r] = vl_least(v, other);
                v = vl_most(v, other);
            }
        }
    }
}

/* Keys of 64 bits, and apart from them, after those of all groups, indices. Equal keys stay in the order in which they
 * came, so what moved once moves on. */
static void wide_abreast(const onxi_topk_lines *q, state *first)
{
    const uint64_t k = q->k, groups = (q->count + VD_LANES - 1) / VD_LANES;
    uint64_t of_row[ONXI_TOPK_ABREAST] = { 0 };
    for (uint64_t i = 0; i < groups * k; i++) {
        first[i] = (vl){ 0 } + INT64_MAX;
        first[groups * k + i] = (vl){ 0 };
    }
    for (uint64_t i = 0; i < q->length && !onxi_pace_stops(q->pace, 8 + groups * (2 + k)); i++) {
        keys[q->dtype](q->x, i * q->inner, q->count, q->largest, of_row);
        for (uint64_t g = 0; g < groups; g++) {
            vul some;
            memcpy(&some, of_row + g * VD_LANES, sizeof some);
            vl v = (vl)(some ^ UINT64_C(1) << 63), index = (vl){ 0 } + (int64_t)i, moves = { 0 };
            state *const at = first + g * k, *const indices = at + groups * k;
            if (i >= k && !vl_any(v < (vl)at[k - 1]))
                continue;
            for (uint64_t r = 0; r < k; r++) {
                const vl other = at[r], other_index = indices[r];
                moves |= r < i ? v < other : ~(vl){ 0 }; /* from rank i on there are no elements yet */
                at[r] = vl_select(moves, v, other);
                indices[r] = vl_select(moves, index, other_index);
                v = vl_select(moves, other, v);
                index = vl_select(moves, other_index, index);
            }
        }
    }
}

static void abreast(const onxi_topk_lines *q, void *room, uint64_t *indices)
{
    const bool wide = onx_dtype_bits(q->dtype) == 64;
    const uint64_t groups = (q->count + VD_LANES - 1) / VD_LANES;
    const char *from = (const char *)room + (wide ? groups * q->k * sizeof(vl) : 0);
    (wide ? wide_abreast : brief_abreast)(q, room);
    if (onxi_pace_stops(q->pace, 0))
        return;
    for (uint64_t r = 0; r < q->k; r++)
        for (uint64_t c = 0; c < q->count; c++) {
            uint64_t v;
            memcpy(&v, from + (c / VD_LANES * q->k + r) * sizeof(vl) + c % VD_LANES * sizeof v, sizeof v);
            indices[r * q->count + c] = wide ? v : (uint32_t)v;
        }
}

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_topk)[] = { { .op = "TopK",
                                                              .since = 1,
                                                              .dtypes = ONXI_NUMBERS,
                                                              .preference = 1,
                                                              .isa = ONXI_LEVEL,
                                                              .variant = ONXI_VARIANT,
                                                              .body = &(const onxi_topk_body){ few, abreast },
                                                              .prepare = onxi_topk_prepare,
                                                              .run = onxi_topk_run },
                                                            { 0 } };
#endif
