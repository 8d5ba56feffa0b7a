/* amx_product.c - MatMul and Gemm of floats with constant weights by AMX tiles, where floats are split into three
 * bfloat16 parts (parts.h). Weights are packed as for product.c, which computes products of few rows. The sum over k
 * runs in one fixed order, so the bits depend neither on blocking nor on threads. */
#include "kernel/simd/parts.h"
#include "kernel/simd/product.h"

/* Fewest rows, columns and depth that pay: the parts of a panel serve many rows, and those of a row many columns. A
 * unit of work has `PANELS` panels that share the split rows. */
enum { ROWS_LEAST = PARTS_ROWS, COLUMNS_LEAST = PANEL, DEPTH_LEAST = 2 * PARTS_DEPTH, PANELS = 8 };

_Static_assert((int)BLOCK_M <= (int)PARTS_GROUPS * (int)PARTS_ROWS, "a block of rows is taken apart at once");

typedef struct parts_params {
    product of;
    const float *b; /* panel by panel, k rows of PANEL columns */
} parts_params;

/* A block of rows and a range of k, whose sums go to the result. */
typedef struct block {
    const product *q;
    const onx_work *work;
    uint64_t m0;
    bool more, ends; /* is there a range before it; is it the last one? */
} block;

static void put(void *user, uint64_t row, uint64_t rows, uint64_t panel, const float *sums)
{
    const block *b = user;
    float edge[PARTS_ROWS * PANEL];
    const product_place at = { .c = b->work->outputs[0]->data,
                               .row = b->m0 + row,
                               .rows = rows,
                               .whole_row = b->m0 + row,
                               .panel = panel,
                               .ends = b->ends,
                               .edge = edge };
    tile_operands t = { .more = b->more };
    product_tile_begin(b->q, &at, &t);
    amx_put(sums, t.c, t.ldc, rows, b->more);
    product_tile_end(b->q, b->work, &at, &t);
}

static onx_status run(onx_work *work, uint64_t first, uint64_t last)
{
    const parts_params *q = work->params;
    const uint64_t k = q->of.k;
    amx_begin();
    for (uint64_t piece = first; piece < last; piece++) {
        const product_piece at = product_piece_of(&q->of, piece);
        for (uint64_t k0 = 0, kc; k0 < k; k0 += kc) {
            kc = parts_depth(k - k0);
            block b = { .q = &q->of, .work = work, .m0 = at.m0, .more = k0 > 0, .ends = k0 + kc == k };
            parts_stretch(&(parts_product){ .a = (const float *)work->inputs[0]->data + at.m0 * k + k0,
                                            .lda = k,
                                            .rows = at.m1 - at.m0,
                                            .b = q->b + k0 * PANEL,
                                            .panel = k * PANEL,
                                            .p0 = at.p0,
                                            .p1 = at.p1,
                                            .k = kc,
                                            .space = work->thread_workspace,
                                            .put = put,
                                            .user = &b });
        }
    }
    amx_end();
    return ONX_OK;
}

/* ---- preparing ---- */

/* Declines where it would be no faster; product.c is tried next. */
static onx_status prepare_weights(onx_prepare *p, parts_params *q, bool turned)
{
    uint64_t size;
    onx_elements elements;
    if (q->of.m < ROWS_LEAST || q->of.n < COLUMNS_LEAST || q->of.k < DEPTH_LEAST || !product_packed_size(&q->of, &size))
        return ONX_E_UNSUPPORTED;
    const onx_status there = p->ops->in_place(p, 1, size, &elements);
    if (there != ONX_E_UNSUPPORTED) /* a session with lean memory */
        return there == ONX_OK ? ONX_E_UNSUPPORTED : there;
    const packing shape = { .n = q->of.n, .k = q->of.k, .turned = turned };
    ONX_TRY(product_packed(p, &shape, size, &q->b));
    product_cut(p, &q->of, 1, PARTS_ROWS, PANELS);
    p->thread_workspace = parts_space(q->of.m_block);
    p->params = q;
    return ONX_OK;
}

static onx_status prepare(onx_prepare *p)
{
    bool turned;
    if (p->precision)
        return ONX_E_UNSUPPORTED;
    parts_params *q = ONXI_NEW(p->arena, parts_params);
    if (!q)
        return ONX_E_MEMORY;
    return product_of_row(p, &q->of, &turned) ? prepare_weights(p, q, turned) : ONX_E_UNSUPPORTED;
}

/* Tried before product.c. */
#define ROW(name, body_)                                                                                               \
    {                                                                                                                  \
        .op = name, .since = 1, .dtypes = ONXI_F32, .preference = 12, .isa = ONXI_LEVEL, .packs = 1 << 1,              \
        .flags = ONX_KERNEL_POST_OPS, .variant = ONXI_VARIANT, .body = body_, .prepare = prepare, .run = run           \
    }
const onx_kernel ONXI_LEVELED(onxi_kernels_amx_product)[] = { ROW("MatMul", NULL), ROW("Gemm", PRODUCT_GEMM), { 0 } };
