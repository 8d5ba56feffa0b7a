/* einsum.c - matrix products of Einsum, tile by tile. The right operand is read in place, except for the columns after
 * the last whole panel. The sum over k runs in one fixed order. */
#include "kernel/core/einsum.h"
#include "kernel/simd/tile.h"

/* Multiplies a range of k of a panel of `width` columns with all rows. */
static void stretch(const onxi_gemm *g, const float *b, uint64_t ldb, uint64_t column, uint64_t k0, uint64_t kc)
{
    const uint64_t width = g->n - column < PANEL ? g->n - column : PANEL;
    for (uint64_t m = 0, rows; m < g->m; m += rows) {
        float edge[TILE_M * PANEL], *c = (float *)g->c + m * g->n + column;
        rows = tile_height(g->m - m);
        for (uint64_t i = 0; width < PANEL && k0 && i < rows; i++)
            memcpy(edge + i * PANEL, c + i * g->n, width * sizeof *c);
        tile_run(&(tile_operands){ .a = (const float *)g->a + m * g->k + k0,
                                   .lda = g->k,
                                   .b = b,
                                   .ldb = ldb,
                                   .k = kc,
                                   .c = width < PANEL ? edge : c,
                                   .ldc = width < PANEL ? (uint64_t)PANEL : g->n,
                                   .more = k0 > 0 },
                 rows);
        for (uint64_t i = 0; width < PANEL && i < rows; i++)
            memcpy(c + i * g->n, edge + i * PANEL, width * sizeof *c);
    }
}

static void multiply(const onxi_gemm *g, void *pack)
{
    float *last = pack;
    if (!g->k)
        memset(g->c, 0, g->m * g->n * sizeof(float));
    for (uint64_t k0 = 0, kc; k0 < g->k; k0 += kc) {
        const float *b = (const float *)g->b + k0 * g->n;
        kc = tile_depth(g->k - k0);
        uint64_t column = 0;
        for (; column + PANEL <= g->n; column += PANEL)
            stretch(g, b + column, g->n, column, k0, kc);
        if (column == g->n)
            continue;
        const uint64_t width = g->n - column;
        memset(last, 0, kc * PANEL * sizeof *last);
        for (uint64_t k = 0; k < kc; k++)
            memcpy(last + k * PANEL, b + k * g->n + column, width * sizeof *last);
        stretch(g, last, PANEL, column, k0, kc);
    }
}

static const onxi_einsum_product product = multiply;

const onx_kernel ONXI_LEVELED(onxi_kernels_simd_einsum)[] = { { .op = "Einsum",
                                                                .since = 12,
                                                                .dtypes = ONXI_F32,
                                                                .preference = 1,
                                                                .isa = ONXI_LEVEL,
                                                                .variant = ONXI_VARIANT,
                                                                .body = &product,
                                                                .prepare = onxi_einsum_prepare,
                                                                .run = onxi_einsum_run },
                                                              { 0 } };
