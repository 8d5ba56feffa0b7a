/* byte_finish.h - post-processing of the sums of 8-bit products: subtracts the effect of zero points, then stores the
 * sums as they are, requantizes them, or converts them to float and applies post-ops. */
#ifndef ONXI_KERNEL_SIMD_BYTE_FINISH_H
#define ONXI_KERNEL_SIMD_BYTE_FINISH_H

#include "kernel/simd/byte_dot.h"
#include "kernel/simd/post.h"
#include "kernel/simd/round.h"

#if ONXI_LEVEL >= 4 /* ONX_ISA_VNNI; files of lower levels do not have it */

typedef enum finish_kind {
    AS_SUMS,   /* int32 */
    AGAIN,     /* bytes: sum * factor, rounded as in the plain rows */
    AS_FLOATS, /* floats: sum * factor + shift, then post-ops */
    AS_BYTES   /* bytes: the same, then quantized */
} finish_kind;

typedef struct finish {
    finish_kind kind;
    uint64_t n;          /* columns */
    uint64_t y_step;     /* row stride of the result, in elements */
    uint64_t k;          /* elements per column of the right operand */
    const int32_t *sums; /* per column: the sum of its packed elements */
    const int32_t *zero; /* per column: the zero point of its packed elements; NULL: all are 0 */
    const int32_t *bias; /* per column: the initial value of the sums; NULL: 0 */
    const float *factor; /* per column */
    const float *shift;  /* per column, for AS_FLOATS and AS_BYTES; NULL: none */
    bool y_is_signed;    /* are the bytes of the result signed? */
    int32_t y_zero;
    float low, high; /* bounds for AGAIN, without the zero point */
    float y_scale;
    simd_posts posts;
} finish;

/* Per-column arrays are padded to whole panels. */
static inline uint64_t padded_columns(uint64_t n)
{
    return (n + COLUMNS - 1) / COLUMNS * COLUMNS;
}

/* A block of the result: `rows` rows from `row` on, and the columns of the panel that begins at `column`. */
typedef struct finish_block {
    void *y; /* the result */
    uint64_t row, rows, column;
    const int32_t *row_sums;        /* per row: the sum of the left operand, where columns have zero points */
    const int32_t *row_zeros;       /* per row: the zero point of the left operand; NULL: the sums begin with it */
    const float *row_scales;        /* per row, for AGAIN: the scale of the left operand; NULL: factors contain it */
    const onx_value *const *inputs; /* for post-ops */
    int32_t *sums;                  /* BLOCK_ROWS x COLUMNS; overwritten */
} finish_block;

/* What the sums of columns change by for each unit of the left operand's zero point. */
static inline onxi_vu per_left_zero(const finish *f, uint64_t column)
{
    onxi_vu sums, zero = { 0 };
    memcpy(&sums, f->sums + column, sizeof sums);
    if (f->zero)
        memcpy(&zero, f->zero + column, sizeof zero);
    return zero * (uint32_t)f->k - sums;
}

/* The initial values of the sums of a panel: the bias, plus the correction for the left operand's zero point. With zero
 * points, sum of (a - a0)(b - b0) = sum of ab - a0 sum of b - b0 sum of a + k a0 b0. */
static inline void finish_begin(const finish *f, uint64_t column, int32_t a_zero, int32_t begin[COLUMNS])
{
    for (uint64_t v = 0; v < COLUMNS; v += ONXI_LANES) {
        onxi_vu shift = { 0 };
        if (f->bias)
            memcpy(&shift, f->bias + column + v, sizeof shift);
        shift += per_left_zero(f, column + v) * (uint32_t)a_zero;
        memcpy(begin + v, &shift, sizeof shift);
    }
}

/* Adds the correction for the zero points of rows. */
static inline void add_row_zeros(const finish *f, const finish_block *b)
{
    for (uint64_t v = 0; v < COLUMNS; v += ONXI_LANES) {
        const onxi_vu each = per_left_zero(f, b->column + v);
        for (uint64_t i = 0; i < b->rows; i++) {
            onxi_vu x;
            memcpy(&x, b->sums + i * COLUMNS + v, sizeof x);
            x += each * (uint32_t)b->row_zeros[i];
            memcpy(b->sums + i * COLUMNS + v, &x, sizeof x);
        }
    }
}

/* Subtracts the correction for the columns' zero points, b0 sum of a. */
static inline void take_zeros(const finish *f, const finish_block *b)
{
    for (uint64_t v = 0; v < COLUMNS; v += ONXI_LANES) {
        onxi_vu zero, x;
        memcpy(&zero, f->zero + b->column + v, sizeof zero);
        for (uint64_t i = 0; i < b->rows; i++) {
            memcpy(&x, b->sums + i * COLUMNS + v, sizeof x);
            x -= zero * (uint32_t)b->row_sums[i];
            memcpy(b->sums + i * COLUMNS + v, &x, sizeof x);
        }
    }
}

static inline void store_part(void *to, __m128i bytes, uint64_t n)
{
    if (n >= 16)
        _mm_storeu_si128(to, bytes);
    else
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << n) - 1), bytes);
}

/* The low byte of each lane. */
static inline __m128i low_bytes(onxi_vi x)
{
    return _mm512_cvtepi32_epi8((__m512i)x);
}

static inline void finish_sums(const finish *f, const finish_block *b, uint64_t width)
{
    int32_t *to = (int32_t *)b->y + b->row * f->y_step + b->column;
    for (uint64_t i = 0; i < b->rows; i++, to += f->y_step) {
        if (width == COLUMNS) /* of a size that is known, no function is called */
            memcpy(to, b->sums + i * COLUMNS, COLUMNS * sizeof *to);
        else
            memcpy(to, b->sums + i * COLUMNS, width * sizeof *to);
    }
}

static inline void finish_again(const finish *f, const finish_block *b, uint64_t width)
{
    const float low = f->low, high = f->high;
    for (uint64_t v = 0; v < width; v += ONXI_LANES) {
        const onxi_vf factor = vf_load(f->factor + b->column + v);
        const uint64_t left = width - v;
        for (uint64_t i = 0; i < b->rows; i++) {
            const onxi_vf by = b->row_scales ? b->row_scales[i] * factor / vf_all(f->y_scale) : factor;
            onxi_vi x;
            memcpy(&x, b->sums + i * COLUMNS + v, sizeof x);
            store_part((char *)b->y + (b->row + i) * f->y_step + b->column + v,
                       low_bytes(requantized(x, by, low, high, f->y_zero)), left);
        }
    }
}

static inline void posts_of(const finish *f, const finish_block *b, uint64_t width, float *x)
{
    const uint64_t vectors = (width + ONXI_LANES - 1) / ONXI_LANES;
    for (uint32_t p = 0; p < f->posts.count; p++) {
        const simd_post *post = &f->posts.list[p];
        const float *same = NULL;
        uint64_t step = f->y_step;
        float part[BLOCK_ROWS * COLUMNS];
        if (post->operand >= 0) {
            same = (const float *)b->inputs[post->operand]->data + b->row * f->y_step + b->column;
            if (width % ONXI_LANES) {
                for (uint64_t i = 0; i < b->rows; i++)
                    for (uint64_t v = 0; v < width; v += ONXI_LANES)
                        vf_store(part + i * COLUMNS + v, vf_load_part(same + i * step + v, width - v, 0));
                same = part;
                step = COLUMNS;
            }
        }
        post_apply(post, x, COLUMNS, b->rows, vectors, post->row ? post->row + b->column : NULL, same, step);
    }
}

/* Do the post-ops only clamp values? The bounds are equivalent only for results that are then quantized, because they
 * do not keep the sign of -0. */
static inline bool posts_are_bounds(const simd_posts *posts, float *low, float *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    for (uint32_t i = 0; i < posts->count; i++) {
        const simd_post *f = &posts->list[i];
        if (f->kind != ONX_POST_RELU && f->kind != ONX_POST_CLIP)
            return false;
        const float a = f->kind == ONX_POST_RELU ? 0 : f->a, b = f->kind == ONX_POST_RELU ? INFINITY : f->b;
        *low = *low < a ? a : *low > b ? b : *low;
        *high = *high < a ? a : *high > b ? b : *high;
    }
    return true;
}

/* Clamps x; NaN stays NaN. */
static inline onxi_vf bounded(onxi_vf x, onxi_vf low, onxi_vf high)
{
    return (onxi_vf)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)x));
}

/* Converts the sums to float, clamps them to `from` .. `to`, and quantizes them. */
static inline void finish_bytes(const finish *f, const finish_block *b, uint64_t width, float from, float to)
{
    const int32_t zero = f->y_zero, least = (f->y_is_signed ? -128 : 0) - zero;
    const onxi_vf scale = vf_all(f->y_scale), low = vf_all(from), high = vf_all(to);
    const uint64_t step = f->y_step, rows = b->rows;
    for (uint64_t v = 0; v < width; v += ONXI_LANES) {
        const onxi_vf factor = vf_load(f->factor + b->column + v);
        const onxi_vf shift = f->shift ? vf_load(f->shift + b->column + v) : vf_all(0);
        const int32_t *sums = b->sums + v;
        char *y = (char *)b->y + b->row * step + b->column + v;
        for (uint64_t i = 0; i < rows; i++, y += step, sums += COLUMNS) {
            onxi_vi sum;
            memcpy(&sum, sums, sizeof sum);
            const onxi_vf x = bounded(__builtin_convertvector(sum, onxi_vf) * factor + shift, low, high);
            store_part(y, low_bytes(quantized(x, scale, (float)least, (float)(least + 255), zero)), width - v);
        }
    }
}

static inline void finish_floats(const finish *f, const finish_block *b, uint64_t width)
{
    float *x = (float *)(void *)b->sums;
    for (uint64_t v = 0; v < width; v += ONXI_LANES) {
        const onxi_vf factor = vf_load(f->factor + b->column + v);
        const onxi_vf shift = f->shift ? vf_load(f->shift + b->column + v) : vf_all(0);
        for (uint64_t i = 0; i < b->rows; i++) {
            onxi_vi sum;
            memcpy(&sum, b->sums + i * COLUMNS + v, sizeof sum);
            vf_store(x + i * COLUMNS + v, __builtin_convertvector(sum, onxi_vf) * factor + shift);
        }
    }
    posts_of(f, b, width, x);
    if (f->kind == AS_FLOATS) {
        for (uint64_t i = 0; i < b->rows; i++)
            for (uint64_t v = 0; v < width; v += ONXI_LANES)
                vf_store_part((float *)b->y + (b->row + i) * f->y_step + b->column + v, vf_load(x + i * COLUMNS + v),
                              width - v);
        return;
    }
    const int32_t least = f->y_is_signed ? -128 : 0, most = least + 255;
    const onxi_vf scale = vf_all(f->y_scale);
    for (uint64_t i = 0; i < b->rows; i++)
        for (uint64_t v = 0; v < width; v += ONXI_LANES)
            store_part((char *)b->y + (b->row + i) * f->y_step + b->column + v,
                       low_bytes(quantized(vf_load(x + i * COLUMNS + v), scale, (float)(least - f->y_zero),
                                           (float)(most - f->y_zero), f->y_zero)),
                       width - v);
}

static inline void finish_run(const finish *f, const finish_block *b)
{
    const uint64_t width = f->n - b->column < COLUMNS ? f->n - b->column : COLUMNS;
    float low, high;
    if (b->row_zeros)
        add_row_zeros(f, b);
    if (f->zero)
        take_zeros(f, b);
    switch (f->kind) {
    case AS_SUMS:
        finish_sums(f, b, width);
        break;
    case AGAIN:
        finish_again(f, b, width);
        break;
    default:
        if (f->kind == AS_BYTES && posts_are_bounds(&f->posts, &low, &high))
            finish_bytes(f, b, width, low, high);
        else
            finish_floats(f, b, width);
        break;
    }
}

#endif
#endif
