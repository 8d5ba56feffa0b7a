/* half_product.c - MatMul and Gemm with constant weights in sessions with precision bf16: both sides are rounded to
 * bfloat16 and multiplied in it (half.h); sums are floats. The left side is rounded once for a block of rows and a
 * block of k, which all panels share. For a single row it stays in float: the time is that of reading the weights. The
 * sum over k runs in one fixed order, so the bits depend neither on blocking nor on threads. */
#include "kernel/simd/half.h"
#include "kernel/simd/product.h"

enum { LINE = BLOCK_K + 16 /* pairs between rows of the left side: not a power of two, against cache conflicts */ };

typedef struct half_params {
    product of;
    uint64_t pairs; /* along k, in whole tiles */
    const float *b; /* panel by panel, rows of PANEL pairs */
} half_params;

static void one_row(const half_params *q, const onx_work *work, const product_piece *at)
{
    for (uint64_t p = at->p0; p < at->p1; p += 2) {
        float two[2 * PANEL];
        const uint64_t pair = p + 1 < at->p1 ? p + 1 : p;
        const float *const panels[] = { q->b + p * q->pairs * PANEL, q->b + pair * q->pairs * PANEL };
        half_row(work->inputs[0]->data, panels, q->of.k, two);
        product_put_row(&q->of, work, work->outputs[0]->data, 0, p, pair + 1, two);
    }
}

/* The rows of a block times a stretch of a panel. */
static void one_panel(const half_params *q, const onx_work *work, const product_piece *block, uint64_t panel,
                      uint64_t k0, uint64_t kc, const float *next)
{
    const uint64_t rows = block->m1 - block->m0, tiles = (rows + TILE_M - 1) / TILE_M;
    for (uint64_t i = 0, index = 0, height; i < rows; i += height, index++) {
        height = half_height(rows - i);
        float edge[HALF_ROWS * PANEL];
        const product_place at = { .c = work->outputs[0]->data,
                                   .row = block->m0 + i,
                                   .rows = height,
                                   .whole_row = block->m0 + i,
                                   .panel = panel,
                                   .ends = k0 + kc == q->pairs,
                                   .edge = edge };
        tile_operands t = { .a = (const float *)work->thread_workspace + i * LINE,
                            .lda = LINE,
                            .b = q->b + (panel * q->pairs + k0) * PANEL,
                            .ldb = PANEL,
                            .k = kc,
                            .more = k0 > 0 };
        product_tile_begin(&q->of, &at, &t);
        tile_fetch(&t, next, index, tiles);
        half_block(&t, height);
        product_tile_end(&q->of, work, &at, &t);
    }
}

static void one_block(const half_params *q, const onx_work *work, const product_piece *at)
{
    const float *a = (const float *)work->inputs[0]->data + at->m0 * q->of.k;
    float *lines = work->thread_workspace;
    for (uint64_t k0 = 0, kc; k0 < q->pairs; k0 += kc) {
        kc = tile_depth(q->pairs - k0);
        const uint64_t left = q->of.k - 2 * k0, count = left < 2 * kc ? left : 2 * kc;
        for (uint64_t i = 0; i < at->m1 - at->m0; i++)
            half_line(a + i * q->of.k + 2 * k0, count, lines + i * LINE);
        for (uint64_t p = at->p0; p < at->p1; p++) {
            const bool along = p + 1 < at->p1, more = k0 + kc < q->pairs;
            const uint64_t next = along ? (p + 1) * q->pairs + k0 : at->p0 * q->pairs + k0 + kc;
            one_panel(q, work, at, p, k0, kc, along || more ? q->b + next * PANEL : NULL);
        }
    }
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const half_params *q = work->params;
    half_begin();
    for (uint64_t piece = first; piece < last; piece++) {
        const product_piece at = product_piece_of(&q->of, piece);
        (q->of.m == 1 ? one_row : one_block)(q, work, &at);
    }
    half_end();
    return ONX_OK;
}

/* ---- preparing ---- */

static onx_status pack(void *user, const void *elements, uint64_t panel, void *out)
{
    const packing *q = user;
    float rows[HALF_DEPTH * PANEL];
    char *to = (char *)out + panel * half_pairs(q->k) * PANEL * sizeof *rows;
    for (uint64_t k = 0; k < q->k; k += HALF_DEPTH, to += HALF_PAIRS * PANEL * sizeof *rows) {
        const uint64_t count = q->k - k < HALF_DEPTH ? q->k - k : HALF_DEPTH;
        product_gather(q, elements, panel, k, count, rows);
        memset(rows + count * PANEL, 0, (HALF_DEPTH - count) * PANEL * sizeof *rows);
        if (!half_pack(rows, PANEL, HALF_DEPTH, to))
            return ONX_E_UNSUPPORTED;
    }
    return ONX_OK;
}

/* Declines if weights are not constant, or do not fit: product.c is tried next. */
static onx_status prepare_weights(onx_prepare *p, half_params *q, bool turned)
{
    const uint64_t panels = (q->of.n + PANEL - 1) / PANEL;
    packing from = { .n = q->of.n, .k = q->of.k, .turned = turned };
    const struct {
        char what[8];
        uint64_t panel, depth, n, k, turned;
    } key = { "pairs", PANEL, HALF_DEPTH, from.n, from.k, turned };
    onx_packing job = { .input = 1,
                        .key = &key,
                        .key_size = sizeof key,
                        .pieces = panels,
                        .unaligned = true,
                        .in_order = turned,
                        .part = turned ? PANEL * from.k : 0,
                        .make = pack,
                        .user = &from,
                        .may_decline = true };
    if (q->of.k > UINT64_MAX / 2 || !onxi_mul_u64(panels * PANEL, half_pairs(q->of.k), &job.size) ||
        !onxi_mul_u64(job.size, sizeof(float), &job.size))
        return ONX_E_UNSUPPORTED;
    const void *packed;
    ONX_TRY(p->ops->packed(p, &job, &packed));
    q->b = packed;
    q->pairs = half_pairs(q->of.k);
    product_cut(p, &q->of, 1, TILE_M, 1);
    const uint64_t lines = (q->of.m_block + HALF_LINES - 1) / HALF_LINES * HALF_LINES;
    p->thread_workspace = q->of.m == 1 ? 0 : lines * LINE * sizeof(float);
    p->params = q;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    bool turned;
    if (p->precision != ONX_PRECISION_BF16)
        return ONX_E_UNSUPPORTED;
    half_params *q = ONXI_NEW(p->arena, half_params);
    if (!q)
        return ONX_E_MEMORY;
    return product_of_row(p, &q->of, &turned) ? prepare_weights(p, q, turned) : ONX_E_UNSUPPORTED;
}

/* Asked before product.c. */
#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 12, .isa = ONXI_LEVEL, .packs = 1 << 1,              \
        .flags = ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = body_, .prepare = prepare, .run = run           \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_half_product)[] = { ROW("MatMul", NULL), ROW("Gemm", PRODUCT_GEMM), { 0 } };
