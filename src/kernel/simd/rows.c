/* rows.c - products of a few rows of 8-bit elements with constant 8-bit weights: four elements of a column are
 * adjacent, and are multiplied with four of a row by one instruction. */
#include "kernel/core/byte_rows.h"
#include "kernel/simd/round.h"

#ifndef __wasm__ /* browsers use the plain rows for operators that need this */

/* Adjacent elements of a column; vectors of columns per tile; rows multiplied together. */
enum { DEPTH = 4, VECTORS = ONXI_LANES == 16 ? 4 : 2, TILE = VECTORS * ONXI_LANES, ROWS = 4, LINE = TILE * DEPTH };

static uint64_t depth_of(uint64_t k)
{
    return (k + DEPTH - 1) / DEPTH;
}

static uint64_t tiles_of(uint64_t n)
{
    return (n + TILE - 1) / TILE;
}

/* ---- packing: tiles, then the sums of their columns ---- */

static bool size(uint64_t k, uint64_t n, uint64_t *out)
{
    uint64_t bytes;
    return k <= ONXI_BYTE_ROWS_MOST && n < UINT32_MAX &&
           onxi_mul_u64(tiles_of(n) * TILE, depth_of(k) * DEPTH, &bytes) &&
           onxi_add_u64(bytes, tiles_of(n) * TILE * sizeof(int32_t), out);
}

static int32_t *sums_of(const void *packed, uint64_t k, uint64_t n)
{
    return (int32_t *)(uintptr_t)((const char *)packed + tiles_of(n) * depth_of(k) * LINE);
}

static void pack(const uint8_t *w, uint64_t k, uint64_t n, bool is_unsigned, void *out)
{
    const uint8_t flip = is_unsigned ? 0x80 : 0;
    int32_t *sums = sums_of(out, k, n);
    uint8_t *to = out;
    memset(out, 0, tiles_of(n) * depth_of(k) * LINE);
    memset(sums, 0, tiles_of(n) * TILE * sizeof *sums);
    for (uint64_t first = 0; first < n; first += TILE, to += depth_of(k) * LINE) {
        const uint64_t width = n - first < TILE ? n - first : TILE;
        for (uint64_t i = 0; i < k; i++)
            for (uint64_t j = 0; j < width; j++) {
                const uint8_t byte = w[i * n + first + j] ^ flip;
                to[i / DEPTH * LINE + j * DEPTH + i % DEPTH] = byte;
                sums[first + j] += (int8_t)byte;
            }
    }
}

/* ---- products: sums of a vector of columns ---- */

#if ONXI_LEVEL >= 4 /* ONX_ISA_VNNI */
typedef __m512i columns;

static inline columns no_columns(void)
{
    return _mm512_setzero_si512();
}

/* With the intrinsic, gcc would copy each sum twice. */
static inline columns add_products(columns sum, uint32_t four, const uint8_t *w)
{
    const __m512i numbers = _mm512_loadu_si512(w), by = _mm512_set1_epi32((int)four);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(by), "v"(numbers));
    return sum;
}

static inline columns both(columns a, columns b)
{
    return _mm512_add_epi32(a, b);
}

static inline onxi_vi sums_at(columns sum)
{
    return (onxi_vi)sum;
}
#elif ONXI_LANES == 16 && defined(__AVX512BW__)
typedef struct columns {
    __m512i low, high; /* two sums per column */
} columns;

static inline columns no_columns(void)
{
    return (columns){ _mm512_setzero_si512(), _mm512_setzero_si512() };
}

static inline columns add_products(columns sum, uint32_t four, const uint8_t *w)
{
    const __m128i bytes = _mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)four));
    const __m512i by = _mm512_broadcastq_epi64(bytes);
    const __m512i low = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)w)),
                  high = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(w + 32)));
    return (columns){ _mm512_add_epi32(sum.low, _mm512_madd_epi16(low, by)),
                      _mm512_add_epi32(sum.high, _mm512_madd_epi16(high, by)) };
}

static inline columns both(columns a, columns b)
{
    return (columns){ _mm512_add_epi32(a.low, b.low), _mm512_add_epi32(a.high, b.high) };
}

static inline onxi_vi sums_at(columns sum)
{
    const onxi_vi a = (onxi_vi)sum.low, b = (onxi_vi)sum.high;
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#elif ONXI_LANES == 8 && defined(__AVX2__)
typedef struct columns {
    __m256i low, high; /* two sums of each column */
} columns;

static inline columns no_columns(void)
{
    return (columns){ _mm256_setzero_si256(), _mm256_setzero_si256() };
}

static inline columns add_products(columns sum, uint32_t four, const uint8_t *w)
{
    const __m128i bytes = _mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)four));
    const __m256i by = _mm256_broadcastq_epi64(bytes);
    const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)w)),
                  high = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(w + 16)));
    return (columns){ _mm256_add_epi32(sum.low, _mm256_madd_epi16(low, by)),
                      _mm256_add_epi32(sum.high, _mm256_madd_epi16(high, by)) };
}

static inline columns both(columns a, columns b)
{
    return (columns){ _mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high) };
}

static inline onxi_vi sums_at(columns sum)
{
    const onxi_vi a = (onxi_vi)sum.low, b = (onxi_vi)sum.high;
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
           __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
#else
typedef onxi_vi columns;

static inline columns no_columns(void)
{
    return (columns){ 0 };
}

static inline columns add_products(columns sum, uint32_t four, const uint8_t *w)
{
    for (int c = 0; c < ONXI_LANES; c++)
        for (int i = 0; i < DEPTH; i++)
            sum[c] += (int32_t)(four >> (8 * i) & 255) * (int8_t)w[c * DEPTH + i];
    return sum;
}

static inline columns both(columns a, columns b)
{
    return a + b;
}

static inline onxi_vi sums_at(columns sum)
{
    return sum;
}
#endif

static inline uint32_t four_at(const uint8_t *a)
{
    return a[0] | (uint32_t)a[1] << 8 | (uint32_t)a[2] << 16 | (uint32_t)a[3] << 24;
}

/* `rows` and `apart` are constants at each call: the number of rows, and of independent sums per row, which are added
 * at the end. */
__attribute__((always_inline)) static inline void tile(const onxi_byte_rows *p, const uint8_t *a, const uint8_t *w,
                                                       const unsigned rows, const unsigned apart,
                                                       onxi_vi (*out)[VECTORS])
{
    columns sum[ROWS][VECTORS];
    const uint64_t depth = depth_of(p->k);
    for (unsigned i = 0; i < rows * apart; i++)
        for (unsigned v = 0; v < VECTORS; v++)
            sum[i][v] = no_columns();
    uint64_t at = 0;
    for (; at + apart <= depth; at += apart)
        for (unsigned u = 0; u < apart; u++)
            for (unsigned i = 0; i < rows; i++) {
                const uint32_t four = four_at(a + i * p->pitch + (at + u) * DEPTH);
                for (unsigned v = 0; v < VECTORS; v++)
                    sum[u * rows + i][v] =
                        add_products(sum[u * rows + i][v], four, w + (at + u) * LINE + v * ONXI_LANES * DEPTH);
            }
    for (; at < depth; at++)
        for (unsigned i = 0; i < rows; i++)
            for (unsigned v = 0; v < VECTORS; v++)
                sum[i][v] = add_products(sum[i][v], four_at(a + i * p->pitch + at * DEPTH),
                                         w + at * LINE + v * ONXI_LANES * DEPTH);
    for (unsigned i = 0; i < rows; i++)
        for (unsigned v = 0; v < VECTORS; v++) {
            for (unsigned u = 1; u < apart; u++)
                sum[i][v] = both(sum[i][v], sum[u * rows + i][v]);
            out[i][v] = sums_at(sum[i][v]);
        }
}

static inline onxi_vi load_numbers(const int32_t *from, uint64_t n)
{
    onxi_vi v = { 0 };
    if (n >= ONXI_LANES)
        memcpy(&v, from, sizeof v);
    else
        for (uint64_t i = 0; i < n; i++)
            v[i] = from[i];
    return v;
}

/* Corrects sums for zero points, in wrapping arithmetic, and converts them to float. */
static void finish(const onxi_byte_rows *p, uint64_t row, uint64_t column, const onxi_vi *sums)
{
    const int32_t *of_columns = sums_of(p->packed, p->k, p->n) + column;
    const onxi_vu total = (onxi_vu){ 0 } + ((uint32_t)p->totals[row] - (uint32_t)p->k * (uint32_t)p->zero);
    for (uint64_t v = 0; v < VECTORS && column + v * ONXI_LANES < p->n; v++) {
        const uint64_t at = column + v * ONXI_LANES, left = p->n - at;
        const onxi_vu zeros = (onxi_vu)load_numbers(p->zeros + at, left),
                      in_column = (onxi_vu)load_numbers(of_columns + v * ONXI_LANES, ONXI_LANES);
        const onxi_vi exact = (onxi_vi)((onxi_vu)sums[v] - in_column * (uint32_t)p->zero - total * zeros);
        const onxi_vf y = __builtin_convertvector(exact, onxi_vf);
        float *to = p->out + row * p->n + at;
        if (left >= ONXI_LANES)
            vf_store(to, y * (p->scale * vf_load(p->scales + at)));
        else
            vf_store_part(to, y * (p->scale * vf_load_part(p->scales + at, left, 0)), left);
    }
}

static void product(const onxi_byte_rows *p, uint64_t first, uint64_t last)
{
    onxi_vi sums[ROWS][VECTORS];
    for (uint64_t t = first; t < last; t++) {
        const uint8_t *w = (const uint8_t *)p->packed + t * depth_of(p->k) * LINE;
        for (uint64_t row = 0, n; row < p->rows; row += n) {
            const uint8_t *a = p->a + row * p->pitch;
            n = p->rows - row < ROWS ? 1 : ROWS;
            if (n == ROWS)
                tile(p, a, w, ROWS, 1, sums);
            else
                tile(p, a, w, 1, ROWS, sums);
            for (uint64_t i = 0; i < n; i++)
                finish(p, row + i, t * TILE, sums[i]);
        }
    }
}

/* ---- kernel functions ---- */

static void range(const float *x, uint64_t n, float *least, float *most)
{
    onxi_vf low = vf_all(*least), high = vf_all(*most);
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const onxi_vf v = n - i < ONXI_LANES ? vf_load_part(x + i, n - i, *least) : vf_load(x + i);
        low = vf_min(v, low);
        high = vf_max(v, high);
    }
    for (int i = 0; i < ONXI_LANES; i++) {
        *least = low[i] < *least ? low[i] : *least;
        *most = high[i] > *most ? high[i] : *most;
    }
}

static int32_t quantize(const float *x, uint64_t n, float scale, int32_t zero, uint8_t *out)
{
    onxi_vi total = { 0 };
    const onxi_vf by = vf_all(scale);
    int32_t sum = 0;
    uint64_t i = 0;
    for (; i + ONXI_LANES <= n; i += ONXI_LANES) {
        const onxi_vi v = quantized(vf_load(x + i), by, (float)-zero, (float)(255 - zero), zero);
        const byte_line bytes = bytes_of(v);
        memcpy(out + i, &bytes, sizeof bytes);
        total += v;
    }
    if (i < n) {
        const onxi_vi v = quantized(vf_load_part(x + i, n - i, 0), by, (float)-zero, (float)(255 - zero), zero);
        const byte_line bytes = bytes_of(v);
        memcpy(out + i, &bytes, (size_t)(n - i));
        for (uint64_t k = 0; k < n - i; k++)
            sum += v[k];
    }
    memset(out + n, 0, (size_t)(depth_of(n) * DEPTH - n));
    for (int k = 0; k < ONXI_LANES; k++)
        sum += total[k];
    return sum;
}

const onxi_byte_rows_ops ONXI_LEVELED(onxi_byte_rows) = { TILE, size, pack, product, range, quantize };
#endif
