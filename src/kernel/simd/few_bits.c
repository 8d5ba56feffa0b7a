/* few_bits.c - products with weights of 2, 4 or 8 bits. For a few rows, the strips of weights are read once, limited by
 * memory bandwidth. More rows are multiplied with panels of columns that are dequantized one range of k at a time. */
#include "kernel/core/few_bits.h"
#include "kernel/simd/cut.h"
#include "kernel/simd/tile.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include <math.h>

/* Most rows for which no panel is dequantized; most rows multiplied with a panel, so that they stay in the L2 cache. */
enum { FEW = 4, ROWS_MOST = 216 };

/* For WebAssembly, small code matters more than speed: `bits` is a variable there, and loops over it are not
 * unrolled. */
#ifdef __wasm__
enum { ROWS = 1 };
#define UNROLL_BITS
#else
enum { ROWS = 2 };
#define UNROLL_BITS UNROLL
#endif

/* ---- the left side ---- */

/* Rounds a block to 8 bits with a scale, and back to floats. */
static void round_block(float *x, uint64_t n)
{
    float most = 0;
    for (uint64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    const float scale = most / 127;
    for (uint64_t i = 0; scale > 0 && i < n; i++)
        x[i] = rintf(x[i] / scale) * scale;
}

/* Copies rows padded to whole blocks, and sums up each block. */
static void take_left(const onxi_few_bits *q, uint64_t m0, uint64_t m1, float *left, float *sums)
{
    for (uint64_t m = m0; m < m1; m++)
        for (uint64_t b = 0; b < q->blocks; b++, left += q->block) {
            const uint64_t at = b * q->block, n = q->k - at < q->block ? q->k - at : q->block;
            float sum = 0;
            memcpy(left, q->a + m * q->k + at, n * sizeof *left);
            memset(left + n, 0, (q->block - n) * sizeof *left);
            if (q->rounded)
                round_block(left, n);
            for (uint64_t i = 0; i < n; i++)
                sum += left[i];
            *sums++ = sum;
        }
}

/* ---- dequantization ---- */

/* With AVX-512, a table of 16 floats fits in a register, and lookups use the low four bits of an index, so no mask is
 * needed. If all blocks have the same zero point, it is subtracted in the table. */
#if ONXI_LANES == 16 && defined(__AVX512F__)
#define HAS_TABLE(bits) ((bits) <= 4)
#else
#define HAS_TABLE(bits) false
#endif

static inline onxi_vf real(onxi_vi v)
{
    return __builtin_convertvector(v, onxi_vf);
}

static inline onxi_vi load_words(const uint8_t *p)
{
    onxi_vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

static onxi_vf table_of(const onxi_few_bits *q)
{
    const int middle = HAS_TABLE(q->bits) && !q->has_zeros ? 1 << (q->bits - 1) : 0;
    onxi_vf table;
    for (int i = 0; i < ONXI_LANES; i++)
        table[i] = (float)((i & ((1 << q->bits) - 1)) - middle);
    return table;
}

/* Extracts the elements of words that begin at bit `shift`. */
__attribute__((always_inline)) static inline onxi_vf numbers(const unsigned bits, onxi_vi v, unsigned shift,
                                                             onxi_vf table)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    if (HAS_TABLE(bits))
        return (onxi_vf)_mm512_permutexvar_ps((__m512i)((onxi_vu)v >> shift), (__m512)table);
#endif
    (void)table;
    return real(v >> vi_all((int32_t)shift) & vi_all((1 << bits) - 1));
}

/* The zero points of a block, to be subtracted from the results of `numbers`. */
static inline onxi_vf zeros_of(const onxi_few_bits *q, uint64_t line, int vector)
{
    const uint64_t at = line * PANEL + (uint64_t)vector * ONXI_LANES;
    onxi_vf z;
    if (!q->has_zeros)
        return vf_all(HAS_TABLE(q->bits) ? 0 : (float)(1 << (q->bits - 1)));
    if (q->is_real)
        return vf_load((const float *)q->zeros + at);
    for (int i = 0; i < ONXI_LANES; i++)
        z[i] = ((const uint8_t *)q->zeros)[at + (uint64_t)i];
    return z;
}

static inline onxi_vf scales_of(const onxi_few_bits *q, uint64_t line, int vector)
{
    return vf_load(q->scales + line * PANEL + vector * ONXI_LANES);
}

/* ---- a few rows ---- */

enum { WAYS = 2, AHEAD = 8192 }; /* independent sums; prefetch distance in bytes */

/* Multiplies `rows` rows with a strip. */
__attribute__((always_inline)) static inline void some_rows(const onxi_few_bits *q, const unsigned bits, const int rows,
                                                            const float *left, const float *sums, uint64_t strip,
                                                            float *out)
{
    const uint64_t words = q->block * bits / 32, width = q->blocks * q->block;
    const unsigned each = 32 / bits;
    const uint8_t *from = q->weights + strip * q->row_bytes * PANEL;
    const onxi_vf table = table_of(q);
    const bool zeros = q->has_zeros || !HAS_TABLE(bits);
    onxi_vf sum[2][TILE_V];
    for (int i = 0; i < 2 * TILE_V; i++)
        sum[i / TILE_V][i % TILE_V] = vf_all(0);
    for (uint64_t b = 0; b < q->blocks; b++) {
        onxi_vf part[2][TILE_V][WAYS];
        UNROLL
        for (int i = 0; i < 2 * TILE_V * WAYS; i++)
            part[i / (TILE_V * WAYS)][i / WAYS % TILE_V][i % WAYS] = vf_all(0);
        for (uint64_t w = 0; w < words; w++) {
            const onxi_vi v[TILE_V] = { load_words(from), load_words(from + sizeof v[0]) };
            for (uint64_t i = 0; i < sizeof v; i += 64)
                __builtin_prefetch((const void *)((uintptr_t)from + AHEAD + i));
            from += sizeof v;
            UNROLL_BITS
            for (unsigned i = 0; i < each; i++)
                UNROLL
            for (int s = 0; s < TILE_V; s++) {
                const onxi_vf x = numbers(bits, v[s], i % 4 * 8 + i / 4 * bits, table);
                UNROLL
                for (int r = 0; r < rows; r++)
                    part[r][s][i % WAYS] += left[(uint64_t)r * width + i] * x;
            }
            left += each;
        }
        UNROLL
        for (int s = 0; s < TILE_V; s++) {
            const onxi_vf scale = scales_of(q, strip * q->blocks + b, s);
            const onxi_vf z = zeros ? zeros_of(q, strip * q->blocks + b, s) : vf_all(0);
            UNROLL
            for (int r = 0; r < rows; r++) {
                const onxi_vf p = part[r][s][0] + part[r][s][1];
                sum[r][s] += scale * (zeros ? p - z * sums[(uint64_t)r * q->blocks + b] : p);
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < TILE_V; s++)
            vf_store(out + r * PANEL + s * ONXI_LANES, sum[r][s]);
}

/* The same for one or two rows. */
static void rows_of(const onxi_few_bits *q, int rows, const float *left, const float *sums, uint64_t strip, float *out)
{
#ifdef __wasm__
    (void)rows;
    some_rows(q, q->bits, 1, left, sums, strip, out);
#else
#define CASE(bits_)                                                                                                    \
    if (q->bits == (bits_) && rows == 2)                                                                               \
        some_rows(q, bits_, 2, left, sums, strip, out);                                                                \
    else if (q->bits == (bits_))                                                                                       \
        some_rows(q, bits_, 1, left, sums, strip, out);
    CASE(2)
    CASE(4)
    CASE(8)
#undef CASE
#endif
}

static void few_rows(const onxi_few_bits *q, uint64_t n0, uint64_t n1, float *space)
{
    const uint64_t width = q->blocks * q->block;
    float *left = space, *sums = left + q->m * width;
    take_left(q, 0, q->m, left, sums);
    for (uint64_t at = n0, strip = 0; at < n1; at += PANEL, strip++)
        for (uint64_t m = 0, rows; m < q->m; m += rows) {
            float out[ROWS * PANEL];
            const uint64_t count = n1 - at < PANEL ? n1 - at : PANEL;
            rows = q->m - m < ROWS ? q->m - m : ROWS;
            rows_of(q, (int)rows, left + m * width, sums + m * q->blocks, strip, out);
            for (uint64_t i = 0; i < rows; i++)
                for (uint64_t j = 0; j < count; j++)
                    q->y[(m + i) * q->n + at + j] = out[i * PANEL + j] + (q->bias ? q->bias[at + j] : 0);
        }
}

/* ---- many rows ---- */

/* Dequantizes rows k0 .. k1 - 1 of a strip, which begin and end with whole words. */
__attribute__((always_inline)) static inline void make_real(const onxi_few_bits *q, const unsigned bits, uint64_t strip,
                                                            uint64_t k0, uint64_t k1, float *out)
{
    const uint8_t *from = q->weights + (strip * q->row_bytes + k0 * bits / 8) * PANEL;
    const onxi_vf table = table_of(q);
    const unsigned each = 32 / bits;
    for (uint64_t k = k0, end; k < k1; k = end) {
        const uint64_t line = strip * q->blocks + k / q->block;
        end = (k / q->block + 1) * q->block < k1 ? (k / q->block + 1) * q->block : k1;
        for (int s = 0; s < TILE_V; s++) {
            const onxi_vf scale = scales_of(q, line, s), zero = zeros_of(q, line, s);
            const uint8_t *words = from + (uint64_t)s * sizeof scale;
            float *to = out + s * ONXI_LANES;
            for (uint64_t at = k; at < end; at += each, words += PANEL * 4, to += each * PANEL) {
                const onxi_vi v = load_words(words);
                UNROLL_BITS
                for (unsigned i = 0; i < each; i++)
                    vf_store(to + i * PANEL, (numbers(bits, v, i % 4 * 8 + i / 4 * bits, table) - zero) * scale);
            }
        }
        from += (end - k) / each * PANEL * 4;
        out += (end - k) * PANEL;
    }
}

static void make_panel(const onxi_few_bits *q, uint64_t strip, uint64_t k0, uint64_t k1, float *out)
{
#ifdef __wasm__
    make_real(q, q->bits, strip, k0, k1, out);
#else
    if (q->bits == 2)
        make_real(q, 2, strip, k0, k1, out);
    else if (q->bits == 4)
        make_real(q, 4, strip, k0, k1, out);
    else
        make_real(q, 8, strip, k0, k1, out);
#endif
}

/* The rows in place, or rounded copies. */
typedef struct left_side {
    const float *rows;
    uint64_t step;
} left_side;

/* Multiplies a range of k, k0 .. k0 + kc - 1, of some rows with a panel. A panel with fewer columns uses a buffer. */
static void panel_rows(const onxi_few_bits *q, const left_side *left, uint64_t rows_left, uint64_t k0, uint64_t kc,
                       const float *panel, uint64_t column, uint64_t width, float *y)
{
    const float *a = left->rows;
    for (uint64_t rows; rows_left; rows_left -= rows, a += rows * left->step, y += rows * q->n) {
        float edge[TILE_M * PANEL];
        float *c = width == PANEL ? y : edge;
        const uint64_t ldc = width == PANEL ? q->n : PANEL;
        rows = tile_height(rows_left);
        for (uint64_t i = 0; width < PANEL && k0 && i < rows; i++)
            memcpy(edge + i * PANEL, y + i * q->n, width * sizeof *y);
        tile_run(
            &(tile_operands){
                .a = a + k0, .b = panel, .c = c, .lda = left->step, .ldb = PANEL, .ldc = ldc, .k = kc, .more = k0 > 0 },
            rows);
        for (uint64_t i = 0; q->bias && k0 + kc == q->k && i < rows; i++)
            for (uint64_t j = 0; j < width; j++)
                c[i * ldc + j] += q->bias[column + j];
        for (uint64_t i = 0; width < PANEL && i < rows; i++)
            memcpy(y + i * q->n, edge + i * PANEL, width * sizeof *y);
    }
}

static void many_rows(const onxi_few_bits *q, uint64_t m0, uint64_t m1, uint64_t n0, uint64_t n1, float *space)
{
    float *panel = space, *rounded = panel + BLOCK_K * PANEL;
    left_side left = { q->a + m0 * q->k, q->k };
    if (q->rounded) {
        left = (left_side){ rounded, q->blocks * q->block };
        take_left(q, m0, m1, rounded, rounded + (m1 - m0) * left.step);
    }
    for (uint64_t at = n0; at < n1; at += PANEL) {
        const uint64_t width = n1 - at < PANEL ? n1 - at : PANEL;
        for (uint64_t k0 = 0, kc; k0 < q->k; k0 += kc) {
            kc = tile_depth(q->k - k0);
            const uint64_t end = k0 + (kc + WHOLE_K - 1) / WHOLE_K * WHOLE_K;
            make_panel(q, (at - n0) / PANEL, k0, end, panel);
            panel_rows(q, &left, m1 - m0, k0, kc, panel, at, width, q->y + m0 * q->n + at);
        }
    }
}

static bool piece(const onxi_few_bits *q, uint64_t m0, uint64_t m1, uint64_t n0, uint64_t n1, void *memory)
{
    if (q->m <= FEW)
        few_rows(q, n0, n1, memory);
    else
        many_rows(q, m0, m1, n0, n1, memory);
    bool finite = true;
    for (uint64_t m = m0; m < m1; m++)
        finite &= onxi_value_is_finite(&(onx_value){ .data = q->y + m * q->n + n0, .count = n1 - n0 });
    return finite;
}

/* Columns are divided among threads, rows by the cache size. */
static bool plan(onxi_few_bits *q, unsigned threads, uint64_t *memory)
{
    enum { WHOLE = 64 };
    const uint64_t blocks = (q->m + ROWS_MOST - 1) / ROWS_MOST;
    uint64_t left;
    q->rows_each = blocks ? ((q->m + blocks - 1) / blocks + TILE_M - 1) / TILE_M * TILE_M : 1;
    q->columns_each = WHOLE * cut_evenly((q->n + WHOLE - 1) / WHOLE, blocks, threads, q->m <= FEW ? CUT_FEW : CUT_SOME);
    if (!onxi_mul_u64(q->blocks * q->block + q->blocks, q->rows_each, &left) || left > UINT64_MAX / 64)
        return false;
    *memory = sizeof(float) * ((q->m <= FEW || q->rounded ? left : 0) + BLOCK_K * PANEL);
    return true;
}

const onxi_few_bits_ops ONXI_LEVELED(onxi_few_bits) = { .lanes = PANEL, .plan = plan, .piece = piece };
