/* byte_few_bits.c - products with weights of few bits by AVX512_VNNI, which multiplies four numbers of a column by four
 * of a row: a left side that is rounded to 8 bits has a scale for each block and one digit; other floats have three,
 * 24 bits below the greatest of a block, which is what a sum of floats keeps of it. Sums of a block are exact. */
#include "kernel/core/few_bits.h"
#include "kernel/simd/simd.h"

#include <immintrin.h>
#include <math.h>

#if ONXI_LEVEL == 4 /* ONX_ISA_VNNI; others use this one */

/* Vectors of a strip; bytes of a line of words; bytes that are asked for in advance; rows of the left side that a piece
 * of work has at most; numbers of a block of which sums of two digits have room in 32 bits. */
enum {
    VECTORS = 2,
    COLUMNS = VECTORS * ONXI_LANES,
    LINE = 4 * COLUMNS,
    AHEAD = 8192,
    ROWS_MOST = 216,
    BLOCK_MOST = 256,
    DIGITS = 3
};

#define ALL _Pragma("GCC unroll 32")

/* ---- the left side ---- */

/* Of a block of a row: what sums of its digits are multiplied by, those of the first two together and that of the
 * third; what they begin with, so that the zero point that all columns have is taken out; what zero points of columns
 * are multiplied by. */
typedef struct block_factors {
    float low, high, zero;
    int32_t start[DIGITS];
} block_factors;

/* Rows of such blocks, and of digits: one array each. */
typedef struct left_side {
    block_factors *factors;
    int8_t *digits;
    uint64_t width, step; /* bytes of an array; of a row */
} left_side;

static int digits_of(const onxi_few_bits *q)
{
    return q->rounded ? 1 : DIGITS;
}

/* Power of two by which numbers of up to `most` become integers of 24 bits, in three signed digits. */
static float three_digits(float most)
{
    enum { LARGEST = 127 * 65536 + 127 * 256 + 127, LEAST = -100 };
    uint32_t bits;
    memcpy(&bits, &most, sizeof bits);
    const int e = (int)(bits >> 23) - 126; /* `most` is below 2^e */
    const uint32_t power = (uint32_t)(127 + 23 - (e < LEAST ? LEAST : e)) << 23;
    float scale;
    memcpy(&scale, &power, sizeof scale);
    return most * scale <= (float)LARGEST ? scale : scale / 2;
}

/* `n` numbers, 0 behind them up to a multiple of 16; digits are `width` apart. */
__attribute__((always_inline)) static inline block_factors take_block(const onxi_few_bits *q, const float *x,
                                                                      uint64_t n, const int digits, int8_t *out)
{
    onxi_vf most = vf_all(0), bad = vf_all(0);
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const onxi_vf v = vf_load_part(x + i, n - i, 0);
        most = vf_max(vf_abs(v), most);
        bad += v * 0;
    }
    const float greatest = _mm512_reduce_max_ps((__m512)most);
    const float unit = digits == 1 ? greatest / 127 : greatest > 0 ? three_digits(greatest) : 0;
    const uint64_t width = q->blocks * q->block;
    __m512i sums[DIGITS] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512() };
    for (uint64_t i = 0; i < q->block; i += ONXI_LANES) {
        const onxi_vf v = vf_load_part(x + i, i < n ? n - i : 0, 0);
        __m512i whole = _mm512_setzero_si512();
        if (unit > 0)
            whole = _mm512_cvtps_epi32((__m512)(digits == 1 ? v / unit : v * unit));
        for (int d = 0; d < digits; d++) {
            const __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(whole, 24), 24);
            _mm_storeu_si128((__m128i *)(void *)(out + (uint64_t)d * width + i), _mm512_cvtepi32_epi8(low));
            sums[d] = _mm512_add_epi32(sums[d], low);
            whole = _mm512_srai_epi32(_mm512_sub_epi32(whole, low), 8);
        }
    }
    float back = digits == 1 || unit == 0 ? unit : 1 / unit;
    if (_mm512_cmp_ps_mask((__m512)bad, _mm512_setzero_ps(), _CMP_NEQ_UQ))
        back = NAN; /* what is not finite is no digit, and shows in the result */
    block_factors f = { .low = back, .high = back * 65536 };
    double total = 0;
    for (int d = digits - 1; d >= 0; d--) {
        const int32_t of_digit = _mm512_reduce_add_epi32(sums[d]);
        total = total * 256 + of_digit;
        f.start[d] = q->has_zeros ? 0 : -of_digit * (1 << (q->bits - 1));
    }
    f.zero = (float)(-total * (double)back);
    return f;
}

__attribute__((always_inline)) static inline void take_left(const onxi_few_bits *q, uint64_t m0, uint64_t m1,
                                                            const int digits, const left_side *left)
{
    for (uint64_t m = m0; m < m1; m++)
        for (uint64_t b = 0; b < q->blocks; b++) {
            const uint64_t at = b * q->block, n = q->k - at < q->block ? q->k - at : q->block;
            left->factors[(m - m0) * q->blocks + b] =
                take_block(q, q->a + m * q->k + at, n, digits, left->digits + (m - m0) * left->step + at);
        }
}

/* ---- products ---- */

/* The zero points of a line, where there are any. */
static inline onxi_vf zeros_of(const onxi_few_bits *q, uint64_t line, int vector)
{
    const uint64_t at = line * COLUMNS + (uint64_t)vector * ONXI_LANES;
    if (q->is_real)
        return vf_load((const float *)q->zeros + at);
    const __m128i *bytes = (const void *)((const uint8_t *)q->zeros + at);
    return (onxi_vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes)));
}

static inline __m512i four_of(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* Adds products of four numbers each. Around the intrinsic gcc copies every sum twice, which takes longer than the
 * products. */
static inline void add_products(__m512i *sum, __m512i numbers, __m512i digits)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(numbers), "v"(digits));
}

/* `rows` rows from `first` on (the last of them again where there are fewer: `height`) times a strip. */
__attribute__((always_inline)) static inline void dots(const onxi_few_bits *q, const unsigned bits, const int digits,
                                                       const int rows, const left_side *left, uint64_t first,
                                                       uint64_t height, uint64_t strip, float *out)
{
    enum { MOST = 6 };
    const unsigned each = 8 / bits;
    const uint64_t count = q->block * bits / 32, blocks = q->blocks;
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const uint8_t *words = q->weights + strip * q->row_bytes * COLUMNS;
    const float *scales = q->scales + strip * blocks * COLUMNS;
    const int8_t *a[MOST];
    const block_factors *factors[MOST];
    onxi_vf sum[MOST][VECTORS];
    ALL for (int r = 0; r < rows; r++)
    {
        const uint64_t row = first + ((uint64_t)r < height ? (uint64_t)r : height - 1);
        a[r] = left->digits + row * left->step;
        factors[r] = left->factors + row * blocks;
        sum[r][0] = sum[r][1] = vf_all(0);
    }
    for (uint64_t b = 0, at = 0; b < blocks; b++) {
        __m512i part[MOST][VECTORS][DIGITS];
        ALL for (int i = 0; i < rows * VECTORS * digits; i++)
            part[i / (VECTORS * digits)][i / digits % VECTORS][i % digits] =
                _mm512_set1_epi32(factors[i / (VECTORS * digits)][b].start[i % digits]);
        for (uint64_t w = 0; w < count; w++, words += LINE, at += 4 * each) {
            const __m512i v[VECTORS] = { _mm512_loadu_si512(words), _mm512_loadu_si512(words + LINE / 2) };
            __builtin_prefetch((const void *)((uintptr_t)words + AHEAD));
            __builtin_prefetch((const void *)((uintptr_t)words + AHEAD + LINE / 2));
            ALL for (unsigned i = 0; i < each; i++)
            {
                __m512i x[VECTORS];
                ALL for (int s = 0; s < VECTORS; s++) x[s] =
                    bits == 8 ? v[s] : _mm512_and_si512(_mm512_srli_epi32(v[s], i * bits), mask);
                ALL for (int r = 0; r < rows; r++) ALL for (int d = 0; d < digits; d++)
                {
                    const __m512i by = four_of(a[r] + (uint64_t)d * left->width + at + 4 * i);
                    add_products(&part[r][0][d], x[0], by);
                    add_products(&part[r][1][d], x[1], by);
                }
            }
        }
        __builtin_prefetch((const void *)((uintptr_t)(scales + b * COLUMNS) + AHEAD / 4));
        __builtin_prefetch((const void *)((uintptr_t)(scales + b * COLUMNS) + AHEAD / 4 + 64));
        ALL for (int s = 0; s < VECTORS; s++)
        {
            const onxi_vf scale = vf_load(scales + b * COLUMNS + s * ONXI_LANES);
            const onxi_vf zero = q->has_zeros ? zeros_of(q, strip * blocks + b, s) : vf_all(0);
            ALL for (int r = 0; r < rows; r++)
            {
                const block_factors *f = factors[r] + b;
                __m512i low = part[r][s][0];
                if (digits > 1)
                    low = _mm512_add_epi32(low, _mm512_slli_epi32(part[r][s][1], 8));
                onxi_vf p = (onxi_vf)_mm512_cvtepi32_ps(low) * f->low;
                if (digits > 1)
                    p += (onxi_vf)_mm512_cvtepi32_ps(part[r][s][2]) * f->high;
                if (q->has_zeros)
                    p += zero * f->zero;
                sum[r][s] += scale * p;
            }
        }
    }
    ALL for (int r = 0; r < rows; r++)
    {
        vf_store(out + r * COLUMNS, sum[r][0]);
        vf_store(out + (r * VECTORS + 1) * ONXI_LANES, sum[r][1]);
    }
}

/* Rows that are multiplied together: sums of all of them are in registers. */
enum { ROWS_OF_ONE = 6, ROWS_OF_THREE = 3 };

#define EACH(bits_, digits_, rows_)                                                                                    \
    static void dots_##bits_##_##digits_##_##rows_(const onxi_few_bits *q, const left_side *left, uint64_t first,      \
                                                   uint64_t height, uint64_t strip, float *out)                        \
    {                                                                                                                  \
        dots(q, bits_, digits_, rows_, left, first, height, strip, out);                                               \
    }
EACH(2, 1, 1)
EACH(4, 1, 1)
EACH(8, 1, 1)
EACH(2, 1, 6)
EACH(4, 1, 6)
EACH(8, 1, 6)
EACH(2, 3, 1)
EACH(4, 3, 1)
EACH(8, 3, 1)
EACH(2, 3, 3)
EACH(4, 3, 3)
EACH(8, 3, 3)
#undef EACH

typedef struct way {
    unsigned bits;
    int digits;
    uint64_t rows;
    void (*run)(const onxi_few_bits *q, const left_side *left, uint64_t first, uint64_t height, uint64_t strip,
                float *out);
} way;

static const way ways[] = {
    { 2, 1, 1, dots_2_1_1 }, { 4, 1, 1, dots_4_1_1 }, { 8, 1, 1, dots_8_1_1 }, { 2, 1, 6, dots_2_1_6 },
    { 4, 1, 6, dots_4_1_6 }, { 8, 1, 6, dots_8_1_6 }, { 2, 3, 1, dots_2_3_1 }, { 4, 3, 1, dots_4_3_1 },
    { 8, 3, 1, dots_8_3_1 }, { 2, 3, 3, dots_2_3_3 }, { 4, 3, 3, dots_4_3_3 }, { 8, 3, 3, dots_8_3_3 },
};

static const way *way_of(unsigned bits, int digits, uint64_t rows)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].bits == bits && ways[i].digits == digits && ways[i].rows == rows)
            return &ways[i];
    return NULL;
}

/* Bytes of the memory of a piece: factors, then digits. */
static bool room_of(const onxi_few_bits *q, uint64_t *digits_at, uint64_t *total)
{
    uint64_t width, all;
    if (!onxi_mul_u64(q->blocks, q->block, &width) || width > UINT64_MAX / 4096 ||
        !onxi_mul_u64(q->blocks * sizeof(block_factors) + width * DIGITS, q->rows_each, &all))
        return false;
    *digits_at = q->rows_each * q->blocks * sizeof(block_factors);
    *total = *digits_at + q->rows_each * width * (uint64_t)digits_of(q);
    return true;
}

static void one_strip(const onxi_few_bits *q, const way *by, const left_side *left, uint64_t strip, uint64_t m0,
                      uint64_t m1, uint64_t column, uint64_t count)
{
    for (uint64_t m = m0; m < m1; m += by->rows) {
        float out[ROWS_OF_ONE * COLUMNS];
        const uint64_t height = m1 - m < by->rows ? m1 - m : by->rows;
        by->run(q, left, m - m0, height, strip, out);
        for (uint64_t i = 0; i < height; i++)
            for (uint64_t j = 0; j < count; j++)
                q->y[(m + i) * q->n + column + j] = out[i * COLUMNS + j] + (q->bias ? q->bias[column + j] : 0);
    }
}

static void piece(const onxi_few_bits *q, uint64_t m0, uint64_t m1, uint64_t n0, uint64_t n1, void *memory)
{
    uint64_t digits_at, total;
    if (!room_of(q, &digits_at, &total))
        return; /* `plan` has asked */
    const int digits = digits_of(q);
    const uint64_t width = q->blocks * q->block;
    const left_side left = { memory, (int8_t *)memory + digits_at, width, width * (uint64_t)digits };
    const way *by = way_of(q->bits, digits, q->m == 1 ? 1 : q->rounded ? ROWS_OF_ONE : ROWS_OF_THREE);
    if (digits == 1)
        take_left(q, m0, m1, 1, &left);
    else
        take_left(q, m0, m1, DIGITS, &left);
    for (uint64_t n = n0, strip = 0; n < n1; n += COLUMNS, strip++)
        one_strip(q, by, &left, strip, m0, m1, n, n1 - n < COLUMNS ? n1 - n : COLUMNS);
}

/* The left side is taken once for each piece: many rows are cut for threads, in a few pieces; a few rows have their
 * columns cut. */
static bool plan(onxi_few_bits *q, unsigned threads, uint64_t *memory)
{
    enum { WHOLE = 64, ALONE = 24 };
    const uint64_t pieces = threads > 1 ? 4 * (uint64_t)threads : 1, halves = (pieces + 1) / 2;
    uint64_t digits_at;
    if (q->block > BLOCK_MOST)
        return false;
    const bool by_rows = q->m >= ALONE * halves;
    const uint64_t blocks = (q->m + ROWS_MOST - 1) / ROWS_MOST, parts = by_rows && blocks < halves ? halves : blocks;
    const uint64_t columns = by_rows ? q->n : (q->n + pieces - 1) / pieces;
    q->rows_each = ((q->m + parts - 1) / parts + ROWS_OF_ONE - 1) / ROWS_OF_ONE * ROWS_OF_ONE;
    q->columns_each = (columns + WHOLE - 1) / WHOLE * WHOLE;
    return room_of(q, &digits_at, memory);
}

const onxi_few_bits_ops onxi_few_bits_vnni = { .lanes = COLUMNS, .plan = plan, .piece = piece };

#endif
