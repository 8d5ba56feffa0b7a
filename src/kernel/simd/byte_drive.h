/* byte_drive.h - the driver of 8-bit products: divides the work, gathers rows of the left operand (or reads them in
 * place), multiplies them with one panel after the other, and finishes the result block by block. */
#ifndef ONXI_KERNEL_SIMD_BYTE_DRIVE_H
#define ONXI_KERNEL_SIMD_BYTE_DRIVE_H

#include "kernel/simd/byte_finish.h"
#include "kernel/simd/cut.h"

#if ONXI_LEVEL >= 4 /* ONX_ISA_VNNI; files of lower levels do not have it */

typedef struct drive {
    uint64_t m, k, groups; /* rows of the result, elements of a column; groups have columns of their own */
    uint64_t m_block, m_blocks;
    uint64_t panels, chunk, chunks; /* panels per group, panels per unit of work, units per group */
    uint64_t slices, lda;
    uint64_t sums_at, row_sums_at; /* offsets in a thread's workspace, after the rows and their excess */
    bool a_is_signed;              /* as given */
    const int8_t *b;
    finish finish; /* for the first group */
} drive;

/* Gives rows first .. first + count - 1 of a group's left operand, with stride `lda` (which it may change). `space` has
 * room for as many rows, rounded up to 16, with the initial stride. */
typedef const uint8_t *drive_rows(const void *params, const onx_work *work, uint64_t group, uint64_t first,
                                  uint64_t count, uint8_t *space, uint64_t *lda);

/* Expands a value with one element for each column of all groups, or one for all, to padded arrays. NULL: out of
 * memory. */
static inline float *column_floats(onx_arena *arena, const onx_value *v, uint64_t groups, uint64_t n)
{
    const uint64_t step = padded_columns(n);
    float *out = onxi_arena_array(arena, groups * step, sizeof *out);
    if (!out)
        return NULL;
    memset(out, 0, groups * step * sizeof *out);
    for (uint64_t g = 0; g < groups; g++)
        for (uint64_t i = 0; i < n; i++)
            out[g * step + i] = (float)onxi_value_number(v, v->count == 1 ? 0 : g * n + i);
    return out;
}

static inline int32_t *column_integers(onx_arena *arena, const onx_value *v, uint64_t groups, uint64_t n, int32_t less)
{
    const uint64_t step = padded_columns(n);
    int32_t *out = onxi_arena_array(arena, groups * step, sizeof *out);
    if (!out)
        return NULL;
    memset(out, 0, groups * step * sizeof *out);
    for (uint64_t g = 0; g < groups; g++)
        for (uint64_t i = 0; i < n; i++)
            out[g * step + i] = (int32_t)onxi_value_number(v, v->count == 1 ? 0 : g * n + i) - less;
    return out;
}

/* The zero points of packed columns, which are signed; *out is NULL if all are 0. */
static inline onx_status column_zeros(onx_prepare *p, const onx_value *zero, bool is_unsigned, uint64_t groups,
                                      uint64_t n, const int32_t **out)
{
    const int32_t less = is_unsigned ? 128 : 0;
    bool any = !zero && less;
    for (uint64_t i = 0; zero && i < zero->count && !any; i++)
        any = (int32_t)onxi_value_number(zero, i) != less;
    *out = NULL;
    if (!any)
        return ONX_OK;
    const uint8_t nothing = 0;
    const onx_value none = {
        .kind = ONX_VALUE_TENSOR, .dtype = ONX_UINT8, .count = 1, .data = (void *)(uintptr_t)&nothing
    };
    return (*out = column_integers(p->arena, zero ? zero : &none, groups, n, less)) ? ONX_OK : ONX_E_MEMORY;
}

/* Packs the right operand once. */
static inline onx_status drive_pack(onx_prepare *p, uint32_t input, const byte_packing *b, drive *q)
{
    uint64_t panels, all;
    if (!packed_bytes(b, &panels, &all))
        return ONX_E_UNSUPPORTED;
    const struct {
        char what[8];
        byte_packing how;
    } key = { "bytes", *b };
    byte_packing how = *b;
    const onx_packing job = { .input = input,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = all,
                              .pieces = panels_of(b) * b->groups,
                              .unaligned = true,
                              .make = pack_panel,
                              .user = &how };
    const void *packed;
    ONX_TRY(p->ops->packed(p, &job, &packed));
    q->b = packed;
    q->finish.sums = (const int32_t *)(const void *)(q->b + panels);
    return ONX_OK;
}

/* Divides the work, once m, k, groups and finish.n are known. Returns false if it is too large. */
static inline bool drive_cut(onx_prepare *p, drive *q)
{
    enum { CACHE = 256 << 10, MOST = 512 };
    const uint64_t threads = p->threads;
    uint64_t rows, space;
    if (q->k > UINT32_MAX)
        return false;
    q->slices = padded_depth(q->k) / DEPTH;
    q->lda = q->slices * DEPTH + (q->slices % 4 ? 0 : DEPTH); /* not a power of two */
    q->panels = (q->finish.n + COLUMNS - 1) / COLUMNS;
    q->m_block = CACHE / q->lda / BLOCK_ROWS * BLOCK_ROWS;
    q->m_block = q->m_block < BLOCK_ROWS ? BLOCK_ROWS : q->m_block > MOST ? MOST : q->m_block;
    rows = (q->m + BLOCK_ROWS - 1) / BLOCK_ROWS; /* blocks of rows, divided among the threads */
    if (threads > 1 && rows >= 4 * threads && q->m_block * 4 * threads > q->m)
        q->m_block = rows / (4 * threads) * BLOCK_ROWS;
    q->m_blocks = (q->m + q->m_block - 1) / q->m_block;
    const uint64_t blocks = q->m_blocks * q->groups; /* each unit of work gathers its own rows */
    q->chunk = blocks >= 2 * threads ? q->panels : cut_evenly(q->panels, blocks, threads, CUT_SOME);
    q->chunks = (q->panels + q->chunk - 1) / q->chunk;
    rows = q->m_block < q->m ? q->m_block : (q->m + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS;
    if (!onxi_mul_u64(rows, q->lda, &space) || space > UINT64_MAX / 2 ||
        !onxi_mul_u64(q->m_blocks * q->chunks, q->groups, &p->rows))
        return false;
    q->sums_at = space + DEPTH;
    q->row_sums_at = q->sums_at + BLOCK_ROWS * COLUMNS * sizeof(int32_t);
    p->thread_workspace = q->row_sums_at + (q->finish.zero ? rows * sizeof(int32_t) : 0);
    p->grain = 1 + 4000000 / (q->m_block * q->chunk * COLUMNS * (q->k + 1) + 1);
    return true;
}

/* Shared by all units of work of a run. */
typedef struct drive_run {
    const drive *q;
    const onx_work *work;
    int32_t a_zero; /* as it is multiplied */
    drive_rows *rows;
    const void *params;
} drive_run;

/* Rows of the left operand as they are multiplied: `count` rows of k bytes in space, or where they lie. */
static inline const uint8_t *drive_gather(const drive *d, const uint8_t *a, uint64_t count, uint8_t *space,
                                          uint64_t *lda)
{
    const bool raise = d->a_is_signed && raises;
    if (dot_reads_alone(d->k, count) && !raise) {
        *lda = d->k;
        return a;
    }
    for (uint64_t i = 0; i < count; i++) {
        copy_bytes(space + i * d->lda, a + i * d->k, d->k);
        if (raise)
            raise_bytes(space + i * d->lda, d->slices * DEPTH);
    }
    return space;
}

/* Some rows times some panels. */
typedef struct drive_part {
    const uint8_t *a;
    uint64_t lda, count;
    const int8_t *b;    /* panel 0 */
    uint64_t p0, p1;    /* panels */
    int32_t a_zero;     /* as it is multiplied */
    finish_block block; /* of the first panel and all rows */
} drive_part;

static inline void drive_part_run(const drive *q, const finish *f, const drive_part *t)
{
    enum { PANELS_KEPT = 512 << 10 }; /* bytes */
    /* If all panels fit into the L2 cache, they are all multiplied with a block of rows, which stays in the L1
     * cache. */
    const uint64_t blocks = (t->count + BLOCK_ROWS - 1) / BLOCK_ROWS, some = t->p1 - t->p0;
    const bool rows_first = some * q->slices * SLICE <= PANELS_KEPT;
    for (uint64_t n = 0; n < blocks * some; n++) {
        const uint64_t i = (rows_first ? n / some : n % blocks) * BLOCK_ROWS;
        const uint64_t p = t->p0 + (rows_first ? n % some : n / blocks);
        const uint64_t rows = t->count - i < BLOCK_ROWS ? t->count - i : BLOCK_ROWS;
        int32_t begin[COLUMNS];
        finish_begin(f, p * COLUMNS, t->a_zero, begin);
        finish_block b = t->block;
        b.row += i;
        b.rows = rows;
        b.column = p * COLUMNS;
        b.row_sums += i;
        b.row_zeros = b.row_zeros ? b.row_zeros + i : NULL;
        b.row_scales = b.row_scales ? b.row_scales + i : NULL;
        dot_block(&(dot_operands){ t->a + i * t->lda, t->b + p * q->slices * SLICE, begin, t->lda, q->slices, q->k,
                                   q->a_is_signed && !raises },
                  rows, b.sums);
        finish_run(f, &b);
    }
}

static inline uint64_t finish_width(const finish *f)
{
    return f->kind == AS_SUMS || f->kind == AS_FLOATS ? 4 : 1;
}

static inline void drive_row_sums(const drive *q, const uint8_t *a, uint64_t lda, uint64_t count, int32_t *out)
{
    for (uint64_t i = 0; i < count; i++)
        out[i] = sum_bytes(a + i * lda, q->k, q->a_is_signed && !raises);
}

static inline void drive_piece(const drive_run *r, uint64_t piece)
{
    const drive *q = r->q;
    const uint64_t group = piece / (q->m_blocks * q->chunks), m0 = piece / q->chunks % q->m_blocks * q->m_block;
    const uint64_t count = q->m - m0 < q->m_block ? q->m - m0 : q->m_block, p0 = piece % q->chunks * q->chunk;
    const uint64_t columns = q->panels * COLUMNS;
    char *space = r->work->thread_workspace;
    int32_t *row_sums = (int32_t *)(void *)(space + q->row_sums_at);
    uint64_t lda = q->lda;
    const uint8_t *a = r->rows(r->params, r->work, group, m0, count, (uint8_t *)space, &lda);
    finish f = q->finish;
    f.sums += group * columns;
    f.zero = f.zero ? f.zero + group * columns : NULL;
    f.bias = f.bias ? f.bias + group * columns : NULL;
    f.factor = f.factor ? f.factor + group * columns : NULL;
    f.shift = f.shift ? f.shift + group * columns : NULL;
    if (f.zero)
        drive_row_sums(q, a, lda, count, row_sums);
    drive_part_run(q, &f,
                   &(drive_part){ .a = a,
                                  .lda = lda,
                                  .count = count,
                                  .b = q->b + group * q->panels * q->slices * SLICE,
                                  .p0 = p0,
                                  .p1 = q->panels - p0 < q->chunk ? q->panels : p0 + q->chunk,
                                  .a_zero = r->a_zero,
                                  .block = { .y = (char *)r->work->outputs[0]->data + group * f.n * finish_width(&f),
                                             .row = m0,
                                             .row_sums = row_sums,
                                             .inputs = r->work->inputs,
                                             .sums = (int32_t *)(void *)(space + q->sums_at) } });
}

static inline void drive_pieces(const drive_run *r, uint64_t first, uint64_t last)
{
    dot_begin();
    for (uint64_t piece = first; piece < last; piece++)
        drive_piece(r, piece);
    dot_end();
}

/* A zero point of one element, adapted to how elements are multiplied. */
static inline int32_t left_zero(const onx_value *zero, bool is_signed)
{
    const int32_t raised = is_signed && raises ? 128 : 0;
    if (!zero)
        return raised;
    return raised + (is_signed ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data);
}

#endif
#endif
