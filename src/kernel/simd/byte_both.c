/* byte_both.c - 8-bit integer products of two matrices that vary: MatMulInteger and QLinearMatMul. Each unit of work
 * packs some panels of the right matrix in its own workspace. */
#include "kernel/core/quantize.h"
#include "kernel/simd/byte_drive.h"

#include <math.h>

#if ONXI_LEVEL >= 4 /* ONX_ISA_VNNI; files of lower levels do not have it */

/* Bytes of packed panels, and of rows, that a unit of work has: together they fit into an L2 cache. */
enum { PACKED_MOST = 256 << 10, ROWS_MOST = 512 << 10 };

typedef struct both_params {
    onxi_qproduct of;
    drive drive;
    uint64_t matrices;
    bool is_one;  /* of the left matrices, which share the right one, are made one */
    uint8_t flip; /* of unsigned right elements, which are packed as signed ones */
    uint64_t packed_at, column_sums_at, zeros_at, factors_at, row_zeros_at, row_scales_at; /* in a thread's workspace */
} both_params;

/* ---- packing ---- */

typedef struct eight_rows {
    __m512i of[4];
} eight_rows;

/* Reads eight rows of `mask` columns: rows i and i + 4 are halves of a vector. Rows after `there` and columns outside
 * the mask are such that they become 0. */
static inline eight_rows read_rows(const uint8_t *from, uint64_t step, uint64_t there, __mmask32 mask, __m256i nothing)
{
    eight_rows r;
#pragma GCC unroll 4
    for (uint64_t i = 0; i < 4; i++) {
        const __m256i low = i < there ? _mm256_mask_loadu_epi8(nothing, mask, from + i * step) : nothing;
        const __m256i high = i + 4 < there ? _mm256_mask_loadu_epi8(nothing, mask, from + (i + 4) * step) : nothing;
        r.of[i] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    return r;
}

/* Gathers four rows of each column: two vectors of 16 columns for the first four rows, and two for the others. */
static inline void weave(eight_rows *r)
{
    const __m512i a = _mm512_unpacklo_epi8(r->of[0], r->of[1]), b = _mm512_unpackhi_epi8(r->of[0], r->of[1]);
    const __m512i c = _mm512_unpacklo_epi8(r->of[2], r->of[3]), d = _mm512_unpackhi_epi8(r->of[2], r->of[3]);
    const __m512i q0 = _mm512_unpacklo_epi16(a, c), q1 = _mm512_unpackhi_epi16(a, c);
    const __m512i q2 = _mm512_unpacklo_epi16(b, d), q3 = _mm512_unpackhi_epi16(b, d);
    /* Of each four columns, qi has the first rows of strip 0 and 1, then the other rows of both. */
    const __m512i low = _mm512_shuffle_i32x4(q0, q1, 0x88), high = _mm512_shuffle_i32x4(q2, q3, 0x88);
    const __m512i low1 = _mm512_shuffle_i32x4(q0, q1, 0xdd), high1 = _mm512_shuffle_i32x4(q2, q3, 0xdd);
    /* low: q0 of strip 0, first and other rows, then q1. */
    r->of[0] = _mm512_shuffle_i32x4(low, high, 0x88);
    r->of[1] = _mm512_shuffle_i32x4(low1, high1, 0x88);
    r->of[2] = _mm512_shuffle_i32x4(low, high, 0xdd);
    r->of[3] = _mm512_shuffle_i32x4(low1, high1, 0xdd);
}

/* Packs a panel of `width` columns, as pack_panel does, from k rows with stride `step`. */
static void pack_rows(const uint8_t *from, uint64_t step, uint64_t k, uint64_t width, uint8_t flip, int8_t *to,
                      int32_t sums[COLUMNS])
{
    const __mmask32 mask = width < COLUMNS ? ((__mmask32)1 << width) - 1 : ~(__mmask32)0;
    const __m512i flips = _mm512_set1_epi8((char)flip), ones = _mm512_set1_epi8(1);
    const __m256i nothing = _mm256_set1_epi8((char)flip);
    __m512i sum[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    for (uint64_t at = 0; at < k; at += 8, from += 8 * step) {
        eight_rows r =
            k - at >= 8 ? read_rows(from, step, 8, mask, nothing) : read_rows(from, step, k - at, mask, nothing);
        int8_t *line = to + at / DEPTH * SLICE + at % DEPTH * STRIP;
        weave(&r);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            r.of[i] = _mm512_xor_si512(r.of[i], flips);
            sum[i % 2] = _mm512_dpbusd_epi32(sum[i % 2], ones, r.of[i]);
            _mm512_storeu_si512(line + i % 2 * (SLICE / 2) + i / 2 * 64, r.of[i]);
        }
    }
    for (uint64_t at = (k + 7) / 8 * 8; !raises && at % DEPTH; at += 4) { /* tiles read whole slices */
        int8_t *line = to + at / DEPTH * SLICE + at % DEPTH * STRIP;
        memset(line, 0, 64);
        memset(line + SLICE / 2, 0, 64);
    }
    _mm512_storeu_si512(sums, sum[0]);
    _mm512_storeu_si512(sums + STRIP, sum[1]);
}

/* ---- zero points and scales ---- */

/* Where the vector of a matrix begins; *step is 0 if all lines have the same element. */
static uint64_t vector_from(const onx_value *v, uint64_t lines, uint64_t matrix, uint64_t first, uint64_t *step)
{
    *step = v->count > 1;
    return v->count == 1 ? 0 : first + (v->count == lines ? 0 : matrix * lines);
}

static void take_zero_points(const onx_value *v, uint64_t lines, uint64_t matrix, uint64_t first, uint64_t count,
                             int32_t add, int32_t *out)
{
    uint64_t step;
    const uint8_t *from = (const uint8_t *)v->data + vector_from(v, lines, matrix, first, &step);
    for (uint64_t i = 0; i < count; i++)
        out[i] = onxi_zero_point(v->dtype, from + i * step) + add;
}

static void take_scales(const onx_value *v, uint64_t lines, uint64_t matrix, uint64_t first, uint64_t count, float *out)
{
    uint64_t step;
    const float *from = (const float *)v->data + vector_from(v, lines, matrix, first, &step);
    for (uint64_t i = 0; i < count; i++)
        out[i] = from[i * step];
}

/* ---- running ---- */

/* A unit of work: rows from m0 on of a left matrix, and panels from p0 on of a right one. */
typedef struct unit {
    uint64_t matrix, a, b; /* numbers of the result, and of its operands */
    uint64_t m0, rows, p0, panels, columns;
} unit;

/* Blocks of rows follow each other, so that they share packed panels. */
static unit unit_of(const both_params *q, uint64_t piece)
{
    const drive *d = &q->drive;
    const onxi_broadcast *b = &q->of.batch;
    unit u = { .matrix = piece / d->m_blocks / d->chunks,
               .m0 = piece % d->m_blocks * d->m_block,
               .p0 = piece / d->m_blocks % d->chunks * d->chunk };
    if (!q->is_one) {
        const uint64_t inner = u.matrix % (uint64_t)b->inner;
        int64_t at[ONXI_BROADCAST_MAX];
        onxi_broadcast_offsets(b, u.matrix / (uint64_t)b->inner, at);
        u.a = (uint64_t)(at[0] + (int64_t)inner * b->step[0][b->rank - 1]);
        u.b = (uint64_t)(at[1] + (int64_t)inner * b->step[1][b->rank - 1]);
    }
    u.rows = d->m - u.m0 < d->m_block ? d->m - u.m0 : d->m_block;
    u.panels = d->panels - u.p0 < d->chunk ? d->panels - u.p0 : d->chunk;
    u.columns = d->finish.n - u.p0 * COLUMNS;
    u.columns = u.columns < u.panels * COLUMNS ? u.columns : u.panels * COLUMNS;
    return u;
}

static void pack_unit(const both_params *q, const onx_value *b, const unit *u, char *space)
{
    const drive *d = &q->drive;
    const uint64_t n = d->finish.n;
    const uint8_t *from = (const uint8_t *)b->data + u->b * d->k * n + u->p0 * COLUMNS;
    for (uint64_t p = 0; p < u->panels; p++) {
        const uint64_t left = u->columns - p * COLUMNS;
        pack_rows(from + p * COLUMNS, n, d->k, left < COLUMNS ? left : COLUMNS, q->flip,
                  (int8_t *)space + q->packed_at + p * d->slices * SLICE,
                  (int32_t *)(void *)(space + q->column_sums_at) + p * COLUMNS);
    }
}

/* The zero points of packed columns; NULL: all are 0. */
static const int32_t *zeros_of(const both_params *q, const onx_value *zero, const unit *u, int32_t *out)
{
    const int32_t less = q->flip ? 128 : 0;
    const uint64_t n = q->drive.finish.n, all = u->panels * COLUMNS;
    int32_t any = 0;
    memset(out, 0, all * sizeof *out);
    if (zero)
        take_zero_points(zero, n, u->b, u->p0 * COLUMNS, u->columns, -less, out);
    else
        for (uint64_t i = 0; i < u->columns; i++)
            out[i] = -less;
    for (uint64_t i = 0; i < all; i++)
        any |= out[i];
    return any ? out : NULL;
}

/* Sets the factors of columns, and those of rows if there is more than one. */
static void take_factors(const both_params *q, const onxi_qoperands *o, const unit *u, char *space, finish *f,
                         finish_block *b)
{
    float *factor = (float *)(void *)(space + q->factors_at), *rows = (float *)(void *)(space + q->row_scales_at);
    memset(factor, 0, u->panels * COLUMNS * sizeof *factor);
    take_scales(o->b_scale, f->n, u->b, u->p0 * COLUMNS, u->columns, factor);
    f->factor = factor;
    f->y_scale = *(const float *)o->y_scale->data;
    f->y_zero = o->y_zero ? onxi_zero_point(o->y_zero->dtype, o->y_zero->data) : 0;
    f->low = (float)((f->y_is_signed ? -128 : 0) - f->y_zero);
    f->high = f->low + 255;
    take_scales(o->a_scale, q->drive.m, u->a, u->m0, o->a_scale->count > 1 ? u->rows : 1, rows);
    if (o->a_scale->count > 1) {
        b->row_scales = rows;
        return;
    }
    for (uint64_t i = 0; i < u->columns; i++)
        factor[i] = rows[0] * factor[i] / f->y_scale;
}

static void run_unit(const both_params *q, const onx_work *work, const onxi_qoperands *o, const unit *u)
{
    const drive *d = &q->drive;
    char *space = work->thread_workspace;
    int32_t *row_sums = (int32_t *)(void *)(space + d->row_sums_at);
    int32_t *row_zeros = (int32_t *)(void *)(space + q->row_zeros_at);
    finish f = d->finish;
    drive_part t = { .lda = d->lda, .count = u->rows, .b = (const int8_t *)space + q->packed_at, .p1 = u->panels };
    t.block = (finish_block){ .row = u->m0, .row_sums = row_sums, .sums = (int32_t *)(void *)(space + d->sums_at) };
    t.a =
        drive_gather(d, (const uint8_t *)o->a->data + (u->a * d->m + u->m0) * d->k, u->rows, (uint8_t *)space, &t.lda);
    t.block.y = (char *)work->outputs[0]->data + (u->matrix * d->m * f.n + u->p0 * COLUMNS) * finish_width(&f);
    f.sums = (const int32_t *)(const void *)(space + q->column_sums_at);
    f.zero = zeros_of(q, o->b_zero, u, (int32_t *)(void *)(space + q->zeros_at));
    if (f.zero)
        drive_row_sums(d, t.a, t.lda, u->rows, row_sums);
    if (o->a_zero && o->a_zero->count > 1) {
        take_zero_points(o->a_zero, d->m, u->a, u->m0, u->rows, d->a_is_signed && raises ? 128 : 0, row_zeros);
        t.block.row_zeros = row_zeros;
    } else {
        t.a_zero = left_zero(o->a_zero, d->a_is_signed);
    }
    if (o->y_scale)
        take_factors(q, o, u, space, &f, &t.block);
    f.n = u->columns;
    drive_part_run(d, &f, &t);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const both_params *q = work->params;
    const onxi_qoperands o = onxi_qoperands_of(work->prepared->kernel, work->prepared->input_count, work->inputs);
    unit before = { 0 };
    dot_begin();
    for (uint64_t piece = first; piece < last; piece++) {
        const unit u = unit_of(q, piece);
        if (piece == first || u.b != before.b || u.p0 != before.p0)
            pack_unit(q, o.b, &u, work->thread_workspace);
        run_unit(q, work, &o, &u);
        before = u;
    }
    dot_end();
    return ONX_OK;
}

/* ---- preparing ---- */

/* Divides the work: right matrices are cut before left ones, since packing takes longer than gathering rows. */
static void cut(const onx_prepare *p, both_params *q)
{
    drive *d = &q->drive;
    const uint64_t wanted = p->threads > 1 ? CUT_SOME * p->threads : 1, most = PACKED_MOST / (d->slices * SLICE);
    uint64_t rows = (d->m + BLOCK_ROWS - 1) / BLOCK_ROWS, each = ROWS_MOST / d->lda / BLOCK_ROWS;
    each = each < 1 ? 1 : each > rows ? rows : each;
    d->chunk = cut_evenly(d->panels, q->matrices * ((rows + each - 1) / each), p->threads, CUT_SOME);
    d->chunk = d->chunk > most ? (most ? most : 1) : d->chunk;
    d->chunks = (d->panels + d->chunk - 1) / d->chunk;
    if (q->matrices * d->chunks < wanted) {
        const uint64_t parts = (wanted + q->matrices * d->chunks - 1) / (q->matrices * d->chunks);
        const uint64_t fewer = (rows + parts - 1) / parts;
        each = fewer < each ? fewer : each;
    }
    d->m_block = each * BLOCK_ROWS;
    d->m_blocks = (rows + each - 1) / each;
}

/* Reserves `size` bytes of the workspace of a thread. */
static bool reserve(onx_prepare *p, uint64_t count, uint64_t size, uint64_t *at)
{
    uint64_t bytes;
    *at = (p->thread_workspace + 63) / 64 * 64;
    return onxi_mul_u64(count, size, &bytes) && bytes < UINT64_MAX / 16 && *at < UINT64_MAX / 16 &&
           (p->thread_workspace = *at + bytes, true);
}

static bool layout(onx_prepare *p, both_params *q)
{
    drive *d = &q->drive;
    const uint64_t columns = d->chunk * COLUMNS;
    uint64_t at;
    p->thread_workspace = 0;
    return reserve(p, d->m_block, d->lda, &at) && reserve(p, DEPTH, 1, &at) &&
           reserve(p, BLOCK_ROWS * COLUMNS, sizeof(int32_t), &d->sums_at) &&
           reserve(p, d->m_block, sizeof(int32_t), &d->row_sums_at) &&
           reserve(p, d->m_block, sizeof(int32_t), &q->row_zeros_at) &&
           reserve(p, d->m_block, sizeof(float), &q->row_scales_at) &&
           reserve(p, d->chunk * SLICE, d->slices, &q->packed_at) &&
           reserve(p, columns, sizeof(int32_t), &q->column_sums_at) &&
           reserve(p, columns, sizeof(int32_t), &q->zeros_at) && reserve(p, columns, sizeof(float), &q->factors_at);
}

static bool is_byte(const onx_value *v)
{
    return v->dtype == ONX_INT8 || v->dtype == ONX_UINT8;
}

static bool is_float(const onx_value *v)
{
    return !v || v->dtype == ONX_FLOAT;
}

/* Left matrices that have the right one in common are one, unless each has the same vectors for its rows. */
static bool are_one(const onxi_qproduct *of, const onxi_qoperands *o)
{
    const uint64_t all = of->m * of->matrices_a;
    return of->matrices_b == 1 && (!o->a_zero || o->a_zero->count == 1 || o->a_zero->count == all) &&
           (!o->a_scale || o->a_scale->count == 1 || o->a_scale->count == all);
}

static onx_status prepare(onx_prepare *p)
{
    const onxi_qoperands o = onxi_qoperands_of(p->kernel, p->input_count, p->inputs);
    const onx_value *y = p->outputs[0];
    if (!y || !y->count || !o.a->count || !is_byte(o.a) || !is_byte(o.b) || !is_float(o.a_scale) ||
        !is_float(o.b_scale) || !is_float(o.y_scale) || (o.y_scale && !is_byte(y)))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(onxi_qproduct_prepare(p));
    both_params *q = ONXI_NEW(p->arena, both_params);
    if (!q)
        return ONX_E_MEMORY;
    drive *d = &q->drive;
    q->of = *(const onxi_qproduct *)p->params;
    q->is_one = are_one(&q->of, &o);
    q->matrices = q->is_one ? 1 : q->of.batch.outer * (uint64_t)q->of.batch.inner;
    q->flip = o.b->dtype == ONX_UINT8 ? 0x80 : 0;
    d->a_is_signed = o.a->dtype == ONX_INT8;
    d->m = q->is_one ? q->of.m * q->of.matrices_a : q->of.m;
    d->k = d->finish.k = q->of.k;
    d->finish.n = d->finish.y_step = q->of.n;
    d->finish.kind = o.y_scale ? AGAIN : AS_SUMS;
    d->finish.y_is_signed = y->dtype == ONX_INT8;
    if (d->k > UINT32_MAX || q->matrices * d->m * q->of.n != y->count)
        return ONX_E_UNSUPPORTED;
    d->slices = padded_depth(d->k) / DEPTH;
    d->lda = d->slices * DEPTH + (d->slices % 4 ? 0 : DEPTH); /* not a power of two */
    d->panels = (d->finish.n + COLUMNS - 1) / COLUMNS;
    cut(p, q);
    if (!layout(p, q))
        return ONX_E_UNSUPPORTED;
    p->params = q;
    p->rows = q->matrices * d->chunks * d->m_blocks;
    p->grain = 1 + 4000000 / (d->m_block * d->chunk * COLUMNS * (d->k + 1) + 1);
    return ONX_OK;
}

static const onxi_quantize_body as_sums = { .back = false }, quantizes = { .back = true };
#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 10, .dtypes = ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8), .preference = 2,        \
        .isa = ONXI_LEVEL, .variant = ONXI_VARIANT, .body = &body_, .prepare = prepare, .run = run                     \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_byte_both)[] = {
    ROW("QLinearMatMul", quantizes),
    ROW("MatMulInteger", as_sums),
    { 0 },
};
#endif
