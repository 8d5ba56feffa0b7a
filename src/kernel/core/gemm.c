/* gemm.c - matrix products of every element type: panels are packed, then multiplied tile by tile. The sum over k runs
 * in one fixed order, so the bits depend neither on tiles nor on threads. */
#include "kernel/kernel.h"

/* Rows and columns of a tile, and the block of k that is packed at a time. */
enum { TILE_M = 6, TILE_N = 16, BLOCK_K = 256, BLOCK_N = 512, BLOCK_M = 96 };

#define SAME(x)     (x)
#define F16_IN(x)   onx_float16_to_f32(x)
#define F16_OUT(x)  onx_f32_to_float16(x)
#define BF16_IN(x)  onx_bfloat16_to_f32(x)
#define BF16_OUT(x) onx_f32_to_bfloat16(x)

/* suffix, stored type, accumulator type, loading, storing. Integers accumulate unsigned: overflow wraps. */
#define BODIES(BODY)                                                                                                   \
    BODY(f32, float, float, SAME, SAME)                                                                                \
    BODY(f64, double, double, SAME, SAME)                                                                              \
    BODY(f16, uint16_t, float, F16_IN, F16_OUT)                                                                        \
    BODY(bf16, uint16_t, float, BF16_IN, BF16_OUT)                                                                     \
    BODY(u32, uint32_t, uint32_t, SAME, SAME)                                                                          \
    BODY(u64, uint64_t, uint64_t, SAME, SAME)

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 6")
#endif
/* Six rows of two vectors, as many as the registers hold. The sums start with the contents of `out`. */
#define TILE_BODY(name, acc, bytes, LEVEL)                                                                             \
    typedef acc row_##name __attribute__((vector_size(bytes), aligned(sizeof(acc)), may_alias));                       \
    LEVEL static void tile_##name(const acc *restrict a, const acc *restrict b, uint64_t kc, acc *restrict out)        \
    {                                                                                                                  \
        enum { LANES = (bytes) / sizeof(acc), PAIR = 2 * LANES < TILE_N ? 2 * LANES : TILE_N, SECOND = PAIR - LANES }; \
        for (uint64_t j = 0; j < TILE_N; j += PAIR) {                                                                  \
            const acc *x = a, *y = b + j;                                                                              \
            acc *to = out + j;                                                                                         \
            row_##name s[TILE_M][2];                                                                                   \
            UNROLL                                                                                                     \
            for (int i = 0; i < TILE_M; i++)                                                                           \
                s[i][0] = *(row_##name *)(to + i * TILE_N), s[i][1] = *(row_##name *)(to + i * TILE_N + SECOND);       \
            for (uint64_t k = 0; k < kc; k++, x += TILE_M, y += TILE_N) {                                              \
                const row_##name v = *(const row_##name *)y, w = *(const row_##name *)(y + SECOND);                    \
                UNROLL                                                                                                 \
                for (int i = 0; i < TILE_M; i++)                                                                       \
                    s[i][0] += x[i] * v, s[i][1] += x[i] * w;                                                          \
            }                                                                                                          \
            UNROLL                                                                                                     \
            for (int i = 0; i < TILE_M; i++)                                                                           \
                *(row_##name *)(to + i * TILE_N + SECOND) = s[i][1], *(row_##name *)(to + i * TILE_N) = s[i][0];       \
        }                                                                                                              \
    }

/* Compilers generate poor code for vectors wider than those of the CPU, so there is one version per level. */
#ifdef ONX_WITH_X86_LEVELS
#define FORMS(sfx, acc)                                                                                                \
    TILE_BODY(v4_##sfx, acc, 64, __attribute__((target("arch=x86-64-v4"))))                                            \
    TILE_BODY(v3_##sfx, acc, 32, __attribute__((target("arch=x86-64-v3"))))                                            \
    TILE_BODY(base_##sfx, acc, 32, )
#define BEST_OF(sfx, isa) ((isa) == ONX_ISA_V4 ? tile_v4_##sfx : (isa) == ONX_ISA_V3 ? tile_v3_##sfx : tile_base_##sfx)
#else
#define FORMS(sfx, acc)   TILE_BODY(base_##sfx, acc, 32, )
#define BEST_OF(sfx, isa) tile_base_##sfx
#endif

/* A single row reads each element of the right side once, so that packing would take longer than multiplying. Sums have
 * the order of tiles, and four rows of the right side are added at a time. Browsers have no room for it. */
#if ONXI_PLATFORM_ROOMY
#define ROW_BODY(name, stored, acc, LOAD, STORE, LEVEL)                                                                \
    LEVEL static void alone_##name(const onxi_gemm *g)                                                                 \
    {                                                                                                                  \
        enum { COLUMNS = 512, ROWS = 4 };                                                                              \
        onxi_pace pace = { .work = g->work };                                                                          \
        for (uint64_t n0 = 0; n0 < g->n; n0 += COLUMNS) {                                                              \
            const uint64_t n = g->n - n0 < COLUMNS ? g->n - n0 : COLUMNS;                                              \
            const stored *a = (const stored *)g->a, *restrict b = (const stored *)g->b + n0;                           \
            stored *c = (stored *)g->c + n0;                                                                           \
            acc sums[COLUMNS] = { 0 };                                                                                 \
            uint64_t k = 0;                                                                                            \
            for (; k + ROWS <= g->k; k += ROWS, a += ROWS * g->a_col, b += ROWS * g->b_row) {                          \
                if (onxi_pace_stops(&pace, COLUMNS))                                                                   \
                    return;                                                                                            \
                const acc f = (acc)LOAD(a[0]), x = (acc)LOAD(a[g->a_col]);                                             \
                const acc u = (acc)LOAD(a[2 * g->a_col]), v = (acc)LOAD(a[3 * g->a_col]);                              \
                const stored *restrict d = b + g->b_row, *restrict e = d + g->b_row, *restrict h = e + g->b_row;       \
                for (uint64_t j = 0; j < n; j++)                                                                       \
                    sums[j] = sums[j] + f * (acc)LOAD(b[j]) + x * (acc)LOAD(d[j]) + u * (acc)LOAD(e[j]) +              \
                              v * (acc)LOAD(h[j]);                                                                     \
            }                                                                                                          \
            for (; k < g->k; k++, a += g->a_col, b += g->b_row)                                                        \
                for (uint64_t j = 0; j < n; j++)                                                                       \
                    sums[j] = sums[j] + (acc)LOAD(*a) * (acc)LOAD(b[j]);                                               \
            for (uint64_t j = 0; j < n; j++)                                                                           \
                c[j] = (stored)STORE(g->accumulate ? (acc)(sums[j] + (acc)LOAD(c[j])) : sums[j]);                      \
        }                                                                                                              \
    }
#ifdef ONX_WITH_X86_LEVELS
#define ROW_FORMS(sfx, stored, acc, LOAD, STORE)                                                                       \
    ROW_BODY(v4_##sfx, stored, acc, LOAD, STORE, __attribute__((target("arch=x86-64-v4"))))                            \
    ROW_BODY(v3_##sfx, stored, acc, LOAD, STORE, __attribute__((target("arch=x86-64-v3"))))                            \
    ROW_BODY(base_##sfx, stored, acc, LOAD, STORE, )
#define BEST_ROW(sfx, isa)                                                                                             \
    ((isa) == ONX_ISA_V4 ? alone_v4_##sfx : (isa) == ONX_ISA_V3 ? alone_v3_##sfx : alone_base_##sfx)
#else
#define ROW_FORMS(sfx, stored, acc, LOAD, STORE) ROW_BODY(base_##sfx, stored, acc, LOAD, STORE, )
#define BEST_ROW(sfx, isa)                       alone_base_##sfx
#endif
#define RUN_ROW(sfx)                                                                                                   \
    if (g->m == 1 && g->b_col == 1) {                                                                                  \
        BEST_ROW(sfx, onxi_isa_vectors())(g);                                                                          \
        return;                                                                                                        \
    }
#else
#define ROW_FORMS(sfx, stored, acc, LOAD, STORE)
#define RUN_ROW(sfx)
#endif

/* Packing of whole tiles from contiguous rows, and storing of rows of tiles; browsers have no room for these loops. */
#if ONXI_PLATFORM_ROOMY
#define PACK_ROWS(acc, LOAD)                                                                                           \
    if (mc - i0 >= TILE_M && g->a_col == 1) {                                                                          \
        const int64_t next = g->a_row;                                                                                 \
        a += (int64_t)(m0 + i0) * next + (int64_t)k0;                                                                  \
        for (uint64_t k = 0; k < kc; k++, a++, out += TILE_M)                                                          \
            for (int i = 0; i < TILE_M; i++)                                                                           \
                out[i] = (acc)LOAD(a[i * next]);                                                                       \
        a = g->a;                                                                                                      \
        continue;                                                                                                      \
    }
#define PACK_COLUMNS(acc, LOAD)                                                                                        \
    if (w == TILE_N && g->b_col == 1) {                                                                                \
        for (int j = 0; j < TILE_N; j++)                                                                               \
            out[j] = (acc)LOAD(row[j]);                                                                                \
        out += TILE_N;                                                                                                 \
        continue;                                                                                                      \
    }
#define STORE_TILES(stored, acc, LOAD, STORE)                                                                          \
    for (uint64_t j0 = 0; j0 < nc; j0 += TILE_N)                                                                       \
        for (uint64_t i = 0; i < mc; i++) {                                                                            \
            const uint64_t w = nc - j0 < TILE_N ? nc - j0 : TILE_N;                                                    \
            const acc *s = sums + (j0 / TILE_N * tiles_m * TILE_M + i) * TILE_N;                                       \
            stored *at = c + (int64_t)(m0 + i) * g->c_row + (int64_t)(n0 + j0);                                        \
            for (uint64_t j = 0; j < w; j++)                                                                           \
                at[j] = (stored)STORE(g->accumulate ? (acc)(s[j] + (acc)LOAD(at[j])) : s[j]);                          \
        }
#else
#define PACK_ROWS(acc, LOAD)
#define PACK_COLUMNS(acc, LOAD)
#define STORE_TILES(stored, acc, LOAD, STORE)                                                                          \
    for (uint64_t i = 0; i < mc; i++)                                                                                  \
        for (uint64_t j = 0; j < nc; j++) {                                                                            \
            stored *at = &c[(int64_t)(m0 + i) * g->c_row + (int64_t)(n0 + j)];                                         \
            acc s = sums[((j / TILE_N) * tiles_m + i / TILE_M) * TILE_M * TILE_N + i % TILE_M * TILE_N + j % TILE_N];  \
            *at = (stored)STORE(g->accumulate ? (acc)(s + (acc)LOAD(*at)) : s);                                        \
        }
#endif
#define GEMM_BODY(sfx, stored, acc, LOAD, STORE)                                                                       \
    static void pack_a_##sfx(const onxi_gemm *g, uint64_t m0, uint64_t mc, uint64_t k0, uint64_t kc, acc *out)         \
    {                                                                                                                  \
        const stored *a = (const stored *)g->a;                                                                        \
        for (uint64_t i0 = 0; i0 < mc; i0 += TILE_M) {                                                                 \
            PACK_ROWS(acc, LOAD)                                                                                       \
            for (uint64_t k = 0; k < kc; k++)                                                                          \
                for (uint64_t i = 0; i < TILE_M; i++)                                                                  \
                    *out++ = i0 + i < mc                                                                               \
                                 ? (acc)LOAD(a[(int64_t)(m0 + i0 + i) * g->a_row + (int64_t)(k0 + k) * g->a_col])      \
                                 : (acc)0;                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void pack_b_##sfx(const onxi_gemm *g, uint64_t k0, uint64_t kc, uint64_t n0, uint64_t nc, acc *out)         \
    {                                                                                                                  \
        const stored *b = (const stored *)g->b;                                                                        \
        for (uint64_t j0 = 0; j0 < nc; j0 += TILE_N)                                                                   \
            for (uint64_t k = 0; k < kc; k++) {                                                                        \
                const stored *row = b + (int64_t)(k0 + k) * g->b_row + (int64_t)(n0 + j0) * g->b_col;                  \
                uint64_t w = nc - j0 < TILE_N ? nc - j0 : TILE_N;                                                      \
                PACK_COLUMNS(acc, LOAD)                                                                                \
                for (uint64_t j = 0; j < w; j++)                                                                       \
                    out[j] = (acc)LOAD(row[(int64_t)j * g->b_col]);                                                    \
                for (uint64_t j = w; j < TILE_N; j++)                                                                  \
                    out[j] = (acc)0;                                                                                   \
                out += TILE_N;                                                                                         \
            }                                                                                                          \
    }                                                                                                                  \
    FORMS(sfx, acc)                                                                                                    \
    ROW_FORMS(sfx, stored, acc, LOAD, STORE)                                                                           \
    /* `sums` holds the accumulators of mc x nc elements, tile by tile, over all blocks of k. */                       \
    static void panel_##sfx(const onxi_gemm *g, uint64_t m0, uint64_t mc, uint64_t n0, uint64_t nc, acc *pa, acc *pb,  \
                            acc *sums)                                                                                 \
    {                                                                                                                  \
        stored *c = (stored *)g->c;                                                                                    \
        void (*const tile)(const acc *, const acc *, uint64_t, acc *) = BEST_OF(sfx, onxi_isa_vectors());              \
        uint64_t tiles_m = (mc + TILE_M - 1) / TILE_M, tiles_n = (nc + TILE_N - 1) / TILE_N;                           \
        memset(sums, 0, tiles_m *tiles_n *TILE_M *TILE_N * sizeof(acc));                                               \
        for (uint64_t k0 = 0; k0 < g->k; k0 += BLOCK_K) {                                                              \
            uint64_t kc = g->k - k0 < BLOCK_K ? g->k - k0 : BLOCK_K;                                                   \
            if (onx_work_stops(g->work))                                                                               \
                return;                                                                                                \
            pack_b_##sfx(g, k0, kc, n0, nc, pb);                                                                       \
            pack_a_##sfx(g, m0, mc, k0, kc, pa);                                                                       \
            for (uint64_t tn = 0; tn < tiles_n; tn++)                                                                  \
                for (uint64_t tm = 0; tm < tiles_m; tm++)                                                              \
                    tile(pa + tm * kc * TILE_M, pb + tn * kc * TILE_N, kc,                                             \
                         sums + (tn * tiles_m + tm) * TILE_M * TILE_N);                                                \
        }                                                                                                              \
        STORE_TILES(stored, acc, LOAD, STORE)                                                                          \
    }                                                                                                                  \
    static void gemm_##sfx(const onxi_gemm *g, void *pack)                                                             \
    {                                                                                                                  \
        RUN_ROW(sfx)                                                                                                   \
        acc *pa = (acc *)pack, *pb = pa + (size_t)BLOCK_M * BLOCK_K, *sums = pb + (size_t)BLOCK_N * BLOCK_K;           \
        for (uint64_t n0 = 0; n0 < g->n; n0 += BLOCK_N)                                                                \
            for (uint64_t m0 = 0; m0 < g->m; m0 += BLOCK_M)                                                            \
                panel_##sfx(g, m0, g->m - m0 < BLOCK_M ? g->m - m0 : BLOCK_M, n0,                                      \
                            g->n - n0 < BLOCK_N ? g->n - n0 : BLOCK_N, pa, pb, sums);                                  \
    }
BODIES(GEMM_BODY)

static uint64_t acc_size(int dtype)
{
    return dtype == ONX_DOUBLE || dtype == ONX_INT64 || dtype == ONX_UINT64 ? 8 : 4;
}

uint64_t onxi_gemm_workspace(int dtype, uint64_t m, uint64_t n, uint64_t k)
{
    (void)m, (void)n, (void)k;
    return ((uint64_t)BLOCK_M * BLOCK_K + (uint64_t)BLOCK_N * BLOCK_K + (uint64_t)BLOCK_M * BLOCK_N) * acc_size(dtype);
}

void onxi_gemm_run(const onxi_gemm *g, void *pack)
{
    switch (g->dtype) {
    case ONX_FLOAT:
        gemm_f32(g, pack);
        break;
    case ONX_DOUBLE:
        gemm_f64(g, pack);
        break;
    case ONX_FLOAT16:
        gemm_f16(g, pack);
        break;
    case ONX_BFLOAT16:
        gemm_bf16(g, pack);
        break;
    case ONX_INT32:
    case ONX_UINT32:
        gemm_u32(g, pack);
        break;
    case ONX_INT64:
    case ONX_UINT64:
        gemm_u64(g, pack);
        break;
    default:
        break;
    }
}
