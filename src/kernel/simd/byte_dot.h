/* byte_dot.h - sums of products of 8-bit integers: the innermost loop of integer products and convolutions, by
 * AVX512_VNNI or AMX tiles. The left operand is rows of bytes; the right one is packed in panels of columns, as signed
 * bytes. Sums wrap at 32 bits, so they do not depend on the order. */
#ifndef ONXI_KERNEL_SIMD_BYTE_DOT_H
#define ONXI_KERNEL_SIMD_BYTE_DOT_H

#include "kernel/simd/amx.h"

#if ONXI_LEVEL >= 4 /* ONX_ISA_VNNI; files of lower levels do not have it */

/* Rows and columns of a block of the result. A panel has COLUMNS columns. A slice of it has DEPTH elements of each, as
 * two strips of 16 columns; a strip has 16 lines of 4 elements per column, which are contiguous. */
enum { BLOCK_ROWS = 32, COLUMNS = 32, STRIP = 16, DEPTH = 64, SLICE = COLUMNS * DEPTH };

/* Elements of a packed column. */
static inline uint64_t padded_depth(uint64_t k)
{
    return (k + DEPTH - 1) / DEPTH * DEPTH;
}

/* ---- the right operand ---- */

/* Describes the elements to pack: n columns of `taps` * `c` elements; the elements of a tap are contiguous when
 * packed. */
typedef struct byte_packing {
    uint64_t n, taps, c;
    uint64_t n_step, tap_step, c_step; /* strides in bytes */
    uint64_t groups;                   /* each has n columns of its own; groups are consecutive */
    uint64_t is_unsigned;              /* a uint64_t, so that the struct has no padding: keys are compared by bytes */
} byte_packing;

static inline uint64_t panels_of(const byte_packing *q)
{
    return (q->n + COLUMNS - 1) / COLUMNS;
}

/* Bytes of all panels; the sums of all columns, COLUMNS per panel, follow them. */
static inline bool packed_bytes(const byte_packing *q, uint64_t *panels, uint64_t *all)
{
    uint64_t depth, columns, sums;
    return onxi_mul_u64(q->taps, q->c, &depth) && depth <= UINT64_MAX / 4 &&
           onxi_mul_u64(panels_of(q), q->groups, &columns) && columns <= UINT64_MAX / COLUMNS / 4 &&
           onxi_mul_u64(columns * COLUMNS, padded_depth(depth), panels) &&
           onxi_mul_u64(columns * COLUMNS, sizeof(int32_t), &sums) && onxi_add_u64(*panels, sums, all);
}

/* Gathers elements first .. first + count - 1 of a column, in packed order. */
static inline void gather_column(const byte_packing *q, const uint8_t *from, uint64_t first, uint64_t count,
                                 uint8_t *out)
{
    uint64_t t = first / q->c, c = first % q->c;
    for (uint64_t n; count; count -= n, out += n, t++, c = 0) {
        const uint8_t *x = from + t * q->tap_step + c * q->c_step;
        n = q->c - c < count ? q->c - c : count;
        for (uint64_t i = 0; i < n; i++)
            out[i] = x[i * q->c_step];
    }
}

static inline onx_status pack_panel(void *user, const void *elements, uint64_t piece, void *out)
{
    const byte_packing *q = user;
    const uint64_t k = q->taps * q->c, depth = padded_depth(k), panels = panels_of(q);
    const uint64_t group = piece / panels, first = piece % panels * COLUMNS;
    const uint64_t width = q->n - first < COLUMNS ? q->n - first : COLUMNS;
    const uint8_t flip = q->is_unsigned ? 0x80 : 0;
    int8_t *to = (int8_t *)out + piece * COLUMNS * depth;
    int32_t *sums = (int32_t *)(void *)((char *)out + q->groups * panels * COLUMNS * depth) + piece * COLUMNS;
    if (width < COLUMNS)
        memset(to, 0, COLUMNS * depth);
    memset(sums, 0, COLUMNS * sizeof *sums);
    for (uint64_t j = 0; j < width; j++) {
        const uint8_t *from = (const uint8_t *)elements + (group * q->n + first + j) * q->n_step;
        int8_t *column = to + j / STRIP * (SLICE / 2) + j % STRIP * 4;
        for (uint64_t at = 0; at < k; at += DEPTH, column += SLICE) {
            const uint64_t n = k - at < DEPTH ? k - at : DEPTH;
            uint8_t line[DEPTH] = { 0 };
            gather_column(q, from, at, n, line);
            for (uint64_t i = 0; i < n; i++) {
                line[i] ^= flip;
                sums[j] += (int8_t)line[i];
            }
            for (uint64_t i = 0; i < DEPTH; i += 4)
                memcpy(column + i * STRIP, line + i, 4);
        }
    }
    return ONX_OK;
}

/* ---- the left operand ---- */

/* VNNI multiplies unsigned by signed integers, so 128 is added to signed left elements. */
#if ONXI_LEVEL >= 6 /* ONX_ISA_AMX */
static const bool raises = false;
#else
static const bool raises = true;
#endif

/* Also writes up to 63 bytes after the end: rows are gathered in order, and there is room after the last one. */
static inline void copy_bytes(uint8_t *to, const uint8_t *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 64) {
        const __mmask64 part = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        _mm512_storeu_si512(to + i, _mm512_maskz_loadu_epi8(part, from + i));
    }
}

static inline void fill_bytes(uint8_t *to, uint8_t with, uint64_t n)
{
    const __m512i v = _mm512_set1_epi8((char)with);
    for (uint64_t i = 0; i < n; i += 64)
        _mm512_storeu_si512(to + i, v);
}

/* `n` is a multiple of the slice depth. */
static inline void raise_bytes(uint8_t *x, uint64_t n)
{
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    for (uint64_t i = 0; i < n; i += 64)
        _mm512_storeu_si512(x + i, _mm512_xor_si512(_mm512_loadu_si512(x + i), sign));
}

/* The sum of a row's elements as they are multiplied. */
static inline int32_t sum_bytes(const uint8_t *x, uint64_t n, bool is_signed)
{
    __m512i sum = _mm512_setzero_si512();
    const __m512i ones = _mm512_set1_epi8(1), flip = _mm512_set1_epi8(is_signed ? (char)0x80 : 0);
    for (uint64_t i = 0; i < n; i += 64) {
        const __mmask64 part = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        const __m512i raised = _mm512_xor_si512(_mm512_maskz_loadu_epi8(part, x + i), flip);
        sum = _mm512_dpbusd_epi32(sum, _mm512_maskz_mov_epi8(part, raised), ones);
    }
    return _mm512_reduce_add_epi32(sum) - (is_signed ? (int32_t)(128 * n) : 0);
}

/* ---- blocks of the result ---- */

typedef struct dot_operands {
    /* Rows of `slices` * DEPTH bytes with stride `lda`. Of a block of at most 16 rows, 16 rows are read, otherwise
     * 32, unless dot_reads_alone says that rows of k bytes are enough. */
    const uint8_t *a;
    const int8_t *b;      /* a panel */
    const int32_t *begin; /* COLUMNS initial values of the sums */
    uint64_t lda, slices, k;
    bool a_is_signed; /* never set where `raises` is */
} dot_operands;

/* May the left operand be `rows` contiguous rows of k bytes, with nothing read beyond them? */
static inline bool dot_reads_alone(uint64_t k, uint64_t rows)
{
    return raises ? k % 4 == 0 && rows % 4 == 0 : k % DEPTH == 0 && rows % 16 == 0;
}

/* Each unit of work configures the tiles and releases them at its end. */
#if ONXI_LEVEL >= 6
static inline void dot_begin(void)
{
    amx_begin();
}

static inline void dot_end(void)
{
    amx_end();
}

#define MULTIPLY(how, both)                                                                                            \
    for (uint64_t s = 0; s < t->slices; s++, a += DEPTH, b += SLICE) {                                                 \
        _tile_loadd(4, a, t->lda);                                                                                     \
        _tile_loadd(6, b, 64);                                                                                         \
        _tile_loadd(7, b + SLICE / 2, 64);                                                                             \
        how(0, 4, 6);                                                                                                  \
        how(1, 4, 7);                                                                                                  \
        if (both) {                                                                                                    \
            _tile_loadd(5, a + 16 * t->lda, t->lda);                                                                   \
            how(2, 5, 6);                                                                                              \
            how(3, 5, 7);                                                                                              \
        }                                                                                                              \
    }

/* sums = begin + a * b: `rows` rows of COLUMNS; up to 32 rows are written. */
static inline void dot_block(const dot_operands *t, uint64_t rows, int32_t *sums)
{
    const uint8_t *a = t->a;
    const int8_t *b = t->b;
    _tile_loadd(0, t->begin, 0); /* all rows of the tile are the same */
    _tile_loadd(1, t->begin + STRIP, 0);
    _tile_loadd(2, t->begin, 0);
    _tile_loadd(3, t->begin + STRIP, 0);
    if (rows > 16) {
        if (t->a_is_signed)
            MULTIPLY(_tile_dpbssd, true)
        else
            MULTIPLY(_tile_dpbusd, true)
        _tile_stored(2, sums + 16 * COLUMNS, COLUMNS * 4);
        _tile_stored(3, sums + 16 * COLUMNS + STRIP, COLUMNS * 4);
    } else if (t->a_is_signed) {
        MULTIPLY(_tile_dpbssd, false)
    } else {
        MULTIPLY(_tile_dpbusd, false)
    }
    _tile_stored(0, sums, COLUMNS * 4);
    _tile_stored(1, sums + STRIP, COLUMNS * 4);
}
#undef MULTIPLY
#else
static inline void dot_begin(void) {}

static inline void dot_end(void) {}

__attribute__((always_inline)) static inline void dot_rows(const dot_operands *t, uint64_t first, const int rows,
                                                           int32_t *sums)
{
    enum { MOST = 12 };
    __m512i sum[MOST][2];
    const uint8_t *a = t->a + first * t->lda;
    const int8_t *b = t->b;
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        sum[i][0] = _mm512_loadu_si512(t->begin);
        sum[i][1] = _mm512_loadu_si512(t->begin + STRIP);
    }
    for (uint64_t at = 0; at < t->k; at += DEPTH, b += SLICE) {
        const uint64_t depth = t->k - at < DEPTH ? t->k - at : DEPTH; /* packed elements beyond are 0 */
        for (uint64_t k = 0; k < depth; k += 4, a += 4) {
            const __m512i x = _mm512_loadu_si512(b + k * STRIP), y = _mm512_loadu_si512(b + SLICE / 2 + k * STRIP);
#pragma GCC unroll 12
            for (int i = 0; i < rows; i++) {
                int32_t four;
                memcpy(&four, a + (uint64_t)i * t->lda, sizeof four);
                const __m512i by = _mm512_set1_epi32(four);
                sum[i][0] = _mm512_dpbusd_epi32(sum[i][0], by, x);
                sum[i][1] = _mm512_dpbusd_epi32(sum[i][1], by, y);
            }
        }
    }
    sums += first * COLUMNS;
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        _mm512_storeu_si512(sums + i * COLUMNS, sum[i][0]);
        _mm512_storeu_si512(sums + i * COLUMNS + STRIP, sum[i][1]);
    }
}

/* sums = begin + a * b: `rows` rows of COLUMNS. */
static inline void dot_block(const dot_operands *t, uint64_t rows, int32_t *sums)
{
    for (uint64_t i = 0; i < rows;) {
        const uint64_t left = rows - i;
        if (left > 8)
            dot_rows(t, i, 12, sums);
        else if (left > 4)
            dot_rows(t, i, 8, sums);
        else
            dot_rows(t, i, 4, sums);
        i += left > 8 ? 12 : left > 4 ? 8 : 4;
    }
}
#endif

#endif
#endif
