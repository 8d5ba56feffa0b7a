/* product.h - common parts of products with constant weights, for every type that they are multiplied in: block sizes,
 * division of the work, reading of weights for packing, edges of the result, post-operations. */
#ifndef ONXI_KERNEL_SIMD_PRODUCT_H
#define ONXI_KERNEL_SIMD_PRODUCT_H

#include "kernel/simd/cut.h"
#include "kernel/simd/post.h"
#include "kernel/simd/tile.h"

/* Number of rows per block: they stay in the second-level cache. Maximum rows of a tile of any kind. */
enum { BLOCK_M = 216, PRODUCT_ROWS = 32 };

typedef struct product {
    uint64_t m, n, k;
    uint64_t panels, m_blocks, chunks, chunk; /* chunk: panels of a piece of work */
    uint64_t m_block;                         /* rows of a block */
    simd_posts posts;
} product;

/* ---- weights as they come ---- */

typedef struct packing {
    uint64_t n, k;
    bool turned; /* n rows of k, else k rows of n */
} packing;

/* Rows k0 .. k0+count-1 of a panel; columns past the last one are 0. The weights may be unaligned. */
static inline void product_gather(const packing *q, const char *b, uint64_t panel, uint64_t k0, uint64_t count,
                                  float *out)
{
    const uint64_t first = panel * PANEL, width = q->n - first < PANEL ? q->n - first : PANEL;
    if (q->turned) {
        tile_turn(b + (first * q->k + k0) * sizeof *out, q->k * sizeof *out, width, count, out);
        return;
    }
    for (uint64_t k = 0; k < count; k++, out += PANEL) {
        memcpy(out, b + ((k0 + k) * q->n + first) * sizeof *out, width * sizeof *out);
        memset(out + width, 0, (PANEL - width) * sizeof *out);
    }
}

/* ---- packed weights: panel by panel, k rows of PANEL columns ---- */

/* Pieces follow the layout of b: some of its rows, or the rows of a panel. b may be unaligned. */
enum { PIECE_ROWS = 16 };

static inline void product_pack_rows(const packing *q, const char *b, uint64_t first, float *out)
{
    const uint64_t last = q->k - first < PIECE_ROWS ? q->k : first + PIECE_ROWS;
    for (uint64_t j = 0; j < q->n; j += PANEL) {
        const uint64_t width = q->n - j < PANEL ? q->n - j : PANEL;
        for (uint64_t k = first; k < last; k++) {
            float *to = out + j * q->k + k * PANEL;
            const char *from = b + (k * q->n + j) * sizeof *to;
            if (width == PANEL) { /* a size that the compiler knows: vectors, not a call */
                memcpy(to, from, PANEL * sizeof *to);
                continue;
            }
            memcpy(to, from, width * sizeof *to);
            memset(to + width, 0, (PANEL - width) * sizeof *to);
        }
    }
}

static inline onx_status product_pack(void *user, const void *elements, uint64_t piece, void *out)
{
    const packing *q = user;
    if (q->turned)
        product_gather(q, elements, piece, 0, q->k, (float *)out + piece * PANEL * q->k);
    else
        product_pack_rows(q, elements, piece * PIECE_ROWS, out);
    return ONX_OK;
}

/* The bytes that it takes; false: more than there can be. */
static inline bool product_packed_size(const product *q, uint64_t *size)
{
    const uint64_t panels = (q->n + PANEL - 1) / PANEL;
    return onxi_mul_u64(panels * PANEL, q->k, size) && onxi_mul_u64(*size, sizeof(float), size);
}

/* Kernels of several ISA levels with the same panel width share packed weights. */
static inline onx_status product_packed(onx_prepare *p, const packing *b, uint64_t size, const float **out)
{
    const struct {
        char what[8];
        uint64_t panel, n, k, turned;
    } key = { "panels", PANEL, b->n, b->k, b->turned };
    packing shape = *b;
    const onx_packing job = { .input = 1,
                              .key = &key,
                              .key_size = sizeof key,
                              .size = size,
                              .pieces = b->turned ? (b->n + PANEL - 1) / PANEL : (b->k + PIECE_ROWS - 1) / PIECE_ROWS,
                              .unaligned = true,
                              .in_order = true,
                              .part = b->turned ? PANEL * b->k : PIECE_ROWS * b->n,
                              .make = product_pack,
                              .user = &shape };
    const void *packed;
    ONX_TRY(p->ops->packed(p, &job, &packed));
    *out = packed;
    return ONX_OK;
}

/* ---- what is done to results before they are left ---- */

/* The contents of c, `rows` rows of `width` columns, in a buffer that whole vectors fit in. */
static inline void product_finish(const product *q, const onx_work *work, uint64_t row, uint64_t column, uint64_t rows,
                                  uint64_t width, float *c, uint64_t ldc)
{
    const uint64_t vectors = (width + ONXI_LANES - 1) / ONXI_LANES;
    for (uint32_t p = 0; p < q->posts.count; p++) {
        const simd_post *f = &q->posts.list[p];
        float part[PRODUCT_ROWS * PANEL];
        const float *same = NULL;
        uint64_t step = q->n;
        if (f->operand >= 0) {
            same = (const float *)work->inputs[f->operand]->data + row * q->n + column;
            if (width < PANEL) {
                memset(part, 0, sizeof part);
                for (uint64_t i = 0; i < rows; i++)
                    memcpy(part + i * PANEL, same + i * q->n, width * sizeof *part);
                same = part;
                step = PANEL;
            }
        }
        post_apply(f, c, ldc, rows, vectors, f->row ? f->row + column : NULL, same, step);
    }
}

/* Stores the results of panels p to end - 1 of a product with a single row. */
static inline void product_put_row(const product *q, const onx_work *work, float *c, uint64_t row, uint64_t p,
                                   uint64_t end, float *sums)
{
    const uint64_t column = p * PANEL, left = q->n - column;
    const uint64_t width = (end - p) * PANEL < left ? (end - p) * PANEL : left;
    for (uint64_t i = 0; q->posts.count && i < width; i += PANEL)
        product_finish(q, work, row, column + i, 1, width - i < PANEL ? width - i : PANEL, sums + i, PANEL);
    memcpy(c + column, sums, width * sizeof *sums);
}

/* A tile of the result: some rows of a panel. `row` is the index of the first one in c, `whole_row` its index in the
 * whole result. */
typedef struct product_place {
    float *c;
    uint64_t row, rows, whole_row, panel;
    bool ends;   /* no more is added afterwards */
    bool half;   /* the tile is a single vector wide */
    float *edge; /* buffer of PANEL floats per row, for a panel with fewer columns */
} product_place;

/* Has the panel as many columns as the tile stores? */
static inline bool product_tile_fits(const product_place *at, uint64_t width)
{
    return width == (at->half ? ONXI_LANES : PANEL);
}

/* Where the sums of the tile go. */
static inline void product_tile_begin(const product *q, const product_place *at, tile_operands *t)
{
    const uint64_t column = at->panel * PANEL, width = q->n - column < PANEL ? q->n - column : PANEL;
    float *c = at->c + at->row * q->n + column;
    const bool fits = product_tile_fits(at, width);
    t->c = fits ? c : at->edge;
    t->ldc = fits ? q->n : PANEL;
    for (uint64_t i = 0; !fits && t->more && i < at->rows; i++)
        memcpy(at->edge + i * PANEL, c + i * q->n, width * sizeof *c);
}

static inline void product_tile_end(const product *q, const onx_work *work, const product_place *at,
                                    const tile_operands *t)
{
    const uint64_t column = at->panel * PANEL, width = q->n - column < PANEL ? q->n - column : PANEL;
    float *c = at->c + at->row * q->n + column;
    if (at->ends && q->posts.count)
        product_finish(q, work, at->whole_row, column, at->rows, width, t->c, t->ldc);
    for (uint64_t i = 0; !product_tile_fits(at, width) && i < at->rows; i++)
        memcpy(c + i * q->n, at->edge + i * PANEL, width * sizeof *c);
}

/* ---- how the work is cut ---- */

typedef struct product_piece {
    uint64_t batch, m0, m1, p0, p1; /* rows and panels */
} product_piece;

static inline product_piece product_piece_of(const product *q, uint64_t piece)
{
    const uint64_t each = q->m_blocks * q->chunks; /* pieces of one product */
    product_piece at = { .batch = piece / each,
                         .m0 = piece % each / q->chunks * q->m_block,
                         .p0 = piece % q->chunks * q->chunk };
    at.m1 = q->m - at.m0 < q->m_block ? q->m : at.m0 + q->m_block;
    at.p1 = q->panels - at.p0 < q->chunk ? q->panels : at.p0 + q->chunk;
    return at;
}

/* Division of the work, and fused post-operations. Tiles have `height` rows. `least` panels share the packed left side
 * of a piece; fewer if threads would otherwise be idle. */
static inline void product_cut(onx_prepare *p, product *q, uint64_t batch, uint64_t height, uint64_t least)
{
    const uint64_t threads = p->threads, most = BLOCK_M / height * height;
    q->panels = (q->n + PANEL - 1) / PANEL;
    q->m_blocks = (q->m + most - 1) / most;
    if (q->m_blocks > 1 && batch == 1) /* all threads end at the same time */
        q->m_blocks = (q->m_blocks + threads - 1) / threads * threads;
    q->m_block = ((q->m + q->m_blocks - 1) / q->m_blocks + height - 1) / height * height;
    q->m_blocks = (q->m + q->m_block - 1) / q->m_block;
    const uint64_t share = q->panels * q->m_blocks * batch / threads;
    least = share < least ? share + !share : least;
    q->chunk = least * cut_evenly((q->panels + least - 1) / least, q->m_blocks * batch, threads, CUT_SOME);
    q->chunks = (q->panels + q->chunk - 1) / q->chunk;
    post_take_rows(p, &q->posts, q->n, PANEL);
    p->rows = batch * q->m_blocks * q->chunks;
    p->grain = onxi_worth_a_thread(batch * (q->m + ONXI_COST_READING) * q->n * q->k / p->rows);
}

/* ---- sizes ---- */

/* Of a MatMul by a constant matrix. */
static inline bool product_of_matmul(const onx_prepare *p, product *q)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *y = p->outputs[0];
    if (!y || !y->count || b->dtype != ONX_FLOAT || !b->data || b->rank != 2 || a->rank < 1 || b->dims[0] <= 0 ||
        a->dims[a->rank - 1] != b->dims[0])
        return false;
    q->n = (uint64_t)b->dims[1];
    q->k = (uint64_t)b->dims[0];
    q->m = a->count / q->k;
    return q->n && y->count / q->n == q->m && y->count % q->n == 0;
}

/* Of a Gemm by a constant matrix, and the row that it adds. */
static inline bool product_of_gemm(onx_prepare *p, product *q, bool *turned)
{
    const onx_value *a = p->inputs[0], *b = p->inputs[1], *c = p->input_count > 2 ? p->inputs[2] : NULL;
    const onx_value *y = p->outputs[0];
    if (!y || !y->count || b->dtype != ONX_FLOAT || !b->data || a->rank != 2 || b->rank != 2 ||
        onx_prepare_float(p, "alpha") != 1 || onx_prepare_int(p, "transA") != 0)
        return false;
    *turned = onx_prepare_int(p, "transB") != 0;
    if (b->dims[*turned ? 1 : 0] <= 0 || a->dims[1] != b->dims[*turned ? 1 : 0] || y->rank != 2 ||
        y->dims[0] != a->dims[0] || y->dims[1] != b->dims[*turned ? 0 : 1])
        return false;
    q->m = (uint64_t)y->dims[0];
    q->n = (uint64_t)y->dims[1];
    q->k = (uint64_t)a->dims[1];
    return !c || (c->rank <= 2 && onx_prepare_float(p, "beta") == 1 &&
                  post_add_row(p, &q->posts.list[q->posts.count++], c, q->n, PANEL));
}

/* For both operators: the body of a Gemm row is PRODUCT_GEMM, that of a MatMul row NULL. */
#define PRODUCT_GEMM "Gemm"
static inline bool product_of_row(onx_prepare *p, product *q, bool *turned)
{
    *turned = false;
    return p->kernel->body ? product_of_gemm(p, q, turned) : product_of_matmul(p, q);
}

#endif
