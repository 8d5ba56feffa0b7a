/* few_bits.c - products with weights of 4 or 8 bits. A few rows go over the weights in place, at the speed of
 * memory: the left side is laid out as the numbers come out of the bytes. Many rows are multiplied by a panel of
 * columns that is dequantized. */
#include "kernel/core/few_bits.h"
#include "kernel/simd/tile.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <math.h>

/* Rows that are too few for a panel; columns that are processed together; k that is dequantized at a time. */
enum { FEW = 4, TOGETHER = 4, PIECE = 64 };

#if !defined(__AVX2__)
typedef uint8_t few_bytes __attribute__((vector_size(ONXI_LANES)));
#endif

/* A vector of bytes as integers: there are no shifts of bytes. The compilers take the general form apart. */
static onxi_vi load_bytes(const uint8_t *p)
{
#if ONXI_LANES == 16 && defined(__AVX512F__)
    return (onxi_vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif ONXI_LANES == 8 && defined(__AVX2__)
    return (onxi_vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
    few_bytes v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, onxi_vi);
#endif
}

static onxi_vf real(onxi_vi v)
{
    return __builtin_convertvector(v, onxi_vf);
}

static bool fits(const onxi_few_bits *q)
{
    return (q->bits == 4 && q->block % (2 * ONXI_LANES) == 0) || (q->bits == 8 && q->block % ONXI_LANES == 0);
}

/* The left side with whole blocks, their sums, a panel. */
static bool memory(const onxi_few_bits *q, uint64_t *out)
{
    uint64_t left, panel;
    return onxi_mul_u64(q->blocks * q->block + q->blocks, q->m, &left) && onxi_mul_u64(q->k, PANEL, &panel) &&
           onxi_add_u64(left, panel, out) && *out < UINT64_MAX / 64;
}

/* ---- the left side ---- */

/* What 8 bits keep of a block. */
static void round_block(float *x, uint64_t n)
{
    float most = 0;
    for (uint64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    const float scale = most / 127;
    for (uint64_t i = 0; scale > 0 && i < n; i++)
        x[i] = rintf(x[i] / scale) * scale;
}

/* Numbers with even and with odd places are separated, a vector each. */
static void part_block(float *x, uint64_t n)
{
    float t[2 * ONXI_LANES];
    for (uint64_t i = 0; i < n; i += 2 * ONXI_LANES) {
        for (uint64_t k = 0; k < ONXI_LANES; k++) {
            t[k] = x[i + 2 * k];
            t[ONXI_LANES + k] = x[i + 2 * k + 1];
        }
        memcpy(x + i, t, sizeof t);
    }
}

static void take_left(const onxi_few_bits *q, float *left, float *sums)
{
    const uint64_t width = q->blocks * q->block;
    for (uint64_t m = 0; m < q->m; m++)
        for (uint64_t b = 0; b < q->blocks; b++) {
            float *x = left + m * width + b * q->block, sum = 0;
            const uint64_t at = b * q->block, n = q->k - at < q->block ? q->k - at : q->block;
            memcpy(x, q->a + m * q->k + at, n * sizeof *x);
            memset(x + n, 0, (q->block - n) * sizeof *x);
            if (q->rounded)
                round_block(x, n);
            for (uint64_t i = 0; i < n; i++)
                sum += x[i];
            sums[m * q->blocks + b] = sum;
            if (q->bits == 4 && q->m <= FEW)
                part_block(x, q->block);
        }
}

static float zero_of(const onxi_few_bits *q, uint64_t row, uint64_t block)
{
    if (q->real_zeros)
        return q->real_zeros[row * q->blocks + block];
    if (!q->zeros)
        return q->bits == 4 ? 8 : 128;
    const uint8_t *zeros = q->zeros + row * q->zero_bytes;
    return q->bits == 4 ? (float)(zeros[block / 2] >> block % 2 * 4 & 15) : (float)zeros[block];
}

/* ---- a few rows ---- */

/* One row times `count` columns from `column` on, without the zero points. */
__attribute__((always_inline)) static inline void
some_dots(const onxi_few_bits *q, const unsigned bits, const int count, const float *left, uint64_t column, float *out)
{
    const uint8_t *from[TOGETHER];
    const float *scales[TOGETHER];
    onxi_vf sum[TOGETHER];
    UNROLL
    for (int j = 0; j < count; j++) {
        from[j] = q->weights + (column + (uint64_t)j) * q->row_bytes;
        scales[j] = q->scales + (column + (uint64_t)j) * q->blocks;
        sum[j] = vf_all(0);
    }
    const uint64_t steps = bits == 4 ? q->block / (2 * ONXI_LANES) : q->block / ONXI_LANES;
    for (uint64_t b = 0; b < q->blocks; b++) {
        onxi_vf part[TOGETHER];
        UNROLL
        for (int j = 0; j < count; j++)
            part[j] = vf_all(0);
        for (uint64_t i = 0; i < steps; i++) {
            const onxi_vf x = vf_load(left), odd = bits == 4 ? vf_load(left + ONXI_LANES) : x;
            UNROLL
            for (int j = 0; j < count; j++) {
                const onxi_vi v = load_bytes(from[j]);
                part[j] += real(bits == 4 ? v & 15 : v) * x;
                if (bits == 4)
                    part[j] += real(v >> 4) * odd;
                from[j] += ONXI_LANES;
            }
            left += bits == 4 ? 2 * ONXI_LANES : ONXI_LANES;
        }
        UNROLL
        for (int j = 0; j < count; j++)
            sum[j] += scales[j][b] * part[j];
    }
    for (int j = 0; j < count; j++)
        out[j] = vf_sum(sum[j]);
}

static void dots(const onxi_few_bits *q, const float *left, uint64_t column, uint64_t count, float *out)
{
    if (count == TOGETHER && q->bits == 4)
        some_dots(q, 4, TOGETHER, left, column, out);
    else if (count == TOGETHER)
        some_dots(q, 8, TOGETHER, left, column, out);
    else
        for (uint64_t j = 0; j < count; j++)
            if (q->bits == 4)
                some_dots(q, 4, 1, left, column + j, out + j);
            else
                some_dots(q, 8, 1, left, column + j, out + j);
}

/* sum (w - zero) a = sum w a - zero sum a, in each block. */
static float of_zeros(const onxi_few_bits *q, const float *sums, uint64_t column)
{
    const float *scales = q->scales + column * q->blocks;
    float total = 0;
    for (uint64_t b = 0; b < q->blocks; b++)
        total += scales[b] * zero_of(q, column, b) * sums[b];
    return total;
}

static void few_rows(const onxi_few_bits *q, uint64_t first, uint64_t last, const float *left, const float *sums)
{
    for (uint64_t at = first; at < last; at += TOGETHER) {
        const uint64_t count = last - at < TOGETHER ? last - at : TOGETHER;
        for (uint64_t m = 0; m < q->m; m++) {
            float y[TOGETHER];
            dots(q, left + m * q->blocks * q->block, at, count, y);
            for (uint64_t j = 0; j < count; j++)
                q->y[m * q->n + at + j] =
                    y[j] - of_zeros(q, sums + m * q->blocks, at + j) + (q->bias ? q->bias[at + j] : 0);
        }
    }
}

/* ---- many rows ---- */

/* `count` numbers of a block of a column, from `from` on, an even place. */
static void make_real(const onxi_few_bits *q, uint64_t column, uint64_t from, uint64_t count, float *out)
{
    const uint64_t block = from / q->block;
    const uint8_t *bytes = q->weights + column * q->row_bytes + from * q->bits / 8;
    const float scale = q->scales[column * q->blocks + block], zero = zero_of(q, column, block);
    for (uint64_t i = 0; q->bits == 8 && i < count; i++)
        out[i] = ((float)bytes[i] - zero) * scale;
    for (uint64_t i = 0; q->bits == 4 && i < (count + 1) / 2; i++) {
        out[2 * i] = ((float)(bytes[i] & 15) - zero) * scale;
        out[2 * i + 1] = ((float)(bytes[i] >> 4) - zero) * scale;
    }
}

/* k rows of PANEL columns; those after the last are zeros. */
static void make_some_panel(const onxi_few_bits *q, uint64_t column, uint64_t count, float *panel)
{
    float t[PANEL][PIECE];
    memset(t, 0, sizeof t);
    for (uint64_t at = 0, n; at < q->k; at += n) {
        const uint64_t within = at % q->block, left = q->block - within < q->k - at ? q->block - within : q->k - at;
        n = left < PIECE ? left : PIECE;
        for (uint64_t c = 0; c < count; c++)
            make_real(q, column + c, at, n, t[c]);
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t c = 0; c < PANEL; c++)
                panel[(at + i) * PANEL + c] = t[c][i];
    }
}

/* Columns that are turned together, a byte of each to a line. */
enum { SIDE = 16 };
typedef uint8_t side_bytes __attribute__((vector_size(SIDE)));
#define SIDE_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define SIDE_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* SIDE bytes of SIDE columns, `step` apart: line i gets byte i of each. */
static void turn(const uint8_t *from, uint64_t step, side_bytes lines[SIDE])
{
    side_bytes next[SIDE];
    for (int i = 0; i < SIDE; i++)
        memcpy(&lines[i], from + (uint64_t)i * step, SIDE);
    for (int round = 1; round < SIDE; round *= 2) {
        for (int i = 0; i < SIDE / 2; i++) {
            next[2 * i] = __builtin_shufflevector(lines[i], lines[i + SIDE / 2], SIDE_LOW);
            next[2 * i + 1] = __builtin_shufflevector(lines[i], lines[i + SIDE / 2], SIDE_HIGH);
        }
        memcpy(lines, next, sizeof next);
    }
}

/* The numbers of a line: of whole bytes, or of their lower or upper halves. */
static void write_line(const side_bytes *line, int shift, int mask, const float *zero, const float *scale, float *out)
{
    for (uint64_t c = 0; c < SIDE; c += ONXI_LANES)
        vf_store(out + c, (real(load_bytes((const uint8_t *)line + c) >> shift & mask) - vf_load(zero + c)) *
                              vf_load(scale + c));
}

/* SIDE columns of a panel, from whole pieces of blocks. */
static void make_side(const onxi_few_bits *q, uint64_t column, float *panel)
{
    const uint64_t bytes = q->block * q->bits / 8, each = 8 / q->bits;
    for (uint64_t b = 0; b < q->blocks; b++) {
        float scale[SIDE], zero[SIDE];
        for (uint64_t c = 0; c < SIDE; c++) {
            scale[c] = q->scales[(column + c) * q->blocks + b];
            zero[c] = zero_of(q, column + c, b);
        }
        for (uint64_t at = 0; at < bytes; at += SIDE) {
            side_bytes lines[SIDE];
            turn(q->weights + column * q->row_bytes + b * bytes + at, q->row_bytes, lines);
            for (uint64_t i = 0; i < SIDE; i++)
                for (uint64_t part = 0; part < each; part++) {
                    const uint64_t k = b * q->block + (at + i) * each + part;
                    if (k < q->k)
                        write_line(&lines[i], (int)(part * q->bits), q->bits == 4 ? 15 : 255, zero, scale,
                                   panel + k * PANEL);
                }
        }
    }
}

static void make_panel(const onxi_few_bits *q, uint64_t column, uint64_t count, float *panel)
{
    if (count < PANEL || PANEL % SIDE != 0 || q->block * q->bits / 8 % SIDE != 0) {
        make_some_panel(q, column, count, panel);
        return;
    }
    for (uint64_t c = 0; c < PANEL; c += SIDE)
        make_side(q, column + c, panel + c);
}

static void panel_rows(const onxi_few_bits *q, uint64_t column, uint64_t count, const float *left, const float *panel)
{
    for (uint64_t m = 0, rows; m < q->m; m += rows) {
        float c[TILE_M * PANEL];
        rows = tile_height(q->m - m);
        for (uint64_t k = 0, n; k < q->k; k += n) {
            n = q->k - k < BLOCK_K ? q->k - k : BLOCK_K;
            tile_run(&(tile_operands){ .a = left + m * q->blocks * q->block + k,
                                       .b = panel + k * PANEL,
                                       .c = c,
                                       .lda = q->blocks * q->block,
                                       .ldb = PANEL,
                                       .ldc = PANEL,
                                       .k = n,
                                       .more = k > 0 },
                     rows);
        }
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t j = 0; j < count; j++)
                q->y[(m + i) * q->n + column + j] = c[i * PANEL + j] + (q->bias ? q->bias[column + j] : 0);
    }
}

static void columns(const onxi_few_bits *q, uint64_t first, uint64_t last, float *space)
{
    float *left = space, *sums = left + q->m * q->blocks * q->block, *panel = sums + q->m * q->blocks;
    take_left(q, left, sums);
    if (q->m <= FEW) {
        few_rows(q, first, last, left, sums);
        return;
    }
    for (uint64_t at = first; at < last; at += PANEL) {
        const uint64_t count = last - at < PANEL ? last - at : PANEL;
        make_panel(q, at, count, panel);
        panel_rows(q, at, count, left, panel);
    }
}

const onxi_few_bits_ops ONXI_LEVELED(onxi_few_bits) = { .fits = fits, .memory = memory, .columns = columns };
