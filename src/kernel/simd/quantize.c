/* quantize.c - vectorized loops that quantize, dequantize and requantize lines, and products of 16-bit integers with
 * 32-bit sums; the plain rows' drivers call them. */
#include "kernel/core/quantize.h"
#include "kernel/simd/round.h"

#include <math.h>

#if defined(__AVX512BW__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

/* ---- lines ---- */

/* Intrinsics, because compilers widen some of these vectors element by element. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
#define WIDE_i8(v)  (onxi_vi) _mm512_cvtepi8_epi32((__m128i)(v))
#define WIDE_u8(v)  (onxi_vi) _mm512_cvtepu8_epi32((__m128i)(v))
#define WIDE_i16(v) (onxi_vi) _mm512_cvtepi16_epi32((__m256i)(v))
#define WIDE_u16(v) (onxi_vi) _mm512_cvtepu16_epi32((__m256i)(v))
#elif ONXI_LANES == 8 && defined(__AVX2__)
#define WIDE_i8(v)  (onxi_vi) _mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)(v)))
#define WIDE_u8(v)  (onxi_vi) _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)(v)))
#define WIDE_i16(v) (onxi_vi) _mm256_cvtepi16_epi32((__m128i)(v))
#define WIDE_u16(v) (onxi_vi) _mm256_cvtepu16_epi32((__m128i)(v))
#else
#define WIDE_i8(v)  __builtin_convertvector(v, onxi_vi)
#define WIDE_u8(v)  __builtin_convertvector(v, onxi_vi)
#define WIDE_i16(v) __builtin_convertvector(v, onxi_vi)
#define WIDE_u16(v) __builtin_convertvector(v, onxi_vi)
#endif

#define LOOPS(T, name, LOW, HIGH, quantized)                                                                           \
    typedef T line_##name __attribute__((vector_size(ONXI_LANES * sizeof(T))));                                        \
    static void quantize_##name(const float *x, void *py, uint64_t n, float scale, int32_t zero)                       \
    {                                                                                                                  \
        const float low = (float)(LOW - zero), high = (float)(HIGH - zero);                                            \
        const onxi_vf by = vf_all(scale);                                                                              \
        T *y = py;                                                                                                     \
        uint64_t i = 0;                                                                                                \
        for (; i + ONXI_LANES <= n; i += ONXI_LANES) {                                                                 \
            const line_##name v =                                                                                      \
                __builtin_convertvector(quantized(vf_load(x + i), by, low, high, zero), line_##name);                  \
            memcpy(y + i, &v, sizeof v);                                                                               \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            const line_##name v =                                                                                      \
                __builtin_convertvector(quantized(vf_load_part(x + i, n - i, 0), by, low, high, zero), line_##name);   \
            memcpy(y + i, &v, (n - i) * sizeof *y);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void dequantize_##name(const void *px, float *y, uint64_t n, float scale, int32_t zero)                     \
    {                                                                                                                  \
        const T *x = px;                                                                                               \
        uint64_t i = 0;                                                                                                \
        for (; i + ONXI_LANES <= n; i += ONXI_LANES) {                                                                 \
            line_##name v;                                                                                             \
            memcpy(&v, x + i, sizeof v);                                                                               \
            vf_store(y + i, __builtin_convertvector(WIDE_##name(v) - zero, onxi_vf) * scale);                          \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            y[i] = (float)(x[i] - zero) * scale;                                                                       \
    }                                                                                                                  \
    static void requantize_##name(const int32_t *sums, void *py, uint64_t n, const float *scale, uint64_t step,        \
                                  int32_t zero)                                                                        \
    {                                                                                                                  \
        const float low = (float)(LOW - zero), high = (float)(HIGH - zero);                                            \
        onxi_vf by = vf_all(n ? *scale : 0);                                                                           \
        T *y = py;                                                                                                     \
        uint64_t i = 0;                                                                                                \
        for (; i + ONXI_LANES <= n; i += ONXI_LANES) {                                                                 \
            onxi_vi v;                                                                                                 \
            memcpy(&v, sums + i, sizeof v);                                                                            \
            by = step ? vf_load(scale + i) : by;                                                                       \
            const line_##name q = __builtin_convertvector(requantized(v, by, low, high, zero), line_##name);           \
            memcpy(y + i, &q, sizeof q);                                                                               \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            const uint64_t count = n - i;                                                                              \
            onxi_vi v = { 0 };                                                                                         \
            memcpy(&v, sums + i, (size_t)count * sizeof *sums);                                                        \
            if (step)                                                                                                  \
                memcpy(&by, scale + i, (size_t)count * sizeof *scale);                                                 \
            const line_##name q = __builtin_convertvector(requantized(v, by, low, high, zero), line_##name);           \
            memcpy(y + i, &q, (size_t)count * sizeof *y);                                                              \
        }                                                                                                              \
    }
LOOPS(int8_t, i8, -128, 127, quantized)
LOOPS(uint8_t, u8, 0, 255, quantized)
LOOPS(int16_t, i16, -32768, 32767, quantized_wide)
LOOPS(uint16_t, u16, 0, 65535, quantized_wide)

/* ---- products ---- */

/* A tile of the product has ROWS x COLUMNS elements. K elements of a row or column are packed at a time, two per 32-bit
 * word. */
enum { ROWS = 6, COLUMNS = 2 * ONXI_LANES, K = 512, M = 96, N = 256 };

/* The sum of the products of the two 16-bit halves, for each word. */
static inline onxi_vu dot(onxi_vu a, onxi_vu b)
{
#if defined(__AVX512BW__)
    return (onxi_vu)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (onxi_vu)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (onxi_vu)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    const onxi_vi x = (onxi_vi)a, y = (onxi_vi)b;
    return (onxi_vu)((onxi_vi)(a << 16) >> 16) * (onxi_vu)((onxi_vi)(b << 16) >> 16) +
           (onxi_vu)(x >> 16) * (onxi_vu)(y >> 16);
#endif
}

static inline uint32_t pair(int32_t first, int32_t second)
{
    return ((uint32_t)first & 0xffff) | (uint32_t)second << 16;
}

/* Packs rows m0 .. m0 + mc - 1 of a, in groups of ROWS; missing rows of the last group are zero. */
static void pack_a(const onxi_gemm *g, uint64_t m0, uint64_t mc, uint64_t k0, uint64_t kc, uint32_t *out)
{
    for (uint64_t m = 0; m < mc; m += ROWS, out += (kc + 1) / 2 * ROWS)
        for (uint64_t i = 0; i < ROWS; i++) {
            const int32_t *a = (const int32_t *)g->a + (int64_t)(m0 + m + i) * g->a_row + (int64_t)k0 * g->a_col;
#if ONXI_PLATFORM_ROOMY
            if (m + i < mc && g->a_col == 1) {
                for (uint64_t k = 0; k < kc / 2; k++)
                    out[k * ROWS + i] = pair(a[2 * k], a[2 * k + 1]);
                if (kc % 2)
                    out[kc / 2 * ROWS + i] = pair(a[kc - 1], 0);
                continue;
            }
#endif
            for (uint64_t k = 0; k < kc; k += 2)
                out[k / 2 * ROWS + i] =
                    m + i < mc ? pair(a[(int64_t)k * g->a_col], k + 1 < kc ? a[(int64_t)(k + 1) * g->a_col] : 0) : 0;
        }
}

static void pack_b(const onxi_gemm *g, uint64_t n0, uint64_t nc, uint64_t k0, uint64_t kc, uint32_t *out)
{
    for (uint64_t n = 0; n < nc; n += COLUMNS)
        for (uint64_t k = 0; k < kc; k += 2, out += COLUMNS) {
            const int32_t *b = (const int32_t *)g->b + (int64_t)(k0 + k) * g->b_row + (int64_t)(n0 + n) * g->b_col;
            const int64_t next = k + 1 < kc ? g->b_row : 0;
            const uint32_t mask = k + 1 < kc ? UINT32_MAX : 0xffff;
            const uint64_t width = nc - n < COLUMNS ? nc - n : COLUMNS;
            if (g->b_col == 1 && width == COLUMNS) {
                for (uint64_t i = 0; i < COLUMNS; i++)
                    out[i] = pair(b[i], b[(int64_t)i + next]) & mask;
                continue;
            }
            for (uint64_t i = 0; i < COLUMNS; i++)
                out[i] = i < width ? pair(b[(int64_t)i * g->b_col], b[(int64_t)i * g->b_col + next]) & mask : 0;
        }
}

static void tile(const uint32_t *a, const uint32_t *b, uint64_t pairs, onxi_vu (*out)[2])
{
    onxi_vu s[ROWS][2] = { { { 0 } } };
    for (uint64_t k = 0; k < pairs; k++, a += ROWS, b += COLUMNS) {
        onxi_vu low, high;
        memcpy(&low, b, sizeof low);
        memcpy(&high, b + ONXI_LANES, sizeof high);
        for (unsigned i = 0; i < ROWS; i++) {
            const onxi_vu by = a[i] - (onxi_vu){ 0 };
            s[i][0] += dot(by, low);
            s[i][1] += dot(by, high);
        }
    }
    memcpy(out, s, sizeof s);
}

/* Stores a tile of the result, or adds it to the result (`add`). */
static void put(const onxi_gemm *g, uint64_t m, uint64_t rows, uint64_t n, uint64_t columns, bool add,
                onxi_vu (*sums)[2])
{
    for (uint64_t i = 0; i < rows; i++) {
        uint32_t *to = (uint32_t *)g->c + (int64_t)(m + i) * g->c_row + (int64_t)n, line[COLUMNS];
        memcpy(line, sums[i], sizeof line);
        for (uint64_t j = 0; j < columns; j++)
            to[j] = (add ? to[j] : 0) + line[j];
    }
}

static void product(const onxi_gemm *g, void *pack)
{
    uint32_t *pa = pack, *pb = pa + M * K / 2;
    for (uint64_t n0 = 0; n0 < g->n; n0 += N)
        for (uint64_t k0 = 0; k0 < g->k || k0 == 0; k0 += K) {
            const uint64_t nc = g->n - n0 < N ? g->n - n0 : N, kc = g->k - k0 < K ? g->k - k0 : K, pairs = (kc + 1) / 2;
            pack_b(g, n0, nc, k0, kc, pb);
            for (uint64_t m0 = 0; m0 < g->m; m0 += M) {
                const uint64_t mc = g->m - m0 < M ? g->m - m0 : M;
                pack_a(g, m0, mc, k0, kc, pa);
                for (uint64_t n = 0; n < nc; n += COLUMNS)
                    for (uint64_t m = 0; m < mc; m += ROWS) {
                        onxi_vu sums[ROWS][2];
                        tile(pa + m * pairs, pb + n * pairs, pairs, sums);
                        put(g, m0 + m, mc - m < ROWS ? mc - m : ROWS, n0 + n, nc - n < COLUMNS ? nc - n : COLUMNS,
                            g->accumulate || k0, sums);
                    }
            }
        }
}

static uint64_t product_workspace(void)
{
    return (M * K / 2 + N * K / 2) * sizeof(uint32_t);
}

/* ---- tables ---- */

#if defined(__AVX512BW__)
__attribute__((target("avx512vbmi"))) static void permute_bytes(const uint8_t *table, const uint8_t *x, uint8_t *y,
                                                                uint64_t n)
{
    const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
    const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
    for (uint64_t i = 0; i < n; i += 64) {
        const __mmask64 there = n - i < 64 ? (UINT64_C(1) << (n - i)) - 1 : UINT64_MAX;
        const __m512i v = _mm512_maskz_loadu_epi8(there, x + i);
        const __m512i low = _mm512_permutex2var_epi8(a, v, b), high = _mm512_permutex2var_epi8(c, v, d);
        _mm512_mask_storeu_epi8(y + i, there, _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high));
    }
}

/* Without a permutation of bytes across the register, the table is split into sixteen parts. Each part is looked up for
 * the bytes whose high four bits are the number of the part. */
static void look_up(const uint8_t *table, const uint8_t *x, uint8_t *y, uint64_t n)
{
    enum { PARTS = 16 };
    const __m512i half = _mm512_set1_epi8(15);
    __m512i part[PARTS];
    if (onxi_isa_permutes_bytes()) {
        permute_bytes(table, x, y, n);
        return;
    }
    for (int k = 0; k < PARTS; k++)
        part[k] = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(table + 16 * k)));
    for (uint64_t i = 0; i < n; i += 64) {
        const __mmask64 there = n - i < 64 ? (UINT64_C(1) << (n - i)) - 1 : UINT64_MAX;
        const __m512i v = _mm512_maskz_loadu_epi8(there, x + i), low = _mm512_and_si512(v, half);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(v, 4), half);
        __m512i found = _mm512_setzero_si512();
        for (int k = 0; k < PARTS; k++)
            found =
                _mm512_mask_shuffle_epi8(found, _mm512_cmpeq_epi8_mask(high, _mm512_set1_epi8((char)k)), part[k], low);
        _mm512_mask_storeu_epi8(y + i, there, found);
    }
}
#endif

static const onxi_quantize_loops loops = {
    .quantize = { [ONX_INT8] = quantize_i8,
                  [ONX_UINT8] = quantize_u8,
                  [ONX_INT16] = quantize_i16,
                  [ONX_UINT16] = quantize_u16 },
    .dequantize = { [ONX_INT8] = dequantize_i8,
                    [ONX_UINT8] = dequantize_u8,
                    [ONX_INT16] = dequantize_i16,
                    [ONX_UINT16] = dequantize_u16 },
    .requantize = { [ONX_INT8] = requantize_i8,
                    [ONX_UINT8] = requantize_u8,
                    [ONX_INT16] = requantize_i16,
                    [ONX_UINT16] = requantize_u16 },
    .product = product,
    .product_workspace = product_workspace,
#if defined(__AVX512BW__)
    .look_up = look_up,
#endif
};
#ifndef __wasm__ /* browsers run the operator's function body: no room for this kernel */
/* ---- DynamicQuantizeLinear ---- */

typedef struct dynamic_params {
    uint64_t count;
} dynamic_params;

static onx_status dynamic_prepare(onx_prepare *p)
{
    dynamic_params *q = ONXI_NEW(p->arena, dynamic_params);
    if (!q)
        return ONX_E_MEMORY;
    q->count = p->inputs[0]->count;
    p->params = q;
    return ONX_OK;
}

/* The range of the elements, extended to include 0; both are NaN if an element is NaN. */
static void range_of(const float *x, uint64_t n, float *least, float *most)
{
    enum { TOGETHER = 4 };
    onxi_vf low[TOGETHER], high[TOGETHER];
    onxi_vi none = { 0 };
    uint64_t i = 0;
    for (int k = 0; k < TOGETHER; k++)
        low[k] = high[k] = vf_all(0);
    for (; i + TOGETHER * ONXI_LANES <= n; i += TOGETHER * ONXI_LANES)
        for (int k = 0; k < TOGETHER; k++) {
            const onxi_vf v = vf_load(x + i + (uint64_t)k * ONXI_LANES);
            low[k] = vf_min(v, low[k]);
            high[k] = vf_max(v, high[k]);
            none |= (onxi_vi)(v != v);
        }
    for (; i < n; i += ONXI_LANES) {
        const onxi_vf v = vf_load_part(x + i, n - i, 0);
        low[0] = vf_min(v, low[0]);
        high[0] = vf_max(v, high[0]);
        none |= (onxi_vi)(v != v);
    }
    *least = *most = vi_any(none) ? NAN : 0;
    for (int k = 0; k < TOGETHER * ONXI_LANES; k++) {
        const float a = low[k / ONXI_LANES][k % ONXI_LANES], b = high[k / ONXI_LANES][k % ONXI_LANES];
        *least = a < *least ? a : *least;
        *most = b > *most ? b : *most;
    }
}

/* Maps the range of the elements, which includes 0, to 0 .. 255, like the function body in the standard. */
static onx_status dynamic_run(onx_work *work, uint64_t first, uint64_t last)
{
    const dynamic_params *q = work->params;
    const onx_prepared *p = work->prepared;
    const float *x = work->inputs[0]->data;
    float least, most;
    if (first == last)
        return ONX_OK;
    range_of(x, q->count, &least, &most);
    const float scale = (most - least) / 255, place = 0 - least / scale;
    const int32_t zero = place > 0 ? (place < 255 ? (int32_t)nearbyintf(place) : 255) : 0;
    if (work->outputs[0])
        quantize_u8(x, work->outputs[0]->data, q->count, scale, zero);
    if (p->output_count > 1 && work->outputs[1])
        *(float *)work->outputs[1]->data = scale;
    if (p->output_count > 2 && work->outputs[2])
        *(uint8_t *)work->outputs[2]->data = (uint8_t)zero;
    return ONX_OK;
}
#endif

static const onxi_quantize_body there = { .fast = &loops }, back = { .back = true, .fast = &loops };

#define BYTES  (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8))
#define SHORTS (ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_UINT16))
#define ROW(name, types, how, body_)                                                                                   \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = types, .preference = 1, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,         \
        .body = &body_, .prepare = onxi_##how##_prepare, .run = onxi_##how##_run                                       \
    }
#define LAID_OUT(name, types, body_)                                                                                   \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = types, .preference = 2, .isa = ONXI_LEVEL, .variant = ONXI_VARIANT,         \
        .flags = ONX_KERNEL_LAYOUTS, .body = &body_, .prepare = onxi_quantize_laid_out, .run = onxi_quantize_run       \
    }
#define onxi_dequantize_run onxi_quantize_run
const onx_kernel ONXI_LEVELED(onxi_kernels_simd_quantize)[] = {
    ROW("QuantizeLinear", ONXI_F32, quantize, there),
    ROW("DequantizeLinear", BYTES | SHORTS, dequantize, back),
#if ONXI_PLATFORM_ROOMY
    LAID_OUT("QuantizeLinear", ONXI_F32, there),
    LAID_OUT("DequantizeLinear", BYTES, back),
#endif
    ROW("MatMulInteger", BYTES, qproduct, there),
    ROW("QLinearMatMul", BYTES, qproduct, back),
    ROW("ConvInteger", BYTES, qconv, there),
    ROW("QLinearConv", BYTES, qconv, back),
#ifndef __wasm__
    { .op = "DynamicQuantizeLinear",
      .since = 11,
      .dtypes = ONXI_F32,
      .preference = 1,
      .isa = ONXI_LEVEL,
      .variant = ONXI_VARIANT,
      .prepare = dynamic_prepare,
      .run = dynamic_run },
#endif
    { 0 },
};
