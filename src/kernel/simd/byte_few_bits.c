/* byte_few_bits.c - products with low-bit weights by AVX512_VNNI, which multiplies four elements of a column by four of
 * a row. A left operand that is rounded to 8 bits has a scale per block and one digit per element. Other floats are
 * converted to integers of three 8-bit digits: 24 bits relative to the greatest element of a block, which is the
 * precision of a float sum. Sums of a block are exact. */
#include "kernel/core/few_bits.h"
#include "kernel/simd/cut.h"
#include "kernel/simd/simd.h"

#include <immintrin.h>
#include <math.h>

#if ONXI_LEVEL == 4 /* other levels use the functions of this one */

/* Vectors per strip; bytes of a line of words; prefetch distance in bytes; most rows of the left operand per unit of
 * work; largest block whose sums of two digits fit into 32 bits. */
enum {
    VECTORS = 2,
    COLUMNS = VECTORS * ONXI_LANES,
    LINE = 4 * COLUMNS,
    AHEAD = 8192,
    ROWS_MOST = 216,
    BLOCK_MOST = 256,
    DIGITS = 3
};

/* Rows multiplied together: many (their digits are added one after the other), some, or one. */
enum { MANY = 6, SOME = 3 };

#define ALL _Pragma("GCC unroll 32")

/* ---- the left side ---- */

/* How the left operand is represented: number of digits, and number of sums (parts) per block. With two parts, the
 * first one is for the highest digit. If one sum can hold all three digits, there is one part, all blocks of a row use
 * the same unit, and their sums are shifted to it (`narrow`); otherwise each part has a factor. */
typedef struct kind {
    unsigned bits;
    int digits, parts;
    bool narrow;
} kind;

static inline kind rounded_of(unsigned bits)
{
    return (kind){ bits, 1, 1, false };
}
static inline kind wide_of(unsigned bits)
{
    return (kind){ bits, DIGITS, 2, false };
}
static inline kind narrow_of(unsigned bits)
{
    return (kind){ bits, DIGITS, 1, true };
}

/* Elements are at most LARGEST = 127 * (65536 + 256 + 1); weights differ from the middle by at most 2^bits / 2. */
static kind kind_of(const onxi_few_bits *q)
{
    const bool fits = q->block << (q->bits - 1) <= 256; /* 256 * LARGEST < 2^31 */
    return q->rounded ? rounded_of(q->bits) : fits ? narrow_of(q->bits) : wide_of(q->bits);
}
enum { LARGEST = 127 * 65793 };

/* A row is stored as words of 32 bits, `words` of them per block: per part, a value to add to its sum; per part, a
 * shift count or factor; a factor for zero points; then the digits of the elements: of each four elements the lowest
 * digits, then the next ones. */
typedef struct left_side {
    uint64_t words, step; /* step: words per row */
    float *backs;         /* per row: the final factor of its sums */
    int32_t *rows;
} left_side;

static inline uint64_t digits_at(kind t)
{
    return 2 * (uint64_t)t.parts + 1;
}

static inline void put_float(int32_t *to, float x)
{
    memcpy(to, &x, sizeof x);
}

static inline float power_of_two(int e)
{
    const uint32_t bits = (uint32_t)(127 + e) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The power of two that scales elements of magnitude up to `most` to integers of three signed digits. */
static inline int power_for(float most)
{
    enum { LEAST = -100 };
    uint32_t bits;
    memcpy(&bits, &most, sizeof bits);
    const int e = (int)(bits >> 23) - 126, power = 23 - (e < LEAST ? LEAST : e); /* `most` is below 2^e */
    return most * power_of_two(power) <= (float)LARGEST ? power : power - 1;
}

static inline onxi_vf numbers_at(const float *x, uint64_t i, uint64_t n)
{
    return i + ONXI_LANES <= n ? vf_load(x + i) : vf_load_part(x + i, i < n ? n - i : 0, 0);
}

static inline float greatest_of(const float *x, uint64_t n)
{
    onxi_vf most = vf_all(0);
    for (uint64_t i = 0; i < n; i += ONXI_LANES)
        most = vf_max(vf_abs(numbers_at(x, i, n)), most);
    return _mm512_reduce_max_ps((__m512)most);
}

/* A finite number times 0 is 0. Are all lanes 0? */
static inline bool is_zero(onxi_vf v)
{
    return !_mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

/* The greatest magnitude of a row, while the next row is prefetched; NaN if an element is not finite. */
static float greatest_of_row(const float *x, uint64_t n)
{
    onxi_vf most = vf_all(0), bad = most;
    for (uint64_t i = 0; i < n; i += ONXI_LANES) {
        const onxi_vf v = numbers_at(x, i, n);
        __builtin_prefetch((const void *)((uintptr_t)(x + i) + n * sizeof *x));
        most = vf_max(vf_abs(v), most);
        bad += v * 0;
    }
    return is_zero(bad) ? _mm512_reduce_max_ps((__m512)most) : NAN;
}

/* Stores the digits of 16 integers. */
static inline void store_digits(__m512i v, const int digits, int32_t *out)
{
    /* After adding half a digit range to each digit, bytes are digits with an offset of 128, which the exclusive or
     * removes. */
    const __m512i half = _mm512_set1_epi32(0x00808080), bytes = _mm512_xor_si512(_mm512_add_epi32(v, half), half);
    const __m512i digit = _mm512_set4_epi32(-1, 0x0e0a0602, 0x0d090501, 0x0c080400),
                  three = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    if (digits == 1)
        _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(bytes));
    else
        _mm512_mask_storeu_epi32(out, 0x0fff, _mm512_permutexvar_epi32(three, _mm512_shuffle_epi8(bytes, digit)));
}

/* Converts a block of n elements, padded with zeros; `row_power` is the power for the greatest element of the row. */
__attribute__((always_inline)) static inline void take_block(const kind t, const float *x, uint64_t n, uint64_t block,
                                                             int row_power, int32_t *out)
{
    enum { APART_MOST = 23 }; /* largest difference of powers, so that sums have room for half a unit of the row */
    const float most = greatest_of(x, n), unit = most / 127;
    const int own = t.digits > 1 ? power_for(most) : 0,
              power = t.narrow && own - row_power > APART_MOST ? row_power + APART_MOST : own;
    const float by = t.digits > 1 ? power_of_two(power) : 0;
    __m512i sums = _mm512_setzero_si512(), highest = sums;
    for (uint64_t i = 0; i < block; i += ONXI_LANES) {
        const onxi_vf v = numbers_at(x, i, n);
        const __m512i whole = _mm512_cvtps_epi32((__m512)(t.digits > 1 ? v * by : unit > 0 ? v / unit : v * 0));
        sums = _mm512_add_epi32(sums, whole);
        if (t.parts > 1)
            highest =
                _mm512_add_epi32(highest, _mm512_srai_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(0x8080)), 16));
        store_digits(whole, t.digits, out + digits_at(t) + i / 4 * (uint64_t)t.digits);
    }
    /* Intermediate sums may wrap, so they are unsigned. */
    const uint32_t sum = (uint32_t)_mm512_reduce_add_epi32(sums), middle = 1u << (t.bits - 1);
    float back = t.digits > 1 ? power_of_two(t.narrow ? row_power - power : -power) : unit;
    if (t.parts > 1) {
        const uint32_t high = (uint32_t)_mm512_reduce_add_epi32(highest);
        out[0] = (int32_t)(-high * middle);
        out[1] = (int32_t)((high * 65536 - sum) * middle);
        put_float(out + 2, back * 65536);
        put_float(out + 3, back);
    } else {
        out[0] = (int32_t)((t.narrow ? (1u << (power - row_power)) >> 1 : 0) - sum * middle);
        out[1] = power - row_power;
        if (!t.narrow)
            put_float(out + 1, back);
    }
    put_float(out + 2 * t.parts, -(float)(int32_t)sum * back);
}

/* Converts a row of elements; returns the final factor of its sums. */
__attribute__((always_inline)) static inline float take_row(const onxi_few_bits *q, const kind t, const float *x,
                                                            uint64_t words, int32_t *out)
{
    const float most = greatest_of_row(x, q->k);
    const int power = t.narrow ? power_for(most) : 0;
    if (isnan(most))
        return NAN; /* makes the result NaN */
    for (uint64_t b = 0; b < q->blocks; b++, out += words) {
        const uint64_t at = b * q->block, n = q->k - at < q->block ? q->k - at : q->block;
        take_block(t, x + at, n, q->block, power, out);
    }
    return power_of_two(-power);
}

static void take_left(const onxi_few_bits *q, uint64_t m0, uint64_t m1, const left_side *left)
{
    const kind t = kind_of(q);
    for (uint64_t i = 0; i < m1 - m0; i++) {
        const float *x = q->a + (m0 + i) * q->k;
        int32_t *out = left->rows + i * left->step;
        if (t.narrow)
            left->backs[i] = take_row(q, narrow_of(q->bits), x, left->words, out);
        else if (t.parts > 1)
            left->backs[i] = take_row(q, wide_of(q->bits), x, left->words, out);
        else
            left->backs[i] = take_row(q, rounded_of(q->bits), x, left->words, out);
    }
}

/* ---- products ---- */

/* The zero points of a line, relative to the middle that sums are initialized with. */
static inline onxi_vf zeros_of(const onxi_few_bits *q, uint64_t line, int vector)
{
    const uint64_t at = line * COLUMNS + (uint64_t)vector * ONXI_LANES;
    const float middle = (float)(1 << (q->bits - 1));
    if (q->is_real)
        return vf_load((const float *)q->zeros + at) - middle;
    const __m128i *bytes = (const void *)((const uint8_t *)q->zeros + at);
    return (onxi_vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes))) - middle;
}

static inline onxi_vf float_of(const int32_t *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return vf_all(x);
}

/* Adds products of four elements each. With the intrinsic, gcc would copy each sum twice, which takes longer than the
 * products. */
static inline void add_products(__m512i *sum, __m512i numbers, __m512i digits)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(numbers), "v"(digits));
}

/* Extracts the i-th element of each byte in a line of words. */
__attribute__((always_inline)) static inline void numbers_of(const unsigned bits, const uint8_t *line, unsigned i,
                                                             __m512i x[VECTORS])
{
    const __m512i mask = _mm512_set1_epi8((char)((1u << bits) - 1));
    ALL for (int s = 0; s < VECTORS; s++)
    {
        const __m512i v = _mm512_loadu_si512(line + s * LINE / VECTORS);
        x[s] = bits == 8 ? v : _mm512_and_si512(_mm512_srli_epi32(v, i * bits), mask);
    }
}

/* Converts part `part` of a row's block sum to float. */
__attribute__((always_inline)) static inline onxi_vf real_of(const kind t, __m512i sum, const int32_t *a, int part)
{
    const int32_t *by = a + t.parts + part;
    return t.narrow ? (onxi_vf)_mm512_cvtepi32_ps(_mm512_srav_epi32(sum, _mm512_set1_epi32(*by)))
                    : (onxi_vf)_mm512_cvtepi32_ps(sum) * float_of(by);
}

/* Multiplies a block of many rows with words, digit by digit from the highest on. Each row has one sum, which is
 * shifted by a digit in between. */
__attribute__((always_inline)) static inline void digit_by_digit(const kind t, const int rows, uint64_t block,
                                                                 const uint8_t *words, const int32_t *const *a,
                                                                 const float *scales, onxi_vf (*out)[VECTORS])
{
    const unsigned each = 8 / t.bits;
    __m512i sums[MANY][VECTORS];
    ALL for (int i = 0; i < rows * VECTORS; i++) sums[i / VECTORS][i % VECTORS] =
        t.digits > 1 ? _mm512_setzero_si512() : _mm512_set1_epi32(a[i / VECTORS][0]);
    _Pragma("GCC unroll 1") for (int d = t.digits - 1; d >= 0; d--)
    {
        uint64_t at = digits_at(t) + (uint64_t)d;
        if (d < t.digits - 1)
            ALL for (int i = 0; i < rows * VECTORS; i++) sums[i / VECTORS][i % VECTORS] =
                _mm512_slli_epi32(sums[i / VECTORS][i % VECTORS], 8);
        _Pragma("GCC unroll 1") for (const uint8_t *line = words, *end = words + block * t.bits / 8 * COLUMNS;
                                     line < end; line += 4 / each * LINE, at += 4 * (uint64_t)t.digits)
            ALL for (unsigned k = 0; k < 4; k++)
        {
            __m512i x[VECTORS];
            numbers_of(t.bits, line + k / each * LINE, k % each, x);
            ALL for (int r = 0; r < rows; r++)
            {
                const __m512i four = _mm512_set1_epi32(a[r][at + k * (unsigned)t.digits]);
                add_products(&sums[r][0], x[0], four);
                add_products(&sums[r][1], x[1], four);
            }
        }
    }
    ALL for (int r = 0; r < rows; r++) ALL for (int s = 0; s < VECTORS; s++)
    {
        const __m512i sum = t.digits > 1 ? _mm512_add_epi32(sums[r][s], _mm512_set1_epi32(a[r][0])) : sums[r][s];
        out[r][s] += vf_load(scales + s * ONXI_LANES) * real_of(t, sum, a[r], 0);
    }
}

/* Multiplies a block of a few rows with words, all digits at once, so that there are enough independent sums. */
__attribute__((always_inline)) static inline void digits_at_once(const kind t, const int rows, uint64_t block,
                                                                 const uint8_t *words, const int32_t *const *a,
                                                                 const float *scales, onxi_vf (*out)[VECTORS])
{
    const unsigned each = 8 / t.bits;
    const uint64_t lines = block * t.bits / 32;
    __m512i sums[DIGITS][SOME][VECTORS];
    ALL for (int d = 0; d < t.digits; d++) ALL for (int r = 0; r < rows; r++) ALL for (int s = 0; s < VECTORS; s++)
        sums[d][r][s] = d == 0                     ? _mm512_set1_epi32(a[r][t.parts - 1])
                        : d + 1 == t.parts * 2 - 1 ? _mm512_set1_epi32(a[r][0])
                                                   : _mm512_setzero_si512();
    for (uint64_t w = 0, at = digits_at(t); w < lines; w++, words += LINE, at += each * (unsigned)t.digits) {
        __builtin_prefetch((const void *)((uintptr_t)words + AHEAD));
        __builtin_prefetch((const void *)((uintptr_t)words + AHEAD + LINE / 2));
        ALL for (unsigned i = 0; i < each; i++)
        {
            __m512i x[VECTORS];
            numbers_of(t.bits, words, i, x);
            ALL for (int r = 0; r < rows; r++) ALL for (int d = 0; d < t.digits; d++)
            {
                const __m512i four = _mm512_set1_epi32(a[r][at + i * (unsigned)t.digits + (unsigned)d]);
                add_products(&sums[d][r][0], x[0], four);
                add_products(&sums[d][r][1], x[1], four);
            }
        }
    }
    ALL for (int r = 0; r < rows; r++) ALL for (int s = 0; s < VECTORS; s++)
    {
        __m512i low = sums[0][r][s];
        if (t.digits > 1) {
            const __m512i middle = sums[1][r][s], high = _mm512_slli_epi32(sums[DIGITS - 1][r][s], 8);
            low = _mm512_add_epi32(low, _mm512_slli_epi32(t.parts > 1 ? middle : _mm512_add_epi32(middle, high), 8));
        }
        onxi_vf x = real_of(t, low, a[r], t.parts - 1);
        if (t.parts > 1)
            x += real_of(t, sums[DIGITS - 1][r][s], a[r], 0);
        out[r][s] += vf_load(scales + s * ONXI_LANES) * x;
    }
}

/* Multiplies `rows` rows of the left operand from `first` on with a strip whose words are given. If there are only
 * `height` rows, the last one is repeated. */
__attribute__((always_inline)) static inline void dots(const onxi_few_bits *q, const kind t, const int rows,
                                                       const left_side *left, uint64_t first, uint64_t height,
                                                       uint64_t strip, const uint8_t *words, onxi_vf (*out)[VECTORS])
{
    const uint64_t size = q->block * t.bits / 8 * COLUMNS;
    const float *scales = q->scales + strip * q->blocks * COLUMNS;
    const int32_t *a[MANY];
    onxi_vf sum[MANY][VECTORS];
    ALL for (int r = 0; r < rows; r++)
    {
        a[r] = left->rows + (first + ((uint64_t)r < height ? (uint64_t)r : height - 1)) * left->step;
        sum[r][0] = sum[r][1] = vf_all(0);
    }
    for (uint64_t b = 0; b < q->blocks; b++, words += size, scales += COLUMNS) {
        if (rows > SOME)
            digit_by_digit(t, rows, q->block, words, a, scales, sum);
        else
            digits_at_once(t, rows, q->block, words, a, scales, sum);
        if (rows <= SOME) {
            __builtin_prefetch((const void *)((uintptr_t)scales + AHEAD / 4));
            __builtin_prefetch((const void *)((uintptr_t)scales + AHEAD / 4 + 64));
        }
        if (q->has_zeros)
            ALL for (int s = 0; s < VECTORS; s++)
            {
                const onxi_vf zero = zeros_of(q, strip * q->blocks + b, s) * vf_load(scales + s * ONXI_LANES);
                ALL for (int r = 0; r < rows; r++) sum[r][s] += zero * float_of(a[r] + 2 * t.parts);
            }
        ALL for (int r = 0; r < rows; r++) a[r] += left->words;
    }
    ALL for (int i = 0; i < rows * VECTORS; i++) out[i / VECTORS][i % VECTORS] = sum[i / VECTORS][i % VECTORS];
}

typedef void run_rows(const onxi_few_bits *q, const left_side *left, uint64_t first, uint64_t height, uint64_t strip,
                      const uint8_t *words, onxi_vf (*out)[VECTORS]);

#define EACH(kind_, bits_, rows_)                                                                                      \
    static void kind_##_##bits_##_##rows_(const onxi_few_bits *q, const left_side *left, uint64_t first,               \
                                          uint64_t height, uint64_t strip, const uint8_t *words,                       \
                                          onxi_vf(*out)[VECTORS])                                                      \
    {                                                                                                                  \
        dots(q, kind_##_of(bits_), rows_, left, first, height, strip, words, out);                                     \
    }
EACH(narrow, 2, 1)
EACH(narrow, 4, 1)
EACH(wide, 2, 1)
EACH(wide, 4, 1)
EACH(wide, 8, 1)
EACH(rounded, 2, 1)
EACH(rounded, 4, 1)
EACH(rounded, 8, 1)
EACH(narrow, 2, 3)
EACH(narrow, 4, 3)
EACH(wide, 2, 3)
EACH(wide, 4, 3)
EACH(wide, 8, 3)
EACH(rounded, 2, 3)
EACH(rounded, 4, 3)
EACH(rounded, 8, 3)
EACH(narrow, 8, 6)
EACH(rounded, 2, 6)
EACH(rounded, 4, 6)
EACH(rounded, 8, 6)
#undef EACH

/* Rows to process together if `left` remain. With two parts, many rows would need too many registers. */
static uint64_t together(kind t, uint64_t left)
{
    return left > SOME && t.parts == 1 ? MANY : left > 1 ? SOME : 1;
}

static run_rows *way_of(kind t, uint64_t rows)
{
    static run_rows *const ways[3][3][3] = {
        { { narrow_2_1, narrow_4_1, NULL }, { narrow_2_3, narrow_4_3, NULL }, { narrow_8_6, narrow_8_6, NULL } },
        { { wide_2_1, wide_4_1, wide_8_1 }, { wide_2_3, wide_4_3, wide_8_3 }, { NULL } },
        { { rounded_2_1, rounded_4_1, rounded_8_1 },
          { rounded_2_3, rounded_4_3, rounded_8_3 },
          { rounded_2_6, rounded_4_6, rounded_8_6 } },
    };
    return ways[t.narrow ? 0 : t.parts > 1 ? 1 : 2][rows == MANY ? 2 : rows > 1][t.bits / 4];
}

/* Expands a strip to bytes: pays for many rows with three digits, which use them repeatedly. */
static const uint8_t *bytes_of(const onxi_few_bits *q, const uint8_t *words, uint8_t *out)
{
    const unsigned each = 8 / q->bits;
    __m512i x[VECTORS];
    uint8_t *to = out;
    for (uint64_t i = 0; i < q->row_bytes / 4; i++, words += LINE)
        for (unsigned k = 0; k < each; k++, to += LINE) {
            if (q->bits == 4)
                numbers_of(4, words, k, x);
            else
                numbers_of(2, words, k, x);
            _mm512_storeu_si512(to, x[0]);
            _mm512_storeu_si512(to + LINE / 2, x[1]);
        }
    return out;
}

/* Divides the memory of a unit of work: digits of rows, their factors, and a strip as bytes. */
static bool room_of(const onxi_few_bits *q, left_side *left, uint64_t *bytes_at, uint64_t *total)
{
    const kind t = kind_of(q);
    uint64_t width;
    left->words = digits_at(t) + (uint64_t)t.digits * q->block / 4;
    if (!onxi_mul_u64(q->blocks, q->block * DIGITS * COLUMNS, &width) ||
        !onxi_mul_u64(width + COLUMNS, q->rows_each + 1, total) || *total > UINT64_MAX / 64)
        return false;
    left->step = left->words * q->blocks;
    *bytes_at = (q->rows_each * (left->step * sizeof(int32_t) + sizeof(float)) + 63) / 64 * 64;
    *total = *bytes_at + (q->m > SOME && t.narrow ? q->blocks * q->block * COLUMNS : 0);
    return true;
}

/* Writes the results of a strip for some rows. Returns false if some are not finite. */
static bool finish_rows(const onxi_few_bits *q, const float *backs, const onxi_vf (*sums)[VECTORS], uint64_t m,
                        uint64_t rows, uint64_t column)
{
    const uint64_t count = q->n - column;
    onxi_vf bad = vf_all(0);
    for (uint64_t s = 0; s * ONXI_LANES < count && s < VECTORS; s++) {
        const uint64_t at = s * ONXI_LANES;
        const onxi_vf bias = q->bias ? numbers_at(q->bias + column, at, count) : vf_all(0);
        for (uint64_t r = 0; r < rows; r++) {
            float *y = q->y + (m + r) * q->n + column + at;
            const onxi_vf v = sums[r][s] * backs[r] + bias;
            bad += v * 0;
            if (at + ONXI_LANES <= count)
                vf_store(y, v);
            else
                vf_store_part(y, v, count - at);
        }
    }
    return is_zero(bad);
}

static bool piece(const onxi_few_bits *q, uint64_t m0, uint64_t m1, uint64_t n0, uint64_t n1, void *memory)
{
    const kind t = kind_of(q);
    left_side left;
    uint64_t bytes_at, total;
    if (!room_of(q, &left, &bytes_at, &total))
        return false; /* cannot happen: `plan` has succeeded */
    left.rows = memory;
    left.backs = (float *)memory + q->rows_each * left.step;
    take_left(q, m0, m1, &left);
    bool finite = true;
    for (uint64_t n = n0, strip = 0; n < n1; n += COLUMNS, strip++) {
        const uint8_t *words = q->weights + strip * q->row_bytes * COLUMNS, *bytes = words;
        if (t.narrow && together(t, m1 - m0) == MANY)
            bytes = bytes_of(q, words, (uint8_t *)memory + bytes_at);
        for (uint64_t m = m0, rows; m < m1; m += rows) {
            onxi_vf sums[MANY][VECTORS];
            rows = together(t, m1 - m);
            const uint64_t height = m1 - m < rows ? m1 - m : rows;
            way_of(t, rows)(q, &left, m - m0, height, strip, rows == MANY ? bytes : words, sums);
            finite &= finish_rows(q, left.backs + (m - m0), (const onxi_vf(*)[VECTORS])sums, m, height, n);
        }
    }
    return finite;
}

/* The left operand is converted once per unit of work. With many rows, a few units of work divide the rows among
 * threads; with few rows, the columns are divided. */
static bool plan(onxi_few_bits *q, unsigned threads, uint64_t *memory)
{
    enum { WHOLE = 64, ALONE = 24 };
    const uint64_t some = threads > 1 ? 2 * (uint64_t)threads : 1;
    left_side left;
    uint64_t bytes_at;
    if (q->block > BLOCK_MOST)
        return false;
    const bool by_rows = q->m >= ALONE * some;
    const uint64_t blocks = (q->m + ROWS_MOST - 1) / ROWS_MOST, even = (blocks + some - 1) / some * some;
    const uint64_t parts = by_rows ? even : blocks, columns = (q->n + WHOLE - 1) / WHOLE;
    q->rows_each = (q->m + parts - 1) / parts;
    q->columns_each = WHOLE * (by_rows ? columns : cut_evenly(columns, blocks, threads, CUT_FEW));
    return room_of(q, &left, &bytes_at, memory);
}

const onxi_few_bits_ops onxi_few_bits_vnni = { .lanes = COLUMNS, .plan = plan, .piece = piece };

#endif
